"""Cells that cannot be: what a model of raw Adult has in them, learned from the same release with and without a spike.

::

    python -m benchmarks.empty_cells --out benchmarks/results
    python -m benchmarks.empty_cells --tables adult mushrooms --epsilons 1 --seeds 1

Raw Adult has all 15 columns, education-num as 16 states and the other numbers cut at round numbers; "numbers" has all
six as numbers that are undivided, and its scores are of drawn records. Of each table a tenth is held out. Scores: mean
total variation of pairs to the records learned from, of those in released tables with half of their cells empty
("sparse") and of others there ("dense", with how many there are); mean log-likelihood of a held-out record; on raw
Adult also the model's probability of pairs of education and education-num that no record has (16 of 256 exist), and its
expected number of female husbands and male wives among as many records.

`--releases`: how often intervals of .9 hold on made-up tables of 10 x 10 cells with 50,000 records on the diagonal, of
other cells that are believed empty, by how many records are in them, of their sums by row, and of all of them.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare_scores import model_scores, mutual_scopes, record_scores
from benchmarks.compare_tables import TABLES, Table, held_out
from benchmarks.data import find
from benchmarks.report import markdown_table
from pgmpy_dp import Number
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning import maximum_a_posteriori
from pgmpy_dp.learning.empty_cells import pair_tables
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Release

DELTA = 1e-9
_CUTS = {
    "age": range(20, 75, 5),
    "fnlwgt": (50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 400_000),
    "capital-gain": (1, 2_500, 5_000, 7_500, 10_000, 20_000),
    "capital-loss": (1, 1_500, 1_750, 2_000, 2_500),
    "hours-per-week": (20, 30, 35, 40, 41, 50, 60),
}
_BOUNDS = {
    **{"age": (0, 100), "fnlwgt": (0, 1_500_000), "education-num": (1, 16)},
    **{"capital-gain": (0, 99_999), "capital-loss": (0, 5_000), "hours-per-week": (1, 99)},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.empty_cells", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", default=["raw"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--releases", type=int, default=0, help="made-up tables for coverage (default: %(default)s)")
    options = parser.parse_args(arguments)
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    work = itertools.product(options.tables, options.epsilons, options.seeds)
    rows = [row for name, epsilon, seed in work for row in run(name, epsilon, seed)]
    command = shlex.join(["python", "-m", "benchmarks.empty_cells", *(arguments or sys.argv[1:])])
    measured = ("pairs", "sparse", "dense", "nats", "contradict", "husbands", "wives")
    columns = ("table", "epsilon", "seed", "spike", *measured)
    cells = [[str(row.get(name, "")) for name in columns] for row in rows]
    text = [
        "# Cells that cannot be",
        "",
        f"`{command}`",
        "",
        describe_machine(),
        "",
        markdown_table(columns, cells),
        "",
    ]
    if options.releases:
        made_up = [intervals(noise, sd, options.releases) for noise in ("gaussian", "laplace") for sd in (30.0, 100.0)]
        cells = [list(map(str, row.values())) for row in made_up]
        text += [
            f"Intervals of .9, {options.releases} made-up tables each:",
            "",
            markdown_table(tuple(made_up[0]), cells),
            "",
        ]
    (Path(options.out) / "empty-cells.md").write_text("\n".join(text))


def run(name: str, epsilon: float, seed: int) -> list[dict]:
    """One release, learned from without and with the spike."""
    if name == "numbers":
        return run_numbers(epsilon, seed)
    table = raw_adult() if name == "raw" else TABLES[name].read()
    unseen = held_out(table, seed)
    states = {name: list(range(k)) for name, k in zip(table.names, table.cardinalities, strict=True)}
    frame = pd.DataFrame(table.codes[~unseen], columns=table.names)
    learned = PrivateNetwork(epsilon, DELTA, state_names=states, random_state=seed).fit(frame)
    rows = []
    for spike in ("no", "yes"):
        found = learned if spike == "yes" else _without_spike(learned)
        model = found.model_.to_log_linear()
        seen = table.codes[~unseen]
        scores = model_scores(model, seen, table.codes[unseen], mutual_scopes(table.cardinalities))
        own = {"pairs": f"{scores['pairs']:.4f}", "nats": f"{scores['nats']:.3f}"}
        for what, pairs in zip(("sparse", "dense"), _measured(learned.release_, table, seen), strict=True):
            if pairs:
                of_these = model_scores(model, seen, table.codes[unseen], (pairs, pairs[:1]))["pairs"]
                own[what] = f"{of_these:.4f} ({len(pairs)})"
        rows.append({"table": name, "epsilon": epsilon, "seed": seed, "spike": spike, **own, **_rows(model, table)})
    return rows


def _measured(release: Release, table: Table, seen: np.ndarray) -> tuple[list, list]:
    """Pairs in tables that were released, probes too: those with at least half of their cells empty, and others."""
    found: tuple[list, list] = ([], [])
    scopes = (sorted(table.names.index(name) for name in scope) for scope in release.scopes)
    for i, j in sorted({pair for scope in scopes for pair in itertools.combinations(scope, 2)}):
        cells = table.cardinalities[i] * table.cardinalities[j]
        some = len(np.unique(seen[:, i] * table.cardinalities[j] + seen[:, j]))
        found[int(2 * some > cells)].append((i, j))
    return found


def _without_spike(learned: PrivateNetwork) -> PrivateNetwork:
    kept = maximum_a_posteriori.with_empty_cells
    maximum_a_posteriori.with_empty_cells = lambda noisy: (noisy, None, [])
    try:
        return PrivateNetwork().fit_release(learned.release_)
    finally:
        maximum_a_posteriori.with_empty_cells = kept


def run_numbers(epsilon: float, seed: int) -> list[dict]:
    """The same of raw Adult with its numbers as such; scores are of as many drawn records."""
    frame, table = _raw_frame(), raw_adult()
    seen = ~held_out(table, seed)
    numbers = {name: Number(*bounds, resolution=1, missing="drop") for name, bounds in _BOUNDS.items()}
    schema = {name: numbers.get(name, sorted(frame[name].unique())) for name in frame}
    learned = PrivateNetwork(epsilon, DELTA, state_names=schema, random_state=seed).fit(frame[seen])
    education, number = (table.names.index(name) for name in ("education", "education-num"))
    real = set(zip(table.codes[:, education].tolist(), table.codes[:, number].tolist(), strict=True))
    rows = []
    for spike in ("no", "yes"):
        found = learned if spike == "yes" else _without_spike(learned)
        drawn = found.sample(len(frame), seed)
        codes = _coded(drawn.astype(dict.fromkeys(drawn, str)), frame)
        pairs = record_scores(codes, table.codes[seen], table.cardinalities, mutual_scopes(table.cardinalities))
        wrong = [pair not in real for pair in zip(codes[:, education].tolist(), codes[:, number].tolist(), strict=True)]
        people = zip(drawn["relationship"], drawn["sex"], strict=True)
        counted = Counter(people)
        rows.append(
            {
                **{"table": "numbers", "epsilon": epsilon, "seed": seed, "spike": spike},
                **{"pairs": f"{pairs['records_pairs']:.4f}", "contradict": f"{np.mean(wrong):.4f}"},
                **{"husbands": counted["Husband", "Female"], "wives": counted["Wife", "Male"]},
            }
        )
    return rows


def intervals(noise: str, deviation: float, releases: int) -> dict:
    """Coverage of the cells of a made-up table that are believed empty, of their sum, and what would cover it."""
    size, n = 10, 50_000
    held: dict[str, list[bool]] = {"0": [], "1": [], "5": [], "row": [], "all": []}
    for seed in range(releases):
        rng = np.random.default_rng([seed, 77])
        truth = np.diag(n * rng.dirichlet(np.full(size, 5.0)))
        nobody = truth == 0
        truth[nobody] = rng.choice([0, 0, 0, 1, 5], nobody.sum())
        cliques = Cliques(("a", "b"), truth.shape, (("a", "b"),))
        scale = deviation / np.sqrt(2) if noise == "laplace" else deviation
        counts = rng.multinomial(n, truth.ravel() / truth.sum()) + getattr(
            rng, "laplace" if noise == "laplace" else "normal"
        )(0, scale, truth.size)
        noisy = NoisyMarginals(cliques, counts, noise, np.array([scale]))
        fit = maximum_a_posteriori.collective_map(noisy)
        posterior = sample_posterior(noisy, fit, rng, n_draws=39)
        believed = pair_tables(noisy)[0].believed & nobody
        draws = n * posterior.query(["a", "b"])

        def covers(found: np.ndarray, true: float, posterior: Posterior = posterior) -> bool:
            _, lower, upper = posterior.interval_of(found)
            return bool(lower <= max(true, 0.5) and true <= upper)  # draws are never 0

        for what in (0, 1, 5):
            for i, j in np.argwhere(believed & (truth == what)):
                held[str(what)].append(covers(draws[:, i, j], what))
        for row in range(size):
            held["row"].append(covers(draws[:, row, believed[row]].sum(axis=1), truth[row, believed[row]].sum()))
        held["all"].append(covers(draws[:, believed].sum(axis=1), truth[believed].sum()))
    return {"noise": noise, "deviation": deviation} | {name: f"{np.mean(found):.2f}" for name, found in held.items()}


def raw_adult() -> Table:
    """All columns of Adult as they were published."""
    frame = _raw_frame()
    sizes = tuple(len(_CUTS[name]) + 1 if name in _CUTS else frame[name].nunique() for name in frame)
    return Table(tuple(frame), sizes, _coded(frame, frame), "income")


def _raw_frame() -> pd.DataFrame:
    file = "adult_raw.csv.gz"
    with gzip.open(find(file) / file, "rt") as stream:
        frame = pd.read_csv(stream, skipinitialspace=True, dtype=str, keep_default_na=False)
    return frame.assign(income=frame["income"].str.rstrip("."))


def _coded(frame: pd.DataFrame, known: pd.DataFrame) -> np.ndarray:
    """State numbers: of texts in their order among the known ones."""
    codes = {}
    for name in frame:
        cuts = _CUTS.get(name)
        texts = pd.Index(sorted(known[name].unique()))
        codes[name] = (
            texts.get_indexer(frame[name]) if cuts is None else np.digitize(frame[name].astype(float), list(cuts))
        )
    return pd.DataFrame(codes).to_numpy().astype(np.int32)


def _rows(model: LogLinearModel, table: Table) -> dict[str, str]:
    if "education-num" not in table.names:
        return {}
    education, number = (table.codes[:, table.names.index(name)] for name in ("education", "education-num"))
    real = np.zeros((16, 16), dtype=bool)
    real[education, number] = True
    pairs = model.marginal(["education", "education-num"]).reshape(16, 16)
    both = len(table.codes) * model.marginal(["relationship", "sex"]).reshape(-1, 2)
    # States are sorted: Husband is the first and Wife the last relationship, Female the first sex.
    return {
        "contradict": f"{pairs[~real].sum():.4f}",
        "husbands": f"{both[0, 0]:.0f}",
        "wives": f"{both[-1, 1]:.0f}",
    }


if __name__ == "__main__":
    main()

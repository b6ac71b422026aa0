"""Cells that cannot be: what a model of raw Adult has in them, learned from the same release with and without a spike.

::

    python -m benchmarks.empty_cells --out benchmarks/results
    python -m benchmarks.empty_cells --tables adult mushrooms --epsilons 1 --seeds 1

Raw Adult has all 15 columns, education-num as 16 states and the other numbers cut at round numbers. Of each table a
tenth is held out. Scores: mean total variation of pairs to the records learned from, mean log-likelihood of a held-out
record; on raw Adult also the model's probability of pairs of education and education-num that no record has (16 of 256
exist), and its expected number of female husbands and male wives among as many records.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare_scores import model_scores, mutual_scopes
from benchmarks.compare_tables import TABLES, Table, held_out
from benchmarks.data import find
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning import maximum_a_posteriori
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

DELTA = 1e-9
_CUTS = {
    "age": range(20, 75, 5),
    "fnlwgt": (50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 400_000),
    "capital-gain": (1, 2_500, 5_000, 7_500, 10_000, 20_000),
    "capital-loss": (1, 1_500, 1_750, 2_000, 2_500),
    "hours-per-week": (20, 30, 35, 40, 41, 50, 60),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.empty_cells", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", default=["raw"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args(arguments)
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    work = itertools.product(options.tables, options.epsilons, options.seeds)
    rows = [row for name, epsilon, seed in work for row in run(name, epsilon, seed)]
    command = shlex.join(["python", "-m", "benchmarks.empty_cells", *(arguments or sys.argv[1:])])
    columns = ("table", "epsilon", "seed", "spike", "pairs", "nats", "contradict", "husbands", "wives")
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
    (Path(options.out) / "empty-cells.md").write_text("\n".join(text))


def run(name: str, epsilon: float, seed: int) -> list[dict]:
    """One release, learned from without and with the spike."""
    table = raw_adult() if name == "raw" else TABLES[name].read()
    unseen = held_out(table, seed)
    states = {name: list(range(k)) for name, k in zip(table.names, table.cardinalities, strict=True)}
    frame = pd.DataFrame(table.codes[~unseen], columns=table.names)
    learned = PrivateNetwork(epsilon, DELTA, state_names=states, random_state=seed).fit(frame)
    rows = []
    for spike in ("no", "yes"):
        found = learned if spike == "yes" else _without_spike(learned)
        model = found.model_.to_log_linear()
        scores = model_scores(model, table.codes[~unseen], table.codes[unseen], mutual_scopes(table.cardinalities))
        own = {"pairs": f"{scores['pairs']:.4f}", "nats": f"{scores['nats']:.3f}"}
        rows.append({"table": name, "epsilon": epsilon, "seed": seed, "spike": spike, **own, **_rows(model, table)})
    return rows


def _without_spike(learned: PrivateNetwork) -> PrivateNetwork:
    kept = maximum_a_posteriori.around_empty_cells
    maximum_a_posteriori.around_empty_cells = lambda noisy: (noisy, None)
    try:
        return PrivateNetwork().fit_release(learned.release_)
    finally:
        maximum_a_posteriori.around_empty_cells = kept


def raw_adult() -> Table:
    """All columns of Adult as they were published."""
    file = "adult_raw.csv.gz"
    with gzip.open(find(file) / file, "rt") as stream:
        frame = pd.read_csv(stream, skipinitialspace=True, dtype=str, keep_default_na=False)
    frame["income"] = frame["income"].str.rstrip(".")
    codes, sizes = {}, []
    for name in frame:
        cuts = _CUTS.get(name)
        if cuts is None:
            codes[name], known = pd.factorize(frame[name], sort=True)
            sizes.append(len(known))
        else:
            codes[name] = np.digitize(frame[name].astype(float), list(cuts))
            sizes.append(len(cuts) + 1)
    return Table(tuple(frame), tuple(sizes), pd.DataFrame(codes).to_numpy().astype(np.int32), "income")


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

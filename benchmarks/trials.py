"""What people who did not write the package found it weak at, made again: rows of docs/where-it-loses.md.

    python -m benchmarks.trials --out benchmarks/results

credit        pairs of German credit (UCI, not shipped: `benchmarks.data`) under `learn`, over independent tables
network       the same of 10,000 records of a Bayesian network of 56 variables (`hailfinder`, in pgmpy's wheel)
spikes        a cost that is 0 for nine people in ten: declared with its resolution, without, and with its mean wanted
piles         a fee of 65 that six in ten paid among other numbers: declared as a spike, and not
regressions   nominal 90 % intervals of logistic coefficients from synthetic records of Adult

Records of `credit` are those learned from. Records of `regressions` are drawn from Adult, which is the population.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.adult import load_adult
from benchmarks.compare_scores import model_scores, mutual_scopes
from benchmarks.compare_tables import TABLES, Table, held_out
from benchmarks.report import markdown_table
from benchmarks.uses import fitted
from pgmpy_dp import Budget, Number, PiledNumbersWarning, Schema, combine_synthetic, learn
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

DELTA = 1e-9
Z90 = 1.6448536269514722
Row = dict[str, Any]


def hailfinder() -> Table:
    """10,000 records of the network, with the names and states that it declares."""
    import pgmpy
    from pgmpy.readwrite import BIFReader

    path = Path(pgmpy.__file__).parent / "utils" / "example_models" / "hailfinder.bif.gz"
    network = BIFReader(string=gzip.decompress(path.read_bytes()).decode()).get_model()
    names = tuple(sorted(network.nodes))
    states = {name: list(network.get_cpds(name).state_names[name]) for name in names}
    frame = network.simulate(10_000, seed=1, show_progress=False)
    codes = np.column_stack([pd.Categorical(frame[name], states[name]).codes for name in names])
    return Table(names, tuple(len(states[name]) for name in names), codes.astype(np.int32), names[0])


def over_independent(label: str, table: Table, epsilons: Iterable[float], seeds: Iterable[int]) -> Iterator[Row]:
    """Error of pairs under `learn` and under independent tables."""
    scopes = mutual_scopes(table.cardinalities)
    for epsilon, seed in itertools.product(epsilons, seeds):
        unseen = held_out(table, seed)
        known, new = table.codes[~unseen], table.codes[unseen]
        row: Row = {"trial": label, "epsilon": epsilon, "seed": seed}
        for mode in ("independent", "plain"):
            model = fitted(table, known, mode, epsilon, seed).model_.to_log_linear()
            row[mode] = model_scores(model, known, new, scopes)["pairs"]
        yield row


def spikes(seeds: Iterable[int]) -> Iterator[Row]:
    """10,000 costs, of which nine in ten are 0 and the others are lognormal; epsilon 1."""
    true = 0.1 * float(np.exp(6.0 + 1.2**2 / 2))
    for seed in seeds:
        rng = np.random.default_rng([seed, 20261128])
        n = 10_000
        cost = np.where(rng.random(n) < 0.9, 0.0, np.minimum(np.rint(np.exp(rng.normal(6.0, 1.2, n))), 100_000.0))
        frame = pd.DataFrame({"cost": cost, "sex": rng.choice(["f", "m"], n)})
        for resolution, means in ((None, None), (1, None), (None, ["cost"])):
            schema = Schema({"cost": Number(0, 100_000, resolution=resolution), "sex": ["f", "m"]})
            network = learn(frame, Budget(1.0, DELTA), schema, random_state=seed, means=means)
            model = network.model_
            drawn = model.sample(n, random_state=seed)["cost"].to_numpy()
            model.posterior = network.posterior(30, random_state=seed)
            numbers = model.ask(["cost"], quantiles=[0.5]).numbers
            median, mean = numbers[0.5], numbers["mean"]
            yield {
                "trial": "spikes",
                "declared": "with" if resolution else "without, mean wanted" if means else "without",
                "seed": seed,
                "zeros": float((drawn == 0).mean()),
                "held": bool(median.lower <= 0 <= median.upper),
                "off": abs(mean.value - float(cost.mean())),
                "mean held": bool(mean.lower <= true <= mean.upper),
                "width": mean.upper - mean.lower,
            }


def piles(seeds: Iterable[int]) -> Iterator[Row]:
    """10,000 balances, of which six in ten are 65 and the others are normal about 100; epsilon 1."""
    for seed in seeds:
        rng = np.random.default_rng([seed, 20261129])
        n = 10_000
        balance = np.where(rng.random(n) < 0.6, 65.0, rng.normal(100.0, 150.0, n).clip(-1000, 10_000))
        frame = pd.DataFrame({"balance": balance, "sex": rng.choice(["f", "m"], n)})
        for spikes in (None, [65]):
            schema = Schema({"balance": Number(-1000, 10_000, spikes=spikes), "sex": ["f", "m"]})
            with warnings.catch_warnings(record=True, action="always") as caught:
                network = learn(frame, Budget(1.0, DELTA), schema, random_state=seed)
            model = network.model_
            drawn = model.sample(n, random_state=seed)["balance"].to_numpy()
            model.posterior = network.posterior(30, random_state=seed)
            median = model.ask(["balance"], quantiles=[0.5]).numbers[0.5]
            yield {
                "trial": "piles",
                "declared": spikes is not None,
                "seed": seed,
                "spike": float((drawn == 65).mean()),
                "held": bool(median.lower <= 65 <= median.upper),
                "width": median.upper - median.lower,
                "warned": any(one.category is PiledNumbersWarning for one in caught),
            }


def design(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Income above 50K, and what it is regressed on: six columns of Adult as numbers from 0 to 1, and a product."""
    cliques, _ = load_adult()
    columns = {name: codes[:, cliques.variables.index(name)] for name in cliques.variables}
    sizes = dict(zip(cliques.variables, cliques.cardinalities, strict=True))
    names = ["age", "sex", "race", "marital-status", "hours-per-week", "education"]
    x = [columns[name] / (sizes[name] - 1) for name in names if name in columns]
    x += [x[0] * x[1]]
    return np.column_stack([np.ones(len(codes)), *x]), (columns["income"] == 1).astype(float)


def logistic(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their usual variances."""
    b = np.zeros(x.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-np.clip(x @ b, -30, 30)))
        information = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(len(b))
        step = np.linalg.solve(information, x.T @ (y - p))
        b += step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-9:
            break
    return b, np.diag(np.linalg.inv(information)).copy()


def regressions(seeds: Iterable[int], n: int = 20_000, n_sets: int = 20) -> Iterator[Row]:
    """How many of the coefficients an interval covers: of the records themselves, of one set, of twenty combined."""
    cliques, codes = load_adult()
    states = {name: list(range(k)) for name, k in zip(cliques.variables, cliques.cardinalities, strict=True)}
    true = logistic(*design(codes))[0]

    def of(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        return logistic(*design(frame[list(cliques.variables)].to_numpy().astype(int)))

    def covered(estimate: np.ndarray, variance: np.ndarray) -> float:
        return float((np.abs(estimate - true) <= Z90 * np.sqrt(variance)).mean())

    for seed in seeds:
        rows = np.random.default_rng([seed, 20261128]).integers(0, len(codes), n)
        frame = pd.DataFrame(codes[rows], columns=list(cliques.variables))
        network = learn(frame, Budget(1.0, DELTA), Schema(states), random_state=seed)
        sets = [of(one) for one in network.posterior(n_sets, random_state=seed).sample(n, n_sets, random_state=seed)]
        combined = combine_synthetic(*(np.array(part) for part in zip(*sets, strict=True)), level=0.9)
        yield {
            "trial": "regressions",
            "seed": seed,
            "records": covered(*of(frame)),
            "one set": covered(*of(network.model_.sample(n, random_state=seed))),
            "combined": float(((combined.lower <= true) & (true <= combined.upper)).mean()),
        }


TRIALS: dict[str, Callable[[range], Iterable[Row]]] = {
    "credit": lambda seeds: over_independent("German credit", TABLES["german"].read(), [0.1], seeds),
    "network": lambda seeds: over_independent("network of 56 columns", hailfinder(), [0.1], seeds),
    "spikes": spikes,
    "piles": piles,
    "regressions": regressions,
}
SEEDS = {"credit": 30, "network": 5, "spikes": 10, "piles": 5, "regressions": 8}


def pages(rows: list[Row]) -> str:
    """Tables of what was run."""
    by_trial: dict[str, list[Row]] = {}
    for row in rows:
        by_trial.setdefault(row["trial"], []).append(row)
    parts, lines = [], []
    for name in ("German credit", "network of 56 columns"):
        frame = pd.DataFrame(by_trial.get(name, []), columns=["epsilon", "independent", "plain"])
        for epsilon, group in frame.groupby("epsilon"):
            lines.append([name, f"{epsilon:g}", str(len(group)), _mean(group["plain"] / group["independent"], 3)])
    parts += [
        "## Pairs, over those of independent tables",
        markdown_table(["of", "epsilon", "seeds", "`learn`"], lines),
    ]
    digits = {"zeros": 3, "held": 2, "off": 1, "mean held": 2, "width": 0}
    frame, lines = pd.DataFrame(by_trial.get("spikes", []), columns=["declared", *digits]), []
    for declared, group in frame.groupby("declared"):
        lines.append([declared, str(len(group)), *(f"{group[of].mean():.{k}f}" for of, k in digits.items())])
    parts += [
        "## A number that is 0 for nine in ten",
        "The share of zeros in synthetic records, how often the 90 % interval of the median has 0 in it, how far the "
        "mean is from the records' own, and its interval. The population's mean is 83.",
        markdown_table(
            ["declared resolution", "fits", "zeros", "median held", "error of the mean", "mean held", "width"], lines
        ),
    ]
    digits = {"spike": 3, "held": 2, "width": 0, "warned": 2}
    frame, lines = pd.DataFrame(by_trial.get("piles", []), columns=["declared", *digits]), []
    for declared, group in frame.groupby("declared"):
        told = [f"{group[of].mean():.{k}f}" for of, k in digits.items()]
        lines.append(["with" if declared else "without", str(len(group)), *told])
    parts += [
        "## A number that is 65 for six in ten, and anything from -1,000 to 10,000 for others",
        "The share of 65 in synthetic records, the 90 % interval of the median, and how often a warning comes.",
        markdown_table(["declared spike", "fits", "65", "median held", "width", "warned"], lines),
    ]
    frame = pd.DataFrame(by_trial.get("regressions", []), columns=["records", "one set", "combined"])
    parts += [
        "## Logistic regressions",
        "How many coefficients a nominal 90 % interval holds; n = 20,000, epsilon 1. The records are not private.",
        markdown_table(
            ["fits", "the records", "one synthetic set", "twenty combined"],
            [[str(len(frame)), *(_mean(frame[column], 2) for column in frame)]],
        ),
    ]
    return "\n\n".join(parts)


def _mean(values: pd.Series, digits: int) -> str:
    """With its standard error."""
    return f"{values.mean():.{digits}f} +- {values.sem():.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--seeds", type=int, help="of each trial; by default as many as the page has")
    parser.add_argument("--lines", type=Path, default=Path("build/trials.jsonl"))
    parser.add_argument("--out", type=Path, help="folder of the page; without it the page is printed")
    options = parser.parse_args()
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    options.lines.parent.mkdir(parents=True, exist_ok=True)
    for name in options.trials:
        for row in TRIALS[name](range(401, 401 + (options.seeds or SEEDS[name]))):
            print(row, flush=True)
            with options.lines.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
    rows = [json.loads(line) for line in options.lines.read_text().splitlines()]
    head = f"# Trials of others, made again\n\n`python -m benchmarks.trials`\n\n{describe_machine()}. delta = 1e-9."
    page = f"{head}\n\n{pages(rows)}"
    if options.out:
        (options.out / "trials.md").write_text(page.rstrip() + "\n")
    else:
        print(page)


if __name__ == "__main__":
    main()

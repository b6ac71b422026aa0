"""Means and quantiles of numbers without cuts: how near `learn` comes to a release of each alone, and its intervals.

::

    python -m benchmarks.number_grids --out benchmarks/results

Tables of five numbers, none of them divided by its user, from populations whose mean and quantiles are known: costs
(lognormal), waiting times (exponential), visits (integers, most of them 0), ages and a score. `learn` gets epsilon 1,
delta 1e-9. Beside it is **a release of that statistic alone with a tenth of the budget**: the mean of the numbers
within the public bounds, with Gaussian noise and the number of records known; a quantile by the exponential mechanism,
over the real numbers of the range (the whole ones, where these are declared). Errors are mean absolute distances from
the population's value, and from the records' own.

Intervals are of 19 draws, level .9, and whether they hold the population's value is counted twice. **Covered** is the
part of the fits, with a standard error of .03 for 100 of them. **Averaged** takes each interval as it lies beside its
records' own statistic, and tells for how many of 1,000 other samples of records it would hold the population's value
there. The law of the sampling error is known, so that only the noise is left to chance. The error of a release has to
be independent of its records for that. It is not where a quantile jumps between whole numbers: those rows lack it.

With ``--tables`` it compares real tables in another way: the total variation of pairs of columns between as many
synthetic records and the records, numbers in cells by the records' eighths, with second tables of numbers and without.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
import warnings
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.fine_grids import TABLES, read
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Number, Schema, learn
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.query_intervals import number_interval
from pgmpy_dp.private import accounting
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

BUDGET = Budget(epsilon=1.0, delta=1e-9)
LEVELS = (0.05, 0.5, 0.95)
WHAT = ("mean", "5 %", "median", "95 %")
LEVEL, DRAWS = 0.9, 19
ALONE, TIMES = 0.1, 4  # part of the budget of a release of one statistic, and how often it is tried for each fit
SAMPLES = 1_000  # of records, of which the errors of statistics are drawn
SCHEMA = {
    "cost": Number(0, 100_000, missing="drop"),
    "wait": Number(0, 100, missing="drop"),
    "visits": Number(0, 60, resolution=1, missing="drop"),
    "age": Number(0, 120, resolution=1, missing="drop"),
    "score": Number(-10, 10, missing="drop"),
}


def population(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records; the numbers depend on one another through a common cause."""
    common = rng.normal(size=n)
    own = rng.normal(size=(4, n)) * 0.8 + 0.6 * common
    uniform = np.clip(rng.random(n), 1e-12, 1.0)
    age = np.where(uniform < 0.25, 18 * rng.random(n), 45 + 19 * own[2])
    frame = pd.DataFrame({
        "cost": np.exp(7 + 1.2 * own[0]),
        "wait": rng.exponential(5, n) * np.exp(0.2 * own[1]),
        "visits": np.where(rng.random(n) < 0.6, 0, rng.geometric(0.2, n)),
        "age": np.floor(age),
        "score": own[3],
    })  # fmt: skip
    for name, number in SCHEMA.items():
        frame[name] = frame[name].clip(number.lower, number.upper)
    return frame


def statistics(values: np.ndarray) -> np.ndarray:
    """The mean and the quantiles of numbers."""
    return np.array([values.mean(), *np.quantile(values, LEVELS, method="inverted_cdf")])


def sampled(values: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Statistics of samples of n from ascending values: means are normal, ranks of order statistics have a beta law."""
    found = [rng.normal(values.mean(), values.std() / math.sqrt(n), SAMPLES)]
    for level in LEVELS:
        rank = math.ceil(level * n - 1e-9)
        found.append(values[np.floor(len(values) * rng.beta(rank, n - rank + 1, SAMPLES)).astype(int)])
    return np.stack(found, axis=1)


def alone(values: np.ndarray, number: Number, rho: float, rng: np.random.Generator) -> np.ndarray:
    """Each statistic released by itself under rho-zCDP."""
    sd = max(abs(number.lower), abs(number.upper)) / math.sqrt(2 * rho) / len(values)
    epsilon = math.sqrt(8 * rho)  # an exponential mechanism of epsilon is epsilon^2/8-zCDP
    return np.array([values.mean() + sd * rng.normal(), *(_quantile(values, q, number, epsilon, rng) for q in LEVELS)])


def _quantile(values: np.ndarray, q: float, number: Number, epsilon: float, rng: np.random.Generator) -> float:
    """By the exponential mechanism; the score of a number is minus how many records it is away from the quantile."""
    values, n = np.sort(values), len(values)
    if number.n_values is not None:
        candidates = np.arange(number.lower, number.upper + 1, number.resolution)
        below, upto = (np.searchsorted(values, candidates, side) for side in ("left", "right"))
        away = np.maximum(0, np.maximum(below - q * n, q * n - upto))
        return float(candidates[np.argmax(rng.gumbel(size=len(away)) - epsilon * away / 2)])
    ends = np.concatenate([[number.lower], values, [number.upper]])
    away, width = np.abs(np.arange(n + 1) - q * n), np.diff(ends)
    with np.errstate(divide="ignore"):
        k = int(np.argmax(rng.gumbel(size=n + 1) - epsilon * away / 2 + np.log(width)))
    return float(ends[k] + rng.random() * width[k])


def measured(
    n: int, seed: int, known: dict[str, np.ndarray], others: dict[tuple[str, int], np.ndarray], rho: float
) -> list[dict]:
    """One fit: a row of each number and statistic. `others` are statistics of other samples."""
    rng = np.random.default_rng([seed, n])
    records = population(n, rng)
    start = time.process_time()
    network = learn(records, BUDGET, Schema(SCHEMA), random_state=seed)
    seconds = time.process_time() - start
    posterior, rows = network.posterior(DRAWS, random_state=seed), []
    for name, number in SCHEMA.items():
        values = network.model_.within.get(name) or Values(network.model_.numbers[name])
        shares = network.model_.marginal([name]).values
        found = np.array([values.mean(shares), *values.quantiles(shares, LEVELS)])
        own, true = statistics(records[name].to_numpy(float)), known[name]
        single = np.array([alone(records[name].to_numpy(float), number, rho, rng) for _ in range(TIMES)])
        lower, upper = number_interval(values, posterior.draws.query([name]), LEVELS, LEVEL)
        moved = others[name, n] - own
        around = (lower + moved - 1e-9 <= true) & (true <= upper + moved + 1e-9)
        jumps = [number.resolution is not None and what != "mean" for what in WHAT]
        rows += [
            {
                "n": n,
                "seed": seed,
                "number": name,
                "what": what,
                "error": abs(found[k] - true[k]),
                "alone": float(np.abs(single[:, k] - true[k]).mean()),
                "own_error": abs(found[k] - own[k]),
                "own_alone": float(np.abs(single[:, k] - own[k]).mean()),
                "inside": bool(lower[k] - 1e-9 <= true[k] <= upper[k] + 1e-9),
                "averaged": math.nan if jumps[k] else float(around[:, k].mean()),
                "width": float(upper[k] - lower[k]),
                "seconds": seconds,
            }
            for k, what in enumerate(WHAT)
        ]
    return rows


def report(rows: list[dict], known: dict[str, np.ndarray]) -> str:
    """One row for each number, statistic and n, the largest ratio of errors first."""
    frame, lines = pd.DataFrame(rows), []
    for (number, what, n), group in frame.groupby(["number", "what", "n"], sort=False):
        mean = group[["error", "alone", "own_error", "own_alone"]].mean()
        ratios = [
            mean[a] / mean[b] if mean[b] else math.nan for a, b in (("error", "alone"), ("own_error", "own_alone"))
        ]
        told = [f"{known[number][WHAT.index(what)]:,.4g}", *(f"{mean[k]:,.3g}" for k in ("error", "alone"))]
        cells = [number, what, f"{n:,}", *told, *(f"{r:.2f}" for r in ratios)]
        said = f"{group['averaged'].mean():.3f} ({group['averaged'].sem():.3f})".replace("nan (nan)", "")
        lines.append((ratios, [*cells, f"{group['inside'].mean():.2f}", said, f"{group['width'].median():,.3g}"]))
    lines.sort(key=lambda line: -np.nan_to_num(line[0][0]))
    header = ["number", "statistic", "n", "population", "error", "alone", "ratio", "ratio to the records' own",
              "covered", "averaged (standard error)", "width"]  # fmt: skip
    told = [ratios for ratios, _ in lines if np.isfinite(ratios[0])]
    above = [sum(ratio[k] > 1.5 for ratio in told) for k in (0, 1)]
    covered = ", ".join(f"{c:.2f} at n = {n:,}" for n, c in frame.groupby("n")["inside"].mean().items())
    means = ", ".join(f"{math.exp(np.log(np.maximum([r[k] for r in told], 0.05)).mean()):.2f}" for k in (0, 1))
    fits = ", ".join(f"{k} of n = {n:,}" for n, k in frame.groupby("n")["seed"].nunique().items())
    said = (
        f"Fits: {fits}, of {frame['seconds'].mean():.1f} processor seconds on average. Geometric mean of both "
        f"ratios: {means}. Above 1.5: {above[0]} and {above[1]} of {len(told)} rows with an error alone. "
        f"Covered: {covered}. Widths are medians."
    )
    return f"{markdown_table(header, [cells for _, cells in lines])}\n\n{said}"


def pairs(table: str, seed: int) -> list[dict]:
    """Total variation of pairs with second tables of numbers, and without."""
    frame, numbers, states = read(table)
    rows = []
    for share in (0.0, None):
        options = {} if share is None else {"number_share": share}
        start = time.process_time()
        network = learn(frame, BUDGET, Schema({**numbers, **states}), random_state=seed, **options)
        seconds = time.process_time() - start
        drawn = network.sample(len(frame), random_state=seed)
        coded = [_cells(one, frame, numbers) for one in (frame, drawn)]
        found = [_distance(*coded, pair) for pair in itertools.combinations(frame, 2)]
        rows.append({"table": table, "seed": seed, "share": share, "pairs": float(np.mean(found)), "seconds": seconds})
    return rows


def _cells(frame: pd.DataFrame, records: pd.DataFrame, numbers: dict[str, Number]) -> dict[str, np.ndarray]:
    cut = {name: np.unique(np.quantile(records[name], np.arange(1, 8) / 8, method="inverted_cdf")) for name in numbers}
    return {
        name: np.searchsorted(cut[name], frame[name].to_numpy(float))
        if name in numbers
        else pd.Categorical(frame[name], categories=sorted(records[name].unique())).codes
        for name in records
    }


def _distance(one: dict[str, np.ndarray], other: dict[str, np.ndarray], pair: tuple[str, str]) -> float:
    a, b = pair
    size = 1 + max(int(one[b].max()), int(other[b].max()))
    codes = [size * some[a].astype(int) + some[b] for some in (one, other)]
    k = 1 + max(int(code.max()) for code in codes)
    shares = [np.bincount(code, minlength=k) / len(code) for code in codes]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def main() -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", nargs="*", type=int, default=[5_000, 50_000])
    parser.add_argument("--seeds", type=int, default=16, help="how many")
    parser.add_argument(
        "--first",
        type=int,
        default=500,
        help="the first of them; those below 30 were tuned on, and some up to 500 looked at",
    )
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=[])
    parser.add_argument("--table-seeds", type=int, default=1)
    parser.add_argument("--lines", type=Path, default=Path("build/number_grids.jsonl"), help="goes on")
    parser.add_argument("--out", type=Path, help="folder of number-grids.md")
    given = parser.parse_args()
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    many = {
        name: np.sort(drawn.to_numpy(float)) for name, drawn in population(4_000_000, np.random.default_rng(1)).items()
    }
    known = {name: statistics(drawn) for name, drawn in many.items()}
    rng = np.random.default_rng(2)
    others = {(name, n): sampled(drawn, n, rng) for n in given.records for name, drawn in many.items()}
    rho = ALONE * accounting.approx_to_zcdp(BUDGET.epsilon, BUDGET.delta)
    given.lines.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.lines.read_text().splitlines()] if given.lines.exists() else []
    done = {(row.get("n") or row["table"], row["seed"]) for row in rows}
    work = [(n, seed) for seed in range(given.first, given.first + given.seeds) for n in given.records]
    work += [(name, seed) for seed in range(given.table_seeds) for name in given.tables]
    for what, seed in work:
        if (what, seed) not in done:
            rows += (found := pairs(what, seed) if isinstance(what, str) else measured(what, seed, known, others, rho))
            with given.lines.open("a") as stream:
                stream.writelines(json.dumps(row) + "\n" for row in found)
    parts = [report([row for row in rows if "n" in row], known)]
    if some := [row for row in rows if "table" in row]:
        parts.append(report_pairs(some))
    text = "\n\n".join(parts)
    if given.out:
        command = " ".join(["python -m benchmarks.number_grids", *sys.argv[1:]])
        head = f"# Numbers without cuts: means, quantiles and intervals\n\n`{command}`\n\n{describe_machine()}"
        (given.out / "number-grids.md").write_text(f"{head}\n\n{text}\n")
    print(text)


def report_pairs(rows: list[dict]) -> str:
    """A row for each table."""
    frame, lines = pd.DataFrame(rows), []
    for table, group in frame.groupby("table"):
        without, using = (group[group["share"].isna() == with_them] for with_them in (False, True))
        told = [f"{some['pairs'].mean():.4f}" for some in (without, using)]
        seconds = [f"{some['seconds'].mean():.1f}" for some in (without, using)]
        lines.append([table, str(group["seed"].nunique()), *told, *seconds])
    header = ["table", "seeds", "pairs, without second tables", "with", "seconds, without", "with"]
    return f"## Real tables: total variation of pairs\n\n{markdown_table(header, lines)}"


if __name__ == "__main__":
    main()

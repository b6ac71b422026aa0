"""How often intervals of a number's mean and quantiles hold, as reports print them.

::

    python -m benchmarks.number_intervals --out benchmarks/results

Tables of five numbers, none of them divided by its user, from populations whose mean and quantiles are known: costs
(lognormal), waiting times (exponential), visits (integers, most of them 0), ages and a score. `learn` gets epsilon 1,
delta 1e-9, and intervals are of 19 draws, level .9. "Before" is what reports of 0.2.0 printed from the same draws: the
shape within states the same in all of them, values uniform in cells.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Number, Schema, learn
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.query_intervals import number_interval
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

LEVELS = (0.05, 0.5, 0.95)
WHAT = ("mean", "5 %", "median", "95 %")
LEVEL, DRAWS = 0.9, 19
STOOD = (
    "Widths are medians. *Before* is the shape within states held fixed, as reports of 0.2.0 did, from the same draws."
)
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


def truth(frame: pd.DataFrame) -> dict[str, list[float]]:
    """Means and quantiles of a very large sample, as good as the population's."""
    return {
        name: [float(frame[name].mean()), *np.quantile(frame[name], LEVELS, method="inverted_cdf").tolist()]
        for name in frame
    }


def measured(n: int, seed: int, known: dict[str, list[float]]) -> list[dict]:
    """One fit: of each number and statistic whether either interval holds, and how wide they are."""
    rng = np.random.default_rng([seed, n])
    network = learn(population(n, rng), Budget(epsilon=1.0, delta=1e-9), Schema(SCHEMA), random_state=seed)
    posterior, rows = network.posterior(DRAWS, random_state=seed), []
    for name, true in known.items():
        values = network.model_.within.get(name) or Values(network.model_.numbers[name])
        draws = posterior.draws.query([name])
        drawn = np.array([[values.mean(one), *values.quantiles(one, LEVELS)] for one in draws])
        before = posterior.draws.interval_of(drawn, LEVEL)
        both = {"before": (before.lower, before.upper), "now": number_interval(values, draws, LEVELS, LEVEL)}
        for how, (lower, upper) in both.items():
            for k, what in enumerate(WHAT):
                inside = lower[k] - 1e-9 <= true[k] <= upper[k] + 1e-9
                rows.append({"n": n, "seed": seed, "number": name, "what": what, "how": how, "inside": bool(inside),
                             "width": float(upper[k] - lower[k])})  # fmt: skip
    return rows


def report(rows: list[dict], known: dict[str, list[float]]) -> str:
    """Coverage and median width before and now, one row for each number, statistic and n."""
    frame = pd.DataFrame(rows)
    lines = []
    for (number, what, n), group in frame.groupby(["number", "what", "n"], sort=False):
        cells = [number, what, f"{n:,}", f"{known[number][WHAT.index(what)]:,.4g}"]
        for how in ("before", "now"):
            some = group[group["how"] == how]
            cells += [f"{some['inside'].mean():.2f}", f"{some['width'].median():,.3g}"]
        lines.append(cells)
    now = frame[frame["how"] == "now"].groupby(["number", "what", "n"])["inside"].mean()
    header = ["number", "statistic", "n", "population", "covered, before", "width", "covered, now", "width, now"]
    worst = ", ".join(map(str, now.idxmin()))
    least = f"Least covered now: {now.min():.2f} ({worst}). Fits of each n: {frame['seed'].nunique()}. {STOOD}"
    return f"{markdown_table(header, lines)}\n\n{least}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", nargs="+", type=int, default=[5_000, 50_000])
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them: those below 12 were looked at before")
    parser.add_argument("--lines", type=Path, default=Path("build/number_intervals.jsonl"), help="goes on")
    parser.add_argument("--out", type=Path, help="folder of number-intervals.md")
    given = parser.parse_args()
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    known = truth(population(4_000_000, np.random.default_rng(1)))
    given.lines.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in given.lines.read_text().splitlines()] if given.lines.exists() else []
    done = {(row["n"], row["seed"]) for row in rows}
    for seed in range(given.first, given.first + given.seeds):
        for n in given.records:
            if (n, seed) not in done:
                rows += (found := measured(n, seed, known))
                with given.lines.open("a") as stream:
                    stream.writelines(json.dumps(row) + "\n" for row in found)
    text = report(rows, known)
    if given.out:
        command = " ".join(["python -m benchmarks.number_intervals", *sys.argv[1:]])
        head = f"# Intervals of numbers\n\n`{command}`\n\n{describe_machine()}"
        (given.out / "number-intervals.md").write_text(f"{head}\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()

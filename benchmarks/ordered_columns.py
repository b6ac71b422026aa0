"""Columns that order each other: what synthetic records keep of the difference, in two forms and without a rule.

::

    python -m benchmarks.ordered_columns --out benchmarks/results

Made-up tables whose second column is never below the first: stays (geometric nights), appointments (35 % on the day
they are booked on, the others weeks later), two costs (a tenth equal, the others by a factor that has a long tail).
Beside them are three categories: one that depends on nothing, one on the first column, one on the difference. `learn`
gets delta 1e-9, and as many records are drawn as there are.

*none*: no rule, as before there were any. *grids*: the rule, obeyed by cells of the two columns that cannot be
together, a table of the two in any case, and draws within shared cells that obey. *difference*: the difference is a
number that is learned beside both, which is what `learn` does.

``broken`` is the share of records that break the rule. ``mean`` and ``deviation`` are the ratios of the difference's to
the records', the worst seed in ``worst``; ``equal`` is the difference of the shares of records whose columns are equal.
Errors are total variations of pairs of columns in cells by the records' tenths: of ``ordered`` with the categories, of
the categories with each other (``others``), of the two (``both``), and of the difference with the categories (``gap``).
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd

from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Date, Number, Schema, learn

DAYS, FIRST = 730, np.datetime64("2023-01-01")
KINDS = {"stays": ("checkin", "checkout"), "appointments": ("booked", "appointment"), "costs": ("low", "high")}
FORMS = ("difference", "grids", "none")
OTHERS = ("group", "season", "grade")


def records(kind: str, n: int, seed: int) -> pd.DataFrame:
    """A table of n records whose second column is at least the first."""
    rng = np.random.default_rng([seed, 59])
    if kind == "stays":
        first = rng.integers(0, 600, n)
        second = np.minimum(first + rng.geometric(1 / 4, n) - 1, DAYS - 1)
    elif kind == "appointments":
        first = (600 * rng.beta(2, 3, n)).astype(int)
        later = 1 + rng.poisson(rng.gamma(1, 20, n))
        second = np.minimum(first + np.where(rng.random(n) < 0.35, 0, later), DAYS - 1)
    else:
        first = np.exp(rng.normal(4, 0.8, n))
        second = first * (1 + np.where(rng.random(n) < 0.1, 0, rng.gamma(1, 0.5, n)))
        first, second = (np.clip(cost, 0, 2000).round(2) for cost in (first, second))
    by_first = np.searchsorted(np.quantile(first, [0.3, 0.6]), first)
    by_gap = np.searchsorted(np.quantile(second - first, [0.5, 0.9]), second - first)
    season = np.where(rng.random(n) < 0.6, by_first, rng.integers(0, 3, n))
    grade = np.where(rng.random(n) < 0.5, by_gap, rng.integers(0, 3, n))
    columns = [c if kind == "costs" else FIRST + c for c in (first, second)]
    ordered = dict(zip(KINDS[kind], columns, strict=True))
    return pd.DataFrame({**ordered, "group": rng.choice(3, n, p=[0.5, 0.3, 0.2]), "season": season, "grade": grade})


def schema_of(kind: str, form: str) -> Schema:
    """The public description, with the rule unless the form is "none"."""
    declared = Number(0, 2000, resolution=0.01) if kind == "costs" else Date(str(FIRST), str(FIRST + DAYS - 1))
    first, second = KINDS[kind]
    rules = [] if form == "none" else [f"{first} <= {second}"]
    return Schema({first: declared, second: declared} | {name: range(3) for name in OTHERS}, impossible=rules)


def synthetic(kind: str, n: int, epsilon: float, form: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Records, and as many drawn from what is learned of them."""
    real, schema = records(kind, n, seed), schema_of(kind, form)
    required = [KINDS[kind]] if form == "grids" else None
    alone = mock.patch.object(Schema, "with_differences", lambda schema: schema)
    with alone if form == "grids" else nullcontext():
        model = learn(real, Budget(epsilon=epsilon, delta=1e-9), schema, random_state=seed, required_edges=required)
        return real, model.model_.sample(n, seed).dropna()


def measures(real: pd.DataFrame, drawn: pd.DataFrame, pair: tuple[str, str]) -> dict[str, float]:
    """What the drawn records keep; see the module."""
    first, second = pair
    real, drawn = ({name: _numbers(frame[name]) for name in frame} for frame in (real, drawn))
    for table in (real, drawn):
        table["gap"] = np.round(table[second] - table[first], 6)
    gaps = real["gap"], drawn["gap"]
    places = {}
    for name in real:
        cuts = np.unique(np.quantile(real[name], np.arange(0.1, 1, 0.1))) if name not in OTHERS else [0.5, 1.5]
        places[name] = [np.searchsorted(cuts, table[name]) for table in (real, drawn)]

    def error(one: str, other: str) -> float:
        shares = [
            np.bincount(10 * a + b, minlength=100) / len(a) for a, b in zip(places[one], places[other], strict=True)
        ]
        return 0.5 * float(np.abs(shares[0] - shares[1]).sum())

    return {
        "broken": float((gaps[1] < 0).mean()),
        "mean": float(gaps[1].mean() / gaps[0].mean()),
        "deviation": float(gaps[1].std() / gaps[0].std()),
        "equal": float((gaps[1] == 0).mean() - (gaps[0] == 0).mean()),
        "ordered": float(np.mean([error(one, other) for one in pair for other in OTHERS])),
        "others": float(np.mean([error(*two) for two in itertools.combinations(OTHERS, 2)])),
        "both": error(*pair),
        "gap": float(np.mean([error("gap", other) for other in OTHERS])),
    }


def _numbers(column: pd.Series) -> np.ndarray:
    days = column.dtype.kind == "M"
    return column.to_numpy().astype("datetime64[D]").astype(float) if days else column.to_numpy(dtype=float)


def _off(ratio: float) -> float:
    return max(ratio, 1 / ratio) if ratio > 0 else np.inf


def row(kind: str, n: int, epsilon: float, form: str, seeds: range) -> dict[str, object]:
    """A row of the page: means over seeds, and the worst of ratios."""
    start = time.process_time()
    runs = pd.DataFrame([measures(*synthetic(kind, n, epsilon, form, seed), KINDS[kind]) for seed in seeds])
    seconds = (time.process_time() - start) / len(seeds)
    worst = {name: max(runs[name], key=_off) for name in ("mean", "deviation")}
    means = runs.mean()
    return {
        "table": kind,
        "n": f"{n:,}",
        "epsilon": f"{epsilon:g}",
        "form": form,
        "broken": f"{means.broken:.3f}",
        "mean": f"{means['mean']:.2f}",
        "worst mean": f"{worst['mean']:.2f}",
        "deviation": f"{means.deviation:.2f}",
        "worst deviation": f"{worst['deviation']:.2f}",
        "equal": f"{means.equal:+.3f}",
        **{name: f"{means[name]:.4f}" for name in ("ordered", "others", "both", "gap")},
        "s": f"{seconds:.1f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[4_000, 100_000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--tables", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for ordered-columns.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    few = max(args.seeds // 4, 2)  # of many records: their fits take longer, and differ less
    settings = itertools.product(args.tables, args.records, args.epsilon, args.forms)
    rows = []
    for kind, n, epsilon, form in settings:
        seeds = range(args.first, args.first + (args.seeds if n < 50_000 else few))
        rows.append(row(kind, n, epsilon, form, seeds))
        print(*rows[-1].values(), flush=True)
    rows.sort(key=lambda one: -_off(float(one["worst deviation"])))
    table = markdown_table(list(rows[0]), [list(one.values()) for one in rows])
    page = f"# Columns that order each other\n\n{describe_machine()}\n\n{table}\n"
    if args.out is not None:
        (args.out / "ordered-columns.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

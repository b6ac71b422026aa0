"""How often the test of `publish_if` says what it should, on three real tables.

::

    python -m benchmarks.publish_if --out benchmarks/results

A model is learned of each table. Its errors by four criteria are computed without noise (the records are public), and
bounds are placed at the stated margin above or below them. Then the test is run again and again. "no, all within":
every error is below its bound by the margin, so that "no" is wrong; stated: at most .05. "yes, one outside": the
error of this criterion is above its bound by the margin, the others below theirs by three, so that "yes" is wrong;
stated: at most .05 over 8. Bounds that shall be met are twice the margin at least. Whole: `publish_if` from the
records on, with its seconds.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare_tables import TABLES
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, PrivateTable, Schema, publish_if
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.tables.publishing import noisy_test
from pgmpy_dp.tables.publishing.criteria import Criteria

BUDGET = Budget(epsilon=1.0, delta=1e-9)
SHARE, CHANCE = 0.1, 0.05
# Of each table: the number, the target, and what is given.
ASKED = {
    "adult": ("age", "income", ["education", "marital-status"]),
    "mushrooms": ("ring-number", "class", ["odor", "habitat"]),
    "parkinsons": ("age", "sex", ["motor_UPDRS", "age"]),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.publish_if", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", default=list(ASKED), choices=list(ASKED))
    parser.add_argument("--tests", type=int, default=1000, help="of each kind (default: %(default)s)")
    parser.add_argument("--whole", type=int, default=5, help="runs of publish_if (default: %(default)s)")
    options = parser.parse_args(arguments)
    config.set_show_progress(False)
    rows, whole = [], []
    for name in options.tables:
        frame, schema = read(name)
        found, bounds = rates(name, frame, schema, options.tests)
        rows += found
        whole.append([name, f"{len(frame):,}", *whole_runs(frame, schema, bounds, options.whole)])
    command = shlex.join(["python", "-m", "benchmarks.publish_if", *(arguments or sys.argv[1:])])
    header = ("table", "criterion", "error", "margin", "no, all within", "yes, one outside")
    text = [
        *("# How often the test of publish_if says what it should", "", f"`{command}`", "", describe_machine(), ""),
        f"Budget {BUDGET}, {100 * SHARE:g} % of it for the test of four criteria; {options.tests} tests of each kind. "
        f"Stated: at most {CHANCE:g}, and {CHANCE / 8:g}. –: the bound would be below 0.",
        *("", markdown_table(header, rows), ""),
        f"Whole: bounds three margins above the errors of the first model; {options.whole} runs from the records on.",
        *("", markdown_table(("table", "records", "published", "seconds each"), whole), ""),
    ]
    (Path(options.out) / "publish-if.md").write_text("\n".join(text))


def read(name: str) -> tuple[pd.DataFrame, Schema]:
    """A table of codes, with one of its variables a number."""
    table, number = TABLES[name].read(), ASKED[name][0]
    states: dict[str, Any] = {v: list(range(k)) for v, k in zip(table.names, table.cardinalities, strict=True)}
    states[number] = Number(0, len(states[number]) - 1, bins=len(states[number]), resolution=1, missing="drop")
    return pd.DataFrame(table.codes, columns=table.names), Schema(states)


def declared(name: str, bounds: Sequence[float]) -> list[dict[str, Any]]:
    """Four criteria, one of each kind."""
    number, target, given = ASKED[name]
    return [
        {"test": "distance", "at_most": bounds[0]},
        {"test": "cells", "tables": [[target, one] for one in given], "share": 0.9, "within": bounds[1]},
        {"test": "mean", "of": number, "at_most": bounds[2]},
        {"test": "log_loss", "target": target, "given": given, "clip": 3.0, "at_most": bounds[3]},
    ]


def rates(name: str, frame: pd.DataFrame, schema: Schema, tests: int) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Rows of one table, and criteria that are met by three margins."""
    n, whole = len(frame), cost_of(BUDGET)
    fit, test = Budget(rho=(1 - SHARE) * whole.rho), Budget(rho=SHARE * whole.rho)
    model = PrivateNetwork(rho=fit.rho, state_names=schema).fit(frame).model_
    table = PrivateTable(frame, schema, ledger=Budget(rho=1e12))
    start = Criteria.of(declared(name, [0.5, 0.5, 0.5, 1.5]), schema)
    exact = noisy_test.run(table, model, start, Budget(rho=1e9))["found"].to_numpy()

    def placed(away: Sequence[float]) -> list[dict[str, Any]] | None:
        """Criteria whose bounds are so many margins above the errors; None where one would be below 0."""
        bounds = exact.copy()
        for _ in range(30):  # a margin depends on its bound
            at = Criteria.of(declared(name, np.maximum(bounds, 1e-9)), schema)
            margins = np.array(noisy_test.margins(at, n, test, CHANCE))
            bounds = exact + np.array(away) * margins
            bounds = np.where(np.array(away) > 0, np.maximum(bounds, 2 * margins), bounds)
        return None if bounds.min() <= 0 else declared(name, bounds)

    def share(criteria: list[dict[str, Any]] | None, model: MarkovNetwork) -> float:
        if criteria is None:
            return float("nan")
        asked = Criteria.of(criteria, schema)
        return float(np.mean([noisy_test.run(table, model, asked, test)["met"].all() for _ in range(tests)]))

    within = 1.0 - share(placed([1.0] * 4), model)
    margins = noisy_test.margins(Criteria.of(declared(name, np.maximum(exact, 1e-6)), schema), n, test, CHANCE)
    rows = []
    for k, one in enumerate(("distance", "cells", "mean", "log_loss")):
        rate = share(placed([3.0 if j != k else -1.0 for j in range(4)]), model)
        told = "–" if np.isnan(rate) else f"{rate:.4f}"
        rows.append([name, one, f"{exact[k]:.4f}", f"{margins[k]:.4f}", f"{within:.4f}" if k == 0 else "", told])
    good = placed([3.0] * 4)
    assert good is not None
    return rows, good


def whole_runs(frame: pd.DataFrame, schema: Schema, criteria: list[dict[str, Any]], runs: int) -> list[str]:
    """How many runs published, and how long one takes."""
    started, published = time.perf_counter(), 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ledger = Ledger.open(Path(folder, "ledger.json"), BUDGET)
            published += bool(publish_if(frame, BUDGET, criteria, schema, ledger=ledger, test_share=SHARE))
    return [f"{published} of {runs}", f"{(time.perf_counter() - started) / max(runs, 1):.0f}"]


if __name__ == "__main__":
    main()

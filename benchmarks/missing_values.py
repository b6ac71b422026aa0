"""Values missing at random: what the records that have them say, and the model of complete records.

::

    python -m benchmarks.missing_values --out benchmarks/results

Values of one or two variables are taken away from real tables without missing ones, with the probability .05, or .5 to
.6 where another variable, the driver, is in the upper half of its states. Errors are total variations to the whole
records, of the variable's own table ("own") and on average over its tables with each other variable ("pairs"): of the
records that have a value, without noise ("left out"; nothing else is left where records without are dropped); of the
model in which missing is a state, given that it is not ("state"); and of the model that was completed. "bias" is the
distance of the mean over seeds, in which noise averages out; "whole" is the bias of models of whole records, which is
that of `learn` itself.
"""

from __future__ import annotations

import argparse
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

from benchmarks.compare_tables import TABLES
from benchmarks.report import markdown_table
from pgmpy_dp import MarkovNetwork
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

DELTA = 1e-9
MISSING = {
    "adult": {"income": "age", "education": "occupation"},
    "mushrooms": {"odor": "spore-print-color"},
    "parkinsons": {"motor_UPDRS": "age"},
}
_SELDOM, _OFTEN = 0.05, {"adult": 0.6, "mushrooms": 0.5, "parkinsons": 0.5}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.missing_values", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--tables", nargs="+", default=list(MISSING), choices=list(MISSING))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args(arguments)
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    rows = [row for name in options.tables for epsilon in options.epsilons for row in run(name, epsilon, options.seeds)]
    command = shlex.join(["python", "-m", "benchmarks.missing_values", *(arguments or sys.argv[1:])])
    header = (
        "table",
        "epsilon",
        "variable",
        "driver",
        "missing",
        "error of",
        "left out",
        "state",
        "completed",
        "bias",
        "whole",
    )
    text = ["# Values missing at random", "", f"`{command}`", "", describe_machine(), "", f"Seeds {options.seeds}.", ""]
    (Path(options.out) / "missing-values.md").write_text("\n".join([*text, markdown_table(header, rows), ""]))


def run(name: str, epsilon: float, seeds: Sequence[int]) -> list[list[str]]:
    """Errors of one table at one budget, for each variable that is missing."""
    table = TABLES[name].read()
    drivers = MISSING[name]
    codes = pd.DataFrame(table.codes, columns=table.names)
    sizes = dict(zip(table.names, table.cardinalities, strict=True))
    rng = np.random.default_rng([20261124, len(codes)])
    holed = codes.astype(object)
    for variable, driver in drivers.items():
        often = codes[driver] >= sizes[driver] / 2
        gone = rng.random(len(codes)) < np.where(often, _OFTEN[name], _SELDOM)
        holed.loc[gone, variable] = None
    states = {column: [*range(k), *([None] if column in drivers else [])] for column, k in sizes.items()}
    models = []
    for seed in seeds:
        fitted = PrivateNetwork(
            epsilon,
            DELTA,
            state_names=states,
            random_state=seed,
            missing_at_random={v: [d] for v, d in drivers.items()},
        ).fit(holed)
        complete = {column: list(range(k)) for column, k in sizes.items()}
        whole = PrivateNetwork(epsilon, DELTA, state_names=complete, random_state=seed).fit(codes)
        models.append((fitted.observed_model_, fitted.model_, whole.model_))
    rows = []
    for variable, driver in drivers.items():
        kept = holed[variable].notna().to_numpy()
        for what in ("own", "pairs"):
            others = [(), *((column,) for column in table.names if column != variable)]
            scopes = [(variable, *other) for other in (others[:1] if what == "own" else others[1:])]
            truth = [_shares(codes, scope, sizes) for scope in scopes]
            left_out = _distance(truth, [_shares(codes[kept], scope, sizes) for scope in scopes])
            state, complete, whole = (
                [[_of_model(model, scope, sizes) for scope in scopes] for model in kind]
                for kind in zip(*models, strict=True)
            )
            errors = [left_out, *(np.mean([_distance(truth, found) for found in each]) for each in (state, complete))]
            biases = [
                _distance(truth, [np.mean(tables, axis=0) for tables in zip(*each, strict=True)])
                for each in (complete, whole)
            ]
            numbers = [f"{error:.4f}" for error in (*errors, *biases)]
            share = f"{1 - kept.mean():.2f}"
            rows.append([name, f"{epsilon:g}", variable, driver, share, what, *numbers])
    return rows


def _shares(codes: pd.DataFrame, scope: Sequence[str], sizes: dict[str, int]) -> np.ndarray:
    shape = tuple(sizes[column] for column in scope)
    places = np.ravel_multi_index(tuple(codes[column].to_numpy() for column in scope), shape)
    return np.bincount(places, minlength=int(np.prod(shape))).reshape(shape) / len(codes)


def _of_model(model: MarkovNetwork, scope: Sequence[str], sizes: dict[str, int]) -> np.ndarray:
    """The table of a model, given that nothing is missing where it has a state for that."""
    table = model.query(list(scope)).values[tuple(slice(sizes[column]) for column in scope)]
    return table / table.sum()


def _distance(truth: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(truth, found, strict=True)]))


if __name__ == "__main__":
    main()

"""Excess risk of private logistic regressions in an l1 ball, beside the bound of Zhang et al. (2020), Theorem 1.3.

::

    python -m benchmarks.logistic_regression                        # a quarter of an hour of one core
    python -m benchmarks.logistic_regression --out benchmarks/results

Made-up records follow a known law: 20 numbers, uniform between public bounds, of which three have weights. The census
is the Adult table in ``data/``: an income above 50,000 from five numbers and sex, by bounds that its questionnaire has.
The excess is over the least mean loss in the ball, of the records as they are counted. Noise comes from seeds.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.report import markdown_table
from pgmpy_dp import Number, Schema
from pgmpy_dp.estimators import PrivateLogisticRegression
from pgmpy_dp.fields.private_logistic_regression import logistic_layout
from pgmpy_dp.models.prediction import state_codes
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.operators.regressions import FEATURE_UNIT
from pgmpy_dp.theory.sample_complexity import sparse_logistic_regression

__all__ = ["SETTINGS", "constrained_minimum", "measure"]

RADIUS = {"made up": 4.0, "census": 10.0}
SETTINGS: list[tuple[str, int, float, bool]] = [
    # data, records, rho, steps as published
    *(("made up", n, rho, published) for n in (1_000, 10_000) for rho in (0.1, 1.0) for published in (False, True)),
    *(("made up", 100_000, rho, False) for rho in (0.1, 1.0)),
    *(("census", 48_842, rho, False) for rho in (0.01, 0.1)),
]
"""As published, more records need thousands of steps."""
_CENSUS = {
    "age": Number(17, 90, resolution=1, missing="drop"),
    "education-num": Number(1, 16, resolution=1, missing="drop"),
    "hours-per-week": Number(1, 99, resolution=1, missing="drop"),
    "capital-gain": Number(0, 99_999, missing="drop"),
    "capital-loss": Number(0, 5_000, missing="drop"),
    "sex": ["Female", "Male"],
    "income": ["<=50K", ">50K"],
}


def records(data: str, n: int, seed: int) -> tuple[pd.DataFrame, Schema, str]:
    """Records, their public description and the target."""
    if data == "census":
        path = Path(__file__).resolve().parent.parent / "data" / "adult_raw.csv.gz"
        frame = pd.read_csv(path, skipinitialspace=True)
        return frame.assign(income=frame["income"].str.rstrip(".")), Schema(_CENSUS), "income"  # half have a full stop
    rng = np.random.default_rng([seed, n])
    x = rng.uniform(-1, 1, (n, 20))
    weights = np.zeros(20)
    weights[:3] = 2.0, -1.0, 0.5
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(20)]).assign(y=rng.random(n) < expit(x @ weights))
    return frame, Schema({**{f"x{j}": Number(-1, 1, missing="drop") for j in range(20)}, "y": [False, True]}), "y"


def design(frame: pd.DataFrame, schema: Schema, target: str) -> np.ndarray:
    """Features of public records, as they are counted, with the constant, times the sign of the label."""
    fine = schema.fine()
    codes = state_codes(fine, frame, list(fine.variables), "frame")
    layout, _ = logistic_layout(schema, target)
    columns = [np.array(values)[codes[:, j]] for j, *values in layout.features[:-1]]
    x = np.column_stack([*columns, np.full(len(codes), FEATURE_UNIT)]) / FEATURE_UNIT
    return x * np.where(codes[:, list(fine.variables).index(target)] == 1, 1.0, -1.0)[:, np.newaxis]


def constrained_minimum(signed: np.ndarray, radius: float, steps: int = 500) -> float:
    """Least mean logistic loss over the l1 ball, by accelerated projected gradients."""
    rate = 4.0 * len(signed) / np.linalg.norm(signed, 2) ** 2
    w = ahead = np.zeros(signed.shape[1])
    for t in range(1, steps + 1):
        gradient = -signed.T @ expit(-signed @ ahead) / len(signed)
        before, w = w, _into_ball(ahead - rate * gradient, radius)
        ahead = w + (t - 1) / (t + 2) * (w - before)
    return float(np.logaddexp(0.0, -signed @ w).mean())


def _into_ball(w: np.ndarray, radius: float) -> np.ndarray:
    size = np.abs(w)
    if size.sum() <= radius:
        return w
    falling = np.sort(size)[::-1]
    cuts = (np.cumsum(falling) - radius) / np.arange(1, len(w) + 1)
    return np.sign(w) * np.maximum(size - cuts[np.flatnonzero(falling > cuts)[-1]], 0.0)


def measure(data: str, n: int, rho: float, published: bool, seeds: int) -> dict[str, Any]:
    """Mean and largest excess risk, steps, the bound with constant 1, and the parts that are predicted."""
    excess, right = [], []
    for seed in range(seeds):
        frame, schema, target = records(data, n, seed)
        signed, radius = design(frame, schema, target), RADIUS[data]
        options: dict[str, Any] = {"target": target, "radius": radius, "rho": rho, "published": published}
        fitted = PrivateLogisticRegression(**options, state_names=schema, n_records=len(frame), random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            fitted.fit(frame)
        w = np.append(fitted.coef_, fitted.intercept_)
        excess.append(np.logaddexp(0.0, -signed @ w).mean() - constrained_minimum(signed, radius))
        right.append(np.mean(signed @ w > 0))
    bound = sparse_logistic_regression(len(frame), signed.shape[1], radius, rho).value
    means = {"excess": np.mean(excess), "largest": np.max(excess), "right": np.mean(right)}
    return {**means, "steps": fitted.n_iter_, "bound": bound}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    name = "python -m benchmarks.logistic_regression"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="draws of each setting (default: %(default)s)")
    options = parser.parse_args(arguments)
    path = Path(options.out) / "logistic-regression.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.logistic_regression", *(arguments or sys.argv[1:])])
    head = f"# Private logistic regression\n\n`{command}`, {describe_machine()}, one thread.\n\n"
    made_up, census = RADIUS["made up"], RADIUS["census"]
    head += (
        f"Excess of the mean logistic loss over its minimum in the l1 ball, mean (and largest) of {options.seeds} "
        "draws, add_remove, a public number of records. The radius of the ball is "
        f"{made_up:g} for made-up records of 20 numbers, {census:g} for Adult's five numbers and sex. The bound is "
        "Theorem 1.3 of Zhang et al. (2020) with constant 1 and beta = 1/3: an order, no promise.\n\n"
    )
    rows = []
    for data, n, rho, published in SETTINGS:
        found = measure(data, n, rho, published, options.seeds)
        of = f"{found['excess']:.4f} ({found['largest']:.4f})"
        steps = f"{found['steps']:,}{', as published' if published else ''}"
        rows.append([data, f"{n:,}", f"{rho:g}", steps, of, f"{found['bound']:.3f}", f"{found['right']:.3f}"])
        print(rows[-1], flush=True)
        heads = ["data", "records", "rho", "steps", "excess risk", "bound", "predicted right"]
        path.write_text(head + markdown_table(heads, rows) + "\n")


if __name__ == "__main__":
    main()

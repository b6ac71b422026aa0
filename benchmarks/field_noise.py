"""Random fields from moments under a pure epsilon: Wishart noise on a matrix against Laplace noise on each sum.

::

    python -m benchmarks.field_noise                        # about a minute of one core
    python -m benchmarks.field_noise --out benchmarks/results

Random models of 3-regular graphs, add_remove with a private number of records, epsilon = 1; beside them Gaussian noise
of (1, 1e-6), which a delta allows. Noise comes from seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.field_sampling import sample_field
from benchmarks.random_graphs import named_graph, random_ising, random_pairwise
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivatePairwise
from pgmpy_dp.fields import noisy_interactions, noisy_parities
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.learning.options import settings_of
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

__all__ = ["NOISES", "SETTINGS", "measure"]

NOISES = {
    "laplace": Budget(epsilon=1.0),
    "wishart": Budget(epsilon=1.0),
    "gaussian": Budget(epsilon=1.0, delta=1e-6),
}
SETTINGS: list[tuple[str, int, int]] = [
    # family, variables, records
    *(("ising", p, 10_000) for p in (10, 20, 30, 50)),
    *(("pairwise", 10, n) for n in (10_000, 100_000)),
    *(("binary", 8, n) for n in (10_000, 100_000)),
]
"""Ising: weights of .4 and random signs. Pairwise: three states. Binary: an Ising model, learned with order 3."""


_ESTIMATORS = {"ising": PrivateIsing, "pairwise": PrivatePairwise, "binary": PrivateBinaryMRF}


def measure(family: str, p: int, n: int, seed: int) -> dict[str, float]:
    """Largest error of an interaction, by noise."""
    rng = np.random.default_rng([seed, p, n])
    graph = named_graph("regular", p, rng)
    model: Any = random_ising(graph, rng, weight=0.4)
    if family == "pairwise":
        model = random_pairwise(graph, 3, rng, width=1.5)
    k = 3 if family == "pairwise" else 2
    data = pd.DataFrame(sample_field(model, n, rng), columns=[f"v{i}" for i in range(p)])
    states = {name: list(range(k)) for name in data}
    found = {}
    for noise, budget in NOISES.items():
        table = PrivateTable(data, states, ledger=budget)
        options: dict[str, Any] = {"state_names": states, "memory_limit": 2**22, "epsilon": 1.0, "delta": budget.delta}
        make: Callable[..., Any] = {"ising": PrivateIsing, "pairwise": PrivatePairwise, "binary": PrivateBinaryMRF}[
            family
        ]
        chosen = settings_of(make(random_state=seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            if family == "pairwise":
                release = noisy_interactions.run(table, chosen.but(noise=noise), budget)
            else:
                order = 2 if family == "ising" else 3
                release = noisy_parities.run(table, chosen.but(order=order, method=noise), budget)
        if family == "binary":
            options["order"] = 3
        found[noise] = _error(model, make(model.width, **options).fit_release(release).field_)
    return found


def _error(model: Any, field: Any) -> float:
    if isinstance(field, Ising):
        return float(np.abs(field.weights - model.weights).max())
    if isinstance(field, Pairwise):
        found, true = field.centred().weights, model.centred().weights
        zero = np.zeros((3, 3))
        return float(max(np.abs(found.get(e, zero) - true.get(e, zero)).max() for e in {*found, *true}))
    assert isinstance(field, BinaryField)
    true = {(i, j): float(model.weights[i, j]) for i, j in model.edges()}
    scopes = {scope for scope in {*field.coefficients, *true} if len(scope) > 1}
    return max(abs(field.coefficients.get(scope, 0.0) - true.get(scope, 0.0)) for scope in scopes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.field_noise", description="Noise of random fields.")
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=4, help="models of each setting (default: %(default)s)")
    parser.add_argument("--most", type=int, default=10**6, help="largest number of variables")
    options = parser.parse_args(arguments)
    rows = []
    path = Path(options.out) / "field-noise.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.field_noise", *(arguments or sys.argv[1:])])
    head = f"# Noise of the moments of random fields\n\n`{command}`, {describe_machine()}, one thread.\n\n"
    head += (
        f"Largest error of an interaction, mean (and largest) of {options.seeds} random models on 3-regular graphs, "
    )
    head += "add_remove, a private number of records; epsilon = 1, the last column with delta = 1e-6.\n\n"
    for family, p, n in tqdm([one for one in SETTINGS if one[1] <= options.most]):
        found = [measure(family, p, n, 5000 + seed) for seed in range(options.seeds)]
        errors = {noise: np.array([one[noise] for one in found]) for noise in NOISES}
        rows.append([family, str(p), f"{n:,}", *(f"{e.mean():.3f} ({e.max():.3f})" for e in errors.values())])
        table = markdown_table(["model", "variables", "records", *NOISES], rows)
        path.write_text(head + table + "\n")


if __name__ == "__main__":
    main()

"""PrivateIsing by its three methods, with and without the true graph: errors of the interactions.

::

    python -m benchmarks.random_fields --seeds 2 --out benchmarks/results      # two minutes on one core

Ising models on a random tree, a grid and a random 3-regular graph, of width 1.5 (given to the estimators as 1.8) with
fields up to .2; public number of records, add_remove. Noise comes from seeds: nothing here is private.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateIsing
from pgmpy_dp.models.field_sampling import sample_field
from pgmpy_dp.models.random_graphs import named_graph, random_ising
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

METHODS = ("moments", "gradient", "frank-wolfe")
KINDS = ("tree", "grid", "regular")
SETTINGS = [
    (10, 10_000, 0.1),
    (10, 10_000, 1.0),
    (20, 10_000, 0.1),
    (20, 10_000, 1.0),
    (50, 10_000, 0.1),
    (100, 10_000, 0.1),
]


def measure(p: int, n: int, rho: float, kind: str, seed: int) -> dict[tuple[str, bool], tuple[float, float]]:
    """Largest error of an interaction and seconds, by method and by whether the graph is given."""
    rng = np.random.default_rng([seed, p, KINDS.index(kind)])
    graph = named_graph(kind, p, rng)
    field = random_ising(graph, rng, width=1.5, field=0.2)
    names = [f"v{i}" for i in range(p)]
    data = pd.DataFrame(sample_field(field, n, rng), columns=names)
    found = {}
    for method in METHODS:
        for known in (False, True):
            estimator = PrivateIsing(
                1.8,
                rho=rho,
                state_names={name: [0, 1] for name in names},
                n_records=n,
                method=method,
                graph=[(names[u], names[v]) for u, v in graph.edges] if known else None,
                memory_limit=2**22,
                random_state=seed,
            )
            started = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReproducibleNoiseWarning)
                estimator.fit(data)
            error = float(np.abs(estimator.weights_ - field.weights).max())
            found[method, known] = error, time.perf_counter() - started
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.random_fields", description="Errors of PrivateIsing.")
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="populations of each graph (default: %(default)s)")
    options = parser.parse_args(arguments)
    body = []
    for p, n, rho in tqdm(SETTINGS):
        # Seeds from 1000 on: those below chose the defaults.
        runs = [measure(p, n, rho, kind, 1000 + seed) for kind in KINDS for seed in range(options.seeds)]
        keys = [(method, known) for known in (False, True) for method in METHODS]
        errors = [f"{np.mean([run[key][0] for run in runs]):.3f}" for key in keys]
        seconds = " / ".join(f"{np.mean([run[method, False][1] for run in runs]):.1f}" for method in METHODS)
        body.append([str(p), f"{n:,}", f"{rho:g}", *errors, seconds])
    head = ["p", "n", "rho", *METHODS, *(f"{method}, graph" for method in METHODS), "seconds"]
    command = shlex.join(["python", "-m", "benchmarks.random_fields", *(arguments or sys.argv[1:])])
    path = Path(options.out) / "random-fields.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"# Errors of PrivateIsing\n\n`{command}`, {describe_machine()}.\n\n"
    text += "Largest error of an interaction, mean over a tree, a grid and a 3-regular graph"
    text += f', {options.seeds} population(s) each; with "graph" the true graph is given.\n\n'
    path.write_text(text + markdown_table(head, body) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()

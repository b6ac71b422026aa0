"""Processor time and memory of tables of two and three variables drawn at random from a model of 1,000.

::

    python -m benchmarks.far_tables --out benchmarks/results

The models are made up: trees of cliques, each of which has most of an earlier one. A process of one thread for each
row; its memory includes the model. What needs more address space than `--limit` ends as "out of memory".
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import ScopeMarginals

KINDS = {"binary": "2", "mixed": "2 to 20"}
MOST_CELLS = 100_000


def made_up(kind: str, n: int, seed: int) -> LogLinearModel:
    """Half of the cliques are beside one of the last three, the others anywhere; most are as large as they may be."""
    rng = np.random.default_rng(seed)
    sizes = np.full(n, 2) if kind == "binary" else rng.integers(2, 21, n)
    scopes: list[list[int]] = [[0]]
    for v in range(1, n):
        last = rng.random() < 0.5
        host = scopes[int(rng.integers(max(0, len(scopes) - 3) if last else 0, len(scopes)))]
        most = MOST_CELLS if rng.random() < 0.6 else MOST_CELLS ** rng.uniform(0.4, 0.9)
        scope, cells = [v], int(sizes[v])
        for u in rng.permutation(host).tolist():
            if cells * sizes[u] <= most:
                scope.append(u)
                cells *= int(sizes[u])
        if set(host) < set(scope):
            scopes.remove(host)
        scopes.append(sorted(scope))
    cliques = Cliques(tuple(range(n)), tuple(sizes.tolist()), tuple(map(tuple, scopes)))
    return LogLinearModel(cliques, 0.5 * rng.normal(size=cliques.n_cells))


def measure(kind: str, n: int, order: int, count: int, seed: int = 0) -> dict:
    """Tables of so many sets of variables, and what they took."""
    model = made_up(kind, n, seed)
    engine = SumProduct(model.cliques, memory_limit=2**33)
    source = ScopeMarginals(model.cliques, model.theta, engine)
    rng = np.random.default_rng(order)
    scopes = [tuple(sorted(rng.choice(n, order, replace=False).tolist())) for _ in range(count)]
    found = {"cells": engine.size.cells, "inference": engine.size.memory_bytes / 2**30}
    start = time.process_time()
    try:
        tables = source.tables(scopes)
        found["off"] = max(abs(float(table.sum()) - 1.0) for table in tables)
    except MemoryError:
        found["off"] = None
    found["seconds"] = time.process_time() - start
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--limit", type=float, default=12.0, help="GiB of address space")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--one", nargs=2, metavar=("KIND", "ORDER"), help="one row, in this process")
    given = parser.parse_args()
    if given.one:
        resource.setrlimit(resource.RLIMIT_AS, (int(given.limit * 2**30),) * 2)
        print(json.dumps(measure(given.one[0], given.columns, int(given.one[1]), given.sets)))
        return
    rows = []
    for kind, states in KINDS.items():
        for order in (2, 3):
            command = [sys.executable, "-m", "benchmarks.far_tables", "--columns", str(given.columns)]
            command += ["--sets", str(given.sets), "--limit", str(given.limit), "--one", kind, str(order)]
            alone = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            made = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
            got = json.loads(made.stdout)
            time_taken = f"{got['seconds']:.1f} s" if got["off"] is not None else "out of memory"
            rows.append(
                [states, f"{got['cells']:,}", f"{got['inference']:.2f} GiB", f"{given.sets} of {order}"]
                + [time_taken, f"{got['peak']:.2f} GiB"]
            )
            print(*rows[-1], sep=" | ", flush=True)
    heads = ["states", "cells of the junction tree", "what inference takes", "sets", "processor time", "memory"]
    text = "# Tables of variables that lie far apart\n\n"
    text += f"{given.columns:,} variables, cliques of at most {MOST_CELLS:,} cells, {given.limit:.0f} GiB of address "
    text += f"space. Made by `python -m benchmarks.far_tables`\n\non {describe_machine()}\n\n"
    text += markdown_table(heads, rows) + "\n"
    (given.out / "far-tables.md").write_text(text)


if __name__ == "__main__":
    main()

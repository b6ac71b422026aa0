"""Exact recovery of graphs: the probability against the number of records, for each private structure learner.

::

    python -m benchmarks.structure_recovery                      # quick: below 3 minutes on one core
    python -m benchmarks.structure_recovery --mode full          # p up to 100, 10 populations: hours

Ising models without fields, of equal sizes of the weights with random signs, on uniform trees (.5), grids and random
3-regular graphs (.4); epsilon = 1, delta = 1e-6, add_remove with a public number of records. Methods are told the width
and the size of the weights; EdgeVoting also a bound on the number of edges. Noise comes from seeds: nothing here is
private.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import networkx as nx
import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.report import markdown_table
from pgmpy_dp import estimators
from pgmpy_dp.estimators import EdgeVoting, PrivateIsing, StableStructure
from pgmpy_dp.models.field_sampling import sample_field
from pgmpy_dp.models.random_graphs import named_graph, random_ising
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
WEIGHTS = {"tree": 0.5, "grid": 0.4, "regular": 0.4}
MODES = {
    # kinds, numbers of variables, records, populations
    "quick": (("tree", "grid", "regular"), (10, 20), (1000, 2000, 4000, 8000, 16_000, 32_000), 8),
    "full": (("tree", "grid", "regular"), (10, 20, 50, 100), tuple(500 * 2**k for k in range(9)), 10),
}


def methods(kind: str) -> dict[str, Callable[..., Any]]:
    """Estimators by name; each takes the width, the weight, the number of edges and what all have in common."""
    # Blocks: fewer than the default of StableStructure (56), as these models are easy enough for nearly all to agree.
    learner, n_blocks = ("chow-liu", 40) if kind == "tree" else ("inverse-covariance", 50)
    found: dict[str, Callable[..., Any]] = {
        f"StableStructure, {learner}": lambda width, weight, edges, **common: StableStructure(
            width, weight, learner=learner, n_blocks=n_blocks, **common
        ),
        # The bound on edges is public here: p - 1 of trees, 3p/2 and 2p of the others.
        f"EdgeVoting, {learner}": lambda width, weight, edges, **common: EdgeVoting(
            width, weight, learner=learner, max_edges=edges, **common
        ),
        "PrivateIsing, threshold eta/2": lambda width, weight, edges, **common: PrivateIsing(
            width, min_edge_weight=weight, memory_limit=2**22, **common
        ),
    }
    chow_liu = getattr(estimators, "PrivateChowLiu", None)
    if kind == "tree" and chow_liu is not None:
        found["PrivateChowLiu, tables"] = lambda width, weight, edges, **common: chow_liu(
            method="tables", fit_parameters=False, **common
        )
    return found


def measure(kind: str, p: int, n: int, seed: int) -> Iterator[dict[str, Any]]:
    """One row for each method: whether the graph was exact, how many edges were wrong, seconds."""
    rng = np.random.default_rng([seed, p, sorted(WEIGHTS).index(kind)])
    field = random_ising(named_graph(kind, p, rng), rng, weight=WEIGHTS[kind])
    names = [f"v{i}" for i in range(p)]
    true = {frozenset((names[i], names[j])) for i, j in field.edges()}
    data = pd.DataFrame(sample_field(field, n, rng), columns=names)
    bound = {"tree": p - 1, "grid": 2 * p, "regular": 3 * p // 2}[kind]
    common = {**BUDGET, "state_names": {name: [0, 1] for name in names}, "n_records": n, "random_state": seed}
    for name, make in methods(kind).items():
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            graph = make(field.width, WEIGHTS[kind], bound, **common).fit(data).graph_
        seconds = time.perf_counter() - started
        wrong = None if graph is None else len(true ^ set(map(frozenset, nx.Graph(graph).edges)))
        yield {"kind": kind, "p": p, "n": n, "seed": seed, "method": name, "wrong": wrong, "seconds": seconds}


def table(rows: pd.DataFrame) -> str:
    """Share of exact graphs by number of records (and of no answer, in brackets), and seconds."""
    sizes = sorted(rows["n"].unique())
    body = []
    for (kind, p, name), group in rows.groupby(["kind", "p", "method"], sort=True):
        cells = []
        for n in sizes:
            wrong = group.loc[group["n"] == n, "wrong"]
            none = f" ({wrong.isna().mean():.2g} none)" if wrong.isna().any() else ""
            cells.append(f"{(wrong == 0).mean():.2g}{none}" if len(wrong) else "-")
        body.append([kind, str(p), name, *cells, f"{group['seconds'].mean():.2g}"])
    return markdown_table(["graph", "p", "method", *(f"n = {n:,}" for n in sizes), "seconds"], body)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure_recovery", description="Exact recovery.")
    parser.add_argument("--mode", choices=sorted(MODES), default="quick", help="default: %(default)s")
    parser.add_argument("--out", default="build/benchmarks", help="folder of the results (default: %(default)s)")
    parser.add_argument("--most", type=int, default=math.inf, help="largest number of variables (default: the mode's)")
    options = parser.parse_args(arguments)
    kinds, variables, sizes, populations = MODES[options.mode]
    points = [
        (kind, p, n, 1000 + seed)
        for kind in kinds
        for p in variables
        if p <= options.most
        for n in sizes
        for seed in range(populations)
    ]
    found = [row for point in tqdm(points) for row in measure(*point)]
    rows = pd.DataFrame(found)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"structure-recovery-{options.mode}"
    (folder / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    command = shlex.join(["python", "-m", "benchmarks.structure_recovery", *(arguments or sys.argv[1:])])
    text = f"# Exact recovery of graphs\n\n`{command}`, {describe_machine()}.\n\n"
    text += f"Share of {populations} populations whose graph is exact, by number of records (share of fits that answer "
    text += "that no graph is stable); epsilon = 1, delta = 1e-6.\n\n"
    path = folder / f"{stem}.md"
    path.write_text(text + table(rows) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()

"""Time of one calibration (log-potentials to all clique marginals) against pgmpy and mbi.

::

    python -m benchmarks.calibration --out benchmarks/results

One process, one thread. In each repetition our engine, pgmpy's ``BeliefPropagation.calibrate`` and mbi's
default oracle (compiled beforehand) calibrate the same potentials once; the table holds medians. pgmpy
gets one merged, centred factor per edge, because it loses accuracy on others; it is left out above a
million cells and on the chain of 1000 nodes, which take it minutes.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy and jax are imported

import networkx as nx
import numpy as np
from tqdm import tqdm

from benchmarks.mbi_adapter import mbi_oracle
from benchmarks.populations import make_population
from benchmarks.report import markdown_table
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.sum_product import inference_size
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

_LIMIT = 2**33  # bytes; the widest case needs more than the package's default of 1 GiB


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description="Time of one calibration.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261121, help="default: %(default)s")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    cases = _cases(options.seed)
    body = [_measure(name, cliques, theta) for name, cliques, theta in tqdm(cases, unit="case")]
    command = shlex.join(["python", "-m", "benchmarks.calibration", *(arguments or sys.argv[1:])])
    text = [
        "# One calibration",
        f"Made by `{command}`",
        f"on {describe_machine()}; one thread on one core. Medians, in milliseconds.",
        "Cells are those of our junction tree (min-fill), memory is what our engine states before it allocates. "
        "Set-up is the time to triangulate, plan and allocate, once per model. Error is the largest difference "
        "between our marginals and mbi's.",
        markdown_table(
            [
                "model",
                "treewidth",
                "cells",
                "memory, MB",
                "set-up, ms",
                "pgmpy_dp, ms",
                "pgmpy, ms",
                "mbi, ms",
                "error",
            ],
            body,
        ),
    ]
    (out / "calibration.md").write_text("\n\n".join(text) + "\n")
    print(f"wrote {out / 'calibration.md'}")


def _cases(seed: int) -> list[tuple[str, Cliques, np.ndarray]]:
    names = {"chain1": "first-order chain", "er": "Erdos-Renyi p = .3", "chain3": "third-order chain"}
    cases = []
    for kind, n_states in (("chain1", 10), ("er", 10), ("chain3", 10), ("chain3", 20)):
        model = make_population(kind, seed=seed, index=0, n_states=n_states).model
        cases.append((f"{names[kind]}, 10 nodes, K = {n_states}", model.cliques, model.theta))
    for order, n_nodes, n_states in ((5, 10, 10), (6, 10, 10), (15, 30, 2), (1, 1000, 10)):
        graph = nx.Graph((i, j) for i in range(n_nodes) for j in range(i + 1, min(i + order, n_nodes - 1) + 1))
        cliques = Cliques.from_graph(graph, dict.fromkeys(graph.nodes, n_states))
        theta = np.random.default_rng(seed).normal(size=cliques.n_cells)
        cases.append((f"chain of order {order}, {n_nodes} nodes, K = {n_states}", cliques, theta))
    return cases


def _measure(name: str, cliques: Cliques, theta: np.ndarray) -> list[str]:
    size = inference_size(cliques)
    start = time.perf_counter()
    engine = SumProduct(cliques, memory_limit=_LIMIT)
    set_up = time.perf_counter() - start
    mbi_calibrate = _mbi(cliques, theta)
    rivals: list[Callable[[], object]] = [lambda: engine.calibrate(theta), mbi_calibrate]
    with_pgmpy = size.cells < 10**6 and len(cliques.variables) <= 100
    if with_pgmpy:
        rivals.append(_pgmpy(cliques, theta))
    ours, _ = engine.calibrate(theta)
    error = float(np.abs(ours - mbi_calibrate()).max())
    repetitions = int(np.clip(3e7 / size.cells, 3, 200))
    seconds = [[] for _ in rivals]
    for _ in range(repetitions):
        for times, calibrate in zip(seconds, rivals, strict=True):
            start = time.perf_counter()
            calibrate()
            times.append(time.perf_counter() - start)
    ms = [f"{1e3 * np.median(times):.3g}" for times in seconds]
    return [
        name, str(size.width), f"{size.cells:,}", f"{size.memory_bytes / 2**20:.0f}", f"{1e3 * set_up:.3g}",
        ms[0], ms[2] if with_pgmpy else "-", ms[1], f"{error:.0e}",
    ]  # fmt: skip


def _mbi(cliques: Cliques, theta: np.ndarray) -> Callable[[], np.ndarray]:
    import jax

    blank = NoisyMarginals(cliques, np.ones(cliques.n_cells), "none", np.zeros(cliques.n_cliques), total=1.0)
    oracle, potentials = mbi_oracle(blank)
    names = potentials.cliques  # in the order of our scopes, none of which are nested here
    arrays = {name: jax.numpy.asarray(table) for name, table in zip(names, cliques.split(theta), strict=True)}
    tables = {name: type(factor)(factor.domain, arrays[name]) for name, factor in potentials.tables.items()}
    potentials = type(potentials)(potentials.domain, names, tables)
    # As the estimators do, compile the whole calibration; the oracle's own jit builds its tree at each trace only.
    compiled = jax.jit(lambda p: oracle(p, 1.0))

    def calibrate() -> np.ndarray:
        result = jax.block_until_ready(compiled(potentials))
        return np.concatenate([np.asarray(result[name].values).ravel() for name in names])

    calibrate()
    return calibrate


def _pgmpy(cliques: Cliques, theta: np.ndarray) -> Callable[[], object]:
    with warnings.catch_warnings():  # of names that pgmpy itself deprecates
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import BeliefPropagation
        from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork()
    network.add_nodes_from(cliques.variables)
    for scope, table in zip(cliques.scopes, cliques.split(theta), strict=True):
        network.add_edge(*scope)
        network.add_factors(DiscreteFactor(scope, table.shape, np.exp(table - table.mean())))
    return BeliefPropagation(network).calibrate


if __name__ == "__main__":
    main()

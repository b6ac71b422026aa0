"""Directions of edges from a release: random Bayesian networks, and how far from them what is found is.

    python -m benchmarks.directions --networks 8

Each network has 10 variables of two or three states, up to two parents each, and 20,000 records drawn from it. pgmpy's
SHD counts edges that are missing, too many, or the wrong way round; precision and recall are of edges without their
direction.
"""

from __future__ import annotations

import argparse
import warnings

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config
from pgmpy.base import DAG
from pgmpy.causal_discovery import HillClimbSearch
from pgmpy.metrics import SHD

from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, learn

VARIABLES, RECORDS, FIRST = 10, 20_000, 10
EPSILONS = (0.3, 1.0, 3.0)


def made_up(seed: int) -> tuple[nx.DiGraph, pd.DataFrame, dict[str, list[int]]]:
    """A network's graph, records drawn from it, and their states."""
    rng = np.random.default_rng(seed)
    names = [f"v{k}" for k in range(VARIABLES)]
    graph, codes, sizes = nx.DiGraph(), np.zeros((RECORDS, VARIABLES), dtype=int), []
    graph.add_nodes_from(names)
    for v, name in enumerate(names):
        parents = sorted(rng.choice(v, min(v, int(rng.integers(0, 3))), replace=False)) if v else []
        graph.add_edges_from((names[u], name) for u in parents)
        sizes.append(int(rng.integers(2, 4)))
        which = np.zeros(RECORDS, dtype=int)
        for u in parents:
            which = which * sizes[u] + codes[:, u]
        ends = rng.dirichlet(np.full(sizes[v], 0.6), int(which.max()) + 1).cumsum(axis=1)
        codes[:, v] = (rng.random(RECORDS)[:, None] > ends[which]).sum(axis=1).clip(0, sizes[v] - 1)
    states = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    return graph, pd.DataFrame(codes, columns=names), states


def compared(true: nx.DiGraph, found: nx.DiGraph) -> tuple[float, float, float]:
    """SHD, precision and recall."""
    one, other = DAG(list(true.edges)), DAG(list(found.edges))
    one.add_nodes_from(true.nodes)
    other.add_nodes_from(true.nodes)
    there, seen = (set(map(frozenset, graph.edges)) for graph in (one, other))
    shd = SHD()(true_causal_graph=one, est_causal_graph=other)
    return float(shd), len(there & seen) / max(len(seen), 1), len(there & seen) / max(len(there), 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=8)
    networks = parser.parse_args().networks
    config.set_show_progress(False)
    warnings.simplefilter("ignore")
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(FIRST, FIRST + networks):
        graph, records, states = made_up(seed)
        found.setdefault("no edges", []).append(compared(graph, nx.DiGraph()))
        search = HillClimbSearch(scoring_method="bic-d", return_type="dag", show_progress=False).fit(records)
        found.setdefault("pgmpy on the records, NOT PRIVATE", []).append(compared(graph, search.causal_graph_))
        for epsilon in EPSILONS:
            learned = learn(records, Budget(epsilon=epsilon, delta=1e-9), states)
            model = learned.model_
            model.posterior = learned.posterior(20, random_state=0)
            for how, network in {
                "junction tree": model.to_bayesian_network(),
                "hill-climb, n_records_": model.to_bayesian_network("hill-climb", n_records=learned.n_records_),
                "hill-climb": model.to_bayesian_network("hill-climb"),
            }.items():
                found.setdefault(f"epsilon {epsilon:g}: {how}", []).append(compared(graph, network))
    print(f"{describe_machine()}\n")
    rows = [[how, *(f"{value:.2f}" for value in np.mean(each, axis=0))] for how, each in found.items()]
    print(markdown_table(["found by", "SHD", "precision", "recall"], rows))


if __name__ == "__main__":
    main()

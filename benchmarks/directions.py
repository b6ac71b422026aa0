"""Directions of edges from a release: Bayesian networks, and how far from them what is found is.

    python -m benchmarks.directions --networks 8
    python -m benchmarks.directions --bif FOLDER        # each NAME.bif.gz in it, as alarm, child and insurance

Random networks have 10 variables of two or three states and up to two parents each. 20,000 records are drawn from each
network. pgmpy's SHD counts edges that are missing, too many, or the wrong way round; precision and recall are of edges
without their direction. Wheels of pgmpy before 1.0 have networks of the literature in ``pgmpy/utils/example_models``;
we do not ship them.
"""

from __future__ import annotations

import argparse
import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config
from pgmpy.base import DAG
from pgmpy.causal_discovery import HillClimbSearch
from pgmpy.metrics import SHD
from pgmpy.readwrite import BIFReader

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


def of_the_literature(path: Path) -> tuple[nx.DiGraph, pd.DataFrame, dict[str, list[str]]]:
    """The same of a network in a file, its records as texts."""
    model = BIFReader(string=gzip.decompress(path.read_bytes()).decode()).get_model()
    records = model.simulate(RECORDS, seed=FIRST, show_progress=False)
    graph = nx.DiGraph(model.edges)
    graph.add_nodes_from(model.nodes)
    names = sorted(graph)
    states = {name: [str(state) for state in model.get_cpds(name).state_names[name]] for name in names}
    return graph, pd.DataFrame(records, columns=names).astype(str), states


def networks_of(arguments: argparse.Namespace) -> Iterator[tuple[str, tuple]]:
    """Headings, and networks with their records: all made-up ones have one heading."""
    if arguments.bif is None:
        yield from (("", made_up(seed)) for seed in range(FIRST, FIRST + arguments.networks))
    else:
        for path in sorted(arguments.bif.glob("*.bif.gz")):
            yield path.name.removesuffix(".bif.gz"), of_the_literature(path)


def compared(true: nx.DiGraph, found: nx.DiGraph) -> tuple[float, float, float]:
    """SHD, precision and recall."""
    one, other = DAG(list(true.edges)), DAG(list(found.edges))
    one.add_nodes_from(true.nodes)
    other.add_nodes_from(true.nodes)
    there, seen = (set(map(frozenset, graph.edges)) for graph in (one, other))
    shd = SHD()(true_causal_graph=one, est_causal_graph=other)
    return float(shd), len(there & seen) / max(len(seen), 1), len(there & seen) / max(len(there), 1)


def methods(records: pd.DataFrame, states: dict) -> Iterator[tuple[str, nx.DiGraph]]:
    """What finds a directed graph, and the graph."""
    yield "no edges", nx.DiGraph()
    search = HillClimbSearch(scoring_method="bic-d", return_type="dag", show_progress=False).fit(records)
    yield "pgmpy on the records, NOT PRIVATE", search.causal_graph_
    for epsilon in EPSILONS:
        learned = learn(records, Budget(epsilon=epsilon, delta=1e-9), states)
        model = learned.model_
        model.posterior = learned.posterior(20, random_state=0)
        yield f"epsilon {epsilon:g}: junction tree", model.to_bayesian_network()
        known = model.to_bayesian_network("hill-climb", n_records=learned.n_records_)
        yield f"epsilon {epsilon:g}: hill-climb, n_records_", known
        yield f"epsilon {epsilon:g}: hill-climb", model.to_bayesian_network("hill-climb")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", type=int, default=8)
    parser.add_argument("--bif", type=Path, help="folder of networks of the literature, NAME.bif.gz")
    config.set_show_progress(False)
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for heading, (graph, records, states) in networks_of(parser.parse_args()):
        for how, network in methods(records, states):
            found.setdefault((heading, how), []).append(compared(graph, network))
    print(f"{describe_machine()}\n")
    rows = [[*key, *(f"{value:.2f}" for value in np.mean(each, axis=0))] for key, each in found.items()]
    print(markdown_table(["network", "found by", "SHD", "precision", "recall"], rows))


if __name__ == "__main__":
    main()

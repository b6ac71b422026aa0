"""Small models of every awkward shape, and brute force over their joint distribution."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np

from pgmpy_dp.inference.cliques import Cliques

GRAPHS = {
    "path": nx.path_graph(5),
    "star": nx.star_graph(5),
    "cycle": nx.cycle_graph(5),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(2, 3)),
    "clique": nx.complete_graph(4),
    "two components": nx.disjoint_union(nx.path_graph(3), nx.cycle_graph(3)),
    "isolated node": nx.disjoint_union(nx.path_graph(3), nx.empty_graph(1)),
    "no edge": nx.empty_graph(3),
    "one node": nx.empty_graph(1),
    "mixed names": nx.relabel_nodes(nx.cycle_graph(4), {0: 0, 1: ("b", 1), 2: "c", 3: 2.5}),
}

HYPERGRAPHS = {
    "triples": Cliques(tuple("abcd"), (2, 3, 2, 4), (("c", "a", "b"), ("d", "b", "c"))),
    "nested and repeated": Cliques(tuple("abc"), (3, 2, 4), (("a", "b"), ("b", "a"), ("b",), ("c", "b"), ("a", "b"))),
    "variable in no scope": Cliques(tuple("abc"), (3, 2, 4), (("a", "c"),)),
    "one state": Cliques(tuple("abc"), (3, 1, 2), (("a", "b"), ("b", "c"))),
}


@dataclass(frozen=True)
class BruteForce:
    """The joint distribution, cell by cell."""

    cliques: Cliques
    states: np.ndarray  # (n_variables, n_joint)
    log_weights: np.ndarray  # (n_joint,)

    @classmethod
    def of(cls, cliques: Cliques, theta: np.ndarray) -> BruteForce:
        states = np.indices(cliques.cardinalities).reshape(len(cliques.variables), -1)
        log_weights = np.zeros(states.shape[1])
        for table, scope in zip(cliques.split(theta), cliques.indices, strict=True):
            log_weights = log_weights + table[tuple(states[i] for i in scope)]
        return cls(cliques, states, log_weights)

    @property
    def log_partition(self) -> float:
        top = self.log_weights.max()
        return float(top + np.log(np.exp(self.log_weights - top).sum()))

    @property
    def joint(self) -> np.ndarray:
        return np.exp(self.log_weights - self.log_partition)

    def marginal(self, indices) -> np.ndarray:
        table = np.zeros([self.cliques.cardinalities[i] for i in indices])
        np.add.at(table, tuple(self.states[i] for i in indices), self.joint)
        return table

    def marginals(self) -> np.ndarray:
        return np.concatenate([self.marginal(scope).ravel() for scope in self.cliques.indices])


def layouts() -> dict[str, Cliques]:
    rng = np.random.default_rng(1)
    named = {}
    for name, graph in GRAPHS.items():
        named[name] = Cliques.from_graph(graph, {node: int(rng.integers(2, 5)) for node in graph})
    return named | HYPERGRAPHS


def chain(order: int, n: int, k: int) -> Cliques:
    """A chain with edges between nodes at distance 1 to `order`."""
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from((i, j) for i in range(n) for j in range(i + 1, min(n, i + order + 1)))
    return Cliques.from_graph(graph, dict.fromkeys(range(n), k))

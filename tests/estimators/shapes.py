"""Graphs of every awkward shape, and models on them with random factors."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.markov_network import MarkovNetwork


def _graphs() -> dict[str, tuple[nx.Graph, dict]]:
    def uniform(graph, k=2):
        return graph, dict.fromkeys(graph, k)

    def named(graph):
        return nx.relabel_nodes(graph, {i: f"v{i}" for i in graph})

    two = named(nx.path_graph(3))
    two.add_edge("w0", "w1")
    isolated = named(nx.path_graph(3))
    isolated.add_nodes_from(["lonely", "alone"])
    only_isolated = nx.Graph()
    only_isolated.add_nodes_from(["p", "q", "r"])
    single = nx.Graph()
    single.add_node("only")
    integers = nx.cycle_graph(4)  # a node called 0
    integers.add_node(7)
    tuples = nx.grid_2d_graph(2, 3)  # nodes (0, 0), (0, 1), ...
    unequal = named(nx.cycle_graph(5))
    return {
        "path": uniform(named(nx.path_graph(5)), 3),
        "star": uniform(named(nx.star_graph(4)), 3),
        "cycle": uniform(named(nx.cycle_graph(5)), 3),
        "grid": uniform(named(nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3)))),
        "clique": uniform(named(nx.complete_graph(4)), 3),
        "two components": uniform(two, 3),
        "isolated nodes": uniform(isolated, 2),
        "only isolated nodes": uniform(only_isolated, 3),
        "one node": uniform(single, 4),
        "integer names": uniform(integers, 3),
        "tuple names": uniform(tuples),
        "unequal cardinalities": (unequal, dict(zip(unequal, (2, 3, 4, 5, 2), strict=True))),
    }


GRAPHS = _graphs()


def budget_of(estimator_class: type, epsilon: float) -> dict[str, float]:
    """A budget of this epsilon that the estimator can use: with a delta where it has no pure guarantee."""
    pure = "pure" in estimator_class.get_class_tag("guarantees")
    return {"epsilon": epsilon} if pure else {"epsilon": epsilon, "delta": 1e-3}


def make_network(graph: nx.Graph, cardinalities: dict, scale: float = 1.5, seed: int = 3) -> MarkovNetwork:
    cliques = Cliques.from_graph(graph, cardinalities)
    theta = scale * np.random.default_rng(seed).normal(size=cliques.n_cells)
    states = {name: [f"{name}={k}" for k in range(size)] for name, size in cardinalities.items()}
    return MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), graph, states)


def brute_force(model: MarkovNetwork) -> np.ndarray:
    """The joint distribution, axes in the order of the nodes: the product of the factors cell by cell."""
    nodes = list(model.nodes)
    sizes = model.get_cardinality()
    joint = np.ones([sizes[name] for name in nodes])
    for cell in itertools.product(*(range(sizes[name]) for name in nodes)):
        for factor in model.factors:
            joint[cell] *= factor.values[tuple(cell[nodes.index(name)] for name in factor.variables)]
    return joint

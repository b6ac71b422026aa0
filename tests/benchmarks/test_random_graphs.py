"""Random fields meet the width and the smallest weight that were asked for."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from benchmarks.random_graphs import (
    named_graph,
    random_binary_field,
    random_hyperedges,
    random_ising,
    random_pairwise,
)

KINDS = ["tree", "grid", "regular", "star", "complete"]


def make(family: str, kind: str, seed: int, **settings):
    rng = np.random.default_rng(seed)
    graph = named_graph(kind, 12, rng)
    if family == "ising":
        return graph, random_ising(graph, rng, **settings)
    if family == "pairwise":
        return graph, random_pairwise(graph, [2, 3, 4] * 4, rng, **settings)
    hyperedges = [*graph.edges, *random_hyperedges(12, 3, 6, rng)]
    graph.add_edges_from((e[a], e[b]) for e in hyperedges[-6:] for a, b in ((0, 1), (0, 2), (1, 2)))
    return graph, random_binary_field(12, hyperedges, rng, **settings)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ["ising", "pairwise", "binary"])
@pytest.mark.parametrize("field", [0.0, 0.2])
def test_width_and_smallest_weight_are_met(family, kind, field):
    graph, model = make(family, kind, 1, width=1.7, field=field)
    assert model.width == pytest.approx(1.7, rel=1e-12)
    assert model.edges() == sorted(tuple(sorted(edge)) for edge in graph.edges)
    if family == "binary":  # its eta is over maximal monomials, which need not have the smallest size
        eta = 0.01
        _, model = make(family, kind, 2, width=1.7, min_weight=eta, field=field)
        smallest = min(abs(value) for s, value in model.coefficients.items() if len(s) > 1)
    else:
        eta = 0.05
        _, model = make(family, kind, 2, width=1.7, min_weight=eta, field=field)
        smallest = model.min_edge_weight
    assert smallest == pytest.approx(eta, rel=1e-9)
    assert model.width == pytest.approx(1.7, rel=1e-12)


@pytest.mark.parametrize("family", ["ising", "pairwise", "binary"])
def test_equal_weights(family):
    _, model = make(family, "regular", 3, weight=0.25, field=0.1)
    if family == "ising":
        sizes = np.abs(model.weights[model.weights != 0])
        assert (np.abs(model.fields) <= 0.1).all() and (model.fields != 0).all()
        assert {-1.0, 1.0} == set(np.sign(model.weights[model.weights != 0]))
    elif family == "pairwise":
        sizes = [np.abs(table).max() for table in model.weights.values()]
    else:
        sizes = [abs(value) for s, value in model.coefficients.items() if len(s) > 1]
    np.testing.assert_allclose(sizes, 0.25, rtol=1e-12)


def test_graphs():
    rng = np.random.default_rng(4)
    for kind in KINDS:
        graph = named_graph(kind, 12, rng)
        assert sorted(graph) == list(range(12))
        assert nx.is_connected(graph) or kind == "regular"
    assert nx.is_tree(named_graph("tree", 12, rng)) and nx.is_tree(named_graph("tree", 2, rng))
    assert set(dict(named_graph("regular", 12, rng, degree=5).degree).values()) == {5}
    assert nx.is_isomorphic(named_graph("grid", 12, rng), nx.grid_2d_graph(3, 4))
    assert named_graph("star", 12, rng).degree(0) == 11
    # All 16 trees on 4 labelled nodes are drawn: 400 draws miss a given one with probability 6e-12.
    trees = {tuple(sorted(map(tuple, map(sorted, named_graph("tree", 4, rng).edges)))) for _ in range(400)}
    assert len(trees) == 16
    with pytest.raises(ValueError, match="kind='ring'"):
        named_graph("ring", 12, rng)


def test_node_order_decides_positions_and_attractive_the_signs():
    graph = nx.Graph([("b", "a"), ("b", "c")])
    model = random_ising(graph, np.random.default_rng(5), weight=0.5, attractive=True)
    np.testing.assert_array_equal(model.weights, [[0, 0.5, 0.5], [0.5, 0, 0], [0.5, 0, 0]])


def test_what_cannot_be_met_is_refused():
    rng = np.random.default_rng(6)
    path = nx.path_graph(3)
    for settings in ({}, {"weight": 0.1, "width": 1.0}):
        with pytest.raises(ValueError, match="either weight or width"):
            random_ising(path, rng, **settings)
    with pytest.raises(ValueError, match=r"min_weight=0\.1 goes with width"):
        random_ising(path, rng, weight=0.1, min_weight=0.1)
    with pytest.raises(ValueError, match="cannot be met"):
        random_ising(path, rng, width=1.0, min_weight=0.6)
    with pytest.raises(ValueError, match="cannot be met"):
        random_ising(path, rng, width=0.1, field=50.0)
    with pytest.raises(ValueError, match=r"cannot be met: .* and 0 weights can be scaled"):
        random_ising(nx.path_graph(2), rng, width=1.0, min_weight=0.6)
    with pytest.raises(ValueError, match="cardinalities must be 2 or more"):
        random_pairwise(path, [2, 2], rng, weight=0.1)
    with pytest.raises(ValueError, match="two or more positions"):
        random_binary_field(3, [(0,)], rng, weight=0.1)
    with pytest.raises(ValueError, match="n=2 must be at most the 1 sets"):
        random_hyperedges(3, 3, 2, rng)

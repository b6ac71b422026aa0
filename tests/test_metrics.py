"""Metrics of undirected graphs: against scikit-learn on the indicators of edges, and by their properties."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.base import DAG, UndirectedGraph
from pgmpy.metrics import _BaseSupervisedMetric, get_metrics
from sklearn.metrics import hamming_loss, precision_recall_fscore_support

from pgmpy_dp import MarkovNetwork, list_estimators, list_metrics
from pgmpy_dp.metrics import EdgeF1, EdgeHammingDistance, EdgePrecision, EdgeRecall

settings.register_profile("no deadline", deadline=None)  # a busy machine must not fail a test
settings.load_profile("no deadline")

NODES = ["a", "b", "c", 4, ("d", 5)]
PAIRS = list(itertools.combinations(NODES, 2))
bits = st.lists(st.booleans(), min_size=len(PAIRS), max_size=len(PAIRS))


def graph(chosen, kind=UndirectedGraph, flip=False):
    made = kind()
    made.add_nodes_from(reversed(NODES) if flip else NODES)
    made.add_edges_from(pair[::-1] if flip else pair for pair, bit in zip(PAIRS, chosen, strict=True) if bit)
    return made


@given(bits, bits)
def test_as_scikit_learn_on_indicators(true, estimated):
    values = [metric()(graph(true), graph(estimated)) for metric in (EdgePrecision, EdgeRecall, EdgeF1)]
    if any(true) or any(estimated):
        expected = precision_recall_fscore_support(true, estimated, average="binary", zero_division=0)[:3]
        assert values == pytest.approx(list(expected), rel=1e-12)
    else:
        assert values == [1.0, 1.0, 1.0]
    distance = EdgeHammingDistance()(graph(true), graph(estimated))
    assert distance == round(hamming_loss(true, estimated) * len(PAIRS))


@given(bits, bits, bits)
def test_properties(x, y, z):
    a, b, c = graph(x), graph(y, nx.Graph, flip=True), graph(z)
    for metric in (EdgeF1(), EdgeHammingDistance()):
        assert metric(a, b) == metric(b, a)
    assert EdgePrecision()(a, b) == EdgeRecall()(b, a) or not (any(x) or any(y))
    distance = EdgeHammingDistance()
    assert distance(a, c) <= distance(a, b) + distance(b, c)
    assert (distance(a, b) == 0) == (x == y)
    for metric in (EdgePrecision(), EdgeRecall(), EdgeF1()):
        assert 0 <= metric(a, b) <= 1
        assert metric(a, graph(x, flip=True)) == 1
        # Neither the order of nodes and of an edge's ends, nor the class of the graph, matters.
        assert metric(graph(x, nx.Graph), b) == metric(a, graph(y))
    assert (EdgeF1()(a, b) == 1) == (x == y)


def test_empty_graphs():
    empty, one = graph([False] * 10), graph([True] + [False] * 9)
    for metric in (EdgePrecision(), EdgeRecall(), EdgeF1()):
        assert metric(empty, empty) == 1.0
        assert metric(empty, one) == metric(one, empty) == 0.0
        assert metric(nx.Graph(), nx.Graph()) == 1.0
    assert EdgeHammingDistance()(empty, one) == 1
    assert EdgeHammingDistance()(nx.Graph(), nx.Graph()) == 0


@pytest.fixture(params=list_metrics(), ids=lambda metric: metric.__name__)
def metric(request):
    return request.param()


def test_bad_graphs_are_refused(metric):
    path = nx.path_graph(3)
    with pytest.raises(ValueError, match="same nodes"):
        metric(path, nx.path_graph(4))
    with pytest.raises(ValueError, match="est_causal_graph is a DAG, which is directed"):
        metric(path, DAG([(0, 1), (1, 2)]))
    with pytest.raises(ValueError, match="true_causal_graph is a DiGraph"):
        metric(nx.DiGraph([(0, 1), (1, 2)]), path)
    with pytest.raises(ValueError, match="from a node to itself"):
        metric(path, nx.Graph([(0, 1), (1, 2), (2, 2)]))
    with pytest.raises(ValueError, match="must be one of the following types"):
        metric(path, [(0, 1), (1, 2)])


def test_in_pgmpys_form(metric):
    assert isinstance(metric, _BaseSupervisedMetric)
    assert metric.get_tags().keys() >= {"name", "requires_true_graph", "requires_data", "lower_is_better"}
    network = MarkovNetwork([("a", "b"), ("b", "c")])
    value = metric.evaluate(true_causal_graph=network, est_causal_graph=network.copy())
    assert value == (0 if metric.get_tag("lower_is_better") else 1)
    symmetric = metric(nx.path_graph(4), nx.star_graph(3)) == metric(nx.star_graph(3), nx.path_graph(4))
    assert symmetric or not metric.get_tag("is_symmetric")
    assert type(metric.clone()) is type(metric)


def test_the_metrics_are_listed_by_tag():
    names = ["EdgeF1", "EdgeHammingDistance", "EdgePrecision", "EdgeRecall"]
    assert [metric.__name__ for metric in list_metrics()] == names
    assert list_metrics(lower_is_better=True) == [EdgeHammingDistance]
    assert list_metrics(name="edge_recall") == [EdgeRecall]
    assert list_metrics(is_default=True) == [EdgeF1]
    assert list_metrics(requires_data=True) == []
    with pytest.raises(ValueError, match="colour"):
        list_metrics(colour="red")
    assert not set(list_metrics()) & {*list_estimators(), *get_metrics()}

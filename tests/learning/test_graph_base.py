"""What all estimators with a learned graph share: the score against a true graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.metrics import SHD
from skbase._exceptions import NotFittedError

from pgmpy_dp import list_estimators, list_metrics
from pgmpy_dp.estimators import EdgeVoting, PrivateBinaryMRF, StableStructure
from pgmpy_dp.learning.graph_base import BaseGraphEstimator
from pgmpy_dp.metrics import EdgeF1, EdgeHammingDistance, EdgePrecision

CLASSES = [*list_estimators(task="structure"), *list_estimators(task="parameters and graph")]
STATES = {name: [0, 1] for name in "abcd"}
TRUE = nx.path_graph(list(STATES))
RNG = np.random.default_rng(0)


def chain(n: int) -> pd.DataFrame:
    """a - b - c - d, each equal to the one before with probability .85."""
    flips = RNG.random((n, 4)) < np.array([0.5, 0.15, 0.15, 0.15])
    return pd.DataFrame(np.cumsum(flips, axis=1) % 2, columns=list(STATES))


DATA = chain(20_000)


def made(estimator_class, **budget) -> BaseGraphEstimator:
    options = {"state_names": STATES, "random_state": 1}
    if "width" in estimator_class.get_param_names():
        options |= {"width": 1.8, "min_edge_weight": 0.6}
    return estimator_class(**(budget or {"epsilon": 4.0, "delta": 1e-3}), **options)


@pytest.fixture(params=CLASSES, ids=lambda c: c.__name__)
def estimator_class(request):
    return request.param


def test_every_estimator_with_a_graph_has_the_score():
    assert {c.__name__ for c in CLASSES} == {c.__name__ for c in list_estimators() if issubclass(c, BaseGraphEstimator)}
    assert all(c.score is BaseGraphEstimator.score for c in CLASSES)


def test_the_score_is_that_of_the_metric(estimator_class):
    estimator = made(estimator_class).fit(DATA)
    found = {frozenset(edge) for edge in estimator.graph_.edges}
    true = {frozenset(edge) for edge in TRUE.edges}
    assert true <= found
    assert estimator.score(true_graph=TRUE) == 2 * len(true) / (len(true) + len(found))
    for metric in list_metrics():
        expected = metric()(TRUE, estimator.graph_)
        name = metric._tags["name"]
        assert [estimator.score(true_graph=TRUE, metric=m) for m in (metric, metric(), name)] == [expected] * 3
    assert estimator.score(None, TRUE, EdgePrecision) == len(true) / len(found)
    star = nx.star_graph(list(STATES))  # shares a - b with the truth
    assert estimator.score(true_graph=star, metric="edge_hamming_distance") == len(
        found ^ {frozenset(edge) for edge in star.edges}
    )


def test_refusals(estimator_class):
    estimator = made(estimator_class)
    with pytest.raises(NotFittedError, match="not been fitted"):
        estimator.score(true_graph=TRUE)
    estimator.fit(DATA[:200])
    for arguments, error, message in (
        ({}, ValueError, "true_graph=None"),
        ({"X": DATA, "true_graph": TRUE}, ValueError, r"X is a DataFrame.*pass true_graph="),
        ({"X": TRUE}, ValueError, r"X is a Graph.*pass true_graph="),
        ({"true_graph": TRUE, "metric": "f1"}, ValueError, r"metric='f1'.*'edge_f1', 'edge_hamming_distance'"),
        ({"true_graph": TRUE, "metric": 3}, TypeError, "metric=3 is a int"),
        ({"true_graph": TRUE, "metric": len}, TypeError, "pass a name"),
        ({"true_graph": TRUE, "metric": SHD}, ValueError, "must be one of the following types"),
        ({"true_graph": nx.DiGraph(TRUE)}, ValueError, "true_causal_graph is a DiGraph"),
        ({"true_graph": nx.path_graph(4)}, ValueError, "same nodes"),
        ({"true_graph": [("a", "b")]}, ValueError, "must be one of the following types"),
    ):
        with pytest.raises(error, match=message):
            estimator.score(**arguments)


def test_no_stable_structure_scores_as_no_edges():
    estimator = made(StableStructure, epsilon=1.0, delta=1e-6).fit(DATA[:600])  # about ten in a block
    assert estimator.graph_ is None
    empty = nx.create_empty_copy(TRUE)
    for metric in list_metrics():
        assert estimator.score(true_graph=TRUE, metric=metric) == metric()(TRUE, empty)
        assert estimator.score(true_graph=empty, metric=metric) == metric()(empty, empty)
    assert estimator.score(true_graph=TRUE) == 0.0
    assert estimator.score(true_graph=TRUE, metric=EdgeHammingDistance()) == 3
    again = made(StableStructure, epsilon=1.0, delta=1e-6).fit_release(estimator.release_)
    assert again.score(true_graph=TRUE) == 0.0


def test_a_released_graph_without_edges_scores_too():
    coins = pd.DataFrame(RNG.integers(0, 2, (8000, 4)), columns=list(STATES))
    for estimator in (made(StableStructure, epsilon=2.0, delta=1e-3), made(EdgeVoting, rho=1.0)):
        estimator.fit(coins)
        assert estimator.graph_.number_of_edges() == 0
        assert estimator.score(true_graph=nx.create_empty_copy(TRUE)) == 1.0
        assert estimator.score(true_graph=TRUE) == 0.0


def test_interactions_of_three_are_scored_by_their_pairs():
    parity = pd.DataFrame(RNG.integers(0, 2, (6000, 4)), columns=list(STATES))
    parity["c"] = np.where(RNG.random(6000) < 0.8, parity["a"] ^ parity["b"], parity["c"])
    estimator = PrivateBinaryMRF(2.0, 3, rho=5.0, state_names=STATES, min_edge_weight=0.8, random_state=1).fit(parity)
    true = nx.complete_graph(["a", "b", "c"])
    true.add_node("d")
    assert estimator.score(true_graph=true, metric=EdgeF1) == 1.0

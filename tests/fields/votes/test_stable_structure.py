"""StableStructure and EdgeVoting: recovery, outcomes, releases, refusals, conventions."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn.base
from pgmpy.base import UndirectedGraph

from benchmarks.field_sampling import sample_field
from benchmarks.random_graphs import named_graph, random_ising
from pgmpy_dp import Budget, Ledger, PrivateTable, Release
from pgmpy_dp.estimators import EdgeVoting, StableStructure
from pgmpy_dp.fields.votes import edge_voting, stable_structure
from pgmpy_dp.metrics import EdgeHammingDistance
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ApproxDP
from tests.estimators.test_nothing_leaks import DATA, NEEDLE, leaks
from tests.estimators.test_nothing_leaks import STATES as LEAK_STATES

CLASSES = [StableStructure, EdgeVoting]
GIVEN = {"epsilon": 1.0, "delta": 1e-2}


def population(kind: str, p: int, weight: float, n: int, seed: int) -> tuple[nx.Graph, pd.DataFrame, dict]:
    rng = np.random.default_rng(seed)
    field = random_ising(named_graph(kind, p, rng), rng, weight=weight)
    names = [f"v{i}" for i in range(p)]
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for i, j in field.edges())
    return graph, pd.DataFrame(sample_field(field, n, rng), columns=names), {name: [0, 1] for name in names}


TRUE, PEOPLE, STATES = population("tree", 4, 0.7, 6000, 0)
SMALL = PEOPLE[:300]


@pytest.fixture(params=CLASSES, ids=lambda c: c.__name__)
def estimator_class(request):
    return request.param


def wrong_edges(estimator, true: nx.Graph) -> int:
    return EdgeHammingDistance()(true, estimator.graph_)


class TestRecovery:
    @pytest.mark.parametrize("learner", ["chow-liu", "auto", "logistic"])
    def test_a_tree(self, learner):
        n = 7000 if learner == "chow-liu" else 24_000
        true, data, states = population("tree", 10, 0.5, n, 1)
        width = 0.5 * max(dict(true.degree).values())
        estimator = StableStructure(
            width, 0.5, 1.0, 1e-6, n_blocks=40, learner=learner, state_names=states, random_state=3
        ).fit(data)
        assert estimator.stable_ and isinstance(estimator.graph_, UndirectedGraph)
        assert wrong_edges(estimator, true) == 0
        np.testing.assert_array_equal(estimator.edge_scores_, nx.to_numpy_array(true))
        assert estimator.n_blocks_ == 40 and estimator.threshold_ == 14
        assert estimator.noisy_distance_ >= estimator.threshold_

    def test_a_regular_graph(self):
        true, data, states = population("regular", 10, 0.4, 30_000, 2)
        stable = StableStructure(1.2, 0.4, 1.0, 1e-6, n_blocks=50, state_names=states, random_state=3).fit(data)
        assert stable.stable_ and wrong_edges(stable, true) == 0
        votes = EdgeVoting(1.2, 0.4, rho=0.5, max_edges=15, state_names=states, random_state=3).fit(data)
        assert wrong_edges(votes, true) == 0
        np.testing.assert_array_equal(votes.edge_scores_, votes.edge_frequencies_)
        assert votes.frequency_sd_ < 0.15

    def test_too_few_records_have_no_stable_structure(self):
        _, data, states = population("tree", 10, 0.5, 400, 1)
        estimator = StableStructure(2.0, 0.5, 1.0, 1e-6, state_names=states, random_state=3).fit(data)
        assert estimator.is_fitted and not estimator.stable_
        assert estimator.graph_ is None and estimator.edge_scores_ is None
        assert [entry.cost for entry in estimator.privacy_.entries] == [ApproxDP(1.0, 1e-6)]


@pytest.mark.parametrize(
    ("learner", "n"),
    [
        pytest.param(learner, n, marks=[pytest.mark.slow] * ((j + k) % 3 > 0))
        for j, learner in enumerate(["inverse-covariance", "chow-liu", "logistic"])
        for k, n in enumerate([20, 100, 400])
    ],
)
def test_few_records_are_no_stable_structure(n, learner):
    """False alarms of the test of stability: two in a million; the graph without edges was stable in all of n = 20."""
    _, data, states = population("tree", 10, 0.5, 6 * n, 1)
    for seed in range(6):
        part = data[seed * n : (seed + 1) * n]
        estimator = StableStructure(2.0, 0.5, 1.0, 1e-6, learner=learner, state_names=states, random_state=seed)
        assert not estimator.fit(part).stable_


def test_one_and_two_threads_have_the_same_result(estimator_class):
    fits = [
        estimator_class(2.1, 0.7, **GIVEN, state_names=STATES, n_workers=k, random_state=5).fit(PEOPLE) for k in (1, 2)
    ]
    assert fits[0].release_ == fits[1].release_


def test_several_fits_share_a_ledger(estimator_class):
    table = PrivateTable(SMALL, STATES, ledger=Ledger(Budget(epsilon=6.0, delta=0.05), conversion_delta=0.01))
    estimator_class(2.1, 0.7, **GIVEN).fit(table)
    second = StableStructure(2.1, 0.7, **GIVEN).fit(table)
    assert len(second.privacy_.entries) == len(table.ledger.entries) == 2
    third = estimator_class(2.1, 0.7, epsilon=9.0, delta=1e-2)
    before = dict(vars(third))
    with pytest.raises(BudgetExceeded):
        third.fit(table)
    assert vars(third) == before and len(table.ledger.entries) == 2


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_releases_can_be_read_again(estimator_class, adjacency, tmp_path):
    n_records = 300 if adjacency == "replace_one" else None
    fitted = estimator_class(
        2.1, 0.7, **GIVEN, state_names=STATES, adjacency=adjacency, n_records=n_records, n_blocks=9
    ).fit(SMALL)
    fitted.release_.save(tmp_path / "release.npz")
    again = estimator_class(2.1, 0.7).fit_release(Release.load(tmp_path / "release.npz"))
    assert again.privacy_.guarantee == fitted.privacy_.guarantee
    assert getattr(again.graph_, "edges", None) == getattr(fitted.graph_, "edges", None)
    other = EdgeVoting if estimator_class is StableStructure else StableStructure
    with pytest.raises(ValueError, match="needs one of kind"):
        other(2.1, 0.7).fit_release(fitted.release_)
    with pytest.raises(ValueError, match="other variables"):
        estimator_class(2.1, 0.7, state_names={"a": [0, 1], "b": [0, 1]}).fit_release(fitted.release_)
    with pytest.raises(TypeError, match="pass a Release"):
        estimator_class(2.1, 0.7).fit_release(PEOPLE)


def test_a_fit_that_fails_after_the_release_hands_it_over(estimator_class, monkeypatch):
    estimator = estimator_class(2.1, 0.7, **GIVEN, state_names=STATES)
    before = dict(vars(estimator))
    reader = (
        (stable_structure, "stable_graph") if estimator_class is StableStructure else (edge_voting, "edge_frequencies")
    )
    monkeypatch.setattr(*reader, lambda release: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        estimator.fit(SMALL)
    assert vars(estimator) == before
    monkeypatch.undo()
    assert estimator.fit_release(caught.value.release).is_fitted
    assert any("fit_release" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"width": 0.0}, ValueError, "width=0.0"),
        ({"width": "wide"}, TypeError, "width='wide'"),
        ({"min_edge_weight": None}, ValueError, "min_edge_weight=None: pass the public lower bound"),
        ({"epsilon": 0}, ValueError, "epsilon=0"),
        ({"epsilon": None}, ValueError, "no budget"),
        ({"delta": 1.0}, ValueError, "delta=1.0"),
        ({"n_blocks": 0}, ValueError, "n_blocks=0"),
        ({"n_blocks": 2.5}, TypeError, "n_blocks=2.5"),
        ({"n_blocks": 10**6}, ValueError, "more than 65536 blocks"),
        ({"learner": "oracle"}, ValueError, "learner='oracle'"),
        ({"order": 5}, ValueError, "order=5"),
        ({"n_workers": 0}, ValueError, "n_workers=0"),
        ({"adjacency": "edge"}, ValueError, "adjacency='edge'"),
        ({"adjacency": "replace_one"}, ValueError, "n_records=None"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
        ({"state_names": None}, ValueError, "state_names=None"),
        ({"state_names": {"v0": [0, 1]}}, ValueError, "at least two"),
        ({"state_names": {**STATES, "zzz": [0, 1]}}, ValueError, r"no column for \['zzz'\]"),
        (
            {"state_names": {**STATES, "v0": [0, 1, 2]}, "learner": "inverse-covariance"},
            ValueError,
            r"\['v0'\] other numbers of states",
        ),
    ],
)
def test_bad_public_arguments_are_refused_before_anything_is_spent(
    estimator_class, monkeypatch, parameters, error, message
):
    charges = []
    charge = Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda self, *a, **k: charges.append(a) or charge(self, *a, **k))
    estimator = estimator_class(**{"width": 2.1, "min_edge_weight": 0.7, **GIVEN, "state_names": STATES, **parameters})
    before = dict(vars(estimator))
    with pytest.raises(error, match=message):
        estimator.fit(SMALL)
    assert charges == [] and vars(estimator) == before


def test_without_a_delta_edge_voting_is_named():
    with pytest.raises(ValueError, match="EdgeVoting"):
        StableStructure(2.1, 0.7, epsilon=1.0, state_names=STATES).fit(SMALL)
    for parameters, message in (({"max_edges": 0}, "max_edges=0"), ({"noise": "gaussian"}, "noise='gaussian'")):
        with pytest.raises(ValueError, match=message):
            EdgeVoting(2.1, 0.7, epsilon=1.0, state_names=STATES, **parameters).fit(SMALL)


@pytest.mark.parametrize("data", [SMALL[:0], SMALL[:1], SMALL.assign(v0=9), SMALL.assign(v0=0, v1=0, v2=0, v3=0)])
@pytest.mark.parametrize("learner", ["auto", "logistic", "chow-liu"])
def test_odd_records_have_a_defined_result(estimator_class, data, learner):
    estimator = estimator_class(2.1, 0.7, **GIVEN, learner=learner, state_names=STATES).fit(data)
    assert estimator.is_fitted and (estimator.graph_ is None or set(estimator.graph_.nodes) == set(STATES))


class TestFewAndManyBlocks:
    """Defined results, whatever the blocks; which one follows from the votes, as the noise is next to none."""

    SURE = {"epsilon": 1e4, "delta": 1e-2}

    def stable(self, data, n_blocks, **budget):
        budget = budget or self.SURE
        return StableStructure(2.1, 0.7, **budget, n_blocks=n_blocks, state_names=STATES, random_state=5).fit(data)

    def votes(self, data, n_blocks):
        return EdgeVoting(2.1, 0.7, rho=1e9, n_blocks=n_blocks, state_names=STATES, random_state=5).fit(data)

    def test_one_block_never_agrees_with_another(self):
        """Its vote could be any graph after one record changed: the distance is 0, whatever epsilon."""
        assert self.stable(PEOPLE, 1).noisy_distance_ == 0
        for budget in (self.SURE, GIVEN):
            estimator = self.stable(PEOPLE, 1, **budget)
            assert not estimator.stable_ and estimator.graph_ is None and estimator.n_blocks_ == 1
        votes = self.votes(PEOPLE, 1)
        assert wrong_edges(votes, TRUE) == 0
        np.testing.assert_array_equal(votes.edge_frequencies_, nx.to_numpy_array(TRUE))

    def test_two_blocks(self):
        """Two votes for a graph: one record leaves it a tie, so that nothing is released either."""
        estimator = self.stable(PEOPLE, 2)
        assert estimator.noisy_distance_ == 0 and not estimator.stable_
        assert self.stable(PEOPLE, 4).noisy_distance_ == 1
        votes = self.votes(PEOPLE, 2)
        assert wrong_edges(votes, TRUE) == 0
        half = self.votes(PEOPLE[:40], 2).edge_frequencies_
        assert set(np.unique(half)) <= {0.0, 0.5, 1.0} and 0.5 in half
        graph = self.votes(PEOPLE[:40], 2).graph_
        assert graph.number_of_edges() == (half > 0.5).sum() / 2  # half of the blocks is no majority

    @pytest.mark.parametrize("n", [0, 1, 9])
    def test_more_blocks_than_records(self, n):
        """Most blocks are empty: they have no graph to agree on."""
        estimator = self.stable(PEOPLE[:n], 50, **GIVEN)
        assert not estimator.stable_ and estimator.graph_ is None and estimator.edge_scores_ is None
        votes = self.votes(PEOPLE[:n], 50)
        assert votes.graph_.number_of_edges() == 0 and votes.edge_frequencies_.max() <= n / 50

    def test_a_graph_without_edges_is_an_answer(self):
        coins = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (8000, 4)), columns=list(STATES))
        estimator = self.stable(coins, 19, **GIVEN)
        assert estimator.stable_ and isinstance(estimator.graph_, UndirectedGraph)
        assert estimator.graph_.number_of_edges() == 0 and set(estimator.graph_.nodes) == set(STATES)
        again = StableStructure(2.1, 0.7).fit_release(estimator.release_)
        assert again.stable_ and again.graph_.number_of_edges() == 0
        assert self.votes(coins, 19).graph_.number_of_edges() == 0


@pytest.mark.parametrize("learner", ["logistic", "chow-liu"])
def test_fitted_objects_hold_no_records(estimator_class, learner):
    estimator = estimator_class(2.1, 0.7, 0.01, 1e-2, n_blocks=5, learner=learner, state_names=LEAK_STATES).fit(DATA)
    for item in (estimator, pickle.loads(pickle.dumps(estimator)), estimator.release_):
        assert leaks(item) == []
        assert NEEDLE.encode() not in pickle.dumps(item)


def test_arguments_are_stored_untouched_and_cloned(estimator_class):
    states = dict(STATES)
    estimator = estimator_class(width=-3, min_edge_weight="x", epsilon="many", state_names=states, learner=4)
    assert estimator.width == -3 and estimator.state_names is states and estimator.learner == 4
    for copy in (estimator.clone(), sklearn.base.clone(estimator)):
        assert copy.get_params() == estimator.get_params() and not copy.is_fitted
    fitted = estimator_class(2.1, 0.7, **GIVEN, state_names=STATES).fit(SMALL)
    assert fitted.is_fitted
    fitted.reset()
    assert not fitted.is_fitted and not hasattr(fitted, "release_")

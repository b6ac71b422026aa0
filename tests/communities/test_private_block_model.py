"""PrivateBlockModel: every method on every awkward graph, public errors only, and nothing of the edges left behind."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from pgmpy.base import UndirectedGraph

from benchmarks.block_models import degree_weights
from pgmpy_dp import Budget, Ledger, PrivateGraph, Release
from pgmpy_dp.communities import noisy_power
from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model
from pgmpy_dp.communities.private_block_model import METHODS, _automatic
from pgmpy_dp.estimators import PrivateBlockModel
from pgmpy_dp.theory.block_models import projection_accuracy
from tests.estimators.test_nothing_leaks import reachable
from tests.settings import settings

GRAPHS = {
    "empty": nx.empty_graph(9),
    "one edge": nx.Graph([(0, 1)]),
    "one edge of many": nx.disjoint_union(nx.Graph([(0, 1)]), nx.empty_graph(28)),
    "star": nx.star_graph(11),
    "complete": nx.complete_graph(10),
    "bipartite": nx.complete_bipartite_graph(5, 6),
    "disconnected": nx.disjoint_union(nx.complete_graph(6), nx.path_graph(5)),
    "self-loops": nx.Graph([(0, 0), (0, 1), (1, 1), (2, 2)]),
    "weighted": nx.Graph([("a", "b", {"weight": -7.5}), ("b", "c", {"weight": 0})]),
    "multigraph": nx.MultiGraph([(0, 1), (0, 1), (1, 2)]),
    "pgmpy": UndirectedGraph([("a", "b"), ("b", ("c", 1))]),
}
PLAIN = [method for method in METHODS if method != "auto"]


def budget_of(method: str, epsilon: float = 1.0) -> dict:
    return {"epsilon": epsilon, "delta": 1e-6} if method.startswith("sdp") else {"epsilon": epsilon}


@pytest.mark.parametrize(
    ("method", "name"),
    [
        pytest.param(method, name, marks=[pytest.mark.slow] * ((j + k) % 2))
        for j, method in enumerate(METHODS)
        for k, name in enumerate(GRAPHS)
    ],
)
def test_awkward_graphs_have_labels(method, name):
    graph = GRAPHS[name]
    found = PrivateBlockModel(method=method, **budget_of(method)).fit(graph)
    assert list(found.labels_) == list(graph.nodes) and set(found.labels_.values()) <= {0, 1}
    assert found.scores_.shape == (len(graph), 2) and np.isfinite(found.scores_).all()
    assert found.privacy_.guarantee.implies(Budget(**budget_of(method)).guarantee) and found.privacy_.unit is None
    table = found.predict_table()
    assert table.columns.tolist() == ["node", "label", "margin", "score_0", "score_1"]
    assert table["label"].tolist() == list(found.labels_.values()) and (table["margin"] >= 0).all()


@pytest.mark.parametrize("method", ["noisy-power", "randomized-response", "sdp", "sdp-exact"])
def test_more_than_two_communities(method):
    for graph in (nx.empty_graph(4), nx.complete_graph(4), nx.star_graph(6)):
        found = PrivateBlockModel(4, method, **budget_of(method)).fit(graph)
        assert set(found.labels_.values()) <= set(range(4)) and found.scores_.shape == (len(graph), 4)


def test_weak_recovery_as_published_where_its_noise_leaves_the_labels():
    """Above the threshold of theory, which says .949; the noise is that of the paper, on the diagonal too."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    truth = planted_labels(300, 2, rng)
    graph = sample_block_model(truth, 140.0, 0.9, rng)
    public = {"method": "sdp", "vote": False, "degree": 140.0, "bias": 0.9, "epsilon": 4.0, "delta": 1e-6}
    assert projection_accuracy(140.0, 0.9, 4.0, 1e-6) == pytest.approx(0.949, abs=5e-4)
    for analysis, least, most in [("published", 0.9, 0.98), ("tight", 0.99, 1.0)]:
        found = PrivateBlockModel(**public, analysis=analysis, random_state=1).fit(graph)
        assert found.release_.public["settings"]["analysis"] == analysis
        assert least <= 1 - error_rate(list(found.labels_.values()), truth) <= most


class TestRefusals:
    @pytest.mark.parametrize("method", METHODS)
    def test_nothing_is_spent(self, method):
        def ledgered(graph, **budget):
            return PrivateGraph(graph, ledger=Budget(**(budget or {"epsilon": 9.0, "delta": 0.1})))

        one, three = ledgered(nx.empty_graph(1)), ledgered(nx.path_graph(3))
        too_small = ledgered(nx.path_graph(30), epsilon=0.5)
        for graph, arguments, message in [
            (one, {}, "more than the graph's vertices, 1"),
            (three, {"n_communities": 5}, "two communities only|more than the graph's vertices, 3"),
            (three, {"n_communities": 1}, "n_communities=1"),
            (three, {"degree": -1.0}, "degree=-1.0"),
            (three, {"epsilon": None}, "no budget was given"),
            (three, {"random_state": -1}, "random_state"),
            (too_small, {}, "refused"),
        ]:
            with pytest.raises(ValueError, match=message):
                PrivateBlockModel(**{"method": method, **budget_of(method), **arguments}).fit(graph)
            assert graph.ledger.entries == ()

    @pytest.mark.parametrize("method", METHODS)
    def test_directed_graphs(self, method):
        with pytest.raises(TypeError, match="directed"):
            PrivateBlockModel(method=method, **budget_of(method)).fit(nx.DiGraph([(0, 1)]))

    def test_arguments_of_methods(self):
        graph = nx.path_graph(30)
        for arguments, kind, message in [
            ({"method": "louvain"}, ValueError, "pass one of"),
            ({"vote": 1}, TypeError, "vote=1"),
            ({"bias": 0.5}, ValueError, "bias=0.5 is used by"),
            ({"device": "cpu"}, ValueError, "device='cpu' is used by"),
            ({"analysis": "published"}, ValueError, "analysis='published' is about the noise of"),
            ({"method": "sdp", "delta": 1e-6, "device": "abacus"}, ValueError, "device='abacus' is not a device"),
            ({"method": "exponential", "n_communities": 3}, ValueError, "two communities"),
            ({"method": "sdp"}, ValueError, "needs Gaussian noise"),
            ({"method": "sdp-exact"}, ValueError, "needs Gaussian noise"),
            ({"method": "sdp", "delta": 1e-6, "bias": 1.5}, ValueError, "bias=1.5"),
            ({"method": "exponential", "n_communities": 3}, ValueError, "two communities"),
            ({"epsilon": 1e-18}, ValueError, "bury any count"),
        ]:
            with pytest.raises(kind, match=message):
                PrivateBlockModel(**{"epsilon": 1.0, **arguments}).fit(graph)
        with pytest.raises(ValueError, match=r"more than 64 .* use method 'noisy-power' or 'randomized-response'$"):
            PrivateBlockModel(method="exponential", epsilon=1.0).fit(nx.empty_graph(65))
        with pytest.raises(ValueError, match="at most 10000"):
            PrivateBlockModel(method="randomized-response", epsilon=1.0).fit(sp.csr_array((10_001, 10_001)))
        with pytest.raises(ValueError, match="nodes was given"):
            PrivateBlockModel(epsilon=1.0).fit(PrivateGraph(graph, ledger=Budget(epsilon=1.0)), nodes=range(30))
        private = PrivateGraph(graph, ledger=Budget(epsilon=1.0))
        with pytest.raises(ValueError, match="noise='gaussian'"):
            noisy_power.run(private, settings(PrivateBlockModel), Budget(epsilon=1.0), noise="gaussian")


class TestChoice:
    def test_by_public_numbers_alone(self):
        def chosen(graph, **budget):
            return PrivateBlockModel(random_state=0, **budget).fit(graph).method_

        for graph in (nx.empty_graph(300), nx.gnp_random_graph(300, 0.3, seed=0)):
            assert chosen(graph, epsilon=1.0) == "randomized-response"
            assert chosen(graph, epsilon=4.0, delta=1e-6) == "randomized-response"
        for graph in (sp.csr_array((3000, 3000)), nx.star_graph(2999)):
            assert chosen(graph, epsilon=1.0, delta=1e-6) == "noisy-power"
            assert chosen(graph, rho=0.1) == "noisy-power"
        assert chosen(sp.csr_array((20_000, 20_000)), epsilon=9.0) == "noisy-power"

    def test_the_number_of_communities_counts(self):
        def chosen(n, k, vote=None, **budget):
            return _automatic(n, settings(PrivateBlockModel, n_communities=k, vote=vote), Budget(**budget))

        approximate = {"epsilon": 1.0, "delta": 1e-6}
        assert [chosen(1500, k, **approximate) for k in (2, 3, 5, 8)] == ["noisy-power"] * 2 + [
            "randomized-response"
        ] * 2
        assert [chosen(n, 2, epsilon=1.0) for n in (11, 12, 22, 23)] == [
            *("randomized-response", "exponential", "exponential", "randomized-response")
        ]
        assert chosen(20, 3, epsilon=1.0) == chosen(20, 2, True, epsilon=1.0) == "randomized-response"

    def test_a_vote_where_degrees_bear_it(self):
        def voted(graph, **options):
            settings = {"method": "randomized-response", "epsilon": 4.0, "random_state": 0, **options}
            public = PrivateBlockModel(**settings).fit(graph).release_.public["settings"]
            return public["vote"], public["flip_rate"]

        dense, sparse = nx.gnp_random_graph(120, 0.3, seed=0), nx.path_graph(120)
        assert [voted(graph)[0] for graph in (dense, sparse)] == [True, False]
        assert [voted(dense, degree=d)[0] for d in (36.0, 0.1)] == [True, False]  # of the number that is given
        assert not voted(dense, n_communities=3)[0] and voted(sparse, vote=True)[0] and not voted(dense, vote=False)[0]
        # What is not spent on a vote is spent on the answers.
        rates = [voted(dense, **options)[1] for options in ({}, {"degree": 36.0}, {"n_communities": 3})]
        told = [1 / (1 + np.exp(4 * share)) for share in (0.73, 0.75, 1.0)]
        assert np.allclose(rates, told, atol=2**-15)


class TestAccuracy:
    """Seeded: each is the outcome of one stated seed."""

    def error(self, labels, degree, bias, weights=None, seed=1, **arguments) -> float:
        graph = sample_block_model(labels, degree, bias, np.random.default_rng(seed), weights)
        found = PrivateBlockModel(random_state=seed, **arguments).fit(graph)
        return error_rate(np.array(list(found.labels_.values())), labels)

    @pytest.fixture
    def rng(self):
        return np.random.default_rng(5)

    def test_noisy_power(self, rng):
        labels = planted_labels(2000, 2, rng)
        assert self.error(labels, 100.0, 0.8, method="noisy-power", epsilon=0.5, delta=1e-6) < 0.05
        assert self.error(labels, 100.0, 0.8, method="noisy-power", epsilon=2.0) < 0.01

    def test_answers(self, rng):
        labels = planted_labels(500, 2, rng)
        assert self.error(labels, 200.0, 0.8, method="randomized-response", epsilon=0.5) < 0.02
        assert self.error(labels, 60.0, 0.8, method="randomized-response", epsilon=2.0, vote=False) < 0.05

    def test_three_communities(self, rng):
        labels = planted_labels(600, 3, rng)
        for method in ("noisy-power", "randomized-response"):
            assert self.error(labels, 120.0, 0.4, n_communities=3, method=method, epsilon=2.0, delta=1e-6) < 0.05

    def test_unequal_sizes_and_degrees(self, rng):
        labels, weights = planted_labels(1000, [7, 3], rng), degree_weights(1000, rng)
        assert self.error(labels, 100.0, 0.7, weights, method="randomized-response", epsilon=2.0) < 0.05
        assert self.error(labels, 100.0, 0.7, weights, method="noisy-power", epsilon=2.0, delta=1e-6) < 0.05

    @pytest.mark.parametrize("method", ["sdp", "sdp-exact"])
    def test_projections(self, method, rng):
        labels = planted_labels(400, 2, rng)
        assert self.error(labels, 150.0, 0.9, method=method, epsilon=6.0, delta=1e-6) < 0.05

    def test_karate(self):
        graph = nx.karate_club_graph()
        truth = np.array([graph.nodes[v]["club"] != "Mr. Hi" for v in graph]).astype(int)
        errors = [
            error_rate(
                np.array(
                    list(
                        PrivateBlockModel(method="exponential", epsilon=2.0, random_state=s).fit(graph).labels_.values()
                    )
                ),
                truth,
            )
            for s in range(8)
        ]
        assert np.mean(errors) < 0.1


@pytest.mark.parametrize("method", [pytest.param(m, marks=[pytest.mark.slow] * (m == "exponential")) for m in PLAIN])
def test_a_fitted_estimator_holds_nothing_of_the_edges(method):
    rng = np.random.default_rng(2)
    graph = nx.gnp_random_graph(40, 0.12, seed=3)
    graph = nx.relabel_nodes(graph, {v: f"vertex {v}" for v in graph})
    found = PrivateBlockModel(method=method, **budget_of(method, 0.05)).fit(graph)
    degrees = np.array([d for _, d in graph.degree()])
    for item in (found, pickle.loads(pickle.dumps(found)), found.release_):
        for held in reachable(item):
            assert not isinstance(held, PrivateGraph | nx.Graph) and not sp.issparse(held)
            if isinstance(held, np.ndarray) and held.dtype.kind in "iuf":
                assert held.size < 40 * 39 // 2
                assert held.size != 40 or not np.array_equal(held.ravel(), degrees)
    assert rng.random() < 1 and found.labels_.keys() == set(graph.nodes)


class TestReleases:
    def test_they_are_saved_and_read_again(self, tmp_path):
        graph = nx.relabel_nodes(nx.karate_club_graph(), {v: ("member", v) for v in range(34)})
        found = PrivateBlockModel(epsilon=1.0).fit(graph)
        found.release_.save(tmp_path / "release.npz")
        again = PrivateBlockModel().fit_release(Release.load(tmp_path / "release.npz"))
        assert again.labels_ == found.labels_ and (again.scores_ == found.scores_).all()
        assert again.privacy_.guarantee == found.privacy_.guarantee and again.method_ == found.method_
        with pytest.raises(ValueError, match="n_communities=3"):
            PrivateBlockModel(3).fit_release(found.release_)
        with pytest.raises(TypeError, match="pass a Release"):
            PrivateBlockModel().fit_release("release.npz")

    def test_a_shared_ledger_pays_for_each_fit(self):
        graph = PrivateGraph(nx.karate_club_graph(), ledger=Ledger(Budget(epsilon=3.0), adjacency="edge"))
        PrivateBlockModel(epsilon=1.0).fit(graph)
        second = PrivateBlockModel(method="exponential", epsilon=2.0).fit(graph)
        assert len(graph.ledger.entries) == 2 and str(graph.ledger.left) == "0-DP"
        assert len(second.privacy_.entries) == 2
        with pytest.raises(ValueError, match="refused"):
            PrivateBlockModel(epsilon=0.1).fit(graph)

    def test_labels_are_by_node_whatever_holds_the_edges(self, tmp_path):
        frame = pd.DataFrame({"from": ["a", "b", "x"], "to": ["b", "c", "a"]})
        (tmp_path / "edges.csv").write_text("a,b\nb,c\nx,a\n")
        for graph in (frame, tmp_path / "edges.csv"):
            assert list(PrivateBlockModel(epsilon=1.0).fit(graph, nodes=["c", "b", "a"]).labels_) == ["c", "b", "a"]
            with pytest.raises(ValueError, match="nodes=None"):
                PrivateBlockModel(epsilon=1.0).fit(graph)

    @pytest.mark.parametrize("method", ["noisy-power", "exponential", "sdp", "sdp-exact"])
    def test_a_degree_is_estimated_unless_it_is_given(self, method):
        graph = nx.random_regular_graph(3, 40, seed=0)  # narrow enough for exact draws
        given = PrivateBlockModel(method=method, **budget_of(method, 5.0), degree=6.5).fit(graph)
        assert given.degree_ == 6.5 and len(given.release_.values) == 2
        estimated = PrivateBlockModel(method=method, **budget_of(method, 5.0)).fit(graph)
        count, noise = estimated.release_.values[2], estimated.release_.noise[2]
        # 60 edges, of which a split counts about a half; the noise is within 30 of its scales, surely.
        assert abs(int(count[0]) - (30 if method == "sdp-exact" else 60)) < 30 * noise.scale + 30
        halves = 2 if method == "sdp-exact" else 1
        assert estimated.degree_ == pytest.approx(halves * min(max(0.0, 2 * int(count[0]) / 40), 39.0))

    def test_a_seed_is_told(self):
        found = PrivateBlockModel(epsilon=1.0, random_state=3).fit(nx.karate_club_graph())
        again = PrivateBlockModel(epsilon=1.0, random_state=3).fit(nx.karate_club_graph())
        assert found.labels_ == again.labels_ and "NOT PRIVATE" in str(found.privacy_)


class TestChance:
    """Below the noise of the vote, or what the best halves of a random graph have, labels may be chance."""

    @pytest.mark.parametrize("method", ["noisy-power", "randomized-response"])
    @pytest.mark.parametrize(
        ("inside", "between", "epsilon", "chance"),
        [(0.1, 0.1, 8.0, True), (0.2, 0.03, 0.3, True), (0.2, 0.03, 4.0, False)],
    )
    def test_is_told_by_the_last_vote(self, method, inside, between, epsilon, chance):
        graph = nx.stochastic_block_model([150, 150], [[inside, between], [between, inside]], seed=1)
        found = PrivateBlockModel(epsilon=epsilon, method=method, random_state=2).fit(graph)
        assert found.status_.startswith("labels may be chance") == chance
        assert PrivateBlockModel().fit_release(found.release_).status_ == found.status_

    @pytest.mark.parametrize("method", ["sdp", "sdp-exact"])
    def test_is_told_by_the_vote_after_a_projection(self, method):
        pytest.importorskip("torch")
        for between, begin in [(0.5, "labels may be chance"), (0.05, "labels agree with what was released")]:
            graph = nx.stochastic_block_model([40, 40], [[0.5, between], [between, 0.5]], seed=1)
            found = PrivateBlockModel(epsilon=20.0, delta=1e-6, method=method, random_state=2).fit(graph)
            assert found.release_.public["settings"]["vote"] and found.status_.startswith(begin)
        if method == "sdp":
            silent = PrivateBlockModel(epsilon=20.0, delta=1e-6, method=method, vote=False, random_state=2).fit(graph)
            assert not silent.release_.public["settings"]["vote"] and "were not voted on" in silent.status_

    @pytest.mark.parametrize(("k", "epsilon"), [(2, 2.0), (4, 4.0)])
    def test_answers_tell_it_without_a_vote(self, k, epsilon):
        given = {"epsilon": epsilon, "method": "randomized-response", "random_state": 2, "vote": False}
        groups = [60] * k
        for inside, between, chance in [(0.15, 0.15, True), (0.5, 0.05, False)]:
            p = np.full((k, k), between) + (inside - between) * np.eye(k)
            found = PrivateBlockModel(k, **given).fit(nx.stochastic_block_model(groups, p, seed=1))
            assert found.status_.startswith("labels may be chance") == chance

    def test_nothing_is_said_where_nothing_was_released_that_could(self):
        given = {"epsilon": 4.0, "random_state": 2}
        assert "not voted on" in PrivateBlockModel(**given, method="exponential").fit(nx.path_graph(12)).status_

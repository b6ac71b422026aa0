"""PrivateIsing, PrivatePairwise and PrivateBinaryMRF: recovery by each method, releases, refusals, odd records."""

from __future__ import annotations

import itertools
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn.base
from pgmpy.base import UndirectedGraph
from pgmpy.inference import VariableElimination

from benchmarks.field_sampling import sample_field
from benchmarks.random_graphs import random_ising, random_pairwise
from pgmpy_dp import Budget, FewRecordsWarning, Ledger, MarkovNetwork, Number, PrivateTable, Release
from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivatePairwise
from pgmpy_dp.fields import field_base
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from tests.estimators.test_nothing_leaks import NEEDLE, leaks

STATES = {"a": ["no", "yes"], "b": [0, 1], "c": [False, True], "d": ["x", "y"]}
ALPHABETS = {"a": ["r", "g", "b"], "b": [0, 1], "c": [1, 2, 3]}
ISING = BinaryField(4, {(0, 1): 0.6, (1, 2): -0.5, (2, 3): 0.4, (0,): 0.3}).to_ising()
THIRD = BinaryField(4, {(0, 1, 2): 0.6, (2, 3): -0.5, (3,): 0.2})
COLOURS = np.array([[0.8, -0.8], [-0.4, 0.4], [-0.4, 0.4]])
PAIRS = Pairwise((np.zeros(3), np.array([-0.3, 0.3]), np.zeros(3)), {(0, 1): COLOURS}).centred()


def frame(field, states, n, seed=0) -> pd.DataFrame:
    codes = field.to_log_linear().sample(n, np.random.default_rng(seed))
    columns = {name: np.array(labels, dtype=object)[codes[:, i]] for i, (name, labels) in enumerate(states.items())}
    return pd.DataFrame(columns)


DATA = frame(ISING, STATES, 60_000)
SMALL = DATA[:400]
THIRD_DATA = frame(THIRD, STATES, 60_000)
PAIR_DATA = frame(PAIRS, ALPHABETS, 60_000)
CLASSES = [PrivateIsing, PrivatePairwise, PrivateBinaryMRF]
METHODS = ["moments", "frank-wolfe"]
LARGE = Budget(rho=1e6)


def steps(method: str) -> int | None:
    """Of a recovery: enough, and fewer than a huge budget asks for."""
    return 300 if method == "frank-wolfe" else None


@pytest.fixture(params=CLASSES, ids=lambda c: c.__name__)
def estimator_class(request):
    return request.param


class TestRecovery:
    @pytest.mark.parametrize("method", ["auto", *METHODS])
    def test_ising(self, method):
        estimator = PrivateIsing(
            2.0, rho=1e3, state_names=STATES, method=method, min_edge_weight=0.3, n_iter=steps(method)
        ).fit(DATA)
        np.testing.assert_allclose(estimator.weights_, ISING.weights, atol=0.06)
        np.testing.assert_allclose(estimator.fields_, ISING.fields, atol=0.06)
        assert isinstance(estimator.field_, Ising) and isinstance(estimator.graph_, UndirectedGraph)
        assert set(estimator.graph_.edges) == {("a", "b"), ("b", "c"), ("c", "d")}
        np.testing.assert_array_equal(estimator.edge_scores_, np.abs(estimator.weights_))
        assert (estimator.disagreement_ is not None) == (method == "frank-wolfe")
        given = VariableElimination(estimator.model_).query(["b"], evidence={"a": "yes"}, show_progress=False)
        values = given.values / given.values.sum()
        truth = ISING.to_log_linear().marginal([0, 1])[1]
        np.testing.assert_allclose(values, truth / truth.sum(), atol=0.03)

    @pytest.mark.parametrize("method", METHODS)
    def test_pairwise(self, method):
        estimator = PrivatePairwise(2.0, rho=1e3, state_names=ALPHABETS, method=method, n_iter=steps(method)).fit(
            PAIR_DATA
        )
        np.testing.assert_allclose(estimator.weights_["a", "b"], PAIRS.weights[0, 1], atol=0.1)
        np.testing.assert_allclose(estimator.fields_["b"], PAIRS.fields[1], atol=0.1)
        weak = estimator.edge_scores_[2, :2]
        assert (weak < 0.1).all() and estimator.edge_scores_[0, 1] > 0.6
        assert ("c" not in nx.node_connected_component(estimator.graph_, "a")) == (method != "frank-wolfe")

    @pytest.mark.parametrize("method", METHODS)
    def test_third_order(self, method):
        estimator = PrivateBinaryMRF(
            2.0,
            3,
            rho=1e3,
            state_names=STATES,
            method=method,
            min_edge_weight=0.4,
            n_iter=steps(method),
        ).fit(THIRD_DATA)
        assert abs(estimator.weights_["a", "b", "c"] - 0.6) < 0.08
        assert abs(estimator.weights_["c", "d"] + 0.5) < 0.08
        assert abs(estimator.fields_["d"] - 0.2) < 0.08
        others = [v for s, v in estimator.weights_.items() if s not in (("a", "b", "c"), ("c", "d"))]
        assert np.abs(others).max(initial=0.0) < 0.08
        truth = THIRD.to_log_linear().marginal([0, 1, 2])
        np.testing.assert_allclose(estimator.model_.marginal(["a", "b", "c"]).values, truth, atol=0.04)

    @pytest.mark.parametrize("method", METHODS)
    def test_only_edges_of_a_public_graph_interact(self, method):
        graph = nx.Graph([("b", "a"), ("c", "b")])
        graph.add_node("d")
        for given in (graph, [("a", "b"), ("b", "c")])[method == "frank-wolfe" :]:  # how it is said is for all the same
            estimator = PrivateIsing(
                2.0, rho=1e3, state_names=STATES, method=method, graph=given, n_iter=steps(method)
            ).fit(DATA)
            interacting = np.argwhere(estimator.weights_)
            assert {tuple(pair) for pair in interacting} <= {(0, 1), (1, 0), (1, 2), (2, 1)}
            assert abs(estimator.weights_[0, 1] - 0.6) < 0.08

    @pytest.mark.parametrize(
        ("estimator_class", "method"),
        [
            pytest.param(kind, method, marks=[pytest.mark.slow] * (method == "frank-wolfe" and kind is not CLASSES[1]))
            for kind in CLASSES
            for method in METHODS
        ],
    )
    def test_fields_of_variables_without_neighbours_are_learned(self, method, estimator_class):
        """P(d = y) is .6 and nothing else is in the graph of d."""
        data = DATA.assign(d=np.where(np.arange(len(DATA)) % 5 < 3, "y", "x"))
        for graph in ([("a", "b"), ("b", "c")], [])[method == "frank-wolfe" :]:  # with edges: the test before this one
            estimator = estimator_class(
                2.0, rho=1e3, state_names=STATES, method=method, graph=graph, n_iter=steps(method)
            ).fit(data)
            marginal = estimator.model_.marginal(["d"]).values
            np.testing.assert_allclose(marginal, [0.4, 0.6], atol=0.02)
            assert set(estimator.graph_.edges) <= {("a", "b"), ("b", "c"), ("a", "c")}
            assert graph or not estimator.edge_scores_.any()

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_moments_of_a_public_graph_get_less_noise(self, adjacency, estimator_class):
        graph = [("a", "b"), ("b", "c")]
        options = {"rho": 0.1, "state_names": STATES, "adjacency": adjacency, "n_records": len(DATA)}
        plain, given = (estimator_class(2.0, graph=g, **options).fit(DATA) for g in (None, graph))
        for less, more in zip(given.release_.noise, plain.release_.noise, strict=True):
            assert less.scale < more.scale
        if estimator_class is PrivateIsing:
            assert given.release_.values[0].shape == (4 + 2,) and plain.release_.values[0].shape == (4 + 6,)
        scores = given.edge_scores_
        assert (scores[[0, 1], [1, 2]] > 0.3).all() and not scores[[0, 0, 1, 2], [2, 3, 3, 3]].any()
        again = estimator_class(2.0).fit_release(given.release_)  # the release knows its graph
        np.testing.assert_array_equal(again.edge_scores_, scores)
        fewer = estimator_class(2.0, graph=graph[:1]).fit_release(given.release_)
        assert set(fewer.graph_.edges) == {("a", "b")}
        with pytest.raises(ValueError, match="which the release was not made for"):
            estimator_class(2.0, graph=[("a", "d")]).fit_release(given.release_)

    @pytest.mark.parametrize("queries", ["gaussian", "pmw", "sepfem"])
    def test_cliques_of_a_public_graph(self, queries):
        estimator = PrivateBinaryMRF(
            2.0,
            3,
            rho=1e3,
            state_names=STATES,
            queries=queries,
            graph=[("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")],
            min_edge_weight=0.4,
        ).fit(THIRD_DATA)
        assert estimator.release_["sums"].array.shape == (4 + 4 + 1,)
        assert set(estimator.weights_) <= {("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "b", "c")}
        assert abs(estimator.weights_["a", "b", "c"] - 0.6) < 0.15
        assert abs(estimator.weights_["c", "d"] + 0.5) < 0.15

    @pytest.mark.parametrize("queries", ["gaussian", "pmw", "sepfem"])
    def test_answers_of_queries(self, queries):
        estimator = PrivateBinaryMRF(2.0, 2, rho=100.0, state_names=STATES, queries=queries, n_records=60_000).fit(DATA)
        assert estimator.release_.public["method"] == {"gaussian": "noise"}.get(queries, queries)
        assert abs(estimator.weights_["a", "b"] - 0.6) < 0.15


class TestGraphs:
    """`min_edge_weight` makes structure learners of them: eta/2 is the threshold."""

    @pytest.mark.parametrize(
        ("estimator_class", "method", "budget"),
        [
            pytest.param(kind, method, budget, marks=[pytest.mark.slow] * ((i + j + k) % 2))
            for i, kind in enumerate(CLASSES)
            for j, method in enumerate(["moments", "frank-wolfe"])
            for k, budget in enumerate([{"rho": 0.1}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}])
        ],
    )
    def test_the_exact_graph_under_each_budget(self, estimator_class, budget, method):
        """A cycle of six variables."""
        rng = np.random.default_rng(3)
        field = random_ising(nx.cycle_graph(6), rng, weight=0.5)
        data = pd.DataFrame(sample_field(field, 60_000, rng), columns=list("uvwxyz"))
        estimator = estimator_class(
            1.0,
            **budget,
            **({"order": 2} if estimator_class is PrivateBinaryMRF else {}),
            state_names={name: [0, 1] for name in data},
            method=method,
            min_edge_weight=0.5,
            random_state=2,
        ).fit(data)
        true = {frozenset(data.columns[[i, j]]) for i, j in field.edges()}
        assert {frozenset(edge) for edge in estimator.graph_.edges} == true

    @pytest.mark.parametrize("budget", [{"rho": 0.1}, {"epsilon": 1.0}], ids=str)
    def test_tables_of_three_states(self, budget):
        rng = np.random.default_rng(4)
        field = random_pairwise(nx.path_graph(5), 3, rng, weight=0.8)
        data = pd.DataFrame(sample_field(field, 40_000, rng), columns=list("vwxyz"))
        estimator = PrivatePairwise(
            field.width, **budget, state_names={n: [0, 1, 2] for n in data}, min_edge_weight=0.8, random_state=2
        ).fit(data)
        true = {frozenset(data.columns[[i, j]]) for i, j in field.edges()}
        assert {frozenset(edge) for edge in estimator.graph_.edges} == true

    def test_the_threshold_is_half_of_it_and_belongs_to_the_graph(self, estimator_class):
        plain = estimator_class(2.0, rho=0.5, state_names=STATES, random_state=1, method="frank-wolfe", n_iter=60).fit(
            DATA
        )
        scores = plain.edge_scores_
        for value in np.sort(scores[np.triu_indices(4, 1)])[-3:]:
            for eta, least in ((2 * value, value), (2 * np.nextafter(value, np.inf), np.nextafter(value, np.inf))):
                again = estimator_class(2.0, min_edge_weight=eta).fit_release(plain.release_)
                expected = {frozenset(np.array(list(STATES))[pair]) for pair in np.argwhere(scores >= least)}
                assert {frozenset(edge) for edge in again.graph_.edges} == expected
                assert frozenset(np.array(list(STATES))[np.argwhere(scores == value)[0]]) in expected or least > value


class TestBudgets:
    @pytest.mark.parametrize(
        ("estimator_class", "method", "adjacency", "budget", "guarantee"),
        [
            pytest.param(kind, method, adjacency, *budget, marks=[pytest.mark.slow] * ((h + i + j + k) % 2))
            for h, kind in enumerate(CLASSES)
            for i, method in enumerate(METHODS)
            for j, adjacency in enumerate(["add_remove", "replace_one"])
            for k, budget in enumerate(
                [
                    ({"epsilon": 1.0}, PureDP(1.0)),
                    ({"epsilon": 1.0, "delta": 1e-5}, ZCDP(approx_to_zcdp(1.0, 1e-5))),
                    ({"rho": 0.2}, ZCDP(0.2)),
                ]
            )
        ],
    )
    def test_each_kind_of_budget(self, estimator_class, method, adjacency, budget, guarantee):
        n_records = 400 if adjacency == "replace_one" else None
        estimator = estimator_class(
            2.0, **budget, state_names=STATES, adjacency=adjacency, n_records=n_records, method=method, n_iter=6
        )
        estimator.fit(SMALL)
        # With a delta, Laplace noise may be the smaller; it is then charged as pure.
        spent = estimator.privacy_.guarantee
        assert spent == guarantee or (method == "moments" and "delta" in budget and spent == PureDP(1.0))
        assert [entry.cost for entry in estimator.privacy_.entries] == [spent]
        assert str(estimator.privacy_.adjacency) == adjacency and estimator.privacy_.unit is None
        assert np.isfinite(estimator.edge_scores_).all()

    def test_several_estimators_share_a_ledger(self):
        table = PrivateTable(SMALL, STATES, ledger=Budget(rho=1.0))
        PrivateIsing(2.0, rho=0.4).fit(table)
        second = PrivateBinaryMRF(2.0, order=2, rho=0.4, method="frank-wolfe").fit(table)
        assert len(second.privacy_.entries) == 2 and table.ledger.left == ZCDP(1.0 - 0.4 - 0.4)
        before = dict(vars(second))
        with pytest.raises(BudgetExceeded):
            second.fit(table)
        assert vars(second) == before and len(table.ledger.entries) == 2
        with pytest.raises(ValueError, match="adjacency='replace_one' differs"):
            PrivateIsing(2.0, rho=0.1, adjacency="replace_one").fit(table)


class TestReleases:
    @pytest.mark.parametrize("method", METHODS)
    def test_fitting_the_release_again_gives_the_same(self, estimator_class, method, tmp_path):
        fitted = estimator_class(2.0, rho=0.5, state_names=STATES, method=method).fit(SMALL)
        fitted.release_.save(tmp_path / "release.npz")
        again = estimator_class(2.0).fit_release(Release.load(tmp_path / "release.npz"))
        np.testing.assert_array_equal(again.edge_scores_, fitted.edge_scores_)
        assert again.privacy_.guarantee == fitted.privacy_.guarantee and again.status_ == fitted.status_
        assert set(again.graph_.edges) == set(fitted.graph_.edges)
        for ours, theirs in zip(again.model_.factors, fitted.model_.factors, strict=True):
            np.testing.assert_array_equal(ours.values, theirs.values)

    def test_releases_of_other_models_are_refused(self):
        ising = PrivateIsing(2.0, rho=1.0, state_names=STATES, method="frank-wolfe").fit(SMALL).release_
        with pytest.raises(ValueError, match="family 'ising'"):
            PrivateBinaryMRF(2.0).fit_release(ising)
        with pytest.raises(ValueError, match="other variables"):
            PrivateIsing(2.0, state_names={"a": [0, 1], "b": [0, 1]}).fit_release(ising)
        moments = PrivateIsing(2.0, rho=1.0, state_names=STATES).fit(SMALL).release_
        with pytest.raises(ValueError, match="kind 'parities'"):
            PrivatePairwise(2.0).fit_release(moments)
        with pytest.raises(ValueError, match="order 2"):
            PrivateBinaryMRF(2.0, order=3).fit_release(moments)
        with pytest.raises(TypeError, match="pass a Release"):
            PrivateIsing(2.0).fit_release(DATA)

    def test_a_fit_that_fails_after_the_release_hands_it_over(self, estimator_class, monkeypatch):
        estimator = estimator_class(2.0, rho=0.5, state_names=STATES)
        before = dict(vars(estimator))
        monkeypatch.setattr(field_base, "field_of", lambda *a, **k: 1 / 0)
        with pytest.raises(ZeroDivisionError) as caught:
            estimator.fit(SMALL)
        assert vars(estimator) == before
        monkeypatch.undo()
        assert estimator.fit_release(caught.value.release).is_fitted
        assert any("fit_release" in note for note in caught.value.__notes__)


class TestRefusals:
    @pytest.fixture(autouse=True)
    def charges(self, monkeypatch):
        made = []
        charge = Ledger.charge
        monkeypatch.setattr(Ledger, "charge", lambda self, *a, **k: made.append(a) or charge(self, *a, **k))
        return made

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"width": 0.0}, ValueError, "width=0.0"),
            ({"width": -1}, ValueError, "width=-1"),
            ({"width": "wide"}, TypeError, "width='wide'"),
            ({"width": None}, ValueError, "width=None"),
            ({"rho": None}, ValueError, "no budget"),
            ({"epsilon": 1.0}, ValueError, "rho=1.0 was passed with epsilon=1.0"),
            ({"adjacency": "edge"}, ValueError, "adjacency='edge'"),
            ({"adjacency": "replace_one"}, ValueError, "n_records=None"),
            ({"graph": [("a", "zzz")]}, ValueError, "unknown variables 'zzz'"),
            ({"graph": nx.DiGraph([("a", "b")])}, ValueError, "graph is a DiGraph"),
            ({"graph": [("a", "a")]}, ValueError, "graph holds"),
            ({"graph": 7}, TypeError, "graph=7"),
            ({"n_iter": 1}, ValueError, "n_iter=1"),
            ({"sparse": "yes"}, TypeError, "sparse='yes'"),
            ({"min_edge_weight": -0.1}, ValueError, "min_edge_weight=-0.1"),
            ({"memory_limit": 0}, ValueError, "memory_limit=0"),
            ({"random_state": -1}, ValueError, "random_state=-1"),
            ({"state_names": None}, ValueError, "state_names=None"),
            ({"state_names": {"a": ["no", "yes"]}}, ValueError, "at least two"),
            ({"state_names": {**STATES, "b": Number(0, 1)}}, ValueError, r"bounds for \['b'\]"),
            ({"state_names": {**STATES, "e": [0, 1]}}, ValueError, r"no column for \['e'\]"),
        ],
    )
    def test_public_arguments(self, charges, estimator_class, method, parameters, error, message):
        estimator = estimator_class(**{"width": 2.0, "rho": 1.0, "state_names": STATES, "method": method, **parameters})
        before = dict(vars(estimator))
        with pytest.raises(error, match=message):
            estimator.fit(SMALL)
        assert charges == [] and vars(estimator) == before

    @pytest.mark.parametrize(
        ("estimator", "message"),
        [
            (PrivateIsing(2.0, rho=1.0, state_names=STATES, method="magic"), "method='magic'"),
            (PrivateIsing(2.0, rho=1.0, state_names={**STATES, "b": [0, 1, 2]}), r"\['b'\] other than two states"),
            (PrivateBinaryMRF(2.0, 3, rho=1.0, state_names={**STATES, "b": [0, 1, 2]}), r"\['b'\] other than two"),
            (PrivateBinaryMRF(2.0, 5, rho=1.0, state_names=STATES), "order=5 is more than the 4 variables"),
            (PrivateBinaryMRF(2.0, 1, rho=1.0, state_names=STATES), "order=1"),
            (PrivateBinaryMRF(2.0, rho=1.0, state_names=STATES, queries="all"), "queries='all'"),
            (
                PrivateBinaryMRF(
                    2.0, 2, rho=1.0, state_names={f"v{i}": [0, 1] for i in range(30)}, queries="pmw"
                ),
                r"2\*\*30 possible records, which would take .* GiB",
            ),
        ],
    )  # fmt: skip
    def test_of_one_estimator(self, charges, estimator, message):
        names = estimator.state_names
        with pytest.raises(ValueError, match=message):
            estimator.fit(SMALL if set(names) == set(STATES) else pd.DataFrame({name: [] for name in names}))
        assert charges == []


class TestRecords:
    @pytest.mark.parametrize(
        ("estimator_class", "method"),
        [
            pytest.param(kind, method, marks=[pytest.mark.slow] * ((j + k) % 2))
            for j, kind in enumerate(CLASSES)
            for k, method in enumerate(METHODS)
        ],
    )
    def test_odd_records_have_a_defined_result(self, estimator_class, method):
        odd = {
            "none": SMALL[:0],
            "outside": SMALL.assign(a="?"),
            "constant": SMALL.assign(a="no", b=0, c=True, d="x"),
            "fewer than variables": SMALL[:2],
            "a column of nulls": SMALL.assign(c=None),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", FewRecordsWarning)
            for data, rho in itertools.product(odd.values(), (0.01, 1e6)):
                estimator = estimator_class(1.5, rho=rho, state_names=STATES, method=method, n_iter=8).fit(data)
                assert np.isfinite(estimator.edge_scores_).all()
                assert np.isfinite(estimator.model_.marginal(["a"]).values).all()

    @pytest.mark.parametrize("method", METHODS)
    def test_fitted_objects_hold_no_records(self, estimator_class, method):
        data = DATA[:7919].assign(diary=NEEDLE)
        estimator = estimator_class(2.0, rho=1e-7, state_names=STATES, method=method, n_iter=5).fit(data)
        for item in (estimator, pickle.loads(pickle.dumps(estimator)), estimator.model_):
            assert leaks(item) == []
            assert NEEDLE.encode() not in pickle.dumps(item)


class TestConventions:
    def test_arguments_are_stored_untouched_and_cloned(self, estimator_class):
        states = dict(STATES)
        estimator = estimator_class(width=-3, epsilon="many", state_names=states, graph="nonsense", method=4)
        assert estimator.width == -3 and estimator.state_names is states and estimator.method == 4
        for copy in (estimator.clone(), sklearn.base.clone(estimator)):
            assert copy.get_params() == estimator.get_params() and not copy.is_fitted

    def test_fitting_and_resetting(self, estimator_class):
        estimator = estimator_class(2.0, rho=1.0, state_names=STATES)
        assert estimator.fit(SMALL) is estimator and estimator.is_fitted
        assert isinstance(estimator.model_, MarkovNetwork) and estimator.model_.privacy == estimator.privacy_
        assert set(estimator.model_.nodes) == set(STATES) == set(estimator.graph_.nodes)
        estimator.reset()
        assert not estimator.is_fitted and not hasattr(estimator, "weights_") and estimator.width == 2.0

    def test_many_variables_get_a_model_too(self):
        """A dense fit of 40 variables has no exact inference; `model_` then runs on loopy belief propagation."""
        states = {f"v{i}": [0, 1] for i in range(40)}
        codes = np.random.default_rng(0).integers(0, 2, (500, 40))
        data = pd.DataFrame(codes, columns=list(states))
        estimator = PrivateIsing(2.0, rho=0.1, state_names=states, method="frank-wolfe", n_iter=40).fit(data)
        assert estimator.model_.inference != "exact"
        np.testing.assert_allclose(estimator.model_.marginal(["v0"]).values.sum(), 1.0)

"""Fitting: what comes out, from which data, in which order, and what a release allows."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pgmpy import config
from pgmpy.inference import BeliefPropagation, VariableElimination

from benchmarks.divergence import kl_divergence
from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Release, Schema, list_estimators
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE, PrivateNetwork
from pgmpy_dp.learning import collective_base
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from tests.estimators.shapes import make_network

GRAPH = nx.Graph([("a", "b"), ("b", "c")])
GRAPH.add_node("d")
SIZES = {"a": 2, "b": 3, "c": 2, "d": 4}
TRUTH = make_network(GRAPH, SIZES, scale=0.8)
STATES = TRUTH.states
DATA = TRUTH.sample(20_000, random_state=0, method="independent")


# Those that learn from tables; test_private_sgd.py and test_private_markov_chain.py have the others.
@pytest.fixture(
    params=list_estimators(guarantees="pure", task="parameters", data_kind="discrete"), ids=lambda kind: kind.__name__
)
def estimator_class(request):
    return request.param


def divergence(model):
    return kl_divergence(TRUTH.to_log_linear(), model.to_log_linear())


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        ({"epsilon": 2.0}, "discrete_laplace"),
        ({"epsilon": 2.0, "delta": 1e-6}, None),
        ({"rho": 0.5}, "discrete_gaussian"),
        ({"epsilon": 4.0, "adjacency": "replace_one", "n_records": len(DATA)}, "discrete_laplace"),
    ],
)
def test_with_much_data_every_estimator_finds_the_truth(estimator_class, budget, mechanism):
    estimator = estimator_class(state_names=STATES, **budget).fit(GRAPH, DATA)
    assert divergence(estimator.model_) < 0.01
    assert mechanism in (None, estimator.privacy_.mechanism)
    assert len(estimator.release_.values) == 3
    assert estimator.n_records_ == pytest.approx(len(DATA), rel=0.02)
    assert (estimator.n_records_sd_ == 0) == ("n_records" in budget)
    assert estimator.parameters_ is estimator.model_.factors
    assert isinstance(estimator.status_, str)
    assert np.isfinite(estimator.objective_)


def test_the_result_is_a_pgmpy_model(estimator_class):
    model = MarkovNetwork(GRAPH).fit(DATA, estimator_class(epsilon=2.0, state_names=STATES))
    expected = TRUTH.marginal(["c"]).values
    eliminated = VariableElimination(model).query(["c"], show_progress=False)
    np.testing.assert_allclose(eliminated.values, model.marginal(["c"]).values, atol=1e-12)
    np.testing.assert_allclose(eliminated.values, expected, atol=0.03)
    conditional = BeliefPropagation(model).query(["c"], evidence={"a": "a=1"}, show_progress=False)
    assert conditional.state_names == {"c": STATES["c"]}
    assert str(model.privacy.guarantee) == "2-DP"


def test_model_fit_does_not_share_factors_with_the_estimator():
    estimator = NaiveMLE(epsilon=2.0, state_names=STATES)
    model = MarkovNetwork(GRAPH).fit(DATA, estimator)
    model.factors[0].values[:] = 0
    assert estimator.model_.get_partition_function() == pytest.approx(1.0)


@pytest.mark.parametrize("estimator", [None, CollectiveMAP, "CollectiveMAP", 1.0])
def test_model_fit_wants_an_estimator_instance(estimator):
    with pytest.raises(TypeError, match="estimator="):
        MarkovNetwork(GRAPH).fit(DATA, estimator)


# -- the release ---------------------------------------------------------------------------------


def test_a_release_is_fitted_again_without_data_or_cost(estimator_class, tmp_path):
    first = CollectiveMAP(epsilon=1.0, state_names=STATES).fit(GRAPH, DATA)
    first.release_.save(tmp_path / "release.npz")
    release = Release.load(tmp_path / "release.npz")
    again = estimator_class().fit_release(GRAPH, release)
    assert again.is_fitted
    assert again.privacy_.guarantee == PureDP(1.0)
    assert again.privacy_.entries == ()
    assert again.release_ == first.release_
    if estimator_class is CollectiveMAP:
        for one, other in zip(first.parameters_, again.parameters_, strict=True):
            assert one.values.tobytes() == other.values.tobytes()


def test_the_parameters_are_a_function_of_the_release_alone():
    estimator = CollectiveMAP(epsilon=1.0, state_names=STATES).fit(GRAPH, DATA)
    fit = collective_map(noisy_marginals(estimator.release_, tuple(GRAPH.nodes)))
    assert kl_divergence(fit.model, estimator.model_.to_log_linear()) < 1e-12


def test_a_release_must_match_the_graph():
    release = NaiveMLE(epsilon=1.0, state_names=STATES).fit(GRAPH, DATA).release_
    larger = GRAPH.copy()
    larger.add_edge("a", "c")
    with pytest.raises(ValueError, match=r"no table covers .*\('a', 'c'\)"):
        NaiveMLE().fit_release(larger, release)
    with pytest.raises(ValueError, match=r"\['d'\] are not in the model"):
        NaiveMLE().fit_release(nx.Graph(GRAPH.edges), release)
    with pytest.raises(ValueError, match="not in state_names"):
        NaiveMLE().fit_release(nx.Graph([("a", "zzz")]), release)
    smaller = nx.Graph([("a", "b")])
    smaller.add_nodes_from("cd")
    with pytest.raises(ValueError, match="not a clique of the model"):
        NaiveMLE().fit_release(smaller, release)
    with pytest.raises(ValueError, match=r"other states for \['a'\]"):
        NaiveMLE(state_names={**STATES, "a": ["x", "y"]}).fit_release(GRAPH, release)
    with pytest.raises(TypeError, match="Release"):
        NaiveMLE().fit_release(GRAPH, DATA)


# -- one table, several fits ---------------------------------------------------------------------


def test_several_fits_share_one_ledger():
    table = PrivateTable(DATA, Schema(STATES), ledger=Ledger(Budget(epsilon=1.0)))
    first = NaiveMLE(epsilon=0.25).fit(GRAPH, table)
    second = CollectiveEM(epsilon=0.5).fit(GRAPH, table)
    assert [entry.cost for entry in table.ledger.entries] == [PureDP(0.25), PureDP(0.5)]
    assert len(first.privacy_.entries) == 1
    assert second.privacy_.entries == table.ledger.entries
    assert second.privacy_.guarantee == PureDP(0.5)
    before = table.ledger.entries
    with pytest.raises(BudgetExceeded, match=r"0\.5-DP was asked.*0\.75-DP.*0\.25-DP is left"):
        CollectiveMAP(epsilon=0.5).fit(GRAPH, table)
    assert table.ledger.entries == before


def test_a_rho_ledger_pays_for_gaussian_tables():
    table = PrivateTable(DATA, STATES, ledger=Budget(rho=0.2))
    estimator = CollectiveMAP(rho=0.2).fit(GRAPH, table)
    assert estimator.privacy_.guarantee == ZCDP(0.2)
    assert table.ledger.left == ZCDP(0.0)


def test_the_graph_may_use_some_columns_of_a_shared_table():
    table = PrivateTable(DATA, STATES, ledger=Budget(epsilon=1.0))
    estimator = NaiveMLE(epsilon=1.0).fit(nx.Graph([("a", "b")]), table)
    assert estimator.release_.scopes == (("a", "b"),)
    assert table.ledger.entries[0].columns == ("a", "b")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"adjacency": "replace_one"}, "adjacency='replace_one' differs from the PrivateTable's 'add_remove'"),
        ({"n_records": 5}, "n_records=5 differs from the PrivateTable's None"),
        ({"state_names": {"a": [0, 1]}}, "state_names=.* differs from the PrivateTable's"),
    ],
)
def test_parameters_that_contradict_the_table_are_refused(parameters, message):
    table = PrivateTable(DATA, STATES, ledger=Budget(epsilon=1.0))
    with pytest.raises(ValueError, match=message):
        NaiveMLE(epsilon=1.0, **parameters).fit(GRAPH, table)
    assert table.ledger.entries == ()


# -- data ----------------------------------------------------------------------------------------


def test_every_kind_of_frame_gives_the_same_release():
    def release(frame):
        return NaiveMLE(epsilon=1.0, state_names=STATES, random_state=1).fit(GRAPH, frame).release_

    expected = release(DATA)
    frames = [
        DATA.sample(frac=1.0, random_state=0),  # the order of records is no part of the tables
        DATA.astype("category"),
        pl.from_pandas(DATA),
        pl.from_pandas(DATA).lazy(),
        pa.Table.from_pandas(DATA),
        DATA.assign(unused=1.0),
    ]
    assert all(release(frame) == expected for frame in frames)


def test_states_in_another_order_permute_the_result():
    def fitted(states):
        return NaiveMLE(epsilon=5.0, state_names=states).fit(GRAPH, DATA).model_.marginal(["b"])

    backwards = fitted({**STATES, "b": STATES["b"][::-1]})
    assert backwards.state_names["b"] == STATES["b"][::-1]
    np.testing.assert_allclose(backwards.values[::-1], TRUTH.marginal(["b"]).values, atol=0.02)


@pytest.mark.parametrize(
    "frame",
    [
        DATA.iloc[:0],
        DATA.assign(a="somewhere else"),
        DATA.assign(a=np.nan),
        DATA.astype(object).where(DATA["a"] == "a=0", None),
    ],
    ids=["empty", "all outside", "all missing", "some missing"],
)
def test_no_table_of_records_is_an_error(estimator_class, frame):
    estimator = estimator_class(epsilon=1.0, state_names=STATES).fit(GRAPH, frame)
    assert estimator.model_.get_partition_function() == pytest.approx(1.0)
    assert all(np.isfinite(factor.values).all() for factor in estimator.parameters_)


def test_a_public_count_of_zero_is_no_error(estimator_class):
    estimator = estimator_class(epsilon=1.0, state_names=STATES, adjacency="replace_one", n_records=0)
    assert estimator.fit(GRAPH, DATA.iloc[:0]).n_records_ == 1


def test_missing_values_take_the_other_state():
    frame = pd.DataFrame({"a": ["x", None, "zzz", "x"] * 1000})
    schema = Schema({"a": ["x", "other"]}, other={"a": "other"})
    graph = nx.Graph()
    graph.add_node("a")
    model = NaiveMLE(epsilon=2.0, state_names=schema).fit(graph, frame).model_
    np.testing.assert_allclose(model.marginal(["a"]).values, [0.5, 0.5], atol=0.02)


# -- options -------------------------------------------------------------------------------------


def test_cliques_and_weights_reach_the_release():
    graph = nx.complete_graph(["a", "b", "c"])
    states = {name: STATES[name] for name in "abc"}
    estimator = CollectiveMAP(epsilon=1.0, state_names=states, cliques=[("a", "b", "c"), ("b",)], weights=[3, 1])
    estimator.fit(graph, DATA)
    assert estimator.release_.scopes == (("a", "b", "c"), ("b",))
    np.testing.assert_allclose([noise.scale for noise in estimator.release_.noise], [4 / 3, 4.0])
    assert [set(factor.variables) for factor in estimator.parameters_] == [{"a", "b", "c"}]


def test_a_seed_makes_the_release_repeatable_and_marks_it():
    def fitted(seed):
        with pytest.warns(UserWarning, match="NOT private"):
            return NaiveMLE(epsilon=1.0, state_names=STATES, random_state=seed).fit(GRAPH, DATA)

    assert fitted(3).release_ == fitted(3).release_
    assert fitted(3).release_ != fitted(4).release_
    assert fitted(3).privacy_.reproducible
    assert "NOT PRIVATE" in str(fitted(3).privacy_)
    assert fitted(3).privacy_.entries[0].reproducible


def test_the_noise_of_unseeded_fits_differs():
    np.random.seed(0)  # noqa: NPY002 - the global seed must have no influence
    first = NaiveMLE(epsilon=0.1, state_names=STATES).fit(GRAPH, DATA).release_
    np.random.seed(0)  # noqa: NPY002
    assert NaiveMLE(epsilon=0.1, state_names=STATES).fit(GRAPH, DATA).release_ != first


@pytest.mark.parametrize("switch", [True, False])
def test_progress_bars_obey_pgmpy_s_switch(switch, monkeypatch):
    bars = []

    class Bar(collective_base.tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            self.steps, self.shown = 0, not self.disable  # closing a bar disables it
            bars.append(self)

        def update(self, n=1):
            self.steps += n

    monkeypatch.setattr(collective_base, "tqdm", Bar)
    config.set_show_progress(switch)
    estimator = CollectiveEM(epsilon=1.0, state_names=STATES, published=True, stop=None, n_iter=7).fit(GRAPH, DATA)
    (bar,) = bars
    assert bar.shown is switch
    assert bar.steps == estimator.n_iter_ == bar.total == 7


@pytest.mark.parametrize(
    ("learner", "most"),
    [
        (NaiveMLE(epsilon=1.0, state_names=STATES, max_iter=30), 45),
        (CollectiveMAP(epsilon=1.0, state_names=STATES, n_rounds=2, max_iter=20), 410),
        (CollectiveEM(epsilon=1.0, state_names=STATES, n_iter=20), 450),
        (PrivateNetwork(epsilon=1.0, state_names=STATES), 830),
    ],
)
def test_the_bar_of_a_fit_has_an_end_that_iterations_do_not_pass(learner, most, monkeypatch):
    """The end is public: by the options alone."""
    ends = []

    class Bar(collective_base.tqdm):
        def __init__(self, **options):
            super().__init__(**options)
            ends.append([options, 0])

        def update(self, n=1):
            ends[-1][1] += n

    monkeypatch.setattr(collective_base, "tqdm", Bar)
    learner.fit(*([] if isinstance(learner, PrivateNetwork) else [GRAPH]), DATA)
    (options, steps) = ends[-1]  # a search has a bar of its own, of the budget
    assert 0 < steps <= options["total"] == most
    assert "of at most" in options["bar_format"]

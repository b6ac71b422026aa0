"""PrivateSGD: what it learns, refuses and leaves unchanged; the learner itself is tested in tests/private."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from benchmarks.divergence import kl_divergence
from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Release, Schema
from pgmpy_dp.estimators import NaiveMLE, PrivateSGD
from pgmpy_dp.private.curator import charged_base, schedule
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.tables.collective.published import gradient_ascent, private_sgd
from tests.estimators.shapes import make_network

GRAPH = nx.Graph([("a", "b"), ("b", "c")])
GRAPH.add_node("d")
TRUTH = make_network(GRAPH, {"a": 2, "b": 3, "c": 2, "d": 4}, scale=0.8)
STATES = TRUTH.states
DATA = TRUTH.sample(20_000, random_state=0, method="independent")
BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def divergence(model):
    return kl_divergence(TRUTH.to_log_linear(), model.to_log_linear())


@pytest.mark.parametrize(
    ("budget", "guarantee"),
    [
        ({"epsilon": 2.0, "delta": 1e-6}, ApproxDP(2.0, 1e-6)),
        ({"rho": 0.1}, ZCDP(0.1)),
        ({"epsilon": 4.0, "delta": 1e-5, "adjacency": "replace_one", "n_records": len(DATA)}, ApproxDP(4.0, 1e-5)),
    ],
)
def test_with_much_data_it_finds_the_truth(budget, guarantee):
    estimator = PrivateSGD(state_names=STATES, **budget).fit(GRAPH, DATA)
    assert divergence(estimator.model_) < 0.01
    assert estimator.privacy_.guarantee == guarantee
    assert estimator.n_records_ == pytest.approx(len(DATA), rel=0.02)
    assert (estimator.n_records_sd_ == 0) == ("n_records" in budget)
    assert estimator.n_iter_ == 200 and not estimator.converged_ and np.isnan(estimator.objective_)
    assert [entry.cost for entry in estimator.privacy_.entries] == [guarantee]


def test_every_shape_of_graph(shape):
    graph, sizes = shape
    truth = make_network(graph, sizes, scale=0.3)
    data = truth.sample(2000, random_state=1, method="independent")
    estimator = PrivateSGD(epsilon=5.0, delta=1e-4, n_steps=60, state_names=truth.states).fit(graph, data)
    uniform = MarkovNetwork.from_log_linear(make_network(graph, sizes, scale=0.0).to_log_linear(), graph, truth.states)
    apart = [kl_divergence(truth.to_log_linear(), m.to_log_linear()) for m in (estimator.model_, uniform)]
    assert apart[0] < apart[1]


def test_a_release_is_fitted_again_without_data_or_cost(tmp_path):
    first = PrivateSGD(state_names=STATES, **BUDGET).fit(GRAPH, DATA)
    first.release_.save(tmp_path / "release.npz")
    again = PrivateSGD().fit_release(GRAPH, Release.load(tmp_path / "release.npz"))
    assert again.release_ == first.release_ and again.privacy_.entries == ()
    assert again.n_records_ == first.n_records_ and again.n_records_sd_ == first.n_records_sd_ > 0
    for one, other in zip(first.parameters_, again.parameters_, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


def test_releases_of_another_kind_are_refused():
    tables = NaiveMLE(epsilon=1.0, state_names=STATES).fit(GRAPH, DATA).release_
    steps = PrivateSGD(state_names=STATES, n_steps=5, **BUDGET).fit(GRAPH, DATA).release_
    with pytest.raises(ValueError, match=r"kind 'marginals'.*kind 'log_potentials'"):
        PrivateSGD().fit_release(GRAPH, tables)
    with pytest.raises(ValueError, match=r"kind 'log_potentials'.*kind 'marginals'"):
        NaiveMLE().fit_release(GRAPH, steps)


@pytest.mark.parametrize(
    "frame",
    [DATA.iloc[:0], DATA.assign(a="somewhere else"), DATA.assign(a=np.nan)],
    ids=["empty", "outside", "missing"],
)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_no_table_of_records_is_an_error(frame, adjacency):
    n_records = 0 if adjacency == "replace_one" else None
    options = {"state_names": STATES, "adjacency": adjacency, "n_records": n_records, "n_steps": 20}
    estimator = PrivateSGD(**options, **BUDGET).fit(GRAPH, frame)
    assert estimator.model_.get_partition_function() == pytest.approx(1.0)
    assert all(np.isfinite(factor.values).all() for factor in estimator.parameters_)
    assert estimator.n_records_ >= 1


def test_the_same_draw_whatever_the_engine_and_the_order_of_columns():
    def release(frame):
        return PrivateSGD(state_names=STATES, random_state=1, n_steps=20, **BUDGET).fit(GRAPH, frame).release_

    assert release(DATA) == release(DATA[DATA.columns[::-1]]) == release(DATA.astype("category"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"delta": 0.0}, "delta=0 .*no pure guarantee"),
        ({"n_steps": 0}, "n_steps=0"),
        ({"batch_rate": 2.0}, "batch_rate=2.0"),
        ({"clip_norm": 0.0}, "clip_norm=0.0"),
        ({"clip_norm": 1e7}, "clip_norm=10000000.0"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"random_state": -1}, "random_state=-1"),
        ({"epsilon": 1e-12}, "would bury any gradient"),
    ],
)
def test_bad_arguments_cost_nothing(parameters, message):
    ledger = Ledger(Budget(epsilon=10.0, delta=0.1))
    table = PrivateTable(DATA.iloc[:100], Schema(STATES), ledger=ledger)
    estimator = PrivateSGD(**{**BUDGET, **parameters})
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=message):
        estimator.fit(GRAPH, table)
    assert ledger.entries == () and vars(estimator) == before


def raises(*_args, **_kwargs):
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("place", "charged"),
    [
        ((gradient_ascent, "run"), False),
        ((gradient_ascent, "SumProduct"), False),
        ((schedule.accounting, "subsampled_gaussian_multiplier"), False),
        ((schedule, "record_count"), True),
        ((samplers, "discrete_gaussian"), True),
        ((schedule, "sampled_gradient_sum"), True),
        ((charged_base, "Release"), True),
        ((private_sgd, "LogLinearModel"), True),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_a_failed_fit_changes_nothing(place, charged, monkeypatch):
    table = PrivateTable(DATA, Schema(STATES), ledger=Budget(epsilon=3.0, delta=1e-4))
    estimator = PrivateSGD(n_steps=5, **BUDGET)
    model = MarkovNetwork(GRAPH).fit(table, estimator)
    before = dict(vars(estimator)), model.factors, table.ledger.entries
    monkeypatch.setattr(*place, raises)
    with pytest.raises(RuntimeError, match="boom") as caught:
        model.fit(table, estimator)
    assert vars(estimator) == before[0] and model.factors is before[1]
    # Charged before any noise is drawn, and never given back: what was seen cannot be unseen.
    assert len(table.ledger.entries) == len(before[2]) + charged
    if place[1] == "LogLinearModel":
        monkeypatch.undo()
        rescued = PrivateSGD().fit_release(GRAPH, caught.value.release)
        assert rescued.privacy_.guarantee == estimator.privacy_.guarantee


def test_the_ledger_stops_it():
    table = PrivateTable(DATA, Schema(STATES), ledger=Budget(epsilon=1.5, delta=2e-5))
    PrivateSGD(n_steps=5, **BUDGET).fit(GRAPH, table)
    before = table.ledger.entries
    with pytest.raises(BudgetExceeded, match=r"\(1, 1e-05\)-DP was asked"):
        PrivateSGD(n_steps=5, **BUDGET).fit(GRAPH, table)
    assert table.ledger.entries == before


def test_a_record_s_place_in_the_table_does_not_matter_to_what_is_public():
    frame = pd.DataFrame({"a": ["x", "y"] * 50})
    estimator = PrivateSGD(state_names={"a": ["x", "y"]}, n_steps=3, **BUDGET)
    paths = [estimator.fit(nx.empty_graph(["a"]), f).release_.public["path"] for f in (frame, frame[::-1])]
    assert paths[0].keys() == paths[1].keys()
    rates = {"learning_rate", "last_learning_rate"}  # they depend on the noisy number of records
    first, second = ({k: v for k, v in path.items() if k not in rates} for path in paths)
    assert first == second

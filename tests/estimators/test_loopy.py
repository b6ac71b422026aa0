"""The estimators on loopy belief propagation, and what a model learned that way can and cannot do."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn.base

from pgmpy_dp import Ledger, MarkovNetwork
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE
from pgmpy_dp.inference.exact_or_loopy import InferenceUnavailable
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.loopy_belief_propagation import LoopySettings

SIDE = 3
GRAPH = nx.grid_2d_graph(SIDE, SIDE)
STATES = {node: ["lo", "mid", "hi"] for node in GRAPH}


def data(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, size=n)
    frame = {node: np.where(rng.random(n) < 0.4, level, rng.integers(0, 3, size=n)) for node in GRAPH}
    columns = [pd.Series(np.array(STATES[node])[codes]) for node, codes in frame.items()]
    table = pd.concat(columns, axis=1)
    table.columns = pd.Index(list(GRAPH), tupleize_cols=False)
    return table


@pytest.fixture(scope="module")
def fitted():
    return CollectiveMAP(epsilon=2.0, state_names=STATES, inference="loopy").fit(MarkovNetwork(GRAPH), data())


@pytest.mark.parametrize("estimator", [NaiveMLE, CollectiveEM, CollectiveMAP])
def test_the_result_says_which_inference_was_used_and_how_it_ended(estimator):
    records = data()
    made = estimator(epsilon=2.0, state_names=STATES, inference="loopy").fit(GRAPH, records)
    assert made.inference_ == "loopy" and made.inference_status_.sound
    assert "loopy belief propagation" in made.status_
    exact = sklearn.base.clone(made).set_params(inference="exact").fit_release(GRAPH, made.release_)
    assert exact.inference_ == "exact" and exact.inference_status_.converged
    auto = sklearn.base.clone(made).set_params(inference="auto").fit_release(GRAPH, made.release_)
    assert auto.inference_ == "exact"
    pair = next(iter(GRAPH.edges))
    np.testing.assert_allclose(
        made.model_.marginal(list(pair)).values, exact.model_.marginal(list(pair)).values, atol=0.05
    )


def test_auto_takes_what_the_memory_allows():
    graph = nx.complete_graph(9)
    states = {node: ["a", "b", "c", "d"] for node in graph}
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({node: rng.choice(["a", "b", "c", "d"], size=400) for node in graph})
    small = NaiveMLE(epsilon=2.0, state_names=states, inference="auto", memory_limit=1_000_000)
    with pytest.raises(InferenceTooLarge, match='inference="loopy" or "auto"'):
        sklearn.base.clone(small).set_params(inference="exact").fit(graph, frame)
    assert small.fit(graph, frame).inference_ == "loopy"
    large = sklearn.base.clone(small).set_params(memory_limit=100_000_000)
    assert large.fit_release(graph, small.release_).inference_ == "exact"


def test_settings_are_used_as_they_are():
    settings = LoopySettings(counting=0.7, damping=0.3)
    made = NaiveMLE(epsilon=2.0, state_names=STATES, inference=settings).fit(GRAPH, data())
    assert made.inference_status_.convexity == 0.7
    assert made.model_.inference == settings
    assert sklearn.base.clone(made).inference == settings


@pytest.mark.parametrize(
    ("inference", "memory_limit", "error", "message"),
    [
        ("approximate", 2**31, ValueError, "inference='approximate' is not supported; pass 'exact', 'loopy'"),
        (None, 2**31, TypeError, "inference=None is a NoneType; pass 'exact'"),
        ("loopy", 100, InferenceTooLarge, "memory_limit=100"),
        ("auto", 100, InferenceTooLarge, "memory_limit=100"),
    ],
)
def test_bad_choices_are_refused_before_anything_is_spent(inference, memory_limit, error, message, monkeypatch):
    charged = []
    monkeypatch.setattr(Ledger, "charge", lambda self, cost, **details: charged.append(cost))
    made = CollectiveMAP(epsilon=1.0, state_names=STATES, inference=inference, memory_limit=memory_limit)
    with pytest.raises(error, match=message):
        made.fit(GRAPH, data())
    assert charged == [] and not made.is_fitted


def test_a_model_learned_by_loopy_inference(fitted, tmp_path):
    model = MarkovNetwork(GRAPH)
    model.fit(data(), CollectiveMAP(epsilon=2.0, state_names=STATES, inference="loopy"))
    assert isinstance(model.inference, LoopySettings)
    model = fitted.model_
    u, v = next(iter(GRAPH.edges))
    pair = model.marginal([u, v])
    assert pair.values.sum() == pytest.approx(1)
    np.testing.assert_allclose(pair.values.sum(axis=1), model.marginal([u]).values, atol=1e-7)
    assert {frozenset(factor.variables) for factor in model.factors} == {frozenset(edge) for edge in GRAPH.edges}
    for needs_exact in (
        lambda: model.log_likelihood(data(5)),
        lambda: model.get_partition_function(),
        lambda: model.marginal([(0, 0), (2, 2)]),
    ):
        with pytest.raises(InferenceUnavailable, match="needs exact inference"):
            needs_exact()
    assert model.sample(3, 0).shape == (3, len(GRAPH))  # approximately from the model
    model.save(tmp_path / "model.npz")
    for same in (model.copy(), MarkovNetwork.load(tmp_path / "model.npz")):
        assert same.inference == model.inference
        np.testing.assert_array_equal(same.marginal([u, v]).values, pair.values)


def test_exact_inference_can_be_asked_for_afterwards(fitted):
    model = fitted.model_.copy()
    model.inference = "exact"
    assert len(model.sample(10, random_state=0)) == 10
    # The factors sum to 1 as far as Bethe's estimate is right, and probabilities are normalised by the exact sum.
    assert model.get_partition_function() == pytest.approx(1, abs=0.05)
    u, v = next(iter(GRAPH.edges))
    np.testing.assert_allclose(model.marginal([u, v]).values, fitted.model_.marginal([u, v]).values, atol=0.02)


def test_triangles_keep_their_tables():
    """Merged into their clique they would be another region graph, with other marginals than those of the fit."""
    graph = nx.complete_graph(4)
    states = {node: ["a", "b"] for node in graph}
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({node: rng.choice(["a", "b"], size=500) for node in graph})
    made = NaiveMLE(epsilon=5.0, state_names=states, inference="loopy").fit(graph, frame)
    assert len(made.parameters_) == 6
    assert made.model_.to_log_linear().inference_status.converged

"""Tables of ordinary numbers from log-potentials of any size: finite, never a warning, the same distribution."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import BeliefPropagation, VariableElimination

from pgmpy_dp import MarkovNetwork
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.bounded_tables import balanced, bounded_tables

GRAPHS = {
    "path": nx.path_graph(20),
    "star": nx.star_graph(8),
    "two triangles": nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)]),
    "cycle": nx.cycle_graph(6),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)),
    "two components": nx.Graph([(0, 1), (2, 3), (3, 4)]),
}


def hidden(graph, scale, rng):
    """A mild model whose tables hold functions of single variables, in the thousands, that cancel in the sum."""
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, 3))
    tables = [table.copy() for table in cliques.split(rng.normal(size=cliques.n_cells))]
    for i in range(len(graph)):
        has = [k for k, scope in enumerate(cliques.indices) if i in scope]
        functions = scale * rng.normal(size=(len(has), 3))
        functions -= functions.mean(axis=0)
        for k, function in zip(has, functions, strict=True):
            tables[k] += function.reshape([3 if j == i else 1 for j in cliques.indices[k]])
    return LogLinearModel(cliques, cliques.join(tables))


def largest_difference(model, network):
    scopes = model.cliques.scopes
    pairs = zip(model.marginals_of(scopes), network.to_log_linear().marginals_of(scopes), strict=True)
    return max(float(np.abs(first - second).max()) for first, second in pairs)


@pytest.mark.parametrize("scale", [50.0, 300.0, 1000.0, 10_000.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_potentials_in_the_thousands_give_finite_factors_with_the_same_marginals(name, scale):
    graph, rng = GRAPHS[name], np.random.default_rng(3)
    strong = LogLinearModel(hidden(graph, 0.0, rng).cliques, scale * hidden(graph, 1.0, rng).theta)
    for model in (hidden(graph, scale, rng), strong):
        network = MarkovNetwork.from_log_linear(model, graph, {v: [0, 1, 2] for v in graph})
        assert all(np.isfinite(factor.values).all() and (factor.values > 0).all() for factor in network.factors)
        assert largest_difference(model, network) < 1e-9
        assert network.get_partition_function() == pytest.approx(1.0, rel=1e-9)
        assert all(np.isfinite(factor.values).all() for factor in network.rescaled().factors)


def test_a_release_that_says_little_learned_with_next_to_no_penalty(tmp_path):
    rng = np.random.default_rng(0)
    graph = nx.cycle_graph(5)
    graph.add_edges_from([(5, 6), (6, 7)])
    states = {v: list(range(4)) for v in graph}
    records = pd.DataFrame(rng.integers(4, size=(60, len(graph))), columns=list(graph))
    largest = 0.0
    for seed in range(4):
        with pytest.warns(UserWarning, match="reproducible"):
            estimator = NaiveMLE(epsilon=0.2, state_names=states, l2=1e-5, random_state=seed).fit(graph, records)
        assert all(np.isfinite(factor.values).all() for factor in estimator.parameters_)
        fitted = estimator._fit.model
        largest = max(largest, float(np.abs(fitted.theta).max()))
        assert largest_difference(fitted, estimator.model_) < 1e-6
        sample = estimator.model_.sample(50, random_state=0)
        assert np.isfinite(estimator.model_.log_likelihood(sample))
        estimator.model_.save(tmp_path / "model.npz")
        assert largest_difference(fitted, MarkovNetwork.load(tmp_path / "model.npz")) < 1e-6
    assert largest > 1000.0  # otherwise nothing was tested


def test_structural_zeros_stay_and_no_others_come():
    graph = nx.path_graph(4)
    model = hidden(graph, 3000.0, np.random.default_rng(1))
    theta = model.theta.copy()
    theta[[0, 10, 20]] = -np.inf
    model = LogLinearModel(model.cliques, theta)
    network = MarkovNetwork.from_log_linear(model, graph, {v: [0, 1, 2] for v in graph})
    assert sum(int((factor.values == 0).sum()) for factor in network.factors) == 3
    assert largest_difference(model, network) < 1e-9


def around_a_cycle(weights):
    """A cycle of coins that should all agree, but for the last pair, which should not."""
    graph = nx.cycle_graph(len(weights))
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, 2))
    agree = np.array([[1.0, -1.0], [-1.0, 1.0]])
    return graph, LogLinearModel(cliques, cliques.join([w * agree for w in weights]))


@pytest.mark.parametrize("weight", [200.0, 1000.0, 1e5])
def test_interactions_that_contradict_one_another_around_a_cycle(weight):
    graph, model = around_a_cycle(weight + np.array([0.0, 0.3, -0.4, -2 * weight]))
    network = MarkovNetwork.from_log_linear(model, graph, {v: [0, 1] for v in graph})
    assert all(np.isfinite(factor.values).all() for factor in network.factors)
    assert network.check_model()
    assert largest_difference(model, network) < 1e-6
    queried = VariableElimination(network).query([0, 1], show_progress=False)
    np.testing.assert_allclose(queried.values, model.marginal([0, 1]), atol=1e-6)
    propagated = BeliefPropagation(network).query([0, 2], show_progress=False)
    np.testing.assert_allclose(propagated.values, model.marginal([0, 2]), atol=1e-6)


def test_loopy_inference_gets_finite_factors_too():
    graph = GRAPHS["grid"]
    exact = hidden(graph, 2000.0, np.random.default_rng(5))
    model = LogLinearModel(exact.cliques, exact.theta, inference="loopy")
    network = MarkovNetwork.from_log_linear(model, graph, {v: [0, 1, 2] for v in graph})
    assert all(np.isfinite(factor.values).all() for factor in network.factors)
    network.inference = "exact"
    assert largest_difference(exact, network) < 1e-9
    graph, contradicting = around_a_cycle([1000.0, 1000.0, 1000.0, -1000.0])
    model = LogLinearModel(contradicting.cliques, contradicting.theta, inference="loopy")
    network = MarkovNetwork.from_log_linear(model, graph, {v: [0, 1] for v in graph})
    assert all(np.isfinite(factor.values).all() for factor in network.factors)


def test_balancing_keeps_the_sum_up_to_a_constant_and_agrees_about_maxima():
    model = hidden(GRAPHS["cycle"], 500.0, np.random.default_rng(7))
    cliques = model.cliques
    tables = cliques.split(model.theta)
    made = balanced(cliques, tables)

    def total(of):
        joint = np.zeros(cliques.cardinalities)
        for scope, table in zip(cliques.indices, of, strict=True):
            aligned = table.transpose(np.argsort(scope))
            joint += aligned.reshape([3 if i in scope else 1 for i in range(6)])
        return joint

    difference = total(made) - total(tables)
    assert np.ptp(difference) < 1e-9
    assert all(table.max() == 0.0 for table in made)
    for (i, first), (j, second) in itertools.combinations(enumerate(made), 2):
        for shared in set(cliques.indices[i]) & set(cliques.indices[j]):
            maxima = [table.max(axis=1 - cliques.indices[k].index(shared)) for k, table in ((i, first), (j, second))]
            assert np.abs(maxima[0] - maxima[1]).max() < 3.0


def test_mild_models_keep_the_even_form():
    model = hidden(GRAPHS["path"], 1.0, np.random.default_rng(2))
    tables = bounded_tables(model)
    for potentials, table in zip(model.cliques.split(model.theta), tables, strict=True):
        assert np.ptp(potentials - np.log(table)) < 1e-12
    assert np.ptp([np.log(table.mean()) for table in tables]) < 1e-12

"""Sum-product against brute force and pgmpy; its derivative against finite differences; its stated cost."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import textwrap
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteMarkovNetwork
from scipy.special import logsumexp

from pgmpy_dp.inference import junction_tree
from pgmpy_dp.inference.belief_propagation import SumProduct, _broadcast_sum
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceTooLarge, build_junction_tree
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sum_product import inference_size
from tests.small_models import GRAPHS, BruteForce, chain


def test_marginals_and_partition_function_equal_brute_force(cliques):
    theta = np.random.default_rng(0).normal(scale=3.0, size=cliques.n_cells)
    truth = BruteForce.of(cliques, theta)
    marginals, log_partition = SumProduct(cliques).calibrate(theta)
    np.testing.assert_allclose(marginals, truth.marginals(), atol=1e-13)
    assert log_partition == pytest.approx(truth.log_partition, abs=1e-11)


def test_extra_marginals_equal_brute_force(cliques):
    theta = np.random.default_rng(1).normal(size=cliques.n_cells)
    n = len(cliques.variables)
    extra = [*itertools.islice(itertools.permutations(range(n), 2), 7), tuple(reversed(range(n)))]
    engine = SumProduct(cliques, extra=extra)
    marginals, _ = engine.calibrate(theta)
    truth = BruteForce.of(cliques, theta)
    expected = np.concatenate([truth.marginal(indices).ravel() for indices in extra])
    np.testing.assert_allclose(marginals[cliques.n_cells :], expected, atol=1e-13)


def test_derivative_is_the_covariance_product(cliques):
    rng = np.random.default_rng(2)
    theta, direction = rng.normal(size=(2, cliques.n_cells))
    engine = SumProduct(cliques)
    engine.calibrate(theta)
    derivative = engine.derivative(direction)
    step = 1e-5
    ahead, behind = (BruteForce.of(cliques, theta + sign * step * direction).marginals() for sign in (1, -1))
    np.testing.assert_allclose(derivative, (ahead - behind) / (2 * step), atol=1e-8)


def test_derivative_follows_the_last_calibration():
    cliques = chain(2, 5, 3)
    rng = np.random.default_rng(3)
    first, second, direction = rng.normal(size=(3, cliques.n_cells))
    engine = SumProduct(cliques)
    engine.calibrate(first)
    engine.derivative(direction)
    engine.calibrate(second)
    fresh = SumProduct(cliques)
    fresh.calibrate(second)
    np.testing.assert_array_equal(engine.derivative(direction), fresh.derivative(direction))


@pytest.mark.parametrize("scale", [pytest.param(1.0, marks=pytest.mark.slow), 300.0, 5000.0])
def test_no_underflow_on_a_chain_of_1000_nodes(scale):
    cliques = chain(1, 1000, 3)
    theta = np.random.default_rng(4).normal(scale=scale, size=cliques.n_cells)
    marginals, log_partition = SumProduct(cliques).calibrate(theta)
    # The same by the forward algorithm, one node at a time.
    forward = np.zeros(3)
    for table in cliques.split(theta):
        forward = logsumexp(forward[:, None] + table, axis=0)
    assert log_partition == pytest.approx(logsumexp(forward), rel=1e-12)
    sums = np.array([table.sum() for table in cliques.split(marginals)])
    np.testing.assert_allclose(sums, 1.0, rtol=1e-9)
    assert np.isfinite(marginals).all()
    for left, right in itertools.pairwise(cliques.split(marginals)):
        np.testing.assert_allclose(left.sum(axis=0), right.sum(axis=1), atol=1e-9)


def test_message_whose_weight_is_far_below_another_state_is_not_lost():
    # Seen from the left, state 1 of b is exp(-2000) times as likely as state 0; the right makes up for it.
    cliques = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    left = np.array([[0.0, -2000.0], [0.0, -2001.0]])
    right = np.array([[-2000.0, -2000.0], [0.5, 0.0]])
    theta = cliques.join([left, right])
    marginals, log_partition = SumProduct(cliques).calibrate(theta)
    truth = BruteForce.of(cliques, theta)
    np.testing.assert_allclose(marginals, truth.marginals(), rtol=1e-9)
    assert log_partition == pytest.approx(truth.log_partition, rel=1e-14)


def test_structural_zeros():
    cliques = chain(1, 4, 3)
    rng = np.random.default_rng(5)
    theta = np.where(rng.random(cliques.n_cells) < 0.3, -np.inf, rng.normal(size=cliques.n_cells))
    marginals, log_partition = SumProduct(cliques).calibrate(theta)
    truth = BruteForce.of(cliques, np.maximum(theta, -1e6))
    np.testing.assert_allclose(marginals, truth.marginals(), atol=1e-13)
    assert log_partition == pytest.approx(truth.log_partition, abs=1e-11)
    assert (marginals[np.isneginf(theta)] == 0).all()


@pytest.mark.parametrize("name", ["path", "star", "cycle", "grid", "clique"])
def test_agrees_with_pgmpy(name):
    graph = nx.relabel_nodes(GRAPHS[name], str)
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, 3))
    theta = np.random.default_rng(6).normal(size=cliques.n_cells)
    network = DiscreteMarkovNetwork(list(graph.edges))
    network.add_factors(
        *(
            DiscreteFactor(list(scope), table.shape, np.exp(table))
            for scope, table in zip(cliques.scopes, cliques.split(theta), strict=True)
        )
    )
    model = LogLinearModel(cliques, theta)
    assert model.log_partition == pytest.approx(np.log(network.get_partition_function()), abs=1e-10)
    inference = VariableElimination(network)
    for node in graph:
        theirs = inference.query([node], show_progress=False)
        theirs.normalize()
        np.testing.assert_allclose(model.marginal([node]), theirs.values, atol=1e-10)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_random_hypergraphs_equal_brute_force(data):
    n = data.draw(st.integers(1, 5))
    cardinalities = tuple(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    scope = st.lists(st.integers(0, n - 1), min_size=1, max_size=min(n, 3), unique=True).map(tuple)
    scopes = tuple(data.draw(st.lists(scope, min_size=1, max_size=6)))
    cliques = Cliques(tuple(range(n)), cardinalities, scopes)
    theta = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).normal(scale=2.0, size=cliques.n_cells)
    marginals, log_partition = SumProduct(cliques).calibrate(theta)
    truth = BruteForce.of(cliques, theta)
    np.testing.assert_allclose(marginals, truth.marginals(), atol=1e-12)
    assert log_partition == pytest.approx(truth.log_partition, abs=1e-10)


def test_running_intersection_and_cover(cliques):
    tree = build_junction_tree(cliques)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(tree.cliques)))
    graph.add_edges_from((child, parent) for child, parent in enumerate(tree.parents) if parent >= 0)
    assert nx.is_tree(graph)
    for i in range(len(cliques.variables)):
        holding = [k for k, clique in enumerate(tree.cliques) if i in clique]
        assert nx.is_connected(graph.subgraph(holding))
    for scope, home in zip(cliques.indices, tree.homes, strict=True):
        assert set(scope) <= set(tree.cliques[home])
    for k, clique in enumerate(tree.cliques):
        assert not any(set(clique) <= set(other) for j, other in enumerate(tree.cliques) if j != k)


@pytest.mark.parametrize(
    "layout",
    [chain(1, 4, 400), chain(3, 8, 14), Cliques.from_graph(nx.star_graph(6), dict.fromkeys(range(7), 300))],
    ids=["chain", "third-order chain", "star"],
)
def test_stated_memory_is_what_is_allocated(layout):
    stated = inference_size(layout).memory_bytes
    theta = np.zeros(layout.n_cells)
    tracemalloc.start()
    engine = SumProduct(layout)
    engine.calibrate(theta)
    engine.derivative(theta)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Python's own objects and the vectors of ones come on top; both are small beside these tables.
    assert 0.9 * stated < peak < 1.1 * stated


def test_a_grid_is_gone_through_from_end_to_end():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(15, 15))
    size = inference_size(Cliques.from_graph(grid, dict.fromkeys(grid, 2)))
    assert size.width == 15 and size.cells < 2**22  # min-fill has a clique of 2**22 cells


def test_trees_from_end_to_end_give_the_marginals_of_the_others(monkeypatch, cliques):
    theta, direction = np.random.default_rng(6).normal(size=(2, cliques.n_cells))
    engine = SumProduct(cliques)
    expected = *engine.calibrate(theta), engine.derivative(direction)
    with monkeypatch.context() as patched:
        patched.setattr(junction_tree, "_LARGE", 0)
        patched.setattr(junction_tree, "_least_fill", lambda near: None)  # all variables in one clique
        patched.setattr(junction_tree, "_least_degree", lambda near: lambda left: None)
        engine = SumProduct(cliques)
    found = *engine.calibrate(theta), engine.derivative(direction)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_an_engine_that_is_asked_again_answers_as_a_new_one(cliques):
    """It does not calibrate twice at one theta, whatever it was asked in between."""
    first, second, direction = np.random.default_rng(7).normal(size=(3, cliques.n_cells))
    engine = SumProduct(cliques)
    for theta in (first, first, second, first, first):
        new = SumProduct(cliques)
        for one, other in zip(engine.calibrate(theta), new.calibrate(theta), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(engine.derivative(direction), new.derivative(direction))
        for one, other in zip(engine.beliefs(), new.beliefs(), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("lacking", ["l...lr", "r.l..bl", "b...rb", "rl...b", "lrlrlr", "b"])
def test_a_sum_by_states_of_the_last_axes_is_the_sum(lacking):
    sizes = [4 if of == "." else 2 for of in lacking]
    left, right = (
        np.random.default_rng(seed).normal(
            size=[n if of in (own, "b", ".") else 1 for n, of in zip(sizes, lacking, strict=True)]
        )
        for seed, own in enumerate("lr")
    )
    out = np.empty(sizes)
    for function, arguments in _broadcast_sum(left, right, out):
        function(*arguments)
    np.testing.assert_array_equal(out, left + right)


def test_too_large_is_refused_before_allocation():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20))
    cliques = Cliques.from_graph(grid, dict.fromkeys(grid, 10))
    size = inference_size(cliques)
    assert size.width >= 20 and size.cells > 10**20
    with pytest.raises(InferenceTooLarge, match=r"memory_limit=2,147,483,648.*larger memory_limit"):
        SumProduct(cliques)
    with pytest.raises(InferenceTooLarge, match="memory_limit=1,000 "):
        LogLinearModel(chain(1, 5, 4), np.zeros(64), memory_limit=1000).log_partition  # noqa: B018


def test_size_of_the_paper_chain():
    size = inference_size(chain(3, 10, 10))
    assert (size.width, size.n_cliques, size.cells) == (3, 7, 70_000)


def test_junction_tree_does_not_depend_on_hash_seeds():
    script = textwrap.dedent(
        """
        import networkx as nx
        from pgmpy_dp.inference.cliques import Cliques
        from pgmpy_dp.inference.junction_tree import build_junction_tree
        graph = nx.relabel_nodes(nx.gnp_random_graph(12, 0.3, seed=2), lambda i: f"node{i}")
        print(build_junction_tree(Cliques.from_graph(graph, dict.fromkeys(graph, 3))))
        """
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and "JunctionTree" in outputs.pop()


def test_model_survives_pickling_without_its_engine():
    model = LogLinearModel(chain(2, 6, 4), np.random.default_rng(7).normal(size=chain(2, 6, 4).n_cells))
    before = model.marginals().copy()
    pickled = pickle.dumps(model)
    assert len(pickled) < 3 * model.theta.nbytes + 2000
    np.testing.assert_array_equal(pickle.loads(pickled).marginals(), before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "a"), (2, 2), (("a",),)), "distinct"),
        ((("a", "b"), (2,), (("a",),)), "one entry for each"),
        ((("a",), (0,), (("a",),)), "positive"),
        ((("a",), (2,), (("z",),)), "not in the model"),
        ((("a",), (2,), ((),)), "at least one variable"),
        ((("a", "b"), (2, 2), (("a", "a"),)), "each one once"),
    ],
)
def test_bad_layouts_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Cliques(*arguments)


def test_scope_that_is_no_clique_of_the_graph_is_refused():
    with pytest.raises(ValueError, match="not a clique of the graph"):
        Cliques.from_graph(nx.path_graph(3), {0: 2, 1: 2, 2: 2}, scopes=[(0, 2)])
    with pytest.raises(ValueError, match="lack the variables"):
        Cliques.from_graph(nx.path_graph(3), {0: 2, 1: 2})


@pytest.mark.parametrize("theta", [np.zeros(3), np.array([0, 0, 0, np.nan]), np.array([0, 0, 0, np.inf])])
def test_bad_parameters_are_refused(theta):
    with pytest.raises(ValueError, match="theta must"):
        LogLinearModel(Cliques(("a", "b"), (2, 2), (("a", "b"),)), theta)


@pytest.mark.parametrize("gap", [700.0, 720.0, 744.0, 746.0, 800.0])
def test_derivatives_where_a_separator_is_almost_impossible(gap):
    """State 1 of b has probability exp(-gap): normal, subnormal or 0. No warning, and nothing but finite numbers."""
    cliques = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    engine = SumProduct(cliques)
    marginals, _ = engine.calibrate(np.array([0.0, -gap, 0.0, -gap, 0.0, 0.0, 0.0, 0.0]))
    change = engine.derivative(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    assert np.isfinite(marginals).all()
    np.testing.assert_allclose(change[:4], [0.25, 0.0, -0.25, 0.0], atol=1e-12)
    np.testing.assert_allclose(change[4:], 0.0, atol=1e-12)

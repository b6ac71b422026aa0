"""Maximum entropy from noisy moments: closed forms, brute force, pgmpy, and any numbers at all."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from pgmpy.inference import VariableElimination
from scipy.optimize import minimize

from pgmpy_dp.fields.contrasts import Contrasts, all_states
from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.maximum_entropy import MomentFit, match_interactions, match_parities
from pgmpy_dp.fields.mean_features import Enumeration, JunctionTreeMoments, elimination_cells
from pgmpy_dp.fields.persistent_gibbs import PairwiseChains, ParityChains, make_chains
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.fields.sparse_moment_fit import grow_support
from pgmpy_dp.learning.analysis_of_variance import helmert
from pgmpy_dp.models.markov_network import MarkovNetwork
from tests.fields.definition import log_potentials, pairwise_of

EXACT = {"noise_sd": 0.0, "n": 10**12}  # a standard error of 1e-6: L-BFGS stops at a gradient of 1e-8


def match_ising(means: np.ndarray, products: np.ndarray, **options: object) -> MomentFit:
    """`match_parities` of order 2, on matrices, to an Ising model."""
    moments = np.concatenate([means, products[np.triu_indices(len(means), 1)]])
    fit = match_parities(moments, len(means), 2, **options)
    return replace(fit, model=fit.model.to_ising())


def grid(rows: int, columns: int, weight: float) -> Ising:
    """Couplings of both signs on a grid, with fields."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))
    weights = np.zeros((rows * columns, rows * columns))
    for number, (i, j) in enumerate(sorted(graph.edges)):
        weights[i, j] = weights[j, i] = weight * (-1) ** number
    return Ising(weights, 0.1 * np.cos(np.arange(rows * columns)))


def moments_of(model, order: int) -> np.ndarray:
    """Mean parities by the naive sum over all states."""
    states = all_states(model.cardinalities)
    weight = np.exp(log_potentials(model, states))
    z = 2.0 * states - 1
    products = np.array([z[:, list(s)].prod(axis=1) for s in field_scopes(model.n_variables, order)])
    return products @ weight / weight.sum()


def ising_moments(model: Ising) -> tuple[np.ndarray, np.ndarray]:
    p = model.n_variables
    moments = moments_of(model, 2)
    products = np.zeros((p, p))
    products[np.triu_indices(p, 1)] = moments[p:]
    return moments[:p], products


def interactions_of(model: Pairwise) -> tuple[list[np.ndarray], dict[tuple[int, int], np.ndarray]]:
    """Means of k e_a - 1 and of the outer products of pairs, naively."""
    states = all_states(model.cardinalities)
    weight = np.exp(log_potentials(model, states))
    weight /= weight.sum()
    coded = [(k * np.eye(k) - 1)[states[:, i]] for i, k in enumerate(model.cardinalities)]
    pairs = itertools.combinations(range(model.n_variables), 2)
    return [weight @ x for x in coded], {(i, j): (coded[i] * weight[:, None]).T @ coded[j] for i, j in pairs}


@pytest.mark.parametrize("k", [2, 3, 7])
def test_contrasts_are_orthogonal_to_each_other_and_to_constants(k):
    h = helmert(k)
    np.testing.assert_allclose(h.T @ h, k * np.eye(k - 1), atol=1e-12)
    np.testing.assert_allclose(h.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(("cardinalities", "order"), [((2,) * 6, 3), ((2, 3, 4, 2), 2), ((2, 1, 3), 2)])
def test_exact_moments_are_those_of_the_definition(cardinalities, order):
    scopes = tuple(s for s in field_scopes(len(cardinalities), order) if all(cardinalities[i] > 1 for i in s))
    effects = Contrasts(cardinalities, scopes)
    theta = np.random.default_rng(0).normal(scale=0.5, size=effects.n_parameters)
    design = effects.design(all_states(cardinalities))
    weight = np.exp(design @ theta)
    for engine in (Enumeration(effects), JunctionTreeMoments(effects, 2**30)):
        mean, log_partition = engine.moments(theta)
        np.testing.assert_allclose(mean, weight @ design / weight.sum(), atol=1e-12)
        assert log_partition == pytest.approx(math.log(weight.sum()), abs=1e-12)


def test_elimination_counts_cells_and_stops_at_the_limit():
    chain = Contrasts((2,) * 5, tuple((i, i + 1) for i in range(4)))
    assert elimination_cells(chain, 10**6) == 4 * 4 + 2
    complete = Contrasts((2,) * 30, tuple(itertools.combinations(range(30), 2)))
    assert 1000 < elimination_cells(complete, 1000) <= 2**30


@pytest.mark.parametrize(
    ("cardinalities", "order", "kind"),
    [((2,) * 5, 2, PairwiseChains), ((2, 3, 4), 2, PairwiseChains), ((2,) * 5, 3, ParityChains)],
)
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_gibbs_chains_have_the_exact_moments_and_covariance(cardinalities, order, kind, share):
    rng = np.random.default_rng(1)
    effects = Contrasts(cardinalities, field_scopes(len(cardinalities), order))
    theta = rng.normal(scale=0.3, size=effects.n_parameters) * (rng.random(effects.n_parameters) < share)
    chains = make_chains(effects, 4000, rng)
    assert isinstance(chains, kind)
    for _ in range(20):
        chains.moments(theta)
    direction = rng.normal(size=effects.n_parameters)
    sweeps = [(chains.moments(theta), chains.response(direction)) for _ in range(150)]
    mean, response = (np.mean(values, axis=0) for values in zip(*sweeps, strict=True))
    exact = Enumeration(effects).moments(theta)[0]
    design = effects.design(all_states(cardinalities))
    weight = np.exp(design @ theta)
    covariance = (design.T * (weight / weight.sum())) @ design - np.outer(exact, exact)
    # 600 000 correlated draws of features of variance up to 9: standard errors below .005, and for the response
    # (products of a sum of some 20 such features) below .02.
    np.testing.assert_allclose(mean, exact, atol=0.02)
    np.testing.assert_allclose(response, covariance @ direction, atol=0.08)


def test_sparse_and_dense_chains_draw_from_the_same_distribution():
    model = grid(3, 3, 0.4)
    effects = Contrasts((2,) * 9, (*((i,) for i in range(9)), *model.edges()))
    theta = np.concatenate([model.fields, [model.weights[e] for e in model.edges()]])
    exact = Enumeration(effects).moments(theta)[0]
    for sparse in (True, False):
        chains = PairwiseChains(effects, 4000, np.random.default_rng(2))
        chains._sparse = sparse
        mean = np.mean([chains.moments(theta) for _ in range(120)][20:], axis=0)
        np.testing.assert_allclose(mean, exact, atol=0.01)  # standard error about .003


def test_independent_variables_have_the_closed_form():
    means = np.array([0.5, -0.2, 0.0, 0.9])
    fit = match_ising(means, np.outer(means, means), **EXACT)
    np.testing.assert_allclose(fit.model.fields, np.arctanh(means), atol=1e-5)
    assert not fit.model.edges() and fit.converged


def test_two_variables_have_the_closed_form():
    joint = np.array([[0.1, 0.2], [0.3, 0.4]])
    means = np.array([0.7 - 0.3, 0.6 - 0.4])
    fit = match_ising(means, np.full((2, 2), 0.1 + 0.4 - 0.2 - 0.3), **EXACT, sparse=False)
    log = np.log(joint)
    assert fit.model.weights[0, 1] == pytest.approx((log[0, 0] + log[1, 1] - log[0, 1] - log[1, 0]) / 4, abs=1e-5)
    assert fit.model.fields[0] == pytest.approx((log[1].sum() - log[0].sum()) / 4, abs=1e-5)


@pytest.mark.parametrize("p", [8, 40])
def test_a_tree_without_fields_has_the_closed_form(p):
    # Without fields the product's mean along an edge is tanh A, and products multiply along paths.
    tree = nx.random_labeled_tree(p, seed=3)
    rng = np.random.default_rng(3)
    weights = np.zeros((p, p))
    for i, j in tree.edges:
        weights[i, j] = weights[j, i] = rng.choice([-1, 1]) * rng.uniform(0.3, 0.7)
    products = np.eye(p)
    for source, paths in nx.all_pairs_shortest_path(tree):
        for target, path in paths.items():
            products[source, target] = math.prod(math.tanh(weights[e]) for e in itertools.pairwise(path))
    given = match_ising(np.zeros(p), products, **EXACT, graph=tree)
    assert given.method == ("enumeration" if p == 8 else "junction tree")
    np.testing.assert_allclose(given.model.weights, weights, atol=1e-5)
    # At a standard error of .002 the Monte Carlo error of the search (some .01) is below the cut of .6 x 5 x .002 on
    # top of the penalty only for edges that are not there; the refit is exact.
    found = match_ising(np.zeros(p), products, noise_sd=0.0, n=250_000)
    assert set(found.model.edges()) == {tuple(sorted(e)) for e in tree.edges}
    np.testing.assert_allclose(found.model.weights, weights, atol=1e-3)


def test_the_penalised_fit_selects_the_graph_under_noise():
    truth = grid(3, 4, 0.35)
    means, products = ising_moments(truth)
    rng = np.random.default_rng(4)
    s = 0.01
    noisy = products + s * rng.normal(size=products.shape)
    fit = match_ising(means + s * rng.normal(size=12), noisy, noise_sd=s, n=10**9)
    dense = match_ising(means, noisy, noise_sd=s, n=10**9, sparse=False)
    assert fit.model.edges() == truth.edges()
    # 17 edges: three standard errors, times 1.3 for the covariance of the features.
    assert np.abs(fit.model.weights - truth.weights).max() < 0.04
    assert np.abs(dense.model.weights - truth.weights).max() > np.abs(fit.model.weights - truth.weights).max()


@pytest.mark.slow  # smaller fields are matched below
def test_gibbs_matching_agrees_with_the_exact_fit(monkeypatch):
    truth = grid(4, 4, 0.35)
    means, products = ising_moments(truth)
    exact = match_ising(means, products, noise_sd=0.005, n=10**9)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._ENUMERATION_LIMIT", 0)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._TREE_LIMIT", 0)
    sampled = match_ising(means, products, noise_sd=0.005, n=10**9)
    again = match_ising(means, products, noise_sd=0.005, n=10**9)
    assert (exact.method, sampled.method) == ("enumeration", "gibbs")
    assert exact.converged and sampled.converged
    assert sampled.model.edges() == exact.model.edges() == truth.edges()
    np.testing.assert_allclose(sampled.model.weights, exact.model.weights, atol=0.015)  # Monte Carlo, about .003
    assert np.array_equal(sampled.model.weights, again.model.weights)


def test_a_dense_gibbs_fit_starts_near_and_ends_near(monkeypatch):
    rng = np.random.default_rng(5)
    p = 10
    weights = np.triu(rng.normal(scale=0.08, size=(p, p)), 1)
    truth = Ising(weights + weights.T, rng.normal(scale=0.1, size=p))
    means, products = ising_moments(truth)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._ENUMERATION_LIMIT", 0)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._TREE_LIMIT", 0)
    fit = match_ising(means, products, noise_sd=0.005, n=10**9, sparse=False)
    assert fit.method == "gibbs" and fit.converged
    np.testing.assert_allclose(fit.model.weights, truth.weights, atol=0.02)  # Monte Carlo, about .004


def test_strong_ferromagnetic_couplings_do_not_make_the_chains_oscillate(monkeypatch):
    # All couplings positive: the features vary together, and a step of 1/2 along all of them would overshoot.
    p = 9
    truth = Ising(np.abs(grid(3, 3, 0.4).weights), np.zeros(p))
    means, products = ising_moments(truth)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._ENUMERATION_LIMIT", 0)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._TREE_LIMIT", 0)
    fit = match_ising(means, products, noise_sd=0.005, n=10**9, graph=truth.edges())
    np.testing.assert_allclose(fit.model.weights, truth.weights, atol=0.04)


def test_parities_of_order_three_agree_with_scipy_and_with_gibbs(monkeypatch):
    truth = BinaryField(6, {(0, 1, 2): 0.4, (3, 4, 5): -0.35, (0, 3): 0.3, (5,): 0.2})
    moments = moments_of(truth, 3)
    rng = np.random.default_rng(6)
    noisy = moments + 0.01 * rng.normal(size=len(moments))
    dense = match_parities(noisy, 6, 3, noise_sd=0.01, n=10**9, sparse=False)
    effects = Contrasts((2,) * 6, field_scopes(6, 3))
    design = effects.design(all_states((2,) * 6))
    reference = minimize(lambda c: np.log(np.exp(design @ c).sum()) - c @ noisy, np.zeros(len(noisy)), tol=1e-8)
    fitted = np.array([dense.model.coefficients[s] for s in effects.scopes])
    np.testing.assert_allclose(fitted, reference.x, atol=1e-3)  # L-BFGS stops at a gradient of 1e-4
    sparse = match_parities(noisy, 6, 3, noise_sd=0.01, n=10**9)
    kept = {s for s in sparse.model.coefficients if len(s) > 1}
    assert kept == {s for s in truth.coefficients if len(s) > 1}
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._ENUMERATION_LIMIT", 0)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._TREE_LIMIT", 0)
    sampled = match_parities(noisy, 6, 3, noise_sd=0.01, n=10**9)
    assert sampled.method == "gibbs"
    for subset, value in sparse.model.coefficients.items():
        assert sampled.model.coefficients[subset] == pytest.approx(value, abs=0.015)


@pytest.mark.parametrize("exact", [True, False])
def test_pairwise_models_with_unequal_alphabets_come_back(exact, monkeypatch):
    rng = np.random.default_rng(7)
    cardinalities = (2, 3, 4, 1, 2)
    weights = {(i, j): rng.normal(size=(cardinalities[i], cardinalities[j])) * 0.5 for i, j in [(0, 1), (1, 2), (2, 4)]}
    truth = Pairwise(tuple(rng.normal(scale=0.3, size=k) for k in cardinalities), weights).centred()
    fields, pairs = interactions_of(truth)
    if not exact:
        monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._ENUMERATION_LIMIT", 0)
        monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._TREE_LIMIT", 0)
    s = 1e-6 if exact else 0.005
    fit = match_interactions(fields, pairs, field_noise_sd=s, pair_noise_sd=s, n=10**12)
    assert fit.model.edges() == truth.edges()
    for edge in truth.edges():
        np.testing.assert_allclose(fit.model.weights[edge], truth.weights[edge], atol=1e-4 if exact else 0.03)
    for a, b in zip(fit.model.fields, truth.fields, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4 if exact else 0.03)
    if not exact:
        return
    # What the tables have in their margins is not read, whatever fits the rest.
    shifted = {pair: table + 3.0 * np.arange(table.shape[0])[:, None] for pair, table in pairs.items()}
    same = match_interactions(fields, shifted, field_noise_sd=s, pair_noise_sd=s, n=10**12)
    np.testing.assert_allclose(same.model.weights[0, 1], fit.model.weights[0, 1], atol=1e-6)


def test_binary_interactions_are_the_ising_model():
    truth = grid(2, 3, 0.4)
    means, products = ising_moments(truth)
    fields, pairs = interactions_of(pairwise_of(truth))
    # Four entries of a table average out: noise of sd 2 s in each is noise of sd s in the product's mean.
    one = match_interactions(fields, pairs, field_noise_sd=0.01 * math.sqrt(2), pair_noise_sd=0.02, n=10**12)
    other = match_ising(means, products, noise_sd=0.01, n=10**12)
    np.testing.assert_allclose(one.model.to_ising().weights, other.model.weights, atol=1e-8)


def test_pgmpy_finds_the_given_moments_in_the_fitted_model():
    truth = grid(2, 3, 0.4)
    means, products = ising_moments(truth)
    fit = match_ising(means, products, **EXACT, graph=truth.edges())
    names = [f"v{i}" for i in range(6)]
    graph = nx.Graph((names[i], names[j]) for i, j in truth.edges())
    network = MarkovNetwork.from_log_linear(fit.model.to_log_linear(names), graph, {name: [-1, 1] for name in names})
    joint = VariableElimination(network).query(["v0", "v1"], show_progress=False)
    table = joint.values / joint.values.sum()
    assert table[0, 0] + table[1, 1] - table[0, 1] - table[1, 0] == pytest.approx(products[0, 1], abs=1e-5)


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("width", [None, 1.5])
@pytest.mark.parametrize("n", [-3.0, 0.0, 1e4])
@pytest.mark.parametrize("numbers", ["zeros", "ones", "signs", "huge"])
def test_any_numbers_have_a_fit(numbers, n, width, sparse):
    # Warnings are errors here, so this also says that nothing warns.
    rng = np.random.default_rng(8)
    m = {
        "zeros": np.zeros(25),
        "ones": np.ones(25),
        "signs": rng.choice([-1.0, 1.0], 25),
        "huge": 1e9 * rng.normal(size=25),
    }[numbers]
    fit = match_parities(m, 5, 3, noise_sd=0.01, n=n, width=width, sparse=sparse)
    assert np.isfinite(list(fit.model.coefficients.values())).all()
    assert width is None or fit.model.width <= width
    assert (
        numbers != "zeros" or not fit.model.coefficients or np.abs(list(fit.model.coefficients.values())).max() < 1e-6
    )


@pytest.mark.parametrize("sparse", [True, False])
def test_any_numbers_have_a_fit_by_gibbs_chains(sparse, monkeypatch):
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._ENUMERATION_LIMIT", 0)
    monkeypatch.setattr("pgmpy_dp.fields.sparse_moment_fit._TREE_LIMIT", 0)
    rng = np.random.default_rng(9)
    for scale in (1.0, 1e9):
        pairs = {(i, j): scale * rng.normal(size=(2 + i, 2 + j)) for i, j in itertools.combinations(range(3), 2)}
        fields = [scale * rng.normal(size=2 + i) for i in range(3)]
        fit = match_interactions(fields, pairs, field_noise_sd=0.0, pair_noise_sd=0.01, n=-1, width=1.0, sparse=sparse)
        assert fit.model.width <= 1.0 + 1e-9
    fit = match_ising(np.ones(4), np.ones((4, 4)), noise_sd=0.0, n=10**4, sparse=sparse)
    assert np.abs(fit.model.weights).max() <= 8.0


def test_strong_couplings_beyond_enumeration_are_found_on_a_junction_tree():
    truth = Ising(np.abs(grid(2, 9, 0.85).weights), np.zeros(18))  # width 2.55, all couplings positive
    edges = truth.edges()
    effects = Contrasts((2,) * 18, (*((i,) for i in range(18)), *itertools.combinations(range(18), 2)))
    weights = [truth.weights[s] if len(s) == 2 else 0.0 for s in effects.scopes]
    target = Enumeration(effects).moments(np.array(weights))[0]
    grown = grow_support(effects, target, *(np.full(len(effects.scopes), s) for s in (0.002, 0.01)), 4.0, 2**20)
    assert grown is not None
    keep, fitted = grown
    # Draws have a standard error of .003, and strongly correlated features let a few more in; no edge is missed.
    found = {s for s in itertools.compress(effects.scopes, keep) if len(s) == 2}
    assert set(edges) <= found and len(found) <= len(edges) + 3
    assert np.abs(fitted[18:] - [truth.weights[s] for s in effects.scopes[18:]]).max() < 0.05
    assert grow_support(effects, target, *(np.full(len(effects.scopes), s) for s in (0.002, 0.01)), 4.0, 50) is None


def test_the_width_bounds_the_fit_and_a_width_that_holds_changes_nothing():
    truth = grid(2, 3, 0.4)
    means, products = ising_moments(truth)
    free = match_ising(means, products, **EXACT)
    wide = match_ising(means, products, **EXACT, width=truth.width + 0.01)
    tight = match_ising(means, products, **EXACT, width=0.5)
    np.testing.assert_allclose(wide.model.weights, free.model.weights, atol=1e-5)
    assert not wide.bounded and tight.bounded and tight.model.width <= 0.5 and "width" in tight.status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise_sd": -1.0}, "noise_sd must be"),
        ({"width": 0.0}, "width must be"),
        ({"graph": [(0, 5)]}, "graph must have edges"),
        ({"moments": np.zeros(4)}, "moments must have shape"),
        ({"order": 0}, "must be positive"),
    ],
)
def test_bad_public_arguments_are_named(arguments, message):
    good = {"moments": np.zeros(6), "n_variables": 3, "order": 2, "noise_sd": 0.1, "n": 10}
    with pytest.raises(ValueError, match=message):
        match_parities(**(good | arguments))


def test_a_family_needs_the_moments_of_its_sets_only():
    subsets = field_scopes(4, 2)
    moments = np.array([0.3, 0.0, -0.2, 0.1, 0.4, 0.0, 0.05, -0.3, 0.02, 0.2])
    family = [(0,), (1,), (2,), (3,), (0, 1), (1, 2)]
    chosen = np.array([moments[subsets.index(subset)] for subset in family])
    whole = match_parities(moments, 4, 2, **EXACT, graph=[(0, 1), (1, 2)])
    part = match_parities(chosen, 4, 2, **EXACT, sparse=False, subsets=family)
    assert part.model.coefficients == pytest.approx(whole.model.coefficients, abs=1e-6)
    for bad in ([(1, 0)], [(0, 4)], [(0, 0)], [()], [(0, 1, 2)], [(0,), (0,)]):
        with pytest.raises(ValueError, match="subsets must"):
            match_parities(np.zeros(len(bad)), 4, 2, **EXACT, subsets=bad)

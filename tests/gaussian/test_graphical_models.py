"""Gaussian graphical models: the refit against two other solutions, the conversions against the joint distribution."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from pgmpy_dp.gaussian.gaussian_distribution import (
    gaussian_log_likelihood,
    sample_gaussian,
)
from pgmpy_dp.gaussian.graphical_models import (
    lasso_penalty,
    linear_gaussian_network,
    partial_correlations,
    precision_graph,
    project_psd,
    refit_on_support,
)

CYCLE = nx.cycle_graph(4)
CHORDAL = nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (3, 4)])
GRAPHS = {"path": nx.path_graph(5), "cycle": CYCLE, "chordal": CHORDAL, "grid": nx.grid_2d_graph(2, 3)}
GRAPHS["empty"], GRAPHS["complete"] = nx.empty_graph(3), nx.complete_graph(4)
GRAPHS["two parts"] = nx.disjoint_union(nx.cycle_graph(5), nx.path_graph(2))


def moments(seed, d, n=60):
    x = np.random.default_rng(seed).normal(size=(n, d))
    x[:, 1:] += 0.7 * x[:, :-1]
    return x.T @ x / n


def precision_on(graph, seed=0):
    rng = np.random.default_rng(seed)
    a = nx.to_numpy_array(graph) * 1.0
    upper = np.triu(a * rng.uniform(-1, 1, size=a.shape), 1)
    theta = upper + upper.T
    return theta + np.diag(np.abs(theta).sum(axis=1) + rng.uniform(0.2, 1, size=len(a)))


def likelihood_loss(theta, S):
    return float((S * theta).sum() - np.linalg.slogdet(theta)[1])


@pytest.mark.parametrize("name", GRAPHS)
def test_the_refit_has_the_moments_of_the_support_and_zeros_elsewhere(name):
    support = nx.to_numpy_array(GRAPHS[name]) + np.eye(len(GRAPHS[name]))
    S = moments(1, len(support))
    solution = refit_on_support(S, support, tolerance=1e-14)
    assert solution.converged
    assert (solution.precision[support == 0] == 0).all()
    np.testing.assert_allclose(solution.covariance[support != 0], S[support != 0], atol=1e-6)


def test_the_refit_of_a_chordal_graph_is_the_sum_over_its_cliques():
    """Lauritzen (1996), proposition 5.9: inverses of the cliques' moments less those of the separators'."""
    d = len(CHORDAL)
    S, expected = moments(2, d), np.zeros((d, d))
    for sign, sets in ((1, [(0, 1, 2), (1, 2, 3), (3, 4)]), (-1, [(1, 2), (3,)])):
        for members in sets:
            block = np.ix_(members, members)
            expected[block] += sign * np.linalg.inv(S[block])
    solution = refit_on_support(S, nx.to_numpy_array(CHORDAL), tolerance=1e-15)
    np.testing.assert_allclose(solution.precision, expected, atol=1e-6)


def test_the_refit_of_a_cycle_is_the_best_that_a_general_optimiser_finds():
    S, pairs = moments(3, 4), list(CYCLE.edges)

    def theta(p):
        matrix = np.diag(p[:4])
        for (i, j), value in zip(pairs, p[4:], strict=True):
            matrix[i, j] = matrix[j, i] = value
        return matrix

    def loss(p):
        return likelihood_loss(theta(p), S) if np.linalg.eigvalsh(theta(p))[0] > 0 else 1e3

    best = minimize(
        loss,
        np.r_[np.ones(4), np.zeros(4)],
        method="Nelder-Mead",
        options={"maxiter": 40_000, "maxfev": 40_000, "fatol": 1e-13, "xatol": 1e-9, "adaptive": True},
    )
    assert refit_on_support(S, nx.to_numpy_array(CYCLE)).objective == pytest.approx(best.fun, abs=1e-7)


def test_a_capped_refit_exists_for_any_moments():
    rng = np.random.default_rng(4)
    noisy = rng.normal(size=(6, 6))
    noisy = project_psd(noisy + noisy.T)
    support = np.ones((6, 6))
    capped = refit_on_support(noisy, support, max_eigenvalue=2.0)
    w, v = np.linalg.eigh(noisy)
    np.testing.assert_allclose(capped.precision, (v / np.maximum(w, 0.5)) @ v.T, atol=1e-4)
    support[0, 1:3] = support[1:3, 0] = 0
    sparse = refit_on_support(noisy, support, max_eigenvalue=2.0, max_iter=20_000)
    assert sparse.converged and (sparse.precision[support == 0] == 0).all()
    assert np.linalg.eigvalsh(sparse.precision)[0] > 0 and np.linalg.eigvalsh(sparse.precision)[-1] <= 2 * (1 + 1e-12)
    assert sparse.objective >= capped.objective - 1e-6
    with pytest.raises(ValueError, match="max_eigenvalue"):
        refit_on_support(np.ones((3, 3)), np.ones((3, 3)))


def test_a_refit_of_nearly_singular_moments_is_positive_definite_however_it_ends():
    rng = np.random.default_rng(5)
    noisy = rng.normal(size=(8, 8))
    noisy = project_psd(noisy + noisy.T)
    support = nx.to_numpy_array(nx.cycle_graph(8))
    solution = refit_on_support(noisy, support, max_iter=50)
    assert np.linalg.eigvalsh(solution.precision)[0] > 0
    assert (solution.precision[(support == 0) & ~np.eye(8, dtype=bool)] == 0).all()


@pytest.mark.parametrize("support", [np.ones((2, 2)), np.triu(np.ones((3, 3)))])
def test_bad_supports(support):
    with pytest.raises(ValueError, match="support"):
        refit_on_support(np.eye(3), support)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(0, 1))
def test_the_projection_is_the_nearest(seed, d, floor):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(d, d))
    symmetric = (a + a.T) / 2
    nearest = project_psd(a, floor)
    assert np.linalg.eigvalsh(nearest)[0] >= floor - 1e-12
    # Obtuse angle with every direction inside the set, which characterises a projection onto a convex set.
    for _ in range(10):
        b = rng.normal(size=(d, d))
        inside = b @ b.T + floor * np.eye(d)
        assert ((symmetric - nearest) * (inside - nearest)).sum() <= 1e-9 * (1 + np.abs(inside).max())


def test_the_penalty():
    assert lasso_penalty(2.0, 100, 0.0, 1) == 0.0
    plain = lasso_penalty(2.0, 100, 0.0, 50)
    assert plain == pytest.approx(1.5 * 0.2 * np.sqrt(np.log(50)))
    assert lasso_penalty(2.0, 100, 0.2, 50) == pytest.approx(np.sqrt(2) * plain)
    assert lasso_penalty(0.0, 1e300, 0.2, 50, c0=1.0) == pytest.approx(0.2 * np.sqrt(np.log(50)))
    for bad in ((-1.0, 10, 0.0, 3), (1.0, 0, 0.0, 3), (1.0, 10, np.inf, 3), (1.0, 10, 0.0, 0)):
        with pytest.raises(ValueError, match="must be"):
            lasso_penalty(*bad)


def test_partial_correlations_are_correlations_of_residuals():
    theta = precision_on(nx.complete_graph(4), 6)
    covariance, partial = np.linalg.inv(theta), partial_correlations(theta)
    for i, j in itertools.combinations(range(4), 2):
        rest = [k for k in range(4) if k not in (i, j)]
        a, b = np.ix_([i, j], [i, j]), np.ix_([i, j], rest)
        left = covariance[a] - covariance[b] @ np.linalg.inv(covariance[np.ix_(rest, rest)]) @ covariance[b].T
        assert partial[i, j] == pytest.approx(left[0, 1] / np.sqrt(left[0, 0] * left[1, 1]))


@pytest.mark.parametrize("name", GRAPHS)
def test_pgmpys_network_is_the_same_distribution(name):
    d = len(GRAPHS[name])
    theta, mean, names = precision_on(GRAPHS[name], 7), np.arange(1.0, d + 1), [f"x{i}" for i in range(d)]
    model = linear_gaussian_network(mean, theta, names)
    assert model.check_model()
    m, covariance = model.to_joint_gaussian()
    order = [names.index(v) for v in nx.topological_sort(model)]
    np.testing.assert_allclose(m, mean[order], atol=1e-7)
    np.testing.assert_allclose(covariance, np.linalg.inv(theta)[np.ix_(order, order)], atol=1e-7)
    undirected = {frozenset(edge) for edge in model.edges}
    assert undirected >= {frozenset(edge) for edge in precision_graph(theta, names).edges}
    if nx.is_chordal(nx.convert_node_labels_to_integers(GRAPHS[name])):
        assert len(undirected) == GRAPHS[name].number_of_edges()


def test_the_graph():
    graph = precision_graph(precision_on(CHORDAL, 8), list("abcde"))
    assert {frozenset(e) for e in graph.edges} == {frozenset("abcde"[i] for i in e) for e in CHORDAL.edges}
    with pytest.raises(ValueError, match="names"):
        precision_graph(np.eye(2), ["a", "a"])
    with pytest.raises(ValueError, match="precision"):
        precision_graph(-np.eye(2))
    with pytest.raises(ValueError, match="mean"):
        linear_gaussian_network(np.zeros(3), np.eye(2))


def test_the_likelihood_is_scipys():
    theta, mean, x = precision_on(CHORDAL, 9), np.arange(5.0), np.random.default_rng(1).normal(size=(7, 5))
    expected = multivariate_normal(mean, np.linalg.inv(theta)).logpdf(x)
    np.testing.assert_allclose(gaussian_log_likelihood(x, mean, theta), expected)


def test_draws_have_the_moments():
    theta, mean, n = precision_on(CYCLE, 11), np.arange(4.0), 200_000
    x = sample_gaussian(mean, theta, n, np.random.default_rng(2))
    sigma = np.linalg.inv(theta)
    sd = np.sqrt(np.diagonal(sigma))
    assert (np.abs(x.mean(axis=0) - mean) < 6 * sd / np.sqrt(n)).all()
    assert (np.abs(np.cov(x.T) - sigma) < 6 * np.sqrt(2 / n) * np.outer(sd, sd)).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample_gaussian(np.zeros(3), np.eye(2), 1, np.random.default_rng(0)),
        lambda: sample_gaussian(np.zeros(2), -np.eye(2), 1, np.random.default_rng(0)),
        lambda: gaussian_log_likelihood(np.zeros(2), np.zeros(2), np.eye(2)),
        lambda: project_psd(np.zeros((2, 3))),
        lambda: project_psd(np.eye(2), -1.0),
    ],
)
def test_bad_arguments(call):
    with pytest.raises(ValueError, match="must"):
        call()

"""The certificate: never below the true distance, whatever dual point it is given, and small at the right one."""

from __future__ import annotations

from fractions import Fraction

import cvxpy
import networkx as nx
import numpy as np
import pytest

from pgmpy_dp.communities.published.correlation_newton import project_correlation
from pgmpy_dp.communities.published.correlation_path import central_path
from pgmpy_dp.private.mathematics import certificates
from pgmpy_dp.private.mathematics.certificates import certified_pair, certified_projection, eigenvalue_floor
from tests.torch_device import DEVICE

GRAPHS = {
    "empty": nx.empty_graph(12),
    "star": nx.star_graph(11),
    "complete": nx.complete_graph(12),
    "bipartite": nx.complete_bipartite_graph(5, 7),
    "two cliques": nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6)),
    "clique and isolated": nx.disjoint_union(nx.complete_graph(4), nx.empty_graph(8)),
    "path": nx.path_graph(12),
}


def centred(name: str, scale: float = 0.4, degree: float = 4.0) -> np.ndarray:
    y = scale * (nx.to_numpy_array(GRAPHS[name]) - degree / 12)
    np.fill_diagonal(y, 0.0)
    return y


def optimum(target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y and X* to the floor of arithmetic."""
    solution = project_correlation(target, tolerance=1e-15, device=DEVICE, max_iter=400)
    assert solution.distance < 1e-9
    return solution.y, solution.matrix


def positive_part(target: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A factor of the positive part of ``target + diag(y)``."""
    values, vectors = np.linalg.eigh(target + np.diag(y))
    return vectors[:, values > 0] * np.sqrt(values[values > 0])


@pytest.mark.parametrize("name", GRAPHS)
def test_the_reference_is_that_of_another_solver(name):
    """Clarabel's interior point method on the primal program, to its own accuracy."""
    target = centred(name)
    x = cvxpy.Variable((12, 12), PSD=True)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - target)), [cvxpy.diag(x) == 1 / 12])
    problem.solve(solver=cvxpy.CLARABEL)
    np.testing.assert_allclose(x.value, optimum(target)[1], atol=1e-4)  # a gap of 1e-8


@pytest.mark.parametrize("name", GRAPHS)
def test_never_below_the_true_distance(name):
    """Random duals near and far, factors that fit them, were spoiled, or have nothing to do with them: 80 per graph."""
    target = centred(name)
    best, exact = optimum(target)
    rng = np.random.default_rng(len(name))
    ratios = []
    for attempt in range(80):
        y = best + 10.0 ** rng.uniform(-9, 1) * rng.standard_normal(12)
        values, vectors = np.linalg.eigh(target + np.diag(y))
        kept = values > (0 if attempt % 4 else 0.1)  # every fourth misses eigenpairs
        factor = vectors[:, kept] * np.sqrt(values[kept])
        if attempt % 4 == 2:
            factor = factor + 10.0 ** rng.uniform(-8, 0) * rng.standard_normal(factor.shape)
        elif attempt % 4 == 3:
            factor = rng.standard_normal((12, rng.integers(0, 5))) * (rng.random((12, 1)) > 0.2)
        point = certified_projection(target, y, positive_part(target, y) if attempt % 4 == 1 else factor)
        assert np.array_equal(point.value, point.value.T) and np.all(np.diag(point.value) == 1 / 12)
        assert np.linalg.eigvalsh(point.value)[0] > -1e-15
        distance = np.linalg.norm(point.value - exact)
        # The reference is itself within 1e-9 of the optimum.
        assert distance <= point.distance + 1e-9
        ratios.append(point.distance / max(distance, 1e-9))
    # Not by being vacuous: some are within a factor of 3.
    assert min(ratios) < 3


@pytest.mark.parametrize("name", GRAPHS)
def test_small_at_the_optimum(name):
    best, _ = optimum(centred(name))
    assert certified_projection(centred(name), best, positive_part(centred(name), best)).distance < 2e-6


def test_each_of_its_three_terms_is_needed():
    """J/n from the factor 1/sqrt(n) has a = 0, and is far from the projection: only b and r can say so."""
    target = centred("two cliques")
    _, exact = optimum(target)
    factor = np.full((12, 1), 12**-0.5)
    for y, needed in ((np.full(12, 9.0), "r"), (np.full(12, -9.0), "b")):
        point = certified_projection(target, y, factor)
        assert np.linalg.norm(point.value - exact) > 0.5
        rest = factor @ factor.T - target - np.diag(y)
        b, r = np.sum(rest * point.value), -np.linalg.eigvalsh(rest)[0]
        without = {"r": b, "b": r}[needed]
        assert without < 0 < b + r  # so that the bound without it would be 0
        assert point.distance >= 0.5


def test_what_is_not_finite_certifies_nothing():
    target = centred("path")
    y = np.zeros(12)
    y[3] = np.nan
    assert certified_projection(target, y, np.ones((12, 1))).distance == np.inf
    assert certified_projection(target, np.zeros(12), np.full((12, 2), np.inf)).distance == np.inf
    assert "0.0" not in repr(certified_projection(target, np.zeros(12), np.ones((12, 1))))


def spectral_pair(target: np.ndarray, y: np.ndarray, smoothed: float) -> tuple[np.ndarray, np.ndarray]:
    """Factors of the two parts of ``target + Diag(y)``, with a barrier where `smoothed` is positive."""
    values, vectors = np.linalg.eigh(target + np.diag(y))
    x = (values + np.sqrt(values**2 + 4 * smoothed)) / 2
    return vectors * np.sqrt(np.maximum(x, 0)), vectors * np.sqrt(np.maximum(x - values, 0))


@pytest.mark.parametrize("name", GRAPHS)
def test_pairs_are_never_below_the_true_distance(name):
    target = centred(name)
    best, exact = optimum(target)
    rng = np.random.default_rng(len(name))
    ratios = []
    for attempt in range(80):
        y = best + 10.0 ** rng.uniform(-9, 1) * rng.standard_normal(12)
        factor, dual = spectral_pair(target, y, 10.0 ** rng.uniform(-12, 0) if attempt % 2 else 0.0)
        if attempt % 4 == 2:
            factor = factor + 10.0 ** rng.uniform(-8, 0) * rng.standard_normal(factor.shape)
            dual = dual * (1 + 10.0 ** rng.uniform(-8, 0) * rng.standard_normal(dual.shape))
        elif attempt % 4 == 3:
            factor = rng.standard_normal((12, rng.integers(0, 5))) * (rng.random((12, 1)) > 0.2)
            dual = dual[:, : rng.integers(0, 13)]
        point = certified_pair(target, factor, dual)
        assert np.array_equal(point.value, point.value.T) and np.all(np.diag(point.value) == 1 / 12)
        assert np.linalg.eigvalsh(point.value)[0] > -1e-15
        distance = np.linalg.norm(point.value - exact)
        assert distance <= point.distance + 1e-9
        ratios.append(point.distance / max(distance, 1e-9))
    assert min(ratios) < 4


@pytest.mark.parametrize("name", GRAPHS)
def test_pairs_are_certified_far_below_the_floor_of_factorisations(name):
    target = centred(name)
    pair = central_path(target, 1e-9)
    assert certified_pair(target, pair.factor, pair.dual_factor).distance < 1e-9


def test_both_terms_of_a_pair_are_needed():
    """J/n and N = 0 have b = 0, and J/n with the N that leaves nothing off the diagonal h = 0."""
    target = centred("two cliques")
    _, exact = optimum(target)
    factor = np.full((12, 1), 12**-0.5)
    assert np.linalg.norm(factor @ factor.T - exact) > 0.5
    assert certified_pair(target, factor, np.zeros((12, 1))).distance > 0.5
    rest = factor @ factor.T - target
    dual = np.linalg.cholesky(rest - 1.1 * np.linalg.eigvalsh(rest)[0] * np.eye(12))
    assert certified_pair(target, factor, dual).distance > 0.5


def test_pairs_that_are_not_finite_certify_nothing():
    target, wrong = centred("path"), np.full((12, 2), np.nan)
    assert certified_pair(target, wrong, np.zeros((12, 1))).distance == np.inf
    assert certified_pair(target, np.ones((12, 1)), wrong).distance == np.inf


@pytest.mark.parametrize("size", [1, 3, 64, 65, 150])
def test_the_floor_is_below_every_eigenvalue(size):
    rng = np.random.default_rng(size)
    for rank in (1, max(1, size // 2), size):
        rows = rng.standard_normal((size, rank))
        for matrix in (rows @ rows.T, -rows @ rows.T, rows @ rows.T - np.eye(size) * rng.random()):
            matrix = (matrix + matrix.T) / 2
            lowest = np.linalg.eigvalsh(matrix)[0]
            scale = np.abs(matrix).sum(axis=1).max()
            floor = eigenvalue_floor(matrix)
            assert floor <= min(0.0, lowest + 1e-14 * scale)
            assert floor >= min(0.0, lowest) * 9 - 1e-11 * scale


def test_the_floor_by_exact_arithmetic():
    """A singular integer matrix: every leading minor of the shifted matrix is positive, in rational numbers."""
    rows = np.random.default_rng(0).integers(-3, 4, (9, 4)).astype(float)
    matrix = rows @ rows.T
    floor = eigenvalue_floor(matrix)
    assert -1e-9 < floor < 0
    exact = [
        [Fraction(v) - (Fraction(floor) if i == j else 0) for j, v in enumerate(row)] for i, row in enumerate(matrix)
    ]
    for k in range(9):  # Gaussian elimination without pivoting
        assert exact[k][k] > 0
        for i in range(k + 1, 9):
            ratio = exact[i][k] / exact[k][k]
            exact[i] = [x - ratio * z for x, z in zip(exact[i], exact[k], strict=True)]


def test_a_factorisation_that_fails_is_no_proof(monkeypatch):
    monkeypatch.setattr(certificates, "_blocked_cholesky", lambda matrix, shift: None)
    matrix = np.diag([1.0, 2.0]) + 0.5
    assert eigenvalue_floor(matrix) == -2 * 3.0  # Gershgorin's circles, doubled
    assert eigenvalue_floor(np.zeros((3, 3))) == 0.0


def test_blocked_factor_is_the_cholesky_factor():
    rows = np.random.default_rng(3).standard_normal((200, 220))
    matrix = rows @ rows.T
    lower = certificates._blocked_cholesky(matrix, 1.0)
    assert np.allclose(lower, np.linalg.cholesky(matrix + np.eye(200)), atol=1e-10)
    assert certificates._blocked_cholesky(-matrix, 1.0) is None


class TestOddNumbersOfSolvers:
    """A certificate is about the numbers that were handed in, as doubles; what is no such thing certifies nothing."""

    Y = 2.0 * (np.ones((6, 6)) - np.eye(6))

    @pytest.mark.parametrize(
        "factor",
        [
            np.full((6, 1), 1e155),  # its squares are infinite
            np.full((6, 1), np.nan),
            np.full((6, 1), np.inf),
            np.ones((7, 1)),
            np.ones(6),
            np.ones((6, 1), dtype=complex),
            "no array",
            None,
        ],
        ids=repr,
    )
    def test_certify_nothing(self, factor):
        dual = np.linalg.cholesky(12.0 * np.eye(6) - self.Y)
        assert certificates.certified_pair(self.Y, factor, dual).distance == np.inf
        assert certificates.certified_pair(self.Y, np.ones((6, 1)), factor).distance == np.inf
        assert certificates.certified_projection(self.Y, np.zeros(6), factor).distance == np.inf
        if np.shape(factor) != (6,):
            assert certificates.certified_projection(self.Y, factor, np.ones((6, 1))).distance == np.inf

    def test_integers_do_not_wrap_around(self):
        """In int8 the products of these wrap, and the distance would be 2.5e-13 where it is the square root of 2."""
        target = np.array([[0.0, -55.5], [-55.5, 0.0]])
        dual = np.array([[10, 10], [-10, -10]], dtype=np.int8)
        assert certificates.certified_pair(target, np.ones((2, 1)), dual).distance >= np.sqrt(2)

    @pytest.mark.parametrize("precision", [np.float16, np.float32])
    def test_lower_precision_is_no_better_than_it_is(self, precision):
        rng = np.random.default_rng(0)
        factor = rng.normal(size=(64, 3)).astype(precision)
        found = certificates.certified_pair(np.zeros((64, 64)), factor, np.zeros((64, 1), precision))
        rows = factor.astype(float)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_allclose(found.value, rows @ rows.T / 64, atol=1e-17)

    def test_a_solver_cannot_change_what_is_being_certified(self, monkeypatch):
        factor, dual = np.ones((6, 1)), np.linalg.cholesky(12.0 * np.eye(6) - self.Y)
        before, true = certificates.certified_pair(self.Y, factor, dual), certificates._row_squares

        def late(rows):
            found = true(rows)
            factor[:], dual[:] = 1e6, 0.0
            return found

        monkeypatch.setattr(certificates, "_row_squares", late)
        after = certificates.certified_pair(self.Y, factor, dual)
        assert after.distance == before.distance

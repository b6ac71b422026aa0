"""The constants of certificates: points that attain them, and the account of rounding, term by term, in mpmath.

A certificate that is a little too small is wrong on few inputs, which no random test meets. So each bound is shown to
be reached, by points worked out on paper; and what is added for rounding, which nobody reaches, is compared with the
account of the module's docstring, evaluated with 40 digits, on numbers with which floats do not err.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from pgmpy_dp.gaussian.operators.log_determinant import certified_precision, distance_bound, duality_gap, into_cap
from pgmpy_dp.private.mathematics import certificates
from pgmpy_dp.private.mathematics.certificates import certified_pair, certified_projection, eigenvalue_floor

mp.dps = 40
N = 16  # vertices: 1/n, 1/sqrt(n) and the numbers below are floats
SIGNS = np.where(np.arange(N) % 3 == 0, -1.0, 1.0)


def g(count: int) -> mpf:
    """What m roundings add, as docstrings have it: rounded up by one part in ten millions."""
    u = mpf(2) ** -53
    return mpf("1.0000001") * count * u / (1 - count * u)


def norm(matrix: np.ndarray) -> mpf:
    return mp.sqrt(mp.fsum(mpf(float(entry)) ** 2 for entry in np.ravel(matrix)))


def roundings(columns: int) -> int:
    """K, of a product of two rows that is added up in blocks of 32."""
    return min(columns, 32) + math.ceil(columns / 32) + 2


def factor_of_optimum(columns: int) -> np.ndarray:
    """P with P P' = v v'/n: the optimum where N is semidefinite and v is in its kernel."""
    return np.outer(SIGNS, np.ones(columns)) / math.sqrt(N * columns)


def problem(power: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Y, y and G with N = G G' = s (n I - v v'), s = 4**power/16: the projection of Y is v v'/n."""
    s = 4.0**power / N
    target = (s + 1.0 / N) * np.outer(SIGNS, SIGNS)
    np.fill_diagonal(target, 0.0)
    return target, np.full(N, 1.0 / N - s * (N - 1)), 2.0**power * (np.eye(N) - np.outer(SIGNS, SIGNS) / N)


class TestAccountOfRounding:
    @pytest.mark.parametrize("power", [-4, 0, 5])
    @pytest.mark.parametrize("columns", [1, 64])
    @pytest.mark.parametrize("scaled", [1.0, 2.0])
    def test_of_a_projection(self, columns, power, scaled):
        """At the optimum nothing but rounding is left; with P twice as large, a is 3 and b is not 0 either."""
        target, y, _ = problem(power)
        factor = scaled * factor_of_optimum(columns)
        product = scaled**2 * np.outer(SIGNS, SIGNS) / N
        x, rest = np.outer(SIGNS, SIGNS) / N, product - target - np.diag(y)
        assert np.array_equal(factor @ factor.T, product)  # floats do not err here

        k = roundings(columns)
        of_x = g(2 * k + 20)
        of_rest = g(k) * norm(factor) ** 2 + mpf(2) ** -52 * norm(rest)
        a = norm(x - product) + of_x + g(k) * norm(factor) ** 2
        b = mpf(float((rest * x).sum())) + g(18) * norm(rest) * norm(x) + of_rest + norm(rest) * of_x
        r = of_rest - mpf(eigenvalue_floor(rest))
        wanted = (a + mp.sqrt(a**2 + 4 * (b + r))) / 2 + of_x

        point = certified_projection(target, y, factor)
        assert np.array_equal(point.value, x)
        assert 1 <= mpf(point.distance) / wanted + mpf("1e-12") <= 1 + mpf("1e-11")

    @pytest.mark.parametrize("power", [-4, 0, 5])
    @pytest.mark.parametrize("columns", [1, 64])
    def test_of_a_pair(self, columns, power):
        target, _, dual = problem(power)
        factor = factor_of_optimum(columns)
        x = np.outer(SIGNS, SIGNS) / N
        rest = x - target - dual @ dual.T
        np.fill_diagonal(rest, 0.0)
        assert not rest.any() and not (dual.T @ factor).any()  # h and b are 0

        k, away = roundings(columns), x - target
        np.fill_diagonal(away, 0.0)
        of_x = g(2 * k + 20)
        h = mpf(2) ** -53 * norm(away) + g(roundings(N)) * norm(dual) ** 2 + of_x
        root = (g(N + 8) + g(k + 16)) * norm(dual)
        wanted = (h + mp.sqrt(h**2 + 4 * root**2)) / 2 + of_x

        distance = mpf(certified_pair(target, factor, dual).distance)
        assert 1 <= distance / wanted <= 1 + mpf("3e-6")  # a root's own rounding

    def test_of_the_floor(self, monkeypatch):
        """The unit matrix of two blocks: B is about I, so its bound is g(D) and two roundings of the diagonal."""
        shifts, true = [], certificates._blocked_cholesky
        monkeypatch.setattr(certificates, "_blocked_cholesky", lambda m, s: shifts.append(s) or true(m, s))
        floor = eigenvalue_floor(np.eye(128))
        (shift,) = map(mpf, shifts)
        error = g(2 + 64 + 6) * (1 + shift) + mpf(2) ** -52 * (1 + shift)
        assert 1 <= -mpf(floor) / (shift + error) + mpf("1e-12") <= 1 + mpf("1e-10")

    def test_a_factorisation_may_err_by_all_that_it_is_allowed(self, monkeypatch):
        """With l = (1, -1), abs(l) is orthogonal to l: E = -g abs(l) abs(l)' lowers an eigenvalue of l l' by 2 g."""
        monkeypatch.setattr(certificates, "_U", 2.0**-30)  # so that floats can tell
        allowed = certificates._g(1 + 64 + 6)
        lower, shifts = np.array([[1.0, 0.0], [-1.0, 0.0]]), []
        monkeypatch.setattr(certificates, "_blocked_cholesky", lambda m, s: shifts.append(s) or lower.copy())
        shift = 8.0 * allowed
        matrix = lower @ lower.T - allowed * np.ones((2, 2)) - shift * np.eye(2)
        floor = eigenvalue_floor(matrix)
        lowest = np.linalg.eigvalsh(matrix)[0]
        matrix_shift = shifts[0]
        # Whatever shift it took: what it proves is the shift and 2 g.
        assert floor <= -(matrix_shift + 2 * allowed) and lowest == pytest.approx(-(shift + 2 * allowed), rel=1e-6)
        assert -floor <= (matrix_shift + 2 * allowed) * 1.01


def two_vertices(correlation: float) -> np.ndarray:
    return np.array([[0.5, correlation], [correlation, 0.5]])


class TestAttained:
    """n = 2: the set is abs(X_12) <= 1/2, and the projection of Y clips Y_12."""

    @pytest.mark.parametrize("away", [0.01, 1e-4])
    def test_b_and_r_of_a_projection(self, away):
        """X* at the border, X_f `away` from it, a = 0 and b = 0: r alone is the squared distance, and no more."""
        x = two_vertices(-0.5 + away)
        target = two_vertices(-0.5) - 0.5 * np.eye(2)
        # N = [[-2 t c, t], [t, -2 t c]]: <N, X_f> = 0, lowest eigenvalue -2 t c - t.
        y = np.full(2, 0.5 + 2 * away * x[0, 1])
        point = certified_projection(target, y, np.linalg.cholesky(x))
        true = math.sqrt(2.0) * away
        np.testing.assert_allclose(point.value, x, atol=1e-15)
        assert 1 - 1e-12 <= point.distance / true < 1.006  # the floor is tried one percent lower

    @pytest.mark.parametrize("away", [0.01, 1e-4])
    def test_b_of_a_pair(self, away):
        """X_f - Y = G G' off the diagonal, and G is orthogonal to X*: b is the squared distance."""
        x = two_vertices(-0.5 + away)
        target = two_vertices(-0.5) - 0.5 * np.eye(2)
        point = certified_pair(target, np.linalg.cholesky(x), math.sqrt(away) * np.ones((2, 1)))
        assert 1 - 1e-12 <= point.distance / (math.sqrt(2.0) * away) < 1.001

    def test_h_of_a_pair(self):
        """Y inside the set is its own projection: h is the distance."""
        target = two_vertices(0.1) - 0.5 * np.eye(2)
        point = certified_pair(target, np.linalg.cholesky(two_vertices(0.3)), np.zeros((2, 1)))
        assert point.distance == pytest.approx(math.sqrt(2.0) * 0.2, rel=1e-12)
        assert point.distance >= math.sqrt(2.0) * 0.2 * (1 - 1e-15)


def objective(theta: np.ndarray, moments: np.ndarray, weights: np.ndarray) -> float:
    return float(-np.linalg.slogdet(theta)[1] + (moments * theta).sum() + (weights * np.abs(theta)).sum())


class TestLogDeterminant:
    S, R = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    BEST = np.array([[2.0, 0.5], [0.5, 2.0]])  # W of the optimum, at the border of its box

    def test_the_gap_at_the_optimal_dual_point_is_the_distance_of_the_values(self):
        best = np.linalg.inv(self.BEST)
        for theta in (np.diag([0.5, 0.5]), np.diag([0.3, 0.7]), best):
            theta, gap = certified_precision(theta, self.BEST, self.S, self.R, 10.0)
            true = objective(theta, self.S, self.R) - objective(best, self.S, self.R)
            assert gap == pytest.approx(true, abs=1e-12)

    @pytest.mark.parametrize("outside", [0.01, 0.5, 1.5])
    def test_a_dual_point_outside_of_its_box_proves_what_its_border_does(self, outside):
        """W = Theta^-1 would have a gap of 0: Theta is the optimum for a larger R."""
        w = np.array([[2.0, 0.5 - outside], [0.5 - outside, 2.0]])
        theta, gap = certified_precision(np.linalg.inv(w), w, self.S, self.R, 10.0)
        best = objective(np.linalg.inv(self.BEST), self.S, self.R)
        assert gap == pytest.approx(objective(theta, self.S, self.R) - best, rel=1e-6) and gap > 1e-6

    def test_the_multiplier_of_the_cap(self):
        """d = 1, S = 2 and tau = 1/4: the optimum is the cap, and the gap of what lies below is exact."""
        s, zero = np.array([[2.0]]), np.zeros((1, 1))
        for theta in (0.2, 0.05, 0.25):
            gap = duality_gap(np.array([[theta]]), s, s, zero, 0.25)
            assert gap == pytest.approx(math.log(0.25 / theta) + 2.0 * (theta - 0.25), abs=1e-15)

    def test_nothing_is_beyond_the_cap(self):
        for size in (1.01, 1.5, 30.0):
            theta = into_cap(size * np.array([[0.6, 0.4], [0.4, 0.6]]), 1.0)
            assert np.linalg.eigvalsh(theta)[-1] <= 1.0
            assert np.linalg.eigvalsh(theta)[-1] >= 1.0 - 1e-13

    def test_the_distance_of_a_gap_is_attained_at_the_cap(self):
        """d = 1, w = 1 and tau = 1: the optimum is 1, where the curvature is the smallest that there is."""
        one, zero = np.ones((1, 1)), np.zeros((1, 1))
        for away in (1e-2, 1e-3):
            gap = duality_gap(one - away, one, one, zero, 1.0)
            assert away <= distance_bound(gap, max_eigenvalue=1.0) < away * (1 + away)

"""Endings and beginnings of L-BFGS."""

import numpy as np
import pytest

from pgmpy_dp.inference.lbfgs import minimize_lbfgs, minimize_lbfgs_batch

CURVATURE = np.array([1.0, 100.0])
OPTIONS = {"max_iter": 50, "gradient_tol": 1e-10, "scale": CURVATURE**-0.5, "expect_decrease": True}


class Parabola:
    """10 + sum(c x^2)/2, which remembers where it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, x):
        self.asked.append(x.copy())
        return 10 + 0.5 * float(CURVATURE @ x**2), CURVATURE * x


@pytest.mark.parametrize(("share", "begins"), [(0.9, True), (1.1, False)])
def test_it_does_not_begin_where_too_little_is_to_be_gained(share, begins):
    start = np.array([0.3, 0.02])
    gain = 0.5 * float(CURVATURE @ start**2)  # all of it, since the scale is the exact curvature
    function = Parabola()
    solution = minimize_lbfgs(function, start, decrease_tol=share * gain / (10 + gain), **OPTIONS)
    assert (solution.n_iter > 0) == begins
    assert solution.converged
    if not begins:
        assert len(function.asked) == solution.n_evaluations == 1
        np.testing.assert_array_equal(solution.x, start)
        assert solution.gradient_norm == pytest.approx(0.3) and solution.objective == 10 + gain


def test_the_start_is_evaluated_once_and_the_answer_is_the_same():
    start = np.array([3.0, -2.0])
    function, plain = Parabola(), Parabola()
    first = minimize_lbfgs(function, start, **OPTIONS)
    second = minimize_lbfgs(plain, start, **{**OPTIONS, "expect_decrease": False})
    np.testing.assert_array_equal(first.x, second.x)
    assert len(function.asked) == len(plain.asked)
    assert sum(np.array_equal(x, start) for x in function.asked) == 1


def rows(x):
    """Of one row Rosenbrock's function, of the next log cosh, of the last a parabola."""
    a, b = x.T
    u = b - a**2
    value = np.array(
        [100 * u[0] ** 2 + (1 - a[0]) ** 2, np.log(np.cosh(x[1])).sum(), 0.5 * CURVATURE @ (x[2] - 1) ** 2]
    )
    first = [-400 * a[0] * u[0] - 2 * (1 - a[0]), 200 * u[0]]
    return value, np.array([first, np.tanh(x[1]), CURVATURE * (x[2] - 1)])


def test_a_batch_minimises_each_row_by_its_own_steps():
    """From where first steps are too long and too short, until each is done; a row that is done stays."""
    start, asked = np.array([[-1.2, 1.0], [3.0, -0.5], [1.0, 1.0]]), []

    def function(x):
        asked.append(x.copy())
        return rows(x)

    x, converged = minimize_lbfgs_batch(function, start, max_evaluations=120, gradient_tol=1e-8, decrease_tol=0.0)
    assert converged.all() and len(asked) < 120
    np.testing.assert_allclose(x, [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]], atol=1e-7)
    np.testing.assert_array_equal(x[2], start[2])
    few, done = minimize_lbfgs_batch(rows, start, max_evaluations=3, gradient_tol=1e-8, decrease_tol=0.0)
    assert done.tolist() == [False, False, True]
    assert (rows(few)[0] <= rows(start)[0]).all()


def test_a_batch_goes_back_from_where_a_value_is_infinite():
    """-log(1 - x) - log(1 + x) + 50 x: Newton's scale is wrong, and the first step leaves the domain."""

    def function(x):
        inside = np.abs(x) < 1
        safe = np.where(inside, x, 0.0)
        value = -np.log1p(-safe) - np.log1p(safe) + 50 * safe
        slope = 1 / (1 - safe) - 1 / (1 + safe) + 50
        return np.where(inside, value, np.inf).sum(axis=1), np.where(inside, slope, 0.0)

    x, converged = minimize_lbfgs_batch(
        function, np.zeros((2, 1)), max_evaluations=60, gradient_tol=1e-9, decrease_tol=0.0
    )
    assert converged.all()
    np.testing.assert_allclose(x, (1 - np.sqrt(1 + 50**2)) / 50, atol=1e-9)

"""Endings and beginnings of L-BFGS."""

import numpy as np
import pytest

from pgmpy_dp.inference.lbfgs import minimize_lbfgs

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

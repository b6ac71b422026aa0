"""The theorems' expressions: against the formulas written out again, in their growth, and against each other."""

from __future__ import annotations

import math
from math import e, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp.theory import lower_bounds as lower
from pgmpy_dp.theory import sample_complexity as upper
from pgmpy_dp.theory.order import Order, checked_weight

L, A, R, E, D, H = 1.3, 0.015, 0.7, 0.9, 1e-5, 0.4  # width, alpha, rho, epsilon, delta, eta
P, K, T, C = 30, 4, 3, 1.7  # variables, states, order, exponent

# Each: the function, and the expression of the paper typed again without logarithms of terms.
FORMULAS = {
    "1.3": (
        upper.sparse_logistic_regression(5000, P, 2 * L, R, 0.1),
        (2 * L) ** (4 / 3) * log(5000 * P / 0.1) / (5000 * sqrt(R)) ** (2 / 3),
    ),
    "3.8": (
        upper.ising_parameters(P, L, A, R),
        L**2 * log(P) * e ** (12 * L) / A**4 + sqrt(P) * L**2 * log(P) ** 2 * e ** (9 * L) / (sqrt(R) * A**3),
    ),
    "3.8, not private": (upper.ising_parameters(P, L, A, math.inf), L**2 * log(P) * e ** (12 * L) / A**4),
    "3.11": (
        upper.pairwise_parameters(P, K, L, A, R, exponent=C),
        L**2 * K**5 * log(P * K) * e ** (C * L) / A**4
        + sqrt(P) * L**2 * K**5.5 * log(P * K) ** 2 * e ** (C * L) / (sqrt(R) * A**3),
    ),
    "4.2": (
        upper.binary_polynomial(P, T, L, A, R, exponent=C),
        (2 * T) ** (C * T) * e ** (C * L * T) * P ** (4 * T) * log(P) / A**4
        + (2 * T) ** (C * T) * e ** (C * L * T) * P ** (3 * T + 0.5) * log(P) ** 2 / (sqrt(R) * A**3),
    ),
    "4.7, PMW": (
        upper.binary_parameters(P, T, L, A, R),
        e ** (5 * L * T) * sqrt(P) * log(P) ** 2 / (sqrt(R) * A**4.5)
        + T * L**2 * sqrt(P) * log(P) / (sqrt(R) * A**2)
        + e ** (6 * L * T) * log(P) / A**6,
    ),
    # So small a width and so large an alpha that the middle term, of the release, is most of the sum.
    "4.7, sepFEM": (
        upper.binary_parameters(10**9, T, 0.5, 0.5, R, release="sepfem"),
        e ** (2.5 * T) * sqrt(10**9) * log(10**9) ** 2 / (sqrt(R) * 0.5**4.5)
        + T * 0.25 * (10**9) ** 1.25 * log(10**9) / (sqrt(R) * 0.25)
        + e ** (3 * T) * log(10**9) / 0.5**6,
    ),
    "6.3": (
        upper.pairwise_structure(P, K, L, H, E, D),
        L**2 * K**4 * e ** (14 * L) * log(P * K) * log(1 / D) / (E * H**4),
    ),
    "6.2": (upper.pairwise_structure(P, K, L, H), L**2 * K**4 * e ** (14 * L) * log(P * K) / H**4),
    "6.5": (
        upper.binary_structure(P, T, L, H, E, D, exponent=C),
        e ** (C * L * T) * log(P / H) * log(1 / D) / (E * H**4),
    ),
    "5.1": (lower.ising_parameters(P, A, epsilon=E), sqrt(P) / (A * E)),
    "7.1, pure": (lower.ising_structure(P, H, epsilon=E), sqrt(P) / (H * E) + P / E),
    "7.1, zCDP": (lower.ising_structure(P, rho=R), sqrt(P / R)),
    "7.4, pure": (lower.pairwise_structure(P, K, H, epsilon=E), sqrt(P) / (H * E) + K**2 * P / E),
    "7.4, zCDP": (lower.pairwise_structure(P, K, rho=R), sqrt(K**2 * P / R)),
    "5.22": (
        lower.block_model_recovery(1000, 20, 0.3, 0.01, 0.05),
        log(1 / 0.01) / (0.3 * 20) + log(1 / 0.05) / (0.01 * 1000 * 0.3 * 20),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_those_of_the_formulas(name):
    found, expected = FORMULAS[name]
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert name.split(",")[0] in found.theorem
    assert found.order is True and float(found) == found.value
    assert found.side == ("lower" if name[0] in "57" else "upper")
    assert "with constant 1" in str(found) and found.formula in str(found)


def test_by_hand():
    assert lower.ising_structure(16, 0.5, epsilon=2.0).value == 4 / (0.5 * 2) + 16 / 2
    assert lower.pairwise_structure(16, 3, rho=4.0).value == 6.0
    assert lower.ising_parameters(25, 0.01, epsilon=1.0).value == pytest.approx(500)
    # 2^5 log(6) + sqrt(3) 2^5.5 log(6)^2, once the factor e^lambda is divided out.
    found = upper.pairwise_parameters(3, 2, 1.0, 1.0, 1.0).value / e
    assert found == pytest.approx(32 * 1.791759 + 1.7320508 * 45.254834 * 3.210402, rel=1e-6)


def test_the_zcdp_bound_on_parameters_is_the_approximate_one_at_the_epsilon_it_implies():
    for p, alpha, rho in [(10, 0.02, 1e-3), (10**4, 1e-3, 0.5), (10**6, 0.01, 40.0)]:
        n = lower.ising_parameters(p, alpha, rho=rho).value
        epsilon = rho + 2 * sqrt(rho * log(64 * n / 3))
        assert n == pytest.approx(lower.ising_parameters(p, alpha, epsilon=epsilon).value, rel=1e-9)


def slope(bound, low: int, high: int) -> float:
    """Of log n against log p."""
    return log(bound(high).value / bound(low).value) / log(high / low)


GROWTH = {
    "sqrt(p)": [
        lambda p: upper.ising_parameters(p, 1, 0.5, 1e-9),
        lambda p: upper.pairwise_parameters(p, 3, 1, 0.5, 1e-9),
        lambda p: upper.binary_parameters(p, 3, 1, 0.5, 1e-9),
        lambda p: lower.ising_parameters(p, A, epsilon=1),
        lambda p: lower.ising_parameters(p, A, rho=1),
        lambda p: lower.ising_structure(p, rho=1),
        lambda p: lower.pairwise_structure(p, 3, rho=1),
    ],
    "p^(5/4)": [lambda p: upper.binary_parameters(p, 3, 0.1, 0.9, 1e-9, release="sepfem")],
    "p^12": [lambda p: upper.binary_polynomial(p, 3, 1, 0.5, 1.0)],
    "p": [lambda p: lower.ising_structure(p, H, epsilon=1), lambda p: lower.pairwise_structure(p, 3, H, epsilon=1)],
    "log p": [
        lambda p: upper.ising_parameters(p, 1, 0.5, math.inf),
        lambda p: upper.pairwise_parameters(p, 3, 1, 0.5, math.inf),
        lambda p: upper.binary_parameters(p, 3, 1, 0.5, math.inf),
        lambda p: upper.pairwise_structure(p, 3, 1, 0.5, 1, 1e-6),
        lambda p: upper.binary_structure(p, 3, 1, 0.5, 1, 1e-6),
        lambda p: upper.sparse_logistic_regression(1000, p, 1, 1.0),
        lower.not_private,
    ],
}
POWERS = {"sqrt(p)": 0.5, "p^(5/4)": 1.25, "p^12": 12.0, "p": 1.0, "log p": 0.0}


@pytest.mark.parametrize(("growth", "bound"), [(g, b) for g, found in GROWTH.items() for b in found])
def test_the_stated_growth_is_that_of_the_values(growth, bound):
    """Up to log^2 p, whose slope between these two p is 2 log(log(high)/log(low))/log(high/low), below .045."""
    low, high = 10**17, 10**22
    logs = 2 * log(log(high) / log(low)) / log(high / low)
    assert bound(low).growth == growth
    assert -logs - 1e-3 <= slope(bound, low, high) - POWERS[growth] <= logs + 1e-3


positive = st.floats(0.01, 3.0)
SIZES = st.integers(2, 10**6)


@given(SIZES, SIZES, positive, positive, st.floats(1.0, 4.0))
def test_monotone(p, q, width, rho, factor):
    p, q = min(p, q), max(p, q)
    eta = width / 2
    for f in (
        lambda p, w, s: upper.ising_parameters(p, w, 0.1 / s, rho / s),
        lambda p, w, s: upper.pairwise_parameters(p, 3, w, 0.1 / s, rho / s),
        lambda p, w, s: upper.binary_parameters(p, 3, w, 0.1 / s, rho / s),
        lambda p, w, s: upper.binary_polynomial(p, 3, w, 0.1 / s, rho / s),
        lambda p, w, s: upper.pairwise_structure(p, 3, w, eta / s, rho / s, 0.1 / s),
        lambda p, w, s: upper.binary_structure(p, 3, w, eta / s, rho / s, 0.1 / s),
        lambda p, w, s: lower.ising_parameters(p, 0.02 / s, rho=rho / s),
        lambda p, w, s: lower.ising_parameters(p, 0.02 / s, epsilon=rho / s),
        lambda p, w, s: lower.ising_structure(p, eta / s, epsilon=rho / s),
        lambda p, w, s: lower.pairwise_structure(p, 3, rho=rho / s),
    ):
        first = f(p, width, 1.0).value
        # More variables, more width, less budget with more accuracy; up to rounding.
        for harder in (f(q, width, 1.0), f(p, width * factor, 1.0), f(p, width, factor)):
            assert harder.value >= first * (1 - 1e-9)
    assert (
        upper.pairwise_parameters(p, 4, width, 0.1, rho).value > upper.pairwise_parameters(p, 3, width, 0.1, rho).value
    )


@given(st.integers(10**4, 10**12), st.floats(0.5, 3.0), st.floats(0.001, 0.02), st.floats(1e-3, 2.0))
def test_lower_bounds_stay_below_upper_bounds(p, width, alpha, rho):
    """At large p and with constant 1, for the same goal and guarantee; at widths that the e^(9 lambda) is for."""
    assert lower.not_private(p).value <= upper.pairwise_structure(p, 2, width, width).value
    found = upper.ising_parameters(p, width, alpha, rho)
    assert lower.ising_parameters(p, alpha, rho=rho).value <= found.value
    assert lower.ising_structure(p, rho=rho).value <= upper.ising_parameters(p, width, width / 2, rho).value
    assert lower.pairwise_structure(p, 5, rho=rho).value <= upper.pairwise_parameters(p, 5, width, alpha, rho).value


def test_what_overflows_is_infinite():
    assert upper.ising_parameters(100, 80.0, 0.1, 1.0).value == math.inf
    assert upper.ising_parameters(100, 80.0, 0.1, math.inf).value == math.inf
    assert upper.binary_polynomial(10**6, 30, 1.0, 0.1, 1.0).value == math.inf


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueError, "p=1", lambda: upper.ising_parameters(1, 1, 0.1, 1)),
        (TypeError, r"p=10\.0 is a float", lambda: upper.ising_parameters(10.0, 1, 0.1, 1)),
        (TypeError, "p=True", lambda: lower.not_private(True)),
        (TypeError, "width='1' is a str", lambda: upper.ising_parameters(10, "1", 0.1, 1)),
        (ValueError, "width=0", lambda: upper.ising_parameters(10, 0, 0.1, 1)),
        (ValueError, "alpha=nan", lambda: upper.ising_parameters(10, 1, math.nan, 1)),
        (ValueError, "rho=-1", lambda: upper.pairwise_parameters(10, 2, 1, 0.1, -1)),
        (ValueError, "width=inf", lambda: upper.pairwise_parameters(10, 2, math.inf, 0.1, 1)),
        (ValueError, "k=1", lambda: upper.pairwise_parameters(10, 1, 1, 0.1, 1)),
        (ValueError, "t=1", lambda: upper.binary_parameters(10, 1, 1, 0.1, 1)),
        (ValueError, "exponent=0", lambda: upper.binary_polynomial(10, 2, 1, 0.1, 1, exponent=0)),
        (ValueError, "release='laplace'", lambda: upper.binary_parameters(10, 2, 1, 0.1, 1, release="laplace")),
        (ValueError, "min_weight=2 exceeds width=1", lambda: upper.pairwise_structure(10, 2, 1, 2, 1, 1e-6)),
        (ValueError, "delta=None", lambda: upper.pairwise_structure(10, 2, 1, 0.5, 1)),
        (ValueError, "delta=2", lambda: upper.pairwise_structure(10, 2, 1, 0.5, 1, 2)),
        (ValueError, "must be below p=3", lambda: upper.binary_structure(3, 2, 5, 4, 1, 1e-6)),
        (ValueError, "n=0", lambda: upper.sparse_logistic_regression(0, 10, 1, 1)),
        (ValueError, "alpha=0.03 .* at most 0.02", lambda: lower.ising_parameters(10, 0.03, epsilon=1)),
        (ValueError, "pass one of them", lambda: lower.ising_parameters(10, 0.01)),
        (ValueError, "pass one of them", lambda: lower.ising_structure(10, 0.1, epsilon=1, rho=1)),
        (ValueError, "min_weight=None", lambda: lower.pairwise_structure(10, 3, epsilon=1)),
        (ValueError, "epsilon=inf", lambda: lower.ising_structure(10, 0.1, epsilon=math.inf)),
        (ValueError, "gamma=1.5", lambda: lower.block_model_recovery(100, 5, 1.5, 0.02, 0.1)),
        (ValueError, "error=0.05 .* at most 0.04", lambda: lower.block_model_recovery(100, 5, 0.5, 0.05, 0.1)),
        (ValueError, "failure=1.5", lambda: lower.block_model_recovery(100, 5, 0.5, 0.02, 1.5)),
        (ValueError, "exact recovery", lambda: lower.block_model_recovery(100, 5, 0.5, 0.001, 0.1)),
    ],
)
def test_bad_arguments_are_named(error, match, call):
    with pytest.raises(error, match=match):
        call()


def test_the_smallest_problems_are_allowed():
    assert lower.not_private(2).value == pytest.approx(log(2))
    assert lower.block_model_recovery(25, 5, 1, 0.04, 1).value == pytest.approx(log(25) / 5)
    assert lower.pairwise_structure(2, 2, rho=1).formula == "sqrt(k^2 p/rho)"
    assert lower.ising_structure(2, rho=1).formula == "sqrt(p/rho)"
    for found in (
        upper.ising_parameters(2, 1, 1, 1),
        upper.binary_structure(2, 2, 1, 1),
        upper.binary_parameters(2, 2, 1, 1, 1),
    ):
        assert found.value > 0


def test_orders_are_frozen_values_and_numpy_numbers_pass():
    found = lower.ising_structure(np.int64(16), np.float32(0.5), epsilon=np.float64(2.0))
    assert found == lower.ising_structure(16, 0.5, epsilon=2.0)
    assert isinstance(found, Order)
    with pytest.raises(AttributeError):
        found.value = 3.0


def test_exact_recovery_of_communities_needs_log_n():
    """Corollary 5.24: at zeta = 1/n, (log n + log(1/beta))/(gamma d)."""
    for n in (30, 1000, 10**6):
        found = lower.block_model_recovery(n, 12, 0.5, 1 / n, 0.01)
        assert found.value == pytest.approx((log(n) + log(100)) / 6, rel=1e-12)
        assert (found.growth, found.quantity) == ("log n", "exp(2 epsilon) - 1")


@pytest.mark.parametrize("width", [10**400, -(10**400)], ids=["huge", "huge below zero"])
def test_whole_numbers_beyond_floats_are_out_of_range(width):
    with pytest.raises(ValueError, match=r"width=.* is out of range; pass a finite number above 0"):
        checked_weight(0.5, width)

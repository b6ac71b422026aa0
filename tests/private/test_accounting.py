"""Conversions against the textbook, and guarantees as values."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from pgmpy_dp.checks import checked_number
from pgmpy_dp.private.accounting import approx_to_zcdp, pure_to_zcdp, zcdp_to_approx, zcdp_to_delta
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, guarantee_from_dict, privacy_profile

rhos = st.floats(1e-7, 50.0)
deltas = st.floats(1e-12, 0.3)


def best_order(rho: float, delta: float) -> float:
    """Canonne, Kamath and Steinke 2020, Corollary 13, minimised over the order by scipy."""

    def epsilon(log_excess: float) -> float:
        alpha = 1.0 + math.exp(log_excess)
        return rho * alpha + math.log1p(-1.0 / alpha) - math.log(delta * alpha) / (alpha - 1.0)

    return max(0.0, minimize_scalar(epsilon, bounds=(-4.0, 20.0), method="bounded", options={"xatol": 1e-10}).fun)


class TestConversion:
    @given(rhos, deltas)
    def test_between_the_optimum_over_orders_and_the_textbook_bound(self, rho, delta):
        epsilon = zcdp_to_approx(rho, delta)
        assert epsilon <= rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))  # Bun and Steinke 2016
        if epsilon > 0:
            assert best_order(rho, delta) * (1 - 1e-9) <= epsilon <= best_order(rho, delta) * 1.001 + 1e-4

    @given(st.floats(0.05, 4.0), st.floats(1e-9, 0.1))
    def test_covers_the_gaussian_mechanism(self, mu, delta):
        # Balle and Wang 2018, Theorem 8: the exact delta of a Gaussian at distance mu, which is mu**2/2-zCDP.
        epsilon = zcdp_to_approx(mu**2 / 2, delta)
        exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert exact <= delta

    def test_known_value(self):
        assert zcdp_to_approx(0.1, 1e-6) == pytest.approx(2.143, abs=2e-3)
        assert 0.1 + 2 * math.sqrt(0.1 * math.log(1e6)) == pytest.approx(2.451, abs=1e-3)

    @pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
    def test_monotone(self, delta):
        epsilons = [zcdp_to_approx(rho, delta) for rho in np.logspace(-8, 2, 60)]
        assert all(a <= b for a, b in itertools.pairwise(epsilons))
        assert zcdp_to_approx(0.1, delta) >= zcdp_to_approx(0.1, 2 * delta)

    def test_edges(self):
        assert zcdp_to_approx(0.0, 1e-6) == 0.0
        assert zcdp_to_approx(0.1, 0.0) == math.inf
        assert approx_to_zcdp(1.0, 0.0) == 0.0

    @pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 30.0])
    @pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.5])
    def test_inverse_fits_and_is_largest(self, epsilon, delta):
        rho = approx_to_zcdp(epsilon, delta)
        assert zcdp_to_approx(rho, delta) <= epsilon < zcdp_to_approx(rho * (1 + 1e-12), delta)

    def test_the_smallest_numbers_end(self):
        """These looked for ever: squares and inverses that are no floats, and a rho of which no order knows."""
        assert zcdp_to_approx(approx_to_zcdp(1e-170, 1e-6), 1e-6) <= 1e-170
        assert 0 < approx_to_zcdp(1.0, 5e-324) < approx_to_zcdp(1.0, 1e-300)
        with pytest.raises(ValueError, match=r"epsilon=1e-07 with delta=1e-300 is so small"):
            approx_to_zcdp(1e-7, 1e-300)


class TestGuarantees:
    values = (PureDP(1.0), PureDP(0.1), ZCDP(0.5), ZCDP(0.00501), ApproxDP(1.0, 1e-6), ApproxDP(9.0, 1e-6))

    @pytest.mark.parametrize("guarantee", values)
    def test_dict_round_trip(self, guarantee):
        assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee

    def test_text(self):
        assert [str(g) for g in (PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6))] == ["1-DP", "0.1-zCDP", "(1, 1e-06)-DP"]

    def test_implication(self):
        implied = [[a.implies(b) for b in self.values] for a in self.values]
        assert implied == [
            # PureDP(1), PureDP(.1), ZCDP(.5), ZCDP(.00501), (1, 1e-6), (9, 1e-6)
            [True, False, True, False, True, True],
            [True, True, True, True, True, True],
            [False, False, True, False, False, True],
            [False, False, True, True, True, True],
            [False, False, False, False, True, True],
            [False, False, False, False, False, True],
        ]

    def test_pure_implies_a_smaller_epsilon_with_delta(self):
        # Through zCDP: 0.1-DP is 0.005-zCDP, whose epsilon at delta = 0.1 is smaller than 0.1.
        assert zcdp_to_approx(pure_to_zcdp(0.1), 0.1) < 0.1
        assert PureDP(0.1).implies(ApproxDP(0.09, 0.1))
        assert not ApproxDP(0.1, 0.1).implies(ApproxDP(0.09, 0.1))

    def test_zero_rho_is_perfect_privacy(self):
        assert ZCDP(0).implies(PureDP(0)) and not ZCDP(1e-9).implies(PureDP(9))

    @given(st.lists(st.sampled_from(values), min_size=3, max_size=3))
    def test_implication_is_transitive(self, three):
        a, b, c = three
        assert a.implies(c) or not (a.implies(b) and b.implies(c))

    @pytest.mark.parametrize(
        ("value", "error"),
        [
            *((value, ValueError) for value in (-1, math.inf, math.nan, 10**400)),
            *((value, TypeError) for value in (True, "1", None, np.bool_(True), 1j)),
        ],
    )
    def test_bad_numbers(self, value, error):
        for make in (PureDP, ZCDP, lambda v: ApproxDP(v, 1e-6)):
            with pytest.raises(error, match=r"(epsilon|rho)=.*pass a non-negative finite number"):
                make(value)

    @pytest.mark.parametrize("delta", [0, 1, 1.5, -0.1, math.nan])
    def test_bad_delta(self, delta):
        with pytest.raises(ValueError, match=r"delta=.*pass a positive finite number below 1"):
            ApproxDP(1.0, delta)

    @pytest.mark.parametrize("content", [{}, None, {"measure": "renyi"}, []])
    def test_bad_dict(self, content):
        with pytest.raises(ValueError, match="is not a guarantee"):
            guarantee_from_dict(content)

    def test_numbers_become_floats(self):
        assert type(PureDP(np.float32(0.5)).epsilon) is float
        assert checked_number("x", 3, positive=True) == 3.0


class TestAdjacency:
    def test_changed_records(self):
        assert changed_records(Adjacency.ADD_REMOVE) == 1 and changed_records(Adjacency.REPLACE_ONE) == 2
        with pytest.raises(ValueError, match="does not compare tables"):
            changed_records(Adjacency.EDGE)

    @pytest.mark.parametrize("value", ["replace", None, 1, "ADD_REMOVE", ["edge"]])
    def test_unknown(self, value):
        with pytest.raises(ValueError, match=r"adjacency=.* is not supported; use one of 'add_remove', 'replace_one'"):
            Adjacency.parse(value)

    def test_allowed(self):
        assert Adjacency.parse("edge") is Adjacency.EDGE
        with pytest.raises(ValueError, match=r"neighbours='edge' is not supported; use one of 'add_remove'$"):
            Adjacency.parse("edge", argument="neighbours", allowed=("add_remove",))


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.1, 1.0, 5.0])
def test_delta_of_a_rho_is_the_inverse_and_the_formula(rho):
    for delta in (1e-12, 1e-6, 1e-2):
        epsilon = zcdp_to_approx(rho, delta)
        if epsilon > 0:
            assert zcdp_to_delta(rho, epsilon) == pytest.approx(delta, rel=1e-6)
    orders = 1.0 + np.geomspace(1e-2, 1e6, 200_001)
    for epsilon in (0.5 * rho, 3.0 * rho, 10.0 * np.sqrt(rho)):
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        # Or by the Kullback-Leibler divergence, at most rho; the library's grid of orders is coarser, from 1.0126 on.
        best = min(np.exp(logs.min()), np.sqrt(-np.expm1(-rho)))
        assert best * (1 - 1e-9) <= zcdp_to_delta(rho, epsilon) <= best * 1.01
    assert zcdp_to_delta(0.0, 0.0) == 0.0


@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.1, 0.0), (1.0, 0.0), (1.0, 1e-3), (3.0, 0.2), (800.0, 1e-6)])
def test_profiles_are_those_of_randomised_response_that_sometimes_tells(epsilon0, delta0):
    guarantee = ApproxDP(epsilon0, delta0) if delta0 else PureDP(epsilon0)
    truthful = 1.0 / (1.0 + np.exp(-epsilon0))
    # Outputs: told outright yes, answered yes, answered no, told outright no.
    first = np.array([delta0, (1 - delta0) * truthful, (1 - delta0) * (1 - truthful), 0.0])
    for epsilon in (0.0, 0.05, 0.7, 1.0, 2.9, 5.0):
        exact = np.maximum(first - np.exp(epsilon) * first[::-1], 0.0).sum()
        assert privacy_profile(guarantee, epsilon) == pytest.approx(exact, abs=1e-12)
    assert privacy_profile(guarantee, epsilon0 + 1.0) == delta0


def test_a_profile_needs_an_epsilon():
    with pytest.raises(ValueError, match="epsilon=-1"):
        privacy_profile(PureDP(1.0), -1.0)

"""Attack rates against closed forms, exact attacks on mechanisms, and dp-accounting's conversions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from pgmpy_dp.private.accounting import zcdp_to_delta
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP, privacy_profile
from pgmpy_dp.theory.attack_rates import attack_success

RATES = np.array([0.0, 1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.9, 0.99, 1.0])
RHOS = (1e-6, 1e-3, 0.0149, 0.1, 0.5, 2.0, 10.0)


def exact_success(p: np.ndarray, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Power of the best test of P against Q at each rate: Neyman and Pearson, with randomised ties."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.where(p > 0, q / p, np.inf))
    return np.interp(rates, np.r_[0, np.cumsum(p[order])], np.r_[0, np.cumsum(q[order])])


def renyi(p: np.ndarray, q: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Renyi divergences of P from Q, both positive everywhere."""
    logs = np.log(p) + np.multiply.outer(orders - 1, np.log(p) - np.log(q))
    return np.logaddexp.reduce(logs, axis=-1) / (orders - 1)


def discrete(kind: str, scale: float, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Discrete noise around 0 and around a shift, on all integers that matter."""
    around = np.arange(-int(60 * scale) - 3, int(60 * scale) + 4)
    logs = [
        -np.abs(around - s) / scale if kind == "laplace" else -((around - s) ** 2) / 2 / scale**2 for s in (0, shift)
    ]
    weights = [np.exp(log) for log in logs]
    return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.3, 0.0), (1.0, 0.0), (8.0, 0.0), (1.0, 0.01), (0.0, 0.2)]
)
def test_epsilon_and_delta_are_the_closed_form_that_randomised_response_attains(epsilon, delta):
    found = attack_success(PureDP(epsilon) if delta == 0 else ApproxDP(epsilon, delta), RATES)
    factor = math.exp(epsilon)
    f = np.maximum(0, np.maximum(1 - delta - factor * RATES, (1 - delta - RATES) / factor))
    assert found == pytest.approx(np.maximum(1 - f, RATES), rel=1e-12, abs=1e-14)
    told = np.array([delta, 0, (1 - delta) / (1 + factor), (1 - delta) * factor / (1 + factor)])
    attained = exact_success(told[[1, 0, 2, 3]], told[[0, 1, 3, 2]], RATES)
    assert (found >= attained).all() and found == pytest.approx(attained, abs=1e-9)


@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_is_attained_by_two_coins_and_no_more_is_allowed(rho):
    rates = RATES[2:-1]
    found = attack_success(ZCDP(rho), rates)
    orders = 1 + np.geomspace(1e-5, 3e7, 2777)  # others than those that were tried
    for rate, p in zip(rates, found, strict=True):
        if p > 1 - 1e-9:
            continue
        coins = np.array([1 - rate, rate]), np.array([1 - p, p])
        excess = max((renyi(*pair, orders) / orders).max() for pair in (coins, coins[::-1])) / rho
        assert 1 - 1e-3 < excess < 1 + 1e-3 + 1e-9 / rho
        more = np.array([1 - min(1.02 * p, (1 + p) / 2), min(1.02 * p, (1 + p) / 2)])
        assert max((renyi(*pair, orders) / orders).max() for pair in ((coins[0], more), (more, coins[0]))) > rho


@pytest.mark.parametrize("pairs", [80, pytest.param(300, marks=pytest.mark.slow)])
def test_zcdp_bounds_every_test_of_random_distributions(pairs):
    rng, orders = np.random.default_rng(0), 1 + np.geomspace(1e-3, 1e4, 500)
    tight = 0.0
    for _ in range(pairs):
        size = int(rng.integers(2, 6))
        p, q = rng.dirichlet(np.full(size, rng.choice([0.5, 3.0])), 2) + 1e-9
        p, q = p / p.sum(), q / q.sum()
        rho = max((renyi(*pair, orders) / orders).max() for pair in ((p, q), (q, p)))
        rates = rng.random(20)
        exact, found = exact_success(p, q, rates), attack_success(ZCDP(float(rho)), rates)
        assert (exact <= found + 1e-12).all()
        tight = max(tight, float(((exact - rates) / (found - rates)).max()))
    assert tight > 0.95


@pytest.mark.parametrize(("kind", "scale"), [("gaussian", 0.7), ("gaussian", 5.0), ("laplace", 0.5), ("laplace", 3.0)])
def test_noise_as_it_is_drawn_is_within_the_curve(kind, scale):
    p, q = discrete(kind, scale, 1)
    guarantees = [PureDP(1 / scale), ZCDP(0.5 / scale**2)] if kind == "laplace" else [ZCDP(0.5 / scale**2)]
    for guarantee in guarantees:
        exact = exact_success(p, q, RATES)
        assert (exact <= attack_success(guarantee, RATES) + 1e-13).all()


def test_the_curve_of_gaussian_dp_would_be_wrong():
    """Discrete Laplace noise of epsilon is epsilon**2/2-zCDP, and beats the Gaussian curve of that rho."""
    exact = exact_success(*discrete("laplace", 0.5, 1), RATES)
    assert (exact > norm.sf(norm.isf(RATES) - 2.0) + 0.01).any()


@pytest.mark.parametrize("rho", RHOS)
def test_zcdp_is_at_least_as_sharp_as_all_that_dp_accounting_converts_it_to(rho):
    epsilons = np.linspace(0, 12 * (rho + math.sqrt(rho)), 60)
    deltas = np.array([zcdp_to_delta(rho, float(epsilon)) for epsilon in epsilons])[:, None]
    converted = np.minimum(1, np.exp(epsilons)[:, None] * RATES + deltas).min(axis=0)
    found = attack_success(ZCDP(rho), RATES)
    assert (found <= converted * (1 + 1e-4) + 1e-9).all()
    small = RATES[3:6]
    assert attack_success(ZCDP(rho), small) == pytest.approx(np.minimum(1, converted[3:6]), rel=0.12)


def test_a_reserve_comes_on_top():
    plain = attack_success(ZCDP(0.1), RATES)
    for eta in (1e-9, 1e-3):
        guarantee = ReservedZCDP(0.1, eta)
        found = attack_success(guarantee, RATES)
        assert (found >= np.minimum(1, plain + eta * (RATES < 0.5)) - 1e-9).all()
        assert (found <= plain + eta + 0.03).all()
        for epsilon in (0.0, 0.5, 1.3, 4.0):
            delta = privacy_profile(guarantee, epsilon)
            assert (found <= np.maximum(np.exp(epsilon) * RATES + delta, RATES) + 2e-3).all()
    assert attack_success(ReservedZCDP(0.0, 0.01), 0.1) == pytest.approx(0.11)


@pytest.mark.parametrize("guarantee", [PureDP(0.7), ApproxDP(0.7, 0.1), ZCDP(0.2), ReservedZCDP(0.2, 0.01)])
def test_curves_are_curves(guarantee):
    rates = np.linspace(0, 1, 201)
    found = attack_success(guarantee, rates)
    assert (found >= rates).all() and (np.diff(found) >= -1e-12).all()
    assert (np.diff(found, 2) <= 1e-9).all(), "concave, which guesses rest on"
    back = attack_success(guarantee, 1 - found)  # D and D' change places
    assert (1 - rates <= back + 1e-9).all()
    assert found[-1] == 1 and attack_success(guarantee, rates[:0]).shape == (0,)
    assert (attack_success(type(guarantee)(*[0.0, 1e-12][: len(vars(guarantee))]), rates) - rates < 1e-9).all()


@pytest.mark.parametrize(("epsilon", "values"), [(0.5, 2), (1.0, 10), (2.0, 1000)])
def test_a_guess_is_right_no_more_often_than_the_curve_says(epsilon, values):
    """The best guess from randomised response about one of `values` equally likely secrets, and under random laws."""
    right = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    assert right <= attack_success(PureDP(epsilon), 1 / values) <= min(1, math.exp(epsilon) / values) + 1e-12
    rng = np.random.default_rng(values)
    for _ in range(100):
        prior = rng.dirichlet(np.ones(4))
        nobody = rng.dirichlet(np.ones(6)) + 1e-6
        laws = nobody * np.exp(
            rng.uniform(-epsilon / 2, epsilon / 2, (4, 6))
        )  # within epsilon of each other, and of nobody's
        laws, nobody = laws / laws.sum(axis=1, keepdims=True), nobody / nobody.sum()
        best = (prior[:, None] * laws).max(axis=0).sum()
        assert best <= attack_success(PureDP(epsilon), prior.max())


def test_what_is_no_rate_is_refused():
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="must be rates, from 0 to 1"):
            attack_success(PureDP(1.0), rate)

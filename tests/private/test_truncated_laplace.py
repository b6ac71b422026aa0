"""Truncated Laplace noise: its law, its guarantee by enumeration, and an audit that wrong versions fail."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pgmpy_dp.private.noise.truncated_laplace import TruncatedLaplace, add_truncated_laplace, truncated_laplace
from tests.private.audit import audit, epsilon_bound


def law(noise: TruncatedLaplace) -> np.ndarray:
    """Probabilities of 0 .. 2S, by their definition."""
    weights = np.exp(-np.abs(np.arange(noise.largest + 1) - noise.centre) / noise.scale)
    return weights / weights.sum()


def smallest_delta(noise: TruncatedLaplace, shift: int, epsilon: float) -> float:
    """``max_E P(E) - exp(epsilon) P'(E)`` over all events, for neighbours `shift` apart, both ways."""
    p = np.concatenate([law(noise), np.zeros(shift)])
    q = np.concatenate([np.zeros(shift), law(noise)])
    grown = math.exp(epsilon) * (1 + 1e-12)
    return max(np.clip(p - grown * q, 0, None).sum(), np.clip(q - grown * p, 0, None).sum())


@pytest.mark.parametrize("sensitivity", [1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
def test_guarantee_over_all_events(sensitivity, epsilon, delta):
    noise = truncated_laplace(sensitivity, epsilon, delta)
    assert max(smallest_delta(noise, shift, epsilon) for shift in range(1, sensitivity + 1)) <= delta
    # It is the least: with the centre one lower the delta is spent (unless the centre is as low as it can be).
    if noise.centre > sensitivity:
        assert smallest_delta(TruncatedLaplace(noise.scale, noise.centre - 1), sensitivity, epsilon) > delta


@pytest.mark.parametrize("mutate", ["half the scale", "delta of no sensitivity"])
def test_wrong_versions_fail_the_enumeration(mutate):
    sensitivity, epsilon, delta = 8, 0.5, 1e-4
    right = truncated_laplace(sensitivity, epsilon, delta)
    wrong = {
        "half the scale": TruncatedLaplace(right.scale / 2, right.centre),
        "delta of no sensitivity": truncated_laplace(1, epsilon / sensitivity, delta),  # forgets that D values are lost
    }[mutate]
    assert smallest_delta(right, sensitivity, epsilon) <= delta < smallest_delta(wrong, sensitivity, epsilon)


@pytest.mark.parametrize("seed", [None, 5])
def test_samples_have_the_law(seed):
    noise, size = TruncatedLaplace(2.0, 4), 40_000
    rng = None if seed is None else np.random.default_rng(seed)
    drawn = add_truncated_laplace(np.full((size // 4, 4), 10), noise, seed=rng)
    assert drawn.shape == (size // 4, 4) and drawn.min() >= 10 and drawn.max() <= 18
    observed = np.bincount(drawn.ravel() - 10, minlength=9)
    # Bernstein's bound for each of 9 cells, false alarm 1e-7 in all.
    p, t = law(noise), math.log(2 * 9 / 1e-7)
    assert np.all(np.abs(observed - size * p) <= np.sqrt(2 * size * p * (1 - p) * t) + 2 * t / 3)


def passes(value: int, noise: TruncatedLaplace, limit: int):
    """A test with a second step that says the value exactly where it passes: private only for inputs that cannot."""

    def draw(dataset: int, count: int) -> np.ndarray:
        x = value + dataset
        noisy = add_truncated_laplace(np.full(count, x), noise, seed=np.random.default_rng(dataset))
        return np.where(noisy <= limit, 2.0 * limit + x - value, noisy)

    return draw


def test_a_value_above_the_limit_never_passes():
    noise = truncated_laplace(1, 1.0, 0.01)
    assert (add_truncated_laplace(np.full(20_000, 31), noise, seed=np.random.default_rng(0)) > 30).all()


def test_audit_of_the_released_number_with_mutants():
    sensitivity, epsilon, delta = 3, 1.0, 0.01
    right = truncated_laplace(sensitivity, epsilon, delta)

    def bound(noise: TruncatedLaplace, direction: int = 1) -> float:
        def draw(dataset: int, count: int) -> np.ndarray:
            rng = np.random.default_rng([dataset, count])
            return add_truncated_laplace(np.full(count, sensitivity * dataset), noise, seed=rng)

        def score(outputs: np.ndarray) -> np.ndarray:
            # Likelihood ratio of dataset 0 to dataset 1 under the claimed law; certain where only one is possible.
            first, second = outputs, outputs - sensitivity
            ratio = (np.abs(second - noise.centre) - np.abs(first - noise.centre)) / noise.scale
            return direction * np.where(second < 0, 1e3, np.where(first > noise.largest, -1e3, ratio))

        return audit(draw, score, releases=200_000, bound=lambda p, q: epsilon_bound(p, q, delta))

    assert bound(right) <= epsilon
    assert bound(TruncatedLaplace(right.scale / 2, right.centre)) > epsilon
    # Truncated where the noise is still likely: the delta is far above the one that is charged.
    assert bound(TruncatedLaplace(right.scale, sensitivity)) > epsilon


def test_audit_of_composition_under_halting():
    noise, limit = truncated_laplace(1, 1.0, 0.01), 60
    claimed = lambda p, q: epsilon_bound(p, q, 0.01)  # noqa: E731
    score = lambda outputs: -outputs  # noqa: E731
    # At the limit and above it: the second step tells everything, and only the limit's own probability of passing pays.
    assert audit(passes(limit, noise, limit), score, releases=100_000, bound=claimed) <= 1.0
    # Two-sided noise, the same scale: both can pass, and then the second step gives the value away.
    shifted = lambda dataset, count: passes(limit - noise.centre, noise, limit)(dataset, count)  # noqa: E731
    assert audit(shifted, score, releases=100_000, bound=claimed) > 1.0


def test_exact_epsilon_and_extremes():
    assert truncated_laplace(1, Fraction(1, 3), 1e-6).scale >= 3.0
    assert truncated_laplace(10**6, 5.0, 1e-6).centre >= 10**6
    with pytest.raises(ValueError, match="raise epsilon"):
        add_truncated_laplace(np.zeros(1), truncated_laplace(1, 1e-20, 1e-6))

"""Intervals for a ratio of two noisy numbers, and the distance of a sample from its model."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

_ROUNDS = 60
_HALF = 0.5
"""How much further off a number with discrete noise of a scale may be than one with continuous noise of it, in either
direction: ``P(abs(Z) >= k)`` of discrete Laplace noise is below that of its continuous counterpart at k - 1/2."""


def difference_quantile(distribution: str, first: float, second: float, level: float) -> float:
    """c with ``P(abs(X - Y) <= c) = level`` for independent X and Y of the scales `first` and `second`.

    Parameters
    ----------
    distribution : str
        "discrete_laplace" or "discrete_gaussian"; X and Y are of its continuous counterpart.
    first, second : float
        Positive, and not negative: of 0, Y is 0.
    level : float in (0, 1)

    Examples
    --------
    >>> round(difference_quantile("discrete_gaussian", 3.0, 4.0, 0.95), 2)
    9.8
    >>> round(difference_quantile("discrete_laplace", 10.0, 0.0, 0.9), 2)
    23.03
    """
    if distribution == "discrete_gaussian":
        return -float(special.ndtri((1.0 - level) / 2)) * math.hypot(first, second)
    wide = max(first, second)
    narrow = min(first, second, wide * (1.0 - 1e-6))  # where both are equal the formula has another form
    if narrow <= 0.0:
        return -wide * math.log1p(-level)

    def beyond(c: float) -> float:
        return (wide**2 * math.exp(-c / wide) - narrow**2 * math.exp(-c / narrow)) / (wide**2 - narrow**2)

    most = wide * (2.0 - 2.0 * math.log1p(-level))
    return float(optimize.brentq(lambda c: beyond(c) - (1.0 - level), 0.0, most, xtol=1e-9 * wide))


def ratio_interval(
    numerator: float, denominator: float, distribution: str, scales: tuple[float, float], level: float
) -> tuple[float, float]:
    """An interval for U/N in [0, 1], from ``U + noise`` and ``N + noise``.

    Parameters
    ----------
    numerator, denominator : float
        Noisy whole numbers. U was rounded to one.
    distribution : str
        Of both noises, see `difference_quantile`.
    scales : (float, float)
        Of the noise of the numerator, and of the denominator.
    level : float in (0, 1)

    Returns
    -------
    (float, float)
        It holds the ratio with at least the probability `level`.

    Notes
    -----
    For the true ratio t, ``numerator - t denominator`` is the noise X - t Y and the rounding (Fieller 1954). So t is
    among the numbers with ``abs(numerator - t denominator) <= q(t)``, q(t) the quantile and what rounding adds. All of
    these are at most ``T(t) = (numerator + q(t))/denominator``, and T does not fall, so that each of 1, T(1), T(T(1)),
    ... is an upper end. A noisy numerator below 0 counts as 0 there: the interval is never empty, nor of no length.

    Examples
    --------
    >>> low, high = ratio_interval(400.0, 20_000.0, "discrete_laplace", (20.0, 100.0), 0.9)
    >>> round(low, 4), round(high, 4)
    (0.0176, 0.0224)
    """
    if denominator <= 0.0:
        return 0.0, 1.0

    def reach(t: float) -> float:
        return difference_quantile(distribution, scales[0], t * scales[1], level) + (2.0 + t) * _HALF

    high = 1.0
    for _ in range(_ROUNDS):
        above = min(1.0, (max(numerator, 0.0) + reach(high)) / denominator)
        if above >= high:
            break
        high = above
    low = max(0.0, (numerator - reach(high)) / denominator)
    return min(low, high), high


def sampling_distance(probabilities: np.ndarray, n_records: float) -> float:
    """The expected total variation between a table and that of n records drawn from it.

    By ``E abs(K - n m) = sqrt(2 n m (1 - m)/pi)`` for K binomial, and ``2 n m (1 - m)`` where that is less: rare cells.

    Parameters
    ----------
    probabilities : ndarray
    n_records : float

    Examples
    --------
    >>> round(sampling_distance(np.array([0.5, 0.5]), 10_000), 5)
    0.00399
    """
    n = max(n_records, 1.0)
    variance = np.maximum(n * probabilities * (1.0 - probabilities), 0.0)
    return min(1.0, 0.5 * float(np.minimum(np.sqrt(2.0 * variance / np.pi), 2.0 * variance).sum()) / n)

"""Exact draws from a finite list with integer weights, and rational bounds of exp(epsilon) to make such weights of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.noise.subsampling import RATE_UNIT

_LARGEST = 40  # a larger epsilon is taken for this one: exp(-40) is 4e-18
_ROUNDING = 1 << 80


def exponential_below(epsilon: float | Fraction) -> Fraction:
    """A rational number in (0, exp(epsilon)], near its end for epsilon up to 40, for which larger ones are taken.

    Parameters
    ----------
    epsilon : float or Fraction
        Not negative.

    Notes
    -----
    Partial sums of the exponential series are below its value, since all terms are positive; the result is rounded down
    to a multiple of 2**-80.

    Examples
    --------
    >>> float(exponential_below(1.0))
    2.718281828459045
    """
    x = min(Fraction(epsilon), Fraction(_LARGEST))
    total, term = Fraction(0), Fraction(1)
    for k in range(1, 400):
        total += term
        # Terms may be rounded down too: every partial sum stays below.
        term = Fraction((term * x / k * _ROUNDING * _ROUNDING).__floor__(), _ROUNDING * _ROUNDING)
    return Fraction((total * _ROUNDING).__floor__(), _ROUNDING)


def flip_rate(epsilon: float | Fraction) -> float:
    """Smallest multiple p of 1/RATE_UNIT for which flipping a bit with probability p is epsilon-DP.

    Randomised response (Warner 1965) needs ``(1 - p)/p <= exp(epsilon)``; p is rounded up against a lower bound of
    exp(epsilon), so it holds exactly. At most 1/2.

    Examples
    --------
    >>> flip_rate(1.0), flip_rate(1e-9)
    (0.268951416015625, 0.5)
    """
    share = RATE_UNIT / (1 + exponential_below(epsilon))
    return min(RATE_UNIT // 2, -((-share).__floor__())) / RATE_UNIT


def integer_below(bound: int, rng: np.random.Generator | None = None) -> int:
    """A uniform integer in ``0 .. bound-1``, exactly: random bits of the operating system, drawn again if too large.

    An `rng`, for tests and benchmarks only, draws the bits from it, **not privately**.
    """
    if bound < 1:
        raise ValueError(f"bound={bound!r} must be at least 1")
    n_bits = (bound - 1).bit_length()
    n_bytes = (n_bits + 7) // 8
    random_bytes = os.urandom if rng is None else rng.bytes
    while True:
        drawn = int.from_bytes(random_bytes(n_bytes), "little") >> (8 * n_bytes - n_bits)
        if drawn < bound:
            return drawn


def weighted_choice(weights: Sequence[int], rng: np.random.Generator | None = None) -> int:
    """Position k with probability exactly ``weights[k] / sum(weights)``.

    Parameters
    ----------
    weights : sequence of int
        Not negative, of any size, with a positive sum.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only.

    Examples
    --------
    >>> weighted_choice([0, 10**400, 0])
    1
    """
    remaining = integer_below(sum(weights), rng)
    for position, weight in enumerate(weights):
        remaining -= weight
        if remaining < 0:
            return position
    raise AssertionError("a number below the sum of the weights is below one of their partial sums")

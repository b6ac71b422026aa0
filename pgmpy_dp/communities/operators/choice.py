"""Exact draws from a finite list with integer weights, and bounds of exp(epsilon) to make such weights of."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from pgmpy_dp.private.noise.subsampling import RATE_UNIT

Scaled = tuple[int, int]
"""A number m 2**e, as (m, e): integers of any size."""

_DIGITS = 64  # of exp(epsilon), in binary
_READ = 128  # bits that a choice reads at a time


def exponential_below(epsilon: float | Fraction) -> Scaled:
    """A number m 2**e in ``((1 - 2**-60) exp(epsilon), exp(epsilon)]``, and at least 1; for any epsilon.

    Parameters
    ----------
    epsilon : float or Fraction
        Not negative.

    Notes
    -----
    ``exp(epsilon) = exp(y)**(2**h)`` with ``y = epsilon/2**h < 1``. Partial sums of the exponential series of y are
    below its value, since all terms are positive. So are they with terms that are rounded down, squares of them, and
    what is left of these by rounding down: the result is never above exp(epsilon). The first term is 1, and rounding
    down takes no number from above 1 to below it. Each square doubles the relative error, and with ``128 + h`` digits
    less than ``2**-120`` is left after all of them.

    Examples
    --------
    >>> m, e = exponential_below(1.0)
    >>> m * 2.0**e
    2.718281828459045
    >>> exponential_below(1e15)[1]
    1442695040888900
    """
    x = Fraction(epsilon)
    halvings = int(x).bit_length()
    digits = 2 * _DIGITS + halvings
    total, term, k, exponent = 0, 1 << digits, 0, -digits
    while term:
        total, k = total + term, k + 1
        term = term * x.numerator // (x.denominator * k << halvings)
    for _ in range(halvings):
        total, exponent = shortened(total * total, 2 * exponent, digits)
    return shortened(total, exponent, _DIGITS)


def shortened(m: int, e: int, digits: int) -> Scaled:
    """The number m 2**e, rounded down to so many binary digits.

    Examples
    --------
    >>> shortened(0b10111, 5, 3)
    (5, 7)
    """
    rest = max(0, m.bit_length() - digits)
    return m >> rest, e + rest


def flip_rate(epsilon: float | Fraction) -> float:
    """Smallest multiple p of 1/RATE_UNIT for which flipping a bit with probability p is epsilon-DP.

    Randomised response (Warner 1965) needs ``(1 - p)/p <= exp(epsilon)``; p is rounded up against a lower bound of
    exp(epsilon), so it holds exactly. At most 1/2.

    Examples
    --------
    >>> flip_rate(1.0), flip_rate(1e-9)
    (0.268951416015625, 0.5)
    """
    m, e = exponential_below(epsilon)
    share = RATE_UNIT / (1 + m * Fraction(2) ** min(e, 0))  # at 2**63 it is one unit, the smallest rate, already
    return min(RATE_UNIT // 2, -((-share).__floor__())) / RATE_UNIT


def integer_below(bound: int, rng: np.random.Generator | None = None) -> int:
    """A uniform integer in ``0 .. bound-1``, exactly: random bits of the operating system, drawn again if too large.

    With an `rng`, for tests and benchmarks only, the bits are drawn from it, **not privately**.
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
    ends = list(accumulate(weights))
    return bisect_right(ends, integer_below(ends[-1], rng))


def scaled_choice(weights: Sequence[Scaled], rng: np.random.Generator | None = None) -> int:
    """Position k with probability exactly ``w_k / sum of all w``, for weights ``w_k = m_k 2**e_k`` of any exponents.

    Parameters
    ----------
    weights : sequence of (int, int)
        Each m_k positive.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only.

    Notes
    -----
    A real number u is uniform on [0, 1), and position k is chosen if ``S_k <= u S_n < S_(k+1)``, where S_k is the sum
    of the first k of the n weights. Of u the first t bits are read: ``U <= 2**t u < U + 1``. Of the weights, in units
    of ``2**-t`` times a power of two above all of them, the whole parts a_j are taken, and A_k is the sum of the first
    k: ``A_k <= S_k <= A_k + k``. So k is chosen for certain if ``2**t (A_k + k) <= U A_n`` and ``(U + 1) (A_n + n) <=
    2**t A_(k+1)``. Where no k is certain, more bits are read. The position is that of u, whatever was read: its law is
    exact, and no weight had to be written out. A number u that leaves it open for ever is one of at most n, of
    probability 0; t bits leave it open with a probability of the order of ``n**2 2**-t``.

    Examples
    --------
    >>> scaled_choice([(1, 0), (3, 10**12), (1, -(10**12))])
    1
    """
    n, top = len(weights), max(m.bit_length() + e for m, e in weights)
    bits = read = 0
    while True:
        bits += _READ
        read = read << _READ | integer_below(1 << _READ, rng)
        shifts = [e + bits - top for _, e in weights]
        ends = list(accumulate(m << s if s > 0 else m >> -s for (m, _), s in zip(weights, shifts, strict=True)))
        low, high = read * ends[-1], (read + 1) * (ends[-1] + n)
        k = bisect_right(ends, low >> bits)
        if k < n and high <= ends[k] << bits and (k == 0 or (ends[k - 1] + k) << bits <= low):
            return k

"""Random parts of the records: each takes part, or goes to one of several parts, by an exact draw of its own."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np

RATE_UNIT = 1 << 16
"""Rates are multiples of 1/RATE_UNIT, so that a coin is a comparison of two random bytes with an integer."""

_CHUNK = 1 << 22  # records whose coins are held at once


def rounded_rate(rate: float) -> float:
    """The multiple of 1/RATE_UNIT nearest to `rate`, at least one of them; a float holds it exactly.

    Examples
    --------
    >>> rounded_rate(0.1) * RATE_UNIT, rounded_rate(1e-9) * RATE_UNIT
    (6554.0, 1.0)
    """
    return max(1, round(Fraction(rate) * RATE_UNIT)) / RATE_UNIT


def poisson_sample(n: int, rate: float, *, rng: np.random.Generator | None = None) -> np.ndarray:
    """Positions of the records that take part, each independently with probability `rate`.

    Parameters
    ----------
    n : int
        Number of records.
    rate : float
        In (0, 1], a multiple of 1/RATE_UNIT as :func:`rounded_rate` returns it.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: draw from this generator, **not privately**.

    Returns
    -------
    ndarray of int, increasing

    Notes
    -----
    Privacy: amplification by sampling needs coins that are independent of the records and unknown to the adversary. A
    coin is two of the operating system's random bytes, of no other coin, so that it is independent of how many other
    records there are, of what they hold, and of their coins. With the integer ``k = rate * RATE_UNIT``, it shows heads
    when the two bytes, read as a number below RATE_UNIT, are below k: with probability exactly k / RATE_UNIT. The
    second byte is drawn only where the first one does not decide.
    """
    threshold = round(rate * RATE_UNIT)
    if not 0 < threshold <= RATE_UNIT or threshold != rate * RATE_UNIT:
        raise ValueError(f"rate={rate!r} is not a multiple of 1/{RATE_UNIT} in (0, 1]; pass rounded_rate(rate)")
    if threshold == RATE_UNIT:
        return np.arange(n)
    random_bytes = os.urandom if rng is None else rng.bytes
    high, low = divmod(threshold, 256)
    chosen = []
    for start in range(0, n, _CHUNK):
        first = np.frombuffer(random_bytes(min(_CHUNK, n - start)), dtype=np.uint8)
        heads = first < high
        if low:
            tied = np.flatnonzero(first == high)
            second = np.frombuffer(random_bytes(tied.size), dtype=np.uint8)
            heads[tied[second < low]] = True
        chosen.append(start + np.flatnonzero(heads))
    return np.concatenate(chosen) if chosen else np.empty(0, dtype=np.intp)


def uniform_parts(n: int, parts: int, *, rng: np.random.Generator | None = None) -> np.ndarray:
    """The part of each of n records: independent, uniform on ``0 .. parts - 1``.

    Parameters
    ----------
    n : int
        Number of records.
    parts : int
        In 1 .. 2**32.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: draw from this generator, **not privately**.

    Returns
    -------
    ndarray of int64, shape (n,)

    Notes
    -----
    Privacy: a draw is 32 of the operating system's random bits, of no other draw, taken modulo `parts`; numbers from
    the largest multiple of `parts` on are drawn again, so the result is exactly uniform. What is drawn again has bits
    of its own too, so no record's part depends on how many others there are or on what they hold.
    """
    if not 1 <= parts <= 2**32:
        raise ValueError(f"parts={parts!r} must be between 1 and 2**32")
    random_bytes = os.urandom if rng is None else rng.bytes
    end = 2**32 - 2**32 % parts
    drawn = np.empty(n, dtype=np.int64)
    for start in range(0, n, _CHUNK):
        chunk = drawn[start : start + _CHUNK]
        chunk[:] = np.frombuffer(random_bytes(4 * chunk.size), dtype=np.uint32)
        while (again := np.flatnonzero(chunk >= end)).size:
            chunk[again] = np.frombuffer(random_bytes(4 * again.size), dtype=np.uint32)
        chunk %= parts
    return drawn

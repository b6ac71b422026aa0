"""Very many draws of one discrete noise, exactly: a uniform real number, told bit by bit, among the noise's quantiles.

A draw is the integer z with F(z - 1) <= u < F(z), F the cumulative distribution and u uniform on [0, 1). The first 64
bits of u come from the operating system, and say that u is in an interval of length 2**-64. F is bracketed between two
integers in units of 2**-64, computed with enough bits that they are certain. Unless the interval meets a bracket, z is
decided. One search in a table decides all but some 1e-16 of the draws together. The others get 64 bits more, against
brackets of F with 64 bits more, until they are decided too. So the distribution is exact: it is the inverse of F on a
real number, of which only the needed bits are drawn.

Arithmetic is that of Python's integers. Each number is a pair of a lower and an upper bound, which sums and products
round down and up. Exponentials are bracketed by two partial sums of their alternating series.

OpenDP's samplers, which everything else uses, are as exact and some fifty times slower (Canonne, Kamath and Steinke
2020, one draw at a time).
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from functools import lru_cache

import numpy as np

from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.sensitive import Noise

BULK = 1 << 12
"""Cells from which a table is worth while."""

MAX_SCALE = 2.0**12
"""Of the noise; tables have some 20 (Gaussian) or 100 (Laplace) times as many entries."""

_WORD = 64
_GUARD = 64  # bits beyond those of the result, against rounding

Bracket = tuple[int, int]


def bulk_noise(distribution: str, scale: float, size: int) -> np.ndarray:
    """Independent integers z, with probability proportional to ``exp(-abs(z)/scale)`` or ``exp(-z**2/(2 scale**2))``.

    Parameters
    ----------
    distribution : {"discrete_laplace", "discrete_gaussian"}
    scale : float
        Positive, at most 2**12.
    size : int

    Returns
    -------
    ndarray of int64, shape (size,)

    Examples
    --------
    >>> bool(abs(bulk_noise("discrete_gaussian", 5.0, 20_000).std() - 5.0) < 0.25)
    True
    """
    if not 0.0 < scale <= MAX_SCALE:
        raise ValueError(f"scale={scale!r} must be in (0, {MAX_SCALE:g}]")
    first, decided_above, decided_below = _table(distribution, scale)
    words = np.frombuffer(os.urandom(8 * size), dtype="<u8")
    # u is certainly below F(z) if word + 1 <= its lower bound, and at or above F(z) if word >= its upper bound.
    below = np.searchsorted(decided_below, words, side="right")
    above = np.searchsorted(decided_above, words, side="right")
    drawn = first + below.astype(np.int64)
    for k in np.flatnonzero((below != above) | (below == len(decided_below))):
        drawn[k] = _resolved(distribution, scale, int(words[k]))
    return drawn


def with_noise(exact: np.ndarray, noise: Noise, rng: np.random.Generator | None = None) -> np.ndarray:
    """Integers plus independent noise, as the samplers draw it, or, for many cells without an `rng`, all at once.

    Notes
    -----
    Privacy: the distribution of the noise is the same, and so is the guarantee.
    """
    if rng is not None or exact.size < BULK or noise.scale > MAX_SCALE:
        return getattr(samplers, noise.distribution)(exact, noise.scale, rng=rng)
    return exact + bulk_noise(noise.distribution, noise.scale, exact.size).reshape(exact.shape)


def cumulative_brackets(distribution: str, scale: float, bits: int) -> tuple[int, list[Bracket]]:
    """First integer z, and brackets ``low <= 2**bits F <= high`` of the cumulative distribution at z, z+1, ...

    Parameters
    ----------
    distribution, scale
        As in :func:`bulk_noise`.
    bits : int

    Returns
    -------
    first : int
    brackets : list of (low, high)
        Not decreasing. Outside of these integers is a mass of less than 2**-bits on either side.
    """
    one = 1 << (bits + _GUARD)
    reach, weights = _weights(distribution, Fraction(scale), bits)
    # The mass beyond `reach` on one side is below its last weight's bound times the sum of a geometric series.
    tail = _tail(distribution, Fraction(scale), weights[-1][1], reach)
    half = (sum(w[0] for w in weights[1:]), sum(w[1] for w in weights[1:]) + tail)
    total = (weights[0][0] + 2 * half[0], weights[0][1] + 2 * half[1])
    low, high = 0, tail
    brackets = []
    for z in range(-reach, reach + 1):
        low, high = low + weights[abs(z)][0], high + weights[abs(z)][1]
        share = (low * one // total[1] >> _GUARD, -((-high * one // total[0]) >> _GUARD))
        brackets.append((share[0], min(share[1], 1 << bits)))
    return -reach, brackets


@lru_cache(maxsize=64)
def _table(distribution: str, scale: float) -> tuple[int, np.ndarray, np.ndarray]:
    """First integer; for each the least word that is not certainly below F, and the least that is certainly above."""
    first, brackets = cumulative_brackets(distribution, scale, _WORD)
    largest = 2**_WORD - 1
    uncertain = np.array([min(max(low, 0), largest) for low, _ in brackets], dtype=np.uint64)
    certain = np.array([min(high, largest) for _, high in brackets], dtype=np.uint64)
    return first, certain, uncertain


def _resolved(distribution: str, scale: float, word: int) -> int:
    """The draw whose first word could not decide it: more words, until one does."""
    bits = _WORD
    while True:
        word, bits = word << _WORD | int.from_bytes(os.urandom(_WORD // 8), "little"), bits + _WORD
        first, brackets = cumulative_brackets(distribution, scale, bits)
        # The first integer for which u may be below F.
        place = next((k for k, (_, high) in enumerate(brackets) if word < high), None)
        if place is not None and word + 1 <= brackets[place][0]:
            return first + place


def _weights(distribution: str, scale: Fraction, bits: int) -> tuple[int, list[Bracket]]:
    """Brackets of the weights of 0, 1, ... in units of 2**-(bits + guard), until one is below 2**-(bits + 16)."""
    precision = bits + _GUARD
    one = 1 << precision
    laplace = distribution == "discrete_laplace"
    rate = 1 / scale if laplace else 1 / (2 * scale**2)
    factor = _exponential(rate, precision)
    step = (one, one) if laplace else _product(factor, factor, precision)
    weights = [(one, one)]
    while weights[-1][1] >> (_GUARD - 16 - scale.__ceil__().bit_length()):
        weights.append(_product(weights[-1], factor, precision))
        factor = _product(factor, step, precision)  # of the Gaussian: exp(-(2 z + 1) rate)
    return len(weights) - 1, weights


def _tail(distribution: str, scale: Fraction, last: int, reach: int) -> int:
    """Upper bound of the sum of all weights beyond one that is at most `last`: their ratios only get smaller."""
    rate = 1 / scale if distribution == "discrete_laplace" else Fraction(2 * reach + 1) / (2 * scale**2)
    # sum exp(-k r) over k >= 1 is 1/(exp(r) - 1) <= 1/r.
    return (last / rate).__ceil__() + 1


def _product(a: Bracket, b: Bracket, precision: int) -> Bracket:
    return a[0] * b[0] >> precision, -(-a[1] * b[1] >> precision)


def _exponential(x: Fraction, precision: int) -> Bracket:
    """Bracket of exp(-x), x > 0, in units of 2**-precision."""
    halvings = max(0, math.ceil(x).bit_length() + 1)
    y = x / (1 << halvings)  # below 1/2, so that terms alternate and fall
    extra = precision + 2 * halvings + 16
    unit = 1 << extra
    low = high = term_low = term_high = unit
    for k in range(1, extra):
        term_low, term_high = (term_low * y / k).__floor__(), (term_high * y / k).__ceil__()
        if k % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
        if term_high <= 1:
            break
    # What was left out is less than the last term, of either sign.
    low, high = low - 2, high + 2
    for _ in range(halvings):
        low, high = low * low >> extra, -(-high * high >> extra)
    return low >> (extra - precision), -(-high >> (extra - precision))

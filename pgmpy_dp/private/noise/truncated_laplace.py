"""Noise that is never negative and never above 2S: the discrete Laplace around S, truncated.

What it is for: a number plus such noise is never below the number, so that a test "noisy value at most L" says for
certain that the value is at most L, at the price of a delta (Chen et al. 2023, Definition 3.9, in integers).

    P(Z = z) proportional to a^abs(z - S),    z = 0, 1, ..., 2S,    a = exp(-1/scale),    S >= D.

Why x + Z is (epsilon, delta)-DP
--------------------------------
Let the integer x move by at most D between neighbours, and let scale >= D/epsilon. Say x' = x + t with 0 < t <= D (the
other direction is the mirror image, for Z is symmetric around S).

*Where both can be.* For an output y with both y - x and y - x' in 0 .. 2S, the probabilities have the ratio
``a^(abs(y - x - S) - abs(y - x' - S))``, between a^t and a^-t, and ``a^-t <= exp(D/scale) <= exp(epsilon)``: both laws
have the same normalising constant.

*Where only x can be.* That is y - x in 0 .. t - 1, which has at most the probability

    P(Z <= D - 1) = a^(S - D + 1) (1 - a^D) / (1 + a - 2 a^(S + 1)),

from ``sum_z a^abs(z - S) = (1 + a - 2 a^(S + 1))/(1 - a)``. S is the smallest for which this is at most delta. So
``P(E) <= exp(epsilon) P'(E) + delta`` for every event E, and both ways.

*Sampling.* Exact discrete Laplace noise is drawn until it is in -S .. S, then S is added: the conditional law, exactly.
How often depends on no record; a draw is taken with probability above 1 - delta.

Composition under halting
-------------------------
Chen et al. (2023), Lemma 3.4, after Kothari, Manurangsi and Velingker (2022), for two steps. The first releases
``r = x + Z`` and halts unless r <= L. The second is run only then. Let C be the set of inputs with x <= L: **all** that
can pass are in it, because Z >= 0. If the second step is (e2, d2)-DP for neighbours that are both in C, the whole is
(e1 + e2, d1 + d2)-DP, where (e1, d1) is the test's:

* Both in C: the composition of two steps, as always.
* X not in C: X halts for certain, so its output is r. For an event E of outputs, with H its part that halts,
  ``P(M(X) in E) = P(r in H) <= e^e1 P(r' in H) + d1 <= e^e1 P(M(X') in E) + d1``. And for the output of X',
  ``P(M(X') in E) <= P(r' in H or r' <= L) <= e^e1 P(r in H or r <= L) + d1 = e^e1 P(M(X) in E) + d1``: X never
  passes.

With two-sided noise X could pass, the second step would have to be private for it too, and there would be nothing to
prove it with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import LARGEST_SCALE, round_up

__all__ = ["TruncatedLaplace", "add_truncated_laplace", "truncated_laplace"]

_SMALLEST_SCALE = 1e-3  # below it the noise is S but for a chance of exp(-1000)


@dataclass(frozen=True)
class TruncatedLaplace:
    """A law of noise, from public numbers; see the module.

    Attributes
    ----------
    scale : float
        Of the discrete Laplace that is truncated.
    centre : int
        S: the noise is in 0 .. 2S, and S on average.
    """

    scale: float
    centre: int

    @property
    def largest(self) -> int:
        """2S."""
        return 2 * self.centre


def truncated_laplace(sensitivity: int, epsilon: float | Fraction, delta: float) -> TruncatedLaplace:
    """The least truncated Laplace noise with which an integer of this sensitivity is (epsilon, delta)-DP.

    Parameters
    ----------
    sensitivity : int
        D, at least 1.
    epsilon : float or Fraction
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    TruncatedLaplace
        It may be too large to be drawn (a scale above ``additive.LARGEST_SCALE``): a plan for impossible numbers of
        records is a plan too.

    Examples
    --------
    >>> truncated_laplace(1, 1.0, 1e-6)
    TruncatedLaplace(scale=1.0, centre=14)
    """
    scale = max(round_up(Fraction(sensitivity) / Fraction(epsilon)), _SMALLEST_SCALE)
    # The logarithm of P(Z <= D - 1) at a given S, decreasing in S; delta is lowered by more than the rounding errors.
    most = math.log(delta) - 1e-9

    def log_tail(centre: int) -> float:
        inside = -(centre - sensitivity + 1) / scale + math.log(-math.expm1(-sensitivity / scale))
        # 1 + a - 2 a^(S + 1) without cancellation.
        total = -math.expm1(-(centre + 1) / scale) - math.exp(-1.0 / scale) * math.expm1(-centre / scale)
        return inside - math.log(total)

    low, high = sensitivity - 1, sensitivity  # below, no output would be common to both
    while log_tail(high) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_tail(middle) > most else (low, middle)
    return TruncatedLaplace(scale, high)


def add_truncated_laplace(
    values: np.ndarray, noise: TruncatedLaplace, *, seed: np.random.Generator | None = None
) -> np.ndarray:
    """Values plus independent noise, never below the values and never more than ``noise.largest`` above them.

    Parameters
    ----------
    values : ndarray of int64, any shape
    noise : TruncatedLaplace
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Returns
    -------
    ndarray of int64, same shape

    Raises
    ------
    ValueError
        If the noise would leave the range of 64-bit integers.

    Notes
    -----
    Privacy: see the module.
    """
    if noise.scale > LARGEST_SCALE:
        raise ValueError(f"noise of scale {noise.scale:.3g} is beyond {LARGEST_SCALE:.3g}; raise epsilon")
    values = np.asarray(values, dtype=np.int64)
    drawn = np.empty(values.size, dtype=np.int64)
    missing = np.arange(values.size)
    while missing.size:
        drawn[missing] = samplers.discrete_laplace(np.zeros(missing.size, dtype=np.int64), noise.scale, seed=seed)
        missing = missing[np.abs(drawn[missing]) > noise.centre]
    return values + noise.centre + drawn.reshape(values.shape)

"""Gaussian noise on real vectors, in integers: the vector is rounded to a fine public grid, the noise is discrete.

A vector x of m numbers that moves by at most S in l2 norm between neighbours is rounded to multiples of g, a power of
two, so that dividing by g is exact. Each side of a pair of neighbours is rounded by at most g/2 a number, so x/g moves
by at most

    D = S/g + sqrt(m)

in integers, which discrete Gaussian noise of scale s on every integer covers:

* ``D^2/(2 s^2)``-zCDP, exactly (Canonne, Kamath and Steinke 2020, Theorem 4).
* For (epsilon, delta) the exact formula of the *continuous* Gaussian (Balle and Wang 2018) at s/D holds up to
  ``(1 + exp(epsilon)) tau``, added to its delta, with ``tau = m/(24 s^2 - 1)``.

Proof of the second
-------------------
Let Q be the law of a continuous Gaussian of scale s rounded to the nearest integer, P the discrete Gaussian's, with
f(t) = exp(-t^2/(2 s^2)). Up to one constant,

    Q(z) ~ f(z) E[exp(-(2 z U + U^2)/(2 s^2))] = f(z) E[cosh(z U/s^2) exp(-U^2/(2 s^2))] >= f(z) (1 - 1/(24 s^2))

for U uniform on [-1/2, 1/2], with the constant 1/(s sqrt(2 pi)); and P(z) = f(z)/(sum of f), whose constant is no
larger by Poisson's summation formula: the sum is s sqrt(2 pi) (1 + 2 sum exp(-2 pi^2 s^2 k^2)). So
Q >= (1 - 1/(24 s^2)) P everywhere, and their total variation distance is at most 1/(24 s^2); for m independent integers
at most tau. Rounding after a shift by integers is shifting after rounding, so x/g plus Q is post-processing of x/g plus
continuous noise, and has the formula's delta. An event's probability under x/g + P differs by tau from that, on
either side of the pair: P(E) <= Q(E) + tau <= exp(epsilon) Q'(E) + delta + tau <= exp(epsilon) (P'(E) + tau) + delta +
tau.

The grid is so fine that rounding adds at most 2^-12 to S and tau costs at most a thousandth of delta. Integers leave no
low-order bits to leak through (Mironov 2012). Where epsilon is so large that no grid of 64-bit integers is fine enough
for this tau, the noise is that of the rho to which epsilon and delta convert, exactly, by the first line: a few
percent more, with no tau to pay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP
from pgmpy_dp.private.noise.additive import LARGEST_SCALE, gaussian_scales, root_up, round_up
from pgmpy_dp.private.sensitive import Noise, Sensitive

_TAU_SHARE = 2.0**-10  # of delta, at most, for the distance between discrete and continuous noise


@dataclass(frozen=True)
class FineGrid:
    """Grid and noise of one release of a real vector, from public numbers.

    Attributes
    ----------
    size : int
        m, numbers in the vector.
    bound : float
        No number is above this in absolute value.
    exponent : int
        The grid is ``2**exponent``.
    l2 : float
        D, of the integers.
    noise : Noise
        On every integer.
    cost : ZCDP or ApproxDP
        The guarantee of the release.
    """

    size: int
    bound: float
    exponent: int
    l2: float
    noise: Noise
    cost: ZCDP | ApproxDP

    @property
    def step(self) -> float:
        """Distance of two neighbouring points of the grid."""
        return math.ldexp(1.0, self.exponent)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise, in units of the vector."""
        return self.noise.scale * self.step


def fine_grid(size: int, sensitivity: float, bound: float, budget: Budget, *, failure: float = 0.0) -> FineGrid:
    """Grid and noise for a vector of `size` numbers, each within ±`bound`, of l2 sensitivity `sensitivity`.

    Parameters
    ----------
    size : int
        One or more.
    sensitivity, bound : float
        Positive, rounded up.
    budget : Budget
        Of rho, or of epsilon and a delta.
    failure : float, default 0
        Probability with which the vector, by its own coins, is not what `sensitivity` was derived for;
        ``(1 + exp(epsilon)) failure`` of delta pays for it.

    Raises
    ------
    ValueError
        For a pure budget; a failure that the budget's delta cannot pay; noise that would bury any vector.

    Examples
    --------
    >>> grid = fine_grid(1000, 1.0, 1.0, Budget(epsilon=1.0, delta=1e-6))
    >>> grid.exponent, round(grid.standard_deviation, 2), str(grid.cost)
    (-18, 4.23, '(1, 1e-06)-DP')
    """
    cost: ZCDP | ApproxDP
    laws: list[tuple[float, float, Callable[[float], float]]] = []  # multiplier, finest, scale of an l2 sensitivity
    if budget.rho is not None:
        if failure:
            raise ValueError(f"the budget is {budget}, and a probability of failure needs a delta: pass epsilon, delta")
        cost, rho = ZCDP(budget.rho), budget.rho
    else:
        if not budget.delta:
            raise ValueError(
                f"the budget is {budget}, and Gaussian noise has no pure guarantee: pass a delta above 0, or rho"
            )
        assert budget.epsilon is not None
        cost = ApproxDP(budget.epsilon, budget.delta)
        both = 1.0 + math.exp(min(budget.epsilon, 700.0))
        delta = budget.delta * (1.0 - _TAU_SHARE) - both * failure
        if not delta >= budget.delta / 2:
            raise ValueError(
                f"delta={budget.delta!r} does not pay for a failure with probability {failure!r}, which costs "
                f"{both * failure:.3g} of it; raise delta, or lower that probability"
            )
        multiplier = accounting.gaussian_multiplier(budget.epsilon, delta)
        # Scale, in integers, that makes tau small enough; twice, for everything that is rounded here.
        finest = 2.0 * math.sqrt(size * both / (24.0 * _TAU_SHARE * budget.delta) + 1.0)
        laws = [(multiplier, finest, lambda l2: round_up(Fraction(l2) * Fraction(multiplier)))]
        rho = accounting.approx_to_zcdp(budget.epsilon, delta)
    laws.append((math.sqrt(0.5 / rho), 0.0, lambda l2: gaussian_scales([l2], rho)[0]))
    for law in laws:
        factor, finest, scale_of = law
        deviation = sensitivity * factor
        step = min(deviation / max(finest, 2.0**10), sensitivity * 2.0**-12 / math.sqrt(size))
        if math.isfinite(deviation) and step > 0 and bound / step < 2.0**51 and deviation / step < LARGEST_SCALE / 2:
            break
    else:
        raise ValueError(
            f"{budget} needs noise of standard deviation {deviation:.3g} on {size} numbers within {bound:.3g}, finer "
            "than 64-bit integers resolve; raise the budget"
        )
    exponent = math.frexp(step)[1] - 1
    l2 = round_up(Fraction(sensitivity) / Fraction(2) ** exponent + Fraction(root_up(Fraction(int(size)))))
    return FineGrid(int(size), float(bound), exponent, l2, Noise("discrete_gaussian", scale_of(l2)), cost)


def on_grid(vector: np.ndarray, grid: FineGrid, adjacency: Adjacency) -> Sensitive:
    """A vector, clipped to the grid's bound, in integers with their sensitivities; a NaN counts as 0."""
    clipped = np.clip(np.nan_to_num(np.ravel(vector), nan=0.0), -grid.bound, grid.bound)
    if clipped.size != grid.size:
        raise ValueError(f"the vector has {clipped.size} numbers, the grid was made for {grid.size}")
    integers = np.rint(np.ldexp(clipped, -grid.exponent)).astype(np.int64)
    return Sensitive(integers, adjacency, l1=round_up(Fraction(grid.l2) * grid.size), l2=grid.l2, linf=grid.l2)

"""The division of one budget among the noise of several tables.

Tables 1..m are released together, and sensitivities each bound the change of one table between neighbours. The privacy
loss is a sum over the tables: of ``l1_c / b_c`` for Laplace noise of scales b (in epsilon), of ``l2_c**2 / (2
sigma_c**2)`` for Gaussian noise (in rho). Shares s_c of the budget add up to 1. So table c needs ``b_c = l1_c / (s_c
epsilon)`` or ``sigma_c = l2_c / sqrt(2 s_c rho)``. Scales are computed in exact rational arithmetic and rounded up, so
that the sums never exceed the budget, not even by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from pgmpy_dp.checks import exact_fraction

LARGEST_SCALE = 2.0**48  # leaves int64 room for any noise that has a chance above exp(-16000)
# Below it the noise is 0 but for a chance of exp(-1000); more noise than asked is always allowed.
_SMALLEST_SCALE = 1e-3


def laplace_scales(
    l1: Sequence[float], epsilon: float | Fraction, weights: Sequence[float | Fraction] | None = None
) -> tuple[float, ...]:
    """Laplace scales b with ``sum(l1_c / b_c) <= epsilon``, exactly.

    Parameters
    ----------
    l1 : sequence of float
        Positive; l1 sensitivity of each table.
    epsilon : float or Fraction
        Positive.
    weights : sequence of float, optional
        Positive; table c gets the share ``weights[c] / sum(weights)`` of epsilon. Default: equal shares.

    Notes
    -----
    Privacy: independent discrete Laplace noise of these scales in every cell is epsilon-DP under the tables' adjacency.
    For neighbours x, x' and any output y, noise of scale b_c in table c changes the probability of y by at most the
    factor exp(norm1(n_c(x) - n_c(x'))/b_c) <= exp(l1_c/b_c); the tables' noises are independent, so the factors
    multiply to at most exp(sum l1_c/b_c) <= exp(epsilon) (Dwork, McSherry, Nissim and Smith 2006; discrete form: Ghosh,
    Roughgarden and Sundararajan 2012).

    Raises
    ------
    ValueError
        If a scale would leave the range in which counts fit 64-bit integers.

    Examples
    --------
    >>> laplace_scales([1.0, 1.0], 0.5), laplace_scales([1.0, 1.0], 1.0, weights=[1, 3])
    ((4.0, 4.0), (4.0, 1.3333333333333335))
    """
    shares = _shares(len(l1), weights)
    budget = exact_fraction(epsilon)
    scales = [round_up(exact_fraction(d) / (s * budget)) for d, s in zip(l1, shares, strict=True)]
    return _checked(scales, f"epsilon={float(epsilon)!r}")


def gaussian_scales(
    l2: Sequence[float], rho: float | Fraction, weights: Sequence[float | Fraction] | None = None
) -> tuple[float, ...]:
    """Gaussian scales sigma with ``sum(l2_c**2 / (2 sigma_c**2)) <= rho``, exactly; arguments as `laplace_scales`.

    Notes
    -----
    Privacy: independent discrete Gaussian noise of these scales is rho-zCDP under the tables' adjacency. Table c alone
    is ``l2_c**2/(2 sigma_c**2)``-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4), and zCDP adds up over independent
    releases (Bun and Steinke 2016, Lemma 1.7).

    Examples
    --------
    >>> gaussian_scales([1.0, 1.0], 1.0)
    (1.0, 1.0)
    """
    shares = _shares(len(l2), weights)
    budget = exact_fraction(rho)
    scales = [root_up(exact_fraction(d) ** 2 / (2 * s * budget)) for d, s in zip(l2, shares, strict=True)]
    return _checked(scales, f"rho={float(rho)!r}")


def _shares(count: int, weights: Sequence[float | Fraction] | None) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, count)] * count
    exact = [exact_fraction(weight) for weight in weights]
    if len(exact) != count or min(exact) <= 0:
        raise ValueError(f"weights={tuple(weights)!r} must be {count} positive numbers, one per table")
    total = sum(exact)
    return [weight / total for weight in exact]


def round_up(exact: Fraction) -> float:
    """Smallest float that is at least `exact`; infinity beyond the floats."""
    try:
        rounded = float(exact)  # to nearest
    except OverflowError:
        return math.inf
    return rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf)


def round_down(exact: Fraction) -> float:
    """The largest float that is not above a non-negative fraction."""
    rounded = float(exact)
    return rounded if Fraction(rounded) <= exact else math.nextafter(rounded, 0.0)


def root_up(exact: Fraction) -> float:
    """A float whose exact square is at least `exact`, within two units in the last place of the smallest such."""
    square = round_up(exact)
    root = math.sqrt(square)
    while math.isfinite(root) and Fraction(root) ** 2 < exact:
        root = math.nextafter(root, math.inf)
    return root


def root_down(exact: Fraction) -> float:
    """A float whose exact square is at most `exact`, within two units in the last place of the largest such.

    Examples
    --------
    >>> Fraction(root_down(Fraction(2))) ** 2 <= 2 <= Fraction(root_up(Fraction(2))) ** 2
    True
    >>> 1.8e-162 < root_down(Fraction(5e-324) * 2 / 3) < 1.9e-162
    True
    """
    # Of a number between 1/4 and 4 and a power of 4: denormal floats are so far apart that steps would never end.
    power = (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2
    root = math.ldexp(math.sqrt(exact / Fraction(4) ** power), power)
    while Fraction(root) ** 2 > exact:
        root = math.nextafter(root, 0.0)
    return root


def _checked(scales: list[float], argument: str) -> tuple[float, ...]:
    if max(scales) > LARGEST_SCALE:
        raise ValueError(
            f"{argument} needs noise of scale {max(scales):.3g}, beyond {LARGEST_SCALE:.3g}, which would bury any "
            "count; raise the budget, release fewer tables, or use less uneven weights"
        )
    return tuple(max(scale, _SMALLEST_SCALE) for scale in scales)

"""How much noise each of several tables gets from one budget, and adding it.

The privacy loss of releasing tables 1..m together, with sensitivities that each bound the change of one table between
neighbours, is the sum over the tables: of ``l1_c / b_c`` for Laplace noise of scales b (in epsilon), of
``l2_c**2 / (2 sigma_c**2)`` for Gaussian noise (in rho). A table with the share s_c of the budget, shares adding up to
1, therefore needs ``b_c = l1_c / (s_c epsilon)`` or ``sigma_c = l2_c / sqrt(2 s_c rho)``. Scales are computed in exact
rational arithmetic and rounded up, so that the sums never exceed the budget, not even by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pgmpy_dp.checks import exact_fraction
from pgmpy_dp.private import accounting
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP, part_for_each
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.sensitive import Noise, Sensitive

__all__ = [
    "LARGEST_SCALE",
    "NOISES",
    "additive_release",
    "gaussian_release",
    "gaussian_scales",
    "laplace_release",
    "laplace_scales",
    "noise_and_cost",
    "root_down",
    "root_up",
    "round_up",
]

NOISES = ("auto", "laplace", "gaussian")

LARGEST_SCALE = 2.0**48  # leaves int64 room for any noise that has a chance above exp(-16000)
_SMALLEST_SCALE = (
    1e-3  # below it the noise is 0 but for a chance of exp(-1000); more noise than asked is always allowed
)


def laplace_scales(
    l1: Sequence[float], epsilon: float | Fraction, weights: Sequence[float] | None = None
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
    l2: Sequence[float], rho: float | Fraction, weights: Sequence[float] | None = None
) -> tuple[float, ...]:
    """Gaussian scales sigma with ``sum(l2_c**2 / (2 sigma_c**2)) <= rho``, exactly; arguments as `laplace_scales`.

    Examples
    --------
    >>> gaussian_scales([1.0, 1.0], 1.0)
    (1.0, 1.0)
    """
    shares = _shares(len(l2), weights)
    budget = exact_fraction(rho)
    scales = [root_up(exact_fraction(d) ** 2 / (2 * s * budget)) for d, s in zip(l2, shares, strict=True)]
    return _checked(scales, f"rho={float(rho)!r}")


def laplace_release(
    tables: Sequence[Sensitive],
    epsilon: float | Fraction,
    weights: Sequence[float] | None = None,
    seed: np.random.Generator | None = None,
) -> tuple[list[np.ndarray], list[Noise]]:
    """Tables with independent discrete Laplace noise in every cell, and its scales.

    Parameters
    ----------
    tables : sequence of Sensitive
    epsilon, weights
        As in :func:`laplace_scales`.
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Notes
    -----
    Privacy: epsilon-DP under the tables' adjacency. For neighbours x, x' and any output y, noise of scale b_c in table
    c changes the probability of y by at most the factor exp(norm1(n_c(x) - n_c(x'))/b_c) <= exp(l1_c/b_c); the tables'
    noises are independent, so the factors multiply to at most exp(sum l1_c/b_c) <= exp(epsilon) (Dwork, McSherry,
    Nissim and Smith 2006; discrete form: Ghosh, Roughgarden and Sundararajan 2012).
    """
    scales = laplace_scales([table.l1 for table in tables], epsilon, weights)
    values = [samplers.discrete_laplace(t.value, b, seed=seed) for t, b in zip(tables, scales, strict=True)]
    return values, [Noise("discrete_laplace", b) for b in scales]


def gaussian_release(
    tables: Sequence[Sensitive],
    rho: float | Fraction,
    weights: Sequence[float] | None = None,
    seed: np.random.Generator | None = None,
) -> tuple[list[np.ndarray], list[Noise]]:
    """Tables with independent discrete Gaussian noise in every cell, and its scales; arguments as `laplace_release`.

    Notes
    -----
    Privacy: rho-zCDP under the tables' adjacency. Table c alone is ``l2_c**2/(2 sigma_c**2)``-zCDP (Canonne, Kamath and
    Steinke 2020, Theorem 4), and zCDP adds up over independent releases (Bun and Steinke 2016, Lemma 1.7).
    """
    scales = gaussian_scales([table.l2 for table in tables], rho, weights)
    values = [samplers.discrete_gaussian(t.value, s, seed=seed) for t, s in zip(tables, scales, strict=True)]
    return values, [Noise("discrete_gaussian", s) for s in scales]


def additive_release(
    tables: Sequence[Sensitive],
    cost: PureDP | ZCDP,
    share: Fraction,
    weights: Sequence[float] | None = None,
    seed: np.random.Generator | None = None,
) -> tuple[list[np.ndarray], list[Noise]]:
    """Tables with the noise that costs the given share of `cost`: Gaussian for `ZCDP`, Laplace for `PureDP`.

    Parameters
    ----------
    tables, weights, seed
        As in :func:`laplace_release`.
    cost : PureDP or ZCDP
    share : Fraction
        In (0, 1], exact: shares that add up to 1 cost no more than `cost` together.
    """
    if isinstance(cost, ZCDP):
        return gaussian_release(tables, exact_fraction(share) * Fraction(cost.rho), weights, seed)
    return laplace_release(tables, exact_fraction(share) * Fraction(cost.epsilon), weights, seed)


def noise_and_cost(
    l1: Sequence[float],
    l2: Sequence[float],
    sizes: Sequence[int],
    noise: str,
    weights: Sequence[float] | None,
    budget: Budget,
) -> PureDP | ZCDP:
    """The guarantee under which to release tables of these sensitivities and numbers of cells, which tells the noise.

    Of one record, where the budget is for units of several (:class:`~pgmpy_dp.private.budget.UnitBudget`).

    Laplace for `PureDP`, Gaussian for `ZCDP`; where `budget` allows both and `noise` is "auto", the one of smaller
    total variance. Public numbers alone decide. ValueError for noise that cannot give the budget, and for impossible
    scales.
    """
    if noise == "gaussian" and budget.rho is None and not budget.delta:
        raise ValueError(
            f"noise='gaussian' cannot give {budget}: Gaussian noise has no pure guarantee; "
            "pass rho, or a delta above 0, or noise='laplace'"
        )
    if noise == "laplace" and budget.rho is not None:
        raise ValueError(
            f"noise='laplace' is for an epsilon, but the budget is {budget}; pass epsilon, or noise='gaussian', "
            "which is more accurate for any rho"
        )
    costs: list[tuple[float, PureDP | ZCDP]] = []
    if budget.epsilon is not None and noise != "gaussian":
        pure = part_for_each(PureDP(budget.epsilon), budget.rows)
        scales = laplace_scales(l1, pure.epsilon, weights)
        variance = math.fsum(
            size * Noise("discrete_laplace", b).variance for size, b in zip(sizes, scales, strict=True)
        )
        costs.append((variance, pure))
    if noise != "laplace" and (budget.rho is not None or budget.delta):
        rho = budget.rho
        if rho is None:
            assert budget.epsilon is not None
            rho = accounting.approx_to_zcdp(budget.epsilon, budget.delta)
        concentrated = part_for_each(ZCDP(rho), budget.rows)
        scales = gaussian_scales(l2, concentrated.rho, weights)
        variance = math.fsum(
            size * Noise("discrete_gaussian", s).variance for size, s in zip(sizes, scales, strict=True)
        )
        costs.append((variance, concentrated))
    return min(costs, key=lambda item: item[0])[1]


def _shares(count: int, weights: Sequence[float] | None) -> list[Fraction]:
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

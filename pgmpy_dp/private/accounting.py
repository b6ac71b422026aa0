"""Conversions between privacy measures, by dp-accounting: the only module that imports it.

Rho-zCDP bounds the Renyi divergence of every order alpha > 1 by ``rho * alpha`` (Bun and Steinke 2016, Definition
1.1), for either adjacency, so dp-accounting's Renyi accountant converts it to (epsilon, delta) order by order
(Canonne, Kamath and Steinke 2020, Proposition 12). Each order gives a valid bound; the grid of orders is fixed here and
finer than the library's default, whose spacing costs several percent of epsilon for small rho.

The Poisson-subsampled Gaussian is accounted at *integer* orders only, because there the library's formula also bounds
the discrete Gaussian; ``curator/gradient.md`` has the proof. Its fractional orders and its privacy loss distribution
are those of the continuous Gaussian, which the discrete one can exceed.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any

# Of a sampled step's divergence the library computes the logarithm of a sum near 1, whose rounding shows as up to 1e-13
# of either sign (and it takes a negative divergence for an epsilon of 0). This much rho a step is added to be above it.
_ROUNDING = 1e-12

# 1.0126 to 1e9: the best order is near 1 + sqrt(log(1/delta)/rho).
_ORDERS = tuple(1.0 + 10.0 ** (-1.9 + 10.9 * k / 799) for k in range(800))


def pure_to_zcdp(epsilon: float) -> float:
    """Rho for which epsilon-DP implies rho-zCDP: ``epsilon**2 / 2`` (Bun and Steinke 2016, Proposition 1.4)."""
    return epsilon * epsilon / 2.0


def _accountant(rho: float) -> Any:
    """An accountant of dp-accounting that has seen rho-zCDP."""
    # Imported here: it takes about a second, and a pure budget never needs it.
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=_ORDERS)
    accountant.compose(ZCDpEvent(rho))
    return accountant


@lru_cache(maxsize=4096)
def zcdp_to_approx(rho: float, delta: float) -> float:
    """Smallest epsilon known for which rho-zCDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    rho : float
        Non-negative.
    delta : float
        In (0, 1); with 0 the answer is infinite unless rho is 0.

    Returns
    -------
    float
        Epsilon, non-decreasing in `rho` and non-increasing in `delta`.

    Examples
    --------
    >>> round(zcdp_to_approx(0.1, 1e-6), 3)
    2.142
    """
    if rho == 0:
        return 0.0
    if delta <= 0:
        return math.inf
    return float(_accountant(rho).get_epsilon(delta))


@lru_cache(maxsize=4096)
def zcdp_to_delta(rho: float, epsilon: float) -> float:
    """Smallest delta known for which rho-zCDP implies (epsilon, delta)-DP: `zcdp_to_approx` read the other way.

    Parameters
    ----------
    rho, epsilon : float
        Non-negative.

    Returns
    -------
    float
        In [0, 1]: the least over orders alpha of ``exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)**alpha /
        (alpha - 1)`` (Canonne, Kamath and Steinke 2020, Corollary 13), or at order near 1 the bound through the
        Kullback-Leibler divergence.

    Examples
    --------
    >>> f"{zcdp_to_delta(0.1, zcdp_to_approx(0.1, 1e-6)):.3g}"
    '1e-06'
    """
    if rho == 0:
        return 0.0
    return float(_accountant(rho).get_delta(epsilon))


@lru_cache(maxsize=1024)
def approx_to_zcdp(epsilon: float, delta: float) -> float:
    """Largest rho (to the last bit that bisection resolves) with ``zcdp_to_approx(rho, delta) <= epsilon``.

    A Gaussian release calibrated to this rho satisfies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1); with 0 the answer is 0, since no positive rho gives pure DP.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For numbers so small that no order tried shows them.

    Examples
    --------
    >>> zcdp_to_approx(approx_to_zcdp(1.0, 1e-6), 1e-6) <= 1.0
    True
    """
    if delta <= 0:
        return 0.0
    # The loose conversion rho + 2 sqrt(rho log(1/delta)) = epsilon (Bun and Steinke 2016, Proposition 1.3) starts low.
    log_term = math.log(1.0 / delta)
    low = epsilon**2 / (math.sqrt(log_term + epsilon) + math.sqrt(log_term)) ** 2
    low = max(low, sys.float_info.min)  # twice 0 is no larger
    while zcdp_to_approx(low, delta) > epsilon:
        low /= 2.0
    if low == 0.0:
        raise ValueError(
            f"epsilon={epsilon!r} with delta={delta!r} is so small that no Gaussian noise is known to have it; raise it"
        )
    high = 2.0 * low
    while zcdp_to_approx(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = (low + high) / 2.0
        if not low < middle < high or (high - low) <= 1e-14 * high:
            break
        if zcdp_to_approx(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=1024)
def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """Scale of *continuous* Gaussian noise, over the l2 sensitivity, with which one release is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The smallest, by the exact formula of Balle and Wang 2018 (Theorem 8), from above to a relative 1e-9. About 4 %
        less than by way of zCDP. Discrete noise exceeds the formula by little when its scale is large:
        :mod:`pgmpy_dp.private.noise.fine_grid` accounts for it.

    Examples
    --------
    >>> round(gaussian_multiplier(1.0, 1e-6), 3)
    4.225
    """
    from dp_accounting.gaussian_mechanism import get_epsilon_gaussian, get_sigma_gaussian

    multiplier = float(get_sigma_gaussian(epsilon, delta)) * (1.0 + 1e-9)
    while get_epsilon_gaussian(multiplier, delta) > epsilon:
        multiplier *= 1.0 + 1e-6
    return multiplier


@lru_cache(maxsize=1024)
def subsampled_gaussian_epsilon(
    noise_multiplier: float, rate: float, steps: int, delta: float, *, rho: float = 0.0, largest_order: int = 4096
) -> float:
    """Epsilon for which steps of the Poisson-subsampled Gaussian, continuous or discrete, are (epsilon, delta)-DP.

    Parameters
    ----------
    noise_multiplier : float
        Positive; scale of the noise over the l2 norm that one record's contribution cannot exceed.
    rate : float
        In (0, 1]: probability with which each record, independently, takes part in a step.
    steps : int
        Number of steps; each may depend on the results of those before it.
    delta : float
        In (0, 1).
    rho : float
        Zero-concentrated cost of a further release that is composed with the steps.
    largest_order : int
        Of the Renyi divergences tried. Any choice gives a valid epsilon.

    Returns
    -------
    float
        Under ``add_remove``. See ``curator/gradient.md`` for why it covers the discrete Gaussian.

    Notes
    -----
    Formula of one order: Mironov, Talwar and Zhang 2019, section 3.3; conversion: Canonne, Kamath and Steinke 2020.

    Examples
    --------
    The moments accountant of Abadi et al. (2016), figure 2, has 1.26 here, where strong composition has 9.34:

    >>> round(subsampled_gaussian_epsilon(4.0, 0.01, 10_000, 1e-5), 2)
    1.04
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=_integer_orders(largest_order))
    accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier)), steps)
    accountant.compose(ZCDpEvent(rho + steps * _ROUNDING))
    return float(accountant.get_epsilon(delta))


@lru_cache(maxsize=256)
def subsampled_gaussian_multiplier(epsilon: float, delta: float, rate: float, steps: int, *, rho: float = 0.0) -> float:
    """Smallest noise multiplier (to a relative 5e-4, from above) with `subsampled_gaussian_epsilon` at most `epsilon`.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta, rate, steps, rho
        As in :func:`subsampled_gaussian_epsilon`.

    Returns
    -------
    float
        Infinity if `rho` alone exceeds the budget, or epsilon is so small (below about ``log(1/delta)/16384``) that no
        order tried shows it.

    Examples
    --------
    >>> multiplier = subsampled_gaussian_multiplier(1.0, 1e-5, 0.01, 1000)
    >>> subsampled_gaussian_epsilon(multiplier, 0.01, 1000, 1e-5) <= 1.0
    True
    """
    # The best order is near 1 + 2 log(1/delta)/epsilon; the formula's cost is proportional to the orders.
    largest = int(min(4 + 3 * math.log(1.0 / delta) / epsilon, 2**14))

    def fits(multiplier: float) -> bool:
        spent = subsampled_gaussian_epsilon(multiplier, rate, steps, delta, rho=rho, largest_order=largest)
        return spent <= epsilon

    if not fits(1e9):
        return math.inf
    # What would be enough for all records at every step, times the rate: about right where the result is well above 1.
    low = high = 1.01 * rate * math.sqrt(steps / (2.0 * approx_to_zcdp(epsilon, delta)))
    growth = 1.1
    while not fits(high):
        low, high, growth = high, high * growth, growth * 1.2
    while low == high or fits(low):
        low, high = low / 1.1, min(low, high)
    while high > low * (1.0 + 5e-4):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _integer_orders(largest: int) -> tuple[int, ...]:
    """Integers from 2 that grow by an eighth, up to `largest`: a longer list contains every shorter one."""
    orders = [2]
    while orders[-1] < max(largest, 16):
        orders.append(max(orders[-1] + 1, orders[-1] * 9 // 8))
    return tuple(orders)

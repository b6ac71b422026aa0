"""Conversions between privacy measures, by dp-accounting: the only module that imports it.

Rho-zCDP bounds the Renyi divergence of every order alpha > 1 by ``rho * alpha`` (Bun and Steinke 2016, Definition
1.1), for either adjacency, so dp-accounting's Renyi accountant converts it to (epsilon, delta) order by order
(Canonne, Kamath and Steinke 2020, Proposition 12). Each order gives a valid bound; the grid of orders is fixed here and
finer than the library's default, whose spacing costs several percent of epsilon for small rho.
"""

from __future__ import annotations

import math
from functools import lru_cache

__all__ = ["approx_to_zcdp", "pure_to_zcdp", "zcdp_to_approx"]

# 1.0126 to 1e9: the best order is near 1 + sqrt(log(1/delta)/rho).
_ORDERS = tuple(1.0 + 10.0 ** (-1.9 + 10.9 * k / 799) for k in range(800))


def pure_to_zcdp(epsilon: float) -> float:
    """Rho for which epsilon-DP implies rho-zCDP: ``epsilon**2 / 2`` (Bun and Steinke 2016, Proposition 1.4)."""
    return epsilon * epsilon / 2.0


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
    # Imported here: it takes about a second, and a pure budget never needs it.
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=_ORDERS)
    accountant.compose(ZCDpEvent(rho))
    return float(accountant.get_epsilon(delta))


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
    while zcdp_to_approx(low, delta) > epsilon:
        low /= 2.0
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

"""Lower bounds on epsilon or rho, from how often an event occurs on two neighbouring datasets.

* (epsilon, delta)-DP gives ``p <= exp(epsilon) q + delta`` for every event, of probability p on one dataset and q on
  the other: ``epsilon >= log((p - delta)/q)``.
* rho-zCDP bounds the Renyi divergences of the event's indicator: ``rho >= D_alpha(p || q)/alpha`` for any alpha > 1.

Both increase in p and decrease in q, so a lower confidence limit of p and an upper one of q give a lower confidence
limit of epsilon or rho. The limits are those of Clopper and Pearson (1934), which hold for any number of trials.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta

from pgmpy_dp.private.guarantee import ZCDP, Guarantee, PureDP, ReservedZCDP


def lower_limit(hits: int, trials: int, alarm: float) -> float:
    """Clopper-Pearson: below the true probability except with probability at most `alarm`.

    Examples
    --------
    >>> round(lower_limit(10, 10, 0.01), 3)
    0.631
    """
    return float(lower_limits(np.array(hits), trials, alarm))


def upper_limit(hits: int, trials: int, alarm: float) -> float:
    """Clopper-Pearson: above the true probability except with probability at most `alarm`.

    Examples
    --------
    >>> round(upper_limit(0, 10, 0.01), 3)
    0.369
    """
    return float(upper_limits(np.array(hits), trials, alarm))


def lower_limits(hits: np.ndarray, trials: int, alarm: float) -> np.ndarray:
    """:func:`lower_limit` of each of several numbers of hits."""
    return np.where(hits == 0, 0.0, beta.ppf(alarm, np.maximum(hits, 1), trials - hits + 1))


def upper_limits(hits: np.ndarray, trials: int, alarm: float) -> np.ndarray:
    """:func:`upper_limit` of each of several numbers of hits."""
    return np.where(hits == trials, 1.0, beta.isf(alarm, hits + 1, np.maximum(trials - hits, 1)))


def epsilon_bound(p: float, q: float, delta: float = 0.0) -> float:
    """Smallest epsilon with ``p <= exp(epsilon) q + delta``; 0 if any will do.

    Examples
    --------
    >>> round(epsilon_bound(0.75, 0.25), 4)
    1.0986
    """
    return max(0.0, math.log((p - delta) / q)) if p > delta else 0.0


def rho_bound(p: float, q: float) -> float:
    """Largest Renyi divergence over order between coins of probabilities p and q, which zCDP bounds by rho.

    Examples
    --------
    >>> round(rho_bound(0.75, 0.25), 2)
    0.55
    """
    if p <= q:
        return 0.0
    alpha = 1.0 + np.logspace(-3, 2, 200)
    with np.errstate(divide="ignore"):
        inside = alpha * np.log(p) + (1 - alpha) * np.log(q)
        outside = alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-q)
    return float(np.max(np.logaddexp(inside, outside) / ((alpha - 1) * alpha)))


def guarantee_bound(guarantee: Guarantee, p: float, q: float) -> float:
    """Return what an event of probabilities p and q shows: a rho for `ZCDP`, else an epsilon, at the guarantee's delta.

    Of `ReservedZCDP` a rho: its eta is taken off p, the part of the event that failures may be.
    """
    if isinstance(guarantee, ZCDP):
        return rho_bound(p, q)
    if isinstance(guarantee, ReservedZCDP):
        return rho_bound(max(p - guarantee.eta, 0.0), q)
    return epsilon_bound(p, q, 0.0 if isinstance(guarantee, PureDP) else guarantee.delta)


def claimed_value(guarantee: Guarantee) -> float:
    """Return the number that a bound is compared with: the rho of `ZCDP` and `ReservedZCDP`, else the epsilon."""
    return guarantee.rho if isinstance(guarantee, ZCDP | ReservedZCDP) else guarantee.epsilon

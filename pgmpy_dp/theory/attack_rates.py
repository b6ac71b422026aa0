"""The success that attacks can have against a guarantee: its trade-off curve, and what follows for guesses.

References
----------
.. [1] Wasserman, L. and Zhou, S. (2010). A statistical framework for differential privacy. JASA 105(489).
.. [2] Kairouz, P., Oh, S. and Viswanath, P. (2015). The composition theorem for differential privacy. ICML.
.. [3] Bun, M. and Steinke, T. (2016). Concentrated differential privacy. TCC.
.. [4] Dong, J., Roth, A. and Su, W. J. (2022). Gaussian differential privacy. JRSS B 84(1).
.. [5] Hayes, J., Mahloujifar, S. and Balle, B. (2023). Bounding training data reconstruction in DP-SGD. NeurIPS.
.. [6] van Erven, T. and Harremoes, P. (2014). Renyi divergence and Kullback-Leibler divergence. IEEE Transactions on
   Information Theory 60(7).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, ReservedZCDP, privacy_profile

# The best order is near 1 + sqrt(log(1/alpha)/rho); any set of orders bounds from above.
_ORDERS = 1.0 + np.geomspace(3e-3, 1e6, 480)[:, None]

# More than what floating point gets wrong of a divergence, whose logarithms are divided by order - 1.
_SLACK, _RELATIVE_SLACK = 1e-11, 1e-9
_HALVINGS = 44
_LOSSES = 96
_SMALLEST_DELTA = 1e-15


def attack_success(guarantee: Guarantee, false_alarms: ArrayLike) -> np.ndarray:
    r"""Most that any attack on neighbours succeeds, at a rate of false alarms: 1 minus the trade-off curve.

    Parameters
    ----------
    guarantee : PureDP, ZCDP, ReservedZCDP or ApproxDP
        Of the release, under its adjacency.
    false_alarms : array_like
        alpha, in [0, 1]: the probability with which the attack says "D'" where the data are D.

    Returns
    -------
    ndarray
        Of the shape of `false_alarms`, in [alpha, 1], rounded up: no test with these false alarms says "D'" with a
        larger probability where the data are D', for any neighbours D and D'. For a guess see the notes.

    Raises
    ------
    ValueError
        If a rate is not in [0, 1].

    Notes
    -----
    With p for the result and beta = 1 - p, D and D' may change places, so all conditions hold for (beta, alpha) too.

    * **epsilon, delta.** p <= delta + e^epsilon alpha, and 1 - alpha <= delta + e^epsilon beta ([1]_, Theorem 2.4;
      [2]_, Theorem 2.1). So 1 - p is at least f(alpha) = max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta -
      alpha)), with delta = 0 for pure. Randomised response that tells all with probability delta attains it.
    * **rho-zCDP.** The answer of a test is post-processing of the release: alone it is rho-zCDP. It is a coin, with
      probabilities alpha and p. So p is at most the largest for which the Renyi divergences of the two coins, in both
      directions, are at most rho a for each order a > 1, :math:`\log(p^a \alpha^{1-a} + (1-p)^a (1-\alpha)^{1-a}) \le
      (a-1) a \rho` and the same with alpha and p exchanged, and at most rho in the limit a = 1 ([3]_, Definition 1.1
      and Lemma 2.2; [6]_, Theorems 5 and 9). Divergences grow with p >= alpha, so p is found by bisection. Nothing
      sharper follows from zCDP: the coins themselves are rho-zCDP, and attain it. It is at least as sharp as all
      (epsilon, delta) that rho converts to: at order a, without the second term, it is :math:`p \le \alpha^{1-1/a}
      e^{(a-1)\rho}`, the least over epsilon of e^epsilon alpha + delta for the delta of that order. It is *not* the
      curve of Gaussian DP ([4]_), which is that of continuous Gaussian noise alone.
    * **rho-zCDP and a reserve eta**: the least over epsilons of the first kind, each with the delta that rho converts
      to plus eta. Any set of epsilons bounds from above.

    Rounding: a finite set of orders, room of 1e-11 and 1e-9 of the bound in each condition, and the upper end of the
    bisection all make the result larger, never smaller. The others are increased by 1e-13 of themselves.

    **A guess.** An attacker who knows all but one unit's data draws what is unknown from a prior, under which the best
    guess is right with probability kappa. Having seen the release, the guess is right with probability at most
    ``attack_success(guarantee, kappa)``. Proof ([5]_, Theorem 2 is the same for its mechanisms): compare with the
    release from D', in which the unit is missing (``add_remove``) or is one fixed unit (``replace_one``). That release
    is independent of the unknown, so a guess from it is right with probability at most kappa: for each unknown z let
    q(z) be the probability that the guess from D' is z, so that the mean of q(z) is at most kappa. For each z the guess
    from the true release is z with probability at most ``attack_success(guarantee, q(z))``, which is concave and grows
    in q, so its mean is at most its value at kappa (Jensen).

    Examples
    --------
    >>> from pgmpy_dp.private.guarantee import PureDP, ZCDP
    >>> [round(float(attack_success(g, 0.01)), 4) for g in (PureDP(1.0), ZCDP(0.1), ZCDP(0.5))]
    [0.0272, 0.0351, 0.1246]
    """
    alpha = np.asarray(false_alarms, dtype=float)
    if not ((alpha >= 0) & (alpha <= 1)).all():
        raise ValueError(f"false_alarms={false_alarms!r} must be rates, from 0 to 1")
    if isinstance(guarantee, ZCDP):
        return _of_coins(guarantee.rho, alpha) if guarantee.rho > 0 else alpha.copy()
    if isinstance(guarantee, PureDP | ApproxDP):
        losses = [(guarantee.epsilon, getattr(guarantee, "delta", 0.0))]
    else:
        losses = _converted(guarantee)
    success = np.ones_like(alpha)
    for epsilon, delta in losses:
        factor = math.exp(min(epsilon, 700.0))
        rejected = np.minimum(delta + factor * alpha, 1.0 - (1.0 - delta - alpha) / factor)
        success = np.minimum(success, rejected)
    return np.clip(success * (1.0 + 1e-13) + 1e-15, alpha, 1.0)


def _converted(guarantee: ReservedZCDP) -> list[tuple[float, float]]:
    """Epsilons with their deltas, from 0 to where next to nothing is left of delta but the reserve."""
    largest = zcdp_to_approx(guarantee.rho, _SMALLEST_DELTA)
    epsilons = [0.0, *np.geomspace(largest / 1e4, largest, _LOSSES)] if largest > 0 else [0.0]
    return [(float(epsilon), privacy_profile(guarantee, float(epsilon))) for epsilon in epsilons]


def _of_coins(rho: float, alpha: np.ndarray) -> np.ndarray:
    """The largest p for which coins with probabilities alpha and p may be the two answers, from above."""
    flat = alpha.ravel()
    low, high = flat.copy(), np.ones_like(flat)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            allowed = _are_close(flat, middle, rho)
            low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    return np.where(flat >= 1.0, 1.0, high).reshape(alpha.shape)


def _are_close(alpha: np.ndarray, p: np.ndarray, rho: float) -> np.ndarray:
    """Whether the divergences of two coins, in both directions, are within rho times the order at all orders tried."""
    close = np.ones(alpha.shape, dtype=bool)
    for one, other in ((alpha, p), (p, alpha)):
        ratio, rest = np.log(one / other), np.log1p(-one) - np.log1p(-other)
        divergence = np.logaddexp(_ORDERS * ratio + np.log(other), _ORDERS * rest + np.log1p(-other)) / (_ORDERS - 1)
        close &= (divergence <= _ORDERS * rho * (1.0 + _RELATIVE_SLACK) + _SLACK).all(axis=0)
        close &= one * ratio + (1.0 - one) * rest <= rho * (1.0 + _RELATIVE_SLACK) + _SLACK
    return close

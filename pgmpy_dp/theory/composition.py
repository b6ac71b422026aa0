"""Composition of many epsilon-private steps: what is exact, what is proved, and the rule of thumb of the notes.

References
----------
.. [1] Dwork, C., Rothblum, G. N. and Vadhan, S. (2010). Boosting and differential privacy. FOCS.
.. [2] Kairouz, P., Oh, S. and Viswanath, P. (2015). The composition theorem for differential privacy. ICML.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from pgmpy_dp.checks import checked_integer, checked_within


def composed_delta(total: float, epsilon: float, steps: int) -> float:
    """Smallest delta for which every adaptive composition of epsilon-DP steps is (total, delta)-DP; exact.

    Parameters
    ----------
    total : float
        Epsilon of the composition, in nats.
    epsilon : float
        Of each step.
    steps : int
        T.

    Returns
    -------
    float
        Of T randomised responses, the worst steps there are (Kairouz, Oh and Viswanath 2015, Theorem 3.3): the mean of
        (1 - exp(total - (2 K - T) epsilon))+ for binomial K with success e^epsilon/(1 + e^epsilon). Steps that are
        (epsilon, delta_t)-DP compose to at most this plus the sum of the delta_t.

    Raises
    ------
    TypeError, ValueError
        For what is not a number, or out of range; here and in every function below.

    Examples
    --------
    >>> composed_delta(1.0, 0.5, 2), round(composed_delta(1.0, 0.1, 50), 4)
    (0.0, 0.0383)
    """
    total, epsilon, steps = (
        checked_within("total", total),
        checked_within("epsilon", epsilon),
        checked_integer("steps", steps, 1),
    )
    likely = np.arange(steps + 1)
    loss = (2.0 * likely - steps) * epsilon
    chance = binom.pmf(likely, steps, 1.0 / (1.0 + math.exp(-epsilon)))
    return float(chance @ -np.expm1(np.minimum(total - loss, 0.0)))


def advanced_composition(epsilon: float, steps: int, slack: float) -> float:
    """Epsilon of T adaptive epsilon-DP steps at delta = slack, by a bound that holds for all arguments.

    The smaller of T epsilon and epsilon sqrt(2 T log(1/slack)) + T epsilon tanh(epsilon/2).

    Parameters
    ----------
    epsilon : float
        Of each step, in nats.
    steps : int
        T.
    slack : float
        delta_0, in (0, 1); steps that are (epsilon, delta_t)-DP add the sum of the delta_t.

    Returns
    -------
    float

    Notes
    -----
    Proof. The privacy loss of a step, given the ones before, is in [-epsilon, epsilon], and its mean is at most that of
    randomised response, epsilon tanh(epsilon/2). By Azuma and Hoeffding the sum exceeds T times this by
    epsilon sqrt(2 T log(1/slack)) with probability at most the slack. Dwork, Rothblum and Vadhan (2010, Theorem III.3)
    have exp(epsilon) - 1 where tanh(epsilon/2) stands here. For what is exact, see `composed_delta`; the package's
    accounting (zCDP) uses neither.

    Examples
    --------
    >>> round(advanced_composition(0.1, 100, 1e-6), 3)
    5.756
    """
    epsilon, steps, slack = _checked(epsilon, steps, slack)
    deviation = epsilon * math.sqrt(2.0 * steps * math.log(1.0 / slack))
    return min(steps * epsilon, deviation + steps * epsilon * math.tanh(epsilon / 2.0))


def noted_composition(epsilon: float, steps: int, slack: float) -> float:
    """epsilon sqrt(6 T log(1/slack)): advanced composition as the notes have it, where it holds.

    The notes ("Differentially private Markov random field") state it for every epsilon, T and slack. That is false:
    the true delta of 100 steps of epsilon = 2 at this total for a slack of .01 is above .99 (`composed_delta`). It
    holds where T tanh(epsilon/2)^2 <= (8 - 4 sqrt(3)) log(1/slack), about 1.07 log(1/slack), and where T <= 6
    log(1/slack).

    Parameters
    ----------
    epsilon, steps, slack
        As in `advanced_composition`.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Where neither condition is met, too.

    Notes
    -----
    Proof. It is at least `advanced_composition` where T epsilon tanh(epsilon/2) <= (sqrt(6) - sqrt(2)) epsilon sqrt(T
    log(1/slack)), the square of which is the first condition; and at least T epsilon in the second case.

    Examples
    --------
    >>> round(noted_composition(0.1, 100, 1e-6), 3)
    9.105
    """
    epsilon, steps, slack = _checked(epsilon, steps, slack)
    logarithm = math.log(1.0 / slack)
    if steps > 6.0 * logarithm and steps * math.tanh(epsilon / 2.0) ** 2 > (8.0 - 4.0 * math.sqrt(3.0)) * logarithm:
        raise ValueError(
            f"epsilon={epsilon!r}, steps={steps!r}, slack={slack!r}: the notes' formula is not proved there, and can "
            "be false; use advanced_composition"
        )
    return epsilon * math.sqrt(6.0 * steps * logarithm)


def _checked(epsilon: float, steps: int, slack: float) -> tuple[float, int, float]:
    slack = checked_within("slack", slack)
    if slack >= 1.0:
        raise ValueError(f"slack={slack!r} must be below 1, a probability that the bound may fail with")
    return checked_within("epsilon", epsilon), checked_integer("steps", steps, 1), slack

"""An audit in one run: many canaries in one dataset, each there or not by a coin (Steinke, Nasr and Jagielski 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from pgmpy_dp.private.guarantee import ApproxDP, PureDP


@dataclass(frozen=True)
class OneRunReport:
    """The outcome of one run.

    Attributes
    ----------
    epsilon_bound : float
        The mechanism is not (epsilon, delta)-DP for any smaller epsilon, with the stated confidence.
    delta, confidence : float
    n_canaries, n_guesses, n_correct : int
    guarantee : PureDP or ApproxDP, optional
        The claim that was attacked, where one was.
    name, adjacency : str
        Of a case of :func:`pgmpy_dp.auditing.catalogue`.

    Examples
    --------
    >>> coins = np.array([True] * 20 + [False] * 20)  # in an audit: tossed
    >>> report = one_run_audit(coins, scores=coins.astype(float))  # an output that gives everybody away
    >>> report.n_correct, report.epsilon_bound > 1
    (40, True)
    """

    epsilon_bound: float
    delta: float
    confidence: float
    n_canaries: int
    n_guesses: int
    n_correct: int
    guarantee: PureDP | ApproxDP | None = None
    name: str = ""
    adjacency: str = ""

    @property
    def bound(self) -> float:
        """`epsilon_bound`."""
        return self.epsilon_bound

    @property
    def holds(self) -> bool:
        """Whether the claim survived, if there was one: the bound does not exceed it."""
        return self.guarantee is None or self.bound <= self.guarantee.epsilon

    @property
    def tightness(self) -> float:
        """The bound as a share of the claim; NaN without one."""
        return math.nan if self.guarantee is None else self.bound / self.guarantee.epsilon


def one_run_p_value(n_canaries: int, n_guesses: int, n_correct: int, epsilon: float, delta: float) -> float:
    """Largest probability of so many correct guesses, under (epsilon, delta)-DP.

    Parameters
    ----------
    n_canaries : int
        Records that were put in or left out by independent fair coins; the mechanism is private with respect to adding
        or removing one of them.
    n_guesses : int
        For how many of them a guess was made, from the output alone.
    n_correct : int
    epsilon, delta : float

    Returns
    -------
    float

    Notes
    -----
    Theorem 5.2 of Steinke, Nasr and Jagielski (2023), in the form of their Appendix D: the number of correct guesses is
    stochastically at most Binomial(n_guesses, e^eps/(1 + e^eps)), but for ``2 n_canaries delta`` times the largest
    average of its probabilities just below n_correct.

    Examples
    --------
    >>> round(one_run_p_value(10, 10, 10, 0.0, 0.0), 6)
    0.000977
    """
    right = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(n_correct - 1, n_guesses, right))
    below = np.cumsum(binom.pmf(np.arange(n_correct - 1, -1, -1), n_guesses, right))
    slope = float((below / np.arange(1, n_correct + 1)).max()) if n_correct else 0.0
    return min(1.0, tail + 2.0 * n_canaries * delta * slope)


def one_run_audit(
    included: np.ndarray,
    scores: np.ndarray,
    *,
    delta: float = 0.0,
    confidence: float = 0.99,
    n_guesses: int | None = None,
) -> OneRunReport:
    """Lower bound on epsilon from one output.

    Parameters
    ----------
    included : ndarray of bool, shape (n_canaries,)
        Which canaries were in the data: independent fair coins.
    scores : ndarray of float, shape (n_canaries,)
        From the output alone: high where a canary seems to have been in.
    delta : float
        Of the claim; 0 for pure.
    confidence : float
    n_guesses : int, optional
        Guess "in" for half as many of the highest scores, "out" for as many of the lowest, and nothing between. Fixed
        beforehand. Default: for all canaries.

    Returns
    -------
    OneRunReport

    Raises
    ------
    ValueError
        For shapes that do not agree or numbers out of range.

    Notes
    -----
    Steinke, Nasr and Jagielski (2023), Theorem 5.2. It needs one run where :func:`pgmpy_dp.auditing.audit` needs
    thousands, and shows less of the same epsilon.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(1000) < 0.5
    >>> noisy = coins + rng.laplace(scale=0.5, size=1000)  # 2-DP for each canary
    >>> 0.7 < one_run_audit(coins, noisy, n_guesses=400).epsilon_bound < 2.0
    True
    """
    included, scores = np.asarray(included, dtype=bool), np.asarray(scores, dtype=float)
    m = len(included)
    guesses = m - m % 2 if n_guesses is None else n_guesses
    if scores.shape != included.shape or included.ndim != 1:
        raise ValueError(f"included has shape {included.shape}, scores {scores.shape}; pass two arrays of equal length")
    if not 2 <= guesses <= m or guesses % 2 or not 0 <= delta < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"n_guesses={n_guesses!r}, delta={delta!r}, confidence={confidence!r}: pass an even number of guesses from "
            f"2 to {m}, delta in [0, 1), confidence in (0, 1)"
        )
    order = np.argsort(scores, kind="stable")
    half = guesses // 2
    correct = int(included[order[m - half :]].sum() + (~included[order[:half]]).sum())

    def excess(epsilon: float) -> float:
        return one_run_p_value(m, guesses, correct, epsilon, delta) - (1.0 - confidence)

    high = 1.0
    while excess(high) < 0 and high < 64:
        high *= 2
    bound = 0.0 if excess(0.0) >= 0 else (high if excess(high) < 0 else float(brentq(excess, 0.0, high)))
    return OneRunReport(bound, delta, confidence, m, guesses, correct)

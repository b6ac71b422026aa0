"""Intervals for the cells of a table of some variables, given what is known of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.discrepancy import Discrepancy, Scope
from pgmpy_dp.models.posterior.posterior_draws import Interval


def query_intervals(
    table: np.ndarray,
    draws: np.ndarray,
    weights: Sequence[np.ndarray],
    scope: Scope,
    discrepancy: Discrepancy,
    level: float,
    *,
    joint: bool = False,
) -> Interval:
    """The model's answer, and an interval that counts what posterior and graph leave open.

    Parameters
    ----------
    table : ndarray
        Joint shares of the variables asked about and, after them, of those that something is known of.
    draws : ndarray of shape (n_draws, ...)
        The same under each draw of the posterior.
    weights : sequence of ndarray
        For each of the latter, how much of each state what is known takes in.
    scope : tuple of int
        Positions of all these variables.
    discrepancy : Discrepancy
    level : float in (0, 1)
    joint : bool, default False
        Whether what is known is part of what is asked about, and not a condition.

    Returns
    -------
    Interval
        Of the shape of the variables asked about, within [0, 1].

    Notes
    -----
    A conditional probability R = a/b moves by ``((1 - R) da - R d(b - a))/b`` where its table moves a little, so the
    table that is told apart has two states of each variable: whether it is in the cell, and in what is known.

    Examples
    --------
    >>> from pgmpy_dp.models.posterior.discrepancy import learn_discrepancy
    >>> even, draws = np.full((2, 2), 0.25), 0.25 + 0.01 * np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
    >>> learned = learn_discrepancy([], [frozenset({0, 1})])
    >>> query_intervals(even, draws, [np.array([1.0, 0.0])], (0, 1), learned, 0.9).upper.round(3)
    array([0.547, 0.547])
    """
    asked = table.ndim - len(weights)
    estimate = conditional(table, weights, joint=joint)
    variances = conditional(draws, weights, 1, joint=joint).var(axis=0, ddof=1)
    known = table
    for axis, weight in enumerate(weights, asked):
        known = _halved(known, weight, axis)
    shares, gradients = [], []
    for cell in np.ndindex(estimate.shape):
        part = known
        for axis, state in enumerate(cell):
            part = _halved(part, np.eye(part.shape[axis])[state], axis)
        slope = np.zeros(part.shape)
        slope[(0,) * part.ndim] = 1.0
        if weights and not joint:
            inside: Any = (..., *[0] * len(weights))
            slope[inside] -= estimate[cell]
            slope /= part[inside].sum()
        shares.append(part)
        gradients.append(slope)
    half = discrepancy.half_widths(scope, shares, gradients, variances.ravel(), level).reshape(estimate.shape)
    return Interval(estimate, np.maximum(estimate - half, 0.0), np.minimum(estimate + half, 1.0))


def extremes(table: np.ndarray, shares: Sequence[np.ndarray], joint: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The least and the most that an answer may be, wherever values lie in the states that ranges cut through.

    Nothing says which records of such a state lie in the range: of those in a cell of the answer none to all may, and
    of the others all to none.

    Parameters
    ----------
    table, joint
        As `conditional` takes them.
    shares : sequence of ndarray, shape (3, states)
        How much of each state what is known takes in, at least and at most: see `Evidence`.

    Examples
    --------
    >>> shares = [np.array([[0.0, 1.0, 0.5], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])]
    >>> low, high = extremes(np.array([[0.2, 0.3, 0.1], [0.2, 0.1, 0.1]]), shares)
    >>> low.round(2), high.round(2)
    (array([0.6, 0.2]), array([0.8, 0.4]))
    """
    least = most = table
    for one in reversed(shares):
        least, most = least @ one[1], most @ one[2]
    return (least, most) if joint else between(least, most)


def between(least: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest share of each cell, of cells of which each has at least and at most so much."""
    whole = [own + np.maximum(other.sum() - other, 0.0) for own, other in ((least, most), (most, least))]
    # Without any others the cell has all; and without any of its own, nothing.
    low = np.divide(least, whole[0], out=np.ones(least.shape), where=whole[0] > 0)
    return low, np.divide(most, whole[1], out=np.zeros(most.shape), where=whole[1] > 0)


def widened(interval: Interval, low: np.ndarray, high: np.ndarray) -> Interval:
    """An interval that reaches beyond both extremes of an answer as far as it did beyond the estimate."""
    lower, upper = low - (interval.estimate - interval.lower), high + (interval.upper - interval.estimate)
    return Interval(interval.estimate, np.maximum(lower, 0.0), np.minimum(upper, 1.0))


def number_interval(
    values: Values, draws: np.ndarray, levels: Sequence[float], level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of the mean and of quantiles of a number that also count what its states leave open.

    Parameters
    ----------
    values : Values
    draws : ndarray of shape (n_draws, n_states)
        The number's distribution under each draw of the posterior.
    levels : sequence of float in [0, 1]
        Of the quantiles.
    level : float in (0, 1)

    Returns
    -------
    lower, upper : ndarray of shape (1 + len(levels),)

    Notes
    -----
    Where values were counted in fine cells, each draw has its own weights within states (`Values.same_draws`), and
    the interval is between quantiles of the draws. Elsewhere each draw says between what the mean and the quantiles may
    lie, wherever values lie in states (`Values.ends`). The lower ends of the draws are above the lower end of the
    interval with probability ``(1 + level)/2``, the upper ones below the upper end.

    Examples
    --------
    >>> from pgmpy_dp.schema import Number
    >>> even = np.full((30, 2), 0.5)
    >>> lower, upper = number_interval(Values(Number(0, 20, cuts=[10], missing="drop")), even, [0.25], 0.9)
    >>> lower.tolist(), upper.tolist()
    ([5.0, 0.0], [15.0, 10.0])
    """
    if values.density is None:
        ends = np.array([values.ends(drawn, levels) for drawn in draws])
    else:
        weighed = zip(values.same_draws(len(draws)), draws, strict=True)
        ends = np.array([[[one.mean(drawn), *one.quantiles(drawn, levels)]] * 2 for one, drawn in weighed])
    tail = (1 - level) / 2
    lower = np.quantile(ends[:, 0], tail, axis=0, method="weibull")
    return lower, np.quantile(ends[:, 1], 1 - tail, axis=0, method="weibull")


def conditional(table: np.ndarray, weights: Sequence[np.ndarray], batch: int = 0, *, joint: bool = False) -> np.ndarray:
    """Distribution of the first variables of a table, given the last ones; `batch` axes come before all.

    With `joint` it is not divided by the probability of what is known.

    Raises
    ------
    ImpossibleEvidence
        If what is known has the probability 0.
    """
    for weight in reversed(weights):  # its axes are the last ones
        table = table @ weight
    total = table.sum(axis=tuple(range(batch, table.ndim)), keepdims=True)
    if not total.all():
        raise ImpossibleEvidence("evidence has the probability 0 in the model; ask about what can be")
    return table if joint else table / total


def _halved(table: np.ndarray, weight: np.ndarray, axis: int) -> np.ndarray:
    """The table with two states along an axis: what the weights take in, and the rest."""
    both = np.stack([weight, 1.0 - weight])
    return np.moveaxis(np.tensordot(both, table, axes=(1, axis)), 0, axis)

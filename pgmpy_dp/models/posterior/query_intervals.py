"""Intervals for the cells of a table of some variables, given evidence about others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.discrepancy import Discrepancy, Scope
from pgmpy_dp.models.posterior.posterior_draws import Interval


@dataclass(frozen=True, eq=False)
class Axis:
    """A variable of a question: the share of each state that belongs to it, and the states that the answer tells.

    Parameters
    ----------
    shares : ndarray of shape (3, states)
        The likelihood of the evidence in each state, at least and at most, as in `Evidence`; 1 where nothing is known.
    told : ndarray of shape (told, states), optional
        The states that each told state of the answer consists of; None for a variable of the evidence alone.
    """

    shares: np.ndarray
    told: np.ndarray | None = None

    @property
    def is_cut(self) -> bool:
        """Whether a range cuts through a state."""
        return bool((self.shares[1] < self.shares[2]).any())

    def apart(self, groups: np.ndarray | None = None) -> np.ndarray:
        """Parts that the states fall into: each group of told states, and what is left out, if there is any."""
        if self.told is None:
            return np.stack([self.shares[0], 1.0 - self.shares[0]])
        parts = (self.told.T if groups is None else self.told.T @ groups).T * self.shares[0]
        rest = 1.0 - parts.sum(axis=0)
        return np.vstack([parts, rest]) if rest.any() else parts

    def exchanged(self, to: np.ndarray | None) -> Axis:
        """The same axis after its states were exchanged."""
        if to is None:
            return self
        back = np.argsort(to)
        return Axis(self.shares[:, back], None if self.told is None else self.told[:, back])


@dataclass(frozen=True, eq=False)
class Question:
    """A question to a joint table.

    Parameters
    ----------
    axes : mapping of variable to Axis
        Those of the query's variables, in their order; then those of the evidence's.
    exchanged : sequence of mappings of variable to Axis
        Questions whose answers are as good, being about variables that can be exchanged with these.
    around_model : bool
        Whether intervals are around what the model itself answers without probes too, and not around the draws' mean;
        and as wide as draws are from that answer, and not from their mean.
    """

    axes: Mapping[Hashable, Axis]
    exchanged: Sequence[Mapping[Hashable, Axis]] = ()
    around_model: bool = False

    @classmethod
    def about(cls, sizes: Mapping[Hashable, int | np.ndarray], known: Mapping[Hashable, np.ndarray]) -> Question:
        """The states of some variables, all or as `Axis.told` has them, given `Axis.shares` of others."""
        told = {name: size if isinstance(size, np.ndarray) else np.eye(size) for name, size in sizes.items()}
        axes = {name: Axis(known.get(name, np.ones((3, one.shape[1]))), one) for name, one in told.items()}
        return cls(axes | {name: Axis(shares) for name, shares in known.items() if name not in axes})

    def answer(self, table: np.ndarray, end: int = 0, *, joint: bool = False) -> np.ndarray:
        """The distribution of the told states given the evidence; with `joint` the probability of both together.

        Parameters
        ----------
        table : ndarray
            Probabilities, an axis for each variable.
        end : {0, 1, 2}
            How much of each state counts: as is likely, at least, at most.

        Raises
        ------
        ImpossibleEvidence
            If the evidence has the probability 0.
        """
        return _possible(_answer(table, self.axes, end, joint=joint))

    def answers(self, tables: Sequence[np.ndarray], *, joint: bool = False) -> np.ndarray:
        """The answers under draws, each the mean over all exchanges of the question.

        Parameters
        ----------
        tables : sequence of ndarray of shape (n_draws, ...)
            Of this question, and of each one in `exchanged`.
        """
        each = [
            _answer(table, axes, batch=1, joint=joint)
            for table, axes in zip(tables, (self.axes, *self.exchanged), strict=True)
        ]
        return _possible(each[0] if len(each) == 1 else np.nanmean(each, axis=0))

    def extremes(self, table: np.ndarray, *, joint: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest possible answer, wherever values lie in the states that ranges cut through.

        Nothing says which records of such a state lie in the range: of those in a cell of the answer none to all may,
        and of the others all to none.

        Examples
        --------
        >>> known = {"age": np.array([[0.0, 1.0, 0.5], [0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])}
        >>> table = np.array([[0.2, 0.3, 0.1], [0.2, 0.1, 0.1]])
        >>> low, high = Question.about({"ill": 2}, known).extremes(table)
        >>> low.round(2), high.round(2)
        (array([0.6, 0.2]), array([0.8, 0.4]))
        """
        ends = [_answer(table, self.axes, end, joint=True) for end in (1, 2)]
        return (ends[0], ends[1]) if joint else between(*ends)

    @property
    def is_cut(self) -> bool:
        """Whether a range cuts through a state."""
        return any(one.is_cut for one in self.axes.values())

    def apart(self, table: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
        """The table of the parts of `Axis.apart`, for groups of what is told of each variable that is asked about."""
        for axis, one in enumerate(self.axes.values()):
            parts = one.apart(groups[axis] if axis < len(groups) else None)
            table = np.moveaxis(np.tensordot(parts, table, axes=(1, axis)), 0, axis)
        return table


def query_intervals(
    table: np.ndarray,
    answers: np.ndarray,
    question: Question,
    scope: Scope,
    discrepancy: Discrepancy,
    level: float,
    *,
    joint: bool = False,
) -> Interval:
    """The model's answer, with an interval for the uncertainty of both the posterior and the graph.

    Parameters
    ----------
    table : ndarray
        Joint shares of the variables of the question.
    answers : ndarray of shape (n_draws, ...)
        To it, under each draw of the posterior.
    question : Question
    scope : tuple of int
        Positions of its variables.
    discrepancy : Discrepancy
    level : float in (0, 1)
    joint : bool, default False
        Whether the answer is the probability of query and evidence together, and not a conditional one.

    Returns
    -------
    Interval
        An array with an axis for each variable of the query, within [0, 1].

    Notes
    -----
    A conditional probability R = a/b moves by ``((1 - R) da - R d(b - a))/b`` where its table moves a little, so the
    table that is told apart has two states of each variable: whether it is in the cell, and in the evidence; and a
    third one of a variable with states that are never told.

    Examples
    --------
    >>> from pgmpy_dp.models.posterior.discrepancy import learn_discrepancy
    >>> even, draws = np.full((2, 2), 0.25), 0.25 + 0.01 * np.array([[[1, -1], [-1, 1]], [[-1, 1], [1, -1]]])
    >>> learned = learn_discrepancy([], [frozenset({0, 1})])
    >>> question = Question.about({"a": 2}, {"b": np.array([[1.0, 0.0]] * 3)})
    >>> query_intervals(even, question.answers([draws]), question, (0, 1), learned, 0.9).upper.round(3)
    array([0.547, 0.547])
    """
    estimate = question.answer(table, joint=joint)
    shares, gradients = [], []
    for cell in np.ndindex(estimate.shape):
        groups = [np.eye(size)[:, [state]] for size, state in zip(estimate.shape, cell, strict=True)]
        groups = [np.hstack([group, 1.0 - group]) for group in groups]
        part = question.apart(table, groups)
        slope = np.zeros(part.shape)
        slope[(0,) * part.ndim] = 1.0
        if not joint:
            inside: Any = tuple([slice(0, 2)] * len(cell) + [0] * (part.ndim - len(cell)))
            slope[inside] -= estimate[cell]
            slope /= part[inside].sum()
        shares.append(part)
        gradients.append(slope)
    middle = estimate if question.around_model else answers.mean(axis=0)
    # A variance from k draws is uncertain: Student's law for that has (k - 1)/(k - 3) times a normal one's variance.
    variances = ((answers - middle) ** 2).sum(axis=0) / max(len(answers) - 3, 1)
    half = discrepancy.half_widths(scope, shares, gradients, variances.ravel(), level).reshape(estimate.shape)
    return Interval(estimate, np.maximum(estimate - half, 0.0), np.minimum(estimate + half, 1.0))


def between(least: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest share that each cell may have, from the least and the most that cells may hold."""
    whole = [one + np.maximum(other.sum() - other, 0.0) for one, other in ((least, most), (most, least))]
    # Without any others the cell has all; and without any of its own, nothing.
    low = np.divide(least, whole[0], out=np.ones(least.shape), where=whole[0] > 0)
    return low, np.divide(most, whole[1], out=np.zeros(most.shape), where=whole[1] > 0)


def widened(interval: Interval, low: np.ndarray, high: np.ndarray) -> Interval:
    """Widen an interval: it reaches beyond both extremes of an answer as far as it did beyond the estimate."""
    lower, upper = low - (interval.estimate - interval.lower), high + (interval.upper - interval.estimate)
    return Interval(interval.estimate, np.maximum(lower, 0.0), np.minimum(upper, 1.0))


def number_interval(
    values: Values, draws: np.ndarray, levels: Sequence[float], level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of the mean and of quantiles of a number, wherever values lie within its states.

    Parameters
    ----------
    values : Values
    draws : ndarray of shape (n_draws, n_states)
        The number's distribution under each draw of the posterior.
    levels : sequence of float in [0, 1]
        The levels of the quantiles.
    level : float in (0, 1)

    Returns
    -------
    lower, upper : ndarray of shape (1 + len(levels),)

    Notes
    -----
    Where values were counted in fine cells, each draw has its own weights within states (`Values.same_draws`), and
    the interval is between quantiles of the draws, each as wide as a cell in which numbers pile up. Elsewhere each draw
    says between what the mean and the quantiles may lie, wherever values lie in states (`Values.ends`). The lower ends
    of the draws are above the lower end of the interval with probability ``(1 + level)/2``, the upper ones below the
    upper end.

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
        ends = np.array(
            [one.reach(drawn, np.array([one.mean(drawn), *one.quantiles(drawn, levels)])) for one, drawn in weighed]
        )
    tail = (1 - level) / 2
    lower = np.quantile(ends[:, 0], tail, axis=0, method="weibull")
    return lower, np.quantile(ends[:, 1], 1 - tail, axis=0, method="weibull")


def unmeasured_numbers(
    values: Values,
    table: np.ndarray,
    answers: np.ndarray,
    question: Question,
    scope: Scope,
    discrepancy: Discrepancy,
    levels: Sequence[float],
    level: float,
) -> np.ndarray:
    """The widening, for the graph's error, of intervals of the mean and of the share up to each quantile.

    Parameters
    ----------
    values : Values
        The values of the query's one variable.
    table, answers, question, scope, discrepancy
        As of `query_intervals`.
    levels : sequence of float in [0, 1]
        The levels of the quantiles.
    level : float in (0, 1)

    Returns
    -------
    ndarray of shape (1 + len(levels),)
        Of a quantile the larger width of both ends of the state that it lies in.

    Notes
    -----
    A mean is ``sum p_s m_s / sum p_s v_s`` over states s, v_s the share of the state's values that are numbers and m_s
    their sum: linear in the table but for what is known, as a share is. So is the share of numbers up to a state.
    """
    estimate = question.answer(table)
    held = values.moments(0)
    mean = values.mean(estimate)
    behind = np.cumsum(estimate * held) / (estimate @ held)
    places = np.minimum(np.searchsorted(behind, levels), len(behind) - 1)
    cuts = sorted({int(end) for place in places for end in (place - 1, place) if end >= 0})
    weights = [values.moments(1) - held * mean, *(held * ((np.arange(len(held)) <= k) - behind[k]) for k in cuts)]
    shares, gradients, variances = [], [], []
    for weight in weights:
        different, group = np.unique(weight, return_inverse=True)
        part = question.apart(table, [np.eye(len(different))[group]])
        inside: Any = (slice(0, len(different)), *[0] * (part.ndim - 1))
        slope = np.zeros(part.shape)
        slope[inside] = different / (estimate @ held) / part[inside].sum()
        shares.append(part)
        gradients.append(slope)
        variances.append(float((answers @ weight / (answers @ held)).var(ddof=1)))
    both = [
        discrepancy.half_widths(scope, shares, slopes, np.array(variances), level)
        for slopes in (gradients, [0.0 * slope for slope in gradients])
    ]
    extra = np.maximum(both[0] - both[1], 0.0)
    of_cut = dict(zip(cuts, extra[1:], strict=True))
    ends = [max(of_cut.get(int(place) - 1, 0.0), of_cut[int(place)]) for place in places]
    return np.array([extra[0], *ends])


def _answer(
    table: np.ndarray, axes: Mapping[Hashable, Axis], end: int = 0, batch: int = 0, *, joint: bool = False
) -> np.ndarray:
    """The answer of `Question.answer`, nan where the evidence has the probability 0; `batch` axes come before all."""
    for axis, one in reversed(list(enumerate(axes.values(), batch))):
        if one.told is None:
            table = np.tensordot(table, one.shares[end], axes=(axis, 0))
        else:
            table = np.moveaxis(np.tensordot(one.told * one.shares[end], table, axes=(1, axis)), 0, axis)
    with np.errstate(invalid="ignore"):
        return table if joint else table / table.sum(axis=tuple(range(batch, table.ndim)), keepdims=True)


def _possible(answer: np.ndarray) -> np.ndarray:
    if np.isnan(answer).any():
        raise ImpossibleEvidence("evidence has the probability 0 in the model; ask about what can be")
    return answer

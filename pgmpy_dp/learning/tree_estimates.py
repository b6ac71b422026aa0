"""Consistent, non-negative estimates of the tables of one scope at nested levels: least squares on the tree.

The tables of a variable's levels with the same other variables are a tree: each cell of counties is the sum of its
tracts' cells. Two passes give the least squares of all tables (from the leaves up, each node the mean by precision of
its own count and of its children's sum; from the root down, what is missing shared out by variance), for any fan-out.
A third, from the root down, makes them non-negative: each node's children are projected on non-negative numbers with
the node as their sum.

Hay, Rastogi, Miklau and Suciu (2010), Boosting the accuracy of differentially private histograms through consistency,
VLDB; Abowd et al. (2022), The 2020 census disclosure avoidance system TopDown algorithm, Harvard Data Science Review.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Table = tuple[np.ndarray, np.ndarray]
"""Counts and the variances of their noise (infinite where nothing was measured), both (n_nodes, n_cells)."""


def least_squares(tables: Sequence[Table], parents: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The consistent tables nearest to measured ones, by the variances of their noise.

    Parameters
    ----------
    tables : sequence of (counts, variances)
        Of each level, the coarsest first: shapes (n_nodes, n_cells).
    parents : sequence of ndarray of int
        Of each level but the first: the node of the level before that each node is a part of. Every node has parts.

    Returns
    -------
    list of ndarray of shape (n_nodes, n_cells)

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> top, parts = least_squares([(12 * one, one), (np.array([[4.0], [5.0]]), np.ones((2, 1)))], [np.zeros(2, int)])
    >>> top.round(12).tolist(), parts.round(12).tolist()
    ([[11.0]], [[5.0], [6.0]])
    """
    means, variances = [tables[-1][0]], [tables[-1][1]]
    for (count, variance), parent in zip(tables[-2::-1], parents[::-1], strict=True):
        below, spread = (_sums(part[0], parent, len(count)) for part in (means, variances))
        precision = 1 / variance + 1 / spread
        means.insert(0, (np.where(np.isinf(variance), 0.0, count) / variance + below / spread) / precision)
        variances.insert(0, 1 / precision)
    result = [means[0]]
    for mean, variance, parent in zip(means[1:], variances[1:], parents, strict=True):
        missing = result[-1] - _sums(mean, parent, len(result[-1]))
        result.append(mean + variance * (missing / _sums(variance, parent, len(missing)))[parent])
    return result


def non_negative(tables: Sequence[np.ndarray], parents: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Consistent tables made non-negative from the first down, each node's parts on {x >= 0, sum x = the node's}.

    The first table keeps its sum, if that is positive; arguments and result as of `least_squares`.

    Examples
    --------
    >>> tables = [np.array([[9.0]]), np.array([[-1.0], [3.0], [7.0]])]
    >>> [table.ravel().tolist() for table in non_negative(tables, [np.zeros(3, int)])]
    [[9.0], [0.0, 2.5, 6.5]]
    """
    whole = np.array([max(float(tables[0].sum()), 0.0)])
    result = [_projected(tables[0].ravel(), np.zeros(tables[0].size, dtype=int), whole).reshape(tables[0].shape)]
    for table, parent in zip(tables[1:], parents, strict=True):
        group = parent[:, None] * table.shape[1] + np.arange(table.shape[1])
        result.append(_projected(table.ravel(), group.ravel(), result[-1].ravel()).reshape(table.shape))
    return result


def _sums(values: np.ndarray, parent: np.ndarray, n: int) -> np.ndarray:
    sums = np.zeros((n, values.shape[1]))
    np.add.at(sums, parent, values)
    return sums


def _projected(values: np.ndarray, group: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The values of each group projected on {x >= 0, sum x = its total}; see `project_on_simplex`."""
    order = np.lexsort((-values, group))
    ordered, groups = values[order], group[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    rank = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups))) + 1
    sums = np.cumsum(ordered)
    before = np.repeat(sums[starts] - ordered[starts], np.diff(starts, append=len(groups)))
    thresholds = (sums - before - totals[groups]) / rank
    last = starts + np.maximum(np.add.reduceat((ordered > thresholds).astype(int), starts), 1) - 1
    of_group = np.zeros(len(totals))
    of_group[groups[starts]] = thresholds[last]
    return np.maximum(values - of_group[group], 0.0)

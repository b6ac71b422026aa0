"""Fewer states for large tables: released counts decide which neighbouring cells, or rare categories, become one.

A fine table of one variable is cheap: its noise is that of one table, however many cells. A table of two fine variables
is mostly noise. So a plan releases the fine tables first, merges their cells here, and counts larger tables in merged
states. Everything is a function of noisy tables and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.learning.noisy_marginals import project_on_simplex
from pgmpy_dp.schema import Levels, Number, Reading, Schema

MOST_BINS = 32
"""The largest number of bins of one variable, however much budget there is."""

_ERROR = 0.1
_SEEN = 1.0  # standard deviations


@dataclass(frozen=True)
class Merging:
    """The merged states of some variables, and the place of each fine one among them.

    Attributes
    ----------
    schema : Schema
        The schema in which these variables have their merged states, and all others are as they were.
    places : dict of name to tuple of int
        For each of these variables the merged state of each fine one.
    """

    schema: Schema
    places: Mapping[Any, tuple[int, ...]]


def likely_proportions(counts: np.ndarray, deviation: float, n_cells: int | None = None) -> np.ndarray:
    """Proportions of the states of a noisy fine table: not negative, and 0 where nothing but noise is seen.

    An interval of m cells whose sum is below ``sqrt(m)`` deviations counts as empty; of others the halves are looked
    at. What is left is projected on the simplex. Without the first step the positive noise of many empty cells would
    stay, far from all records.

    Parameters
    ----------
    counts : ndarray of shape (k,)
    deviation : float
        Standard deviation of the noise in a cell.
    n_cells : int, optional
        The number of states that are cells of a grid; they come first. Default: all.

    Examples
    --------
    >>> likely_proportions(np.array([96.0, -3.0, 4.0, 2.0]), 3.0).round(2)
    array([0.96, 0.  , 0.04, 0.  ])
    """
    k = len(counts) if n_cells is None else n_cells
    kept = np.concatenate([np.zeros(k, dtype=bool), counts[k:] > 0])
    intervals = [(0, k)]
    while intervals:
        first, end = intervals.pop()
        if counts[first:end].sum() >= _SEEN * deviation * math.sqrt(end - first):
            middle = (first + end) // 2
            intervals += [(first, middle), (middle, end)] if end - first > 1 else []
            kept[first:end] |= end - first == 1
    if not kept.any():
        return np.full(len(counts), 1 / len(counts))
    proportions = np.zeros(len(counts))
    proportions[kept] = project_on_simplex(counts[kept] / max(float(counts[kept].sum()), 1.0))
    return proportions


def useful_bins(n_records: float, cell_noise: float, order: int = 2) -> int:
    """The number of cells that each variable of a table may have, for its noise to be a tenth of the records.

    The l1 norm of the noise in a table of b times b cells is about ``b^2 E|noise|``, in one of `order` such variables
    ``b^order E|noise|``.

    Examples
    --------
    >>> useful_bins(30_000, 40.0), useful_bins(100, 40.0)
    (8, 2)
    """
    return min(max(int((_ERROR * max(n_records, 1.0) / cell_noise) ** (1 / order)), 2), MOST_BINS)


def equal_bins(proportions: np.ndarray, n_bins: int) -> np.ndarray:
    """Divide the cells of a grid into bins: intervals of about equal weight.

    A cell that outweighs a bin is a bin of its own, or nearly; empty cells join a neighbour.

    Parameters
    ----------
    proportions : ndarray of shape (k,)
        Not negative.
    n_bins : int
        The largest number of bins.

    Returns
    -------
    ndarray of int, shape (k,)
        From 0, ascending by steps of 0 or 1; at least two bins.

    Examples
    --------
    >>> equal_bins(np.array([0.1, 0.1, 0.0, 0.7, 0.0, 0.05, 0.05]), 3)
    array([0, 0, 0, 1, 2, 2, 2])
    """
    total = float(proportions.sum())
    weights = proportions / total if total > 0 else np.full(len(proportions), 1 / len(proportions))
    middle = np.cumsum(weights) - weights / 2
    bins = np.unique(np.minimum((middle * n_bins).astype(int), n_bins - 1), return_inverse=True)[1]
    return bins if bins[-1] else (np.arange(len(bins)) >= len(bins) // 2).astype(int)


def rare_states(counts: np.ndarray, least: float) -> np.ndarray:
    """The rare states, as booleans: noisy counts below `least`, if there are at least two and others stay."""
    rare = counts < least
    return rare if 2 <= rare.sum() < len(rare) else np.zeros(len(counts), dtype=bool)


def merge_states(
    schema: Schema,
    tables: Mapping[Any, tuple[np.ndarray, float]],
    n_bins: int,
    least: float,
    merge_rare: Sequence = (),
    cuts: Mapping[Any, Sequence[float]] | None = None,
) -> Merging:
    """Merge the cells of some variables' fine grids into bins, and the rare states of others into one.

    Parameters
    ----------
    schema : Schema
        With fine states.
    tables : mapping of name to (ndarray, float)
        Of the variables to merge: noisy counts of their fine states, and the standard deviation of the noise in a cell;
        or their proportions, without noise, and 0.
    n_bins : int
        The largest number of bins of each number.
    least : float
        A category with a noisy count below it is rare.
    merge_rare : sequence of names
        Categorical variables among `tables`. Those that rules about what is impossible name keep their states.
    cuts : mapping of name to sequence of float, optional
        Where numbers are divided in any case; edges of their cells.

    Returns
    -------
    Merging
        Missing and outside states of numbers stay states of their own. Of a variable with levels the rare states merge
        that are of one state of its finest level: every level stays a function of the states that are counted.

    Examples
    --------
    >>> from pgmpy_dp.schema import Number
    >>> schema = Schema({"age": Number(0, 8, bins=8, missing="drop"), "job": ["a", "b", "c"]})
    >>> tables = {"age": (np.array([0, 0, 40, 40, 40, 40, 0, 0]), 1.0), "job": (np.array([90, 3, 2]), 1.0)}
    >>> merged = merge_states(schema, tables, 2, 10.0, ["job"])
    >>> merged.schema.states["age"], merged.schema.states["job"]
    (('[0,4)', '[4,8]'), ('a', 'rare'))
    """
    changed: dict[Any, Any] = {}
    places: dict[Any, tuple[int, ...]] = {}
    for name, (table, deviation) in tables.items():
        if name in schema.numbers:
            cells = len(schema.numbers[name].cells)
            bins = equal_bins(likely_proportions(table, deviation, cells)[:cells], n_bins)
            changed[name], places[name] = in_groups(schema, name, bins, (cuts or {}).get(name, ()))
        elif name in merge_rare and name not in schema.ruled and (rare := rare_states(table, least)).any():
            if isinstance(tree := schema.states[name], Levels):
                changed[name], places[name] = tree.with_rare(rare.tolist())
                continue
            kept = [state for state, is_rare in zip(schema.states[name], rare, strict=True) if not is_rare]
            changed[name] = [*kept, _name_of_rare(kept, schema.reading(name))]
            places[name] = tuple(np.where(rare, len(kept), np.cumsum(~rare) - 1).tolist())
    return Merging(schema.replaced(changed), places)


def in_groups(
    schema: Schema, name: Any, groups: np.ndarray, cuts: Sequence[float] = ()
) -> tuple[Number, tuple[int, ...]]:
    """A number in cells that groups of its own become, divided also where rules about what is impossible compare.

    Parameters
    ----------
    schema : Schema
    name : name
        Of a number.
    groups : ndarray of int, shape (n_cells,)
        Of its cells, ascending.
    cuts : sequence of float
        Where it is divided in any case, as far as its cells are.

    Returns
    -------
    number : Number
    places : tuple of int
        The new state of each state: missing and outside states stay states of their own.
    """
    number = schema.numbers[name]
    needed = [*schema.rule_cuts(name), *(cut for cut in cuts if number.divides(cut))]
    starts = np.union1d(np.flatnonzero(np.diff(groups)) + 1, [number.edges.index(cut) for cut in needed]).astype(int)
    starts = np.union1d(starts, [k for k in np.flatnonzero(number.points) if k and k + 1 in starts]).astype(int)
    places = np.searchsorted(starts, np.arange(len(number.cells)), side="right")
    others = schema.cardinality(name) - len(places)
    last = int(places[-1]) + 1
    return number.with_cuts(number.edges[k] for k in starts), (*places.tolist(), *range(last, last + others))


def _name_of_rare(kept: Sequence, reading: Reading) -> str:
    """A state that is spelled like no other, and that cells are not read as another for."""
    taken = {*(reading.spelled(reading.key(state)) for state in kept), *reading.missing, *reading.recode}
    name = "rare"
    while reading.spelled(reading.key(name)) in taken:
        name += "_"
    return name


def merged_cells(table: np.ndarray, places: Sequence[Sequence[int] | np.ndarray | None]) -> np.ndarray:
    """Add cells up: along axis a state k becomes ``places[a][k]``; None leaves an axis as it is.

    Examples
    --------
    >>> merged_cells(np.array([[1, 2], [3, 4], [5, 6]]), [np.array([0, 1, 1]), None]).tolist()
    [[1, 2], [8, 10]]
    """
    for axis, to in enumerate(places):
        if to is not None:
            joined = np.zeros((*table.shape[:axis], int(max(to)) + 1, *table.shape[axis + 1 :]), dtype=table.dtype)
            np.add.at(joined.swapaxes(0, axis), np.asarray(to), table.swapaxes(0, axis))
            table = joined
    return table

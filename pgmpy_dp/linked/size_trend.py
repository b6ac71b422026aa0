"""How columns of children differ between small and large families, where noise hides it in tables of all sizes.

A random child is of a larger family than a random family's. What is known of it is the table of n with a column, of
few records a cell: where noise hides these, a fit takes the column for independent of n, and answers for a random child
what is true of a random family. So families are put into two groups, by n, and a table of the groups with each column
is measured. Its cells are large. Only the difference of the groups is taken from it: their sum is known better from the
tables that a fit has. A model gets that difference by log-odds that have a line in n more than it had, as near as can
be without a change of n alone and of the column alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.linked.operators.wide_table import WideTable

_STEPS, _FURTHEST = 40, 6.0  # of Newton's method; log-odds, where noise asks for more than can be
_LEAST = 0.02  # of a state's children, in either group
_PART = 0.1  # of what is off that counts as off: ends of rules are exact, those of a trend have noise


@dataclass(frozen=True)
class SizeTrend:
    """The shares of states of the child in slot a, of small and of large families.

    Parameters
    ----------
    large : ndarray of bool, shape (patterns,)
    tables : mapping of name to ndarray, shape (m, 2, states)
        Of each column of children, for all models or for each of m, shares of rows of all families, with noise.
    deviation : float
        Of that noise.
    """

    large: np.ndarray
    tables: Mapping[Hashable, np.ndarray]
    deviation: float

    @classmethod
    def of(cls, measured: Mapping[str, Any] | None, wide: WideTable, n_records: float) -> SizeTrend | None:
        """Read what a search measured; None where it did not."""
        if measured is None:
            return None
        tables = {x: np.array([table]) / n_records for x, table in zip(wide.child, measured["tables"], strict=True)}
        return cls(np.array(measured["large"]), tables, measured["deviation"] / n_records)

    def drawn(self, n_draws: int, n_records: float, rng: np.random.Generator) -> SizeTrend:
        """The same with as much noise again, and with the error of a sample of so many families."""
        tables = {}
        for name, table in self.tables.items():
            deviation = np.sqrt(self.deviation**2 + np.maximum(table, 0.0) / n_records)
            tables[name] = table + deviation * rng.normal(size=(n_draws, *table.shape[1:]))
        return replace(self, tables=tables)

    def step(self, wide: WideTable, slot: int, name: Hashable, first: np.ndarray) -> partial:
        """A function from tables of n with a child's column to what is added to log-potentials, and what is off.

        The first tables say what there is of n and of the column alone.
        """
        there = np.array([slot in present for _, present in wide.patterns])
        inside = np.arange(first.shape[2]) != wide.child.cardinality(name)  # which is the state of a slot without one
        cells = np.ix_(*map(np.arange, first.shape[:1]), there, inside)
        n, large = np.array([k for k, _ in wide.patterns]), self.large[there]
        of_rows = first[cells].sum(axis=2, keepdims=True)
        whole, most = first[cells].sum(axis=1, keepdims=True), of_rows[:, large].sum(axis=1, keepdims=True)
        of_large = (whole + np.diff(self.tables[name], axis=1)) / 2
        for _ in range(_STEPS):  # to sums of columns and of rows that agree
            of_large = np.clip(of_large, _LEAST * whole, (1.0 - _LEAST) * whole)
            of_large = of_large * (most / np.maximum(of_large.sum(axis=2, keepdims=True), 1e-300))
        wanted = np.concatenate([np.maximum(whole - of_large, 0.0), of_large], axis=1)
        groups = np.stack([~large, large]) * 1.0
        return partial(_toward, cells, (n[there] - n.mean()) / n.max(), groups, of_rows, wanted)


def _toward(
    cells: Any, line: np.ndarray, groups: np.ndarray, of_rows: np.ndarray, wanted: np.ndarray, table: np.ndarray
) -> tuple[np.ndarray, float]:
    """Newton's method for the tilts of states: at the middle of the line, and along it."""
    before = after = table[cells]
    tilt = np.zeros_like(wanted)
    for _ in range(_STEPS):
        at, along = groups @ after, (groups * line) @ after
        off = wanted - at
        scale = at[:, 0] * along[:, 1] - along[:, 0] * at[:, 1]
        newton = along[:, 1] * off[:, 0] - along[:, 0] * off[:, 1], at[:, 0] * off[:, 1] - at[:, 1] * off[:, 0]
        step = np.stack(newton, axis=1) / np.maximum(scale, 1e-9 * at.prod(axis=1) + 1e-300)[:, None]
        tilt = np.clip(tilt + np.clip(step, -0.5, 0.5), -_FURTHEST, _FURTHEST)
        after = before * np.exp(tilt[:, :1] + tilt[:, 1:] * line[:, None])
        after = after * (of_rows / np.maximum(after.sum(axis=2, keepdims=True), 1e-300))
    change = np.zeros_like(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        change[cells] = np.nan_to_num(np.log(after / before), neginf=0.0, posinf=0.0)
    return change, _PART * float(np.abs(wanted - groups @ before).max(initial=0.0))


def is_hidden(wide: WideTable, tables: Mapping[tuple, tuple[np.ndarray, float]]) -> bool:
    """Whether columns of children depend on n by less than noise does, in squares of what independence leaves open.

    Where they depend by more, a fit of these tables has it, and further tables would bring more noise than they mend.

    Parameters
    ----------
    wide : WideTable
    tables : mapping of scope to (ndarray, float)
        Released ones, and the deviation of their noise; those of n with columns of the first slot are read.
    """
    there, size, free = [0 in present for _, present in wide.patterns], 0.0, 0
    for scope, absent in zip([(wide.size, name) for name in wide.slots[0]], wide.absent, strict=True):
        cells = np.delete(tables[scope][0][there], absent, axis=1)
        apart = cells - cells.sum(axis=1, keepdims=True) * cells.sum(axis=0) / max(cells.sum(), 1.0)
        size += float((apart**2).sum()) / tables[scope][1] ** 2
        free += (cells.shape[0] - 1) * (cells.shape[1] - 1)
    return size < 3 * free


def large_families(sizes: np.ndarray, likely: np.ndarray) -> np.ndarray:
    """Whether each state of n is of large families: of two groups whose means of n differ the most, for their size.

    Examples
    --------
    >>> large_families(np.array([1, 2, 3, 4]), np.array([0.4, 0.1, 0.1, 0.4])).tolist()
    [False, False, True, True]
    """
    above = sizes - likely @ sizes / likely.sum()
    told = [likely[sizes > n] @ above[sizes > n] for n in range(int(sizes.max()))]
    return sizes > int(np.argmax(told))

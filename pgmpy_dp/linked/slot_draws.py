"""Draws of one slot's columns given all others, for many rows at once, without its joint cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.row_conditionals import elimination_order

Scope = tuple[int, ...]

_Rows = tuple[list[int], np.ndarray, list[int], np.ndarray | None]
"""A table's columns outside of the slot; the table, these first, then the slot's. If it has siblings, what their mean
has outside, and it."""

_AT_ONCE = 1 << 18  # cells of the largest table: more do not stay in a processor's cache
_NEVER = -1e9  # of what a sibling makes impossible: a number, which a weight of 0 makes nothing of


class SlotDraws:
    """The columns of one slot given all other columns.

    Parameters
    ----------
    model : LogLinearModel
    columns : sequence of int
        Positions of the slot's variables.
    sibling : sequence of int, optional
        Those of another slot, in the same order, in whose place any number of siblings can be.
    by : int, optional
        A variable of few states, on which unknown siblings depend.
    states : sequence of int, optional
        Of each column the number of its first states, which alone are drawn. Default: all.

    Notes
    -----
    The log-potentials of a row are a sparse matrix, which says which cells of which tables are the row's and for how
    much each counts, times these tables. Columns are eliminated one by one from the tables that have them: sum-product
    on the graph of the slot alone, for all rows at once. They are drawn in the reverse order.
    """

    def __init__(
        self,
        model: LogLinearModel,
        columns: Sequence[int],
        sibling: Sequence[int] = (),
        by: int | None = None,
        states: Sequence[int] | None = None,
    ) -> None:
        self._columns, self._sibling = list(columns), list(sibling)
        self._sizes = [model.cliques.cardinalities[j] for j in columns] if states is None else list(states)
        place = {j: k for k, j in enumerate(columns)}
        self._fixed: dict[Scope, np.ndarray] = {}  # by the slot's columns that they are of: tables of no others
        self._tables: dict[Scope, list[_Rows]] = {}  # and those that depend on a row
        for scope, table in zip(model.cliques.indices, model.cliques.split(model.theta), strict=True):
            if not (axes := tuple(sorted(place[i] for i in scope if i in place))):
                continue
            outside = [i for i in scope if i not in place]
            cells = table.transpose([scope.index(i) for i in (*outside, *(columns[k] for k in axes))])
            first: tuple[Any, ...] = (..., *(slice(self._sizes[k]) for k in axes))
            cells = np.maximum(cells[first], _NEVER)
            if not outside:
                self._fixed[axes] = self._fixed.get(axes, 0.0) + cells
                continue
            usual = self._without(model, outside, cells, by)
            self._tables.setdefault(axes, []).append((outside, cells, *usual))
        scopes = [*self._fixed, *self._tables]
        self._order, self._largest = elimination_order(self._sizes, scopes, range(len(columns)))

    def _without(
        self, model: LogLinearModel, outside: list[int], cells: np.ndarray, by: int | None
    ) -> tuple[list[int], np.ndarray | None]:
        """A table with siblings, meaned over them given `by`, which becomes its last one outside; and these."""
        theirs = [i for i in outside if i in self._sibling]
        if not theirs or by is None:
            return [], None
        names, rest = model.cliques.variables, [i for i in outside if i not in theirs]
        likely = model.marginal([names[i] for i in [by, *theirs]])
        flat = likely.reshape(len(likely), -1)
        flat = flat / np.maximum(flat.sum(axis=1, keepdims=True), 1e-300)
        inside = cells.shape[len(outside) :]
        cells = cells.transpose([*map(outside.index, (*rest, *theirs)), *range(len(outside), cells.ndim)])
        cells = cells.reshape(*cells.shape[: len(rest)], flat.shape[1], -1)
        possible = cells > _NEVER  # what no sibling can have says nothing of an unknown one
        part = flat @ possible
        mean = (flat @ np.where(possible, cells, 0.0)) / np.maximum(part, 1e-300)
        mean = np.where(part > 0, mean, _NEVER)
        return [*rest, by], mean.reshape(*mean.shape[:-1], *inside)

    def draw(
        self,
        codes: np.ndarray,
        rng: np.random.Generator,
        allowed: Sequence[np.ndarray | None] | None = None,
        siblings: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw codes of the slot for rows of codes; those in the slot itself are not looked at.

        Parameters
        ----------
        codes : ndarray of int, shape (n, n_variables)
        rng : numpy.random.Generator
        allowed : sequence of ndarray of bool, shape (n, states), optional
            For each column the states that may be drawn; None for all.
        siblings : ndarray of int, shape (n, m, len(columns)), optional
            The siblings, who take the place of the one in `codes`.
        weight : ndarray, shape (n, m), optional
            How much each of them counts, of what the model has for one sibling. Where the weights lack some of 1, or
            exceed it, the rest is an unknown sibling's.

        Returns
        -------
        ndarray of int64, shape (n, len(columns))
            Where nothing that is allowed is possible, in each column the number of its states.
        """
        drawn = np.empty((len(codes), len(self._columns)), dtype=np.int64)
        step = max(1, _AT_ONCE // self._largest)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            permitted = [None if one is None else one[rows] for one in allowed or []]
            those = None if siblings is None or weight is None else (siblings[rows], weight[rows])
            drawn[rows] = self._drawn(codes[rows], rng, permitted, those)
        return drawn

    def _of_rows(
        self, tables: list[_Rows], codes: np.ndarray, siblings: tuple[np.ndarray, np.ndarray] | None
    ) -> np.ndarray:
        """The sum of tables of the same columns of the slot, of each row: shape (cells, n)."""
        start, cells, shares, stacked = 0, list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()

        def add(table: np.ndarray, outside: list[int], share: np.ndarray, of: np.ndarray | None = None) -> None:
            nonlocal start
            at = np.zeros(share.shape, dtype=np.int32)
            for axis, i in enumerate(outside):
                states = codes[:, [i]] if of is None or i not in self._sibling else of[:, :, self._sibling.index(i)]
                at = at * table.shape[axis] + states
            stacked.append(table.reshape(int(np.prod(table.shape[: len(outside)])), -1))
            cells.append(at + start)
            shares.append(share)
            start += len(stacked[-1])

        one = np.ones((len(codes), 1))
        for outside, table, rest, mean in tables:
            if siblings is None or mean is None:
                add(table, outside, one)
            else:
                add(table, outside, siblings[1], siblings[0])
                add(mean, rest, 1.0 - siblings[1].sum(axis=1, keepdims=True))
        at, share = np.concatenate(cells, axis=1), np.concatenate(shares, axis=1)
        ends = np.arange(len(codes) + 1, dtype=np.int32) * np.int32(at.shape[1])
        return (sparse.csr_array((share.ravel(), at.ravel(), ends), (len(codes), start)) @ np.concatenate(stacked)).T

    def _drawn(
        self,
        codes: np.ndarray,
        rng: np.random.Generator,
        allowed: Sequence[np.ndarray | None],
        siblings: tuple[np.ndarray, np.ndarray] | None,
    ) -> np.ndarray:
        n, width = len(codes), len(self._columns)

        def factor(cells: np.ndarray, axes: Scope) -> np.ndarray:
            return cells.reshape(*(self._sizes[k] if k in axes else 1 for k in range(width)), -1)

        def likely(cells: np.ndarray) -> np.ndarray:
            return np.exp(cells - np.maximum(cells.max(axis=0), _NEVER * 1e-3))

        factors = [factor(likely(cells.reshape(-1, 1)), axes) for axes, cells in self._fixed.items()]
        for axes, tables in self._tables.items():
            factors.append(factor(np.ascontiguousarray(likely(self._of_rows(tables, codes, siblings))), axes))
        factors += [factor(np.ascontiguousarray(one.T), (k,)) for k, one in enumerate(allowed) if one is not None]
        kept, every = list[np.ndarray](), tuple(range(width))
        for k in self._order:
            mine = sorted((f for f in factors if f.shape[k] > 1), key=np.size)
            factors = [f for f in factors if f.shape[k] == 1]
            kept.append(math.prod(mine, start=np.ones([self._sizes[k] if j == k else 1 for j in (*every, -1)])))
            message = kept[-1].sum(axis=k, keepdims=True)
            factors.append(message / np.maximum(message.max(axis=every, keepdims=True), 1e-300))
        drawn, possible = np.zeros((width, n), dtype=np.int64), math.prod(factors, start=np.ones(1)).ravel() > 0
        for k, joined in zip(reversed(self._order), reversed(kept), strict=True):
            places = [drawn[j] if size > 1 else 0 for j, size in enumerate(joined.shape[:-1])]
            places[k] = np.arange(self._sizes[k])[:, None]
            sums = joined[(*places, np.arange(n) if joined.shape[-1] > 1 else 0)].cumsum(axis=0)
            drawn[k] = np.minimum((rng.random(n) * sums[-1] >= sums).sum(axis=0), self._sizes[k] - 1)
        return np.where(possible, drawn, np.array(self._sizes)[:, None]).T

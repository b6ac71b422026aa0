"""Draws of one slot's columns given all others, for many rows at once, without its joint cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.inference.log_linear import LogLinearModel

Scope = tuple[int, ...]

_AT_ONCE = 1 << 18  # cells of the largest table: more do not stay in a processor's cache
_NEVER = -1e9  # of states that are not to be drawn, below those that are possible


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

    Notes
    -----
    Columns are eliminated one by one from the tables that have them, with a row's other columns put in: sum-product on
    the graph of the slot alone, for all rows at once. They are drawn in the reverse order.
    """

    def __init__(
        self, model: LogLinearModel, columns: Sequence[int], sibling: Sequence[int] = (), by: int | None = None
    ) -> None:
        self.columns, self._sibling = list(columns), list(sibling)
        self._sizes = [model.cliques.cardinalities[j] for j in columns]
        place = {j: k for k, j in enumerate(columns)}
        self._tables = [
            (scope, table, [place[i] for i in scope if i in place])
            for scope, table in zip(model.cliques.indices, model.cliques.split(model.theta), strict=True)
            if any(i in place for i in scope)
        ]
        self._usual = [self._without(model, scope, table, by) for scope, table, _ in self._tables]
        self._order, self._largest = self._elimination([set(axes) for *_, axes in self._tables])

    def _without(
        self, model: LogLinearModel, scope: Scope, table: np.ndarray, by: int | None
    ) -> tuple[Scope, np.ndarray] | None:
        """A table with siblings, meaned over them given `by`, which becomes its last axis; and its other variables."""
        theirs = [i for i in scope if i in self._sibling]
        if not theirs or by is None:
            return None
        names, rest = model.cliques.variables, [i for i in scope if i not in theirs]
        joint = [by, *(i for i in theirs if i != by)]
        likely = model.marginal([names[i] for i in joint])
        flat = likely.reshape(len(likely), -1)
        flat = flat / np.maximum(flat.sum(axis=1, keepdims=True), 1e-300)
        cells = table.transpose([scope.index(i) for i in (*rest, *theirs)])
        cells = cells.reshape(*cells.shape[: len(rest)], -1)
        possible = np.isfinite(cells)  # what no sibling can have says nothing of an unknown one
        part = possible @ flat.T
        mean = (np.where(possible, cells, 0.0) @ flat.T) / np.maximum(part, 1e-300)
        return (*rest, by), np.where(part > 0, mean, _NEVER)

    def _elimination(self, factors: list[set[int]]) -> tuple[list[int], int]:
        """Columns in an order that keeps tables small, greedily, and the cells of the largest one."""
        left, order, largest = set(range(len(self.columns))), [], 1
        while left:
            joined = {k: set().union({k}, *(f for f in factors if k in f)) for k in left}
            size = {k: int(np.prod([self._sizes[j] for j in joined[k]])) for k in left}
            best = min(left, key=lambda k: (size[k], k))
            largest = max(largest, size[best])
            factors = [f for f in factors if best not in f] + [joined[best] - {best}]
            order.append(best)
            left.remove(best)
        return order, largest

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
        allowed : sequence of ndarray of bool, shape (states,) or (n, states), optional
            For each column the states that may be drawn; None for all. Where none of them is possible others are.
        siblings : ndarray of int, shape (n, m, len(columns)), optional
            The siblings, who take the place of the one in `codes`.
        weight : ndarray, shape (n, m), optional
            How much each of them counts, of what the model has for one sibling. Where the weights lack some of 1, or
            exceed it, the rest is an unknown sibling's.

        Returns
        -------
        ndarray of int64, shape (n, len(columns))
        """
        drawn = np.empty((len(codes), len(self.columns)), dtype=np.int64)
        step = max(1, _AT_ONCE // self._largest)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            permitted = None if allowed is None else [a if a is None or a.ndim == 1 else a[rows] for a in allowed]
            those = None if siblings is None or weight is None else (siblings[rows], weight[rows])
            drawn[rows] = self._drawn(codes[rows], rng, permitted, those)
        return drawn

    def _sliced(self, scope: Scope, table: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """A table with a row's other columns put in: its own axes remain."""
        inside = [axis for axis, i in enumerate(scope) if i in self.columns]
        outside = [axis for axis in range(len(scope)) if axis not in inside]
        sliced = table.transpose([*outside, *inside])
        return sliced[tuple(codes[:, scope[axis]] for axis in outside)] if outside else sliced[None]

    def _of_siblings(self, place: int, codes: np.ndarray, siblings: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The log-potentials of the slot by a table with siblings, each of whom counts for its weight."""
        scope, table, _ = self._tables[place]
        unknown = self._usual[place]
        assert unknown is not None
        lacking = 1.0 - weight.sum(axis=1)
        one = self._sliced(unknown[0], unknown[1], codes)
        total = one * lacking.reshape(-1, *[1] * (one.ndim - 1))
        table, codes = np.maximum(table, _NEVER), codes.copy()
        for m in range(siblings.shape[1]):
            codes[:, self._sibling] = siblings[:, m]
            total += self._sliced(scope, table, codes) * weight[:, m].reshape(-1, *[1] * (one.ndim - 1))
        return total

    def _drawn(
        self,
        codes: np.ndarray,
        rng: np.random.Generator,
        allowed: Sequence[np.ndarray | None] | None,
        siblings: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        n, width = len(codes), len(self.columns)
        factors: list[np.ndarray] = []
        for place, (scope, table, axes) in enumerate(self._tables):
            if siblings is not None and self._usual[place] is not None:
                sliced = self._of_siblings(place, codes, *siblings)
            else:
                sliced = self._sliced(scope, table, codes)
            sliced = sliced.transpose([0, *(1 + np.argsort(axes))])
            shape = [sliced.shape[0]] + [self._sizes[k] if k in axes else 1 for k in range(width)]
            factors.append(sliced.reshape(shape))
        for k, states in enumerate(allowed or []):
            if states is not None:
                mask = np.where(states, 0.0, _NEVER).reshape(-1, self._sizes[k])
                factors.append(mask.reshape([len(mask)] + [self._sizes[j] if j == k else 1 for j in range(width)]))
        kept = []
        for k in self._order:
            mine = [f for f in factors if f.shape[1 + k] > 1]
            factors = [f for f in factors if f.shape[1 + k] == 1]
            joined = sum(mine, np.zeros([1] * (1 + width)))
            most = np.maximum(joined.max(axis=1 + k, keepdims=True), -1e300)
            with np.errstate(divide="ignore"):
                factors.append(most + np.log(np.exp(joined - most).sum(axis=1 + k, keepdims=True)))
            kept.append(joined)
        drawn = np.zeros((n, width), dtype=np.int64)
        every = np.arange(n)
        for k, joined in zip(reversed(self._order), reversed(kept), strict=True):
            index = [every if joined.shape[0] > 1 else np.zeros(n, dtype=np.int64)]
            index += [
                drawn[:, j] if joined.shape[1 + j] > 1 and j != k else np.zeros(n, dtype=np.int64) for j in range(width)
            ]
            index = [part[:, None] for part in index]
            index[1 + k] = np.arange(joined.shape[1 + k])[None, :] if joined.shape[1 + k] > 1 else index[1 + k]
            logits = joined[tuple(index)]
            weights = np.exp(logits - np.maximum(logits.max(axis=1, keepdims=True), -1e300)).cumsum(axis=1)
            drawn[:, k] = (rng.random((n, 1)) * weights[:, -1:] >= weights).sum(axis=1)
        return np.minimum(drawn, np.array(self._sizes) - 1)

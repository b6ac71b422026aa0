"""Draws of one slot's columns given all others, for many rows at once, without its joint cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.inference.log_linear import LogLinearModel

_AT_ONCE = 1 << 22
_NEVER = -1e9  # of states that are not to be drawn, below those that are possible


class SlotDraws:
    """The columns of one slot given all other columns.

    Parameters
    ----------
    model : LogLinearModel
    columns : sequence of int
        Positions of the slot's variables.

    Notes
    -----
    Columns are eliminated one by one from the tables that have them, with a row's other columns put in: sum-product on
    the graph of the slot alone, for all rows at once. They are drawn in the reverse order.
    """

    def __init__(self, model: LogLinearModel, columns: Sequence[int]) -> None:
        self.columns = list(columns)
        self._sizes = [model.cliques.cardinalities[j] for j in columns]
        place = {j: k for k, j in enumerate(columns)}
        self._tables = [
            (scope, table, [place[i] for i in scope if i in place])
            for scope, table in zip(model.cliques.indices, model.cliques.split(model.theta), strict=True)
            if any(i in place for i in scope)
        ]
        self._order, self._largest = self._elimination([set(own) for *_, own in self._tables])

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
        self, codes: np.ndarray, rng: np.random.Generator, allowed: Sequence[np.ndarray | None] | None = None
    ) -> np.ndarray:
        """Codes of the slot for rows of codes, of which the slot's own are not looked at.

        Parameters
        ----------
        codes : ndarray of int, shape (n, n_variables)
        rng : numpy.random.Generator
        allowed : sequence of ndarray of bool, shape (states,) or (n, states), optional
            For each column the states that may be drawn; None for all. Where none of them is possible others are.

        Returns
        -------
        ndarray of int64, shape (n, len(columns))
        """
        found = np.empty((len(codes), len(self.columns)), dtype=np.int64)
        step = max(1, _AT_ONCE // self._largest)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            own = None if allowed is None else [a if a is None or a.ndim == 1 else a[rows] for a in allowed]
            found[rows] = self._drawn(codes[rows], rng, own)
        return found

    def _drawn(
        self, codes: np.ndarray, rng: np.random.Generator, allowed: Sequence[np.ndarray | None] | None
    ) -> np.ndarray:
        n, width = len(codes), len(self.columns)
        factors: list[np.ndarray] = []
        for scope, table, own in self._tables:
            inside = [axis for axis, i in enumerate(scope) if i in self.columns]
            outside = [axis for axis in range(len(scope)) if axis not in inside]
            sliced = table.transpose([*outside, *inside])
            if outside:
                sliced = sliced[tuple(codes[:, scope[axis]] for axis in outside)]
            else:
                sliced = sliced[None]
            sliced = sliced.transpose([0, *(1 + np.argsort(own))])
            shape = [sliced.shape[0]] + [self._sizes[k] if k in own else 1 for k in range(width)]
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
        found = np.zeros((n, width), dtype=np.int64)
        every = np.arange(n)
        for k, joined in zip(reversed(self._order), reversed(kept), strict=True):
            index = [every if joined.shape[0] > 1 else np.zeros(n, dtype=np.int64)]
            index += [
                found[:, j] if joined.shape[1 + j] > 1 and j != k else np.zeros(n, dtype=np.int64) for j in range(width)
            ]
            index = [part[:, None] for part in index]
            index[1 + k] = np.arange(joined.shape[1 + k])[None, :] if joined.shape[1 + k] > 1 else index[1 + k]
            logits = joined[tuple(index)]
            weights = np.exp(logits - np.maximum(logits.max(axis=1, keepdims=True), -1e300)).cumsum(axis=1)
            found[:, k] = (rng.random((n, 1)) * weights[:, -1:] >= weights).sum(axis=1)
        return np.minimum(found, np.array(self._sizes) - 1)

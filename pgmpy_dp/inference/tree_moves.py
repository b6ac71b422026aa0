"""From what variables look like given one part of a clique to what they look like given another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from pgmpy_dp.inference.junction_tree import JunctionTree

Axes = tuple[int, ...]


class Homes:
    """Where in a junction tree its variables are, and what is below what.

    Attributes
    ----------
    home : ndarray of int, shape (n_variables,)
        The clique nearest to the root that has each variable.
    first : ndarray of int, shape (n_cliques,)
        The smallest number in the subtree of each clique, which has all numbers from it to the clique's own.
    children : list of list of int
        Of each clique, ascending.
    has : ndarray of bool, shape (n_cliques, n_variables)
    """

    def __init__(self, tree: JunctionTree) -> None:
        count, n = len(tree.cliques), len(tree.cardinalities)
        self._parents = tree.parents
        self.home = np.zeros(n, dtype=np.int64)
        self.first = np.arange(count)
        self.children: list[list[int]] = [[] for _ in range(count)]
        self.has = np.zeros((count, n), dtype=bool)
        for k, (clique, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
            self.home[list(clique[: tree.n_residual[k]])] = k
            self.has[k, list(clique)] = True
            if parent >= 0:
                self.children[parent].append(k)
                self.first[parent] = min(self.first[parent], self.first[k])

    def child(self, k: int, below: np.ndarray) -> np.ndarray:
        """The children of a clique in whose subtrees some cliques below it are."""
        children = np.array(self.children[k], dtype=np.int64)
        return children[np.searchsorted(children, below)]

    def above(self, k: int) -> list[int]:
        """A clique and those above it, up to the root."""
        found = [k]
        while self._parents[found[-1]] >= 0:
            found.append(self._parents[found[-1]])
        return found


class Moves:
    """From P(x_v | x_A) to P(x_v | x_B), A and B being parts of one clique whose belief is known."""

    def __init__(self, belief: np.ndarray, axes: Axes, sizes: Sequence[int]) -> None:
        self._belief, self._axes, self._sizes = belief, axes, sizes
        self._made: dict[tuple[Axes, Axes], np.ndarray] = {}
        self._known: dict[Axes, np.ndarray] = {}

    def prepare(self, parts: Iterable[Iterable[int]]) -> None:
        """Sums of the belief that are about to be needed; tables on the way are shared."""
        self._known |= table_sums(self._belief, self._axes, {self._part(part) for part in parts})

    def marginal(self, part: Iterable[int]) -> np.ndarray:
        """P(x_part), axes in the order of the clique."""
        axes = self._part(part)
        if axes not in self._known:
            self._known |= table_sums(self._belief, self._axes, {axes})
        return self._known[axes]

    def _part(self, part: Iterable[int]) -> Axes:
        inside = frozenset(part)
        return tuple(a for a in self._axes if a in inside)

    def _cells(self, axes: Iterable[int]) -> int:
        return math.prod(self._sizes[i] for i in axes)

    def _joint(self, first: Axes, second: Axes) -> np.ndarray:
        """P(x_first | x_second) of two disjoint or overlapping parts, as an array (both, only first, only second)."""
        if (first, second) not in self._made:
            both = tuple(a for a in self._axes if a in first and a in second)
            left = tuple(a for a in self._axes if a in first and a not in second)
            right = tuple(a for a in self._axes if a in second and a not in first)
            kept = self._part((*first, *second))
            table = self.marginal(kept).transpose([kept.index(a) for a in (*both, *left, *right)])
            table = table.reshape(self._cells(both), self._cells(left), self._cells(right))
            weight = table.sum(axis=1, keepdims=True)
            self._made[first, second] = np.divide(table, weight, out=np.zeros_like(table), where=weight > 0)
        return self._made[first, second]

    def move(self, rows: np.ndarray, source: Axes, target: Axes) -> np.ndarray:
        """Rows P(x_v | x_source), of shape (n, cells), to rows P(x_v | x_target)."""
        if source == target:
            return rows
        table = self._joint(source, target)
        both = [a for a in source if a in target]
        left = [a for a in source if a not in target]
        right = [a for a in target if a not in source]
        n = len(rows)
        wide = rows.reshape(n, *(self._sizes[a] for a in source))
        wide = wide.transpose([1 + source.index(a) for a in both] + [0] + [1 + source.index(a) for a in left])
        moved = np.matmul(wide.reshape(len(table), n, -1), table)  # (both, n, only target)
        moved = moved.reshape(*(self._sizes[a] for a in both), n, *(self._sizes[a] for a in right))
        order = [*both, None, *right]
        moved = moved.transpose([order.index(None), *(order.index(a) for a in target)])
        return moved.reshape(n, -1)

    def of_own(self, source: Axes, target: Axes) -> np.ndarray:
        """P(x_source | x_target) of variables of the clique, a row for each of their joint states."""
        return self.move(np.eye(self._cells(source)), source, target)


def equal_rows(rows: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Equal rows, of shape (n, m), with their places, in ascending order."""
    if len(rows) == 0:
        return []
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]))
    parts = np.split(order, starts[1:])
    return [(tuple(ordered[start].tolist()), part) for start, part in zip(starts, parts, strict=True)]


def table_sums(table: np.ndarray, axes: Axes, wanted: set[Axes]) -> dict[Axes, np.ndarray]:
    """Sums of a table over all but the wanted axes, each set in the order of `axes`; tables on the way are shared."""
    made: dict[Axes, np.ndarray] = {}

    def descend(here: np.ndarray, own: Axes, targets: list[frozenset[int]]) -> None:
        while targets:
            unneeded = [a for a in own if not any(a in target for target in targets)]
            if unneeded:
                here = here.sum(axis=tuple(own.index(a) for a in unneeded))
                own = tuple(a for a in own if a not in unneeded)
            if any(len(target) == len(own) for target in targets):
                made[own] = here
                targets = [target for target in targets if len(target) < len(own)]
            if targets:  # without the axis that most of them lack, then those that have it
                axis = max(own, key=lambda a: sum(a not in target for target in targets))
                position, without = own.index(axis), [target for target in targets if axis not in target]
                descend(here.sum(axis=position), own[:position] + own[position + 1 :], without)
                targets = [target for target in targets if axis in target]

    descend(table, axes, [frozenset(scope) for scope in wanted])
    return made

"""What narrow separators cut a junction tree into, for `pgmpy_dp.inference.scope_marginals`."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pgmpy_dp.inference.junction_tree import JunctionTree
from pgmpy_dp.inference.tree_moves import Axes, Homes, equal_rows

_CELLS = 1 << 26
"""Numbers in the conditional matrices of all wide separators (512 MiB) above which only those of a set are made."""

_NARROW = 64
"""Cells of the widest narrow separators; fewer where matrices of all variables would be too large."""

_DENSE = 1 << 24
"""The same, above which that is tried first."""


class Regions:
    """What narrow separators cut a junction tree into: regions, each known by its top clique.

    Attributes
    ----------
    is_wide : list of bool
        Whether the separator above each clique is inside a region: wide, or with little beyond it.
    top : ndarray of int, shape (n_cliques,)
    tops : list of int
        Children before parents.
    members, children, own, around : dict
        For each region its cliques, the regions below it, the variables that are at home in it, and the narrow
        separators around it.
    wide_cells : dict
        Cells of the wide separators of each region.
    numbers : float
        In the matrices of each region's own variables for these.
    too_large : bool
        Whether these and those of the states of what is around each region are above `_CELLS`.
    dense : bool
        Whether nothing else is tried first.
    starts : ndarray of int, shape (n_variables,)
        First row of each variable in a matrix of all, in the order of their homes.
    rows : dict
        First and last row of what is at home in a region or below it.
    """

    def __init__(self, tree: JunctionTree, homes: Homes) -> None:
        home, first = homes.home, homes.first
        count = len(tree.cliques)
        separators = [tree.separator(k) for k in range(count)]
        cells = {axes: tree.n_cells(axes) for axes in separators}
        self.n_rows = sum(tree.cardinalities)
        limit = _NARROW
        while limit > 1 and 4 * self.n_rows * sum(size for size in cells.values() if size <= limit) > _CELLS:
            limit //= 2
        # The states of a separator stand for the variables beyond it, which has to be worth while on both sides.
        at_home = np.bincount(home, np.asarray(tree.cardinalities), count)
        before = np.concatenate([[0], np.cumsum(at_home)])
        under = [before[k + 1] - before[first[k]] for k in range(count)]
        self.is_wide = [
            cells[axes] > limit or 2 * cells[axes] > min(below, self.n_rows - below)
            for axes, below in zip(separators, under, strict=True)
        ]
        self.is_wide[-1] = False  # above the root is nothing
        self.top = np.arange(count)
        self.members: dict[int, list[int]] = defaultdict(list)
        self.children: dict[int, list[int]] = defaultdict(list)
        for k in reversed(range(count)):
            if self.is_wide[k]:
                self.top[k] = self.top[tree.parents[k]]
            elif tree.parents[k] >= 0:
                self.children[int(self.top[tree.parents[k]])].append(k)
        for k in range(count):
            self.members[int(self.top[k])].append(k)
        self.tops = sorted(self.members)
        self.around = {t: {separators[t], *(separators[child] for child in self.children[t])} for t in self.tops}
        self.wide_cells = {
            t: sum(cells[axes] for axes in {separators[k] for k in self.members[t] if k != t}) for t in self.tops
        }
        self.numbers = sum(at_home[self.members[t]].sum() * self.wide_cells[t] for t in self.tops)
        beside = {t: sum(cells[axes] for axes in self.around[t]) for t in self.tops}
        self.too_large = self.numbers + sum(beside[t] * self.wide_cells[t] for t in self.tops) > _CELLS
        self.dense = not self.too_large and self.numbers <= _DENSE
        order = np.argsort(home, kind="stable")
        self.own: dict[int, list[int]] = defaultdict(list)
        for i in order.tolist():
            self.own[int(self.top[home[i]])].append(i)
        ends = np.concatenate([[0], np.cumsum(np.asarray(tree.cardinalities, dtype=np.int64)[order])])
        self.starts = np.empty(len(home), dtype=np.int64)
        self.starts[order] = ends[:-1]
        ordered = home[order]
        self.rows = {
            t: (int(ends[np.searchsorted(ordered, first[t])]), int(ends[np.searchsorted(ordered, t, side="right")]))
            for t in self.tops
        }
        self._first, self._home, self._separators = first, home, separators

    def apart(self, homes: np.ndarray, meeting: np.ndarray, column: int) -> np.ndarray:
        """For each pair the top of the region of one variable, where the other is not under it; else -1."""
        own = self.top[homes[:, column]]
        return np.where(own != self.top[meeting[homes[:, 0], homes[:, 1]]], own, -1)

    def gates(self, region: int, variables: np.ndarray) -> list[tuple[Axes, np.ndarray]]:
        """Variables of other regions, by the separator around this one through which they come."""
        home = self._home[variables]
        under = (home >= self._first[region]) & (home <= region)
        found: dict[Axes, list[np.ndarray]] = defaultdict(list)
        found[self._separators[region]].append(np.flatnonzero(~under))
        children = np.sort(np.array(self.children[region], dtype=np.int64))  # their subtrees are intervals
        places = np.flatnonzero(under)
        for (child,), own in equal_rows(np.searchsorted(children, home[places])[:, None]):
            found[self._separators[int(children[child])]].append(places[own])
        return [(axes, np.concatenate(parts)) for axes, parts in found.items()]


class RegionRows:
    """Which row of a region's conditional matrices is about what.

    Attributes
    ----------
    region : int
    members : list of int
        Cliques of the region, children before parents.
    sources : dict of int to list of Axes
        What has rows, by clique: variables at home in it, the separator above the region at its top, and narrow
        separators below it.
    around : dict of int to set of Axes
        The narrow separators below each clique.
    starts, sizes : dict of Axes to int
        First row and number of rows of each source.
    low, high : dict of int to int
        First row, and the one after the last, of what is below each clique's separator.
    n_rows : int
    """

    def __init__(self, tree: JunctionTree, homes: Homes, regions: Regions, region: int, variables: np.ndarray) -> None:
        self.region, self.members = region, regions.members[region]
        self._children, self._wide = homes.children, regions.is_wide
        self.sources: dict[int, list[Axes]] = {k: [] for k in self.members}
        for i in variables.tolist():
            self.sources[int(homes.home[i])].append((i,))
        self.sources[region].append(tree.separator(region))
        seen = {tree.separator(region), *((i,) for i in variables.tolist())}
        self.around: dict[int, set[Axes]] = {k: set() for k in self.members}
        for child in regions.children[region]:
            axes, k = tree.separator(child), tree.parents[child]
            self.around[k].add(axes)
            if axes not in seen:
                seen.add(axes)
                self.sources[k].append(axes)
        self.starts: dict[Axes, int] = {}
        self.low: dict[int, int] = {}
        self.high: dict[int, int] = {}
        self.n_rows = 0
        for k in self.members:
            self.low[k] = min([self.n_rows, *(self.low[child] for child in self.children(k, empty=True))])
            for axes in self.sources[k]:
                self.starts[axes] = self.n_rows
                self.n_rows += tree.n_cells(axes)
            self.high[k] = self.n_rows
        self.sizes = {axes: tree.n_cells(axes) for axes in self.starts}

    def children(self, k: int, empty: bool = False) -> list[int]:
        """Of a clique in the same region, with rows below them or, where `empty`, without."""
        inside = (child for child in self._children[k] if self._wide[child])
        return [child for child in inside if empty or self.high[child] > self.low[child]]


class Inside:
    """Conditional matrices of one region: where the rows of each source begin, and a matrix for each separator."""

    def __init__(self, starts: dict[Axes, int], tables: dict[Axes, np.ndarray], sizes: dict[Axes, int]) -> None:
        self.starts, self.tables, self.sizes = starts, tables, sizes

    def rows(self, source: Axes, target: Axes) -> np.ndarray:
        """Of the states of a variable, or of a narrow separator."""
        start = self.starts[source]
        return self.tables[target][start : start + self.sizes[source]]


class Given:
    """P(x_v | x_S) of any variables, for narrow separators and those of one region."""

    def __init__(
        self, regions: Regions, narrow: dict[Axes, np.ndarray], inside: Inside | None, region: int = -1
    ) -> None:
        self._regions, self._narrow, self._inside, self._region = regions, narrow, inside, region

    def rows(self, variables: np.ndarray, separator: Axes, states: int) -> np.ndarray:
        """Of variables with so many states, shape (variables, states, cells)."""
        step = np.arange(states)
        if separator in self._narrow:
            return self._narrow[separator][self._regions.starts[variables][:, None] + step]
        assert self._inside is not None
        table = self._inside.tables[separator]
        found = np.empty((len(variables), states, table.shape[1]))
        own = np.array([(i,) in self._inside.starts for i in variables.tolist()], dtype=bool)
        starts = np.array([self._inside.starts[i,] for i in variables[own].tolist()], dtype=np.int64)
        found[own] = table[starts[:, None] + step]
        others = np.flatnonzero(~own)
        for gate, places in self._regions.gates(self._region, variables[others]):
            if len(places):
                there = self.rows(variables[others[places]], gate, states)
                found[others[places]] = there @ self._inside.rows(gate, separator)
        return found

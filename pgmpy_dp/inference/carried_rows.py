"""Marginals of sets of which one clique holds all variables but one: that one is carried there along the tree.

A wide junction tree has no narrow places from which all variables could be seen at once. But few sets of variables are
asked for across its wide separators, where a table would make a clique too large. So P(x_v | x_S) is computed for those
variables and separators alone that lie between a set's variable v and the clique that holds the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pgmpy_dp.inference.junction_tree import JunctionTree
from pgmpy_dp.inference.tree_moves import Homes, Moves, equal_rows

_NUMBERS = 1 << 25
"""In the conditional matrices that are held at once (256 MiB); variables come in parts where it takes more."""


class CarriedRows:
    """What is asked about one variable in each of many sets, and the rest of each set in a clique.

    A way into a clique is the number of a clique: its own, with the number of cliques added, for the way from above
    through its separator, or that of a child, for the way from below.

    Parameters
    ----------
    tree : JunctionTree
    beliefs : sequence of ndarray
        Of each clique, axes as the tree has them.
    homes : Homes
        Of `tree`.
    """

    def __init__(self, tree: JunctionTree, beliefs: Sequence[np.ndarray], homes: Homes) -> None:
        self._tree, self._beliefs = tree, beliefs
        self._sizes = np.asarray(tree.cardinalities, dtype=np.int64)
        count, n = len(tree.cliques), len(self._sizes)
        self._home, self._first, self._children, self._has = homes.home, homes.first, homes.children, homes.has
        separators = [tree.separator(k) for k in range(count)]
        self._through = separators + separators
        self._cells = np.array([tree.n_cells(axes) for axes in self._through], dtype=np.int64)
        self._ways = np.empty((count, n), dtype=np.int32)  # from each variable into each clique; -1 where it is in it
        # At or above a clique the first one with a variable, or -1.
        self._nearest = np.empty((count, n), dtype=np.int32)
        for k, clique in enumerate(tree.cliques):
            self._ways[k] = count + k
            for child in self._children[k]:
                self._ways[k, (self._home >= self._first[child]) & (self._home <= child)] = child
            self._ways[k, list(clique)] = -1
        for k in reversed(range(count)):
            parent = tree.parents[k]
            self._nearest[k] = self._nearest[parent] if parent >= 0 else -1
            self._nearest[k, list(tree.cliques[k])] = k

    def answer(self, scopes: np.ndarray, places: np.ndarray, stack: np.ndarray) -> np.ndarray:
        """Fill in the tables of those of some sets that are answered so, and return the places of the others.

        Others are sets of which no clique holds all variables but one, and those whose carried variable alone would
        take more than is held at once.

        Parameters
        ----------
        scopes : ndarray of int, shape (n, order)
            Sets of variables of the same numbers of states.
        places : ndarray of int
            Which of them are asked for: none that lies in one clique.
        stack : ndarray of shape (n, states...)
        """
        column, target = self._carried(scopes[places])
        left = places[column < 0]
        known = column >= 0
        places, column, target = places[known], column[known], target[known]
        carried = scopes[places, column]
        needs = self._needs(carried, target)
        numbers = self._sizes * (self._cells @ needs)
        fits = numbers[carried] <= _NUMBERS
        left = np.concatenate([left, places[~fits]])
        places, column, target, carried = places[fits], column[fits], target[fits], carried[fits]
        for part in self._parts(np.where(numbers <= _NUMBERS, numbers, 0)):
            some = np.flatnonzero(part[carried])
            if len(some):
                self._at_cliques(scopes, places[some], column[some], target[some], needs & part, stack)
        return left

    def _carried(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each set the column of a variable, -1 if there is none, and the nearest clique that has all others."""
        column, target = np.full(len(asked), -1), np.zeros(len(asked), dtype=np.int64)
        for own in range(asked.shape[1]):
            rest = np.delete(asked, own, axis=1)
            top, start = self._home[rest].min(axis=1), self._home[asked[:, own]]
            inside = self._has[top[:, None], rest].all(axis=1)
            under = (start >= self._first[top]) & (start < top)
            near = np.where(under, self._nearest[start[:, None], rest].max(axis=1), top)
            # Of two the one whose home is lower: what is above need not come down to all that is below.
            better = inside & ((column < 0) | (start < self._home[np.take_along_axis(asked, column[:, None], 1)[:, 0]]))
            column[better], target[better] = own, near[better]
        return column, target

    def _needs(self, carried: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Which variables come through which separator, in which direction: shape (2 n_cliques, n_variables)."""
        count, parents = len(self._tree.cliques), self._tree.parents
        needs = np.zeros((2 * count, len(self._sizes)), dtype=bool)
        needs[self._ways[target, carried], carried] = True

        def pull(way: int, clique: int) -> None:
            variables = np.flatnonzero(needs[way])
            before = self._ways[clique, variables]
            needs[before[before >= 0], variables[before >= 0]] = True

        for k in range(count):  # from above: what a parent needs from its own parent, and from other children
            if parents[k] >= 0:
                pull(count + k, parents[k])
        for k in reversed(range(count)):
            pull(k, k)
        return needs

    def _parts(self, numbers: np.ndarray) -> Iterator[np.ndarray]:
        """Variables whose numbers are held at once, neighbours in the tree together."""
        order = np.argsort(self._home, kind="stable")
        ends = np.cumsum(numbers[order])
        which = (ends - 1) // _NUMBERS
        for _, own in equal_rows(which[:, None]):
            part = np.zeros(len(self._sizes), dtype=bool)
            part[order[own]] = True
            yield part

    def _at_cliques(
        self,
        scopes: np.ndarray,
        places: np.ndarray,
        column: np.ndarray,
        target: np.ndarray,
        needs: np.ndarray,
        stack: np.ndarray,
    ) -> None:
        """All sets whose carried variables are among those that have needs."""
        count = len(self._tree.cliques)
        carried = scopes[places, column]
        way = self._ways[target, carried]
        asked: dict[int, list[_Asked]] = defaultdict(list)
        for own in range(scopes.shape[1]):
            these = np.flatnonzero(column == own)
            rest = np.delete(scopes[places[these]], own, axis=1)
            for (k, through, *others), some in equal_rows(np.column_stack([target[these], way[these], rest])):
                sets = these[some]
                asked[k].append(_Asked(through, own, tuple(others), carried[sets], places[sets]))
        rows = _Rows(self._sizes)
        for k in range(count):
            if needs[k].any() or any(needs[child].any() for child in self._children[k]):
                moves = self._moves(k)
                self._answer(moves, k, [one for one in asked[k] if one.through < count], rows, stack)
                self._send(moves, k, k, needs, rows)
        for k in reversed(range(count)):
            down = [child for child in self._children[k] if needs[count + child].any()]
            if down or needs[count + k].any():
                moves = self._moves(k)
                self._answer(moves, k, [one for one in asked[k] if one.through >= count], rows, stack)
                for child in down:
                    self._send(moves, k, count + child, needs, rows)
                rows.forget([count + k, *self._children[k]])

    def _moves(self, k: int) -> Moves:
        return Moves(self._beliefs[k], self._tree.cliques[k], self._tree.cardinalities)

    def _send(self, moves: Moves, k: int, way: int, needs: np.ndarray, rows: _Rows) -> None:
        """What leaves clique k through a separator, of all that came into it and of its own."""
        variables = np.flatnonzero(needs[way])
        if len(variables) == 0:
            return
        axes, table = self._through[way], rows.new(way, variables, int(self._cells[way]))
        before = self._ways[k, variables]
        for (source,), own in equal_rows(before[:, None]):
            some = variables[own]
            if source >= 0:
                table[rows.at(way, some)] = moves.move(rows.of(source, some), self._through[source], axes)
                continue
            for i in some.tolist():
                table[rows.at(way, np.array([i]))] = moves.of_own((i,), axes)

    def _answer(self, moves: Moves, k: int, asked: list[_Asked], rows: _Rows, stack: np.ndarray) -> None:
        """Sets whose carried variable has come into clique k."""
        moves.prepare([*((*self._through[one.through], *one.rest) for one in asked), *(one.rest for one in asked)])
        for one in asked:
            axes = tuple(a for a in self._tree.cliques[k] if a in one.rest)
            moved = moves.move(rows.of(one.through, one.carried), self._through[one.through], axes)
            weight = moves.marginal(axes)
            states = int(self._sizes[one.carried[0]])
            table = moved.reshape(len(one.carried), states, *weight.shape) * weight
            table = table.transpose(0, 1, *(2 + axes.index(i) for i in one.rest))
            stack[one.places] = np.moveaxis(table, 1, 1 + one.own)


class _Asked(NamedTuple):
    """Sets with a variable that is carried to a clique, which has all the others."""

    through: int  # by which way it comes
    own: int  # its place in a set
    rest: tuple[int, ...]  # the others
    carried: np.ndarray  # it, in each set
    places: np.ndarray  # where the tables of the sets go


class _Rows:
    """P(x_v | x_S) of some variables for each way, a row for each state, variables in ascending order."""

    def __init__(self, sizes: np.ndarray) -> None:
        self._sizes = sizes
        self._tables: dict[int, np.ndarray] = {}
        self._variables: dict[int, np.ndarray] = {}
        self._starts: dict[int, np.ndarray] = {}

    def new(self, way: int, variables: np.ndarray, cells: int) -> np.ndarray:
        ends = np.cumsum(self._sizes[variables])
        self._variables[way], self._starts[way] = variables, ends - self._sizes[variables]
        self._tables[way] = np.empty((int(ends[-1]), cells))
        return self._tables[way]

    def at(self, way: int, variables: np.ndarray) -> np.ndarray:
        """Which rows are those of some variables, in their order."""
        starts = self._starts[way][np.searchsorted(self._variables[way], variables)]
        sizes = self._sizes[variables]
        ends = np.cumsum(sizes)
        return np.repeat(starts - (ends - sizes), sizes) + np.arange(int(ends[-1]))

    def of(self, way: int, variables: np.ndarray) -> np.ndarray:
        return self._tables[way][self.at(way, variables)]

    def forget(self, ways: Sequence[int]) -> None:
        for way in ways:
            self._tables.pop(way, None)

"""A junction tree that grows with its model, and the sizes that it would have with each of thousands of further tables.

To give a model a table of some variables is to bring them together in one clique. One way is always open: choose a
clique, and add each of the variables to all cliques on its way there. What that makes of the largest clique on the way
follows from one matrix, the largest clique between each variable and each clique, so it is known for all candidates at
once, and no tree is built to find out. Where the result is too large, the cliques on the way can be triangulated anew:
a small problem of its own. A tree from scratch may be smaller still: one is made each time that the model has grown.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import BagTree, Homes, JunctionTree, build_junction_tree, median, rooted

_Stamp = tuple[frozenset[int], tuple[int, ...], frozenset[frozenset[int]]]  # a clique, its edges, cliques beside it

_TRIES = 64
"""Triangulations per question: what they could decide beyond that counts as too large for now."""


class GrowingTree:
    """A junction tree of a model, to which tables are added, within a limit for cliques.

    Parameters
    ----------
    cliques : Cliques
        The model at first.
    max_cells : float
        Cells that no clique should have more of. Where the model at first has, they stay.

    Attributes
    ----------
    tree : JunctionTree
    n_built : int
        Junction trees of the whole model made from scratch so far.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> growing = GrowingTree(chain, max_cells=4)
    >>> growing.admissible(np.array([[0, 1], [0, 2]])).tolist()
    [True, False]
    >>> growing.join((0, 2))
    >>> growing.tree.cliques
    ((0, 1, 2),)
    """

    def __init__(self, cliques: Cliques, max_cells: float = np.inf) -> None:
        self.max_cells = max_cells
        self.n_built = 1
        self._changed = False
        self._adjacent: dict[int, int] = dict.fromkeys(range(len(cliques.variables)), 0)
        self._too_large: set[tuple[int, ...]] = set()
        self._fitting: dict[tuple[int, ...], frozenset[_Stamp]] = {}
        self._next_try = 0
        self._connect(cliques.indices)
        self._set(build_junction_tree(cliques))

    def _set(self, tree: JunctionTree) -> None:
        self.tree = tree
        self._bags = [frozenset(clique) for clique in tree.cliques]
        self._known_ways: _Ways | None = None
        self._known_stamps: dict[_Stamp, int] | None = None

    @property
    def _ways(self) -> _Ways:
        if self._known_ways is None:
            self._known_ways = _Ways(self.tree)
        return self._known_ways

    @property
    def _stamps(self) -> dict[_Stamp, int]:
        """The clique's number by all that triangulating it anew depends on.

        Neighbouring cliques themselves count, not only the variables that they share: a new clique between two others
        on a way, or beside one of them, may share the same variables, which from then on have to stay together.
        """
        if self._known_stamps is None:
            self._known_stamps = {}
            for k, bag in enumerate(self._bags):
                mask = sum(1 << i for i in bag)
                edges = tuple(self._adjacent[i] & mask for i in sorted(bag))
                beside = frozenset(self._bags[other] for other in self._ways.beside[k])
                self._known_stamps[bag, edges, beside] = k
        return self._known_stamps

    def _connect(self, scopes: Iterable[Sequence[int]]) -> None:
        for scope in scopes:
            mask = sum(1 << i for i in scope)
            for i in scope:
                self._adjacent[i] |= mask & ~(1 << i)
        self._known_stamps = None

    def has(self, scope: Iterable[int]) -> bool:
        """Whether some clique has all of these variables."""
        wanted = frozenset(scope)
        return any(wanted <= bag for bag in self._bags)

    def costs(self, scopes: np.ndarray) -> np.ndarray:
        """Cells of the largest clique that changes if a table of these variables is added; 0 if none changes.

        Parameters
        ----------
        scopes : ndarray of int, shape (n, order)
            Different variables.

        Returns
        -------
        ndarray of float, shape (n,)
            An upper bound: variables are added along the tree, which is not triangulated anew.
        """
        return self._ways.best(np.asarray(scopes))[0]

    def admits(self, scopes: Sequence[Sequence[int]], most_tries: int = _TRIES) -> np.ndarray:
        """Decide as :meth:`admissible` does, for sets of different orders."""
        admitted = np.zeros(len(scopes), dtype=bool)
        for places, some in by_order(scopes):
            admitted[places] = self.admissible(some, most_tries)
        return admitted

    def admissible(self, scopes: np.ndarray, most_tries: int = _TRIES) -> np.ndarray:
        """Decide which tables can be added to the model while no clique that changes exceeds the limit.

        Parameters
        ----------
        scopes : ndarray of int, shape (n, order)
        most_tries : int
            How many are decided by triangulating, at most.

        Returns
        -------
        ndarray of bool, shape (n,)
            True is certain: :meth:`join` keeps to it. What adding variables along the tree cannot decide is decided by
            triangulating the cliques on the way anew, some at a time, in turn; a verdict is kept while these cliques
            stay as they are, and what was too large stays so, as models only grow. All else is False for now.
        """
        scopes = np.asarray(scopes)
        admitted = self.costs(scopes) <= self.max_cells
        unsure = np.flatnonzero(~admitted)
        names = [tuple(scope) for scope in np.sort(scopes[unsure], axis=1).tolist()]
        pending, stamps = [], self._stamps.keys()
        for place, scope in zip(unsure.tolist(), names, strict=True):
            if scope in self._too_large:
                continue
            if scope in self._fitting and self._fitting[scope] <= stamps:
                admitted[place] = True
            else:
                pending.append((place, scope))
        begin = self._next_try % max(len(pending), 1)
        turn = (pending[begin:] + pending[:begin])[:most_tries]
        self._next_try = begin + len(turn)
        for place, scope in turn:
            on_way = set(self._on_way(scope))
            if self._triangulated(scope, on_way) is None:
                self._too_large.add(scope)
            else:
                stamp_of = {k: stamp for stamp, k in self._stamps.items()}
                self._fitting[scope] = frozenset(stamp_of[k] for k in on_way)
                admitted[place] = True
        return admitted

    def join(self, scope: Sequence[int]) -> None:
        """Bring variables together in one clique: along the tree, or by triangulating it anew where that is smaller."""
        if self.has(scope):
            self._connect([scope])
            return
        along = self._on_way(scope)
        on_way = set(along)
        fitting = self._fitting.get(tuple(sorted(scope)), None)
        fits = max(map(self.tree.n_cells, along.values())) <= self.max_cells
        if not fits and fitting is not None and fitting <= self._stamps.keys():
            on_way = {self._stamps[stamp] for stamp in fitting}
        fresh = self._triangulated(scope, on_way)
        self._connect([scope])
        size = self.tree.n_cells
        if fresh is not None and fits:
            before, after = _maximal(along.values()), _maximal(bag for bag, _ in fresh)
            if sum(map(size, before)) <= sum(map(size, after)):
                fresh = None
        parents = self.tree.parents
        edges = [(k, parent) for k, parent in enumerate(parents) if parent >= 0]
        tree = BagTree()
        if fresh is None:
            for k, bag in enumerate(self._bags):
                tree.add(k, along.get(k, bag))
            for child, parent in edges:
                tree.join(child, parent)
        else:
            count = len(self._bags)
            for k, bag in enumerate(self._bags):
                if k not in on_way:
                    tree.add(k, bag)
            for number, (bag, _) in enumerate(fresh):
                tree.add(count + number, bag)
            last = len(fresh) - 1  # parts that share nothing hang on the last clique
            for number, (_, parent) in enumerate(fresh[:-1]):
                tree.join(count + number, count + (parent if parent >= 0 else last))
            for child, parent in edges:
                if (child in on_way) == (parent in on_way):
                    if child not in on_way:
                        tree.join(child, parent)
                    continue
                outer = parent if child in on_way else child
                shared = self._bags[child] & self._bags[parent]
                inner = next(number for number, (bag, _) in enumerate(fresh) if shared <= bag)
                tree.join(outer, count + inner)
        self._set(rooted(tree, self.tree.cardinalities))
        self._changed = True

    def grow(self, cliques: Cliques) -> JunctionTree:
        """Take in all tables of a model, and return the tree.

        Tables that lie in no clique are joined. Where the tree has changed since the last call, one is made from
        scratch, which is taken if it has fewer cells and keeps to the limit.
        """
        new = [scope for scope in dict.fromkeys(cliques.indices) if not self.has(scope)]
        for scope in sorted(new, key=len, reverse=True):
            self.join(scope)
        self._connect(cliques.indices)
        if not self._changed:
            return self.tree
        # Of all that it ever took in, rules about what is impossible among it.
        edges = [(i, j) for i, mask in self._adjacent.items() for j in range(i) if mask >> j & 1]
        names = cliques.variables
        fresh = build_junction_tree(replace(cliques, scopes=tuple((names[i], names[j]) for i, j in edges)))
        self.n_built += 1
        largest, current = (max(map(tree.n_cells, tree.cliques)) for tree in (fresh, self.tree))
        if fresh.cells < self.tree.cells and largest <= max(self.max_cells, current):
            self._set(fresh)
        self._changed = False
        return self.tree

    def _on_way(self, scope: Sequence[int]) -> dict[int, frozenset[int]]:
        """Connected cliques that change when the variables come together, and what they become along the tree."""
        _, targets = self._ways.best(np.array([scope]))
        target = int(targets[0])
        along: dict[int, set[int]] = {target: set(self._bags[target])}
        for i in scope:
            for k in self._ways.way(int(i), target):
                along.setdefault(k, set(self._bags[k])).add(int(i))
        return {k: frozenset(bag) for k, bag in along.items()}

    def _triangulated(self, scope: Sequence[int], on_way: set[int]) -> list[tuple[frozenset[int], int]] | None:
        """New cliques in place of those on the way, each with its parent's number; None where one is too large."""
        variables = sorted(frozenset().union(*(self._bags[k] for k in on_way)))
        mask = sum(1 << i for i in variables)
        # In one order, in which equal choices are made: a verdict has to be the same when the table is added.
        adjacent = {i: self._adjacent[i] & mask for i in variables}
        # What other cliques share with these has to stay together.
        beside = ((k, other) for k in on_way for other in self._ways.beside[k] if other not in on_way)
        shared = {self._bags[k] & self._bags[other] for k, other in beside}
        for part in (frozenset(scope), *shared):
            part_mask = sum(1 << i for i in part)
            for i in part:
                adjacent[i] |= part_mask & ~(1 << i)
        made = min_fill_cliques(adjacent, self.tree.cardinalities, self.max_cells)
        if made is None:
            return None
        return [(frozenset(i for i in variables if clique >> i & 1), parent) for clique, parent in made]


def _maximal(bags: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """The bags that lie in no other one."""
    ordered = sorted(set(bags), key=len, reverse=True)
    return [bag for place, bag in enumerate(ordered) if not any(bag <= larger for larger in ordered[:place])]


class _Ways:
    """For each variable and clique, the largest clique on the way that does not have the variable."""

    def __init__(self, tree: JunctionTree) -> None:
        self._tree = tree
        count, n = len(tree.cliques), len(tree.cardinalities)
        self._sizes = np.array(tree.cardinalities, dtype=np.float64)
        self._cells = np.array([float(tree.n_cells(clique)) for clique in tree.cliques])
        self._all = float(self._sizes.prod())
        homes = Homes(tree)
        self._home, self._has, self._meeting = homes.home, homes.has, homes.meeting()
        self.beside = [list(children) for children in homes.children]
        for k, parent in enumerate(tree.parents[:-1]):
            self.beside[k].append(parent)
        # In the order of their homes, the variables at home below a clique are a range.
        order = np.argsort(homes.home, kind="stable")
        ordered = homes.home[order]
        self._column = np.empty(n, dtype=np.int64)
        self._column[order] = np.arange(n)
        begins = np.searchsorted(ordered, homes.first).tolist()
        ends = np.searchsorted(ordered, np.arange(count), side="right").tolist()
        columns = [self._column[list(clique)] for clique in tree.cliques]
        # Between the nearest of a variable's own cliques, which is left out, and this one, which counts.
        largest = np.zeros((count, n))
        nearest = np.zeros((count, n), dtype=np.int32)
        for k, parent in enumerate(tree.parents):  # variables that are at home below: upward
            nearest[k, columns[k]] = k
            largest[k, columns[k]] = 0.0
            if parent >= 0:
                rows = slice(begins[k], ends[k])
                np.maximum(largest[k, rows], self._cells[parent], out=largest[parent, rows])
                nearest[parent, rows] = nearest[k, rows]
        for k in reversed(range(count)):  # all others: downward
            parent = tree.parents[k]
            if parent >= 0:
                for rows in (slice(0, begins[k]), slice(ends[k], n)):
                    np.maximum(largest[parent, rows], self._cells[k], out=largest[k, rows])
                    nearest[k, rows] = nearest[parent, rows]
                shared = columns[k][tree.n_residual[k] :]
                nearest[k, shared] = k
                largest[k, shared] = 0.0
        self._largest, self._nearest = largest, nearest

    def way(self, i: int, target: int) -> list[int]:
        """The cliques from the nearest one with variable i to `target`, both included."""
        begin = int(self._nearest[target, self._column[i]])
        top, parents = int(self._meeting[begin, target]), self._tree.parents
        path = [top]
        for end in (begin, target):
            while end != top:
                path.append(end)
                end = parents[end]
        return path

    def best(self, scopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest clique after the cheapest of a few ways, and the clique in which that way ends."""
        n, order = scopes.shape
        sizes, homes, columns = self._sizes[scopes], self._home[scopes], self._column[scopes]
        lowest = homes.min(axis=1)
        inside = self._has[lowest[:, None], scopes].all(axis=1)
        centre = lowest
        if order == 3:
            centre = median(self._meeting, homes)
        # Ways may end at the centre, or at the nearest clique of one of the variables.
        ends = np.stack([centre, *(self._nearest[centre, columns[:, place]] for place in range(order))])
        costs = np.stack([self._at(columns, sizes, centre, end) for end in ends])
        choice, places = costs.argmin(axis=0), np.arange(n)
        cost = np.minimum(costs[choice, places], self._all)
        return np.where(inside, 0.0, cost), np.where(inside, lowest, ends[choice, places])

    def _at(self, columns: np.ndarray, sizes: np.ndarray, centre: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Bound on the cells of all cliques that change on the ways to `end`."""
        ways = self._largest[end[:, None], columns]
        if columns.shape[1] == 2:
            both = np.where(ways > 0, sizes, 1.0).prod(axis=1) * self._cells[end]
            return np.maximum((ways * sizes).max(axis=1), both)
        together = np.where(ways > 0, sizes, 1.0).prod(axis=1)
        # At the centre of three, ways only meet. Elsewhere they share cliques, on which all may come together.
        apart = np.maximum((ways * sizes).max(axis=1), self._cells[end] * together)
        shared = ways.max(axis=1) * together
        return np.where((end == centre) & (columns.shape[1] == 3), apart, shared)


def by_order(scopes: Sequence[Sequence[int]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Group sets by their numbers of variables: arrays of shape (n, order), with the sets' places.

    Examples
    --------
    >>> [(places.tolist(), some.tolist()) for places, some in by_order([(0, 1), (2, 3, 4), (5, 6)])]
    [([0, 2], [[0, 1], [5, 6]]), ([1], [[2, 3, 4]])]
    """
    orders = np.fromiter(map(len, scopes), dtype=np.int64, count=len(scopes))
    flat = np.fromiter(itertools.chain.from_iterable(scopes), dtype=np.int64, count=int(orders.sum()))
    starts = np.cumsum(orders) - orders
    for order in np.unique(orders).tolist():
        places = np.flatnonzero(orders == order)
        yield places, flat[starts[places][:, None] + np.arange(order)]


def min_fill_cliques(
    neighbours: Mapping[int, int], sizes: Sequence[int], max_cells: float = math.inf
) -> list[tuple[int, int]] | None:
    """Eliminate the variable that needs the fewest new edges, again and again: quick enough for hundreds of calls.

    Parameters
    ----------
    neighbours : mapping of int to int
        For each variable the bit mask of those that it has an edge to, all of them keys.
    sizes : sequence of int
        States of each variable.
    max_cells : float
        Give up once a clique has more cells.

    Returns
    -------
    list of (variables, parent), or None
        Bit mask of each clique and the number of the one that it hangs on (-1: none), which comes after it; cliques may
        lie within others. None where one is too large.

    Examples
    --------
    >>> square = {0: 0b1010, 1: 0b0101, 2: 0b1010, 3: 0b0101}
    >>> [bin(clique) for clique, _ in min_fill_cliques(square, [2] * 4)]
    ['0b1011', '0b1110', '0b1100', '0b1000']
    """
    adjacent = dict(neighbours)
    known: dict[int, tuple[int, int]] = {}  # new edges, of both directions, and cells
    changed: Iterable[int] = adjacent
    order: dict[int, int] = {}
    eliminated: list[tuple[int, int]] = []  # clique and its other variables
    while adjacent:
        for v in changed:
            near = adjacent[v]
            others = _bits(near)
            missing = sum([(near & ~adjacent[u]).bit_count() for u in others]) - len(others)  # none has itself
            known[v] = missing, sizes[v] * math.prod([sizes[u] for u in others])
        v = min(adjacent, key=known.__getitem__)
        near = adjacent.pop(v)
        missing, cells = known.pop(v)
        if cells > max_cells:
            return None
        order[v] = len(eliminated)
        eliminated.append((near | 1 << v, near))
        gone, touched = ~(1 << v), 0
        for u in _bits(near):
            old = adjacent[u]
            adjacent[u] = (old | near & ~(1 << u)) & gone
            touched |= adjacent[u]
            if not missing:  # no edge is made: each neighbour loses v, and the edges that it lacked to v
                fewer, cells = known[u]
                known[u] = fewer - 2 * (old & ~near & gone & ~(1 << u)).bit_count(), cells // sizes[v]
        # What a variable would need changes where edges among its neighbours are made: at distance two at most.
        changed = _bits(near | touched) if missing else ()
    return [(clique, min((order[u] for u in _bits(rest)), default=-1)) for clique, rest in eliminated]


@lru_cache(1 << 14)
def _bits(mask: int) -> tuple[int, ...]:
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return tuple(positions)

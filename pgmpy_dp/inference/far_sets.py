"""Marginals of sets of variables that lie far apart in a junction tree, exact, in memory that is bounded beforehand.

What a set's variables on one side of a separator S look like is a matrix P(x_K | x_S), a row for each joint state of
these variables K. It goes from clique to clique towards a *centre*, where those of all sides meet:

    P(x_K | x_S) = sum over the clique's other variables of  P(x_clique) / P(x_S) * product of the matrices that came in

Rows do not depend on one another. So where all of them at once would take too much memory, the states of some variables
come in ranges, one pass for each: no array has more than `FarSets.largest` numbers, unless a clique of the tree has
more. Time grows with the number of ranges.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pgmpy_dp.inference.junction_tree import Homes, JunctionTree

Axes = tuple[int, ...]

LARGEST = 1 << 22
"""Numbers in one array (32 MiB)."""

_KEPT = 1 << 25
"""Numbers in the matrices that are kept for further sets (256 MiB)."""

_ROUTES = 100
"""The number of sets whose way through the tree is kept, for the next request."""

Ranges = Mapping[int, tuple[int, int]]
"""The states of each variable that a pass is about: from the first number up to the second."""


class FarSets:
    """Probabilities of any sets of variables, one set at a time.

    Parameters
    ----------
    tree : JunctionTree
    beliefs : sequence of ndarray
        Of each clique, axes as the tree has them.
    homes : Homes, optional
        Of `tree`.
    largest : int, optional
        Numbers in one array at most, or in the belief of a clique.

    Examples
    --------
    >>> from pgmpy_dp.inference.belief_propagation import SumProduct
    >>> from pgmpy_dp.inference.cliques import Cliques
    >>> engine = SumProduct(Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c"))))
    >>> _ = engine.calibrate(np.log([0.9, 0.1, 0.1, 0.9] * 2))
    >>> FarSets(engine.plan.tree, engine.beliefs()).table((0, 2)).round(2)
    array([[0.41, 0.09],
           [0.09, 0.41]])
    """

    def __init__(
        self, tree: JunctionTree, beliefs: Sequence[np.ndarray], homes: Homes | None = None, largest: int = LARGEST
    ) -> None:
        self._tree, self._beliefs, self.largest = tree, beliefs, largest
        self._homes = Homes(tree) if homes is None else homes
        self._weights: dict[int, np.ndarray] = {}
        self._kept: OrderedDict[tuple, np.ndarray] = OrderedDict()
        self._n_kept = 0
        self._routes: dict[Axes, _Route] = {}

    def forget(self) -> None:
        """Drop what follows from the beliefs, which have changed in place. Routes follow from the tree."""
        self._weights.clear()
        self._kept.clear()
        self._n_kept = 0

    def table(self, scope: Sequence[int]) -> np.ndarray:
        """Probabilities of the states of some variables, axes in their order."""
        route = self._routes.get(tuple(scope)) or _Route(self._tree, self._homes, scope)
        if len(self._routes) < _ROUTES:
            self._routes[route.scope] = route
        probabilities = np.empty([self._tree.cardinalities[i] for i in scope])
        for ranges in self._ranges(route):
            probabilities[tuple(slice(*ranges[i]) for i in scope)] = self._pass(route, ranges)
        return probabilities

    def planned(self, scope: Sequence[int]) -> tuple[int, int]:
        """The size of the largest array that `table` makes beside its result, and the number of its passes."""
        route = _Route(self._tree, self._homes, scope)
        lengths = self._lengths(route)
        states = [self._tree.cardinalities[i] for i in route.scope]
        passes = math.prod(-(-many // length) for many, length in zip(states, lengths.tolist(), strict=True))
        return int(route.numbers(lengths).max()), passes

    def _lengths(self, route: _Route) -> np.ndarray:
        """The number of states of each variable that come at once: the most in the largest array are halved."""
        lengths = np.array([self._tree.cardinalities[i] for i in route.scope], dtype=np.int64)
        while True:
            numbers = route.numbers(lengths)
            worst = int(numbers.argmax())
            inside = np.where(route.inside[worst], lengths, 0)
            if numbers[worst] <= self.largest or inside.max() <= 1:
                return lengths
            lengths[inside.argmax()] = -(-int(inside.max()) // 2)

    def _ranges(self, route: _Route) -> Iterator[Ranges]:
        parts = []
        for i, length in zip(route.scope, self._lengths(route).tolist(), strict=True):
            end = self._tree.cardinalities[i]
            parts.append([(start, min(start + length, end)) for start in range(0, end, length)])
        for chosen in itertools.product(*parts):
            yield dict(zip(route.scope, chosen, strict=True))

    def _pass(self, route: _Route, ranges: Ranges) -> np.ndarray:
        """The part of the table that is about some ranges of states."""
        came: dict[int, np.ndarray] = {}
        wanted, waiting = [], [route.centre]
        while waiting:
            step = route.steps[waiting.pop()]
            known = self._remembered(step, ranges)
            if known is None:
                wanted.append(step)
                waiting += [feeder.clique for feeder in step.feeders]
            else:
                came[step.clique] = known
        for step in reversed(wanted):
            made = self._left(step, ranges, [came.pop(feeder.clique) for feeder in step.feeders])
            if step.clique != route.centre:
                self._remember(step, ranges, made)
            came[step.clique] = made
        order = [route.steps[route.centre].carried.index(i) for i in route.scope]
        sizes = [ranges[i][1] - ranges[i][0] for i in route.steps[route.centre].carried]
        return came[route.centre].reshape(sizes).transpose(order)

    def _left(self, step: _Step, ranges: Ranges, came: Sequence[np.ndarray]) -> np.ndarray:
        """The message out of a clique: a row for each joint state of the carried variables, axes of the separator."""
        axes = step.axes[0]
        clique = self._tree.cliques[step.clique]
        table = table_sums(self._beliefs[step.clique], clique, {axes})[axes]
        table = table[tuple(slice(*ranges[a]) if a in step.starting else slice(None) for a in axes)][None]
        for feeder, message, later in zip(step.feeders, came, step.axes[1:], strict=True):
            chosen = tuple(slice(*ranges[a]) if a in step.starting else slice(None) for a in feeder.through)
            table = joined(table, axes, message[:, *chosen], feeder.through, later)
            axes = later
        order = [1 + axes.index(a) for a in (*step.starting, *step.through)]
        rows = table.transpose(0, *order).reshape(-1, *(table.shape[place] for place in order[len(step.starting) :]))
        if not step.through:
            return rows
        weight = self._weight(step.edge, step.through)
        return np.divide(rows, weight, out=np.zeros_like(rows), where=weight > 0)

    def _weight(self, below: int, through: Axes) -> np.ndarray:
        """P(x_S) of the separator above a clique."""
        if below not in self._weights:
            self._weights[below] = table_sums(self._beliefs[below], self._tree.cliques[below], {through})[through]
        return self._weights[below]

    def _remembered(self, step: _Step, ranges: Ranges) -> np.ndarray | None:
        key = step.key(ranges)
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def _remember(self, step: _Step, ranges: Ranges, made: np.ndarray) -> None:
        self._kept[step.key(ranges)] = made
        self._n_kept += made.size
        while self._n_kept > _KEPT:
            self._n_kept -= self._kept.popitem(last=False)[1].size


@dataclass(eq=False)
class _Step:
    """The work of one clique on the way to a centre.

    Attributes
    ----------
    clique : int
    edge : int
        The clique below the separator through which it goes on; -1 at the centre.
    through : Axes
        That separator; empty at the centre.
    starting : Axes
        Variables of the set that are carried from here on.
    feeders : list of _Step
        The steps whose rows come in, the fewest rows first: so intermediate products are smaller.
    carried : Axes
        Variables whose states are the rows that leave, in this order.
    axes : list of Axes
        The clique's variables that are needed before the rows of each feeder come in, and at the end.
    """

    clique: int
    edge: int
    through: Axes
    starting: Axes
    feeders: list[_Step]
    carried: Axes = ()
    axes: list[Axes] = field(default_factory=list)  # set once all feeders are known

    def key(self, ranges: Ranges) -> tuple:
        """The key of the rows: all that they depend on."""
        return (self.clique, self.edge, *((i, *ranges[i]) for i in self.carried))

    def settle(self, clique: Axes, sizes: Sequence[int]) -> None:
        """Decide the order of work, once all feeders have decided theirs."""
        self.feeders.sort(key=lambda feeder: (math.prod(sizes[i] for i in feeder.carried), feeder.clique))
        self.carried = (*itertools.chain(*(feeder.carried for feeder in self.feeders)), *self.starting)
        needed = [{*self.starting, *self.through}]
        for feeder in reversed(self.feeders):
            needed.append(needed[-1].union(feeder.through))
        self.axes = [tuple(a for a in clique if a in some) for some in reversed(needed)]

    def arrays(self, sizes: Sequence[int]) -> Iterator[tuple[set[int], int]]:
        """The variables of the set that make each array on the way larger, and its size without their states."""
        rows: set[int] = set()
        for feeder, before in zip((None, *self.feeders), self.axes, strict=True):
            if feeder is not None:
                rows = rows.union(feeder.carried)
            inside = set(self.starting).intersection(before)
            yield rows | inside, math.prod(sizes[a] for a in before if a not in inside)


class _Route:
    """The way on which the variables of a set come together in one clique.

    Attributes
    ----------
    scope : tuple of int
    centre : int
        The clique with at most half of the set beyond each separator around it; states count by their logarithm.
    steps : dict of int to _Step
        Of each clique on the way.
    inside : ndarray of bool, shape (n_arrays, len(scope))
        The variables whose states each array has.
    """

    def __init__(self, tree: JunctionTree, homes: Homes, scope: Sequence[int]) -> None:
        self.scope, self._tree, self._homes = tuple(scope), tree, homes
        self.centre = self._centre()
        self.steps: dict[int, _Step] = {}
        above = homes.above(self.centre)
        following = {parent: child for child, parent in itertools.pairwise(above)}  # from above down to the centre
        self._step(self.centre, -1)
        for i in self.scope:
            k = next((k for k in above if homes.has[k, i]), int(homes.home[i]))
            fresh = k not in self.steps
            self._step(k, following.get(k, tree.parents[k]))
            self.steps[k].starting += (i,)
            while fresh:
                onward = following.get(k, tree.parents[k])
                fresh = onward not in self.steps
                self._step(onward, following.get(onward, tree.parents[onward]))
                self.steps[onward].feeders.append(self.steps[k])
                k = onward
        for step in reversed(list(self._outward())):
            step.settle(tree.cliques[step.clique], tree.cardinalities)

    def _step(self, k: int, onward: int) -> None:
        if k not in self.steps:
            edge = -1 if k == self.centre else min(k, onward)
            self.steps[k] = _Step(k, edge, () if edge < 0 else self._tree.separator(edge), (), [])

    def _outward(self) -> Iterator[_Step]:
        waiting = [self.steps[self.centre]]
        while waiting:
            step = waiting.pop()
            yield step
            waiting += step.feeders

    def _centre(self) -> int:
        homes, at = self._homes, self._homes.home[list(self.scope)]
        states = np.log([self._tree.cardinalities[i] for i in self.scope])
        k = int(at.max(initial=0))
        while at.min(initial=k) < homes.first[k]:
            k = self._tree.parents[k]
        while True:
            below = np.flatnonzero(at < k)
            child = homes.child(k, at[below])
            # No np.unique, which imports NumPy's masked arrays: a tenth of a second.
            heavy = [c for c in sorted(set(child.tolist())) if 2 * states[below[child == c]].sum() > states.sum()]
            if not heavy:
                return k
            k = heavy[0]
            at = np.where((at >= homes.first[k]) & (at <= k), at, len(homes.first))

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        pairs = [pair for step in self.steps.values() for pair in step.arrays(self._tree.cardinalities)]
        inside = np.array([[i in some for i in self.scope] for some, _ in pairs], dtype=bool)
        return inside.reshape(len(pairs), len(self.scope)), np.array([float(cells) for _, cells in pairs])

    @property
    def inside(self) -> np.ndarray:
        return self._arrays[0]

    def numbers(self, lengths: np.ndarray) -> np.ndarray:
        """The size of each array, if so many states of each variable come at once."""
        inside, cells = self._arrays
        return cells * np.where(inside, lengths, 1).prod(axis=1, dtype=np.float64)


def joined(table: np.ndarray, axes: Axes, message: np.ndarray, through: Axes, later: Axes) -> np.ndarray:
    """Multiply a table and the rows that came through a separator, and sum over what is not needed later.

    Parameters
    ----------
    table : ndarray of shape (rows, states of `axes`...)
    message : ndarray of shape (n, states of `through`...)
        `through` is a part of `axes`, and so is `later`.

    Returns
    -------
    ndarray of shape (rows * n, states of `later`...)
    """
    both = [a for a in through if a in later]
    gone = [a for a in through if a not in later]
    rest = [a for a in axes if a not in through]
    assert set(rest) <= set(later)
    size = dict(zip(axes, table.shape[1:], strict=True))
    n_both = math.prod(size[a] for a in both)
    n_gone = math.prod(size[a] for a in gone)
    left = table.transpose([*(1 + axes.index(a) for a in both), 0, *(1 + axes.index(a) for a in (*rest, *gone))])
    right = message.transpose([*(1 + through.index(a) for a in (*both, *gone)), 0])
    product = np.matmul(left.reshape(n_both, -1, n_gone), right.reshape(n_both, n_gone, len(message)))
    product = product.reshape(*(size[a] for a in both), len(table), *(size[a] for a in rest), len(message))
    order = [*both, None, *rest]
    product = product.transpose([order.index(None), len(order), *(order.index(a) for a in later)])
    return product.reshape(len(table) * len(message), *(size[a] for a in later))


def equal_rows(rows: np.ndarray) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Group equal rows of an array of shape (n, m): each with its places, in ascending order."""
    if len(rows) == 0:
        return []
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    starts = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
    keys, ends = ordered[[0, *starts]].tolist(), [0, *starts.tolist(), len(rows)]
    return [(tuple(key), order[start:end]) for key, (start, end) in zip(keys, itertools.pairwise(ends), strict=True)]


def table_sums(table: np.ndarray, axes: Axes, wanted: set[Axes]) -> dict[Axes, np.ndarray]:
    """Sums of a table over all but the wanted axes, each set in the order of `axes`; tables on the way are shared."""
    made: dict[Axes, np.ndarray] = {}

    def descend(here: np.ndarray, remaining: Axes, targets: list[frozenset[int]]) -> None:
        while targets:
            holding = Counter(itertools.chain.from_iterable(targets))
            unneeded = [a for a in remaining if a not in holding]
            if unneeded:
                here = here.sum(axis=tuple(remaining.index(a) for a in unneeded))
                remaining = tuple(a for a in remaining if a not in unneeded)
            if any(len(target) == len(remaining) for target in targets):
                made[remaining] = here
                targets = [target for target in targets if len(target) < len(remaining)]
            if targets:  # without the axis that most of them lack, then those that have it
                axis = min(remaining, key=holding.__getitem__)
                position, without = remaining.index(axis), [target for target in targets if axis not in target]
                descend(here.sum(axis=position), remaining[:position] + remaining[position + 1 :], without)
                targets = [target for target in targets if axis in target]

    descend(table, axes, [frozenset(scope) for scope in wanted])
    return made

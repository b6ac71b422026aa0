"""Marginals of thousands of small sets of variables at once, exact, from one calibrated junction tree.

Two or three variables always have a clique M that separates those of them that it lacks: a clique that has all but one
of them, or the median of the cliques in which they are at home. So

    P(x_i, x_j, x_k) = sum over x_M of P(x_M) P(x_i | x_S) P(x_j | x_T) P(x_k | x_U)

where S, T and U are the separators through which the three come into M; a variable in M needs no factor. A matrix
P(x_v | x_S) follows from that of the separator before it by one product, for many variables together. Which variables
have to come through which separator, in which direction, is known beforehand: only those matrices are made, in one pass
up the tree and one down, and none is kept longer than the pass. Where they would still take too much memory, the sets
come in parts, neighbours in the tree together.

Few sets, and those of more variables, are answered one by one (:mod:`pgmpy_dp.inference.far_sets`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.far_sets import Axes, FarSets, equal_rows, joined, table_sums
from pgmpy_dp.inference.growing_tree import GrowingTree, by_order
from pgmpy_dp.inference.junction_tree import Homes, JunctionTree, build_junction_tree, median

Scope = tuple[int, ...]
"""Positions of variables, in ascending order."""

_Part = tuple[np.ndarray, ...]
"""Sets of as many variables, the clique into which those of each come, and where its table goes."""

_FEW = 50
"""Sets in no clique up to which they are answered one by one."""

_NUMBERS = 1 << 25
"""In the conditional matrices of one pass (256 MiB); sets come in parts where it takes more."""

_CHUNK = 1 << 22
"""Numbers in an intermediate product."""

_WHOLE = 256
"""Cells of a clique up to which its sets are answered together, whatever they depend on in it."""

_SPARSE = 0.02
"""Share of wanted tables among those of all combinations below which the first variables come one by one."""


class ScopeMarginals:
    """Probabilities of any sets of variables under a log-linear model.

    Parameters
    ----------
    cliques : Cliques
    theta : ndarray of shape (n_cells,)
        Log-potentials.
    engine : SumProduct, optional
        The engine of `cliques`; it is calibrated here, and must not be calibrated again while tables are computed.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> same = np.log([0.9, 0.1, 0.1, 0.9])
    >>> ScopeMarginals(chain, np.concatenate([same, same])).tables([(0, 2)])[0].round(2)
    array([[0.41, 0.09],
           [0.09, 0.41]])
    """

    def __init__(self, cliques: Cliques, theta: np.ndarray, engine: SumProduct | None = None) -> None:
        self._engine = SumProduct(cliques) if engine is None else engine
        self._engine.calibrate(theta)
        self._tree = self._engine.plan.tree
        self._sizes = np.asarray(self._tree.cardinalities, dtype=np.int64)
        self._homes = Homes(self._tree)
        self._beliefs = self._engine.beliefs()
        self._far = FarSets(self._tree, self._beliefs, self._homes)
        self._ways: _Ways | None = None

    def at(self, theta: np.ndarray) -> ScopeMarginals:
        """This object under other parameters: what follows from the tree alone is kept."""
        self._engine.calibrate(theta)  # writes into the arrays of `_beliefs`
        self._far.forget()
        return self

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Probabilities of each set of variables, axes in its order."""
        shapes = [tuple(self._tree.cardinalities[i] for i in scope) for scope in scopes]
        flat, sizes = self.flat(scopes)
        parts = np.split(flat, np.cumsum(sizes)[:-1]) if len(scopes) else []
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def flat(self, scopes: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        """The tables in one array, one after the other, each in C order; and the size of each.

        Returns
        -------
        flat : ndarray of shape (sum of sizes,)
        sizes : ndarray of int, shape (len(scopes),)
        """
        sizes = np.ones(len(scopes), dtype=np.int64)
        orders = list(by_order(scopes))
        for places, some in orders:
            sizes[places] = self._sizes[some].prod(axis=1)
        starts = np.cumsum(sizes) - sizes
        flat, across = np.empty(int(sizes.sum())), []
        for places, some in orders:
            home = self._homes.home[some].min(axis=1)
            inside = self._homes.has[home[:, None], some].all(axis=1)
            self._within_cliques(some[inside], home[inside], starts[places[inside]], flat)
            across.append((some[~inside], starts[places[~inside]]))
        self._across_cliques(across, flat)
        return np.maximum(flat, 0.0, out=flat), sizes

    def _within_cliques(self, scopes: np.ndarray, home: np.ndarray, starts: np.ndarray, flat: np.ndarray) -> None:
        """Fill in tables of sets within a clique: sums of its belief, shared by all of them."""
        for (k,), places in equal_rows(home[:, None]):
            axes = self._tree.cliques[k]
            wanted = [tuple(scope) for scope in scopes[places].tolist()]
            ordered = [tuple(sorted(scope, key=axes.index)) for scope in wanted]
            sums = table_sums(self._beliefs[k], axes, set(ordered))
            for scope, there, start in zip(wanted, ordered, starts[places].tolist(), strict=True):
                table = sums[there].transpose([there.index(i) for i in scope])
                flat[start : start + table.size] = table.ravel()

    def _across_cliques(self, across: Sequence[tuple[np.ndarray, np.ndarray]], flat: np.ndarray) -> None:
        """Fill in tables of sets across cliques: as many together as memory allows, the others one by one."""
        parts = []
        for scopes, starts in across:
            if len(scopes) <= _FEW:
                self._one_by_one(scopes, starts, flat)
                continue
            if self._ways is None:
                self._ways = _Ways(self._tree, self._homes)
            target = self._ways.targets(scopes)
            self._one_by_one(scopes[target < 0], starts[target < 0], flat)
            order = np.argsort(target, kind="stable")[np.count_nonzero(target < 0) :]
            parts.append((scopes[order], target[order], starts[order]))
        waiting = [parts]
        while waiting:
            parts = waiting.pop()
            counts = [len(scopes) for scopes, *_ in parts]
            if sum(counts) <= _FEW or max(counts) == 1:  # single sets have no halves
                for scopes, _, starts in parts:
                    self._one_by_one(scopes, starts, flat)
                continue
            assert self._ways is not None
            needs = self._ways.needs(parts)
            if self._ways.cells @ (needs @ self._sizes) > _NUMBERS:
                halves = [(part, count // 2) for part, count in zip(parts, counts, strict=True)]
                waiting.append([(a[:half], b[:half], c[:half]) for (a, b, c), half in halves])
                waiting.append([(a[half:], b[half:], c[half:]) for (a, b, c), half in halves])
            else:
                _Pass(self._ways, self._beliefs, needs, flat).answer(parts)

    def _one_by_one(self, scopes: np.ndarray, starts: np.ndarray, flat: np.ndarray) -> None:
        for scope, start in zip(scopes.tolist(), starts.tolist(), strict=True):
            table = self._far.table(scope)
            flat[start : start + table.size] = table.ravel()


class _Ways:
    """The ways on which variables come into cliques, as far as the tree alone says.

    A way into a clique has a number. The way from below, through a child's separator, has the child's number. The way
    from above, through the clique's own separator, has the clique's number plus the number of all cliques.

    Attributes
    ----------
    through : list of Axes
        The separator of each way.
    cells : ndarray of float, shape (2 n_cliques,)
        Its joint states.
    into : ndarray of int, shape (n_cliques, n_variables)
        The way of each variable into each clique; -1 where it is in it.
    """

    def __init__(self, tree: JunctionTree, homes: Homes) -> None:
        self.tree, self.homes, self.sizes = tree, homes, np.asarray(tree.cardinalities, dtype=np.int64)
        self.count = count = len(tree.cliques)
        self.through = [tree.separator(k) for k in range(count)] * 2
        self.cells = np.array([tree.n_cells(axes) for axes in self.through], dtype=np.float64)
        self.into = np.empty((count, len(self.sizes)), dtype=np.int32)
        self._nearest = np.empty((count, len(self.sizes)), dtype=np.int32)  # at or above, the first with it, or -1
        self._meeting = homes.meeting()
        for k in reversed(range(count)):
            clique, parent = list(tree.cliques[k]), tree.parents[k]
            self.into[k] = count + k
            for child in homes.children[k]:
                self.into[k, (homes.home >= homes.first[child]) & (homes.home <= child)] = child
            self.into[k, clique] = -1
            self._nearest[k] = self._nearest[parent] if parent >= 0 else -1
            self._nearest[k, clique] = k

    def targets(self, scopes: np.ndarray) -> np.ndarray:
        """A clique for each set, into which the variables that it lacks come by different ways; -1 if there is none."""
        home, first = self.homes.home, self.homes.first
        target, lowest = np.full(len(scopes), -1), np.full(len(scopes), self.count)
        for column in range(scopes.shape[1]):
            rest, start = np.delete(scopes, column, axis=1), home[scopes[:, column]]
            top = home[rest].min(axis=1)
            inside = self.homes.has[top[:, None], rest].all(axis=1)
            under = (start >= first[top]) & (start < top)
            near = np.where(under, self._nearest[start[:, None], rest].max(axis=1), top)
            # Of two the one whose home is lower: what is above need not come down to all that is below.
            better = inside & (start < lowest)
            target[better], lowest[better] = near[better], start[better]
        if scopes.shape[1] == 3:
            target = np.where(target < 0, median(self._meeting, home[scopes]), target)
        return target

    def needs(self, parts: Sequence[_Part]) -> np.ndarray:
        """The variables that come by each way so that sets come into cliques, shape (2 n_cliques, n_variables)."""
        needs = np.zeros((2 * self.count, len(self.sizes)), dtype=bool)
        for scopes, target, _ in parts:
            ways = self.into[target[:, None], scopes]
            needs[ways[ways >= 0], scopes[ways >= 0]] = True

        def pull(way: int, clique: int) -> None:
            variables = np.flatnonzero(needs[way])
            before = self.into[clique, variables]
            needs[before[before >= 0], variables[before >= 0]] = True

        for k, parent in enumerate(self.tree.parents[:-1]):  # from above: what a parent needs to send it down
            pull(self.count + k, parent)
        for k in reversed(range(self.count)):
            pull(k, k)
        return needs


class _Rows:
    """P(x_v | x_axes) of some variables, in ascending order, a row for each state."""

    def __init__(self, variables: np.ndarray, sizes: np.ndarray, axes: Axes) -> None:
        self.axes, self._shape, self._variables = axes, [int(sizes[a]) for a in axes], variables
        self._sizes = sizes[variables]
        self._ends = np.cumsum(self._sizes)
        self.table = np.empty((int(self._ends[-1]), math.prod(self._shape)))

    def at(self, variables: np.ndarray) -> np.ndarray | slice:
        """The places of some variables' rows, in the order of the variables."""
        if len(variables) == len(self._variables):
            return slice(None)
        positions = np.searchsorted(self._variables, variables)
        ends = np.cumsum(self._sizes[positions])
        return np.repeat(self._ends[positions] - ends, self._sizes[positions]) + np.arange(int(ends[-1]))

    def of(self, variables: np.ndarray) -> np.ndarray:
        """The rows of some variables, of shape (rows, states of `axes`...)."""
        return self.table[self.at(variables)].reshape(-1, *self._shape)


class _Sets(NamedTuple):
    """Sets that one clique separates."""

    scopes: np.ndarray  # variables in the order in which they are multiplied
    sizes: np.ndarray  # their numbers of states
    steps: np.ndarray  # from one state of each to the next, in their tables
    starts: np.ndarray  # where their tables go


class _Pass:
    """Matrices up and down the tree, and the tables of the sets for which they are made."""

    def __init__(self, ways: _Ways, beliefs: Sequence[np.ndarray], needs: np.ndarray, flat: np.ndarray) -> None:
        self._ways, self._beliefs, self._needs, self._flat = ways, beliefs, needs, flat
        self._rows: dict[int, _Rows] = {}  # by way
        self._made: list[tuple[np.ndarray, ...]] = []  # products, and which of their numbers are tables of sets
        self._n_made = 0

    def answer(self, parts: Sequence[_Part]) -> None:
        """Fill in the tables of these sets."""
        count, children = self._ways.count, self._ways.homes.children
        by_clique: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for scopes, target, starts in parts:
            for (k,), places in equal_rows(target[:, None]):
                by_clique.setdefault(k, []).append((scopes[places], starts[places]))
        for k in range(count):
            self._send(k, k)
        for k in reversed(range(count)):
            for scopes, starts in by_clique.get(k, ()):
                self._at_clique(k, scopes, starts)
            for child in children[k]:
                self._send(k, count + child)
            for way in (count + k, *children[k]):
                self._rows.pop(way, None)
        self._write()

    def _part(self, k: int, some: Iterable[int]) -> Axes:
        inside = frozenset(some)
        return tuple(a for a in self._ways.tree.cliques[k] if a in inside)

    def _send(self, k: int, way: int) -> None:
        """Send the rows of clique k through a separator: those of its variables, and those that came into it."""
        axes, variables = self._ways.through[way], np.flatnonzero(self._needs[way])
        if len(variables) == 0:
            return
        made = self._rows[way] = _Rows(variables, self._ways.sizes, axes)
        sources = []
        for (source,), places in equal_rows(self._ways.into[k, variables][:, None]):
            if source >= 0:
                sources.append((variables[places], source, self._part(k, (*self._ways.through[source], *axes))))
            else:
                sources += [(variables[[at]], -1, self._part(k, (variables[at], *axes))) for at in places]
        wanted = {axes, *(part for *_, part in sources)}
        sums = table_sums(self._beliefs[k], self._ways.tree.cliques[k], wanted)
        for some, source, part in sources:
            if source >= 0:
                came = self._rows[source]
                moved = joined(sums[part][None], part, came.of(some), came.axes, axes)
            else:
                moved = np.moveaxis(sums[part], part.index(int(some[0])), 0)
            made.table[made.at(some)] = moved.reshape(-1, made.table.shape[1])
        weight = sums[axes].ravel()
        np.divide(made.table, weight, out=made.table, where=weight > 0)  # where it is 0, so is the row

    def _at_clique(self, k: int, scopes: np.ndarray, starts: np.ndarray) -> None:
        """Fill in tables of the sets that clique k separates, grouped by what of it they depend on."""
        n_ways, sizes = len(self._ways.through), self._ways.sizes
        clique, belief = self._ways.tree.cliques[k], self._beliefs[k]
        codes = self._ways.into[k][scopes]
        codes = np.where(codes < 0, n_ways + scopes, codes)
        order = np.argsort(codes, axis=1, kind="stable")  # variables of the clique last
        states = sizes[scopes]
        steps = np.cumprod(states[:, ::-1], axis=1)[:, ::-1] // states
        codes, scopes, states, steps = (np.take_along_axis(of, order, 1) for of in (codes, scopes, states, steps))
        sets = _Sets(scopes, states, steps, starts)
        if belief.size <= _WHOLE:
            rows = [self._conditionals(k, np.unique(column)) for column in sets.scopes.T]
            self._multiply(belief[None], clique, rows, sets, np.arange(len(scopes)), [])
            return
        groups = []
        for key, places in equal_rows(codes):
            rows = [self._rows[way] for way in key if way < n_ways]
            inside = [code - n_ways for code in key[len(rows) :]]
            groups.append((rows, self._part(k, [*inside, *(a for one in rows for a in one.axes)]), places))
        sums = table_sums(belief, clique, {part for _, part, _ in groups})
        for rows, part, places in groups:
            self._multiply(sums[part][None], part, rows, sets, places, [])

    def _conditionals(self, k: int, variables: np.ndarray) -> _Rows:
        """P(x_v | x_clique), of the clique's own variables too."""
        made = _Rows(variables, self._ways.sizes, self._ways.tree.cliques[k])
        for (way,), places in equal_rows(self._ways.into[k, variables][:, None]):
            for some in [variables[places]] if way >= 0 else variables[places][:, None]:
                through = self._rows[way].axes if way >= 0 else tuple(some.tolist())
                rows = self._rows[way].of(some) if way >= 0 else np.eye(self._ways.sizes[some[0]])
                shape = [n if a in through else 1 for a, n in zip(made.axes, self._beliefs[k].shape, strict=True)]
                wide = np.broadcast_to(rows.reshape(-1, *shape), (len(rows), *self._beliefs[k].shape))
                made.table[made.at(some)] = wide.reshape(len(rows), -1)
        return made

    def _multiply(
        self,
        table: np.ndarray,
        axes: Axes,
        rows: Sequence[_Rows],
        sets: _Sets,
        index: np.ndarray,
        done: list[tuple[np.ndarray, int]],
    ) -> None:
        """Multiply by the rows of one column after the other, and sum over what no later one depends on.

        Parameters
        ----------
        table : ndarray of shape (rows of the columns that are done, states of `axes`...)
        axes : Axes
        rows : sequence of _Rows
            For each of the first columns. The others are in the clique.
        sets : _Sets
        index : ndarray of int
            The places of the sets in `sets`.
        done : list of (first rows, number of rows)
            Of each column that is done: where each set's rows begin, and how many there are.
        """
        if len(done) == len(rows):
            self._note(table, axes, sets, index, done)
            return
        sizes, here, column = self._ways.sizes, rows[len(done)], sets.scopes[index, len(done)]
        needed = {*sets.scopes[index[0], len(rows) :].tolist(), *(a for one in rows[len(done) + 1 :] for a in one.axes)}
        later = tuple(a for a in axes if a in needed)
        unique = [np.unique(sets.scopes[index, place]) for place in range(len(done), len(rows))]
        states = math.prod(int(sizes[some].max()) for some in unique[:2])
        per = max(1, _CHUNK // (len(table) * states * self._ways.tree.n_cells(later)))
        if len(unique) > 1 and len(index) < _SPARSE * math.prod(map(len, unique)):
            per = 1
        which = np.searchsorted(unique[0], column)
        order = np.argsort(which, kind="stable")
        cuts = np.searchsorted(which[order], np.arange(per, len(unique[0]), per))
        for number, some in enumerate(np.split(order, cuts)):
            chunk = unique[0][number * per : (number + 1) * per]
            product = joined(table, axes, here.of(chunk), here.axes, later)
            ends = np.cumsum(sizes[chunk])
            begin = (ends - sizes[chunk])[which[some] - number * per]
            before = [(first[some], total) for first, total in done]
            self._multiply(product, later, rows, sets, index[some], [*before, (begin, int(ends[-1]))])

    def _note(
        self, table: np.ndarray, axes: Axes, sets: _Sets, index: np.ndarray, done: list[tuple[np.ndarray, int]]
    ) -> None:
        """Keep the table of all combinations of rows, and where in it those of the sets begin."""
        n, inside = len(done), sets.scopes[index[0], len(done) :].tolist()
        shape = [*(total for _, total in done), *table.shape[1:]]
        columns = [*range(n), *(n + axes.index(i) for i in inside)]
        steps = np.array([math.prod(shape[1 + column :]) for column in columns])
        begin = np.full(len(index), self._n_made)
        for (first, _), step in zip(done, steps, strict=False):
            begin += first * step
        steps = np.broadcast_to(steps, (len(index), len(steps)))
        self._made.append((table.ravel(), begin, steps, sets.starts[index], sets.sizes[index], sets.steps[index]))
        self._n_made += table.size
        if self._n_made > _CHUNK:
            self._write()

    def _write(self) -> None:
        """Write the tables of sets, of those of one order together: single ones are small."""
        numbers = np.concatenate([np.empty(0), *(made[0] for made in self._made)])
        for order in {made[2].shape[1] for made in self._made}:
            some = (made[1:] for made in self._made if made[2].shape[1] == order)
            source, from_steps, target, sizes, to_steps = map(np.concatenate, zip(*some, strict=True))
            which = np.arange(len(source))
            for column in range(order):
                states = sizes[which, column]
                ends = np.cumsum(states)
                state = np.arange(ends[-1]) - np.repeat(ends - states, states)
                which, source, target = (np.repeat(of, states) for of in (which, source, target))
                source += from_steps[which, column] * state
                target += to_steps[which, column] * state
            self._flat[target] = numbers[source]
        self._made, self._n_made = [], 0


def admissible(cliques: Cliques, scopes: Iterable[Scope], max_cells: int) -> list[Scope]:
    """The sets whose table can be added to a model while no clique of its junction tree exceeds `max_cells` cells.

    Of a model that grows, ask its :class:`~pgmpy_dp.inference.growing_tree.GrowingTree`.

    Parameters
    ----------
    cliques : Cliques
        The model, whose own junction tree is within the limit.
    scopes : iterable of tuple of int
    max_cells : int

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> admissible(chain, [(0, 1), (0, 2)], 4), admissible(chain, [(0, 1), (0, 2), (0, 1, 2)], 8)
    ([(0, 1)], [(0, 1), (0, 2), (0, 1, 2)])
    """
    candidates = list(scopes)
    fits = GrowingTree(cliques, max_cells).admits(candidates, most_tries=len(candidates))
    return [scope for scope, fit in zip(candidates, fits, strict=True) if fit]


def largest_clique(cliques: Cliques, extra: Sequence[Sequence[int]] = ()) -> int:
    """Cells of the largest clique of the junction tree that covers the model and some further sets of variables."""
    tree = build_junction_tree(cliques, extra)
    return max(tree.n_cells(clique) for clique in tree.cliques)

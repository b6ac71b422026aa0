"""Marginals of thousands of small sets of variables at once, exact, from one calibrated junction tree.

Let S be a separator of the tree. For every variable v the matrix P(x_v | x_S) follows from the matrices of the
neighbouring separators by one product, for all variables together: *upward* for those below S, *downward* for all
others. Then

    P(x_i, x_j, x_k) = sum over x_M of P(x_M) P(x_i | x_M) P(x_j | x_M) P(x_k | x_M)

for a clique M that separates the three, and there is always one: the median of the cliques in which they are at home.
What a clique answers is one matrix product. Nothing is calibrated for a state or for a set, and no tree is built.

Few separators are wide, and those lie together. The narrow ones cut the tree into *regions*. A narrow one has the
matrices of all variables; a wide one inside a region has those of the region's own variables, and those of the joint
states of each narrow separator around it, by which all others follow. Two variables of different regions are answered
by a narrow separator between them.

Where the wide separators are many, the matrices of all variables for them would take minutes and gigabytes. There only
what a set needs is computed: for many sets together (:mod:`pgmpy_dp.inference.carried_rows`), or for one after
the other (:mod:`pgmpy_dp.inference.far_sets`), as larger sets always are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.carried_rows import CarriedRows
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.far_sets import FarSets
from pgmpy_dp.inference.growing_tree import GrowingTree, by_order, meeting
from pgmpy_dp.inference.junction_tree import build_junction_tree
from pgmpy_dp.inference.tree_moves import Axes, Homes, Moves, equal_rows, table_sums
from pgmpy_dp.inference.tree_regions import Given, Inside, RegionRows, Regions

Scope = tuple[int, ...]
"""Positions of variables, in ascending order."""

_FEW = 1 / 8
"""Sets of one shape for each clique: fewer are answered one by one where `Regions` are not dense."""

_FEW_OUTSIDE = 50
"""Sets in no clique up to which `ScopeMarginals.few` answers them one by one."""

_CHUNK = 1 << 22
"""Numbers in an intermediate product."""

_WHOLE = 512
"""Cells of a clique up to which its sets are answered together, whatever they depend on in it."""

_SPARSE = 0.1
"""Share of wanted entries of a matrix product below which they are computed one by one."""


class ScopeMarginals:
    """Probabilities of any sets of variables under a log-linear model.

    Parameters
    ----------
    cliques : Cliques
    theta : ndarray of shape (n_cells,)
        Log-potentials.
    engine : SumProduct, optional
        Of `cliques`; it is calibrated here, and must not be calibrated again while tables are asked for.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> same = np.log([0.9, 0.1, 0.1, 0.9])
    >>> ScopeMarginals(chain, np.concatenate([same, same])).tables([(0, 2)])[0].round(2)
    array([[0.41, 0.09],
           [0.09, 0.41]])
    """

    def __init__(self, cliques: Cliques, theta: np.ndarray, engine: SumProduct | None = None) -> None:
        engine = SumProduct(cliques) if engine is None else engine
        engine.calibrate(theta)
        self._engine = engine
        self._tree = tree = engine.plan.tree
        self._sizes = tree.cardinalities
        self._homes = Homes(tree)
        self._home, self._has = self._homes.home, self._homes.has
        self._meeting = meeting(tree)
        self._beliefs = engine.beliefs()
        self._regions = Regions(tree, self._homes)
        self._narrow: dict[Axes, np.ndarray] | None = None
        self._wide: dict[int, Inside] = {}
        self._carried: CarriedRows | None = None
        self._far = FarSets(tree, self._beliefs, self._homes)

    def at(self, theta: np.ndarray) -> ScopeMarginals:
        """The same object under other parameters: what follows from the tree alone is kept."""
        self._engine.calibrate(theta)  # writes into the arrays of `_beliefs`
        self._narrow, self._wide, self._carried = None, {}, None
        self._far.forget()
        return self

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Probabilities of each set of variables, axes in its order."""
        shapes = [tuple(self._sizes[i] for i in scope) for scope in scopes]
        flat, sizes = self.flat(scopes)
        parts = np.split(flat, np.cumsum(sizes)[:-1]) if len(scopes) else []
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def flat(self, scopes: Sequence[Scope]) -> tuple[np.ndarray, np.ndarray]:
        """The same in one array, the tables one after the other, each in C order; and the size of each.

        Returns
        -------
        flat : ndarray of shape (sum of sizes,)
        sizes : ndarray of int, shape (len(scopes),)
        """
        sizes = np.ones(len(scopes), dtype=np.int64)
        asked = list(by_order(scopes))
        for places, scope in asked:
            sizes[places] = np.asarray(self._sizes, dtype=np.int64)[scope].prod(axis=1)
        ends = np.cumsum(sizes)
        flat = np.empty(int(sizes.sum()))
        for places, scope in asked:
            for own, stack in self.stacks(scope):
                cells = stack[0].size
                starts = ends[places[own]] - cells
                flat[starts[:, None] + np.arange(cells)] = stack.reshape(len(own), cells)
        return flat, sizes

    def stacks(self, scopes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """The same for sets of one order, those of one shape in one array.

        Parameters
        ----------
        scopes : ndarray of int, shape (n, order)

        Returns
        -------
        list of (places, tables)
            Which rows of `scopes`, and their tables, of shape ``(len(places), *shape)``.
        """
        shapes = np.asarray(self._sizes, dtype=np.int64)[scopes]
        home = self._home[scopes].min(axis=1)
        inside = self._has[home[:, None], scopes].all(axis=1)
        found = []
        for places, shape in _groups(shapes):
            asked, stack = scopes[places], np.empty((len(places), *shape))
            self._within_cliques(asked, np.flatnonzero(inside[places]), home[places], stack)
            rest = np.flatnonzero(~inside[places])
            few = not self._regions.dense and len(rest) < _FEW * len(self._tree.cliques)
            if len(rest) and not few and scopes.shape[1] <= 3:
                rest = self._across_cliques(asked, rest, stack)
            for place in rest.tolist():
                stack[place] = self._far.table(asked[place].tolist())
            found.append((places, np.maximum(stack, 0.0, out=stack)))
        return found

    def few(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """The same as `tables`, quicker where few of the sets are in no clique.

        `tables` goes through all variables for each shape, which pays for hundreds of sets.
        """
        asked: dict[int, list[Scope]] = defaultdict(list)
        for scope in dict.fromkeys(scopes):
            home = int(self._home[list(scope)].min())
            asked[home if self._has[home, list(scope)].all() else -1].append(scope)
        outside = asked.pop(-1, [])
        if len(outside) > _FEW_OUTSIDE:
            return self.tables(scopes)
        found = {scope: np.maximum(self._far.table(scope), 0.0) for scope in outside}
        for home, inside in asked.items():
            axes = self._tree.cliques[home]
            ordered = {scope: tuple(sorted(scope, key=axes.index)) for scope in inside}
            sums = table_sums(self._beliefs[home], axes, set(ordered.values()))
            for scope, own in ordered.items():
                found[scope] = np.array(sums[own].transpose([own.index(i) for i in scope]))
        return [found[scope] for scope in scopes]

    # -- inside one clique ---------------------------------------------------------------------

    def _within_cliques(self, scopes: np.ndarray, places: np.ndarray, home: np.ndarray, stack: np.ndarray) -> None:
        """Sums of a clique's belief, shared by all sets that lie in it."""
        for (k,), own in equal_rows(home[places][:, None]):
            axes = self._tree.cliques[k]
            wanted = {tuple(scope): places[at] for at, scope in zip(own, scopes[places[own]].tolist(), strict=True)}
            # A set may be asked for twice, and in another order.
            sums = table_sums(self._beliefs[k], axes, {tuple(sorted(s, key=axes.index)) for s in wanted})
            for at in places[own]:
                scope = tuple(scopes[at].tolist())
                ordered = tuple(sorted(scope, key=axes.index))
                stack[at] = sums[ordered].transpose([ordered.index(i) for i in scope])

    # -- across cliques ------------------------------------------------------------------------

    def _across_cliques(self, scopes: np.ndarray, places: np.ndarray, stack: np.ndarray) -> np.ndarray:
        """Two or three variables by what separates them: a narrow separator, or a clique. Returns what is left."""
        if not self._regions.dense:
            if self._carried is None:
                self._carried = CarriedRows(self._tree, self._beliefs, self._homes)
            places = self._carried.answer(scopes, places, stack)
        if self._regions.too_large:
            return places
        if scopes.shape[1] == 2:
            asked = scopes[places]
            for column in (0, 1):
                below = self._regions.apart(self._home[asked], self._meeting, column)
                for (k,), own in equal_rows(below[below >= 0][:, None]):
                    self._at_separator(k, column, scopes, places[np.flatnonzero(below >= 0)[own]], stack)
                places, asked = places[below < 0], asked[below < 0]
        if len(places) == 0:
            return places
        centre = self._centres(scopes[places])
        for (region,), own in equal_rows(self._regions.top[centre][:, None]):
            some, at = places[own], centre[own]
            inside = self._inside(region, np.unique(scopes[some]))
            for (k,), these in equal_rows(at[:, None]):
                self._at_clique(k, scopes, some[these], inside, stack)
        return places[:0]

    def _centres(self, scopes: np.ndarray) -> np.ndarray:
        """A clique for each set without which its variables, as far as they are not in it, are in different parts."""
        home = self._home[scopes]
        if scopes.shape[1] == 2:
            return home.max(axis=1)
        a, b, c = home.T
        # Of the three pairwise meetings two are the same and the third, the median, is not above them.
        return np.minimum(np.minimum(self._meeting[a, b], self._meeting[a, c]), self._meeting[b, c])

    def _at_separator(self, k: int, column: int, scopes: np.ndarray, places: np.ndarray, stack: np.ndarray) -> None:
        """Pairs of which the separator above clique k separates the variable in this column from the other one."""
        axes = self._tree.separator(k)
        weight = table_sums(self._beliefs[k], self._tree.cliques[k], {axes})[axes]
        asked = scopes[places][:, [column, 1 - column]]  # few variables times many, not the other way round
        found = np.empty((len(places), stack.shape[1 + column], stack.shape[2 - column]))
        given = Given(self._regions, self._given_narrow(), None)
        self._answer(weight, axes, {axes: np.unique(asked)}, asked, np.arange(len(asked)), given, found)
        stack[places] = found.transpose(0, 2, 1) if column else found

    # -- conditional matrices ------------------------------------------------------------------

    def _given_narrow(self) -> dict[Axes, np.ndarray]:
        """P(x_v | x_S) of all variables, for each narrow separator S."""
        if self._narrow is not None:
            return self._narrow
        regions, tree = self._regions, self._tree
        found: dict[Axes, np.ndarray] = {}
        under: dict[int, np.ndarray] = {}  # each region and what is below it, given the separator above
        crossing: dict[int, Inside] = {}

        def collect(region: int, target: Axes, table: np.ndarray, first: int) -> None:
            inside = crossing[region]
            for i in regions.own[region]:
                start = int(regions.starts[i]) - first
                table[start : start + tree.cardinalities[i]] = inside.rows((i,), target)
            for child in regions.children[region]:
                begin, end = regions.rows[child]
                np.matmul(
                    under[child], inside.rows(tree.separator(child), target), out=table[begin - first : end - first]
                )

        for region in regions.tops:  # upward
            crossing[region] = self._crossing(region)
            begin, end = regions.rows[region]
            under[region] = np.empty((end - begin, tree.n_cells(tree.separator(region))))
            collect(region, tree.separator(region), under[region], begin)
        root = regions.tops[-1]
        found[()] = under[root]
        for region in reversed(regions.tops):  # downward
            begin, end = regions.rows[region]
            own = tree.separator(region)
            for target in {tree.separator(child) for child in regions.children[region]} - found.keys():
                table = found[target] = np.empty((regions.n_rows, tree.n_cells(target)))
                collect(region, target, table, 0)
                if region != root:
                    across = crossing[region].rows(own, target)
                    np.matmul(found[own][:begin], across, out=table[:begin])
                    np.matmul(found[own][end:], across, out=table[end:])
        self._narrow = found
        return found

    def _crossing(self, region: int) -> Inside:
        """What leads to the narrow separators around a region."""
        made = self._given_inside(region, np.array(self._regions.own[region], dtype=np.int64))
        if region in self._wide:  # kept whatever is done here
            return made
        around = {target: made.tables[target] for target in self._regions.around[region]}
        return Inside(made.starts, around, made.sizes)

    def _inside(self, region: int, variables: np.ndarray) -> Given:
        """Of these variables at least, given a separator in or around a region."""
        inside = None
        if self._regions.wide_cells[region]:
            own = variables[self._regions.top[self._home[variables]] == region]
            inside = self._wide.get(region) or self._given_inside(region, own)
        return Given(self._regions, self._given_narrow(), inside, region)

    def _given_inside(self, region: int, variables: np.ndarray) -> Inside:
        """P(x_v | x_S) of these variables of a region and the states of what is around it, for all its separators."""
        if region in self._wide:
            return self._wide[region]
        rows = RegionRows(self._tree, self._homes, self._regions, region, variables)
        below = self._upward(rows)
        made = Inside(rows.starts, self._downward(rows, below), rows.sizes)
        if len(variables) == len(self._regions.own[region]) and self._regions.wide_cells[region]:
            self._wide[region] = made
        return made

    def _upward(self, rows: RegionRows) -> dict[int, np.ndarray]:
        """Of each clique of a region what is below its separator, given that."""
        tree = self._tree
        below: dict[int, np.ndarray] = {}
        for k in rows.members:
            separator = tree.separator(k)
            moves = Moves(self._beliefs[k], tree.cliques[k], self._sizes)
            table = np.empty((rows.high[k] - rows.low[k], tree.n_cells(separator)))
            for child in rows.children(k):
                here = slice(rows.low[child] - rows.low[k], rows.high[child] - rows.low[k])
                table[here] = moves.move(below[child], tree.separator(child), separator)
            for axes in rows.sources[k]:
                at = rows.starts[axes] - rows.low[k]
                table[at : at + tree.n_cells(axes)] = moves.of_own(axes, separator)
            below[k] = table
        return below

    def _downward(self, rows: RegionRows, below: dict[int, np.ndarray]) -> dict[Axes, np.ndarray]:
        """Everything that has rows, given each separator in a region or around it."""
        tree, region = self._tree, rows.region
        given = {tree.separator(region): below[region]}
        for k in reversed(rows.members):
            targets = rows.around[k] | {tree.separator(child) for child in rows.children(k, empty=True)}
            targets -= given.keys()
            if not targets:
                continue
            moves = Moves(self._beliefs[k], tree.cliques[k], self._sizes)
            parts: dict[Axes, list[tuple[slice, np.ndarray]]] = defaultdict(list)
            for child in rows.children(k):
                parts[tree.separator(child)].append((slice(rows.low[child], rows.high[child]), below[child]))
            if k != region:
                separator = tree.separator(k)
                for beyond in (slice(0, rows.low[k]), slice(rows.high[k], rows.n_rows)):
                    if beyond.stop > beyond.start:
                        parts[separator].append((beyond, given[separator][beyond]))
            for target in targets:
                table = np.empty((rows.n_rows, tree.n_cells(target)))
                for source, some in parts.items():
                    for places, part in some:
                        table[places] = moves.move(part, source, target)
                for axes in rows.sources[k]:
                    table[rows.starts[axes] : rows.starts[axes] + tree.n_cells(axes)] = moves.of_own(axes, target)
                given[target] = table
        return given

    def _sources(self, k: int, variables: np.ndarray) -> dict[Axes, np.ndarray]:
        """Variables by the part of clique k that they depend on, given all of it."""
        inside = self._has[k, variables]
        sources: dict[Axes, list[np.ndarray]] = defaultdict(list)
        for i in variables[inside].tolist():
            sources[(i,)].append(np.array([i]))
        outside = variables[~inside]
        home = self._home[outside]
        under = (home >= self._homes.first[k]) & (home < k)
        sources[self._tree.separator(k)].append(outside[~under])
        for (child,), places in equal_rows(self._homes.child(k, home[under])[:, None]):
            sources[self._tree.separator(child)].append(outside[under][places])
        return {source: np.concatenate(parts) for source, parts in sources.items() if sum(map(len, parts))}

    def _at_clique(self, k: int, scopes: np.ndarray, places: np.ndarray, given: Given, stack: np.ndarray) -> None:
        """Sets that clique k separates."""
        sources = self._sources(k, np.unique(scopes[places]))
        axes = self._tree.cliques[k]
        if self._tree.n_cells(axes) <= _WHOLE:
            self._answer(self._beliefs[k], axes, sources, scopes, places, given, stack)
            return
        # A large clique: by what of it the sets depend on.
        number = np.zeros(len(self._sizes), dtype=np.int64)
        for place, some in enumerate(sources.values()):
            number[some] = place
        kinds, parts = list(sources), []
        for key, some in equal_rows(np.sort(number[scopes[places]], axis=1)):
            together = {a for place in key for a in kinds[place]}
            parts.append((tuple(a for a in axes if a in together), some))
        sums = table_sums(self._beliefs[k], axes, {part for part, _ in parts})
        for part, some in parts:
            self._answer(sums[part], part, sources, scopes, places[some], given, stack)

    def _answer(
        self,
        belief: np.ndarray,
        axes: Axes,
        sources: dict[Axes, np.ndarray],
        scopes: np.ndarray,
        places: np.ndarray,
        given: Given,
        stack: np.ndarray,
    ) -> None:
        """The products of the conditional matrices, summed over a (part of a) clique."""
        asked = scopes[places]
        flat, shape = belief.ravel(), belief.shape
        size = stack.shape[1:]
        n_cells = len(flat)

        def expanded(here: np.ndarray, states: int) -> np.ndarray:
            """P(x_i | x_M) of variables with so many states, of shape (variables, states, cells)."""
            wide, inside = np.empty((len(here), states, *shape)), np.empty(len(self._sizes), dtype=bool)
            for source, some in sources.items():
                inside[:] = False
                inside[some] = True
                chosen = inside[here]
                if chosen.any():
                    itself = len(some) == 1 and source == (some[0],)
                    own = np.eye(states) if itself else given.rows(here[chosen], source, states)
                    aligned = (length if a in source else 1 for a, length in zip(axes, shape, strict=True))
                    wide[chosen] = own.reshape(-1, states, *aligned)
            return wide.reshape(len(here), states, n_cells)

        by_column = []  # one array of all variables that are in a column of the sets
        for column in range(asked.shape[1]):
            here = np.unique(asked[:, column])
            by_column.append((np.searchsorted(here, asked[:, column]), expanded(here, size[column])))
        last, right = by_column[-1]
        heads = np.stack([index for index, _ in by_column[:-1]], axis=1)
        unique, which = np.unique(heads, axis=0, return_inverse=True)
        which = which.ravel()
        n_left, n_right = math.prod(size[:-1]), size[-1]
        flat_right = right.reshape(-1, n_cells)
        dense = len(asked) >= _SPARSE * len(unique) * len(right)
        order = np.argsort(which, kind="stable")
        per_chunk = max(1, _CHUNK // (n_left * max(n_cells, flat_right.shape[0] if dense else 1)))
        bounds = np.searchsorted(which[order], np.arange(0, len(unique) + per_chunk, per_chunk))
        for number, begin in enumerate(range(0, len(unique), per_chunk)):
            chunk = unique[begin : begin + per_chunk]
            left = by_column[0][1][chunk[:, 0]] * flat
            for column in range(1, heads.shape[1]):
                factor = by_column[column][1][chunk[:, column]]
                left = (left[:, :, None, :] * factor[:, None, :, :]).reshape(len(chunk), -1, n_cells)
            these = order[bounds[number] : bounds[number + 1]]
            if dense:
                product = (left.reshape(-1, n_cells) @ flat_right.T).reshape(len(chunk), n_left, len(right), n_right)
                made = product[which[these] - begin, :, last[these], :]
                stack[places[these]] = made.reshape(-1, *size)
            else:
                step = max(1, _CHUNK // (n_cells * (n_left + n_right)))
                for at in range(0, len(these), step):
                    some = these[at : at + step]
                    made = np.matmul(left[which[some] - begin], right[last[some]].transpose(0, 2, 1))
                    stack[places[some]] = made.reshape(-1, *size)


def _groups(rows: np.ndarray) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """Places of equal rows, with the row."""
    if len(rows) and (rows == rows[0]).all():
        return [(np.arange(len(rows)), tuple(rows[0].tolist()))]
    return [(places, key) for key, places in equal_rows(rows)]


def admissible(cliques: Cliques, scopes: Iterable[Scope], max_cells: int) -> list[Scope]:
    """Sets that a model can be given a table of while no clique of its junction tree exceeds `max_cells` cells.

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
    asked = list(scopes)
    fits = GrowingTree(cliques, max_cells).admits(asked, most_tries=len(asked))
    return [scope for scope, fit in zip(asked, fits, strict=True) if fit]


def largest_clique(cliques: Cliques, extra: Sequence[Sequence[int]] = ()) -> int:
    """Cells of the largest clique of the junction tree that covers the model and some further sets of variables."""
    tree = build_junction_tree(cliques, extra)
    return max(tree.n_cells(clique) for clique in tree.cliques)

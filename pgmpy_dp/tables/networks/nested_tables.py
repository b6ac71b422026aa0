"""The coordinates that overlapping tables share: one block for each set of variables inside any of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.analysis_of_variance import helmert

_WHOLE = 64
"""Cells of a table up to which it is mapped at once, and not axis by axis."""

MOST_DENSE = 512
"""States up to which a variable's maps are matrices; beyond, their products are taken in closed form."""

Product = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class AxisMap:
    """A square matrix of a variable with many states, by its products with arrays of shape (..., k, m)."""

    forward: Product
    transposed: Product


class Helmert:
    """Columns that are orthonormal under positive weights, the first of them constant: products without the matrix.

    Column j > 0 is ``-1`` on the states before j, ``P_j/w_j`` on j and 0 on those after it, times
    ``sqrt(w_j/(P_j (P_j + w_j)))``, P_j being the sum of the weights before j.

    Parameters
    ----------
    weights : ndarray of shape (k,)

    Attributes
    ----------
    sums, squares : ndarray of shape (k,)
        Of the entries of each column.

    Examples
    --------
    >>> columns = Helmert(np.array([0.5, 0.25, 0.25]))
    >>> columns.times(np.eye(3)).round(3)
    array([[ 1.   , -0.816, -0.577],
           [ 1.   ,  1.633, -0.577],
           [ 1.   ,  0.   ,  1.732]])
    >>> columns.sums.round(3), columns.transposed_times(np.ones((3, 1))).ravel().round(3)
    (array([3.   , 0.816, 0.577]), array([3.   , 0.816, 0.577]))
    """

    def __init__(self, weights: np.ndarray) -> None:
        before = np.cumsum(weights)[:-1]
        weight = weights[1:]
        self._constant = 1 / math.sqrt(before[-1] + weight[-1])
        self._scale = np.sqrt(weight / (before * (before + weight)))[:, None]
        self._step = (before / weight)[:, None]
        places, scale, step = np.arange(1, len(weights)), self._scale[:, 0], self._step[:, 0]
        self.sums = np.append(self._constant * len(weights), scale * (step - places))
        self.squares = np.append(self._constant**2 * len(weights), scale**2 * (step**2 + places))

    def times(self, x: np.ndarray) -> np.ndarray:
        """The matrix times an array of shape (..., k, m)."""
        scaled = self._scale * x[..., 1:, :]
        result = np.empty_like(x)
        result[..., :-1, :] = -np.flip(np.cumsum(np.flip(scaled, -2), -2), -2)
        result[..., -1, :] = 0.0
        result[..., 1:, :] += self._step * scaled
        return result + self._constant * x[..., :1, :]

    def transposed_times(self, x: np.ndarray) -> np.ndarray:
        """The transposed matrix times an array of shape (..., k, m)."""
        before = np.cumsum(x, -2)
        result = np.empty_like(x)
        result[..., 0, :] = self._constant * before[..., -1, :]
        result[..., 1:, :] = self._scale * (self._step * x[..., 1:, :] - before[..., :-1, :])
        return result


def maximal(cliques: Cliques) -> Cliques:
    """The tables that lie in no other one.

    Examples
    --------
    >>> maximal(Cliques(("a", "b"), (2, 2), (("a",), ("b",), ("b", "a")))).scopes
    (('b', 'a'),)
    """
    kept: list[int] = []
    covered: set[frozenset[int]] = set()
    for c in sorted(range(cliques.n_cliques), key=lambda c: -len(cliques.indices[c])):
        if frozenset(cliques.indices[c]) not in covered:
            kept.append(c)
            covered.update(map(frozenset, _subsets(cliques.indices[c])))
    return replace(cliques, scopes=tuple(cliques.scopes[c] for c in sorted(kept)))


def moved(theta: np.ndarray, cliques: Cliques, tables: Cliques) -> np.ndarray:
    """Log-potentials of the same model on other tables, each of which is added to one that holds it.

    Examples
    --------
    >>> nested = Cliques(("a", "b"), (2, 2), (("a",), ("b", "a")))
    >>> moved(np.array([10.0, 20.0, 1.0, 2.0, 3.0, 4.0]), nested, maximal(nested))
    array([11., 22., 13., 24.])
    """
    holding: list[set[int]] = [set() for _ in tables.variables]
    for number, scope in enumerate(tables.indices):
        for i in scope:
            holding[i].add(number)
    result = [np.zeros(shape) for shape in tables.shapes]
    for scope, table in zip(cliques.indices, cliques.split(theta), strict=True):
        home = min(set.intersection(*(holding[i] for i in scope)))
        axes = [i for i in tables.indices[home] if i in scope]
        shape = [tables.cardinalities[i] if i in scope else 1 for i in tables.indices[home]]
        result[home] += table.transpose([scope.index(i) for i in axes]).reshape(shape)
    return tables.join(result)


class AxisMaps:
    """Tables to which each axis is mapped by a square matrix of its variable.

    Parameters
    ----------
    cliques : Cliques
    matrices : sequence of ndarray of shape (k, k) or AxisMap
        One for each variable, an `AxisMap` if and only if it has more than `MOST_DENSE` states.

    Examples
    --------
    >>> maps = AxisMaps(Cliques(("a",), (2,), (("a",),)), [np.array([[1.0, 1.0], [0.0, 1.0]])])
    >>> maps.forward(np.array([1.0, 2.0])), maps.transposed(np.array([1.0, 2.0]))
    (array([3., 2.]), array([1., 3.]))
    """

    def __init__(self, cliques: Cliques, matrices: Sequence[np.ndarray | AxisMap]) -> None:
        same: dict[tuple[int, ...], list[int]] = {}
        for c, shape in enumerate(cliques.shapes):
            same.setdefault(shape, []).append(c)
        self._groups = []
        for shape, members in same.items():
            size = math.prod(shape)
            cells = np.array([cliques.slices[c].start for c in members])[:, None] + np.arange(size)
            axes: list[Any] = [[matrices[cliques.indices[c][axis]] for c in members] for axis in range(len(shape))]
            stacks = [maps if k > MOST_DENSE else np.stack(maps) for k, maps in zip(shape, axes, strict=True)]
            if size <= _WHOLE:  # Kronecker products
                whole = stacks[0]
                for stack in stacks[1:]:
                    k = whole.shape[1] * stack.shape[1]
                    whole = (whole[:, :, None, :, None] * stack[:, None, :, None, :]).reshape(-1, k, k)
                stacks, shape = [whole], (size,)
            self._groups.append((cells, shape, stacks))

    def forward(self, flat: np.ndarray) -> np.ndarray:
        """The mapped tables, shape (n_cells,)."""
        return self._mapped(flat, False)

    def transposed(self, flat: np.ndarray) -> np.ndarray:
        """The tables mapped by the transposed matrices."""
        return self._mapped(flat, True)

    def _mapped(self, flat: np.ndarray, transpose: bool) -> np.ndarray:
        out = np.empty_like(flat)
        for cells, shape, stacks in self._groups:
            table, before, after = flat[cells], 1, cells.shape[1]
            for size, stack in zip(shape, stacks, strict=True):
                after //= size
                if size > MOST_DENSE:
                    table = table.reshape(-1, before, size, after)
                    products = [axis_map.transposed if transpose else axis_map.forward for axis_map in stack]
                    table = np.stack([product(part) for product, part in zip(products, table, strict=True)])
                    before *= size
                    continue
                matrix = stack.transpose(0, 2, 1) if transpose else stack
                if after == 1:
                    table = table.reshape(-1, before, size) @ matrix.transpose(0, 2, 1)
                else:
                    table = matrix[:, None] @ table.reshape(-1, before, size, after)
                before *= size
            out[cells] = table.reshape(cells.shape)
        return out


class NestedTables:
    """The interactions of tables.

    A table of variables e is the sum of its interactions, one for each set J of variables inside e, and they are
    orthogonal to one another. In orthonormal contrasts the interaction J of the marginal of e is ``sqrt(k_J/k_e)``
    times that of the marginal of J, k being numbers of cells: all tables that hold J speak of the same numbers, its
    *coordinates*.

    Parameters
    ----------
    cliques : Cliques
    known : NestedTables, optional
        Of tables that these lie in: coordinates are numbered as there.

    Attributes
    ----------
    n_coordinates : int
        Coordinates of all non-empty sets, one block after the other.
    place : ndarray of int, shape (n_cells,)
        The coordinate that each effect of each table belongs to; `n_coordinates` for a table's mean.
    share : ndarray of shape (n_cells,)
        ``sqrt(k_J/k_e)``.
    home : ndarray of int, shape (n_coordinates,)
        The first effect that belongs to each coordinate; not with `known`.

    Examples
    --------
    >>> pair = NestedTables(Cliques(("a", "b"), (2, 2), (("a", "b"),)))
    >>> single = NestedTables(Cliques(("a", "b"), (2, 2), (("a",),)), pair)
    >>> pair.n_coordinates, single.place.tolist()
    (3, [3, 0])
    >>> round(float((pair.effects(np.array([0.1, 0.2, 0.3, 0.4])) / pair.share)[pair.home[0]]), 3)
    0.283
    >>> single.effects(np.array([0.3, 0.7])).round(3)
    array([0.707, 0.283])
    """

    def __init__(self, cliques: Cliques, known: NestedTables | None = None) -> None:
        self.starts: dict[tuple[int, ...], int] = {} if known is None else known.starts
        n: int = 0 if known is None else known.n_coordinates
        self.place, self.share = np.full(cliques.n_cells, -1), np.empty(cliques.n_cells)
        layouts: dict[tuple[tuple[int, ...], tuple[int, ...]], list] = {}
        for part, scope, shape in zip(cliques.slices, cliques.indices, cliques.shapes, strict=True):
            order = tuple(np.argsort(scope).tolist())
            if (shape, order) not in layouts:
                layouts[shape, order] = _layout(shape, order)
            for axes, cells, share in layouts[shape, order]:
                self.share[part.start + cells] = share
                if not axes:
                    continue
                block = tuple(scope[axis] for axis in axes)
                if block not in self.starts:
                    self.starts[block] = n
                    n += len(cells)
                self.place[part.start + cells] = self.starts[block] + np.arange(len(cells))
        assert known is None or n == known.n_coordinates, "these tables do not lie in the known ones"
        self.n_coordinates: int = n
        self.place[self.place < 0] = n
        self.home = np.unique(self.place, return_index=True)[1][:n]
        self._maps = AxisMaps(cliques, [_effects_of(k) for k in cliques.cardinalities])

    def effects(self, flat: np.ndarray) -> np.ndarray:
        """Each table in orthonormal contrasts, shape (n_cells,)."""
        return self._maps.forward(flat)

    def tables(self, effects: np.ndarray) -> np.ndarray:
        """The tables of which these are the effects, shape (n_cells,)."""
        return self._maps.transposed(effects)

    def collected(self, effects: np.ndarray) -> np.ndarray:
        """The sum of the effects that belong to each coordinate, shape (n_coordinates,)."""
        return np.bincount(self.place, effects, self.n_coordinates + 1)[:-1]

    def spread(self, coordinates: np.ndarray) -> np.ndarray:
        """The coordinate that each effect belongs to, shape (n_cells,); 0 for means."""
        return np.append(coordinates, 0.0)[self.place]

    def at_home(self, coordinates: np.ndarray) -> np.ndarray:
        """Effects that are these coordinates in the first table that has each, and 0 in the others."""
        effects = np.zeros(len(self.place))
        effects[self.home] = coordinates
        return effects


def orthonormal(size: int) -> np.ndarray:
    """Orthonormal columns, the first of them constant, shape (size, size).

    Examples
    --------
    >>> orthonormal(2).round(3)
    array([[ 0.707, -0.707],
           [ 0.707,  0.707]])
    """
    return np.concatenate([np.ones((size, 1)), helmert(size)], axis=1) / math.sqrt(size)


def _effects_of(size: int) -> np.ndarray | AxisMap:
    """The map to orthonormal contrasts."""
    if size <= MOST_DENSE:
        return orthonormal(size).T
    columns = Helmert(np.ones(size))
    return AxisMap(columns.transposed_times, columns.times)


def _layout(shape: tuple[int, ...], order: tuple[int, ...]) -> list[tuple[tuple[int, ...], np.ndarray, float]]:
    """Lay out the interaction of each set of axes: the axes by variable, its cells in their order, and its share."""
    cells = np.arange(math.prod(shape)).reshape(shape)
    result = []
    for axes in _subsets(order):
        block = cells[tuple(slice(1, None) if axis in axes else 0 for axis in range(len(shape)))]
        ascending = sorted(axes)
        if block.size:
            share = math.sqrt(math.prod(shape[axis] for axis in axes) / cells.size)
            result.append((axes, block.transpose([ascending.index(axis) for axis in axes]).ravel(), share))
    return result


def _subsets(items: Sequence[int]) -> list[tuple[int, ...]]:
    return [some for count in range(len(items) + 1) for some in itertools.combinations(items, count)]

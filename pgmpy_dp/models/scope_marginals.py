"""Marginals of thousands of small sets of variables at once, and which sets a model can be given a table of.

Any one, two or three variables are independent given the clique of the junction tree where the paths between their
cliques meet. So once it is known what each variable looks like given each separator, the marginal of a set is one small
product of matrices at one clique, and sets that meet at one place share it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pgmpy_dp.models.belief_propagation import SumProduct
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.junction_tree import build_junction_tree

if TYPE_CHECKING:
    from pgmpy_dp.models.posterior import Posterior

__all__ = ["Scope", "ScopeMarginals", "admissible", "largest_clique", "tables_of_draws"]

Scope = tuple[int, ...]
"""Positions of variables, in ascending order."""

_MOST_MEETING = 3


class ScopeMarginals:
    """Probabilities of any sets of variables under a log-linear model.

    Parameters
    ----------
    cliques : Cliques
    theta : ndarray of shape (n_cells,)
        Log-potentials.
    engine : SumProduct, optional
        Of `cliques`; it is calibrated here.

    Examples
    --------
    >>> chain = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    >>> same = np.log([0.9, 0.1, 0.1, 0.9])
    >>> ScopeMarginals(chain, np.concatenate([same, same])).tables([(0, 2)])[0].round(2)
    array([[0.41, 0.09],
           [0.09, 0.41]])
    """

    def __init__(self, cliques: Cliques, theta: np.ndarray, engine: SumProduct | None = None) -> None:
        self.cliques, self.theta = cliques, theta
        engine = SumProduct(cliques) if engine is None else engine
        engine.calibrate(theta)
        tree = engine.plan.tree
        self._sizes, self._axes, self._parents = tree.cardinalities, tree.cliques, tree.parents
        self._separators = [tree.separator(k) for k in range(len(tree.cliques))]
        count = len(tree.cliques)
        self._joint: list[np.ndarray] = [np.empty(0)] * count
        for (residual, separator, table), k in zip(engine.conditionals(), reversed(range(count)), strict=True):
            above = self._reduced(tree.parents[k], separator).ravel() if tree.parents[k] >= 0 else np.ones(1)
            self._joint[k] = (table * above).reshape([self._sizes[i] for i in (*residual, *separator)])
        self._home = {i: k for k, axes in enumerate(tree.cliques) for i in axes[: tree.n_residual[k]]}
        self._depth = [0] * count
        for k in reversed(range(count)):
            self._depth[k] = self._depth[tree.parents[k]] + 1 if tree.parents[k] >= 0 else 0
        self._given: dict[tuple[int, int], tuple[dict[int, slice], np.ndarray]] = {}
        self._known: dict[Scope, np.ndarray] = {}

    def tables(self, scopes: Sequence[Scope]) -> list[np.ndarray]:
        """Probabilities of each set of variables, axes in its order."""
        groups: dict[tuple, list[Scope]] = {}
        for scope in dict.fromkeys(scopes):
            if scope not in self._known:
                groups.setdefault(self._meeting(scope), []).append(scope)
        for (clique, inside, ports), members in groups.items():
            if clique < 0:
                self._by_elimination(members)
            else:
                self._at(clique, inside, ports, members)
        return [self._known[scope] for scope in scopes]

    def _meeting(self, scope: Scope) -> tuple[int, Scope, tuple[int, ...]]:
        """The clique between all variables of a set, which of them it has, and its neighbours towards the others."""
        homes = [self._home[i] for i in scope]
        if len(scope) > _MOST_MEETING:
            clique = max(homes)
            if all(set(scope) <= set(axes) for axes in (self._axes[min(homes)],)):
                return min(homes), scope, ()
            return -1, (), ()
        meets = [self._above(a, b) for a, b in itertools.combinations(homes, 2)]
        clique = max(meets, key=self._depth.__getitem__, default=homes[0])
        inside = tuple(i for i in scope if i in self._axes[clique])
        ports = {self._towards(clique, self._home[i]) for i in scope if i not in inside}
        return clique, inside, tuple(sorted(ports))

    def _above(self, a: int, b: int) -> int:
        """The lowest common ancestor of two cliques."""
        while a != b:
            if self._depth[a] < self._depth[b]:
                a, b = b, a
            a = self._parents[a]
        return a

    def _towards(self, start: int, end: int) -> int:
        """The neighbour of a clique on the path to another."""
        while self._depth[end] > self._depth[start] + 1:
            end = self._parents[end]
        return end if self._parents[end] == start else self._parents[start]

    def _reduced(self, clique: int, keep: Sequence[int]) -> np.ndarray:
        """The marginal of some variables of a clique, axes in their order."""
        axes = self._axes[clique]
        table = self._joint[clique].sum(axis=tuple(place for place, i in enumerate(axes) if i not in keep))
        left = [i for i in axes if i in keep]
        return table.transpose([left.index(i) for i in keep])

    def _between(self, one: int, other: int) -> Scope:
        return self._separators[one if self._parents[one] == other else other]

    def _behind(self, clique: int, port: int) -> tuple[dict[int, slice], np.ndarray]:
        """P(x_i | separator) of all variables behind a neighbour, columns of a matrix with a row per separator cell."""
        if (clique, port) in self._given:
            return self._given[clique, port]
        separator = self._between(clique, port)
        columns, parts, end = {}, [], 0
        own = [i for i in self._axes[port] if i not in separator]
        weights = self._reduced(port, separator).ravel()
        inverse = np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 1e-300)[:, None]
        for i in own:
            part = self._reduced(port, (*separator, i)).reshape(len(weights), -1) * inverse
            parts.append(part)
            columns[i] = slice(end, end := end + part.shape[1])
        neighbours = [k for k, parent in enumerate(self._parents) if parent == port]
        neighbours += [self._parents[port]] if self._parents[port] >= 0 else []
        for neighbour in neighbours:
            if neighbour == clique:
                continue
            inner, table = self._behind(port, neighbour)
            link = self._between(port, neighbour)
            union = (*separator, *(i for i in link if i not in separator))
            joint = self._reduced(port, union).ravel()
            to_own, to_link = self._cells(union, separator), self._cells(union, link)
            transfer = np.zeros((len(weights), len(table)))
            transfer[to_own, to_link] = joint
            parts.append((transfer * inverse) @ table)
            columns |= {i: slice(part.start + end, part.stop + end) for i, part in inner.items()}
            end += table.shape[1]
        found = columns, np.hstack(parts)
        self._given[clique, port] = found
        return found

    def _cells(self, union: Scope, part: Scope) -> np.ndarray:
        """For each cell of a set of variables, in C order, the cell of a part of them."""
        strides, step = {}, 1
        for i in reversed(part):
            strides[i], step = step, step * self._sizes[i]
        index = np.zeros([self._sizes[i] for i in union], dtype=np.intp)
        for place, i in enumerate(union):
            if i in strides:
                shape = [1] * len(union)
                shape[place] = -1
                index += (strides[i] * np.arange(self._sizes[i])).reshape(shape)
        return index.ravel()

    def _at(self, clique: int, inside: Scope, ports: tuple[int, ...], members: list[Scope]) -> None:
        """Sets that meet at a clique with the same variables inside it, and the others behind the same neighbours."""
        links = [self._between(clique, port) for port in ports]
        rest = tuple(dict.fromkeys(i for link in links for i in link if i not in inside))
        union = (*inside, *rest)
        shape = math.prod(self._sizes[i] for i in inside), math.prod(self._sizes[i] for i in rest)
        product = self._reduced(clique, union).reshape(*shape, 1)
        needed = {i for scope in members for i in scope}
        places: dict[int, tuple[int, slice]] = {}
        for port, link in zip(ports, links, strict=True):
            columns, table = self._behind(clique, port)
            used = [i for i in columns if i in needed]
            end = 0
            for i in used:
                places[i] = port, slice(end, end := end + self._sizes[i])
            chosen = np.concatenate([np.arange(columns[i].start, columns[i].stop) for i in used])
            given = table[self._cells(union, link)][:, chosen].reshape(*shape, -1)
            last = port == ports[-1]
            if last:  # sums over the cells of the separators
                product = np.matmul(product.transpose(0, 2, 1), given)[:, None]
            else:
                product = (product[:, :, :, None] * given[:, :, None, :]).reshape(*shape, -1)
        widths = [1 + max(part.stop for p, part in places.values() if p == port) - 1 for port in ports]
        product = np.maximum(product, 0.0).reshape(*(self._sizes[i] for i in inside), *widths)
        for scope in members:
            outside = sorted((i for i in scope if i not in inside), key=lambda i: ports.index(places[i][0]))
            table = product[(..., *(places[i][1] for i in outside))] if outside else product
            order = (*inside, *outside)
            self._known[scope] = table.transpose([order.index(i) for i in scope])

    def _by_elimination(self, scopes: list[Scope]) -> None:
        """Sets of more than three variables, in no clique together: one at a time."""
        for scope in scopes:
            engine = SumProduct(self.cliques, [scope])
            table = engine.calibrate(self.theta)[0][self.cliques.n_cells :]
            self._known[scope] = table.reshape([self._sizes[i] for i in scope])


def tables_of_draws(posterior: Posterior, scopes: Sequence[Scope]) -> list[np.ndarray]:
    """Probabilities of many small sets of variables under each draw of a posterior.

    Parameters
    ----------
    posterior : Posterior
    scopes : sequence of tuple of int

    Returns
    -------
    list of ndarray of shape (n_draws, cardinalities of the set...)
    """
    engine = SumProduct(posterior.cliques, memory_limit=posterior.memory_limit)
    draws = [ScopeMarginals(posterior.cliques, theta, engine).tables(scopes) for theta in posterior.theta]
    return [np.array(tables) for tables in zip(*draws, strict=True)]


def admissible(cliques: Cliques, scopes: Iterable[Scope], max_cells: int) -> list[Scope]:
    """Sets that a model can be given a table of while no clique of its junction tree exceeds `max_cells` cells.

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
    tree = build_junction_tree(cliques)
    bags = [frozenset(clique) for clique in tree.cliques]
    holding = [{k for k, bag in enumerate(bags) if i in bag} for i in range(len(cliques.variables))]
    largest, sizes = max(tree.n_cells(clique) for clique in tree.cliques), cliques.cardinalities

    def fits(scope: Scope) -> bool:
        # With all but one of its variables put into every clique it is a junction tree of the grown model.
        if set.intersection(*(holding[i] for i in scope)):
            return True
        cells = [sizes[i] for i in scope]
        if largest * math.prod(cells) // max(cells) <= max_cells:
            return True
        return math.prod(cells) <= max_cells and largest_clique(cliques, [scope]) <= max_cells

    return [scope for scope in scopes if fits(scope)]


def largest_clique(cliques: Cliques, extra: Sequence[Sequence[int]] = ()) -> int:
    """Cells of the largest clique of the junction tree that covers the model and some further sets of variables."""
    tree = build_junction_tree(cliques, extra)
    return max(tree.n_cells(clique) for clique in tree.cliques)

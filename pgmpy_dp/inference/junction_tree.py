"""Junction trees by the min-fill and min-degree heuristics, and the cost of inference on them.

Everything here is combinatorial: nothing of the size of a table is allocated, so a model
that is too large is refused, with its exact cost, before any memory is taken.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.shown import quantity

DEFAULT_MEMORY_LIMIT = 2**31
"""Bytes that exact inference may take unless the caller says otherwise (2 GiB)."""

_LARGE = 2**16
"""Cells of a tree from which on a third one is tried."""


class InferenceTooLarge(ValueError):
    """Exact inference would need more memory than the caller allows."""


@dataclass(frozen=True)
class InferenceSize:
    """The cost of exact inference on a junction tree.

    Attributes
    ----------
    width : int
        Variables in the largest clique, less one.
    n_cliques : int
        Number of maximal cliques.
    largest_clique : tuple of hashable
        Names of the variables of the clique with the most cells.
    cells : int
        Cells of all clique tables together.
    memory_bytes : int
        Bytes of all arrays that one calibration and one directional derivative allocate.
    """

    width: int
    n_cliques: int
    largest_clique: tuple[Hashable, ...]
    cells: int
    memory_bytes: int

    def __str__(self) -> str:
        return (
            f"width {self.width}, {quantity(self.n_cliques, 'clique')}, {quantity(self.cells, 'cell')}, "
            f"{self.memory_bytes / 2**20:,.1f} MiB; largest clique {self.largest_clique!r}"
        )

    def require(self, memory_limit: int) -> None:
        """Raise InferenceTooLarge where the memory exceeds `memory_limit` bytes."""
        if self.memory_bytes > memory_limit:
            raise InferenceTooLarge(
                f"exact inference needs {self.memory_bytes:,} bytes, over memory_limit={memory_limit:,} ({self}). "
                "Remove edges of the graph, merge states of the largest clique, pass a larger memory_limit, or accept "
                'approximate inference: inference="loopy" or "auto"'
            )


@dataclass(frozen=True)
class JunctionTree:
    """A rooted junction tree over variable indices; a parent comes after its children.

    Components of the graph are joined by empty separators.

    Attributes
    ----------
    cardinalities : tuple of int
        Number of states of each variable.
    cliques : tuple of tuple of int
        Variables of each clique: first those that are not in its parent (the residual),
        then the separator, in the order in which the parent has them.
    n_residual : tuple of int
        How many variables of each clique are residual.
    parents : tuple of int
        Index of each clique's parent; -1 for the root, which is last.
    homes : tuple of int
        For each requested scope, the clique nearest to the root that contains it.
    """

    cardinalities: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    n_residual: tuple[int, ...]
    parents: tuple[int, ...]
    homes: tuple[int, ...]

    def separator(self, clique: int) -> tuple[int, ...]:
        """Variables that a clique shares with its parent."""
        return self.cliques[clique][self.n_residual[clique] :]

    def n_cells(self, axes: Iterable[int]) -> int:
        """Number of joint states of some variables."""
        return math.prod(self.cardinalities[i] for i in axes)

    def with_homes(self, scopes: Sequence[Sequence[int]]) -> JunctionTree:
        """The same tree with homes for other scopes, each of which must lie in a clique."""
        # The clique nearest to the root that holds a variable is where it is residual; of a scope,
        # the deepest of those: cliques come after their children, so it is the first in the order.
        count = len(self.cliques)
        # What is residual nowhere is in every separator, up to the root's.
        residual_at = {i: k for k in range(count) for i in self.cliques[k][: self.n_residual[k]]}
        homes = tuple(min((residual_at.get(i, count - 1) for i in scope), default=count - 1) for scope in scopes)
        assert all(set(self.cliques[home]).issuperset(scope) for home, scope in zip(homes, scopes, strict=True))
        return replace(self, homes=homes)

    @property
    def cells(self) -> int:
        """Cells of all clique tables together."""
        return sum(self.n_cells(clique) for clique in self.cliques)


class Homes:
    """The places of variables in a junction tree, and which cliques are below which.

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
        """The children of a clique whose subtrees have these cliques below it."""
        children = np.array(self.children[k], dtype=np.int64)
        return children[np.searchsorted(children, below)]

    def meeting(self) -> np.ndarray:
        """The lowest clique that is above or at both of any two, shape (n_cliques, n_cliques)."""
        count = len(self._parents)
        lowest = np.empty((count, count), dtype=np.int32)
        for k in reversed(range(count)):  # parents come first
            parent = self._parents[k]
            if parent >= 0:
                lowest[k, k + 1 :] = lowest[parent, k + 1 :]
                lowest[k + 1 :, k] = lowest[parent, k + 1 :]
            lowest[k, k] = k
        return lowest

    def above(self, k: int) -> list[int]:
        """A clique and those above it, up to the root."""
        path = [k]
        while self._parents[path[-1]] >= 0:
            path.append(self._parents[path[-1]])
        return path


def median(meeting: np.ndarray, cliques: np.ndarray) -> np.ndarray:
    """The clique on all three ways between three cliques, of shape (n, 3), by `Homes.meeting` of the tree."""
    a, b, c = cliques.T
    # Of the three pairwise meetings two are the same and the third, the median, is not above them.
    return np.minimum(np.minimum(meeting[a, b], meeting[a, c]), meeting[b, c])


def build_junction_tree(cliques: Cliques, extra: Sequence[Sequence[int]] = ()) -> JunctionTree:
    """The smallest of the min-fill, the min-degree and, for large ones, the Cuthill-McKee tree that covers all scopes.

    Parameters
    ----------
    cliques : Cliques
        Model whose scopes must each be inside one clique of the tree.
    extra : sequence of sequence of int
        Further sets of variable indices that must be inside one clique, as for a query.

    Returns
    -------
    JunctionTree
        Deterministic: it depends on the order of variables and scopes alone.
    """
    scopes = [*cliques.indices, *(tuple(scope) for scope in extra)]
    if not cliques.variables:
        return JunctionTree((), ((),), (0,), (-1,), (0,) * len(scopes))
    near: _Graph = {i: set() for i in range(len(cliques.variables))}
    for scope in scopes:
        for u, v in itertools.permutations(scope, 2):
            near[u].add(v)

    def tree(choose: Callable[[_Graph], int | None]) -> JunctionTree:
        return rooted(_bag_tree(*_eliminated(near, choose)), cliques.cardinalities, scopes)

    trees = [tree(_least_fill), tree(_least_degree(near))]
    fewest = min(candidate.cells for candidate in trees)
    if fewest >= _LARGE:
        trees.append(tree(_from_end_to_end(near, cliques.cardinalities, fewest)))
    return min(trees, key=lambda candidate: candidate.cells)


class BagTree:
    """A tree of numbered bags of variables; the neighbours of each are in the order in which they were joined."""

    def __init__(self) -> None:
        self.bags: dict[int, frozenset[int]] = {}
        self.links: dict[int, dict[int, None]] = {}

    def add(self, node: int, bag: frozenset[int]) -> None:
        """Add a bag without neighbours."""
        self.bags[node], self.links[node] = bag, {}

    def join(self, one: int, other: int) -> None:
        """Make two bags neighbours."""
        self.links[one][other] = self.links[other][one] = None

    def fold(self, node: int, host: int) -> None:
        """Give the neighbours of a bag to one of them, and drop it."""
        for other in list(self.links[node]):
            if other != host:
                self.join(host, other)
            del self.links[other][node]
        del self.links[node], self.bags[node]


_Graph = dict[int, set[int]]


def _least_fill(near: _Graph) -> int | None:
    """The node whose elimination adds the fewest edges, the least degree first; None if all nodes are joined.

    Node by node, from the least degree up: the first that adds none is taken.
    """
    order = sorted(near, key=lambda node: len(near[node]))
    if not order or len(near[order[0]]) == len(near) - 1:
        return None
    best, least = None, math.inf
    for node in order:
        fill = 0  # of both directions
        for other in near[node]:
            fill += len(near[node] - near[other]) - 1
            if fill >= least:
                break
        if fill < least:
            best, least = node, fill
        if least == 0:
            break
    return best


def _least_degree(start: _Graph) -> Callable[[_Graph], int | None]:
    """A function that chooses a node of the least degree, among equal ones the one that has had it longest."""
    age = itertools.count()
    queue = [(len(others), next(age), node) for node, others in start.items()]
    heapq.heapify(queue)
    changed: set[int] = set()

    def choose(near: _Graph) -> int | None:
        nonlocal changed
        for node in changed:
            heapq.heappush(queue, (len(near[node]), next(age), node))
        while queue:
            degree, _, node = heapq.heappop(queue)
            if node in near and len(near[node]) == degree:  # else what it had before
                changed = near[node]
                return node if degree < len(near) - 1 else None
        return None

    return choose


def _from_end_to_end(start: _Graph, cardinalities: Sequence[int], most: int) -> Callable[[_Graph], int | None]:
    """A function that chooses a grid's nodes diagonal by diagonal (Cuthill-McKee), until a clique has `most` cells.

    The other rules go inward from all sides, and meet in one very large clique.
    """
    import networkx as nx  # for large trees alone: a query to a model does without it

    nodes = nx.utils.cuthill_mckee_ordering(nx.from_dict_of_lists(start))

    def choose(near: _Graph) -> int | None:
        node = next(nodes)
        cells = math.prod(cardinalities[i] for i in (node, *near[node]))
        return node if cells < most and len(near[node]) < len(near) - 1 else None

    return choose


def _eliminated(
    graph: _Graph, choose: Callable[[_Graph], int | None]
) -> tuple[list[tuple[int, set[int]]], frozenset[int]]:
    """Eliminate nodes as `choose` says; return each with its neighbours, which are joined, and the nodes left."""
    near = {node: set(others) - {node} for node, others in graph.items()}
    order = []
    while (node := choose(near)) is not None:
        for one, other in itertools.permutations(near[node], 2):
            near[one].add(other)
        for other in near[node]:
            near[other].remove(node)
        order.append((node, near.pop(node)))
    return order, frozenset(near)


def _bag_tree(order: list[tuple[int, set[int]]], rest: frozenset[int]) -> BagTree:
    """A tree of bags: each node with its neighbours, from the last up, next to the first bag that holds these."""
    bags = [rest]
    parents = []
    for node, others in reversed(order):
        parents.append(next((k for k, bag in enumerate(bags) if others <= bag), 0))
        bags.append(frozenset(others | {node}))
    tree = BagTree()
    numbers = {bag: number for number, bag in enumerate(sorted(bags, key=sorted))}
    for bag, number in numbers.items():
        tree.add(number, bag)
    for parent, child in sorted(zip(parents, itertools.count(1), strict=False)):
        tree.join(numbers[bags[parent]], numbers[bags[child]])
    return tree


def _merged(tree: BagTree) -> BagTree:
    """Merge each bag that lies inside a neighbouring one, so that only maximal cliques stay."""
    for node in sorted(tree.bags, reverse=True):
        host = next((other for other in sorted(tree.links[node]) if tree.bags[node] <= tree.bags[other]), None)
        if host is not None:
            tree.fold(node, host)
    return tree


def rooted(tree: BagTree, cardinalities: tuple[int, ...], scopes: Sequence[Sequence[int]] = ()) -> JunctionTree:
    """Turn a tree of bags into a junction tree; bags inside a neighbouring one are merged into it.

    Orients the tree, orders the axes of each clique, and gives each scope its home.
    """
    tree = _merged(tree)
    predecessor: dict[int, int] = {}
    preorder, pending = [], [min(tree.bags)]
    while pending:
        preorder.append(pending.pop())
        below = [other for other in tree.links[preorder[-1]] if other != predecessor.get(preorder[-1])]
        predecessor |= dict.fromkeys(below, preorder[-1])
        pending += below[::-1]
    layout: dict[int, tuple[int, ...]] = {}
    n_residual: dict[int, int] = {}
    for node in preorder:
        bag = tree.bags[node]
        above = layout[predecessor[node]] if node in predecessor else ()
        separator = tuple(i for i in above if i in bag)
        residual = tuple(sorted(bag.difference(separator)))
        layout[node] = residual + separator
        n_residual[node] = len(residual)
    order = preorder[::-1]
    number = {node: k for k, node in enumerate(order)}
    made = JunctionTree(
        cardinalities,
        tuple(layout[node] for node in order),
        tuple(n_residual[node] for node in order),
        tuple(number[predecessor[node]] if node in predecessor else -1 for node in order),
        (),
    )
    return made.with_homes(scopes)

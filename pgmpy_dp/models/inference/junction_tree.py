"""Junction trees by the min-fill and min-degree heuristics, and what inference on them will cost.

Everything here is combinatorial: nothing of the size of a table is allocated, so a model
that is too large is refused, with its exact cost, before any memory is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import networkx as nx
from networkx.algorithms.approximation import treewidth_min_degree, treewidth_min_fill_in

from pgmpy_dp.models.cliques import Cliques

__all__ = ["DEFAULT_MEMORY_LIMIT", "InferenceSize", "InferenceTooLarge", "JunctionTree", "build_junction_tree"]

DEFAULT_MEMORY_LIMIT = 2**31
"""Bytes that exact inference may take unless the caller says otherwise (2 GiB)."""


class InferenceTooLarge(ValueError):
    """Exact inference would need more memory than the caller allows."""


@dataclass(frozen=True)
class InferenceSize:
    """What exact inference on a junction tree costs.

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
            f"width {self.width}, {self.n_cliques} cliques, {self.cells:,} cells, "
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
        residual_at = {i: k for k in range(count) for i in self.cliques[k][: self.n_residual[k]]}
        homes = tuple(min((residual_at[i] for i in scope), default=count - 1) for scope in scopes)
        assert all(set(self.cliques[home]).issuperset(scope) for home, scope in zip(homes, scopes, strict=True))
        return replace(self, homes=homes)

    @property
    def cells(self) -> int:
        """Cells of all clique tables together."""
        return sum(self.n_cells(clique) for clique in self.cliques)


def build_junction_tree(cliques: Cliques, extra: Sequence[Sequence[int]] = ()) -> JunctionTree:
    """The smaller of the min-fill and the min-degree junction tree that covers all scopes.

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
    # Integers, added in order: networkx breaks ties by set order, which for strings changes between runs.
    graph = nx.Graph()
    graph.add_nodes_from(range(len(cliques.variables)))
    for scope in scopes:
        graph.add_edges_from(itertools.combinations(scope, 2))
    if len(graph) == 0:
        return JunctionTree((), ((),), (0,), (-1,), (0,) * len(scopes))
    trees = []
    for heuristic in (treewidth_min_fill_in, treewidth_min_degree):
        _, decomposition = heuristic(graph)
        trees.append(_rooted(_contracted(decomposition), cliques.cardinalities, scopes))
    return min(trees, key=lambda tree: tree.cells)


def _contracted(decomposition: nx.Graph) -> nx.Graph:
    """Merge each bag that lies inside a neighbouring one, so that only maximal cliques stay."""
    tree = nx.Graph()
    names = {bag: i for i, bag in enumerate(sorted(decomposition.nodes, key=sorted))}
    for bag, i in names.items():
        tree.add_node(i, bag=bag)
    tree.add_edges_from((names[u], names[v]) for u, v in decomposition.edges)
    return _merged(tree)


def _merged(tree: nx.Graph) -> nx.Graph:
    pending = sorted(tree.nodes)
    while pending:
        node = pending.pop()
        bag = tree.nodes[node]["bag"]
        host = next((other for other in sorted(tree[node]) if bag <= tree.nodes[other]["bag"]), None)
        if host is not None:
            tree.add_edges_from((host, other) for other in tree[node] if other != host)
            tree.remove_node(node)
    return tree


def rooted(tree: nx.Graph, cardinalities: tuple[int, ...], scopes: Sequence[Sequence[int]] = ()) -> JunctionTree:
    """A junction tree from one whose nodes are numbers with the attribute ``bag``, a frozenset of variables.

    Bags inside a neighbouring one are merged into it.
    """
    return _rooted(_merged(tree), cardinalities, scopes)


def _rooted(tree: nx.Graph, cardinalities: tuple[int, ...], scopes: Sequence[Sequence[int]]) -> JunctionTree:
    """Orient the tree, order the axes of each clique, and give each scope its home."""
    root = min(tree.nodes)
    preorder = list(nx.dfs_preorder_nodes(tree, root))
    predecessor = dict(nx.dfs_predecessors(tree, root))
    layout: dict[int, tuple[int, ...]] = {}
    n_residual: dict[int, int] = {}
    for node in preorder:
        bag = tree.nodes[node]["bag"]
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

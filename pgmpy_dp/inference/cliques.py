"""The layout of a log-linear model: which tables it has and where they lie in one flat vector."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Cliques:
    """Variables, their cardinalities, and the scopes of the tables of a log-linear model.

    A parameter, a count or a marginal vector of the model is one flat array of
    ``n_cells`` numbers: the tables of the scopes one after the other, each in C order
    with its axes in the order of its scope.

    Parameters
    ----------
    variables : tuple of hashable
        Names of all variables of the model; a variable may be in no scope.
    cardinalities : tuple of int
        Number of states of each variable, in the same order.
    scopes : tuple of tuple of hashable
        The variables of each table; nested and repeated scopes are allowed.

    Raises
    ------
    ValueError
        If a name is repeated, a cardinality is not a positive integer, or a scope is
        empty, repeats a variable or names an unknown one.

    Examples
    --------
    >>> cliques = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("c",)))
    >>> cliques.n_cells, cliques.shapes
    (8, ((2, 3), (2,)))
    """

    variables: tuple[Hashable, ...]
    cardinalities: tuple[int, ...]
    scopes: tuple[tuple[Hashable, ...], ...]

    def __post_init__(self) -> None:
        # A frozen dataclass stores through object.__setattr__; lists are accepted and frozen.
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "cardinalities", tuple(int(k) for k in self.cardinalities))
        object.__setattr__(self, "scopes", tuple(tuple(scope) for scope in self.scopes))
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"variables must be distinct, got {self.variables!r}")
        if len(self.cardinalities) != len(self.variables):
            raise ValueError(
                f"cardinalities must have one entry for each of the {len(self.variables)} variables, "
                f"got {len(self.cardinalities)}"
            )
        for name, cardinality in zip(self.variables, self.cardinalities, strict=True):
            if cardinality < 1:
                raise ValueError(f"cardinalities must be positive, got {cardinality} for variable {name!r}")
        known = set(self.variables)
        for scope in self.scopes:
            unknown = [name for name in scope if name not in known]
            if unknown:
                raise ValueError(f"scopes name variables that are not in the model: {unknown!r} in {scope!r}")
            if not scope or len(set(scope)) != len(scope):
                raise ValueError(f"a scope must name at least one variable and each one once, got {scope!r}")

    @classmethod
    def from_graph(
        cls,
        graph: nx.Graph,
        cardinalities: Mapping[Hashable, int],
        scopes: Iterable[Sequence[Hashable]] | None = None,
    ) -> Cliques:
        """Tables of a pairwise model on `graph`: one for each edge, one for each isolated node.

        Parameters
        ----------
        graph : networkx.Graph
            Undirected graph over the variables; the order of its nodes is kept.
        cardinalities : mapping of node to int
            Number of states of each node.
        scopes : iterable of sequence of nodes, optional
            The tables instead of the default ones; each must be a clique of the graph.

        Raises
        ------
        ValueError
            If a node has no cardinality or a scope is not a clique of the graph.

        Examples
        --------
        >>> import networkx as nx
        >>> graph = nx.Graph([("a", "b")])
        >>> graph.add_node("c")
        >>> Cliques.from_graph(graph, {"a": 2, "b": 2, "c": 3}).scopes
        (('a', 'b'), ('c',))
        """
        variables = tuple(graph.nodes)
        missing = [name for name in variables if name not in cardinalities]
        if missing:
            raise ValueError(f"cardinalities lack the variables {missing!r} of the graph")
        if scopes is None:
            position = {name: i for i, name in enumerate(variables)}
            edges = (tuple(sorted(edge[:2], key=position.__getitem__)) for edge in graph.edges)
            chosen = [*edges, *((node,) for node in variables if graph.degree(node) == 0)]
        else:
            chosen = [tuple(scope) for scope in scopes]
            for scope in chosen:
                for i, u in enumerate(scope):
                    if u in graph and not all(graph.has_edge(u, v) for v in scope[i + 1 :] if v in graph):
                        raise ValueError(f"scope {scope!r} is not a clique of the graph: add its missing edges")
        return cls(variables, tuple(cardinalities[name] for name in variables), tuple(chosen))

    @cached_property
    def position(self) -> dict[Hashable, int]:
        """Index of each variable."""
        return {name: i for i, name in enumerate(self.variables)}

    @cached_property
    def indices(self) -> tuple[tuple[int, ...], ...]:
        """Each scope as variable indices."""
        return tuple(tuple(self.position[name] for name in scope) for scope in self.scopes)

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shape of each table."""
        return tuple(tuple(self.cardinalities[i] for i in scope) for scope in self.indices)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each table."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The place of each table in the flat vector."""
        ends = np.cumsum(self.sizes, dtype=np.int64).tolist()
        return tuple(slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True))

    @property
    def n_cells(self) -> int:
        """Length of the flat vector."""
        return sum(self.sizes)

    @property
    def n_cliques(self) -> int:
        """Number of tables."""
        return len(self.scopes)

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """Views of the tables in a flat vector of shape (n_cells,)."""
        return [flat[part].reshape(shape) for part, shape in zip(self.slices, self.shapes, strict=True)]

    def join(self, tables: Iterable[np.ndarray]) -> np.ndarray:
        """One flat float64 vector of shape (n_cells,) from the tables, in the order of the scopes."""
        arrays = [np.asarray(table, dtype=np.float64) for table in tables]
        shapes = tuple(array.shape for array in arrays)
        if shapes != self.shapes:
            raise ValueError(f"tables must have the shapes {self.shapes}, got {shapes}")
        return np.concatenate([array.ravel() for array in arrays]) if arrays else np.empty(0)

    def spread(self, per_table: np.ndarray) -> np.ndarray:
        """A flat vector that repeats one number per table over its cells."""
        return np.repeat(np.asarray(per_table, dtype=np.float64), self.sizes)

    def __iter__(self) -> Iterator[tuple[Hashable, ...]]:
        return iter(self.scopes)

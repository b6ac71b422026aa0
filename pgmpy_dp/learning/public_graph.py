"""Public graphs of learners: as users pass them, as positions in a schema, and as a release keeps them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Any

import networkx as nx

from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema, decode_label, encode_label
from pgmpy_dp.schema.labels import require_declared


def checked_graph(graph: Any, argument: str = "graph", sizes: tuple[int, ...] = (1, 2)) -> tuple[tuple, ...]:
    """A graph as a tuple of pairs of names, and of single names for isolated nodes; TypeError, ValueError for others.

    Examples
    --------
    >>> checked_graph(nx.Graph([("a", "b")]))
    (('a', 'b'),)
    """
    if isinstance(graph, nx.Graph):
        if graph.is_directed():
            raise ValueError(
                f"{argument} is a {type(graph).__name__}; pass an undirected one, e.g. graph.to_undirected()"
            )
        graph = [*graph.edges(), *((node,) for node in nx.isolates(graph))]
    elif isinstance(graph, str | bytes) or not isinstance(graph, Iterable):
        raise TypeError(
            f"{argument}={graph!r} is a {type(graph).__name__}; pass a networkx.Graph or pairs of variable names"
        )
    items = []
    wanted = "an edge is a pair of different"
    if max(sizes) > 2:
        wanted = f"pass pairs or sets of up to {max(sizes)} different"
    for item in graph:
        if isinstance(item, str | bytes) or not isinstance(item, Iterable):
            raise TypeError(f"{argument} holds {item!r}, a {type(item).__name__}; pass pairs of variable names")
        names = tuple(item)
        if len(names) not in sizes or len(set(names)) != len(names):
            raise ValueError(f"{argument} holds {names!r}; {wanted} variable names")
        items.append(names)
    return tuple(items)


def edge_positions(schema: Schema, graph: Iterable[Iterable[Hashable]]) -> list[tuple[int, int]]:
    """Edges as pairs of positions; ValueError for names that the schema does not declare."""
    return [(item[0], item[1]) for item in set_positions(schema, graph, "graph") if len(item) == 2]


def set_positions(schema: Schema, sets: Iterable[Iterable[Hashable]], argument: str) -> list[tuple[int, ...]]:
    """Sets of names as positions; ValueError for names that the schema does not declare."""
    position = {name: j for j, name in enumerate(schema.variables)}
    named = [tuple(item) for item in sets]
    require_declared(schema.variables, argument, chain.from_iterable(named))
    return [tuple(position[name] for name in item) for item in named]


def encoded_graph(graph: Iterable[Iterable[Hashable]] | None) -> list[list[Any]] | None:
    """A checked graph as ``public["graph"]`` of a release keeps it."""
    return None if graph is None else [[encode_label(name) for name in item] for item in graph]


def released_edges(release: Release) -> list[tuple[int, int]] | None:
    """Edges, as positions, of the public graph that a release was made for; None for one of all pairs."""
    graph = release.public.get("graph")
    if graph is None:
        return None
    return edge_positions(release.schema, [[decode_label(name) for name in item] for item in graph])

"""Graphs as drawings, in which the thicker edges are the stronger ones."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.plotting.style import BLUE, VERMILLION, bare_axes, legend

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

_ON_A_CIRCLE = 30  # with more vertices the names on a circle run into each other
_WITH_NAMES = 40  # more names cannot be read
_WIDTHS = (0.8, 7.0)


def plot_graph(
    graph: nx.Graph,
    strengths: Mapping[tuple, float] | None = None,
    ax: Axes | None = None,
    *,
    layout: Mapping[Hashable, Sequence[float]] | None = None,
    label: str = "strength",
) -> Axes:
    """Draw an undirected graph; stronger edges are thicker, negative ones dashed and in another colour.

    Parameters
    ----------
    graph : networkx.Graph
        E.g. ``graph_`` or ``model_`` of a fitted estimator.
    strengths : mapping of edge to float, optional
        E.g. ``PrivateNetwork.edge_scores_``; a pair may be in either order, and pairs that are no edges are ignored.
        Default: for a model with factors the mutual information of each edge's two variables under it, in nats; for
        a graph alone, all the same.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    layout : mapping of node to (x, y), optional
        Default: for up to 30 nodes a circle, around which neighbours by strong edges follow each other; for more,
        springs. The same graph is always drawn the same. Up to 40 nodes are named.
    label : str
        What the strengths are, for the legend.

    Returns
    -------
    matplotlib.axes.Axes
        Edges are one ``LineCollection``, in the order of ``graph.edges``.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If an edge has no finite strength, or a node no place in `layout`.

    Examples
    --------
    >>> import networkx as nx
    >>> plot_graph(nx.path_graph(3), {(0, 1): 0.5, (1, 2): 0.1})
    <Axes: ...>
    """
    edges = [(u, v) for u, v in graph.edges() if u != v]
    values, label = edge_values(graph, edges, strengths, label)
    places, on_circle = placed_nodes(graph, edges, values, layout)
    ax = bare_axes(ax)
    from matplotlib.collections import LineCollection

    style = _line_styles(np.zeros(len(edges)) if values is None else values)
    widths = [1.5] * len(edges) if values is None else _widths(values, values)
    lines = [np.array([places[u], places[v]]) for u, v in edges]
    ax.add_collection(LineCollection(lines, linewidths=widths, **style, alpha=0.55, capstyle="butt", zorder=1))
    if places:
        x, y = np.array([places[node] for node in graph]).T
        ax.scatter(x, y, s=45 if len(places) <= _WITH_NAMES else 14, color=BLUE, edgecolor="white", zorder=2)
    if len(places) <= _WITH_NAMES:
        _name_nodes(ax, places, on_circle)
    ax.set_aspect("equal")
    ax.margins(0.28 if on_circle else 0.12, 0.12)  # names stand at the sides of a circle
    if values is not None and len(edges):
        _name_widths(ax, values, label)
    return ax


def edge_values(
    graph: Any, edges: list[tuple], strengths: Mapping[tuple, float] | None, label: str
) -> tuple[np.ndarray | None, str]:
    """The strength of each edge, and what it is; None where there is none."""
    if strengths is None:
        if not getattr(graph, "factors", None) or not hasattr(graph, "to_log_linear"):
            return None, label
        tables = graph.to_log_linear().marginals_of(edges)
        return np.array([_mutual_information(table) for table in tables]), "mutual information (nats)"
    values = {frozenset(pair): float(value) for pair, value in strengths.items()}
    missing = [edge for edge in edges if not math.isfinite(values.get(frozenset(edge), math.nan))]
    if missing:
        raise ValueError(f"strengths has no finite number for the edges {missing[:3]}; pass one for each edge")
    return np.array([values[frozenset(edge)] for edge in edges]), label


def _mutual_information(table: np.ndarray) -> float:
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    seen = table > 0
    return max(float(table[seen] @ np.log(table[seen] / independent[seen])), 0.0)


def placed_nodes(
    graph: nx.Graph, edges: list[tuple], values: np.ndarray | None, layout: Mapping[Hashable, Sequence[float]] | None
) -> tuple[dict[Hashable, np.ndarray], bool]:
    """The positions of the nodes, and whether they are on a circle."""
    nodes = list(graph)
    if layout is not None:
        missing = [node for node in nodes if node not in layout]
        if missing:
            raise ValueError(f"layout has no place for the nodes {missing[:3]}; pass (x, y) for each node")
        return {node: np.asarray(layout[node], dtype=float) for node in nodes}, False
    # By number: networkx's own orders depend on the nodes' hashes, which differ from run to run for text.
    number = {node: i for i, node in enumerate(nodes)}
    numbered = [(number[u], number[v]) for u, v in edges]
    if len(nodes) > _ON_A_CIRCLE:
        import networkx as nx  # it takes longer to import than a small picture to draw

        plain = nx.Graph()
        plain.add_nodes_from(range(len(nodes)))
        plain.add_edges_from(numbered)
        places = nx.spring_layout(plain, weight=None, seed=0)
        return {node: places[i] for i, node in enumerate(nodes)}, False
    forest = _strongest_forest(len(nodes), numbered, np.ones(len(edges)) if values is None else np.abs(values))
    order: list[int] = []
    waiting = list(reversed(range(len(nodes))))
    while waiting:  # depth first, small branches last on the stack, so first around the circle
        i = waiting.pop()
        if i not in order:
            order.append(i)
            waiting += sorted(forest[i], key=lambda j: (-len(forest[j]), -j))
    angles = np.pi / 2 - 2 * np.pi * np.argsort(order) / max(len(nodes), 1)
    return {node: np.array([np.cos(a), np.sin(a)]) for node, a in zip(nodes, angles, strict=True)}, True


def _strongest_forest(n_nodes: int, edges: list[tuple[int, int]], weights: np.ndarray) -> list[list[int]]:
    """The neighbours of each node in a spanning forest of largest weight (Kruskal)."""
    beside: list[list[int]] = [[] for _ in range(n_nodes)]
    part = list(range(n_nodes))
    for k in np.argsort(-weights, kind="stable"):
        u, v = edges[k]
        if part[u] != part[v]:
            beside[u].append(v)
            beside[v].append(u)
            part = [part[u] if of == part[v] else of for of in part]
    return beside


def _widths(shown: Sequence[float] | np.ndarray, values: np.ndarray) -> list[float]:
    """Widths of lines, of which that of the strongest of all values is the largest."""
    largest = float(np.abs(values).max(initial=0.0))
    least, most = _WIDTHS
    return [least + (most - least) * (abs(value) / largest if largest else 0.0) for value in shown]


def _line_styles(values: Sequence[float] | np.ndarray) -> dict[str, list[Any]]:
    """Negative strengths are dashed and in another colour."""
    return {
        "colors": [VERMILLION if value < 0 else BLUE for value in values],
        "linestyles": ["dashed" if value < 0 else "solid" for value in values],
    }


def _name_widths(ax: Axes, values: np.ndarray, label: str) -> None:
    """Name the widths in a legend: the strongest and the weakest edge of each sign."""
    from matplotlib.lines import Line2D

    ends = {
        float(part[k])
        for part in (values[values >= 0], values[values < 0])
        if part.size
        for k in (np.abs(part).argmax(), np.abs(part).argmin())
    }
    shown = sorted(ends, reverse=True)
    style = _line_styles(shown)
    handles = [
        Line2D([], [], linewidth=width, color=color, linestyle=line, alpha=0.55, label=f"{value:.2g}")
        for value, width, color, line in zip(
            shown, _widths(shown, values), style["colors"], style["linestyles"], strict=True
        )
    ]
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.02), "ncols": len(handles)}
    legend(ax, handles=handles, title=label, title_fontsize=8.5, **place)


def _name_nodes(ax: Axes, places: Mapping[Hashable, np.ndarray], on_circle: bool) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for node, (x, y) in places.items():
        side, offset = "left", (4.0, 3.0)
        if on_circle:  # outside the circle, away from the edges
            side = "center" if abs(x) < 0.2 else ("left" if x > 0 else "right")
            offset = (8.0 * x, 8.0 * y)
        upright = "center" if on_circle and abs(x) >= 0.2 else ("top" if on_circle and y < 0 else "bottom")
        ax.annotate(str(node), (x, y), offset, textcoords="offset points", ha=side, va=upright, fontsize=9,
                    path_effects=halo, zorder=3)  # fmt: skip

"""Communities of vertices: in clusters, or as the ordered adjacency matrix of a public graph."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from pgmpy_dp.communities.planted_graphs import misplaced
from pgmpy_dp.plotting.style import COLOURS, GREY, MARKERS, PALE, bare_axes, legend
from pgmpy_dp.shown import quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_communities(
    labels: Mapping[Hashable, int],
    graph: nx.Graph | None = None,
    ax: Axes | None = None,
    *,
    scores: np.ndarray | None = None,
    truth: Mapping[Hashable, int] | None = None,
    matrix: bool = False,
) -> Axes:
    """Draw vertices coloured by community, a cluster for each; or a graph's adjacency matrix, ordered by community.

    Parameters
    ----------
    labels : mapping of node to int
        E.g. ``PrivateBlockModel.labels_``.
    graph : networkx.Graph, optional
        A *public* graph whose edges are drawn between the vertices: drawing the private one would publish it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    scores : ndarray of shape (n, k), optional
        ``scores_``, in the order of `labels`: vertices whose label is uncertain are pale, at the rim of their cluster.
    truth : mapping of node to int, optional
        *Public* communities of the same vertices. Those whose label differs, under the renaming of labels with the
        fewest differences, are marked with a cross (in the matrix, with a tick at the left).
    matrix : bool
        Draw the adjacency matrix of `graph`, lines between communities, instead of clusters.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `truth` lacks a vertex, or a matrix is asked for without a graph.

    Examples
    --------
    >>> plot_communities({"a": 0, "b": 1, "c": 0})
    <Axes: ...>
    """
    if matrix and graph is None:
        raise ValueError("matrix=True draws the adjacency matrix of graph, which is None; pass a public graph")
    nodes, codes = list(labels), np.fromiter(labels.values(), dtype=int, count=len(labels))
    wrong = _wrong(nodes, codes, truth)
    ax = bare_axes(ax)
    if matrix and graph is not None:
        _draw_matrix(ax, nodes, codes, graph, wrong)
    else:
        _draw_clusters(ax, nodes, codes, graph, wrong, scores)
    if truth is not None:
        ax.set_title(f"{wrong.sum():,} of {quantity(wrong.size, 'vertex', 'vertices')} differ from the truth")
    return ax


def _wrong(nodes: list, codes: np.ndarray, truth: Mapping[Hashable, int] | None) -> np.ndarray:
    if truth is None:
        return np.zeros(len(nodes), dtype=bool)
    missing = [node for node in nodes if node not in truth]
    if missing:
        raise ValueError(f"truth has no community for the vertices {missing[:3]}; pass one for each vertex of labels")
    theirs = np.array([truth[node] for node in nodes])
    return misplaced(np.unique(codes, return_inverse=True)[1], np.unique(theirs, return_inverse=True)[1])


def _draw_clusters(
    ax: Axes, nodes: list, codes: np.ndarray, graph: nx.Graph | None, wrong: np.ndarray, scores: np.ndarray | None
) -> None:
    names = np.unique(codes)
    places = np.empty((len(nodes), 2))
    margin = np.ones(len(nodes))
    if scores is not None and len(nodes):
        ordered = np.sort(np.asarray(scores, dtype=float), axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
    certain = max(float(np.quantile(margin, 0.9)) if len(nodes) else 0.0, 1e-12)  # few have far larger margins
    alpha = 0.15 + 0.85 * np.minimum(margin / certain, 1.0)
    groups = [np.flatnonzero(codes == name) for name in names]
    groups = [members[np.argsort(-margin[members], kind="stable")] for members in groups]
    for turn, members in enumerate(groups):
        # A sunflower around each cluster's middle: radius as the root of the rank, turned by the golden angle.
        rank = np.arange(members.size)
        radius, angle = np.sqrt(rank / max(1, len(nodes))), rank * np.pi * (3.0 - np.sqrt(5.0))
        middle = 2.0 * np.pi * turn / max(1, names.size)
        centre = np.array([np.cos(middle), np.sin(middle)]) * (0.0 if names.size == 1 else 1.2)
        places[members] = centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    if graph is not None:
        position = {node: place for place, node in enumerate(nodes)}
        for u, v in graph.edges():
            if u in position and v in position:
                ends = places[[position[u], position[v]]]
                ax.plot(ends[:, 0], ends[:, 1], color=PALE, linewidth=0.5, zorder=1)
    size = _marker_area(ax, places)
    for turn, (name, members) in enumerate(zip(names, groups, strict=True)):
        label = f"community {name} ({quantity(members.size, 'vertex', 'vertices')})"
        x, y = places[members].T
        # Another marker for each, too: the picture must not depend on colour alone.
        colour, marker = COLOURS[turn % len(COLOURS)], MARKERS[turn % len(MARKERS)]
        pale: Any = alpha[members]
        ax.scatter(x, y, s=size, color=colour, marker=marker, alpha=pale, linewidths=0, label=label, zorder=2)
    if wrong.any():
        x, y = places[wrong].T
        size_of_cross = max(1.8 * size, 12.0)
        ax.scatter(x, y, s=size_of_cross, color="black", marker="x", lw=1.0, label="differs from truth", zorder=3)
    ax.set_aspect("equal")
    seen = float(np.sqrt(_LARGEST / size))  # markers of a legend are as large in every picture
    legend(ax, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=min(3, max(1, names.size)), markerscale=seen)


_LARGEST = 25.0


def _marker_area(ax: Axes, places: np.ndarray) -> float:
    """In points squared: so small that neighbours of a sunflower of all vertices do not overlap."""
    if len(places) < 2:
        return _LARGEST
    box, (width, height) = ax.get_position(), ax.figure.get_size_inches()  # type: ignore[union-attr]
    inches = np.array([box.width * width, box.height * height])
    unit = 72.0 * float((inches / np.maximum(1.1 * np.ptp(places, axis=0), 1e-9)).min())  # points of a length of 1
    return min(_LARGEST, (1.4 / np.sqrt(len(places)) * unit) ** 2)


def _draw_matrix(ax: Axes, nodes: list, codes: np.ndarray, graph: nx.Graph, wrong: np.ndarray) -> None:
    order = np.argsort(codes, kind="stable")
    position = {nodes[i]: place for place, i in enumerate(order)}
    adjacency = np.zeros((len(nodes), len(nodes)))
    for u, v in graph.edges():
        if u in position and v in position:
            adjacency[[position[u], position[v]], [position[v], position[u]]] = 1.0
    ax.set_axis_on()
    ax.imshow(adjacency, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    names, first, sizes = np.unique(codes[order], return_index=True, return_counts=True)
    for start in first[1:]:
        ax.axhline(start - 0.5, color=COLOURS[1], linewidth=1)
        ax.axvline(start - 0.5, color=COLOURS[1], linewidth=1)
    ax.set_xticks(first + (sizes - 1) / 2, [str(name) for name in names])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(GREY)
    ax.set(xlabel="community", ylabel="vertices, in the same order")
    for text in (ax.xaxis.label, ax.yaxis.label):
        text.set_fontsize(10)
    if wrong.any():
        ticks = np.flatnonzero(wrong[order])
        across = ax.get_yaxis_transform()
        ax.plot(np.full(ticks.size, -0.012), ticks, linestyle="none", marker=">", markersize=4, color="black",
                transform=across, clip_on=False, label="differs from truth")  # fmt: skip

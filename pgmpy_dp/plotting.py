"""Plots of public values; they need matplotlib (``pip install 'pgmpy_dp[plot]'``), imported when one is drawn."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from pgmpy_dp.models.gaussian import partial_correlations
from pgmpy_dp.theory.feasibility import FeasibilityMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_communities", "plot_feasibility", "plot_partial_correlations"]


def plot_communities(
    labels: Mapping[Hashable, int],
    graph: nx.Graph | None = None,
    ax: Axes | None = None,
    *,
    scores: np.ndarray | None = None,
) -> Axes:
    """Vertices coloured by community, in one cluster for each.

    Parameters
    ----------
    labels : mapping of node to int
        E.g. ``PrivateBlockModel.labels_``.
    graph : networkx.Graph, optional
        A *public* graph whose edges are drawn between the vertices: drawing the private one would publish it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    scores : ndarray of shape (n, k), optional
        ``scores_``, in the order of `labels`: vertices whose label is uncertain are pale.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> plot_communities({"a": 0, "b": 1, "c": 0})  # doctest: +SKIP
    <Axes: ...>
    """
    ax = _axes(ax)
    nodes, codes = list(labels), np.fromiter(labels.values(), dtype=int, count=len(labels))
    names = np.unique(codes)
    places = np.empty((len(nodes), 2))
    alpha = np.ones(len(nodes))
    if scores is not None and len(nodes):
        ordered = np.sort(np.asarray(scores, dtype=float), axis=1)
        margin = ordered[:, -1] - ordered[:, -2]
        alpha = 0.15 + 0.85 * margin / max(float(margin.max()), 1e-12)
    for turn, name in enumerate(names):
        members = np.flatnonzero(codes == name)
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
                ax.plot(ends[:, 0], ends[:, 1], color="0.8", linewidth=0.4, zorder=1)
    for turn, name in enumerate(names):
        members = np.flatnonzero(codes == name)
        label = f"community {name} ({members.size} vertices)"
        x, y = places[members].T
        pale = alpha[members]
        ax.scatter(x, y, s=14, color=f"C{turn % 10}", alpha=pale, label=label, zorder=2)  # type: ignore[arg-type]
    ax.set_aspect("equal")
    ax.set_axis_off()
    if names.size:
        ax.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=min(3, names.size))
    return ax


def plot_feasibility(feasibility: FeasibilityMap, ax: Axes | None = None, *, n: int | None = None) -> Axes:
    """Number of records against number of variables: impossible below each dashed line, enough above each full one.

    Both are orders with constant 1 (see `pgmpy_dp.theory`); between them, shaded, the theorems decide nothing.

    Parameters
    ----------
    feasibility : FeasibilityMap
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    n : int, optional
        The number of records at hand, drawn as a level line.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from pgmpy_dp import Budget
    >>> from pgmpy_dp.theory import feasibility_map
    >>> sizes = [10, 30, 100, 300, 1000]
    >>> found = feasibility_map(sizes, width=1, min_weight=0.5, alpha=0.02, budget=Budget(epsilon=1, delta=1e-6))
    >>> plot_feasibility(found, n=10**6)  # doctest: +SKIP
    <Axes: ...>
    """
    ax = _axes(ax)
    for colour, goal in zip(("C0", "C1"), feasibility.lower, strict=False):
        lower, upper = feasibility.lower[goal], feasibility.upper[goal]
        ax.plot(feasibility.p, lower, "--", color=colour, label=f"{goal}: lower bound, every learner")
        if np.isfinite(upper).all():
            ax.plot(feasibility.p, upper, "-", color=colour, label=f"{goal}: upper bound, best learner")
            ax.fill_between(feasibility.p, lower, upper, where=upper > lower, color=colour, alpha=0.12, linewidth=0)
    if n is not None:
        ax.axhline(n, color="black", linewidth=1, linestyle=":", label=f"n = {n:,}")
    measure = {"none": "no privacy", "approximate": "(ε, δ)-DP", "zcdp": "ρ-zCDP", "pure": "ε-DP"}[feasibility.measure]
    ax.set(xscale="log", yscale="log", xlabel="variables p", ylabel="records n (constants taken as 1)", title=measure)
    ax.legend(fontsize="small")
    return ax


def plot_partial_correlations(
    precision: np.ndarray, names: Sequence[Hashable] | None = None, ax: Axes | None = None
) -> Axes:
    """Partial correlations of a Gaussian graphical model as a coloured matrix; pairs without an edge are white.

    Parameters
    ----------
    precision : ndarray of shape (d, d)
        Positive definite, such as ``PrivateGraphicalLasso.precision_``.
    names : sequence of hashable, optional
        Of the columns; shown for up to 40, more cannot be read. Default: their numbers.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If `precision` is not positive definite, or `names` are not as many as its columns.

    Examples
    --------
    >>> plot_partial_correlations(np.array([[2.0, -1.0], [-1.0, 2.0]]), ["rain", "wet"])  # doctest: +SKIP
    <Axes: ...>
    """
    shown = partial_correlations(precision)
    d = len(shown)
    labels = [str(name) for name in (range(d) if names is None else names)]
    if len(labels) != d:
        raise ValueError(f"names has {len(labels)} entries for {d} columns; pass one for each")
    np.fill_diagonal(shown, np.nan)
    ax = _axes(ax)
    largest = float(np.nanmax(np.abs(shown), initial=0.1))
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.figure.colorbar(image, ax=ax, label="partial correlation")
    if d <= 40:
        ax.set_xticks(range(d), labels, rotation=90, fontsize="small")
        ax.set_yticks(range(d), labels, fontsize="small")
    return ax


def _axes(ax: Axes | None) -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'pgmpy_dp[plot]'") from error
    return plt.subplots(layout="constrained")[1] if ax is None else ax

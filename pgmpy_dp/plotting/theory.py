"""The plot of the theorems: records against variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pgmpy_dp.plotting.style import BLUE, VERMILLION, legend, styled_axes
from pgmpy_dp.theory.feasibility import FeasibilityMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_feasibility(feasibility: FeasibilityMap, ax: Axes | None = None, *, n: int | None = None) -> Axes:
    """Plot numbers of records against variables: impossible below each dashed line, enough above each full one.

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
    >>> bounds = feasibility_map(sizes, width=1, min_weight=0.5, alpha=0.02, budget=Budget(epsilon=1, delta=1e-6))
    >>> plot_feasibility(bounds, n=10**6)
    <Axes: ...>
    """
    ax = styled_axes(ax)
    for colour, goal in zip((BLUE, VERMILLION), feasibility.lower, strict=False):
        lower, upper = feasibility.lower[goal], feasibility.upper[goal]
        ax.plot(feasibility.p, lower, "--", color=colour, label=f"{goal}: lower bound, every learner")
        if np.isfinite(upper).all():
            ax.plot(feasibility.p, upper, "-", color=colour, label=f"{goal}: upper bound, best learner")
            ax.fill_between(feasibility.p, lower, upper, where=upper > lower, color=colour, alpha=0.12, linewidth=0)
    if n is not None:
        ax.axhline(n, color="black", linewidth=1, linestyle=":", label=f"n = {n:,}")
    measure = {"none": "no privacy", "approximate": "(ε, δ)-DP", "zcdp": "ρ-zCDP", "pure": "ε-DP"}[feasibility.measure]
    ax.set(xscale="log", yscale="log", xlabel="variables p", ylabel="records n (constants taken as 1)", title=measure)
    legend(ax)
    return ax

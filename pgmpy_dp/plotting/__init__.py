"""Plots of public values, in one look; matplotlib (``pip install matplotlib``) is imported when one is drawn.

Each function draws on the axes that it gets, or on those of a new figure, and returns them. What it draws was released,
or is public: a picture of exact statistics of private records publishes them.
"""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

_HOME = {
    "plot_communities": "pgmpy_dp.communities.plots",
    "plot_error": "pgmpy_dp.plotting.errors",
    "plot_feasibility": "pgmpy_dp.plotting.theory",
    "plot_graph": "pgmpy_dp.plotting.graphs",
    "plot_ledger": "pgmpy_dp.plotting.privacy",
    "plot_marginals": "pgmpy_dp.plotting.errors",
    "plot_partial_correlations": "pgmpy_dp.gaussian.correlation_plots",
    "plot_privacy_profile": "pgmpy_dp.plotting.privacy",
}

__all__ = [
    "plot_communities",
    "plot_error",
    "plot_feasibility",
    "plot_graph",
    "plot_ledger",
    "plot_marginals",
    "plot_partial_correlations",
    "plot_privacy_profile",
]

if TYPE_CHECKING:
    from pgmpy_dp.communities.plots import plot_communities
    from pgmpy_dp.gaussian.correlation_plots import plot_partial_correlations
    from pgmpy_dp.plotting.errors import plot_error, plot_marginals
    from pgmpy_dp.plotting.graphs import plot_graph
    from pgmpy_dp.plotting.privacy import plot_ledger, plot_privacy_profile
    from pgmpy_dp.plotting.theory import plot_feasibility

__getattr__, __dir__ = front_door(__name__, _HOME)

"""Plots of public values, in one look; matplotlib (``pip install matplotlib``) is imported when one is drawn.

Each function draws on the axes it is given, or on those of a new figure, and returns them. What it draws was released,
or is public: a picture of exact statistics of private records publishes them.
"""

from pgmpy_dp.plotting.communities import plot_communities
from pgmpy_dp.plotting.errors import plot_error, plot_marginals
from pgmpy_dp.plotting.graphs import plot_graph, plot_partial_correlations
from pgmpy_dp.plotting.privacy import plot_ledger, plot_privacy_profile
from pgmpy_dp.plotting.theory import plot_feasibility

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

"""Two communities by the exponential mechanism, drawn exactly: pure epsilon-DP, for small graphs."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from pgmpy_dp.communities.communities_base import (
    COUNT_SHARE,
    communities_release,
    noisy_degree,
    require_graph_and_budget,
)
from pgmpy_dp.communities.community_labels import marks_of
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.graph_operators import CommunityLabels, EdgeCount
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator, cost_of
from pgmpy_dp.private.sensitive import Release

MAX_VERTICES = 64
"""Larger graphs are refused. Above 22 vertices the time depends on the private edges: of 64 vertices, a path takes
.03 s and a random 3-regular graph 7 s; a dense graph of 40 does not end."""


def run(graph: PrivateGraph, settings: Settings, budget: Budget) -> Release:
    """Draw two communities with probability growing with the edges inside of them.

    Refuses too many vertices, or communities that are not two.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateBlockModel`.
    budget : Budget
        A delta is not spent.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.communities.communities_base.communities` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* All of the budget, or where no degree is passed 49/50 of it, is for the choice
        (:class:`~pgmpy_dp.communities.operators.graph_operators.CommunityLabels`): exactly epsilon-DP, or
        rho-zCDP; the rest for the number of edges.

        *Source.* McSherry and Talwar 2007; score: Chen et al. 2023, Algorithm 5.19, which splits the edges and votes.

        *Side channels.* Those of the choice: above 22 vertices the running time depends on the graph.

    Examples
    --------
    >>> import networkx as nx
    >>> from pgmpy_dp.communities.communities_base import communities
    >>> cliques = nx.disjoint_union(nx.complete_graph(8), nx.complete_graph(8))
    >>> graph = PrivateGraph(cliques, ledger=Budget(epsilon=4.0))
    >>> from pgmpy_dp.estimators import PrivateBlockModel
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateBlockModel(method="exponential", degree=7.0))
    >>> labels = communities(run(graph, settings, Budget(epsilon=4.0))).labels
    >>> sorted([labels[:8].tolist(), labels[8:].tolist()]) == [[0] * 8, [1] * 8], str(graph.ledger.left)
    (True, '0-DP')
    """
    require_graph_and_budget(graph, budget, settings)
    if graph.n > MAX_VERTICES:
        raise ValueError(
            f"the graph has {graph.n} vertices; exact draws from more than {MAX_VERTICES} may take forever: use "
            "method 'noisy-power' or 'randomized-response'"
        )
    cost = cost_of(budget, pure=budget.epsilon is not None)
    EdgeCount.noise_of(cost, COUNT_SHARE)  # refused before the charge
    curator = Curator(
        graph,
        budget,
        what=f"two communities of {graph.n} vertices",
        mechanism="exponential",
        pure=budget.epsilon is not None,
        random_state=settings.random_state,
    )

    def release(drawn: tuple[np.ndarray, float]) -> Release:
        return communities_release(curator, settings, budget, *drawn, method="exponential", max_vertices=MAX_VERTICES)

    def steps() -> Generator[tuple[np.ndarray, float], None, None]:
        degree = noisy_degree(curator, COUNT_SHARE) if settings.degree is None else settings.degree
        yield marks_of(curator.ask(CommunityLabels(degree), curator.left), 2), degree

    return curator.following(steps(), release)

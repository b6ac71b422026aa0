"""Two communities by the exponential mechanism, drawn exactly: pure epsilon-DP, for small graphs; and a vote."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pgmpy_dp.communities.communities_base import (
    COUNT_SHARE,
    CommunitySettings,
    agreement,
    communities_release,
    noisy_degree,
    require_graph_and_budget,
    vote,
)
from pgmpy_dp.communities.community_labels import balanced, labels_of, marks_of
from pgmpy_dp.learning.settings_base import whole
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.graph_curator import GraphCurator, edge_count_noise, neighbour_noise
from pgmpy_dp.private.data.graph import PrivateGraph
from pgmpy_dp.private.sensitive import Release

__all__ = ["ExponentialSettings", "run"]


@dataclass(frozen=True)
class ExponentialSettings(CommunitySettings):
    """What to draw, fixed before the edges are looked at.

    Parameters
    ----------
    n_communities : 2
    degree, random_state
        See :class:`~pgmpy_dp.communities.communities_base.CommunitySettings`.
    max_vertices : int, default 64
        Larger graphs are refused. Above 22 vertices the time depends on the private edges: of 64 vertices, a path takes
        .03 s and a random 3-regular graph 7 s; a dense graph of 40 does not end. `PrivateBlockModel` always has the
        default; in settings for `run`, raise it only where it is public that the graph is tree-like.
    split : bool, default False
        Draw from one random half of the edges and vote on the other, as published.
    """

    max_vertices: int = field(default=64, metadata=whole(2))
    split: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_communities != 2:
            raise ValueError(
                f"n_communities={self.n_communities!r}: the exponential mechanism is drawn from exactly for two "
                "communities only; use method 'randomized-response' or 'noisy-power' for more"
            )


def run(graph: PrivateGraph, settings: ExponentialSettings, budget: Budget) -> Release:
    """Draw two communities with probability growing with the edges inside of them.

    Refuses too many vertices, or communities that are not two.

    Parameters
    ----------
    budget : Budget
        A delta is not spent.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.communities.communities_base.communities` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* All of the budget, or where no degree is given 49/50 of it, is for the choice
        (:meth:`~pgmpy_dp.private.curator.graph_curator.GraphCurator.community_choice`): exactly epsilon-DP, or
        rho-zCDP; the rest for the number of edges. With a split the choice is from one half of the edges, for as much,
        and a noisy majority vote (:meth:`~pgmpy_dp.private.curator.graph_curator.GraphCurator.neighbour_sums`) on the
        other half has all of the budget: an edge is in one of them
        (:meth:`~pgmpy_dp.private.curator.graph_curator.GraphCurator.split`).

        *Source.* McSherry and Talwar 2007; score, split and vote: Chen et al. 2023, Algorithm 5.19.

        *Side channels.* Those of the choice: above 22 vertices the running time depends on the graph.

    Examples
    --------
    >>> import networkx as nx
    >>> from pgmpy_dp.communities.communities_base import communities
    >>> cliques = nx.disjoint_union(nx.complete_graph(8), nx.complete_graph(8))
    >>> graph = PrivateGraph(cliques, ledger=Budget(epsilon=4.0))
    >>> labels = communities(run(graph, ExponentialSettings(degree=7.0), Budget(epsilon=4.0))).labels
    >>> sorted([labels[:8].tolist(), labels[8:].tolist()]) == [[0] * 8, [1] * 8], str(graph.ledger.left)
    (True, '0-DP')
    """
    require_graph_and_budget(graph, budget, settings)
    if graph.n > settings.max_vertices:
        raise ValueError(
            f"the graph has {graph.n} vertices and max_vertices={settings.max_vertices}: exact draws may take forever; "
            "use method 'noisy-power' or 'randomized-response'"
        )
    cost = cost_of(budget, pure=budget.epsilon is not None)
    edge_count_noise(cost, COUNT_SHARE)  # refused before the charge
    neighbour_noise(cost, 1)
    curator = GraphCurator(
        graph,
        budget,
        what=f"two communities of {graph.n} vertices" + (" and a vote" if settings.split else ""),
        mechanism="exponential" + ("_of_half" if settings.split else ""),
        pure=budget.epsilon is not None,
        random_state=settings.random_state,
    )
    whole = 2.0 if settings.split else 1.0
    name = "exponential-exact" if settings.split else "exponential"

    def release(found: tuple[np.ndarray, float, dict[str, Any]]) -> Release:
        sums, degree, more = found
        facts = {"method": name, "max_vertices": settings.max_vertices, **more}
        return communities_release(curator, settings, budget, sums, whole * degree, **facts)

    def steps() -> Generator[tuple[np.ndarray, float, dict[str, Any]], None, None]:
        with curator.split(2) if settings.split else nullcontext([curator, curator]) as (first, second):
            degree = noisy_degree(first, COUNT_SHARE) if settings.degree is None else settings.degree / whole
            marks = marks_of(first.community_choice(degree, first.left), 2)
            yield marks, degree, {}
            if settings.split:
                # As published, the vote compares numbers of neighbours as they are.
                votes = vote(second, labels_of(marks), 2, 0.0, 1)
                noise = neighbour_noise(curator.cost, 1)
                # What balance alone gives it, of degree d, is taken from what it says of the labels.
                even = balanced(votes, marks, degree)
                yield votes, degree, {"agreement": agreement(even, marks, noise.variance)}

    return curator.following(steps(), release)

"""The common steps of the methods for communities: the noisy average degree, a vote, and the release of labels."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.communities.community_labels import balanced, community_scores, labels_of, marks_of
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.graph_operators import EdgeCount, NeighbourSums
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label

COUNT_SHARE = Fraction(1, 50)
"""Of the budget, for the number of edges where no degree is passed: d enters small corrections only."""

SCORE_UNIT = 2.0**-16

CHANCE = 4.0
# Edges inside less edges between the best halves of a random graph of average degree d without communities are at most
# n times this times root(d)/2, for large d (Dembo, Montanari and Sen 2017: P* = .7632).
_BEST_HALVES = 2 * 0.7632


@dataclass(frozen=True, eq=False)
class Communities:
    """The content of a release of communities.

    Attributes
    ----------
    nodes : sequence of hashable
        A tuple, or a range.
    labels : ndarray of int, shape (n,)
    scores : ndarray of float, shape (n, k)
        The neighbours that speak for each label.
    degree : float or None
        The average degree that was used: passed, or noisy.
    chance : bool or None
        Whether labels may be chance: the last vote agrees with the labels before it by no more than `CHANCE` deviations
        of its noise, or, of two communities, than with the best halves of a graph of that degree that has none. Answers
        without a vote: they agree with their labels no more than answers of such a graph with the best labels. None
        where nothing was released that says so.
    """

    nodes: Sequence[Hashable]
    labels: np.ndarray
    scores: np.ndarray
    degree: float | None
    chance: bool | None = None


def require_graph_and_budget(graph: PrivateGraph, budget: Budget, settings: Settings) -> None:
    """Raise a TypeError if graph or budget is not one, a ValueError for more communities than vertices."""
    require_data_and_budget(graph, PrivateGraph, budget, name="graph")
    if settings.n_communities > graph.n:
        raise ValueError(
            f"n_communities={settings.n_communities} is more than the graph's vertices, {graph.n}; ask for at most one "
            "community for each vertex"
        )


def noisy_degree(curator: Curator, share: Fraction) -> float:
    """Average degree from a noisy number of edges, clipped to [0, n-1]."""
    n = curator.facts.n
    return min(max(0.0, 2.0 * curator.ask(EdgeCount(), share) / n), n - 1.0)


def vote(
    curator: Curator, labels: np.ndarray, k: int, degrees: float | np.ndarray, share: Fraction | int
) -> np.ndarray:
    """One noisy majority vote: each vertex hears how many of its neighbours have each label.

    After any first stage that is better than chance it repairs most wrong labels, for one edge changes two of the sums
    by 1, whatever the first stage was (Chen et al. 2023, Algorithm 5.13).

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        In 0 .. k-1: the labels before the vote.
    degrees : float or ndarray of shape (n,)
        Of :func:`~pgmpy_dp.communities.community_labels.balanced`; 0 counts neighbours only, as published.

    Returns
    -------
    ndarray, shape (n, columns)
        Sums less what a graph without communities would have:
        :func:`~pgmpy_dp.communities.community_labels.labels_of` turns them into labels.
    """
    marks = marks_of(labels, k)
    return balanced(curator.ask(NeighbourSums(marks), share), marks, degrees)


def agreement(sums: np.ndarray, marks: np.ndarray, variance: float) -> list[float]:
    """The agreement of a vote with the labels before it, and the deviation of the agreement by the vote's noise.

    Parameters
    ----------
    sums : ndarray, shape (n, columns)
        Of :func:`vote`.
    marks : ndarray, shape (n, columns)
        Of the labels, which were fixed before the noise of the vote was drawn.
    variance : float
        Of the noise of each sum.
    """
    return [float(np.sum(sums * marks)), float(np.sqrt(variance * np.sum(np.square(marks, dtype=float))))]


def communities_release(
    curator: Curator,
    settings: Settings,
    budget: Budget,
    sums: np.ndarray,
    degree: float | None,
    **public: Any,
) -> Release:
    """A release of kind "communities": labels and scores of noisy sums, and the noisy number of edges.

    Scores are in ``public["score_unit"]``.
    """
    most = 2.0**62 * SCORE_UNIT
    fixed = np.rint(np.clip(community_scores(sums), -most, most) / SCORE_UNIT).astype(np.int64)
    facts = {
        "n_communities": settings.n_communities,
        "degree": degree,
        "score_unit": SCORE_UNIT,
        "settings": {**settings.public(budget, "degree"), **public},
    }
    counts = {answer.operator: answer.values[0] for answer in curator.answers if answer.operator == "edge_count"}
    return curator.release(
        "communities", facts, {"labels": labels_of(sums).astype(np.int64), "scores": fixed, **counts}
    )


def communities(release: Release) -> Communities:
    """Read a release of kind "communities"; ValueError for another kind. Post-processing."""
    require_kind(release, "communities")
    nodes, degree = release.public["nodes"], release.public["degree"]
    n = int(release.public["n"])
    names = range(n) if nodes is None else tuple(decode_label(node) for node in nodes)
    scores = release["scores"].array * float(release.public["score_unit"])
    settings = release.public["settings"]
    told, chance = settings.get("agreement"), None
    if told is not None:
        halves = _BEST_HALVES * n * math.sqrt(degree or 0.0) if release.public["n_communities"] == 2 else 0.0
        best = float(settings.get("by_chance", halves))
        chance = bool(told[0] <= best + CHANCE * told[1])
    return Communities(names, release["labels"].array, scores, None if degree is None else float(degree), chance)

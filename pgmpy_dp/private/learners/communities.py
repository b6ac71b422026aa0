"""What the learners of communities share: settings, the noisy average degree, and the release of labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.graph import PrivateGraph, edge_count
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.guarantee import ZCDP, Guarantee, PureDP, checked_number
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import additive_release
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import decode_label, encode_label

__all__ = [
    "COUNT_SHARE",
    "Communities",
    "CommunitySettings",
    "communities",
    "communities_release",
    "additive_cost",
    "information",
    "noisy_degree",
    "require_graph_and_budget",
]

COUNT_SHARE = Fraction(1, 50)
"""Of the budget, for the number of edges where no degree is given: d enters small corrections only."""

SCORE_UNIT = 2.0**-16


@dataclass(frozen=True)
class CommunitySettings:
    """What all learners of communities are told, fixed before the edges are looked at.

    Parameters
    ----------
    n_communities : int, default 2
        k, at least 2.
    degree : float, optional
        d, a public average degree. Default: from a noisy number of edges, inside the budget.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release **is not private**.

    Raises
    ------
    TypeError, ValueError
        For numbers that are none, or out of range.
    """

    n_communities: int = 2
    degree: float | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_communities", checked_integer("n_communities", self.n_communities, 2))
        if self.degree is not None:
            object.__setattr__(self, "degree", checked_number("degree", self.degree, positive=True))
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))


@dataclass(frozen=True, eq=False)
class Communities:
    """What a release of communities says.

    Attributes
    ----------
    nodes : sequence of hashable
        A tuple, or a range.
    labels : ndarray of int, shape (n,)
    scores : ndarray of float, shape (n, k)
        How much speaks for each label, in neighbours.
    degree : float or None
        The average degree that was used: given, or noisy.
    """

    nodes: Sequence[Hashable]
    labels: np.ndarray
    scores: np.ndarray
    degree: float | None


def require_graph_and_budget(graph: PrivateGraph, budget: Budget, settings: CommunitySettings) -> None:
    """TypeError for a graph or budget that is none, ValueError for more communities than vertices."""
    require_data_and_budget(graph, PrivateGraph, budget, name="graph")
    if settings.n_communities > graph.n:
        raise ValueError(
            f"n_communities={settings.n_communities} is more than the graph's vertices, {graph.n}; ask for at most one "
            "community for each vertex"
        )


def additive_cost(budget: Budget, noise: str) -> PureDP | ZCDP:
    """The guarantee that Laplace or Gaussian noise can have under a budget; ValueError where it can have none."""
    if noise == "laplace":
        if budget.epsilon is None:
            raise ValueError(f"noise='laplace' is for an epsilon, but the budget is {budget}; pass noise='gaussian'")
        return PureDP(budget.epsilon)
    if budget.rho is not None:
        return ZCDP(budget.rho)
    assert budget.epsilon is not None
    if not budget.delta:
        raise ValueError(f"noise='gaussian' cannot give {budget}; pass rho, or a delta above 0, or noise='laplace'")
    return ZCDP(accounting.approx_to_zcdp(budget.epsilon, budget.delta))


def noisy_degree(
    matrix: sp.csr_array, cost: PureDP | ZCDP, share: Fraction, seed: np.random.Generator | None
) -> tuple[float, tuple[np.ndarray, Noise]]:
    """Average degree from a noisy number of edges, and that number with its noise.

    Notes
    -----
    Privacy: the number of edges has sensitivity 1; noise that costs the given share of `cost`. The average is clipped
    to [0, n-1], which is post-processing.
    """
    [count], [noise] = additive_release([edge_count(matrix)], cost, share, seed=seed)
    n = matrix.shape[0]
    return min(max(0.0, 2.0 * float(count[0]) / n), n - 1.0), (count, noise)


def communities_release(
    graph: PrivateGraph,
    settings: CommunitySettings,
    budget: Budget,
    *,
    labels: np.ndarray,
    scores: np.ndarray,
    degree: float | None,
    counts: tuple[np.ndarray, Noise] | None,
    cost: Guarantee,
    mechanism: str,
    reproducible: bool,
    public: Mapping[str, Any],
) -> Release:
    """A release of kind "communities": labels, scores in ``public["score_unit"]``, and the noisy number of edges.

    All of it is post-processing of what was paid for: `labels` and `scores` must be noisy already.
    """
    most = 2.0**62 * SCORE_UNIT
    fixed = np.rint(np.clip(scores, -most, most) / SCORE_UNIT).astype(np.int64)
    nodes = None if isinstance(graph.nodes, range) else [encode_label(node) for node in graph.nodes]
    return Release(
        kind="communities",
        values=(labels.astype(np.int64), fixed, *([] if counts is None else [counts[0]])),
        noise=(None, None, *([] if counts is None else [counts[1]])),
        public={
            "n": graph.n,
            "nodes": nodes,
            "n_communities": settings.n_communities,
            "degree": degree,
            "score_unit": SCORE_UNIT,
            "settings": {"degree": settings.degree, "budget": budget.guarantee.to_dict(), **public},
        },
        adjacency=Adjacency.EDGE,
        guarantee=cost,
        mechanism=mechanism,
        reproducible=reproducible,
    )


def communities(release: Release) -> Communities:
    """Read a release of kind "communities"; ValueError for another kind. Post-processing."""
    if release.kind != "communities":
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind 'communities'")
    nodes, degree = release.public["nodes"], release.public["degree"]
    n = int(release.public["n"])
    names = range(n) if nodes is None else tuple(decode_label(node) for node in nodes)
    scores = release.values[1] * float(release.public["score_unit"])
    return Communities(names, release.values[0], scores, None if degree is None else float(degree))


def information(n_rounds: int, cost: PureDP | ZCDP) -> float:
    """Rounds over the variance of one round's noise, up to a factor that both kinds of noise share."""
    if isinstance(cost, PureDP):
        return cost.epsilon**2 / (8.0 * n_rounds)  # scale 2 T/epsilon
    return cost.rho  # variance T/rho

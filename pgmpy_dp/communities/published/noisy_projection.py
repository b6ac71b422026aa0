"""Communities by a noisy projection on correlation matrices, and a private vote: weak and exact recovery."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext
from fractions import Fraction

import numpy as np

from pgmpy_dp.communities.communities_base import (
    COUNT_SHARE,
    agreement,
    communities_release,
    noisy_degree,
    require_graph_and_budget,
    vote,
)
from pgmpy_dp.communities.community_labels import balanced, marks_of, spectral_labels
from pgmpy_dp.communities.operators.block_projection import BlockProjection
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.graph_operators import EdgeCount, NeighbourSums
from pgmpy_dp.communities.published.projection_solvers import projected, projection
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator, cost_of
from pgmpy_dp.private.operators.solutions import noise_plan, part_of
from pgmpy_dp.private.sensitive import Release

DEFAULT_BIAS = 0.7
"""Where none is given. With the default scale of 1.5/bias, biases from .5 to 1 come out between 1 and 2 of what the
projection needs, and so inside the range in which it works."""

VOTE_SHARE = Fraction(15, 100)


def run(graph: PrivateGraph, settings: Settings, budget: Budget) -> Release:
    """Find communities by the leading eigenvectors of a noisy projection, and a vote.

    Parameters
    ----------
    graph : PrivateGraph
        Time grows with the cube of its vertices, memory with the square: some thousand.
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateBlockModel`: "sdp-exact" projects one half of the edges and votes on the
        other, as published for exact recovery; else 15 hundredths of the budget go to a vote, unless `vote` is False.
        The device computes the projection, not its certificate: the release is the same up to the distance that the
        certificate allows. Its `analysis` is the sensitivity of the projection that the noise is for.
    budget : Budget
        Of rho, or of epsilon and a delta.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.communities.communities_base.communities` reads it.

    Raises
    ------
    TypeError, ValueError
        For a pure budget, more communities than vertices, a budget too small for any noise.
    ImportError
        If torch is not installed, before anything is spent.

    Notes
    -----
    Privacy
        *Guarantee.* Without a split: rho-zCDP, of which the vote has 15/100, the number of edges 1/50 where no degree
        is passed, and the projection the rest; an (epsilon, delta) budget is converted to rho by dp-accounting, or,
        where the projection is alone, calibrated exactly. With a split: the projection of one half of the edges is
        (epsilon, delta)-DP, the vote on the other epsilon-DP with Laplace noise of scale 2/epsilon; together they are
        (epsilon, delta)-DP (:meth:`~pgmpy_dp.private.curator.curator_base.Curator.split`). With rho both
        have Gaussian noise of it. A noisy number of edges is taken of the first half's own edges, from its share.

        *Source.* Chen et al. 2023, Algorithms 5.4 (projection), 5.13 (vote) and 5.12 (split).

        *Side channels.* Running time depends on the graph. How the solver ended is not shown; what is released has a
        certificate (:class:`~pgmpy_dp.communities.operators.block_projection.BlockProjection`).

    Examples
    --------
    >>> import numpy as np
    >>> from pgmpy_dp.communities.communities_base import communities
    >>> cliques = np.kron(np.eye(2), np.ones((30, 30))) - np.eye(60)
    >>> graph = PrivateGraph(cliques, ledger=Budget(rho=4.0))
    >>> from pgmpy_dp.estimators import PrivateBlockModel
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateBlockModel(method="sdp", bias=1.0))
    >>> labels = communities(run(graph, settings, Budget(rho=4.0))).labels
    >>> sorted([labels[:30].tolist(), labels[30:].tolist()]) == [[0] * 30, [1] * 30], str(graph.ledger.left)
    (True, '0-zCDP')
    """
    require_graph_and_budget(graph, budget, settings)
    settings = _completed(settings)
    (projecting, voting, eta), k = _shares(graph.n, settings, budget), settings.n_communities
    curator = Curator(
        graph,
        budget,
        what=f"projection for {k} communities of {graph.n} vertices" + (" and a vote" if voting else ""),
        mechanism="noisy_projection" + ("_of_half" if settings.split else ""),
        reserve=eta,
        pure=eta > 0,
        random_state=settings.random_state,
    )
    whole = 2.0 if settings.split else 1.0

    def release(outcome: tuple[np.ndarray, float, dict[str, list[float]]]) -> Release:
        sums, degree, more = outcome
        method = "sdp-exact" if settings.split else "sdp"
        facts = {"method": method, "bias": settings.bias, "vote": bool(more), "analysis": settings.analysis}
        return communities_release(curator, settings, budget, sums, whole * degree, **facts, **more)

    def steps() -> Generator[tuple[np.ndarray, float, dict[str, list[float]]], None, None]:
        with curator.split(2) if settings.split else nullcontext([curator, curator]) as (first, second):
            degree = noisy_degree(first, COUNT_SHARE) if settings.degree is None else settings.degree / whole
            noisy = projected(first, _program(graph.n, settings, degree), projecting, eta, settings.device)
            labels = spectral_labels(noisy, k)
            marks = marks_of(labels, k)
            yield graph.n * (noisy @ marks), degree, {}
            if voting:
                # As published, the vote of a split compares numbers of neighbours as they are.
                votes = vote(second, labels, k, 0.0 if settings.split else degree, voting)
                noise = NeighbourSums.noise_of(cost_of(budget, eta, pure=eta > 0), voting)
                even = balanced(votes, marks, degree) if settings.split else votes
                yield votes, degree, {"agreement": agreement(even, marks, noise.variance)}

    return curator.following(steps(), release)


def _completed(settings: Settings) -> Settings:
    """The settings, with the method's defaults and what its name says."""
    return settings.but(
        bias=DEFAULT_BIAS if settings.bias is None else settings.bias,
        vote=settings.vote is not False,
        split=settings.method == "sdp-exact",
    )


def _shares(n: int, settings: Settings, budget: Budget) -> tuple[Fraction, Fraction, float]:
    """Shares of projection and vote, and what the projection takes of delta; shares are of epsilon if that is not 0.

    From public numbers; what no noise can do is refused for every degree that may come.
    """
    if budget.rho is None and not budget.delta:
        raise ValueError(
            f"the budget is {budget}, and the projection needs Gaussian noise: pass rho or a delta above 0, or use "
            "randomised response"
        )
    counting = COUNT_SHARE if settings.degree is None else Fraction(0)
    voting = VOTE_SHARE if settings.vote and not settings.split else Fraction(0)
    projecting = 1 - counting - voting
    # Where all but the projection is pure, or there is no other question, all of delta is for its noise.
    eta = budget.delta if settings.split or projecting == 1 else 0.0
    voting = Fraction(1) if settings.split else voting
    cost = cost_of(budget, eta, pure=eta > 0)
    EdgeCount.noise_of(cost, COUNT_SHARE)
    NeighbourSums.noise_of(cost, voting or COUNT_SHARE)
    for degree in [1.0, max(1.0, n - 1.0)] if settings.degree is None else [settings.degree]:
        noise_plan(_program(n, settings, degree), part_of(cost, projecting, eta))
    return projecting, voting, eta


def _program(n: int, settings: Settings, degree: float) -> BlockProjection:
    # A noisy degree may be anything; below 1 there is nothing to find.
    options = {"n_communities": settings.n_communities, "analysis": settings.analysis}
    return projection(n, max(1.0, degree), settings.bias, **options)

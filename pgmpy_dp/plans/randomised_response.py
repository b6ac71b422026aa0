"""Communities of a graph whose every pair of vertices has answered by randomised response, and a private vote."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.models.communities import centred_answers, marks_of, power_communities, spectral_labels
from pgmpy_dp.plans.communities import CommunitySettings, agreement, communities_release, require_graph_and_budget, vote
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.base import cost_of
from pgmpy_dp.private.curator.graphs import GraphCurator, neighbour_noise, response_rate
from pgmpy_dp.private.data.graph import PrivateGraph
from pgmpy_dp.private.sensitive import Release

__all__ = ["MAX_DENSE_VERTICES", "ResponseSettings", "answer_deviation", "run"]

MAX_DENSE_VERTICES = 10_000
"""Every pair answers, so that time and memory grow with their number: 10,000 vertices take 1 GB and a minute."""

VOTE_SHARE = Fraction(1, 4)


@dataclass(frozen=True)
class ResponseSettings(CommunitySettings):
    """How the pairs answer, fixed before the edges are looked at.

    Parameters
    ----------
    n_communities, degree, random_state
        See :class:`~pgmpy_dp.plans.communities.CommunitySettings`. Default degrees are those of the
        answers, which cost nothing; with one public degree all vertices are taken to have it.
    vote : bool, default True
        Whether a quarter of the budget goes to a noisy majority vote on the labels that the answers gave.
    """

    vote: bool = True


def run(graph: PrivateGraph, settings: ResponseSettings, budget: Budget) -> Release:
    """Find communities in a graph of randomised answers.

    Parameters
    ----------
    graph : PrivateGraph
        Of at most 10,000 vertices.
    settings : ResponseSettings
    budget : Budget
        Of answers and vote together. It is charged to the graph's ledger once, before the edges are looked at. The
        method has no use for a delta and spends none.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.plans.communities.communities` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For too many vertices, more communities than vertices, a budget too small for any noise. All depend on public
        arguments only and come before the charge.

    Notes
    -----
    Privacy
        *Guarantee.* epsilon-DP: 3/4 for the answers
        (:meth:`~pgmpy_dp.private.curator.graphs.GraphCurator.randomised_response`) and 1/4 for the vote
        (:meth:`~pgmpy_dp.private.curator.graphs.GraphCurator.neighbour_sums`); all of it for the answers where there is
        no vote. With a rho budget the answers are ``sqrt(3 rho/2)``-DP, hence 3/4 rho-zCDP, and the vote has Gaussian
        noise.

        *Source.* Warner 1965; for graphs: Karwa, Slavkovic and Krivitsky 2014; vote: Chen et al. 2023, Algorithm 5.13.

        *Side channels.* Running time and memory depend on the number of vertices; those of the vote, on the edges.

    Algorithm
        Answers B give ``M = (B - p)/(1 - 2p) - w w'/(sum of w)``, unbiased for the adjacency matrix less that of a
        graph of degrees w without communities. Where no degree is given, w are the row sums of the answers, drawn
        towards their mean as far as chance explains that they differ
        (:func:`~pgmpy_dp.models.communities.expected_degrees`). Labels are those of M's leading eigenvectors, repaired
        by the generalised power method. The vote's sums are added to the rows of M x, each in proportion to the inverse
        of its noise's variance.

    Examples
    --------
    >>> from pgmpy_dp.models.block_models import error_rate, planted_labels, sample_block_model
    >>> from pgmpy_dp.plans.communities import communities
    >>> rng = np.random.default_rng(0)
    >>> truth = planted_labels(300, 2, rng)
    >>> graph = PrivateGraph(sample_block_model(truth, 60.0, 0.8, rng), ledger=Budget(epsilon=2.0))
    >>> found = communities(run(graph, ResponseSettings(), Budget(epsilon=2.0)))
    >>> error_rate(found.labels, truth) < 0.05, str(graph.ledger.left)
    (True, '0-DP')
    """
    require_graph_and_budget(graph, budget, settings)
    if graph.n > MAX_DENSE_VERTICES:
        raise ValueError(
            f"the graph has {graph.n} vertices; randomised response asks every pair and takes at most "
            f"{MAX_DENSE_VERTICES}: use noisy power iteration"
        )
    rate = _flip_rate(settings, budget)
    k, n = settings.n_communities, graph.n
    curator = GraphCurator(
        graph,
        budget,
        what=f"answers of all pairs of {n} vertices" + (" and a vote" if settings.vote else ""),
        mechanism="randomised_response",
        pure=budget.epsilon is not None,
        random_state=settings.random_state,
    )
    answers = curator.randomised_response(_answer_share(settings))
    matrix, degrees = centred_answers(answers, rate, settings.degree)
    labels = power_communities(matrix, spectral_labels(matrix, k), k)
    sums = (matrix @ marks_of(labels, k).astype(matrix.dtype)).astype(np.float64)

    def release(sums: np.ndarray, voted: bool, **more: Any) -> Release:
        facts = {"method": "randomized-response", "vote": voted, "flip_rate": rate, **more}
        return communities_release(curator, settings, budget, sums, float(np.mean(degrees)), **facts)

    if settings.vote:
        told = neighbour_noise(curator.cost, VOTE_SHARE).variance * (1.0 - 2.0 * rate) ** 2
        asked = (n - 1) * rate * (1.0 - rate) * (1.0 if k == 2 else 1.0 / k)
        with curator.keeping(lambda: release(sums, False)):
            votes = vote(curator, labels, k, degrees, VOTE_SHARE)
        noise = neighbour_noise(curator.cost, VOTE_SHARE).variance
        agreed = agreement(votes, marks_of(labels, k), noise)
        return release((told * sums + asked * votes) / (told + asked), True, agreement=agreed)
    return release(sums, False)


def answer_deviation(n: int, settings: ResponseSettings, budget: Budget) -> float:
    """Standard deviation of the noise that a vertex's sum over all n answers has; infinite if they say nothing."""
    try:
        rate = _flip_rate(settings, budget)
    except ValueError:
        return math.inf
    return math.inf if rate == 0.5 else math.sqrt(n * rate * (1.0 - rate)) / (1.0 - 2.0 * rate)


def _answer_share(settings: ResponseSettings) -> Fraction:
    """Of the budget, for the answers."""
    return 1 - (VOTE_SHARE if settings.vote else Fraction(0))


def _flip_rate(settings: ResponseSettings, budget: Budget) -> float:
    """Of the answers, from public numbers; ValueError where the vote would say nothing."""
    cost = cost_of(budget, pure=budget.epsilon is not None)
    neighbour_noise(cost, VOTE_SHARE)
    return response_rate(cost, _answer_share(settings))

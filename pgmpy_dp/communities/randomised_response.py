"""Communities of a graph whose every pair of vertices has answered by randomised response, and a private vote."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import entr

from pgmpy_dp.communities.communities_base import (
    COUNT_SHARE,
    agreement,
    communities_release,
    noisy_degree,
    require_graph_and_budget,
    vote,
)
from pgmpy_dp.communities.community_labels import centred_answers, marks_of, power_communities, spectral_labels
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.graph_operators import EdgeAnswers, EdgeCount, NeighbourSums
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator, cost_of
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Release

MAX_DENSE_VERTICES = 10_000
"""Every pair answers, so that time and memory grow with their number: 10,000 vertices take 1 GB and a minute."""

VOTE_SHARE = Fraction(1, 4)

# A vote takes from the answers what finding the communities at all rests on. It pays where their degree is so many
# deviations of the answers' noise, and for two communities: for more, neighbours in other groups share that noise, and
# labels that are found at all are nearly all right. Tuned on block models, see docs/block-models.md.
_BORNE = 2.0
# x'Wx of the best signs x for a matrix W of independent entries of variance v is 2 P n^1.5 root(v) (Parisi 1980).
_BEST_SIGNS = 2 * 0.7632


def run(graph: PrivateGraph, settings: Settings, budget: Budget) -> Release:
    """Find communities in a graph of randomised answers.

    Refuses too many vertices, more communities than vertices, a budget too small for any noise.

    Parameters
    ----------
    graph : PrivateGraph
        Of at most 10,000 vertices.
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateBlockModel`. Default degrees are those of the answers, which cost
        nothing; with one public degree all vertices are taken to have it. A vote is on the labels of the answers, for a
        quarter of the budget. Default: for two communities, where the average degree (a noisy one for a
        fiftieth of the budget, unless it is passed) is at least twice the deviation of the noise of a vertex's answers.
    budget : Budget
        Of answers and vote together. The method has no use for a delta and spends none.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.communities.communities_base.communities` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* epsilon-DP: 1/4 for the vote
        (:class:`~pgmpy_dp.communities.operators.graph_operators.NeighbourSums`), 1/50 for the number of
        edges where it decides whether there is one, and the rest for the answers
        (:class:`~pgmpy_dp.communities.operators.graph_operators.EdgeAnswers`). With a rho budget
        answers for the share s are ``sqrt(2 s rho)``-DP, hence s rho-zCDP, and the others have Gaussian noise.

        *Source.* Warner 1965; for graphs: Karwa, Slavković and Krivitsky 2014; vote: Chen et al. 2023, Algorithm 5.13.

        *Side channels.* Running time and memory depend on the number of vertices; those of the vote, on the edges.

    Examples
    --------
    >>> from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model
    >>> from pgmpy_dp.communities.communities_base import communities
    >>> rng = np.random.default_rng(0)
    >>> truth = planted_labels(300, 2, rng)
    >>> graph = PrivateGraph(sample_block_model(truth, 60.0, 0.8, rng), ledger=Budget(epsilon=2.0))
    >>> from pgmpy_dp.estimators import PrivateBlockModel
    >>> from pgmpy_dp.learning.options import settings_of
    >>> answer = communities(run(graph, settings_of(PrivateBlockModel()), Budget(epsilon=2.0)))
    >>> error_rate(answer.labels, truth) < 0.05, str(graph.ledger.left)
    (True, '0-DP')
    """
    require_graph_and_budget(graph, budget, settings)
    if graph.n > MAX_DENSE_VERTICES:
        raise ValueError(
            f"the graph has {graph.n} vertices; randomised response asks every pair and takes at most "
            f"{MAX_DENSE_VERTICES}: use noisy power iteration"
        )
    cost, k, n = _checked_cost(budget), settings.n_communities, graph.n
    curator = Curator(
        graph,
        budget,
        what=f"answers of all pairs of {n} vertices" + (" and a vote" if settings.vote else ""),
        mechanism="randomised_response",
        pure=budget.epsilon is not None,
        random_state=settings.random_state,
    )
    counting = COUNT_SHARE if _asks(settings) and settings.degree is None else Fraction(0)
    voting = bool(settings.vote)
    with curator.keeping():
        if _asks(settings):
            degree = noisy_degree(curator, counting) if settings.degree is None else settings.degree
            voting = degree >= _BORNE * _deviation(n, cost, 1 - counting - VOTE_SHARE)
        share = 1 - counting - (VOTE_SHARE if voting else 0)
        answers = curator.ask(EdgeAnswers(), share)
    rate = EdgeAnswers.rate(cost, share)
    # Answers B give `M = (B - p)/(1 - 2p) - w w'/(sum of w)`, unbiased for the adjacency matrix less that of a graph of
    # degrees w without communities. Where no degree is passed, w are the row sums of the answers, drawn towards their
    # mean as far as chance explains that they differ (`expected_degrees`). Labels are those of M's leading
    # eigenvectors, repaired by the generalised power method. The vote's sums are added to the rows of M x, each in
    # proportion to the inverse of its noise's variance.
    matrix, degrees = centred_answers(answers, rate, settings.degree)
    labels = power_communities(matrix, spectral_labels(matrix, k), k)
    marks = marks_of(labels, k)
    sums = (matrix @ marks.astype(matrix.dtype)).astype(np.float64)

    def release(sums: np.ndarray, voted: bool, **more: Any) -> Release:
        facts = {"method": "randomized-response", "vote": voted, "flip_rate": rate, **more}
        return communities_release(curator, settings, budget, sums, float(np.mean(degrees)), **facts)

    def unvoted() -> Release:
        told, by_chance, deviation = _by_chance(sums, marks, _deviation(n, cost, share), float(np.mean(degrees)))
        return release(sums, False, agreement=[told, deviation], by_chance=by_chance)

    if not voting:
        return unvoted()
    vote_noise = NeighbourSums.noise_of(cost, VOTE_SHARE).variance * (1.0 - 2.0 * rate) ** 2
    answer_noise = (n - 1) * rate * (1.0 - rate) * (1.0 if k == 2 else 1.0 / k)
    with curator.keeping(unvoted):
        votes = vote(curator, labels, k, degrees, VOTE_SHARE)
    agreed = agreement(votes, marks, NeighbourSums.noise_of(cost, VOTE_SHARE).variance)
    return release((vote_noise * sums + answer_noise * votes) / (vote_noise + answer_noise), True, agreement=agreed)


def _asks(settings: Settings) -> bool:
    """Whether the degree decides about a vote."""
    return settings.vote is None and settings.n_communities == 2


def _by_chance(sums: np.ndarray, marks: np.ndarray, deviation: float, degree: float) -> tuple[float, float, float]:
    """The agreement of answers with the labels from them, and with the best labels where there are no communities."""
    n = len(marks)
    # Noise of the pairs, and of a random graph, has the variance v per pair. The best signs then have 1.526 n^1.5
    # root(v) (Parisi's constant). Indicators of groups of shares p_c have at most what the eigenvalues' edge allows,
    # `2 root(n v) n (1 - sum of p_c^2)`, and what the largest of so many normal numbers as there are such groups is,
    # `2 n^1.5 root(v sum of p_c^2 (H(p) + k ln(n)/n))` with the entropy H. And the deviation of the sum for fixed
    # labels.
    root = math.sqrt((deviation**2 + degree) / n)
    best = _BEST_SIGNS
    if marks.shape[1] > 1:
        p = np.mean(marks, axis=0)
        labellings = float(entr(p).sum()) + len(p) * math.log(n) / n
        square = float(np.sum(p**2))
        best = 2.0 * min(1.0 - square, math.sqrt(square * labellings))
    return float(np.sum(sums * marks)), best * root * n**1.5, math.sqrt(2.0) * root * n


def answer_deviation(n: int, settings: Settings, budget: Budget) -> float:
    """Standard deviation of the noise that a vertex's sum over all n answers has; infinite if they say nothing."""
    try:
        cost = _checked_cost(budget)
    except ValueError:
        return math.inf
    return _deviation(n, cost, 1 - (VOTE_SHARE if settings.vote else Fraction(0)))


def _deviation(n: int, cost: PureDP | ZCDP, share: Fraction) -> float:
    rate = EdgeAnswers.rate(cost, share)
    return math.inf if rate == 0.5 else math.sqrt(n * rate * (1.0 - rate)) / (1.0 - 2.0 * rate)


def _checked_cost(budget: Budget) -> PureDP | ZCDP:
    """The cost, from public numbers; ValueError where the vote or the number of edges would say nothing."""
    cost = cost_of(budget, pure=budget.epsilon is not None)
    NeighbourSums.noise_of(cost, VOTE_SHARE)
    EdgeCount.noise_of(cost, COUNT_SHARE)
    EdgeAnswers.rate(cost, 1)
    return cost

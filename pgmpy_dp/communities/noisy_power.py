"""Communities by power iteration on signs, with noise in every round.

A round sends each vertex the sum of its neighbours' marks, with integer noise, and the vertex takes the label that this
sum favours. One edge changes two of the sums by 1, whatever the number of communities, so that the noise does not grow
with the graph, and a round is one product with a sparse matrix.
"""

from __future__ import annotations

import math
from collections.abc import Generator
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
from pgmpy_dp.communities.community_labels import combined, expected_degrees, labels_of, marks_of, random_labels
from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.operators.graph_operators import EdgeCount, NeighbourSums
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator, cost_of
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.shown import quantity

DEGREES_SHARE = Fraction(1, 20)
"""Of the budget, for the degrees of all vertices where none is passed."""

# Chosen on the block models of docs/block-models.md. Rounds are dear under pure epsilon, where noise grows like T.
_ROUNDS = {"gaussian": 20, "laplace": 8}
# What the sum of the last rounds is worth in the next one. Without a memory a start that is by chance nearly
# orthogonal to the communities is lost in one run of five; a long memory keeps the noise of the start.
_MEMORY = {"gaussian": 0.6, "laplace": 0.3}


def run(
    graph: PrivateGraph, settings: Settings, budget: Budget, noise: str = "auto", n_rounds: int | None = None
) -> Release:
    """Find communities by noisy power iteration.

    Refuses more communities than vertices, noise that cannot give the budget, a budget too small for any noise.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.PrivateBlockModel`.
    budget : Budget
        Of all rounds together.
    noise : {"auto", "laplace", "gaussian"}, default "auto"
        "auto" takes what suits the budget, and for (epsilon, delta) whichever tells more in all rounds together.
    n_rounds : int, optional
        T. Default: 20 with Gaussian, 8 with Laplace noise.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.communities.communities_base.communities` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* Marks are public when a round begins: the first are random, later ones follow from noisy sums. T
        rounds share the budget, whose noise is discrete Laplace of scale ``2 T/epsilon``, or discrete Gaussian of
        variance ``T/rho`` (:class:`~pgmpy_dp.communities.operators.graph_operators.NeighbourSums`). Where no
        degree is passed, the number of edges takes 1/50 of the budget, the sums of marks that are all 1, which are the
        degrees, 1/20, and the rounds share the rest.

        *Source.* Iteration on signs: the generalised power method (Boumal 2016) with the noise of the noisy power
        method (Hardt and Price 2014) on its sums; the memory and the final weights are post-processing.

        *Side channels.* Running time and memory depend on the number of edges. The number of rounds does not depend on
        the graph: there is no test of convergence.

    Examples
    --------
    >>> from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model
    >>> from pgmpy_dp.communities.communities_base import communities
    >>> rng = np.random.default_rng(0)
    >>> truth = planted_labels(1000, 2, rng)
    >>> graph = PrivateGraph(sample_block_model(truth, 100.0, 0.8, rng), ledger=Budget(rho=0.1))
    >>> from pgmpy_dp.estimators import PrivateBlockModel
    >>> from pgmpy_dp.learning.options import settings_of
    >>> answer = communities(run(graph, settings_of(PrivateBlockModel()), Budget(rho=0.1)))
    >>> error_rate(answer.labels, truth) < 0.01, str(graph.ledger.left)
    (True, '0-zCDP')
    """
    require_graph_and_budget(graph, budget, settings)
    settings = settings.but(noise=noise, n_rounds=n_rounds)
    cost, n_rounds = _plan(settings, budget)
    law = "laplace" if isinstance(cost, PureDP) else "gaussian"
    k, n = settings.n_communities, graph.n
    curator = Curator(
        graph,
        budget,
        what=f"{quantity(n_rounds, 'noisy power iteration')} for {quantity(k, 'community')} of "
        f"{quantity(n, 'vertex', 'vertices')}",
        mechanism=f"noisy_power_{law}",
        pure=law == "laplace",
        random_state=settings.random_state,
    )
    marks: list[np.ndarray] = []
    sums: list[np.ndarray] = []

    def rounds() -> Generator[tuple[np.ndarray, float], None, None]:
        degree, degrees = settings.degree, np.full(1, settings.degree or 0.0)
        if degree is None:
            degree = noisy_degree(curator, COUNT_SHARE)
            noisy = curator.ask(NeighbourSums(np.ones((n, 1), dtype=np.int8)), DEGREES_SHARE)
            degrees = expected_degrees(noisy[:, 0], NeighbourSums.noise_of(cost, DEGREES_SHARE).variance, degree)
        labels, share = random_labels(n, k, curator.generator()), _share(settings, n_rounds)
        memory = np.zeros(1, dtype=np.float32)
        # Round t: `y_t = A u_t + noise - w (w' u_t)/(sum of w)`, without what a vertex would count of itself, with w
        # the expected degrees (`expected_degrees`), `s_t = y_t + b s_(t-1)`, `u_(t+1) = sign(s_t)`, with b = 0.6
        # (Laplace: 0.3). The outcome is the sign of `sum_t m_t y_t`, where m_t is the agreement of u_t with the outcome
        # (`combined`).
        for _ in range(n_rounds):
            marks.append(marks_of(labels, k))
            sums.append(vote(curator, labels, k, degrees, share).astype(np.float32))
            memory = sums[-1] + np.float32(_MEMORY[law]) * memory
            labels = labels_of(memory)
            yield labels, degree

    def release(outcome: tuple[np.ndarray, float]) -> Release:
        labels, degree = outcome
        facts = {"method": "noisy-power", "noise": settings.noise, "n_rounds": len(sums)}
        noise = NeighbourSums.noise_of(cost, _share(settings, n_rounds)).variance
        facts["agreement"] = agreement(sums[-1], marks[len(sums) - 1], noise)
        scores = combined(marks[: len(sums)], sums, labels, k)
        return communities_release(curator, settings, budget, scores, degree, **facts)

    return curator.following(rounds(), release)


def round_deviation(budget: Budget) -> float:
    """Standard deviation of the noise that a vertex's sum has in one of the default rounds; infinite if impossible."""
    try:
        cost, n_rounds = _plan(Settings(degree=None, noise="auto", n_rounds=None), budget)
    except ValueError:
        return math.inf
    return math.sqrt(n_rounds / _information(cost, n_rounds))


def _plan(settings: Settings, budget: Budget) -> tuple[PureDP | ZCDP, int]:
    """The guarantee, whose type tells the noise, and the number of rounds, from public numbers."""
    possible = (["gaussian"] if budget.rho or budget.delta else []) + (["laplace"] if budget.epsilon else [])
    noises = possible if settings.noise == "auto" else [settings.noise]
    if not set(noises) <= set(possible):
        raise ValueError(
            f"noise={settings.noise!r} cannot give {budget}; pass noise={possible[0]!r}, or another budget"
        )
    plans = [(cost_of(budget, pure=noise == "laplace"), settings.n_rounds or _ROUNDS[noise]) for noise in noises]
    cost, n_rounds = max(plans, key=lambda plan: _information(*plan))
    NeighbourSums.noise_of(cost, _share(settings, n_rounds))  # impossible scales are refused here, before the charge
    EdgeCount.noise_of(cost, COUNT_SHARE)
    return cost, n_rounds


def _information(cost: PureDP | ZCDP, n_rounds: int) -> float:
    """Rounds over the variance of one round's noise, up to a factor that both kinds of noise share."""
    if isinstance(cost, PureDP):
        return cost.epsilon**2 / (8.0 * n_rounds)  # scale 2 T/epsilon
    return cost.rho  # variance T/rho


def _share(settings: Settings, n_rounds: int) -> Fraction:
    """The share of the budget for one round."""
    return (1 - (COUNT_SHARE + DEGREES_SHARE if settings.degree is None else 0)) / Fraction(n_rounds)

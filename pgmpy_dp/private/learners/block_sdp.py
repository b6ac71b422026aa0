"""Communities by a noisy projection on correlation matrices, and a private vote: weak and exact recovery."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from pgmpy_dp.models.communities import community_scores, labels_of, marks_of, spectral_labels
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.solutions import certified_solution, noise_plan
from pgmpy_dp.private.data.graph import PrivateGraph, adjacency_matrix, random_edge_halves
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, checked_number
from pgmpy_dp.private.learners.block_projection import ANALYSES, BlockProjection
from pgmpy_dp.private.learners.block_vote import noisy_vote
from pgmpy_dp.private.learners.communities import (
    COUNT_SHARE,
    CommunitySettings,
    communities_release,
    noisy_degree,
    require_graph_and_budget,
)
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import gaussian_scales, laplace_scales
from pgmpy_dp.private.noise.fine_grid import on_grid, with_noise
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Release

__all__ = ["DEFAULT_BIAS", "ProjectionSettings", "run"]

DEFAULT_BIAS = 0.7
"""Where none is given. With the default scale of 1.5/bias, biases from .5 to 1 come out between 1 and 2 of what the
projection needs, and so inside the range in which it works."""

VOTE_SHARE = Fraction(15, 100)


@dataclass(frozen=True)
class ProjectionSettings(CommunitySettings):
    """What to project and how to vote, fixed before the edges are looked at.

    Parameters
    ----------
    n_communities, degree, random_state
        See :class:`~pgmpy_dp.private.learners.communities.CommunitySettings`.
    bias : float, default 0.7
        gamma in (0, 1], public.
    vote : bool, default True
        Whether 15 hundredths of the budget go to a noisy majority vote. Not for a split, which always votes.
    split : bool, default False
        Project one half of the edges and vote on the other, as published for exact recovery.
    analysis : {"tight", "published"}, default "tight"
        Which sensitivity of the projection the noise is for.
    """

    bias: float = DEFAULT_BIAS
    vote: bool = True
    split: bool = False
    analysis: str = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bias", checked_number("bias", self.bias, positive=True))
        if self.bias > 1:
            raise ValueError(f"bias={self.bias!r} is above 1; pass a number in (0, 1]")
        if self.analysis not in ANALYSES:
            raise ValueError(f"analysis={self.analysis!r} is not supported; use one of {ANALYSES}")


def run(graph: PrivateGraph, settings: ProjectionSettings, budget: Budget) -> Release:
    """Find communities by the leading eigenvectors of a noisy projection, and a vote.

    Parameters
    ----------
    graph : PrivateGraph
        Time grows with the cube of its vertices, memory with the square: some thousand.
    settings : ProjectionSettings
    budget : Budget
        Of rho, or of epsilon and a delta. It is charged to the graph's ledger once, before the edges are looked at.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.private.learners.communities.communities` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    ImportError
        If torch is not installed, before anything is spent.
    TypeError, ValueError
        For a pure budget, more communities than vertices, a budget too small for any noise. All depend on public
        arguments only and come before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* Of the projection: :mod:`pgmpy_dp.private.learners.block_projection`. Of the vote and of the
        number of edges: :mod:`pgmpy_dp.private.data.graph`.

        *Guarantee.* Without a split: rho-zCDP, of which the vote has 15/100, the number of edges 1/50 where no degree
        is given, and the projection the rest; an (epsilon, delta) budget is converted to rho by dp-accounting, or,
        where the projection is alone, calibrated exactly. With a split: the projection of one half of the edges is
        (epsilon, delta)-DP, the vote on the other epsilon-DP with Laplace noise of scale 2/epsilon; together they are
        (epsilon, delta)-DP (:func:`~pgmpy_dp.private.data.graph.random_edge_halves` has the proof). With rho both have
        Gaussian noise of it. A noisy number of edges is taken of each half's own edges, from a share of its budget.

        *Source.* Chen et al. 2023, Algorithms 5.4 (projection), 5.13 (vote) and 5.12 (split).

        *Side channels.* Running time depends on the graph. How the solver ended is not shown; what is released has a
        certificate (:mod:`pgmpy_dp.private.mathematics.certificates`).

    Examples
    --------
    >>> from pgmpy_dp.private.learners.communities import communities
    >>> cliques = np.kron(np.eye(2), np.ones((30, 30))) - np.eye(60)
    >>> graph = PrivateGraph(cliques, ledger=Budget(rho=4.0))
    >>> labels = communities(run(graph, ProjectionSettings(bias=1.0), Budget(rho=4.0))).labels
    >>> sorted([labels[:30].tolist(), labels[30:].tolist()]) == [[0] * 30, [1] * 30], str(graph.ledger.left)
    (True, '0-zCDP')
    """
    require_graph_and_budget(graph, budget, settings)
    plan = _plan(graph, settings, budget)
    seed = seeded_generator(settings.random_state)
    mechanism = "noisy_projection" + ("_of_half" if settings.split else "")
    graph.ledger.charge(
        plan.cost,
        what=f"projection for {settings.n_communities} communities of {graph.n} vertices"
        + (" and a vote" if plan.vote else ""),
        columns=(),
        mechanism=mechanism,
        adjacency=graph.adjacency,
        reproducible=seed is not None,
    )
    k, matrix = settings.n_communities, adjacency_matrix(graph)
    first, second = random_edge_halves(graph, seed) if settings.split else (matrix, matrix)
    degree, counts = settings.degree, None
    if degree is None:
        degree, counts = noisy_degree(first, plan.count, Fraction(1), seed)
    elif settings.split:
        degree /= 2.0  # of a half
    program = _program(graph.n, settings, degree)
    noisy = _projected(program, first, plan.projection, seed)
    labels = spectral_labels(noisy, k)
    sums = graph.n * (noisy @ marks_of(labels, k))
    if plan.vote is not None:
        # As published, the vote of a split compares numbers of neighbours as they are.
        sums, _ = noisy_vote(second, labels, k, 0.0 if settings.split else degree, plan.vote, seed=seed)
    return communities_release(
        graph,
        settings,
        budget,
        labels=labels_of(sums),
        scores=community_scores(sums),
        degree=degree * (2.0 if settings.split else 1.0),
        counts=counts,
        cost=plan.cost,
        mechanism=mechanism,
        reproducible=seed is not None,
        public={
            "method": "sdp-exact" if settings.split else "sdp",
            "bias": settings.bias,
            "vote": plan.vote is not None,
            "analysis": settings.analysis,
        },
    )


@dataclass(frozen=True)
class _Plan:
    """Who spends what."""

    cost: Guarantee
    projection: Budget
    count: PureDP | ZCDP
    vote: PureDP | ZCDP | None


def _plan(graph: PrivateGraph, settings: ProjectionSettings, budget: Budget) -> _Plan:
    """The plan, from public numbers; what no noise can do is refused for every degree that may come."""
    if budget.rho is None and not budget.delta:
        raise ValueError(
            f"the budget is {budget}, and the projection needs Gaussian noise: pass rho or a delta above 0, or use "
            "randomised response"
        )
    counted = settings.degree is None
    c = COUNT_SHARE if counted else Fraction(0)
    rho = Fraction(budget.rho if budget.rho is not None else accounting.approx_to_zcdp(budget.epsilon, budget.delta))
    if settings.split and budget.epsilon is not None:
        # Of the first half: the count has a share of epsilon, by plain composition.
        plan = _Plan(
            ApproxDP(budget.epsilon, budget.delta),
            Budget(epsilon=float((1 - c) * Fraction(budget.epsilon)) * (1.0 - 1e-15), delta=budget.delta),
            PureDP(float(COUNT_SHARE) * budget.epsilon),
            PureDP(budget.epsilon),
        )
        laplace_scales([2.0, 1.0], COUNT_SHARE * Fraction(budget.epsilon))
    elif settings.split:
        plan = _Plan(ZCDP(float(rho)), _part(rho, 1 - c), ZCDP(_part(rho, COUNT_SHARE).rho or 0.0), ZCDP(float(rho)))
    elif settings.vote or counted:
        v = VOTE_SHARE if settings.vote else Fraction(0)
        vote = ZCDP(_part(rho, v).rho or 0.0) if settings.vote else None
        plan = _Plan(ZCDP(float(rho)), _part(rho, 1 - c - v), ZCDP(_part(rho, COUNT_SHARE).rho or 0.0), vote)
    else:
        plan = _Plan(budget.guarantee, budget, ZCDP(float(rho)), None)
    if isinstance(plan.count, ZCDP):
        gaussian_scales([2.0, 1.0], COUNT_SHARE * rho)
    degrees = [1.0, max(1.0, graph.n - 1.0)] if settings.degree is None else [settings.degree]
    for degree in degrees:
        noise_plan(_program(graph.n, settings, degree), plan.projection)
    return plan


def _part(rho: Fraction, share: Fraction) -> Budget:
    """A budget of at most this share of rho."""
    return Budget(rho=float(rho * share) * (1.0 - 1e-15))


def _program(n: int, settings: ProjectionSettings, degree: float) -> BlockProjection:
    # A noisy degree may be anything; below 1 there is nothing to find.
    return BlockProjection(n, max(1.0, degree), settings.bias, settings.n_communities, analysis=settings.analysis)


def _projected(
    program: BlockProjection, matrix: sp.csr_array, budget: Budget, seed: np.random.Generator | None
) -> np.ndarray:
    """The projection with noise, shape (n, n)."""
    plan = noise_plan(program, budget)
    exact = on_grid(certified_solution(program, matrix), plan, Adjacency.EDGE)
    entries: Any = with_noise(exact, plan, seed)
    noisy = np.eye(program.n) / program.n
    rows, columns = np.triu_indices(program.n, 0 if program.analysis == "published" else 1)
    noisy[rows, columns] = noisy[columns, rows] = np.ldexp(entries.astype(float), plan.exponent)
    return noisy

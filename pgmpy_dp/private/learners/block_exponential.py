"""Two communities by the exponential mechanism, drawn exactly: pure epsilon-DP, for small graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import scipy.sparse as sp

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.models.communities import community_scores, marks_of
from pgmpy_dp.private.data.graph import PrivateGraph, adjacency_matrix
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.learners.communities import (
    COUNT_SHARE,
    CommunitySettings,
    communities_release,
    noisy_degree,
    require_graph_and_budget,
)
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import gaussian_scales, laplace_scales
from pgmpy_dp.private.noise.choice import exponential_below
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.noise.sign_sampling import SignLaw, sample_signs
from pgmpy_dp.private.sensitive import Release

__all__ = ["ExponentialSettings", "exponential_law", "run"]

_POINT = 1 << 20  # unit of an edge's weights: epsilon is met to 1e-6
_SIZE_POINT = 256 * math.log(2.0)  # of the weights of sizes


@dataclass(frozen=True)
class ExponentialSettings(CommunitySettings):
    """What to draw, fixed before the edges are looked at.

    Parameters
    ----------
    n_communities : 2
    degree, random_state
        See :class:`~pgmpy_dp.private.learners.communities.CommunitySettings`.
    max_vertices : int, default 64
        Larger graphs are refused. Above 22 vertices the time depends on the private edges: of 64 vertices, a path takes
        .03 s and a random 3-regular graph 7 s; a dense graph of 40 does not end. `PrivateBlockModel` always has the
        default; in settings for `run`, raise it only where it is public that the graph is tree-like.
    """

    max_vertices: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_communities != 2:
            raise ValueError(
                f"n_communities={self.n_communities!r}: the exponential mechanism is drawn from exactly for two "
                "communities only; use method 'randomized-response' or 'noisy-power' for more"
            )
        object.__setattr__(self, "max_vertices", checked_integer("max_vertices", self.max_vertices, 2))


def run(graph: PrivateGraph, settings: ExponentialSettings, budget: Budget) -> Release:
    """Draw two communities with probability growing with the edges inside of them.

    Parameters
    ----------
    graph : PrivateGraph
    settings : ExponentialSettings
    budget : Budget
        It is charged to the graph's ledger before the edges are looked at. A delta is not spent.

    Returns
    -------
    Release
        ``kind="communities"``; :func:`~pgmpy_dp.private.learners.communities.communities` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For too many vertices, or communities that are not two. All depend on public arguments only and come before the
        charge.

    Notes
    -----
    Privacy
        *Sensitivity.* The labelling x has a weight that is a product over edges, of B where the ends agree and D where
        they do not, and of a function of the communities' sizes that the edges have no part in. One edge more
        multiplies every weight by B or by D, and their sum by a number in between.

        *Guarantee.* So no probability changes by more than a factor B/D, in either direction. B and D are integers with
        ``B/D <= exp(epsilon)``: exactly epsilon-DP. The logarithm of the change ranges over an interval of that length,
        which gives ``epsilon**2/8``-zCDP (Cesar and Rogers 2021): a rho budget is spent with epsilon = sqrt(8 rho).
        Where no degree is given, the noisy number of edges takes 1/50 of the budget.

        *Source.* McSherry and Talwar 2007; score: Chen et al. 2023, Algorithm 5.19, without its split and vote. Their
        score ``sum over pairs (A_ij - d/n) x_i x_j`` has sensitivity 1 and the weight ``exp(epsilon score/2)``.

        *Exactness.* Drawn with integers from bits of the operating system
        (:mod:`pgmpy_dp.private.noise.sign_sampling`): no floating point, no Markov chain, whose law after finitely many
        steps would be another one, with no guarantee.

        *Side channels.* Above 22 vertices the running time depends on the graph, and doubles with each edge that
        widens it; memory does not. A refusal because of the width would be an output that one edge decides, so that
        there is none: the public number of vertices decides what is tried.

    Examples
    --------
    >>> import networkx as nx
    >>> from pgmpy_dp.private.learners.communities import communities
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
    share = 1 - (COUNT_SHARE if settings.degree is None else Fraction(0))
    cost: PureDP | ZCDP
    if budget.rho is not None:
        cost = ZCDP(budget.rho)
        gaussian_scales([1.0], COUNT_SHARE * Fraction(budget.rho))
        epsilon = Fraction(math.sqrt(8.0 * float(share) * budget.rho) * (1.0 - 1e-12))
    else:
        assert budget.epsilon is not None
        cost = PureDP(budget.epsilon)
        laplace_scales([1.0], COUNT_SHARE * Fraction(budget.epsilon))
        epsilon = share * Fraction(budget.epsilon)
    seed = seeded_generator(settings.random_state)
    graph.ledger.charge(
        cost,
        what=f"two communities of {graph.n} vertices",
        columns=(),
        mechanism="exponential",
        adjacency=graph.adjacency,
        reproducible=seed is not None,
    )
    matrix = adjacency_matrix(graph)
    degree, counts = settings.degree, None
    if degree is None:
        degree, counts = noisy_degree(matrix, cost, COUNT_SHARE, seed)
    upper = sp.triu(matrix, 1).tocoo()
    edges = list(zip(upper.row.tolist(), upper.col.tolist(), strict=True))
    labels = sample_signs(edges, exponential_law(graph.n, degree, epsilon), seed)
    return communities_release(
        graph,
        settings,
        budget,
        labels=labels,
        scores=community_scores(marks_of(labels, 2)),
        degree=degree,
        counts=counts,
        cost=cost,
        mechanism="exponential",
        reproducible=seed is not None,
        public={"method": "exponential", "max_vertices": settings.max_vertices},
    )


def exponential_law(n: int, degree: float, epsilon: Fraction) -> SignLaw:
    """Weights ``exp(epsilon score/2)`` in integers, with a ratio of an edge's two weights of at most exp(epsilon).

    With S = n - 2 c the sum of signs, ``sum over pairs x_i x_j = (S**2 - n)/2``: the score's last term is a function of
    c and weighs ``exp(-epsilon d S**2/(4 n))``, up to a factor that all labellings share. It may be rounded at will, as
    edges have no part in it.

    Examples
    --------
    >>> law = exponential_law(4, 2.0, Fraction(1))
    >>> law.agree / law.disagree <= math.e, law.sizes[0] < law.sizes[2]
    (True, True)
    """
    agree = (exponential_below(epsilon) * _POINT).__floor__()
    exponents = [float(epsilon) * degree * (n - 2 * c) ** 2 / (4.0 * n) for c in range(n + 1)]
    sizes = tuple(max(1, int(math.exp(max(-700.0, _SIZE_POINT - x)))) for x in exponents)
    return SignLaw(agree, _POINT, sizes)

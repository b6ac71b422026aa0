"""How many of several disjoint blocks of records have each edge in their graphs, with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.table import PrivateTable, random_parts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.learners.block_graphs import (
    MAX_BLOCKS,
    BlockLearner,
    BlockSettings,
    block_graphs,
    blocks_public,
    plan_blocks,
)
from pgmpy_dp.private.learners.marginals import NOISES, checked_integer, noise_and_cost, require_table_and_budget
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import (
    gaussian_release,
    gaussian_scales,
    laplace_release,
    laplace_scales,
    root_up,
)
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Release, Sensitive

__all__ = ["VotingSettings", "edge_frequencies", "run", "vote_counts", "vote_sensitivity"]


@dataclass(frozen=True)
class VotingSettings:
    """How the blocks vote, fixed before the records are looked at.

    Parameters
    ----------
    blocks : BlockSettings
        Its `max_edges`, s, bounds how many counts one block changes: the smaller, the less noise.
    n_blocks : int, optional
        M. Default: 2.5 times what the noise of all pairs stays below with probability about .95, so that an edge of
        nine blocks in ten is told from one of one in ten.
    noise : {"auto", "laplace", "gaussian"}, default "auto"
    random_state : int, optional
        For tests and benchmarks only: repeatable blocks and noise. The release **is not private**.
    """

    blocks: BlockSettings
    n_blocks: int | None = None
    noise: str = "auto"
    random_state: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.blocks, BlockSettings):
            raise TypeError(f"blocks={self.blocks!r} is a {type(self.blocks).__name__}; pass BlockSettings")
        if self.noise not in NOISES:
            raise ValueError(f"noise={self.noise!r} is not supported; use one of {NOISES}")
        if self.n_blocks is not None:
            object.__setattr__(self, "n_blocks", checked_integer("n_blocks", self.n_blocks, 1))
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))


def vote_sensitivity(n_pairs: int, max_edges: int) -> tuple[float, float, float]:
    """How far the counts of all edges move between neighbours, of either adjacency: l1, l2, l-infinity sensitivities.

    Parameters
    ----------
    n_pairs : int
        p(p-1)/2.
    max_edges : int
        s: no block's graph has more.

    Notes
    -----
    Privacy: under add_remove and under replace_one the records of one block change, since the draws that make the
    blocks do not look at them (:func:`~pgmpy_dp.private.data.table.random_parts`). That block's graph G becomes G', and
    the counts move by the difference of their indicators: by 1 on the symmetric difference, which has at most
    min(2s, n_pairs) pairs. Hence l1 is this number and l2 its root, rounded up. Where draws of parts looked at content,
    a replacement would change two graphs, and both sensitivities would be larger.

    Examples
    --------
    >>> vote_sensitivity(45, 8)
    (16.0, 4.0, 1.0)
    """
    changed = min(2 * max_edges, n_pairs)
    return float(changed), root_up(Fraction(changed)), 1.0


def vote_counts(
    blocks: list[np.ndarray], learner: BlockLearner, adjacency: Adjacency, n_workers: int | None = None
) -> Sensitive:
    """How many blocks' graphs have each pair as an edge, shape (n_pairs,)."""
    graphs = block_graphs(blocks, learner, n_workers)
    edges = np.array([edge for graph in graphs for edge in graph], dtype=np.intp)
    counts = np.bincount(edges, minlength=learner.n_pairs).astype(np.int64)
    return Sensitive(counts, adjacency, *vote_sensitivity(learner.n_pairs, learner.max_edges))


def run(table: PrivateTable, settings: VotingSettings, budget: Budget) -> Release:
    """Release noisy counts of the blocks that have each edge.

    Parameters
    ----------
    table : PrivateTable
    settings : VotingSettings
    budget : Budget
        It is charged to the table's ledger before the records are looked at.

    Returns
    -------
    Release
        ``kind="edge_votes"``: ``values[0]`` the noisy counts of the pairs i < j in lexicographic order.
        :func:`edge_frequencies` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For settings that do not suit the schema or the budget, too many blocks. All depend on public arguments only and
        come before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* :func:`vote_sensitivity`, for add_remove and replace_one.

        *Guarantee.* epsilon-DP with discrete Laplace or rho-zCDP with discrete Gaussian noise on integers, given the
        blocks, and so on average over their draws. For an (epsilon, delta) budget the noise of smaller variance, with
        the largest rho that dp-accounting converts.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

        *Side channels.* As :func:`pgmpy_dp.private.learners.stable_structure.run`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 3000, "b": [0, 1] * 2900 + [1, 0] * 100, "c": [0, 0, 1, 1] * 1500})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(epsilon=2.0))
    >>> release = run(table, VotingSettings(BlockSettings(2.5, 1.5, "chow-liu"), n_blocks=60), Budget(epsilon=2.0))
    >>> (edge_frequencies(release) > 0.5).tolist(), str(table.ledger.left)
    ([[False, True, False], [True, False, False], [False, False, False]], '0-DP')
    """
    require_table_and_budget(table, budget)
    learner = plan_blocks(table.schema, settings.blocks)
    l1, l2, _ = vote_sensitivity(learner.n_pairs, learner.max_edges)
    cost = noise_and_cost([l1], [l2], [learner.n_pairs], settings.noise, None, budget)
    n_blocks = settings.n_blocks if settings.n_blocks is not None else _default_blocks(l1, l2, learner.n_pairs, cost)
    if n_blocks > MAX_BLOCKS:
        raise ValueError(
            f"n_blocks={settings.n_blocks!r} asks for more than {MAX_BLOCKS} blocks; raise the budget, or bound "
            "max_edges"
        )
    seed = seeded_generator(settings.random_state)
    mechanism = "discrete_laplace" if isinstance(cost, PureDP) else "discrete_gaussian"
    table.ledger.charge(
        cost,
        what=f"votes of {n_blocks} blocks on the edges between {len(table.schema)} variables",
        columns=table.schema.variables,
        mechanism=mechanism,
        adjacency=table.adjacency,
        reproducible=seed is not None,
    )
    counts = vote_counts(random_parts(table, n_blocks, seed), learner, table.adjacency, settings.blocks.n_workers)
    if isinstance(cost, PureDP):
        values, noise = laplace_release([counts], cost.epsilon, seed=seed)
    else:
        values, noise = gaussian_release([counts], cost.rho, seed=seed)
    return Release(
        kind="edge_votes",
        values=tuple(values),
        noise=tuple(noise),
        public={
            "schema": table.schema.to_dict(),
            "n_records": table.n_records,
            "n_blocks": n_blocks,
            "settings": {**blocks_public(learner), "noise": settings.noise, "budget": budget.guarantee.to_dict()},
        },
        adjacency=table.adjacency,
        guarantee=cost,
        mechanism=mechanism,
        reproducible=seed is not None,
    )


def edge_frequencies(release: Release) -> np.ndarray:
    """Noisy share of the blocks that have each edge, shape (p, p), symmetric; ValueError for another kind of release.

    Unbiased, so it may lie outside of [0, 1]. Post-processing.
    """
    if release.kind != "edge_votes":
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind 'edge_votes'")
    p = len(release.schema)
    shares = np.zeros((p, p))
    shares[np.triu_indices(p, 1)] = release.values[0] / release.public["n_blocks"]
    return shares + shares.T


def _default_blocks(l1: float, l2: float, n_pairs: int, cost: PureDP | ZCDP) -> int:
    if isinstance(cost, PureDP):
        largest = laplace_scales([l1], cost.epsilon)[0] * math.log(20.0 * n_pairs)
    else:
        largest = gaussian_scales([l2], cost.rho)[0] * math.sqrt(2.0 * math.log(20.0 * n_pairs))
    return math.ceil(2.5 * largest) + 1

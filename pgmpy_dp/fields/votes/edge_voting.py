"""EdgeVoting: edges that a majority of blocks of the records have, by noisy counts.

The release has, with noise, how many of several disjoint blocks of records have each edge in their graphs.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.fields.operators.vote_operators import MAX_BLOCKS, EdgeVotes
from pgmpy_dp.fields.votes.block_graphs import block_arguments, blocks_public, plan_blocks
from pgmpy_dp.fields.votes.votes_base import BaseBlockVotes
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.least_noise import NOISES, least_noise
from pgmpy_dp.learning.options import Settings, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, require_kind
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.sensitive import Noise, Release


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Release noisy counts of the blocks that have each edge.

    Refuses settings that do not suit the schema or the budget, too many blocks.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.EdgeVoting`. `max_edges`, s, bounds how many counts one block changes: the
        smaller, the less noise. Default `n_blocks`: 2.5 times the number that the noise of all pairs stays below with
        probability about .95, so that an edge of nine blocks in ten is told from one of one in ten.

    Returns
    -------
    Release
        ``kind="edge_votes"``: ``values[0]`` the noisy counts of the pairs i < j in lexicographic order.
        :func:`edge_frequencies` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* epsilon-DP or rho-zCDP, by one request for noisy counts of the blocks that have each edge
        (:class:`~pgmpy_dp.fields.operators.vote_operators.EdgeVotes`), which takes all of the budget. For
        an (epsilon, delta) budget the noise of smaller variance, with the largest rho that dp-accounting converts.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

        *Side channels.* Running time depends on the records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 3000, "b": [0, 1] * 2900 + [1, 0] * 100, "c": [0, 0, 1, 1] * 1500})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(epsilon=2.0))
    >>> from pgmpy_dp.estimators import EdgeVoting
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(EdgeVoting(2.5, 1.5, learner="chow-liu", n_blocks=60))
    >>> release = run(table, settings, Budget(epsilon=2.0))
    >>> (edge_frequencies(release) > 0.5).tolist(), str(table.ledger.left)
    ([[False, True, False], [True, False, False], [False, False, False]], '0-DP')
    """
    require_table_and_budget(table, budget)
    learner = plan_blocks(table.schema, settings)
    p = len(table.schema)
    cost = least_noise(
        lambda cost: [EdgeVotes.noise_of(p, learner.max_edges, cost, 1)], [learner.n_pairs], budget, settings.noise
    )
    n_blocks = settings.n_blocks
    if n_blocks is None:
        n_blocks = _default_blocks(EdgeVotes.noise_of(p, learner.max_edges, cost, 1), learner.n_pairs)
    if n_blocks > MAX_BLOCKS:
        raise ValueError(
            f"n_blocks={settings.n_blocks!r} asks for more than {MAX_BLOCKS} blocks; raise the budget, or bound "
            "max_edges"
        )
    curator = TableCurator(
        table,
        budget,
        what=f"votes of {n_blocks} blocks on the edges between {p} variables",
        pure=isinstance(cost, PureDP),
        random_state=settings.random_state,
    )
    operator = EdgeVotes(**block_arguments(learner), n_blocks=n_blocks, n_workers=settings.n_workers)
    curator.ask(operator, 1)
    return curator.release(
        "edge_votes",
        {
            "n_blocks": n_blocks,
            "settings": {**blocks_public(learner), **settings.public(budget, "noise")},
        },
        curator.called("votes"),
    )


def edge_frequencies(release: Release) -> np.ndarray:
    """Noisy share of the blocks that have each edge, shape (p, p), symmetric; ValueError for another kind of release.

    Unbiased, so it may lie outside of [0, 1]. Post-processing.
    """
    require_kind(release, "edge_votes")
    p = len(release.schema)
    shares = np.zeros((p, p))
    shares[np.triu_indices(p, 1)] = release["votes"].array / release.public["n_blocks"]
    return shares + shares.T


def _default_blocks(noise: Noise, n_pairs: int) -> int:
    log = math.log(20.0 * n_pairs)
    largest = noise.scale * (log if noise.distribution == "discrete_laplace" else math.sqrt(2.0 * log))
    return math.ceil(2.5 * largest) + 1


class EdgeVoting(BaseBlockVotes):
    """The edges that more than half of many disjoint blocks of records have in their graphs, by noisy counts.

    For data in which no whole graph is stable, or budgets without a delta. It always has a result, and shows how sure
    each edge is; it needs more blocks than :class:`StableStructure`, the more the more edges a block's graph may have.

    Parameters
    ----------
    width
    min_edge_weight : float
        Public lower bound eta > 0 on the size of the interactions that are there.
    epsilon, delta, rho
    max_edges : int, optional
        Public bound s on the edges of a block's graph, which keeps its strongest: noise grows with the root of
        ``min(2 s, p(p-1)/2)``, for a pure epsilon with that number. It must come from elsewhere than the records.
        Default: no bound; with "chow-liu" p - 1.
    n_blocks : int, optional
        Number of blocks. Default: from the noise, so that an edge of nine blocks in ten is told from one of one in ten.
    noise : {"auto", "laplace", "gaussian"}
        Noise of the counts; "auto" takes what suits the budget.
    learner, order, state_names, adjacency, n_records, n_workers, random_state

    Attributes
    ----------
    graph_ : pgmpy.base.UndirectedGraph
        The weight of an edge is its score.
    edge_frequencies_ : ndarray of shape (p, p)
        Noisy share of the blocks that have the edge; unbiased, so it may lie outside of [0, 1]. Edges have more than
        1/2.
    frequency_sd_ : float
        Standard deviation of the noise in each share.
    edge_scores_ : ndarray of shape (p, p)
        The same shares.
    n_blocks_ : int
    release_, privacy_, n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: the only access to the records is one release (:func:`~pgmpy_dp.fields.votes.edge_voting.run`).
    Method: this package's, from the blocks of Zhang, Kamath, Kulkarni and Wu (2020) and noisy counts (Dwork, McSherry,
    Nissim and Smith 2006; Canonne, Kamath and Steinke 2020).

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> a = rng.random(16_000) < 0.5
    >>> b, c = (np.where(rng.random(16_000) < 0.85, a, ~a) for _ in range(2))
    >>> data = pd.DataFrame({"b": b, "a": a, "c": c})
    >>> states = {name: [False, True] for name in data}
    >>> estimator = EdgeVoting(1.8, 0.6, epsilon=2.0, n_blocks=80, learner="chow-liu", state_names=states).fit(data)
    >>> sorted(sorted(edge) for edge in estimator.graph_.edges)
    [['a', 'b'], ['a', 'c']]
    """

    _release_kinds: ClassVar[tuple[str, ...]] = ("edge_votes",)
    _examples = (
        {"width": 2.0, "min_edge_weight": 0.4, **TABLE_EXAMPLES[0]},
        {"width": 2.0, "min_edge_weight": 0.4, "max_edges": 1, **TABLE_EXAMPLES[1]},
    )

    max_edges: int | None = option(None, whole(1))
    noise: str = option("auto", one_of(NOISES))

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        return run(table, self._options, budget)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        shares, variables = edge_frequencies(release), release.schema.variables
        edges = {(variables[i], variables[j]): shares[i, j] for i, j in np.argwhere(np.triu(shares > 0.5, 1))}
        (noise,) = release.noise
        assert noise is not None  # counts plus noise
        return {
            "graph_": graph_on(variables, edges),
            "edge_frequencies_": shares,
            "frequency_sd_": noise.variance**0.5 / release.public["n_blocks"],
            "edge_scores_": shares.copy(),
            "n_blocks_": int(release.public["n_blocks"]),
        }

"""How many of several disjoint blocks of records have each edge in their graphs, with noise."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.fields.operators.vote_operators import MAX_BLOCKS, EdgeVotes
from pgmpy_dp.fields.votes.block_graphs import block_arguments, blocks_public, plan_blocks
from pgmpy_dp.learning.least_noise import least_noise
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
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
        smaller, the less noise. Default `n_blocks`: 2.5 times what the noise of all pairs stays below with probability
        about .95, so that an edge of nine blocks in ten is told from one of one in ten.

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
    asked = EdgeVotes(**block_arguments(learner), n_blocks=n_blocks, n_workers=settings.n_workers)
    curator.ask(asked, 1)
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

"""EdgeVoting: edges that a majority of blocks of the records have, by noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.fields.votes import edge_votes
from pgmpy_dp.fields.votes.edge_votes import edge_frequencies
from pgmpy_dp.fields.votes.votes_base import BaseBlockVotes
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.least_noise import NOISES
from pgmpy_dp.learning.options import one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


@dataclass(repr=False, eq=False)
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
    edge_frequencies_ : ndarray of shape (p, p)
        Noisy share of the blocks that have the edge; unbiased, so it may lie outside of [0, 1]. Edges have more than
        1/2.
    frequency_sd_ : float
        Standard deviation of the noise in each share.
    edge_scores_ : ndarray of shape (p, p)
        The same shares.
    n_blocks_ : int
    release_, privacy_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.fields.votes.edge_votes`.
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

    width: float | None = None
    min_edge_weight: float | None = None
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    max_edges: int | None = option(None, whole(1))
    n_blocks: int | None = None
    noise: str = option("auto", one_of(NOISES))
    learner: str = "auto"
    order: int = 2
    state_names: Schema | dict | None = None
    adjacency: str = "add_remove"
    n_records: int | None = None
    n_workers: int | None = None
    random_state: int | None = None

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        return edge_votes.run(table, self._options, budget)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        shares, variables = edge_frequencies(release), release.schema.variables
        edges = ((variables[i], variables[j]) for i, j in np.argwhere(np.triu(shares > 0.5, 1)))
        (noise,) = release.noise
        assert noise is not None  # counts plus noise
        return {
            "graph_": graph_on(variables, edges),
            "edge_frequencies_": shares,
            "frequency_sd_": noise.variance**0.5 / release.public["n_blocks"],
            "edge_scores_": shares.copy(),
            "n_blocks_": int(release.public["n_blocks"]),
        }

"""StableStructure: a graph that blocks of the records agree on, or the answer that there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.fields.votes import graph_votes
from pgmpy_dp.fields.votes.graph_votes import stable_graph
from pgmpy_dp.fields.votes.votes_base import BaseBlockVotes
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


@dataclass(repr=False, eq=False)
class StableStructure(BaseBlockVotes):
    """The graph that most of many disjoint blocks of records agree on, if a test finds it stable.

    The number of records that it needs grows like log p only, which no method under a pure epsilon or rho can do (Zhang
    et al. 2020, sections 6 and 7); its constant is large, see ``docs/stable-structure.md``. It has two outcomes: the
    exact graph of the largest group of blocks, or none. Both cost the budget.

    Parameters
    ----------
    width
    min_edge_weight : float
        Public lower bound eta > 0 on the size of the interactions that are there; pairs with an estimate of at least
        eta/2 are edges of a block's graph.
    epsilon, delta : float
        The budget of one fit; delta is above 0. Without a delta use :class:`EdgeVoting`.
    n_blocks : int, optional
        Number of blocks. Default: ``4 ln(1/delta)/epsilon``, rounded up; at least what passes the test where all but
        one agree. With fewer, blocks have more records, and nearly all must agree.
    learner, order
    state_names, adjacency, n_records
    n_workers
    random_state

    Attributes
    ----------
    stable_ : bool
        Whether the test found a stable graph.
    graph_ : pgmpy.base.UndirectedGraph or None
        None where no graph is stable.
    edge_scores_ : ndarray of shape (p, p) or None
        1 for edges, else 0: nothing else was released.
    noisy_distance_, threshold_ : int
        About how many blocks would have to vote otherwise before the graph could change; smallest such number with
        which a graph is released. Far below the threshold: more records, or fewer blocks, are needed.
    n_blocks_ : int
    release_, privacy_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.fields.votes.graph_votes`.
    Method: Zhang, Kamath, Kulkarni and Wu (2020), Lemma 6.1.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> a = rng.random(12_000) < 0.5
    >>> b, c = (np.where(rng.random(12_000) < 0.85, a, ~a) for _ in range(2))
    >>> data = pd.DataFrame({"b": b, "a": a, "c": c})
    >>> states = {name: [False, True] for name in data}
    >>> estimator = StableStructure(
    ...     1.8, 0.6, epsilon=2.0, delta=1e-6, n_blocks=60, learner="chow-liu", state_names=states
    ... ).fit(data)
    >>> estimator.stable_, sorted(sorted(edge) for edge in estimator.graph_.edges)
    (True, [['a', 'b'], ['a', 'c']])
    """

    _tags: ClassVar[dict[str, Any]] = {**BaseBlockVotes._tags, "guarantees": ("approximate",)}
    _release_kinds: ClassVar[tuple[str, ...]] = ("stable_structure",)
    _examples = (
        {"width": 2.0, "min_edge_weight": 0.4, "delta": 1e-3, **TABLE_EXAMPLES[0]},
        {"width": 2.0, "min_edge_weight": 0.4, "delta": 1e-3, **TABLE_EXAMPLES[0]}
        | {"adjacency": "replace_one", "n_records": 100, "learner": "chow-liu"},
    )

    width: float | None = None
    min_edge_weight: float | None = None
    epsilon: float | None = None
    delta: float = 0.0
    n_blocks: int | None = None
    learner: str = "auto"
    order: int = 2
    state_names: Schema | dict | None = None
    adjacency: str = "add_remove"
    n_records: int | None = None
    n_workers: int | None = None
    random_state: int | None = None

    def _budget(self) -> Budget:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        if not budget.delta:
            raise ValueError(f"delta={self.delta!r}: a test of stability needs a delta above 0; or use EdgeVoting")
        return budget

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        return graph_votes.run(table, self._options, budget)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        found, variables = stable_graph(release), release.schema.variables
        scores = graph = None
        if found.edges is not None:
            graph = graph_on(variables, ((variables[i], variables[j]) for i, j in found.edges))
            scores = np.zeros((len(variables), len(variables)))
            for i, j in found.edges:
                scores[i, j] = scores[j, i] = 1.0
        return {
            "stable_": found.edges is not None,
            "graph_": graph,
            "edge_scores_": scores,
            "noisy_distance_": found.noisy_distance,
            "threshold_": found.threshold,
            "n_blocks_": found.n_blocks,
        }

"""StableStructure: a graph that blocks of the records agree on, or the answer that there is none.

The graph that most of several disjoint blocks of records agree on, released only where it is stable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.fields.operators.vote_operators import MAX_BLOCKS, AgreedGraph, agreement_test
from pgmpy_dp.fields.votes.block_graphs import block_arguments, blocks_public, least_records, plan_blocks
from pgmpy_dp.fields.votes.votes_base import BaseBlockVotes
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import Privacy, require_kind
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


def run(table: PrivateTable, settings: Settings, budget: Budget) -> Release:
    """Release the graph that has the most blocks' votes, or that none is stable.

    Refuses a budget without a delta, settings that do not suit the schema, too many blocks.

    Parameters
    ----------
    settings : Settings
        Of :class:`~pgmpy_dp.estimators.StableStructure`. Default `n_blocks`, M: ``4 ln(1/delta)/epsilon``, rounded up:
        where nine blocks in ten agree, the graph is then released with probability above .99. Fewer blocks have more
        records each, and must agree more: below about ``2 ln(1/delta)/epsilon`` not even all of them are enough.
    budget : Budget
        Of (epsilon, delta). It is charged to the table's ledger before the records are looked at, and spent whatever
        the outcome.

    Returns
    -------
    Release
        ``kind="stable_structure"``: ``values[0]`` the noisy distance to the nearest change of the graph, shape (1,);
        ``values[1]`` the graph's edges as positions, shape (n_edges, 2), empty where no graph is stable.
        :func:`stable_graph` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* (epsilon, delta)-DP, by one request for a graph that blocks agree on
        (:class:`~pgmpy_dp.fields.operators.vote_operators.AgreedGraph`), which takes all of epsilon, in a
        pure share, and all of delta.

        *Blocks without a vote.* Too few records to tell edges from none are a vote for no graph
        (:func:`~pgmpy_dp.fields.votes.block_graphs.least_records`). How few is a public number, and how many records a
        block has depends on that block alone: between neighbours one block's vote changes, and null is one that it may
        change from or to.

        *Source.* Zhang, Kamath, Kulkarni and Wu 2020, Lemma 6.1; Vadhan 2017, Proposition 3.4.

        *Side channels.* That no graph is stable is an outcome, not an error. Running time depends on the records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 3000, "b": [0, 1] * 2900 + [1, 0] * 100, "c": [0, 0, 1, 1] * 1500})
    >>> table = PrivateTable(frame, {name: [0, 1] for name in "abc"}, ledger=Budget(epsilon=2.0, delta=1e-3))
    >>> from pgmpy_dp.estimators import StableStructure
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(StableStructure(2.5, 1.5, learner="chow-liu", n_blocks=60))
    >>> release = run(table, settings, Budget(epsilon=2.0, delta=1e-3))
    >>> release["edges"].array.tolist(), str(table.ledger.spent)
    ([[0, 1]], '(2, 0.001)-DP')
    """
    require_table_and_budget(table, budget, "Budget(epsilon=..., delta=...)")
    if budget.epsilon is None or not budget.delta:
        raise ValueError(
            f"the budget is {budget}, and a test of stability needs an epsilon and a delta above 0: pass both, or use "
            "edge votes, which take any budget"
        )
    learner = plan_blocks(table.schema, settings)
    learner = replace(learner, least_records=least_records(learner.cardinalities, learner.min_edge_weight))
    test = agreement_test(cost_of(budget, pure=True), 1, budget.delta)
    n_blocks = settings.n_blocks
    if n_blocks is None:
        n_blocks = math.ceil(min(4.0 * math.log(1.0 / budget.delta) / budget.epsilon, MAX_BLOCKS + 1))
        n_blocks = max(n_blocks, 2 * test.threshold + 3)  # with one vote less than all of them the test is passed
    if n_blocks > MAX_BLOCKS:
        raise ValueError(f"n_blocks={settings.n_blocks!r} asks for more than {MAX_BLOCKS} blocks; raise epsilon")
    curator = TableCurator(
        table,
        budget,
        what=f"a stable graph of {len(table.schema)} variables, by the votes of {n_blocks} blocks",
        mechanism="distance_test",
        reserve=budget.delta,
        pure=True,
        random_state=settings.random_state,
    )
    operator = AgreedGraph(**block_arguments(learner), n_blocks=n_blocks, n_workers=settings.n_workers)
    curator.ask(operator, 1, budget.delta)
    return curator.release(
        "stable_structure",
        {
            "n_blocks": n_blocks,
            "threshold": test.threshold,
            "settings": {**blocks_public(learner), "least_records": learner.least_records, **settings.public(budget)},
        },
        curator.called("distance", "edges"),
    )


@dataclass(frozen=True)
class StableGraph:
    """The content of a release of kind "stable_structure".

    Attributes
    ----------
    schema : Schema
    edges : tuple of pairs of int, or None
        Positions of the variables; None where no graph is stable.
    noisy_distance : int
        How many votes would have to change before the graph can, about.
    threshold : int
        Smallest noisy distance of a release.
    n_blocks : int
    """

    schema: Schema
    edges: tuple[tuple[int, int], ...] | None
    noisy_distance: int
    threshold: int
    n_blocks: int


def stable_graph(release: Release) -> StableGraph:
    """Read a release of this learner; ValueError for another kind. Post-processing."""
    require_kind(release, "stable_structure")
    noisy, threshold = int(release["distance"].array[0]), int(release.public["threshold"])
    edges = tuple((int(i), int(j)) for i, j in release["edges"].array) if noisy >= threshold else None
    return StableGraph(release.schema, edges, noisy, threshold, int(release.public["n_blocks"]))


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
        None where no graph is stable. Each edge has the weight 1.
    edge_scores_ : ndarray of shape (p, p) or None
        1 for edges, else 0: nothing else was released.
    noisy_distance_, threshold_ : int
        About how many blocks would have to vote otherwise before the graph could change; smallest such number with
        which a graph is released. Far below the threshold: more records, or fewer blocks, are needed.
    n_blocks_ : int
    release_, privacy_, n_features_in_, feature_names_in_

    Notes
    -----
    Privacy: the only access to the records is one release of :mod:`pgmpy_dp.fields.votes.stable_structure`.
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

    rho: None = field(default=None, init=False)  # the guarantee has a delta

    def _check(self) -> None:
        if not self.delta:
            raise ValueError(f"delta={self.delta!r}: a test of stability needs a delta above 0; or use EdgeVoting")

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        return run(table, self._options, budget)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        structure, variables = stable_graph(release), release.schema.variables
        scores = graph = None
        if structure.edges is not None:
            graph = graph_on(variables, {(variables[i], variables[j]): 1.0 for i, j in structure.edges})
            scores = np.zeros((len(variables), len(variables)))
            for i, j in structure.edges:
                scores[i, j] = scores[j, i] = 1.0
        return {
            "stable_": structure.edges is not None,
            "graph_": graph,
            "edge_scores_": scores,
            "noisy_distance_": structure.noisy_distance,
            "threshold_": structure.threshold,
            "n_blocks_": structure.n_blocks,
        }

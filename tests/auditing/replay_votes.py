"""Replay of the learners by which blocks of records vote: fits, and pairs of tables."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.estimators import EdgeVoting, StableStructure
from pgmpy_dp.fields.operators.vote_operators import AgreedGraph, EdgeVotes
from pgmpy_dp.fields.votes.block_graphs import block_arguments, plan_blocks
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from tests.auditing.replay_cases import ReplayCase
from tests.auditing.replay_tables import table_pairs
from tests.settings import vote_settings

__all__ = ["OF_FEW_RECORDS", "VOTERS", "vote_cases", "vote_pairs"]

OF_FEW_RECORDS = 1.0
"""A smallest interaction with which blocks of four records vote for a graph."""

VOTERS: dict[Hashable, list] = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
APPROXIMATE = Budget(epsilon=1.0, delta=1e-2)
BUDGETS = (Budget(epsilon=1.0), Budget(rho=0.1), APPROXIMATE)

_LEARNERS = ("chow-liu", "inverse-covariance", "logistic")
_TIES = 2 * [[0, 0, 0]] + 2 * [[1, 1, 1]] + [[0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0]]
"""Records in which a and b, and b and c, are equally often the same: one more decides which edge is the stronger."""


def vote_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbouring tables: one record makes a block's graph another; then odd ones and random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    """
    for times, odd in itertools.product((1, 4), ([0, 0, 1], [1, 0, 0])):
        rows, instead = times * _TIES, [0, 1, 1]
        if adjacency == "add_remove":
            yield _frame(rows), _frame([*rows, odd])
            yield _frame([odd, *rows]), _frame(rows)
        else:
            yield _frame([*rows, instead]), _frame([*rows, odd])
            yield _frame([odd, *rows]), _frame([instead, *rows])
    yield from table_pairs(rng, adjacency, VOTERS)


def vote_cases() -> list[ReplayCase]:
    """Every estimator by votes, every learner of blocks, both adjacencies, all kinds of budgets."""
    kinds: list[tuple[type, Budget, str]] = [(StableStructure, APPROXIMATE, learner) for learner in _LEARNERS]
    kinds += [(EdgeVoting, APPROXIMATE, learner) for learner in _LEARNERS]
    kinds += [(EdgeVoting, budget, "chow-liu") for budget in BUDGETS if budget is not APPROXIMATE]
    fits = [(*kind, adjacency) for kind in kinds for adjacency in ("add_remove", "replace_one")]
    together = [
        ReplayCase(
            f"agreed graph and edge votes, {adjacency}",
            partial(_both, adjacency=adjacency),
            partial(vote_pairs, adjacency=adjacency),
            8,
        )
        for adjacency in ("add_remove", "replace_one")
    ]
    return together + [
        ReplayCase(
            f"{estimator.__name__}, {learner}, {adjacency}, {budget}",
            partial(_fit, estimator, budget=budget, learner=learner, adjacency=adjacency, n_blocks=(1, 2, 5)[k % 3]),
            partial(vote_pairs, adjacency=adjacency),
            8 + 3 + 1,
        )
        for k, (estimator, budget, learner, adjacency) in enumerate(fits)
    ]


def _frame(rows: list[list[int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(VOTERS), dtype=object)


def _both(data: pd.DataFrame, *, adjacency: str) -> Any:
    """Both questions to one curator, in shares of rho, with etas from its reserve."""
    n_records = len(data) if adjacency == "replace_one" else None
    table = PrivateTable(data, VOTERS, adjacency=adjacency, ledger=APPROXIMATE, n_records=n_records)
    asked = block_arguments(plan_blocks(table.schema, vote_settings(1.5, 0.1, "chow-liu"))) | {"n_blocks": 2}
    eta = Fraction(APPROXIMATE.delta) / 2
    curator = TableCurator(table, APPROXIMATE, what="votes", columns=list(VOTERS), reserve=float(eta))
    curator.ask(AgreedGraph(**asked), Fraction(1, 4), eta / 2)
    curator.ask(EdgeVotes(**asked), Fraction(1, 4))
    curator.ask(AgreedGraph(**asked), Fraction(1, 2), eta / 2)
    return curator.release("votes", {})


def _fit(estimator: type, data: pd.DataFrame, *, budget: Budget, learner: str, adjacency: str, n_blocks: int) -> Any:
    options: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
    if estimator is EdgeVoting:
        options |= {"rho": budget.rho, "max_edges": 1}
    return estimator(
        width=1.5,
        min_edge_weight=OF_FEW_RECORDS if estimator is StableStructure else 0.1,
        **options,
        learner=learner,
        n_blocks=n_blocks,
        state_names=VOTERS,
        adjacency=adjacency,
        n_records=len(data) if adjacency == "replace_one" else None,
        n_workers=n_blocks,
    ).fit(data)

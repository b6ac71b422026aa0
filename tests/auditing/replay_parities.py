"""Replay of the learners that release moments of random fields: parities, by noise and by rounds, and interactions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivatePairwise
from pgmpy_dp.fields import noisy_interactions, noisy_parities
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.guarantee import PureDP
from tests.auditing.replay_cases import ReplayCase
from tests.auditing.replay_tables import BUDGETS, ODD_CELLS, object_frame
from tests.settings import ask_parities, interaction_settings, parity_settings

__all__ = ["LARGE", "moment_pairs", "parity_cases"]

States = Mapping[Any, Sequence[Any]]

BINARY: States = {name: [0, 1] for name in "abc"}
ANY: States = {"a": ["no", "yes"], "b": [0, 1, 2], "c": [False, True]}
EQUAL: States = {name: [0, 1, 2] for name in "abc"}

LARGE = 1_200
"""Rows from which all parities of three variables are counted by a transform of their joint table."""


def moment_pairs(
    rng: np.random.Generator,
    adjacency: str,
    states: States,
    sizes: Sequence[int] = (0, 3, 70, LARGE),
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbouring tables: equal rows and one that differs in 1, 2, ... variables; odd cells; then random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    states : mapping
        Of each variable.
    sizes : sequence of int
        Numbers of the other rows: how sums are counted depends on them.
    """
    names = list(states)
    p = len(names)

    def pair(rows: list[list], odd: list, instead: list) -> tuple[pd.DataFrame, pd.DataFrame]:
        other = [*rows, instead] if adjacency == "replace_one" else rows
        return object_frame(other, names), object_frame([*rows[: len(rows) // 2], odd, *rows[len(rows) // 2 :]], names)

    def drawn(n: int) -> list[list]:
        columns = [rng.integers(len(states[name]), size=n) for name in names]
        return [
            [states[name][code] for name, code in zip(names, row, strict=True)] for row in zip(*columns, strict=True)
        ]

    first = [states[name][0] for name in names]
    for size, changed in zip(itertools.cycle(sizes), _round(p, len(sizes)), strict=False):
        odd = [states[name][-1] if k < changed else first[k] for k, name in enumerate(names)]
        yield pair([first] * size, odd, first)
    for k, cell in enumerate(ODD_CELLS[::4]):
        odd = list(first)
        odd[k % p] = cell
        yield pair(drawn(20), odd, first)
    while True:
        odd, instead = drawn(2)
        yield pair(drawn(int(rng.choice(sizes))), odd, instead)


def _round(p: int, n_sizes: int) -> list[int]:
    """Numbers of variables that differ, so that each comes with each number of rows."""
    return [1 + (k + k // p) % p for k in range(p * n_sizes)]


def parity_cases() -> list[ReplayCase]:
    """Every method of both learners, and the estimators on top, under both adjacencies and all kinds of budgets."""
    return [
        ReplayCase(
            f"{name}, {adjacency}, {budget}",
            partial(fit, budget=budget, adjacency=adjacency),
            partial(moment_pairs, adjacency=adjacency, states=states, sizes=sizes),
            len(states) * len(sizes) + len(ODD_CELLS[::4]),
        )
        for (name, (fit, states, sizes)), adjacency, budget in itertools.product(
            FITS.items(), ("add_remove", "replace_one"), BUDGETS
        )
        if budget.epsilon is not None or "matrix" not in name
    ]


def _table(data: pd.DataFrame, states: States, budget: Budget, adjacency: str) -> PrivateTable:
    n_records = len(data) if adjacency == "replace_one" else None
    return PrivateTable(data, states, adjacency=adjacency, ledger=budget, n_records=n_records)


def _additive(budget: Budget) -> str:
    """Noise on each sum, not on a matrix."""
    return "gaussian" if budget.rho is not None or budget.delta else "laplace"


def _parities(data: pd.DataFrame, *, budget: Budget, adjacency: str, states: Any = BINARY, **settings: Any) -> Any:
    settings.setdefault("method", _additive(budget))
    return noisy_parities.run(_table(data, states, budget, adjacency), parity_settings(**settings), budget)


def _interactions(data: pd.DataFrame, *, budget: Budget, adjacency: str, states: Any, **settings: Any) -> Any:
    settings.setdefault("noise", _additive(budget))
    return noisy_interactions.run(_table(data, states, budget, adjacency), interaction_settings(**settings), budget)


def _halves(data: pd.DataFrame, *, budget: Budget, adjacency: str, method: str) -> Any:
    """Disjoint parts of the records, each of which has all of the budget."""
    table, settings = _table(data, BINARY, budget, adjacency), parity_settings(method=method, n_rounds=2)
    plan = noisy_parities.plan_parities(table.schema, table.adjacency, None, settings, budget, _additive(budget))
    curator = TableCurator(table, budget, what="parities of halves", pure=isinstance(plan.cost, PureDP))
    with curator.split(2) as halves:
        return [ask_parities(half, plan) for half in halves]


def _estimator(estimator: type, data: pd.DataFrame, *, budget: Budget, adjacency: str, **options: Any) -> Any:
    n_records = len(data) if adjacency == "replace_one" else None
    budgets = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    return estimator(2.0, adjacency=adjacency, n_records=n_records, **budgets, **options).fit(data)


# A fit, the states of its variables, and sizes of tables: how parities are counted depends on them.
_ALL, _FEW = (0, 3, 70, LARGE), (3,)
_GRAPH = [("c", "a")]
FITS: dict[str, tuple[Callable[..., Any], States, Sequence[int]]] = {
    "parities": (partial(_parities, order=3), BINARY, _ALL),
    "parities of a graph": (partial(_parities, graph=_GRAPH), BINARY, (0, 70, LARGE)),
    "pmw": (partial(_parities, order=3, method="pmw", n_rounds=3), BINARY, _ALL),
    "pmw of a graph": (partial(_parities, graph=_GRAPH, method="pmw", n_rounds=3), BINARY, _FEW),
    "sepfem": (partial(_parities, order=3, method="sepfem", n_rounds=3), BINARY, _ALL),
    "auto": (partial(_parities, order=2, method="auto", n_rounds=2), BINARY, _FEW),
    "parity matrix": (partial(_parities, method="wishart"), BINARY, _ALL),
    "parity matrix of triples": (partial(_parities, order=3, method="wishart"), BINARY, _FEW),
    "parity matrix of a graph": (partial(_parities, graph=_GRAPH, method="wishart"), BINARY, _FEW),
    "interactions": (partial(_interactions, states=EQUAL), EQUAL, _ALL),
    "interaction matrix": (partial(_interactions, states=EQUAL, noise="wishart"), EQUAL, _FEW),
    "interaction matrix, uneven": (partial(_interactions, states=ANY, noise="wishart"), ANY, _FEW),
    "interaction matrix of a graph": (partial(_interactions, states=EQUAL, graph=_GRAPH, noise="wishart"), EQUAL, _FEW),
    "interactions, uneven": (partial(_interactions, states=ANY), ANY, _FEW),
    "interactions of a graph": (partial(_interactions, states=EQUAL, graph=_GRAPH), EQUAL, _FEW),
    "interactions of no pair": (partial(_interactions, states=EQUAL, graph=[]), EQUAL, _FEW),
    "halves": (partial(_halves, method="noise"), BINARY, _FEW),
    "halves by pmw": (partial(_halves, method="pmw"), BINARY, _FEW),
    "PrivateIsing": (partial(_estimator, PrivateIsing, state_names=BINARY), BINARY, _FEW),
    "PrivatePairwise": (partial(_estimator, PrivatePairwise, state_names=ANY), ANY, _FEW),
    "PrivateBinaryMRF": (partial(_estimator, PrivateBinaryMRF, state_names=BINARY, queries="auto"), BINARY, _FEW),
}

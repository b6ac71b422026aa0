"""Replay of the learners of records by gradients: steps on samples, Frank-Wolfe."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp import Number
from pgmpy_dp.auditing.movements import INVENTED
from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivateLogisticRegression, PrivatePairwise, PrivateSGD
from pgmpy_dp.fields.published import frank_wolfe_steps
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.tables.collective.published import gradient_ascent
from tests.auditing.replay_cases import ReplayCase
from tests.auditing.replay_parities import BINARY, States
from tests.auditing.replay_tables import object_frame, table_pairs
from tests.settings import field_settings, table_settings

sgd_settings = partial(table_settings, estimator=PrivateSGD)

__all__ = ["GRADIENT_FITS", "gradient_cases", "gradient_pairs"]

TWO: States = {name: [0, 1] for name in "ab"}
# Cells of numbers: both bounds, the cut between two cells, beyond each bound; a table declares the bounds.
CELLS: States = {"x": [0.0, 0.5, -1e300, 3, 1.0], "k": ["u", "v", "w"], "ill": [False, True]}
NUMBERS = {**CELLS, "x": Number(0, 1, bins=4)}
MANY: States = {"a": ["x", "y", "z"], "b": [0, 1], "c": [False, True]}
PURE, RHO, DELTA = Budget(epsilon=1.0), Budget(rho=0.5), Budget(epsilon=1.0, delta=1e-3)
LARGE = Budget(rho=1e5)
N_RECORDS = 31  # public and believed, not the true number

Fit = Callable[[pd.DataFrame, Budget, str], Any]


def gradient_pairs(
    rng: np.random.Generator, adjacency: str, states: States
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbouring tables: a record whose gradient is opposite to those of others, then those of tables.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    states : mapping
        Of each variable.
    """
    names = list(states)
    first, last = ([states[name][place] for name in names] for place in (0, -1))
    crossed, instead = ([states[name][-((k + c) % 2)] for k, name in enumerate(names)] for c in (0, 1))

    def pair(rows: list[list], odd: list, instead: list) -> tuple[pd.DataFrame, pd.DataFrame]:
        other = rows if adjacency == "add_remove" else [*rows, instead]
        return object_frame(other, names), object_frame([*rows, odd], names)

    yield pair([first] * 15 + [last] * 15, crossed, instead)
    yield pair([first] * 30, last, first)[::-1]
    yield from table_pairs(rng, adjacency, dict(states))


def gradient_cases() -> list[ReplayCase]:
    """Every estimator and plan that asks for gradients, under both adjacencies, with the budgets that it takes."""
    return [
        ReplayCase(
            f"{name}, {adjacency}, {budget}",
            partial(_fitted, fit=fit, budget=budget, adjacency=adjacency),
            partial(gradient_pairs, adjacency=adjacency, states=states),
            4 if name.startswith(("Private", "sgd")) else 2 + 3 + 2,  # NaiveMLE is tried with all odd cells
            # A trillion records would ask for 10,000 steps.
            tuple(kind for kind in ("drawn", *INVENTED) if kind != "huge" or name not in _COUNTED),
        )
        for (name, (fit, states, budgets)), adjacency in itertools.product(
            GRADIENT_FITS.items(), ("add_remove", "replace_one")
        )
        for budget in budgets
    ]


def _fitted(data: pd.DataFrame, fit: Fit, budget: Budget, adjacency: str) -> Any:
    return fit(data, budget, adjacency)


def _options(budget: Budget, adjacency: str, states: States) -> dict[str, Any]:
    return {
        **{"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho},
        **{"state_names": states, "adjacency": adjacency, "n_records": _public_count(adjacency)},
    }


def _public_count(adjacency: str) -> int | None:
    return N_RECORDS if adjacency == "replace_one" else None


def _table(data: pd.DataFrame, states: States, budget: Budget, adjacency: str) -> PrivateTable:
    return PrivateTable(data, states, adjacency=adjacency, ledger=budget, n_records=_public_count(adjacency))


def _sgd(data: pd.DataFrame, budget: Budget, adjacency: str) -> Any:
    estimator = PrivateSGD(**_options(budget, adjacency, MANY), n_steps=4, batch_rate=0.3)
    return estimator.fit(nx.Graph([("a", "b"), ("b", "c")]), data)


def _one_table(data: pd.DataFrame, budget: Budget, adjacency: str) -> Any:
    """Gradients of two records that differ in the only variable are opposite, and longer than the clip norm."""
    settings = sgd_settings((("a",),), clip_norm=0.3, n_steps=3, batch_rate=0.3)
    return gradient_ascent.run(_table(data, TWO, budget, adjacency), settings, budget)


def _field(estimator: type, states: States, **more: Any) -> Fit:
    def fit(data: pd.DataFrame, budget: Budget, adjacency: str) -> Any:
        return estimator(**_options(budget, adjacency, states), **more).fit(data)

    return fit


def walk(
    family: str, states: States, order: int = 2, graph: Any = None, width: float = 8.0, n_iter: int | None = 6
) -> Fit:
    """Frank-Wolfe: regressions with large weights, whose residuals are whole."""

    def fit(data: pd.DataFrame, budget: Budget, adjacency: str) -> Any:
        settings = field_settings(width, family, order, graph=graph, n_iter=n_iter)
        return frank_wolfe_steps.run(_table(data, states, budget, adjacency), settings, budget)

    return fit


_COUNTED = ("walk, count", "PrivateLogisticRegression, published")
_EDGES = [("a", "b")]
_ONE: dict[str, Any] = {"target": "ill", "radius": 40.0}
_FW: dict[str, Any] = {"width": 2.0, "method": "frank-wolfe", "n_iter": 4}
GRADIENT_FITS: dict[str, tuple[Fit, States, tuple[Budget, ...]]] = {
    "sgd": (_sgd, MANY, (DELTA, RHO)),
    "one table": (_one_table, TWO, (DELTA, RHO)),
    "PrivateIsing, frank-wolfe": (_field(PrivateIsing, BINARY, **_FW), BINARY, (PURE, RHO, DELTA)),
    "PrivatePairwise, frank-wolfe": (_field(PrivatePairwise, MANY, **_FW), MANY, (PURE, RHO)),
    "PrivateBinaryMRF, frank-wolfe": (_field(PrivateBinaryMRF, BINARY, order=3, **_FW), BINARY, (PURE, RHO)),
    "PrivateLogisticRegression": (
        _field(PrivateLogisticRegression, NUMBERS, **_ONE, n_iter=4),
        CELLS,
        (PURE, RHO, LARGE),
    ),
    "PrivateLogisticRegression, published": (
        _field(PrivateLogisticRegression, NUMBERS, **_ONE, published=True),
        CELLS,
        (RHO, DELTA),
    ),
    "PrivateLogisticRegression, alone": (
        _field(PrivateLogisticRegression, {"ill": [False, True]}, **_ONE, n_iter=4),
        {"ill": [False, True]},
        (RHO,),
    ),
    "walk, ising": (walk("ising", BINARY), BINARY, (PURE, RHO, LARGE)),
    "walk, two": (walk("ising", TWO), TWO, (LARGE,)),
    "walk, ising, graph": (walk("ising", BINARY, graph=_EDGES), BINARY, (PURE, LARGE)),
    "walk, count": (walk("ising", BINARY, width=0.1, n_iter=None), BINARY, (PURE,)),
    "walk, pairwise": (walk("pairwise", MANY), MANY, (PURE, RHO, LARGE)),
    "walk, pairwise, graph": (walk("pairwise", MANY, graph=_EDGES), MANY, (RHO,)),
    "walk, binary": (walk("binary", BINARY, 3), BINARY, (PURE, LARGE)),
}

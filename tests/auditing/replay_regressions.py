"""Cases of replay for regressions: score sums at wild points, of records outside of all that a design was made for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp import Budget, MarkovNetwork, Number, PrivateTable, Schema
from pgmpy_dp.models.regression.declared_analyses import independence, regress
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.score_sums import GRID, VALUE, ScoreSums
from tests.auditing.replay_cases import ReplayCase

__all__ = ["NUMBERS", "regression_cases", "regression_pairs", "score_question"]

NUMBERS = Schema({"x": Number(0, 4, cuts=[1, 2, 3], outside="state"), "k": ["a", "b", None], "y": ["no", "yes"]})
BUDGETS = (Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6))

ODD_ROWS: tuple[tuple[Any, ...], ...] = (
    *((1e300, "a", "yes"), (-5.0, "b", "no"), (float("nan"), "a", "yes"), (None, None, "yes"), ("2", "a", "yes")),
    *((2.0, "?", "no"), (2.0, "a", None), (2.0, "a", "maybe"), (10**400, "a", "yes"), (object, ("a",), b"no")),
)
"""Rows that lie outside of every declared cell, or lack a value."""


def regression_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbours whose scores are opposite, then odd rows in the place of others, then random ones."""

    def frame(rows: list[tuple]) -> pd.DataFrame:
        return pd.DataFrame({n: pd.Series([row[j] for row in rows], dtype=object) for j, n in enumerate("xky")})

    def pair(rows: list[tuple], odd: tuple, instead: tuple) -> tuple[pd.DataFrame, pd.DataFrame]:
        return frame(rows if adjacency == "add_remove" else [*rows, instead]), frame([*rows, odd])

    high, low = (3.5, "b", "yes"), (3.5, "b", "no")
    yield pair([high] * 5, high, low)
    yield pair([], low, high)
    yield pair([low] * 3, (0.5, "a", "yes"), (0.5, "a", "no"))
    for odd in ODD_ROWS:
        yield pair([high, low] * 4, odd, high)

    def drawn() -> tuple:
        return float(rng.uniform(0, 4)), "ab"[rng.integers(2)], ("no", "yes")[rng.integers(2)]

    while True:
        odd = ODD_ROWS[rng.integers(len(ODD_ROWS))] if rng.random() < 0.3 else drawn()
        yield pair([drawn() for _ in range(rng.integers(40))], odd, drawn())


def score_question(family: str, size: int, l1_bound: int = 4 * GRID) -> ScoreSums:
    """Three columns, one of them a product, with a shape so large that what a record adds is shortened, or so small."""
    x, k = ("x", [-VALUE, 0, VALUE // 2, VALUE, 0, 0]), ("k", [0, VALUE, 0])
    complete = [("x", [1, 1, 1, 1, 0, 0]), ("k", [1, 1, 0])]
    shape = np.array([[3, -1, 0], [0, 2, 1], [1, 1, 5]]) * size
    columns, y = [[], [x], [x, k]], ("y", [0, VALUE])
    return ScoreSums(columns, y, complete, [9, -70_000, 1 << 30], shape, l1_bound, family)


def _asked(data: pd.DataFrame, *, budget: Budget, adjacency: str, family: str, size: int, l1_bound: int) -> Any:
    n_records = len(data) if adjacency == "replace_one" else None
    table = PrivateTable(data, NUMBERS, ledger=budget, adjacency=adjacency, n_records=n_records)
    curator = TableCurator(table, budget, what="scores")
    return curator.ask(score_question(family, size, l1_bound), 1).tolist(), curator.release("scores", {})


def network() -> MarkovNetwork:
    """A model of `NUMBERS` in which everything depends on everything a little."""
    model = MarkovNetwork(nx.path_graph(["x", "k", "y"]))
    for first, second in (("x", "k"), ("k", "y")):
        names = {name: list(NUMBERS.states[name]) for name in (first, second)}
        shape = [len(states) for states in names.values()]
        values = 1.0 + np.arange(np.prod(shape), dtype=float).reshape(shape) % 5
        model.add_factors(DiscreteFactor([first, second], shape, values, state_names=names))
    model.schema = NUMBERS
    return model


def _regressed(data: pd.DataFrame, *, budget: Budget, adjacency: str, formula: str, **how: Any) -> Any:
    n_records = len(data) if adjacency == "replace_one" else None
    fit = regress(network(), formula, data, budget, adjacency=adjacency, n_records=n_records, **how)
    return fit.release_, fit.to_dict(), str(fit)


def _tested(data: pd.DataFrame, *, budget: Budget, adjacency: str) -> Any:
    n_records = len(data) if adjacency == "replace_one" else None
    test = independence(network(), "k", "y", data, budget, adjacency=adjacency, n_records=n_records)
    return test.release_, test.to_dict(), str(test)


def regression_cases() -> list[ReplayCase]:
    """Sums alone, whose vectors are shortened by one norm or the other; whole regressions; a test of independence."""
    fits = {
        "score sums, logit": (partial(_asked, family="logit", size=1 << 18, l1_bound=4 * GRID), BUDGETS[1:2]),
        "score sums, l1": (partial(_asked, family="logit", size=1 << 18, l1_bound=GRID // 2), BUDGETS[:1]),
        "score sums, linear": (partial(_asked, family="linear", size=1 << 13, l1_bound=3 * GRID), BUDGETS[1:2]),
        "regress, logit": (partial(_regressed, formula="y ~ x*k"), BUDGETS),
        "regress, linear": (partial(_regressed, formula="x ~ C(y)", family="linear", rounds=3), BUDGETS[1:2]),
        "independence": (_tested, BUDGETS[:2]),
        "regress, weighted": (partial(_regressed, formula="y ~ k", weight="x"), BUDGETS[1:2]),
    }
    return [
        ReplayCase(
            f"{name}, {adjacency}, {budget}",
            partial(fit, budget=budget, adjacency=adjacency),
            partial(regression_pairs, adjacency=adjacency),
            3 + len(ODD_ROWS),
        )
        for (name, (fit, budgets)), adjacency in itertools.product(fits.items(), ("add_remove", "replace_one"))
        for budget in budgets
    ]

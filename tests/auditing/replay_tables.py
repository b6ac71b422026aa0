"""Replay of the learners of discrete tables: fits, and pairs of tables."""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp import Ledger, Levels, MarkovNetwork, PrivateTable
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.models.model_score import score_model
from pgmpy_dp.models.score_reading import ModelScore
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.tables import GroupedTables, Tables
from pgmpy_dp.schema import Schema
from pgmpy_dp.tables.publishing import noisy_test
from pgmpy_dp.tables.publishing.criteria import Criteria
from pgmpy_dp.tables.publishing.publish_if import publish_if
from pgmpy_dp.tables.schema_check import SchemaCheck, check_schema
from tests.auditing.replay_cases import ReplayCase

__all__ = [
    *("ODD_CELLS", "check_cases", "check_pairs", "criteria_of", "group_cases", "object_frame"),
    *("publish_cases", "score_cases"),
    *("score_pairs", "sure_model", "table_cases", "table_pairs"),
]

STATES: dict[Hashable, list] = {"a": ["no", "yes"], "b": [0, 1, 2], "c": [False, True]}
GRAPH = nx.Graph([("a", "b"), ("b", "c")])
_FIRST = {name: states[0] for name, states in STATES.items()}
BUDGETS = (Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6))

ODD_CELLS: tuple[Any, ...] = (
    *(None, float("nan"), "", "?", "no\0", " no", 10**400),
    *(-0.0, "\ud800", b"no", ("no",), object),
)
"""Cells that a column of texts, numbers and truth values does not expect."""


def table_pairs(
    rng: np.random.Generator, adjacency: str, states: Mapping[Hashable, list] = STATES
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbouring tables: an empty one, equal rows, odd rows in every place; then random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    states : dict
        Of each variable. Frames hold plain Python objects.
    """
    names = list(states)
    first, last = ([states[name][place] for name in names] for place in (0, -1))

    def drawn(n: int) -> list[list]:
        return [[states[name][rng.integers(len(states[name]))] for name in names] for _ in range(n)]

    def pair(rows: list[list], odd: list, place: int, instead: list) -> tuple[pd.DataFrame, pd.DataFrame]:
        other = rows if adjacency == "add_remove" else [*rows[:place], instead, *rows[place:]]
        return object_frame(other, names), object_frame([*rows[:place], odd, *rows[place:]], names)

    yield pair([], first, 0, last)
    yield pair([first] * 40, last, 40, first)
    yield pair([first] * 40, first, 0, last)
    for k, cell in enumerate(ODD_CELLS):
        odd = list(first)
        odd[k % len(odd)] = cell
        yield pair(drawn(20), odd, k, last)
    while True:
        rows = drawn(int(rng.integers(0, 80)))
        odd, instead = drawn(2)
        for row in (odd, instead):
            if rng.random() < 0.2:
                row[rng.integers(len(row))] = ODD_CELLS[rng.integers(len(ODD_CELLS))]
        flipped = pair(rows, odd, int(rng.integers(len(rows) + 1)), instead)
        yield flipped if rng.random() < 0.5 else flipped[::-1]


def check_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """First pairs of which one record matches in all columns and, where it is replaced, the other is blank in all."""
    first, none = ({name: [cell] for name, cell in row.items()} for row in (_FIRST, dict.fromkeys(STATES)))
    rows = pd.DataFrame({name: cell * 7 for name, cell in first.items()}, dtype=object)
    one, other = (pd.concat([rows, pd.DataFrame(row, dtype=object)], ignore_index=True) for row in (first, none))
    yield (rows, one) if adjacency == "add_remove" else (one, other)
    yield (rows.iloc[:0], one.iloc[:1]) if adjacency == "add_remove" else (other.iloc[7:], one.iloc[:1])
    yield from table_pairs(rng, adjacency)


def check_cases() -> list[ReplayCase]:
    """Checks of a schema, with and without an other-state, of records in memory and in a text file."""
    return [
        ReplayCase(
            f"check_schema, {name}, {adjacency}, {budget}",
            partial(_check, budget=budget, adjacency=adjacency, other=other, in_file=in_file),
            partial(check_pairs, adjacency=adjacency),
            2 + 3 + len(ODD_CELLS),
        )
        for (name, other, in_file), adjacency, budget in itertools.product(
            (("in memory", {}, False), ("other-state", {"b": 0}, False), ("in a file", {"b": 0}, True)),
            ("add_remove", "replace_one"),
            BUDGETS,
        )
    ]


def sure_model(states: Mapping[Hashable, list] = STATES) -> MarkovNetwork:
    """A model that gives everything but the first state of each variable the probability 0."""
    model = MarkovNetwork(nx.path_graph(list(states)))
    for first, second in itertools.pairwise(states):
        table = np.zeros((len(states[first]), len(states[second])))
        table[0, 0] = 1.0
        names = {name: states[name] for name in (first, second)}
        model.add_factors(DiscreteFactor([first, second], list(table.shape), table, state_names=names))
    return model


def score_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """First pairs of which one record is in cells that `sure_model` gives no probability; then those of tables."""
    rows = pd.DataFrame({name: [states[0]] * 7 for name, states in STATES.items()}, dtype=object)
    last = pd.DataFrame({name: [states[-1]] for name, states in STATES.items()}, dtype=object)
    one, other = (pd.concat([rows, more], ignore_index=True) for more in (last, rows.iloc[:1]))
    yield (rows, one) if adjacency == "add_remove" else (other, one)
    none = pd.concat([rows, pd.DataFrame({name: ["?"] for name in STATES}, dtype=object)], ignore_index=True)
    yield (rows.iloc[:0], last) if adjacency == "add_remove" else (none, one)
    yield from table_pairs(rng, adjacency)


def score_cases() -> list[ReplayCase]:
    """Scores of a model with impossible cells, and of one without; with a worst table, every table, a workload."""
    return [
        ReplayCase(
            f"score_model, {name}, {adjacency}, {budget}",
            partial(_score, budget=budget, adjacency=adjacency, **options),
            partial(score_pairs, adjacency=adjacency),
            2 + 3 + 2,  # cells are read as by all learners
        )
        for (name, options, budgets), adjacency in itertools.product(
            (
                ("worst", {}, BUDGETS),
                ("every table", {"each": True, "worst": False}, BUDGETS[:2]),
                ("workload", {"workload": {("c", "a"): 0.3, ("b",): 1.0}, "even": True}, BUDGETS[1:2]),
            ),
            ("add_remove", "replace_one"),
        )
        for budget in budgets
    ]


def _score(data: pd.DataFrame, *, budget: Budget, adjacency: str, even: bool = False, **options: Any) -> ModelScore:
    model = sure_model()
    if even:
        for factor in model.factors:
            factor.values = np.arange(1.0, factor.values.size + 1).reshape(factor.values.shape)
    n_records = len(data) if adjacency == "replace_one" else None
    return score_model(model, data, budget, schema=STATES, adjacency=adjacency, n_records=n_records, **options)


def publish_cases() -> list[ReplayCase]:
    """The fit and its test as one: an answer that is yes, one that is no, and the test alone, of a sure model."""
    return [
        ReplayCase(
            f"publish_if, {name}, {adjacency}, {budget}",
            partial(_published if bounds is not None else _tested, budget=budget, adjacency=adjacency, bounds=bounds),
            partial(score_pairs, adjacency=adjacency),
            2 + 3 + 2,  # cells are read as by all learners
        )
        for (name, bounds, budgets), adjacency in itertools.product(
            (
                ("yes", (0.99, 0.99, 0.99), BUDGETS[2:]),
                ("no", (1e-9, 1e-9, 1e-9), BUDGETS[1:2]),
                ("either", (0.3, 0.2, 0.3), BUDGETS[:1]),
                ("test alone", None, BUDGETS[:2]),
            ),
            ("add_remove", "replace_one"),
        )
        for budget in budgets
    ]


def criteria_of(distance: float, within: float, loss: float) -> list[dict[str, Any]]:
    """One criterion of each kind that tables of states have."""
    return [
        {"test": "distance", "tables": [["a"], ["b", "c"]], "at_most": distance},
        {"test": "cells", "tables": [["a", "b"]], "share": 1.0, "within": within},
        {"test": "log_loss", "target": "c", "given": ["b"], "clip": 2.0, "at_most": 2 * loss},
    ]


def _published(data: pd.DataFrame, *, budget: Budget, adjacency: str, bounds: tuple[float, float, float]) -> Any:
    """All that a stranger sees: the answer, what leaves with it, and what the ledger's file says."""
    how = {"adjacency": adjacency} | ({"n_records": len(data)} if adjacency == "replace_one" else {})
    logging.getLogger("filelock").setLevel(logging.WARNING)  # it tells folders and identities
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.open(Path(folder, "ledger.json"), budget)
        listed = criteria_of(*bounds) * (15 if max(bounds) < 1e-6 else 1)  # by chance 2**-45 of them is "yes"
        how |= {"one_way_share": 0.1}  # so that there are rounds, whatever their tables say
        found = publish_if(data, budget, listed, STATES, ledger=ledger, test_share=0.5, **how)
        tests = None if found.tests is None else found.tests.to_dict()
        return found.published, found.learner and found.learner.release_, tests, ledger.entries, os.listdir(folder)


def _tested(data: pd.DataFrame, *, budget: Budget, adjacency: str, bounds: None) -> Any:
    n_records = len(data) if adjacency == "replace_one" else None
    table = PrivateTable(data, STATES, ledger=budget, adjacency=adjacency, n_records=n_records)
    analysis = {"test": "regression", "formula": "c ~ b", "at_most": 1e9}
    criteria = Criteria.of([*criteria_of(0.3, 0.2, 0.3), analysis], table.schema)
    return noisy_test.run(table, sure_model(), criteria, budget).to_dict()


def object_frame(rows: Sequence[Sequence[Any]], names: Sequence[Hashable]) -> pd.DataFrame:
    """Rows of plain Python objects as a frame whose columns have these names."""
    return pd.DataFrame({name: pd.Series([row[k] for row in rows], dtype=object) for k, name in enumerate(names)})


def table_cases() -> list[ReplayCase]:
    """Every estimator and method that asks for tables, under both adjacencies and all kinds of budgets."""
    return [
        ReplayCase(
            f"{name}, {adjacency}, {budget}",
            partial(fit, budget=budget, adjacency=adjacency),
            partial(table_pairs, adjacency=adjacency),
            3 + (len(ODD_CELLS) if name == "NaiveMLE" else 2),  # all learners read cells alike
        )
        for (name, fit), adjacency, budget in itertools.product(_FITS.items(), ("add_remove", "replace_one"), BUDGETS)
    ]


def group_cases() -> list[ReplayCase]:
    """Tables of groups of states."""
    return [
        ReplayCase(
            f"grouped tables, {adjacency}, {budget}",
            partial(_grouped, budget=budget, adjacency=adjacency),
            partial(table_pairs, adjacency=adjacency),
            3 + len(ODD_CELLS),
        )
        for adjacency, budget in itertools.product(("add_remove", "replace_one"), BUDGETS)
    ]


def _grouped(data: pd.DataFrame, *, budget: Budget, adjacency: str) -> list[list]:
    n_records = len(data) if adjacency == "replace_one" else None
    table = PrivateTable(data, STATES, adjacency=adjacency, ledger=budget, n_records=n_records)
    curator = TableCurator(table, budget, what="tables of groups")
    return [one.tolist() for one in curator.ask(GroupedTables([("b", "a"), ("b", "c")], [0, 1, 1]), 1)]


def _options(data: pd.DataFrame, budget: Budget, adjacency: str) -> dict[str, Any]:
    n_records = len(data) if adjacency == "replace_one" else None
    return {
        **{"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho},
        **{"state_names": STATES, "adjacency": adjacency, "n_records": n_records},
    }


def _parameters(estimator: type, data: pd.DataFrame, *, budget: Budget, adjacency: str, **options: Any) -> Any:
    return estimator(**_options(data, budget, adjacency), **options).fit(GRAPH, data)


def _structure(estimator: type, data: pd.DataFrame, *, budget: Budget, adjacency: str, **options: Any) -> Any:
    return estimator(**_options(data, budget, adjacency), **options).fit(data)


def _check(data: pd.DataFrame, *, budget: Budget, adjacency: str, other: dict, in_file: bool) -> SchemaCheck:
    schema = Schema(STATES, other=other)
    n_records = len(data) if adjacency == "replace_one" else None
    if not in_file:
        return check_schema(data, budget, schema, adjacency=adjacency, n_records=n_records)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.csv"
        cells = [["" if cell is None else str(cell) for cell in row] for row in data.to_numpy().tolist()]
        path.write_bytes("\n".join(map(",".join, (list(STATES), *cells))).encode("utf-8", "replace"))
        return check_schema(path, budget, schema, adjacency=adjacency, n_records=n_records)


def _levels(data: pd.DataFrame, *, budget: Budget, adjacency: str) -> Any:
    """Tables by the levels of a variable, before and after states merge."""
    n_records = len(data) if adjacency == "replace_one" else None
    table = PrivateTable(data, LEVELLED, ledger=budget, adjacency=adjacency, n_records=n_records)
    curator = TableCurator(table, budget, what="tables by levels")
    counted = curator.ask(Tables([("fine", "a"), ("b", "c"), ("coarse",)]), Fraction(1, 2))
    merged = Levels(["few", "some", "many"], coarse={"few": "x", "some": "x", "many": "y"})
    curator.merge(LEVELLED.replaced({"b": merged}), {"b": (0, 0, 1, 1, 2, 2, 3)})
    return counted, curator.ask(Tables([("a", "coarse"), ("b",)]), Fraction(1, 2))


TREE = Levels(
    range(6),
    fine={0: "p", 1: "p", 2: "q", 3: "q", 4: "r", 5: "r"},
    coarse={"p": "x", "q": "x", "r": "y"},
)
LEVELLED = Schema(STATES | {"b": TREE}, other={"b": "?"})

_FITS = {
    "NaiveMLE": partial(_parameters, NaiveMLE),
    "CollectiveMAP": partial(_parameters, CollectiveMAP),
    "CollectiveEM": partial(_parameters, CollectiveEM),
    "PrivateNetwork": partial(_structure, PrivateNetwork, n_rounds=4, one_way_share=0.1),
    "PrivateNetwork, what rounds leave": partial(_structure, PrivateNetwork),
    "PrivateNetwork, required": partial(
        _structure, PrivateNetwork, n_rounds=3, one_way_share=0.1, required_edges=[("a", "c")]
    ),
    "PrivateNetwork, workload": partial(
        _structure, PrivateNetwork, n_rounds=3, workload={("a", "b"): 0.3, ("b", "c", "a"): 1.0}
    ),
    "PrivateNetwork with a target": partial(_structure, PrivateNetwork, n_rounds=3, one_way_share=0.1, target="b"),
    "PrivateChowLiu, selection": partial(_structure, PrivateChowLiu, method="selection"),
    "PrivateChowLiu, tables": partial(_structure, PrivateChowLiu, method="tables"),
    "levels": _levels,
}

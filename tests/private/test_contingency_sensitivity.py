"""Sensitivities by brute force: every table over a tiny domain, and every neighbour of it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables

STATES = {"a": [0, 1], "b": ["x", "y", "z"]}
# Every value inside the schema, and a record outside of it in one column, in the other.
RECORDS = [*itertools.product([0, 1], ["x", "y", "z"]), (7, "x"), (0, None)]
SCOPES = {
    "one": [("a",)],
    "pair": [("a", "b")],
    "disjoint": [("a",), ("b",)],
    "nested": [("a", "b"), ("a",), ("b",)],
    "repeated": [("a",), ("a",), ("b", "a"), ("a", "b")],
}


def private(rows, adjacency: str) -> PrivateTable:
    frame = pd.DataFrame(list(rows), columns=["a", "b"])
    n_records = len(rows) if adjacency == "replace_one" else None
    return PrivateTable(frame, STATES, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=n_records)


def neighbours(adjacency: str):
    """All unordered pairs of neighbouring tables of up to 2 (add_remove: 3) records, as tuples of records."""
    if adjacency == "add_remove":
        for size in range(3):
            for rows in itertools.combinations_with_replacement(RECORDS, size):
                for added in RECORDS:
                    yield rows, tuple(sorted((*rows, added), key=str))
    else:
        for size in range(2):
            for rest in itertools.combinations_with_replacement(RECORDS, size):
                for old, new in itertools.combinations_with_replacement(RECORDS, 2):
                    yield tuple(sorted((*rest, old), key=str)), tuple(sorted((*rest, new), key=str))


@pytest.fixture(scope="module")
def counted():
    """Exact tables per (adjacency, scopes, records), each counted once."""
    cache = {}

    def look_up(adjacency, scopes, rows):
        key = (adjacency, scopes, rows)
        if key not in cache:
            if (adjacency, rows) not in cache:
                cache[adjacency, rows] = private(rows, adjacency)
            cache[key] = contingency_tables(cache[adjacency, rows], SCOPES[scopes])
        return cache[key]

    return look_up


@pytest.mark.parametrize("scopes", SCOPES)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_measured_sensitivities_are_the_claimed_ones(adjacency, scopes, counted):
    most = np.zeros((len(SCOPES[scopes]), 3))
    most_together = np.zeros(2)
    for rows, other in neighbours(adjacency):
        ours, theirs = (counted(adjacency, scopes, r) for r in (rows, other))
        moved = [(s.value - t.value).ravel() for s, t in zip(ours, theirs, strict=True)]
        norms = [(np.abs(d).sum(), math.sqrt((d**2).sum()), np.abs(d).max()) for d in moved]
        most = np.maximum(most, norms)
        everything = np.concatenate(moved)
        most_together = np.maximum(most_together, [np.abs(everything).sum(), (everything**2).sum()])
    for sensitive, measured in zip(ours, most, strict=True):
        claimed = (sensitive.l1, sensitive.l2, sensitive.linf)
        assert measured == pytest.approx(claimed, rel=1e-12)
        assert all(measured <= claimed)
        assert claimed == table_sensitivity(Adjacency(adjacency))
    # Together: l1 adds up, and so does the square of l2.
    factor = {"add_remove": 1, "replace_one": 2}[adjacency]
    assert most_together.tolist() == [factor * len(SCOPES[scopes])] * 2
    assert sum(s.l1 for s in ours) == factor * len(SCOPES[scopes])
    assert sum(s.l2**2 for s in ours) == pytest.approx(factor * len(SCOPES[scopes]), rel=1e-12)


def test_l2_is_rounded_up():
    from fractions import Fraction

    assert Fraction(table_sensitivity(Adjacency.REPLACE_ONE)[1]) ** 2 >= 2


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_other_state_keeps_the_sensitivity(adjacency):
    """With an other-state a record outside counts in it, so a replacement always moves two cells or none."""
    from pgmpy_dp.schema import Schema

    schema = Schema(STATES, other={"a": 1, "b": "z"})
    tables = {}
    for record in RECORDS:
        frame = pd.DataFrame([record], columns=["a", "b"])
        table = PrivateTable(frame, schema, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=1)
        tables[record] = contingency_tables(table, [("a", "b")])[0].value
    assert all(table.sum() == 1 for table in tables.values())
    assert tables[7, "x"][1, 0] == 1 and tables[0, None][0, 2] == 1
    assert max(np.abs(s - t).sum() for s, t in itertools.combinations(tables.values(), 2)) == 2

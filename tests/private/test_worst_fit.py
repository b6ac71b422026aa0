"""Scores of pairs: every pair of small neighbouring tables, and public tables of awkward floats."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.operators.worst_fit import misfit_scores

STATES = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
RECORDS = [*itertools.product([0, 1], repeat=3), ("?", 0, 0)]  # the last is outside the schema


@cache
def counted(records, adjacency):
    frame = pd.DataFrame(list(records), columns=list(STATES), dtype=object)
    n_records = len(records) if adjacency == "replace_one" else None
    table = PrivateTable(frame, STATES, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=n_records)
    return contingency_tables(table, PAIRS)


def scores(records, adjacency, expected, offsets=None):
    return misfit_scores(counted(tuple(records), adjacency), expected, offsets)


def neighbours(adjacency):
    for size in range(3):
        for records in itertools.combinations_with_replacement(RECORDS, size):
            if adjacency == "add_remove":
                yield from ((records, (*records, new)) for new in RECORDS)
            else:
                yield from ((records, (*records[1:], new)) for new in RECORDS if records)


@pytest.mark.parametrize(("adjacency", "sensitivity"), [("add_remove", 1), ("replace_one", 2)])
def test_no_neighbours_are_further_apart_than_is_claimed_and_some_are_as_far(adjacency, sensitivity):
    rng = np.random.default_rng(0)
    # Halves are where rounding decides; the others are as a fit would give them.
    publics = [[np.full((2, 2), 0.5)] * 3, [rng.random((2, 2)) * 3 for _ in PAIRS], [np.zeros((2, 2))] * 3]
    found, furthest = cache(lambda records, k: scores(records, adjacency, publics[k])), 0
    for first, second in neighbours(adjacency):
        for k in range(len(publics)):
            one, other = found(first, k), found(second, k)
            assert one.linf == other.linf == sensitivity
            change = np.abs(one.value - other.value)
            assert change.max() <= sensitivity
            assert change.sum() <= one.l1
            assert np.linalg.norm(change) <= one.l2
            furthest = max(furthest, int(change.max()))
    assert furthest == sensitivity


def test_scores_are_distances_from_the_rounded_public_tables_less_the_offsets():
    expected = [np.array([[1.4, 0.0], [0.0, 2.6]]), np.zeros((2, 2)), np.zeros((2, 2))]
    found = scores([(0, 0, 0), (0, 0, 0), (1, 0, 1)], "add_remove", expected, offsets=[0.0, 2.7, 10.0])
    assert found.value.dtype == np.int64
    assert found.value.tolist() == [1 + 1 + 3, 3 - 2, 3 - 10]


@pytest.mark.parametrize("huge", [1e300, -1e300, np.inf])
def test_nothing_overflows(huge):
    found = scores([(0, 0, 0)], "add_remove", [np.full((2, 2), huge)] * 3, offsets=[1e300, 0.0, 0.0])
    one = scores([], "add_remove", [np.full((2, 2), huge)] * 3, offsets=[1e300, 0.0, 0.0])
    assert np.abs(found.value - one.value).max() == 1
    assert (found.value[1:] > 2**59).all()

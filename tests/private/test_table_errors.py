"""Errors of tables by declared measures: every pair of small neighbours, exact numbers, what the operator refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.table_distances import WHOLE, whole_parts
from pgmpy_dp.private.data.table_errors import measured_errors, value_parts
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.model_errors import ModelErrors
from pgmpy_dp.private.sensitive import Sensitive
from tests.private.test_table_distances import PAIRS, STATES, SURE, counted, neighbours

RNG = np.random.default_rng(0)
SPREAD = [RNG.dirichlet(np.ones(4)).reshape(2, 2) for _ in PAIRS]
VALUES = np.array([[0.0, 0.3], [0.7, 1.0]])
ASKED = (
    ([SURE, SURE, VALUES], [("largest", (0, 1), 0), ("ranked", (0, 1), 8), ("gap", (2,), 0)]),
    ([SURE, SURE, VALUES], [("ranked", (1, 0), 4), ("gap", (2,), WHOLE), ("gap", (2,), WHOLE // 3)]),
    ([SURE, SURE, VALUES], [("sum", (2,), 0), ("sum", (2,), WHOLE // 3), ("sum", (2,), WHOLE)]),
    (SPREAD, [("largest", (2, 0, 1), 0), *(("ranked", (0, 1, 2), rank) for rank in range(1, 13))]),
)


@cache
def errors(records, adjacency, asked):
    numbers, measures = ASKED[asked]
    summed = {k for kind, places, _ in measures if kind in ("gap", "sum") for k in places}
    parts = [value_parts(table) if k in summed else whole_parts(table) for k, table in enumerate(numbers)]
    return measured_errors(counted(records, adjacency), np.full(3, 4), np.concatenate(parts), measures)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_no_neighbours_are_further_apart_than_is_claimed_and_some_are_as_far(adjacency):
    furthest = np.zeros(len(ASKED))
    for first, second in neighbours(adjacency):
        for asked in range(len(ASKED)):
            one, other = (errors(tuple(sorted(records, key=str)), adjacency, asked) for records in (first, second))
            assert (one.l1, one.linf) == (len(one.value), 1.0)
            change = np.abs(one.value - other.value)
            assert change.max() <= one.linf
            assert np.linalg.norm(change) <= one.l2
            furthest[asked] = max(furthest[asked], change.sum() / one.l1)
    assert furthest[0] == 1.0


def by_definition(counts, numbers, kind, number):
    """A measure of one table in exact fractions, and its distance to what is found."""
    total = sum(counts)
    if kind in ("gap", "sum"):
        above = sum(n * Fraction(int(f) - number, WHOLE) for n, f in zip(counts, numbers, strict=True))
        return abs(above) if kind == "gap" else above
    off = [n - Fraction(total * int(p), WHOLE) for n, p in zip(counts, numbers, strict=True)]
    return sum(max(d, 0) for d in off) if kind == "largest" else sorted(map(abs, off))[number - 1]


@settings(max_examples=80)
@given(
    st.lists(st.integers(0, 2**44), min_size=2, max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["largest", "ranked", "gap", "sum"]),
    st.sampled_from([1, 2**20]),
)
def test_errors_are_exact_whatever_is_counted(counts, seed, kind, parts_of_a_count):
    """Beyond 64 bits too: persons by shares count in parts of 2**-20."""
    rng = np.random.default_rng(seed)
    numbers = (
        value_parts(rng.random(len(counts)))
        if kind in ("gap", "sum")
        else whole_parts(rng.dirichlet(np.ones(len(counts))))
    )
    number = int(rng.integers(1, len(counts) + 1)) if kind == "ranked" else int(rng.integers(0, WHOLE + 1))
    exact = Sensitive(np.array(counts), Adjacency.ADD_REMOVE, *[float(parts_of_a_count)] * 3)
    made = measured_errors(exact, np.array([len(counts)]), numbers, [(kind, (0,), number)])
    assert abs(int(made.value[0]) - by_definition(counts, numbers, kind, number)) <= Fraction(1, 2)
    assert made.linf == parts_of_a_count


@settings(max_examples=80)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 2**20]))
def test_one_more_person_by_shares_moves_no_measure_by_more_than_a_count(size, seed, grid):
    """A person's weights are whole numbers that sum to at most a count."""
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 5 * grid, size)
    more = np.floor(rng.dirichlet(np.full(size, 0.3)) * grid).astype(int)
    more[rng.integers(size)] += grid - more.sum() if rng.random() < 0.5 else 0
    probabilities, values = whole_parts(rng.dirichlet(np.full(size, 0.3))), value_parts(rng.random(size))
    measures = [("largest", (0,), 0), *(("ranked", (0,), rank) for rank in range(1, size + 1))]
    measures += [("gap", (1,), int(rng.integers(0, WHOLE + 1))), ("gap", (1,), 0)]
    parts, sizes = np.concatenate([probabilities, values]), np.array([size, size])
    one, other = (
        measured_errors(
            Sensitive(np.tile(n, 2), Adjacency.ADD_REMOVE, *[float(grid)] * 3), sizes, parts, measures
        ).value
        for n in (before, before + more)
    )
    assert np.abs(one - other).max() <= grid


class TestOperator:
    FRAME = pd.DataFrame({"a": [0, 1] * 20, "b": [0] * 40, "c": [0, 1] * 20})
    NUMBERS = (np.full((2, 2), 0.25), np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    SCOPES = (("a", "c"), ("b",), ("a",))
    MEASURES = (("largest", (0, 1), 0), ("ranked", (0, 1), 6), ("gap", (2,), 0.25))

    def curator(self, budget=None, **options):
        ledger = budget or Budget(rho=1.0)
        return TableCurator(PrivateTable(self.FRAME, STATES, ledger=ledger, **options), ledger, what="errors")

    def test_answers(self):
        curator = self.curator(Budget(epsilon=1e5))
        # Half of all are in a wrong cell, of both tables; b is off by 20 in each cell; 20 have the value 1, 10 should.
        assert curator.ask(ModelErrors(self.SCOPES, self.NUMBERS, self.MEASURES), 0.5).tolist() == [20, 20, 10]
        assert curator.ask(ModelErrors(self.SCOPES, self.NUMBERS, [("ranked", (0,), 1)]), 0.25).tolist() == [10]
        assert [n.distribution for answer in curator.answers for n in answer.noise] == ["discrete_laplace"] * 2

    def test_debits_before_it_counts(self, monkeypatch):
        curator, seen = self.curator(), []
        true = table_operator.contingency_tables
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *a: (seen.append(curator.left), true(*a))[1])
        curator.ask(ModelErrors(self.SCOPES, self.NUMBERS, self.MEASURES), Fraction(1, 4))
        assert seen == [Fraction(3, 4)]

    def test_what_is_changed_after_it_was_asked_changes_nothing(self):
        numbers = [table.copy() for table in self.NUMBERS]
        places = [0, 1]
        asked = ModelErrors(self.SCOPES, numbers, [("largest", places, 0)])
        own = asked.checked(self.curator().facts)
        numbers[0][:], places[:] = 7.0, [2]
        assert own.measures == (("largest", (0, 1), 0),) and own.numbers[:4].tolist() == [WHOLE // 4] * 4

    @pytest.mark.parametrize(
        ("arguments", "share", "error"),
        [
            ((SCOPES, NUMBERS, MEASURES), 0, ValueError),
            ((SCOPES, NUMBERS, MEASURES), Fraction(5, 4), BudgetExceeded),
            ((SCOPES, NUMBERS, MEASURES), Fraction(1, 10**40), ValueError),  # buries any number
            ((SCOPES, NUMBERS[::-1], MEASURES), 1, ValueError),
            ((SCOPES, NUMBERS[:2], MEASURES), 1, ValueError),
            ((SCOPES, NUMBERS, ()), 1, ValueError),
            ((SCOPES, NUMBERS, [("largest", (0, 2), 0), ("gap", (2,), 0)]), 1, ValueError),  # values and a model
            ((SCOPES, NUMBERS, [("mean", (0,), 0)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("largest", (), 0)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("largest", (3,), 0)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("largest", (-1,), 0)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("gap", (0, 1), 0)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("gap", (2,), 1.5)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("gap", (2,), math.nan)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("ranked", (0,), 0)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("ranked", (0,), 5)]), 1, ValueError),
            ((SCOPES, NUMBERS, [("ranked", (0,), 1.5)]), 1, TypeError),
            ((SCOPES, (*NUMBERS[:2], np.array([0.0, 1.1])), MEASURES), 1, ValueError),
            ((SCOPES, (*NUMBERS[:2], np.array([0.0, np.nan])), MEASURES), 1, ValueError),
            (((("a", "z"),), NUMBERS[:1], MEASURES[:1]), 1, ValueError),
        ],
    )
    def test_refuses_before_anything_is_spent_or_counted(self, arguments, share, error, monkeypatch):
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *a: pytest.fail("counted"))
        curator = self.curator()
        with pytest.raises(error):
            curator.ask(ModelErrors(*arguments), share)
        assert curator.left == 1 and curator.answers == ()

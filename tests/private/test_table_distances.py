"""Distances of tables from a model's: every pair of small neighbours, exact numbers, and what the operator refuses."""

from __future__ import annotations

import itertools
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
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.data.table_distances import (
    WHOLE,
    checked_means,
    distance_sensitivity,
    mean_distances,
    whole_parts,
)
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.sensitive import Sensitive

STATES = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
RECORDS = [*itertools.product([0, 1], repeat=3), ("?", 0, 0)]  # the last is outside the schema
SURE = np.array([[1.0, 0.0], [0.0, 0.0]])


@cache
def counted(records, adjacency):
    frame = pd.DataFrame(list(records), columns=list(STATES), dtype=object)
    n_records = len(records) if adjacency == "replace_one" else None
    table = PrivateTable(frame, STATES, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=n_records)
    found = contingency_tables(table, PAIRS)
    return Sensitive(np.concatenate([t.value.ravel() for t in found]), found[0].adjacency, 1.0, 1.0, 1.0)


RNG = np.random.default_rng(0)
ASKED = (
    ([SURE] * 3, None),
    ([SURE] * 3, [[1.0, 1.0, 0.0], [0.2, 0.3, 1.0]]),
    ([RNG.dirichlet(np.ones(4)).reshape(2, 2) for _ in PAIRS], None),
)


@cache
def distances(records, adjacency, asked):
    model, weights = ASKED[asked]
    parts = np.concatenate([whole_parts(table) for table in model])
    return mean_distances(counted(records, adjacency), np.full(3, 4), parts, checked_means(weights, 3))


def neighbours(adjacency):
    for size in range(3):
        for records in itertools.combinations_with_replacement(RECORDS, size):
            if adjacency == "add_remove":
                yield from ((records, (*records, new)) for new in RECORDS)
            else:
                yield from ((records, (*records[1:], new)) for new in RECORDS if records)


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_no_neighbours_are_further_apart_than_is_claimed_and_some_are_as_far(adjacency):
    furthest = 0.0
    for first, second in neighbours(adjacency):
        for asked in range(len(ASKED)):
            one, other = (distances(tuple(sorted(records, key=str)), adjacency, asked) for records in (first, second))
            assert (one.l1, one.linf) == (len(one.value), 1.0)
            change = np.abs(one.value - other.value)
            assert change.max() <= one.linf
            assert change.sum() <= one.l1
            assert np.linalg.norm(change) <= one.l2
            furthest = max(furthest, change.sum() / one.l1)
    assert furthest == 1.0


def test_a_distance_is_the_total_variation_times_the_number_of_records():
    rng = np.random.default_rng(1)
    counts, model = rng.integers(0, 1000, 60), rng.dirichlet(np.ones(60))
    exact = Sensitive(counts, Adjacency.ADD_REMOVE, 1.0, 1.0, 1.0)
    (found,) = mean_distances(exact, np.array([60]), whole_parts(model), None).value
    assert abs(found - 0.5 * np.abs(counts - counts.sum() * model).sum()) <= 0.51


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 2**44), min_size=2, max_size=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2**20]),
)
def test_distances_are_exact_whatever_is_counted(counts, seed, parts_of_a_count):
    """Beyond 64 bits too: persons by shares count in parts of 2**-20."""
    parts = whole_parts(np.random.default_rng(seed).dirichlet(np.ones(len(counts))))
    total = sum(counts)
    wanted = sum(max(Fraction(0), n - Fraction(total * int(p), WHOLE)) for n, p in zip(counts, parts, strict=True))
    norms = [float(parts_of_a_count)] * 3
    made = mean_distances(
        Sensitive(np.array(counts), Adjacency.ADD_REMOVE, *norms), np.array([len(counts)]), parts, None
    )
    assert abs(int(made.value[0]) - wanted) <= Fraction(1, 2)
    assert made.linf == parts_of_a_count


@settings(max_examples=40)
@given(st.integers(1, 3000), st.integers(0, 2**32 - 1), st.floats(0.001, 5.0))
def test_parts_are_the_probabilities(size, seed, spread):
    probabilities = np.random.default_rng(seed).dirichlet(np.full(size, spread))
    probabilities[:: 2 if size > 1 else 5] *= size == 1
    if not probabilities.sum() > 0:
        return
    probabilities /= probabilities.sum()
    parts = whole_parts(probabilities)
    assert parts.sum() == WHOLE and parts.min() >= 0
    assert np.abs(parts / WHOLE - probabilities).max() <= 1.01 / WHOLE
    assert not parts[probabilities == 0].any()


@pytest.mark.parametrize("wrong", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0], [1e300, 1e300]])
def test_numbers_that_are_no_probabilities(wrong):
    with pytest.raises(ValueError, match="probabilities has a table of sum"):
        whole_parts(np.array(wrong))


@pytest.mark.parametrize("wrong", [[1.0, 1.0], [[1.0]], [[0.0, 0.0]], [[-1.0, 2.0]], [[np.nan, 1.0]], np.ones((0, 2))])
def test_weights_that_are_no_means(wrong):
    with pytest.raises(ValueError, match="weights has"):
        checked_means(wrong, 2)
    assert checked_means([[1e-300, 2.0]], 2).tolist() == [[1, 2**20]]


def test_the_sensitivity_is_rounded_up():
    for k in range(1, 200):
        l1, l2, linf = distance_sensitivity(k)
        assert Fraction(l1) == k and Fraction(l2) ** 2 >= k and linf == 1.0


class TestOperator:
    FRAME = pd.DataFrame({"a": [0, 1] * 20, "b": [0] * 40, "c": [0, 1] * 20})
    MODEL = (np.full((2, 2), 0.25), np.array([0.5, 0.5]))
    SCOPES = (("a", "c"), ("b",))

    def curator(self, budget=None, **options):
        ledger = budget or Budget(rho=1.0)
        return TableCurator(PrivateTable(self.FRAME, STATES, ledger=ledger, **options), ledger, what="distances")

    def test_answers(self):
        curator = self.curator(Budget(epsilon=1e5))
        assert curator.ask(Distances(self.SCOPES, self.MODEL), 0.5).tolist() == [20, 20]
        assert curator.ask(Distances(self.SCOPES, self.MODEL, [[1.0, 3.0]]), 0.25).tolist() == [20]
        assert [n.distribution for answer in curator.answers for n in answer.noise] == ["discrete_laplace"] * 2

    def test_a_part_of_the_records_is_asked_too(self):
        curator = self.curator(Budget(epsilon=1e5))
        with curator.split(2) as parts:
            assert sum(int(part.ask(Distances([("b",)], [np.array([0.0, 1.0])]), 1)[0]) for part in parts) == 40

    def test_debits_before_it_counts(self, monkeypatch):
        curator, seen = self.curator(), []
        true = table_operator.contingency_tables
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *a: (seen.append(curator.left), true(*a))[1])
        curator.ask(Distances(self.SCOPES, self.MODEL), Fraction(1, 4))
        assert seen == [Fraction(3, 4)]

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ((SCOPES, MODEL, 0), ValueError),
            ((SCOPES, MODEL, Fraction(5, 4)), BudgetExceeded),
            ((SCOPES, MODEL, Fraction(1, 10**40)), ValueError),  # buries any distance
            ((SCOPES, MODEL[::-1], 1), ValueError),
            ((SCOPES, MODEL[:1], 1), ValueError),
            ((SCOPES, (np.full((2, 2), 0.3), MODEL[1]), 1), ValueError),
            ((SCOPES, MODEL, 1, [[1.0]]), ValueError),
            (((("a", "z"),), MODEL[:1], 1), ValueError),
            (((), (), 1), ValueError),
            (("ab", MODEL, 1), TypeError),
        ],
    )
    def test_refuses_before_anything_is_spent_or_counted(self, arguments, error, monkeypatch):
        monkeypatch.setattr(table_operator, "contingency_tables", lambda *a: pytest.fail("counted"))
        curator = self.curator()
        with pytest.raises(error):
            curator.ask(Distances(*arguments[:2], *arguments[3:]), arguments[2])
        assert curator.left == 1 and curator.answers == ()

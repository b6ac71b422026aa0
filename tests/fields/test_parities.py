"""Operators for moments of random fields: what they refuse, that nothing is spent then, and debits before counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields.operators import interactions, parities
from pgmpy_dp.fields.operators.interactions import InteractionSums
from pgmpy_dp.fields.operators.parities import ParitySums, WorstParity, checked_family
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.operators import record_count as counted
from pgmpy_dp.private.operators.record_count import RecordCount

ASKED = {
    "record_count": lambda curator, share: curator.ask(RecordCount(), share),
    "parity_sums": lambda curator, share: curator.ask(ParitySums(2, with_count=True), share),
    "worst_parity": lambda curator, share: curator.ask(WorstParity(2, np.zeros(6)), share),
    "interaction_sums": lambda curator, share: curator.ask(InteractionSums(with_count=True), share),
}

COUNTS = ((parities, "shared_codes"), (interactions, "shared_codes"), (counted, "record_count"))


def curator(states=2, budget=None, rows=40, **facts) -> TableCurator:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, states, rows) for name in "abc"})
    table = PrivateTable(frame, {name: list(range(states)) for name in "abc"}, ledger=budget or Budget(rho=1.0))
    return TableCurator(table, budget or Budget(rho=1.0), what="moments", columns="abc", **facts)


@pytest.mark.parametrize("operator", ASKED)
class TestEveryOperator:
    def test_debits_before_it_counts(self, operator, monkeypatch):
        asked, seen = curator(), []
        for module, name in COUNTS:
            true = getattr(module, name)
            monkeypatch.setattr(module, name, lambda *a, true=true, **o: (seen.append(asked.left), true(*a, **o))[1])
        ASKED[operator](asked, Fraction(1, 4))
        assert seen == [Fraction(3, 4)]

    @pytest.mark.parametrize(
        ("share", "budget", "error"),
        [
            (0, Budget(rho=1.0), ValueError),
            (-0.5, Budget(rho=1.0), ValueError),
            (Fraction(5, 4), Budget(rho=1.0), BudgetExceeded),
            (Fraction(1, 10**40), Budget(rho=1.0), ValueError),  # buries any count
            (Fraction(1, 10**40), Budget(epsilon=1.0), ValueError),
        ],
    )
    def test_refuses_shares_before_anything_is_spent_or_counted(self, operator, share, budget, error, monkeypatch):
        for module, name in COUNTS:
            monkeypatch.setattr(module, name, lambda *asked, **facts: pytest.fail("counted"))
        asked = curator(budget=budget)
        with pytest.raises(error):
            ASKED[operator](asked, share)
        assert asked.left == 1 and asked.answers == ()


@pytest.mark.parametrize(
    "family",
    [0, 4, -1, (), ((),), ((0,), (0,)), ((1, 0),), ((0, 0),), ((0, 3),), ((-1,),), True, 2.0, ((0.5,),), "ab", None],
)
def test_families_that_are_none(family, monkeypatch):
    monkeypatch.setattr(parities, "shared_codes", lambda *asked, **facts: pytest.fail("counted"))
    asked = curator()
    for ask in (lambda: asked.ask(ParitySums(family), 1), lambda: asked.ask(WorstParity(family, np.zeros(3)), 1)):
        with pytest.raises((TypeError, ValueError)):
            ask()
    assert asked.left == 1


def test_families_in_any_order_are_summed_in_it():
    asked = curator(budget=Budget(epsilon=1e9))
    one = asked.ask(ParitySums([(1, 2), (0,), (0, 1, 2)]), 0.5)[0]
    other = asked.ask(ParitySums(np.array([[0], [1]])), 0.5)[0]
    z = 2 * asked._data._codes.astype(int) - 1
    assert one.tolist() == [(z[:, 1] * z[:, 2]).sum(), z[:, 0].sum(), z.prod(axis=1).sum()]
    assert other.tolist() == z[:, :2].sum(axis=0).tolist()
    assert checked_family(np.int64(2), 3) == 2


@pytest.mark.parametrize("pairs", [((1, 0),), ((0, 0),), ((0, 3),), ((1, 2), (0, 1)), ((0, 1), (0, 1)), ((0.5, 1),)])
def test_pairs_that_are_none(pairs, monkeypatch):
    monkeypatch.setattr(interactions, "shared_codes", lambda *asked, **facts: pytest.fail("counted"))
    asked = curator(3)
    with pytest.raises((TypeError, ValueError)):
        asked.ask(InteractionSums(pairs), 1)
    assert asked.left == 1


def test_variables_that_are_not_binary_have_no_parities():
    asked = curator(3)
    for ask in (lambda: asked.ask(ParitySums(1), 1), lambda: asked.ask(WorstParity(1, np.zeros(3)), 1)):
        with pytest.raises(ValueError, match="parities are of variables with two"):
            ask()
    assert asked.left == 1


class TestWorstParity:
    @pytest.mark.parametrize("expected", [np.zeros(5), np.zeros((6, 1)), 0.0])
    def test_refuses_sums_of_other_shapes(self, expected):
        asked = curator()
        with pytest.raises(ValueError, match=r"(?s)expected=.* must be 6 numbers, of shape \(6,\)"):
            asked.ask(WorstParity(2, expected), 1)
        assert asked.left == 1

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
    def test_takes_any_numbers(self, value):
        assert curator().ask(WorstParity(2, np.full(6, value), signed=True), 1) in range(12)

    def test_finds_it_and_its_sign(self):
        asked = curator(budget=Budget(epsilon=1e6))
        exact = asked.ask(ParitySums(2), 0.5)[0]
        for k in range(6):
            for shift in (-30, 30):
                expected = exact + shift * (np.arange(6) == k)
                assert asked.ask(WorstParity(2, expected), Fraction(1, 100)) == k
                assert asked.ask(WorstParity(2, expected, signed=True), Fraction(1, 100)) == k + 6 * (shift > 0)

    def test_sums_are_those_of_the_family_that_is_asked_for(self):
        asked = curator(budget=Budget(epsilon=1e6))
        for family in (2, ((0, 1),), 1, ((0, 1), (0, 2)), 2):
            exact = asked.ask(ParitySums(family), 0.1)[0]
            expected = exact.astype(float)
            expected[-1] += 30
            assert asked.ask(WorstParity(family, expected), 0.05) == len(exact) - 1


def test_a_generator_of_the_plan_is_seeded_or_new():
    with pytest.warns(UserWarning, match="NOT private"):
        seeded = [curator(random_state=3).generator().random() for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert curator().generator().random() != curator().generator().random()

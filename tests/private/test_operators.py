"""Operators are values, and values may change: what is asked is the curator's own copy, of the boundary's classes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp
from pgmpy_dp import Budget, PrivateTable, Schema
from pgmpy_dp.auditing.operator_list import every_operator
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table_distances import WHOLE
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.operator_base import Operator, planned_noise
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.tables import GroupedTables, Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.sensitive import Sensitive
from tests import operator_table
from tests.code_lines import parsed

STATES = {"a": [0, 1], "b": [0, 1, 2]}
FRAME = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 2, 2]})
MUCH = Budget(rho=1e12)


def opened(budget=MUCH):
    return TableCurator(PrivateTable(FRAME, STATES, ledger=budget), budget, what="test")


def test_no_operator_has_a_dictionary():
    """One whose `__dict__` had another norm returned noise for it."""
    for kind in every_operator().values():
        assert all("__dict__" not in vars(base) and "__slots__" in vars(base) for base in kind.__mro__[:-1]), kind
        assert not hasattr(object.__new__(kind), "__dict__")


def test_every_operator_is_in_the_table():
    assert operator_table.PAGE.read_text(encoding="utf-8") == operator_table.page(), f"run: {operator_table.COMMAND}"


def test_only_the_boundary_s_own_classes_are_asked():
    class Free(RecordCount):
        __slots__ = ()

        def mechanism(self, facts, cost, share, eta):
            return super().mechanism(facts, cost, 10**6, eta)

    @dataclass(frozen=True, slots=True)
    class Fresh(Operator):
        name = "record_count"
        asks = TableFacts

        def checked(self, facts):
            return self

        def mechanism(self, facts, cost, share, eta):
            return RecordCount().mechanism(facts, cost, 10**6, eta)

        def _exact(self, data, facts, mechanism, coins):
            return RecordCount()._exact(data, facts, mechanism, coins)

    fake = type("RecordCount", (RecordCount,), {"__slots__": (), "__module__": RecordCount.__module__})
    curator = opened()
    for operator in (Free(), Fresh(), fake()):
        with pytest.raises(TypeError, match="not a class of the boundary; ask one of those"):
            curator.ask(operator, 1)
    for operator in ("tables", Tables, None, curator):
        with pytest.raises(TypeError, match=r"pass an operator, e\.g\. Tables"):
            curator.ask(operator, 1)
    assert curator.left == 1 and curator.answers == ()


class TestTablesOfGroups:
    def test_are_sums_of_the_states_of_a_group(self):
        curator = opened()
        one, both = curator.ask(GroupedTables([("b",), ("b", "a")], [0, 1, 1]), 1)
        assert one.tolist() == [1, 3] and both.tolist() == [[1, 0], [1, 2]]
        assert curator.answers == () and curator.left == 0

    @pytest.mark.parametrize(
        ("scopes", "groups", "message"),
        [
            ([("a",), ("b",)], [0, 1], "begin with several variables"),
            ([("b", "a")], [0, 1], "each of the 3 states of 'b' which group"),
            ([("b",)], [0, 2, 2], "from 0, none of them empty"),
            ([("b",)], [0, -1, 1], "from 0, none of them empty"),
            ([("c",)], [0], "c"),
        ],
    )
    def test_refuse_other_groups_before_anything_is_spent(self, scopes, groups, message):
        curator = opened()
        with pytest.raises(ValueError, match=message):
            curator.ask(GroupedTables(scopes, groups), 1)
        assert curator.left == 1


class Shared:
    """It answers the request for a copy with an array that it keeps."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class TestWhatChanges:
    def test_by_changing_while_it_is_answered(self, monkeypatch):
        """Lists and arrays that who asks changes after the noise was planned, the operator's own fields too."""
        scopes, expected, true = [["b"]], np.array([1e9, 0, 0]), table_operator.contingency_tables
        tables, worst = Tables(scopes), WorstFit([("a",), ("b",)], np.concatenate([[0, 0], expected]))

        def changed(*arguments):
            scopes[:] = [["a"], ["b"]]
            worst.expected[:] = [1e9, 1e9, 0, 0, 0]
            object.__setattr__(tables, "weights", [10**6])
            return true(*arguments)

        monkeypatch.setattr(table_operator, "contingency_tables", changed)
        curator = opened()
        (noisy,) = curator.ask(tables, Fraction(1, 2))
        assert noisy.tolist() == [1, 1, 2] and curator.answers[0].arguments["weights"] is None
        worst.expected[:] = [0, 0, 1e9, 0, 0]
        assert curator.ask(worst, Fraction(1, 4)) == 1

    @pytest.mark.parametrize("wrapped", [np.asarray, Shared])
    def test_nobody_else_has_the_copy(self, wrapped):
        facts = opened().facts
        given = WorstFit([["a"]], np.zeros(2), wrapped(np.zeros(1)), wrapped(np.ones(1)))
        own = given.checked(facts)
        for field in fields(own):
            value = getattr(own, field.name)
            assert type(value) in (tuple, np.ndarray)
            if isinstance(value, np.ndarray):
                assert not value.flags.writeable and value.base is None
                assert not np.shares_memory(value, getattr(given, field.name))

    def test_about_its_array(self):
        """NumPy takes the caller's own array for a copy: it was checked, and then counted with what it became."""
        weights = np.ones(2)
        own = WorstFit([["a"], ["b"]], [np.zeros(2), np.zeros(3)], weights=Shared(weights)).checked(opened().facts)
        parts, means = np.array([0.5, 0.5]), np.ones((1, 1))
        tables = Distances([["a"]], [Shared(parts)], Shared(means)).checked(opened().facts)
        weights[:], parts[:], means[:] = np.nan, np.nan, np.nan
        assert own.weights.tolist() == [1, 1] and tables.probabilities.sum() == WHOLE and (tables.weights > 0).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_statistic_that_moves_further_than_its_noise_was_planned_for_is_not_released(norm, monkeypatch):
    """If all else fails: its own norms are compared with those that the noise is made for."""
    true = table_operator.contingency_tables

    def further(*arguments):
        return [replace(table, **{norm: 2.0 * getattr(table, norm)}) for table in true(*arguments)]

    curator = opened()
    monkeypatch.setattr(table_operator, "contingency_tables", further)
    if norm == "linf":  # that tables are released by l1 and l2; of scores that one counts
        facts, scores = curator.facts, Sensitive(np.arange(2), Adjacency.ADD_REMOVE, 2.0, 2.0, 2.0)
        planned = (
            WorstFit([("a",), ("b",)], np.zeros(5))
            .checked(facts)
            .mechanism(facts, curator.cost, Fraction(1), Fraction(0))
        )
        with pytest.raises(RuntimeError, match="moves further"):
            planned.over(scores)
        return
    with pytest.raises(RuntimeError, match="moves further than its noise was planned for"):
        curator.ask(Tables([("a",)]), 1)
    assert curator.answers == () and curator.left == 0


class TestFacts:
    def test_those_that_are_handed_out_are_copies(self):
        curator = opened(Budget(epsilon=1.0))
        facts = curator.facts
        object.__setattr__(facts, "by_shares", True)
        facts._known[("a",)] = ("a",), (10**6,)
        assert curator.facts.by_shares is False
        assert curator.ask(Tables([("a",)]), 1)[0].shape == (2,)

    def test_a_schema_that_is_made_from_another_merges_nothing(self):
        class Odd(Schema):
            __slots__ = ()
            cardinalities = {"a": 1, "b": 1}

        curator = opened()
        with pytest.raises(TypeError, match="is made from one of this package's"):
            curator.merge(Odd(STATES), {})

    def test_an_operator_of_other_data_is_refused(self):
        curator = opened()
        for kind in every_operator().values():
            if not issubclass(TableFacts, kind.asks):
                with pytest.raises(TypeError, match="is no question about a PrivateTable"):
                    curator.ask(object.__new__(kind), 1)
        assert curator.left == 1


class TestNoise:
    def test_is_that_of_the_answer_and_costs_nothing(self):
        curator, share = opened(Budget(rho=1.0)), Fraction(1, 3)
        operator = Tables([("a",), ("b",)], [1, 2])
        before = curator.noise(operator, share)
        assert curator.left == 1 and curator.answers == ()
        curator.ask(operator, share)
        assert before == curator.answers[0].noise
        assert before == planned_noise(operator, curator.facts, curator.cost, share)

    def test_refuses_what_asking_does(self):
        curator = opened()
        for operator, share, error in ((Tables([("q",)]), 1, ValueError), (RecordCount(), 0, ValueError)):
            with pytest.raises(error):
                curator.noise(operator, share)


def test_only_curators_call_what_counts():
    """Nobody else has a way to an exact statistic: not a plan, and no other operator."""
    root = Path(pgmpy_dp.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if "_exact" in path.read_text(encoding="utf-8")
        for node in ast.walk(parsed(path))
        if getattr(node, "attr", "") == "_exact" or (isinstance(node, ast.Constant) and node.value == "_exact")
    }
    assert found == {"private/curator/curator_base.py"}


@pytest.mark.parametrize(
    ("question", "share", "error", "message"),
    [
        (Tables([("a",)], {1: 2}), 0.5, TypeError, "weights=.* is a dict; pass a sequence of numbers"),
        (Tables([("a",)], 5), 0.5, TypeError, "weights=5 is a int"),
        (Tables([("a",)]), 1e-320, ValueError, "share=.* would bury any count"),
    ],
)
def test_what_is_no_weight_and_no_share_is_named(question, share, error, message):
    curator = opened()
    with pytest.raises(error, match=message):
        curator.ask(question, share)
    assert curator.left == 1

"""PrivateTable: public facts only, no way out for a record, errors before anything is read."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import Schema

FRAME = pd.DataFrame({"a": ["x", "y", "y", "secret"], "b": [0, 1, 1, 0]})
STATES = {"a": ["x", "y"], "b": [0, 1]}


def table(**changes) -> PrivateTable:
    arguments = {"data": FRAME, "schema": STATES, "ledger": Budget(epsilon=1.0), **changes}
    return PrivateTable(arguments.pop("data"), arguments.pop("schema"), **arguments)


class TestPublicFace:
    def test_properties(self):
        subject = table(adjacency="replace_one", n_records=np.int64(4))
        assert subject.schema == Schema(STATES) and subject.adjacency == "replace_one" and subject.n_records == 4
        assert subject.ledger.budget == Budget(epsilon=1.0) and subject.ledger.adjacency == "replace_one"

    def test_nothing_else_is_public(self):
        public = [name for name in dir(table()) if not name.startswith("_")]
        assert public == [
            "adjacency",
            "agreeing_on",
            "facts",
            "for_a_plan",
            "ledger",
            "n_records",
            "n_units",
            "rows_per_unit",
            "schema",
            "set_aside",
            "unit",
        ]
        for attempt in (len, iter, vars, lambda t: t[0], lambda t: t.head(), np.asarray):
            if attempt is np.asarray:
                assert attempt(table()).shape == ()  # a zero-dimensional box around the object, not its records
                continue
            with pytest.raises((TypeError, AttributeError)):
                attempt(table())

    def test_text_is_the_same_for_any_records(self):
        texts = set()
        for data in (FRAME, FRAME.iloc[:0], FRAME.iloc[:2], pd.concat([FRAME] * 30)):
            subject = table(data=data)
            texts |= {repr(subject), str(subject), f"{[subject]}"}
        assert len(texts) == 2  # in a list, and alone
        assert repr(table()) == "PrivateTable(2 variables, adjacency='add_remove', n_records=None, spent 0-DP of 1-DP)"

    @pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_refuses_copies(self, duplicate):
        with pytest.raises(TypeError, match="cannot be copied or pickled: it holds private records"):
            duplicate(table())

    def test_does_not_follow_the_frame(self):
        frame = FRAME.copy()
        subject = table(data=frame)
        frame["a"] = "x"
        assert contingency_tables(subject, [("a",)])[0].value.tolist() == [1, 2]

    def test_shared_ledger(self):
        ledger = Ledger(Budget(epsilon=1.0))
        assert table(ledger=ledger).ledger is ledger and table(ledger=ledger).ledger is ledger


class TestCounts:
    def test_tables_follow_the_scopes(self):
        pair, turned, single = contingency_tables(table(), [("a", "b"), ("b", "a"), ("b",)])
        assert pair.value.tolist() == [[1, 0], [0, 2]]
        assert np.array_equal(turned.value, pair.value.T) and single.value.tolist() == [1, 2]

    @pytest.mark.parametrize("data", [FRAME.iloc[:0], FRAME.iloc[3:], pd.DataFrame({"a": [], "b": []})])
    def test_no_records_count_as_zeros(self, data):
        assert contingency_tables(table(data=data), [("a", "b")])[0].value.tolist() == [[0, 0], [0, 0]]


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "error", "text"),
        [
            ({"ledger": None}, TypeError, r"ledger=None is a NoneType; pass the Budget that may be spent"),
            ({"ledger": 1.0}, TypeError, r"ledger=1.0 is a float; pass the Budget"),
            (
                {"adjacency": "edge"},
                ValueError,
                r"adjacency='edge' is not supported; use one of 'add_remove', 'replace",
            ),
            ({"adjacency": "replace_one"}, ValueError, r"n_records=None with adjacency='replace_one'.*pass n_records"),
            ({"n_records": -1}, ValueError, r"n_records=-1 is out of range; pass a whole number from 0"),
            (
                {"n_records": 10**30},
                ValueError,
                r"n_records=10{30} is out of range; pass a whole number from 0 to 10{15}$",
            ),
            ({"n_records": 4.0}, TypeError, r"n_records=4.0 is a float"),
            ({"n_records": True}, TypeError, r"n_records=True is a bool"),
            ({"n_records": "4"}, TypeError, r"n_records='4' is a str"),
            ({"schema": None}, ValueError, r"schema=None: pass a Schema.*never read from the records"),
            (
                {"schema": {"a": ["x"]}},
                ValueError,
                r"columns of one state alone; declare at least one variable of two states",
            ),
            ({"schema": {"c": [0, 1]}}, ValueError, r"no column for \['c'\]"),
            ({"data": {"a": [1]}}, TypeError, r"data is a dict, not a dataframe"),
        ],
    )
    def test_bad_arguments(self, changes, error, text):
        with pytest.raises(error, match=text):
            table(**changes)

    def test_ledger_of_another_adjacency(self):
        ledger = Ledger(Budget(epsilon=1.0))
        ledger.charge(PureDP(0.1), what="w", columns=(), mechanism="m", adjacency="add_remove")
        with pytest.raises(ValueError, match=r"adjacency='replace_one' differs from the ledger's 'add_remove'"):
            table(ledger=ledger, adjacency="replace_one", n_records=4)

    def test_arguments_are_checked_before_data_are_read(self):
        class Frame:
            def __getattr__(self, name):
                raise AssertionError("data were opened")

        with pytest.raises(ValueError, match="n_records=-1"):
            table(data=Frame(), n_records=-1)

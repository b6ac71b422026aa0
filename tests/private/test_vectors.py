"""PrivateVectors: public facts only, odd values dropped in silence, each cell read on its own."""

from __future__ import annotations

import copy
import pickle
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pgmpy_dp import Budget, Ledger, PrivateVectors
from pgmpy_dp.mixtures.operators.vector_sums import require_single_records
from pgmpy_dp.private.data.vectors import vector_rows
from pgmpy_dp.private.reading.frames import read_numbers

ODD = [1, True, "2.5", b"3", 3 + 0j, 10**400, "1e999", "text", None, pd.NaT, np.nan, -np.inf, object(), [1]]
READ = [1.0, 1.0, 2.5, 3.0, 3.0, np.inf, np.inf, *[np.nan] * 4, -np.inf, np.nan, np.nan]
FRAME = pd.DataFrame({"who": ["a", "b", "a", None], "x": [1.0, 2.0, np.inf, 4.0], "y": [5, 6, 7, 8]})


def private(data=FRAME, **changes) -> PrivateVectors:
    return PrivateVectors(data, **{"ledger": Budget(epsilon=1.0), **changes})


class TestReading:
    def test_each_cell_is_read_on_its_own(self):
        together = pd.DataFrame({"x": pd.Series(ODD, dtype=object)})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(read_numbers(together, ["x"])[:, 0], READ)
            for cell, expected in zip(ODD, READ, strict=True):
                alone = pd.DataFrame({"x": pd.Series([cell], dtype=object)})
                np.testing.assert_array_equal(read_numbers(alone, ["x"]), [[expected]])
                array = alone.to_numpy()
                np.testing.assert_array_equal(read_numbers(array, [0]), [[expected]])

    def test_a_zero_has_no_sign_whatever_else_is_in_its_column(self):
        for others in ([], ["?"], [0], [False], [1.0]):
            column = pd.Series([*others, -0.0], dtype=object if others else float)
            rows = vector_rows(private(pd.DataFrame({"x": column}), columns=["x"]))[0]
            assert rows[-1, 0] == 0.0
            assert not np.signbit(rows[-1, 0])

    @pytest.mark.parametrize("reaction", ["raise", "print"])
    def test_an_overflow_is_not_seen_whatever_numpy_is_told(self, reaction, capfd):
        with np.errstate(all=reaction):
            rows = vector_rows(private(np.array([["1e4000"], ["2"]], dtype=np.longdouble), columns=[0]))[0]
        assert rows.tolist() == [[2.0]]
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize("kind", [np.int8, np.uint64, np.float32, np.float64, bool])
    def test_types_of_columns(self, kind):
        values = np.array([[0, 1], [1, 0], [1, 1]], dtype=kind)
        expected = values.astype(float).tolist()
        assert read_numbers(values, [0, 1]).tolist() == expected
        assert read_numbers(pd.DataFrame(values, columns=["x", "y"]), ["x", "y"]).tolist() == expected

    @pytest.mark.parametrize("engine", [pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), duckdb.from_df])
    def test_engines_agree(self, engine):
        frame = FRAME.drop(columns="who")
        assert read_numbers(engine(FRAME), ["y", "x"]).tolist() == frame[["y", "x"]].to_numpy().tolist()
        rows, owner = vector_rows(private(engine(FRAME), columns=["y", "x"], unit="who"))
        assert rows.tolist() == frame[["y", "x"]].to_numpy()[:2].tolist()  # the third has an infinite number
        assert owner.tolist() == [0, 1]

    def test_names_and_shapes_are_public_and_checked(self):
        with pytest.raises(ValueError, match="no column for \\['z'\\]"):
            private(columns=["x", "z"])
        with pytest.raises(ValueError, match=r"shape \(3,\)"):
            private(np.ones(3), columns=["x"])
        with pytest.raises(ValueError, match=r"shape \(3, 2\), and 1 column"):
            private(np.ones((3, 2)), columns=["x"])
        with pytest.raises(ValueError, match="no columns to read"):
            private(np.ones((3, 0)))
        with pytest.raises(ValueError, match="several columns named \\['x'\\]"):
            private(pd.DataFrame(np.ones((2, 2)), columns=["x", "x"]))
        with pytest.raises(ValueError, match="each column once, and not the unit 'x'"):
            private(columns=["x", "y"], unit="x")
        with pytest.raises(TypeError, match="columns='x' is a str"):
            private(columns="x")
        with pytest.raises(TypeError, match="an array without names"):
            private(np.ones((3, 2)), unit="who")
        with pytest.raises(TypeError, match="not a dataframe"):
            private({"x": [1.0]})
        with pytest.raises(ValueError, match="n_records=None"):
            private(adjacency="replace_one")
        with pytest.raises(ValueError, match="'edge' is not supported"):
            private(adjacency="edge")


class TestSubject:
    def test_rows_that_are_not_finite_are_dropped(self):
        rows, owner = vector_rows(private())
        assert owner is None and private().columns == ("who", "x", "y") and rows.shape == (0, 3)
        rows, owner = vector_rows(private(columns=["y", "x"]))
        assert owner is None and rows.tolist() == [[5, 1], [6, 2], [8, 4]]

    def test_units(self):
        subject = private(unit="who")
        rows, owner = vector_rows(subject)
        assert rows.tolist() == [[1, 5], [2, 6]] and len(set(owner.tolist())) == 2
        assert subject.unit == "who" and subject.columns == ("x", "y")
        with pytest.raises(ValueError, match="protect whole units"):
            require_single_records(subject)

    def test_nothing_but_public_facts(self):
        public = [name for name in dir(private()) if not name.startswith("_")]
        assert public == [
            *("adjacency", "agreeing_on", "columns", "facts", "for_a_plan", "ledger", "n_records", "set_aside", "unit")
        ]
        texts = {repr(private(data)) for data in (FRAME, FRAME.iloc[:0], pd.concat([FRAME] * 9))}
        assert len(texts) == 1
        for attempt in (len, iter, vars, pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                attempt(private())

    def test_a_ledger_is_shared(self):
        ledger = Ledger(Budget(rho=1.0), adjacency="replace_one")
        assert private(adjacency="replace_one", n_records=4, ledger=ledger).ledger is ledger
        with pytest.raises(ValueError, match="differs from the ledger's"):
            private(ledger=ledger)

    def test_it_does_not_follow_the_data(self):
        values = np.ones((4, 2))
        subject = private(values)
        values[:] = 7
        assert (vector_rows(subject)[0] == 1).all()

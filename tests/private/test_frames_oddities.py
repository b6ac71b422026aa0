"""Cells that engines choke on, odd names, extreme sizes and threads: what a record holds is never seen."""

from __future__ import annotations

import datetime
import itertools
import threading
import warnings

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pgmpy_dp import Budget, Date, Ledger, Number, PrivateTable, PrivateVectors
from pgmpy_dp.private.data.contingency import count
from pgmpy_dp.private.reading.frames import encode
from pgmpy_dp.schema import Schema
from tests.private.test_frames import Talkative


def broken_text() -> pa.Array:
    """Two texts, the second of which is no UTF-8."""
    ends = np.array([0, 1, 2], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"a\xff")])


def impossible_cells():
    """Columns in which one cell (the first, or the second of two) has no Python value, and the others do."""
    day = datetime.date(2020, 1, 1)
    far = {"s": 10**15, "ms": 2**62, "us": 2**61}
    for unit, ticks in far.items():
        for zone in (None, "Europe/Paris"):
            kind = pa.timestamp(unit, zone)
            yield f"pyarrow {kind}", pa.table({"x": pa.array([ticks, 0, None], kind)})
            yield (
                f"pandas on {kind}",
                pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(pa.array([ticks, 0, None], kind))}),
            )
            if unit != "s":
                wide = pl.Series([ticks, 0, None]).cast(pl.Datetime(unit, zone))
                yield f"polars {unit} {zone}", pl.DataFrame({"x": wide})
    yield "pyarrow date32", pa.table({"x": pa.array([2**31 - 1, 0, None], pa.int32()).cast(pa.date32())})
    yield "pyarrow duration", pa.table({"x": pa.array([2**62, 0, None], pa.duration("s"))})
    yield "pyarrow least", pa.table({"x": pa.array([-(2**63), 0, None], pa.timestamp("us"))})
    yield "pyarrow nested", pa.table({"x": pa.array([[10**15], [0], None], pa.list_(pa.timestamp("s")))})
    yield "polars date", pl.DataFrame({"x": pl.Series([2**30, 0, None], dtype=pl.Int32).cast(pl.Date)})
    yield "polars duration", pl.DataFrame({"x": pl.Series([2**62, 0, None]).cast(pl.Duration("ms"))})
    yield "polars least", pl.DataFrame({"x": pl.Series([-(2**63), 0, None]).cast(pl.Datetime("us"))})
    listed = pl.Series([[2**62], [0], None])
    yield "polars nested", pl.DataFrame({"x": listed.cast(pl.List(pl.Datetime("ms")))})
    yield (
        "polars struct",
        pl.DataFrame({"x": pl.Series([{"a": 2**61}, {"a": 0}, None]).cast(pl.Struct({"a": pl.Datetime("us")}))}),
    )
    yield "polars lazy", pl.LazyFrame({"x": pl.Series([2**30, 0, None], dtype=pl.Int32).cast(pl.Date)})
    yield "numpy seconds", pd.DataFrame({"x": np.array([10**15, 0, None], dtype="datetime64[s]")})
    yield "objects", pd.DataFrame({"x": pd.Series([np.datetime64(2**62, "s"), day, None], dtype=object)})
    yield "texts", pa.table({"x": pa.concat_arrays([broken_text(), pa.array([None, "2020-01-01"])])})
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), broken_text())
    yield "dictionary of texts", pa.table({"x": coded})
    texts = pa.concat_arrays([broken_text(), pa.array([None], pa.string())])
    yield "pandas on texts", pd.DataFrame({"x": pd.Series(pd.arrays.ArrowExtensionArray(texts))})


class TestCellsWithoutAPythonValue:
    """One record with such a cell must not raise, nor print, nor change how any other is read."""

    @pytest.mark.parametrize(("name", "data"), list(impossible_cells()), ids=[n for n, _ in impossible_cells()])
    def test_it_is_outside_the_schema_in_silence(self, name, data, capfd):
        if "text" in name:
            inside = ["a", "2020-01-01", "b"]
        elif "nested" in name:
            inside = [("1970-01-01",), "b"]
        elif "struct" in name:
            inside = ["{'a': datetime.datetime(1970, 1, 1, 0, 0)}", "b"]
        else:
            inside = ["1970-01-01", "1970-01-01T00:00:00+00:00", "PT0S", "2020-01-01"]
        codes = encode(data, Schema({"x": [*inside, None]}))[:, 0].tolist()
        assert len(inside) in codes  # the missing one
        assert len(codes) == 2 + (name == "texts")
        with_other = Schema({"x": [*inside, "other"]}, other={"x": "other"})
        assert encode(data, with_other)[:, 0].tolist().count(len(inside)) == 2
        assert capfd.readouterr() == ("", "")

    def test_a_zone_that_does_not_exist(self):
        for cells in ([], [0]):
            data = pa.table({"x": pa.array(cells, pa.timestamp("us", "Nowhere/At all"))})
            assert encode(data, Schema({"x": ["a", "b"]})).shape == (0, 1)


class TestNames:
    ODD = [
        *["", " ", "^a.*$", "*", "^x$", "a.b", 'x"y', "x'y", "\n", "\0x", "é", "e\u0301", "🎈", "👩\u200d👧", "\u0627"],
        *[
            "\u202ex",
            "a" * 3000,
            "0",
            "1.0",
            "-0",
            "1e999",
            "None",
            "nan",
            "True",
            "len",
            "index",
            "\ufb01",
            "ß",
            "\u0130",
        ],
    ]

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
    def test_odd_names_name_their_own_column(self, make):
        for name in self.ODD:
            frame = make({name: ["a", "b", "c"], "ax": ["b"] * 3})
            assert encode(frame, Schema({name: ["a", "b"]})).tolist() == [[0], [1]], name
        columns = {name: ["a", "b"] if k % 2 else ["b", "a"] for k, name in enumerate(self.ODD)}
        schema = Schema({name: ["a", "b"] for name in self.ODD[::-1]})
        codes = encode(make(columns), schema).tolist()
        places = range(len(self.ODD))
        assert codes == [[row if k % 2 else 1 - row for k in places][::-1] for row in (0, 1)]

    def test_a_line_of_an_edge_list_and_duckdb(self):
        for name in (" ", "*", 'x"y', "x'y", "a.b", "🎈", "select", "^x$"):
            arrow = pa.table({name: ["a", "b"], "other": ["b", "b"]})
            assert encode(duckdb.from_arrow(arrow), Schema({name: ["a", "b"]})).tolist() == [[0], [1]]


class TestSizes:
    @pytest.mark.parametrize("half", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
    def test_very_many_columns(self, half):
        names = [f"c{k}" for k in range(2 * half)]
        data = pl.DataFrame(np.tile([[0, 1]], (2, half)), schema=names)
        assert encode(data, Schema({name: [0, 1] for name in names})).sum(axis=1).tolist() == [half, half]

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_a_million_records(self, make):
        data = make({"x": np.arange(1_000_000) % 4})
        assert count(encode(data, Schema({"x": [0, 1, 2]})), [3], [0]).tolist() == [250_000] * 3


class TestThreads:
    def test_reading_in_threads_leaves_the_warning_filters_alone(self):
        frame, before = pd.DataFrame({"x": [Talkative(), "a", 1] * 20}), list(warnings.filters)

        def read():
            for _ in range(50):
                encode(frame, Schema({"x": ["a", "b"]}))

        threads = [threading.Thread(target=read) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(warnings.filters) == before


def times(folder):
    """A duration and a time of day in every kind of data that declares types."""
    table = pa.table({"w": pa.array([1, 2], pa.duration("s")), "t": pa.array([1, 2], pa.time64("us"))})
    pq.write_table(table, folder / "times.parquet")
    yield "pyarrow", table
    yield "no rows", table.slice(0, 0)
    yield "stream", table.to_reader()
    yield "duckdb", duckdb.sql("select interval 1 day as w, time '10:00' as t")
    made = ibis.memtable(pa.table({"k": [1]})).mutate(w=ibis.interval(days=1), t=ibis.time("10:00:00"))
    yield "ibis", made.select("w", "t")
    yield "parquet", folder / "times.parquet"
    pq.write_table(pa.table({"w": pa.array([1, 2]), "t": pa.array([1, 2])}), folder / "numbers.parquet")
    yield "one of two files", [folder / "numbers.parquet", folder / "times.parquet"]


@pytest.mark.parametrize("number", [Number(0, 9, cuts=[5]), Date("2020-01-01", "2020-12-31", cuts=["2020-06-01"])])
def test_durations_and_times_of_day_are_no_numbers_by_their_type(number, tmp_path):
    """Before anything is charged, and whether there is a record or not: the types of columns are public."""
    for name, column in itertools.product([kind for kind, _ in times(tmp_path)], "wt"):
        data, ledger = dict(times(tmp_path))[name], Ledger(Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=f"the column '{column}' has the type .*pass numbers"):
            PrivateTable(data, {column: number}, ledger=ledger)
        assert ledger.entries == ()
    waits = np.array([[1], [2]], "m8[D]")
    with pytest.raises(ValueError, match="column 0 has the type timedelta64"):
        PrivateVectors(waits, ledger=Budget(epsilon=1.0))
    table = pa.table({"w": pa.array([1, 2], pa.duration("s"))})
    with pytest.raises(ValueError, match="the column 'w' has the type"):
        PrivateVectors(table, ["w"], ledger=Budget(epsilon=1.0))
    assert PrivateTable(table, {"w": ["PT1S", "PT2S"]}, ledger=Budget(epsilon=1.0))  # as states they are read


def test_a_type_that_a_library_guesses_refuses_nothing():
    """pandas makes durations of a column, and objects where one record has an odd cell: a refusal would tell of it."""
    days = [datetime.timedelta(days=1)] * 3
    frames = pd.DataFrame({"w": days}), pd.DataFrame({"w": [*days, "odd"]}), pl.DataFrame({"w": days})
    assert frames[0]["w"].dtype.kind == "m" and frames[1]["w"].dtype == object
    for frame in frames:
        table = PrivateTable(frame, {"w": Number(0, 9, cuts=[5])}, ledger=Budget(epsilon=1.0))
        assert table.ledger.entries == ()

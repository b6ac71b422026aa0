"""The same records through every engine: counts, codes and moments equal to the digit, and silence about them."""

from __future__ import annotations

import datetime
import decimal
import gzip
import itertools
import logging
import math
import pickle
import sqlite3
import tempfile
import warnings

import dask
import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp import Budget, Date, Number, Schema
from pgmpy_dp.estimators import NaiveMLE, PrivateChowLiu, PrivateGraphicalLasso
from pgmpy_dp.private.data.coding import key_coder
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.moments import centered_sums, second_moments, unit_count
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables, shared_codes
from pgmpy_dp.private.data.vectors import PrivateVectors, vector_rows
from pgmpy_dp.private.reading import records as reading_records
from pgmpy_dp.schema import interval_states, match_key
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_tables

TEXTS = [
    "a",
    "b",
    "7",
    "7.0",
    " 7 ",
    "+7.",
    "7e0",
    "\u30007",
    "0",
    "-0",
    "0e9",
    "1e999",
    "-1e999",
    "1e-999",
    "1_0",
    "٧",
]
TEXTS += [
    "True",
    " true",
    "TRUE\n",
    "tRUE",
    "False",
    "x7",
    "",
    " ",
    "nan",
    "inf",
    "None",
    "'",
    '"',
    "a\0b",
    ",",
    "ß",
    "A",
]
SCHEMA = Schema(
    {
        "text": ["a", 7, True, None, 0, "a\0b", "'", 10**400],
        "word": ["a", "b", ""],
        "whole": [0, 1, "2", 2**53],
        "real": [0, 1, None, 2.5, 1e300],
        "truth": [False, True],
        "day": ["2020-01-01", "2020-01-02"],
        "time": ["2020-01-01", "2020-01-01T12:00:00"],
        "price": ["0", 0.1, 0.2, 100],
        "kind": ["a", "7", 8],
    },
    other={"text": "a", "whole": "2", "real": 1, "day": "2020-01-02", "time": "2020-01-01", "kind": 8, "price": "0"},
)
READ = Schema(
    {
        "text": Number(0, 8, cuts=[1, 7], outside="state"),
        "word": ["A", "b", "?"],
        "whole": Number(0, 3, bins=2, resolution=1),
        "real": Number(0, 3, cuts=[0.1, 2.5], outside="state"),
        "truth": Number(0, 1, bins=2, resolution=1),
        "day": Date("2020-01-01", "2020-01-03", bins=3),
        "time": Date("2020-01-01", "2020-01-03", cuts=["2020-01-02"]),
        "price": Number(0, 1, cuts=[0.1, 0.2], outside="state"),
        "kind": ["8", "zz", "x"],
    },
    other={"kind": "x", "word": "?"},
    missing={"text": [0, "x7"], "whole": [2, 2**53], "real": [2.5], "kind": ["7"]},
    strip=True,
    casefold=["text", "word", "kind"],
    recode={"text": {"ß": 3, " a": 8, "": 7}, "real": {1: 0}, "price": {0.1: None}, "kind": {"a": "8", None: "x"}},
)
SCOPES = [
    *([name] for name in SCHEMA),
    ["word", "text"],
    ["real", "whole", "price"],
    ["kind", "truth", "day"],
    ["time"],
]
NOON, MIDNIGHT = datetime.datetime(2020, 1, 1, 12), datetime.datetime(2020, 1, 1)
CELLS = {
    "text": (pa.string(), st.sampled_from([*TEXTS, None])),
    "word": (pa.string(), st.sampled_from(["a", "b", "", None, "7"])),
    "whole": (pa.int64(), st.sampled_from([0, 1, 2, 3, -1, 2**53, 2**53 + 1, 2**63 - 1, None])),
    "real": (pa.float64(), st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e300, math.nan, math.inf, None, 0.1])),
    "truth": (pa.bool_(), st.sampled_from([True, False, None])),
    "day": (pa.date32(), st.sampled_from([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), None])),
    "time": (pa.timestamp("us"), st.sampled_from([NOON, MIDNIGHT, NOON + datetime.timedelta(microseconds=1), None])),
    "price": (
        pa.decimal128(20, 2),
        st.sampled_from([decimal.Decimal(c) / 100 for c in (0, 10, 20, 10000, 1)] + [None]),
    ),
    "kind": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "7", " 8 ", "zz", None])),
}
records = st.lists(st.fixed_dictionaries({name: cells for name, (_, cells) in CELLS.items()}), max_size=12)


def arrow(rows: list[dict]) -> pa.Table:
    columns = {}
    for name, (kind, _) in CELLS.items():
        values = [row[name] for row in rows]
        is_dictionary = pa.types.is_dictionary(kind)
        column = pa.array(values, pa.string() if is_dictionary else kind)
        columns[name] = column.dictionary_encode() if is_dictionary else column
    return pa.table(columns)


def many_rows(n: int = 1000, seed: int = 0) -> list[dict]:
    rng = np.random.default_rng(seed)
    choices = {name: list(cells.elements) for name, (_, cells) in CELLS.items()}
    # Some of every kind, and some hundred records without an outside cell.
    good = {"word": ["a", "b"], "truth": [True, False]}
    return [
        {
            name: cells[rng.integers(len(cells))]
            if name not in good or rng.random() < 0.2
            else good[name][rng.integers(2)]
            for name, cells in choices.items()
        }
        for _ in range(n)
    ]


def duckdb_relation(table: pa.Table):
    return duckdb.from_arrow(table)  # on the default connection: older versions close one that nobody holds


def polars_lazy(table: pa.Table):
    return pl.from_arrow(table).lazy()


def dask_frame(table: pa.Table):
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(table.to_pandas(), npartitions=2)


def dask_of_arrow(table: pa.Table):
    return dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)


def ibis_sqlite(table: pa.Table, folder):
    with sqlite3.connect(folder / "records.sqlite") as connection:
        table.to_pandas().to_sql("records", connection, index=False)
    connection.close()
    return ibis.sqlite.connect(folder / "records.sqlite").table("records")


def ibis_duckdb(table: pa.Table):
    return ibis.memtable(table)


LAZY = [duckdb_relation, polars_lazy, dask_frame, dask_of_arrow, ibis_duckdb]
# Dask makes tasks of every column: where one of its two kinds of columns will do.
ONE_DASK = [pytest.param(engine, marks=[pytest.mark.slow] * (engine is dask_frame)) for engine in LAZY]


def exact(data, schema=SCHEMA, scopes=SCOPES) -> list[np.ndarray]:
    table = PrivateTable(data, schema, ledger=Budget(epsilon=1.0))
    return [counts.value for counts in contingency_tables(table, scopes)]


def assert_same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype == np.int64 and a.tolist() == b.tolist()


# Each example reads a file or asks a database, or several.
A_THIRD, A_FIFTH = (settings(max_examples=settings.default.max_examples // part) for part in (3, 5))


class TestCounts:
    @pytest.mark.parametrize("schema", [SCHEMA, READ], ids=["states", "numbers"])
    @pytest.mark.parametrize("engine", LAZY)
    def test_every_engine_counts_as_memory_does(self, engine, schema):
        table = arrow(many_rows())
        counts = exact(table, schema)
        assert counts[0].sum() > 100 and all((part > 0).any() for part in counts)
        assert_same(exact(engine(table), schema), counts)

    @A_FIFTH
    @given(records, st.sampled_from([SCHEMA, READ]))
    def test_whatever_the_records(self, rows, schema):
        table = arrow(rows)
        counts = exact(table, schema)
        assert_same(exact(duckdb_relation(table), schema), counts)
        assert_same(exact(polars_lazy(table), schema), counts)

    @pytest.mark.parametrize("engine", LAZY)
    def test_rows_are_fetched_as_codes_for_learners_that_need_them(self, engine):
        for schema in (SCHEMA, READ):
            self.codes_are_fetched(engine, schema)

    def codes_are_fetched(self, engine, schema):
        table = arrow(many_rows(500))
        here, there = (PrivateTable(data, schema, ledger=Budget(epsilon=1.0)) for data in (table, engine(table)))
        codes = shared_codes(there)[0]
        assert np.array_equal(codes, shared_codes(here)[0])  # in the same order for these engines
        assert codes.dtype == np.uint8 and codes.flags.f_contiguous and shared_codes(there)[0] is codes

    @pytest.mark.parametrize("engine", LAZY)
    @pytest.mark.parametrize("rows", [0, 1])
    def test_nothing_to_count(self, engine, rows):
        table = arrow([{**many_rows(1)[0], "word": "outside"}] * rows)
        schema = SCHEMA.subset(["word", "real", "time"]) if "dask" in engine.__name__ else SCHEMA
        scopes = [["word"], ["real", "word"], list(schema)[:3]]
        assert all(part.sum() == 0 for part in exact(engine(table), schema, scopes))
        private = PrivateTable(engine(table), schema, ledger=Budget(epsilon=1.0))
        assert shared_codes(private)[0].shape == (0, len(schema))

    def test_a_table_of_a_database(self, tmp_path):
        # SQLite has whole numbers, doubles and texts.
        table = arrow(many_rows()).select(["text", "word", "whole", "real"])
        column = pa.array([None if v is None else v % 4 for v in table["whole"].to_pylist()], pa.int64())
        table = table.set_column(2, "whole", column)
        rows = [row for row in table.to_pylist() if row["whole"] is not None and not (row["text"] or "").count("\0")]
        table = pa.Table.from_pylist(rows, schema=table.schema)
        schema = SCHEMA.subset(table.column_names)
        scopes = [["text", "word"], ["whole", "real"]]
        records = ibis_sqlite(table, tmp_path)
        assert_same(exact(records, schema, scopes), exact(table, schema, scopes))
        x = np.random.default_rng(3).normal(size=(500, 3)) * [0.1, 5, 1e3]
        numbers = pa.table(dict(zip("xyz", x.T, strict=True)))
        (tmp_path / "numbers").mkdir()
        assert_same(sums(ibis_sqlite(numbers, tmp_path / "numbers")), sums(numbers))

    @pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.float32(), pa.large_string()])
    def test_other_types_of_columns(self, kind):
        values = [0, 1, 2, 100, 7, None]
        column = pa.array(
            [None if v is None else str(v) for v in values] if kind == pa.large_string() else values, kind
        )
        table = pa.table({"x": column})
        schema = Schema({"x": [1, 2.0, "100", None, 300, -5, 0.5, 2**70]})
        counts = exact(table, schema, [["x"]])
        assert counts[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
        for engine in LAZY:
            if engine is not dask_frame:  # which has no such types but those of NumPy
                assert_same(exact(engine(table), schema, [["x"]]), counts)

    def test_a_column_that_is_huge_integers_lists_or_bytes(self):
        relation = duckdb.sql(
            "SELECT unnest([9007199254740993::HUGEINT, 2, NULL]) AS h, unnest([[1, 2], [2], NULL]) AS l, "
            "unnest(['a'::BLOB, '7'::BLOB, NULL]) AS b, unnest([uuid(), uuid(), NULL]) AS u, "
            "unnest([{'a': 1}, {'a': 2}, NULL]) AS s"
        )
        schema = Schema({"h": [2**53, 2, None], "l": [(1, 2), (2,), None], "b": ["a", 7, None]})
        assert_same(
            exact(relation, schema, [["h", "l"], ["b"]]), exact(relation.to_arrow_table(), schema, [["h", "l"], ["b"]])
        )
        assert exact(relation, schema, [["h", "l", "b"]])[0].sum() == 3
        odd = Schema({"u": [1, None], "s": [1, None]})
        assert exact(relation, odd, [["u", "s"]])[0].tolist() == [[0, 0], [0, 1]]

    @settings(max_examples=15, deadline=None)
    @given(
        st.lists(st.text(max_size=6) | st.from_regex(r"\A\s?[+-]?[0-9]*\.?[0-9]*(e-?[0-9]{1,3})?\s?\Z"), max_size=20)
    )
    def test_any_text(self, texts):
        texts = [text for text in texts if text < "\ud800" or not any("\ud800" <= c <= "\udfff" for c in text)]
        table = pa.table({"x": pa.array(texts, pa.string())})
        numbers = list(dict.fromkeys([0, 1, 2, 5, 10, 0.5, *range(20, 25)]))
        schema = Schema({"x": [*numbers, "other"]}, other={"x": "other"})
        counts = exact(table, schema, [["x"]])
        assert_same(exact(duckdb_relation(table), schema, [["x"]]), counts)
        assert_same(exact(polars_lazy(table), schema, [["x"]]), counts)

    def test_many_states(self):
        states = [f"state {k}" for k in range(60)] + list(range(40))
        table = pa.table({"x": pa.array([str(states[k]) for k in range(0, 100, 7)])})
        schema = Schema({"x": states})
        for engine in (duckdb_relation, polars_lazy, ibis_duckdb):  # Dask makes tasks of every comparison: minutes
            assert_same(exact(engine(table), schema, [["x"]]), exact(table, schema, [["x"]]))

    def test_a_large_table_is_a_block_of_its_own(self):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({name: rng.integers(0, 40, 2000) for name in "abcd"})
        schema = Schema({name: list(range(40)) for name in "abcd"})
        scopes = [list("abcd"), ["d", "b"], ["c"]]
        assert_same(exact(duckdb.sql("SELECT * FROM frame"), schema, scopes), exact(frame, schema, scopes))

    def test_tables_inside_a_counted_one_cost_no_pass(self, tmp_path, monkeypatch):
        monkeypatch.setattr(reading_records, "MOST_KEPT", 0)
        frame = pd.DataFrame({name: [0, 1, 1] for name in "abc"})
        frame.to_parquet(tmp_path / "records.parquet")
        table = PrivateTable(tmp_path / "records.parquet", {name: [0, 1] for name in "abc"}, ledger=Budget(epsilon=1.0))
        contingency_tables(table, list(itertools.combinations("abc", 2)))
        (tmp_path / "records.parquet").unlink()
        (counts,) = contingency_tables(table, [["c", "b"]])
        assert counts.value.tolist() == [[1, 0], [0, 2]]
        with pytest.raises(OSError, match="was changed while it was in use"):
            shared_codes(table)[0]


AGES = interval_states([-1, 0.1, 25, 45])
INTERVALS = Schema(dict.fromkeys(("real", "whole", "text", "truth"), AGES))
edges = [-1.0, 0.1, 25.0, 45.0]
edges += [math.nextafter(cut, away) for cut in edges for away in (-math.inf, math.inf)] + [0.0, -0.0, 1e300]
odd_texts = [" 25 ", "+25.", "1e999", "-1e999", "true", "False", "nan", "25 years", "", None]
FIELDS = {
    "real": (pa.float64(), st.sampled_from([*edges, math.inf, -math.inf, math.nan, None]) | st.floats(-50, 90)),
    "whole": (pa.int64(), st.sampled_from([-2, -1, 0, 1, 24, 25, 26, 44, 45, 46, 2**62, None])),
    "text": (pa.string(), st.sampled_from([*map(repr, edges), *AGES, *odd_texts])),
    "truth": (pa.bool_(), st.sampled_from([True, False, None])),
}
ages = st.lists(st.fixed_dictionaries({name: cells for name, (_, cells) in FIELDS.items()}), max_size=12)


def interval_of(cell) -> int | None:
    """By the documentation: the state itself, or the interval of a number."""
    kind, *value = match_key(cell)
    if kind == "number":
        return sum(value[0] >= cut for cut in [-1, 0.1, 25, 45])
    return AGES.index(cell) if kind == "text" and cell in AGES else None


WHOLE = [
    Number(0, 120, resolution=1).fine(),
    Number(-3, 3, cuts=[-0.5, 0.5, 2], outside="drop"),
    Number(0, 2.0**62, cuts=[2.0 ** (k + 0.5) for k in range(50)], outside="state"),
    Number(0, 10**6, bins=64),
    Number(2.0**53, 2.0**53 + 6400, bins=8, outside="state"),
    Number(0, 9000, resolution=1, cuts=[1, 4500]),
]


class TestNumbers:
    @A_FIFTH
    @given(st.data())
    def test_integers_of_every_width(self, data):
        """Which queries look up, or put between cuts; sentinels before that."""
        bits, signed = data.draw(st.sampled_from([8, 16, 32, 64])), data.draw(st.booleans())
        lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        cells = st.integers(-5, 130) | st.integers(lowest, highest) | st.sampled_from([2**53 + 1, 9000, 2**62, 4500])
        whole = data.draw(st.lists(cells.filter(lambda cell: lowest <= cell <= highest) | st.none(), max_size=20))
        number = data.draw(st.sampled_from(WHOLE))
        schema = Schema({"x": number}, missing=[1, -2, 2**62], recode={"x": {3: number.upper, 100: None}})
        code = schema.coder("x")
        codes = [code(match_key(cell)) for cell in whole]
        table = pa.table({"x": pa.array(whole, getattr(pa, f"{'' if signed else 'u'}int{bits}")())})
        for made in (table, duckdb_relation(table), polars_lazy(table)):
            assert exact(made, schema, [["x"]])[0].tolist() == [codes.count(k) for k in range(len(number.states))]


class TestIntervals:
    def counts_of(self, table: pa.Table, name: str) -> list[int]:
        found = [interval_of(cell) for cell in table[name].to_pylist()]
        return [found.count(code) for code in range(len(AGES))]

    @A_FIFTH
    @given(ages)
    def test_numbers_are_counted_in_their_intervals(self, rows):
        table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in FIELDS.items()})
        for name in FIELDS:
            schema, expected = INTERVALS.subset([name]), self.counts_of(table, name)
            for data in (table, table.to_pandas(), pl.from_arrow(table), duckdb_relation(table), polars_lazy(table)):
                assert exact(data, schema, [[name]])[0].tolist() == expected

    @pytest.mark.parametrize("engine", [*ONE_DASK, "csv", "parquet"])
    def test_every_way_of_reading(self, engine, tmp_path):
        rng = np.random.default_rng(2)
        cells = {
            "real": [*edges, math.inf, -math.inf, math.nan, None],
            "whole": [-2, -1, 0, 1, 24, 25, 26, 44, 45, 46, None],
            "text": [*map(repr, edges), *AGES, " 25 ", "+25.", "1e999", "-1e999", "true", "False", "nan", "?", None],
            "truth": [True, False, None],
        }
        columns = {name: [values[k] for k in rng.integers(0, len(values), 500)] for name, values in cells.items()}
        table = pa.table({name: pa.array(column, FIELDS[name][0]) for name, column in columns.items()})
        if engine == "csv":
            table.to_pandas().replace({np.inf: "1e999", -np.inf: "-1e999"}).to_csv(tmp_path / "a.csv", index=False)
            data = tmp_path / "a.csv"
        elif isinstance(engine, str):
            data = tmp_path / "a.parquet"
            pq.write_table(table, data)
        else:
            data = engine(table)
        missing = Schema({name: [*AGES, None] for name in FIELDS}, other={"whole": None}, texts=FIELDS)
        for name in FIELDS:
            assert exact(data, INTERVALS.subset([name]), [[name]])[0].tolist() == self.counts_of(table, name)
            # With another state, the states are no intervals, and numbers are outside them.
            schema = missing.subset([name])
            assert_same(exact(data, schema, [[name]]), exact(table, schema, [[name]]))


NIGHT = [datetime.datetime(2020, 10, 25, 0, m, tzinfo=datetime.UTC) for m in (30, 45)]
NIGHT += [hour + datetime.timedelta(minutes=k) for hour in NIGHT for k in (40, 60, 61)]
odd_numbers = st.sampled_from([0.0, -0.0, 7.0, 8.5, float("nan"), float("inf"), -float("inf"), 1e300, None])
odd_texts = st.sampled_from(
    [
        "u",
        "U",
        "7",
        " 7e0 ",
        "7.00",
        "-0",
        "+0",
        "1e999",
        "nan",
        "true",
        " TRUE",
        "1",
        "",
        " ",
        "é",
        "e",
        "v\0",
        "v",
        None,
    ]
)
days = st.sampled_from([datetime.date(2020, 1, 2), datetime.date(1969, 5, 1), datetime.date(987, 1, 1), None])
VISITS = {
    "user": {
        "integer": (pa.int64(), st.sampled_from([1, 2, -1, 2**53, 2**53 + 1, None])),
        "number": (pa.float64(), odd_numbers),
        "text": (pa.string(), odd_texts),
        "truth": (pa.bool_(), st.sampled_from([True, False, None])),
        "decimal": (pa.decimal128(20, 2), st.sampled_from([decimal.Decimal("7.00"), decimal.Decimal("-0.01"), None])),
    },
    "t": {
        "whole": (pa.int64(), st.sampled_from([1, 2, -3, None])),
        "integer": (pa.uint64(), st.sampled_from([1, 2, 2**63, 2**63 + 1, None])),
        "number": (pa.float32(), odd_numbers.filter(lambda x: x != 1e300)),
        "text": (pa.string(), odd_texts),
        "day": (pa.date32(), days),
        "time": (
            pa.timestamp("us"),
            st.sampled_from(
                [NOON, MIDNIGHT, NOON + datetime.timedelta(microseconds=1), datetime.datetime(987, 1, 2), None]
            ),
        ),
        "second": (pa.timestamp("s"), st.sampled_from([NOON, MIDNIGHT, None])),
        # Clocks there show the second hour of that night twice.
        "zone": (pa.timestamp("us", "Europe/Berlin"), st.sampled_from([*NIGHT, None])),
    },
    "page": {
        "text": (pa.string(), st.sampled_from(["a", "b", "7", " 7.0", "?", "a ", "", None])),
        "integer": (pa.int32(), st.sampled_from([7, 8, 9, None])),
        "number": (pa.float64(), odd_numbers),
    },
}
NAMES = (pa.string(), st.sampled_from(["u1", "U1", "e", "7a", "e7", "1-1", "é", "", " ", None]))
PAGES = (pa.string(), st.sampled_from(["a", "b", "?", "a ", "", None]))
SEQUENCES = {
    "text": (
        pa.string(),
        st.one_of(
            st.none(),
            st.lists(
                st.sampled_from(
                    ["a", "b", "7", "7.0", "?", " ", ",", ", ", "::", ":", "\u2003", "]", "^", "\\", "]^\\", "None"]
                ),
                max_size=9,
            ).map("".join),
        ),
    ),
    "texts": (pa.list_(pa.string()), st.one_of(st.none(), st.lists(st.sampled_from(["a", "b", " 7 ", "?", "", None])))),
    "integers": (pa.list_(pa.int64()), st.one_of(st.none(), st.lists(st.sampled_from([7, 8, None])))),
    "number": (pa.float64(), odd_numbers),
    "truth": (pa.bool_(), st.sampled_from([True, False, None])),
}
STATES = [
    {"page": ["a", "b"]},
    {"page": ["a", 7, 1]},
    {"page": [None, "b", "a"]},
    Schema({"page": ["a", "other", None]}, other={"page": "other"}),
    {"page": ["<7.5", "[7.5,100)", ">=100"]},
]


def sums(data, columns=("x", "y", "z"), **options) -> list[np.ndarray]:
    vectors = PrivateVectors(data, list(columns), ledger=Budget(epsilon=1.0), **options)
    center = np.array([0.1, -3.0, 1 / 3])
    return [
        *(second_moments(vectors, c, norm).value for c, norm in ((center, 2.5), (0.0 * center, 1e-3))),
        *(centered_sums(vectors, c, norm).value for c, norm in ((center, 2.5), (0.0 * center, 1e9))),
        unit_count(vectors).value,
    ]


numbers = st.floats(-10, 10) | st.sampled_from([0.1, 1 / 3, 1e308, -1e308, 5e-324, math.inf, math.nan, None])


class TestMoments:
    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
    def test_whatever_the_records(self, rows):
        table = pa.table({name: pa.array([row[j] for row in rows], pa.float64()) for j, name in enumerate("xyz")})
        assert_same(sums(duckdb_relation(table)), sums(table))
        assert_same(sums(polars_lazy(table)), sums(table))

    @pytest.mark.parametrize("engine", ONE_DASK)
    def test_every_engine(self, engine):
        rng = np.random.default_rng(3)
        x = rng.normal(size=(20_000, 3)) * [0.1, 5, 1e3]
        table = pa.table({"x": x[:, 0], "y": x[:, 1].astype(np.float32), "z": np.round(x[:, 2]).astype(np.int64)})
        expected = sums(np.column_stack([table[name].to_numpy().astype(float) for name in "xyz"]))
        assert_same(sums(engine(table)), expected)
        assert expected[-1].item() == 20_000

    @pytest.mark.parametrize("engine", LAZY)
    def test_texts_truth_values_and_decimals_are_numbers_too(self, engine):
        x = pa.array(["1", " 2.5 ", "true", "zz", None, "1e400", "1_0", "٧"])
        y = pa.array([True, False, True, None, True, True, True, True])
        z = pa.array([decimal.Decimal(k) / 4 for k in range(8)], pa.decimal128(9, 2))
        table = pa.table({"x": x, "y": y, "z": z})
        assert_same(sums(engine(table)), sums(table))
        assert sums(table)[-1].item() == 3

    @pytest.mark.parametrize("engine", LAZY)
    def test_units_with_several_records(self, engine):
        rng = np.random.default_rng(4)
        x = rng.normal(size=(400, 3))
        unit = [[7, 8, "8.0", "u", None][k] for k in rng.integers(0, 5, 400)]
        unit = pa.array([None if u is None else str(u) for u in unit])
        table = pa.table({"x": x[:, 0], "y": x[:, 1], "z": x[:, 2], "unit": unit})
        assert_same(sums(engine(table), unit="unit"), sums(table, unit="unit"))
        assert sums(table, unit="unit")[-1].item() == 4  # "8" and "8.0" are two

    @pytest.mark.parametrize("engine", LAZY)
    def test_rows_are_fetched_for_learners_that_need_them(self, engine):
        x = np.random.default_rng(5).normal(size=(50, 3))
        x[3, 1] = np.nan
        table = pa.table(dict(zip("xyz", x.T, strict=True)))
        vectors = PrivateVectors(engine(table), ledger=Budget(epsilon=1.0))
        assert vectors.columns == ("x", "y", "z")
        assert np.array_equal(vector_rows(vectors)[0], np.delete(x, 3, axis=0))
        assert unit_count(vectors).value.item() == 49


class TestFiles:
    def frame(self) -> pd.DataFrame:
        rng = np.random.default_rng(6)
        return pd.DataFrame({"a": rng.integers(0, 3, 500), "b": rng.choice(["x", "y, z", 'say "x"', "'"], 500)})

    schema = Schema({"a": [0, 1, 2], "b": ["x", "y, z", 'say "x"', "'"]})

    @pytest.mark.parametrize("suffix", [".parquet", ".pq", ".csv", ".tsv", ".csv.gz", ".CSV"])
    @pytest.mark.parametrize("as_text", [True, False])
    def test_every_kind_of_file(self, tmp_path, suffix, as_text):
        path = tmp_path / f"it's [1] {{'records'}} *{suffix}"
        if suffix in (".parquet", ".pq"):
            self.frame().to_parquet(path)
        else:
            self.frame().to_csv(path, index=False, sep="\t" if "tsv" in suffix else ",", encoding="utf-8-sig")
        counts = exact(str(path) if as_text else path, self.schema, [["b", "a"]])
        assert_same(counts, exact(self.frame(), self.schema, [["b", "a"]]))
        assert counts[0].sum() == 500

    def test_patterns_and_lists(self, tmp_path):
        frame = self.frame()
        for k, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
            frame.iloc[part].to_parquet(tmp_path / f"part-{k}.parquet")
        expected = exact(frame, self.schema, [["b", "a"]])
        assert_same(exact(tmp_path / "part-*.parquet", self.schema, [["b", "a"]]), expected)
        assert_same(exact([tmp_path / f"part-{k}.parquet" for k in range(3)], self.schema, [["b", "a"]]), expected)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"", None),
            (b"a,b\n", [[0, 0], [0, 0]]),
            (b"a,b", [[0, 0], [0, 0]]),
            (b"\xef\xbb\xbfa,b\n0,x\n", [[1, 0], [0, 0]]),
            (b"a,b\r\n0,x\r\n1,y\r\n", [[1, 0], [0, 1]]),
            (b"b,a,c\nx,0,?\ny,1.0,\n", [[1, 0], [0, 1]]),
            (b"a,b\n0,x\n1\n\n0,\xff\n0,x,x\n1,y\n", [[1, 0], [0, 1]]),  # too short, empty, no UTF-8, too long
            (b'a,b\n0,x\n1,"y\n0,x', [[2, 0], [0, 1]]),  # an open quotation mark
            (b"a,b\n0,x\r1,y\n1,y\n", [[0, 0], [0, 1]]),  # no end of a line
            (b"a,b\n0,x\n" + b"z" * 5_000_000 + b",y\n1,y\n", [[1, 0], [0, 1]]),
            (b"a,b\n0,x\n" + b"1\x00,y\n1,y\n", [[1, 0], [0, 1]]),
        ],
    )
    def test_odd_text_files_are_read_in_silence(self, tmp_path, content, expected):
        path = tmp_path / "odd.csv"
        path.write_bytes(content)
        schema = {"a": [0, 1], "b": ["x", "y"]}
        if expected is None:
            with pytest.raises(ValueError, match="has no names"):
                exact(path, schema, [["a", "b"]])
        else:
            assert exact(path, schema, [["a", "b"]])[0].tolist() == expected

    @settings(max_examples=25, deadline=None)
    @given(
        st.lists(
            st.sampled_from([b"0", b"x", b",", b"\n", b'"', b"\r", b"\xff", b"\0", b" ", b'""', b"\\"]), max_size=40
        )
    )
    def test_no_bytes_make_it_fail_or_speak(self, tmp_path_factory, parts):
        path = tmp_path_factory.mktemp("bytes") / "any.csv"
        path.write_bytes(b"a,b\n" + b"".join(parts))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert exact(path, {"a": [0, 1], "b": ["x", "y"]}, [["a", "b"]])[0].shape == (2, 2)

    def test_an_empty_field_and_a_number_that_is_none_are_missing_and_nothing_else_is(self, tmp_path):
        path = tmp_path / "missing.csv"
        path.write_text('a,b\n,x\n"",x\nNA,x\nnan,x\nNULL,x\n')
        (counts,) = exact(path, {"a": [None, "NA", "NULL"], "b": ["x", "y"]}, [["a"]])
        assert counts.tolist() == [3, 1, 1]

    def test_public_mistakes_are_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet' names no file"):
            exact(tmp_path / "nowhere.parquet")
        (tmp_path / "a.csv").write_text("a,b\nsecret,x\n")
        with pytest.raises(ValueError, match=r"no column for the variables \['c'\]"):
            exact(tmp_path / "a.csv", {"c": [0, 1]}, [["c"]])
        with pytest.raises(ValueError, match=r"no column for the variables \['c'\]"):
            PrivateVectors(tmp_path / "a.csv", ["c"], ledger=Budget(epsilon=1.0))
        (tmp_path / "b.csv").write_text("a,a,A\n1,2,3\n")
        with pytest.raises(ValueError, match=r"several columns named \['a'\]"):
            exact(tmp_path / "b.csv", {"a": [0, 1]}, [["a"]])
        assert exact(tmp_path / "b.csv", {"A": [0, 3]}, [["A"]])[0].tolist() == [0, 1]
        with pytest.raises(ValueError, match=r"another header"):
            exact([tmp_path / "a.csv", tmp_path / "b2.csv"] if (tmp_path / "b2.csv").write_text("x,y\n") else [])
        (tmp_path / "a.parquet").write_text("secret")
        with pytest.raises(ValueError, match="is not a Parquet file") as caught:
            exact(tmp_path / "a.parquet")
        assert caught.value.__context__ is None
        (tmp_path / "a.xlsx").write_text("secret")
        with pytest.raises(ValueError, match=r"is not a \.csv"):
            exact(tmp_path / "a.xlsx")
        with pytest.raises(ValueError, match="of the kinds"):
            exact([tmp_path / "a.csv", tmp_path / "a.parquet"])

    def test_a_damaged_file_is_told_without_a_word_of_it(self, tmp_path):
        path = tmp_path / "damaged.parquet"
        pq.write_table(pa.table({"a": [f"secret {k}" for k in range(10_000)]}), path, use_dictionary=False)
        content = path.read_bytes()
        path.write_bytes(content[:4] + b"\xff" * (len(content) // 2) + content[4 + len(content) // 2 :])
        with pytest.raises(OSError, match="could not be read to its end") as caught:
            PrivateTable(path, {"a": ["secret 5", "y"]}, ledger=Budget(epsilon=1.0))
        assert caught.value.__context__ is None and caught.value.__cause__ is None and "secret" not in str(caught.value)

    @pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("s"), pa.list_(pa.timestamp("ms"))])
    def test_a_time_beyond_the_calendar_is_a_cell_like_any_other(self, kind, tmp_path):
        """DuckDB cannot read such a file to its end, in which it would tell of the record."""
        last = 2**62 if kind == pa.timestamp("ms") else 2**40
        cells = [[last], [0], None] if pa.types.is_list(kind) else [last, 0, None]
        table = pa.table({"t": pa.array(cells, kind), "a": ["x", "y", "y"]})
        pq.write_table(table, tmp_path / "times.parquet")
        schema = Schema({"t": ["1970-01-01", "?"], "a": ["x", "y"]}, other={"t": "?"})
        assert_same(*(exact(data, schema, [["t", "a"], ["a"]]) for data in (table, tmp_path / "times.parquet")))

    def test_gzip_and_a_header_longer_than_its_quotes(self, tmp_path):
        path = tmp_path / "x.csv.gz"
        path.write_bytes(gzip.compress(b'"a, or so",b\n0,x\n'))
        assert exact(path, {"a, or so": [0, 1], "b": ["x", "y"]}, [["a, or so"]])[0].tolist() == [1, 0]


SPELLED = [
    Schema({"page": Number(7, 9, bins=2, resolution=1, missing="drop", outside="state")}, missing=["?"]),
    Schema({"page": ["A", "7", None]}, strip=True, casefold=True, recode={"page": {"b": None}}),
]


class TestSequences:
    @pytest.mark.parametrize("engine", LAZY)
    @pytest.mark.parametrize("form", ["wide", "long"])
    @pytest.mark.parametrize("limits", [{}, {"segment_length": 2, "max_segments": 3}])
    def test_contributions_are_bounded_alike(self, engine, form, limits):
        rng = np.random.default_rng(7)
        user = pa.array([["u", "7", "7.0", None][k] for k in rng.integers(0, 4, 200)])
        if form == "wide":
            visits = ["a b b", "a", "", "b a ? a", None]
            table = pa.table({"user": user, "sequence": pa.array([visits[k] for k in rng.integers(0, 5, 200)])})
            options = {}
        else:
            table = pa.table({"user": user, "t": rng.permutation(200), "page": rng.choice(["a", "b", "?"], 200)})
            options = {"order": "t"}
        private = [
            PrivateSequences(data, {"page": ["a", "b"]}, ledger=Budget(epsilon=1.0), **options)
            for data in (table, engine(table))
        ]
        here, there = ([t.value for t in chain_tables(p, **limits, rng=np.random.default_rng(0))] for p in private)
        assert_same(here, there)
        assert here[1].sum() > 0

    @A_THIRD
    @given(data=st.data())
    def test_whatever_the_visits(self, data):
        """Users, times and states of every type, ties and odd cells among them."""
        kinds = {name: of[data.draw(st.sampled_from(sorted(of)), label=name)] for name, of in VISITS.items()}
        rows = data.draw(
            st.lists(st.fixed_dictionaries({name: cells for name, (_, cells) in kinds.items()}), max_size=12)
        )
        table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in kinds.items()})
        self.same(table, data, order="t")

    @A_THIRD
    @given(data=st.data())
    def test_whatever_the_sequences(self, data):
        unit = data.draw(st.sampled_from(sorted(VISITS["user"])))
        kind = data.draw(st.sampled_from(sorted(SEQUENCES)))
        rows = data.draw(st.lists(st.tuples(VISITS["user"][unit][1], SEQUENCES[kind][1]), max_size=8))
        user, sequence = zip(*rows, strict=True) if rows else ((), ())
        table = pa.table(
            {"user": pa.array(user, VISITS["user"][unit][0]), "sequence": pa.array(sequence, SEQUENCES[kind][0])}
        )
        self.same(table, data, separator=data.draw(st.sampled_from([None, ",", ", ", "::", "]^\\"])))

    def same(self, table, data, **options):
        """In memory, and from a file."""
        length = data.draw(st.sampled_from([None, 1, 2, 3]), label="segment_length")
        options = {"schema": data.draw(st.sampled_from([*STATES, *SPELLED])), "ledger": Budget(epsilon=1.0)} | options
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(table, f"{folder}/visits.parquet")
            here, there = (PrivateSequences(d, **options) for d in (table, f"{folder}/visits.parquet"))
            assert_same(*([t.value for t in chain_tables(part, length)] for part in (here, there)))

    @pytest.mark.parametrize("engine", [duckdb_relation, polars_lazy, ibis_duckdb])
    @settings(max_examples=15)
    @given(data=st.data())
    def test_rows_of_an_engine_have_no_order(self, engine, data):
        """Those that tie are in the order of the states, whatever order they come in."""
        names = [] if engine is ibis_duckdb else [NAMES]
        kinds = {
            "user": data.draw(st.sampled_from([VISITS["user"]["integer"], *names])),
            "t": VISITS["t"][
                data.draw(st.sampled_from(["whole", "day", "time", "zone", *["number"] * (engine is polars_lazy)]))
            ],
            "page": data.draw(st.sampled_from([VISITS["page"]["integer"], PAGES])),
        }
        rows = data.draw(
            st.lists(st.fixed_dictionaries({name: cells for name, (_, cells) in kinds.items()}), max_size=12)
        )
        table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in kinds.items()})
        length = data.draw(st.sampled_from([None, 1, 2, 3]), label="segment_length")
        schema = Schema.coerce(data.draw(st.sampled_from(STATES), label="schema"))
        code = key_coder(schema, "page")
        by_state = sorted(range(len(rows)), key=lambda k: code(match_key(rows[k]["page"])))
        options = {"schema": schema, "order": "t", "ledger": Budget(epsilon=1.0)}
        in_order = table.take(pa.array(by_state, pa.int64()))
        here, there = (PrivateSequences(d, **options) for d in (in_order, engine(table)))
        assert_same(*([t.value for t in chain_tables(part, length)] for part in (here, there)))

    def test_moments_are_in_the_order_in_which_they_happen(self):
        """When clocks are set back, texts of the time are in another order."""
        for kind in (pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns", "Europe/Berlin")):
            table = pa.table({"user": [1] * len(NIGHT), "t": pa.array(NIGHT, kind), "page": [0, 2, 1, 3, 4, 0, 5, 6]})
            order = np.argsort(NIGHT, kind="stable")
            pages = np.array(table["page"])[order].tolist()
            for data in (table, table.to_pandas(), pl.from_arrow(table)):
                private = PrivateSequences(data, {"page": list(range(7))}, order="t", ledger=Budget(epsilon=1.0))
                pairs = chain_tables(private)[1].value
                found = zip(*map(list, pairs.nonzero()), strict=True)
                assert sorted(found) == sorted(itertools.pairwise(pages))

    @pytest.mark.parametrize("engine", [duckdb_relation, polars_lazy, ibis_duckdb])
    @pytest.mark.parametrize(
        ("kind", "last"),
        [
            (pa.date32(), 2**31 - 5),
            (pa.timestamp("us"), 2**63 - 2),
            (pa.timestamp("us", "UTC"), 2**63 - 2),
            (pa.timestamp("ms"), 2**62),
            (pa.timestamp("s"), 2**62),
        ],
    )
    def test_times_beyond_the_calendar_raise_nothing(self, engine, kind, last):
        table = pa.table({"user": [1] * 4, "t": pa.array([last, -last, 0, None], kind), "page": ["a", "b", "a", "b"]})
        options = {"schema": {"page": ["a", "b"]}, "order": "t", "ledger": Budget(epsilon=1.0)}
        here, there = (PrivateSequences(data, **options) for data in (table, engine(table)))
        assert_same(*([t.value for t in chain_tables(part)] for part in (here, there)))

    def test_users_are_not_told_apart_by_casts_of_sqlite(self, tmp_path):
        """It would make the number 0 of both."""
        with sqlite3.connect(tmp_path / "visits.sqlite") as connection:
            connection.execute("CREATE TABLE visits (user INTEGER, t INTEGER, page TEXT)")
            rows = [("abc", 1, "a"), ("abc", 2, "a"), ("def", 3, "b"), ("def", 4, "b")]
            connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        connection.close()
        table = ibis.sqlite.connect(tmp_path / "visits.sqlite").table("visits")
        private = PrivateSequences(table, {"page": ["a", "b"]}, order="t", ledger=Budget(epsilon=1.0))
        assert [t.value.tolist() for t in chain_tables(private)] == [[GRID, GRID], [[GRID, 0], [0, GRID]]]

    def test_a_database_s_collation_does_not_make_two_users_one(self, tmp_path):
        """Each of two users adds a share of one, which one with both their visits would have for itself."""
        with sqlite3.connect(tmp_path / "visits.sqlite") as connection:
            connection.execute("CREATE TABLE visits (user TEXT COLLATE NOCASE, t INTEGER, page TEXT)")
            rows = [("u", 1, "a"), ("u", 2, "a"), ("U", 3, "b"), ("U", 4, "b")]
            connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        connection.close()
        table = ibis.sqlite.connect(tmp_path / "visits.sqlite").table("visits")
        private = PrivateSequences(table, {"page": ["a", "b"]}, order="t", ledger=Budget(epsilon=1.0))
        assert [t.value.tolist() for t in chain_tables(private)] == [[GRID, GRID], [[GRID, 0], [0, GRID]]]

    @pytest.mark.parametrize(
        ("name", "column"),
        [
            ("t", pa.array([datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31), NOON], pa.timestamp("us"))),
            ("t", pa.array([-(10**18), 10**18, 0], pa.timestamp("us", "UTC"))),
            ("t", pa.array([2**31 - 5, -(2**31) + 5, 0], pa.date32())),
            ("t", pa.array([NOON, MIDNIGHT, None], pa.timestamp("ns"))),
            ("t", pa.array([3, 2, 1], pa.duration("s"))),
            ("t", pa.array([3.0, math.nan, 1.0])),
            ("page", pa.array([3.0, math.nan, 1.0])),
            ("user", pa.array([[1], [1], [2]])),
            ("page", pa.array([["a"], ["a"], ["b"]])),
        ],
    )
    def test_columns_of_other_types(self, name, column, tmp_path):
        table = pa.table({"user": [1, 1, 1], "t": [3, 1, 2], "page": ["a", "b", "b"]})
        table = table.set_column(table.column_names.index(name), name, column)
        pq.write_table(table, tmp_path / "visits.parquet")
        options = {"schema": {"page": ["a", "b"]}, "order": "t", "ledger": Budget(epsilon=1.0)}
        here, there = (PrivateSequences(d, **options) for d in (table, tmp_path / "visits.parquet"))
        assert_same(*([t.value for t in chain_tables(part)] for part in (here, there)))

    def test_from_a_file(self, tmp_path):
        frame = pd.DataFrame({"user": [1, 2, 1], "t": [9, 1, 8], "page": ["b", "a", "?"]})
        frame.to_csv(tmp_path / "visits.csv", index=False)
        options = {"schema": {"page": ["a", "b"]}, "order": "t", "ledger": Budget(epsilon=1.0)}
        tables = [chain_tables(PrivateSequences(data, **options)) for data in (frame, tmp_path / "visits.csv")]
        assert_same(*([table.value for table in part] for part in tables))


class TestEstimators:
    def test_a_fit_from_a_file_is_the_fit_from_memory(self, tmp_path):
        rng = np.random.default_rng(8)
        a = rng.integers(0, 2, 1000)
        frame = pd.DataFrame({"a": a, "b": (a + (rng.random(1000) < 0.2)) % 2, "c": rng.integers(0, 3, 1000)})
        frame.to_csv(tmp_path / "records.csv", index=False)
        states = {"a": [0, 1], "b": [0, 1], "c": [0, 1, 2]}
        fits = [
            PrivateChowLiu(epsilon=1.0, state_names=states, random_state=0).fit(data)
            for data in (frame, tmp_path / "records.csv", str(tmp_path / "records.csv"))
        ]
        assert len({frozenset(map(frozenset, fit.graph_.edges)) for fit in fits}) == 1
        assert fits[0].release_.values[0].tolist() == fits[1].release_.values[0].tolist()

    def test_the_fit_holds_no_path(self, tmp_path):
        frame = pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1] * 50})
        frame.to_parquet(tmp_path / "secret_name.parquet")
        graph = __import__("networkx").Graph([("a", "b")])
        fit = NaiveMLE(epsilon=1.0, state_names={"a": [0, 1], "b": [0, 1]}, random_state=0)
        fit.fit(graph, tmp_path / "secret_name.parquet")
        assert b"secret_name" not in pickle.dumps(fit) and "secret_name" not in repr(fit)

    def test_numbers_from_a_file(self, tmp_path):
        x = np.random.default_rng(9).normal(size=(500, 3))
        frame = pd.DataFrame(x, columns=list("xyz"))
        frame.to_parquet(tmp_path / "numbers.parquet")
        options = {"epsilon": 1.0, "delta": 1e-6, "row_norm": 4.0, "random_state": 0}
        here, there = (PrivateGraphicalLasso(**options).fit(data) for data in (frame, tmp_path / "numbers.parquet"))
        assert np.array_equal(here.precision_, there.precision_)


class TestSilence:
    @pytest.mark.parametrize("engine", LAZY)
    def test_no_warning_and_no_line_of_a_log(self, engine, caplog, capfd):
        with caplog.at_level(logging.DEBUG, logger="pgmpy_dp"), warnings.catch_warnings():
            warnings.simplefilter("error")
            exact(engine(arrow(many_rows(50))))
        written = capfd.readouterr()
        assert not caplog.records and not written.out and not written.err

    def test_a_table_over_a_file_shows_and_pickles_nothing(self, tmp_path):
        path = tmp_path / "secret_name.csv"
        path.write_text("a\n0\n1\n")
        for private in (
            PrivateTable(path, {"a": [0, 1]}, ledger=Budget(epsilon=1.0)),
            PrivateVectors(path, ledger=Budget(epsilon=1.0)),
        ):
            assert "secret" not in repr(private)
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                pickle.dumps(private)

    def test_nothing_is_written_beside_the_file_or_for_temporary_use(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        pd.DataFrame({"a": [0, 1] * 5000}).to_csv("records.csv", index=False)
        table = PrivateTable("records.csv", {"a": [0, 1]}, ledger=Budget(epsilon=1.0))
        contingency_tables(table, [["a"]]), shared_codes(table)[0]
        assert [path.name for path in tmp_path.iterdir()] == ["records.csv"]

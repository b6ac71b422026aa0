"""Encoding: equal to a naive twin, the same from every engine, and deaf to what other records hold."""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import warnings

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp.private.data.contingency import count
from pgmpy_dp.private.reading.frames import encode
from pgmpy_dp.schema import Number, Schema, match_key

SCHEMA = Schema({"num": [0, 1, 2], "text": ["a", "b", "7"]}, other={"text": "b"})


def naive_encode(rows: list[dict], schema: Schema) -> list[list[int]]:
    """Row by row, value by value, by the words of the documentation."""
    kept = []
    for row in rows:
        codes: list[int] = []
        for name in schema:
            matches = [k for k, state in enumerate(schema[name]) if match_key(state) == match_key(row[name])]
            if not matches and name in schema.other:
                matches = [schema[name].index(schema.other[name])]
            codes += matches
        if len(codes) == len(schema):
            kept.append(codes)
    return kept


class Hostile:
    """A value on which everything fails."""

    def __str__(self):
        raise RuntimeError("a secret")

    __repr__ = __eq__ = __hash__ = __bool__ = __float__ = __str__


class Impostor:
    """Equal to 1 and hashed like it, yet something else."""

    def __eq__(self, other):
        return other == 1

    def __hash__(self):
        return hash(1)

    def __str__(self):
        return "impostor"


class Talkative:
    """A value that warns when it is looked at."""

    def __str__(self):
        warnings.warn("a secret", stacklevel=2)
        return "talkative"


ODD = [
    *(None, math.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s"), decimal.Decimal("nan"), decimal.Decimal("sNaN")),
    *(
        "stray",
        "",
        " ",
        "nan",
        b"a",
        b"\xff",
        "1e999",
        10**400,
        -(10**400),
        2**63,
        2**64,
        1.5,
        -1,
        math.inf,
        1j,
        1 + 0j,
    ),
    *(
        [1],
        [],
        (1,),
        {},
        {1},
        {"a": 1},
        object(),
        Hostile(),
        Impostor(),
        Talkative(),
        datetime.date(2020, 1, 1),
        np.arange(3),
    ),
    *(pd.Timestamp("2020-01-01", tz="UTC"), pd.Interval(0, 1), np.float32(0.1), decimal.Decimal("0.1"), True, "1.0"),
]
cells = st.one_of(
    st.integers(-1, 3),
    st.sampled_from(["a", "b", "7", "c", "0", "1.0", None]),
    st.sampled_from([odd for odd in ODD if not isinstance(odd, Hostile)]),
)


class TestAgainstTheNaiveTwin:
    @given(st.lists(st.fixed_dictionaries({"num": cells, "text": cells}), max_size=8))
    def test_objects(self, rows):
        frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in SCHEMA})
        assert encode(frame, SCHEMA).tolist() == naive_encode(rows, SCHEMA)

    @given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
    def test_whatever_pandas_infers(self, rows):
        frame = pd.DataFrame({name: pd.Series([row[k] for row in rows]) for k, name in enumerate(SCHEMA)})
        as_inferred = [dict(zip(SCHEMA, row, strict=True)) for row in zip(*(frame[n] for n in SCHEMA), strict=True)]
        assert encode(frame, SCHEMA).tolist() == naive_encode(as_inferred, SCHEMA)

    @given(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 4)), max_size=20),
        st.permutations([0, 1, 2]),
        st.integers(1, 3),
    )
    def test_counts(self, rows, order, width):
        codes, columns = np.array(rows, dtype=np.uint8).reshape(-1, 3), order[:width]
        table = count(codes, [4, 3, 5], columns)
        naive = np.zeros([[4, 3, 5][j] for j in columns], dtype=np.int64)
        for row in rows:
            naive[tuple(row[j] for j in columns)] += 1
        assert np.array_equal(table, naive) and table.dtype == np.int64

    def test_counts_of_large_tables_do_not_overflow_the_code_type(self):
        codes = np.full((3, 4), 199, dtype=np.uint8)
        table = count(codes, [200] * 4, [0, 1, 2])
        assert table[199, 199, 199] == 3 and table.sum() == 3
        assert [count(codes, [200] * 4, scope).shape for scope in [(0,), (3, 1)]] == [(200,), (200, 200)]


class TestOneRecordNeverChangesAnother:
    """The trap of column types: 1, 1.0 and "1" are what one column of integers becomes next to odd neighbours."""

    schemas = (
        Schema({"x": [0, 1, 2]}),
        Schema({"x": ["0", "1", "2"]}),
        Schema({"x": [0.0, 1.0, 2.0]}),
        Schema({"x": [None, False, True]}),
        Schema({"x": ["1", "a"]}, other={"x": "a"}),
    )
    columns = ([1, 0, 2, 1], [True, False, True], [1.0, 0.0, 0.5], ["1", "a", "0"], [(1, 2), "a"], [b"1", 1])

    @staticmethod
    def inferred(values: list) -> pd.Series:
        """Of the type that pandas finds; pandas 2.2 fails on integers beyond floats instead of taking objects."""
        try:
            return pd.Series(values)
        except OverflowError:
            return pd.Series(values, dtype=object)

    @classmethod
    @functools.cache
    def odd_ones(cls, number: int) -> list:
        """Each odd record in a table of its own, by one of the schemas."""
        schema = cls.schemas[number]
        return [encode(pd.DataFrame({"x": pd.Series([odd], dtype=object)}), schema).tolist() for odd in ODD]

    @pytest.mark.parametrize("number", range(len(schemas)))
    @pytest.mark.parametrize("column", columns)
    def test_an_odd_record_before_or_after(self, number, column):
        schema = self.schemas[number]
        alone = encode(pd.DataFrame({"x": pd.Series(column)}), schema).tolist()
        for odd, own in zip(ODD, self.odd_ones(number), strict=True):
            assert encode(pd.DataFrame({"x": self.inferred([*column, odd])}), schema).tolist() == alone + own
            assert encode(pd.DataFrame({"x": self.inferred([odd, *column])}), schema).tolist() == own + alone

    def test_widths_of_codes_depend_on_the_schema_alone(self):
        schema = Schema({"x": range(300), "y": range(2)})
        assert encode(pd.DataFrame({"x": [0], "y": [0]}), schema).dtype == np.uint16
        assert encode(pd.DataFrame({"x": [], "y": []}), schema).dtype == np.uint16
        assert encode(pd.DataFrame({"y": [0]}), schema.subset(["y"])).dtype == np.uint8

    def test_silence(self, capfd, caplog):
        frame = pd.DataFrame({"x": pd.Series(ODD, dtype=object)})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for schema in self.schemas:
                encode(frame, schema)
        assert not caught and not caplog.records
        assert capfd.readouterr() == ("", "")


ROWS = [(0, "a"), (1, "7"), (2, "b"), (5, "a"), (1, "zzz"), (2, None), (None, "a"), (1, "a")]
EXPECTED = [[0, 0], [1, 2], [2, 1], [1, 1], [2, 1], [1, 0]]


def engines():
    numbers, texts = zip(*ROWS, strict=True)
    frame = pd.DataFrame({"text": texts, "num": numbers, "unread": [object()] * len(ROWS)})[["text", "num"]]
    polars = pl.DataFrame({"num": numbers, "text": texts})
    arrow = polars.to_arrow()
    dictionary = pa.table({"num": arrow["num"], "text": arrow["text"].cast(pa.string()).dictionary_encode()})
    yield "pandas", frame
    yield "pandas objects", frame.astype(object)
    yield "pandas categorical", frame.astype("category")
    yield (
        "pandas ordered categorical",
        frame.astype({"text": pd.CategoricalDtype(["zzz", "b", "a", "7"], ordered=True)}),
    )
    yield "pandas nullable", frame.convert_dtypes()
    yield "pandas on pyarrow", frame.convert_dtypes(dtype_backend="pyarrow")
    yield "pandas numbers as text", frame.assign(num=[None if n is None else f"{n}.0" for n in numbers])
    yield "pandas with an odd index", frame.set_index(pd.Index([7] * len(ROWS)))
    yield "pandas decimals", frame.assign(num=[None if n is None else decimal.Decimal(n) for n in numbers])
    yield "polars", polars
    yield "polars lazy", polars.lazy()
    yield "polars categorical", polars.with_columns(pl.col("text").cast(pl.Categorical))
    yield "polars enum", polars.with_columns(pl.col("text").cast(pl.Enum(["zzz", "7", "b", "a"])))
    yield "polars small and unsigned", polars.with_columns(pl.col("num").cast(pl.UInt8))
    yield "polars wide", polars.with_columns(pl.col("num").cast(pl.Int128))
    yield "polars float32", polars.with_columns(pl.col("num").cast(pl.Float32))
    yield "polars decimal", polars.with_columns(pl.col("num").cast(pl.Decimal(10, 2)))
    yield "polars objects", pl.DataFrame({"num": pl.Series(numbers, dtype=pl.Object), "text": texts})
    yield "pyarrow", arrow
    yield "pyarrow dictionary", dictionary
    yield "pyarrow chunked", pa.concat_tables([arrow.slice(0, 3), arrow.slice(3)])
    yield "duckdb", duckdb.sql("select text, num::bigint as num from arrow")
    yield "duckdb small", duckdb.sql("select text, num::utinyint as num from arrow")


class TestEngines:
    @pytest.mark.parametrize("name", [name for name, _ in engines()])
    def test_same_codes(self, name):
        assert encode(dict(engines())[name], SCHEMA).tolist() == EXPECTED

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pl.LazyFrame(d), lambda d: pa.table(d)])
    def test_booleans_with_nulls(self, make):
        frame = make({"x": [True, None, False]})
        assert encode(frame, Schema({"x": [True, False]})).tolist() == [[0], [1]]
        assert encode(frame, Schema({"x": [0, 1]})).tolist() == [[1], [0]]
        assert encode(frame, Schema({"x": [False, None, True]})).tolist() == [[2], [1], [0]]

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pa.table(d)])
    def test_dates_and_lists(self, make):
        dates = make({"x": [datetime.date(2020, 1, 1), None, datetime.date(2020, 1, 2)]})
        assert encode(dates, Schema({"x": ["2020-01-02", "2020-01-01"]})).tolist() == [[1], [0]]
        lists = make({"x": [[1, 2], None, [3, 4]]})
        assert encode(lists, Schema({"x": [(1, 2), (3, 4), None]})).tolist() == [[0], [2], [1]]
        # All of one length: must not become a matrix.
        assert encode(make({"x": [[3, 4], [1, 2]]}), Schema({"x": [(1, 2), (3, 4)]})).tolist() == [[1], [0]]

    def test_states_in_another_order_only_permute_the_codes(self):
        frame = pd.DataFrame({"x": pd.Categorical(["b", "a", "c", "b"], categories=["c", "b", "a"])})
        codes = encode(frame, Schema({"x": ["a", "b", "c"]}))[:, 0]
        assert codes.tolist() == [1, 0, 2, 1]
        assert [["c", "a", "b"][k] for k in encode(frame, Schema({"x": ["c", "a", "b"]}))[:, 0]] == ["b", "a", "c", "b"]

    @pytest.mark.parametrize("empty", [[], [None], ["outside"]])
    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pl.LazyFrame(d), lambda d: pa.table(d)])
    def test_no_records_or_none_inside(self, make, empty):
        codes = encode(make({"x": empty, "y": [0] * len(empty)}), Schema({"x": ["a", "b"], "y": [0, 1]}))
        assert codes.shape == (0, 2)
        assert count(codes, [2, 2], [0, 1]).tolist() == [[0, 0], [0, 0]]

    def test_names_that_are_not_text(self):
        schema = Schema({0: ["a", "b"], ("t", 1): ["a", "b"]})
        frame = pd.DataFrame([["a", "b"]], columns=pd.Index([0, ("t", 1)], tupleize_cols=False))
        assert encode(frame, schema).tolist() == [[0, 1]]
        assert encode(pd.DataFrame({0: ["b"]}), schema.subset([0])).tolist() == [[1]]
        # Engines whose names are text.
        assert encode(pl.DataFrame({"0": ["b"], "('t', 1)": ["a"]}), schema).tolist() == [[1, 0]]

    def test_same_counts_on_a_larger_table(self):
        rng = np.random.default_rng(5)
        frame = pd.DataFrame({"num": rng.integers(0, 4, 5000), "text": rng.choice(["a", "b", "7", "x"], 5000)})
        arrow = pa.table(frame)
        tables = [
            count(encode(data, SCHEMA), [3, 3], [0, 1])
            for data in (frame, pl.from_pandas(frame), arrow, duckdb.sql("select * from arrow"))
        ]
        inside = frame[frame.num < 3]
        naive = pd.crosstab(inside.num, inside.text.replace("x", "b"))[["a", "b", "7"]].to_numpy()
        assert all(np.array_equal(table, naive) for table in tables)


class TestRefusals:
    def test_missing_columns_are_listed(self):
        for frame in (pd.DataFrame({"num": [1]}), pl.LazyFrame({"num": [1]}), pa.table({"num": [1]})):
            with pytest.raises(ValueError, match=r"no column for \['text'\].*has the columns \['num'\]: rename"):
                encode(frame, SCHEMA)

    def test_repeated_columns(self):
        frame = pd.DataFrame([[1, 2, 3]], columns=["x", "x", "y"])
        with pytest.raises(ValueError, match=r"several columns named \['x'\]; rename or remove"):
            encode(frame, Schema({"x": [0, 1]}))
        assert encode(frame, Schema({"y": [0, 3]})).tolist() == [[1]]
        arrow = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
        with pytest.raises(ValueError, match="several columns"):
            encode(arrow, Schema({"x": [0, 1]}))

    def test_two_variables_in_one_column(self):
        with pytest.raises(ValueError, match=r"several variables of the schema would read the column \['0'\]"):
            encode(pl.DataFrame({"0": [1]}), Schema({0: [0, 1], "0": [0, 1]}))

    @pytest.mark.parametrize("data", [{"x": [1]}, [[1]], np.zeros((2, 1)), None, pd.Series([1]), 3])
    def test_other_types(self, data):
        with pytest.raises(TypeError, match=r"data is a .*, not a dataframe; pass a pandas, polars or pyarrow table"):
            encode(data, Schema({"x": [0, 1]}))

    def test_numeric_variables(self):
        with pytest.raises(ValueError, match=r"declares bounds for \['x'\]"):
            encode(pd.DataFrame({"x": [0.5]}), Schema({"x": Number(0, 1)}))

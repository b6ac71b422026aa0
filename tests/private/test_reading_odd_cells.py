"""Every reader counts cell by cell, whatever other cells are: exact counts of neighbours, and of the slow reader."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pgmpy_dp import Budget, Schema
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.linked_tables import PrivateLinkedTables
from pgmpy_dp.private.data.columns import PrivateColumns, _counts
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.data.vectors import PrivateVectors, vector_rows
from pgmpy_dp.private.reading.arrow_cells import cells_of_objects, in_order
from pgmpy_dp.private.reading.owners import identity
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.private.reading.variables import Variable
from pgmpy_dp.schema import match_key
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_tables
from tests.private.odd_cells import (
    CASES,
    CUTS,
    OTHER,
    READERS,
    Case,
    cases_of,
    data_of,
    datasets,
    of_codes,
    read_otherwise,
    slowly,
)

BUDGET = {"ledger": Budget(epsilon=1.0)}


class Compared(type):
    def __eq__(cls, other):  # and no hash
        return cls is other


class Unhashable(metaclass=Compared):
    pass


class Panic(BaseException):
    """As engines in Rust have one."""


class Panicking:
    def __str__(self):
        raise Panic("a record's own words")


class PanickingClass:
    @property
    def __class__(self):
        raise Panic("a record's own words")


def counts(data, schema: Schema) -> list[list[int]]:
    tables = contingency_tables(PrivateTable(data, schema, **BUDGET), [[name] for name in schema])
    return [table.value.tolist() for table in tables]


def numbers(data) -> list[float]:
    return sorted(vector_rows(PrivateVectors(data, ["x0"], **BUDGET))[0][:, 0].tolist())


def users(data) -> float:
    private = PrivateSequences(data, {"y": ["u", "v"]}, unit="x0", order="t", **BUDGET)
    return chain_tables(private)[0].value.sum() / GRID


def marked(data, codes: bool = False) -> Counter:
    return plain(_counts(PrivateColumns(data, Schema({"x0": ["a", "b"]}, codes=codes), **BUDGET), "x0"))


def plain(keys) -> Counter:
    """Of those that can be categories."""
    return Counter({key: n for key, n in Counter(keys).items() if key[0] in ("missing", "number", "text")})


def schemas(case: Case) -> list[Schema]:
    """Those that say how cells are read, one that counts every record, and those of intervals."""
    named = {f"x{k}": states for k, states in enumerate(case.states) if states != CUTS}
    complete = Schema({name: [*states, OTHER] for name, states in named.items()}, other=dict.fromkeys(named, OTHER))
    intervals = [Schema({f"x{k}": CUTS}) for k in range(len(case.states)) if case.states[k] == CUTS]
    otherwise, *dropping = read_otherwise(case.states[0])
    if not case.is_spelled:
        dropping = [dropping[len(case.name) % 3]]  # one of them, for time
    return [otherwise, *dropping, complete, *intervals, of_codes(case)]


def read_by_type(data, asked: list[Schema]) -> list[Schema]:
    """The schemas with numbers, or of codes, where the declared type of the column is refused for them."""
    source, refused = open_source(data), []
    for schema in asked:
        try:
            source.require_types(schema)
        except ValueError:
            refused.append(schema)
    return refused


@pytest.mark.parametrize("readers", ["in turns", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_cell_decides_for_itself(case: Case, readers: str, tmp_path, capfd):
    """Every reader reads the column alone and each cell more; or a third of them the column, one of twelve a cell."""
    base: dict[str, list] = {}
    asked, own = schemas(case), CASES.index(case) + 1  # by one more, every reader reads some odd cell
    third = 1 if case.array is None else 3  # objects and DuckDB have few readers
    for number, cells in enumerate(datasets(case)):
        keys = [match_key(case.meant(cell)) for cell in cells]
        finite = sorted(key[1] for key in keys if key[0] == "number" and math.isfinite(key[1]))
        expected = [slowly(case, cells, schema) for schema in asked]
        # Steps of three: who reads a cell more has read the column.
        turn = (own + third * number, 12 if number else third) if readers == "in turns" else (0, 1)
        for reader, data in data_of(case, cells, tmp_path, *turn):
            capfd.readouterr()  # what was said while the data were made
            refused = read_by_type(data, asked)
            found = [None if schema in refused else counts(data, schema) for schema in asked]
            wanted = [None if schema in refused else table for schema, table in zip(asked, expected, strict=True)]
            assert found == wanted, reader
            assert any(schema.numbers for schema in refused) or numbers(data) == finite, reader
            assert marked(data) == plain(keys), reader
            codes = [match_key(case.meant(cell), "code") for cell in cells]
            assert asked[-1] in refused or marked(data, codes=True) == plain(codes), reader
            assert users(data) == len({identity(case.meant(cell)) for cell in cells} - {None}), reader
            assert capfd.readouterr() == ("", ""), reader
            if number == 0:
                base[reader] = found
            elif reader in base:
                assert [one is None for one in base[reader]] == [one is None for one in found], reader
                both = ((one, two) for one, two in zip(base[reader], found, strict=True) if one is not None)
                tables = (pair for one in both for pair in zip(*one, strict=True))
                assert all(np.abs(np.subtract(*pair)).sum() <= 1 for pair in tables), reader
    assert base


def columns_of(case: Case, cells: list) -> list[list]:
    """Batches that hold these cells: whole, cut, with an offset, with a dictionary; or objects."""
    if case.array is None:
        return [[cells_of_objects(cells)], [cells_of_objects(cells[:7]), cells_of_objects(cells[7:])]]
    array = case.array(cells)
    made = [[array], [array[:7], array[7:]], [pa.concat_arrays([array[:3], array])[3:]]]
    with contextlib.suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        made.append([array.dictionary_encode()[:7], array[7:].dictionary_encode()])
    return made


def test_no_cell_moves_the_code_of_another():
    """Two thousand pairs of neighbours, by the codes of a column; the tests beside go through tables of fewer."""
    pairs = 0
    for case in CASES:
        if case.sql is not None:
            continue
        half = len(case.cells) // 2
        whole = columns_of(case, case.cells)
        asked = schemas(case)
        variables = [Variable(schema, name) for schema in (asked[0], asked[-1]) for name in schema]
        expected = [variable.marks(whole[0][0]) for variable in variables]
        for extra, place in itertools.product(case.extras, (0, 1, half, len(case.cells) - 1, len(case.cells))):
            for batches in columns_of(case, [*case.cells[:place], extra, *case.cells[place:]]):
                pairs += 1
                for variable, marks in zip(variables, expected, strict=True):
                    found = np.concatenate([variable.marks(column) for column in batches])
                    assert np.array_equal(np.delete(found, place), marks), (case, extra, place)
    assert pairs >= 2000


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_has_its_cases(reader: str, tmp_path):
    assert len(cases_of(reader, tmp_path)) >= READERS[reader][1]


def test_a_long_text_takes_the_memory_of_one_long_text():
    """As an array of NumPy of texts it took four bytes a sign, for every record."""
    frame = pl.DataFrame({"x": ["a"] * 300 + ["b" * 1_000_000]})
    tracemalloc.start()
    try:
        assert counts(frame, Schema({"x": ["a", "b"]})) == [[300, 0]]
        assert tracemalloc.get_traced_memory()[1] < 2e7  # 1.2e9 with the array
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (datetime.timedelta(days=1, hours=2, microseconds=500_000), np.timedelta64(93_600_500, "ms"), "P1DT2H0.5S"),
        (pd.Timedelta(-1, "ns"), np.timedelta64(-1, "ns"), "-PT0.000000001S"),
        (datetime.timedelta(0), np.timedelta64(0, "W"), "PT0S"),
        (datetime.datetime(2020, 1, 1), np.datetime64("2020"), "2020-01-01"),
        (datetime.date(2020, 1, 1), np.datetime64("2020-01", "M"), "2020-01-01"),
        (pd.Timestamp("2020-01-01T00:00:00.000000001"), np.datetime64(1577836800000000001, "ns"), None),
        (pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), datetime.datetime(2019, 12, 31, 15, tzinfo=datetime.UTC), None),
    ],
)
def test_a_time_is_its_nanoseconds(one, other, text):
    assert match_key(one) == match_key(other)
    assert match_key(one)[0] == "text"
    assert text is None or match_key(one) == match_key(text)


@pytest.mark.parametrize(
    "cell",
    [
        np.timedelta64(1, "M"),
        np.timedelta64(1, "Y"),
        np.timedelta64(2**62, "s"),
        np.datetime64(2**62, "s"),
        np.datetime64(-(2**40), "Y"),
        np.datetime64(1, "as"),
        datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=1))),
    ],
)
def test_times_without_a_length_or_a_year_are_unreadable(cell):
    assert match_key(cell) == match_key(b"\xff") == ("unreadable",)


def test_durations_are_in_the_order_of_their_length():
    """Whose texts are not: "P10D" is before "P9D"."""
    days = [datetime.timedelta(days=day) for day in (10, 9, 100)]
    for data in (pd.DataFrame({"x": days}), pl.DataFrame({"x": days}), pa.table({"x": days})):
        columns = [column for [column] in open_source(data).batches(["x"])]
        assert in_order(columns, np.arange(3)).tolist() == [1, 0, 2]


@pytest.mark.parametrize("kind", ["Unhashable", "Panicking", "PanickingClass"])
def test_an_object_whose_class_cannot_be_hashed_or_that_panics_is_unreadable(kind):
    column = np.array([0, 1, None], dtype=object)
    column[2] = globals()[kind]()
    # pandas would ask it itself while it makes a column of an array of its own accord.
    column = pd.Series(pd.arrays.NumpyExtensionArray(column), dtype=object)
    frame = pd.DataFrame({"x0": column, "t": [1, 2, 3], "y": ["u", "v", "u"]})
    assert counts(frame, Schema({"x0": [0, 1]})) == [[1, 1]]
    assert numbers(frame)[:2] == [0.0, 1.0]
    assert users(frame) >= 2
    by_time = frame.rename(columns={"x0": "t", "t": "x0"})
    assert users(by_time) == 3
    house = frame.rename(columns={"x0": "house"})
    for key in ("text", "integer"):
        linked = LinkedSchema({"y": ["u", "v"]}, {"y": ["u", "v"]}, key="house", most=2, key_kind=key)
        assert len(PrivateLinkedTables(house, house.copy(), linked, **BUDGET)._records.codes()) >= 4

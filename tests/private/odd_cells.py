"""Odd cells, and every way of handing them to a reader: pairs of neighbours for `test_reading_odd_cells.py`.

A case is a column of which most cells are alike, and some cells of which one more is added. What a reader counts has to
be what :func:`pgmpy_dp.schema.match_key` says cell by cell (:func:`slowly`), with that cell and without it. `CASES` and
`READERS` are tables: a new oddity or a new container is a line.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import ibis
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pgmpy_dp import Date, Number, Schema, TextFile
from pgmpy_dp.private.reading.arrow_cells import UNREADABLE
from pgmpy_dp.schema import interval_states, match_key

__all__ = [
    "CASES",
    "CUTS",
    "OTHER",
    "READERS",
    "Case",
    "cases_of",
    "data_of",
    "datasets",
    "of_codes",
    "read_otherwise",
    "slowly",
]

N = 40
"""Cells that are alike: by so many a count moves where one cell decides how others are read."""


CUTS = interval_states([3, 10])
OTHER = "other than these"
COLUMNS = 4


@dataclass(frozen=True)
class Case:
    """A column, and cells of which one more is added.

    Attributes
    ----------
    name : str
    cells, extras : list
        As `array` takes them.
    states : list of lists
        Schemas to count by.
    array : callable, optional
        An array of Arrow of such cells; None for objects of Python.
    sql : str, optional
        A type of DuckDB, whose cells are written in SQL; then there are DuckDB's readers only.
    meant : callable
        The value that a cell is.
    """

    name: str
    cells: list
    extras: list
    states: list[list]
    array: Callable[[list], pa.Array] | None = None
    sql: str | None = None
    meant: Callable[[Any], Any] = lambda cell: cell

    @property
    def is_spelled(self) -> bool:
        """Whether it is about how cells are spelled."""
        return self.name.startswith("spell")

    def __str__(self) -> str:
        return self.name


def datasets(case: Case) -> Iterator[list]:
    """The column, and its neighbours with one cell more in the middle."""
    yield case.cells
    half = len(case.cells) // 2
    for extra in case.extras:
        yield [*case.cells[:half], extra, *case.cells[half:]]


def slowly(case: Case, cells: list, schema: Schema) -> list[list[int]]:
    """Counts of the states of each variable, cell by cell; records with a cell outside are not counted."""
    meant = [case.meant(cell) for cell in cells]
    codes = {name: [code(schema.reading(name).key(cell)) for cell in meant] for name, code in coders(schema)}
    kept = [all(column[k] >= 0 for column in codes.values()) for k in range(len(cells))]
    return [
        [sum(k and code == state for k, code in zip(kept, column, strict=True)) for state in range(cardinality)]
        for column, cardinality in zip(codes.values(), schema.cardinalities.values(), strict=True)
    ]


def of_codes(case: Case) -> Schema:
    """Some of the cells, each by itself, as codes."""
    keys = (match_key(case.meant(cell), "code") for cells in datasets(case) for cell in cells)
    texts = [key[1] for key in dict.fromkeys(keys) if key[0] == "text" and len(key[1]) < 1000]
    return Schema({"x0": [*texts[:6], OTHER, None]}, other={"x0": OTHER}, codes=True)


def coders(schema: Schema) -> Iterator[tuple[str, Callable[[tuple], int]]]:
    return ((name, schema.coder(name)) for name in schema)


def read_otherwise(states: list) -> list[Schema]:
    """Numbers, dates and other spellings, of columns that are all alike: no record is dropped by the first alone."""
    words = [state for state in states if isinstance(state, str) and not state.strip().isdigit()] or ["x"]
    number, date = partial(Number, 0, 20, resolution=0.5), partial(Date, "1970-01-01", "2020-06-30")
    return [
        Schema(
            {
                "x0": number(cuts=[3, 9.5]),
                "x1": Number(1, 8, cuts=[4], outside="state"),
                "x2": date(cuts=["1970-01-02", "2000-01-01"], outside="state"),
                "x3": ["W", "X", "Y", OTHER],
            },
            other={"x3": OTHER},
            missing={"x1": [7, "x"], "x3": ["?", 20, *words[1:2]]},
            strip=["x2"],
            casefold=["x3"],
            recode={"x0": {words[0]: 12, 4: None}, "x3": {words[0]: "X", 4: "Y", None: "W"}},
        ),
        Schema({"x0": number(bins=2, missing="drop", outside="drop")}, missing=[4]),
        Schema({"x1": date(bins=2, format="%Y%m%d", missing="drop", outside="drop")}),
        Schema({"x2": [*dict.fromkeys(["ff", words[0], ""]), 4]}, strip=True, texts=["x2"]),
    ]


def of(kind: pa.DataType) -> Callable[[list], pa.Array]:
    return lambda cells: pa.array(cells, kind)


def ticks(kind: pa.DataType) -> Callable[[list], pa.Array]:
    """Times from integers, also from such as are none."""
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    return lambda cells: pa.array(cells, whole).view(kind)


def texts(kind: pa.DataType) -> Callable[[list], pa.Array]:
    """Texts from bytes, also from such as are no UTF-8."""
    return lambda cells: pa.array(cells, pa.binary()).cast(kind, safe=False)


def coded(array: Callable[[list], pa.Array]) -> Callable[[list], pa.Array]:
    def dictionary(cells: list) -> pa.Array:
        different = [*dict.fromkeys(cells)]
        places = pa.array([different.index(cell) for cell in cells], pa.int32())
        return pa.DictionaryArray.from_arrays(places, array(different))

    return dictionary


def listed(array: Callable[[list], pa.Array]) -> Callable[[list], pa.Array]:
    return lambda cells: pa.ListArray.from_arrays(pa.array(range(len(cells) + 1), pa.int32()), array(cells))


def mostly(cell: Any, *others: Any) -> list:
    return [*[cell] * N, *others]


def moment(step: int, zone: datetime.tzinfo | None = None) -> Callable[[int | None], Any]:
    """The moment that so many ticks are, of so many to the second."""

    def meant(cell: int | None) -> Any:
        if cell is None:
            return None
        try:
            return datetime.datetime(1970, 1, 1, tzinfo=zone) + datetime.timedelta(seconds=cell // step)
        except OverflowError:
            return UNREADABLE

    return meant


def duration(step: int) -> Callable[[int | None], Any]:
    return lambda cell: cell if cell is None else datetime.timedelta(seconds=cell // step)


DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2020, 1, 1, 12)


def arrow_cases() -> Iterator[Case]:
    nan, number = math.nan, [CUTS, [4, 20, None]]
    yield Case("float64 of NaN", mostly(nan, *[4.0] * 10), [20.0, None, -math.inf], number, of(pa.float64()))
    yield Case("float32 of NaN", mostly(nan, *[4.0] * 10), [20.0], number, of(pa.float32()))
    yield Case("float64", mostly(20.0), [nan, None, -0.0], number, of(pa.float64()))
    yield Case("int64", mostly(4), [None, 2**63 - 1], [*number, [2**63, 4]], of(pa.int64()))
    yield Case("truth", mostly(True, False), [None], [[0, 1], *number], of(pa.bool_()))
    states = [["a", "a\0", "a\0b", "a\0?"], ["7", ""], CUTS]
    for cell, extras in (
        ("a\0", [None, "a", "a\0?"]),
        ("a\0b", ["a\0?"]),
        ("a", ["a\0"]),
        ("", [None]),
        ("7", ["7\0"]),
    ):
        yield Case(f"text {cell!r}", mostly(cell), extras, states, of(pa.string()))
    yield Case("coded texts", mostly("a\0"), [None, "a"], states, coded(of(pa.string())))
    words = mostly("4", " 4e0 ", "True", "x")
    yield Case("numbers in words", words, ["\u30007", "a" * 100_000], [*number, [1, "x"]], of(pa.string()))
    states = [["a", "b", "\ufffd"], CUTS, [7, "a"]]
    for kind in (pa.string(), pa.binary()):
        extras = [b"\xff", b"7\xff", b" \xff ", b"\xed\xa0\x80"]
        yield Case(f"{kind} and no UTF-8", mostly(b"a", b"7"), extras, states, texts(kind))
        yield Case(f"coded {kind} and no UTF-8", mostly(b"a", b"7"), extras[:1], states, coded(texts(kind)))
    broken = listed(texts(pa.string()))
    yield Case(
        "lists and no UTF-8",
        mostly(b"a"),
        [b"\xff"],
        [[("a",), ("b",)]],
        broken,
        meant=lambda cell: UNREADABLE if cell == b"\xff" else [cell],
    )
    for unit, step, beyond in (("s", 1, [10**15]), ("us", 10**6, [2**61]), ("ns", 10**9, [])):
        for zone in (None, *["Europe/Berlin"] * (unit == "us")):
            states = [["1970-01-01", "1970-01-01T12:00:00"], ["1970-01-01T00:00:00+00:00", "1970-01-01T01:00:00+01:00"]]
            utc = datetime.UTC if zone else None
            array, cells = ticks(pa.timestamp(unit, zone)), mostly(0, 43_200 * step)
            yield Case(f"timestamp {unit} {zone}", cells, [*beyond, None], states, array, meant=moment(step, utc))
        states = [["P1D", "PT0S"], ["1 day, 0:00:00", "1 days 00:00:00"], ["P1DT1S", "PT0S"]]
        array, cells = ticks(pa.duration(unit)), mostly(86_400 * step, 0)
        yield Case(f"duration {unit}", cells, [86_401 * step, None], states, array, meant=duration(step))
    day = moment(1)
    far = [2**31 - 1, None]
    yield Case(
        "date",
        mostly(0),
        far,
        [["1970-01-01", "b"]],
        ticks(pa.date32()),
        meant=lambda d: d if d is None else day(d * 86_400),
    )
    clock = {10**6: datetime.time(0, 0, 1), 86_400 * 10**6: UNREADABLE}.get
    states = [["00:00:01", "00:00:00"]]
    yield Case("time of day", mostly(10**6), [86_400 * 10**6, None], states, ticks(pa.time64("us")), meant=clock)
    prices = [decimal.Decimal("19.99"), None]
    yield Case("decimal", mostly(decimal.Decimal("4.00")), prices, [*number, [19.99, 1]], of(pa.decimal128(20, 2)))
    kind = pa.month_day_nano_interval()
    states = [["P30D", "P1M"], ["30 days", "1 month"]]
    yield Case(
        "interval", mostly((0, 30, 0)), [(1, 0, 0), None], states, of(kind), meant=lambda i: pa.scalar(i, kind).as_py()
    )
    if hasattr(pa, "json_"):
        yield Case("JSON", mostly('"a"'), ['{"a"', None], [['"a"', "a"]], lambda cells: pa.array(cells, pa.json_()))


def spelled_cases() -> Iterator[Case]:
    """Texts as people write them: numbers with blanks, dates in several ways, sentinels, capitals."""
    numbers = ["3", " 9.5 ", "20", "20.5", "-0.25", "1e1", "old", "", " ", "[3,9.5)", " [3,9.5)", "inf", "1,5", "TRUE"]
    days = ["1970-01-01", " 2000-01-01T23:59:59.5", "2020-06-30T23:30:00-02:00", "20000101", "1999-W52-5", "2020-02-30"]
    days += ["01.02.2003", "1969-12-31", "0001-01-01T00:00:00+14:00", "[1970-01-02,2000-01-01)", "2020-06-30 12:00"]
    words = ["Male", " male", "Male "]
    words += ["MALE\u2003", "?", " ?", "W", "w ", "x", "\ufb00", "FF", "\u0130", "4", " 4.0", "7", "NA"]
    for texts_of in (numbers, days, words):
        cells, extras = [each for each in texts_of for _ in range(3)], [None, f"{texts_of[0]}\0"]
        yield Case(f"spelled as {texts_of[1]!r}", cells, extras, [["Male", "ff", "i\u0307"]], of(pa.string()))
    whole = mostly(20000101, 3, 4, 7, 20, 21, -1)
    yield Case("spelled as integers", whole, [2**62, None, 0], [[4, 7]], of(pa.int64()))
    yield Case("spelled as floats", [*whole, 20000101.5, 9.5], [math.inf, 9.25], [[4, 7]], of(pa.float64()))


def object_cases() -> Iterator[Case]:
    odd = [None, "?", math.nan, pd.NA, pd.NaT, 7, b"\xff", decimal.Decimal("sNaN"), "\ud800", (1, [2])]
    states = [["P1D", "PT0S"], ["1 day, 0:00:00", "1 days 00:00:00"], ["1 days", 86_400]]
    for name, day in (("timedelta", DAY), ("numpy's", np.timedelta64(24, "h")), ("pandas'", pd.Timedelta(DAY))):
        yield Case(f"{name} timedelta", mostly(day), odd, states)
    states = [["2020-01-01T12:00:00", "2020-01-01"], [str(np.datetime64(NOON, "ns")), str(pd.Timestamp(NOON))]]
    for name, noon in (
        ("datetime", NOON),
        ("seconds", np.datetime64(NOON, "s")),
        ("ns", np.datetime64(NOON, "ns")),
        ("pandas'", pd.Timestamp(NOON)),
    ):
        yield Case(
            f"time of {name}", mostly(noon), [*odd, np.datetime64(2**62, "s"), np.datetime64("NaT", "s")], states
        )
    berlin = pd.Timestamp(NOON, tz="Europe/Berlin")
    states = [["2020-01-01T11:00:00+00:00", "2020-01-01T12:00:00"], ["2020-01-01T11:00:00+00:00", str(berlin)]]
    yield Case("zoned", mostly(berlin), [NOON, berlin.tz_convert("UTC"), berlin.to_pydatetime()], states)
    yield Case("date and time", mostly(NOON.date()), [NOON], [["2020-01-01T12:00:00", "2020-01-01"]])
    states = [["\ud800", "\udfff"], ["?", "\ud800"], ["\ufffd", "\ud800x"]]
    yield Case("surrogate", mostly("\ud800"), ["\udfff", "?", None, "\ud800x", "\ufffd"], states)
    states = [["a", "a\0"], ["a\0b", "a\0?"]]
    for cell, extras in (("a\0b", ["a\0?", "a"]), ("a", ["a\0"]), ("a\0", [None, 7])):
        yield Case(f"object {cell!r}", mostly(cell), extras, states)
    other = 2**90 + 2**61 - 1
    yield Case("equal and not", mostly(np.float32(2.0**90)), [other], [[2.0**90, float(other)]])
    yield Case("mixed", mostly(1, True, "1", 1.0, None), ["?", (1,), np.int8(1)], [[1, 0], ["?", 1], CUTS])


def duckdb_cases() -> Iterator[Case]:
    letters = {"'a'": "a", "'A'": "A", "'a '": "a ", "NULL": None, "'7'": "7", "'é'": "é", "'e'": "e"}
    states = [["a", "A"], ["A", "b"], ["b", None], ["e", "é"], [7, "A"], CUTS]
    for kind in ("VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOACCENT.NOCASE", "CHAR(5)"):
        for cell in ("'a'", "'é'"):
            yield Case(f"{kind} {cell}", mostly(cell), [*letters], states, sql=kind, meant=letters.get)
    yield Case("ENUM", mostly("'a'"), ["'A'", "NULL"], states, sql="ENUM('a', 'A')", meant=letters.get)
    spans = {
        "INTERVAL 30 DAY": 30 * DAY,
        "INTERVAL 720 HOUR": 30 * DAY,
        "INTERVAL 1 MONTH": UNREADABLE,
        "INTERVAL 3000000 HOUR": UNREADABLE,
        "NULL": None,
    }
    states = [["P30D", "1 month"], ["30 days", "P1D"], ["30 days, 0:00:00", None]]
    yield Case("INTERVAL", mostly("INTERVAL 30 DAY"), [*spans], states, sql="INTERVAL", meant=spans.get)
    meant = {"'00:00:01'": datetime.time(0, 0, 1), "'1970-01-01'": datetime.date(1970, 1, 1), "NULL": None}
    for kind, cell, extra in (
        ("TIME", "'00:00:01'", "'24:00:00'"),
        ("DATE", "'1970-01-01'", "'infinity'"),
        ("TIMESTAMP", "'1970-01-01'", "'-infinity'"),
        ("TIMESTAMP_S", "'1970-01-01'", "'290000-01-01'"),
    ):
        states = [["1970-01-01", "00:00:01"], ["1970-01-01", None]]
        yield Case(
            kind, mostly(cell), [extra, "NULL"], states, sql=kind, meant=lambda cell: meant.get(cell, UNREADABLE)
        )
    largest = "340282366920938463463374607431768211455"
    yield Case("UHUGEINT", mostly("4"), [largest], [CUTS, [4, 2.0**128]], sql="UHUGEINT", meant=int)


CASES = [*arrow_cases(), *spelled_cases(), *object_cases(), *duckdb_cases()]


class CannotHoldError(Exception):
    """What a container makes of the cells is another table, or none."""


def _only(table: pa.Table, *are: Callable[[pa.DataType], bool]) -> pa.Table:
    if not any(is_kind(table["x0"].type) for is_kind in are):
        raise CannotHoldError
    return table


def _but(table: pa.Table, *are: Callable[[pa.DataType], bool]) -> pa.Table:
    if any(is_kind(table["x0"].type) for is_kind in are):
        raise CannotHoldError
    return table


def _is_coarse(kind: pa.DataType) -> bool:
    """Whether DuckDB fails on some times of the type: it knows microseconds only, where there is a zone."""
    return pa.types.is_timestamp(kind) and kind.unit in ("s", "ms") and kind.tz is not None


def _parquet(table: pa.Table, folder: Path) -> str:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, path)
    return str(path)


def _for_engines(table: pa.Table, folder: Path) -> str:
    """A file that a user's engine reads itself, and fails on where cells are odd; durations are integers to DuckDB."""
    kind = table["x0"].type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        texts_of = table["x0"].cast(kind)
        if not pa.types.is_binary(kind):
            texts_of.validate(full=True)
    except pa.ArrowInvalid:
        raise CannotHoldError from None
    if (pa.types.is_timestamp(kind) and kind.unit in ("s", "ms")) or pa.types.is_nested(kind) or "json" in str(kind):
        raise CannotHoldError
    return _parquet(_but(table, pa.types.is_duration), folder)


def _for_duckdb(table: pa.Table, folder: Path) -> str:
    """But for times of day that are declared to be in UTC, as pyarrow 18 writes all: those have a zone to DuckDB."""
    path = _for_engines(table, folder)
    _but(table, lambda kind: pa.types.is_time(kind) and "isAdjustedToUTC=true" in str(pq.ParquetFile(path).schema))
    return path


def _csv(table: pa.Table, folder: Path) -> str:
    """Texts only, none of them missing, empty or with a separator."""
    path = folder / f"{len(list(folder.iterdir()))}.csv"
    columns = [
        _only(table, pa.types.is_string)[name].cast(pa.string()).cast(pa.binary()) for name in table.column_names
    ]
    cells = columns[0].to_pylist()
    if columns[0].null_count or b"" in cells or any(b"," in cell or b";" in cell for cell in cells):
        raise CannotHoldError
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    path.write_bytes(b"\n".join([",".join(table.column_names).encode(), *map(b",".join, rows)]) + b"\n")
    return str(path)


def _written(table: pa.Table, folder: Path, encoding: str) -> TextFile:
    """The same with semicolons, in another encoding, under a name that tells nothing."""
    plain = Path(_csv(table, folder))
    try:
        content = plain.read_bytes().decode().replace(",", ";").encode(encoding)
    except UnicodeError:
        raise CannotHoldError from None
    plain.with_suffix(".txt").write_bytes(content)
    return TextFile(plain.with_suffix(".txt"), delimiter=";", encoding=encoding)


def _coded(table: pa.Table) -> pa.Table:
    for place, name in enumerate(_only(table, pa.types.is_string).column_names):
        if name.startswith("x"):
            table = table.set_column(place, name, table[name].dictionary_encode())
    return table


def _strings(table: pa.Table) -> pd.DataFrame:
    frame = _only(table, pa.types.is_string).to_pandas()
    return frame.astype({name: pd.StringDtype("python") for name in frame.columns if name.startswith("x")})


def _objects(table: pa.Table) -> pd.DataFrame:
    _but(table, pa.types.is_time)  # which has no time outside the day for Python
    return pd.DataFrame({name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names})


_DUCKDB = duckdb.connect()


class Stream:
    """An object of nobody's library, which hands out Arrow's batches each time that it is asked."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _ibis(table: pa.Table, folder: Path) -> Any:
    connection = duckdb.connect()
    path = _for_duckdb(table, folder).replace("'", "''")
    connection.execute(f"CREATE VIEW cells AS SELECT * FROM read_parquet('{path}')").fetchall()  # noqa: S608
    with warnings.catch_warnings():  # of versions that this one of ibis does not expect
        warnings.simplefilter("ignore")
        return ibis.duckdb.from_connection(connection).table("cells")


def _sqlite(table: pa.Table, folder: Path) -> Any:
    """Cells of any type in columns that are declared to be of another, which it takes as they are."""
    cells = table["x0"].to_pylist()
    if not all(type(cell) in (str, int, float, bytes, type(None)) for cell in cells):
        raise CannotHoldError
    if any(isinstance(cell, float) and math.isnan(cell) for cell in cells):
        raise CannotHoldError  # which it takes for missing, as they mean
    path = folder / f"{len(list(folder.iterdir()))}.sqlite"
    declared = dict(zip(table.column_names, ["BLOB", "TIMESTAMP", "BOOLEAN", "DATE"], strict=False))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        columns = ", ".join(f"{name} {declared.get(name, '')}" for name in table.column_names)
        connection.execute(f"CREATE TABLE cells ({columns})")
        rows = [tuple(row.values()) for row in table.to_pylist()]
        connection.executemany(f"INSERT INTO cells VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608
        connection.commit()
    return ibis.sqlite.connect(path).table("cells")


def _folder(table: pa.Table, folder: Path) -> str:
    """Files that are cut elsewhere, in small groups of rows."""
    path = folder / f"{len(list(folder.iterdir()))} parts"
    (path / "more").mkdir(parents=True)
    pq.write_table(table[:5], path / "0.parquet")
    pq.write_table(table[5:], path / "more" / "1.pq", row_group_size=3, use_dictionary=False)
    return str(path)


def _dask(table: pa.Table) -> Any:
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(table, npartitions=2)


def _with_odd_dictionary(table: pa.Table) -> pa.Table:
    """Entries that nobody has, entries twice, a missing one; other ones in the second batch."""
    parts = []
    for part in (table[:9], table[9:]):
        for place, name in enumerate(part.column_names):
            if name.startswith("x"):
                cells = part[name].combine_chunks()
                coded = cells.dictionary_encode()
                twice = pa.concat_arrays(
                    [coded.dictionary, table[name].combine_chunks().dictionary_encode().dictionary]
                )
                entries = pa.concat_arrays([twice, pa.nulls(1, twice.type)])
                indices = np.asarray(coded.indices.fill_null(len(twice)))
                column = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int64()), entries)
                part = part.set_column(place, name, column)
        parts.append(part)
    return pa.concat_tables(parts)


def _sliced(table: pa.Table) -> pa.Table:
    """In the middle of longer columns, so that places and bits of what is missing begin elsewhere."""
    return (
        pa.concat_tables([table[3:14], table, table[:5]]).combine_chunks()[11 : 11 + len(table)]
        if len(table) > 14
        else table
    )


READERS: dict[str, tuple[Callable[[pa.Table, Path], Any], int]] = {
    "pyarrow": (lambda table, _: table, 33),
    "pyarrow in parts": (lambda table, _: pa.concat_tables([table[:7], table[7:]]), 33),
    "pyarrow, sliced": (lambda table, _: _sliced(table), 33),
    "pyarrow, odd dictionaries": (lambda table, _: _with_odd_dictionary(table), 28),
    "pyarrow, one by one": (lambda table, _: pa.concat_tables(table[k : k + 1] for k in range(len(table))), 33),
    "a stream": (lambda table, _: Stream(table), 33),
    "narwhals": (lambda table, _: nw.from_native(table), 33),
    "pandas": (lambda table, _: _but(table, pa.types.is_interval, pa.types.is_time).to_pandas(), 25),
    "pandas on arrow": (lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype), 25),
    "pandas of objects": (lambda table, _: _objects(table), 25),
    "pandas of categories": (lambda table, _: _coded(table).to_pandas(), 9),
    "pandas of strings": (lambda table, _: _strings(table), 9),
    "polars": (lambda table, _: pl.from_arrow(_but(table, pa.types.is_time)), 25),
    "polars of categories": (
        lambda table, _: pl.from_arrow(_only(table, pa.types.is_string)).with_columns(
            pl.col("^x.$").cast(pl.Categorical)
        ),
        9,
    ),
    "polars, lazy": (lambda table, _: pl.from_arrow(_but(table, pa.types.is_time)).lazy(), 25),
    "polars, a file": (lambda table, folder: pl.scan_parquet(_for_engines(table, folder)), 20),
    "dask": (lambda table, _: _dask(_only(table, pa.types.is_floating).to_pandas()), 4),
    "dask of arrow": (lambda table, _: _dask(table.to_pandas(types_mapper=pd.ArrowDtype)), 20),
    "DuckDB of arrow": (lambda table, _: _DUCKDB.from_arrow(_but(table, _is_coarse)), 25),
    "DuckDB, a file": (lambda table, folder: _DUCKDB.read_parquet(_for_duckdb(table, folder)), 20),
    "ibis, a file": (_ibis, 20),
    "ibis, SQLite": (_sqlite, 15),
    "Parquet": (_parquet, 30),
    "Parquet, a folder": (_folder, 30),
    "CSV": (_csv, 7),
    "text in latin-1": (lambda table, folder: _written(table, folder, "latin-1"), 6),
    "text in gb18030": (lambda table, folder: _written(table, folder, "gb18030"), 6),
}
"""From an Arrow table with columns x0, x1, ..., all alike, to data; fails where a container cannot hold it.

With it the number of cases whose column, as it is without an odd cell, it holds at least, in every allowed version: a
reader without cases is one that nobody tests.
"""

_OF_OBJECTS: dict[str, Callable[[dict[str, list]], Any]] = {
    "pandas, inferred": pd.DataFrame,
    "pandas of objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "polars of objects": lambda columns: pl.DataFrame({k: pl.Series(v, dtype=pl.Object) for k, v in columns.items()}),
}


def _made(make: Callable[..., Any], *arguments: Any) -> Any:
    """What a library makes of the cells; None where it cannot hold them."""
    try:
        return make(*arguments)
    except (Exception, pl.exceptions.PanicException):
        return None


def cases_of(reader: str, folder: Path) -> list[str]:
    """The cases that a reader has."""
    tables = (
        (case.name, pa.table(dict.fromkeys(["x0", "x1"], case.array(case.cells)) | {"t": [0] * len(case.cells)}))
        for case in CASES
        if case.array is not None
    )
    return [name for name, table in tables if _made(READERS[reader][0], table, folder) is not None]


def data_of(case: Case, cells: Sequence, folder: Path, turn: int = 0, turns: int = 1) -> Iterator[tuple[str, Any]]:
    """The cells in every container that can hold them, as columns x0, x1, ...; one t of 0 and one y of "u" beside.

    Or in one of `turns` containers, other ones at the next turn.
    """
    names = [f"x{k}" for k in range(max(len(case.states), COLUMNS))]
    n = len(cells)
    if case.sql is not None:
        if turn % turns:
            return
        connection = duckdb.connect()
        columns = ", ".join(f"{name} {case.sql}" for name in names)
        connection.execute(f"CREATE TABLE cells ({columns}, t INTEGER, y VARCHAR)")
        rows = ", ".join(f"({', '.join([cell] * len(names))}, 0, 'u')" for cell in cells)
        connection.execute(f"INSERT INTO cells VALUES {rows}")  # noqa: S608
        yield "DuckDB", connection.table("cells")
    elif case.array is None:
        for reader, make in list(_OF_OBJECTS.items())[turn % turns :: turns]:
            frame = _made(make, {name: list(cells) for name in names} | {"t": [0] * n, "y": ["u"] * n})
            if frame is not None:
                yield reader, frame
    else:
        table = pa.table(dict.fromkeys(names, case.array(list(cells))) | {"t": [0] * n, "y": ["u"] * n})
        for reader, (put, _) in list(READERS.items())[turn % turns :: turns]:
            data = _made(put, table, folder)
            if data is not None:
                yield reader, data

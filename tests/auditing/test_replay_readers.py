"""Replay through every reader and engine: a record that cannot be read like others moves no count but its own.

The corpus is the table of odd cells (tests/private/odd_cells.py) in every container that can hold them. Then hypothesis
draws tables and the record that is one more, or another: HYPOTHESIS_PROFILE=thorough, as `make nightly` sets it, looks
at ten times as many.
"""

from __future__ import annotations

import gzip
import itertools
import re
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy import config

from pgmpy_dp import Budget, PrivateTable, Schema
from pgmpy_dp.auditing import replay
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.operators.record_matches import MatchedCounts
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.vector_operators import ClippedSum, UnitCount
from pgmpy_dp.private.reading import arrow_cells, producers
from pgmpy_dp.sequences.operators.sequence_operators import NgramTables
from pgmpy_dp.sequences.operators.sequences import PrivateSequences
from tests.auditing.replay_tables import table_cases
from tests.private.odd_cells import CASES, READERS, Case, data_of, datasets
from tests.private.test_engines import LAZY, READ, SCHEMA, arrow, records
from tests.private.test_reading_odd_cells import schemas as schemas_of
from tests.strategies import frames, schemas

BUDGET = Budget(rho=0.5)
ASKED = {"what": "", "columns": []}


def tables(data: Any, schema: Any, n_records: int | None = None) -> Any:
    """Tables and matches, which engines count themselves, and tables of random parts, for which they hand out codes."""
    adjacency = "add_remove" if n_records is None else "replace_one"
    table = PrivateTable(data, schema, adjacency=adjacency, ledger=BUDGET, n_records=n_records)
    names = list(table.schema)
    curator = TableCurator(table, BUDGET, **ASKED)
    curator.ask(Tables([(name,) for name in names] + list(itertools.combinations(names, 2))), Fraction(1, 4))
    curator.ask(MatchedCounts(), Fraction(1, 4))
    with curator.split(2) as parts:
        for part in parts:
            part.ask(Tables([(name,) for name in names]), Fraction(1, 2))
    return curator.release("test", {})


def users(data: Any) -> Any:
    """Users are told apart by the odd cells."""
    sequences = PrivateSequences(data, {"y": ["u", "v"]}, unit="x0", order="t", ledger=BUDGET)
    curator = Curator(sequences, BUDGET, **ASKED)
    curator.ask(NgramTables(), 1)
    return curator.release("test", {})


def numbers(data: Any) -> Any:
    """Cells that are no numbers are none; the others count, and are added up."""
    vectors = PrivateVectors(data, ["x0"], ledger=BUDGET)
    curator = Curator(vectors, BUDGET, **ASKED)
    curator.ask(UnitCount(), Fraction(1, 2))
    curator.ask(ClippedSum([0.0], 30.0), Fraction(1, 2))
    return curator.release("test", {})


def assert_holds(fit: Callable[[Any], Any], data: Any, neighbour: Any, reader: str) -> None:
    report = replay(fit, data, neighbour)
    assert report.holds, (reader, report)


def with_one_more(case: Case, extra: Any) -> list:
    half = len(case.cells) // 2
    return [*case.cells[:half], extra, *case.cells[half:]]


def neighbours(case: Case, place: int) -> dict[str, tuple[list, list, int | None]]:
    """One cell more; another cell in its place, of the column or the odd one after it."""
    instead = [*case.extras, case.cells[0]][(place + 1) % (len(case.extras) + 1)]
    odd = with_one_more(case, case.extras[place])
    return {
        "add_remove": (case.cells, odd, None),
        "replace_one": (with_one_more(case, instead), odd, len(odd)),
    }


def replay_case(
    case: Case, place: int, adjacency: str, folder: Path, some: slice = slice(None), turn: int = 0, turns: int = 1
) -> int:
    """Every container that can hold both datasets, or one of `turns`, with some of the schemas; how many there are."""
    cells, odd, n_records = neighbours(case, place)[adjacency]
    for later in range(turns):  # it may be the turn of those that cannot hold such cells
        first, second = (dict(data_of(case, each, folder, turn + later, turns)) for each in (cells, odd))
        if first := {reader: data for reader, data in first.items() if reader in second}:
            break
    for reader, data in first.items():
        for schema in schemas_of(case)[some]:
            assert_holds(partial(tables, schema=schema, n_records=n_records), data, second[reader], reader)
        if n_records is None:
            assert_holds(users, data, second[reader], reader)
            assert_holds(numbers, data, second[reader], reader)
    return len(first)


# By their numbers: pytest holds on to parameters, and DuckDB tells on the way out of Python what is still there of it.
each_case = pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])


@each_case
def test_an_odd_cell_in_every_reader(number, tmp_path, capfd):
    """One odd cell of each kind, under one of the adjacencies, in a few of the readers and with some of the schemas.

    All take turns. What every reader counts of every cell, test_reading_odd_cells.py compares with a slow one.
    """
    case, adjacency = CASES[number], ("add_remove", "replace_one")[number % 2]
    some = slice(1) if case.is_spelled or number % 3 == 0 else slice(2, None)
    assert replay_case(case, number % len(case.extras), adjacency, tmp_path, some, number, turns=7)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_night_has_twenty_thousand_pairs(tmp_path, monkeypatch):
    """Counted as the tests make them: all odd cells here, of test_reading_odd_cells.py, and of hypothesis."""
    tried: list[str] = []
    monkeypatch.setitem(globals(), "assert_holds", lambda fit, data, neighbour, reader: tried.append(reader))
    for case in CASES:
        for adjacency, place in itertools.product(["add_remove", "replace_one"], range(len(case.extras))):
            replay_case(case, place, adjacency, tmp_path)
        for cells in itertools.islice(datasets(case), 1, None):
            tried += [reader for reader, _ in data_of(case, cells, tmp_path) for _ in schemas_of(case)]
    assert set(READERS) <= set(tried)
    assert len(tried) + 4 * (1000 // 4) >= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@each_case
def test_all_odd_cells_in_every_reader(number, adjacency, tmp_path, capfd):
    case = CASES[number]
    for place in range(len(case.extras)):
        assert replay_case(case, place, adjacency, tmp_path)
    assert capfd.readouterr() == ("", "")


def parquet(table: pa.Table) -> str:
    with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as file:
        pq.write_table(table, file)
    return file.name


THOROUGH = settings.default.max_examples > 100
CONTAINERS = {
    "pyarrow": lambda table: table,
    "pandas": pa.Table.to_pandas,
    "pandas on arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "Parquet": parquet,
    # Dask makes tasks of every column: seconds an example.
    **{engine.__name__: engine for engine in LAZY if THOROUGH or "dask" not in engine.__name__},
}


@settings(max_examples=settings.default.max_examples // 4)
@given(st.data())
def test_whatever_the_records_in_whatever_engine(drawn):
    """Columns of every type; one record more, or another, in any place."""
    rows, (odd, instead) = drawn.draw(records), drawn.draw(records.filter(lambda rows: len(rows) > 1))[:2]
    place = drawn.draw(st.integers(0, len(rows)))
    schema = drawn.draw(st.sampled_from([SCHEMA, READ]))
    schema = schema.subset(drawn.draw(st.lists(st.sampled_from(list(schema)), min_size=1, max_size=3, unique=True)))
    reader = drawn.draw(st.sampled_from(list(CONTAINERS)))
    first = [*rows[:place], odd, *rows[place:]]
    for second, n_records in ((rows, None), ([*rows[:place], instead, *rows[place:]], len(first))):
        made = []
        try:
            made = [CONTAINERS[reader](arrow(each)) for each in (first, second)]
            assert_holds(partial(tables, schema=schema, n_records=n_records), *made, reader)
        finally:
            for path in made:
                Path(path).unlink() if isinstance(path, str) else None


def inferred(frame: pd.DataFrame) -> pd.DataFrame:
    try:
        return frame.infer_objects()
    except OverflowError:  # pandas 2.2 looks for a type with room for 10**400
        return frame


@settings(max_examples=settings.default.max_examples // 4)
@given(st.data())
def test_whatever_the_schema_and_the_objects(drawn):
    """Names and states of any kind, cells of any object: pandas as objects, and in the types that it finds."""
    declared = drawn.draw(schemas())
    # In a function: hypothesis prints what is drawn, and old versions of pandas cannot print a signalling NaN.
    rows = drawn.draw(frames(declared).filter(lambda rows: len(rows) > 0).map(lambda rows: lambda: rows))()
    schema = Schema(declared, other={name: states[0] for name, states in declared.items()})
    odd = drawn.draw(st.integers(0, len(rows) - 1))
    less = rows.drop(index=rows.index[odd])
    for infer in (False, True):
        first, second = (inferred(each) if infer else each for each in (rows, less))
        assert_holds(partial(tables, schema=drawn.draw(st.sampled_from([schema, declared]))), first, second, "pandas")


def parts_of_csv(rows: list[tuple[str, ...]], folder: Path) -> dict[str, Any]:
    """Files in one, in several, packed, and with quotation marks."""
    lines = [",".join(row) for row in rows]
    folder.mkdir()
    for name, some in (("0.csv", lines[:3]), ("1.csv", lines[3:]), ("whole.tsv", lines)):
        text = "\n".join(["page,user", *some]) + "\n"
        (folder / name).write_text(text.replace(",", "\t") if name.endswith("tsv") else text)
    (folder / "packed.csv.gz").write_bytes(gzip.compress("\n".join(["page,user", *lines]).encode()))
    marked = [",".join(f'"{cell}"' for cell in row) for row in rows]
    (folder / "marked.csv").write_text("\n".join(["page,user", *marked]))
    return {
        "parts": [folder / "0.csv", str(folder / "1.csv")],
        "pattern": str(folder / "[01].csv"),
        **{name: folder / name for name in ("whole.tsv", "packed.csv.gz", "marked.csv")},
    }


VISITS = [("a b a", "u"), ("b", "u"), ("a", "v"), (" b  a", "w"), ("", "w")]
ODD_VISITS = [("?", "x"), ("a\0b b", "u"), ("b" * 70, "y"), ("b b b b", ""), ('"a', "z"), ("a a a a", "v")]


@pytest.mark.parametrize("odd", ODD_VISITS)
def test_texts_of_several_visits_in_every_reader(odd, tmp_path):
    """A user's row more, and a new user's; of sequences in a text, as lists, and read as a table of texts."""

    def sequences(data: Any, separator: str | None = " ") -> Any:
        private = PrivateSequences(data, {"page": ["a", "b"]}, unit="user", sequence="page", ledger=BUDGET)
        curator = Curator(private, BUDGET, **ASKED)
        curator.ask(NgramTables(), Fraction(1, 2))
        curator.ask(NgramTables(None, 2, 1), Fraction(1, 2))
        return curator.release("test", {})

    first, second = VISITS, [*VISITS[:2], odd, *VISITS[2:]]
    is_new = odd[1] not in {user for _, user in VISITS}
    tabled = partial(tables, schema={"page": ["a", "b", "b b b b"], "user": ["u", "v", "", "z"]})
    files = [parts_of_csv(rows, tmp_path / str(k)) for k, rows in enumerate((first, second))]
    for reader in files[0]:
        assert_holds(tabled, files[0][reader], files[1][reader], reader)
    for reader, make in CONTAINERS.items():
        made = [
            make(pa.table(dict(zip(("page", "user"), zip(*rows, strict=True), strict=True))))
            for rows in (first, second)
        ]
        assert_holds(tabled, *made, reader)
        if is_new:
            assert_holds(sequences, *made, reader)


def test_tables_on_torch():
    """The other backend counts on a device. (A pickled tensor has an address in it.)"""

    def released(data: Any, fit: Callable[[Any], Any]) -> Any:
        fitted = fit(data)
        return getattr(fitted, "release_", fitted)

    config.set_backend("torch")
    try:
        for case in [case for case in table_cases() if case.name.startswith("NaiveMLE")]:
            for data, neighbour in itertools.islice(case.pairs(np.random.default_rng(0)), 2):
                assert_holds(partial(released, fit=case.fit), data, neighbour, "torch")
    finally:
        config.set_backend("numpy")


# Readers as they once were: each decides for a whole column, or fails on one cell (defects that were found and mended).


def numpys_texts(values: list, true: Callable = arrow_cells.cells_of_objects) -> Any:
    """NumPy drops the zero characters at the end of texts, where all cells are some."""
    texts = np.array(values) if values and all(type(value) is str for value in values) else np.empty(0)
    return true(texts.tolist() if texts.size else values)


def pandas_durations(ticks: np.ndarray, kind: pa.DataType, true: Callable = producers._of_ticks) -> Any:
    """A column of durations was read by pandas' texts, one of objects by Python's."""
    if not pa.types.is_duration(kind):
        return true(ticks, kind)
    return arrow_cells.cells_of_objects([str(pd.Timedelta(int(tick), kind.unit)) for tick in ticks])


def one_by_one_or_not_at_all(read: Callable[[Any], Any], what: Any) -> Any:
    return read(what)


def one_array_of_all(values: list, true: Callable = arrow_cells.cells_of_objects) -> Any:
    """NumPy makes texts of its own of a column in which one cell is a text."""
    try:
        return true(np.array(values).tolist())
    except (TypeError, ValueError):
        return true(values)


MANY = r"moved by [1-9]\d"


@pytest.mark.parametrize(
    ("patches", "case", "reader", "says"),
    [
        ({(producers, "cells_of_objects"): numpys_texts}, "object 'a\\x00'", "pandas of objects", MANY),
        ({(producers, "_of_ticks"): pandas_durations}, "timedelta timedelta", "pandas, inferred", MANY),
        ({(arrow_cells, "_tried"): one_by_one_or_not_at_all}, "timestamp s None", "pyarrow", "error differs"),
        pytest.param(
            *({(producers, "cells_of_objects"): one_array_of_all}, "time of ns", "pandas of objects", MANY),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_reader_that_decides_by_other_cells(patches, case, reader, says, tmp_path, monkeypatch):
    (chosen,) = [each for each in CASES if str(each) == case]

    def found() -> str:
        problems = []
        for place in range(len(chosen.extras)):
            cells, odd, _ = neighbours(chosen, place)["add_remove"]
            first, second = (
                next((data for name, data in data_of(chosen, each, tmp_path) if name == reader), None)
                for each in (cells, odd)
            )
            for schema in schemas_of(chosen) if first is not None and second is not None else ():
                problems += replay(partial(tables, schema=schema), first, second).problems
        return "; ".join(problems)

    assert found() == ""
    for (module, name), broken in patches.items():
        monkeypatch.setattr(module, name, broken)
    assert re.search(says, found())

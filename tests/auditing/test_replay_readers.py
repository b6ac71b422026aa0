"""Replay through every reader and engine: a record that cannot be read like others moves no count but its own.

The corpus is the table of odd cells (tests/private/odd_cells.py) in every container that can hold them. Then hypothesis
draws tables and the record that is one more, or another: HYPOTHESIS_PROFILE=thorough, as `make nightly` sets it, looks
at ten times as many.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp import Budget, PrivateTable, Schema
from pgmpy_dp.auditing import replay
from pgmpy_dp.private.curator.sequences import SequenceCurator
from pgmpy_dp.private.curator.tables import TableCurator
from pgmpy_dp.private.data.sequences import PrivateSequences
from tests.private.odd_cells import CASES, Case, data_of
from tests.private.test_engines import LAZY, SCHEMA, arrow, records
from tests.private.test_odd_cells import schemas as schemas_of
from tests.strategies import frames, schemas

BUDGET = Budget(rho=0.5)
ASKED = {"what": "", "columns": []}


def tables(data: Any, schema: Any, n_records: int | None = None) -> Any:
    """Tables, which engines count themselves, and tables of random parts, for which they hand out codes."""
    adjacency = "add_remove" if n_records is None else "replace_one"
    table = PrivateTable(data, schema, adjacency=adjacency, ledger=BUDGET, n_records=n_records)
    names = list(table.schema)
    curator = TableCurator(table, BUDGET, **ASKED)
    curator.tables([(name,) for name in names] + list(itertools.combinations(names, 2)), Fraction(1, 2))
    with curator.split(2) as parts:
        for part in parts:
            part.tables([(name,) for name in names], Fraction(1, 2))
    return curator.release("test", {})


def users(data: Any) -> Any:
    """Users are told apart by the odd cells."""
    sequences = PrivateSequences(data, {"y": ["u", "v"]}, unit="x0", order="t", ledger=BUDGET)
    curator = SequenceCurator(sequences, BUDGET, **ASKED)
    curator.pair_tables(1)
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


def replay_case(case: Case, place: int, adjacency: str, folder: Path) -> int:
    """Every container that can hold both datasets; how many these are."""
    cells, odd, n_records = neighbours(case, place)[adjacency]
    second = dict(data_of(case, odd, folder))
    first = {reader: data for reader, data in data_of(case, cells, folder) if reader in second}
    for reader, data in first.items():
        for schema in schemas_of(case):
            assert_holds(partial(tables, schema=schema, n_records=n_records), data, second[reader], reader)
        if n_records is None:
            assert_holds(users, data, second[reader], reader)
    return len(first)


# By their numbers: pytest holds on to parameters, and DuckDB tells on the way out of Python what is still there of it.
each_case = pytest.mark.parametrize("number", range(len(CASES)), ids=[str(case) for case in CASES])


@each_case
def test_an_odd_cell_in_every_reader(number, tmp_path, capfd):
    """One odd cell of each kind, under one of the adjacencies in turns."""
    adjacency = ("add_remove", "replace_one")[number % 2]
    assert replay_case(CASES[number], number % len(CASES[number].extras), adjacency, tmp_path)
    assert capfd.readouterr() == ("", "")


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
    schema = SCHEMA.subset(drawn.draw(st.lists(st.sampled_from(list(SCHEMA)), min_size=1, max_size=3, unique=True)))
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


@settings(max_examples=settings.default.max_examples // 4)
@given(st.data())
def test_whatever_the_schema_and_the_objects(drawn):
    """Names and states of any kind, cells of any object: pandas as objects, and in the types that it finds."""
    declared = drawn.draw(schemas())
    frame = drawn.draw(frames(declared).filter(lambda frame: len(frame) > 0))
    schema = Schema(declared, other={name: states[0] for name, states in declared.items()})
    odd = drawn.draw(st.integers(0, len(frame) - 1))
    less = frame.drop(index=frame.index[odd])
    for infer in (False, True):
        first, second = (each.infer_objects() if infer else each for each in (frame, less))
        assert_holds(partial(tables, schema=drawn.draw(st.sampled_from([schema, declared]))), first, second, "pandas")

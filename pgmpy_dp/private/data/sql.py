"""Data that stay in an engine: files by their path and DuckDB relations here, other lazy frames in `lazy.py`.

Cells are coded and tables counted by the query, so what reaches Python is exact integers. Cells of types that a query
cannot decide come as they are, a batch at a time, and are read by :mod:`pgmpy_dp.private.data.frame`.

What depends on records and what does not
-----------------------------------------
The queries that are made here fail on no value. A file that cannot be read to its end (cut short, or on a failing disk)
raises an error that names no part of it. Lines of a text file that are no UTF-8 or not of the header's columns are
dropped in silence, and types are never guessed: every field is a text. No result and no spilled part of one is written
to disk: the connection has no directory for that, and blocks of counts are small. For a relation, and for other lazy
frames, connection and settings are the caller's.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import io
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from pgmpy_dp.private.data.coding import UNDECIDED, coding
from pgmpy_dp.private.data.contingency import count
from pgmpy_dp.private.data.frame import cell_codes, cell_numbers, column_cells, positions_of, quietly
from pgmpy_dp.private.data.lazy import LazySource
from pgmpy_dp.private.data.pushdown import Source
from pgmpy_dp.private.data.query_text import code_text, is_decided, key_text, number_text, quoted
from pgmpy_dp.schema import Schema

__all__ = ["DuckDBSource", "is_path", "open_source"]

_ROWS_AT_ONCE = 1 << 17
_TEXT_FILES = {".csv": ",", ".tsv": "\t"}
_MEMORY = "1GB"


def is_path(data: Any) -> bool:
    """Whether `data` names files: a text, a Path, or a list of these."""
    if isinstance(data, list | tuple):
        return len(data) > 0 and all(isinstance(part, str | Path) for part in data)
    return isinstance(data, str | Path)


def open_source(data: Any) -> Source | None:
    """The source to which counting is pushed down; None for what is in memory already.

    Parameters
    ----------
    data : str, Path, list of these, or lazy frame
        Parquet files (``.parquet``, ``.pq``), or text files with a header (``.csv``, ``.tsv``, also ``.gz``); patterns
        such as ``part-*.parquet`` are allowed. Or a DuckDB relation, or another lazy frame that narwhals knows:
        PySpark, Dask, ibis, polars.

    Raises
    ------
    FileNotFoundError
        If a pattern matches no file.
    ValueError
        For files of another kind, or that are none of the kind that they are named as.
    ModuleNotFoundError
        For a path where DuckDB is not installed.
    """
    if is_path(data):
        return DuckDBSource(*_open_files(data))
    data = nw.to_native(data, pass_through=True)
    if nw.dependencies.is_duckdb_relation(data):
        return DuckDBSource(data)
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None  # in memory, where columns are told apart by position
    return LazySource(frame) if isinstance(frame, nw.LazyFrame) else None


class DuckDBSource:
    """A relation, on which queries are made.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    connection : duckdb.DuckDBPyConnection, optional
        One of our own: then what goes wrong while reading is told without a word of the data.
    """

    # Beyond this, a table no longer fits in the cache of a core.
    largest_block = 5_000

    def __init__(self, relation: Any, connection: Any = None) -> None:
        self._relation = relation
        self._connection = connection
        self._kinds = [str(kind) for kind in relation.types]

    @property
    def names(self) -> list[str]:
        """Its columns."""
        return list(self._relation.columns)

    def block_counts(self, schema: Schema, blocks: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.block_counts`, by one query (two where cells are left)."""
        cardinalities = list(schema.cardinalities.values())
        shapes = [tuple(cardinalities[j] for j in block) for block in blocks]
        keys = [
            f"CASE WHEN bad THEN -1 ELSE {key_text([f'c{j}' for j in block], shape)} END AS k{i}"
            for i, (block, shape) in enumerate(zip(blocks, shapes, strict=True))
        ]
        coded, left = self._coded(schema)
        smallest = ", ".join(f"c{j}" for j in range(len(schema)))
        query = (
            coded.project(f"*, least({smallest}, 0) < 0 AS bad")
            .project(", ".join(keys))
            .aggregate(
                ", ".join(f"k{i}" for i in range(len(keys))) + ", count(*) AS n",
                "GROUPING SETS (" + ", ".join(f"(k{i})" for i in range(len(keys))) + ")",
            )
        )
        found = self._read(query.fetchnumpy)
        numbers = np.asarray(found["n"])
        tables: list[np.ndarray] = []
        for i, shape in enumerate(shapes):
            key = np.ma.asarray(found[f"k{i}"])
            inside = ~np.ma.getmaskarray(key) & (np.ma.getdata(key) >= 0)
            counted = np.zeros(int(np.prod(shape)), dtype=np.int64)
            counted[np.ma.getdata(key)[inside].astype(np.int64)] = numbers[inside]
            tables.append(counted.reshape(shape))
        if left:
            undecided = " OR ".join(f"c{j} = {UNDECIDED}" for j in left)
            for batch in self._resolved(coded.filter(undecided), schema, left):
                codes = np.column_stack(batch)
                for table, block in zip(tables, blocks, strict=True):
                    table += count(codes, cardinalities, block)
        return tables

    def code_batches(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.code_batches`; in the order of the files."""
        coded, left = self._coded(schema)
        yield from self._resolved(coded, schema, left)

    def number_batches(self, names: Sequence[Hashable]) -> Iterator[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.number_batches`."""
        columns = [(self.names[j], self._kinds[j]) for j in positions_of(self.names, names)]
        query = self._relation.project(
            ", ".join(
                f"{number_text(name, kind) if is_decided(kind) else quoted(name)} AS x{j}"
                for j, (name, kind) in enumerate(columns)
            )
        )
        for batch in self._batches(query):
            rows = np.empty((batch.num_rows, len(columns)))
            for j in range(len(columns)):
                rows[:, j] = cell_numbers(batch.column(j))
            yield rows

    def clipped_sums(self, *arguments: Any, **options: Any) -> None:
        """None: batches are fetched. For 20 columns this takes 0.7 times the processor time of sums in the query."""

    def cells(self, names: Sequence[Hashable]) -> list:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.cells`."""
        columns = [self.names[j] for j in positions_of(self.names, names)]
        query = self._relation.project(", ".join(map(quoted, columns)))
        return column_cells(self._read(_method(query, "to_arrow_table", "arrow")))

    def _coded(self, schema: Schema) -> tuple[Any, list[int]]:
        """The relation with codes c0, c1, ..., and cells r0, ... of the columns whose positions are returned."""
        positions = positions_of(self.names, schema.variables)
        parts, left = [], []
        for j, (name, position) in enumerate(zip(schema.variables, positions, strict=True)):
            column, kind = self.names[position], self._kinds[position]
            parts.append(f"{code_text(column, kind, coding(schema, name))} AS c{j}")
            if not is_decided(kind):
                parts.append(f"{quoted(column)} AS r{j}")
                left.append(j)
        return self._relation.project(", ".join(parts)), left

    def _resolved(self, coded: Any, schema: Schema, left: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Codes of the records without an outside cell, where cells were left those of match_key."""
        for batch in self._batches(coded):
            # Missing cells have their code already.
            columns = [batch.column(f"c{j}").to_numpy(zero_copy_only=False) for j in range(len(schema))]
            for j in left:
                cells = cell_codes(batch.column(f"r{j}"), schema, schema.variables[j])
                columns[j] = np.where(columns[j] == UNDECIDED, cells, columns[j])
            keep = np.ones(batch.num_rows, dtype=bool)
            for codes in columns:
                keep &= codes >= 0
            yield [codes[keep] for codes in columns]

    def _batches(self, query: Any) -> Iterator[Any]:
        """Arrow batches of a query's rows."""
        reader = iter(self._read(lambda: _method(query, "to_arrow_reader", "fetch_record_batch")(_ROWS_AT_ONCE)))
        while (batch := self._read(lambda: next(reader, None))) is not None:
            yield batch

    def _read(self, read: Callable[[], Any]) -> Any:
        """Call; of files, without the engine's own words if it fails, which may quote them."""
        if self._connection is None:
            return quietly(read)
        try:
            return quietly(read)
        except Exception:
            failed = True
        if failed:  # outside of the except clause, so that the engine's error is not even this one's context
            raise OSError(
                "the files of data could not be read to their end; check that they are complete, of one format, and "
                "not being written to"
            )


def _method(query: Any, *names: str) -> Any:
    """The first of the methods that this version of DuckDB has."""
    return getattr(query, next(name for name in names if hasattr(query, name)))


def _open_files(data: Any) -> tuple[Any, Any]:
    """A relation over files, and the connection it is on."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"data={data!r} is read by DuckDB, which is not installed; pip install 'pgmpy_dp[duckdb]', or "
            "pass a dataframe"
        ) from None
    parts = list(data) if isinstance(data, list | tuple) else [data]
    files = [name for part in parts for name in _matching(str(part))]
    kinds = {_kind(name) for name in files}
    if len(kinds) > 1:
        raise ValueError(f"data={data!r} names files of the kinds {sorted(kinds)}; pass files of one kind")
    (kind,) = kinds
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": _MEMORY,
            "temp_directory": "",  # nothing is spilled to disk
            "autoinstall_known_extensions": "false",  # nor fetched
        },
    )
    connection.execute("SET enable_progress_bar = false")  # it would show where a notebook has one
    with contextlib.suppress(duckdb.Error):  # of a version without
        connection.execute(
            "SET enable_external_file_cache = false"
        )  # each pass reads the file, not parts of an old one
    if kind in _TEXT_FILES:
        headers = {name: _header(name, _TEXT_FILES[kind]) for name in files}
        names = headers[files[0]]
        other = [name for name in files if headers[name] != names]
        if other:
            raise ValueError(f"{other[0]!r} has another header than {files[0]!r}; pass files with the same columns")
        return (
            connection.from_query(
                f"SELECT * FROM read_csv({_list(files)}, columns={_columns(names)}, header=true, auto_detect=false, "
                f"delim={_text(_TEXT_FILES[kind])}, quote='\"', escape='\"', ignore_errors=true, strict_mode=false)"
            ),
            connection,
        )
    try:
        return connection.from_query(f"SELECT * FROM read_parquet({_list(files)}, hive_partitioning=false)"), connection
    except duckdb.Error:
        pass
    raise ValueError(f"data={data!r} is no Parquet file that DuckDB can open; name text files .csv or .tsv")


def _matching(pattern: str) -> list[str]:
    if Path(pattern).is_file():
        return [pattern]
    found = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())
    if not found:
        raise FileNotFoundError(f"data={pattern!r} names no file; pass the path of a Parquet or CSV file")
    return found


def _kind(name: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    if suffixes[-1:] and suffixes[-1] in (".parquet", ".pq", *_TEXT_FILES):
        return ".parquet" if suffixes[-1] == ".pq" else suffixes[-1]
    raise ValueError(f"data={name!r} is not named as a kind of file that is known; use .parquet, .csv or .tsv (or .gz)")


def _header(name: str, separator: str) -> list[str]:
    """Names of the columns of a text file: its first line, the only one that is public."""
    opened = gzip.open if name.lower().endswith(".gz") else open
    with opened(name, "rb") as lines:
        line = lines.readline(1 << 20).decode("utf-8-sig", errors="replace")
    names = next(csv.reader(io.StringIO(line.rstrip("\r\n")), delimiter=separator), [])
    repeated = {column for column in names if [other.lower() for other in names].count(column.lower()) > 1}
    if repeated or not names:
        raise ValueError(
            f"the first line of {name!r} has "
            + (
                f"the column(s) {sorted(repeated)} more than once (capitals make no difference)"
                if repeated
                else "no names"
            )
            + "; it must name each column once"
        )
    return names


def _columns(names: Sequence[str]) -> str:
    return "{" + ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names) + "}"


def _list(names: Sequence[str]) -> str:
    # A name is no pattern here: signs that would make it one are written as classes of themselves.
    return "[" + ", ".join(_text(glob.escape(name)) for name in names) + "]"


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

"""Counting inside DuckDB: Parquet files by their path, and relations of the caller's.

Cells are coded and tables counted by the query, so what reaches Python is exact integers. Cells of types that a query
cannot decide come as they are, a batch at a time, and are read by :mod:`pgmpy_dp.private.data.frame`.

What depends on records and what does not
-----------------------------------------
The queries that are made here fail on no value. Files are read once when they are opened, before anything is spent.
Where DuckDB cannot (a text that is no UTF-8), or has another type for a column than pyarrow, pyarrow reads them; cells
mean the same to both. A file that neither can read to its end raises an error that names no part of it. No result and
no spilled part of one is written to disk: the connection has no directory for that, and tables of counts are small. For
a relation, connection and settings are the caller's, and so is what goes wrong in them.

Text files are not read by DuckDB: its parser lets a quotation mark at the start of a field swallow the lines after it,
and takes a carriage return inside a line for its end (:mod:`pgmpy_dp.private.data.record_file` says why that matters).
"""

from __future__ import annotations

import contextlib
import glob
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.private.data.coding import DROPPED, UNDECIDED, coding
from pgmpy_dp.private.data.contingency import add_counts
from pgmpy_dp.private.data.frame import (
    cell_codes,
    cell_numbers,
    column_cells,
    kept_codes,
    key_counts,
    keyed_cells,
    quietly,
)
from pgmpy_dp.private.data.pushdown import Source
from pgmpy_dp.private.data.query_text import (
    code_text,
    decides,
    grouped_text,
    is_decided,
    is_divided,
    is_ordered,
    key_text,
    number_text,
    odd_text,
    quoted,
    sent_text,
    unreadable_text,
)
from pgmpy_dp.private.data.record_file import ParquetSource
from pgmpy_dp.private.data.user_query import ShareQuery, part_text
from pgmpy_dp.private.data.visits import Visits
from pgmpy_dp.schema import Schema

__all__ = ["DuckDBSource", "parquet_relation"]

_ROWS_AT_ONCE = 1 << 17
_MEMORY = "1GB"
_VISITS_IN_ORDER = 1 << 23  # at once
_CELLS_OF_UNITS = 1 << 24  # at once
_MOST_PARTS = 1 << 12


class DuckDBSource(Source):
    """A relation, on which queries are made.

    Parameters
    ----------
    relation : duckdb.DuckDBPyRelation
    connection : duckdb.DuckDBPyConnection, optional
        One of our own, over files.
    files : list of str
        Parquet files that the relation is of, where the connection is ours.
    """

    def __init__(self, relation: Any, connection: Any = None, files: Sequence[str] = ()) -> None:
        self.ordered = connection is not None  # a relation may be a join, or any other query
        self._relation = relation
        self._connection = connection
        self._files = list(files)
        self.names = list(relation.columns)
        self._kinds = [str(kind) for kind in relation.types]

    def opened(self, names: Sequence[Hashable]) -> Source:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.opened`: of files, pyarrow's reader where it is needed."""
        if self._connection is None:
            return self
        slow = ParquetSource(self._files)
        columns = [self._column(name) for name in names]
        if slow.names == self.names and all(slow.kinds(name) == {kind} for name, kind in columns):
            # Every value of these columns is read, and only their hash comes back.
            hashes = ", ".join(f"bit_xor(hash({quoted(name)}))" for name, _ in columns)
            with contextlib.suppress(OSError):
                self._read(lambda: self._relation.aggregate(hashes).fetchall())
                return self
        return slow.opened(names)

    def require_ready(self) -> None:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.require_ready`: a connection of others may be busy."""
        if self._connection is None:
            require_free(self._relation)

    def joint_counts(self, schema: Schema, covers: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.joint_counts`, by one query and what it leaves."""
        coded, left = self._coded(schema)
        if any(not is_decided(self._column(schema.variables[j])[1]) for j in left):
            return super().joint_counts(schema, covers)
        cardinalities = list(schema.cardinalities.values())
        shapes = [tuple(cardinalities[j] for j in cover) for cover in covers]
        keys = [
            f"CASE WHEN bad THEN -1 ELSE {key_text([f'c{j}' for j in cover], shape)} END AS k{i}"
            for i, (cover, shape) in enumerate(zip(covers, shapes, strict=True))
        ]
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
        tables = []
        for i, shape in enumerate(shapes):
            key = np.ma.asarray(found[f"k{i}"])
            inside = ~np.ma.getmaskarray(key) & (np.ma.getdata(key) >= 0)
            counted = np.zeros(int(np.prod(shape)), dtype=np.int64)
            counted[np.ma.getdata(key)[inside].astype(np.int64)] = numbers[inside]
            tables.append(counted.reshape(shape))
        if left:
            undecided = self._read(coded.filter, " OR ".join(f"c{j} = {UNDECIDED}" for j in left))
            add_counts(tables, self._resolved(undecided, schema, left), cardinalities, covers)
        return tables

    def code_batches(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.code_batches`; in the order of the files."""
        coded, left = self._coded(schema)
        yield from self._resolved(coded, schema, left)

    def number_batches(self, names: Sequence[Hashable]) -> Iterator[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.number_batches`."""
        columns = [(self.names[j], self._kinds[j]) for j in self.positions(names)]
        query = self._projected(
            ", ".join(
                f"{number_text(name, kind) if is_decided(kind) else sent_text(name, kind)} AS x{j}"
                for j, (name, kind) in enumerate(columns)
            )
        )
        for batch in self._batches(query):
            rows = np.empty((batch.num_rows, len(columns)))
            for j in range(len(columns)):
                rows[:, j] = cell_numbers(batch.column(j))
            yield rows

    # Clipped sums are made of batches: for 20 columns that takes 0.7 times the processor time of sums in the query.

    def cells(self, names: Sequence[Hashable]) -> list:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.cells`."""
        query = self._projected(_sent([self._column(name) for name in names]))
        return column_cells(self._read(_method(query, "to_arrow_table", "arrow")))

    def key_counts(self, names: Sequence[Hashable]) -> list[Counter[tuple]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.key_counts`: by queries, else a batch of rows at a time."""
        import pyarrow as pa

        columns = [self._column(name) for name in names]
        found: list[Counter[tuple]] = [Counter() for _ in names]
        left = [j for j, column in enumerate(columns) if not self._grouped(column, found[j])]
        batches = self._batches(self._projected(_sent([columns[j] for j in left]))) if left else ()
        for batch in batches:
            for j, cells in zip(left, column_cells(pa.Table.from_batches([batch])), strict=True):
                found[j].update(key_counts([cells]))
        return found

    def _grouped(self, column: tuple[str, str], found: Counter[tuple]) -> bool:
        """Count cells that their content tells apart in a query, if these are such cells and it is not too much."""
        cell = grouped_text(*column)
        with contextlib.suppress(_TooMuchAtOnce):
            if cell is not None:
                query = self._projected(f"{cell} AS x").aggregate("x, count(*) AS n", "x")
                cells, numbers = column_cells(self._read(_method(query, "to_arrow_table", "arrow")))
                ((positions, keys),) = keyed_cells([cells])
                times = np.bincount(positions, weights=np.asarray(numbers), minlength=len(keys)).astype(np.int64)
                found.update(dict(zip(keys, times.tolist(), strict=True)))
                return True
        return False

    def unit_cells(self, names: Sequence[Hashable], unit: Hashable) -> Iterator[list]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.unit_cells`."""
        *columns, key = (self._column(name) for name in (*names, unit))
        if not is_divided(key[1]):
            yield from super().unit_cells(names, unit)
            return
        wanted = _sent([*columns, key])
        n_parts = max(1, -(-self._n_rows() * (len(columns) + 1) // _CELLS_OF_UNITS))
        for part in range(n_parts):
            rows = self._read(self._relation.filter, part_text(key, n_parts, part))
            query = self._read(rows.project, wanted)
            yield column_cells(self._read(_method(query, "to_arrow_table", "arrow")))

    def user_shares(self, visits: Visits, segment_length: int | None, grid: int) -> np.ndarray | None:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.user_shares`."""
        unit, state = self._column(visits.unit), self._column(visits.state)
        order = None if visits.order is None else self._column(visits.order)
        visited = state[1].removesuffix("[]") if order is None else state[1]
        known = is_decided(unit[1]) and decides(visited, visits.coding)
        if not (known and (order is None or is_ordered(order[1]))):
            return None
        odd = [] if order is None else [odd_text(*order)]
        if self._connection is None:  # texts of files were looked at
            odd += [unreadable_text(*column) for column in (unit, state, order) if column is not None]
        found = " OR ".join(f"({part})" for part in odd if part is not None)
        if found and self._read(lambda: self._relation.filter(found).project("1").limit(1).fetchall()):
            return None
        query = ShareQuery(self._relation, visits, unit, state, order, self.ordered, segment_length, grid)
        n_parts = max(1, -(-self._n_rows() // _VISITS_IN_ORDER))
        while n_parts <= _MOST_PARTS:
            # A part that does not fit in memory is divided, and the result is the same.
            with contextlib.suppress(_TooMuchAtOnce):
                total = np.zeros(visits.coding.n_states * (visits.coding.n_states + 1), dtype=np.int64)
                for part in range(n_parts):
                    found = self._read(query.fetch, n_parts, part)
                    total[np.asarray(found["cell"], dtype=np.int64)] += np.asarray(found["total"], dtype=np.int64)
                return total
            n_parts *= 8
        return None

    def _column(self, name: Hashable) -> tuple[str, str]:
        """Name and type of a column."""
        (position,) = self.positions([name])
        return self.names[position], self._kinds[position]

    def _n_rows(self) -> int:
        return int(self._read(lambda: self._relation.aggregate("count(*)").fetchall())[0][0])

    def _coded(self, schema: Schema) -> tuple[Any, list[int]]:
        """The relation with codes c0, c1, ..., and cells r0, ... of the columns whose positions are returned."""
        positions = self.positions(schema.variables)
        parts, left = [], []
        for j, (name, position) in enumerate(zip(schema.variables, positions, strict=True)):
            column, kind, made = self.names[position], self._kinds[position], coding(schema, name)
            parts.append(f"{code_text(column, kind, made)} AS c{j}")
            if not decides(kind, made):
                parts.append(f"{sent_text(column, kind)} AS r{j}")
                left.append(j)
        coded = self._projected(", ".join(parts))
        kept = " AND ".join(f"c{j} <> {DROPPED}" for j in range(len(schema)))
        return (self._read(coded.filter, kept) if left else coded), left

    def _projected(self, columns: str) -> Any:
        # Read, for some versions open the files again.
        return self._read(self._relation.project, columns)

    def _resolved(self, coded: Any, schema: Schema, left: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Codes of the records without an outside cell, where cells were left those of match_key."""
        import pyarrow

        for batch in self._batches(coded):
            columns = [batch.column(f"c{j}").to_numpy(zero_copy_only=False) for j in range(len(schema))]
            for j in left:
                undecided = columns[j] == UNDECIDED
                columns[j] = columns[j].astype(np.int64)
                cells = batch.column(f"r{j}").filter(pyarrow.array(undecided))
                columns[j][undecided] = cell_codes(cells, schema, schema.variables[j])
            yield kept_codes(columns)

    def _batches(self, query: Any) -> Iterator[Any]:
        """Arrow batches of a query's rows."""
        opened = _method(query, "to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
        reader = iter(self._read(opened, _ROWS_AT_ONCE))
        while (batch := self._read(next, reader, None)) is not None:
            yield batch

    def _read(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Call; if it fails, without the engine's own words, which may quote a record."""
        failure: type[OSError]
        try:
            return quietly(read, *arguments)
        except Exception as error:
            failure = _TooMuchAtOnce if type(error).__name__ == "OutOfMemoryException" else OSError
        # Outside of the except clause, so that the engine's error is not even this one's context.
        if self._connection is None:
            raise failure(
                "DuckDB failed while it read the relation; run its query to the end in DuckDB, which says why, and "
                "mend it there"
            )
        raise failure(
            "the files of data could not be read to their end; check that they are complete, of one format, and not "
            "being written to"
        )


class _TooMuchAtOnce(OSError):
    """A query that had to hold more than the memory it may use."""


def _sent(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{sent_text(name, kind)} AS x{j}" for j, (name, kind) in enumerate(columns))


def _method(query: Any, *names: str) -> Any:
    """The first of the methods that this version of DuckDB has."""
    return getattr(query, next(name for name in names if hasattr(query, name)))


def require_free(relation: Any) -> None:
    """Raise a RuntimeError where the connection of a DuckDB relation runs no query now; no record is read to find out.

    It has a result that nobody has fetched to its end, or a transaction that has failed, or it is closed.
    """
    with contextlib.suppress(Exception):  # whose own words are not attached
        quietly(relation.limit(0).fetchall)
        return
    raise RuntimeError(
        "data is on a DuckDB connection that runs no query now: fetch the result that is open on it to its end, end "
        "the transaction that failed, or pass a relation of another connection; nothing was spent on this question"
    )


def parquet_relation(files: Sequence[str]) -> tuple[Any, Any]:
    """A relation over Parquet files, and the connection of our own that it is on.

    Raises
    ------
    ValueError
        If they are not Parquet files, or differ in their columns.
    """
    import duckdb

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
    # A name is no pattern here: signs that would make it one are written as classes of themselves.
    names = ", ".join("'" + glob.escape(name).replace("'", "''") + "'" for name in files)
    query = f"SELECT * FROM read_parquet([{names}], hive_partitioning=false)"  # noqa: S608  the names are the caller's
    with contextlib.suppress(duckdb.Error):
        return connection.from_query(query), connection
    raise ValueError(
        f"data={list(files)!r} is not a Parquet file that DuckDB can open, or its files differ in their columns; "
        "name text files .csv or .tsv"
    )

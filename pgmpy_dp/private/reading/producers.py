"""Batches of columns from every kind of frame, relation and stream: one small class for each.

An engine scans and projects. It compares nothing, groups nothing and casts nothing, but for two things. Columns of a
type for which Arrow has no type that holds every cell are read as texts, as their type says. DuckDB is told the
declared texts, so that it sends places in a list of these and not each text: an ENUM, by bytes, whatever the collation.

Privacy
-------
A query to an engine depends on names and types of columns and on the schema alone. Cells are not coded here. The
connection and the settings of a relation or a lazy frame are the caller's, and so is a query of theirs that fails on a
cell: the message is ours and has no word of it, and it comes before anything is charged.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import weakref
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from pgmpy_dp.private.reading.arrow_cells import Cells, Column, cells_of, cells_of_objects, quietly, readily
from pgmpy_dp.private.reading.source_base import ROWS, Source, Spelled, without_its_words


class _Frame(Source):
    """Data of one kind of library.

    Parameters
    ----------
    data : object
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self.names = without_its_words(_failed(data), self._names)

    def _names(self) -> list[Any]:
        return list(self._data.columns)

    def _wanted(self, names: Sequence[Hashable]) -> list[Any]:
        """The columns as the data name them."""
        return [self.names[place] for place in self.positions(names)]


class _ArrowSource(_Frame):
    """Tables and batches of pyarrow."""

    def _names(self) -> list[Any]:
        return list(self._data.schema.names)

    def types(self) -> list[Any]:
        return list(self._data.schema.types)

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        chosen = self._data.select(self.positions(names))
        for batch in chosen.to_batches(ROWS) if isinstance(chosen, pa.Table) else [chosen]:
            yield batch.columns


_READ: weakref.WeakSet[pa.RecordBatchReader] = weakref.WeakSet()
"""Streams that were read here: a second pass would find no record, and charge for it."""


class _StreamSource(_Frame):
    """A stream of Arrow's batches, from whatever hands one out; it is read once, and names are looked up before."""

    ordered = False

    def __init__(self, data: Any) -> None:
        if isinstance(data, pa.RecordBatchReader):
            self._reader = data
        else:
            self._reader = quietly(pa.RecordBatchReader.from_stream, data)
        super().__init__(data)

    def _names(self) -> list[Any]:
        return list(self._reader.schema.names)

    def types(self) -> list[Any]:
        return list(self._reader.schema.types)

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        places = self.positions(names)
        if self._reader in _READ:
            raise ValueError(
                "data is a stream that was read before: it gives its records once; make one PrivateTable (or its like) "
                "of it and pass that each time, or pass a table or a path"
            )
        _READ.add(self._reader)
        for batch in _each(self._reader, _failed(self._data)):
            if not batch.schema.equals(self._reader.schema):
                raise OSError(
                    "a batch of data has other columns than its stream declares, before anything was charged; make a "
                    "stream in which each batch has the columns and types of its schema"
                )
            yield [batch.column(place) for place in places]


class _PandasSource(_Frame):
    """Frames of pandas: arrays of numbers, times and Arrow's types as they are, all others cell by cell."""

    guesses_types = True

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        columns = [pandas_columns(self._data.iloc[:, place]) for place in self.positions(names)]
        for start in range(0, max(1, len(self._data)), ROWS):
            yield [column(start, start + ROWS) for column in columns]


class _DaskSource(_Frame):
    """Dask's frames: partitions of pandas, one after the other."""

    ordered = False
    guesses_types = True

    def check_types(self, names: Sequence[Hashable]) -> None:
        """Refuse a frame whose objects Dask made texts, whatever `names` are: one odd cell makes a whole column so."""
        import pandas as pd

        for part in self._data.expr.walk():
            if type(part).__name__ == "FromPandas" and part.pyarrow_strings_enabled:
                dtypes = part.frame.dtypes if hasattr(part.frame, "dtypes") else []
                if not all(isinstance(dtype, pd.ArrowDtype) for dtype in dtypes):
                    raise ValueError(
                        "data is made by dask.dataframe.from_pandas, which turned columns of objects into texts: pass "
                        "the frame of pandas itself, or make it under "
                        "dask.config.set({'dataframe.convert-string': False})"
                    )

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        places = self.positions(names)
        chosen = self._data.iloc[:, places]
        for part in range(chosen.npartitions):
            frame = without_its_words(_failed(self._data), _computed, chosen.get_partition(part))
            yield from _PandasSource(frame).batches(list(frame.columns))


def _computed(frame: Any) -> Any:
    return frame.compute(scheduler="synchronous")


class _PolarsSource(_Frame):
    """Frames of polars, eager and lazy."""

    guesses_types = True

    def __init__(self, data: Any) -> None:
        import polars as pl

        self.ordered = isinstance(data, pl.DataFrame)
        super().__init__(data)

    def _names(self) -> list[Any]:
        return list(self._data.columns if self.ordered else self._data.collect_schema())

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        wanted = self._wanted(names)
        for part in self._parts(wanted):
            yield [_polars_column(part.get_column(name)) for name in wanted]

    def _parts(self, wanted: list[str]) -> Iterable[Any]:
        if self.ordered:
            return self._data.select([self._data.get_column(name) for name in wanted]).iter_slices(ROWS)
        # It takes names like "*" and "^a$" for patterns: give it one that only this name matches.
        chosen = self._data.select([f"^{re.escape(n)}$" if n == "*" or n.startswith("^") else n for n in wanted])
        failed = _failed(self._data)
        if hasattr(chosen, "collect_batches"):
            return _each(without_its_words(failed, lambda: chosen.collect_batches(chunk_size=ROWS)), failed)
        return without_its_words(failed, chosen.collect).iter_slices(ROWS)


def _polars_column(series: Any) -> Column:
    import polars as pl

    if series.dtype == pl.Object or str(series.dtype) in ("Int128", "UInt128"):
        return quietly(lambda: cells_of_objects(readily(series.to_list, lambda k: series[k], len(series))))
    # Without its name, which need not be one of Arrow's.
    return _one_array(quietly(series.alias("").to_arrow, compat_level=pl.CompatLevel.oldest()))


_ONE_RELATION = threading.RLock()
"""Held in a pass: a connection of DuckDB takes one query at a time, and a relation does not say whose it is."""

_AS_TEXT = ("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT", "TIME WITH TIME ZONE", "VARIANT")
"""Types of DuckDB for which Arrow has none that holds every cell."""

_MOST_DECLARED = 1 << 10  # DuckDB takes long to read a longer list


class _DuckDBSource(_Frame):
    """Relations of DuckDB, on a connection of the caller's."""

    ordered = False

    def types(self) -> list[Any]:
        return list(self._data.types)

    def check_types(self, names: Sequence[Hashable]) -> None:
        for place in self.positions(names):
            declared = str(self._data.types[place])
            unquoted = re.sub("'[^']*'|\"[^\"]*\"", "", declared)
            odd = [part for part in (*_AS_TEXT, "INTERVAL") if re.search(rf"\b{part}\b", unquoted)]
            if odd and declared not in (*_AS_TEXT, "INTERVAL"):
                raise ValueError(
                    f"column {self.names[place]!r} has the type {declared}: {odd[0]} inside of another type cannot be "
                    "handed over whole; cast it in the relation, to VARCHAR or to another type inside"
                )

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        types, places = list(map(str, self._data.types)), self.positions(names)
        texts = list(spelled) or [None] * len(places)
        cells = [_sent(self.names[place], types[place], texts[k]) for k, place in enumerate(places)]
        failed = (
            "DuckDB failed while it read the relation, before anything was charged. If a result of its connection has "
            "not been fetched to the end, fetch or close it; if another thread uses it, wait for that; else run the "
            "relation's query to its end in DuckDB, which says why, and mend it there"
        )
        wanted = ", ".join(f"{cell} AS x{place}" for place, cell in enumerate(itertools.chain(*cells)))
        with _ONE_RELATION:
            chosen = without_its_words(failed, self._data.project, wanted)
            opened = next(
                m for m in ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader") if hasattr(chosen, m)
            )
            reader = without_its_words(failed, getattr(chosen, opened), ROWS)
            try:
                for batch in _each(reader, failed):
                    columns = iter(batch.columns)
                    yield [_joined(*itertools.islice(columns, len(cell))) for cell in cells]
            finally:
                # An open reader makes any other query on its connection fail.
                quietly(reader.close)


def _sent(name: str, kind: str, texts: frozenset[str] | None) -> list[str]:
    """Return the expressions to select for a column; of texts, those that are declared and then any others."""
    cell = '"' + name.replace('"', '""') + '"'
    if kind in _AS_TEXT:
        return [f"{cell}::VARCHAR"]
    if kind == "INTERVAL":
        # Arrow's nanoseconds overflow beyond 292 years: such a length becomes a month, which is unreadable as it is.
        return [f"CASE WHEN abs(datepart('hour', {cell})) >= 2562047 THEN INTERVAL 1 MONTH ELSE {cell} END"]
    plain = sorted(text for text in texts or () if text.isprintable())
    if kind == "VARCHAR" and 0 < len(plain) <= _MOST_DECLARED:
        listed = ", ".join("'" + text.replace("'", "''") + "'" for text in plain)
        declared = f"TRY_CAST({cell} AS ENUM({listed}))"
        return [declared, f"CASE WHEN {declared} IS NULL THEN {cell} END"]
    return [cell]


def _joined(column: pa.Array, others: pa.Array | None = None) -> Column:
    """A column, where some of its cells came as `others`."""
    if others is None or others.null_count == len(others):
        return column
    first, second = cells_of(column), cells_of(others)
    places = np.where(np.asarray(others.is_valid()), second.places + len(first.listed), first.places)
    return Cells(places, [*first.listed, *second.listed])


class _IbisSource(_Frame):
    """Tables of ibis: the wanted columns, once; of DuckDB as of its relations, of SQLite cell by cell."""

    ordered = False

    def types(self) -> list[Any]:
        return list(self._data.schema().types)

    def check_types(self, names: Sequence[Hashable]) -> None:
        if self._backend() == "duckdb":
            self._relation(names).check_types(list(map(str, range(len(names)))))

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        backend = self._backend()
        if backend == "duckdb":
            yield from self._relation(names).batches(list(map(str, range(len(names)))), spelled)
        elif backend == "sqlite":
            yield from self._of_sqlite(names)
        else:
            table = without_its_words(_failed(self._data), self._chosen(names).to_pyarrow)
            yield from _ArrowSource(table).batches(table.column_names)

    def _backend(self) -> str:
        return str(self._data.get_backend().name)

    def _chosen(self, names: Sequence[Hashable]) -> Any:
        """The columns, named by their places."""
        return self._data.select(**{str(place): self._data[name] for place, name in enumerate(self._wanted(names))})

    def _query(self, names: Sequence[Hashable]) -> tuple[Any, str]:
        """The connection and the query; a table that ibis holds in memory is registered by asking for none of it."""
        import ibis

        chosen = self._chosen(names)
        without_its_words(_failed(self._data), chosen.limit(0).to_pyarrow)
        return self._data.get_backend().con, str(ibis.to_sql(chosen))

    def _relation(self, names: Sequence[Hashable]) -> _DuckDBSource:
        # Not to_pyarrow_batches: ibis 12 on DuckDB 2 calls a method that is gone, and leaves the connection in use.
        with _ONE_RELATION:
            connection, query = self._query(names)
            return _DuckDBSource(without_its_words(_failed(self._data), connection.sql, query))

    def _of_sqlite(self, names: Sequence[Hashable]) -> Iterator[list[Column]]:
        """Read cells of any type, whatever is declared, as SQLite allows: texts (in bytes), numbers and bytes."""
        connection, query = self._query(names)
        places = [f'"{place}"' for place in range(len(names))]
        cells = ", ".join(f"CASE typeof({p}) WHEN 'text' THEN CAST({p} AS BLOB) ELSE {p} END" for p in places)
        is_time = [self._data.schema()[name].is_timestamp() for name in self._wanted(names)]
        failed = _failed(self._data)
        rows = without_its_words(failed, connection.execute, f"SELECT {cells} FROM ({query})")  # noqa: S608
        try:
            while fetched := without_its_words(failed, rows.fetchmany, ROWS):
                columns = zip(*fetched, strict=True)
                yield [
                    cells_of_objects([*map(_moment, column)] if timed else list(column))
                    for column, timed in zip(columns, is_time, strict=True)
                ]
        finally:
            rows.close()


def _moment(cell: Any) -> Any:
    """A cell of a column that is declared to hold times: a time where it is the text of one."""
    try:
        return datetime.fromisoformat(cell.decode()) if isinstance(cell, bytes) else cell
    except ValueError:
        return cell


class ArraySource(Source):
    """An array of shape (rows, columns).

    Parameters
    ----------
    array : ndarray
    names : sequence of hashable
        Of its columns.
    """

    def __init__(self, array: np.ndarray, names: Sequence[Hashable]) -> None:
        self._array = array
        self.names = list(names)

    def types(self) -> list[Any]:
        return [self._array.dtype] * len(self.names)

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        for start in range(0, max(1, len(self._array)), ROWS):
            yield [_of_array(self._array[start : start + ROWS, place]) for place in self.positions(names)]


def _spark_source(data: Any) -> Source:
    from pgmpy_dp.private.reading.spark_source import SparkSource

    return SparkSource(data)


_KINDS: dict[str, Callable[[Any], Source]] = {
    "pandas": _PandasSource,
    "polars": _PolarsSource,
    "duckdb": _DuckDBSource,
    "ibis": _IbisSource,
    "dask": _DaskSource,
    "pyspark": _spark_source,
}


def source_of(data: Any) -> Source | None:
    """The source for a frame, a relation or a stream; None for anything else."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return _ArrowSource(data)
    if isinstance(data, pa.RecordBatchReader):
        return _StreamSource(data)
    for base in type(data).__mro__:
        library = base.__module__.split(".")[0].removeprefix("_")
        if library in _KINDS and hasattr(type(data), "columns"):
            return _KINDS[library](data)
    if hasattr(data, "__arrow_c_stream__"):
        with contextlib.suppress(Exception):  # a single column is a stream too
            return _StreamSource(data)
    return None


def pandas_columns(series: Any) -> Callable[[int, int], Column]:
    """Return the function from two places in a series to the column of the rows between."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # The last place is for missing values, whose code is -1.
        listed = cells_of(quietly(pandas_columns(pd.Series(dtype.categories)), 0, len(dtype.categories)))
        values = [*(listed.listed[place] for place in listed.places.tolist()), None]
        codes = series.array.codes
        return lambda start, stop: Cells(codes[start:stop].astype(np.int64) % len(values), values)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
        array = series.to_numpy()
        return lambda start, stop: _of_array(array[start:stop])
    if isinstance(dtype, pd.DatetimeTZDtype):
        ticks = pd.DatetimeIndex(series)
        whole, arrow_type = ticks.asi8, pa.timestamp(ticks.unit, "UTC")
        return lambda start, stop: _of_ticks(whole[start:stop], arrow_type)
    is_masked = dtype.kind in "biuf" and getattr(dtype, "itemsize", 16) <= 8
    if is_masked or isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "").startswith("pyarrow"):
        return lambda start, stop: _one_array(series.iloc[start:stop].array.__arrow_array__())

    def cells(start: int, stop: int) -> Cells:
        part = series.iloc[start:stop]
        return cells_of_objects(
            readily(lambda: part.to_numpy(dtype=object).tolist(), lambda k: part.iloc[k], len(part))
        )

    return lambda start, stop: quietly(cells, start, stop)


def _of_array(array: np.ndarray) -> Column:
    kind = array.dtype.kind
    if kind in "biuf" and array.dtype.itemsize <= 8:
        return pa.array(
            np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)), from_pandas=False
        )
    if kind in "mM" and (unit := np.datetime_data(array.dtype)) in (("s", 1), ("ms", 1), ("us", 1), ("ns", 1)):
        ticks = array.astype(array.dtype.newbyteorder("=")).view(np.int64)
        return _of_ticks(ticks, pa.duration(unit[0]) if kind == "m" else pa.timestamp(unit[0]))
    return quietly(cells_of_objects, list(array))


def _of_ticks(ticks: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
    """Times from whole numbers, of which the smallest is none."""
    ticks = np.ascontiguousarray(ticks)
    return pa.array(ticks, pa.int64(), mask=ticks == np.iinfo(np.int64).min).view(arrow_type)


def _one_array(array: Any) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _each(batches: Iterable[Any], failed: str) -> Iterator[Any]:
    """Batches one by one, with an error of our own where there is no next one."""
    iterator = iter(batches)
    while (batch := without_its_words(failed, next, iterator, None)) is not None:
        yield batch


def _failed(data: Any) -> str:
    library = type(data).__module__.split(".")[0].removeprefix("_")
    names = {"duckdb": "DuckDB", "pyspark": "Spark", "dask": "Dask", "polars": "polars", "ibis": "ibis"}
    library = names.get(library, f"the {type(data).__name__}")
    return (
        f"{library} failed while it read the data, before anything was charged; run the query to its end there, which "
        "says why, and mend it there"
    )

"""Frames of Spark: its workers code the records and count them; tables come here, or codes where rows are needed.

Workers run the functions of this package on batches of Arrow (`mapInArrow`), so a cell means there what it means here.
Spark scans, projects and hands over batches. It compares nothing and groups nothing. Each worker needs this package, in
this version.

What is coded stays in the session (`persist`): every cell is read once, before anything is charged. Counts are results
that Spark collects from tasks that ended, never accumulators, so a task that is tried again counts once.

Privacy
-------
As in :mod:`pgmpy_dp.private.reading.records`, it changes no table which batch or partition a record is in. Spark may
lose what it keeps with a worker, and then makes it again from the frame, which has to give the same records. If a query
of the caller's fails on a cell, what it says of the cell does not come out of here, nor into the log of this machine; a
cluster's log is the caller's.
"""

from __future__ import annotations

import math
import sys
import weakref
import zlib
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from pgmpy_dp.private.data.contingency import count_joint
from pgmpy_dp.private.data.joint_tables import LevelColumns
from pgmpy_dp.private.reading.arrow_cells import NOT_OURS, Column, filled, quietly
from pgmpy_dp.private.reading.records import CodedRecords, coded_batch
from pgmpy_dp.private.reading.source_base import ROWS, Source, Spelled
from pgmpy_dp.private.reading.variables import Variable
from pgmpy_dp.schema import Schema

_CELLS_AT_ONCE = 1 << 19  # of the tables that a task sends: 4 MB
_TASKS = 128  # send tables at most
_FAILED = (
    "Spark failed while it read the data, before anything was charged; run the query to its end there, which says why, "
    "and mend it there"
)
_LOST = (
    "Spark could not read the codes that it keeps; what was charged stays charged. Look at the session's log, and "
    "whether it has the memory and the workers that it had"
)


class SparkSource(Source):
    """A frame of Spark.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    ordered = False

    def __init__(self, frame: Any) -> None:
        self.names = list(frame.columns)
        self._types = [field.dataType for field in frame.schema.fields]
        # By position: Spark takes "a" and "A" for one name, and parses names.
        self._frame = frame.toDF(*(f"c{place}" for place in range(len(self.names))))

    def types(self) -> list[Any]:
        return [spark_type.simpleString() for spark_type in self._types]

    def check_types(self, names: Sequence[Hashable]) -> None:
        from pyspark.sql.pandas.types import to_arrow_type

        for name, place in zip(names, self.positions(names), strict=True):
            try:
                to_arrow_type(self._types[place])
            except Exception:
                raise ValueError(
                    f"the column {name!r} has Spark's type {self._types[place].simpleString()}, of which cells cannot "
                    "be handed over; cast it to string"
                ) from None

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        sent = quietly(self._chosen(names).mapInArrow, _sent, "batch binary")
        is_empty = True
        for row in _rows(sent):
            is_empty = False
            yield _unpacked(row.batch)
        if is_empty:
            yield [pa.nulls(0) for _ in names]

    def coded(self, schema: Schema) -> CodedRecords:
        """Records of which codes stay with the workers."""
        chosen = self._chosen(schema.variables)
        coded = quietly(chosen.mapInArrow, _Coding(schema), "matched binary, version string, batch binary")
        return _SparkRecords(coded.persist(), schema)

    def _chosen(self, names: Sequence[Hashable]) -> Any:
        self.check_types(names)
        return self._frame.select(*(f"c{place}" for place in self.positions(names)))


class _SparkRecords(CodedRecords):
    """Records whose codes a session keeps: one row for some ten thousands of them.

    Parameters
    ----------
    coded : pyspark.sql.DataFrame
        What `_Coding` makes, persisted.
    schema : Schema
    maps : list of ndarray or None, optional
        What the states of each variable became, see :meth:`merged`.
    whole : _SparkRecords, optional
        Those of which these are merged.
    """

    def __init__(
        self,
        coded: Any,
        schema: Schema,
        maps: Sequence[np.ndarray | None] | None = None,
        whole: _SparkRecords | None = None,
    ) -> None:
        self._coded, self._whole = coded, whole
        self._maps = [None] * len(schema) if maps is None else list(maps)
        if whole is None:
            weakref.finalize(self, _let_go, coded).atexit = False
            rows = list(_rows(coded.select("matched", "version"), at_once=True))
            _require_version({row.version for row in rows})
            parts = [
                np.zeros(2 + 2 * len(schema), np.int64),
                *(np.frombuffer(row.matched, np.int64) for row in rows),
            ]
            matched = np.sum(parts, axis=0)
        else:
            matched = whole.matched()
        super().__init__(schema, None, matched)

    def merged(self, schema: Schema, maps: Sequence[np.ndarray | None]) -> CodedRecords:
        if self._codes is not None:
            return super().merged(schema, maps)
        both = [m if old is None else old if m is None else m[old] for old, m in zip(self._maps, maps, strict=True)]
        return _SparkRecords(self._coded, schema, both, self)

    def _joint(self, covers: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        sizes = [math.prod(self._levels.sizes[j] for j in cover) for cover in covers]
        counted: list[np.ndarray] = []
        for group in _groups(sizes):
            counting = _Counting(self._levels, self._maps, covers[group])
            tables = quietly(self._coded.select("batch").coalesce(_TASKS).mapInArrow, counting, "counts binary")
            total = np.zeros(sum(sizes[group]), dtype=np.int64)
            for row in _rows(tables, _LOST, at_once=True):
                total += np.frombuffer(zlib.decompress(row.counts), np.int64)
            counted += np.split(total, np.cumsum(sizes[group])[:-1])
        return counted

    def _read(self) -> Iterator[list[np.ndarray]]:
        for row in _rows(self._coded.select("batch"), _LOST):
            yield _mapped(row.batch, self._maps)


class _Coding:
    """A function from batches of columns to rows of codes; it runs on a worker."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        variables = [Variable(self._schema, name) for name in self._schema.variables]
        for columns in _longer(batches):
            codes, matched = coded_batch(variables, columns)
            batch = _packed([pa.array(np.ascontiguousarray(column)) for column in codes])
            yield pa.record_batch({"matched": [matched.tobytes()], "version": [_version()], "batch": [batch]})


class _Counting:
    """A function from rows of codes to one row of tables; it runs on a worker."""

    def __init__(
        self, levels: LevelColumns, maps: Sequence[np.ndarray | None], covers: Sequence[tuple[int, ...]]
    ) -> None:
        self._levels, self._maps, self._covers = levels, maps, covers

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sizes = [math.prod(self._levels.sizes[j] for j in cover) for cover in self._covers]
        tables = [np.zeros(size, dtype=np.int64) for size in sizes]
        for batch in batches:
            for part in batch.column(0).to_pylist():
                columns = self._levels.beside(_mapped(part, self._maps), self._covers)
                for cover, table in zip(self._covers, tables, strict=True):
                    table += count_joint(columns, self._levels.sizes, cover)
        yield pa.record_batch({"counts": [zlib.compress(np.concatenate(tables).tobytes(), 1)]})


def _sent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches as they are, each packed in one cell; runs on a worker."""
    for columns in _longer(batches):
        yield pa.record_batch({"batch": [_packed(columns)]})


def _longer(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.Array]]:
    """Columns of longer batches: Spark's have 10,000 rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= ROWS:
            yield _columns(held)
            held = []
    if held:
        yield _columns(held)


def _columns(batches: list[pa.RecordBatch]) -> list[pa.Array]:
    return [pa.concat_arrays([batch.column(place) for batch in batches]) for place in range(batches[0].num_columns)]


def _packed(columns: Sequence[pa.Array]) -> bytes:
    batch = pa.record_batch(list(columns), names=[str(place) for place in range(len(columns))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _unpacked(packed: bytes) -> list[pa.Array]:
    with pa.ipc.open_stream(packed) as reader:
        return reader.read_next_batch().columns


def _mapped(packed: bytes, maps: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    columns = map(filled, _unpacked(packed))
    return [column if m is None else m[column] for column, m in zip(columns, maps, strict=True)]


def _groups(sizes: Sequence[int]) -> Iterator[slice]:
    """Consecutive tables of so many cells together, or one alone."""
    start = 0
    for stop in range(1, len(sizes) + 1):
        if stop == len(sizes) or sum(sizes[start : stop + 1]) > _CELLS_AT_ONCE:
            yield slice(start, stop)
            start = stop


def _rows(frame: Any, complaint: str = _FAILED, at_once: bool = False) -> Iterator[Any]:
    """The rows, partition by partition or of all tasks together, with errors that have no word of the data."""
    failed = False
    with _unlogged(frame):
        try:
            yield from quietly(frame.collect) if at_once else frame.toLocalIterator(prefetchPartitions=True)
        except NOT_OURS:
            raise
        except Exception:
            failed = True
    # Outside of the except clause, so that Spark's error is not even this one's context.
    if failed:
        if complaint is _FAILED:
            _require_version(_versions(frame))
        raise OSError(complaint)


@contextmanager
def _unlogged(frame: Any) -> Iterator[None]:
    """Switch off Spark's log on this machine in the block: it quotes cells of a query that fails."""
    try:
        context = frame.sparkSession.sparkContext
        level = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString()
    except Exception:  # a session of Spark Connect: its log is elsewhere
        yield
        return
    context.setLogLevel("OFF")
    try:
        yield
    finally:
        context.setLogLevel(level)


def _version() -> str:
    return str(sys.modules["pgmpy_dp"].__version__)


def _version_there(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the version that a worker has; it runs there, and imports nothing of this package before."""
    import pyarrow

    try:
        import pgmpy_dp

        version = pgmpy_dp.__version__
    except Exception:
        version = ""
    for _ in batches:
        yield pyarrow.record_batch({"version": [version]})


_version_there.__module__ = "__main__"  # so that it is sent as it is, and not by the name of its module


def _versions(frame: Any) -> set[str]:
    """Versions of this package that some workers have, "" for none; ours alone where that cannot be asked."""
    try:
        with _unlogged(frame):
            return {
                row.version
                for row in frame.sparkSession.range(0, 8, 1, 8).mapInArrow(_version_there, "version string").collect()
            }
    except Exception:
        return {_version()}


def _require_version(versions: set[str]) -> None:
    if others := sorted(versions - {_version()}):
        have = " and ".join(f"version {other}" if other else "none" for other in others)
        raise ModuleNotFoundError(
            f"Spark's workers need pgmpy_dp {_version()}, and some have {have}: install it for the Python of each "
            "worker"
        )


def _let_go(coded: Any) -> None:
    try:
        quietly(coded.unpersist)
    except Exception:  # the session has ended
        return

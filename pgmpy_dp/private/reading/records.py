"""Codes of all records, kept or read again, and the tables that are counted from them.

Privacy
-------
A record's row of codes is a function of its cells alone (:mod:`pgmpy_dp.private.reading.variables`), or there is none:
nothing here depends on how records were cut into batches, or on whether their codes are kept. The records are the same
in every pass: they are coded once, or are those of files that have not changed.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from pgmpy_dp.private.data.coding import coding
from pgmpy_dp.private.data.contingency import LARGEST, count_all, count_joint
from pgmpy_dp.private.data.joint_tables import LevelColumns, covering_scopes, marginal
from pgmpy_dp.private.reading.arrow_cells import Column
from pgmpy_dp.private.reading.source_base import EveryText, Source
from pgmpy_dp.private.reading.variables import Variable
from pgmpy_dp.schema import Schema


def memory() -> int:
    """Bytes that this machine or its container has; 0 where the system does not say."""
    sizes = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # no such function, or no such name
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # "max"
            continue
    return min(sizes, default=0)


MOST_KEPT = max(1 << 30, memory() // 4)
"""Cells of files of which codes are kept, mostly a byte each; more are read again in every pass, of which a search for
a network has hundreds. Codes of all other data are kept."""

_TABLES_KEPT = 1 << 22  # cells of joint tables that were counted while files were read: 32 MB
_ROWS_IN_BLOCK = 1 << 20


def spelled_texts(schema: Schema) -> list[frozenset[str] | None]:
    """The texts that each variable knows by their spelling, for readers of text files."""
    return [
        (EveryText if schema.reading(name).as_written else frozenset)(
            s for s in (*schema.states[name], *dict(coding(schema, name).texts)) if isinstance(s, str)
        )
        for name in schema.variables
    ]


class CodedRecords:
    """Records inside a schema as rows of codes.

    Parameters
    ----------
    schema : Schema
    codes : ndarray of shape (n, p), list of blocks, or None
        Column-major. A block is a list of p columns of some of the records. None: they are read again from `passes` in
        each pass.
    matched : ndarray of int64, shape (2 + 2 p,), or None
        How many records there are, are kept, and in each column have a declared state, and then a blank cell, in one of
        the two or in neither; None where these are not to be known.
    passes : callable, optional
        Gives batches of columns of codes, always the same ones.
    lines_without_record : pair of int, or None
        Of the data, where they are of lines that may be no record: those with one field too many, and all others.
    """

    def __init__(
        self,
        schema: Schema,
        codes: np.ndarray | list[list[np.ndarray]] | None,
        matched: np.ndarray | None,
        passes: Callable[[], Iterator[list[np.ndarray]]] | None = None,
        lines_without_record: tuple[int, int] | None = None,
    ) -> None:
        self.lines_without_record = lines_without_record
        self._schema, self._levels = schema, LevelColumns(schema)
        self._codes, self._passes = codes, passes
        self._matched = matched
        self._counted: dict[tuple[int, ...], np.ndarray] = {}

    @property
    def is_part(self) -> bool:
        """Whether these are some of the records, chosen after those outside the schema were dropped."""
        return self._matched is None

    def matched(self, grid: int = 1) -> np.ndarray | None:
        """Return numbers of records: all, kept; with a declared state, and with a blank cell, in each column."""
        return self._matched

    def counts(self, scopes: Sequence[Sequence[int]], grid: int = 1) -> list[np.ndarray]:
        """Exact tables of counts, one per scope of positions in the schema, of variables and then of levels.

        One pass for all of them.
        """
        if self._codes is not None:
            blocks = [list(self._codes.T)] if isinstance(self._codes, np.ndarray) else self._codes
            return count_all([self._levels.beside(block, scopes) for block in blocks], self._levels.sizes, scopes)
        missing = [tuple(scope) for scope in scopes if self._cover_of(scope) is None]
        if missing:
            self._count(covering_scopes(missing, self._levels.sizes, LARGEST), scopes)
        tables = []
        for scope in scopes:
            cover = self._cover_of(scope)
            assert cover is not None
            tables.append(marginal(self._counted[cover], cover, scope))
        return tables

    def codes(self) -> np.ndarray:
        """Codes of all records, shape (n, p), column-major, in the smallest type for all; kept from then on."""
        if not isinstance(self._codes, np.ndarray):
            blocks = list(self._read()) if self._codes is None else self._codes
            self._codes = joined(blocks, list(self._schema.cardinalities.values()))
        return self._codes

    def merged(self, schema: Schema, maps: Sequence[np.ndarray | None]) -> CodedRecords:
        """These records in fewer states: ``maps[j][k]`` is what state k of variable j became."""
        if self._codes is not None:
            blocks = [list(self._codes.T)] if isinstance(self._codes, np.ndarray) else self._codes
            kept = [merged_columns(columns, maps) for columns in blocks]
            return CodedRecords(schema, kept, self._matched, None, self.lines_without_record)

        def passes() -> Iterator[list[np.ndarray]]:
            return (merged_columns(columns, maps) for columns in self._read())

        return CodedRecords(schema, None, self._matched, passes, self.lines_without_record)

    def part(self, chosen: np.ndarray) -> CodedRecords:
        """Some of the records; nobody may ask how many match."""
        return CodedRecords(self._schema, self.codes()[chosen], None)

    def _read(self) -> Iterator[list[np.ndarray]]:
        assert self._passes is not None
        return self._passes()

    def _count(self, covers: Sequence[tuple[int, ...]], scopes: Sequence[Sequence[int]]) -> None:
        if sum(table.size for table in self._counted.values()) > _TABLES_KEPT:
            # Only what the scopes of this call do not lie in may go; the rest would have to be counted again.
            used = {self._cover_of(scope) for scope in scopes}
            self._counted = {cover: table for cover, table in self._counted.items() if cover in used}
        for cover, table in zip(covers, self._joint(covers), strict=True):
            self._counted[cover] = table.reshape([self._levels.sizes[j] for j in cover])

    def _joint(self, covers: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """The table of each cover, flat."""
        sizes = self._levels.sizes
        tables = [np.zeros(math.prod(sizes[j] for j in cover), dtype=np.int64) for cover in covers]
        for codes in self._read():
            columns = self._levels.beside(codes, covers)
            for cover, table in zip(covers, tables, strict=True):
                table += count_joint(columns, sizes, cover)
        return tables

    def _cover_of(self, scope: Sequence[int]) -> tuple[int, ...] | None:
        inside = [cover for cover in self._counted if set(scope) <= set(cover)]
        return min(inside, key=lambda cover: self._counted[cover].size, default=None)


def read_records(source: Source, schema: Schema) -> CodedRecords:
    """Code all records, in one pass: now, before anything is charged.

    Examples
    --------
    >>> from pgmpy_dp.private.reading.sources import open_source
    >>> import pyarrow as pa
    >>> schema = Schema({"a": ["no", "yes"], "b": [0, 1]}, other={"b": 1})
    >>> table = pa.table({"a": ["no", "yes", "?"], "b": [0, 5, 1]})
    >>> records = read_records(open_source(table), schema)
    >>> records.codes().tolist(), records.matched().tolist()
    ([[0, 0], [1, 1]], [3, 2, 2, 2, 0, 0])
    """
    schema.require_discrete()
    if (coded := source.coded(schema)) is not None:
        return coded
    cardinalities, spelled = list(schema.cardinalities.values()), spelled_texts(schema)
    variables = [Variable(schema, name) for name in schema.variables]
    kept: list[list[np.ndarray]] | None = []
    last: list[list[np.ndarray]] = []
    matched, cells = np.zeros(2 + 2 * len(schema), dtype=np.int64), 0
    with source.one_pass(schema.variables, spelled) as batches:
        for columns in batches:
            codes, numbers = coded_batch(variables, columns)
            matched += numbers
            cells += len(codes) * len(codes[0])
            if source.is_ours and cells > MOST_KEPT:
                kept, last = None, []
            if kept is not None:
                last.append(codes)
                if sum(len(codes[0]) for codes in last) >= _ROWS_IN_BLOCK:
                    kept.append(_block(last, cardinalities))
                    last = []
    if kept is not None:
        kept.append(_block(last, cardinalities))

    def passes() -> Iterator[list[np.ndarray]]:
        with source.one_pass(schema.variables, spelled) as batches:
            for columns in batches:
                yield coded_batch(variables, columns)[0]

    return CodedRecords(schema, kept, matched, passes, source.lines_without_record)


def coded_batch(variables: Sequence[Variable], columns: Sequence[Column]) -> tuple[list[np.ndarray], np.ndarray]:
    """Columns of codes of the records that count; how many there are, are kept, and match or are blank in each."""
    codes, matches, blanks = [], [], []
    keep = np.ones(len(columns[0]), dtype=bool)
    for variable, column in zip(variables, columns, strict=True):
        marks = variable.marks(column)
        blanks.append(np.count_nonzero(marks == variable.blank))
        declared = np.count_nonzero(marks < variable.states)
        matches.append(declared - blanks[-1] if variable.blank < variable.states else declared)
        column_codes = variable.codes(marks)
        keep &= column_codes != variable.states
        codes.append(column_codes)
    number = int(np.count_nonzero(keep))
    if number < len(keep):
        codes = [column[keep] for column in codes]
    return codes, np.array([len(keep), number, *matches, *blanks], dtype=np.int64)


def _block(batches: Sequence[Sequence[np.ndarray]], cardinalities: Sequence[int]) -> list[np.ndarray]:
    """Batches as one, each column in the smallest type."""
    types = [np.min_scalar_type(size - 1) for size in cardinalities]
    columns = [[batch[place] for batch in batches] for place in range(len(types))]
    return [
        np.concatenate([np.empty(0, dtype), *parts], dtype=dtype, casting="unsafe")
        for parts, dtype in zip(columns, types, strict=True)
    ]


def joined(blocks: Sequence[Sequence[np.ndarray]], cardinalities: Sequence[int]) -> np.ndarray:
    """One matrix of blocks of columns of codes, in the smallest type for all."""
    result = np.empty(
        (sum(len(columns[0]) for columns in blocks), len(cardinalities)),
        np.min_scalar_type(max(cardinalities) - 1),
        order="F",
    )
    for place in range(len(cardinalities)):
        parts = [np.empty(0, result.dtype), *(columns[place] for columns in blocks)]
        np.concatenate(parts, out=result[:, place], casting="unsafe")
    return result


def merged_columns(columns: Iterable[np.ndarray], maps: Sequence[np.ndarray | None]) -> list[np.ndarray]:
    """Columns of codes in fewer states, see :meth:`CodedRecords.merged`.

    Examples
    --------
    >>> merged = merged_columns([np.array([0, 2]), np.array([1, 0])], [np.array([0, 0, 1]), None])
    >>> joined([merged], [2, 2]).tolist()
    [[0, 1], [1, 0]]
    """
    return [c if places is None else places.astype(c.dtype)[c] for c, places in zip(columns, maps, strict=True)]

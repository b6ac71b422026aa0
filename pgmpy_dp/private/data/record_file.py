"""Files of records read a batch at a time, without an engine: text by its lines, Parquet by pyarrow.

Privacy
-------
A line of a text file is one record, whatever it holds: lines are mapped to records one by one, so files that differ by
one line are data that differ by one record at most. A parser that lets a quoted field span lines does not have this
property: one record with a lone quotation mark would swallow those that follow. This is why no engine reads text here.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from pgmpy_dp.private.data.coding import coding
from pgmpy_dp.private.data.frame import (
    Cells,
    column_cells,
    encode_cells,
    encoded_columns,
    joined_cells,
    kept_codes,
    key_counts,
    number_cells,
    quietly,
    undeclared,
)
from pgmpy_dp.private.data.header import header_names, missing_columns, named_columns, split_fields
from pgmpy_dp.private.data.pushdown import Source
from pgmpy_dp.private.data.text_file import CellReader, TextFile, cell_reader
from pgmpy_dp.schema import Schema, match_key

__all__ = ["SEPARATORS", "ParquetSource", "TextSource"]

SEPARATORS = {".csv": ",", ".tsv": "\t"}

_BYTES_AT_ONCE = 1 << 21
_ROWS_AT_ONCE = 1 << 17
_KEPT = 1 << 29  # bytes of text whose codes are kept: they take less
_GZIP = 10  # times as large, about, is a text that gzip has made small


class _Batches(Source):
    """What the two sources share: records come as batches of whole columns of cells."""

    ordered = True

    def code_batches(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.code_batches`; in the order of the files.

        A field of text that is spelled as a state, or as a cell that the schema recodes, is that; else an empty one is
        missing.
        """
        for columns in self._columns(schema.variables, _spelled(schema)):
            yield kept_codes([encode_cells(c, schema, name) for c, name in zip(columns, schema.variables, strict=True)])

    def unit_codes(self, schema: Schema, unit: Hashable) -> Iterator[tuple[list[np.ndarray], Any]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.unit_codes`; a batch's cells are coded before the next."""
        spelled = [*_spelled(schema), frozenset[str]()]
        batches = [
            (encoded_columns(columns, schema), owner)
            for *columns, owner in self._columns([*schema.variables, unit], spelled)
        ]
        number = len(schema) + len(undeclared(schema))
        codes = [np.concatenate([np.empty(0, np.int8), *(batch[0][j] for batch in batches)]) for j in range(number)]
        yield codes, joined_cells([owner for _, owner in batches])

    def number_batches(self, names: Sequence[Hashable]) -> Iterator[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.number_batches`."""
        for columns in self._columns(names, [frozenset()] * len(names)):
            yield number_cells(columns)

    def cells(self, names: Sequence[Hashable]) -> list:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.cells`; an empty field of a text is missing."""
        batches = list(self._columns(names, [frozenset()] * len(names)))
        return [joined_cells([batch[j] for batch in batches]) for j in range(len(names))]

    def key_counts(self, names: Sequence[Hashable]) -> list[Counter[tuple]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.key_counts`, in one pass."""
        found: list[Counter[tuple]] = [Counter() for _ in names]
        for columns in self._columns(names, [frozenset()] * len(names)):
            for total, column in zip(found, columns, strict=True):
                total.update(key_counts([column]))
        return found

    @abstractmethod
    def _columns(self, names: Sequence[Hashable], spelled: Sequence[frozenset[str]]) -> Iterator[list]: ...


def _spelled(schema: Schema) -> list[frozenset[str]]:
    return [
        frozenset(s for s in (*schema.states[name], *dict(coding(schema, name).texts)) if isinstance(s, str))
        for name in schema.variables
    ]


class TextSource(_Batches):
    """Text files whose first line holds names; each further line is a record, read on its own as text.

    Parameters
    ----------
    files : list of str
        Each also with ``.gz``, with the same names in the first line.
    separator : str
        One ASCII sign.
    written : TextFile, optional
        How it is written otherwise.

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If a first line has no names, or another than the first file's.

    Notes
    -----
    Quotation marks are doubled inside quotes; a quoted line break ends its record. A line with too few or too many
    fields is dropped, in silence. Bytes that cannot be decoded make their own field unreadable only. What messages say
    of the first line is in :mod:`pgmpy_dp.private.data.header`.
    """

    has_lines = True

    def __init__(self, files: Sequence[str], separator: str, written: TextFile | None = None) -> None:
        self._files = list(files)
        self._separator = separator
        self._written = written or TextFile(self._files)
        self._cell = cell_reader(self._written)
        lines = [_told(name, _first_line, name) for name in files]
        headers = [header_names(*found, separator, self._written) for found in zip(files, lines, strict=True)]
        self._header = lines[0]
        self.names = headers[0]
        for name, header in zip(files, headers, strict=True):
            if header != self.names:
                raise ValueError(f"{name!r} has another header than {files[0]!r}; pass files with the same columns")
        sizes = (os.path.getsize(name) * (_GZIP if _is_gzip(name) else 1) for name in files)
        self.keeps_codes = sum(sizes) <= _KEPT

    def positions(self, names: Sequence[Hashable]) -> list[int]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.positions`, with messages that know the first line."""
        names = named_columns(self.names, names)
        counts, file = Counter(self.names), self._files[0]
        message = missing_columns(file, self._header, self.names, self._separator, self._written, names)
        if message is not None:
            raise ValueError(message)
        repeated = [name for name in names if counts[str(name)] > 1]
        if repeated:
            raise ValueError(f"{file!r} has several columns named {repeated}; rename or remove all but one of each")
        return super().positions(names)

    def all_names(self) -> list[str]:
        """The names, to read every column; ValueError where some are numbers: such a first line may be a record.

        The numbers from 0 on, blanks aside, are names that libraries give.
        """
        fields = [name.encode(self._written.encoding).removeprefix(codecs.BOM_UTF8) for name in self.names]
        cells = [self._cell(field, frozenset()) if self._cell else field for field in fields]
        given = [name for name in self.names if name]
        if given != list(map(str, range(len(given)))) and any(match_key(cell)[0] == "number" for cell in cells):
            raise ValueError(
                f"the first line of {self._files[0]!r} has numbers for names, not quoted here in case it is a record; "
                "put a line of names before it, or pass columns"
            )
        return self.names

    def opened(self, names: Sequence[Hashable]) -> TextSource:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.opened`: itself."""
        for name in self._files:
            with _told(name, _open, name) as file:
                while _told(name, file.read, _BYTES_AT_ONCE):
                    pass
        return self

    def _columns(self, names: Sequence[Hashable], spelled: Sequence[frozenset[str]]) -> Iterator[list]:
        positions = self.positions(names)
        for lines in self._lines():
            fields = zip(self._fields(lines, positions), spelled, strict=True)
            yield [_texts(part, own, self._cell) for part, own in fields]

    def lines_without_record(self) -> int:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.lines_without_record`: those of another number of fields.

        An empty line counts nowhere.
        """
        return sum(sum(map(bool, lines)) - len(self._fields(lines, [0])[0]) for lines in self._lines())

    def _lines(self) -> Iterator[list[bytes]]:
        """The lines after the first of each file, without their ends."""
        for name in self._files:
            with _told(name, _open, name) as file:
                _told(name, file.readline)
                while lines := _told(name, file.readlines, _BYTES_AT_ONCE):
                    yield [line.rstrip(b"\r\n") for line in lines]

    def _fields(self, stripped: list[bytes], positions: Sequence[int]) -> list[list[bytes]]:
        """Some columns of the lines that have as many fields as the first."""
        separator, width = self._separator.encode(), len(self.names)
        if not any(b'"' in line for line in stripped):
            # The same as below, in a third of the time.
            whole = [line for line in stripped if line and line.count(separator) == width - 1]
            fields = separator.join(whole).split(separator) if whole else []
            return [fields[j::width] for j in positions]
        split = (
            split_fields(line, self._separator) if b'"' in line else line.split(separator) for line in stripped if line
        )
        rows = [row for row in split if len(row) == width]
        return [[row[j] for row in rows] for j in positions]


class ParquetSource(_Batches):
    """Parquet files, read by pyarrow where DuckDB is not installed, would fail, or has another type for a column.

    Parameters
    ----------
    files : list of str
        With columns of the same names.

    Raises
    ------
    OSError, ValueError
        As :class:`TextSource`; ValueError if a file is not a Parquet file.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)
        self._schemas = [self._schema(name) for name in files]
        self.names = list(self._schemas[0].names)
        for name, found in zip(files, self._schemas, strict=True):
            if found.names != self.names:
                raise ValueError(f"{name!r} has other columns than {files[0]!r}; pass files with the same columns")

    @staticmethod
    def _schema(file: str) -> Any:
        import pyarrow.parquet

        try:
            return pyarrow.parquet.read_schema(file)
        except (FileNotFoundError, PermissionError):
            raise
        except (pyarrow.ArrowException, OSError):
            pass  # its message may quote the file
        raise ValueError(f"{file!r} is not a Parquet file that pyarrow can open; name text files .csv or .tsv")

    def kinds(self, name: str) -> set[str | None]:
        """The types by which DuckDB has to know a column that it reads as pyarrow does, of all files; None: by none."""
        import pyarrow.parquet

        (position,) = self.positions([name])
        found = {_duckdb_kind(schema.types[position]) for schema in self._schemas}
        for file in self._files:
            stored = _told(file, pyarrow.parquet.read_metadata, file).schema
            leaves = (stored.column(k) for k in range(len(stored)))
            if any(leaf.physical_type == "INT96" and leaf.path.split(".")[0] == name for leaf in leaves):
                found.add(None)  # times in 96 bits, of which each reader cuts off other ones
        return found

    def opened(self, names: Sequence[Hashable]) -> ParquetSource:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.opened`: itself."""
        for _ in self._tables(names):
            pass
        return self

    def _columns(self, names: Sequence[Hashable], spelled: Sequence[frozenset[str]]) -> Iterator[list]:
        for table in self._tables(names):
            yield column_cells(table)

    def _tables(self, names: Sequence[Hashable]) -> Iterator[Any]:
        """The wanted columns, some rows at a time."""
        import pyarrow.parquet

        wanted = [self.names[j] for j in self.positions(names)]
        for name in self._files:
            with _told(name, pyarrow.parquet.ParquetFile, name) as file:
                batches = _told(name, lambda file=file: iter(file.iter_batches(_ROWS_AT_ONCE, columns=wanted)))
                while (batch := _told(name, next, batches, None)) is not None:
                    table = pyarrow.Table.from_batches([batch])
                    yield table.select([table.column_names.index(column) for column in wanted])


_SAME_IN_DUCKDB = {
    **{f"int{8 << k}": kind for k, kind in enumerate(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))},
    **{f"uint{8 << k}": kind for k, kind in enumerate(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"))},
    **{"bool": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE"},
    **{"string": "VARCHAR", "large_string": "VARCHAR", "binary": "BLOB", "large_binary": "BLOB"},
    **{"date32[day]": "DATE", "timestamp[us]": "TIMESTAMP", "timestamp[ns]": "TIMESTAMP_NS"},
}


def _duckdb_kind(kind: Any) -> str | None:
    """DuckDB's type for a column of Parquet of this type of Arrow, where cells are the same to both; else None."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _duckdb_kind(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _duckdb_kind(kind.value_type)
        return inner and f"{inner}[]"
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None:
        return "TIMESTAMP WITH TIME ZONE"
    return _SAME_IN_DUCKDB.get(str(kind))


def _told(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call; what is wrong with a file is told without a library's own words, which may quote it."""
    try:
        return quietly(call, *arguments)
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (EOFError, OSError, zlib.error, ValueError):  # pyarrow's errors are OSErrors and ValueErrors
        pass
    raise OSError(
        f"{name!r} is damaged and could not be read to its end; check that it is complete and not being written to, "
        "and compressed if it is named so"
    )


def _is_gzip(name: str) -> bool:
    return name.lower().endswith(".gz")


def _open(name: str) -> IO[bytes]:
    return gzip.open(name, "rb") if _is_gzip(name) else open(name, "rb")  # type: ignore[return-value]


def _first_line(name: str) -> bytes:
    with _open(name) as file:
        return file.readline()


def _texts(fields: list[bytes], spelled: frozenset[str], cell: CellReader | None) -> Cells:
    """Fields as cells, each different one once; empty ones are missing unless `spelled`."""
    seen: defaultdict[bytes, int] = defaultdict()
    seen.default_factory = seen.__len__
    places = np.fromiter(map(seen.__getitem__, fields), dtype=np.int64, count=len(fields))
    filled = "" in spelled
    return Cells(places, [(cell(field, spelled) if cell else field) if field or filled else None for field in seen])

"""Text files by their lines: separators are found by NumPy, fields are cut out by Arrow.

Privacy
-------
A line of a text file is one record, whatever it holds: lines are mapped to records one by one, so files that differ by
one line are data that differ by one record at most. A parser that lets a quoted field span lines does not have this
property: one record with a lone quotation mark would swallow those that follow. This is why no engine reads text here.
"""

from __future__ import annotations

import codecs
import gzip
from collections import Counter
from collections.abc import Generator, Hashable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa

from pgmpy_dp.private.data.header import header_names, missing_columns, named_columns, split_fields
from pgmpy_dp.private.data.text_file import TextFile, cell_reader
from pgmpy_dp.private.reading.arrow_cells import Cells, Column, dictionary_places
from pgmpy_dp.private.reading.data_files import FileMarks, told
from pgmpy_dp.private.reading.source_base import Source, Spelled
from pgmpy_dp.schema import match_key

SEPARATORS = {".csv": ",", ".tsv": "\t"}

_BYTES_AT_ONCE = 1 << 21


class TextSource(Source):
    """Text files whose first line has names, unless `written` has; each further line is a record, read on its own.

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
    fields is dropped, in silence, and counted (an empty one is not). Bytes that cannot be decoded make their own
    field unreadable only. What messages say of the first line is in :mod:`pgmpy_dp.private.data.header`.
    """

    is_ours = True
    lines_without_record = 0, 0

    def __init__(self, files: Sequence[str], separator: str, written: TextFile | None = None) -> None:
        self._files = list(files)
        self._marks = FileMarks(self._files)
        self._separator = separator
        self._written = written or TextFile(self._files)
        self._cell = cell_reader(self._written)
        if self._written.columns is not None:  # the first line is a record, which decides nothing
            self.names = list(self._written.columns)
            return
        lines = [told(name, _first_line, name) for name in files]
        headers = [header_names(name, line, separator, self._written) for name, line in zip(files, lines, strict=True)]
        self._header = lines[0]
        self.names = headers[0]
        for name, header in zip(files, headers, strict=True):
            if header != self.names:
                raise ValueError(f"{name!r} has another header than {files[0]!r}; pass files with the same columns")

    def positions(self, names: Sequence[Hashable]) -> list[int]:
        """As :meth:`~pgmpy_dp.private.reading.source_base.Source.positions`, with messages that know the first line."""
        if self._written.columns is not None:
            return super().positions(names)
        names = named_columns(self.names, names)
        counts, file = Counter(self.names), self._files[0]
        message = missing_columns(file, self._header, self.names, self._separator, self._written, names)
        if message is not None:
            raise ValueError(message)
        repeated = [name for name in names if counts[str(name)] > 1]
        if repeated:
            raise ValueError(f"{file!r} has several columns named {repeated}; rename or remove all but one of each")
        return super().positions(names)

    def has_texts(self, name: Hashable) -> bool:
        return True  # a field is a text

    def all_names(self) -> list[str]:
        """The names, to read every column; ValueError where some are numbers: such a first line may be a record.

        Libraries give columns the numbers from 0 on as names; these are taken, blanks aside.
        """
        if self._written.columns is not None:
            return [name for name in self.names if name]
        fields = [name.encode(self._written.encoding).removeprefix(codecs.BOM_UTF8) for name in self.names]
        cells = [self._cell(field, frozenset()) if self._cell else field for field in fields]
        named = [name for name in self.names if name]
        if named != list(map(str, range(len(named)))) and any(match_key(cell)[0] == "number" for cell in cells):
            raise ValueError(
                f"the first line of {self._files[0]!r} has numbers for names, not quoted here in case it is a record; "
                "put a line of names before it, or pass columns"
            )
        return self.names

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        positions = self.positions(names)
        spellings = list(spelled) or [frozenset()] * len(positions)
        self.lines_without_record = 0, 0
        self._marks.check()
        for name in self._files:
            for block in _blocks(name, self._written.columns is None):
                columns = self._fields(block, positions)
                yield [self._cells(fields, texts) for fields, texts in zip(columns, spellings, strict=True)]
        self._marks.check()

    def _fields(self, block: bytes, positions: Sequence[int]) -> list[pa.Array]:
        """Some fields, each with the sign after it, of the lines that have as many as the first, in order."""
        width, data = len(self.names), np.frombuffer(block, np.uint8)
        ends_line = data == ord("\n")
        cuts = np.flatnonzero(ends_line | (data == ord(self._separator)))
        last = np.flatnonzero(ends_line[cuts])  # of the cuts, those that end a line
        ends, starts = cuts[last], np.append(0, cuts[last[:-1]] + 1)
        whole = np.diff(last, prepend=-1) == width
        odd = ~whole if width > 1 else np.ones(len(last), dtype=bool)
        if b'"' in block:
            quoted = np.searchsorted(ends, np.flatnonzero(data == ord('"')))
            whole[quoted], odd[quoted] = False, True
        # Lines that are not as most are, one by one.
        lines = [(k, block[starts[k] : ends[k]].rstrip(b"\r\n")) for k in np.flatnonzero(odd).tolist()]
        whole[[k for k, line in lines if not line]] = False
        split = {k: split_fields(line, self._separator) for k, line in lines if b'"' in line}
        rows = [(k, row) for k, row in split.items() if len(row) == width]
        wider = np.diff(last, prepend=-1) == width + 1
        longer = sum(len(split[k]) == width + 1 if k in split else bool(line) and wider[k] for k, line in lines)
        others = sum(bool(line) and not whole[k] for k, line in lines) - len(rows) - longer
        self.lines_without_record = self.lines_without_record[0] + int(longer), self.lines_without_record[1] + others
        offsets = np.append(0, cuts + 1).astype(np.int64)
        fields = pa.Array.from_buffers(pa.large_binary(), len(cuts), [None, pa.py_buffer(offsets), pa.py_buffer(block)])
        first = last[whole] - (width - 1)
        columns = [fields.take(pa.array(first + place)) for place in positions]
        if not rows:
            return columns
        order = pa.array(np.argsort([*np.flatnonzero(whole), *(k for k, _ in rows)], kind="stable"))
        more = [pa.array([row[place] + b"\n" for _, row in rows], pa.large_binary()) for place in positions]
        return [pa.concat_arrays(parts).take(order) for parts in zip(columns, more, strict=True)]

    def _cells(self, fields: pa.Array, spelled: frozenset[str] | None) -> Cells:
        """Each different field once; empty ones are missing unless `spelled`."""
        coded = fields.dictionary_encode()
        filled = spelled is not None and "" in spelled
        listed: list[Any] = []
        for field in coded.dictionary.to_pylist():
            content = field[:-1].rstrip(b"\r") if field[-1:] == b"\n" else field[:-1]
            listed.append(self._cell_of(content, spelled) if content or filled else None)
        return Cells(dictionary_places(coded), listed)

    def _cell_of(self, field: bytes, spelled: frozenset[str] | None) -> Any:
        if self._cell is None:
            return field
        if spelled is not None:
            return self._cell(field, spelled)
        try:
            return field.decode(self._written.encoding)
        except UnicodeError:
            return field


def _blocks(name: str, has_header: bool) -> Iterator[bytes]:
    """Whole lines but those of names, some at a time."""
    with told(name, _open, name) as file:
        if has_header:
            told(name, file.readline)
        rest: list[bytes] = []
        while block := told(name, file.read, _BYTES_AT_ONCE):
            end = block.rfind(b"\n") + 1
            if end:
                yield b"".join([*rest, block[:end]])
                rest = []
            rest.append(block[end:])
        if any(rest):
            yield b"".join([*rest, b"\n"])


def _open(name: str) -> IO[bytes]:
    return gzip.open(name, "rb") if name.lower().endswith(".gz") else open(name, "rb")  # type: ignore[return-value]


def _first_line(name: str) -> bytes:
    with _open(name) as file:
        return file.readline()

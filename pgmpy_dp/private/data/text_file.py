"""The spelling of a text file of records: its delimiter, its encoding and its numbers. This opens nothing."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgmpy_dp.schema.numerals import THOUSANDS, checked_signs, numeral, plain_numeral

CellReader = Callable[[bytes, frozenset[str]], Any]
"""From the bytes of a field, and texts that are taken as they are, to the cell that it is."""

UNREADABLE = b"\xff"
"""Stands for a field that cannot be decoded, or is surely not a number: no state matches it."""

_ESCAPES = ("\\u0041", "xn--bcher-kva", "+AGE-", "~{VyPD~}", "\x1b$B$\x1b(B")
"""What other encodings write other signs by, in bytes of ASCII: some of them warn, or take long, on odd ones."""


@dataclass(frozen=True)
class TextFile:
    """A text file of records, or several, that are not written as ``.csv`` and ``.tsv`` files are by default.

    Wherever records may be a path, they may be this: in :class:`~pgmpy_dp.PrivateTable`,
    :class:`~pgmpy_dp.PrivateSequences`, :class:`~pgmpy_dp.PrivateVectors`, :func:`~pgmpy_dp.learn` and every ``fit``
    of records (a file of a graph's edges is another thing).

    Parameters
    ----------
    path : str, Path, or list of these
        As it would be passed alone. With a `delimiter` the name may have any ending, such as ``.txt``; a file whose
        name ends in ``.gz`` is unpacked.
    delimiter : str, optional
        One ASCII sign between fields. Default: a comma, a tab in ``.tsv``.
    encoding : str, default "utf-8"
        By its name in Python: ``"cp1252"`` (Windows, Western Europe), ``"latin-1"``, ``"cp932"``. Encodings
        in which a line feed, the delimiter or a quotation mark is no byte of its own, such as UTF-16, are refused.
    decimal : {".", ","}, default "."
        Sign before the fraction of a number.
    thousands : str, optional
        Sign between groups of three digits: a comma, a point, an apostrophe, an underscore or a blank, which stands
        for no-break blanks too. Default: none.
    columns : list of str, optional
        Names of all fields of a line, for a file whose first line is a record like all others. A field with the empty
        name is never read: one of row names, say, or what is behind a delimiter at the end of each line.

    Raises
    ------
    TypeError, ValueError
        For options that cannot be used, and when the file is opened: where its first line does not fit them.

    Notes
    -----
    What a field means depends on that field alone. It is decoded; one that cannot be is outside of any schema. If it is
    spelled as a state of its variable in a schema, it is that state. If it is written as a number of this file, blanks
    around it aside, then it is that number: ``1,5`` is 1.5 with ``decimal=","``. Any other field is a text, to be
    compared with states as everywhere (:func:`pgmpy_dp.schema.cells.match_key`): ``47.11`` is 47.11. One exception:
    with ``decimal=","``, ``1.500`` is outside of any schema unless thousands are declared, for it would be 1500 to one
    reader and 1.5 to another.

    Examples
    --------
    >>> TextFile("survey.csv", delimiter=";", encoding="cp1252", decimal=",", thousands=".")
    TextFile(path='survey.csv', delimiter=';', encoding='cp1252', decimal=',', thousands='.', columns=None)
    """

    path: str | Path | Sequence[str | Path]
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        parts = self.path if isinstance(self.path, list | tuple) else [self.path]
        if not parts or not all(isinstance(part, str | Path) for part in parts):
            raise TypeError(f"path={self.path!r} names no file; pass a path, or a list of paths")
        for name in ("delimiter", "encoding", "decimal", "thousands"):
            value = getattr(self, name)
            if not (isinstance(value, str) or (value is None and name in ("delimiter", "thousands"))):
                raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass a text")
        checked_signs("", self.decimal, self.thousands)
        sign = self.delimiter
        if sign is not None and (len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0+-'):
            raise ValueError(f"delimiter={sign!r} is not a single sign such as ';', ',', '|' or '\\t'; pass one")
        names = self.columns
        if names is not None and (isinstance(names, str) or not all(isinstance(name, str) for name in names)):
            raise TypeError(f"columns={names!r} is no list of texts; pass the name of each field, '' for one without")
        if names is not None and not any(names):
            raise ValueError(f"columns={names!r} names nothing; pass the name of each field of a line")
        if not _is_known(self.encoding):
            raise ValueError(
                f"encoding={self.encoding!r} is not a text encoding that Python knows; pass 'utf-8', 'cp1252' "
                "(Windows), 'latin-1' or another"
            )
        if not _is_read_by_lines(self.encoding, sign or ","):
            raise ValueError(
                f"encoding={self.encoding!r} cannot be read by lines: line feeds, quotation marks or the delimiter are "
                "not bytes of their own in it; save the file as UTF-8 (in Excel 'CSV UTF-8'), or pass another delimiter"
            )


def cell_reader(written: TextFile) -> CellReader | None:
    r"""Return the function from a file's fields to cells; None where bytes are what they mean, in UTF-8.

    Examples
    --------
    >>> read = cell_reader(TextFile("a.csv", encoding="cp1252", decimal=",", thousands="."))
    >>> [read(field, frozenset({"0,5"})) for field in (b"gro\xdf", b"-1.234,5", b"1,5", b"0,5", b"1.23", b"\x81")]
    ['groß', '-1234.5', '1.5', '0,5', '1.23', b'\xff']
    """
    encoding, decimal = written.encoding, written.decimal
    is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    if is_utf8 and decimal == "." and written.thousands is None:
        return None
    number = re.compile(numeral(decimal, THOUSANDS.get(written.thousands or "", "")))
    doubtful = re.compile(numeral(decimal, ".")) if decimal == "," and written.thousands != "." else None

    def read(field: bytes, spelled: frozenset[str]) -> Any:
        try:
            # One byte order mark less would be read otherwise in the first field of a line than in others.
            text = field.decode("utf-8" if is_utf8 else encoding)
        except UnicodeError:
            return UNREADABLE
        if text in spelled:
            return text
        stripped = text.strip()
        if match := number.fullmatch(stripped):
            return plain_numeral(match)
        return UNREADABLE if doubtful and doubtful.fullmatch(stripped) else text

    return read


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
        "a".encode(encoding)  # refused for those that are not of text
    except (LookupError, ValueError):
        return False
    return True


def _is_read_by_lines(encoding: str, delimiter: str) -> bool:
    """Whether bytes of ASCII are signs of ASCII, and those that part lines and fields are never inside another sign."""
    plain = [*map(chr, range(128)), *_ESCAPES]
    if any(_decoded(text.encode(), encoding) != text for text in plain):
        return False
    for first in range(128, 256):
        alone = _decoded(bytes([first]), encoding)
        for sign in f'\r\n"{delimiter}':
            both = _decoded(bytes([first, ord(sign)]), encoding)
            if both is not None and (alone is None or both != alone + sign):
                return False
    return True


def _decoded(content: bytes, encoding: str) -> str | None:
    try:
        return content.decode(encoding)
    except ValueError:
        return None

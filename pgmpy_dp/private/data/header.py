"""The first line of a text file: the names that it has, and what to do where it does not fit. Opens nothing.

Privacy
-------
Names of columns are public. In a file without names the first line is a record; so messages quote it only where at
least half of the names that are looked for are there, but for blanks, quotation marks or case. Otherwise they tell how
many fields and delimiters it has, or at which byte it is in another encoding. Nothing here depends on another line.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence

from pgmpy_dp.private.data.text_file import TextFile
from pgmpy_dp.schema import match_key
from pgmpy_dp.shown import quantity

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MARKS = (  # the longer ones first
    (codecs.BOM_UTF32_LE, "is UTF-32"),
    (codecs.BOM_UTF32_BE, "is UTF-32"),
    (codecs.BOM_UTF16_LE, "is UTF-16"),
    (codecs.BOM_UTF16_BE, "is UTF-16"),
    (b"PK\x03\x04", "is a workbook or an archive"),
    (b"PAR1", "is a Parquet file"),
    (b"\x1f\x8b", "is packed by gzip, without .gz in its name"),
)
_NAMES, _SIGNS, _NEAR = 30, 60, 5  # at most, of a first line that is quoted


def header_names(file: str, line: bytes, separator: str, written: TextFile) -> list[str]:
    """Names in the first line of a file; ValueError where it is not written so, or has none."""
    for mark, kind in _MARKS:
        if line.startswith(mark):
            raise ValueError(f"{file!r} {kind}, by its first bytes: save it as text in UTF-8 or name it as what it is")
    # Without line feeds a carriage return ends the header, and what follows are records, which decide nothing here.
    head = line.split(b"\r")[0].rstrip(b"\n")
    if b"\0" in head:
        raise ValueError(f"the first line of {file!r} has zero bytes, as in UTF-16 or no text: save it as UTF-8")
    if line.startswith(codecs.BOM_UTF8) and not _is_utf8(written):
        raise ValueError(f"{file!r} begins with the mark of UTF-8: leave out encoding={written.encoding!r}")
    if not head.removeprefix(codecs.BOM_UTF8):
        raise ValueError(f"the first line of {file!r} has no names; it must name the columns")
    if head != line.rstrip(b"\r\n") or line.endswith(b"\r"):
        raise ValueError(
            f"{file!r} has carriage returns inside its first line: save it with line feeds, which alone end a line"
        )
    line = head.removeprefix(codecs.BOM_UTF8)
    try:
        line.decode(written.encoding)
    except UnicodeError as error:
        place, likely = getattr(error, "start", 0), {"encoding": _likely(line, written)}
        if separator.encode() not in line and (sign := max(_DELIMITERS, key=lambda sign: line.count(sign.encode()))):
            likely |= {"delimiter": sign} if sign.encode() in line else {}
        raise ValueError(
            f"the first line of {file!r} is not {written.encoding} at its byte {place + 1}. "
            f"{_advice(file, written, **likely)}, or save the file as UTF-8"
        ) from None
    if hint := re.fullmatch(rb'"?sep=(.)"?', line, re.IGNORECASE):
        sign = hint[1].decode("ascii", "replace")
        raise ValueError(
            f"the first line of {file!r} tells Excel 'sep={sign}' and has no names: remove that line. "
            f"{_advice(file, written, delimiter=sign)}"
        )
    rows = csv.reader([line.decode("utf-8", "surrogateescape") + "\n", "next"], delimiter=separator)
    try:
        next(rows)
    except csv.Error:
        raise ValueError(f"the first line of {file!r} is too long to be names; it must name the columns") from None
    if rows.line_num > 1:
        raise ValueError(f"the first line of {file!r} ends inside quotation marks: put all names on one line")
    return [field.decode(written.encoding) for field in split_fields(line, separator)]


def named_columns(available: Sequence[str], names: Sequence[Hashable]) -> list[Hashable]:
    """`names` as the file has them: blanks around a name in the file are no part of it, unless they are asked for.

    Examples
    --------
    >>> named_columns(["age", " sex", "job ", " job"], ["age", "sex", " job", "income"])
    ['age', ' sex', ' job', 'income']
    """
    wanted = {str(name) for name in names}
    bare: dict[str, list[str]] = {}
    for name in available:
        bare.setdefault(name.strip(), []).append(name)
    return [
        same[0] if str(name) not in available and len(same := bare.get(str(name), [])) == 1 and same[0] not in wanted
        else name
        for name in names
    ]  # fmt: skip


def missing_columns(
    file: str, line: bytes, available: Sequence[str], separator: str, written: TextFile, names: Sequence[Hashable]
) -> str | None:
    """Return the complaint about a first line that has another delimiter or lacks some of the names; else None."""
    line = line.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    counts = Counter(available)
    missing = [name for name in names if counts[str(name)] == 0]
    others = [sign for sign in _DELIMITERS if sign != separator and line.count(sign.encode())]
    alone = len(available) == 1 and written.delimiter is None and bool(others)
    if not missing and not alone:
        return None
    here = _n_present(available, names)
    fields = {sign: _decoded(split_fields(line, sign), written) for sign in others}
    best = max(others, key=lambda sign: (_n_present(fields[sign], names), len(fields[sign])), default=None)
    if best is not None and (alone or _n_present(fields[best], names) > here):
        is_header = not missing or _is_header(fields[best], names)
        what = "one column" if len(available) == 1 else f"{len(available)} columns"
        seen = f" ({_quoted(available)})" if is_header else ""
        record = "" if is_header else "; if it is a record, put a line of names before it"
        return (
            f"the header of {file!r} is {what}{seen} by the delimiter {separator!r}, and has "
            f"{line.count(best.encode())} {_DELIMITERS[best]}. {_advice(file, written, delimiter=best)}{record}"
        )
    told = f"{file!r} has no column for the variables {missing}; "
    if not _is_header(available, names):
        told += f"its first line has {quantity(available, 'field')}, not quoted here in case it is a record; "
    else:
        near = {name: _nearest(str(name), available) for name in missing[:_NEAR]}
        told += "".join(f"{name!r} may be {likely!r} there; " for name, likely in near.items() if likely is not None)
        told += f"the header is {_quoted(available)}; "
    if not _is_utf8(written) and _utf8(line) not in (None, *_decoded([line], written)):
        told += f"the header is UTF-8 too: leave out encoding={written.encoding!r} if signs look wrong; "
    return (
        f"{told}the first line must name the columns as the schema or the arguments do: rename them there, or remove "
        "these variables"
    )


def split_fields(line: bytes, separator: str) -> list[bytes]:
    """Fields of one line that has quotation marks; none where it cannot be read."""
    try:
        row = next(csv.reader([line.decode("utf-8", errors="surrogateescape")], delimiter=separator))
    except csv.Error:
        return []
    return [field.encode("utf-8", errors="surrogateescape") for field in row]


def _is_utf8(written: TextFile) -> bool:
    return codecs.lookup(written.encoding).name in ("utf-8", "utf-8-sig")


def _utf8(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _decoded(fields: Sequence[bytes], written: TextFile) -> list[str]:
    return [field.decode(written.encoding, "replace") for field in fields]


def _likely(line: bytes, written: TextFile) -> str:
    """An encoding that the line may have."""
    for encoding in ("utf-8", "cp1252"):
        if codecs.lookup(encoding).name != codecs.lookup(written.encoding).name:
            try:
                line.decode(encoding)
            except UnicodeDecodeError:
                continue
            return encoding
    return "..."


def _advice(file: str, written: TextFile, **options: str) -> str:
    """Return the words that say how to pass these options too, beside those that were passed."""
    passed = {"delimiter": written.delimiter, "encoding": written.encoding, **options}
    default = {"delimiter": None, "encoding": "utf-8"}
    python = ", ".join(
        f"{name}={value!r}" for name, value in passed.items() if value != default[name] or name in options
    )
    shell = " ".join(f"--{name} {'tab' if value == chr(9) else repr(value)}" for name, value in options.items())
    more = (
        " (decimal=',' or --decimal , too, if its numbers are written 1,5)" if options.get("delimiter") == ";" else ""
    )
    return f"Pass TextFile({file!r}, {python}), or {shell} on the command line{more}"


def _plain(name: str) -> str:
    """A name without what often differs: blanks and quotation marks around it, byte order marks, case, composition."""
    return unicodedata.normalize("NFC", name).strip(" \t\xa0\u202f\u200b\ufeff\"'").casefold()


def _n_present(available: Sequence[str], names: Sequence[Hashable]) -> int:
    """Return how many of the names are there, or nearly; numbers do not count, which records have too."""
    plain = {_plain(field) for field in available}
    return sum(_plain(str(name)) in plain and match_key(str(name))[0] == "text" for name in names)


def _is_header(available: Sequence[str], names: Sequence[Hashable]) -> bool:
    return 2 * _n_present(available, names) >= max(len(names), 1)


def _nearest(name: str, available: Sequence[str]) -> str | None:
    plain = {_plain(field): field for field in available}
    matches = difflib.get_close_matches(_plain(name), plain, n=1)
    return plain[matches[0]] if matches else None


def _quoted(available: Sequence[str]) -> str:
    shown = [repr(name if len(name) <= _SIGNS else f"{name[:_SIGNS]}...") for name in available[:_NAMES]]
    return ", ".join(shown) + (f" and {len(available) - _NAMES} more" if len(available) > _NAMES else "")

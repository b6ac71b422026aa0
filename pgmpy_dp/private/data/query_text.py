"""DuckDB expressions for the codes and numbers of cells: texts of SQL, made of public facts only.

Every expression is total: casts of texts are TRY_CASTs, and nothing else can fail on a value, nor on a text that is no
UTF-8 (``trim`` does, and takes the whole connection with it; regular expressions match no such text). DuckDB's cast of
a text to a double rounds correctly, as Python's does, and gives the same infinities and zeros beyond the range.

No cell is decided by more than itself. So texts are compared as blobs, which have no collation, and columns of floats
are not decided here at all: DuckDB 2 replaces ``isnan(x)`` and ``x >= 3`` by constants where a file's statistics, which
leave NaN out, seem to allow it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime

from pgmpy_dp.private.data.coding import TRUTH, UNDECIDED, Coding, Decided

__all__ = [
    "code_text",
    "grouped_text",
    "decides",
    "is_decided",
    "is_divided",
    "is_ordered",
    "key_text",
    "match_texts",
    "missing_text",
    "number_text",
    "odd_text",
    "order_text",
    "quoted",
    "sent_text",
    "unreadable_text",
    "visits_text",
]

_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""The texts that match_key reads as numbers, once white space is stripped."""

_SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""What str.strip strips."""

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_NUMBERS = (*_INTEGERS, "BOOLEAN")
_FLOATS = ("FLOAT", "DOUBLE")
_VIA_TEXT = ("VARCHAR", "ENUM", "DECIMAL", "HUGEINT", "UHUGEINT")
_ZONED = "TIMESTAMP WITH TIME ZONE"
_TIMES = ("DATE", "TIMESTAMP", _ZONED)  # of whole microseconds; seconds and milliseconds fail beyond their range
_FIRST_SECOND = round(datetime(2, 1, 1, tzinfo=UTC).timestamp())
_LAST_SECOND = round(datetime(9998, 12, 31, tzinfo=UTC).timestamp())
_FEW_CUTS = 8  # up to here a sum of comparisons takes less time than a tree of them
_MOST_LISTED = 1 << 12
_SPACE = f"[{_SPACES}]"
_TRUTH_SIGNS = ", ".join(sorted({str(ord(word[0])) for words in TRUTH.values() for word in words}))


def is_decided(kind: str) -> bool:
    """Whether a query can code the cells of a column of this type; the others are left to match_key.

    Examples
    --------
    >>> is_decided("DECIMAL(9,2)"), is_decided("TIMESTAMP"), is_decided("DOUBLE")
    (True, False, False)
    """
    return kind.split("(")[0] in (*_NUMBERS, *_VIA_TEXT) and not kind.endswith("]")


def decides(kind: str, made: Coding) -> bool:
    """Whether a query codes every cell of a column of this type, so that none is `UNDECIDED`."""
    return _decided(kind, made) not in (Decided.NOTHING, Decided.SOME_TEXTS)


def _decided(kind: str, made: Coding) -> Decided:
    if not is_decided(kind):
        return Decided.NOTHING
    return made.by_number(kind in _INTEGERS) if kind in _NUMBERS else made.by_text()


def quoted(name: str) -> str:
    """A column's name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def code_text(name: str, kind: str, made: Coding) -> str:
    """Code of a cell: 0, 1, ..., or `DROPPED`, or `UNDECIDED`."""
    decided = _decided(kind, made)
    if decided is Decided.NOTHING:
        return str(UNDECIDED)
    cell = quoted(name)
    absent = f"{cell} IS NULL"
    if decided is Decided.WHOLE_NUMBERS:
        wide = "HUGEINT" if kind == "UBIGINT" else "BIGINT"
        whole = [(f"{number}::{wide}", code) for number, code in made.whole_numbers()]
        return _first(_found(f"{cell}::{wide}", whole, made), _unmatched(absent, made))
    listed = [(_double(number), code) for number, code in made.numbers]
    if decided is Decided.NUMBERS:
        value = f"({cell}::DOUBLE + 0.0::DOUBLE)"
        if not made.cuts:
            return _first(_found(value, listed, made), _unmatched(absent, made))
        piece = _whole_interval(cell, kind, made) if kind in _INTEGERS else None
        number = _first(_found(value, listed, made), piece or _interval(value, made))
        return f"CASE WHEN {absent} THEN {made.missing} ELSE {number} END"
    text = cell if kind == "VARCHAR" else f"{cell}::VARCHAR"
    spellings = [(f"encode({_literal(spelling)})", code) for spelling, code in made.spellings()]
    usual = _found(f"encode({text})", spellings, made)
    if decided is Decided.SOME_TEXTS:
        return _first(usual, f"CASE WHEN {absent} THEN {made.missing} ELSE {UNDECIDED} END")
    if decided is Decided.TEXTS:
        return _first(usual, _unmatched(absent, made))
    value = f"({_number(text)} + 0.0::DOUBLE)"
    codes = {truth: code for truth in TRUTH if (code := made.of_number(truth)) != made.outside}
    arms = [f"WHEN {_is_number(text)} THEN {_first(_found(value, listed, made), _interval(value, made))}"]
    arms += [f"WHEN {_is_one_of(text, TRUTH[truth])} THEN {code}" for truth, code in codes.items()]
    return _first(usual, f"CASE {' '.join(arms)} WHEN {absent} THEN {made.missing} ELSE {made.outside} END")


def number_text(name: str, kind: str) -> str:
    """A cell as a double, NULL if it is not a number, for columns that a query can decide."""
    cell = quoted(name)
    if kind in _NUMBERS:
        return f"{cell}::DOUBLE"
    text = cell if kind == "VARCHAR" else f"{cell}::VARCHAR"
    # Most texts that are no numbers end here: a look at the first sign takes a hundredth of matching.
    sign = f"ord({text})"
    arms = [f"WHEN NOT ({sign} BETWEEN 9 AND 57 OR {sign} > 127 OR {sign} IN ({_TRUTH_SIGNS})) THEN NULL"]
    arms += [f"WHEN {_is_number(text)} THEN {_number(text)}"]
    arms += [f"WHEN {_is_one_of(text, words)} THEN {truth}" for truth, words in TRUTH.items()]
    return f"CASE {' '.join(arms)} END::DOUBLE"


def sent_text(name: str, kind: str) -> str:
    """A cell as it is sent to where match_key decides it."""
    cell = quoted(name)
    if kind in ("HUGEINT", "UHUGEINT"):
        return f"{cell}::VARCHAR"  # some versions send 16 bytes
    if kind == "INTERVAL":
        # Sent in nanoseconds, which overflow beyond 292 years: those become one of a month, which is unreadable.
        return f"CASE WHEN abs(datepart('hour', {cell})) >= 2562047 THEN INTERVAL 1 MONTH ELSE {cell} END"
    return cell


def grouped_text(name: str, kind: str) -> str | None:
    """What tells cells of a column of this type apart by their content, whatever else it holds; None for other types.

    Examples
    --------
    >>> grouped_text("a", "BIGINT"), grouped_text("a", "DOUBLE")
    ('"a"', None)
    """
    cell = quoted(name)
    return cell if kind in _NUMBERS else _bytes(cell) if kind == "VARCHAR" else None


def unreadable_text(name: str, kind: str) -> str | None:
    """Whether a text is no UTF-8; None where no cell can be one."""
    cell = quoted(name)
    return f"{cell} IS NOT NULL AND NOT regexp_full_match({cell}, '(?s).*')" if kind == "VARCHAR" else None


def is_divided(kind: str) -> bool:
    """Whether a query can take all rows of a column of this type whose cells have the same match key at once."""
    return is_decided(kind) or kind in _FLOATS


def is_ordered(kind: str) -> bool:
    """Whether a query can put the cells of a column of this type in the order of :func:`~.frame.ranks`.

    Examples
    --------
    >>> is_ordered("TIMESTAMP"), is_ordered("TIMESTAMP_NS")
    (True, False)
    """
    return is_decided(kind) or kind in _TIMES


def match_texts(name: str, kind: str) -> list[str]:
    """Columns that together are equal where the cells' match keys are, all NULL where a cell is missing.

    For columns that a query can decide, divide (NaN are no NULL there), or put in order. Texts are blobs, which no
    collation of a connection compares in its own way.
    """
    cell = quoted(name)
    if kind in _TIMES:
        return [f"epoch_us({_moment(name, kind)})"]
    if kind in (*_NUMBERS, *_FLOATS):
        return [f"({cell}::DOUBLE + 0.0::DOUBLE)"]
    number = f"({number_text(name, kind)} + 0.0::DOUBLE)"
    text = cell if kind == "VARCHAR" else f"{cell}::VARCHAR"
    return [number, f"CASE WHEN {number} IS NULL THEN {_bytes(text)} END"]


def missing_text(name: str) -> str:
    """Whether a cell is missing, in a column that a query can decide."""
    return f"{quoted(name)} IS NULL"


def order_text(parts: Sequence[str]) -> str:
    """The order of match keys for the columns of :func:`match_texts`: missing ones, numbers, texts."""
    if len(parts) == 1:
        return f"{parts[0]} ASC NULLS FIRST"
    number, text = parts
    return f"({text} IS NOT NULL) ASC, {number} ASC NULLS FIRST, {text} ASC NULLS FIRST"


def odd_text(name: str, kind: str) -> str | None:
    """Whether a cell is after all none that :func:`match_texts` tells apart; None where no cell can be.

    Years that Python does not have, or that are written in other than four digits.
    """
    if kind not in _TIMES:
        return None
    cell, moment = quoted(name), _moment(name, kind)
    # Not a comparison with a text: for times of a zone it needs an extension.
    inside = f"CASE WHEN isfinite({moment}) THEN epoch({moment}) BETWEEN {_FIRST_SECOND} AND {_LAST_SECOND} END"
    return f"{cell} IS NOT NULL AND NOT coalesce({inside}, false)"


def _bytes(text: str) -> str:
    """What to group by. Something is put behind it, as DuckDB 1.2 fails on blobs of a file's dictionary of texts."""
    return f"(encode({text}) || ''::BLOB)"


def _moment(name: str, kind: str) -> str:
    """A time in microseconds, NULL beyond their range: a cast that fails would tell of the cell."""
    return f"TRY_CAST({quoted(name)} AS TIMESTAMP)" if kind == "DATE" else quoted(name)


def visits_text(name: str, kind: str, separator: str | None) -> tuple[str, str]:
    """A cell of several visits as a list of cells, and their type. For lists of decided types, and decided types.

    Some of the list's cells may be empty texts, which are no visits, but none is before a visit.
    """
    cell = quoted(name)
    if kind.endswith("[]"):
        return cell, kind.removesuffix("[]")
    if kind in _NUMBERS:
        return f"CASE WHEN {missing_text(name)} THEN [] ELSE [{cell}] END", kind
    text = cell if kind == "VARCHAR" else f"{cell}::VARCHAR"
    between = f"[{_SPACES}]+" if separator is None else f"(?:{''.join(map(_escaped, separator))})+"
    first = f"regexp_replace({text}, {_literal('^' + between)}, '')"
    return f"regexp_split_to_array({first}, {_literal(between)})", "VARCHAR"


def _escaped(sign: str) -> str:
    return f"\\x{{{ord(sign):x}}}"


def key_text(codes: Sequence[str], cardinalities: Sequence[int]) -> str:
    """Number of the cell of a joint table, last variable fastest, from the columns of its codes.

    Examples
    --------
    >>> key_text(["c0", "c4"], [2, 3])
    '(c0::INTEGER*3+c4)'
    """
    text = f"{codes[0]}::{'INTEGER' if math.prod(cardinalities) < 1 << 31 else 'BIGINT'}"
    for code, cardinality in zip(codes[1:], cardinalities[1:], strict=True):
        text = f"({text}*{cardinality}+{code})"
    return text


def _found(value: str, listed: Sequence[tuple[str, int]], made: Coding) -> str:
    """Code of the listed value that is equal, NULL if none is."""
    if not listed:
        return "NULL"
    kind = "TINYINT" if made.n_states <= 127 else "INTEGER"
    values, codes = ", ".join(value for value, _ in listed), ", ".join(str(code) for _, code in listed)
    # As two lists: DuckDB then keeps a column's dictionary as one and looks up its entries only. A CASE with an arm for
    # each state takes twice the time.
    return f"list_extract([{codes}]::{kind}[], list_position([{values}], {value}))"


def _interval(value: str, made: Coding) -> str:
    """Code of a number, which is not NULL or NaN, by how many of the cuts it reaches."""
    if 0 < len(made.cuts) <= _FEW_CUTS and made.codes == tuple(range(len(made.codes))):
        return "(" + " + ".join(f"({value} >= {_double(cut)})::INTEGER" for cut in made.cuts) + ")"

    def between(first: int, last: int) -> str:
        if first == last:
            return str(made.codes[first])
        half = (first + last) // 2
        above, below = between(half + 1, last), between(first, half)
        return f"CASE WHEN {value} >= {_double(made.cuts[half])} THEN {above} ELSE {below} END"

    return between(0, len(made.cuts))


def _whole_interval(cell: str, kind: str, made: Coding) -> str | None:
    """The same for a column of integers, from a list of the codes of all that lie among the cuts; None if too many."""
    first, last = math.ceil(made.cuts[0]) - 1, math.ceil(made.cuts[-1])
    if last - first >= _MOST_LISTED or max(abs(first), abs(last)) >= 2**53:
        return None
    codes = [made.codes[bisect_right(made.cuts, number)] for number in range(first, last + 1)]
    wide = "HUGEINT" if kind == "UBIGINT" else "BIGINT"
    place = f"(least(greatest({cell}::{wide}, {first}), {last}) - {first} + 1)::BIGINT"
    return f"list_extract({codes}, {place})"


def _unmatched(absent: str, made: Coding) -> str:
    if made.missing == made.outside:
        return str(made.outside)
    return f"CASE WHEN {absent} THEN {made.missing} ELSE {made.outside} END"


def _first(found: str, otherwise: str) -> str:
    return otherwise if found == "NULL" else f"coalesce({found}, {otherwise})"


def _is_number(text: str) -> str:
    return f"regexp_full_match({text}, {_literal(f'{_SPACE}*{_NUMBER}{_SPACE}*')})"


def _number(text: str) -> str:
    """The number of a text that is one: what is not white space, by a pattern without a part that is no UTF-8."""
    return f"TRY_CAST(regexp_extract({text}, {_literal(f'^{_SPACE}*({_NUMBER}){_SPACE}*$')}, 1) AS DOUBLE)"


def _is_one_of(text: str, words: Sequence[str]) -> str:
    pattern = f"{_SPACE}*({'|'.join(words)}){_SPACE}*"
    return f"regexp_full_match({text}, {_literal(pattern)})"


def _double(number: float) -> str:
    # From a text: a decimal literal would be rounded twice.
    return f"'{number!r}'::DOUBLE"


def _literal(text: str) -> str:
    """A text as SQL writes it; a zero character, which no literal can hold, as a call."""
    return "||".join("'" + part.replace("'", "''") + "'" for part in text.split("\0")).replace("||", "||chr(0)||")

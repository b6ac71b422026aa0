"""The identity of cells: one key for each value of a table, by that value alone.

:func:`match_key` maps one value to a key, and two values are one when their keys are equal. What counts as equal is
public, and there are four answers:

``"meaning"``, of states
    Numbers, truth values and their texts are numbers: ``1``, ``1.0``, ``True``, ``"1"``, ``"1.0"`` and ``"True"`` are
    the same state, and the text ``"nan"`` is as missing as a NaN.
``"code"``, of columns of codes
    A text is itself, so ``"007"``, ``"7"``, ``"+7"`` and ``"7.0"`` are four. A whole number is the text of its digits,
    a truth value ``"True"`` or ``"False"``. A float is no code, unless it is a whole number below 2**53: those are what
    a missing cell makes of a frame's integers.
``"unit"``, of identifiers of units, and of linked keys as texts
    The same, in bytes, for which a text need not be UTF-8; and any float is its digits.
``"integer"``, of linked keys as integers
    Whole numbers and their texts: ``7``, ``7.0``, ``"7"``, ``"007"`` and ``"7.0"`` are one. Anything else is missing.

The key of a value depends on that value alone. This matters for privacy. One stray text turns a whole pandas column of
integers into objects, one missing value turns it into floats, and one fraction turns booleans into numbers. If matching
followed the type of the *column*, one record could change how every other record is counted. A schema in which two
states share a key is refused.

A time is a whole number of nanoseconds, whatever type of column it is in, and a state says it as one ISO text:

* a time without a zone ``2020-01-31T12:00:00``, with a fraction of 6 digits, or 9, where it has one;
* a date, or a time at midnight without a zone, ``2020-01-31``;
* a time with a zone the same moment in UTC, ``2020-01-31T11:00:00+00:00``;
* a duration ``P1DT2H3M4.5S``, ``-P1D``, ``PT0S``: days, hours, minutes and seconds that are not zero.

Times outside the years 1 to 9999 and durations of more than 999,999,999 days are outside of every schema. So are
durations of months or years, which have no fixed length.
"""

from __future__ import annotations

import math
import numbers
import re
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Literal

import numpy as np

INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends a program from outside; all else that a cell raises is of the record, a `BaseException` too."""

MISSING = ("missing",)
"""Key of what is missing."""

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")  # linear in the length of any text
_WORDS = {"True": 1.0, "true": 1.0, "TRUE": 1.0, "False": 0.0, "false": 0.0, "FALSE": 0.0}
_WORDS |= {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "NaN": math.nan}
"""As Python and pandas write them: of numbers and one stray text a library makes a column of texts."""

Identity = Literal["meaning", "code", "unit", "integer"]
"""What counts as equal: of states, of codes, of units (and linked keys as texts), of linked keys as integers."""

_WHOLE = re.compile(rb"\s*([+-]?[0-9]+)(\.0*)?\s*")  # in ASCII alone
_DIGITS = 1000  # of a whole number at most: beyond some thousands Python writes none
_EXACT_FLOATS = 2.0**53
_EXACTLY = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_UNREADABLE = ("unreadable",)
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400 * 10**9
_LONGEST = 999_999_999 * _DAY
_NANOSECONDS = {"W": 7 * _DAY, "D": _DAY, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3}
_NANOSECONDS["ns"] = 1
_PARTS = {"ps": 10**3, "fs": 10**6, "as": 10**9}  # of a nanosecond


def match_key(value: object, identity: Identity = "meaning") -> tuple:
    """Key under which a value is compared with others: the one place that says which cells are the same.

    Total and silent: it never raises and never warns, whatever the value, because the values of records pass through
    it. Missing values (None, NaN, NaT, pandas' NA) share one key, which only a declared state ``None`` has too.

    Parameters
    ----------
    value : object
        One cell of a table, one state, or the identifier of a unit.
    identity : {"meaning", "code", "unit", "integer"}
        What counts as equal; see the module.

    Returns
    -------
    tuple
        Hashable; equal exactly for values that are counted as the same.

    Examples
    --------
    >>> match_key(1) == match_key("1.0") == match_key(True)
    True
    >>> match_key("a") == match_key("A")
    False
    >>> [match_key(cell, "code") for cell in ("02116", 2116, True)]
    [('text', '02116'), ('text', '2116'), ('text', 'True')]
    >>> match_key(7, "unit"), match_key("007", "unit"), match_key(" 007", "integer")
    (('unit', b'=7'), ('unit', b'=007'), ('unit', b'=7'))
    """
    try:
        return _KEYS[identity](value)
    except INTERRUPTS:
        raise
    except BaseException:  # an odd object in a record must not become an observable exception
        return _UNREADABLE


def _meaning_key(value: Any) -> tuple:
    # What most cells are, first: what follows tells these exact types nothing else, and takes five times as long.
    if type(value) is int or type(value) is float:
        return _number_key(_to_float(value))
    if type(value) is str:
        return _text_key(value)
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return MISSING
    if isinstance(value, bool | np.bool_):
        return _number_key(float(value))
    if isinstance(value, str):
        return _text_key(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return _text_key(bytes(value).decode("utf-8"))  # one that is no UTF-8 is unreadable
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return MISSING
    if isinstance(value, np.datetime64):
        return ("text", moment_text(_numpy_moment(value), False))
    if isinstance(value, np.timedelta64 | timedelta) or type(value).__name__ == "MonthDayNano":
        return ("text", _duration_text(duration_nanoseconds(value)))
    if isinstance(value, np.ndarray):
        # Times one by one: as a list, those of nanoseconds are integers.
        return _meaning_key(list(value) if value.ndim and value.dtype.kind in "mM" else value.tolist())
    if isinstance(value, list | tuple):
        return ("tuple", *(match_key(part) for part in value))
    if isinstance(value, datetime):
        return ("text", _datetime_text(value))
    if isinstance(value, date):
        return ("text", value.isoformat())
    if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real) and value.imag == 0:
        value = value.real
    if isinstance(value, numbers.Real | Decimal):
        # Through float64 always: a column of integers becomes one of floats when some other record is missing.
        return _number_key(_to_float(value))
    return _text_key(str(value))


def _code_key(value: Any) -> tuple:
    if isinstance(value, str):
        return ("text", str.__str__(value))
    if _is_list(value):
        return ("tuple", *(match_key(part, "code") for part in value))
    name = _unit_name(value)
    if name is None:
        return _meaning_key(value)  # missing, or unreadable
    if isinstance(value, float | np.floating | complex | np.complexfloating) and not _is_exact(float(value.real)):
        return _UNREADABLE
    return ("text", name[1:].decode("utf-8"))


def _unit_key(value: Any) -> tuple:
    name = _unit_name(value)
    return MISSING if name is None else ("unit", name)


def _unit_name(value: Any) -> bytes | None:
    """Return what tells a unit from others; None for nobody's."""
    if isinstance(value, bytes | bytearray | memoryview):
        return b"=" + bytes(value)
    if isinstance(value, str):
        return b"=" + str.__str__(value).encode("utf-8", "surrogatepass")
    if _is_list(value):
        parts = [_unit_name(part) for part in value]
        return b"*" + b"".join(b"-" if part is None else b"%d:%b" % (len(part), part) for part in parts)
    key = match_key(value)
    if key == MISSING or key[0] == "unreadable":
        return None
    if key[0] == "text":  # times and lengths of time, objects that are spelled so
        return b"=" + key[1].encode("utf-8", "surrogatepass")
    if isinstance(value, bool | np.bool_):
        return b"=" + str(bool(value)).encode()
    if isinstance(value, int | np.integer):
        return b"=%d" % int(value)
    if isinstance(value, Decimal):
        # The digits of 1E+999999999 fill the memory.
        whole = value.adjusted() < _DIGITS and value == value.to_integral_value()
        return b"=%d" % int(value) if whole else b"=" + str(value.normalize(_EXACTLY)).encode()
    if key[0] == "number" and isinstance(value, float | np.floating | complex | np.complexfloating):
        return b"=%d" % int(key[1]) if _is_exact(key[1]) else b"=%a" % key[1]
    # What is like a number as a text (an object of some class) is that text.
    return b"=" + str(value).encode("utf-8", "surrogatepass")


def _integer_key(value: Any) -> tuple:
    if isinstance(value, bool | np.bool_):
        return MISSING
    if isinstance(value, float | np.floating):  # from 1e16 on one is spelled with an exponent
        return ("unit", b"=%d" % int(value)) if value.is_integer() else MISSING
    text = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    match = _WHOLE.fullmatch(text)
    return ("unit", b"=%d" % int(match[1])) if match and len(match[1]) < _DIGITS else MISSING


def _is_list(value: Any) -> bool:
    # pyarrow's interval is a tuple, and a length of time
    return isinstance(value, list | tuple | np.ndarray) and type(value).__name__ != "MonthDayNano"


def _is_exact(number: float) -> bool:
    """Whether a float is a whole number that no other one is rounded to."""
    return abs(number) < _EXACT_FLOATS and float(number).is_integer()


_KEYS = {"meaning": _meaning_key, "code": _code_key, "unit": _unit_key, "integer": _integer_key}


def moment_text(nanoseconds: int, in_utc: bool) -> str:
    """The text of a moment that is so many nanoseconds after the beginning of 1970, in UTC or without a zone.

    Raises
    ------
    ValueError, OverflowError
        Outside the years 1 to 9999.

    Examples
    --------
    >>> moment_text(0, False), moment_text(1_500_000_000, False), moment_text(0, True)
    ('1970-01-01', '1970-01-01T00:00:01.500000', '1970-01-01T00:00:00+00:00')
    """
    days, rest = divmod(nanoseconds, _DAY)
    day = date.fromordinal(_EPOCH + days).isoformat()
    if in_utc:
        return f"{day}T{clock_text(rest)}+00:00"
    return f"{day}T{clock_text(rest)}" if rest else day


def clock_text(nanoseconds: int) -> str:
    """The text of a time of day; ValueError outside the day.

    Examples
    --------
    >>> clock_text(0), clock_text(86_399 * 10**9 + 1)
    ('00:00:00', '23:59:59.000000001')
    """
    if not 0 <= nanoseconds < _DAY:
        raise ValueError("not a time of a day")
    seconds, part = divmod(nanoseconds, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if part % 1000:
        return f"{text}.{part:09d}"
    return f"{text}.{part // 1000:06d}" if part else text


def duration_nanoseconds(value: Any) -> int:
    """Length of a duration: of a timedelta (pandas' too), one of NumPy that is not NaT, or an interval of pyarrow's.

    Raises
    ------
    ValueError, KeyError
        If it is of months or years, which have no fixed length, or longer than a timedelta can be.

    Examples
    --------
    >>> duration_nanoseconds(timedelta(hours=1)) == duration_nanoseconds(np.timedelta64(60, "m")) == 3600 * 10**9
    True
    """
    if isinstance(value, np.timedelta64):
        nanos = _numpy_nanoseconds(value)
    elif isinstance(value, timedelta):
        nanos = value.days * _DAY + value.seconds * 10**9 + value.microseconds * 1000 + getattr(value, "nanoseconds", 0)
    elif value.months:
        raise ValueError("months have no fixed length")
    else:
        nanos = value.days * _DAY + value.nanoseconds
    if not -_LONGEST <= nanos <= _LONGEST:
        raise ValueError("a longer time than any")
    return int(nanos)


def _duration_text(nanoseconds: int) -> str:
    days, rest = divmod(abs(nanoseconds), _DAY)
    seconds, part = divmod(rest, 10**9)
    fraction = f".{part:09d}".rstrip("0") if part else ""
    parts = ((seconds // 3600, "", "H"), (seconds // 60 % 60, "", "M"), (seconds % 60, fraction, "S"))
    clock = "".join(f"{number}{more}{unit}" for number, more, unit in parts if number or more)
    text = (f"{days}D" if days else "") + (f"T{clock}" if clock else "")
    return ("-P" if nanoseconds < 0 else "P") + (text or "T0S")


def _datetime_text(value: datetime) -> str:
    """:func:`moment_text` of a datetime, by the attributes that pandas' has too."""
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    part = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    days = date(value.year, value.month, value.day).toordinal() - _EPOCH
    nanos = days * _DAY + seconds * 10**9 + part
    offset = value.utcoffset()
    return moment_text(nanos if offset is None else nanos - duration_nanoseconds(offset), offset is not None)


def _numpy_moment(value: np.datetime64) -> int:
    unit, step = np.datetime_data(value.dtype)
    if unit not in ("Y", "M"):
        return _numpy_nanoseconds(value)
    months = int(value.astype(np.int64)) * step * (12 if unit == "Y" else 1)
    return (date(1970 + months // 12, months % 12 + 1, 1).toordinal() - _EPOCH) * _DAY


def _numpy_nanoseconds(value: np.datetime64 | np.timedelta64) -> int:
    unit, step = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * step
    if unit not in _PARTS:
        return ticks * _NANOSECONDS[unit]
    whole, rest = divmod(ticks, _PARTS[unit])
    if rest:
        raise ValueError("not a whole number of nanoseconds")
    return whole


def _to_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _number_key(number: float) -> tuple:
    return MISSING if math.isnan(number) else ("number", number + 0.0)  # + 0.0 turns -0.0 into 0.0


def _text_key(text: str) -> tuple:
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return _number_key(float(stripped))
    return _number_key(_WORDS[stripped]) if stripped in _WORDS else ("text", text)

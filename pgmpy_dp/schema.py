"""Public description of a table: its variables and what values they may take.

A :class:`Schema` is written down by a person who has not looked at the records. States that were read from the records
would be a release of their own (a state present in one dataset and absent from its neighbour tells them apart with
certainty), so nothing in this package ever infers them.

How a value meets a state
-------------------------
:func:`match_key` maps one value to a key, and two values mean the same when their keys are equal. The key of a value
depends on that value alone. This matters for privacy: one stray text turns a whole pandas column of integers into
objects, one missing value turns it into floats, one fraction turns booleans into numbers; if the matching followed the
type of the *column*, one record could change how every other record is counted. Hence ``1``, ``1.0``, ``True``,
``"1"``, ``"1.0"`` and ``"True"`` are all the same state, and a schema in which two states share a key is refused.

A time is a whole number of nanoseconds, whatever type of column it is in, and a state says it as one ISO text:

* a time without a zone ``2020-01-31T12:00:00``, with a fraction of 6 digits, or 9, where it has one;
* a date, or a time at midnight without a zone, ``2020-01-31``;
* a time with a zone the same moment in UTC, ``2020-01-31T11:00:00+00:00``;
* a duration ``P1DT2H3M4.5S``, ``-P1D``, ``PT0S``: days, hours, minutes and seconds that are not zero.

Times outside the years 1 to 9999, durations of more than 999,999,999 days, and those of months or years, which have no
fixed length, are outside of every schema.
"""

from __future__ import annotations

import itertools
import json
import math
import numbers
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pgmpy_dp.rules import Box, Column, Rule, leave_something, read_rule

__all__ = [
    "Bounds",
    "Schema",
    "almost_intervals",
    "clock_text",
    "decode_label",
    "duration_nanoseconds",
    "encode_label",
    "interval_cuts",
    "interval_states",
    "match_key",
    "moment_text",
]

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")  # linear in the length of any text
_TRUTH = {"True": 1.0, "true": 1.0, "TRUE": 1.0, "False": 0.0, "false": 0.0, "FALSE": 0.0}
_MISSING = ("missing",)
_UNREADABLE = ("unreadable",)
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400 * 10**9
_LONGEST = 999_999_999 * _DAY
_CUT = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_INTERVAL = re.compile(rf"\s*(?:<\s*{_CUT}|\[\s*{_CUT}\s*,\s*{_CUT}\s*\)|>=\s*{_CUT})\s*")
_NANOSECONDS = {"W": 7 * _DAY, "D": _DAY, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3}
_NANOSECONDS["ns"] = 1
_PARTS = {"ps": 10**3, "fs": 10**6, "as": 10**9}  # of a nanosecond


def match_key(value: object) -> tuple:
    """Key under which a value is compared with the states of a schema.

    Total and silent: it never raises and never warns, whatever the value, because the values of records pass through
    it. Missing values (None, NaN, NaT, pandas' NA) share one key, which only a declared state ``None`` has too.

    Parameters
    ----------
    value : object
        One cell of a table, or one state.

    Returns
    -------
    tuple
        Hashable; equal exactly for values that are counted as the same state.

    Examples
    --------
    >>> match_key(1) == match_key("1.0") == match_key(True)
    True
    >>> match_key("a") == match_key("A")
    False
    """
    try:
        return _match_key(value)
    except Exception:  # an odd object in a record must not become an observable exception
        return _UNREADABLE


def _match_key(value: Any) -> tuple:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return _MISSING
    if isinstance(value, bool | np.bool_):
        return _number_key(float(value))
    if isinstance(value, str):
        return _text_key(str.__str__(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return _text_key(bytes(value).decode("utf-8"))  # one that is no UTF-8 is unreadable
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return _MISSING
    if isinstance(value, np.datetime64):
        return ("text", moment_text(_numpy_moment(value), False))
    if isinstance(value, np.timedelta64 | timedelta) or type(value).__name__ == "MonthDayNano":
        return ("text", _duration_text(duration_nanoseconds(value)))
    if isinstance(value, np.ndarray):
        # Times one by one: as a list, those of nanoseconds are integers.
        return _match_key(list(value) if value.ndim and value.dtype.kind in "mM" else value.tolist())
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
        found = _numpy_nanoseconds(value)
    elif isinstance(value, timedelta):
        found = value.days * _DAY + value.seconds * 10**9 + value.microseconds * 1000 + getattr(value, "nanoseconds", 0)
    elif value.months:
        raise ValueError("months have no fixed length")
    else:
        found = value.days * _DAY + value.nanoseconds
    if not -_LONGEST <= found <= _LONGEST:
        raise ValueError("a longer time than any")
    return int(found)


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
    found = days * _DAY + seconds * 10**9 + part
    offset = value.utcoffset()
    return moment_text(found if offset is None else found - duration_nanoseconds(offset), offset is not None)


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
    return _MISSING if math.isnan(number) else ("number", number + 0.0)  # + 0.0 turns -0.0 into 0.0


def _text_key(text: str) -> tuple:
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return _number_key(float(stripped))
    if stripped in _TRUTH:
        return _number_key(_TRUTH[stripped])
    return ("text", text)


def encode_label(label: object) -> Any:
    """JSON form of a variable's name or state, read back exactly by :func:`decode_label`.

    Text, integers, booleans, None and finite floats are themselves; a tuple is ``{"tuple": [...]}``. NumPy scalars
    become the Python scalar they hold.

    Raises
    ------
    TypeError
        If the label is of another type.

    Examples
    --------
    >>> encode_label(("a", 1))
    {'tuple': ['a', 1]}
    >>> decode_label(encode_label(("a", 1, None)))
    ('a', 1, None)
    """
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return {"tuple": [encode_label(part) for part in label]}
    if label is None or type(label) in (str, int, bool):
        return label
    if isinstance(label, str):
        return str.__str__(label)
    if type(label) is float and math.isfinite(label):
        return label
    raise TypeError(
        f"cannot use {label!r} (a {type(label).__name__}) as the name of a variable or of a state; "
        "use text, an integer, a boolean, a finite float, None or a tuple of these"
    )


def decode_label(encoded: Any) -> Hashable:
    """Name or state from its JSON form; the inverse of :func:`encode_label`.

    Raises
    ------
    ValueError
        If `encoded` is not something that :func:`encode_label` returns.
    """
    if isinstance(encoded, dict):
        if set(encoded) != {"tuple"} or not isinstance(encoded["tuple"], list):
            raise ValueError(f"{encoded!r} is not an encoded name or state; a tuple is written {{'tuple': [...]}}")
        return tuple(decode_label(part) for part in encoded["tuple"])
    if encoded is None or isinstance(encoded, str | int | float | bool):
        return encoded
    raise ValueError(f"{encoded!r} is not an encoded name or state")


def interval_states(cuts: Iterable[float]) -> list[str]:
    """Names of the intervals between some numbers, as states of a variable whose values are numbers.

    Parameters
    ----------
    cuts : iterable of float
        Finite and ascending, at least one. Each is the first number of the interval above it.

    Returns
    -------
    list of str
        One more than cuts. They cover all numbers: "<a", "[a,b)", ..., ">=z".

    Raises
    ------
    ValueError
        If `cuts` is empty, or holds numbers that are not finite or do not ascend.

    Examples
    --------
    >>> interval_states([25, 45, 67.5])
    ['<25', '[25,45)', '[45,67.5)', '>=67.5']
    """
    numbers = [float(cut) for cut in cuts]
    finite = all(math.isfinite(number) for number in numbers)
    if not numbers or not finite or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise ValueError(f"cuts={numbers!r} must be finite numbers in ascending order, at least one")
    texts = [f"{number:.15g}" for number in numbers]
    return [f"<{texts[0]}", *(f"[{a},{b})" for a, b in itertools.pairwise(texts)), f">={texts[-1]}"]


def interval_cuts(states: Sequence) -> list[float] | None:
    """The cuts of :func:`interval_states` that give these states, in their order; None where none do.

    Examples
    --------
    >>> interval_cuts(["<25", "[25,45)", ">=45"]), interval_cuts(["no", "yes"])
    ([25.0, 45.0], None)
    """
    if len(states) < 2 or not all(isinstance(state, str) and len(state) > 1 for state in states):
        return None
    try:
        cuts = [float(states[0][1:]), *(float(state[:-1].split(",")[-1]) for state in states[1:-1])]
        return cuts if interval_states(cuts) == list(states) else None
    except ValueError:
        return None


def almost_intervals(states: Sequence, other: Hashable = None) -> list[str] | None:
    """What :func:`interval_states` gives for states that are in its notation and not read as intervals; else None.

    A state is in the notation if it is ``<a``, ``[a,b)`` or ``>=b`` but for blanks and how numbers are spelled. Of such
    states somebody may expect that numbers are counted in them, where they are compared as texts: those with a
    ``[a,b)`` among them, those that cover all numbers, and those without any other state than None and `other`.
    Others, such as ``<25, 25-34, >=35`` or ``(0, 30]``, are names of groups in a column that holds these names.

    Examples
    --------
    >>> almost_intervals(["<30", "[30, 60)", ">=60"]), almost_intervals(["<30", "[30,60)", ">=60"])
    (['<30', '[30,60)', '>=60'], None)
    >>> almost_intervals(["[18,30)", "unknown"]), almost_intervals(["<25", "25-34", ">=35"])
    (['<18', '[18,30)', '>=30'], None)
    """
    if interval_cuts(states) is not None:
        return None
    found = [match for state in states if isinstance(state, str) and (match := _INTERVAL.fullmatch(state))]
    cuts = sorted(
        {number for match in found for text in match.groups() if text and math.isfinite(number := float(text))}
    )
    if not cuts:
        return None
    meant = interval_states(cuts)
    named = [s for s in states if s is not None and s != other and not (isinstance(s, str) and _INTERVAL.fullmatch(s))]
    written = ["".join(match.group().split()) for match in found]
    between = any(match.group(2) for match in found)
    return meant if between or not named or written == meant else None


@dataclass(frozen=True)
class Bounds:
    """Public range of a numeric variable; values outside are clipped to it.

    Parameters
    ----------
    lower, upper : float
        Finite, ``lower < upper``, in the units of the variable.

    Examples
    --------
    >>> Bounds(0, 120)
    Bounds(lower=0.0, upper=120.0)
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
                raise TypeError(f"Bounds {name}={value!r} is not a number; pass a finite number")
            if not math.isfinite(value):
                raise ValueError(f"Bounds {name}={value!r} is not finite; pass a bound known without the records")
            object.__setattr__(self, name, float(value))
        if not self.lower < self.upper:
            raise ValueError(f"Bounds lower={self.lower!r} is not below upper={self.upper!r}; swap or widen them")


class Schema(Mapping):
    """Ordered, immutable map from each variable to its states, or to its :class:`Bounds` when it is numeric.

    Parameters
    ----------
    variables : mapping of hashable to (sequence of states, or Bounds)
        At least two states for each discrete variable, in the order that every table, factor and code in this package
        uses. Names and states are text, integers, booleans, finite floats or tuples of these; a state may also be
        None, which then stands for missing values.
    other : mapping of hashable to state, optional
        For a discrete variable, the state that counts every value outside the declared ones (missing values too). A
        record with an outside value in a variable without such a state is dropped, silently, inside the boundary.
    texts : iterable of hashable, optional
        Discrete variables whose states are written like intervals and are texts all the same, as in a column that
        pandas or R has cut already: ``"[18, 30)"``. The schema is not refused for them; cells are read as always.
    impossible : iterable of str or mapping, optional
        Rules about what cannot be, from public knowledge, see `pgmpy_dp.rules`: ``"age < 15 -> marital = never"``, or
        ``{"sex": ["M"], "pregnant": ["yes"]}``, states that cannot be together. Models obey them; records that break
        one are counted as always.

    Attributes
    ----------
    variables : tuple
        All names, in order.
    states : mapping of name to tuple
        Discrete variables only.
    bounds : mapping of name to Bounds
        Numeric variables only.
    other : mapping of name to state
    impossible : tuple of str
    zeros : list of dict of name to frozenset of int
        What the rules forbid: numbers of states that cannot be together.
    cardinalities : mapping of name to int
        Discrete variables only.

    Raises
    ------
    TypeError, ValueError
        For an empty schema, a variable with fewer than two states, repeated or indistinguishable states (see the
        module's docstring), an other-state that is not among the states, or states that look like intervals of numbers
        and are not read as such (`almost_intervals`), so that no number would be counted in them; for rules that cannot
        be read, name what is not in the schema, cut through an interval, forbid nothing, or leave no record possible.

    Examples
    --------
    >>> schema = Schema({"smoker": ["no", "yes"], "age": Bounds(0, 120)})
    >>> schema["smoker"], schema.cardinality("smoker")
    (('no', 'yes'), 2)
    >>> Schema({"sex": ["F", "M"], "pregnant": [0, 1]}, impossible=["sex = M -> pregnant != 1"]).zeros
    [{'sex': frozenset({1}), 'pregnant': frozenset({1})}]
    """

    __slots__ = ("_bounds", "_identity", "_other", "_rules", "_states", "_variables", "_zeros")

    def __init__(
        self,
        variables: Mapping[Any, Sequence | Bounds],
        *,
        other: Mapping[Any, Any] | None = None,
        texts: Iterable[Hashable] = (),
        impossible: Iterable[str | Mapping] = (),
    ) -> None:
        if not isinstance(variables, Mapping):
            raise TypeError(
                f"variables={_short(variables)} is not a mapping; pass {{name: [state, state, ...]}} or "
                "{name: Bounds(lower, upper)}"
            )
        if not variables:
            raise ValueError("variables={} is empty; declare at least one variable")
        states: dict[Hashable, tuple] = {}
        bounds: dict[Hashable, Bounds] = {}
        for given, declared in variables.items():
            name = decode_label(encode_label(given))
            if name is None:
                raise ValueError("None cannot name a variable (it cannot be a node of a graph); use text")
            if isinstance(declared, Bounds):
                bounds[name] = declared
            else:
                states[name] = _checked_states(name, declared)
        self._variables = tuple(decode_label(encode_label(name)) for name in variables)
        self._states = states
        self._bounds = bounds
        self._other = self._checked_other(other)
        self._refuse_almost_intervals(texts)
        self._rules, self._zeros = self._read_rules(impossible)
        # Type-strict identity: 1, 1.0 and True are equal in Python but not the same label.
        self._identity = json.dumps(self.to_dict())

    def _checked_other(self, other: Mapping | None) -> dict:
        if other is None:
            return {}
        if not isinstance(other, Mapping):
            raise TypeError(f"other={_short(other)} is not a mapping; pass {{name: state}}")
        checked = {}
        for given, state in other.items():
            name = decode_label(encode_label(given))
            if name not in self._states:
                raise ValueError(f"other names {name!r}, which is not a discrete variable of the schema; remove it")
            keys = {match_key(s): s for s in self._states[name]}
            if match_key(state) not in keys:
                raise ValueError(
                    f"other[{name!r}]={state!r} is not among the states {_short(self._states[name])}; add it to them"
                )
            checked[name] = keys[match_key(state)]
        return {name: checked[name] for name in self._variables if name in checked}

    def _refuse_almost_intervals(self, texts: Iterable[Hashable]) -> None:
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise TypeError(f"texts={_short(texts)} is no list of names; pass texts=[name]")
        texts = list(texts)
        unknown = [name for name in texts if name not in self._states]
        if unknown:
            raise ValueError(f"texts names {unknown}, which are no discrete variables of the schema; remove them")
        for name, states in self._states.items():
            meant = None if name in texts else almost_intervals(states, self._other.get(name))
            if meant is not None:
                raise ValueError(
                    f"variable {name!r} has the states {_short(states)}, which look like intervals but would be "
                    f"compared as texts, so that no number is counted in them; for a column of numbers declare what "
                    f"interval_states gives, here {_short(meant)}, and no other state; for a column of such texts pass "
                    f"Schema(..., texts=[{name!r}])"
                )

    def _read_rules(self, impossible: Iterable[str | Mapping]) -> tuple[tuple[Rule, ...], list[Box]]:
        if isinstance(impossible, str | bytes | Mapping) or not isinstance(impossible, Iterable):
            raise TypeError(f"impossible={_short(impossible)} is no list of rules; pass impossible=[rule]")
        listed, rules, zeros = list(impossible), [], []
        columns = {name: self._column(name) for name in self._variables} if listed else {}
        for given in listed:
            try:
                rules.append(read_rule(given, columns))
                zeros += rules[-1].boxes(columns)
            except (TypeError, ValueError) as error:
                raise type(error)(f"impossible: the rule {_short(given)} {error}") from None
        if zeros and not leave_something(zeros, columns):
            raise ValueError(f"impossible={_short([*map(str, rules)])} leaves no record possible; correct or remove a rule")
        return tuple(rules), zeros

    def _column(self, name: Hashable) -> Column:
        """What a rule has to know of a variable."""

        def number(word: str) -> float | None:
            kind, *value = match_key(word)
            return float(value[0]) if kind == "number" else None

        if name in self._bounds:
            return Column(name, None, match_key, number)
        states = self._states[name]
        unknown = {None, self._other[name]} if name in self._other else {None}
        cuts = interval_cuts(states)
        if cuts is None:
            own = (number(state) for state in states)
            spans = tuple(None if value is None else (value, value, True) for value in own)
        else:
            spans = tuple((low, high, False) for low, high in itertools.pairwise((-math.inf, *cuts, math.inf)))
        other = frozenset(code for code, state in enumerate(states) if state in unknown)
        return Column(name, states, match_key, number, spans, other)

    @property
    def variables(self) -> tuple:
        """Names of all variables, in order."""
        return self._variables

    @property
    def states(self) -> Mapping[Any, tuple]:
        """States of each discrete variable."""
        return MappingProxyType(self._states)

    @property
    def bounds(self) -> Mapping[Any, Bounds]:
        """Bounds of each numeric variable."""
        return MappingProxyType(self._bounds)

    @property
    def other(self) -> Mapping[Any, Any]:
        """State that takes outside values, for the variables that have one."""
        return MappingProxyType(self._other)

    @property
    def impossible(self) -> tuple[str, ...]:
        """Rules about what cannot be, as texts."""
        return tuple(map(str, self._rules))

    @property
    def zeros(self) -> list[Box]:
        """What the rules forbid: for some variables the numbers of states that they cannot have together."""
        return list(self._zeros)

    @property
    def cardinalities(self) -> dict[Any, int]:
        """Number of states of each discrete variable."""
        return {name: len(states) for name, states in self._states.items()}

    def cardinality(self, name: Hashable) -> int:
        """Number of states of one discrete variable.

        Parameters
        ----------
        name : hashable

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the variable is numeric.
        KeyError
            If it is unknown.
        """
        if name in self._bounds:
            raise ValueError(f"variable {name!r} is numeric, it has bounds and no states; declare its states")
        states = self[name]
        assert isinstance(states, tuple)
        return len(states)

    def subset(self, names: Iterable[Hashable]) -> Schema:
        """Schema of some of the variables.

        Parameters
        ----------
        names : iterable of hashable

        Returns
        -------
        Schema
            In the order given. Rules that name a variable which is left out are left out too.

        Raises
        ------
        KeyError
            For an unknown name.
        """
        names = tuple(names)
        return Schema(
            {name: self[name] for name in names},
            other={n: self._other[n] for n in names if n in self._other},
            texts=[name for name in names if name in self._states],
            impossible=[str(rule) for rule in self._rules if rule.names <= set(names)],
        )

    def require_discrete(self, names: Iterable[Hashable] | None = None, argument: str = "state_names") -> None:
        """Refuse numeric variables.

        Parameters
        ----------
        names : iterable of hashable, optional
            Which have to be discrete; by default all.
        argument : str
            What the message calls the schema.

        Raises
        ------
        ValueError
            If some of the variables are numeric; it names them.
        KeyError
            For an unknown name.
        """
        wanted = self._variables if names is None else tuple(names)
        for name in wanted:
            self[name]
        numeric = [name for name in wanted if name in self._bounds]
        if numeric:
            raise ValueError(
                f"{argument} declares bounds for {numeric}, but contingency tables need states; "
                "declare the states of these variables (for a numeric one: of its bins), or leave them out"
            )

    def __getitem__(self, name: Any) -> tuple | Bounds:
        try:
            return self._states[name] if name in self._states else self._bounds[name]
        except (KeyError, TypeError):
            raise KeyError(f"{name!r} is not a variable of the schema; it has {_short(self._variables)}") from None

    def __iter__(self) -> Iterator:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __eq__(self, value: object) -> bool:
        return self._identity == value._identity if isinstance(value, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        rules = f", impossible={_short(list(self.impossible))}" if self._rules else ""
        return f"Schema({len(self)} variables: {_short(self._variables)}{rules})"

    def __reduce__(self) -> tuple:
        return (Schema.from_dict, (self.to_dict(),))

    def to_dict(self) -> dict:
        """JSON-able form, read back exactly by :meth:`from_dict`.

        Returns
        -------
        dict
        """
        variables: list[dict] = []
        for name in self._variables:
            entry: dict[str, Any] = {"name": encode_label(name)}
            if name in self._bounds:
                entry["bounds"] = [self._bounds[name].lower, self._bounds[name].upper]
            else:
                entry["states"] = [encode_label(state) for state in self._states[name]]
                if name in self._other:
                    entry["other"] = encode_label(self._other[name])
            variables.append(entry)
        if not self._rules:
            return {"format": "pgmpy_dp.schema", "version": 1, "variables": variables}
        # Another version, because a reader that does not know of rules would leave them out.
        return {"format": "pgmpy_dp.schema", "version": 2, "variables": variables, "impossible": list(self.impossible)}

    @classmethod
    def from_dict(cls, content: Mapping) -> Schema:
        """Schema from :meth:`to_dict`'s form, or from ``{"domain": {name: [states]}, "other": {name: state}}``.

        Texts that look like intervals are not refused here: a schema that was made is read.

        Parameters
        ----------
        content : mapping

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            For a mapping of neither form, or a later version.
        """
        if isinstance(content, Mapping) and isinstance(content.get("domain"), Mapping):
            states = {name: [decode_label(s) for s in given] for name, given in content["domain"].items()}
            return cls(states, other=content.get("other"), texts=states, impossible=content.get("impossible", ()))
        if not isinstance(content, Mapping) or content.get("format") != "pgmpy_dp.schema":
            raise ValueError(
                f"{_short(content)} is not a schema; expected what Schema.to_dict() returns, or a mapping with a "
                "'domain' of {name: [states]}"
            )
        if content.get("version") not in (1, 2):
            raise ValueError(f"schema version {content.get('version')!r} is unknown; this release reads 1 and 2")
        variables: dict[Hashable, Any] = {}
        other: dict[Hashable, Any] = {}
        for entry in content["variables"]:
            name = decode_label(entry["name"])
            if "bounds" in entry:
                variables[name] = Bounds(*entry["bounds"])
                continue
            variables[name] = [decode_label(state) for state in entry["states"]]
            if "other" in entry:
                other[name] = decode_label(entry["other"])
        return cls(
            variables,
            other=other,
            texts=[name for name in variables if not isinstance(variables[name], Bounds)],
            impossible=content.get("impossible", ()),
        )

    def to_json(self, path: str | Path) -> None:
        """Write the schema to a JSON file, losslessly.

        Parameters
        ----------
        path : str or Path
        """
        Path(path).write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, path: str | Path) -> Schema:
        """Read a file written by :meth:`to_json`, or one that holds a ``"domain"`` (see :meth:`from_dict`).

        Parameters
        ----------
        path : str or Path

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the file holds no schema.
        """
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))

    @classmethod
    def coerce(cls, value: Schema | Mapping | None, argument: str = "state_names") -> Schema:
        """A Schema from what users pass for one.

        Parameters
        ----------
        value : Schema, mapping of name to states, or None
        argument : str
            What the message calls it.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            For None: states are never read from records.
        TypeError
            For what is neither.
        """
        if isinstance(value, Schema):
            return value
        if value is None:
            raise ValueError(
                f"{argument}=None: pass a Schema, or a dict from each variable to all of its possible states. They are "
                "never read from the records: whether a rare state occurs would reveal whether someone is in the data"
            )
        if not isinstance(value, Mapping):
            raise TypeError(f"{argument}={_short(value)} is not a Schema nor a mapping; pass {{name: [states]}}")
        return cls(value)


def _checked_states(name: Hashable, declared: Any) -> tuple:
    if isinstance(declared, str | bytes | Mapping | set | frozenset) or not isinstance(declared, Iterable):
        raise TypeError(
            f"the states of variable {name!r} are {_short(declared)}, a {type(declared).__name__}; "
            "pass a list of states in a fixed order, or Bounds(lower, upper)"
        )
    states = tuple(decode_label(encode_label(state)) for state in declared)
    seen: dict[tuple, Hashable] = {}
    for state in states:
        key = match_key(state)
        if key in seen:
            raise ValueError(
                f"variable {name!r} has the states {seen[key]!r} and {state!r}, which are counted as the same value; "
                "remove or rename one (in the data too)"
            )
        seen[key] = state
    if len(states) < 2:
        raise ValueError(
            f"variable {name!r} has {len(states)} state(s) {states!r}; a discrete variable needs at least 2: "
            "declare all of its possible states, or leave the variable out"
        )
    return states


def _short(value: object, limit: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."

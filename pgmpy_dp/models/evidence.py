"""Evidence about a variable, as a person says it: states, numbers, ranges, likelihoods. It is read in a model's states.

There is one form for all of them, :class:`Evidence`: the likelihood of the evidence in each state.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from pgmpy_dp.models.decoding import Range, Values
from pgmpy_dp.schema import Number, Schema, encode_label, match_key
from pgmpy_dp.shown import shown


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about one variable: as it was passed, and the states that it counts as.

    Attributes
    ----------
    requested : object
    states : sequence
        All states of the variable in the model.
    shares : ndarray of shape (3, states)
        The likelihood of the evidence in each state; then at least and at most, wherever values lie in the states. The
        three differ where a range cuts through a state.
    values : Values
        How values are distributed within the states, without those that are excluded.
    numbers : mapping of int to list of float
        States that count because of numbers, which are then the only ones that are left in them.
    level : hashable, optional
        The level of the variable that the evidence is about.
    """

    requested: Any
    states: Sequence
    shares: np.ndarray
    values: Values
    numbers: Mapping[int, list[float]]
    level: Hashable = None

    @property
    def likely(self) -> np.ndarray:
        """The likelihood of the evidence in each state."""
        return self.shares[0]

    @property
    def is_cut(self) -> bool:
        """Whether a range cuts through a state, so that its share depends on where values lie in it."""
        return bool((self.shares[1] < self.shares[2]).any())

    @property
    def cells(self) -> dict[Any, float]:
        """The states that the evidence counts as, with their shares."""
        return {state: float(share) for state, share in zip(self.states, self.likely, strict=True) if share}

    @property
    def pairs(self) -> list[list[Any]]:
        """`cells` for files: labels of the states, each with its share."""
        return [[encode_label(state), share] for state, share in self.cells.items()]

    @property
    def told(self) -> Any:
        """The state, where the evidence counts as the whole of one; else the evidence as it was passed."""
        ((state, share), *others) = self.cells.items()
        is_state = not others and share == 1 and self.level is None
        return encode_label(state) if is_state else self.requested or ""

    def __str__(self) -> str:
        parts = [
            shown(state) if share == 1 else f"{share:.0%} of {shown(state)}" for state, share in self.cells.items()
        ]
        return ", ".join(parts if len(parts) <= 4 else [*parts[:2], f"{len(parts) - 3} more", parts[-1]])

    def note(self, name: Hashable, intervals: bool) -> str:
        """A line for below an answer, where a range cuts through states: it says what it counted as; else nothing."""
        reach = "; intervals reach from none of a state that it cuts to all of it" if intervals else ""
        return f"{shown(name)}={shown(self.told)} counts as {self}{reach}" if self.is_cut else ""

    def drawn(self, codes: np.ndarray, uniform: np.ndarray) -> tuple[Number | Sequence, np.ndarray]:
        """Draw the values of states that the evidence leaves; see `Values.drawn`."""
        declared, values = self.values.drawn(codes, uniform)
        for state, left in self.numbers.items():
            there = codes == state
            values[there] = np.array(left)[(uniform[there] * len(left)).astype(np.int64)]
        return declared, values


Known = Mapping[Hashable, Evidence]
"""The evidence about each variable."""


def level_schema(schema: Schema, name: Hashable) -> Schema:
    """A schema of a level alone, whose states are read as those of its variable."""
    level = schema.levels[name]
    codes = [name] if schema.reading(level.variable).codes else []
    return Schema({name: level.states}, texts=[name], codes=codes)


def counted(schema: Schema, name: Hashable, value: Any, values: Values | None = None, event: bool = False) -> Evidence:
    """Read the evidence about one variable: the states that it counts as, with their shares.

    Parameters
    ----------
    schema : Schema
        The schema in which the variable has the model's states.
    name : hashable
        Of a variable, or of a level: that counts as the states of its variable that are in it.
    value : object
        A state; for a variable of numbers also a number, a day or its text, None for missing, or a range: a pair of
        ends, a slice, a pandas Interval, or a text ``"30:40"``. Both ends belong to a range, but for those that an
        Interval leaves open; an end of None (``"30:"``) is the bound. States of intervals without bounds, which
        :func:`~pgmpy_dp.schema.interval_states` makes, take ranges from one cut to below another, states that are
        numbers take ranges too.

        Several of these are a set, or a text with ``|`` between them. With a likelihood for each they are a mapping, in
        which states that are not named are impossible. Where they overlap, the larger likelihood counts.
    values : Values, optional
        How numbers are distributed within the states; default: uniformly within each cell.
    event : bool, default False
        Whether a number is itself, and not the state that it is in.

    Returns
    -------
    Evidence
        For a state 1, or its likelihood; for a range, the share of each state's values that lie in it.

    Raises
    ------
    ValueError
        For evidence that is not a state, numbers outside the bounds, ranges without a value, and likelihoods that are
        negative, not finite or all 0.

    Examples
    --------
    >>> schema = Schema({"age": Number(0, 40, cuts=[10, 20, 30], resolution=1), "job": ["clerk", "nurse", "none"]})
    >>> print(counted(schema, "age", 12), "|", counted(schema, "age", (5, 20)))
    [10,20) | 50% of [0,10), [10,20), 10% of [20,30)
    >>> counted(schema, "age", (5, 20)).shares[1:]
    array([[0., 1., 0., 0., 0.],
           [1., 1., 1., 0., 0.]])
    >>> counted(schema, "job", "clerk|nurse").cells, counted(schema, "job", {"clerk": 0.2, "none": 0.8}).cells
    ({'clerk': 1.0, 'nurse': 1.0}, {'clerk': 0.2, 'none': 0.8})
    """
    if (level := schema.levels.get(name)) is not None:
        one = counted(level_schema(schema, name), name, value)
        values = Values(schema.states[level.variable]) if values is None else values
        shares = one.shares[:, list(level.places)]
        return Evidence(value, schema.states[level.variable], shares, values, {}, name)
    declared = schema[name]
    values = Values(declared if isinstance(declared, Number) else schema.states[name]) if values is None else values
    ranges: list[tuple[Range, float, Any]] = []
    states: dict[int, float] = {}
    points: dict[int, list[float]] = {}
    for one, weight in _alternatives(schema, name, value):
        number, between = _said(schema, name, one, event)
        if between is not None and isinstance(declared, Number):
            ranges.append((_checked(schema, name, between, one), weight, one))
            continue
        among = None if between is None else _states_between(schema, name, between, one)
        for code in among or [state_of(schema, name, one)]:
            states[code] = max(weight, states.get(code, 0.0))
        # A number counts as its state even if it is beyond the bounds, or between two values.
        if number is not None and schema.numbers[name].has(number):
            points[code] = sorted({*points.get(code, ()), number})
    parts = values.divided(*(between for between, *_ in ranges)) if ranges else values
    part_states = parts.places
    weights = np.zeros(len(part_states))
    for between, weight, one in ranges:
        inside = parts.holds(*between)
        if not (parts.within * inside).any():
            _refuse(name, one, "has no value of the variable in it; pass a wider range")
        weights = np.maximum(weights, weight * inside)
    likely = parts.by_state(parts.within * weights)
    for code, weight in states.items():
        weights = np.maximum(weights, weight * (part_states == code))
        likely[code] = max(likely[code], weight)
    least, most = np.full(len(likely), np.inf), np.zeros(len(likely))
    np.minimum.at(least, part_states, weights)
    np.maximum.at(most, part_states, weights)
    if (least < most).any():
        parts = replace(parts, state=part_states, weights=parts.within * weights, density=None)
    return Evidence(value, schema.states[name], np.stack([likely, least, most]), parts, points)


def checked_evidence(evidence: Any) -> dict[Hashable, Any]:
    """Evidence as a mapping; TypeError for anything but a mapping or None."""
    if evidence is not None and not isinstance(evidence, Mapping):
        raise TypeError(
            f"evidence={evidence!r} is a {type(evidence).__name__}; pass a dict of variables and what is known of them"
        )
    return dict(evidence or {})


def _alternatives(schema: Schema, name: Hashable, value: Any) -> list[tuple[Any, float]]:
    """The alternatives of which one holds, each with its likelihood, at most 1; often it is a single one."""
    if isinstance(value, str) and "|" in value and not _is_state(schema, name, value):
        parts, value = value.split("|"), {}
        while parts:  # states may have the sign in their names: the longest name goes first
            ends = (k for k in range(len(parts), 1, -1) if _is_state(schema, name, "|".join(parts[:k])))
            text, parts = "|".join(parts[: (k := next(ends, 1))]), parts[k:]
            value[text if text.strip() else None] = 1.0
    elif isinstance(value, set | frozenset):
        value = dict.fromkeys(sorted(value, key=repr), 1.0)
    if not isinstance(value, Mapping):
        return [(value, 1.0)]
    weights = list(value.values())
    if not all(isinstance(one, numbers.Real) and 0 <= float(one) < math.inf for one in weights) or not any(weights):
        _refuse(name, value, "is no likelihood of states; pass numbers from 0 on, at least one above 0")
    return [(one, float(weight) / max(1.0, *weights)) for one, weight in value.items() if weight]


def _said(schema: Schema, name: Hashable, value: Any, event: bool) -> tuple[float | None, tuple[Any, Any, str] | None]:
    """The number, or the range, that evidence says; neither for a state. In an event a number is a range too."""
    if isinstance(declared := schema[name], Number):
        number = declared.reads(schema.reading(name)(match_key(value)))
        if number is None or not math.isnan(number):
            return number, (value, value, "both") if event and number is not None else None
    return None, None if isinstance(value, Hashable) and value in schema.states[name] else _range(value)


def _checked(schema: Schema, name: Hashable, between: tuple[Any, Any, str], value: Any) -> Range:
    low, high = (end if end is None else _end(schema, name, end, value) for end in between[:2])
    if low is not None and high is not None and low > high:
        _refuse(name, value, "is a range that ends before it begins; swap its ends")
    return low, high, between[2]


def state_of(schema: Schema, name: Hashable, value: Any) -> int:
    """The position of the state that a value belongs to; ValueError where it belongs to none.

    Parameters
    ----------
    schema : Schema
    name : hashable
    value : object
        As a cell of a table, or a state.

    Examples
    --------
    >>> state_of(Schema({"age": Number(0, 120, cuts=[18, 65])}), "age", "65")
    2
    """
    declared, read = schema[name], schema.reading(name)
    key = read(read.key(value))
    states = schema.states[name]
    if isinstance(declared, Number):
        number = declared.reads(key)
        if number is not None and math.isnan(number):
            if key[0] == "text" and key[1] in states:
                return states.index(key[1])
            _refuse(name, value, _remedy(schema, name))
        if number is not None and declared.outside != "state" and not declared.lower <= number <= declared.upper:
            _refuse(name, value, f"is outside {_bounds(declared)}")
    # The state of all other values is meant by nothing but its name: what is unknown may be a slip.
    elif not _is_state(schema, name, value) and not (schema.interval_cuts(name) and key[0] == "number"):
        _refuse(name, value, _remedy(schema, name))
    code = schema.coder(name)(read.key(value))
    if code < 0:
        _refuse(name, value, f"has no state in the model; use {_states(states)}")
    return code


def _is_state(schema: Schema, name: Hashable, value: Any) -> bool:
    """Whether a value is the name of a state, as the schema reads it."""
    read = schema.reading(name)
    return read(read.key(value)) in map(read.spelled, map(read.key, schema.states[name]))


def _range(value: Any) -> tuple[Any, Any, str] | None:
    """The ends of a range and which belong to it; None for anything else."""
    if isinstance(value, tuple | list) and len(value) == 2:
        return value[0], value[1], "both"
    if isinstance(value, slice) and value.step is None:
        return value.start, value.stop, "both"
    if isinstance(value, str) and value.count(":") == 1:
        low, high = value.split(":")
        return low.strip() or None, high.strip() or None, "both"
    if all(hasattr(value, part) for part in ("left", "right", "closed")):
        return value.left, value.right, value.closed
    return None


def _states_between(schema: Schema, name: Hashable, between: tuple[Any, Any, str], value: Any) -> Sequence[int] | None:
    """States in a range: intervals from one cut up to another, or numbers; None for states that are neither."""
    read = schema.reading(name)
    low, high = (None if end is None else read(read.key(end)) for end in between[:2])
    if cuts := schema.interval_cuts(name):
        # Ends have to be cuts: nothing is known within an interval.
        places = {read(match_key(cut)): k for k, cut in enumerate(cuts, 1)}
        first, last = 0 if low is None else places.get(low), len(cuts) + 1 if high is None else places.get(high)
        if first is None or last is None or first >= last:
            listed = ", ".join(f"{cut:.15g}" for cut in cuts)
            what = f"is no range from one cut to a higher one; use low:high, low: or :high with ends of {listed}"
            _refuse(name, value, what)
        return range(first, last)
    keys = [read(read.key(state)) for state in schema.states[name]]
    if any(key is not None and key[0] != "number" for key in (low, high)) or all(key[0] != "number" for key in keys):
        return None
    # A pair for each end: the number, and whether the range goes on behind it.
    lower = (-math.inf if low is None else low[1], between[2] in ("right", "neither"))
    upper = (math.inf if high is None else high[1], between[2] in ("right", "both"))
    states = [k for k, key in enumerate(keys) if key[0] == "number" and lower <= (key[1], False) < upper]
    return states or _refuse(name, value, "has no state in it; pass a wider range")


def _end(schema: Schema, name: Hashable, end: Any, value: Any) -> float:
    declared = schema.numbers[name]
    number = declared.reads(schema.reading(name)(match_key(end)))
    if number is None or math.isnan(number):
        _refuse(name, value, f"is a range whose end {end!r} is not a {declared.kind}; write low:high, or (low, high)")
    if not declared.lower <= number <= declared.upper:
        _refuse(name, value, f"is a range beyond {_bounds(declared)}; leave an end out for the bound")
    return number


def _bounds(declared: Number) -> str:
    return f"the bounds {declared.text(declared.lower)} to {declared.text(declared.upper)}"


def _remedy(schema: Schema, name: Hashable) -> str:
    states = _states(schema.states[name])
    if name not in schema.numbers:
        cut = ", or a range from one cut to another, low:high" if schema.interval_cuts(name) else ""
        whole = int in map(type, schema.states[name]) and not schema.reading(name).codes
        cut = cut or (", or a range of them, low:high" if whole else "")
        return f"is not a state of it; use {states}{cut}"
    kind = schema.numbers[name].kind
    return f"is no {kind}, range or state of it; use a {kind}, a range low:high, or {states}"


def _states(states: tuple) -> str:
    if len(states) > 2 and all(type(state) is int for state in states) and np.ptp(states) == len(states) - 1:
        return f"one of the states {min(states)} to {max(states)}"
    texts = ["None (missing)" if state is None else str(state) for state in states]
    shown = texts if len(texts) <= 20 else [*texts[:10], "...", texts[-1]]
    return f"one of the states {', '.join(shown)}"


def _refuse(name: Hashable, value: Any, what: str) -> NoReturn:
    raise ValueError(f"variable {name!r} is given as {'missing' if value is None else repr(value)}, which {what}")

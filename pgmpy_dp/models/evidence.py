"""What is known of a variable, as a person says it, in the states of a model: a state, a number, a day, a range."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NoReturn

import numpy as np

from pgmpy_dp.models.decoding import Range, Values
from pgmpy_dp.schema import Number, Schema, interval_cuts, match_key


def likelihood(
    schema: Schema, name: Hashable, given: Any, values: Values | None = None, *, event: bool = False
) -> np.ndarray:
    """How likely what is known of a variable is in each of its states.

    Parameters
    ----------
    schema : Schema
        Whose states of the variable are the model's.
    name : hashable
    given : object
        A state; for a variable of numbers also a number, a day or its text, None for missing, or a range: a pair of
        ends, a slice, a pandas Interval, or a text ``"30:40"``. Both ends belong to a range, but for those that an
        Interval leaves open; an end of None (``"30:"``) is the bound. States of intervals without bounds, which
        :func:`~pgmpy_dp.schema.interval_states` makes, take ranges from one cut to below another.
    values : Values, optional
        How numbers are distributed within the states; default: uniformly within each cell.
    event : bool, default False
        Whether a number is itself, and not the state that it is in.

    Returns
    -------
    ndarray of shape (states,)
        1 in the state that it is and 0 in others; of a range, the share of each state's values that lie in it.

    Raises
    ------
    ValueError
        For evidence that is not a state, numbers outside the bounds, and ranges without a value.

    Examples
    --------
    >>> schema = Schema({"age": Number(0, 40, cuts=[10, 20, 30], resolution=1)})
    >>> likelihood(schema, "age", 12), likelihood(schema, "age", (5, 20)).round(3)
    (array([0., 1., 0., 0., 0.]), array([0.5, 1. , 0.1, 0. , 0. ]))
    >>> likelihood(Schema({"age": ["<30", "[30,45)", "[45,60)", ">=60"]}), "age", "30:60")
    array([0., 1., 1., 0.])
    """
    number, found = _said(schema, name, given)
    if number is not None and event:
        found = (given, given, "both")
    if found is None:
        if (between := _range(given)) and (cuts := interval_cuts(schema.states[name])):
            return _between_cuts(schema, name, cuts, between, given)
        weights = np.zeros(schema.cardinality(name))
        weights[state_of(schema, name, given)] = 1.0
        return weights
    values = Values(schema[name]) if values is None else values
    weights = values.shares(*_checked(schema, name, found, given))
    if not weights.any():
        _refuse(name, given, "has no value of the variable in it; pass a wider range")
    return weights


def checked_evidence(evidence: Any) -> dict[Hashable, Any]:
    """What is known, by variable; TypeError for anything but a mapping or None."""
    if evidence is not None and not isinstance(evidence, Mapping):
        raise TypeError(
            f"evidence={evidence!r} is a {type(evidence).__name__}; pass a dict of variables and what is known of them"
        )
    return dict(evidence or {})


def range_of(schema: Schema, name: Hashable, given: Any) -> Range | None:
    """The numbers that what is known of a variable leaves: ends, None for a bound, and which of them belong to it.

    Parameters
    ----------
    schema, name, given
        See `likelihood`, which tells how likely that is in each state.

    Returns
    -------
    tuple of low, high and closed, or None
        A number is a range of itself. None for a state, which has all of its values, and for a number that counts as
        one without being among them.

    Examples
    --------
    >>> schema = Schema({"age": Number(0, 40, cuts=[10, 20, 30], resolution=1)})
    >>> range_of(schema, "age", "15:"), range_of(schema, "age", 12), range_of(schema, "age", "[0,10)")
    ((15.0, None, 'both'), (12.0, 12.0, 'both'), None)
    """
    number, found = _said(schema, name, given)
    if number is not None:
        declared = schema.numbers[name]
        return (number, number, "both") if declared.lower <= number <= declared.upper else None
    return None if found is None else _checked(schema, name, found, given)


def _said(schema: Schema, name: Hashable, given: Any) -> tuple[float | None, tuple[Any, Any, str] | None]:
    """A number that is known, or a range; neither for a state."""
    declared = schema[name]
    number = declared.reads(schema.reading(name)(match_key(given))) if isinstance(declared, Number) else None
    if number is None or not math.isnan(number):
        return number, None
    return None, None if isinstance(given, str) and given in schema.states[name] else _range(given)


def _checked(schema: Schema, name: Hashable, found: tuple[Any, Any, str], given: Any) -> Range:
    low, high = (end if end is None else _end(schema, name, end, given) for end in found[:2])
    if low is not None and high is not None and low > high:
        _refuse(name, given, "is a range that ends before it begins; swap its ends")
    return low, high, found[2]


def state_of(schema: Schema, name: Hashable, given: Any) -> int:
    """The position of the state in which a value counts; ValueError where it is a value of none.

    Parameters
    ----------
    schema : Schema
    name : hashable
    given : object
        As a cell of a table, or a state.

    Examples
    --------
    >>> state_of(Schema({"age": Number(0, 120, cuts=[18, 65])}), "age", "65")
    2
    """
    declared, key = schema[name], schema.reading(name)(match_key(given))
    states = schema.states[name]
    if isinstance(declared, Number):
        number = declared.reads(key)
        if number is not None and math.isnan(number):
            if key[0] == "text" and key[1] in states:
                return states.index(key[1])
            _refuse(name, given, _remedy(schema, name))
        if number is not None and declared.outside != "state" and not declared.lower <= number <= declared.upper:
            _refuse(name, given, f"is outside {_bounds(declared)}")
    # The state of all other values is meant by nothing but its name: what is unknown may be a slip.
    elif key not in map(schema.reading(name).spelled, map(match_key, states)) and not (
        interval_cuts(states) and key[0] == "number"
    ):
        _refuse(name, given, _remedy(schema, name))
    code = schema.coder(name)(match_key(given))
    if code < 0:
        _refuse(name, given, f"has no state in the model; use {_states(states)}")
    return code


def _range(given: Any) -> tuple[Any, Any, str] | None:
    """The ends of a range and which belong to it; None for anything else."""
    if isinstance(given, tuple | list) and len(given) == 2:
        return given[0], given[1], "both"
    if isinstance(given, slice) and given.step is None:
        return given.start, given.stop, "both"
    if isinstance(given, str) and given.count(":") == 1:
        low, high = given.split(":")
        return low.strip() or None, high.strip() or None, "both"
    if all(hasattr(given, part) for part in ("left", "right", "closed")):
        return given.left, given.right, given.closed
    return None


def _between_cuts(
    schema: Schema, name: Hashable, cuts: list[float], between: tuple[Any, Any, str], given: Any
) -> np.ndarray:
    """Ones in the intervals from one cut up to another. Ends have to be cuts: nothing is known within an interval."""
    places = {schema.reading(name)(match_key(cut)): k for k, cut in enumerate(cuts, 1)}
    low, high = (None if end is None else schema.reading(name)(match_key(end)) for end in between[:2])
    first, last = 0 if low is None else places.get(low), len(cuts) + 1 if high is None else places.get(high)
    if first is None or last is None or first >= last:
        shown = ", ".join(f"{cut:.15g}" for cut in cuts)
        _refuse(
            name, given, f"is no range from one cut to a higher one; use low:high, low: or :high with ends of {shown}"
        )
    return np.isin(np.arange(len(cuts) + 1), np.arange(first, last)).astype(float)


def _end(schema: Schema, name: Hashable, end: Any, given: Any) -> float:
    declared = schema.numbers[name]
    number = declared.reads(schema.reading(name)(match_key(end)))
    if number is None or math.isnan(number):
        _refuse(name, given, f"is a range whose end {end!r} is not a {declared.kind}; write low:high, or (low, high)")
    if not declared.lower <= number <= declared.upper:
        _refuse(name, given, f"is a range beyond {_bounds(declared)}; leave an end out for the bound")
    return number


def _bounds(declared: Number) -> str:
    return f"the bounds {declared.text(declared.lower)} to {declared.text(declared.upper)}"


def _remedy(schema: Schema, name: Hashable) -> str:
    states = _states(schema.states[name])
    if name not in schema.numbers:
        cut = ", or a range from one cut to another, low:high" if interval_cuts(schema.states[name]) else ""
        return f"is not a state of it; use {states}{cut}"
    kind = schema.numbers[name].kind
    return f"is no {kind}, range or state of it; use a {kind}, a range low:high, or {states}"


def _states(states: tuple) -> str:
    texts = ["None (missing)" if state is None else str(state) for state in states]
    shown = texts if len(texts) <= 20 else [*texts[:10], "...", texts[-1]]
    return f"one of the states {', '.join(shown)}"


def _refuse(name: Hashable, given: Any, what: str) -> NoReturn:
    raise ValueError(f"variable {name!r} is given as {'missing' if given is None else repr(given)}, which {what}")

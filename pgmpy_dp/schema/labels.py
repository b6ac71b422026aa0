"""Names of variables and states: checked, written to JSON and read back, shown in a message."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from pgmpy_dp.schema.cells import match_key

NO_CODE = "a float is no code, since how it was written is lost: write it as a text, such as '3.10'"


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
    if label is None or any(type(label) is plain for plain in (str, int, bool)):  # a metaclass may call classes equal
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


def checked_states(name: Hashable, declared: Any, codes: bool = False) -> tuple:
    """The states of a discrete variable, in the order in which they are declared; at least two, all different.

    Of a column of `codes` they are compared as they are written.
    """
    if isinstance(declared, str | bytes | Mapping | set | frozenset) or not isinstance(declared, Iterable):
        raise TypeError(
            f"the states of variable {name!r} are {short(declared)}, a {type(declared).__name__}; "
            "pass a list of states in a fixed order, or Number(lower, upper)"
        )
    states = tuple(decode_label(encode_label(state)) for state in declared)
    seen: dict[tuple, Hashable] = {}
    for state in states:
        if codes and isinstance(state, float):
            raise ValueError(f"variable {name!r} has the state {state!r}, and {NO_CODE}")
        key = match_key(state, "code" if codes else "meaning")
        if key in seen:
            texts = isinstance(seen[key], str) and isinstance(state, str)
            raise ValueError(
                f"variable {name!r} has the states {seen[key]!r} and {state!r}, which are counted as the same value; "
                + (f"if these are codes pass codes=[{name!r}], else " if texts else "")
                + "remove or rename one (in the data too)"
            )
        seen[key] = state
    if len(states) < 2:
        raise ValueError(
            f"variable {name!r} has {len(states)} state(s) {states!r}; a discrete variable needs at least 2: "
            "declare all of its possible states, or leave the variable out"
        )
    return states


def is_constant(declared: Any) -> bool:
    """Whether a declaration is a list of one state."""
    return isinstance(declared, list | tuple) and len(declared) == 1


def require_declared(variables: Iterable[Hashable], argument: str, names: Iterable[Hashable]) -> None:
    """Raise a ValueError for names that are none of the schema's `variables`."""
    if unknown := sorted(map(repr, set(names).difference(variables))):
        raise ValueError(
            f"{argument} has the unknown variables {', '.join(unknown)}; the schema declares {list(variables)}: "
            f"add them to the schema (with their states), or remove them from {argument}"
        )


def known_names(option: str, names: Any, variables: Collection[Hashable], kind: str = "variables") -> list[Hashable]:
    """The names that an option lists; TypeError for what is no list, ValueError for one that is no such variable."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise TypeError(f"{option}={short(names)} is not a list of names; pass {option}=[name]")
    checked = [decode_label(encode_label(name)) for name in names]
    unknown = [name for name in checked if name not in variables]
    if unknown:
        raise ValueError(f"{option} names {unknown}, which are not {kind} of the schema; remove them")
    return checked


def short(value: object, limit: int = 200) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."

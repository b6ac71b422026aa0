"""The words of a release about its arrays besides their noise: a name for each, and the question that it answers."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np

from pgmpy_dp.checks import is_exactly
from pgmpy_dp.schema import Date, Number, Schema

_LONGEST = 20_000  # signs of an argument that a release repeats


@dataclass(frozen=True)
class Question:
    """The question that one operator of a curator answered.

    Attributes
    ----------
    operator : str
    arguments : mapping
        Public arguments, JSON-able, as they were when the question was put. Of a long list or a large array its size
        and digest.
    share : str
        Of the curator's cost, as an exact fraction.
    mechanism : str
    """

    operator: str
    arguments: Mapping[str, Any]
    share: str
    mechanism: str
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Lists in the arguments can be changed by whoever reads them, a text cannot.
        object.__setattr__(self, "_text", json.dumps([self.operator, dict(self.arguments), self.share, self.mechanism]))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :meth:`from_dict`: as it was when it was asked."""
        return dict(zip(("operator", "arguments", "share", "mechanism"), json.loads(self._text), strict=True))

    def copy(self) -> Question:
        """Return a copy, as it was when the question was put, in lists of its own."""
        made = object.__new__(Question)
        made.__dict__.update(self.to_dict(), _text=self._text)
        return made

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Question:
        """Read the form of :meth:`to_dict`; ValueError for another form."""
        texts = [content[name] for name in ("operator", "share", "mechanism")]
        if not all(isinstance(text, str) for text in texts) or not isinstance(content["arguments"], Mapping):
            raise ValueError(f"{content!r} is not what an operator was asked")
        return cls(texts[0], content["arguments"], *texts[1:])


def scope_name(scope: Iterable[Hashable]) -> str:
    """The name of a table in a release: its variables, with commas.

    Examples
    --------
    >>> scope_name(("age", 7))
    'age, 7'
    """
    return ", ".join(map(str, scope))


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, of which those that were there before get a number.

    Examples
    --------
    >>> distinct_names(["a", "b", "a", "a (2)", "a"])
    ('a', 'b', 'a (2)', 'a (2) (2)', 'a (3)')
    """
    distinct: dict[str, None] = {}
    for name in names:
        number, free = 2, name
        while free in distinct:
            free, number = f"{name} ({number})", number + 1
        distinct[free] = None
    return tuple(distinct)


def told(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Public arguments of an operator in JSON-able form, for people and programs to read; of very long ones a digest.

    Examples
    --------
    >>> told({"scopes": (("a", "b"),), "part": Fraction(1, 3), "point": np.zeros(2)})
    {'scopes': [['a', 'b']], 'part': '1/3', 'point': [0.0, 0.0]}
    """
    values = {name: _told(value) for name, value in arguments.items()}
    texts = {name: json.dumps(value) for name, value in values.items()}
    return {
        name: value if len(texts[name]) <= _LONGEST else {"sha256": hashlib.sha256(texts[name].encode()).hexdigest()}
        for name, value in values.items()
    }


def _told(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else str(float(value))
    if is_exactly(value, Number, Date, Schema):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        if value.size > _LONGEST:
            return {"shape": list(value.shape), "sha256": hashlib.sha256(value.tobytes()).hexdigest()}
        return _told(value.tolist())
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {name: _told(entry) for name, entry in value.items()}
        return [[_told(name), _told(entry)] for name, entry in value.items()]
    if isinstance(value, list | tuple | set | frozenset | range):
        listed = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return {"length": len(listed)} if len(listed) > _LONGEST else [_told(entry) for entry in listed]
    return value.__qualname__ if isinstance(value, type | FunctionType) else type(value).__qualname__

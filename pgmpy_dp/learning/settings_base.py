"""What the plans' settings share: rules of their fields, and what a release says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from pgmpy_dp.learning import options
from pgmpy_dp.private.budget import Budget

__all__ = ["SeededSettings", "Settings", "by", "number", "one_of", "share", "whole"]

Rule = Mapping[str, Callable[[str, Any], Any]]


def by(check: Callable[[str, Any], Any]) -> Rule:
    """Metadata of a field of `Settings` whose value is what `check` makes of its name and of what was passed."""
    return {"check": check}


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number from `least` to `most`."""
    return by(options.whole(least, most).check)


def number(*, positive: bool = True, below_one: bool = False, most: float = math.inf) -> Rule:
    """A finite number, above 0 unless not `positive`, below 1 if `below_one`, and at most `most`."""
    return by(options.number(positive=positive, below_one=below_one, most=most).check)


def share() -> Rule:
    """A part of something, above 0 and below 1."""
    return number(below_one=True)


def one_of(allowed: Sequence[str]) -> Rule:
    """One of some texts."""
    return by(options.one_of(allowed).check)


@dataclass(frozen=True)
class Settings:
    """What a plan does, fixed before the records are looked at: fields with a rule are checked, and kept as checked.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the schema. None stays where it is the default.
    """

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if "check" in item.metadata and not (value is None and item.default is None):
                object.__setattr__(self, item.name, item.metadata["check"](item.name, value))

    def public(self, budget: Budget, *names: str) -> dict[str, Any]:
        """What a release says of the budget, and of the fields of these names."""
        return {name: getattr(self, name) for name in names} | {"budget": budget.guarantee.to_dict()}


@dataclass(frozen=True)
class SeededSettings(Settings):
    """Settings of what adds noise.

    Parameters
    ----------
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release is marked reproducible, **is not private**, and a
        `ReproducibleNoiseWarning` says so.
    """

    random_state: int | None = field(default=None, kw_only=True, metadata=whole(0))

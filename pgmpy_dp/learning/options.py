"""Options: each is declared once, beside its default, and its check, its settings and its tests follow from that.

A declaration is a field, ``n_rounds: int = option(3, whole(1))``; subclasses have it too. An option whose default is
None may be None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar

from pgmpy_dp.checks import checked_integer, checked_number, require_choice, require_flag
from pgmpy_dp.private.budget import Budget

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    """The rule of an option: what it may be.

    Attributes
    ----------
    check : callable
        A function of the option's name and the value that was passed: it returns the value that is used, of one of
        Python's types, or raises a TypeError or ValueError that says what was got and what to pass.
    type : str
        "whole", "number", "choice", "flag" or "other".
    least, most : float
        The range of a number; it holds `least` unless `above`, and `most` unless `below`.
    above, below, infinite : bool
    choices : tuple of str
    nothing : bool
        Whether None is a value, even where it is not the default.
    names : callable, optional
        A function of the used value that gives the columns that it names. Estimators of tables hold these against the
        schema.
    """

    check: Callable[[str, Any], Any]
    type: str = "other"
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    below: bool = False
    infinite: bool = False
    choices: tuple[str, ...] = ()
    nothing: bool = False
    names: Callable[[Any], Iterable[Hashable]] | None = None


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number from `least` to `most`."""
    return Rule(
        lambda name, value: checked_integer(name, value, least, most),
        "whole",
        least,
        math.inf if most is None else most,
    )


def number(*, positive: bool = True, below_one: bool = False, most: float = math.inf, infinite: bool = False) -> Rule:
    """A finite number, above 0 unless not `positive`, below 1 if `below_one`, and at most `most`."""
    limits: dict[str, Any] = {"positive": positive, "below_one": below_one, "most": most, "infinite": infinite}
    return Rule(
        lambda name, value: checked_number(name, value, **limits),
        "number",
        0.0,
        1.0 if below_one else most,
        above=positive,
        below=below_one,
        infinite=infinite,
    )


def one_of(choices: Sequence[str | None]) -> Rule:
    """One of some texts; None among them is a choice too."""
    texts = tuple(choice for choice in choices if choice is not None)

    def check(name: str, value: Any) -> str:
        require_choice(name, value, texts)
        return str(value)

    return Rule(check, "choice", choices=texts, nothing=None in choices)


def flag() -> Rule:
    """A truth value."""

    def check(name: str, value: Any) -> bool:
        require_flag(name, value)
        return bool(value)

    return Rule(check, "flag")


def by(check: Callable[[str, Any], Any], names: Callable[[Any], Iterable[Hashable]] | None = None) -> Rule:
    """A rule by a function `check` of name and value; `names` gives the columns that a value names."""
    return Rule(check, names=(lambda value: (value,)) if check is column else names)


def anything() -> Rule:
    """A value that only the data, the schema or another option can judge: kept as it is."""
    return Rule(lambda _, value: value)


def adjacencies() -> Rule:
    """The adjacency of datasets of records."""
    return one_of(("add_remove", "replace_one"))


def column(name: str, value: Any) -> Hashable:
    """The name of a column."""
    if not isinstance(value, Hashable):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass the name of a column")
    return value


def option(default: Any, rule: Rule, **how: Any) -> Any:
    """A field with its default and its rule."""
    return field(default=default, metadata={"rule": rule}, **how)


@cache
def rules_of(owner: Any) -> Mapping[str, tuple[Rule, Any]]:
    """Rule and default of each declared option of a class, in the order of its constructor, or of a public function.

    Raises
    ------
    TypeError
        For an option without a rule.
    """
    rules = {}
    if not isinstance(owner, type):
        return {name: (rule, _defaults(owner)[name]) for name, rule in owner._rules.items()}
    declared = {one.name: one.metadata.get("rule") for one in fields(owner)}
    for name, default in _defaults(owner).items():
        if (rule := declared.get(name)) is None:
            raise TypeError(f"{owner.__name__} declares no rule for its option {name!r}")
        rules[name] = (rule, default)
    return rules


def _defaults(owner: Any) -> dict[str, Any]:
    import inspect

    return {
        name: parameter.default
        for name, parameter in inspect.signature(owner).parameters.items()
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }


def checked(holder: Any) -> dict[str, Any]:
    """The options of an object as they are used, each checked by its rule; those that are None by default may be None.

    Raises
    ------
    TypeError, ValueError
        For the first that is wrong.
    """
    owner: Any = type(holder)
    return {name: _used(name, getattr(holder, name), *declared) for name, declared in rules_of(owner).items()}


def _used(name: str, value: Any, rule: Rule, default: Any) -> Any:
    return None if value is None and (default is None or rule.nothing) else rule.check(name, value)


def declares(**rules: Rule) -> Callable[[F], F]:
    """Say what options of a public function may be: its own `arguments_of` checks them so, and tests know."""

    def declared(function: F) -> F:
        function._rules = rules  # type: ignore[attr-defined]  # of a function
        return function

    return declared


def arguments_of(function: Callable[..., Any], **arguments: Any) -> Settings:
    """Options of a public function, checked, as a method takes them; those that are None by default may be None.

    Raises
    ------
    TypeError, ValueError
        For the first that is wrong.
    """
    declared = rules_of(function)
    return Settings(**{name: _used(name, value, *declared[name]) for name, value in arguments.items()})


def settings_of(holder: Any) -> Settings:
    """The options of an object, checked, as a method takes them."""
    return Settings(**checked(holder))


class Settings(SimpleNamespace):
    """Checked options by name, read-only: what a method does, fixed before the records are looked at."""

    def __setattr__(self, name: str, value: object = None) -> NoReturn:
        raise AttributeError(f"settings are fixed; {name} cannot be set")

    __delattr__ = __setattr__

    def but(self, **changes: Any) -> Settings:
        """These settings with some values changed or added."""
        return Settings(**{**vars(self), **changes})

    def filled(self, **defaults: Any) -> Settings:
        """These settings with defaults for what they lack: options that a method takes and no estimator has."""
        return Settings(**{**defaults, **vars(self)})

    def public(self, budget: Budget, *names: str) -> dict[str, Any]:
        """The public record of the budget and of the settings with these names, for a release."""
        return {name: getattr(self, name) for name in names} | {"budget": budget.guarantee.to_dict()}

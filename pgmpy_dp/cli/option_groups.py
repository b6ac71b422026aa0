"""Options that stand together: a command takes a frozen dataclass of them, and the command line has each by itself."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints


def options_of(function: Callable) -> list[inspect.Parameter]:
    """The parameters of a function, with the fields of a dataclass in the place of one that is annotated with it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = 1
    ...     height: int = 2
    >>> def draw(*, size: Size, title: str) -> None:
    ...     print(title, size.width * size.height)
    >>> [parameter.name for parameter in options_of(draw)]
    ['width', 'height', 'title']
    >>> call_with_groups(draw, {"width": 3, "height": 4, "title": "of"})
    of 12
    """
    found: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            found += options_of(hints[name])
        else:
            # By keyword, for one without a default may follow one that has it.
            found.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
    return found


def call_with_groups(function: Callable, values: Mapping[str, Any]) -> Any:
    """Call a function with the values of `options_of` it, gathered as it takes them."""
    hints = get_type_hints(function, include_extras=True)
    names = inspect.signature(function).parameters
    return function(
        **{name: call_with_groups(hints[name], values) if is_dataclass(hints[name]) else values[name] for name in names}
    )

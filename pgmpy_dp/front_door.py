"""Names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def front_door(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, which exports these names unless its ``__all__`` says otherwise.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    home : mapping of str to str
        The module that each name comes from.

    Examples
    --------
    >>> find, names = front_door("pgmpy_dp", {"Budget": "pgmpy_dp.private.budget"})
    >>> find("Budget").__name__, "Budget" in names()
    ('Budget', True)
    """

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    vars(sys.modules[package]).setdefault("__all__", sorted(home))
    return find, names

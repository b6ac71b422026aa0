"""Which classes are the boundary's own: those that one of its modules has under their name."""

from __future__ import annotations

import sys

__all__ = ["is_own", "require_own"]

_INSIDE = ("pgmpy_dp.private.", "pgmpy_dp.linked.operators.")


def is_own(kind: type) -> bool:
    """Whether a class is defined in the boundary; not one that only says so, and no subclass of one.

    Examples
    --------
    >>> from pgmpy_dp.private.budget import Budget
    >>> is_own(Budget), is_own(type("Budget", (Budget,), {"__module__": Budget.__module__}))
    (True, False)
    """
    module = sys.modules.get(kind.__module__)
    return kind.__module__.startswith(_INSIDE) and getattr(module, kind.__qualname__, None) is kind


def require_own(what: str, value: object, instead: str) -> None:
    """Raise a TypeError, which says what to use, for an object of a class that is not the boundary's own.

    A subclass could answer otherwise than its base what noise is made from: a cost, an adjacency, a number of rows.
    """
    kind = type(value)
    if not is_own(kind):
        raise TypeError(f"{what} is a {kind.__qualname__}, which is not a class of the boundary; {instead}")

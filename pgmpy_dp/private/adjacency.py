"""The adjacency of datasets. Every sensitivity names its adjacency; no formula assumes one silently."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Adjacency(StrEnum):
    """The change in which two neighbouring datasets differ.

    ``add_remove``
        One record more or fewer; the number of records is private.
    ``replace_one``
        One record has other values; the number of records is public.
    ``edge``
        Two graphs on the same vertices that differ in one edge.

    Examples
    --------
    >>> Adjacency.parse("replace_one")
    <Adjacency.REPLACE_ONE: 'replace_one'>
    """

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"
    EDGE = "edge"

    @classmethod
    def parse(
        cls, value: str | Adjacency, argument: str = "adjacency", allowed: Iterable[str] | None = None
    ) -> Adjacency:
        """Member called `value`; ValueError naming the argument and the `allowed` names otherwise."""
        names = tuple(str(name) for name in (cls if allowed is None else allowed))
        if not isinstance(value, str) or str(value) not in names:
            raise ValueError(f"{argument}={value!r} is not supported; use one of {', '.join(map(repr, names))}")
        return cls(value)


def changed_records(adjacency: Adjacency) -> int:
    """Records in which two neighbouring tables differ, as multisets: 1 under add_remove, 2 under replace_one.

    Under add_remove the neighbour has one record more or fewer. Under replace_one it has lost one record and gained
    another, which is a removal followed by an addition.
    """
    if adjacency == Adjacency.ADD_REMOVE:
        return 1
    if adjacency == Adjacency.REPLACE_ONE:
        return 2
    raise ValueError(f"adjacency={str(adjacency)!r} does not compare tables of records; use add_remove or replace_one")

"""The adjacency of datasets. Every sensitivity names its adjacency; no formula assumes one silently."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import StrEnum

from pgmpy_dp.shown import shown


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


Tables = tuple[tuple[Hashable, ...], ...]  # the columns of public tables that are those of the records themselves


def named_tables(tables: Iterable[Iterable[Hashable]]) -> str:
    """Return the columns of tables, for people to read, each table once."""
    return "; ".join(dict.fromkeys(", ".join(map(shown, scope)) for scope in tables))


def agreement(tables: Tables) -> str:
    """Return what follows a guarantee where tables of the records are public; nothing where there are none.

    Examples
    --------
    >>> "1-DP" + agreement((("region",), ("sex", "age")))
    "1-DP between neighbours that agree on these records' tables of region; sex, age"
    """
    return f" between neighbours that agree on these records' tables of {named_tables(tables)}" if tables else ""


_TWICE = "twice the epsilon, four times the rho, and 1 + exp(epsilon) times the delta"


def exchange_words(tables: Tables, guarantee: object, exchanged: object = _TWICE) -> str:
    """Return a sentence on what the columns of public tables of the records still have.

    Notes
    -----
    Privacy: two records that exchange every column that one of the tables names leave all of the tables as they are. It
    takes two replacements, of a dataset that need not agree in the middle: each statement is that of a curator whatever
    the tables are (`ledger.md`, "Tables that are public").
    """
    return (
        f"The tables of {named_tables(tables)} are public: what a record has in these columns is not protected by "
        f"{guarantee}. Two records that exchange all of these columns are protected by {exchanged}."
    )

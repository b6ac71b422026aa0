"""One line of a ledger with what it protects, and several of them as a table of text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pgmpy_dp.private.adjacency import Adjacency, Tables
from pgmpy_dp.private.guarantee import Guarantee, guarantee_from_dict
from pgmpy_dp.schema import decode_label, encode_label
from pgmpy_dp.shown import shown

UNSAID = "text or integer"
"""A kind of unit that may be either."""


@dataclass(frozen=True)
class Unit:
    """A unit whose cells are compared otherwise than as texts: each value of its column, with all its rows.

    Guarantees for units of two kinds do not add up (``ledger.md``). Where cells are compared as texts, as in every
    table, the unit is the name of the column alone.

    Attributes
    ----------
    column : hashable
    kind : {"integer", "text or integer"}
        "integer": as whole numbers, so that "007" is 7. The other is of linked tables in a ledger of version 0.3, which
        did not say in which of two ways they compared their key.

    Examples
    --------
    >>> decode_unit("house", "integer"), decode_unit("house", "text"), encode_unit(Unit("house", "integer"))
    (house (compared as integer), 'house', {'column': 'house', 'kind': 'integer'})
    """

    column: Hashable
    kind: str

    def __repr__(self) -> str:
        return f"{shown(self.column)} (compared as {self.kind})"


def encode_unit(unit: Hashable) -> Any:
    """JSON form of a unit, read back exactly by :func:`decode_unit`; TypeError for what is none."""
    return {"column": encode_label(unit.column), "kind": unit.kind} if type(unit) is Unit else encode_label(unit)


def decode_unit(encoded: Any, kind: str | None = None) -> Hashable:
    """Unit from its JSON form; of one that is a column alone, `kind` may say how its cells are compared."""
    if isinstance(encoded, dict) and "column" in encoded:
        encoded, kind = encoded["column"], encoded["kind"]
    if kind not in (None, "text", "integer", UNSAID):
        raise ValueError(f"kind={kind!r} is none of the ways in which cells of a unit's column are compared")
    column = decode_label(encoded)
    return column if column is None or kind in (None, "text") else Unit(column, str.__str__(kind))


def one_kind(first: Hashable, second: Hashable) -> str:
    """Return the end of a message on two units that are one column whose cells are compared in two ways: what to do."""
    if first == second or getattr(first, "column", first) != getattr(second, "column", second):
        return ""
    return (
        '. Keep to one: texts, as in tables and by key_kind="text" of a LinkedSchema, or key_kind="integer", by which '
        '"007" is 7. Where version 0.3 left it open, say once which it was: Ledger.open(path, key_kind=...)'
    )


@dataclass(frozen=True)
class Entry:
    """One charge.

    It has no time: how long a release takes depends on the records, and so do the times of the charges after it. Times
    in files and pickles of earlier versions are dropped when they are read.

    Attributes
    ----------
    what : str
        What was released.
    columns : tuple
        Variables of the schema that it read.
    mechanism : str
    cost : Guarantee
    adjacency : Adjacency
    reproducible : bool
        True when the noise came from a seed: such a release protects nobody, whatever its cost says.
    unit : hashable
        What is protected: None is one record; else the column each of whose values is protected with all its rows,
        or a :class:`Unit`, which says how its cells are compared.
    public_tables : tuple of tuple of hashable
        The columns of tables of these records that are public as they are, and that later releases may depend on.
    """

    what: str
    columns: tuple
    mechanism: str
    cost: Guarantee
    adjacency: Adjacency
    reproducible: bool
    unit: Hashable = None
    public_tables: Tables = ()

    def __post_init__(self) -> None:
        # Later entries have the adjacency and the unit of this one, and earlier ones too: the ledger compares them.
        if self.public_tables and (self.adjacency, self.unit) != (Adjacency.REPLACE_ONE, None):
            raise ValueError(
                f"adjacency={str(self.adjacency)!r}, unit={self.unit!r}, and exact tables of these records are public: "
                "no neighbours agree on them, or nothing was proved. Use adjacency='replace_one' and single records"
            )

    def copied(self) -> Entry:
        """Return a copy, for whoever may do with it what they like."""
        return replace(self, cost=replace(self.cost), unit=decode_unit(encode_unit(self.unit)))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :meth:`from_dict`."""
        tables = [list(map(encode_label, scope)) for scope in self.public_tables]
        return {
            "what": self.what,
            "columns": [encode_label(name) for name in self.columns],
            "mechanism": self.mechanism,
            "cost": self.cost.to_dict(),
            "adjacency": str(self.adjacency),
            "reproducible": self.reproducible,
            "unit": encode_unit(self.unit),
            **({"public_tables": tables} if tables else {}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Entry:
        """Entry from its :meth:`to_dict` form; ValueError for another."""
        texts, flag, columns = (stored["what"], stored["mechanism"]), stored["reproducible"], stored["columns"]
        if not (all(isinstance(t, str) for t in texts) and isinstance(flag, bool) and isinstance(columns, list)):
            raise ValueError(f"the entry {stored!r} has a part of another type than entries have")
        return cls(
            what=stored["what"],
            columns=tuple(decode_label(name) for name in stored["columns"]),
            mechanism=stored["mechanism"],
            cost=guarantee_from_dict(stored["cost"]),
            adjacency=Adjacency.parse(stored["adjacency"]),
            reproducible=stored["reproducible"],
            unit=decode_unit(stored.get("unit")),
            public_tables=tuple(tuple(map(decode_label, scope)) for scope in stored.get("public_tables", ())),
        )

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update({field.name: state[field.name] for field in fields(self) if field.name in state})


def entries_table(entries: Iterable[Entry]) -> list[str]:
    """Lines of a table with one row per entry, for people to read."""
    header = ("#", "what", "columns", "mechanism", "cost", "noise")
    rows = [
        (
            str(number),
            shown(entry.what),
            _columns_text(entry.columns),
            entry.mechanism,
            str(entry.cost),
            "SEEDED: NOT PRIVATE" if entry.reproducible else "private",
        )
        for number, entry in enumerate(entries, 1)
    ]
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def _columns_text(columns: tuple, limit: int = 40) -> str:
    text = ", ".join(map(shown, columns))
    return text if len(text) <= limit else f"{text[: limit - 16]}... ({len(columns)} in all)"

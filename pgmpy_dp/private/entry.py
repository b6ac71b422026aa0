"""One line of a ledger, and several of them as a table of text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import Guarantee, guarantee_from_dict
from pgmpy_dp.schema import decode_label, encode_label
from pgmpy_dp.shown import shown


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
        What is protected: None is one record; else the column each of whose values is protected with all its rows.
    """

    what: str
    columns: tuple
    mechanism: str
    cost: Guarantee
    adjacency: Adjacency
    reproducible: bool
    unit: Hashable = None

    def copied(self) -> Entry:
        """The same, for whoever may do with it what they like."""
        return replace(self, cost=replace(self.cost))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :meth:`from_dict`."""
        return {
            "what": self.what,
            "columns": [encode_label(name) for name in self.columns],
            "mechanism": self.mechanism,
            "cost": self.cost.to_dict(),
            "adjacency": str(self.adjacency),
            "reproducible": self.reproducible,
            "unit": encode_label(self.unit),
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
            unit=decode_label(stored.get("unit")),
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

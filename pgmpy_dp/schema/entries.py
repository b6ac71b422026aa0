"""The variables of a schema in its file: one entry for each, in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pgmpy_dp.schema.date import Date
from pgmpy_dp.schema.labels import decode_label, encode_label, short
from pgmpy_dp.schema.levels import Levels
from pgmpy_dp.schema.number import Number

if TYPE_CHECKING:
    from pgmpy_dp.schema.table_schema import Schema


def entries_of(schema: Schema) -> list[dict[str, Any]]:
    """JSON-able entries, constants last."""
    entries: list[dict[str, Any]] = []
    for name in schema.variables:
        entry: dict[str, Any] = {"name": encode_label(name)}
        if name in schema.numbers:
            entry[schema.numbers[name].kind] = schema.numbers[name].to_dict()
        else:
            states = schema.states[name]
            entry["states"] = [encode_label(state) for state in states]
            if schema.reading(name).codes:
                entry["codes"] = True
            if name in schema.other:
                entry["other"] = encode_label(schema.other[name])
            if isinstance(states, Levels):
                entry |= states.to_dict()
        entries.append(entry)
    alone = schema.constants.items()
    return entries + [{"name": encode_label(name), "states": [encode_label(state)]} for name, state in alone]


def read_entries(entries: Iterable[Mapping]) -> dict[str, Any]:
    """The arguments of a schema that its entries say; ValueError for what none of them is.

    Texts that look like intervals are not refused: a schema that was made is read.
    """
    variables: dict[Hashable, Any] = {}
    other: dict[Hashable, Any] = {}
    codes: list[Hashable] = []
    for entry in entries:
        name = decode_label(entry["name"])
        # Bounds had no cells of their own in files of 0.3, which say nothing of spikes.
        kinds = (made for made in (Number, Date) if made.kind in entry)
        declared = next((made(**{"spikes": (), **entry[made.kind]}) for made in kinds), None)
        if "bounds" in entry:
            declared = Number(*entry["bounds"])
        if declared is not None:
            variables[name] = declared
            continue
        if not isinstance(entry.get("codes", False), bool):
            raise ValueError(f"variable {name!r} has codes={short(entry['codes'])}; write true or false")
        variables[name] = [decode_label(state) for state in entry["states"]]
        if "levels" in entry:
            variables[name] = Levels.from_dict(variables[name], entry, entry.get("codes", False))
        if "other" in entry:
            other[name] = decode_label(entry["other"])
        codes += [name] * entry.get("codes", False)
    texts = [n for n, declared in variables.items() if not isinstance(declared, Number) and len(declared) > 1]
    return {"variables": variables, "other": other, "texts": texts, "codes": codes}

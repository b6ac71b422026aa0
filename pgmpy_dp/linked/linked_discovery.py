"""Discovery of categories and cuts of linked tables that nobody has listed, for a part of a budget."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pgmpy_dp.checks import ArgumentError
from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.privacy_record import Privacy, handed_over
from pgmpy_dp.linked.linked_model import words_of_a_child
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.data.columns import PrivateColumns, in_their_order
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import Number, Schema
from pgmpy_dp.shown import shown
from pgmpy_dp.tables.category_search import CATEGORIES, STAND_INS, DiscoverSettings
from pgmpy_dp.tables.discovery import Discovery, columns_to_look_at, look_at, warn_of_few


@dataclass(frozen=True, eq=False)
class LinkedDiscovery(Shown):
    """The schema of both tables, and what it cost; ``str`` of it is a summary to read.

    Attributes
    ----------
    schema : LinkedSchema
        Its two schemas say what their discovery cost; a model that is learned with them says the sum.
    parent, child : Discovery or None
        The discovery in each table; None where all was declared.
    """

    schema: LinkedSchema
    parent: Discovery | None
    child: Discovery | None

    @property
    def parts(self) -> list[Discovery]:
        """The discoveries in parents and in children."""
        return [part for part in (self.parent, self.child) if part is not None]

    @property
    def privacy_(self) -> Privacy:
        """The privacy of both discoveries together."""
        first, *rest = [part.privacy_ for part in self.parts]
        return reduce(Privacy._and, rest, first)

    @property
    def failed(self) -> bool:
        """Whether next to no families were seen, or nothing was found in any column of a table."""
        return any(part.failed for part in self.parts)

    def to_json(self, path: str | Path) -> None:
        """Write the schema to a JSON file that :meth:`~pgmpy_dp.LinkedSchema.from_json` reads, with what it cost."""
        self.schema.to_json(path)

    def to_dict(self) -> dict[str, Any]:
        """The facts for programs, as JSON can hold them."""
        parts = dict(zip(self.schema.names, (self.parent, self.child), strict=True))
        tables = {
            name: part and {"n_records": part.n_records, "columns": part.columns()} for name, part in parts.items()
        }
        return {"tables": tables, **self.privacy_.told()}

    def __str__(self) -> str:
        lines = []
        for name, part in zip(self.schema.names, (self.parent, self.child), strict=True):
            if part is not None:
                lines += [f"{shown(name)}, of each {shown(self.schema.key)} one row:", *str(part).splitlines()[:-1]]
        child = shown(self.schema.names[1])
        return "\n".join([*lines, f"Spent {self.privacy_}; of one {child} alone {words_of_a_child(self.privacy_)}"])


def discover_linked(
    parents: Any,
    children: Any,
    budget: Budget,
    ledger: Ledger | Budget | None,
    described: Mapping[str, Any],
    reading: Mapping[str, Any],
    **options: Any,
) -> LinkedDiscovery:
    """Discover the columns of two linked tables, for :func:`pgmpy_dp.discover`.

    Parameters
    ----------
    parents, children, budget, ledger
    described : mapping
        Arguments of `LinkedSchema`, whose columns may say "categories".
    reading : mapping
        How cells of both tables are read.
    **options
        Of :func:`~pgmpy_dp.tables.discovery.columns_to_look_at`.

    Notes
    -----
    Privacy: the unit is all that carries one value of the key. In each table one row of each unit counts, drawn by the
    unit's rows (:mod:`pgmpy_dp.private.data.columns`), so that its proof holds for each table; both charge one
    ledger, in which their costs add up. One child among its siblings may cost four times the rho, or twice an epsilon.
    """
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.2, delta=1e-8)")
    said = {"parent": None, "names": ("parent", "child"), **described}
    parent, child = said.pop("parent"), said.pop("child")
    if parent is None and children is None:
        parents, children = None, parents
    if (parent is None) != (parents is None):
        raise ValueError("parents and parent: pass a table and its columns, or None for both")
    declared: dict[str, Any] = {"parent": parent, "child": child}
    readings = {
        which: reading_of_table(table, columns or {}, reading)
        for table, (which, columns) in zip(said["names"], declared.items(), strict=True)
    }
    bins = options.get("bins")
    wanted = {which: _looked_at(columns, bins) for which, columns in declared.items()}
    stand_ins: dict[str, Any] = {
        which: _stand_in(columns, readings[which], wanted[which] > 0) for which, columns in declared.items()
    }
    linked = LinkedSchema(stand_ins["parent"], stand_ins["child"], **said)  # what is wrong is said now
    cut = [n for n, cuts in linked.count_cuts.items() if cuts and n in child and not linked.child.numbers[n].divided]
    if bins is not None and cut:
        raise ValueError(f"counts are about {cut}, which bins={bins} would cut elsewhere; pass cuts of it, or no bins")
    total = sum(wanted.values())
    if total == 0:
        raise ValueError("parent and child have states or cuts for each column, so nothing is to be found")
    adjacency = options.get("adjacency") or "add_remove"
    if ledger is None or isinstance(ledger, Budget):
        ledger = Ledger(ledger or budget, adjacency=str(adjacency))
    spent = _divided(budget, [wanted["parent"] / total, wanted["child"] / total])
    questions: dict[str, tuple[PrivateColumns, DiscoverSettings, Budget]] = {}
    for which, df, cost in (("parent", parents, spent[0]), ("child", children, spent[1])):
        if wanted[which]:
            table = columns_to_look_at(
                df, declared[which], cost, ledger, unit=linked.unit, **readings[which], **options
            )
            questions[which] = (*table, cost)
    parts: dict[str, Discovery] = {}
    for which, question in questions.items():
        try:
            parts[which] = look_at(*question)
        except BaseException as error:
            for earlier in parts.values():
                error.earlier = earlier.release_  # type: ignore[attr-defined]
                error.add_note("What was found in the parents is paid for: it is this exception's .earlier")
            raise
    schemas: list[Any] = [parts[which].schema if which in parts else stand_ins[which] for which in declared]
    if "child" in parts and not set(linked.order) <= set(schemas[1]):  # a column that nothing was found in
        schemas[1] = parts["child"].release_.schema
    result = LinkedDiscovery(LinkedSchema(schemas[0], schemas[1], **said), parts.get("parent"), parts.get("child"))
    for part in result.parts:
        with handed_over(part.release_):
            warn_of_few(part)
    return result


def columns_by_table(declared: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, dict[Any, Any]]:
    """Declarations of each table's columns, in its order: those with its name before them, or that it alone has.

    Parameters
    ----------
    declared : mapping of str to declaration
    tables : mapping of str to dataframe, path or None
        By what they are called.

    Raises
    ------
    ArgumentError
        For a column that neither table has, or both.
    """

    def has(table: str, column: str) -> bool:
        try:
            return bool(in_their_order(tables[table], [column])) if tables[table] is not None else False
        except ValueError:
            return False

    by_table: dict[str, dict[Any, Any]] = {table: {} for table in tables}
    for name, said in declared.items():
        written = [(table, name.removeprefix(f"{table}.")) for table in tables]
        places = [(table, column) for table, column in written if has(table, column)]
        if len(places) == 2 and name not in dict(written).values():  # one of them is named
            places = [place for place in places if place[1] != name]
        if len(places) != 1:
            ways = " and ".join(f"{table}.{column}" for table, column in places) or "neither"
            remedy = f"of the tables, {ways} have it; describe a column of one, with the table before it"
            raise ArgumentError(name, said, remedy)
        ((table, column),) = places
        by_table[table][column] = said
    return {t: {name: c[name] for name in in_their_order(tables[t], c)} if c else {} for t, c in by_table.items()}


def reading_of_table(table: str, columns: Mapping[Any, Any], reading: Mapping[str, Any]) -> dict[str, Any]:
    """The options for reading one table's cells: those of all columns, and those of one that the table has."""

    def in_table(names: Any) -> dict[Hashable, Any]:
        plain = {name: name.removeprefix(f"{table}.") if isinstance(name, str) else name for name in names}
        return {name: column for name, column in plain.items() if column in columns}

    table_reading: dict[str, Any] = {}
    for what, value in reading.items():
        if what == "impossible":
            if value and not isinstance(value, Mapping):
                remedy = "of linked tables pass rules by table, {'person': [...]}, or write them into what this finds"
                raise ArgumentError(what, value, remedy)
            value = dict(value).get(table, ())
        elif isinstance(value, Mapping):
            value = {column: value[name] for name, column in in_table(value).items()}
        elif what in ("strip", "casefold", "codes") and not isinstance(value, bool | None):
            value = list(in_table(value).values())
        table_reading |= {what: value} if value or (what == "codes" and value is False) else {}
    return table_reading


def _looked_at(variables: Mapping | None, bins: int | None) -> int:
    """The number of columns that are looked at."""
    numbers = [declared for declared in (variables or {}).values() if isinstance(declared, Number)]
    wanted = [d for d in (variables or {}).values() if isinstance(d, str) and d == CATEGORIES]
    return len(wanted) + (0 if bins is None else sum(not number.divided for number in numbers))


def _stand_in(variables: Mapping | None, options: Mapping[str, Any], wanted: bool) -> Schema | None:
    """A schema with stand-ins for the columns that are discovered, by which the rest is checked."""
    if variables is None:
        return None
    if not isinstance(variables, Mapping):
        raise TypeError(f"{variables!r} is a {type(variables).__name__}; pass a mapping of columns to declarations")
    states = {n: list(STAND_INS) if isinstance(d, str) and d == CATEGORIES else d for n, d in variables.items()}
    kept = ("missing", "strip", "casefold", "codes", "impossible", *(() if wanted else ("recode",)))
    return Schema(states, **{name: value for name, value in options.items() if name in kept})


def _divided(budget: Budget, shares: list[float]) -> list[Budget]:
    """A budget in two parts, which add up to no more."""
    if 0.0 in shares:
        return [budget, budget]  # only one of them is spent
    first = {name: getattr(budget, name) * shares[0] for name in ("epsilon", "delta", "rho") if getattr(budget, name)}
    rest = {name: math.nextafter(getattr(budget, name) - part, 0.0) for name, part in first.items()}
    return [Budget(**first), Budget(**rest)]

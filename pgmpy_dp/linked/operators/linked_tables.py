"""Private parents with their children, behind one ledger: read, coded and made into rows once, inside the boundary."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.unit_kinds import broken_rules, kinds_schema, unit_kinds
from pgmpy_dp.linked.operators.unit_rows import CodedChildren, CodedParents, unit_rows
from pgmpy_dp.linked.operators.wide_table import WideTable, wide_table
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import PrivateData, checked_public_count
from pgmpy_dp.private.data.table import SHARES, PrivateTable
from pgmpy_dp.private.data.units import UnitRecords, fresh_key, rows_as_they_are
from pgmpy_dp.private.discovered import require_same_promise
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.reading.arrow_cells import Column, cells_of, quietly
from pgmpy_dp.private.reading.owners import Owners, warn_of_guessed_types
from pgmpy_dp.private.reading.records import spelled_texts
from pgmpy_dp.private.reading.source_base import Source
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.private.reading.variables import Variable
from pgmpy_dp.private.trusted_types import require_trusted
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.orders import OrderRule
from pgmpy_dp.shown import quantity


class PrivateLinkedTables(PrivateTable):
    """Parents and their children that estimators may learn from, with one ledger for all of them.

    To operators it is one table, a `PrivateTable` of units whose rows count by shares: a row has a parent's columns,
    the number of children, and up to two of the children (:mod:`pgmpy_dp.linked.operators.wide_table`). It shows public
    facts alone, and refuses to be copied or pickled.

    Parameters
    ----------
    parents, children : frame, relation, stream, str or Path
        As :class:`~pgmpy_dp.PrivateTable` takes data; both have the key's column. Without a schema of parents `parents`
        is None, and each value of the key that a child has is a parent.
    schema : LinkedSchema
    adjacency : {"add_remove", "replace_one"}, default "add_remove"
        Of parents with all their children.
    ledger : Ledger or Budget
        What may be spent on both tables, by everything together.
    n_records : int, optional
        The number of parents, if it is public.
    random_state : int, optional
        For tests and benchmarks: which children are drawn is repeatable. The guarantee does not depend on it.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, missing columns, and Parquet files whose declared types of the key are of two kinds without
        a `key_kind`, before anything is spent. Nothing is raised because of a record: children
        without a parent, parents that occur twice, and parents outside the schema are dropped in silence.

    Notes
    -----
    Privacy
        *Unit.* Neighbours differ in everything that carries one value of the key in both tables. Adding or removing it
        moves a table of counts by at most 1 in l1 and l2 norm (:mod:`pgmpy_dp.linked.operators.unit_rows` has the
        proof), so the operators of a table of units that count by shares are those of this.

        *One child* that is added, removed or changed, its key as it was, may cost up to four times the rho, or twice a
        pure epsilon, that a parent with all its children is promised under ``add_remove``, and as much as is promised
        under ``replace_one``: it is never better protected by being one of several. One that moves to another parent
        changes two units. It may cost up to 16 times the rho, or four times a pure epsilon; under ``replace_one`` four
        times and twice.

    Examples
    --------
    >>> import pandas as pd
    >>> linked = LinkedSchema({"region": ["n", "s"]}, {"sex": ["f", "m"]}, key="house", most=4)
    >>> houses = pd.DataFrame({"house": ["h1", "h2"], "region": ["n", "s"]}).astype("string[pyarrow]")
    >>> people = pd.DataFrame({"house": ["h1", "h1", "h3"], "sex": ["f", "m", "f"]}).astype("string[pyarrow]")
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     PrivateLinkedTables(houses, people, linked, ledger=Budget(epsilon=1.0))
    PrivateLinkedTables(parent 1 column, child 1 column, unit='house', adjacency='add_remove', spent 0-DP of 1-DP)
    """

    __slots__ = ("_kinds", "_linked")

    def __init__(
        self,
        parents: Any,
        children: Any,
        schema: LinkedSchema,
        *,
        adjacency: str = Adjacency.ADD_REMOVE,
        ledger: Ledger | Budget | None = None,
        n_records: int | None = None,
        random_state: int | None = None,
    ) -> None:
        require_trusted("schema", schema, "pass a LinkedSchema")
        self._linked = LinkedSchema.from_dict(schema.to_dict())
        wide = wide_table(self._linked)
        PrivateData.__init__(self, adjacency, ledger)
        self._declared, self._schema = wide.schema, wide.schema.fine()
        self._unit, self._rows_per_unit, self._places = self._linked.unit, SHARES, None
        for part in self._linked.tables.values():
            require_same_promise(part, self._ledger if ledger is None else ledger, self._adjacency, self._unit)
        self._n_units = self._n_records = checked_public_count("n_records", n_records, self._adjacency)
        if parents is None and self._linked.parent is not None:
            raise ValueError(
                "parents=None, and the schema has columns of parents; pass their table, or a schema with parent=None"
            )
        if parents is not None and self._linked.parent is None:
            raise ValueError(
                "parents were passed, and the schema has parent=None; pass a schema of their columns, or parents=None"
            )
        if parents is children:
            raise ValueError(
                "parents and children are the same object, of which a stream can be read once; pass two, or "
                "parents=None for one file with several rows a parent"
            )
        above, below = None if parents is None else open_source(parents), open_source(children)
        self._check_sources(above, below)
        made = _records(above, below, self._linked, wide, self._schema, fresh_key(random_state))
        self._records, self._kinds = made

    def _check_sources(self, parents: Source | None, children: Source) -> None:
        """Refuse what is missing, or of a type that cannot be read, before anything is read."""
        key, sources = self._linked.key, [children] if parents is None else [parents, children]
        for (table, schema), source in zip(self._linked.tables.items(), sources, strict=True):
            try:
                source.positions([*schema.variables, key])
            except ValueError as error:
                raise ValueError(f"{table}: {error}") from None
            source.check_types([*schema.variables, key])
            source.require_types(schema)
            warn_of_guessed_types(source, key)
        kinds = [source.declared_kind(key) for source in sources]
        if self._linked.key_kind is None and None not in kinds and len(set(kinds)) > 1:
            (above, below), (parent, child) = kinds, self._linked.names
            raise ValueError(
                f"key={key!r} is declared as {above} in the files of {parent} and as {below} in those of {child}, so "
                "that a parent may have no child that is its own. Write both alike, or say in the LinkedSchema how "
                'they compare: key_kind="integer", where "007" is 7, or key_kind="text", where 7 is "7" alone'
            )

    @property
    def linked(self) -> LinkedSchema:
        """The public description of both tables: a copy."""
        return LinkedSchema.from_dict(self._linked.to_dict())

    def _public(self) -> dict[str, Any]:
        return super()._public() | {"linked": self._linked.to_dict()}

    def __repr__(self) -> str:
        linked = self._linked
        schemas = zip(linked.names, (linked.parent or (), linked.child), strict=True)
        tables = ", ".join(f"{name} {quantity(schema, 'column')}" for name, schema in schemas)
        return (
            f"PrivateLinkedTables({tables}, unit={self._unit!r}, adjacency={str(self._adjacency)!r}, "
            f"spent {self._ledger.spent} of {self._ledger.budget})"
        )


def table_of_kinds(tables: PrivateLinkedTables) -> PrivateTable:
    """Return what each unit is (:mod:`pgmpy_dp.linked.operators.unit_kinds`), as a private table with the same ledger.

    TypeError for data that are not of linked tables.
    """
    if type(tables) is not PrivateLinkedTables:
        raise TypeError(f"tables is a {type(tables).__name__}; pass PrivateLinkedTables")
    other = tables._like_this()
    other._declared = other._schema = kinds_schema(tables._linked)
    other._records, other._places = tables._kinds, None
    return other


def _records(
    parents: Source | None, children: Source, linked: LinkedSchema, wide: WideTable, schema: Schema, key: bytes
) -> tuple[UnitRecords, UnitRecords]:
    """The rows of all units, and what each unit is, as records that count by shares."""
    owners, columns = Owners("integer" if linked.key_kind == "integer" else "unit"), list(linked.parent or ())
    orders = [rule for rule in linked.family_rules if isinstance(rule, OrderRule)]
    compared = {linked.named[n].name: linked.named[n].declared for rule in orders for n in (rule.low, rule.high)}
    above, below = ([name for table, name in compared if table == one] for one in linked.names)
    marked = [] if parents is None else _marks(parents, schema.subset(columns), linked.key, owners, above)
    child = [Variable(wide.child, name) for name in wide.child]
    taken = _marks(children, wide.child, linked.key, owners, [*linked.order, *below])
    owner = owners.numbered()
    n_parents = len(marked[0]) if marked else 0
    parent_owner, child_owner = (owner[:n_parents], owner[n_parents:]) if parents is not None else (owner[:0], owner)
    n_ids = int(owner.max(initial=-1)) + 1
    if parents is None:
        parent_owner, parent_codes = np.arange(n_ids), np.empty((n_ids, 0), dtype=np.int64)
        inside, parent_matches, ranks = np.ones(n_ids, dtype=bool), [], []
    else:
        variables = [Variable(schema, name) for name in columns]
        marked, ranks = marked[: len(variables)], marked[len(variables) :]
        inside = np.logical_and.reduce([v.kept(m) for m, v in zip(marked, variables, strict=True)])
        parent_codes = np.column_stack([v.codes(m) * v.kept(m) for m, v in zip(marked, variables, strict=True)])
        parent_matches = [m < v.states for m, v in zip(marked, variables, strict=True)]
    child_marks, ranked = taken[: len(child)], taken[len(child) :]
    order, ranked = ranked[: len(linked.order)], ranked[len(linked.order) :]
    child_codes = np.empty((len(child_owner), len(child)), dtype=np.int32)
    for j, (variable, marks) in enumerate(zip(child, child_marks, strict=True)):
        codes, outside = variable.codes(marks).astype(np.int32), wide.outside[j]
        child_codes[:, j] = codes if outside is None else np.where(codes == variable.states, outside, codes)
    by = np.column_stack(order) if order else np.empty((len(child_owner), 0))
    coded = CodedChildren(child_owner, child_codes, by, linked.conditions_met(child_codes, wide.child))
    units = CodedParents(parent_owner, inside, parent_codes)
    rows = unit_rows(units, coded, owners.identities(range(n_ids)), key, wide, linked.least, linked.most)
    child_matches = [m < v.states for m, v in zip(child_marks, child, strict=True)]
    numbers = {(linked.names[1], name): rank for name, rank in zip(below, ranked, strict=True)}
    for name, rank in zip(above, ranks, strict=True):
        of_unit = np.full(n_ids + 1, np.nan)  # the last of nobody
        of_unit[parent_owner] = rank
        numbers[linked.names[0], name] = of_unit[child_owner]
    for name, rank in numbers.items():
        numbers[name] = np.where((compared[name].lower <= rank) & (rank <= compared[name].upper), rank, np.nan)
    broken = broken_rules(linked, wide.child, child_codes, numbers, child_owner, n_ids)
    kinds = unit_kinds(units, parent_matches, child_owner, child_matches, broken, linked.most)
    return rows_as_they_are(schema, *rows), rows_as_they_are(kinds_schema(linked), *kinds)


def _marks(
    source: Source, schema: Schema, key: Hashable, owners: Owners, order: Sequence[Hashable] = ()
) -> list[np.ndarray]:
    """Marks of each column, then the ranks of those of `order`; the key's cells go to `owners`."""
    names = list(schema.variables)
    variables = [Variable(schema, name) for name in names]
    batches: list[list[np.ndarray]] = []
    with source.one_pass([*names, key], [*spelled_texts(schema), None]) as read:
        for *columns, whose in read:
            marks = [variable.marks(column) for variable, column in zip(variables, columns, strict=True)]
            batches.append([*marks, *(quietly(_ranks, schema, name, columns[names.index(name)]) for name in order)])
            owners.add(whose)
    dtypes = [*(variable.dtype for variable in variables), *(np.dtype(float) for _ in order)]
    return [np.concatenate([np.empty(0, dtype), *(batch[k] for batch in batches)]) for k, dtype in enumerate(dtypes)]


def _ranks(schema: Schema, name: Hashable, column: Column) -> np.ndarray:
    """Return what orders each cell: its number or day, or the place of its state; what has none comes last."""
    cells, number, reading = cells_of(column), schema.numbers.get(name), schema.reading(name)
    code = schema.coder(name)

    def rank(cell: Any) -> float:
        key = reading.key(cell)
        if number is None:
            value: float | None = code(key)
            return math.inf if value is None or value < 0 else float(value)
        value = number.reads(reading(key))
        return math.inf if value is None or math.isnan(value) else value

    return np.array([rank(cell) for cell in cells.listed], dtype=float)[cells.places]

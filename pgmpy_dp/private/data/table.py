"""Private records behind a schema, an adjacency and a ledger."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, UnitBudget
from pgmpy_dp.private.data.contingency import match_sensitivity, table_sensitivity
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.data_base import PrivateData, checked_public_count, require_data_and_budget
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.data.units import UnitRecords, fresh_key, read_units
from pgmpy_dp.private.discovered import require_same_promise
from pgmpy_dp.private.entry import encode_unit
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.reading.differences import with_differences
from pgmpy_dp.private.reading.owners import warn_of_guessed_types
from pgmpy_dp.private.reading.records import CodedRecords, read_records
from pgmpy_dp.private.reading.sources import open_source
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.schema import Schema, decode_label, encode_label
from pgmpy_dp.shown import quantity

SHARES = "shares"
_MOST_ROWS = 1 << 20


class PrivateTable(PrivateData):
    """Records that several estimators may learn from, with one ledger for all of them.

    It offers no rows, no length and no preview, prints only public facts, and refuses to be copied or pickled. Of the
    data only integer codes are kept, and how many cells of each column match.

    Parameters
    ----------
    data : frame, relation, stream, str or Path
        Anything with columns: a table of pandas, polars, pyarrow, Dask, ibis or Spark, a relation of DuckDB, any object
        with ``__arrow_c_stream__``. Or Parquet or CSV files: a path, a pattern, a list of paths or a folder, see
        :func:`pgmpy_dp.private.reading.sources.open_source`; a line of a text file is a record, and a
        :class:`~pgmpy_dp.private.data.text_file.TextFile` says how it is written. Data are read once, here, and their
        codes are kept; large files are read again instead, and must not change meanwhile.
    schema : Schema or mapping
        Every variable and its possible states. A number is counted in the cell of its
        :class:`~pgmpy_dp.Number` that it lies in; one that is not divided has a fine grid
        (:meth:`~pgmpy_dp.Schema.fine`), for the learners that merge its cells.
    adjacency : {"add_remove", "replace_one"}, default "add_remove"
    ledger : Ledger or Budget
        What may be spent on these records, by everything together. A Budget starts a new ledger.
    n_records : int, optional
        The number of records, if it is public. Required under ``replace_one``, which takes it to be. It is believed,
        never compared with the data. Under ``add_remove`` a public exact count is a contradiction that costs: what is
        then protected is the replacement of a record, at twice the epsilon (four times the rho). With a `unit`, the
        number of units.
    unit : hashable, optional
        Column that says whose record it is, for instance of persons: neighbours then differ in everything that carries
        one value of it, however many records that is. Values are told apart exactly
        (:func:`~pgmpy_dp.private.reading.owners.identity`): ``7`` and ``"7"`` are one unit, ``"007"`` and ``"7.0"`` two
        others. Records without one are nobody's and are dropped. Default: each record is a unit of its own.
    rows_per_unit : int or "shares", default 1
        How much of a unit with several records counts. At most so many of them, m, drawn at random once for this
        table: noise is that of single records for epsilon/m, or rho/m**2. Or "shares": each of its k records counts
        1/k; noise is that of single records.
    random_state : int, optional
        For tests and benchmarks: which records of a unit are drawn is repeatable. The guarantee does not depend on it.

    Raises
    ------
    TypeError, ValueError
        For bad arguments and missing columns, before anything is read or spent. Nothing is raised because of a record:
        a table without records, or whose records are all outside the schema, counts as zeros.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1, 1]})
    >>> PrivateTable(frame, {"a": [0, 1]}, ledger=Budget(epsilon=1.0))
    PrivateTable(1 variable, adjacency='add_remove', n_records=None, spent 0-DP of 1-DP)
    """

    __slots__ = ("_declared", "_n_records", "_n_units", "_places", "_records", "_rows_per_unit", "_schema", "_unit")

    def __init__(
        self,
        data: Any,
        schema: Schema | Any,
        *,
        adjacency: str = Adjacency.ADD_REMOVE,
        ledger: Ledger | Budget | None = None,
        n_records: int | None = None,
        unit: Hashable = None,
        rows_per_unit: int | str = 1,
        random_state: int | None = None,
    ) -> None:
        self._declared = Schema.coerce(schema, argument="schema").with_differences()
        self._schema = self._declared.fine()
        self._places: tuple[tuple[Any, tuple[int, ...]], ...] | None = None  # of states that were merged
        super().__init__(adjacency, ledger)
        self._unit = None if unit is None else decode_label(encode_label(unit))
        self._rows_per_unit = _checked_rows(rows_per_unit, unit, self._schema)
        require_same_promise(self._declared, self._ledger if ledger is None else ledger, self._adjacency, self._unit)
        self._n_units = checked_public_count("n_records", n_records, self._adjacency)
        # Of units of several records only their own number is public.
        self._n_records = self._n_units if self._rows_of_unit == 1 else None
        source = with_differences(open_source(data), self._schema)
        source.require_types(self._schema)
        self._records: CodedRecords | UnitRecords
        if self._unit is None:
            source.positions(self._schema.variables)  # all are there
            warn_of_guessed_types(source, None, self._schema)
            self._records = read_records(source, self._schema)
            return
        source.positions([*self._schema.variables, self._unit])
        warn_of_guessed_types(source, self._unit)
        most = None if self._rows_per_unit == SHARES else int(self._rows_per_unit)
        self._records = read_units(self._schema, source, self._unit, most, fresh_key(random_state))

    def _part(self, chosen: np.ndarray) -> PrivateTable:
        """The records of some units, with the same ledger and schema; their number is private. For the boundary alone.

        Parameters
        ----------
        chosen : ndarray of bool, shape (n_units,)
            Where each record is a unit, of the kept records.

        Returns
        -------
        PrivateTable
        """
        part = self._like_this()
        part._n_records, part._n_units = None, None
        part._records = self._records.part(chosen)
        return part

    def _merged(self, schema: Schema, places: Mapping[Hashable, tuple[int, ...]]) -> PrivateTable:
        """The same records in fewer states: of each variable in `places` state k became ``places[name][k]``.

        Refuses places that are not those of the two schemas. Which state a record has is a function of that record,
        however often states merge, so tables of counts move no further than before.
        """
        before, after = self._schema.cardinalities, schema.cardinalities
        if list(before) != list(after) or not set(places) <= set(before):
            raise ValueError("states merge into a schema with the same variables")
        by_variable = [places.get(name) for name in before]
        for (name, k), place in zip(before.items(), by_variable, strict=True):
            targets = range(k) if place is None else place
            if len(targets) != k or set(targets) != set(range(after[name])):
                raise ValueError(
                    f"places[{name!r}] must say for each of {k} states which of the {after[name]} merged ones it "
                    "became, and reach them all"
                )
        merged = self._like_this()
        merged._declared = merged._schema = schema
        merged._places = tuple((encode_label(name), targets) for name, targets in places.items())
        maps = [None if place is None else np.array(place) for place in by_variable]
        merged._records = self._records.merged(schema, maps)
        return merged

    def facts(self) -> TableFacts:
        """Return the public facts of the table.

        Returns
        -------
        TableFacts
        """
        return TableFacts(
            self._adjacency,
            self._schema,
            declared=self._declared,
            n_records=self._n_records,
            by_shares=self._rows_per_unit == SHARES,
            is_part=self._is_part,
            places=self._places,
        )

    def _split(self) -> tuple[Callable[[], np.ndarray], int, Callable[[np.ndarray], PrivateTable]]:
        """The units that draw coins: what each is, how many there are, and the table of some."""
        identities, count, _ = table_units(self)
        return identities, count, self._part

    @property
    def _is_part(self) -> bool:
        return self._records.is_part

    @property
    def _rows_of_unit(self) -> int:  # type: ignore[override]
        return 1 if self._rows_per_unit == SHARES else int(self._rows_per_unit)

    @property
    def _codes(self) -> np.ndarray:
        if self._rows_per_unit == SHARES:  # whoever asks does not know that they count in part
            raise RuntimeError("records that count by shares were taken for whole ones")
        return self._records.codes()

    @property
    def rows_per_unit(self) -> int | str:
        """The most records of a unit that count, or "shares"."""
        return self._rows_per_unit

    @property
    def n_units(self) -> int | None:
        """The declared public number of units (of records, where each is one), or None."""
        return self._n_units

    @property
    def schema(self) -> Schema:
        """Public description of the variables, as it was declared."""
        return self._declared

    @property
    def n_records(self) -> int | None:
        """The declared public number of records, or None; None where units have several."""
        return self._n_records

    @property
    def _names(self) -> tuple[Hashable, ...]:
        return tuple(self._declared.variables)

    def _public(self) -> dict[str, Any]:
        facts = {"schema": self._declared.to_dict(), "n_records": self._n_records}
        if self._unit is None:
            return facts
        return facts | {
            "unit": encode_unit(self._unit),
            "rows_per_unit": self._rows_per_unit,
            "n_units": self._n_units,
        }

    def __repr__(self) -> str:
        unit = "" if self._unit is None else f"unit={self._unit!r}, rows_per_unit={self._rows_per_unit!r}, "
        return (
            f"PrivateTable({quantity(self._declared, 'variable')}, {unit}adjacency={str(self._adjacency)!r}, "
            f"n_records={self._n_units}, spent {self._ledger.spent} of {self._ledger.budget})"
        )


def require_table_and_budget(table: Any, budget: Any, example: str = "a Budget, e.g. Budget(epsilon=1.0)") -> Budget:
    """The budget, as those see it who ask about records: of units of several with the number of these.

    Parameters
    ----------
    table, budget : object
    example : str
        What the message tells to pass as the budget.

    Raises
    ------
    TypeError
        For a table or a budget that is none.
    """
    require_data_and_budget(table, PrivateTable, budget, name="table", example=example)
    rows = table._rows_of_unit
    return budget if rows == 1 else UnitBudget(budget.epsilon, budget.delta, budget.rho, rows)


def _checked_rows(rows: Any, unit: Hashable, schema: Schema) -> int | str:
    if unit is None:
        if rows != 1:
            raise ValueError(f"rows_per_unit={rows!r} without a unit; pass unit, the column that says whose row it is")
        return 1
    if unit in schema:
        raise ValueError(f"unit={unit!r} is a variable of the schema too; leave it out of the schema")
    if isinstance(rows, str) and rows == SHARES:
        return SHARES
    whole = isinstance(rows, numbers.Integral) and not isinstance(rows, bool)
    if not whole or not 1 <= int(rows) <= _MOST_ROWS:
        raise ValueError(
            f"rows_per_unit={rows!r} is neither a whole number from 1 to {_MOST_ROWS} nor {SHARES!r}; pass how many "
            "records of a unit count"
        )
    return int(rows)


def contingency_tables(
    table: PrivateTable, scopes: Sequence[Sequence[Hashable]], grid: int | None = None
) -> list[Sensitive]:
    """Exact tables of counts with their sensitivities, one per scope, for learners inside the boundary.

    Each is on its own scale of sensitivity (:func:`~pgmpy_dp.private.data.contingency.table_sensitivity`). Released
    together, |C| tables have l1 sensitivity |C| and l2 sensitivity sqrt(|C|) under ``add_remove``, 2|C| and sqrt(2|C|)
    under ``replace_one``: the l1 norms add up, the squared l2 norms add up.

    Of files whose codes are not kept all scopes take one pass, so learners ask for all that they need at once.
    """
    schema = table._schema
    position = {name: j for j, name in enumerate((*schema.variables, *schema.levels))}
    columns = [[position[v] for v in scope] for scope in scopes]
    records = table._records
    grid = share_grid(table) if grid is None else grid
    counts = records.counts(columns, grid)
    norms = [grid * norm for norm in table_sensitivity(table._adjacency)]
    return [Sensitive(table_counts, table._adjacency, *norms) for table_counts in counts]


def share_grid(table: PrivateTable, scale: float = 1.0, most: int = GRID) -> int:
    """Return the number of parts into which a unit's records are divided, see `TableFacts.parts`."""
    return table.facts().parts(scale, most)


def matched_records(table: PrivateTable, grid: int | None = None) -> Sensitive:
    """Count the records that match the schema: all, those in all columns; in each column; blank cells; other lines.

    The value has shape (2 + 2 n_variables,). The first entry, the number of records, is left out where it is public:
    (1 + 2 n_variables,). A record matches in a column if its cell has one of the declared states; it matches in all if
    it is not dropped. A cell that an other-state takes does the second and not the first. Blank cells, those that are
    read as missing, are counted apart in each column, and not among those that match, also where None is a state. Of
    text files without units, whose lines may name none, there are two entries more: how many lines are no record,
    since they have one field too many, and how many others.

    Each entry counts the records that meet a condition on their own cells, so
    :func:`~pgmpy_dp.private.data.contingency.match_sensitivity` of
    :attr:`~pgmpy_dp.private.data.table_facts.TableFacts.most_matched` is how far they move together.

    A part of a table has no such counts: records outside the schema were dropped before it was drawn.
    """
    grid = share_grid(table) if grid is None else grid
    value = table._records.matched(grid)
    assert value is not None  # the operator refuses parts
    value = value if table._n_records is None else value[1:]
    if isinstance(table._records, CodedRecords) and (lines := table._records.lines_without_record) is not None:
        value = np.append(value, lines)
    norms = [grid * norm for norm in match_sensitivity(table.facts().most_matched)]
    return Sensitive(value, table._adjacency, *norms)


def shared_codes(table: PrivateTable, grid: int = GRID) -> tuple[np.ndarray, np.ndarray | None]:
    """Codes of all kept records, and for how much each counts in 1/`grid`; None where each of them counts 1.

    Codes have shape (n, p). For learners inside the boundary; not to be written to.
    """
    if isinstance(table._records, UnitRecords):
        return table._records.codes(), table._records.weights(grid)
    return table._codes, None


def table_units(table: PrivateTable) -> tuple[Callable[[], np.ndarray], int, np.ndarray | slice]:
    """The units that draw coins: what each is, as rows of integers; how many; and the unit of each kept record."""
    if not isinstance(table._records, UnitRecords):
        codes = table._codes
        return lambda: codes, len(codes), slice(None)
    rows = table._records.rows()
    return table._records.identities, rows.n_units, rows.owner

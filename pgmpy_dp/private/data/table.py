"""Private records behind a schema, an adjacency and a ledger."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.contingency import count, match_sensitivity, table_sensitivity
from pgmpy_dp.private.data.frame import encode_and_match
from pgmpy_dp.private.data.pushdown import PushedRecords, merged_codes
from pgmpy_dp.private.data.sources import open_source
from pgmpy_dp.private.data.subject import PrivateData, checked_public_count, require_data_and_budget
from pgmpy_dp.private.ledger import Budget, Ledger
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.schema import Schema

__all__ = ["PrivateTable", "contingency_tables", "matched_records", "require_table_and_budget", "table_codes"]


class PrivateTable(PrivateData):
    """Records that several estimators may learn from, with one ledger for all of them.

    It offers no rows, no length and no preview, prints only public facts, and refuses to be copied or pickled. Of a
    dataframe in memory only integer codes are kept, and how many cells of each column match. Data in an engine stay
    there: counting is pushed down to it, and codes are fetched the first time that a learner needs rows.

    Parameters
    ----------
    data : dataframe, str or Path
        Anything narwhals reads, see :func:`pgmpy_dp.private.data.frame.encode`; lazy frames (DuckDB, PySpark, Dask,
        ibis, polars) stay in their engine. Or the path of a Parquet or CSV file, of any size, a pattern or a list of
        paths, see :func:`pgmpy_dp.private.data.sources.open_source`; a line of a text file is a record, and a
        :class:`~pgmpy_dp.private.data.text_file.TextFile` says how it is written. The data must not change while they
        are learned from.
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
        then protected is the replacement of a record, at twice the epsilon (four times the rho).

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
    PrivateTable(1 variables, adjacency='add_remove', n_records=None, spent 0-DP of 1-DP)
    """

    __slots__ = ("_declared", "_matched", "_n_records", "_records", "_schema")

    def __init__(
        self,
        data: Any,
        schema: Schema | Any,
        *,
        adjacency: str = Adjacency.ADD_REMOVE,
        ledger: Ledger | Budget | None = None,
        n_records: int | None = None,
    ) -> None:
        self._declared = Schema.coerce(schema, argument="schema")
        self._schema = self._declared.fine()
        super().__init__(adjacency, ledger)
        self._n_records = checked_public_count("n_records", n_records, self._adjacency)
        source = open_source(data)
        self._records: np.ndarray | PushedRecords
        self._matched: np.ndarray | None = None
        if source is None:
            self._records, self._matched = encode_and_match(data, self._schema)
        else:
            source.positions(self._schema.variables)  # all are there
            self._records = PushedRecords(source.opened(self._schema.variables), self._schema)

    def _of_codes(self, codes: np.ndarray) -> PrivateTable:
        """Some of these records, with the same ledger and schema; their number is private. For the boundary alone.

        Parameters
        ----------
        codes : ndarray of integers, shape (n, p)

        Returns
        -------
        PrivateTable
        """
        part = self._like_this(self._schema)
        part._n_records, part._records, part._matched = None, codes, None
        return part

    def _merged(self, schema: Schema, places: Mapping[Hashable, Sequence[int]]) -> PrivateTable:
        """The same records in fewer states: of each variable in `places` state k became ``places[name][k]``.

        Which state a record has is a function of that record, so tables of counts move no further than before.
        """
        merged = self._like_this(schema)
        maps = [np.array(places[name]) if name in places else None for name in self._schema.variables]
        if isinstance(self._records, np.ndarray):
            merged._records = merged_codes(self._records, maps)
        else:
            merged._records = self._records.merged(schema, maps)
        return merged

    def _like_this(self, schema: Schema) -> PrivateTable:
        other = object.__new__(PrivateTable)
        other._declared, other._schema, other._adjacency, other._ledger = schema, schema, self._adjacency, self._ledger
        other._hands, other._n_records, other._records = self._hands, self._n_records, self._records
        other._matched = self._matched
        return other

    @property
    def _is_part(self) -> bool:
        return self._matched is None and isinstance(self._records, np.ndarray)

    @property
    def _codes(self) -> np.ndarray:
        return self._records if isinstance(self._records, np.ndarray) else self._records.codes()

    @property
    def schema(self) -> Schema:
        """Public description of the variables, as it was declared."""
        return self._declared

    @property
    def n_records(self) -> int | None:
        """The declared public number of records, or None."""
        return self._n_records

    @property
    def _names(self) -> tuple[Hashable, ...]:
        return tuple(self._declared.variables)

    def _public(self) -> dict[str, Any]:
        return {"schema": self._declared.to_dict(), "n_records": self._n_records}

    def __repr__(self) -> str:
        return (
            f"PrivateTable({len(self._declared)} variables, adjacency={str(self._adjacency)!r}, "
            f"n_records={self._n_records}, spent {self._ledger.spent} of {self._ledger.budget})"
        )


def require_table_and_budget(
    table: object, budget: object, example: str = "a Budget, e.g. Budget(epsilon=1.0)"
) -> None:
    """TypeError for a table or a budget that is none; `example` is what the message tells to pass as the budget."""
    require_data_and_budget(table, PrivateTable, budget, name="table", example=example)


def contingency_tables(table: PrivateTable, scopes: Sequence[Sequence[Hashable]]) -> list[Sensitive]:
    """Exact tables of counts with their sensitivities, one per scope, for learners inside the boundary.

    Each is on its own scale of sensitivity (:func:`~pgmpy_dp.private.data.contingency.table_sensitivity`). Released
    together, |C| tables have l1 sensitivity |C| and l2 sensitivity sqrt(|C|) under ``add_remove``, 2|C| and sqrt(2|C|)
    under ``replace_one``: the l1 norms add up, the squared l2 norms add up.

    Data in an engine are counted there, in one pass for all scopes, so learners ask for all that they need at once.
    """
    position = {name: j for j, name in enumerate(table._schema.variables)}
    cardinalities = [table._schema.cardinality(name) for name in table._schema.variables]
    columns = [[position[v] for v in scope] for scope in scopes]
    records = table._records
    if isinstance(records, np.ndarray):
        counts = [count(records, cardinalities, scope) for scope in columns]
    else:
        counts = records.counts(columns)
    l1, l2, linf = table_sensitivity(table._adjacency)
    return [Sensitive(table_counts, table._adjacency, l1, l2, linf) for table_counts in counts]


def matched_records(table: PrivateTable) -> Sensitive:
    """How many records match the schema: all of them, those in all columns, and those in each column.

    The value has shape (2 + n_variables,). The first entry, the number of records, is left out where it is public:
    (1 + n_variables,). A record matches in a column if its cell has one of the declared states; it matches in all if it
    is not dropped. A cell that an other-state takes does the second and not the first.

    Each entry counts the records that meet a condition on their own cells, so
    :func:`~pgmpy_dp.private.data.contingency.match_sensitivity` is how far they move together.

    Of records of a part, which were dropped before it was drawn, this cannot be asked.
    """
    value = table._matched if isinstance(table._records, np.ndarray) else table._records.matched()
    assert value is not None  # the operator refuses parts
    value = value if table._n_records is None else value[1:]
    return Sensitive(value, table._adjacency, *match_sensitivity(len(value)))


def table_codes(table: PrivateTable) -> np.ndarray:
    """Codes of all kept records, shape (n, p), for learners inside the boundary; not to be written to."""
    return table._codes

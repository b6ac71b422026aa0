"""The private table that a fit or a question is about: the one that was passed, or a new one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_agreement
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.schema import Schema


def private_table(
    estimator: Any,
    data: Any,
    budget: Budget,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
) -> PrivateTable:
    """The table that an estimator learns from: the one that was passed, or a new one with a ledger of its own.

    Parameters
    ----------
    estimator : object
        With attributes `state_names`, `n_records` and `adjacency`.
    data : dataframe, path or PrivateTable
    budget : Budget
        Of the new table's ledger.
    unit, rows_per_unit
        Those of the new table, or those that a table that was passed must have; None for nothing.
    """
    schema, table = schema_and_table(estimator, data, unit, rows_per_unit)
    return new_table(estimator, data, schema, budget, unit, rows_per_unit) if table is None else table


def table_for(
    df: Any, schema: Any, budget: Budget, settings: Settings, unit: Hashable, rows_per_unit: int | str | None
) -> PrivateTable:
    """The table of a function that takes arguments of an estimator and its `fit`.

    Parameters
    ----------
    df, schema, budget, unit, rows_per_unit
        As of `private_table`.
    settings : Settings
        With `adjacency`, None for the declared one, `n_records` and `random_state`.
    """
    declared = df.adjacency if isinstance(df, PrivateTable) else Adjacency.ADD_REMOVE
    options = settings.but(state_names=schema, adjacency=settings.adjacency or str(declared))
    return private_table(options, df, budget, unit, rows_per_unit)


def new_table(
    estimator: Any, data: Any, schema: Schema, budget: Budget, unit: Hashable, rows_per_unit: int | str | None
) -> PrivateTable:
    """A table with a ledger of its own, for the options of an estimator."""
    return PrivateTable(
        data,
        schema,
        adjacency=estimator.adjacency,
        ledger=budget,
        n_records=estimator.n_records,
        unit=unit,
        rows_per_unit=1 if rows_per_unit is None else rows_per_unit,
        random_state=getattr(estimator, "random_state", None),
    )


def schema_and_table(
    estimator: Any, data: Any, unit: Hashable = None, rows_per_unit: int | str | None = None
) -> tuple[Schema, PrivateTable | None]:
    """The schema of the data, and their table if there already is one, which the estimator must agree with.

    Parameters
    ----------
    estimator : object
        With attributes `state_names`, `n_records` and `adjacency`.
    data : dataframe or PrivateTable
    unit, rows_per_unit
        Those that a table must have, if one was passed; None for nothing.
    """
    if not isinstance(data, PrivateTable):
        return Schema.coerce(estimator.state_names).with_differences(), None
    require_agreement(
        data,
        estimator.adjacency,
        state_names=(estimator.state_names and Schema.coerce(estimator.state_names).with_differences(), data.schema),
        n_records=(estimator.n_records, data.n_units),
        unit=(unit, data.unit),
        rows_per_unit=(rows_per_unit, data.rows_per_unit),
    )
    return data.schema, data

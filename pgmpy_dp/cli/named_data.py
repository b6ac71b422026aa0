"""The private tables that options name, of one kind or the other, behind the ledger that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import ask_for
from pgmpy_dp.cli.arguments import are_linked, as_written, protection, tables_as_written
from pgmpy_dp.cli.files import load_linked_schema
from pgmpy_dp.cli.ledger import open_account

if TYPE_CHECKING:
    from pgmpy_dp.linked import LinkedSchema, PrivateLinkedTables
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.data.table import PrivateTable


def private_data(
    data: Path | None,
    tables: option.LinkedOptions,
    described: column_options.ColumnOptions,
    budget: Budget,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    text: option.TextOptions,
    *,
    fit: bool = True,
) -> PrivateTable | PrivateLinkedTables:
    """Open one table, or both; `fit` as `open_account` takes it. A fit keeps the file's order of columns."""
    from pgmpy_dp.linked import PrivateLinkedTables
    from pgmpy_dp.private.data.table import PrivateTable
    from pgmpy_dp.verbs import in_order_of

    if not are_linked(tables, data):
        assert data is not None
        public_schema, records = column_options.described(described), as_written(data, text)
        if fit:
            public_schema = in_order_of(records, public_schema)
        charged = open_account(account, budget, protected.adjacency, fit=fit)
        return PrivateTable(records, public_schema, ledger=charged, **protection(protected))
    if protected.rows_per_unit != "1":
        ask_for("--rows-per-unit", protected.rows_per_unit, "all children of a parent count together; leave it out")
    schema = _linked_schema(tables, described, protected.unit)
    parents, children = tables_as_written(tables, text)
    charged = open_account(account, budget, protected.adjacency, fit=fit)
    return PrivateLinkedTables(
        parents, children, schema, adjacency=str(protected.adjacency), ledger=charged, n_records=protected.n_records
    )


def _linked_schema(
    tables: option.LinkedOptions, described: column_options.ColumnOptions, unit: str | None
) -> LinkedSchema:
    """A file of a linked schema; or, of one file and its unit, a schema of its columns."""
    from pgmpy_dp.linked import LinkedSchema
    from pgmpy_dp.linked.private_linked_network import schema_of_one_file

    if unit is not None:
        if tables.parents is not None:
            ask_for("--unit", unit, "the schema of linked tables names the key; leave it out")
        return schema_of_one_file(column_options.described(described), unit)
    if described.schema is None:
        ask_for("--schema", None, "pass JSON of a LinkedSchema; for one file with several rows a person --unit too")
    column_options.require_alone(described, "a schema was passed too; write it into that file")
    schema = load_linked_schema(described.schema)
    if tables.key_kind is not None:
        schema = LinkedSchema.from_dict(schema.to_dict() | {"key_kind": str(tables.key_kind)})
    if schema.parent is None and tables.parents is not None:
        ask_for("--parents", str(tables.parents), "the schema has no columns of parents; leave it out")
    if schema.parent is not None and tables.parents is None:
        ask_for("--parents", None, "the schema has columns of parents; pass their table")
    return schema

"""``pgmpy-dp check``: whether a schema's states match the records, for a small part of the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command
from pgmpy_dp.cli.arguments import as_written, protection
from pgmpy_dp.cli.before_linked import check_linked_tables
from pgmpy_dp.cli.ledger import marked, note_uncounted, open_account, show_charged

if TYPE_CHECKING:
    from pgmpy_dp.tables.schema_check import SchemaCheck


@command(
    app,
    "check",
    "how many records match the schema, for a small budget",
    "check records.csv --schema schema.json --epsilon 0.05",
    'check records.csv --number "age=0:120 cuts 18,65" --missing "?,NA" --variable "sex=F,M" --strip --epsilon 0.05',
    "check records.csv --schema schema.json --epsilon 0.05 --ledger ledger.json --budget-epsilon 1",
    "check --parents households.csv --children persons.csv --schema linked.json --epsilon 0.05",
)
def check(
    *,
    data: option.FitData = None,
    tables: option.LinkedOptions,
    described: column_options.ColumnOptions,
    spent: option.BudgetOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    text: option.TextOptions,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Say about how many records match the states of each column, with noise, before the budget goes to a fit.

    A fit leaves out in silence all records whose cells are not written as in the schema. This command counts, for each
    column, the records whose cell has one of its states. It also counts those that match in all columns, and lines of a
    text file that are no record. For d columns each count has noise of about (d + 2)/epsilon records. It spends its
    --epsilon, which adds up with what fits spend.

    Of linked tables (--parents and --children, as fit takes them) it counts families: without children, above the
    schema's most, children without a parent, keys that several parents have, and cells of both tables.

    The exit code is 1 if the states of a column match next to nothing, or if hardly any record matches in all columns.
    """
    if tables.parents is not None or tables.children is not None:
        if data is not None:
            ask_for("DATA", str(data), "--parents and --children are the data; leave it out")
        if check_linked_tables(tables, described, spent, protected, account, text, quiet, as_json):
            raise typer.Exit(CHECK_FAILED)
        return
    if data is None:
        ask_for("DATA", None, "pass the file of the records, or --parents and --children for two tables")
    from pgmpy_dp.private.data.table import PrivateTable
    from pgmpy_dp.tables.schema_check import check_schema

    budget = spent.budget()
    public_schema = column_options.described(described)
    records, whose = as_written(data, text), protection(protected)
    charged = open_account(account, budget, protected.adjacency, fit=False)
    table = PrivateTable(records, public_schema, ledger=charged, **whose)
    with marked(table.ledger):
        found = check_schema(table, budget)
        told = f"{found}\nSpent {found.privacy_}"
        show_charged(_document(found), told, as_json, account.ledger, table.ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    if found.failed:
        raise typer.Exit(CHECK_FAILED)


def _document(found: SchemaCheck) -> dict[str, Any]:
    from pgmpy_dp.schema import encode_label

    return {
        "n_records": found.n_records,
        "n_records_sd": found.n_records_sd,
        "n_matching": found.n_matching,
        "n_matching_sd": found.n_matching_sd,
        "verdict": found.verdict,
        "n_no_record": found.n_no_record,
        "columns": [
            {"variable": encode_label(name), **dict(zip(found.table.columns, values, strict=True))}
            for name, *values in found.table.itertuples()
        ],
        "failed": found.failed,
        **found.privacy_.told(),
    }

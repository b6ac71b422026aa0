"""``pgmpy-dp check``: whether a schema's states match the records, for a small part of the budget."""

from __future__ import annotations

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, command, note_reading
from pgmpy_dp.cli.ledger import marked, note_uncounted, show_charged
from pgmpy_dp.cli.named_data import private_data


@command(
    app,
    "check",
    "how many records match the schema, for a small budget",
    "check records.csv --schema schema.json --epsilon 0.05",
    'check records.csv --number "age=0:120 cuts 18,65" --missing "?,NA" --variable "sex=F,M" --strip --epsilon 0.05',
    "check records.csv --schema schema.json --epsilon 0.05 --ledger ledger.json --budget-epsilon 1",
    "check --parents households.csv --children persons.csv --schema linked.json --epsilon 0.05",
    learns=True,
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
    from pgmpy_dp.verbs import check as checked

    budget = spent.budget()
    private = private_data(data, tables, described, budget, protected, account, text, fit=False)
    note_reading(quiet, data, tables.parents, tables.children)
    with marked(private.ledger):
        result = checked(private, budget)
        show_charged(result.to_dict(), str(result), as_json, account.ledger, private.ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    if result.failed:
        raise typer.Exit(CHECK_FAILED)

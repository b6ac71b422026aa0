"""``pgmpy-dp check``: whether a schema's states match the records, for a small part of the budget."""

from __future__ import annotations

from typing import Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, command, note
from pgmpy_dp.cli.arguments import as_written, whose
from pgmpy_dp.cli.ledger import marked, open_account, show_charged

__all__ = ["check"]


@command(
    app,
    "check",
    "how many records match the schema, for a small budget",
    "check records.csv --schema schema.json --epsilon 0.05",
    'check records.csv --number "age=0:120 cuts 18,65" --missing "?,NA" --variable "sex=F,M" --strip --epsilon 0.05',
    "check records.csv --schema schema.json --epsilon 0.05 --ledger ledger.json --budget-epsilon 1",
)
def check(
    data: option.Data,
    schema: column_options.SchemaOption = None,
    variable: column_options.VariableOption = None,
    cuts: column_options.CutsOption = None,
    number: column_options.NumberOption = None,
    date: column_options.DateOption = None,
    other: column_options.OtherOption = None,
    texts: column_options.TextsOption = None,
    missing: column_options.MissingOption = None,
    strip: column_options.StripOption = False,
    casefold: column_options.CasefoldOption = False,
    recode: column_options.RecodeOption = None,
    impossible: column_options.ImpossibleOption = None,
    epsilon: option.Epsilon = None,
    delta: option.Delta = 0.0,
    rho: option.Rho = None,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    n_records: option.NRecords = None,
    unit: option.Unit = None,
    rows_per_unit: option.RowsPerUnit = "1",
    ledger: option.Ledger = None,
    budget_epsilon: option.BudgetEpsilon = None,
    budget_delta: option.BudgetDelta = 0.0,
    budget_rho: option.BudgetRho = None,
    delimiter: option.Delimiter = None,
    encoding: option.Encoding = None,
    decimal: option.Decimal = None,
    thousands: option.Thousands = None,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Say about how many records match the states of each column, with noise, before the budget goes to a fit.

    A fit leaves out in silence all records whose cells are not written as in the schema. This command counts, for each
    column, the records whose cell has one of its states. It also counts those that match in all columns. For d columns
    each count has noise of about (d + 2)/epsilon records. It spends its --epsilon, which adds up with what fits spend.

    The exit code is 1 if the states of a column match next to nothing, or if hardly any record matches in all columns.
    """
    from pgmpy_dp.estimators.schema_check import check_schema
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.data.table import PrivateTable
    from pgmpy_dp.schema import encode_label

    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    declared: dict[str, Any] = {"variable": variable, "cuts": cuts, "number": number, "date": date}
    reading: dict[str, Any] = {"missing": missing, "strip": strip, "casefold": casefold, "recode": recode}
    public_schema = column_options.described(
        schema, **declared, other=other, texts=texts, impossible=impossible, **reading
    )
    records = as_written(data, delimiter, encoding, decimal, thousands)
    who = whose(unit, rows_per_unit)
    account = open_account(ledger, budget, (budget_epsilon, budget_delta, budget_rho), adjacency, fit=False)
    table = PrivateTable(records, public_schema, adjacency=adjacency, ledger=account, n_records=n_records, **who)
    with marked(table.ledger):
        found = check_schema(table, budget)
        rows = found.table.itertuples()
        document: dict[str, Any] = {
            "n_records": found.n_records,
            "n_records_sd": found.n_records_sd,
            "n_matching": found.n_matching,
            "n_matching_sd": found.n_matching_sd,
            "verdict": found.verdict,
            "columns": [
                {"variable": encode_label(name), **dict(zip(found.table.columns, values, strict=True))}
                for name, *values in rows
            ],
            "failed": found.failed,
            "guarantee": found.privacy_.guarantee.to_dict(),
            "adjacency": str(found.privacy_.adjacency),
        }
        show_charged(document, f"{found}\nSpent {found.privacy_}", as_json, ledger, table.ledger)
        if ledger is None:
            note("what this spent adds up with what fits to the same records spend; --ledger FILE keeps count", quiet)
    if found.failed:
        raise typer.Exit(CHECK_FAILED)

"""``pgmpy-dp discover``: categories and cuts that nobody has listed, for a part of the budget, as a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command, note
from pgmpy_dp.cli.arguments import as_written
from pgmpy_dp.cli.files import require_writable
from pgmpy_dp.cli.ledger import kept, marked, open_account, show_charged

__all__ = ["discover"]


@command(
    app,
    "discover",
    "find categories and cuts, for a part of the budget",
    'discover records.csv --categories job,city --number "age=0:120:1" --epsilon 0.2 --delta 1e-9 --out schema.json',
    "discover records.csv --categories job --epsilon 0.2 --delta 1e-9 --ledger ledger.json --out schema.json",
)
def discover(
    data: option.Data,
    out: Annotated[Path, typer.Option("--out", help="JSON file to write: the schema, with what it cost.")],
    categories: Annotated[
        list[str] | None,
        typer.Option("--categories", metavar="<str>", help='Columns whose categories are to be found: "job,city".'),
    ] = None,
    number: column_options.NumberOption = None,
    date: column_options.DateOption = None,
    variable: column_options.VariableOption = None,
    cuts: column_options.CutsOption = None,
    missing: column_options.MissingOption = None,
    strip: column_options.StripOption = False,
    casefold: column_options.CasefoldOption = False,
    recode: column_options.RecodeOption = None,
    impossible: column_options.ImpossibleOption = None,
    other: Annotated[
        str,
        typer.Option("--other", help="State of all cells without a category. If empty, their records do not count."),
    ] = "other",
    bins: Annotated[
        int | None,
        typer.Option("--bins", help="Cut numbers into about so many cells each. Default: fits divide them."),
    ] = None,
    max_categories: Annotated[
        int, typer.Option("--max-categories", help="The most frequent categories of a column are kept, up to so many.")
    ] = 100,
    epsilon: option.Epsilon = None,
    delta: option.Delta = 0.0,
    rho: option.Rho = None,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    n_records: option.NRecords = None,
    ledger: option.Ledger = None,
    budget_epsilon: option.BudgetEpsilon = None,
    budget_delta: option.BudgetDelta = 0.0,
    budget_rho: option.BudgetRho = None,
    unit: Annotated[
        str | None, typer.Option("--unit", help="Not supported: what is found protects single records.", hidden=True)
    ] = None,
    delimiter: option.Delimiter = None,
    encoding: option.Encoding = None,
    decimal: option.Decimal = None,
    thousands: option.Thousands = None,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Find the categories that many records have, and with --bins where to cut numbers. Write them as a schema.

    A list of categories read off the records would tell of the one person who has a rare one. Here a category is listed
    if its noisy count reaches a threshold; one person alone hardly ever lifts it that far. All others become the state
    --other. Numbers are cut where about equally many records lie between two cuts. This spends its --epsilon and
    --delta, which add up with what fits spend. Keep count in one --ledger.

    With --bins, numbers and dates are cut within their bounds. Without it they stay undivided and cost nothing here,
    because fits merge the cells of a fine grid. A number with cuts or bins, each --variable and each --cuts are known.
    They go into the schema as they are, and cost nothing; --impossible is about these. Columns are in the file's order.

    The exit code is 1 if next to no records were seen, or if no category of a column is frequent enough. If the schema
    cannot be written once it is paid for, the release is kept beside it (schema.release.npz).
    """
    from pgmpy_dp.estimators.discovery import discover as found_in
    from pgmpy_dp.estimators.privacy_record import handed_over
    from pgmpy_dp.plans.category_search import CATEGORIES
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.data.columns import in_their_order
    from pgmpy_dp.private.ledger import Ledger
    from pgmpy_dp.schema import encode_label

    if unit is not None:
        ask_for("--unit", unit, "discover protects single records only; keep one record of each person, or list states")
    require_writable(overwrite, (data, ledger), out=out)
    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    names = [name.strip() for text in categories or [] for name in text.split(",") if name.strip()]
    for name in names:
        if names.count(name) > 1:
            ask_for("--categories", name, f"{name} was described before; describe each variable once")
    known: dict[str, Any] = {"variable": variable, "cuts": cuts, "number": number, "date": date}
    declared = column_options.declarations(dict.fromkeys(names, CATEGORIES), **known)
    if not declared:
        ask_for("--categories", None, 'say which columns: --categories job,city, --number "age=0:120:1"')
    records = as_written(data, delimiter, encoding, decimal, thousands)
    declared = {str(name): declared[str(name)] for name in in_their_order(records, declared)}
    reading = column_options.reading_options(declared, missing, strip, casefold, recode)
    account = open_account(ledger, budget, (budget_epsilon, budget_delta, budget_rho), adjacency, fit=False)
    account = account if isinstance(account, Ledger) else Ledger(account, adjacency=str(adjacency))
    limits: dict[str, Any] = {
        "impossible": impossible or (),
        "bins": bins,
        "max_categories": max_categories,
        "n_records": n_records,
        "other": other or None,
    }
    remedy = "pgmpy_dp.Release.load; where all was found, its .schema is that"
    with marked(account), kept(out.with_suffix(".release.npz"), remedy):
        found = found_in(records, declared, budget, ledger=account, adjacency=str(adjacency), **reading, **limits)
        with handed_over(found.release_):
            found.to_json(out)
        document: dict[str, Any] = {
            "schema": str(out),
            "n_records": found.n_records,
            "n_records_sd": found.n_records_sd,
            "threshold": found.release_.public["threshold"],
            "columns": [
                {
                    "variable": encode_label(name),
                    "labels": [encode_label(s) for s in part.index],
                    "records": part.tolist(),
                }
                for name, part in found.counts.items()
            ],
            "guarantee": found.guarantee.to_dict(),
            "adjacency": str(found.privacy_.adjacency),
        }
        show_charged(document, f"{found}\nWrote {out}", as_json, ledger, account)
        if ledger is None:
            note("what this spent adds up with what fits to the same records spend; --ledger FILE keeps count", quiet)
    if found.few or found.poor:
        raise typer.Exit(CHECK_FAILED)

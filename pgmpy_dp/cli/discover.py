"""``pgmpy-dp discover``: categories and cuts that nobody has listed, for a part of the budget, as a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command, note, show
from pgmpy_dp.cli.arguments import (
    AdjacencyOption,
    BudgetDelta,
    BudgetEpsilon,
    BudgetRho,
    Data,
    Decimal,
    Delimiter,
    Delta,
    Encoding,
    Epsilon,
    Json,
    LedgerOption,
    NRecords,
    Overwrite,
    Quiet,
    TableAdjacency,
    Thousands,
    as_written,
    parse_assignment,
    parse_states,
)
from pgmpy_dp.cli.files import require_writable
from pgmpy_dp.cli.ledger import marked, open_account, told_ledger

__all__ = ["discover"]


@command(
    app,
    "discover",
    "find categories and cuts, for a part of the budget",
    'discover records.csv --categories job,city --number "age=0:120:1" --epsilon 0.2 --delta 1e-9 --out schema.json',
    "discover records.csv --categories job --epsilon 0.2 --delta 1e-9 --ledger ledger.json --out schema.json",
)
def discover(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="JSON file to write: the schema, with what it cost.")],
    categories: Annotated[
        list[str] | None, typer.Option("--categories", help='Columns whose categories are to be found: "job,city".')
    ] = None,
    number: Annotated[
        list[str] | None,
        typer.Option("--number", help='Numbers to cut: "age=0:120:1", lower and upper bound and resolution.'),
    ] = None,
    date: Annotated[
        list[str] | None, typer.Option("--date", help='Dates to cut: "born=1900-01-01:2026-12-31", both days in it.')
    ] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option("--variable", help='A column whose values are known: "sex=F,M". It costs nothing.'),
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option("--missing", help='Cells that are read as missing: "?,NA", or "age=-9,999".')
    ] = None,
    strip: Annotated[bool, typer.Option("--strip", help="Blanks around a text make no difference.")] = False,
    casefold: Annotated[bool, typer.Option("--casefold", help="Nor do upper and lower case.")] = False,
    other: Annotated[
        str, typer.Option("--other", help="State of all cells without a category; empty: their records do not count.")
    ] = "other",
    bins: Annotated[int, typer.Option("--bins", help="About how many cells a column of numbers gets.")] = 16,
    max_categories: Annotated[
        int, typer.Option("--max-categories", help="Of a column: the most frequent ones are kept.")
    ] = 100,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    adjacency: AdjacencyOption = TableAdjacency.ADD_REMOVE,
    n_records: NRecords = None,
    ledger: LedgerOption = None,
    budget_epsilon: BudgetEpsilon = None,
    budget_delta: BudgetDelta = 0.0,
    budget_rho: BudgetRho = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Find the categories that many records have, and where to cut numbers, and write them down as a schema.

    A list of categories read off the records would tell of the one person who has a rare one. Here a category is
    listed if its count, with noise, reaches a threshold that such a person hardly ever lifts it over; all others become
    the state --other. Numbers are cut where about equally many records lie between two cuts. It costs its --epsilon and
    --delta, which add up with what fits spend: keep count in one --ledger.

    The columns of the schema are in the order of the file.

    The exit code is 1 where next to no records were seen, or a column has no category that enough records have.
    """
    from pgmpy_dp.estimators.discovery import discover as found_in
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.data.columns import in_their_order
    from pgmpy_dp.private.ledger import Ledger
    from pgmpy_dp.schema import encode_label

    require_writable(overwrite, (data, ledger), out=out)
    budget = Budget(epsilon=epsilon, delta=delta)
    declared = _declared(variable, categories, number, date)
    if not data.is_file():
        ask_for("DATA", str(data), "there is no such file")
    records = as_written(data, delimiter, encoding, decimal, thousands)
    declared = {str(name): declared[str(name)] for name in in_their_order(records, declared)}
    account = open_account(ledger, budget, (budget_epsilon, budget_delta, budget_rho), adjacency, fit=False)
    account = account if isinstance(account, Ledger) else Ledger(account, adjacency=str(adjacency))
    reading: dict[str, Any] = {"missing": _missing(missing), "strip": strip, "casefold": casefold}
    limits: dict[str, Any] = {
        "bins": bins,
        "max_categories": max_categories,
        "n_records": n_records,
        "other": other or None,
    }
    with marked(account):
        found = found_in(records, declared, budget, ledger=account, adjacency=str(adjacency), **reading, **limits)
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
        text = f"{found}\nWrote {out}"
        if ledger is not None:
            document["ledger"], told = told_ledger(ledger, account)
            text += f"\n{told}"
        show(document, text, as_json)
        if ledger is None:
            note("what this spent adds up with what fits to the same records spend; --ledger FILE keeps count", quiet)
    if found.few or found.poor:
        raise typer.Exit(CHECK_FAILED)


def _declared(
    variable: list[str] | None, categories: list[str] | None, number: list[str] | None, date: list[str] | None
) -> dict[str, Any]:
    """What is said of each column."""
    from pgmpy_dp.plans.discover import CATEGORIES
    from pgmpy_dp.schema import Date, Number

    given: list[tuple[str, str, Any]] = [("--variable", *parse_states(text, "--variable")) for text in variable or []]
    given += [
        ("--categories", n.strip(), CATEGORIES) for text in categories or [] for n in text.split(",") if n.strip()
    ]
    for option, kind, example, texts in (
        ("--number", Number, '"age=0:120:1"', number),
        ("--date", Date, '"born=1900-01-01:2026-12-31"', date),
    ):
        for text in texts or []:
            name, bounds = parse_assignment(text, option)
            parts: list[Any] = bounds.split(":")
            with_resolution = len(parts) == 3 and kind is Number
            if len(parts) != 2 and not with_resolution:
                ask_for(option, text, f"write the lower and the upper bound, with a colon between: {example}")
            if kind is Number:
                try:
                    parts = [float(part) for part in parts]
                except ValueError:
                    ask_for(option, text, f"write numbers with decimal points: {example}")
            given.append((option, name, kind(*parts[:2], **({"resolution": parts[2]} if with_resolution else {}))))
    found: dict[str, Any] = {}
    for option, name, declared in given:
        if name in found:
            ask_for(option, name, f"{name} was described before; describe each column once")
        found[name] = declared
    if not found:
        ask_for("--categories", None, 'say which columns: --categories job,city, --number "age=0:120:1"')
    return found


def _missing(texts: list[str] | None) -> Any:
    """Cells that are missing, in all columns or in those that are named."""
    everywhere: list[str] = []
    named: dict[str, list[str]] = {}
    for text in texts or []:
        if "=" in text:
            name, cells = parse_states(text, "--missing")
            named.setdefault(name, []).extend(cells)
        else:
            everywhere += [cell.strip() for cell in text.split(",")]
    if named and everywhere:
        ask_for("--missing", texts, "pass cells for all columns, or for columns by name, not both")
    return named or everywhere

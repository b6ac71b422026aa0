"""``pgmpy-dp discover``: categories and cuts that nobody has listed, for a part of the budget, as a schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command
from pgmpy_dp.cli.arguments import as_written
from pgmpy_dp.cli.before_linked import discover_linked_tables, found_columns
from pgmpy_dp.cli.files import require_writable
from pgmpy_dp.cli.ledger import kept, marked, note_uncounted, open_account, show_charged

if TYPE_CHECKING:
    from pgmpy_dp.tables.discovery import Discovery

CategoriesOption = Annotated[
    list[str] | None,
    typer.Option("--categories", metavar="<str>", help='Columns whose categories are to be found: "job,city".'),
]
OtherOption = Annotated[
    str, typer.Option("--other", help="State of all cells without a category. If empty, their records do not count.")
]
BinsOption = Annotated[
    int | None,
    typer.Option("--bins", help="Cut numbers into about so many cells each. Default: fits divide them."),
]
MaxCategoriesOption = Annotated[
    int, typer.Option("--max-categories", help="The most frequent categories of a column are kept, up to so many.")
]
UnitOption = Annotated[
    str | None,
    typer.Option("--unit", help="Column of persons, who are protected; one random record of each counts."),
]


@command(
    app,
    "discover",
    "find categories and cuts, for a part of the budget",
    'discover records.csv --categories job,city --number "age=0:120:1" --epsilon 0.2 --delta 1e-9 --out schema.json',
    "discover records.csv --categories job --epsilon 0.2 --delta 1e-9 --ledger ledger.json --out schema.json",
    "discover --parents households.csv --children persons.csv --key household --most 6 --categories region,status "
    '--number "age=0:99:1" --epsilon 0.2 --delta 1e-9 --out linked.json',
)
def discover(
    *,
    data: option.FitData = None,
    tables: option.LinkedOptions,
    linked: option.KeyOptions,
    out: Annotated[Path, typer.Option("--out", help="JSON file to write: the schema, with what it cost.")],
    categories: CategoriesOption = None,
    number: column_options.NumberOption = None,
    date: column_options.DateOption = None,
    variable: column_options.VariableOption = None,
    cuts: column_options.CutsOption = None,
    reading: column_options.ReadingOptions,
    impossible: column_options.ImpossibleOption = None,
    other: OtherOption = "other",
    bins: BinsOption = None,
    max_categories: MaxCategoriesOption = 100,
    spent: option.BudgetOptions,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    n_records: option.NRecords = None,
    account: option.LedgerOptions,
    unit: UnitOption = None,
    text: option.TextOptions,
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

    --parents and --children are two tables with the column --key in common, in place of DATA. A parent with all its
    children is protected: in each table one random row of it counts. A column is of the table that has it; of both,
    write household.region, with one of --names before it.

    The exit code is 1 if next to no records were seen, or if no category of a column is frequent enough. If the schema
    cannot be written once it is paid for, the release is kept beside it (schema.release.npz).
    """
    declared = _declared(categories, column_options.DeclarationOptions(variable, cuts, number, date))
    limits: dict[str, Any] = {
        "impossible": impossible or (),
        "bins": bins,
        "max_categories": max_categories,
        "n_records": n_records,
        "other": other or None,
    }
    if tables.parents is not None or tables.children is not None:
        for name, value in {"DATA": data, "--unit": unit}.items():
            if value is not None:
                ask_for(name, str(value), "of linked tables pass --parents, --children and --key; leave it out")
        if discover_linked_tables(
            *(
                tables,
                linked,
                declared,
                reading,
                limits,
                spent,
                adjacency,
                account,
                text,
                out,
                overwrite,
                quiet,
                as_json,
            )
        ):
            raise typer.Exit(CHECK_FAILED)
        return
    if data is None:
        ask_for("DATA", None, "pass the file of the records, or --parents and --children for two tables")
    from pgmpy_dp.learning.privacy_record import handed_over
    from pgmpy_dp.private.data.columns import in_their_order
    from pgmpy_dp.private.ledger import Ledger
    from pgmpy_dp.tables.discovery import discover as found_in

    require_writable(overwrite, (data, account.ledger), out=out)
    budget = spent.budget()
    records = as_written(data, text)
    declared = {str(name): declared[str(name)] for name in in_their_order(records, declared)}
    cells = column_options.reading_options(declared, reading)
    ledger = open_account(account, budget, adjacency, fit=False)
    ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger, adjacency=str(adjacency))
    limits["unit"] = unit
    remedy = "pgmpy_dp.Release.load; where all was found, its .schema is that"
    with marked(ledger), kept(out.with_suffix(".release.npz"), remedy):
        found = found_in(records, declared, budget, ledger=ledger, adjacency=str(adjacency), **cells, **limits)
        with handed_over(found.release_):
            found.to_json(out)
        show_charged(_document(found, out), f"{found}\nWrote {out}", as_json, account.ledger, ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    if found.few or found.poor:
        raise typer.Exit(CHECK_FAILED)


def _declared(categories: list[str] | None, known: column_options.DeclarationOptions) -> dict[str, Any]:
    """Columns whose categories are to be found, and those that are declared."""
    from pgmpy_dp.tables.category_search import CATEGORIES

    names = [name.strip() for text in categories or [] for name in text.split(",") if name.strip()]
    for name in names:
        if names.count(name) > 1:
            ask_for("--categories", name, f"{name} was described before; describe each variable once")
    declared = column_options.declarations(dict.fromkeys(names, CATEGORIES), known)
    if not declared:
        ask_for("--categories", None, 'say which columns: --categories job,city, --number "age=0:120:1"')
    return declared


def _document(found: Discovery, out: Path) -> dict[str, Any]:
    return {
        "schema": str(out),
        "n_records": found.n_records,
        "n_records_sd": found.n_records_sd,
        "threshold": found.release_.public["threshold"],
        "columns": found_columns(found),
        **found.privacy_.told(),
    }

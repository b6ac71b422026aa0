"""``pgmpy-dp discover``: categories and cuts that nobody has listed, for a part of the budget, as a schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command, note_reading
from pgmpy_dp.cli.arguments import are_linked, as_written, tables_as_written
from pgmpy_dp.cli.files import require_writable
from pgmpy_dp.cli.ledger import kept, marked, note_uncounted, open_account, show_charged

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
NoCodesOption = Annotated[
    bool, typer.Option("--no-codes", help="Texts of numbers are numbers: 02116 is found as 2116.")
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
    learns=True,
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
    no_codes: NoCodesOption = False,
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
    They go into the schema as they are, and cost nothing; --impossible is about these, and of linked tables also about
    how many children are so: "count(role = head) = 1". Columns are in the file's order.

    --parents and --children are two tables with the column --key in common, in place of DATA. A parent with all its
    children is protected: in each table one random row of it counts. A column is of the table that has it; of both,
    write household.region, with one of --names before it.

    A column in which no category is frequent enough is left out of the schema. The exit code is 1 if next to no records
    were seen, or if that is so of all columns. If the schema cannot be written once it is paid for, the release is kept
    beside it (schema.release.npz).
    """
    from pgmpy_dp.private.ledger import Ledger
    from pgmpy_dp.verbs import discover as discovery_of
    from pgmpy_dp.verbs import in_order_of

    if no_codes and reading.codes:
        ask_for("--codes", ",".join(reading.codes), "leave it out with --no-codes, or that")
    declared = _declared(categories, reading.codes, column_options.DeclarationOptions(variable, cuts, number, date))
    require_writable(overwrite, (data, tables.parents, tables.children, account.ledger), out=out)
    variables, records, children = declared, None, None
    rules: Any = impossible or ()
    if are_linked(tables, data):
        records, children = tables_as_written(tables, text)
        variables, by_table = described_tables(declared, linked, tables, records, children)
        if records is not None and not variables["parent"]:
            ask_for("--parents", str(tables.parents), "no column of it was described; leave it out")
        cells = reading_of_tables(by_table, reading)
        variables["impossible"], rules = rules_of_tables(impossible, by_table)
    else:
        assert data is not None
        records = as_written(data, text)
        variables = in_order_of(records, declared)
        cells = column_options.reading_options(declared, reading)
    if no_codes:
        cells["codes"] = False
    budget = spent.budget()
    charged = open_account(account, budget, adjacency, fit=False)
    ledger = charged if isinstance(charged, Ledger) else Ledger(charged, adjacency=str(adjacency))
    limits: dict[str, Any] = {"impossible": rules, "bins": bins, "max_categories": max_categories}
    limits |= {"n_records": n_records, "other": other or None, "unit": unit, "adjacency": str(adjacency)}
    remedy = "pgmpy_dp.Release.load; what was found is its .schema"
    note_reading(quiet, data, tables.parents, tables.children)
    with marked(ledger), kept(out.with_suffix(".release.npz"), remedy) as bought:
        discovery = discovery_of(records, variables, budget, children=children, ledger=ledger, **cells, **limits)
        bought.append(discovery)
        discovery.to_json(out)
        document = {"schema": str(out), **discovery.to_dict()}
        show_charged(document, f"{discovery}\nWrote {out}", as_json, account.ledger, ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    if discovery.failed:
        raise typer.Exit(CHECK_FAILED)


def described_tables(
    declared: dict[str, Any], linked: option.KeyOptions, tables: option.LinkedOptions, parents: Any, children: Any
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The arguments of a schema of linked tables, from options, and what is declared of each table's columns."""
    from pgmpy_dp.linked.linked_discovery import columns_by_table

    for name, value in {"--key": linked.key, "--most": linked.most}.items():
        if value is None:
            what = "say which column joins the tables, and how many children count: --key patient --most 8"
            ask_for(name, None, what)
    names = [name.strip() for name in linked.names.split(",")]
    if len(set(names)) != 2 or not all(names):
        ask_for("--names", linked.names, "write two names: household,person")
    by_table = columns_by_table(declared, dict(zip(names, (parents, children), strict=True)))
    parent, child = by_table.values()
    order = column_options.names_of([linked.order or ""])
    said = {"key": linked.key, "most": linked.most, "counts": linked.count or (), "order": order, "names": names}
    key_kind = None if tables.key_kind is None else str(tables.key_kind)
    return {"parent": parent or None, "child": child, "key_kind": key_kind, **said}, by_table


def reading_of_tables(tables: dict[str, dict[str, Any]], options: column_options.ReadingOptions) -> dict[str, Any]:
    """The options of reading cells of both tables, for all columns, or for one, perhaps after its table's name."""
    names = {f"{table}.{column}": (column, f"{table}.{column}") for table, some in tables.items() for column in some}

    def named(texts: list[str] | None, sign: str) -> list[str]:
        listed = []
        for text in texts or []:
            of, separator, rest = text.partition(sign)
            listed += [f"{n}{sign}{rest}" for n, ways in names.items() if separator and of.strip() in ways] or [text]
        return listed

    codes = [one for name in column_options.names_of(options.codes) for one, ways in names.items() if name in ways]
    read = replace(options, missing=named(options.missing, "="), recode=named(options.recode, ":"), codes=codes)
    return column_options.reading_options(names, read)


def rules_of_tables(
    rules: Iterable[str] | None, tables: dict[str, dict[str, Any]]
) -> tuple[list[str], dict[str, list[str]]]:
    """Rules on counts and on columns of both tables, and those of each table."""
    from pgmpy_dp.schema.count_rules import table_of_rule

    both: list[str] = []
    by_table: dict[str, list[str]] = {table: [] for table in tables}
    for rule in rules or ():
        table = table_of_rule(rule, tables)
        (both if table is None else by_table[table]).append(rule)
    return both, by_table


def _declared(
    categories: list[str] | None, codes: list[str] | None, known: column_options.DeclarationOptions
) -> dict[str, Any]:
    """Columns whose categories are to be found, of codes too, and those that are declared."""
    from pgmpy_dp.tables.category_search import CATEGORIES

    names = column_options.names_of(categories)
    for name in names:
        if names.count(name) > 1:
            ask_for("--categories", name, f"{name} was described before; describe each variable once")
    declared = column_options.declarations(dict.fromkeys(names, CATEGORIES), known)
    declared |= {name: CATEGORIES for name in column_options.names_of(codes) if name not in declared}
    if not declared:
        ask_for("--categories", None, 'say which columns: --categories job,city, --number "age=0:120:1"')
    return declared

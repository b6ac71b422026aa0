"""``pgmpy-dp schema``: write down what is public about a table, without a look at its records."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import app, as_document, ask_for, command, show
from pgmpy_dp.cli.arguments import are_linked, as_written, parse_assignment, tables_as_written
from pgmpy_dp.cli.files import STANDARD_OUTPUT, load_schema, require_writable, write_output
from pgmpy_dp.shown import quantity, shown


@command(
    app,
    "schema",
    "write down columns and their possible values",
    'schema --variable "sex=F,M" --number "age=0:120:1 cuts 18,65" --missing "?,NA" --strip --out schema.json',
    'schema --date "admitted=2001-01-01:2020-12-31 bins 20" --recode "sex:Male=M,Female=F" --variable "sex=F,M"',
    'schema --variable "sex=F,M" --cuts "age=25,45,65" --out schema.json',
    "schema --from-header records.csv --out schema.json",
    "schema --codebook codebook.csv --other occupation=unknown --out schema.json",
    "schema --as-public found.json --out public.json",
    "schema --parents households.csv --children persons.csv --key household --most 6 --variable region=N,S "
    '--number "age=0:99:1" --out linked.json',
)
def schema(
    *,
    declared: column_options.DeclarationOptions,
    codebook: Annotated[
        Path | None, typer.Option("--codebook", help="CSV with the columns variable,state: one line for each state.")
    ] = None,
    other: column_options.OtherOption = None,
    texts: column_options.TextsOption = None,
    reading: column_options.ReadingOptions,
    impossible: column_options.ImpossibleOption = None,
    from_header: Annotated[
        Path | None,
        typer.Option(
            "--from-header", help="File of records whose columns to list, from its first line of names alone."
        ),
    ] = None,
    as_public: Annotated[
        Path | None,
        typer.Option(
            "--as-public",
            help="Schema that was found in records, to be written without what it cost: for records of other people.",
        ),
    ] = None,
    tables: option.LinkedOptions,
    linked: option.KeyOptions,
    text: option.TextOptions,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; default, and -: standard output.")] = None,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write the public schema of a table: its columns and their possible values.

    Write it from what is known without the records: a questionnaire, a codebook, common sense. No option reads it from
    the records, because a rare value that occurs there would tell that someone is among them.

    Records with a value that is not in the schema are left out, unless --other names a state that takes such values.

    --from-header writes a template: each column of a file that no option describes, with an empty list of states. Fill
    the lists in, or write "number": {"lower": 0, "upper": 120} in their place, or delete columns. Names of columns are
    public; nothing but the first line is read, and one that has numbers in it is refused, since it may be a record.

    Values are compared as texts, "30-59" too. Numbers are counted only in the cells of --number and the intervals of
    --cuts. Values that are almost such intervals, such as "[30, 60)", are refused, unless --texts says that the column
    holds them as they are.

    A number beyond its bounds counts as the bound, and a missing one has a state of its own, unless --number says
    otherwise. --missing, --strip, --casefold and --recode say which spellings mean the same.

    --parents and --children write the schema of linked tables with the column --key in common, of which no line but
    the first is read. A column belongs to the table that has it; of both, write household.region, with one of --names
    before it. Columns that no option describes are listed with an empty list of states, to fill in or to delete.

    --as-public is for a schema that discover wrote: other commands add what it cost, and refuse a ledger that did not
    pay for it. In records of other people than those whom it was found in, it is known without a look at them.

    --impossible says what cannot be: an implication such as "age < 15 -> marital = never", or a combination such as
    "sex = M & pregnant = yes". Conditions are =, !=, <, <=, >, >= and in {a, b}, joined by &. Learned models obey it,
    and synthetic records never break it. Of linked tables it may also say of how many children something is so:
    "count(role = head) = 1", by =, <, <=, > or >=, with a number or with n. Options that describe a column may be
    repeated.
    """
    out = None if out == STANDARD_OUTPUT else out
    require_writable(overwrite, (codebook, from_header, as_public), out=out)
    for name, path in (("--codebook", codebook), ("--from-header", from_header)):
        if path is not None and as_public is not None:
            ask_for(name, str(path), "--as-public was passed too; pass one of them")
    states = None if codebook is None else _read_codebook(codebook)
    if tables.children is not None or tables.parents is not None:
        _of_tables(tables, linked, declared, states, other, reading, impossible, text, out, as_json)
        return
    options = column_options.ColumnOptions(as_public, declared, other, texts, reading, impossible)
    if from_header is not None:
        _template(from_header, text, options, states, out, as_json)
        return
    for name, value in vars(text).items():
        if value is not None:
            ask_for(f"--{name}", value, "it says how the file of --from-header is written; pass that too")
    if as_public is not None:
        load_schema(as_public, "--as-public")
    public_schema = column_options.described(options, states)
    public_schema = public_schema if as_public is None else public_schema.as_public()
    document = public_schema.to_dict()
    if out is None:
        show(document, "", as_json=True)
        return
    public_schema.to_json(out)
    sizes = public_schema.cardinalities.values()
    told = f"Wrote {out}: {quantity(public_schema, 'variable')}"
    if sizes:
        told += " with " + (f"{min(sizes)} to " if min(sizes) < max(sizes) else "") + quantity(max(sizes), "state")
        told += f", {quantity(math.prod(sizes), 'possible record')}"
    if len(sizes) < len(public_schema):
        told += (
            f", besides {quantity(len(public_schema) - len(sizes), 'number without cells', 'numbers without cells')}"
        )
    show({"schema": str(out), "variables": len(public_schema), "possible_records": math.prod(sizes)}, told, as_json)


def header(path: Path, text: option.TextOptions, argument: str) -> list[str]:
    """The names of a file's columns, by its first line alone."""
    from pgmpy_dp.private.reading.frames import column_names

    names = [str(name) for name in column_names(as_written(path, text, argument)) if str(name)]
    if len(names) == 1 and text.delimiter is None and (signs := [sign for sign in ";\t|" if sign in names[0]]):
        sign = "tab" if signs[0] == "\t" else f"'{signs[0]}'"
        ask_for(argument, str(path), f"its first line is a single name; pass --delimiter {sign}")
    return names


def _template(
    from_header: Path,
    text: option.TextOptions,
    options: column_options.ColumnOptions,
    states: dict[str, list[str]] | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """A schema to be filled in: the columns of a file, and of each what options say of it."""
    names = header(from_header, text, "--from-header")
    described = states or any(vars(options.declared).values())
    # A schema has to have a variable: without any, the first column stands in, so that options of all columns are kept.
    document = column_options.described(options, states if described else {names[0]: ["some", "states"]}).to_dict()
    known = [entry["name"] for entry in document["variables"]] if described else []
    if absent := [name for name in known if name not in names]:
        ask_for("--from-header", str(from_header), f"it has no column {absent[0]!r}; it has {', '.join(names)}")
    empty = _filled_up(document, names, known)
    if out is None:
        show(document, "", as_json=True)
        return
    write_output(out, (as_document(document) + "\n").encode())
    listed = ", ".join(map(shown, empty))
    told = f"Wrote {out}: {quantity(names, 'column')}, {len(empty)} of which lack their states: {listed}"
    show({"schema": str(out), "variables": len(names), "without_states": empty}, told, as_json)


def _filled_up(table: dict[str, Any], names: list[str], described: Iterable[str]) -> list[str]:
    """Give a schema's form all of a table's columns; those that are not described, without states, are returned."""
    known = {entry["name"]: entry for entry in table["variables"] if entry["name"] in described}
    table["variables"] = [known.get(name, {"name": name, "states": []}) for name in names]
    return [name for name in names if name not in known]


def _of_tables(
    tables: option.LinkedOptions,
    linked: option.KeyOptions,
    declared: column_options.DeclarationOptions,
    states: dict[str, list[str]] | None,
    other: list[str] | None,
    reading: column_options.ReadingOptions,
    impossible: list[str] | None,
    text: option.TextOptions,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write the schema of linked tables, by their first lines; columns that are not described have no states."""
    from pgmpy_dp.cli.discover import described_tables, reading_of_tables, rules_of_tables
    from pgmpy_dp.linked import LinkedSchema
    from pgmpy_dp.linked.linked_discovery import reading_of_table
    from pgmpy_dp.schema import Schema

    are_linked(tables, None)
    columns_declared = column_options.declarations(states or {}, declared)
    said, by_table = described_tables(columns_declared, linked, tables, *tables_as_written(tables, text))
    cells = reading_of_tables(by_table, reading)
    said["impossible"], cells["impossible"] = rules_of_tables(impossible, by_table)
    others = dict(parse_assignment(each, "--other") for each in other or [])
    schemas: dict[str, Schema | None] = {"parent": None, "child": None}
    listed: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for part, (table, columns), file in zip(schemas, by_table.items(), (tables.parents, tables.children), strict=True):
        if file is None:
            continue
        names = [n for n in header(file, text, f"--{part}") if n != linked.key]
        listed[part] = names, columns
        of_other = {n: others[full] for n in columns for full in (n, f"{table}.{n}") if full in others}
        options = reading_of_table(table, columns, cells)
        # A schema has to have a variable: without any, the first column stands in, as for one table.
        schemas[part] = Schema(columns or {names[0]: ["some", "states"]}, other=of_other, **options)
    schema = LinkedSchema(**(said | schemas))
    document = schema.to_dict()
    empty = [name for part, (names, columns) in listed.items() for name in _filled_up(document[part], names, columns)]
    if out is None:
        show(document, "", as_json=True)
        return
    if empty:
        write_output(out, (as_document(document) + "\n").encode())
    else:
        schema.to_json(out)
    lacking = f", {len(empty)} of which lack their states: {', '.join(map(shown, empty))}" if empty else ""
    number = quantity(sum(len(names) for names, _ in listed.values()), "column")
    told = f"Wrote {out}: {number} of {quantity(listed, 'table')}{lacking}"
    show({"schema": str(out), "without_states": empty}, told, as_json)


def _read_codebook(path: Path) -> dict[str, list[str]]:
    """States by variable. Messages name lines and do not quote them: the path might be that of the records."""
    states: dict[str, list[str]] = {}
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        first = lines.readline()
        sign = next((sign for sign in ";\t" if "," not in first and sign in first), ",")
        names = next(csv.reader([first], delimiter=sign, skipinitialspace=True), [])
        if not {"variable", "state"} <= {name.strip() for name in names}:
            ask_for("--codebook", str(path), "its first line must be variable,state; it is not the file of the records")
        rows = csv.DictReader(lines, [name.strip() for name in names], delimiter=sign, skipinitialspace=True)
        for row in rows:
            number = rows.line_num + 1
            if not row["variable"] or row["state"] is None:
                ask_for("--codebook", str(path), f"line {number} has no variable or no state; write both")
            if any("\udc80" <= sign <= "\udcff" for sign in row["variable"] + row["state"]):  # bytes that are no sign
                ask_for("--codebook", str(path), f"line {number} is not UTF-8; save the file as UTF-8")
            states.setdefault(row["variable"], []).append(row["state"])
    return states

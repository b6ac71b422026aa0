"""What ``pgmpy-dp check``, ``plan`` and ``discover`` do with linked tables, before a model is learned from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmpy_dp.cli import column_options, option
from pgmpy_dp.cli.application import ask_for, show
from pgmpy_dp.cli.arguments import as_written
from pgmpy_dp.cli.files import load_linked_schema, require_writable
from pgmpy_dp.cli.fit_linked import private_tables
from pgmpy_dp.cli.ledger import kept, marked, note_uncounted, open_account, show_charged

if TYPE_CHECKING:
    from pgmpy_dp.linked.family_check import FamilyCheck
    from pgmpy_dp.tables.discovery import Discovery


def check_linked_tables(
    tables: option.LinkedOptions,
    described: column_options.ColumnOptions,
    spent: option.BudgetOptions,
    protected: option.ProtectionOptions,
    account: option.LedgerOptions,
    text: option.TextOptions,
    quiet: bool,
    as_json: bool,
) -> bool:
    """Say what two tables hold and how much of it their schema declares; whether a fit would have hardly anything."""
    from pgmpy_dp.linked.family_check import check_linked

    budget = spent.budget()
    private = private_tables(tables, described, budget, protected, account, text, fit=False)
    with marked(private.ledger):
        found = check_linked(private, None, budget)
        show_charged(_checked(found), str(found), as_json, account.ledger, private.ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    return found.failed


def plan_linked_tables(
    schema: Path, n: int, spent: option.BudgetOptions, adjacency: option.TableAdjacency, as_json: bool
) -> None:
    """Show what a budget buys of linked tables, whom it protects, and that large families are top-coded."""
    from pgmpy_dp.linked.linked_model import told_of_a_child
    from pgmpy_dp.linked.linked_plan import plan_linked

    budget = spent.budget()
    found = plan_linked(load_linked_schema(schema), budget, n, adjacency=str(adjacency))
    document = {
        "budget": budget.guarantee.to_dict(),
        **told_of_a_child(found.privacy),
        "n": n,
        "most": found.linked.most,
        "siblings": found.siblings,
        "memory_bytes": found.size.memory_bytes,
        "seconds": found.size.seconds,
        "tables": found.table.reset_index().to_dict("records"),
    }
    show(document, str(found), as_json)


def discover_linked_tables(
    tables: option.LinkedOptions,
    linked: option.KeyOptions,
    declared: dict[str, Any],
    reading: column_options.ReadingOptions,
    limits: dict[str, Any],
    spent: option.BudgetOptions,
    adjacency: option.TableAdjacency,
    account: option.LedgerOptions,
    text: option.TextOptions,
    out: Path,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> bool:
    """Find categories of both tables, and write their schema; whether there was hardly anything to find."""
    from pgmpy_dp.linked.linked_discovery import discover_linked
    from pgmpy_dp.private.data.columns import in_their_order
    from pgmpy_dp.private.ledger import Ledger

    require_writable(overwrite, (tables.parents, tables.children, account.ledger), out=out)
    if tables.children is None:
        ask_for("--children", None, "--parents was passed; pass the table of their children too")
    for name, value in {"--key": linked.key, "--most": linked.most}.items():
        if value is None:
            ask_for(
                name, None, "say which column joins the tables, and how many children count: --key patient --most 8"
            )
    if limits["impossible"]:
        ask_for("--impossible", limits["impossible"][0], "write rules into the schemas of the file that this writes")
    names = [name.strip() for name in linked.names.split(",")]
    if len(set(names)) != 2 or not all(names):
        ask_for("--names", linked.names, "write two names: household,person")
    budget = spent.budget()
    files = {"--parents": tables.parents, "--children": tables.children}
    records = {way: None if file is None else as_written(file, text, way) for way, file in files.items()}
    own = _by_table(declared, dict(zip(names, records.values(), strict=True)))
    if records["--parents"] is not None and not own[0]:
        ask_for("--parents", str(tables.parents), "no column of it was described; leave it out")
    cells = [column_options.reading_options(*part) for part in _reading_of(dict(zip(names, own, strict=True)), reading)]
    order = [name.strip() for name in (linked.order or "").split(",") if name.strip()]
    for way, columns in zip(records, own, strict=True):
        in_order = in_their_order(records[way], columns) if columns else []
        own[list(records).index(way)] = {str(name): columns[str(name)] for name in in_order}
    account_ = open_account(account, budget, adjacency, fit=False)
    ledger = account_ if isinstance(account_, Ledger) else Ledger(account_, adjacency=str(adjacency))
    limits = {name: value for name, value in limits.items() if name != "impossible"}
    own_options: dict[str, Any] = {
        **{"parent": own[0] if records["--parents"] is not None else None, "child": own[1], "key": linked.key},
        **{"most": linked.most, "counts": linked.count or (), "order": order, "names": names, "ledger": ledger},
        **{"adjacency": str(adjacency), "parent_options": cells[0], "child_options": cells[1], **limits},
    }
    remedy = "pgmpy_dp.Release.load; what was found in one table is its .schema"
    with marked(ledger), kept(out.with_suffix(".release.npz"), remedy):
        found = discover_linked(records["--parents"], records["--children"], budget, **own_options)
        found.to_json(out)
        document = {
            "schema": str(out),
            "tables": {
                name: None if part is None else {"n_records": part.n_records, "columns": found_columns(part)}
                for name, part in zip(names, (found.parent, found.child), strict=True)
            },
            **found.privacy_.told(),
        }
        show_charged(document, f"{found}\nWrote {out}", as_json, account.ledger, ledger)
        if account.ledger is None:
            note_uncounted(quiet)
    return found.failed


def found_columns(found: Discovery) -> list[dict[str, Any]]:
    """What `discover` found in each column, for programs."""
    from pgmpy_dp.schema import encode_label

    return [
        {"variable": encode_label(name), "labels": [encode_label(s) for s in part.index], "records": part.tolist()}
        for name, part in found.counts.items()
    ]


def _by_table(declared: dict[str, Any], records: dict[str, Any]) -> list[dict[str, Any]]:
    """Declarations of each table's columns: what has the table's name before it, or a name that only one table has."""
    from pgmpy_dp.private.data.columns import in_their_order

    def has(table: str, column: str) -> bool:
        try:
            return bool(in_their_order(records[table], [column])) if records[table] is not None else False
        except ValueError:
            return False

    found: dict[str, dict[str, Any]] = {table: {} for table in records}
    for name, said in declared.items():
        written = [(table, name.removeprefix(f"{table}.")) for table in records]
        places = [(table, column) for table, column in written if has(table, column)]
        if len(places) == 2 and name not in dict(written).values():  # one of them is named
            places = [place for place in places if place[1] != name]
        if len(places) != 1:
            ways = " and ".join(f"{table}.{column}" for table, column in places) or "neither"
            ask_for(name, None, f"of the tables, {ways} have it; describe a column of one, with the table before it")
        ((table, column),) = places
        found[table][column] = said
    return list(found.values())


def _reading_of(
    own: dict[str, dict[str, Any]], given: column_options.ReadingOptions
) -> Iterator[tuple[dict[str, Any], column_options.ReadingOptions]]:
    """Each table's columns, and what is said of how its cells are read: of all columns, or of one of them."""
    parts: dict[str, dict[str, Any]] = {table: {"missing": [], "recode": []} for table in own}
    for kind, sign, texts in (("missing", "=", given.missing), ("recode", ":", given.recode)):
        for text in texts or []:
            column = text.partition(sign)[0].strip() if sign in text else None
            taken = [t for t, columns in own.items() if column is None or column.removeprefix(f"{t}.") in columns]
            if not taken:
                ask_for(f"--{kind}", text, f"{column} is not a column that was described")
            for table in taken:
                parts[table][kind].append(text if column is None else text.removeprefix(f"{table}."))
    for table, columns in own.items():
        yield columns, replace(given, **parts[table])


def _checked(found: FamilyCheck) -> dict[str, Any]:
    from pgmpy_dp.linked.linked_model import told_of_a_child
    from pgmpy_dp.schema import encode_label

    return {
        "key": encode_label(found.linked.key),
        "kinds": {str(kind): float(count) for kind, count in found.kinds.items()},
        "sd": found.sd,
        "n_units": found.n_units,
        "n_matching": found.n_matching,
        "verdict": found.verdict,
        "columns": [
            {"table": table, "variable": encode_label(name), **dict(zip(found.table.columns, values, strict=True))}
            for (table, name), *values in found.table.itertuples()
        ],
        "failed": found.failed,
        **told_of_a_child(found.privacy_),
    }

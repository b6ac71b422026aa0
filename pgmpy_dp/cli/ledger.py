"""``pgmpy-dp ledger``: how much was spent on the records of one file, and what is left."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note, show
from pgmpy_dp.cli.files import STANDARD_OUTPUT, free_name, require_writable, write_output
from pgmpy_dp.shown import quantity, spreadsheet_safe
from pgmpy_dp.signals import no_more

if TYPE_CHECKING:
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.ledger import Ledger

ledgers = typer.Typer(
    help="What may be spent on the records of one file, and what was.",
    short_help="count what is spent on a file of records",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(ledgers, name="ledger")

LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="Ledger that ledger new or fit --ledger made.")]


def open_account(options: option.LedgerOptions, budget: Budget, adjacency: str, *, fit: bool = True) -> Ledger | Budget:
    """The account of a command: its `budget` alone, or the ledger in a file, which may be new.

    Parameters
    ----------
    options : LedgerOptions
    budget : Budget
        Of the command.
    adjacency : str
    fit : bool
        A new ledger without a total has the budget of a fit; another command has to be told one.
    """
    from pgmpy_dp.private.ledger import Ledger

    path, whole = options.ledger, None
    total = option.BudgetOptions(options.budget_epsilon, options.budget_delta, options.budget_rho)
    if total.is_passed or total.delta:
        whole = total.budget()
    if path is None:
        if whole is not None:
            ask_for("--ledger", None, "a budget of a ledger was passed; pass its file too")
        return budget
    if path.exists():
        return Ledger.open(path, whole, adjacency=str(adjacency), at_once=False)
    require_writable(False, ledger=path)
    if whole is None and not fit:
        ask_for("--ledger", str(path), "it is new; pass what everything may spend together, e.g. --budget-epsilon 1")
    if whole is None:
        note(f"{path} is new, with a budget of {budget} that this fit spends; --budget-epsilon gives it more")
    return Ledger.open(path, whole or budget, adjacency=str(adjacency), at_once=False)


@contextmanager
def marked(ledger: Ledger) -> Iterator[None]:
    """Mark an error that comes after a charge, so that its exit code does not say that nothing was spent."""
    before = len(ledger.entries)
    try:
        yield
        no_more()  # an interrupt of what is left to do would say that nothing was spent
    except BaseException as error:
        no_more()  # until what was paid for is kept, and said
        spent = True  # unless the ledger can still say otherwise
        with suppress(Exception):
            spent = len(ledger.entries) > before
        error.spent = spent  # type: ignore[attr-defined]
        if spent:
            with suppress(Exception):
                costs = " and ".join(str(entry.cost) for entry in ledger.entries[before:])
                note(f"{costs} was spent before this ended; costs add up to {ledger.account}")
        raise


@contextmanager
def kept(path: Path, remedy: str) -> Iterator[list[Any]]:
    """Write what the budget bought to `path`, or near it, if something fails after it was spent, and say where.

    Parameters
    ----------
    path : Path
    remedy : str
        What the user may do with that file.

    Yields
    ------
    list
        For what was bought, whose release it is where the error has none.
    """
    bought: list[Any] = []
    try:
        yield bought
    except BaseException as error:
        no_more()
        release = getattr(error, "release", None) or getattr((*bought, None)[0], "release_", None)
        if release is not None:
            error.release = release  # type: ignore[attr-defined]
            if release.kind == "interrupted":
                remedy = "pgmpy_dp.Release.load to look at it; it is too little for a model"
            for folder in (path.parent, Path(tempfile.gettempdir())):
                with suppress(OSError):
                    file = free_name(folder / path.name)
                    release.save(file)
                    note(f"the budget was spent before this ended; what it bought is in {file}: use {remedy}")
                    break
            else:
                note(
                    "the budget was spent before this ended; what it bought could not be written anywhere, and is lost"
                )
        raise


def show_charged(document: dict[str, Any], text: str, as_json: bool, path: Path | None, ledger: Ledger) -> None:
    """Print the result of a command that was paid for, with what its ledger in a file has left."""
    if path is not None:
        account = ledger.account
        document["ledger"] = {"file": str(path), "spent": str(account.spent), "left": str(account.left)}
        text += f"\n{path}: costs add up to {account}"
    show(document, text, as_json)


def note_uncounted(quiet: bool) -> None:
    """Tell somebody who pays without a ledger in a file that costs add up."""
    note("what this spent adds up with what fits to the same records spend; --ledger FILE keeps count", quiet)


@command(ledgers, "new", "make a ledger", "ledger new ledger.json --epsilon 3 --delta 1e-9")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON file to make.")],
    spent: option.BudgetOptions,
    adjacency: Annotated[
        option.TableAdjacency | None,
        typer.Option("--adjacency", help="What all fits protect. Default: what the first one does."),
    ] = None,
    as_json: option.Json = False,
) -> None:
    """Make a ledger: the budget of one file of records, for everything that will ever be learned from it."""
    from pgmpy_dp.private.ledger import Ledger

    budget = spent.budget()
    if file.exists():
        ask_for("FILE", str(file), "it exists; a ledger that was replaced would forget what was spent; name another")
    require_writable(False, FILE=file)
    Ledger.open(file, budget, adjacency=None if adjacency is None else str(adjacency))
    show(
        {"ledger": str(file), "budget": budget.guarantee.to_dict()}, f"Wrote {file} with a budget of {budget}", as_json
    )


@command(ledgers, "show", "show charges and what is left", "ledger show ledger.json", "ledger show ledger.json --json")
def show_ledger(file: LedgerFile, as_json: option.Json = False) -> None:
    """Show every charge, the sum of costs, what is left, and the guarantee, which is always the budget's."""
    from pgmpy_dp.private.adjacency import agreement

    ledger = load_ledger(file)
    document = {
        "budget": ledger.budget.guarantee.to_dict(),
        "guarantee": ledger.budget.guarantee.to_dict(),
        **{name: getattr(ledger.account, name).to_dict() for name in ("spent", "left", "allowed")},
        "adjacency": ledger.adjacency,
        **({"condition": agreement(tables).strip()} if (tables := ledger.public_tables) else {}),
        "private": ledger.private,
        "entries": [entry.to_dict() for entry in ledger.entries],
    }
    show(document, ledger.summary(), as_json)


@command(ledgers, "export", "write the charges to a CSV file", "ledger export ledger.json --out ledger.csv")
def export(
    file: LedgerFile,
    out: Annotated[Path, typer.Option("--out", help="CSV to write: one line for each charge; - prints it.")],
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write the charges as a table, for a data protection officer's own records.

    A name that a spreadsheet would compute gets a ' before it; ledger show --json has all as they are.
    """
    from pgmpy_dp.private.adjacency import agreement

    require_writable(overwrite, (file,), printed=not as_json, out=out)
    ledger = load_ledger(file)
    text = io.StringIO()
    known = {"condition": agreement(tables).strip()} if (tables := ledger.public_tables) else {}
    rows = csv.DictWriter(text, (*_COLUMNS, *known), lineterminator="\n")
    rows.writeheader()
    rows.writerows(_row(entry.to_dict()) | known for entry in ledger.entries)
    write_output(out, text.getvalue().encode())
    if out == STANDARD_OUTPUT:
        return
    count = len(ledger.entries)
    show({"out": str(out), "entries": count}, f"Wrote {out} with {quantity(count, 'charge')}", as_json)


_COLUMNS = (
    "what",
    "columns",
    "mechanism",
    "measure",
    "epsilon",
    "delta",
    "rho",
    "adjacency",
    "unit",
    "private",
)


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    common = {key: entry[key] for key in ("what", "mechanism", "adjacency", "unit")}
    columns = ";".join(str(name) for name in entry["columns"])
    row = {**common, **entry["cost"], "columns": columns, "private": "no" if entry["reproducible"] else "yes"}
    return {name: spreadsheet_safe(cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def load_ledger(path: Path, option: str = "FILE") -> Ledger:
    """A ledger's file as it is now; ValueError that names the option for another file."""
    from pgmpy_dp.private.ledger import Ledger

    try:
        return Ledger.load(path)
    except ValueError as error:
        ask_for(option, str(path), f"{error}")

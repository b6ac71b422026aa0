"""``pgmpy-dp start``: ask what is public about a file of records, and say which commands lead to a report."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note, show
from pgmpy_dp.cli.arguments import parse_states
from pgmpy_dp.cli.column_options import declared_number
from pgmpy_dp.cli.files import require_writable
from pgmpy_dp.cli.schema import header
from pgmpy_dp.shown import quantity, shown

if TYPE_CHECKING:
    from pgmpy_dp.schema import Number, Schema

_KINDS = ("category", "number", "date", "skip")
_BOUNDS = {
    "number": "smallest and largest possible number, and :1 for whole ones, such as 0:120:1",
    "date": "first and last possible day, such as 2015-01-01:2024-12-31 (format %d.%m.%Y after it for 31.12.2024)",
}
_OF_CHECK, _MOST_OF_CHECK, _OF_FIT = 0.04, 0.5, 0.9
"""Parts of epsilon. They fit into it together in a ledger of pure epsilons, and of rho-zCDP unless delta is tiny."""


@command(app, "start", "ask about a file, and say what to run", "start records.csv", "start survey.tsv --out s.json")
def start(
    *,
    data: option.Data,
    out: Annotated[
        Path | None, typer.Option("--out", help="Schema to write; default: records.schema.json for records.csv.")
    ] = None,
    text: option.TextOptions,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
) -> None:
    """Ask what is public about a file of records, write it as a schema, and print the commands to a first report.

    The questions: who is protected, the kind of each column with its possible values or bounds, and the budget. Nothing
    but the first line of the file is read, for the names of its columns. Answer from what is known of the file, not by
    a look at it. Answers may be piped in, one a line. Nothing is spent.
    """
    stem = data.name.split(".")[0]
    out = Path(f"{stem}.schema.json") if out is None else out
    require_writable(overwrite, (data,), out=out)
    names = [name for name in header(data, text, "DATA") if name.strip()]
    if not names or len(set(names)) < len(names):
        ask_for("DATA", str(data), "its first line does not name each column once; mend it, or write one before it")
    note(f"only the first line of {data} is read: {', '.join(names)}. A blank answer is the one in [ ]", quiet)
    try:
        unit, rows = _unit(names)
        schema = _schema([name for name in names if name != unit])
        epsilon = _answer("Budget: epsilon, of all that is ever told of these records together", _positive, "1")
        delta = _answer("Budget: delta, 0 or far below 1 over their number", partial(_delta, epsilon), "1e-9")
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise ValueError("the answers ended before the questions did; nothing was written") from None
    schema.to_json(out)
    words = [str(data), "--schema", str(out), *(["--unit", unit, "--rows-per-unit", rows] if unit else [])]
    words += [word for name, value in vars(text).items() if value is not None for word in (f"--{name}", value)]
    records = shlex.join([*words, "--ledger", f"{stem}.ledger.json"])
    of_check = min(_OF_CHECK * epsilon, _MOST_OF_CHECK)
    model, release, page = (shlex.quote(stem + ending) for ending in (".npz", ".release.npz", ".html"))
    lines = (
        f"check {records} --epsilon {of_check:g} --budget-epsilon {epsilon:g} --budget-delta {delta:g}",
        f"fit {records} --epsilon {_OF_FIT * epsilon:g} --delta {delta:g} --draws 50 --release {release} --out {model}",
        f"report {model} --release {release} --out {page}",
    )
    told = "The first says whether what you wrote matches the file, the second learns, the third writes a page to read."
    wrote = f"Wrote {out}: {len(schema)} of {quantity(len(names), 'column')}. Now run, one after another:"
    show({}, "\n".join(["", wrote, *(f"  pgmpy-dp {line}" for line in lines), told]), as_json=False)


def _answer(question: str, read: Callable[[str], Any], default: str | None = None) -> Any:
    """What `read` makes of an answer; where it raises, its remedy is said, and the question is asked again."""

    def checked(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, TypeError) as error:
            raise typer.BadParameter(str(error).rpartition("': ")[2]) from None

    return typer.prompt(question, default=default, value_proc=checked, show_default=bool(default))


def _unit(names: list[str]) -> tuple[str, str]:
    """The column that names a person, or "", and how many rows of a person count."""

    def column(text: str) -> str:
        if text and text not in names:
            raise ValueError(f"that is no column; write one of {', '.join(names)}, or nothing")
        return text

    question = "Who is protected? If a person may have several rows, the column that names the person (else nothing)"
    unit = _answer(question, column, "")
    rows = _answer("  how many of a person's rows count", partial(_positive, read=int), "1") if unit else 1
    return unit, str(rows)


def _schema(names: list[str]) -> Schema:
    """The columns that are described, and how their cells are read."""
    from pgmpy_dp.schema import Schema

    def kind(text: str) -> str:
        matches = [kind for kind in _KINDS if text and kind.startswith(text.lower())]
        if not matches:
            raise ValueError(f"write {', '.join(_KINDS)} or the first letter of one")
        return matches[0]

    def states(text: str) -> list[str]:
        return list(Schema({"it": parse_states(f"it={text}", "--variable")[1]}).states["it"])

    columns: dict[str, Any] = {}
    others: dict[str, str] = {}
    for name in names:
        chosen = _answer(f"{shown(name)}: {', '.join(_KINDS)}", kind, "skip")
        if chosen == "category":
            columns[name] = _answer("  all possible values, with commas between, such as F,M", states)
            other = _answer(
                "  the value that all other cells count as, empty ones too (- leaves them out)", str, "other"
            )
            if other != "-":
                others[name] = other
                columns[name] += [other] if other not in columns[name] else []
        elif chosen != "skip":
            columns[name] = _answer(f"  {_BOUNDS[chosen]}", partial(_declared, f"--{chosen}"))
    if not columns:
        raise ValueError("every column was skipped; describe those to learn from")
    return Schema(columns, other=others, strip=True)


def _declared(option: str, text: str) -> Number:
    return declared_number(f"it={text}", option)[1]


def _positive(text: str, read: Callable[[str], float] = float) -> float:
    if not 0 < read(text) < 1e15:
        raise ValueError("write a number above 0")
    return read(text)


def _delta(epsilon: float, text: str) -> float:
    from pgmpy_dp.private.budget import Budget

    return Budget(epsilon=epsilon, delta=float(text)).delta

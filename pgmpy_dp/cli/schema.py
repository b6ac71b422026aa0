"""``pgmpy-dp schema``: write down what is public about a table, without a look at its records."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Annotated

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note, show
from pgmpy_dp.cli.arguments import parse_assignment, parse_states
from pgmpy_dp.cli.files import require_writable

__all__ = ["schema"]

_RANGE = re.compile(r"\s*[0-9.]+\s*(?:-|–|to)\s*[0-9.]+\s*")


@command(
    app,
    "schema",
    "write down columns and their possible values",
    'schema --variable "sex=F,M" --cuts "age=25,45,65" --out schema.json',
    "schema --codebook codebook.csv --other occupation=unknown --out schema.json",
)
def schema(
    variable: Annotated[
        list[str] | None, typer.Option("--variable", help='A column and all of its possible values: "sex=F,M".')
    ] = None,
    cuts: Annotated[
        list[str] | None,
        typer.Option("--cuts", help='A column of numbers and where to cut it: "age=25,45,65" has 4 states.'),
    ] = None,
    codebook: Annotated[
        Path | None, typer.Option("--codebook", help="CSV with the columns variable,state: one line for each state.")
    ] = None,
    other: Annotated[
        list[str] | None, typer.Option("--other", help='State that takes all other values: "job=unknown".')
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option("--texts", help="A column that holds intervals as texts, having been cut already."),
    ] = None,
    impossible: Annotated[
        list[str] | None,
        typer.Option("--impossible", help='What cannot be, for example "age < 15 -> marital = never".'),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; default: standard output.")] = None,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write the public schema of a table: its columns and their possible values.

    Write it from what is known without the records (a questionnaire, a codebook, common sense). There is no option to
    read it from the records, for whether a rare value occurs in them would tell that someone is among them.

    Records with a value that is not in the schema are left out, unless --other names a state that takes such values.

    Values are compared as texts, "30-59" too: numbers are counted in the intervals of --cuts alone. Values that are
    almost such intervals, "[30, 60)" for one, are refused, unless --texts says that the column holds them as they are.

    --impossible, which may be repeated, says what is known to be impossible: an implication such as
    "age < 15 -> marital = never", or a combination such as "sex = M & pregnant = yes". Conditions are =, !=, <, <=, >,
    >= and in {a, b}, joined by &. Learned models obey it: synthetic records never break it.
    """
    from pgmpy_dp.schema import Schema, almost_intervals, interval_states

    require_writable(overwrite, (codebook,), out=out)
    states: dict[str, list[str]] = {} if codebook is None else _read_codebook(codebook)
    for flag, given in (("--variable", variable or []), ("--cuts", cuts or [])):
        for text in given:
            name, parts = parse_states(text, flag)
            if name in states:
                ask_for(flag, text, f"{name} was described before; describe each variable once")
            states[name] = interval_states(_numbers(text, parts)) if flag == "--cuts" else parts
    if not states:
        ask_for("--variable", None, 'describe a column with --variable "sex=F,M", --cuts "age=25,45" or --codebook')
    others = dict(parse_assignment(text, "--other") for text in other or [])
    for name, listed in states.items():
        meant = None if name in (texts or ()) else almost_intervals(listed, others.get(name))
        if meant is not None:
            cut = f'for a column of numbers write --cuts "{name}={_cuts(meant)}"'
            remedy = f"intervals, but compared as texts; {cut}, for one of such texts add --texts {name}"
            ask_for(f"the list of states of {name}", listed, remedy)
        ranges = [state for state in listed if _RANGE.fullmatch(state)]
        if ranges and name not in (texts or ()):
            note(
                f"{name}: {ranges[0]!r} is a text like any other, in which no number is counted; --cuts is for numbers"
            )
    found = Schema(states, other=others, texts=texts or (), impossible=impossible or ())
    document = found.to_dict()
    if out is None:
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
        return
    found.to_json(out)
    sizes = [found.cardinality(name) for name in found.variables]
    cells = math.prod(sizes)
    text = f"Wrote {out}: {len(sizes)} variables with {min(sizes)} to {max(sizes)} states, {cells:,} possible records"
    show({"schema": str(out), "variables": len(sizes), "possible_records": cells}, text, as_json)


def _numbers(text: str, parts: list[str]) -> list[float]:
    try:
        return [float(part) for part in parts]
    except ValueError:
        ask_for("--cuts", text, 'write ascending numbers with decimal points and commas between: "age=25,45.5"')


def _cuts(states: list[str]) -> str:
    """The cuts of states of intervals, as --cuts takes them."""
    from pgmpy_dp.schema import interval_cuts

    return ",".join(f"{cut:.15g}" for cut in interval_cuts(states) or ())


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
            if _has_bytes(row["variable"] + row["state"]):
                ask_for("--codebook", str(path), f"line {number} is not UTF-8; save the file as UTF-8")
            states.setdefault(row["variable"], []).append(row["state"])
    return states


def _has_bytes(text: str) -> bool:
    """Whether it stands for bytes that are no UTF-8."""
    return any("\udc80" <= sign <= "\udcff" for sign in text)

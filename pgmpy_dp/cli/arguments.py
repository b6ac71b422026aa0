"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import csv
import re
from collections.abc import Hashable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli.application import ask_for

if TYPE_CHECKING:
    import networkx as nx

    from pgmpy_dp.private.data.text_file import TextFile
    from pgmpy_dp.schema import Schema

__all__ = [
    "AdjacencyOption",
    "BudgetDelta",
    "BudgetEpsilon",
    "BudgetRho",
    "Data",
    "Decimal",
    "Delimiter",
    "Delta",
    "Edges",
    "EdgesFile",
    "Encoding",
    "Epsilon",
    "Json",
    "LedgerOption",
    "NRecords",
    "Overwrite",
    "Quiet",
    "Rho",
    "RowsPerUnit",
    "SchemaFile",
    "Structure",
    "TableAdjacency",
    "Thousands",
    "Unit",
    "as_written",
    "given_graph",
    "parse_assignment",
    "parse_states",
    "variable_named",
    "whose",
]


_QUOTED = re.compile('"(?:[^"]|"")*"')
_STATE = re.compile(rf"(?:^|,)((?:\s*{_QUOTED.pattern}|[(\[][^()\[\]\"]*[)\]]|[^,])*)")
_EXAMPLE = 'write commas between states, and marks around a state that has a comma, a bracket or marks: a,"b, c"'


class TableAdjacency(StrEnum):
    """Which tables are neighbours."""

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"


class Structure(StrEnum):
    """Where the graph comes from when it is not given."""

    LEARN = "learn"
    CHOW_LIU = "chow-liu"
    INDEPENDENT = "independent"


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The private records: .csv, .tsv (or either with .gz) or .parquet.")
]
LedgerOption = Annotated[
    Path | None, typer.Option("--ledger", help="File that counts what is spent on these records; made if new.")
]
BudgetEpsilon = Annotated[
    float | None, typer.Option("--budget-epsilon", help="Of a new ledger; default: what this fit spends.")
]
BudgetDelta = Annotated[float, typer.Option("--budget-delta", help="Of a new ledger.")]
BudgetRho = Annotated[float | None, typer.Option("--budget-rho", help="Of a new ledger.")]
SchemaFile = Annotated[Path, typer.Option("--schema", help="JSON file of the public schema; see pgmpy-dp schema.")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="Budget: epsilon; alone, pure epsilon-DP.")]
Delta = Annotated[float, typer.Option("--delta", help="Beside --epsilon: (epsilon, delta)-DP; far below 1/n.")]
Rho = Annotated[float | None, typer.Option("--rho", help="Budget: rho-zCDP, instead of --epsilon.")]
Edges = Annotated[str | None, typer.Option("--edges", help='Public graph, e.g. "age-income,sex-income".')]
EdgesFile = Annotated[Path | None, typer.Option("--edges-file", help="Public graph: CSV with two variables a line.")]
AdjacencyOption = Annotated[
    TableAdjacency, typer.Option("--adjacency", help="What is protected: a record's presence, or its values.")
]
NRecords = Annotated[
    int | None, typer.Option("--n-records", help="Number of records, if public (required for replace_one).")
]
Unit = Annotated[
    str | None, typer.Option("--unit", help="Column of persons, who are protected with all their records.")
]
RowsPerUnit = Annotated[
    str,
    typer.Option("--rows-per-unit", help='How many records of a person count (drawn), or "shares" for all in part.'),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help='Of text: the sign between fields, or the word "tab"; default: a comma, in .tsv a tab.'
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of text: utf-8 (default), cp1252 (Windows), latin-1 or another.")
]
Decimal = Annotated[str | None, typer.Option("--decimal", help='Of text: "." (default) or "," before the fraction.')]
Thousands = Annotated[
    str | None, typer.Option("--thousands", help='Of text: the sign between groups of three digits, such as ".".')
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace outputs that exist.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no notes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def variable_named(text: str, names: Iterable[Hashable], option: str) -> Any:
    """The variable that is written `text`."""
    found = [name for name in names if str(name) == text.strip()]
    if len(found) != 1:
        ask_for(option, text, f"name one of the variables {', '.join(map(str, names))}")
    return found[0]


def parse_assignment(text: str, option: str) -> tuple[str, str]:
    """The two sides of ``name=value``."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value:
        ask_for(option, text, 'write name=value, in quotation marks where it has blanks, < or >: "age=<25"')
    return name.strip(), value


def parse_states(text: str, option: str) -> tuple[str, list[str]]:
    """Both sides of ``name=state,state``, in which quotation marks and brackets keep a comma inside a state.

    Examples
    --------
    >>> parse_states('age=<18,[18,65),"65, or more"', "--variable")
    ('age', ['<18', '[18,65)', '65, or more'])
    """
    name, values = parse_assignment(text, option)
    if name[0] in "\"'":
        ask_for(option, text, f'{name} begins with a quotation mark; put marks around the whole: "sex=F,M"')
    parts = [part[1].strip() for part in _STATE.finditer(values)]
    states = [part[1:-1].replace('""', '"') if _QUOTED.fullmatch(part) else part for part in parts]
    for part in parts:
        if _QUOTED.fullmatch(part):
            continue
        if '"' in part or (len(part) > 1 and part[0] == part[-1] == "'"):
            ask_for(
                option, text, f"{part} has quotation marks that are not double ones around a whole state; {_EXAMPLE}"
            )
        if sum(map(part.count, "[(")) > sum(map(part.count, "])")):
            ask_for(option, text, f"{part} has a bracket that is not closed; {_EXAMPLE}")
        if len(parts) == 1 and ";" in part:
            ask_for(option, text, f"{part} is one state; write commas between states, not semicolons")
    return name, states


def whose(unit: str | None, rows: str) -> dict[str, Any]:
    """The arguments of a private table that say who is protected."""
    return {"unit": unit, "rows_per_unit": int(rows) if rows.isdecimal() else rows}


def as_written(
    path: Path, delimiter: str | None, encoding: str | None, decimal: str | None, thousands: str | None
) -> Path | TextFile:
    """The records of a file, with the options of text that were passed."""
    from pgmpy_dp.private.data.text_file import TextFile

    options = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    passed = {name: value for name, value in options.items() if value is not None}
    if delimiter in ("tab", "\\t"):
        passed["delimiter"] = "\t"
    return TextFile(path, **passed) if passed else path


def given_graph(schema: Schema, edges: str | None, edges_file: Path | None) -> nx.Graph | None:
    """The graph of --edges or --edges-file on all variables of the schema; None where neither was passed."""
    import networkx as nx

    if edges is not None and edges_file is not None:
        ask_for("--edges-file", str(edges_file), "--edges was passed too; pass one of them")
    if edges is not None:
        pairs = [_joined(text, schema) for text in edges.split(",") if text.strip()]
    elif edges_file is not None:
        pairs = _read_edges(edges_file, schema)
    else:
        return None
    graph = nx.Graph()
    graph.add_nodes_from(schema.variables)
    graph.add_edges_from(pairs)
    return graph


def _joined(text: str, schema: Schema) -> tuple[Hashable, Hashable]:
    """Two variables joined by a dash; names may have dashes too."""
    names = {str(name): name for name in schema.variables}
    parts = text.split("-")
    splits = [("-".join(parts[:k]).strip(), "-".join(parts[k:]).strip()) for k in range(1, len(parts))]
    found = [(names[u], names[v]) for u, v in splits if u in names and v in names and u != v]
    if len(found) != 1:
        problem = "that can be read in several ways; use --edges-file" if found else "write two variables, first-second"
        ask_for("--edges", text.strip(), f"{problem}; the schema has {', '.join(names)}")
    return found[0]


def _read_edges(path: Path, schema: Schema) -> list[tuple[Hashable, Hashable]]:
    """Messages name lines and do not quote them: the path might be that of the records."""
    names = {str(name): name for name in schema.variables}
    pairs = []
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            fields = [field.strip() for field in row]
            if not any(fields) or (number == 1 and not set(fields) & set(names)):
                continue  # a blank line, or a header
            if len(fields) != 2 or fields[0] not in names or fields[1] not in names or fields[0] == fields[1]:
                what = f"line {number} is not two different variables with a comma between"
                ask_for("--edges-file", str(path), f"{what}; the schema has {', '.join(names)}")
            pairs.append((names[fields[0]], names[fields[1]]))
    return pairs

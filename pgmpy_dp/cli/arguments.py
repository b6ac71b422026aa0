"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli.application import ask_for

if TYPE_CHECKING:
    import networkx as nx

    from pgmpy_dp.schema import Schema

__all__ = [
    "AdjacencyOption",
    "BudgetDelta",
    "BudgetEpsilon",
    "BudgetRho",
    "Data",
    "Delta",
    "Edges",
    "EdgesFile",
    "Epsilon",
    "Json",
    "LedgerOption",
    "NRecords",
    "Overwrite",
    "Quiet",
    "Rho",
    "SchemaFile",
    "Structure",
    "TableAdjacency",
    "given_graph",
    "parse_assignment",
    "variable_named",
]


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
                remedy = f"line {number} is not two different variables; the schema has {', '.join(names)}"
                ask_for("--edges-file", str(path), remedy)
            pairs.append((names[fields[0]], names[fields[1]]))
    return pairs

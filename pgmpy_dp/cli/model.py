"""``pgmpy-dp info``, ``query`` and ``sample``: what a model says. None of it costs any budget."""

from __future__ import annotations

import io
import itertools
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, show
from pgmpy_dp.cli.arguments import parse_assignment, variable_named
from pgmpy_dp.cli.files import load_model, require_writable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["info", "query", "sample"]

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")]


@command(app, "info", "what a model file holds", "info model.npz")
def info(model: ModelFile, as_json: option.Json = False) -> None:
    """What a model file holds: variables, edges, and the guarantee under which it was learned."""
    from pgmpy_dp.schema import encode_label

    network = load_model(model)
    states, privacy = network.states, network.privacy
    document: dict[str, Any] = {
        "model": str(model),
        "variables": {str(name): [encode_label(state) for state in states[name]] for name in network.nodes},
        "edges": [[encode_label(u), encode_label(v)] for u, v in network.edges],
        "privacy": None if privacy is None else privacy.to_dict(),
    }
    lines = [
        "No guarantee is recorded: its factors were set by hand" if privacy is None else f"Learned with {privacy}",
        f"{network.number_of_nodes()} variables and their neighbours in the graph:",
    ]
    for name in network.nodes:
        neighbours = ", ".join(sorted(map(str, network.neighbors(name)))) or "none"
        lines.append(f"  {name} ({len(states[name])} states): {neighbours}")
    show(document, "\n".join(lines), as_json)


@command(
    app,
    "query",
    "ask a model for probabilities",
    "query model.npz --variables income --evidence education=Doctorate",
    'query model.npz --variables "sex,income" --evidence "age=<25" --json',
)
def query(
    model: ModelFile,
    variables: Annotated[str, typer.Option("--variables", help="What to ask about, with commas between.")],
    evidence: Annotated[
        list[str] | None, typer.Option("--evidence", help="What is known: variable=state; may be repeated.")
    ] = None,
    as_json: option.Json = False,
) -> None:
    """The probability of each combination of states of some variables, given others."""
    from pgmpy_dp.models.conditioning import conditioned
    from pgmpy_dp.schema import encode_label

    network = load_model(model)
    states = {name: list(network.states[name]) for name in network.nodes}
    asked = [variable_named(text, states, "--variables") for text in variables.split(",")]
    known: dict[Hashable, int] = {}
    for text in evidence or []:
        side, value = parse_assignment(text, "--evidence")
        name = variable_named(side, states, "--evidence")
        if name in known:
            ask_for("--evidence", text, f"{name} was given a state before")
        known[name] = _position(value, states[name], text)
    both = [name for name in asked if name in known]
    if both or len(set(asked)) < len(asked):
        ask_for("--variables", variables, "name each variable once, and none that is in --evidence")
    own = network.to_log_linear()
    table = (conditioned(own, known) if known else own).marginal(asked)
    given = {str(name): encode_label(states[name][k]) for name, k in known.items()}
    cells = list(itertools.product(*(states[name] for name in asked)))
    rows = [
        {**{str(name): encode_label(state) for name, state in zip(asked, cell, strict=True)}, "probability": float(p)}
        for cell, p in zip(cells, table.ravel(), strict=True)
    ]
    document = {"variables": [str(name) for name in asked], "evidence": given, "table": rows}
    condition = "".join(f"{' | ' if k == 0 else ', '}{name}={state}" for k, (name, state) in enumerate(given.items()))
    header = [*map(str, asked), f"P({', '.join(map(str, asked))}{condition})"]
    body = [[*map(str, cell), f"{p:.4f}"] for cell, p in zip(cells, table.ravel(), strict=True)]
    show(document, _aligned([header, *body]), as_json)


@command(app, "sample", "draw synthetic records", "sample model.npz --n 10000 --out synthetic.csv")
def sample(
    model: ModelFile,
    n: Annotated[int, typer.Option("--n", help="Number of records.", min=0)],
    out: Annotated[Path, typer.Option("--out", help="File to write: .csv, .tsv (or either with .gz) or .parquet.")],
    random_state: Annotated[
        int | None, typer.Option("--random-state", help="For the same draws again; it has no part in privacy.", min=0)
    ] = None,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Draw synthetic records. They are as private as the model, however many there are."""
    from pgmpy_dp.private.files import write_atomically

    require_writable(overwrite, (model,), out=out)
    kind = _kind(out)
    network = load_model(model)
    frame = network.sample(n, random_state)
    write_atomically(out, _as_bytes(frame, kind, out.name.lower().endswith(".gz")))
    text = f"Wrote {out}: {n:,} synthetic records of {frame.shape[1]} variables"
    show({"out": str(out), "n": n, "variables": list(map(str, frame.columns))}, text, as_json)


def _position(value: str, states: Sequence, text: str) -> int:
    """The number of the state that is written `value`, or of the interval that a number lies in."""
    import numpy as np

    from pgmpy_dp.schema import interval_cuts, match_key

    key = match_key(value)
    keys = [match_key(state) for state in states]
    if key in keys:
        return keys.index(key)
    cuts = interval_cuts(states)
    if cuts and key[0] == "number":
        return int(np.searchsorted(cuts, key[1], side="right"))
    ask_for("--evidence", text, f"use one of the states {', '.join(map(str, states))}")


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _kind(out: Path) -> str:
    name = out.name.lower().removesuffix(".gz")
    for ending in (".csv", ".tsv"):
        if name.endswith(ending):
            return ending
    if name.endswith((".parquet", ".pq")) and not out.name.lower().endswith(".gz"):
        try:
            import pyarrow  # noqa: F401 - asked for before anything is drawn
        except ModuleNotFoundError:
            raise ModuleNotFoundError("--out: Parquet files need pyarrow: pip install pyarrow, or write .csv") from None
        return ".parquet"
    ask_for("--out", str(out), "use a name that ends in .csv, .tsv (or either with .gz) or .parquet")


def _as_bytes(frame: pd.DataFrame, kind: str, compressed: bool) -> bytes:
    import gzip

    if kind == ".parquet":
        stream = io.BytesIO()
        frame.rename(columns=str).to_parquet(stream, index=False)
        return stream.getvalue()
    text = frame.to_csv(index=False, sep="," if kind == ".csv" else "\t").encode()
    return gzip.compress(text, mtime=0) if compressed else text

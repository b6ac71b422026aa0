"""``pgmpy-dp info``, ``query`` and ``sample`` for a model of linked tables."""

from __future__ import annotations

import gzip
from collections.abc import Hashable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from pgmpy_dp.cli.application import ask_for, show
from pgmpy_dp.cli.files import load_linked_model, require_writable, write_output
from pgmpy_dp.cli.synthetic import StyleOptions, parquet_of, suffix_of, text_of
from pgmpy_dp.shown import quantity, shown

if TYPE_CHECKING:
    from pgmpy_dp.linked import LinkedModel


class Of(StrEnum):
    """The person or family that a question about linked tables is about."""

    CHILD = "child"
    FAMILY = "family"
    PAIR = "pair"


def linked_info(path: Path, as_json: bool) -> None:
    """Show both tables, their key, and what is promised to a parent with all its children, and to one child."""
    from pgmpy_dp.linked.linked_model import words_of_a_child

    model = load_linked_model(path)
    linked, one = model.linked, model.privacy_of_a_child
    document = {
        "model": str(path),
        "linked": linked.to_dict(),
        "n_records": model.n_records,
        "privacy": None if model.privacy is None else model.privacy.to_dict(),
        "guarantee_of_a_child": None if one is None else one.to_dict(),
    }
    lines = [
        "No guarantee is recorded" if model.privacy is None else f"Learned with {model.privacy}",
        f"One {linked.names[1]} alone, added, removed or changed: {words_of_a_child(model.privacy)}",
        f"Two tables, linked by {shown(linked.key)}; up to {quantity(linked.most, 'row')} of {linked.names[1]} each",
    ]
    for table, columns in zip(linked.names, model.columns, strict=True):
        lines.append(f"  {shown(table)}: {', '.join(map(shown, columns))}")
    lines += ["Rules that it obeys:", *(f"  {shown(rule)}" for rule in linked.rules)] if linked.rules else []
    show(document, "\n".join(lines), as_json)


def linked_sample(
    path: Path,
    n: int,
    out_parents: Path | None,
    out_children: Path | None,
    random_state: int | None,
    labels: bool,
    ids: str | None,
    style: StyleOptions,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Draw synthetic parents with their children, and write both tables."""
    from pgmpy_dp.models.answers import fresh_ids

    if out_children is None:
        ask_for("--out-children", None, "the model is of linked tables; pass --out-parents and --out-children")
    require_writable(overwrite, (path,), out_parents=out_parents, out_children=out_children)
    model = load_linked_model(path)
    if out_parents is None and model.linked.parent is not None:
        ask_for("--out-parents", None, "the model is of linked tables; pass --out-parents and --out-children")
    outs = {"--out-parents": out_parents, "--out-children": out_children}
    written = [
        None if out is None else (out, suffix_of(out, option), style.written(out, suffix_of(out, option)))
        for option, out in outs.items()
    ]
    drawn = list(model.sampled_columns(n, random_state, labels))
    if ids is not None:
        if any(ids in map(str, columns) for columns in drawn):
            ask_for("--id", ids, "it is a column of the model; pass the name of a new one")
        drawn[1] = {ids: fresh_ids(ids, (), len(drawn[1][model.linked.key][1])), **drawn[1]}
    contents = []
    for columns, how in zip(drawn, written, strict=True):
        if how is None:
            continue
        out, suffix, as_text = how
        content = parquet_of(columns) if suffix == ".parquet" else text_of(columns, as_text, style.safe, quiet)
        contents.append((out, gzip.compress(content, mtime=0) if out.suffix.lower() == ".gz" else content))
    for out, content in contents:
        write_output(out, content)
    parent, child = model.linked.names
    children = len(drawn[1][model.linked.key][1])
    files = " and ".join(str(out) for out, _ in contents)
    document = {
        "out_parents": None if out_parents is None else str(out_parents),
        "out_children": str(out_children),
        "n": n,
        "n_children": children,
    }
    show(document, f"Wrote {files}: {n:,} of {parent} with {children:,} of {child}, synthetic", as_json)


def linked_names(model: LinkedModel) -> dict[str, Hashable]:
    """The names for columns in a query: with their table, and alone where only one table has the column."""
    everything: list[tuple[str, Hashable]] = [
        (table, column) for table, columns in zip(model.linked.names, model.columns, strict=True) for column in columns
    ]
    alone = [str(column) for _, column in everything]
    unique: dict[str, Hashable] = {str(column): column for _, column in everything if alone.count(str(column)) == 1}
    return unique | {f"{table}.{column}": f"{table}.{column}" for table, column in everything}

"""What ``pgmpy-dp info``, ``query`` and ``sample`` do with a model of linked tables."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Hashable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmpy_dp.cli.application import aligned, ask_for, show
from pgmpy_dp.cli.files import load_linked_model, require_writable, write_output
from pgmpy_dp.cli.synthetic import StyleOptions, kind_of, parquet_of, text_of
from pgmpy_dp.shown import shown

if TYPE_CHECKING:
    from pgmpy_dp.linked import LinkedModel


class Of(StrEnum):
    """Of whom a question about linked tables is."""

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
        f"Two tables, linked by {shown(linked.key)}; up to {linked.most} rows of {linked.names[1]} for each",
    ]
    for table, columns in zip(linked.names, model.columns, strict=True):
        lines.append(f"  {shown(table)}: {', '.join(map(shown, columns))}")
    rules = [*(linked.parent.impossible if linked.parent is not None else ()), *linked.child.impossible]
    lines += ["Rules that it obeys:", *(f"  {shown(rule)}" for rule in rules)] if rules else []
    show(document, "\n".join(lines), as_json)


def linked_query(
    path: Path, variables: str, evidence: list[str] | None, of: Of | None, level: float, as_json: bool
) -> None:
    """Give probabilities of columns of both tables, of a random child, of a family's, or of two of one parent."""
    from pgmpy_dp.schema import encode_label

    model = load_linked_model(path)
    names = _names(model)
    asked = [_named(text.strip(), names, "--variables") for text in variables.split(",")]
    known: dict[Hashable, Any] = {}
    for text in evidence or ():
        name = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
        if name is None:
            ask_for("--evidence", text, f"write name=value, with a name among {', '.join(names)}")
        if names[name] in known:
            ask_for("--evidence", text, f"{name} was given a state before")
        known[names[name]] = text[len(name) + 1 :] or None
    try:
        counted = model.counted(known)
    except ValueError as error:
        ask_for("--evidence", ", ".join(evidence or ()), str(error))
    try:
        if of == Of.PAIR:
            question, found = model.about_two(asked, known, "pair"), model.query_pairs(asked, known)
        else:
            weight = None if of is None else str(of)
            question, found = model.about_one(asked, known, weight), model.query(asked, known, weight=weight)
    except ValueError as error:
        ask_for("--variables", variables, str(error))
    states = [found.state_names[name] for name in found.variables]
    cells = list(itertools.product(*states))
    told = [str(name) for name in found.variables]
    rows = [
        {**{name: encode_label(state) for name, state in zip(told, cell, strict=True)}, "probability": float(p)}
        for cell, p in zip(cells, found.values.ravel(), strict=True)
    ]
    condition = f" | {', '.join(map(shown, evidence))}" if evidence else ""
    body = [
        [*("missing" if state is None else shown(state) for state in cell), f"{p:.4f}"]
        for cell, p in zip(cells, found.values.ravel(), strict=True)
    ]
    header = [*map(shown, told), f"P({', '.join(map(shown, told))}{condition})"]
    document: dict[str, Any] = {"variables": told, "evidence": list(evidence or ())}
    document["of"] = None if of is None else str(of)
    document["counted"] = {str(name): one.pairs for name, one in counted.items()}
    notes = ""
    if (posterior := model.posterior) is not None:
        without, outside = posterior.refusal(question), posterior.outside(question)
        document |= {"level": level, "no_intervals": without, "outside": outside}
        if without is None:
            try:
                intervals = posterior.interval_of(question, level)
            except ValueError as error:
                ask_for("--level", str(level), str(error))
            header.append(f"{100 * level:g} % interval")
            for line, row, lower, upper in zip(body, rows, intervals["lower"], intervals["upper"], strict=True):
                row |= {"lower": float(lower), "upper": float(upper)}
                line.append(f"{lower:.4f} to {upper:.4f}")
        if without is not None:
            notes = f"\nThere are no intervals: {without}."
        elif outside is not None:
            notes = f"\nNothing vouches for these intervals: {outside}. They may be too narrow."
    notes = "".join(one.note(name, "lower" in rows[0]) for name, one in counted.items()) + notes
    show(document | {"table": rows}, aligned([header, *body]) + notes, as_json)


def linked_sample(
    path: Path,
    n: int,
    out_parents: Path | None,
    out_children: Path | None,
    random_state: int | None,
    labels: bool,
    style: StyleOptions,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Draw synthetic parents with their children, and write both tables."""
    if out_children is None:
        ask_for("--out-children", None, "the model is of linked tables; pass --out-parents and --out-children")
    require_writable(overwrite, (path,), out_parents=out_parents, out_children=out_children)
    model = load_linked_model(path)
    if out_parents is None and model.linked.parent is not None:
        ask_for("--out-parents", None, "the model is of linked tables; pass --out-parents and --out-children")
    outs = {"--out-parents": out_parents, "--out-children": out_children}
    written = [
        None if out is None else (out, kind_of(out, option), style.written(out, kind_of(out, option)))
        for option, out in outs.items()
    ]
    drawn = model.sampled_columns(n, random_state, labels)
    contents = []
    for columns, how in zip(drawn, written, strict=True):
        if how is None:
            continue
        out, kind, as_text = how
        content = parquet_of(columns) if kind == ".parquet" else text_of(columns, as_text, style.safe, quiet)
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


def _names(model: LinkedModel) -> dict[str, Hashable]:
    """What may be written for what can be asked about: columns, with their table too; alone where one table has it."""
    everything: list[tuple[str, Hashable]] = [
        (table, column) for table, columns in zip(model.linked.names, model.columns, strict=True) for column in columns
    ]
    alone = [str(column) for _, column in everything]
    found: dict[str, Hashable] = {str(column): column for _, column in everything if alone.count(str(column)) == 1}
    return found | {f"{table}.{column}": f"{table}.{column}" for table, column in everything}


def _named(text: str, names: dict[str, Hashable], option: str) -> Hashable:
    if text not in names:
        ask_for(option, text, f"name one of {', '.join(names)}")
    return names[text]

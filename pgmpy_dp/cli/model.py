"""``pgmpy-dp info``, ``query`` and ``sample``: what a model says. None of it costs any budget."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Hashable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, note, show
from pgmpy_dp.cli.arguments import parse_assignment, variable_named
from pgmpy_dp.cli.ask_linked import Of, linked_info, linked_names, linked_sample
from pgmpy_dp.cli.files import (
    STANDARD_OUTPUT,
    holds_linked_model,
    load_linked_model,
    load_model,
    load_model_file,
    load_saved_model,
    require_writable,
    write_output,
)
from pgmpy_dp.cli.synthetic import StyleOptions, parquet_of, suffix_of, text_of
from pgmpy_dp.shown import quantity, shown

if TYPE_CHECKING:
    from pgmpy_dp.linked import LinkedModel
    from pgmpy_dp.models.answers import Answers

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="<str>",
        help='What is known: "sex=F". Numbers and dates may be "age=37" or a range, "age=30:40"; "age=" is missing. '
        'Several, of which one holds: "job=clerk|sales". May be repeated.',
    ),
]
_IMPOSSIBLE = "the model gives it the probability 0: ask about what can be"


class Method(StrEnum):
    """The way in which synthetic records are drawn together."""

    STRATIFIED = "stratified"
    INDEPENDENT = "independent"
    AGREEING = "agreeing"


@command(app, "info", "what a model file holds", "info model.npz")
def info(model: ModelFile, as_json: option.Json = False) -> None:
    """Show what a model file holds: variables, edges, and the guarantee under which it was learned."""
    from pgmpy_dp.models.model_file import filled_words, schema_for
    from pgmpy_dp.schema import encode_label

    if holds_linked_model(model):
        linked_info(model, as_json)
        return
    saved = load_model_file(model)
    states, privacy = saved.states, saved.privacy
    schema = schema_for(saved.schema, saved.nodes, states)
    numbers, rules = ({}, ()) if schema is None else (schema.numbers, schema.impossible)
    beside: dict[Hashable, set[str]] = {name: set() for name in saved.nodes}
    for u, v in saved.edges:
        beside[u].add(shown(v))
        beside[v].add(shown(u))
    document: dict[str, Any] = {
        "model": str(model),
        "variables": {str(name): [encode_label(state) for state in states[name]] for name in saved.nodes},
        "numbers": {str(name): {"kind": number.kind, **number.to_dict()} for name, number in numbers.items()},
        "edges": [[encode_label(u), encode_label(v)] for u, v in saved.edges],
        "impossible": list(rules),
        "missing_at_random": [
            [encode_label(name), [encode_label(driver) for driver in drivers]]
            for name, drivers in saved.missing_at_random.items()
        ],
        "weighting": None if saved.weighting is None else saved.weighting.to_dict(),
        "privacy": None if privacy is None else privacy.to_dict(),
    }
    lines = [
        "No guarantee is recorded: its factors were set by hand" if privacy is None else f"Learned with {privacy}",
        f"{quantity(saved.nodes, 'variable')}, with neighbours in the graph:",
    ]
    for name in saved.nodes:
        neighbours = ", ".join(sorted(beside[name])) or "none"
        number = numbers.get(name)
        what = "" if number is None else f"{number.kind}s {number.text(number.lower)} to {number.text(number.upper)}, "
        lines.append(f"  {shown(name)} ({what}{quantity(states[name], 'state')}): {neighbours}")
    document["levels"] = {}
    for name, one in () if schema is None else schema.levels.items():
        document["levels"][str(name)] = {"variable": str(one.variable), "states": len(one.states)}
        lines.append(f"  {shown(name)}, a level of {shown(one.variable)} ({quantity(one.states, 'state')})")
    lines += ["Rules that it obeys:", *(f"  {shown(rule)}" for rule in rules)] if rules else []
    lines += filled_words(saved.missing_at_random) + ([saved.weighting.words] if saved.weighting else [])
    lines += [privacy.exchange] if privacy is not None and privacy.exchange else []
    if privacy is not None and privacy.published_if is not None:
        lines += [f"{privacy.conditional}", *(f"  {shown(one)}" for one in privacy.published_if["criteria"])]
    show(document, "\n".join(lines), as_json)


@command(
    app,
    "query",
    "ask a model for probabilities",
    "query model.npz --variables income --evidence education=Doctorate",
    'query model.npz --variables "sex,income" --evidence age=30:40 --json',
    "query linked.npz --variables person.status --evidence household.tenure=owns --evidence n=2:3",
)
def query(
    model: ModelFile,
    variables: Annotated[str, typer.Option("--variables", help="Variables to ask about, with commas between.")],
    evidence: Evidence = None,
    level: Annotated[
        float, typer.Option("--level", help="Level of intervals, for a model written with --draws.")
    ] = 0.9,
    counts: Annotated[
        bool, typer.Option("--counts", help="Show numbers of records too, if the model was written with --draws.")
    ] = False,
    of: Annotated[
        Of | None,
        typer.Option("--of", help="Linked tables: of a random child, a random family's, or a pair of one parent."),
    ] = None,
    weight: option.Weight = None,
    as_json: option.Json = False,
) -> None:
    """Give the probability of each combination of states of some variables, given others, with intervals.

    Intervals are for the population that the records were drawn from. The model has them if `fit` or `refit` wrote it
    with --draws.

    A number or a date counts as the interval that it is in. Both ends belong to a range. An interval that a range cuts
    counts by the share of its values, which is said below the table. "job=clerk|sales" is one of two states. For a
    single variable of numbers there are mean and quartiles too.

    With --weight records count as their mean weight does, and numbers of records are sums of weights.

    A model of linked tables is asked about columns of both, the number of children and counts that its schema declares.
    Its intervals are for the population of families.
    """
    from pgmpy_dp.inference.conditioning import ImpossibleEvidence

    network: Any
    how: dict[str, Any] = {"level": level}
    if holds_linked_model(model):
        if counts:
            ask_for("--counts", "yes", "of linked tables shares alone are told; leave it out")
        if weight is not None:
            ask_for("--weight", weight, "it is for models of one table; leave it out")
        network, how["of"] = load_linked_model(model), None if of is None else str(of)
        names = linked_names(network)
    else:
        network, how["counts"] = load_saved_model(model, True, weight), counts  # first: there may be no such file
        if of is not None:
            ask_for("--of", str(of), "the model is of one table; leave it out")
        names = {str(name): name for name in (*network.nodes, *network.levels)}
        if counts and network.posterior is None:
            ask_for("--counts", "yes", "the model has no posterior; write it by fit or refit with --draws 30")
    wanted = [names[variable_named(text, names, "--variables")] for text in variables.split(",")]
    known = _known(network, names, evidence)
    if any(name in known for name in wanted) or len(set(wanted)) < len(wanted):
        ask_for("--variables", variables, "name each variable once, and none that is in --evidence")
    try:
        answer = network.ask(wanted, known, **how)
    except ImpossibleEvidence:
        ask_for("--evidence", ", ".join(evidence or ()), _IMPOSSIBLE)
    except ValueError as error:
        of_level = str(error).startswith("level=")
        ask_for("--level" if of_level else "--variables", str(level) if of_level else variables, str(error))
    show(answer.to_dict(), str(answer), as_json)


def _known(
    network: Answers | LinkedModel, names: Mapping[str, Hashable], evidence: list[str] | None
) -> dict[Hashable, str | None]:
    """The evidence about each variable; None for missing. A mistake is said in the terms of the option."""
    known: dict[Hashable, str | None] = {}
    for text in evidence or []:
        # Names of counts have signs of their own, "age >= 16=1": the longest name that is one goes first.
        side = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
        side, value = (
            parse_assignment(text, "--evidence", empty=True) if side is None else (side, text[len(side) + 1 :])
        )
        name = names[variable_named(side, names, "--evidence")]
        if name in known:
            ask_for("--evidence", text, f"{name} was given a state before")
        known[name] = value or None
        try:
            network.counted({name: known[name]})
        except ValueError as error:
            ask_for("--evidence", text, str(error))
    return known


@command(
    app,
    "sample",
    "draw synthetic records",
    "sample model.npz --n 10000 --out synthetic.csv",
    "sample model.npz --n 500 --out young.csv --evidence age=18:30",
    "sample linked.npz --n 1000 --out-parents households.csv --out-children persons.csv",
)
def sample(
    *,
    model: ModelFile,
    n: Annotated[int, typer.Option("--n", help="Number of records.", min=0, max=10**12)],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write: .csv, .tsv (or either with .gz) or .parquet. To print CSV: -"),
    ] = None,
    out_parents: Annotated[
        Path | None, typer.Option("--out-parents", help="Linked tables: file of the --n parents, such as households.")
    ] = None,
    out_children: Annotated[
        Path | None, typer.Option("--out-children", help="Linked tables: file of their children, such as persons.")
    ] = None,
    random_state: Annotated[
        int | None,
        typer.Option(
            "--random-state", help="Seed, to draw the same records again. Privacy does not depend on it.", min=0
        ),
    ] = None,
    labels: Annotated[
        bool, typer.Option("--labels", help='Write numbers and dates as their states, "[18,65)", not as values.')
    ] = False,
    evidence: Evidence = None,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="Records that together are like the model, each drawn by itself, or with its public tables.",
        ),
    ] = Method.STRATIFIED,
    ids: Annotated[
        str | None,
        typer.Option("--id", help="Name of a new column of unique numbers, of linked tables among the children."),
    ] = None,
    weight: option.Weight = None,
    copies: Annotated[
        int | None,
        typer.Option(
            "--copies",
            help="Several files, name.1.csv and so on, each from a posterior draw of its own (fit --draws).",
            min=2,
            max=1000,
        ),
    ] = None,
    style: StyleOptions,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Draw synthetic records. They are as private as the model, however many there are.

    By default records are "stratified": each combination occurs as often as the model says, rounded up or down at
    random. "independent" records are a random sample, for analyses that assume one. "agreeing" ones have the public
    tables of fit --public exactly. With --evidence all records fulfil it.

    Columns come in the order of the schema, those of one state last. Numbers and dates are drawn within their
    intervals, in their resolution, or with two more digits than an interval is wide. A missing one is an empty cell.
    Dates are written as 2020-01-31, or in the first format of their variable. --delimiter, --encoding, --decimal and
    --thousands write the file as that of the records was written. States are spelled as in the schema.

    Of a model of linked tables --n parents are drawn with their children, into --out-parents and --out-children. Keys
    are fresh numbers.
    """
    import numpy as np

    from pgmpy_dp.inference.conditioning import ImpossibleEvidence
    from pgmpy_dp.models.answers import sampled_columns

    if holds_linked_model(model):
        if out is not None:
            ask_for("--out", str(out), "the model is of linked tables; pass --out-parents and --out-children")
        for name, value in {"--evidence": evidence, "--copies": copies, "--weight": weight}.items():
            if value:
                ask_for(name, str(value), "it is for models of one table; leave it out")
        if method != Method.STRATIFIED:
            ask_for("--method", str(method), "linked tables are drawn in one way; leave it out")
        linked_sample(model, n, out_parents, out_children, random_state, labels, ids, style, overwrite, quiet, as_json)
        return
    for name, path in {"--out-parents": out_parents, "--out-children": out_children}.items():
        if path is not None:
            ask_for(name, str(path), "the model is of one table; pass --out")
    if out is None:
        ask_for("--out", None, "pass the name of a file to write, or - to print")
    suffix = ".csv" if out == STANDARD_OUTPUT else suffix_of(out)
    written = style.written(out, suffix)
    if out == STANDARD_OUTPUT and copies is not None:
        ask_for("--copies", str(copies), "several files cannot go to standard output; pass --out with a name")
    outs = [out] if copies is None else [_numbered(out, k + 1) for k in range(copies)]
    for file in outs:
        require_writable(overwrite, (model,), printed=not as_json, out=file)
    saved = load_saved_model(model, weight=weight)
    names = {str(name): name for name in (*saved.nodes, *saved.levels)}
    if ids is not None and ids in names:
        ask_for("--id", ids, "it is a column of the model; pass the name of a new one")
    known = _known(saved, names, evidence)
    networks: list[Answers] = [saved]
    if copies is not None:
        networks = _draws(load_model(model) if weight is None else saved, copies)
        if method == Method.STRATIFIED:
            method = Method.INDEPENDENT  # what combining rules take them to be
    stream = np.random.default_rng(random_state)
    note(f"drawing {quantity(n * len(outs), 'record')}", quiet or n * len(outs) < 500_000)  # they take seconds
    for file, drawn in zip(outs, networks, strict=True):
        try:
            with warnings.catch_warnings(record=True, action="always") as told:
                columns = sampled_columns(drawn, n, stream, labels, evidence=known, method=method.value, ids=ids)
        except ImpossibleEvidence:
            ask_for("--evidence", ", ".join(evidence or ()), _IMPOSSIBLE)
        for one in told:
            note(str(one.message), quiet)
        content = parquet_of(columns) if suffix == ".parquet" else text_of(columns, written, style.safe, quiet)
        quiet = True  # said once
        write_output(file, gzip.compress(content, mtime=0) if file.suffix.lower() == ".gz" else content)
    if out == STANDARD_OUTPUT:
        return
    files = str(out) if copies is None else f"{outs[0]} to {outs[-1]}"
    size = f"{quantity(n, 'synthetic record')} of {quantity(columns, 'variable')}"
    text = f"Wrote {files}: {size}{' each' if copies else ''}"
    document = {"out": str(out) if copies is None else [str(file) for file in outs], "n": n}
    show(document | {"variables": list(map(str, columns))}, text, as_json)


def _draws(network: Answers, copies: int) -> list[Answers]:
    """Models of a number of posterior draws."""
    if network.posterior is None:
        ask_for("--copies", str(copies), "the model has no posterior; write it by fit or refit with --draws 30")
    try:
        return list(network.posterior.models(copies))
    except ValueError as error:
        ask_for("--copies", str(copies), str(error))


def _numbered(out: Path, number: int) -> Path:
    """``name.1.csv``, ``name.1.csv.gz``."""
    endings = "".join(out.suffixes[-2:] if out.suffix.lower() == ".gz" else out.suffixes[-1:])
    return out.with_name(f"{out.name.removesuffix(endings)}.{number}{endings}")

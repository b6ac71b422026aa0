"""``pgmpy-dp report``, ``explore`` and ``evidence``: pages about a model. None of it costs any budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, say, show
from pgmpy_dp.cli.files import (
    STANDARD_OUTPUT,
    holds_linked_model,
    load_linked_model,
    load_model,
    load_saved_model,
    require_writable,
    write_output,
)
from pgmpy_dp.cli.ledger import load_ledger
from pgmpy_dp.shown import shown

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")]
Page = Annotated[Path, typer.Option("--out", help="HTML file to write; - prints it.")]
Title = Annotated[str | None, typer.Option("--title", help="What the page is called.")]
About = Annotated[
    Path | None,
    typer.Option("--about", help="Markdown file: what the data are, and who published them."),
]
Rule = Annotated[str | None, typer.Option("--rule", help="Mark what may be printed: 0.1, or '0.01 absolute'.")]
List = Annotated[Path | None, typer.Option("--printable", help="CSV to write: which numbers --rule lets be printed.")]
Account = Annotated[Path | None, typer.Option("--ledger", help="Ledger that paid, to add up all that it paid for.")]
Level = Annotated[float, typer.Option("--level", help="Level of intervals, for a model written with --draws.")]


@command(
    app,
    "report",
    "a page about a model, or about two",
    "report model.npz --out report.html",
    'report model.npz --release release.npz --title "Hospital stays 2024" --about about.md --out report.html',
    "report model.npz --score score.npz --out report.html",
    "report model.npz --rule 0.1 --printable printable.csv --out report.html",
    "report before.npz --compare after.npz --out comparison.html",
)
def report(
    model: ModelFile,
    out: Page,
    compare: Annotated[Path | None, typer.Option("--compare", help="Another model, to show beside this one.")] = None,
    release: Annotated[
        Path | None,
        typer.Option("--release", help="Release of the model, to show what was measured."),
    ] = None,
    score: Annotated[
        Path | None,
        typer.Option("--score", help="Scores that score --release kept, to show the distance to the records."),
    ] = None,
    regression: Annotated[
        list[Path] | None,
        typer.Option("--regression", help="Result that regress --out kept, to show. May be repeated."),
    ] = None,
    level: Level = 0.9,
    rule: Rule = None,
    printable: List = None,
    weight: option.Weight = None,
    title: Title = None,
    about: About = None,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write one HTML page for people: the guarantee in words, distributions, the graph, and what is least known.

    It has intervals if `fit` or `refit` wrote the model with --draws. The page loads nothing from anywhere. Of linked
    tables it shows a random parent, a random child, and what two children of one parent have in common.

    With --rule 0.1 it marks the shares, means and quantiles half of whose interval is at most a tenth of the number;
    with --rule "0.01 absolute", at most one percentage point.

    With --weight w the page is of those whom the weights w stand for, and says how unequal these are.
    """
    from pgmpy_dp.models.printing_rule import PrintingRule, nothing_vouches
    from pgmpy_dp.private.sensitive import Release
    from pgmpy_dp.reporting import comparison_page, report_page
    from pgmpy_dp.reporting.linked_report import linked_report_page
    from pgmpy_dp.reporting.marginals import QUANTILES, printing_list, variable_rows

    inputs = (model, compare, release, score, about, *(regression or ()))
    require_writable(overwrite, inputs, printed=not as_json, out=out, printable=printable)
    fits = ", ".join(map(str, regression or ())) or None
    single = {"release": release, "score": score, "regression": fits, "weight": weight}
    for name, value in (single | {"rule": rule, "title": title, "about": about}).items():
        if compare is not None and value is not None:
            ask_for(f"--{name}", str(value), f"a comparison of two models tells nothing of a {name}; leave one out")
    if printable is not None and rule is None:
        ask_for("--printable", str(printable), "pass --rule too")
    files = [file for file in (model, release, score, *(regression or ())) if file is not None]
    if holds_linked_model(model):
        for name, value in ({"compare": compare} | single).items():
            if value is not None:
                ask_for(
                    f"--{name}", str(value), "the page of a model of linked tables tells nothing of it; leave it out"
                )
        network: Any = load_linked_model(model)
        limit = PrintingRule.read(rule, network)
        page = linked_report_page(network, title, _read(about), level, limit, files)
    else:
        # Scores know their model by what pgmpy has of it.
        pgmpys = weight is None and (score is not None or fits is not None)
        network = load_model(model) if pgmpys else load_saved_model(model, True, weight)
        limit = PrintingRule.read(rule, network)
        if compare is not None:
            names = (model.stem, compare.stem) if model.stem != compare.stem else (str(model), str(compare))
            page = comparison_page(network, load_saved_model(compare, draws=True), names, level)
        else:
            kept = [None if file is None else Release.load(file) for file in (release, score)]
            told = [Release.load(file) for file in regression or ()]
            page = report_page(network, kept[0], level, kept[1], title, _read(about), limit, files, told)
    if limit is not None and (why := nothing_vouches(network)):
        say(why)
    if printable is not None and limit is not None:
        rows = variable_rows(network.marginal_answers(level, QUANTILES), limit)
        write_output(printable, printing_list(rows).encode())
    _write(out, page, as_json)


@command(
    app,
    "explore",
    "a page that answers questions",
    "explore model.npz --out explore.html",
    "explore model.npz --draws 30 --level 0.8 --out explore.html",
)
def explore(
    model: ModelFile,
    out: Page,
    draws: Annotated[
        int | None,
        typer.Option("--draws", help="Draws that the page carries, for intervals. Default: all of the model's."),
    ] = None,
    level: Level = 0.9,
    rule: Rule = None,
    title: Title = None,
    about: About = None,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write one HTML page on which you choose what is known, and see every variable's distribution.

    The page carries the released model and computes in the browser. It needs no server and no network; whoever has the
    page has the model. Of linked tables it is about a random child, its parent, and another child.
    """
    from pgmpy_dp.models.printing_rule import PrintingRule
    from pgmpy_dp.reporting import explorer_page

    require_writable(overwrite, (model, about), printed=not as_json, out=out)
    if holds_linked_model(model):
        linked = load_linked_model(model)
        title = title or f"Explore {shown(linked.linked.names[1])}"
        network: Any = linked.explored()
    else:
        network = load_saved_model(model, draws=True)
    page = explorer_page(network, draws, level, title, _read(about), PrintingRule.read(rule, network))
    _write(out, page, as_json)


@command(
    app,
    "evidence",
    "what an office or a registry asks of a model",
    "evidence model.npz --out evidence",
    'evidence model.npz --release release.npz --title "Hospital stays 2024" --about about.md --out evidence',
    "evidence model.npz --ledger ledger.json --report report.html --out evidence",
)
def evidence(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", help="Folder to write to; made if it is not there.")],
    release: Annotated[
        Path | None, typer.Option("--release", help="Release of the model, to tell its digest and what was measured.")
    ] = None,
    ledger: Account = None,
    report: Annotated[Path | None, typer.Option("--report", help="Report on the model, to tell its digest.")] = None,
    title: Title = None,
    about: About = None,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write what is asked before a model is published, with TODO where a person has to write.

    registry.yaml is an entry for OpenDP's registry of deployments. evidence.html has the guarantee in other words (how
    often attacks and guesses can succeed, with this model and with all that its ledger paid for), what is not
    protected, the questions of NIST SP 800-226, versions and digests. evidence.json has its numbers.

    It takes every model that info takes, and reads no records.
    """
    from pgmpy_dp.private.sensitive import Release
    from pgmpy_dp.reporting.written_evidence import EVIDENCE_FILES, write_evidence

    if out.exists() and not out.is_dir():
        ask_for("--out", str(out), "that is a file; pass the name of a folder")
    if not out.exists():
        require_writable(overwrite, (), out=out)
    for name in EVIDENCE_FILES if out.exists() else ():
        require_writable(overwrite, (model, release, about, ledger, report), out=out / name)
    network = load_linked_model(model) if holds_linked_model(model) else load_saved_model(model)
    why = "its factors were set by hand" if network.privacy is None else network.privacy.unprotected
    if why is not None:
        ask_for("MODEL", str(model), f"{why}, so that there is no guarantee to show; pass a model that fit wrote")
    noisy = None if release is None else Release.load(release)
    files = [file for file in (model, release, report) if file is not None]
    account = None if ledger is None else load_ledger(ledger, "--ledger")
    write_evidence(out, network, noisy, title=title, about=_read(about), files=files, ledger=account)
    names = [str(out / name) for name in EVIDENCE_FILES]
    show({"out": names}, f"Wrote {', '.join(names)}; write what is marked TODO", as_json)


def _read(about: Path | None) -> str | None:
    if about is None:
        return None
    try:
        return about.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        ask_for("--about", str(about), "it is not UTF-8; save it so")


def _write(out: Path, page: str, as_json: bool) -> None:
    content = page.encode()
    write_output(out, content)
    if out == STANDARD_OUTPUT:
        return
    size = len(content)
    show({"out": str(out), "bytes": size}, f"Wrote {out} ({size / 1e3:,.0f} kB); open it in a browser", as_json)

"""``pgmpy-dp report`` and ``explore``: pages about a model. None of it costs any budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import app, ask_for, command, show
from pgmpy_dp.cli.files import STANDARD_OUTPUT, load_model, require_writable, write_output

__all__ = ["explore", "report"]

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that fit wrote.")]
Page = Annotated[Path, typer.Option("--out", help="HTML file to write; - prints it.")]
Level = Annotated[float, typer.Option("--level", help="Level of intervals, for a model written with --draws.")]


@command(
    app,
    "report",
    "a page about a model, or about two",
    "report model.npz --out report.html",
    "report model.npz --release release.npz --out report.html",
    "report model.npz --score score.npz --out report.html",
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
    level: Level = 0.9,
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write one HTML page for people: the guarantee in words, distributions, the graph, and what is least known.

    It has intervals if `fit` or `refit` wrote the model with --draws. The page loads nothing from anywhere.
    """
    from pgmpy_dp.private.sensitive import Release
    from pgmpy_dp.reporting import comparison_page, report_page

    require_writable(overwrite, (model, compare, release, score), printed=not as_json, out=out)
    for name, given in (("release", release), ("score", score)):
        if compare is not None and given is not None:
            ask_for(f"--{name}", str(given), f"a comparison of two models tells nothing of a {name}; leave one out")
    network = load_model(model)
    if compare is not None:
        names = (model.stem, compare.stem) if model.stem != compare.stem else (str(model), str(compare))
        page = comparison_page(network, load_model(compare), names, level)
    else:
        kept = [None if file is None else Release.load(file) for file in (release, score)]
        page = report_page(network, kept[0], level, kept[1])
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
    overwrite: option.Overwrite = False,
    as_json: option.Json = False,
) -> None:
    """Write one HTML page on which you choose what is known, and see every variable's distribution.

    The page carries the released model and computes in the browser. It needs no server and no network; whoever has the
    page has the model.
    """
    from pgmpy_dp.reporting import explorer_page

    require_writable(overwrite, (model,), printed=not as_json, out=out)
    page = explorer_page(load_model(model), draws, level)
    _write(out, page, as_json)


def _write(out: Path, page: str, as_json: bool) -> None:
    content = page.encode()
    write_output(out, content)
    if out == STANDARD_OUTPUT:
        return
    size = len(content)
    show({"out": str(out), "bytes": size}, f"Wrote {out} ({size / 1e3:,.0f} kB); open it in a browser", as_json)

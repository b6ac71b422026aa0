"""``pgmpy-dp audit``: try to break the guarantees of the estimators, as installed here."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import CHECK_FAILED, app, as_document, ask_for, command, note, progress, show
from pgmpy_dp.cli.files import require_writable, write_output
from pgmpy_dp.shown import aligned, quantity

if TYPE_CHECKING:
    from pgmpy_dp.auditing import AuditReport, OneRunReport
    from pgmpy_dp.private.budget import Budget

_CHANGES = {
    "add_remove": "a record, or a person",
    "replace_one": "its values",
    "edge": "an edge",
}
_TABLES = ("CollectiveMAP", "NaiveMLE", "CollectiveEM")


@command(
    app,
    "audit",
    "attack guarantees on made-up records",
    "audit --list",
    "audit --estimator PrivateChowLiu",
    'audit --estimator "NaiveMLE(epsilon, add_remove)" --full',
    "audit --full --out audit.md",
    "audit --estimator CollectiveMAP --rho 0.5 --adjacency replace_one --trials 5000",
    learns=True,
)
def audit(
    *,
    estimator: Annotated[
        str | None,
        typer.Option("--estimator", help="Only this estimator or mechanism, or one row by its name. Default: all."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Draw many more releases. All cases take up to an hour instead of minutes.")
    ] = False,
    list_cases: Annotated[
        bool, typer.Option("--list", help="Show the cases and their claims, and attack none.")
    ] = False,
    spent: option.BudgetOptions,
    adjacency: option.Adjacency = option.TableAdjacency.ADD_REMOVE,
    trials: Annotated[
        int,
        typer.Option("--trials", help="With a budget, the number of releases on each of two made-up tables.", min=2),
    ] = 1000,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Confidence of a refutation, over all cases together.")
    ] = 0.99,
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write the table to: Markdown (.md), or JSON (.json).")
    ] = None,
    overwrite: option.Overwrite = False,
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Attack guarantees on made-up records: a table of what is promised, and of what attacks show at least.

    Without a budget the cases of the catalogue run. They attack every estimator and mechanism, each at a claim of its
    own. With a budget, CollectiveMAP, NaiveMLE or CollectiveEM is attacked at that budget.

    An audit can refute a guarantee (exit code 1), but never prove it. It finds noise that was forgotten or halved, for
    example.
    """
    from pgmpy_dp.auditing import audit_catalogue, catalogue

    if out is not None and out.suffix not in (".md", ".json"):
        ask_for("--out", str(out), "end the name in .md or .json")
    require_writable(overwrite, out=out)
    if spent.is_passed:
        budget, estimator = spent.budget(), estimator or "CollectiveMAP"
        passed = [f"--{name} {value!r}" for name, value in vars(spent).items() if value]
        passed += [f"--adjacency {adjacency} --trials {trials}"]
        with progress(quiet):
            reports: list[AuditReport | OneRunReport] = [_at_budget(estimator, budget, adjacency, trials, confidence)]
    else:
        cases = {name: case for name, case in catalogue().items() if estimator in (None, name, case.subject)}
        if not cases:
            subjects = ", ".join(dict.fromkeys(case.subject for case in catalogue().values()))
            ask_for("--estimator", estimator, f"use one of {subjects}")
        if list_cases:
            claims = {name: str(case.claim) for name, case in cases.items()}
            show({"cases": claims}, "\n".join(f"{claim:>14}  {name}" for name, claim in claims.items()), as_json)
            return
        passed = ["--full"] if full else []
        with progress(quiet):
            reports = audit_catalogue(cases, "full" if full else "small", confidence=confidence)
    of_one = [] if estimator is None else ["--estimator", shlex.quote(estimator)]
    again = ["pgmpy-dp audit", *of_one, *passed, *([] if confidence == 0.99 else [f"--confidence {confidence!r}"])]
    document: dict[str, Any] = {
        "holds": all(report.holds for report in reports),
        "command": " ".join(again),
        "confidence": confidence,
        "reports": [_as_dict(report) for report in reports],
    }
    said = _said(document)
    if out is not None:
        text = as_document(document) if out.suffix == ".json" else _as_markdown(document, said)
        write_output(out, (text + "\n").encode())
        note(f"wrote {out}", quiet)
    show(document, f"{aligned(_rows(document))}\n\n{said}", as_json)
    if not document["holds"]:
        raise typer.Exit(CHECK_FAILED)


def _at_budget(
    estimator: str, budget: Budget, adjacency: option.TableAdjacency, trials: int, confidence: float
) -> AuditReport:
    """The attack on an estimator of a given graph at any budget."""
    from dataclasses import replace

    import networkx as nx

    from pgmpy_dp import auditing, estimators

    if estimator not in _TABLES:
        ask_for("--estimator", estimator, f"with a budget, use one of {', '.join(_TABLES)}")
    states = {name: ["no", "yes"] for name in "abc"}
    count = 5
    neighbours = auditing.table_neighbours(states, str(adjacency), n=count)
    subject = getattr(estimators, estimator)(
        budget.epsilon,
        budget.delta,
        budget.rho,
        state_names=states,
        adjacency=str(adjacency),
        n_records=count if adjacency == option.TableAdjacency.REPLACE_ONE else None,
    )
    graph = nx.path_graph(["a", "b", "c"])
    report = auditing.audit(
        lambda frame: subject.fit(graph, frame), neighbours, budget.guarantee, trials=trials, confidence=confidence
    )
    return replace(report, name=estimator)


def _rows(document: dict[str, Any]) -> list[list[str]]:
    """The table, its heading first."""
    rows = [["attacked", "protected", "promised at most", "shown at least", "of it", "verdict", "tried on"]]
    for report in document["reports"]:
        measure, shown = report["measure"], report["lower_bound"]
        promised = f"{measure} {report['limit']:g}" + (f", delta {report['delta']:g}" if report["delta"] else "")
        verdict = "holds so far" if report["holds"] else "IS BROKEN"
        share = f"{100 * shown / report['limit']:.0f} %"
        protected = _CHANGES.get(report["adjacency"], report["adjacency"])
        rows.append([report["name"], protected, promised, f"{measure} {shown:.2g}", share, verdict, report["tried"]])
    return rows


def _said(document: dict[str, Any]) -> str:
    """Sentences that explain the table to somebody who sees one for the first time."""
    count, broken = len(document["reports"]), sum(not report["holds"] for report in document["reports"])
    verdict = "none is broken" if not broken else f"{broken} {'is' if broken == 1 else 'are'} BROKEN"
    return "\n".join(
        [
            f"{count} {'claim' if count == 1 else 'claims'} attacked, {verdict}.",
            "",
            "Each attack makes up two datasets that differ in what is protected, draws releases on both, and looks for",
            "what is far more likely on one than on the other: by a factor of exp(epsilon) at most is promised, or as",
            "much in terms of rho. More would prove a promise false. Less proves nothing: it is what this attack could",
            "show with so many releases (0 is nothing); another may show more. The proofs stand with the code.",
            f"If all promises are true, every row says so in at least {100 * document['confidence']:.7g} % of runs.",
            "",
            f"Do it again: {document['command']}",
            'One row: --estimator "ITS NAME". More releases, which show more: --full. Noise is drawn anew, so numbers',
            "differ a little. What such attacks cannot see, and what was tried beside them: docs/auditing.md.",
        ]
    )


def _as_markdown(document: dict[str, Any], said: str) -> str:
    from importlib.metadata import version

    heading, *rows = _rows(document)
    table = [heading, ["---"] * len(heading), *rows]
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([f"# Audit of pgmpy-dp {version('pgmpy-dp')}", "", *lines, "", said])


def _measure(report: AuditReport | OneRunReport) -> str:
    from pgmpy_dp.private.guarantee import ZCDP

    return "rho" if isinstance(report.guarantee, ZCDP) else "epsilon"


def _as_dict(report: AuditReport | OneRunReport) -> dict[str, Any]:
    from pgmpy_dp.auditing.bounds import claimed_value
    from pgmpy_dp.auditing.one_run import OneRunReport

    assert report.guarantee is not None
    if isinstance(report, OneRunReport):
        tried = f"1 release, {quantity(report.n_canaries, 'record')} in it by coins"
    else:
        tried = f"2 x {quantity(report.event.trials, 'release')}, {report.note or 'two datasets'}"
    return {
        "name": report.name,
        "claim": report.guarantee.to_dict(),
        "limit": float(claimed_value(report.guarantee)),
        "delta": float(getattr(report.guarantee, "delta", 0.0)),
        "tried": tried,
        "adjacency": str(report.adjacency),
        "holds": report.holds,
        "measure": _measure(report),
        "lower_bound": float(report.bound),
        "confidence": float(report.confidence),
    }

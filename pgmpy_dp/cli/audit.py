"""``pgmpy-dp audit``: try to break the guarantees of the estimators, as installed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgmpy_dp.cli import option
from pgmpy_dp.cli.application import CHECK_FAILED, app, ask_for, command, progress, show

if TYPE_CHECKING:
    from pgmpy_dp.auditing import AuditReport, OneRunReport
    from pgmpy_dp.private.budget import Budget

_TABLES = ("CollectiveMAP", "NaiveMLE", "CollectiveEM")


@command(
    app,
    "audit",
    "attack guarantees on made-up records",
    "audit --list",
    "audit --estimator PrivateChowLiu",
    "audit --full --json",
    "audit --estimator CollectiveMAP --rho 0.5 --adjacency replace_one --trials 5000",
)
def audit(
    *,
    estimator: Annotated[
        str | None, typer.Option("--estimator", help="Only cases of this estimator or mechanism. Default: all.")
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
    quiet: option.Quiet = False,
    as_json: option.Json = False,
) -> None:
    """Attack guarantees on made-up records, and report lower bounds on the true epsilon or rho.

    Without a budget the cases of the catalogue run. They attack every estimator and mechanism, each at a claim of its
    own. With a budget, CollectiveMAP, NaiveMLE or CollectiveEM is attacked at that budget.

    An audit can refute a guarantee (exit code 1), but never prove it. It finds noise that was forgotten or halved, for
    example.
    """
    from pgmpy_dp.auditing import audit_catalogue, catalogue

    if spent.is_passed:
        budget = spent.budget()
        with progress(quiet):
            reports: list[AuditReport | OneRunReport] = [
                _at_budget(estimator or "CollectiveMAP", budget, adjacency, trials, confidence)
            ]
    else:
        cases = {name: case for name, case in catalogue().items() if estimator in (None, case.subject)}
        if not cases:
            subjects = ", ".join(dict.fromkeys(case.subject for case in catalogue().values()))
            ask_for("--estimator", estimator, f"use one of {subjects}")
        if list_cases:
            claims = {name: str(case.claim) for name, case in cases.items()}
            show({"cases": claims}, "\n".join(f"{claim:>14}  {name}" for name, claim in claims.items()), as_json)
            return
        with progress(quiet):
            reports = audit_catalogue(cases, "full" if full else "small", confidence=confidence)
    document: dict[str, Any] = {
        "holds": all(report.holds for report in reports),
        "reports": [_as_dict(report) for report in reports],
    }
    show(document, "\n".join(map(_as_text, reports)), as_json)
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


def _as_text(report: AuditReport | OneRunReport) -> str:
    verdict = "holds so far" if report.holds else "IS BROKEN"
    found = f"{_measure(report)} >= {report.bound:.3g} at {report.confidence:.4g} confidence"
    return f"{report.name}: {report.guarantee} under {report.adjacency} {verdict}, {found}"


def _measure(report: AuditReport | OneRunReport) -> str:
    from pgmpy_dp.private.guarantee import ZCDP

    return "rho" if isinstance(report.guarantee, ZCDP) else "epsilon"


def _as_dict(report: AuditReport | OneRunReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "claim": None if report.guarantee is None else report.guarantee.to_dict(),
        "adjacency": str(report.adjacency),
        "holds": report.holds,
        "measure": _measure(report),
        "lower_bound": float(report.bound),
        "confidence": float(report.confidence),
    }

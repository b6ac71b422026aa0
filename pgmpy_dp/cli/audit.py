"""``pgmpy-dp audit``: try to break the guarantee of an estimator, as installed here."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pgmpy_dp.cli.application import CHECK_FAILED, app, command, progress, show
from pgmpy_dp.cli.arguments import AdjacencyOption, Delta, Epsilon, Json, Quiet, Rho, TableAdjacency

__all__ = ["audit"]


class Audited(StrEnum):
    """Estimators whose release has one shape."""

    COLLECTIVE_MAP = "CollectiveMAP"
    NAIVE_MLE = "NaiveMLE"
    COLLECTIVE_EM = "CollectiveEM"


@command(
    app,
    "audit",
    "attack a guarantee on made-up records",
    "audit --epsilon 1",
    "audit --estimator CollectiveMAP --rho 0.5 --adjacency replace_one --trials 5000",
)
def audit(
    estimator: Annotated[Audited, typer.Option("--estimator", help="What to attack.")] = Audited.NAIVE_MLE,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    adjacency: AdjacencyOption = TableAdjacency.ADD_REMOVE,
    trials: Annotated[
        int, typer.Option("--trials", help="Fits on each of two made-up tables that differ in one record.", min=2)
    ] = 1000,
    confidence: Annotated[float, typer.Option("--confidence", help="Of a refutation.")] = 0.99,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Attack an estimator's guarantee on made-up records, and report a lower bound on what it really is.

    An audit can refute a guarantee (exit code 1), never prove it: it finds noise that was forgotten or halved.
    """
    import networkx as nx

    from pgmpy_dp import auditing, estimators
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.guarantee import ZCDP

    budget = Budget(epsilon=epsilon, delta=delta, rho=rho)
    states = {name: ["no", "yes"] for name in "abc"}
    count = 5
    neighbours = auditing.table_neighbours(states, str(adjacency), n=count)
    subject = getattr(estimators, str(estimator))(
        budget.epsilon,
        budget.delta,
        budget.rho,
        state_names=states,
        adjacency=str(adjacency),
        n_records=count if adjacency == TableAdjacency.REPLACE_ONE else None,
    )
    graph = nx.path_graph(["a", "b", "c"])
    with progress(quiet):
        report = auditing.audit(
            lambda frame: subject.fit(graph, frame), neighbours, budget.guarantee, trials=trials, confidence=confidence
        )
    document = {
        "estimator": str(estimator),
        "claim": budget.guarantee.to_dict(),
        "adjacency": str(adjacency),
        "holds": report.holds,
        "lower_bound": report.bound,
        "measure": "rho" if isinstance(budget.guarantee, ZCDP) else "epsilon",
        "confidence": report.confidence,
        "trials": trials,
    }
    show(document, f"{estimator}: {report}", as_json)
    if not report.holds:
        raise typer.Exit(CHECK_FAILED)

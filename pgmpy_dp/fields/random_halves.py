"""Regressions from one random half of the records, parities from the other: Algorithm 5 of Zhang et al. (2020).

Each record goes to one half by a coin of its own, so the two releases compose in parallel: together they cost what each
of them costs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from pgmpy_dp.fields.frank_wolfe_plan import FrankWolfePlan, completed, frank_wolfe_plan
from pgmpy_dp.fields.frank_wolfe_steps import Descent, descend
from pgmpy_dp.fields.noisy_parities import Found, ParityPlan, ask_parities, plan_parities
from pgmpy_dp.fields.operators.field_gradients import RESIDUAL_UNIT
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.learning.public_graph import encoded_graph
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Release


def run(
    table: PrivateTable,
    settings: Settings,
    budget: Budget,
    progress: Callable[[], None] | None = None,
) -> Release:
    """Release a Frank-Wolfe path from one half of the records and noisy parities from the other.

    Refuses what either learner refuses.

    Parameters
    ----------
    table : PrivateTable
        All variables binary.
    settings : Settings
        As of :func:`~pgmpy_dp.fields.frank_wolfe_steps.run`, of family "binary"; with `queries`, the method of
        :func:`~pgmpy_dp.fields.noisy_parities.run`. "gaussian" and "laplace" must suit the budget.
    budget : Budget
        Of each half, and of both together.
    progress : callable, optional
        Called without arguments after each step.

    Returns
    -------
    Release
        ``kind="halves"``: the values of both, see :func:`regressions_part` and :func:`parities_part`.

    Notes
    -----
    Privacy
        *Sensitivity.* As in the two learners, for a table of unknown size: sizes of halves are private under both
        adjacencies. A public number of records serves to choose the number of iterations, by half of it.

        *Guarantee.* Both releases are calibrated to one and the same cost, rho-zCDP or epsilon-DP, and act on disjoint
        parts of the records that coins independent of the records decide; so together they satisfy that cost, under
        add_remove and under replace_one (:meth:`~pgmpy_dp.private.curator.curator_base.Curator.split` has the
        proof). For an
        (epsilon, delta) budget both halves use the largest rho that dp-accounting converts to it.

        *Source.* Zhang, Kamath, Kulkarni and Wu 2020, Algorithm 5, which spends rho/2 on each half.

        *Side channels.* Those of the two learners.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 450 + [1, 0] * 50})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=10.0))
    >>> from pgmpy_dp.estimators import PrivateBinaryMRF
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateBinaryMRF(width=1.5, order=2)).but(family="binary", queries="noise")
    >>> release = run(table, settings, Budget(rho=10.0))
    >>> str(table.ledger.left), parities_part(release)["sums"].array.shape
    ('0-zCDP', (3,))
    """
    budget = require_table_and_budget(table, budget, "a Budget, e.g. Budget(rho=0.1)")
    descent_plan, parity_plan = _plans(table, settings, budget)
    curator = TableCurator(
        table,
        budget,
        what=f"Frank-Wolfe steps and parities of up to {parity_plan.order} variables, on disjoint halves",
        mechanism=f"frank_wolfe_and_{parity_plan.mechanism}",
        pure=isinstance(descent_plan.cost, PureDP),
        random_state=settings.random_state,
    )
    shared = {
        "schema": table.schema.to_dict(),
        "order": parity_plan.order,
        "graph": encoded_graph(settings.graph),
        "n_records": None,
    }
    asked = {"settings": settings.public(budget, "width")}
    nodes = {
        **shared,
        "family": "binary",
        "radius": descent_plan.radius,
        "step": completed(settings).step,
        "grid": RESIDUAL_UNIT,
    }

    def release(step: tuple[Descent, tuple[np.ndarray, ...], Found | None]) -> Release:
        found, count, parities = step
        descent = {"vertices": found.vertices, **dict(zip(("n_records",), count, strict=False))}
        regressions = {**nodes, "n_iter": found.n_iter, "scale": found.scale / RESIDUAL_UNIT}
        if parities is None:  # interrupted: the regressions alone
            return curator.release("regressions", {**asked, **regressions}, descent)
        sums, method = parities
        matrix = parity_plan.features if method == "noise" else None
        weights = None if matrix is None else list(matrix.by_size)
        moments = {**shared, "weights": weights, "method": method}
        public = {**asked, "regressions": regressions, "parities": moments}
        of_parities = dict(zip(("sums", "half_n_records"), sums, strict=True))
        return curator.release("halves", public, descent | of_parities)

    return curator.following(_steps(curator, descent_plan, parity_plan, progress), release)


def _steps(
    curator: TableCurator, descent: FrankWolfePlan, parity: ParityPlan, progress: Callable[[], None] | None
) -> Generator[tuple[Descent, tuple[np.ndarray, ...], Found | None], None, None]:
    """What was found before the first and after each step of the regressions, at the end with the parities."""
    with curator.split(2) as (first, second):
        for found in descend(first, descent, progress):
            yield found, first.arrays, None
        parities = ask_parities(second, parity)
    yield found, first.arrays, parities


def regressions_part(release: Release) -> Release:
    """The path of one half, of kind "regressions", which :mod:`~pgmpy_dp.fields.frank_wolfe_steps` reads."""
    return _part(release, "regressions", {"vertices": "vertices", "n_records": "n_records"})


def parities_part(release: Release) -> Release:
    """The noisy sums and count of the other half, of kind "parities"."""
    return _part(release, "parities", {"sums": "sums", "half_n_records": "n_records"})


def _plans(table: PrivateTable, settings: Settings, budget: Budget) -> tuple[FrankWolfePlan, ParityPlan]:
    half = None if table.n_records is None else table.n_records // 2
    descent = frank_wolfe_plan(table.schema, table.adjacency, half, settings, budget)
    # One measure for both halves: where a delta allows both, that of the regressions.
    measure = Budget(rho=descent.cost.rho) if isinstance(descent.cost, ZCDP) else budget
    parity = plan_parities(table.schema, table.adjacency, None, settings.but(method=settings.queries), measure)
    if parity.cost != descent.cost:  # one charge stands for both
        raise RuntimeError(f"the two halves cost {descent.cost} and {parity.cost}; they must cost the same")
    return descent, parity


def _part(release: Release, kind: str, names: dict[str, str]) -> Release:
    require_kind(release, "halves")
    return release.part(kind, {name: to for name, to in names.items() if name in release}, release.facts[kind])

"""Private Frank-Wolfe on all logistic regressions of a Markov random field (Zhang, Kamath, Kulkarni and Wu 2020).

Algorithm 1 with the regressions of Algorithms 2 (Ising), 3 (pairwise) and 4 (binary of any order), as many steps at
once as there are regressions. What differs from the paper, and why: ``private/operators/frank_wolfe.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.fields.published.frank_wolfe_plan import (
    FrankWolfePlan,
    completed,
    denominator,
    frank_wolfe_plan,
    step_units,
    weights_of,
)
from pgmpy_dp.fields.published.nodewise_regressions import field_from_regressions
from pgmpy_dp.fields.published.regression_layout import RegressionLayout, regression_layout
from pgmpy_dp.fields.random_fields import RandomField
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.learning.public_graph import encoded_graph, released_edges
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.regression_path import RESIDUAL_UNIT, RegressionPath
from pgmpy_dp.private.sensitive import Release


@dataclass(frozen=True, eq=False)
class Descent:
    """What a descent let out: all of it is noisy.

    `vertices` has shape (n_iter - 1, n_regressions), see `run`; `scale` is in units of the gradient sums.
    """

    vertices: np.ndarray
    scale: float

    @property
    def n_iter(self) -> int:
        """T."""
        return len(self.vertices) + 1


def run(
    table: PrivateTable,
    settings: Settings,
    budget: Budget,
    progress: Callable[[], None] | None = None,
) -> Release:
    """Release the vertices that a noisy Frank-Wolfe method selects for every regression of the model.

    Refuses what :func:`~pgmpy_dp.fields.published.frank_wolfe_plan.frank_wolfe_plan` refuses.

    Parameters
    ----------
    settings : Settings
        `family` ("ising", "pairwise" or "binary"), `order`, `width`, `graph`, `n_iter` and `random_state`. Regressions
        are constrained to an l1 norm of 2 width, for "pairwise" 2 width k, with k the largest number of states. With a
        public graph they have the features of neighbours only, and variables without neighbours a regression with the
        constant alone (:mod:`pgmpy_dp.fields.published.regression_layout`). There are n_iter - 1 steps, and every
        regression selects a vertex in each; default: from the budget and a public or noisy number of records.

        And what no estimator asks: `step`, "1/(t+1)" or "2/(t+2)" (default: the first, which makes the result the mean
        of the vertices and of the start at 0); `count_share`, the part of the budget for a noisy number of records,
        where none is public and `n_iter` is not given (default: 0.01).
    progress : callable, optional
        Called without arguments after each step.

    Returns
    -------
    Release
        ``kind="regressions"``; ``values[0]``, shape (n_iter - 1, n_regressions), has the vertex of the l1 ball that
        each regression moved towards in each step: v < q is +radius in column v of its weights, v >= q is -radius in
        column v - q (:func:`regressions_of` has the columns, :func:`regression_weights` the weights). ``values[1]``, if
        one was needed, is a noisy number of records.

    Notes
    -----
    Privacy
        *Sensitivity.* A record's gradient has coordinates of at most 1 in absolute value, exactly, and depends on the
        record and on the current weights, which are public, alone. Scores are sums of gradients, never means: the
        number of records is nowhere in them (:mod:`pgmpy_dp.private.operators.regressions`).

        *Guarantee.* Under the table's adjacency: rho-zCDP with Gumbel noise of scale ``sqrt(W (T - 1)/(2 rho))`` in
        each selection, epsilon-DP with exponential noise of scale ``2 W (T - 1)/epsilon``, W being
        :func:`~pgmpy_dp.private.operators.regressions.selection_weight`: for binary variables p under ``add_remove``, 4
        p (rho) or 2 p (epsilon) under ``replace_one``. An (epsilon, delta) budget takes the largest rho that
        dp-accounting converts to it. A noisy count takes ``count_share`` of the budget. Proof:
        ``private/operators/frank_wolfe.md``.

        *Source.* Zhang, Kamath, Kulkarni and Wu 2020, Algorithms 1 to 4, after Talwar, Thakurta and Zhang 2015; Cesar
        and Rogers 2021 for the cost of a selection.

        *Side channels.* Which arguments are refused, shapes and the calls of `progress` depend on public and noisy
        numbers only. Running time and memory depend on the number of records and of distinct ones.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 450 + [1, 0] * 50})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=10.0))
    >>> from pgmpy_dp.estimators import PrivateIsing
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateIsing(width=1.5)).but(family="ising", order=2)
    >>> release = run(table, settings, Budget(rho=10.0))
    >>> regressions_of(release).features, bool((regression_weights(release)[[0, 1], [1, 0]] > 1.0).all())
    (((0,), (1,), ()), True)
    """
    budget = require_table_and_budget(table, budget, "a Budget, e.g. Budget(rho=0.1)")
    settings = completed(settings)
    made = frank_wolfe_plan(table.schema, table.adjacency, table.n_records, settings, budget)
    names = table.schema.variables
    curator = TableCurator(
        table,
        budget,
        what=f"Frank-Wolfe steps of {made.layout.n_regressions} logistic regressions",
        columns=[names[j] for j in _used_positions(made.layout)],
        mechanism="gumbel_noisy_max" if isinstance(made.cost, ZCDP) else "exponential_noisy_max",
        random_state=settings.random_state,
    )
    public = {
        "family": settings.family,
        "order": settings.order,
        "graph": encoded_graph(settings.graph),
        "radius": made.radius,
        "step": settings.step,
        "grid": RESIDUAL_UNIT,
        "settings": settings.public(budget, "width", "n_iter", "count_share"),
    }

    def release(found: Descent) -> Release:
        steps = {"n_iter": found.n_iter, "scale": found.scale / RESIDUAL_UNIT}
        return curator.release(
            "regressions", {**public, **steps}, {"vertices": found.vertices, **curator.called("n_records")}
        )

    return curator.following(descend(curator, made, progress), release)


def descend(
    curator: TableCurator, plan: FrankWolfePlan, progress: Callable[[], None] | None = None
) -> Generator[Descent, None, None]:
    """The descent itself, for the whole cost of a curator that has answered nothing yet: of a table, or of a part.

    Parameters
    ----------
    curator : TableCurator
        Its schema, adjacency and cost are those of the plan.
    progress : callable, optional
    """
    records = float(plan.n_records or 0)
    if plan.count_budget:
        records = float(curator.ask(RecordCount(), plan.count_part))
    n_iter = plan.iterations(records)
    share = plan.selection_part(n_iter)
    vertices = np.zeros((n_iter - 1, plan.layout.n_regressions), dtype=np.int64)
    columns, q = plan.layout.columns, plan.layout.n_columns
    every = np.arange(len(columns))
    path = RegressionPath(curator, plan.layout, denominator(plan.step, n_iter) - 1)
    rows, moves = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=np.int64)
    for t in range(1, n_iter):
        yield Descent(vertices[: t - 1], plan.scale(n_iter))
        chosen = path.vertices(rows, moves, plan.radius / denominator(plan.step, t), share)
        vertices[t - 1] = chosen
        rows, moves = columns[every, chosen % q], np.where(chosen >= q, -1, 1) * step_units(plan.step, t)
        if progress is not None:
            progress()
    yield Descent(vertices, plan.scale(n_iter))


def regressions_of(release: Release) -> RegressionLayout:
    """Which regression is which row of the weights, and which feature which column."""
    require_kind(release, "regressions")
    sizes = [release.schema.cardinality(name) for name in release.schema.variables]
    return regression_layout(release.public["family"], sizes, release.public["order"], released_edges(release))


def regression_weights(release: Release) -> np.ndarray:
    """Weights of all regressions, shape (n_regressions, q), from a release of this learner.

    The sum over steps of each step's share times its vertex: after T - 1 steps of ``1/(t+1)`` each vertex counts 1/T.
    """
    q, public = regressions_of(release).n_columns, release.public
    return weights_of(release["vertices"].array, q, public["radius"], public["step"])


def released_field(
    release: Release, parity_means: Mapping[tuple[int, ...], float] | None = None
) -> tuple[RandomField, np.ndarray]:
    """The field of a release, and how far the estimates of an interaction lie apart.

    Zhang et al. (2020), Algorithms 2 to 4, or 5 with means of parities; features that a graph leaves out count as
    zeros.
    """
    layout = regressions_of(release)
    return field_from_regressions(layout, regression_weights(release), release.public["order"], parity_means)


def _used_positions(layout: RegressionLayout) -> list[int]:
    """Positions of the variables that are predicted or predict."""
    used = set(layout.active_nodes)
    for feature in {layout.features[f] for f in np.unique(layout.columns[layout.columns >= 0])}:
        used.update(feature[:1] if layout.family == "pairwise" else feature)
    return sorted(used)

"""Private Frank-Wolfe on all logistic regressions of a Markov random field (Zhang, Kamath, Kulkarni and Wu 2020).

Algorithm 1 with the regressions of Algorithms 2 (Ising), 3 (pairwise) and 4 (binary of any order), as many steps at
once as there are regressions (:mod:`pgmpy_dp.fields.frank_wolfe`). What differs from the paper, and why:
``private/operators/frank_wolfe.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pgmpy_dp.fields.frank_wolfe import FrankWolfePlan, RegressionLayout, completed, released_descent, weights_in
from pgmpy_dp.fields.published.nodewise_regressions import field_from_regressions
from pgmpy_dp.fields.published.regression_layout import regression_layout, weight_count
from pgmpy_dp.fields.random_fields import RandomField
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.learning.public_graph import edge_positions, encoded_graph, released_edges
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

_MOST_WEIGHTS = 20_000_000  # 32 bytes each during a pass


def frank_wolfe_plan(
    schema: Schema, adjacency: Adjacency, n_records: int | None, settings: Settings, budget: Budget
) -> FrankWolfePlan:
    """Check public arguments, and compute the regressions, the cost and the shares of the budget.

    Parameters
    ----------
    settings : Settings
        As of :func:`~pgmpy_dp.fields.published.frank_wolfe_steps.run`.

    Raises
    ------
    ValueError
        For variables that do not fit the family or the graph, too many regressions, or a budget too small for any
        selection.
    """
    layout = _layout(schema, settings)
    radius = 2.0 * settings.width * (max(layout.cardinalities) if settings.family == "pairwise" else 1)
    return FrankWolfePlan.of(layout, radius, (adjacency, n_records), completed(settings), budget)


def _layout(schema: Schema, settings: Settings) -> RegressionLayout:
    sizes = [schema.cardinality(name) for name in schema.variables]
    if settings.family != "pairwise":
        other = [name for name, k in zip(schema.variables, sizes, strict=True) if k != 2]
        if other:
            raise ValueError(
                f"family={settings.family!r} is for variables of two states, but {other[:5]} have "
                f"{[schema.cardinality(name) for name in other[:5]]}; use family='pairwise', or declare two states"
            )
        if settings.order > max(len(sizes), 2):
            raise ValueError(
                f"order={settings.order!r} is more than the {len(sizes)} variables of the schema; pass at most as many"
            )
    if (weights := weight_count(settings.family, sizes, settings.order)) > _MOST_WEIGHTS:
        raise ValueError(
            f"the regressions of family={settings.family!r}, order={settings.order!r} have {weights} weights, more "
            f"than {_MOST_WEIGHTS}; use a smaller order, fewer variables or fewer states"
        )
    edges = None if settings.graph is None else edge_positions(schema, settings.graph)
    return regression_layout(settings.family, sizes, settings.order, edges)


def run(
    table: PrivateTable,
    settings: Settings,
    budget: Budget,
    progress: Callable[[], None] | None = None,
) -> Release:
    """Release the vertices that a noisy Frank-Wolfe method selects for every regression of the model.

    Refuses what :func:`~pgmpy_dp.fields.published.frank_wolfe_steps.frank_wolfe_plan` refuses.

    Parameters
    ----------
    settings : Settings
        `family` ("ising", "pairwise" or "binary"), `order`, `width`, `graph`, `n_iter`, `published` (steps and their
        default number are the paper's: (R n sqrt(rho/m))^(2/3) for m regressions) and `random_state`. Regressions
        are constrained to an l1 norm of 2 width, for "pairwise" 2 width k, with k the largest number of states. With a
        public graph they have the features of neighbours only, and variables without neighbours a regression with the
        constant alone (:mod:`pgmpy_dp.fields.published.regression_layout`). There are n_iter - 1 steps, and every
        regression selects a vertex in each; default: from the budget and a public or noisy number of records.

        And what no estimator asks: `count_share`, the part of the budget for a noisy number of records,
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
    public = {"family": settings.family, "order": settings.order, "graph": encoded_graph(settings.graph)}
    said = {
        "kind": "regressions",
        "what": f"Frank-Wolfe steps of {made.layout.n_regressions} logistic regressions",
        "columns": [names[j] for j in _used_positions(made.layout)],
        "public": {**public, "settings": settings.public(budget, "width", "n_iter", "count_share")},
    }
    return released_descent(table, made, settings, budget, progress, **said)


def regressions_of(release: Release) -> RegressionLayout:
    """Which regression is which row of the weights, and which feature which column."""
    require_kind(release, "regressions")
    sizes = [release.schema.cardinality(name) for name in release.schema.variables]
    return regression_layout(release.public["family"], sizes, release.public["order"], released_edges(release))


def regression_weights(release: Release) -> np.ndarray:
    """Weights of all regressions, shape (n_regressions, q), from a release of this learner.

    The sum over steps of each step's share times its vertex: after T - 1 steps of ``1/(t+1)`` each vertex counts 1/T.
    """
    return weights_in(release, regressions_of(release).n_columns)


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

"""Private Frank-Wolfe on all logistic regressions of a Markov random field (Zhang, Kamath, Kulkarni and Wu 2020).

Algorithm 1 with the regressions of Algorithms 2 (Ising), 3 (pairwise) and 4 (binary of any order), as many steps at
once as there are regressions. ``private/operators/frank_wolfe.md`` has the differences from the paper, and the reasons.

The plan of checks, shares of the budget and defaults is made from public numbers before anything is spent, but for the
number of iterations where that follows from a noisy number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.published.nodewise_regressions import field_from_regressions
from pgmpy_dp.fields.published.regression_layout import RegressionLayout, regression_layout, weight_count
from pgmpy_dp.fields.random_fields import RandomField
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.learning.public_graph import edge_positions, encoded_graph, released_edges
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.regression_path import (
    LARGEST_REACH,
    RESIDUAL_UNIT,
    RegressionPath,
    selection_weight,
    vertex_scale,
)
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

STEP = "1/(t+1)"
"""With ``w_1 = 0`` and ``w_{t+1} = (1 - mu_t) w_t + mu_t s_t``, mu_t = 1/(t+1), the weights before step t are integers
times ``radius/t``: the mean of t points, the start and t - 1 vertices of the l1 ball."""

_FEWEST = 10
_MOST_AUTOMATIC = 10_000
_MOST_WEIGHTS = 20_000_000  # 32 bytes each during a pass
# The share of the bound's number of steps that is best on made-up Ising models (p 10 to 100, n 1e4 to 1e6).
_BOUND_SHARE = {ZCDP: 1 / 8, PureDP: 1 / 4}


@dataclass(frozen=True)
class FrankWolfePlan:
    """The plan that follows from public numbers; made by :func:`frank_wolfe_plan`, before anything is spent.

    `n_records` and `n_iter` may be None: then `descend` takes a noisy count under `count_budget` (part of `cost`, in
    its measure), and the number of iterations from that.
    """

    layout: RegressionLayout
    adjacency: Adjacency
    cost: PureDP | ZCDP
    radius: float
    n_records: int | None
    n_iter: int | None
    count_budget: float

    def iterations(self, records: float) -> int:
        """T for a public or noisy number of records."""
        # The excess risk of each regression is bounded by about `R**2/T + R log(2 q) s/m`, s being the scale of the
        # noise and m the number of records that take part in it (n, or 2 n/k for k states). Its minimiser over T is
        # `(2 R m sqrt(2 rho/W)/log(2 q))**(2/3)` for rho and `sqrt(R m epsilon/(2 W log(2 q)))` for epsilon; the
        # constants in the bound are loose, and a share of it from 1/8 to 1/3 (but at least 10 iterations) is best on
        # made-up models. T is at most 10,000 unless asked for. R is the radius of the l1 ball, q the number of columns
        # of a regression, W the selection weight.
        if self.n_iter is not None:
            return self.n_iter
        layout, weight = self.layout, selection_weight(self.layout, self.adjacency, self.cost)
        if layout.family == "pairwise":  # only records in one of its two states take part in a regression
            records *= sum(layout.cardinalities[i] - 1 for i in layout.active_nodes) / layout.n_regressions
        log = math.log(2.0 * (layout.columns >= 0).sum(axis=1).max())
        signal = self.radius * max(records, 1.0)
        if isinstance(self.cost, ZCDP):
            bound = (2.0 * signal * math.sqrt(2.0 * self.cost.rho / weight) / log) ** (2 / 3)
        else:
            bound = math.sqrt(signal * self.cost.epsilon / (2.0 * weight * log))
        return round(min(max(_FEWEST, bound * _BOUND_SHARE[type(self.cost)]), _MOST_AUTOMATIC))

    @property
    def counting_share(self) -> Fraction:
        """Share of the cost for a noisy number of records."""
        total = self.cost.rho if isinstance(self.cost, ZCDP) else self.cost.epsilon
        return Fraction(self.count_budget) / Fraction(total)

    def selection_share(self, n_iter: int) -> Fraction:
        """Share of the cost for one step of T = n_iter."""
        return (1 - self.counting_share) / (n_iter - 1)

    def scale(self, n_iter: int) -> float:
        """The scale of the noise of each selection, in units of the gradient sums."""
        return vertex_scale(self.layout, self.adjacency, self.cost, self.selection_share(n_iter))


def completed(settings: Settings) -> Settings:
    """The settings, with those that no estimator has as options."""
    return settings.filled(count_share=0.01)


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
    settings = completed(settings)
    if settings.n_iter is not None and settings.n_iter > LARGEST_REACH:
        raise ValueError(f"n_iter={settings.n_iter!r} is more than {LARGEST_REACH}; take fewer: noise grows with them")
    layout = _layout(schema, settings)
    radius = 2.0 * settings.width * (max(layout.cardinalities) if settings.family == "pairwise" else 1)
    cost = cost_of(budget)
    total = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
    counted = settings.n_iter is None and n_records is None
    if counted and adjacency == Adjacency.REPLACE_ONE:
        raise ValueError(
            "n_records=None with adjacency='replace_one', under which this number is public; pass it, or n_iter"
        )
    # Rounded down: the selections get the exact rest.
    count_budget = math.nextafter(settings.count_share * total, 0.0) if counted else 0.0
    made = FrankWolfePlan(layout, adjacency, cost, radius, n_records, settings.n_iter, count_budget)
    made.scale(_MOST_AUTOMATIC if counted else made.iterations(float(n_records or 0)))  # refuses impossible scales
    return made


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


def weights_of(vertices: np.ndarray, n_columns: int, radius: float) -> np.ndarray:
    """Weights after all steps.

    Parameters
    ----------
    vertices : ndarray of int, shape (n_steps, n_regressions)
        v < q stands for +radius in column v, v >= q for -radius in column v - q, with q = n_columns.

    Returns
    -------
    ndarray, shape (n_regressions, n_columns)

    Examples
    --------
    Three steps: towards +6 in column 0, again, and towards -6 in column 1.

    >>> weights_of(np.array([[0], [0], [3]]), 2, 6.0)
    array([[ 3. , -1.5]])
    """
    units = np.zeros((vertices.shape[1], n_columns), dtype=np.int64)
    every = np.arange(vertices.shape[1])
    for chosen in vertices:
        units[every, chosen % n_columns] += np.where(chosen < n_columns, 1, -1)
    return units * (radius / (len(vertices) + 1))


@dataclass(frozen=True, eq=False)
class Descent:
    """The release of a descent: all of it is noisy.

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

    Refuses what :func:`~pgmpy_dp.fields.published.frank_wolfe_steps.frank_wolfe_plan` refuses.

    Parameters
    ----------
    settings : Settings
        `family` ("ising", "pairwise" or "binary"), `order`, `width`, `graph`, `n_iter` and `random_state`. Regressions
        are constrained to an l1 norm of 2 width, for "pairwise" 2 width k, with k the largest number of states. With a
        public graph they have the features of neighbours only, and variables without neighbours a regression with the
        constant alone (:mod:`pgmpy_dp.fields.published.regression_layout`). There are n_iter - 1 steps, and every
        regression selects a vertex in each; default: from the budget and a public or noisy number of records.

        And one that no estimator has as an option: `count_share`, the part of the budget for a noisy number of records,
        where none is public and `n_iter` is None (default: 0.01).
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
        "step": STEP,
        "grid": RESIDUAL_UNIT,
        "settings": settings.public(budget, "width", "n_iter", "count_share"),
    }

    def release(descent: Descent) -> Release:
        steps = {"n_iter": descent.n_iter, "scale": descent.scale / RESIDUAL_UNIT}
        return curator.release(
            "regressions", {**public, **steps}, {"vertices": descent.vertices, **curator.called("n_records")}
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
        records = float(curator.ask(RecordCount(), plan.counting_share))
    n_iter = plan.iterations(records)
    share = plan.selection_share(n_iter)
    vertices = np.zeros((n_iter - 1, plan.layout.n_regressions), dtype=np.int64)
    columns, q = plan.layout.columns, plan.layout.n_columns
    every = np.arange(len(columns))
    path = RegressionPath(curator, plan.layout, n_iter - 1)
    rows, moves = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=np.int64)
    for t in range(1, n_iter):
        yield Descent(vertices[: t - 1], plan.scale(n_iter))
        chosen = path.vertices(rows, moves, plan.radius / t, share)
        vertices[t - 1] = chosen
        rows, moves = columns[every, chosen % q], np.where(chosen >= q, -1, 1)
        if progress is not None:
            progress()
    yield Descent(vertices, plan.scale(n_iter))


def regressions_of(release: Release) -> RegressionLayout:
    """The regression of each row of the weights, and the feature of each column."""
    require_kind(release, "regressions")
    sizes = [release.schema.cardinality(name) for name in release.schema.variables]
    return regression_layout(release.public["family"], sizes, release.public["order"], released_edges(release))


def regression_weights(release: Release) -> np.ndarray:
    """Weights of all regressions, shape (n_regressions, q), from a release of this learner.

    The sum over steps of each step's share times its vertex: after T - 1 steps of ``1/(t+1)`` each vertex counts 1/T.
    """
    q, public = regressions_of(release).n_columns, release.public
    return weights_of(release["vertices"].array, q, public["radius"])


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

"""What the Frank-Wolfe learner will do, from public numbers alone: checks, shares of the budget, defaults.

Everything here is decided before anything is spent, but for the number of iterations where that follows from a noisy
number of records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.published.regression_layout import RegressionLayout, regression_layout, weight_count
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.public_graph import edge_positions
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.regression_path import LARGEST_REACH, selection_weight, vertex_scale
from pgmpy_dp.schema import Schema

STEPS = ("1/(t+1)", "2/(t+2)")
"""With ``w_1 = 0`` and ``w_{t+1} = (1 - mu_t) w_t + mu_t s_t``, the weights before step t are integers times
``radius/denominator(t)``: for ``mu_t = 1/(t+1)`` they are the mean of t points, the start and t - 1 vertices of the l1
ball; for ``mu_t = 2/(t+2)`` the mean of points of weights 1 (the start), 2, ..., t."""


_FEWEST = 10
_MOST_AUTOMATIC = 10_000
_MOST_WEIGHTS = 20_000_000  # 32 bytes each during a pass
# The share of the bound's number of steps that is best on made-up Ising models (p 10 to 100, n 1e4 to 1e6).
_BOUND_SHARE = {
    ("1/(t+1)", ZCDP): 1 / 8,
    ("2/(t+2)", ZCDP): 1 / 6,
    ("1/(t+1)", PureDP): 1 / 4,
    ("2/(t+2)", PureDP): 1 / 3,
}


@dataclass(frozen=True)
class FrankWolfePlan:
    """Everything that follows from public numbers; made by :func:`frank_wolfe_plan`, before anything is spent.

    `n_records` and `n_iter` may be None: then `descend` takes a noisy count under `count_budget` (part of `cost`, in
    its measure), and the number of iterations from that.
    """

    layout: RegressionLayout
    adjacency: Adjacency
    cost: PureDP | ZCDP
    radius: float
    step: str
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
        most = min(_MOST_AUTOMATIC, _most_iterations(self.step))
        return round(min(max(_FEWEST, bound * _BOUND_SHARE[self.step, type(self.cost)]), most))

    @property
    def count_part(self) -> Fraction:
        """Share of the cost for a noisy number of records."""
        total = self.cost.rho if isinstance(self.cost, ZCDP) else self.cost.epsilon
        return Fraction(self.count_budget) / Fraction(total)

    def selection_part(self, n_iter: int) -> Fraction:
        """Share of the cost for one step of T = n_iter."""
        return (1 - self.count_part) / (n_iter - 1)

    def scale(self, n_iter: int) -> float:
        """The scale of the noise of each selection, in units of the gradient sums."""
        return vertex_scale(self.layout, self.adjacency, self.cost, self.selection_part(n_iter))


def completed(settings: Settings) -> Settings:
    """With what no estimator asks."""
    return settings.filled(step=STEPS[0], count_share=0.01)


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
    if settings.n_iter is not None and settings.n_iter > _most_iterations(settings.step):
        raise ValueError(
            f"n_iter={settings.n_iter!r} is more than {_most_iterations(settings.step)}, the most with step="
            f"{settings.step!r}; take fewer: noise grows with their number"
        )
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
    made = FrankWolfePlan(layout, adjacency, cost, radius, settings.step, n_records, settings.n_iter, count_budget)
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


def _most_iterations(step: str) -> int:
    return LARGEST_REACH if step == STEPS[0] else math.isqrt(2 * LARGEST_REACH) - 1


def denominator(step: str, t: int) -> int:
    """Total weight of the points that the weights before step t are the mean of."""
    return t if step == STEPS[0] else t * (t + 1) // 2


def step_units(step: str, t: int) -> int:
    """Weight of the vertex that step t moves towards."""
    return 1 if step == STEPS[0] else t + 1


def weights_of(vertices: np.ndarray, n_columns: int, radius: float, step: str) -> np.ndarray:
    """Weights after all steps.

    Parameters
    ----------
    vertices : ndarray of int, shape (n_steps, n_regressions)
        v < q stands for +radius in column v, v >= q for -radius in column v - q, with q = n_columns.
    step : {"1/(t+1)", "2/(t+2)"}

    Returns
    -------
    ndarray, shape (n_regressions, n_columns)

    Examples
    --------
    Three steps: towards +6 in column 0, again, and towards -6 in column 1.

    >>> weights_of(np.array([[0], [0], [3]]), 2, 6.0, "1/(t+1)")
    array([[ 3. , -1.5]])
    """
    units = np.zeros((vertices.shape[1], n_columns), dtype=np.int64)
    every = np.arange(vertices.shape[1])
    for t, chosen in enumerate(vertices, start=1):
        units[every, chosen % n_columns] += np.where(chosen < n_columns, 1, -1) * step_units(step, t)
    return units * (radius / denominator(step, len(vertices) + 1))

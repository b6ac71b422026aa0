"""Private Frank-Wolfe on logistic regressions: which these are, what is planned from public numbers, and the descent.

Algorithm 1 of Zhang, Kamath, Kulkarni and Wu (2020), as many steps at once as there are regressions. Who calls it says
which regressions: of a random field (:mod:`pgmpy_dp.fields.published.frank_wolfe_steps`), or of one target
(:mod:`pgmpy_dp.fields.private_logistic_regression`). What differs from the paper, and why:
``private/operators/frank_wolfe.md``.

Everything in a plan is decided before anything is spent, but for the number of iterations where that follows from a
noisy number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.operators.regression_path import RegressionPath, vertex_scale
from pgmpy_dp.private.operators.regressions import RESIDUAL_UNIT, selection_weight
from pgmpy_dp.private.sensitive import Release

Progress = Callable[[], None] | None
_FEWEST = 10
_MOST_AUTOMATIC = 10_000
_MOST_STEPS = 1 << 20
_STEPS = ("1/(t+1)", "2/(t+2)")  # mu_t, ours and as published
# The share of the bound's number of steps that is best on made-up Ising models (p 10 to 100, n 1e4 to 1e6).
_BOUND_SHARE = {ZCDP: 1 / 8, PureDP: 1 / 4}


@dataclass(frozen=True, eq=False)
class RegressionLayout:
    """Labels and features of some logistic regressions.

    Parameters
    ----------
    family : {"ising", "pairwise", "binary", "logistic"}
    cardinalities : tuple of int
    features : tuple of tuples
        What each of the feature rows of a record is: ``()`` the constant 1; for "ising" and "binary" a set of positions
        I, the product of their z (-1 for the first state, +1 for the second); for "pairwise" ``(j, a)``, 1 if variable
        j is in state a and else 0; for "logistic" ``(j, v_0, v_1, ...)``, v_a/64 if variable j is in state a.
    nodes : ndarray of int, shape (n_regressions,)
        Position of the variable that each regression predicts, increasing.
    pairs : ndarray of int, shape (n_regressions, 2)
        The states (u, v), u < v, that it tells apart: y = +1 for u and -1 for v, other records take no part. But for
        "pairwise" (1, 0): the label is z itself.
    columns : ndarray of int, shape (n_regressions, q)
        Column f of regression r is the feature ``features[columns[r, f]]``; -1 where the regression has no such feature
        (its weight is 0 always).
    """

    family: str
    cardinalities: tuple[int, ...]
    features: tuple[tuple[int, ...], ...]
    nodes: np.ndarray
    pairs: np.ndarray
    columns: np.ndarray

    @property
    def n_regressions(self) -> int:
        """Rows of the weights."""
        return len(self.nodes)

    @property
    def n_columns(self) -> int:
        """q: columns of the weights."""
        return self.columns.shape[1]

    @cached_property
    def active_nodes(self) -> tuple[int, ...]:
        """Positions of the variables that have regressions: all of two states or more."""
        return tuple(int(node) for node in np.unique(self.nodes))


def step(t: int, published: bool = False) -> tuple[int, int]:
    """Of ``w_{t+1} = (1 - mu_t) w_t + mu_t s_t``: how many units s_t counts, and how many make the radius before it.

    With ``w_1 = 0`` the weights before step t are integers times ``radius/t`` for ``mu_t = 1/(t+1)``, the mean of t
    points. For ``mu_t = 2/(t+2)``, which is published, s_t counts in proportion to t + 1, and t (t + 1)/2 units are the
    radius.

    Examples
    --------
    >>> [step(t) for t in (1, 2, 3)], [step(t, published=True) for t in (1, 2, 3)]
    ([(1, 1), (1, 2), (1, 3)], [(2, 1), (3, 3), (4, 6)])
    """
    return (t + 1, t * (t + 1) // 2) if published else (1, t)


@dataclass(frozen=True)
class FrankWolfePlan:
    """Everything that follows from public numbers; made by :meth:`of`, before anything is spent.

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
    published: bool = False

    @classmethod
    def of(
        cls,
        layout: RegressionLayout,
        radius: float,
        of: tuple[Adjacency, int | None],
        settings: Settings,
        budget: Budget,
    ) -> FrankWolfePlan:
        """The plan for weights of l1 norm at most `radius`.

        Parameters
        ----------
        layout : RegressionLayout
        radius : float
        of : (Adjacency, int or None)
            The table's, and its public number of records.
        settings : Settings
            `n_iter`, `published` and `count_share`.
        budget : Budget

        Raises
        ------
        ValueError
            For a budget too small for any selection, too many steps, and where their number is not known.
        """
        adjacency, n_records = of
        if settings.n_iter is not None and settings.n_iter > _MOST_STEPS:
            raise ValueError(
                f"n_iter={settings.n_iter!r} is more than {_MOST_STEPS}; take fewer: noise grows with them"
            )
        cost = cost_of(budget)
        if settings.published and settings.n_iter is None and isinstance(cost, PureDP):
            raise ValueError(
                "published=True with epsilon alone: the published number of steps is one for rho; pass n_iter, or a "
                "budget of rho or with a delta"
            )
        total = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
        counted = settings.n_iter is None and n_records is None
        if counted and adjacency == Adjacency.REPLACE_ONE:
            raise ValueError(
                "n_records=None with adjacency='replace_one', under which this number is public; pass it, or n_iter"
            )
        # Rounded down: the selections get the exact rest.
        count_budget = math.nextafter(settings.count_share * total, 0.0) if counted else 0.0
        made = cls(layout, adjacency, cost, radius, n_records, settings.n_iter, count_budget, settings.published)
        made.scale(_MOST_AUTOMATIC if counted else made.iterations(float(n_records or 0)))  # refuses impossible scales
        return made

    def iterations(self, records: float) -> int:
        """T for a public or noisy number of records."""
        # The excess risk of each regression is bounded by about `R**2/T + R log(2 q) s/m`, s being the scale of the
        # noise and m the number of records that take part in it (n, or 2 n/k for k states). Its minimiser over T is
        # `(2 R m sqrt(2 rho/W)/log(2 q))**(2/3)` for rho and `sqrt(R m epsilon/(2 W log(2 q)))` for epsilon; the
        # constants in the bound are loose, and a share of it from 1/8 to 1/3 (but at least 10 iterations) is best on
        # made-up models. T is at most 10,000 unless asked for. R is the radius of the l1 ball, q the number of columns
        # of a regression, W the selection weight. Published is `(R m sqrt(rho))**(2/3)`, for each regression's rho.
        if self.n_iter is not None:
            return self.n_iter
        layout, weight = self.layout, selection_weight(self.layout, self.adjacency, self.cost)
        if layout.family == "pairwise":  # only records in one of its two states take part in a regression
            records *= sum(layout.cardinalities[i] - 1 for i in layout.active_nodes) / layout.n_regressions
        log = math.log(2.0 * (layout.columns >= 0).sum(axis=1).max())
        signal = self.radius * max(records, 1.0)
        if self.published:
            assert isinstance(self.cost, ZCDP)
            signal *= math.sqrt(self.cost.rho / layout.n_regressions)
            return round(min(max(2, signal ** (2 / 3)), _MOST_AUTOMATIC))
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


def weights_of(vertices: np.ndarray, n_columns: int, radius: float, published: bool = False) -> np.ndarray:
    """Weights after all steps.

    Parameters
    ----------
    vertices : ndarray of int, shape (n_steps, n_regressions)
        v < q stands for +radius in column v, v >= q for -radius in column v - q, with q = n_columns.
    n_columns : int
    radius : float
    published : bool
        As of :func:`step`.

    Returns
    -------
    ndarray, shape (n_regressions, n_columns)

    Examples
    --------
    Three steps: towards +6 in column 0, again, and towards -6 in column 1.

    >>> weights_of(np.array([[0], [0], [3]]), 2, 6.0)
    array([[ 3. , -1.5]])
    >>> weights_of(np.array([[0], [0], [3]]), 2, 6.0, published=True)
    array([[ 3. , -2.4]])
    """
    units = np.zeros((vertices.shape[1], n_columns), dtype=np.int64)
    every = np.arange(vertices.shape[1])
    for t, chosen in enumerate(vertices, start=1):
        units[every, chosen % n_columns] += np.where(chosen < n_columns, 1, -1) * step(t, published)[0]
    return units * (radius / step(len(vertices) + 1, published)[1])


@dataclass(frozen=True, eq=False)
class Descent:
    """The release of a descent: all of it is noisy.

    `vertices` has shape (n_iter - 1, n_regressions), see `released_descent`; `scale` is in units of the gradient sums.
    """

    vertices: np.ndarray
    scale: float

    @property
    def n_iter(self) -> int:
        """T."""
        return len(self.vertices) + 1


def released_descent(
    table: PrivateTable, plan: FrankWolfePlan, settings: Settings, budget: Budget, progress: Progress, **said: Any
) -> Release:
    """Release the vertices that a noisy Frank-Wolfe method selects for every regression of a plan.

    Parameters
    ----------
    table, plan, settings, budget
    progress : callable or None
        Called without arguments after each step.
    **said
        `kind` and `public`, of the release, which gets the facts of the method too; `what` and `columns`, of the
        ledger's entry.

    Returns
    -------
    Release
        ``values[0]``, shape (n_iter - 1, n_regressions), has the vertex of the l1 ball that each regression moved
        towards in each step: v < q is +radius in column v of its weights, v >= q is -radius in column v - q.
        ``values[1]``, if one was needed, is a noisy number of records.

    Notes
    -----
    Privacy
        *Guarantee.* The budget's, by requests of `RegressionPath`, which has the proof; a noisy count takes
        ``count_share`` of it.

        *Side channels.* Which arguments are refused, shapes and the calls of `progress` depend on public and noisy
        numbers only. Running time and memory depend on the number of records and of distinct ones.
    """
    curator = TableCurator(
        table,
        budget,
        what=said["what"],
        columns=said["columns"],
        mechanism="gumbel_noisy_max" if isinstance(plan.cost, ZCDP) else "exponential_noisy_max",
        random_state=settings.random_state,
        fine=plan.layout.family == "logistic",
    )
    facts = {"radius": plan.radius, "step": _STEPS[plan.published], "grid": RESIDUAL_UNIT, **said["public"]}

    def release(descent: Descent) -> Release:
        steps = {**facts, "n_iter": descent.n_iter, "scale": descent.scale / RESIDUAL_UNIT}
        return curator.release(said["kind"], steps, {"vertices": descent.vertices, **curator.called("n_records")})

    return curator.following(descend(curator, plan, progress), release)


def descend(curator: TableCurator, plan: FrankWolfePlan, progress: Progress = None) -> Generator[Descent, None, None]:
    """The descent itself, for the whole cost of a curator that has answered nothing yet: of a table, or of a part.

    Parameters
    ----------
    curator : TableCurator
        Its schema, adjacency and cost are those of the plan.
    plan : FrankWolfePlan
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
    path = RegressionPath(curator, plan.layout, sum(step(t, plan.published)[0] for t in range(1, n_iter)))
    rows, moves = np.zeros(len(columns), dtype=np.int64), np.zeros(len(columns), dtype=np.int64)
    for t in range(1, n_iter):
        yield Descent(vertices[: t - 1], plan.scale(n_iter))
        units, whole = step(t, plan.published)
        chosen = path.vertices(rows, moves, plan.radius / whole, share)
        vertices[t - 1] = chosen
        rows, moves = columns[every, chosen % q], np.where(chosen >= q, -units, units)
        if progress is not None:
            progress()
    yield Descent(vertices, plan.scale(n_iter))


def weights_in(release: Release, n_columns: int) -> np.ndarray:
    """Weights of all regressions, shape (n_regressions, q), of a release with vertices."""
    published = release.public.get("step") == _STEPS[True]
    return weights_of(release["vertices"].array, n_columns, release.public["radius"], published)


def released_count(release: Release) -> tuple[float, float]:
    """The number of records, at least 1, and the standard deviation of its noise; NaN where none was needed."""
    if release.n_records is not None:
        return max(float(release.n_records), 1.0), 0.0
    if "n_records" not in release:
        return math.nan, math.nan
    count = release["n_records"]
    return max(float(count.array[0]), 1.0), math.sqrt(count.noise.variance) if count.noise else 0.0

"""Scheduled curators: steps on Poisson samples, declared at opening and accounted together.

In the measures in which sampling pays, shares do not add up: the cost of T steps together is not the sum of their
costs. So everything that decides the cost is fixed from public numbers when the curator is opened: the operators, how
many requests of each there are, the rate of the samples, and the scales. Arguments stay adaptive, as a step's
divergences are bounded whatever they are. Nothing else is answered, and nothing beyond the schedule. ``gradient.md``
has the proof.

Clipped gradients of log-likelihoods of a table's records, summed over Poisson samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer, checked_number, fresh_copy
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.charged_base import ChargedCurator, require_to_open
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.gradients import ClippingGrid, record_count, sampled_gradient_sum
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget, share_grid, table_units
from pgmpy_dp.private.data.table_facts import checked_scopes, require_scopes
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.noise.additive import LARGEST_SCALE, gaussian_scales
from pgmpy_dp.private.noise.subsampling import rounded_rate
from pgmpy_dp.private.sensitive import Noise, Sensitive
from pgmpy_dp.schema import Schema, encode_label
from pgmpy_dp.shown import quantity

_MOST_STEPS = 10**6
_PARTS_OF_STEPS = 1 << 10  # beside 10 bits of the clipping weights


@dataclass(frozen=True)
class Schedule:
    """The requests that a curator will answer: noisy sums over Poisson samples, and perhaps a noisy number of units.

    Attributes
    ----------
    cost : ApproxDP or ZCDP
        Of everything together.
    n_steps : int
    rate : float
        Probability with which a unit takes part in a step.
    multiplier : float
        Scale of the noise of a step, over the l2 norm that no unit's contribution exceeds.
    count_share : float
        Of the budget, in rho, for the number of units.
    count_scale : float or None
        Of its noise; None where the number is public, and nothing is counted.
    """

    cost: ApproxDP | ZCDP
    n_steps: int
    rate: float
    multiplier: float
    count_share: float
    count_scale: float | None

    @property
    def requests(self) -> Mapping[str, int]:
        """The number of requests of each operator."""
        return {"step": self.n_steps} | ({"count": 1} if self.count_scale is not None else {})


def sampled_schedule(
    budget: Budget,
    adjacency: Adjacency,
    public_count: int | None,
    n_steps: int,
    batch_rate: float | None = None,
    count_share: float = 0.05,
) -> Schedule:
    """The schedule of rates, scales and cost, from public numbers.

    Parameters
    ----------
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``.
    adjacency : Adjacency
    public_count : int or None
        The number of units, if it is public; it is required under ``replace_one``.
    n_steps : int
        From 1 to 1,000,000.
    batch_rate : float, optional
        In (0, 1]: probability with which a unit takes part in a step, rounded to a multiple of 2**-16. Default: 1/4,
        and 1 for a rho budget, where sampling does not save any.
    count_share : float
        In (0, 1): part of the budget (of rho) for a noisy number of units, where no public one is known.

    Raises
    ------
    TypeError, ValueError
        For numbers out of range, and for a pure budget.

    Notes
    -----
    Privacy
        Under ``add_remove`` the exact sum of a step moves by at most B, under ``replace_one`` by at most 2B.
        (epsilon, delta): under ``add_remove`` by the Renyi divergences of the Poisson-subsampled Gaussian, composed
        over the steps and with the count; under ``replace_one``, a removal and an addition, by accounting for
        (epsilon/2, delta/(1 + exp(epsilon/2))) under ``add_remove``. A rho budget has the noise of steps on all units,
        because at high orders the divergence of a sampled Gaussian is no smaller.

        Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang 2016; Mironov, Talwar and Zhang 2019;
        Canonne, Kamath and Steinke 2020. Proof for the discrete Gaussian: ``gradient.md``.

    Examples
    --------
    >>> schedule = sampled_schedule(Budget(rho=0.5), Adjacency.ADD_REMOVE, 100, n_steps=16)
    >>> schedule.multiplier, schedule.rate, dict(schedule.requests)
    (4.0, 1.0, {'step': 16})
    """
    n_steps = checked_integer("n_steps", n_steps, 1)
    if n_steps > _MOST_STEPS:
        raise ValueError(f"n_steps={n_steps!r} is out of range; pass a whole number from 1 to {_MOST_STEPS}")
    count_share = checked_number("count_share", count_share, positive=True, below_one=True)
    if batch_rate is not None:
        batch_rate = checked_number("batch_rate", batch_rate, positive=True)
        if batch_rate > 1:
            raise ValueError(f"batch_rate={batch_rate!r} is above 1; it is a probability: pass a number in (0, 1]")
    if budget.rho is None and not budget.delta:
        raise ValueError(
            f"delta=0 with epsilon={budget.epsilon!r}: gradients with Gaussian noise have no pure guarantee; "
            "pass a delta above 0 (at most 1 over the number of records, or of users), or rho"
        )
    changed = changed_records(adjacency)
    if public_count is None and changed == 2:
        raise ValueError("adjacency='replace_one' needs the public number of units; pass it")
    cost: ApproxDP | ZCDP
    epsilon, delta, total = budget.epsilon, budget.delta, budget.rho
    if total is None:
        assert epsilon is not None
        total = accounting.approx_to_zcdp(epsilon, delta)
    count_rho = count_share * total if public_count is None else 0.0
    count_scale = gaussian_scales([1.0], count_rho)[0] if count_rho else None
    if epsilon is None:
        cost, rate = ZCDP(total), rounded_rate(batch_rate or 1.0)
        multiplier = gaussian_scales([float(changed)] * n_steps, total - count_rho)[0]
    else:
        cost, rate = ApproxDP(epsilon, delta), rounded_rate(batch_rate or 0.25)
        if changed == 2:
            epsilon, delta = epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))
        multiplier = accounting.subsampled_gaussian_multiplier(epsilon, delta, rate, n_steps, rho=count_rho)
    return Schedule(cost, n_steps, rate, multiplier, count_share, count_scale)


_EXAMPLE = "a Budget, e.g. Budget(rho=0.1)"


class GradientCurator(ChargedCurator):
    """A table that answers noisy sums of clipped gradients of log-linear models, as many as are declared.

    The parameters of a step are the marginals of the model at its current potentials, one table after the other, flat:
    a record's gradient is one 1 per table at its own cell, less the marginals. They are rounded to a public grid.

    Parameters
    ----------
    data : PrivateTable
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``.
    scopes : sequence of sequences of variable names
        The tables of the model.
    clip_norm : float, optional
        l2 norm that no record's gradient exceeds. Default: sqrt(number of tables), the norm of a record's indicator.
    n_steps, batch_rate, count_share
        See :func:`sampled_schedule`.
    random_state : int, optional
        For tests and benchmarks only: repeatable samples and noise. Nothing is protected then.

    Attributes
    ----------
    schedule : Schedule
    bound : int
    unit_size : float
    scale : float
        Of the noise of a step, in units of the grid. (``left`` is the part of the schedule's requests that is left.)

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left.
    TypeError, ValueError
        For unknown variables, a clip norm that does not fit 64-bit integers, a schedule that the budget cannot give, or
        whose noise is beyond 64-bit integers. All depend on public arguments only and come before the charge.

    Notes
    -----
    Privacy: a record's clipped gradient has l2 norm at most B, exactly, and depends on the record and on the marginals
    alone (:func:`~pgmpy_dp.private.data.gradients.clipped_sum`). See ``step`` and ``gradient.md``.

    Examples
    --------
    >>> import pandas as pd
    >>> table = PrivateTable(pd.DataFrame({"a": [0, 1, 1]}), {"a": [0, 1]}, ledger=Budget(rho=1.0))
    >>> curator = GradientCurator(table, Budget(rho=1.0), [("a",)], n_steps=2)
    >>> curator.step([0.5, 0.5]).shape, curator.left, dict(curator.schedule.requests)
    ((2,), Fraction(2, 3), {'step': 2, 'count': 1})
    """

    kind = PrivateTable
    _data: PrivateTable
    _grid: ClippingGrid

    def __init__(
        self,
        data: PrivateTable,
        budget: Budget,
        scopes: Sequence[Sequence[Hashable]],
        clip_norm: float | None = None,
        random_state: int | None = None,
        **schedule: Any,
    ) -> None:
        require_table_and_budget(data, budget, _EXAMPLE)
        if data.n_records is None and data.n_units is not None and data.adjacency == Adjacency.REPLACE_ONE:
            raise ValueError(
                f"rows_per_unit={data.rows_per_unit!r} with adjacency='replace_one' leaves no public number of "
                "records, which gradients of samples need there; pass rows_per_unit=1, or adjacency='add_remove'"
            )
        checked = checked_scopes(scopes)
        require_scopes(data.schema, checked)
        cells = sum(math.prod(data.schema.cardinality(name) for name in scope) for scope in checked)
        norm = math.sqrt(len(checked)) if clip_norm is None else clip_norm
        # A float: an array of no axes would be a norm that can be changed after its noise is fixed.
        grid = ClippingGrid(checked_number("clip_norm", norm, positive=True), len(checked), cells)
        used = {name for scope in checked for name in scope}
        columns = [name for name in data.schema.variables if name in used]
        require_to_open(self, data, budget)
        made = sampled_schedule(budget, data.adjacency, data.n_records, **schedule)
        bound = data._rows_of_unit * grid.bound
        scale = math.nextafter(made.multiplier * bound, math.inf)
        if scale > LARGEST_SCALE:
            raise ValueError(
                f"{budget} needs noise of {made.multiplier:.3g} times the clip norm in each of n_steps={made.n_steps}, "
                "which would bury any gradient; raise the budget, or take fewer steps"
            )
        self._open(
            data,
            budget,
            made.cost,
            made.cost,
            what=f"{quantity(made.n_steps, 'gradient step')} for {quantity(len(checked), 'table')}",
            columns=columns,
            mechanism="subsampled_discrete_gaussian",
            random_state=random_state,
        )
        self._schedule, self._grid, self._bound, self._scale = made, grid, bound, scale
        self._requests, self._scopes = Counter[str](), checked

    @property
    def schedule(self) -> Schedule:
        """All that this curator will be asked."""
        return replace(self._schedule)  # its own is in nobody's hands

    @property
    def bound(self) -> int:
        """The l2 norm that no unit's contribution to a step exceeds, in units of the grid."""
        return self._bound

    @property
    def unit_size(self) -> float:
        """The size of one unit of the grid."""
        return self._grid.unit

    @property
    def scale(self) -> float:
        """The scale of a step's noise, in units of the grid."""
        return self._scale

    def count(self) -> int:
        """A noisy number of units, once, where no public one is known.

        Raises
        ------
        BudgetExceeded
            If it is not on the schedule, or was asked before; nothing is counted.

        Notes
        -----
        Privacy: the number moves by at most 1 under ``add_remove``; discrete Gaussian noise of scale
        ``sqrt(1/(2 s rho))``, s the count's share, rho that of the budget or the largest that converts to it.
        """

        def mechanism(_cost: Any, _share: Fraction) -> AdditiveNoise:
            assert self._schedule.count_scale is not None
            scale = self._data._rows_of_unit * self._schedule.count_scale
            parts = share_grid(self._data, scale, GRID)
            exact = record_count(self._data, self._data._rows_of_unit, parts)
            return AdditiveNoise((exact,), (Noise("discrete_gaussian", scale),), parts)

        return int(self._scheduled("count", {}, mechanism)[0][0])

    def step(self, parameters: np.ndarray) -> np.ndarray:
        """A noisy sum of the clipped gradients of a Poisson sample of the units, at public parameters.

        Parameters
        ----------
        parameters : ndarray
            Marginals, shape (n_cells,).

        Returns
        -------
        ndarray of int64
            In units of `unit_size`.

        Raises
        ------
        BudgetExceeded
            If all steps of the schedule were taken; nothing is counted.
        ValueError
            For parameters of another shape, or that are not finite; nothing is counted.

        Notes
        -----
        Privacy
            *Sensitivity.* A unit's contribution is an integer vector of l2 norm at most B, a function of the unit and
            of `parameters` alone. For fixed coins of the others the exact sum moves by at most B under ``add_remove``,
            2B under ``replace_one``.

            *Guarantee.* Of the schedule, for all requests together: ``gradient.md``.
        """
        checked = fresh_copy(parameters)
        if checked.shape != (self.n_cells,) or not np.isfinite(checked).all():
            raise ValueError(
                f"parameters have shape {checked.shape}; pass {(self.n_cells,)} finite numbers, one for each cell"
            )

        def mechanism(_cost: Any, _share: Fraction) -> AdditiveNoise:
            parts = share_grid(self._data, self._scale, _PARTS_OF_STEPS)
            return AdditiveNoise((self._exact_sum(checked, parts),), (Noise("discrete_gaussian", self._scale),), parts)

        return self._scheduled("step", {"parameters": checked}, mechanism, keep=False)[0]

    @property
    def n_cells(self) -> int:
        """Length of the parameters, and of what a step returns."""
        return self._grid.n_cells

    def _exact_sum(self, parameters: np.ndarray, parts: int) -> Sensitive:
        rows = self._data._rows_of_unit
        return sampled_gradient_sum(self._data, self._scopes, parameters, self._grid, self._taking_part, rows, parts)

    def _taking_part(self, codes: np.ndarray) -> np.ndarray:
        """Positions of the records of the units that take part."""
        units, count, owner = table_units(self._data)
        sample = self._coins.sample(units, count, self._schedule.rate)
        return sample if isinstance(owner, slice) else np.flatnonzero(np.isin(owner, sample))

    def _scheduled(
        self,
        operator: str,
        arguments: Mapping[str, Any],
        mechanism: Callable[[Any, Fraction], Mechanism],
        keep: bool = True,
    ) -> Any:
        share = Fraction(1, sum(self._schedule.requests.values()))
        with self._turn():
            return self._answer_now(operator, arguments, share, mechanism, keep=keep, of_units=True)

    def _debit(self, operator: str, share: Fraction, eta: Fraction) -> None:
        most = self._schedule.requests.get(operator, 0)
        if self._requests[operator] >= most:
            raise BudgetExceeded(
                f"refused: request {self._requests[operator] + 1} of {operator!r} is not on the schedule, which has "
                f"{most}; what is asked how often is fixed when a scheduled curator is opened",
                spent=self._cost,
                asked=self._cost,
                left=PureDP(0.0),
            )
        self._requests[operator] += 1
        self._left -= share

    @property
    def schema(self) -> Schema:
        """Public description of the variables."""
        return self._data.schema

    @property
    def scopes(self) -> tuple[tuple[Hashable, ...], ...]:
        """The tables of the model."""
        return self._scopes

    def _public(self) -> dict[str, Any]:
        return super()._public() | {"scopes": [[encode_label(name) for name in scope] for scope in self._scopes]}

"""Clipped gradients of log-likelihoods of a table's records, summed over Poisson samples."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_number
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.schedule import SampledCurator
from pgmpy_dp.private.data.gradients import ClippingGrid, record_count, sampled_gradient_sum
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget, share_grid, table_units
from pgmpy_dp.private.data.table_facts import checked_scopes, require_scopes
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.schema import Schema, encode_label

_EXAMPLE = "a Budget, e.g. Budget(rho=0.1)"


class GradientCurator(SampledCurator):
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
        See :func:`~pgmpy_dp.private.curator.schedule.sampled_schedule`.
    random_state : int, optional
        For tests and benchmarks only: repeatable samples and noise. Nothing is protected then.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left.
    TypeError, ValueError
        For unknown variables, a clip norm that does not fit 64-bit integers, and as `sampled_schedule`. All depend on
        public arguments only and come before the charge.

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
        **schedule: Any,
    ) -> None:
        require_table_and_budget(data, budget, _EXAMPLE)
        if data.n_records is None and data.n_units is not None and data.adjacency == Adjacency.REPLACE_ONE:
            raise ValueError(
                f"rows_per_unit={data.rows_per_unit!r} with adjacency='replace_one' leaves no public number of "
                "records, which gradients of samples need there; pass rows_per_unit=1, or adjacency='add_remove'"
            )
        asked = checked_scopes(scopes)
        require_scopes(data.schema, asked)
        cells = sum(math.prod(data.schema.cardinality(name) for name in scope) for scope in asked)
        norm = math.sqrt(len(asked)) if clip_norm is None else clip_norm
        # A float: an array of no axes would be a norm that can be changed after its noise is fixed.
        grid = ClippingGrid(checked_number("clip_norm", norm, positive=True), len(asked), cells)
        used = {name for scope in asked for name in scope}
        columns = [name for name in data.schema.variables if name in used]
        super().__init__(data, budget, data.n_records, grid, f"{len(asked)} tables", columns, **schedule)
        self._scopes = asked

    @property
    def schema(self) -> Schema:
        """Public description of the variables."""
        return self._data.schema

    @property
    def scopes(self) -> tuple[tuple[Hashable, ...], ...]:
        """The tables of the model."""
        return self._scopes

    def _parts_of_records(self, scale: float, most: int) -> int:
        return share_grid(self._data, scale, most)

    def _exact_count(self, parts: int) -> Sensitive:
        return record_count(self._data, self._data._rows_of_unit, parts)

    def _exact_sum(self, parameters: np.ndarray, parts: int) -> Sensitive:
        rows = self._data._rows_of_unit
        return sampled_gradient_sum(self._data, self._scopes, parameters, self._grid, self._taking_part, rows, parts)

    def _taking_part(self, codes: np.ndarray) -> np.ndarray:
        """Positions of the records of the units that take part."""
        units, count, owner = table_units(self._data)
        sample = self._coins.sample(units, count, self._schedule.rate)
        return sample if isinstance(owner, slice) else np.flatnonzero(np.isin(owner, sample))

    def _public(self) -> dict[str, Any]:
        return super()._public() | {"scopes": [[encode_label(name) for name in scope] for scope in self._scopes]}

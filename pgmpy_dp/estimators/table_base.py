"""What the estimators share that learn from a discrete table: its description, and agreement with data and releases."""

from __future__ import annotations

from typing import Any, ClassVar

from pgmpy_dp.estimators.base import private_table
from pgmpy_dp.estimators.private_base import BasePrivateEstimator
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

__all__ = ["BaseTableEstimator"]


class BaseTableEstimator(BasePrivateEstimator):
    """Learns from a discrete table; abstract.

    As ``BasePrivateEstimator``, but a subclass refuses bad public arguments in `_check_schema`, and private data are
    made here. Its constructor has the budget and the description of the data among its arguments.

    Parameters
    ----------
    epsilon, delta, rho
    state_names
    adjacency
    n_records
    """

    _tags: ClassVar[dict[str, Any]] = {"data_kind": "discrete"}

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        state_names: Schema | dict | None = None,
        adjacency: str = "add_remove",
        n_records: int | None = None,
    ) -> None:
        self.epsilon, self.delta, self.rho = epsilon, delta, rho
        self.state_names, self.adjacency, self.n_records = state_names, adjacency, n_records
        super().__init__()

    def _check_schema(self, schema: Schema) -> None:
        """Refuse public arguments that cannot be used with this schema."""

    def _private(self, X: Any, budget: Budget) -> PrivateTable:
        return private_table(self, X, budget, self._check_schema)

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        given = None if self.state_names is None else Schema.coerce(self.state_names)
        if given is not None and (given.variables != release.schema.variables or given.matches(release.schema)):
            raise ValueError("state_names and the release have other variables, states or rules; drop state_names")

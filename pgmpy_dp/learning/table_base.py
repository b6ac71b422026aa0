"""The base of estimators that learn from a discrete table: its description, and agreement with data and releases."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Self

from pgmpy_dp.learning.opened_table import private_table, schema_and_table
from pgmpy_dp.learning.options import rules_of
from pgmpy_dp.learning.private_base import BasePrivateEstimator, TableFit
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.labels import require_declared


class BaseTableEstimator(TableFit, BasePrivateEstimator):
    """Learns from a discrete table; abstract.

    As ``BasePrivateEstimator``. Private data are made here, and options that name columns are held against the schema;
    a subclass can refuse others that do not go with it in `_check_schema`.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records
    """

    _tags: ClassVar[dict[str, Any]] = {"data_kind": "discrete"}

    def _check_schema(self, schema: Schema) -> None:
        """Refuse public arguments that cannot be used with this schema."""

    def fit(self, X: Any, y: None = None, *, unit: Hashable = None, rows_per_unit: int | str | None = None) -> Self:
        """Release what is needed under the budget, then learn from it.

        Parameters
        ----------
        X : dataframe, path or PrivateTable
            A `PrivateTable` is charged to its own ledger, which several fits can share; anything else gets a ledger
            with the budget of this fit.
        y : None
            Ignored; for pipelines.
        unit : hashable, optional
            Column of the data that says whose record it is, to protect units (persons, say) with all their records:
            see `PrivateTable`.
        rows_per_unit : int or "shares", optional
            How much of a unit counts; default 1: one of its records, drawn at random.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger of private data does not allow the budget; nothing is spent.

        Notes
        -----
        If learning fails after the release, it is paid for and not lost: the exception has it as its attribute
        ``release``, for ``fit_release``. So is what was released before an interruption (Ctrl-C) in the middle.
        """
        return self._fit(X, unit=unit, rows_per_unit=rows_per_unit)

    def _private(
        self, X: Any, budget: Budget, unit: Hashable = None, rows_per_unit: int | str | None = None
    ) -> PrivateTable:
        schema, _ = schema_and_table(self, X, unit, rows_per_unit)
        self._check_names(schema)
        self._check_schema(schema)
        return private_table(self, X, budget, unit, rows_per_unit)

    def _check_names(self, schema: Schema) -> None:
        """Refuse options that name columns which the schema does not declare."""
        for option, (rule, _) in rules_of(type(self)).items():  # type: ignore[arg-type]  # hashable, as classes are
            if rule.names is not None and (value := getattr(self, option)) is not None:
                require_declared(schema.variables, option, rule.names(value))

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        self._check_names(release.schema)
        schema = None if self.state_names is None else Schema.coerce(self.state_names)
        if schema is not None and schema.variables != release.schema.variables:
            schema = schema.with_differences()
        if schema is not None and (schema.variables != release.schema.variables or schema.matches(release.schema)):
            raise ValueError("state_names and the release have other variables, states or rules; drop state_names")

    def _under_rules(self, release: Release) -> Release:
        """The release under the rules of `state_names`, if that is a schema."""
        declared = self.state_names
        if not isinstance(declared, Schema) or declared.impossible == release.schema.impossible:
            return release
        return release.with_rules(declared.impossible)

"""What the structure learners share: one release of noisy tables of pairs, a graph from it, and its parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pgmpy.base import UndirectedGraph
from skbase.base import BaseEstimator

from pgmpy_dp.estimators.base import Progress, noisy_marginals, progress_bar, schema_and_table
from pgmpy_dp.estimators.markov_network import MarkovNetwork
from pgmpy_dp.estimators.privacy import Privacy, handed_over, require_release
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.collective_map import collective_map
from pgmpy_dp.models.log_linear import LogLinearModel
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

__all__ = ["BaseStructureEstimator", "edge_strengths", "network_on_edges"]


class BaseStructureEstimator(BaseEstimator):
    """Graph of discrete variables, learned from noisy tables.

    Abstract: a subclass says which settings its learner takes (`_settings`), runs it (`_run`), and makes everything it
    shows from the release (`_learned`). The budget and the description of the data are arguments of all of them.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "supports_weighted_data": False,
        "task": "structure",
        "model_kind": "undirected",
        "data_kind": "discrete",
        "guarantees": ("pure", "zcdp", "approximate"),
        "adjacency": ("add_remove", "replace_one"),
    }

    epsilon: float | None
    delta: float
    rho: float | None
    state_names: Schema | dict | None
    adjacency: str
    n_records: int | None

    @abstractmethod
    def _settings(self) -> Any:
        """The settings of the learner inside the boundary, checked."""

    @abstractmethod
    def _run(self, table: PrivateTable, settings: Any, budget: Budget) -> Release:
        """The learner inside the boundary."""

    @abstractmethod
    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        """Everything that a fit sets. Returned, not set: a fit that fails leaves this object as it was."""

    def fit(self, X: Any, y: None = None) -> BaseStructureEstimator:
        """Release noisy tables under the budget, and learn from them.

        Parameters
        ----------
        X : dataframe or PrivateTable
            Anything narwhals reads. A `PrivateTable` is charged to its own ledger, which several fits can share.
        y : None
            Ignored; for pipelines.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For a public argument that cannot be used, before anything is spent.
        BudgetExceeded
            If the ledger of a `PrivateTable` does not allow the budget; nothing is spent.
        """
        budget = Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        settings = self._settings()
        schema, table = schema_and_table(self, X)
        if table is None:
            schema.require_discrete(argument="state_names")
            table = PrivateTable(X, schema, adjacency=self.adjacency, ledger=budget, n_records=self.n_records)
        release = self._run(table, settings, budget)
        with handed_over(release):
            learned = self._learned(release, Privacy.of(release, table.ledger.entries))
        self.__dict__.update(learned)
        return self

    def fit_release(self, release: Release) -> BaseStructureEstimator:
        """Learn again from a release that was made before; needs no records and costs nothing.

        Raises
        ------
        TypeError, ValueError
            For what is no release of this learner.
        """
        require_release(release)
        self._settings()
        self._check_release(release)
        self.__dict__.update(self._learned(release, Privacy.of(release)))
        return self

    def _check_release(self, release: Release) -> None:
        """ValueError for a release of another learner."""
        if release.kind != "marginals":
            raise ValueError(f"release has kind {release.kind!r}, this estimator needs one of kind 'marginals'")
        covered = {name for scope in release.scopes for name in scope}
        if any(len(scope) > 2 for scope in release.scopes) or covered != set(release.schema.variables):
            raise ValueError(
                f"release has the tables {release.scopes}; this estimator needs tables of single variables and of "
                "pairs, with every variable of the schema"
            )
        if self.state_names is not None and Schema.coerce(self.state_names) != release.schema:
            raise ValueError("state_names and the release's schema differ; pass state_names=None")

    def sample(self, n: int, random_state: int | np.random.Generator | None = None) -> pd.DataFrame:
        """Synthetic records from `model_`; as private as the model, however many there are.

        Parameters
        ----------
        n : int
        random_state : int, numpy.random.Generator or None
            Only for repeatable draws; it has no part in privacy.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        """
        self.check_is_fitted()
        return self.model_.sample(n, random_state)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters with which scikit-base's generic tests construct the estimator."""
        states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
        return [
            {"epsilon": 1.0, "state_names": states},
            {"rho": 0.1, "state_names": states, "adjacency": "replace_one", "n_records": 100},
        ]


def network_on_edges(
    name: str, release: Release, edges: list[tuple], privacy: Privacy
) -> tuple[UndirectedGraph, MarkovNetwork, LogLinearModel]:
    """The graph of these edges over all variables of a release, and the model that `collective_map` learns on it.

    Tables of other pairs are left out; those of single variables count.
    """
    schema = release.schema
    graph = UndirectedGraph()
    graph.add_nodes_from(schema.variables)
    graph.add_edges_from(edges)
    noisy = noisy_marginals(release, schema.variables)
    noisy = _only(noisy, {frozenset(edge) for edge in edges})
    with progress_bar(name) as progress:
        model = _fitted(noisy, progress)
    return graph, MarkovNetwork.from_log_linear(model, graph, schema, privacy), model


def edge_strengths(model: LogLinearModel, edges: list[tuple]) -> dict[tuple, float]:
    """Total variation distance of each pair's distribution under the model, which has its table, from independence."""
    tables = dict(zip(model.cliques.scopes, model.cliques.split(model.marginals()), strict=True))
    strengths = {}
    for edge in edges:
        table = tables[edge]
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        strengths[edge] = float(0.5 * np.abs(table - independent).sum())
    return strengths


def _only(noisy: NoisyMarginals, pairs: set[frozenset]) -> NoisyMarginals:
    """Without the tables of other pairs."""
    cliques = noisy.cliques
    kept = [c for c, scope in enumerate(cliques.scopes) if len(scope) == 1 or frozenset(scope) in pairs]
    if len(kept) == cliques.n_cliques:
        return noisy
    counts = cliques.split(noisy.counts)
    smaller = Cliques(cliques.variables, cliques.cardinalities, tuple(cliques.scopes[c] for c in kept))
    return NoisyMarginals(smaller, smaller.join([counts[c] for c in kept]), noisy.noise, noisy.scale[kept], noisy.total)


def _fitted(noisy: NoisyMarginals, progress: Progress) -> LogLinearModel:
    return collective_map(noisy, callback=progress).model

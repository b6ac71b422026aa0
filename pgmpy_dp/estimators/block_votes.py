"""What StableStructure and EdgeVoting share: blocks of records that vote, one release, and a graph from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

from pgmpy.base import UndirectedGraph
from skbase.base import BaseEstimator

from pgmpy_dp.estimators.base import schema_and_table
from pgmpy_dp.estimators.privacy import Privacy, handed_over, require_release
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.learners.block_graphs import BlockSettings, plan_blocks
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

__all__ = ["BaseBlockVotes", "graph_on"]


class BaseBlockVotes(BaseEstimator):
    """Graph by the votes of disjoint blocks of records; abstract, see the two estimators.

    A subclass names its `_kind` of release, runs its learner in `_run` and makes what it shows in `_learned`.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "supports_weighted_data": False,
        "task": "structure",
        "model_kind": "undirected",
        "data_kind": "discrete",
        "guarantees": ("pure", "zcdp", "approximate"),
        "adjacency": ("add_remove", "replace_one"),
    }

    _kind: ClassVar[str]

    # Set by the constructors of the subclasses.
    width: float
    min_edge_weight: float
    epsilon: float | None
    delta: float
    n_blocks: int | None
    learner: str
    order: int
    state_names: Schema | dict | None
    adjacency: str
    n_records: int | None
    n_workers: int | None
    random_state: int | None

    @abstractmethod
    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        """Release the votes; refuses bad public arguments before it charges."""

    @abstractmethod
    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        """Everything that a fit sets. Returned, not set: a fit that fails leaves this object as it was."""

    @abstractmethod
    def _budget(self) -> Budget:
        """Of one fit."""

    def _blocks(self) -> BlockSettings:
        return BlockSettings(self.width, self.min_edge_weight, self.learner, self.order, n_workers=self.n_workers)

    def fit(self, X: Any, y: None = None) -> BaseBlockVotes:
        """Let random blocks of the records vote, and release the outcome under the budget.

        Parameters
        ----------
        X : dataframe or PrivateTable
            Anything narwhals reads; all variables of `state_names` are columns of it. A `PrivateTable` is charged to
            its own ledger, which several fits can share.
        y : None
            Ignored; for pipelines.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For a public argument that cannot be used, before anything is spent.
        BudgetExceeded
            If the ledger of a `PrivateTable` does not allow the budget; nothing is spent.
        """
        budget = self._budget()
        schema, table = schema_and_table(self, X)
        plan_blocks(schema, self._blocks())
        if table is None:
            table = PrivateTable(X, schema, adjacency=self.adjacency, ledger=budget, n_records=self.n_records)
        release = self._run(table, budget)
        with handed_over(release):
            learned = self._learned(release, Privacy.of(release, table.ledger.entries))
        self.__dict__.update(learned)
        return self

    def fit_release(self, release: Release) -> BaseBlockVotes:
        """Read again what was released before; needs no records and costs nothing.

        Parameters
        ----------
        release : Release
            As in ``release_``, or read by ``Release.load``.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For what is no release of this estimator.
        """
        require_release(release)
        if release.kind != self._kind:
            raise ValueError(f"release has kind {release.kind!r}, this estimator needs one of kind {self._kind!r}")
        if self.state_names is not None and Schema.coerce(self.state_names) != release.schema:
            raise ValueError("state_names and the release have other variables or states; drop state_names")
        self.__dict__.update(self._learned(release, Privacy.of(release)))
        return self


def graph_on(variables: tuple[Hashable, ...], edges: Iterable[tuple[int, int]]) -> UndirectedGraph:
    """The graph on all variables with edges between these positions."""
    graph = UndirectedGraph()
    graph.add_nodes_from(variables)
    graph.add_edges_from((variables[i], variables[j]) for i, j in edges)
    return graph

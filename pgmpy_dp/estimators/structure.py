"""What the structure learners share: one release of noisy tables of pairs, a graph from it, and its parameters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pgmpy.base import UndirectedGraph

from pgmpy_dp.estimators.base import Progress, progress_bar
from pgmpy_dp.estimators.graph_base import BaseGraphEstimator, graph_on
from pgmpy_dp.estimators.markov_network import MarkovNetwork
from pgmpy_dp.estimators.privacy import Privacy
from pgmpy_dp.estimators.private_base import TABLE_EXAMPLES
from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.collective_map import collective_map
from pgmpy_dp.models.inference import require_inference
from pgmpy_dp.models.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.models.log_linear import LogLinearModel
from pgmpy_dp.models.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.sampling import SamplingMethod
from pgmpy_dp.models.structural_zeros import with_zeros
from pgmpy_dp.plans.fine_grids import fine_states
from pgmpy_dp.plans.marginals import noisy_marginals
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

__all__ = ["BaseStructureEstimator", "edge_strengths", "network_on_edges"]


@dataclass(repr=False, eq=False)
class BaseStructureEstimator(BaseGraphEstimator):
    """Graph of discrete variables, learned from noisy tables.

    Abstract: a subclass says which settings its learner takes (`_settings`), runs it (`_run`), and makes everything it
    shows from the release (`_learned`).
    """

    _release_kinds: ClassVar[tuple[str, ...]] = ("marginals",)
    _examples = TABLE_EXAMPLES

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    state_names: Schema | dict | None = None
    adjacency: str = "add_remove"
    n_records: int | None = None

    @abstractmethod
    def _settings(self) -> Any:
        """The settings of the learner inside the boundary, checked."""

    def _check_schema(self, schema: Schema) -> None:
        self._settings()
        schema.require_discrete(argument="state_names")
        if schema.zeros:  # the least that a model which obeys the rules needs
            alone = Cliques(schema.variables, tuple(schema.cardinalities.values()), ())
            require_inference(with_zeros(alone, schema.zeros), "exact", DEFAULT_MEMORY_LIMIT)

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        self._settings()
        covered = {name for scope in release.scopes for name in scope}
        if any(len(scope) > 2 for scope in release.scopes) or covered != set(release.schema.variables):
            raise ValueError(
                f"release has the tables {release.scopes}; this estimator needs tables of single variables and of "
                "pairs, with every variable of the schema"
            )

    def sample(
        self,
        n: int,
        random_state: int | np.random.Generator | None = None,
        labels: bool = False,
        *,
        evidence: Mapping[Hashable, Any] | None = None,
        method: SamplingMethod = "stratified",
    ) -> pd.DataFrame:
        """Synthetic records from `model_`; as private as the model, however many there are.

        Parameters
        ----------
        n : int
        random_state : int, numpy.random.Generator or None
            Only for repeatable draws; it has no part in privacy.
        labels : bool, default False
            States instead of numbers and days.
        evidence : dict, optional
            Records of whom this holds alone; see :meth:`~pgmpy_dp.MarkovNetwork.sample`.
        method : {"stratified", "independent"}, default "stratified"
            See there.

        Returns
        -------
        pandas.DataFrame
            n rows; one column for each variable, as :meth:`~pgmpy_dp.MarkovNetwork.sample` has them.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        """
        self.check_is_fitted()
        return self.model_.sample(n, random_state, labels, evidence=evidence, method=method)


def network_on_edges(
    name: str, release: Release, edges: list[tuple], privacy: Privacy
) -> tuple[UndirectedGraph, MarkovNetwork, LogLinearModel]:
    """The graph of these edges over all variables of a release, and the model that `collective_map` learns on it.

    Tables of other pairs are left out; those of single variables count.
    """
    schema = release.schema
    graph = graph_on(schema.variables, edges)
    noisy = replace(noisy_marginals(release, schema.variables), impossible=tuple(schema.zeros))
    noisy = _only(noisy, {frozenset(edge) for edge in edges})
    with progress_bar(name) as progress:
        model = _fitted(noisy, progress)
    return graph, MarkovNetwork.from_log_linear(model, graph, schema, privacy, fine_states(release)), model


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
    merged = None if noisy.merged_cells is None else cliques.split(noisy.merged_cells)
    return replace(
        noisy,
        cliques=smaller,
        counts=smaller.join([counts[c] for c in kept]),
        scale=noisy.scale[kept],
        merged_cells=None if merged is None else smaller.join([merged[c] for c in kept]),
    )


def _fitted(noisy: NoisyMarginals, progress: Progress) -> LogLinearModel:
    return collective_map(noisy, callback=progress).model

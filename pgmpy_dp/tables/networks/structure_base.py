"""The base of the structure learners: one release of noisy tables of pairs, a graph from it, and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import require_inference
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import SamplingMethod
from pgmpy_dp.learning.collective_base import Progress, progress_bar
from pgmpy_dp.learning.fine_grids import fine_states, zeros
from pgmpy_dp.learning.graph_base import BaseGraphEstimator, graph_on
from pgmpy_dp.learning.maximum_a_posteriori import collective_map, most_iterations
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.learning.suggested_rules import SuggestsRules
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema


class BaseStructureEstimator(SuggestsRules, BaseGraphEstimator):
    """Graph of discrete variables, learned from noisy tables.

    Abstract: a subclass runs its learner (`_run`), and makes everything it
    shows from the release (`_learned`).

    Attributes
    ----------
    n_records_, n_records_sd_ : float
        The public number of records, or its estimate from the noisy tables with its standard deviation.
    """

    _release_kinds: ClassVar[tuple[str, ...]] = ("marginals",)
    _examples = TABLE_EXAMPLES
    _most_in_a_table: ClassVar[int] = 2

    def _check_schema(self, schema: Schema) -> None:
        schema.require_discrete(argument="state_names")
        if schema.zeros:  # the least that a model which obeys the rules needs
            alone = Cliques(schema.variables, tuple(schema.cardinalities.values()), ())
            require_inference(with_zeros(alone, schema.zeros), "exact", DEFAULT_MEMORY_LIMIT)

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        self._check()
        covered = {name for scope in release.scopes for name in release.schema.leaf_scope(scope)}
        if max(map(len, release.scopes)) > self._most_in_a_table or covered != set(release.schema.variables):
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
        method : {"stratified", "independent", "agreeing"}, default "stratified"
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


def _fitted(_: Release, noisy: NoisyMarginals, progress: Progress) -> tuple[Fit, NoisyMarginals]:
    return collective_map(noisy, callback=progress), noisy


def network_of_tables(
    name: str,
    release: Release,
    tables: Sequence[int],
    privacy: Privacy,
    learn: Callable[[Release, NoisyMarginals, Progress], tuple[Fit, NoisyMarginals]] = _fitted,
    n_fits: int = 1,
) -> tuple[MarkovNetwork, Fit, NoisyMarginals]:
    """Learn from some tables of a release, on the graph with all edges inside them.

    Parameters
    ----------
    name : str
        Of who learns, for the progress bar.
    tables : sequence of int
        Places of the tables.
    learn : callable, optional
        Default: `collective_map`. It may add tables, of a prior.
    n_fits : int
        Calls of `collective_map` that it makes at most.

    Returns
    -------
    model : MarkovNetwork
    fit : Fit
    noisy : NoisyMarginals
        What it was learned from.
    """
    schema = release.schema
    noisy = tables_of(release, tables)
    with progress_bar(name, most_iterations(n_fits=n_fits)) as progress:
        fit, noisy = learn(release, noisy, progress)
    graph = graph_on(schema.variables, edges_of(noisy.cliques.scopes, schema))
    return MarkovNetwork.from_log_linear(fit.model, graph, schema, privacy, fine_states(release)), fit, noisy


def tables_of(release: Release, tables: Sequence[int]) -> NoisyMarginals:
    """Some tables of a release, with the rules that a model of them obeys."""
    noisy = noisy_marginals(release, release.schema.variables, tables=tables)
    return replace(noisy, impossible=zeros(release))


def edges_of(scopes: Iterable[Sequence[Hashable]], schema: Schema) -> list[tuple]:
    """All pairs of variables inside some tables, also at levels, each once, in the order of the schema."""
    place = {name: k for k, name in enumerate(schema.variables)}
    leaves = (sorted(schema.leaf_scope(scope), key=place.__getitem__) for scope in scopes)
    return list(dict.fromkeys(pair for scope in leaves for pair in combinations(scope, 2)))


def edge_strengths(model: LogLinearModel, edges: list[tuple]) -> dict[tuple, float]:
    """Total variation distance of each pair from independence, under a model that has a table of the pair.

    The table may be one of more variables.
    """
    tables = list(zip(model.cliques.scopes, model.cliques.split(model.marginals()), strict=True))
    strengths = {}
    for edge in edges:
        scope, larger = min((item for item in tables if set(edge) <= set(item[0])), key=lambda item: item[1].size)
        table = larger.sum(axis=tuple(axis for axis, name in enumerate(scope) if name not in edge))
        independent = np.outer(table.sum(axis=1), table.sum(axis=0))
        strengths[edge] = float(0.5 * np.abs(table - independent).sum())
    return strengths

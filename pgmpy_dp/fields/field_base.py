"""The base of the estimators of Markov random fields: one release, then a field, its graph and a pgmpy model.

All that follows a release is post-processing.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.base import UndirectedGraph

from pgmpy_dp.checks import require_value
from pgmpy_dp.fields import noisy_interactions
from pgmpy_dp.fields.frank_wolfe import released_count
from pgmpy_dp.fields.maximum_entropy import match_interactions, match_parities
from pgmpy_dp.fields.noisy_parities import released_deviations, released_subsets
from pgmpy_dp.fields.operators.parities import ParitySums, Subsets, family_size
from pgmpy_dp.fields.random_fields import RandomField, edge_scores
from pgmpy_dp.inference.exact_or_loopy import Inference, checked_inference
from pgmpy_dp.learning.collective_base import progress_bar
from pgmpy_dp.learning.graph_base import BaseGraphEstimator, graph_on
from pgmpy_dp.learning.options import Settings, by, flag, number, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, steps_taken
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES
from pgmpy_dp.learning.public_graph import checked_graph, edge_positions, released_edges
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import Schema


@dataclass(frozen=True, eq=False)
class FieldFit:
    """A random field over the positions of the schema's variables, and how its fit ended.

    Attributes
    ----------
    field : Ising, Pairwise or BinaryField
    disagreement : ndarray of shape (p, p), or None
        Where each interaction was estimated from several nodes: the largest distance between the estimates of the
        interactions of a pair.
    converged : bool
    status : str
    n_iter : int
    n_records, n_records_sd : float
        The public number of records (with 0), or the noisy count and the standard deviation of its noise.
    """

    field: RandomField
    disagreement: np.ndarray | None
    converged: bool
    status: str
    n_iter: int
    n_records: float
    n_records_sd: float


def field_of(
    release: Release,
    family: str,
    *,
    width: float,
    graph: Iterable[Iterable[Hashable]] | None,
    sparse: bool,
    min_edge_weight: float | None = None,
) -> FieldFit:
    """The field that a release of any of the learners determines.

    Parameters
    ----------
    release : Release
        Of kind "parities", "interactions" or "regressions"; or "halves" or "pseudo_likelihood", of version 0.3.
    family : {"ising", "pairwise", "binary"}
    width : float
        Public bound on the width.
    graph : iterable of pairs of variable names, or None
        For moments: only its cliques interact. Default: those of the graph that the release was made for, if any.

    Raises
    ------
    ValueError
        If the moments were released for a public graph that lacks edges of `graph`.
    sparse : bool
        For moments: whether to select the interactions that are not 0.
    min_edge_weight : float, optional
        For halves, eta, see :func:`~pgmpy_dp.fields.published.gone_methods.of_halves`.
    """
    edges = None
    if release.kind in ("parities", "interactions"):
        edges = _edges(release, graph)
    if release.kind == "parities":
        return _of_parities(release, family, edges, sparse, width)
    if release.kind == "interactions":
        return _of_interactions(release, edges, sparse, width)
    # What is published and dominated, or gone, is not read with moments.
    from pgmpy_dp.fields.published import frank_wolfe_steps, gone_methods

    if release.kind == "regressions":
        field, disagreement = frank_wolfe_steps.released_field(release)
        return _fixed(release, field, disagreement, int(release.public["n_iter"]))
    if release.kind == "halves":
        field, disagreement, regressions, *count = gone_methods.of_halves(release, min_edge_weight)
        n, n_sd = count if release.n_records is None else released_count(release)
        fit = _fixed(regressions, field, disagreement, int(regressions.public["n_iter"]))
        return replace(fit, n_records=n, n_records_sd=n_sd)
    field = gone_methods.of_pseudo_likelihood(release, family)
    return _fixed(release, field, None, sum(release.public["path"]["n_steps"]))


def _edges(release: Release, graph: Iterable[Iterable[Hashable]] | None) -> list[tuple[int, int]] | None:
    """The edges of `graph`, or where it is None, of the graph that the release was made for."""
    released = released_edges(release)
    if graph is None:
        return released
    edges = edge_positions(release.schema, graph)
    if released is not None:
        known = {frozenset(edge) for edge in released}
        names = release.schema.variables
        lacking = [(names[i], names[j]) for i, j in edges if frozenset((i, j)) not in known]
        if lacking:
            raise ValueError(
                f"graph has the edges {lacking[:5]}, which the release was not made for; pass graph=None or fewer edges"
            )
    return edges


def _of_parities(
    release: Release, family: str, edges: list[tuple[int, int]] | None, sparse: bool, width: float
) -> FieldFit:
    p, order = len(release.schema), release.public["order"]
    n, n_sd = released_count(release)
    means = release["sums"].array / n
    subsets = released_subsets(release)
    noise = release["sums"].noise or _noise_of_all(release, p, order, subsets)
    deviations = released_deviations(release)
    fit = match_parities(
        means,
        p,
        order,
        noise_sd=math.sqrt(noise.variance) / n * (1.0 if deviations is None else deviations),
        n=n,
        graph=edges,
        sparse=sparse,
        width=width,
        subsets=subsets,
    )
    field = fit.model.to_ising() if family == "ising" else fit.model
    return FieldFit(field, None, fit.converged, fit.status, fit.n_iter, n, n_sd)


def _noise_of_all(release: Release, p: int, order: int, subsets: Subsets) -> Noise:
    """The noise that all sums would have had: answers of a query release were preferred to that."""
    family = subsets if len(subsets) < family_size(order, p) else order
    assert isinstance(release.guarantee, PureDP | ZCDP)
    return ParitySums.planned(family, p, release.adjacency, False, release.guarantee, Fraction(1)).noise[0]


def _of_interactions(release: Release, edges: list[tuple[int, int]] | None, sparse: bool, width: float) -> FieldFit:
    noisy = noisy_interactions.noisy_interactions(release)
    n, n_sd = released_count(release)
    sizes = [len(field) for field in noisy.fields]
    fit = match_interactions(
        [field / n for field in noisy.fields],
        {pair: table / n for pair, table in noisy.pairs.items()},
        field_noise_sd=[noisy.field_sd * k / n for k in sizes],
        pair_noise_sd={(i, j): noisy.pair_sd * sizes[i] * sizes[j] / n for i, j in noisy.pairs},
        n=n,
        graph=edges,
        sparse=sparse,
        width=width,
    )
    return FieldFit(fit.model, None, fit.converged, fit.status, fit.n_iter, n, n_sd)


def _fixed(release: Release, field: RandomField, disagreement: np.ndarray | None, n_iter: int) -> FieldFit:
    """The fit of a method whose number of steps does not depend on the data."""
    status = steps_taken(release, n_iter, "by public and noisy numbers")
    return FieldFit(field, disagreement, False, status, n_iter, *released_count(release))


FIELD_MEMORY_LIMIT = 2**28
"""Bytes that exact inference may take in `model_`: enough for about 22 binary variables that all interact."""

WIDTH = (
    "the public bound on how strongly one variable can depend on the others (the largest sum of its absolute "
    "interactions and field; a larger bound needs more records)"
)
"""What the argument `width` is, for who left it out."""

_METHODS = ("auto", "moments", "frank-wolfe")
_DENSE = 0.4  # of all pairs: a graph with more edges is completed for `model_`, as it can have very many cliques


@dataclass(init=False)
class BoundedWidth:
    """The first option of a field."""

    width: float | None = option(None, number())


class BaseFieldEstimator(BaseGraphEstimator, BoundedWidth):
    """Parameters and graph of a Markov random field; abstract, see the three estimators.

    A subclass names its `_family` and `_release_kinds`, runs the learner of its moments in `_run_moments`, and says in
    `_parameters` what its weights and fields are.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records
    graph : networkx.Graph or list of pairs of variables, optional
        A public graph: only its edges interact, and only what it needs is released. Default: all pairs may.
    n_iter : int, optional
        Steps of "frank-wolfe". Default: from public or noisy numbers.
    published : bool
        Steps of "frank-wolfe", and their number, as the paper has them.
    sparse : bool
        Whether to select the interactions that are not 0, without a public graph; no effect on "frank-wolfe".
    inference : {"exact", "loopy", "auto"} or LoopySettings
        Inference of `model_`.
    memory_limit : int
        Bytes that exact inference may take in `model_`.
    random_state

    Attributes
    ----------
    graph_ : pgmpy.base.UndirectedGraph
        The pairs that interact; the weight of an edge is its score.
    model_ : MarkovNetwork
        On the graph of all interactions that are not 0, or on the complete graph where these are many.
    disagreement_ : ndarray of shape (p, p), or None
        With "frank-wolfe", how far the two estimates of an interaction lie apart.
    release_, privacy_, n_features_in_, feature_names_in_
    n_records_, n_records_sd_ : float
        The public number of records, or its noisy count (at least 1) with the noise's standard deviation; NaN where
        none was needed.
    converged_ : bool
        Whether the fit to noisy moments converged; False for methods with a number of steps that is fixed beforehand.
    status_ : str
    n_iter_ : int
    """

    _tags: ClassVar[dict[str, Any]] = {**BaseGraphEstimator._tags, "task": "parameters and graph"}

    _family: ClassVar[str]
    _examples = ({"width": 2.0, **TABLE_EXAMPLES[0]}, {"width": 1.0, **TABLE_EXAMPLES[1]})

    method: str = option("auto", one_of(_METHODS))
    graph: Any = option(None, by(lambda name, graph: checked_graph(graph, name), chain.from_iterable))
    n_iter: int | None = option(None, whole(2))
    sparse: bool = option(True, flag())
    min_edge_weight: float | None = option(None, number())
    inference: Inference = option("auto", by(checked_inference))
    memory_limit: int = option(FIELD_MEMORY_LIMIT, whole(1))
    published: bool = option(False, flag())

    @abstractmethod
    def _run_moments(self, table: PrivateTable, budget: Budget) -> Release:
        """Release the moments; refuses bad public arguments before it charges."""

    @abstractmethod
    def _parameters(self, field: RandomField, variables: tuple[Hashable, ...]) -> tuple[Any, Any]:
        """`weights_` and `fields_`."""

    @property
    def _order(self) -> int:
        return 2

    def _check_release(self, release: Release) -> None:
        super()._check_release(release)
        if release.public.get("family", self._family) != self._family:
            raise ValueError(f"release is of family {release.public['family']!r}, this estimator of {self._family!r}")
        self._check_schema(release.schema)
        if release.kind == "parities" and release.public["order"] != self._order:
            raise ValueError(f"release has order {release.public['order']!r}, this estimator {self._order!r}")

    def _check_schema(self, schema: Schema) -> None:
        """Refuse what is wrong with public arguments whatever the method."""
        require_value("width", self.width, WIDTH)
        if self.published and self.method != "frank-wolfe":
            raise ValueError(f"published=True with method={self.method!r}; it is an option of 'frank-wolfe' alone")
        schema.require_discrete(argument="state_names")
        if len(schema) < 2:
            raise ValueError(f"state_names has {len(schema)} variable; interactions need at least two")
        other = [name for name in schema.variables if schema.cardinality(name) != 2]
        if other and self._family != "pairwise":
            raise ValueError(
                f"state_names gives {other[:5]} other than two states, and {type(self).__name__} is for binary "
                "variables; use PrivatePairwise, or merge states"
            )
        if self._order > len(schema):
            raise ValueError(f"order={self._order!r} is more than the {len(schema)} variables; pass at most as many")

    def _settings(self, **more: Any) -> Settings:
        """The settings of the methods: the options, and the model."""
        return self._options.but(family=self._family, order=self._order, **more)

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        if self.method != "frank-wolfe":
            return self._run_moments(table, budget)
        from pgmpy_dp.fields.published import frank_wolfe_steps

        with progress_bar(type(self).__name__) as progress:
            return frank_wolfe_steps.run(table, self._settings(), budget, progress)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        assert self.width is not None  # checked with the release
        fit = field_of(
            release,
            self._family,
            width=self.width,
            graph=self.graph,
            sparse=self.sparse,
            min_edge_weight=self.min_edge_weight,
        )
        variables = release.schema.variables
        scores = edge_scores(fit.field)
        weights, fields = self._parameters(fit.field, variables)
        return {
            "weights_": weights,
            "fields_": fields,
            "field_": fit.field,
            "graph_": self._graph(variables, scores),
            "model_": self._model(fit, release.schema, privacy),
            "edge_scores_": scores,
            "disagreement_": fit.disagreement,
            "n_records_": fit.n_records,
            "n_records_sd_": fit.n_records_sd,
            "converged_": fit.converged,
            "status_": fit.status,
            "n_iter_": fit.n_iter,
        }

    def to_frame(self) -> pd.DataFrame:
        """The interactions with their names; as private as the release.

        Returns
        -------
        pandas.DataFrame
            One row for each interaction that is not 0, the strongest first: "variables", a tuple; of `PrivatePairwise`
            also "states", a tuple (interactions in the gauge of `weights_`); and "weight". `weights_` has the same as
            arrays or a dict.

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        """
        self.check_is_fitted()
        rows = [row for row in self._rows(self.release_.schema) if row["weight"]]
        rows.sort(key=lambda row: -abs(row["weight"]))
        columns = ["variables", "states", "weight"] if self._family == "pairwise" else ["variables", "weight"]
        return pd.DataFrame(rows, columns=columns)

    @abstractmethod
    def _rows(self, schema: Schema) -> Iterator[dict[str, Any]]:
        """The rows of `to_frame`, in any order."""

    def _graph(self, variables: tuple[Hashable, ...], scores: np.ndarray) -> UndirectedGraph:
        least = 0.0 if self.min_edge_weight is None else self.min_edge_weight / 2.0
        edges = np.argwhere(np.triu((scores > 0) & (scores >= least), 1))
        return graph_on(variables, {(variables[i], variables[j]): scores[i, j] for i, j in edges})

    def _model(self, fit: FieldFit, schema: Schema, privacy: Privacy) -> MarkovNetwork:
        variables = schema.variables
        edges = [(variables[i], variables[j]) for i, j in fit.field.edges()]
        pairs = len(variables) * (len(variables) - 1) // 2
        graph = nx.Graph()
        graph.add_nodes_from(variables)
        graph.add_edges_from(edges if len(edges) <= _DENSE * pairs else combinations(variables, 2))
        model = dataclasses.replace(
            fit.field.to_log_linear(variables), memory_limit=self.memory_limit, inference=self.inference
        )
        return MarkovNetwork.from_log_linear(model, graph, schema, privacy)

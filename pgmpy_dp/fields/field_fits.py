"""From a release to a random field: what follows each of the learners of Markov random fields. Post-processing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields import frank_wolfe_steps, noisy_interactions, pseudo_likelihood_ascent, random_halves
from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.maximum_entropy import match_interactions, match_parities
from pgmpy_dp.fields.nodewise_regressions import field_from_regressions
from pgmpy_dp.fields.noisy_parities import released_deviations, released_subsets
from pgmpy_dp.fields.operators.parities import ParitySums, Subsets, family_size
from pgmpy_dp.fields.random_fields import BinaryField, Pairwise, RandomField
from pgmpy_dp.learning.privacy_record import steps_taken
from pgmpy_dp.learning.public_graph import edge_positions, released_edges
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Noise, Release


@dataclass(frozen=True, eq=False)
class FieldFit:
    """A random field over the positions of the schema's variables, and how it was found.

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
        Of kind "parities", "interactions", "regressions", "halves" or "pseudo_likelihood".
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
        For moments: look for the interactions that are not 0.
    min_edge_weight : float, optional
        For halves, eta: tells the maximal interactions, see `_with_maximal`.
    """
    edges = None
    if release.kind in ("parities", "interactions"):
        edges = _edges(release, graph)
    if release.kind == "parities":
        return _of_parities(release, family, edges, sparse, width)
    if release.kind == "interactions":
        return _of_interactions(release, edges, sparse, width)
    if release.kind == "regressions":
        return _of_regressions(release)
    if release.kind == "halves":
        return _of_halves(release, min_edge_weight)
    return _of_pseudo_likelihood(release, family)


def _edges(release: Release, graph: Iterable[Iterable[Hashable]] | None) -> list[tuple[int, int]] | None:
    """Edges of the given graph, or of the one that the release was made for."""
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


def _count(release: Release) -> tuple[float, float]:
    """The number of records, at least 1, and the standard deviation of its noise."""
    if release.n_records is not None:
        return max(float(release.n_records), 1.0), 0.0
    if "n_records" not in release:
        return math.nan, math.nan
    count = release["n_records"]
    return max(float(count.array[0]), 1.0), math.sqrt(count.noise.variance) if count.noise else 0.0


def _of_parities(
    release: Release, family: str, edges: list[tuple[int, int]] | None, sparse: bool, width: float
) -> FieldFit:
    p, order = len(release.schema), release.public["order"]
    n, n_sd = _count(release)
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
    n, n_sd = _count(release)
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


def _of_regressions(release: Release) -> FieldFit:
    field, disagreement = _from_weights(release, None)
    return _fixed(release, field, disagreement, int(release.public["n_iter"]))


def _of_halves(release: Release, min_edge_weight: float | None) -> FieldFit:
    parities = random_halves.parities_part(release)
    n = max(float(parities["n_records"].array[0]), 1.0)
    means = np.clip(parities["sums"].array / n, -1.0, 1.0)
    subsets = released_subsets(parities)
    regressions = random_halves.regressions_part(release)
    field, disagreement = _from_weights(regressions, dict(zip(subsets, means.tolist(), strict=True)))
    if min_edge_weight is not None:
        plain, _ = _from_weights(regressions, None)
        assert isinstance(field, BinaryField)
        assert isinstance(plain, BinaryField)
        field = _with_maximal(plain, field, min_edge_weight / 2.0)
    fit = _fixed(regressions, field, disagreement, int(regressions.public["n_iter"]))
    noise = parities["n_records"].noise
    assert noise is not None  # a count is a statistic plus noise
    # Of n records half come here, with a standard deviation of sqrt(n)/2, besides the noise.
    records = _count(release) if release.n_records is not None else (2 * n, 2 * math.sqrt(noise.variance + n / 2))
    return FieldFit(field, disagreement, fit.converged, fit.status, fit.n_iter, *records)


def _with_maximal(plain: BinaryField, averaged: BinaryField, least: float) -> BinaryField:
    """Mean derivatives for maximal interactions, whose coefficients they are, and plain coefficients for others.

    An interaction is taken for maximal if all those around it are below `least`.
    """
    inside: set[tuple[int, ...]] = set()
    chosen = {}
    for scope in sorted({*plain.coefficients, *averaged.coefficients}, key=len, reverse=True):
        source = plain if scope in inside else averaged
        chosen[scope] = source.coefficients.get(scope, 0.0)
        if abs(chosen[scope]) >= least:
            inside |= {part for size in range(1, len(scope)) for part in itertools.combinations(scope, size)}
    return BinaryField(plain.n_variables, chosen)


def _from_weights(
    release: Release, parity_means: dict[tuple[int, ...], float] | None
) -> tuple[RandomField, np.ndarray]:
    """Zhang et al. (2020), Algorithms 2 to 5; features that a graph leaves out count as zeros."""
    layout, weights = frank_wolfe_steps.regressions_of(release), frank_wolfe_steps.regression_weights(release)
    return field_from_regressions(layout, weights, release.public["order"], parity_means)


def _of_pseudo_likelihood(release: Release, family: str) -> FieldFit:
    flat = pseudo_likelihood_ascent.parameters(release)
    sizes = [release.schema.cardinality(name) for name in release.schema.variables]
    scopes = field_scopes(len(sizes), release.public["order"])
    field: RandomField
    if family == "pairwise":
        tables = np.split(flat, np.cumsum([math.prod(sizes[i] for i in scope) for scope in scopes])[:-1])
        shaped = {s: t.reshape([sizes[i] for i in s]) for s, t in zip(scopes, tables, strict=True)}
        pairs = {(s[0], s[1]): table for s, table in shaped.items() if len(s) == 2}
        field = Pairwise(tuple(shaped[i,] for i in range(len(sizes))), pairs).centred()
    else:
        field = BinaryField(len(sizes), dict(zip(scopes, flat.tolist(), strict=True)))
        if family == "ising":
            field = field.to_ising()
    return _fixed(release, field, None, sum(release.public["path"]["n_steps"]))


def _fixed(release: Release, field: RandomField, disagreement: np.ndarray | None, n_iter: int) -> FieldFit:
    """The fit of a method whose number of steps does not depend on the data."""
    status = steps_taken(release, n_iter, "by public and noisy numbers")
    return FieldFit(field, disagreement, False, status, n_iter, *_count(release))

"""From a release to a random field: what follows each of the learners of Markov random fields. Post-processing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields import noisy_interactions
from pgmpy_dp.fields.maximum_entropy import match_interactions, match_parities
from pgmpy_dp.fields.noisy_parities import released_deviations, released_subsets
from pgmpy_dp.fields.operators.parities import ParitySums, Subsets, family_size
from pgmpy_dp.fields.random_fields import RandomField
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
        For moments: look for the interactions that are not 0.
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
        n, n_sd = count if release.n_records is None else _count(release)
        fit = _fixed(regressions, field, disagreement, int(regressions.public["n_iter"]))
        return replace(fit, n_records=n, n_records_sd=n_sd)
    field = gone_methods.of_pseudo_likelihood(release, family)
    return _fixed(release, field, None, sum(release.public["path"]["n_steps"]))


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


def _fixed(release: Release, field: RandomField, disagreement: np.ndarray | None, n_iter: int) -> FieldFit:
    """The fit of a method whose number of steps does not depend on the data."""
    status = steps_taken(release, n_iter, "by public and noisy numbers")
    return FieldFit(field, disagreement, False, status, n_iter, *_count(release))

"""Fields of releases by methods of version 0.3 that are gone: gradients, and halves of the records.

A release is paid for once, so it is read for ever. Post-processing.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.noisy_parities import released_subsets
from pgmpy_dp.fields.published.frank_wolfe_steps import released_field
from pgmpy_dp.fields.random_fields import BinaryField, Pairwise, RandomField
from pgmpy_dp.learning.privacy_record import released_parameters
from pgmpy_dp.private.sensitive import Release


def of_pseudo_likelihood(release: Release, family: str) -> RandomField:
    """The field of averaged gradient steps: log-potentials, one scope after the other, fields first."""
    (flat,) = released_parameters(release, "pseudo_likelihood", "parameters")
    sizes = [release.schema.cardinality(name) for name in release.schema.variables]
    scopes = field_scopes(len(sizes), release.public["order"])
    if family != "pairwise":
        field = BinaryField(len(sizes), dict(zip(scopes, flat.tolist(), strict=True)))
        return field.to_ising() if family == "ising" else field
    tables = np.split(flat, np.cumsum([math.prod(sizes[i] for i in scope) for scope in scopes])[:-1])
    shaped = {s: t.reshape([sizes[i] for i in s]) for s, t in zip(scopes, tables, strict=True)}
    pairs = {(s[0], s[1]): table for s, table in shaped.items() if len(s) == 2}
    return Pairwise(tuple(shaped[i,] for i in range(len(sizes))), pairs).centred()


def of_halves(release: Release, min_edge_weight: float | None) -> tuple[RandomField, np.ndarray, Release, float, float]:
    """The field of Algorithm 5 of Zhang et al. (2020): regressions of one half of the records, parities of the other.

    Parameters
    ----------
    release : Release
        Of kind "halves".
    min_edge_weight : float or None
        eta: tells the maximal interactions, whose coefficients are means of derivatives; None: all are taken as such.

    Returns
    -------
    field : BinaryField
    disagreement : ndarray of shape (p, p)
    regressions : Release
        The part of the regressions.
    n_records, n_records_sd : float
        Estimated from the half with the parities.
    """
    parities = _part(release, "parities", {"sums": "sums", "half_n_records": "n_records"})
    regressions = _part(release, "regressions", {"vertices": "vertices", "n_records": "n_records"})
    n = max(float(parities["n_records"].array[0]), 1.0)
    means = np.clip(parities["sums"].array / n, -1.0, 1.0)
    of_subsets = dict(zip(released_subsets(parities), means.tolist(), strict=True))
    field, disagreement = released_field(regressions, of_subsets)
    if min_edge_weight is not None:
        plain, _ = released_field(regressions)
        assert isinstance(field, BinaryField)
        assert isinstance(plain, BinaryField)
        field = _with_maximal(plain, field, min_edge_weight / 2.0)
    noise = parities["n_records"].noise
    assert noise is not None  # a count is a statistic plus noise
    # Of n records half come here, with a standard deviation of sqrt(n)/2, besides the noise.
    return field, disagreement, regressions, 2 * n, 2 * math.sqrt(noise.variance + n / 2)


def _with_maximal(plain: BinaryField, averaged: BinaryField, least: float) -> BinaryField:
    """Mean derivatives for maximal interactions, whose coefficients they are, and plain coefficients for others.

    An interaction counts as maximal if all larger ones that contain it are below `least`.
    """
    inside: set[tuple[int, ...]] = set()
    chosen = {}
    for scope in sorted({*plain.coefficients, *averaged.coefficients}, key=len, reverse=True):
        source = plain if scope in inside else averaged
        chosen[scope] = source.coefficients.get(scope, 0.0)
        if abs(chosen[scope]) >= least:
            inside |= {part for size in range(1, len(scope)) for part in itertools.combinations(scope, size)}
    return BinaryField(plain.n_variables, chosen)


def _part(release: Release, kind: str, names: dict[str, str]) -> Release:
    return release.part(kind, {name: to for name, to in names.items() if name in release}, release.facts[kind])

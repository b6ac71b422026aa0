"""Centres of a mixture of Gaussians, without a bound on where they are: blocks that agree, then noisy steps.

The skeleton is that of Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023), Algorithm 6.5: estimates
that hardly depend on one record, a stability histogram on randomly placed cells, noisy means. Where they make the
estimates stable by a convex program, disjoint random blocks of the records make them here, so that privacy does not
depend on a solver. Cells are those of the lattice A_d*, not of a cubic grid: a small cloud of points is cut into up to
2**d cubes, but d + 1 such cells.

The number of centres may be left to the cells: blocks look for as many as the public bound on it, those of one group
are in one cell or in cells near to one another, and centres nearer than half the separation are taken together. That
is a function of what is released anyway, so it costs no share; but one record moves twice the *bound* of cells.

Around the centres second moments are summed, for covariances (:mod:`pgmpy_dp.mixtures.mixture_covariances`) or,
where none are wanted, to see whether a component is wider than one group can be.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pgmpy_dp.learning.devices import chosen_device
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.mixtures.gaussian_mixture import merged_centres, smallest_distance, weighted_kmeans
from pgmpy_dp.mixtures.mixture_covariances import NoisyMoments, mixture_of_moments
from pgmpy_dp.mixtures.mixture_shares import (
    AUTO,
    Shares,
    advised_blocks,
    largest_block,
    most_components,
    shares_of,
)
from pgmpy_dp.mixtures.operators.block_operators import (
    BlockCells,
    BlockClusters,
    BlockScales,
    MeanLogScale,
    require_clusters,
)
from pgmpy_dp.mixtures.operators.cluster_operators import (
    ClusterMoments,
    ClusterSums,
    cluster_noise,
    moment_unit,
    power_of_two,
)
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.operators.vector_operators import UnitCount
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label
from pgmpy_dp.shown import quantity


class Outcome(StrEnum):
    """The outcome of a search for centres. Releases have the number: new ones go to the end."""

    FOUND = "found"
    NO_SCALE = "no scale that enough blocks agree on"
    FEW_CELLS = "fewer stable cells than components"
    FEW_GROUPS = "fewer separated groups of stable cells than components"
    TOO_NEAR = "centres nearer than half the separation"

    @property
    def number(self) -> int:
        """Its number in a release."""
        return STATUSES.index(self)


STATUSES = tuple(Outcome)
"""Outcomes by their number in a release."""

_ASSUMED_SEPARATION = 8.0  # in scales, by default
# Cells have the volume of cubes of this width, in separations, and a little more in high dimension, where they are
# rounder. Chosen on made-up, public mixtures.
_CELL, _CELL_GROWTH, _LARGEST_WIDTH = 0.75, 0.05, 1.0
# How far the largest block is above the mean: time is its length, for the program with a power of three.
_DEVIATIONS = {False: 6.0, True: 2.0}
_KEPT = 4  # stable cells, for each component
_RADIUS = 3.0  # of a record about its centre: so many scales above sqrt(d) of them
_MOMENT_RADIUS = 2.0  # the same for second moments, whose noise is as the square of it,
_FOURTH_RADIUS = 4.0  # and of a squared l4 norm, above sqrt(3 d)
_WIDER = 1.25  # radius of second moments where the scale is a mean of what blocks see
_GRID_BITS = 16  # of a radius, to say how long the noise of a sum is in parts of it
_VISIBLE = 3.0  # a centre is one where its noisy count exceeds so many standard deviations of the noise


def run(data: PrivateVectors, settings: Settings, budget: Budget) -> Release:
    """Release k centres and the noisy numbers of records nearest to each, or that they were not found.

    Refuses a budget without a delta, too many columns, data with a `unit`.

    Parameters
    ----------
    data : PrivateVectors
        Of single records.
    budget : Budget
        Of (epsilon, delta). It is charged to the data's ledger before the records are looked at, whole, and spent
        whatever the outcome.

    Returns
    -------
    Release
        ``kind="mixture"``. ``values[0]``: centres, shape (k, d), in units of ``public["granularity"]``; ``values[1]``:
        noisy counts, shape (k,); ``values[2]``: the outcome's number in `STATUSES`, shape (1,). Centres and counts are
        empty where they were not found. Then the other values, named in ``public["values"]``: ``"moments"`` and
        ``"products"`` are second moments about the centres, in squares of ``public["moment_unit"]``.
        :func:`mixture_estimate` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* That of its questions (:class:`~pgmpy_dp.mixtures.operators.cluster_operators.ClusterSums`): the
        rho that converts to epsilon and nine tenths of delta, and the last tenth in reserve for thresholds, whatever
        the outcome. Discrete Gaussian noise is not Gaussian differential privacy at the same mu, so it is not accounted
        as such; that costs 7 % more noise at (1, 1e-6).

        *Side channels.* Running time depends on the number of records, and on whether the centres were found.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[1000.0, 0.0], [1010.0, 0.0]])
    >>> records = centres[rng.integers(2, size=20_000)] + rng.normal(size=(20_000, 2))
    >>> data = PrivateVectors(records, ledger=Budget(epsilon=1.0, delta=1e-6))
    >>> from pgmpy_dp.estimators import PrivateGaussianMixture
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateGaussianMixture(2, separation=10.0, scale=1.0))
    >>> release = run(data, settings, Budget(epsilon=1.0, delta=1e-6))
    >>> mixture_estimate(release).status
    'found'
    """
    require_data_and_budget(data, PrivateVectors, budget, example="Budget(epsilon=..., delta=...)")
    require_clusters(data)
    d, most = len(data.columns), most_components(settings)
    shares = shares_of(settings, data.adjacency, data.n_records, budget, d)
    curator = Curator(
        data,
        budget,
        what=f"centres of {'up to ' * (settings.n_components == AUTO)}{quantity(most, 'component')} in "
        f"{quantity(d, 'column')}",
        mechanism="mixture_blocks",
        reserve=shares.reserve,
        random_state=settings.random_state,
    )
    with curator.keeping():
        n_records = data.n_records if data.n_records is not None else curator.ask(UnitCount(), shares.count)
        blocks = _blocks(settings, shares, n_records, d)
        estimate = _search(curator, d, settings, shares, blocks)
        stable = estimate.stable
        radius, moments = _moments(curator, settings, shares, estimate)
    values = {
        "means": _coarsened(estimate.means, stable.unit),
        "counts": estimate.counts,
        "status": np.array([estimate.outcome.number]),
    }
    if data.n_records is None:
        values["n_records"] = curator.arrays[0]
    if any(answer.operator == "stable_cells" for answer in curator.answers):
        values |= {"cells": _coarsened(stable.cells, stable.unit), "cell_counts": stable.votes}
    values |= dict(zip(("moments", "products"), moments, strict=False))
    return curator.release(
        "mixture",
        {
            "n_components": len(estimate.means) if settings.n_components == AUTO else most,
            "groups": estimate.groups,
            "covariance_type": settings.covariance_type,
            "moment_radius": radius,
            "moment_unit": None if radius is None else moment_unit(radius),
            "granularity": stable.unit,
            "separation": stable.separation,
            "scale": stable.scale,
            "n_blocks": blocks.n_blocks,
            "status": estimate.outcome.value,
            "settings": {
                **settings.public(budget, "n_steps", "block_solver", "max_components"),
                "method": "blocks",
                "public_scale": settings.scale is not None,
                "block_size": largest_block(settings, d),
                "threshold": shares.threshold,
            },
        },
        values,
    )


@dataclass(frozen=True)
class _Stable:
    """The values that blocks agree on: the scale, where it is not public, and cells that rough centres are in."""

    cells: np.ndarray  # (m, d), their middles, the heaviest first
    votes: np.ndarray  # of blocks, for each
    scale: float | None
    separation: float | None
    unit: float = 1.0  # of what is released

    @classmethod
    def nothing(cls, d: int, separation: float | None) -> _Stable:
        """No scale, so no cells in d columns."""
        return cls(np.zeros((0, d)), np.zeros(0, dtype=np.int64), None, separation)


@dataclass(frozen=True)
class _Centres:
    """The outcome of the search, with the centres if there are any."""

    outcome: Outcome
    stable: _Stable
    means: np.ndarray  # (k, d)
    counts: np.ndarray  # of records nearest to each
    groups: int | None = None  # how many of them the first steps saw, where that decides

    @classmethod
    def nothing(cls, outcome: Outcome, stable: _Stable) -> _Centres:
        return cls(outcome, stable, stable.cells[:0], np.zeros(0, dtype=np.int64))


def _search(curator: Curator, d: int, settings: Settings, shares: Shares, blocks: BlockClusters) -> _Centres:
    """Blocks agree on rough centres in d columns, which noisy steps on all records make good."""
    k, auto = most_components(settings), settings.n_components == AUTO
    scale = settings.scale if settings.scale is not None else _agreed_scale(curator, blocks, shares)
    if scale is None:
        return _Centres.nothing(Outcome.NO_SCALE, _Stable.nothing(d, settings.separation))
    separation = settings.separation or _ASSUMED_SEPARATION * scale
    width = _width(separation, d)
    cells, votes = curator.ask(BlockCells.turned(blocks, width, d, curator.generator()), shares.cells, shares.eta)
    heaviest = np.argsort(-votes, kind="stable")[: _KEPT * k]
    cells, votes = cells[heaviest], curator.picked(votes, heaviest)
    stable = _Stable(cells, votes, scale, separation, unit=power_of_two(min(scale, separation)) / 2.0**12)
    if len(cells) < (1 if auto else k):
        return _Centres.nothing(Outcome.FEW_CELLS, stable)
    # The first step draws cells of one component together, then they are merged.
    radius, margin = scale * (math.sqrt(d) + _RADIUS), width * math.sqrt(d) / 4.0
    centres, counts, visible = _step(curator, cells, radius + margin, shares)
    if auto:
        return _grouped(curator, settings, shares, stable, (centres, counts, visible), radius)
    centres = centres[visible]
    if len(centres) > k:
        centres = weighted_kmeans(centres, counts[visible].astype(np.float64), k, curator.generator())
    if len(centres) < k or smallest_distance(centres) < separation / 2.0:
        return _Centres.nothing(Outcome.FEW_GROUPS, stable)
    results = []
    for _ in range(settings.n_steps - 1):
        centres, counts, visible = _step(curator, centres, radius, shares)
        results.append(centres)
    # Assignments hardly change any more: the results differ by their noises, which are independent.
    centres = np.mean(results, axis=0)
    if not visible.all() or smallest_distance(centres) < separation / 2.0:
        return _Centres.nothing(Outcome.TOO_NEAR, stable)
    return _Centres(Outcome.FOUND, stable, centres, counts)


def _grouped(
    curator: Curator,
    settings: Settings,
    shares: Shares,
    stable: _Stable,
    first: tuple[np.ndarray, np.ndarray, np.ndarray],
    radius: float,
) -> _Centres:
    """Find as many centres as there are groups: before each step those of one group are merged."""
    assert stable.separation is not None
    separation, (centres, counts, visible) = stable.separation, first
    results: list[np.ndarray] = []
    groups = 0
    for _ in range(settings.n_steps - 1):
        before = len(centres)
        centres, counts = merged_centres(centres[visible], counts[visible], separation / 2.0)
        groups = len(centres)
        if not groups:
            return _Centres.nothing(Outcome.FEW_GROUPS, stable)
        centres = centres[np.sort(np.argsort(-counts, kind="stable")[: most_components(settings)])]
        if len(centres) != before:
            results = []
        centres, counts, visible = _step(curator, centres, radius, shares, separation / 4.0)
        results.append(centres)
    centres = np.mean(results, axis=0)[visible]
    if not visible.any():
        return _Centres.nothing(Outcome.FEW_GROUPS, stable)
    if smallest_distance(centres) < separation / 2.0:
        return _Centres.nothing(Outcome.TOO_NEAR, stable)
    return _Centres(Outcome.FOUND, stable, centres, counts[visible], groups)


def _moments(
    curator: Curator, settings: Settings, shares: Shares, estimate: _Centres
) -> tuple[float | None, list[np.ndarray]]:
    """Second moments about the centres, and the radius to which records were shortened for them."""
    scale, unit = estimate.stable.scale, estimate.stable.unit
    if not len(estimate.means):
        return None, []
    assert scale is not None
    d, kind = estimate.means.shape[1], settings.covariance_type or "spherical"
    far = math.sqrt(math.sqrt(3.0 * d) + _FOURTH_RADIUS) if kind == "diag" else math.sqrt(d) + _MOMENT_RADIUS
    radius = scale * far * (1.0 if settings.scale is not None else _WIDER)
    # About the centres that the release says.
    centres = unit * _coarsened(estimate.means, unit)
    return radius, curator.ask(ClusterMoments(centres, radius, kind), shares.moments)


def _blocks(settings: Settings, shares: Shares, n_records: int, n_columns: int) -> BlockClusters:
    """Plan blocks by public and noisy numbers: none has many more records than the mean, so memory is the records'."""
    n_blocks = advised_blocks(shares, settings, n_records)
    mean, program = max(n_records, 1) / n_blocks, settings.block_solver == "sdp"
    most = min(largest_block(settings, n_columns), math.ceil(mean + _DEVIATIONS[program] * (math.sqrt(mean) + 1.0)))
    scale = settings.scale if program else None
    device = chosen_device(settings.device)
    return BlockClusters(most_components(settings), n_blocks, most, scale=scale, device=device)


def _agreed_scale(curator: Curator, blocks: BlockClusters, shares: Shares) -> float | None:
    """The scale that most blocks agree on, or None where no octave is stable."""
    offset = float(curator.generator().random())
    octaves, votes = curator.ask(BlockScales(blocks, offset), shares.octave, shares.eta)
    if not len(octaves):
        return None
    return 2.0 ** curator.ask(MeanLogScale(blocks, float(octaves[np.argmax(votes)])), shares.log_scale)


def _width(separation: float, d: int) -> float:
    """The width of cells in d columns."""
    return min(_CELL + _CELL_GROWTH * max(0.0, math.log2(d / 8.0)), _LARGEST_WIDTH) * separation


def _step(
    curator: Curator, centres: np.ndarray, radius: float, shares: Shares, error: float = math.inf
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move centres to the noisy means of their nearest records; return these, their numbers, and which stand out.

    A centre stands out that has more records than noise, and a mean whose noise is shorter than `error`.
    """
    counts, sums = curator.ask(ClusterSums(centres, radius), shares.step)
    noise, length = cluster_noise(curator.adjacency, curator.cost, shares.step, 1 << _GRID_BITS)
    shortest = length.scale * radius / 2.0**_GRID_BITS * math.sqrt(centres.shape[1])
    visible = counts > max(_VISIBLE * noise.scale, shortest / error)
    moves = sums / np.maximum(counts, 1)[:, np.newaxis]
    # No mean of differences up to the radius is longer.
    moves *= (radius / np.maximum(np.linalg.norm(moves, axis=1), radius))[:, np.newaxis]
    return centres + np.where(visible[:, np.newaxis], moves, 0.0), counts, visible


def _coarsened(centres: np.ndarray, unit: float) -> np.ndarray:
    """Centres as integers in units, within the range of int64."""
    return np.clip(np.rint(centres / unit), -(2.0**62), 2.0**62).astype(np.int64)


@dataclass(frozen=True)
class MixtureEstimate:
    """The content of a release of kind "mixture".

    Attributes
    ----------
    means : ndarray, shape (k, d), or None
        None where the centres were not found.
    weights : ndarray, shape (k,), or None
        Noisy counts, those below 0 as 0, over their sum; with a `covariance_type` those of the mixture that has the
        noisy moments.
    scale : float or None
        The public or noisy one; None where the blocks did not agree about it.
    status : str
        One of `STATUSES`.
    columns : tuple of hashable
    covariance_type : {"spherical", "diag", "tied", "full"} or None
    covariances : ndarray or None
        Of scikit-learn's shapes; for no type as for "spherical", of the one scale.
    groups : int, default 0
        The number of groups that the releases show: the centres, and groups of stable cells all of whose points are
        further than half a separation from each of them. Blocks agree on such a group, which has no centre. For "auto"
        it is more than the centres where there were more than `max_components`.
    wide : tuple of bool
        Whether the records of each component spread wider than those of one group of the scale; False where a
        `covariance_type` leaves scales free.
    """

    means: np.ndarray | None
    weights: np.ndarray | None
    scale: float | None
    status: str
    columns: tuple[Hashable, ...]
    covariance_type: str | None = None
    covariances: np.ndarray | None = None
    groups: int = 0
    wide: tuple[bool, ...] = ()


def mixture_estimate(release: Release) -> MixtureEstimate:
    """Read a release of this learner; ValueError for another kind. Post-processing."""
    require_kind(release, "mixture")
    status, scale = str(release.public["status"]), release.public["scale"]
    kind = release.public.get("covariance_type")
    columns = tuple(decode_label(name) for name in release.public["columns"])
    if int(release["status"].array[0]) != Outcome.FOUND.number:
        return MixtureEstimate(None, None, scale, status, columns, kind, None, _cell_groups(release, None))
    counts = np.maximum(release["counts"].array, 0).astype(np.float64)
    weights = counts / counts.sum() if counts.any() else np.full(len(counts), 1.0 / len(counts))
    means = release["means"].array * float(release.public["granularity"])
    groups = max(len(means) + _cell_groups(release, means), int(release.public.get("groups") or 0))
    covariances, wide = np.full(len(means), float(scale) ** 2), (False,) * len(means)
    moments = _noisy_moments(release, means.shape[1])
    if kind is not None:
        weights, means, covariances = mixture_of_moments(means, counts, moments)
    else:
        wide = _wide(release, moments, counts, means.shape[1])
    return MixtureEstimate(means, weights, scale, status, columns, kind, covariances, groups, wide)


def _noisy_moments(release: Release, d: int) -> NoisyMoments:
    kind, square = str(release.public["covariance_type"] or "spherical"), float(release.public["moment_unit"]) ** 2
    noise, sums = release["moments"].noise, release["moments"].array * square
    assert noise is not None
    if kind == "spherical":
        sums = sums[:, 0]
    elif kind != "diag":
        rows, columns = np.triu_indices(d, 1)
        matrices = np.zeros((len(sums), d, d))
        if "products" in release:
            matrices[:, rows, columns] = release["products"].array * square
        matrices += np.swapaxes(matrices, 1, 2)
        matrices[:, np.arange(d), np.arange(d)] = sums
        sums = matrices[0] if kind == "tied" else matrices
    return NoisyMoments(kind, sums, noise.scale * square, float(release.public["moment_radius"]))


def _wide(release: Release, moments: NoisyMoments, counts: np.ndarray, d: int) -> tuple[bool, ...]:
    """Components whose mean squared distance is above one group's by what two groups in one would add."""
    per = np.maximum(counts, 1.0)
    squares, noise = moments.sums / per, moments.noise / per
    scale, separation = float(release.public["scale"]), float(release.public["separation"])
    one = d * scale**2
    if not release.public["settings"].get("public_scale", True):
        one = min(one, max(float(squares.min()), 0.0))
    room = max(moments.radius**2 - one, 0.0)
    # Two groups at a distance s with shares p and 1 - p add `p (1 - p) s**2`: a quarter of s**2, or .09 of it for p =
    # .1; asked for is a sixteenth, or half of what clipping leaves, and four standard deviations of the noise. Where
    # the scale was estimated it may be that of groups taken together, so the narrowest component's stands in for it.
    least = np.maximum(4.0 * noise, min(separation**2 / 16.0, room / 2.0))
    return tuple((squares - one > least).tolist())


def _cell_groups(release: Release, means: np.ndarray | None) -> int:
    """The number of groups of released cells that have no mean near any of their points. Post-processing."""
    if "cells" not in release or release.public["separation"] is None:
        return 0
    cells = release["cells"].array * float(release.public["granularity"])
    if not len(cells):
        return 0
    separation, d = float(release.public["separation"]), cells.shape[1]
    reach = 0.5 * _width(separation, d) * math.sqrt(d) + 0.5 * separation
    if means is not None:
        distances = np.linalg.norm(cells[:, np.newaxis] - means, axis=2)
        cells = cells[distances.min(axis=1) > reach]
    return len(merged_centres(cells, np.ones(len(cells)), reach)[0])

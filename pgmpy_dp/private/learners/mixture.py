"""Centres of a mixture of spherical Gaussians, without a bound on where they are: blocks that agree, then noisy steps.

The skeleton is that of Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel (2023), Algorithm 6.5: estimates
that hardly depend on one record, a stability histogram on randomly placed cells, noisy means. Where they make the
estimates stable by a convex program, disjoint random blocks of the records make them here, so that privacy does not
rest on a solver. Cells are those of the lattice A_d*, not of a cubic grid: a small cloud of points is cut into up to
2**d cubes, but d + 1 such cells.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.models.mixtures import smallest_distance, weighted_kmeans
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.data.vector_sums import record_number, vector_blocks
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.learners.mixture_cells import program_centres, stable_centres
from pgmpy_dp.private.learners.mixture_plan import (
    ASSUMED_SEPARATION,
    MixturePlan,
    MixtureSettings,
    advised_blocks,
    make_plan,
)
from pgmpy_dp.private.learners.mixture_scale import block_log_scales, noisy_log_scale
from pgmpy_dp.private.learners.mixture_steps import coarsened, lloyd_step, power_of_two
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.mathematics.kmeans import batched_kmeans
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import decode_label, encode_label

__all__ = ["STATUSES", "MixtureEstimate", "mixture_estimate", "run"]

STATUSES = (
    "found",
    "no scale that enough blocks agree on",
    "fewer stable cells than components",
    "fewer separated groups of stable cells than components",
    "centres nearer than half the separation",
)
"""Outcomes by their number in a release."""

# Cells have the volume of cubes of this width, in separations, and a little more in high dimension, where they are
# rounder. Chosen on made-up, public mixtures.
_CELL, _CELL_GROWTH, _LARGEST_WIDTH = 0.75, 0.05, 1.0
_RADIUS = 3.0  # of a record about its centre: so many scales above sqrt(d) of them
_RESTARTS = 5


def run(data: PrivateVectors, settings: MixtureSettings, budget: Budget) -> Release:
    """Release k centres and the noisy numbers of records nearest to each, or that they were not found.

    Parameters
    ----------
    data : PrivateVectors
        Of single records.
    settings : MixtureSettings
    budget : Budget
        Of (epsilon, delta). It is charged to the data's ledger before the records are looked at, whole, and spent
        whatever the outcome.

    Returns
    -------
    Release
        ``kind="mixture"``. ``values[0]``: centres, shape (k, d), in units of ``public["granularity"]``; ``values[1]``:
        noisy counts, shape (k,); ``values[2]``: the outcome's number in `STATUSES`, shape (1,). Centres and counts are
        empty where they were not found. Then what else was released, named in ``public["values"]``.
        :func:`mixture_estimate` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For a budget without a delta, too many columns, data with a `unit`. All depend on public arguments only and
        come before the charge.

    Notes
    -----
    Privacy
        *Adjacency.* ``add_remove`` and ``replace_one``. Either changes the content of one block, by draws that are
        independent of the records, and one record's (or two records') contributions to the sums of the steps.

        *Sensitivity.* Histogram: a block marks at most k cells, :mod:`pgmpy_dp.private.noise.histogram`. Steps: l2 2
        under ``replace_one``, sqrt(1 + w**2) under ``add_remove``, for (w counts, sums / clip norm),
        :mod:`pgmpy_dp.private.learners.mixture_plan`.

        *Guarantee.* (epsilon, delta)-DP: zCDP of all noise together, converted at delta less eta, and eta = delta/10
        for the thresholds. Discrete Gaussian noise is not Gaussian differential privacy at the same mu, so it is not
        accounted as such; that costs 7 % more noise at (1, 1e-6).

        *Side channels.* Rotation and shift of the cells and the starts of k-means are random and independent of the
        records. A block whose k-means fails, or has no records, has no centres. Running time depends on the number of
        records, and on whether the centres were found.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = np.array([[1000.0, 0.0], [1010.0, 0.0]])
    >>> records = centres[rng.integers(2, size=20_000)] + rng.normal(size=(20_000, 2))
    >>> data = PrivateVectors(records, ledger=Budget(epsilon=1.0, delta=1e-6))
    >>> release = run(data, MixtureSettings(2, separation=10.0, scale=1.0), Budget(epsilon=1.0, delta=1e-6))
    >>> mixture_estimate(release).status
    'found'
    """
    require_data_and_budget(data, PrivateVectors, budget, example="Budget(epsilon=..., delta=...)")
    plan = make_plan(data, settings, budget)
    seed = samplers.seeded_generator(settings.random_state)
    data.ledger.charge(
        plan.cost,
        what=f"centres of {settings.n_components} components in {len(data.columns)} columns",
        columns=data.columns,
        mechanism="mixture_blocks",
        adjacency=data.adjacency,
        reproducible=seed is not None,
    )
    found = _learn(data, settings, plan, seed)
    return Release(
        kind="mixture",
        values=tuple(value for value, _ in found.values.values()),
        noise=tuple(noise for _, noise in found.values.values()),
        public={
            "values": list(found.values),
            "columns": [encode_label(name) for name in data.columns],
            "n_records": data.n_records,
            "n_components": settings.n_components,
            "granularity": found.unit,
            "separation": found.separation,
            "scale": found.scale,
            "n_blocks": found.n_blocks,
            "status": STATUSES[int(found.values["status"][0][0])],
            "settings": {
                "method": "blocks",
                "block_size": plan.block_size,
                "n_steps": settings.n_steps,
                "block_solver": settings.block_solver,
                "threshold": plan.cells.threshold,
                "budget": budget.guarantee.to_dict(),
            },
        },
        adjacency=data.adjacency,
        guarantee=plan.cost,
        mechanism="mixture_blocks",
        reproducible=seed is not None,
    )


@dataclass(frozen=True)
class MixtureEstimate:
    """What a release of kind "mixture" says.

    Attributes
    ----------
    means : ndarray, shape (k, d), or None
        None where the centres were not found.
    weights : ndarray, shape (k,), or None
        Noisy counts, those below 0 as 0, over their sum.
    scale : float or None
        The public or noisy one; None where the blocks did not agree about it.
    status : str
        One of `STATUSES`.
    columns : tuple of hashable
    """

    means: np.ndarray | None
    weights: np.ndarray | None
    scale: float | None
    status: str
    columns: tuple[Hashable, ...]


def mixture_estimate(release: Release) -> MixtureEstimate:
    """Read a release of this learner; ValueError for another kind. Post-processing."""
    if release.kind != "mixture":
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind 'mixture'")
    status, scale = str(release.public["status"]), release.public["scale"]
    columns = tuple(decode_label(name) for name in release.public["columns"])
    if int(release.values[2][0]):
        return MixtureEstimate(None, None, scale, status, columns)
    counts = np.maximum(release.values[1], 0).astype(np.float64)
    weights = counts / counts.sum() if counts.any() else np.full(len(counts), 1.0 / len(counts))
    return MixtureEstimate(release.values[0] * float(release.public["granularity"]), weights, scale, status, columns)


@dataclass
class _Found:
    """Everything released, in order, and public numbers that became known on the way."""

    values: dict[str, tuple[np.ndarray, Noise | None]]
    unit: float
    separation: float | None
    scale: float | None
    n_blocks: int


def _learn(
    data: PrivateVectors, settings: MixtureSettings, plan: MixturePlan, seed: np.random.Generator | None
) -> _Found:
    k, d = settings.n_components, len(data.columns)
    public = np.random.default_rng() if seed is None else seed
    extra: dict[str, tuple[np.ndarray, Noise | None]] = {}
    n_records = float(data.n_records or 0)
    if plan.count_scale is not None:
        noisy = samplers.discrete_gaussian(record_number(data), plan.count_scale, seed=seed)
        extra["n_records"] = (noisy, Noise("discrete_gaussian", plan.count_scale))
        n_records = float(noisy[0])
    n_blocks = advised_blocks(plan, settings, n_records)
    # Of public and noisy numbers: no block has many more records than the mean, so memory is that of the records.
    mean = max(n_records, 1.0) / n_blocks
    most = min(plan.block_size, math.ceil(mean + 6.0 * math.sqrt(mean) + 6.0))
    points, used = vector_blocks(data, n_blocks, most, seed)
    # All of it drawn at once: no block's randomness depends on another's records.
    uniforms = public.random((_RESTARTS, n_blocks, k))
    if settings.block_solver == "sdp":
        tuples, cost = program_centres(points, used, settings), np.full(n_blocks, np.nan)
    else:
        tuples, cost = batched_kmeans(points, used, uniforms, device=settings.device)
    found = _Found({}, 1.0, settings.separation, settings.scale, n_blocks)
    if plan.scale_histogram is not None:
        logs = block_log_scales(cost, used.sum(axis=1), k, d)
        log = noisy_log_scale(logs, plan.scale_histogram, plan.scale_noise, float(public.random()), seed)
        found.scale = None if log is None else 2.0**log
    del points
    centres, status, spread = None, 1, 0.0
    if found.scale is not None:
        found.separation = found.separation or ASSUMED_SEPARATION * found.scale
        found.unit = power_of_two(min(found.scale, found.separation)) / 2.0**12
        width = min(_CELL + _CELL_GROWTH * max(0.0, math.log2(d / 8.0)), _LARGEST_WIDTH) * found.separation
        cells, counts = stable_centres(tuples, width, plan, public, seed)
        extra["cells"] = (coarsened(cells, found.unit), None)
        extra["cell_counts"] = (counts, plan.cells.noise)
        status, spread = 2, width * math.sqrt(d) / 4.0
        if len(cells) >= k:
            centres = cells
    counts = np.zeros(0, dtype=np.int64)
    if centres is not None:
        centres, counts, status = _stepped(data, centres, spread, settings, plan, found, public, seed)
    if centres is None:
        centres, counts = np.zeros((0, d)), np.zeros(0, dtype=np.int64)
    found.values = {
        "means": (coarsened(centres, found.unit), None),
        "counts": (counts, Noise("discrete_gaussian", plan.count_multiplier)),
        "status": (np.array([status]), None),
        **extra,
    }
    return found


def _stepped(
    data: PrivateVectors,
    centres: np.ndarray,
    spread: float,
    settings: MixtureSettings,
    plan: MixturePlan,
    found: _Found,
    public: np.random.Generator,
    seed: np.random.Generator | None,
) -> tuple[np.ndarray | None, np.ndarray, int]:
    """Noisy steps from k or more rough centres: the first draws those of one component together, then they merge."""
    assert found.scale is not None
    assert found.separation is not None
    k = settings.n_components
    radius = found.scale * (math.sqrt(centres.shape[1]) + _RADIUS)
    step = lloyd_step(data, centres, radius + spread, plan, seed)
    centres, weights = step.centres[step.visible], step.counts[step.visible].astype(np.float64)
    if len(centres) < k:
        return None, step.counts, 3
    if len(centres) > k:
        centres = weighted_kmeans(centres, weights, k, public)
    if smallest_distance(centres) < found.separation / 2.0:
        return None, step.counts, 3
    results = []
    for _ in range(settings.n_steps - 1):
        step = lloyd_step(data, centres, radius, plan, seed)
        centres = step.centres
        results.append(centres)
    # Assignments hardly change any more: the results differ by their noises, which are independent.
    centres = np.mean(results, axis=0)
    if not step.visible.all() or smallest_distance(centres) < found.separation / 2.0:
        return None, step.counts, 4
    return centres, step.counts, 0

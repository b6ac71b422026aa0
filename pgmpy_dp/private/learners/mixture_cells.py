"""Centres of blocks, and the cells of a lattice that many of them lie in: the first stage of the mixture learner."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.models.membership_clusters import block_centres
from pgmpy_dp.private.learners.mixture_plan import MixturePlan, MixtureSettings
from pgmpy_dp.private.mathematics.lattice import lattice_basis, nearest_lattice_points
from pgmpy_dp.private.noise.histogram import stable_cells

__all__ = ["program_centres", "stable_centres"]

_KEPT = 4  # stable cells, for each component
_LARGEST_CELL = 2.0**36  # positions, in widths of a cell, are clamped to it


def program_centres(points: np.ndarray, used: np.ndarray, settings: MixtureSettings) -> np.ndarray:
    """Centres of each block by the membership program, shape (m, k, d); NaN for a block on which it fails."""
    assert settings.scale is not None
    k = settings.n_components
    tuples = np.full((len(points), k, points.shape[2]), np.nan)
    for b in range(len(points)):
        try:
            block = slice(b, b + 1)
            tuples[block] = block_centres(points[block], used[block], k, settings.scale, settings.device)
        except Exception:  # an exception would tell of the block's records
            continue
    return tuples


def stable_centres(
    tuples: np.ndarray, width: float, plan: MixturePlan, public: np.random.Generator, seed: np.random.Generator | None
) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the stable cells of a randomly turned and shifted lattice, the heaviest first, and noisy counts."""
    m, k, d = tuples.shape
    turned = np.linalg.qr(public.normal(size=(d, d)))[0]
    shift = 1000.0 * public.random(d)
    basis = lattice_basis(d)
    flat = tuples.reshape(m * k, d)
    there = np.isfinite(flat).all(axis=1)
    with np.errstate(all="ignore"):
        # Products block by block, as in k-means: a centre's cell is a function of its block alone.
        places = np.stack([tuples[:, j, np.newaxis, :] @ turned for j in range(k)], axis=1).reshape(m * k, 1, d) / width
        places = np.clip(np.nan_to_num(places), -_LARGEST_CELL, _LARGEST_CELL) + shift
        keys = nearest_lattice_points((places @ basis.T)[:, 0]).astype(np.int64)
    cells, counts = stable_cells(keys[there], np.repeat(np.arange(m), k)[there], plan.cells, seed)
    order = np.argsort(-counts, kind="stable")[: _KEPT * k]
    middles = cells[order] @ basis / (basis**2).sum(axis=0) - shift
    return middles * width @ turned.T, counts[order]

"""Noisy steps of Lloyd's algorithm on the records: from rough, public centres to good ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.private.data.vector_sums import clipped_cluster_sums
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.learners.mixture_plan import MixturePlan
from pgmpy_dp.private.noise import samplers

__all__ = ["Step", "coarsened", "lloyd_step", "power_of_two"]

_CLIP_BITS = 16  # a step's clip norm is 2**15 to 2**16 units of its grid
_VISIBLE = 3.0  # a centre is one where its noisy count exceeds so many standard deviations of the noise


@dataclass(frozen=True)
class Step:
    """What a step let out; noisy, public.

    Attributes
    ----------
    centres : ndarray, shape (k, d)
        A centre that is not visible stays where it was.
    counts : ndarray of int64, shape (k,)
        Noisy numbers of records nearest to each of the centres before the step.
    visible : ndarray of bool, shape (k,)
        Whose count stands out of the noise.
    """

    centres: np.ndarray
    counts: np.ndarray
    visible: np.ndarray


def lloyd_step(
    data: PrivateVectors,
    centres: np.ndarray,
    radius: float,
    plan: MixturePlan,
    seed: np.random.Generator | None = None,
) -> Step:
    """Move each centre to the noisy mean of the records nearest to it.

    Parameters
    ----------
    data : PrivateVectors
    centres : ndarray, shape (k, d)
        Public; any number of them.
    radius : float
        Public: clip norm of a record's difference from its centre.
    plan : MixturePlan
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Notes
    -----
    Privacy: a step releases the counts and the sums of
    :func:`~pgmpy_dp.private.data.vector_sums.clipped_cluster_sums`, whose sensitivities are derived there and in
    `mixture_plan`, with discrete Gaussian noise of scales ``count_multiplier`` and ``step_multiplier * bound``.
    Divided by these scales, one change moves the released vector by at most sqrt(2 rho) in l2 norm, rho being the
    step's share, whatever the number of centres. That is rho-zCDP: independent discrete Gaussian noise of scale
    sigma_i on coordinate i, which changes by D_i, has Renyi divergences at most ``alpha sum_i D_i**2/(2 sigma_i**2)``
    (Canonne, Kamath and Steinke 2020, Theorem 4, coordinate by coordinate). Later steps are functions of what earlier
    ones released, and of the records: adaptive composition (Bun and Steinke 2016, Lemma 2.3).
    """
    unit = power_of_two(radius) / 2.0**_CLIP_BITS
    bound = math.floor(radius / unit)
    exact_counts, exact_sums = clipped_cluster_sums(data, centres, unit, bound)
    counts = samplers.discrete_gaussian(exact_counts, plan.count_multiplier, seed=seed)
    sums = samplers.discrete_gaussian(exact_sums, plan.step_multiplier * bound, seed=seed)
    visible = counts > _VISIBLE * plan.count_multiplier
    moves = unit * sums / np.maximum(counts, 1)[:, np.newaxis]
    sizes = np.linalg.norm(moves, axis=1)
    moves *= (radius / np.maximum(sizes, radius))[:, np.newaxis]  # no mean of differences up to the radius is longer
    return Step(centres + np.where(visible[:, np.newaxis], moves, 0.0), counts, visible)


def power_of_two(length: float) -> float:
    """The smallest power of two above `length`.

    Examples
    --------
    >>> power_of_two(1.0), power_of_two(0.75)
    (2.0, 1.0)
    """
    return math.ldexp(1.0, math.frexp(length)[1])


def coarsened(centres: np.ndarray, unit: float) -> np.ndarray:
    """Centres as integers in units, within the range of int64."""
    return np.clip(np.rint(centres / unit), -(2.0**62), 2.0**62).astype(np.int64)

"""A study on made-up data, **not private**: Algorithm 6.5 of Chen et al. (2023), mixtures by a convex program.

It shows what each step does, at any factor on its noise. No curator answers, no budget is spent and nothing is
promised, with a factor of 1 neither: the steps take exact statistics of the points, their arithmetic is that of floats,
and their noise is from a generator of NumPy, whose numbers can be guessed. **Points are to be made up.** To learn a
mixture of private records take :class:`~pgmpy_dp.estimators.PrivateGaussianMixture`.

The steps, with the noise of :func:`~pgmpy_dp.theory.program_noise`, whose proof is in
``theory/membership_records.md``:

1. *Program.* Weights of links between records (:mod:`~pgmpy_dp.mixtures.published.membership_program`), which one
   record moves little.
2. *Propose, test, release.* How many records are not linked, with truncated Laplace noise, which is never negative. If
   that is above a limit, nothing else is released.
3. *Private rows.* Each record's estimate of its centre is the mean of the records that it is linked to. Some estimates
   are drawn, and get Gaussian noise.
4. *Projection* of these rows to a low dimension, where they have more columns.
5. *Cells* of a randomly shifted grid that hold many of the rows: noisy numbers above a threshold.
6. *Means* of the rows in the k fullest of these cells, with Gaussian noise.

What stands in the way of a private release: ``docs/mixture-program.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.mixtures.published.membership_program import membership_program
from pgmpy_dp.theory.membership_records import HIGH, LOW, NoisyTest, ProgramNoise, program_noise

REFUSED = "the test refused: too few records are linked"
NO_CELLS = "fewer cells with many rows than components"
FOUND = "found"


@dataclass(frozen=True, eq=False)
class CellStudy:
    """What steps 3 to 6 made of the rows that were drawn, in the scale of a cluster; exact, and **not private**.

    Attributes
    ----------
    rows : ndarray, shape (r, d)
        The rows that were drawn, with noise.
    places : ndarray, shape (r, dimension)
        The same, projected, and moved by the shift of the grid: a row's cell is ``floor(place / width)``.
    full : ndarray of int, shape (m,)
        Numbers of rows in the cells whose noisy number reached the threshold, largest noisy number first.
    means : ndarray or None, shape (k, d)
        Noisy means of the rows of the first k of them; None where they are fewer.
    """

    rows: np.ndarray
    places: np.ndarray
    full: np.ndarray
    means: np.ndarray | None


@dataclass(frozen=True, eq=False)
class PipelineStudy:
    """What each step of one run on made-up points had, exact statistics among it; **not private**.

    Attributes
    ----------
    noise : ProgramNoise
        In the scale of a cluster.
    weights : ndarray, shape (n, n)
        Of the program.
    estimates : ndarray, shape (n, d)
        Each record's estimate of its centre.
    unlinked, noisy_unlinked : float
        How many records are not linked; what the test compared with ``noise.test.limit``.
    cells : CellStudy or None
        None where the test refused.
    means : ndarray or None, shape (k, d)
        The centres, where some were found.
    status : str
    """

    noise: ProgramNoise
    weights: np.ndarray
    estimates: np.ndarray
    unlinked: float
    noisy_unlinked: float
    cells: CellStudy | None
    means: np.ndarray | None
    status: str


def study_pipeline(
    points: np.ndarray,
    n_clusters: int,
    scale: float,
    separation: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    *,
    noise: float = 1.0,
    slack: float = 0.5,
    weights: np.ndarray | None = None,
) -> PipelineStudy:
    """Run Algorithm 6.5 on made-up points, with its noise times a factor. **Not private**, whatever the factor.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        Made up. The program takes minutes for some hundreds.
    n_clusters : int
        k.
    scale : float
        Standard deviation of a cluster in each direction.
    separation : float
        Smallest distance of two centres, in the units of the points.
    epsilon, delta : float
        What the noise is computed for.
    rng : numpy.random.Generator
    noise : float
        A factor on all noise, and on the thresholds that follow from it.
    slack : float
        Of the program: how much more than its scale says a cluster may vary.
    weights : ndarray, shape (n, n), optional
        Of the program, if they are known: they do not depend on the noise.

    Returns
    -------
    PipelineStudy

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points = np.repeat([[0.0, 0.0], [40.0, 0.0]], 12, axis=0) + rng.normal(size=(24, 2))
    >>> study = study_pipeline(points, 2, 1.0, 40.0, 1.0, 1e-6, rng)
    >>> study.status
    'fewer cells with many rows than components'
    >>> study_pipeline(points, 2, 1.0, 40.0, 1.0, 1e-6, rng, noise=1e-6, weights=study.weights).status
    'found'
    """
    points = np.asarray(points, dtype=np.float64)
    n, d = points.shape
    amount = program_noise(n, n_clusters, d, separation / scale, epsilon, delta, slack=slack, noise=noise)
    if weights is None:
        weights = membership_program(points, n_clusters, scale, slack=slack).weights
    estimates, sizes = linked_means(weights, points)
    unlinked = math.fsum(1.0 - np.minimum(sizes * n_clusters / n, 1.0))
    noisy = unlinked + truncated_laplace(amount.test, rng)
    if noisy > amount.test.limit:
        return PipelineStudy(amount, weights, estimates, unlinked, noisy, None, None, REFUSED)
    drawn = rng.random(n) < amount.rate  # a coin for each record, which depends on no other
    cells = study_cells(estimates[drawn] / scale, n_clusters, amount, rng)
    means = None if cells.means is None else cells.means * scale
    status = NO_CELLS if means is None else FOUND
    return PipelineStudy(amount, weights, estimates, unlinked, noisy, cells, means, status)


def study_cells(rows: np.ndarray, n_clusters: int, noise: ProgramNoise, rng: np.random.Generator) -> CellStudy:
    """Steps 3 to 6, from the estimates that were drawn; **not private**.

    Parameters
    ----------
    rows : ndarray, shape (r, d)
        In scales.
    n_clusters : int
    noise : ProgramNoise
    rng : numpy.random.Generator

    Examples
    --------
    >>> rows = np.repeat([[0.0, 0.0], [40.0, 0.0]], 400, axis=0)
    >>> noise = program_noise(800, 2, 2, 40.0, 1.0, 1e-6, noise=1e-6)
    >>> study_cells(rows, 2, noise, np.random.default_rng(0)).full
    array([400, 400])
    """
    rows = rows + rng.normal(scale=noise.row_error, size=rows.shape)
    places = projected(rows, noise.dimension, rng) + rng.uniform(0.0, noise.width, size=noise.dimension)
    _, cell, counts = np.unique(np.floor(places / noise.width), axis=0, return_inverse=True, return_counts=True)
    noisy = counts + rng.laplace(scale=noise.cell_scale, size=len(counts))
    order = np.argsort(-noisy)
    full = order[noisy[order] >= noise.threshold]
    means = None
    if len(full) >= n_clusters:
        means = np.array([rows[cell.ravel() == j].mean(axis=0) for j in full[:n_clusters]])
        means += rng.normal(scale=noise.mean_error, size=means.shape)
    return CellStudy(rows, places, counts[full], means)


def soft_threshold(weights: np.ndarray) -> np.ndarray:
    """0 up to LOW, 1 from HIGH on, linear between."""
    return np.clip((weights - LOW) / (HIGH - LOW), 0.0, 1.0)


def linked_means(weights: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each record the mean of those that it is linked to (itself where there is none), and how many these are.

    Weighted by ``soft_threshold(weights)``, whose rows' sums are the numbers. Exact.
    """
    linked = soft_threshold(weights)
    sizes = linked.sum(axis=1)
    # Around the record itself: far-off clusters keep their digits.
    means = np.array(points, dtype=np.float64)
    for i in np.flatnonzero(sizes > 0):
        j = np.flatnonzero(linked[i])
        means[i] += linked[i, j] @ (points[j] - points[i]) / sizes[i]
    return means, sizes


def truncated_laplace(test: NoisyTest, rng: np.random.Generator) -> int:
    """A whole number in 0 .. 2 S, of a discrete Laplace law around S that is cut there.

    It is never negative, so a noisy number at most L says for certain that the number is at most L: whoever goes on is
    known to have few records that are not linked. With noise of both signs that would be known of nobody.

    Examples
    --------
    >>> test = program_noise(300, 3, 8, 32.0, 1.0, 1e-6).test
    >>> 0 <= truncated_laplace(test, np.random.default_rng(0)) <= 2 * test.centre
    True
    """
    stop = -math.expm1(-1.0 / test.scale)
    while True:
        drawn = int(rng.geometric(stop)) - int(rng.geometric(stop))
        if abs(drawn) <= test.centre:
            return test.centre + drawn


def projected(rows: np.ndarray, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Rows times a matrix of normal variables, which keeps distances up to a factor; themselves if they are that low.

    Examples
    --------
    >>> far = projected(np.repeat([[0.0], [1.0]], 400, axis=1), 24, np.random.default_rng(0))
    >>> far.shape, bool(0.5 < np.linalg.norm(far[1] - far[0]) / 20.0 < 1.5)
    ((2, 24), True)
    """
    d = rows.shape[1]
    return rows if dimension == d else rows @ rng.normal(size=(d, dimension)) / math.sqrt(dimension)

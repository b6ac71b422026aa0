"""Mixtures of Gaussians: k centres, their weights and covariances. Post-processing; no records, no noise.

A mixture's `scale` is a standard deviation of all components in all directions, one number; or roots of covariances,
:func:`pgmpy_dp.mixtures.mixture_covariances.covariance_roots`: shape (k,) or (k, d), or lower triangular, (k, d,
d).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from pgmpy_dp.mixtures.operators.kmeans import batched_kmeans


def random_centres(
    n_components: int, n_features: int, separation: float, rng: np.random.Generator, shift: float = 0.0
) -> np.ndarray:
    """Centres whose smallest distance is `separation`, shape (k, d).

    Random directions, scaled. With up to d + 1 centres these are the corners of a randomly turned regular simplex, so
    that all distances are the same; with more, normal points.

    Parameters
    ----------
    n_components, n_features : int
    separation : float
    rng : numpy.random.Generator
    shift : float
        Length of a vector in a random direction that all centres are moved by.

    Examples
    --------
    >>> centres = random_centres(3, 8, 5.0, np.random.default_rng(0), shift=1e4)
    >>> round(smallest_distance(centres), 6)
    5.0
    """
    k, d = n_components, n_features
    if k <= d + 1:
        corners = np.eye(max(k, 1)) - 1.0 / k
        basis = np.linalg.svd(corners)[0][:, : max(k - 1, 0)]
        turned = np.linalg.qr(rng.normal(size=(d, d)))[0][: max(k - 1, 0)]
        centres = corners @ basis @ turned if k > 1 else np.zeros((1, d))
    else:
        centres = rng.normal(size=(k, d))
    if k > 1:
        centres *= separation / smallest_distance(centres)
    direction = rng.normal(size=d)
    return centres + shift * direction / np.linalg.norm(direction)


def sample_mixture(
    means: np.ndarray, weights: np.ndarray, scale: float | np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Records of a mixture, shape (n, d), and the component of each, shape (n,).

    Parameters
    ----------
    means : ndarray, shape (k, d)
    weights : ndarray, shape (k,)
        Probabilities.
    scale : float or ndarray
        Standard deviation of each coordinate, or roots of covariances.
    n : int
    rng : numpy.random.Generator
    """
    labels = rng.choice(len(means), size=n, p=weights)
    normal = rng.normal(size=(n, means.shape[1]))
    if np.ndim(scale) < 3:
        roots = np.asarray(scale, dtype=np.float64)
        return means[labels] + (roots if not roots.ndim else roots.reshape(len(means), -1)[labels]) * normal, labels
    for j, root in enumerate(scale):  # type: ignore[arg-type]
        normal[labels == j] = normal[labels == j] @ root.T
    return means[labels] + normal, labels


def matching_error(centres: np.ndarray | None, true: np.ndarray) -> float:
    """Largest distance between a true centre and the one matched to it, under the matching of least total distance.

    Infinite where there are no centres, or where their numbers differ.

    Examples
    --------
    >>> matching_error(np.array([[4.0], [1.0]]), np.array([[1.5], [4.0]])), matching_error(None, np.zeros((1, 2)))
    (0.5, inf)
    """
    if centres is None or np.shape(centres) != np.shape(true):
        return float("inf")
    distances = np.linalg.norm(np.asarray(centres)[:, np.newaxis] - np.asarray(true)[np.newaxis], axis=2)
    return float(distances[linear_sum_assignment(distances)].max())


def smallest_distance(centres: np.ndarray) -> float:
    """The smallest distance between two of the centres; infinite for one."""
    distances = np.linalg.norm(centres[:, np.newaxis] - centres[np.newaxis], axis=2)
    return float(distances[np.triu_indices(len(centres), 1)].min(initial=np.inf))


def weighted_kmeans(
    points: np.ndarray, weights: np.ndarray, n_clusters: int, rng: np.random.Generator, n_restarts: int = 20
) -> np.ndarray:
    """Centres of public points by k-means, shape (n_clusters, d).

    Parameters
    ----------
    points : ndarray, shape (m, d)
    weights : ndarray, shape (m,)
        Positive.
    n_clusters : int
    rng : numpy.random.Generator
    n_restarts : int

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [10.0]])
    >>> weighted_kmeans(points, np.array([3.0, 1.0, 1.0]), 2, np.random.default_rng(0)).ravel().tolist()
    [0.25, 10.0]
    """
    uniforms = rng.random((n_restarts, 1, n_clusters))
    centres = batched_kmeans(points[np.newaxis], weights[np.newaxis], uniforms, n_iter=30)[0][0]
    return centres[np.lexsort(centres.T[::-1])]


def merged_centres(centres: np.ndarray, counts: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Centres of which no two are nearer than `least`: the nearest two are replaced by their mean until none are.

    Parameters
    ----------
    centres : ndarray, shape (m, d)
    counts : ndarray, shape (m,)
        Positive; weights of the means.
    least : float

    Returns
    -------
    centres : ndarray, shape (g, d)
    counts : ndarray of float64, shape (g,)

    Examples
    --------
    >>> merged_centres(np.array([[0.0], [1.0], [10.0]]), np.array([3, 1, 5]), 4.0)
    (array([[ 0.25],
           [10.  ]]), array([4., 5.]))
    """
    centres, counts = centres.copy(), counts.astype(np.float64)
    while len(centres) > 1:
        distances = np.linalg.norm(centres[:, np.newaxis] - centres, axis=2)
        distances[np.diag_indices(len(centres))] = np.inf
        i, j = sorted(np.unravel_index(distances.argmin(), distances.shape))
        if distances[i, j] >= least:
            break
        centres[i] = (counts[i] * centres[i] + counts[j] * centres[j]) / (counts[i] + counts[j])
        counts[i] += counts[j]
        centres, counts = np.delete(centres, j, axis=0), np.delete(counts, j)
    return centres, counts


def log_density(points: np.ndarray, means: np.ndarray, weights: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Log-density of the mixture at each of the points, shape (n,).

    Examples
    --------
    >>> log_density(np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1), 1.0).round(4)
    array([-0.9189])
    """
    return logsumexp(_log_joint(points, means, weights, scale), axis=1)


def responsibilities(
    points: np.ndarray, means: np.ndarray, weights: np.ndarray, scale: float | np.ndarray
) -> np.ndarray:
    """Probability of each component given a point, shape (n, k); rows sum to 1."""
    joint = _log_joint(points, means, weights, scale)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def _log_joint(points: np.ndarray, means: np.ndarray, weights: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    (k, d), roots = means.shape, np.asarray(scale, dtype=np.float64)
    with np.errstate(divide="ignore"):  # a component of weight 0 has log-density -inf
        logs = np.log(weights)
    if roots.ndim < 3:
        roots = np.broadcast_to(roots.reshape(-1, 1) if roots.ndim < 2 else roots, (k, d))
        squares = np.stack(
            [(((points - mean) / root) ** 2).sum(axis=1) for mean, root in zip(means, roots, strict=True)]
        )
        sizes = np.log(roots).sum(axis=1)
    else:
        parts = zip(means, roots, strict=True)
        squares = np.stack([(solve_triangular(r, (points - m).T, lower=True) ** 2).sum(axis=0) for m, r in parts])
        sizes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return (logs - sizes - 0.5 * d * np.log(2.0 * np.pi)) - 0.5 * squares.T

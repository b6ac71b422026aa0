"""Mixtures of spherical Gaussians: k centres, their weights and one scale. Post-processing; no records, no noise."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from pgmpy_dp.private.mathematics.kmeans import batched_kmeans

__all__ = [
    "log_density",
    "matching_error",
    "random_centres",
    "responsibilities",
    "sample_mixture",
    "smallest_distance",
    "weighted_kmeans",
]


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
    means: np.ndarray, weights: np.ndarray, scale: float, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Records of a mixture, shape (n, d), and the component of each, shape (n,).

    Parameters
    ----------
    means : ndarray, shape (k, d)
    weights : ndarray, shape (k,)
        Probabilities.
    scale : float
        Standard deviation of each coordinate.
    n : int
    rng : numpy.random.Generator
    """
    labels = rng.choice(len(means), size=n, p=weights)
    return means[labels] + scale * rng.normal(size=(n, means.shape[1])), labels


def matching_error(found: np.ndarray | None, true: np.ndarray) -> float:
    """Largest distance between a true centre and the one matched to it, under the matching of least total distance.

    Infinite where nothing was found, or where the numbers of centres differ.

    Examples
    --------
    >>> matching_error(np.array([[4.0], [1.0]]), np.array([[1.5], [4.0]])), matching_error(None, np.zeros((1, 2)))
    (0.5, inf)
    """
    if found is None or np.shape(found) != np.shape(true):
        return float("inf")
    distances = np.linalg.norm(np.asarray(found)[:, np.newaxis] - np.asarray(true)[np.newaxis], axis=2)
    return float(distances[linear_sum_assignment(distances)].max())


def smallest_distance(centres: np.ndarray) -> float:
    """Between two of the centres; infinite for one."""
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


def log_density(points: np.ndarray, means: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    """Log-density of the mixture at each of the points, shape (n,).

    Examples
    --------
    >>> log_density(np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1), 1.0).round(4)
    array([-0.9189])
    """
    return logsumexp(_log_joint(points, means, weights, scale), axis=1)


def responsibilities(points: np.ndarray, means: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    """Probability of each component given a point, shape (n, k); rows sum to 1."""
    joint = _log_joint(points, means, weights, scale)
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def _log_joint(points: np.ndarray, means: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    squares = np.stack([((points - mean) ** 2).sum(axis=1) for mean in means], axis=1)
    with np.errstate(divide="ignore"):  # a component of weight 0 has log-density -inf
        logs = np.log(weights)
    return logs - squares / (2.0 * scale**2) - 0.5 * points.shape[1] * np.log(2.0 * np.pi * scale**2)

"""Covariances of a mixture's components from noisy second moments about known centres. Post-processing; no noise.

Records were assigned to the nearest centre and shortened to a radius before their squares were summed. So the moments
are those of components cut by the borders between centres: too small, and a wide component loses its tails to a narrow
one beside it. The estimate is the mixture whose moments, cut and shortened in the same way, are the noisy ones
(simulated moments, McFadden 1989): public records of the mixture are drawn, always from the same standard normal
numbers, and weights, means and covariances are moved by what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_STEPS = 15
_SETTLED = 1e-3  # of a mean variance, and in standard deviations: steps end when nothing moves by more
_DRAWS = (128, 2048)  # of each component, by what they take
_WORK = 1 << 25


@dataclass(frozen=True)
class NoisyMoments:
    """Sums over records of squares or products of their differences from the nearest of k centres, in data's units.

    Parameters
    ----------
    kind : {"spherical", "diag", "tied", "full"}
    sums : ndarray
        Shape (k,), (k, d), (d, d) or (k, d, d): of squared lengths, squares, products.
    noise : float
        Standard deviation of the noise of an entry, of the diagonal where there is one; off it that over sqrt(2).
    radius : float
        The length that differences were shortened to: in the l4 norm for "diag", else in l2.
    """

    kind: str
    sums: np.ndarray
    noise: float
    radius: float


def covariance_roots(covariances: np.ndarray, kind: str, n_components: int) -> np.ndarray:
    """Roots of covariances: standard deviations, shape (k,) or (k, d), or lower triangular factors, (k, d, d).

    Examples
    --------
    >>> covariance_roots(np.array([[4.0, 2.0], [2.0, 10.0]]), "tied", 1)
    array([[[2., 0.],
            [1., 3.]]])
    """
    if kind in ("spherical", "diag"):
        return np.sqrt(covariances)
    roots = np.linalg.cholesky(covariances)
    return np.broadcast_to(roots, (n_components, *roots.shape)) if kind == "tied" else roots


def shrunk(moments: NoisyMoments, counts: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Means of squares or products, drawn toward a sphere by as much as noise explains, and least eigenvalues.

    With t the mean variance and A the rest, ``t + A max(0, 1 - noise**2/norm(A)**2)``: the positive part of James and
    Stein's estimate.

    Parameters
    ----------
    moments : NoisyMoments
    counts : ndarray, shape (k,)
        Records of each centre, positive.
    least : float
        A variance below which nothing is looked for.

    Returns
    -------
    means : ndarray
        Of the moments' shape, per record.
    floors : ndarray, shape (k,)
        Bounds below which noise may have taken a variance: twice that of an entry, as far as it is kept, or `least`.

    Examples
    --------
    >>> noisy = NoisyMoments("diag", np.array([[300.0, 100.0], [210.0, 190.0]]), 10.0, 5.0)
    >>> shrunk(noisy, np.array([100.0, 100.0]), 1e-6)[0].round(3).tolist()
    [[2.995, 1.005], [2.05, 1.95]]
    """
    per = np.array([counts.sum()]) if moments.kind == "tied" else counts
    noise = moments.noise / per
    if moments.kind == "spherical":
        return moments.sums / per, np.maximum(noise, least)
    sums = moments.sums[np.newaxis] if moments.kind == "tied" else moments.sums
    d, matrix = sums.shape[-1], sums.ndim == 3
    across = (-1, 1, 1) if matrix else (-1, 1)
    one = np.eye(d) if matrix else np.ones(d)
    means = sums / per.reshape(across)
    middle = (means * one).reshape(len(per), -1).sum(axis=1) / d
    rest = means - middle.reshape(across) * one
    # Of what is left beside the mean variance: d - 1 of the diagonal, and pairs of half the variance, twice each.
    expected = noise**2 * (d - 1) * (1.0 + d / 2.0 if matrix else 1.0)
    kept = np.maximum(0.0, 1.0 - expected / np.maximum((rest**2).reshape(len(per), -1).sum(axis=1), 1e-300))
    means = np.maximum(middle, np.maximum(noise, least)).reshape(across) * one + kept.reshape(across) * rest
    return (means[0] if moments.kind == "tied" else means), np.maximum(2.0 * noise * kept, least)


def mixture_of_moments(
    centres: np.ndarray, counts: np.ndarray, moments: NoisyMoments
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, means and covariances of the mixture that has these moments about the centres, cut and shortened.

    Parameters
    ----------
    centres : ndarray, shape (k, d)
        About the means of the records nearest to them, as Lloyd's algorithm ends with them.
    counts : ndarray, shape (k,)
        Of these records.
    moments : NoisyMoments

    Returns
    -------
    weights : ndarray, shape (k,)
    means : ndarray, shape (k, d)
    covariances : ndarray
        Of scikit-learn's shapes: (k,), (k, d), (d, d) or (k, d, d); positive definite.

    Examples
    --------
    Scales 1 and 1.5 at -2 and 2, cut at the border of the centres that this gives, and what was lost there:

    >>> rng = np.random.default_rng(0)
    >>> records = np.concatenate([rng.normal(-2.0, 1.0, 50_000), rng.normal(2.0, 1.5, 50_000)])
    >>> centres = np.array([-2.0, 2.0])
    >>> for _ in range(10):
    ...     nearest = np.abs(records[:, np.newaxis] - centres).argmin(axis=1)
    ...     centres = np.array([records[nearest == j].mean() for j in range(2)])
    >>> cut = np.array([((records[nearest == j] - centres[j]) ** 2).sum() for j in range(2)])
    >>> counts = np.bincount(nearest)
    >>> centres.round(1).tolist(), (cut / counts).round(1).tolist()
    ([-1.9, 2.3], [1.1, 1.6])
    >>> noisy = NoisyMoments("spherical", cut, 1.0, 6.0)
    >>> _, means, covariances = mixture_of_moments(centres[:, np.newaxis], counts, noisy)
    >>> means.ravel().round(1).tolist(), covariances.round(1).tolist()
    ([-2.0, 2.0], [1.0, 2.2])
    """
    (k, d), kind = centres.shape, moments.kind
    counts = np.maximum(counts.astype(np.float64), 1.0)
    least, most = (1e-4 * moments.radius) ** 2, moments.radius**2
    wanted, floors = shrunk(moments, counts, least)
    if kind == "spherical":
        wanted, floors = wanted / d, np.maximum(floors / d, least)
    centres = centres - (origin := centres.mean(axis=0))
    normal = _normals(d, k * k * d + (k * d * d if kind in ("tied", "full") else 0))
    share = counts / counts.sum()
    weights, means, covariances = share, centres, _positive(wanted, kind, floors, most)
    for _ in range(_STEPS):
        roots = covariance_roots(covariances, kind, k)
        there, offsets, seen = _cut_moments(weights, means, roots, centres, moments, normal)
        weights = np.where(there > 0, weights * share / np.maximum(there, 1e-300), share)
        weights = weights / weights.sum()
        moved = means - offsets - centres
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        means = centres + moved * np.minimum(1.0, moments.radius / np.maximum(length, 1e-300))
        before, covariances = covariances, _positive(covariances + wanted - seen, kind, floors, most)
        variance = (
            np.abs(wanted).mean() if kind in ("spherical", "diag") else np.trace(wanted, axis1=-2, axis2=-1).mean() / d
        )
        moves = np.abs(covariances - before).max() / variance, np.abs(offsets).max() / np.sqrt(variance)
        if max(*moves, np.abs(there - share).max()) < _SETTLED:
            break
    return weights, means + origin, covariances


def _normals(d: int, work: int) -> np.ndarray:
    """Standard normal points, always the same, whose mean and second moments are exact."""
    n = max(2 * d, int(np.clip(_WORK // work, *_DRAWS)))
    half = np.random.default_rng(0).standard_normal((n, d))
    points = np.concatenate([half, -half])
    factor = np.linalg.cholesky(points.T @ points / len(points))
    return np.linalg.solve(factor, points.T).T


def _cut_moments(
    weights: np.ndarray,
    means: np.ndarray,
    roots: np.ndarray,
    centres: np.ndarray,
    moments: NoisyMoments,
    normal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The share, mean difference, and mean squares or products of a mixture's records nearest to each centre."""
    (k, d), kind = centres.shape, moments.kind
    there, offsets = np.zeros(k), np.zeros((k, d))
    seen = np.zeros((k, d, d) if kind in ("tied", "full") else (k, d))
    squares = (centres**2).sum(axis=1)
    for weight, mean, root in zip(weights / len(normal), means, roots, strict=True):
        points = mean + (normal @ root.T if roots.ndim == 3 else normal * root)
        nearest = (squares - 2.0 * points @ centres.T).argmin(axis=1)
        apart = points - centres[nearest]
        size = apart * apart
        size = np.sqrt(size.sum(axis=1) if kind != "diag" else np.sqrt((size * size).sum(axis=1)))
        apart *= np.minimum(1.0, moments.radius / np.maximum(size, 1e-300))[:, np.newaxis]
        for j in np.unique(nearest):
            part = apart[nearest == j]
            there[j] += weight * len(part)
            offsets[j] += weight * part.sum(axis=0)
            seen[j] += weight * (part.T @ part if seen.ndim == 3 else (part**2).sum(axis=0))
    per = np.where(there > 0, there, 1.0)
    offsets /= per[:, np.newaxis]
    if kind == "tied":
        return there, offsets, seen.sum(axis=0)
    seen /= per.reshape(-1, *([1] * (seen.ndim - 1)))
    return there, offsets, seen.mean(axis=1) if kind == "spherical" else seen


def _positive(covariances: np.ndarray, kind: str, floors: np.ndarray, most: float) -> np.ndarray:
    """The nearest covariances whose variances in every direction are between a component's floor and `most`."""
    if kind in ("spherical", "diag"):
        return np.clip(covariances, floors if kind == "spherical" else floors[:, np.newaxis], most)
    values, vectors = np.linalg.eigh(covariances)
    values = np.clip(values, floors[0] if kind == "tied" else floors[:, np.newaxis], most)
    return (vectors * values[..., np.newaxis, :]) @ np.swapaxes(vectors, -1, -2)

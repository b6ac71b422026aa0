"""Clusters of points by the membership program: means of the records that belong together, and k centres."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.solvers.membership_program import membership_program

__all__ = ["LOW", "HIGH", "block_centres", "linked_means", "membership_clusters", "public_reach", "soft_threshold"]

LOW, HIGH = 0.8, 0.9
"""Where the soft threshold begins and where it ends; Chen et al. (2023), Definition 6.4."""

_POLISH = 2  # steps of Lloyd's algorithm after the program


def soft_threshold(weights: np.ndarray) -> np.ndarray:
    """0 up to LOW, 1 from HIGH on, linear between: of slope 10."""
    return np.clip((weights - LOW) / (HIGH - LOW), 0.0, 1.0)


def public_reach(n_features: int, count: int, scale: float) -> float:
    """A distance that records of one cluster do not have: 32 times what `count` normal ones do.

    Two of them differ by a normal vector of scale ``sqrt(2) scale``, which is longer than
    ``sqrt(2) scale (sqrt(d) + sqrt(2 t))`` with probability at most exp(-t). With ``t = 2 ln(count) + 3`` that
    is below 1/40 for all pairs together.
    """
    tail = 2.0 * math.log(max(count, 1)) + 3.0
    return 32.0 * math.sqrt(2.0) * scale * (math.sqrt(n_features) + math.sqrt(2.0 * tail))


def linked_means(weights: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each record the mean of those that it is linked to, and how many these are.

    Parameters
    ----------
    weights : ndarray, shape (N, N)
        W of the membership program.
    points : ndarray, shape (N, d)

    Returns
    -------
    means : ndarray, shape (N, d)
        nu_i, weighted by ``soft_threshold(W_i)``; the record itself where it is linked to none.
    sizes : ndarray, shape (N,)
        The sums of these weights.
    """
    linked = soft_threshold(weights)
    sizes = linked.sum(axis=1)
    # Around the record itself: far-off clusters keep their digits.
    means = np.array(points, dtype=np.float64)
    for i in np.flatnonzero(sizes > 0):
        j = np.flatnonzero(linked[i])
        means[i] += linked[i, j] @ (points[j] - points[i]) / sizes[i]
    return means, sizes


def membership_clusters(
    points: np.ndarray,
    n_clusters: int,
    scale: float,
    *,
    slack: float = 0.5,
    max_iter: int = 400,
    device: str | None = None,
) -> np.ndarray:
    """k centres of a set of points: those of the k largest groups of points that the program links.

    The first centre is the mean of the records linked to the best linked one; what belongs to it (linked by more than
    1/2, or as near to it as a cluster's records are) is set aside, and so on, k times; two steps of Lloyd's algorithm
    follow.

    Parameters
    ----------
    points : ndarray, shape (N, d)
        Finite. Any number of them: with fewer groups than k, centres repeat; without points they are zeros.
    n_clusters : int
        k.
    scale : float
        sigma of a cluster in each direction, positive.
    slack, device
        As in :func:`~pgmpy_dp.solvers.membership_program.membership_program`.
    max_iter : int
        Of the program. A crude solution is enough here.

    Returns
    -------
    ndarray, shape (n_clusters, d)
        A function of the points, in any order up to the order of the centres; nothing is drawn.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> membership_clusters(points, 2, 0.1).round(1).ravel().tolist()
    [0.1, 9.1]
    """
    points = np.asarray(points, dtype=np.float64)
    size, d = points.shape
    centres = np.zeros((n_clusters, d))
    if size == 0:
        return centres
    reach = public_reach(d, size, scale)
    found = membership_program(points, n_clusters, scale, slack=slack, reach=reach, max_iter=max_iter, device=device)
    # Groups are read at 1/2: at small separations the program spreads weight over other clusters, below that.
    w = found.weights
    left = np.ones(size, dtype=bool)
    for c in range(n_clusters):
        if not left.any():
            centres[c:] = centres[:1] if c else points.mean(axis=0)
            break
        strength = (w * (w > 0.5) * left).sum(axis=1)
        strength[~left] = -1.0
        first = int(np.argmax(strength))
        group = left & (w[first] > 0.5)
        group[first] = True
        centre = points[first] + (points[group] - points[first]).mean(axis=0)
        # A record in a cluster's tail is linked less; it must not become a centre of its own.
        near = np.linalg.norm(points - centre, axis=1) <= scale * (math.sqrt(d) + math.sqrt(2.0 * math.log(size) + 2.0))
        group |= left & near
        centres[c] = points[first] + (points[group] - points[first]).mean(axis=0)
        left &= ~group
    for _ in range(_POLISH):
        nearest = np.argmin(((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2), axis=1)
        for c in np.unique(nearest):
            centres[c] += (points[nearest == c] - centres[c]).mean(axis=0)
    return centres


def block_centres(
    points: np.ndarray, used: np.ndarray, n_clusters: int, scale: float, device: str | None = None
) -> np.ndarray:
    """Centres of each of many sets of points, by `membership_clusters`: in the place of k-means in blocks of records.

    Parameters
    ----------
    points : ndarray, shape (m, b, d)
        m sets.
    used : ndarray, shape (m, b)
        A point for which it is 0 is not there.
    n_clusters : int
        k.
    scale : float
        sigma, public.
    device : str, optional
        A device of torch. Default: NumPy.

    Returns
    -------
    ndarray, shape (m, k, d)
        NaN for a set without points. Set i's centres are a function of ``points[i]`` and ``used[i]`` alone, and defined
        whatever they hold: coordinates beyond 1e150 count as that.

    Examples
    --------
    >>> points = np.array([[[0.0], [0.2], [9.0], [9.2]], [[7.0], [7.0], [7.0], [7.0]]])
    >>> block_centres(points, np.array([[1, 1, 1, 1], [0, 0, 0, 0]]), 2, 0.1).round(1).tolist()
    [[[0.1], [9.1]], [[nan], [nan]]]
    """
    m, _, d = points.shape
    centres = np.full((m, n_clusters, d), np.nan)
    for block, (rows, there) in enumerate(zip(points, used, strict=True)):
        rows = np.clip(rows[there > 0], -1e150, 1e150)
        if len(rows):
            with np.errstate(all="ignore"):
                centres[block] = membership_clusters(rows, n_clusters, scale, device=device)
    return centres

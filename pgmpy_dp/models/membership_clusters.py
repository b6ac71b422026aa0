"""Clusters of points by the membership program: means of the records that belong together, and k centres."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.solvers.membership import public_reach
from pgmpy_dp.solvers.membership_program import membership_program

__all__ = ["block_centres", "membership_clusters"]

_POLISH = 2  # steps of Lloyd's algorithm after the program


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

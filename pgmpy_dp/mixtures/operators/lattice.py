"""The lattice A_d*, whose cells are rounder than cubes: at most d + 1 of them meet in a point, instead of 2^d."""

from __future__ import annotations

import numpy as np


def lattice_basis(n_features: int) -> np.ndarray:
    """Orthonormal columns of the plane of R^(d+1) whose coordinates add up to 0, scaled so that cells have volume 1.

    ``points @ lattice_basis(d).T`` are coordinates for :func:`nearest_lattice_points`, and ``vertices @
    lattice_basis(d) / scale**2`` leads back, with ``scale**2`` the sum of squares of a column.

    Returns
    -------
    ndarray, shape (d + 1, d)
    """
    d = n_features
    basis = np.linalg.svd(np.eye(d + 1) - 1.0 / (d + 1))[0][:, :d]
    # The lattice below has covolume (d + 1)**(d - 1/2).
    return basis * (d + 1.0) ** (1.0 - 0.5 / d)


def nearest_lattice_points(coordinates: np.ndarray) -> np.ndarray:
    """The point of (d + 1) A_d* nearest to each row: integers, congruent to each other modulo d + 1, that add up to 0.

    Parameters
    ----------
    coordinates : ndarray, shape (m, d + 1)
        Rows add up to 0.

    Returns
    -------
    ndarray of float64, shape (m, d + 1)
        Whole numbers.

    Notes
    -----
    The corners of the simplex around a point (Adams, Baek and Davis 2010) are its d + 1 candidates (Conway and Sloane
    1982).

    Examples
    --------
    >>> nearest_lattice_points(np.array([[0.2, -0.1, -0.1], [2.1, -1.2, -0.9]]))
    array([[ 0.,  0.,  0.],
           [ 2., -1., -1.]])
    """
    n = coordinates.shape[1]
    base = np.rint(coordinates / n)
    rank = np.argsort(np.argsort(-(coordinates - n * base), axis=1, kind="stable"), axis=1, kind="stable")
    rank = rank + base.sum(axis=1, keepdims=True)
    low, high = rank < 0, rank >= n
    rank = rank + n * low - n * high
    base = n * (base + low - 1.0 * high)
    best, least = base, ((coordinates - base) ** 2).sum(axis=1)
    for level in range(1, n):
        corner = base + level - n * (rank > n - 1 - level)
        square = ((coordinates - corner) ** 2).sum(axis=1)
        closer = square < least
        best = np.where(closer[:, np.newaxis], corner, best)
        least = np.where(closer, square, least)
    return best

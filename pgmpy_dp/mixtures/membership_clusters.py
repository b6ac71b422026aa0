"""Clusters of points by the membership program: means of the records that belong together, and k centres."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.learning.devices import chosen_device
from pgmpy_dp.mixtures.operators.batched_membership import batched_membership


def membership_clusters(
    points: np.ndarray, n_clusters: int, scale: float, *, n_steps: int = 100, device: str | None = None
) -> np.ndarray:
    """k centres of a set of points: those of the k largest groups of points that the program links; not private.

    Parameters
    ----------
    points : ndarray, shape (N, d)
        Any number of them: with fewer groups than k, centres repeat; without points they are zeros.
    n_clusters : int
        k.
    scale : float
        sigma of a cluster in each direction, positive.
    n_steps : int, default 100
        Of the program's ascent.
    device : str, optional
        As in :func:`block_centres`.

    Returns
    -------
    ndarray, shape (n_clusters, d)
        A function of the points, in any order up to the order of the centres; nothing is drawn.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> sorted(membership_clusters(points, 2, 0.1).round(1).ravel().tolist())
    [0.1, 9.1]
    """
    points = np.asarray(points, dtype=np.float64)
    used = np.ones((1, len(points)))
    found = batched_membership(
        points[np.newaxis], used, n_clusters, scale, n_steps=n_steps, device=chosen_device(device)
    )
    return found[0] if len(points) else np.zeros((n_clusters, points.shape[1]))


def block_centres(
    points: np.ndarray, used: np.ndarray, n_clusters: int, scale: float, device: str | None = None
) -> np.ndarray:
    """Centres of each of many sets of points by the program, all sets at once: what k-means does for blocks of records.

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
        A device of torch. Default: that of pgmpy's torch backend, if it is not the processor; else NumPy.

    Returns
    -------
    ndarray, shape (m, k, d)
        See :func:`~pgmpy_dp.mixtures.operators.batched_membership.batched_membership`.

    Examples
    --------
    >>> points = np.array([[[0.0], [0.2], [9.0], [9.2]], [[7.0], [7.0], [7.0], [7.0]]])
    >>> block_centres(points, np.array([[1, 1, 1, 1], [0, 0, 0, 0]]), 2, 0.1).round(1).tolist()
    [[[0.1], [9.1]], [[nan], [nan]]]
    """
    return batched_membership(points, used, n_clusters, scale, device=chosen_device(device))

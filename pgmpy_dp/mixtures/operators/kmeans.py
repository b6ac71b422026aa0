"""k-means of many small sets of points at once (Lloyd 1982), started by k-means++ (Arthur and Vassilvitskii 2007).

In the code, where m sets of b points with d numbers each are taken at once, and k centres of each:

===========  ============  ===============================
letter       shape         meaning
===========  ============  ===============================
``x``        (m, b, d)     the points, about their mean
``w``        (m, b)        their weights
``u``        (m, k)        the random numbers of one start
``c``        (m, k, d)     the centres
``xp``                     NumPy or torch
===========  ============  ===============================
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BYTES_AT_ONCE = 1 << 26


def batched_kmeans(
    points: np.ndarray, weights: np.ndarray, uniforms: np.ndarray, n_iter: int = 12, device: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Centres of each set of points, and their cost.

    Minimises ``sum_i weights_i min_j |points_i - centre_j|**2`` for each set, from as many starts as there are rows of
    `uniforms`, and returns the best.

    Parameters
    ----------
    points : ndarray, shape (m, b, d)
        m sets. A point of weight 0 is not there; a set without points has NaN centres.
    weights : ndarray, shape (m, b)
        Not negative.
    uniforms : ndarray, shape (restarts, m, k)
        In [0, 1): all the randomness, drawn beforehand, so that no set's randomness depends on another set.
    n_iter : int
        Steps of Lloyd's algorithm of each start.
    device : str, optional
        A device of torch, e.g. "cpu" or "cuda". Default: NumPy.

    Returns
    -------
    centres : ndarray, shape (m, k, d)
        A centre without points stays where it was; with fewer distinct points than centres some coincide.
    cost : ndarray, shape (m,)

    Notes
    -----
    Set i's result is a function of ``points[i]``, ``weights[i]``, ``uniforms[:, i]`` and of the shapes alone: products
    of matrices are made set by set. Values that overflow give NaN or infinite centres of their own set.

    Examples
    --------
    >>> points = np.array([[[0.0], [1.0], [10.0], [11.0]]])
    >>> centres, cost = batched_kmeans(points, np.ones((1, 4)), np.random.default_rng(0).random((3, 1, 2)))
    >>> sorted(centres[0, :, 0].tolist()), float(cost[0])
    ([0.5, 10.5], 1.0)
    """
    restarts, m, k = uniforms.shape
    b, d = points.shape[1:]
    centres, costs = np.full((m, k, d), np.nan), np.full(m, np.nan)
    size = max(1, _BYTES_AT_ONCE // (8 * max(1, b) * (2 * d + 3 * k)))
    xp: Any = np
    if device is not None:
        import torch

        xp = torch
    for start in range(0, m, size):
        part = slice(start, start + size)
        x, w, u = (_array(a, xp, device) for a in (points[part], weights[part], uniforms[:, part]))
        with np.errstate(all="ignore"):
            total = w.sum(1)
            origin = (x * w[:, :, None]).sum(1) / total[:, None]  # differences of far-off points keep their digits
            x = x - origin[:, None, :]
            x = xp.where(w[:, :, None] > 0, x, xp.zeros_like(x))
            best: Any = None
            best_cost: Any = None
            for r in range(restarts):
                c = _seeds(x, w, u[r], xp)
                c, cost = _lloyd(x, w, c, n_iter, xp)
                if best is None:
                    best, best_cost = c, cost
                else:
                    better = cost < best_cost
                    best = xp.where(better[:, None, None], c, best)
                    best_cost = xp.where(better, cost, best_cost)
            best = xp.where((total > 0)[:, None, None], best + origin[:, None, :], xp.full_like(best, np.nan))
        centres[part], costs[part] = (a if xp is np else a.cpu().numpy() for a in (best, best_cost))
    return centres, costs


def _array(values: np.ndarray, xp: Any, device: str | None) -> Any:
    values = np.ascontiguousarray(values, dtype=np.float64)
    return values if xp is np else xp.as_tensor(values, device=device)


def _squares(x: Any, c: Any) -> Any:
    """Squared distances less the points' own squared norms, shape (m, b, k)."""
    return (c * c).sum(2)[:, None, :] - 2.0 * (x @ c.swapaxes(1, 2))


def _seeds(x: Any, w: Any, u: Any, xp: Any) -> Any:
    """k-means++: each next centre is a point drawn in proportion to its squared distance from those before it."""
    m, b = w.shape
    k = u.shape[1]
    rows = xp.arange(m) if xp is np else xp.arange(m, device=x.device)
    square_norms = (x * x).sum(2)
    chance = w
    picked = []
    nearest = None
    for j in range(k):
        mass = chance.cumsum(1)
        index = (mass <= u[:, j : j + 1] * mass[:, -1:]).sum(1)
        # All mass 0 (fewer distinct points than centres), or a comparison with NaN: the first point, which is there.
        index = xp.where(index < b, index, xp.zeros_like(index))
        c = x[rows, index]
        picked.append(c)
        square = square_norms + _squares(x, c[:, None, :])[:, :, 0]
        square = xp.where(square > 0, square, xp.zeros_like(square))
        nearest = square if nearest is None else xp.where(square < nearest, square, nearest)
        chance = w * nearest
    return xp.stack(picked, 1)


def _lloyd(x: Any, w: Any, c: Any, n_iter: int, xp: Any) -> tuple[Any, Any]:
    k = c.shape[1]
    numbers = xp.arange(k) if xp is np else xp.arange(k, device=x.device)
    for _ in range(n_iter):
        member = (_squares(x, c).argmin(2)[:, :, None] == numbers) * w[:, :, None]
        counts = member.sum(1)[:, :, None]
        means = (member.swapaxes(1, 2) @ x) / counts
        c = xp.where(counts > 0, means, c)
    square = (x * x).sum(2)[:, :, None] + _squares(x, c)
    smallest = square.min(2) if xp is np else square.amin(2)
    smallest = xp.where(smallest > 0, smallest, xp.zeros_like(smallest))
    return c, (w * smallest).sum(1)

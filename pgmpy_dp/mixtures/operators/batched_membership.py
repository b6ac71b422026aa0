"""Centres of many small sets of points at once, by the membership program of Chen et al. (2023), section 6.

Its lowest degree, 2. For a set of N points y_i, c = N/k and a scale sigma, W minimises ``||J - W||_F**2`` (J all ones)
over the symmetric matrices that are semidefinite, have entries in [0, 1], rows of at most c, no entry beyond a reach,
and

    sum_ij W_ij (y_i - y_j)(y_i - y_j)' <= 2 (1 + alpha) (N**2/k) sigma**2 I.

Its dual is smooth: with multipliers P >= 0 and M >= 0 (semidefinite) and u >= 0 of the rows the Lagrangian is least at

    W(P, M, u) = clip(J + P - A*(M) - (u 1' + 1 u')/2, 0, 1),    A*(M)_ij = (y_i - y_j)' M (y_i - y_j),

and the violations there are its gradient. The solver is a fixed number of steps of projected ascent with Nesterov's
momentum, restarted in each set where it points down (O'Donoghue and Candès 2015). That is crude, and enough to read
groups from.

Sets do not see each other. Every operation is on the entries of one set, a product of its matrices, or its
eigendecomposition. Steps are counted, and none is left out. On a device of torch semidefinite parts are made by
products alone (``_semidefinite``), which cannot fail, and which a GPU is much faster at.

In the code, where m sets of b points with d numbers each are taken at once:

===========  ============  ================================================================
letter       shape         meaning
===========  ============  ================================================================
``y``        (m, b, d)     the points, 0 where there is none
``w``        (m, b, b)     W
``p``        (m, b, b)     P, the multiplier of W's being semidefinite
``q``        (m, d, d)     M, the multiplier of the bound on second moments
``u``        (m, b)        u, the multiplier of the rows' sums
``xp``                     NumPy or torch
===========  ============  ================================================================
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

_SLACK = 0.5  # alpha
_STEPS = 40
_POLISH = 2  # steps of Lloyd's algorithm after the program
_BYTES_AT_ONCE = 1 << 26
_LARGEST = 1e150
_GROWING, _CLOSING = 12, 4  # steps of :func:`_semidefinite`


def public_reach(n_features: int, count: int, scale: float) -> float:
    """A distance that records of one cluster do not have: 32 times what `count` normal ones do.

    Two of them differ by a normal vector of scale ``sqrt(2) scale``, which is longer than
    ``sqrt(2) scale (sqrt(d) + sqrt(2 t))`` with probability at most exp(-t). With ``t = 2 ln(count) + 3`` that
    is below 1/40 for all pairs together.
    """
    tail = 2.0 * math.log(max(count, 1)) + 3.0
    return 32.0 * math.sqrt(2.0) * scale * (math.sqrt(n_features) + math.sqrt(2.0 * tail))


def batched_membership(
    points: np.ndarray,
    used: np.ndarray,
    n_clusters: int,
    scale: float,
    *,
    n_steps: int = _STEPS,
    device: str | None = None,
) -> np.ndarray:
    """k centres of each set of points: those of the k largest groups of points that the program links.

    The first centre of a set is the mean of the points linked to the best linked one; what belongs to it (linked by
    more than 1/2, or as near to it as a cluster's points are) is set aside, and so on, k times; two steps of Lloyd's
    algorithm follow, without points that are near to no centre. With fewer groups than k, centres repeat.

    Parameters
    ----------
    points : ndarray, shape (m, b, d)
        m sets. Numbers beyond 1e150 count as that, those that are not finite as 0.
    used : ndarray, shape (m, b)
        A point for which it is 0 is not there.
    n_clusters : int
        k.
    scale : float
        sigma, public: the standard deviation of a cluster in each direction.
    n_steps : int
        Of the ascent.
    device : str, optional
        A device of torch, e.g. "cpu" or "cuda". Default: NumPy.

    Returns
    -------
    ndarray, shape (m, k, d)
        NaN for a set without points. Nothing is drawn.

    Notes
    -----
    Set i's result is a function of ``points[i]``, ``used[i]`` and of the shapes alone.

    Examples
    --------
    >>> points = np.array([[[0.0], [0.2], [9.0], [9.2]], [[7.0], [7.0], [7.0], [7.0]]])
    >>> batched_membership(points, np.array([[1, 1, 1, 1], [0, 0, 0, 0]]), 2, 0.1).round(1).tolist()
    [[[0.1], [9.1]], [[nan], [nan]]]
    """
    m, b, d = points.shape
    xp: Any = np
    if device is not None:
        import torch

        xp = torch
    centres = np.full((m, n_clusters, d), np.nan)
    if b == 0:
        return centres
    size = max(1, _BYTES_AT_ONCE // (8 * max(1, b * (12 * b + 4 * d))))
    for start in range(0, m, size):
        part = slice(start, start + size)
        there = np.asarray(used[part]) > 0
        y = np.clip(np.nan_to_num(np.asarray(points[part], dtype=np.float64)), -_LARGEST, _LARGEST)
        y = np.where(there[:, :, np.newaxis], y, 0.0)
        with np.errstate(all="ignore"):
            linked = _linked(y, there, scale)
            count = there.sum(axis=1)
            unit = scale * count * math.sqrt(2.0 * (1.0 + _SLACK) / n_clusters)
            units = _centred(y, linked) / unit[:, None, None]
            limit = np.maximum(count, n_clusters) / n_clusters
            arrays: list[Any] = [np.nan_to_num(units), linked.astype(np.float64), limit]
            if xp is not np:
                arrays = [xp.as_tensor(np.ascontiguousarray(a), device=device) for a in arrays]
            w = _weights(arrays[0], arrays[1], arrays[2], n_steps, xp)
            w = w if xp is np else w.cpu().numpy()
            part_centres = _groups(y, there, w, n_clusters, scale)
        centres[part] = np.where(count[:, None, None] > 0, part_centres, np.nan)
    return centres


def _linked(y: np.ndarray, there: np.ndarray, scale: float) -> np.ndarray:
    """Who may belong together, shape (m, b, b)."""
    squares = np.zeros(y.shape[:2] + y.shape[1:2])
    for column in np.moveaxis(y, 2, 0):  # differences first: far-off points keep their digits
        squares += (column[:, :, None] - column[:, None, :]) ** 2
    reaches = np.array([public_reach(y.shape[2], size, scale) for size in range(y.shape[1] + 1)])
    near = squares <= (reaches[there.sum(axis=1)] ** 2)[:, None, None]
    return near & there[:, :, None] & there[:, None, :]


def _centred(y: np.ndarray, linked: np.ndarray) -> np.ndarray:
    """Each part that the reach leaves connected around a mean of its own: only differences matter."""
    y = y.copy()
    for rows, near in zip(y, linked, strict=True):
        n_parts, part = connected_components(near, directed=False)
        for p in range(n_parts):
            # From one of them first: far off, a mean is rounded by more than they differ.
            apart = rows[part == p] - rows[np.argmax(part == p)]
            rows[part == p] = apart - apart.mean(axis=0)
    return y


def _weights(y: Any, linked: Any, limit: Any, n_steps: int, xp: Any) -> Any:
    """W after so many steps, shape (m, b, b), for points in units in which the bound on the moments is the identity."""
    m, b, d = y.shape
    turned = y.swapaxes(1, 2)
    eye = xp.eye(d, dtype=y.dtype) if xp is np else xp.eye(d, dtype=y.dtype, device=y.device)

    def moments(w: Any) -> Any:
        return 2.0 * (turned @ (y * w.sum(2)[:, :, None]) - turned @ (w @ y))

    def adjoint(q: Any) -> Any:
        image = y @ q
        squares = (image * y).sum(2)
        return (squares[:, :, None] + squares[:, None, :] - 2.0 * (image @ turned)) * linked

    def total(entries: Any) -> Any:
        return entries.reshape(m, -1).sum(1)

    leading = turned @ y + 1e-300
    for _ in range(20):  # the largest eigenvalue of A A*, from above
        leading = leading / xp.clip(total(leading * leading) ** 0.5, 1e-300, None)[:, None, None]
        leading = moments(adjoint(leading))
    largest = xp.clip(1.2 * total(leading * leading) ** 0.5, 1e-12, None)
    steps = (1.0 / 3.0, 1.0 / (3.0 * largest), 1.0 / (3.0 * b))
    p, q, u = 0.0 * linked, 0.0 * leading, 0.0 * y[:, :, 0]
    ahead, momentum = (p, q, u), 0.0 * limit + 1.0
    for _ in range(n_steps):
        w = _primal(*ahead, adjoint, linked, xp)
        new = (
            _semidefinite(ahead[0] - steps[0] * w, xp),
            _semidefinite(ahead[1] + steps[1][:, None, None] * (moments(w) - eye), xp),
            xp.clip(ahead[2] + steps[2] * (w.sum(2) - limit[:, None]), 0.0, None),
        )
        moves = [after - before for after, before in zip(new, (p, q, u), strict=True)]
        rises = [total((start - after) * move) for start, after, move in zip(ahead, new, moves, strict=True)]
        # The gradient is (new - ahead)/step: the momentum points down where it and the move disagree.
        down = rises[0] / steps[0] + rises[1] / steps[1] + rises[2] / steps[2] > 0
        p, q, u = new
        following = (1.0 + (1.0 + 4.0 * momentum**2) ** 0.5) / 2.0
        push = xp.where(down, 0.0 * momentum, (momentum - 1.0) / following)
        momentum = xp.where(down, 0.0 * momentum + 1.0, following)
        ahead = tuple(
            after + push.reshape(-1, *[1] * (after.ndim - 1)) * move for after, move in zip(new, moves, strict=True)
        )
    return _primal(p, q, u, adjoint, linked, xp)


def _primal(p: Any, q: Any, u: Any, adjoint: Any, linked: Any, xp: Any) -> Any:
    return xp.clip(1.0 + p - adjoint(q) - 0.5 * (u[:, :, None] + u[:, None, :]), 0.0, 1.0) * linked


def _semidefinite(a: Any, xp: Any) -> Any:
    """The semidefinite matrix nearest to each symmetric one.

    On torch it is ``(A + |A|)/2`` with ``|A| = A sign(A)``: the sign by Newton's method of products, whose first steps
    (of Jordan et al. 2024) let small eigenvalues grow 3.4-fold and the others oscillate about 1, and whose last ones
    converge. Eigenvalues below 4e-7 of the matrix's norm keep part of their sign's error, at most that much.
    """
    a = 0.5 * (a + a.swapaxes(1, 2))
    if xp is np:
        values, vectors = _eigenpairs(a)
        return (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2)
    x = a / xp.clip((a * a).reshape(len(a), -1).sum(1) ** 0.5, 1e-300, None)[:, None, None]
    eye = xp.eye(a.shape[1], dtype=a.dtype, device=a.device)
    for first, third, fifth in [(3.4445, -4.775, 2.0315)] * _GROWING + [(1.875, -1.25, 0.375)] * _CLOSING:
        square = x @ x
        x = x @ (first * eye + third * square + fifth * (square @ square))
    return 0.5 * (a + a @ x)


def _eigenpairs(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of each symmetric matrix; NaN for one that LAPACK gives up on, which no other may notice."""
    try:
        return np.linalg.eigh(a)
    except np.linalg.LinAlgError:
        values, vectors = np.full(a.shape[:2], np.nan), np.full(a.shape, np.nan)
        for i, matrix in enumerate(a):
            with contextlib.suppress(np.linalg.LinAlgError):
                values[i], vectors[i] = np.linalg.eigh(matrix)
        return values, vectors


def _groups(y: np.ndarray, there: np.ndarray, w: np.ndarray, k: int, scale: float) -> np.ndarray:
    """k centres of each set, read from its weights."""
    m, _, d = y.shape
    rows, left = np.arange(m), there.copy()
    count = np.maximum(there.sum(axis=1), 1)
    radius = scale * (math.sqrt(d) + np.sqrt(2.0 * np.log(count) + 2.0))
    strong = w * (w > 0.5)
    centres = np.zeros((m, k, d))
    for c in range(k):
        # Groups are read at 1/2: at small separations the program spreads weight over other clusters, below that.
        strength = np.where(left, (strong * left[:, None, :]).sum(axis=2), -1.0)
        first = np.argmax(strength, axis=1)
        origin = y[rows, first]
        group = left & (w[rows, first] > 0.5)
        group[rows, first] = left[rows, first]
        centre = _mean(y, group, origin)
        # A point in a cluster's tail is linked less; it must not become a centre of its own.
        group |= left & (np.sqrt(((y - centre[:, None, :]) ** 2).sum(axis=2)) <= radius[:, None])
        somebody = np.any(left, axis=1, keepdims=True)
        centres[:, c] = np.where(somebody, _mean(y, group, origin), centres[:, 0])
        left &= ~group
    for _ in range(_POLISH):
        distance = np.sqrt(((y[:, :, None, :] - centres[:, None, :, :]) ** 2).sum(axis=3))
        # Who is further from every centre than a cluster's points are belongs to none.
        nearest = np.where(there & (distance.min(axis=2) <= radius[:, None]), np.argmin(distance, axis=2), -1)
        for c in range(k):
            centres[:, c] = _mean(y, nearest == c, centres[:, c])
    return centres


def _mean(y: np.ndarray, group: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """The mean of a group of each set, as differences from a point; the point itself where the group is empty."""
    total = np.where(group[:, :, None], y - origin[:, None, :], 0.0).sum(axis=1)
    return origin + total / np.maximum(group.sum(axis=1), 1)[:, None]

"""Which records belong together, by a semidefinite program: degree 2 of the one of Chen et al. (2023), section 6.

:mod:`pgmpy_dp.mixtures.membership_problem` has the program, its dual function and the certificate. The dual function is
concave with a Lipschitz gradient, made of the violations at W(P, M, u): it is maximised by projected ascent with
Nesterov's momentum, restarted where the momentum points down (O'Donoghue and Candès 2015), each block of multipliers
with a step of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmpy_dp.mixtures.membership_problem import MembershipPoint, MembershipProblem

# letter     in code    meaning
# y          y          records, shape (N, d)
# W          w          weights, shape (N, N): which records belong together
# P, M, u    p, m, u    multipliers: of the semidefinite set, shape (N, N), the moments, (d, d), and the rows, (N,)
# A, A*                 moments of weights (`problem.moments`), and its adjoint (`problem.adjoint`)

_EVERY = 10  # steps between two certificates, which cost an eigenvalue decomposition more


@dataclass(frozen=True, eq=False, repr=False)
class Membership(MembershipPoint):
    """Where the program ended.

    Attributes
    ----------
    weights : ndarray, shape (N, N)
        W, of K(y) up to rounding.
    objective : float
        ``||J - W||_F^2``.
    distance : float
        ``||W - W*||_F`` from the exact optimum is at most this.
    residuals : dict
        Largest violation of each set by `weights`: "semidefinite", "box", "rows" and, relative to its bound, "moments".
    converged : bool
        Whether `distance` is at most the tolerance.
    n_iter : int
    status : str
        How it ended, in words.
    multipliers : tuple of three ndarrays
        P, M and u: what proves it.
    """

    converged: bool
    n_iter: int
    status: str
    multipliers: tuple[np.ndarray, np.ndarray, np.ndarray]


def membership_program(
    points: np.ndarray,
    n_clusters: int,
    scale: float,
    *,
    slack: float = 0.5,
    count: int | None = None,
    reach: float = math.inf,
    tolerance: float | None = None,
    max_iter: int | None = 5000,
    device: str | None = None,
) -> Membership:
    """Minimise ``||J - W||_F^2`` over K(y); see :mod:`pgmpy_dp.mixtures.membership_problem`.

    Parameters
    ----------
    points : ndarray, shape (N, d)
        y, finite.
    n_clusters : int
        k.
    scale : float
        sigma, positive: the standard deviation of a cluster in each direction.
    slack : float
        alpha, not negative.
    count : int, optional
        n, at least k. Default: N (or k, if that is more).
    reach : float
        In the units of the points: records further apart are never linked. A reach of some hundred scales changes
        nothing for clusters of less extent, and keeps far-off records out of the moments, where they slow the solver
        down and take its digits.
    tolerance : float, optional
        Certified distance at which to stop. Default: a hundredth of ``n/sqrt(k)``, the norm of k equal clusters.
    max_iter : int, optional
        None: go on until the tolerance is certified.
    device : str, optional
        A device of torch, e.g. "cpu" or "cuda". Default: NumPy.

    Returns
    -------
    Membership

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> found = membership_program(points, 2, 0.1, tolerance=1e-3)
    >>> found.weights.round(2)[0].tolist(), found.converged
    ([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], True)
    """
    y = np.asarray(points, dtype=np.float64)
    size = len(y)
    n = max(size, n_clusters) if count is None else count
    if not n >= n_clusters >= 1:
        raise ValueError(f"count={count!r} is below n_clusters={n_clusters!r}; pass at least one record per cluster")
    if tolerance is None:
        tolerance = 0.01 * n / math.sqrt(n_clusters)
    if size == 0:
        nothing = np.zeros((0, 0)), np.zeros(y.shape[1:] * 2), np.zeros(0)
        return Membership(nothing[0], 0.0, 0.0, dict.fromkeys(_SETS, 0.0), True, 0, "no records", nothing)
    problem = MembershipProblem.of(y, n_clusters, scale, slack, n, reach)
    if device is not None:
        import torch  # here, so that the package can be imported without it

        tensors = [torch.as_tensor(array, device=device) for array in (problem.y, problem.linked)]
        problem = replace(problem, y=tensors[0], linked=tensors[1], xp=torch)
    return _solved(problem, tolerance, max_iter)


_SETS = ("semidefinite", "box", "rows", "moments")


def _solved(problem: MembershipProblem, tolerance: float, max_iter: int | None) -> Membership:
    xp, size = problem.xp, len(problem.y)
    p, m, u = 0.0 * problem.linked, 0.0 * (problem.y.T @ problem.y), 0.0 * problem.y[:, 0]
    # Lipschitz constants of the three blocks; the whole is at most three times the blocks'.
    steps = (1.0 / 3.0, 1.0 / (3.0 * _norm(problem)), 1.0 / (3.0 * size))
    eye = xp.eye(len(m), dtype=m.dtype) if xp is np else xp.eye(len(m), dtype=m.dtype, device=m.device)
    ahead, momentum, n_iter = (p, m, u), 1.0, 0
    best: Membership | None = None
    while True:
        w = problem.primal(*ahead)
        slope = (-w, problem.moments(w) - eye, w.sum(1) - problem.row_limit)
        new = tuple(a + t * g for a, t, g in zip(ahead, steps, slope, strict=True))
        new = (problem.semidefinite(new[0]), problem.semidefinite(new[1]), xp.clip(new[2], 0.0, None))
        n_iter += 1
        last = max_iter is not None and n_iter >= max_iter
        if n_iter % _EVERY == 0 or last:
            found = _certified(problem, new, tolerance, n_iter)
            if best is None or found.distance < best.distance:
                best = found
            if best.converged or last:
                return best
        moves = [a - b for a, b in zip(new, (p, m, u), strict=True)]
        rise = sum(float(((b - a) * c).sum()) / t for a, b, c, t in zip(ahead, new, moves, steps, strict=True))
        p, m, u = new
        if rise < 0:
            momentum, ahead = 1.0, new
        else:
            following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            ahead = tuple(a + (momentum - 1.0) / following * c for a, c in zip(new, moves, strict=True))
            momentum = following


def _norm(problem: MembershipProblem) -> float:
    """About the largest eigenvalue of A A*, from above: by the power method, and 1 at least where it is tiny."""
    m = problem.y.T @ problem.y
    m = m + 1e-300 * (m == 0)
    value = 0.0
    for _ in range(30):
        m = m / max(float((m * m).sum()) ** 0.5, 1e-300)
        m = problem.moments(problem.adjoint(m))
        value = float((m * m).sum()) ** 0.5
    return max(1.2 * value, 1e-12)


def _certified(problem: MembershipProblem, multipliers: Any, tolerance: float, n_iter: int) -> Membership:
    point = problem.point(*multipliers)
    converged = point.distance <= tolerance
    status = "certified" if converged else f"stopped after {n_iter} steps, above the tolerance"
    weights, p, m, u = (a if isinstance(a, np.ndarray) else a.cpu().numpy() for a in (point.weights, *multipliers))
    return Membership(weights, point.objective, point.distance, point.residuals, converged, n_iter, status, (p, m, u))

"""Which records belong together, by a semidefinite program: degree 2 of the one of Chen et al. (2023), section 6.

For records y_1, ..., y_N, a number of clusters k, a number n (their count, or a public number above it), c = n/k, a
slack alpha and a scale sigma, minimise ``||J - W||_F^2`` (J all ones) over the set K(y) of symmetric matrices with

    (semidefinite)   W >= 0,
    (box)            0 <= W_ij <= 1,
    (rows)           sum_j W_ij <= c,
    (moments)        sum_ij W_ij (y_i - y_j)(y_i - y_j)' <= 2 (1 + alpha) (n^2/k) sigma^2 I,
    (reach)          W_ij = 0 where |y_i - y_j| > reach.

The matrix of the true clusters has W_ij = 1 within a cluster and 0 across. Every one of these sets stays closed when a
record's row and column are set to zero, and then no longer depends on that record; the objective is strongly convex: so
one record moves the optimum little (``private/learners/mixture_sdp.md``).

Solved in the dual
------------------
With multipliers P >= 0 (semidefinite), M >= 0 (d x d), u >= 0 (of the rows) the Lagrangian of half the objective has
its minimum over the box, for each entry by itself, at

    W(P, M, u) = clip(J + P - A*(M) - (u 1' + 1 u')/2, 0, 1),    A*(M)_ij = (y_i - y_j)' M (y_i - y_j),

0 beyond the reach. The dual function is concave with a Lipschitz gradient, made of the violations at W(P, M, u): it is
maximised by projected ascent with Nesterov's momentum, restarted where the momentum points down (O'Donoghue and Candes
2015), each block of multipliers with a step of its own.

Certified
---------
The value of the dual function at any multipliers is a lower bound L of the optimum. From a W in the box a point of K(y)
is made by scaling rows and columns (rows), then mixing with the identity (semidefinite: the identity is in K(y)) and
scaling (moments). If half its objective is F, then half its squared distance from the optimum W* is at most
``F - F* <= F - L`` (strong convexity), so ``||W - W*||_F <= sqrt(2 (F - L))``, whatever made it. A margin for rounding,
relative to the terms of F and L, is added; it is an estimate, far above what double precision loses, not an enclosure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

__all__ = ["Membership", "membership_program"]

_ROUNDING = 1e-11  # of the certificate, relative to its terms: hundreds of times what sums and eigenvalues round by
_EVERY = 10  # steps between two certificates, which cost an eigenvalue decomposition more


@dataclass(frozen=True, eq=False)
class Membership:
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
    """

    weights: np.ndarray
    objective: float
    distance: float
    residuals: dict[str, float]
    converged: bool
    n_iter: int
    status: str

    def __repr__(self) -> str:
        # Weights of private records: nothing that depends on them is printed.
        return f"Membership(hidden, shape={self.weights.shape})"


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
    """Minimise ``||J - W||_F^2`` over K(y); see the module.

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
        return Membership(np.zeros((0, 0)), 0.0, 0.0, dict.fromkeys(_SETS, 0.0), True, 0, "no records")
    problem = _Problem.of(y, n / n_clusters, 2 * (1 + slack) * n * n / n_clusters * scale**2, reach, device)
    return problem.solve(tolerance, max_iter)


_SETS = ("semidefinite", "box", "rows", "moments")


@dataclass(frozen=True, eq=False)
class _Problem:
    """The program in units in which the bound on the moments is the identity."""

    y: Any  # (N, d), each part that the reach leaves connected around a mean of its own: only differences matter
    linked: Any  # (N, N), 1 within reach, else 0
    row_limit: float
    xp: Any

    @classmethod
    def of(cls, y: np.ndarray, row_limit: float, moment_limit: float, reach: float, device: str | None) -> _Problem:
        squares = np.zeros((len(y), len(y)))
        with np.errstate(over="ignore"):
            for column in y.T:  # differences first: far-off records keep their digits
                squares += (column[:, None] - column[None, :]) ** 2
            linked = squares <= reach * reach
        n_parts, part = connected_components(linked, directed=False)
        y = y.copy()
        for p in range(n_parts):
            y[part == p] -= y[part == p].mean(axis=0)
        y /= math.sqrt(moment_limit)
        if device is None:
            return cls(y, linked.astype(np.float64), row_limit, np)
        import torch  # here, so that the package can be imported without it

        floats = linked.astype(np.float64)
        return cls(torch.as_tensor(y, device=device), torch.as_tensor(floats, device=device), row_limit, torch)

    def moments(self, w: Any) -> Any:
        """A(W) = sum_ij W_ij (y_i - y_j)(y_i - y_j)'."""
        return 2.0 * (self.y.T @ (self.y * w.sum(1)[:, None]) - self.y.T @ (w @ self.y))

    def adjoint(self, m: Any) -> Any:
        """A*(M), 0 beyond the reach."""
        z = self.y @ m
        q = (z * self.y).sum(1)
        return (q[:, None] + q[None, :] - 2.0 * (z @ self.y.T)) * self.linked

    def primal(self, p: Any, m: Any, u: Any) -> Any:
        """W(P, M, u)."""
        return self.xp.clip(1.0 + p - self.adjoint(m) - 0.5 * (u[:, None] + u[None, :]), 0.0, 1.0) * self.linked

    def solve(self, tolerance: float, max_iter: int | None) -> Membership:
        xp, size = self.xp, len(self.y)
        p, m, u = 0.0 * self.linked, 0.0 * (self.y.T @ self.y), 0.0 * self.y[:, 0]
        # Lipschitz constants of the three blocks; the whole is at most three times the blocks'.
        steps = (1.0 / 3.0, 1.0 / (3.0 * self._norm()), 1.0 / (3.0 * size))
        eye = xp.eye(len(m), dtype=m.dtype) if xp is np else xp.eye(len(m), dtype=m.dtype, device=m.device)
        ahead, momentum, n_iter = (p, m, u), 1.0, 0
        best: Membership | None = None
        while True:
            w = self.primal(*ahead)
            slope = (-w, self.moments(w) - eye, w.sum(1) - self.row_limit)
            new = tuple(a + t * g for a, t, g in zip(ahead, steps, slope, strict=True))
            new = (self._semidefinite(new[0]), self._semidefinite(new[1]), xp.clip(new[2], 0.0, None))
            n_iter += 1
            last = max_iter is not None and n_iter >= max_iter
            if n_iter % _EVERY == 0 or last:
                found = self._certified(new, tolerance, n_iter)
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

    def _norm(self) -> float:
        """About the largest eigenvalue of A A*, from above: by the power method, and 1 at least where it is tiny."""
        m = self.y.T @ self.y
        m = m + 1e-300 * (m == 0)
        value = 0.0
        for _ in range(30):
            m = m / max(float((m * m).sum()) ** 0.5, 1e-300)
            m = self.moments(self.adjoint(m))
            value = float((m * m).sum()) ** 0.5
        return max(1.2 * value, 1e-12)

    def _semidefinite(self, a: Any) -> Any:
        """The semidefinite matrix nearest to a symmetric one."""
        values, vectors = self.xp.linalg.eigh(0.5 * (a + a.T))
        kept = vectors * self.xp.clip(values, 0.0, None)
        return kept @ vectors.T

    def _certified(self, multipliers: Any, tolerance: float, n_iter: int) -> Membership:
        xp, size = self.xp, len(self.y)
        p, m, u = multipliers
        w = self.primal(p, m, u)
        rows = w.sum(1)
        terms = (
            0.5 * float(((1.0 - w) ** 2).sum()),
            -float((p * w).sum()),
            float((m * self.moments(w)).sum()),
            -float(m.diagonal().sum()),
            float((u * (rows - self.row_limit)).sum()),
        )
        bound = math.fsum(terms)
        # Of sums of as large terms, and of multipliers that are semidefinite up to rounding.
        rounding = _ROUNDING * (size * size + math.fsum(map(abs, terms)) + size * float((p * p).sum()) ** 0.5)
        # Into K(y): D W D with the diagonal D of min(1, c/row) has rows of at most c, by twice the shrinking needed.
        shrink = xp.clip(self.row_limit / xp.clip(rows, self.row_limit, None), None, 1.0)
        w = w * shrink[:, None] * shrink[None, :]
        short = max(0.0, -float(xp.linalg.eigvalsh(w)[0]))
        mixed = short / (1.0 + short)
        w = (1.0 - mixed) * w
        w.reshape(-1)[:: size + 1] += mixed
        largest = float(xp.linalg.eigvalsh(self.moments(w))[-1])
        w = w / max(1.0, largest)
        objective = float(((1.0 - w) ** 2).sum())
        gap = max(0.0, 0.5 * objective - bound) + rounding
        distance = math.sqrt(2.0 * gap)
        residuals = {
            "semidefinite": max(0.0, -float(xp.linalg.eigvalsh(w)[0])),
            "box": max(0.0, -float(w.min()), float(w.max()) - 1.0),
            "rows": max(0.0, float(w.sum(1).max()) - self.row_limit),
            "moments": max(0.0, largest / max(1.0, largest) - 1.0),
        }
        converged = distance <= tolerance
        status = "certified" if converged else f"stopped after {n_iter} steps, above the tolerance"
        weights = w if xp is np else w.cpu().numpy()
        return Membership(weights, objective, distance, residuals, converged, n_iter, status)

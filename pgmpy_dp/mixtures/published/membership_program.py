"""The membership program of Chen et al. (2023), section 6, at degree 2: its sets, its dual, and a certificate.

For records y_1, ..., y_N, a number of clusters k, a number n (their count, or a public number above it), c = n/k, a
slack alpha and a scale sigma, minimise ``||J - W||_F^2`` (J all ones) over the set K(y) of symmetric matrices with

    (semidefinite)   W >= 0,
    (box)            0 <= W_ij <= 1,
    (rows)           sum_j W_ij <= c,
    (moments)        sum_ij W_ij (y_i - y_j)(y_i - y_j)' <= 2 (1 + alpha) (n^2/k) sigma^2 I,
    (reach)          W_ij = 0 where |y_i - y_j| > reach.

The matrix of the true clusters has W_ij = 1 within a cluster and 0 across. Every one of these sets stays closed when a
record's row and column are set to zero, and then no longer depends on that record; the objective is strongly convex: so
one record moves the optimum little (``theory/membership_records.md``).

The dual
--------
With multipliers P >= 0 (semidefinite), M >= 0 (d x d), u >= 0 (of the rows) the Lagrangian of half the objective has
its minimum over the box, for each entry by itself, at

    W(P, M, u) = clip(J + P - A*(M) - (u 1' + 1 u')/2, 0, 1),    A*(M)_ij = (y_i - y_j)' M (y_i - y_j),

0 beyond the reach. The value of the dual function at any multipliers is a lower bound L of the optimum.

Certified
---------
From W(P, M, u), which is in the box, a point of K(y) is made by scaling rows and columns (rows), then mixing with the
identity (semidefinite: the identity is in K(y)) and scaling (moments). If half its objective is F, then half its
squared distance from the optimum W* is at most ``F - F* <= F - L`` (strong convexity), so ``||W - W*||_F <= sqrt(2 (F -
L))``, whatever made the multipliers. A margin for rounding, relative to the terms of F and L and to the multipliers, is
added; it is an estimate, far above what double precision loses, not an enclosure.

The dual function is concave with a Lipschitz gradient, made of the violations at W(P, M, u): it is maximised by
projected ascent with Nesterov's momentum, restarted where the momentum points down (O'Donoghue and Candès 2015), each
block of multipliers with a step of its own. No guarantee depends on the certificate; the solver stops by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from pgmpy_dp.learning.devices import chosen_device
from pgmpy_dp.mixtures.operators.batched_membership import batched_membership
from pgmpy_dp.shown import quantity

# letter     in code    meaning
# y          y          records, shape (N, d)
# W          w          weights, shape (N, N): which records belong together
# P, M, u    p, m, u    multipliers: of the semidefinite set, shape (N, N), the moments, (d, d), and the rows, (N,)
# A, A*                 moments of weights (`problem.moments`), and its adjoint (`problem.adjoint`)

_EVERY = 10  # steps between two certificates, which cost an eigenvalue decomposition more
_ROUNDING = 1e-11  # of the certificate, relative to its terms: hundreds of times what sums and eigenvalues round by


@dataclass(frozen=True, eq=False)
class MembershipPoint:
    """A point of K(y) and what is proved about it; functions of the records.

    Attributes
    ----------
    weights : array, shape (N, N)
        W, of K(y) up to rounding.
    objective : float
        ``||J - W||_F^2``.
    distance : float
        ``||W - W*||_F`` from the exact optimum is at most this.
    residuals : dict
        Largest violation of each set by `weights`: "semidefinite", "box", "rows" and, relative to its bound, "moments".
    """

    weights: Any
    objective: float
    distance: float
    residuals: dict[str, float]

    def __repr__(self) -> str:
        # Weights of private records: nothing that depends on them is printed.
        return f"{type(self).__name__}(hidden, shape={tuple(self.weights.shape)})"


@dataclass(frozen=True, eq=False)
class MembershipProblem:
    """The program of some records, in units in which the bound on the moments is the identity; see :meth:`of`.

    Attributes
    ----------
    y : array, shape (N, d)
        The records. Each part that the reach leaves connected has mean 0, as only differences matter.
    linked : array, shape (N, N)
        1 within reach, else 0.
    row_limit : float
        c.
    """

    y: Any
    linked: Any
    row_limit: float

    @classmethod
    def of(
        cls, points: np.ndarray, n_clusters: int, scale: float, slack: float, count: int, reach: float
    ) -> MembershipProblem:
        """The program for the records `points`, shape (N, d); the other arguments are k, sigma, alpha, n, the reach."""
        y = np.array(points, dtype=np.float64)
        squares = np.zeros((len(y), len(y)))
        with np.errstate(over="ignore"):
            for column in y.T:  # differences first: far-off records keep their digits
                squares += (column[:, None] - column[None, :]) ** 2
            linked = squares <= reach * reach
        n_parts, part = connected_components(linked, directed=False)
        for p in range(n_parts):
            y[part == p] -= y[part == p].mean(axis=0)
        y /= math.sqrt(2 * (1 + slack) * count * count / n_clusters * scale**2)
        return cls(y, linked.astype(np.float64), count / n_clusters)

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
        return np.clip(1.0 + p - self.adjoint(m) - 0.5 * (u[:, None] + u[None, :]), 0.0, 1.0) * self.linked

    def semidefinite(self, a: Any) -> Any:
        """The semidefinite matrix nearest to a symmetric one."""
        values, vectors = np.linalg.eigh(0.5 * (a + a.T))
        kept = vectors * np.clip(values, 0.0, None)
        return kept @ vectors.T

    def point(self, p: Any, m: Any, u: Any) -> MembershipPoint:
        """A point of K(y) and its distance from the optimum, from multipliers in their cones.

        Parameters
        ----------
        p, m : array, shapes (N, N), (d, d)
            P and M, semidefinite.
        u : array, shape (N,)
            Not negative.

        Returns
        -------
        MembershipPoint
            Its distance is infinite where the arithmetic overflows.

        Examples
        --------
        >>> problem = MembershipProblem.of(np.array([[0.0], [200.0]]), 2, 1.0, 0.5, 2, 100.0)
        >>> exact = problem.point(np.zeros((2, 2)), np.zeros((1, 1)), np.zeros(2))
        >>> poor = problem.point(np.zeros((2, 2)), np.zeros((1, 1)), np.ones(2))
        >>> bool(exact.distance < 1e-4 < poor.distance), exact.weights.tolist()
        (True, [[1.0, 0.0], [0.0, 1.0]])
        """
        size = len(self.y)
        w = self.primal(p, m, u)
        rows = w.sum(1)
        terms = (
            0.5 * float(((1.0 - w) ** 2).sum()),
            -float((p * w).sum()),
            float((m * self.moments(w)).sum()),
            -float(m.diagonal().sum()),
            float((u * (rows - self.row_limit)).sum()),
        )
        bound = math.fsum(terms) if all(map(math.isfinite, terms)) else -math.inf
        # Of sums of as large terms, and of multipliers that are semidefinite up to rounding; then what the entries of W
        # and the terms lose where large multipliers nearly cancel.
        norms = [float((a * a).sum()) ** 0.5 for a in (p, m)]
        rounding = _ROUNDING * (size * size + math.fsum(map(abs, terms)) + size * norms[0])
        longest = float((self.y * self.y).sum(1).max())
        lost = norms[0] + 4.0 * longest * norms[1] + 2.0 * float(u.max())
        rounding += 2.0**-51 * (size + self.y.shape[1]) * size * size * lost
        # Into K(y): D W D with the diagonal D of min(1, c/row) has rows of at most c, by twice the shrinking needed.
        shrink = np.clip(self.row_limit / np.clip(rows, self.row_limit, None), None, 1.0)
        w = w * shrink[:, None] * shrink[None, :]
        short = max(0.0, -float(np.linalg.eigvalsh(w)[0]))
        mixed = short / (1.0 + short)
        w = (1.0 - mixed) * w
        w.reshape(-1)[:: size + 1] += mixed
        largest = float(np.linalg.eigvalsh(self.moments(w))[-1])
        w = w / max(1.0, largest)
        objective = float(((1.0 - w) ** 2).sum())
        gap = max(0.0, 0.5 * objective - bound) + rounding
        distance = math.sqrt(2.0 * gap) if gap >= 0.0 else math.inf  # also for NaN
        residuals = {
            "semidefinite": max(0.0, -float(np.linalg.eigvalsh(w)[0])),
            "box": max(0.0, -float(w.min()), float(w.max()) - 1.0),
            "rows": max(0.0, float(w.sum(1).max()) - self.row_limit),
            "moments": max(0.0, largest / max(1.0, largest) - 1.0),
        }
        return MembershipPoint(w, objective, distance, residuals)


@dataclass(frozen=True, eq=False, repr=False)
class Membership(MembershipPoint):
    """The result of the program.

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
) -> Membership:
    """Minimise ``||J - W||_F^2`` over K(y); see this module.

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

    Returns
    -------
    Membership

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> membership = membership_program(points, 2, 0.1, tolerance=1e-3)
    >>> membership.weights.round(2)[0].tolist(), membership.converged
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
    return _solved(MembershipProblem.of(y, n_clusters, scale, slack, n, reach), tolerance, max_iter)


_SETS = ("semidefinite", "box", "rows", "moments")


def _solved(problem: MembershipProblem, tolerance: float, max_iter: int | None) -> Membership:
    size = len(problem.y)
    p, m, u = 0.0 * problem.linked, 0.0 * (problem.y.T @ problem.y), 0.0 * problem.y[:, 0]
    # Lipschitz constants of the three blocks; the whole is at most three times the blocks'.
    steps = (1.0 / 3.0, 1.0 / (3.0 * _norm(problem)), 1.0 / (3.0 * size))
    eye = np.eye(len(m))
    ahead, momentum, n_iter = (p, m, u), 1.0, 0
    best: Membership | None = None
    while True:
        w = problem.primal(*ahead)
        slope = (-w, problem.moments(w) - eye, w.sum(1) - problem.row_limit)
        new = tuple(a + t * g for a, t, g in zip(ahead, steps, slope, strict=True))
        new = (problem.semidefinite(new[0]), problem.semidefinite(new[1]), np.clip(new[2], 0.0, None))
        n_iter += 1
        last = max_iter is not None and n_iter >= max_iter
        if n_iter % _EVERY == 0 or last:
            candidate = _certified(problem, new, tolerance, n_iter)
            if best is None or candidate.distance < best.distance:
                best = candidate
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
    status = "certified" if converged else f"stopped after {quantity(n_iter, 'step')}, above the tolerance"
    return Membership(**vars(point), converged=converged, n_iter=n_iter, status=status, multipliers=multipliers)


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
        A device of torch. Default: that of pgmpy's torch backend, if it is not the processor; else NumPy.

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
    centres = batched_membership(
        points[np.newaxis], used, n_clusters, scale, n_steps=n_steps, device=chosen_device(device)
    )
    return centres[0] if len(points) else np.zeros((n_clusters, points.shape[1]))

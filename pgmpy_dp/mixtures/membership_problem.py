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

The solver (``membership_program.py``) looks for multipliers. No guarantee rests on the certificate, which tells
the solver when to stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

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
        Each part that the reach leaves connected around a mean of its own: only differences matter.
    linked : array, shape (N, N)
        1 within reach, else 0.
    row_limit : float
        c.
    xp : module
        ``numpy``, or ``torch`` if the arrays are its tensors.
    """

    y: Any
    linked: Any
    row_limit: float
    xp: Any = np

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
        return self.xp.clip(1.0 + p - self.adjoint(m) - 0.5 * (u[:, None] + u[None, :]), 0.0, 1.0) * self.linked

    def semidefinite(self, a: Any) -> Any:
        """The semidefinite matrix nearest to a symmetric one."""
        values, vectors = self.xp.linalg.eigh(0.5 * (a + a.T))
        kept = vectors * self.xp.clip(values, 0.0, None)
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
        xp, size = self.xp, len(self.y)
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
        distance = math.sqrt(2.0 * gap) if gap >= 0.0 else math.inf  # also for NaN
        residuals = {
            "semidefinite": max(0.0, -float(xp.linalg.eigvalsh(w)[0])),
            "box": max(0.0, -float(w.min()), float(w.max()) - 1.0),
            "rows": max(0.0, float(w.sum(1).max()) - self.row_limit),
            "moments": max(0.0, largest / max(1.0, largest) - 1.0),
        }
        return MembershipPoint(w, objective, distance, residuals)

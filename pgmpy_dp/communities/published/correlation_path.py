"""Projection on correlation matrices along the central path: the last resort, with a bound on its steps.

For mu > 0 the program of :mod:`pgmpy_dp.communities.published.correlation_newton` with a barrier,

    minimise  ||X - Y||_F^2 / 2 - mu log det X    over  X > 0,  X_ii = 1/n,

has the smooth dual theta(y) whose gradient is diag(X(M)) - 1/n for M = Y + Diag(y). X(M) has the eigenvectors Q of M
and the eigenvalues x = (l + sqrt(l^2 + 4 mu))/2, so that X - M = mu X^-1. theta's Hessian is

    H h = diag(Q (W o (Q' Diag(h) Q)) Q'),     W_kl = x_k x_l/(x_k x_l + mu).

theta/mu is self-concordant. From a mu at which a start is known, mu is lowered to where ``n mu`` is small, and y kept
so near the minimum that the Newton decrement is at most 1/4: by a guess along the path while that works, and else by a
factor ``1 + 1/(20 sqrt(n))``, which always does. At the end the last Newton step gives a feasible X and a
semidefinite N that differ by Y off the diagonal and have ``<N, X> <= n mu``: that is what
:func:`pgmpy_dp.private.mathematics.certificates.certified_pair` wants to see. Proofs, rounding included:
``correlation_path.md``, beside this file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh

_DECREMENT = 0.25
_DIAGONAL = 0.35  # how far n X_ii may be from 1; a decrement of 1/4 leaves it between 4/5 and 4/3
_SHORT = 20.0  # of which the factor that always works is made
_TRIALS = 2  # longer steps that are tried before it
_DROPPED = 1e-12  # eigenvalues of W
_COVERED = 4e10  # n^2 times the row sum of Y: from there on the entries of H are too inexact for the proof
_COLUMNS = 128  # of a product that are summed at once: n/128 + 128 roundings in a row instead of n


@dataclass(frozen=True)
class ProjectionPair:
    """The result of a path: factors of X and of N.

    Attributes
    ----------
    factor : ndarray, shape (n, n)
        P; ``P P'`` has a diagonal of 1/n, up to rounding.
    dual_factor : ndarray, shape (n, n)
        G; ``P P' - Y - G G'`` is diagonal and ``||G' P||_F`` below a third of the accuracy, up to rounding.
    n_points : int
        Points whose eigenvalues were computed.
    """

    factor: np.ndarray
    dual_factor: np.ndarray
    n_points: int


def central_path(target: np.ndarray, accuracy: float) -> ProjectionPair:
    """Project a symmetric matrix on ``{X >= 0, X_ii = 1/n}``, in at most :func:`most_points` eigendecompositions.

    Parameters
    ----------
    target : ndarray, shape (n, n)
        Y, of two rows or more; its diagonal is taken as 0.
    accuracy : float
        The distance that :func:`~pgmpy_dp.private.mathematics.certificates.certified_pair` is to prove, in Frobenius
        norm. The path ends at a third of it and leaves the rest to rounding: proved from :func:`least_accuracy` on.

    Returns
    -------
    ProjectionPair

    Raises
    ------
    numpy.linalg.LinAlgError
        If LAPACK finds no eigenvalues, or a matrix that the proof says is positive definite is not: in arithmetic that
        is not as the proof assumes.

    Notes
    -----
    An eigendecomposition of Y + Diag(y) and one of W, some ten products of n x n matrices, for each point; 40 to 80
    points on the graphs of the tests.

    Examples
    --------
    >>> target = np.array([[0.0, 2.0, -2.0], [2.0, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    >>> pair = central_path(target, 1e-6)
    >>> np.round(3 * pair.factor @ pair.factor.T, 6).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    y_matrix = np.array(target, dtype=float)
    np.fill_diagonal(y_matrix, 0.0)
    n = len(y_matrix)
    mu, last = _ends(n, (n - 1) * float(np.abs(y_matrix).max(initial=0.0)), accuracy)
    short = math.log1p(1.0 / (_SHORT * math.sqrt(n)))
    point, step, count = _Point(y_matrix, np.full(n, 1.0 / n - n * mu), mu), 1.0, 1
    while point.mu > last:
        reached = None
        for _ in range(_TRIALS):
            length = min(step, math.log(point.mu / last) + short)
            if length <= short:
                break
            # The path is nearly straight in mu, where it is straight at all.
            guess = point.y + point.newton + math.expm1(-length) * point.tangent
            count += 1
            reached = _tried(y_matrix, guess, point.mu * math.exp(-length))
            if reached is not None:
                step = 2.0 * length
                break
            step = length / 4.0
        if reached is None:
            count += 1
            reached = _Point(y_matrix, point.y + point.newton, point.mu * math.exp(-short))
            step = max(step, 2.0 * short)
        point = reached
    return ProjectionPair(*point.pair(), count)


def most_points(n: int, row_sum: float, accuracy: float) -> int:
    """Bound on ``ProjectionPair.n_points``, from public numbers.

    Parameters
    ----------
    n : int
        Rows, two or more.
    row_sum : float
        n - 1 times the largest absolute entry of Y off the diagonal, at least.
    accuracy : float

    Examples
    --------
    >>> most_points(240, 512.0, 1.9e-4)
    28681
    """
    first, last = _ends(n, row_sum, accuracy)
    return 1 + (1 + _TRIALS) * math.ceil(math.log(first / last) / math.log1p(1.0 / (_SHORT * math.sqrt(n))) + 1.0)


def least_accuracy(n: int, row_sum: float) -> float | None:
    """``u (row_sum + 1)(3000 n^(3/2) + 30 n^2)``, u = 2^-53: from this accuracy on the proof covers rounding.

    None where it covers no accuracy: for ``n^2 (row_sum + 2)`` above 4e10, or `row_sum` above 1e9.

    Parameters
    ----------
    n, row_sum
        As of :func:`most_points`.

    Examples
    --------
    >>> least_accuracy(240, 512.0) < 1e-6
    True
    >>> least_accuracy(4000, 10_000.0)
    """
    if not (n * n * (row_sum + 2.0) <= _COVERED and row_sum <= 1e9):
        return None
    return 2.0**-53 * (row_sum + 1.0) * (3000.0 * n**1.5 + 30.0 * n * n)


def _ends(n: int, row_sum: float, accuracy: float) -> tuple[float, float]:
    """The first mu, for which a start is known, and the last: n of it is a ninth of the squared accuracy."""
    return 12.0 * (row_sum + 1.0) / math.sqrt(n), accuracy * accuracy / (9.0 * n)


def _tried(y_matrix: np.ndarray, y: np.ndarray, mu: float) -> _Point | None:
    """The point, if it is near the path."""
    try:
        point = _Point(y_matrix, y, mu)
    except (LinAlgError, ValueError):  # far from the path H may be singular, and y anything
        return None
    # Where the diagonal is as the decrement says, H is well conditioned, and so the decrement was computed well.
    near = point.decrement <= _DECREMENT and bool(np.all(np.abs(len(y) * point.diagonal - 1.0) <= _DIAGONAL))
    return point if near else None


class _Point:
    """y and mu with the Newton step, its decrement, and the path's tangent: the step times its rate in log(mu)."""

    def __init__(self, y_matrix: np.ndarray, y: np.ndarray, mu: float) -> None:
        n = len(y)
        shifted = y_matrix.copy()
        np.fill_diagonal(shifted, y)
        values, vectors = eigh(shifted, driver="evd", overwrite_a=True)
        root = np.sqrt(values * values + 4.0 * mu)
        # The second form loses no digits where l is negative.
        x = np.where(values > 0, 0.5 * (values + root), 2.0 * mu / (root - np.minimum(values, 0.0)))
        self.y, self.mu, self.x, self.vectors = y, mu, x, vectors
        products = np.outer(x, x)
        self.weights = products / (products + mu)
        factor = cho_factor(self._hessian(), overwrite_a=True)
        self.diagonal = (vectors * vectors) @ x
        gradient = self.diagonal - 1.0 / n
        self.newton = -cho_solve(factor, gradient)
        for _ in range(2):  # refined: products with H are more accurate than its entries
            self.newton -= cho_solve(factor, gradient + self._product(self.newton))
        self.tangent = -cho_solve(factor, (vectors * vectors) @ (x * (1.0 - np.diag(self.weights))))
        self.decrement = math.sqrt(max(0.0, -float(gradient @ self.newton)) / mu)

    def _hessian(self) -> np.ndarray:
        """H, as W = sum_r w_r z_r z_r' makes it: the sum of w_r (Q Diag(z_r) Q')^2, squared entry by entry."""
        n = len(self.x)
        hessian = np.zeros((n, n))
        w, z = eigh(self.weights, driver="evd")
        for r in np.flatnonzero(np.abs(w) > _DROPPED):  # five to thirty: W is a smooth function of two numbers
            image = np.zeros((n, n))
            for start in range(0, n, _COLUMNS):
                block = self.vectors[:, start : start + _COLUMNS]
                image += (block * z[start : start + _COLUMNS, r]) @ block.T
            image *= image
            image *= w[r]
            hessian += image
        return hessian

    def _product(self, h: np.ndarray) -> np.ndarray:
        image = self.vectors @ (self.weights * self._rotated(h))
        return (image * self.vectors).sum(axis=1)

    def _rotated(self, h: np.ndarray) -> np.ndarray:
        """Q' Diag(h) Q."""
        return (self.vectors.T * h) @ self.vectors

    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors of X^1/2 (I + R) X^1/2 and mu X^-1/2 (I - R) X^-1/2: what the Newton step makes of X and N."""
        root, eye = np.sqrt(self.x), np.eye(len(self.x))
        products = np.outer(self.x, self.x)
        change = self._rotated(self.newton) * (np.outer(root, root) / (products + self.mu))
        primal = (self.vectors * root) @ cholesky(eye + change, lower=True)
        dual = (self.vectors * (math.sqrt(self.mu) / root)) @ cholesky(eye - change, lower=True)
        return primal, dual

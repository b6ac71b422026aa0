"""Projection of a symmetric matrix on the positive semidefinite matrices with a constant diagonal.

For a symmetric Y of n rows,

    minimise  ||X - Y||_F^2 / 2    over  X >= 0 (semidefinite),  X_ii = 1/n.

n X is the nearest correlation matrix of n Y. The diagonal of Y does not matter, since X's is fixed; it is taken as 0.
The dual is to minimise, over y in R^n,

    theta(y) = ||(Y + Diag(y))_+||_F^2 / 2 - sum(y)/n,     gradient  diag((Y + Diag(y))_+) - 1/n,

with M_+ the part of M with positive eigenvalues; at its minimum X = (Y + Diag(y))_+ (Malick 2004). Here it is minimised
by the semismooth Newton method of Qi and Sun (2006), on torch. On some graphs that stalls, in floating point. The
*central path* (:mod:`pgmpy_dp.communities.published.correlation_path`) is slower and does not, which is proved.

The result is an approximation; :mod:`pgmpy_dp.private.mathematics.certificates` proves how far from the projection it
is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.learning.devices import require_torch

NEEDS_TORCH = "projecting on correlation matrices by Newton's method"

_MOST_CG_STEPS = 200


def project_correlation(
    target: np.ndarray | SparseMinusConstant,
    *,
    tolerance: float = 1e-6,
    device: str | None = None,
    max_iter: int = 200,
) -> Projection:
    """Project a symmetric matrix on ``{X >= 0, X_ii = 1/n}``, by minimising the dual theta by Newton's method.

    Parameters
    ----------
    target : ndarray of shape (n, n), or SparseMinusConstant
        Y.
    tolerance : float
        Stop at an estimated distance, in Frobenius norm, of at most this; the projection itself has norm at most 1.
    device : str, optional
        Torch device, e.g. "cuda". Default: the processor.
    max_iter : int, default 200
        Eigendecompositions at most.

    Returns
    -------
    Projection
        The best point found, converged or not.

    Raises
    ------
    ImportError
        If torch is not installed.
    ValueError
        For a target that is not square, or a tolerance that is not positive.

    Notes
    -----
    A step solves V h = -gradient by preconditioned conjugate gradients, with V the generalised Jacobian

        V h = diag(Q (W o (Q' Diag(h) Q)) Q'),   W_ij = (l_i^+ - l_j^+)/(l_i - l_j),

    for the eigenpairs (l, Q) of Y + Diag(y), and is shortened until theta decreases (Armijo). V is positive definite
    at the solution, since the constraints are nondegenerate there (Qi and Sun 2006), so the method
    converges from every start, at the end quadratically, in exact arithmetic. It stops early where three steps gain
    nothing in floating point: on some graphs, half and threshold graphs among them, far from the solution. Not
    converged otherwise means a `tolerance` below what rounding allows, about 1e-12 n.

    Examples
    --------
    >>> import numpy as np
    >>> target = np.array([[0.0, 2.0, -2.0], [2.0, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    >>> np.round(3 * project_correlation(target).matrix, 6).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    if not tolerance > 0:
        raise ValueError(f"tolerance={tolerance!r} is not positive")
    dense = np.array(target, dtype=float) if isinstance(target, np.ndarray) else target.toarray()
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1] or not len(dense):
        raise ValueError(f"target has shape {dense.shape}; pass a symmetric matrix of one row or more")
    np.fill_diagonal(dense, 0.0)
    torch = require_torch(NEEDS_TORCH)
    n, device = len(dense), device or "cpu"
    with torch.no_grad():
        matrix = torch.as_tensor(dense, dtype=torch.float64, device=device)
        point = _Point(torch, matrix, torch.zeros(n, dtype=torch.float64, device=device))
        best, stalled, count = _projection(point, 1), 0, 1
        while best.distance > tolerance and count < max_iter and stalled < 3:
            step = point.newton_step()
            slope, length = float(step @ point.gradient), 1.0
            while True:
                try:
                    following = _Point(torch, matrix, point.y + length * step)
                except torch.linalg.LinAlgError:  # LAPACK gave up, which it does not say when it will
                    return _ended(best, tolerance, count)
                count += 1
                # Below this the decrease is lost in the rounding of theta: then the gradient tells.
                rounding = 1e-13 * (abs(point.theta) + float(point.y.abs().sum()) / n)
                decreased = following.theta <= point.theta + 1e-4 * length * slope + rounding
                if decreased or length < 1e-6 or count >= max_iter:
                    break
                length *= 0.5
            point = following
            candidate = _projection(point, count)
            stalled = 0 if candidate.distance < 0.9 * best.distance or length < 1.0 else stalled + 1
            best = min(best, candidate, key=lambda item: item.distance)
    return _ended(best, tolerance, count)


@dataclass(frozen=True)
class Projection:
    """The result of a projection.

    Attributes
    ----------
    y : ndarray, shape (n,)
        Dual point.
    factor : ndarray, shape (n, k)
        P with P P' equal to ``(Y + Diag(y))_+``, up to the accuracy of its eigenpairs.
    distance : float
        Estimate, in plain floating point, of how far the feasible point made from `factor` is from the projection.
    converged : bool
        Whether `distance` reached the tolerance.
    status : str
        The solver that ended it, and how.
    n_iter : int
        Eigendecompositions.
    """

    y: np.ndarray
    factor: np.ndarray
    distance: float
    converged: bool
    status: str
    n_iter: int

    @property
    def matrix(self) -> np.ndarray:
        """The feasible point, shape (n, n): P P' with every row and column scaled to a diagonal of 1/n."""
        rows = feasible_factor(self.factor)
        return rows @ rows.T


def feasible_factor(factor: np.ndarray) -> np.ndarray:
    """Rows of `factor` scaled to length 1/sqrt(n); a row of zeros is replaced, all of them by the same vector."""
    n = len(factor)
    lengths = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    rows = factor / np.where(lengths > 0, lengths, 1.0)[:, None]
    if factor.shape[1] == 0:
        return np.full((n, 1), 1.0 / np.sqrt(n))
    rows[lengths == 0, 0] = 1.0
    return rows / np.sqrt(n)


def estimated_distance(product: Callable[[np.ndarray], np.ndarray], factor: np.ndarray) -> float:
    """The certificate's bound without its terms for rounding and for missed eigenpairs, in O(n k^2).

    `product` multiplies a block by ``Y + Diag(y)``, of which `factor` holds the positive eigenvectors times the roots
    of the eigenvalues.
    """
    n = len(factor)
    diagonal = np.einsum("ij,ij->i", factor, factor)
    if not factor.shape[1] or diagonal.min() <= 0:
        return np.inf
    e = 1.0 / np.sqrt(n * diagonal) - 1.0
    moved = e[:, None] * factor
    gram = factor.T @ factor
    # ||X_f - X_y|| to first order in e: the entries of X_y times e_i + e_j.
    a = np.sqrt(2.0 * np.sum(moved * (moved @ gram)) + 2.0 * np.sum((factor.T @ moved) ** 2))
    b = max(0.0, float(np.sum((factor.T @ moved) ** 2) - np.sum(moved * product(moved))))
    return float(0.5 * (a + np.sqrt(a * a + 4.0 * b)))


def _ended(best: Projection, tolerance: float, count: int) -> Projection:
    converged = best.distance <= tolerance
    status = "newton: tolerance reached" if converged else "newton: no further progress"
    return Projection(best.y, best.factor, best.distance, converged, status, count)


def _projection(point: _Point, count: int) -> Projection:
    factor = point.factor().cpu().numpy()
    y = point.y.cpu().numpy()

    def product(block: np.ndarray) -> np.ndarray:
        moved = point.torch.as_tensor(block, device=point.y.device)
        return (point.matrix @ moved + point.y[:, None] * moved).cpu().numpy()

    return Projection(y, factor, estimated_distance(product, factor), False, "newton", count)


class _Point:
    """Value, gradient and generalised Jacobian of theta at one y."""

    def __init__(self, torch: Any, matrix: Any, y: Any) -> None:
        self.torch, self.matrix, self.y = torch, matrix, y
        n = len(y)
        values, vectors = torch.linalg.eigh(matrix + torch.diag(y))
        self.positive = int((values > 0).sum())
        # Ascending order: the negative ones first.
        self.low, self.high = values[: n - self.positive], values[n - self.positive :]
        self.low_vectors, self.high_vectors = vectors[:, : n - self.positive], vectors[:, n - self.positive :]
        self.theta = float(0.5 * (self.high**2).sum() - y.sum() / n)
        self.gradient = (self.high_vectors**2) @ self.high - 1.0 / n
        self.ratio = self.high[:, None] / (self.high[:, None] - self.low[None, :])

    def factor(self) -> Any:
        return self.high_vectors * self.high.sqrt()

    def jacobian_product(self, h: Any) -> Any:
        """V h: the blocks of W are 1 between positive, `ratio` between positive and negative, 0 between negative."""
        weighted = self.high_vectors.T * h
        inner = weighted @ self.high_vectors
        mixed = self.ratio * (weighted @ self.low_vectors)
        through = self.high_vectors @ inner + 2.0 * (self.low_vectors @ mixed.T)
        return (through * self.high_vectors).sum(dim=1)

    def newton_step(self) -> Any:
        torch = self.torch
        squares = self.high_vectors**2
        diagonal = squares.sum(dim=1) ** 2 + 2.0 * ((squares @ self.ratio) * self.low_vectors**2).sum(dim=1)
        size = float(self.gradient.norm())
        # A little of the identity keeps directions that V does not see finite; it vanishes with the gradient.
        ridge = min(1e-3, 0.1 * size) * float(diagonal.max().clamp(min=1e-12))
        weights = 1.0 / (diagonal + ridge).clamp(min=1e-12 * max(float(diagonal.max()), 1e-300))
        step, residual = torch.zeros_like(self.gradient), -self.gradient
        scaled = weights * residual
        direction, product = scaled.clone(), float(residual @ scaled)
        for _ in range(_MOST_CG_STEPS):
            if float(residual.norm()) <= min(0.05, 10.0 * size) * size or product == 0:
                break
            image = self.jacobian_product(direction) + ridge * direction
            curvature = float(direction @ image)
            if curvature <= 0:
                break
            length = product / curvature
            step += length * direction
            residual -= length * image
            scaled = weights * residual
            following = float(residual @ scaled)
            direction, product = scaled + (following / product) * direction, following
        return step if float(step @ self.gradient) < 0 else -weights * self.gradient

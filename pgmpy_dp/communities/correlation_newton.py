"""The semismooth Newton method for the projection on correlation matrices (Qi and Sun 2006), on torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgmpy_dp.communities.correlation_products import Projection, estimated_distance
from pgmpy_dp.learning.devices import require_torch

NEEDS_TORCH = "projecting on correlation matrices by Newton's method"

_MOST_CG_STEPS = 200


def newton(target: np.ndarray, tolerance: float, start: np.ndarray | None, device: str, max_iter: int) -> Projection:
    """Minimise the dual theta of :mod:`pgmpy_dp.communities.correlation_projection` by Newton's method.

    Parameters
    ----------
    target : ndarray, shape (n, n)
        Y, with a diagonal of 0.
    tolerance, start, device, max_iter
        As in :func:`~pgmpy_dp.communities.correlation_projection.project_correlation`.

    Notes
    -----
    A step solves V h = -gradient by preconditioned conjugate gradients, with V the generalised Jacobian

        V h = diag(Q (W o (Q' Diag(h) Q)) Q'),   W_ij = (l_i^+ - l_j^+)/(l_i - l_j),

    for the eigenpairs (l, Q) of Y + Diag(y), and is shortened until theta decreases (Armijo). V is positive definite
    at the solution, since the constraints are nondegenerate there (Qi and Sun 2006), so the method
    converges from every start, at the end quadratically, in exact arithmetic. It stops early where three steps gain
    nothing in floating point: on some graphs, half and threshold graphs among them, far from the solution.
    """
    torch = require_torch(NEEDS_TORCH)
    n = len(target)
    with torch.no_grad():
        matrix = torch.as_tensor(target, dtype=torch.float64, device=device)
        y = torch.zeros(n, dtype=torch.float64, device=device)
        if start is not None:
            y = torch.as_tensor(np.asarray(start, dtype=float), device=device).clone()
        point = _Point(torch, matrix, y)
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

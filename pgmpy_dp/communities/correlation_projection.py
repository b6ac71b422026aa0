"""Projection of a symmetric matrix on the positive semidefinite matrices with a constant diagonal.

For a symmetric Y of n rows,

    minimise  ||X - Y||_F^2 / 2    over  X >= 0 (semidefinite),  X_ii = 1/n.

n X is the nearest correlation matrix of n Y. The diagonal of Y does not matter, since X's is fixed; it is taken as 0.
The dual is to minimise, over y in R^n,

    theta(y) = ||(Y + Diag(y))_+||_F^2 / 2 - sum(y)/n,     gradient  diag((Y + Diag(y))_+) - 1/n,

with M_+ the part of M with positive eigenvalues; at its minimum X = (Y + Diag(y))_+ (Malick 2004). Three solvers:

* *factor descent*: X = F F' for F of few columns with rows of length 1/sqrt(n), by L-BFGS (Burer and Monteiro 2003). It
  needs products with Y only, finds two digits soon and more slowly; its multipliers start the next one.
* *dual descent*: L-BFGS on theta, with the positive eigenpairs alone, by Lanczos. For graphs with communities there are
  5 to 30 of them, whatever n.
* *Newton*: the semismooth Newton method of Qi and Sun (2006), in :mod:`pgmpy_dp.communities.correlation_newton`, whose
  eigendecomposition is complete. It converges quadratically at the end, and is the one for
  graphs on which the others fail: the empty one, a star, a clique with isolated vertices.

On some graphs Newton's method stalls too, in floating point. The *central path*
(:mod:`pgmpy_dp.communities.correlation_path`) is slower and does not, which is proved.

What they return is an approximation; how far from the projection it is, and a proof, is the business of
:mod:`pgmpy_dp.private.mathematics.certificates`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from pgmpy_dp.communities.correlation_newton import newton
from pgmpy_dp.communities.correlation_products import (
    ASKED,
    ArrayProducts,
    Products,
    Projection,
    TensorProducts,
    estimated_distance,
)
from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.inference.lbfgs import minimize_lbfgs
from pgmpy_dp.learning.devices import chosen_device

METHODS = ("auto", "descent", "newton")
_SMALL = 300  # rows up to which Newton's complete eigendecompositions are the fastest
_FACTOR_COLUMNS = ASKED
_FACTOR_STEPS = 100
_DUAL_STEPS = 300
_EIGEN_TOLERANCE = 1e-6  # while descending; the last eigenpairs are computed to full accuracy


def project_correlation(
    target: np.ndarray | SparseMinusConstant,
    *,
    tolerance: float = 1e-6,
    method: str = "auto",
    start: np.ndarray | None = None,
    device: str | None = None,
    max_iter: int = 200,
) -> Projection:
    """Project a symmetric matrix on ``{X >= 0, X_ii = 1/n}``.

    Parameters
    ----------
    target : ndarray of shape (n, n), or SparseMinusConstant
        Y.
    tolerance : float
        Stop at an estimated distance, in Frobenius norm, of at most this; the projection itself has norm at most 1.
    method : {"auto", "descent", "newton"}, default "auto"
        "descent": factor descent and then dual descent. "newton": the Newton method alone. "auto": descent for more
        than 300 rows, and Newton where it did not converge; otherwise Newton.
    start : ndarray of shape (n,), optional
        Dual point to begin at.
    device : str, optional
        Torch device, e.g. "cuda", of the products and eigenvectors of every method. Default: that of pgmpy's torch
        backend, if it is not the processor; else whichever is the faster on the processor: NumPy and ARPACK for the
        descents, torch's "cpu" for Newton (measured from 60 to 4,000 rows: docs/devices.md).
    max_iter : int, default 200
        Newton steps at most.

    Returns
    -------
    Projection
        The best point found, converged or not.

    Raises
    ------
    ImportError
        If the Newton method is needed and torch is not installed.
    ValueError
        For a target that is not square, or arguments out of range.

    Notes
    -----
    Not converged usually means a `tolerance` below what rounding allows, about 1e-12 n.

    Examples
    --------
    >>> import numpy as np
    >>> target = np.array([[0.0, 2.0, -2.0], [2.0, 0.0, -2.0], [-2.0, -2.0, 0.0]])
    >>> solution = project_correlation(target, method="descent")
    >>> np.round(3 * solution.matrix, 6).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not supported; use one of {METHODS}")
    if not tolerance > 0:
        raise ValueError(f"tolerance={tolerance!r} is not positive")
    if isinstance(target, np.ndarray):
        if target.ndim != 2 or target.shape[0] != target.shape[1] or not len(target):
            raise ValueError(f"target has shape {target.shape}; pass a symmetric matrix of one row or more")
        target = np.array(target, dtype=float)
        np.fill_diagonal(target, 0.0)
    device = chosen_device(device)
    best = None
    if method == "descent" or (method == "auto" and target.shape[0] > _SMALL):
        products: Products = ArrayProducts(target) if device is None else TensorProducts(target, device)
        best = _descent(products, tolerance, start)
    if best is not None and (best.converged or method == "descent"):
        return best
    dense = target if isinstance(target, np.ndarray) else target.toarray()
    polished = newton(dense, tolerance, start if best is None else best.y, device or "cpu", max_iter)
    if polished.converged or best is None:
        return polished
    return min(polished, best, key=lambda point: point.distance)


class _Stop(Exception):
    """Ends a descent from within its objective."""


def _descent(products: Products, tolerance: float, start: np.ndarray | None) -> Projection:
    n = products.n
    y = _factor_descent(products) if start is None else np.array(start, dtype=float)
    best = Projection(y, np.zeros((n, 0)), np.inf, False, "descent: no eigenpairs", 0)

    def image(y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda block: products.product(block) + y[:, None] * block

    def objective(y: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        found = products.eigenpairs(y, _EIGEN_TOLERANCE)
        if found is None:
            raise _Stop
        values, factor = found
        distance = estimated_distance(image(y), factor)
        if distance < best.distance:
            best = Projection(y.copy(), factor, distance, distance <= tolerance, "descent", products.count)
        if best.converged:
            raise _Stop
        gradient = np.einsum("ij,ij->i", factor, factor) - 1.0 / n
        return n * (0.5 * float(values @ values) - float(y.sum()) / n), n * gradient

    with contextlib.suppress(_Stop):
        minimize_lbfgs(objective, y, max_iter=_DUAL_STEPS, gradient_tol=0.0, memory=30)
    # Once more, accurately: a certificate counts what the eigenpairs missed, the square root of it.
    found = products.eigenpairs(best.y, 0.0)
    if found is None:
        return Projection(best.y, best.factor, best.distance, False, "descent: too many eigenpairs", products.count)
    distance = estimated_distance(image(best.y), found[1])
    status = "descent: tolerance reached" if distance <= tolerance else "descent: no further progress"
    return Projection(best.y, found[1], distance, distance <= tolerance, status, products.count)


def _factor_descent(products: Products) -> np.ndarray:
    """Dual point from the multipliers of the problem in F, after a few steps."""
    n = products.n
    k = min(_FACTOR_COLUMNS, n)

    def rows_of(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        free = v.reshape(n, k)
        lengths = np.maximum(np.linalg.norm(free, axis=1, keepdims=True), 1e-300) * np.sqrt(n)
        return free / lengths, lengths

    def gradient_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Gradient in F; its radial part times n, which is minus twice the multipliers; the value."""
        gram, image = rows.T @ rows, products.product(rows)
        gradient = 2.0 * (rows @ gram - image)
        value = 0.5 * float(np.sum(gram * gram)) - float(np.sum(rows * image))
        return gradient, n * np.einsum("ij,ij->i", rows, gradient), value

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        rows, lengths = rows_of(v)
        gradient, radial, value = gradient_of(rows)
        return n * value, n * ((gradient - radial[:, None] * rows) / lengths).ravel()

    # A fixed start, like everything here: a solver that draws numbers would need a failure probability.
    begin = np.random.default_rng(0).standard_normal(n * k)
    solution = minimize_lbfgs(objective, begin, max_iter=_FACTOR_STEPS, gradient_tol=1e-9)
    # (F F' - Y - Diag(y)) F = 0 at the optimum.
    return 0.5 * gradient_of(rows_of(solution.x)[0])[1]

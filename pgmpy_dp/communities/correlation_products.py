"""What solvers of the projection on correlation matrices share: products of Y with blocks, eigenpairs, where they end.

The same questions on NumPy with ARPACK, one vector at a time, and on a device of torch, where blocks of vectors go
through at once: a block Krylov method with restarts, begun at the eigenvectors of the dual point before. Everything is
in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.learning.devices import require_torch

ASKED = 20  # eigenpairs at first
_MOST_EIGENPAIRS = 200
_DENSE = 6000  # rows up to which a device has room for all entries, and is quicker with them
_COMPLETE = 40  # rows up to which all eigenpairs are computed
_SLACK = 4  # vectors beyond those asked for, which speed up the block method
_DEPTH = 6  # products between two restarts
_RESTARTS = 40
_LEAST_TOLERANCE = 1e-13  # of the largest eigenvalue


class Products(Protocol):
    """Products of a symmetric Y with a diagonal of 0."""

    n: int
    count: int
    """Eigendecompositions so far."""

    def product(self, block: np.ndarray) -> np.ndarray:
        """Y times a block, shape (n, columns)."""
        ...

    def eigenpairs(self, y: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Positive eigenvalues of Y + Diag(y), and eigenvectors times their roots; None where there are too many."""
        ...


class ArrayProducts:
    """Products on NumPy and ARPACK; see :class:`Products`."""

    def __init__(self, target: np.ndarray | SparseMinusConstant) -> None:
        self.target, self.n, self.count = target, target.shape[0], 0
        self._asked = min(ASKED, self.n - 1)
        self._start = np.ones(self.n)  # fixed: the default start is drawn from numpy's global state

    def product(self, block: np.ndarray) -> np.ndarray:
        return self.target @ block

    def eigenpairs(self, y: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
        def shifted(v: np.ndarray) -> np.ndarray:
            return self.target @ v.ravel() + y * v.ravel()

        self.count += 1
        if self.n <= _COMPLETE:
            values, vectors = np.linalg.eigh(self.target @ np.eye(self.n) + np.diag(y))
        else:
            operator = LinearOperator((self.n, self.n), matvec=shifted, dtype=float)
            while True:
                try:
                    values, vectors = eigsh(operator, k=self._asked, which="LA", tol=tolerance, v0=self._start)
                except (ArpackError, np.linalg.LinAlgError):  # no convergence is an ArpackError too
                    return None
                if values.min() <= 0:
                    break
                self._asked = int(1.4 * self._asked) + 5
                if self._asked > min(_MOST_EIGENPAIRS, self.n // 3):
                    return None
        kept = values > 0
        values, vectors = values[kept], vectors[:, kept]
        self._asked = min(max(len(values) + max(2, len(values) // 10), 4), self.n - 1)
        self._start = vectors.sum(axis=1) if kept.any() else np.ones(self.n)
        return values, vectors * np.sqrt(values)


class TensorProducts:
    """Products on a device of torch; see :class:`Products`.

    Parameters
    ----------
    target : ndarray or SparseMinusConstant, shape (n, n)
        A sparse one of many rows stays sparse on the device.
    device : str
    """

    def __init__(self, target: np.ndarray | SparseMinusConstant, device: str) -> None:
        self.torch = torch = require_torch(f"projecting on device={device!r}")
        self.device, self.n, self.count = device, target.shape[0], 0
        self._constant = 0.0
        if isinstance(target, SparseMinusConstant) and self.n > _DENSE:
            matrix, self._constant = (target.scale * target.matrix).tocoo(), target.constant
            places = torch.as_tensor(np.vstack([matrix.row, matrix.col]).astype(np.int64), device=device)
            values, size = self._tensor(matrix.data), (self.n, self.n)
            with torch.sparse.check_sparse_tensor_invariants(True):  # by argument alone, CUDA warns that it is not said
                self._matrix = torch.sparse_coo_tensor(places, values, size).coalesce()
        else:
            self._matrix = self._tensor(target.toarray() if isinstance(target, SparseMinusConstant) else target)
        self._asked = min(ASKED, max(1, self.n // 6))
        # A fixed start: a solver that draws numbers would need a failure probability.
        self._block = self._tensor(np.random.default_rng(0).standard_normal((self.n, self._asked)))

    def product(self, block: np.ndarray) -> np.ndarray:
        return self._times(self._tensor(block)).cpu().numpy()

    def eigenpairs(self, y: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
        torch = self.torch
        self.count += 1
        with torch.no_grad():
            shift = self._tensor(y)[:, None]
            if self.n <= 4 * _COMPLETE:
                eye = torch.eye(self.n, dtype=torch.float64, device=self.device)
                values, vectors = torch.linalg.eigh(self._times(eye) + shift * eye)
            else:
                while True:
                    found = self._largest(shift, max(tolerance, _LEAST_TOLERANCE))
                    if found is None:
                        return None
                    values, vectors = found
                    if float(values.min()) <= 0:
                        break
                    self._asked = int(1.4 * self._asked) + 5
                    if self._asked > min(_MOST_EIGENPAIRS, self.n // 6):  # a basis of two blocks and more
                        return None
                    self._block = vectors  # to begin at
            kept = values > 0
            values, factor = values[kept], vectors[:, kept]
            self._asked = min(max(len(values) + max(2, len(values) // 10), 4), self.n - 1)
            self._block = vectors[:, -min(vectors.shape[1], self._asked + _SLACK) :]
            return values.cpu().numpy(), (factor * values.sqrt()).cpu().numpy()

    def _tensor(self, array: np.ndarray) -> Any:
        return self.torch.as_tensor(np.ascontiguousarray(array, dtype=np.float64), device=self.device)

    def _times(self, block: Any) -> Any:
        image = self._matrix @ block
        return image - self._constant * (block.sum(0) - block) if self._constant else image

    def _largest(self, shift: Any, tolerance: float) -> tuple[Any, Any] | None:
        """The largest eigenpairs, `_asked` of them, in ascending order, until their residuals are small."""
        torch, wanted, most = self.torch, self._asked, min(_MOST_EIGENPAIRS, self.n // 6)
        width = wanted + _SLACK
        block = self._filled(self._block, width)
        for _ in range(_RESTARTS):
            basis, images, last = block, None, block
            for _ in range(_DEPTH):
                image = self._times(last) + shift * last
                images = image if images is None else torch.cat([images, image], dim=1)
                if basis.shape[1] + width > self.n // 2:
                    break
                for _ in range(2):  # twice is enough (Giraud et al. 2005)
                    image = image - basis @ (basis.T @ image)
                last = torch.linalg.qr(image).Q
                last = torch.linalg.qr(last - basis @ (basis.T @ last)).Q
                basis = torch.cat([basis, last], dim=1)
            assert images is not None
            basis = basis[:, : images.shape[1]]
            small = basis.T @ images
            values, rotation = torch.linalg.eigh(0.5 * (small + small.T))
            values, rotation = values[-width:], rotation[:, -width:]
            block = basis @ rotation
            residuals = (images @ rotation - block * values).norm(dim=0)
            size = float(values.abs().max())
            # What is not positive plays no part, and the bulk's edge, which lies there, is slow.
            checked = residuals[-wanted:][values[-wanted:] > -tolerance * size]
            if not bool(torch.isfinite(residuals).all()):
                return None
            # Ritz values are never above the eigenvalues: if all are positive, there are more (Cauchy's interlacing).
            done = not len(checked) or float(checked.max()) <= tolerance * size
            if done or (wanted < most and float(values[-wanted]) > 0):
                break
            block = torch.linalg.qr(block).Q
        else:
            if tolerance > _LEAST_TOLERANCE:
                return None
        return values[-wanted:], block[:, -wanted:]

    def _filled(self, block: Any, width: int) -> Any:
        """An orthonormal block of so many columns that begins with these."""
        missing = width - block.shape[1]
        if missing > 0:
            more = np.random.default_rng(width).standard_normal((self.n, missing))
            block = self.torch.cat([block, self._tensor(more)], dim=1)
        return self.torch.linalg.qr(block[:, -width:] if missing < 0 else block).Q


@dataclass(frozen=True)
class Projection:
    """Where a projection ended.

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

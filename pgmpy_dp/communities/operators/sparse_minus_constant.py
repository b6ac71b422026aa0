"""A graph's adjacency matrix, scaled and shifted: what is projected to find communities, dense or as products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, issparse


@dataclass(frozen=True)
class SparseMinusConstant:
    """The symmetric matrix ``scale * matrix - constant`` off the diagonal, 0 on it, kept sparse.

    Parameters
    ----------
    matrix : scipy.sparse matrix, shape (n, n)
        Symmetric; its diagonal has no effect.
    scale, constant : float
    """

    matrix: csr_matrix
    scale: float
    constant: float

    def __post_init__(self) -> None:
        if not issparse(self.matrix) or self.matrix.shape[0] != self.matrix.shape[1]:
            raise TypeError(f"matrix is a {type(self.matrix).__name__}; pass a square scipy sparse matrix")
        matrix = csr_matrix(self.matrix, dtype=float, copy=True)
        matrix.setdiag(0.0)
        matrix.eliminate_zeros()
        object.__setattr__(self, "matrix", matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, n)."""
        return self.matrix.shape

    def __matmul__(self, block: np.ndarray) -> np.ndarray:
        """Product with a vector, shape (n,), or a block of them, shape (n, k)."""
        return self.scale * (self.matrix @ block) - self.constant * (block.sum(axis=0) - block)

    def toarray(self) -> np.ndarray:
        """Dense; of a matrix of 0 and 1 every entry is one of two floats: nothing is lost to rounding beyond them."""
        dense = self.scale * self.matrix.toarray() - self.constant
        np.fill_diagonal(dense, 0.0)
        return dense

"""Weak recovery of communities: the adjacency matrix, centred, projected on correlation matrices, with noise.

Chen, Cohen-Addad, d'Orsi, Epasto, Imola, Steurer and Tiegel 2023, Algorithm 5.4. A graph A on n vertices with edge
probabilities near ``(1 + bias x_i x_j) degree/n`` for labels x in {-1, 1}^n is centred and scaled,

    Y = s (A - degree/n) off the diagonal,     s = theta/(bias degree),

so that Y is near theta x x'/n, and X, its projection on {X >= 0, X_ii = 1/n}, near x x'/n. The labels are read from the
signs of the noisy X's leading eigenvector. For k communities s is divided by k - 1, and X is near their simplex Gram
matrix.

How far one edge moves X
------------------------
One edge moves Y by s in the entries (i, j) and (j, i), so ||Y - Y'||_F = sqrt(2) s, and, as projections are firmly
nonexpansive, with dX = X - X',

    ||dX||_F^2 <= <dX, Y - Y'> <= 2 s abs(dX_ij).

A feasible X has abs(X_ij) <= 1/n, so abs(dX_ij) <= 2/n; and abs(dX_ij) <= ||dX||_F/sqrt(2). Together

    ||dX||_F <= sqrt(2 s min(2/n, s)).

The diagonal is public, so the entries above it are all there is to release, and their l2 norm is 1/sqrt(2) of that. The
paper's bound is sqrt(24 s/n) (Lemma 4.1 with kappa = 1 and alpha = 2 s/n), which its algorithm gives noise for in all
entries on and above the diagonal, and s is 1/(bias degree) there: ``analysis="published"``. It is valid, with about 5
times the noise where 2/n < s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.graph import PrivateGraph, adjacency_matrix
from pgmpy_dp.private.guarantee import checked_number
from pgmpy_dp.private.mathematics.certificates import (
    CertifiedPoint,
    certified_pair,
    certified_projection,
    rounding_floor,
)
from pgmpy_dp.private.mathematics.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.private.mathematics.stability import projection_sensitivity, stable_set_sensitivity
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.solvers.correlation_newton import require_torch
from pgmpy_dp.solvers.correlation_path import central_path, least_accuracy
from pgmpy_dp.solvers.correlation_projection import project_correlation

__all__ = ["ANALYSES", "BlockProjection", "released_matrix"]

ANALYSES = ("tight", "published")
_KIND = "block_projection"


@dataclass(frozen=True)
class BlockProjection:
    """The projection as a program, for :func:`pgmpy_dp.plans.convex_program.release`.

    Its records are a :class:`~pgmpy_dp.private.data.graph.PrivateGraph`, or inside the boundary an adjacency matrix:
    scipy sparse, shape (n, n), symmetric, of zeros and ones, without a diagonal.

    Parameters
    ----------
    n : int
        Vertices, 2 or more.
    degree, bias : float
        d, positive; gamma, in (0, 1]. Public: known, or released before.
    n_communities : int, default 2
    theta : float, optional
        Scale of Y. Default: 1.5 (at 1, part of X's trace goes to the graph's noise), 1 for "published".
    analysis : {"tight", "published"}, default "tight"
        Which sensitivity the noise is for.
    tolerance : float, default 1e-3
        The distance within which a solution is released, as a share of the tight sensitivity; the noise grows by
        twice this share. What rounding allows for the worst graph, nearly a clique, is a lower limit: 4e-3 at 4,000
        vertices of degree 40, for instance.
    device : str, default "cpu"
        Torch device of Newton's method. What follows it where it fails runs on the CPU.

    Raises
    ------
    ImportError
        If torch is not installed, which Newton's method needs.
    TypeError, ValueError
        For arguments out of range.

    Notes
    -----
    Privacy: under ``edge``. The solver's points are certified by
    :func:`~pgmpy_dp.private.mathematics.certificates.certified_projection`, the fallback's by
    :func:`~pgmpy_dp.private.mathematics.certificates.certified_pair`. The fallback ends certified on every graph after a
    public number of steps, in floating point, where ``n^2`` times the largest row sum of abs(Y) is at most 4e10:
    ``pgmpy_dp/solvers/correlation_path.md`` has the proof and what it assumes of LAPACK.

    Examples
    --------
    >>> from pgmpy_dp.plans.convex_program import release
    >>> from pgmpy_dp.private.ledger import Budget
    >>> cliques = np.kron(np.eye(2), np.ones((30, 30))) - np.eye(60)
    >>> program = BlockProjection(60, degree=30.0, bias=1.0)
    >>> round(program.sensitivity, 4), round(BlockProjection(60, 30.0, 1.0, analysis="published").sensitivity, 4)
    (0.0408, 0.1155)
    >>> budget = Budget(epsilon=8.0, delta=1e-6)
    >>> noisy = released_matrix(release(program, PrivateGraph(cliques, ledger=budget), budget))
    >>> noisy.shape, bool((noisy[:30, :30].mean() > 0) and (noisy[:30, 30:].mean() < 0))
    ((60, 60), True)
    """

    n: int
    degree: float
    bias: float
    n_communities: int = 2
    theta: float | None = None
    analysis: str = "tight"
    tolerance: float = 1e-3
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checked_integer("n", self.n, 2))
        object.__setattr__(self, "degree", checked_number("degree", self.degree, positive=True))
        object.__setattr__(self, "bias", checked_number("bias", self.bias, positive=True))
        if self.bias > 1:
            raise ValueError(f"bias={self.bias!r} is above 1: edge probabilities would be negative; pass 0 < bias <= 1")
        object.__setattr__(self, "n_communities", checked_integer("n_communities", self.n_communities, 2))
        if self.analysis not in ANALYSES:
            raise ValueError(f"analysis={self.analysis!r} is not supported; use one of {ANALYSES}")
        theta = self.theta
        if theta is None:
            theta = 1.5 if self.analysis == "tight" else 1.0
        object.__setattr__(self, "theta", checked_number("theta", theta, positive=True))
        tolerance = checked_number("tolerance", self.tolerance, positive=True, below_one=True)
        object.__setattr__(self, "tolerance", tolerance)
        require_torch()

    @property
    def name(self) -> str:
        """Kind of the release."""
        return _KIND

    @property
    def size(self) -> int:
        """Entries above the diagonal; for the published analysis those on it too."""
        return self.n * (self.n - 1) // 2 + (self.n if self.analysis == "published" else 0)

    @property
    def adjacency(self) -> Adjacency:
        """One edge more or fewer."""
        return Adjacency.EDGE

    @property
    def scale(self) -> float:
        """s: what one edge moves an entry of Y by, up to its rounding."""
        assert self.theta is not None
        return self.theta / (self.bias * self.degree * (self.n_communities - 1))

    @property
    def _tight(self) -> float:
        """Bound on ||dX||_F, with s rounded up: Y's two values are floats."""
        constant = self.scale * self.degree / self.n
        step = self.scale * (1.0 + 2.0**-50) + 2.0**-50 * constant
        return projection_sensitivity(math.sqrt(2.0) * step, along=4.0 * step / self.n)

    @property
    def sensitivity(self) -> float:
        """Of the entries that are released, together."""
        if self.analysis == "published":
            return stable_set_sensitivity(2.0 * self.scale / self.n, 1.0)
        return self._tight * math.sqrt(0.5) * (1.0 + 2.0**-50)

    @property
    def distance(self) -> float:
        """Of the entries above the diagonal, from those of the exact projection."""
        # Of the complete graph, N has the eigenvalue n s, up to 1.
        reachable = 2.0 * rounding_floor(self.n, self.n * self.scale + 1.0)
        constant = self.scale * self.degree / self.n
        proved = least_accuracy(self.n, (self.n - 1) * max(constant, abs(self.scale - constant))) or 0.0
        return max(self.tolerance * self._tight, reachable, proved) * math.sqrt(0.5)

    @property
    def bound(self) -> float:
        """Of an entry."""
        return (1.0 + 2.0**-40) / self.n

    @property
    def failure(self) -> float:
        """The solvers draw no random numbers."""
        return 0.0

    def public(self) -> dict[str, Any]:
        """The settings."""
        names = ("n", "degree", "bias", "n_communities", "theta", "analysis", "tolerance")
        return {name: getattr(self, name) for name in names}

    def check(self, records: PrivateGraph | csr_array) -> None:
        """ValueError for another number of vertices."""
        n = records.n if isinstance(records, PrivateGraph) else records.shape[0]
        if n != self.n:
            raise ValueError(f"the graph has {n} vertices, and the program was made for n={self.n}")

    def solve(self, records: PrivateGraph | csr_array) -> CertifiedPoint:
        """Descent, and Newton where it stops early; half the distance is left for what the certificate adds."""
        target = self._target(records)
        exact = target.toarray()  # before the solver has the target: what is certified is not its to change
        try:
            found = project_correlation(target, tolerance=0.5 * self.distance * math.sqrt(2.0), device=self.device)
        except MemoryError:
            raise
        except Exception:  # whether a solver fails depends on the graph; the fallback does not
            return self._released(CertifiedPoint(np.eye(self.n) / self.n, math.inf))
        return self._released(certified_projection(exact, found.y, found.factor))

    def fallback(self, records: PrivateGraph | csr_array) -> CertifiedPoint:
        """The central path, whose number of steps has a public bound."""
        accuracy = self.distance * math.sqrt(2.0)
        if accuracy >= 1.0:  # for settings that bury any graph: I/n is within 1 of every point of the set
            return self._released(CertifiedPoint(np.eye(self.n) / self.n, 1.0))
        target = self._target(records).toarray()
        try:
            pair = central_path(target.copy(), accuracy)
        except ValueError:  # LAPACK gave up, of which LinAlgError is one: nothing is known
            return self._released(CertifiedPoint(np.eye(self.n) / self.n, math.inf))
        return self._released(certified_pair(target, pair.factor, pair.dual_factor))

    def _target(self, records: PrivateGraph | csr_array) -> SparseMinusConstant:
        matrix = adjacency_matrix(records) if isinstance(records, PrivateGraph) else records
        return SparseMinusConstant(csr_matrix(matrix), self.scale, self.scale * self.degree / self.n)

    def _released(self, point: CertifiedPoint) -> CertifiedPoint:
        entries = np.triu_indices(self.n, 0 if self.analysis == "published" else 1)
        # X and the projection have the same diagonal: above it is half of the squared distance.
        return CertifiedPoint(point.value[entries], point.distance * math.sqrt(0.5) * (1.0 + 2.0**-50))


def released_matrix(release: Release) -> np.ndarray:
    """The noisy X of a release of this program, shape (n, n), symmetric; ValueError for another kind. Post-processing.

    Its diagonal is 1/n, or what was released of it.
    """
    if release.kind != _KIND:
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind {_KIND!r}")
    n = int(release.public["n"])
    matrix = np.eye(n) / n
    rows, columns = np.triu_indices(n, 0 if release.public["analysis"] == "published" else 1)
    step = int(release.public["grid_exponent"])
    matrix[rows, columns] = matrix[columns, rows] = np.ldexp(release.values[0].astype(float), step)
    return matrix

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

How far the optimum of a strongly convex program moves: three bounds, of public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from pgmpy_dp.checks import checked_integer, checked_number
from pgmpy_dp.communities.operators.graph import GraphFacts, PrivateGraph, adjacency_matrix
from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.mathematics.certificates import (
    CertifiedPoint,
    certified_pair,
    certified_projection,
    rounding_floor,
)
from pgmpy_dp.private.operators.solutions import CheckedProgram

_UP = 1.0 + 2.0**-50  # more than the rounding of a few operations


def stable_set_sensitivity(alpha: float, kappa: float) -> float:
    """Bound on how far the optima x, x' of two programs are apart: ``||x - x'||^2 <= 12 alpha/kappa``.

    Parameters
    ----------
    alpha : float
        For neighbours with objectives f, f' and feasible sets K, K': every z in K has a z' in K', and every z' in K' a
        z in K, with ``abs(f(z) - f'(z')) <= alpha`` and ``||z - z'||^2 <= 4 alpha/kappa``.
    kappa : float
        Both objectives are kappa-strongly convex.

    Notes
    -----
    Chen et al. 2023, Lemma 4.1. With optima x of f and x' of f', let f'(x') <= f(x) (else exchange the two), and take
    the z in K for x'. Then ``kappa/2 ||z - x||^2 <= f(z) - f(x) <= f'(x') + alpha - f(x) <= alpha``, and
    ``||x - x'||^2 <= 2 ||x - z||^2 + 2 ||z - x'||^2 <= 4 alpha/kappa + 8 alpha/kappa``.

    Examples
    --------
    >>> stable_set_sensitivity(1.0, 12.0)
    1.0000000000000009
    """
    return math.sqrt(12.0 * alpha / kappa) * _UP


def stable_objective_sensitivity(gradient: float, kappa: float) -> float:
    """Bound ``gradient/kappa`` on the distance of the optima of two objectives on one convex feasible set.

    Parameters
    ----------
    gradient : float
        ``||grad f - grad f'||`` is at most this at every feasible point, in l2 norm.
    kappa : float
        One of the two objectives, at least, is kappa-strongly convex.

    Notes
    -----
    With optima x of f and x' of f', strong convexity of f gives
    ``kappa ||x - x'||^2 <= <grad f(x') - grad f(x), x' - x>``; optimality gives ``<grad f(x), x' - x> >= 0`` and
    ``<grad f'(x'), x - x'> >= 0``. Added up: ``kappa ||x - x'||^2 <= <grad f(x') - grad f'(x'), x' - x>``
    (Chaudhuri, Monteleoni and Sarwate 2011, Lemma 7).

    Examples
    --------
    >>> stable_objective_sensitivity(1.0, 2.0)
    0.5000000000000004
    """
    return gradient / kappa * _UP


def projection_sensitivity(moved: float, along: float | None = None) -> float:
    """Bound on how far the projections x, x' of two points y, y' on one closed convex set are apart.

    Parameters
    ----------
    moved : float
        ``||y - y'||`` is at most this.
    along : float, optional
        ``<x - x', y - y'>`` is at most this, for any x, x' in the set.

    Notes
    -----
    Projections are firmly nonexpansive: ``||x - x'||^2 <= <x - x', y - y'>``, hence ``||x - x'|| <= min(moved,
    sqrt(along))`` (Moreau 1965; Bauschke and Combettes 2017, Proposition 4.16).

    Examples
    --------
    >>> projection_sensitivity(1.0, along=0.25)
    0.5000000000000004
    """
    return (moved if along is None else min(moved, math.sqrt(along))) * _UP


ANALYSES = ("tight", "published")


@dataclass(frozen=True)
class BlockProjection(CheckedProgram):
    """The projection as a program for :class:`~pgmpy_dp.private.operators.solutions.Solution`.

    Its records are a :class:`~pgmpy_dp.communities.operators.graph.PrivateGraph`. Its solvers, outside, get the centred
    matrix Y, a :class:`~pgmpy_dp.communities.operators.sparse_minus_constant.SparseMinusConstant`, and hand in ``y``
    and ``factor``, or ``factor`` and ``dual_factor``
    (:mod:`pgmpy_dp.communities.published.projection_solvers`).

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
    reach : float, default 0
        Distance, of the whole matrix in Frobenius norm, that the last of the solvers is proved to reach on every
        graph: solutions are released within that, too.

    Raises
    ------
    TypeError, ValueError
        For arguments out of range.

    Notes
    -----
    Privacy: under ``edge``. Points are certified by
    :func:`~pgmpy_dp.private.mathematics.certificates.certified_projection` or
    :func:`~pgmpy_dp.private.mathematics.certificates.certified_pair`, whatever a solver did; that I/n, the point of an
    answer without factors, is within 1 of every point of the set needs no certificate.

    Examples
    --------
    >>> program = BlockProjection(60, degree=30.0, bias=1.0)
    >>> round(program.sensitivity, 4), round(BlockProjection(60, 30.0, 1.0, analysis="published").sensitivity, 4)
    (0.0408, 0.1155)
    """

    n: int
    degree: float
    bias: float
    n_communities: int = 2
    theta: float | None = None
    analysis: str = "tight"
    tolerance: float = 1e-3
    reach: float = 0.0

    name = "block_projection"
    """Kind of a release of the program."""
    adjacency = Adjacency.EDGE
    failure = 0.0  # the solvers draw no random numbers

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
        object.__setattr__(self, "reach", checked_number("reach", self.reach, positive=False))

    @property
    def size(self) -> int:
        """Entries above the diagonal; for the published analysis those on it too."""
        return self.n * (self.n - 1) // 2 + (self.n if self.analysis == "published" else 0)

    @property
    def scale(self) -> float:
        """The scale s: what one edge moves an entry of Y by, up to its rounding."""
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
        """The sensitivity of the released entries together."""
        if self.analysis == "published":
            return stable_set_sensitivity(2.0 * self.scale / self.n, 1.0)
        return self._tight * math.sqrt(0.5) * (1.0 + 2.0**-50)

    @property
    def distance(self) -> float:
        """The distance of the entries above the diagonal from those of the exact projection."""
        # Of the complete graph, N has the eigenvalue n s, up to 1.
        reachable = 2.0 * rounding_floor(self.n, self.n * self.scale + 1.0)
        return max(self.tolerance * self._tight, reachable, self.reach) * math.sqrt(0.5)

    @property
    def row_sum(self) -> float:
        """Bound on the sum of a row of abs(Y)."""
        constant = self.scale * self.degree / self.n
        return (self.n - 1) * max(constant, abs(self.scale - constant))

    @property
    def bound(self) -> float:
        """A bound on the absolute value of an entry."""
        return (1.0 + 2.0**-40) / self.n

    def public(self) -> dict[str, Any]:
        """The settings."""
        names = ("n", "degree", "bias", "n_communities", "theta", "analysis", "tolerance", "reach")
        return {name: getattr(self, name) for name in names}

    def check(self, facts: GraphFacts) -> None:
        """Raise ValueError for another number of vertices."""
        if facts.n != self.n:
            raise ValueError(f"the graph has {facts.n} vertices, and the program was made for n={self.n}")

    def exact(self, records: PrivateGraph) -> SparseMinusConstant:
        """The centred and scaled matrix Y."""
        return SparseMinusConstant(csr_matrix(adjacency_matrix(records)), self.scale, self.scale * self.degree / self.n)

    def certified(self, exact: SparseMinusConstant, answer: Mapping[str, Any]) -> CertifiedPoint:
        """X from dual numbers and a factor, or from two factors; I/n where there are none."""
        target, factor = exact.toarray(), answer.get("factor")
        if isinstance(answer.get("y"), np.ndarray) and isinstance(factor, np.ndarray):
            point = certified_projection(target, answer["y"], factor)
        elif isinstance(answer.get("dual_factor"), np.ndarray) and isinstance(factor, np.ndarray):
            point = certified_pair(target, factor, answer["dual_factor"])
        else:
            point = CertifiedPoint(np.eye(self.n) / self.n, 1.0)
        entries = np.triu_indices(self.n, 0 if self.analysis == "published" else 1)
        # X and the projection have the same diagonal: above it is half of the squared distance.
        return CertifiedPoint(point.value[entries], point.distance * math.sqrt(0.5) * (1.0 + 2.0**-50))

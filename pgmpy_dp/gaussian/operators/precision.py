"""The graphical lasso under a cap on the eigenvalues, as a program whose checker is in the boundary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer, checked_number
from pgmpy_dp.gaussian.operators.log_determinant import certified_precision, distance_bound
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.moments import GRID, second_moments, trace_sensitivity
from pgmpy_dp.private.data.vectors import PrivateVectors, VectorFacts
from pgmpy_dp.private.mathematics.certificates import CertifiedPoint
from pgmpy_dp.private.operators.solutions import CheckedProgram
from pgmpy_dp.private.operators.vector_operators import checked_norm, checked_point

_LARGEST_CONDITION = 1e14
"""tau B^2 at most: the ratio of the largest and the smallest eigenvalue of Theta, which doubles can just tell apart."""

_SOLVER_SHARE = 0.125  # of the optimum's own sensitivity, allowed to the solver's error; a quarter of it in all


@dataclass(frozen=True)
class PrecisionProgram(CheckedProgram):
    """Minimise ``-log det Theta + <S, Theta> + lambda |Theta|_1`` over ``0 < Theta <= tau I``.

    S is the second moments of clipped records over N. The solution is the upper triangle of Theta, row by row;
    `sensitivity` and `distance` bound Frobenius norms of the whole matrix, and so l2 norms of the triangle.

    Parameters
    ----------
    d : int
        Columns.
    adjacency : Adjacency
    n_records : int
        N, public, above 0.
    row_norm : float
        B: records, less the centre, are shortened to it.
    penalty : float
        lambda > 0, of all entries, the diagonal too.
    max_eigenvalue : float, optional
        tau > 0. Default: 1/lambda.
    center : None or sequence of d numbers
        Public.

    Raises
    ------
    TypeError, ValueError
        For arguments out of range, and for ``tau B**2`` above 1e14, where no certificate could be reached.

    Notes
    -----
    Privacy
        *Sensitivity.* On ``0 < Theta <= tau I`` the Hessian of -log det, ``Theta^-1 (x) Theta^-1``, is at least
        tau^-2, so the objective F_S is tau^-2-strongly convex. With optima T of S and T' of S': adding ``F_S(T') -
        F_S(T) >= |T - T'|^2/(2 tau^2)`` and the same with S' gives ``<S - S', T' - T> >= |T - T'|^2/tau^2``, hence
        ``norm_F(T - T') <= tau^2 norm_F(S - S')``, and S moves by
        :func:`~pgmpy_dp.private.data.moments.trace_sensitivity` over N. (Without the cap the largest eigenvalue can
        exceed 1/lambda, and the bound of the paper needs its own argument.)

        *Certificate.* A duality gap g, computed here whatever the solver says, and so ``norm_F <= tau sqrt(2 g)``. The
        gap asked for lies well above rounding errors of matrices with ``tau B**2`` of at most 1e14. That a solver gets
        there on all records is proved only where the distance is the diameter of the feasible set (``tau B**2`` above
        2.5e10 d); elsewhere it is tested.

        *Source.* Wang, Huai and Xu 2018, Algorithm 1, with a proof.
    """

    d: int
    adjacency: Adjacency
    n_records: int
    row_norm: float
    penalty: float
    max_eigenvalue: float | None = None
    center: tuple[float, ...] | None = None

    name = "precision_program"
    """Kind of a release of the program with Gaussian noise on the triangle."""
    failure = 0.0  # the solvers draw no random numbers
    symmetric = True

    def __post_init__(self) -> None:
        if not self.n_records:
            raise ValueError(
                f"n_records={self.n_records!r}: noise on the output needs a public number of records, above 0, to "
                "divide by; pass n_records, or perturb='covariance'"
            )
        object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))
        for name in ("d", "n_records"):  # numbers of Python's own, which nobody can change later
            object.__setattr__(self, name, checked_integer(name, getattr(self, name), 1))
        norm = checked_norm("row_norm", self.row_norm)
        penalty = checked_number("penalty", self.penalty, positive=True)
        cap = 1.0 / penalty if self.max_eigenvalue is None else self.max_eigenvalue
        cap = checked_number("max_eigenvalue", cap, positive=True)
        if not 1e-50 <= cap <= 1e50:
            raise ValueError(
                f"max_eigenvalue={cap!r} (1/penalty by default) leaves no room for its powers among the floats; change "
                "the records' units, or penalty"
            )
        if not cap * norm <= _LARGEST_CONDITION / norm:  # their product without overflow
            raise ValueError(
                f"max_eigenvalue={cap!r} (1/penalty by default) with row_norm={norm!r}: their product "
                f"max_eigenvalue * row_norm**2 is above {_LARGEST_CONDITION:g}, and a solution could not be certified "
                f"in floating point; pass max_eigenvalue or 1/penalty of at most "
                f"{_LARGEST_CONDITION / norm / norm:.3g}, a smaller row_norm, or perturb='covariance'"
            )
        center = None if self.center is None else checked_point("center", self.center, self.d)
        for name, value in (("row_norm", norm), ("penalty", penalty), ("max_eigenvalue", cap), ("center", center)):
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:
        """Entries of the upper triangle."""
        return self.d * (self.d + 1) // 2

    @property
    def cap(self) -> float:
        """The cap tau on the eigenvalues."""
        assert self.max_eigenvalue is not None
        return self.max_eigenvalue

    @property
    def sensitivity(self) -> float:
        """The sensitivity of the exact optimum."""
        moments = trace_sensitivity(self.d, self.adjacency).frobenius * (self.row_norm / GRID) ** 2
        return self.cap**2 * moments / self.n_records * (1.0 + 1e-12)

    @property
    def gap(self) -> float:
        """The duality gap that certifies `distance`."""
        # Terms of the gap are sums of d numbers up to these; a gap of 1e-11 of them is there to be found in floats.
        floor = 1e-11 * (self.d + self.row_norm**2 * self.cap + self.d * self.penalty * self.cap)
        return max((_SOLVER_SHARE * self.sensitivity / self.cap) ** 2 / 2.0, floor)

    @property
    def diameter(self) -> float:
        """No two feasible matrices are further apart: the eigenvalues of a difference are between -tau and tau."""
        return self.cap * math.sqrt(self.d) * (1.0 + 1e-9)

    @property
    def distance(self) -> float:
        """The distance of a point with that gap. Twice the gap leaves room for the certificate's own rounding."""
        return min(distance_bound(2.0 * self.gap, max_eigenvalue=self.cap), self.diameter)

    @property
    def bound(self) -> float:
        """A bound on the absolute value of an entry."""
        return self.cap * (1.0 + 1e-9)

    def public(self) -> dict[str, Any]:
        """The settings."""
        names = ("d", "n_records", "row_norm", "penalty", "max_eigenvalue", "center")
        return {name: getattr(self, name) for name in names}

    def check(self, facts: VectorFacts) -> None:
        """Raise ValueError for another number of columns or of records."""
        if len(facts.columns) != self.d or facts.n_records != self.n_records:
            raise ValueError(
                f"the data have {len(facts.columns)} columns and n_records={facts.n_records!r}, and the program "
                f"was made for d={self.d}, n_records={self.n_records!r}"
            )

    def exact(self, records: PrivateVectors) -> np.ndarray:
        """The second moments S, shape (d, d)."""
        center = np.zeros(self.d) if self.center is None else np.array(self.center)
        moments = np.zeros((self.d, self.d))
        moments[np.triu_indices(self.d)] = second_moments(records, center, self.row_norm).value
        return (moments + np.triu(moments, 1).T) * ((self.row_norm / GRID) ** 2 / self.n_records)

    def certified(self, exact: np.ndarray, answer: Mapping[str, Any]) -> CertifiedPoint:
        """Certify a solver's ``precision`` and ``covariance``, which its dual W is."""
        # The penalty of the diagonal, where Theta is positive, is linear and belongs to S.
        penalty = self.penalty * (1.0 - np.eye(self.d))
        target = exact + self.penalty * np.eye(self.d)
        theta, gap = certified_precision(answer.get("precision"), answer.get("covariance"), target, penalty, self.cap)
        distance = min(distance_bound(2.0 * gap, max_eigenvalue=self.cap), self._farthest(theta))
        return CertifiedPoint(theta[np.triu_indices(self.d)], distance)

    def _farthest(self, theta: np.ndarray) -> float:
        """The diameter, for a feasible matrix; infinite for another."""
        try:
            eigenvalues = np.linalg.eigvalsh(theta) / self.cap
        except np.linalg.LinAlgError:
            return math.inf
        return self.diameter if np.all((eigenvalues > -1e-12) & (eigenvalues < 1.0 + 1e-12)) else math.inf

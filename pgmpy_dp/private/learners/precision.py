"""Output perturbation: a sparse inverse covariance of the records, with noise added to it.

Wang, Huai and Xu (2018) bound how far the graphical lasso moves and add one-sided noise, which is not private. This is
a version with a proof. It is here for comparison: noise on the second moments (:mod:`.covariance`) was better wherever
either had an answer (``benchmarks/gaussian.py``).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.solutions import certified_solution
from pgmpy_dp.private.data.moments import GRID, TraceSensitivity, second_moments, trace_sensitivity
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import checked_number
from pgmpy_dp.private.learners.covariance import CovarianceSettings, vectors_public
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.mathematics.certificates import CertifiedPoint
from pgmpy_dp.private.mathematics.log_determinant import certified_precision, distance_bound
from pgmpy_dp.private.noise.matrix import MatrixNoise, add_matrix_noise, plan_matrix_noise
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Release, Sensitive
from pgmpy_dp.schema import decode_label
from pgmpy_dp.solvers.graphical_lasso import graphical_lasso

__all__ = ["OUTPUT_MECHANISMS", "NoisyPrecision", "PrecisionProgram", "PrecisionSettings", "noisy_precision", "run"]

OUTPUT_MECHANISMS = ("auto", "frobenius", "goe")

_LARGEST_CONDITION = 1e14
"""tau B^2 at most: the ratio of the largest and the smallest eigenvalue of Theta, which doubles can just tell apart."""

_SOLVER_SHARE = 0.125  # of the optimum's own sensitivity, allowed to the solver's error; a quarter of it in all


@dataclass(frozen=True)
class PrecisionSettings:
    """The program and its noise, fixed before the records are looked at.

    Parameters
    ----------
    row_norm : float
        B, as in :class:`~pgmpy_dp.private.learners.covariance.CovarianceSettings`.
    penalty : float
        rho > 0, of all entries, the diagonal too.
    max_eigenvalue : float, optional
        tau > 0: the cap ``Theta <= tau I``. Default: 1/rho.
    mechanism : {"auto", "frobenius", "goe"}, default "auto"
    center : None or sequence of d numbers
        Public.
    random_state : int, optional
        For tests and benchmarks only. The release **is not private**.
    """

    row_norm: float
    penalty: float
    max_eigenvalue: float | None = None
    mechanism: str = "auto"
    center: tuple[float, ...] | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        if self.mechanism not in OUTPUT_MECHANISMS:
            raise ValueError(
                f"mechanism={self.mechanism!r} is not supported for noise on the output; use one of {OUTPUT_MECHANISMS}"
            )
        if isinstance(self.center, str):
            raise ValueError(f"center={self.center!r}: noise on the output takes a public center only, or None")
        checked = CovarianceSettings(self.row_norm, center=self.center, random_state=self.random_state)
        for name in ("row_norm", "center", "random_state"):
            object.__setattr__(self, name, getattr(checked, name))
        object.__setattr__(self, "penalty", checked_number("penalty", self.penalty, positive=True))
        cap = 1.0 / self.penalty if self.max_eigenvalue is None else self.max_eigenvalue
        cap = checked_number("max_eigenvalue", cap, positive=True)
        object.__setattr__(self, "max_eigenvalue", cap)
        if not cap * self.row_norm <= _LARGEST_CONDITION / self.row_norm:  # their product without overflow
            raise ValueError(
                f"max_eigenvalue={cap!r} (1/penalty by default) with row_norm={self.row_norm!r}: their product "
                f"max_eigenvalue * row_norm**2 is above {_LARGEST_CONDITION:g}, and a solution could not be certified "
                f"in floating point; pass max_eigenvalue or 1/penalty of at most "
                f"{_LARGEST_CONDITION / self.row_norm / self.row_norm:.3g}, a smaller row_norm, or perturb='covariance'"
            )


@dataclass(frozen=True)
class PrecisionProgram:
    """The graphical lasso under a cap, as a stable program for :mod:`pgmpy_dp.plans.convex_program`.

    Its solution is the upper triangle of Theta, row by row. `sensitivity` and `distance` bound Frobenius norms of the
    whole matrix, and so l2 norms of the triangle; :func:`run` has the proof.

    Parameters
    ----------
    d : int
        Columns.
    adjacency : Adjacency
    n_records : int
        Public, above 0.
    settings : PrecisionSettings
        Of which the mechanism plays no part here.

    Examples
    --------
    >>> from pgmpy_dp.plans.convex_program import release
    >>> program = PrecisionProgram(2, Adjacency.ADD_REMOVE, 5000, PrecisionSettings(row_norm=3.0, penalty=0.2))
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> data = PrivateVectors(rows, ledger=Budget(rho=0.5), n_records=5000)
    >>> release(program, data, Budget(rho=0.5)).values[0].shape
    (3,)
    """

    d: int
    adjacency: Adjacency
    n_records: int
    settings: PrecisionSettings

    @property
    def name(self) -> str:
        """Kind of a release of the program with Gaussian noise on the triangle."""
        return "precision_program"

    @property
    def size(self) -> int:
        """Entries of the upper triangle."""
        return self.d * (self.d + 1) // 2

    @property
    def cap(self) -> float:
        """tau."""
        assert self.settings.max_eigenvalue is not None
        return self.settings.max_eigenvalue

    @property
    def sensitivity(self) -> float:
        """Of the exact optimum."""
        moments = trace_sensitivity(self.d, self.adjacency).frobenius * (self.settings.row_norm / GRID) ** 2
        return self.cap**2 * moments / self.n_records * (1.0 + 1e-12)

    @property
    def gap(self) -> float:
        """Duality gap that certifies `distance`."""
        # Terms of the gap are sums of d numbers up to these; a gap of 1e-11 of them is there to be found in floats.
        floor = 1e-11 * (self.d + self.settings.row_norm**2 * self.cap + self.d * self.settings.penalty * self.cap)
        return max((_SOLVER_SHARE * self.sensitivity / self.cap) ** 2 / 2.0, floor)

    @property
    def diameter(self) -> float:
        """No two feasible matrices are further apart: the eigenvalues of a difference are between -tau and tau."""
        return self.cap * math.sqrt(self.d) * (1.0 + 1e-9)

    @property
    def distance(self) -> float:
        """Of a point with that gap: twice the gap leaves room for the certificate's own rounding."""
        return min(distance_bound(2.0 * self.gap, max_eigenvalue=self.cap), self.diameter)

    @property
    def bound(self) -> float:
        """Of an entry."""
        return self.cap * (1.0 + 1e-9)

    @property
    def failure(self) -> float:
        """The solvers draw no random numbers."""
        return 0.0

    def public(self) -> dict[str, Any]:
        """The settings."""
        names = ("row_norm", "penalty", "max_eigenvalue", "center")
        return {"d": self.d, "n_records": self.n_records, **{name: getattr(self.settings, name) for name in names}}

    def check(self, records: PrivateVectors) -> None:
        """ValueError for another number of columns or of records."""
        if len(records.columns) != self.d or records.n_records != self.n_records:
            raise ValueError(
                f"the data have {len(records.columns)} columns and n_records={records.n_records!r}, and the program "
                f"was made for d={self.d}, n_records={self.n_records!r}"
            )

    def solve(self, records: PrivateVectors) -> CertifiedPoint:
        """One solve, with the solver's usual limit on iterations."""
        return self._solved(self._moments(records), 2000, None)[0]

    def fallback(self, records: PrivateVectors) -> CertifiedPoint:
        """Solves until the certificate is there: an end by a limit would be an outcome that depends on the records.

        Where the distance is the diameter, and so whenever ``tau B**2`` is above 2.5e10 d, the first one ends it.
        """
        moments, start = self._moments(records), None
        for k in itertools.count(1):
            point, start = self._solved(moments, 2000 << min(k, 10), start)
            if point.distance <= self.distance:
                break
        return point

    def _moments(self, records: PrivateVectors) -> np.ndarray:
        center = np.zeros(self.d) if self.settings.center is None else np.array(self.settings.center)
        moments = np.zeros((self.d, self.d))
        moments[np.triu_indices(self.d)] = second_moments(records, center, self.settings.row_norm).value
        return (moments + np.triu(moments, 1).T) * ((self.settings.row_norm / GRID) ** 2 / self.n_records)

    def _solved(
        self, moments: np.ndarray, max_iter: int, start: np.ndarray | None
    ) -> tuple[CertifiedPoint, np.ndarray | None]:
        """The solver's matrices, certified here: what else it says of them is not looked at."""
        penalty = np.full(moments.shape, self.settings.penalty)
        precision, dual = None, None
        try:
            solution = graphical_lasso(
                moments.copy(),
                penalty.copy(),
                penalize_diagonal=True,
                max_eigenvalue=self.cap,
                tolerance=0.5 * self.gap / self.d,
                max_iter=max_iter,
                start=start,
            )
            precision, dual = solution.precision, solution.dual
        except Exception:  # it would tell of the records
            start = None
        # The penalty of the diagonal, where Theta is positive, is linear and belongs to S.
        np.fill_diagonal(penalty, 0.0)
        target = moments + self.settings.penalty * np.eye(self.d)
        theta, gap = certified_precision(precision, dual, target, penalty, self.cap)
        distance = min(distance_bound(2.0 * gap, max_eigenvalue=self.cap), self._farthest(theta))
        return CertifiedPoint(theta[np.triu_indices(self.d)], distance), None if precision is None else theta

    def _farthest(self, theta: np.ndarray) -> float:
        """The diameter, for a feasible matrix; infinite for another."""
        try:
            eigenvalues = np.linalg.eigvalsh(theta) / self.cap
        except np.linalg.LinAlgError:
            return math.inf
        return self.diameter if np.all((eigenvalues > -1e-12) & (eigenvalues < 1.0 + 1e-12)) else math.inf


@dataclass(frozen=True)
class _Plan:
    unit: float  # of the released integers, a power of two
    sensitivity: TraceSensitivity  # in units; only the Frobenius norm is used
    noise: MatrixNoise


def run(data: PrivateVectors, settings: PrecisionSettings, budget: Budget) -> Release:
    """Release ``argmin -log det Theta + <S, Theta> + rho |Theta|_1`` over ``0 < Theta <= tau I``, with noise.

    Parameters
    ----------
    data : PrivateVectors
        With a public number N of records: S is the second moments of clipped records over N, a public constant.
    settings : PrecisionSettings
    budget : Budget
        It is charged to the ledger of the data before anything is computed.

    Returns
    -------
    Release
        ``kind="precision"``: diagonal and rest of the upper triangle. :func:`noisy_precision` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For public arguments that do not suit, before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* On ``0 < Theta <= tau I`` the Hessian of -log det, ``Theta^-1 (x) Theta^-1``, is at least
        tau^-2, so the objective F_S is tau^-2-strongly convex. With optima T of S and T' of S': adding ``F_S(T') -
        F_S(T) >= |T - T'|^2/(2 tau^2)`` and the same with S' gives ``<S - S', T' - T> >= |T - T'|^2/tau^2``, hence
        ``norm_F(T - T') <= tau^2 norm_F(S - S')``, and S moves by
        :func:`~pgmpy_dp.private.data.moments.trace_sensitivity` over N. (Without the cap the largest eigenvalue can
        exceed 1/rho, and the bound of the paper needs its own argument.) What is released is not T but a point that the
        solver found, with a *certificate*: a duality gap g, computed here whatever the solver says, and so ``norm_F <=
        tau sqrt(2 g)``, below an eta fixed from public numbers. Rounding d**2 entries to the grid moves it by at most
        ``d unit/2``. So it moves by at most ``tau^2 norm_F(S - S') + 2 eta + d unit`` between neighbours.

        *Guarantee.* Pure: K-norm noise in Frobenius norm. Otherwise GOE. Both in :mod:`pgmpy_dp.private.noise.matrix`;
        the first is made in floating point and rounded, as ``Release.floating_point`` says, the second is exact.

        *Side channels.* The solver goes on until the certificate is there, without a limit; the gap asked for lies well
        above rounding errors of matrices with ``tau B**2`` of at most 1e14, and others are refused. (That it ends on
        all records is tested, and proved only where the distance is the diameter of the feasible set.) The running time
        depends on the records.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> data = PrivateVectors(rows, ledger=Budget(epsilon=1.0), n_records=5000)
    >>> release = run(data, PrecisionSettings(row_norm=3.0, penalty=0.2), Budget(epsilon=1.0))
    >>> release.mechanism, [value.shape for value in release.values]
    ('output_frobenius', [(2,), (1,)])
    """
    require_data_and_budget(data, PrivateVectors, budget)
    d = len(data.columns)
    if not data.n_records:
        raise ValueError(
            f"n_records={data.n_records!r}: noise on the output needs a public number of records, above 0, to divide "
            "by; pass n_records, or perturb='covariance'"
        )
    if settings.center is not None and len(settings.center) != d:
        raise ValueError(f"center has {len(settings.center)} entries for {d} columns; pass one number per column")
    program = PrecisionProgram(d, data.adjacency, data.n_records, settings)
    plan = _planned(program, budget)
    seed = seeded_generator(settings.random_state)
    mechanism = "output_" + plan.noise.mechanism
    data.ledger.charge(
        plan.noise.cost,
        what=f"inverse covariance of {d} columns",
        columns=data.columns,
        mechanism=mechanism,
        adjacency=data.adjacency,
        reproducible=seed is not None,
        unit=data.unit,
    )
    exact = np.rint(certified_solution(program, data) / plan.unit).astype(np.int64)
    moved = plan.sensitivity.frobenius
    sensitive = Sensitive(exact, data.adjacency, moved * math.sqrt(len(exact)), moved, moved)
    return Release(
        kind="precision",
        values=add_matrix_noise(sensitive, plan.noise, seed),
        noise=(plan.noise.diagonal, plan.noise.off_diagonal),
        public={
            **vectors_public(data),
            "row_norm": settings.row_norm,
            "center": settings.center,
            "penalty": settings.penalty,
            "max_eigenvalue": settings.max_eigenvalue,
            "unit_of_values": plan.unit,
            "settings": {"mechanism": settings.mechanism, "budget": budget.guarantee.to_dict()},
        },
        adjacency=data.adjacency,
        guarantee=plan.noise.cost,
        mechanism=mechanism,
        reproducible=seed is not None,
    )


def _planned(program: PrecisionProgram, budget: Budget) -> _Plan:
    """Everything else that is decided from public numbers; each bound rounded up by a part in 10**9."""
    tau, d, mechanism = program.cap, program.d, program.settings.mechanism
    if not 1e-50 <= tau <= 1e50:
        raise ValueError(
            f"max_eigenvalue={tau!r} (1/penalty by default) leaves no room for its powers among the floats; change the "
            "records' units, or penalty"
        )
    moved = program.sensitivity + 2.0 * program.distance
    unit = math.ldexp(1.0, math.floor(math.log2(max(moved * 2.0**-30 / d, tau * 2.0**-50))))
    frobenius = (moved + d * unit) / unit * (1.0 + 1e-9)
    sensitivity = TraceSensitivity(math.inf, frobenius, math.inf)
    if mechanism == "auto":
        names = [] if budget.epsilon is None else ["frobenius"]
        names += ["goe"] if budget.rho is not None or budget.delta else []
    else:
        names = [mechanism]
    plans = [plan_matrix_noise(name, d, program.adjacency, budget, sensitivity=sensitivity) for name in names]
    return _Plan(unit, sensitivity, min(plans, key=lambda noise: noise.frobenius))


@dataclass(frozen=True)
class NoisyPrecision:
    """What a release of kind "precision" says.

    Attributes
    ----------
    columns : tuple
    precision : ndarray of shape (d, d)
        Symmetric; possibly with negative eigenvalues.
    location : ndarray of shape (d,)
    n_records : int
    sd : float
        Standard deviation of the noise in an off-diagonal entry.
    smallest, largest : float
        The exact optimum's eigenvalues lie between them: at least ``min(tau, 1/(B**2 + d rho))`` with tau the cap,
        because its inverse is ``S + U``, ``|U_ij| <= rho``, with eigenvalues raised to 1/tau.
    """

    columns: tuple
    precision: np.ndarray
    location: np.ndarray
    n_records: int
    sd: float
    smallest: float
    largest: float


def noisy_precision(release: Release) -> NoisyPrecision:
    """Read a release of :func:`run`; post-processing. ValueError for another kind of release."""
    if release.kind != "precision":
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind 'precision'")
    public = release.public
    columns = tuple(decode_label(name) for name in public["columns"])
    d, unit, tau = len(columns), public["unit_of_values"], public["max_eigenvalue"]
    precision = np.zeros((d, d))
    precision[np.triu_indices(d, 1)] = release.values[1] * unit
    precision += precision.T
    precision[np.diag_indices(d)] = release.values[0] * unit
    off = release.noise[1]
    assert off is not None
    location = np.zeros(d) if public["center"] is None else np.array(public["center"])
    smallest = min(tau, 1.0 / (public["row_norm"] ** 2 + d * public["penalty"]))
    sd = math.sqrt(off.variance) * unit
    return NoisyPrecision(columns, precision, location, public["n_records"], sd, smallest, tau)

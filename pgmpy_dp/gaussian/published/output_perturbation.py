"""Output perturbation: a sparse inverse covariance of the records, with noise added to it.

Wang, Huai and Xu (2018) bound how far the graphical lasso moves and add one-sided noise, which is not private. This is
a version with a proof. It is here for comparison: noise on the second moments (:mod:`pgmpy_dp.gaussian.noisy_moments`)
was better wherever either had an answer (``benchmarks/gaussian.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso
from pgmpy_dp.gaussian.graphical_models import refit_on_support
from pgmpy_dp.gaussian.operators.precision import PrecisionProgram
from pgmpy_dp.gaussian.precision_fits import PrecisionFit
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.operators.solutions import Solution, Solver, matrix_plan
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label
from pgmpy_dp.shown import quantity

_ROUNDS = 13  # of twice as many iterations each, up to 8 million: a limit, where days would pass without an answer


@outside_function
def capped_lasso(moments: np.ndarray, penalty: float, max_eigenvalue: float, tolerance: float, max_iter: int) -> dict:
    """The graphical lasso's matrices, for a checker."""
    fit = graphical_lasso(
        moments,
        np.full(moments.shape, penalty),
        penalize_diagonal=True,
        max_eigenvalue=max_eigenvalue,
        tolerance=tolerance,
        max_iter=max_iter,
    )
    return {"precision": fit.precision, "covariance": fit.dual}


def lasso_solvers(program: PrecisionProgram) -> list[Solver]:
    """Public arguments of each attempt: the solver's usual limit on iterations, then twice as many, and so on."""
    fixed = {"penalty": program.penalty, "max_eigenvalue": program.cap, "tolerance": 0.5 * program.gap / program.d}
    name = f"{__name__}.{capped_lasso.__name__}"
    return [(name, {**fixed, "max_iter": 2000 << k}) for k in range(_ROUNDS)]


def run(data: PrivateVectors, settings: Settings, budget: Budget) -> Release:
    """Release ``argmin -log det Theta + <S, Theta> + lambda |Theta|_1`` over ``0 < Theta <= tau I``, with noise.

    Parameters
    ----------
    settings : Settings
        The options of :class:`~pgmpy_dp.estimators.PrivateGraphicalLasso`;
        :class:`~pgmpy_dp.gaussian.operators.precision.PrecisionProgram` judges the program.
    data : PrivateVectors
        With a public number N of records: S is the second moments of clipped records over N, a public constant.

    Returns
    -------
    Release
        ``kind="precision"``: diagonal and rest of the upper triangle. :func:`noisy_precision` reads it.

    Raises
    ------
    TypeError, ValueError
        For public arguments that do not suit.
    UncertifiedSolution
        If no solution was certified after some 16 million iterations: nothing is released, and the budget is spent.

    Notes
    -----
    Privacy
        *Guarantee.* The budget's, by one request for a solution
        (:class:`~pgmpy_dp.private.operators.solutions.Solution`) of a
        :class:`~pgmpy_dp.gaussian.operators.precision.PrecisionProgram`. Pure: K-norm noise in Frobenius norm, made in
        floating point and rounded, as ``Release.floating_point`` says. Otherwise GOE, which is exact.

        *Side channels.* The running time depends on the records.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(5000, 2))
    >>> data = PrivateVectors(rows, ledger=Budget(epsilon=1.0), n_records=5000)
    >>> from pgmpy_dp.estimators import PrivateGraphicalLasso
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateGraphicalLasso(row_norm=3.0, perturb="output", penalty=0.2))
    >>> release = run(data, settings, Budget(epsilon=1.0))
    >>> release.mechanism, release.names
    ('output_frobenius', ('diagonal', 'off_diagonal'))
    """
    require_data_and_budget(data, PrivateVectors, budget)
    d = len(data.columns)
    program = PrecisionProgram(
        *(d, data.adjacency, data.n_records or 0),
        *(settings.row_norm, settings.penalty, settings.max_eigenvalue, settings.center),
    )
    names = [settings.mechanism]
    if settings.mechanism == "auto":
        names = ["frobenius"] * (budget.rho is None) + ["goe"] * bool(budget.rho or budget.delta)
    plan = min((matrix_plan(program, name, budget) for name in names), key=lambda plan: plan.noise.frobenius)
    curator = Curator(
        data,
        budget,
        what=f"inverse covariance of {quantity(d, 'column')}",
        mechanism="output_" + plan.noise.mechanism,
        pure=not isinstance(plan.noise.cost, ZCDP),
        random_state=settings.random_state,
    )
    curator.ask(Solution(program, lasso_solvers(program), plan.noise.mechanism), 1)
    return curator.release(
        "precision",
        {
            "row_norm": program.row_norm,
            "center": program.center,
            "penalty": program.penalty,
            "max_eigenvalue": program.max_eigenvalue,
            "unit_of_values": plan.unit,
            "settings": settings.public(budget, "mechanism"),
        },
        curator.called("diagonal", "off_diagonal"),
    )


@dataclass(frozen=True)
class NoisyPrecision:
    """The content of a release of kind "precision".

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
        The exact optimum's eigenvalues lie between them: at least ``min(tau, 1/(B**2 + d lambda))`` with tau the cap,
        because its inverse is ``S + U``, ``|U_ij| <= lambda``, with eigenvalues raised to 1/tau.
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
    require_kind(release, "precision")
    public = release.public
    columns = tuple(decode_label(name) for name in public["columns"])
    d, unit, tau = len(columns), public["unit_of_values"], public["max_eigenvalue"]
    precision = np.zeros((d, d))
    precision[np.triu_indices(d, 1)] = release["off_diagonal"].array * unit
    precision += precision.T
    precision[np.diag_indices(d)] = release["diagonal"].array * unit
    off = release["off_diagonal"].noise
    assert off is not None
    location = np.zeros(d) if public["center"] is None else np.array(public["center"])
    smallest = min(tau, 1.0 / (public["row_norm"] ** 2 + d * public["penalty"]))
    sd = math.sqrt(off.variance) * unit
    return NoisyPrecision(columns, precision, location, public["n_records"], sd, smallest, tau)


def fit_precision(noisy: NoisyPrecision, penalty: float) -> PrecisionFit:
    """A sparse positive definite matrix from a noisy one."""
    d = len(noisy.precision)
    values, vectors = np.linalg.eigh(noisy.precision)
    inside = np.clip(values, noisy.smallest, noisy.largest)
    covariance = (vectors / inside) @ vectors.T
    # Entries within `sd sqrt(2 log d)` of zero, which noise alone reaches for about one in d, are taken to be zero. Of
    # the matrix with eigenvalues clipped to where the exact optimum has them, the nearest in the sense of maximum
    # likelihood with that support is returned.
    support = np.abs(noisy.precision) > noisy.sd * math.sqrt(2.0 * math.log(d)) if d > 1 else np.ones((1, 1), bool)
    np.fill_diagonal(support, True)
    fit = refit_on_support((covariance + covariance.T) / 2, support, max_eigenvalue=noisy.largest, tolerance=1e-7)
    return PrecisionFit(fit.precision, fit.covariance, penalty, fit.n_iter, fit.converged)

"""From a noisy covariance or precision matrix to a sparse precision matrix: post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from pgmpy_dp.gaussian.gaussian_pairs import pair_model
from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso
from pgmpy_dp.gaussian.graphical_models import (
    lasso_penalty,
    project_psd,
    refit_on_support,
    unclipped_moments,
)
from pgmpy_dp.gaussian.noisy_moments import NoisyCovariance
from pgmpy_dp.gaussian.pair_correlations import NoisyPairs

_FLOOR = 1e-9
_TOLERANCE = 1e-7  # of the duality gap, for each variable: far below what noise and sampling leave unknown


@dataclass(frozen=True)
class PrecisionFit:
    """Precision and covariance, each the other's inverse; the penalty used; how the solver ended."""

    precision: np.ndarray
    covariance: np.ndarray
    penalty: float
    n_iter: int
    converged: bool


def fit_covariance(noisy: NoisyCovariance, penalty: float | str, refit: bool, centered: bool = True) -> PrecisionFit:
    """Graphical lasso of noisy second moments, and maximum likelihood on what is significant of its support.

    ::

        P      = noisy second moments with eigenvalues clipped to be positive, as before records were shortened
        lambda = penalty, or 1.5 sqrt((mean(diag P)**2/n + sd**2) log d)
        Z      = argmin -log det + <P, .> + lambda sum_{i != j} |.|
        R      = argmin -log det + <P, .> on the support of Z, eigenvalues at most 1/(3 s)
        Theta  = the same on the pairs of the support with |R_ij| > sqrt(2 log d) e_ij

    Parameters
    ----------
    penalty : float or "noise-aware"
        In the units of `noisy.scales`, like everything here.
    refit : bool
        Whether to return Theta; else Z.
    centered : bool
        Whether the moments are about a mean: what shortening did to a Gaussian is taken back then
        (:func:`~pgmpy_dp.gaussian.graphical_models.unclipped_moments`), and the noise counted as so much larger.

    Returns
    -------
    PrecisionFit
        In the units of the records.
    """
    d, n, scales = len(noisy.covariance), noisy.n_records, np.outer(noisy.scales, noisy.scales)
    raw = noisy.covariance / scales
    sizes = np.abs(np.linalg.eigvalsh(raw))
    # 1e-9 of the scale of the records; of noise that is far larger, what a factorisation can resolve.
    floor = max(_FLOOR * noisy.row_norm**2, 1e-10 * float(sizes.max()))
    moments, sd = project_psd(raw, floor), noisy.sd
    if centered:
        clipped = moments
        moments = project_psd(unclipped_moments(clipped, noisy.row_norm), floor)
        sd *= max(1.0, float(np.trace(moments) / np.trace(clipped)))
    mean = float(np.diagonal(moments).mean())
    if isinstance(penalty, str):
        penalty = lasso_penalty(mean, n, sd, d)
    lasso = graphical_lasso(moments, penalty, tolerance=_TOLERANCE)
    steps = [lasso]
    if refit:
        # *s*, `sqrt(mean(diag P)**2/n + sd**2)`, is the standard deviation of an entry of P. Eigenvalues of P below 3 s
        # are noise, and without the cap one that was clipped to 1e-9 would become a precision of 1e9. It does not bind
        # where the smallest eigenvalue of the covariance is above that.
        cap = 1.0 / (3.0 * math.hypot(mean / math.sqrt(n), sd))
        fitted = partial(refit_on_support, moments, max_eigenvalue=cap, tolerance=_TOLERANCE, start=lasso.precision)
        steps += [first := fitted(lasso.precision != 0)]
        steps += [fitted(_significant(first.precision, lasso.precision, n, sd))]
    last = steps[-1]
    return PrecisionFit(
        last.precision / scales,
        last.covariance * scales,
        penalty,
        sum(step.n_iter for step in steps),
        all(step.converged for step in steps),
    )


def _significant(fitted: np.ndarray, lasso: np.ndarray, n: float, sd: float) -> np.ndarray:
    size, norms = np.diagonal(lasso), np.linalg.norm(lasso, axis=1)
    # *e_ij* is the standard deviation of an entry of the inverse,
    # `sqrt((R_ii R_jj + R_ij**2)/n + sd**2 |R_i|**2 |R_j|**2)`: to first order an error E of P moves the inverse by
    # `-R E R`, E being the sampling error of a Gaussian and independent noise. The penalty alone leaves pairs that are
    # zero by this measure, about a quarter of all found.
    sampling = (np.outer(size, size) + lasso**2) / n
    error = np.sqrt(sampling + (sd * np.outer(norms, norms)) ** 2)
    support = np.abs(fitted) > math.sqrt(2.0 * math.log(len(fitted))) * error
    np.fill_diagonal(support, True)
    return support


def fit_pairs(noisy: NoisyPairs) -> PrecisionFit:
    """The Gaussian of maximum entropy with the chosen correlations, in the units of the records."""
    model, scales = pair_model(noisy.correlation, noisy.sd, noisy.measured), np.outer(noisy.scales, noisy.scales)
    return PrecisionFit(model.precision / scales, model.correlation * scales, 0.0, model.n_iter, model.converged)

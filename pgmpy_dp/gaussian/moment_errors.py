"""How wrong second moments are that were clipped, released with noise, and unclipped: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.gaussian.graphical_models import project_psd, squared_draws, unclipped_moments
from pgmpy_dp.gaussian.noisy_moments import NoisyCovariance
from pgmpy_dp.private.data.moments import GRID
from pgmpy_dp.private.sensitive import Release


@dataclass(frozen=True)
class MomentErrors:
    """A covariance matrix from noisy moments of shortened records, and the law of its error to first order.

    Everything is in the units of ``NoisyCovariance.scales``, in which the noise is the same for each column.

    Attributes
    ----------
    covariance : ndarray of shape (d, d)
        Positive definite.
    n_raised : int
        How many eigenvalues of the noisy moments were raised to be positive.
    vectors : ndarray of shape (d, d)
        Eigenvectors of the moments, in columns: shortening keeps them.
    slopes : ndarray of shape (d, d)
        Derivatives of the covariance's eigenvalues by those of the moments.
    turns : ndarray of shape (d, d)
        Of the entries off the diagonal, in the basis of the eigenvectors: of the covariance's by the moments'.
    fourth : ndarray of shape (d, d)
        E[z_k**2 z_l**2] of a shortened record z in that basis.
    second : ndarray of shape (d,)
        E[z_k**2].
    noisy : NoisyCovariance
    mean_sd : ndarray of shape (d,)
        Standard deviations of the noise in the mean; zeros where it is public.
    count_sd : float
        Of the noise in the number of records; 0 where it is public.
    """

    covariance: np.ndarray
    n_raised: int
    vectors: np.ndarray
    slopes: np.ndarray
    turns: np.ndarray
    fourth: np.ndarray
    second: np.ndarray
    noisy: NoisyCovariance
    mean_sd: np.ndarray
    count_sd: float

    def variance(self, gradient: np.ndarray) -> float:
        """Variance of ``sum_ij gradient_ij covariance_ij`` by sampling, and by the noise of everything released.

        ::

            H = V'GV off its diagonal times `turns`, on it times `slopes`: the gradient by the moments; F = VHV'
            sampling   1/n (sum_{k<l} 4 H_kl^2 E[z_k^2 z_l^2] + h' Cov(z^2) h), h = diag H
            noise      s_1^2 sum_i F_ii^2 + s^2 sum_{i<j} 4 F_ij^2: entries are uncorrelated, of deviations s_1, s
            mean       of e'Fe, with e the noise of the mean, independent and of a Laplace law (a Gaussian's has less)
            count      (h'm)^2 Var(n)/n^2, as moments are sums over the released number

        Parameters
        ----------
        gradient : ndarray of shape (d, d)
            Symmetric.
        """
        turned = self.vectors.T @ gradient @ self.vectors
        h = self.slopes.T @ np.diagonal(turned)
        turned = np.where(np.eye(len(h)) > 0, h, turned * self.turns)
        sampling = 2 * (turned**2 * self.fourth).sum() - 2 * (h**2 * np.diagonal(self.fourth)).sum()
        sampling += h @ (self.fourth - np.outer(self.second, self.second)) @ h
        squares = (self.vectors @ turned @ self.vectors.T) ** 2
        diagonal, t, n = np.diagonal(squares), self.mean_sd**2, self.noisy.n_records
        noise = 2 * self.noisy.sd**2 * (squares.sum() - diagonal.sum()) + self.noisy.diagonal_sd**2 * diagonal.sum()
        noise += 2 * t @ squares @ t + 3 * diagonal @ t**2
        return float(sampling / n + noise + (h @ self.second * self.count_sd / n) ** 2)


def moment_errors(noisy: NoisyCovariance, mean_sd: np.ndarray, count_sd: float = 0.0) -> MomentErrors:
    """Covariance by :func:`~pgmpy_dp.gaussian.graphical_models.unclipped_moments`, and its derivatives.

    ::

        P = noisy moments less diag(t^2), eigenvalues below 3 s raised to that, s the noise's standard deviation
        m_k = E[w l_k u_k^2], w = min(1, B^2/r^2), r^2 = sum_j l_j u_j^2     (see `unclipped_moments`, which inverts it)
        dm_k/dl_j = [k = j] E[w u_k^2] - E[1{r > B} w/r^2 l_k u_k^2 u_j^2]

    The error e of the released mean adds e e' to the moments, t^2 = E[e^2] on their diagonal. An eigenvalue below
    3 s is noise, and the inverse of one near zero would be a coefficient without bound. `turns` are
    ``(l_k - l_j)/(m_k - m_j)``, and for near eigenvalues the limit of that, ``dl_k/dm_k - dl_k/dm_j``.

    Parameters
    ----------
    noisy : NoisyCovariance
        About the mean.
    mean_sd : ndarray of shape (d,)
        t, over `noisy.scales`.
    count_sd : float

    Returns
    -------
    MomentErrors

    Examples
    --------
    >>> noisy = NoisyCovariance(("a",), np.eye(1), np.zeros(1), 1e4, 0.0, 0.03, np.ones(1), 9.0)
    >>> round(moment_errors(noisy, np.zeros(1)).variance(np.eye(1)), 4)  # 2/n by sampling, and 0.03**2
    0.0011
    """
    raw = noisy.covariance / np.outer(noisy.scales, noisy.scales) - np.diag(mean_sd**2)
    values = np.linalg.eigvalsh((raw + raw.T) / 2)
    floor = max(3.0 * noisy.sd, 1e-9 * noisy.row_norm**2, 1e-10 * float(np.abs(values).max()))
    clipped = project_psd(raw, floor)
    covariance = project_psd(unclipped_moments(clipped, noisy.row_norm), floor)
    moments, vectors = np.linalg.eigh(clipped)
    unclipped = np.einsum("ik,ij,jk->k", vectors, covariance, vectors)
    squares = squared_draws(len(values))
    lengths = squares @ unclipped
    kept = np.minimum(1.0, noisy.row_norm**2 / lengths)[:, None]
    z = squares * unclipped * kept
    shortened = z * (kept < 1) / lengths[:, None]
    slopes = np.linalg.pinv((np.diag((kept * squares).sum(axis=0)) - shortened.T @ squares) / len(z), rcond=1e-10)
    limit, apart = np.diagonal(slopes)[:, None] - slopes, np.subtract.outer(moments, moments)
    near = np.abs(apart) < 0.1 * np.maximum.outer(moments, moments)
    quotient = np.subtract.outer(unclipped, unclipped) / np.where(near, 1.0, apart)
    turns = np.where(near, (limit + limit.T) / 2, quotient)
    fourth, second, n_raised = z.T @ z / len(z), z.mean(axis=0), int((values < floor).sum())
    return MomentErrors(covariance, n_raised, vectors, slopes, turns, fourth, second, noisy, mean_sd, count_sd)


def mean_and_count_deviations(release: Release, noisy: NoisyCovariance) -> tuple[np.ndarray, float]:
    """Standard deviations of the noise in `noisy.location`, over `noisy.scales`, and in the number of records.

    Zeros for what is public.

    Parameters
    ----------
    release : Release
        Of :func:`pgmpy_dp.gaussian.noisy_moments.run`.
    noisy : NoisyCovariance
        What it says.

    Examples
    --------
    >>> from pgmpy_dp import Budget, PrivateVectors
    >>> from pgmpy_dp.gaussian.noisy_moments import noisy_covariance, run
    >>> from pgmpy_dp.learning.options import settings_of
    >>> from pgmpy_dp.estimators import PrivateGraphicalLasso
    >>> data = PrivateVectors(np.zeros((500, 2)), ledger=Budget(epsilon=1.0), n_records=500)
    >>> lasso = PrivateGraphicalLasso(row_norm=3.0, center="private", center_radius=1.0)
    >>> release = run(data, settings_of(lasso), Budget(epsilon=1.0))
    >>> deviations, of_count = mean_and_count_deviations(release, noisy_covariance(release))
    >>> deviations.round(3), of_count  # 2**.5 times the scale: the l1 norm of 2 columns over a fifth of the budget
    (array([0.02, 0.02]), 0.0)
    """
    public, n = release.public, noisy.n_records
    sds = {name: math.sqrt(noise.variance) for name, noise in zip(release.names, release.noise, strict=True) if noise}
    units, count_sd = np.ones(len(noisy.columns)), sds.get("count", 0.0)
    if "second_sum" in sds:
        return units * (noisy.row_norm * sds["second_sum"] / GRID / n), count_sd
    if "lower" in public:
        units = (np.array(public["upper"]) / 2.0 - np.array(public["lower"]) / 2.0) / noisy.scales
    return units * ((public["center_radius"] or 0.0) * sds.get("sum", 0.0) / GRID / n), count_sd


def regression(errors: MomentErrors, child: int, parents: Sequence[int]) -> tuple[np.ndarray, float, np.ndarray]:
    """Linear regression of a column on others, with an intercept, in the columns' own units.

    ::

        b = S_pp^-1 S_py,  v = e_y - sum_i b_i e_i,  variance v'Sv,  intercept v'm     S the covariance, m the means
        an error E of S moves b by S_pp^-1 E_p. v, an error e of m the intercept by v'e

    Returns
    -------
    coefficients : ndarray of shape (1 + number of parents,)
        The intercept first.
    deviation : float
        Of the residual; above 0.
    standard_errors : ndarray of the shape of the coefficients
        By sampling and noise. A public mean has no error.

    Examples
    --------
    >>> covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> noisy = NoisyCovariance(("a", "b"), covariance, np.ones(2), 1e4, 0.0, 0.0, np.ones(2), 99.0)
    >>> coefficients, deviation, standard_errors = regression(moment_errors(noisy, np.zeros(2)), 1, [0])
    >>> coefficients.round(3), round(deviation, 3), standard_errors.round(4)
    (array([0.5, 0.5]), 0.866, array([0.0087, 0.0087]))
    """
    noisy, parents = errors.noisy, list(parents)
    inverse = np.linalg.inv(errors.covariance[np.ix_(parents, parents)])
    contrast, weights = np.zeros(len(noisy.columns)), np.zeros((1 + len(parents), len(noisy.columns)))
    contrast[child] = 1.0
    contrast[parents] = -inverse @ errors.covariance[parents, child]
    variance, means = float(contrast @ errors.covariance @ contrast), noisy.location / noisy.scales
    weights[:, parents] = np.vstack([-means[parents] @ inverse, inverse])
    variances = [errors.variance((np.outer(w, contrast) + np.outer(contrast, w)) / 2) for w in weights]
    if errors.mean_sd.any():
        variances[0] += variance / noisy.n_records + float(contrast**2 @ errors.mean_sd**2)
    units = noisy.scales[child] / np.array([1.0, *noisy.scales[parents]])
    coefficients = np.array([contrast @ means, *-contrast[parents]]) * units
    return coefficients, math.sqrt(variance) * float(noisy.scales[child]), np.sqrt(variances) * units

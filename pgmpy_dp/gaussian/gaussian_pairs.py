"""A Gaussian from the correlations of a few pairs of its variables, each with its error: post-processing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pgmpy_dp.gaussian.graphical_models import refit_on_support

_LARGEST = 0.95  # correlation: of more, errors of a few hundredths would make a singular matrix
_CAP = 40.0  # on the eigenvalues of the precision of standardised columns, for the same reason


@dataclass(frozen=True)
class PairModel:
    """Precision and correlations of standardised columns, the pairs that are edges, and how the solver ended."""

    precision: np.ndarray
    correlation: np.ndarray
    edges: np.ndarray
    n_iter: int
    converged: bool


def orthant_correlations(agreement: np.ndarray) -> np.ndarray:
    """Correlation of two normal variables from the mean of the product of their signs: sin(pi/2 t) (Sheppard 1899).

    Examples
    --------
    >>> orthant_correlations(np.array([0.0, 1 / 3, 1.0])).round(3)
    array([0. , 0.5, 1. ])
    """
    return np.sin(0.5 * np.pi * np.clip(agreement, -1.0, 1.0))


def pair_model(correlation: np.ndarray, sd: np.ndarray, measured: np.ndarray, level: float = 2.5) -> PairModel:
    """Gaussian of maximum entropy with the correlations of the pairs that are significant and explained by no third.

    A pair is an edge where its correlation is more than `level` standard deviations from zero, and no third variable
    explains it: one that correlates with both more strongly, and whose product with them is within two standard
    deviations of it. (Of three variables in a chain the weakest correlation is the product of the others; Margolin et
    al. 2006 prune by mutual information like this.)

    Parameters
    ----------
    correlation, sd : ndarray of shape (d, d)
        Symmetric; read where `measured`.
    measured : ndarray of bool, shape (d, d)
        Symmetric.
    level : float

    Returns
    -------
    PairModel

    Examples
    --------
    >>> chain = np.array([[1.0, 0.6, 0.35], [0.6, 1.0, 0.6], [0.35, 0.6, 1.0]])
    >>> model = pair_model(chain, np.full((3, 3), 0.03), ~np.eye(3, dtype=bool))
    >>> model.edges[0].tolist(), model.correlation[0].round(2).tolist()
    ([False, True, False], [1.0, 0.6, 0.36])
    """
    d = len(correlation)
    clipped = np.clip(np.where(measured, correlation, 0.0), -_LARGEST, _LARGEST)
    error = np.where(measured, sd, 0.0)
    keep = measured & (np.abs(clipped) > level * error)
    np.fill_diagonal(keep, False)
    edges = keep.copy()
    for i, j in np.argwhere(np.triu(keep)).tolist():
        third = np.flatnonzero(keep[i] & keep[j])
        a, b = clipped[i, third], clipped[third, j]
        stronger = np.minimum(np.abs(a), np.abs(b)) > abs(clipped[i, j])
        deviation = np.sqrt(error[i, j] ** 2 + (b * error[i, third]) ** 2 + (a * error[third, j]) ** 2)
        if (stronger & (np.abs(clipped[i, j] - a * b) < 2.0 * deviation)).any():
            edges[i, j] = edges[j, i] = False
    moments = np.where(edges, clipped, np.eye(d))
    fit = refit_on_support(moments, edges | np.eye(d, dtype=bool), max_eigenvalue=_CAP, tolerance=1e-6, max_iter=500)
    size = np.sqrt(np.diagonal(fit.covariance))
    precision = fit.precision * np.outer(size, size)
    return PairModel(precision, fit.covariance / np.outer(size, size), edges, fit.n_iter, fit.converged)

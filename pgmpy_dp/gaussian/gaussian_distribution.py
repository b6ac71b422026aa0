"""A multivariate Gaussian given by its mean and precision: draws, likelihood, conditionals."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular


def sample_gaussian(mean: np.ndarray, precision: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws: with Theta = L L^T, mean + L^-T z for a standard normal z.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)
        Positive definite.
    n : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n, d)

    Raises
    ------
    ValueError
        If a shape does not fit or `precision` is not positive definite.

    Examples
    --------
    >>> sample_gaussian(np.zeros(2), np.eye(2), 3, np.random.default_rng(0)).shape
    (3, 2)
    """
    mean, _, root = _checked(mean, precision)
    return mean + solve_triangular(root, rng.standard_normal((len(mean), n)), lower=True, trans="T").T


def gaussian_log_likelihood(x: np.ndarray, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Log-density of each row, in nats.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> gaussian_log_likelihood(np.zeros((1, 1)), np.zeros(1), np.eye(1)).round(4)
    array([-0.9189])
    """
    mean, _, root = _checked(mean, precision)
    x = np.asarray(x, dtype=float)
    if x.ndim != 2 or x.shape[1] != len(mean):
        raise ValueError(f"x must have shape (n, {len(mean)}), got {x.shape}")
    squares = (((x - mean) @ root) ** 2).sum(axis=1)
    return np.log(np.diagonal(root)).sum() - 0.5 * (squares + len(mean) * math.log(2 * math.pi))


def _checked(mean: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both as floats, and the Cholesky factor of the precision."""
    mean, precision = np.asarray(mean, dtype=float), np.asarray(precision, dtype=float)
    if mean.ndim != 1 or precision.shape != (len(mean), len(mean)):
        raise ValueError(f"mean and precision must have shapes (d,) and (d, d), got {mean.shape} and {precision.shape}")
    try:
        if not np.allclose(precision, precision.T):
            raise np.linalg.LinAlgError
        return mean, precision, np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise ValueError("precision must be symmetric and positive definite") from None

"""A multivariate Gaussian given by its mean and precision: draws, likelihood, conditionals."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def condition_gaussian(
    mean: np.ndarray, precision: np.ndarray, known: Sequence[int], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and precision of the other variables given some: mean_a - Theta_aa^-1 Theta_ab (x_b - mean_b), and Theta_aa.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    precision : ndarray of shape (d, d)
    known : sequence of k different positions
    values : ndarray of shape (k,) or (n, k)

    Returns
    -------
    mean : ndarray of shape (d - k,) or (n, d - k)
        Of the others, in order.
    precision : ndarray of shape (d - k, d - k)

    Raises
    ------
    ValueError
        If a shape does not fit, or `known` has a position twice or outside 0 .. d-1.

    Examples
    --------
    >>> condition_gaussian(np.zeros(2), np.array([[2.0, -1.0], [-1.0, 2.0]]), [1], np.array([1.0]))
    (array([0.5]), array([[2.]]))
    """
    mean, precision, _ = _checked(mean, precision)
    b, values = list(known), np.asarray(values, dtype=float)
    if len(set(b)) != len(b) or not set(b) <= set(range(len(mean))):
        raise ValueError(f"known={known!r} must be different positions from 0 to {len(mean) - 1}")
    if values.ndim not in (1, 2) or values.shape[-1] != len(b):
        raise ValueError(f"values must have shape ({len(b)},) or (n, {len(b)}), got {values.shape}")
    a = [i for i in range(len(mean)) if i not in set(b)]
    inside = precision[np.ix_(a, a)]
    shift = np.linalg.solve(inside, precision[np.ix_(a, b)] @ (values - mean[b]).T)
    return mean[a] - shift.T, inside


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

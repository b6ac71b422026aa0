"""The distance of a feasible point of a log-determinant program from its optimum, proved by a dual point.

The program, over symmetric positive definite Theta of shape (d, d), is

    minimise  F(Theta) = -log det Theta + <S, Theta> + sum_ij R_ij |Theta_ij|,  optionally with  Theta <= tau I.

For any symmetric U with |U_ij| <= R_ij, and W = S + U, F(Theta) >= -log det Theta + <W, Theta>. Minimised over Theta,
that is sum_k h(w_k) for the eigenvalues w_k of W, where h(w) = 1 + log w without the cap (W must be positive definite)
and, with it,

    h(w) = 1 + log w  for w >= 1/tau,    h(w) = tau w - log tau  below:

the minimiser of tau >= theta > 0 in -log theta + w theta is min(1/w, tau). So sum_k h(w_k) is the dual function, and
the gap is F(Theta) minus it. With M = (I/tau - W)_+, the multiplier of the cap (0 without one), and W' = W + M, which
is positive definite, the gap is the sum of three terms, none of them negative:

    tr(W' Theta) - d - log det(W' Theta)  +  sum_ij (R_ij |Theta_ij| - U_ij Theta_ij)  +  <M, tau I - Theta>.

They are computed one by one: the difference of F and its dual would lose the digits that the certificate is about.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pgmpy_dp.checks import fresh_copy


def duality_gap(
    precision: Any, covariance: Any, moments: Any, weights: Any, max_eigenvalue: float | None = None, xp: Any = np
) -> float:
    """Upper bound on F(Theta) - min F from a primal and a dual point.

    Parameters
    ----------
    precision : array of shape (d, d)
        Theta, symmetric.
    covariance : array of shape (d, d)
        W = S + U with |U_ij| <= R_ij; it must equal S where R is 0, and R may be infinite where Theta is 0.
    moments, weights : array of shape (d, d)
        S and R.
    max_eigenvalue : float, optional
        tau; Theta must satisfy it.
    xp : module
        ``numpy``, or ``torch`` if the arrays are its tensors.

    Returns
    -------
    float
        Infinite if Theta, or without a cap W, is not numerically positive definite.

    Examples
    --------
    >>> S = np.array([[2.0]])
    >>> duality_gap(np.array([[0.5]]), S, S, np.zeros((1, 1))) < 1e-15  # Theta = 1/S
    True
    >>> round(duality_gap(np.array([[1.0]]), S, S, np.zeros((1, 1))), 6), round(2.0 - 1 - math.log(2), 6)
    (0.306853, 0.306853)
    """
    nonzero = precision != 0
    slack = weights[nonzero] * xp.abs(precision[nonzero]) - (covariance - moments)[nonzero] * precision[nonzero]
    gap = float(slack.sum())
    if max_eigenvalue is not None:
        w, v = xp.linalg.eigh(covariance)
        excess = xp.clip(1 / max_eigenvalue - w, 0, math.inf)
        gap += float(((max_eigenvalue - ((precision @ v) * v).sum(0)) * excess).sum())
        covariance = (v * (w + excess)) @ v.T
    try:
        root = xp.linalg.cholesky(precision)
        xp.linalg.cholesky(covariance)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's is a RuntimeError
        return math.inf
    product = root.T @ covariance @ root
    away = xp.linalg.eigvalsh((product + product.T) / 2) - 1
    if not float(away.min()) > -1:
        return math.inf
    return max(gap + float((away - xp.log1p(away)).sum()), 0.0)


def into_cap(precision: Any, max_eigenvalue: float | None, xp: Any = np) -> Any:
    """The matrix, multiplied by a number at most 1 so that its largest eigenvalue is at most the cap."""
    if max_eigenvalue is None:
        return precision
    largest = float(xp.linalg.eigvalsh(precision)[-1])
    # A little inside, so that rounding does not leave it outside.
    return (
        precision * (max_eigenvalue / largest * (1 - 1e-15 * len(precision))) if largest > max_eigenvalue else precision
    )


def certified_precision(
    precision: Any, covariance: Any, moments: np.ndarray, weights: np.ndarray, max_eigenvalue: float
) -> tuple[np.ndarray, float]:
    """A feasible point of the program with a cap, and its gap, from a primal and a dual point that anything made.

    Parameters
    ----------
    precision, covariance : array_like of shape (d, d)
        About Theta and W. They are brought to what :func:`duality_gap` supposes: symmetric, Theta below the cap, W
        within R of S. Of another shape, or not finite, they are replaced by a diagonal Theta and by S.
    moments, weights : ndarray of shape (d, d)
        S and R, symmetric; R of zeros on the diagonal.
    max_eigenvalue : float
        tau.

    Returns
    -------
    theta : ndarray of shape (d, d)
    gap : float
        Upper bound on F(theta) - min F; infinite if nothing is proved.

    Examples
    --------
    >>> S, R = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> W = np.array([[2.0, 0.5], [0.5, 2.0]])
    >>> certified_precision(np.linalg.inv(W), W, S, R, 10.0)[1] < 1e-12
    True
    >>> certified_precision("any", None, S, R, 10.0)[0].tolist(), certified_precision(7 * W, W, S, R, 10.0)[1] > 1.0
    ([[0.5, 0.0], [0.0, 0.5]], True)
    """
    usable = []
    for matrix in (precision, covariance):
        try:
            array = fresh_copy(matrix)
        except (TypeError, ValueError):
            array = np.zeros(0)
        usable.append(array if array.shape == moments.shape and np.isfinite(array).all() else None)
    theta, w = usable
    if theta is None:
        theta = np.diag(1.0 / np.maximum(np.diagonal(moments), 1.0 / max_eigenvalue))
    w = moments if w is None else moments + np.clip((w + w.T) / 2.0 - moments, -weights, weights)
    try:
        theta = into_cap((theta + theta.T) / 2.0, max_eigenvalue)
        gap = duality_gap(theta, w, moments, weights, max_eigenvalue)
    except np.linalg.LinAlgError:  # numbers that overflow
        gap = math.inf
    return theta, gap if gap >= 0.0 else math.inf  # also for NaN


def distance_bound(gap: float, *, max_eigenvalue: float) -> float:
    """Upper bound on ||Theta - Theta*||_F from a duality gap, Theta* the optimum.

    With the cap Theta <= tau I, F is 1/tau^2-strongly convex on the feasible set, as the Hessian of -log det is
    Theta^-1 (x) Theta^-1, so F(Theta) - F* >= ||Theta - Theta*||_F^2 / (2 tau^2), which gives tau sqrt(2 gap).

    Parameters
    ----------
    gap : float
        Upper bound on F(Theta) - F*.
    max_eigenvalue : float
        tau, the cap of the program that was solved.

    Raises
    ------
    ValueError
        If the gap is negative or not a number.

    Examples
    --------
    >>> round(distance_bound(5e-9, max_eigenvalue=10.0), 9)
    0.001
    """
    if not gap >= 0:
        raise ValueError(f"gap={gap!r} must be at least 0")
    return max_eigenvalue * math.sqrt(2 * gap)

"""Alternating directions for one block of the graphical lasso: an eigendecomposition and a soft threshold in turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pgmpy import config

from pgmpy_dp.gaussian.operators.log_determinant import duality_gap, into_cap

# letter       in code    meaning
# S, R         s, bound   the matrix whose precision is looked for, and the penalty of each entry; scaled in the code
# Theta        x, z       what is minimised over: X of the spectral step, Z with exact zeros
# Y, U = r Y   y          multipliers of X = Z, over the step size r, and as they are
# W = S + U    w          the covariance that Z is certified with
# tau          tau        largest eigenvalue that is allowed

_RELAXATION = 1.6
_CHECK_EVERY = 5  # iterations between two certificates, each of which costs about half an iteration
_ADAPT_UNTIL = 100  # a step size that went on changing would void the proof of convergence
_BALANCE = 3.0
_CAP_WEIGHT = 10.0  # of the primal residual at an active cap: shrinking Z into it costs the gap that times d


def admm(
    S: np.ndarray,
    R: np.ndarray,
    max_eigenvalue: float | None,
    start: np.ndarray | None,
    tolerance: float,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """Minimise -log det Theta + <S, Theta> + sum_ij R_ij |Theta_ij|, optionally with Theta <= tau I, by ADMM.

    The scaled form of [1]_, section 6.5, on X = Z. The X step is spectral: of the eigenvalues l of r (Z - Y) - S it
    makes min((l + sqrt(l^2 + 4 r)) / (2 r), tau), which is exact, as each eigenvalue solves a convex problem in one
    variable. The Z step is a soft threshold at R/r, so Z has exact zeros, and U = r Y satisfies |U_ij| <= R_ij: Z and
    W = S + U are the pair that is certified and returned.

    Where this departs from [1]_: over-relaxation by 1.6; for 100 iterations r is moved by the root of the ratio of the
    relative residuals when they are more than a factor 3 apart (the primal one counted 10 times at an active cap);
    without a cap, the variables are scaled to S_ii = 1 (a cap is not invariant to that:
    all are scaled alike); it ends by the duality gap, not by the residuals.

    Parameters
    ----------
    S, R : ndarray of shape (d, d)
        Symmetric; R at least 0, 0 on the diagonal, infinite where Theta must be 0.
    max_eigenvalue : float, optional
        tau.
    start : ndarray of shape (d, d), optional
        Positive definite.
    tolerance : float
        On the duality gap.
    max_iter : int

    Returns
    -------
    precision, covariance : ndarray of shape (d, d)
        Z and W. Until convergence Z may violate the cap, and either may have an eigenvalue below 0.
    n_iter : int
    converged : bool
        Whether the gap of the pair (with Z shrunk into the cap) reached `tolerance`.

    Notes
    -----
    On pgmpy's torch backend the same code runs on tensors, in double precision, on ``pgmpy.config.get_device()``.

    References
    ----------
    .. [1] Boyd, S., Parikh, N., Chu, E., Peleato, B. and Eckstein, J. (2011). Distributed optimization and statistical
       learning via the alternating direction method of multipliers. Found. Trends Mach. Learn. 3(1).
    """
    size = np.diagonal(S).copy() if max_eigenvalue is None else np.full(len(S), np.abs(S).max() or 1.0)
    scale = np.sqrt(np.outer(size, size))
    tau = None if max_eigenvalue is None else max_eigenvalue * size[0]
    xp, (s, bound, z) = _on_backend(
        S / scale, R / scale, np.diag(_capped(1.0, tau, len(S))) if start is None else start * scale
    )
    if start is None:
        y = xp.zeros_like(z)
    else:
        y = xp.clip(xp.linalg.inv(z) - s, -bound, bound)
    r, converged = 1.0, False
    for n_iter in range(1, max_iter + 1):
        eigenvalues, vectors = xp.linalg.eigh(r * (z - y) - s)
        theta = (eigenvalues + xp.sqrt(eigenvalues**2 + 4 * r)) / (2 * r)
        if tau is not None:
            theta = xp.clip(theta, 0, tau)
        x = (vectors * theta) @ vectors.T
        relaxed = _RELAXATION * x + (1 - _RELAXATION) * z + y
        relaxed = (relaxed + relaxed.T) / 2  # a product is symmetric only up to rounding
        y = xp.clip(relaxed, -bound / r, bound / r)
        last, z = z, relaxed - y
        if n_iter % _CHECK_EVERY == 0 or n_iter == max_iter:
            w = s + xp.clip(r * y, -bound, bound)
            if duality_gap(into_cap(z, tau, xp), w, s, bound, tau, xp) <= tolerance:
                converged = True
                break
        if n_iter <= _ADAPT_UNTIL:
            primal = float(xp.linalg.norm(x - z)) / max(float(xp.linalg.norm(theta)), 1e-300)
            dual = r * float(xp.linalg.norm(z - last)) / max(float(xp.linalg.norm(s)), 1e-300)
            at_cap = tau is not None and float(theta.max()) >= tau
            ratio = (_CAP_WEIGHT if at_cap else 1.0) * primal / max(dual, 1e-300)
            if not 1 / _BALANCE < ratio < _BALANCE:
                factor = min(max(math.sqrt(ratio), 1 / _BALANCE), _BALANCE)
                r, y = r * factor, y / factor
    w = s + xp.clip(r * y, -bound, bound)
    return np.asarray(_back(z)) / scale, np.asarray(_back(w)) * scale, n_iter, converged


def _capped(value: float, tau: float | None, d: int) -> np.ndarray:
    return np.full(d, value if tau is None else min(value, tau))


def _on_backend(*arrays: np.ndarray) -> tuple[Any, list[Any]]:
    if config.get_backend() != "torch":
        return np, list(arrays)
    import torch  # here, so that the package can be imported without it

    return torch, [torch.as_tensor(a, dtype=torch.float64, device=config.get_device()) for a in arrays]


def _back(array: Any) -> Any:
    return array.cpu() if hasattr(array, "cpu") else array

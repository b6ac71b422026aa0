"""Sparse inverse covariance: the graphical lasso with weights, a spectral cap and a certified duality gap.

Each component is solved by alternating directions: an eigendecomposition and a soft threshold in turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components

from pgmpy_dp.gaussian.operators.log_determinant import duality_gap, into_cap
from pgmpy_dp.pgmpy_config import torch_device

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
    first = np.eye(len(S)) * min(1.0, math.inf if tau is None else tau) if start is None else start * scale
    xp, (s, bound, z) = _on_backend(S / scale, R / scale, first)
    y = xp.zeros_like(z) if start is None else xp.clip(xp.linalg.inv(z) - s, -bound, bound)
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


def _on_backend(*arrays: np.ndarray) -> tuple[Any, list[Any]]:
    if (device := torch_device()) is None:
        return np, list(arrays)
    import torch  # here, so that the package can be imported without it

    return torch, [torch.as_tensor(a, dtype=torch.float64, device=device) for a in arrays]


def _back(array: Any) -> Any:
    return array.cpu() if hasattr(array, "cpu") else array


@dataclass(frozen=True)
class GraphicalLassoSolution:
    """The result of a graphical lasso.

    Attributes
    ----------
    precision : ndarray of shape (d, d)
        Theta: symmetric, positive definite, within the cap, its zeros exact, whether it converged or not.
    covariance : ndarray of shape (d, d)
        Inverse of `precision`.
    dual : ndarray of shape (d, d)
        W = S + U, |U_ij| at most the weights: what proves the gap. Without a cap, W = Theta^-1 at the optimum.
    objective : float
        F(Theta).
    duality_gap : float
        Proved upper bound on F(Theta) - min F, up to rounding (`log_determinant.duality_gap`); infinite if the solve
        ended without a dual point.
    converged : bool
        Whether the gap reached its tolerance.
    status : str
        How it ended, in words.
    n_iter : int
        Most iterations of any component.
    n_components : int
        Blocks that were solved apart.
    """

    precision: np.ndarray
    covariance: np.ndarray
    dual: np.ndarray
    objective: float
    duality_gap: float
    converged: bool
    status: str
    n_iter: int
    n_components: int


def graphical_lasso(
    S: np.ndarray,
    penalty: float | np.ndarray,
    *,
    penalize_diagonal: bool = False,
    max_eigenvalue: float | None = None,
    tolerance: float = 1e-9,
    max_iter: int = 2000,
    start: np.ndarray | None = None,
) -> GraphicalLassoSolution:
    """Minimise -log det Theta + <S, Theta> + sum_ij R_ij |Theta_ij| over positive definite Theta (<= tau I).

    Parameters
    ----------
    S : ndarray of shape (d, d)
        Second moments or covariance, symmetric. With a cap it may be any symmetric matrix.
    penalty : float or ndarray of shape (d, d)
        R, at least 0: one number for all entries off the diagonal, or a symmetric matrix of them, infinite where Theta
        must be 0. The diagonal of a matrix is ignored unless `penalize_diagonal`.
    penalize_diagonal : bool
        Whether the diagonal is penalised as well, which is the same as adding its penalty to the diagonal of S.
        scikit-learn does not; Wang, Huai and Xu (2018) do.
    max_eigenvalue : float, optional
        tau, a cap on the eigenvalues of Theta.
    tolerance : float
        Ends when the duality gap, divided by d, is at most this.
    max_iter : int
        Iterations at most, of each component.
    start : ndarray of shape (d, d), optional
        Positive definite matrix to begin at, such as the precision for another penalty.

    Returns
    -------
    GraphicalLassoSolution

    Raises
    ------
    ValueError
        If an argument is not as above; or there is no cap and S, restricted to a component, has an eigenvalue below 0,
        or is singular where the penalty does not make up for it: then there may be no minimum.

    Notes
    -----
    *Components* [1]_ [2]_. The graph of the pairs with |S_ij| > R_ij splits the variables into components, and the
    optimum is block-diagonal on them, with a cap too: dropping the entries between the components from any feasible
    Theta raises log det (Fischer's inequality), keeps Theta <= tau I (it averages D Theta D over diagonal matrices D
    of signs), and does not raise the rest, since S_ij Theta_ij + R_ij |Theta_ij| >= 0 there. Components of one
    variable, and those without penalty, have a closed form.

    *The others* are solved by ADMM at every d: 15 to 30 iterations where the penalty is of the
    order of the errors of S, hundreds where it is a hundredth of that or most eigenvalues are at the cap.
    scikit-learn takes as long or longer up to d = 300 and less at d = 1000 for a moderate gap
    (``benchmarks/graphical_lasso.py``), but for smaller ones it may stop at its number of sweeps, and it knows neither
    weights nor a cap. On pgmpy's torch backend the iterations run on its device.

    References
    ----------
    .. [1] Witten, D., Friedman, J. and Simon, N. (2011). New insights and faster computations for the graphical lasso.
       J. Comput. Graph. Stat. 20(4).
    .. [2] Mazumder, R. and Hastie, T. (2012). Exact covariance thresholding into connected components for large-scale
       graphical lasso. JMLR 13.

    Examples
    --------
    >>> S = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> solution = graphical_lasso(S, 0.1)  # of two variables: the inverse of S with 0.6 - 0.1 off the diagonal
    >>> solution.precision.round(4), solution.converged
    (array([[ 1.3333, -0.6667],
           [-0.6667,  1.3333]]), True)
    >>> graphical_lasso(S, 0.7).precision
    array([[1., 0.],
           [0., 1.]])
    """
    S, R = _checked(S, penalty, penalize_diagonal)
    _check_options(max_eigenvalue, tolerance, max_iter)
    d = len(S)
    if start is not None:
        start = _symmetric(start, "start")
        if start.shape != S.shape or not np.linalg.eigvalsh(start).min(initial=1.0) > 0:
            raise ValueError(f"start must be positive definite of shape {S.shape}, got a matrix of shape {start.shape}")
    n_components, label = connected_components(np.triu(np.abs(S) > R, 1), directed=False)
    precision, covariance, dual = np.zeros((3, d, d))
    gap, longest, converged = 0.0, 0, True
    for members in _groups(label, n_components):
        block = np.ix_(members, members)
        begin = None if start is None else start[block]
        theta, w, n_iter, done = _solve(S[block], R[block], max_eigenvalue, begin, tolerance, max_iter)
        precision[block], dual[block] = theta, w
        covariance[block] = _inverse(theta)
        block_gap = duality_gap(theta, w, S[block], R[block], max_eigenvalue)
        gap, longest, converged = gap + block_gap, max(longest, n_iter), converged and done
    return GraphicalLassoSolution(
        precision=precision,
        covariance=covariance,
        dual=dual,
        objective=_objective(precision, S, R),
        duality_gap=gap,
        converged=converged,
        status=f"duality gap {gap:.1e}" if converged else f"max_iter={max_iter} reached, duality gap {gap:.1e}",
        n_iter=longest,
        n_components=n_components,
    )


def _solve(
    S: np.ndarray,
    R: np.ndarray,
    max_eigenvalue: float | None,
    start: np.ndarray | None,
    tolerance: float,
    max_iter: int,
) -> tuple[np.ndarray, np.ndarray, int, bool]:
    """One component: a feasible Theta, a W, iterations, and whether it converged."""
    if max_eigenvalue is None:
        _check_bounded(S, R)
    if not R.any():  # also one variable
        if max_eigenvalue is None:
            return _inverse(S), S, 0, True
        w, v = np.linalg.eigh(S)
        theta = 1 / np.maximum(w, 1 / max_eigenvalue)
        precision = (v * theta) @ v.T
        return into_cap((precision + precision.T) / 2, max_eigenvalue), S, 0, True
    precision, w, n_iter, converged = admm(S, R, max_eigenvalue, start, tolerance * len(S), max_iter)
    precision = into_cap((precision + precision.T) / 2, max_eigenvalue)
    if not converged:
        # Towards a diagonal matrix until positive definite: the zeros stay.
        plain = np.diagonal(S).copy() if max_eigenvalue is None else np.maximum(np.diagonal(S), 1 / max_eigenvalue)
        share = 1.0
        while not np.linalg.eigvalsh(precision)[0] > 0:
            share /= 2
            precision = share * precision + (1 - share) * np.diag(1 / plain)
    # Scaling back may have left the weights' box by a rounding error.
    return precision, S + np.clip((w + w.T) / 2 - S, -R, R), n_iter, converged


def _groups(label: np.ndarray, n: int) -> list[np.ndarray]:
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=n))[:-1]) if n else []


def _inverse(matrix: np.ndarray) -> np.ndarray:
    inverse = cho_solve(cho_factor(matrix, lower=True), np.eye(len(matrix)))
    return (inverse + inverse.T) / 2


def _objective(precision: np.ndarray, S: np.ndarray, R: np.ndarray) -> float:
    nonzero = precision != 0
    linear = S[nonzero] * precision[nonzero] + R[nonzero] * np.abs(precision[nonzero])
    return float(linear.sum()) - float(np.linalg.slogdet(precision)[1])


def _check_bounded(S: np.ndarray, R: np.ndarray) -> None:
    """Raise unless some W with |W - S| <= R is positive definite, as far as can be said without solving.

    It is if S is; and if S is positive semi-definite, no variable is 0 and every pair has a penalty: shrink the
    entries off the diagonal a little.
    """
    w = np.linalg.eigvalsh(S)
    rounding = 1e-14 * len(S) * max(w[-1], 0.0)
    if w[0] > rounding:
        return
    pairs = ~np.eye(len(S), dtype=bool)
    if w[0] >= -rounding and (np.diagonal(S) > rounding).all() and (R[pairs] > 0).all() and pairs.any():
        return
    raise ValueError(
        f"S has the eigenvalue {w[0]:.3g} (the largest is {w[-1]:.3g}) on a component of {len(S)} variables, where the "
        "program may have no minimum: give max_eigenvalue, clip the eigenvalues of S, or raise the penalty"
    )


def _checked(S: np.ndarray, penalty: float | np.ndarray, diagonal: bool) -> tuple[np.ndarray, np.ndarray]:
    """S with the penalty of the diagonal added to it, and R with a diagonal of zeros."""
    S = _symmetric(S, "S")
    R = np.array(penalty, dtype=float)
    if R.ndim == 0:
        R = np.full(S.shape, float(R))
    # The same in both triangles, so that infinity minus infinity does not come up.
    if R.shape != S.shape or not (R >= 0).all() or not np.allclose(R, R.T, rtol=1e-10, atol=0):
        raise ValueError(
            f"penalty must be a number or a symmetric matrix of shape {S.shape} with entries of at least 0, "
            f"got {penalty!r}"
        )
    R = np.maximum(R, R.T)
    diagonal_penalty = np.diagonal(R).copy()
    if diagonal:
        if not np.isfinite(diagonal_penalty).all():
            raise ValueError("penalty must be finite on the diagonal when penalize_diagonal is set")
        S = S + np.diag(diagonal_penalty)
    np.fill_diagonal(R, 0.0)
    return S, R


def _check_options(max_eigenvalue: float | None, tolerance: float, max_iter: int) -> None:
    if max_eigenvalue is not None and not 0 < max_eigenvalue < math.inf:
        raise ValueError(f"max_eigenvalue={max_eigenvalue!r} must be None or a finite number above 0")
    if not tolerance > 0:
        raise ValueError(f"tolerance={tolerance!r} must be above 0")
    if max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} must be at least 1")


def square(matrix: np.ndarray, name: str) -> np.ndarray:
    """A square matrix of finite numbers, or ValueError."""
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be a square matrix of finite numbers, got shape {matrix.shape}")
    return matrix


def _symmetric(matrix: np.ndarray, name: str) -> np.ndarray:
    matrix = square(matrix, name)
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * np.abs(matrix).max(initial=0.0)):
        raise ValueError(f"{name} must be symmetric, got a matrix that differs from its transpose")
    return (matrix + matrix.T) / 2

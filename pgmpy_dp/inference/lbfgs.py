"""Limited-memory BFGS (scipy's L-BFGS-B) with a diagonal preconditioner and a stated ending."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize


@dataclass(frozen=True)
class Solution:
    """The point at which a minimisation ended.

    Attributes
    ----------
    x : ndarray of shape (d,)
        Best point.
    objective : float
        Value there.
    gradient_norm : float
        Largest component of the projected gradient in the scaled variables.
    converged : bool
        Whether `gradient_norm` or the relative decrease reached its tolerance.
    status : str
        How it ended, in words.
    n_iter : int
        Iterations.
    n_evaluations : int
        Evaluations of objective and gradient.
    """

    x: np.ndarray
    objective: float
    gradient_norm: float
    converged: bool
    status: str
    n_iter: int
    n_evaluations: int


def minimize_lbfgs(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    *,
    max_iter: int,
    gradient_tol: float,
    decrease_tol: float = 0.0,
    memory: int = 10,
    scale: np.ndarray | None = None,
    bounds: tuple[np.ndarray, np.ndarray] | None = None,
    expect_decrease: bool = False,
    callback: Callable[[], None] | None = None,
) -> Solution:
    """Minimise a differentiable function, optionally in a box.

    Parameters
    ----------
    function : callable
        Takes x of shape (d,), returns its value and gradient of shape (d,).
    start : ndarray of shape (d,)
        Where to begin.
    max_iter : int
        Iterations at most.
    gradient_tol : float
        Stop when no component of the projected gradient, in scaled variables, exceeds it.
    decrease_tol : float
        Stop when an iteration's decrease, relative to the value, falls below it.
    memory : int
        Number of corrections kept.
    scale : ndarray of shape (d,), optional
        Positive D: the search is over x/D, which preconditions with D**2.
    bounds : pair of ndarray of shape (d,), optional
        Lower and upper bounds of x.
    expect_decrease : bool
        Do not begin where no iteration is expected to decrease the value by more than `decrease_tol` says: where half
        the squared norm of the scaled gradient, a Newton step's gain if `scale` is right, is less. Not with `bounds`.
    callback : callable, optional
        Called without arguments after each iteration.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> solution = minimize_lbfgs(lambda x: (float(x @ x), 2 * x), np.ones(2), max_iter=20, gradient_tol=1e-9)
    >>> solution.converged, float(abs(solution.x).max()) < 1e-9
    (True, True)
    """
    d = np.ones_like(start) if scale is None else scale

    def scaled(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(d * z)
        return value, d * gradient

    begin = start / d
    first = scaled(begin) if expect_decrease else None
    if first is not None and 0.5 * float(first[1] @ first[1]) <= decrease_tol * max(abs(first[0]), 1.0):
        norm = float(np.abs(first[1]).max(initial=0.0))
        return Solution(start, float(first[0]), norm, True, "nothing to gain at the start", 0, 1)

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal first
        if first is not None and np.array_equal(z, begin):
            known, first = first, None
            return known
        return scaled(z)

    limits = None if bounds is None else np.stack([bounds[0] / d, bounds[1] / d], axis=1)
    result = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        callback=None if callback is None else lambda _: callback(),
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter + 20,
            "maxcor": memory,
            "gtol": gradient_tol,
            "ftol": decrease_tol,
        },
    )
    gradient = np.asarray(result.jac)
    if limits is not None:
        gradient = result.x - np.clip(result.x - gradient, limits[:, 0], limits[:, 1])
    return Solution(
        x=d * result.x,
        objective=float(result.fun),
        gradient_norm=float(np.abs(gradient).max(initial=0.0)),
        converged=bool(result.success),
        status=str(result.message),
        n_iter=int(result.nit),
        n_evaluations=int(result.nfev),
    )

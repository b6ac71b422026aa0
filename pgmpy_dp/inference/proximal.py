"""Accelerated proximal gradient descent for a smooth function plus a simple penalty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgmpy_dp.inference.lbfgs import Solution


def minimize_proximal(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    proximal: Callable[[np.ndarray, float], np.ndarray],
    start: np.ndarray,
    *,
    max_iter: int,
    step_tol: float,
) -> Solution:
    """Minimise f(x) + g(x) for smooth convex f, by FISTA with backtracking and restarts.

    Parameters
    ----------
    function : callable
        Takes x of shape (d,), returns f(x) and its gradient of shape (d,).
    proximal : callable
        Takes v and a step t > 0, returns argmin_x g(x) + |x - v|^2/(2t).
    start : ndarray of shape (d,)
        Where to begin.
    max_iter : int
        Iterations at most.
    step_tol : float
        Stop when no component of an iteration's step, divided by its step size, exceeds it: without penalty that is
        the gradient.

    Returns
    -------
    Solution
        ``objective`` is f alone.

    References
    ----------
    .. [1] Beck, A. and Teboulle, M. (2009). A fast iterative shrinkage-thresholding algorithm for linear inverse
       problems. SIAM J. Imaging Sciences 2(1).
    .. [2] O'Donoghue, B. and Candès, E. (2015). Adaptive restart for accelerated gradient schemes. Found. Comput.
       Math. 15.

    Examples
    --------
    >>> import numpy as np
    >>> def square(x):
    ...     return float((x - 1) @ (x - 1)) / 2, x - 1
    >>> def soft(v, t):
    ...     return np.sign(v) * np.maximum(np.abs(v) - 0.25 * t, 0.0)
    >>> minimize_proximal(square, soft, np.zeros(1), max_iter=100, step_tol=1e-9).x.round(6)
    array([0.75])
    """
    x, y = start, start
    momentum, step, n_evaluations, norm = 1.0, 1.0, 0, np.inf
    value = np.inf
    for n_iter in range(1, max_iter + 1):
        at, gradient = function(y)
        n_evaluations += 1
        step *= 1.25  # a step that was once too long need not stay so
        while True:
            new = proximal(y - step * gradient, step)
            move = new - y
            value, _ = function(new)
            n_evaluations += 1
            # The slack is the rounding error of the two values; without it a step at the optimum shrinks for ever.
            slack = 1e-12 * max(1.0, abs(at))
            if value <= at + gradient @ move + move @ move / (2 * step) + slack or step < 1e-10:
                break
            step *= 0.5
        norm = float(np.abs(move).max(initial=0.0)) / step
        if -(move @ (new - x)) > 0:  # the momentum points uphill
            momentum, y = 1.0, new
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            y = new + (momentum - 1) / following * (new - x)
            momentum = following
        x = new
        if norm <= step_tol:
            return Solution(x, value, norm, True, "step below tolerance", n_iter, n_evaluations)
    return Solution(x, value, norm, False, f"max_iter={max_iter} reached", max_iter, n_evaluations)

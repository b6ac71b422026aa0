"""Limited-memory BFGS (scipy's L-BFGS-B) with a diagonal preconditioner and a stated ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

_TINY = np.finfo(np.float64).tiny


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


class Curvature:
    """What the steps of a minimisation tell of the curvature.

    Parameters
    ----------
    size : int
        Dimensions.
    memory : int
        Steps that are remembered at most, two or more; where one comes beyond them, the older half goes.
    """

    def __init__(self, size: int, memory: int) -> None:
        self._n, self._steps = 0, np.empty((2, memory, size))  # moves, and what they change of the gradient: turns
        self._products = np.zeros((memory, memory))  # of moves, each with the turns of its own step and of later ones

    def add(self, move: np.ndarray, turn: np.ndarray) -> None:
        """Take in a step and what it changed of the gradient; nothing where that is not convex."""
        if move @ turn > 1e-10 * (turn @ turn):
            if self._n == len(self._products):
                self._keep(self._n - self._n // 2)
            k, self._n = self._n, self._n + 1
            self._steps[:, k] = move, turn
            self._products[: k + 1, k] = self._steps[0, : k + 1] @ turn

    def _keep(self, most: int) -> None:
        some, self._n = slice(max(self._n - most, 0), self._n), min(self._n, most)
        self._steps[:, : self._n] = self._steps[:, some].copy()
        self._products[: self._n, : self._n] = self._products[some, some].copy()

    def newton(self, gradient: np.ndarray) -> np.ndarray:
        """The step of this curvature: two loops of BFGS as products of matrices (Byrd, Nocedal and Schnabel 1994)."""
        if not self._n:
            return -gradient
        (moves, turns), products = self._steps[:, : self._n], self._products[: self._n, : self._n]
        weights = solve_triangular(products, moves @ gradient, check_finite=False)
        rest = products[-1, -1] / (turns[-1] @ turns[-1]) * (gradient - weights @ turns)
        back = solve_triangular(products, products.diagonal() * weights - turns @ rest, trans=1, check_finite=False)
        return -rest - back @ moves

    def moved(self, place: np.ndarray, ratio: np.ndarray, size: int, memory: int) -> Curvature:
        """The same in more coordinates: number i is number ``place[i]`` there, in units ``ratio[i]`` times as large."""
        self._keep(memory)
        result, n = Curvature(size, memory), self._n
        result._n, result._products[:n, :n] = n, self._products[:n, :n]
        result._steps[:, :n] = 0.0
        result._steps[:, :n, place] = self._steps[:, :n] * np.stack([1 / ratio, ratio])[:, None]
        return result


def minimize_lbfgs_batch(
    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    *,
    max_evaluations: int,
    gradient_tol: float,
    decrease_tol: float,
    curvatures: Sequence[Curvature] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise several functions side by side, each with its own step and memory, in variables that are scaled alike.

    Each evaluation is one of all functions: where a step was too long it tries a shorter one, while others go on.

    Parameters
    ----------
    function : callable
        From points, one in a row, to values, shape (n,), and gradients, shape (n, d). Near the minima its curvature
        should be about 1 in all directions: the first step is the gradient's.
    start : ndarray of shape (n, d)
    max_evaluations : int
        After the first.
    gradient_tol, decrease_tol : float
        A function is done when the largest component of its gradient or the relative decrease by a step is below this.
    curvatures : sequence of Curvature, optional
        Of each function, as a similar one told it. They change.

    Returns
    -------
    x : ndarray of shape (n, d)
        Best points.
    converged : ndarray of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> curvature = np.array([[1.0, 2.0], [0.5, 1.0]])
    >>> x, converged = minimize_lbfgs_batch(
    ...     lambda x: (0.5 * (curvature * (x - 1) ** 2).sum(axis=1), curvature * (x - 1)),
    ...     np.zeros((2, 2)), max_evaluations=20, gradient_tol=1e-9, decrease_tol=0.0)
    >>> bool(np.abs(x - 1).max() < 1e-8), converged.tolist()
    (True, [True, True])
    """
    x, (value, gradient) = start, function(start)
    curvatures = curvatures or [Curvature(start.shape[1], 40) for _ in start]
    direction = np.array([curvature.newton(row) for curvature, row in zip(curvatures, gradient, strict=True)])
    step, converged = np.ones(len(start)), np.abs(gradient).max(axis=1, initial=0.0) <= gradient_tol
    for _ in range(max_evaluations):
        if converged.all():
            break
        trial = x + step[:, None] * direction
        new_value, new_gradient = function(trial)
        slope = step * np.einsum("ij,ij->i", gradient, direction)
        better = ~converged & (new_value <= value + 1e-4 * slope)
        for row in np.flatnonzero(better).tolist():
            curvatures[row].add(trial[row] - x[row], new_gradient[row] - gradient[row])
            direction[row] = curvatures[row].newton(new_gradient[row])
        # A parabola through both values and the slope has its minimum at this part of the step.
        part = np.clip(-slope / (2 * np.maximum(new_value - value - slope, -slope) + _TINY), 0.1, 0.5)
        step = np.where(better, 1.0, step * part)
        converged |= better & (value - new_value <= decrease_tol * np.maximum(np.abs(value), 1.0))
        x, value = np.where(better[:, None], trial, x), np.where(better, new_value, value)
        gradient = np.where(better[:, None], new_gradient, gradient)
        converged |= np.abs(gradient).max(axis=1, initial=0.0) <= gradient_tol
    return x, converged

"""Limited-memory BFGS (scipy's L-BFGS-B) with a diagonal preconditioner and a stated ending."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
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
    """What the steps of a minimisation tell of the curvature, which counts as 1 where they say nothing.

    Parameters
    ----------
    size : int
        Dimensions.
    memory : int
        Steps that are remembered at most, two or more; where one comes beyond them, the older half goes.
    """

    def __init__(self, size: int, memory: int) -> None:
        self._n, self._moves, self._turns = 0, np.empty((memory, size)), np.empty((memory, size))
        self._products = np.zeros((memory, memory))  # of moves, each with the turns of its own step and of later ones

    def add(self, move: np.ndarray, turn: np.ndarray) -> None:
        """Take in a step and what it changed of the gradient; nothing where that is not convex."""
        if move @ turn <= 1e-10 * (turn @ turn):
            return
        if self._n == len(self._moves):
            self._keep(slice(self._n // 2, self._n))
        k, self._n = self._n, self._n + 1
        self._moves[k], self._turns[k] = move, turn
        self._products[: k + 1, k] = self._moves[: k + 1] @ turn

    def _keep(self, some: slice) -> None:
        n = some.stop - some.start
        self._moves[:n], self._turns[:n] = self._moves[some].copy(), self._turns[some].copy()
        self._products[:n, :n] = self._products[some, some].copy()
        self._n = n

    def newton(self, gradient: np.ndarray) -> np.ndarray:
        """The inverse curvature times a gradient: as by BFGS, which starts from 1 (Byrd, Nocedal and Schnabel 1994)."""
        moves, turns, products = self._moves[: self._n], self._turns[: self._n], self._products[: self._n, : self._n]
        weights = solve_triangular(products, moves @ gradient, check_finite=False)
        rest = gradient - weights @ turns
        back = products.diagonal() * weights - turns @ rest
        return rest + solve_triangular(products, back, trans=1, check_finite=False) @ moves

    def moved(self, place: np.ndarray, ratio: np.ndarray, size: int, memory: int) -> Curvature:
        """The same in more coordinates: number i is number ``place[i]`` there, in units ``ratio[i]`` times as large."""
        self._keep(slice(max(self._n - memory, 0), self._n))
        result, n = Curvature(size, memory), self._n
        result._n, result._products[:n, :n] = n, self._products[:n, :n]
        for wide, known in (result._moves, self._moves[:n] / ratio), (result._turns, self._turns[:n] * ratio):
            wide[:n] = 0.0
            wide[:n, place] = known
        return result


def minimize_convex(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    curvature: Curvature,
    *,
    max_evaluations: int,
    gradient_tol: float,
) -> Solution:
    """Minimise a smooth convex function by steps of a curvature that is known in part, and add to it what they tell.

    Parameters
    ----------
    function, start, gradient_tol
        As for `minimize_lbfgs`.
    curvature : Curvature
        Of a similar function, or empty. It changes.
    max_evaluations : int
        After the first.

    Examples
    --------
    >>> import numpy as np
    >>> weight, curvature = np.array([1.0, 2.0, 3.0]), Curvature(3, 10)
    >>> options = {"curvature": curvature, "max_evaluations": 50, "gradient_tol": 1e-9}
    >>> first = minimize_convex(lambda x: (float(weight @ x**2), 2 * weight * x), np.ones(3), **options)
    >>> again = minimize_convex(lambda x: (float(weight @ x**2), 2 * weight * x), np.ones(3), **options)
    >>> first.converged, again.n_evaluations < first.n_evaluations
    (True, True)
    """
    x, (value, gradient), step, n_iter = start, function(start), 1.0, 0
    direction, n_evaluations = -curvature.newton(gradient), 1
    while np.abs(gradient).max(initial=0.0) > gradient_tol and n_evaluations <= max_evaluations:
        move, slope = step * direction, step * float(gradient @ direction)
        new_value, new_gradient = function(x + move)
        n_evaluations += 1
        if new_value <= value + 1e-4 * slope:
            curvature.add(move, new_gradient - gradient)
            x, value, gradient, step, n_iter = x + move, new_value, new_gradient, 1.0, n_iter + 1
            direction = -curvature.newton(gradient)
        else:  # a parabola through both values and the slope has its minimum at a part of the step
            step *= float(np.clip(-slope / (2 * max(new_value - value - slope, -slope) + _TINY), 0.1, 0.5))
    norm = float(np.abs(gradient).max(initial=0.0))
    converged = norm <= gradient_tol
    status = "the gradient is small" if converged else "as many evaluations as are allowed"
    return Solution(x, float(value), norm, converged, status, n_iter, n_evaluations)


def minimize_lbfgs_batch(
    function: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    *,
    max_evaluations: int,
    gradient_tol: float,
    decrease_tol: float,
    memory: int = 20,
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
    memory : int
        Steps that are remembered.

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
    direction, step, size = -gradient, np.ones(len(start)), np.ones(len(start))
    converged = np.abs(gradient).max(axis=1, initial=0.0) <= gradient_tol
    kept: deque[tuple[np.ndarray, np.ndarray, np.ndarray]] = deque(maxlen=memory)
    for _ in range(max_evaluations):
        if converged.all():
            break
        trial = x + step[:, None] * direction
        new_value, new_gradient = function(trial)
        slope = step * _dots(gradient, direction)
        better = ~converged & (new_value <= value + 1e-4 * slope)
        moved = better[:, None]
        move, turn = np.where(moved, trial - x, 0.0), np.where(moved, new_gradient - gradient, 0.0)
        product, square = _dots(move, turn), _dots(turn, turn)
        convex = product > 1e-10 * square
        size[convex] = product[convex] / square[convex]
        kept.appendleft((move, turn, np.divide(1.0, product, out=np.zeros_like(product), where=convex)))
        # A parabola through both values and the slope has its minimum at this part of the step.
        part = np.clip(-slope / (2 * np.maximum(new_value - value - slope, -slope) + _TINY), 0.1, 0.5)
        step = np.where(better, 1.0, step * part)
        converged |= better & (value - new_value <= decrease_tol * np.maximum(np.abs(value), 1.0))
        x, value = np.where(moved, trial, x), np.where(better, new_value, value)
        gradient = np.where(moved, new_gradient, gradient)
        converged |= np.abs(gradient).max(axis=1) <= gradient_tol
        # The two loops over steps, from the last one back, and from the first one on.
        newton, weights = -gradient, []
        for move, turn, inverse in kept:
            weights.append(inverse * _dots(move, newton))
            newton -= weights[-1][:, None] * turn
        newton *= size[:, None]
        for (move, turn, inverse), weight in zip(reversed(kept), reversed(weights), strict=True):
            newton += (weight - inverse * _dots(turn, newton))[:, None] * move
        direction = np.where(moved, newton, direction)
    return x, converged


def _dots(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Products of rows."""
    return np.einsum("ij,ij->i", left, right)

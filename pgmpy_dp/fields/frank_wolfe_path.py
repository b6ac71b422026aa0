"""The path of a Frank-Wolfe method in whole numbers: weights as sums of vertices of an l1 ball.

With ``w_1 = 0`` and ``w_{t+1} = (1 - mu_t) w_t + mu_t s_t``, the weights before step t are integers times
``radius/denominator(t)``: for ``mu_t = 1/(t+1)`` they are the mean of t points, the start and t - 1 vertices; for
``mu_t = 2/(t+2)`` the mean of points of weights 1 (the start), 2, ..., t.
"""

from __future__ import annotations

import numpy as np

STEPS = ("1/(t+1)", "2/(t+2)")


def denominator(step: str, t: int) -> int:
    """Total weight of the points that the weights before step t are the mean of."""
    return t if step == STEPS[0] else t * (t + 1) // 2


def step_units(step: str, t: int) -> int:
    """Weight of the vertex that step t moves towards."""
    return 1 if step == STEPS[0] else t + 1


def weights_of(vertices: np.ndarray, n_columns: int, radius: float, step: str) -> np.ndarray:
    """Weights after all steps.

    Parameters
    ----------
    vertices : ndarray of int, shape (n_steps, n_regressions)
        v < q stands for +radius in column v, v >= q for -radius in column v - q, with q = n_columns.
    step : {"1/(t+1)", "2/(t+2)"}

    Returns
    -------
    ndarray, shape (n_regressions, n_columns)

    Examples
    --------
    Three steps: towards +6 in column 0, again, and towards -6 in column 1.

    >>> weights_of(np.array([[0], [0], [3]]), 2, 6.0, "1/(t+1)")
    array([[ 3. , -1.5]])
    """
    units = np.zeros((vertices.shape[1], n_columns), dtype=np.int64)
    every = np.arange(vertices.shape[1])
    for t, chosen in enumerate(vertices, start=1):
        units[every, chosen % n_columns] += np.where(chosen < n_columns, 1, -1) * step_units(step, t)
    return units * (radius / denominator(step, len(vertices) + 1))

"""The pseudo-Huber prior of CollectiveMAP: normal near 0, Laplace far away, with a parameter for where it turns."""

from __future__ import annotations

import numpy as np
from scipy.special import kve

PRIOR_TAIL = 1.0
"""Default tail parameter a."""


def pseudo_huber(x: np.ndarray, variance: np.ndarray, tail: float = PRIOR_TAIL) -> tuple[float, np.ndarray]:
    """a sum(sqrt(1 + x^2/(a s)) - 1) and its gradient; x^2/(2 s) near 0, sqrt(a/s) |x| far away.

    Parameters
    ----------
    x : ndarray
    variance : ndarray, broadcastable
        s, positive.
    tail : float
        a > 0: it turns where x^2 is about a s. ``inf`` is the normal prior, towards 0 it has ever heavier tails.

    Returns
    -------
    value : float
    gradient : ndarray of the shape of x

    Examples
    --------
    >>> value, gradient = pseudo_huber(np.array([0.0, 3.0]), np.array([1.0, 1.0]), tail=4.5)
    >>> round(value, 4), gradient.round(4)
    (3.2942, array([0.    , 1.7321]))
    """
    scaled = x / variance
    root = np.sqrt(1 + x * scaled / tail)
    # a (root - 1) without the cancellation of large a.
    return float(np.sum(x * scaled / (1 + root))), scaled / root


def pseudo_huber_curvature(x: np.ndarray, variance: np.ndarray, tail: float = PRIOR_TAIL) -> np.ndarray:
    """Gradient over x: the curvature of the parabola that touches the penalty at x from above."""
    return 1.0 / (variance * np.sqrt(1 + x**2 / (tail * variance)))


def pseudo_huber_variance(tail: float = PRIOR_TAIL) -> float:
    """Variance of a variable with density proportional to exp(-`pseudo_huber`), as a multiple of s: K_2(a)/K_1(a).

    Examples
    --------
    >>> round(pseudo_huber_variance(1.0), 4), pseudo_huber_variance(np.inf)
    (2.6995, 1.0)
    """
    if tail > 1e6:  # scipy's Bessel functions give up somewhere; the next term of the expansion is below 1e-12
        return 1 + 1.5 / tail
    return float(kve(2, tail) / kve(1, tail))

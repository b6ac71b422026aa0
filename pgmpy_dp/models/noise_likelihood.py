"""Density of a normal error plus privacy noise, for the difference between expected and released counts."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx

__all__ = ["negative_log_density"]

_TAIL = -26.0
"""Below it erfcx(x) = 2 exp(x^2) - erfcx(-x) overflows soon, and erfcx(x) / (2 exp(x^2)) is 1 to double precision."""


def negative_log_density(
    residual: np.ndarray, variance: np.ndarray, noise: str, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """-log f(z) and its derivative, z = Normal(0, variance) + noise of the given scale.

    Parameters
    ----------
    residual : ndarray
        z, in records.
    variance : ndarray, broadcastable
        Variance of the normal part, positive.
    noise : {"laplace", "gaussian"}
        Distribution of the privacy noise.
    scale : ndarray, broadcastable
        Laplace scale b or Gaussian standard deviation.

    Returns
    -------
    value, derivative : ndarray

    Notes
    -----
    For Laplace noise, with s^2 the variance, u = z/s and q = s/b, completing the square gives

        f(z) = exp(-u^2/2) (e_+ + e_-) / (4 b),   e_+- = erfcx((q +- u) / sqrt(2))

    with the scaled complementary error function, which neither underflows nor cancels; and
    -f'/f = (e_- - e_+) / (b (e_- + e_+)). Where e_- would overflow (|u| > q + 36.8) the density is
    a pure exponential tail, exp(q^2/2 - |z|/b) / (2 b), to double precision.

    Examples
    --------
    >>> import numpy as np
    >>> value, slope = negative_log_density(np.array([0.0]), np.array([1e-12]), "laplace", np.array([2.0]))
    >>> round(float(value[0]), 4), float(slope[0])  # the Laplace density at 0 is 1 / (2 b)
    (1.3863, 0.0)
    """
    if noise == "gaussian":
        total = variance + scale**2
        return 0.5 * (residual**2 / total + np.log(2 * math.pi * total)), residual / total
    deviation = np.sqrt(variance)
    magnitude = np.abs(residual)
    ratio = deviation / scale
    standard = magnitude / deviation
    near = (ratio - standard) * math.sqrt(0.5)
    e_minus = erfcx(np.maximum(near, _TAIL))
    e_plus = erfcx((ratio + standard) * math.sqrt(0.5))
    total = e_minus + e_plus
    value = 0.5 * standard**2 - np.log(total) + np.log(4 * scale)
    slope = (e_minus - e_plus) / (scale * total)
    tail = near < _TAIL
    if tail.any():
        value = np.where(tail, magnitude / scale - 0.5 * ratio**2 + np.log(2 * scale), value)
    return value, np.copysign(slope, residual) * (residual != 0)

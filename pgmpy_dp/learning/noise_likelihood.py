"""Density of a normal error plus privacy noise, for the difference between expected and released counts."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfcx

_TAIL = -6.0
"""Below it erfcx(x) / (2 exp(x^2)) is 1 to double precision."""


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
    -f'/f = (e_- - e_+) / (b (e_- + e_+)). Where |u| > q + 8.5 the density is a pure exponential tail,
    exp(q^2/2 - |z|/b) / (2 b), to double precision. So it is for nearly all cells of a weak release, and there
    no error function is evaluated, which costs 30 times as much as other arithmetic.

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
    value, slope = _laplace(np.abs(residual), variance, scale)
    return value, slope * np.sign(residual) / scale


def log_density(residual: np.ndarray, variance: np.ndarray, noise: str, scale: np.ndarray) -> np.ndarray:
    """Compute log f(z) alone; see `negative_log_density`.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_density(np.array([0.0]), np.array([0.5]), "gaussian", np.array([0.0]))[0].round(4))  # -log(pi)/2
    -0.5724
    """
    if noise == "gaussian":
        total = variance + scale**2
        return -0.5 * (residual**2 / total + np.log(2 * math.pi * total))
    return -_laplace(np.abs(residual), variance, scale)[0]


def _laplace(magnitude: np.ndarray, variance: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-log f and its derivative times b, both of the broadcast shape."""
    deviation = np.sqrt(variance)
    ratio = deviation / scale
    standard = magnitude / deviation
    near = ratio - standard
    near *= math.sqrt(0.5)
    tail = near < _TAIL
    n_tail = np.count_nonzero(tail)
    if n_tail == 0:
        return _centre(near, ratio, standard, scale)
    far = magnitude / scale - 0.5 * ratio**2 + np.log(2 * scale)
    if 2 * n_tail <= tail.size:
        value, slope = _centre(np.maximum(near, _TAIL, out=near), ratio, standard, scale)
        np.copyto(value, far, where=tail)
        return value, slope
    slope = np.ones(far.shape)
    centre = ~tail
    parts = (np.broadcast_to(part, tail.shape)[centre] for part in (near, ratio, standard, scale))
    far[centre], slope[centre] = _centre(*parts)
    return far, slope


def _centre(
    near: np.ndarray, ratio: np.ndarray, standard: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute `_laplace` away from its tails. Overwrites `near`, `standard`: new memory costs as much as arithmetic."""
    far = ratio + standard
    far *= math.sqrt(0.5)
    e_minus, e_plus = erfcx(near, out=near), erfcx(far, out=far)
    total = e_minus + e_plus
    e_minus -= e_plus
    e_minus /= total
    np.log(total, out=total)
    standard *= standard
    standard *= 0.5
    standard -= total
    standard += np.log(4 * scale)
    return standard, e_minus

"""A private estimate of a mixture's scale: the octave that most blocks' own estimates lie in, and where in it."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.histogram import StabilityHistogram, stable_cells

__all__ = ["LOG_SENSITIVITY", "block_log_scales", "noisy_log_scale"]

_BITS = 16  # log-scales are summed in units of 2**-16
_REACH = 1.0  # of the mean, in octaves about the heaviest one's middle
_LARGEST_LOG = 199.0  # scales are within 1e-60 and 1e60

LOG_SENSITIVITY = 2.0 * math.ldexp(_REACH, _BITS)
"""By how much one block can move the sum of log-scales, in its units."""


def block_log_scales(cost: np.ndarray, sizes: np.ndarray, n_components: int, n_features: int) -> np.ndarray:
    """log2 of each block's estimate of sigma, shape (m,), from the cost of its k-means; NaN where it has none.

    ``sigma**2 = cost / (d (b - k))``: each of k means, and so each of k centres, takes one record's worth of freedom.
    """
    with np.errstate(all="ignore"):
        logs = 0.5 * np.log2(cost / (n_features * (sizes - float(n_components))))
    return np.where((sizes > n_components) & (np.abs(logs) < _LARGEST_LOG), logs, np.nan)


def noisy_log_scale(
    logs: np.ndarray,
    histogram: StabilityHistogram,
    noise_scale: float,
    offset: float,
    seed: np.random.Generator | None = None,
) -> float | None:
    """log2 of the scale that most blocks agree on, or None where no octave is stable.

    Parameters
    ----------
    logs : ndarray, shape (m,)
        As :func:`block_log_scales` returns them; m is public.
    histogram : StabilityHistogram
        For one mark of each block.
    noise_scale : float
        Of the noise on the sum, for its sensitivity `LOG_SENSITIVITY`.
    offset : float
        In [0, 1), public: where octaves begin.
    seed : numpy.random.Generator, optional
        For tests and benchmarks only: the result is then not private.

    Notes
    -----
    Privacy: each block marks its octave (:mod:`pgmpy_dp.private.noise.histogram` with k = 1). The heaviest stable one
    is public; then each block adds its log-scale less the octave's middle, clamped to +-1 and truncated to units of
    2**-16, and blocks without an estimate add 0. One block's change moves the sum by at most 2**17 units, noise on it
    is discrete Gaussian, and the number of blocks is public.
    """
    with_one = np.flatnonzero(np.isfinite(logs))
    octaves = np.floor(logs[with_one] - offset).astype(np.int64)
    cells, counts = stable_cells(octaves[:, np.newaxis], with_one, histogram, seed)
    if not len(cells):
        return None
    middle = float(cells[np.argmax(counts), 0]) + offset + 0.5
    apart = np.clip(np.nan_to_num(logs - middle), -_REACH, _REACH)
    total = np.trunc(np.ldexp(apart, _BITS)).astype(np.int64).sum(keepdims=True)
    noisy = float(samplers.discrete_gaussian(total, noise_scale, seed=seed)[0])
    return middle + float(np.clip(math.ldexp(noisy, -_BITS) / len(logs), -_REACH, _REACH))

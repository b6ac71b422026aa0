"""Integer noise and noisy selections, exactly distributed: the only module that imports OpenDP.

OpenDP samples the discrete Laplace and the discrete Gaussian with integer arithmetic on bits of the operating system
(Canonne, Kamath and Steinke 2020). So the released integers have exactly the stated distribution, and no low-order bits
to leak through (Mironov 2012). Results beyond the range of int64 are clamped to it, which is post-processing.
Selections (noisy maxima of integer scores) compare Gumbel or exponential variables, which OpenDP refines until their
order is certain.

A seed replaces this by NumPy's generator and floating point. That exists to make tests and benchmarks repeatable:
whoever knows the seed can subtract the noise. Callers must mark such a release as reproducible and warn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

_CHUNK = 1 << 18  # cells handed to OpenDP at once; as Python integers they take about 10 MB


class ReproducibleNoiseWarning(UserWarning):
    """The noise of a release comes from a seed, so the release protects nobody."""


def seeded_generator(random_state: int | None) -> np.random.Generator | None:
    """None for exact noise; for a `random_state` a generator, with a warning that the release is not private.

    A learner calls it before it charges: where warnings are errors, nothing has been spent.
    """
    if random_state is None:
        return None
    warnings.warn(
        f"random_state={random_state!r} makes the noise reproducible: this release is NOT private. "
        "Use it for tests and benchmarks on public data only.",
        ReproducibleNoiseWarning,
        stacklevel=4,  # the caller of the learner's run
    )
    return np.random.default_rng(random_state)


@cache
def exercised() -> None:
    """Load OpenDP and draw from each of its laws once, on made-up numbers: what is missing is missed before a charge.

    Its library takes tens of megabytes and a quarter of a second, once a process.

    Raises
    ------
    ImportError, OSError, MemoryError
        Where it cannot be loaded.
    """
    made_up = np.zeros(2, dtype=np.int64)
    discrete_laplace(made_up, 1.0)
    discrete_gaussian(made_up, 1.0)
    gumbel_argmax([made_up], 1.0)
    exponential_argmax([made_up], 1.0)


def discrete_laplace(values: np.ndarray, scale: float, *, rng: np.random.Generator | None = None) -> np.ndarray:
    """Values plus independent noise with P(z) proportional to ``exp(-abs(z)/scale)`` on the integers.

    Parameters
    ----------
    values : ndarray of int64, any shape
    scale : float
        Positive, finite.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: draw from this generator, **not privately**.

    Returns
    -------
    ndarray of int64, same shape

    Notes
    -----
    Privacy: if two inputs differ by at most D in l1 norm, the output is (D/scale)-DP (Ghosh, Roughgarden and
    Sundararajan 2012).
    """
    if rng is not None:
        return _seeded(values, _two_sided_geometric(rng, scale, np.size(values)))
    return _in_chunks(values, lambda: laplace_measurement(scale))


def discrete_gaussian(values: np.ndarray, scale: float, *, rng: np.random.Generator | None = None) -> np.ndarray:
    """Values plus independent noise with P(z) proportional to ``exp(-z**2/(2 scale**2))`` on the integers.

    Parameters, result: as :func:`discrete_laplace`.

    Notes
    -----
    Privacy: if two inputs differ by at most D in l2 norm, the output satisfies ``D**2/(2 scale**2)``-zCDP (Canonne,
    Kamath and Steinke 2020, Theorem 4).
    """
    if rng is not None:
        return _seeded(values, _rejection_gaussian(rng, scale, np.size(values)))
    return _in_chunks(values, lambda: gaussian_measurement(scale))


def gumbel_argmax(rows: Sequence[np.ndarray], scale: float, *, rng: np.random.Generator | None = None) -> np.ndarray:
    """Return the position of the largest score of each row after adding independent Gumbel noise to each score.

    Parameters
    ----------
    rows : sequence of ndarray of int64
        Each of one or more scores; lengths may differ.
    scale : float
        Positive, finite.
    rng : numpy.random.Generator, optional
        For tests and benchmarks only: draw from this generator, **not privately**.

    Returns
    -------
    ndarray of int64, shape (len(rows),)
        Position j of row x with probability proportional to ``exp(x_j/scale)``, independently for each row.

    Notes
    -----
    Privacy: if no score moves by more than D between neighbours, one selection is the exponential mechanism of
    epsilon = 2D/scale, whose privacy loss has a range of that width, so it is ``(2D/scale)**2/8``-zCDP (McSherry and
    Talwar 2007; Cesar and Rogers 2021).
    """
    if rng is not None:
        noisy = (row + scale * rng.gumbel(size=len(row)) for row in rows)
        return np.array([np.argmax(row) for row in noisy], dtype=np.int64)
    return _select(rows, gumbel_measurement(scale))


def exponential_argmax(
    rows: Sequence[np.ndarray], scale: float, *, rng: np.random.Generator | None = None
) -> np.ndarray:
    """Return the position of the largest score of each row after adding independent exponential noise to each score.

    Parameters, result: as :func:`gumbel_argmax`, but for the law of the selection.

    Notes
    -----
    Privacy: if no score moves by more than D between neighbours, one selection is (2D/scale)-DP (Ding, Kifer, Sayed,
    Steinke, Wang, Xiao and Zhang 2021: it is permute-and-flip of McKenna and Sheldon 2020).
    """
    if rng is not None:
        noisy = (row + rng.exponential(scale, size=len(row)) for row in rows)
        return np.array([np.argmax(row) for row in noisy], dtype=np.int64)
    return _select(rows, exponential_measurement(scale))


def laplace_measurement(scale: float) -> Any:
    """OpenDP's discrete Laplace on vectors of int64, whose ``map`` takes an l1 distance to an epsilon."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    _enable_contrib()
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)


def gaussian_measurement(scale: float) -> Any:
    """OpenDP's discrete Gaussian on vectors of int64, whose ``map`` takes an l2 distance to a rho."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    _enable_contrib()
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


def gumbel_measurement(scale: float) -> Any:
    """OpenDP's noisy maximum of int64 scores, whose ``map`` takes an l-infinity distance to a rho."""
    from opendp.measures import zero_concentrated_divergence

    return _noisy_max(zero_concentrated_divergence(), scale)


def exponential_measurement(scale: float) -> Any:
    """OpenDP's noisy maximum of int64 scores, whose ``map`` takes an l-infinity distance to an epsilon."""
    from opendp.measures import max_divergence

    return _noisy_max(max_divergence(), scale)


def _noisy_max(measure: Any, scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.metrics import linf_distance

    _enable_contrib()
    # Scores may move in either direction: `monotonic`, which would halve the loss, keeps its default False.
    return make_noisy_max(vector_domain(atom_domain(T="i64")), linf_distance(T="i64"), measure, scale=scale)


def _select(rows: Sequence[np.ndarray], measurement: Any) -> np.ndarray:
    return np.array([measurement(np.asarray(row, dtype=np.int64).tolist()) for row in rows], dtype=np.int64)


def _enable_contrib() -> None:
    # OpenDP asks its callers to say that they know its constructors are vetted by its contributors, not by a verifier.
    from opendp.mod import enable_features

    enable_features("contrib")


def _in_chunks(values: np.ndarray, make: Callable[[], Any]) -> np.ndarray:
    values = np.asarray(values, dtype=np.int64)
    noisy = np.empty(values.size, dtype=np.int64)
    flat = values.reshape(-1)
    measurement = make()
    for start in range(0, values.size, _CHUNK):
        noisy[start : start + _CHUNK] = measurement(flat[start : start + _CHUNK].tolist())
    return noisy.reshape(values.shape)


def _seeded(values: np.ndarray, noise: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.int64)
    return values + noise.reshape(values.shape)


def _two_sided_geometric(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Difference of two geometric variables of parameter 1 - exp(-1/scale), which is the discrete Laplace."""
    success = -math.expm1(-1.0 / scale)
    return rng.geometric(success, size) - rng.geometric(success, size)


def _rejection_gaussian(rng: np.random.Generator, scale: float, size: int) -> np.ndarray:
    """Discrete Gaussian by rejection from a discrete Laplace (Canonne, Kamath and Steinke 2020, Algorithm 3)."""
    width = math.floor(scale) + 1
    noise = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        proposal = _two_sided_geometric(rng, width, 2 * (size - filled) + 16)
        log_accept = -((np.abs(proposal) - scale**2 / width) ** 2) / (2.0 * scale**2)
        kept = proposal[np.log1p(-rng.random(proposal.size)) < log_accept][: size - filled]
        noise[filled : filled + kept.size] = kept
        filled += kept.size
    return noise

"""Private stochastic gradient ascent (Abadi et al. 2016): the noisy steps, whatever the likelihood.

A curator answers noisy sums of clipped gradients of Poisson samples of the units of privacy, records or users; here are
the steps and the averages that are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.private.curator.schedule import SampledCurator
from pgmpy_dp.private.sensitive import Release

_LARGEST_PARAMETER = 50.0  # log-potentials stay within +-50: a ratio of exp(100) between two cells of a table
_PARAMETER_BITS = 32
PARAMETER_UNIT = math.ldexp(1.0, -_PARAMETER_BITS)
"""Released parameters are multiples of it."""

KEPT = {"momentum": 0.9, "average_share": 0.5, "count_share": 0.05}
"""What no estimator asks: how much of a step's direction the next one keeps, over which last part of the steps the
parameters are averaged, and the part of the budget for a noisy number of units, where none is public."""


@dataclass(frozen=True)
class Ascent:
    """What came of the steps so far.

    Attributes
    ----------
    parameters : ndarray of int64
        Averaged, in units of `PARAMETER_UNIT`.
    path : dict
        How the parameters were found: public. Its ``n_steps`` are those that were taken.
    """

    parameters: np.ndarray
    path: dict[str, Any]


def ascend(
    settings: Settings,
    curator: SampledCurator,
    n_parameters: int,
    *,
    public_count: int | None,
    gradient: Callable[[np.ndarray], np.ndarray],
    default_rate: Callable[[float, float], float],
    stable_rate: Callable[[np.ndarray, float], float] | None = None,
) -> Generator[Ascent, None, None]:
    """Take the noisy steps from parameters 0; yield what was found before the first and after each of them.

    Between two noisy sums everything is post-processing.

    Parameters
    ----------
    settings : Settings
        `n_steps`, `learning_rate` (of every step, for the mean gradient of a unit), and what `KEPT` has.
    curator : SampledCurator
        Opened for the steps of `settings`.
    public_count : int or None
        The number of units, if it is public.
    gradient : callable
        From parameters, shape (n_parameters,), to the noisy sum of the curator's next step.
    default_rate : callable
        From the number of units and the variance of the mean of all steps' noises to a learning rate.
    stable_rate : callable, optional
        From the parameters and the default learning rate to the one that the next step bears; called once a step.
        Without it steps have the default rate throughout. A rate that the settings name is taken as it is.
    """
    schedule = curator.schedule
    n = max(float(curator.count() if public_count is None else public_count), 1.0)
    to_mean = curator.unit_size / (schedule.rate * n)
    variance = (curator.scale * curator.unit_size / (schedule.rate * n)) ** 2 / settings.n_steps
    learning_rate = rate = settings.learning_rate or default_rate(n, variance)
    theta = np.zeros(n_parameters)
    direction, average = np.zeros_like(theta), np.zeros_like(theta)
    averaged = math.ceil(settings.average_share * settings.n_steps)

    def found(taken: int) -> Ascent:
        part = taken - (settings.n_steps - averaged)  # steps that are in the average; of fewer than all, their mean
        mean = theta if part <= 0 else average if part == averaged else average * (averaged / part)
        path = {
            "n_steps": taken,
            "batch_rate": schedule.rate,
            "clip_norm": curator.bound * curator.unit_size,
            "noise_multiplier": schedule.multiplier,
            "learning_rate": learning_rate,
            "last_learning_rate": rate,
            "momentum": settings.momentum,
            "average_share": settings.average_share,
        }
        return Ascent(parameter_integers(mean), path)

    yield found(0)
    for step in range(settings.n_steps):
        direction = settings.momentum * direction + (1.0 - settings.momentum) * (gradient(theta) * to_mean)
        if stable_rate is not None and settings.learning_rate is None:
            rate = stable_rate(theta, learning_rate)
        theta = np.clip(theta + rate * direction, -_LARGEST_PARAMETER, _LARGEST_PARAMETER)
        if step >= settings.n_steps - averaged:
            average += theta / averaged
        yield found(step + 1)


def parameter_integers(parameters: np.ndarray) -> np.ndarray:
    """Parameters as a release keeps them: in units of 2**-32."""
    return np.rint(np.ldexp(parameters, _PARAMETER_BITS)).astype(np.int64)


def released_parameters(release: Release, kind: str, *names: str) -> list[np.ndarray]:
    """The parameters of these names of a release of this kind; ValueError for another kind."""
    require_kind(release, kind)
    return [release[name].array * float(release.public["parameter_unit"]) for name in names]


def largest_stable_rate(momentum: float, curvature: float) -> float:
    """Learning rate up to which steps with momentum are stable on a log-likelihood of this curvature.

    Parameters
    ----------
    momentum : float
        m, in [0, 1).
    curvature : float
        L > 0: no eigenvalue of the negative Hessian of a unit's mean log-likelihood is larger.

    Examples
    --------
    >>> round(largest_stable_rate(0.9, 0.5), 6)
    76.0
    """
    # Let H be the negative Hessian at the maximum. The mean of clipped gradients is there `-M H e` to first order in
    # the distance e, where M is symmetric with eigenvalues from 0 to 1: it is a mean over units, of
    # `B/|g| (1 - g g'/|g|^2)` for one whose gradient g is clipped and of 1 for any other one. The eigenvalues of M H
    # are those of the symmetric `H^(1/2) M H^(1/2)`: real, at least 0 and at most L. Along an eigenvector of eigenvalue
    # l, steps of rate r are
    #
    #     d' = m d - (1 - m) l e,    e' = e + r d',
    #
    # with the characteristic polynomial `z^2 - (1 + m - r (1 - m) l) z + m`. Its roots are inside the unit circle
    # exactly where `|1 + m - r (1 - m) l| < 1 + m`, that is where `0 < r l < 2 (1 + m)/(1 - m)`. Noise moves the
    # maximum that a step sees, not the Hessian, so the bound is the same whatever the noise.
    return 2.0 * (1.0 + momentum) / ((1.0 - momentum) * curvature)

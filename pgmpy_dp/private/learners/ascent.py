"""Private stochastic gradient ascent (Abadi et al. 2016): what its learners share, whatever the likelihood.

A learner brings sums of clipped gradients, exact on an integer grid, one vector of l2 norm at most B for each unit of
privacy (a record, or a user). Here are the budget's way into noise, the noisy steps, and the noisy number of units.
``gradient.md`` beside this file proves the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, checked_number
from pgmpy_dp.private.learners.marginals import checked_integer
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import gaussian_scales
from pgmpy_dp.private.noise.subsampling import rounded_rate
from pgmpy_dp.private.sensitive import Noise, Sensitive

__all__ = ["PARAMETER_UNIT", "Ascent", "AscentSettings", "Plan", "ascend", "largest_stable_rate", "make_plan"]

_LARGEST_SCALE = 2.0**48  # of the noise in grid units, see noise/additive.py
_LARGEST_PARAMETER = 50.0  # log-potentials stay within +-50: a ratio of exp(100) between two cells of a table
_PARAMETER_BITS = 32
PARAMETER_UNIT = math.ldexp(1.0, -_PARAMETER_BITS)
"""Released parameters are multiples of it."""


@dataclass(frozen=True, kw_only=True)
class AscentSettings:
    """How to ascend, fixed before the records are looked at.

    Parameters
    ----------
    n_steps : int, default 200
    batch_rate : float, optional
        In (0, 1]: probability with which a unit takes part in a step, rounded to a multiple of 2**-16. Default: 1/4,
        and 1 for a rho budget, where sampling does not save any.
    clip_norm : float, optional
        l2 norm that no unit's gradient exceeds. The default is the learner's.
    learning_rate : float, optional
        Of every step, for the mean gradient of a unit. Default: from the public noise level and the curvature, see the
        learner.
    momentum : float, default 0.9
        In [0, 1): share of the last step's direction that the next one keeps.
    average_share : float, default 0.5
        In (0, 1]: the result is the mean of the parameters over this last part of the steps.
    count_share : float, default 0.05
        In (0, 1): part of the budget (of rho) for a noisy number of units, where no public one is known.
    random_state : int, optional
        For tests and benchmarks only: repeatable samples and noise. The release is marked reproducible and **is not
        private**.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the data.
    """

    n_steps: int = 200
    batch_rate: float | None = None
    clip_norm: float | None = None
    learning_rate: float | None = None
    momentum: float = 0.9
    average_share: float = 0.5
    count_share: float = 0.05
    random_state: int | None = None

    def __post_init__(self) -> None:
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))
        if isinstance(self.n_steps, bool) or not isinstance(self.n_steps, int | np.integer):
            raise TypeError(f"n_steps={self.n_steps!r} is a {type(self.n_steps).__name__}; pass a whole number above 0")
        if not 1 <= self.n_steps <= 10**6:
            raise ValueError(f"n_steps={self.n_steps!r} is out of range; pass a whole number from 1 to 1000000")
        object.__setattr__(self, "n_steps", int(self.n_steps))
        for name in ("batch_rate", "clip_norm", "learning_rate"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checked_number(name, getattr(self, name), positive=True))
        if self.batch_rate is not None and self.batch_rate > 1:
            raise ValueError(f"batch_rate={self.batch_rate!r} is above 1; it is a probability: pass a number in (0, 1]")
        for name in ("momentum", "count_share"):
            number = checked_number(name, getattr(self, name), positive=name == "count_share", below_one=True)
            object.__setattr__(self, name, number)
        share = checked_number("average_share", self.average_share, positive=True)
        if share > 1:
            raise ValueError(f"average_share={share!r} is above 1; pass the part of the steps to average, in (0, 1]")
        object.__setattr__(self, "average_share", share)


@dataclass(frozen=True)
class Plan:
    """Everything that follows from public numbers.

    Attributes
    ----------
    cost : ApproxDP or ZCDP
        To be charged before the first step.
    rate, multiplier : float
        Probability of a unit to take part in a step; scale of the noise over the clip norm.
    scale : float
        Of the noise of a step, in grid units.
    count_scale : float or None
        Of the noise of the number of units; None where a public one is known.
    bound : int
        B: the clip norm in grid units.
    unit : float
        Of the grid.
    """

    cost: ApproxDP | ZCDP
    rate: float
    multiplier: float
    scale: float
    count_scale: float | None
    bound: int
    unit: float


@dataclass(frozen=True)
class Ascent:
    """What came of the steps.

    Attributes
    ----------
    parameters : ndarray of int64
        Averaged, in units of `PARAMETER_UNIT`.
    counts, noise : tuple
        The noisy number of units and its noise; empty where a public one is known.
    path : dict
        How the parameters were found: public.
    """

    parameters: np.ndarray
    counts: tuple[np.ndarray, ...]
    noise: tuple[Noise, ...]
    path: dict[str, Any]


def make_plan(
    settings: AscentSettings, budget: Budget, adjacency: Adjacency, public_count: int | None, bound: int, unit: float
) -> Plan:
    """Rates, scales and cost, from public numbers; refuses what cannot be done before anything is spent.

    Parameters
    ----------
    settings : AscentSettings
    budget : Budget
        ``epsilon`` with ``delta``, or ``rho``.
    adjacency : Adjacency
    public_count : int or None
        The number of units, if it is public.
    bound : int
        B: clip norm in grid units.
    unit : float
        Of the grid.

    Raises
    ------
    ValueError
        For a pure budget, and for one that would need noise beyond 64-bit integers.

    Notes
    -----
    Privacy
        Under ``add_remove`` the exact sum of a step moves by at most B, under ``replace_one`` by at most 2B.
        (epsilon, delta): under ``add_remove`` by the Renyi divergences of the Poisson-subsampled Gaussian, composed
        over the steps and with the count; under ``replace_one``, a removal and an addition, by accounting for
        (epsilon/2, delta/(1 + exp(epsilon/2))) under ``add_remove``. A rho budget: with the noise of steps on all
        units, because the divergence of a sampled Gaussian of high order is no smaller.

        Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang 2016; Mironov, Talwar and Zhang 2019;
        Canonne, Kamath and Steinke 2020. Proof for the discrete Gaussian: ``gradient.md``.
    """
    if budget.rho is None and not budget.delta:
        raise ValueError(
            f"delta=0 with epsilon={budget.epsilon!r}: gradients with Gaussian noise have no pure guarantee; "
            "pass a delta above 0 (at most 1 over the number of records, or of users), or rho"
        )
    changed = changed_records(adjacency)
    cost: ApproxDP | ZCDP
    if budget.rho is not None:
        cost, total = ZCDP(budget.rho), budget.rho
    else:
        assert budget.epsilon is not None
        cost, total = ApproxDP(budget.epsilon, budget.delta), accounting.approx_to_zcdp(budget.epsilon, budget.delta)
    # Under replace_one the number of units is public.
    count_rho = settings.count_share * total if public_count is None else 0.0
    count_scale = gaussian_scales([1.0], count_rho)[0] if count_rho else None
    if isinstance(cost, ZCDP):
        rate = rounded_rate(settings.batch_rate or 1.0)
        multiplier = gaussian_scales([float(changed)] * settings.n_steps, total - count_rho)[0]
    else:
        rate = rounded_rate(settings.batch_rate or 0.25)
        epsilon, delta = cost.epsilon, cost.delta
        if changed == 2:
            epsilon, delta = epsilon / 2.0, delta / (1.0 + math.exp(epsilon / 2.0))
        multiplier = accounting.subsampled_gaussian_multiplier(epsilon, delta, rate, settings.n_steps, rho=count_rho)
    scale = math.nextafter(multiplier * bound, math.inf)
    if scale > _LARGEST_SCALE:
        raise ValueError(
            f"{budget} needs noise of {multiplier:.3g} times the clip norm in each of n_steps={settings.n_steps}, "
            "which would bury any gradient; raise the budget, or take fewer steps"
        )
    return Plan(cost, rate, multiplier, scale, count_scale, bound, unit)


def ascend(
    settings: AscentSettings,
    plan: Plan,
    n_parameters: int,
    *,
    public_count: int | None,
    exact_count: Callable[[], Sensitive],
    exact_sum: Callable[[np.ndarray], Sensitive],
    default_rate: Callable[[float, float], float],
    seed: np.random.Generator | None,
    stable_rate: Callable[[np.ndarray, float], float] | None = None,
) -> Ascent:
    """Take the noisy steps from parameters 0. Between two noisy sums everything is post-processing.

    Parameters
    ----------
    settings : AscentSettings
    plan : Plan
        Its cost has been charged.
    n_parameters : int
    public_count : int or None
    exact_count : callable
        The number of units; called once, if no public one is known.
    exact_sum : callable
        From parameters, shape (n_parameters,), to the clipped gradient sum over a Poisson sample of rate ``plan.rate``.
    default_rate : callable
        From the number of units and the variance of the mean of all steps' noises to a learning rate.
    seed : numpy.random.Generator or None
        For tests and benchmarks only.
    stable_rate : callable, optional
        From the parameters and the default learning rate to the one that the next step bears; called once a step.
        Without it steps have the default rate throughout. A rate that the settings name is taken as it is.
    """
    counts, noise = [], []
    n = float(public_count or 0)
    if plan.count_scale is not None:
        counts.append(samplers.discrete_gaussian(exact_count().value, plan.count_scale, seed=seed))
        noise.append(Noise("discrete_gaussian", plan.count_scale))
        n = float(counts[0][0])
    n = max(n, 1.0)
    variance = (plan.scale * plan.unit / (plan.rate * n)) ** 2 / settings.n_steps
    learning_rate = rate = settings.learning_rate or default_rate(n, variance)
    theta = np.zeros(n_parameters)
    direction, average = np.zeros_like(theta), np.zeros_like(theta)
    averaged = math.ceil(settings.average_share * settings.n_steps)
    to_mean = plan.unit / (plan.rate * n)
    for step in range(settings.n_steps):
        noisy = samplers.discrete_gaussian(exact_sum(theta).value, plan.scale, seed=seed)
        direction = settings.momentum * direction + (1.0 - settings.momentum) * (noisy * to_mean)
        if stable_rate is not None and settings.learning_rate is None:
            rate = stable_rate(theta, learning_rate)
        theta = np.clip(theta + rate * direction, -_LARGEST_PARAMETER, _LARGEST_PARAMETER)
        if step >= settings.n_steps - averaged:
            average += theta / averaged
    path = {
        "n_steps": settings.n_steps,
        "batch_rate": plan.rate,
        "clip_norm": plan.bound * plan.unit,
        "noise_multiplier": plan.multiplier,
        "learning_rate": learning_rate,
        "last_learning_rate": rate,
        "momentum": settings.momentum,
        "average_share": settings.average_share,
    }
    parameters = np.rint(np.ldexp(average, _PARAMETER_BITS)).astype(np.int64)
    return Ascent(parameters, tuple(counts), tuple(noise), path)


def largest_stable_rate(momentum: float, curvature: float) -> float:
    """Learning rate up to which steps with momentum are stable on a log-likelihood of this curvature.

    Parameters
    ----------
    momentum : float
        m, in [0, 1).
    curvature : float
        L > 0: no eigenvalue of the negative Hessian of a unit's mean log-likelihood is larger.

    Notes
    -----
    Let H be the negative Hessian at the maximum. The mean of clipped gradients is there ``-M H e`` to first order in
    the distance e, where M is symmetric with eigenvalues from 0 to 1: it is a mean over units, of ``B/|g| (1 - g
    g'/|g|^2)`` for one whose gradient g is clipped and of 1 for any other one. The eigenvalues of M H are those of the
    symmetric ``H^(1/2) M H^(1/2)``: real, at least 0 and at most L. Along an eigenvector of eigenvalue l, steps of
    rate r are

        d' = m d - (1 - m) l e,    e' = e + r d',

    with the characteristic polynomial ``z^2 - (1 + m - r (1 - m) l) z + m``. Its roots are inside the unit circle
    exactly where ``|1 + m - r (1 - m) l| < 1 + m``, that is where ``0 < r l < 2 (1 + m)/(1 - m)``. Noise moves the
    maximum that a step sees, not the Hessian, so the bound is the same whatever the noise.

    Examples
    --------
    >>> round(largest_stable_rate(0.9, 0.5), 6)
    76.0
    """
    return 2.0 * (1.0 + momentum) / ((1.0 - momentum) * curvature)

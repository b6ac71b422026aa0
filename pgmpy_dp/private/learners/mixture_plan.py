"""Settings of the mixture learner, and what follows from them and other public numbers: costs, noise, thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.vector_sums import LARGEST_DIMENSION, require_single_records
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ApproxDP, checked_number
from pgmpy_dp.private.learners.mixture_scale import LOG_SENSITIVITY
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import gaussian_scales
from pgmpy_dp.private.noise.histogram import StabilityHistogram, stability_histogram

__all__ = [
    "ASSUMED_SEPARATION",
    "BLOCK_SOLVERS",
    "COUNT_WEIGHT",
    "MixturePlan",
    "MixtureSettings",
    "advised_blocks",
    "make_plan",
]

BLOCK_SOLVERS = ("kmeans", "sdp")
ASSUMED_SEPARATION = 8.0
"""In scales, where no separation is given."""

COUNT_WEIGHT = {Adjacency.ADD_REMOVE: Fraction(1, 2), Adjacency.REPLACE_ONE: Fraction(1)}
"""w: noise on the counts of a step is 1/w times that of the sums, in their own units."""

_MAX_BLOCKS = 1 << 16
_LARGEST_MULTIPLIER = 2.0**31  # of a step's noise, whose sums have 16 bits more
_MAX_COMPONENTS = 1000
_LENGTHS = (1e-60, 1e60)
_ETA = Fraction(999, 10000)  # of delta, for thresholds; a little less than a tenth, so that sums round below delta
# Shares of rho. A noisy number of records, a scale: where they are not public. Then the first stage; the rest is steps.
_COUNT_SHARE = Fraction(2, 100)
_SCALE_SHARES = (Fraction(8, 100), Fraction(2, 100))  # which octave; where in it
_CELLS_SHARE = Fraction(7, 10)


@dataclass(frozen=True)
class MixtureSettings:
    """What to learn, and how, fixed before the records are looked at.

    Parameters
    ----------
    n_components : int
        k, at least 1.
    separation : float, optional
        Public lower bound on the distance between two centres. Default: 8 scales.
    scale : float, optional
        sigma, the standard deviation of a component's coordinates, if it is public. Default: estimated privately.
    n_blocks : int, optional
        M. Default: from the public or a noisy number of records, see :func:`advised_blocks`.
    block_size : int, optional
        Largest number of records that a block looks at. Default: max(32, 2 d) k.
    n_steps : int, default 3
        Noisy Lloyd steps, at least 2.
    block_solver : {"kmeans", "sdp"}
        How a block finds its centres: k-means, or the membership program
        (:func:`pgmpy_dp.models.membership_clusters.block_centres`), which takes a public scale and a thousand times as
        long. Privacy does not rest on it.
    device : str, optional
        A device of torch, e.g. "cuda", for the blocks. Default: NumPy.
    random_state : int, optional
        For tests and benchmarks only: repeatable blocks and noise. The release **is not private**.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the data.
    """

    n_components: int
    separation: float | None = None
    scale: float | None = None
    n_blocks: int | None = None
    block_size: int | None = None
    n_steps: int = 3
    block_solver: str = "kmeans"
    device: str | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_components", checked_integer("n_components", self.n_components, 1))
        if self.n_components > _MAX_COMPONENTS:
            raise ValueError(f"n_components={self.n_components!r} is too large; pass at most {_MAX_COMPONENTS}")
        low, high = _LENGTHS
        for name in ("separation", "scale"):
            if getattr(self, name) is not None:
                length = checked_number(name, getattr(self, name), positive=True)
                if not low <= length <= high:
                    raise ValueError(f"{name}={length!r} is out of range; use units in which it is near 1")
                object.__setattr__(self, name, length)
        if self.separation is not None and self.scale is not None and not 1e-3 <= self.separation / self.scale <= 1e4:
            raise ValueError(
                f"separation={self.separation!r} with scale={self.scale!r}: their ratio must be between 0.001 and "
                "10000; a smaller separation is true too if centres are further apart than that"
            )
        limits = (("n_blocks", 1, _MAX_BLOCKS), ("block_size", 1, 1 << 20), ("n_steps", 2, 100))
        for name, least, most in limits:
            if getattr(self, name) is not None or name == "n_steps":
                number = checked_integer(name, getattr(self, name), least)
                if number > most:
                    raise ValueError(f"{name}={number!r} is too large; pass at most {most}")
                object.__setattr__(self, name, number)
        if self.block_solver not in BLOCK_SOLVERS:
            raise ValueError(f"block_solver={self.block_solver!r} is not supported; use one of {BLOCK_SOLVERS}")
        if self.block_solver == "sdp" and self.scale is None:
            raise ValueError("scale=None with block_solver='sdp', which needs a public scale; pass one, or 'kmeans'")
        if self.device is not None:
            _require_device(self.device)
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))


@dataclass(frozen=True)
class MixturePlan:
    """Everything that follows from public numbers.

    Attributes
    ----------
    cost : ApproxDP
        To be charged before the first noise.
    block_size : int
    count_scale : float or None
        Noise of the number of records; None where a public one is known.
    scale_histogram : StabilityHistogram or None
        Of the blocks' scales; None where the scale is public.
    scale_noise : float
        Of the sum of the blocks' log-scales within an octave.
    cells : StabilityHistogram
        Of the blocks' centres.
    step_multiplier : float
        Noise of a step's sums, in units of the clip norm.
    count_multiplier : float
        Noise of a step's counts.
    """

    cost: ApproxDP
    block_size: int
    count_scale: float | None
    scale_histogram: StabilityHistogram | None
    scale_noise: float
    cells: StabilityHistogram
    step_multiplier: float
    count_multiplier: float


def make_plan(data: PrivateVectors, settings: MixtureSettings, budget: Budget) -> MixturePlan:
    """Noise and thresholds for a budget; ValueError for what cannot be done, before anything is spent.

    Notes
    -----
    Privacy: the parts of rho and of delta add up to at most what the budget allows: with eta a tenth of delta for
    thresholds, rho is what dp-accounting converts to (epsilon, delta - eta).
    """
    if budget.epsilon is None or not budget.delta:
        raise ValueError(
            f"the budget is {budget}: centres without a known bound cannot be learned under a pure epsilon or a rho, "
            "which would have to cover infinitely many cells; pass epsilon and a delta above 0"
        )
    require_single_records(data)
    d, k = len(data.columns), settings.n_components
    if d > LARGEST_DIMENSION:
        raise ValueError(f"data has {d} columns, more than {LARGEST_DIMENSION}; pass fewer columns")
    eta = _ETA * Fraction(budget.delta)
    rho = Fraction(accounting.approx_to_zcdp(budget.epsilon, float(Fraction(budget.delta) - eta) * (1.0 - 1e-9)))
    left = Fraction(1)
    count_scale = None
    if data.n_records is None:
        left -= _COUNT_SHARE
        (count_scale,) = gaussian_scales([1.0], _COUNT_SHARE * rho)
    scale_histogram, scale_noise = None, 0.0
    if settings.scale is None:
        left -= sum(_SCALE_SHARES)
        eta /= 2
        scale_histogram = stability_histogram(1, _SCALE_SHARES[0] * rho, float(eta))
        (scale_noise,) = gaussian_scales([LOG_SENSITIVITY], _SCALE_SHARES[1] * rho)
    cells = stability_histogram(k, left * _CELLS_SHARE * rho, float(eta))
    left *= 1 - _CELLS_SHARE
    weight = COUNT_WEIGHT[data.adjacency]
    (multiplier,) = gaussian_scales([1.0], left * rho / settings.n_steps / _squared_step(data.adjacency, weight))
    if multiplier > _LARGEST_MULTIPLIER:
        raise ValueError(f"the budget {budget} needs noise that would bury any number of records; raise epsilon")
    return MixturePlan(
        ApproxDP(budget.epsilon, budget.delta),
        settings.block_size or max(32, 2 * d) * k,
        count_scale,
        scale_histogram,
        scale_noise,
        cells,
        multiplier,
        multiplier / float(weight),
    )


def _squared_step(adjacency: Adjacency, weight: Fraction) -> Fraction:
    """Largest squared change of the vector (w counts, sums / clip norm) between neighbours.

    A record is (w, v) at one centre, with norm(v) <= 1. ``add_remove``: ``w**2 + 1``. ``replace_one``: the difference
    of two vectors v of one centre, 4, or two records at two centres, ``2 (w**2 + 1)``.
    """
    single = weight**2 + 1
    return single if changed_records(adjacency) == 1 else max(Fraction(4), 2 * single)


def advised_blocks(plan: MixturePlan, settings: MixtureSettings, n_records: float) -> int:
    """M for a public or noisy number of records: post-processing.

    Six times the threshold, as long as blocks have 1.5 records for each component; up to twelve times where they have
    10. Chosen on made-up, public mixtures: more blocks are worth more than larger ones, and fewer would not reach the
    threshold.
    """
    if settings.n_blocks is not None:
        return settings.n_blocks
    each = n_records / settings.n_components
    t = plan.cells.threshold
    advised = max(4.0 * t, min(each / 1.5, 6.0 * t), min(each / 10.0, 12.0 * t))
    return max(8, math.ceil(min(advised, _MAX_BLOCKS)))


def _require_device(device: Any) -> None:
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"device={device!r} needs torch: pip install 'pgmpy_dp[torch]', or device=None") from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ValueError(f"device={device!r} is not a device of torch here ({error}); use 'cpu' or None") from error

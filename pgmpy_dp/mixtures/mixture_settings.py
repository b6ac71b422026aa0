"""Settings of the mixture learner, and how its budget is divided."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from pgmpy_dp.checks import checked_number
from pgmpy_dp.learning.devices import checked_device
from pgmpy_dp.learning.settings_base import SeededSettings, by, one_of, whole
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.cluster_curator import (
    MAX_BLOCKS,
    MOMENT_KINDS,
    cluster_noise,
    log_scale_noise,
    moment_noise,
    stable_histogram,
)
from pgmpy_dp.private.curator.curator_base import cost_of

__all__ = [
    "AUTO",
    "BLOCK_SOLVERS",
    "MAX_COMPONENTS",
    "MixtureSettings",
    "Shares",
    "advised_blocks",
    "checked_components",
    "checked_covariances",
    "checked_length",
    "shares_of",
]

BLOCK_SOLVERS = ("kmeans", "sdp")

MAX_COMPONENTS = 1000
_MOST_MOMENTS = 1 << 22  # entries of matrices, which are made into others at every step of their estimate
_LENGTHS = (1e-60, 1e60)
_RESERVE = 0.0999  # of delta, for thresholds
# Of rho: a noisy number of records, a scale, where they are not public. Then the first stage; the rest is steps.
_COUNT = Fraction(2, 100)
_OCTAVE, _LOG_SCALE = Fraction(8, 100), Fraction(2, 100)
_CELLS = Fraction(7, 10)
# Of what is left after the first three: second moments about the centres, by the covariances that are asked for; for
# none, squared lengths that say whether a component is wider than one group.
_MOMENTS = {
    None: Fraction(1, 100),
    "spherical": Fraction(1, 10),
    "diag": Fraction(2, 10),
    "tied": Fraction(2, 10),
    "full": Fraction(3, 10),
}

AUTO = "auto"


def checked_components(name: str, value: object) -> int | str:
    """A number of components, or "auto"; TypeError or ValueError for anything else."""
    if isinstance(value, str):
        if value != AUTO:
            raise ValueError(f"{name}={value!r} is not supported; pass a number of components, or 'auto'")
        return AUTO
    return whole(1, MAX_COMPONENTS)["check"](name, value)


def checked_covariances(name: str, value: object) -> object:
    """A kind of covariances; ValueError for anything else."""
    if value == "diagonal":
        raise ValueError(f"{name}='diagonal' is not supported; pass 'diag', as scikit-learn has it")
    return one_of(MOMENT_KINDS)["check"](name, value)


def checked_length(name: str, value: object) -> float:
    """A length above 0; TypeError or ValueError for anything else."""
    length, (low, high) = checked_number(name, value, positive=True), _LENGTHS
    if not low <= length <= high:
        raise ValueError(f"{name}={length!r} is out of range; use units in which it is near 1")
    return length


@dataclass(frozen=True)
class MixtureSettings(SeededSettings):
    """What to learn, and how, fixed before the records are looked at.

    Parameters
    ----------
    n_components : int or "auto"
        k, at least 1; "auto" is as many groups as the released cells show, at most `max_components`.
    separation : float, optional
        Public lower bound on the distance between two centres. Default: 8 scales.
    scale : float, optional
        sigma, the standard deviation of a component's coordinates, if it is public. Default: estimated privately.
    max_components : int, optional
        For "auto", which needs it: the largest k, public. Each block looks for so many centres.
    covariance_type : {"spherical", "diag", "tied", "full"}, optional
        Covariances that are estimated when the centres are known, in scikit-learn's words: a scale of each component, a
        variance of each of its columns, one matrix for all, a matrix of each. Default: spheres of one scale.
    n_blocks : int, optional
        M. Default: from the public or a noisy number of records, see :func:`advised_blocks`.
    block_size : int, optional
        Largest number of records that a block looks at. Default: max(32, 2 d) k.
    n_steps : int, default 3
        Noisy Lloyd steps, at least 2.
    block_solver : {"kmeans", "sdp"}
        How a block finds its centres: k-means, or the membership program
        (:func:`pgmpy_dp.mixtures.membership_clusters.block_centres`), which takes a public scale and longer.
    device : str, optional
        A device of torch, e.g. "cuda", for the blocks. Default: that of pgmpy's torch backend, if it is not the
        processor; else NumPy, which is the faster there.
    """

    n_components: int | str = field(metadata=by(checked_components))
    separation: float | None = field(default=None, metadata=by(checked_length))
    scale: float | None = field(default=None, metadata=by(checked_length))
    n_blocks: int | None = field(default=None, metadata=whole(1, MAX_BLOCKS))
    block_size: int | None = field(default=None, metadata=whole(1, 1 << 20))
    n_steps: int = field(default=3, metadata=whole(2, 100))
    block_solver: str = field(default="kmeans", metadata=one_of(BLOCK_SOLVERS))
    device: str | None = None
    max_components: int | None = field(default=None, metadata=whole(1, MAX_COMPONENTS))
    covariance_type: str | None = field(default=None, metadata=by(checked_covariances))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separation is not None and self.scale is not None and not 1e-3 <= self.separation / self.scale <= 1e4:
            raise ValueError(
                f"separation={self.separation!r} with scale={self.scale!r}: their ratio must be between 0.001 and "
                "10000; a smaller separation is true too if centres are further apart than that"
            )
        if self.block_solver == "sdp" and self.scale is None:
            raise ValueError("scale=None with block_solver='sdp', which needs a public scale; pass one, or 'kmeans'")
        if (self.n_components == AUTO) != (self.max_components is not None):
            raise ValueError(
                f"n_components={self.n_components!r} with max_components={self.max_components!r}: 'auto' needs a "
                "public bound on the number of components, and a number of them needs none"
            )
        checked_device("device", self.device)

    @property
    def most_components(self) -> int:
        """How many centres each block looks for."""
        return self.n_components if isinstance(self.n_components, int) else self.max_components or 1

    def largest_table(self, n_columns: int) -> int:
        """How many of its records a block looks at, at most."""
        return self.block_size or max(32, 2 * n_columns) * self.most_components


@dataclass(frozen=True)
class Shares:
    """What each question gets, and the threshold of cells that follows from it.

    Attributes
    ----------
    reserve : float
        Part of delta for thresholds.
    eta : Fraction
        Of each threshold.
    count, octave, log_scale, moments, cells, step : Fraction
        Of the cost; one step's. The first three are 0 where they are not asked for.
    threshold : int
    """

    reserve: float
    eta: Fraction
    count: Fraction
    octave: Fraction
    log_scale: Fraction
    moments: Fraction
    cells: Fraction
    step: Fraction
    threshold: int


def shares_of(
    settings: MixtureSettings, adjacency: Adjacency, n_records: int | None, budget: Budget, n_columns: int
) -> Shares:
    """How a budget is divided; ValueError for one that takes a bound, or buries everything: before it is spent.

    Parameters
    ----------
    n_records : int or None
        The public number of records.
    """
    if budget.epsilon is None or not budget.delta:
        raise ValueError(
            f"the budget is {budget}: centres without a known bound cannot be learned under a pure epsilon or a rho, "
            "which would have to cover infinitely many cells; pass epsilon and a delta above 0"
        )
    reserve = _RESERVE * budget.delta
    eta, count, octave, log_scale = Fraction(reserve), Fraction(0), Fraction(0), Fraction(0)
    cost = cost_of(budget, reserve)
    if n_records is None:
        count = _COUNT
    if settings.scale is None:
        octave, log_scale, eta = _OCTAVE, _LOG_SCALE, eta / 2
        stable_histogram(1, cost, octave, eta)
        log_scale_noise(cost, log_scale)
    left = 1 - count - octave - log_scale
    moments = left * _MOMENTS[settings.covariance_type]
    left -= moments
    cells, step = left * _CELLS, left * (1 - _CELLS) / settings.n_steps
    cluster_noise(adjacency, cost, step)
    kind, k = settings.covariance_type or "spherical", settings.most_components
    matrices = {"full": k, "tied": 1}.get(kind, 0)
    if matrices * n_columns * (n_columns + 1) // 2 > _MOST_MOMENTS:
        raise ValueError(
            f"covariance_type={kind!r} for {k} components in {n_columns} columns is more than {_MOST_MOMENTS} numbers; "
            "pass covariance_type='diag'"
        )
    moment_noise(kind, k, n_columns, adjacency, cost, moments)
    threshold = stable_histogram(k, cost, cells, eta).threshold
    return Shares(reserve, eta, count, octave, log_scale, moments, cells, step, threshold)


def advised_blocks(shares: Shares, settings: MixtureSettings, n_records: float) -> int:
    """M for a public or noisy number of records."""
    if settings.n_blocks is not None:
        return settings.n_blocks
    each, t = n_records / settings.most_components, shares.threshold
    # Six times the threshold, as long as blocks have 1.5 records for each component; up to twelve times where they have
    # 10. Chosen on made-up, public mixtures: more blocks are worth more than larger ones, and fewer would not reach the
    # threshold.
    advised = max(4.0 * t, min(each / 1.5, 6.0 * t), min(each / 10.0, 12.0 * t))
    return max(8, math.ceil(min(advised, MAX_BLOCKS)))

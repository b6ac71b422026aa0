"""The shares of a mixture's budget, and the checks of its options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from pgmpy_dp.checks import checked_integer, checked_number, require_choice
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.mixtures.operators.block_operators import MAX_BLOCKS, MeanLogScale, stable_histogram
from pgmpy_dp.mixtures.operators.cluster_operators import MOMENT_KINDS, cluster_noise, moment_noise
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of

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
    return checked_integer(name, value, 1, MAX_COMPONENTS)


def checked_covariances(name: str, value: object) -> str:
    """A kind of covariances; ValueError for anything else."""
    if value == "diagonal":
        raise ValueError(f"{name}='diagonal' is not supported; pass 'diag', as scikit-learn has it")
    require_choice(name, value, MOMENT_KINDS)
    return str(value)


def checked_length(name: str, value: object) -> float:
    """A length above 0; TypeError or ValueError for anything else."""
    length, (low, high) = checked_number(name, value, positive=True), _LENGTHS
    if not low <= length <= high:
        raise ValueError(f"{name}={length!r} is out of range; use units in which it is near 1")
    return length


def most_components(settings: Settings) -> int:
    """The number of centres that each block looks for."""
    return settings.n_components if isinstance(settings.n_components, int) else settings.max_components or 1


def largest_block(settings: Settings, n_columns: int) -> int:
    """The largest number of its records that a block looks at."""
    return max(32, 2 * n_columns) * most_components(settings)


@dataclass(frozen=True)
class Shares:
    """The share of each question, and the threshold of cells that follows from them.

    Attributes
    ----------
    reserve : float
        Part of delta for thresholds.
    eta : Fraction
        Of each threshold.
    count, octave, log_scale, moments, cells, step : Fraction
        Shares of the cost; `step` is one step's. The first three are 0 where they are not needed.
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
    settings: Settings, adjacency: Adjacency, n_records: int | None, budget: Budget, n_columns: int
) -> Shares:
    """Divide a budget; ValueError for one that takes a bound, or buries everything, before it is spent.

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
        MeanLogScale.noise_of(cost, log_scale)
    left = 1 - count - octave - log_scale
    moments = left * _MOMENTS[settings.covariance_type]
    left -= moments
    cells, step = left * _CELLS, left * (1 - _CELLS) / settings.n_steps
    cluster_noise(adjacency, cost, step)
    kind, k = settings.covariance_type or "spherical", most_components(settings)
    matrices = {"full": k, "tied": 1}.get(kind, 0)
    if matrices * n_columns * (n_columns + 1) // 2 > _MOST_MOMENTS:
        raise ValueError(
            f"covariance_type={kind!r} for {k} components in {n_columns} columns is more than {_MOST_MOMENTS} numbers; "
            "pass covariance_type='diag'"
        )
    moment_noise(kind, k, n_columns, adjacency, cost, moments)
    threshold = stable_histogram(k, cost, cells, eta).threshold
    return Shares(reserve, eta, count, octave, log_scale, moments, cells, step, threshold)


def advised_blocks(shares: Shares, settings: Settings, n_records: float) -> int:
    """M for a public or noisy number of records."""
    if settings.n_blocks is not None:
        return settings.n_blocks
    each, t = n_records / most_components(settings), shares.threshold
    # Six times the threshold, as long as blocks have 1.5 records for each component; up to twelve times where they have
    # 10. Chosen on made-up, public mixtures: more blocks are worth more than larger ones, and fewer would not reach the
    # threshold.
    advised = max(4.0 * t, min(each / 1.5, 6.0 * t), min(each / 10.0, 12.0 * t))
    return max(8, math.ceil(min(advised, MAX_BLOCKS)))

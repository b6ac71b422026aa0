"""What the membership pipeline adds as noise, and how many records it needs: all from public numbers.

The proof is ``mixture_sdp.md``, whose letters are used here.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from scipy.stats import chi2, norm

from pgmpy_dp.private import accounting
from pgmpy_dp.private.mathematics.membership import HIGH, LOW
from pgmpy_dp.private.noise.additive import LARGEST_SCALE
from pgmpy_dp.private.noise.subsampling import RATE_UNIT, rounded_rate
from pgmpy_dp.private.noise.truncated_laplace import TruncatedLaplace, truncated_laplace

__all__ = ["CentrePlan", "Parts", "ProgramPlan", "budget_parts", "plan_program", "required_records", "unit_of"]

SOLVER_SHARE = 0.05  # of the exact optimum's sensitivity, that the computed one may be away from it
FULL = 0.5  # beta: a record counts as linked where its weights add up to this much of n/k
OVERLAP = 1.0 / (2.0 * HIGH * HIGH - 1.0)  # kappa
PROJECTED = 24  # largest dimension of the grid; more columns are projected
_EPSILON_SHARES = {"count": 0.02, "test": 0.13, "rows": 0.3, "cells": 0.25, "means": 0.3}
_FLOATS = 1.0 + 1e-9  # more than the rounding of the sums below
_BITS = 20  # the grid of the released means is 2**-20 of the scale, or finer
_BAD_ROWS = (1, 2, 4, 8, 20, 60, 200)


@dataclass(frozen=True)
class Parts:
    """How a budget (epsilon, delta) is divided among the steps.

    Attributes
    ----------
    epsilon : dict
        By step; they add up to the budget's at most.
    delta : float
        What each step and each event whose failure is charged may take.
    """

    epsilon: dict[str, float]
    delta: float

    @property
    def later_delta(self) -> float:
        """For the steps after the noise on the rows: their delta is multiplied by ``exp(epsilon["rows"])``."""
        return self.delta * math.exp(-self.epsilon["rows"])


def budget_parts(epsilon: float, delta: float) -> Parts:
    """Shares of each step.

    Examples
    --------
    >>> parts = budget_parts(1.0, 1e-6)
    >>> sum(parts.epsilon.values()) <= 1.0, parts.delta
    (True, 9.99...e-08)
    """
    return Parts({step: share * epsilon / _FLOATS for step, share in _EPSILON_SHARES.items()}, delta / 10.0 / _FLOATS)


def unit_of(scale: float) -> float:
    """The granularity of released means: the power of two at most ``2**-20 scale``."""
    return 2.0 ** (math.floor(math.log2(scale)) - _BITS)


@dataclass(frozen=True)
class CentrePlan:
    """Noise of the steps after the test.

    Attributes
    ----------
    rate : float
        Probability with which each row is drawn.
    bad_rows : int
        b: rows drawn that may be anything in a neighbour.
    row_scale : float
        Of the discrete Gaussian noise on each coordinate of each row, in grid units.
    dimension : int
        Of the grid of cells.
    width : int
        Of a cell, in grid units.
    cell_scale : float
        Of the discrete Laplace noise on the number of rows in a cell.
    threshold : int
        T: cells with noisy numbers below it are not used.
    mean_scale : float
        Of the discrete Gaussian noise on each coordinate of each mean, in grid units.
    row_error, mean_error : float
        Standard deviations of the noise, in units of the scale of a cluster.
    """

    rate: float
    bad_rows: int
    row_scale: float
    dimension: int
    width: int
    cell_scale: float
    threshold: int
    mean_scale: float
    row_error: float
    mean_error: float


@dataclass(frozen=True)
class ProgramPlan:
    """All constants of a run at one number of records.

    Attributes
    ----------
    count : int
        n.
    sensitivity : float
        Of W in Frobenius norm, the solver's tolerance included.
    tolerance : float
        Certified distance at which the solver stops.
    test : TruncatedLaplace
        Noise of the test.
    limit : int
        Largest noisy number of unlinked records that passes.
    moved_rows : int
        B: rows whose means are not known to be near those of a neighbour.
    centres : CentrePlan or None
        None where no bound holds for the means at this n: then nothing but the test can be released.
    accurate : bool
        Whether the steps after the test find the centres of separated clusters; see :func:`required_records`.
    """

    count: int
    sensitivity: float
    tolerance: float
    test: TruncatedLaplace
    limit: int
    moved_rows: int
    centres: CentrePlan | None
    accurate: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


@lru_cache(maxsize=512)
def plan_program(
    count: int,
    n_clusters: int,
    n_features: int,
    separation: float,
    slack: float,
    parts_of: tuple[float, float],
    noisy_count: bool = False,
    unit: float = 2.0**-_BITS,
) -> ProgramPlan:
    """Constants for n records, or at most so many; in units of the scale.

    Parameters
    ----------
    count : int
        n, at least `n_clusters`.
    n_clusters, n_features : int
        k, d.
    separation : float
        Smallest distance of two centres.
    slack : float
        alpha.
    parts_of : tuple
        (epsilon, delta) of the whole.
    noisy_count : bool
        Whether `count` is a noisy one, which is up to twice the centre of its noise too large.
    unit : float
        Of the grid: ``unit_of(scale) / scale``.
    """
    parts = budget_parts(*parts_of)
    n, k = float(count), n_clusters
    c, slope = n / k, 1.0 / (HIGH - LOW)
    exact = 2.0 * math.sqrt(2.0 * c)
    tolerance = SOLVER_SHARE * exact
    moved = (exact + 2.0 * tolerance) * _FLOATS
    unlinked = math.ceil((slope * math.sqrt(2.0 * k / LOW) * moved + 1.0) * _FLOATS)
    test = truncated_laplace(unlinked, parts.epsilon["test"], parts.delta)
    # What equal clusters of random sizes leave unlinked, and what a noisy count pretends is there.
    allowed = 2.0 * math.sqrt(n * k)
    if noisy_count:
        allowed += truncated_laplace(1, parts.epsilon["count"], parts.delta).largest
    limit = test.largest + math.ceil(allowed)
    few = math.floor(limit / (1.0 - FULL))  # rows that are linked by less than FULL
    h = slope * math.sqrt(2.0 / (LOW * c)) / FULL
    spread = math.sqrt(OVERLAP * (1.0 + slack) * k) / FULL  # S
    total = (h * math.sqrt(n) * moved + 2.0 * k / FULL) * _FLOATS  # sum of the eta_i over all rows
    best: tuple[CentrePlan | None, int] = (None, 4 * few + 1)
    far = few  # m: rows that W may move by more than 1/m of its sensitivity squared
    while (rows := far + 2 * few + 1) < n:
        eta = (h * moved / math.sqrt(far) + 2.0 / (FULL * c)) * _FLOATS
        for b in _BAD_ROWS if eta <= 0.5 else ():
            found = _centre_plan(b, n, k, n_features, separation, parts, rows, eta, spread, total, unit)
            if found and (best[0] is None or found.row_error < best[0].row_error):
                best = found, rows
        far *= 16
    centres, rows = best
    accurate = centres is not None and _accurate(centres, k, n_features, separation)
    return ProgramPlan(count, moved, tolerance, test, limit, rows, centres, accurate)


def _centre_plan(
    b: int,
    n: float,
    k: int,
    d: int,
    separation: float,
    parts: Parts,
    rows: int,
    eta: float,
    spread: float,
    total: float,
    unit: float,
) -> CentrePlan | None:
    """The plan with b bad rows among those drawn; None where so few cannot be promised."""
    later = parts.later_delta
    cell_scale = 2.0 * b / parts.epsilon["cells"] * _FLOATS
    mean_rho = accounting.approx_to_zcdp(parts.epsilon["means"], later)
    dimension = min(d, PROJECTED)
    width = separation / math.sqrt(dimension) / (1.0 if d <= PROJECTED else 2.0)
    drawn, shrunk = 1.0, 1.0
    for _ in range(60):  # the threshold needs the number of rows drawn, which is made to suit the threshold
        most_rows = _above(1.01 * drawn, parts.delta)
        opened = math.ceil(cell_scale * math.log(2.0 * b / later) * _FLOATS)
        excess = math.ceil(cell_scale * math.log(max(most_rows, 1.0) / later) * _FLOATS)
        if d > PROJECTED:
            shrunk = float(chi2.ppf(2.0 * later / (most_rows + b) ** 2, dimension)) / dimension
        diameter = 1.1 * width * math.sqrt(dimension / shrunk)
        # Rows that a cell in use has in common with its neighbour, enough for noise of a quarter of the separation.
        common = math.ceil(2.0 * b * diameter * 4.0 * math.sqrt(d) / separation / math.sqrt(2.0 * mean_rho))
        threshold = max(b + opened, excess + b + max(common, b + 1))
        before, drawn = drawn, 2.0 * k * threshold
        if drawn <= 1.005 * before:
            break
    rate = min(drawn / n, 1.0)
    if rate * RATE_UNIT >= 1.0:  # coins are made of two bytes; an n with a lower rate is no n for a matrix
        rate = rounded_rate(rate)
    # More than b bad rows are b + 1 at least.
    if _above(rows * rate, parts.delta) > b + 1 or _above(rate * n, parts.delta) > most_rows:
        return None
    moved = min(most_rows * eta, eta * _above(rate * total / eta, parts.delta))
    row_l2 = 2.0 * spread * math.sqrt(moved / (1.0 - eta)) / unit + math.sqrt(most_rows * d)
    row_rho = accounting.approx_to_zcdp(parts.epsilon["rows"], parts.delta)
    row_scale = row_l2 / math.sqrt(2.0 * row_rho) * _FLOATS
    least = threshold - excess - b
    mean_l2 = 2.0 * b * diameter / least / unit + math.sqrt(k * d)
    mean_scale = mean_l2 / math.sqrt(2.0 * mean_rho) * _FLOATS
    if max(row_scale, mean_scale, cell_scale) > LARGEST_SCALE:
        return None
    return CentrePlan(
        rate,
        b,
        row_scale,
        dimension,
        max(1, round(width / unit)),
        cell_scale,
        threshold,
        mean_scale,
        row_scale * unit,
        mean_scale * unit,
    )


def _accurate(plan: CentrePlan, k: int, d: int, separation: float) -> bool:
    """Whether rows at the centres plus noise fill one cell for each centre, for half of the grid's offsets."""
    width = separation / math.sqrt(plan.dimension) / (1.0 if d <= PROJECTED else 2.0)
    wall = 0.5 * width * (1.0 - 0.5 ** (1.0 / (k * plan.dimension)))
    inside = float(norm.cdf(wall / plan.row_error) - norm.sf(wall / plan.row_error)) ** plan.dimension
    return inside >= 0.7


def _above(mean: float, probability: float) -> float:
    """What a sum of independent variables in [0, 1], of this mean or less, reaches with this probability at most.

    Notes
    -----
    Chernoff: ``P(sum >= (1 + t) mean) <= exp(-mean ((1 + t) log(1 + t) - t))``.

    Examples
    --------
    >>> round(_above(100.0, 1e-6), 1)
    157.0
    """
    need = -math.log(probability)

    def exponent(t: float) -> float:
        return mean * ((1.0 + t) * math.log1p(t) - t)

    high = 1.0
    while exponent(high) < need:
        high *= 2.0
    low = 0.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exponent(middle) < need else (low, middle)
    return mean * (1.0 + high) * _FLOATS


def required_records(
    n_clusters: int,
    n_features: int,
    separation: float,
    epsilon: float,
    delta: float,
    *,
    slack: float = 0.5,
) -> float:
    """Number of records from which on the pipeline's noise lets it find the centres; about, from above.

    Parameters
    ----------
    n_clusters, n_features : int
        k, d.
    separation : float
        Smallest distance of two centres, in units of the scale of a cluster.
    epsilon, delta : float
    slack : float
        alpha.

    Returns
    -------
    float
        A whole number; infinity where 2**120 are not enough. The smallest n (within a thousandth) with which, for at
        least half of the offsets of the grid, every centre is so far from the walls of its cell that the noise keeps
        seven rows of ten in it. It supposes that the program links clusters of equal size fully, which takes a
        separation of about 16 to 32 scales; below it the test refuses, at any n (``docs/mixture-program.md``).

    Examples
    --------
    >>> 1e24 < required_records(3, 8, 32.0, 1.0, 1e-6) < 1e28
    True
    """

    def accurate(n: int) -> bool:
        return plan_program(n, n_clusters, n_features, separation, slack, (epsilon, delta)).accurate

    exponent = next((e for e in range(1, 121) if 2**e >= n_clusters and accurate(2**e)), None)
    if exponent is None:
        return math.inf
    low, high = 2 ** (exponent - 1), 2**exponent
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if middle >= n_clusters and accurate(middle) else (middle, high)
    return float(high)

"""Noisy second moments of clipped records of numbers: the sufficient statistics of a Gaussian graphical model."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data.boxes import MAGNITUDES
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.data.moments import GRID
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.operators.vector_operators import (
    Box,
    ClippedSum,
    Magnitudes,
    MatrixNoise,
    SecondMoments,
    UnitCount,
    checked_box,
    checked_point,
)
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number, Schema, decode_label, encode_label
from pgmpy_dp.shown import quantity

SCALE_SHARE = Fraction(1, 10)
CENTER_SHARE = Fraction(1, 20)  # in bounds: of a mean in their units, and of one in the columns' own

SCALINGS = ("private", "bounds")

_MEAN_SHARE = Fraction(1, 5)


def checked_bounds(name: str, value: Any) -> tuple[tuple[Any, float, float], ...]:
    """Bounds of columns as (encoded name, lower, upper), from pairs or from the numbers of a schema.

    The names are positions where a sequence of pairs was passed. TypeError or ValueError for anything else.

    Examples
    --------
    >>> checked_bounds("bounds", {"height": (1.2, 2.2), "age": Number(0, 120)})
    (('height', 1.2, 2.2), ('age', 0.0, 120.0))
    """
    if isinstance(value, Schema):
        value = {key: item for key, item in value.items() if isinstance(item, Number)}
    if isinstance(value, Mapping):
        named = [(encode_label(key), pair) for key, pair in value.items()]
    elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        named = [(encode_label(k), pair) for k, pair in enumerate(value)]
    else:
        raise TypeError(
            f"{name}={value!r} is a {type(value).__name__}; pass a lower and an upper bound for each column"
        )
    bounds = []
    for key, pair in named:
        what = f"{name}[{key!r}]"
        if isinstance(pair, Number):
            pair = (pair.lower, pair.upper)
        if isinstance(pair, str | bytes) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise TypeError(f"{what}={pair!r} is no pair of numbers; pass (lower, upper), or a Number of a schema")
        lower, upper = checked_point(what, pair)
        if not (-1e50 <= lower < upper <= 1e50 and upper - lower >= 1e-40):
            raise ValueError(f"{what}={pair!r} does not ascend, or is beyond 1e50; pass (lower, upper), lower < upper")
        bounds.append((key, lower, upper))
    if not bounds:
        raise ValueError(f"{name}={value!r} has no column; pass a lower and an upper bound for each")
    return tuple(bounds)


def _sides(bounds: tuple[tuple[Any, float, float], ...], columns: Sequence[Hashable]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds in the order of the columns; ValueError where a column has none."""
    by_column = {key: pair for key, *pair in bounds}
    names = [encode_label(name) for name in columns]
    if set(by_column) == {encode_label(k) for k in range(len(names))} and not set(names) <= set(by_column):
        names = [encode_label(k) for k in range(len(names))]
    absent = [name for name in names if name not in by_column]
    if absent:
        raise ValueError(f"bounds has no bounds for the columns {absent!r}; pass (lower, upper) for each column")
    lower, upper = np.array([by_column[name] for name in names]).T
    return lower, upper


def run(data: PrivateVectors, settings: Settings, budget: Budget) -> Release:
    """Release noisy second moments, and a noisy mean and number of records where they are needed.

    Settings are the options of `PrivateGraphicalLasso` or `PrivateLinearGaussian`.

    Refuses settings that do not suit the columns, the budget or the adjacency.

    Returns
    -------
    Release
        ``kind="covariance"``. Values: diagonal and rest of the upper triangle of the second moments, in units of
        (row_norm/GRID)**2; with ``center="private"`` the sum of the records, in units of
        center_radius/GRID; without a public number of records their number; with private scales the numbers of records
        by size. :func:`noisy_covariance` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* The budget's, by up to five requests to a
        :class:`~pgmpy_dp.private.curator.curator_base.Curator`: a clipped sum (1/5 of epsilon or rho; in bounds
        two of 1/20), the number (`_count_share`), numbers of records by size for the scales of columns in bounds
        (1/10), the second moments (the rest, and for the one-sided Wishart and the analytic Gaussian the budget's
        delta) around a centre and in units that are computed from the others. A record, or a person with any number of
        records, is protected.

        *Floating point.* The one-sided Wishart and the Frobenius noise are made of floats and rounded: their
        guarantee is one of real numbers. ``Release.floating_point`` says so; the others are exact.

        *Source.* Wang, Huai and Xu (2018) with the corrections of :mod:`pgmpy_dp.private.noise.matrix`; Dwork, Talwar,
        Thakurta and Zhang (2014) for Gaussian noise on second moments.

        *Side channels.* Refusals, shapes and the choice of the noise depend on public arguments. Running time depends
        on the number of records.

    Examples
    --------
    >>> data = PrivateVectors(np.random.default_rng(0).normal(size=(5000, 3)), ledger=Budget(epsilon=1.0))
    >>> from pgmpy_dp.estimators import PrivateGraphicalLasso
    >>> from pgmpy_dp.learning.options import settings_of
    >>> release = run(data, settings_of(PrivateGraphicalLasso(row_norm=3.0)), Budget(epsilon=1.0))
    >>> release.mechanism, release.names, str(data.ledger.left)
    ('discrete_wishart', ('diagonal', 'off_diagonal', 'count'), '0-DP')
    """
    require_data_and_budget(data, PrivateVectors, budget)
    d = len(data.columns)
    if isinstance(settings.center, tuple):
        checked_point("center", settings.center, d)
    box = None if settings.bounds is None else sided(settings.bounds, data.columns, settings.center)
    private, rescaled = settings.center == "private", box is not None and settings.scaling == "private"
    first = FirstShares(
        mean=(CENTER_SHARE if rescaled else _MEAN_SHARE) if private else Fraction(0),
        count=_count_share(d) if data.n_records is None else Fraction(0),
        scale=SCALE_SHARE if rescaled else Fraction(0),
        n_means=1 + rescaled,
    )
    rest = 1 - first.total
    noise = SecondMoments.noise_of(
        settings.mechanism, d, data.adjacency, budget, rest, single_records=data.unit is None
    )
    if settings.mechanism == "auto" and not first.mean and not first.scale:
        noise = _whole(noise, data, budget, rest)
    # Scales that cannot be drawn are refused here, before the charge.
    cost = PureDP(noise.cost.epsilon) if isinstance(noise.cost, ApproxDP) else noise.cost
    first.require_noise(d, data.adjacency, cost)
    eta = budget.delta if isinstance(noise.cost, ApproxDP) else 0.0
    curator = Curator(
        data,
        budget,
        what=f"second moments of {quantity(d, 'column')}",
        mechanism=noise.name,
        reserve=eta,
        pure=not isinstance(cost, ZCDP),
        random_state=settings.random_state,
    )
    public = {
        **{"n_records": data.n_records, "row_norm": settings.row_norm, "grid": GRID},
        **{"center": settings.center, "center_radius": settings.center_radius},
        "settings": settings.public(budget, "mechanism"),
    }
    if box is not None:
        public |= {"lower": box.lower, "upper": box.upper, "scaling": settings.scaling}
        public |= {"row_norm": boxed_norm(d, settings.scaling), "center_radius": math.sqrt(d)}
    extra: list[np.ndarray] = []
    with curator.keeping():
        if first.mean:
            start = np.zeros(d) if box is None else _middle(public)
            extra.append(curator.ask(ClippedSum(start, public["center_radius"], box), first.mean))
        if first.count:
            extra.append(np.array([curator.ask(UnitCount(), first.count)]))
        if box is not None and rescaled:
            start = _location(public, extra, d)
            reach = Box(box.lower, box.upper, tuple(_reach(public, start).tolist()))
            extra.append(curator.ask(Magnitudes(start, reach), first.scale))
            box = Box(box.lower, box.upper, tuple(_scales(public, extra, d).tolist()))
            if first.mean:
                extra.append(curator.ask(ClippedSum(start, public["row_norm"], box), first.mean))
        elif box is not None:
            box = Box(box.lower, box.upper, tuple(_scales(public, extra, d).tolist()))
        location = _location(public, extra, d)
        curator.ask(SecondMoments(location, public["row_norm"], noise.mechanism, box), rest, eta)
    *others, diagonal, off_diagonal = curator.arrays
    matrix = {"diagonal": diagonal, "off_diagonal": off_diagonal}
    return curator.release("covariance", public, matrix | _named(public, others))


def _whole(noise: MatrixNoise, data: PrivateVectors, budget: Budget, rest: Fraction) -> MatrixNoise:
    """Noise by the exact formula of one release, if it is less, and this release takes all that the ledger allows.

    Its cost has no rho, so that in a ledger with further charges it would cost more than it saves.
    """
    if not budget.delta or data.ledger.budget != budget or data.ledger.entries:
        return noise
    with suppress(ValueError):  # for deltas below the grid's
        whole = SecondMoments.noise_of(
            "analytic-goe", noise.n_columns, data.adjacency, budget, rest, single_records=True
        )
        return min(noise, whole, key=lambda plan: plan.frobenius)
    return noise


def sided(bounds: tuple[tuple[Any, float, float], ...], columns: Sequence[Hashable], center: Any) -> Box:
    """The box, in units of half of each side; ValueError for a public centre that is not in it."""
    lower, upper = _sides(bounds, columns)
    if isinstance(center, tuple):
        checked_point("center", center, len(lower))
        outside = [k for k, c in enumerate(center) if not lower[k] <= c <= upper[k]]
        if outside:
            raise ValueError(
                f"center has entries outside of bounds, of columns {outside!r}: {center[outside[0]]!r} is not in "
                f"{(float(lower[outside[0]]), float(upper[outside[0]]))!r}; pass a centre between the bounds"
            )
    halves = upper / 2.0 - lower / 2.0
    return checked_box(Box(tuple(lower.tolist()), tuple(upper.tolist()), tuple(halves.tolist())), len(lower))


def boxed_norm(d: int, scaling: str) -> float:
    """The norm to which records in a box are shortened, in units of its scales.

    With scales of one deviation it is short enough to save noise: a fit of a Gaussian takes the effect of clipping
    back (:func:`~pgmpy_dp.gaussian.graphical_models.unclipped_moments`).

    Examples
    --------
    >>> boxed_norm(9, "bounds"), round(boxed_norm(9, "private") ** 2, 9)
    (3.0, 10.0)
    """
    return math.sqrt(d) if scaling == "bounds" else math.sqrt(d + 1.0)


def _middle(public: Any) -> np.ndarray:
    return np.array(public["lower"]) / 2.0 + np.array(public["upper"]) / 2.0


def _reach(public: Any, location: np.ndarray) -> np.ndarray:
    """Distance from the centre to the farther side of each column."""
    return np.maximum(np.array(public["upper"]) - location, location - np.array(public["lower"]))


def _scales(public: Any, extra: Sequence[np.ndarray], d: int) -> np.ndarray:
    """The unit of each column, from public and noisy numbers alone."""
    if "scaling" not in public:
        return np.ones(d)
    named = _named(public, extra)
    reach = _reach(public, _rough_location(public, named, d))
    if public["scaling"] == "bounds":
        return reach
    return reach * typical_sizes(named["magnitudes"].reshape(d, -1), _n_records(public, named))


def _before_moments(public: Any) -> list[str]:
    """The names of the arrays that are released before the second moments."""
    private, rescaled = public["center"] == "private", public.get("scaling") == "private"
    first = {"sum": private, "count": public["n_records"] is None, "magnitudes": rescaled}
    return [name for name, was in (first | {"second_sum": private and rescaled}).items() if was]


def _named(public: Any, extra: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that were released before the second moments, by name, as far as they are there."""
    return dict(zip(_before_moments(public), extra, strict=False))


def typical_sizes(counts: np.ndarray, n_records: float) -> np.ndarray:
    """Standard deviations of columns from noisy numbers of records by size, as parts of the unit of the sizes.

    Each column gets the half-normal law that fits the counts best, in least squares, after the cell of zeros. Where a
    column is zero in most records, the root of its mean square is less, by the root of the part of the others.

    Parameters
    ----------
    counts : ndarray of shape (d, MAGNITUDES + 1)

    Returns
    -------
    ndarray of shape (d,)
        From 2**-20 to 1.

    Examples
    --------
    >>> rows = np.abs(np.random.default_rng(0).normal(scale=0.2, size=100_000))
    >>> edges = 2.0 ** np.arange(-(MAGNITUDES - 1) / 2, 0.5, 0.5)
    >>> counts = np.bincount(np.searchsorted(edges, rows), minlength=MAGNITUDES + 1)
    >>> typical_sizes(counts[None], 100_000).round(2)
    array([0.2])
    """
    sizes, laws = _half_normal_laws()
    norms = np.linalg.norm(laws, axis=1)
    fit = counts[:, 1:] @ laws.T / norms
    best = fit.argmax(axis=1)
    weight = fit[np.arange(len(counts)), best] / (n_records * norms[best])
    return np.clip(sizes[best] * np.sqrt(np.clip(weight, 0.04, 1.0)), 2.0**-20, 1.0)


@lru_cache(maxsize=1)
def _half_normal_laws() -> tuple[np.ndarray, np.ndarray]:
    """Deviations, and the part of a half-normal column with each that is in the cells, but for that of zeros."""
    edges = 2.0 ** np.arange(-(MAGNITUDES - 1) / 2.0, 0.5, 0.5)
    sizes = 2.0 ** (np.arange(-20 * 16, 1) / 16.0)
    below = np.array([[math.erf(edge / size / math.sqrt(2.0)) for edge in edges] for size in sizes])
    return sizes, np.diff(below, axis=1, append=1.0)


def _count_share(d: int) -> Fraction:
    """The share of the budget for the number of records, where it is private."""
    # With the share s the relative errors of matrix and number are about `1.2 d (d + 1)/(1 - s)` and `1.4/s` over
    # epsilon n (double Wishart, clipping at 1.3 root mean squared norms). The sum of their squares is least at
    # `s/(1 - s) = (d (d + 1))**(-2/3)` about: 1/3 for one column, 1/11 for 5, 1/96 for 30.
    return Fraction(1, 1 + round((d * (d + 1)) ** (2 / 3)))


@dataclass(frozen=True)
class NoisyCovariance:
    """The content of a release of kind "covariance", in the units of the records.

    Attributes
    ----------
    columns : tuple
    covariance : ndarray of shape (d, d)
        Second moments around `location` over the number of records: symmetric, unbiased but for clipping, possibly with
        negative eigenvalues.
    location : ndarray of shape (d,)
        The point that was subtracted from the records.
    n_records : float
        The public number, or the noisy one, at least 1. Of persons, where persons are protected.
    sd : float
        Standard deviation of the noise in an off-diagonal entry of `covariance`, over the two columns' `scales`.
    diagonal_sd : float
        The same on the diagonal.
    scales : ndarray of shape (d,)
        The unit of each column: in these units, the noise is the same for all columns. Ones without bounds.
    row_norm : float
        The norm to which records were shortened, in these units.
    """

    columns: tuple[Hashable, ...]
    covariance: np.ndarray
    location: np.ndarray
    n_records: float
    sd: float
    diagonal_sd: float
    scales: np.ndarray
    row_norm: float


def noisy_covariance(release: Release) -> NoisyCovariance:
    """Read a release of :func:`run`; post-processing. ValueError for another kind of release.

    Examples
    --------
    >>> data = PrivateVectors(np.random.default_rng(0).normal(size=(5000, 2)), ledger=Budget(rho=1e4), n_records=5000)
    >>> from pgmpy_dp.estimators import PrivateGraphicalLasso
    >>> from pgmpy_dp.learning.options import settings_of
    >>> release = run(data, settings_of(PrivateGraphicalLasso(row_norm=6.0)), Budget(rho=1e4))
    >>> abs(noisy_covariance(release).covariance).round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    require_kind(release, "covariance")
    public = release.public
    columns = tuple(decode_label(name) for name in public["columns"])
    d = len(columns)
    extra = [release[name].array for name in _before_moments(public)]
    n_records = _n_records(public, _named(public, extra))
    unit = (public["row_norm"] / public["grid"]) ** 2 / n_records
    covariance = np.zeros((d, d))
    covariance[np.triu_indices(d, 1)] = release["off_diagonal"].array * unit
    covariance += covariance.T
    covariance[np.diag_indices(d)] = release["diagonal"].array * unit
    scales = _scales(public, extra, d)
    covariance *= np.outer(scales, scales)
    noises = (release[name].noise for name in ("off_diagonal", "diagonal"))
    sd, diagonal_sd = (math.sqrt(noise.variance) * unit for noise in noises if noise is not None)
    location = _location(public, extra, d)
    return NoisyCovariance(columns, covariance, location, n_records, sd, diagonal_sd, scales, public["row_norm"])


def _start(value: Sequence[float] | None, d: int) -> np.ndarray:
    return np.zeros(d) if value is None else np.array(value, dtype=np.float64)


def _n_records(public: Any, named: Mapping[str, np.ndarray]) -> float:
    """The number that second moments are divided by: of public and noisy numbers, so that it costs nothing."""
    return max(float(named["count"][0] if public["n_records"] is None else public["n_records"]), 1.0)


def _location(public: Any, extra: Sequence[np.ndarray], d: int) -> np.ndarray:
    """The point that is subtracted from the records, from public and noisy numbers alone."""
    named = _named(public, extra)
    rough = _rough_location(public, named, d)
    if "second_sum" not in named:
        return rough
    shift = named["second_sum"] * (public["row_norm"] / GRID / _n_records(public, named))
    return np.clip(rough + shift * _scales(public, extra, d), public["lower"], public["upper"])


def _rough_location(public: Any, named: Mapping[str, np.ndarray], d: int) -> np.ndarray:
    boxed = "scaling" in public
    if public["center"] != "private":
        return _middle(public) if boxed and public["center"] is None else _start(public["center"], d)
    shift = named["sum"] * (public["center_radius"] / GRID / _n_records(public, named))
    # The mean of clipped records lies in the ball, or the box: noise that leaves it is drawn back.
    if boxed:
        halves = np.array(public["upper"]) / 2.0 - np.array(public["lower"]) / 2.0
        return np.clip(_middle(public) + halves * shift, public["lower"], public["upper"])
    shift *= public["center_radius"] / max(float(np.linalg.norm(shift)), public["center_radius"])
    return _start(public.get("center_start"), d) + shift  # which earlier releases could have


@dataclass(frozen=True)
class FirstShares:
    """The shares that are spent first; 0 where a question is not asked.

    Attributes
    ----------
    mean, count, scale : Fraction
        For a clipped sum of the records, their number, and numbers of records by size.
    n_means : int
        The number of clipped sums, if any.
    """

    mean: Fraction
    count: Fraction
    scale: Fraction
    n_means: int = 1

    @property
    def total(self) -> Fraction:
        return self.n_means * self.mean + self.count + self.scale

    def require_noise(self, d: int, adjacency: Adjacency, cost: PureDP | ZCDP) -> None:
        """Raise a ValueError where a scale of noise for d columns cannot be drawn, before the charge."""
        if self.mean:
            ClippedSum.noise_of(d, adjacency, cost, self.mean)
        if self.count:
            UnitCount.noise_of(cost, self.count)
        if self.scale:
            Magnitudes.noise_of(d, adjacency, cost, self.scale)

"""Noisy second moments of clipped records of numbers: the sufficient statistics of a Gaussian graphical model."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.data.moments import GRID, centered_sums, mean_sensitivity, second_moments, unit_count
from pgmpy_dp.private.data.subject import require_data_and_budget
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ZCDP, PureDP, checked_number
from pgmpy_dp.private.ledger import Budget
from pgmpy_dp.private.noise.additive import additive_release, gaussian_scales, laplace_scales
from pgmpy_dp.private.noise.matrix import MECHANISMS, MatrixNoise, add_matrix_noise, plan_matrix_noise
from pgmpy_dp.private.noise.samplers import seeded_generator
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.schema import decode_label, encode_label

__all__ = ["CovarianceSettings", "NoisyCovariance", "checked_center", "noisy_covariance", "run", "vectors_public"]

_MEAN_SHARE = Fraction(1, 5)


@dataclass(frozen=True)
class CovarianceSettings:
    """What to release, fixed before the records are looked at.

    Parameters
    ----------
    row_norm : float
        B: records, less the centre, are shortened to this l2 norm. Public: from the ranges of the quantities, never
        from the records.
    mechanism : str, default "auto"
        Noise of the second moments, one of `pgmpy_dp.private.noise.matrix.MECHANISMS`, which has their proofs.
    center : None, sequence of d numbers, or "private"
        What is subtracted from every record: nothing, a public vector, or a noisy mean on which a fifth of the budget
        is spent.
    center_radius : float, optional
        Of a private centre: records are clipped to this distance from `center_start` for it. Required, public.
    center_start : sequence of d numbers, optional
        A public guess of the mean. Default: zeros.
    random_state : int, optional
        For tests and benchmarks only: repeatable noise. The release is marked reproducible, **is not private**, and a
        `ReproducibleNoiseWarning` says so.

    Raises
    ------
    TypeError, ValueError
        For arguments that are wrong whatever the data.
    """

    row_norm: float
    mechanism: str = "auto"
    center: tuple[float, ...] | str | None = None
    center_radius: float | None = None
    center_start: tuple[float, ...] | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        if self.row_norm is None:
            raise ValueError(
                "row_norm=None: pass the public bound on the l2 norm of a record (less the centre) to which records "
                "are clipped, such as 1.3 times the root of the sum of the variances you expect; never a bound "
                "computed from the records, which would not be private"
            )
        object.__setattr__(self, "row_norm", checked_number("row_norm", self.row_norm, positive=True))
        if not 1e-50 <= self.row_norm <= 1e50:
            raise ValueError(
                f"row_norm={self.row_norm!r} leaves no room for its powers among the floats; change the records' units"
            )
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism={self.mechanism!r} is not supported; use one of {MECHANISMS}")
        private = isinstance(self.center, str)
        if private and self.center != "private":
            raise ValueError(f"center={self.center!r} is not supported; pass None, a public vector, or 'private'")
        if self.center is not None and not private:
            object.__setattr__(self, "center", checked_center("center", self.center))
        if self.center_start is not None:
            object.__setattr__(self, "center_start", checked_center("center_start", self.center_start))
        if self.center_radius is not None:
            object.__setattr__(
                self, "center_radius", checked_number("center_radius", self.center_radius, positive=True)
            )
        if private and self.center_radius is None:
            raise ValueError(
                "center='private' needs center_radius, a public distance from center_start (default zeros) within "
                "which the mean lies and to which records are clipped for it; pass it, or a public center"
            )
        if not private and (self.center_radius is not None or self.center_start is not None):
            raise ValueError(
                f"center_radius={self.center_radius!r} and center_start={self.center_start!r} are for "
                f"center='private', and center={self.center!r}; drop them"
            )
        if self.random_state is not None:
            object.__setattr__(self, "random_state", checked_integer("random_state", self.random_state, 0))


@dataclass(frozen=True)
class _Plan:
    """Everything that is decided from public numbers."""

    noise: MatrixNoise
    mean_share: Fraction
    count_share: Fraction


def run(data: PrivateVectors, settings: CovarianceSettings, budget: Budget) -> Release:
    """Release noisy second moments, and a noisy mean and number of records where they are needed.

    Parameters
    ----------
    data : PrivateVectors
    settings : CovarianceSettings
    budget : Budget
        What this release spends. It is charged to the ledger of the data before anything is computed.

    Returns
    -------
    Release
        ``kind="covariance"``. Values: diagonal and rest of the upper triangle of the second moments, in units of
        (row_norm/GRID)**2; with ``center="private"`` the sum of the records less `center_start`, in units of
        center_radius/GRID; without a public number of records their number. :func:`noisy_covariance` reads it.

    Raises
    ------
    BudgetExceeded
        If the ledger does not have the budget left; it stays as it was.
    TypeError, ValueError
        For settings that do not suit the columns, the budget or the adjacency. All depend on public arguments only and
        come before the charge.

    Notes
    -----
    Privacy
        *Sensitivity.* Of a record, or of a person with any number of records:
        :func:`~pgmpy_dp.private.data.moments.trace_sensitivity` of the second moments around *any* centre,
        :func:`~pgmpy_dp.private.data.moments.mean_sensitivity` of the mean; 1 of the number, under add_remove.

        *Guarantee.* That of the noise, :mod:`pgmpy_dp.private.noise.matrix`. The mean gets 1/5 of epsilon or rho, the
        number `_count_share`, with discrete Laplace or Gaussian noise; the matrix the rest. The centre of the
        second moments is computed from the noisy mean and number alone, so this is a sequence of three releases, each
        private whatever the ones before it were (Rogers et al. 2016; Bun and Steinke 2016): costs add up to the budget.
        Beside the one-sided Wishart, which has the budget's delta, mean and number are pure.

        *Floating point.* The double Wishart, the one-sided Wishart and the Frobenius noise are made of floats and
        rounded: their guarantee is one of real numbers. ``Release.floating_point`` says so; the others are exact.

        *Source.* Wang, Huai and Xu (2018) with the corrections of :mod:`pgmpy_dp.private.noise.matrix`; Dwork, Talwar,
        Thakurta and Zhang (2014) for Gaussian noise on second moments.

        *Side channels.* Refusals, shapes and the choice of the noise depend on public arguments. Running time depends
        on the number of records.

    Examples
    --------
    >>> data = PrivateVectors(np.random.default_rng(0).normal(size=(5000, 3)), ledger=Budget(epsilon=1.0))
    >>> release = run(data, CovarianceSettings(row_norm=3.0), Budget(epsilon=1.0))
    >>> release.mechanism, [value.shape for value in release.values], str(data.ledger.left)
    ('double_wishart', [(3,), (3,), (1,)], '0-DP')
    """
    require_data_and_budget(data, PrivateVectors, budget)
    plan = _planned(data, settings, budget)
    seed = seeded_generator(settings.random_state)
    mechanism = plan.noise.mechanism.replace("-", "_")
    d = len(data.columns)
    data.ledger.charge(
        plan.noise.cost,
        what=f"second moments of {d} columns",
        columns=data.columns,
        mechanism=mechanism,
        adjacency=data.adjacency,
        reproducible=seed is not None,
        unit=data.unit,
    )
    public = {
        **vectors_public(data),
        "row_norm": settings.row_norm,
        "grid": GRID,
        "center": settings.center,
        "center_radius": settings.center_radius,
        "center_start": settings.center_start,
        "settings": {"mechanism": settings.mechanism, "budget": budget.guarantee.to_dict()},
    }
    rest = plan.noise.cost if isinstance(plan.noise.cost, PureDP | ZCDP) else PureDP(plan.noise.cost.epsilon)
    extra: list[np.ndarray] = []
    noises: list[Noise] = []
    if plan.mean_share:
        assert settings.center_radius is not None
        sums = centered_sums(data, _start(settings.center_start, d), settings.center_radius)
        values, noise = additive_release([sums], rest, plan.mean_share, seed=seed)
        extra, noises = [*extra, *values], [*noises, *noise]
    if plan.count_share:
        values, noise = additive_release([unit_count(data)], rest, plan.count_share, seed=seed)
        extra, noises = [*extra, *values], [*noises, *noise]
    moments = second_moments(data, _location(public, extra), settings.row_norm)
    diagonal, off_diagonal = add_matrix_noise(moments, plan.noise, seed)
    return Release(
        kind="covariance",
        values=(diagonal, off_diagonal, *extra),
        noise=(plan.noise.diagonal, plan.noise.off_diagonal, *noises),
        public=public,
        adjacency=data.adjacency,
        guarantee=plan.noise.cost,
        mechanism=mechanism,
        reproducible=seed is not None,
    )


def _planned(data: PrivateVectors, settings: CovarianceSettings, budget: Budget) -> _Plan:
    d = len(data.columns)
    for name in ("center", "center_start"):
        value = getattr(settings, name)
        if isinstance(value, tuple) and len(value) != d:
            raise ValueError(f"{name} has {len(value)} entries for {d} columns; pass one number per column")
    mean = _MEAN_SHARE if settings.center == "private" else Fraction(0)
    count = _count_share(d) if data.n_records is None else Fraction(0)
    noise = plan_matrix_noise(
        settings.mechanism,
        d,
        data.adjacency,
        budget,
        share=1 - mean - count,
        single_records=data.unit is None,
    )
    # Scales that the samplers cannot draw are refused here, before the charge.
    for share, sizes in ((mean, mean_sensitivity(d, data.adjacency)), (count, (1.0, 1.0, 1.0))):
        if not share:
            continue
        if isinstance(noise.cost, ZCDP):
            gaussian_scales([sizes[1]], share * Fraction(noise.cost.rho))
        else:
            laplace_scales([sizes[0]], share * Fraction(noise.cost.epsilon))
    return _Plan(noise, mean, count)


def _count_share(d: int) -> Fraction:
    """Of the budget, for the number of records, where it is private.

    With the share s the relative errors of matrix and number are about ``1.2 d (d + 1)/(1 - s)`` and ``1.4/s`` over
    epsilon n (double Wishart, clipping at 1.3 root mean squared norms). The sum of their squares is least at ``s/(1 -
    s) = (d (d + 1))**(-2/3)`` about: 1/3 for one column, 1/11 for 5, 1/96 for 30.
    """
    return Fraction(1, 1 + round((d * (d + 1)) ** (2 / 3)))


@dataclass(frozen=True)
class NoisyCovariance:
    """What a release of kind "covariance" says, in the units of the records.

    Attributes
    ----------
    columns : tuple
    covariance : ndarray of shape (d, d)
        Second moments around `location` over the number of records: symmetric, unbiased but for clipping, possibly with
        negative eigenvalues.
    location : ndarray of shape (d,)
        What was subtracted from the records.
    n_records : float
        The public number, or the noisy one, at least 1. Of persons, where persons are protected.
    sd : float
        Standard deviation of the noise in an off-diagonal entry of `covariance`.
    diagonal_sd : float
        The same on the diagonal.
    """

    columns: tuple[Hashable, ...]
    covariance: np.ndarray
    location: np.ndarray
    n_records: float
    sd: float
    diagonal_sd: float


def noisy_covariance(release: Release) -> NoisyCovariance:
    """Read a release of :func:`run`; post-processing. ValueError for another kind of release.

    Examples
    --------
    >>> data = PrivateVectors(np.random.default_rng(0).normal(size=(5000, 2)), ledger=Budget(rho=1e4), n_records=5000)
    >>> release = run(data, CovarianceSettings(row_norm=6.0), Budget(rho=1e4))
    >>> abs(noisy_covariance(release).covariance).round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if release.kind != "covariance":
        raise ValueError(f"release has kind {release.kind!r}; pass one of kind 'covariance'")
    public = release.public
    columns = tuple(decode_label(name) for name in public["columns"])
    d = len(columns)
    extra = list(release.values[2:])
    n_records = _n_records(public, extra)
    unit = (public["row_norm"] / public["grid"]) ** 2 / n_records
    covariance = np.zeros((d, d))
    covariance[np.triu_indices(d, 1)] = release.values[1] * unit
    covariance += covariance.T
    covariance[np.diag_indices(d)] = release.values[0] * unit
    sds = [math.sqrt(noise.variance) * unit for noise in release.noise[:2] if noise is not None]
    return NoisyCovariance(columns, covariance, _location(public, extra), n_records, sds[1], sds[0])


def vectors_public(data: PrivateVectors) -> dict[str, Any]:
    """Public facts about private vectors, for a release."""
    return {
        "columns": [encode_label(name) for name in data.columns],
        "n_records": data.n_records,
        "unit": encode_label(data.unit),
    }


def checked_center(name: str, value: Any) -> tuple[float, ...]:
    """A public vector as a tuple of finite floats; TypeError or ValueError naming the argument otherwise."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence | np.ndarray):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; pass one number per column")
    sizes = [abs(entry) if _is_real(entry) else entry for entry in value]
    checked = [checked_number(f"{name}[{k}]", size, positive=False) for k, size in enumerate(sizes)]
    return tuple(-size if entry < 0 else size for entry, size in zip(value, checked, strict=True))


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _start(value: Sequence[float] | None, d: int) -> np.ndarray:
    return np.zeros(d) if value is None else np.array(value, dtype=np.float64)


def _n_records(public: Any, extra: Sequence[np.ndarray]) -> float:
    """The number that second moments are divided by: of public and noisy numbers, so that it costs nothing."""
    return max(float(extra[-1][0] if public["n_records"] is None else public["n_records"]), 1.0)


def _location(public: Any, extra: Sequence[np.ndarray]) -> np.ndarray:
    """What is subtracted from the records: of public and noisy numbers alone."""
    d = len(public["columns"])
    if public["center"] != "private":
        return _start(public["center"], d)
    shift = extra[0] * (public["center_radius"] / GRID / _n_records(public, extra))
    # The mean of clipped records lies in the ball: noise that leaves it is drawn back.
    shift *= public["center_radius"] / max(float(np.linalg.norm(shift)), public["center_radius"])
    return _start(public["center_start"], d) + shift

"""Correlations of the pairs of columns that seem to matter, chosen before they are measured.

The second moments of d columns have noise that grows with d, however few of their entries matter. Signs of records have
no scale, and one product of two signs moves by one. So each column first asks, privately, for the column that it agrees
or disagrees with beyond what the model expects, and only these pairs are measured. Later rounds do the same beside the
model of the measured pairs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.gaussian.gaussian_pairs import orthant_correlations, pair_model
from pgmpy_dp.gaussian.noisy_moments import CENTER_SHARE, SCALE_SHARE, FirstShares, sided, typical_sizes
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.privacy_record import require_kind
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator, cost_of
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.data.moments import GRID
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.operators.vector_operators import (
    Box,
    ClippedSum,
    Magnitudes,
    PairSigns,
    StrongestPairs,
    UnitCount,
    checked_point,
)
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import decode_label

_ROUNDS = 2  # in each of which a column may name another
_SELECTION_SHARE = 0.5  # of a round, for the choice
_COUNT_SHARE = Fraction(1, 50)
_LAPLACE_TAIL = 1.75
_MOST_NOISE = 0.3  # of a mean of products of signs: beyond it no correlation is told from none


def run(data: PrivateVectors, settings: Settings, budget: Budget) -> Release:
    """Choose pairs of columns, and release noisy sums of products of their signs.

    Settings are the options of :class:`~pgmpy_dp.estimators.PrivateGraphicalLasso`.

    Refuses settings that do not suit the columns or the budget.

    Returns
    -------
    Release
        ``kind="pairs"``. Values: of each round the positions of the pairs, shape (m, 2), and their sums; before them
        the sum of the records in the box, their number and the numbers by size, where they were needed.
        :func:`noisy_pairs` reads it.

    Notes
    -----
    Privacy
        *Guarantee.* The budget's, by requests to a :class:`~pgmpy_dp.private.curator.curator_base.Curator`: the
        number (1/50) where it is private, a clipped sum (1/20) for a private centre, numbers by size (1/10) with
        bounds, and of what is left for each round a choice of one partner for each column, and the sums of the pairs.

        *Source.* Selection before measurement with a model in between is that of McKenna, Mullins, Sheldon and Miklau
        2022, for covariances of Ferrando, Fuentes, Mullins, Musco and Sheldon 2026 (who measure entries one by one,
        with bounds of each variable).

        *Side channels.* Refusals and shapes depend on public arguments and on what was released. Running time depends
        on the number of records.

    Examples
    --------
    >>> data = PrivateVectors(np.random.default_rng(0).normal(size=(5000, 9)), ledger=Budget(rho=0.1))
    >>> from pgmpy_dp.estimators import PrivateGraphicalLasso
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateGraphicalLasso(perturb="pairs", center=(0.0,) * 9))
    >>> release = run(data, settings, Budget(rho=0.1))
    >>> release.mechanism, release["pairs 1"].array.shape, str(data.ledger.left)
    ('pair_signs', (...), '0-zCDP')
    """
    require_data_and_budget(data, PrivateVectors, budget)
    d = len(data.columns)
    if d < 2:
        raise ValueError(f"data has {d} column, and pairs need two; pass perturb='covariance'")
    if isinstance(settings.center, tuple):
        checked_point("center", settings.center, d)
    box = None if settings.bounds is None else sided(settings.bounds, data.columns, settings.center)
    cost = cost_of(budget)
    first = FirstShares(
        mean=CENTER_SHARE if settings.center == "private" else Fraction(0),
        count=_COUNT_SHARE if data.n_records is None else Fraction(0),
        scale=SCALE_SHARE if box is not None else Fraction(0),
    )
    each = (1 - first.total) / _ROUNDS
    choice = each * Fraction(_SELECTION_SHARE)
    # Scales that cannot be drawn are refused here, before the charge.
    PairSigns.noise_of(d, data.adjacency, cost, each - choice)
    PairSigns.noise_of(d, data.adjacency, cost, choice)
    first.require_noise(d, data.adjacency, cost)
    curator = Curator(
        data,
        budget,
        what=f"correlations of chosen pairs of {d} columns",
        mechanism="pair_signs",
        random_state=settings.random_state,
    )
    public: dict[str, Any] = {
        **{"n_records": data.n_records, "center": settings.center, "row_norm": math.sqrt(d), "grid": GRID},
        "settings": {"n_rounds": _ROUNDS, "selection_share": _SELECTION_SHARE, **settings.public(budget)},
    }
    if box is not None:
        public |= {"lower": box.lower, "upper": box.upper}
    kept: dict[str, np.ndarray] = {}
    scales: list[float] = []
    with curator.keeping():
        if first.count:
            kept["count"] = np.array([curator.ask(UnitCount(), first.count)])
        if box is not None and first.mean:
            kept["sum"] = curator.ask(ClippedSum(_middle(public), math.sqrt(d), box), first.mean)
        location = _location(public, kept)
        if box is not None:
            kept["magnitudes"] = curator.ask(Magnitudes(location, _reach(public, location)), first.scale)
        allowed = ~np.eye(d, dtype=bool)
        for _ in range(_ROUNDS):
            if not allowed.any():
                break
            noisy = _read(public, kept, data.columns)
            model = pair_model(noisy.correlation, noisy.sd, noisy.measured)
            expected = np.rint(noisy.n_records * np.arcsin(np.clip(model.correlation, -1.0, 1.0)) * (2.0 / np.pi))
            np.fill_diagonal(expected, 0.0)
            partner = curator.ask(StrongestPairs(location, expected.astype(np.int64), allowed), choice)
            pairs = sorted({(min(i, j), max(i, j)) for i, j in enumerate(partner.tolist()) if j >= 0})
            number = 1 + len(scales)
            kept[f"pairs {number}"] = np.array(pairs)
            kept[f"signs {number}"] = curator.ask(PairSigns(location, pairs), each - choice)
            scales.append(PairSigns.noise_of(len(pairs), data.adjacency, cost, each - choice).scale)
            public |= {"scales_of_sums": list(scales)}
            i, j = kept[f"pairs {number}"].T
            allowed[i, j] = allowed[j, i] = False
    return curator.release("pairs", public, kept)


@dataclass(frozen=True)
class NoisyPairs:
    """The content of a release of kind "pairs".

    Attributes
    ----------
    columns : tuple
    correlation : ndarray of shape (d, d)
        Of the pairs that were measured, if the columns are jointly normal; 0 of others, 1 on the diagonal.
    sd : ndarray of shape (d, d)
        Standard deviation of these, by noise and by sampling; infinite for others.
    measured : ndarray of bool, shape (d, d)
        Whether the noise of the pair leaves something to see.
    location, scales : ndarray of shape (d,)
        The centre, and standard deviations of the columns: ones without bounds.
    n_records : float
    noise_sd : float
        Of a correlation, by the noise of the last round alone.
    """

    columns: tuple[Hashable, ...]
    correlation: np.ndarray
    sd: np.ndarray
    measured: np.ndarray
    location: np.ndarray
    scales: np.ndarray
    n_records: float
    noise_sd: float


def noisy_pairs(release: Release) -> NoisyPairs:
    """Read a release of :func:`run`; post-processing. ValueError for another kind of release."""
    require_kind(release, "pairs")
    columns = tuple(decode_label(name) for name in release.public["columns"])
    return _read(release.public, dict(zip(release.names, release.values, strict=True)), columns)


def _read(public: Any, kept: Mapping[str, np.ndarray], columns: Sequence[Hashable]) -> NoisyPairs:
    d = len(columns)
    location, n = _location(public, kept), _n_records(public, kept)
    scales = np.ones(d)
    if "lower" in public:
        scales = np.array(_reach(public, location).scales) * typical_sizes(kept["magnitudes"].reshape(d, -1), n)
    correlation, sd, measured = np.eye(d), np.full((d, d), np.inf), np.zeros((d, d), dtype=bool)
    noise_sd = math.inf
    for k, scale in enumerate(public.get("scales_of_sums", ()), 1):
        (i, j), sums = np.asarray(kept[f"pairs {k}"]).T, kept[f"signs {k}"]
        # Of Laplace noise what a Gaussian would have with as heavy a tail at two and a half deviations.
        deviation = scale * (_LAPLACE_TAIL if _is_pure(public) else 1.0)
        mean = sums / n
        estimates = orthant_correlations(mean)
        # Not less than C/t, with which C is as many deviations from zero as t: the sine flattens what noise exceeds.
        chord = np.abs(estimates) / np.maximum(np.abs(mean), 1e-12)
        slope = np.maximum(0.5 * np.pi * np.sqrt(1.0 - estimates**2), np.clip(chord, 1.0, 0.5 * np.pi))
        error = slope * np.sqrt((deviation / n) ** 2 + np.maximum(1.0 - mean**2, 0.0) / n)
        noise_sd = 0.5 * math.pi * deviation / n
        for a, b in ((i, j), (j, i)):
            correlation[a, b], sd[a, b], measured[a, b] = estimates, error, deviation / n < _MOST_NOISE
    return NoisyPairs(tuple(columns), correlation, sd, measured, location, scales, n, noise_sd)


def _is_pure(public: Mapping[str, Any]) -> bool:
    return "epsilon" in public["settings"]["budget"] and not public["settings"]["budget"].get("delta")


def _n_records(public: Any, kept: Mapping[str, np.ndarray]) -> float:
    return max(float(kept["count"][0] if public["n_records"] is None else public["n_records"]), 1.0)


def _middle(public: Any) -> np.ndarray:
    return np.array(public["lower"]) / 2.0 + np.array(public["upper"]) / 2.0


def _location(public: Any, kept: Mapping[str, np.ndarray]) -> np.ndarray:
    if public["center"] != "private":
        return np.array(public["center"], dtype=np.float64)
    halves = np.array(public["upper"]) / 2.0 - np.array(public["lower"]) / 2.0
    total = kept["sum"]
    shift = total * (public["row_norm"] / GRID / _n_records(public, kept))
    return np.clip(_middle(public) + halves * shift, public["lower"], public["upper"])


def _reach(public: Any, location: np.ndarray) -> Box:
    """The box, in units of the distance from the centre to the farther side."""
    lower, upper = np.array(public["lower"]), np.array(public["upper"])
    scales = np.maximum(upper - location, location - lower)
    return Box(tuple(lower.tolist()), tuple(upper.tolist()), tuple(scales.tolist()))

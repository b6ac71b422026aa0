"""Mechanisms: noise by sensitivities and a share of the budget, and the exact statistics that it is for.

An operator plans one from public numbers alone; it has `noise` then, and nothing to hide. A curator puts the exact
statistics into a copy (:meth:`Mechanism.over`), the last object that holds them: `draw` is the only way out of it, and
what `draw` returns is released.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np

from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import additive, distance_test, matrix, samplers
from pgmpy_dp.private.noise.histogram import StabilityHistogram, released_cells
from pgmpy_dp.private.noise.measures import asked_by
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from pgmpy_dp.private.sensitive import Noise, Sensitive


class Mechanism(ABC):
    """Exact statistics and the noise with which they may leave. Shows nothing of them, refuses copies and pickles."""

    name: str
    """What it is, for a release's reader."""

    noise: tuple[Noise | None, ...]
    """Of each array that `draw` returns."""

    @abstractmethod
    def draw(self, rng: np.random.Generator | None) -> Any:
        """What is released; noise from the operating system, or **not privately** from a seed."""

    def over(self, exact: Any) -> Self:
        """The same with the exact statistics."""
        return replace(self, exact=exact)  # type: ignore[type-var]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it holds exact statistics of records")


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveNoise(Mechanism):
    """Integer arrays, each with independent noise in every cell; scale by :meth:`planned`.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.additive` has the proof. With scales that were computed for a share s of a
    cost c from the statistics' own sensitivities, `draw` is s c under their adjacency. Statistics in parts of a count
    get noise in these parts, G times as large (exactly: G is a power of two), and are rounded to counts after that;
    rounding adds 1/12 of a count at most to the variance that `noise` has.
    """

    exact: tuple[Sensitive, ...]
    noise: tuple[Noise, ...]
    grid: int = 1
    """G: in how many parts of a count the statistics are."""
    norms: tuple[tuple[float, float], ...] = ()
    """Of each, in l1 and l2: what the noise was made for."""

    @classmethod
    def planned(
        cls,
        norms: Iterable[tuple[float, ...]],
        cost: PureDP | ZCDP,
        share: Fraction,
        weights: Sequence[float | Fraction] | None = None,
        parts: Callable[[float], int] = lambda scale: 1,
    ) -> Self:
        """The noise of statistics that move by these norms, l1 and l2 first; no statistics are there yet.

        `parts` says, for the largest scale of the noise, in how many parts of a count they will be.
        """
        pairs = tuple((l1, l2) for l1, l2, *_ in norms)
        asked = asked_by(cost, share)
        noise = tuple(Noise(asked.distribution, scale) for scale in asked.scales(pairs, weights))
        return cls((), noise, parts(max(one.scale for one in noise)), pairs)

    def over(self, exact: Iterable[Sensitive]) -> Self:
        """The same with exact statistics, none of which moves further than the noise was made for."""
        found = tuple(exact)
        if any(
            item.l1 > self.grid * l1 or item.l2 > self.grid * l2
            for item, (l1, l2) in zip(found, self.norms, strict=True)
        ):
            raise RuntimeError("an exact statistic moves further than its noise was planned for; nothing is released")
        return replace(self, exact=found)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The distribution of the noise."""
        return self.noise[0].distribution

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Noisy arrays, one for each statistic."""
        noisy = [
            getattr(samplers, noise.distribution)(item.value, self.grid * noise.scale, rng=rng)
            for item, noise in zip(self.exact, self.noise, strict=True)
        ]
        return noisy if self.grid == 1 else [(array + self.grid // 2) // self.grid for array in noisy]


@dataclass(frozen=True, eq=False, repr=False)
class JointNoise(Mechanism):
    """One integer vector with independent noise of one scale in every cell, which leaves in several pieces.

    For statistics whose sensitivity together is less than the sum of what each of them has alone.

    Notes
    -----
    Privacy: that of :class:`AdditiveNoise` with one array; where it is cut is public.
    """

    exact: Sensitive
    sizes: tuple[int, ...]
    noise: tuple[Noise, ...]
    grid: int = 1
    """G: in how many parts of a count the statistics are."""
    norms: tuple[tuple[float, float], ...] = ()
    """In l1 and l2: what the noise was made for."""

    @classmethod
    def planned(
        cls,
        norms: tuple[float, ...],
        sizes: Sequence[int],
        cost: PureDP | ZCDP,
        share: Fraction,
        parts: Callable[[float], int] = lambda scale: 1,
    ) -> Self:
        """The noise of a vector that moves by these norms, for pieces of these sizes; `parts` as of `AdditiveNoise`."""
        whole = AdditiveNoise.planned([norms], cost, share, parts=parts)
        return cls(None, tuple(sizes), whole.noise * len(sizes), whole.grid, whole.norms)  # type: ignore[arg-type]

    def over(self, exact: Sensitive) -> Self:
        """The same with the exact vector, which moves no further than the noise was made for."""
        AdditiveNoise((), self.noise[:1], self.grid, self.norms).over([exact])
        return replace(self, exact=exact)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The distribution of the noise."""
        return self.noise[0].distribution

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The pieces."""
        whole = AdditiveNoise((self.exact,), self.noise[:1], self.grid)
        return np.split(whole.draw(rng)[0], np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True, eq=False, repr=False)
class SymmetricNoise(Mechanism):
    """The upper triangle of a symmetric matrix of integers, with matrix noise.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.matrix` has the proofs. With a plan that was made for a share and the
    statistic's own sensitivity, `draw` costs the share.
    """

    exact: Sensitive
    plan: matrix.MatrixNoise

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the noise."""
        return self.plan.name

    @property
    def noise(self) -> tuple[Noise, ...]:  # type: ignore[override]
        """The noise of the diagonal, and of the rest."""
        return self.plan.diagonal, self.plan.off_diagonal

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The diagonal, shape (d,), and the rest of the triangle, row by row."""
        return list(matrix.add_matrix_noise(self.exact, self.plan, rng))


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMax(Mechanism):
    """The position of the noisily largest of several integer scores, none of which moves by more than `linf`.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.selection` has the proof. With the scale of `planned`, `draw` costs the share.
    """

    exact: Sensitive
    scale: float
    cost: PureDP | ZCDP
    noise: tuple[Noise, ...] = ()
    grid: int = 1
    """In how many parts of a count the scores are, and the scale."""
    linf: float = math.inf
    """What the noise was made for, in these parts."""

    @classmethod
    def planned(
        cls, linf: float, cost: PureDP | ZCDP, share: Fraction, parts: Callable[[float], int] = lambda scale: 1
    ) -> Self:
        """The noise of scores that move by so much; no scores are there yet. `parts` as in :class:`AdditiveNoise`."""
        scale = selection_scale(linf, cost, share)
        grid = parts(scale)
        return cls(None, grid * scale, cost, (), grid, grid * linf)  # type: ignore[arg-type]

    def over(self, exact: Sensitive) -> Self:
        """The same with exact scores, none of which moves further than the noise was made for."""
        if exact.linf > self.linf:
            raise RuntimeError("an exact score moves further than its noise was planned for; nothing is released")
        return replace(self, exact=exact)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The distribution of the noise: Gumbel for zCDP, exponential for a pure guarantee."""
        return asked_by(self.cost).selection

    def draw(self, rng: np.random.Generator | None) -> int:
        """The selected position."""
        return int(noisy_argmax([self.exact.value], self.scale, self.cost, rng)[0])


@dataclass(frozen=True, eq=False, repr=False)
class StableMode(Mechanism):
    """The set that most votes are for, if it is far from changing, and how far, with noise.

    Attributes
    ----------
    mode : tuple of int or None
        Positions in `members`; None where all votes are null.
    distance : int
        Votes that have to change before the mode can, exact.
    test : DistanceTest
    members : ndarray
        What the positions stand for, public; one row each.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.distance_test` has the proof, for one changed vote. With a test that was made
    for s epsilon and eta, `draw` costs the share s and eta of the reserve (``proof.md``, section 3).
    """

    mode: tuple[int, ...] | None
    distance: int
    test: distance_test.DistanceTest
    members: np.ndarray

    name = "distance_test"

    def over(self, exact: Sequence[tuple[int, ...] | None]) -> StableMode:
        """The same with the mode of exact votes."""
        return StableMode(*distance_test.mode_and_distance(exact), self.test, self.members)

    @property
    def noise(self) -> tuple[Noise | None, ...]:  # type: ignore[override]
        """The noise of the distance; the mode has none."""
        return self.test.noise, None

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The noisy distance, shape (1,), and the rows of the mode's members: none where it did not pass the test."""
        noisy, mode = distance_test.released_mode(self.mode, self.distance, self.test, rng)
        return [np.array([noisy]), self.members[list(mode or ())]]


@dataclass(frozen=True, eq=False, repr=False)
class SeveralNoisyMax(Mechanism):
    """Positions of the noisily largest scores of several rows, which share what one of them could cost.

    Notes
    -----
    Privacy: let the scores of row r move by at most D_r `unit`, in either direction. With noise of scale s one
    selection costs ``(2 D_r unit/s)**2 / 8`` of rho with Gumbel noise, ``2 D_r unit/s`` of epsilon with exponential
    noise (:mod:`pgmpy_dp.private.noise.selection`); given the scores the noises are independent, so costs add up.
    Whoever makes one has proved ``sum D_r**2 <= weight`` (rho) or ``sum D_r <= weight`` (epsilon) between any
    neighbours. With the scale of `planned`, which is that of one selection of sensitivity `unit` for the share over the
    weight, `draw` costs the share.
    """

    exact: tuple[np.ndarray, ...]
    unit: float
    weight: int
    scale: float
    cost: PureDP | ZCDP
    noise: tuple[Noise, ...] = ()

    @classmethod
    def planned(cls, unit: float, weight: int, cost: PureDP | ZCDP, share: Fraction) -> SeveralNoisyMax:
        """The noise of all selections for a share of a cost; no scores are there yet."""
        return cls((), unit, weight, selection_scale(unit, cost, share / weight), cost)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The distribution of the noise: Gumbel for zCDP, exponential for a pure guarantee."""
        return asked_by(self.cost).selection

    def draw(self, rng: np.random.Generator | None) -> np.ndarray:
        """A position in each row."""
        return noisy_argmax(self.exact, self.scale, self.cost, rng)


@dataclass(frozen=True, eq=False, repr=False)
class StableCells(Mechanism):
    """Cells of an unbounded grid that many blocks have marked, and by how many each, with noise.

    Attributes
    ----------
    cells : ndarray of int64, shape (m, q)
    counts : ndarray of int64, shape (m,)
        By how many blocks each is marked, exact.
    n_marks : int
        k: no block marks more cells.
    histogram : StabilityHistogram

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.histogram` has the proof, for one block that changes. With noise and a
    threshold that were made for k marks, s rho and eta, `draw` costs the share s and eta of the reserve (``proof.md``,
    section 3).
    """

    cells: np.ndarray
    counts: np.ndarray
    n_marks: int
    histogram: StabilityHistogram

    name = "stability_histogram"

    @classmethod
    def planned(cls, n_marks: int, histogram: StabilityHistogram) -> StableCells:
        """For so many marks; no cells are there yet."""
        return cls(np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.int64), n_marks, histogram)

    def over(self, exact: tuple[np.ndarray, np.ndarray]) -> StableCells:
        """The same with exact cells and counts."""
        return replace(self, cells=exact[0], counts=exact[1])

    @property
    def noise(self) -> tuple[Noise | None, ...]:  # type: ignore[override]
        """The noise of the counts; the cells have none."""
        return None, self.histogram.noise

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The cells that reach the threshold, in the order of their numbers, and their noisy counts."""
        return list(released_cells(self.cells, self.counts, self.histogram, rng))


@dataclass(frozen=True, eq=False, repr=False)
class WeightedNoise(Mechanism):
    """Integer arrays, each with Gaussian noise in proportion to its unit, for a bound on what all move by together.

    Attributes
    ----------
    exact : tuple of ndarray of int64
    units : tuple of Fraction
        Of each array.
    square : Fraction
        The sum over the arrays of their squared l2 changes over their squared units is never more.

    Notes
    -----
    Privacy: independent discrete Gaussian noise of scale ``sigma_i`` on coordinate i, which moves by ``D_i``, has Renyi
    divergences of at most ``alpha sum_i D_i**2/(2 sigma_i**2)`` (Canonne, Kamath and Steinke 2020, Theorem 4,
    coordinate by coordinate). With scales ``unit sqrt(square/(2 s rho))``, `draw` costs the share s of rho.
    """

    exact: tuple[np.ndarray, ...]
    units: tuple[Fraction, ...]
    square: Fraction
    noise: tuple[Noise, ...]

    name = "discrete_gaussian"

    @staticmethod
    def noise_for(units: Iterable[Fraction], square: Fraction, rho: Fraction) -> tuple[Noise, ...]:
        """The noise of arrays in these units; ValueError where it would bury any count."""
        parts = (rho / (square * unit**2) for unit in units)
        return tuple(Noise("discrete_gaussian", additive.gaussian_scales([1.0], part)[0]) for part in parts)

    @classmethod
    def planned(cls, units: Iterable[Fraction], square: Fraction, rho: Fraction) -> WeightedNoise:
        """The noise of arrays in these units, together for this rho; no arrays are there yet."""
        units = tuple(units)
        return cls((), units, square, cls.noise_for(units, square, rho))

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """Noisy arrays."""
        return [
            samplers.discrete_gaussian(values, noise.scale, rng=rng)
            for values, noise in zip(self.exact, self.noise, strict=True)
        ]

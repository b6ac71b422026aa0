"""Mechanisms: noise by sensitivities and a share of the budget, and the exact statistics that it is for.

An operator plans a mechanism from public numbers alone; so far it has `noise`, and nothing to hide. A curator puts the
exact statistics into a copy (:meth:`Mechanism.over`), the last object that holds them: `draw` is the only way out of
it, and what `draw` returns is released.
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
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.measures import noise_budget
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from pgmpy_dp.private.sensitive import Noise, Sensitive


def in_full(scale: float) -> int:
    """Return 1, whatever the noise is: the records are not divided into parts."""
    return 1


class Mechanism(ABC):
    """Exact statistics and the noise with which they may leave. Shows nothing of them, refuses copies and pickles."""

    name: str
    """What it is, for a release's reader."""

    noise: tuple[Noise | None, ...]
    """Of each array that `draw` returns."""

    @abstractmethod
    def draw(self, rng: np.random.Generator | None) -> Any:
        """Return what is released; noise is from the operating system, or **not privately** from a seed."""

    def over(self, exact: Any) -> Self:
        """Return a copy with the exact statistics."""
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
    cost c from the sensitivities of the statistics, `draw` costs s c under their adjacency. Statistics in parts of a
    count get noise in these parts, G times as large (exactly: G is a power of two), and are rounded to counts after
    that; rounding adds at most 1/12 of a count to the variance that `noise` has.
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
        parts: Callable[[float], int] = in_full,
    ) -> Self:
        """The noise of statistics that move by these norms, l1 and l2 first; no statistics are there yet.

        `parts` says, for the largest scale of the noise, in how many parts of a count they will be.
        """
        pairs = tuple((l1, l2) for l1, l2, *_ in norms)
        budget = noise_budget(cost, share)
        noise = tuple(Noise(budget.distribution, scale) for scale in budget.scales(pairs, weights))
        return cls((), noise, parts(max(one.scale for one in noise)), pairs)

    def over(self, exact: Iterable[Sensitive]) -> Self:
        """Return a copy with exact statistics, none of which moves further than the noise was made for."""
        statistics = tuple(exact)
        if any(
            item.l1 > self.grid * l1 or item.l2 > self.grid * l2
            for item, (l1, l2) in zip(statistics, self.norms, strict=True)
        ):
            raise RuntimeError("an exact statistic moves further than its noise was planned for; nothing is released")
        return replace(self, exact=statistics)

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
        cls, linf: float, cost: PureDP | ZCDP, share: Fraction, parts: Callable[[float], int] = in_full
    ) -> Self:
        """The noise of scores that move by so much; no scores are there yet. `parts` as in :class:`AdditiveNoise`."""
        scale = selection_scale(linf, cost, share)
        grid = parts(scale)
        return cls(None, grid * scale, cost, (), grid, grid * linf)  # type: ignore[arg-type]

    def over(self, exact: Sensitive) -> Self:
        """Return a copy with exact scores, none of which moves further than the noise was made for."""
        if exact.linf > self.linf:
            raise RuntimeError("an exact score moves further than its noise was planned for; nothing is released")
        return replace(self, exact=exact)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The distribution of the noise: Gumbel for zCDP, exponential for a pure guarantee."""
        return noise_budget(self.cost).selection

    def draw(self, rng: np.random.Generator | None) -> int:
        """The selected position."""
        return int(noisy_argmax([self.exact.value], self.scale, self.cost, rng)[0])


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
        return noise_budget(self.cost).selection

    def draw(self, rng: np.random.Generator | None) -> np.ndarray:
        """A position in each row."""
        return noisy_argmax(self.exact, self.scale, self.cost, rng)

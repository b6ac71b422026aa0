"""The view of an audit: it sees a curator's requests, and replaces its random numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.contributions import segment_keys
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.subsampling import poisson_sample, uniform_parts

if TYPE_CHECKING:
    from pgmpy_dp.private.curator.charged_base import ChargedCurator
    from pgmpy_dp.private.curator.curator_base import Curator


@dataclass(frozen=True, repr=False)
class Request:
    """An operator's request as an audit sees it: with the exact statistics.

    Attributes
    ----------
    curator : ChargedCurator
        The curator that answers.
    operator : str
    arguments : mapping
    share : Fraction
    eta : Fraction
        What it debits from the reserve.
    cost : PureDP, ZCDP or ApproxDP
        The curator's.
    mechanism : Mechanism
    rows : int
        Records that a unit has at most, where the operator's sensitivities are those of one record: the cost is then a
        unit's, and a record has the part of it that :func:`~pgmpy_dp.private.guarantee.part_for_each` says.
    """

    curator: ChargedCurator
    operator: str
    arguments: Mapping[str, Any]
    share: Fraction
    eta: Fraction
    cost: Any
    mechanism: Any
    rows: int = 1


class Observer:
    """The random numbers of curators, which an audit (:mod:`pgmpy_dp.auditing.replay`) replaces; this replaces none."""

    def opened(self, curator: ChargedCurator, budget: Budget, facts: Mapping[str, Any]) -> None:
        """A curator was opened and its ledger charged."""

    def paid(self, names: Mapping[str, str]) -> Mapping[str, str]:
        """Return what identifies a charge: the ledger's name, and a name that is drawn."""
        return names

    def answer(self, request: Request, draw: Callable[[], Any]) -> Any:
        """Return what the operator releases."""
        return draw()

    def parts(self, units: Callable[[], np.ndarray], n_parts: int, draw: Callable[[], np.ndarray]) -> np.ndarray:
        """The random part of each unit; `units` has one row of integers for each."""
        return draw()

    def generator(self, make: Callable[[], np.random.Generator]) -> np.random.Generator:
        """Return the generator of a plan's random numbers."""
        return make()

    def block_seeds(self, n_blocks: int, draw: Callable[[], list[int]]) -> list[int]:
        """A seed for the generator of each block of records."""
        return draw()

    def lent(self, curator: Curator, parts: Sequence[Curator]) -> None:
        """Parts are given what a curator had left."""

    def returned(self, curator: Curator, parts: Sequence[Curator]) -> None:
        """The curator takes back what the parts left."""

    def sample(self, units: Callable[[], np.ndarray], rate: float, draw: Callable[[], np.ndarray]) -> np.ndarray:
        """Positions of the records or users that take part in a step; `units` has one row of integers for each."""
        return draw()

    def keys(self, units: Callable[[], list[bytes]], draw: Callable[[], np.ndarray]) -> np.ndarray:
        """A random 64-bit number for each of some parts of users; `units` says what each is."""
        return draw()


_observer = Observer()


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Let `observer` see what curators of this process are asked meanwhile, and answer in the place of noise.

    For audits alone: what is released then is **not private**. One audit at a time.
    """
    global _observer
    before, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = before


def observer() -> Observer:
    """Who observes this process now."""
    return _observer


_LAWS = ("laplace_measurement", "gaussian_measurement", "gumbel_measurement", "exponential_measurement")


@contextmanager
def in_the_place_of_noise(sampled: Callable[[str, float, Sequence[int], Callable[[Any], Any]], Any]) -> Iterator[None]:
    """Let samplers call ``sampled(law, scale, values, measure)`` for noise meanwhile: for audits, as `observed`."""
    before = {law: getattr(samplers, law) for law in _LAWS}

    def made(law: str) -> Callable[[float], Any]:
        return lambda scale: lambda values: sampled(law, scale, values, before[law](scale))

    try:
        for law in _LAWS:
            setattr(samplers, law, made(law))
        yield
    finally:
        for law, measurement in before.items():
            setattr(samplers, law, measurement)


class Coins:
    """The coins by which a curator divides and samples units: uniform draws of `rng` or the system, blind to records.

    An observer may replace them, by what each unit is; an operator's proof holds whatever they are.
    """

    __slots__ = ("_rng",)

    def __init__(self, rng: np.random.Generator | None) -> None:
        self._rng = rng

    def parts(self, units: Callable[[], np.ndarray], count: int, n_parts: int) -> np.ndarray:
        """The part of each of `count` units, by a uniform draw of its own."""
        return _observer.parts(units, n_parts, lambda: uniform_parts(count, n_parts, rng=self._rng))

    def sample(self, units: Callable[[], np.ndarray], count: int, rate: float) -> np.ndarray:
        """Positions of those of `count` records or users that take part, each by a coin of its own."""
        return _observer.sample(units, rate, lambda: poisson_sample(count, rate, rng=self._rng))

    def keys(self, units: Callable[[], list[bytes]], count: int) -> np.ndarray:
        """A random 64-bit number for each of `count` parts of users."""
        return _observer.keys(units, lambda: segment_keys(count, self._rng))

    def block_seeds(self, n_blocks: int) -> list[int]:
        """A seed for each block's generator. With a random_state they leave the draws of noise as they are."""

        def draw() -> list[int]:
            if self._rng is None:
                return [int.from_bytes(os.urandom(16), "little") for _ in range(n_blocks)]
            return self._rng.spawn(1)[0].integers(0, 2**63, n_blocks).tolist()

        return _observer.block_seeds(n_blocks, draw)

    def generator(self) -> np.random.Generator:
        """A generator of random numbers that protect nothing, seeded by the system, or that of the random_state."""
        return _observer.generator(lambda: np.random.default_rng() if self._rng is None else self._rng)

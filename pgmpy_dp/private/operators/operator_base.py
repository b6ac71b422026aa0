"""The base of operators: an operator is a question about private data, as a value that knows its own noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from pgmpy_dp.checks import exact_fraction, fresh_copy
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism, in_full
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.data_base import Facts
from pgmpy_dp.private.sensitive import Noise

Answered_co = TypeVar("Answered_co", covariant=True)


class Operator(ABC, Generic[Answered_co]):
    """A question about private data; abstract. Its class has the proof of what an answer costs.

    Anybody may make values of these classes, and pass them to ``Curator.ask``. A value may be wrong or change, so
    nothing in it is believed: :meth:`checked` makes a copy for the curator, of built-in types and of arrays that nobody
    else holds, and everything else is read from that copy. A class that ``trusted_types.py`` does not list is refused.

    Attributes
    ----------
    name : str
        The operator's name in answers and releases.
    asks : type
        The type of the facts of the data that it is about.
    kept : bool
        Whether a curator remembers its answers. Some are only material for what a plan releases, and take memory.
    of_units : bool
        Whether the proof is for units, with all their records, instead of for single records.
    can_fail : bool
        Whether it may take a part of the reserve.
    """

    __slots__ = ()

    name: ClassVar[str]
    asks: ClassVar[type[Facts]]
    kept: ClassVar[bool] = True
    of_units: ClassVar[bool] = False
    can_fail: ClassVar[bool] = False

    @abstractmethod
    def checked(self, facts: Any) -> Self:
        """Return a copy of the question that nobody else has; TypeError or ValueError where it cannot be put.

        Parameters
        ----------
        facts : Facts
            Of the data.
        """

    @abstractmethod
    def mechanism(self, facts: Any, cost: Any, share: Fraction, eta: Fraction) -> Mechanism:
        """The noise that a share of a cost pays, from public numbers alone; ValueError where it would bury anything.

        Parameters
        ----------
        facts : Facts
        cost : PureDP or ZCDP
        share : Fraction
        eta : Fraction
            Of the reserve; 0 where it cannot fail.
        """

    @abstractmethod
    def _exact(self, data: Any, facts: Any, mechanism: Any, coins: Coins) -> Any:
        """The exact statistic for `mechanism`, with its sensitivities: **to be noised**; curators alone call it.

        Where records are divided, or sampled, it is by the curator's `coins`.
        """

    def arguments(self, facts: Facts) -> dict[str, Any]:
        """Return the question, as answers and releases tell it."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | facts.arguments  # type: ignore[arg-type]

    def noted(self, facts: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part of the question that an answer remembers."""
        return arguments

    def names(self, count: int) -> Sequence[str]:
        """Return the names of an answer's arrays in a release."""
        return [self.name] * count

    def public(self) -> dict[str, list]:
        """Return what a release tells once this was answered: the lists of all answers, in a row."""
        return {}

    def answered(self, drawn: Any) -> Answered_co:
        """Return the answer that a plan gets, from what the mechanism drew."""
        return drawn


class SumOperator(Operator[Answered_co]):
    """A question that one array with independent noise answers; abstract.

    It says in one place, from public numbers, how far the array moves: noise and previews follow from that.
    """

    __slots__ = ()

    moved: ClassVar[Callable[..., tuple[float, ...]]]
    """How far the array moves between neighbours, in l1 and in l2 norm first, from public numbers."""

    law: ClassVar[type[AdditiveNoise]] = AdditiveNoise

    def _numbers(self, facts: Any) -> tuple[Any, ...]:
        """Return the numbers that `moved` takes."""
        return ()

    def mechanism(self, facts: Any, cost: Any, share: Fraction, eta: Fraction) -> AdditiveNoise:
        # Records count in parts wherever these facts have them, but for what is proved for units as a whole.
        parts = in_full if self.of_units else getattr(facts, "parts", in_full)
        return self.planned(*self._numbers(facts), cost, share, parts=parts)

    def answered(self, drawn: Any) -> Any:
        return drawn[0]

    @classmethod
    def planned(cls, *numbers: Any, parts: Callable[[float], int] = in_full) -> AdditiveNoise:
        """The noise for the numbers that `moved` takes, a cost and a share; ValueError where it would bury any."""
        *public, cost, share = numbers
        return cls.law.planned([cls.moved(*public)], cost, share, parts=parts)

    @classmethod
    def noise_of(cls, *numbers: Any) -> Noise:
        """The noise of each number of the answer: of :meth:`planned`, as answers have it."""
        return cls.planned(*numbers).noise[0]


def planned_noise(
    operator: Operator[Any], facts: Facts, cost: Any, share: Fraction | float = 1, eta: Fraction | float = 0
) -> tuple[Noise, ...]:
    """The noise that asking would add, of each array: from public numbers, without records.

    Parameters
    ----------
    operator : Operator
    facts : Facts
        Of the data.
    cost : PureDP or ZCDP
        For one record.
    share, eta : Fraction or float

    Raises
    ------
    TypeError, ValueError
        For a question that these data cannot answer, and for noise that would bury any count.

    Examples
    --------
    >>> from pgmpy_dp import Budget, PrivateTable
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> from pgmpy_dp.private.operators.tables import Tables
    >>> import pandas as pd
    >>> table = PrivateTable(pd.DataFrame({"a": [0, 1]}), {"a": [0, 1]}, ledger=Budget(epsilon=1.0))
    >>> planned_noise(Tables([("a",)]), table.facts(), PureDP(0.5))
    (Noise(distribution='discrete_laplace', scale=2.0),)
    """
    planned = operator.checked(facts).mechanism(facts, cost, exact_fraction(share), exact_fraction(eta))
    return planned.noise  # type: ignore[return-value]


def fresh_array(name: str, value: Any, shape: Sequence[int], what: str = "numbers") -> np.ndarray:
    """A read-only copy as an array of float64; ValueError for another shape, or what is not "positive" or "finite"."""
    made = fresh_copy(value)
    wrong = ("finite" in what and not np.isfinite(made).all()) or ("positive" in what and not (made > 0).all())
    if made.shape != tuple(shape) or wrong:
        raise ValueError(f"{name}={value!r} must be {math.prod(shape)} {what}, of shape {tuple(shape)}")
    made.flags.writeable = False
    return made


def python_numbers(values: Any, name: str = "weights") -> tuple[int | float | Fraction, ...] | None:
    """Numbers as Python's own, of the same values; None for None. TypeError for what is no sequence of them."""
    if isinstance(values, Mapping | str) or not (values is None or isinstance(values, Iterable)):
        raise TypeError(f"{name}={values!r} is a {type(values).__name__}; pass a sequence of numbers, or None")
    return None if values is None else tuple(map(_python_number, values))


def _python_number(value: Any) -> int | float | Fraction:
    exact = exact_fraction(value)
    if exact.denominator == 1:
        return int(exact)
    rounded = float(exact)
    return rounded if Fraction(rounded) == exact else exact

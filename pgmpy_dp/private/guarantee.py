"""Privacy guarantees as values: pure differential privacy, zero-concentrated, approximate.

A guarantee says nothing without the adjacency under which it holds; releases and ledger entries carry both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from pgmpy_dp.checks import checked_number, is_exactly
from pgmpy_dp.private import accounting


@dataclass(frozen=True)
class PureDP:
    """epsilon-differential privacy: no event's probability changes by more than a factor exp(epsilon).

    Parameters
    ----------
    epsilon : float
        Non-negative, finite.

    Examples
    --------
    >>> str(PureDP(1.0)), PureDP(0.5).implies(ZCDP(0.125))
    ('1-DP', True)
    """

    epsilon: float

    power: ClassVar[int] = 1
    """Of m: m steps between neighbours cost m**power times what one does."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_number("epsilon", self.epsilon, positive=False))

    @property
    def amount(self) -> Fraction:
        """The number that adds up over mechanisms, exactly."""
        return Fraction(self.epsilon)

    def with_reserve(self, eta: float) -> ApproxDP:
        """Return the guarantee together with mechanisms that fail with a probability of at most eta together.

        Parameters
        ----------
        eta : float

        Returns
        -------
        ApproxDP
        """
        return ApproxDP(self.epsilon, eta)

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee is known to have the `other` too.

        Parameters
        ----------
        other : Guarantee

        Returns
        -------
        bool
        """
        if isinstance(other, PureDP):
            return self.epsilon <= other.epsilon
        if isinstance(other, ZCDP | ReservedZCDP):
            return accounting.pure_to_zcdp(self.epsilon) <= other.rho
        if self.epsilon <= other.epsilon:
            return True
        return accounting.zcdp_to_approx(accounting.pure_to_zcdp(self.epsilon), other.delta) <= other.epsilon

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :func:`~pgmpy_dp.private.guarantee.guarantee_from_dict`.

        Returns
        -------
        dict
        """
        return {"measure": "pure", "epsilon": self.epsilon}

    def __str__(self) -> str:
        return f"{self.epsilon:.6g}-DP"


@dataclass(frozen=True)
class ZCDP:
    """rho-zero-concentrated differential privacy (Bun and Steinke 2016).

    Parameters
    ----------
    rho : float
        Non-negative, finite.

    Examples
    --------
    >>> str(ZCDP(0.1)), ZCDP(0.1).implies(ApproxDP(2.2, 1e-6)), ZCDP(0.1).implies(PureDP(9.0))
    ('0.1-zCDP', True, False)
    """

    rho: float

    power: ClassVar[int] = 2
    """As in :class:`PureDP`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checked_number("rho", self.rho, positive=False))

    @property
    def amount(self) -> Fraction:
        """The number that adds up over mechanisms, exactly."""
        return Fraction(self.rho)

    def with_reserve(self, eta: float) -> ReservedZCDP:
        """Return the guarantee together with mechanisms that fail with a probability of at most eta together.

        Parameters
        ----------
        eta : float

        Returns
        -------
        ReservedZCDP
        """
        return ReservedZCDP(self.rho, eta)

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee is known to have the `other` too.

        Parameters
        ----------
        other : Guarantee

        Returns
        -------
        bool
        """
        if isinstance(other, ZCDP | ReservedZCDP):
            return self.rho <= other.rho
        if isinstance(other, ApproxDP):
            return accounting.zcdp_to_approx(self.rho, other.delta) <= other.epsilon
        return self.rho == 0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :func:`~pgmpy_dp.private.guarantee.guarantee_from_dict`.

        Returns
        -------
        dict
        """
        return {"measure": "zcdp", "rho": self.rho}

    def __str__(self) -> str:
        return f"{self.rho:.6g}-zCDP"


@dataclass(frozen=True)
class ApproxDP:
    """(epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon : float
        Non-negative, finite.
    delta : float
        In (0, 1); a delta of 0 is :class:`PureDP`.

    Examples
    --------
    >>> str(ApproxDP(1.0, 1e-6)), ApproxDP(1.0, 1e-6).implies(PureDP(1.0))
    ('(1, 1e-06)-DP', False)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_number("epsilon", self.epsilon, positive=False))
        object.__setattr__(self, "delta", checked_number("delta", self.delta, positive=True, below_one=True))

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee is known to have the `other` too.

        Parameters
        ----------
        other : Guarantee

        Returns
        -------
        bool
        """
        return isinstance(other, ApproxDP) and self.epsilon <= other.epsilon and self.delta <= other.delta

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :func:`~pgmpy_dp.private.guarantee.guarantee_from_dict`.

        Returns
        -------
        dict
        """
        return {"measure": "approximate", "epsilon": self.epsilon, "delta": self.delta}

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.6g})-DP"


@dataclass(frozen=True)
class ReservedZCDP:
    """rho-zero-concentrated, and eta of a delta on top, for mechanisms that fail with a small probability.

    It is what a curator with a reserve costs. For every delta above eta: (epsilon, delta)-DP with the epsilon to which
    rho converts at delta - eta. It adds up with itself, with zCDP and with pure costs in rho and in eta
    (``curator/proof.md``). It is not the approximate zCDP of Bun and Steinke (2016), of which that was not shown.

    Parameters
    ----------
    rho : float
        Non-negative, finite.
    eta : float
        In (0, 1); an eta of 0 is :class:`ZCDP`.

    Examples
    --------
    >>> str(ReservedZCDP(0.1, 1e-9)), ReservedZCDP(0.1, 1e-9).implies(ApproxDP(2.2, 1e-6))
    ('0.1-zCDP + 1e-09', True)
    """

    rho: float
    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", checked_number("rho", self.rho, positive=False))
        object.__setattr__(self, "eta", checked_number("eta", self.eta, positive=True, below_one=True))

    def implies(self, other: Guarantee) -> bool:
        """Whether every mechanism with this guarantee is known to have the `other` too."""
        if isinstance(other, ReservedZCDP):
            return self.rho <= other.rho and self.eta <= other.eta
        if isinstance(other, ApproxDP) and other.delta > self.eta:
            # The difference of two floats within a factor of two is exact, else it is rounded: one step down is below.
            return accounting.zcdp_to_approx(self.rho, math.nextafter(other.delta - self.eta, 0.0)) <= other.epsilon
        return False

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :func:`~pgmpy_dp.private.guarantee.guarantee_from_dict`."""
        return {"measure": "reserved_zcdp", "rho": self.rho, "eta": self.eta}

    def __str__(self) -> str:
        return f"{self.rho:.6g}-zCDP + {self.eta:.6g}"


Guarantee = PureDP | ZCDP | ReservedZCDP | ApproxDP


def fresh_guarantee(cost: object, name: str = "cost") -> Guarantee:
    """A copy of a guarantee that nobody else has; TypeError for anything but exactly one of the four.

    A subclass could show another epsilon each time it is read, and others could change an object that they hold.

    Examples
    --------
    >>> fresh_guarantee(PureDP(1.0))
    PureDP(epsilon=1.0)
    """
    if not is_exactly(cost, PureDP, ZCDP, ReservedZCDP, ApproxDP):
        raise TypeError(f"{name}={cost!r} is a {type(cost).__name__}; pass a PureDP, ZCDP, ReservedZCDP or ApproxDP")
    return replace(cost)  # type: ignore[type-var, return-value]


def guarantee_from_dict(content: Mapping[str, Any]) -> Guarantee:
    """Guarantee from its ``to_dict`` form; ValueError for anything else.

    Examples
    --------
    >>> guarantee_from_dict(ZCDP(0.25).to_dict())
    ZCDP(rho=0.25)
    """
    measures = {"pure": PureDP, "zcdp": ZCDP, "reserved_zcdp": ReservedZCDP, "approximate": ApproxDP}
    fields = dict(content) if isinstance(content, Mapping) else {}
    measure = fields.pop("measure", None)
    if measure not in measures:
        raise ValueError(f"{content!r} is not a guarantee; its 'measure' must be one of {sorted(measures)}")
    return measures[measure](**fields)


def part_for_each(cost: Any, rows: int) -> Any:
    """Return what each record of a unit of at most `rows` records may cost, for the unit to have the guarantee `cost`.

    Parameters
    ----------
    cost : PureDP or ZCDP
    rows : int
        m.

    Returns
    -------
    PureDP or ZCDP
        epsilon/m, or rho/m**2, rounded down.

    Notes
    -----
    Privacy: group privacy. Between tables that differ in a unit there are at most m steps, each of which adds a record,
    removes one, or puts one in the place of another. What is epsilon'-DP for a step is m epsilon'-DP for all; what is
    rho'-zCDP is m**2 rho'-zCDP (Bun and Steinke 2016, Proposition 1.9). Nothing is lost where the m records may be
    equal: sensitivities of sums in l1, l2 and l-infinity norm are m times those of a record then, and scores move m
    times as far, which is what the noise is scaled for.

    Examples
    --------
    >>> part_for_each(PureDP(1.0), 2), part_for_each(ZCDP(0.5), 2)
    (PureDP(epsilon=0.5), ZCDP(rho=0.125))
    """
    if rows == 1:
        return cost
    exact = cost.amount / rows**cost.power
    part = float(exact)
    return type(cost)(part if Fraction(part) <= exact else math.nextafter(part, 0.0))


def share_of_cost(cost: PureDP | ZCDP, share: Fraction) -> PureDP | ZCDP:
    """A share of a cost, rounded to the nearest float: for messages and guesses. Noise is scaled by the exact share.

    Examples
    --------
    >>> share_of_cost(ZCDP(0.5), Fraction(1, 4))
    ZCDP(rho=0.125)
    """
    return type(cost)(float(share * cost.amount))


def privacy_profile(guarantee: Guarantee, epsilon: float) -> float:
    """Smallest delta known for which everything with this guarantee is (epsilon, delta)-DP.

    Parameters
    ----------
    guarantee : PureDP, ZCDP, ReservedZCDP or ApproxDP
    epsilon : float
        Non-negative.

    Returns
    -------
    float
        In [0, 1]. Of epsilon0-DP, ``max(0, (exp(epsilon0) - exp(epsilon)) / (exp(epsilon0) + 1))``; of (epsilon0,
        delta0)-DP, delta0 plus 1 - delta0 times the same; of zCDP, `accounting.zcdp_to_delta`, plus its eta if any.

    Notes
    -----
    The first two are exact: randomised response with that epsilon0, which tells the truth outright with probability
    delta0, has this profile, and every mechanism with the guarantee is post-processing of it (Kairouz, Oh and
    Viswanath 2015, Theorem 3.3 and what follows it).

    Examples
    --------
    >>> privacy_profile(ApproxDP(1.0, 1e-6), 2.0), round(privacy_profile(PureDP(1.0), 0.0), 3)
    (1e-06, 0.462)
    """
    epsilon = checked_number("epsilon", epsilon, positive=False)
    if isinstance(guarantee, ZCDP):
        return accounting.zcdp_to_delta(guarantee.rho, epsilon)
    if isinstance(guarantee, ReservedZCDP):
        return min(1.0, accounting.zcdp_to_delta(guarantee.rho, epsilon) + guarantee.eta)
    # Both exponentials times exp(-epsilon0): neither overflows.
    above = -math.expm1(min(epsilon - guarantee.epsilon, 0.0)) / (1.0 + math.exp(-guarantee.epsilon))
    if isinstance(guarantee, ApproxDP):
        return guarantee.delta + (1.0 - guarantee.delta) * above
    return above

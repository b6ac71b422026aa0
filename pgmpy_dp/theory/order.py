"""The value of a theorem's O(.) or Omega(.), and the checks of its public arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pgmpy_dp.checks import checked_within


@dataclass(frozen=True)
class Order:
    """The value of the expression inside an O(.) or Omega(.): an order, not a number of records to collect.

    The theorems leave a constant factor open. The value here has constant 1, so it says how a bound grows and which
    of its terms dominates; only ratios of two values of one theorem mean something by themselves.

    Parameters
    ----------
    value : float
        The expression with constant 1; inf where it exceeds every float.
    formula : str
        The expression, with natural logarithms.
    theorem : str
        Where it is stated.
    side : {"upper", "lower"}
        "upper": a learner needs O(value). "lower": every learner needs Omega(value).
    growth : str
        The order in the number of variables alone, up to logarithmic factors: "log p", "sqrt(p)", "p", ...
    quantity : str
        What is bounded.
    order : bool
        Always True: the constant is not known.

    Examples
    --------
    >>> print(Order(120.0, "p/epsilon", "Theorem 7.1", "lower", "p"))
    n = Omega(p/epsilon): 120 with constant 1 (Theorem 7.1)
    """

    value: float
    formula: str
    theorem: str
    side: str
    growth: str
    quantity: str = "n"
    order: bool = True

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        symbol = "O" if self.side == "upper" else "Omega"
        return f"{self.quantity} = {symbol}({self.formula}): {self.value:.4g} with constant 1 ({self.theorem})"


def checked_weight(min_weight: object, width: object) -> tuple[float, float]:
    """(eta, lambda), where no edge can weigh more than the width.

    Raises
    ------
    TypeError, ValueError
        As :func:`~pgmpy_dp.checks.checked_within`; or if `min_weight` exceeds `width`.
    """
    weight, limit = checked_within("min_weight", min_weight), checked_within("width", width)
    if weight > limit:
        raise ValueError(f"min_weight={min_weight!r} exceeds width={width!r}, which every edge's weight is part of")
    return weight, limit


def exp(terms: Iterable[float] | float) -> float:
    """exp of a (sum of) number(s), inf where it overflows."""
    total = terms if isinstance(terms, int | float) else sum(terms)
    return math.exp(total) if total < 709 else math.inf

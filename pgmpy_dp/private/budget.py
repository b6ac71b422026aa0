"""The budget of one dataset."""

from __future__ import annotations

from dataclasses import dataclass

from pgmpy_dp.checks import checked_integer, checked_number, is_exactly
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP

_MOST = 1e15


@dataclass(frozen=True)
class Budget:
    """The most that may be spent, in one measure.

    Parameters
    ----------
    epsilon : float, optional
        Positive. Alone: pure epsilon-DP.
    delta : float, default 0
        0, or in (0, 1), beside `epsilon`: (epsilon, delta)-DP.
    rho : float, optional
        Positive: rho-zCDP. Excludes the others.

    Raises
    ------
    TypeError, ValueError
        For a missing, repeated or impossible measure.

    Examples
    --------
    >>> str(Budget(epsilon=1.0, delta=1e-6))
    '(1, 1e-06)-DP'
    """

    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None

    rows = 1  # no field: see UnitBudget

    def __post_init__(self) -> None:
        delta = checked_number("delta", self.delta, positive=False, below_one=True)
        object.__setattr__(self, "delta", delta)
        if self.rho is not None:
            if self.epsilon is not None or delta != 0:
                raise ValueError(
                    f"rho={self.rho!r} was passed with epsilon={self.epsilon!r}, delta={self.delta!r}; "
                    "pass either rho (zCDP) or epsilon with an optional delta, not both"
                )
            object.__setattr__(self, "rho", _bounded("rho", self.rho))
        elif self.epsilon is None:
            raise ValueError(
                f"epsilon=None and rho=None (delta={self.delta!r}): no budget was given; "
                "pass epsilon, epsilon with delta, or rho"
            )
        else:
            object.__setattr__(self, "epsilon", _bounded("epsilon", self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that spending all of it gives."""
        if self.rho is not None:
            return ZCDP(self.rho)
        assert self.epsilon is not None
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @classmethod
    def of(cls, guarantee: Guarantee) -> Budget:
        """Budget that allows exactly one guarantee.

        Parameters
        ----------
        guarantee : PureDP, ZCDP or ApproxDP

        Returns
        -------
        Budget
        """
        fields = guarantee.to_dict()
        del fields["measure"]
        return cls(**fields)

    def __str__(self) -> str:
        return str(self.guarantee)


def _bounded(name: str, value: object) -> float:
    """A positive number that conversions between measures, which square it, cannot make infinite."""
    number = checked_number(name, value, positive=True)
    if number > _MOST:
        raise ValueError(f"{name}={value!r} protects nothing; pass {_MOST:g} or less, for example 1")
    return number


@dataclass(frozen=True)
class UnitBudget(Budget):
    """A budget for units of at most `rows` records each, as plans see it that ask about records.

    What it may be spent on costs one record the part that
    :func:`~pgmpy_dp.private.guarantee.part_for_each` says; a ledger is charged for units, hence with the whole.

    Parameters
    ----------
    epsilon, delta, rho
    rows : int

    Examples
    --------
    >>> str(UnitBudget(epsilon=1.0, rows=4))
    '1-DP'
    """

    rows: int = 1


def require_budget(budget: object, example: str = "a Budget, e.g. Budget(epsilon=1.0)") -> None:
    """Raise a TypeError, which says to pass the example, for anything but a budget.

    A subclass from elsewhere is none: its numbers could change between two readings.
    """
    if not is_exactly(budget, Budget, UnitBudget):
        raise TypeError(f"budget={budget!r} is a {type(budget).__name__}; pass {example}")


def unit_budget(budget: Budget, rows_per_unit: int | str) -> Budget:
    """A budget for persons with several records each, as plans see it.

    Raises
    ------
    TypeError, ValueError
        For what is neither a whole number of at least 1 nor "shares".

    Examples
    --------
    >>> unit_budget(Budget(epsilon=1.0), 4).rows, unit_budget(Budget(epsilon=1.0), "shares").rows
    (4, 1)
    """
    if isinstance(rows_per_unit, str):
        if rows_per_unit != "shares":
            raise ValueError(f"rows_per_unit={rows_per_unit!r} is unknown; pass a whole number, or 'shares'")
        return budget
    rows = checked_integer("rows_per_unit", rows_per_unit, 1)
    return budget if rows == budget.rows else UnitBudget(budget.epsilon, budget.delta, budget.rho, rows)

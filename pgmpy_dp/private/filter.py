"""The rule by which charges are accepted, and what was accepted so far: a value without a memory of its own.

Why the sums are valid when each cost is chosen after seeing earlier results
----------------------------------------------------------------------------
Write E, D, R for the sums over the accepted costs of epsilon, delta and rho, where epsilon-DP also counts as
``rho = epsilon**2/2`` and (epsilon, delta)-DP as delta-approximate ``epsilon**2/2``-zCDP.

* Budget epsilon: ``E <= epsilon`` with pure costs (Rogers, Roth, Ullman and Vadhan 2016).
* Budget rho: ``R <= rho`` with pure and zCDP costs (Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1).
* Budget (epsilon, delta): with a part x of delta set aside for converting zCDP, a charge is accepted if
  ``D <= delta - x`` and either ``E <= epsilon`` (and no cost is a zCDP one) or ``R <= rho(epsilon, x)``. The eta of a
  curator's reserve counts in D.

x must not depend on the outputs. If every charge converted at whatever delta were left, or took whichever of two whole
filters happens to fit, the failures of the two branches could add up to almost twice the delta; ``ledger.md`` has the
proof that a fixed x is enough, and the counterexample. It is therefore fixed by the first charge (nothing was released
before it). If that is an (epsilon, delta) one, x is nothing. Otherwise x is nine tenths of delta, so that costs with
and without a reserve can follow in any order; or, where the first charge needs more, all of delta but its own eta. Pass
``conversion_delta`` to choose.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

from pgmpy_dp.checks import checked_number
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.entry import Entry, one_kind
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, ReservedZCDP, guarantee_from_dict

_CONVERTING = 0.9  # part of delta that converts rho, where the first charge leaves the choice
_ROUNDING = 1e-20  # of differences of deltas, which are nothing
_TOLERANCE = 1e-12  # relative; ten charges of 0.1 must fit in a budget of 1 although their float sum may exceed it


class BudgetExceeded(ValueError):
    """A charge that does not fit in what is left of a budget.

    A ledger raises it before any noise is drawn, and changes nothing.

    Parameters
    ----------
    message : str
    spent, asked, left : Guarantee
        What was spent before, what the charge would have cost, and what is left; attributes too.

    Examples
    --------
    >>> import networkx as nx, pandas as pd
    >>> from pgmpy_dp import Budget, Ledger, PrivateTable, Schema
    >>> from pgmpy_dp.estimators import NaiveMLE
    >>> frame = pd.DataFrame({"a": [0, 1], "b": [0, 1]})
    >>> table = PrivateTable(frame, Schema({"a": [0, 1], "b": [0, 1]}), ledger=Ledger(Budget(epsilon=0.5)))
    >>> try:
    ...     NaiveMLE(epsilon=2.0).fit(nx.Graph([("a", "b")]), table)
    ... except BudgetExceeded as refused:
    ...     print(refused.asked, refused.left)
    2-DP 0.5-DP
    """

    def __init__(self, message: str, *, spent: Guarantee, asked: Guarantee, left: Guarantee) -> None:
        super().__init__(message)
        self.spent, self.asked, self.left = spent, asked, left


class Account(NamedTuple):
    """The spent and the left part of all that a budget allows, in one measure, in which they add up to it.

    Attributes
    ----------
    spent, left, allowed : Guarantee
    budget : Budget
        The budget as it was declared.
    """

    spent: Guarantee
    left: Guarantee
    allowed: Guarantee
    budget: Budget

    @property
    def whole(self) -> str:
        """The budget in its words, and beside it in the measure of the others."""
        same = self.allowed == self.budget.guarantee
        return f"the budget {self.budget}" if same else f"the budget {self.budget} ({self.allowed})"

    @property
    def pays_for(self) -> Guarantee | None:
        """The rest of an (epsilon, delta) budget that is spent as zCDP, in its own words, rounded down; else None."""
        rho, delta = getattr(self.left, "rho", 0.0), self.budget.delta
        if not (rho and delta):
            return None
        epsilon = accounting.zcdp_to_approx(rho, delta)
        step = 10.0 ** (math.floor(math.log10(epsilon)) - 3) if epsilon else 0.0
        epsilon = math.floor(epsilon / step) * step if step else 0.0
        while epsilon > 0 and accounting.approx_to_zcdp(epsilon, delta) > rho:
            epsilon = max(0.0, epsilon - step)
        return ApproxDP(epsilon, delta) if epsilon > 0 else None

    def __str__(self) -> str:
        return f"{self.spent} of {self.whole}, left {self.left}"


@dataclass(frozen=True)
class _Sums:
    """Sums over costs; `epsilon` is None as soon as one of them has no epsilon."""

    epsilon: float | None
    delta: float
    rho: float

    @classmethod
    def of(cls, costs: Iterable[Guarantee]) -> _Sums:
        costs = tuple(costs)
        epsilons = [c.epsilon for c in costs if not isinstance(c, ZCDP | ReservedZCDP)]
        rhos = [c.rho if isinstance(c, ZCDP | ReservedZCDP) else accounting.pure_to_zcdp(c.epsilon) for c in costs]
        deltas = [
            c.delta if isinstance(c, ApproxDP) else c.eta for c in costs if isinstance(c, ApproxDP | ReservedZCDP)
        ]
        return cls(
            math.fsum(epsilons) if len(epsilons) == len(costs) else None,
            math.fsum(deltas),
            math.fsum(rhos),
        )


@dataclass(frozen=True)
class Filter:
    """A budget, what is fixed about its charges, and the charges that were accepted.

    Parameters
    ----------
    budget : Budget
    adjacency : str, optional
        Under which the charges' guarantees hold; None until it is fixed.
    conversion_delta : float, optional
        Part of delta that converts zCDP costs, in [0, delta]; None until it is fixed.
    entries : tuple of Entry
        Oldest first.
    id : str
        A random name: a release that was charged here says by it which ledger paid.
    """

    budget: Budget
    adjacency: Adjacency | None = None
    conversion_delta: float | None = None
    entries: tuple[Entry, ...] = ()
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        require_budget(self.budget)
        object.__setattr__(self, "budget", replace(self.budget))  # nobody else has this one
        if self.adjacency is not None:
            object.__setattr__(self, "adjacency", Adjacency.parse(self.adjacency))
        if self.conversion_delta is not None:
            share = checked_number("conversion_delta", self.conversion_delta, positive=False, below_one=True)
            if share > self.budget.delta:
                raise ValueError(
                    f"conversion_delta={share!r} is more than the budget's delta={self.budget.delta!r}; "
                    "it is the part of that delta set aside for converting zCDP costs"
                )
            object.__setattr__(self, "conversion_delta", share)

    @property
    def spent(self) -> Guarantee:
        """Costs of all charges, added up; see ``Ledger.spent``."""
        sums = self._sums()
        if self.budget.rho is not None:
            return ZCDP(sums.rho)
        candidates: list[PureDP | ApproxDP] = []
        if sums.epsilon is not None:
            candidates.append(ApproxDP(sums.epsilon, sums.delta) if sums.delta else PureDP(sums.epsilon))
        if self.conversion_delta:
            epsilon = accounting.zcdp_to_approx(sums.rho, self.conversion_delta)
            # min: a sum that fits only up to rounding is still within the budget's delta
            candidates.append(ApproxDP(epsilon, min(sums.delta + self.conversion_delta, self.budget.delta)))
        return min(candidates, key=lambda guarantee: guarantee.epsilon)

    @property
    def left(self) -> Guarantee:
        """Largest cost that still fits, in the measure the budget is being spent in; see ``Ledger.left``."""
        budget, sums = self.budget, self._sums()
        if budget.rho is not None:
            return ZCDP(max(0.0, budget.rho - sums.rho))
        assert budget.epsilon is not None
        if budget.delta and not self.entries:
            return budget.guarantee
        rho = self._rho_limit(self.conversion_delta) - sums.rho
        if rho > 0:
            return ZCDP(rho)
        epsilon = 0.0 if sums.epsilon is None else max(0.0, budget.epsilon - sums.epsilon)
        delta = budget.delta - (self.conversion_delta or 0.0) - sums.delta
        return ApproxDP(epsilon, delta) if delta > _TOLERANCE * budget.delta else PureDP(epsilon)

    @property
    def account(self) -> Account:
        """The spent and the left part in one measure; see ``Ledger.account``."""
        budget, sums = replace(self.budget), self._sums()
        if budget.rho is not None:
            return Account(ZCDP(sums.rho), self.left, budget.guarantee, budget)
        converting = self.conversion_delta or 0.0
        rho, reserve = self._rho_limit(converting), budget.delta - converting
        if self.entries and _within(sums.rho, rho):
            parts = ((sums.rho, sums.delta), (max(0.0, rho - sums.rho), reserve - sums.delta), (rho, reserve))
            spent_rho, left, allowed = (_reserved(r, eta) if sums.delta else ZCDP(r) for r, eta in parts)
            return Account(spent_rho, left, allowed, budget)
        epsilon = sums.epsilon or 0.0
        spent = ApproxDP(epsilon, sums.delta) if sums.delta else PureDP(epsilon)
        return Account(spent, self.left, budget.guarantee, budget)

    def check(self, cost: Guarantee, adjacency: str | None = None, unit: Hashable = None) -> float | None:
        """The conversion_delta under which `cost` fits beside the entries.

        Raises
        ------
        ValueError
            For another adjacency or unit than the entries'.
        BudgetExceeded
            For a cost that does not fit in what is left, or that a budget of this measure cannot pay.
        """
        self._require_comparable(adjacency, unit)
        self._require_payable(cost)
        budget, sums = self.budget, self._sums(cost)
        if budget.rho is not None:
            if not _within(sums.rho, budget.rho):
                self._refuse(cost)
            return self.conversion_delta
        assert budget.epsilon is not None
        if not budget.delta:
            if not _within(sums.epsilon, budget.epsilon):
                self._refuse(cost)
            return self.conversion_delta
        conversion_delta = self._converting(cost)
        if not _within(sums.delta, budget.delta - conversion_delta):
            if conversion_delta == 0:
                self._refuse(cost)
            self._refuse(
                cost,
                f"{conversion_delta:.6g} of the budget's delta is set aside for converting zCDP costs; to mix them "
                "with costs that have a delta, make the ledger with Ledger(budget, conversion_delta=...)",
            )
        if _within(sums.epsilon, budget.epsilon) or _within(sums.rho, self._rho_limit(conversion_delta)):
            return conversion_delta
        if conversion_delta == 0 and isinstance(cost, ZCDP | ReservedZCDP):
            self._refuse(
                cost,
                "none of the budget's delta is set aside for converting zCDP costs; "
                "make the ledger with Ledger(budget, conversion_delta=...)",
            )
        self._refuse(cost)

    def charged(self, entry: Entry) -> Filter:
        """This and one more entry; the errors of :meth:`check`."""
        conversion_delta = self.check(entry.cost, entry.adjacency, entry.unit)
        entries = (*self.entries, entry)
        return replace(self, adjacency=entry.adjacency, conversion_delta=conversion_delta, entries=entries)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by :meth:`from_dict`."""
        return {
            "budget": self.budget.guarantee.to_dict(),
            "adjacency": self.adjacency,
            "conversion_delta": self.conversion_delta,
            "id": self.id,
            "entries": [entry.to_dict() for entry in self.entries],
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Filter:
        """Filter from its :meth:`to_dict` form; an error of :meth:`check` if it could not have come about.

        Notes
        -----
        Sums only grow. So entries that each could be paid at all fit one after the other if the last one fits.
        """
        budget = Budget.of(guarantee_from_dict(stored["budget"]))
        empty = cls(budget, stored["adjacency"], stored["conversion_delta"], id=stored["id"])
        if not isinstance(empty.id, str):
            raise ValueError(f"its id {empty.id!r} is no text")
        entries = tuple(map(Entry.from_dict, stored["entries"]))
        if not entries:
            return empty
        fixed = empty.charged(entries[0])
        for entry in entries[1:]:
            fixed._require_comparable(entry.adjacency, entry.unit)
            fixed._require_payable(entry.cost)
        return replace(fixed, entries=entries[:-1]).charged(entries[-1])

    def _sums(self, *more: Guarantee) -> _Sums:
        return _Sums.of([*(entry.cost for entry in self.entries), *more])

    def _converting(self, cost: Guarantee) -> float:
        """The part of delta that converts zCDP costs, which `cost` fixes if it is the first."""
        if self.conversion_delta is not None:
            return self.conversion_delta
        if isinstance(cost, ApproxDP):
            return 0.0
        delta, sums = self.budget.delta, _Sums.of([cost])
        usual = _CONVERTING * delta
        if sums.delta <= delta - usual and (
            _within(sums.epsilon, self.budget.epsilon or 0.0) or _within(sums.rho, self._rho_limit(usual))
        ):
            return usual
        return max(math.nextafter(delta - sums.delta, 0.0), 0.0) if sums.delta else delta

    def _rho_limit(self, conversion_delta: float | None) -> float:
        if self.budget.epsilon is None or not conversion_delta:
            return 0.0
        return accounting.approx_to_zcdp(self.budget.epsilon, conversion_delta)

    def _require_comparable(self, adjacency: str | None, unit: Hashable) -> None:
        """ValueError for a guarantee that does not add up with those of the entries."""
        if adjacency is not None:
            parsed = Adjacency.parse(adjacency)
            if self.adjacency is not None and parsed != self.adjacency:
                raise ValueError(
                    f"adjacency={str(parsed)!r} differs from this ledger's {str(self.adjacency)!r}: guarantees under "
                    "different adjacencies do not add up; use one adjacency for all releases of a dataset"
                )
        if self.entries and unit != self.entries[0].unit:
            raise ValueError(
                f"unit={unit!r} differs from the unit {self.entries[0].unit!r} that this ledger's entries protect "
                "(None is a record): guarantees for different units do not add up; use one for all releases of the data"
                + one_kind(unit, self.entries[0].unit)
            )

    def _require_payable(self, cost: Guarantee) -> None:
        """BudgetExceeded for a cost of a measure that no budget of this measure can pay."""
        if self.budget.rho is not None and isinstance(cost, ApproxDP | ReservedZCDP):
            self._refuse(cost, "a cost with a delta cannot be paid from a rho budget: use Budget(epsilon, delta)")
        if self.budget.rho is None and not self.budget.delta and not isinstance(cost, PureDP):
            self._refuse(cost, "a pure budget pays only for pure costs: use Laplace noise, or Budget(epsilon, delta)")

    def _refuse(self, cost: Guarantee, remedy: str = "ask for less, or use what was released already") -> NoReturn:
        account, request = self.account, f"{cost}"
        if isinstance(account.allowed, ZCDP | ReservedZCDP) and isinstance(cost, PureDP):
            request += f" ({ZCDP(accounting.pure_to_zcdp(cost.epsilon))})"
        spent = f"{account.spent} of {account.whole} is spent, {account.left} is left"
        raise BudgetExceeded(
            f"refused: {request} was asked, {spent}; {remedy}",
            spent=self.spent,
            asked=cost,
            left=self.left,
        )


def _reserved(rho: float, eta: float) -> Guarantee:
    return ReservedZCDP(rho, eta) if eta > _ROUNDING else ZCDP(rho)


def _within(total: float | None, limit: float) -> bool:
    return total is not None and total <= limit * (1.0 + _TOLERANCE)

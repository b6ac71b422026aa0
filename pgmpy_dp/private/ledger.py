"""The budget of one dataset and the record of what was spent from it: check, charge, release.

A ledger belongs to the records, not to an estimator. Every release is charged to it before any noise is drawn, and a
charge that does not fit is refused and leaves the ledger as it was.

Why the sums are valid when each cost is chosen after seeing earlier results
----------------------------------------------------------------------------
Write E, D, R for the sums over the accepted costs of epsilon, delta and rho, where epsilon-DP also counts as
``rho = epsilon**2/2`` and (epsilon, delta)-DP as delta-approximate ``epsilon**2/2``-zCDP.

* Budget epsilon: ``E <= epsilon`` with pure costs (Rogers, Roth, Ullman and Vadhan 2016).
* Budget rho: ``R <= rho`` with pure and zCDP costs (Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1).
* Budget (epsilon, delta): with a part x of delta set aside for converting zCDP, a charge is accepted if
  ``D <= delta - x`` and either ``E <= epsilon`` (and no cost is a zCDP one) or ``R <= rho(epsilon, x)``.

x must not depend on the outputs. If every charge converted at whatever delta were left, or took whichever of two whole
filters happens to fit, the failures of the two branches could add up to almost twice the delta; ``ledger.md`` has the
proof that a fixed x is enough, and the counterexample. It is therefore fixed by the first charge (nothing was released
before it): all of delta when that cost has no delta of its own, nothing otherwise. Pass ``conversion_delta`` to spend
both kinds from one ledger.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.entry import Entry, entries_table
from pgmpy_dp.private.files import write_atomically
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, checked_number, guarantee_from_dict
from pgmpy_dp.schema import decode_label, encode_label

__all__ = ["Budget", "BudgetExceeded", "Entry", "Ledger"]

_TOLERANCE = 1e-12  # relative; ten charges of 0.1 must fit in a budget of 1 although their float sum may exceed it


class BudgetExceeded(ValueError):
    """A charge that does not fit in what is left of a budget.

    Attributes
    ----------
    spent, asked, left : Guarantee
    """

    def __init__(self, message: str, *, spent: Guarantee, asked: Guarantee, left: Guarantee) -> None:
        super().__init__(message)
        self.spent, self.asked, self.left = spent, asked, left


@dataclass(frozen=True)
class _Sums:
    """Sums over costs; `epsilon` is None as soon as one of them has no epsilon."""

    epsilon: float | None
    delta: float
    rho: float

    @classmethod
    def of(cls, costs: Iterable[Guarantee]) -> _Sums:
        costs = tuple(costs)
        epsilons = [c.epsilon for c in costs if not isinstance(c, ZCDP)]
        rhos = [c.rho if isinstance(c, ZCDP) else accounting.pure_to_zcdp(c.epsilon) for c in costs]
        return cls(
            math.fsum(epsilons) if len(epsilons) == len(costs) else None,
            math.fsum(c.delta for c in costs if isinstance(c, ApproxDP)),
            math.fsum(rhos),
        )


class Ledger:
    """Budget of one dataset and every charge against it; safe to share between threads.

    Parameters
    ----------
    budget : Budget
    adjacency : str, optional
        Under which the charges' guarantees must hold. Default: that of the first charge.
    conversion_delta : float, optional
        Part of an (epsilon, delta) budget's delta that converts zCDP costs, in [0, delta]; the rest is room for costs
        that have a delta themselves. Default: decided by the first charge, see the module's docstring.

    Notes
    -----
    Privacy: the interaction with the records through everything charged here satisfies ``budget.guarantee`` under
    ``adjacency``, also when costs are chosen adaptively. Sums may exceed the budget by a relative 1e-12 (rounding).
    `spent` and `left` inform; the guarantee is the budget's. Two copies of a ledger could be spent twice, so it refuses
    to be copied or pickled: save it with :meth:`save`, and use one loaded ledger per dataset at a time.

    Examples
    --------
    >>> ledger = Ledger(Budget(epsilon=1.0))
    >>> _ = ledger.charge(PureDP(0.4), what="ages", columns=("age",), mechanism="laplace", adjacency="add_remove")
    >>> str(ledger.spent), str(ledger.left)
    ('0.4-DP', '0.6-DP')
    """

    def __init__(self, budget: Budget, *, adjacency: str | None = None, conversion_delta: float | None = None) -> None:
        if not isinstance(budget, Budget):
            raise TypeError(f"budget={budget!r} is a {type(budget).__name__}; pass a Budget, e.g. Budget(epsilon=1.0)")
        if conversion_delta is not None:
            conversion_delta = checked_number("conversion_delta", conversion_delta, positive=False, below_one=True)
            if conversion_delta > budget.delta:
                raise ValueError(
                    f"conversion_delta={conversion_delta!r} is more than the budget's delta={budget.delta!r}; "
                    "it is the part of that delta set aside for converting zCDP costs"
                )
        self._budget = budget
        self._adjacency = None if adjacency is None else Adjacency.parse(adjacency)
        self._conversion_delta = conversion_delta
        self._entries: tuple[Entry, ...] = ()
        self._lock = threading.RLock()

    @property
    def budget(self) -> Budget:
        """What may be spent in total."""
        return self._budget

    @property
    def adjacency(self) -> Adjacency | None:
        """The adjacency of all charges; None until the first one if none was passed."""
        return self._adjacency

    @property
    def conversion_delta(self) -> float | None:
        """Part of delta that converts zCDP costs; None until it is fixed."""
        return self._conversion_delta

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first."""
        return self._entries

    @property
    def private(self) -> bool:
        """False as soon as one charge was for reproducible (seeded) noise."""
        return not any(entry.reproducible for entry in self._entries)

    @property
    def spent(self) -> Guarantee:
        """Guarantee of all charges together: the tighter of the valid sums."""
        with self._lock:
            sums = _Sums.of(entry.cost for entry in self._entries)
            if self._budget.rho is not None:
                return ZCDP(sums.rho)
            candidates: list[PureDP | ApproxDP] = []
            if sums.epsilon is not None:
                candidates.append(ApproxDP(sums.epsilon, sums.delta) if sums.delta else PureDP(sums.epsilon))
            if self._conversion_delta:
                epsilon = accounting.zcdp_to_approx(sums.rho, self._conversion_delta)
                # min: a sum that fits only up to rounding is still within the budget's delta
                candidates.append(ApproxDP(epsilon, min(sums.delta + self._conversion_delta, self._budget.delta)))
            return min(candidates, key=lambda guarantee: guarantee.epsilon)

    @property
    def left(self) -> Guarantee:
        """Largest cost that still fits, in the measure the budget is being spent in.

        For an (epsilon, delta) budget: the budget itself while nothing is spent; then a zCDP cost if zCDP costs can
        still be charged, otherwise what is left of the plain sums.
        """
        with self._lock:
            budget, sums = self._budget, _Sums.of(entry.cost for entry in self._entries)
            if budget.rho is not None:
                return ZCDP(max(0.0, budget.rho - sums.rho))
            assert budget.epsilon is not None
            if budget.delta and not self._entries:
                return budget.guarantee
            rho = self._rho_limit(self._conversion_delta) - sums.rho
            if rho > 0:
                return ZCDP(rho)
            epsilon = 0.0 if sums.epsilon is None else max(0.0, budget.epsilon - sums.epsilon)
            delta = budget.delta - (self._conversion_delta or 0.0) - sums.delta
            return ApproxDP(epsilon, delta) if delta > _TOLERANCE * budget.delta else PureDP(epsilon)

    def check(self, cost: Guarantee, *, adjacency: str | None = None, unit: Hashable = None) -> None:
        """Raise what :meth:`charge` would raise for this cost; change nothing.

        Raises
        ------
        BudgetExceeded
            If the cost does not fit in what is left, or cannot be paid from a budget of this measure.
        ValueError
            If the ledger is bound to another adjacency, or its entries protect another unit.
        """
        with self._lock:
            self._fitting(cost, adjacency, unit)

    def charge(
        self,
        cost: Guarantee,
        *,
        what: str,
        columns: Iterable[Hashable],
        mechanism: str,
        adjacency: str,
        reproducible: bool = False,
        unit: Hashable = None,
    ) -> Entry:
        """Record one release, before its noise is drawn; see :meth:`check` for the refusals, which change nothing."""
        with self._lock:
            conversion_delta = self._fitting(cost, adjacency, unit)
            entry = Entry(
                what=str(what),
                columns=tuple(decode_label(encode_label(name)) for name in columns),
                mechanism=str(mechanism),
                cost=cost,
                adjacency=Adjacency.parse(adjacency),
                reproducible=bool(reproducible),
                time=datetime.now(UTC).isoformat(timespec="seconds"),
                unit=decode_label(encode_label(unit)),
            )
            self._adjacency, self._conversion_delta = entry.adjacency, conversion_delta
            self._entries = (*self._entries, entry)
            return entry

    def _fitting(self, cost: Guarantee, adjacency: str | None, unit: Hashable) -> float | None:
        """The conversion_delta under which `cost` fits beside the entries, or raise."""
        if not isinstance(cost, PureDP | ZCDP | ApproxDP):
            raise TypeError(f"cost={cost!r} is a {type(cost).__name__}; pass a PureDP, ZCDP or ApproxDP")
        if adjacency is not None:
            asked = Adjacency.parse(adjacency)
            if self._adjacency is not None and asked != self._adjacency:
                raise ValueError(
                    f"adjacency={str(asked)!r} differs from this ledger's {str(self._adjacency)!r}: guarantees under "
                    "different adjacencies do not add up; use one adjacency for all releases of a dataset"
                )
        if self._entries and unit != self._entries[0].unit:
            raise ValueError(
                f"unit={unit!r} differs from the unit {self._entries[0].unit!r} that this ledger's entries protect "
                "(None is a record): guarantees for different units do not add up; use one for all releases of the data"
            )
        budget, conversion_delta = self._budget, self._conversion_delta
        sums = _Sums.of([*(entry.cost for entry in self._entries), cost])
        if budget.rho is not None:
            if isinstance(cost, ApproxDP):
                self._refuse(cost, "a cost with a delta cannot be paid from a rho budget: use Budget(epsilon, delta)")
            if not _within(sums.rho, budget.rho):
                self._refuse(cost)
            return conversion_delta
        assert budget.epsilon is not None
        if not budget.delta:
            if not isinstance(cost, PureDP):
                self._refuse(
                    cost, "a pure budget pays only for pure costs: use Laplace noise, or Budget(epsilon, delta)"
                )
            if not _within(sums.epsilon, budget.epsilon):
                self._refuse(cost)
            return conversion_delta
        if conversion_delta is None:
            conversion_delta = 0.0 if isinstance(cost, ApproxDP) else budget.delta
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
        if conversion_delta == 0 and isinstance(cost, ZCDP):
            self._refuse(
                cost,
                "none of the budget's delta is set aside for converting zCDP costs; "
                "make the ledger with Ledger(budget, conversion_delta=...)",
            )
        self._refuse(cost)

    def _rho_limit(self, conversion_delta: float | None) -> float:
        if self._budget.epsilon is None or not conversion_delta:
            return 0.0
        return accounting.approx_to_zcdp(self._budget.epsilon, conversion_delta)

    def _refuse(self, cost: Guarantee, remedy: str = "ask for less, or use what was released already") -> NoReturn:
        spent, left = self.spent, self.left
        raise BudgetExceeded(
            f"refused: {cost} was asked, {spent} of the budget {self._budget} is spent, {left} is left; {remedy}",
            spent=spent,
            asked=cost,
            left=left,
        )

    def summary(self) -> str:
        """All charges as a table of text, with the totals below."""
        lines = entries_table(self._entries)
        lines.append(
            f"spent {self.spent} of {self._budget}, left {self.left}; adjacency {self._adjacency or 'not yet fixed'}"
        )
        if not self.private:
            lines.append("NOT PRIVATE: reproducible noise was used; the totals hold only for noise without a seed")
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Ledger(budget={self._budget}, spent={self.spent}, entries={len(self._entries)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Ledger cannot be copied or pickled (a copy could be spent twice); use save() and load()")

    def save(self, path: str | Path) -> None:
        """Write the ledger to a JSON file, whole or not at all."""
        with self._lock:
            content = {
                "format": "pgmpy_dp.ledger",
                "version": 1,
                "budget": self._budget.guarantee.to_dict(),
                "adjacency": self._adjacency,
                "conversion_delta": self._conversion_delta,
                "entries": [entry.to_dict() for entry in self._entries],
            }
        write_atomically(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Ledger from a file of :meth:`save`; ValueError if it is not one, or if its entries overspend its budget."""
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != "pgmpy_dp.ledger" or content.get("version") != 1:
            raise ValueError(f"{str(path)!r} is not a ledger of version 1; pass a file written by Ledger.save")
        try:
            ledger = cls(
                Budget.of(guarantee_from_dict(content["budget"])),
                adjacency=content["adjacency"],
                conversion_delta=content["conversion_delta"],
            )
            for entry in map(Entry.from_dict, content["entries"]):
                ledger._conversion_delta = ledger._fitting(entry.cost, entry.adjacency, entry.unit)
                ledger._adjacency = entry.adjacency
                ledger._entries = (*ledger._entries, entry)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{str(path)!r} is damaged, or its entries overspend its budget: {error}") from error
        return ledger


def _within(total: float | None, limit: float) -> bool:
    return total is not None and total <= limit * (1.0 + _TOLERANCE)

"""Plans of what a budget will buy of linked tables, from public numbers: no record is read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pandas as pd

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.learning.display import Shown
from pgmpy_dp.learning.fine_grids import fine_grained, undivided
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.linked.linked_model import guarantee_of_a_child, told_of_a_child, words_of_a_child
from pgmpy_dp.linked.linked_search import largest_states, pairs_of_children, siblings_at
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.wide_table import WideTable, wide_table
from pgmpy_dp.linked.private_linked_network import SECOND, PrivateLinkedNetwork, as_two_tables
from pgmpy_dp.linked.slots import Slots
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.guarantee import Guarantee
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.shown import shown
from pgmpy_dp.tables.networks.budget_shares import NetworkShares, network_shares, one_way_weights
from pgmpy_dp.tables.networks.search_size import NetworkSize, network_size
from pgmpy_dp.tables.table_plan import NoisyTable, expected_errors, worst_first

_MERGED = 4  # cells that a number has in tables of several variables, at least, where the budget is small
_ROWS = 5
"""Of the wide table for each parent, about, where there are two or three children."""

_WITH_IMAGES = 3.0
"""Times a fit of one table: each table comes with its image, and both fill the junction tree."""

_WITH = ("no sibling: children are independent, given the parent", "one sibling")


@dataclass(frozen=True, eq=False)
class LinkedPlan(Shown):
    """The tables that a fit is expected to measure; ``str`` of it is a summary to read.

    Attributes
    ----------
    linked : LinkedSchema
    budget : Budget
    privacy : Privacy
        The promise to a parent with all its children, with the cost of discovering the schemas.
    n : int
        The assumed number of parents.
    siblings : int
        The number of siblings that a child is expected to be learned with; no matter where children have an order.
    table : pandas.DataFrame
        A row for each table: ``cells``, ``noise``, ``scale`` of each cell, in families, and ``expected_error``, the
        total variation that noise alone adds, at most 1.
    size : NetworkSize
        Time and memory.
    """

    linked: LinkedSchema
    budget: Budget
    privacy: Privacy
    n: int
    siblings: int
    table: pd.DataFrame
    size: NetworkSize

    @property
    def guarantee_of_a_child(self) -> Guarantee | None:
        """The guarantee to one child, its siblings as they are; None where there is none."""
        return guarantee_of_a_child(self.privacy)

    def __str__(self) -> str:
        (parent, child), most = map(shown, self.linked.names), self.linked.most
        kept = "the first" if self.linked.order else "drawn"
        lines = [
            f"{self.n:,} of {parent} assumed; {self.budget} under {self.privacy.adjacency}",
            f"promised to all rows of one {shown(self.linked.key)}: {self.privacy}; to one {child}, added, "
            f"removed or changed among its siblings: {words_of_a_child(self.privacy)}",
            f"more than {most} of {child} count as {most} or more, of which {most} are {kept}: their number is "
            "top-coded, and samples have no more. pgmpy-dp check estimates how many have",
            f"{child} is learned given the one before it"
            if self.linked.order
            else f"{child} is expected to be learned with {_WITH[self.siblings]}",
            f"It takes {self.size}",
        ]
        if merged := [shown(name) for schema in self.linked.tables.values() for name in undivided(schema)]:
            lines.append(f"{', '.join(merged)}: cells of a fine grid, merged before larger tables are counted")
        if twice := [shown(name) for schema in self.linked.tables.values() for name in fine_grained(schema)]:
            of_budget = f"{SECOND:.0%} of the budget is for second tables of {', '.join(twice)}"
            lines.append(f"{of_budget}, in cells that follow what the first say")
        return "\n".join([*lines, *worst_first(self.table)])

    def facts(self) -> dict[str, Any]:
        """The facts for programs beside the budget and n."""
        size = {name: getattr(self.size, name) for name in ("memory_bytes", "seconds")}
        told = {**told_of_a_child(self.privacy), "most": self.linked.most, "siblings": self.siblings, **size}
        return told | {"tables": self.table.reset_index().to_dict("records")}


def plan_linked(
    schema: Any, budget: Budget, n: int, *, key: Hashable = None, adjacency: str = "add_remove", **options: Any
) -> LinkedPlan:
    """Sizes, noise and expected errors of learning linked tables, before anything is spent.

    Parameters
    ----------
    schema : LinkedSchema, or Schema or mapping with `key`
        As :func:`~pgmpy_dp.learn` takes it.
    budget : Budget
        What the fit would spend.
    n : int
        About how many parents there are, from public knowledge.
    key : hashable, optional
        The column of persons of one file.
    adjacency : {"add_remove", "replace_one"}
    **options
        Further arguments of `PrivateLinkedNetwork`.

    Returns
    -------
    LinkedPlan

    Raises
    ------
    TypeError, ValueError
        For what a fit would refuse.

    Examples
    --------
    >>> from pgmpy_dp.linked import made_up_families
    >>> _, _, schema = made_up_families(0)
    >>> plan = plan_linked(schema, Budget(epsilon=3.2, delta=1e-9), 6_000)
    >>> str(plan.privacy.requested), str(plan.guarantee_of_a_child), plan.siblings
    ('(3.2, 1e-09)-DP', '(6.78455, 1e-09)-DP', 1)
    """
    require_budget(budget)
    _, _, linked = as_two_tables(None, None, schema, key)
    n = checked_integer("n", n, 1)
    learner = PrivateLinkedNetwork(
        *(budget.epsilon, budget.delta, budget.rho, linked),
        **{"adjacency": adjacency, "n_records": n if adjacency == "replace_one" else None, **options},
    )._as_checked()
    parsed = Adjacency.parse(adjacency)
    settings, among, siblings = learner._search(linked)
    wide = wide_table(linked)
    shares = network_shares(wide.schema, parsed, settings, budget, among, largest_states(linked))
    if siblings is None:
        siblings = siblings_at(shares.strength(n))
    requested = budget.guarantee if budget.delta else None
    planned = Privacy(shares.cost, parsed, "planned", unit=linked.unit, requested=requested, rows_per_unit="shares")
    privacy = planned.with_schema_of(wide.schema.discovered)
    table = _tables(linked, shares, n, siblings)
    size = network_size(shares, n, n * _ROWS)
    return LinkedPlan(linked, budget, privacy, n, siblings, table, replace(size, seconds=size.seconds * _WITH_IMAGES))


def _tables(linked: LinkedSchema, shares: NetworkShares, n: int, siblings: int) -> pd.DataFrame:
    """Tables of single columns, those that are always measured, and the smallest and largest that are chosen.

    Pairs of columns of children are measured as far as their noise and the junction tree's size allow it.
    """
    wide, numbers = wide_table(linked), undivided(linked.child)
    fine, merged = wide.schema.fine(), {*undivided(wide.schema)}
    columns = {column: name for slot in wide.slots for name, column in zip(linked.child, slot, strict=True)}
    merged |= {column for column, name in columns.items() if name in numbers}
    likely = {name: min(fine.cardinality(name), _MERGED if name in merged else 10**9) for name in fine}
    one_way = [name for name in fine if wide.ordered or all(name not in slot for slot in wide.slots[1:])]
    sizes = [fine.cardinality(name) for name in one_way]
    weights = one_way_weights(sizes, shares.cost)
    noises = Tables.planned(len(one_way), shares.adjacency, shares.cost, shares.one_way, weights).noise
    child = linked.names[1]
    tables: list[NoisyTable] = [
        (_told(wide, child, columns, name), k, noise) for name, k, noise in zip(one_way, sizes, noises, strict=True)
    ]
    names = wide.schema.variables

    def cells(scope: Scope) -> int:
        return math.prod(likely[names[i]] for i in scope)

    def add(scope: Scope, share: Fraction) -> None:
        told = " - ".join(_told(wide, child, columns, names[i]) for i in scope)
        tables.append((told, cells(scope), shares.noise(share)))

    for scope in shares.required:
        add(scope, shares.each_required)
    if shares.first_round and not wide.ordered:
        slots = Slots(wide)
        pairs = [pair for pair in shares.candidates if slots.count(pair) <= 1 + siblings]
        for of_kind in pairs_of_children(slots, pairs, cells, shares.rounds).values():
            for pair, share in of_kind.items():
                add(pair, share)
    if shares.first_round:
        start = shares.start(n)
        noise = shares.noise(start * (1 - shares.selecting(start, n, len(shares.candidates))))
        cells_of = sorted(map(cells, shares.candidates))
        tables += [("a pair that is chosen, at most", cells_of[-1], noise), ("at least", cells_of[0], noise)]
    return expected_errors(tables, n)


def _told(wide: WideTable, child: str, columns: Mapping[Any, Hashable], name: Hashable) -> str:
    """A column of the wide table, as users know it."""
    if name not in columns:
        return shown(name)
    which = "" if name in wide.slots[0] else " of the one before" if wide.ordered else " of another"
    return f"{shown(child)}.{shown(columns[name])}{which}"

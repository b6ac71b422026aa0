"""Categories and cuts of linked tables that nobody has listed, for a part of a budget: a schema for the fits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pgmpy_dp.learning.privacy_record import Privacy, handed_over
from pgmpy_dp.linked.linked_model import words_of_a_child
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.private.budget import Budget, require_budget
from pgmpy_dp.private.data.columns import PrivateColumns
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import Number, Schema
from pgmpy_dp.shown import shown
from pgmpy_dp.tables.category_search import CATEGORIES, DiscoverSettings
from pgmpy_dp.tables.discovery import Discovery, columns_to_look_at, look_at, warn_of_few

_STAND_IN = ("categories", 0), ("categories", 1)  # states of columns whose categories are not known yet


@dataclass(frozen=True, eq=False)
class LinkedDiscovery:
    """The schema of both tables, and what it cost; ``str`` of it is a summary to read.

    Attributes
    ----------
    schema : LinkedSchema
        Its two schemas say what it cost to find them, and whatever is learned with them says the sum.
    parent, child : Discovery or None
        What was found in each table; None where all was declared.
    """

    schema: LinkedSchema
    parent: Discovery | None
    child: Discovery | None

    @property
    def parts(self) -> list[Discovery]:
        """What was found, of parents and of children."""
        return [part for part in (self.parent, self.child) if part is not None]

    @property
    def privacy_(self) -> Privacy:
        """Of both together."""
        first, *rest = [part.privacy_ for part in self.parts]
        return reduce(Privacy._and, rest, first)

    @property
    def failed(self) -> bool:
        """Whether next to no families were seen, or no category of a column is frequent enough."""
        return any(part.few or part.poor for part in self.parts)

    def to_json(self, path: str | Path) -> None:
        """Write the schema to a JSON file that :meth:`~pgmpy_dp.LinkedSchema.from_json` reads, with what it cost."""
        self.schema.to_json(path)

    def __str__(self) -> str:
        lines = []
        for name, part in zip(self.schema.names, (self.parent, self.child), strict=True):
            if part is not None:
                lines += [f"{shown(name)}, of each {shown(self.schema.key)} one row:", *str(part).splitlines()[:-1]]
        child = shown(self.schema.names[1])
        return "\n".join([*lines, f"Spent {self.privacy_}; of one {child} alone {words_of_a_child(self.privacy_)}"])


def discover_linked(
    parents: Any,
    children: Any,
    budget: Budget,
    *,
    parent: Mapping[Any, Any] | None,
    child: Mapping[Any, Any],
    key: Hashable,
    most: int,
    ledger: Ledger | Budget | None = None,
    least: int = 0,
    counts: Iterable[str] = (),
    order: Iterable[Hashable] = (),
    size: str = "n",
    names: Iterable[str] = ("parent", "child"),
    parent_options: Mapping[str, Any] | None = None,
    child_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> LinkedDiscovery:
    """A schema of two tables that belong together, with categories that many families have.

    Parameters
    ----------
    parents, children : dataframe or path
        As :class:`~pgmpy_dp.PrivateLinkedTables` takes them; parents None where
        `parent` is.
    budget : Budget
        What this spends, divided by the number of columns that are looked at. For categories it needs a delta.
    parent, child : mapping of hashable to declaration
        Columns as :func:`pgmpy_dp.discover` takes them: ``"categories"``, a Number, or states.
    key, most, least, counts, order, size, names
        As :class:`LinkedSchema` takes them. Counts are about columns with states or bounds.
    ledger : Ledger or Budget, optional
        What may be spent on these records by everything together. Pass the Ledger to the fit too.
    parent_options, child_options : mapping, optional
        Arguments of :func:`pgmpy_dp.discover` for one of the tables: missing, strip, casefold, recode, impossible.
    **options
        Further arguments of it for both: other, bins, max_categories, max_length, adjacency, n_records (of parents),
        random_state.

    Returns
    -------
    LinkedDiscovery

    Raises
    ------
    TypeError, ValueError
        For public arguments that cannot be used, before anything is spent.
    BudgetExceeded
        If the ledger does not have the budget left; nothing is spent.

    Warns
    -----
    FewRecordsWarning
        As :func:`pgmpy_dp.discover`.

    Notes
    -----
    Privacy: the unit is all that carries one value of the key. In each table one row of each unit counts, drawn by the
    unit's own rows (:mod:`pgmpy_dp.private.data.columns`), so that its proof holds for each table; both charge one
    ledger, in which their costs add up. One child among its siblings may cost four times the rho, or twice an epsilon.

    Examples
    --------
    >>> import warnings
    >>> from pgmpy_dp.linked import made_up_families
    >>> households, persons, _ = made_up_families(5_000, random_state=0)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     found = discover_linked(
    ...         households, persons, Budget(epsilon=1.0, delta=1e-9), parent={"tenure": "categories"},
    ...         child={"age": Number(0, 99, resolution=1), "status": "categories"}, key="household", most=6,
    ...     )
    >>> found.schema.parent["tenure"], sorted(found.schema.child["status"])[:3]
    (('owns', 'rents', 'other'), ['child', 'employed', 'other'])
    """
    require_budget(budget, "a Budget, e.g. Budget(epsilon=0.2, delta=1e-8)")
    said: dict[str, Any] = {"least": least, "size": size, "names": tuple(names)}
    said |= {"counts": tuple(counts), "order": tuple(order)}
    if (parent is None) != (parents is None):
        raise ValueError("parents and parent: pass a table and its columns, or None for both")
    own = {"parent": dict(parent_options or {}), "child": dict(child_options or {})}
    declared: dict[str, Any] = {"parent": parent, "child": child}
    bins = options.get("bins")
    wanted = {which: _looked_at(found, bins) for which, found in declared.items()}
    stand_ins: dict[str, Any] = {
        which: _stand_in(found, own[which], wanted[which] > 0) for which, found in declared.items()
    }
    linked = LinkedSchema(stand_ins["parent"], stand_ins["child"], key, most, **said)  # what is wrong is said now
    cut = [n for n, cuts in linked.count_cuts.items() if cuts and n in child and not linked.child.numbers[n].divided]
    if bins is not None and cut:
        raise ValueError(f"counts are about {cut}, which bins={bins} would cut elsewhere; pass cuts of it, or no bins")
    total = sum(wanted.values())
    if total == 0:
        raise ValueError("parent and child have states or cuts for each column, so nothing is to be found")
    adjacency = options.get("adjacency") or "add_remove"
    if ledger is None or isinstance(ledger, Budget):
        ledger = Ledger(ledger or budget, adjacency=str(adjacency))
    spent = _divided(budget, [wanted["parent"] / total, wanted["child"] / total])
    asked: dict[str, tuple[PrivateColumns, DiscoverSettings, Budget]] = {}
    for which, data, cost in (("parent", parents, spent[0]), ("child", children, spent[1])):
        if wanted[which]:
            table = columns_to_look_at(data, declared[which], cost, ledger, unit=linked.key, **own[which], **options)
            asked[which] = (*table, cost)
    found: dict[str, Discovery] = {}
    for which, question in asked.items():
        try:
            found[which] = look_at(*question)
        except BaseException as error:
            for earlier in found.values():
                error.earlier = earlier.release_  # type: ignore[attr-defined]
                error.add_note("What was found in the parents is paid for: it is this exception's .earlier")
            raise
    schemas = [found[which].schema if which in found else stand_ins[which] for which in declared]
    result = LinkedDiscovery(
        LinkedSchema(schemas[0], schemas[1], linked.key, linked.most, **said), found.get("parent"), found.get("child")
    )
    for part in result.parts:
        with handed_over(part.release_):
            warn_of_few(part)
    return result


def _looked_at(variables: Mapping | None, bins: int | None) -> int:
    """How many columns are asked about."""
    numbers = [declared for declared in (variables or {}).values() if isinstance(declared, Number)]
    wanted = [d for d in (variables or {}).values() if isinstance(d, str) and d == CATEGORIES]
    return len(wanted) + (0 if bins is None else sum(not number.divided for number in numbers))


def _stand_in(variables: Mapping | None, options: Mapping[str, Any], wanted: bool) -> Schema | None:
    """A schema in which columns to be found have states of their own, to find out what is wrong with the rest."""
    if variables is None:
        return None
    if not isinstance(variables, Mapping):
        raise TypeError(f"{variables!r} is a {type(variables).__name__}; pass a mapping of columns to declarations")
    states = {n: list(_STAND_IN) if isinstance(d, str) and d == CATEGORIES else d for n, d in variables.items()}
    kept = ("missing", "strip", "casefold", "impossible", *(() if wanted else ("recode",)))
    return Schema(states, **{name: value for name, value in options.items() if name in kept})


def _divided(budget: Budget, shares: list[float]) -> list[Budget]:
    """A budget in two parts, which add up to no more."""
    if 0.0 in shares:
        return [budget, budget]  # only one of them is spent
    first = {name: getattr(budget, name) * shares[0] for name in ("epsilon", "delta", "rho") if getattr(budget, name)}
    rest = {name: math.nextafter(getattr(budget, name) - part, 0.0) for name, part in first.items()}
    return [Budget(**first), Budget(**rest)]

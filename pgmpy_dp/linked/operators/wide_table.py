"""The one table that parents and their children become, as a public description: its columns, states and rules.

A row has the parent's columns, the number of children, and up to two children of that parent, in slots a and b. Slots
that no child is in are *absent*, by rules that models obey. Children have no order: a row with its slots exchanged,
absent ones included, is a row as well, so that both slots have the same distribution. So that rules are about two
columns at a time, the state of the number of children says too which slot has a child, where there is one. Where
children have an order, a row is a child (a) and the one before it (b), and says the child's rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.orders import Relation
from pgmpy_dp.schema.provenance import listed

RANK = "rank"
_ABSENT, _OUTSIDE = "absent", "outside"


@dataclass(frozen=True)
class WideTable:
    """The description of a unit's rows.

    Attributes
    ----------
    schema : Schema
        Of all columns: parents', counts, the number of children, the rank of a child if there is an order, slots.
    child : Schema
        Of children, with all numbers divided.
    size : str
        The column of the number of children.
    patterns : tuple of (int, tuple of int)
        For each of its states how many children there are, and which slots have one.
    slots : tuple of tuple of str
        For each slot its columns, in the order of the children's.
    ordered : bool
    absent : tuple of int
        For each column of the children the state of a slot without a child.
    outside : tuple of int or None
        For each the state of cells outside the children's schema; None where these have one among the declared states.
    """

    schema: Schema
    child: Schema
    size: str
    patterns: tuple[tuple[int, tuple[int, ...]], ...]
    slots: tuple[tuple[str, ...], ...]
    ordered: bool
    absent: tuple[int, ...]
    outside: tuple[int | None, ...]

    def pattern(self, n: int, present: Iterable[int]) -> int:
        """The state of the number of children, with children in these slots."""
        return self.patterns.index((n, tuple(sorted(present))))


def wide_table(linked: LinkedSchema, child: Schema | None = None, parent: Schema | None = None) -> WideTable:
    """The description of a unit's rows. Its `Schema.discovered` has what it cost to find either schema in records.

    Parameters
    ----------
    linked : LinkedSchema
    child : Schema, optional
        The children's, with all numbers divided in another way than finely: as they were merged.
    parent : Schema, optional
        The parents', as they were merged.

    Examples
    --------
    >>> linked = LinkedSchema({"region": ["n", "s"]}, {"sex": ["f", "m"]}, key="household", most=3, counts=["sex = f"])
    >>> made = wide_table(linked)
    >>> made.schema.variables
    ('region', 'sex = f', 'n', 'a.sex', 'b.sex')
    >>> made.schema["n"], made.schema["a.sex"]
    (('0', '1 a', '1 b', '2', '3+'), ('f', 'm', 'absent', 'outside'))
    """
    orders = linked.orders(child, parent)  # of numbers that are not divided yet they say nothing of states
    child = linked.fine_child if child is None else child
    ordered = bool(linked.order)
    slots = tuple(tuple(f"{slot}.{name}" for name in child) for slot in "ab")
    patterns = [
        (n, present)
        for n in range(linked.least, linked.most + 1)
        for present in ([()] if ordered else itertools.combinations(range(2), min(n, 2)))
    ]
    texts = [
        f"{n}{'+' if n == linked.most else ''}" + (" " + "ab"[present[0]] if len(present) == 1 else "")
        for n, present in patterns
    ]
    child_states = {name: listed(child.states[name]) for name in child}  # what it cost to find them stays with them
    absent = {name: len(states) for name, states in child_states.items()}
    outside = {name: len(states) + 1 if _may_be_outside(child, name) else None for name, states in child_states.items()}
    for name, states in child_states.items():
        states += [_fresh(_ABSENT, states)] + ([_fresh(_OUTSIDE, states)] if outside[name] is not None else [])
    parent = linked.parent if parent is None else parent
    variables: dict = {} if parent is None else {name: parent[name] for name in parent}
    variables |= {count: list(range(linked.most + 1)) for count in linked.counts}
    variables[linked.size] = texts
    if ordered:
        variables[RANK] = list(range(linked.least, linked.most + 1))
    variables |= {wide: child_states[name] for slot in slots for name, wide in zip(child, slot, strict=True)}
    sizes = tuple(range(linked.least, linked.most + 1))
    rules: list = [] if parent is None else list(parent.impossible)
    for count in linked.counts:
        for n in sizes[:-1]:  # of so many or more there may be any number
            named = [text for text, (k, _) in zip(texts, patterns, strict=True) if k == n]
            rules.append({linked.size: named, count: list(range(n + 1, linked.most + 1))})
    if ordered:
        rules += [{linked.size: [texts[k]], RANK: list(sizes[k + 1 :])} for k in range(len(sizes) - 1)]
        rules += [{linked.size: texts[1:], RANK: [0]}] if linked.least == 0 else []
    for place, slot in enumerate(slots):
        by, everyone = (RANK, list[Any](sizes)) if ordered else (linked.size, list[Any](texts))
        there = [rank > place for rank in sizes] if ordered else [place in present for _, present in patterns]
        with_child = [state for state, is_there in zip(everyone, there, strict=True) if is_there]
        without = [state for state, is_there in zip(everyone, there, strict=True) if not is_there]
        for name, wide in zip(child, slot, strict=True):
            states = child_states[name]
            none = states[absent[name]]
            rules += [{by: without, wide: [state for state in states if state != none]}] if without else []
            rules += [{by: with_child, wide: [none]}] if with_child else []
        names = dict(zip(child, slot, strict=True))
        for box in child.zeros:
            if not isinstance(box, Relation) or box.is_difference:
                rules.append({names[name]: [child_states[name][k] for k in sorted(c)] for name, c in box.items()})
        columns: dict[Any, Any] = {(linked.names[1], name): wide for name, wide in names.items()}
        for relation in orders.relations():
            if not columns.keys().isdisjoint(relation.names):
                rules += [{columns.get(name, name[1]): some for name, some in box.items()} for box in relation.boxes()]
    options = {} if parent is None else _options(parent)
    of_children = [wide for slot in slots for name, wide in zip(child, slot, strict=True) if child.reading(name).codes]
    options["codes"] = [*options.get("codes", ()), *of_children]
    schema = Schema(
        variables,
        other=None if parent is None else parent.other,
        texts=[name for name, declared in variables.items() if isinstance(declared, Sequence)],
        impossible=rules,
        **options,
    )
    return WideTable(
        schema, child, linked.size, tuple(patterns), slots, ordered, tuple(absent.values()), tuple(outside.values())
    )


def _may_be_outside(child: Schema, name: Hashable) -> bool:
    """Whether a cell could have none of the declared states."""
    number = child.numbers.get(name)
    if number is None:
        return name not in child.other
    return number.missing == "drop" or number.outside == "drop"


def _fresh(label: str, states: Sequence) -> str:
    while label in states:
        label += "_"
    return label


def _options(parent: Schema) -> dict[str, Any]:
    """Return how cells of the parents' columns are read, and of no others."""
    said = {name: list(parent) if value is True else value for name, value in parent.options.items()}
    missing = said["missing"]
    said["missing"] = missing if isinstance(missing, dict) else dict.fromkeys(parent, missing) if missing else {}
    return said

"""A table of what each unit of linked tables is, alone, and of which of its cells are declared: one row for each.

It says before a fit what a fit would leave out. A unit is all that carries one value of the key, in both tables. Its
rows are a function of its own records:

1. It is of one kind (``KINDS``): without a row among the parents, with several, with one outside the schema, or
   with one and without children, with up to `most` of them, or with more.
2. In a parent's column it is declared or not where it has one row among the parents, else "none".
3. It keeps or breaks each rule on all its children, where it has one parent inside the schema, else "none". Whether it
   does is said of the unit by its children and that parent alone (:func:`broken_rules`).
4. It has a row for each of its n children, of ``floor(G/n)`` in 1/G, or one row of G where there are none. In a child's
   column a row says whether this child's cell is declared, or "none".

Records without a key, and lines of text files that are none, are nobody's and are not counted: several may be one
person's, so that no number of them is protected.

Privacy
-------
A unit adds rows of sum at most 1, which no other unit moves: so all that is proved of records that count by shares
holds (:func:`~pgmpy_dp.private.data.table.share_grid`), as for :mod:`pgmpy_dp.linked.operators.unit_rows`. Each table
of counts moves by at most 1 where a unit comes or goes, and as under ``replace_one`` everywhere where one takes the
place of another. A child moves tables as a replaced unit does: four times the rho, or twice a pure epsilon, at most.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.unit_rows import CodedParents, Rows
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.count_rules import CountRule

KIND = ("kind",)
"""The column that says what a unit is; others are pairs of a table and its column, or have a rule's text alone."""

KINDS = ("no parent", "several parents", "outside", "no child", "children", "more children")
_INSIDE = KINDS.index("no child")  # the first kind of a unit with one parent, inside the schema
CELLS = ("declared", "other", "none")
RULE = ("kept", "broken", "none")
_DECLARED, _OTHER, _NONE = range(3)


def kinds_schema(linked: LinkedSchema) -> Schema:
    """The description of these rows.

    Examples
    --------
    >>> linked = LinkedSchema({"region": ["n", "s"]}, {"sex": ["f", "m"]}, key="household", most=3)
    >>> kinds_schema(linked).variables
    (('kind',), ('parent', 'region'), ('child', 'sex'))
    """
    states: dict[Hashable, list[str]] = {KIND: list(KINDS)}
    states |= {(table, name): list(CELLS) for table, schema in linked.tables.items() for name in schema}
    states |= {(rule,): list(RULE) for rule in linked.impossible}
    return Schema(states, texts=list(states))


def unit_kinds(
    parents: CodedParents,
    parent_declared: Sequence[np.ndarray],
    child_owner: np.ndarray,
    child_declared: Sequence[np.ndarray],
    broken: np.ndarray,
    most: int,
) -> Rows:
    """The rows of all units.

    Parameters
    ----------
    parents : CodedParents
    parent_declared, child_declared : sequence of ndarray of bool
        For each column which cells have one of the declared states.
    child_owner : ndarray of int
        Numbers units as those of the parents are; -1: nobody's.
    broken : ndarray of bool, shape (n_ids, rules)
        As :func:`broken_rules` has it.
    most : int
        Children that count.
    """
    n_ids = len(broken)
    has_unit, has_child = parents.owner >= 0, child_owner >= 0
    times = np.bincount(parents.owner[has_unit], minlength=n_ids)
    size = np.bincount(child_owner[has_child], minlength=n_ids)
    inside = np.zeros(n_ids, dtype=bool)
    inside[parents.owner[has_unit & parents.inside]] = True
    kind = np.select([times == 0, times > 1, ~inside, size == 0, size <= most], range(5), 5)
    alone = np.flatnonzero(has_unit)[times[parents.owner[has_unit]] == 1]
    of_parents = np.full((n_ids, len(parent_declared)), _NONE, dtype=np.uint8)
    for j, declared in enumerate(parent_declared):
        of_parents[parents.owner[alone], j] = np.where(declared[alone], _DECLARED, _OTHER)
    # A row for each child of a unit, and for each unit without one.
    rows, childless = np.flatnonzero(has_child), np.flatnonzero(size == 0)
    owner = np.concatenate([child_owner[rows], childless])
    columns = [kind[owner].astype(np.uint8), *of_parents[owner].T]
    columns += [np.append(np.where(d[rows], _DECLARED, _OTHER), [_NONE] * len(childless)) for d in child_declared]
    columns += [*np.where(kind[:, None] < _INSIDE, _NONE, broken)[owner].T]
    weights = np.concatenate([GRID // size[child_owner[rows]], np.full(len(childless), GRID)])
    return Rows(np.column_stack(columns).astype(np.uint8), owner, weights, n_ids)


def broken_rules(
    linked: LinkedSchema,
    child: Schema,
    codes: np.ndarray,
    numbers: Mapping[Any, np.ndarray],
    owner: np.ndarray,
    n_ids: int,
) -> np.ndarray:
    """Which rules on counts, and on a child and its parent, are broken by the children of each unit.

    All children of a unit count, beyond `most` too. One whose value is missing, or outside its bounds or states, breaks
    none by itself: a rule on counts is broken where it is however such children are counted.

    Parameters
    ----------
    linked : LinkedSchema
    child : Schema
        With all numbers divided, and at least where rules count.
    codes : ndarray of int, shape (children, columns)
        States of `child`; higher ones are outside it.
    numbers : mapping of (table, column) to ndarray of float, shape (children,)
        Of each child the number in a column of it or of its unit's parent.
    owner : ndarray of int, shape (children,)
        The unit of each child; -1: nobody's.
    n_ids : int

    Returns
    -------
    ndarray of bool, shape (n_ids, rules)
        Each row is a function of the records of one unit: counts are sums over its children, and the limits of a rule
        for n children depend on n alone.
    """
    broken = np.zeros((n_ids, len(linked.family_rules)), dtype=bool)
    has_unit = owner >= 0
    whose = owner[has_unit]
    size = np.bincount(whose, minlength=n_ids)
    for k, rule in enumerate(linked.family_rules):
        if isinstance(rule, CountRule):
            truth = np.array([*rule.truth(child.column(rule.name)), None, None], dtype=object)
            states = truth[codes[has_unit, child.variables.index(rule.name)]]
            met, unknown = (np.bincount(whose[states == such], minlength=n_ids) for such in (True, None))
            low, high = rule.limits(int(size.max(initial=0)) + 1)[:, size]  # whose last is not of this many exactly
            broken[:, k] = (met > high) | (met + unknown < low)
        else:
            low, high = (numbers[linked.named[name].name][has_unit] for name in (rule.low, rule.high))
            above = np.round(low - high - rule.shift, 9)  # NaN, of unknown numbers, is neither
            broken[whose[above >= 0 if rule.strict else above > 0], k] = True
    return broken

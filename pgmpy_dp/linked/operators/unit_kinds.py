"""A table of what each unit of linked tables is, alone, and of which of its cells are declared: one row for each.

It says before a fit what a fit would leave out. A unit is all that carries one value of the key, in both tables. Its
rows are a function of its own records:

1. It is of one kind (``KINDS``): without a row among the parents, with several, with one outside the schema, or
   with one and without children, with up to `most` of them, or with more.
2. In a parent's column it is declared or not where it has one row among the parents, else "none".
3. It has a row for each of its n children, of ``floor(G/n)`` in 1/G, or one row of G where there are none. In a child's
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

from collections.abc import Hashable, Sequence

import numpy as np

from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.linked.operators.unit_rows import CodedParents, Rows
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.schema import Schema

KIND = ("kind",)
"""The column that says what a unit is; others are pairs of a table and its column."""

KINDS = ("no parent", "several parents", "outside", "no child", "children", "more children")
CELLS = ("declared", "other", "none")
_DECLARED, _OTHER, _NONE = range(3)


def kinds_schema(linked: LinkedSchema) -> Schema:
    """The description of these rows.

    Examples
    --------
    >>> linked = LinkedSchema({"region": ["n", "s"]}, {"sex": ["f", "m"]}, key="household", most=3)
    >>> kinds_schema(linked).variables
    (('kind',), ('parent', 'region'), ('child', 'sex'))
    """
    columns: list[Hashable] = [(linked.names[0], name) for name in linked.parent or ()]
    columns += [(linked.names[1], name) for name in linked.child]
    states = {KIND: list(KINDS)} | {column: list(CELLS) for column in columns}
    return Schema(states, texts=list(states))


def unit_kinds(
    parents: CodedParents,
    parent_declared: Sequence[np.ndarray],
    child_owner: np.ndarray,
    child_declared: Sequence[np.ndarray],
    n_ids: int,
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
    n_ids : int
    most : int
        Children that count.
    """
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
    weights = np.concatenate([GRID // size[child_owner[rows]], np.full(len(childless), GRID)])
    return Rows(np.column_stack(columns).astype(np.uint8), owner, weights, n_ids)

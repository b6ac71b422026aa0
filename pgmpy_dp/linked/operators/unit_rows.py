"""The rows of one wide table that a parent with all its children becomes, alone.

A *unit* is all that carries one value of the key, in both tables. Its rows, and for how much each counts, are a
function of a secret key, of the unit's own identity and of its own records:

1. A unit without a parent, or with several, has no rows, and neither has one whose parent is outside the schema or has
   too few children. Which these are is decided for each unit by its own records.
2. Its children are put in the order of their codes, so that the order in which records came is forgotten: children of
   equal codes are the same to everything that follows. Each gets a number, from the secret key, the unit's identity and
   its place in that order. Where the schema has an order, they are put in that, ties by these numbers; otherwise they
   are put in the order of the numbers, at random. The first `most` remain.
3. Each ordered pair of them is a row; with fewer than two children there is a row for each way to place them in two
   slots. Of seven children and more 15 unordered pairs stay, spread evenly over all of them from a place that the
   secret key and the unit's identity say, with both their orders. With an order there is a row for each child, with
   the one before it.
4. Each of its k rows counts ``floor(G/k)`` in units of 1/G, as in :mod:`pgmpy_dp.private.data.units`: together at most
   1.

Privacy
-------
*Adding or removing a unit*, a parent with all its children, or children without a parent, changes the rows of no other
unit: 1. to 4. look at nothing else, and the secret key is drawn once for the tables, independently of them. So every
table of counts over these rows moves by at most 1 in l1 norm, hence in l2 norm and in each cell, and whatever is proved
for records that count by shares holds (:func:`~pgmpy_dp.private.data.table.share_grid`).

*Replacing a unit by another* changes the rows of these two alone: a table u + rest becomes v + rest, with u and v not
negative and each of sum at most 1. It moves by ``norm1(u - v) <= 2`` and ``norm2(u - v) <= sqrt(norm2(u)^2 +
norm2(v)^2) <= sqrt(2)``, as under ``replace_one`` everywhere.

*One child* that is added, removed or changed, its key as it was, makes other rows of one unit: it moves tables as a
replaced unit does, and the misfit that a selection looks at by 2. Under ``add_remove``, where the noise is for 1, that
is a removal followed by an addition. So what costs rho for units costs at most ``2^2 rho = 4 rho`` for a child, and a
pure epsilon at most ``2 epsilon``; no less than for a whole unit may be assumed of a child in any case.

*One child that moves to another parent*, its key changed, makes other rows of two units. Tables move by at most 4 in l1
norm and 2 in l2 norm. Under ``add_remove`` that is two removals and two additions, at most ``4^2 rho = 16 rho`` or ``4
epsilon``. Under ``replace_one`` it is two replacements: ``4 rho`` or ``2 epsilon``.

The guarantee holds whatever the secret key is; it is secret so that nobody can arrange identifiers for certain children
to be drawn.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from pgmpy_dp.linked.operators.wide_table import WideTable
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.units import mixed

MOST_PAIRS = 15
_ALL_PAIRS = 6  # children, of which there are no more pairs than that

_START = np.uint64(1 << 62)  # beyond the place of any child


class CodedParents(NamedTuple):
    """Parents, a row each: whose it is (-1: nobody's), whether it is inside the schema, and its codes, where it is."""

    owner: np.ndarray
    inside: np.ndarray
    codes: np.ndarray


class CodedChildren(NamedTuple):
    """Children, a row each: whose, codes of the wide table's slots, codes to put in order by, and met conditions."""

    owner: np.ndarray
    codes: np.ndarray
    order: np.ndarray
    flags: np.ndarray


class Rows(NamedTuple):
    """Rows of the wide table: codes, the unit that each is of, and its weight in 1/GRID."""

    codes: np.ndarray
    owner: np.ndarray
    weights: np.ndarray
    n_units: int


def unit_rows(
    parents: CodedParents,
    children: CodedChildren,
    identities: Sequence[bytes],
    key: bytes,
    wide: WideTable,
    least: int,
    most: int,
) -> Rows:
    """The rows of all units.

    Parameters
    ----------
    parents, children
        `owner` numbers the units of both alike.
    identities : sequence of bytes
        What tells each unit from others.
    key : bytes
        The secret one.
    wide : WideTable
    least, most : int
        Children of a unit that has rows; and those that count.

    Returns
    -------
    Rows
        Units that have rows are numbered from 0.
    """
    n_ids = len(identities)
    has_unit = parents.owner >= 0
    places = np.full(n_ids, -1, dtype=np.int64)
    places[parents.owner[has_unit]] = np.flatnonzero(has_unit)
    alone = np.bincount(parents.owner[has_unit], minlength=n_ids) == 1
    has_rows = np.zeros(n_ids, dtype=bool)
    has_rows[alone] = parents.inside[places[alone]]
    has_child = children.owner >= 0
    size = np.bincount(children.owner[has_child], minlength=n_ids)
    has_rows &= size >= least
    units = np.flatnonzero(has_rows)
    number = np.cumsum(has_rows) - 1
    rows_of = np.flatnonzero(has_child)[has_rows[children.owner[has_child]]]
    owner, size = number[children.owner[rows_of]], size[units]
    # Without an order a draw says which children remain, and which pairs; with one, which of two comes first.
    seeds = _seeds(identities, units, size > (1 if wide.ordered else min(most, _ALL_PAIRS)), key)
    order = _in_order(children.codes[rows_of], children.order[rows_of], owner, seeds)
    sorted_rows = rows_of[order]
    first = np.cumsum(size) - size
    kept = np.minimum(size, most)
    counts = np.empty((len(units), children.flags.shape[1]), dtype=np.int64)
    for k in range(counts.shape[1]):
        met = np.bincount(owner, children.flags[rows_of, k], minlength=len(units))
        counts[:, k] = np.minimum(met.astype(np.int64), most)
    unit, places_of_slots, patterns, ranks, weights = _placed(kept, seeds, wide, least)
    at = np.append(sorted_rows, len(children.owner))  # the last: no child
    dtype = np.min_scalar_type(max(wide.schema.fine().cardinalities.values()) - 1)
    n_parent, n_child = parents.codes.shape[1], children.codes.shape[1]
    columns = [parents.codes[places[units], j][unit] for j in range(n_parent)]
    columns += [counts[unit, j] for j in range(counts.shape[1])]
    columns += [patterns] + ([ranks - least] if wide.ordered else [])
    codes = np.empty((len(unit), len(columns) + n_child * len(wide.slots)), dtype=dtype, order="F")
    for place, column in enumerate(columns):
        codes[:, place] = column
    place = len(columns)
    for of_slot in places_of_slots.T:
        whose = at[np.where(of_slot >= 0, first[unit] + of_slot, -1)]
        for j in range(n_child):
            codes[:, place] = np.append(children.codes[:, j], wide.absent[j]).astype(dtype)[whose]
            place += 1
    return Rows(codes, unit, weights, len(units))


def _seeds(identities: Sequence[bytes], units: np.ndarray, drawing: np.ndarray, key: bytes) -> np.ndarray:
    """A secret number of 64 bits for each unit that draws; 0 for others."""
    seeds = np.zeros(len(units), dtype=np.uint64)
    named = (identities[unit] for unit in units[drawing].tolist())
    digests = b"".join(hashlib.blake2b(name, key=key, digest_size=8).digest() for name in named)
    seeds[drawing] = np.frombuffer(digests, dtype="<u8")
    return seeds


def _in_order(codes: np.ndarray, by: np.ndarray, owner: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Places of children, unit by unit, and within a unit by `by`, then at random: see 2. above."""
    content = np.lexsort((*codes.T, *by.T, owner))
    whose = owner[content]
    rank = np.arange(len(whose)) - np.searchsorted(whose, whose)
    drawn = np.empty(len(owner), dtype=np.uint64)
    drawn[content] = mixed(seeds[whose], rank.astype(np.uint64))
    return np.lexsort((drawn, *reversed(by.T), owner))


def _placed(
    kept: np.ndarray, seeds: np.ndarray, wide: WideTable, least: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Place a unit's children in the slots of each row; return the row's unit, children, pattern, rank and weight."""
    n_slots = len(wide.slots)
    placed: list[tuple[np.ndarray, ...]] = []
    for n in np.unique(kept).tolist():
        units = np.flatnonzero(kept == n)
        if wide.ordered:
            ranks = np.arange(1, n + 1) if n else np.array([least])
            places = np.stack([ranks - 1, np.maximum(ranks - 2, -1)], axis=1).astype(np.int8)
            patterns = np.full(len(places), wide.pattern(n, ()))
        else:
            places = _placements(n)
            present = [tuple(np.flatnonzero(row >= 0).tolist()) for row in places]
            patterns = np.array([wide.pattern(n, slots) for slots in present])
            ranks = np.zeros(len(places), dtype=np.int64)
        if not wide.ordered and n > _ALL_PAIRS:
            pairs = _pairs(n)
            start = mixed(seeds[units], _START) % np.uint64(len(pairs))
            step = np.arange(MOST_PAIRS, dtype=np.uint64) * np.uint64(len(pairs) // MOST_PAIRS)
            chosen = pairs[((start[:, None] + step) % np.uint64(len(pairs))).astype(np.int64)]
            each = chosen[:, :, [[0, 1], [1, 0]]].reshape(-1, n_slots)
            per_unit = 2 * MOST_PAIRS
            patterns, ranks = np.full(per_unit, wide.pattern(n, (0, 1))), np.zeros(per_unit, dtype=np.int64)
        else:
            each, per_unit = np.tile(places, (len(units), 1)), len(places)
        placed.append(
            (
                np.repeat(units, per_unit),
                each,
                np.tile(patterns, len(units)),
                np.tile(ranks, len(units)),
                np.full(per_unit * len(units), GRID // per_unit),
            )
        )
    if not placed:
        nothing = np.empty(0, dtype=np.int64)
        return nothing, np.empty((0, n_slots), dtype=np.int8), nothing, nothing, nothing
    unit, places, patterns, ranks, weights = (np.concatenate(parts) for parts in zip(*placed, strict=True))
    return unit, places, patterns, ranks, weights


@cache
def _placements(n: int) -> np.ndarray:
    """The rows of n children, at most 6: which of them is in each slot, -1 for none."""
    some = itertools.permutations(range(n), 2) if n >= 2 else set(itertools.permutations([*range(n), *[-1] * (2 - n)]))
    return np.array(sorted(some), dtype=np.int8)


@cache
def _pairs(n: int) -> np.ndarray:
    """All unordered pairs of n children, those of the first ones first."""
    by_last = sorted(pair[::-1] for pair in itertools.combinations(range(n), 2))
    return np.array([pair[::-1] for pair in by_last], dtype=np.int8)

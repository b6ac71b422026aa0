"""Tables in which a unit, a person say, has several records: which of them count, and for how much.

Two rules bound what a unit adds, unit by unit, and neither looks at any other unit (users of sequences have the same
two, :mod:`pgmpy_dp.private.data.contributions`).

``at most m records``
    m of a unit's records are drawn at random and count in full, all of them where there are no more.
``shares``
    Each of a unit's k records counts ``floor(G/k)`` in units of ``1/G``, G = 2**20: together at most 1. In units of
    ``1/g``, g another power of two below it, that is ``floor(g/k)``, which is ``floor(floor(G/k) g/G)``.

Privacy
-------
A unit's records are those with one identity in the unit's column (:mod:`pgmpy_dp.private.reading.owners`); records
without one are nobody's and are dropped. A unit's draw is a function of a secret key, of the unit's own identity and
of its own records, put in the order of their codes: records of equal codes are the same to everything that follows.
So for every secret key a unit decides alone what it adds, and tables that differ in a unit, with any number of
records, become tables that differ in at most m records, each of them added, removed or put in the place of another
(or in one share of 1). The key is drawn once for a table, so that all that is learned from it sees the same records.
The guarantee holds whatever the key is; it is secret so that nobody can arrange identifiers for certain records to be
drawn.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from pgmpy_dp.private.data.contingency import count_all
from pgmpy_dp.private.data.contributions import GRID, chosen_segments
from pgmpy_dp.private.data.joint_tables import LevelColumns
from pgmpy_dp.private.reading.owners import Owners
from pgmpy_dp.private.reading.records import joined, merged_columns, spelled_texts
from pgmpy_dp.private.reading.source_base import Source
from pgmpy_dp.private.reading.variables import Variable
from pgmpy_dp.schema import Schema

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

_fixed: bytes | None = None


def fresh_key(seed: int | None = None) -> bytes:
    """A secret key of the operating system's randomness; with a `seed` one that everybody knows."""
    if seed is not None:
        return hashlib.blake2b(repr(seed).encode(), digest_size=32).digest()
    return os.urandom(32) if _fixed is None else _fixed


@contextmanager
def fixed_key(key: bytes) -> Iterator[None]:
    """Tables that are made meanwhile draw by this key: for audits, tests and benchmarks."""
    global _fixed
    before, _fixed = _fixed, key
    try:
        yield
    finally:
        _fixed = before


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    codes: np.ndarray  # of the records inside the schema, shape (n, p)
    owner: np.ndarray  # of each of them
    weights: np.ndarray | None  # in 1/GRID, where units count by shares
    n_units: int
    matched: tuple[np.ndarray, np.ndarray] | None  # weights that there are, and the counts of records of each


class UnitRecords:
    """The records of units that count, read and drawn once: all that is learned sees the same ones.

    Parameters
    ----------
    schema : Schema
    rows : _Rows
        As :func:`read_units` reads them.
    is_part : bool
        Whether they are of some of the units.
    """

    def __init__(self, schema: Schema, rows: _Rows, is_part: bool = False) -> None:
        self._schema, self._rows, self.is_part = schema, rows, is_part
        self._levels = LevelColumns(schema)

    def rows(self) -> _Rows:
        """All records that count."""
        return self._rows

    def codes(self) -> np.ndarray:
        """Codes of the records inside the schema, as :func:`~pgmpy_dp.private.reading.frames.encode` has them."""
        return self.rows().codes

    def weights(self, grid: int = GRID) -> np.ndarray | None:
        """Return the weight of each record in 1/`grid`, a power of two of at most GRID; None where each counts 1."""
        weights = self.rows().weights
        return None if weights is None else weights // (GRID // grid)

    def counts(self, scopes: Sequence[Sequence[int]], grid: int = GRID) -> list[np.ndarray]:
        """Exact tables as `CodedRecords.counts` has them; of shares in units of 1/`grid`."""
        columns = self._levels.beside(list(self.codes().T), scopes)
        return count_all([columns], self._levels.sizes, scopes, self.weights(grid))

    def matched(self, grid: int = GRID) -> np.ndarray | None:
        """Return counts as :meth:`~pgmpy_dp.private.reading.records.CodedRecords.matched` does; None for a part."""
        rows = self.rows()
        if rows.matched is None:
            return None
        weights, counts = rows.matched
        return (weights if rows.weights is None else weights // (GRID // grid)) @ counts

    def part(self, chosen: np.ndarray) -> UnitRecords:
        """The records of some units; `chosen` says for each whether it is one of them."""
        rows = self.rows()
        numbers = np.cumsum(chosen) - 1
        kept = chosen[rows.owner]
        weights = None if rows.weights is None else rows.weights[kept]
        chosen_rows = _Rows(rows.codes[kept], numbers[rows.owner[kept]], weights, int(chosen.sum()), None)
        return UnitRecords(self._schema, chosen_rows, is_part=True)

    def merged(self, schema: Schema, maps: Sequence[np.ndarray | None]) -> UnitRecords:
        """The same records in fewer states: ``maps[j][k]`` is what state k of variable j became.

        Which of a unit's records count, and for how much, stays as it was drawn.
        """
        codes = joined([merged_columns(self._rows.codes.T, maps)], list(schema.cardinalities.values()))
        return UnitRecords(schema, replace(self._rows, codes=codes), self.is_part)

    def identities(self) -> np.ndarray:
        """16 bytes for each unit that say what its records are, whoever else is there; shape (n_units, 16)."""
        rows = self.rows()
        what = rows.codes if rows.weights is None else np.column_stack([rows.codes, rows.weights])
        order = np.lexsort((*rows.codes.T, rows.owner))
        ends = np.searchsorted(rows.owner[order], np.arange(rows.n_units), side="right")
        parts = np.split(np.ascontiguousarray(what[order]), ends[:-1]) if rows.n_units else []
        digests = [hashlib.blake2b(part.tobytes(), digest_size=16).digest() for part in parts]
        return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)


def rows_as_they_are(
    schema: Schema,
    codes: np.ndarray,
    owner: np.ndarray,
    weights: np.ndarray,
    n_units: int,
) -> UnitRecords:
    """Records that were made from units elsewhere in the boundary, with weights in 1/GRID of sum at most 1 for each.

    None of them is outside the schema, as in a part of a table.

    Parameters
    ----------
    schema : Schema
    codes : ndarray, shape (n, p)
    owner, weights : ndarray of int64, shape (n,)
    n_units : int
    """
    return UnitRecords(schema, _Rows(codes, owner, weights, n_units, None), is_part=True)


def read_units(schema: Schema, source: Source, unit: Hashable, most: int | None, key: bytes) -> UnitRecords:
    """Read all records, and draw those that count.

    Parameters
    ----------
    schema : Schema
        Discrete variables only.
    source : Source
    unit : hashable
        Column of units.
    most : int or None
        m; None for shares.
    key : bytes

    Returns
    -------
    UnitRecords
    """
    schema.require_discrete()
    names = [*schema.variables, unit]
    variables = [Variable(schema, name) for name in schema.variables]
    owners, marked = Owners(), []
    with source.one_pass(names, [*spelled_texts(schema), None]) as batches:
        for *columns, whose in batches:
            marked.append([variable.marks(column) for variable, column in zip(variables, columns, strict=True)])
            owners.add(whose)
    owner = owners.numbered()
    marks = []
    for place, variable in enumerate(variables):
        marks.append(np.concatenate([np.empty(0, variable.dtype), *(batch[place] for batch in marked)]))
        for batch in marked:
            batch[place] = np.empty(0, variable.dtype)  # so that no more than one column is in memory twice
    del marked
    return UnitRecords(schema, _limited(marks, variables, schema, owner, owners, most, key))


def _limited(
    marks: list[np.ndarray],
    variables: Sequence[Variable],
    schema: Schema,
    owner: np.ndarray,
    owners: Owners,
    most: int | None,
    key: bytes,
) -> _Rows:
    """The records that count, whose each is (0, 1, ...), and for how much."""
    named = owner >= 0
    if not named.all():
        marks, owner = [column[named] for column in marks], owner[named]
    size = np.bincount(owner)
    if most is None:
        weights = (GRID // np.maximum(size, 1))[owner]
    else:
        keep = drawn_rows(
            lambda rows: [v.codes(column[rows]) for v, column in zip(variables, marks, strict=True)],
            owner,
            owners,
            most,
            key,
        )
        marks, owner = [column[keep] for column in marks], owner[keep]
        weights = np.ones(len(owner), dtype=np.int64)
    inside = np.logical_and.reduce([v.kept(column) for column, v in zip(marks, variables, strict=True)])
    sizes, which = np.unique(weights, return_inverse=True)
    masks = [np.ones(len(owner), dtype=bool), inside]
    masks += [(c < variable.states) & (c != variable.blank) for c, variable in zip(marks, variables, strict=True)]
    masks += [column == variable.blank for column, variable in zip(marks, variables, strict=True)]
    counts = [np.bincount(which[mask], minlength=len(sizes)) for mask in masks]
    dtype = np.min_scalar_type(max(schema.cardinalities.values()) - 1)
    codes = np.empty((int(inside.sum()), len(schema)), dtype, order="F")
    for place, variable in enumerate(variables):
        codes[:, place] = variable.codes(marks[place][inside])
    shares = weights[inside] if most is None else None
    return _Rows(codes, owner[inside], shares, len(size), (sizes, np.array(counts, dtype=np.int64).T))


def drawn_rows(
    cells: Callable[[np.ndarray], Sequence[np.ndarray]], owner: np.ndarray, owners: Owners, most: int, key: bytes
) -> np.ndarray:
    """Return which records count where at most so many of each unit do.

    Parameters
    ----------
    cells : callable
        From places of some records to columns of numbers, by which a unit's records are put in order.
    owner : ndarray of int64, shape (n,)
        Whose each record is, of units that `owners` has numbered.
    owners : Owners
    most : int
    key : bytes

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    size = np.bincount(owner)
    keep = np.ones(len(owner), dtype=bool)
    many = np.flatnonzero((size > most)[owner])
    if len(many) == 0:
        return keep
    order = np.lexsort((*cells(many), owner[many]))
    many = many[order]
    whose = owner[many]
    rank = np.arange(len(many)) - np.searchsorted(whose, whose)
    units = np.unique(whose)
    digests = (hashlib.blake2b(name, key=key, digest_size=8).digest() for name in owners.identities(units.tolist()))
    seeds = np.zeros(len(size), dtype=np.uint64)
    seeds[units] = np.frombuffer(b"".join(digests), dtype="<u8")
    keep[many] = chosen_segments(whose, most, keys=mixed(seeds[whose], rank.astype(np.uint64)))
    return keep


def mixed(seed: np.ndarray, place: np.ndarray | np.uint64) -> np.ndarray:
    """A number for each place of a unit from the unit's secret one: SplitMix64, whose steps are one to one."""
    with np.errstate(over="ignore"):
        z = seed + (place + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

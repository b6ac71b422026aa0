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
A unit's records are those with one match key in the unit's column; records without one are nobody's and are dropped. A
unit's draw is a function of a secret key, of the unit's own match key and of its own records, put in the order of their
codes: records of equal codes are the same to everything that follows. So for every secret key a unit decides alone what
it adds, and tables that differ in a unit, with any number of records, become tables that differ in at most m records,
each of them added, removed or put in the place of another (or in one share of 1). The key is drawn once for a table, so
that all that is learned from it sees the same records. The guarantee holds whatever the key is; it is secret
so that nobody can arrange identifiers for certain records to be drawn.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from pgmpy_dp.private.data.coding import DROPPED
from pgmpy_dp.private.data.contingency import count_all
from pgmpy_dp.private.data.contributions import GRID, chosen_segments
from pgmpy_dp.private.data.frame import Column, encoded_columns, keyed_cells, undeclared
from pgmpy_dp.private.data.pushdown import merged_codes
from pgmpy_dp.schema import Schema, match_key

__all__ = ["UnitRecords", "fixed_key", "fresh_key", "limited", "memory_parts"]

_MISSING = match_key(None)
_GOLDEN = 0x9E3779B97F4A7C15

Parts = Iterable[tuple[Sequence[np.ndarray], Column]]

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


def memory_parts(columns: Sequence[Column], schema: Schema) -> Parts:
    """What :meth:`~pgmpy_dp.private.data.pushdown.Source.unit_codes` gives, of columns of cells, the last of units."""
    *cells, owner = columns
    return [(encoded_columns(cells, schema), owner)]


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    codes: np.ndarray  # of the records inside the schema, shape (n, p)
    owner: np.ndarray  # of each of them
    weights: np.ndarray | None  # in 1/GRID, where units count by shares
    n_units: int
    matched: tuple[np.ndarray, np.ndarray] | None  # weights that there are, and the counts of records of each


class UnitRecords:
    """The records of units that count.

    Parameters
    ----------
    schema : Schema
        Discrete variables only.
    read : callable
        From the schema to what :meth:`~pgmpy_dp.private.data.pushdown.Source.unit_codes` gives.
    most : int or None
        m; None for shares.
    key : bytes
    """

    def __init__(self, schema: Schema, read: Callable[[Schema], Parts], most: int | None, key: bytes) -> None:
        self._most, self._key = most, key
        self._start(schema, lambda: self._counted(read))

    def _start(self, schema: Schema, made: Callable[[], _Rows], is_part: bool = False) -> None:
        self._schema, self.is_part = schema, is_part
        self._made: Callable[[], _Rows] | None = made
        self._held: _Rows | None = None

    def rows(self) -> _Rows:
        """All records that count, read once: later passes and other learners see the same ones."""
        if self._held is None:
            assert self._made is not None
            self._held = self._made()
            self._made = None  # of a frame in memory nothing else is kept
        return self._held

    def codes(self) -> np.ndarray:
        """Codes of the records inside the schema, as :func:`~pgmpy_dp.private.data.frame.encode` has them."""
        return self.rows().codes

    def weights(self, grid: int = GRID) -> np.ndarray | None:
        """For how much each record counts, in 1/`grid`, a power of two of at most GRID; None where each counts 1."""
        weights = self.rows().weights
        return None if weights is None else weights // (GRID // grid)

    def counts(self, scopes: Sequence[Sequence[int]], grid: int = GRID) -> list[np.ndarray]:
        """Exact tables of counts, one per scope of positions in the schema; of shares in units of 1/`grid`."""
        cardinalities, weights = list(self._schema.cardinalities.values()), self.weights(grid)
        return count_all(self.codes(), cardinalities, scopes, weights)

    def matched(self, grid: int = GRID) -> np.ndarray | None:
        """As :func:`~pgmpy_dp.private.data.frame.encode_and_match`, of the records that count; None for a part."""
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
        found = _Rows(rows.codes[kept], numbers[rows.owner[kept]], weights, int(chosen.sum()), None)
        return self._derived(self._schema, lambda: found, is_part=True)

    def merged(self, schema: Schema, maps: Sequence[np.ndarray | None]) -> UnitRecords:
        """The same records in fewer states: ``maps[j][k]`` is what state k of variable j became.

        Which of a unit's records count, and for how much, stays as it was drawn.
        """

        def made() -> _Rows:
            rows = self.rows()
            return replace(rows, codes=merged_codes(rows.codes, maps))

        return self._derived(schema, made, self.is_part)

    @staticmethod
    def _derived(schema: Schema, made: Callable[[], _Rows], is_part: bool) -> UnitRecords:
        """Records that were drawn already."""
        records = object.__new__(UnitRecords)
        records._start(schema, made, is_part)
        return records

    def identities(self) -> np.ndarray:
        """16 bytes for each unit that say what its records are, whoever else is there; shape (n_units, 16)."""
        rows = self.rows()
        what = rows.codes if rows.weights is None else np.column_stack([rows.codes, rows.weights])
        order = np.lexsort((*rows.codes.T, rows.owner))
        ends = np.searchsorted(rows.owner[order], np.arange(rows.n_units), side="right")
        parts = np.split(np.ascontiguousarray(what[order]), ends[:-1]) if rows.n_units else []
        digests = [hashlib.blake2b(part.tobytes(), digest_size=16).digest() for part in parts]
        return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)

    def _counted(self, read: Callable[[Schema], Parts]) -> _Rows:
        schema, most = self._schema, self._most
        parts, n_units = [], 0
        for columns, owner in read(schema):
            found, whose, weights = limited(columns, owner, most, self._key)
            parts.append((found, whose + n_units, weights))
            n_units += int(whose.max(initial=-1)) + 1
        number = len(schema) + len(undeclared(schema))
        columns = [np.concatenate([np.empty(0, np.int8), *(part[0][j] for part in parts)]) for j in range(number)]
        owner, weights = (np.concatenate([np.empty(0, np.int64), *(part[k] for part in parts)]) for k in (1, 2))
        codes = columns[: len(schema)]
        kept = [column != DROPPED for column in codes]
        keep = np.logical_and.reduce(kept)
        declared = dict(zip(schema.variables, kept, strict=True))
        declared |= dict(zip(undeclared(schema), columns[len(schema) :], strict=True))
        sizes, size = np.unique(weights, return_inverse=True)
        masks = [np.ones(len(size), dtype=bool), keep, *declared.values()]
        found = [np.bincount(size[own.astype(bool)], minlength=len(sizes)) for own in masks]
        matched = np.array(found, dtype=np.int64).T
        dtype = np.min_scalar_type(max(schema.cardinalities.values()) - 1)
        result = np.empty((int(keep.sum()), len(schema)), dtype, order="F")
        for j, column in enumerate(codes):
            result[:, j] = column[keep]
        shares = weights[keep] if most is None else None
        return _Rows(result, owner[keep], shares, n_units, (sizes, matched))


def limited(
    columns: Sequence[np.ndarray], cells: Column, most: int | None, key: bytes
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The records that count, whose each is (0, 1, ...), and for how much, from those of some whole units."""
    [(place, keys)] = keyed_cells([cells])
    named = np.array([own != _MISSING for own in keys], dtype=bool)[place]
    present, owner, size = np.unique(place[named], return_inverse=True, return_counts=True)
    columns = [column[named] for column in columns]
    if most is None:
        return columns, owner, (GRID // size)[owner]
    many = np.flatnonzero((size > most)[owner])
    many = many[np.lexsort((*(column[many] for column in columns), owner[many]))]
    whose = owner[many]
    rank = np.arange(len(many)) - np.searchsorted(whose, whose)
    seeds = np.zeros(len(present), dtype=np.uint64)
    for unit in np.unique(whose).tolist():
        text = repr(keys[present[unit]]).encode()
        seeds[unit] = int.from_bytes(hashlib.blake2b(text, key=key, digest_size=8).digest(), "little")
    keep = np.ones(len(owner), dtype=bool)
    keep[many] = chosen_segments(whose, most, keys=_mixed(seeds[whose], rank))
    return [column[keep] for column in columns], owner[keep], np.ones(int(keep.sum()), dtype=np.int64)


def _mixed(seed: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """A number for each record of a unit from the unit's secret one: SplitMix64, whose steps are one to one."""
    z = seed + (rank.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

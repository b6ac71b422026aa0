"""Records that stay where they are: counts come from queries, codes are fetched only if a learner needs rows.

Privacy
-------
A query maps each record to a row of codes or to none, cell by cell, as :func:`pgmpy_dp.private.data.frame.encode` does
in memory, and the counts and codes are equal to those of the same records in memory. So everything that is proved for
tables in memory holds. The records must be the same in every pass: a learner's sensitivities are about one dataset, and
a file that is being written to is not one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.private.data.coding import OutsideCounted
from pgmpy_dp.private.data.contingency import add_counts, count_all
from pgmpy_dp.private.data.frame import encoded_columns, key_counts, positions_of
from pgmpy_dp.private.data.joint_tables import covering_scopes, marginal
from pgmpy_dp.private.data.visits import Visits
from pgmpy_dp.private.mathematics.merged_cells import merged_cells
from pgmpy_dp.schema import Schema

__all__ = ["PushedRecords", "Source", "merged_codes"]

_CELLS_KEPT = 1 << 22  # of joint tables that were counted: 32 MB
_TABLES_AT_ONCE = 64


class Source(ABC):
    """Data in an engine, as :mod:`pgmpy_dp.private.data.sources` opens it."""

    largest_table = 5_000
    """Cells up to which one larger table is cheaper to count than several smaller ones: it fits in a core's cache."""

    keeps_codes = False
    """Whether codes of all records are to be kept, since reading takes long and they fit in memory."""

    ordered = False
    """Whether rows come in an order that is the data's own: an engine's may depend on other rows, and on the run."""

    has_lines = False
    """Whether it is made of lines, some of which may be no record."""

    names: list[str]
    """Its columns."""

    def positions(self, names: Sequence) -> list[int]:
        """Position of the column for each name; ValueError for missing and repeated ones."""
        return positions_of(self.names, names)

    def opened(self, names: Sequence) -> Source:
        """This source, or a slower one, in which no cell of these columns makes reading fail; before anything is spent.

        Files are read to their end: OSError if they are damaged.
        """
        return self

    def require_ready(self) -> None:  # noqa: B027  # most sources can always be read
        """Raise a RuntimeError where this cannot be read now, for a reason that is none of the records."""

    def joint_counts(self, schema: Schema, covers: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """Exact joint table of each cover, positions in `schema`, int64, from records with no cell outside it."""
        cardinalities = list(schema.cardinalities.values())
        tables = [np.zeros([cardinalities[j] for j in cover], dtype=np.int64) for cover in covers]
        add_counts(tables, self.code_batches(schema), cardinalities, covers)
        return tables

    def lines_without_record(self) -> int:
        """How many lines are no record; of sources with `has_lines` alone."""
        raise NotImplementedError

    @abstractmethod
    def code_batches(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """Codes of the kept records, a list of one array per variable for each batch of records."""

    @abstractmethod
    def number_batches(self, names: Sequence) -> Iterator[np.ndarray]:
        """Columns as numbers, float64 of shape (rows, columns) for each batch, NaN where a cell is not a number."""

    def clipped_sums(
        self, names: Sequence, center: np.ndarray, bound: float, scale: float, trace: int, *, products: bool
    ) -> np.ndarray | None:
        """Sums of clipped records, shape (d,), or of their products, (d, d), in integers; None: fetch batches."""
        return None

    @abstractmethod
    def cells(self, names: Sequence) -> list:
        """Whole columns, as :mod:`pgmpy_dp.private.data.frame` holds them in memory."""

    def key_counts(self, names: Sequence) -> list[Counter[tuple]]:
        """How many cells of each column have each match key; here by fetching one column after the other."""
        return [key_counts(self.cells([name])) for name in names]

    def unit_cells(self, names: Sequence, unit: Hashable) -> Iterator[list]:
        """The columns and that of units in parts, each as `cells` gives them; a unit's rows are in one part.

        One part where the engine cannot tell units apart as match_key does. Rows without a unit may be left out.
        """
        yield self.cells([*names, unit])

    def unit_codes(self, schema: Schema, unit: Hashable) -> Iterator[tuple[list[np.ndarray], Any]]:
        """What `encoded_columns` gives, and the cells of the column of units; in parts as of `unit_cells`."""
        for *columns, owner in self.unit_cells(schema.variables, unit):
            yield encoded_columns(columns, schema), owner

    def user_shares(self, visits: Visits, segment_length: int | None, grid: int) -> np.ndarray | None:
        """Beginnings and pairs of users' visits, each user's share of `grid`, in one array of k + k k integers.

        As :func:`pgmpy_dp.private.data.sequences.chain_tables` counts them. None where the engine cannot do so for
        these columns: fetch their cells.
        """
        return None


class PushedRecords:
    """Records in a source, seen through a schema.

    Parameters
    ----------
    source : Source
    schema : Schema
        Discrete variables only; each has a column.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source = source
        self._schema = schema
        self._counted: dict[tuple[int, ...], np.ndarray] = {}
        self._codes: np.ndarray | None = None
        self._matched: np.ndarray | None = None

    def counts(self, scopes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Exact tables of counts, one per scope of positions in the schema; one pass over the data for all of them.

        Joint tables that were counted before are kept, so that a scope inside one of them costs no pass.
        """
        cardinalities = list(self._schema.cardinalities.values())
        if self._codes is not None or self._source.keeps_codes:
            return count_all(self.codes(), cardinalities, scopes)
        missing = [tuple(scope) for scope in scopes if self._cover_of(scope) is None]
        covers = covering_scopes(missing, cardinalities, self._source.largest_table)
        if sum(math.prod(table.shape) for table in self._counted.values()) > _CELLS_KEPT:
            # Only what the scopes of this call do not lie in may go; the rest would have to be counted again.
            used = {self._cover_of(scope) for scope in scopes}
            self._counted = {cover: table for cover, table in self._counted.items() if cover in used}
        for start in range(0, len(covers), _TABLES_AT_ONCE):
            group = covers[start : start + _TABLES_AT_ONCE]
            self._counted.update(zip(group, self._source.joint_counts(self._schema, group), strict=True))
        tables = []
        for scope in scopes:
            cover = self._cover_of(scope)
            assert cover is not None
            tables.append(marginal(self._counted[cover], cover, scope))
        return tables

    def codes(self) -> np.ndarray:
        """Codes of all kept records as :func:`~pgmpy_dp.private.data.frame.encode` gives them; fetched once."""
        if self._codes is None:
            cardinalities = list(self._schema.cardinalities.values())
            dtype = np.min_scalar_type(max(cardinalities) - 1)
            parts: list[list[np.ndarray]] = [[np.empty(0, dtype)] for _ in cardinalities]
            for batch in self._source.code_batches(self._schema):
                for column, codes in zip(parts, batch, strict=True):
                    column.append(codes.astype(dtype))
            result = np.empty((sum(map(len, parts[0])), len(parts)), dtype=dtype, order="F")
            for j in range(len(parts)):
                np.concatenate(parts[j], out=result[:, j])
                parts[j] = []  # so that no more than one column is in memory twice
            self._codes = result
        return self._codes

    def matched(self) -> np.ndarray:
        """How many records there are, are kept, and match in each column, as `encode_and_match` counts them.

        One pass (one for each 64 columns), and one that counts a variable where none was counted before; kept.
        """
        if self._matched is None:
            counted = OutsideCounted(self._schema)
            columns = [(j,) for j in range(len(self._schema))]
            tables = [
                table
                for start in range(0, len(columns), _TABLES_AT_ONCE)
                for table in self._source.joint_counts(counted, columns[start : start + _TABLES_AT_ONCE])
            ]
            kept = self.counts([(0,)])[0].sum()
            self._matched = np.array([tables[0].sum(), kept, *(table[:-1].sum() for table in tables)], dtype=np.int64)
        return self._matched

    @property
    def has_lines(self) -> bool:
        """As :attr:`Source.has_lines`."""
        return self._source.has_lines

    def lines_without_record(self) -> int:
        """As :meth:`Source.lines_without_record`."""
        return self._source.lines_without_record()

    def merged(self, schema: Schema, maps: Sequence[np.ndarray | None]) -> PushedRecords:
        """These records in fewer states: ``maps[j][k]`` is what state k of variable j became."""
        return _Merged(self, schema, maps)

    def _cover_of(self, scope: Sequence[int]) -> tuple[int, ...] | None:
        inside = [cover for cover in self._counted if set(scope) <= set(cover)]
        return min(inside, key=lambda cover: self._counted[cover].size, default=None)


class _Merged(PushedRecords):
    """Records of which an engine counts fine states, and which are merged here, a few tables at a time.

    Where a table of fine states would not fit in memory, codes are fetched.
    """

    def __init__(self, fine: PushedRecords, schema: Schema, maps: Sequence[np.ndarray | None]) -> None:
        super().__init__(fine._source, schema)
        self._fine, self._maps = fine, maps

    def counts(self, scopes: Sequence[Sequence[int]]) -> list[np.ndarray]:
        fine = list(self._fine._schema.cardinalities.values())
        if self._source.keeps_codes or any(math.prod(fine[j] for j in scope) > _CELLS_KEPT for scope in scopes):
            cardinalities = list(self._schema.cardinalities.values())
            return count_all(self.codes(), cardinalities, scopes)
        tables = []
        for start in range(0, len(scopes), _TABLES_AT_ONCE):
            some = scopes[start : start + _TABLES_AT_ONCE]
            counted = zip(self._fine.counts(some), some, strict=True)
            tables += [merged_cells(table, [self._maps[j] for j in scope]) for table, scope in counted]
        return tables

    def codes(self) -> np.ndarray:
        if self._codes is None:
            self._codes = merged_codes(self._fine.codes(), self._maps)
        return self._codes

    def matched(self) -> np.ndarray:
        return self._fine.matched()


def merged_codes(codes: np.ndarray, maps: Sequence[np.ndarray | None]) -> np.ndarray:
    """Codes of records in fewer states, see :meth:`PushedRecords.merged`; a new array.

    Examples
    --------
    >>> merged_codes(np.array([[0, 1], [2, 0]]), [np.array([0, 0, 1]), None]).tolist()
    [[0, 1], [1, 0]]
    """
    merged = codes.copy(order="F")
    for j, places in enumerate(maps):
        if places is not None:
            merged[:, j] = places.astype(codes.dtype)[codes[:, j]]
    return merged

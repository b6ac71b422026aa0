"""Private records of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import Facts, PrivateData, checked_public_count
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.reading.arrow_cells import Column, number_columns
from pgmpy_dp.private.reading.owners import Owners, warn_of_guessed_types
from pgmpy_dp.private.reading.source_base import Source
from pgmpy_dp.private.reading.sources import open_numbers
from pgmpy_dp.schema import decode_label, encode_label
from pgmpy_dp.shown import quantity

MOST_KEPT = 1 << 27
"""Numbers of files that are kept; of more, files are read again in every pass. Those of all other data are kept."""


@dataclass(frozen=True, eq=False)
class VectorFacts(Facts):
    """The public facts of records of numbers.

    Parameters
    ----------
    adjacency : Adjacency
    columns : tuple of hashable
    n_records : int, optional
        The number of records (of units, where there are any), where it is public.
    unit : hashable, optional
        The column whose values are protected as a whole.
    """

    columns: tuple[Hashable, ...]
    n_records: int | None = None
    unit: Hashable = None


class PrivateVectors(PrivateData):
    """Records of d numbers each, with one ledger for everything that is learned from them.

    It offers no rows, no length and no preview, prints only public facts, and refuses to be copied or pickled.

    Parameters
    ----------
    data : array of shape (n, d), dataframe, str or Path
        Anything with columns, as for :class:`~pgmpy_dp.private.data.table.PrivateTable`. A record with a
        value that is not a finite number (missing, infinite, a text) is dropped, in silence. Nothing is scaled or
        centred: ranges and norms are for the learners to clip to public bounds. Numbers are kept; large files of single
        records are read again in every pass instead.
    columns : sequence of hashable, optional
        Of a dataframe: the columns to read; default: all but `unit`. (Of a text file whose first line has numbers there
        is no default: it may be a record.) Of an array: names for its columns; default 0, 1, ...
    adjacency : {"add_remove", "replace_one"}, default "add_remove"
    ledger : Ledger or Budget
        What may be spent on these records, by everything together. A Budget starts a new ledger.
    n_records : int, optional
        The number of records, or of units where there is a `unit`, if it is public. Required under ``replace_one``,
        which takes it to be. It is believed, never compared with the data.
    unit : hashable, optional
        Column of a dataframe that says whose record it is: neighbours then differ in everything that carries one value
        of it, however many records that is. Values are told apart exactly
        (:func:`~pgmpy_dp.private.reading.owners.identity`); records without one belong to nobody and are dropped.
        Default: each record is a unit of its own.

    Raises
    ------
    TypeError, ValueError
        For bad arguments and missing columns, before anything is spent. Nothing is raised because of a record.

    Notes
    -----
    How many records were dropped is private, also where the number of records is public.

    Examples
    --------
    >>> PrivateVectors(np.ones((5, 2)), ["x", "y"], ledger=Budget(epsilon=1.0))
    PrivateVectors(2 columns, unit=None, adjacency='add_remove', n_records=None, spent 0-DP of 1-DP)
    """

    __slots__ = ("_columns", "_n_records", "_owner", "_rows", "_source", "_unit")

    def __init__(
        self,
        data: Any,
        columns: Sequence[Hashable] | None = None,
        *,
        adjacency: str = Adjacency.ADD_REMOVE,
        ledger: Ledger | Budget | None = None,
        n_records: int | None = None,
        unit: Hashable | None = None,
    ) -> None:
        super().__init__(adjacency, ledger)
        self._n_records = checked_public_count("n_records", n_records, self._adjacency)
        self._unit = None if unit is None else decode_label(encode_label(unit))
        self._columns, source = _checked_columns(data, columns, unit)
        source.positions([*self._columns, *([] if unit is None else [unit])])  # all are there
        if unit is not None:
            warn_of_guessed_types(source, unit)
        self._owner: np.ndarray | None = None
        self._rows: list[np.ndarray] | None
        self._source: Source | None
        self._rows, self._owner, self._source = _read(source, self._columns, self._unit)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Names of the numbers of a record, in order."""
        return self._columns

    @property
    def n_records(self) -> int | None:
        """The declared public number of records (of units, where there is a `unit`), or None."""
        return self._n_records

    @property
    def _names(self) -> tuple[Hashable, ...]:
        return self._columns

    def facts(self) -> VectorFacts:
        return VectorFacts(self._adjacency, self._columns, self._n_records, self._unit)

    def _public(self) -> dict[str, Any]:
        columns = [encode_label(name) for name in self._columns]
        return {"columns": columns, "n_records": self._n_records, "unit": encode_label(self._unit)}

    def __repr__(self) -> str:
        return (
            f"PrivateVectors({quantity(len(self._columns), 'column')}, unit={self._unit!r}, "
            f"adjacency={str(self._adjacency)!r}, n_records={self._n_records}, "
            f"spent {self._ledger.spent} of {self._ledger.budget})"
        )


def vector_rows(data: PrivateVectors) -> tuple[np.ndarray, np.ndarray | None]:
    """Kept records, shape (n, d), and the unit of each (None: its own), for learners inside the boundary; read only."""
    if data._rows is None or len(data._rows) != 1:
        data._rows = [_joined(list(_passed(data)) if data._rows is None else data._rows, len(data._columns))]
    return data._rows[0], data._owner


def unit_rows(data: PrivateVectors) -> tuple[np.ndarray, np.ndarray]:
    """Kept records and the unit of each, for data with a `unit`; a unit's records keep their order."""
    rows, owner = vector_rows(data)
    assert owner is not None
    return rows, owner


def row_batches(data: PrivateVectors, size: int) -> Iterator[np.ndarray]:
    """Kept records in batches of at most `size` rows, for sums that are exact in any order, hence in any batches."""
    for rows in _passed(data) if data._rows is None else data._rows:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def _read(
    source: Source, columns: Sequence[Hashable], unit: Hashable | None
) -> tuple[list[np.ndarray] | None, np.ndarray | None, Source | None]:
    """Kept records and their units in one pass; the source instead of the records where they are many."""
    names = [*columns, *([] if unit is None else [unit])]
    source.require_numbers(columns)
    owners = None if unit is None else Owners()
    kept: list[np.ndarray] | None = []
    masks, cells = [], 0
    spelled = [*[frozenset[str]()] * len(columns), *([] if unit is None else [None])]
    with source.one_pass(names, spelled) as batches:
        for batch in batches:
            rows, keep = _finite(batch[: len(columns)])
            cells += rows.size
            if owners is not None:
                owners.add(batch[-1])
                masks.append(keep)
            if kept is not None:
                kept.append(rows)
                if owners is None and source.is_ours and cells > MOST_KEPT:
                    kept = None
    if kept is None:
        return None, None, source
    if owners is None:
        return kept, None, None
    owner = owners.numbered()[np.concatenate([np.empty(0, dtype=bool), *masks])]
    return [_joined(kept, len(columns))[owner >= 0]], owner[owner >= 0], None


def _passed(data: PrivateVectors) -> Iterator[np.ndarray]:
    assert data._source is not None
    with data._source.one_pass(data._columns) as batches:
        for batch in batches:
            yield _finite(batch)[0]


def _finite(columns: Sequence[Column]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of finite numbers, and which rows these are."""
    numbers = number_columns(columns)
    keep = np.logical_and.reduce(list(map(np.isfinite, numbers)))
    rows = np.stack(numbers, axis=1)
    # Of numbers that stand for texts too zeros have no sign: with it a text elsewhere in the column would be seen.
    rows += 0.0
    return (rows if keep.all() else rows[keep]), keep


def _joined(parts: list[np.ndarray], n_columns: int) -> np.ndarray:
    return np.concatenate([np.empty((0, n_columns)), *parts])


def _checked_columns(
    data: Any, columns: Sequence[Hashable] | None, unit: Hashable | None
) -> tuple[tuple[Hashable, ...], Source]:
    if isinstance(data, np.ndarray) and unit is not None:
        raise TypeError(f"unit={unit!r} names a column, and data is an array without names; pass a dataframe")
    source = None
    if columns is None:
        source = open_numbers(data, None)
        columns = [name for name in source.all_names() if name != unit]
    elif isinstance(columns, str | bytes) or not isinstance(columns, Sequence | np.ndarray):
        raise TypeError(f"columns={columns!r} is a {type(columns).__name__}; pass a list of names")
    checked = tuple(decode_label(encode_label(name)) for name in columns)
    if not checked:
        raise ValueError("data has no columns to read; pass an array of shape (records, columns), or columns")
    repeated = [name for name in set(checked) if checked.count(name) > 1]
    if repeated or unit in checked:
        raise ValueError(
            f"columns={checked!r} must name each column once, and not the unit {unit!r}; drop what is too many"
        )
    return checked, source or open_numbers(data, checked)

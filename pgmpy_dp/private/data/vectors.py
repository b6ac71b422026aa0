"""Private records of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import PrivateData, checked_public_count
from pgmpy_dp.private.data.frame import column_names, numbers_and_keys, read_numbers
from pgmpy_dp.private.data.pushdown import Source
from pgmpy_dp.private.data.record_file import TextSource
from pgmpy_dp.private.data.sources import open_source
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import decode_label, encode_label, match_key

__all__ = ["PrivateVectors", "row_batches", "unit_parts", "vector_rows", "vector_source"]

_MISSING = match_key(None)


class PrivateVectors(PrivateData):
    """Records of d numbers each, with one ledger for everything that is learned from them.

    It offers no rows, no length and no preview, prints only public facts, and refuses to be copied or pickled.

    Parameters
    ----------
    data : array of shape (n, d), dataframe, str or Path
        Anything narwhals reads, or files, as for :class:`~pgmpy_dp.private.data.table.PrivateTable`. A record with a
        value that is not a finite number (missing, infinite, a text) is dropped, in silence. Nothing is scaled or
        centred: ranges and norms are for the learners to clip to public bounds. Data in an engine stay there for sums,
        where each record is a unit of its own; they are fetched the first time that a learner needs rows.
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
        of it, however many records that is. Values are compared like states
        (:func:`pgmpy_dp.schema.cells.match_key`); records without one belong to nobody and are dropped. Default: each
        record is a unit of its own.

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

    __slots__ = ("_columns", "_n_records", "_read", "_source", "_unit")

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
        self._source = None if isinstance(data, np.ndarray) else open_source(data)
        self._columns = _checked_columns(data, self._source, columns, unit)
        self._read: tuple[np.ndarray, np.ndarray | None] | None = None
        if self._source is None:
            self._read = _kept(*read_numbers(data, self._columns, unit))
        else:
            read = [*self._columns, *([] if unit is None else [unit])]
            self._source.positions(read)  # all are there
            self._source = self._source.opened(read)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Names of the numbers of a record, in order."""
        return self._columns

    @property
    def n_records(self) -> int | None:
        """The declared public number of records (of units, where there is a `unit`), or None."""
        return self._n_records

    @property
    def unit(self) -> Hashable | None:
        """The column whose values are protected as a whole; None for single records."""
        return self._unit

    @property
    def _names(self) -> tuple[Hashable, ...]:
        return self._columns

    def _public(self) -> dict[str, Any]:
        columns = [encode_label(name) for name in self._columns]
        return {"columns": columns, "n_records": self._n_records, "unit": encode_label(self._unit)}

    def __repr__(self) -> str:
        return (
            f"PrivateVectors({len(self._columns)} columns, unit={self._unit!r}, adjacency={str(self._adjacency)!r}, "
            f"n_records={self._n_records}, spent {self._ledger.spent} of {self._ledger.budget})"
        )


def vector_rows(data: PrivateVectors) -> tuple[np.ndarray, np.ndarray | None]:
    """Kept records, shape (n, d), and the unit of each (None: its own), for learners inside the boundary; read only."""
    if data._read is None:
        assert data._source is not None
        if data._unit is None:
            batches = [_kept(rows, None)[0] for rows in data._source.number_batches(data._columns)]
            data._read = np.concatenate([np.empty((0, len(data._columns))), *batches]), None
        else:
            data._read = _kept(*numbers_and_keys(data._source.cells([*data._columns, data._unit])))
    return data._read


def unit_parts(data: PrivateVectors) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Kept records and the unit of each, for data with a `unit`, in parts that have all records of their units.

    A unit's records keep their order. Of data in an engine that can divide them two parts are held at most; one
    part that is everything is kept.
    """
    if data._read is not None or data._source is None:
        rows, owner = vector_rows(data)
        assert owner is not None
        yield rows, owner
        return
    held = None
    for k, cells in enumerate(data._source.unit_cells(data._columns, data._unit)):
        rows, owner = _kept(*numbers_and_keys(cells))
        assert owner is not None
        held = (rows, owner) if k == 0 else None
        yield rows, owner
    data._read = held


def vector_source(data: PrivateVectors) -> Source | None:
    """The engine that can still be asked for sums over single records; None where there is none, or there are units."""
    return data._source if data._unit is None and data._read is None else None


def row_batches(data: PrivateVectors, size: int) -> Iterator[np.ndarray]:
    """Kept records in batches of at most `size` rows, for sums that are exact in any order, hence in any batches.

    Of data in an engine no more than one of its batches is held.
    """
    source = vector_source(data)
    if source is None:
        parts: Iterator[np.ndarray] = iter([vector_rows(data)[0]])
    else:
        parts = (_kept(rows, None)[0] for rows in source.number_batches(data._columns))
    for rows in parts:
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def _kept(rows: np.ndarray, keyed: tuple[np.ndarray, list[tuple]] | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows of finite numbers, and the unit of each; rows of nobody are dropped."""
    keep = np.isfinite(rows).all(axis=1)
    owner = None
    if keyed is not None:
        owner, keys = keyed
        keep &= np.array([key != _MISSING for key in keys], dtype=bool)[owner]
        owner = owner[keep]
    # Of numbers that stand for texts too zeros have no sign: with it a text elsewhere in the column would be seen.
    kept = np.ascontiguousarray(rows[keep])
    kept += 0.0
    return kept, owner


def _checked_columns(
    data: Any, source: Source | None, columns: Sequence[Hashable] | None, unit: Hashable | None
) -> tuple[Hashable, ...]:
    if isinstance(data, np.ndarray) and unit is not None:
        raise TypeError(f"unit={unit!r} names a column, and data is an array without names; pass a dataframe")
    if columns is None:
        if isinstance(data, np.ndarray):
            columns = range(data.shape[1] if data.ndim == 2 else 0)
        else:
            found = source.all_names() if isinstance(source, TextSource) else source.names if source else None
            columns = [name for name in (column_names(data) if found is None else found) if name != unit]
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
    return checked

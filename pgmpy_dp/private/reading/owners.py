"""The owner of each record: identifiers are told apart exactly, by their own content.

What tells them apart is said in :mod:`pgmpy_dp.schema.cells`: "7", "007" and "7.0" are three, "1e400" and "2e400" two,
and integers stay integers, beyond 2**53 too. A record whose identifier is missing, or cannot be read at all, is
nobody's.

Privacy
-------
:func:`identity` is a function of one cell, so records are grouped by a property of each record alone. It is one to one
on texts and on integers: people with different identifiers are never one.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pgmpy_dp.private.reading.arrow_cells import Cells, Column, cells_of, filled, keyed
from pgmpy_dp.private.reading.source_base import Source
from pgmpy_dp.schema import Schema, match_key
from pgmpy_dp.schema.cells import Identity


class GuessedTypesWarning(UserWarning):
    """Persons, or codes, are told apart in a frame, whose library may have guessed types of columns from their cells.

    It depends on what kind of object the data are, and never on a record.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, PrivateTable
    >>> frame = pd.DataFrame({"patient": [7, 8], "ill": [0, 1]})
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     table = PrivateTable(frame, {"ill": [0, 1]}, ledger=Budget(epsilon=1.0), unit="patient")
    >>> [warning.category.__name__ for warning in caught]
    ['GuessedTypesWarning']
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


def warn_of_guessed_types(source: Source, unit: Hashable, schema: Schema | None = None) -> None:
    """Warn where a library may have rewritten identifiers, or codes of a schema, before they came here.

    By the library and the schema alone, always. Where it reads 7, 7, 8, 8 and "?", it makes texts of them; of "007" it
    makes 7 unless another cell is no number. So one person's cell may join or part other people's records, and nothing
    here can tell.
    """
    named = {} if schema is None else {n: s for n, s in schema.states.items() if schema.reading(n).codes}
    # Words are themselves in any frame; of categories that are to be found nobody knows.
    codes = [n for n, states in named.items() if any(match_key(s)[0] in ("number", "tuple") for s in states)]
    if source.guesses_types and (unit is not None or codes):
        what = f"codes={codes!r} names columns" if unit is None else f"unit={unit!r} is a column"
        warnings.warn(
            f"{what} of a frame, whose types a library may have guessed when it read a file: then one odd "
            f"{'code' if unit is None else 'identifier'} rewrites those of other people (7 becomes '007' or 7.0), and "
            "the guarantee is for frames that differ in a person as they are now. Pass the path of the file, or read "
            "this column as text (dtype=str in pandas, schema_overrides in polars) and filter this GuessedTypesWarning",
            GuessedTypesWarning,
            stacklevel=4,  # the caller of the constructor, which `PrivateData` wraps
        )


def identity(cell: Any, kind: Identity = "unit") -> bytes | None:
    """Return what tells a unit from others, :func:`~pgmpy_dp.schema.cells.match_key` in bytes; None for nobody's.

    Examples
    --------
    >>> identity(7), identity("7"), identity(7.0), identity("007"), identity(2**53 + 1), identity(None)
    (b'=7', b'=7', b'=7', b'=007', b'=9007199254740993', None)
    """
    key = match_key(cell, kind)
    return key[1] if key[0] == "unit" else None


class Owners:
    """The units of records, batch by batch, in any types and any order.

    Parameters
    ----------
    kind : {"unit", "integer"}
        Which identifiers are one.

    Examples
    --------
    >>> owners = Owners()
    >>> owners.add(pa.array([7, None, 8]))
    >>> owners.add(pa.array(["8", "x"]))
    >>> owners.numbered().tolist(), owners.identities([0, 2])
    ([0, -1, 1, 1, 2], [b'=7', b'=x'])
    """

    def __init__(self, kind: Identity = "unit") -> None:
        self._kind = kind
        self._columns: list[Any] = []
        self._keys: list[bytes] | np.ndarray = []

    def add(self, column: Column) -> None:
        """The next batch."""
        # A batch of other types is not held: only who is in it.
        whole = not isinstance(column, Cells | pa.ExtensionArray) and pa.types.is_integer(column.type)
        self._columns.append(column if whole else self._identified(column))

    def numbered(self) -> np.ndarray:
        """Return whose each record is, 0, 1, ..., in an order that depends on the records; -1 for nobody's."""
        columns, self._columns = self._columns, []
        if not columns or any(isinstance(column, Cells) for column in columns) or _signs_differ(columns):
            owner = self._numbered_cells([c if isinstance(c, Cells) else self._identified(c) for c in columns])
        else:
            owner = self._numbered_integers(columns)
        del columns
        pa.default_memory_pool().release_unused()
        return owner

    def identities(self, units: Sequence[int]) -> list[bytes]:
        """Return the :func:`identity` of some of the units that `numbered` numbers."""
        if isinstance(self._keys, np.ndarray):
            return [b"=%d" % int(self._keys[unit]) for unit in units]
        return [self._keys[unit] for unit in units]

    def _identified(self, column: Column) -> Cells:
        cells = cells_of(column)
        return Cells(cells.places, [identity(cell, self._kind) for cell in cells.listed])

    def _numbered_cells(self, columns: list[Cells]) -> np.ndarray:
        positions, keys = keyed(columns, lambda key: key)
        place = np.cumsum([key is not None for key in keys]) - 1
        place[[key is None for key in keys]] = -1
        self._keys = [key for key in keys if key is not None]
        return place.astype(np.int64)[positions] if len(keys) else positions

    def _numbered_integers(self, columns: list[pa.Array]) -> np.ndarray:
        import pandas as pd

        is_missing = np.concatenate([np.asarray(column.is_null()) for column in columns])
        dtype = np.uint64 if any(column.type == pa.uint64() for column in columns) else np.int64
        values = np.concatenate([filled(column).astype(dtype) for column in columns])
        # Of integers pandas' hash tables are exact; what is missing is -1.
        owner, keys = pd.factorize(pd.arrays.IntegerArray(values, is_missing))
        self._keys = keys.to_numpy(dtype)
        return owner.astype(np.int64, copy=False)


def _signs_differ(columns: list[pa.Array]) -> bool:
    """Whether no one type of integers holds all of them."""
    types = {column.type for column in columns}
    return pa.uint64() in types and any(map(pa.types.is_signed_integer, types))

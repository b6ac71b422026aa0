"""The owner of each record: identifiers are told apart exactly, by their own content.

An identifier is a text, and a whole number is the text of its digits: so 7 in one reader is "7" in another. Texts are
what they are: "7", "007" and "7.0" are three, "1e400" and "2e400" two, and bytes that are no UTF-8 are those bytes.
Integers stay integers, beyond 2**53 too. A record whose identifier is missing, or cannot be read at all, is nobody's.

Privacy
-------
:func:`identity` is a function of one cell, so records are grouped by a property of each record alone. It is one to one
on texts and on integers: people with different identifiers are never one.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from pgmpy_dp.private.reading.arrow_cells import Cells, Column, cells_of, filled, places_among
from pgmpy_dp.private.reading.source_base import Source
from pgmpy_dp.schema import INTERRUPTS, MISSING, match_key

_EXACT_FLOATS = 2.0**53
_DIGITS = 1000


class GuessedTypesWarning(UserWarning):
    """Persons are told apart in a frame, whose library may have guessed the types of columns from their cells.

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


def warn_of_guessed_types(source: Source, unit: Hashable) -> None:
    """Warn where a library may have rewritten identifiers before they came here: by the library alone, always.

    Where it reads 7, 7, 8, 8 and "?", it makes texts of them; of "007" it makes 7 unless another cell is no number. So
    one person's cell may join or part other people's records, and nothing here can tell.
    """
    if source.guesses_types:
        warnings.warn(
            f"unit={unit!r} is a column of a frame, whose types a library may have guessed when it read a file: then "
            "one odd identifier rewrites those of other people (7 becomes '007' or 7.0), and the guarantee is for "
            "frames that differ in a person as they are now. Pass the path of the file, or read this column as text "
            "(dtype=str in pandas, schema_overrides in polars) and filter this GuessedTypesWarning",
            GuessedTypesWarning,
            stacklevel=4,  # the caller of the constructor, which `PrivateData` wraps
        )


def identity(cell: Any) -> bytes | None:
    """Return what tells a unit from others; None for nobody's.

    Examples
    --------
    >>> identity(7), identity("7"), identity(7.0), identity("007"), identity(2**53 + 1), identity(None)
    (b'=7', b'=7', b'=7', b'=007', b'=9007199254740993', None)
    """
    if type(cell) is bytes:  # as most are: texts of Arrow and of files
        return b"=" + cell
    try:
        return _identity(cell)
    except INTERRUPTS:
        raise
    except BaseException:
        return None


def _identity(cell: Any) -> bytes | None:
    if isinstance(cell, bytes | bytearray | memoryview):
        return b"=" + bytes(cell)
    if isinstance(cell, str):
        return b"=" + str.__str__(cell).encode("utf-8", "surrogatepass")
    if isinstance(cell, list | tuple | np.ndarray) and type(cell).__name__ != "MonthDayNano":  # a length of time
        parts = [_identity(part) for part in cell]
        return b"*" + b"".join(b"-" if part is None else b"%d:%b" % (len(part), part) for part in parts)
    key = match_key(cell)
    if key == MISSING or key[0] == "unreadable":
        return None
    if key[0] == "text":  # times and lengths of time, objects that are spelled so
        return b"=" + key[1].encode("utf-8", "surrogatepass")
    if isinstance(cell, bool | np.bool_):
        return b"=" + str(bool(cell)).encode()
    if isinstance(cell, int | np.integer):
        return b"=%d" % int(cell)
    if isinstance(cell, Decimal):
        # Beyond that Python writes no digits, and the digits of 1E+999999999 fill the memory.
        whole = cell.adjusted() < _DIGITS and cell == cell.to_integral_value()
        return b"=%d" % int(cell) if whole else b"=" + str(cell.normalize()).encode()
    if key[0] == "number" and isinstance(cell, float | np.floating | complex | np.complexfloating):
        number = key[1]
        return b"=%d" % int(number) if abs(number) < _EXACT_FLOATS and number.is_integer() else b"=%a" % number
    # What is like a number as a text (an object of some class) is that text.
    return b"=" + str(cell).encode("utf-8", "surrogatepass")


class Owners:
    """The units of records, batch by batch, in any types and any order.

    Examples
    --------
    >>> owners = Owners()
    >>> owners.add(pa.array([7, None, 8]))
    >>> owners.add(pa.array(["8", "x"]))
    >>> owners.numbered().tolist(), owners.identities([0, 2])
    ([0, -1, 1, 1, 2], [b'=7', b'=x'])
    """

    def __init__(self) -> None:
        self._columns: list[Any] = []
        self._keys: list[bytes] | np.ndarray = []

    def add(self, column: Column) -> None:
        """The next batch."""
        # A batch of other types is not held: only who is in it.
        whole = not isinstance(column, Cells) and _is_whole(column)
        self._columns.append(column if whole else _identified(cells_of(column)))

    def numbered(self) -> np.ndarray:
        """Return whose each record is, 0, 1, ..., in an order that depends on the records; -1 for nobody's."""
        columns, self._columns = self._columns, []
        if not columns or any(isinstance(column, Cells) for column in columns) or _signs_differ(columns):
            owner = self._numbered_cells([c if isinstance(c, Cells) else _identified(cells_of(c)) for c in columns])
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

    def _numbered_cells(self, columns: list[Cells]) -> np.ndarray:
        positions, keys = places_among(columns, lambda key: key)
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


def _identified(cells: Cells) -> Cells:
    return Cells(cells.places, [identity(cell) for cell in cells.listed])


def _is_whole(column: pa.Array) -> bool:
    return not isinstance(column, pa.ExtensionArray) and pa.types.is_integer(column.type)

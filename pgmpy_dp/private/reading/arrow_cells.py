"""Columns and their cells: an array of Arrow, or places in a list of Python's values. Nothing here decides by a column.

Privacy
-------
Cells stand for one another only where they have one type and one content: Arrow's dictionaries are exact by bytes, a
dict of Python's is used for one exact type at a time. So it does not matter what a library takes for equal (a
collation, a hash of a text that ends at its first zero character, 1 and True), and no cell changes what another one is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgmpy_dp.private.silence import silence
from pgmpy_dp.schema import INTERRUPTS, clock_text, duration_nanoseconds, key_number, match_key, moment_text

NOT_OURS = (*INTERRUPTS, MemoryError)
"""What is no failure to read a cell. Some failures are not an Exception: engines in Rust panic with their own class."""

# Values of one of these types are the same where Python says so (0.0 and -0.0 too, which no key tells apart).
_EXACT = {str, int, float, bool, bytes, np.str_, np.bool_, *(np.dtype(c).type for c in np.typecodes["AllInteger"])}
_EXACT |= {np.dtype(code).type for code in np.typecodes["Float"]}
_EXACT_IDS, _OF_NONE = frozenset(map(id, _EXACT)), id(type(None))

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_DAY = 86_400 * 10**9


class _NoValue:
    """A stand-in for a cell that Python has no value for, such as a date after the year 9999: outside any schema."""

    def __str__(self) -> str:
        raise ValueError("no value")


UNREADABLE = _NoValue()


@dataclass(frozen=True)
class Cells:
    """A column as places in a list of cells.

    Attributes
    ----------
    places : ndarray of integers, shape (rows,)
    listed : list
        The cells. One may be listed more than once, or be that of no row.
    """

    places: np.ndarray
    listed: list

    def __len__(self) -> int:
        return len(self.places)

    def used(self) -> Cells:
        """The same column, without most of the cells that are nobody's, where there are many."""
        if len(self.listed) <= len(self.places) + 16:
            return self
        used, places = np.unique(self.places, return_inverse=True)
        return Cells(places, [self.listed[k] for k in used.tolist()])


Column: TypeAlias = pa.Array | Cells
"""A batch of one column."""


def quietly(read: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a library without its warnings about odd cells."""
    with silence():
        return read(*arguments, **options)


def cells_of(column: Column) -> Cells:
    """The column as places in a list of its different cells; what is missing has the place of a None.

    Examples
    --------
    >>> cells = cells_of(pa.array(["b", None, "b"]))
    >>> cells.places.tolist(), cells.listed
    ([0, 1, 0], [b'b', None])
    """
    if isinstance(column, Cells):
        return column.used()
    arrow_type, types = column.type, pa.types
    if types.is_run_end_encoded(arrow_type):
        return cells_of(pc.run_end_decode(column))
    if isinstance(column, pa.DictionaryArray):
        values, indices = column.dictionary, dictionary_places(column)
        if len(values) > len(column):  # of a whole file, perhaps: only those that are here
            used, indices = np.unique(indices, return_inverse=True)
            inside = used < len(values)
            values = values.take(pa.array(used[inside].astype(np.int64)))
        value_cells = cells_of(values)
        return Cells(np.append(value_cells.places, len(value_cells.listed))[indices], [*value_cells.listed, None])
    if types.is_float16(arrow_type):
        column = column.cast(pa.float32())
    try:
        if isinstance(column, pa.ExtensionArray) or types.is_nested(arrow_type) or types.is_null(arrow_type):
            raise pa.ArrowNotImplementedError
        coded = column.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError):
        return cells_of_objects(readily(column.to_pylist, lambda k: column[k].as_py(), len(column)))
    return Cells(dictionary_places(coded), [*_values(coded.dictionary), None])


def cells_of_objects(values: list) -> Cells:
    """Cells of any types, those that are not of a few well-known ones each for itself."""
    # By addresses, which last as long as the values: a class may refuse to be hashed, or compared.
    first = type(values[0]) if values else str
    is_one = id(first) in _EXACT_IDS and all(map(is_, map(type, values), repeat(first)))
    types = [] if is_one else list(map(id, map(type, values)))
    classes = {*types}
    if is_one or (len(classes - {_OF_NONE}) <= 1 and classes <= {*_EXACT_IDS, _OF_NONE}):
        seen: dict[Any, int] = {}
        places = np.fromiter((seen.setdefault(v, len(seen)) for v in values), dtype=np.int64, count=len(values))
        return Cells(places, list(seen))
    # One type after the other: where one odd record slowed all others down, a stopwatch would see it.
    places, listed = np.empty(len(values), dtype=np.int64), [None]
    number = {cls: k for k, cls in enumerate(classes)}
    which = np.fromiter(map(number.__getitem__, types), dtype=np.int64, count=len(values))
    is_exact = np.array([cls in _EXACT_IDS for cls in number], dtype=bool)
    for cls, k in number.items():
        if cls in _EXACT_IDS:
            rows = np.flatnonzero(which == k)
            of_type = cells_of_objects([values[row] for row in rows.tolist()])
            places[rows] = of_type.places + len(listed)
            listed += of_type.listed
        elif cls == _OF_NONE:
            places[which == k] = 0
    odd = [row for row in np.flatnonzero(~is_exact[which]).tolist() if values[row] is not None]
    places[odd] = len(listed) + np.arange(len(odd))
    listed += [values[row] for row in odd]
    return Cells(places, listed)


def dictionary_places(array: pa.DictionaryArray) -> np.ndarray:
    """Places in the dictionary, its length for what is missing."""
    indices = array.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(array.dictionary))
    return filled(indices)


def filled(column: pa.Array) -> np.ndarray:
    """Numbers as they are in memory, 0 for missing ones; not to be written to. NumPy's own way would import pandas."""
    return np.from_dlpack(column.fill_null(0) if column.null_count else column)


def plain_numbers(column: pa.Array) -> np.ndarray | None:
    """Numbers as doubles, NaN for missing, if every cell of the type is a number, else None; not to be written to."""
    arrow_type, types = column.type, pa.types
    if isinstance(column, pa.ExtensionArray) or not (
        types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_boolean(arrow_type)
    ):
        return None
    if types.is_boolean(arrow_type):
        column = column.cast(pa.uint8())
    # Not by a cast of Arrow's, which refuses integers that a double rounds, and would tell of them.
    doubles = filled(column).astype(np.float64, copy=column.null_count > 0)
    if column.null_count:
        doubles[np.asarray(column.is_null())] = np.nan
    return doubles


def numbers(column: Column) -> np.ndarray:
    """A column as doubles: a number, a truth value or the text of a number is that number, anything else NaN."""
    if not isinstance(column, Cells):
        plain = plain_numbers(column)
        if plain is not None:
            return plain
    cells = cells_of(column)
    keys = map(match_key, cells.listed)
    return np.array([key_number(key) for key in keys], dtype=np.float64)[cells.places]  # None is NaN here


def number_columns(columns: Sequence[Column]) -> list[np.ndarray]:
    """A batch of columns as numbers, NaN for what is none."""
    return [quietly(numbers, column) for column in columns]


def keyed(columns: Sequence[Column], key: Callable[[Any], Any] = match_key) -> tuple[np.ndarray, list]:
    """Batches of one column as positions in a list of their different keys, match keys by default.

    The keys are in the order in which they appear, which is as private as the cells.

    Examples
    --------
    >>> positions, keys = keyed([pa.array([7, 8]), cells_of_objects(["7", None])])
    >>> positions.tolist(), keys
    ([0, 1, 0, 2], [('number', 7.0), ('number', 8.0), ('missing',)])
    """
    import pandas as pd

    seen: dict[Any, int] = {}
    parts = [np.empty(0, dtype=np.int64)]
    for column in columns:
        cells = cells_of(column)
        place = np.zeros(len(cells.listed), dtype=np.int64)
        place[cells.places] = 1  # of what is listed, some may be of other batches
        for k in np.flatnonzero(place).tolist():
            place[k] = seen.setdefault(key(cells.listed[k]), len(seen))
        parts.append(place[cells.places])
    # Of integers, pandas' hash tables are exact.
    positions, appeared = pd.factorize(np.concatenate(parts))
    keys = list(seen)
    return positions.astype(np.int64, copy=False), [keys[k] for k in appeared.tolist()]


def key_counts(column: Column, key: Callable[[Any], tuple] = match_key) -> Counter[tuple]:
    """Count the cells with each key.

    Examples
    --------
    >>> dict(key_counts(pa.array([1.0, 1.0, float("nan")])))
    {('number', 1.0): 2, ('missing',): 1}
    """
    positions, keys = keyed([column], key)
    return Counter(dict(zip(keys, np.bincount(positions).tolist(), strict=True)))


def in_order(columns: Sequence[Column], places: np.ndarray) -> np.ndarray:
    """Places in batches of a column, in the order of its cells' match keys; those of equal cells stay in theirs.

    Times with a time zone are in the order in which they happened, durations in that of their length.

    Examples
    --------
    >>> in_order([pa.array([8.0, float("nan"), 7.0, 8.0])], np.arange(4)).tolist()
    [1, 2, 0, 3]
    """
    plain = [None if isinstance(column, Cells) else plain_numbers(column) for column in columns]
    if all(doubles is not None for doubles in plain):
        values = np.concatenate([np.empty(0), *(doubles for doubles in plain if doubles is not None)])[places]
        plain.clear()
        order = values.argsort(kind="stable")
        # NumPy puts what is missing last; its key is before those of numbers.
        is_missing = np.count_nonzero(np.isnan(values))
        return places[np.roll(order, is_missing)]
    positions, keys = keyed(columns, _order_key)
    return by_counting(key_ranks(keys)[positions], places)


def key_ranks(keys: Sequence[tuple]) -> np.ndarray:
    """The place of each of some different match keys in their order."""
    ranks = np.empty(len(keys), dtype=np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks


def by_counting(numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Places in an array of whole numbers from 0 on, in their order; those of equal numbers stay in theirs.

    Examples
    --------
    >>> by_counting(np.array([70_000, 2, 70_000, 1]), np.arange(4)).tolist()
    [3, 1, 0, 2]
    """
    for shift in range(0, int(numbers.max(initial=0)).bit_length(), 16):
        # Of 16 bits NumPy's stable sort only counts.
        places = places[(numbers >> shift).astype(np.uint16)[places].argsort(kind="stable")]
    return places


def _order_key(value: Any) -> tuple:
    """The match key of a cell, or the length of a duration, whose text is in no order."""
    key = match_key(value)
    if key[0] != "text":
        return key
    try:  # an odd object in a record may fail where it is asked what it is
        is_duration = isinstance(value, timedelta | np.timedelta64) or type(value).__name__ == "MonthDayNano"
        return ("time", duration_nanoseconds(value)) if is_duration else key
    except INTERRUPTS:
        raise
    except BaseException:
        return key


def readily(read: Callable[[], list], cell: Callable[[int], Any], n: int) -> list:
    """All cells at once or, where that fails, one by one: that one cannot be read must not be seen."""
    try:
        return read()
    except NOT_OURS:
        raise
    except BaseException:
        return [_tried(cell, k) for k in range(n)]


def _tried(read: Callable[[Any], Any], what: Any) -> Any:
    try:
        return read(what)
    except NOT_OURS:
        raise
    except BaseException:
        return UNREADABLE


def _values(array: pa.Array) -> list:
    """Different cells, as match_key takes them; what Python has no value for is unreadable."""
    arrow_type, types = array.type, pa.types
    if types.is_timestamp(arrow_type):
        step = _NANOSECONDS[arrow_type.unit]
        return _times(array, lambda ticks: moment_text(ticks * step, arrow_type.tz is not None))
    if types.is_date(arrow_type):
        step = _DAY if types.is_date32(arrow_type) else 10**6
        return _times(array, lambda ticks: moment_text(ticks * step, False))
    if types.is_time(arrow_type):
        step = _NANOSECONDS[arrow_type.unit]
        return _times(array, lambda ticks: clock_text(ticks * step))
    if types.is_duration(arrow_type):
        return _times(array, lambda t: np.int64(t).astype(f"m8[{arrow_type.unit}]") if t != -(2**63) else UNREADABLE)
    if any(is_kind(arrow_type) for is_kind in (types.is_string, types.is_large_string, types.is_binary)):
        array = array.cast(pa.large_binary())  # texts need not be UTF-8
    return readily(array.to_pylist, lambda k: array[k].as_py(), len(array))


def _times(array: pa.Array, cell: Callable[[int], Any]) -> list:
    ticks = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    return [None if tick is None else _tried(cell, tick) for tick in ticks]

"""Private columns of cells whose values nobody has listed: what each cell marks, and how often.

Privacy
-------
Everything here is about one column at a time. A record has one cell in each, and what that cell marks or is counted as
is a function of the cell alone and of what is public: its key, by what it means or as it is written, spelled as the
schema says. So a record adds 1 to at most one count of each column, whatever the other records hold.

Units with several records
--------------------------
Of each unit, a person say, one record is drawn, and it is the only one that anything here sees (:func:`drawn_counts`).
The draw is a function of a secret key, of the unit's own identifier and of its own records, put in the order of their
keys: records whose cells have equal keys are the same to everything that follows. The draw does not depend on the
records of other units, on the order of the file, or on where the file is cut into batches. Records without a unit are
nobody's and are dropped. So for every key, data that differ in a unit, with any number of records, become records that
differ in one: added or removed, or in the place of another (a unit with records keeps one). What is said of one record
below is then said of one unit, under the same adjacency. The key is drawn once, and is secret so that nobody can
arrange identifiers for certain records to be drawn; the guarantee holds whatever it is.
"""

from __future__ import annotations

import math
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.data_base import Facts, PrivateData, checked_public_count
from pgmpy_dp.private.data.units import drawn_rows, fresh_key
from pgmpy_dp.private.discovered import require_same_promise
from pgmpy_dp.private.entry import decode_unit, encode_unit
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.reading.arrow_cells import Column, key_counts, key_ranks, keyed, quietly
from pgmpy_dp.private.reading.owners import Owners, warn_of_guessed_types
from pgmpy_dp.private.reading.source_base import EveryText
from pgmpy_dp.private.reading.sources import is_path, open_source
from pgmpy_dp.schema import MISSING, Number, Schema
from pgmpy_dp.shown import quantity

_KINDS = ("missing", "number", "text")


@dataclass(frozen=True, eq=False)
class ColumnFacts(Facts):
    """The public facts of columns of cells.

    Parameters
    ----------
    adjacency : Adjacency
    schema : Schema
    n_records : int, optional
        The number of records, or of units, where it is public.
    """

    schema: Schema
    n_records: int | None = None


class PrivateColumns(PrivateData):
    """Columns of records, without a list of their values, behind an adjacency and a ledger.

    Like :class:`~pgmpy_dp.private.data.table.PrivateTable` it shows no records, prints only public facts and refuses to
    be copied or pickled. It keeps how many cells of each column have each key.

    Parameters
    ----------
    data : dataframe, str or Path
        As for :class:`~pgmpy_dp.private.data.table.PrivateTable`.
    schema : Schema
        Names the columns, and says how their cells are spelled; their states do not matter here.
    adjacency, ledger, n_records, unit, random_state
        As for :class:`~pgmpy_dp.private.data.table.PrivateTable`. Of a unit one record counts, drawn at random.

    Raises
    ------
    TypeError, ValueError
        For bad arguments and missing columns. Nothing is raised because of a record.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"job": ["nurse", "baker"]})
    >>> PrivateColumns(frame, Schema({"job": ["a", "b"]}), ledger=Budget(epsilon=1.0, delta=1e-6))
    PrivateColumns(1 column, adjacency='add_remove', n_records=None, spent 0-DP of (1, 1e-06)-DP)
    """

    __slots__ = ("_counted", "_key", "_n_records", "_schema", "_unit")

    def __init__(
        self,
        data: Any,
        schema: Schema,
        *,
        adjacency: str = Adjacency.ADD_REMOVE,
        ledger: Ledger | Budget | None = None,
        n_records: int | None = None,
        unit: Hashable = None,
        random_state: int | None = None,
    ) -> None:
        self._schema = Schema.coerce(schema, "schema")
        self._unit = None if unit is None else decode_unit(encode_unit(unit))
        column = getattr(self._unit, "column", self._unit)
        if column is not None and column in schema:
            raise ValueError(f"unit={unit!r} is a column that is asked about too; leave it out of the variables")
        super().__init__(adjacency, ledger)
        require_same_promise(schema, self._ledger if ledger is None else ledger, self._adjacency, self._unit)
        self._key = fresh_key(random_state)
        self._n_records = checked_public_count("n_records", n_records, self._adjacency)
        source = open_source(data)
        names = [*schema.variables, *(() if column is None else (column,))]
        source.positions(names)  # all are there
        source.require_types(self._schema)
        warn_of_guessed_types(source, column, self._schema)
        keys = [self._schema.reading(name).key for name in self._schema.variables]
        spelled = [
            EveryText() if self._schema.reading(name).as_written else frozenset[str]() for name in schema.variables
        ]
        with source.one_pass(names, [*spelled, None][: len(names)]) as batches:
            owners = Owners("integer" if getattr(self._unit, "kind", None) == "integer" else "unit")
            drawn = column is not None
            self._counted = drawn_counts(batches, self._key, keys, owners) if drawn else cell_counts(batches, keys)

    @property
    def schema(self) -> Schema:
        """The columns, and how their cells are spelled."""
        return self._schema

    @property
    def n_records(self) -> int | None:
        """The declared public number of records, or of units, or None."""
        return self._n_records

    @property
    def _names(self) -> tuple[Hashable, ...]:
        return self._schema.variables

    def facts(self) -> ColumnFacts:
        return ColumnFacts(self._adjacency, self._schema, self._n_records)

    def _public(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"n_records": self._n_records}
        return facts if self._unit is None else facts | {"unit": encode_unit(self._unit), "rows_per_unit": 1}

    def __repr__(self) -> str:
        unit = "" if self._unit is None else f"unit={self._unit!r}, "
        return (
            f"PrivateColumns({quantity(len(self._names), 'column')}, {unit}adjacency={str(self._adjacency)!r}, "
            f"n_records={self._n_records}, spent {self._ledger.spent} of {self._ledger.budget})"
        )


def in_their_order(data: Any, names: Iterable[Hashable]) -> list[Hashable]:
    """Names of columns in the order of the data, which is public; ValueError for those that are not there."""
    names = list(names)
    places = open_source(data).positions(names)
    return [name for _, name in sorted(zip(places, names, strict=True), key=lambda pair: pair[0])]


def text_columns(data: Any, names: Iterable[Hashable]) -> list[Hashable]:
    """Names of the columns that hold texts by their declaration, which is public.

    What another library streams is not opened for that: it may be handed out once.
    """
    declares = is_path(data) or hasattr(data, "columns") or hasattr(data, "schema")
    return [name for name in names if open_source(data).has_texts(name)] if declares else []


def _counts(data: PrivateColumns, name: Hashable) -> Counter[tuple]:
    """Count the cells of a column by key, as they are spelled in the data: **to be noised**."""
    return data._counted[data._names.index(name)]


def cell_counts(batches: Iterable[Sequence[Column]], keys: Sequence[Callable[[Any], tuple]]) -> list[Counter[tuple]]:
    """Count the cells of each column by its key: **to be noised**."""
    counts: list[Counter[tuple]] = [Counter() for _ in keys]
    for columns in batches:
        for total, column, key in zip(counts, columns, keys, strict=True):
            total.update(quietly(key_counts, column, key))
    return counts


def drawn_counts(
    batches: Iterable[Sequence[Column]],
    key: bytes,
    cell_keys: Sequence[Callable[[Any], tuple]],
    owners: Owners | None = None,
) -> list[Counter[tuple]]:
    """Count units by a key of each column, from the one record that is drawn of each unit: **to be noised**.

    Parameters
    ----------
    batches : iterable of list of columns
        The last column is that of units.
    key : bytes
        By which records are drawn; see the module.
    cell_keys : sequence of callable
        From a cell of each column to its key.
    owners : Owners, optional
        New ones, by which units are told apart; default: as texts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from pgmpy_dp.schema import match_key
    >>> columns = [pa.array([1.0, 1.0, 2.0, 3.0]), pa.array([7, 7, 8, None])]
    >>> [dict(counts) for counts in drawn_counts([columns], b"key", [match_key])]
    [{('number', 1.0): 1, ('number', 2.0): 1}]
    """
    owners, parts = owners or Owners(), []
    for *columns, whose in batches:
        owners.add(whose)
        parts.append(columns)
    owner = owners.numbered()
    named = owner >= 0
    ranked, listed = [], []
    for *column, cell_key in zip(*parts, cell_keys, strict=True):
        position, keys = quietly(keyed, column, cell_key)
        ranked.append(key_ranks(keys)[position[named]])
        listed.append(sorted(keys))
    kept = drawn_rows(lambda rows: [places[rows] for places in ranked], owner[named], owners, 1, key)
    times = [np.bincount(places[kept], minlength=len(keys)) for places, keys in zip(ranked, listed, strict=True)]
    return [
        Counter({match: int(number) for match, number in zip(keys, numbers, strict=True) if number})
        for keys, numbers in zip(listed, times, strict=True)
    ]


def record_count(data: PrivateColumns) -> np.ndarray:
    """The number of records, or of units, shape (1,): exact, **to be noised**."""
    return np.array([sum(_counts(data, data._names[0]).values())], dtype=np.int64)


def number_counts(data: PrivateColumns, name: Hashable, number: Number) -> np.ndarray:
    """Count the cells of a column in each state of a divided number: exact, **to be noised**."""
    reading, code = data._schema.reading(name), number.coder()
    counts = np.zeros(len(number.states) + 1, dtype=np.int64)  # the last is of cells whose record does not count
    for key, times in _counts(data, name).items():
        counts[code(reading(key))] += times
    return counts[:-1]


def column_marks(
    data: PrivateColumns, names: Sequence[Hashable], max_length: int
) -> tuple[list[tuple[int, tuple]], np.ndarray]:
    """Return the marks of some columns' cells, in a fixed order, and how many cells make each: exact, **to be noised**.

    A mark is a place among `names` and a key: the one under which a cell is listed (`Reading.listed`), if
    :func:`mark_label` has a label for it. Any other cell marks nothing.

    Parameters
    ----------
    data : PrivateColumns
    names : sequence of hashable
    max_length : int
        Of labels that are texts.

    Returns
    -------
    marks : list of (int, key)
        Ascending.
    counts : ndarray of int64, shape (m,)

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"job": [" baker", "baker", 7, "7.0", None, "much too long"]})
    >>> schema = Schema({"job": ["a", "b"]}, strip=True)
    >>> data = PrivateColumns(frame, schema, ledger=Budget(epsilon=1.0, delta=1e-6))
    >>> marks, counts = column_marks(data, ["job"], 8)
    >>> marks, counts.tolist()
    ([(0, ('missing',)), (0, ('number', 7.0)), (0, ('text', 'baker'))], [1, 2, 2])
    """
    counts: Counter[tuple[int, tuple]] = Counter()
    for place, name in enumerate(names):
        reading = data._schema.reading(name)
        for cell, times in _counts(data, name).items():
            key = reading.listed(cell)
            if _has_label(key, max_length):
                counts[place, key] += times
    marks = sorted(counts, key=lambda mark: (mark[0], _KINDS.index(mark[1][0]), mark[1][1:]))
    return marks, np.array([counts[mark] for mark in marks], dtype=np.int64)


def mark_label(key: tuple) -> Any:
    """The label of a key: its text, or the number that stands for all spellings of it; None for missing.

    Examples
    --------
    >>> from pgmpy_dp.schema import match_key
    >>> mark_label(match_key("7.0")), mark_label(match_key(True)), mark_label(match_key("b"))
    (7, 1, 'b')
    """
    if key == MISSING:
        return None
    if key[0] != "number":
        return key[1]
    return int(key[1]) if key[1].is_integer() and abs(key[1]) < 2.0**53 else key[1]


def _has_label(key: tuple, max_length: int) -> bool:
    """Whether a key, as a cell is read, may be a category: a function of the cell and of public arguments alone.

    It may if it is missing, a finite number, or a text of printable signs and blanks that is not too long.
    """
    if key[0] == "text":
        if len(key[1]) > max_length:
            return False
        return all(sign.isprintable() or unicodedata.category(sign) == "Zs" for sign in key[1])
    return key == MISSING or (key[0] == "number" and math.isfinite(key[1]))


def mark_row(mark: tuple[int, tuple], max_length: int) -> list[int]:
    """A mark as 2 + max_length integers, which :func:`mark_key` reads back: a released array holds nothing else.

    The column's place; whether it is missing, a number or a text; the signs of a text, or the bits of a number; -1s.
    """
    place, key = mark
    content: list[int] = []
    if key[0] == "text":
        content = [ord(sign) for sign in key[1]]
    elif key[0] == "number":
        content = list(struct.unpack("<q", struct.pack("<d", key[1])))
    return [place, _KINDS.index(key[0]), *content, *([-1] * (max_length - len(content)))]


def mark_key(row: Sequence[int]) -> tuple[int, tuple]:
    """The mark that :func:`mark_row` has written.

    Examples
    --------
    >>> mark_key(mark_row((2, ("text", "baker")), 8)), mark_key(mark_row((0, ("number", 0.5)), 8))
    ((2, ('text', 'baker')), (0, ('number', 0.5)))
    """
    place, kind, *content = (int(number) for number in row)
    if _KINDS[kind] == "text":
        return place, ("text", "".join(chr(sign) for sign in content if sign >= 0))
    if _KINDS[kind] == "number":
        return place, ("number", struct.unpack("<d", struct.pack("<q", content[0]))[0])
    return place, MISSING

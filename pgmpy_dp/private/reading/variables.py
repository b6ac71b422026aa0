"""The codes of one variable's cells: what each different cell counts as, looked up for all that are like it.

What a cell is, is :func:`~pgmpy_dp.schema.cells.match_key` of it, as its variable compares cells (`Reading.key`), and
`Schema.coder` of that key. Numbers, where the
states say all about them (:class:`~pgmpy_dp.private.data.coding.Coding`), are placed among the cuts instead, which
gives the same.

Privacy
-------
A mark is a function of one cell and of the public schema. What is remembered here (texts and dictionaries that were
looked up) changes how long it takes, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pgmpy_dp.private.data.coding import DROPPED, OutsideCounted, coding, key_coder
from pgmpy_dp.private.reading.arrow_cells import (
    Cells,
    Column,
    cells_of,
    dictionary_places,
    filled,
    plain_numbers,
    quietly,
)
from pgmpy_dp.schema import MISSING, Schema

_MOST_KNOWN = 1 << 16
_MOST_LISTED = 1 << 16  # integers among the cuts, whose marks are listed
# One for all variables of a schema: it takes longer than they do. No class by another name, which a search would meet.
_outside_counted = lru_cache(16)(lambda schema: OutsideCounted(schema))


class Variable:
    """Marks of the cells of one discrete variable of K states.

    A mark k below K is of a cell that has the declared state k; K is of a cell whose record does not count; K + 1 + k
    is of one that counts in state k and has no declared state (an other-state, or a number outside of its bounds). A
    cell that is read as missing has the mark `blank`, that of the state None where this is declared, else the last.

    Parameters
    ----------
    schema : Schema
    name : hashable

    Attributes
    ----------
    states : int
        K.
    blank : int
    dtype : numpy.dtype
        Of marks and codes.

    Examples
    --------
    >>> variable = Variable(Schema({"a": ["no", "yes"]}, other={"a": "no"}), "a")
    >>> variable.marks(pa.array(["yes", "no", None, "?"])).tolist()
    [1, 0, 5, 3]
    >>> variable.codes(variable.marks(pa.array(["yes", "?", None]))).tolist()
    [1, 0, 0]
    """

    def __init__(self, schema: Schema, name: Hashable) -> None:
        self.states = size = schema.cardinality(name)
        self._has_others = name in schema.other or name in schema.numbers
        last = 2 * size + 1 if self._has_others else size + 1
        self.dtype = np.min_scalar_type(last)
        self._code, self._read, self._key = key_coder(schema, name), schema.reading(name), schema.reading(name).key
        states = schema.states[name]
        of_missing = (k for k, state in enumerate(states) if self._read.spelled(self._key(state)) == MISSING)
        self.blank = next(of_missing, last)  # a declared text "nan" is it too
        self._blank_code = code if (code := self._code(MISSING)) != DROPPED else size
        counted = _outside_counted(schema) if self._has_others else schema
        self._code_apart, self._outside = key_coder(counted, name), counted.cardinality(name) - self._has_others
        self._known: dict[str | bytes, int] = {}
        self._last: tuple[Any, ...] = (None, None, None)
        self._missing = self._mark(MISSING)
        made = coding(schema, name)
        self._decides_numbers = made.decides_numbers
        if made.decides_numbers:
            self._place_numbers(made, coding(counted, name))

    def marks(self, column: Column) -> np.ndarray:
        """The mark of each cell."""
        return quietly(self._marks, column)

    def codes(self, marks: np.ndarray) -> np.ndarray:
        """Positions of states, K for a cell whose record does not count."""
        if not self._has_others:  # the last mark is of blank cells that do not count
            return marks if self.blank < self.states else np.minimum(marks, self.dtype.type(self.states))
        codes = np.where(marks > self.states, marks - self.dtype.type(self.states + 1), marks)
        if self.blank > self.states:
            codes[marks == self.blank] = self._blank_code
        return codes

    def kept(self, marks: np.ndarray) -> np.ndarray:
        """Return which records this variable lets count."""
        return self.codes(marks) != self.states

    def _marks(self, column: Column) -> np.ndarray:
        if isinstance(column, pa.RunEndEncodedArray):
            column = pc.run_end_decode(column)
        if isinstance(column, pa.DictionaryArray) and len(column.dictionary) <= len(column) + 16:
            return self._of_dictionary(column.dictionary)[dictionary_places(column)]
        if self._decides_numbers and not isinstance(column, Cells | pa.ExtensionArray):
            if self._table is not None and pa.types.is_integer(column.type):
                return self._of_integers(column, self._table)
            numbers = plain_numbers(column)
            if numbers is not None:
                return self._of_numbers(numbers)
        cells = cells_of(column)
        return self._listed(cells.listed)[cells.places]

    def _of_dictionary(self, values: pa.Array) -> np.ndarray:
        """Return a dictionary's marks, made once for all batches: while it is held, no other has its address."""
        where = (*(0 if b is None else b.address for b in values.buffers()), values.offset, len(values), values.type)
        if self._last[0] != where:
            self._last = (where, values, np.append(self._marks(values), self.dtype.type(self._missing)))
        return self._last[2]

    def _listed(self, cells: Sequence[Any]) -> np.ndarray:
        known, marks = self._known, np.empty(len(cells), dtype=self.dtype)
        if len(known) > _MOST_KNOWN:
            known.clear()
        for k, cell in enumerate(cells):
            if type(cell) is bytes or type(cell) is str:  # of one type, equal is the same
                mark = known.get(cell)
                if mark is None:
                    mark = known[cell] = self._mark(self._key(cell))
            else:
                mark = self._mark(self._key(cell))
            marks[k] = mark
        return marks

    def _mark(self, key: tuple) -> int:
        if self._read(key) == MISSING:
            return self.blank
        return self._joined(self._code(key), self._code_apart(key))

    def _joined(self, code: int, apart: int) -> int:
        """The mark of a cell that counts as `code`, and as `apart` where what is outside has a code for itself."""
        if code == DROPPED:
            return self.states
        return self.states + 1 + code if apart == self._outside else code

    def _place_numbers(self, made: Any, apart: Any) -> None:
        """Marks of all numbers: between cuts, and of those that count by themselves."""
        cuts = sorted({*made.cuts, *apart.cuts})
        first = [-math.inf, *cuts]
        self._cuts = np.array(cuts, dtype=np.float64)
        self._pieces = np.array([self._joined(_between(made, x), _between(apart, x)) for x in first], self.dtype)
        alone = sorted({number for number, _ in (*made.numbers, *apart.numbers)})
        self._alone = [(number, self._mark(("number", number))) for number in alone]
        ends: list[float] = [*(number for number in alone if math.isfinite(number)), *cuts]
        self._table: np.ndarray | None = None
        self._low, self._high = (math.floor(min(ends)) - 1, math.ceil(max(ends)) + 1) if ends else (0, 0)
        if self._high - self._low < _MOST_LISTED and abs(self._low) + abs(self._high) < 1 << 52:
            whole = np.arange(self._low, self._high + 1)
            self._table = self._of_numbers(whole.astype(np.float64))

    def _of_integers(self, column: pa.Array, table: np.ndarray) -> np.ndarray:
        values = filled(column)
        limits = np.iinfo(values.dtype)  # bounds within the type, so that nothing wraps
        low, high = max(self._low, int(limits.min)), min(self._high, int(limits.max))
        if low > high:  # all of them on one side
            marks = np.full(len(values), table[-1 if low > self._high else 0])
        else:
            marks = table[np.clip(values, low, high).astype(np.int64) - self._low]
        if column.null_count:
            marks[np.asarray(column.is_null())] = self._missing
        return marks

    def _of_numbers(self, x: np.ndarray) -> np.ndarray:
        marks = self._pieces[np.searchsorted(self._cuts, x, side="right")]
        if len(self._alone) > 8:
            values = np.array([number for number, _ in self._alone])
            nearest = np.minimum(np.searchsorted(values, x), len(values) - 1)
            matches = values[nearest] == x
            marks[matches] = np.array([mark for _, mark in self._alone], dtype=self.dtype)[nearest[matches]]
        else:
            for number, mark in self._alone:
                marks[x == number] = mark
        marks[np.isnan(x)] = self._missing
        return marks


def _between(made: Any, number: float) -> int:
    """The code of the numbers from `number` on up to the next cut."""
    return made.codes[int(np.searchsorted(made.cuts, number, side="right"))]

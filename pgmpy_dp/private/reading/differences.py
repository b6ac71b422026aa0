"""Columns that data do not have: differences of two numbers of the same record.

Privacy
-------
A difference is a function of two cells of one record and of the public schema, so that a record still has one cell in
each column, whatever the others hold.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pgmpy_dp.private.reading.arrow_cells import Column, keyed, plain_numbers, quietly
from pgmpy_dp.private.reading.source_base import Source, Spelled
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.orders import steps


class WithDifferences(Source):
    """A source with a column more for each difference that a schema declares.

    Parameters
    ----------
    source : Source
    schema : Schema
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source, self._schema, self._of = source, schema, schema.orders.differences
        self.is_ours, self.ordered, self.guesses_types = source.is_ours, source.ordered, source.guesses_types
        self.names = [*(name for name in source.names if name not in self._of), *self._of]

    @property
    def lines_without_record(self) -> tuple[int, int] | None:  # type: ignore[override]
        return self._source.lines_without_record

    def types(self) -> list[Any]:
        kinds = dict(zip(self._source.names, self._source.types(), strict=False))
        return [kinds.get(name, "double") for name in self.names] if kinds else []

    def check_types(self, names: Sequence[Hashable]) -> None:
        self._source.check_types(self._read(names))

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        read = self._read(names)
        texts = dict(zip(names, spelled, strict=True)) if spelled else {}
        for columns in self._source.batches(read, [texts.get(name, frozenset()) for name in read] if spelled else ()):
            cells = dict(zip(read, columns, strict=True))
            yield [self._differences(name, cells) if name in self._of else cells[name] for name in names]

    def _read(self, names: Sequence[Hashable]) -> list[Hashable]:
        """The columns of the source that some columns are made of."""
        return list(dict.fromkeys(one for name in names for one in self._of.get(name, (name,))))

    def _differences(self, name: Hashable, cells: dict[Hashable, Column]) -> pa.Array:
        number, (first, second) = self._schema.numbers[name], self._of[name]
        low, high = (quietly(self._values, one, cells[one]) for one in (first, second))
        return pa.array((high - low) * (number.resolution or 1.0), from_pandas=True)

    def _values(self, name: Hashable, column: Column) -> np.ndarray:
        """The number of each cell as its table counts it, in steps of the resolution; NaN where it has none."""
        number, reading = self._schema.numbers[name], self._schema.reading(name)
        is_plain = number.kind == "number" and not reading.changes and isinstance(column, pa.Array)
        values = plain_numbers(column) if is_plain else None
        if values is None:
            places, keys = keyed([column])
            values = np.array([number.reads(reading(key)) for key in keys], dtype=np.float64)[places]  # None is NaN
        within = np.clip(values, number.lower, number.upper)
        return steps(number, within if number.outside == "clip" else np.where(within == values, values, np.nan))


def with_differences(source: Source, schema: Schema) -> Source:
    """The source with the differences that a schema declares; itself, where it declares none."""
    return WithDifferences(source, schema) if schema.orders.differences else source

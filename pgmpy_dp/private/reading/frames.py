"""Frames as codes, numbers and keys, for code that has public frames, or whole small ones, in its hands."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp.private.reading.arrow_cells import keyed, number_columns, quietly
from pgmpy_dp.private.reading.differences import with_differences
from pgmpy_dp.private.reading.records import read_records
from pgmpy_dp.private.reading.sources import open_numbers, open_source
from pgmpy_dp.schema import Schema, match_key


def encode(data: Any, schema: Schema) -> np.ndarray:
    """Codes of the records that the schema can express.

    Parameters
    ----------
    data : frame, relation, stream or path
        See :func:`~pgmpy_dp.private.reading.sources.open_source`. Needs a column for each variable of the schema, under
        its name (or, for engines whose names are text, under ``str(name)``); other columns are not read.
    schema : Schema
        Discrete variables only. Where states are intervals, of a :class:`~pgmpy_dp.Number` or as
        :func:`pgmpy_dp.schema.interval_states` makes them, a number is coded as the one that it lies in.

    Returns
    -------
    ndarray of unsigned integers, shape (kept_records, n_variables)
        Column j holds positions in the states of the j-th variable. Column-major; the smallest type that fits.

    Raises
    ------
    TypeError
        If `data` is nothing that has columns.
    ValueError
        For missing or repeated columns, or numeric variables: facts about names, never about records.

    Examples
    --------
    >>> import pandas as pd
    >>> encode(pd.DataFrame({"a": ["no", "yes", "?"]}), Schema({"a": ["no", "yes"]})).tolist()
    [[0], [1]]
    """
    return encode_and_match(data, schema)[0]


def encode_and_match(data: Any, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Encode as :func:`encode` does, and count records: all, those kept, those with a declared state in each column.

    A cell that has no state of its own but is counted in an other-state has no declared one, and neither has one that
    is outside the bounds of a number, or one that is read as missing.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = Schema({"a": ["no", "yes"], "b": [0, 1]}, other={"b": 1})
    >>> codes, matched = encode_and_match(pd.DataFrame({"a": ["no", "yes", "?"], "b": [0, 5, 1]}), schema)
    >>> codes.tolist(), matched.tolist()
    ([[0, 0], [1, 1]], [3, 2, 2, 2])
    """
    schema.require_discrete()
    source = with_differences(open_source(data), schema)
    source.positions(schema.variables)  # all are there
    records = read_records(source, schema)
    matched = records.matched()
    assert matched is not None
    return records.codes(), matched[: 2 + len(schema)]


def column_names(data: Any) -> list[Hashable]:
    """Names of all columns, which are public; TypeError for what has none.

    ValueError for repeated names, and where a first line of text may be a record.
    """
    return list(open_source(data).all_names())


def n_rows(data: Any) -> int:
    """Number of records of a *public* table; never to be told of a private one."""
    source = open_source(data)
    if not source.names:  # of a frame without columns, which pandas has
        return len(data)
    with source.one_pass(source.names[:1]) as batches:
        return sum(len(columns[0]) for columns in batches)


def read_keys(data: Any, names: Sequence[Hashable]) -> list[tuple[np.ndarray, list[tuple]]]:
    """Columns as positions in a list of their distinct match keys, for data whose rows are not yet records.

    Each cell's key depends on that cell alone (:func:`~pgmpy_dp.schema.cells.match_key`), so no row changes how
    another is read. The keys are in order of first appearance, so their numbering is as private as the rows.

    Parameters
    ----------
    data : frame, relation, stream or path
        As in :func:`encode`.
    names : sequence of hashable
        Columns to read; others are not touched.

    Returns
    -------
    list of (positions, keys)
        One per name: integers of shape (rows,), and the keys they stand for.

    Raises
    ------
    TypeError, ValueError
        As :func:`encode`.

    Examples
    --------
    >>> import pandas as pd
    >>> [(positions, keys)] = read_keys(pd.DataFrame({"user": [7, "7", 8]}), ["user"])
    >>> positions.tolist(), keys
    ([0, 0, 1], [('number', 7.0), ('number', 8.0)])
    """
    with open_source(data).one_pass(names) as batches:
        parts = zip(*batches, strict=True)
        return [quietly(keyed, part) for part in parts] or [quietly(keyed, []) for _ in names]


def read_numbers(data: Any, names: Sequence[Hashable]) -> np.ndarray:
    """Columns as numbers, shape (rows, len(names)): NaN for a cell that is none. An array is read by position.

    Raises
    ------
    TypeError, ValueError
        As :func:`encode`; also for an array without two axes or with another number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> read_numbers(pd.DataFrame({"x": [1, 2], "y": ["3.5", "?"]}), ["x", "y"]).tolist()
    [[1.0, 3.5], [2.0, nan]]
    """
    with open_numbers(data, names).one_pass(names) as batches:
        rows = [np.stack(number_columns(columns), axis=1) for columns in batches]
    return np.concatenate([np.empty((0, len(names))), *rows])


def read_edge_list(path: str | Path) -> list[tuple[np.ndarray, list[tuple]]]:
    """The first two fields of each line of a text file, as :func:`read_keys` gives two columns.

    Parameters
    ----------
    path : str or Path
        Fields are separated by a comma in ``.csv``, a tab in ``.tsv``, and blanks in any other file; quotation marks
        around a field are dropped. A line with fewer than two is dropped, in silence. A header or a comment is a line
        like any other, whose ends are no vertices.

    Raises
    ------
    OSError
        If the file cannot be opened.

    Notes
    -----
    No line changes how another is read: there are no quoted line breaks, and bytes that are no UTF-8 make their own
    field unreadable only.
    """
    separator = {".csv": b",", ".tsv": b"\t"}.get(Path(path).suffix.lower())
    seen: dict[bytes, int] = {}
    positions: list[int] = []
    with open(path, "rb") as lines:
        for line in lines:
            fields = line.split(separator, 2)
            if len(fields) > 1:
                positions += (seen.setdefault(field, len(seen)) for field in fields[:2])
    texts = (field.decode("utf-8", errors="replace").strip().strip("\"'").strip() for field in seen)
    keys = [match_key(text) for text in texts]
    ends = np.array(positions, dtype=np.int64)
    return [(ends[::2], keys), (ends[1::2], keys)]

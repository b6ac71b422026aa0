"""Records of any dataframe as integer codes of a public schema: how a cell is read, whoever opens the data.

Every cell is matched on its own (see :func:`pgmpy_dp.schema.match_key`). A record with a value outside the schema takes
the variable's other-state, or is dropped where there is none; which records, and how many, is told to nobody: nothing
here raises, warns or logs because of a value.

Privacy
-------
Encoding maps records one by one: to one row of codes, or to none. So tables that are neighbours by adding or removing a
record have codes that differ by at most one row, and tables that are neighbours by replacing a record have codes that
differ by at most one row removed and one added (fewer where a record is dropped).
"""

from __future__ import annotations

import contextlib
import re
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from pgmpy_dp.private.data.coding import DROPPED, Coding, coding, key_coder
from pgmpy_dp.private.data.query_text import quoted
from pgmpy_dp.schema import Schema, match_key

__all__ = [
    "cell_codes",
    "cell_numbers",
    "column_cells",
    "column_names",
    "encode",
    "encode_cells",
    "is_plain_number",
    "joined_cells",
    "kept_codes",
    "number_cells",
    "keyed_cells",
    "n_rows",
    "numbers_and_keys",
    "positions_of",
    "quietly",
    "ranks",
    "read_cells",
    "read_edge_list",
    "read_keys",
    "read_numbers",
]

_FILTERS = threading.RLock()
_PLAIN = {str, int, float, bool, type(None), type(pd.NA), type(pd.NaT), np.str_}


def encode(data: Any, schema: Schema) -> np.ndarray:
    """Codes of the records that the schema can express.

    Parameters
    ----------
    data : dataframe
        Anything narwhals reads: pandas, polars (also lazy), pyarrow, a DuckDB relation and others. Needs a column for
        each variable of the schema, under its name (or, for engines whose names are text, under ``str(name)``); other
        columns are not read.
    schema : Schema
        Discrete variables only. Where states are intervals, as :func:`pgmpy_dp.schema.interval_states` makes them, a
        number is coded as the one that it lies in.

    Returns
    -------
    ndarray of unsigned integers, shape (kept_records, n_variables)
        Column j holds positions in the states of the j-th variable. Column-major; the smallest type that fits.

    Raises
    ------
    TypeError
        If `data` is not a dataframe.
    ValueError
        For missing or repeated columns, or numeric variables: facts about names, never about records.

    Examples
    --------
    >>> encode(pd.DataFrame({"a": ["no", "yes", "?"]}), Schema({"a": ["no", "yes"]})).tolist()
    [[0], [1]]
    """
    schema.require_discrete()
    columns = quietly(_columns, data, schema.variables)
    encoded = [quietly(_encode_column, c, schema, name) for name, c in zip(schema.variables, columns, strict=True)]
    keep = np.ones(len(encoded[0]), dtype=bool)
    for codes in encoded:
        keep &= codes != DROPPED
    dtype = np.min_scalar_type(max(schema.cardinalities.values()) - 1)
    result = np.empty((int(keep.sum()), len(encoded)), dtype=dtype, order="F")
    for j, codes in enumerate(encoded):
        result[:, j] = codes[keep]
    return result


def n_rows(data: Any) -> int:
    """Exact number of records of a *public* dataframe, lazy ones included; never to be told of a private one."""
    frame = quietly(nw.from_native, data)
    if isinstance(frame, nw.LazyFrame):
        return int(frame.select(nw.len()).collect().item())
    return len(frame)


def read_keys(data: Any, names: Sequence[Hashable]) -> list[tuple[np.ndarray, list[tuple]]]:
    """Columns as positions in a list of their distinct match keys, for data whose rows are not yet records.

    Each cell's key depends on that cell alone (:func:`pgmpy_dp.schema.match_key`), so no row changes how another is
    read. The keys are in order of first appearance, so their numbering is as private as the rows.

    Parameters
    ----------
    data : dataframe
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
    >>> [(positions, keys)] = read_keys(pd.DataFrame({"user": [7, "7", 8]}), ["user"])
    >>> positions.tolist(), keys
    ([0, 0, 1], [('number', 7.0), ('number', 8.0)])
    """
    return keyed_cells(read_cells(data, names))


def read_cells(data: Any, names: Sequence[Hashable]) -> list[np.ndarray | pd.Categorical]:
    """Columns of a dataframe as :func:`column_cells` gives all of them; arguments and errors as :func:`read_keys`."""
    return quietly(_columns, data, names)


def ranks(column: np.ndarray | pd.Categorical) -> np.ndarray:
    """Ranks of the cells of a column of :func:`column_cells` in the order of their match keys; equal ones are equal.

    Times with a time zone are in the order in which they happened, which is not that of clocks that are set back.

    Examples
    --------
    >>> ranks(np.array([8.0, np.nan, 7.0, 8.0])).tolist()
    [2, 0, 1, 2]
    """
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        found = np.unique(column, return_inverse=True)[1].astype(np.int64) + 1
        found[np.isnan(column)] = 0  # the key of missing values is before those of numbers
        return found
    positions, keys = quietly(_keyed, column, _moment_key)
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rank[positions]


def quietly(read: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call without warnings: a library's warning about odd cells would be an output that depends on records."""
    # Filters are the process's: two threads that changed them at once could leave them off for good.
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(*arguments, **options)


def column_names(data: Any) -> list[Hashable]:
    """Names of a dataframe's columns, which are public; TypeError for what is no dataframe, ValueError for repeats."""
    is_pandas = nw.dependencies.is_pandas_dataframe(data)
    names: list[Hashable] = list(data.columns if is_pandas else _narwhals(data)[1])
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"data has several columns named {repeated}; rename or remove all but one of each")
    return names


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


def read_numbers(
    data: Any, names: Sequence[Hashable], key: Hashable | None = None
) -> tuple[np.ndarray, tuple[np.ndarray, list[tuple]] | None]:
    """Columns as floating-point numbers, and optionally one more as keys, row by row the same.

    Each cell is read on its own: a number, a truth value (0 or 1) or the text of a number gives that number, anything
    else NaN. An array has its columns read by position.

    Parameters
    ----------
    data : dataframe, or array of shape (rows, columns)
        A dataframe as in :func:`encode`; an array of any type.
    names : sequence of hashable
        Columns to read; of an array: all of its columns, in order.
    key : hashable, optional
        A further column, of a dataframe. It is read in the same pass: an engine may give rows in another order next
        time.

    Returns
    -------
    numbers : ndarray of float64, shape (rows, len(names))
        Column-major.
    keys : tuple or None
        As :func:`read_keys` gives for `key`.

    Raises
    ------
    TypeError, ValueError
        As :func:`encode`; also for an array without two axes or with another number of columns.

    Examples
    --------
    >>> read_numbers(pd.DataFrame({"x": [1, 2], "y": ["3.5", "?"]}), ["x", "y"])[0].tolist()
    [[1.0, 3.5], [2.0, nan]]
    """
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != len(names):
            raise ValueError(
                f"data has the shape {data.shape}, and {len(names)} columns are to be read; pass an array of shape "
                f"(records, {len(names)}), or columns with a name for each of its columns"
            )
        columns = [data[:, j] for j in range(len(names))]
    else:
        columns = quietly(_columns, data, [*names, *([] if key is None else [key])])
    if key is None:
        return _matrix(columns), None
    return numbers_and_keys(columns)


def numbers_and_keys(
    columns: Sequence[np.ndarray | pd.Categorical],
) -> tuple[np.ndarray, tuple[np.ndarray, list[tuple]]]:
    """Columns of :func:`column_cells` as :func:`read_numbers` gives them, the last one as keys."""
    return _matrix(columns[:-1]), quietly(_keyed, columns[-1])


def _matrix(columns: Sequence[np.ndarray | pd.Categorical]) -> np.ndarray:
    result = np.empty((len(columns[0]), len(columns)), order="F")
    for j, column in enumerate(columns):
        result[:, j] = quietly(_numbers, column)
    return result


def _numbers(column: np.ndarray | pd.Categorical) -> np.ndarray:
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column.astype(np.float64)
    positions, keys = _keyed(column if isinstance(column, pd.Categorical) else column.astype(object))
    values = [float(key[1]) if key[0] == "number" else np.nan for key in keys]
    return np.array(values, dtype=np.float64)[positions]


def _moment_key(value: Any) -> tuple:
    """The match key of a cell, or of the same moment in UTC if it is one of a time zone."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        with contextlib.suppress(Exception):  # at the ends of the calendar, and with odd zones
            return match_key(value.astimezone(UTC))
    return match_key(value)


def _keyed(
    column: np.ndarray | pd.Categorical, key: Callable[[Any], tuple] = match_key
) -> tuple[np.ndarray, list[tuple]]:
    rows: np.ndarray
    distinct: Any
    if isinstance(column, pd.Categorical):
        # The last entry is for missing values, whose code is -1.
        rows, distinct = column.codes, [*column.categories.to_numpy(dtype=object), None]
    elif column.dtype.kind == "f" or all(map(_is_plain, set(map(type, column)))):
        rows, distinct = pd.factorize(column, use_na_sentinel=False)
    else:
        rows, distinct = np.arange(len(column)), column
    seen: dict[tuple, int] = {}
    positions = np.array([seen.setdefault(key(value), len(seen)) for value in distinct], dtype=np.int64)
    return positions[rows], list(seen)


def _columns(data: Any, names: Sequence[Hashable]) -> list[np.ndarray | pd.Categorical]:
    """One array per name: numbers (with NaN where missing), objects, or a pandas Categorical."""
    if nw.dependencies.is_pandas_dataframe(data):
        positions = positions_of(list(data.columns), names)
        return [_from_pandas(data.iloc[:, position]) for position in positions]
    frame, available = _narwhals(data)
    wanted = [available[position] for position in positions_of(available, names)]
    if frame.implementation.is_polars():
        # It takes names like "*" and "^a$" for patterns: give it one that only this name matches.
        frame = frame.select([f"^{re.escape(n)}$" if n == "*" or n.startswith("^") else n for n in wanted])
    elif frame.implementation.is_duckdb():
        # Some versions of narwhals hand it names as they are, which it parses.
        frame = nw.from_native(frame.to_native().project(", ".join(map(quoted, wanted))))
    else:
        frame = frame.select(wanted)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return [_from_narwhals(frame.get_column(name)) for name in wanted]


def _narwhals(data: Any) -> tuple[Any, list[str]]:
    """A frame of narwhals and the names of its columns."""
    try:
        frame = quietly(nw.from_native, data)
        return frame, frame.collect_schema().names()
    except TypeError:
        raise TypeError(
            f"data is a {type(data).__name__}, not a dataframe; pass a pandas, polars or pyarrow table, a DuckDB "
            "relation, or e.g. pandas.DataFrame(data, columns=[...])"
        ) from None
    except nw.exceptions.DuplicateError:
        raise ValueError("data has several columns of the same name; rename or remove all but one of each") from None


def column_cells(frame: Any) -> list[np.ndarray | pd.Categorical]:
    """All columns of a frame, as :func:`keyed_cells` and others of this module take them."""
    return [quietly(_from_narwhals, column) for column in nw.from_native(frame, eager_only=True).iter_columns()]


def cell_codes(cells: Any, schema: Schema, name: Hashable) -> np.ndarray:
    """Codes of cells of one variable, -1 where the record has to be dropped; `cells` is a series or an Arrow array."""
    return quietly(_encode_column, quietly(_from_narwhals, _series(cells)), schema, name)


def cell_numbers(cells: Any) -> np.ndarray:
    """Cells as floating-point numbers, NaN for what is none; `cells` is a series or an Arrow array."""
    return quietly(_numbers, quietly(_from_narwhals, _series(cells)))


def encode_cells(column: np.ndarray | pd.Categorical, schema: Schema, name: Hashable) -> np.ndarray:
    """Codes of one column of :func:`column_cells`, as :func:`cell_codes`."""
    return quietly(_encode_column, column, schema, name)


def kept_codes(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Columns of codes, without the records that have an outside cell.

    Examples
    --------
    >>> [codes.tolist() for codes in kept_codes([np.array([0, 1, DROPPED]), np.array([2, DROPPED, 0])])]
    [[0], [2]]
    """
    keep = np.ones(len(columns[0]), dtype=bool)
    for codes in columns:
        keep &= codes >= 0
    return [codes[keep] for codes in columns]


def number_cells(columns: Sequence[np.ndarray | pd.Categorical]) -> np.ndarray:
    """Columns of :func:`column_cells` as floating-point numbers, shape (rows, columns), NaN for what is none."""
    return _matrix(columns)


def is_plain_number(kind: Any) -> bool:
    """Whether a cast of a narwhals type to a double is what float() gives: for doubles, and integers of 64 bits."""
    return kind.is_float() or (kind.is_integer() and kind not in (nw.Int128, nw.UInt128))


def joined_cells(parts: Sequence[np.ndarray | pd.Categorical]) -> np.ndarray | pd.Categorical:
    """One column of :func:`column_cells` from its parts."""
    if parts and all(isinstance(part, pd.Categorical) for part in parts):
        return union_categoricals(parts) if len(parts) > 1 else parts[0]
    kinds = {part.dtype.kind for part in parts if isinstance(part, np.ndarray)}
    if kinds == {"f"} and all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return np.concatenate([np.empty(0, dtype=object), *(np.asarray(part, dtype=object) for part in parts)])


def keyed_cells(columns: Sequence[np.ndarray | pd.Categorical]) -> list[tuple[np.ndarray, list[tuple]]]:
    """Columns of :func:`column_cells` as :func:`read_keys` gives them."""
    return [quietly(_keyed, column) for column in columns]


def _series(cells: Any) -> nw.Series:
    if hasattr(cells, "type") and not hasattr(cells, "chunks") and not isinstance(cells, nw.Series):
        import pyarrow as pa  # narwhals knows its columns, not the arrays of one batch

        cells = pa.chunked_array([cells])
    return nw.from_native(cells, series_only=True)


def positions_of(available: Sequence[Any], names: Sequence[Hashable]) -> list[int]:
    """Position of the column for each name; ValueError for missing and repeated ones."""
    counts = Counter(available)
    found = {name: name if name in counts else str(name) for name in names}
    missing = [name for name in names if found[name] not in counts]
    if missing:
        raise ValueError(
            f"data has no column for {missing}, which are to be read; data has the columns "
            f"{list(available)[:50]}: rename the columns, or the variables or arguments that name them"
        )
    repeated = [name for name in names if counts[found[name]] > 1]
    if repeated:
        raise ValueError(f"data has several columns named {repeated}; rename or remove all but one of each")
    shared = [name for name, times in Counter(found.values()).items() if times > 1]
    if shared:
        raise ValueError(f"several variables of the schema would read the column {shared}; rename the variables")
    places = {name: place for place, name in enumerate(available)}
    return [places[found[name]] for name in names]


def _from_pandas(series: pd.Series) -> np.ndarray | pd.Categorical:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.array
    if series.dtype.kind in "iuf" and getattr(series.dtype, "itemsize", 16) <= 8:
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    try:
        return _distinct_texts(series) if isinstance(series.dtype, pd.StringDtype) else series.to_numpy(dtype=object)
    except _NOT_OURS:
        raise
    except BaseException:
        return _one_by_one(lambda k: series.iloc[k], len(series))


def _distinct_texts(texts: pd.Series | np.ndarray) -> pd.Categorical:
    codes, distinct = pd.factorize(texts)
    return pd.Categorical.from_codes(codes, categories=distinct)


def _from_narwhals(series: nw.Series) -> np.ndarray | pd.Categorical:
    dtype = series.dtype
    if dtype.is_integer() and is_plain_number(dtype):
        # Not by a cast of the engine: pyarrow's refuses integers that a double rounds, and would tell of them.
        missing = series.is_null().to_numpy().astype(bool)
        numbers = series.fill_null(0).to_numpy().astype(np.float64)
        numbers[missing] = np.nan
        return numbers
    if dtype.is_float():
        return series.cast(nw.Float64).to_numpy().astype(np.float64)
    if dtype in (nw.Categorical, nw.Enum, nw.Decimal, nw.Int128, nw.UInt128):
        # As text: narwhals' to_numpy misplaces the nulls of a pyarrow dictionary, and polars has no 128-bit arrays.
        series = series.cast(nw.String)
    try:
        if series.dtype == nw.String:
            return _distinct_texts(series.to_numpy().astype(object))
        impossible = _impossible_times(series)
        values = np.full(len(series), _NO_VALUE, dtype=object)
        kept = series if not impossible.any() else series.filter((~impossible).tolist())
        values[~impossible] = np.fromiter(kept.to_list(), dtype=object, count=len(kept))
        return values
    except _NOT_OURS:
        raise
    except BaseException:
        return _one_by_one(lambda k: series[k : k + 1].to_list()[0], len(series))


# What is no failure to read a cell. Of such failures some are no Exception: engines in Rust panic with their own class.
_NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)


class _NoValue:
    """What stands for a cell that Python has no value for, such as a date after the year 9999: outside any schema."""

    def __str__(self) -> str:
        raise ValueError("no value")


_NO_VALUE = _NoValue()


def _impossible_times(series: nw.Series) -> np.ndarray:
    """Which cells of a column of times Python cannot express: engines raise, or panic, when they convert those."""
    none = np.zeros(len(series), dtype=bool)
    if series.dtype in (nw.List, nw.Array, nw.Struct) and series.implementation.is_polars():
        ticks = series.to_native().to_physical().to_list()
        return np.array([not _possible(series.dtype, value) for value in ticks], dtype=bool)
    if series.dtype not in (nw.Date, nw.Datetime, nw.Duration):
        return none
    ticks = series.to_numpy()
    unit = np.datetime_data(ticks.dtype)[0] if ticks.dtype.kind in "mM" else "ns"
    lost = np.isnat(ticks) & ~series.is_null().to_numpy().astype(bool) if ticks.dtype.kind in "mM" else none
    if unit == "ns" or (unit == "us" and ticks.dtype.kind == "m"):
        return lost  # all of 64 bits are possible
    if ticks.dtype.kind == "m":
        most = np.timedelta64(999_999_998, "D")
        return lost | (ticks > most) | (ticks < -most)
    # A day inside of Python's range, for time zones.
    return lost | (ticks < np.datetime64("0001-01-02")) | (ticks > np.datetime64("9999-12-30"))


def _possible(dtype: Any, value: Any) -> bool:
    """Whether all times inside a nested value, told in ticks, are times of Python."""
    if value is None:
        return True
    if dtype in (nw.List, nw.Array):
        return all(_possible(dtype.inner, part) for part in value)
    if dtype == nw.Struct:
        return all(_possible(field.dtype, value[field.name]) for field in dtype.fields)
    if dtype not in (nw.Date, nw.Datetime, nw.Duration):
        return True
    per_second = 1 if dtype == nw.Date else {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[dtype.time_unit]
    days = value if dtype == nw.Date else value // (86_400 * per_second)
    return abs(days) < 999_999_998 if dtype == nw.Duration else -719_162 < days < 2_932_896  # years 1 to 9999


def _one_by_one(cell: Callable[[int], Any], n: int) -> np.ndarray:
    """Cells read each on its own, where reading all at once failed: that one cannot be read must not be seen."""
    values = np.full(n, _NO_VALUE, dtype=object)
    for k in range(n):
        try:
            values[k] = cell(k)
        except _NOT_OURS:
            raise
        except BaseException:
            continue
    return values


def _encode_column(column: np.ndarray | pd.Categorical, schema: Schema, name: Hashable) -> np.ndarray:
    code = key_coder(schema, name)
    if isinstance(column, pd.Categorical):
        # The last entry is for missing values, whose code is -1.
        return _lookup([*column.categories.to_numpy(dtype=object), None], code)[column.codes]
    if column.dtype.kind == "f":
        return _encode_numbers(column, coding(schema, name))
    plain = {kind: _is_plain(kind) for kind in set(map(type, column))}
    if not all(plain.values()):
        # Only the odd cells one by one: where one odd record slowed all others down, a stopwatch would see it.
        odd = ~np.fromiter(map(plain.__getitem__, map(type, column)), dtype=bool, count=len(column))
        codes = np.empty(len(column), dtype=np.int64)
        codes[odd] = _lookup(column[odd], code)
        codes[~odd] = _encode_column(column[~odd], schema, name)
        return codes
    # Plain values that are equal in Python (1, 1.0, True) have the same match key, so one of them stands for all.
    codes, distinct = pd.factorize(column, use_na_sentinel=False)
    return _lookup(distinct, code)[codes]


def _encode_numbers(column: np.ndarray, made: Coding) -> np.ndarray:
    codes = np.full(column.shape, made.outside, dtype=np.int64)
    if made.cuts:
        codes[:] = np.searchsorted(made.cuts, column, side="right")
    elif made.numbers:
        numbers = sorted(made.numbers)
        values = np.array([number for number, _ in numbers])
        nearest = np.minimum(np.searchsorted(values, column), len(values) - 1)
        matches = values[nearest] == column
        codes[matches] = np.array([position for _, position in numbers])[nearest[matches]]
    codes[np.isnan(column)] = made.missing
    return codes


def _lookup(distinct: Iterable, code: Callable[[tuple], int]) -> np.ndarray:
    return np.array([code(match_key(value)) for value in distinct], dtype=np.int64)


def _is_plain(kind: type) -> bool:
    return kind in _PLAIN or issubclass(kind, np.bool_ | np.integer | np.floating)

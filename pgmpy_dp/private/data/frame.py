"""Records of any dataframe as integer codes of a public schema: how a cell is read, whoever opens the data.

Every cell is matched on its own (:func:`~pgmpy_dp.schema.cells.match_key`). A record with a value outside the schema
takes the variable's other-state, or is dropped where there is none; which records, and how many, is told to nobody:
nothing here raises, warns or logs because of a value.

Privacy
-------
Encoding maps records one by one: to one row of codes, or to none. So tables that are neighbours by adding or removing a
record have codes that differ by at most one row, and tables that are neighbours by replacing a record have codes that
differ by at most one row removed and one added (fewer where a record is dropped).
"""

from __future__ import annotations

import re
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from pgmpy_dp.private.data.coding import DROPPED, Coding, OutsideCounted, coding, key_coder
from pgmpy_dp.private.data.query_text import quoted
from pgmpy_dp.schema import Schema, clock_text, duration_nanoseconds, match_key, moment_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Cells",
    "cell_codes",
    "cell_numbers",
    "column_cells",
    "column_names",
    "encode",
    "encode_and_match",
    "encode_cells",
    "encoded_columns",
    "is_plain_number",
    "joined_cells",
    "kept_codes",
    "key_counts",
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
    "undeclared",
]

_FILTERS = threading.RLock()

# Values of these types are told apart by a dict: those that are equal in Python are the same number or text.
_PLAIN = {str, int, float, bool, type(None)}
# Values of these only from their own type: NumPy rounds an integer before it compares it with one of its floats.
_EXACT = {bytes, np.str_, np.bool_, *(np.dtype(code).type for code in np.typecodes["AllInteger"])}
_EXACT |= {np.dtype(code).type for code in np.typecodes["Float"]}


@dataclass(frozen=True)
class Cells:
    """A column as places in a list of cells.

    Cells stand for one another only where they have one type and one content: what a library takes for equal (a hash of
    a text that ends at its first zero character, a collation, an interval of a month and one of 30 days) is no matter.

    Attributes
    ----------
    places : ndarray of integers, shape (rows,)
    listed : list
        A cell may be in it more than once, or be nobody's.
    """

    places: np.ndarray
    listed: list

    def __len__(self) -> int:
        return len(self.places)


Column = np.ndarray | Cells
"""Numbers as an array of float64, NaN where missing; anything else as :class:`Cells`."""


def encode(data: Any, schema: Schema) -> np.ndarray:
    """Codes of the records that the schema can express.

    Parameters
    ----------
    data : dataframe
        Anything narwhals reads: pandas, polars (also lazy), pyarrow, a DuckDB relation and others. Needs a column for
        each variable of the schema, under its name (or, for engines whose names are text, under ``str(name)``); other
        columns are not read.
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
        If `data` is not a dataframe.
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
    """As :func:`encode`, and how many records there are, are kept, and have a declared state in each column.

    Parameters
    ----------
    data, schema
        As in :func:`encode`.

    Returns
    -------
    codes : ndarray of unsigned integers, shape (kept_records, n_variables)
    matched : ndarray of int64, shape (2 + n_variables,)
        A cell that has no state of its own but is counted in an other-state has no declared one, and neither has one
        that is outside the bounds of a number.

    Raises
    ------
    TypeError, ValueError
        As :func:`encode`.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = Schema({"a": ["no", "yes"], "b": [0, 1]}, other={"b": 1})
    >>> codes, matched = encode_and_match(pd.DataFrame({"a": ["no", "yes", "?"], "b": [0, 5, 1]}), schema)
    >>> codes.tolist(), matched.tolist()
    ([[0, 0], [1, 1]], [3, 2, 2, 2])
    """
    schema.require_discrete()
    columns = quietly(_columns, data, schema.variables)
    counted = OutsideCounted(schema) if schema.other or schema.numbers else schema
    encoded = [quietly(_encode_column, c, schema, name) for name, c in zip(schema.variables, columns, strict=True)]
    keep = np.ones(len(encoded[0]), dtype=bool)
    own = []
    for name, column, codes in zip(schema.variables, columns, encoded, strict=True):
        kept = codes != DROPPED
        keep &= kept
        if name in schema.other or name in schema.numbers:
            kept = quietly(_encode_column, column, counted, name) != counted.cardinality(name) - 1
        own.append(int(kept.sum()))
    dtype = np.min_scalar_type(max(schema.cardinalities.values()) - 1)
    result = np.empty((int(keep.sum()), len(encoded)), dtype=dtype, order="F")
    for j, codes in enumerate(encoded):
        result[:, j] = codes[keep]
    return result, np.array([len(keep), len(result), *own], dtype=np.int64)


def n_rows(data: Any) -> int:
    """Exact number of records of a *public* dataframe, lazy ones included; never to be told of a private one."""
    frame = quietly(nw.from_native, data)
    if isinstance(frame, nw.LazyFrame):
        return int(frame.select(nw.len()).collect().item())
    return len(frame)


def read_keys(data: Any, names: Sequence[Hashable]) -> list[tuple[np.ndarray, list[tuple]]]:
    """Columns as positions in a list of their distinct match keys, for data whose rows are not yet records.

    Each cell's key depends on that cell alone (:func:`~pgmpy_dp.schema.cells.match_key`), so no row changes how
    another is read. The keys are in order of first appearance, so their numbering is as private as the rows.

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
    >>> import pandas as pd
    >>> [(positions, keys)] = read_keys(pd.DataFrame({"user": [7, "7", 8]}), ["user"])
    >>> positions.tolist(), keys
    ([0, 0, 1], [('number', 7.0), ('number', 8.0)])
    """
    return keyed_cells(read_cells(data, names))


def read_cells(data: Any, names: Sequence[Hashable]) -> list[Column]:
    """Columns of a dataframe as :func:`column_cells` gives all of them; arguments and errors as :func:`read_keys`."""
    return quietly(_columns, data, names)


def ranks(column: Column) -> np.ndarray:
    """Ranks of the cells of a column of :func:`column_cells` in the order of their match keys; equal ones are equal.

    Times with a time zone are in the order in which they happened, durations in that of their length.

    Examples
    --------
    >>> ranks(np.array([8.0, np.nan, 7.0, 8.0])).tolist()
    [2, 0, 1, 2]
    """
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        found = np.unique(column, return_inverse=True)[1].astype(np.int64) + 1
        found[np.isnan(column)] = 0  # the key of missing values is before those of numbers
        return found
    positions, keys = quietly(_keyed, column, _order_key)
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rank[positions]


def quietly(read: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call without warnings: a library's warning about odd cells would be an output that depends on records.

    Nor does numpy raise or print an overflow, if it is told to.
    """
    # Filters are the process's: two threads that changed them at once could leave them off for good.
    with _FILTERS, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return read(*arguments, **options)


def column_names(data: Any) -> list[Hashable]:
    """Names of a dataframe's columns, which are public; TypeError if it is not one, ValueError for repeated names."""
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
    >>> import pandas as pd
    >>> read_numbers(pd.DataFrame({"x": [1, 2], "y": ["3.5", "?"]}), ["x", "y"])[0].tolist()
    [[1.0, 3.5], [2.0, nan]]
    """
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != len(names):
            raise ValueError(
                f"data has the shape {data.shape}, and {len(names)} columns are to be read; pass an array of shape "
                f"(records, {len(names)}), or columns with a name for each of its columns"
            )
        columns = [quietly(_from_array, data[:, j]) for j in range(len(names))]
    else:
        columns = quietly(_columns, data, [*names, *([] if key is None else [key])])
    if key is None:
        return _matrix(columns), None
    return numbers_and_keys(columns)


def numbers_and_keys(
    columns: Sequence[Column],
) -> tuple[np.ndarray, tuple[np.ndarray, list[tuple]]]:
    """Columns of :func:`column_cells` as :func:`read_numbers` gives them, the last one as keys."""
    return _matrix(columns[:-1]), quietly(_keyed, columns[-1])


def _matrix(columns: Sequence[Column]) -> np.ndarray:
    result = np.empty((len(columns[0]), len(columns)), order="F")
    for j, column in enumerate(columns):
        result[:, j] = quietly(_numbers, column)
    return result


def _numbers(column: Column) -> np.ndarray:
    if isinstance(column, np.ndarray):
        return column
    keys = map(match_key, column.listed)
    values = [float(key[1]) if key[0] == "number" else np.nan for key in keys]
    return np.array(values, dtype=np.float64)[column.places]


def _order_key(value: Any) -> tuple:
    """The match key of a cell, or the length of a duration, whose text is in no order."""
    key = match_key(value)
    is_duration = isinstance(value, timedelta | np.timedelta64) or type(value).__name__ == "MonthDayNano"
    if is_duration and key[0] == "text":
        return ("time", duration_nanoseconds(value))
    return key


def _keyed(column: Column, key: Callable[[Any], tuple] = match_key) -> tuple[np.ndarray, list[tuple]]:
    import pandas as pd

    cells = _as_cells(column)
    # In the order in which they appear. Of integers, pandas' hash tables are exact.
    rows, appeared = pd.factorize(cells.places)
    seen: dict[tuple, int] = {}
    positions = np.array([seen.setdefault(key(cells.listed[k]), len(seen)) for k in appeared], dtype=np.int64)
    return positions[rows], list(seen)


def key_counts(columns: Iterable[Column]) -> Counter[tuple]:
    """How many cells have each match key, in parts of one column, each as :func:`column_cells` gives it.

    Examples
    --------
    >>> dict(key_counts([np.array([1.0, 1.0, np.nan]), Cells(np.array([0, 0]), ["1"])]))
    {('number', 1.0): 4, ('missing',): 1}
    """
    return quietly(_key_counts, columns)


def _key_counts(columns: Iterable[Column]) -> Counter[tuple]:
    found: Counter[tuple] = Counter()
    for column in columns:
        if isinstance(column, np.ndarray):
            numbers, times = np.unique(column, return_counts=True)
            listed = numbers.tolist()
        else:
            listed, times = column.listed, np.bincount(column.places, minlength=len(column.listed))
        for value, number in zip(listed, times.tolist(), strict=True):
            if number:  # some that are listed are nobody's
                found[match_key(value)] += number
    return found


def _as_cells(column: Column) -> Cells:
    if isinstance(column, Cells):
        return column
    numbers, places = np.unique(column, return_inverse=True)
    return Cells(places, numbers.tolist())


def _columns(data: Any, names: Sequence[Hashable]) -> list[Column]:
    """One column per name."""
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
    return [_from_native(frame.get_column(name)) for name in wanted]


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


def column_cells(frame: Any) -> list[Column]:
    """All columns of a frame, as :func:`keyed_cells` and others of this module take them."""
    columns = nw.from_native(frame, eager_only=True).iter_columns()
    return [quietly(_from_native, column) for column in columns]


def cell_codes(cells: Any, schema: Schema, name: Hashable) -> np.ndarray:
    """Codes of cells of one variable, -1 where the record has to be dropped; `cells` is a series or an Arrow array."""
    return quietly(_encode_column, quietly(_from_native, cells), schema, name)


def cell_numbers(cells: Any) -> np.ndarray:
    """Cells as floating-point numbers, NaN for what is none; `cells` is a series or an Arrow array."""
    return quietly(_numbers, quietly(_from_native, cells))


def encode_cells(column: Column, schema: Schema, name: Hashable) -> np.ndarray:
    """Codes of one column of :func:`column_cells`, as :func:`cell_codes`."""
    return quietly(_encode_column, column, schema, name)


def encoded_columns(columns: Sequence[Column], schema: Schema) -> list[np.ndarray]:
    """Codes of all records, `DROPPED` too, by columns in a small type; then whether cells have states of their own.

    The latter for those variables where a code does not tell, which :func:`undeclared` names.
    """
    dtype = np.promote_types(np.min_scalar_type(max(schema.cardinalities.values()) - 1), np.int8)
    named = dict(zip(schema.variables, columns, strict=True))
    codes = [encode_cells(column, schema, name).astype(dtype) for name, column in named.items()]
    counted = OutsideCounted(schema)
    own = [encode_cells(named[name], counted, name) != schema.cardinality(name) for name in undeclared(schema)]
    return [*codes, *own]


def undeclared(schema: Schema) -> list[Hashable]:
    """Variables that count cells which have no declared state: in an other-state, or outside of the bounds."""
    return [name for name in schema.variables if name in schema.other or name in schema.numbers]


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


def number_cells(columns: Sequence[Column]) -> np.ndarray:
    """Columns of :func:`column_cells` as floating-point numbers, shape (rows, columns), NaN for what is none."""
    return _matrix(columns)


def is_plain_number(kind: Any) -> bool:
    """Whether a cast of a narwhals type to a double is what float() gives: for doubles, and integers of 64 bits."""
    return kind.is_float() or (kind.is_integer() and kind not in (nw.Int128, nw.UInt128))


def joined_cells(parts: Sequence[Column]) -> Column:
    """One column of :func:`column_cells` from its parts."""
    numbers = [part for part in parts if isinstance(part, np.ndarray)]
    if parts and len(numbers) == len(parts):
        return np.concatenate(numbers)
    cells = [_as_cells(part) for part in parts]
    starts = np.cumsum([0, *(len(part.listed) for part in cells)])
    places = [part.places + start for part, start in zip(cells, starts, strict=False)]
    return Cells(np.concatenate([np.empty(0, np.int64), *places]), [cell for part in cells for cell in part.listed])


def keyed_cells(columns: Sequence[Column]) -> list[tuple[np.ndarray, list[tuple]]]:
    """Columns of :func:`column_cells` as :func:`read_keys` gives them."""
    return [quietly(_keyed, column) for column in columns]


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


def _from_native(column: Any) -> Column:
    """A column of polars, an array or a column of Arrow, or one of pandas or a library like it; also of narwhals."""
    column = nw.to_native(column, pass_through=True)
    if nw.dependencies.is_polars_series(column):
        return _from_polars(column)
    if hasattr(column, "type") and hasattr(column, "to_pylist"):
        return _from_arrow(column)
    return _from_pandas(column if nw.dependencies.is_pandas_series(column) else _to_pandas(column))


def _to_pandas(column: Any) -> pd.Series:
    return nw.from_native(column, series_only=True).to_pandas()


def _from_array(array: np.ndarray) -> Column:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64)
    return _from_ticks_of(array) if array.dtype.kind in "mM" else _from_objects(list(array))


def _from_pandas(series: pd.Series) -> Column:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        # The last place is for missing values, whose code is -1.
        listed = _as_cells(_from_pandas(pd.Series(dtype.categories)))
        places = np.append(listed.places, len(listed.listed))
        return Cells(places[series.array.codes], [*listed.listed, None])
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", "").startswith("pyarrow"):
        return _from_arrow(series.array.__arrow_array__())
    if dtype.kind in "biuf" and getattr(dtype, "itemsize", 16) <= 8:
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    if isinstance(dtype, pd.DatetimeTZDtype):
        index = pd.DatetimeIndex(series)
        return _from_ticks(index.asi8, index.isna(), _moment(index.unit, True))
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        return _from_ticks_of(series.to_numpy())
    read = _readily(lambda: series.to_numpy(dtype=object).tolist(), lambda k: series.iloc[k], len(series))
    return _from_objects(read)


def _from_ticks_of(times: np.ndarray) -> Cells:
    """Times of NumPy: each different one once."""
    times = times.astype(times.dtype.newbyteorder("="))
    ticks, places = np.unique(times.view(np.int64), return_inverse=True)
    return Cells(places, list(ticks.view(times.dtype)))


def _from_arrow(column: Any) -> Column:
    """An Arrow array, or several as one column."""
    parts = [_from_chunk(chunk) for chunk in getattr(column, "chunks", [column])]
    return joined_cells(parts) if len(parts) != 1 else parts[0]


def _from_chunk(array: Any) -> Column:
    import pyarrow as pa

    kind, kinds = array.type, pa.types
    missing = np.asarray(array.is_null())
    if kinds.is_dictionary(kind):
        values = _as_cells(_from_chunk(array.dictionary))
        indices = np.asarray(array.indices.fill_null(0)).astype(np.int64)
        places = np.append(values.places, len(values.listed))
        indices[missing] = len(values.places)
        return Cells(places[indices], [*values.listed, None])
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind):
        # Not by a cast of Arrow's, which refuses integers that a double rounds, and would tell of them.
        numbers = array.to_numpy(zero_copy_only=False)
        if numbers.dtype == object:
            numbers = np.where(missing, False, numbers)
        numbers = numbers.astype(np.float64)
        numbers[missing] = np.nan
        return numbers
    if kinds.is_timestamp(kind):
        return _from_ticks(_ticks(array, missing), missing, _moment(kind.unit, kind.tz is not None))
    if kinds.is_date(kind):
        return _from_ticks(_ticks(array, missing), missing, _moment("D" if kinds.is_date32(kind) else "ms", False))
    if kinds.is_time(kind):
        return _from_ticks(_ticks(array, missing), missing, _clock(kind.unit))
    if kinds.is_duration(kind):
        return _from_ticks(_ticks(array, missing), missing, _duration(kind.unit))
    if kinds.is_decimal(kind):
        return _from_objects(
            _readily(lambda: array.cast(pa.string()).to_pylist(), lambda k: array[k].as_py(), len(array))
        )
    if any(is_kind(kind) for is_kind in (kinds.is_string, kinds.is_large_string, kinds.is_binary)):
        # By their bytes: nothing is made of a text before it is one of few.
        array = array.cast(pa.large_binary())
        kind = array.type
    if kinds.is_large_binary(kind):
        coded = array.dictionary_encode()
        indices = np.asarray(coded.indices.fill_null(len(coded.dictionary)))
        return Cells(indices.astype(np.int64), [*coded.dictionary.to_pylist(), None])
    return _from_objects(_readily(array.to_pylist, lambda k: array[k].as_py(), len(array)))


def _ticks(array: Any, missing: np.ndarray) -> np.ndarray:
    import pyarrow as pa

    whole = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    ticks = np.asarray(whole.fill_null(0)).astype(np.int64)
    ticks[missing] = 0
    return ticks


def _from_polars(series: Any) -> Column:
    import polars as pl

    kind = series.dtype
    if (kind.is_integer() and not str(kind).endswith("128")) or kind.is_float() or kind == pl.Boolean:
        return series.cast(pl.Float64).to_numpy().astype(np.float64)
    if kind == pl.Time:
        return _from_polars_ticks(series, _clock("ns"))
    if kind == pl.Date:
        return _from_polars_ticks(series, _moment("D", False))
    if isinstance(kind, pl.Datetime):
        return _from_polars_ticks(series, _moment(kind.time_unit, kind.time_zone is not None))
    if isinstance(kind, pl.Duration):
        return _from_polars_ticks(series, _duration(kind.time_unit))
    if kind.is_nested():
        return _from_polars_nested(series)
    if kind in (pl.Categorical, pl.Enum, pl.Decimal) or kind.is_integer():
        series = series.cast(pl.String)  # polars has no arrays of 128 bits
    if series.dtype == pl.String:
        # By its bytes: polars tells the world (on standard error) where a text is no UTF-8, and its arrays of NumPy are
        # as wide as the longest text, without the zero characters at the end.
        series = series.cast(pl.Binary)
    return _from_objects(_readily(series.to_list, lambda k: series[k : k + 1].to_list()[0], len(series)))


def _from_polars_ticks(series: Any, cell: Callable[[int], Any]) -> Cells:
    import polars as pl

    missing = series.is_null().to_numpy()
    return _from_ticks(series.to_physical().cast(pl.Int64).fill_null(0).to_numpy(), missing, cell)


def _from_polars_nested(series: Any) -> Cells:
    kind, with_bytes = series.dtype, _with_bytes(series.dtype)
    series = series if with_bytes == kind else series.cast(with_bytes)
    possible = np.array([_possible(kind, value) for value in series.to_physical().to_list()], dtype=bool)
    read = series.filter(possible.tolist())
    values = iter(_readily(read.to_list, lambda k: read[k : k + 1].to_list()[0], len(read)))
    return _from_objects([_with_texts(kind, next(values)) if known else _NO_VALUE for known in possible])


def _from_ticks(ticks: np.ndarray, missing: np.ndarray, cell: Callable[[int], Any]) -> Cells:
    """Times as whole numbers of some unit: each different one is made a cell once."""
    different, places = np.unique(ticks, return_inverse=True)
    listed = _one_by_one(lambda k: cell(int(different[k])), len(different))
    return Cells(np.where(missing, len(listed), places), [*listed, None])


def _moment(unit: str, in_utc: bool) -> Callable[[int], str]:
    step = _NANOSECONDS[unit]
    return lambda ticks: moment_text(ticks * step, in_utc)


def _clock(unit: str) -> Callable[[int], str]:
    step = _NANOSECONDS[unit]
    return lambda ticks: clock_text(ticks * step)


def _duration(unit: str) -> Callable[[int], Any]:
    return lambda ticks: np.int64(ticks).astype(f"m8[{unit}]") if ticks != -(2**63) else _NO_VALUE


_NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def _from_objects(values: list) -> Cells:
    """Cells of any types, odd ones one by one."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN or kinds <= {bytes, type(None)}:
        seen: defaultdict[Any, int] = defaultdict()
        seen.default_factory = seen.__len__
        places = np.fromiter(map(seen.__getitem__, values), dtype=np.int64, count=len(values))
        return Cells(places, list(seen))
    # Only the odd cells one by one: where one odd record slowed all others down, a stopwatch would see it.
    odd = np.fromiter((kind not in _PLAIN for kind in map(type, values)), dtype=bool, count=len(values))
    plain = _from_objects([value for value, is_odd in zip(values, odd, strict=True) if not is_odd])
    listed, places = plain.listed, np.empty(len(values), dtype=np.int64)
    places[~odd] = plain.places
    known: dict[tuple, int] = {}
    for k in np.flatnonzero(odd):
        value = values[k]
        place = known.setdefault((type(value), value), len(listed)) if type(value) in _EXACT else len(listed)
        if place == len(listed):
            listed.append(value)
        places[k] = place
    return Cells(places, listed)


def _readily(read: Callable[[], list], cell: Callable[[int], Any], n: int) -> list:
    """All cells at once or, where that fails, one by one: that one cannot be read must not be seen."""
    try:
        return read()
    except _NOT_OURS:
        raise
    except BaseException:
        return _one_by_one(cell, n)


# These are not failures to read a cell. Some failures are not an Exception: engines in Rust panic with their own class.
_NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)


class _NoValue:
    """What stands for a cell that Python has no value for, such as a date after the year 9999: outside any schema."""

    def __str__(self) -> str:
        raise ValueError("no value")


_NO_VALUE = _NoValue()


def _possible(kind: Any, value: Any) -> bool:
    """Whether all times inside a nested value of polars, told in ticks, are times of Python: else it would panic."""
    import polars as pl

    if value is None:
        return True
    if isinstance(kind, pl.List | pl.Array):
        return all(_possible(kind.inner, part) for part in value)
    if isinstance(kind, pl.Struct):
        return all(_possible(field.dtype, value[field.name]) for field in kind.fields)
    if kind not in (pl.Date, pl.Datetime, pl.Duration):
        return True
    per_second = 1 if kind == pl.Date else {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.time_unit]
    days = value if kind == pl.Date else value // (86_400 * per_second)
    return abs(days) < 999_999_998 if kind == pl.Duration else -719_162 < days < 2_932_896  # years 1 to 9999


def _with_bytes(kind: Any) -> Any:
    """A nested type of polars with its texts as bytes, which need not be UTF-8."""
    import polars as pl

    if isinstance(kind, pl.List):
        return pl.List(_with_bytes(kind.inner))
    if isinstance(kind, pl.Array):
        return pl.Array(_with_bytes(kind.inner), kind.size)
    if isinstance(kind, pl.Struct):
        return pl.Struct({field.name: _with_bytes(field.dtype) for field in kind.fields})
    return pl.Binary() if kind == pl.String else kind


def _with_texts(kind: Any, value: Any) -> Any:
    """A value of :func:`_with_bytes` with its bytes as texts again, where they are some."""
    import polars as pl

    if value is None:
        return None
    if isinstance(kind, pl.List | pl.Array):
        return [_with_texts(kind.inner, part) for part in value]
    if isinstance(kind, pl.Struct):
        return {field.name: _with_texts(field.dtype, value[field.name]) for field in kind.fields}
    if kind != pl.String:
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _one_by_one(cell: Callable[[int], Any], n: int) -> list:
    """Cells read each on its own; those that cannot be read are outside of any schema."""
    values: list = [_NO_VALUE] * n
    for k in range(n):
        try:
            values[k] = cell(k)
        except _NOT_OURS:
            raise
        except BaseException:
            continue
    return values


def _encode_column(column: Column, schema: Schema, name: Hashable) -> np.ndarray:
    if isinstance(column, np.ndarray) and (made := coding(schema, name)).decides_numbers:
        return _encode_numbers(column, made)
    cells = _as_cells(column)
    return _lookup(cells.listed, key_coder(schema, name))[cells.places]


def _encode_numbers(column: np.ndarray, made: Coding) -> np.ndarray:
    codes = np.array(made.codes, dtype=np.int64)[np.searchsorted(made.cuts, column, side="right")]
    if made.numbers:
        numbers = sorted(made.numbers)
        values = np.array([number for number, _ in numbers])
        nearest = np.minimum(np.searchsorted(values, column), len(values) - 1)
        matches = values[nearest] == column
        codes[matches] = np.array([position for _, position in numbers])[nearest[matches]]
    codes[np.isnan(column)] = made.missing
    return codes


def _lookup(distinct: Iterable, code: Callable[[tuple], int]) -> np.ndarray:
    return np.array([code(match_key(value)) for value in distinct], dtype=np.int64)

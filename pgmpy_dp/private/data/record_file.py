"""Records of a CSV or Parquet file, without an engine: each line on its own.

Privacy
-------
Lines are mapped to records one by one, whatever they hold, so files that differ by one line are tables that differ by
one record at most. A parser that lets a quoted field span lines does not have this property: one record with a lone
quotation mark would swallow those that follow.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pgmpy_dp.private.data.frame import _columns, quietly, read_numbers
from pgmpy_dp.schema import Schema, interval_cuts, match_key

__all__ = ["read_file"]


def read_file(path: str | Path, schema: Schema) -> pd.DataFrame:
    """Columns of a CSV or Parquet file that the schema names, for :func:`~pgmpy_dp.private.data.frame.encode`.

    Parameters
    ----------
    path : str or Path
        ``.csv`` or ``.tsv``, also with ``.gz``: the first line holds names, each further line is a record, read on its
        own as text. ``.parquet`` or ``.pq`` needs pyarrow.
    schema : Schema
        Discrete variables only. Numbers in a column whose states are intervals, as
        :func:`pgmpy_dp.schema.interval_states` makes them, become the state that they lie in. An empty field of a text
        file is missing where None is a state.

    Returns
    -------
    DataFrame
        Private records: to be handed on to `encode`, and to nobody else.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If its first line, which is public, lacks a variable or has it twice; for an unknown ending.
    ModuleNotFoundError
        For Parquet without pyarrow.

    Notes
    -----
    No line changes how another is read: a quoted line break ends its record, and a line with too few or too many fields
    is dropped, in silence. Bytes that are no UTF-8 make their own field unreadable only. Messages do not quote the
    first line, for in a file without names it is a record.
    """
    schema.require_discrete()
    name = Path(path).name.lower()
    if name.endswith((".parquet", ".pq")):
        frame = quietly(_read_parquet, path, schema)
    elif name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        try:
            frame = _read_lines(path, "," if ".csv" in name[-7:] else "\t", schema)
        except (EOFError, gzip.BadGzipFile, zlib.error):  # whose messages may quote the file
            raise OSError(f"{str(path)!r} is damaged, or not compressed by gzip; make it again") from None
    else:
        raise ValueError(f"{str(path)!r} is no .csv, .tsv (or either with .gz) or .parquet file; convert or rename it")
    for variable, column in frame.items():
        cuts = interval_cuts(schema.states[variable])
        if cuts:
            numbers = read_numbers(frame, [variable])[0][:, 0]
            labels = np.array(schema.states[variable], dtype=object)[np.searchsorted(cuts, numbers, side="right")]
            frame[variable] = np.where(np.isnan(numbers), column.to_numpy(dtype=object), labels)
    return frame


def _read_lines(path: str | Path, separator: str, schema: Schema) -> pd.DataFrame:
    names = schema.variables
    with (gzip.open if str(path).lower().endswith(".gz") else open)(path, "rb") as lines:
        header = _fields(next(lines, b"").removeprefix(b"\xef\xbb\xbf"), separator)
        positions = _positions_in_file(path, header, names)
        seen: list[dict[str, int]] = [{} for _ in names]
        codes = [array("q") for _ in names]
        for line in lines:
            fields = _fields(line, separator)
            if len(fields) == len(header):
                for own, column, position in zip(seen, codes, positions, strict=True):
                    column.append(own.setdefault(fields[position], len(own)))
    columns = {}
    for name, own, column in zip(names, seen, codes, strict=True):
        keys = {match_key(state) for state in schema.states[name]}
        if match_key(None) in keys and match_key("") not in keys and "" in own:
            missing = own.pop("")
            order = np.array([code - (code > missing) if code != missing else -1 for code in range(len(own) + 1)])
            values = order[np.array(column, dtype=np.int64)]
        else:
            values = np.array(column, dtype=np.int64)
        columns[name] = pd.Categorical.from_codes(values, categories=pd.Index(list(own), dtype=object))
    return pd.DataFrame(columns)


def _fields(line: bytes, separator: str) -> list[str]:
    """Fields of one line; none where it is blank or cannot be read."""
    text = line.decode("utf-8", errors="replace").rstrip("\r\n")
    if '"' not in text:
        return text.split(separator) if text else []
    try:
        return next(csv.reader([text], delimiter=separator))
    except csv.Error:
        return []


def _read_parquet(path: str | Path, schema: Schema) -> pd.DataFrame:
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "Parquet files need pyarrow: pip install pyarrow, or convert the file to CSV"
        ) from None
    try:
        available = pyarrow.parquet.read_schema(path).names
        _positions_in_file(path, available, schema.variables)
        wanted = [name if name in available else str(name) for name in schema.variables]
        table = pyarrow.parquet.read_table(path, columns=wanted)
    except (FileNotFoundError, PermissionError):
        raise
    except (pyarrow.ArrowException, OSError):  # whose messages may quote the file
        raise OSError(f"{str(path)!r} cannot be read as a Parquet file; check it with another program") from None
    return pd.DataFrame(dict(zip(schema.variables, _columns(table, wanted), strict=True)))


def _positions_in_file(path: str | Path, available: Sequence[str], names: Sequence[Hashable]) -> list[int]:
    """Position of the column for each name; ValueError that does not quote the file."""
    counts = Counter(available)
    missing = [name for name in names if counts[str(name)] == 0]
    if missing:
        raise ValueError(
            f"{str(path)!r} has no column for the variables {missing} of the schema; the first line must name the "
            "columns as the schema does: rename them there, or remove these variables from the schema"
        )
    repeated = [name for name in names if counts[str(name)] > 1]
    if repeated:
        raise ValueError(f"{str(path)!r} has several columns named {repeated}; rename or remove all but one of each")
    return [list(available).index(str(name)) for name in names]

"""Which reader private data get: the one door through which paths, frames, relations and streams become sources."""

from __future__ import annotations

import glob
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp.private.data.text_file import TextFile
from pgmpy_dp.private.reading.parquet_source import ParquetSource
from pgmpy_dp.private.reading.producers import ArraySource, source_of
from pgmpy_dp.private.reading.source_base import Source
from pgmpy_dp.private.reading.text_source import SEPARATORS, TextSource


def is_path(data: Any) -> bool:
    """Whether `data` names files: a text, a Path, a list of these, or a TextFile."""
    if isinstance(data, list | tuple):
        return len(data) > 0 and all(isinstance(part, str | Path) for part in data)
    return isinstance(data, str | Path | TextFile)


def open_source(data: Any) -> Source:
    """The source for some data, of which nothing but names and types is looked at yet.

    Parameters
    ----------
    data : str, Path, list of these, TextFile, frame, relation, stream, or Source
        Parquet files (``.parquet``, ``.pq``, or a folder of them), or text files with a header (``.csv``, ``.tsv``,
        also ``.gz``); patterns such as ``part-*.parquet`` are allowed. A
        :class:`~pgmpy_dp.private.data.text_file.TextFile` says how text is written. Tables of pandas, polars (eager and
        lazy), pyarrow, Dask, ibis and Spark, relations of DuckDB, and any other object with ``__arrow_c_stream__``;
        narwhals' wrapper of one.

    Raises
    ------
    TypeError
        For anything else.
    FileNotFoundError
        If a pattern matches no file.
    ValueError
        For files of another kind, or that are none of the kind that they are named as. For text whose first line does
        not fit (:mod:`pgmpy_dp.private.data.header`).
    """
    if isinstance(data, Source):
        return data
    if is_path(data):
        return _open_files(data)
    if type(data).__module__.split(".")[0] == "narwhals" and hasattr(data, "to_native"):
        data = data.to_native()
    source = source_of(data)
    if source is None:
        raise TypeError(
            f"data is a {type(data).__name__}, not a dataframe; pass a pandas, polars or pyarrow table, a DuckDB "
            "relation, a path, anything with __arrow_c_stream__, or e.g. pandas.DataFrame(data, columns=[...])"
        )
    return source


def open_numbers(data: Any, names: Sequence[Hashable] | None) -> Source:
    """As :func:`open_source`, of an array too, whose columns get these names, or 0, 1, ...."""
    if not isinstance(data, np.ndarray):
        return open_source(data)
    width = data.shape[1] if data.ndim == 2 else 0
    if data.ndim != 2 or (names is not None and len(names) != width):
        raise ValueError(
            f"data has the shape {data.shape}, and {'some' if names is None else len(names)} columns are to be read; "
            "pass an array of shape (records, columns), with a name for each of its columns"
        )
    return ArraySource(data, range(width) if names is None else names)


def _open_files(data: Any) -> Source:
    written = data if isinstance(data, TextFile) else TextFile(data)
    parts = [str(part) for part in (written.path if isinstance(written.path, list | tuple) else [written.path])]
    # Before it is looked for: a mistaken ending is the likelier mistake.
    if data is written and ".parquet" in [_kind(part, written) for part in parts if not Path(part).is_dir()]:
        raise ValueError(f"data={data!r}: a Parquet file has no delimiter, encoding or signs; pass only its path")
    files = [name for part in parts for name in _matching(part, written)]
    kinds = {_kind(name, written) for name in files}
    if len(kinds) > 1:
        raise ValueError(f"data={data!r} names files of the kinds {sorted(kinds)}; pass files of one kind")
    (kind,) = kinds
    if kind != ".parquet":
        return TextSource(files, written.delimiter or SEPARATORS[kind], written)
    return ParquetSource(files)


def _matching(pattern: str, written: TextFile) -> list[str]:
    if Path(pattern).is_file():
        return [pattern]
    if Path(pattern).is_dir():
        found = sorted(str(path) for path in Path(pattern).rglob("*") if path.suffix.lower() in (".parquet", ".pq"))
        # What programs leave beside the data, as other readers of such folders leave it out.
        found = [
            name for name in found if not any(p.startswith(("_", ".")) for p in Path(name).relative_to(pattern).parts)
        ]
        if not found:
            raise FileNotFoundError(f"data={pattern!r} is a folder without a Parquet file; pass the path of a file")
        return found
    _kind(pattern, written)
    found = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())
    if not found:
        raise FileNotFoundError(f"data={pattern!r} names no file; pass the path of a Parquet or CSV file")
    return found


def _kind(name: str, written: TextFile) -> str:
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    known = (".parquet", ".pq", *SEPARATORS)
    if suffixes[-1:] == [".gz"]:
        known = tuple(SEPARATORS)
        suffixes.pop()
    kind = ".parquet" if suffixes[-1:] == [".pq"] else "".join(suffixes[-1:])
    if kind != ".parquet" and written.delimiter is not None:
        return "text"
    if suffixes[-1:] and suffixes[-1] in known:
        return kind
    raise ValueError(
        f"data={name!r} is not a .csv, .tsv (or either with .gz), .parquet or .pq file, nor a pattern of such files; "
        f"convert or rename it. For a text file of another name pass TextFile({name!r}, delimiter=...), or --delimiter "
        "on the command line"
    )

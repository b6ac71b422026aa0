"""Which reader a private argument gets: the one door through which paths and lazy frames become sources of records."""

from __future__ import annotations

import glob
import importlib.util
from pathlib import Path
from typing import Any

import narwhals as nw

from pgmpy_dp.private.data.frame import quietly
from pgmpy_dp.private.data.lazy import LazySource
from pgmpy_dp.private.data.pushdown import Source
from pgmpy_dp.private.data.record_file import SEPARATORS, ParquetSource, TextSource
from pgmpy_dp.private.data.sql import DuckDBSource, parquet_relation
from pgmpy_dp.private.data.text_file import TextFile

__all__ = ["is_path", "open_source"]


def is_path(data: Any) -> bool:
    """Whether `data` names files: a text, a Path, a list of these, or a TextFile."""
    if isinstance(data, list | tuple):
        return len(data) > 0 and all(isinstance(part, str | Path) for part in data)
    return isinstance(data, str | Path | TextFile)


def open_source(data: Any) -> Source | None:
    """The source to which counting is pushed down; None for what is in memory already.

    Parameters
    ----------
    data : str, Path, list of these, TextFile, or lazy frame
        Parquet files (``.parquet``, ``.pq``), or text files with a header (``.csv``, ``.tsv``, also ``.gz``); patterns
        such as ``part-*.parquet`` are allowed. A :class:`~pgmpy_dp.private.data.text_file.TextFile` says how text is
        written. Or a DuckDB relation, or another lazy frame that narwhals knows:
        PySpark, Dask, ibis, polars.

    Raises
    ------
    FileNotFoundError
        If a pattern matches no file.
    ValueError
        For files of another kind, or that are none of the kind that they are named as. For text whose first line does
        not fit (:mod:`pgmpy_dp.private.data.header`).
    ModuleNotFoundError
        For a Parquet file where pyarrow is not installed.
    """
    if is_path(data):
        return _open_files(data)
    data = nw.to_native(data, pass_through=True)
    if nw.dependencies.is_duckdb_relation(data):
        return DuckDBSource(data)
    try:
        # Quietly: narwhals announces that Dask will need a package of its own, which is not to be had yet.
        frame = quietly(nw.from_native, data, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None  # in memory, where columns are told apart by position
    return LazySource(frame) if isinstance(frame, nw.LazyFrame) else None


def _open_files(data: Any) -> Source:
    written = data if isinstance(data, TextFile) else TextFile(data)
    parts = [str(part) for part in (written.path if isinstance(written.path, list | tuple) else [written.path])]
    # Before it is looked for: a mistaken ending is the likelier mistake.
    if ".parquet" in [_kind(part, written) for part in parts]:
        if data is written:
            raise ValueError(f"data={data!r}: a Parquet file has no delimiter, encoding or signs; pass only its path")
        if not _is_installed("pyarrow"):
            raise ModuleNotFoundError(
                f"data={data!r}: Parquet files need pyarrow: pip install pyarrow duckdb (with DuckDB "
                "they are read faster), or convert the file to CSV"
            )
    files = [name for part in parts for name in _matching(part)]
    kinds = {_kind(name, written) for name in files}
    if len(kinds) > 1:
        raise ValueError(f"data={data!r} names files of the kinds {sorted(kinds)}; pass files of one kind")
    (kind,) = kinds
    if kind != ".parquet":
        return TextSource(files, written.delimiter or SEPARATORS[kind], written)
    return DuckDBSource(*parquet_relation(files), files) if _is_installed("duckdb") else ParquetSource(files)


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # for what a program has put in its place
        return False


def _matching(pattern: str) -> list[str]:
    if Path(pattern).is_file():
        return [pattern]
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

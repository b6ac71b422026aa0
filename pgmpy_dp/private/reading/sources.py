"""The choice of a reader for private data: paths, frames, relations and streams become sources here alone.

Parquet files, batch by batch: one, several, or those of a folder.
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Generator, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pgmpy_dp.private.data.text_file import TextFile
from pgmpy_dp.private.reading.arrow_cells import Column
from pgmpy_dp.private.reading.data_files import FileMarks, told
from pgmpy_dp.private.reading.producers import ArraySource, source_of
from pgmpy_dp.private.reading.source_base import ROWS, Source, Spelled
from pgmpy_dp.private.reading.text_source import SEPARATORS, TextSource


class ParquetSource(Source):
    """Parquet files with columns of the same names, read by pyarrow.

    Parameters
    ----------
    files : list of str

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If one is not a Parquet file, or has other columns than the first. Their order does not matter.
    """

    is_ours = True

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)
        self._marks = FileMarks(self._files)
        self._schemas = [_schema(name) for name in files]
        self.names = list(self._schemas[0].names)
        for name, schema in zip(files, self._schemas, strict=True):
            if alone := Counter(schema.names) - Counter(self.names) or Counter(self.names) - Counter(schema.names):
                raise ValueError(
                    f"{name!r} has other columns than {files[0]!r}: {list(alone)[:50]}; "
                    "pass files with the same columns"
                )

    def types(self) -> list[Any]:
        # Of several files the type of one whose cells are refused the soonest: it is declared, too.
        types, of_all = pa.types, ([schema.field(name).type for schema in self._schemas] for name in self.names)
        return [
            max(kinds, key=lambda kind: (types.is_duration(kind) or types.is_time(kind), types.is_floating(kind)))
            for kinds in of_all
        ]

    def declared_kind(self, name: Hashable) -> str | None:
        column = self.names[self.positions([name])[0]]
        kinds = {_declared_kind(schema.field(column).type) for schema in self._schemas}
        return kinds.pop() if len(kinds) == 1 else None

    def batches(self, names: Sequence[Hashable], spelled: Spelled = ()) -> Generator[list[Column]]:
        wanted = [self.names[place] for place in self.positions(names)]
        self._marks.check()
        for name, schema in zip(self._files, self._schemas, strict=True):
            # As the file has them: a text is decoded and looked up once.
            texts = [each for each in wanted if pa.types.is_string(schema.field(each).type)]
            # Without a buffer of the whole file, which pyarrow makes by default for storage that is far away.
            with told(name, partial(pq.ParquetFile, name, read_dictionary=texts, pre_buffer=False)) as file:
                batches = told(name, lambda file=file: iter(file.iter_batches(ROWS, columns=wanted)))
                while (batch := told(name, next, batches, None)) is not None:
                    columns = batch.schema.names
                    yield [batch.column(columns.index(each)) for each in wanted]
        self._marks.check()


def _declared_kind(declared: pa.DataType) -> str | None:
    declared = declared.value_type if pa.types.is_dictionary(declared) else declared
    if pa.types.is_integer(declared):
        return "integers"
    return "texts" if pa.types.is_string(declared) or pa.types.is_large_string(declared) else None


def _schema(file: str) -> Any:
    try:
        return pq.read_schema(file)
    except (FileNotFoundError, PermissionError):
        raise
    except (pa.ArrowException, OSError):
        pass  # its message may quote the file
    raise ValueError(f"{file!r} is not a Parquet file that pyarrow can open; name text files .csv or .tsv")


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
    """Open as :func:`open_source` does, an array too, whose columns get these names, or 0, 1, ...."""
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
    if data is written and ".parquet" in [_ending(part, written) for part in parts if not Path(part).is_dir()]:
        raise ValueError(f"data={data!r}: a Parquet file has no delimiter, encoding or signs; pass only its path")
    files = [name for part in parts for name in _matching(part, written)]
    endings = {_ending(name, written) for name in files}
    if len(endings) > 1:
        raise ValueError(f"data={data!r} names files of the kinds {sorted(endings)}; pass files of one kind")
    (ending,) = endings
    if ending != ".parquet":
        return TextSource(files, written.delimiter or SEPARATORS[ending], written)
    return ParquetSource(files)


def _matching(pattern: str, written: TextFile) -> list[str]:
    if Path(pattern).is_file():
        return [pattern]
    if Path(pattern).is_dir():
        files = sorted(str(path) for path in Path(pattern).rglob("*") if path.suffix.lower() in (".parquet", ".pq"))
        # What programs leave beside the data, as other readers of such folders leave it out.
        files = [
            name for name in files if not any(p.startswith(("_", ".")) for p in Path(name).relative_to(pattern).parts)
        ]
        if not files:
            raise FileNotFoundError(f"data={pattern!r} is a folder without a Parquet file; pass the path of a file")
        return files
    _ending(pattern, written)
    files = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())
    if not files:
        raise FileNotFoundError(f"data={pattern!r} names no file; pass the path of a Parquet or CSV file")
    return files


def _ending(name: str, written: TextFile) -> str:
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    known = (".parquet", ".pq", *SEPARATORS)
    if suffixes[-1:] == [".gz"]:
        known = tuple(SEPARATORS)
        suffixes.pop()
    ending = ".parquet" if suffixes[-1:] == [".pq"] else "".join(suffixes[-1:])
    if ending != ".parquet" and written.delimiter is not None:
        return "text"
    if suffixes[-1:] and suffixes[-1] in known:
        return ending
    raise ValueError(
        f"data={name!r} is not a .csv, .tsv (or either with .gz), .parquet or .pq file, nor a pattern of such files; "
        f"convert or rename it. For a text file of another name pass TextFile({name!r}, delimiter=...), or --delimiter "
        "on the command line"
    )

"""Parquet files, batch by batch: one, several, or those of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pgmpy_dp.private.reading.arrow_cells import Column
from pgmpy_dp.private.reading.data_files import FileMarks, told
from pgmpy_dp.private.reading.source_base import ROWS, Source, Spelled


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
        If one is not a Parquet file, or has other columns than the first. Their order is no matter.
    """

    is_ours = True

    def __init__(self, files: Sequence[str]) -> None:
        self._files = list(files)
        self._marks = FileMarks(self._files)
        self._schemas = [_schema(name) for name in files]
        self.names = list(self._schemas[0].names)
        for name, found in zip(files, self._schemas, strict=True):
            if alone := Counter(found.names) - Counter(self.names) or Counter(self.names) - Counter(found.names):
                raise ValueError(
                    f"{name!r} has other columns than {files[0]!r}: {list(alone)[:50]}; "
                    "pass files with the same columns"
                )

    def types(self) -> list[Any]:
        # Of several files the type of one whose cells are no numbers, if there is one: it is declared, too.
        of_all = ([schema.field(name).type for schema in self._schemas] for name in self.names)
        return [max(kinds, key=lambda kind: pa.types.is_duration(kind) or pa.types.is_time(kind)) for kinds in of_all]

    def declared_kind(self, name: Hashable) -> str | None:
        column = self.names[self.positions([name])[0]]
        kinds = {_kind(schema.field(column).type) for schema in self._schemas}
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
                    found = batch.schema.names
                    yield [batch.column(found.index(each)) for each in wanted]
        self._marks.check()


def _kind(declared: pa.DataType) -> str | None:
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

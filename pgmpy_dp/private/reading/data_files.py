"""Files that we open ourselves: what is told where one cannot be read, and whether it is still the same file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from pgmpy_dp.private.reading.arrow_cells import NOT_OURS
from pgmpy_dp.private.reading.source_base import without_its_words

_NO_DAMAGE = (FileNotFoundError, PermissionError, IsADirectoryError, *NOT_OURS)


def told(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call; what is wrong with a file is told without a library's own words, which may quote it."""
    message = (
        f"{name!r} is damaged and could not be read to its end; check that it is complete and not being written to, "
        "and compressed if it is named so"
    )
    return without_its_words(message, call, *arguments, but=_NO_DAMAGE)


class FileMarks:
    """The sizes of files and the times when they were written, as they were first seen.

    Parameters
    ----------
    files : list of str
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._seen = [_mark(name) for name in files]

    def check(self) -> None:
        """OSError if one is another file by now, or none: what is learned has to be of one and the same data."""
        for name, mark in zip(self._files, self._seen, strict=True):
            if _mark(name) != mark:
                raise OSError(
                    f"{name!r} was changed while it was in use; what is learned has to be of one and the same file: "
                    "wait until nothing writes to it, or pass a copy"
                )


def _mark(name: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino

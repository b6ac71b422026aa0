"""pgmpy's switches of the whole process, progress bars and the backend: the one module that asks for them.

It imports nothing of the package, and pgmpy when it is asked: Spark's workers and the command line start without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

SECONDS = 10.0
"""Between lines of progress where there is no terminal."""

_in_lines: ContextVar[bool] = ContextVar("bars are lines", default=False)


def _config() -> Any:
    from pgmpy import config

    return config


def bars_shown() -> bool:
    """Whether pgmpy's switch allows progress bars."""
    return bool(_config().get_show_progress())


@contextmanager
def bars(shown: bool, in_lines: bool = False) -> Iterator[None]:
    """The switch as it is set for a block, and then as it was; where there is no terminal, bars are lines."""
    before, token = bars_shown(), _in_lines.set(in_lines)
    _config().set_show_progress(shown)
    try:
        yield
    finally:
        _config().set_show_progress(before)
        _in_lines.reset(token)


class _Lines:
    """Standard error as a file for tqdm: a line each time that a bar is drawn."""

    def write(self, text: str) -> None:
        if said := text.replace("\x1b[A", "").strip():
            print(said, file=sys.stderr, flush=True)

    def flush(self) -> None: ...


def bar_options() -> dict[str, Any]:
    """When and where tqdm draws a bar: after a second, and in lines every 10 seconds."""
    if not _in_lines.get():
        return {"delay": 1.0}
    return {"file": _Lines(), **dict.fromkeys(("delay", "mininterval", "maxinterval"), SECONDS)}


def torch_device() -> Any:
    """The device of pgmpy's torch backend; None on its other backend, NumPy."""
    return _config().get_device() if _config().get_backend() == "torch" else None

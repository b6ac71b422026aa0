"""pgmpy's switches of the whole process, progress bars and the backend: the one module that asks for them.

It imports nothing of the package, and pgmpy when it is asked: Spark's workers and the command line start without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _config() -> Any:
    from pgmpy import config

    return config


def bars_shown() -> bool:
    """Whether pgmpy's switch allows progress bars."""
    return bool(_config().get_show_progress())


@contextmanager
def bars(shown: bool) -> Iterator[None]:
    """The switch as it is set for a block, and then as it was."""
    before = bars_shown()
    _config().set_show_progress(shown)
    try:
        yield
    finally:
        _config().set_show_progress(before)


def torch_device() -> Any:
    """The device of pgmpy's torch backend; None on its other backend, NumPy."""
    return _config().get_device() if _config().get_backend() == "torch" else None

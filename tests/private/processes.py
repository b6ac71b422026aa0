"""Children of a test that share its memory as it was when they were made."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def forked(work: Callable[[Callable[[bytes], int]], object]) -> Iterator[tuple[int, int]]:
    """A forked child that runs `work(write)` and ends; gives the parent its pid and the end that reads."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            work(lambda text: os.write(writing, text))
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield pid, reading
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def everything(reading: int) -> bytes:
    """All that the child wrote, once it has ended."""
    return b"".join(iter(lambda: os.read(reading, 1 << 16), b""))

"""Changes of what keeps a budget, one after the other: no thread begins one while it is making another."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock that other threads wait for, and that refuses the thread that holds it.

    A thread can come back to what it is changing: by a signal's handler, by a finaliser that the collection of garbage
    runs, by a generator among its arguments. A lock that lets its own thread in again would let such a second change
    begin from what the first one has read, and be forgotten when the first one is written; one that does not would
    wait for ever.

    Parameters
    ----------
    refusal : str
        What the thread is told that comes back.

    Examples
    --------
    >>> turns = Turns("busy")
    >>> with turns.taken():
    ...     turns.taken().__enter__()
    Traceback (most recent call last):
    ...
    RuntimeError: busy
    """

    def __init__(self, refusal: str) -> None:
        self.lock = threading.RLock()  # who only reads, or makes no change of its own, may hold it again
        self.process = os.getpid()
        self._refusal = refusal
        self._taken = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Make a change in this block; RuntimeError where this thread is in such a block already."""
        with self.lock:
            # What comes between these lines, in this thread, finds nothing changed and ends before they go on.
            if self._taken:
                raise RuntimeError(self._refusal)
            try:
                self._taken = True
                yield
            finally:
                self._taken = False

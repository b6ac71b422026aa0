"""One thread for products of matrices, in the whole process, for one piece of work after the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_working: ContextVar[bool] = ContextVar("_working", default=False)


def _forked() -> None:
    global _lock
    _lock = threading.Lock()  # the copied one may be held by a thread that was not copied


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@contextmanager
def one_thread(libraries: ThreadpoolController | None = None) -> Iterator[None]:
    """BLAS and OpenMP on one thread in this block; other threads that ask for it wait until it ends.

    Limits belong to the process. The end of such a block would lift those of another one that still works, at a time
    that depends on the records of the first; sums on several threads can have other roundings.

    Parameters
    ----------
    libraries : ThreadpoolController, optional
        Default: what is loaded now.

    Raises
    ------
    RuntimeError
        In code that such a block has called, which would wait for itself.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    if _working.get():
        raise RuntimeError("other work has the one thread for products of matrices, and this would wait for it")
    with _lock:
        token = _working.set(True)
        try:
            with (libraries or ThreadpoolController()).limit(limits=1):
                yield
        finally:
            _working.reset(token)

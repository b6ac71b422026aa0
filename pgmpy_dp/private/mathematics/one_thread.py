"""One thread for products of matrices, in the whole process, as long as anybody needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]

_lock = threading.Lock()
_users = 0
_limits: list[Any] = []


@contextmanager
def one_thread(libraries: ThreadpoolController | None = None) -> Iterator[None]:
    """BLAS and OpenMP on one thread in this block; the last one that ends puts back what was.

    Limits belong to the process. One that ends in another thread would lift those of the blocks of records that are still
    worked on here; when that happens depends on the records, and sums on several threads can have other roundings.

    Parameters
    ----------
    libraries : ThreadpoolController, optional
        Default: what is loaded now.

    Examples
    --------
    >>> with one_thread():
    ...     pass
    """
    global _users
    with _lock:
        _users += 1
        _limits.append((libraries or ThreadpoolController()).limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            while not _users and _limits:
                _limits.pop().restore_original_limits()

"""Blocks without warnings: a library's warning about odd records would be an output that depends on them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

# Filters of warnings are the process's: a second thread that saved and restored them meanwhile would leave them off for
# good.
_FILTERS = threading.RLock()


@contextmanager
def silence(category: type[Warning] = Warning) -> Iterator[None]:
    """No warning of this category is shown in the block, which one thread is in at a time.

    NumPy does not raise or print an overflow either, though it may have been told to.
    """
    with _FILTERS, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", category)
        yield

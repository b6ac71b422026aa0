"""A signal ends the command line once. This imports nothing of the package, for it is there before the rest is.

The first of Ctrl-C, SIGTERM and SIGHUP unwinds the stack; those after it are ignored, so that a command can keep what
was paid for. A signal that was ignored when this process began (``nohup``) stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

INTERRUPTED = 128  # and the number of the signal, as shells have it

_NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Told(KeyboardInterrupt):
    """A signal that asks this process to end: unwound like Ctrl-C, so that what was released is kept."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _leave(number: int, frame: object) -> NoReturn:
    """End at once: before a command has begun there is nothing to keep; click would exit with 1 for an interrupt."""
    no_more()
    os.write(2, b"pgmpy-dp: interrupted; nothing was spent\n")
    sys.exit(INTERRUPTED + number)


def _tell(number: int, frame: object) -> NoReturn:
    no_more()
    raise Told(number)


def _handlers() -> dict[int, Any]:
    """Handlers that may be replaced: of this thread, not ignored, and set by Python, or they could not be put back."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in _NUMBERS}
    return {number: handler for number, handler in handlers.items() if handler not in (None, signal.SIG_IGN)}


def before_a_command() -> None:
    """Let a signal end the process from here on, and say that nothing was spent."""
    for number in _handlers():
        signal.signal(number, _leave)


def no_more() -> None:
    """Ignore signals from here on: there is something to keep, or nothing left to interrupt."""
    for number, handler in _handlers().items():
        if handler in (_leave, _tell):
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def ending_once() -> Iterator[None]:
    """Raise `Told` at the first signal in this block. Others' handlers are put back; ours say nothing was spent."""
    before = _handlers()
    for number in before:
        signal.signal(number, _tell)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if handler is _leave else handler)

"""Outside functions: code that is not of the boundary and sees records, by name, and what keeps blocks of them apart.

They are block functions, which see the records of one block at a time, and solvers of a program's exact statistics.
One record changes one block's answer **if** the answer is a function of the block's records and of random bits that
were drawn for that block. This module makes it so: it decides which functions are called, with what, and in what
surroundings.
"""

from __future__ import annotations

import contextvars
import dis
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from pgmpy_dp.checks import is_exactly
from pgmpy_dp.private.mathematics.one_thread import one_thread

Function = TypeVar("Function", bound=Callable[..., Any])

_FUNCTIONS: dict[str, FunctionType] = {}
_IMMUTABLE = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


def outside_function(function: Function) -> Function:
    """Register a function by which blocks may vote, or a solver, under the name ``module.function``; a decorator.

    Parameters
    ----------
    function : callable
        Of a block ``function(codes, rng, **arguments)``: the block's codes, shape (n, p), n may be 0; a generator for
        this block; and public arguments. A function of a module, without a closure and without default values: what it
        returns depends on what it is handed alone. Its limits are in steps, never in time.

    Returns
    -------
    callable
        The same function.

    Raises
    ------
    TypeError
        For anything that is not such a function, or that could keep something from one block to the next.

    Notes
    -----
    Where the function is used, it is looked through once more, with the functions and classes of its module that it
    names: none may assign a global or an attribute, name a global that can be changed in place, or have such a thing
    for a default value, in a closure or as an attribute. State in libraries, and in the generators of ``random`` and
    ``numpy.random``, cannot be seen so: whoever registers a function reviews it for that, and replay looks for it
    (:mod:`pgmpy_dp.auditing.replay`).

    Examples
    --------
    >>> count = []
    >>> outside_function(lambda codes, rng: (len(count),))
    Traceback (most recent call last):
    ...
    TypeError: <lambda> is not a function of a module; pass one that a module defines with def, outside of others
    """
    if not isinstance(function, FunctionType) or not function.__qualname__.isidentifier():
        shown = getattr(function, "__qualname__", repr(function))
        raise TypeError(
            f"{shown} is not a function of a module; pass one that a module defines with def, outside of others"
        )
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        raise TypeError(
            f"{function.__qualname__} has a closure or default values, in which something could be kept from one block "
            "to the next; make them arguments"
        )
    _FUNCTIONS[f"{function.__module__}.{function.__qualname__}"] = function
    return function


def named_function(name: str) -> FunctionType:
    """The function that was registered under a name.

    Raises
    ------
    TypeError, ValueError
        For something else than a name, a name that is not registered, or a function that its module no longer has or
        that could keep something from one block to the next.
    """
    if not isinstance(name, str):
        raise TypeError(
            f"function={name!r} is a {type(name).__name__}; pass the name of a registered block function, or vouch for "
            "your own with vouched_for=True, which the release then says"
        )
    if name not in _FUNCTIONS:
        raise ValueError(f"function={name!r} is not registered; use one of {sorted(_FUNCTIONS)}")
    function = _FUNCTIONS[name]
    if vars(sys.modules[function.__module__]).get(function.__name__) is not function:
        raise ValueError(f"function={name!r} is not what its module has under this name; register that one")
    state = _kept_state(function)
    if state:
        raise TypeError(f"function={name!r} could keep something from one block to the next: {state}")
    return function


def plain_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Public arguments of a block function, of plain immutable kinds: numbers, texts, None, and tuples of these.

    So that no block can leave anything in them for another, and replay can compare them.
    """
    if not isinstance(arguments, Mapping):
        raise TypeError(f"arguments={arguments!r} is a {type(arguments).__name__}; pass a dict")
    plain = dict(arguments.items())
    for name, value in plain.items():
        if type(name) is not str or not _is_plain(value):
            raise TypeError(
                f"arguments has {name!r}: {value!r}, a {type(value).__name__}; pass Python's numbers, texts, None, and "
                "tuples of these"
            )
    return plain


def run_blocks(
    function: Callable[..., Any],
    blocks: Sequence[np.ndarray],
    seeds: Sequence[int],
    arguments: Mapping[str, Any],
    checked: Callable[[Any], Any],
    n_workers: int | None,
    weights: Sequence[np.ndarray] | None = None,
) -> list[Any]:
    """Return a function's answers on all blocks, as `checked` copies them; None where it raised an Exception.

    Parameters
    ----------
    function : callable
    blocks : sequence of ndarrays, shapes (n_k, p)
    seeds : sequence of int
        Of the blocks' generators.
    arguments : mapping
        As :func:`plain_arguments` returns them.
    checked : callable
        From any object to a value of this module's caller; it raises nothing.
    n_workers : int, optional
        Threads; default: up to 4.
    weights : sequence of ndarrays, shapes (n_k,), optional
        Of the blocks' rows; the function's argument of this name.

    Raises
    ------
    MemoryError, KeyboardInterrupt, SystemExit
        Of a block function, without their texts. Any other end that is no Exception counts as SystemExit.

    Notes
    -----
    A block's answer does not depend on which thread computes it, or when: rows are copied (a view would lead to the
    other blocks), context variables (among them numpy's handling of floating-point errors) are those of the caller,
    products of matrices take one thread, and warnings are ignored, whatever a block function does to their filters.
    """
    workers = min(4, os.cpu_count() or 1) if n_workers is None else n_workers

    def answered(k: int) -> Any:
        def call() -> Any:
            of_block = {} if weights is None else {"weights": np.array(weights[k])}
            return function(np.array(blocks[k], order="C"), np.random.default_rng(seeds[k]), **of_block, **arguments)

        return checked(context.copy().run(none_for_errors, call))

    def all_answers() -> list[Any]:
        if workers == 1:
            return [answered(k) for k in range(len(blocks))]
        pool = ThreadPoolExecutor(workers)
        try:
            return list(pool.map(answered, range(len(blocks))))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    with one_thread(), silent_warnings():
        context = contextvars.copy_context()
        return ended_without_text("a block function", all_answers)


def none_for_errors(call: Callable[[], Any]) -> Any:
    """Return the answer of code from outside, None for its Exceptions: whether it fails may depend on the records."""
    try:
        # Of each call: what one does to them decides nothing about the next, or about its certificate.
        with np.errstate(all="ignore"):
            return call()
    except MemoryError:
        raise
    except Exception:
        return None


def ended_without_text(who: str, call: Callable[[], Any]) -> Any:
    """Return the answer of a call; what ends it without an Exception, or full memory, says only that it ended."""
    ended: type[BaseException]
    try:
        return call()
    except MemoryError:
        ended, why = MemoryError, f"{who} ran out of memory"
    except BaseException as error:
        ended = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else SystemExit
        why = f"{who} was interrupted, or ended the program"
    # Raised here, so that neither its text nor its traceback tells of the records.
    raise ended(f"{why}: nothing was released, and the share is spent")


class _SilentModule(ModuleType):
    """``warnings`` while blocks are worked on: whoever asks for the filters is told to ignore every warning.

    Filters belong to the whole process: a block that set them would decide whether a warning is an error, hence a null,
    in other threads too. Python's warnings read this attribute of the module each time.
    """

    @property
    def filters(self) -> list[tuple]:
        return [("ignore", None, Warning, None, 0)]

    @filters.setter
    def filters(self, value: object) -> None:
        """Nothing a block function sets has an effect."""


_lock, _runs = threading.Lock(), 0
_before: tuple[Any, ...] = ()


@contextmanager
def silent_warnings() -> Iterator[None]:
    """Ignore warnings in all threads, and put filters and handlers back as they were."""
    global _runs, _before
    names = ("showwarning", "_showwarnmsg_impl")
    with _lock:
        if _runs == 0:
            known = vars(warnings)
            _before = (type(warnings), list(known["filters"]), {name: known[name] for name in names if name in known})
            warnings.__class__ = _SilentModule
        _runs += 1
    try:
        yield
    finally:
        with _lock:
            _runs -= 1
            if _runs == 0:
                kind, filters, handlers = _before
                warnings.__class__ = kind
                warnings.filters[:] = filters  # type: ignore[index]
                vars(warnings).update(handlers)


def _is_plain(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return is_exactly(value, int, float, str, bool, type(None))


def _kept_state(function: FunctionType) -> str:
    """Return the place where a function, or what it names of its module, could keep something; "" if there is none."""
    file = function.__code__.co_filename
    todo: list[Any] = [function]
    seen: set[int] = set()
    while todo:
        item = todo.pop()
        if id(item) in seen or getattr(item, "__module__", None) != function.__module__:
            continue
        seen.add(id(item))
        if isinstance(item, type):
            todo += item.__bases__
            for name, value in vars(item).items():
                written = isinstance(value, FunctionType) and value.__code__.co_filename == file
                if name.startswith("__") and not written:  # not what Python and dataclasses add
                    continue
                if isinstance(value, property | cached_property | staticmethod | classmethod):
                    value = next(getattr(value, at) for at in ("fget", "func", "__func__") if hasattr(value, at))
                if not _harmless(value):
                    return f"{item.__qualname__}.{name} can be changed in place"
                todo.append(value)
        elif isinstance(item, FunctionType):
            for name, value, problem in (*_held(item), *_named(item)):
                if problem:
                    return f"{item.__qualname__} {problem} {name}"
                todo.append(value)
        else:
            return f"{getattr(item, '__qualname__', item)!r} is a {type(item).__name__}"
    return ""


def _held(function: FunctionType) -> Iterator[tuple[str, Any, str]]:
    """Yield what a function has besides its code, each with what is wrong about it, or ""."""
    free, cells = function.__code__.co_freevars, function.__closure__ or ()
    held = dict(zip(free, (cell.cell_contents for cell in cells), strict=True))
    held |= function.__kwdefaults__ or {}
    held |= {f"default {k}": value for k, value in enumerate(function.__defaults__ or ())}
    for name, value in (held | vars(function)).items():
        yield name, value, "" if _harmless(value) else "keeps what can be changed in place,"


def _named(function: FunctionType) -> Iterator[tuple[str, Any, str]]:
    """Globals that a function names, each with what is wrong about it, or ""."""
    for name, step, before in _steps(function.__code__):
        if step in ("STORE_ATTR", "DELETE_ATTR") and function.__name__ == "__init__" and "LOAD_FAST" in before:
            continue  # of a new object, by its usual name `self`
        freed = step in ("STORE_DEREF", "DELETE_DEREF") and name in function.__code__.co_freevars
        if freed or step in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR"):
            yield name, None, "assigns"
        elif step == "LOAD_GLOBAL" and name in function.__globals__:
            value = function.__globals__[name]
            yield name, value, "" if _harmless(value) else "names what can be changed in place,"


@lru_cache(maxsize=1024)  # code never changes, and is asked about before each use of a block function
def _steps(code: CodeType) -> tuple[tuple[Any, str, str], ...]:
    """Each step that names a global, or assigns, with its name and the step before it; of codes within, too."""
    steps = [("", ""), *((step.argval, step.opname) for step in dis.get_instructions(code))]
    named = [(name, step, steps[k][1]) for k, (name, step) in enumerate(steps[1:])]
    inner = [step for part in code.co_consts if isinstance(part, CodeType) for step in _steps(part)]
    return (*(step for step in named if step[1].endswith(("_ATTR", "_DEREF", "_GLOBAL"))), *inner)


def _harmless(value: object) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_harmless, value))
    if isinstance(value, (*_IMMUTABLE, ModuleType, np.number, np.ufunc)):
        return True
    # A function or class; not a method of an object, nor an object that can be called: these have a state.
    owner = getattr(value, "__self__", None)
    return callable(value) and hasattr(value, "__name__") and (owner is None or isinstance(owner, ModuleType | type))

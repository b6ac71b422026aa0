"""Which code an audit runs, as a hash that stays when code only moves: rows of the table are kept by it.

The hash is of the definitions and constants of every module with a function that ran, as syntax trees: without paths,
imports, comments, docstrings and layout, in no order. What differs is run again, also where it differs in a part of a
module that did not run, or where modules of which some ran are joined: an audit too many is minutes, and a row of code
that is gone says something false.
"""

from __future__ import annotations

import ast
import functools
import gc
import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["code_hash", "files_that_run"]

ROOT = Path(__file__).parents[1]
_OURS = (str(ROOT / "pgmpy_dp"), str(ROOT / "benchmarks"))
_THIS_RUNS_AUDITS = {str(Path(__file__)), str(ROOT / "benchmarks" / "audits.py")}


def files_that_run(call: Callable[[], Any]) -> set[Path]:
    """Files of the package, and of mutants, that have a function which a call runs, in any thread."""
    call()  # what is done once in a process is done, whichever case is the first
    for kept in gc.get_objects():  # and what an earlier case has computed is computed again
        if type(kept) is functools._lru_cache_wrapper and str(kept.__module__).startswith("pgmpy_dp"):
            kept.cache_clear()
    found: set[str] = set()
    importing = threading.local()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):  # what an import runs, it runs once
            importing.depth = getattr(importing, "depth", 0) + (1 if event == "call" else -1)
        elif event == "call" and not getattr(importing, "depth", 0) and code.co_flags & inspect.CO_OPTIMIZED:
            found.add(code.co_filename)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {Path(name) for name in found if name.startswith(_OURS) and name not in _THIS_RUNS_AUDITS}


def code_hash(sources: Iterable[str]) -> str:
    """Of the definitions and constants of some modules.

    Examples
    --------
    >>> one = code_hash(["import math\\n\\ndef f(x):\\n    'Docs.'\\n    return x + 1  # one\\n", "LIMIT = 3\\n"])
    >>> one == code_hash(["LIMIT = 3\\nfrom math import pi\\ndef f(x): return (x + 1)\\n"])
    True
    >>> one == code_hash(["LIMIT = 3\\ndef f(x): return x + 2\\n"])
    False
    """
    found = set()
    for source in sources:
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Import | ast.ImportFrom) and not _is_text(node):
                for part in ast.walk(node):
                    body = getattr(part, "body", None)
                    if isinstance(body, list) and body and _is_text(body[0]):
                        del body[0]
                found.add(ast.dump(node))
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

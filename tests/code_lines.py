"""Lines of code of a folder: those that hold a token which is no comment and no docstring.

python -m tests.code_lines [FOLDER ...]      # default: pgmpy_dp/private and each folder in it
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

__all__ = ["code_lines"]

BOUNDARY = Path(__file__).parents[1] / "pgmpy_dp" / "private"
_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> int:
    """How many lines of a module are code: a text that stands alone as a docstring is none."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for child in node.body if isinstance(node, _WITH_DOCSTRING) else ():
            value = child.value if isinstance(child, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                texts.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - texts)


def in_folder(folder: Path) -> tuple[int, int]:
    """Files and lines of code."""
    files = sorted(folder.rglob("*.py"))
    return len(files), sum(code_lines(path.read_text(encoding="utf-8")) for path in files)


if __name__ == "__main__":
    folders = [Path(name) for name in sys.argv[1:]]
    for folder in folders or [BOUNDARY, *sorted(p for p in BOUNDARY.iterdir() if any(p.glob("*.py")))]:
        print(f"{folder}: {in_folder(folder)[0]} files, {in_folder(folder)[1]:,} lines of code")

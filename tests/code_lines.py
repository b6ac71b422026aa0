"""Lines that hold a token which is no comment and no docstring, by folder and kind, and who imports whom.

python -m tests.code_lines [FOLDER ...]      # default: pgmpy_dp/private and each folder in it
python -m tests.code_lines --kinds           # each folder of the package: imports, signatures, checks, ...
python -m tests.code_lines --graph           # largest modules, cycles, what `learn` reaches by folder
python -m tests.code_lines --reached         # the same, module by module, each with who takes it
"""

from __future__ import annotations

import ast
import functools
import io
import sys
import tokenize
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from pathlib import Path

import networkx as nx

__all__ = ["by_kind", "code_lines", "cycles", "imports_of", "parsed", "reached"]

PACKAGE = Path(__file__).parents[1] / "pgmpy_dp"
BOUNDARY = PACKAGE / "private"
LEARN = "pgmpy_dp.tables.networks.private_network"
MODULES = {".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts): p for p in sorted(PACKAGE.rglob("*.py"))}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}
_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The source of a file, of which there is one tree for all who look; a second for the package takes a second."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def code_lines(source: str) -> int:
    """How many lines of a module are code: a text that stands alone as a docstring is none."""
    return len(_lines_with_code(source, ast.parse(source)))


def by_kind(source: str) -> Counter[str]:
    """Lines of code of a module by what they are for; of two kinds on one line, the first below."""
    tree = ast.parse(source)
    left = _lines_with_code(source, tree)
    found: Counter[str] = Counter()
    for kind, spans in _spans(tree).items():
        lines = {line for span in spans for line in span} & left
        found[kind] = len(lines)
        left -= lines
    found["algorithm"] = len(left)
    return found


def in_folder(folder: Path) -> tuple[int, int]:
    """Files and lines of code."""
    files = sorted(folder.rglob("*.py"))
    return len(files), sum(code_lines(path.read_text(encoding="utf-8")) for path in files)


@functools.cache
def imports_of(name: str, *, late: bool = True) -> frozenset[str]:
    """The modules of this package that one imports: in functions too, or at once alone, and never for types alone.

    A name that a front door imports when it is used is the import of that name's home.
    """
    found = set()
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in _at_run_time(parsed(MODULES[name]), late):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            base = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            found |= {_home(whole, alias.name) for alias in node.names}
    return frozenset(one for one in found if one in MODULES and one != name)


def reached(name: str = LEARN) -> dict[str, str]:
    """Modules that one takes, late imports and packages on the way too, each with who took it first."""
    by = {name: ""}
    queue = deque([name])
    while queue:
        one = queue.popleft()
        for other in sorted(imports_of(one) | {one.rpartition(".")[0]} - {""}):
            if other not in by:
                by[other] = one
                queue.append(other)
    return by


def cycles(*, late: bool = False) -> list[list[str]]:
    """Groups of modules that import each other, at once or late too."""
    graph = nx.DiGraph([(name, other) for name in MODULES for other in imports_of(name, late=late)])
    return sorted(sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1)


def _lines_with_code(source: str, tree: ast.Module) -> set[int]:
    texts: set[int] = set()
    for node in ast.walk(tree):
        for child in node.body if isinstance(node, _WITH_DOCSTRING) else ():
            value = child.value if isinstance(child, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                texts.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            found.update(range(token.start[0], token.end[0] + 1))
    return found - texts


def _spans(tree: ast.Module) -> dict[str, list[range]]:
    kinds: dict[str, list[range]] = {"imports": [], "signatures": [], "checks": [], "declarations": []}
    for node in ast.walk(tree):
        whole = range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", None) or 0) + 1)
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_type_checking(node) or _assigns(node, "__all__"):
            kinds["imports"].append(whole)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            kinds["signatures"].append(range(first, node.body[0].lineno))
        elif isinstance(node, ast.If) and all(isinstance(one, ast.Raise) for one in node.body):
            kinds["checks"].append(range(node.lineno, (node.body[-1].end_lineno or 0) + 1))
        elif isinstance(node, ast.Raise):
            kinds["checks"].append(whole)
        elif isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            kinds["declarations"].append(range(first, node.body[0].lineno))
            fields = (one for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign))
            kinds["declarations"] += [range(one.lineno, (one.end_lineno or 0) + 1) for one in fields]
    return kinds


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)


def _at_run_time(node: ast.AST, late: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.expr) or _is_type_checking(child):  # no import is in an expression
            continue
        elif late or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _at_run_time(child, late)


def _home(module: str, name: str) -> str:
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else _homes(module).get(name, module)


@functools.cache
def _homes(module: str) -> Mapping[str, str]:
    """Where the names of a front door are, from the literal that says it."""
    for node in parsed(MODULES[module]).body if module in MODULES else ():
        if _assigns(node, "_HOME") or _assigns(node, "ESTIMATORS"):
            value = node.value if isinstance(node, ast.Assign) else None
            return ast.literal_eval(value) if isinstance(value, ast.Dict) else {}
    return {}


def _count(name: str) -> int:
    return code_lines(MODULES[name].read_text(encoding="utf-8"))


def _folder(name: str) -> str:
    parts = MODULES[name].relative_to(PACKAGE).parent.parts
    return "/".join(parts[: 2 if parts[:1] == ("private",) or "operators" in parts else 1]) or "."


def _print_kinds() -> None:
    folders: dict[str, Counter[str]] = {}
    for name, path in MODULES.items():
        found = by_kind(path.read_text(encoding="utf-8")) | Counter(files=1)
        folders.setdefault(_folder(name), Counter()).update(found)
    kinds = ["algorithm", "signatures", "imports", "checks", "declarations"]
    print("| folder | files | lines of code |", *(f"{kind} |" for kind in kinds))
    print("| --- " * (3 + len(kinds)) + "|")
    for folder, found in [*sorted(folders.items()), ("all", sum(folders.values(), Counter()))]:
        total = sum(found[kind] for kind in kinds)
        print(f"| {folder} | {found['files']} | {total:,} |", *(f"{found[kind]:,} |" for kind in kinds))


def _print_graph(each: bool) -> None:
    taken = reached()
    sizes = {name: _count(name) for name in MODULES}
    largest = sorted(sizes, key=sizes.get, reverse=True)  # type: ignore[arg-type]
    print("modules above 400 lines of code:", *(f"{name} {sizes[name]}" for name in largest if sizes[name] > 400))
    print("largest:", *(f"{name} {sizes[name]}" for name in largest[:5]))
    print("cycles of imports at once:", cycles() or "none")
    print("with late ones:", cycles(late=True) or "none")
    print(f"`learn` reaches {len(taken)} modules, {sum(sizes[name] for name in taken):,} lines of code")
    by_folder: Counter[str] = Counter()
    for name in taken:
        by_folder[_folder(name)] += sizes[name]
    for folder, lines in by_folder.most_common():
        print(f"{lines:7,}  {folder}")
    for name in sorted(taken, key=lambda one: (_folder(one), -sizes[one])) if each else ():
        print(f"{sizes[name]:5} {name} <- {taken[name]}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--kinds"]:
        _print_kinds()
    elif sys.argv[1:] in (["--graph"], ["--reached"]):
        _print_graph(sys.argv[1:] == ["--reached"])
    else:
        folders = [Path(name) for name in sys.argv[1:]]
        for folder in folders or [BOUNDARY, *sorted(p for p in BOUNDARY.iterdir() if any(p.glob("*.py")))]:
            print(f"{folder}: {in_folder(folder)[0]} files, {in_folder(folder)[1]:,} lines of code")

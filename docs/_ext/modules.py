"""A page for each module, and what autodoc leaves out.

The reference of public names is written by hand, in ``docs/api``. The pages made here hold everything else, above all
the privacy boundary, whose docstrings contain the proofs.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from typing import TYPE_CHECKING, Any

from repository import DOCS, contents, write
from sphinx import addnodes

import pgmpy_dp
from pgmpy_dp import estimators

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# Front doors: their names are in docs/api.
PUBLIC = ("", ".estimators", ".auditing", ".theory", ".plotting", ".metrics")
MARKUP = r"(``.*?``|`[^`]*`|\\.|\[[\w-]+\]_)"  # code, what is escaped already, references to papers
PARTS = {
    "private": "Inside the boundary: everything that touches records or draws noise",
    "inference": "Inference: log-linear models, without records and noise",
    "learning": "Learning: what all methods share",
    "models": "Models: what is learned and asked",
    "theory": "Theory: one function for each theorem",
}
TREES: dict[str, Callable[..., str]] = {}
TEXT = (
    "The [reference](../api/index.rst) has the names that are promised. These pages have the rest, as the modules' own "
    "docstrings: read them to audit the package or to extend it; nothing here is promised to stay."
)


def public_objects() -> set[int]:
    """Identities of everything that a front door exports."""
    doors = [importlib.import_module("pgmpy_dp" + door) for door in PUBLIC]
    public = {id(getattr(door, name)) for door in doors for name in door.__all__}
    # And names of other modules that the reference has.
    text = "".join(path.read_text() for path in (DOCS / "api").glob("*.rst"))
    named = re.findall(r"^\.\. auto(?:class|function):: (\S+)\.(\w+)$", text, flags=re.MULTILINE)
    return public | {id(getattr(importlib.import_module(module), name)) for module, name in named}


def module_names() -> list[str]:
    """All modules of the package."""
    return sorted(found.name for found in pkgutil.walk_packages(pgmpy_dp.__path__, "pgmpy_dp."))


def elsewhere(name: str, public: set[int]) -> list[str]:
    """Names that a module or package exports and that have their place on another page."""
    module = importlib.import_module(name)
    exported = {one: getattr(module, one) for one in getattr(module, "__all__", vars(module))}
    return [
        one
        for one, value in exported.items()
        if not one.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and (id(value) in public or (value.__module__ != name and hasattr(module, "__all__")))
    ]


def page(name: str, public: set[int]) -> str:
    """The page of a module."""
    excluded, title = elsewhere(name, public), name.removeprefix("pgmpy_dp.")
    lines = [title, "=" * len(title), "", f".. automodule:: {name}", "   :members:"]
    return "\n".join(lines + [f"   :exclude-members: {', '.join(excluded)}"] * bool(excluded)) + "\n"


def title(name: str) -> str:
    """The first sentence of a package's docstring."""
    return (importlib.import_module(name).__doc__ or name).partition("\n")[0].rstrip(".")


def make_pages(app: Sphinx) -> None:
    """A page for each module that has anything of its own to show."""
    public = public_objects()
    names = module_names()
    made = {write(DOCS / "internals" / f"{name}.rst", page(name, public)) for name in names}
    parts = PARTS | {subject: title(f"pgmpy_dp.{subject}") for subject in estimators._SUBJECTS}
    sections = {title: [name for name in names if name.split(".")[1] == part] for part, title in parts.items()}
    listed = {name for section in sections.values() for name in section}
    sections["Others"] = [name for name in names if name not in listed]
    made.add(write(DOCS / "internals" / "index.md", contents("All modules", TEXT, sections)))
    for path in (DOCS / "internals").iterdir():
        if path not in made:
            path.unlink()


def end_tree(app: Sphinx, env: BuildEnvironment) -> None:
    """End the tree of pages at the list of modules: each page would have all their names, and take as long to write."""
    for modules in list(env.tocs["internals/index"].findall(addnodes.toctree)):
        modules.parent.remove(modules)


def keep_tree(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Source in one folder has one tree of pages, which takes longer to write than the rest of such a page."""
    if name.startswith("_modules/"):
        context["toctree"] = TREES.setdefault(name.rpartition("/")[0], functools.cache(context["toctree"]))


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what other packages define, and what only scikit-base's tests call."""
    home = getattr(getattr(obj, "fget", obj), "__module__", None) or "pgmpy_dp"
    inherited = not home.startswith("pgmpy_dp")
    return True if inherited or name == "get_test_params" else None


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """Of a class, what its own constructor takes: networkx' graphs have a ``__new__`` that takes anything."""
    if what == "class" and inspect.isfunction(vars(obj).get("__init__")) and arguments and "**" in arguments:
        bound = inspect.signature(obj.__init__)
        plain = [one.replace(annotation=one.empty) for one in list(bound.parameters.values())[1:]]
        return str(bound.replace(parameters=plain, return_annotation=bound.empty)), returned
    return None


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Take bars and underscores of docstrings literally: there they are absolute values and subscripts.

    Docstrings are read in terminals too, so they are written without backslashes, and never use what reStructuredText
    would make of these signs (substitutions and references by name). They name pages as files, which become links.
    """
    if not any(line.startswith(".. [") for line in lines):  # the references are with the module
        lines[:] = [re.sub(r"(\[[\w-]+\])_", r"\1", line) for line in lines]
    literal = None  # indentation of the paragraph that announced a literal block
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...", "..")):
            parts = re.split(MARKUP, re.sub(r"(`*)docs/([\w-]+)\.md\1", r":doc:`/\2`", line))
            parts[::2] = [re.sub(r"\||_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
            lines[i] = "".join(parts)
            if line.rstrip().endswith("::"):
                literal = indent


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", make_pages)
    app.connect("env-updated", end_tree)
    app.connect("html-page-context", keep_tree, priority=400)  # before the theme
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}

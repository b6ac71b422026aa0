"""Every public name says what it takes, returns and refuses, where it is from, and shows it in an example that runs."""

import ast
import doctest
import functools
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

ROOT = Path(__file__).parents[1]
DOORS = (
    "pgmpy_dp",
    "pgmpy_dp.estimators",
    "pgmpy_dp.auditing",
    "pgmpy_dp.theory",
    "pgmpy_dp.plotting",
    "pgmpy_dp.metrics",
)
# What scikit-base's own tests call, without a meaning for users.
INTERNAL = {"get_test_params"}


def public_names() -> dict[str, object]:
    """All names of the front doors; one that two doors export appears once."""
    found: dict[int, tuple[str, object]] = {}
    for door in DOORS:
        module = importlib.import_module(door)
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value):
                found.setdefault(id(value), (f"{door}.{name}", value))
    return dict(found.values())


def methods(cls: type) -> dict[str, object]:
    """Public methods and properties that this package defines, inherited ones too."""
    found = {}
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        ours = inspect.isfunction(function) and function.__module__.startswith("pgmpy_dp")
        if ours and not name.startswith("_") and name not in INTERNAL:
            found[name] = function
    return found


NAMES = public_names()
CLASSES = {name: value for name, value in NAMES.items() if inspect.isclass(value)}
METHODS = {
    f"{name}.{method}": (function, isinstance(inspect.getattr_static(cls, method), property))
    for name, cls in CLASSES.items()
    for method, function in methods(cls).items()
}
PROPERTIES = {name: function for name, (function, is_property) in METHODS.items() if is_property}
FUNCTIONS = {name: value for name, value in NAMES.items() if inspect.isfunction(value)}
CALLED = {**FUNCTIONS, **{name: function for name, (function, is_property) in METHODS.items() if not is_property}}
EVERYTHING = {**NAMES, **PROPERTIES, **CALLED}
# Made by functions of the package and never by users, so that `Attributes` are what there is to say.
RESULTS = {f"pgmpy_dp.auditing.{name}" for name in ("AuditReport", "Event", "OneRunReport", "ReplayReport")}
# Algorithms of papers; the rest is data, accounting and plots.
ALGORITHMS = {
    *(name for name in NAMES if name.startswith("pgmpy_dp.estimators.")),
    "pgmpy_dp.auditing.one_run_audit",
    "pgmpy_dp.learn",
    "pgmpy_dp.theory.feasibility_map",
    "pgmpy_dp.theory.plan",
    "pgmpy_dp.theory.table_1",
    "pgmpy_dp.theory.table_1_options",
}


def every(values: dict[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("value", list(values.values()), ids=list(values))


def each(values: dict[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("name", "value"), list(values.items()), ids=list(values))


@functools.cache
def parsed(value: object) -> FunctionDoc:
    # A class's own docstring: numpydoc would add a list of its methods.
    return ClassDoc(value, config={"show_class_members": False}) if inspect.isclass(value) else FunctionDoc(value)


def documented(value: object, section: str = "Parameters") -> set[str]:
    """Names in a section; ``epsilon, delta : float`` documents two."""
    return {name.strip().lstrip("*") for entry in parsed(value)[section] for name in entry.name.split(",")}


def taken(value: object) -> set[str]:
    function = value
    if inspect.isclass(value):  # what is immutable is made by __new__
        function = value.__new__ if "__new__" in vars(value) else value.__init__
    return set(inspect.signature(function).parameters) - {"self", "cls"}


def raised(function: object) -> set[str]:
    """Exceptions that the function's own body raises, by name; those of what it calls are not looked for."""
    nodes = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))
    errors = [node.exc for node in nodes if isinstance(node, ast.Raise) and node.exc is not None]
    called = [error.func if isinstance(error, ast.Call) else error for error in errors]
    return {error.id for error in called if isinstance(error, ast.Name) and error.id[0].isupper()}


def sections(value: object, *names: str) -> str:
    return "\n".join(
        f"{entry.name} {entry.type} {' '.join(entry.desc)}" for name in names for entry in parsed(value)[name]
    )


def test_there_is_much_to_check():
    assert len(NAMES) > 50
    assert len(CALLED) > 100
    assert "pgmpy_dp.MarkovNetwork.sample" in CALLED
    assert "pgmpy_dp.Ledger.spent" in PROPERTIES


@every(EVERYTHING)
def test_a_summary_in_one_line(value):
    first = inspect.getdoc(value).partition("\n\n")[0]
    assert "\n" not in first
    assert first.endswith((".", ":"))


@each({name: value for name, value in {**CLASSES, **CALLED}.items() if name not in RESULTS})
def test_all_parameters_and_no_others(name, value):
    assert documented(value) == taken(value)


@each({name: CLASSES[name] for name in sorted(RESULTS)})
def test_results_document_their_attributes(name, value):
    assert documented(value, "Attributes") == taken(value)


@every(CALLED)
def test_what_is_returned(value):
    returned = inspect.signature(value).return_annotation
    if returned in (None, "None"):
        assert not parsed(value)["Returns"]
    else:
        assert parsed(value)["Returns"], returned


@every(CALLED)
def test_returned_arrays_have_shapes(value):
    returned = str(inspect.signature(value).return_annotation)
    if re.search(r"\bndarray\b", returned):
        assert re.search(r"shape|one axis", sections(value, "Returns"))


@each({**CLASSES, **CALLED})
def test_arrays_that_are_taken_have_shapes(name, value):
    without = [
        entry.name
        for section in ("Parameters", "Attributes")
        for entry in parsed(value)[section]
        if re.search(r"\b(ndarray|array)s?\b", entry.type)
        and not re.search(r"shape|\(", f"{entry.type} {' '.join(entry.desc)}")
    ]
    assert without == []


@every(CALLED)
def test_errors_of_its_own(value):
    assert raised(value) <= set(re.findall(r"\w+", sections(value, "Raises")))


@each({name: NAMES[name] for name in sorted(ALGORITHMS)})
def test_algorithms_name_their_source(name, value):
    assert re.search(r"\b(19|20)\d\d\b", inspect.getdoc(value))


@every(NAMES)
def test_an_example_that_runs(value):
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(value))
    assert any(doctest.SKIP not in example.options for example in examples)


def listed_names() -> list[str]:
    """The functions and classes that the pages of the reference list."""
    return [
        name
        for page in (ROOT / "docs" / "api").glob("*.rst")
        for name in re.findall(r"^\.\. auto(?:class|function):: (\S+)$", page.read_text(), flags=re.MULTILINE)
    ]


def test_the_reference_has_every_public_name_once():
    listed = listed_names()
    assert sorted(set(listed)) == sorted(listed)
    missing = sorted(set(NAMES) - set(listed))
    assert not missing, f"no page of docs/api has an autoclass or autofunction line for {missing}"


def test_references_lead_to_where_a_name_is_documented():
    """On the site public functions are in the reference, others with their modules; classes are found by both paths."""
    home = {id(resolved(name)[-1]): name for name in sorted(listed_names())}
    references = {
        (path.relative_to(ROOT).as_posix(), kind, name)
        for path in (ROOT / "pgmpy_dp").rglob("*.py")
        for kind, name in re.findall(r":(\w+):`~?(pgmpy_dp[\w.]*)`", path.read_text(encoding="utf-8"))
    }
    assert len(references) > 100
    wrong = []
    for place, kind, name in sorted(references):
        chain = resolved(name)
        if not chain or (kind == "mod") != inspect.ismodule(chain[-1]):
            wrong.append(f"{place}: {name} is not there")
            continue
        parts = name.split(".")
        for depth, value in enumerate(chain[1:], 2):
            path = ".".join(parts[:depth])
            if inspect.isfunction(value) and home.get(id(value), path) != path:
                wrong.append(f"{place}: {name} is documented as {home[id(value)]}")
    assert not wrong, "\n".join(wrong)


def resolved(name: str) -> list:
    """What each part of a dotted name stands for; empty where one stands for nothing."""
    found, path = [], ""
    for part in name.split("."):
        path = f"{path}.{part}" if path else part
        try:
            found.append(importlib.import_module(path))
        except ModuleNotFoundError:
            if not hasattr(found[-1], part):
                return []
            found.append(getattr(found[-1], part))
    return found

"""Every option of every estimator: bad input is refused in one sentence before anything is spent, scalars are taken."""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from numpydoc.docscrape import ClassDoc, FunctionDoc

from pgmpy_dp import Budget, Ledger, check_schema, discover, estimators, learn, list_estimators, preview, score_model
from pgmpy_dp.cli import application
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.learning.options import Rule, Settings, rules_of
from pgmpy_dp.learning.table_base import BaseTableEstimator
from pgmpy_dp.models.model_score import preview_score
from pgmpy_dp.tables.discovery import columns_to_look_at
from tests.estimators.case_base import GRAPHS
from tests.estimators.cases import CASES

FIRST = {case.estimator: case for case in reversed(CASES)}
OPTIONS = [(estimator, name) for estimator in list_estimators() for name in rules_of(estimator)]
STATES = {"a": ["x", "y"], "b": [0, 1], "c": [False, True]}
FUNCTIONS = {
    check_schema: lambda **options: check_schema(object(), Budget(epsilon=1.0), STATES, **options),
    columns_to_look_at: lambda **options: discover(
        object(), {"a": "categories"}, Budget(epsilon=1.0, delta=1e-6), **options
    ),
    preview: lambda **options: preview(STATES, [("a", "b")], **{"budget": Budget(epsilon=1.0), "n": 9, **options}),
    preview_score: lambda **options: preview_score(object(), **{"budget": Budget(epsilon=1.0), "n": 9, **options}),
    score_model: lambda **options: score_model(object(), object(), Budget(epsilon=1.0), **options),
}
ARGUMENTS = [(function, name) for function in FUNCTIONS for name in rules_of(function)]


def bad_values(rule: Rule, default: Any) -> Iterator[tuple[Any, type[Exception]]]:
    """What no value of a rule is, and the error that says so."""
    kind = TypeError if rule.type in ("whole", "number", "flag") else ValueError
    yield from ((value, kind) for value in ([1, 2], {"a": 1}, object()))
    if rule.type in ("whole", "number"):
        yield from ((value, TypeError) for value in ("2", True, np.True_, 1j, b"2", [1], np.arange(2)))
        yield from ((value, ValueError) for value in _outside(rule))
    if rule.type == "whole":
        yield from ((value, TypeError) for value in (2.5, 3.0, np.float64(3.0), math.nan, math.inf))
    if rule.type == "choice":
        yield from ((value, ValueError) for value in ("nonsense", "", 0, True, math.nan, np.array(["auto"])))
    if rule.type == "flag":
        yield from ((value, TypeError) for value in ("yes", 0, 1, 1.0, math.nan))
    if default is not None and rule.type in ("whole", "number", "flag"):
        yield None, TypeError


def _outside(rule: Rule) -> Iterator[Any]:
    if rule.type == "whole":
        yield rule.least - 1
        yield np.int64(rule.least - 1)
        yield from () if math.isinf(rule.most) else (rule.most + 1, 10**400)
        return
    yield from (math.nan, np.float32("nan"), -math.inf, -1, np.int64(-3))
    yield from () if rule.infinite else (math.inf, 10**400)
    yield from (0, -0.0) if rule.above else ()
    yield from () if math.isinf(rule.most) else (rule.most + 1, rule.most if rule.below else rule.most * (1 + 1e-9))


def good_values(rule: Rule) -> Iterator[tuple[Any, Any]]:
    """Scalars of NumPy's, and the value that is used for each."""
    if rule.type == "whole":
        yield from ((of(rule.least + 1), int(rule.least + 1)) for of in (np.int64, np.uint8, np.int32))
    if rule.type == "number":
        value = 0.5 if rule.most == 1.0 else 1.5
        yield from ((of(value), value) for of in (np.float64, np.float32, np.float16))
    if rule.type == "flag":
        yield from ((np.bool_(value), value) for value in (True, False))
    if rule.type == "choice":
        yield from ((np.str_(choice), choice) for choice in rule.choices)


@pytest.fixture
def charges(monkeypatch):
    made: list[Any] = []
    monkeypatch.setattr(Ledger, "charge", lambda *_args, **_given: made.append("charged"))
    return made


def fit(estimator, case):
    """On data that nothing opens."""
    data = object()
    if case.estimator.get_class_tag("task") == "parameters":
        return estimator.fit(GRAPHS[case.kind], data)
    return estimator.fit(data)


@pytest.mark.parametrize(("estimator", "name"), OPTIONS, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_value_is_refused_in_one_sentence_before_anything_is_spent(estimator, name, charges):
    rule, default = rules_of(estimator)[name]
    case = FIRST[estimator]
    described = {"state_names": STATES} if "state_names" in rules_of(estimator) else {}
    for value, error in bad_values(rule, default) if rule.type != "other" else ():
        made = estimator(**{**described, **case.options, name: value})
        before = dict(vars(made))
        with pytest.raises(error) as raised:
            fit(made, case)
        assert str(raised.value).startswith(f"{name}={value!r} is ") and "; pass " in str(raised.value)
        assert type(raised.value) is error and charges == []
        assert vars(made).keys() == before.keys() and all(vars(made)[key] is before[key] for key in before)
        assert getattr(made, name) is value and not made.is_fitted


@pytest.mark.parametrize(("estimator", "name"), OPTIONS, ids=lambda part: getattr(part, "__name__", part))
def test_scalars_of_numpy_are_used_as_python_s(estimator, name):
    rule, _ = rules_of(estimator)[name]
    for value, used in good_values(rule):
        made = estimator(**{**FIRST[estimator].options, name: value})
        taken = vars(made._as_checked())[name]
        assert taken == used and type(taken) is type(used)
        assert getattr(made, name) is value


@pytest.mark.parametrize("estimator", list_estimators(), ids=lambda estimator: estimator.__name__)
def test_every_argument_of_the_constructor_is_declared_and_its_default_is_allowed(estimator):
    rules = rules_of(estimator)
    assert list(rules) == list(inspect.signature(estimator).parameters)
    for name, (rule, default) in rules.items():
        if default is not None:
            assert rule.check(name, default) == default


@pytest.mark.parametrize("estimator", list_estimators(), ids=lambda estimator: estimator.__name__)
def test_an_option_is_declared_in_one_class(estimator):
    """Budget and data among them: a subclass can take one away (`init=False`), and repeats none."""
    for name in rules_of(estimator):
        assert len([base for base in estimator.__mro__ if name in inspect.get_annotations(base)]) == 1, name


FIRST_ARGUMENTS = {
    "PrivateNetwork": "epsilon delta rho state_names adjacency n_records",
    "CollectiveMAP": "epsilon delta rho state_names adjacency n_records cliques noise weights",
    "PrivateMarkovChain": "epsilon delta rho state_names adjacency n_users unit sequence",
    "PrivateIsing": "width epsilon delta rho state_names",
    "PrivateBinaryMRF": "width order epsilon delta rho state_names",
    "EdgeVoting": "width min_edge_weight epsilon delta rho",
    "StableStructure": "width min_edge_weight epsilon delta",
    "PrivateGraphicalLasso": "row_norm epsilon delta rho mechanism perturb penalty",
    "PrivateLinearGaussian": "epsilon delta rho row_norm mechanism center",
    "PrivateGaussianMixture": "n_components separation scale epsilon delta",
    "PrivateBlockModel": "n_communities method epsilon delta rho",
}


@pytest.mark.parametrize("name", FIRST_ARGUMENTS)
def test_the_first_arguments_are_these_and_are_kept(name):
    """Constructors of scikit-base and of mixed-in classes are called on the way, and set nothing."""
    kind, names = getattr(estimators, name), FIRST_ARGUMENTS[name].split()
    values = [object() for _ in names]
    assert [getattr(kind(*values), one) for one in names] == values


@pytest.mark.parametrize("estimator", list_estimators(), ids=lambda estimator: estimator.__name__)
def test_a_fit_reads_a_snapshot(estimator):
    made = estimator(**FIRST[estimator].options)
    taken = made._as_checked()
    made.set_params(**dict.fromkeys(rules_of(estimator)))
    assert {name: vars(taken)[name] for name in FIRST[estimator].options} == FIRST[estimator].options


NAMING = [
    (kind, name) for kind, name in OPTIONS if rules_of(kind)[name][0].names and issubclass(kind, BaseTableEstimator)
]
MISTYPED = ("agee", [("a", "agee")], {"a": ["agee"]})  # a column, sets of columns, columns of a column


@pytest.mark.parametrize(("estimator", "name"), NAMING, ids=lambda part: getattr(part, "__name__", part))
def test_a_mistyped_column_is_refused_by_the_base_class_before_anything_is_spent(estimator, name, charges):
    case, rule = FIRST[estimator], rules_of(estimator)[name][0]
    release = case.fit(case.make(), case.data(pd.DataFrame({"a": ["x", "y"] * 9, "b": [0, 1] * 9, "c": True}))).release_
    tried, message = 0, re.escape(f"{name} has the unknown variables 'agee'; the schema declares ['a', 'b', 'c']")
    charges.clear()
    for value in MISTYPED:
        with contextlib.suppress(TypeError):
            rule.check(name, value)
            tried += 1
            with pytest.raises(ValueError, match=message):
                fit(estimator(**{"state_names": STATES, **case.options, name: value}), case)
            with pytest.raises(ValueError, match=message):
                case.make(**{name: value}).fit_release(release)
    assert tried == 1 and charges == []


@pytest.mark.parametrize("estimator", list_estimators(data_kind="discrete"), ids=lambda estimator: estimator.__name__)
def test_every_option_that_speaks_of_variables_says_which_it_names(estimator):
    """But priors, which are models, and tables: of a graph, public, or of a workload, which may be by levels."""
    speak = {
        name for name, said in documented(estimator).items() if re.search(r"\bvariables?\b(?! to list of st)", said)
    }
    naming = {name for name, (rule, _) in rules_of(estimator).items() if rule.names}
    assert speak - {"cliques", "public", "workload"} == naming


def test_settings_are_read_only():
    settings = Settings(width=1.0)
    with pytest.raises(AttributeError, match="settings are fixed; width cannot be set"):
        settings.width = 2.0
    with pytest.raises(AttributeError, match="settings are fixed"):
        del settings.width
    assert settings.but(width=2.0, order=3) == Settings(width=2.0, order=3) and settings.width == 1.0


def documented(estimator) -> dict[str, str]:
    """The type that the docstring gives each parameter."""
    entries = ClassDoc(estimator)["Parameters"]
    return {name: entry.type for entry in entries for name in entry.name.split(", ")}


@pytest.mark.parametrize("estimator", list_estimators(), ids=lambda estimator: estimator.__name__)
def test_docstrings_say_what_is_declared(estimator):
    types = documented(estimator)
    assert set(types) == set(rules_of(estimator))
    for name, (rule, default) in rules_of(estimator).items():
        said = types[name]
        assert {"whole": "int", "number": "float", "flag": "bool"}.get(rule.type, "") in said, (name, said)
        if choices := re.search(r"\{(.*)\}", said):
            texts = [choice.strip().strip('"') for choice in choices[1].split(",")]
            assert rule.type != "choice" or [text for text in texts if text != "None"] == list(rule.choices), name
        if told := re.search(r"default:? (\S+)", said):
            assert told[1].strip('",') == str(default), (name, said)
        if told := re.search(r"in ([\[(])(\S+), (\S+)([\])])", said):
            ends = (float(told[2]), float(told[3]), told[1] == "(", told[4] == ")")
            assert ends == (rule.least, rule.most, rule.above, rule.below), (name, said)
        assert "optional" not in said or default is None, (name, said)


def test_the_command_line_has_the_same_defaults():
    """None there is what was not passed, and is not handed on."""
    commands = typer.main.get_command(application.app).commands  # type: ignore[attr-defined]
    rules, seen = rules_of(PrivateNetwork), set()
    for command in commands.values():
        for parameter in command.params:
            if parameter.name in rules:
                seen.add(parameter.name)
                assert parameter.default in (None, rules[parameter.name][1]), (command.name, parameter.name)
    assert {"epsilon", "delta", "rho", "adjacency", "n_records", "max_order", "workload", "prior"} <= seen


@pytest.mark.parametrize("name", [name for name in rules_of(PrivateNetwork) if name not in ("epsilon", "delta", "rho")])
def test_learn_refuses_what_its_estimator_refuses(name, charges):
    rule, default = rules_of(PrivateNetwork)[name]
    for value, error in bad_values(rule, default) if rule.type != "other" else ():
        if value is None:
            continue  # to a verb it was not passed
        with pytest.raises(error) as raised:
            learn(object(), Budget(epsilon=1.0), STATES, **{name: value})
        assert str(raised.value).startswith(f"{name}={value!r} is ") and charges == []


@pytest.mark.parametrize(("function", "name"), ARGUMENTS, ids=lambda part: getattr(part, "__name__", part))
def test_public_functions_refuse_a_wrong_value_in_the_same_sentence(function, name, charges):
    rule, default = rules_of(function)[name]
    for value, error in bad_values(rule, default):
        with pytest.raises(error) as raised:
            FUNCTIONS[function](**{name: value})
        assert str(raised.value).startswith(f"{name}={value!r} is ") and "; pass " in str(raised.value)
        assert type(raised.value) is error and charges == []


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_number_flag_and_seed_of_a_public_function_is_declared(function):
    """What is not declared is data, a budget, a schema, a model, or names of columns."""
    declared = set(rules_of(function))
    simple = re.compile(r"^(int|float|bool)(?! or)|^\{")
    documented = {name: entry.type for entry in FunctionDoc(function)["Parameters"] for name in entry.name.split(", ")}
    assert {name for name, said in documented.items() if simple.match(said)} <= declared
    for name, (rule, default) in rules_of(function).items():
        assert default in (None, inspect.Parameter.empty) or rule.check(name, default) == default

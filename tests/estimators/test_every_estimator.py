"""What every estimator promises, tried on every one with every mechanism: the gate that a new one goes through."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import pickle
import re
import sys
import types
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn.base
from numpydoc.docscrape import ClassDoc
from pgmpy.causal_discovery._base import _BaseCausalDiscovery
from pgmpy.parameter_estimator import BaseParameterEstimator, DiscreteParameterEstimator
from pgmpy.parameter_estimator.base import GaussianParameterEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from pgmpy_dp import Budget, Release, list_estimators
from pgmpy_dp import estimators as E
from pgmpy_dp.auditing import catalogue
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.estimators import NaiveMLE
from pgmpy_dp.learning.graph_base import BaseGraphEstimator
from pgmpy_dp.learning.privacy_record import UnderstatedGuarantee, composed
from pgmpy_dp.learning.private_base import PrivateFit
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.mechanism import Mechanism
from pgmpy_dp.private.data.data_base import PrivateData
from pgmpy_dp.private.sensitive import Sensitive
from tests.estimators.case_base import GRAPHS
from tests.estimators.cases import CASES, NEIGHBOURS, ORDINARY, Case

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
OF_EACH = list({case.estimator: case for case in CASES}.values())
every_other_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] * (k % 2 and case not in OF_EACH), id=case.name)
        for k, case in enumerate(CASES)
    ],
)
each_estimator = pytest.mark.parametrize("case", OF_EACH, ids=lambda case: case.name)


def public(case: Case) -> dict:
    return {"n_records": case.options["n_records"]} if "n_records" in case.options else {}


def fit(case: Case, estimator=None):
    data = case.data(ORDINARY[case.kind], **public(case))
    return case.fit(case.make() if estimator is None else estimator, data)


@functools.cache
def fitted(number: int):
    """A fit of a case, for tests that change nothing of it."""
    return fit(CASES[number])


def fitted_case(case: Case):
    return fitted(CASES.index(case))


def fit_release(case: Case, estimator, release):
    if case.estimator.get_class_tag("task") == "parameters":
        return estimator.fit_release(GRAPHS[case.kind], release)
    return estimator.fit_release(release)


def test_every_estimator_has_a_case_and_a_guarantee_in_the_docs():
    missing = {kind.__name__ for kind in list_estimators()} - {case.estimator.__name__ for case in CASES}
    assert not missing, f"no cases.py of a subject's tests fits {sorted(missing)}"
    hidden = {kind.__name__ for kind in list_estimators()} - set(E.__all__)
    assert not hidden, f"ESTIMATORS of no subject's __init__.py has {sorted(hidden)}"
    page = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text(encoding="utf-8")
    derived = page.partition("## Where each is derived\n")[2].partition("\n## ")[0]
    rows = [row for row in derived.splitlines() if row.startswith("| ")]
    unsaid = [k.__name__ for k in list_estimators() if not any(re.search(rf"`{k.__name__}\b", row) for row in rows)]
    assert not unsaid, f"docs/guarantees.md has no row, under 'Where each is derived', for {unsaid}"


def test_what_the_page_of_guarantees_leads_to_derives_them():
    """The module of each row says the guarantee of its release; its tests are there."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "guarantees.md").read_text(encoding="utf-8")
    rows = page.partition("## Where each is derived\n")[2].partition("\n## ")[0].split("\n| ")[3:]
    assert len(rows) >= 19
    for row in rows:
        what, modules, tests = row.split(" | ")
        read = [(root / "docs" / link).read_text(encoding="utf-8") for link in re.findall(r"\]\(([^)]+)\)", modules)]
        assert any("*Guarantee.*" in text or "Privacy" in text for text in read), what
        assert all((root / "tests" / path).exists() for path in re.findall(r"`(\S+\.py)`", tests)), what


@pytest.mark.parametrize("where", ["cases.py", "__init__.py", "guarantees.md"])
def test_the_gate_names_a_class_that_a_list_misses(where, monkeypatch):
    if where == "cases.py":
        monkeypatch.setattr(
            sys.modules[__name__], "CASES", [case for case in CASES if case.estimator is not E.PrivateIsing]
        )
    elif where == "__init__.py":
        monkeypatch.setattr(E, "__all__", [name for name in E.__all__ if name != "PrivateIsing"])
    else:
        true = Path.read_text
        monkeypatch.setattr(Path, "read_text", lambda *a, **k: true(*a, **k).replace("`PrivateIsing`", "`PrivateIsin`"))
    with pytest.raises(AssertionError, match=rf"{where} .*\['PrivateIsing'\]"):
        test_every_estimator_has_a_case_and_a_guarantee_in_the_docs()


# What no attack is for asks only what is audited already: all there is to show is that it learns from nothing else.
ATTACKED = {case.subject for case in catalogue().values()}
REPLAYED = [case for case in CASES if case.estimator.__name__ not in ATTACKED or case.name == "NaiveMLE-pure"]


@pytest.mark.parametrize("case", REPLAYED, ids=lambda case: case.name)
def test_replay_finds_nothing(case):
    for name, (one, other) in NEIGHBOURS[case.kind].items():
        report = replay(lambda raw: vars(case.fit(case.make(), case.data(raw, **public(case)))), one, other)
        assert report.requests and report.holds, f"{case.name}, {name}: {report}"


def test_the_gate_catches_a_plan_that_looks_at_the_records(monkeypatch):
    true = NaiveMLE._run

    def run(self, table, *arguments):
        release = true(self, table, *arguments)
        return dataclasses.replace(release, public={**release.public, "n": len(table._codes)})

    monkeypatch.setattr(NaiveMLE, "_run", run)
    with pytest.raises(AssertionError, match=r"NaiveMLE-pure, none and one: .*result differs"):
        test_replay_finds_nothing(next(case for case in REPLAYED if case.estimator is NaiveMLE))


def test_what_estimators_share_is_documented_once():
    """A class names it alone, and has the text of its base; nothing is left without a type."""
    shared = [item for section in ("Parameters", "Attributes") for item in ClassDoc(PrivateFit)[section]]
    sources = [path.read_text(encoding="utf-8") for path in Path(E.__file__).parents[1].rglob("*.py")]
    for item in shared:
        for line in item.desc:
            assert sum(source.count(line) for source in sources) == 1, f"{item.name}: {line}"
    for kind in list_estimators():
        own = ClassDoc(kind, config={"show_class_members": False})
        items = [*own["Parameters"], *own["Attributes"]]
        bare = [item.name for item in items if not item.type and not item.desc]
        assert not bare, f"{kind.__name__} says nothing about {bare}"


@every_other_case
def test_fit_returns_itself_and_sets_attributes_that_end_in_an_underscore(case):
    estimator = case.make()
    before = dict(vars(estimator))
    assert fit(case, estimator) is estimator and estimator.is_fitted
    new = set(vars(estimator)) - set(before)
    assert {"release_", "privacy_"} <= new
    internal = ("_contradicted", "_fit", "_last_fit", "_noisy", "_is_fitted")
    assert not [name for name in new if not name.endswith("_") and name not in internal]
    assert {name: value for name, value in vars(estimator).items() if name in before and name != "_is_fitted"} == {
        name: value for name, value in before.items() if name != "_is_fitted"
    }
    assert estimator.privacy_.guarantee == estimator.release_.guarantee
    assert estimator.privacy_.entries[-1].cost == estimator.release_.guarantee


@each_estimator
@pytest.mark.parametrize("clone", [lambda e: e.clone(), sklearn.base.clone], ids=["skbase", "sklearn"])
def test_clones_are_unfitted_and_have_the_same_parameters(case, clone):
    estimator = fitted(CASES.index(case))
    copy = clone(estimator)
    assert type(copy) is case.estimator and not copy.is_fitted
    assert copy.get_params() == estimator.get_params()
    assert not [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]


@each_estimator
def test_reset_forgets_the_fit(case):
    estimator = fit(case)
    estimator.reset()
    assert not estimator.is_fitted and not hasattr(estimator, "release_")
    assert estimator.get_params() == case.make().get_params()


# -- what is kept ------------------------------------------------------------------------------------------------------


def reachable(root):
    """Every object that can be reached, code and classes left aside."""
    code = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType)
    seen, pending = {}, [root]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, code):
            continue
        seen[id(item)] = item
        pending.extend(gc.get_referents(item))
    return seen.values()


def private_things(root, raw) -> list[str]:
    """Private objects, exact statistics and the data themselves, anywhere in `root`."""
    records = raw.to_numpy() if isinstance(raw, pd.DataFrame) else raw
    found = []
    for item in reachable(root):
        if isinstance(item, PrivateData | Sensitive | Mechanism | Curator) or item is raw:
            found.append(type(item).__name__)
        elif isinstance(item, nx.Graph) and isinstance(raw, nx.Graph) and nx.utils.graphs_equal(item, raw):
            found.append("the graph")
        elif isinstance(item, np.ndarray) and not isinstance(raw, nx.Graph) and np.array_equal(item, records):
            found.append("the records")
    return found


@every_case
def test_fits_and_their_pickles_hold_nothing_private(case):
    estimator, raw = fitted(CASES.index(case)), ORDINARY[case.kind]
    assert private_things(estimator, raw) == []
    again = pickle.loads(pickle.dumps(estimator))
    assert private_things(again, raw) == []
    assert again.release_ == estimator.release_ and again.get_params().keys() == estimator.get_params().keys()


def test_the_search_finds_what_it_looks_for():
    for case in OF_EACH:
        estimator, raw = fit(case), ORDINARY[case.kind]
        for secret in (case.data(raw), raw, [raw.copy()] if case.kind in ("graph", "vectors") else [raw]):
            estimator.secret = secret
            assert private_things(estimator, raw), case.name


# -- fits that fail ----------------------------------------------------------------------------------------------------


class Boom(RuntimeError):
    pass


@every_other_case
def test_a_fit_that_fails_at_its_end_changes_nothing_and_hands_over_the_release(case, monkeypatch):
    """Learning runs to its end and then fails: whatever it assigned on the way would be seen."""
    estimator = copy.copy(fitted_case(case))
    before = dict(vars(estimator))
    true = case.estimator._learned

    def learned(self, *arguments, **context):
        true(self, *arguments, **context)
        raise Boom

    monkeypatch.setattr(case.estimator, "_learned", learned)
    with pytest.raises(Boom) as caught:
        fit(case, estimator)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())
    assert isinstance(caught.value.release, Release) and caught.value.release.kind in case.estimator._release_kinds
    with pytest.raises(Boom):
        fit_release(case, estimator, caught.value.release)
    assert all(vars(estimator)[name] is value for name, value in before.items())


@each_estimator
def test_a_plan_that_says_less_than_it_charged_is_an_error_that_hands_over_the_release(case, monkeypatch):
    """Two curators, of which the release has one's guarantee (`test_privacy_record.py` has other plans)."""
    true = case.estimator._run

    def twice(self, *arguments):
        true(self, *arguments)
        return true(self, *arguments)

    estimator = copy.copy(fitted_case(case))
    before = dict(vars(estimator))
    enough = Budget(rho=9.0) if "rho" in case.options else Budget(epsilon=9.0, delta=3 * case.budget.delta)
    data = case.data(ORDINARY[case.kind], enough, **public(case))
    monkeypatch.setattr(case.estimator, "_run", twice)
    with pytest.raises(UnderstatedGuarantee, match="ask one curator of these data") as caught:
        case.fit(estimator, data)
    first, second = (entry.cost for entry in data.ledger.entries)
    assert caught.value.release.guarantee == composed(first, second) and second == estimator.release_.guarantee
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())


@each_estimator
def test_the_gate_catches_a_fit_that_assigns_early(case, monkeypatch):
    true = case.estimator._take

    def take(self, *arguments, **context):
        self.early_ = 1
        return true(self, *arguments, **context)

    monkeypatch.setattr(case.estimator, "_take", take)
    with pytest.raises(AssertionError):
        test_a_fit_that_fails_at_its_end_changes_nothing_and_hands_over_the_release(case, monkeypatch)


@each_estimator
def test_an_unusable_budget_is_refused_before_the_data_are_opened(case):
    for wrong in ({"epsilon": -1.0, "rho": None}, {"epsilon": "much", "rho": None}):
        options = {k: v for k, v in wrong.items() if k in case.make().get_params()}
        estimator = case.make(**options)
        with pytest.raises((TypeError, ValueError), match="epsilon"):
            case.fit(estimator, object())
        assert not estimator.is_fitted


# -- releases of others ------------------------------------------------------------------------------------------------


@every_case
def test_its_own_release_will_do_and_costs_nothing(case):
    estimator = fitted(CASES.index(case))
    options = {"epsilon": None} if case.options.get("perturb") == "output" else {}
    again = fit_release(case, case.make(**options), estimator.release_)
    assert again.release_ == estimator.release_ and again.privacy_.entries == ()
    assert vars(again).keys() == vars(estimator).keys()


@each_estimator
def test_what_is_no_release_of_its_own_is_refused_and_changes_nothing(case):
    others = {fitted(k).release_.kind: fitted(k).release_ for k in range(len(CASES))}
    estimator = fit(case)
    before = dict(vars(estimator))
    for kind, release in others.items():
        if kind not in case.estimator._release_kinds:
            with pytest.raises(ValueError, match=r"kind|release"):
                fit_release(case, estimator, release)
    for wrong in (None, "model.npz", estimator):
        with pytest.raises(TypeError, match="pass a Release"):
            fit_release(case, estimator, wrong)
    assert all(vars(estimator)[name] is value for name, value in before.items())


@pytest.mark.filterwarnings("ignore::pgmpy_dp.learning.few_records.NoEdgeWarning")
@each_estimator
def test_the_gate_catches_a_fit_release_that_checks_nothing(case, monkeypatch):
    monkeypatch.setattr(case.estimator, "_check_release", lambda self, release: None)
    if hasattr(case.estimator, "_checked_cliques"):
        monkeypatch.setattr(case.estimator, "_checked_cliques", lambda *a: None)
    # Whatever it then stumbles over is no answer to who passed the wrong file.
    with pytest.raises((AssertionError, AttributeError, KeyError, IndexError, TypeError, pytest.fail.Exception)):
        test_what_is_no_release_of_its_own_is_refused_and_changes_nothing(case)


def test_attributes_of_an_earlier_fit_are_gone():
    case = next(case for case in CASES if case.estimator.__name__ == "NaiveMLE")
    estimator = fit(case)
    estimator.of_before_ = 1
    assert not hasattr(fit(case, estimator), "of_before_")


# -- bases -------------------------------------------------------------------------------------------------------------


def test_estimators_have_pgmpy_s_bases_where_there_are_any():
    for kind in list_estimators():
        assert issubclass(kind, PrivateFit)
        assert issubclass(kind, BaseParameterEstimator) == (kind.get_class_tag("task") == "parameters")
        assert issubclass(kind, _BaseCausalDiscovery) == issubclass(kind, BaseGraphEstimator)


@pytest.mark.parametrize(
    "case", [case for case in OF_EACH if issubclass(case.estimator, BaseGraphEstimator)], ids=lambda case: case.name
)
def test_structure_learners_never_use_what_reads_data_in_pgmpy_s_base(case, monkeypatch):
    """Its checks raise because of records and keep names; ours stand before them."""

    def never(*_arguments, **_options):
        raise AssertionError("pgmpy's base read the data")

    for name in ("_check_fit_data", "fit", "score"):
        monkeypatch.setattr(_BaseCausalDiscovery, name, never)
    for name in ("validate_data", "check_is_fitted"):
        monkeypatch.setattr(f"pgmpy.causal_discovery._base.{name}", never)
    estimator = fit(case)
    assert_nothing_inferred(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tags = estimator.__sklearn_tags__()
    assert tags.input_tags.categorical and not tags.target_tags.required
    assert isinstance(estimator.get_tag("task"), str)


@pytest.mark.parametrize(
    "case", [case for case in OF_EACH if issubclass(case.estimator, BaseParameterEstimator)], ids=lambda case: case.name
)
def test_parameter_learners_never_use_what_reads_data_in_pgmpy_s_base(case, monkeypatch):
    """It infers states from the records, and keeps them."""

    def never(*_arguments, **_options):
        raise AssertionError("pgmpy's base read the data")

    for name in ("_validate_inputs", "fit"):
        monkeypatch.setattr(BaseParameterEstimator, name, never)
    for kind in (DiscreteParameterEstimator, GaussianParameterEstimator):
        monkeypatch.setattr(kind, "_initialize_fit", never)
    for name in ("preprocess_data", "build_state_names"):  # all that it calls
        monkeypatch.setattr(f"pgmpy.parameter_estimator.base.{name}", never)
    estimator = fit(case)
    assert_nothing_inferred(estimator)


def assert_nothing_inferred(estimator) -> None:
    for name in ("causal_graph_", "states", "state_names_", "data"):
        assert not hasattr(estimator, name)
    assert estimator.feature_names_in_.tolist() == list(estimator._columns(estimator.release_))  # of no record


@pytest.mark.parametrize("case", OF_EACH, ids=lambda case: case.name)
def test_scikit_learn_is_told_the_columns_of_the_release_and_shows_a_pipeline(case):
    names = {"table": ["a", "b", "c"], "vectors": ["p", "q"], "sequences": ["page"], "graph": list(range(8))}[case.kind]
    estimator = case.make()
    pipeline = make_pipeline(FunctionTransformer(), estimator)
    for _ in range(2):  # before a fit and after it
        tags = get_tags(estimator)
        assert not tags.target_tags.required and tags.non_deterministic
        assert (tags.classifier_tags is None) == (tags.estimator_type != "classifier")
        assert tags.input_tags.categorical == (case.kind in ("table", "sequences"))
        assert tags.input_tags.pairwise == (case.kind == "graph")
        for text in (repr(pipeline), pipeline._repr_html_(), str(pipeline._repr_mimebundle_())):
            assert type(estimator).__name__ in text
        fit(case, estimator)
    if hasattr(estimator, "classes_"):  # what is predicted is no feature
        names.remove(estimator.target)
    assert estimator.n_features_in_ == len(names)
    assert getattr(estimator, "feature_names_in_", np.array(range(8))).tolist() == names


@pytest.mark.parametrize("case", [c for c in OF_EACH if "graph_" in c.estimator.__doc__], ids=lambda case: case.name)
def test_the_weight_of_an_edge_is_its_strength(case):
    """With a weight of None networkx' algorithms stop."""
    estimator = fit(case)
    if estimator.graph_ is None:  # no stable structure
        return
    scored = hasattr(estimator, "edge_scores_")  # a method that knows no strength may leave it out
    facts = {edge: estimator.graph_.edges[edge] for edge in estimator.graph_.edges}
    weights = {edge: fact["weight"] for edge, fact in facts.items() if scored or "weight" in fact}
    assert all(isinstance(weight, float) for weight in weights.values())
    for graph in (estimator.graph_, getattr(estimator, "model_", nx.Graph())):
        nx.minimum_spanning_tree(graph)
    scores = getattr(estimator, "edge_scores_", None)
    if isinstance(scores, dict):
        assert weights == scores
    elif scores is not None:
        assert weights == {(u, v): scores["abc".index(u), "abc".index(v)] for u, v in weights}

"""What this package leans on in pgmpy: where a later pgmpy breaks something, a test here says what.

The upper bound in pyproject.toml stays until these and the rest of the tests pass on the next version.
"""

import ast
import functools
import importlib
import inspect
import re
import sys
import types
from importlib.metadata import requires, version
from pathlib import Path

import numpy as np
import pandas as pd
import pgmpy.parameter_estimator
import pytest
from packaging.requirements import Requirement
from pgmpy import config
from pgmpy.base import UndirectedGraph
from pgmpy.factors.continuous import LinearGaussianCPD
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import BeliefPropagation, DBNInference, Mplp, VariableElimination
from pgmpy.metrics import _BaseSupervisedMetric
from pgmpy.models import DiscreteMarkovNetwork, DynamicBayesianNetwork, JunctionTree
from skbase.base import BaseEstimator

from pgmpy_dp import MarkovNetwork
from tests.code_lines import parsed
from tests.test_imports import MODULES


def test_the_installed_pgmpy_is_one_that_was_tested():
    (requirement,) = [Requirement(text) for text in requires("pgmpy_dp") if re.match(r"pgmpy\W", text)]
    assert requirement.specifier.contains(version("pgmpy"))
    assert not requirement.specifier.contains("1.3.0")


def test_parameter_estimators_are_scikit_base_estimators_fitted_on_model_and_data():
    base = pgmpy.parameter_estimator.BaseParameterEstimator
    assert issubclass(base, BaseEstimator)
    assert list(inspect.signature(base.fit).parameters) == ["self", "model", "data", "sample_weight"]
    assert {"supported_model_types", "supports_weighted_data"} <= set(base._tags)


def test_the_constructor_of_discrete_estimators_is_skipped_without_loss():
    """Ours is a class of theirs for `DiscreteBayesianNetwork.fit`; all that its constructor does is to keep states."""
    base = pgmpy.parameter_estimator.DiscreteParameterEstimator
    assert base.__bases__ == (pgmpy.parameter_estimator.BaseParameterEstimator,)
    assert vars(base(state_names={"a": [0, 1]})).keys() - vars(BaseEstimator()).keys() == {"state_names"}


# What pgmpy's development changes: the one place of ours that leans on it (a folder, where it ends in a dot), whether
# it still is as we know it, and what to do when it is not.
PLANNED = {
    "pgmpy.inference.VariableElimination": (
        "pgmpy_dp.models.elimination",
        lambda: (
            [*inspect.signature(VariableElimination).parameters] == ["model"]
            and [*inspect.signature(VariableElimination.query).parameters][1] == "variables"
        ),
        "pull request 2510 moves `model` from the constructor into `query`: do so in models/elimination.py, where ours "
        "overrides query and map_query, and let `model` of the constructor be the default until 1.0",
    ),
    "pgmpy.config": (
        "pgmpy_dp.pgmpy_config",
        lambda: {"get_backend", "get_device", "get_show_progress", "set_show_progress"} <= {*dir(config)},
        "pull request 3395 may replace `config`: answer bars_shown, bars and torch_device in pgmpy_config.py from what "
        "takes its place",
    ),
    "pgmpy.models.DiscreteMarkovNetwork.fit": (
        "pgmpy_dp.models.markov_network",
        lambda: not hasattr(DiscreteMarkovNetwork, "fit"),
        "pull request 3571 adds DiscreteMarkovNetwork.fit, by maximum likelihood, which is not private: see that the "
        "parameters of MarkovNetwork.fit have its names, that without an estimator it still raises, and say in "
        "learning/in_place.py and docs/pgmpy.md that fit_in_place is no longer the only way",
    ),
    "pgmpy.factors.discrete.TabularCPD": (
        "pgmpy_dp.models.conversion",
        lambda: (
            issubclass(TabularCPD, DiscreteFactor)
            and [*inspect.signature(TabularCPD).parameters]
            == ["variable", "variable_card", "values", "evidence", "evidence_card", "state_names"]
        ),
        "pull request 3452 changes CPDs: make them as they are made now in models/conversion.py (`_cpd`)",
    ),
    "pgmpy.factors.continuous.LinearGaussianCPD": (
        "pgmpy_dp.gaussian.",
        lambda: [*inspect.signature(LinearGaussianCPD).parameters][:4] == ["variable", "beta", "std", "evidence"],
        "pull request 3452 changes CPDs: make them as they are made now, in gaussian/ alone",
    ),
}


@pytest.mark.parametrize("name", PLANNED)
def test_what_pgmpy_s_development_changes_is_as_it_was(name):
    _, as_it_was, what_to_do = PLANNED[name]
    assert as_it_was(), what_to_do


@pytest.mark.parametrize("name", PLANNED)
def test_one_module_of_ours_leans_on_what_pgmpy_s_development_changes(name):
    home, _, what_to_do = PLANNED[name]
    users = sorted(module for module, path in MODULES.items() if name in leans_on(path))
    elsewhere = [module for module in users if module != home and not (home.endswith(".") and module.startswith(home))]
    assert users, f"nothing leans on {name} any more: take it off the list"
    assert not elsewhere, f"{elsewhere} lean on {name}, which {home} alone shall, since {what_to_do}"


@functools.cache
def leans_on(path: Path) -> set[str]:
    """What of pgmpy a module imports, by the name that `PLANNED` has; and the class of pgmpy's that it derives from."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {f"pgmpy.{name}" for alias in node.names if alias.name == "pgmpy" for name in ("config",)}
        elif isinstance(node, ast.ImportFrom) and not node.level and f"{node.module}.".startswith("pgmpy."):
            found |= {f"{node.module}.{alias.name}".replace("pgmpy.global_vars.", "pgmpy.") for alias in node.names}
        elif isinstance(node, ast.ClassDef) and "DiscreteMarkovNetwork" in map(ast.unparse, node.bases):
            found.add("pgmpy.models.DiscreteMarkovNetwork.fit")
    return found


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from pgmpy.inference import VariableElimination as theirs", "pgmpy.inference.VariableElimination"),
        ("def late():\n    from pgmpy.global_vars import config", "pgmpy.config"),
        ("import pgmpy", "pgmpy.config"),
        ("class Other(Answers, DiscreteMarkovNetwork): ...", "pgmpy.models.DiscreteMarkovNetwork.fit"),
        ("from pgmpy.factors.discrete import DiscreteFactor, TabularCPD", "pgmpy.factors.discrete.TabularCPD"),
    ],
)
def test_a_second_module_that_leans_on_it_would_be_seen(line, name, monkeypatch, tmp_path):
    (second := tmp_path / "second.py").write_text(line)
    monkeypatch.setitem(MODULES, "pgmpy_dp.second", second)
    with pytest.raises(AssertionError, match=r"\['pgmpy_dp.second'\] lean on .* alone shall, since pull request"):
        test_one_module_of_ours_leans_on_what_pgmpy_s_development_changes(name)


def test_models_are_undirected_networkx_graphs():
    assert issubclass(DiscreteMarkovNetwork, UndirectedGraph)
    model = DiscreteMarkovNetwork([("a", "b")])
    assert model.factors == []
    assert list(model.adj) == ["a", "b"]


def test_factors_keep_the_attributes_that_conversion_reads():
    factor = DiscreteFactor(["b", "a"], [2, 3], np.arange(6), state_names={"b": [0, 1], "a": ["x", "y", "z"]})
    assert factor.variables == ["b", "a"]
    assert factor.cardinality.tolist() == [2, 3]
    assert factor.values.dtype == np.float64
    np.testing.assert_array_equal(factor.values, np.arange(6).reshape(2, 3))
    assert factor.state_names == {"b": [0, 1], "a": ["x", "y", "z"]}


@pytest.fixture
def model():
    network = MarkovNetwork([("a", "b")])
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [1, 2, 3, 4]))
    return network


def test_belief_propagation_asks_the_model_for_its_junction_tree(model, monkeypatch):
    asked = []
    original = MarkovNetwork.to_junction_tree
    monkeypatch.setattr(MarkovNetwork, "to_junction_tree", lambda self: asked.append(self) or original(self))
    inference = BeliefPropagation(model)
    assert asked == [model]
    assert isinstance(inference.junction_tree, JunctionTree)
    # A query copies the model and starts again from the copy: a copy of another class would lose our tree.
    inference.query(["a"], show_progress=False)
    assert [type(one) for one in asked] == [MarkovNetwork, MarkovNetwork]


def test_belief_propagation_starts_at_the_first_node_of_the_tree():
    """Our trees are calibrated outwards from it; were the root elsewhere, exactness would need more sweeps."""
    tree = JunctionTree()
    tree.add_edge(("a", "b"), ("b", "c"))
    tree.add_edge(("b", "c"), ("c", "d"))
    assert next(iter(tree.nodes)) == ("a", "b")


def test_dynamic_networks_find_their_interface_in_our_junction_tree(monkeypatch):
    """pgmpy joins the interface's nodes by edges, without factors, and looks for the clique that has them all."""
    edges = [(("A", 0), ("A", 1)), (("A", 0), ("B", 1)), (("B", 0), ("A", 1)), (("B", 0), ("B", 1))]
    network = DynamicBayesianNetwork(edges)
    halves, later = [[0.3], [0.7]], [[0.9, 0.6, 0.4, 0.2], [0.1, 0.4, 0.6, 0.8]]
    for name in "AB":
        network.add_cpds(
            TabularCPD((name, 0), 2, halves), TabularCPD((name, 1), 2, later, [("A", 0), ("B", 0)], [2, 2])
        )
    network.initialize_initial_state()
    expected = DBNInference(network).query([("B", 2)], {("A", 1): 1})[("B", 2)].values
    module = importlib.import_module("pgmpy.models.DiscreteBayesianNetwork")
    monkeypatch.setattr(module, "DiscreteMarkovNetwork", MarkovNetwork)
    inference = DBNInference(network)
    np.testing.assert_allclose(inference.query([("B", 2)], {("A", 1): 1})[("B", 2)].values, expected, atol=1e-12)


def test_variable_elimination_reads_factors_and_states(model):
    answer = VariableElimination(model).query(["b"], show_progress=False)
    np.testing.assert_allclose(answer.values, [4, 6])


def test_factor_graphs_and_mplp_go_wrong_as_the_page_says():
    """Where one of these works, docs/pgmpy.md has a fault too many."""
    network = MarkovNetwork(["ab", "bc", "ac"])
    network.add_factors(*(DiscreteFactor([*pair], [2, 2], [5, 1, 1, 1]) for pair in ("ab", "bc", "ac")))
    with pytest.raises(ValueError, match="Factors not associated"):
        network.to_factor_graph().check_model()
    with pytest.raises(KeyError):
        Mplp(network).map_query()
    single = [DiscreteFactor([name], [2], [0.1, 2]) for name in "abc"]
    network.factors = [*single, *network.factors]
    most_likely = dict.fromkeys("abc", 1)  # 8 against 0.125
    assert VariableElimination(network).map_query(list("abc"), show_progress=False) == most_likely
    assert Mplp(network).map_query() == dict.fromkeys("abc", 0)  # the largest sum, 15.3 against 9


def test_the_progress_switch_is_where_it_was():
    before = config.get_show_progress()
    config.set_show_progress(not before)
    try:
        assert config.get_show_progress() is not before
    finally:
        config.set_show_progress(before)


def test_metrics_compare_graphs_on_the_same_nodes_and_read_the_tags_of_their_own_class():
    class Sizes(_BaseSupervisedMetric):
        _tags = {"supported_graph_types": (UndirectedGraph,)}

        def _evaluate(self, true_causal_graph, est_causal_graph):
            return len(true_causal_graph.edges), len(est_causal_graph.edges)

    class Inherited(Sizes):
        _tags = {"name": "inherited"}

    one, two = UndirectedGraph([("a", "b")]), UndirectedGraph([("a", "b"), ("b", "c")])
    one.add_node("c")
    assert Sizes()(one, two) == Sizes().evaluate(true_causal_graph=one, est_causal_graph=two) == (1, 2)
    with pytest.raises(ValueError, match="same nodes"):
        Sizes()(one, UndirectedGraph([("a", "b")]))
    with pytest.raises(KeyError):
        Inherited()(one, two)


def test_structure_learners_base_is_where_it_is_imported_from():
    """A private name: where it moves, `graph_base` goes without it, and this test says that isinstance fails then."""
    from pgmpy.causal_discovery._base import _BaseCausalDiscovery

    from pgmpy_dp.learning.graph_base import StructureBase

    assert StructureBase is _BaseCausalDiscovery
    assert {"fit", "score", "_check_fit_data", "__sklearn_tags__"} <= set(vars(_BaseCausalDiscovery))


@pytest.fixture
def imported_again():
    """The package is imported anew in a test, and is what it was after it. A new interpreter would import pgmpy."""
    ours = lambda name: name.split(".")[0] == "pgmpy_dp"  # noqa: E731
    before = {name: module for name, module in sys.modules.items() if ours(name)}
    for name in before:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if ours(name)]:
        del sys.modules[name]
    sys.modules.update(before)


def test_without_that_name_our_base_stands_alone(imported_again, monkeypatch):
    monkeypatch.setitem(sys.modules, "pgmpy.causal_discovery._base", types.ModuleType("m"))
    from pgmpy_dp.estimators import PrivateChowLiu
    from pgmpy_dp.learning.graph_base import StructureBase

    assert StructureBase.__module__ == "pgmpy_dp.learning.graph_base"
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [0, 1] * 50})
    found = PrivateChowLiu(epsilon=1.0, state_names={"a": [0, 1], "b": [0, 1]}).fit(frame)
    assert found.clone().get_params()["epsilon"] == 1.0 and found.graph_ is not None

"""The conventions of scikit-base, scikit-learn and pgmpy, checked on every estimator of the package."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator import BaseParameterEstimator
from skbase.testing.test_all_objects import TestAllObjects as _GenericTests

from pgmpy_dp import Budget, MarkovNetwork, list_estimators
from tests.estimators.shapes import budget_of

STATES = {"rain": ["no", "yes"], "wet": ["no", "yes"]}


class TestAllObjects(_GenericTests):
    """scikit-base's own tests of every object in the package."""

    package_name = "pgmpy_dp"
    valid_tags = [
        "adjacency",
        "data_kind",
        "guarantees",
        "model_kind",
        "object_type",
        "supported_model_types",
        "supports_latent_variables",
        "supports_weighted_data",
        "task",
        # Of metrics; all but graph_kind are pgmpy's.
        "graph_kind",
        "is_default",
        "is_symmetric",
        "lower_is_better",
        "name",
        "requires_data",
        "requires_true_graph",
        "supported_graph_types",
    ]


@pytest.fixture(
    params=list_estimators(task="parameters", data_kind="discrete"), ids=lambda estimator: estimator.__name__
)
def estimator_class(request):
    return request.param


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    rain = rng.random(500) < 0.3
    wet = rng.random(500) < np.where(rain, 0.9, 0.1)
    return pd.DataFrame({"rain": np.where(rain, "yes", "no"), "wet": np.where(wet, "yes", "no")})


def test_it_is_a_pgmpy_parameter_estimator(estimator_class):
    assert issubclass(estimator_class, BaseParameterEstimator)
    assert issubclass(MarkovNetwork, estimator_class.get_class_tag("supported_model_types"))
    assert issubclass(DiscreteMarkovNetwork, estimator_class.get_class_tag("supported_model_types"))
    assert estimator_class.get_class_tag("supports_weighted_data") is False


def test_the_constructor_stores_its_arguments_untouched(estimator_class):
    states = {"a": ["x", "y"]}
    estimator = estimator_class(epsilon=-3, state_names=states, adjacency="nonsense", cliques=[("a",)])
    assert estimator.epsilon == -3  # judged when used, not when stored
    assert estimator.state_names is states
    assert estimator.adjacency == "nonsense"


def test_what_is_protected_is_one_record(estimator_class, data):
    estimator = estimator_class(**budget_of(estimator_class, 1.0), state_names=STATES)
    privacy = estimator.fit(nx.Graph([("rain", "wet")]), data).privacy_
    assert privacy.unit is None and "all rows" not in str(privacy)


def test_set_params_reaches_the_next_fit(estimator_class, data):
    estimator = estimator_class(**budget_of(estimator_class, 1.0), state_names=STATES)
    estimator.set_params(epsilon=4.0).fit(nx.Graph([("rain", "wet")]), data)
    assert estimator.privacy_.guarantee == Budget(**budget_of(estimator_class, 4.0)).guarantee


def test_every_pgmpy_graph_and_networkx_s_own_will_do(estimator_class, data):
    for graph in (
        MarkovNetwork([("rain", "wet")]),
        DiscreteMarkovNetwork([("rain", "wet")]),
        nx.Graph([("rain", "wet")]),
    ):
        estimator = estimator_class(**budget_of(estimator_class, 1.0), state_names=STATES).fit(graph, data)
        assert set(map(frozenset, estimator.model_.edges)) == {frozenset(("rain", "wet"))}
        assert not getattr(graph, "factors", [])


def test_the_estimators_are_listed_by_tag():
    names = [estimator.__name__ for estimator in list_estimators()]
    fields = ["PrivateBinaryMRF", "PrivateIsing", "PrivatePairwise"]
    assert "PrivateLogisticRegression" in [estimator.__name__ for estimator in list_estimators(task="classes")]
    given = ["CollectiveEM", "CollectiveMAP", "NaiveMLE", "PrivateLinearGaussian", "PrivateSGD"]
    structure = ["EdgeVoting", "PrivateChowLiu", "PrivateNetwork", "StableStructure"]
    others = ["PrivateBlockModel", "PrivateGaussianMixture", "PrivateGraphicalLasso", "PrivateMarkovChain"]
    assert names == sorted(names) and {*given, *fields, *structure, *others} <= set(names)
    tasks = {estimator.get_class_tag("task") for estimator in list_estimators()}
    assert sorted(e.__name__ for task in tasks for e in list_estimators(task=task)) == names
    assert [estimator.__name__ for estimator in list_estimators(task="parameters")] == given
    assert [estimator.__name__ for estimator in list_estimators(task="parameters and graph")] == fields
    assert [estimator.__name__ for estimator in list_estimators(task="structure")] == structure
    assert [estimator.__name__ for estimator in list_estimators(adjacency="edge")] == ["PrivateBlockModel"]
    records = [e for e in list_estimators() if e.__name__ != "PrivateBlockModel"]
    assert list_estimators(guarantees="approximate", adjacency="replace_one") == records
    no_zcdp = ["PrivateGaussianMixture", "StableStructure"]
    for guarantee, lacking in (("zcdp", no_zcdp), ("pure", sorted([*no_zcdp, "PrivateSGD"]))):
        able = list_estimators(guarantees=guarantee)
        assert sorted(set(names) - {e.__name__ for e in able}) == lacking
    assert [estimator.__name__ for estimator in list_estimators(task="sequences")] == ["PrivateMarkovChain"]
    assert [estimator.__name__ for estimator in list_estimators(task="covariance")] == ["PrivateGraphicalLasso"]
    assert [estimator.__name__ for estimator in list_estimators(task="clusters")] == ["PrivateGaussianMixture"]
    assert [estimator.__name__ for estimator in list_estimators(task="communities")] == ["PrivateBlockModel"]
    assert list_estimators(guarantees="none at all") == []
    with pytest.raises(ValueError, match="colour"):
        list_estimators(colour="red")

"""Whole fits on anything that the public facts allow: what the documentation says, and nothing else."""

from __future__ import annotations

import itertools
import logging
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpydoc.docscrape import ClassDoc

from pgmpy_dp import Budget, GuessedTypesWarning, PrivateSequences
from pgmpy_dp.estimators import (
    CollectiveEM,
    CollectiveMAP,
    NaiveMLE,
    PrivateBlockModel,
    PrivateChowLiu,
    PrivateMarkovChain,
    PrivateNetwork,
    PrivatePairwise,
)
from pgmpy_dp.learning.few_records import dropped_records, few_records, no_edge
from tests.estimators.cases import CASES
from tests.estimators.test_every_estimator import fitted_case
from tests.strategies import frames, graphs, labels, schemas, states

few = settings(
    max_examples=settings.default.max_examples // 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
# Estimators whose release is a function of exact counts and noise. The others draw for each record (samples, blocks,
# random halves), so the order of the records decides which draw is whose.
COUNTING = {
    "NaiveMLE": (NaiveMLE, {}),
    "CollectiveEM": (CollectiveEM, {"n_iter": 5}),
    "CollectiveMAP": (CollectiveMAP, {}),
    "PrivateChowLiu": (PrivateChowLiu, {}),
    "PrivateNetwork": (PrivateNetwork, {}),
    "PrivatePairwise": (PrivatePairwise, {"width": 1.0, "method": "moments"}),
}


def documented(estimator: type) -> set[str]:
    """Attributes that a fit sets, by the numpydoc section of the class."""
    section = ClassDoc(estimator, config={"show_class_members": False})["Attributes"]
    names = {name for entry in section for name in entry.name.split(", ")}
    # What all estimators share, and what one has of its own: a section that is not read would leave no more.
    assert {"release_", "privacy_"} < names, f"{estimator.__name__} documents {names} alone"
    return names


def fitted(kind, options, schema, graph, frame, **more):
    estimator = kind(epsilon=1.0, state_names=schema, **options, **more)
    return estimator.fit(graph, frame) if estimator.get_tag("task") == "parameters" else estimator.fit(frame)


@st.composite
def worlds(draw, least: int = 1):
    """A schema, a graph on its variables, and records."""
    schema = draw(schemas().filter(lambda found: len(found) >= least))
    pairs = list(itertools.combinations(schema, 2))
    graph = nx.Graph(draw(st.lists(st.sampled_from(pairs), max_size=4)) if pairs else [])
    graph.add_nodes_from(schema)
    return schema, graph, draw(frames(schema))


@pytest.mark.parametrize("name", COUNTING)
@few
@given(st.data())
def test_any_records_give_a_fit_in_silence(name, caplog, data):
    kind, options = COUNTING[name]
    schema, graph, frame = data.draw(worlds(least=1 if kind.get_class_tag("task") == "parameters" else 2))
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        estimator = fitted(kind, options, schema, graph, frame)
    # Of the released number of records and of the learned graph alone, hence of the release.
    n, sd = getattr(estimator, "n_records_", 0.0), getattr(estimator, "n_records_sd_", 0.0)
    few = few_records(n, sd)
    if few is None:
        few = dropped_records(estimator.release_.n_records or 0.0, n, sd)
    edgeless = None
    if kind is PrivateNetwork:
        share = sum(record["share"] for record in estimator.release_.public["rounds"])
        edgeless = no_edge(len(schema), estimator.graph_.number_of_edges(), share)
    told = [str(item.message) for item in caught]
    assert told == [said for said in (few, edgeless) if said is not None] and not caplog.records
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        public = (graph,) if kind.get_class_tag("task") == "parameters" else ()
        kind(epsilon=1.0, **options).fit_release(*public, estimator.release_)
    assert told == [str(item.message) for item in caught]
    text = all(isinstance(name, str) for name in estimator.release_.schema.variables)  # else there are no such names
    lacking = {attribute for attribute in documented(kind) if not hasattr(estimator, attribute)}
    assert estimator.is_fitted and lacking == documented(kind) & (set() if text else {"feature_names_in_"})
    model = estimator.model_
    assert model is None or set(model.nodes) == set(schema)
    if model is not None:
        assert model.check_model()
        assert all(np.isfinite(factor.values).all() for factor in model.factors)
        assert model.states == {variable: list(declared) for variable, declared in schema.items()}


@pytest.mark.filterwarnings("ignore:the graph has:pgmpy_dp.NoEdgeWarning")
@pytest.mark.parametrize("name", COUNTING)
@few
@given(st.data())
def test_the_order_of_records_is_no_part_of_a_release(name, data):
    kind, options = COUNTING[name]
    schema, graph, frame = data.draw(worlds(least=1 if kind.get_class_tag("task") == "parameters" else 2))
    order = data.draw(st.permutations(range(len(frame))))
    one, other = (fitted(kind, options, schema, graph, rows, random_state=7) for rows in (frame, frame.iloc[order]))
    assert one.release_ == other.release_


@few
@given(
    graphs(max_nodes=9), st.sampled_from(["randomized-response", "noisy-power", "exponential"]), st.sampled_from([2, 3])
)
def test_any_graph_has_communities(caplog, graph, method, k):
    k = 2 if method == "exponential" else k
    if len(graph) < 3:
        graph.add_nodes_from([("more", 1), ("more", 2), ("more", 3)])
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        estimator = PrivateBlockModel(k, method, epsilon=1.0).fit(graph)
    assert not caught and not caplog.records
    assert all(hasattr(estimator, attribute) for attribute in documented(PrivateBlockModel))
    assert len(estimator.labels_) == len(graph)


@few
@given(states, st.data(), st.sampled_from(["map", "naive"]))
def test_any_sequences_have_a_chain(caplog, declared, data, method):
    visits = st.lists(st.one_of(st.sampled_from(declared), labels, st.none()), max_size=6)
    users = data.draw(st.lists(st.tuples(st.one_of(labels, st.none()), visits), max_size=6))
    frame = pd.DataFrame(
        {
            "user": pd.Series([u for u, _ in users], dtype=object),
            "sequence": pd.Series([v for _, v in users], dtype=object),
        }
    )
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        estimator = PrivateMarkovChain(epsilon=1.0, state_names={"page": declared}, method=method).fit(frame)
    assert not caplog.records
    # Of whatever users in a frame of this library, as of none.
    told = [(item.category, str(item.message)) for item in caught]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nobody = pd.DataFrame({"user": [], "sequence": []})
        PrivateSequences(nobody, {"page": declared}, ledger=Budget(epsilon=1.0))
    assert told == [(item.category, str(item.message)) for item in caught]
    assert [category for category, _ in told] == [GuessedTypesWarning]
    assert all(hasattr(estimator, attribute) for attribute in documented(PrivateMarkovChain))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_fit_has_the_documented_attributes(case):
    estimator = fitted_case(case)
    names = documented(case.estimator)
    # Second moments about a point that nobody has called the centre are no covariance, and have another name.
    named_else = set() if getattr(estimator, "centered_", True) else {"covariance_"}
    assert {name for name in names if not hasattr(estimator, name)} == named_else
    assert estimator.privacy_.guarantee.implies(case.budget.guarantee)

"""What users of pgmpy, scikit-learn and notebooks expect: Bayesian networks both ways, answers that sum to 1, names."""

from __future__ import annotations

import itertools
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import VariableElimination as PgmpyElimination
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, Schema, VariableElimination, preview
from pgmpy_dp.communities.planted_graphs import planted_labels, sample_block_model
from pgmpy_dp.estimators import (
    CollectiveEM,
    CollectiveMAP,
    EdgeVoting,
    NaiveMLE,
    PrivateBinaryMRF,
    PrivateBlockModel,
    PrivateGaussianMixture,
    PrivateIsing,
    PrivatePairwise,
    PrivateSGD,
    StableStructure,
)
from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.inference.exact_or_loopy import InferenceUnavailable
from pgmpy_dp.learning.collective_base import tables_of
from tests.estimators.shapes import make_network

GRAPHS = {
    "cycle": nx.cycle_graph(["a", "b", "c", "d", "e"]),
    "tree and apart": nx.Graph([("a", "b"), ("a", "c"), ("a", "d")]),
    "complete": nx.complete_graph(["a", "b", "c", "d"]),
    "numbers": nx.Graph([(0, 1), (1, (2, "x"))]),
}
GRAPHS["tree and apart"].add_node("e")


def joint_of(network: DiscreteBayesianNetwork, nodes: list) -> np.ndarray:
    """The product of the CPDs, by hand."""
    states = {name: network.get_cpds(name).state_names[name] for name in nodes}
    table = np.ones([len(states[name]) for name in nodes])
    for cpd in network.get_cpds():
        factor = cpd.to_factor()
        for k in itertools.product(*(range(size) for size in table.shape)):
            place = tuple(k[nodes.index(name)] for name in factor.variables)
            table[k] *= factor.values[place]
    return table


@pytest.mark.parametrize("shape", GRAPHS)
def test_a_bayesian_network_has_the_same_distribution(shape):
    graph = GRAPHS[shape]
    model = make_network(graph, {name: 2 + k % 2 for k, name in enumerate(graph)}, scale=1.5)
    network, nodes = model.to_bayesian_network(), list(model.nodes)
    assert network.check_model() and set(network.nodes) == set(nodes)
    np.testing.assert_allclose(joint_of(network, nodes), model.marginal(nodes).values, atol=1e-12)
    skeleton = network.to_undirected()
    assert all(skeleton.has_edge(u, v) for u, v in model.edges) and nx.is_chordal(skeleton)
    assert all(network.get_cpds(name).state_names[name] == model.states[name] for name in nodes)


def test_parents_that_are_never_together_have_a_uniform_cpd():
    rules = ["a = 0 -> b = 0", "b = 1 -> c = 1"]
    schema = Schema({name: [0, 1] for name in "abc"}, impossible=rules)
    plain = make_network(nx.Graph([("a", "b"), ("b", "c"), ("a", "c")]), dict.fromkeys("abc", 2), scale=0.5)
    model = MarkovNetwork.from_log_linear(plain.to_log_linear(), plain, schema)
    network, nodes = model.to_bayesian_network(), list(model.nodes)
    assert network.check_model()
    np.testing.assert_allclose(joint_of(network, nodes), model.marginal(nodes).values, atol=1e-12)
    columns = np.hstack([network.get_cpds(name).get_values() for name in nodes])
    assert (columns == 0.5).all(axis=0).any() and (columns == 0.0).any()
    answer = PgmpyElimination(network).query(["b"], {"c": 0}, show_progress=False)
    np.testing.assert_allclose(answer.values, model.query(["b"], {"c": 0}).values, atol=1e-12)


def test_loopy_models_have_no_cpds():
    model = make_network(GRAPHS["cycle"], dict.fromkeys("abcde", 2))
    model.inference = "loopy"
    with pytest.raises(InferenceUnavailable, match="conditionals"):
        model.to_bayesian_network()


COLLIDER = DiscreteBayesianNetwork([("a", "c"), ("b", "c"), ("c", "d")])
STATES = {name: [0, 1] for name in "abcd"}
DATA = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (2000, 4)), columns=list("abcd"))


def exclusive_or(n: int = 20_000) -> tuple[pd.DataFrame, np.ndarray]:
    """Records of COLLIDER where c is 1 if a or b is, not both, but for a tenth; and P(c = 1 | a, b)."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, n))
    c = a ^ b ^ (rng.random(n) < 0.1)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": c ^ (rng.random(n) < 0.2)}), np.array([[0.1, 0.9], [0.9, 0.1]])


@pytest.mark.parametrize("learner", [CollectiveEM, CollectiveMAP, NaiveMLE, PrivateSGD])
@pytest.mark.parametrize("kind", [DiscreteBayesianNetwork, nx.DiGraph])
def test_a_bayesian_network_is_fitted_on_its_families_and_gets_their_cpds(learner, kind):
    data, truth = exclusive_or()
    given = kind(COLLIDER.edges)
    estimator = learner(epsilon=5.0, delta=1e-6, state_names=STATES, random_state=0).fit(given, data)
    network = estimator.bayesian_network_
    assert list(network.edges) == list(given.edges) and network.check_model()
    assert estimator.parameters_ == network.get_cpds() and getattr(given, "cpds", []) == []
    cpd = network.get_cpds("c")
    assert cpd.variables == ["c", "a", "b"]
    np.testing.assert_allclose(cpd.values[1], truth, atol=0.02)
    np.testing.assert_allclose(network.get_cpds("d").values[1], [0.2, 0.8], atol=0.02)
    assert {*map(frozenset, estimator.release_.scopes)} == {frozenset("abc"), frozenset("cd")}
    assert {*map(frozenset, estimator.model_.edges)} == {*map(frozenset, ["ab", "ac", "bc", "cd"])}
    again = learner(state_names=STATES).fit_release(given, estimator.release_)
    assert again.bayesian_network_.get_cpds() == network.get_cpds()
    if learner is NaiveMLE:  # another fit with the same object forgets the first
        assert estimator.fit(nx.Graph(["ab"]), data).bayesian_network_ is None


def test_tables_of_a_directed_graph_are_the_families_that_no_other_has():
    def tables(*edges, nodes=""):
        graph = nx.DiGraph([tuple(edge) for edge in edges])
        graph.add_nodes_from(nodes)
        return tables_of(graph)

    assert tables("ab", "bc", "cd") == [("a", "b"), ("b", "c"), ("c", "d")]
    assert tables("ab", "ac", "bc", "cd") == [("a", "b", "c"), ("c", "d")]
    assert tables("ab", nodes="abx") == [("a", "b"), ("x",)]
    assert tables_of(nx.Graph(["ab"])) is None
    rng = np.random.default_rng(0)
    for _ in range(50):
        graph = nx.DiGraph([(int(u), int(v)) for u, v in itertools.combinations(range(7), 2) if rng.random() < 0.4])
        families = {frozenset((child, *graph.predecessors(child))) for child in graph}
        assert {*map(frozenset, tables_of(graph))} == {f for f in families if not any(f < other for other in families)}
        found = preview({name: [0, 1] for name in graph}, graph, Budget(epsilon=1.0), 1000, n_simulations=0)
        assert len(found.table) == len(tables_of(graph))


def test_families_that_no_table_has_are_named():
    pairs = [*itertools.combinations("abc", 2), ("c", "d")]
    with pytest.warns(UserWarning, match=r"families \[\('a', 'c', 'b'\)\].*in no released") as told:
        parts = NaiveMLE(epsilon=5.0, state_names=STATES, cliques=pairs).fit(COLLIDER, DATA)
    assert len(told) == 1 and told[0].filename == __file__
    with pytest.warns(UserWarning, match="in no released"):
        NaiveMLE().fit_release(COLLIDER, parts.release_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning) as failed:
            NaiveMLE(epsilon=5.0, state_names=STATES, cliques=pairs).fit(COLLIDER, DATA)
    assert failed.value.release.scopes == tuple(pairs)  # paid for and not lost


def test_on_a_given_structure_the_cpds_are_the_models_conditionals():
    graph = GRAPHS["cycle"]
    model = make_network(graph, dict.fromkeys(graph, 2), scale=1.5)
    for structure in ([("a", "c"), ("b", "c"), ("e", "a")], nx.DiGraph(["ac", "bc", "ea"])):
        network = model.to_bayesian_network(structure)
        assert network.check_model() and {*network.nodes} == {*graph}
        joint = model.marginal(["c", "a", "b"]).values
        np.testing.assert_allclose(network.get_cpds("c").values, joint / joint.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(network.get_cpds("d").values, model.marginal("d").values, atol=1e-12)
    model.inference = "loopy"
    assert model.to_bayesian_network([("a", "b"), ("c", "d")]).check_model()
    with pytest.raises(InferenceUnavailable, match="no table"):
        model.to_bayesian_network([("a", "c")])
    for structure, error, message in [
        ([("a", "b"), ("b", "a")], ValueError, "directed cycles"),
        ([("a", "x")], ValueError, r"variables \['x'\]"),
        (nx.Graph(["ab"]), TypeError, "directed graph"),
        ("ab", ValueError, "structure='ab' is unknown; pass \"hill-climb\""),
        ([1, 2], TypeError, r"list of pairs \(parent, child\)"),
        (7, TypeError, "int; pass"),
    ]:
        with pytest.raises(error, match=message):
            model.to_bayesian_network(structure)


def test_directed_cycles_and_arguments_in_the_wrong_order_are_told_what_to_do():
    with pytest.raises(TypeError, match=r"directed cycles.*to_undirected"):
        NaiveMLE(epsilon=5.0, state_names=STATES).fit(nx.DiGraph([("a", "b"), ("b", "a")]), DATA)
    with pytest.raises(TypeError, match=r"model is a DataFrame; pass fit\(model, data\)") as told:
        NaiveMLE(epsilon=5.0, state_names=STATES).fit(DATA, COLLIDER)
    assert "1999" not in str(told.value) and len(str(told.value)) < 250  # no records in it
    with pytest.raises(TypeError, match="data=None: pass the records"):
        NaiveMLE(epsilon=5.0, state_names=STATES).fit(MarkovNetwork(COLLIDER.edges))


def test_variable_elimination_is_normalised_and_knows_numbers():
    schema = Schema({"age": Number(0, 99, cuts=[15, 40], missing="drop"), "b": ["x", "y"], "c": [0, 1]})
    plain = make_network(nx.Graph([("age", "b"), ("b", "c")]), {"age": 3, "b": 2, "c": 2}, scale=1.0)
    ruled = Schema(dict(schema), impossible=["age < 15 -> b = x"])
    model = MarkovNetwork.from_log_linear(plain.to_log_linear(), plain, ruled)
    elimination = VariableElimination(model)
    assert PgmpyElimination(model).query(["c"], {"b": "x"}, show_progress=False).values.sum() < 0.99
    for evidence in ({"b": "x"}, {"age": 37}, {"age": "[15,40)", "b": "y"}, {}):
        asked = ["c"] if len(evidence) == 2 else ["c", *({"age", "b"} - {*evidence})]
        for order in ("greedy", "MinFill"):
            found = elimination.query(asked, evidence, elimination_order=order, show_progress=False)
            expected = model.query(found.variables, evidence)
            np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
    apart = elimination.query(["b", "c"], {"age": 20}, joint=False, show_progress=False)
    assert {name: factor.values.sum() for name, factor in apart.items()} == pytest.approx({"b": 1.0, "c": 1.0})
    with pytest.raises(ImpossibleEvidence):
        elimination.query(["c"], {"age": 3, "b": "y"}, show_progress=False)
    for known in ({"age": (3, 50)}, {"age": (3, 50), "b": {"x", "y"}}, {"b": {"x": 0.3, "y": 0.6}}):
        found = elimination.query(["c"], known, show_progress=False)
        np.testing.assert_allclose(found.values, model.query("c", known).values, atol=1e-12)
    bayesian = DiscreteBayesianNetwork([("a", "b")])
    bayesian.add_cpds(TabularCPD("a", 2, [[0.2], [0.8]]), TabularCPD("b", 2, [[0.1, 0.6], [0.9, 0.4]], ["a"], [2]))
    assert VariableElimination(bayesian).query(["a"], {"b": 0}, show_progress=False).values.sum() == pytest.approx(1)


def smoking(kind=MarkovNetwork):
    """Of a quarter who have cancer; among smokers two fifths."""
    model = kind([("smoke", "cancer")])
    states = {"smoke": ["no", "yes"], "cancer": ["ill", "well"]}
    model.add_factors(DiscreteFactor(["smoke", "cancer"], [2, 2], [0.05, 0.45, 0.2, 0.3], state_names=states))
    return model


@pytest.mark.parametrize("kind", [MarkovNetwork, DiscreteMarkovNetwork])
@pytest.mark.parametrize("order", ["greedy", "MinFill"])
def test_virtual_evidence_counts(kind, order):
    model, options = smoking(kind), {"elimination_order": order, "show_progress": False}
    elimination, names = VariableElimination(model), {"smoke": ["no", "yes"]}
    soft = [TabularCPD("smoke", 2, [[0.2], [0.8]], state_names=names)]
    factor = DiscreteFactor(["smoke"], [2], [0.8, 0.2], state_names={"smoke": ["yes", "no"]})  # in another order
    for given in (soft, [factor], [TabularCPD("smoke", 2, [[0.2], [0.8]])]):
        found = elimination.query(["cancer"], virtual_evidence=given, **options)
        np.testing.assert_allclose(found.values, [0.34, 0.66])
        found = elimination.query(["smoke"], {"cancer": "ill"}, given, **options)
        np.testing.assert_allclose(found.values, [1 / 17, 16 / 17])
    np.testing.assert_allclose(elimination.query(["cancer"], **options).values, [0.25, 0.75])  # as it was
    sure = [TabularCPD("smoke", 2, [[0.97], [0.03]], state_names=names)]
    assert elimination.map_query(["smoke"], {"cancer": "ill"}, **options) == {"smoke": "yes"}
    assert elimination.map_query(["smoke"], {"cancer": "ill"}, sure, **options) == {"smoke": "no"}
    model.add_factors(DiscreteFactor(["smoke"], [2], [0.2, 0.8], state_names=names))  # equal to the evidence
    twice = np.array([0.04, 0.64]) @ [[0.05, 0.45], [0.2, 0.3]]
    found = elimination.query(["cancer"], virtual_evidence=soft, **options)
    np.testing.assert_allclose(found.values, twice / twice.sum())
    for wrong, message in (
        ([TabularCPD("smoke", 3, [[0.2], [0.3], [0.5]])], "cardinality"),
        ([factor * -1], "not neg"),
    ):
        with pytest.raises(ValueError, match=message):
            elimination.query(["cancer"], virtual_evidence=wrong, **options)
    with pytest.raises(ImpossibleEvidence):
        elimination.map_query(["cancer"], {"smoke": "no"}, [TabularCPD("smoke", 2, [[0], [1]], state_names=names)])


def test_soft_evidence_is_a_dictionary_of_likelihoods_everywhere():
    model, soft = smoking(), {"smoke": {"no": 0.2, "yes": 0.8}}
    np.testing.assert_allclose(model.query("cancer", soft).values, [0.34, 0.66])
    np.testing.assert_allclose(model.query("smoke", {**soft, "cancer": "ill"}).values, [1 / 17, 16 / 17])
    assert model.probability({"cancer": "ill"}, soft) == pytest.approx(0.34)
    assert model.sample(100, 0, evidence=soft)["cancer"].value_counts().to_dict() == {"well": 66, "ill": 34}
    assert VariableElimination(model).map_query(["smoke"], {**soft, "cancer": "ill"}) == {"smoke": "yes"}


def test_weights_of_fields_have_names():
    data = DATA.assign(b=np.where(np.random.default_rng(1).random(2000) < 0.9, DATA["a"], 1 - DATA["a"]))
    ising = PrivateIsing(width=3.0, epsilon=20.0, state_names=STATES).fit(data)
    frame = ising.to_frame()
    assert frame["variables"][0] == ("a", "b") and list(frame) == ["variables", "weight"]
    assert frame["weight"][0] == ising.weights_[0, 1]
    pairwise = PrivatePairwise(width=3.0, epsilon=20.0, state_names=STATES).fit(data)
    frame = pairwise.to_frame()
    assert list(frame) == ["variables", "states", "weight"]
    u, v = frame["variables"][0]
    a, b = (STATES[name].index(state) for name, state in zip((u, v), frame["states"][0], strict=True))
    assert frame["weight"][0] == pairwise.weights_[u, v][a, b]
    assert frame["weight"].abs().is_monotonic_decreasing and (frame["weight"] != 0).all()
    field = PrivateBinaryMRF(3.0, order=3, epsilon=20.0, state_names=STATES).fit(data)
    assert dict(zip(field.to_frame()["variables"], field.to_frame()["weight"], strict=True)) == pytest.approx(
        {scope: weight for scope, weight in field.weights_.items() if weight}
    )


@pytest.mark.parametrize("kind", [PrivateIsing, PrivatePairwise, PrivateBinaryMRF, EdgeVoting, StableStructure])
def test_a_missing_width_is_explained_before_anything_is_spent(kind):
    with pytest.raises(ValueError, match="width=None: pass the public bound on how strongly"):
        kind(epsilon=1.0, delta=1e-6, state_names=STATES).fit(DATA)


def test_fit_predict():
    rng = np.random.default_rng(0)
    truth = planted_labels(400, 2, rng)
    graph = sample_block_model(truth, degree=100, bias=0.9, rng=rng)
    blocks = PrivateBlockModel(2, epsilon=20.0, delta=1e-6)
    labels = blocks.fit_predict(graph)
    assert labels.tolist() == list(blocks.labels_.values()) and labels.shape == (400,)
    centres = np.array([[0.0, 0.0], [30.0, 0.0]])
    X = centres[rng.integers(2, size=20_000)] + rng.normal(size=(20_000, 2))
    mixture = PrivateGaussianMixture(2, separation=20.0, scale=1.0, epsilon=2.0, delta=1e-6)
    labels = mixture.fit_predict(X)
    np.testing.assert_array_equal(labels, mixture.predict(X))
    assert len(set(labels)) == 2
    with pytest.raises(ValueError, match="n_components=None: pass the number of components"):
        PrivateGaussianMixture(separation=8.0, scale=1.0, epsilon=1.0, delta=1e-6).fit(X)


def test_what_is_shown_is_short_and_escaped():
    schema = Schema({"<a>": ["x&y", None], "b": Number(0, 9, bins=3)}, impossible=["b < 3 -> `<a>` = missing"])
    graph = nx.Graph([("<a>", "b")])
    data = pd.DataFrame({"<a>": ["x&y"] * 500, "b": [5] * 500})
    estimator = CollectiveMAP(epsilon=1.0, state_names=schema).fit(graph, data)
    posterior = estimator.posterior(n_draws=40, random_state=0)
    ledger = Ledger(Budget(epsilon=1.0))
    found = preview(schema, graph, Budget(epsilon=1.0), 1000, n_simulations=0)
    expected = {
        "MarkovNetwork(2 nodes, 1 edge; 1-DP": estimator.model_,
        "ParameterPosterior(40 draws of a model of 2 variables; 1-DP": posterior,
        "Posterior(40 draws": posterior.draws,
        "Preview(CollectiveMAP on 1 table": found,
        "Schema(2 variables": schema,
        "Ledger(budget=1-DP": ledger,
    }
    for text, shown in expected.items():
        assert repr(shown).startswith(text) and len(repr(shown)) < 250 and "\n" not in repr(shown)
        if shown is not posterior.draws:
            assert "<a>" not in (html := shown._repr_html_()) and html.count("<") == html.count(">")
    assert "&lt;a&gt;" in estimator.model_._repr_html_() and "x&amp;y" in schema._repr_html_()
    assert "no factors" in repr(MarkovNetwork([("a", "b")]))
    model = MarkovNetwork([("a", "b")])
    model.add_factors(DiscreteFactor(["a", "b"], [2, 2], [1, 2, 3, 4]))
    assert repr(model) == str(model) == "MarkovNetwork(2 nodes, 1 edge; factors set by hand)"
    assert "1-DP" in str(estimator.model_)

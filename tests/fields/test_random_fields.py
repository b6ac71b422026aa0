"""Ising, pairwise and t-wise binary fields: definitions by brute force, conversions, pgmpy's factors."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from pgmpy.inference import VariableElimination

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.models.markov_network import MarkovNetwork
from tests.fields.definition import log_potentials, pairwise_of

NAMES = ("d", "a", ("b", 1), 0, "c")
P = len(NAMES)


def ising(seed: int = 0) -> Ising:
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.normal(size=(P, P)), 1) * (rng.random((P, P)) < 0.6)
    return Ising(weights + weights.T, rng.normal(size=P))


def pairwise(seed: int = 0, cardinalities=(2, 3, 1, 4, 2)) -> Pairwise:
    rng = np.random.default_rng(seed)
    pairs = [(0, 1), (1, 3), (0, 3), (2, 3), (3, 4)]
    weights = {(i, j): rng.normal(size=(cardinalities[i], cardinalities[j])) for i, j in pairs}
    return Pairwise(tuple(rng.normal(size=k) for k in cardinalities), weights)


def twise(seed: int = 0) -> BinaryField:
    rng = np.random.default_rng(seed)
    return BinaryField(P, {s: rng.normal() for s in [(0,), (1,), (4,), (0, 1), (1, 2, 3), (0, 2), (0, 2, 3, 4)]})


FIELDS = {"ising": ising(), "pairwise": pairwise(), "twise": twise()}


@pytest.fixture(params=list(FIELDS))
def field(request):
    return FIELDS[request.param]


def all_codes(cardinalities) -> np.ndarray:
    return np.indices(cardinalities).reshape(len(cardinalities), -1).T


def joint(field) -> np.ndarray:
    """Probabilities of all records from the definition."""
    weights = np.exp(log_potentials(field, all_codes(field.cardinalities)))
    return weights / weights.sum()


def test_the_log_linear_model_has_the_same_probabilities(field):
    model = field.to_log_linear(NAMES)
    assert model.cliques.variables == NAMES
    codes = all_codes(field.cardinalities)
    np.testing.assert_allclose(np.exp(model.log_probability(codes)), joint(field), atol=1e-13)


def test_the_tables_of_a_graph_can_be_asked_for(field):
    """Into the layout that the given-graph learners use: edges and isolated nodes only, here of the complete graph."""
    if field.cardinalities == (2,) * P and isinstance(field, BinaryField):
        cliques = Cliques(NAMES, field.cardinalities, (NAMES[::-1],))
    else:
        cardinalities = dict(zip(NAMES, field.cardinalities, strict=True))
        graph = nx.empty_graph(NAMES)
        graph.add_edges_from(itertools.combinations(NAMES, 2))
        cliques = Cliques.from_graph(graph, cardinalities)
    model = field.to_log_linear(cliques=cliques)
    assert model.cliques == cliques
    np.testing.assert_allclose(np.exp(model.log_probability(all_codes(field.cardinalities))), joint(field), atol=1e-13)


def test_a_layout_that_lacks_a_term_is_refused():
    cliques = Cliques(tuple(range(P)), (2,) * P, ((0, 1), (1, 2), (3,), (4,)))
    with pytest.raises(ValueError, match=r"no table with the variables .* add a scope"):
        ising().to_log_linear(cliques=cliques)
    with pytest.raises(ValueError, match="must have the variables and cardinalities of the field"):
        ising().to_log_linear("abcde", cliques=cliques)
    with pytest.raises(ValueError, match="variables must name the 5 positions"):
        ising().to_log_linear("abc")


@pytest.fixture(params=["ising", "pairwise", "twise"])
def pgmpy_field(request):
    """pgmpy's side needs two states or more."""
    return pairwise(0, (2, 3, 2, 4, 2)) if request.param == "pairwise" else FIELDS[request.param]


def pgmpy_network(field) -> MarkovNetwork:
    graph = nx.empty_graph(NAMES)
    graph.add_edges_from((NAMES[i], NAMES[j]) for i, j in field.edges())
    centred = field.centred() if isinstance(field, Pairwise) else field
    states = {name: [f"s{a}" for a in range(k)] for name, k in zip(NAMES, field.cardinalities, strict=True)}
    return MarkovNetwork.from_log_linear(centred.to_log_linear(NAMES), graph, states)


def test_the_product_of_pgmpys_factors_is_the_distribution(pgmpy_field):
    network = pgmpy_network(pgmpy_field)
    product = network.factors[0]
    for factor in network.factors[1:]:
        product = product * factor
    axes = [product.variables.index(name) for name in NAMES]
    np.testing.assert_allclose(product.values.transpose(axes).ravel(), joint(pgmpy_field), atol=1e-12)


def test_pgmpys_variable_elimination_gives_the_marginals(pgmpy_field):
    truth = joint(pgmpy_field).reshape(pgmpy_field.cardinalities)
    found = VariableElimination(pgmpy_network(pgmpy_field)).query([NAMES[1], NAMES[3]], show_progress=False)
    found.normalize()
    values = found.values.transpose([found.variables.index(NAMES[1]), found.variables.index(NAMES[3])])
    np.testing.assert_allclose(values, truth.sum(axis=(0, 2, 4)), atol=1e-12)


def test_conversions_between_the_families():
    model = ising(3)
    around = pairwise_of(model).to_ising().to_binary_field().to_ising()
    np.testing.assert_allclose(around.weights, model.weights, atol=1e-15)
    np.testing.assert_allclose(around.fields, model.fields, atol=1e-15)
    for other in (pairwise_of(model), model.to_binary_field()):
        np.testing.assert_allclose(joint(other), joint(model), atol=1e-14)
        assert (other.width, other.min_edge_weight) == pytest.approx((model.width, model.min_edge_weight), rel=1e-12)
        assert other.edges() == model.edges()
    binary = pairwise(4, (2,) * P)
    np.testing.assert_allclose(joint(binary.to_ising()), joint(binary), atol=1e-14)


def test_centring_keeps_the_distribution_and_removes_means():
    model = pairwise(5)
    centred = model.centred()
    np.testing.assert_allclose(joint(centred), joint(model), atol=1e-14)
    for table in centred.weights.values():
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-14)
        np.testing.assert_allclose(table.sum(axis=1), 0, atol=1e-14)
    for theta in centred.fields:
        assert theta.sum() == pytest.approx(0, abs=1e-14)
    # (2, 3) holds a variable of one state, which cannot interact.
    assert (2, 3) in model.weights
    assert model.edges() == [(0, 1), (0, 3), (1, 3), (3, 4)]


def test_a_table_without_interaction_is_no_edge_and_no_table():
    """Rows plus columns, up to rounding: an edge in one place and none in another left a table without a graph."""
    field = Pairwise([np.zeros(2), np.zeros(2)], {(0, 1): np.array([0.1, 0.2])[:, None] + np.array([0.7, -0.4])})
    model = field.to_log_linear("ab")
    assert field.edges() == [] and ("a", "b") not in model.cliques.scopes
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    potentials = log_potentials(field, codes)
    expected = np.exp(potentials - np.logaddexp.reduce(potentials))
    alone = [model.marginal([name]) for name in "ab"]
    np.testing.assert_allclose(np.outer(*alone).ravel(), expected, rtol=1e-12)


def test_widths_by_hand():
    a = np.array([[0, 0.5, -0.25], [0.5, 0, 0], [-0.25, 0, 0]])
    model = Ising(a, np.array([-1.0, 0, 2]))
    assert (model.width, model.min_edge_weight) == (2.25, 0.25)
    assert Ising(np.zeros((2, 2)), np.zeros(2)).min_edge_weight == math.inf
    table = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    potts = Pairwise([np.zeros(3), np.array([-3.0, 0, 3]), np.zeros(3)], {(0, 1): table, (1, 2): -table / 2})
    assert (potts.width, potts.min_edge_weight) == (6, 1)
    field = BinaryField(4, {(2, 0, 1): -1.0, (0, 1): 0.25, (0,): 0.5, (2, 3): 3.0, (3,): 0.0})
    assert (field.width, field.order, field.min_edge_weight) == (4.0, 3, 1.0)
    assert field.maximal() == [(2, 3), (0, 1, 2)]
    assert list(field.coefficients) == [(0,), (0, 1), (2, 3), (0, 1, 2)]


def test_what_is_not_of_the_family_is_refused():
    with pytest.raises(ValueError, match="order 4"):
        twise().to_ising()
    with pytest.raises(ValueError, match="binary variables, got the cardinalities"):
        pairwise().to_ising()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ising(np.zeros((2, 3)), np.zeros(2)), "shape"),
        (lambda: Ising(np.array([[0, 1.0], [2.0, 0]]), np.zeros(2)), "symmetric"),
        (lambda: Ising(np.eye(2), np.zeros(2)), "zero diagonal"),
        (lambda: Ising(np.zeros((2, 2)), np.array([0, np.nan])), "finite"),
        (lambda: Pairwise([np.zeros(2), np.zeros(3)], {(1, 0): np.zeros((3, 2))}), "pairs i < j"),
        (lambda: Pairwise([np.zeros(2), np.zeros(3)], {(0, 1): np.zeros((3, 2))}), "shape"),
        (lambda: Pairwise([np.zeros(2), np.zeros(0)], {}), "at least one state"),
        (lambda: BinaryField(2, {(): 1.0}), "distinct positions"),
        (lambda: BinaryField(2, {(0, 0): 1.0}), "distinct positions"),
        (lambda: BinaryField(2, {(0, 2): 1.0}), "from 0 to 1"),
        (lambda: BinaryField(2, {(0, 1): 1.0, (1, 0): 1.0}), "twice"),
        (lambda: BinaryField(2, {(0, 1): math.inf}), "finite"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("seed", range(5))
def test_scopes_are_the_cliques_of_a_graph(seed):
    graph = nx.gnp_random_graph(8, 0.6, seed=seed)
    cliques = {
        s
        for r in range(1, 5)
        for s in itertools.combinations(range(8), r)
        if graph.subgraph(s).size() == r * (r - 1) // 2
    }
    found = field_scopes(8, 4, graph.edges)
    assert set(found) == cliques and list(found) == sorted(found, key=lambda s: (len(s), s))
    assert field_scopes(5, 3) == field_scopes(5, 3, nx.complete_graph(5).edges)

"""MarkovNetwork against brute force and against pgmpy's own inference, on every shape of graph."""

import itertools
import pickle

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pgmpy.base import DAG
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import BeliefPropagation, VariableElimination
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from pgmpy.readwrite import UAIReader, UAIWriter

from pgmpy_dp import MarkovNetwork, Number, Schema
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.privacy_record import Privacy, record_of
from pgmpy_dp.models import conversion
from pgmpy_dp.models.model_file import read_model_file
from pgmpy_dp.models.posterior.posterior_draws import Posterior
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.guarantee import ApproxDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from tests.estimators.shapes import GRAPHS, brute_force, make_network


def aligned(factor, names):
    """Values of a factor with its axes in the order of `names`."""
    return np.moveaxis(factor.values, [factor.variables.index(name) for name in names], range(len(names)))


def queries(network):
    nodes = list(network.nodes)
    return [[nodes[-1]], *map(list, itertools.combinations(nodes, 2))][:7]


# -- exactness -----------------------------------------------------------------------------------


def test_factors_are_one_per_maximal_clique_and_multiply_to_a_distribution(network):
    joint = brute_force(network)
    assert joint.sum() == pytest.approx(1.0, abs=1e-13)
    scopes = [frozenset(factor.variables) for factor in network.factors]
    assert len(set(scopes)) == len(scopes)
    assert set(scopes) == {frozenset(clique) for clique in nx.find_cliques(network)}
    assert network.check_model()


def test_factors_have_the_distribution_they_were_made_from(shape):
    graph, cardinalities = shape
    cliques = Cliques.from_graph(graph, cardinalities)
    theta = 2.0 * np.random.default_rng(11).normal(size=cliques.n_cells)
    states = {name: list(range(size)) for name, size in cardinalities.items()}
    network = MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), graph, states)
    log_joint = np.zeros([cardinalities[name] for name in graph])
    for scope, table in zip(cliques.indices, cliques.split(theta), strict=True):
        log_joint += table.reshape([size if i in scope else 1 for i, size in enumerate(log_joint.shape)])
    expected = np.exp(log_joint) / np.exp(log_joint).sum()
    np.testing.assert_allclose(brute_force(network), expected, atol=1e-14)


def test_marginals_agree_with_brute_force_and_with_pgmpy(network):
    joint, nodes = brute_force(network), list(network.nodes)
    for names in queries(network):
        summed = joint.sum(axis=tuple(i for i, name in enumerate(nodes) if name not in names))
        expected = np.moveaxis(summed, np.argsort(np.argsort([nodes.index(name) for name in names])), range(len(names)))
        ours = network.marginal(names)
        assert ours.variables == names
        assert ours.state_names == {name: network.states[name] for name in names}
        np.testing.assert_allclose(ours.values, expected, atol=1e-14)
        greedy = VariableElimination(network).query(names, show_progress=False)
        classic = VariableElimination(network).query(names, elimination_order="MinFill", show_progress=False)
        propagated = BeliefPropagation(network).query(names, show_progress=False)
        for factor in (greedy, classic, propagated):
            np.testing.assert_allclose(aligned(factor, names), expected, atol=1e-13)


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "one node"])
def test_conditional_queries_agree_with_brute_force(name):
    network = make_network(*GRAPHS[name])
    nodes = list(network.nodes)
    target, given = nodes[0], nodes[-1]
    state = network.states[given][1]
    column = brute_force(network).sum(axis=tuple(range(1, len(nodes) - 1)))[:, 1]
    expected = column / column.sum()
    propagated = BeliefPropagation(network).query([target], evidence={given: state}, show_progress=False)
    np.testing.assert_allclose(propagated.values, expected, atol=1e-13)
    eliminated = VariableElimination(network).query([target], evidence={given: state}, show_progress=False)
    np.testing.assert_allclose(eliminated.values / eliminated.values.sum(), expected, atol=1e-13)


def test_belief_propagation_is_exact_after_one_sweep(network):
    inference = BeliefPropagation(network)
    tree = inference.junction_tree
    assert nx.is_tree(tree)
    # From the root outwards only: were a second sweep needed, these would not be the marginals yet.
    inference.clique_beliefs = {clique: tree.get_factors(clique) for clique in tree.nodes}
    inference.sepset_beliefs = {frozenset(edge): None for edge in tree.edges}
    for sender, receiver in nx.bfs_edges(tree, next(iter(tree.nodes))):
        inference._update_beliefs(sender, receiver, "marginalize")
    for belief in inference.get_clique_beliefs().values():
        np.testing.assert_allclose(belief.values, network.marginal(belief.variables).values, atol=1e-14)


def test_partition_function_of_unnormalised_factors(network):
    before = brute_force(network).sum()
    network.factors[0].values = network.factors[0].values * 7.5
    assert network.get_partition_function() == pytest.approx(7.5 * before, rel=1e-12)


def test_structural_zeros_survive_every_conversion():
    graph = nx.path_graph(["a", "b", "c"])
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, 2))
    theta = np.array([0.0, -np.inf, 0.3, 0.1, -np.inf, 0.2, -np.inf, 0.5])
    network = MarkovNetwork.from_log_linear(
        LogLinearModel(cliques, theta), graph, {name: ["no", "yes"] for name in graph}
    )
    joint = brute_force(network)
    # theta forbids b = yes with a = no, and c = no always.
    assert joint[0, 1].sum() == 0
    assert joint[:, :, 0].sum() == 0
    with np.errstate(invalid="ignore"):  # pgmpy divides 0 by 0 and then puts 0
        propagated = BeliefPropagation(network).query(["a", "c"], show_progress=False)
    np.testing.assert_allclose(aligned(propagated, ["a", "c"]), joint.sum(axis=1), atol=1e-14)


@pytest.mark.parametrize("n", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_long_chain_neither_overflows_nor_underflows(n):
    graph = nx.path_graph(n)
    network = make_network(graph, dict.fromkeys(graph, 3), scale=3.0)
    assert network.get_partition_function() == pytest.approx(1.0, rel=1e-9)
    inference = BeliefPropagation(network)
    inference.calibrate()
    beliefs = list(inference.get_clique_beliefs().values())
    queried = VariableElimination(network).query([0, n - 1], show_progress=False)
    expected = network.to_log_linear().marginals_of([factor.variables for factor in (*beliefs, queried)])
    for factor, table in zip((*beliefs, queried), expected, strict=True):
        np.testing.assert_allclose(factor.values, table, rtol=1e-8)


def test_an_8_by_8_grid_gets_a_junction_tree_of_small_width():
    graph = nx.grid_2d_graph(8, 8)
    tree = make_network(graph, dict.fromkeys(graph, 2)).to_junction_tree()
    assert max(len(clique) for clique in tree.nodes) <= 11


@pytest.mark.parametrize("edges", [["ab", "bc", "cd", "da"], ["ab", "bc", "ca"], ["ab", "cd"], []])
@pytest.mark.parametrize("factors", ["some", "singles", "none"])
def test_a_junction_tree_holds_the_edges_without_a_factor_too(edges, factors):
    graph = nx.Graph(edges)
    graph.add_node("e")
    model, rng = MarkovNetwork(graph), np.random.default_rng(0)
    scopes = {"some": [*list(graph.edges)[:-1], *graph], "singles": [*graph], "none": []}[factors]
    for scope in scopes:
        model.add_factors(DiscreteFactor(list(scope), [2] * len(scope), rng.random(2 ** len(scope))))
    tree = model.to_junction_tree()
    assert all(any({*edge} <= {*cluster} for cluster in tree.nodes) for edge in graph.edges)
    assert {name for cluster in tree.nodes for name in cluster} == {*graph} and nx.is_tree(tree)
    if factors == "none":  # of which nothing is known but the graph
        assert tree.factors == []
        return
    assert tree.check_model()
    for name in graph:
        found = BeliefPropagation(model).query([name], show_progress=False)
        np.testing.assert_allclose(found.values, model.marginal([name]).values, atol=1e-12)
    joined = {frozenset(edge) for edge in model.to_bayesian_network().edges}
    assert joined >= {frozenset(edge) for edge in graph.edges}


def test_tables_too_large_to_merge_stay_apart(monkeypatch):
    graph, cardinalities = GRAPHS["clique"]
    merged = brute_force(make_network(graph, cardinalities))
    monkeypatch.setattr(conversion, "MERGED_CELLS_LIMIT", 80)  # the clique has 81 cells
    apart = make_network(graph, cardinalities)
    assert len(apart.factors) == graph.number_of_edges()
    np.testing.assert_allclose(brute_force(apart), merged, atol=1e-14)


def test_memory_limit_is_obeyed():
    graph, cardinalities = GRAPHS["clique"]
    network = make_network(graph, cardinalities)
    network.memory_limit = 1000
    with pytest.raises(InferenceTooLarge, match="memory_limit"):
        network.marginal([next(iter(graph))])


# -- samples and likelihood ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["stratified", "independent"])
def test_samples_have_the_model_s_marginals(network, method):
    n = 20_000
    frame = network.sample(n, random_state=1, method=method)
    assert list(frame.columns) == list(network.nodes)
    places = {
        name: frame.iloc[:, i].map({state: k for k, state in enumerate(network.states[name])})
        for i, name in enumerate(network.nodes)
    }
    for names in queries(network)[:3]:
        expected = network.marginal(names)
        observed = np.zeros(expected.values.shape)
        np.add.at(observed, tuple(places[name] for name in names), 1)
        # Five standard deviations of each cell: 1 in 1.7 million by chance.
        tolerance = 5 * np.sqrt(expected.values * (1 - expected.values) / n) + 1e-4
        assert (np.abs(observed / n - expected.values) < tolerance).all()


def test_sampling_is_repeatable_with_a_seed_or_generator(network):
    once = network.sample(50, random_state=5)
    pd.testing.assert_frame_equal(once, network.sample(50, random_state=5))
    pd.testing.assert_frame_equal(once, network.sample(50, random_state=np.random.default_rng(5)))
    assert network.sample(0).shape == (0, len(network))


@pytest.mark.parametrize("n", [-1, 2.5, True, "10"])
def test_sample_refuses_what_is_no_number_of_records(n):
    with pytest.raises(ValueError, match="n="):
        make_network(*GRAPHS["path"]).sample(n)


@pytest.mark.parametrize(
    ("states", "dtype"),
    [
        ([10, 20], np.int64),
        ([0.5, 1.5], np.float64),
        ([False, True], np.bool_),
        (["no", "yes"], None),
        ([None, "yes"], object),
        ([("a", 1), ("b", 2)], object),
    ],
)
def test_samples_are_states_of_their_own_type(states, dtype):
    model = MarkovNetwork([("x", "y")])
    model.add_factors(DiscreteFactor(["x", "y"], [2, 2], [1, 2, 3, 4], state_names={"x": states, "y": states}))
    frame = model.sample(200, random_state=0)
    assert set(frame["x"]) == set(states)
    if dtype is not None:
        assert frame["x"].dtype == dtype


def test_records_are_stratified_by_default_and_independent_by_choice():
    model = MarkovNetwork([("x", "y")])
    model.add_factors(DiscreteFactor(["x", "y"], [2, 2], [1, 2, 3, 4]))
    counts = [model.sample(100, seed).value_counts().sort_index().tolist() for seed in range(5)]
    assert counts == [[10, 20, 30, 40]] * 5
    counts = [model.sample(100, seed, method="independent").value_counts().sort_index().tolist() for seed in range(5)]
    assert len({tuple(each) for each in counts}) > 1
    assert [10, 20, 30, 40] not in counts
    with pytest.raises(ValueError, match="method='exact'; pass one of 'stratified', 'independent'"):
        model.sample(3, method="exact")


def test_log_likelihood_is_the_sum_of_log_probabilities(network):
    frame = network.sample(300, random_state=2)
    joint, nodes = brute_force(network), list(network.nodes)
    codes = [
        frame.iloc[:, i].map({state: k for k, state in enumerate(network.states[name])}) for i, name in enumerate(nodes)
    ]
    expected = np.log(joint[tuple(codes)]).sum()
    assert network.log_likelihood(frame) == pytest.approx(expected, rel=1e-10)
    assert network.log_likelihood(frame, normalize=True) == pytest.approx(expected / 300, rel=1e-10)


@pytest.mark.parametrize("engine", ["polars", "polars lazy", "pyarrow", "duckdb"])
def test_log_likelihood_reads_any_engine(engine):
    model = make_network(*GRAPHS["two components"])
    frame = model.sample(50, random_state=3)
    tables = {
        "polars": lambda: pl.from_pandas(frame),
        "polars lazy": lambda: pl.from_pandas(frame).lazy(),
        "pyarrow": lambda: pa.Table.from_pandas(frame),
        "duckdb": lambda: duckdb.from_df(frame),
    }
    assert model.log_likelihood(tables[engine]()) == pytest.approx(model.log_likelihood(frame), rel=1e-12)


def test_log_likelihood_takes_states_in_any_order_and_refuses_others():
    network = make_network(*GRAPHS["path"])
    frame = network.sample(100, random_state=3)
    mixed = frame.assign(v0=pd.Categorical(frame["v0"], categories=["v0=2", "v0=0", "v0=1"]))
    assert network.log_likelihood(mixed) == network.log_likelihood(frame)
    with pytest.raises(ValueError, match="1 of 100 records"):
        network.log_likelihood(frame.assign(v0=["unheard of", *frame["v0"][1:]]))
    with pytest.raises(ValueError, match="v3"):
        network.log_likelihood(frame.drop(columns="v3"))


# -- files ---------------------------------------------------------------------------------------


def test_save_and_load_are_lossless(network, tmp_path):
    ledger = Ledger(Budget(epsilon=2.0), adjacency="add_remove")
    entry = ledger.charge(
        PureDP(0.5), what="tables", columns=list(network.nodes), mechanism="discrete_laplace", adjacency="add_remove"
    )
    network.privacy = Privacy(ApproxDP(0.3, 1e-7), Adjacency.ADD_REMOVE, "test", True, (entry,))
    path = tmp_path / "model.npz"
    network.save(path)
    loaded = MarkovNetwork.load(path)
    assert type(loaded) is MarkovNetwork
    assert list(loaded.nodes) == list(network.nodes)
    assert list(loaded.edges) == list(network.edges)
    assert {name: list(map(repr, states)) for name, states in loaded.states.items()} == {
        name: list(map(repr, states)) for name, states in network.states.items()
    }
    for ours, theirs in zip(network.factors, loaded.factors, strict=True):
        assert ours.variables == theirs.variables
        assert ours.values.tobytes() == theirs.values.tobytes()
    assert loaded.privacy == network.privacy
    assert loaded.sample(20, random_state=0).equals(network.sample(20, random_state=0))


def test_save_keeps_labels_of_every_type(tmp_path):
    model = MarkovNetwork([(0, ("t", 1)), (("t", 1), "x")], latents=["x"])
    states = {0: [True, False], ("t", 1): [1, "1"], "x": [None, 2.5, ("a", (1, None))]}
    model.add_factors(
        DiscreteFactor([0, ("t", 1)], [2, 2], [1, 2, 3, 4], state_names={n: states[n] for n in (0, ("t", 1))}),
        DiscreteFactor(["x"], [3], [0.1, 1e-320, np.pi], state_names={"x": states["x"]}),
    )
    model.save(tmp_path / "m.npz")
    loaded = MarkovNetwork.load(tmp_path / "m.npz")
    assert [repr(n) for n in loaded.nodes] == [repr(n) for n in model.nodes]
    assert loaded.latents == {"x"}
    assert loaded.factors[1].values.tobytes() == model.factors[1].values.tobytes()
    assert repr(loaded.factors[0].state_names) == repr(model.factors[0].state_names)
    assert repr(loaded.factors[1].state_names) == repr(model.factors[1].state_names)


def test_an_unfinished_model_can_be_saved(tmp_path):
    model = MarkovNetwork([("a", "b")])
    model.save(tmp_path / "m.npz")
    assert list(MarkovNetwork.load(tmp_path / "m.npz").edges) == [("a", "b")]


def test_load_refuses_other_files(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(ValueError, match="not a saved MarkovNetwork"):
        MarkovNetwork.load(tmp_path / "other.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path, network, monkeypatch):
    path = tmp_path / "model.npz"
    network.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        network.rescaled().save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


# -- being a pgmpy model -------------------------------------------------------------------------


def test_uai_round_trip_of_rescaled_factors(tmp_path):
    network = make_network(*GRAPHS["unequal cardinalities"], scale=4.0)
    assert min(factor.values.min() for factor in network.factors) < 1e-4  # which the reader could not read
    UAIWriter(network.rescaled()).write(tmp_path / "model.uai")
    read = UAIReader(tmp_path / "model.uai").get_model()
    order = [name for name, _ in sorted(UAIWriter(network).get_domain().items(), key=lambda item: (item[1], item[0]))]
    for i, name in enumerate(order):
        queried = VariableElimination(read).query([f"var_{i}"], show_progress=False)
        np.testing.assert_allclose(queried.values / queried.values.sum(), network.marginal([name]).values, rtol=1e-10)


def posterior_of(model):
    """Two draws that are the model itself."""
    own = model.to_log_linear()
    draws = Posterior(own.cliques, np.stack([own.theta, own.theta]), "made", "up", own.memory_limit)
    return ParameterPosterior(draws, Schema(model.states), nx.Graph(model.edges), model.privacy)


def _other_numbers(model):
    model.factors[0].values.flat[0] *= 2


CHANGES = {
    "add_factors": lambda model: model.add_factors(model.factors[0].copy()),
    "remove_factors": lambda model: model.remove_factors(model.factors[0]),
    "factors": lambda model: setattr(model, "factors", [*model.factors[1:], model.factors[0] * 2]),
    "values": _other_numbers,
    "add_edge": lambda model: model.add_edge("v0", "v2"),
    "remove_edge": lambda model: model.remove_edge("v0", "v1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_record_does_not_outlive_its_parameters(change, tmp_path):
    model, other = make_network(*GRAPHS["path"]), tmp_path / "changed.npz"
    model.privacy, model.posterior = Privacy(PureDP(0.1), Adjacency.ADD_REMOVE, "test"), posterior_of(model)
    before, kept = model.copy(), pickle.loads(pickle.dumps(model))
    change(model)
    assert model.privacy is None and model.posterior is None and "factors set by hand" in repr(model)
    assert model.copy().privacy is None and "DP" not in repr(model) + repr(model.copy())
    model.save(other)
    assert MarkovNetwork.load(other).privacy is read_model_file(other).privacy is None
    for unchanged in (before, kept, before.rescaled()):
        assert "0.1-DP" in repr(unchanged) and unchanged.posterior is not None
    with pytest.raises(ValueError, match=r"the model was changed after it was learned with 0\.1-DP under add_remove"):
        record_of(model)
    model.privacy = None  # as it is now, it is public
    assert record_of(model) is None


def test_a_change_that_is_taken_back_leaves_the_record(network):
    network.privacy = Privacy(PureDP(0.1), Adjacency.ADD_REMOVE, "test")
    first, edge = network.factors[0], next(iter(network.edges), None)
    network.remove_factors(first)
    assert network.privacy is None
    network.add_factors(first)  # now the last
    if edge is not None:
        network.remove_edge(*edge)
        assert network.privacy is None
        network.add_edge(*edge[::-1])
    assert str(network.privacy.guarantee) == "0.1-DP"


def test_rescaled_keeps_the_distribution(network):
    joint = brute_force(network.rescaled(0.5))
    np.testing.assert_allclose(joint / joint.sum(), brute_force(network), rtol=1e-10)
    with pytest.raises(ValueError, match="smallest"):
        network.rescaled(0.0)


def test_copy_is_independent_and_complete(network):
    network.privacy = Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "test")
    clone = network.copy()
    assert type(clone) is MarkovNetwork
    assert list(clone.nodes) == list(network.nodes)
    assert set(map(frozenset, clone.edges)) == set(map(frozenset, network.edges))
    assert clone.privacy == network.privacy
    clone.factors[0].values *= 2
    clone.latents.add("z")
    clone.add_node("new")
    assert network.latents == set()
    assert "new" not in network
    assert network.get_partition_function() == pytest.approx(1.0)


def test_models_do_not_share_latents():
    one, other = MarkovNetwork(), MarkovNetwork()
    one.latents.add("z")
    assert other.latents == set()


def test_node_0_is_a_node():
    network = make_network(*GRAPHS["integer names"])
    assert network.get_cardinality(0) == 3
    assert all(0 in factor.variables for factor in network.get_factors(0))
    assert 0 < len(network.get_factors(0)) < len(network.get_factors())
    with pytest.raises(ValueError, match="99"):
        network.get_factors(99)


def test_a_graph_brings_its_isolated_nodes_in_order():
    graph = nx.Graph()
    graph.add_nodes_from(["c", "a", "b"])
    graph.add_edge("a", "c")
    model = MarkovNetwork(graph)
    assert list(model.nodes) == ["c", "a", "b"]
    assert isinstance(model, DiscreteMarkovNetwork)
    assert list(MarkovNetwork([("x", "y")]).nodes) == ["x", "y"]


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph, DAG, DiscreteBayesianNetwork])
def test_a_directed_graph_is_refused_since_its_edges_alone_lose_its_families(kind):
    with pytest.raises(TypeError, match=rf"ebunch is a {kind.__name__}.*estimator itself.*to_markov_model"):
        MarkovNetwork(kind([("a", "c"), ("b", "c")]))


@pytest.mark.parametrize(("present", "noise"), [(0.005, True), (0.5, False)])
def test_a_mean_that_would_be_noise_is_not_told(present, noise, tmp_path):
    schema = Schema({"pay": Number(0, 100, cuts=[50]), "sex": ["F", "M"]})
    table = np.array([[present / 4] * 2, [present / 4] * 2, [0.001, 0.999 - present]])
    model = MarkovNetwork.from_log_linear(
        LogLinearModel(Cliques(("pay", "sex"), (3, 2), (("pay", "sex"),)), np.log(table).ravel()),
        nx.Graph([("pay", "sex")]),
        schema,
    )
    model.save(tmp_path / "model.npz")
    for one in (model, MarkovNetwork.load(tmp_path / "model.npz")):
        assert (one.ask("pay").worth.missing is not None) == (not one.ask("pay").numbers) == noise
        assert one.ask("pay", {"sex": "F"}).worth.missing is None  # of whom most have a value
        assert one.ask("pay", {"sex": "F"}).numbers["mean"].value == pytest.approx(50)
    model.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert ("pay has a value within its bounds in 0.50 % of the records" in page) == noise
    assert (">mean<" not in page) == noise


def test_a_network_with_cpds_becomes_one_of_factors_as_that_refusal_says():
    network = DiscreteBayesianNetwork([("a", "c"), ("b", "c")])
    names = {"a": ["n", "y"], "b": ["n", "y"], "c": ["n", "y"]}
    table = [[0.9, 0.1, 0.1, 0.9], [0.1, 0.9, 0.9, 0.1]]  # c is a or b, not both, but for a tenth
    network.add_cpds(
        TabularCPD("a", 2, [[0.5], [0.5]], state_names={"a": names["a"]}),
        TabularCPD("b", 2, [[0.5], [0.5]], state_names={"b": names["b"]}),
        TabularCPD("c", 2, table, ["a", "b"], [2, 2], state_names=names),
    )
    moral = network.to_markov_model()
    model = MarkovNetwork(moral)
    model.add_factors(*moral.factors)
    assert model.states == names
    assert model.probability({"c": "y"}, {"a": "y", "b": "y"}) == pytest.approx(0.1)


def test_factors_that_disagree_about_states_are_refused():
    model = MarkovNetwork([("a", "b"), ("b", "c")])
    model.add_factors(
        DiscreteFactor(["a", "b"], [2, 2], [1, 2, 3, 4], state_names={"a": [0, 1], "b": ["n", "y"]}),
        DiscreteFactor(["b", "c"], [2, 2], [1, 2, 3, 4], state_names={"b": ["y", "n"], "c": [0, 1]}),
    )
    with pytest.raises(ValueError, match="variable 'b'"):
        model.marginal(["a"])


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_impossible_factors_are_refused(bad):
    model = MarkovNetwork([("a", "b")])
    model.add_factors(DiscreteFactor(["a", "b"], [2, 2], [1, 2, 3, bad]))
    with pytest.raises(ValueError, match="negative, infinite or NaN"):
        model.marginal(["a"])


def test_a_model_without_factors_says_what_is_missing():
    with pytest.raises(ValueError, match="no factor has the variables"):
        MarkovNetwork([("a", "b")]).sample(3)


@pytest.mark.parametrize("variables", [["nobody"], [], "nobody"])
def test_marginal_names_unknown_variables(variables):
    with pytest.raises(ValueError, match="variables="):
        make_network(*GRAPHS["path"]).marginal(variables)


def test_marginal_takes_a_single_name():
    network = make_network(*GRAPHS["tuple names"])
    np.testing.assert_array_equal(network.marginal((0, 1)).values, network.marginal([(0, 1)]).values)


def test_pickle_round_trip(network):
    clone = pickle.loads(pickle.dumps(network))
    assert [f.values.tobytes() for f in clone.factors] == [f.values.tobytes() for f in network.factors]


def test_from_log_linear_takes_a_schema():
    schema = Schema({"a": ["no", "yes"], "b": [1, 2, 3]})
    graph = nx.Graph([("a", "b")])
    model = LogLinearModel(Cliques.from_graph(graph, schema.cardinalities), np.zeros(6))
    network = MarkovNetwork.from_log_linear(model, graph, schema)
    assert network.states == {"a": ["no", "yes"], "b": [1, 2, 3]}
    np.testing.assert_allclose(network.marginal(["b"]).values, 1 / 3)

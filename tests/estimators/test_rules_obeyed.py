"""Fitted models obey the schema's rules. Fits of tables learn under them, so that what was measured is what is fitted;
others are the fit without rules, conditioned on what is possible."""

from __future__ import annotations

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination
from pgmpy.readwrite import UAIReader, UAIWriter

from pgmpy_dp import Budget, Date, Ledger, MarkovNetwork, PrivateTable, Schema, check, learn, preview
from pgmpy_dp.estimators import (
    CollectiveEM,
    CollectiveMAP,
    NaiveMLE,
    PrivateChowLiu,
    PrivateNetwork,
    PrivatePairwise,
    PrivateSGD,
)
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sum_product import inference_size
from pgmpy_dp.learning import structural_zeros
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number

VARIABLES = {
    "age": Number(0, 99, cuts=[15, 40], resolution=1, missing="drop"),
    "marital": ["never", "married", "widowed"],
    "sex": ["F", "M"],
    "pregnant": ["no", "yes"],
}
RULES = ["age < 15 -> marital = never", "pregnant = yes -> sex = F & age >= 15"]
SCHEMA, PLAIN = Schema(VARIABLES, impossible=RULES), Schema(VARIABLES)
GRAPH = nx.Graph([("age", "marital"), ("sex", "pregnant")])
NAMES = list(VARIABLES)
RECORDS = np.indices((3, 3, 2, 2)).reshape(4, -1).T


def records(n=2000, seed=0) -> pd.DataFrame:
    """Some of them break the rules: as everywhere, they count."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "age": rng.integers(0, 99, n),
        "marital": rng.choice(VARIABLES["marital"], n),
        "sex": rng.choice(["F", "M"], n),
        "pregnant": rng.choice(["no", "yes"], n, p=[0.7, 0.3]),
    })  # fmt: skip


def possible(age: int, marital: int, sex: int, pregnant: int) -> bool:
    return not (age == 0 and marital != 0) and not (pregnant and (sex == 1 or age == 0))


MASK = np.array([possible(*record) for record in RECORDS]).reshape(3, 3, 2, 2)


def conditioned(joint: np.ndarray) -> np.ndarray:
    joint = np.where(MASK, joint, 0.0)
    return joint / joint.sum()


def obeys(frame: pd.DataFrame) -> bool:
    young = (
        frame["age"] == "[0,15)"
        if frame["age"].dtype == object or str(frame["age"].dtype) == "str"
        else frame["age"] < 15
    )
    pregnant = frame["pregnant"] == "yes"
    return not ((young & (frame["marital"] != "never")) | (pregnant & ((frame["sex"] != "F") | young))).any()


def same_release(estimator, schema: Schema):
    """The same noisy tables under a schema with and without rules."""
    release = estimator.release_
    return dataclasses.replace(release, public={**release.public, "schema": schema.to_dict()})


def assert_conditioned(model: MarkovNetwork, plain: MarkovNetwork) -> None:
    np.testing.assert_allclose(model.marginal(NAMES).values, conditioned(plain.marginal(NAMES).values), atol=1e-9)
    assert_obeyed(model)


def lawful_records(n=20_000) -> pd.DataFrame:
    """From a model that obeys the rules, with the graph of the tables and the rules: it can be fitted exactly."""
    sizes = PLAIN.cardinalities
    cliques = Cliques(tuple(NAMES), tuple(sizes[name] for name in NAMES), (*GRAPH.edges,))
    theta = 0.4 * np.random.default_rng(3).normal(size=cliques.n_cells)
    truth = structural_zeros.obeying(LogLinearModel(cliques, theta), SCHEMA.zeros)
    codes = truth.sample(n, np.random.default_rng(4))
    columns = {name: np.array(PLAIN.states[name])[codes[:, k]] for k, name in enumerate(NAMES)}
    return pd.DataFrame(columns)


def measured_error(model: MarkovNetwork, frame: pd.DataFrame) -> float:
    """Of the tables that are released: total variation to the records' own."""
    worst = 0.0
    for u, v in GRAPH.edges:
        exact = pd.crosstab(frame[u], frame[v], normalize=True)
        exact = exact.reindex(index=PLAIN.states[u], columns=PLAIN.states[v], fill_value=0).to_numpy()
        worst = max(worst, 0.5 * np.abs(model.marginal([u, v]).values - exact).sum())
    return worst


def assert_obeyed(model: MarkovNetwork) -> None:
    joint = model.marginal(NAMES).values
    assert not joint[~MASK].any() and model.impossible == SCHEMA.impossible and model.check_model()
    assert obeys(model.sample(3000, 0))
    assert model.get_partition_function() == pytest.approx(1.0)
    found = VariableElimination(model).query(["age", "marital"], show_progress=False)
    table = found.values if found.variables == ["age", "marital"] else found.values.T
    np.testing.assert_allclose(table, joint.sum(axis=(2, 3)), atol=1e-9)
    assert table[0, 1] == table[0, 2] == 0.0
    with_evidence = VariableElimination(model).query(["pregnant"], evidence={"sex": "M"}, show_progress=False)
    assert (with_evidence.values / with_evidence.values.sum()).tolist() == [1.0, 0.0]  # pgmpy leaves out the division


@pytest.mark.parametrize("kind", [CollectiveMAP, NaiveMLE, CollectiveEM])
def test_parameters_of_a_given_graph(kind):
    model = MarkovNetwork(GRAPH)
    estimator = kind(epsilon=5.0, state_names=SCHEMA).fit(model, records())
    assert_obeyed(estimator.model_)
    # The rules are cliques of the model's graph, and of no other.
    assert {*map(frozenset, estimator.model_.edges)} == {*map(frozenset, [*GRAPH.edges, ("pregnant", "age")])}
    assert GRAPH.number_of_edges() == 2
    MarkovNetwork(GRAPH).fit(records(), kind(epsilon=5.0, state_names=SCHEMA)).check_model()


@pytest.mark.parametrize(("kind", "largest"), [(CollectiveMAP, 0.002), (NaiveMLE, 0.002), (CollectiveEM, 0.01)])
def test_what_was_measured_is_what_is_fitted(kind, largest):
    """Without rules in the fit, conditioning moves the tables that were measured: by .009 in this one."""
    frame = lawful_records()
    estimator = kind(epsilon=100.0, state_names=SCHEMA).fit(GRAPH, frame)
    plain = kind().fit_release(GRAPH, same_release(estimator, PLAIN)).model_
    moved = MarkovNetwork.from_log_linear(plain.to_log_linear(), plain, SCHEMA)
    assert measured_error(estimator.model_, frame) < largest
    assert measured_error(moved, frame) > 0.008


def test_the_posterior_is_of_models_that_obey():
    frame = lawful_records(5000)
    estimator = CollectiveMAP(epsilon=5.0, state_names=SCHEMA).fit(GRAPH, frame)
    table = estimator.posterior(n_draws=60, random_state=0).interval(["sex", "pregnant"], level=0.9)
    lower, upper = table["lower"].ravel(), table["upper"].ravel()
    exact = pd.crosstab(frame["sex"], frame["pregnant"], normalize=True).reindex(columns=["no", "yes"]).to_numpy()
    assert upper[-1] == 0.0
    np.testing.assert_allclose(table["estimate"].ravel(), exact.ravel(), atol=0.03)
    assert (upper - lower).max() < 0.08
    large = sample_posterior(
        estimator._noisy(estimator.release_, estimator.model_),
        estimator._fit,
        np.random.default_rng(0),
        n_draws=20,
        dense_limit=1,
    )
    np.testing.assert_allclose(large.obeying(SCHEMA.zeros).query(["sex", "pregnant"]).mean(axis=0), exact, atol=0.03)


@pytest.mark.parametrize("kind", [PrivateNetwork, PrivateChowLiu])
def test_structures(kind):
    estimator = kind(epsilon=5.0, state_names=SCHEMA).fit(records())
    plain = kind().fit_release(same_release(estimator, PLAIN))
    assert_obeyed(estimator.model_)
    assert obeys(estimator.sample(500, 1))
    assert {*map(frozenset, estimator.graph_.edges)} == {*map(frozenset, plain.graph_.edges)}


def test_a_field():
    estimator = PrivatePairwise(epsilon=5.0, width=2.0, state_names=SCHEMA).fit(records())
    plain = PrivatePairwise(width=2.0).fit_release(same_release(estimator, PLAIN))
    assert_conditioned(estimator.model_, plain.model_)


def test_rules_may_be_said_after_the_release():
    estimator = CollectiveMAP(epsilon=5.0, state_names=PLAIN).fit(GRAPH, records())
    again = CollectiveMAP(state_names=SCHEMA).fit_release(GRAPH, estimator.release_)
    assert_obeyed(again.model_)
    with_rules = CollectiveMAP(state_names=SCHEMA).fit_release(GRAPH, same_release(estimator, SCHEMA))
    np.testing.assert_array_equal(again.model_.marginal(NAMES).values, with_rules.model_.marginal(NAMES).values)
    assert again.posterior(n_draws=19).interval(["age", "marital"])["upper"].ravel()[1] == 0.0


def test_private_gradients():
    estimator = PrivateSGD(epsilon=5.0, delta=1e-6, n_steps=20, state_names=SCHEMA).fit(GRAPH, records())
    plain = PrivateSGD(epsilon=5.0, delta=1e-6).fit_release(GRAPH, same_release(estimator, PLAIN))
    assert_conditioned(estimator.model_, plain.model_)


def test_loopy_inference():
    ring, frame = nx.cycle_graph(NAMES), lawful_records()
    estimator = CollectiveMAP(epsilon=500.0, state_names=SCHEMA, inference="loopy").fit(ring, frame)
    model = estimator.model_
    assert model.marginal(["age", "marital"]).values[0, 1:].tolist() == [0.0, 0.0]
    assert model.marginal(["sex", "pregnant"]).values[1, 1] == model.marginal(["age", "pregnant"]).values[0, 1] == 0.0
    assert obeys(model.sample(200, 0))
    for u, v in GRAPH.edges:
        exact = pd.crosstab(frame[u], frame[v], normalize=True)
        exact = exact.reindex(index=PLAIN.states[u], columns=PLAIN.states[v], fill_value=0).to_numpy()
        np.testing.assert_allclose(model.marginal([u, v]).values, exact, atol=0.01)
    exact = model.copy()
    exact.inference = "exact"
    assert obeys(exact.sample(1000, 0))


def test_files_and_copies_keep_the_rules(tmp_path):
    estimator = learn(records(), Budget(epsilon=2.0), SCHEMA)
    estimator.model_.save(tmp_path / "model.npz")
    estimator.release_.save(tmp_path / "release.npz")
    refitted = PrivateNetwork().fit_release(Release.load(tmp_path / "release.npz"))
    for model in (MarkovNetwork.load(tmp_path / "model.npz"), estimator.model_.copy(), refitted.model_):
        assert model.impossible == SCHEMA.impossible
        assert not model.marginal(NAMES).values[~MASK].any() and obeys(model.sample(500, 0))
    UAIWriter(estimator.model_.rescaled()).write(str(tmp_path / "model.uai"))
    again = UAIReader(str(tmp_path / "model.uai")).get_model()
    assert len(again.factors) == len(estimator.model_.factors)


def test_intervals_obey_the_rules():
    estimator = CollectiveMAP(epsilon=5.0, state_names=SCHEMA).fit(GRAPH, records())
    posterior = estimator.posterior(n_draws=30, random_state=0)
    estimator.model_.posterior = posterior
    answer = estimator.model_.ask(["age", "marital"])
    table = answer.to_frame().set_index(["age", "marital"])
    assert table.loc[("[0,15)", "married"), ["probability", "lower", "upper"]].tolist() == [0.0, 0.0, 0.0]
    assert table.loc[("[15,40)", "married"), "lower"] > 0
    assert all(obeys(frame) for frame in posterior.sample(300, n_sets=2, random_state=0))
    with pytest.raises(ImpossibleEvidence):
        posterior.interval(["age"], {"sex": "M", "pregnant": "yes"})


def test_rules_of_variables_that_are_left_out_are_left_out():
    graph = nx.Graph([("age", "sex")])
    model = CollectiveMAP(epsilon=5.0, state_names=SCHEMA).fit(graph, records()).model_
    assert model.impossible == () and (model.marginal(["age", "sex"]).values > 0).all()


def test_noise_that_says_that_only_the_impossible_happens_breaks_nothing():
    """All records are impossible; the model is what remains of it on what is possible."""
    frame = pd.DataFrame({"a": [0] * 500, "b": [0] * 500})
    schema = Schema({"a": [0, 1], "b": [0, 1]}, impossible=["a = 0 & b = 0"])
    for kind in (CollectiveMAP, NaiveMLE, CollectiveEM):
        estimator = kind(epsilon=50.0, state_names=schema).fit(nx.Graph([("a", "b")]), frame)
        joint = estimator.model_.marginal(["a", "b"]).values
        assert joint[0, 0] == 0.0 and joint.sum() == pytest.approx(1.0)
        assert (estimator.sample(10) if hasattr(estimator, "sample") else estimator.model_.sample(10)).shape == (10, 2)


WIDE = {f"x{i}": [*range(10)] for i in range(12)}
TOO_WIDE = Schema(WIDE, impossible=[dict.fromkeys(WIDE, 0)])


@pytest.mark.parametrize(
    ("estimator", "graph"),
    [
        (CollectiveMAP(epsilon=1.0, state_names=TOO_WIDE), nx.path_graph([*WIDE])),
        (CollectiveMAP(epsilon=1.0, state_names=TOO_WIDE, inference="auto"), nx.path_graph([*WIDE])),
        (PrivateNetwork(epsilon=1.0, state_names=TOO_WIDE), None),
        (PrivateChowLiu(epsilon=1.0, state_names=TOO_WIDE), None),
    ],
)
def test_tables_that_are_too_large_cost_nothing(estimator, graph):
    table = PrivateTable(pd.DataFrame(columns=[*WIDE]), TOO_WIDE, ledger=Ledger(Budget(epsilon=1.0)))
    estimator.set_params(state_names=None)
    with pytest.raises(ValueError, match=r"exact inference needs|rules \(impossible\) need a clique"):
        estimator.fit(table) if graph is None else estimator.fit(graph, table)
    assert not table.ledger.entries


def test_a_tree_whose_model_is_too_large_is_not_lost(monkeypatch):
    def too_large(*_):
        raise InferenceTooLarge("too large")

    estimator = PrivateChowLiu(epsilon=5.0, state_names=SCHEMA)
    monkeypatch.setattr(structural_zeros, "require_inference", too_large)
    with pytest.raises(InferenceTooLarge) as failed:
        estimator.fit(records())
    monkeypatch.undo()
    assert estimator.fit_release(failed.value.release).model_.impossible == SCHEMA.impossible


def test_what_a_search_may_choose_leaves_room_for_the_rules():
    names = [f"x{i}" for i in range(5)]
    rules = [{u: 0, v: 0} for u, v in itertools.pairwise(names)]
    schema = Schema({name: [0, 1, 2] for name in names}, impossible=rules)
    rng = np.random.default_rng(0)
    base = rng.integers(0, 3, 3000)
    frame = pd.DataFrame({name: np.where(rng.random(3000) < 0.8, base, rng.integers(0, 3, 3000)) for name in names})
    estimator = PrivateNetwork(epsilon=20.0, state_names=schema, max_clique_cells=27, random_state=0)
    with pytest.warns(UserWarning, match="random_state"):
        model = estimator.fit(frame).model_
    tree = model.to_junction_tree()
    assert max(np.prod([3] * len(clique)) for clique in tree.nodes) <= 27
    assert len(estimator.graph_.edges) > 3


def test_a_preview_knows_of_rules():
    found = preview(SCHEMA, GRAPH, Budget(epsilon=5.0), 100_000, n_simulations=2, random_state=0)
    plain = preview(PLAIN, GRAPH, Budget(epsilon=5.0), 100_000, n_simulations=2, random_state=0)
    assert found.inference.cells > plain.inference.cells
    assert found.expected_total_variation < 0.05


def test_the_limit_of_memory_is_that_of_the_model_with_rules():
    layout = Cliques.from_graph(GRAPH, PLAIN.cardinalities)
    limit = inference_size(layout).memory_bytes
    assert limit < inference_size(with_zeros(layout, SCHEMA.zeros)).memory_bytes
    with pytest.raises(InferenceTooLarge):
        CollectiveMAP(epsilon=1.0, state_names=SCHEMA, memory_limit=limit).fit(GRAPH, records())
    CollectiveMAP(epsilon=1.0, state_names=PLAIN, memory_limit=limit).fit(GRAPH, records())


def stays(n: int = 4000) -> tuple[pd.DataFrame, Schema]:
    rng = np.random.default_rng(5)
    first = rng.integers(0, 300, n)
    nights = rng.geometric(0.25, n) - 1
    begin = np.datetime64("2024-01-01")
    frame = pd.DataFrame({"checkin": begin + first, "checkout": begin + first + nights, "late": nights > 3})
    day = Date("2024-01-01", "2024-12-31", missing="drop")
    schema = Schema({"checkin": day, "checkout": day, "late": [False, True]}, impossible=["checkin <= checkout"])
    return frame, schema


def nights_of(frame: pd.DataFrame) -> np.ndarray:
    return (frame["checkout"] - frame["checkin"]).dt.days.to_numpy()


def test_no_stay_ends_before_it_begins_and_nights_have_the_law_of_the_records(tmp_path):
    """With a budget that hides little: of cells of both ends alone, the mean would be 20 nights and not 3."""
    frame, schema = stays()
    estimator = PrivateNetwork(epsilon=8.0, delta=1e-9, state_names=schema).fit(frame)
    model, nights = estimator.model_, nights_of(frame)
    drawn = nights_of(model.sample(4000, 0))
    assert drawn.min() == 0
    assert (drawn == 0).mean() == pytest.approx((nights == 0).mean(), abs=0.03)
    assert drawn.mean() == pytest.approx(nights.mean(), rel=0.1)
    assert drawn.std() == pytest.approx(nights.std(), rel=0.25)
    assert list(model.sample(3)) == ["checkin", "checkout", "late"]
    # A stay of more than three nights is late: what goes with the difference is learned.
    late = model.sample(2000, 1, evidence={"late": True})
    assert nights_of(late).mean() == pytest.approx(nights[nights > 3].mean(), rel=0.15)
    assert model.ask("checkout - checkin").numbers["mean"].value == pytest.approx(nights.mean(), rel=0.1)
    day = model.sample(500, 2, evidence={"checkout": "2024-05-05", "late": False})
    assert set(day["checkout"]) == {pd.Timestamp("2024-05-05")}
    assert (nights_of(day) >= 0).all()
    # Files keep it, and what is learned again from the release.
    model.save(tmp_path / "model.npz")
    assert nights_of(MarkovNetwork.load(tmp_path / "model.npz").sample(500, 3)).min() >= 0
    again = PrivateNetwork(state_names=schema).fit_release(estimator.release_)
    np.testing.assert_allclose(again.model_.marginal(["checkin", "checkout"]).values.sum(), 1.0)
    drawn = estimator.posterior(2, random_state=0)
    table = drawn.interval(["checkin", "checkout"])["upper"]
    assert (table[np.triu(np.ones_like(table, dtype=bool)) == 0] >= 0).all()


def test_a_workload_that_names_both_ends_is_about_their_difference_too():
    frame, schema = stays()
    options = {"epsilon": 8.0, "delta": 1e-9, "state_names": schema, "workload": [("checkin", "checkout")]}
    release = PrivateNetwork(**options).fit(frame).release_
    measured = {frozenset(scope) for scope in release.scopes if len(scope) > 1}
    assert measured and all("checkout - checkin" in scope and "late" not in scope for scope in measured)


def test_without_a_difference_the_rule_is_obeyed_too():
    frame, schema = stays()
    estimator = CollectiveMAP(epsilon=5.0, state_names=schema).fit(nx.Graph([("checkin", "checkout")]), frame)
    assert estimator.model_.schema.variables == ("checkin", "checkout")
    assert nights_of(estimator.model_.sample(3000, 0)).min() >= 0
    plain = schema.replaced({}, [])
    release = PrivateNetwork(epsilon=5.0, delta=1e-9, state_names=plain).fit(frame).release_
    assert nights_of(PrivateNetwork(state_names=schema).fit_release(release).sample(2000, 0)).min() >= 0


def test_records_that_break_it_are_counted_and_checked():
    frame, schema = stays()
    broken = frame.assign(checkout=frame["checkout"].where(np.arange(len(frame)) >= 1000, pd.Timestamp("2024-01-01")))
    result = check(broken, Budget(epsilon=2.0), schema, random_state=0)
    n = int((broken["checkout"] < broken["checkin"]).sum())
    assert result.n_matching == pytest.approx(4000, abs=40)
    assert 4000 - result.table.loc["checkout - checkin", "matched"] == pytest.approx(n, abs=40)
    assert "records break the rules about it" in str(result)
    estimator = PrivateNetwork(epsilon=5.0, delta=1e-9, state_names=schema).fit(broken)
    assert estimator.n_records_ == pytest.approx(4000, abs=60)
    assert nights_of(estimator.sample(2000, 0)).min() >= 0

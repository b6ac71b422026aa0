"""Models of numbers and days: what is drawn from them, asked of them, and kept in their files."""

import itertools
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import MarkovNetwork
from pgmpy_dp.estimators import CollectiveMAP, PrivateMarkovChain, PrivateNetwork
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import ImpossibleEvidence
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.private.reading.frames import encode
from pgmpy_dp.schema import Date, Number, Schema

SCHEMA = Schema(
    {
        "born": Date("1999-12-27", "2000-01-05", cuts=["2000-01-01"], format="%d.%m.%Y", missing="drop"),
        "sex": ["F", "M", None],
        "age": Number(0, 11, cuts=[4, 6], resolution=1),
        "score": Number(0.0, 1.0, bins=2),
        "children": Number(0, 5, cuts=[1], resolution=1, missing="drop", outside="state"),
        "height": Number(1, 2, cuts=[1.5], resolution=0.1, missing="drop"),
    },
    missing={"age": [-9]},
)
ORDER = ("age", "height", "sex", "born", "children", "score")  # of the nodes
EDGES = [("age", "sex"), ("born", "sex"), ("age", "born"), ("children", "age"), ("score", "children")]


def network(schema=SCHEMA):
    sizes = schema.cardinalities
    cliques = Cliques(ORDER, tuple(sizes[name] for name in ORDER), (*EDGES, ("height",)))
    theta = np.random.default_rng(0).normal(size=cliques.n_cells)
    graph = nx.Graph()
    graph.add_nodes_from(ORDER)
    graph.add_edges_from(EDGES)
    return MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), graph, schema)


def test_samples_have_the_types_and_the_order_of_the_schema():
    frame = network().sample(2000, random_state=0)
    assert list(frame) == list(SCHEMA)
    types = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert types == {
        "born": "datetime64[s]",
        "sex": "object",
        "age": "Int64",
        "score": "float64",
        "children": "Int64",
        "height": "float64",
    }
    assert set(frame["age"].dropna()) == {*range(12)}
    assert set(frame["children"].dropna()) == {*range(6)}
    assert set(frame["height"]) == {1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2}
    assert set(frame["born"]) == set(pd.date_range("1999-12-27", "2000-01-05"))
    assert frame["score"].between(0, 1).sum() == frame["score"].notna().sum() < 2000
    assert frame["age"].isna().any()
    whole = Schema({"a": Number(0, 3, cuts=[1], resolution=1, missing="drop"), "b": ["x", "y"]})
    model = LogLinearModel(Cliques(("a", "b"), (2, 2), (("a", "b"),)), np.zeros(4))
    drawn = MarkovNetwork.from_log_linear(model, nx.Graph([("a", "b")]), whole).sample(9, random_state=0)
    assert str(drawn["a"].dtype) == "int64"
    assert [str(kind) for kind in network().sample(0).dtypes] == list(types.values())


def test_what_is_drawn_is_read_back_as_the_states_that_were_drawn():
    model = network()
    values, labels = model.sample(500, random_state=3), model.sample(500, random_state=3, labels=True)
    assert list(labels) == list(SCHEMA)
    assert set(labels["age"]) == {"[0,4)", "[4,6)", "[6,11]", None}
    kept = labels["children"] != "outside"  # of which no number is known
    positions = {name: {state: k for k, state in enumerate(SCHEMA.states[name])} for name in SCHEMA}
    expected = [[positions[name][row[name]] for name in SCHEMA] for row in labels[kept].to_dict("records")]
    np.testing.assert_array_equal(encode(values[kept], SCHEMA), expected)
    assert values["children"][~kept].isna().all()


def test_numbers_come_from_a_stream_of_their_own():
    plain = Schema({name: SCHEMA.states[name] for name in SCHEMA}, texts=SCHEMA)
    first, second = np.random.default_rng(7), np.random.default_rng(7)
    labels = network(plain).sample(100, first)
    drawn = network().sample(100, second)
    pd.testing.assert_series_equal(labels["sex"], drawn["sex"])
    pd.testing.assert_frame_equal(labels, network().sample(100, 7, labels=True))
    assert first.random() == second.random()
    # And it goes on: a second set of records has other numbers.
    assert not network().sample(100, second).equals(drawn)
    pd.testing.assert_frame_equal(network().sample(100, 7), drawn)


def test_values_within_merged_states_are_drawn_and_asked_for_by_their_weights(tmp_path):
    model = network()
    fine = Number(0, 11, resolution=1).fine()
    model.within["age"] = Values(fine, np.repeat([0, 1, 2, 3], [4, 2, 6, 1]), np.eye(13)[2] + np.eye(13)[5])
    model.within["sex"] = Values(("f", "v", "M", None), np.array([0, 0, 1, 2]), np.array([0.0, 1, 1, 1]))
    model.save(tmp_path / "model.npz")
    for again in (model, model.copy(), MarkovNetwork.load(tmp_path / "model.npz")):
        frame = again.sample(300, random_state=0)
        assert set(frame["age"].dropna()) == {2, 5, *range(6, 12)}  # no weight in the last: uniform
        assert set(frame["sex"]) == {"v", "M", None}
        assert again.probability({"age": 2}) == pytest.approx(again.marginal("age").values[0])
        assert again.counted({"age": (2, 4)})["age"].likely.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("method", ["stratified", "independent"])
@pytest.mark.parametrize(
    ("evidence", "holds"),
    [
        ({"sex": "M"}, lambda f: f["sex"] == "M"),
        ({"sex": None}, lambda f: f["sex"].isna()),
        ({"age": 5}, lambda f: f["age"] == 5),
        ({"age": (2, 7)}, lambda f: f["age"].between(2, 7)),
        (
            {"age": pd.Interval(2, 7, closed="neither"), "sex": "F"},
            lambda f: f["age"].between(3, 6) & (f["sex"] == "F"),
        ),
        ({"age": None}, lambda f: f["age"].isna()),
        ({"age": "[4,6)"}, lambda f: f["age"].between(4, 5)),
        ({"score": "0.25:0.75"}, lambda f: f["score"].between(0.25, 0.75)),
        ({"score": 0.3}, lambda f: f["score"] == 0.3),
        ({"height": (1.15, 1.6)}, lambda f: f["height"].isin([1.2, 1.3, 1.4, 1.5, 1.6])),
        ({"born": "30.12.1999:02.01.2000"}, lambda f: f["born"].between("1999-12-30", "2000-01-02")),
        ({"children": "outside"}, lambda f: f["children"].isna()),
        ({"children": 99}, lambda f: f["children"].isna()),  # which counts as "outside"
        ({"children": 3, "age": (4, None)}, lambda f: (f["children"] == 3) & (f["age"] >= 4)),
        ({"age": {(1, 2), (5, 9), 10}}, lambda f: f["age"].isin([1, 2, *range(5, 11)])),
        ({"age": "1:2|7", "sex": "F|M"}, lambda f: f["age"].isin([1, 2, 7]) & f["sex"].notna()),
        ({"score": {0.25, 0.75}}, lambda f: f["score"].isin([0.25, 0.75])),
        ({"height": {"1.1:1.2": 0.2, "1.6:1.7": 0.8}}, lambda f: f["height"].isin([1.1, 1.2, 1.6, 1.7])),
        ({"born": {"28.12.1999", "30.12.1999:02.01.2000"}}, lambda f: f["born"].dt.day.isin([28, 30, 31, 1, 2])),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "holds",  # sets have no order of their own
)
def test_samples_given_evidence_are_of_those_of_whom_it_holds(evidence, holds, method):
    model, n = network(), 2000
    frame = model.sample(n, 0, evidence=evidence, method=method)
    assert len(frame) == n and holds(frame).all()
    assert frame.dtypes.equals(model.sample(5, 0).dtypes)
    labels = model.sample(n, 0, labels=True, evidence=evidence, method=method)
    asked = [name for name in ("sex", "age", "born", "height") if name not in evidence][:2]
    table = model.query(asked, evidence).values
    codes = [labels[name].map(SCHEMA.states[name].index).to_numpy() for name in asked]
    found = np.zeros(table.shape)
    np.add.at(found, tuple(codes), 1 / n)
    np.testing.assert_array_less(np.abs(found - table), 5.5 * np.sqrt(table * (1 - table) / n) + 1 / n)


def test_a_range_is_drawn_by_its_values_and_a_cell_by_its_weights():
    model = network()
    drawn = model.sample(3000, 0, evidence={"age": (2, 7)})["age"]
    table = model.marginal("age").values
    weights = np.array([table[0] / 4] * 2 + [table[1] / 2] * 2 + [table[2] / 6] * 2)
    np.testing.assert_allclose(drawn.value_counts().sort_index(), 3000 * weights / weights.sum(), atol=3)
    fine = Number(0, 11, resolution=1).fine()
    model.within["age"] = Values(fine, np.repeat([0, 1, 2, 3], [4, 2, 6, 1]), np.arange(13.0))
    drawn = model.sample(3000, 0, evidence={"age": (2, 7)})["age"]
    weights = np.array([*(table[0] * np.arange(2, 4) / 6), *(table[1] * np.arange(4, 6) / 9)])
    weights = np.append(weights, table[2] * np.arange(6, 8) / np.arange(6, 12).sum())
    np.testing.assert_allclose(drawn.value_counts().sort_index(), 3000 * weights / weights.sum(), atol=3)


def test_evidence_of_all_variables_and_of_what_cannot_be():
    model = network()
    known = {"born": "2000-01-02", "sex": "F", "age": 5, "score": 0.25, "children": 0, "height": 1.2}
    assert model.sample(3, evidence=known).astype(str).drop_duplicates().iloc[0].tolist() == [
        "2000-01-02", "F", "5", "0.25", "0", "1.2",
    ]  # fmt: skip
    for wrong in ({"age": 12}, {"weight": 1}, {"age": (7, 2)}, {"sex": "x"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            model.sample(3, evidence=wrong)
    ruled = network(Schema(dict(SCHEMA), impossible=["age < 4 -> sex = F"]))
    assert set(ruled.sample(200, 0, evidence={"age": (0, 4)}, labels=True).query("age == '[0,4)'")["sex"]) == {
        "F",
        None,
    }
    for impossible in ({"age": 2, "sex": "M"}, {**known, "age": 3, "sex": "M"}):
        with pytest.raises(ImpossibleEvidence):
            ruled.sample(3, evidence=impossible)


def joint(model, names):
    """Probability of each combination of values, missing and outside as None and "outside"."""
    found = {}
    table = model.marginal(list(names)).values
    for codes in itertools.product(*(range(k) for k in table.shape)):
        options = []
        for name, code in zip(names, codes, strict=True):
            number = SCHEMA[name]
            steps = range(round((number.upper - number.lower) / number.resolution) + 1)
            in_cell = number.coder()
            values = [round(number.lower + k * number.resolution, 9) for k in steps]
            inside = [v for v in values if sum(v >= e for e in number.edges[1:-1]) == code]
            options.append(inside if code < len(number.cells) else [number.states[code]])
            assert all(in_cell(("number", v)) == code for v in inside) or number.kind == "date"
        for values in itertools.product(*options):
            found[values] = table[codes] / np.prod([len(o) for o in options])
    return found


@pytest.mark.parametrize("seed", [pytest.param(k, marks=[pytest.mark.slow] * (k > 2)) for k in range(8)])
def test_queries_with_ranges_are_sums_over_values(seed):
    model, rng = network(), np.random.default_rng(seed)
    names = ("age", "children", "born", "height")
    everything = joint(model, names)
    epoch = SCHEMA["born"].lower
    age = tuple(sorted(rng.integers(0, 12, 2).tolist()))
    day = sorted(rng.integers(0, 10, 2).tolist())
    given = {"age": age, "born": tuple((pd.Timestamp("1999-12-27") + pd.Timedelta(days=d)).date() for d in day)}

    def inside(values):
        in_age = values[0] is not None and age[0] <= values[0] <= age[1]
        return in_age and epoch + day[0] <= values[2] <= epoch + day[1]

    total = sum(p for values, p in everything.items() if inside(values))
    assert model.probability(given) == pytest.approx(total)
    for event, holds in [
        ({"children": (2, 4)}, lambda v: isinstance(v[1], float | int) and 2 <= v[1] <= 4),
        ({"children": "outside"}, lambda v: v[1] == "outside"),
        ({"children": 3, "height": "1.2:1.65"}, lambda v: v[1] == 3 and 1.2 <= v[3] <= 1.65),
    ]:
        expected = sum(p for values, p in everything.items() if inside(values) and holds(values)) / total
        assert model.probability(event, given) == pytest.approx(expected)
    told = model.ask("children", given, quantiles=[0.3]).numbers
    known = {v: p for v, p in everything.items() if inside(v) and v[1] != "outside"}
    assert told["mean"].value == pytest.approx(sum(v[1] * p for v, p in known.items()) / sum(known.values()))
    below = [sum(p for v, p in known.items() if v[1] <= k) / sum(known.values()) for k in range(6)]
    assert told[0.3].value == np.argmax(np.array(below) >= 0.3)


def test_a_range_may_be_asked_about_within_another():
    model = network()
    values = {v[0]: p for v, p in joint(model, ["age"]).items() if v[0] is not None}
    among = sum(p for v, p in values.items() if 1 <= v <= 8)
    within = sum(p for v, p in values.items() if 3 <= v <= 7)
    assert model.probability({"age": (3, 7)}, {"age": (1, 8)}) == pytest.approx(within / among)
    expected = sum(v * p for v, p in values.items() if 1 <= v <= 8) / among
    assert model.ask("age", {"age": (1, 8)}).numbers["mean"].value == pytest.approx(expected)


def test_a_value_is_known_as_the_state_it_is_in():
    model = network()
    expected = model.query(["sex"], {"age": "[4,6)"}).values
    for given in (4, "5", 5.5, (4, 5), pd.Interval(4, 6, closed="left")):
        np.testing.assert_allclose(model.query("sex", {"age": given}).values, expected)
    np.testing.assert_allclose(model.query("sex", {"age": -9}).values, model.query("sex", {"age": None}).values)
    assert model.query("sex").state_names == {"sex": ["F", "M", None]}
    answer = model.ask("born")
    assert answer.numbers["mean"].value < (pd.Timestamp("2000-01-06") - pd.Timestamp(0)).days
    assert answer.to_dict()["summary"]["mean"] == "2000-01-01" and "missing: mean 2000-01-01, " in str(answer)


def test_bad_queries():
    model = network()
    for evidence in ({"age": 12}, {"age": (3, 12)}, {"age": "old"}, {"weight": 3}):
        with pytest.raises(ValueError, match=r"'age' is given|must name nodes"):
            model.query("sex", evidence)
    with pytest.raises(ValueError, match="both have"):
        model.query(["sex", "age"], {"age": 3})
    assert not model.ask("sex").numbers
    with pytest.raises(ValueError, match="from 0 to 1"):
        model.ask("age", quantiles=[50])


@pytest.mark.parametrize("evidence", [{"a": 0, "b": 0}, {"a": 0, "b": (0, 1)}, {"b": (0, 1), "a": (0, 1)}])
def test_what_is_impossible_in_the_model_is_refused(evidence):
    number = Number(0, 8, bins=4, resolution=1, missing="drop")
    table = np.ones((4, 4))
    table[:2, :2] = 0
    with np.errstate(divide="ignore"):
        joint = LogLinearModel(
            Cliques(("a", "b", "c"), (4, 4, 2), (("a", "b"), ("b", "c"))), np.log([*table.ravel(), *np.ones(8)])
        )
    model = MarkovNetwork.from_log_linear(
        joint, nx.Graph([("a", "b"), ("b", "c")]), {"a": number, "b": number, "c": [0, 1]}
    )
    # The factors of a fit are positive: such zeros are set by hand.
    for factor in model.factors:
        if set(factor.variables) == {"a", "b"}:
            factor.values = table
    with pytest.raises(ValueError, match="probability 0"):
        model.query("c", evidence)


def test_files_and_pickles_keep_the_schema(tmp_path):
    model = network()
    model.save(tmp_path / "model.npz")
    for again in (MarkovNetwork.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model)), model.rescaled()):
        assert again.schema == SCHEMA
        pd.testing.assert_frame_equal(again.sample(50, 0), model.sample(50, 0))
        np.testing.assert_array_equal(again.counted({"age": -9})["age"].likely, [0, 0, 0, 1])


def test_a_model_whose_states_were_changed_has_no_numbers():
    model = network()
    named = {name: list(states) for name, states in model.states.items()} | {"age": ["a", "b", "c", "d"]}
    for factor in model.factors:
        factor.store_state_names(factor.variables, factor.cardinality, {name: named[name] for name in factor.variables})
    assert not model.numbers
    assert set(model.sample(100, 0)["age"]) == {"a", "b", "c", "d"}


def test_log_likelihood_reads_numbers():
    model = network()
    frame, labels = model.sample(200, 0), model.sample(200, 0, labels=True)
    kept = labels["children"] != "outside"
    assert model.log_likelihood(frame[kept]) == pytest.approx(model.log_likelihood(labels[kept]))
    assert np.isfinite(model.log_likelihood(labels[kept]))


SMALL = Schema({"age": Number(0, 99, cuts=[50], resolution=1, missing="drop"), "sex": ["F", "M"], "job": ["a", "b"]})


def records(n):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"job": rng.choice(["a", "b"], n), "sex": rng.choice(["F", "M"], n), "age": rng.integers(0, 100, n)}
    )


def test_a_fit_gives_numbers_in_the_schema_s_order():
    graph = nx.Graph([("sex", "age")])
    fitted = CollectiveMAP(1.0, state_names=SMALL, random_state=0).fit(graph, records(500))
    assert list(fitted.model_.sample(5)) == ["age", "sex"]
    assert str(fitted.model_.sample(5)["age"].dtype) == "int64"
    own = MarkovNetwork([("sex", "age")]).fit(records(500), CollectiveMAP(1.0, state_names=SMALL))
    assert own.schema == fitted.model_.schema
    learned = PrivateNetwork(1.0, state_names=SMALL, random_state=0).fit(records(500))
    assert list(learned.sample(5)) == ["age", "sex", "job"]
    assert set(learned.sample(500, labels=True)["age"]) == {"[0,50)", "[50,99]"}
    (drawn,) = fitted.posterior(n_draws=20, random_state=0).sample(5, 1)
    assert str(drawn["age"].dtype) == "int64"


def test_posterior_intervals_take_numbers():
    fitted = CollectiveMAP(1.0, state_names=SMALL, random_state=0).fit(nx.Graph([("sex", "age")]), records(500))
    posterior = fitted.posterior(n_draws=200, random_state=0)
    np.testing.assert_equal(posterior.interval(["sex"], {"age": 70}), posterior.interval(["sex"], {"age": "[50,99]"}))
    with pytest.raises(ValueError, match="outside the bounds"):
        posterior.interval(["sex"], {"age": 100})


def test_sequences_of_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (200, 4)))
    schema = {"level": Number(0, 9, cuts=[5], resolution=1, missing="drop")}
    frame = pd.DataFrame(
        {"user": np.repeat(range(200), 4), "time": np.tile(range(4), 200), "level": frame.to_numpy().ravel()}
    )
    chain = PrivateMarkovChain(1.0, state_names=schema, unit="user", sequence="user", order="time", random_state=0).fit(
        frame
    )
    drawn, labels = chain.sample(300, 3, 0), chain.sample(300, 3, 0, labels=True)
    assert [str(kind) for kind in drawn.dtypes] == ["int64"] * 3
    np.testing.assert_array_equal(drawn >= 5, labels == "[5,9]")
    assert set(chain.to_markov_network(2).sample(300)["level", 0]) == {*range(10)}

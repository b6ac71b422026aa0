"""Curators count in fewer states: the same in memory and in engines, for states that were merged in public."""

from fractions import Fraction
from functools import partial

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pgmpy_dp import Budget, Number, PrivateTable, Schema
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.estimators import (
    CollectiveMAP,
    NaiveMLE,
    PrivateChowLiu,
    PrivateIsing,
    PrivateNetwork,
    PrivatePairwise,
    PrivateSGD,
)
from pgmpy_dp.fields.operators.parities import WorstParity
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.learning import fine_grids, merging
from pgmpy_dp.learning.merging import merged_cells
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.tables.networks import adaptive_search
from tests.settings import settings

network_settings = partial(settings, PrivateNetwork)

SCHEMA = Schema({"x": Number(-4, 60, spikes=()), "y": ["a", "b", "c"], "z": Number(0, 9, resolution=1, missing="drop")})
N = 400


def records(seed=0, n=N):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 61, n)
    return pd.DataFrame({"x": x, "y": rng.choice(["a", "b", "c"], n), "z": np.minimum(x // 6, 9)})


def curated(data, rho=1e6):
    table = PrivateTable(data, SCHEMA, ledger=Budget(rho=rho))
    return TableCurator(table, Budget(rho=rho), what="tables", fine=True)


PLACES = {"x": [*[0] * 32, *[1] * 32, 2], "z": [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]}
MERGED = SCHEMA.replaced({"x": Number(-4, 60, bins=2), "z": SCHEMA.numbers["z"].with_cuts([3, 7])})


@pytest.mark.parametrize("in_engine", [False, True])
def test_merged_tables_are_sums_of_fine_ones(in_engine):
    frame = records()
    curator = curated(duckdb.from_df(frame) if in_engine else frame)
    scopes = [("x", "z"), ("y", "x"), ("z",)]
    fine = curator.ask(Tables(scopes), Fraction(1, 2))
    assert [table.shape for table in fine] == [(65, 10), (3, 65), (10,)]
    curator.merge(MERGED, PLACES)
    merged = curator.ask(Tables(scopes), Fraction(1, 4))
    for scope, table, before in zip(scopes, merged, fine, strict=True):
        # At rho = 1e6 the noise of a cell is below 1e-2: none.
        assert table.tolist() == merged_cells(before, [PLACES.get(name) for name in scope]).tolist()
    release = curator.release("marginals", {})
    assert release.schema == MERGED and release.public["fine"]["tables"] == 3
    values, cells = fine_grids.merged_values(release)
    assert [v.shape for v in values[:3]] == [v.shape for v in values[3:]] and cells[0].sum() == 650


def test_parities_are_of_merged_records_whatever_was_asked_before():
    data = pd.DataFrame({"a": [0] * 50, "b": [0, 1] * 25})
    table = PrivateTable(data, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=1e6))
    curator = TableCurator(table, Budget(rho=1e6), what="parities")
    single = [(0,), (1,)]
    before = curator.ask(WorstParity(single, [0, 0], signed=True), Fraction(1, 4))
    curator.merge(Schema({"a": [0, 1], "b": [0, 1]}), {"a": [1, 0]})
    assert {before, curator.ask(WorstParity(single, [0, 0], signed=True), Fraction(1, 4))} == {0, 2}


def test_parts_of_merged_records_are_merged():
    curator = curated(records())
    curator.merge(MERGED, PLACES)
    with curator.split(2) as parts:
        tables = [part.ask(Tables([("x",)]), Fraction(1, 2))[0] for part in parts]
    assert sum(table.sum() for table in tables) == N and tables[0].shape == (3,)


@pytest.mark.parametrize(
    ("schema", "places"),
    [
        (MERGED, {**PLACES, "x": [0] * 65}),
        (MERGED, {**PLACES, "x": [0, 1, 2]}),
        (MERGED, {**PLACES, "q": [0]}),
        (MERGED.subset(["x", "y"]), PLACES),
        (SCHEMA.fine(), PLACES),
    ],
)
def test_places_that_lead_elsewhere_are_refused_and_nothing_is_spent(schema, places):
    curator = curated(records(n=5))
    with pytest.raises(ValueError, match=r"places\['|a schema with the same variables"):
        curator.merge(schema, places)
    assert curator.left == 1


@pytest.mark.parametrize("in_engine", [False, True])
def test_merged_states_merge_again_and_a_release_says_each_step(in_engine):
    frame = records()
    curator = curated(duckdb.from_df(frame) if in_engine else frame)
    (fine,) = curator.ask(Tables([("x", "z")]), Fraction(1, 4))
    curator.merge(MERGED, PLACES)
    (middle,) = curator.ask(Tables([("x", "z")]), Fraction(1, 4))
    with pytest.raises(ValueError, match=r"places\['x'\] must say for each of 3 states"):
        curator.merge(MERGED, PLACES)
    again = {"z": [0, 1, 1]}
    curator.merge(MERGED.replaced({"z": SCHEMA.numbers["z"].with_cuts([3])}), again)
    with curator.split(2) as parts:
        halves = [part.ask(Tables([("x", "z")]), Fraction(1, 4))[0] for part in parts]
    (last,) = curator.ask(Tables([("x", "z")]), Fraction(1, 4))
    expected = merged_cells(merged_cells(fine, [PLACES["x"], PLACES["z"]]), [None, again["z"]])
    assert middle.shape == (3, 3) and last.tolist() == expected.tolist() == sum(halves).tolist()
    release = curator.release("marginals", {})
    said = release.public["fine"]
    assert said["tables"] == 2 and said["places"] == [["z", [0, 1, 1]]] and said["fine"]["tables"] == 1
    values, cells = fine_grids.merged_values(release)
    assert sum(values).tolist() == (4 * expected).tolist()  # the halves together are one table
    assert [count.sum() for count in cells] == [65 * 10, 9, 6, 6, 6]


@pytest.mark.parametrize(
    "fit",
    [
        lambda table: PrivateChowLiu(epsilon=1.0).fit(table),
        lambda table: PrivateSGD(epsilon=1.0, delta=1e-6).fit(nx.Graph([("x", "y")]), table),
        lambda table: PrivateIsing(2.0, epsilon=1.0).fit(table),
        lambda table: PrivatePairwise(2.0, epsilon=1.0).fit(table),
    ],
)
def test_learners_that_cannot_merge_say_what_to_pass(fit):
    table = PrivateTable(records(), SCHEMA, ledger=Budget(epsilon=1.0, delta=1e-6))
    with pytest.raises(ValueError, match=r"declares bounds for \['x'.*cuts= or bins="):
        fit(table)
    assert str(table.ledger.spent) == "0-DP"


class TestFits:
    def test_a_network_has_merged_states_and_learns_how_they_lie_within(self):
        estimator = PrivateNetwork(rho=10.0, state_names=SCHEMA, random_state=0).fit(records(n=5000))
        states = estimator.model_.states
        assert 5 < len(states["x"]) <= merging.MOST_BINS + 1 and states["x"][-1] is None and len(states["z"]) == 10
        assert estimator.model_.to_log_linear() is not None
        again = PrivateNetwork(rho=1.0, state_names=SCHEMA).fit_release(estimator.release_)
        assert again.model_.states == states
        # Ten values keep a state each where it would be five or more, and have one table, as states have.
        within = fine_grids.fine_states(estimator.release_)
        assert "x" in within and "z" not in within
        noisier = PrivateNetwork(rho=1e-4, state_names=SCHEMA, random_state=0).fit(records(n=5000))
        assert len(noisier.model_.states["z"]) < 5
        assert noisier.model_.states == PrivateNetwork().fit_release(noisier.release_).model_.states

    def test_totals_are_by_minimum_variance_and_not_by_the_sum_of_all_cells(self):
        release = NaiveMLE(rho=0.02, state_names=SCHEMA, random_state=0).fit(nx.Graph([("x", "y")]), records()).release_
        noisy = noisy_marginals(release, ("x", "y"))
        fine, pair = release.noise
        cells = release.values[1].size
        expected = (1 / (65 * fine.variance) + 1 / (cells * pair.variance)) ** -0.5
        assert noisy.n_records_sd == pytest.approx(expected, rel=1e-6)

    def test_rare_categories_become_one_and_come_back_in_proportion(self):
        frame = pd.DataFrame({"job": ["a"] * 3000 + ["b"] * 8 + ["c"] * 2, "y": ["no", "yes"] * 1505})
        states = {"job": ["a", "b", "c", "d"], "y": ["no", "yes"]}
        # One pair, and measuring it takes most: noise of a cell is about 10 at the first share.
        fitted = PrivateNetwork(rho=0.1, state_names=states, merge_rare=True, n_rounds=8, random_state=0).fit(frame)
        assert fitted.model_.states["job"] == ["a", "rare"]
        values = fine_grids.fine_states(fitted.release_)["job"]
        assert values.finer == ("a", "b", "c", "d") and values.within[0] == 1.0
        assert values.within[1:].sum() == pytest.approx(1.0)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_replay_finds_nothing(self, adjacency):
        many = records(n=60)
        odd = many.assign(x=[*many.x[:-1], 1e300]) if adjacency == "replace_one" else many.iloc[:-1]
        n = 60 if adjacency == "replace_one" else None

        def learn(frame):
            return PrivateNetwork(rho=0.5, state_names=SCHEMA, adjacency=adjacency, n_records=n, n_rounds=2).fit(frame)

        def known(frame):
            graph = nx.Graph([("x", "y"), ("y", "z")])
            return CollectiveMAP(rho=0.5, state_names=SCHEMA, adjacency=adjacency, n_records=n).fit(graph, frame)

        for fit in (learn, known):
            report = replay(fit, many, odd)
            assert report.holds, report
            assert report.movement["tables"] <= 1.0

    def test_replay_sees_cells_that_are_merged_by_the_records(self, monkeypatch):
        merge = TableCurator.merge

        def peeking(self, schema, places):
            counts = np.bincount(self._data._codes[:, 0], minlength=65)
            bins = merging.equal_bins(counts[:64].astype(float), 4)
            number = Number(-4, 60, spikes=()).fine()
            starts = np.flatnonzero(np.diff(bins)) + 1
            cut = schema.replaced({"x": number.with_cuts(number.edges[k] for k in starts)})
            merge(self, cut, {**places, "x": [*bins.tolist(), int(bins[-1]) + 1]})

        monkeypatch.setattr(TableCurator, "merge", peeking)
        many = records(n=20)

        def known(frame):
            return NaiveMLE(rho=0.5, state_names=SCHEMA).fit(nx.Graph([("x", "y")]), frame)

        assert not replay(known, many, many.iloc[1:]).holds


def test_cells_that_rules_need_are_kept_and_counted_beforehand():
    rules = [f"x < {cut} -> z < 5" for cut in (7, 11, 13)]
    schema = Schema({"x": Number(0, 60, resolution=1), "y": ["a", "b"], "z": SCHEMA["z"]}, impossible=rules)
    plain = Schema({name: schema[name] for name in schema})
    largest = fine_grids.largest_sizes
    assert {name: largest(schema)[name] - size for name, size in largest(plain).items()} == {"x": 3, "y": 0, "z": 0}
    frame = records(n=300).assign(y="a")
    estimator = NaiveMLE(rho=0.01, state_names=schema, random_state=0).fit(nx.Graph([("x", "z"), ("y", "z")]), frame)
    cells = estimator.model_.schema.numbers["x"].edges
    assert {7.0, 11.0, 13.0} <= set(cells)
    drawn = estimator.model_.sample(500, 0)
    assert not ((drawn.x < 13) & (drawn.z >= 5)).any()


@pytest.mark.parametrize(
    ("states", "options"),
    [
        (["Rare", "x", "y"], {"casefold": True}),
        ([" rare", "x", "y"], {"strip": True}),
        (["a", "x", "y"], {"missing": ["rare"]}),
        (["a", "x", "y"], {"recode": {"job": {"rare": "a"}}}),
        (["a", "X", "Y"], {"casefold": True, "recode": {"job": {"q": "x"}}}),
        (["a", "1", "2"], {"recode": {"job": {"q": 1}}}),
        (["a", "x", None], {"other": {"job": None}}),
        (["<1", "[1,2)", "[2,3)", ">=3"], {"recode": {"job": {"q": 2.5}}}),
        (["a", "x", "y"], {"impossible": ["b = 1 -> c = 1 & job in {a, x, y}"]}),
    ],
)
def test_rare_states_merge_whatever_the_schema_says_of_cells_and_rules(states, options):
    schema = Schema({"job": states, "b": [0, 1], "c": [0, 1]}, **options)
    counts = {"job": (np.array([90.0, *[0.0] * (len(states) - 1)]), 1.0)}
    merged = merging.merge_states(schema, counts, 2, 10.0, ["job"])
    assert merged.schema.cardinality("job") == (2 if merged.places else len(states))
    assert bool(merged.places) == ("impossible" not in options)


@pytest.mark.parametrize("option", ["missing", "recode"])
def test_a_merged_cell_may_be_spelled_as_a_text_that_is_read_as_another_cell(option):
    said = {"missing": {"x": ["[0,5)"]}, "recode": {"x": {"[0,5)": 9}}}[option]
    schema = Schema({"x": Number(0, 9, resolution=1)}, **{option: said}).fine()
    counts = np.repeat([10.0, 0.0], [10, 1])
    merged = merging.merge_states(schema, {"x": (counts, 1.0)}, 2, 0.0)
    assert merged.schema.states["x"] == ("[0,5)", "[5,9]", None)
    assert merged.schema.coder("x")(("text", "[0,5)")) == {"missing": 2, "recode": 1}[option]


RULED = Schema(
    {"x": Number(0, 99, resolution=1), "y": [0, 1], "z": [0, 1, 2], "w": [0, 1]}, impossible=["x < 5 & y = 1 -> z = 0"]
)


def test_rules_about_numbers_that_merge_are_known_to_be_too_large_before_anything_is_spent():
    frame = pd.DataFrame({"x": np.arange(400) % 100, "y": 0, "z": 1, "w": [0, 1] * 200})
    table = PrivateTable(frame, RULED, ledger=Budget(rho=1.0))
    forbidden = [("x", "y"), ("x", "z"), ("y", "z")]
    with pytest.raises(ValueError, match=r"rules.*max_clique_cells=100"):
        adaptive_search.run(
            table, network_settings(n_rounds=1, max_clique_cells=100, forbidden_edges=forbidden), Budget(rho=1.0)
        )
    graph = nx.Graph([("x", "y"), ("w", "z")])
    with pytest.raises(InferenceTooLarge):
        CollectiveMAP(rho=1.0, memory_limit=8000).fit(graph, table)
    assert table.ledger.spent.rho == 0
    CollectiveMAP(rho=1.0, memory_limit=100_000, random_state=0).fit(graph, table)


def test_rules_add_states_to_those_that_numbers_merge_into():
    rules = [f"x = {k} -> y = {k % 2}" for k in range(0, 99, 2)]
    schema = RULED.replaced({"x": Number(0, 9999, resolution=1)}, rules)
    assert fine_grids.largest_sizes(schema)["x"] >= len(schema.rule_cuts("x")) + 2 > 67


def test_engines_hold_no_fine_table_of_many_numbers():
    names = [f"x{k}" for k in range(6)]
    frame = pd.DataFrame({name: np.arange(60) * (k + 1) % 128 for k, name in enumerate(names)})
    schema = Schema({name: Number(0, 127, resolution=1, missing="drop") for name in names})
    found = []
    for data in (frame, duckdb.from_df(frame), pl.from_pandas(frame).lazy()):
        curator = TableCurator(PrivateTable(data, schema, ledger=Budget(rho=1e6)), Budget(rho=1e6), what="", fine=True)
        curator.merge(
            schema.replaced(dict.fromkeys(names, Number(0, 127, cuts=[64], resolution=1, missing="drop"))),
            dict.fromkeys(names, np.arange(128) // 64),
        )
        found.append([table.tolist() for table in curator.ask(Tables([names, names[:2]]), 1)])
    assert found[0] == found[1] == found[2] and np.sum(found[0][0]) == 60

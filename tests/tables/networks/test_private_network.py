"""PrivateNetwork, PrivateChowLiu and learn: conventions, what they learn, what they keep and what they refuse."""

from __future__ import annotations

import itertools
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.base
from pgmpy.base import UndirectedGraph
from sklearn.metrics import roc_auc_score

from pgmpy_dp import (
    Budget,
    FewRecordsWarning,
    Levels,
    MarkovNetwork,
    NoEdgeWarning,
    Number,
    PrivateTable,
    Schema,
    learn,
)
from pgmpy_dp.estimators import CollectiveMAP, NaiveMLE, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.tables.networks import adaptive_search, network_estimate, private_network, structure_base
from tests.estimators.test_nothing_leaks import DATA, KEPT, NEEDLE, leaks
from tests.estimators.test_nothing_leaks import STATES as NEEDLE_STATES

STATES = {"rain": ["no", "yes"], "wet": [False, True], "coin": [0, 1], "mood": ["low", "mid", "high"]}


def records(n=5000, seed=0):
    """rain - wet strong, wet - mood weaker, coin alone."""
    rng = np.random.default_rng(seed)
    rain = rng.random(n) < 0.3
    wet = rng.random(n) < np.where(rain, 0.9, 0.1)
    mood = np.where(rng.random(n) < 0.5, np.where(wet, 0, 2), rng.integers(0, 3, n))
    return pd.DataFrame(
        {
            "rain": np.where(rain, "yes", "no"),
            "wet": wet,
            "coin": rng.integers(0, 2, n),
            "mood": np.array(STATES["mood"])[mood],
        }
    )


@pytest.fixture(params=[PrivateChowLiu, PrivateNetwork], ids=lambda estimator: estimator.__name__)
def estimator_class(request):
    return request.param


@pytest.fixture
def charges(monkeypatch):
    """Every charge to any ledger."""
    made = []
    charge = Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda *a, **k: made.append(a) or charge(*a, **k))
    return made


def edges(estimator):
    return {frozenset(edge) for edge in estimator.graph_.edges}


class TestConventions:
    def test_the_constructor_stores_its_arguments_untouched(self, estimator_class):
        states = {"a": ["x", "y"]}
        estimator = estimator_class(epsilon=-3, state_names=states, adjacency="nonsense")
        assert (estimator.epsilon, estimator.adjacency) == (-3, "nonsense")
        assert estimator.state_names is states

    @pytest.mark.parametrize("clone", [lambda e: e.clone(), sklearn.base.clone], ids=["skbase", "sklearn"])
    @pytest.mark.parametrize("states", [STATES, Schema(STATES)], ids=["dict", "Schema"])
    def test_clones_are_unfitted_and_have_the_same_parameters(self, estimator_class, clone, states):
        estimator = estimator_class(epsilon=1.0, state_names=states).fit(records(500))
        copy = clone(estimator)
        assert type(copy) is estimator_class
        assert copy.get_params() == estimator.get_params()
        assert not copy.is_fitted

    def test_fit_returns_self_and_reset_undoes_it(self, estimator_class):
        estimator = estimator_class(rho=0.5, state_names=STATES)
        assert not estimator.is_fitted
        assert estimator.fit(records(500), y=None) is estimator
        assert estimator.is_fitted
        estimator.reset()
        assert not hasattr(estimator, "release_")
        assert estimator.rho == 0.5

    @pytest.mark.parametrize(
        ("budget", "kind"),
        [({"epsilon": 1.0}, "1-DP"), ({"rho": 0.5}, "0.5-zCDP"), ({"epsilon": 1.0, "delta": 1e-6}, "zCDP")],
    )
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_every_budget_and_adjacency(self, estimator_class, budget, kind, adjacency):
        n_records = 5000 if adjacency == "replace_one" else None
        estimator = estimator_class(**budget, state_names=STATES, adjacency=adjacency, n_records=n_records)
        estimator.fit(records())
        assert isinstance(estimator.graph_, UndirectedGraph)
        assert list(estimator.graph_.nodes) == list(STATES)
        assert frozenset(("rain", "wet")) in edges(estimator)
        assert str(estimator.privacy_.guarantee).endswith(kind)
        assert estimator.privacy_.adjacency == adjacency
        assert len(estimator.privacy_.entries) == 1
        assert estimator.n_records_ == pytest.approx(5000, rel=0.1)
        assert isinstance(estimator.model_, MarkovNetwork)
        assert edges(estimator) <= {frozenset(edge) for edge in estimator.model_.edges}

    def test_polars_and_shared_tables(self, estimator_class):
        estimator_class(epsilon=1.0, state_names=STATES).fit(pl.from_pandas(records()))
        table = PrivateTable(records(), STATES, ledger=Budget(epsilon=1.0))
        estimator_class(epsilon=0.4).fit(table)
        fitted = estimator_class(epsilon=0.6).fit(table)
        assert [entry.cost.epsilon for entry in fitted.privacy_.entries] == [0.4, 0.6]
        with pytest.raises(BudgetExceeded):
            estimator_class(epsilon=0.1).fit(table)

    def test_samples_have_the_states_of_the_schema(self, estimator_class):
        estimator = estimator_class(rho=1.0, state_names=STATES).fit(records())
        drawn = estimator.sample(200, random_state=0)
        assert drawn.equals(estimator.sample(200, random_state=0))
        assert list(drawn.columns) == list(STATES)
        assert all(set(drawn[name]) <= set(states) for name, states in STATES.items())
        with pytest.raises(Exception, match="not been fitted"):
            estimator_class(rho=1.0).sample(3)


class TestRelease:
    def test_the_same_is_learned_from_a_saved_release(self, estimator_class, tmp_path):
        estimator = estimator_class(epsilon=1.0, state_names=STATES).fit(records())
        estimator.release_.save(tmp_path / "release.npz")
        again = estimator_class().fit_release(Release.load(tmp_path / "release.npz"))
        assert edges(again) == edges(estimator)
        assert again.edge_scores_ == estimator.edge_scores_
        np.testing.assert_array_equal(
            again.model_.marginal(["rain", "mood"]).values, estimator.model_.marginal(["rain", "mood"]).values
        )
        assert again.privacy_.guarantee == estimator.privacy_.guarantee
        assert again.privacy_.entries == ()

    @pytest.mark.parametrize("given_graph", [CollectiveMAP, NaiveMLE])
    def test_estimators_of_a_given_graph_take_it(self, estimator_class, given_graph):
        # With other noise the network's own second start may end elsewhere, by up to 1e-4.
        estimator = estimator_class(rho=1.0, state_names=STATES, random_state=0).fit(records())
        fitted = given_graph().fit_release(estimator.graph_, estimator.release_)
        expected = estimator.model_.marginal(["rain", "wet"]).values
        assert fitted.model_.marginal(["rain", "wet"]).values == pytest.approx(expected, abs=0.02)
        if given_graph is CollectiveMAP and estimator_class is PrivateNetwork:
            assert fitted.model_.marginal(["rain", "wet"]).values == pytest.approx(expected, abs=1e-12)

    def test_other_releases_are_refused(self, estimator_class):
        with pytest.raises(TypeError, match="Release"):
            estimator_class().fit_release("a file")
        other = NaiveMLE(epsilon=1.0, state_names=STATES).fit(nx.Graph([("rain", "wet")]), records(100)).release_
        if estimator_class is PrivateNetwork:
            with pytest.raises(ValueError, match="no rounds"):
                estimator_class().fit_release(other)
        states = {**STATES, "coin": [0, 1, 2]}
        mine = estimator_class(epsilon=1.0, state_names=STATES).fit(records(100)).release_
        with pytest.raises(ValueError, match="state_names"):
            estimator_class(state_names=states).fit_release(mine)

    def test_a_failure_after_the_release_hands_it_over_and_sets_nothing(self, estimator_class, monkeypatch):
        def fails(*_arguments, **_options):
            raise RuntimeError("boom")

        monkeypatch.setattr(structure_base, "collective_map", fails)
        monkeypatch.setattr(private_network, "collective_map", fails)
        estimator = estimator_class(epsilon=1.0, state_names=STATES, random_state=0)
        with pytest.warns(ReproducibleNoiseWarning), pytest.raises(RuntimeError, match="boom") as caught:
            estimator.fit(records())
        assert not estimator.is_fitted
        monkeypatch.undo()
        assert frozenset(("rain", "wet")) in edges(estimator.fit_release(caught.value.release))

    def test_seeds_repeat_and_are_marked(self, estimator_class):
        with pytest.warns(ReproducibleNoiseWarning):
            first = estimator_class(rho=0.1, state_names=STATES, random_state=3).fit(records())
        with pytest.warns(ReproducibleNoiseWarning):
            second = estimator_class(rho=0.1, state_names=STATES, random_state=3).fit(records())
        assert first.release_ == second.release_
        assert first.privacy_.reproducible


@pytest.mark.filterwarnings("ignore::pgmpy_dp.learning.few_records.NoEdgeWarning")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_fitted_estimator_and_its_model_hold_no_records_nor_counts(estimator_class, adjacency):
    n_records = None if adjacency == "add_remove" else len(KEPT) + 81
    estimator = estimator_class(0.01, state_names=NEEDLE_STATES, adjacency=adjacency, n_records=n_records).fit(DATA)
    for item in (estimator, estimator.release_, estimator.model_):
        # The report and the errors are data frames of public numbers, the only ones there may be.
        own = 2 if item is estimator and estimator_class is PrivateNetwork else 0
        found = leaks(item)
        assert found.count("a DataFrame") <= own
        assert set(found) <= ({"a DataFrame"} if own else set())
        content = pickle.dumps(item)
        assert NEEDLE.encode() not in content
        assert set(leaks(pickle.loads(content))) <= ({"a DataFrame"} if own else set())


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"epsilon": 0}, ValueError, "epsilon=0"),
            ({"epsilon": None}, ValueError, "no budget was given"),
            ({"rho": 0.1}, ValueError, "rho=0.1 was passed with epsilon"),
            ({"delta": 1.0}, ValueError, "delta=1.0"),
            ({"state_names": None}, ValueError, "state_names=None"),
            ({"state_names": {"rain": ["no"]}}, ValueError, "columns of one state alone"),
            ({"state_names": {**STATES, "absent": [0, 1]}}, ValueError, "no column for"),
            ({"adjacency": "swap"}, ValueError, "adjacency='swap'"),
            ({"adjacency": "replace_one"}, ValueError, "n_records=None"),
            ({"n_records": -5}, ValueError, "n_records=-5"),
            ({"random_state": -1}, ValueError, "random_state=-1"),
            ({"one_way_share": 0}, ValueError, "one_way_share=0"),
            ({"selection_share": 1.0}, ValueError, "selection_share=1.0"),
            ({"epsilon": 1e-300}, ValueError, "bury"),
        ],
    )
    def test_arguments_of_both(self, estimator_class, charges, parameters, error, message):
        estimator = estimator_class(**{"epsilon": 1.0, "state_names": STATES, **parameters})
        with pytest.raises(error, match=message):
            estimator.fit(records(50))
        assert charges == []
        assert not estimator.is_fitted

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"required_edges": [("rain", "snow")]}, ValueError, "required_edges has the unknown variables 'snow'"),
            ({"forbidden_edges": [("rain",)]}, ValueError, "forbidden_edges holds"),
            ({"required_edges": 3}, TypeError, "required_edges=3"),
            ({"max_clique_cells": 2}, ValueError, "max_clique_cells=2"),
            ({"n_rounds": 1.5}, TypeError, "n_rounds=1.5"),
        ],
    )
    def test_arguments_of_networks(self, charges, parameters, error, message):
        with pytest.raises(error, match=message):
            PrivateNetwork(epsilon=1.0, state_names=STATES, **parameters).fit(records(50))
        assert charges == []

    @pytest.mark.parametrize("method", ["selection", "tables"])
    def test_arguments_of_trees(self, charges, method):
        for parameters, error, message in [
            ({"method": "mutual information"}, ValueError, "method='mutual information'"),
            ({"n_edges": 4}, ValueError, "n_edges=4 is more than the 3"),
            ({"prune": "yes"}, TypeError, "prune='yes'"),
        ]:
            with pytest.raises(error, match=message):
                PrivateChowLiu(epsilon=1.0, state_names=STATES, **{"method": method, **parameters}).fit(records(50))
        assert charges == []

    def test_a_table_that_says_otherwise(self, estimator_class, charges):
        table = PrivateTable(records(50), STATES, ledger=Budget(epsilon=1.0))
        for parameters, message in [
            ({"adjacency": "replace_one"}, "adjacency='replace_one'"),
            ({"n_records": 3}, "n_records=3"),
            ({"state_names": {"rain": ["no", "yes"]}}, "state_names="),
        ]:
            with pytest.raises(ValueError, match=message):
                estimator_class(epsilon=1.0, **parameters).fit(table)
        assert charges == []


class TestNetwork:
    def test_strong_pairs_are_found_and_fitted(self):
        estimator = PrivateNetwork(epsilon=2.0, delta=1e-6, state_names=STATES).fit(records(20_000))
        truth = pd.crosstab(records(20_000)["wet"], records(20_000)["mood"], normalize=True)[STATES["mood"]].to_numpy()
        assert 0.5 * np.abs(estimator.model_.marginal(["wet", "mood"]).values - truth).sum() < 0.02
        assert {frozenset(("rain", "wet")), frozenset(("wet", "mood"))} <= edges(estimator)
        assert max(estimator.edge_scores_, key=estimator.edge_scores_.get) == ("rain", "wet")
        assert set(map(frozenset, estimator.edge_scores_)) == edges(estimator)

    def test_report_and_errors(self):
        estimator = PrivateNetwork(epsilon=2.0, delta=1e-6, state_names=STATES).fit(records(20_000))
        report, errors = estimator.report_, estimator.errors_
        assert report["share"].sum() == pytest.approx(0.9 * 0.92)
        assert {"rain", "wet"} <= set(report.loc[0, "variables"])
        assert report.loc[0, "error_before"] > 0.2 > report["error_before"].iloc[-1]
        assert not report.loc[0, "repeated"]
        assert report["repeated"].sum() == len(report) - len(set(report["variables"]))
        assert len(errors) == 6
        assert errors["measured"].sum() == estimator.graph_.number_of_edges()
        assert errors["error_bound"].is_monotonic_decreasing
        assert errors["error_bound"].between(0, 0.2).all()

    def test_nearly_exact_tables_give_the_triples_that_pairs_do_not(self):
        data = records(20_000)
        rng = np.random.default_rng(3)
        rain, wet = rng.integers(0, 2, (2, len(data)))
        for name, codes in (("rain", rain), ("wet", wet), ("coin", rain ^ wet ^ (rng.random(len(data)) < 0.1))):
            data[name] = np.array(STATES[name], dtype=object)[codes]
        names = ["rain", "wet", "coin"]
        exact = data.groupby(names).size().reindex(pd.MultiIndex.from_product([STATES[name] for name in names]))
        truth = exact.fillna(0).to_numpy().reshape([len(STATES[name]) for name in names]) / len(data)
        wrong = {}
        for order in (2, 3):
            estimator = PrivateNetwork(rho=1e4, state_names=STATES, max_order=order, probe_share=0.0).fit(data)
            wrong[order] = 0.5 * np.abs(estimator.model_.marginal(names).values - truth).sum()
            own = estimator.errors_[estimator.errors_["measured"]]
            pairs = {frozenset(p) for names in estimator.report_["variables"] for p in itertools.combinations(names, 2)}
            assert set(map(frozenset, zip(own["first"], own["second"], strict=True))) == pairs == edges(estimator)
            assert set(map(frozenset, estimator.edge_scores_)) == pairs
            for first, second, bound in zip(own["first"], own["second"], own["error_bound"], strict=True):
                table = pd.crosstab(data[first], data[second], normalize=True).reindex(
                    index=STATES[first], columns=STATES[second], fill_value=0.0
                )
                found = estimator.model_.marginal([first, second]).values
                assert 0.5 * np.abs(found - table.to_numpy()).sum() < bound + 1e-3
        assert wrong[3] < 0.002 < 0.3 < wrong[2]

    def test_what_a_workload_leaves_out_is_unknown(self):
        estimator = PrivateNetwork(rho=1.0, state_names=STATES, workload={("rain", "wet", "mood"): 1.0}).fit(records())
        assert not estimator.graph_.degree("coin")
        bounds = estimator.errors_.set_index(["first", "second"])["error_bound"]
        assert {name for pair in bounds.index[bounds.isna()] for name in pair} == set(STATES)
        assert bounds.isna().sum() == 3 and all("coin" in pair for pair in bounds.index[bounds.isna()])

    def test_what_has_no_target_is_unknown(self):
        estimator = PrivateNetwork(rho=1e-4, state_names=STATES, target="rain", probe_share=0.0, max_order=2)
        estimator = estimator.fit(records())
        assert edges(estimator) == {frozenset(("rain", name)) for name in STATES if name != "rain"}
        bounds = estimator.errors_.set_index(["first", "second"])["error_bound"]
        assert all(("rain" in pair) == (bound == bound) for pair, bound in bounds.items())

    def test_a_target_is_predicted_where_hardly_an_edge_is_found_without_one(self):
        """Twenty columns that tell a little each: the star tells the target apart, single variables cannot."""
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 2, 2200)
        data = pd.DataFrame({f"x{k}": (rng.random(2200) < 0.3 + 0.4 * truth) * 1 for k in range(20)})
        data = data.assign(**{f"x{k}": data[f"x{k}"] + 2 * rng.integers(0, 3, 2200) for k in range(20)}, truth=truth)
        states = {name: range(6) for name in data} | {"truth": [0, 1]}
        given = {"rho": 0.0015, "state_names": states, "random_state": 0}
        told = {}
        for target in (None, "truth"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = PrivateNetwork(**given, target=target).fit(data[:2000]).model_
            told[target] = roc_auc_score(truth[2000:], model.predict_proba(data[2000:], "truth")[1])
        assert told["truth"] > max(0.9, told[None] + 0.15)

    def test_public_edges(self):
        estimator = PrivateNetwork(
            rho=1.0, state_names=STATES, required_edges=[("coin", "rain")], forbidden_edges=[("wet", "rain")]
        ).fit(records())
        assert frozenset(("coin", "rain")) in edges(estimator)
        assert frozenset(("wet", "rain")) not in edges(estimator)
        errors = estimator.errors_.set_index(["first", "second"])["error_bound"]
        assert np.isnan(errors["rain", "wet"])
        assert errors.notna().sum() == 5

    def test_pairs_that_became_too_large_are_bounded_by_the_last_round_that_could_take_them(self):
        estimator = PrivateNetwork(rho=5.0, state_names=STATES, max_clique_cells=6).fit(records())
        errors = estimator.errors_.set_index(["first", "second"])
        assert set(errors.index[errors["measured"]]) == set(estimator.edge_scores_)
        assert nx.is_tree(estimator.graph_)  # a triangle has 8 cells or more
        assert len(estimator.release_.public["unavailable"]) == 3
        assert errors["error_bound"].between(0, 1).all()
        narrow = PrivateNetwork(rho=5.0, state_names=STATES, max_clique_cells=4).fit(records())
        unknown = narrow.errors_[narrow.errors_["error_bound"].isna()]
        assert set(unknown["second"]) == {"mood"}  # 2 x 3 cells
        assert unknown.index.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("data", [records(0), records(1), records(20).assign(rain="hail")])
    def test_hardly_any_records(self, data, recwarn):
        for budget in ({"epsilon": 0.1}, {"rho": 0.001}):
            estimator = PrivateNetwork(**budget, state_names=STATES).fit(data)
            assert np.isfinite(estimator.model_.marginal(["rain", "mood"]).values).all()
            assert len(estimator.sample(5)) == 5
            bounds = estimator.errors_["error_bound"]  # nan where all goes to single variables
            assert (bounds.between(0, 1) if estimator.release_.public["rounds"] else bounds.isna()).all()
        assert all(issubclass(warning.category, FewRecordsWarning | NoEdgeWarning) for warning in recwarn)

    @pytest.mark.filterwarnings("ignore::pgmpy_dp.learning.few_records.NoEdgeWarning")
    def test_a_column_that_is_not_read_is_said(self):
        data = pd.DataFrame({"pay": ["$1,010.00"] * 16_000, "age": np.arange(16_000) % 9})
        schema = {"pay": Number(0, 100_000), "age": Number(0, 8)}
        with pytest.warns(FewRecordsWarning, match=r"^pay has a value within its bounds in 0\.\d\d % of") as told:
            estimator = PrivateNetwork(epsilon=1.0, delta=1e-9, state_names=schema).fit(data)
        assert "age" not in str(told[0].message)
        answer = estimator.model_.ask("pay")
        assert not answer.numbers and "so that a mean would be noise" in str(answer)

    def test_a_graph_with_hardly_an_edge_is_said(self, tmp_path):
        """Of released numbers alone: from a file it is said again."""
        data = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (150, 20))).rename(columns=str)
        budget, states = {"epsilon": 0.3, "delta": 1e-9}, {name: range(5) for name in data}
        with pytest.warns(NoEdgeWarning, match="pass workload= with"):
            estimator = PrivateNetwork(**budget, state_names=states).fit(data)
        assert estimator.graph_.number_of_edges() == 0
        with pytest.warns(NoEdgeWarning):
            PrivateNetwork().fit_release(estimator.release_)
        with warnings.catch_warnings():
            warnings.simplefilter("error", NoEdgeWarning)
            more = PrivateNetwork(epsilon=1.0, delta=1e-9, state_names=states, workload=[("0", "1", "2")])
            asked = more.fit(data)
            assert asked.graph_.number_of_edges()
            with pytest.raises(NoEdgeWarning) as caught:
                PrivateNetwork(**budget, state_names=states).fit(data)
        assert caught.value.release.kind == "marginals"  # it was paid for
        estimator.model_.report(tmp_path / "report.html")
        assert "20 variables, no edges" in (tmp_path / "report.html").read_text()

    def test_one_variable(self):
        estimator = PrivateNetwork(epsilon=5.0, state_names={"rain": ["no", "yes"]}).fit(records())
        assert estimator.edge_scores_ == {}
        assert len(estimator.report_) == len(estimator.errors_) == 0
        assert estimator.model_.marginal(["rain"]).values == pytest.approx([0.7, 0.3], abs=0.03)

    def test_learn_is_the_short_form(self):
        with pytest.warns(ReproducibleNoiseWarning):
            short = learn(records(), Budget(epsilon=1.0, delta=1e-6), STATES, random_state=4, n_rounds=5)
        with pytest.warns(ReproducibleNoiseWarning):
            long = PrivateNetwork(1.0, 1e-6, state_names=STATES, random_state=4, n_rounds=5).fit(records())
        assert isinstance(short, PrivateNetwork)
        assert short.release_ == long.release_
        table = PrivateTable(records(), STATES, ledger=Budget(rho=1.0), adjacency="replace_one", n_records=5000)
        assert learn(table, Budget(rho=0.5)).privacy_.adjacency == "replace_one"
        with pytest.raises(TypeError, match=r"budget=1\.0"):
            learn(records(), 1.0, STATES)
        with pytest.raises(TypeError, match="epsilon"):
            learn(records(), Budget(rho=1.0), STATES, epsilon=1.0)


class TestChowLiu:
    @pytest.mark.parametrize("method", ["selection", "tables"])
    @pytest.mark.parametrize("fit_parameters", [True, False])
    def test_trees_and_forests(self, method, fit_parameters):
        options = {"rho": 5.0, "state_names": STATES, "method": method, "fit_parameters": fit_parameters}
        whole = PrivateChowLiu(**options).fit(records())
        assert nx.is_tree(whole.graph_)
        assert {frozenset(("rain", "wet")), frozenset(("wet", "mood"))} <= edges(whole)
        assert hasattr(whole, "model_") == fit_parameters
        forest = PrivateChowLiu(**options, n_edges=2).fit(records())
        assert edges(forest) == {frozenset(("rain", "wet")), frozenset(("wet", "mood"))}
        assert list(forest.graph_.nodes) == list(STATES)
        scores = forest.edge_scores_
        assert list(scores) == sorted(scores, key=scores.get, reverse=True)
        assert scores[next(iter(scores))] == pytest.approx(0.34, abs=0.05)

    def test_pruning_leaves_out_what_only_noise_put_in(self):
        pruned = PrivateChowLiu(rho=0.01, state_names=STATES, prune=True, fit_parameters=False)
        with pytest.warns(ReproducibleNoiseWarning):
            graphs = [pruned.set_params(random_state=k).fit(records(20_000)).graph_ for k in range(20)]
        assert all(graph.has_edge("rain", "wet") and graph.has_edge("wet", "mood") for graph in graphs)
        # Two standard deviations, and the coin's pair is the largest of three.
        assert sum(graph.degree("coin") for graph in graphs) <= 8
        rng = np.random.default_rng(0)
        noise = pd.DataFrame({name: rng.choice(np.array(s, dtype=object), 50) for name, s in STATES.items()})
        graph = PrivateChowLiu(rho=1e-6, state_names=STATES, prune=True, fit_parameters=False).fit(noise).graph_
        assert list(graph.nodes) == list(STATES)


def test_an_interrupted_search_keeps_what_was_paid_for(monkeypatch):
    """Ctrl-C in the middle of a refit: the exception has all tables released so far, and they can be learned from."""
    true, calls = network_estimate.estimate_network, []

    def interrupted(noisy, before=None, tree=None):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return true(noisy, before, tree)

    monkeypatch.setattr(adaptive_search.run, "__defaults__", (None, interrupted, *[None] * 5))
    table = PrivateTable(records(), STATES, ledger=Budget(rho=1.0))
    with pytest.raises(KeyboardInterrupt) as caught:
        PrivateNetwork(rho=1.0, n_rounds=8).fit(table)
    release = caught.value.release
    assert len(release.scopes) == len(STATES) + 3 == len(STATES) + len(release.public["rounds"])
    assert table.ledger.left == ZCDP(0.0)
    assert "paid for" in caught.value.__notes__[0]
    again = PrivateNetwork().fit_release(release)
    pairs = {frozenset(pair) for scope in release.scopes for pair in itertools.combinations(scope, 2)}
    assert edges(again) == pairs


COUNTIES = {f"t{k}": f"c{k // 20}" for k in range(60)}
WITH_LEVELS = Schema(
    {"tract": Levels(list(COUNTIES), county=COUNTIES), "ill": ["no", "yes"], "sex": ["F", "M"], "job": list("abc")}
)


def people(seed, n=4000):
    """Illness follows the county, and within it not the tract."""
    rng = np.random.default_rng(seed)
    tract = rng.integers(0, 60, n)
    ill = rng.random(n) < np.array([0.1, 0.5, 0.9])[tract // 20]
    return pd.DataFrame(
        {
            "tract": [f"t{k}" for k in tract],
            "ill": np.where(ill, "yes", "no"),
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(list("abc"), n),
        }
    )


def test_a_search_starts_at_the_level_that_noise_does_not_hide_and_is_better_for_it():
    levels, leaves = [], []
    alone = Schema({name: list(WITH_LEVELS.states[name]) for name in WITH_LEVELS})
    for seed in range(3):
        frame = people(seed)
        exact = pd.crosstab(frame["tract"], frame["ill"]).loc[list(COUNTIES)].to_numpy()
        for schema, errors in ((WITH_LEVELS, levels), (alone, leaves)):
            estimator = learn(frame, Budget(epsilon=0.5, delta=1e-6), schema, random_state=seed)
            table = estimator.model_.query(["tract", "ill"])
            assert [*table.state_names["tract"]] == list(COUNTIES)
            errors.append(np.abs(estimator.n_records_ * table.values - exact).mean())
            if schema is WITH_LEVELS:
                assert any({"county", "ill"} <= {*scope} for scope in estimator.report_["variables"])
                assert estimator.graph_.has_edge("tract", "ill")
                measured = estimator.errors_.set_index(["first", "second"])["measured"]["tract", "ill"]
                assert measured == any({"tract", "ill"} <= {*scope} for scope in estimator.report_["variables"])
                again = PrivateNetwork(state_names=schema).fit_release(estimator.release_)
                assert again.model_.query(["tract", "ill"]).values.tolist() == table.values.tolist()
    assert np.mean(levels) < 0.9 * np.mean(leaves)


def test_a_workload_of_levels_is_measured_at_these_levels_and_coarser():
    workload = {("county", "ill"): 2.0, ("tract", "sex"): 1.0}
    estimator = learn(people(0), Budget(epsilon=1.0, delta=1e-6), WITH_LEVELS, workload=workload, random_state=0)
    chosen = {frozenset(scope) for scope in estimator.report_["variables"]}
    assert frozenset({"county", "ill"}) in chosen
    assert chosen <= {frozenset(pair) for pair in (("county", "ill"), ("tract", "sex"), ("county", "sex"))}
    intervals = estimator.posterior(20, random_state=0).interval(["county", "ill"])
    assert intervals["estimate"].shape == (3, 2)
    assert (intervals["upper"] - intervals["lower"] < 0.1).all()
    for sets, message in (([("county", "tract")], "has 'tract' twice"), ([("nation", "ill")], "unknown variables")):
        with pytest.raises(ValueError, match=f"workload has.*{message}|workload {message}"):
            learn(people(0), Budget(epsilon=1.0), WITH_LEVELS, workload=sets)


def test_levels_are_left_out_beside_a_prior_and_of_a_target():
    first = learn(people(0), Budget(epsilon=1.0, delta=1e-6), WITH_LEVELS, random_state=0)
    assert any("county" in scope for scope in first.release_.scopes)
    for options in ({"prior": first.release_}, {"target": "tract"}):
        later = learn(people(1), Budget(epsilon=1.0, delta=1e-6), WITH_LEVELS, random_state=1, **options)
        assert not any("county" in scope for scope in later.release_.scopes)

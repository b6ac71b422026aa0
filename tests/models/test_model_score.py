"""Scores of a model: the distances that they are noisy versions of, in which states, of whom, and at whose cost."""

from __future__ import annotations

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp import (
    Budget,
    FewRecordsWarning,
    Ledger,
    MarkovNetwork,
    Number,
    PrivateTable,
    Release,
    preview_score,
    score_model,
)
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.models.score_reading import ModelScore
from pgmpy_dp.models.scored_model import ScoredModel
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.operators.distances import Distances
from pgmpy_dp.private.operators.worst_fit import WorstFit

STATES = {"a": ["no", "yes"], "b": [0, 1, 2], "c": [False, True]}
RICH = Budget(epsilon=1e6)


def model_of(tables: dict, states=STATES) -> MarkovNetwork:
    model = MarkovNetwork([scope for scope in tables if len(scope) == 2])
    model.add_nodes_from(name for scope in tables for name in scope)
    for scope, table in tables.items():
        shape = [len(states[name]) for name in scope]
        values = np.array(table, dtype=float).reshape(shape)
        model.add_factors(DiscreteFactor(scope, shape, values, state_names={name: states[name] for name in scope}))
    return model


MODEL = model_of({("a", "b"): [4, 1, 1, 2, 3, 9], ("b", "c"): [1, 2, 5, 1, 0, 4]})


def records(n=400, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice(np.array(s, dtype=object), n) for name, s in STATES.items()})
    frame.loc[:9, "b"] = 7  # outside the schema
    return frame


def exact(frame, model=MODEL, sets=None) -> dict:
    """Total variations of the records inside the schema, by hand."""
    kept = frame[frame["b"].isin(STATES["b"])]
    found = {}
    for scope in sets or [*itertools.combinations(STATES, 2), tuple(STATES)]:
        table = model.marginal(list(scope)).values
        counts = np.zeros_like(table)
        for row in kept[list(scope)].itertuples(index=False):
            counts[tuple(STATES[v].index(x) for v, x in zip(scope, row, strict=True))] += 1
        found[scope] = 0.5 * np.abs(counts / len(kept) - table).sum()
    return found


def score(model=MODEL, frame=None, budget=RICH, **options) -> ModelScore:
    return score_model(model, records() if frame is None else frame, budget, **options)


class TestDistances:
    def test_are_those_of_the_records_inside_the_schema(self):
        truth = exact(records())
        found = score(each=True)
        pairs = [truth[scope] for scope in itertools.combinations(STATES, 2)]
        assert found.table.loc["pairs", "distance"] == pytest.approx(np.mean(pairs), abs=2e-3)
        assert found.table.loc["triples", "distance"] == pytest.approx(truth[tuple(STATES)], abs=2e-3)
        assert found.worst == tuple(STATES)
        assert {scope: pytest.approx(d, abs=2e-3) for scope, d in found.each["distance"].items()} == truth
        assert (found.n_records, found.n_records_sd < 1) == (390, True)
        for table in (found.table, found.each):
            assert (table["lower"] <= table["distance"]).all() and (table["distance"] <= table["upper"]).all()

    def test_under_replace_one_too(self):
        found = score(adjacency="replace_one", n_records=400)
        assert found.n_records == 390
        assert found.table.loc["triples", "distance"] == pytest.approx(exact(records())[tuple(STATES)], abs=2e-3)

    def test_of_a_workload_with_weights(self):
        sets = {("c", "a"): 3.0, ("b",): 1.0, ("a", "c"): 2.0}
        found = score(workload=sets, worst=False)
        truth = exact(records(), sets=[("c", "a"), ("b",)])
        assert found.table["tables"].to_dict() == {"workload": 2}
        wanted = (5 * truth["c", "a"] + truth["b",]) / 6
        assert found.table.loc["workload", "distance"] == pytest.approx(wanted, abs=2e-3)
        assert found.worst is None and found.each is None

    def test_intervals_hold_what_noise_hides(self):
        """Of 60 runs each nominal .9 interval misses more than 18 once in 10^5 times; the seeds are fixed."""
        truth, hits = exact(records()), {"pairs": 0, "triples": 0}
        wanted = {
            "pairs": np.mean([truth[s] for s in itertools.combinations(STATES, 2)]),
            "triples": truth[tuple(STATES)],
        }
        table = PrivateTable(records(), STATES, ledger=Budget(epsilon=1e3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(60):
                found = score(frame=table, budget=Budget(epsilon=0.5), worst=False, random_state=seed)
                for name in hits:
                    row = found.table.loc[name]
                    hits[name] += bool(row["lower"] <= wanted[name] <= row["upper"])
        assert min(hits.values()) >= 42


class TestStates:
    def test_in_another_order(self):
        turned = {"c": [True, False], "b": [2, 0, 1], "a": ["yes", "no"]}
        for given in ({"schema": turned}, {"frame": PrivateTable(records(), turned, ledger=RICH)}):
            found = score(**given, worst=False)
            assert found.table.loc["triples", "distance"] == pytest.approx(exact(records())[tuple(STATES)], abs=2e-3)

    def test_a_bayesian_network_and_a_file(self, tmp_path):
        network = DiscreteBayesianNetwork([("a", "c")])
        names = {name: STATES[name] for name in "ac"}
        network.add_cpds(
            TabularCPD("a", 2, [[0.3], [0.7]], state_names={"a": STATES["a"]}),
            TabularCPD("c", 2, [[0.2, 0.6], [0.8, 0.4]], ["a"], [2], state_names=names),
        )
        found = score(network, schema=STATES)  # records have more columns than the model
        joint = np.array([[0.06, 0.24], [0.42, 0.28]])
        kept = records().iloc[10:]
        counts = np.array([[((kept["a"] == a) & (kept["c"] == c)).mean() for c in STATES["c"]] for a in STATES["a"]])
        assert found.table.loc["pairs", "distance"] == pytest.approx(0.5 * np.abs(counts - joint).sum(), abs=2e-3)
        MODEL.save(tmp_path / "model.npz")
        again = score(str(tmp_path / "model.npz"))
        loaded = MarkovNetwork.load(tmp_path / "model.npz")
        assert again.model == ScoredModel.of(MODEL).digest == ScoredModel.of(loaded).digest

    def test_finer_cells_of_the_records_are_merged(self):
        rng = np.random.default_rng(1)
        frame = pd.DataFrame({"age": rng.integers(0, 100, 3000), "sex": rng.integers(0, 2, 3000)})
        frame.loc[:99, "age"] = -1
        number = Number(0, 99, resolution=1, outside="state", missing="drop")
        table = PrivateTable(frame, {"age": number, "sex": [0, 1]}, ledger=Budget(epsilon=1e7))
        fitted = CollectiveMAP(epsilon=1e6, cliques=[("age", "sex")]).fit(MarkovNetwork([("age", "sex")]), table)
        states = fitted.model_.states["age"]
        assert 2 < len(states) < 100
        for data in (table, frame):
            found = score(fitted, data)
            assert found.table.loc["pairs", "distance"] < 0.01 and 2990 < found.n_records < 3010
        coarse = PrivateTable(frame, {"age": Number(0, 99, cuts=[50.5], missing="drop"), "sex": [0, 1]}, ledger=RICH)
        with pytest.raises(ValueError, match="made up of"):
            score(fitted, coarse)
        assert coarse.ledger.left == RICH.guarantee

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ({"a": ["no", "yes"], "b": [0, 1, 2]}, "lacks"),
            ({**STATES, "b": [0, 1]}, "has the states 0, 1, 2 for 'b'"),
            ({**STATES, "b": [0, 1, 2, 3]}, "has the states 0, 1, 2 for 'b'"),
            ({**STATES, "a": Number(0, 1, cuts=[0.5])}, "has the states 'no', 'yes' for 'a'"),
        ],
    )
    def test_others_than_the_model_s_are_refused_before_anything_is_spent(self, schema, message):
        frame = records().assign(a=0) if isinstance(schema["a"], Number) else records()
        table = PrivateTable(frame, schema, ledger=RICH)
        with pytest.raises(ValueError, match=message):
            score(frame=table)
        assert not table.ledger.entries


class TestWhoseTheyAre:
    @pytest.mark.parametrize("rows", [2, "shares"])
    def test_persons(self, rows):
        frame = records().assign(person=np.arange(400) // 4)
        found = score(frame=frame, unit="person", rows_per_unit=rows)
        assert found.privacy_.unit == "person"
        assert found.n_records == pytest.approx({2: 195, "shares": 97.5}[rows], abs=6)
        wide = preview_score(MODEL, 400, Budget(epsilon=1.0), rows_per_unit=rows)["sd"]
        one = preview_score(MODEL, 400, Budget(epsilon=1.0))["sd"]
        assert (wide / one).to_numpy() == pytest.approx(2 if rows == 2 else 1, rel=0.01)

    def test_one_ledger_pays_for_the_model_and_its_scores(self):
        table = PrivateTable(records(), STATES, ledger=Ledger(Budget(epsilon=1.0)))
        fitted = CollectiveMAP(epsilon=0.8).fit(MarkovNetwork([("a", "b"), ("b", "c")]), table)
        found = score(fitted, table, Budget(epsilon=0.2))
        assert str(found.privacy_).startswith("0.2-DP under add_remove")
        assert [str(entry.cost) for entry in found.privacy_.entries] == ["0.8-DP", "0.2-DP"]
        with pytest.raises(BudgetExceeded):
            score(fitted, table, Budget(epsilon=0.1))
        assert len(table.ledger.entries) == 2

    def test_what_was_asked_for_is_what_it_says(self):
        found = score(budget=Budget(epsilon=1.0, delta=1e-6))
        assert found.privacy_.words.startswith("(1, 1e-06)-DP") or str(found.guarantee) == "1-DP"
        assert score(budget=Budget(rho=0.5)).guarantee == Budget(rho=0.5).guarantee

    def test_an_interruption_keeps_what_was_paid_for(self, monkeypatch):
        true = TableCurator.ask

        def stopped(kind):
            def ask(curator, operator, *shares):
                if isinstance(operator, kind):
                    raise KeyboardInterrupt
                return true(curator, operator, *shares)

            return ask

        monkeypatch.setattr(TableCurator, "ask", stopped(WorstFit))
        with pytest.raises(KeyboardInterrupt) as caught:
            score()
        kept = ModelScore.of(caught.value.release)
        assert list(kept.table.index) == ["pairs", "triples"] and kept.worst is None
        monkeypatch.setattr(TableCurator, "ask", stopped(Distances))
        with pytest.raises(KeyboardInterrupt) as caught:
            score()
        with pytest.raises(ValueError, match="before there was a score"):
            ModelScore.of(caught.value.release)

    def test_few_records(self):
        with pytest.warns(FewRecordsWarning):
            found = score(frame=records(12), budget=Budget(epsilon=0.5), random_state=0)
        assert (found.table["upper"] > 0.9).all()
        nobody = score(frame=records(9))
        assert nobody.table["upper"].tolist() == [1.0] * 3


def test_a_release_says_it_all_again(tmp_path):
    found = score(each=True, budget=Budget(epsilon=2.0))
    found.release_.save(tmp_path / "score.npz")
    again = ModelScore.of(Release.load(tmp_path / "score.npz"), 0.5)
    pd.testing.assert_series_equal(again.each["distance"], found.each["distance"])
    assert (again.table["upper"] <= found.table["upper"]).all() and again.worst == found.worst
    pd.testing.assert_frame_equal(found.at(0.5).table, again.table)
    assert pickle.loads(pickle.dumps(found.release_)) == found.release_
    assert "sampling alone" in str(found) and "ModelScore(pairs" in repr(found) and "<pre>" in found._repr_html_()
    with pytest.raises(ValueError, match="kind 'marginals'"):
        ModelScore.of(
            CollectiveMAP(epsilon=1.0, state_names=STATES).fit(MarkovNetwork([("a", "b")]), records()).release_
        )


def test_a_preview_is_what_the_noise_comes_to():
    wanted = preview_score(MODEL, 390, Budget(epsilon=1.0), each=True, level=0.8)
    found = score(budget=Budget(epsilon=1.0), each=True, level=0.8, random_state=1)
    released = dict(zip(found.release_.public["released"], found.release_.noise, strict=True))
    assert wanted.loc["pairs", "sd"] ** 2 == pytest.approx(released["means"].variance)
    assert wanted.loc["each", "sd"] ** 2 == pytest.approx(released["each"].variance)
    assert wanted.loc["worst", "sd"] ** 2 == pytest.approx(released["worst"].variance)
    assert wanted["half_width"].between(0.005, 0.2).all()


def test_many_variables_are_drawn_by_a_rule_that_everybody_knows():
    names = [f"v{k}" for k in range(34)]
    model = model_of({(name,): [1.0, 3.0] for name in names}, {name: [0, 1] for name in names})
    one, other = (preview_score(model, 1000, Budget(epsilon=1.0)) for _ in range(2))
    assert one["tables"].to_dict() == {"pairs": 500, "triples": 500, "worst": 1}
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0.1}, "pass a Budget"),
        ({"model": None}, "pass a MarkovNetwork"),
        ({"model": MarkovNetwork([("a", "b")])}, "no parameters"),
        ({"model": "nowhere.npz"}, "is no file"),
        ({"workload": []}, "workload is empty"),
        ({"workload": [("a", "z")]}, "unknown variables 'z'"),
        ({"workload": {("a", "b"): -1.0}}, "workload"),
        ({"workload": "ab"}, "workload"),
        ({"worst": 1}, "pass True or False"),
        ({"level": 1.0}, "level"),
        ({"random_state": -1}, "random_state"),
        ({"adjacency": "replace_one"}, "n_records"),
        ({"budget": Budget(epsilon=1e-15)}, "beyond"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        score(**options)

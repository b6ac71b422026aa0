"""Models of complete records: against the law that made the records, and what is refused."""

import dataclasses

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp import Budget, MarkovNetwork, Number, PrivateTable, Schema, learn, score_model
from pgmpy_dp.estimators import CollectiveMAP, PrivateNetwork
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.missing_at_random import checked_drivers, complete_schema, completed

STATES = {"age": ["young", "mid", "old"], "sex": ["F", "M"], "job": ["a", "b", None], "pay": ["low", "high", None]}
DRIVERS = {"job": ["age"], "pay": ["job", "sex"]}


def made_up(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A law of age, sex, job and pay, and of the same with cells missing: job by age, pay by job and sex."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(24)).reshape(3, 2, 2, 2)
    of_job = rng.uniform(0.05, 0.7, 3)[:, None, None, None]
    of_pay = rng.uniform(0.05, 0.7, (2, 2)).T[None, :, :, None]  # of sex and job
    holed = np.zeros((3, 2, 3, 3))
    holed[:, :, :2, :2] = law * (1 - of_job) * (1 - of_pay)
    holed[:, :, 2, :2] = (law * of_job * (1 - of_pay)).sum(axis=2)
    holed[:, :, :2, 2] = (law * (1 - of_job) * of_pay).sum(axis=3)
    holed[:, :, 2, 2] = (law * of_job * of_pay).sum(axis=(2, 3))
    return law, holed


def model_of(table: np.ndarray, scopes: tuple[tuple[str, ...], ...] = (tuple(STATES),)) -> LogLinearModel:
    return LogLinearModel(Cliques(tuple(STATES), table.shape, scopes), np.log(table.ravel()))


class TestLaw:
    @given(st.integers(0, 2**32 - 1))
    def test_one_variable_is_completed_exactly(self, seed):
        _, holed = made_up(seed)
        alone = np.concatenate([holed[..., :2, :], holed[..., 2:, :]], axis=2)
        found = completed(model_of(alone), {"job": 2}, {"job": ("age",)})
        whole = holed.sum(axis=2, keepdims=True)
        expected = holed[:, :, :2] * whole / holed[:, :, :2].sum(axis=2, keepdims=True)
        np.testing.assert_allclose(found.marginal(list(STATES)), expected, atol=2e-3)

    @given(st.integers(0, 2**32 - 1))
    def test_a_law_with_missing_cells_gives_the_law_back(self, seed):
        """Where what decides is in the table: the job of whom pay is known decides that, too."""
        law, _ = made_up(seed)
        rng = np.random.default_rng(seed + 1)
        of_job = rng.uniform(0.05, 0.7, 3)[:, None, None, None]
        of_pay = rng.uniform(0.05, 0.7, (3, 2))[:, :, None, None]  # of age and sex, which are never missing
        holed = np.zeros((3, 2, 3, 3))
        holed[:, :, :2, :2] = law * (1 - of_job) * (1 - of_pay)
        holed[:, :, 2, :2] = (law * of_job * (1 - of_pay)).sum(axis=2)
        holed[:, :, :2, 2] = (law * (1 - of_job) * of_pay).sum(axis=3)
        holed[:, :, 2, 2] = (law * of_job * of_pay).sum(axis=(2, 3))
        drivers = {"job": ("age",), "pay": ("age", "sex")}
        found = completed(model_of(holed), {"job": 2, "pay": 2}, drivers)
        for scope in (["age", "job"], ["sex", "pay"], ["age", "sex", "pay"]):
            others = tuple(k for k, name in enumerate(STATES) if name not in scope)
            np.testing.assert_allclose(found.marginal(scope), law.sum(axis=others), atol=2e-3)

    def test_a_driver_that_was_missing_itself_is_completed_first(self):
        law, holed = made_up(3)
        found = completed(model_of(holed), {"job": 2, "pay": 2}, checked_drivers("", DRIVERS))
        np.testing.assert_allclose(found.marginal(["age", "job"]), law.sum(axis=(1, 3)), atol=2e-3)
        # Of whom job is missing, pay depends on the job that nobody knows: right on average over these.
        np.testing.assert_allclose(found.marginal(["age", "sex", "job", "pay"]), law, atol=0.03)
        left_out = holed[..., :2, :2] / holed[..., :2, :2].sum()
        assert np.abs(found.marginal(list(STATES)) - law).sum() < np.abs(left_out - law).sum() / 3

    def test_drivers_count_that_are_in_another_table(self):
        """age - job, job - sex: the table of job and sex is completed with age beside it."""
        age, sex = np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.3, 0.7]])  # sex given job
        job, gone = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.1, 0.8])
        cliques = Cliques(("age", "sex", "job"), (2, 2, 3), (("age", "job"), ("sex", "job")))
        first = np.concatenate([age[:, None] * job * (1 - gone)[:, None], (age * gone)[:, None]], axis=1)
        unknown = np.einsum("a,aj,js->as", age * gone, job, sex).sum(axis=0) / (age * gone).sum()
        second = np.concatenate([sex, unknown[None]]).T
        model = LogLinearModel(cliques, np.log(np.concatenate([first.ravel(), second.ravel()])))
        found = completed(model, {"job": 2}, {"job": ("age",)})
        np.testing.assert_allclose(found.marginal(["age", "job"]), age[:, None] * job, atol=1e-3)
        np.testing.assert_allclose(found.marginal(["sex"]), model.marginal(["sex"]), atol=1e-3)


class TestModel:
    def _records(self, n: int = 4000) -> tuple[pd.DataFrame, pd.DataFrame]:
        rng = np.random.default_rng(1)
        age = rng.random(n) < 0.5
        rich = rng.random(n) < np.where(age, 0.8, 0.2)
        full = pd.DataFrame({"age": np.where(age, "old", "young"), "pay": np.where(rich, "high", "low")})
        full["sex"] = rng.choice(["F", "M"], n)
        gone = rng.random(n) < np.where(age, 0.7, 0.1)
        return full, full.assign(pay=full["pay"].where(~gone, None))

    def test_learn_completes_and_says_so_everywhere(self, tmp_path):
        full, holed = self._records()
        states = {"age": ["young", "old"], "pay": ["low", "high", None], "sex": ["F", "M"]}
        fitted = learn(
            holed, Budget(epsilon=4.0, delta=1e-6), states, missing_at_random={"pay": ["age"]}, random_state=0
        )
        model = fitted.model_
        high = float(model.query("pay").values[1])
        known = holed["pay"].dropna().eq("high").mean()
        assert abs(high - full["pay"].eq("high").mean()) < 0.04 < abs(known - full["pay"].eq("high").mean())
        assert ("age", "pay") in fitted.release_.scopes or ("pay", "age") in fitted.release_.scopes
        assert model.schema["pay"] == ("low", "high") and model.states["pay"] == ["low", "high"]
        assert model.sample(500, random_state=0)["pay"].notna().all()
        model.posterior = fitted.posterior(20, random_state=0)
        frame = model.ask("pay", {"age": "old"}).to_frame()
        assert frame["pay"].tolist() == ["low", "high"]
        assert ((frame["lower"] <= frame["probability"]) & (frame["probability"] <= frame["upper"])).all()
        model.save(tmp_path / "model.npz")
        again = MarkovNetwork.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.query("pay").values, model.query("pay").values)
        pd.testing.assert_frame_equal(again.ask("pay", {"age": "old"}).to_frame(), frame)
        model.report(tmp_path / "report.html")
        said = "Missing values of pay were filled in, as if age alone decided what is missing."
        assert said in (tmp_path / "report.html").read_text()
        assert again.missing_at_random == model.copy().missing_at_random == {"pay": ("age",)}
        plain = type(fitted)().fit_release(fitted.release_).model_
        np.testing.assert_allclose(
            plain.complete({"pay": ["age"]}).query(["age", "pay"]).values, model.query(["age", "pay"]).values, atol=2e-3
        )

    def test_a_given_graph_is_completed_by_hand(self):
        full, holed = self._records()
        states = {"age": ["young", "old"], "pay": ["low", "high", None], "sex": ["F", "M"]}
        fitted = CollectiveMAP(4.0, state_names=states, random_state=0).fit(
            nx.Graph([("age", "pay"), ("pay", "sex")]), holed
        )
        found = fitted.model_.complete({"pay": ["age"]})
        assert abs(float(found.query("pay").values[1]) - full["pay"].eq("high").mean()) < 0.04
        with pytest.raises(ValueError, match=r"has none of \[\('age', 'sex'\)\]"):
            _without_a_table().complete({"age": ["sex"]})

    def test_a_model_that_is_learned_in_place_says_what_was_assumed(self):
        _, holed = self._records()
        states = {"age": ["young", "old"], "pay": ["low", "high", None], "sex": ["F", "M"]}
        model = MarkovNetwork()
        model.add_nodes_from(states)
        model.fit(holed, PrivateNetwork(rho=0.5, state_names=states, missing_at_random={"pay": ["age"]}))
        assert model.missing_at_random == {"pay": ("age",)}
        model.remove_edges_from(list(model.edges))
        model.fit(holed, PrivateNetwork(rho=0.5, state_names=states))
        assert not model.missing_at_random and None in model.states["pay"]

    def test_a_file_has_the_variables_in_any_order(self, tmp_path):
        """Of different sizes, and the edges of the model are not in the order of the schema."""
        rng = np.random.default_rng(0)
        driver, n = rng.integers(0, 5, 4000), 4000
        frame = pd.DataFrame({"a": rng.integers(0, 2, n), "b": driver % 3, "c": rng.integers(0, 4, n), "d": driver})
        frame["b"] = frame["b"].astype(object).where(rng.random(n) > driver / 8, None)
        states = {"a": [0, 1], "b": [0, 1, 2, None], "c": list(range(4)), "d": list(range(5))}
        fitted = learn(frame, Budget(rho=1.0), states, missing_at_random={"b": ["d"]}, random_state=0)
        model = fitted.model_
        assert list(model.nodes) == list(states)
        model.posterior = fitted.posterior(20, random_state=0)
        for k, name in enumerate(("straight", "turned")):
            if k:  # another order of the nodes than that of the draws
                turned = model.posterior.model
                order = turned.cliques.variables[::-1]
                sizes = tuple(turned.cliques.cardinalities[::-1])
                layout = Cliques(order, sizes, turned.cliques.scopes)
                other = LogLinearModel(layout, turned.theta)
                model.posterior = dataclasses.replace(model.posterior, model=other)
            model.save(tmp_path / name)
            again = MarkovNetwork.load(tmp_path / name)
            for asked in (["b"], ["b", "d"], ["a", "c"]):
                pd.testing.assert_frame_equal(again.ask(asked).to_frame(), model.ask(asked).to_frame(), atol=1e-6)

    @pytest.mark.parametrize("required", [("age", "pay"), ("age", "pay", "sex")])
    def test_a_table_that_is_required_anyway_is_measured_once(self, required):
        _, holed = self._records()
        states = {"age": ["young", "old"], "pay": ["low", "high", None], "sex": ["F", "M"]}
        drivers = {"pay": ["age"]}
        fitted = learn(holed, Budget(rho=0.5), states, missing_at_random=drivers, required_edges=[required])
        measured = [set(record["variables"]) for _, record in fitted.report_.iterrows() if record["round"] == 0]
        assert measured == [set(required)]
        assert fitted.model_.states["pay"] == ["low", "high"]

    def test_pages_and_scores_say_what_was_assumed(self, tmp_path):
        _, holed = self._records()
        states = {"age": ["young", "old"], "pay": ["low", "high", None], "sex": ["F", "M"]}
        table = PrivateTable(holed, states, ledger=Budget(rho=1.0))
        fitted = learn(table, Budget(rho=0.5), missing_at_random={"pay": ["age"]})
        fitted.model_.explorer(tmp_path / "explore.html")
        assert "Missing values of pay were filled in" in (tmp_path / "explore.html").read_text()
        with pytest.raises(ValueError, match="left out of the comparison: score the observed_model_"):
            score_model(fitted, table, Budget(rho=0.5))
        assert str(table.ledger.left) == "0.5-zCDP"
        assert score_model(fitted.observed_model_, table, Budget(rho=0.5)).table["distance"].max() < 0.1

    def test_numbers_without_cells_keep_their_values(self):
        rng = np.random.default_rng(2)
        old = rng.random(6000) < 0.5
        pay = rng.normal(np.where(old, 3000, 1000), 200).clip(0, 4999)
        gone = rng.random(6000) < np.where(old, 0.8, 0.1)
        holed = pd.DataFrame({"old": old, "pay": np.where(gone, np.nan, pay)})
        schema = Schema({"old": [False, True], "pay": Number(0, 5000)})
        fitted = learn(holed, Budget(rho=1.0), schema, missing_at_random={"pay": ["old"]}, random_state=0)
        drawn = fitted.sample(20_000, random_state=0)
        assert drawn["pay"].notna().all()
        assert abs(drawn["pay"].mean() - pay.mean()) < 60 < abs(np.nanmean(holed["pay"]) - pay.mean())
        assert fitted.model_.schema["pay"].missing == "drop"
        assert fitted.posterior(20, random_state=0).models(1)[0].sample(50, random_state=0)["pay"].notna().all()

    def test_rules_are_obeyed(self):
        _, holed = self._records()
        states = {"age": ["young", "old"], "pay": ["low", "high", None], "sex": ["F", "M"]}
        schema = Schema(states, impossible=["age = young -> pay != high"])
        fitted = learn(holed, Budget(rho=1.0), schema, missing_at_random={"pay": ["age"]}, random_state=0)
        assert fitted.model_.query(["age", "pay"]).values[0, 1] == 0.0
        assert fitted.model_.schema.impossible == schema.impossible


def _without_a_table() -> MarkovNetwork:
    model = MarkovNetwork([("age", "pay"), ("pay", "sex")])
    names = {"age": ["young", "old", None], "pay": ["low", "high"], "sex": ["F", "M"]}
    model.add_factors(
        DiscreteFactor(["age", "pay"], [3, 2], np.ones(6), state_names={k: names[k] for k in ("age", "pay")}),
        DiscreteFactor(["pay", "sex"], [2, 2], np.ones(4), state_names={k: names[k] for k in ("pay", "sex")}),
    )
    return model


class TestRefused:
    @pytest.mark.parametrize(
        ("value", "error", "said"),
        [
            (["pay"], TypeError, "not a mapping of lists"),
            ({"pay": "age"}, TypeError, "not a mapping of lists"),
            ({"pay": []}, ValueError, "no drivers of"),
            ({"pay": ["pay"]}, ValueError, "drives itself"),
            ({"pay": ["job"], "job": ["pay"]}, ValueError, "drives itself"),
            ({"pay": ["height"]}, ValueError, "missing_at_random has the unknown variables 'height'; the schema"),
            ({"sex": ["age"]}, ValueError, "no state for what is missing"),
            ({"single": ["age"]}, ValueError, "one state beside None"),
        ],
    )
    def test_before_anything_is_spent(self, value, error, said):
        states = {**STATES, "single": ["x", None]}
        frame = pd.DataFrame({name: [known[0]] * 5 for name, known in states.items()})
        table = PrivateTable(frame, states, ledger=Budget(rho=1.0))
        with pytest.raises(error, match=said):
            learn(table, Budget(rho=1.0), missing_at_random=value)
        assert str(table.ledger.left) == "1-zCDP"

    def test_what_does_not_apply(self):
        drivers = {"job": ("age",)}
        for rule in ("age = young -> job = missing", "age = old -> job != missing"):
            with pytest.raises(ValueError, match="what does not apply"):
                complete_schema(Schema(STATES, impossible=[rule]), drivers)
        named = Schema(
            {**STATES, "job": ["a", "b", "none", None]}, impossible=["age = young -> job in {missing, none}"]
        )
        with pytest.raises(ValueError, match="a rule of the schema names what is missing"):
            complete_schema(named, drivers)
        schema = Schema(STATES, impossible=["age = young -> job != a"])
        assert complete_schema(schema, drivers)["job"] == ("a", "b")

    def test_other_options(self):
        frame = pd.DataFrame({name: [known[0]] * 5 for name, known in STATES.items()})
        for options, said in (
            ({"merge_rare": True}, "merge_rare"),
            ({"forbidden_edges": [("age", "pay")]}, "forbidden_edges"),
        ):
            with pytest.raises(ValueError, match=said):
                learn(frame, Budget(rho=1.0), STATES, missing_at_random={"pay": ["age"]}, **options)

    def test_the_schema_keeps_how_cells_are_read(self):
        schema = Schema(
            {"age": ["y", "o"], "pay": Number(0, 10, bins=2), "job": ["a", "b", None]},
            other={"job": None},
            missing=["?"],
            strip=True,
        )
        found = complete_schema(schema, {"pay": ("age",), "job": ("age",)})
        assert found["pay"].missing == "drop" and found["job"] == ("a", "b") and not found.other
        assert found.to_dict()["missing"] == ["?"] and found.to_dict()["strip"] is True

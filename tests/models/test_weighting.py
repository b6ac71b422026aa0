"""Models reweighted by a number: against sums over joint tables, draw by draw, and what is refused."""

import dataclasses
import itertools
import json
import shlex

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pgmpy_dp import Budget, MarkovNetwork, Number, Schema, learn, score_model, write_evidence
from pgmpy_dp.cli.application import app
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.posterior.query_intervals import Question
from pgmpy_dp.models.weighting import Weighting

WEIGHT = Number(0, 100, cuts=[5, 20, 50], spikes=[0])
SCHEMA = Schema({"ill": [False, True], "age": ["young", "mid", "old"], "w": WEIGHT, "sex": ["F", "M"]})
MEANS = np.array([0.0, 2.5, 12.5, 35.0, 75.0, 0.0])  # of the spike, the middles of cells, and of the state None
SIZES = tuple(SCHEMA.cardinality(name) for name in SCHEMA)


def network(scopes, seed: int, schema: Schema = SCHEMA) -> MarkovNetwork:
    cliques = Cliques(tuple(schema), tuple(map(schema.cardinality, schema)), scopes)
    theta = np.random.default_rng(seed).normal(size=cliques.n_cells)
    graph = nx.Graph()
    graph.add_nodes_from(schema)
    graph.add_edges_from(pair for scope in scopes for pair in itertools.combinations(scope, 2))
    return MarkovNetwork.from_log_linear(LogLinearModel(cliques, theta), graph, schema)


def weighted_table(joint: np.ndarray, means: np.ndarray = MEANS) -> np.ndarray:
    """The joint table of the other variables, by definition."""
    table = np.tensordot(joint, means, axes=(2, 0))
    return table / table.sum()


class TestLaw:
    @given(
        st.sampled_from(
            [
                (("ill", "w"), ("w", "age"), ("sex", "age")),
                (("ill", "age", "w"), ("w", "sex"), ("ill", "sex")),
                (("w",), ("ill", "age"), ("age", "sex")),
                (("ill", "age"), ("w", "age"), ("w",), ("sex",)),
                (("ill", "age", "w", "sex"),),
            ]
        ),
        st.integers(0, 2**32 - 1),
    )
    def test_the_others_have_the_weighted_sums_over_the_weight(self, scopes, seed):
        model = network(scopes, seed)
        made = model.reweighted("w")
        expected = weighted_table(model.query(list(SCHEMA)).values)
        assert list(made.nodes) == ["ill", "age", "sex"] and type(made) is MarkovNetwork and made.check_model()
        np.testing.assert_allclose(made.query(["ill", "age", "sex"]).values, expected, atol=1e-12)
        given_ill = expected[1].sum(axis=1) / expected[1].sum()
        np.testing.assert_allclose(made.query("age", {"ill": True}).values, given_ill, atol=1e-12)
        assert all(made.has_edge(*pair) for pair in itertools.combinations(model.neighbors("w"), 2))

    def test_what_is_said_of_it_are_moments_of_the_released_table(self):
        model = network((("ill", "w"), ("age",), ("sex",)), 1)
        weighting, table = model.reweighted("w").weighting, model.query("w").values
        assert weighting.mean == pytest.approx(table @ MEANS)
        np.testing.assert_allclose(weighting.means, MEANS)
        known = table[:-1] / table[:-1].sum()
        effect = known @ MEANS[:-1] ** 2 / (known @ MEANS[:-1]) ** 2
        assert weighting.design_effect == pytest.approx(effect) and effect > 1.2
        assert "(one without it not at all)" in weighting.words and f"design effect {effect:.3g}" in weighting.words

    def test_a_density_s_means_count_not_the_middles_of_cells(self):
        weights = np.exp(np.random.default_rng(2).normal(size=4000))
        frame = pd.DataFrame({"ill": [False, True] * 2000, "w": weights})
        model = learn(frame, Budget(rho=5.0), {"ill": [False, True], "w": Number(0, 50)}).model_
        weighting = model.reweighted("w").weighting
        np.testing.assert_allclose(weighting.means[:-1], model.within["w"].means)
        assert weighting.mean == pytest.approx(weights.mean(), rel=0.1)

    def test_cells_that_rules_forbid_stay_impossible(self):
        schema = Schema(
            {"ill": [False, True], "w": Number(0, 10, cuts=[5], missing="drop"), "sex": ["F", "M"]},
            impossible=["ill=True & sex=M", "w>=5 & sex=F"],
        )
        model = network((("ill", "w"), ("w", "sex"), ("ill", "sex")), 3, schema)
        table = np.tensordot(model.query(["ill", "sex", "w"]).values, [2.5, 7.5], axes=(2, 0))
        made = model.reweighted("w")
        np.testing.assert_allclose(made.query(["ill", "sex"]).values, table / table.sum(), atol=1e-12)
        assert made.query(["ill", "sex"]).values[1, 1] == 0 and len(made.impossible) == 1 < len(model.impossible)


@pytest.fixture(scope="module")
def learned() -> MarkovNetwork:
    """Of 4,000 persons, of whom the ill were sampled three times as often; sex has to do with nothing."""
    rng = np.random.default_rng(5)
    ill, sex, age = rng.random(4000) < 0.5, rng.choice(["F", "M"], 4000), rng.integers(3, size=4000)
    weight = np.where(ill, 10.0, 30.0) * rng.uniform(0.8, 1.25, 4000)
    weight[rng.random(4000) < 0.05] = np.nan
    frame = pd.DataFrame({"ill": ill, "sex": sex, "age": age, "w": weight})
    schema = {"ill": [False, True], "sex": ["F", "M"], "age": [0, 1, 2], "w": Number(1, 100)}
    estimator = learn(frame, Budget(rho=0.5), schema, required_edges=[("ill", "w")], forbidden_edges=[("sex", "w")])
    model = estimator.model_
    model.posterior = estimator.posterior(40, random_state=0)
    return model


class TestIntervals:
    def test_each_draw_is_weighted_by_its_density(self, learned):
        made, before = learned.reweighted("w"), learned.posterior
        question = made.posterior.weighted(Question.about({"ill": 2, "age": 3}, {}))
        answers = question.answers(made.posterior.tables([question])[0].draws)
        own = before.within["w"].same_draws(40)
        assert len({one.means.tobytes() for one in own}) == 40
        for k in range(40):
            means = np.append(own[k].means, 0.0)
            table = np.tensordot(before.draws.model(k).marginal(["ill", "age", "w"]), means, axes=(2, 0))
            np.testing.assert_allclose(answers[k], table / table.sum(), atol=1e-10)
        for k, model in enumerate(made.posterior.models(3)):
            np.testing.assert_allclose(model.query(["ill", "age"]).values, answers[k], atol=1e-10)

    def test_they_are_around_the_model_s_estimate_which_is_the_population_s(self, learned):
        answer = learned.reweighted("w").ask("ill")
        np.testing.assert_allclose(answer.shares, learned.reweighted("w").query("ill").values)
        assert answer.interval["lower"][1] < answer.shares[1] < answer.interval["upper"][1]
        assert answer.shares[1] == pytest.approx(0.25, abs=0.06) and learned.ask("ill").shares[1] > 0.45

    def test_what_was_not_measured_of_the_weight_counts(self, learned):
        """The same shares as if the table of sex and the weight had been measured have shorter intervals."""
        posterior = learned.reweighted("w").posterior
        measured = (*posterior.discrepancy.measured, frozenset(posterior._scope(["sex", "w"])))
        known = dataclasses.replace(posterior.discrepancy, measured=measured)
        wide, narrow = (one.interval(["sex"]) for one in (posterior, dataclasses.replace(posterior, discrepancy=known)))
        assert (wide["upper"] - wide["lower"] > 1.05 * (narrow["upper"] - narrow["lower"])).all()

    def test_numbers_of_records_are_sums_of_weights(self, learned):
        made = learned.reweighted("w")
        answer, part = made.ask("ill", counts=True), made.ask("sex", {"ill": True}, counts=True)
        total = answer.interval["count"].sum()
        assert total == pytest.approx(made.posterior.n_records * made.weighting.mean, rel=1e-9)
        assert total == pytest.approx(4000 * 0.95 * 20.5, rel=0.1)
        np.testing.assert_allclose(answer.interval["count"] / total, answer.shares)
        assert part.worth.records == pytest.approx(part.interval["count"].sum())
        assert made.posterior.n_records == learned.posterior.n_records

    def test_pairs_and_sampled_sets_are_of_the_others(self, learned):
        posterior = learned.reweighted("w").posterior
        pairs = posterior.uncertain_pairs()
        assert {*pairs["variable"], *pairs["other"]} == {"ill", "sex", "age"} and (pairs["error"] > 0).all()
        sets = posterior.sample(2000, 3, random_state=0)
        assert [list(one.columns) for one in sets] == [["ill", "sex", "age"]] * 3
        assert np.mean([one["ill"].mean() for one in sets]) == pytest.approx(0.25, abs=0.05)
        assert posterior.outside(["ill", "sex", "age"]).endswith("; the weight is one of them")

    def test_without_probes_they_are_those_of_the_draws(self):
        frame = pd.DataFrame({"a": [0, 1, 1] * 900, "w": np.tile([4.0, 9.0, 11.0], 900)})
        states = {"a": [0, 1], "w": Number(0, 12, cuts=[6], missing="drop")}
        model = learn(frame, Budget(rho=1.0), states, graph=[("a", "w")], draws=25).model_
        made = model.reweighted("w")
        drawn = model.posterior.draws.query(["a", "w"]) @ [3.0, 9.0]
        expected = np.quantile(drawn / drawn.sum(axis=1, keepdims=True), [0.05, 0.95], axis=0, method="weibull")
        answer = made.ask("a")
        np.testing.assert_allclose([answer.interval["lower"], answer.interval["upper"]], expected)


class TestUnmeasured:
    """An answer names the pairs whose tables were not measured, of the weight and what is asked about too."""

    def test_with_draws_the_weight_s_pairs_have_the_error_of_the_learned_table(self, learned):
        made = learned.reweighted("w")
        names = [
            frozenset(learned.posterior.draws.cliques.variables[i] for i in part)
            for part in learned.posterior.discrepancy.measured
        ]
        assert any({"ill", "w"} <= part for part in names) and not any({"sex", "w"} <= part for part in names)
        assert made.ask("ill").worth.unmeasured == []
        (pair,) = made.ask("sex").worth.unmeasured
        assert {pair.one, pair.other} == {"sex", "w"}
        (of_records,) = learned.ask(["sex", "w"]).worth.unmeasured
        assert pair.error == pytest.approx(of_records.error, rel=0.02)  # each draw has means of w of its own
        assert f"{pair.one} – {pair.other} (expected error" in str(made.ask("sex"))
        both = made.ask(["sex", "ill"]).worth.unmeasured
        assert [one.error for one in both] == sorted((one.error for one in both), reverse=True)

    def test_without_draws_the_tables_of_the_model_that_was_weighted_count(self, tmp_path):
        scopes = (("ill", "w"), ("w", "age"), ("sex", "age"))
        made = network(scopes, 4).reweighted("w")  # it has one table of ill and age, that nobody measured
        made.save(tmp_path / "m.npz")
        for asked in (made, MarkovNetwork.load(tmp_path / "m.npz"), made.copy()):
            found = [{one, other} for one, other, _ in asked.ask(["ill", "age", "sex"]).worth.unmeasured]
            assert found == [{"ill", "age"}, {"ill", "sex"}, {"sex", "w"}]
            assert asked.ask("ill").worth.unmeasured == []


class TestWords:
    def test_answers_pages_and_evidence_say_so(self, learned, tmp_path):
        made = learned.reweighted("w")
        words = made.weighting.words
        assert made.privacy == learned.privacy and words in str(made.ask("ill"))
        assert "; weighted by w; 0.5-zCDP" in repr(made) and "weighted" not in repr(learned)
        assert made.ask("ill").to_dict()["weighting"] == words and learned.ask("ill").to_dict()["weighting"] is None
        made.report(tmp_path / "one.html")
        made.report(tmp_path / "two.html", compare=learned)
        write_evidence(tmp_path, made)
        for page in ("one.html", "two.html", "evidence.html"):
            text = (tmp_path / page).read_text()
            assert words in text, page
        learned.report(tmp_path / "plain.html")
        assert "Weighted by" not in (tmp_path / "plain.html").read_text()

    def test_a_file_keeps_it(self, learned, tmp_path):
        made, file = learned.reweighted("w"), tmp_path / "m.npz"
        made.save(file)
        for read in (MarkovNetwork.load(file), MarkovNetwork.load(file).copy()):
            assert read.weighting.to_dict() == made.weighting.to_dict()
            ends, expected = (one.ask(["ill", "sex"], counts=True).interval for one in (read, made))
            assert ends.keys() == expected.keys()
            for name, value in expected.items():  # draws are kept as float32
                np.testing.assert_allclose(ends[name], value, rtol=1e-4)
        assert Weighting.from_dict(json.loads(json.dumps(made.weighting.to_dict()))).name == "w"


class TestRefusals:
    @pytest.mark.parametrize("weight", ["ill", "nothing", 3])
    def test_what_is_no_number_is_named(self, weight):
        with pytest.raises(ValueError, match=r"weight=.* must be one of .* from 0 on.*\['w'\]"):
            network((("ill", "w"), ("age",), ("sex",)), 0).reweighted(weight)

    @pytest.mark.parametrize("number", [Number(-1, 5, cuts=[2]), Number(-5, 0, cuts=[-2])])
    def test_a_weight_is_not_negative(self, number):
        schema = Schema({"ill": [False, True], "w": number})
        with pytest.raises(ValueError, match="lower bound of at least 0"):
            network((("ill", "w"),), 0, schema).reweighted("w")

    def test_it_is_weighted_once_and_records_are_not(self, learned, tmp_path):
        made = learned.reweighted("w")
        with pytest.raises(ValueError, match="weighted by 'w': reweight the model that it was made from"):
            made.reweighted("age")
        with pytest.raises(ValueError, match="weighted by 'w': complete"):
            made.complete({"age": ["sex"]})
        with pytest.raises(ValueError, match="weighted by 'w': this page"):
            made.explorer(tmp_path / "e.html")
        budget = Budget(rho=0.1)
        for asked in (
            lambda: score_model(made, pd.DataFrame(), budget),
            lambda: made.regress("ill ~ sex", pd.DataFrame(), budget),
            lambda: made.independence("ill", "sex", pd.DataFrame(), budget),
        ):
            with pytest.raises(
                ValueError, match=r"weighted by 'w': records are unweighted; pass .* from: regress has weight="
            ):
                asked()

    def test_alone_it_leaves_nothing(self):
        with pytest.raises(ValueError, match="beside other variables"):
            network((("w",),), 0, Schema({"w": WEIGHT})).reweighted("w")


@pytest.fixture(scope="module")
def file(learned, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("weights") / "m.npz"
    learned.save(path)
    return str(path)


class TestCommandLine:
    def run(self, command: str, code: int = 0):
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == code, result.output
        return result

    def test_query_sample_and_report_take_the_weight(self, learned, file, tmp_path):
        words = learned.reweighted("w").weighting.words
        told = json.loads(self.run(f"query {file} --variables ill --weight w --counts --json").stdout)
        assert told["weighting"] == words
        assert told["table"][1]["probability"] == pytest.approx(learned.reweighted("w").query("ill").values[1])
        out = tmp_path / "s.csv"
        self.run(f"sample {file} --n 4000 --out {out} --weight w")
        assert pd.read_csv(out)["ill"].mean() == pytest.approx(learned.reweighted("w").query("ill").values[1], abs=1e-3)
        self.run(f"sample {file} --n 500 --out {tmp_path / 'c.csv'} --weight w --copies 2")
        assert list(pd.read_csv(tmp_path / "c.2.csv")) == ["ill", "sex", "age"]
        self.run(f"report {file} --out {tmp_path / 'r.html'} --weight w")
        assert words in (tmp_path / "r.html").read_text()

    def test_a_weighted_file_is_described(self, learned, tmp_path):
        made = learned.reweighted("w")
        made.save(tmp_path / "w.npz")
        assert made.weighting.words in self.run(f"info {tmp_path / 'w.npz'}").stdout
        told = json.loads(self.run(f"query {tmp_path / 'w.npz'} --variables ill --json").stdout)
        assert told["weighting"] == made.weighting.words and "lower" in told["table"][0]

    def test_mistakes_are_told(self, file, tmp_path):
        assert "--weight is 'x'" in self.run(f"query {file} --variables ill --weight x", 2).stderr
        assert "must be one of the model's numbers" in self.run(f"query {file} --variables ill --weight sex", 2).stderr
        compare = self.run(f"report {file} --compare {file} --out {tmp_path / 'x.html'} --weight w", 2)
        assert "--weight is 'w'" in compare.stderr

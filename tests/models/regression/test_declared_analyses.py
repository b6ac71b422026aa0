"""Regressions around a model: against statsmodels, how often intervals hold, what is refused before any charge."""

from __future__ import annotations

import json
import typing

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from pgmpy.factors.discrete import DiscreteFactor
from scipy.special import expit

from pgmpy_dp import Budget, Ledger, MarkovNetwork, Number, PrivateTable, Schema, learn, plan
from pgmpy_dp.models.placed_model import PlacedModel
from pgmpy_dp.models.regression.formula import States, analysis_of
from pgmpy_dp.models.regression.independence_test import IndependenceTest, wald
from pgmpy_dp.models.regression.regression_fit import Regression
from pgmpy_dp.models.regression.score_equations import ScoreEquations
from pgmpy_dp.models.regression.score_rounds import question
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.operators.score_sums import GRID, POINT
from pgmpy_dp.private.sensitive import Release

STATES = {"age": Number(20, 60, cuts=[30, 40, 50], missing="drop"), "job": ["a", "b", "c"], "ill": ["no", "yes"]}
SCHEMA = Schema(STATES)
PLENTY = Budget(rho=1e5)
CENTRES = np.array([25.0, 35.0, 45.0, 55.0])


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    age, job = rng.integers(4, size=n), rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    ill = rng.random(n) < expit(-2.0 + 0.04 * CENTRES[age] + 0.5 * (job == 1) - 0.7 * (job == 2))
    return pd.DataFrame({"age": CENTRES[age], "job": np.array(["a", "b", "c"])[job], "ill": np.where(ill, "yes", "no")})


def network(weak=0.3):
    """A model that is near the records, and off by some standard errors."""
    rng = np.random.default_rng(1)
    frame = records(3000, 5)
    table = np.full((4, 3, 2), 1.0)
    np.add.at(
        table,
        (
            np.searchsorted(CENTRES, frame["age"]),
            frame["job"].map({"a": 0, "b": 1, "c": 2}),
            (frame["ill"] == "yes").astype(int),
        ),
        1.0,
    )
    table *= np.exp(weak * 0.3 * rng.normal(size=table.shape))
    model = MarkovNetwork(nx.complete_graph(list(STATES)))
    names = {name: list(SCHEMA.states[name]) for name in STATES}
    model.add_factors(DiscreteFactor(list(STATES), [4, 3, 2], table / table.sum(), state_names=names))
    model.schema = SCHEMA
    return model


def design(frame, formula="logit"):
    one = np.ones(len(frame))
    return np.stack([one, frame["age"], frame["job"] == "b", frame["job"] == "c"], axis=1).astype(float)


class TestAgainstStatsmodels:
    def test_a_logit_without_noise_is_theirs(self):
        frame = records(20_000)
        fit = network().regress("ill ~ age + job", frame, PLENTY, rounds=4)
        theirs = sm.Logit((frame["ill"] == "yes").astype(float), design(frame)).fit(disp=0, cov_type="HC0")
        assert list(fit.params.index) == ["Intercept", "age", "job[T.b]", "job[T.c]"]
        assert np.abs((fit.params.to_numpy() - theirs.params.to_numpy()) / theirs.bse.to_numpy()).max() < 0.05
        assert np.abs(fit.bse.to_numpy() / theirs.bse.to_numpy() - 1).max() < 0.1
        assert np.allclose(fit.tvalues, fit.params / fit.bse) and fit.pvalues["age"] < 1e-10
        assert fit.status == "good" and abs(fit.nobs - 20_000) < 1

    def test_a_linear_one_with_an_interaction_is_theirs(self):
        frame = records(20_000)
        fit = network().regress("age ~ job*ill", frame, PLENTY, family="linear", rounds=3)
        ill = (frame["ill"] == "yes").to_numpy(dtype=float)
        b, c = ((frame["job"] == name).to_numpy(dtype=float) for name in "bc")
        x = np.stack([np.ones(len(frame)), b, c, ill, b * ill, c * ill], axis=1)
        theirs = sm.OLS(frame["age"], x).fit(cov_type="HC0")
        assert fit.params.index[-1] == "job[T.c]:ill[T.yes]"
        assert np.abs((fit.params.to_numpy() - theirs.params.to_numpy()) / theirs.bse.to_numpy()).max() < 0.05
        assert np.abs(fit.bse.to_numpy() / theirs.bse.to_numpy() - 1).max() < 0.1

    def test_means_are_means(self):
        frame = records(20_000)
        fit = network().compare_means("age", "job", frame, PLENTY)
        means = frame.groupby("job")["age"].mean()
        assert fit.params.to_numpy() == pytest.approx([means["a"], *(means[["b", "c"]] - means["a"])], abs=0.01)

    def test_scores_and_success_are_as_declared(self):
        frame = records(20_000)
        scores = {"job": {"a": 0, "b": 1, "c": 5}}
        fit = network().regress("ill ~ job", frame, PLENTY, scores=scores, success="no", rounds=4)
        x = np.stack([np.ones(len(frame)), frame["job"].map(scores["job"])], axis=1)
        theirs = sm.Logit((frame["ill"] == "no").astype(float), x).fit(disp=0)
        assert fit.params.to_numpy() == pytest.approx(theirs.params.to_numpy(), abs=0.002)
        assert fit.modelled == "the probability that ill is no"


def test_a_number_counts_as_the_mean_of_its_cell_by_what_was_released():
    """The middle of a last cell is far from its numbers: it would make the slope half as large."""
    rng = np.random.default_rng(0)
    x = np.minimum(rng.gamma(1.2, 6.0, 8000), 300.0)
    frame = pd.DataFrame({"x": x, "y": np.clip(x / 3 + rng.normal(20, 3, 8000), 0, 130)})
    model = learn(frame, Budget(rho=1.0), Schema({"x": Number(0, 300), "y": Number(0, 130)}), random_state=1).model_
    levels, places = PlacedModel.of_network(model).levels, {}
    for name in frame:
        places[name] = np.searchsorted(model.numbers[name].edges[1:-1], frame[name], side="right")
        held = np.maximum(np.bincount(places[name], minlength=len(levels[name])), 1)
        means = np.bincount(places[name], frame[name], len(held)) / held
        assert np.abs(levels[name] - means)[held > 200].max() < 0.5
    slope = model.regress("y ~ x", frame, PLENTY, family="linear", rounds=4).params["x"]
    theirs, middles = (
        np.polyfit(of["x"][places["x"]], of["y"][places["y"]], 1)[0]
        for of in (levels, {n: one.centres for n, one in model.numbers.items()})
    )
    assert slope == pytest.approx(theirs, abs=0.002) and 0.3 < theirs < 0.34 and middles < 0.25


@pytest.mark.parametrize("how", [{}, {"unit": "who", "rows_per_unit": "shares"}, {"unit": "who", "rows_per_unit": 2}])
def test_intervals_hold_and_are_as_wide_as_was_planned(how):
    """Of persons with two rows that are alike, too: there a sample of n rows is one of half as many."""
    truth = np.array([-2.0, 0.04, 0.5, -0.7])
    covered, widths, n = [], [], 4000
    budget = Budget(rho=0.02)
    model = network()
    spent = {"rows_per_unit": how["rows_per_unit"]} if how else {}
    foretold = plan(model, budget, n if how.get("rows_per_unit") != 2 else 2 * n, formula="ill ~ age + job", **spent)
    for seed in range(60):
        frame = records(n, 100 + seed)
        if how:
            frame = pd.concat([frame.assign(who=np.arange(n))] * 2, ignore_index=True)
        fit = model.regress("ill ~ age + job", frame, budget, **how)
        low, high = fit.conf_int(0.1).to_numpy().T
        covered.append((low <= truth) & (truth <= high))
        widths.append(fit.bse)
        assert fit.status == "good"
    assert 0.83 <= np.mean(covered) <= 0.97  # .9, by 240 of which 4 at a time are of one sample
    assert np.abs(np.median(widths, axis=0) / foretold.table["bse"] - 1).max() < 0.15


WEIGHED = Schema({**STATES, "w": Number(0, 40, cuts=[10, 20, 30], spikes=[0])})
CELLS = np.array([0.0, 5.0, 15.0, 25.0, 35.0])  # what the weights of a cell count as


def survey(n, seed=0):
    """Records of whom the ill were sampled three times as often, with weights that say so, and some without any."""
    rng = np.random.default_rng([seed, 1])
    population = records(4 * n, seed)
    ill = population["ill"] == "yes"
    population["w"] = np.where(ill, 5.0, rng.choice([5.0, 25.0], 4 * n))  # of the others 15 on average
    strange = rng.random(4 * n) < 0.04
    population.loc[strange, ["ill", "w"]] = "yes", 0.0
    population["w"] = population["w"].mask(rng.random(4 * n) < 0.04)
    return population[rng.random(4 * n) < np.where(ill, 0.6, 0.2)].reset_index(drop=True)


@pytest.fixture(scope="module")
def weighed():
    return learn(
        survey(4000, 77), Budget(rho=2.0), WEIGHED, random_state=0, graph=nx.complete_graph(list(WEIGHED))
    ).model_


class TestWeights:
    """Weighted scores: the estimates of the population that the weights stand for."""

    @pytest.mark.parametrize("family", ["logit", "linear"])
    def test_without_noise_they_are_statsmodels_with_robust_errors(self, weighed, family):
        frame = survey(8000)
        formula = "ill ~ age + job" if family == "logit" else "age ~ job"
        fit = weighed.regress(formula, frame, PLENTY, family=family, weight="w", rounds=4)
        known = frame[frame["w"].notna()]
        cell = CELLS[np.where(known["w"] == 0, 0, 1 + np.searchsorted([10, 20, 30], known["w"], side="right"))]
        if family == "logit":
            x, y = design(known), (known["ill"] == "yes").to_numpy(dtype=float)
            theirs = sm.GLM(y, x, family=sm.families.Binomial(), freq_weights=cell).fit()
        else:
            parts = [known["job"] == "b", known["job"] == "c"]
            x, y = np.stack([np.ones(len(known)), *parts], axis=1).astype(float), known["age"].to_numpy()
            theirs = sm.WLS(y, x, weights=cell).fit()
        mean = theirs.predict(x)
        slope = mean * (1 - mean) if family == "logit" else np.ones(len(x))
        inverse, score = np.linalg.inv((x * (cell * slope)[:, None]).T @ x), x * (cell * (y - mean))[:, None]
        errors = np.sqrt(np.diag(inverse @ (score.T @ score) @ inverse))
        assert np.abs((fit.params.to_numpy() - theirs.params) / errors).max() < 0.05
        assert np.abs(fit.bse.to_numpy() / errors - 1).max() < 0.1
        assert abs(fit.nobs - len(known)) < 1 and fit.of_whom.endswith(", w") and "weighted by w" in str(fit)
        unweighted = weighed.regress(formula, frame, PLENTY, family=family, rounds=4)
        assert np.abs((unweighted.params - fit.params) / errors).max() > 3

    def test_intervals_hold_for_the_population_and_are_as_wide_as_was_planned(self, weighed):
        truth, covered, errors, budget = np.array([-2.0, 0.04, 0.5, -0.7]), [], [], Budget(rho=0.05)
        for seed in range(25):
            fit = weighed.regress("ill ~ age + job", survey(3000, 200 + seed), budget, weight="w")
            low, high = fit.conf_int(0.1).to_numpy().T
            covered.append((low <= truth) & (truth <= high))
            errors.append(fit.bse)
        assert 0.82 <= np.mean(covered) <= 0.97
        told = plan(weighed, budget, int(fit.nobs), formula="ill ~ age + job", weight="w").table["bse"]
        assert np.abs(np.median(errors, axis=0) / told - 1).max() < 0.2

    def test_scores_of_strata_are_weights_too(self, weighed):
        frame = survey(4000)
        scores = {"job": {"a": 1.0, "b": 2.0, "c": 0.0}}
        fit = weighed.regress("ill ~ age", frame, PLENTY, weight="job", scores=scores, rounds=4)
        weights = frame["job"].map(scores["job"])
        theirs = sm.GLM(
            (frame["ill"] == "yes").astype(float),
            design(frame)[:, :2],
            family=sm.families.Binomial(),
            freq_weights=weights,
        ).fit()
        assert fit.params.to_numpy() == pytest.approx(theirs.params.to_numpy(), abs=0.005)

    @pytest.mark.parametrize("how", [{"weight": "job"}, {"weight": "age"}, {"weight": "nobody"},
                                     {"weight": "job", "scores": {"job": {"a": -1, "b": 1, "c": 0}}},
                                     {"weight": "job", "scores": {"job": {"a": 0, "b": 0, "c": 0}}}])  # fmt: skip
    def test_what_is_no_weight_is_named_before_any_charge(self, weighed, how):
        table = PrivateTable(survey(100), WEIGHED, ledger=PLENTY)
        with pytest.raises(ValueError, match=r"weight(=| names )'(job|age|nobody)'"):
            weighed.regress("ill ~ age", table, PLENTY, **how)
        assert not table.ledger.entries


def test_records_that_lack_a_value_are_left_out_and_counted():
    states = {**STATES, "age": Number(20, 60, cuts=[30, 40, 50]), "job": ["a", "b", "c", "", None]}
    frame = records(20_000)
    rng = np.random.default_rng(3)
    # Whether y is there depends on age: coefficients of complete records are the same.
    lost = rng.random(len(frame)) < np.where(frame["age"] > 40, 0.6, 0.2)
    frame.loc[lost, "job"] = np.where(rng.random(lost.sum()) < 0.5, None, "")
    model = MarkovNetwork(nx.complete_graph(list(STATES)))
    schema = Schema(states)
    shape = [len(schema.states[name]) for name in STATES]
    names = {name: list(schema.states[name]) for name in STATES}
    values = np.ones(shape)
    values[:4, :3] += 200 * network().marginal(list(STATES)).values
    model.add_factors(DiscreteFactor(list(STATES), shape, values, state_names=names))
    model.schema = schema
    fit = model.regress("ill ~ age + job", frame, PLENTY, rounds=5)
    kept = frame[~lost]
    theirs = sm.Logit((kept["ill"] == "yes").astype(float), design(kept)).fit(disp=0)
    assert abs(fit.nobs - len(kept)) < 1 and "a value of each of ill, age, job" in fit.of_whom
    assert np.abs((fit.params.to_numpy() - theirs.params.to_numpy()) / theirs.bse.to_numpy()).max() < 0.2


def test_noise_has_the_size_that_is_said():
    """Of one set of records, so that all that differs between fits is noise; a third more or less would be seen."""
    frame, model, budget = records(4000), network(), Budget(rho=0.01)
    fits = [model.regress("ill ~ age + job", frame, budget) for _ in range(150)]
    spread = np.std([fit.params for fit in fits], axis=0)
    ratio = spread / np.median([fit.bse_noise for fit in fits], axis=0)
    assert (ratio > 0.8).all() and (ratio < 1.25).all()


class TestWhatItSaysWhereItCannot:
    def test_a_model_that_is_far_off_has_no_intervals(self):
        model = network()
        model.factors[0].values = np.roll(model.factors[0].values, 1, axis=0) ** 2
        fit = model.regress("ill ~ age + job", records(20_000), Budget(rho=0.5), rounds=1)
        assert fit.status == "far" and fit.bse.isna().all() and "refused" in str(fit)

    def test_a_weak_budget_says_so_and_shows_the_model(self):
        fit = network().regress("ill ~ age + job", records(4000), Budget(rho=0.00005))
        assert fit.status in ("weak", "few") and "model" in str(fit) and fit.network_params.notna().all()

    def test_hardly_any_records_have_no_intervals(self):
        fit = network().regress("ill ~ age + job", records(20), Budget(rho=0.01))
        assert fit.status == "few" and fit.conf_int().isna().all(axis=None)

    def test_a_rare_cell_has_no_interval_and_the_others_stand(self):
        frame = records(5000)
        frame = pd.concat([frame[frame["job"] != "c"], frame[frame["job"] == "c"][:3]])
        model = network()
        model.factors[0].values = model.factors[0].values * np.array([1.0, 1.0, 0.002])[None, :, None]
        fit = model.regress("ill ~ age + job", frame, Budget(rho=0.02))
        assert np.isnan(fit.bse["job[T.c]"]) and fit.bse[["age", "job[T.b]"]].notna().all()
        assert "a rare cell" in str(fit)


WRONG = [
    ({"formula": "ill ~ log(age)"}, "'log(age)', which is not read"),
    ({"formula": "ill ~ age - 1"}, "not read"),
    ({"formula": "ill ~ age**2"}, "not read"),
    ({"formula": "ill"}, "not read"),
    ({"formula": "ill ~ age + ("}, "not read"),
    ({"formula": "ill ~ " + "(" * 5000 + "age" + ")" * 5000}, "not read"),
    ({"formula": "ill ~ weight"}, "names 'weight'"),
    ({"formula": "ill ~ ill"}, "on both sides"),
    ({"formula": "ill ~ age:job"}, "without"),
    ({"formula": "job ~ age"}, "pass success="),
    ({"formula": "job ~ age", "success": "z"}, "success='z'"),
    ({"formula": []}, "empty list"),
    ({"formula": 3}, "formula"),
    ({"family": "probit"}, "family='probit'"),
    ({"rounds": 0}, "rounds=0"),
    ({"scores": {"job": {"a": 1}}}, "scores['job'] is not for the states"),
    ({"scores": [1]}, "scores is no mapping"),
    ({"adjacency": "edge"}, "edge"),
    ({"unit": "nobody"}, "nobody"),
]


@pytest.mark.parametrize(("change", "says"), WRONG)
def test_bad_input_is_refused_before_any_charge(change, says, tmp_path):
    arguments = {"formula": "ill ~ age", **change}
    ledger = Ledger.open(tmp_path / "ledger.json", Budget(rho=1.0))
    data = PrivateTable(records(100), SCHEMA, ledger=ledger)
    with pytest.raises((ValueError, TypeError)) as raised:
        network().regress(arguments.pop("formula"), data, Budget(rho=0.1), **arguments)
    assert says in str(raised.value) and not ledger.entries


def test_a_model_that_nothing_is_asked_around():
    edgeless = MarkovNetwork(nx.empty_graph(["age", "ill"]))
    for name in ("age", "ill"):
        states = list(SCHEMA.states[name])
        edgeless.add_factors(DiscreteFactor([name], [len(states)], np.ones(len(states)), state_names={name: states}))
    edgeless.schema = SCHEMA.subset(["age", "ill"])
    with pytest.raises(ValueError, match="no edges"):
        edgeless.regress("ill ~ age", records(100), PLENTY)
    model = network()
    model.missing_at_random = {"age": ("job",)}
    with pytest.raises(ValueError, match="has no missing values of"):
        model.regress("ill ~ age", records(100), PLENTY)
    with pytest.raises(TypeError, match="release=3 is a int"):
        Regression.every(3)
    whole = PrivateTable(records(100), SCHEMA, ledger=PLENTY)
    for ask in (
        lambda **how: network().regress("ill ~ age", **how),
        lambda **how: network().independence("ill", "job", **how),
    ):
        with pytest.raises(ValueError, match="differs from the PrivateTable's"):
            ask(df=whole, budget=PLENTY, schema={**STATES, "job": ["a", "b", "c", "d"]})
    assert not whole.ledger.entries
    table = PrivateTable(records(100), SCHEMA.subset(["age", "ill"]), ledger=PLENTY)
    with pytest.raises(ValueError, match="lacks"):
        network().regress("ill ~ age", table, PLENTY)
    wide = {"y": [0, 1], **{f"v{k}": list(range(25)) for k in range(3)}}
    with pytest.raises(ValueError, match="leave out or merge"):
        analysis_of("y ~ v0 + v1 + v2", States(wide, {}, {}, {}), "logit")


class TestOneAccount:
    def test_costs_add_up_with_the_models_and_another_ledger_is_refused(self, tmp_path):
        from pgmpy_dp import learn

        ledger = Ledger.open(tmp_path / "one.json", Budget(rho=0.2))
        table = PrivateTable(records(2000), SCHEMA, ledger=ledger)
        model = learn(table, Budget(rho=0.1)).model_
        fit = model.regress("ill ~ age", table, Budget(rho=0.05))
        assert fit.privacy.total.rho == pytest.approx(0.15) and len(fit.privacy.entries) == 2
        other = PrivateTable(records(2000), SCHEMA, ledger=Ledger.open(tmp_path / "other.json", Budget(rho=0.2)))
        with pytest.raises(ValueError, match="another ledger paid"):
            model.regress("ill ~ age", other, Budget(rho=0.05))
        alone = model.regress("ill ~ age", other, Budget(rho=0.05), others=True)
        assert alone.privacy.total.rho == pytest.approx(0.05)
        with pytest.raises(ValueError, match="adjacency='add_remove'"):
            model.regress("ill ~ age", records(100), PLENTY, adjacency="replace_one", n_records=100)
        with pytest.raises(ValueError, match="unit=None"):
            model.regress("ill ~ age", records(100).assign(who=1), PLENTY, unit="who")

    def test_noise_adds_up_with_what_paid_for_the_model(self):
        """One column has less noise by Laplace, which a ledger of zCDP would count twenty times as much for."""
        ledger = Ledger(Budget(epsilon=3.0, delta=1e-7))
        table = PrivateTable(records(2000), SCHEMA, ledger=ledger)
        model = learn(table, Budget(epsilon=1.0, delta=1e-8), random_state=0).model_
        asked = Budget(epsilon=1.0, delta=1e-8)
        fits = [model.regress("ill ~ age", table, asked), model.independence("ill", "job", table, asked)]
        assert [type(entry.cost) for entry in ledger.entries[1:]] == [ZCDP, ZCDP]
        told = plan(model, asked, 2000, formula="ill ~ age").table["bse_noise"].to_numpy()
        assert told == pytest.approx(fits[0].bse_noise.to_numpy(), rel=0.2)

    def test_files_reports_and_evidence_tell_the_same(self, tmp_path):
        from pgmpy_dp import learn, write_evidence

        model = learn(records(4000), Budget(rho=0.1), SCHEMA).model_
        fits = model.regress(["ill ~ age + job", "ill ~ age"], records(4000), Budget(rho=0.1))
        fits[1].save(tmp_path / "fit.npz")
        again = [Regression.load(tmp_path / "fit.npz", k) for k in (0, 1)]
        assert [one.summary() for one in again] == [one.summary() for one in fits]
        assert json.loads(json.dumps(fits[0].to_dict()))["coefficients"][1]["coef"] == fits[0].params.iloc[1]
        model.report(tmp_path / "page.html", regressions=[fits[0], Release.load(tmp_path / "fit.npz")])
        page = (tmp_path / "page.html").read_text()
        low, high = fits[0].conf_int(0.1).loc["age"]
        assert f"{low:.4g} to {high:.4g}" in page and page.count("<h3>ill ~ age</h3>") == 1
        with pytest.raises(ValueError, match="of another model"):
            network().report(tmp_path / "no.html", regressions=fits)
        write_evidence(tmp_path / "evidence", model, regressions=fits)
        assert "Beside it ill ~ age + job, ill ~ age was released" in (tmp_path / "evidence/evidence.html").read_text()

    def test_an_interrupted_regression_hands_over_what_was_paid_for(self, monkeypatch):
        true, calls = TableCurator.ask, []

        def ask(self, *arguments, **options):
            calls.append(arguments)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return true(self, *arguments, **options)

        monkeypatch.setattr(TableCurator, "ask", ask)
        with pytest.raises(KeyboardInterrupt) as raised:
            network().regress("ill ~ age", records(200), PLENTY)
        assert raised.value.release.public["interrupted"] and len(raised.value.release.values) == 1
        with pytest.raises(ValueError, match="the release has 0"):
            Regression.of(raised.value.release)


class TestIndependence:
    def test_rejects_at_its_level_and_has_power(self):
        rng = np.random.default_rng(0)
        rejected = []
        for dependent in (0.0, 0.3):
            pvalues = []
            for _ in range(300):
                a = rng.integers(4, size=3000)
                b = np.where(rng.random(3000) < dependent, a % 3, rng.integers(3, size=3000))
                counts = np.zeros((4, 3))
                np.add.at(counts, (a, b), 1.0)
                statistic, df = wald(counts + rng.normal(0, 20, counts.shape), 400.0)
                pvalues.append(statistic)
                assert df == 6
            rejected.append(np.mean(np.array(pvalues) > 10.645))  # .1 of chi-squared
        assert 0.05 <= rejected[0] <= 0.15 and rejected[1] > 0.95

    def test_of_a_network(self, tmp_path):
        test = network().independence("job", "ill", records(20_000), Budget(rho=0.1))
        assert test.pvalue < 1e-6 and test.df == 2 and test.table.shape == (3, 2)
        test.save(tmp_path / "test.npz")
        assert str(IndependenceTest.load(tmp_path / "test.npz")) == str(test)
        with pytest.raises(ValueError, match="two variables"):
            network().independence("job", "job", records(10), Budget(rho=0.1))


def test_the_shape_keeps_every_score_within_one_and_is_optimal():
    equations = ScoreEquations.of(
        analysis_of("ill ~ age*job", States(SCHEMA.states, {"age": CENTRES}, {}, {}), "logit"),
        network().to_log_linear(),
    )
    b = equations.root(1e-4)
    m, l1 = equations.shape(b)
    u = equations.largest_scores(b) @ m
    assert np.sqrt((u**2).sum(axis=1)).max() == pytest.approx(1.0) and np.abs(u).sum(axis=1).max() == pytest.approx(l1)
    # Duality: no shape has less than the optimum of weights, which the largest norm bounds from above.
    inverse = equations.back @ np.linalg.inv(equations.information(b))
    weights = 1 / np.diag(equations.sampling(b))
    ours = (np.diag(inverse @ np.linalg.inv(m @ m) @ inverse.T) * weights).sum()
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = m + 0.05 * np.abs(m).max() * rng.normal(size=m.shape)
        other /= np.sqrt(((equations.largest_scores(b) @ other.T) ** 2).sum(axis=1).max())
        theirs = (np.diag(inverse @ np.linalg.inv(other.T @ other) @ inverse.T) * weights).sum()
        assert ours <= 1.02 * theirs


def pair(n, seed):
    """Two covariates that go together closely, and a response to both; and their states."""
    rng = np.random.default_rng(seed)
    age = rng.integers(8, size=n)
    years = np.clip(age + rng.integers(-1, 2, size=n), 0, 7)
    ill = rng.random(n) < expit(-1.0 + 0.8 * (age - 3.5) - 0.6 * (years - 3.5))
    return pd.DataFrame({"age": age, "years": years, "ill": np.where(ill, "yes", "no")})


def blurred():
    """A model of `pair` whose cells hold a tenth of records that are anywhere, as those of noisy tables do."""
    states = {"age": list(range(8)), "years": list(range(8)), "ill": ["no", "yes"]}
    frame, table = pair(200_000, 0), np.zeros((8, 8, 2))
    np.add.at(table, (frame["age"], frame["years"], (frame["ill"] == "yes").astype(int)), 0.9 / len(frame))
    model = MarkovNetwork(nx.complete_graph(list(states)))
    table += 0.1 / table.size
    model.add_factors(DiscreteFactor(list(states), [8, 8, 2], table, state_names=states))
    model.schema = Schema(states)
    return model


class TestCovariatesThatGoTogetherClosely:
    scores: typing.ClassVar = {name: {k: k for k in range(8)} for name in ("age", "years")}

    def test_their_coefficients_are_within_their_intervals(self):
        """With the model's own products steps are too short: of the records' coefficients intervals hold .28."""
        frame, model = pair(6000, 1), blurred()
        x = sm.add_constant(frame[["age", "years"]].astype(float))
        theirs = sm.Logit((frame["ill"] == "yes").astype(float), x).fit(disp=0)
        fits = [
            model.regress("ill ~ age + years", frame, Budget(rho=0.03), scores=self.scores, random_state=seed)
            for seed in range(24)
        ]
        off = np.array([(fit.params.to_numpy() - theirs.params.to_numpy()) / fit.bse_noise.to_numpy() for fit in fits])
        assert (np.abs(off) < 1.645).mean() > 0.75 and np.abs(off.mean(axis=0)).max() < 1.2
        sampling = np.median([np.sqrt(np.diag(fit.cov_params(noise=False))) for fit in fits], axis=0)
        assert np.abs(sampling / theirs.bse.to_numpy() - 1).max() < 0.17

    @pytest.mark.parametrize("family", ["logit", "linear"])
    def test_exact_products_are_the_records(self, family):
        """What cells add is what the operator adds for their records; and probabilities then agree with their means."""
        frame, scored = pair(5000, 2), PlacedModel.of_network(blurred())
        analysis = analysis_of("ill ~ age + years", States.checked(scored, self.scores), family, "yes")
        equations = ScoreEquations.of(analysis, scored.model)
        asked = question(equations, np.array([-0.2, 1.0, -1.0]), {}, products=True)
        table = PrivateTable(frame, blurred().schema, ledger=PLENTY)
        sums = TableCurator(table, Budget(rho=1e5), what="products", random_state=0, fine=True).ask(asked, 1)
        made = equations.with_products(asked, sums[:-1] / (GRID * len(frame)), 1e-12)
        x, v = made.x, np.array(asked.point) / POINT
        ours = (made.probability[:, None] * x).T @ (x @ v)
        records = analysis.design(
            np.stack([(frame["ill"] == "yes"), frame["age"], frame["years"]], axis=1) * 1, scaled=True
        )
        assert ours == pytest.approx(records.T @ (records @ v) / len(frame), abs=0.005)
        before = (equations.probability[:, None] * x).T @ (x @ v)
        assert np.abs(before - ours).max() > 0.01

"""PrivateLogisticRegression: what it learns, in scikit-learn's form, steps as published, and what it refuses."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.base
from scipy.special import expit

from pgmpy_dp import Budget, Ledger, Number, PrivateTable, Release
from pgmpy_dp.estimators import PrivateIsing, PrivateLogisticRegression, PrivatePairwise
from pgmpy_dp.fields.frank_wolfe import weights_of
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.theory.sample_complexity import sparse_logistic_regression

SCHEMA = {
    "dose": Number(0, 10, missing="drop"),
    "site": ["north", "east", "south"],
    "old": [0, 1],
    "ill": ["no", "yes"],
}
WEIGHTS = {("dose",): -2.0, ("site", "north"): 1.0, ("site", "east"): 0.0, ("site", "south"): 0.0, ("old",): 0.5}
ONE = {"target": "ill", "radius": 6.0, "state_names": SCHEMA}


def made_up(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    dose, site, old = rng.uniform(0, 10, n), rng.choice(SCHEMA["site"], n), rng.integers(0, 2, n)
    logits = -2.0 * (dose / 5 - 1) + (site == "north") + 0.5 * (2 * old - 1) - 0.3
    return pd.DataFrame(
        {"dose": dose, "site": site, "old": old, "ill": np.where(rng.random(n) < expit(logits), "yes", "no")}
    )


DATA = made_up(20_000)


@pytest.mark.parametrize(
    "how",
    [{"rho": 1e6, "n_iter": 300}, {"epsilon": 1e5, "n_iter": 300}, {"rho": 1e6, "n_iter": 300, "published": True}],
)
def test_weights_are_those_of_the_law_where_noise_is_small(how):
    fitted = PrivateLogisticRegression(**ONE, **how).fit(DATA)
    assert fitted.terms_ == list(WEIGHTS)
    weights = np.append(fitted.coef_, fitted.intercept_)
    assert np.abs(weights).sum() <= 6.0 + 1e-9
    # The three indicators and the constant are dependent: the odds are not.
    logits = fitted.decision_function(DATA)
    site = DATA["site"].eq("north")
    true = -2.0 * (DATA["dose"] / 5 - 1) + site + 0.5 * (2 * DATA["old"] - 1) - 0.3
    assert np.sqrt(np.mean((logits - true) ** 2)) < 0.15
    assert fitted.coef_[0, 0] == pytest.approx(-2.0, abs=0.2)


def test_as_scikit_learn_s_classifiers():
    features, ill = DATA.drop(columns="ill"), DATA["ill"]
    fitted = PrivateLogisticRegression(**ONE, rho=1.0).fit(features, ill)
    assert (
        fitted.classes_.tolist() == ["no", "yes"] and fitted.coef_.shape == (1, 5) and fitted.intercept_.shape == (1,)
    )
    assert fitted.feature_names_in_.tolist() == ["dose", "site", "old"] and fitted.n_features_in_ == 3
    told = fitted.predict_proba(features)
    assert told.shape == (len(DATA), 2) and np.allclose(told.sum(axis=1), 1)
    assert (fitted.predict(features) == fitted.classes_[told.argmax(axis=1)]).all()
    best = np.mean((expit(-2.0 * (DATA["dose"] / 5 - 1)) > 0.5) == ill.eq("yes"))
    assert fitted.score(features, ill) > best - 0.02
    assert sklearn.base.clone(fitted).get_params() == fitted.get_params()
    assert pickle.loads(pickle.dumps(fitted)).predict(features[:3]).tolist() == fitted.predict(features[:3]).tolist()
    other_order = fitted.predict_proba(features[["old", "dose", "site"]].assign(ill="?"))  # not read
    assert np.array_equal(other_order, told)


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 0.5}, {"epsilon": 1.0, "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_scales_are_those_of_the_proof(budget, adjacency):
    n_records = 300 if adjacency == "replace_one" else None
    release = (
        PrivateLogisticRegression(**ONE, **budget, adjacency=adjacency, n_records=n_records, n_iter=11)
        .fit(DATA[:300])
        .release_
    )
    guarantee, two = release.guarantee, adjacency == "replace_one"
    if isinstance(guarantee, PureDP):
        assert release.public["scale"] == pytest.approx(2 * (1 + two) * 10 / guarantee.epsilon, rel=1e-12)
    else:
        assert isinstance(guarantee, ZCDP)
        assert release.public["scale"] == pytest.approx(np.sqrt((1 + 3 * two) * 10 / (2 * guarantee.rho)), rel=1e-12)


def test_a_release_is_learned_from_again(tmp_path):
    fitted = PrivateLogisticRegression(**ONE, rho=0.1, published=True, n_records=2_000).fit(DATA)
    fitted.release_.save(tmp_path / "r.npz")
    again = PrivateLogisticRegression(target="ill", radius=6.0).fit_release(Release.load(tmp_path / "r.npz"))
    assert np.array_equal(again.coef_, fitted.coef_) and again.n_iter_ == fitted.n_iter_
    # The paper's number of steps, (R n sqrt(rho))^(2/3); its step counts each vertex by its place.
    assert (
        fitted.n_iter_ == round((6.0 * 2_000 * np.sqrt(0.1)) ** (2 / 3)) and fitted.release_.public["step"] == "2/(t+2)"
    )
    mu, w = [2 / (t + 2) for t in range(1, 6)], np.zeros(3)
    vertices = np.array([0, 1, 5, 2, 0])
    for share, v in zip(mu, vertices, strict=True):
        w = (1 - share) * w + share * (3.0 if v < 3 else -3.0) * np.eye(3)[v % 3]
    assert np.allclose(weights_of(vertices[:, np.newaxis], 3, 3.0, published=True), w)
    with pytest.raises(ValueError, match="radius"):
        PrivateLogisticRegression(target="ill", radius=5.0).fit_release(fitted.release_)
    with pytest.raises(ValueError, match="target"):
        PrivateLogisticRegression(target="old", radius=6.0).fit_release(fitted.release_)


@pytest.mark.parametrize("estimator", [PrivateIsing, PrivatePairwise])
def test_fields_take_the_published_steps_too(estimator):
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 30_000)
    data = pd.DataFrame({"a": a, "b": np.where(rng.random(30_000) < 0.8, a, 1 - a)})
    states = {name: [0, 1] for name in data}
    options = {"width": 1.0, "rho": 1.0, "state_names": states, "n_records": 2_000}  # believed: fewer steps
    fitted = estimator(**options, method="frank-wolfe", published=True).fit(data)
    radius = 2.0 if estimator is PrivateIsing else 4.0
    assert fitted.n_iter_ == round((radius * 2_000 * np.sqrt(1 / 2)) ** (2 / 3))
    if estimator is PrivateIsing:
        assert fitted.weights_[0, 1] == pytest.approx(np.log(4) / 2, abs=0.1)
    with pytest.raises(ValueError, match="published=True with method='auto'"):
        estimator(**options, published=True).fit(data)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"target": None}, "target=None"),
            ({"radius": None}, "radius=None"),
            ({"target": "dose"}, "target='dose' is a number"),
            ({"target": "site"}, "target='site' has 3 states"),
            ({"target": "nothing"}, "nothing"),
            ({"radius": -1.0}, "radius"),
            ({"rho": None, "epsilon": 1.0, "published": True}, "published=True with epsilon alone"),
            ({"n_iter": 2**21}, "n_iter"),
            ({"adjacency": "replace_one"}, "n_records"),
            ({"rho": 1e-40}, "noise of scale"),
        ],
        ids=str,
    )
    def test_before_anything_is_spent(self, changes, match):
        ledger = Ledger(Budget(rho=1.0) if changes.get("epsilon") is None else Budget(epsilon=1.0))
        adjacency = changes.get("adjacency", "add_remove")
        table = None if adjacency != "add_remove" else PrivateTable(DATA[:20], SCHEMA, ledger=ledger)
        estimator = PrivateLogisticRegression(**{**ONE, "rho": 1.0, **changes})
        with pytest.raises(ValueError, match=match):
            estimator.fit(DATA[:20] if table is None else table)
        assert not ledger.entries and not estimator.is_fitted

    def test_a_target_of_another_length(self):
        with pytest.raises(ValueError, match="different lengths"):
            PrivateLogisticRegression(**ONE, rho=1.0).fit(DATA.drop(columns="ill"), ["no"])

    def test_predictions_of_what_is_no_record(self):
        fitted = PrivateLogisticRegression(**ONE, rho=1.0, n_iter=3).fit(DATA[:50])
        with pytest.raises(ValueError, match="'west' in the column 'site'"):
            fitted.predict(pd.DataFrame({"dose": [1], "site": ["west"], "old": [1]}))
        with pytest.raises(ValueError, match="empty cell in the column 'dose'"):
            fitted.predict(pd.DataFrame({"dose": [None], "site": ["east"], "old": [1]}))


def test_numbers_outside_are_clipped_and_missing_ones_have_a_mark_or_are_left_out():
    states = {"x": Number(0, 1), "y": Number(0, 1, missing="drop", outside="drop"), "ill": [0, 1]}
    fitted = PrivateLogisticRegression(target="ill", radius=3.0, rho=1e6, n_iter=200, state_names=states).fit(
        pd.DataFrame({"x": [None, 7.0] * 300, "y": [0.5] * 600, "ill": [1, 0] * 300})
    )
    assert fitted.terms_ == [("x",), ("x", None), ("y",)]
    assert fitted.predict(pd.DataFrame({"x": [None, 7.0, 1.0], "y": [0.5] * 3})).tolist() == [1, 0, 0]
    assert fitted.coef_[0, 1] > 0.3 and np.isnan(fitted.n_records_)
    few = PrivateLogisticRegression(target="ill", radius=3.0, rho=1e6, state_names=states)
    few.fit(pd.DataFrame({"x": [0.1] * 60, "y": [0.5] * 10 + [2.0] * 25 + [None] * 25, "ill": [0, 1] * 30}))
    assert few.n_records_ == pytest.approx(10, abs=3)


@pytest.mark.filterwarnings("ignore::pgmpy_dp.learning.few_records.FewRecordsWarning")  # of noisy counts
@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"rho": 1.0, "published": True}], ids=str)
def test_odd_tables_are_fitted_in_silence(budget, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    cells = {"dose": [np.inf, "x"], "site": [1, object()], "old": [None, 5], "ill": ["?", "?"]}
    for data in (DATA[:0], DATA[:1], pd.DataFrame(cells, dtype=object), DATA.assign(ill="yes")[:40]):
        fitted = PrivateLogisticRegression(**ONE, **budget).fit(data)
        assert np.isfinite(fitted.coef_).all()
    assert not caplog.records and capsys.readouterr() == ("", "")


def test_the_excess_risk_is_below_the_theorem_s_with_constant_one():
    fitted = PrivateLogisticRegression(**ONE, rho=0.1, n_records=20_000, random_state=0)
    with pytest.warns(ReproducibleNoiseWarning, match="NOT private"):
        fitted.fit(DATA)
    exact = PrivateLogisticRegression(**ONE, rho=1e6, n_iter=400, n_records=20_000).fit(DATA)
    y = np.where(DATA["ill"].eq("yes"), 1.0, -1.0)
    risk, best = (np.logaddexp(0.0, -y * one.decision_function(DATA)).mean() for one in (fitted, exact))
    assert -1e-3 < risk - best < 0.02 < sparse_logistic_regression(20_000, 6, 6.0, 0.1).value

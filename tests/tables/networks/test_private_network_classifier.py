"""PrivateNetworkClassifier: what it predicts, what it costs, and that nothing is spent in silence."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.base
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pgmpy_dp import Budget, Ledger, Number, PrivateTable, Schema
from pgmpy_dp.estimators import PrivateNetwork, PrivateNetworkClassifier
from pgmpy_dp.private.filter import BudgetExceeded

STATES = {"wet": [False, True], "mood": ["bad", "fair", "good"], "coin": [0, 1], "rain": ["no", "yes"]}


def records(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    rain = rng.random(n) < 0.3
    X = pd.DataFrame(
        {
            "wet": rng.random(n) < np.where(rain, 0.9, 0.1),
            "mood": np.where(rain, "bad", rng.choice(["bad", "fair", "good"], n)),
            "coin": rng.integers(0, 2, n),
        }
    )
    return X, np.where(rain, "yes", "no")


def classifier(ledger=None, **given):
    ledger = Ledger(Budget(rho=1.0)) if ledger is None else ledger
    return PrivateNetworkClassifier(**{"target": "rain", "ledger": ledger, "state_names": STATES, **given})


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(*records())


class TestPredictions:
    def test_are_the_model_s(self, fitted):
        X, y = records(500, seed=1)
        assert fitted.classes_.tolist() == STATES["rain"] and fitted.feature_names_in_.tolist() == list(X)
        told = fitted.predict_proba(X)
        assert told == pytest.approx(fitted.model_.predict_proba(X, "rain").to_numpy())
        assert (fitted.predict(X) == fitted.classes_[told.argmax(axis=1)]).all()
        assert fitted.score(X, y) > 0.85

    def test_what_is_not_known_is_summed_over(self, fitted):
        alone = fitted.predict_proba(pd.DataFrame({"wet": [True, None]}))
        assert alone[1] == pytest.approx(fitted.model_.marginal(["rain"]).values)
        assert alone[0, 1] > 0.6 > alone[1, 1]

    def test_of_what_the_rules_forbid_is_the_target_s_own_distribution(self):
        schema = Schema(STATES, impossible=[{"wet": [True], "coin": [1]}])
        found = classifier(state_names=schema).fit(*records())
        odd = pd.DataFrame({"wet": [True], "mood": ["bad"], "coin": [1]})
        assert found.predict_proba(odd)[0] == pytest.approx(found.model_.marginal(["rain"]).values)

    def test_before_a_fit(self):
        with pytest.raises(NotFittedError):
            classifier().predict(records(3)[0])

    def test_in_a_pipeline_of_steps_that_learn_nothing(self):
        X, y = records()
        pipeline = make_pipeline(FunctionTransformer(lambda frame: frame.drop(columns="coin")), classifier())
        pipeline[-1].set_params(state_names={name: STATES[name] for name in ("wet", "mood", "rain")})
        assert pipeline.fit(X, y).score(X, y) > 0.85


class TestData:
    def test_a_target_in_the_table_or_beside_it_is_the_same(self):
        X, y = records(600)
        seeded = {"options": {"random_state": 0, "n_rounds": 1}}
        with pytest.warns(UserWarning, match="reproducible"):
            whole = classifier(**seeded).fit(X.assign(rain=y))
        shuffled = pd.Series(y, index=np.random.default_rng(0).permutation(len(y)))  # rows count, not the index
        for column in (y, list(y), shuffled, pd.Series(y, dtype="category")):
            with pytest.warns(UserWarning, match="reproducible"):
                beside = classifier(**seeded).fit(X, column)
            assert beside.network_.release_ == whole.network_.release_
        assert list(X) == ["wet", "mood", "coin"]

    def test_arrays_and_one_column_frames_are_frames_and_series(self):
        X, y = records(600)
        seeded = {"options": {"random_state": 0, "n_rounds": 1}}
        with pytest.warns(UserWarning, match="reproducible"):
            whole = classifier(**seeded).fit(X, y)
        array = X.to_numpy(object)
        for columns, column in (
            (array, y),
            (X, pd.DataFrame({"anything": y})),
            (X, y.reshape(-1, 1)),
            (array, pl.DataFrame({"rain": y})),
        ):
            with pytest.warns(UserWarning, match="reproducible"):
                other = classifier(**seeded).fit(columns, column)
            assert other.network_.release_ == whole.network_.release_
        assert (whole.predict_proba(array) == whole.predict_proba(X)).all()
        assert (whole.predict(pl.from_pandas(X)) == whole.predict(X)).all()
        assert whole.n_features_in_ == 3
        for wrong in (array[:, :2], array[:, 0]):
            with pytest.raises(ValueError, match=r"records have the shape .*a column for each of \['wet', 'mood'"):
                whole.predict(wrong)

    def test_names_that_are_no_text_have_no_feature_names(self):
        X, y = records(600)
        states = dict(zip([0, 1, 2, "rain"], STATES.values(), strict=True))
        found = classifier(state_names=states).fit(X.to_numpy(object), y)
        assert found.n_features_in_ == 3 and not hasattr(found, "feature_names_in_")
        assert found.predict(X.to_numpy(object)).shape == (600,)

    def test_odd_cells_of_the_target_are_outside_the_schema_and_raise_nothing(self):
        X, y = records(600)
        odd = [*y[:-3], None, object(), [1]]
        assert classifier().fit(X, odd).network_.n_records_ == pytest.approx(597, abs=10)


class TestCosts:
    def test_each_fit_is_charged_to_the_ledger(self):
        ledger = Ledger(Budget(rho=1.0))
        one = classifier(ledger, budget=Budget(rho=0.25))
        one.fit(*records()).fit(*records())
        assert str(ledger.spent) == "0.5-zCDP" and one.network_.release_.public["settings"]["target"] == "rain"
        assert str(classifier(ledger).fit(*records()).network_.privacy_.guarantee) == "0.5-zCDP"  # what was left
        before = vars(one).copy()
        for budget in (Budget(rho=0.1), None):
            with pytest.raises(BudgetExceeded):
                one.set_params(budget=budget).fit(*records())
        assert one.model_ is before["model_"] and len(ledger.entries) == 3

    def test_a_budget_with_a_delta_can_be_spent_in_parts_and_whole(self):
        ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
        classifier(ledger, budget=Budget(epsilon=0.3, delta=1e-7)).fit(*records())
        classifier(ledger).fit(*records())
        assert len(ledger.entries) == 2

    def test_it_has_no_epsilon_and_no_clone(self, fitted):
        assert not {"epsilon", "delta", "rho"} & set(fitted.get_params())
        X, y = records(50)
        ledger = Ledger(Budget(rho=1.0))
        for clone in (sklearn.base.clone, lambda made: cross_val_score(made, X, y)):
            with pytest.raises(TypeError, match=r"5 folds would spend 5 budgets.*make a classifier for each fold"):
                clone(classifier(ledger))
            with pytest.raises(TypeError, match="cannot be c"):
                clone(make_pipeline(FunctionTransformer(), classifier(ledger)))
        assert not ledger.entries

    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"target": "snow"}, ValueError, "target='snow' is not a variable"),
            ({"target": "age", "state_names": {**STATES, "age": Number(0, 99)}}, ValueError, "is a number"),
            ({"ledger": Budget(rho=1.0)}, TypeError, r"pass Ledger\(Budget"),
            ({"budget": 0.5}, TypeError, "budget"),
            ({"options": {"epsilon": 1.0}}, ValueError, r"options has \['epsilon'\]"),
            ({"options": {"max_order": 1}}, ValueError, "max_order=1"),
            ({"options": {"colour": 1}}, TypeError, "colour"),
            ({"adjacency": "edge"}, ValueError, "adjacency"),
            ({"state_names": None}, ValueError, "state_names"),
        ],
    )
    def test_bad_arguments_spend_nothing(self, given, error, message):
        ledger = Ledger(Budget(rho=1.0))
        with pytest.raises(error, match=message):
            classifier(**{"ledger": ledger, **given}).fit(*records(100))
        assert not ledger.entries

    def test_bad_data_spend_nothing(self):
        X, y = records(100)
        ledger = Ledger(Budget(rho=1.0))
        own = PrivateTable(X.assign(rain=y), STATES, ledger=Budget(rho=1.0))
        for data, error, message in (
            ((X, y[:-1]), ValueError, "different lengths"),
            ((X, np.c_[y, y]), ValueError, "more than one dimension"),
            ((X.to_numpy()[:, :2], y), ValueError, r"records have the shape \(2,\)"),
            ((X.to_numpy(), y[:-1]), ValueError, "different lengths"),
            ((X.to_dict("list"), y), TypeError, "pass a pandas.DataFrame"),
            ((X,), ValueError, "rain"),
            ((own,), TypeError, "PrivateTable"),
        ):
            with pytest.raises(error, match=message):
                classifier(ledger).fit(*data)
        assert not ledger.entries

    def test_pickled_it_predicts_and_has_no_ledger(self, fitted):
        X, y = records(100)
        for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
            assert again.ledger is None and (again.predict(X) == fitted.predict(X)).all()
            with pytest.raises(TypeError, match=r"ledger=None is a NoneType; pass Ledger"):
                again.fit(X, y)
        assert isinstance(fitted.ledger, Ledger)

    def test_it_is_private_network_s_fit(self, fitted):
        assert isinstance(fitted.network_, PrivateNetwork) and fitted.network_.target == "rain"

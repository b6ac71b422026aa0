"""PrivateGaussianMixture: fits, outcomes, releases, conventions, nothing of the records in what is left."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.base
from sklearn.mixture import GaussianMixture
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

from pgmpy_dp import Budget, Ledger, PrivateVectors, Release
from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.mixtures.gaussian_mixture import matching_error, random_centres, sample_mixture
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ApproxDP
from tests.estimators.test_nothing_leaks import reachable

FILES = Path(__file__).parents[1] / "private" / "files"

RNG = np.random.default_rng(0)
CENTRES = random_centres(3, 4, 9.0, RNG, shift=1e4)
X, LABELS = sample_mixture(CENTRES, np.array([0.5, 0.3, 0.2]), 1.0, 7919, RNG)
FRAME = pd.DataFrame(X, columns=list("abcd"))
GIVEN = {"separation": 9.0, "scale": 1.0, "epsilon": 2.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def fitted() -> PrivateGaussianMixture:
    return PrivateGaussianMixture(3, **GIVEN, random_state=0).fit(X)


class TestFit:
    def test_the_mixture(self, fitted):
        assert fitted.converged_ and fitted.status_ == "found"
        assert matching_error(fitted.means_, CENTRES) < 0.4
        assert np.abs(np.sort(fitted.weights_) - [0.2, 0.3, 0.5]).max() < 0.05
        assert fitted.scale_ == 1.0 and fitted.n_features_in_ == 4
        assert fitted.counts_.dtype == np.int64 and fitted.n_blocks_ > 50
        assert str(fitted.privacy_.guarantee) == "0.0874017-zCDP + 9.99e-08"
        assert fitted.privacy_.guarantee.implies(ApproxDP(2.0, 1e-6))

    def test_predictions(self, fitted):
        order = [int(np.linalg.norm(fitted.means_ - c, axis=1).argmin()) for c in CENTRES]
        assert (fitted.predict(X) == np.array(order)[LABELS]).mean() > 0.99
        assert np.allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
        exact = GaussianMixture(3, covariance_type="spherical", means_init=CENTRES, random_state=0).fit(X)
        assert 0 < exact.score(X) - fitted.score(X) < 0.1
        assert fitted.score_samples(X).shape == (len(X),)
        drawn, labels = fitted.sample(500, random_state=0)
        assert drawn.shape == (500, 4) and set(labels) == {0, 1, 2}
        assert fitted.score(drawn) == pytest.approx(fitted.score(X), abs=0.5)

    def test_too_few_components_for_the_cells_that_were_found(self):
        """Blocks join other corners of a square than each other: they agree on more places than there are centres."""
        rng = np.random.default_rng(0)
        square = 30.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[rng.integers(0, 4, 30_000)]
        data = square + rng.normal(size=(30_000, 2))
        given = {
            "epsilon": 4.0,
            "delta": 1e-6,
            "scale": 1.0,
            "separation": 12.0,
            "n_records": 30_000,
            "random_state": 0,
        }
        few, enough = (PrivateGaussianMixture(k, **given).fit(data) for k in (3, 4))
        assert few.converged_ and few.status_.startswith("found; n_components looks too small: ")
        assert enough.status_ == "found"
        assert PrivateGaussianMixture(3).fit_release(few.release_).status_ == few.status_

    def test_groups_that_are_taken_together(self):
        """Blocks agree on the two centres of three groups: no cell says it, squared distances do."""
        few = PrivateGaussianMixture(2, **GIVEN, random_state=0).fit(X)
        assert few.converged_ and few.n_components_ == 2 and few.wide_components_.sum() == 1
        assert "n_components looks too small, or scale: 1 of the components" in few.status_
        assert few.status_ in str(few) and "wider than one group" in str(few)
        assert PrivateGaussianMixture(2).fit_release(few.release_).status_ == few.status_

    def test_the_number_of_components(self):
        found = PrivateGaussianMixture("auto", max_components=5, **GIVEN, random_state=1).fit(X)
        assert found.status_ == "found" and found.n_components_ == found.n_groups_ == 3
        assert matching_error(found.means_, CENTRES) < 0.4
        again = PrivateGaussianMixture("auto", max_components=5).fit_release(found.release_)
        assert str(again).splitlines()[2:] == str(found).splitlines()[2:]

    @pytest.mark.parametrize("kind", ["spherical", "diag", "tied", "full"])
    def test_covariances_are_used_as_scikit_learn_uses_them(self, kind):
        rng = np.random.default_rng(2)
        shapes = {"spherical": [1.0] * 4, "diag": [0.5, 0.8, 1.0, 1.2]}.get(kind, [0.5, 0.8, 1.0, 1.2])
        data = CENTRES[LABELS] + rng.normal(size=X.shape) * shapes
        found = PrivateGaussianMixture(3, **GIVEN, covariance_type=kind, random_state=0).fit(data)
        exact = GaussianMixture(3, covariance_type=kind, means_init=CENTRES, random_state=0).fit(data)
        assert found.covariances_.shape == exact.covariances_.shape and found.wide_components_ is None
        assert 0 < exact.score(data) - found.score(data) < 0.3
        # The same numbers, by scikit-learn.
        exact.means_, exact.weights_, exact.covariances_ = found.means_, found.weights_, found.covariances_
        exact.precisions_cholesky_ = _compute_precision_cholesky(found.covariances_, kind)
        np.testing.assert_allclose(found.score_samples(data[:50]), exact.score_samples(data[:50]))
        np.testing.assert_allclose(found.predict_proba(data[:50]), exact.predict_proba(data[:50]), atol=1e-12)
        assert found.bic(data) == pytest.approx(exact.bic(data)) and found.aic(data) == pytest.approx(exact.aic(data))
        drawn, labels = found.sample(20_000, random_state=0)
        j = int(np.bincount(labels).argmax())
        one = {"spherical": lambda c: c[j] * np.eye(4), "diag": lambda c: np.diag(c[j])}.get(kind)
        one = one(found.covariances_) if one else found.covariances_ if kind == "tied" else found.covariances_[j]
        assert np.abs(np.cov(drawn[labels == j].T) - one).max() < 0.1
        again = PrivateGaussianMixture(3).fit_release(found.release_)
        assert (again.covariances_ == found.covariances_).all() and f"covariance_type='{kind}'" in str(again)

    def test_not_enough_data_is_an_outcome(self):
        estimator = PrivateGaussianMixture(3, **GIVEN, random_state=0).fit(X[:60])
        assert not estimator.converged_ and "cells" in estimator.status_
        assert estimator.means_ is None and estimator.weights_ is None and estimator.counts_ is None
        assert estimator.covariances_ is None and estimator.n_components_ == 0 and "found" not in str(estimator)
        for method in (estimator.predict, estimator.score_samples, estimator.predict_proba):
            with pytest.raises(ValueError, match="no centres were found"):
                method(X)
        with pytest.raises(ValueError, match="no centres were found"):
            estimator.sample(3)

    @pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
    def test_dataframes(self, kind):
        frame = kind({name: FRAME[name].to_numpy() for name in FRAME})
        estimator = PrivateGaussianMixture(3, **GIVEN, columns=["d", "a", "b", "c"], random_state=0).fit(frame)
        assert matching_error(estimator.means_, CENTRES[:, [3, 0, 1, 2]]) < 0.4
        assert estimator.feature_names_in_.tolist() == ["d", "a", "b", "c"]
        assert (estimator.predict(frame) == estimator.predict(X[:, [3, 0, 1, 2]])).all()

    def test_a_release_is_read_again(self, fitted, tmp_path):
        fitted.release_.save(tmp_path / "release.npz")
        again = PrivateGaussianMixture(3).fit_release(Release.load(tmp_path / "release.npz"))
        assert (again.means_ == fitted.means_).all() and (again.predict(X) == fitted.predict(X)).all()
        assert again.privacy_.entries == ()
        with pytest.raises(TypeError, match="pass a Release"):
            PrivateGaussianMixture(3).fit_release("release")

    def test_vectors_share_a_ledger(self):
        ledger = Ledger(Budget(epsilon=2.2, delta=1e-6))
        data = PrivateVectors(X, ledger=ledger)
        PrivateGaussianMixture(3, **GIVEN).fit(data)
        with pytest.raises(BudgetExceeded):
            PrivateGaussianMixture(3, **GIVEN).fit(data)
        assert len(ledger.entries) == 1
        for changes, message in (
            ({"adjacency": "replace_one", "n_records": 5}, "adjacency="),
            ({"n_records": 5}, "n_records=5 differs"),
            ({"columns": ["a"]}, "columns="),
        ):
            with pytest.raises(ValueError, match=message):
                PrivateGaussianMixture(3, **GIVEN, **changes).fit(data)
        assert len(ledger.entries) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"delta": 0.0}, "infinitely many cells"),
            ({"epsilon": None}, "no budget was given"),
            ({"separation": -1.0}, "separation=-1.0"),
            ({"n_components": "auto"}, "'auto' needs a public bound"),
            ({"covariance_type": "diagonal"}, "pass 'diag', as scikit-learn has it"),
            ({"adjacency": "edge"}, "adjacency='edge'"),
            ({"adjacency": "replace_one"}, "n_records=None"),
            ({"n_components": 0}, "n_components=0"),
        ],
    )
    def test_bad_arguments_when_used_not_when_stored(self, changes, message):
        estimator = PrivateGaussianMixture(**{"n_components": 3, **GIVEN, **changes})
        with pytest.raises(ValueError, match=message):
            estimator.fit(X)
        assert not estimator.is_fitted

    def test_records_to_predict_are_checked(self, fitted):
        with pytest.raises(ValueError, match=r"shape \(9, 3\)"):
            fitted.predict(np.zeros((9, 3)))
        with pytest.raises(ValueError, match="not finite"):
            fitted.predict(np.full((1, 4), np.nan))


def test_clones_and_parameters(fitted):
    copy = sklearn.base.clone(fitted)
    assert copy.get_params() == fitted.get_params() and not copy.is_fitted
    given = {"separation": "wide"}
    assert PrivateGaussianMixture(-3, **given).separation == "wide"


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_a_fitted_estimator_holds_no_records(adjacency):
    n_records = None if adjacency == "add_remove" else 8000
    estimator = PrivateGaussianMixture(3, **GIVEN, adjacency=adjacency, n_records=n_records).fit(FRAME)
    exact = {float(v) for v in X.ravel()}
    counts = {int(c) for c in np.bincount(LABELS)} | {len(X)}
    for item in (estimator, pickle.loads(pickle.dumps(estimator))):
        for found in reachable(item):
            assert not isinstance(found, PrivateVectors | pd.DataFrame)
            if isinstance(found, np.ndarray) and found.dtype.kind == "f":
                assert len(X) not in found.shape
                assert not exact & {float(v) for v in found.ravel()}
    # Noise of tens on the counts: all of them equal to the exact ones would have a chance below 1e-6.
    assert estimator.counts_ is None or not {int(c) for c in estimator.counts_} >= counts - {len(X)}

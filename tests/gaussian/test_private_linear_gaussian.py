"""PrivateLinearGaussian: what pgmpy's exact fit finds but for noise, intervals that cover, and what is refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.base import DAG
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator import LinearGaussianMLE

from pgmpy_dp import Budget, PrivateVectors, fit_in_place
from pgmpy_dp.estimators import PrivateGraphicalLasso, PrivateLinearGaussian

NAMES = list("abcde")
EDGES = [("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "e"), ("d", "e")]
WEIGHTS = np.zeros((5, 5))
for _edge, _weight in zip(EDGES, (0.7, -0.4, 0.6, -0.8, 0.5, 0.7), strict=True):
    WEIGHTS[NAMES.index(_edge[1]), NAMES.index(_edge[0])] = _weight
INTERCEPTS = np.array([10.0, -3.0, 50.0, 2.0, 0.0])
_SOLVED = np.linalg.inv(np.eye(5) - WEIGHTS)
MEAN, COVARIANCE = _SOLVED @ INTERCEPTS, _SOLVED @ _SOLVED.T
DEVIATIONS = np.sqrt(np.diagonal(COVARIANCE))
NORM = float(np.sqrt(np.trace(COVARIANCE)))
BOUNDS = {name: (m - 6 * s, m + 6 * s) for name, m, s in zip(NAMES, MEAN, DEVIATIONS, strict=True)}


def records(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng([seed, n])
    return pd.DataFrame(rng.multivariate_normal(MEAN, COVARIANCE, n), columns=NAMES)


def network() -> LinearGaussianBayesianNetwork:
    return LinearGaussianBayesianNetwork(EDGES)


DATA = records(20_000)


class TestFit:
    @pytest.mark.parametrize(
        "options",
        [
            {"rho": 1e5, "bounds": BOUNDS},
            {"epsilon": 1e3, "row_norm": NORM, "center": list(MEAN)},
            {"epsilon": 1e3, "delta": 1e-6, "row_norm": NORM, "center": "private", "center_radius": 99.0},
            {"rho": 1e5, "bounds": BOUNDS, "scaling": "bounds", "adjacency": "replace_one", "n_records": len(DATA)},
        ],
        ids=["zcdp", "pure", "approximate", "bounds"],
    )
    def test_with_hardly_any_noise_it_is_pgmpys_exact_fit(self, options):
        """But for the sampling error of shortening, which an exact fit does not have."""
        model, exact = network(), network().fit(DATA, estimator=LinearGaussianMLE())
        estimator = PrivateLinearGaussian(**options, random_state=0)
        assert model.fit(DATA, estimator=estimator) is model and model.check_model()
        assert [cpd.variable for cpd in estimator.parameters_] == list(model.nodes)
        for ours, theirs in zip(model.cpds, exact.cpds, strict=True):
            assert type(ours) is type(theirs) and ours.variables == theirs.variables
            np.testing.assert_allclose(ours.beta[1:], theirs.beta[1:], atol=0.03)
            assert abs(ours.beta[0] - theirs.beta[0]) < 0.03 * (1 + np.abs(MEAN).max())
            assert ours.std == pytest.approx(theirs.std, rel=0.03)
        assert estimator.n_raised_ == 0 and len(estimator.release_.values) >= 2

    def test_the_model_is_pgmpys_and_does_what_pgmpys_does(self):
        estimator = PrivateLinearGaussian(epsilon=1.0, bounds=BOUNDS, random_state=0).fit(network(), DATA)
        model = estimator.model_
        assert type(model) is LinearGaussianBayesianNetwork and list(model.edges) == list(network().edges)
        mean, covariance = model.to_joint_gaussian()
        order = [NAMES.index(name) for name in nx.topological_sort(model)]
        np.testing.assert_allclose(mean, MEAN[order], atol=0.3)
        np.testing.assert_allclose(covariance, COVARIANCE[np.ix_(order, order)], atol=0.15)
        drawn = model.simulate(n_samples=4000, seed=0)
        np.testing.assert_allclose(drawn[NAMES].mean(), MEAN, atol=0.3)
        predicted = model.predict(DATA[NAMES[:4]].head(200))["e"]
        assert np.corrcoef(predicted, DATA["e"].head(200))[0, 1] > 0.6
        assert str(model.graph["privacy"]).startswith("1-DP under add_remove")
        model.cpds[0].beta[0] = 7.0
        assert str(model.graph["privacy"]).startswith("NO GUARANTEE: the model was changed")
        assert estimator.parameters_[0].beta[0] != 7.0

    def test_pgmpys_own_object_is_learned_in_place(self):
        model, private = network(), PrivateVectors(DATA, NAMES, ledger=Budget(epsilon=1.0))
        estimator = PrivateLinearGaussian(epsilon=0.5, bounds=BOUNDS)
        assert fit_in_place(model, private, estimator) is model and model.check_model()
        assert model.graph["privacy"] == estimator.privacy_ and str(private.ledger.spent) == "0.5-DP"
        for own, learned in zip(model.cpds, estimator.parameters_, strict=True):
            assert own is not learned and own == learned
        assert str(model.graph["privacy"]) == str(estimator.privacy_)
        model.cpds[1].std *= 2
        assert str(model.graph["privacy"]).startswith("NO GUARANTEE")
        assert fit_in_place(model, private, estimator).check_model() and len(model.cpds) == 5

    def test_only_the_columns_of_the_model_are_read_and_an_arrays_are_its_positions(self):
        some = LinearGaussianBayesianNetwork([("b", "a")])
        estimator = PrivateLinearGaussian(epsilon=9.0, bounds=BOUNDS).fit(some, DATA)
        assert estimator.columns_ == ("b", "a") and [len(cpd.beta) for cpd in estimator.parameters_] == [1, 2]
        turned = nx.DiGraph([(1, 0)])  # its nodes are 1 and then 0
        bounds = list(BOUNDS.values())[:2]
        positions = PrivateLinearGaussian(epsilon=9.0, bounds=bounds).fit(turned, DATA[["a", "b"]].to_numpy())
        assert positions.columns_ == (0, 1)
        np.testing.assert_allclose([cpd.beta[0] for cpd in positions.parameters_][:1], [MEAN[1]], atol=0.2)

    def test_other_graphs_and_the_lasso_learn_from_the_same_release(self):
        lasso = PrivateGraphicalLasso(epsilon=1.0, bounds=BOUNDS, center="private", columns=NAMES).fit(DATA)
        first = PrivateLinearGaussian().fit_release(network(), lasso.release_)
        assert first.privacy_.guarantee == lasso.privacy_.guarantee and first.privacy_.entries == ()
        turned = PrivateLinearGaussian().fit_release(DAG([("e", "d")]), first.release_)
        assert [cpd.variables for cpd in turned.parameters_] == [["e"], ["d", "e"]]
        again = PrivateGraphicalLasso().fit_release(first.release_)
        np.testing.assert_array_equal(again.precision_, lasso.precision_)
        np.testing.assert_array_equal(first.location_, lasso.location_)

    def test_persons(self):
        twice = pd.concat([DATA, DATA]).assign(who=[*range(len(DATA))] * 2)
        estimator = PrivateLinearGaussian(epsilon=1.0, bounds=BOUNDS, unit="who", random_state=0).fit(network(), twice)
        assert estimator.privacy_.unit == "who" and estimator.n_records_ == pytest.approx(len(DATA), abs=400)
        assert estimator.parameters_[1].beta[1] == pytest.approx(0.7, abs=0.1)

    @pytest.mark.parametrize("unit", [1e-20, 1e20])
    def test_units_do_not_matter(self, unit):
        made = [
            PrivateLinearGaussian(epsilon=1.0, row_norm=NORM * u, center=list(MEAN * u), random_state=0)
            for u in (1.0, unit)
        ]
        plain, scaled = (one.fit(network(), DATA * u) for one, u in zip(made, (1.0, unit), strict=True))
        for one, other in zip(plain.parameters_, scaled.parameters_, strict=True):
            np.testing.assert_allclose(other.beta[1:], one.beta[1:], atol=1e-3)
            assert other.std == pytest.approx(one.std * unit, rel=1e-3)
            errors = scaled.standard_errors_[one.variable]
            np.testing.assert_allclose(errors[1:], plain.standard_errors_[one.variable][1:], rtol=0.02)


class TestTooFewRecords:
    @pytest.mark.parametrize("n", [0, 1, 30])
    @pytest.mark.parametrize("options", [{"bounds": BOUNDS}, {"row_norm": NORM, "center": list(MEAN)}], ids=str)
    def test_deviations_are_positive_and_everything_is_finite(self, n, options):
        for seed in range(5):
            estimator = PrivateLinearGaussian(epsilon=0.5, **options, random_state=seed).fit(network(), DATA[:n])
            numbers = [*estimator.standard_errors_.values(), *(cpd.beta for cpd in estimator.parameters_)]
            assert np.isfinite(np.concatenate(numbers)).all()
            assert all(0 < cpd.std < np.inf for cpd in estimator.parameters_)

    def test_raised_eigenvalues_are_told(self):
        raised = [
            PrivateLinearGaussian(epsilon=0.5, row_norm=NORM, center=list(MEAN), random_state=0)
            .fit(network(), DATA[:n])
            .n_raised_
            for n in (50, 20_000)
        ]
        assert raised[0] > 0 == raised[1]

    def test_a_column_twice_has_an_answer(self):
        twice = DATA.assign(b=DATA["a"])[["a", "b", "d"]]
        model = LinearGaussianBayesianNetwork([("a", "d"), ("b", "d")])
        bounds = {"a": BOUNDS["a"], "b": BOUNDS["a"], "d": BOUNDS["d"]}
        estimator = PrivateLinearGaussian(rho=0.5, bounds=bounds, random_state=0).fit(model, twice)
        beta = next(cpd.beta for cpd in estimator.parameters_ if cpd.variable == "d")
        slope = np.polyfit(DATA["a"], DATA["d"], 1)[0]
        assert estimator.n_raised_ == 1 and beta[1] + beta[2] == pytest.approx(slope, abs=0.1)
        assert np.abs(beta[1:]).max() < 5


TRUTH = {(name, "(Intercept)"): value for name, value in zip(NAMES, INTERCEPTS, strict=True)}
TRUTH |= {(v, u): WEIGHTS[NAMES.index(v), NAMES.index(u)] for u, v in EDGES}


def errors_over_deviations(n: int, draws: int, **options) -> pd.DataFrame:
    """Of each coefficient in each draw of records and noise; NaN where there is no error."""
    found = []
    for seed in range(draws):
        made = PrivateLinearGaussian(**options, random_state=seed).fit(network(), records(n, seed + 1)).intervals(0.9)
        deviation = (made["upper"] - made["lower"]) / 2 / 1.6448536
        error = made["coefficient"] - pd.Series(TRUTH).reindex(made.index)
        found.append(error.where(deviation > 0) / deviation.where(deviation > 0))
    return pd.DataFrame(found)


class TestIntervals:
    @pytest.mark.parametrize(
        ("n", "options"),
        [
            (20_000, {"epsilon": 1.0, "bounds": BOUNDS}),
            (5_000, {"rho": 0.05, "bounds": BOUNDS}),
            (20_000, {"epsilon": 0.3, "row_norm": NORM, "center": list(MEAN)}),  # noise is twice the sampling error
            (5_000, {"epsilon": 1.0, "mechanism": "laplace", "row_norm": NORM, "center": list(MEAN)}),
        ],
        ids=["sampling", "zcdp", "noise", "laplace"],
    )
    def test_nine_of_ten_hold_the_truth_and_deviations_are_right(self, n, options):
        errors = errors_over_deviations(n, 40, **options)
        slopes = errors[[key for key in errors if key[1] != "(Intercept)"]].to_numpy()
        others = errors[[key for key in errors if key[1] == "(Intercept)"]].to_numpy()
        for group in (slopes, others[~np.isnan(others)]):
            # 240 errors, and 160 to 200: a deviation a third too large or too small is far outside.
            assert 0.83 < np.sqrt((group**2).mean()) < 1.2
            assert 0.85 < (np.abs(group) < 1.6448536).mean() < 0.96

    def test_they_widen_with_the_level_and_say_where_they_are_from(self):
        estimator = PrivateLinearGaussian(epsilon=1.0, bounds=BOUNDS, random_state=0).fit(network(), DATA)
        wide, narrow = estimator.intervals(0.99), estimator.intervals(0.5)
        assert wide.index.names == ["variable", "parent"] and wide.index[0] == ("a", "(Intercept)")
        assert (wide["lower"] < narrow["lower"]).all() and (narrow["upper"] < wide["upper"]).all()
        assert wide.loc[("b", "a"), "coefficient"] == estimator.parameters_[1].beta[1]
        for level in (0, 1.0, "0.9"):
            with pytest.raises((TypeError, ValueError), match="level="):
                estimator.intervals(level)

    def test_a_public_mean_has_no_error(self):
        known = PrivateLinearGaussian(epsilon=1.0, row_norm=NORM, center=list(MEAN)).fit(network(), DATA)
        assert known.standard_errors_["a"][0] == 0 and known.parameters_[0].beta[0] == MEAN[0]


class TestRefusals:
    @pytest.mark.parametrize(
        ("model", "options", "error", "message"),
        [
            (nx.Graph([("a", "b")]), {}, TypeError, r"model is a Graph; pass fit\(model, data\)"),
            (DATA, {}, TypeError, "model is a DataFrame; pass"),
            (nx.MultiDiGraph([("a", "b")]), {}, TypeError, "model is a MultiDiGraph"),
            (DiscreteBayesianNetwork([("a", "b")]), {}, TypeError, "model is a DiscreteBayesianNetwork"),
            (nx.DiGraph([("a", "b"), ("b", "a")]), {}, ValueError, "directed cycles"),
            (nx.DiGraph(), {}, ValueError, "no nodes"),
            (LinearGaussianBayesianNetwork([("a", "b")], latents={"a"}), {}, ValueError, "latent variables"),
            (nx.DiGraph([("a", "age")]), {}, ValueError, r"nodes \['age'\], and the columns are"),
            (network(), {"center": None}, ValueError, "pass 'private' or public means"),
            (network(), {"center": "mean"}, ValueError, "pass 'private' or public means"),
            (network(), {"bounds": None}, ValueError, "row_norm=None"),
            (network(), {"bounds": None, "row_norm": 3.0}, ValueError, "center='private' needs center_radius"),
            (network(), {"row_norm": 3.0}, ValueError, "follow from bounds"),
            (network(), {"center_radius": 3.0, "center": [0.0] * 5}, ValueError, "follow from bounds"),
            (network(), {"bounds": {"a": (0, 1)}}, ValueError, "no bounds for the columns"),
            (network(), {"columns": ["a", "b"]}, ValueError, "pass columns=None"),
        ],
    )
    def test_what_cannot_be_learned_is_refused_before_anything_is_spent(self, model, options, error, message):
        private = PrivateVectors(DATA, NAMES, ledger=Budget(epsilon=1.0))
        estimator = PrivateLinearGaussian(**{"epsilon": 1.0, "bounds": BOUNDS, **options})
        with pytest.raises(error, match=message):
            estimator.fit(model, private)
        assert private.ledger.entries == () and not estimator.is_fitted

    def test_weights(self):
        with pytest.raises(ValueError, match="sample_weight was given"):
            PrivateLinearGaussian(epsilon=1.0, bounds=BOUNDS).fit(network(), DATA, sample_weight=np.ones(len(DATA)))

    @pytest.mark.parametrize(
        ("lasso", "message"),
        [
            ({"row_norm": NORM}, "center=None, and tells no mean"),
            ({"perturb": "pairs", "center": [0.0] * 5}, "has kind 'pairs'"),
        ],
    )
    def test_releases_that_tell_no_covariance(self, lasso, message):
        release = PrivateGraphicalLasso(epsilon=1.0, columns=NAMES, **lasso).fit(DATA).release_
        with pytest.raises(ValueError, match=message):
            PrivateLinearGaussian().fit_release(network(), release)

    def test_variables_that_a_release_lacks(self):
        release = PrivateLinearGaussian(epsilon=1.0, bounds=BOUNDS).fit(network(), DATA).release_
        with pytest.raises(ValueError, match=r"nodes \['age'\], and the columns are"):
            PrivateLinearGaussian().fit_release(nx.DiGraph([("a", "age")]), release)

    @pytest.mark.parametrize(
        ("model", "estimator"),
        [
            (network(), PrivateGraphicalLasso(epsilon=1.0, bounds=BOUNDS)),
            (DiscreteBayesianNetwork([("a", "b")]), PrivateLinearGaussian(epsilon=1.0, bounds=BOUNDS)),
        ],
    )
    def test_in_place_models_and_estimators_that_do_not_go_together(self, model, estimator):
        private = PrivateVectors(DATA, NAMES, ledger=Budget(epsilon=1.0))
        with pytest.raises(TypeError, match="of numbers PrivateLinearGaussian does"):
            fit_in_place(model, private, estimator)
        assert private.ledger.entries == ()

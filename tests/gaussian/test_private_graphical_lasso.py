"""PrivateGraphicalLasso: what it finds, for every kind of input, what it refuses, and that nothing else leaves."""

from __future__ import annotations

import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.base
from pgmpy.base import UndirectedGraph
from scipy.stats import multivariate_normal

from pgmpy_dp import Budget, Number, PrivateVectors, Schema
from pgmpy_dp.estimators import PrivateGraphicalLasso
from pgmpy_dp.gaussian import noisy_moments, precision_fits, private_graphical_lasso
from pgmpy_dp.gaussian.graphical_models import lasso_penalty
from pgmpy_dp.private.curator import charged_base
from pgmpy_dp.private.data import moments, vectors
from pgmpy_dp.private.noise import matrix
from pgmpy_dp.private.operators import solutions, vector_operators
from pgmpy_dp.private.sensitive import Sensitive
from tests.estimators.test_nothing_leaks import reachable

PRECISION = np.array([[1.5, 0.6, 0.0, 0.0], [0.6, 1.5, -0.6, 0.0], [0.0, -0.6, 1.5, 0.6], [0.0, 0.0, 0.6, 1.5]])
EDGES = {(0, 1), (1, 2), (2, 3)}
N = 20_011
ROWS = np.random.default_rng(1).multivariate_normal(np.zeros(4), np.linalg.inv(PRECISION), size=N)
NORM = 2.8


def edges(model):
    return {tuple(sorted(edge)) for edge in model.graph_.edges}


def error(model):
    return np.linalg.norm(model.precision_ - PRECISION) / np.linalg.norm(PRECISION)


class TestFit:
    @pytest.mark.parametrize(
        "options",
        [
            {"epsilon": 1.0},
            {"rho": 0.03},
            {"epsilon": 1.0, "delta": 1e-6},
            {"epsilon": 1.0, "adjacency": "replace_one", "n_records": N},
            {"epsilon": 1.0, "mechanism": "laplace"},
            {"epsilon": 1.0, "mechanism": "frobenius"},
            {"epsilon": 1.0, "delta": 1e-6, "mechanism": "one-sided-wishart"},
        ],
        ids=str,
    )
    def test_it_finds_the_graph_and_the_precision(self, options):
        model = PrivateGraphicalLasso(NORM, **options, random_state=0).fit(ROWS)
        assert edges(model) == EDGES
        assert error(model) < 0.08
        np.testing.assert_allclose(model.precision_ @ model.second_moments_, np.eye(4), atol=1e-6)
        assert isinstance(model.graph_, UndirectedGraph)
        assert model.converged_ and model.n_iter_ > 0
        assert model.location_.tolist() == [0.0] * 4
        expected = lasso_penalty(
            float(np.diagonal(noisy_moments.noisy_covariance(model.release_).covariance).mean()),
            model.n_records_,
            model.noise_sd_,
            4,
        )
        assert model.penalty_ == pytest.approx(expected)

    def test_output_perturbation_has_its_noise_on_the_precision(self):
        model = PrivateGraphicalLasso(
            NORM, epsilon=1e4, perturb="output", penalty=0.02, max_eigenvalue=4.0, n_records=N, random_state=0
        ).fit(ROWS)
        assert edges(model) >= EDGES and error(model) < 0.15
        assert np.linalg.eigvalsh(model.precision_)[-1] <= 4.0 * (1 + 1e-6)
        covariance_one = PrivateGraphicalLasso(NORM, epsilon=1.0, n_records=N, random_state=0).fit(ROWS)
        output = PrivateGraphicalLasso(
            NORM, epsilon=1.0, perturb="output", penalty=0.02, n_records=N, random_state=0
        ).fit(ROWS)
        assert error(covariance_one) < error(output)

    def test_a_centre_public_or_private(self):
        shifted = ROWS + [3.0, -1.0, 2.0, 0.0]
        public = PrivateGraphicalLasso(NORM, epsilon=1.0, center=[3, -1, 2, 0], random_state=0).fit(shifted)
        private = PrivateGraphicalLasso(NORM, epsilon=1.0, center="private", center_radius=6.0, random_state=0).fit(
            shifted
        )
        assert edges(public) == edges(private) == EDGES
        assert public.location_.tolist() == [3.0, -1.0, 2.0, 0.0]
        assert public.centered_ and private.centered_
        np.testing.assert_allclose(private.location_, [3.0, -1.0, 2.0, 0.0], atol=0.1)
        about_zero = PrivateGraphicalLasso(NORM, epsilon=1.0, random_state=0).fit(shifted)
        assert error(private) < 0.1 < error(about_zero) and not about_zero.centered_
        again = PrivateGraphicalLasso(epsilon=1.0).fit_release(public.release_)
        assert again.centered_ and not np.isclose(about_zero.second_moments_[0, 1], public.covariance_[0, 1], atol=0.3)

    @pytest.mark.parametrize(
        "make",
        [pd.DataFrame, pl.DataFrame, pl.LazyFrame, lambda rows, **k: rows],
        ids=["pandas", "polars", "lazy", "array"],
    )
    def test_any_table_will_do(self, make):
        names = ["w", "x", "y", "z"]
        data = (
            make({name: ROWS[:, j] for j, name in enumerate(names)})
            if make is not pd.DataFrame
            else pd.DataFrame(ROWS, columns=names)
        )
        if isinstance(data, dict):
            data = ROWS
        model = PrivateGraphicalLasso(NORM, epsilon=1.0, columns=names, random_state=0).fit(data)
        assert model.columns_ == tuple(names)
        assert set(model.graph_.nodes) == set(names)
        reference = PrivateGraphicalLasso(NORM, epsilon=1.0, random_state=0).fit(ROWS)
        np.testing.assert_array_equal(model.precision_, reference.precision_)

    @pytest.mark.parametrize("unit", [1e-49, 1e-3, 1e6, 1e49])
    @pytest.mark.parametrize("options", [{"epsilon": 1.0}, {"epsilon": 1e-3}], ids=str)
    def test_units_do_not_matter(self, unit, options):
        reference = PrivateGraphicalLasso(NORM, **options, random_state=0).fit(ROWS)
        model = PrivateGraphicalLasso(NORM * unit, **options, random_state=0).fit(ROWS * unit)
        np.testing.assert_allclose(model.precision_ * unit**2, reference.precision_, rtol=1e-2, atol=1e-3)

    def test_persons(self):
        frame = pd.DataFrame(np.repeat(ROWS, 2, axis=0), columns=list("wxyz")).assign(who=np.repeat(np.arange(N), 2))
        model = PrivateGraphicalLasso(NORM, epsilon=1.0, unit="who", random_state=0).fit(frame)
        assert model.privacy_.unit == "who" and model.columns_ == ("w", "x", "y", "z")
        assert model.n_records_ == pytest.approx(N, abs=200)
        assert error(model) < 0.08

    def test_private_vectors_share_a_ledger(self):
        data = PrivateVectors(ROWS, ledger=Budget(epsilon=1.0), n_records=N)
        PrivateGraphicalLasso(NORM, epsilon=0.75, n_records=N).fit(data)
        with pytest.raises(ValueError, match="refused"):
            PrivateGraphicalLasso(NORM, epsilon=0.75).fit(data)
        assert str(data.ledger.left) == "0.25-DP"

    def test_other_penalties_of_one_release_cost_nothing(self):
        first = PrivateGraphicalLasso(NORM, epsilon=1.0, n_records=N, random_state=0).fit(ROWS)
        lasso = PrivateGraphicalLasso(penalty=0.2, refit=False).fit_release(first.release_)
        assert lasso.penalty_ == 0.2 and lasso.privacy_.guarantee == first.privacy_.guarantee
        assert np.abs(lasso.precision_[0, 1]) < np.abs(first.precision_[0, 1])  # shrunk, not refitted
        plain = PrivateGraphicalLasso(penalty=0, refit=False).fit_release(first.release_)
        noisy = noisy_moments.noisy_covariance(first.release_).covariance
        np.testing.assert_allclose(plain.precision_, np.linalg.inv(noisy), rtol=1e-6)
        again = PrivateGraphicalLasso().fit_release(first.release_)
        np.testing.assert_array_equal(again.precision_, first.precision_)

    def test_score(self):
        model = PrivateGraphicalLasso(NORM, epsilon=1.0, center=[0.1, 0, 0, 0], columns=list("wxyz")).fit(ROWS)
        expected = multivariate_normal(model.location_, model.covariance_).logpdf(ROWS[:100]).mean()
        assert model.score(ROWS[:100]) == pytest.approx(expected)
        assert model.score(pd.DataFrame(ROWS[:100, ::-1], columns=list("zyxw"))) == pytest.approx(expected)
        assert np.isnan(model.score(ROWS[:0])) and np.isnan(model.score(ROWS[:2] * np.nan))

    def test_conversion(self):
        model = PrivateGraphicalLasso(NORM, epsilon=1.0, center=[1.0, 0, 0, 0], random_state=0).fit(ROWS + [1, 0, 0, 0])
        network = model.to_pgmpy()
        mean, cov = network.to_joint_gaussian()
        order = list(nx.topological_sort(network))  # names are numbers here
        np.testing.assert_allclose(cov, model.covariance_[np.ix_(order, order)], atol=1e-6)
        np.testing.assert_allclose(mean, model.location_[order], atol=1e-6)
        partial = model.partial_correlations()
        for i, j in edges(model):
            assert model.graph_.edges[i, j]["weight"] == pytest.approx(partial[i, j])


UNITS = np.array([0.01, 1.0, 50.0, 3.0])
WIDE = {name: (m - 8 * u, m + 5 * u) for name, m, u in zip("wxyz", [1.0, -2.0, 300.0, 0.0], UNITS, strict=True)}


class TestBounds:
    """Columns in very different units, with bounds of 5 to 8 deviations on either side of the mean."""

    FRAME = pd.DataFrame(ROWS * UNITS + [1.0, -2.0, 300.0, 0.0], columns=list("wxyz"))

    @pytest.mark.parametrize(
        "options",
        [
            {"center": "private"},
            {"center": [1.0, -2.0, 300.0, 0.0], "scaling": "bounds", "epsilon": 20.0},
            {"center": "private", "adjacency": "replace_one", "n_records": N},
            {"center": "private", "epsilon": None, "rho": 0.1},
        ],
        ids=str,
    )
    def test_no_norm_and_no_units_are_needed(self, options):
        model = PrivateGraphicalLasso(bounds=WIDE, **{"epsilon": 2.0, "random_state": 0, **options}).fit(self.FRAME)
        assert {tuple(sorted(edge)) for edge in model.graph_.edges} == {("w", "x"), ("x", "y"), ("y", "z")}
        found = model.precision_ * np.outer(UNITS, UNITS)
        assert np.linalg.norm(found - PRECISION) / np.linalg.norm(PRECISION) < 0.12
        np.testing.assert_allclose(model.location_ / UNITS, np.array([1, -2, 300, 0]) / UNITS, atol=0.05)
        again = PrivateGraphicalLasso().fit_release(model.release_)
        np.testing.assert_array_equal(again.precision_, model.precision_)

    def test_scales_are_learned_whatever_the_width(self):
        model = PrivateGraphicalLasso(bounds=WIDE, center="private", epsilon=2.0, random_state=0).fit(self.FRAME)
        deviations = np.sqrt(np.diagonal(np.linalg.inv(PRECISION)))
        np.testing.assert_allclose(model.scales_ / UNITS, deviations, rtol=0.25)
        wide = {name: (10 * low, 10 * high) for name, (low, high) in WIDE.items() if name == "z"}
        other = PrivateGraphicalLasso(bounds=WIDE | wide, center=[1, -2, 300, 0], epsilon=2.0, random_state=0)
        assert other.fit(self.FRAME).noise_sd_ < 1.2 * model.noise_sd_

    def test_a_far_record_keeps_its_other_columns(self):
        far = self.FRAME.assign(w=1e300)
        model = PrivateGraphicalLasso(
            bounds=WIDE, center="private", scaling="bounds", epsilon=1e4, penalty=0.0, refit=False, random_state=0
        ).fit(far)
        spread = model.second_moments_[1:, 1:] / np.outer(UNITS[1:], UNITS[1:])
        assert abs(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1])) > 0.2

    def test_a_schema_has_bounds(self):
        schema = Schema({name: Number(*pair) for name, pair in WIDE.items()} | {"other": ["a", "b"]})
        options = {"center": "private", "epsilon": 2.0, "random_state": 0}
        one, other = (PrivateGraphicalLasso(bounds=b, **options).fit(self.FRAME) for b in (WIDE, schema))
        np.testing.assert_array_equal(one.precision_, other.precision_)

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"row_norm": 3.0}, "row_norm=3.0.* follow from bounds; drop them"),
            ({"center": "private", "center_radius": 1.0}, "follow from bounds"),
            ({"bounds": {"w": (0, 1)}}, "no bounds for the columns"),
            ({"bounds": {**WIDE, "w": (1, 0)}}, "does not ascend"),
            ({"bounds": {**WIDE, "w": 3}}, "is no pair of numbers"),
            ({"bounds": 3}, "is a int; pass a lower and an upper bound"),
            ({"bounds": {}}, "has no column"),
            ({"center": [9.0, 0, 300, 0]}, "outside of bounds"),
            ({"bounds": None, "row_norm": 3.0, "scaling": "bounds"}, "is for bounds"),
            ({"bounds": None}, "row_norm=None"),
        ],
        ids=str,
    )
    def test_errors_come_before_the_charge(self, options, match):
        data = PrivateVectors(self.FRAME, ledger=Budget(epsilon=1.0))
        with pytest.raises((TypeError, ValueError), match=match):
            PrivateGraphicalLasso(**{"bounds": WIDE, "epsilon": 1.0, **options}).fit(data)
        assert not data.ledger.entries


class TestPairs:
    """As many columns that, from 3,000 records, noise on all second moments hides everything."""

    D = 150
    CHAIN = 0.6 ** np.abs(np.subtract.outer(range(D), range(D)))
    SIGNS = np.random.default_rng(5).multivariate_normal(np.zeros(D), CHAIN, size=3000, method="cholesky")
    BUDGET = {"epsilon": 1.0, "delta": 1e-6}

    def test_it_finds_a_chain_that_noise_on_everything_hides(self):
        options = {**self.BUDGET, "n_records": 3000, "random_state": 0, "center": [0.0] * self.D}
        chain = {(k, k + 1) for k in range(self.D - 1)}
        pairs = PrivateGraphicalLasso(perturb="pairs", **options).fit(self.SIGNS)
        assert len(edges(pairs) & chain) >= 0.9 * len(chain) and len(edges(pairs) - chain) <= 8
        everything = PrivateGraphicalLasso(self.D**0.5, **options).fit(self.SIGNS)
        assert len(edges(everything) & chain) < 0.4 * len(chain)
        np.testing.assert_allclose(np.diagonal(pairs.covariance_), 1.0)
        again = PrivateGraphicalLasso().fit_release(pairs.release_)
        np.testing.assert_array_equal(again.precision_, pairs.precision_)

    def test_with_bounds_it_has_units_and_a_mean(self):
        rows = self.SIGNS[:, :8] * 10 + 40
        model = PrivateGraphicalLasso(
            perturb="pairs", bounds=[(-40, 100)] * 8, center="private", epsilon=4.0, random_state=0
        ).fit(rows)
        assert np.allclose(model.location_, 40, atol=8) and np.allclose(model.scales_, 10, rtol=0.3)
        assert edges(model) >= {(k, k + 1) for k in range(7)}

    @pytest.mark.parametrize("name", ["row_norm", "penalty", "max_eigenvalue", "center_radius"])
    def test_what_it_does_not_take(self, name):
        with pytest.raises(ValueError, match=f"{name}=2.0 is not for perturb='pairs'; drop it"):
            PrivateGraphicalLasso(perturb="pairs", center=[0.0] * 4, epsilon=1.0, **{name: 2.0}).fit(ROWS)
        with pytest.raises(ValueError, match="signs are about a centre"):
            PrivateGraphicalLasso(perturb="pairs", epsilon=1.0).fit(ROWS)


def test_what_is_not_centred_is_called_second_moments():
    model = PrivateGraphicalLasso(NORM, epsilon=1.0, random_state=0).fit(ROWS)
    assert not model.centered_ and model.second_moments_.shape == (4, 4) and not hasattr(model, "covariance_")
    with pytest.raises(AttributeError, match=r"no center was given.*pass center=\[0.0, ...\]"):
        model.covariance_  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'covariances_'"):
        model.covariances_  # noqa: B018
    centred = PrivateGraphicalLasso(NORM, epsilon=1.0, center=[0.0] * 4, random_state=0).fit(ROWS)
    np.testing.assert_array_equal(centred.covariance_, centred.second_moments_)


def in_turns(cases, options) -> list:
    """Every other pair in the quick part."""
    return [
        pytest.param(case, chosen, marks=[pytest.mark.slow] * ((j + k) % 2), id=f"{chosen}-{case}")
        for j, case in enumerate(cases)
        for k, chosen in enumerate(options)
    ]


class TestRecordsNeverMatter:
    """Whatever the records are, there is a result, and no warning."""

    CASES = {
        "none": np.empty((0, 3)),
        "one": np.ones((1, 3)),
        "fewer than columns": np.random.default_rng(0).normal(size=(4, 30)),
        "zeros": np.zeros((50, 3)),
        "a zero column": np.random.default_rng(0).normal(size=(50, 3)) * [1, 0, 1],
        "a duplicated column": np.random.default_rng(0).normal(size=(50, 1)).repeat(3, axis=1),
        "not numbers": np.full((50, 3), np.nan),
        "infinite": np.array([[np.inf, 0.0], [-np.inf, 1.0], [1.0, 1.0]]),
        "huge": np.full((50, 3), 1e308) * [1, -1, 1],
        "tiny": np.full((50, 3), 5e-324),
        "one column": np.random.default_rng(0).normal(size=(50, 1)),
        "a constant": np.full((50, 1), 2.0),
    }

    OPTIONS = (
        {"epsilon": 1.0},
        {"epsilon": 1e6, "n_records": 50},
        {"epsilon": 1e6, "n_records": 50, "penalty": 0.0},
        {"epsilon": 1e6, "n_records": 50, "penalty": 0.0, "refit": False},
        {"epsilon": 1e-3, "penalty": 0.0, "refit": False},
        {"rho": 1e3, "adjacency": "replace_one", "n_records": 50, "penalty": 0.1},
        {"epsilon": 1.0, "delta": 1e-6, "mechanism": "goe"},
        {"epsilon": 1.0, "center": "private", "center_radius": 1.0},
        {"epsilon": 1.0, "perturb": "output", "penalty": 0.1, "n_records": 50},
        {"epsilon": 1e6, "perturb": "output", "penalty": 0.1, "n_records": 50},
    )

    @pytest.mark.parametrize(("case", "options"), in_turns(CASES, OPTIONS))
    def test_there_is_a_defined_result(self, case, options):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "random_state")
            rows = self.CASES[case].copy()
            model = PrivateGraphicalLasso(1.0, **options, random_state=0).fit(rows)
            assert np.isfinite(model.precision_).all() and np.isfinite(model.second_moments_).all()
            assert np.linalg.eigvalsh(model.precision_)[0] > 0
            assert model.graph_.number_of_nodes() == rows.shape[1]

    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("options", [{"center": "private"}, {"scaling": "bounds"}, {"perturb": "pairs"}], ids=str)
    def test_in_bounds_and_of_pairs_too(self, case, options):
        rows = self.CASES[case].copy()
        d = rows.shape[1]
        if options.get("perturb") == "pairs":
            options = {**options, "center": [0.0] * d}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "random_state")
            model = PrivateGraphicalLasso(bounds=[(-3.0, 5.0)] * d, epsilon=1.0, **options, random_state=0)
            if d == 1 and "perturb" in options:
                with pytest.raises(ValueError, match="pairs need two"):
                    model.fit(rows)
                return
            model.fit(rows)
        assert np.isfinite(model.precision_).all() and np.linalg.eigvalsh(model.precision_)[0] > 0
        assert (model.scales_ > 0).all() and (np.abs(model.location_) <= 5).all()

    def test_a_missing_value_drops_its_record_in_silence(self):
        broken = ROWS.copy()
        broken[:1000, 2] = np.nan
        whole = PrivateGraphicalLasso(NORM, epsilon=1.0, random_state=0).fit(ROWS[1000:])
        model = PrivateGraphicalLasso(NORM, epsilon=1.0, random_state=0).fit(broken)
        np.testing.assert_array_equal(model.precision_, whole.precision_)


BAD = [
    ({"row_norm": None}, ValueError, "row_norm=None"),
    ({"row_norm": -1.0}, ValueError, "row_norm=-1.0"),
    ({"mechanism": "wishart"}, ValueError, "mechanism='wishart'"),
    ({"perturb": "input"}, ValueError, "perturb='input'"),
    ({"penalty": -0.1}, ValueError, "penalty=-0.1"),
    ({"penalty": "auto"}, ValueError, "penalty='auto'"),
    ({"penalty": None}, TypeError, "penalty=None"),
    ({"epsilon": None}, ValueError, "no budget"),
    ({"epsilon": -1.0}, ValueError, "epsilon=-1.0"),
    ({"adjacency": "edge"}, ValueError, "adjacency='edge'"),
    ({"adjacency": "replace_one"}, ValueError, "n_records=None"),
    ({"max_eigenvalue": 2.0}, ValueError, "is not for perturb='covariance'"),
    ({"perturb": "output"}, ValueError, "penalty='noise-aware'"),
    ({"perturb": "output", "penalty": 0.1}, ValueError, "public number of records"),
    ({"perturb": "output", "penalty": 0.1, "center_radius": 1.0}, ValueError, "is not for perturb='output'"),
    ({"mechanism": "goe"}, ValueError, "no pure guarantee"),
    ({"mechanism": "one-sided-wishart"}, ValueError, "private only with a delta"),
    (
        {"mechanism": "one-sided-wishart", "delta": 1e-6, "adjacency": "replace_one", "n_records": 5},
        ValueError,
        "single records",
    ),
    ({"center": "mean"}, ValueError, "center='mean'"),
    ({"center": [1.0]}, ValueError, "center has 1 entries"),
    ({"columns": ["a"]}, ValueError, "columns"),
    ({"unit": "who"}, TypeError, "unit='who'"),
]


@pytest.mark.parametrize(("options", "kind", "match"), BAD, ids=lambda x: str(x) if isinstance(x, dict) else "")
def test_bad_arguments_are_stored_and_refused_when_used(options, kind, match, monkeypatch):
    monkeypatch.setattr(moments, "clipped_integers", None)  # no record is looked at
    model = PrivateGraphicalLasso(**{"row_norm": 1.0, "epsilon": 1.0, **options})
    for name, value in options.items():
        assert getattr(model, name) is value
    with pytest.raises(kind, match=match):
        model.fit(ROWS)
    assert not model.is_fitted


def test_no_columns_are_refused():
    with pytest.raises(ValueError, match="no columns"):
        PrivateGraphicalLasso(1.0, epsilon=1.0).fit(np.empty((5, 0)))


@pytest.mark.parametrize(
    "options", [{"columns": ["b"]}, {"n_records": 7}, {"unit": "who"}, {"adjacency": "replace_one", "n_records": 5}]
)
def test_arguments_that_contradict_private_vectors_are_refused(options):
    data = PrivateVectors(ROWS, ledger=Budget(epsilon=1.0), n_records=5)
    with pytest.raises(ValueError, match="PrivateVectors'"):
        PrivateGraphicalLasso(1.0, epsilon=1.0, **options).fit(data)
    assert data.ledger.entries == ()


@pytest.mark.parametrize("clone", [lambda e: e.clone(), sklearn.base.clone], ids=["skbase", "sklearn"])
def test_clones_are_unfitted(clone):
    model = PrivateGraphicalLasso(NORM, epsilon=1.0, center=[0.0, 0, 0, 0]).fit(ROWS)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not copy.is_fitted and not hasattr(copy, "precision_")
    assert copy.set_params(epsilon=2.0).epsilon == 2.0


def test_other_releases_are_refused():
    release = PrivateGraphicalLasso(NORM, epsilon=1.0).fit(ROWS).release_
    object.__setattr__(release, "kind", "marginals")
    with pytest.raises(ValueError, match="kind 'marginals'"):
        PrivateGraphicalLasso().fit_release(release)
    with pytest.raises(TypeError, match="pass a Release"):
        PrivateGraphicalLasso().fit_release(ROWS)


# -- nothing leaks, and a failed fit changes nothing ------------------------------------------------------------


def leaks(root) -> list[str]:
    """What of the private records can be found in `root`."""
    exact = [ROWS.sum(axis=0), ROWS.mean(axis=0), *(ROWS.T @ ROWS / k for k in (1, N)), *ROWS[:3]]
    found = []
    for item in reachable(root):
        if isinstance(item, PrivateVectors | Sensitive | pd.DataFrame | pd.Series):
            found.append(type(item).__name__)
        elif isinstance(item, np.ndarray) and item.dtype.kind in "iuf":
            if N in item.shape:
                found.append("an array with an entry for each record")
            entries = {float(entry) for value in exact for entry in np.ravel(value)}
            if any(float(entry) in entries for entry in item.ravel()[:1000]):
                found.append("an exact statistic")
        elif isinstance(item, int | float) and not isinstance(item, bool) and item == N:
            found.append("the exact number of records")
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"center": "private", "center_radius": 1.0}, {"perturb": "output", "penalty": 0.1, "n_records": 20_000}],
    ids=str,
)
def test_a_fitted_estimator_holds_no_records_nor_exact_statistics(options):
    model = PrivateGraphicalLasso(NORM, epsilon=0.01, **options).fit(ROWS)
    for item in (model, model.release_, model.to_pgmpy(), pickle.loads(pickle.dumps(model))):
        assert leaks(item) == []


def test_the_search_finds_what_it_looks_for():
    model = PrivateGraphicalLasso(NORM, epsilon=0.01).fit(ROWS)
    for secret in (ROWS, [ROWS.T @ ROWS], {"mean": ROWS.mean(axis=0)}, (N,), ROWS[1], Sensitive(N, "x", 1, 1, 1)):
        model.secret = secret
        assert leaks(model)
        del model.secret
    assert leaks(model) == []


class Boom(RuntimeError):
    pass


def raises(*_args, **_kwargs):
    raise Boom


BEFORE = {
    "the settings": (PrivateGraphicalLasso, "_check"),
    "the vectors": (vectors, "_read"),
    "the plan": (vector_operators, "plan_matrix_noise"),
}
AFTER = {
    "the sums": (vector_operators, "second_moments"),
    "the noise": (matrix, "integer_wishart"),
    "the release": (charged_base, "Release"),
}
LEARNING = {
    "its reading": (private_graphical_lasso, "noisy_covariance"),
    "the lasso": (precision_fits, "graphical_lasso"),
    "the refit": (precision_fits, "refit_on_support"),
    "the graph": (private_graphical_lasso, "precision_graph"),
}


@pytest.mark.parametrize("step", [*BEFORE, *AFTER, *LEARNING])
def test_a_failed_fit_changes_nothing(step, monkeypatch):
    data = PrivateVectors(ROWS, ledger=Budget(epsilon=1.0))
    model = PrivateGraphicalLasso(NORM, epsilon=0.25).fit(data)
    before, entries = dict(vars(model)), data.ledger.entries
    monkeypatch.setattr(*{**BEFORE, **AFTER, **LEARNING}[step], raises)
    with pytest.raises(Boom) as caught:
        model.fit(ROWS if step == "the vectors" else data)
    assert vars(model) == before and all(vars(model)[name] is value for name, value in before.items())
    assert len(data.ledger.entries) == len(entries) + (step not in BEFORE)
    if step in LEARNING:
        monkeypatch.undo()
        rescued = PrivateGraphicalLasso().fit_release(caught.value.release)
        assert rescued.privacy_.guarantee == model.privacy_.guarantee


def test_a_failed_output_perturbation_is_charged(monkeypatch):
    data = PrivateVectors(ROWS, ledger=Budget(epsilon=1.0), n_records=N)
    monkeypatch.setattr(solutions, "certified_solution", raises)
    with pytest.raises(Boom):
        PrivateGraphicalLasso(NORM, epsilon=0.25, perturb="output", penalty=0.1).fit(data)
    assert len(data.ledger.entries) == 1

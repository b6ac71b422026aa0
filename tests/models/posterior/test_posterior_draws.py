"""Draws of the parameters against closed forms, sums over all data sets, and each other."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import dlaplace, norm, t

from benchmarks.coverage import laplace_draws
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.heavy_tailed_prior import (
    VARIANCE_GRID,
    draw_variances,
    posterior_variances,
    pseudo_huber_variance,
)
from pgmpy_dp.learning.interaction_split import InteractionSplit
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import Fit, maximum_likelihood
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.structural_zeros import engine_within
from pgmpy_dp.models.posterior import posterior_sampling as sampling
from pgmpy_dp.models.posterior import posterior_target as module
from pgmpy_dp.models.posterior.multiple_imputation import combine_synthetic
from pgmpy_dp.models.posterior.posterior_draws import Interval, Posterior
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior
from pgmpy_dp.models.posterior.query_intervals import Question
from tests.learning.test_fits import release
from tests.small_models import chain

PAIR = Cliques(("a", "b"), (2, 2), (("a", "b"),))


def intervals(posterior: Posterior, level: float = 0.9) -> Interval:
    """Of each cell of each table."""
    return posterior.interval_of(posterior.marginals, level)


def draws(noisy: NoisyMarginals, seed: int = 0, **options):
    return sample_posterior(noisy, collective_map(noisy), np.random.default_rng(seed), **options)


RATIO = module._HIDDEN_SPREAD * pseudo_huber_variance()
"""Variances of the draws' prior over those that are drawn from their evidence."""


def fix_prior(monkeypatch, variance: float) -> None:
    """All prior variances known."""
    monkeypatch.setattr(
        module,
        "draw_variances",
        lambda evidence, n, rng, shape: np.full((n, len(evidence)), variance / RATIO),
    )


def fitted(noisy: NoisyMarginals) -> Fit:
    """A fit without a prior, where the tables are far above the noise."""
    return maximum_likelihood(noisy.cliques, np.maximum(noisy.counts, 0.5), tol=1e-9)


def test_the_prior_is_the_fits(monkeypatch):
    """Tail and shape of the fit, not the defaults, are what the prior variances of the draws come from."""
    _, noisy = release(chain(1, 3, 2), 1000, 20.0, seed=3)
    fit = collective_map(noisy, prior_tail=0.5, variance_shape=2.0)
    shapes = []

    def constant(evidence, n, rng, shape):
        shapes.append(shape)
        return np.ones((n, len(evidence)))

    monkeypatch.setattr(module, "draw_variances", constant)
    target = module.Target(noisy, fit, 3, np.random.default_rng(0))
    assert shapes == [2.0, 2.0]
    np.testing.assert_allclose(target.t_clique, module._HIDDEN_SPREAD * pseudo_huber_variance(0.5))


# --- exact answers --------------------------------------------------------------------------------------------------


def test_one_table_gaussian_noise_flat_prior_is_the_closed_form(monkeypatch):
    """y = N p + Normal(0, N (diag p - p p') + sigma^2 I) restricted to sum(p) = 1: weighted least squares."""
    fix_prior(monkeypatch, 1e4)
    cliques = Cliques(("a",), (4,), (("a",),))
    p, n, sigma = np.array([0.1, 0.2, 0.3, 0.4]), 20_000, 120.0
    y = n * p + np.array([30.0, -50.0, 10.0, 25.0])
    noisy = NoisyMarginals(cliques, y, "gaussian", np.array([sigma]), total=n)
    fit = fitted(noisy)
    posterior = sample_posterior(noisy, fit, np.random.default_rng(0), n_draws=1000)
    q = fit.model.marginals()
    precision = np.linalg.inv(n * (np.diag(q) - np.outer(q, q)) + sigma**2 * np.eye(4)) * n**2
    basis = np.linalg.svd(np.ones((1, 4)))[2][1:].T  # directions that keep the sum
    covariance = basis @ np.linalg.inv(basis.T @ precision @ basis) @ basis.T
    centre = np.full(4, 0.25)
    mean = centre + covariance @ precision @ (y / n - centre)
    sd = np.sqrt(np.diag(covariance))
    marginals = posterior.marginals
    np.testing.assert_allclose(marginals.mean(axis=0), mean, atol=float(0.12 * sd.max()))
    np.testing.assert_allclose(marginals.std(axis=0), sd, rtol=0.08)
    # The test can fail: a noise 30 % larger moves the standard deviations by more than 8 %.
    wider = replace(noisy, scale=np.array([1.3 * sigma]))
    other = sample_posterior(wider, fit, np.random.default_rng(0), n_draws=1000).marginals.std(axis=0)
    assert np.all(other > 1.12 * sd)


@functools.cache
def released_pair(noise: str) -> NoisyMarginals:
    """Of a 2 x 2 table, for which there is an exact answer."""
    scale = np.array([3.0 if noise == "laplace" else 4.0])
    return NoisyMarginals(PAIR, np.array([33.0, 12.0, 6.0, 27.0]), noise, scale, total=80)


@functools.cache
def exact_posterior(noise: str, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Grid over the three parameters of a 2 x 2 model, sum over all tables n; marginals (grid, 4) and weights."""
    noisy = released_pair(noise)
    n, scale = int(noisy.n_records), float(noisy.scale[0])
    grid = np.indices((n + 1, n + 1, n + 1)).reshape(3, -1)
    grid = grid[:, grid.sum(axis=0) <= n]
    tables = np.vstack([grid, n - grid.sum(axis=0)]).T
    added = noisy.counts - tables
    log_noise = (
        dlaplace.logpmf(np.rint(added), 1 / scale) if noise == "laplace" else norm.logpdf(added, scale=scale)
    ).sum(axis=1)
    keep = log_noise > log_noise.max() - 12
    tables, log_noise = tables[keep], log_noise[keep]
    log_factorial = np.cumsum(np.log(np.maximum(np.arange(n + 1), 1)))
    log_weight = log_noise - log_factorial[tables].sum(axis=1)
    axis = np.linspace(-2.4, 2.4, 25)
    a, b, ab = (v.ravel() for v in np.meshgrid(axis, axis, axis, indexing="ij"))
    # The table's interaction is ab (+ - - +) and the main effects are a (+ -), b (+ -).
    theta = np.stack([a + b + ab, a - b - ab, -a + b - ab, -a - b + ab], axis=1)
    log_p = theta - np.log(np.exp(theta).sum(axis=1, keepdims=True))
    log_likelihood = np.empty(len(theta))
    for k, row in enumerate(log_p):
        terms = log_weight + tables @ row
        log_likelihood[k] = terms.max() + math.log(np.exp(terms - terms.max()).sum())
    # Four cells of the interaction and two of each main effect, each with this variance.
    log_posterior = log_likelihood - (4 * ab**2 + 2 * a**2 + 2 * b**2) / (2 * variance)
    weight = np.exp(log_posterior - log_posterior.max())
    return np.exp(log_p), weight / weight.sum()


@pytest.mark.parametrize("noise", ["gaussian", pytest.param("laplace", marks=pytest.mark.slow)])
def test_two_by_two_agrees_with_a_grid_and_all_tables(noise, monkeypatch):
    fix_prior(monkeypatch, 1.0)
    noisy = released_pair(noise)
    p, weight = exact_posterior(noise, 1.0)
    posterior = draws(noisy, n_draws=300)
    for cell in range(4):
        order = np.argsort(p[:, cell])
        cumulative = np.cumsum(weight[order])
        exact = [p[order, cell][np.searchsorted(cumulative, q)] for q in (0.05, 0.95)]
        _, lower, upper = posterior.interval_of(posterior.marginals[:, cell])
        width = exact[1] - exact[0]
        # Laplace noise is taken for normal noise of its variance, which costs a little.
        tolerance = (0.2 if noise == "laplace" else 0.14) * width
        assert abs(lower - exact[0]) < tolerance
        assert abs(upper - exact[1]) < tolerance


# --- what is near, and what grows ------------------------------------------------------------------------------------


def test_draws_are_normal_where_the_signal_is_strong():
    """Every cell far above the noise."""
    cliques = chain(1, 4, 3)
    rng = np.random.default_rng(1)
    truth = LogLinearModel(cliques, 0.4 * rng.normal(size=cliques.n_cells))
    n = 200_000
    noisy = NoisyMarginals(
        cliques, n * truth.marginals() + rng.laplace(scale=20, size=27), "laplace", np.full(3, 20.0), n
    )
    made, rng = collective_map(noisy), np.random.default_rng(0)
    normal, found = laplace_draws(noisy, made, rng, 300).marginals, draws(noisy, n_draws=300).marginals
    deviation = normal.std(axis=0)
    assert abs(np.log(found.std(axis=0) / deviation)).mean() < 0.06
    assert np.abs((found.mean(axis=0) - normal.mean(axis=0)) / deviation).max() < 0.5


def test_sampling_errors_of_overlapping_tables_are_the_same_error(monkeypatch):
    """Ten copies of a nearly exact table know the population as well as one: the records are the same."""
    fix_prior(monkeypatch, 1e3)
    p, n = np.array([0.15, 0.35, 0.2, 0.3]), 10_000
    deviations = []
    for copies in (1, 10):
        cliques = Cliques(("a", "b"), (2, 2), (("a", "b"),) * copies)
        noisy = NoisyMarginals(cliques, np.tile(n * p, copies), "gaussian", np.full(copies, 1.0), total=n)
        deviations.append(
            sample_posterior(noisy, fitted(noisy), np.random.default_rng(0), n_draws=800).query("ab").std(0)
        )
    np.testing.assert_allclose(deviations[0].ravel(), np.sqrt(p * (1 - p) / n), rtol=0.1)
    np.testing.assert_allclose(deviations[0], deviations[1], rtol=0.1)


@pytest.mark.parametrize(("scale", "impossible"), [(5.0, ()), (60.0, ()), (20.0, ({"0": {0}, "1": {1, 2}},))])
@pytest.mark.parametrize("dense_limit", [10**6, 0])
def test_a_batch_has_the_minima_of_independent_fits(monkeypatch, scale, impossible, dense_limit):
    """Each draw alone, by SciPy's L-BFGS on the sum of squares as it is defined, with an engine of its own."""
    names = tuple("01234")
    cliques = Cliques(names, (3,) * 5, tuple(itertools.pairwise(names)))
    _, noisy = release(cliques, 2_000, scale, seed=4)
    noisy = replace(noisy, impossible=impossible)
    fit = collective_map(noisy, find_empty=False)
    monkeypatch.setattr(sampling, "_MAX_EVALUATIONS", 2_000)
    monkeypatch.setattr(sampling, "_DONE", {"gradient_tol": 1e-5, "decrease_tol": 1e-14})
    drawn = sample_posterior(noisy, fit, np.random.default_rng(2), n_draws=3, dense_limit=dense_limit)
    # The same cases again: nothing but the prior variances and the errors is drawn, in this order.
    rng = np.random.default_rng(2)
    target = module.Target(noisy, fit, 3, rng)
    metric = (module.DenseMetric if dense_limit else module.DiagonalMetric)(target)
    cases = [target.perturbed(metric, k, rng) for k in range(3)]
    engine, split = engine_within(cliques, impossible), InteractionSplit(cliques)
    for k, case in enumerate(cases):

        def objective(theta, case=case):
            mu, _ = engine.calibrate(theta)
            residual = case.total * mu - case.counts
            interaction, main = split.interaction(theta) - case.interaction, split.main_effect(theta) - case.main
            pull = metric.solve(residual[None])[0]
            value = residual @ pull + (interaction**2 / case.t_cell).sum() + (main**2 / case.t_state).sum()
            gradient = case.total * engine.derivative(pull) + split.interaction(interaction / case.t_cell)
            return 0.5 * value, gradient + split.main_effect_adjoint(main / case.t_state)

        alone = minimize(
            objective,
            target.centre,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 40},
        )
        assert objective(drawn.theta[k])[0] <= alone.fun * (1 + 1e-7)
        np.testing.assert_allclose(engine.calibrate(drawn.theta[k])[0], engine.calibrate(alone.x)[0], atol=2e-5)


def test_the_diagonal_form_agrees_with_the_dense_one():
    _, noisy = release(chain(1, 5, 3), 5_000, 10.0, seed=3)
    dense, diagonal = (draws(noisy, n_draws=150, dense_limit=limit) for limit in (10**6, 0))
    assert "dense" in dense.status and "diagonal" in diagonal.status
    ratio = diagonal.marginals.std(axis=0) / dense.marginals.std(axis=0)
    assert abs(np.log(ratio)).mean() < 0.12
    assert np.abs(diagonal.marginals.mean(axis=0) - dense.marginals.mean(axis=0)).max() < 0.01


def test_more_noise_and_fewer_records_mean_wider_intervals():
    width = {}
    for n, scale in ((10_000, 5.0), (10_000, 100.0), (1_000, 5.0)):
        _, noisy = release(chain(1, 4, 3), n, scale, seed=5)
        _, lower, upper = intervals(draws(noisy, n_draws=99))
        width[n, scale] = (upper - lower).mean()
    assert width[10_000, 100.0] > 1.5 * width[10_000, 5.0]
    assert width[1_000, 5.0] > 1.5 * width[10_000, 5.0]


def test_coverage_of_a_small_model():
    """12 releases of 3 tables: 90 % intervals cover between 84 and 96 % of the population's cells."""
    inside = []
    for seed in range(12):
        truth, noisy = release(chain(1, 4, 3), 3_000, 20.0, seed=seed, total=False)
        _, lower, upper = intervals(draws(noisy, n_draws=19), 0.9)
        inside.append(np.mean((lower <= truth.marginals()) & (truth.marginals() <= upper)))
    assert 0.84 < np.mean(inside) < 0.96


def test_prior_variances_are_draws_around_their_posterior_mean():
    rng = np.random.default_rng(0)
    evidence = np.cumsum(rng.normal(size=(3, len(VARIANCE_GRID))), axis=1)
    drawn = draw_variances(evidence, 4000, rng)
    np.testing.assert_allclose(np.exp(np.log(drawn).mean(axis=0)), posterior_variances(evidence), rtol=0.12)
    assert np.log(drawn).std(axis=0).min() > 0.1


# --- what users ask for ---------------------------------------------------------------------------------------------


def test_intervals_are_nested_and_hold_the_mean_s_neighbourhood(cliques):
    _, noisy = release(cliques, 2_000, 10.0, seed=7)
    posterior = draws(noisy, n_draws=19)
    narrow, wide = intervals(posterior, 0.5), intervals(posterior, 0.9)
    assert np.all(wide.lower <= narrow.lower) and np.all(narrow.lower <= narrow.upper)
    assert np.all(narrow.upper <= wide.upper)
    assert np.all(wide.lower >= 0) and np.all(wide.upper <= 1 + 1e-12)
    np.testing.assert_allclose(posterior.marginals.sum(axis=1), cliques.n_cliques)


def test_a_lower_end_is_the_lower_one_of_draws_and_of_a_normal_interval():
    _, noisy = release(chain(1, 2, 2), 2_000, 10.0, seed=7)
    posterior, rng = draws(noisy, n_draws=19), np.random.default_rng(0)
    normal, hidden = rng.normal(size=(2, 199, 50))
    shares = np.column_stack([0.5 + 0.01 * normal, 1e-4 * np.exp(hidden), 1e-4 * np.exp(0.3 * hidden)])
    interval = posterior.interval_of(shares)
    tails = np.quantile(shares, [0.05, 0.95], axis=0, method="weibull")
    np.testing.assert_array_equal(interval.upper, tails[1])
    np.testing.assert_allclose(interval.lower[:50], tails[0][:50], atol=0.003)  # draws of a normal law are as they were
    assert (interval.lower[50:100] == 0).all() and (tails[0][50:100] > 0).all()
    expected = shares.mean(axis=0) - 1.6448536 * shares.std(axis=0, ddof=1)
    np.testing.assert_allclose(interval.lower[100:], np.minimum(expected, tails[0])[100:], rtol=1e-6)
    assert (posterior.interval_of(shares - 0.3).lower[50:100] < -0.3).all()  # what is no share may be negative


def test_queries_are_those_of_each_draw_s_model():
    _, noisy = release(chain(1, 4, 3), 2_000, 10.0, seed=8)
    posterior = draws(noisy, n_draws=5)
    joint = posterior.query([3, 1, 0])
    conditional = Question.about({3: 3, 1: 3}, {0: np.tile(np.eye(3)[2], (3, 1))}).answers([joint])
    assert conditional.shape == (5, 3, 3)
    for k in range(5):
        expected = posterior.model(k).marginal([3, 1, 0])
        np.testing.assert_allclose(joint[k], expected, atol=1e-12)
        np.testing.assert_allclose(conditional[k], expected[..., 2] / expected[..., 2].sum(), atol=1e-12)


def test_repeatable_by_its_generator():
    _, noisy = release(PAIR, 2_000, 10.0, seed=9)
    first, again, other = (draws(noisy, seed=s, n_draws=5).theta for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)


JUNK = {
    "zero": np.zeros(18),
    "negative": np.full(18, -1e6),
    "one cell": np.r_[1e9, np.zeros(17)],
    "huge": np.full(18, 1e12),
    "cancelling": np.r_[-1e5, 1e5, np.ones(16)],
}


@pytest.mark.parametrize(
    ("name", "total"),
    [
        pytest.param(name, total, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, name in enumerate(JUNK)
        for j, total in enumerate([None, 50.0])
    ],
)
def test_junk_releases_give_defined_intervals(name, total):
    noisy = NoisyMarginals(chain(1, 3, 3), JUNK[name], "laplace", np.full(2, 3.0), total)
    posterior = draws(noisy, n_draws=19)
    for part in intervals(posterior, 0.9):
        assert np.isfinite(part).all() and np.all(part >= 0) and np.all(part <= 1 + 1e-12)


def test_bad_input_is_named():
    _, noisy = release(PAIR, 1_000, 5.0, seed=0)
    fit, rng = collective_map(noisy), np.random.default_rng(0)
    exact = NoisyMarginals(PAIR, np.ones(4), "none", np.zeros(1))
    with pytest.raises(ValueError, match='noise="none"'):
        sample_posterior(exact, fit, rng)
    with pytest.raises(ValueError, match="n_draws"):
        sample_posterior(noisy, fit, rng, n_draws=0)
    with pytest.raises(ValueError, match="same tables"):
        sample_posterior(NoisyMarginals(chain(1, 2, 3), np.ones(9), "laplace", np.ones(1)), fit, rng)
    zeros = LogLinearModel(PAIR, np.array([0.0, 0.0, 0.0, -np.inf]))
    with pytest.raises(ValueError, match="structural zeros"):
        sample_posterior(noisy, replace(fit, model=zeros), rng)
    posterior = sample_posterior(noisy, fit, rng, n_draws=19)
    with pytest.raises(ValueError, match="at least 199 draws, there are 19"):
        intervals(posterior, 0.99)
    with pytest.raises(ValueError, match="between 0 and 1"):
        intervals(posterior, 1.0)
    with pytest.raises(ValueError, match="at least one variable"):
        posterior.query([])
    with pytest.raises(ValueError, match="'z'"):
        posterior.query(["z"])


# --- several synthetic data sets ------------------------------------------------------------------------------------


def test_combining_rules_are_those_of_the_paper():
    q, u = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.1, 0.2, 0.3, 0.2])
    combined = combine_synthetic(q, u, level=0.9)
    b = np.var(q, ddof=1)
    variance = (1 + 1 / 4) * b - 0.2
    freedom = 3 * (1 - 0.2 / (1.25 * b)) ** 2
    assert combined.variance == pytest.approx(variance)
    assert combined.degrees_of_freedom == pytest.approx(freedom)
    assert combined.upper == pytest.approx(3.0 + t.ppf(0.95, freedom) * np.sqrt(variance))
    negative = combine_synthetic(np.array([1.0, 1.0]), np.array([0.5, 0.7]), records_ratio=2.0)
    assert negative.variance == pytest.approx(1.2)  # 2 u_bar
    for bad in ((np.ones(1), np.ones(1)), (np.ones(3), np.ones(2)), (np.ones(2), -np.ones(2))):
        with pytest.raises(ValueError, match="estimates"):
            combine_synthetic(*bad)


def test_combined_synthetic_data_sets_tell_the_posterior_s_spread():
    """Q is about the posterior mean, and T about the posterior variance plus that of Q."""
    _, noisy = release(chain(1, 3, 2), 5_000, 30.0, seed=11)
    posterior = draws(noisy, n_draws=400)
    n, m = 20_000, 200
    rng = np.random.default_rng(0)
    chosen = rng.choice(posterior.n_draws, size=m, replace=False)
    sets = [posterior.model(int(k)).sample(n, rng, "independent") for k in chosen]
    shares = np.array([np.mean(codes[:, 0] == 0) for codes in sets])
    combined = combine_synthetic(shares, shares * (1 - shares) / n)
    exact = posterior.query([0])[:, 0]
    assert combined.estimate == pytest.approx(exact.mean(), abs=0.3 * exact.std())
    assert combined.variance == pytest.approx(exact.var() * (1 + 1 / m), rel=0.3)

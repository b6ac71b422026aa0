"""Fits between the rounds of structure learning: repeated tables merged, contradictions reconciled."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.log_linear import LogLinearModel
from pgmpy_dp.models.network_estimate import estimate_network
from pgmpy_dp.models.noisy_marginals import NoisyMarginals

VARIABLES, SIZES = ("a", "b", "c", "d", "e"), (3, 2, 4, 2, 1)
SINGLES = tuple((name,) for name in VARIABLES)


def model(scopes, seed=0, scale=2.0):
    cliques = Cliques(VARIABLES, SIZES, (*SINGLES, *scopes))
    return LogLinearModel(cliques, scale * np.random.default_rng(seed).normal(size=cliques.n_cells))


def noisy(truth, scopes, scale, seed=1, n=1000, repeat=()):
    scopes = (*SINGLES, *scopes, *repeat)
    cliques = Cliques(VARIABLES, SIZES, scopes)
    exact = n * cliques.join(truth.marginals_of(scopes))
    noise = np.random.default_rng(seed).normal(0, scale, cliques.n_cells)
    return NoisyMarginals(cliques, exact + noise, "gaussian", np.full(cliques.n_cliques, scale), total=n)


def test_the_estimate_reproduces_nearly_exact_tables_and_leaves_the_rest_independent():
    truth = model((("a", "b"), ("c", "d")), scale=0.7)
    estimate = estimate_network(noisy(truth, (("a", "b"),), 1e-3))
    for i, j in itertools.combinations(range(5), 2):
        names = VARIABLES[i], VARIABLES[j]
        if (i, j) == (0, 1):
            expected = truth.marginal(names)
        else:
            expected = np.outer(truth.marginal([names[0]]), truth.marginal([names[1]]))
        assert np.abs(estimate.expected_counts((i, j)) - 1000 * expected).max() < 2


def test_tables_that_come_one_by_one_are_fitted_up_to_their_noise():
    truth = model((("a", "b"), ("b", "c"), ("c", "d")))
    scopes, estimate = [], None
    for scope in truth.cliques.scopes[5:]:
        scopes.append(scope)
        estimate = estimate_network(noisy(truth, scopes, 0.5), estimate)
    for i, j in itertools.combinations(range(5), 2):
        expected = 1000 * truth.marginal([VARIABLES[i], VARIABLES[j]])
        assert np.abs(estimate.expected_counts((i, j)) - expected).max() < 5


@pytest.mark.parametrize("seed", range(3))
def test_contradictory_and_negative_tables_give_a_distribution(seed):
    truth = model((("a", "b"), ("b", "c"), ("a", "c")))
    estimate = estimate_network(noisy(truth, (("a", "b"), ("b", "c"), ("a", "c")), 500.0, seed=seed))
    for table in estimate.expected_tables(list(itertools.combinations(range(5), 3))):
        assert np.isfinite(table).all()
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1000.0, abs=1e-6)


def test_repeated_tables_are_merged_by_inverse_variance():
    cliques = Cliques(("a", "b"), (2, 3), (("a", "b"), ("a",), ("b", "a")))
    first, second = np.arange(6.0).reshape(2, 3), 10 + np.arange(6.0).reshape(2, 3)
    counts = cliques.join([first, np.array([1.0, 2.0]), second.T])
    for noise in ("gaussian", "laplace"):
        merged = NoisyMarginals(cliques, counts, noise, np.array([1.0, 7.0, 2.0])).merged()
        assert merged.cliques.scopes == (("a", "b"), ("a",))
        np.testing.assert_allclose(merged.cliques.split(merged.counts)[0], 0.8 * first + 0.2 * second)
        np.testing.assert_allclose(merged.scale, [0.8**0.5, 7.0])
        assert merged.merged() is merged
    # The variance of the mean, of either noise, is what the scale says.
    assert merged.table_variance[0] == pytest.approx(0.8**2 * 2 * 1 + 0.2**2 * 2 * 4)


def test_merging_survives_scales_whose_squares_do_not():
    cliques = Cliques(("a",), (2,), (("a",), ("a",)))
    merged = NoisyMarginals(cliques, np.ones(4), "gaussian", np.array([1e-200, 1e200])).merged()
    np.testing.assert_allclose(merged.scale, [1e-200])

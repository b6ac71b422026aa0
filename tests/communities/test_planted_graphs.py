"""Planted graphs have the stated law, errors ignore names, and communities are found where there is no noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.block_models import degree_weights
from pgmpy_dp.communities.community_labels import (
    balanced,
    combined,
    expected_degrees,
    labels_of,
    marks_of,
    power_communities,
    random_labels,
    spectral_labels,
)
from pgmpy_dp.communities.planted_graphs import error_rate, planted_labels, sample_block_model


@pytest.fixture
def rng():
    return np.random.default_rng(7)


class TestGraphs:
    @pytest.mark.parametrize("shares", [2, 3, [5, 1], [4, 2, 1]])
    def test_sizes(self, shares, rng):
        counts = np.bincount(planted_labels(700, shares, rng))
        expected = np.ones(shares) if isinstance(shares, int) else np.array(shares)
        assert np.abs(counts - 700 * expected / expected.sum()).max() <= 1 and counts.sum() == 700

    @pytest.mark.parametrize(
        ("k", "bias"), [*(pytest.param(2, bias, marks=pytest.mark.slow) for bias in (0.8, -0.5)), (3, 0.4), (1, 0.0)]
    )
    def test_every_pair_has_its_probability(self, k, bias, rng):
        n, d, graphs = 12, 4.0, 3000
        labels = np.arange(n) % k
        seen = sum(sample_block_model(labels, d, bias, rng).toarray().astype(int) for _ in range(graphs)) / graphs
        tilt = np.where(labels[:, None] == labels, 1 + (k - 1) * bias, 1 - bias)
        expected = d / n * tilt * (1 - np.eye(n))
        # 5 standard deviations of the largest, seeded.
        assert np.abs(seen - expected).max() < 5 * np.sqrt(0.25 / graphs)

    def test_weights_multiply(self, rng):
        n, graphs = 10, 3000
        labels, weights = np.arange(n) % 2, np.linspace(0.5, 1.5, n)
        seen = sum(sample_block_model(labels, 2.0, 0.5, rng, weights).toarray().astype(int) for _ in range(graphs))
        tilt = np.where(labels[:, None] == labels, 1.5, 0.5)
        expected = 0.2 * tilt * np.outer(weights, weights) * (1 - np.eye(n))
        assert np.abs(seen / graphs - expected).max() < 5 * np.sqrt(0.25 / graphs)

    def test_simple_symmetric_and_sparse(self, rng):
        graph = sample_block_model(planted_labels(3000, 2, rng), 10.0, 0.9, rng)
        assert (graph != graph.T).nnz == 0 and not graph.diagonal().any() and set(graph.data.tolist()) == {1}
        assert abs(graph.nnz - 30_000) < 5 * np.sqrt(2 * 30_000)

    @pytest.mark.parametrize("full", [0.0, 1.0])
    def test_extreme_probabilities(self, full, rng):
        graph = sample_block_model(np.zeros(6, dtype=int), 6 * full, 0.0, rng)
        assert graph.nnz == (30 if full else 0)

    def test_impossible_probabilities_are_refused(self, rng):
        for degree, bias in [(12.0, 0.0), (5.0, 1.5), (8.0, 0.9)]:
            with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
                sample_block_model(np.arange(10) % 2, degree, bias, rng)
        with pytest.raises(ValueError, match="shares"):
            planted_labels(5, [1, 0], rng)

    def test_weights_of_degrees(self, rng):
        weights = degree_weights(5000, rng, spread=0.8)
        assert weights.mean() == pytest.approx(1.0) and weights.min() > 0 and weights.std() > 0.5


def test_errors_ignore_the_names_of_communities(rng):
    truth = planted_labels(60, 3, rng)
    for names in itertools.permutations(range(3)):
        assert error_rate(np.array(names)[truth], truth) == 0.0
    wrong = truth.copy()
    wrong[:6] = (wrong[:6] + 1) % 3
    assert error_rate(wrong, truth) == pytest.approx(0.1)
    assert error_rate(np.zeros(60, dtype=int), truth) == pytest.approx(2 / 3)
    assert error_rate(np.empty(0, dtype=int), np.empty(0, dtype=int)) == 0.0


class TestRecovery:
    @pytest.mark.parametrize("k", [2, 3, 5])
    @pytest.mark.parametrize("n", [120, 600])
    def test_spectral_start_and_power_method_without_noise(self, k, n, rng):
        truth = planted_labels(n, k, rng)
        graph = sample_block_model(truth, n / (2 * k), 0.9, rng)
        matrix = graph.toarray().astype(np.float32) - np.float32(1 / (2 * k))
        labels = power_communities(matrix, spectral_labels(matrix, k), k)
        assert error_rate(labels, truth) < 0.02
        assert np.array_equal(labels, power_communities(matrix, labels, k))

    @pytest.mark.parametrize("k", [2, 4])
    def test_degenerate_matrices_have_labels(self, k):
        for matrix in (np.zeros((6, 6)), np.ones((6, 6)), np.eye(6)):
            assert set(spectral_labels(matrix, k).tolist()) <= set(range(k))
        # k = n is allowed
        assert spectral_labels(np.zeros((2, 2)), 2).shape == (2,)

    def test_balanced_sums_have_mean_zero_where_there_is_nothing(self, rng):
        marks = marks_of(random_labels(400, 3, rng), 3)
        graph = sample_block_model(np.zeros(400, dtype=int), 60.0, 0.0, rng).astype(int)
        sums = balanced(graph @ marks, marks, 60.0)
        assert np.abs(sums.mean(axis=0)).max() < 5 * np.sqrt(60 / 3 / 400) * 1.5

    @pytest.mark.parametrize("k", [2, 3])
    def test_all_rounds_together_are_better_than_the_last(self, k, rng):
        n, truth = 2000, planted_labels(2000, k, rng)
        exact = marks_of(truth, k).astype(float)
        marks, sums = [], []
        for agreeing in (0.2, 0.5, 0.8, 0.8):
            labels = np.where(rng.random(n) < agreeing, truth, rng.integers(k, size=n))
            marks.append(marks_of(labels, k))
            sums.append(agreeing * (exact - exact.mean(axis=0)) + 0.5 * rng.standard_normal(exact.shape))
        last = error_rate(labels_of(sums[-1]), truth)
        together = error_rate(labels_of(combined(marks, sums, labels_of(sums[-1]), k)), truth)
        assert together < 0.75 * last
        # Turning one round's marks and sums together changes nothing.
        if k == 2:
            marks[1], sums[1] = -marks[1], -sums[1]
            assert error_rate(labels_of(combined(marks, sums, labels_of(sums[-1]), k)), truth) == together


class TestDegrees:
    def test_chance_and_noise_are_not_taken_for_degrees(self, rng):
        n, d, sd = 3000, 40.0, 15.0
        noisy = rng.poisson(d, n) + sd * rng.standard_normal(n)
        assert np.abs(expected_degrees(noisy, sd**2, d) - d).max() < 0.1 * d

    def test_true_differences_are_kept_as_far_as_noise_allows(self, rng):
        weights = 40.0 * degree_weights(3000, rng, spread=0.8)
        noisy = rng.poisson(weights) + 15.0 * rng.standard_normal(3000)
        found = expected_degrees(noisy, 15.0**2, 40.0)
        wrong = np.sqrt(np.mean((found - weights) ** 2))
        assert wrong < np.sqrt(np.mean((noisy - weights) ** 2)) and wrong < 0.6 * weights.std()
        assert found.min() >= 4.0

    def test_nothing_is_divided_by_nothing(self):
        assert expected_degrees(np.zeros(3), 0.0, 0.0).tolist() == [0.0, 0.0, 0.0]
        marks = marks_of(np.array([0, 1, 1]), 2)
        assert balanced(np.ones((3, 1)), marks, 0.0).tolist() == [[1.0]] * 3
        assert balanced(np.ones((3, 1)), marks, np.zeros(3)).tolist() == [[1.0]] * 3

    def test_sums_are_less_what_degrees_explain(self, rng):
        weights = rng.uniform(1, 5, 7)
        marks = marks_of(np.array([0, 1, 0, 2, 1, 0, 2]), 3)
        expected = np.outer(weights, weights) / weights.sum() * (1 - np.eye(7))
        np.testing.assert_allclose(balanced(expected @ marks, marks, weights), 0.0, atol=1e-12)

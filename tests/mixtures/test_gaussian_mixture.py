"""Mixtures of Gaussians and k-means of many sets, against slow twins and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.cluster import KMeans

from pgmpy_dp.mixtures.gaussian_mixture import (
    log_density,
    matching_error,
    merged_centres,
    random_centres,
    responsibilities,
    sample_mixture,
    smallest_distance,
    weighted_kmeans,
)
from pgmpy_dp.mixtures.mixture_covariances import NoisyMoments, covariance_roots, mixture_of_moments, shrunk
from pgmpy_dp.mixtures.operators.kmeans import batched_kmeans
from tests.torch_device import DEVICE

MEANS, WEIGHTS = np.array([[0.0, 0.0], [3.0, 1.0], [-2.0, 5.0]]), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 5), (2, 1), (3, 2), (3, 8), (9, 8), (20, 3)])
def test_centres_are_separated_exactly(k, d):
    centres = random_centres(k, d, 5.0, np.random.default_rng(k * d), shift=100.0)
    assert centres.shape == (k, d)
    assert smallest_distance(centres) == (pytest.approx(5.0) if k > 1 else np.inf)
    assert abs(np.linalg.norm(centres.mean(axis=0)) - 100.0) < 40.0
    if 1 < k <= d + 1:
        distances = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(k, 1)]
        assert np.ptp(distances) < 1e-9


def test_densities_against_scipy():
    points = np.random.default_rng(0).normal(size=(50, 2)) * 4
    joint = np.stack(
        [w * multivariate_normal(m, 2.25 * np.eye(2)).pdf(points) for m, w in zip(MEANS, WEIGHTS, strict=True)], axis=1
    )
    np.testing.assert_allclose(log_density(points, MEANS, WEIGHTS, 1.5), np.log(joint.sum(axis=1)))
    np.testing.assert_allclose(responsibilities(points, MEANS, WEIGHTS, 1.5), joint / joint.sum(axis=1, keepdims=True))
    # A component without weight, and points so far off that densities underflow.
    far = responsibilities(np.full((1, 2), 1e4), MEANS, np.array([0.0, 0.5, 0.5]), 1.0)
    assert far[0, 0] == 0.0 and far.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["spherical", "diag", "tied", "full"])
def test_densities_of_other_covariances_against_scipy(kind):
    points = np.random.default_rng(0).normal(size=(50, 2)) * 4
    matrix = np.array([[2.0, 0.7], [0.7, 0.5]])
    covariances = {
        "spherical": np.array([0.5, 1.0, 2.0]),
        "diag": np.array([[0.5, 1.0], [2.0, 0.3], [1.0, 1.0]]),
        "tied": matrix,
        "full": np.stack([matrix, 3.0 * matrix, np.eye(2)]),
    }[kind]
    each = [covariances] * 3 if kind == "tied" else [c if np.ndim(c) == 2 else c * np.eye(2) for c in covariances]
    parts = [w * multivariate_normal(m, c).pdf(points) for m, c, w in zip(MEANS, each, WEIGHTS, strict=True)]
    roots = covariance_roots(covariances, kind, 3)
    np.testing.assert_allclose(log_density(points, MEANS, WEIGHTS, roots), np.log(sum(parts)))
    np.testing.assert_allclose(
        responsibilities(points, MEANS, WEIGHTS, roots), np.transpose(parts) / sum(parts)[:, None]
    )
    drawn, labels = sample_mixture(MEANS, WEIGHTS, roots, 60_000, np.random.default_rng(0))
    assert all(np.abs(np.cov(drawn[labels == j].T) - each[j]).max() < 0.2 for j in range(3))


class TestMoments:
    """Records of a mixture that are cut by the borders between centres, and shortened, as the release has them."""

    def cut(self, kind, separation, n=60_000, d=3):
        rng = np.random.default_rng(1)
        means = random_centres(2, d, separation, rng)
        matrix = np.diag(np.linspace(0.4, 1.2, d)) + 0.1
        covariances = {"spherical": np.array([0.5, 1.3]), "diag": np.array([np.linspace(0.4, 1.2, d), np.ones(d)])}
        covariances |= {"tied": matrix, "full": np.stack([matrix, np.eye(d)])}
        records, _ = sample_mixture(means, np.array([0.4, 0.6]), covariance_roots(covariances[kind], kind, 2), n, rng)
        centres = means
        for _ in range(20):
            nearest = ((records[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
            centres = np.stack([records[nearest == j].mean(axis=0) for j in range(2)])
        apart = records - centres[nearest]
        apart *= np.minimum(1.0, 3.0 / np.linalg.norm(apart, axis=1, ord=4 if kind == "diag" else 2))[:, None]
        products = np.stack([apart[nearest == j].T @ apart[nearest == j] for j in range(2)])
        squares = np.diagonal(products, axis1=1, axis2=2)
        sums = {"spherical": squares.sum(axis=1), "diag": squares, "tied": products.sum(axis=0), "full": products}[kind]
        return means, centres, covariances[kind], np.bincount(nearest), NoisyMoments(kind, sums, 1.0, 3.0)

    @pytest.mark.parametrize("kind", ["spherical", "diag", "tied", "full"])
    def test_what_was_cut_off_is_found_again(self, kind):
        means, centres, true, counts, moments = self.cut(kind, 3.5)
        weights, found, covariances = mixture_of_moments(centres, counts, moments)
        plain = shrunk(moments, counts.astype(float), 1e-9)[0] / (3 if kind == "spherical" else 1)
        assert 2.0 * np.abs(covariances - true).max() < max(0.2, np.abs(plain - true).max())
        assert np.abs(found - means).max() < 0.1 and np.abs(weights - [0.4, 0.6]).max() < 0.02

    @pytest.mark.parametrize("kind", ["spherical", "diag", "tied", "full"])
    @pytest.mark.parametrize("value", [-1e9, 0.0, 1e9])
    def test_noise_alone_is_a_positive_definite_mixture(self, kind, value):
        rng = np.random.default_rng(3)
        shape = {"spherical": (2,), "diag": (2, 3), "tied": (3, 3), "full": (2, 3, 3)}[kind]
        sums = value + 1e3 * rng.normal(size=shape)
        sums = sums + np.swapaxes(sums, -1, -2) if len(shape) > 1 and kind != "diag" else sums
        centres = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        weights, means, covariances = mixture_of_moments(
            centres, np.array([-5, 40]), NoisyMoments(kind, sums, 1e3, 4.0)
        )
        roots = covariance_roots(covariances, kind, 2)
        assert np.isfinite(roots).all() and np.isfinite(means).all() and weights.sum() == pytest.approx(1.0)
        assert np.isfinite(log_density(centres, means, weights, roots)).all()


def test_centres_are_merged_until_none_are_near():
    points = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, 6.0], [20.0, 0.0]])
    centres, counts = merged_centres(points, np.array([1, 1, 2, 7]), 4.0)
    assert centres.tolist() == [[0.0, 1.5], [0.0, 6.0], [20.0, 0.0]] and counts.tolist() == [2.0, 2.0, 7.0]
    assert len(merged_centres(points, np.ones(4), 5.0)[0]) == 2
    assert merged_centres(points[:0], np.ones(0), 5.0)[0].shape == (0, 2)


def test_samples_have_the_mixture_s_moments():
    points, labels = sample_mixture(MEANS, WEIGHTS, 0.5, 100_000, np.random.default_rng(0))
    assert np.abs(np.bincount(labels) / 1e5 - WEIGHTS).max() < 0.01
    for j in range(3):
        assert np.abs(points[labels == j].mean(axis=0) - MEANS[j]).max() < 0.03
        assert np.abs(points[labels == j].std(axis=0) - 0.5).max() < 0.02


def test_matching_error():
    assert matching_error(MEANS[[2, 0, 1]], MEANS) == 0.0
    assert matching_error(MEANS + [0.3, 0.4], MEANS) == pytest.approx(0.5)
    assert matching_error(MEANS[:2], MEANS) == matching_error(None, MEANS) == np.inf


class TestKMeans:
    def sets(self, m=30, b=40, k=3, d=4):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(m, k, d)) * 6 + 1e4
        points = np.take_along_axis(centres, rng.integers(k, size=(m, b))[:, :, None], axis=1)
        return points + rng.normal(size=(m, b, d)), rng.random((m, b)) < 0.8, rng.random((6, m, k))

    def test_as_good_as_scikit_learn(self):
        points, used, uniforms = self.sets()
        centres, cost = batched_kmeans(points, used, uniforms)
        for i in range(len(points)):
            rows = points[i][used[i]]
            slow = KMeans(3, n_init=20, random_state=0).fit(rows)
            assert cost[i] <= slow.inertia_ * 1.05 + 1e-6
            own = ((rows[:, None] - centres[i]) ** 2).sum(axis=2).min(axis=1).sum()
            assert cost[i] == pytest.approx(own, rel=1e-6)

    def test_a_set_s_result_is_its_own(self):
        points, used, uniforms = self.sets()
        before = batched_kmeans(points, used, uniforms)
        points[7], used[7] = 1e300, True
        points[8], used[8] = np.nan, False
        after = batched_kmeans(points, used, uniforms)
        others = [i for i in range(30) if i not in (7, 8)]
        for x, y in zip(before, after, strict=True):
            assert np.array_equal(x[others], y[others])
        assert np.isnan(after[0][8]).all()

    def test_torch_agrees(self):
        pytest.importorskip("torch")
        points, used, uniforms = self.sets()
        for x, y in zip(batched_kmeans(points, used, uniforms), batched_kmeans(points, used, uniforms, device=DEVICE)):  # noqa: B905
            np.testing.assert_allclose(x, y, rtol=1e-6)

    def test_few_points(self):
        points = np.array([[[1.0, 2.0], [1.0, 2.0], [9.0, 9.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
        used = np.array([[1, 1, 0], [0, 0, 0]])
        centres, cost = batched_kmeans(points, used, np.random.default_rng(0).random((2, 2, 3)))
        assert (centres[0] == [1.0, 2.0]).all() and cost[0] == 0.0
        assert np.isnan(centres[1]).all()

    def test_weights_count_as_copies(self):
        points = np.array([[0.0], [4.0], [100.0]])
        centres = weighted_kmeans(points, np.array([3.0, 1.0, 2.0]), 2, np.random.default_rng(0))
        assert centres.ravel().tolist() == [1.0, 100.0]

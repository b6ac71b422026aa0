"""The law of the error of repaired moments, against differences and against draws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pgmpy_dp.gaussian.moment_errors import moment_errors, regression
from pgmpy_dp.gaussian.noisy_moments import NoisyCovariance

VALUES = np.array([3.0, 1.5, 0.6])
VECTORS = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
ZERO = np.zeros(3)


def noisy(matrix: np.ndarray, **changes) -> NoisyCovariance:
    plain = NoisyCovariance(tuple("abc"), matrix, ZERO, 1e4, 0.0, 0.0, np.ones(3), 2.5)
    return dataclasses.replace(plain, **changes)


MOMENTS = (VECTORS * (VALUES / 2)) @ VECTORS.T


@pytest.mark.parametrize("norm", [1.9, 2.5, 50.0])
def test_derivatives_are_those_of_the_map(norm):
    """A symmetric change E of the moments moves ``trace(G S)`` by ``trace(F E)``, F the gradient carried back."""
    rng = np.random.default_rng(1)
    errors = moment_errors(noisy(MOMENTS, row_norm=norm), ZERO)
    for _ in range(4):
        gradient, change = ((m + m.T) / 2 for m in rng.normal(size=(2, 3, 3)))
        step = 1e-3 * change
        ahead, behind = (moment_errors(noisy(MOMENTS + s * step, row_norm=norm), ZERO).covariance for s in (1, -1))
        measured = float((gradient * (ahead - behind)).sum()) / 2
        turned = errors.vectors.T @ gradient @ errors.vectors
        h = errors.slopes.T @ np.diagonal(turned)
        back = np.where(np.eye(3) > 0, h, turned * errors.turns)
        expected = float((errors.vectors @ back @ errors.vectors.T * step).sum())
        assert measured == pytest.approx(expected, rel=0.05, abs=0.02 * np.abs(step).max())


def draws(errors, gradient, how, n_draws=3000):
    """Exact covariances after errors of the moments of one kind, for the variance of ``trace(G S)``."""
    turned = errors.vectors.T @ gradient @ errors.vectors
    h = errors.slopes.T @ np.diagonal(turned)
    back = errors.vectors @ np.where(np.eye(3) > 0, h, turned * errors.turns) @ errors.vectors.T
    rng = np.random.default_rng(2)
    return np.array([float((back * how(rng)).sum()) for _ in range(n_draws)])


def symmetric(rng, sd, diagonal_sd):
    upper = np.triu(rng.normal(scale=sd, size=(3, 3)), 1)
    return upper + upper.T + np.diag(rng.normal(scale=diagonal_sd, size=3))


@pytest.mark.parametrize("wrong", [1.0, 1.35, 0.7])
@pytest.mark.parametrize("part", ["sampling", "noise", "mean", "count"])
def test_each_part_of_the_variance_is_that_of_draws(part, wrong):
    """And a deviation a third larger or smaller is noticed."""
    gradient = np.array([[0.5, -0.3, 0.2], [-0.3, 1.0, 0.4], [0.2, 0.4, -0.7]])
    n, t = 400, np.array([0.2, 0.3, 0.1])
    plain = noisy(MOMENTS, n_records=1e12)
    errors = moment_errors(plain, ZERO)
    root = np.linalg.cholesky(errors.covariance)

    def sampled(rng):
        rows = rng.normal(size=(n, 3)) @ root.T
        rows *= np.minimum(1.0, 2.5 / np.linalg.norm(rows, axis=1, keepdims=True))
        return rows.T @ rows / n

    def mean(rng):
        e = rng.laplace(scale=t / np.sqrt(2))
        return np.outer(e, e)

    made, how = {
        "sampling": (dataclasses.replace(errors, noisy=noisy(MOMENTS, n_records=n)), sampled),
        "noise": (
            dataclasses.replace(errors, noisy=noisy(MOMENTS, n_records=1e12, sd=0.1, diagonal_sd=0.25)),
            lambda rng: symmetric(rng, 0.1, 0.25),
        ),
        "mean": (dataclasses.replace(errors, mean_sd=t), mean),
        "count": (dataclasses.replace(errors, count_sd=0.03e12), lambda rng: MOMENTS * rng.normal(scale=0.03)),
    }[part]
    measured = draws(errors, gradient, how).std()
    assert (abs(measured * wrong / np.sqrt(made.variance(gradient)) - 1) < 0.12) == (wrong == 1.0)


def test_eigenvalues_of_noise_are_raised_and_counted():
    matrix = (VECTORS * np.array([1.0, 0.02, -0.4])) @ VECTORS.T
    errors = moment_errors(noisy(matrix, sd=0.05, diagonal_sd=0.07, row_norm=99.0), ZERO)
    assert errors.n_raised == 2
    np.testing.assert_allclose(np.linalg.eigvalsh(errors.covariance), [0.15, 0.15, 1.0], rtol=0.01)


def test_the_noise_of_the_mean_is_taken_from_the_diagonal():
    t = np.array([0.1, 0.2, 0.3])
    wide = moment_errors(noisy(MOMENTS + np.diag(t**2), row_norm=99.0), t)
    np.testing.assert_allclose(wide.covariance, MOMENTS, rtol=0.01, atol=1e-3)


def test_where_all_records_are_shortened_there_are_slopes():
    """Their moments tell no scale: its derivative is left out, and nothing is infinite."""
    rows = np.random.default_rng(3).normal(size=(5000, 3)) @ np.diag([3.0, 2.0, 1.0])
    rows *= 0.01 / np.linalg.norm(rows, axis=1, keepdims=True)
    matrix = rows.T @ rows / len(rows)
    coefficients, deviation, errors = regression(moment_errors(noisy(matrix, row_norm=0.01), ZERO), 2, [0, 1])
    assert np.isfinite([*coefficients, *errors, deviation]).all() and deviation > 0

"""Noise of precision matrices and its published bounds, against measurement."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import wishart

from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso
from pgmpy_dp.theory import precision_error


def symmetric(rng: np.random.Generator, d: int, draw) -> np.ndarray:
    upper = np.triu(draw(rng, (d, d)))
    return upper + np.triu(upper, 1).T


DRAWS = {
    "laplace": lambda rng, d, n: symmetric(rng, d, lambda r, s: r.laplace(0, 2 * d / n, s)),
    "gaussian": lambda rng, d, n: symmetric(rng, d, lambda r, s: r.normal(0, math.sqrt(2 * math.log(1.25e6)) / n, s)),
    "wishart": lambda rng, d, n: wishart(d + 1, 1.5 / n * np.eye(d)).rvs(random_state=rng),
    "wishart-approximate": lambda rng, d, n: wishart(d + 14 * math.log(4e6), np.eye(d) / n).rvs(random_state=rng),
}


@pytest.mark.parametrize("mechanism", DRAWS)
def test_published_noise_is_as_large_and_moves_the_solution_as_far_as_it_may(mechanism):
    rng, d, n = np.random.default_rng(0), 6, 2000
    noises = [DRAWS[mechanism](rng, d, n) for _ in range(400)]
    told = precision_error.noise_norm(mechanism, d, n, 1.0, 1e-6)
    assert math.sqrt(np.mean([np.sum(noise**2) for noise in noises])) == pytest.approx(told, rel=0.06)
    rows = rng.normal(size=(n, d)) @ np.linalg.cholesky(0.5 * np.eye(d) + 0.5)
    rows /= np.maximum(np.linalg.norm(rows, axis=1), 1.0)[:, np.newaxis]
    S = rows.T @ rows / n
    plain, ratios = graphical_lasso(S, 0.02).precision, []
    for noise in noises[:8]:
        moved = graphical_lasso(S + noise, 0.02).precision
        largest = max(np.linalg.norm(plain, 2), np.linalg.norm(moved, 2))
        ratios.append(np.linalg.norm(moved - plain) / precision_error.solution_error(np.linalg.norm(noise), largest))
    assert max(ratios) <= 1.0 + 1e-6 and max(ratios) > 0.02


def test_published_rates_follow_from_the_size_of_the_noise():
    for mechanism in DRAWS:
        ratios = [
            precision_error.noise_norm(mechanism, d, 10**6, e, 1e-6)
            / precision_error.covariance_perturbation(mechanism, d, 10**6, e, 1e-6, beta=0.1).value
            for d, e in itertools.product((2, 10, 1000), (0.1, 1.0))
        ]
        assert max(ratios) < 60.0 and (mechanism == "wishart-approximate" or min(ratios) > 0.2)
    assert precision_error.noise_norm("laplace", 50, 1000, 2.0) == pytest.approx(math.sqrt(8.0) * 50**2 / 2000.0)
    assert precision_error.output_perturbation(1, 10, 1.0, 1.0) == pytest.approx(math.sqrt(8.0) / 10.0)


def test_the_published_wishart_bound_is_false_for_large_epsilon():
    """Its noise has the mean m I/n with m >= d; the bound goes to 0. So does not the error of the solution."""
    d, n, epsilon, rng = 4, 10_000, 1000.0, np.random.default_rng(0)
    S = np.eye(d) / d
    noise = np.mean(
        [wishart(d + 14 * math.log(4e6) / epsilon**2, np.eye(d) / n).rvs(random_state=rng) for _ in range(50)], 0
    )
    plain, moved = (graphical_lasso(one, 0.01).precision for one in (S, S + noise))
    error = np.linalg.norm(moved - plain) / max(np.linalg.norm(plain, 2), np.linalg.norm(moved, 2)) ** 2
    bound = math.log(1e6) * math.log(1 / 0.5) * d**1.5 / (n * epsilon**2)
    assert error > 1e4 * bound and precision_error.noise_norm("wishart-approximate", d, n, epsilon, 1e-6) >= d**1.5 / n
    with pytest.raises(ValueError, match="published bound is false"):
        precision_error.covariance_perturbation("wishart-approximate", d, n, epsilon, 1e-6)

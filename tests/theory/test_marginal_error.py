"""The error of a noisy marginal, against measurement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.private.noise.samplers import discrete_laplace
from pgmpy_dp.theory.marginal_error import marginal_error


@pytest.mark.parametrize("n", [100, 10_000])
def test_the_error_of_a_noisy_marginal_is_proposition_4s(n):
    rng, mu, epsilon, tables, draws = np.random.default_rng(1), 0.3, 0.5, 5, 40_000
    counts = rng.binomial(n, mu, draws)
    noisy = {"laplace": counts + rng.laplace(0, tables / epsilon, draws)}
    noisy["discrete"] = np.asarray(discrete_laplace(counts, tables / epsilon, rng=rng))
    for noise, values in noisy.items():
        assert abs(values.mean() / n - mu) < 6 * math.sqrt(marginal_error(mu, n, epsilon, tables, noise=noise) / draws)
        found = np.mean((values / n - mu) ** 2)
        assert found == pytest.approx(marginal_error(mu, n, epsilon, tables, noise=noise), rel=0.08)
    assert marginal_error(mu, n, epsilon, tables, noise="discrete") < marginal_error(mu, n, epsilon, tables)
    assert marginal_error(0.0, 10, 10.0, 1, noise="discrete") > 0.0


def test_noisy_tables_have_no_maximum_likelihood():
    """Proposition 4's second half: the objective grows without a bound along a direction that no distribution sees."""
    cliques = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
    rng, n = np.random.default_rng(0), 1000
    y = np.concatenate([rng.multinomial(n, np.full(4, 0.25)) for _ in range(2)]) + rng.laplace(0, 2.0, 8)
    first, second = (part.sum(axis=axis) for part, axis in zip(cliques.split(y), (0, 1), strict=True))
    direction = cliques.join([np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[-1.0, -1.0], [0.0, 0.0]])])
    direction *= np.sign(first[0] - second[0])
    values = []
    for step in (0.0, 1.0, 100.0, 1e4):
        model = LogLinearModel(cliques, step * direction)
        np.testing.assert_allclose(model.marginals(), 0.25, atol=1e-9)
        values.append(step * direction @ y - n * model.log_partition)
    assert np.diff(values) == pytest.approx(np.diff([0.0, 1.0, 100.0, 1e4]) * abs(first[0] - second[0]), rel=1e-6)
    assert abs(first[0] - second[0]) > 0.1

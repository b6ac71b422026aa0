"""What probes say of the error of a model in tables that were not measured."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from pgmpy_dp.models.posterior.discrepancy import (
    TAU_GRID,
    Discrepancy,
    Probe,
    learn_discrepancy,
    measured_margins,
    unmeasured_covariance,
)

ALL = list(itertools.combinations(range(9), 3))


def test_covariance_is_that_of_a_table_given_its_measured_margins():
    # Normal(0, D) given that some linear functions are 0, by the formula for conditional normals.
    rng = np.random.default_rng(0)
    for margins in ([(0,), (1,), (2,)], [(0, 1), (2,)], [(0, 1), (1, 2)], [(0, 1), (0, 2), (1, 2)]):
        m = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
        cells = np.indices(m.shape).reshape(3, -1)
        a = np.array(
            [
                (cells[list(axes)] == np.array(states)[:, None]).all(axis=0)
                for axes in margins
                for states in itertools.product(*(range(m.shape[i]) for i in axes))
            ],
            dtype=float,
        )
        d = np.diag(m.ravel())
        expected = d - d @ a.T @ np.linalg.pinv(a @ d @ a.T) @ a @ d
        np.testing.assert_allclose(unmeasured_covariance(m, margins), expected, atol=1e-12)
        np.testing.assert_allclose(a @ expected, 0, atol=1e-12)


def test_a_measured_table_and_impossible_cells_have_no_discrepancy():
    m = np.array([[0.3, 0.0], [0.2, 0.5]])
    np.testing.assert_allclose(unmeasured_covariance(m, [(0, 1)]), 0, atol=1e-15)
    free = unmeasured_covariance(m, [(0,), (1,)])
    np.testing.assert_allclose(free, 0, atol=1e-12)  # with a cell of 0 the margins leave nothing open


def test_margins_are_what_measured_sets_share_with_the_table():
    measured = [frozenset({0, 1, 5}), frozenset({1, 2}), frozenset({7, 8})]
    assert measured_margins((1, 0, 2), measured) == [(0, 1), (0, 2)]
    assert measured_margins((3, 7, 4), measured) == [(0,), (1,), (2,)]
    assert measured_margins((5, 1, 0), measured) == [(0, 1, 2)]


@pytest.mark.parametrize("tau", [0.02, 0.1])
def test_tau_is_found_and_intervals_cover(tau):
    """Tables made by the model of the error itself: .9 covers .9, within five standard errors of 400 cells."""
    rng = np.random.default_rng(3)
    measured = [frozenset({0, 1}), frozenset({1, 2})]
    noise, posterior = 1e-3, 5e-4

    def draw(scope):
        m = rng.dirichlet(np.full(8, 4.0)).reshape(2, 2, 2)
        root = np.linalg.cholesky(unmeasured_covariance(m, measured_margins(scope, measured)) + 1e-15 * np.eye(8))
        return m, m + tau * (root @ rng.normal(size=8)).reshape(m.shape)

    probes = []
    for scope in [ALL[k] for k in rng.choice(len(ALL), 40, replace=False)]:
        m, truth = draw(scope)
        seen = truth + noise * rng.normal(size=m.shape)
        draws = m + posterior * rng.normal(size=(20, *m.shape))
        probes.append(Probe(scope, seen, np.full(m.shape, noise**2), draws, m))
    found = learn_discrepancy(probes, measured)
    covered = []
    for _ in range(400):
        scope = ALL[rng.integers(len(ALL))]
        m, truth = draw(scope)
        gradient = np.zeros(m.shape)
        gradient[0, 0, 0] = 1.0
        width = found.half_widths(scope, [m], [gradient], np.array([posterior**2]), 0.9)[0]
        covered.append(abs(truth[0, 0, 0] + posterior * rng.normal() - m[0, 0, 0]) <= width)
    assert abs(np.mean(covered) - 0.9) < 0.075


def test_without_discrepancy_an_interval_is_the_posteriors():
    found = learn_discrepancy([], [frozenset({0, 1})])
    m, gradient = np.full((2, 2), 0.25), np.array([[1.0, 0.0], [0.0, 0.0]])
    width = found.half_widths((0, 1), [m], [gradient], np.array([0.01**2]), 0.9)
    np.testing.assert_allclose(width, 0.01 * norm.ppf(0.95), rtol=1e-6)
    assert found.half_widths((0, 2), [m], [gradient], np.array([0.01**2]), 0.9)[0] > width[0]


@pytest.mark.parametrize("weights", ["few", "spread", "far apart"])
def test_half_widths_have_their_probability(weights):
    rng = np.random.default_rng(3)
    p = {"few": rng.dirichlet(np.full(121, 0.02)), "spread": rng.dirichlet(np.ones(121)), "far apart": np.zeros(121)}
    p["far apart"][[0, 60, 120]] = 0.5, 0.3, 0.2
    found = Discrepancy((), {"pair": p[weights]})
    even = np.full((2, 2), 0.25)
    spread = unmeasured_covariance(even, measured_margins((0, 1), ()))[0, 0]
    gradients = [size * np.eye(4)[0].reshape(2, 2) for size in (1e-5, 1e-2, 1.0, 3.0)]
    for level in (0.5, 0.9, 0.999):
        for variance in (1e-12, 1e-6, 0.1):
            widths = found.half_widths((0, 1), [even] * 4, gradients, np.full(4, variance), level)
            for width, gradient in zip(widths, gradients, strict=True):
                scale = np.sqrt(variance + spread * gradient[0, 0] ** 2 * TAU_GRID**2)
                assert abs(p[weights] @ (1 - 2 * norm.sf(width / scale)) - level) < 1e-12
    nothing = found.half_widths((0, 1), [even], [np.zeros((2, 2))], np.zeros(1), 0.9)
    assert 0 <= nothing[0] < 1e-100

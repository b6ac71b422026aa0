"""The density of normal error plus noise against quadrature and against log-normal-cdf forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import laplace, norm

from pgmpy_dp.learning.noise_likelihood import log_density, negative_log_density


@pytest.mark.parametrize(
    ("variance", "scale", "z"),
    [
        pytest.param(variance, scale, z, marks=[pytest.mark.slow] * ((i + j + k) % 2))
        for i, variance in enumerate([1e-3, 1.0, 50.0])
        for j, scale in enumerate([0.3, 2.0, 40.0])
        for k, z in enumerate([0.0, 0.4, -3.0, 25.0])
    ],
)
def test_laplace_density_equals_quadrature(variance, scale, z):
    deviation = np.sqrt(variance)
    density, _ = quad(
        lambda t: norm.pdf(t) * laplace.pdf(z - deviation * t, scale=scale),
        -12,
        12,
        points=[np.clip(z / deviation, -11.9, 11.9)],
        epsabs=0,
        epsrel=1e-10,
        limit=400,
    )
    value, _ = negative_log_density(np.array([z]), np.array([variance]), "laplace", np.array([scale]))
    assert value[0] == pytest.approx(-np.log(density), abs=1e-7)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_derivative_by_finite_differences(noise):
    z = np.array([-4e3, -90.0, -7.0, -0.1, 0.0, 0.2, 3.0, 60.0, 5e3])
    variance, scale, step = np.full_like(z, 9.0), np.full_like(z, 5.0), 1e-5
    _, slope = negative_log_density(z, variance, noise, scale)
    ahead, _ = negative_log_density(z + step, variance, noise, scale)
    behind, _ = negative_log_density(z - step, variance, noise, scale)
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), atol=2e-6)


def test_laplace_density_over_the_whole_range_of_doubles():
    """Against the form with log-normal-cdfs, which is stable in the tails; also across the switch to the tail."""
    variance, scale = 4.0, 3.0
    deviation = np.sqrt(variance)
    switch = deviation * (deviation / scale + 6 * np.sqrt(2))
    z = np.concatenate([np.linspace(-200, 200, 801), switch + np.linspace(-1e-6, 1e-6, 11), [1e5, -1e8]])
    u, q = z / deviation, deviation / scale
    left = 0.5 * q**2 - z / scale + log_ndtr(u - q)
    right = 0.5 * q**2 + z / scale + log_ndtr(-u - q)
    expected = np.log(2 * scale) - np.logaddexp(left, right)
    value, slope = negative_log_density(z, np.full_like(z, variance), "laplace", np.full_like(z, scale))
    np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-9)
    assert (np.abs(slope) <= 1 / scale + 1e-15).all()


def test_gaussian_density():
    z = np.linspace(-9, 9, 19)
    value, _ = negative_log_density(z, np.full_like(z, 2.0), "gaussian", np.full_like(z, 3.0))
    np.testing.assert_allclose(value, -norm.logpdf(z, scale=np.sqrt(11.0)), rtol=1e-12)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("reach", [0.5, 9.0, 40.0, 1e4])
def test_a_grid_of_variances_equals_one_cell_at_a_time(noise, reach):
    """No cell, some, most or all of them in the exponential tail: each takes another path through the code."""
    rng = np.random.default_rng(0)
    z, scale, variance = reach * rng.normal(size=40), rng.uniform(1, 3, 40), np.geomspace(0.1, 30, 9)[:, None]
    before = z.copy(), scale.copy(), variance.copy()
    value = log_density(z, variance, noise, scale)
    assert value.shape == (9, 40)
    for k, i in [(0, 0), (3, 17), (8, 39), (5, 20)]:
        alone, slope = negative_log_density(z[i : i + 1], variance[k], noise, scale[i : i + 1])
        assert value[k, i] == pytest.approx(-alone[0], rel=1e-13)
        assert negative_log_density(z, variance, noise, scale)[1][k, i] == pytest.approx(slope[0], rel=1e-13)
    for array, unchanged in zip((z, scale, variance), before, strict=True):
        np.testing.assert_array_equal(array, unchanged)

"""Gaussian noise on real vectors in integers: the grid, its distance from continuous noise, what it refuses."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from pgmpy_dp.private.accounting import approx_to_zcdp, gaussian_multiplier, zcdp_to_approx
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.noise.fine_grid import fine_grid, on_grid
from pgmpy_dp.private.noise.samplers import discrete_gaussian

APPROX = Budget(epsilon=1.0, delta=1e-6)


def delta_of(multiplier: float, epsilon: float) -> float:
    """Balle and Wang 2018, Theorem 8."""
    mu = 1 / multiplier
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.01])
def test_the_multiplier_is_the_smallest(epsilon, delta):
    multiplier = gaussian_multiplier(epsilon, delta)
    assert delta_of(multiplier, epsilon) <= delta * (1 + 1e-6)
    assert delta_of(multiplier * (1 - 1e-5), epsilon) > delta
    assert multiplier < 1 / math.sqrt(2 * approx_to_zcdp(epsilon, delta))


def test_the_page_says_how_much_less_noise_the_exact_formula_needs():
    page = (Path(__file__).parents[2] / "pgmpy_dp" / "learning" / "convex_program.md").read_text(encoding="utf-8")
    saved = [
        1 - gaussian_multiplier(epsilon, delta) * math.sqrt(2 * approx_to_zcdp(epsilon, delta))
        for epsilon in (0.1, 1.0, 8.0)
        for delta in (1e-9, 1e-6, 1e-5)
    ]
    one = 1 - gaussian_multiplier(1.0, 1e-6) * math.sqrt(2 * approx_to_zcdp(1.0, 1e-6))
    low, high = (round(100 * share) for share in (min(saved), max(saved)))
    assert f"{low} to {high} % less noise" in page and f"({100 * one:.1f} % at epsilon 1 and delta 1e-6)" in page


@pytest.mark.parametrize("budget", [APPROX, Budget(rho=0.1), Budget(epsilon=8.0, delta=1e-3)], ids=str)
@pytest.mark.parametrize("size", [1, 1000, 10**7])
@pytest.mark.parametrize("sensitivity", [1e-5, 0.7, 1e4])
def test_little_is_lost_to_the_grid(budget, size, sensitivity):
    grid = fine_grid(size, sensitivity, 3.0 * sensitivity, budget)
    best = 1 / math.sqrt(2 * budget.rho) if budget.rho else gaussian_multiplier(budget.epsilon, budget.delta)
    assert 1 <= grid.standard_deviation / (best * sensitivity) < 1.001
    assert grid.step <= grid.standard_deviation / 1024
    assert grid.l2 * grid.step >= sensitivity + math.sqrt(size) * grid.step * (1 - 1e-12)
    if budget.delta:
        tau = size / (24 * grid.noise.scale**2 - 1)
        assert (1 + math.exp(budget.epsilon)) * tau <= budget.delta / 1000
    else:
        assert grid.l2**2 / (2 * grid.noise.scale**2) <= budget.rho


@pytest.mark.parametrize("scale", [1.0, 2.5, 20.0])
def test_the_distance_of_discrete_from_rounded_continuous_noise(scale):
    z = np.arange(-int(40 * scale), int(40 * scale) + 1)
    discrete = np.exp(-(z**2) / (2 * scale**2))
    discrete /= discrete.sum()
    rounded = norm.cdf((z + 0.5) / scale) - norm.cdf((z - 0.5) / scale)
    bound = 1 / (24 * scale**2 - 1)
    assert 0.1 * bound < np.maximum(discrete - rounded, 0).sum() <= bound


def test_neighbours_are_no_further_apart_on_the_grid():
    rng = np.random.default_rng(0)
    grid = fine_grid(50, 0.3, 2.0, APPROX)
    for _ in range(50):
        first = rng.uniform(-2, 2, 50)
        step = rng.standard_normal(50)
        second = first + 0.3 * step / np.linalg.norm(step)
        exact = [on_grid(vector, grid, Adjacency.EDGE) for vector in (first, second)]
        assert np.linalg.norm(exact[0].value - exact[1].value) <= exact[0].l2 == grid.l2
    assert np.abs(exact[0].value * grid.step - np.clip(first, -2, 2)).max() <= grid.step / 2
    wild = on_grid(np.array([np.nan, np.inf, -np.inf] + [5.0] * 47), grid, Adjacency.EDGE)
    assert (wild.value[:3] * grid.step).tolist() == [0.0, 2.0, -2.0] and wild.value[4] == wild.value[1]


def test_the_noise_has_its_scale():
    grid = fine_grid(20_000, 1.0, 1.0, APPROX)
    noisy = discrete_gaussian(on_grid(np.zeros(20_000), grid, Adjacency.EDGE).value, grid.noise.scale)
    assert noisy.dtype == np.int64
    # The standard deviation of 20,000 draws is off by 3 % with probability 2e-9.
    assert np.std(noisy) * grid.step == pytest.approx(grid.standard_deviation, rel=0.03)


def test_failure_is_paid_by_delta():
    free, paid = fine_grid(10, 1.0, 1.0, APPROX), fine_grid(10, 1.0, 1.0, APPROX, failure=1e-7)
    left = 1e-6 * (1 - 2**-10) - (1 + math.e) * 1e-7
    assert paid.standard_deviation > free.standard_deviation
    assert delta_of(paid.noise.scale / paid.l2, 1.0) == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_noise_shrinks_with_epsilon_where_the_grid_for_tau_would_be_too_fine(delta):
    """There it is the noise of the rho that epsilon and delta convert to, which is a few percent more."""
    grids = [
        fine_grid(231, 0.3, 0.05, Budget(epsilon=e, delta=delta)) for e in (1.0, 10.0, 90.0, 98.0, 150.0, 1e3, 1e5)
    ]
    deviations = [grid.standard_deviation for grid in grids]
    assert all(after < before for before, after in itertools.pairwise(deviations))
    for grid in grids[-3:]:
        rho = Fraction(grid.l2) ** 2 / (2 * Fraction(grid.noise.scale) ** 2)  # exactly what the noise costs
        assert zcdp_to_approx(float(rho), delta) <= grid.cost.epsilon * (1 + 1e-12) and grid.cost.delta == delta


@pytest.mark.parametrize(
    ("budget", "failure", "bound", "message"),
    [
        (Budget(epsilon=1.0), 0.0, 1.0, "no pure guarantee"),
        (APPROX, 1e-6, 1.0, "does not pay for a failure with probability 1e-06"),
        (Budget(rho=1.0), 1e-9, 1.0, "needs a delta"),
        (APPROX, 0.0, 1e30, "finer than 64-bit integers"),
    ],
)
def test_refusals(budget, failure, bound, message):
    with pytest.raises(ValueError, match=message):
        fine_grid(10, 1.0, bound, budget, failure=failure)
    with pytest.raises(ValueError, match="3 numbers, the grid was made for 10"):
        on_grid(np.zeros(3), fine_grid(10, 1.0, 1.0, APPROX), Adjacency.EDGE)

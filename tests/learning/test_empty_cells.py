"""Cells that are probably empty: which are believed to be, and what a fit makes of them."""

import numpy as np
import pytest

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.empty_cells import Floor, pair_tables, with_empty_cells
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior

DIAGONAL = 300.0 * np.eye(10) * np.linspace(0.4, 1.6, 10)
EMPTY = ~np.eye(10, dtype=bool)


def noisy_pair(counts: np.ndarray, scale: float, seed: int, noise: str = "gaussian", **more) -> NoisyMarginals:
    cliques = Cliques(("a", "b"), counts.shape, (("a", "b"),))
    rng = np.random.default_rng(seed)
    drawn = getattr(rng, "normal" if noise == "gaussian" else "laplace")(0, scale, counts.size)
    return NoisyMarginals(cliques, counts.ravel() + drawn, noise, np.array([scale]), **more)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_mostly_empty_table_is_fitted_with_less_in_its_empty_cells_and_never_nothing(noise):
    for seed in range(3):
        noisy = noisy_pair(DIAGONAL, 10.0, seed, noise)
        before, after = (
            collective_map(noisy, find_empty=find).model.marginal(["a", "b"]).reshape(10, 10) for find in (False, True)
        )
        assert after[EMPTY].sum() < 0.55 * before[EMPTY].sum()
        assert after[EMPTY].min() > 0
        exact = DIAGONAL / DIAGONAL.sum()
        assert np.abs(after - exact).sum() < np.abs(before - exact).sum()


def test_a_dense_table_is_fitted_as_before():
    for seed in range(3):
        counts = np.random.default_rng(seed).dirichlet(np.full(64, 2.0)).reshape(8, 8) * 5000
        noisy = noisy_pair(counts, 20.0, seed)
        found, base, floors = with_empty_cells(noisy)
        assert base is None and found is noisy and floors == []


def test_what_is_clearly_seen_is_not_empty_however_little_independence_would_give():
    counts = DIAGONAL + 2.0
    (table,) = pair_tables(noisy_pair(counts, 1e-3, 0))
    assert not table.believed.any()


def test_empty_cells_of_a_pair_are_those_of_larger_tables_too():
    cliques = Cliques(("c", "b", "a"), (2, 10, 10), (("c", "b", "a"),))
    counts = np.stack([DIAGONAL, DIAGONAL]).ravel()
    noise = np.random.default_rng(1).normal(0, 20.0, counts.size)
    noisy = NoisyMarginals(cliques, counts + noise, "gaussian", np.array([20.0]))
    found, base, (floor,) = with_empty_cells(noisy)
    believed = next(table for table in pair_tables(noisy) if table.scope == (1, 2)).believed
    assert believed[EMPTY].mean() > 0.9 and not believed[~EMPTY].any()
    (replaced,), (kept,) = cliques.split(found.counts), cliques.split(noisy.counts)
    assert np.abs(replaced[:, believed]).max() < 20.0 and (replaced[:, ~believed] == kept[:, ~believed]).all()
    assert (base[floor.cells] < base[~np.isin(np.arange(counts.size), floor.cells)].min()).all()
    assert len(floor.expected) == believed.sum() and len(floor.cells) == 2 * believed.sum()
    assert base.shape == counts.shape and np.isfinite(base).all()


def test_cells_that_are_impossible_stay_so_and_the_rest_is_still_found():
    boxes = ({"a": frozenset({0}), "b": frozenset(range(1, 10))},)
    noisy = noisy_pair(DIAGONAL, 20.0, 2, impossible=boxes)
    fitted = collective_map(noisy).model.marginal(["a", "b"]).reshape(10, 10)
    assert (fitted[0, 1:] == 0).all()
    assert 0 < fitted[1:][EMPTY[1:]].sum() < 0.05


@pytest.mark.parametrize(("n_seeds", "most"), [(5, 3), pytest.param(12, 8, marks=pytest.mark.slow)])
def test_draws_of_the_posterior_leave_room_for_what_the_noise_cannot_exclude(n_seeds, most):
    """Of 12 intervals of .9 for the records in all empty cells, 8 or fewer hold with a probability of .026.

    Of 5, 3 or fewer with one of .08; all of the first five seeds do, far from their ends.
    """
    held = 0
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        few = np.where(EMPTY, rng.choice([0, 0, 0, 1, 5], (10, 10)), DIAGONAL)
        noisy = noisy_pair(few, 20.0, seed)
        fit = collective_map(noisy)
        assert "empty_cells" in fit.details and "base" not in fit.details
        draws = sample_posterior(noisy, fit, rng, n_draws=19).query(["a", "b"])
        assert (draws > 0).all()
        lower, upper = np.quantile(draws[:, EMPTY].sum(axis=1), [0.05, 0.95], method="weibull")
        held += lower <= few[EMPTY].sum() / few.sum() <= upper
    assert held > most


def test_a_factor_is_drawn_of_a_sum_that_is_above_nothing():
    rng = np.random.default_rng(0)
    places = np.arange(50)
    for total in (-90.0, 0.0, 900.0):
        floor = Floor(places, places, np.ones(50, dtype=bool), np.full(50, 2.0), total, 30.0)
        sums = np.array([100 / 50 * floor.factors(rng).sum() for _ in range(400)])
        assert (sums > 0).all() and abs(
            sums.mean() - {-90.0: 8.5, 0.0: 24.0, 900.0: 900.0}[total]
        ) < 0.1 * sums.mean() + 3

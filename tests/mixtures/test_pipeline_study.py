"""The study of Algorithm 6.5: each step by what it is for, all of them at several factors on the noise, its marks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from pgmpy_dp.mixtures.gaussian_mixture import matching_error, random_centres
from pgmpy_dp.mixtures.published import pipeline_study
from pgmpy_dp.mixtures.published.membership_program import membership_program
from pgmpy_dp.mixtures.published.pipeline_study import (
    FOUND,
    NO_CELLS,
    REFUSED,
    projected,
    study_cells,
    study_pipeline,
    truncated_laplace,
)
from pgmpy_dp.theory.membership_records import NoisyTest, program_noise, required_records
from tests.test_imports import MODULES, imports, within

K, N = 3, 90


@pytest.fixture(scope="module")
def made_up():
    """Points of three clusters, far apart and near, their centres, and the program's weights."""
    data = {}
    for separation in (32.0, 5.0):
        rng = np.random.default_rng(0)
        centres = random_centres(K, 3, separation, rng, shift=1e4)
        points = centres[np.arange(N) % K] + rng.normal(size=(N, 3))
        data[separation] = points, centres, membership_program(points, K, 1.0, tolerance=1.0, max_iter=2000).weights
    return data


def study(made_up, separation, noise, seed):
    points, _, weights = made_up[separation]
    rng = np.random.default_rng(seed)
    return study_pipeline(points, K, 1.0, separation, 1.0, 1e-6, rng, noise=noise, weights=weights)


def test_it_finds_nothing_with_the_papers_noise_and_the_centres_with_a_millionth(made_up):
    _, centres, _ = made_up[32.0]
    found = {}
    for noise in (1.0, 1e-3, 1e-6):
        runs = [study(made_up, 32.0, noise, seed) for seed in range(20)]
        assert not any(run.noise.proved for run in runs) and {run.status for run in runs} <= {FOUND, NO_CELLS}
        found[noise] = sum(matching_error(run.means, centres) < 2.0 for run in runs)
    assert found[1.0] == 0 and found[1e-6] >= 10  # now and then a wall of the grid goes through a cluster
    assert found[1e-3] <= found[1e-6]


def test_the_test_refuses_clusters_that_the_program_does_not_link(made_up):
    run = study(made_up, 5.0, 1e-6, 0)
    assert run.status == REFUSED and run.cells is None and run.means is None
    assert run.noise.test.limit < run.unlinked <= run.noisy_unlinked <= run.unlinked + 2 * run.noise.test.centre
    # With the paper's noise its limit is above the number of records: it lets everybody pass.
    assert study(made_up, 5.0, 1.0, 0).status == NO_CELLS
    assert study(made_up, 32.0, 1e-6, 0).unlinked < 1.0


def test_a_scale_is_a_unit(made_up):
    points, _, weights = made_up[32.0]
    one, other = (
        study_pipeline(
            points * unit, K, unit, 32.0 * unit, 1.0, 1e-6, np.random.default_rng(3), noise=1e-6, weights=weights
        )
        for unit in (1.0, 1e3)
    )
    assert one.status == other.status == FOUND
    assert other.means == pytest.approx(1e3 * one.means, rel=1e-9)
    assert other.noise == one.noise


def test_steps_find_centres_at_the_number_of_records_that_is_required():
    """No program runs on so many: rows are at the centres, as they are where everybody is linked."""
    d, separation, trials = 8, 32.0, 20
    n = int(required_records(K, d, separation, 1.0, 1e-6))
    noise = program_noise(n, K, d, separation, 1.0, 1e-6)
    assert noise.proved
    found = 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        centres = random_centres(K, d, separation * 1.001, rng)
        rows = centres[rng.integers(K, size=rng.poisson(noise.rate * n))]
        found += matching_error(study_cells(rows, K, noise, rng).means, centres) < separation / 2
    assert found >= trials / 4
    few = program_noise(10**20, K, d, separation, 1.0, 1e-6)
    assert few.proved and few.row_error > 10 * noise.row_error


def test_truncated_laplace_is_never_negative_and_has_its_law():
    test, rng = NoisyTest(1.0, 1.0, 2.0, 6, 0), np.random.default_rng(0)
    drawn = np.array([truncated_laplace(test, rng) for _ in range(20_000)])
    assert drawn.min() == 0 and drawn.max() == 12
    law = np.exp(-np.abs(np.arange(13) - 6) / 2.0)
    counts = np.bincount(drawn, minlength=13)
    assert chisquare(counts, 20_000 * law / law.sum()).pvalue > 1e-6
    wide = np.exp(-np.abs(np.arange(13) - 6) / 2.6)
    assert chisquare(counts, 20_000 * wide / wide.sum()).pvalue < 1e-6


def test_rows_and_means_have_the_noise_that_they_are_said_to_have():
    noise = program_noise(1000, 1, 2, 1e9, 1.0, 1e-6, noise=1e-3)._replace(width=1e12, cell_scale=1e-9, threshold=1)
    rng = np.random.default_rng(1)
    study = study_cells(np.zeros((4000, 2)), 1, noise, rng)
    assert kstest(study.rows.ravel() / noise.row_error, "norm").pvalue > 1e-6
    assert kstest(study.rows.ravel() / (1.3 * noise.row_error), "norm").pvalue < 1e-6
    inside = study.rows[(study.places // noise.width == np.median(study.places // noise.width, axis=0)).all(axis=1)]
    assert len(inside) == study.full[0]
    assert np.abs(study.means[0] - inside.mean(axis=0)).max() < 6 * noise.mean_error


def test_cells_are_of_the_threshold_and_projections_keep_distances():
    noise = program_noise(100, 2, 2, 40.0, 1.0, 1e-6, noise=1e-6)._replace(threshold=11)
    rows = np.repeat([[0.0, 0.0], [40.0, 0.0], [0.0, 40.0]], [30, 20, 10], axis=0)
    study = study_cells(rows, 2, noise, np.random.default_rng(0))
    assert study.full.tolist() == [30, 20]  # the third has fewer rows
    assert study_cells(rows, 3, noise, np.random.default_rng(0)).means is None
    assert study_cells(rows[:0], 2, noise, np.random.default_rng(0)).means is None
    wide = np.random.default_rng(0).normal(size=(10, 300))
    low = projected(wide, 24, np.random.default_rng(1))
    assert low.shape == (10, 24) and projected(wide, 300, np.random.default_rng(1)) is wide
    ratios = np.linalg.norm(low[1:] - low[0], axis=1) / np.linalg.norm(wide[1:] - wide[0], axis=1)
    assert math.isclose(ratios.mean(), 1.0, abs_tol=0.3)


def test_it_is_marked_knows_no_records_and_nobody_takes_it():
    name = "pgmpy_dp.mixtures.published.pipeline_study"
    for text in (pipeline_study.__doc__, study_pipeline.__doc__, study_cells.__doc__):
        assert "not private" in text.lower()
    assert not [i for i in imports(name) if within(i, "pgmpy_dp.private") or "operators" in i]
    assert [m for m in MODULES if any(within(i, name) for i in imports(m))] == []

"""Densities of numbers from noisy counts of fine cells."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp import Date, Number
from pgmpy_dp.learning.fine_grids import following_cells
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.number_density import ClippedMean, Counts, NumberDensity, number_density
from pgmpy_dp.models.posterior.query_intervals import number_interval

COST = Number(0, 100_000, missing="drop")
LEVELS = [0.05, 0.5, 0.95]


def cell_counts(number, values):
    return np.histogram(values, np.append(number.edges[:-1], np.inf))[0].astype(float)


def released(number, values, sd, rng, second=True):
    """A density from fine counts and, with `second`, from counts of the cells that follow them."""
    fine = number.fine()
    true = cell_counts(fine, values)
    first = Counts(np.arange(len(true)), true + rng.normal(0, sd, len(true)), sd)
    parts, density = number_density(fine, first)
    if not second:
        return parts, density
    group = following_cells(density, 3 * sd / len(values), fine.centres)
    sums = np.bincount(group, true)
    return number_density(fine, first, Counts(group, sums + rng.normal(0, sd, len(sums)), sd))


@pytest.mark.parametrize("n_seeds", [6, pytest.param(12, marks=pytest.mark.slow)])
def test_quantiles_of_costs_are_found_and_intervals_hold_them(n_seeds):
    """A cell of equal width holds the median and 40 % of all; second counts take noise away."""
    inside, errors = [], {False: [], True: []}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        values = np.exp(7 + 1.2 * rng.normal(size=20_000)).clip(0, 100_000)
        true = np.exp(7 + 1.2 * np.array([-1.6449, 0, 1.6449]))
        for second in (False, True):
            parts, density = released(COST, values, 40.0, rng, second)
            numbers = Values(parts, np.zeros(len(parts.cells), dtype=int), density.likely, density=density)
            errors[second].append(np.abs(np.log(numbers.quantiles(np.ones(1), LEVELS) / true)))
        lower, upper = number_interval(numbers, np.ones((29, 1)), LEVELS, 0.9)
        assert (upper - lower).min() > 0 and (upper[1:] < 1.5 * true).all()
        inside.append((lower[1:] <= true) & (true <= upper[1:]))
    # With 12 seeds: .049 from first counts alone, .029 with second ones, 35 of 36 intervals; with 6: .063, .025, all.
    assert np.mean(errors[True]) < 0.035 < np.mean(errors[False])
    assert np.mean(inside) >= 0.75


def test_the_interval_of_a_mean_counts_how_far_a_tail_may_go_that_noise_hides():
    """Each 50th of 5,000 costs is above 13,000, and they are a third of the mean; a fine cell has the noise of 38."""
    true, held = np.exp(7 + 1.2**2 / 2), 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = np.exp(7 + 1.2 * rng.normal(size=5_000)).clip(0, 100_000)
        parts, density = released(COST, values, 38.0, rng)
        numbers = Values(parts, np.zeros(len(parts.cells), dtype=int), density.likely, density=density)
        lower, upper = number_interval(numbers, np.ones((19, 1)), LEVELS, 0.9)
        held += bool(lower[0] <= true <= upper[0])
    # All ten of these seeds; six where the ends of both tails are not weighed each by itself. Where .97 hold, seven or
    # fewer of ten do in three of a thousand cases.
    assert held >= 8


def test_a_spike_keeps_its_records_and_what_is_far_from_all_others_is_empty():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(6_000), np.full(500, 99_999.0), rng.normal(5_000, 800, 3_500).round()])
    number = Number(0, 99_999, resolution=1, missing="drop")
    parts, density = released(number, values, 20.0, rng)
    edges = np.array(parts.edges[:-1])
    assert density.likely[edges == 0].sum() == pytest.approx(0.6, abs=0.01)
    assert density.likely[edges == 99_999].sum() == pytest.approx(0.05, abs=0.01)
    assert density.likely[(edges > 12_000) & (edges < 99_999)].sum() < 0.01
    # A cell above both neighbours is a spike though nobody declared it.
    round_number = np.concatenate([rng.uniform(0, 100_000, 20_000), np.full(2_000, 50_000.0)])
    parts, density = released(COST, round_number, 20.0, rng)
    cell = np.flatnonzero(density.piled)
    assert len(cell) == 1 and COST.fine().edges[cell[0]] <= 50_000 < COST.fine().edges[cell[0] + 1]


def test_a_bound_without_records_gets_none_of_the_noise_and_one_with_many_keeps_them():
    """Of 10,000 costs; positive noise of 20 at 100,000 would be 200 of their mean."""
    for number in (COST, Number(0, 100_000, resolution=1, missing="drop")):
        off = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            values = np.where(rng.random(10_000) < 0.9, 0.0, np.exp(6 + 0.8 * rng.normal(size=10_000)).round())
            parts, density = released(number, values, 20.0, rng)
            at = np.array(parts.edges[:-1])
            assert density.likely[at == 0].sum() == pytest.approx((values == 0).mean(), abs=0.01)
            off.append(density.likely[at == 100_000].sum())
            drawn = density.draws(8, rng)
            assert (drawn[:, at == 100_000] == 0).sum() >= 4 and (drawn[:, at == 0] > 0.8).all()
        assert max(off) < 1e-3 and np.median(off) < 1e-4


def test_numbers_that_pile_up_within_a_cell_have_intervals_as_wide_as_the_cell():
    rng = np.random.default_rng(0)
    number = Number(-1_000, 1_000, missing="drop")
    values = np.where(rng.random(8_000) < 0.6, 65.0, rng.uniform(-1_000, 1_000, 8_000))
    parts, density = released(number, values, 10.0, rng)
    numbers = Values(parts, np.zeros(len(parts.cells), dtype=int), density.likely, density=density)
    (cell,), (share,) = numbers.piled_share(np.ones(1)), numbers.piled_share(np.ones(1)).values()
    assert cell == (62.5, 93.75) and share == pytest.approx(0.61, abs=0.02)
    lower, upper = number_interval(numbers, np.ones((19, 1)), [0.1, 0.5, 0.6], 0.9)
    assert (lower[2:] == 62.5).all() and (upper[2:] == 93.75).all() and upper[1] < 0
    assert lower[0] <= values.mean() <= upper[0] and upper[0] - lower[0] > share * 31.25
    # Where the value is declared, it is known to the last digit.
    declared = replace(number, spikes=[65])
    parts, density = released(declared, values, 10.0, rng)
    numbers = Values(parts, np.zeros(len(parts.cells), dtype=int), density.likely, density=density)
    lower, upper = number_interval(numbers, np.ones((19, 1)), [0.5, 0.6], 0.9)
    assert not numbers.piled and (lower[1:] == upper[1:]).all() and upper[1] == 65
    codes, uniform = np.zeros(1_000, dtype=int), np.linspace(0, 0.999, 1_000)
    assert (numbers.numbers(codes, uniform) == 65).mean() == pytest.approx((values == 65).mean(), abs=0.02)


def test_a_density_moves_to_a_mean_as_far_as_the_mean_is_known_better():
    rng = np.random.default_rng(0)
    values = np.exp(6 + rng.normal(size=5_000)).clip(0, 1e5)
    fine = COST.fine()
    counts = Counts(np.arange(len(fine.cells)), cell_counts(fine, values) + rng.normal(0, 30, len(fine.cells)), 30.0)
    parts, alone = number_density(fine, counts)
    clipped = np.minimum(parts.centres, 10_000.0)
    before = alone.likely @ clipped
    for deviation, near in ((0.01, 800.0), (1e6, before)):
        _, density = number_density(fine, counts, None, ClippedMean(10_000.0, 800.0, deviation))
        assert density.likely @ clipped == pytest.approx(near, rel=1e-3) and density.likely.sum() == pytest.approx(1.0)
        drawn = density.draws(5, np.random.default_rng(1)) @ clipped
        assert drawn.std() < 1 if deviation < 1 else drawn.std() > 20
    again = NumberDensity.from_dict(parts, json.loads(json.dumps(density.to_dict())))
    np.testing.assert_allclose(again.likely, density.likely)
    far = number_density(fine, counts, None, ClippedMean(10_000.0, -5e9, 0.01))[1]
    assert np.isfinite(far.likely).all() and far.likely @ clipped < before


ODD = [
    Number(0, 1, resolution=1),
    Number(0, 2, resolution=1),
    Number(5, 6),
    Number(-1e6, 1e6, resolution=1),
    Number(0, 1e12, resolution=0.01),
    Date("1900-01-01", "2030-01-01"),
]


@pytest.mark.parametrize(
    ("number", "sd", "kind"),
    [
        pytest.param(number, sd, kind, marks=[pytest.mark.slow] * ((h + i + j) % 2), id=f"{number!r}-{sd}-{kind}")
        for h, number in enumerate(ODD)
        for i, sd in enumerate([0.1, 1e7])
        for j, kind in enumerate(["nothing", "one cell", "few cells"])
    ],
)
def test_any_counts_have_a_density(number, sd, kind):
    rng, fine = np.random.default_rng(1), number.fine()
    true = np.zeros(len(fine.cells))
    if kind != "nothing":
        true[rng.integers(len(true), size=1 if kind == "one cell" else 5)] = 1e6
    counts = Counts(np.arange(len(true)), true + rng.normal(0, sd, len(true)).round(), sd)
    for coarse in (None, Counts(np.zeros(len(true), dtype=int), np.array([true.sum()]), sd)):
        parts, density = number_density(fine, counts, coarse)
        for shares in (density.likely, *density.draws(2, rng)):
            assert np.isfinite(shares).all() and shares.min() >= 0 and shares.sum() == pytest.approx(1.0)
            assert len(shares) == len(parts.cells)


def test_groups_that_follow_a_density_are_finer_towards_its_ends_as_far_as_counts_say_anything():
    rng = np.random.default_rng(2)
    _, density = released(COST, np.exp(7 + 1.2 * rng.normal(size=50_000)).clip(1, 9e4), 1.0, rng, second=False)
    likely, centres = np.bincount(density.cell, density.likely), COST.fine().centres
    groups = [following_cells(density, least, centres) for least in (0.04, 0.001)]
    few, many = (np.bincount(group, likely) for group in groups)
    assert len(few) < len(many) <= 27 and np.sum(few > 0.03) == len(few) - 3 and many[[0, -1]].max() < 0.004
    # The bounds are alone. Beyond the last level a group reaches four times as far from the median as it begins.
    away = centres[groups[0] == groups[0][-2] - 1] - 1_097
    assert 3 < away[-1] / away[0] <= 4 and np.sum(groups[0] == groups[0][-1]) == np.sum(groups[0] == 0) == 1
    spike = np.concatenate([np.zeros(10_000), rng.uniform(1, 60, 10_000).round()])
    _, density = released(Number(0, 600, resolution=1), spike, 5.0, rng, second=False)
    groups = following_cells(density, 0.01, Number(0, 600, resolution=1).fine().centres)
    assert set(np.diff(groups)) == {0, 1} and np.sum(groups == 0) == 1


def test_a_file_keeps_what_weights_are_drawn_from():
    rng = np.random.default_rng(3)
    parts, density = released(COST, rng.uniform(0, 50_000, 2_000), 30.0, rng)
    state = (np.array(parts.edges[:-1]) >= 25_000).astype(int)
    values = Values(parts, state, density.likely, density=density)
    content = json.loads(json.dumps(values.to_dict()))
    again = Values.from_dict(parts, content)
    drawn, other = (one.drawn_weights(np.random.default_rng(4)) for one in (values, again))
    np.testing.assert_allclose(drawn.weights, other.weights, rtol=1e-9)
    assert np.abs(drawn.within - values.within).max() > 1e-4
    # A posterior's file keeps its draws, and is not made to draw again: new ones would be the same.
    kept = replace(again, density=again.density.keeping(density.same_draws(3).astype(np.float32)))
    for one, other in zip(values.same_draws(4), [*kept.same_draws(3), kept.same_draws(4)[3]], strict=True):
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6)
    two = density.same_draws(2)
    for wrong in (density.likely, two[:, 1:], -two, 0 * two):
        with pytest.raises(ValueError, match="no proportions of the parts"):
            density.keeping(wrong)
    assert Values(parts, state, density.likely).drawn_weights(rng).weights is density.likely

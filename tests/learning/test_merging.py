"""Bins and rare states that noisy tables decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp import Number, Schema
from pgmpy_dp.learning.merging import MOST_BINS, equal_bins, likely_proportions, merge_states, rare_states, useful_bins

proportions = st.lists(st.floats(0, 1), min_size=2, max_size=40).map(np.array)


@given(proportions, st.integers(2, 12))
def test_bins_are_intervals_of_at_most_the_number_asked_for(weights, n_bins):
    bins = equal_bins(weights, n_bins)
    assert bins[0] == 0 and set(np.diff(bins)) <= {0, 1} and 1 <= bins[-1] <= max(n_bins, 2) - 1


@given(proportions, st.integers(2, 12))
def test_only_a_cell_that_is_heavy_itself_makes_a_heavy_bin(weights, n_bins):
    total = weights.sum()
    if total == 0:
        return
    bins = equal_bins(weights, n_bins)
    if bins[-1] == 1 and n_bins > 2:
        return  # all weight is in one place, and there are two bins whatever it is
    heaviest = np.bincount(bins, weights).max() / total
    # Middles of a bin lie within 1/n of one another; half of its first and of its last cell may stick out.
    assert heaviest <= 1 / n_bins + weights.max() / total + 1e-9


def test_a_spike_is_a_bin_of_its_own():
    weights = np.full(64, 0.3 / 63)
    weights[0] = 0.7
    bins = equal_bins(weights, 10)
    assert np.sum(bins == 0) == 1 and bins[-1] >= 3


@pytest.mark.parametrize("n_records", [0.0, 1.0, 1e3, 1e9])
def test_numbers_of_bins_grow_with_records_between_limits(n_records):
    found = [useful_bins(n_records, noise) for noise in (1e-9, 1.0, 1e3)]
    assert found == sorted(found, reverse=True) and found[-1] >= 2 and found[0] <= MOST_BINS
    assert useful_bins(n_records, 1.0, order=3) <= useful_bins(n_records, 1.0)


def test_missing_and_outside_stay_states_of_their_own():
    schema = Schema({"x": Number(0, 8, bins=8, outside="state"), "y": ["a", "b"]})
    merged = merge_states(schema, {"x": (np.array([9, 9, 9, 9, 9, 9, 9, 9, -5, 3]), 1.0)}, 2, 0.0)
    assert merged.schema.states["x"] == ("[0,4)", "[4,8]", None, "outside")
    assert merged.places == {"x": (0, 0, 0, 0, 1, 1, 1, 1, 2, 3)} and merged.schema.states["y"] == ("a", "b")


def test_rare_states_become_one_if_others_stay():
    assert rare_states(np.array([50, 1, 2, -3]), 10).tolist() == [False, True, True, True]
    assert not rare_states(np.array([50, 40, 2]), 10).any() and not rare_states(np.array([1, 2]), 10).any()
    schema = Schema({"y": ["a", "rare", "b", "c"]}, other={"y": "b"})
    merged = merge_states(schema, {"y": (np.array([1, 90, 2, 80]), 1.0)}, 2, 10.0, ["y"])
    assert merged.schema.states["y"] == ("rare", "c", "rare_") and merged.places["y"] == (2, 0, 2, 1)


def test_the_bias_of_bins_made_by_the_same_noise_is_small():
    """Cuts follow the noise: a bin's fine noise, given that it is a bin, has a mean. It is below a third of its sd.

    2,000 draws: the standard error of a mean is a fortieth of an sd; the largest of 8 means was .17 sd.
    """
    rng, truth = np.random.default_rng(0), np.full(64, 100.0)
    sums, number = np.zeros(8), np.zeros(8)
    for _ in range(2000):
        noise = rng.normal(0, 20, 64)
        bins = equal_bins(np.maximum(truth + noise, 0), 8)
        each = np.bincount(bins, noise) / np.sqrt(np.bincount(bins)) / 20
        sums[: len(each)] += each
        number[: len(each)] += 1
    assert number[-1] == 2000 and np.abs(sums / number).max() < 1 / 3


def test_what_is_only_noise_is_empty():
    """Of 60 empty cells beside 4 full ones, noise leaves 3 in 100 of the records by projection and 1 with this."""
    rng, truth = np.random.default_rng(1), np.zeros(64)
    truth[10:14] = 1000
    far, total = 0.0, 0.0
    for _ in range(50):
        found = likely_proportions(truth + rng.normal(0, 20, 64), 20.0)
        assert found.min() >= 0 and found.sum() == pytest.approx(1.0)
        far += 1 - found[8:16].sum()
        total += found[10:14].sum()
    assert far / 50 < 0.03 and total / 50 > 0.96


def test_a_table_of_nothing_but_noise_is_uniform():
    assert likely_proportions(np.full(8, -5.0), 3.0).tolist() == [1 / 8] * 8

"""Cuts from noisy counts of finer and finer divisions: least squares by brute force, cells about equally full."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp import Date, Number
from pgmpy_dp.tables.quantile_cuts import (
    consistent_counts,
    divided_at,
    equal_firsts,
    n_steps,
    quantile_cuts,
    split_firsts,
)

NUMBERS = [
    Number(0, 3, resolution=1),
    Number(0, 120, resolution=1),
    Number(0, 99_999, resolution=1),
    Number(-5, 5, resolution=0.1),
    Number(0.1, 30.1, resolution=0.01),
    Number(0, 1e-300),
    Number(-1, 1.5),
    Number(1e9, 1e9 + 1, resolution=0.5),
    Date("1900-01-01", "2026-12-31"),
]


@st.composite
def nested(draw):
    """Divisions of 2 to 12 steps, each splitting some cells of the one before, with counts."""
    end = draw(st.integers(2, 12))
    firsts = {0, end} | set(draw(st.lists(st.integers(1, end - 1), max_size=3)))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        counts = draw(st.lists(st.integers(-20, 200), min_size=len(firsts) - 1, max_size=len(firsts) - 1))
        found.append((sorted(firsts), np.array(counts)))
        firsts = firsts | set(draw(st.lists(st.integers(1, end - 1), max_size=4)))
    return found


@settings(max_examples=40)
@given(rounds=nested())
def test_least_squares_by_brute_force(rounds):
    last = rounds[-1][0]
    rows = [[float(a <= c < b) for c in last[:-1]] for firsts, _ in rounds for a, b in itertools.pairwise(firsts)]
    wanted = np.linalg.lstsq(np.array(rows), np.concatenate([counts for _, counts in rounds]), rcond=None)[0]
    assert np.allclose(consistent_counts(rounds), wanted, atol=1e-9)


@pytest.mark.parametrize("number", NUMBERS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_any_counts_give_a_division(number, seed):
    """Whatever the noise is: after a release nothing may fail."""
    rng = np.random.default_rng(seed)
    firsts, rounds = equal_firsts(number), []
    for _ in range(3):
        counts = rng.normal(0, 10.0 ** rng.integers(0, 9), len(firsts) - 1) * (seed > 0)
        assert len(divided_at(number, firsts).cells) == len(firsts) - 1
        rounds.append((firsts, counts))
        firsts = split_firsts(firsts, counts, float(np.quantile(counts, 0.97)))
    for bins in (2, 16):
        made = quantile_cuts(number, rounds[-1][0], consistent_counts(rounds), bins, 1.0)
        assert made.divided and len(set(made.cells)) == len(made.cells)
        assert (made.lower, made.upper, made.resolution) == (number.lower, number.upper, number.resolution)


def found(number, values, bins=8):
    """Cuts from exact counts in three rounds, and how many of the values are in each cell."""
    rounds, firsts = [], equal_firsts(number)
    for _ in range(3):
        code = divided_at(number, firsts).coder()
        counts = np.bincount([code(("number", float(v))) for v in values], minlength=len(firsts) + 1)[: len(firsts) - 1]
        rounds.append((firsts, counts))
        firsts = split_firsts(firsts, consistent_counts(rounds), len(values) / (2 * bins))
    made = quantile_cuts(number, rounds[-1][0], consistent_counts(rounds), bins, 0.1)
    code = made.coder()
    return made, np.bincount([code(("number", float(v))) for v in values], minlength=len(made.cells))


@pytest.mark.parametrize(
    ("number", "draw"),
    [
        (Number(0, 120, resolution=1), lambda rng: np.rint(rng.uniform(20, 80, 4000))),
        (Number(0, 1e6), lambda rng: np.exp(rng.normal(8, 1.5, 4000)).clip(0, 1e6)),
        (Number(-1e6, 1e6), lambda rng: rng.normal(3, 1.0, 4000)),
    ],
)
def test_cells_are_about_equally_full(number, draw):
    _, counts = found(number, draw(np.random.default_rng(0)))
    wide = number.upper > 1e5 and number.lower < 0  # all records in a 64th of a 64th: three rounds see cells of 488
    assert wide or (len(counts) == 8 and counts.min() > 250 and counts.max() < 900)


def test_single_values_have_cells_of_their_own():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(3000), np.full(600, 99_999), np.rint(rng.uniform(1, 20_000, 500))])
    made, counts = found(Number(0, 99_999, resolution=1), values)
    assert made.cells[0] == "[0,1)" and made.cells[-1] == "[99999,99999]"
    assert counts[0] == 3000 and counts[-1] == 600
    assert 2 <= len(counts) - 2 <= 4
    assert "[0,1)" not in found(Number(0, 99_999), values)[0].cells  # without a resolution nobody knows what a value is


def test_no_counts_give_equal_bins():
    for counts in (np.zeros(121), -np.ones(121)):
        assert quantile_cuts(Number(0, 120, resolution=1), range(122), counts, 4, 1.0) == Number(
            0, 120, resolution=1, bins=4
        )


def test_numbers_too_close_for_labels_have_one_step():
    for number in (Number(1e15, 1e15 + 8), Number(1.0, 1.0 + 2**-50), Number(4e15, 5e15, resolution=1)):
        assert n_steps(number) == 1
    assert min(map(n_steps, NUMBERS)) > 2

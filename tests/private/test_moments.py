"""Second moments and means of clipped records: exact, bounded for every record; sensitivities hold and bind."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data import moments
from pgmpy_dp.private.data.moments import (
    GRID,
    TRACE,
    centered_sums,
    clipped_integers,
    mean_sensitivity,
    second_moments,
    trace_sensitivity,
    unit_count,
)
from pgmpy_dp.private.data.vectors import PrivateVectors

ADJACENCIES = (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)
AWKWARD = [0.0, -0.0, 5e-324, 1e-300, 1e300, -1.7e308, 1.7e308, 1.0, 0.1, np.nextafter(1.0, 2.0)]


def vectors(rows, adjacency="add_remove", unit=None) -> PrivateVectors:
    n_records = 5 if adjacency == "replace_one" else None
    budget = Budget(epsilon=1.0)
    if unit is None:
        return PrivateVectors(np.asarray(rows, float), adjacency=adjacency, n_records=n_records, ledger=budget)
    frame = pd.DataFrame(np.asarray(rows, float)).assign(person=unit)
    return PrivateVectors(frame, adjacency=adjacency, n_records=n_records, unit="person", ledger=budget)


def full(upper, d):
    matrix = np.zeros((d, d), dtype=np.int64)
    matrix[np.triu_indices(d)] = upper
    return matrix + np.triu(matrix, 1).T


def awkward_rows(d, rng):
    rows = [*itertools.product(AWKWARD, repeat=2)] if d == 2 else []
    many = rng.choice(AWKWARD, size=(200, d))
    return np.concatenate([np.array(rows).reshape(-1, d), many, rng.normal(size=(500, d)), np.ones((1, d))])


def longest(rows, bound, share=1.0):
    """Largest exact squared norm of a record's integers."""
    z = clipped_integers(rows, np.zeros(rows.shape[1]), bound, share)
    assert (z == np.rint(z)).all()
    return max(sum(int(entry) ** 2 for entry in row) for row in z)


class TestClipping:
    @pytest.mark.parametrize("d", [1, 2, 3, 30, 300])
    @pytest.mark.parametrize("bound", [1e-6, 1.0, math.pi, 1e6])
    def test_no_record_is_longer_than_the_grid_in_exact_arithmetic(self, d, bound):
        rows = awkward_rows(d, np.random.default_rng(d))
        assert longest(rows, bound) <= TRACE
        for m in (2, 3, 168):
            assert m * longest(rows, bound, np.sqrt(1.0 / m)) <= TRACE

    def test_rounding_to_nearest_would_be_longer(self, monkeypatch):
        rows = np.random.default_rng(0).normal(size=(500, 30))
        monkeypatch.setattr(moments.np, "trunc", np.rint)
        assert longest(rows, 0.1) > TRACE
        # The check in integers keeps the sensitivity even then: such a record counts as zeros.
        total = full(second_moments(vectors(rows[:1] * 100), np.zeros(30), 0.1).value, 30)
        assert np.trace(total) <= TRACE

    def test_records_inside_the_bound_keep_their_values(self):
        rows = np.random.default_rng(0).uniform(-1, 1, size=(200, 4))
        z = clipped_integers(rows, np.full(4, 0.25), 3.0)
        np.testing.assert_allclose(z * 3.0 / GRID, rows - 0.25, atol=3.0 / GRID)
        assert (np.abs(z) * 3.0 / GRID <= np.abs(rows - 0.25)).all()

    def test_long_records_keep_their_direction(self):
        z = clipped_integers(np.array([[3e200, -4e200]]), np.zeros(2), 2.0)
        np.testing.assert_allclose(z / GRID, [[0.6, -0.8]], atol=1e-4)


class TestSums:
    @pytest.mark.parametrize("d", [1, 2, 7])
    def test_they_equal_python_s_integers_in_any_blocks(self, d, monkeypatch):
        rows = np.random.default_rng(d).normal(size=(101, d))
        z = clipped_integers(rows, np.zeros(d), 1.0)
        integers = [[int(entry) for entry in column] for column in z.T]
        exact = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in integers] for x in integers]
        for block in (1, 50, 1 << 20):
            monkeypatch.setattr(moments, "_BATCH", block)
            assert full(second_moments(vectors(rows), np.zeros(d), 1.0).value, d).tolist() == exact
            assert centered_sums(vectors(rows), np.zeros(d), 1.0).value.tolist() == [int(s) for s in z.sum(axis=0)]

    def test_a_person_counts_as_one_record_of_average_second_moment(self):
        rng = np.random.default_rng(0)
        rows, person = rng.uniform(-0.4, 0.4, size=(60, 3)), np.repeat([1, 2, 3], [50, 9, 1])
        total = full(second_moments(vectors(rows, unit=person), np.zeros(3), 1.0).value, 3) / TRACE
        expected = sum(rows[person == p].T @ rows[person == p] / (person == p).sum() for p in (1, 2, 3))
        np.testing.assert_allclose(total, expected, atol=2e-3)
        sums = centered_sums(vectors(rows, unit=person), np.zeros(3), 1.0).value / GRID
        np.testing.assert_allclose(sums, sum(rows[person == p].mean(axis=0) for p in (1, 2, 3)), atol=2e-3)
        assert unit_count(vectors(rows, unit=person)).value.tolist() == [3]

    @pytest.mark.parametrize("unit", [False, True])
    def test_no_records_and_zero_records_are_zeros(self, unit):
        for rows in (np.empty((0, 2)), np.zeros((4, 2)), np.full((4, 2), np.nan)):
            data = vectors(rows, unit=np.arange(len(rows)) if unit else None)
            assert second_moments(data, np.zeros(2), 1.0).value.tolist() == [0, 0, 0]
            assert centered_sums(data, np.zeros(2), 1.0).value.tolist() == [0, 0]
            assert unit_count(data).value.tolist() == [4 if len(rows) and not np.isnan(rows).any() else 0]


class TestSensitivity:
    @pytest.mark.parametrize("adjacency", ADJACENCIES)
    @pytest.mark.parametrize("d", [1, 2, pytest.param(3, marks=pytest.mark.slow), 5])
    @pytest.mark.parametrize("persons", [False, True])
    def test_no_neighbour_moves_sums_further(self, adjacency, d, persons):
        rng = np.random.default_rng(d)
        limits, mean_limits = trace_sensitivity(d, adjacency), mean_sensitivity(d, adjacency)
        for trial in range(60):
            rows = rng.normal(size=(6, d)) * 10.0 ** rng.integers(-2, 3)
            if trial % 2:
                rows = np.sign(rows)
            person = np.repeat([0, 1], 3) if persons else np.arange(6)
            other = rows.copy()
            changed = person == person[0]
            other[changed] = rng.permutation(np.where(rng.random(d) < 0.5, -1, 1) * rows[changed], axis=1)
            keep = np.ones(6, bool) if adjacency == "replace_one" else ~changed
            unit = (person, person[keep]) if persons else (None, None)
            first, second = vectors(rows, adjacency, unit[0]), vectors(other[keep], adjacency, unit[1])
            a, b = (second_moments(x, np.zeros(d), 1.0) for x in (first, second))
            moved = full(a.value - b.value, d).astype(float)
            upper = np.abs(moved[np.triu_indices(d)])
            assert upper.sum() <= limits.l1 == a.l1
            assert np.linalg.norm(upper) <= np.linalg.norm(moved) <= limits.frobenius == a.l2
            assert upper.max() <= a.linf
            assert np.linalg.norm(moved, "nuc") <= limits.nuclear * (1 + 1e-12)
            means = [centered_sums(x, np.zeros(d), 1.0).value for x in (first, second)]
            mean = np.abs(means[0] - means[1])
            assert mean.sum() <= mean_limits[0]
            assert np.linalg.norm(mean) <= mean_limits[1]
            assert mean.max() <= mean_limits[2]

    @pytest.mark.parametrize("d", [1, 2, 3, 10])
    def test_worst_neighbours_attain_them(self, d):
        near = pytest.approx(1.0, abs=2e-3)
        none = vectors(np.empty((0, d)))
        equal, axis = vectors(np.ones((1, d))), vectors(np.eye(d)[:1])
        add = trace_sensitivity(d, Adjacency.ADD_REMOVE)
        zero = second_moments(none, np.zeros(d), 1.0).value
        assert np.abs(second_moments(equal, np.zeros(d), 1.0).value - zero).sum() / add.l1 == near
        assert np.linalg.norm(second_moments(axis, np.zeros(d), 1.0).value - zero) / add.frobenius == near
        if d > 1:
            replace = trace_sensitivity(d, Adjacency.REPLACE_ONE)
            other = second_moments(vectors(np.eye(d)[1:2]), np.zeros(d), 1.0).value
            moved = full(second_moments(axis, np.zeros(d), 1.0).value - other, d).astype(float)
            assert np.linalg.norm(moved) / replace.frobenius == near
            assert np.linalg.norm(moved, "nuc") / replace.nuclear == near

    @pytest.mark.parametrize("d", [2, 3, 4])
    def test_l1_of_a_replacement_by_all_signs(self, d):
        """The proof's middle step, the spread of the eigenvalues of a sign pattern, over all patterns."""
        most = 0.0
        for signs in itertools.product([-1, 1], repeat=d * (d + 1) // 2):
            m = np.zeros((d, d))
            m[np.triu_indices(d)] = signs
            eigenvalues = np.linalg.eigvalsh((m + m.T) / 2)
            most = max(most, max(eigenvalues[-1], 0.0) + max(-eigenvalues[0], 0.0))
        bound = trace_sensitivity(d, Adjacency.REPLACE_ONE, 1).l1
        assert most <= bound <= 1.25 * most
        if d == 2:
            assert most == pytest.approx(math.sqrt(5.0))

    def test_unclipped_records_would_move_them_further(self, monkeypatch):
        monkeypatch.setattr(moments, "clipped_integers", lambda rows, *_: np.trunc(rows * GRID))
        monkeypatch.setattr(moments, "TRACE", 1 << 62)  # and without the second check
        one = second_moments(vectors(np.full((1, 2), 3.0)), np.zeros(2), 1.0)
        assert np.abs(one.value).sum() > one.l1

    def test_counts(self):
        for adjacency in ADJACENCIES:
            count = unit_count(vectors(np.ones((3, 1)), adjacency))
            assert count.value.tolist() == [3]
            assert count.l1 == count.l2 == (1.0 if adjacency == "add_remove" else 2.0)

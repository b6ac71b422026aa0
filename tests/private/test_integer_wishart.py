"""Positive semidefinite matrices of integers: their law, exactly, and what decides it.

False alarms: tests of fit fail with probability below 1e-6 each if the law is right.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from pgmpy_dp.private.noise import integer_wishart as sampler
from pgmpy_dp.private.noise.integer_wishart import integer_wishart, positive_semidefinite

pytestmark = pytest.mark.real_noise


def fits(found: Counter, law: dict, least: float = 4.0) -> None:
    """Chi-squared test; what is rarer than `least` is one class."""
    n = sum(found.values())
    total = math.fsum(law.values())
    assert sum(found[key] for key in law) >= n - 1  # `law` may leave out what has a chance of one in millions
    often = [key for key in law if n * law[key] / total >= least]
    observed = np.array([found[key] for key in often], dtype=float)
    expected = np.array([n * law[key] / total for key in often])
    rest = n - expected.sum()
    distance = ((observed - expected) ** 2 / expected).sum() + (n - observed.sum() - rest) ** 2 / rest
    assert stats.chi2.sf(distance, len(often)) > 1e-6


class TestLaw:
    @pytest.mark.parametrize("limbs", [1, 5])
    def test_of_one_number_it_is_geometric(self, limbs):
        found = Counter(int(integer_wishart(1, 3, limbs=limbs)[0]) for _ in range(300))
        fits(found, {w: math.exp(-w / 6) for w in range(200)})

    def test_of_two_columns_every_matrix_has_its_probability(self):
        c = 1
        found = Counter(tuple(integer_wishart(2, c, limbs=1).tolist()) for _ in range(400))
        law = {
            (a, z, b): math.exp(-(a + b) / (2 * c))
            for a in range(40)
            for b in range(40)
            for z in range(-math.isqrt(a * b), math.isqrt(a * b) + 1)
        }
        fits(found, law)

    def test_few_bits_make_no_coarser_matrices(self, monkeypatch):
        """With one limb and a large scale, more bits are asked for until every entry is certain."""
        asked = []
        extend = sampler._Normals.extend
        monkeypatch.setattr(sampler._Normals, "extend", lambda self: asked.append(1) or extend(self))
        w = integer_wishart(3, 1 << 60, limbs=1)
        assert len(asked) >= 2
        assert len({int(entry) % 1024 for entry in w}) > 3

    def test_it_has_the_moments_of_the_wishart_distribution(self):
        d, c = 6, 1 << 40
        sample = np.array([integer_wishart(d, c) for _ in range(40)], dtype=float) / c
        rows, columns = np.triu_indices(d)
        # d + 1 on the diagonal, of variance 2 (d + 1); else 0, of variance d + 1
        assert sample[:, rows == columns].mean() == pytest.approx(d + 1, abs=6 * math.sqrt(2 * (d + 1) / 360))
        assert (sample[:, rows != columns] ** 2).mean() == pytest.approx(d + 1, rel=0.35)

    def test_what_cannot_be_drawn_is_refused(self):
        for d, c in ((0, 4), (sampler.MOST_COLUMNS + 1, 1 << 40), (2, 0)):
            with pytest.raises(ValueError, match="n_columns"):
                integer_wishart(d, c)


class TestNormalNumbers:
    def test_cells_and_what_is_in_them_are_normal(self):
        drawn = sampler._Normals(20_000, 2)
        t = (drawn.limbs[0] + drawn.limbs[1] / 2**20) / 2**20
        values = drawn.signs * (drawn.cells + t) / 2**10
        assert stats.kstest(values, "norm").pvalue > 1e-6

    @pytest.mark.parametrize("cell", [0, 3000])
    def test_a_close_decision_has_its_probability(self, cell):
        """Given u_1 < (k + 1) h**2, and t."""
        drawn = sampler._Normals(1, 3)
        drawn.cells[:] = cell
        for limb, bits in zip(drawn.limbs, (1 << 19, 0, 0), strict=True):
            limb[:] = bits  # t = 1/2
        y = (cell / 2 + 1 / 8) / 2**20
        taken = sum(drawn._taken(0) for _ in range(1500))
        reach = (cell + 1) / 2**20
        wanted = 1 - (1 - math.exp(-y)) / reach
        assert stats.binomtest(taken, 1500, wanted).pvalue > 1e-6

    def test_a_cell_further_out_than_one_number_decides(self, monkeypatch):
        """exp(-y) with y above 1 is a product: cells of a thousand standard deviations are refused in practice."""
        monkeypatch.setattr(sampler, "_STEP", 1)  # cells of length 1/2: y = (k t + t**2/2)/4
        drawn = sampler._Normals.__new__(sampler._Normals)
        drawn.cells, drawn.signs, drawn.limbs = np.array([6]), np.ones(1), [np.array([1 << 19])]
        taken = sum(drawn._taken(0) for _ in range(1000))
        assert stats.binomtest(taken, 1000, math.exp(-(6 / 2 + 1 / 8) / 4)).pvalue > 1e-6


class TestPositiveSemidefinite:
    @pytest.mark.parametrize("size", [1, 10**6, 10**16, 10**30])
    def test_borders_are_told_to_the_last_unit(self, size):
        x = np.array([3, -2, 5, 1], dtype=object) * size
        outer = np.outer(x, x)
        upper = np.triu_indices(4)
        assert positive_semidefinite(outer[upper], 4)
        for k in range(4):
            less, more = outer.copy(), outer.copy()
            less[k, k] -= 1
            more[k, k] += 1
            assert not positive_semidefinite(less[upper], 4)
            assert positive_semidefinite(more[upper], 4)

    def test_zeros(self):
        assert positive_semidefinite(np.zeros(6, dtype=object), 3)
        # A row whose diagonal entry is 0, with another entry.
        assert not positive_semidefinite(np.array([0, 1, 0, 5, 0, 5], dtype=object), 3)

    def test_small_matrices_agree_with_minors(self):
        rng = np.random.default_rng(0)
        for _ in range(150):
            a = rng.integers(-3, 4, size=(3, 3)).astype(object)
            matrix = a + a.T if rng.random() < 0.5 else a @ a.T - rng.integers(0, 2) * np.eye(3, dtype=int)
            minors = [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]
            exact = all(_determinant(matrix[np.ix_(m, m)]) >= 0 for m in minors)
            assert positive_semidefinite(matrix[np.triu_indices(3)], 3) == exact


def _determinant(matrix: np.ndarray) -> Fraction:
    if len(matrix) == 1:
        return Fraction(int(matrix[0, 0]))
    rest = [np.delete(matrix[1:], j, axis=1) for j in range(len(matrix))]
    return sum(((-1) ** j * int(matrix[0, j]) * _determinant(m) for j, m in enumerate(rest)), Fraction(0))

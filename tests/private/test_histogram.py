"""Histograms with a threshold: quantiles of the noise, marks on exhaustive neighbours, attacks with mutants."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from pgmpy_dp.mixtures.operators.block_operators import (
    stable_histogram,
)
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.noise.histogram import (
    StabilityHistogram,
    marked_cells,
    released_cells,
    stability_histogram,
    tail_quantile,
)
from tests.private import audit


class TestTail:
    @pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 7.7, 300.0])
    @pytest.mark.parametrize("probability", [0.3, 1e-3, 1e-9, 1e-40])
    def test_is_the_smallest_quantile_by_direct_sums(self, scale, probability):
        z = np.arange(-int(60 * scale + 60), int(60 * scale + 60) + 1)
        weights = [math.exp(-((x / scale) ** 2) / 2) for x in z.tolist()]
        total = math.fsum(weights)
        tail = lambda t: math.fsum(w for x, w in zip(z.tolist(), weights, strict=True) if x >= t) / total  # noqa: E731
        t = tail_quantile(scale, probability)
        assert tail(t) <= probability
        assert t == 1 or tail(t - 1) > probability * (1 - 1e-6)

    def test_the_two_ways_agree_where_they_meet(self):
        assert 0 <= tail_quantile(1000.5, 1e-8) - tail_quantile(999.9, 1e-8) <= 6

    def test_the_continuous_quantile_would_be_too_small(self):
        # The trap: rounding the normal quantile up is not enough for discrete noise.
        wrong = sum(math.ceil(s * norm.isf(1e-6)) < tail_quantile(s, 1e-6) for s in np.linspace(3, 30, 100))
        assert wrong > 10


class TestMarks:
    def test_counts_are_of_blocks_and_in_the_order_of_the_keys(self):
        keys = np.array([[3, 0], [-1, 5], [3, 0], [3, 0]])
        cells, counts = marked_cells(keys, np.array([0, 0, 0, 7]))
        assert cells.tolist() == [[-1, 5], [3, 0]] and counts.tolist() == [1, 2]
        assert marked_cells(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=int))[0].shape == (0, 2)

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_a_block_moves_at_most_2k_counts_by_1(self, k):
        options = list(itertools.product(range(4), repeat=k))
        others = [(b, c) for b in range(1, 4) for c in (0, 1)]
        worst, found = 0, []
        for marks in ((), *options):
            pairs = others + [(0, c) for c in marks]
            cells, counts = marked_cells(np.array([[c] for _, c in pairs]), np.array([b for b, _ in pairs]))
            found.append(dict(zip(cells[:, 0].tolist(), counts.tolist(), strict=True)))
        for tables in itertools.product(found, repeat=2):
            change = [tables[0].get(c, 0) - tables[1].get(c, 0) for c in range(4)]
            assert set(change) <= {-1, 0, 1}
            # Cells that the other does not have: at most k on either side, each with a count of 1.
            for one, other in (tables, tables[::-1]):
                new = [c for c in one if c not in other]
                assert len(new) <= k and all(one[c] == 1 for c in new)
            worst = max(worst, int(np.abs(change).sum()))
        assert worst == min(2 * k, 4)  # four cells there are

    def test_scale_and_threshold(self):
        plan = stability_histogram(3, Fraction(1, 50), 1e-7)
        assert Fraction(2 * 3) / (2 * Fraction(plan.scale) ** 2) <= Fraction(1, 50)
        assert plan.threshold == 1 + tail_quantile(plan.scale, 1e-7 / 6)


ABSENT = -(10**6)


def many(keys: list[int], blocks: list[int], plan: StabilityHistogram, count: int, cells: int) -> np.ndarray:
    """That many releases side by side, as cells of one key more: shape (count, cells), ABSENT where not released."""
    copies = np.repeat(np.arange(count), len(keys))
    marked = marked_cells(
        np.column_stack([copies, np.tile(keys, count)]), copies * (max(blocks) + 1) + np.tile(blocks, count)
    )
    found, values = released_cells(*marked, plan)
    results = np.full((count, cells), ABSENT)
    results[found[:, 0], found[:, 1]] = values
    return results


class TestHistogramAudit:
    """False alarms: probability at most 1e-6 each. The delta is large, so that an attack can see what it allows."""

    EPSILON, DELTA, ETA = 1.0, 0.02, 0.01

    def plan(self) -> StabilityHistogram:
        return stability_histogram(1, approx_to_zcdp(self.EPSILON, self.DELTA - self.ETA), self.ETA)

    def of_shared_cells(self, plan: StabilityHistogram) -> float:
        """The block marks two of four cells that 9 others mark, or the other two: 2k counts move."""
        others = [(b, c) for b in range(1, 10) for c in range(4)]

        def draw(dataset: int, count: int) -> np.ndarray:
            marks = others + [(0, 2 * dataset), (0, 2 * dataset + 1)]
            # Of each cell only the count matters: one mark of each block there.
            return many([c for _, c in marks], [b for b, _ in marks], plan, count, 4)

        def score(outputs: np.ndarray) -> np.ndarray:
            counts = np.maximum(outputs, plan.threshold - 1)  # hardly ever below it
            return counts[:, 0] + counts[:, 1] - counts[:, 2] - counts[:, 3]

        return audit.audit(
            draw,
            score,
            releases=2500,
            bound=audit.rho_bound,  # these cells are far above the threshold, which then costs nothing to speak of
        )

    def of_a_lone_cell(self, plan: StabilityHistogram) -> float:
        """The block marks a cell that nobody else marks, or none: a record has emptied it."""

        def draw(dataset: int, count: int) -> np.ndarray:
            keys, blocks = ([0] * 9, list(range(1, 10)))
            if dataset == 0:
                keys, blocks = [*keys, 1], [*blocks, 0]
            return many(keys, blocks, plan, count, 2)

        return audit.audit(
            draw,
            lambda outputs: outputs[:, 1] * 1.0,
            releases=5_000,
            bound=lambda p, q: audit.epsilon_bound(p, q, self.DELTA),
        )

    def test_stays_below_the_claim(self):
        assert 0.2 <= self.of_shared_cells(stability_histogram(2, 1.0, self.ETA)) <= 1.0  # about .46
        assert self.of_a_lone_cell(self.plan()) <= self.EPSILON

    def test_half_the_noise_is_caught(self):
        plan = stability_histogram(2, 1.0, self.ETA)
        assert self.of_shared_cells(StabilityHistogram(plan.scale / 2, plan.threshold)) > 1.0

    def test_a_forgotten_threshold_is_caught(self):
        # With all the noise: that the cell is there at all tells the neighbours apart.
        assert self.of_a_lone_cell(StabilityHistogram(self.plan().scale, ABSENT + 1)) > self.EPSILON

    def test_half_the_threshold_is_caught(self):
        plan = self.plan()
        assert self.of_a_lone_cell(StabilityHistogram(plan.scale, plan.threshold // 2)) > self.EPSILON


def test_a_threshold_is_above_what_the_module_proves():
    # 2 k P(Z >= T - 1) <= eta, about what the defaults have.
    plan = stable_histogram(3, ZCDP(0.015), 1, 1e-7)
    assert 6 * norm.sf((plan.threshold - 2) / plan.scale) >= 1e-7 / 1.5  # not wasteful either
    assert plan.threshold - 1 == tail_quantile(plan.scale, 1e-7 / 6)

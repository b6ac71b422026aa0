"""Noisy maxima have the law of their closed forms, and scales keep the budget as OpenDP computes it."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import softmax
from scipy.stats import binom

from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from tests.private.distribution import ALARM

pytestmark = pytest.mark.real_noise

SCORES = np.array([-3, 0, 4, 9, 10])
DRAWS = 16_000  # with 6,000 another law was accepted in one run of forty; now in less than one of 10^9
PATHS = {"exact": lambda: None, "seeded": lambda: np.random.default_rng(20240521)}
BOTH = pytest.mark.parametrize("path", PATHS)


def gumbel_law(scores, scale) -> np.ndarray:
    return softmax(np.asarray(scores) / scale)


def exponential_law(scores, scale) -> np.ndarray:
    """P(i) = integral over its own noise of the probability that every other score stays below."""
    law = []
    for i, own in enumerate(scores):
        gaps = [(own - other) / scale for j, other in enumerate(scores) if j != i]

        def density(e, gaps=gaps):
            return math.exp(-e) * math.prod(-math.expm1(min(0.0, -(e + gap))) for gap in gaps)

        start = max(0.0, *(-gap for gap in gaps))
        law.append(quad(density, start, start + 60, limit=200, epsabs=1e-13)[0])
    return np.array(law)


LAWS = {ZCDP: gumbel_law, PureDP: exponential_law}


def accepts(hits: np.ndarray, law: np.ndarray) -> bool:
    """Exact binomial test of every candidate's hits; false alarm at most ALARM in all."""
    tails = [
        2 * min(binom.cdf(k, hits.sum(), p), binom.sf(k - 1, hits.sum(), p)) for k, p in zip(hits, law, strict=True)
    ]
    return min(tails) >= ALARM / len(law)


@functools.cache
def hits_of(cost, path: str, scale: float) -> np.ndarray:
    """How often each was the noisy maximum; drawn once in a run of tests."""
    return np.bincount(noisy_argmax([SCORES] * DRAWS, scale, cost, PATHS[path]()), minlength=len(SCORES))


@pytest.mark.parametrize("cost", [ZCDP(1.0), PureDP(1.0)])
class TestLaw:
    @pytest.mark.parametrize(
        ("path", "scale"),
        [("exact", 7.0), pytest.param("exact", 2.5, marks=pytest.mark.slow), ("seeded", 7.0), ("seeded", 2.5)],
    )
    def test_accepts_the_true_scale_and_rejects_thirty_percent(self, cost, path, scale):
        law = LAWS[type(cost)]
        hits = hits_of(cost, path, scale)
        assert law(SCORES, scale).sum() == pytest.approx(1.0, abs=1e-9)
        assert accepts(hits, law(SCORES, scale))
        assert not accepts(hits, law(SCORES, scale / 1.3))
        assert not accepts(hits, law(SCORES, scale * 1.3))

    @BOTH
    def test_the_two_noises_differ(self, cost, path):
        hits = hits_of(cost, path, 7.0)
        (other,) = (law for kind, law in LAWS.items() if not isinstance(cost, kind))
        assert not accepts(hits, other(SCORES, 7.0))

    @BOTH
    def test_rows_may_differ_in_length_and_are_left_alone(self, cost, path):
        rows = [np.array([5]), np.array([0, 10**9, 0]), np.array([10**9, 0])]
        assert noisy_argmax(rows, 3.0, cost, PATHS[path]()).tolist() == [0, 1, 0]
        assert rows[1].tolist() == [0, 10**9, 0]

    @BOTH
    def test_rows_are_independent(self, cost, path):
        picked = noisy_argmax([np.zeros(2, dtype=np.int64)] * 4_000, 1.0, cost, PATHS[path]())
        assert abs(np.corrcoef(picked[1:], picked[:-1])[0, 1]) < 5 / math.sqrt(4_000)  # false alarm 6e-7
        assert noisy_argmax([], 1.0, cost, PATHS[path]()).shape == (0,)


class TestScales:
    @given(st.sampled_from([1.0, 2.0, 4096.0]), st.floats(1e-3, 50.0), st.fractions(Fraction(1, 10**6), 1))
    def test_spend_the_share_and_never_more(self, linf, budget, share):
        gumbel = Fraction(selection_scale(linf, ZCDP(budget), share))
        rho = (2 * Fraction(linf) / gumbel) ** 2 / 8
        assert rho <= share * Fraction(budget) and float(rho / share) >= budget * (1 - 1e-12)
        exponential = Fraction(selection_scale(linf, PureDP(budget), share))
        epsilon = 2 * Fraction(linf) / exponential
        assert epsilon <= share * Fraction(budget) and float(epsilon / share) >= budget * (1 - 1e-12)

    @pytest.mark.parametrize("count", [1, 7, 20_000])
    def test_opendp_agrees_on_the_guarantee(self, count):
        share = Fraction(1, count)
        rho = samplers.gumbel_measurement(selection_scale(4096.0, ZCDP(0.3), share)).map(4096)
        epsilon = samplers.exponential_measurement(selection_scale(4096.0, PureDP(0.3), share)).map(4096)
        # OpenDP rounds each map up in floating point, which the tolerance is for.
        assert rho * count == pytest.approx(0.3, rel=1e-9) and epsilon * count == pytest.approx(0.3, rel=1e-9)

    @pytest.mark.parametrize("cost", [ZCDP(1e-40), PureDP(1e-30)])
    def test_impossible_budgets_are_refused(self, cost):
        with pytest.raises(ValueError, match=r"needs noise of scale .* raise the budget, or make fewer"):
            selection_scale(1.0, cost, Fraction(1, 10))

    def test_seeds_repeat_and_the_exact_path_does_not(self):
        rows = [np.zeros(50, dtype=np.int64)] * 20
        for cost in (ZCDP(1.0), PureDP(1.0)):
            a, b, c = (noisy_argmax(rows, 5.0, cost, np.random.default_rng(seed)) for seed in (1, 1, 2))
            assert np.array_equal(a, b) and not np.array_equal(a, c)
            np.random.seed(0)  # noqa: NPY002
            first = noisy_argmax(rows, 5.0, cost)
            np.random.seed(0)  # noqa: NPY002
            assert not np.array_equal(first, noisy_argmax(rows, 5.0, cost))

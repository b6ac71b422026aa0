"""Samplers have the claimed distribution, and scales keep the claimed budget."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.additive import gaussian_scales, laplace_scales
from pgmpy_dp.private.noise.measures import pure_epsilon
from pgmpy_dp.private.sensitive import Noise, Sensitive
from tests.private.distribution import ALARM, accepts, mass
from tests.private.mechanisms import with_noise

pytestmark = pytest.mark.real_noise

SAMPLERS = {"discrete_laplace": samplers.discrete_laplace, "discrete_gaussian": samplers.discrete_gaussian}
PATHS = {"exact": lambda: None, "seeded": lambda: np.random.default_rng(20240521)}


@functools.cache
def two_calls(distribution: str, path: str) -> list[np.ndarray]:
    """Noise of scale 4 on two tables; drawn once in a run of tests."""
    rng = PATHS[path]()
    return [SAMPLERS[distribution](np.zeros(20_000, dtype=np.int64), 4.0, rng=rng) for _ in range(2)]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("distribution", SAMPLERS)
class TestDistribution:
    """False alarms: 1e-6 each. Noise 30 % off is rejected with certainty but for far less than that."""

    @pytest.mark.parametrize("scale", [0.7, 3.0, 250.0])
    def test_accepts_the_true_scale_and_rejects_thirty_percent(self, distribution, path, scale):
        values = np.arange(20_000).reshape(200, 100) - 10_000
        draws = SAMPLERS[distribution](values, scale, rng=PATHS[path]()) - values
        assert draws.dtype == np.int64 and draws.shape == values.shape
        assert accepts(draws, distribution, scale)
        assert not accepts(draws, distribution, scale / 1.3)
        assert not accepts(draws, distribution, scale * 1.3)

    def test_moments(self, distribution, path):
        draws = two_calls(distribution, path)[0]
        support, probability = mass(distribution, 4.0)
        variance, fourth = (probability @ support.astype(float) ** k for k in (2, 4))
        # Five standard errors each: false alarms 6e-7.
        assert abs(draws.mean()) < 5 * math.sqrt(variance / draws.size)
        assert abs(draws.var() - variance) < 5 * math.sqrt((fourth - variance**2) / draws.size)
        assert Noise(distribution, 4.0).variance == pytest.approx(variance, rel=1e-9)
        assert all(Noise(distribution, scale).variance > 0 for scale in (1e-12, 1e-3, 2e-3, 0.01))

    def test_cells_and_calls_are_independent(self, distribution, path):
        first, second = two_calls(distribution, path)
        for a, b in ((first[1:], first[:-1]), (first, second)):
            assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(20_000)  # false alarm 6e-7

    def test_chunks_cover_every_cell(self, distribution, path, monkeypatch):
        monkeypatch.setattr(samplers, "_CHUNK", 7)
        values = np.arange(1000, 1023) * 1000
        noisy = SAMPLERS[distribution](values, 2.0, rng=PATHS[path]())
        assert np.abs(noisy - values).max() < 500 and (noisy != values).any()

    def test_input_is_left_alone_and_may_be_empty(self, distribution, path):
        values = np.zeros((3, 4), dtype=np.int64)
        SAMPLERS[distribution](values, 50.0, rng=PATHS[path]())
        assert not values.any()
        assert SAMPLERS[distribution](np.zeros((0, 2), dtype=np.int64), 1.0, rng=PATHS[path]()).shape == (0, 2)


class TestSeeds:
    @pytest.mark.parametrize("sampler", SAMPLERS.values())
    def test_repeat(self, sampler):
        zeros = np.zeros(50, dtype=np.int64)
        a, b, c = (sampler(zeros, 9.0, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert np.array_equal(a, b) and not np.array_equal(a, c)

    @pytest.mark.parametrize("sampler", SAMPLERS.values())
    def test_numpys_global_seed_does_not_reach_the_exact_samplers(self, sampler):
        zeros, drawn = np.zeros(50, dtype=np.int64), []
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            drawn.append(sampler(zeros, 1000.0))
        assert not np.array_equal(*drawn)


class TestTheTestOfNoise:
    def test_alarm_rate_and_resolution(self):
        rng, rejected = np.random.default_rng(3), 0
        support, probability = mass("discrete_laplace", 2.0)
        for _ in range(300):
            draws = rng.choice(support, size=2000, p=probability)
            rejected += not accepts(draws, "discrete_laplace", 2.0, alarm=0.2)
        assert 0 < rejected < 0.2 * 300 + 5 * math.sqrt(300 * 0.16)
        assert ALARM == 1e-6

    def test_tells_the_two_shapes_apart(self):
        rng = np.random.default_rng(4)
        support, probability = mass("discrete_gaussian", 3.0)
        scale = 3.0 / math.sqrt(2.0)  # the Laplace of the same variance
        assert not accepts(rng.choice(support, size=20_000, p=probability), "discrete_laplace", scale)


lists = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([1.0, 2.0, 3.5]), min_size=n, max_size=n),
        st.one_of(st.none(), st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n)),
    )
)


class TestScales:
    @given(lists, st.floats(1e-6, 50.0))
    def test_laplace_spends_the_budget_and_never_more(self, sensitivities_and_weights, epsilon):
        l1, weights = sensitivities_and_weights
        scales = laplace_scales(l1, epsilon, weights)
        spent = [Fraction(d) / Fraction(b) for d, b in zip(l1, scales, strict=True)]
        assert sum(spent) <= Fraction(epsilon)
        assert float(sum(spent)) >= epsilon * (1 - 1e-12)
        shares = np.array([float(s) for s in spent]) / epsilon
        assert np.allclose(shares, np.ones(len(l1)) / len(l1) if weights is None else np.array(weights) / sum(weights))

    @given(lists, st.floats(1e-6, 50.0))
    def test_gaussian_spends_the_budget_and_never_more(self, sensitivities_and_weights, rho):
        l2, weights = sensitivities_and_weights
        scales = gaussian_scales(l2, rho, weights)
        spent = [Fraction(d) ** 2 / (2 * Fraction(s) ** 2) for d, s in zip(l2, scales, strict=True)]
        assert sum(spent) <= Fraction(rho)
        assert float(sum(spent)) >= rho * (1 - 1e-12)
        shares = np.array([float(s) for s in spent]) / rho
        assert np.allclose(shares, np.ones(len(l2)) / len(l2) if weights is None else np.array(weights) / sum(weights))

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("weights", [None, [1, 2, 4]])
    @pytest.mark.parametrize("budget", [0.01, 1.0, 3.0])
    def test_opendp_agrees_on_the_guarantee(self, adjacency, weights, budget):
        l1, l2, _ = table_sensitivity(Adjacency(adjacency))
        epsilon = sum(samplers.laplace_measurement(b).map(int(l1)) for b in laplace_scales([l1] * 3, budget, weights))
        rho = sum(samplers.gaussian_measurement(s).map(l2) for s in gaussian_scales([l2] * 3, budget, weights))
        # OpenDP rounds each map up in floating point, which the tolerance is for.
        assert epsilon == pytest.approx(budget, rel=1e-12) and rho == pytest.approx(budget, rel=1e-12)

    def test_textbook_values(self):
        assert laplace_scales([1.0] * 5, 0.5) == (10.0,) * 5  # |C|/epsilon
        assert laplace_scales([2.0] * 5, 0.5) == (20.0,) * 5  # 2|C|/epsilon
        assert gaussian_scales([1.0] * 8, 0.25) == pytest.approx((4.0,) * 8)  # sqrt(|C|/(2 rho))
        assert gaussian_scales([math.sqrt(2)] * 9, 0.25) == pytest.approx((6.0,) * 9)  # sqrt(|C|/rho)

    def test_limits(self):
        for scales, name in ((laplace_scales, "epsilon"), (gaussian_scales, "rho")):
            with pytest.raises(ValueError, match=rf"{name}=1e-40 needs noise of scale .*raise the budget"):
                scales([1.0], 1e-40)
            with pytest.raises(ValueError, match="needs noise of scale"):
                scales([1.0], 5e-324)
            assert scales([1.0], 1e300) == (1e-3,)  # more noise than asked, never less
            with pytest.raises(ValueError, match=r"weights=\(1,\) must be 2 positive numbers"):
                scales([1.0, 1.0], 1.0, [1])


def tables(shapes) -> list[Sensitive]:
    return [Sensitive(np.zeros(s, dtype=np.int64), Adjacency.ADD_REMOVE, 1.0, 1.0, 1.0) for s in shapes]


@pytest.mark.parametrize(("cost", "scale"), [(PureDP(0.25), 8.0), (ZCDP(0.25), 2.0)])
def test_releases_add_the_noise_they_state(cost, scale):
    made = with_noise(tables([(100, 60), (90, 70)]), cost, Fraction(1), [1, 1])
    values, noise = made.draw(None), made.noise
    assert [n.scale for n in noise] == pytest.approx([scale, scale])
    assert [v.shape for v in values] == [(100, 60), (90, 70)]
    for value, item in itertools.product(values, noise):
        assert accepts(value, item.distribution, item.scale)
        assert not accepts(value, item.distribution, item.scale * 1.3)
        assert not accepts(value, item.distribution, item.scale / 1.3)


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 3), Fraction(7, 97)])
@pytest.mark.parametrize("per_rho", [2, 8])
@pytest.mark.parametrize("rho", [0.1, 0.5, 1 / 3, 1e-9, 123.0])
def test_the_epsilon_of_a_rho_is_the_largest_float_that_costs_no_more(rho, per_rho, share):
    epsilon = pure_epsilon(ZCDP(rho), share, per_rho)
    above = Fraction(math.nextafter(float(epsilon), math.inf))
    assert epsilon**2 <= per_rho * share * Fraction(rho) < above**2
    assert pure_epsilon(PureDP(rho), share) == share * Fraction(rho)

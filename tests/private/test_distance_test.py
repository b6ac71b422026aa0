"""The distance test: its sensitivity over all neighbours of small votes, its exact delta, and attacks on it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pgmpy_dp.private.noise import distance_test as module
from pgmpy_dp.private.noise.additive import laplace_scales
from pgmpy_dp.private.noise.distance_test import DistanceTest, distance_test, mode_and_distance, released_mode
from tests.private import audit
from tests.private.distribution import mass

BUDGETS = list(itertools.product([0.1, 0.5, 1.0, math.log(2), 2.0, 3.0, 7.5], [0.3, 1e-2, 1e-6]))


def tail(k: int, scale: float) -> float:
    """P(Z >= k), k >= 1, summed by the definition."""
    support, probability = mass("discrete_laplace", scale)
    return float(probability[support >= k].sum())


def multisets(voters: int, options: int):
    return itertools.combinations_with_replacement(range(options), voters)


def neighbours(votes):
    return {
        tuple(sorted((*votes[:k], other, *votes[k + 1 :])))
        for k in range(len(votes))
        for other in range(len(votes) + 1)
    }


class TestDistance:
    @pytest.mark.parametrize("voters", [*range(1, 8), pytest.param(8, marks=pytest.mark.slow)])
    def test_one_vote_moves_it_by_at_most_one_and_changes_the_mode_only_at_zero(self, voters):
        """All multisets of up to 8 votes, all changes of one vote. Names of options matter for ties only."""
        largest = 0
        for votes in multisets(voters, voters):
            mode, distance = mode_and_distance(votes)
            for other in neighbours(votes):
                other_mode, other_distance = mode_and_distance(other)
                largest = max(largest, abs(distance - other_distance))
                if mode != other_mode:
                    assert max(distance, other_distance) <= 0
        assert largest == min(voters - 1, 1)

    @pytest.mark.parametrize("voters", range(1, 7))
    def test_a_null_vote_is_one_more_thing_to_change_to(self, voters):
        """All multisets of votes and nulls, all changes of one of them."""

        def read(votes):
            return mode_and_distance([vote or None for vote in votes])

        largest = 0
        for votes in multisets(voters, voters + 1):
            mode, distance = read(votes)
            assert (mode is None) == (set(votes) == {0})
            for other in neighbours(votes):
                other_mode, other_distance = read(other)
                largest = max(largest, abs(distance - other_distance))
                if mode != other_mode:
                    assert max(distance, other_distance) <= 0
        assert largest == 1

    @pytest.mark.parametrize("voters", range(1, 7))
    def test_it_never_exceeds_the_votes_that_must_change_less_one(self, voters):
        """Against a search: d + 1 changes at least lead to another mode, unless d < 0."""
        for votes in multisets(voters, 3):
            mode, distance = mode_and_distance(votes)
            reached = {votes}
            for _ in range(distance):
                reached |= set().union(*map(neighbours, reached))
            assert {mode_and_distance(other)[0] for other in reached} == {mode}

    def test_formula(self):
        assert mode_and_distance([()]) == ((), 0)
        assert mode_and_distance([(1,), (0,)]) == ((0,), -1)
        assert mode_and_distance([(1,)] * 9 + [(0,)] * 2) == ((1,), 3)
        assert mode_and_distance([(1,)] * 56) == ((1,), 27)


class TestThreshold:
    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    def test_noise_reaches_it_with_probability_at_most_delta(self, epsilon, delta):
        test = distance_test(epsilon, delta)
        assert test.threshold > math.log(1 / delta) / epsilon and 1 / test.scale <= epsilon
        exact = tail(test.threshold, test.scale)
        assert exact <= delta
        a = math.exp(-1 / test.scale)
        assert exact == pytest.approx(a**test.threshold / (1 + a), rel=1e-6)

    def test_the_threshold_of_continuous_noise_would_be_too_small(self):
        worse = [
            tail(math.floor(math.log(0.5 / delta) / epsilon) + 1, 1 / epsilon) / delta
            for epsilon, delta in BUDGETS
            if delta < 0.1
        ]
        assert max(worse) > 1.3

    @pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
    def test_the_outcome_is_epsilon_delta_private(self, epsilon, delta):
        """Hockey-stick divergence of the whole outcome, exactly, for neighbours of equal and of different modes."""
        test = distance_test(epsilon, delta)
        support, probability = mass("discrete_laplace", test.scale)
        law = dict(zip(support.tolist(), probability.tolist(), strict=True))
        reach = int(support[-1]) + 2

        def outcomes(distance: int, mode: str) -> dict:
            found = {}
            for noisy in range(-reach, reach + 1):
                found[noisy, mode if noisy >= test.threshold else None] = law.get(noisy - distance, 0.0)
            return found

        k = test.threshold
        worst = [(0, "a", 0, "b"), (0, "a", -1, "b"), *((d, "a", d + 1, "a") for d in (-1, 0, k - 2, k - 1, k))]
        for d, mode, e, other in worst:
            for first, second in ((outcomes(d, mode), outcomes(e, other)), (outcomes(e, other), outcomes(d, mode))):
                excess = sum(max(0.0, p - math.exp(epsilon) * second.get(o, 0.0)) for o, p in first.items())
                assert excess <= delta + 1e-12

    def test_without_the_minus_one_delta_would_be_too_small(self):
        test = distance_test(3.0, 1e-3)
        assert tail(test.threshold - 1, test.scale) > 1e-3

    def test_impossible_budgets_are_refused(self):
        with pytest.raises(ValueError, match="epsilon=1e-20"):
            distance_test(1e-20, 1e-6)


class TestNoise:
    def test_released_iff_the_noisy_distance_reaches_the_threshold(self):
        rng = np.random.default_rng(0)
        seen = [released_mode(*mode_and_distance(["a"] * 9), DistanceTest(2.0, 5), rng) for _ in range(200)]
        assert all((mode == "a") == (noisy >= 5) and mode in ("a", None) for noisy, mode in seen)
        assert 20 < sum(mode is None for _, mode in seen) < 180

    @pytest.mark.parametrize("forgotten", [False, True])
    def test_an_audit_sees_whether_the_noise_is_there(self, forgotten, monkeypatch):
        """Votes one change apart, just at the threshold and just below it."""
        test = distance_test(1.0, 1e-2)
        k = test.threshold
        votes = (["a"] * (2 * k + 1), ["a"] * (2 * k) + ["b"])
        assert [mode_and_distance(v)[1] for v in votes] == [k, k - 1]
        if forgotten:
            monkeypatch.setattr(module.samplers, "discrete_laplace", lambda values, scale, rng=None: values)

        def draw(dataset, count):
            return np.array(
                [[released_mode(*mode_and_distance(votes[dataset]), test, None)[1] is not None] for _ in range(count)]
            )

        bound = audit.audit(
            draw, lambda out: out[:, 0].astype(float), releases=2000, bound=lambda p, q: audit.epsilon_bound(p, q, 1e-2)
        )
        assert bound > 3.0 if forgotten else bound <= 1.0

    def test_noise_of_another_scale_would_be_caught(self):
        """Noisy distances as `released_mode` makes them, all at once."""
        (scale,) = laplace_scales([1.0], 1.0)
        half = DistanceTest(scale / 2, distance_test(1.0, 1e-2).threshold)
        k = half.threshold

        def draw(dataset, count):
            _, distance = mode_and_distance(["a"] * (2 * k + 1 - dataset) + ["b"] * dataset)
            return module.samplers.discrete_laplace(np.full(count, distance), half.scale)[:, np.newaxis]

        bound = audit.audit(
            draw, lambda out: out[:, 0].astype(float), releases=6000, bound=lambda p, q: audit.epsilon_bound(p, q, 1e-2)
        )
        assert bound > 1.0

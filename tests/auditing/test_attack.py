"""The auditor: below true claims, above false ones, sharp on mechanisms whose privacy is known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.auditing import Neighbours, audit, audit_scores, one_run_audit, release_features, table_neighbours
from pgmpy_dp.auditing.bounds import epsilon_bound, lower_limit, rho_bound, upper_limit
from pgmpy_dp.auditing.one_run import one_run_p_value
from pgmpy_dp.auditing.scores import learned_scores
from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from tests.settings import table_settings

BITS = Neighbours(0, 1, "replace_one", "bits")


def drawn(sampler):
    """A mechanism of which many releases are drawn at once."""
    return lambda dataset, count: sampler(BITS[dataset], count)


def attack(sampler, guarantee, trials=20_000, confidence=1 - 1e-6, score=None, n_events=3):
    return audit_scores(drawn(sampler), score, BITS, guarantee, trials=trials, confidence=confidence, n_events=n_events)


class TestSharpness:
    """Each bound is above a true value with probability at most 1e-6."""

    def test_randomised_response(self):
        rng = np.random.default_rng(1)
        truthful = math.exp(1.5) / (1 + math.exp(1.5))
        report = attack(lambda bit, n: np.where(rng.random((n, 1)) < truthful, bit, 1 - bit), PureDP(1.5), 40_000)
        assert report.holds and 1.3 <= report.bound <= 1.5 and 0.86 <= report.tightness <= 1

    @pytest.mark.parametrize(("claim", "holds"), [(ZCDP(0.5), True), (ZCDP(0.15), False)])
    def test_gaussian(self, claim, holds):
        """Of sensitivity 1 and variance 1: exactly 1/2-zCDP, of which one event shows at most .36 or so."""
        rng = np.random.default_rng(2)
        report = attack(lambda bit, n: bit + rng.normal(size=(n, 1)), claim)
        assert report.holds is holds and 0.2 < report.bound <= 0.5

    def test_gaussian_under_epsilon_and_delta(self):
        """The exact delta at epsilon = 1 is .1269: claims of more hold, a claim of none does not."""
        rng = np.random.default_rng(3)
        exact = norm.cdf(-0.5) - math.e * norm.cdf(-1.5)
        assert attack(lambda bit, n: bit + rng.normal(size=(n, 1)), ApproxDP(1.0, exact * 1.001)).holds
        assert not attack(lambda bit, n: bit + rng.normal(size=(n, 1)), ApproxDP(1.0, 1e-9)).holds

    def test_among_many_features_that_say_nothing(self):
        rng = np.random.default_rng(4)

        def sampler(bit, n):
            features = rng.laplace(size=(n, 60))
            features[:, 17] += bit
            return features

        report = attack(sampler, PureDP(1.0))
        assert report.holds and report.bound > 0.6

    def test_spread_over_features(self):
        """1/sqrt(20) on each of 20 features with unit noise is 1/2-zCDP, which no single feature shows."""
        rng = np.random.default_rng(5)
        report = attack(lambda bit, n: bit / math.sqrt(20) + rng.normal(size=(n, 20)), ZCDP(0.5))
        assert report.holds and report.bound > 0.2

    def test_a_rare_event(self):
        """A forgotten threshold: nothing but an outlier once in twenty releases."""
        rng = np.random.default_rng(6)
        report = attack(lambda bit, n: rng.normal(size=(n, 3)) + 100 * bit * (rng.random((n, 1)) < 0.05), PureDP(1.0))
        assert not report.holds

    def test_support_that_moves(self):
        """Two outputs with the same mean and variance, and different values."""
        rng = np.random.default_rng(7)
        report = attack(lambda bit, n: rng.choice([-1.0, 1.0], (n, 1)) * (1 + 1e-9 * bit), PureDP(1.0))
        assert not report.holds

    def test_nothing_to_see(self):
        rng = np.random.default_rng(8)
        report = attack(lambda bit, n: np.concatenate([np.ones((n, 1)), rng.normal(size=(n, 2))], axis=1), PureDP(0.1))
        assert report.holds and report.bound < 0.1

    def test_a_likelihood_ratio_is_used_if_given(self):
        rng = np.random.default_rng(9)

        def ratio(features):
            return (np.abs(features - 1) - np.abs(features)).sum(axis=1).round(6)

        report = attack(lambda bit, n: bit + rng.laplace(size=(n, 1)), PureDP(1.0), score=ratio)
        assert report.holds and report.bound > 0.7
        assert report.scores[0].max() == 1.0

    def test_low_order_bits_of_floating_point_noise(self):
        """Laplace noise in doubles is not private (Mironov 2012): the last bits tell what it was added to."""
        rng = np.random.default_rng(9)

        def last_bits(features):
            return (np.abs(features - 1) - np.abs(features)).sum(axis=1)

        assert not attack(lambda bit, n: bit + rng.laplace(size=(n, 1)), PureDP(1.0), score=last_bits).holds


class TestFalseAlarms:
    @pytest.mark.parametrize("n_events", [pytest.param(1, marks=pytest.mark.slow), 3])
    def test_no_more_than_stated(self, n_events):
        """Exactly tight mechanism, 10 % alarms allowed: more than 44 of 200 has probability below 1e-6."""
        rng = np.random.default_rng(10)
        truthful = math.e / (1 + math.e)
        alarms = 0
        for _ in range(200):
            sampler = lambda bit, n: np.where(rng.random((n, 1)) < truthful, bit, 1 - bit)  # noqa: E731
            alarms += not attack(sampler, PureDP(1.0), trials=300, confidence=0.9, n_events=n_events).holds
        assert alarms <= int(binom.isf(1e-6, 200, 0.1))

    @pytest.mark.parametrize(("hits", "trials"), [(0, 20), (3, 20), (20, 20)])
    def test_limits_have_their_coverage(self, hits, trials):
        low, high = lower_limit(hits, trials, 0.01), upper_limit(hits, trials, 0.01)
        assert low == 0 or binom.sf(hits - 1, trials, low) == pytest.approx(0.01)
        assert high == 1 or binom.cdf(hits, trials, high) == pytest.approx(0.01)
        assert low <= hits / trials <= high

    def test_bounds_of_events(self):
        assert epsilon_bound(0.2, 0.3) == 0 and epsilon_bound(0.1, 0.01, delta=0.1) == 0
        assert epsilon_bound(0.6, 0.2, delta=0.1) == pytest.approx(math.log(2.5))
        for threshold in np.linspace(-3, 3, 25):
            assert rho_bound(norm.sf(threshold - 1), norm.sf(threshold)) <= 0.5
        assert rho_bound(1.0, 0.5) > 0.5 and rho_bound(0.3, 0.4) == 0


class TestWholeMechanisms:
    STATES = {"a": [0, 1], "b": [0, 1]}

    def mechanism(self, budget):
        settings = table_settings([("a",), ("b",)])
        return lambda frame: noisy_tables.run(PrivateTable(frame, self.STATES, ledger=budget), settings, budget)

    @pytest.mark.slow  # test_all_cases.py makes such attacks
    def test_a_release(self):
        neighbours = table_neighbours(self.STATES, n=5)
        mechanism = self.mechanism(Budget(epsilon=2.0))
        claims = {True: PureDP(2.0), False: PureDP(0.3)}
        for holds, claim in claims.items():
            report = audit(mechanism, neighbours, claim, trials=600, confidence=1 - 1e-6)
            assert report.holds is holds and report.adjacency == "add_remove"
            assert ("IS BROKEN" in str(report)) is not holds

    def test_features_of_one_shape(self):
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match="different shapes"):
            audit(lambda data: np.zeros(rng.integers(1, 3)), BITS, PureDP(1.0), trials=30)
        assert release_features(3.0).tolist() == [3.0]

    @pytest.mark.parametrize("changes", [{"trials": 1}, {"confidence": 1.0}, {"n_events": 0}])
    def test_arguments(self, changes):
        with pytest.raises(ValueError, match="trials="):
            audit(lambda data: 0.0, BITS, PureDP(1.0), **changes)

    def test_more_events_are_paid_for(self):
        """Of the same releases the same events have wider limits."""
        rng = np.random.default_rng(11)
        kept = {(d, n): rng.laplace(size=(n, 1)) + d for d in (0, 1) for n in (200, 400)}
        bounds = []
        for n_events in (1, 2):
            report = audit_scores(
                lambda d, n: kept[d, n],
                lambda x: -x[:, 0],
                BITS,
                PureDP(1.0),
                trials=400,
                confidence=0.99,
                n_events=n_events,
            )
            event, alarm = report.event, 0.01 / (2 * n_events)
            assert event.p == pytest.approx(lower_limit(event.hits[0], 400, alarm), rel=1e-12)
            assert event.q == pytest.approx(upper_limit(event.hits[1], 400, alarm), rel=1e-12)
            bounds.append(report.bound)
        assert min(bounds) > 0.3 and bounds[0] != bounds[1]

    def test_constant_features_are_no_trouble(self):
        scores = list(learned_scores(np.ones((5, 3)), np.ones((5, 3))))
        assert all(np.isfinite(score(np.ones((2, 3)))).all() for score in scores)


class TestOneRun:
    def test_p_value_of_pure_claims_is_a_binomial_tail(self):
        right = 1 / (1 + math.exp(-1.0))
        assert one_run_p_value(100, 60, 50, 1.0, 0.0) == pytest.approx(binom.sf(49, 60, right))

    def test_delta_makes_it_larger(self):
        pure, approximate = (one_run_p_value(100, 60, 55, 1.0, delta) for delta in (0.0, 1e-3))
        assert pure < approximate <= 1

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
    def test_randomised_response_is_tight(self, epsilon):
        """Above the truth with probability at most 1e-6."""
        rng = np.random.default_rng(0)
        coins = rng.random(20_000) < 0.5
        answers = np.where(rng.random(20_000) < 1 / (1 + math.exp(-epsilon)), coins, ~coins)
        bound = one_run_audit(coins, answers + 1e-3 * rng.random(20_000), confidence=1 - 1e-6).epsilon_bound
        assert 0.7 * epsilon <= bound <= epsilon

    def test_extremes(self):
        coins = np.array([True, False] * 50)
        assert one_run_audit(coins, np.zeros(100)).epsilon_bound == 0
        assert one_run_audit(coins, coins).epsilon_bound > 2
        assert one_run_audit(np.array([True, True]), np.array([0.0, 1.0])).n_correct == 1

    @pytest.mark.parametrize("changes", [{"n_guesses": 3}, {"n_guesses": 200}, {"delta": 1.0}, {"confidence": 0.0}])
    def test_arguments(self, changes):
        with pytest.raises(ValueError, match="n_guesses="):
            one_run_audit(np.ones(10, bool), np.ones(10), **changes)
        with pytest.raises(ValueError, match="equal length"):
            one_run_audit(np.ones(10, bool), np.ones(9))

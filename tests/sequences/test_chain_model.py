"""Chains: closed forms, the unrolled model against enumeration, tied gradients, and fits from noisy tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.mobility import chain_maximum_likelihood
from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.expectation_maximisation import collective_em
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.maximum_likelihood import naive_mle
from pgmpy_dp.learning.tilted_family import TiltedEngine
from pgmpy_dp.sequences.chain_counts import OrderTest, order_test
from pgmpy_dp.sequences.chain_model import (
    MarkovChain,
    fit_chain,
    map_chain,
    noisy_chain_tables,
    noisy_triples,
    second_order,
    segment_units,
    staying_log_odds,
)


def make_chain(k=3, seed=0) -> MarkovChain:
    rng = np.random.default_rng(seed)
    return MarkovChain(np.log(rng.dirichlet(np.ones(k))), np.log(rng.dirichlet(np.ones(k), size=k)))


def count(sequences, k):
    initial, transition = np.zeros(k), np.zeros((k, k))
    for x in sequences:
        initial[x[0]] += 1
        np.add.at(transition, (x[:-1], x[1:]), 1)
    return initial, transition


class TestChain:
    @pytest.mark.parametrize("length", [1, 2, 4])
    def test_unrolled_is_the_chain_for_every_sequence(self, length):
        chain = make_chain()
        codes = np.array(list(itertools.product(range(3), repeat=length)))
        by_hand = [
            chain.log_initial[x[0]] + sum(chain.log_transition[i, j] for i, j in itertools.pairwise(x)) for x in codes
        ]
        model = chain.unrolled(length)
        assert model.log_partition == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(model.log_probability(codes), by_hand, rtol=1e-12)
        np.testing.assert_allclose(chain.log_probability(list(codes)), by_hand, rtol=1e-12)
        assert np.exp(by_hand).sum() == pytest.approx(1)

    def test_long_chains_are_consistent_with_short_ones(self):
        chain = make_chain()
        long, short = chain.unrolled(60, "v"), chain.unrolled(3, "v")
        names = [("v", 1), ("v", 2)]
        np.testing.assert_allclose(long.marginal(names), short.marginal(names), rtol=1e-10)

    def test_sequences_of_all_lengths(self):
        chain = make_chain()
        got = chain.log_probability([np.array([]), np.array([2]), np.array([0, -1, 1]), np.array([1, 1])])
        assert got[0] == 0 and got[1] == chain.log_initial[2] and np.isnan(got[2])
        assert got[3] == chain.log_initial[1] + chain.log_transition[1, 1]
        assert chain.log_probability([]).shape == (0,)
        with pytest.raises(ValueError, match="state numbers"):
            chain.log_probability([np.array([3])])

    def test_samples_follow_the_chain(self):
        chain = make_chain()
        x = chain.sample(40_000, 3, np.random.default_rng(1))
        for t in range(2):
            pairs = np.bincount(3 * x[:, t] + x[:, t + 1], minlength=9) / len(x)
            exact = chain.unrolled(3).marginal([("x", t), ("x", t + 1)]).ravel()
            assert np.abs(pairs - exact).max() < 4.5 * 0.5 / np.sqrt(len(x))

    @pytest.mark.parametrize(
        ("initial", "transition", "message"),
        [([0.5, 0.5], np.eye(3), "shape"), ([0.5, 0.6], np.eye(2), "log_initial"), ([1, 0], np.ones((2, 2)), "log_tr")],
    )
    def test_bad_tables_are_named(self, initial, transition, message):
        with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
            MarkovChain(np.log(initial), np.log(transition))


def make_second(k=3, seed=0) -> MarkovChain:
    rng = np.random.default_rng(seed)
    first = make_chain(k, seed)
    return MarkovChain(first.log_initial, first.log_transition, np.log(rng.dirichlet(np.ones(k), size=(k, k))))


class TestSecondOrder:
    @pytest.mark.parametrize("length", [1, 2, 3, 5])
    def test_unrolled_is_the_chain_for_every_sequence(self, length):
        chain = make_second()
        codes = np.array(list(itertools.product(range(3), repeat=length)))
        by_hand = [
            chain.log_initial[x[0]]
            + sum(chain.log_transition[i, j] for i, j in itertools.pairwise(x[:2]))
            + sum(chain.log_second[i, j, k] for i, j, k in zip(x, x[1:], x[2:], strict=False))
            for x in codes
        ]
        model = chain.unrolled(length)
        assert model.log_partition == pytest.approx(0, abs=1e-12) and chain.order == 2
        np.testing.assert_allclose(model.log_probability(codes), by_hand, rtol=1e-12)
        np.testing.assert_allclose(chain.log_probability(list(codes)), by_hand, rtol=1e-12)
        assert np.exp(by_hand).sum() == pytest.approx(1)

    def test_sequences_of_all_lengths_side_by_side(self):
        chain = make_second()
        sequences = [np.array(x) for x in ([], [2], [0, 1], [1, 1, 2], [0, -1, 1, 1], [2, 0, 1, 1])]
        alone = np.concatenate([chain.log_probability([x]) for x in sequences])
        np.testing.assert_array_equal(chain.log_probability(sequences), alone)
        assert np.isnan(alone[4]) and np.isfinite(np.delete(alone, 4)).all()

    @pytest.mark.parametrize("method", ["independent", "stratified"])
    def test_samples_follow_the_chain(self, method):
        chain = make_second()
        x = chain.sample(40_000, 4, np.random.default_rng(1), method)
        triples = np.bincount((3 * x[:, 1] + x[:, 2]) * 3 + x[:, 3], minlength=27) / len(x)
        exact = chain.unrolled(4).marginal([("x", 1), ("x", 2), ("x", 3)]).ravel()
        assert np.abs(triples - exact).max() < 5.5 * 0.5 / np.sqrt(len(x))

    def test_bad_tables_are_named(self):
        chain = make_chain()
        for table, message in ((np.zeros((3, 3)), "log_second must have shape"), (np.zeros((3, 3, 3)), "sum to 1")):
            with pytest.raises(ValueError, match=message):
                MarkovChain(chain.log_initial, chain.log_transition, table)

    @pytest.mark.parametrize("learn", [None, naive_mle, collective_em])
    def test_it_is_learned_from_triples(self, learn):
        chain, n = make_second(seed=3), 30_000
        x = chain.sample(n, 3, np.random.default_rng(2))
        tables = noisy_chain_tables(*count(x, 3), "laplace", (2.0, 2.0))
        triples = np.bincount((3 * x[:, 0] + x[:, 1]) * 3 + x[:, 2], minlength=27).reshape(3, 3, 3)
        fit = second_order(map_chain(*tables), noisy_triples(triples, "laplace", 2.0), learn)
        error = np.abs(np.exp(fit.chain.log_second) - np.exp(chain.log_second)).max()
        assert error < 0.06 and fit.converged and "triples: " in fit.status

    def test_noise_alone_leaves_the_first_order(self):
        chain, rng = make_chain(5), np.random.default_rng(2)
        x = chain.sample(2000, 3, rng)
        fit = map_chain(*noisy_chain_tables(*count(x, 5), "laplace", (2.0, 2.0)))
        triples = noisy_triples(rng.laplace(0, 300.0, (5, 5, 5)), "laplace", 300.0)
        found = second_order(fit, triples).chain.log_second
        assert np.abs(np.exp(found) - np.exp(fit.chain.log_transition)[None]).max() < 0.1


class TestOrder:
    """The decision between the orders, from numbers as they would be released."""

    def told(self, second: float, users: int, noise: float, seed: int = 0) -> OrderTest:
        rng = np.random.default_rng(seed)
        first = make_chain(4, seed)
        other = rng.dirichlet(np.ones(4), size=(4, 4))
        both = (1 - second) * np.exp(first.log_transition) + second * other
        x = MarkovChain(first.log_initial, first.log_transition, np.log(both)).sample(users, 3, rng)
        pairs = count(x, 4)[1] / 2
        triples = np.bincount((4 * x[:, 0] + x[:, 1]) * 4 + x[:, 2], minlength=64).reshape(4, 4, 4)
        noisy = np.maximum(pairs + rng.normal(0, noise, (4, 4)), 1.0)
        transition = noisy / noisy.sum(axis=1, keepdims=True)
        departure = np.abs(triples - triples.sum(axis=2, keepdims=True) * transition).sum() / 2
        return order_test(transition, noisy, noise**2, noise**2, departure, users, users, noise**2)

    def test_first_order_stays_and_second_order_is_found(self):
        assert [self.told(0.0, users, 5.0, seed).order for users in (300, 10_000) for seed in range(4)] == [1] * 8
        assert [self.told(0.6, 10_000, 5.0, seed).order for seed in range(4)] == [2] * 4

    def test_noise_that_buries_triples_leaves_the_first_order(self):
        assert [self.told(0.6, 3000, 3000.0, seed).order for seed in range(5)] == [1] * 5

    @pytest.mark.parametrize("numbers", [(0.0, 0.0, 0.0), (-1e6, -1e6, -1e6), (1e12, 1e12, 1e12), (5.0, 1e9, -3.0)])
    def test_odd_answers_are_answers(self, numbers):
        found = order_test(np.full((3, 3), 1 / 3), np.full((3, 3), 1e-9), 1e6, 1e6, *numbers, 1e6)
        assert found.order in (1, 2) and np.isfinite(list(found.to_dict().values())).all()


class TestMaximumLikelihood:
    """Not private: the closed form against the likelihood itself."""

    def test_proportions(self):
        chain = chain_maximum_likelihood([1, 3, 0], [[2, 2, 0], [0, 0, 0], [1, 0, 3]])
        assert np.exp(chain.log_initial).tolist() == [0.25, 0.75, 0]
        np.testing.assert_allclose(np.exp(chain.log_transition), [[0.5, 0.5, 0], [1 / 3] * 3, [0.25, 0, 0.75]])
        smoothed = chain_maximum_likelihood([1, 0], [[1, 0], [0, 0]], pseudocount=1.0)
        np.testing.assert_allclose(np.exp(smoothed.log_transition), [[2 / 3, 1 / 3], [0.5, 0.5]])
        with pytest.raises(ValueError, match="negative"):
            chain_maximum_likelihood([1, -1], np.ones((2, 2)))

    def test_no_chain_nearby_is_more_likely(self):
        rng = np.random.default_rng(2)
        sequences = [make_chain().sample(1, n, rng)[0] for n in rng.integers(1, 9, 200)]
        best = chain_maximum_likelihood(*count(sequences, 3), pseudocount=1e-9)
        top = best.log_probability(sequences).sum()
        for _ in range(50):
            rows = np.exp(best.log_transition) * np.exp(0.05 * rng.normal(size=(3, 3)))
            first = np.exp(best.log_initial) * np.exp(0.05 * rng.normal(size=3))
            other = MarkovChain(np.log(first / first.sum()), np.log(rows / rows.sum(axis=1, keepdims=True)))
            assert other.log_probability(sequences).sum() < top

    def test_its_tied_gradient_vanishes_on_the_unrolled_chain(self):
        """Through exact inference: psi shared by all steps, moved so that its rows stay normalised to first order."""
        rng = np.random.default_rng(4)
        length, n = 5, 400
        x = make_chain().sample(n, length, rng)
        best = chain_maximum_likelihood(*count(x, 3), pseudocount=1e-9)
        unrolled = best.unrolled(length)

        def slope(chain: MarkovChain, step: np.ndarray) -> float:
            """Derivative of the mean log-likelihood along a step of psi, by inference on the unrolled chain."""
            model = chain.unrolled(length)
            along = np.tile(step.ravel(), length - 1)
            observed = np.mean([sum(step[i, j] for i, j in itertools.pairwise(y)) for y in x])
            return float(observed - along @ model.marginals())

        probabilities = np.exp(best.log_transition)
        slopes, elsewhere = [], []
        for _ in range(20):
            step = rng.normal(size=(3, 3))
            step -= (probabilities * step).sum(axis=1, keepdims=True)
            slopes.append(slope(best, step))
            elsewhere.append(slope(make_chain(seed=9), step))
        assert np.abs(slopes).max() < 1e-8
        assert np.abs(elsewhere).max() > 0.1
        np.testing.assert_allclose(unrolled.marginal([("x", 0)]), np.exp(best.log_initial), atol=1e-12)


class TestFromNoise:
    @pytest.mark.parametrize(
        "fit",
        [
            map_chain,
            lambda *t: map_chain(*t, stay=False),
            lambda *t: fit_chain(*t, naive_mle),
            lambda *t: fit_chain(*t, collective_em),
        ],
        ids=["map", "map without stay", "naive", "em"],
    )
    def test_little_noise_gives_the_closed_form(self, fit):
        truth = make_chain(4, seed=3)
        initial, pairs = 1e7 * np.exp(truth.log_initial), 4e6 * np.exp(truth.log_transition)
        chain = fit(*noisy_chain_tables(initial, pairs, "laplace", (1.0, 1.0))).chain
        np.testing.assert_allclose(np.exp(chain.log_initial), np.exp(truth.log_initial), atol=2e-3)
        np.testing.assert_allclose(np.exp(chain.log_transition), np.exp(truth.log_transition), atol=2e-3)

    @pytest.mark.parametrize("noise", ["laplace", "gaussian"])
    @pytest.mark.parametrize("scale", [1.0, 1e3, 1e9])
    def test_any_release_gives_a_chain(self, noise, scale):
        rng = np.random.default_rng(7)
        tables = noisy_chain_tables(
            scale * rng.laplace(size=5), scale * rng.laplace(size=(5, 5)), noise, (scale, scale)
        )
        for fit in (map_chain(*tables), fit_chain(*tables, naive_mle), fit_chain(*tables, collective_em)):
            assert np.isfinite(fit.chain.log_transition).all() and np.isfinite(fit.chain.log_initial).all()

    def test_totals_are_each_table_s_own(self):
        tables = noisy_chain_tables([60.0, 40.0], [[4.0, 1.0], [2.0, 3.0]], "laplace", (2.0, 3.0), units=(2, 1))
        assert [t.n_records for t in tables] == pytest.approx([50.0, 10.0])
        assert [t.scale.tolist() for t in tables] == [[1.0], [3.0]]

    def test_staying_is_read_from_the_diagonal_and_shrunk_by_noise(self):
        table = np.full((4, 4), 10.0) + 90 * np.eye(4)  # stays with odds e^s = 10 against any other state
        read = [staying_log_odds(noisy_chain_tables(np.ones(4), table, "laplace", (1, b))[1]) for b in (1e-6, 30, 1e5)]
        assert read[0] == pytest.approx(np.log(10)) and read[0] > read[1] > read[2] > 0
        assert read[2] < 1e-3

    def test_map_knows_what_staying_is(self):
        rng = np.random.default_rng(5)
        k = 12
        truth = MarkovChain(np.full(k, -np.log(k)), np.log(0.05 * np.ones((k, k)) / (k - 1) * 8 + 0.6 * np.eye(k)
                            - 0.4 / (k - 1) * np.eye(k)))  # fmt: skip
        joint = 5000 * np.exp(truth.log_transition) / k
        gains = []
        for _ in range(5):
            tables = noisy_chain_tables(
                np.full(k, 5000 / k), joint + rng.laplace(0, 40, (k, k)), "laplace", (1.0, 40.0)
            )
            fits = [map_chain(*tables, stay=stay).chain.log_transition for stay in (True, False)]
            divergence = [(np.exp(truth.log_transition) * (truth.log_transition - fit)).sum() / k for fit in fits]
            gains.append(divergence[1] - divergence[0])
        assert np.mean(gains) > 0.02

    def test_bad_shapes_are_named(self):
        with pytest.raises(ValueError, match="shape"):
            noisy_chain_tables(np.ones(2), np.ones((3, 3)), "laplace", (1, 1))


class TestTilt:
    def test_the_tilted_engine_is_the_engine_at_a_shifted_point(self):
        cliques = Cliques(("a", "b"), (2, 3), (("a", "b"), ("b",)))
        rng = np.random.default_rng(0)
        base, theta, way = rng.normal(size=(3, cliques.n_cells))
        engine, tilted = SumProduct(cliques), TiltedEngine(SumProduct(cliques), base)
        for ours, theirs in zip(tilted.calibrate(theta), engine.calibrate(theta + base), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_allclose(tilted.derivative(way), engine.derivative(way))
        assert tilted.cliques is tilted.engine.cliques

    def test_with_nothing_to_learn_from_the_fit_is_the_base(self):
        cliques = Cliques(("a",), (3,), (("a",),))
        from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

        noisy = NoisyMarginals(cliques, np.zeros(3), "laplace", np.array([1e7]), total=10)
        base = np.log([0.7, 0.2, 0.1])
        fit = collective_map(noisy, base=base, entropy_share=0.0)
        np.testing.assert_allclose(fit.model.marginals(), [0.7, 0.2, 0.1], atol=1e-3)
        for wrong in ({"base": base}, {"base": base[:2], "entropy_share": 0.0}):
            with pytest.raises(ValueError, match="base"):
                collective_map(noisy, **wrong)


def test_a_large_cap_on_segments_does_not_make_exact_tables_look_like_few_records():
    rng = np.random.default_rng(0)
    truth = MarkovChain(np.log([0.7, 0.2, 0.1]), np.log([[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]]))
    codes = truth.sample(3000, 4, rng)
    initial = np.bincount(codes[:, 0], minlength=3).astype(float)
    transition = np.zeros((3, 3))
    np.add.at(transition, (codes[:, :-1], codes[:, 1:]), 1)
    cap = 2099.0
    units = segment_units(initial, transition, cap)
    assert units == (1.0, 3.0)
    best = chain_maximum_likelihood(initial, transition)
    errors = []
    for unit in (units, (1.0, cap)):
        tables = noisy_chain_tables(initial, transition, "laplace", (0.01, 0.01), unit)
        fitted = map_chain(*tables).chain
        errors.append(np.abs(np.exp(fitted.log_transition) - np.exp(best.log_transition)).max())
    assert max(errors) < 0.02  # with the cap as unit it was above .1 until sampling errors were bounded by the noise


def test_units_of_segments_stay_within_what_a_segment_can_hold():
    assert segment_units(np.array([-5.0, 1.0]), np.array([[-3.0, 1.0], [0.0, 1.0]]), 5) == (1.0, 1.0)
    assert segment_units(np.array([-5.0, 1.0]), np.array([[90.0, 1.0], [0.0, 1.0]]), 5) == (1.0, 5.0)

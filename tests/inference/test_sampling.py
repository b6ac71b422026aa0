"""Stratified records: each has the model's law exactly, together they are nearer to it than independent ones."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import gibbs_sample, uniforms
from pgmpy_dp.learning.structural_zeros import obeying
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.schema import Number
from pgmpy_dp.sequences.chain_model import MarkovChain

GOLDEN = (5**0.5 - 1) / 2
CHAIN = Cliques(("a", "b", "c"), (2, 2, 2), (("a", "b"), ("b", "c")))
JOINT = np.array([[5, 1], [2, 4]]) / 12
GIVEN = np.array([[7, 5], [2, 10]]) / 12  # c given b


class Chosen:
    """A generator whose choices are said: uniform numbers and permutations, in the order they are asked for."""

    def __init__(self, numbers, permutations):
        self.numbers, self.permutations = iter(numbers), iter(permutations)

    def random(self):
        return next(self.numbers)

    def permutation(self, n):
        found = np.array(next(self.permutations))
        assert len(found) == n
        return found


def test_each_record_has_the_models_law_and_their_order_says_nothing():
    """By enumeration of the sampler's choices: pieces of the unit interval with their lengths, and all permutations."""
    n, model = 2, LogLinearModel(CHAIN, np.log(np.concatenate([JOINT.ravel(), GIVEN.ravel()])))
    ends = np.unique(np.round([k / 12 - g * GOLDEN for k in range(12) for g in (0, 1)], 12) % 1)
    pieces = list(zip((ends + np.append(ends[1:], 1)) / 2, np.diff(np.append(ends, 1)), strict=True))
    orders = list(itertools.permutations(range(n)))
    found = np.zeros((8, 8))
    for first, second in itertools.product(pieces, repeat=2):
        for left, right in itertools.product(orders, repeat=2):
            codes = model.sample(n, Chosen((first[0], second[0]), (left, right)), "stratified")
            one, two = codes @ [4, 2, 1]
            found[one, two] += first[1] * second[1] / len(orders) ** 2
    law = (JOINT[:, :, None] * GIVEN).ravel()
    np.testing.assert_allclose(found.sum(axis=0), law, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), law, atol=1e-9)
    np.testing.assert_allclose(found, found.T, atol=1e-9)
    assert abs(found - np.outer(law, law)).max() > 0.01  # they are not independent


def big_model(seed=0):
    cliques = Cliques(("a", "b", "c", "d"), (3, 4, 2, 5), (("a", "b"), ("b", "c"), ("b", "d"), ("a", "c")))
    return LogLinearModel(cliques, np.random.default_rng(seed).normal(size=cliques.n_cells))


def test_a_record_by_itself_is_a_draw_from_the_model():
    """Chi-square at a false alarm rate of 1e-7, of one of few records in many sets; and of a value within its cell."""
    model, rng = big_model(), np.random.default_rng(5)
    joint = model.marginal(("a", "b", "c", "d")).ravel()
    records = np.array([model.sample(6, rng, "stratified")[1] for _ in range(2000)])
    counts = np.bincount(np.ravel_multi_index(records.T, (3, 4, 2, 5)), minlength=joint.size)
    expected = len(records) * joint
    frequent = expected >= 5
    seen = np.append(counts[frequent], counts[~frequent].sum())
    hoped = np.append(expected[frequent], expected[~frequent].sum())
    assert stats.chisquare(seen, hoped).pvalue > 1e-7
    age = Values(Number(0, 11, resolution=1, missing="drop").fine(), np.repeat([0, 1], [4, 8]))
    codes = np.array([0, 1, 1, 0, 1])
    drawn = np.array([age.numbers(codes, uniforms(codes, rng, "stratified"))[1:3] for _ in range(250)])
    for column in drawn.T:
        assert stats.chisquare(np.bincount(column.astype(int), minlength=12)[4:]).pvalue > 1e-7


def test_counts_are_those_of_the_model_rounded_up_or_down():
    model = big_model()
    for seed, n in itertools.product(range(5), (0, 1, 7, 500)):
        codes = model.sample(n, np.random.default_rng(seed), "stratified")
        assert codes.shape == (n, 4)
        engine = model._engine
        for residual, separator, conditional in engine.conditionals():
            sizes = model.cliques.cardinalities
            groups = {}
            for row in codes:
                groups.setdefault(tuple(row[list(separator)]), []).append(row[list(residual)])
            for given, rows in groups.items():
                column = np.ravel_multi_index(given, [sizes[i] for i in separator]) if separator else 0
                kinds = np.ravel_multi_index(np.transpose(rows), [sizes[i] for i in residual])
                counts = np.bincount(kinds, minlength=len(conditional))
                assert (np.abs(counts - len(rows) * conditional[:, column]) < 1 + 1e-9).all()


def test_stratified_records_are_nearer_to_the_model_than_independent_ones():
    model = big_model(3)
    pairs = list(itertools.combinations(range(4), 2))
    tables = model.marginals_of([[model.cliques.variables[i] for i in pair] for pair in pairs])
    sizes, n, error = model.cliques.cardinalities, 300, {}
    for method in ("independent", "stratified"):
        rng, found = np.random.default_rng(0), []
        for _ in range(20):
            codes = model.sample(n, rng, method)
            for pair, table in zip(pairs, tables, strict=True):
                shape = [sizes[i] for i in pair]
                counts = np.bincount(np.ravel_multi_index(codes[:, pair].T, shape), minlength=table.size)
                found.append(0.5 * np.abs(counts / n - table.ravel()).sum())
        error[method] = np.mean(found)
    assert error["stratified"] < 0.5 * error["independent"]


def test_chains_keep_their_law_and_round():
    rng = np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        transition = np.log([[0.2, 0.8, 0], [0.5, 0.25, 0.25], [0, 0.5, 0.5]])
    chain = MarkovChain(np.log([0.5, 0.3, 0.2]), transition)
    codes = chain.sample(1000, 4, rng, "stratified")
    assert np.bincount(codes[:, 0]).tolist() == [500, 300, 200]
    moved = np.zeros((3, 3))
    np.add.at(moved, (codes[:, 0], codes[:, 1]), 1)
    np.testing.assert_array_less(np.abs(moved - [[100, 400, 0], [150, 75, 75], [0, 100, 100]]), 1 + 1e-9)
    last = np.concatenate([chain.sample(3, 4, rng, "stratified")[:1, 3] for _ in range(2000)])
    law = np.array([0.5, 0.3, 0.2]) @ np.linalg.matrix_power(np.exp(transition), 3)
    assert stats.chisquare(np.bincount(last, minlength=3), 2000 * law).pvalue > 1e-7


def test_what_is_impossible_is_never_drawn():
    found = obeying(big_model(), [{"a": {0}, "d": {1, 2}}, {"b": {3}}])
    for seed in range(20):
        a, b, _, d = found.sample(200, np.random.default_rng(seed), "stratified").T
        assert not np.any((a == 0) & np.isin(d, (1, 2))) and not (b == 3).any()


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method='random'; pass one of 'stratified', 'independent'"):
        big_model().sample(3, np.random.default_rng(0), "random")


class TestGibbs:
    """Records from a model that runs on loopy inference."""

    def test_frequencies_are_those_of_the_model(self):
        rng = np.random.default_rng(0)
        scopes = [("a",), ("a", "b"), ("b", "c", "d"), ("d", "a"), ("c", "e")]
        cliques = Cliques(tuple("abcdef"), (2, 3, 2, 4, 1, 2), tuple(scopes))
        model = LogLinearModel(cliques, rng.normal(size=cliques.n_cells), inference="loopy")
        exact = replace(model, inference="exact")
        drawn = model.sample(20_000, rng)
        for scope in (("a", "b"), ("b", "c", "d"), ("a", "c"), ("e", "f")):
            places = [cliques.variables.index(name) for name in scope]
            expected = exact.marginal(scope)
            found = np.zeros(expected.shape)
            np.add.at(found, tuple(drawn[:, place] for place in places), 1 / len(drawn))
            # Six standard deviations of each of some 40 cells: a false alarm in 10 million.
            assert (np.abs(found - expected) < 6 * np.sqrt(expected / len(drawn)) + 1e-3).all()

    def test_what_is_impossible_is_not_drawn(self):
        cliques = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("b", "c")))
        theta = np.zeros(cliques.n_cells)
        theta[[0, 1, 9]] = -np.inf
        model = LogLinearModel(cliques, theta, inference="loopy")
        drawn = model.sample(2_000, np.random.default_rng(1))
        assert not ((drawn[:, 0] == 0) & (drawn[:, 1] < 2)).any()
        assert not ((drawn[:, 1] == 1) & (drawn[:, 2] == 1)).any()
        assert len(np.unique(drawn, axis=0)) == 7  # all that is possible

    def test_a_seed_repeats_and_no_records_are_none(self):
        pair = Cliques(("a", "b"), (2, 2), (("a", "b"),))
        half = [np.array([0.5, 0.5])] * 2
        first, again = (gibbs_sample(pair, np.arange(4.0), half, 50, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert gibbs_sample(pair, np.arange(4.0), half, 0, np.random.default_rng(3)).shape == (0, 2)

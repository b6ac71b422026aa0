"""Sampling, record probabilities and divergences against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from benchmarks.divergence import kl_divergence
from pgmpy_dp.inference import log_linear
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from tests.small_models import BruteForce, chain


def model_on(cliques: Cliques, seed: int, scale: float = 1.0) -> LogLinearModel:
    return LogLinearModel(cliques, np.random.default_rng(seed).normal(scale=scale, size=cliques.n_cells))


def test_record_probabilities(cliques):
    model = model_on(cliques, 0)
    truth = BruteForce.of(cliques, model.theta)
    np.testing.assert_allclose(model.log_probability(truth.states.T), np.log(truth.joint), atol=1e-11)


@pytest.mark.parametrize("joint_bytes", [log_linear._JOINT_BYTES, (0, 0)], ids=["one tree", "its own tree"])
def test_marginals_of_any_sets(cliques, joint_bytes, monkeypatch):
    """All pairs and the joint of four variables, in one tree with the model or on its own."""
    monkeypatch.setattr(log_linear, "_JOINT_BYTES", joint_bytes)
    model = model_on(cliques, 3)
    truth = BruteForce.of(cliques, model.theta)
    scopes = [*itertools.permutations(cliques.variables, 2), cliques.variables[3::-1]]
    position = cliques.variables.index
    for scope, found in zip(scopes, model.marginals_of(scopes), strict=True):
        codes = [truth.states[position(name)] for name in scope]
        shape = tuple(cliques.cardinalities[position(name)] for name in scope)
        expected = np.bincount(np.ravel_multi_index(codes, shape), truth.joint, int(np.prod(shape))).reshape(shape)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_all_pairs_of_a_long_chain_need_no_tree_of_all_variables():
    """Together with the model they are a clique of 40 variables."""
    model = model_on(chain(1, 40, 2), 4)
    pairs = list(itertools.combinations(model.cliques.variables, 2))[::31]
    tables = model.marginals_of(pairs)
    for scope, table in [*zip(pairs, tables, strict=True)][::5]:
        np.testing.assert_allclose(table, model.marginal(scope), atol=1e-12)


def test_samples_follow_the_joint_distribution(cliques):
    """Pearson's statistic over the joint; false alarm 1e-6 for each layout."""
    model = model_on(cliques, 1)
    truth = BruteForce.of(cliques, model.theta)
    n = 40_000
    codes = model.sample(n, np.random.default_rng(2))
    assert codes.shape == (n, len(cliques.variables))
    observed = np.bincount(np.ravel_multi_index(codes.T, cliques.cardinalities), minlength=truth.joint.size)
    # Cells that expect less than 5 are pooled, so that the statistic is near its limit.
    rare = truth.joint * n < 5
    expected = np.append(truth.joint[~rare], truth.joint[rare].sum()) * n
    observed = np.append(observed[~rare], observed[rare].sum())
    keep = expected > 0
    statistic = np.sum((observed[keep] - expected[keep]) ** 2 / expected[keep])
    assert statistic < chi2.ppf(1 - 1e-6, max(int(keep.sum()) - 1, 1))


def test_the_sampler_test_can_fail():
    """Samples of a model whose log-potentials are 10 % smaller are told apart by the same statistic."""
    cliques = chain(2, 4, 3)
    model = model_on(cliques, 1)
    truth = BruteForce.of(cliques, model.theta)
    codes = LogLinearModel(cliques, 0.9 * model.theta).sample(40_000, np.random.default_rng(2))
    observed = np.bincount(np.ravel_multi_index(codes.T, cliques.cardinalities), minlength=truth.joint.size)
    expected = truth.joint * 40_000
    assert np.sum((observed - expected) ** 2 / expected) > chi2.ppf(1 - 1e-6, truth.joint.size - 1)


def test_impossible_states_are_never_drawn():
    cliques = Cliques(("a", "b"), (3, 4), (("a", "b"),))
    theta = np.log(np.where(np.arange(12) % 3 == 0, 0.0, 1.0), where=np.arange(12) % 3 != 0, out=np.full(12, -np.inf))
    codes = LogLinearModel(cliques, theta).sample(20_000, np.random.default_rng(3))
    drawn = np.unique(np.ravel_multi_index(codes.T, (3, 4)))
    np.testing.assert_array_equal(drawn, np.flatnonzero(np.arange(12) % 3 != 0))


def test_samples_are_reproducible_and_empty_samples_are_fine():
    model = model_on(chain(2, 5, 4), 4)
    first, second = (model.sample(100, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert model.sample(0, np.random.default_rng(5)).shape == (0, 5)


def test_kl_divergence_equals_brute_force(cliques):
    p, q = model_on(cliques, 6), model_on(cliques, 7)
    joint_p, joint_q = (BruteForce.of(cliques, model.theta).joint for model in (p, q))
    assert kl_divergence(p, q) == pytest.approx(np.sum(joint_p * np.log(joint_p / joint_q)), abs=1e-10)
    assert kl_divergence(p, p) == pytest.approx(0.0, abs=1e-12)


def test_kl_divergence_between_different_graphs():
    variables, cardinalities = tuple("abcd"), (2, 3, 2, 3)
    p = model_on(Cliques(variables, cardinalities, (("a", "b"), ("b", "c"))), 8)
    q = model_on(Cliques(variables, cardinalities, (("a", "d"), ("c", "d"), ("a", "c"))), 9)
    joint_p, joint_q = (BruteForce.of(model.cliques, model.theta).joint for model in (p, q))
    assert kl_divergence(p, q) == pytest.approx(np.sum(joint_p * np.log(joint_p / joint_q)), abs=1e-10)


def test_kl_divergence_with_structural_zeros():
    cliques = Cliques(("a",), (3,), (("a",),))
    full = LogLinearModel(cliques, np.zeros(3))
    holed = LogLinearModel(cliques, np.array([0.0, 0.0, -np.inf]))
    assert kl_divergence(full, holed) == np.inf
    assert kl_divergence(holed, full) == pytest.approx(np.log(3 / 2))


def test_kl_divergence_of_a_large_model_is_that_of_its_pieces():
    """A thousand-node chain of independent pairs: the sum of the pairs' divergences."""
    n = 500
    variables = tuple(range(2 * n))
    cliques = Cliques(variables, (3,) * (2 * n), tuple((2 * i, 2 * i + 1) for i in range(n)))
    p, q = model_on(cliques, 10), model_on(cliques, 11)
    pair = Cliques((0, 1), (3, 3), ((0, 1),))
    pieces = [
        kl_divergence(LogLinearModel(pair, a.ravel()), LogLinearModel(pair, b.ravel()))
        for a, b in zip(cliques.split(p.theta), cliques.split(q.theta), strict=True)
    ]
    assert kl_divergence(p, q) == pytest.approx(sum(pieces), rel=1e-10)


def test_models_of_different_variables_are_refused():
    p = model_on(Cliques(("a",), (2,), (("a",),)), 0)
    for other in (Cliques(("b",), (2,), (("b",),)), Cliques(("a",), (3,), (("a",),))):
        with pytest.raises(ValueError, match="same variables"):
            kl_divergence(p, model_on(other, 0))

"""Fits between the rounds of structure learning: repeated tables merged, contradictions reconciled."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.structural_zeros import obeying
from pgmpy_dp.tables.networks import network_estimate
from pgmpy_dp.tables.networks.network_estimate import estimate_network

VARIABLES, SIZES = ("a", "b", "c", "d", "e"), (3, 2, 4, 2, 1)
SINGLES = tuple((name,) for name in VARIABLES)


def model(scopes, seed=0, scale=2.0):
    cliques = Cliques(VARIABLES, SIZES, (*SINGLES, *scopes))
    return LogLinearModel(cliques, scale * np.random.default_rng(seed).normal(size=cliques.n_cells))


def noisy(truth, scopes, scale, seed=1, n=1000, repeat=()):
    scopes = (*SINGLES, *scopes, *repeat)
    cliques = Cliques(VARIABLES, SIZES, scopes)
    exact = n * cliques.join(truth.marginals_of(scopes))
    noise = np.random.default_rng(seed).normal(0, scale, cliques.n_cells)
    return NoisyMarginals(cliques, exact + noise, "gaussian", np.full(cliques.n_cliques, scale), total=n)


def test_the_estimate_reproduces_nearly_exact_tables_and_leaves_the_rest_independent():
    truth = model((("a", "b"), ("c", "d")), scale=0.7)
    estimate = estimate_network(noisy(truth, (("a", "b"),), 1e-3))
    for i, j in itertools.combinations(range(5), 2):
        names = VARIABLES[i], VARIABLES[j]
        if (i, j) == (0, 1):
            expected = truth.marginal(names)
        else:
            expected = np.outer(truth.marginal([names[0]]), truth.marginal([names[1]]))
        assert np.abs(estimate.expected_tables([(i, j)])[0] - 1000 * expected).max() < 2


def test_tables_that_come_one_by_one_are_fitted_up_to_their_noise():
    truth = model((("a", "b"), ("b", "c"), ("c", "d")))
    scopes, estimate = [], None
    for scope in truth.cliques.scopes[5:]:
        scopes.append(scope)
        estimate = estimate_network(noisy(truth, scopes, 0.5), estimate)
    for i, j in itertools.combinations(range(5), 2):
        expected = 1000 * truth.marginal([VARIABLES[i], VARIABLES[j]])
        assert np.abs(estimate.expected_tables([(i, j)])[0] - expected).max() < 5


def test_the_fit_minimises_the_penalised_dual_over_all_tables(monkeypatch):
    """Least squares of all tables, nested ones too, with the entropy: checked in one parameter per cell, where any
    minimum has a gradient of 0, and which the fit does not use."""
    noise = noisy(model((("a", "b"), ("c", "b"), ("a", "c"))), (("a", "b"), ("c", "b", "d"), ("c", "a"), ("d",)), 30.0)
    monkeypatch.setattr(network_estimate, "_MAX_EVALUATIONS", 2000)
    monkeypatch.setattr(network_estimate, "_GRADIENT_TOL", 1e-10)
    monkeypatch.setattr(network_estimate, "_OF_NOISE", 0.0)
    merged = noise.merged()
    marginals = merged.cliques.join(estimate_network(noise).marginals.tables(merged.cliques.indices))
    # The potential of each table that its residual calls for: the model of all of them together is the fit.
    penalty = merged.cliques.spread(merged.sum_variance / 1000**2 + 1e-2 / 1000)
    theta = (merged.proportions - marginals) / penalty
    # Division by small penalties enlarges what rounding leaves of the gradient: another kernel is 1e-6 away.
    np.testing.assert_allclose(SumProduct(merged.cliques).calibrate(theta)[0], marginals, atol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_triples_with_hardly_any_noise_are_fitted_whatever_was_fitted_before(seed, monkeypatch):
    """Fourteen overlapping triples of eight binary variables, one after the other, as a search measures them."""
    true, ended = network_estimate.minimize_lbfgs_batch, []

    def spy(*arguments, **options):
        ended.append(true(*arguments, **options))
        return ended[-1]

    monkeypatch.setattr(network_estimate, "minimize_lbfgs_batch", spy)
    names, n = tuple("abcdefgh"), 100_000
    full = np.random.default_rng(seed).dirichlet(np.full(256, 0.05)).reshape((2,) * 8)
    rng, estimate, scopes = np.random.default_rng(seed + 10), None, [(name,) for name in names]
    exact = {scope: full.sum(axis=tuple(i for i in range(8) if names[i] not in scope)) for scope in scopes}
    counts = [n * exact[scope] + rng.normal(0, 5.0, 2) for scope in scopes]
    for scope in list(itertools.combinations(names, 3))[::4]:
        scopes.append(scope)
        exact[scope] = full.sum(axis=tuple(i for i in range(8) if names[i] not in scope))
        counts.append(n * exact[scope] + rng.normal(0, 5.0, (2, 2, 2)))
        cliques = Cliques(names, (2,) * 8, tuple(scopes))
        tables = NoisyMarginals(cliques, cliques.join(counts), "gaussian", np.full(cliques.n_cliques, 5.0), total=n)
        estimate = estimate_network(tables, estimate)
        for known, table in zip(cliques.scopes, estimate.expected_tables(cliques.indices), strict=True):
            assert np.abs(table - n * exact[known]).max() < 30
    assert all(converged.all() for _, converged in ended)


def test_a_prior_with_impossible_states_keeps_them_so():
    truth = model((("a", "b"),))
    zero = Cliques(VARIABLES, SIZES, (*SINGLES, ("b", "a")))
    potentials = np.zeros(zero.n_cells)
    potentials[zero.slices[-1]][0] = -np.inf
    estimate = estimate_network(noisy(truth, (("a", "d"),), 1.0), base=LogLinearModel(zero, potentials))
    table = estimate.expected_tables([(0, 1)])[0]
    assert table[0, 0] == 0
    assert table.sum() == pytest.approx(1000)


@pytest.mark.parametrize("seed", range(3))
def test_contradictory_and_negative_tables_give_a_distribution(seed):
    truth = model((("a", "b"), ("b", "c"), ("a", "c")))
    estimate = estimate_network(noisy(truth, (("a", "b"), ("b", "c"), ("a", "c")), 500.0, seed=seed))
    for table in estimate.expected_tables(list(itertools.combinations(range(5), 3))):
        assert np.isfinite(table).all()
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1000.0, abs=1e-6)


def test_repeated_tables_are_merged_by_inverse_variance():
    cliques = Cliques(("a", "b"), (2, 3), (("a", "b"), ("a",), ("b", "a")))
    first, second = np.arange(6.0).reshape(2, 3), 10 + np.arange(6.0).reshape(2, 3)
    counts = cliques.join([first, np.array([1.0, 2.0]), second.T])
    for noise in ("gaussian", "laplace"):
        merged = NoisyMarginals(cliques, counts, noise, np.array([1.0, 7.0, 2.0])).merged()
        assert merged.cliques.scopes == (("a", "b"), ("a",))
        np.testing.assert_allclose(merged.cliques.split(merged.counts)[0], 0.8 * first + 0.2 * second)
        np.testing.assert_allclose(merged.scale, [0.8**0.5, 7.0])
        assert merged.merged() is merged
    # The variance of the mean, of either noise, is what the scale says.
    assert merged.table_variance[0] == pytest.approx(0.8**2 * 2 * 1 + 0.2**2 * 2 * 4)


def test_merging_survives_scales_whose_squares_do_not():
    cliques = Cliques(("a",), (2,), (("a",), ("a",)))
    merged = NoisyMarginals(cliques, np.ones(4), "gaussian", np.array([1e-200, 1e200])).merged()
    np.testing.assert_allclose(merged.scale, [1e-200])


def test_what_is_impossible_is_so_in_a_fit():
    """Of a rule whose variables were measured together, and of one whose were not."""
    boxes = ({"a": frozenset({0}), "b": frozenset({1})}, {"c": frozenset({2}), "d": frozenset({0})})
    truth = obeying(model((("a", "b"), ("b", "c")), scale=0.7), boxes)
    free = noisy(truth, (("a", "b"), ("b", "c")), 3.0)
    before = estimate_network(free)
    found = estimate_network(replace(free, impossible=boxes))
    a_b, c_d, b_c = found.expected_tables([(0, 1), (2, 3), (1, 2)])
    assert (a_b[0, 1], c_d[2, 0]) == (0.0, 0.0)
    assert before.expected_tables([(2, 3)])[0][2, 0] > 30
    for table, names in ((a_b, ("a", "b")), (b_c, ("b", "c"))):
        assert np.abs(table - 1000 * truth.marginal(names)).max() < 10


@pytest.mark.parametrize("boxes", [(), ({"a": {0}, "b": {1}},)])
def test_tables_of_levels_are_fitted_and_what_is_within_them_stays_independent(boxes):
    places, n = np.array([0, 0, 1]), 10_000
    joint = np.array([[0.1, 0.0], [0.25, 0.05], [0.2, 0.4]])
    of_level = np.array([joint[places == k].sum(axis=0) for k in (0, 1)])
    cliques = Cliques(("a", "b", "A"), (3, 2, 2), (("a",), ("b",), ("A", "b")))
    counts = n * cliques.join([joint.sum(axis=1), joint.sum(axis=0), of_level])
    first = Cliques(("a", "b"), (3, 2), (("a",), ("b",)))
    before = estimate_network(NoisyMarginals(first, counts[:5], "gaussian", np.full(2, 0.1), total=n, impossible=boxes))
    levels = {"A": ("a", places)}
    tables = NoisyMarginals(cliques, counts, "gaussian", np.full(3, 0.1), total=n, levels=levels, impossible=boxes)
    for previous in (before, None):
        found = estimate_network(tables, previous)
        (table,) = found.expected_tables([(0, 1)])
        np.testing.assert_allclose([table[places == k].sum(axis=0) for k in (0, 1)], n * of_level, atol=n * 2e-3)
        np.testing.assert_allclose(table.sum(axis=1), n * joint.sum(axis=1), atol=n * 2e-3)
        assert len(found.one_way) == 2
        if boxes:
            assert table[0, 1] == 0
        else:
            np.testing.assert_allclose(table[0, 1] * table[1, 0], table[0, 0] * table[1, 1], rtol=0.05)

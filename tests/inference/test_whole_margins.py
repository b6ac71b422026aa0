"""Samples with whole margins that are known: exact where they can be, and nobody more likely than in the model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.whole_margins import dependent_rounding, sample_with_margins
from pgmpy_dp.learning.proportional_fitting import ProportionalFit

CHAIN = Cliques(("a", "b", "c", "d"), (2, 3, 2, 3), (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")))


def model_and_tables(seed: int, scopes, n: int = 60):
    """A model over a circle with the margins of a random population, and these as counts."""
    rng = np.random.default_rng(seed)
    joint = rng.multinomial(n, rng.dirichlet(np.ones(36))).reshape(2, 3, 2, 3)
    tables = {scope: np.einsum(joint, range(4), ["abcd".index(name) for name in scope]) for scope in scopes}
    fit = ProportionalFit(CHAIN, {scope: table / n for scope, table in tables.items()})
    theta, errors = fit(rng.normal(size=CHAIN.n_cells))
    assert max(errors.values()) < 1e-6
    return LogLinearModel(fit.cliques, theta), tables


def margin(codes, scope, shape):
    place = np.ravel_multi_index(tuple(codes[:, "abcd".index(name)] for name in scope), shape)
    return np.bincount(place, minlength=np.prod(shape)).reshape(shape)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_rounding_keeps_whole_sums_and_moves_less_than_one(n, m, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 9, n)
    columns = rng.multinomial(rows.sum(), np.full(m, 1 / m))
    matrix = np.outer(rows, columns) / max(rows.sum(), 1)
    rounded = dependent_rounding(matrix, rng)
    assert (rounded.sum(axis=1) == rows).all() and (rounded.sum(axis=0) == columns).all()
    assert np.abs(rounded - matrix).max() < 1 and (rounded >= 0).all()


def test_rounding_is_right_on_average():
    """Entries near 0 and 1, where a transport programme with random costs is biased."""
    base = np.array([[0.9, 0.1, 0.0], [0.05, 0.45, 0.5], [0.05, 0.45, 0.5]])
    rng, n = np.random.default_rng(5), 8_000
    total = sum(dependent_rounding(base, rng) for _ in range(n))
    free = (base > 0) & (base < 1)
    z = (total - n * base)[free] / np.sqrt(n * base * (1 - base))[free]
    assert np.abs(z).max() < 4
    # That could fail: an entry of .9 that comes out as .92 is seen.
    assert abs(0.02 * n / np.sqrt(n * 0.09)) > 4
    # The joint law of one row, by chi-square.
    assert chi2.sf((z[:2] ** 2).mean(), 1) > 1e-4


@pytest.mark.parametrize(
    "scopes",
    [
        [("a", "b")],
        [("a", "b"), ("c", "d")],
        [("a", "b"), ("b", "c")],
        [("b",), ("a",), ("d", "c")],
        [("a", "b"), ("c", "d"), ("b", "c")],
        [("d", "a"), ("a",), ("a", "b")],
    ],
    ids=str,
)
def test_tables_that_make_a_tree_are_exact(scopes):
    for seed in range(5):
        model, tables = model_and_tables(seed, scopes)
        codes, off = sample_with_margins(model, tables, np.random.default_rng(seed))
        assert off == {} and codes.shape == (60, 4)
        for scope, table in tables.items():
            assert (margin(codes, scope, table.shape) == table).all()


def test_of_a_circle_the_first_tables_are_exact_and_the_rest_is_told():
    scopes, told = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")], 0
    for seed in range(8):
        model, tables = model_and_tables(seed, scopes)
        codes, off = sample_with_margins(model, tables, np.random.default_rng(seed))
        assert off.keys() <= {("d", "a")}
        for scope, table in tables.items():
            assert (margin(codes, scope, table.shape) - table == off.get(scope, 0)).all()
        told += len(off)
    assert told > 0


@pytest.mark.parametrize("scopes", [[("a", "b")], [("a", "b"), ("b", "c")], [("a", "b"), ("c", "d")]], ids=str)
def test_records_have_the_law_of_the_model(scopes):
    model, tables = model_and_tables(3, scopes, n=12)
    (joint,) = model.marginals_of([("a", "b", "c", "d")])
    rng, repeats = np.random.default_rng(11), 400
    counts = np.zeros((repeats, 36))
    for k in range(repeats):
        counts[k] = margin(sample_with_margins(model, tables, rng)[0], "abcd", (2, 3, 2, 3)).ravel()
    expected, error = 12 * joint.ravel(), counts.std(axis=0) / np.sqrt(repeats)
    assert (np.abs(counts.mean(axis=0) - expected) < 4.5 * error + 5e-3).all()


def test_the_order_of_records_says_nothing():
    model, tables = model_and_tables(0, [("a", "b")])
    first = [sample_with_margins(model, tables, np.random.default_rng(k))[0][0, 0] for k in range(40)]
    assert len(set(first)) == 2


def test_impossible_cells_stay_empty():
    model, tables = model_and_tables(0, [("a", "b"), ("b", "c")])
    tables[("a", "b")][0, 0] = 0
    zero = {("a", "b"): np.array([[0, 3, 5], [4, 4, 4]]), ("b", "c"): np.array([[2, 2], [7, 0], [4, 5]])}
    fit = ProportionalFit(model.cliques, {scope: table / 20 for scope, table in zero.items()})
    made = LogLinearModel(fit.cliques, fit(np.maximum(model.theta, -20))[0])
    for seed in range(10):
        codes, off = sample_with_margins(made, zero, np.random.default_rng(seed))
        assert off == {} and not ((codes[:, 0] == 0) & (codes[:, 1] == 0)).any()
        assert list(itertools.chain(codes.min(axis=0), codes.max(axis=0))) == [0, 0, 0, 0, 1, 2, 1, 2]

"""Many exact tables at once: counted by bits, kept in one vector, scored together; equal to one by one."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data import contingency
from pgmpy_dp.private.data.contingency import count, count_all, weighted_sum
from pgmpy_dp.private.operators.tables import KeptTables
from pgmpy_dp.private.operators.worst_fit import joined_misfit_scores, misfit_scores
from pgmpy_dp.private.sensitive import Sensitive


@pytest.mark.parametrize("at_once", [1, 1 << 17])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_counting_by_bits_is_counting(n, at_once, monkeypatch):
    monkeypatch.setattr(contingency, "_WORDS_AT_ONCE", at_once)
    rng = np.random.default_rng(n)
    sizes = [2, 1, 5, 3, 2]
    codes = np.stack([rng.integers(0, k, n) for k in sizes], axis=1).astype(np.uint8)
    scopes = [s for order in (1, 2, 3, 4) for s in itertools.permutations(range(5), order)][:200]
    for scope, table in zip(scopes, count_all(codes, sizes, scopes), strict=True):
        expected = count(codes, sizes, scope)
        np.testing.assert_array_equal(table, expected)
        assert (table.shape, table.dtype) == (expected.shape, expected.dtype)


def test_blocks_of_records_add_up(monkeypatch):
    monkeypatch.setattr(contingency, "_BITS_AT_ONCE", 1)
    codes = np.random.default_rng(0).integers(0, 2, (70_000, 3)).astype(np.uint8)
    scopes = [(0, 1), (1, 2), (0, 2), (0, 1, 2)]
    for scope, table in zip(scopes, count_all(codes, [2] * 3, scopes), strict=True):
        np.testing.assert_array_equal(table, count(codes, [2] * 3, scope))


def test_weights_count_as_they_do_one_by_one():
    rng = np.random.default_rng(1)
    codes, weights = rng.integers(0, 2, (100, 3)), rng.integers(0, 9, 100)
    scopes = [(0, 1), (1, 2), (0, 2), (0, 1, 2)]
    for scope, table in zip(scopes, count_all(codes, [2] * 3, scopes, weights), strict=True):
        np.testing.assert_array_equal(table, count(codes, [2] * 3, scope, weights))


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_that_64_bits_do_not_hold_move_no_further_than_others(sign):
    """With wrapping around one person more of 2**20 parts moved a sum by 2**64."""
    unit = 1 << 38  # what a record adds

    def total(codes):
        return sign * unit * codes.sum(axis=0, dtype=np.int64)

    sums = [weighted_sum(total, np.ones((n, 1), dtype=np.int64), np.full(n, 1 << 20)) for n in range(40)]
    assert all(one.dtype == np.int64 for one in sums)
    exact = [sign * min(n << 58, 1 << 62) for n in range(40)]
    assert [int(one[0]) for one in sums] == exact


def test_an_interrupt_leaves_no_table_in_the_place_of_another():
    class Interrupted(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            if key == ("b",):
                raise KeyboardInterrupt

    kept, exact = KeptTables(), tables([(2,), (3,), (2,)])
    kept._start = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        kept.add([("a",), ("b",)], exact[:2])
    kept.add([("c",)], exact[2:])
    for scope, table in zip([("a",), ("b",), ("c",)], exact, strict=True):
        assert scope not in kept or kept.table(scope, table.value.shape).value.tolist() == table.value.tolist()


def tables(shapes, adjacency=Adjacency.REPLACE_ONE):
    rng = np.random.default_rng(0)
    return [Sensitive(rng.integers(0, 99, shape), adjacency, 2.0, 1.5, 1.0) for shape in shapes]


def test_joined_scores_are_those_of_each_table():
    shapes = [(2, 2), (3,), (2, 3, 2), (1,), (2, 2)]
    exact, scopes = tables(shapes), [("a", "b"), ("c",), ("a", "c", "b"), ("d",), ("b", "e")]
    kept = KeptTables()
    kept.add(scopes[:2], exact[:2])
    kept.add(scopes[2:], exact[2:])
    for scope, shape, table in zip(scopes, shapes, exact, strict=True):
        np.testing.assert_array_equal(kept.table(scope, shape).value, table.value)
    rng = np.random.default_rng(1)
    order = [4, 1, 2, 0]
    expected = [50 * rng.normal(size=shapes[k]) for k in order]
    expected[1][0], offsets, weights = np.nan, rng.normal(size=4), rng.random(4)
    sizes = np.array([table.size for table in expected])
    joined = kept.joined([scopes[k] for k in order], sizes)
    found = joined_misfit_scores(joined, sizes, np.concatenate([m.ravel() for m in expected]), offsets, weights)
    one_by_one = misfit_scores([exact[k] for k in order], expected, offsets, weights)
    np.testing.assert_array_equal(found.value, one_by_one.value)
    assert (found.l1, found.l2, found.linf) == (one_by_one.l1, one_by_one.l2, one_by_one.linf) == (8.0, 8.0, 2.0)
    with pytest.raises(ValueError, match="cells, the tables"):
        joined_misfit_scores(joined, sizes, np.zeros(3))


def test_kept_tables_hide_what_they_hold():
    kept = KeptTables()
    kept.add([("a",)], tables([(2,)]))
    assert repr(kept) == "KeptTables(hidden, 1 table)"
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copied(kept)
    with pytest.raises(ValueError, match="same sensitivities"):
        kept.add([("b",)], tables([(2,)], Adjacency.ADD_REMOVE))

"""Gradient sums: exact, the same in any order, and moved by no more than claimed by any record there is."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from pgmpy_dp.fields.published.regression_layout import regression_layout
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators import regressions
from pgmpy_dp.private.operators.regressions import (
    RESIDUAL_UNIT,
    GradientSums,
    feature_rows,
    residual_table,
    selection_weight,
)

LAYOUTS = {
    "ising": regression_layout("ising", [2] * 3),
    "binary": regression_layout("binary", [2] * 3, 3),
    "pairwise": regression_layout("pairwise", [2, 3]),
    "pairwise 4": regression_layout("pairwise", [4, 2, 1]),
    "graph": regression_layout("ising", [2] * 4, edges=[(0, 1), (1, 2)]),
    "pairwise graph": regression_layout("pairwise", [2, 3, 3], edges=[(0, 1)]),
}
COSTS = (PureDP(1.0), ZCDP(1.0))


def everyone(layout) -> np.ndarray:
    """Every record that the schema can express."""
    return np.array(list(itertools.product(*map(range, layout.cardinalities))), dtype=np.uint8)


def moves(layout, rng, count: int, largest: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random steps along features that the regressions have."""
    rows = [np.array([rng.choice(row[row >= 0]) for row in layout.columns]) for _ in range(count)]
    return [(row, rng.integers(-largest, largest + 1, size=len(row))) for row in rows]


def sums(codes, layout, path, slope=0.1, reach=50, adjacency=Adjacency.ADD_REMOVE) -> np.ndarray:
    """Sums after the last of some steps."""
    engine = GradientSums(codes, layout, adjacency, reach)
    for rows, steps in path:
        value = engine.after(rows, steps, residual_table(slope, reach)).value
    return value


def twin(codes, layout, path, slope) -> np.ndarray:
    """The definition, record by record, in floating point."""
    total = np.zeros(layout.columns.shape)
    for record in codes:
        z = 2.0 * record - 1.0
        if layout.family == "pairwise":
            x = [1.0 if not f else float(record[f[0]] == f[1]) for f in layout.features]
        else:
            x = [math.prod(z[j] for j in f) for f in layout.features]
        for r, (node, (u, v)) in enumerate(zip(layout.nodes, layout.pairs, strict=True)):
            if record[node] not in (u, v):
                continue
            logit = slope * sum(steps[r] * x[rows[r]] for rows, steps in path)
            residual = 1 / (1 + math.exp(-logit)) - (record[node] == u)
            total[r] += [residual * x[f] if f >= 0 else 0.0 for f in layout.columns[r]]
    return total


@pytest.mark.parametrize("name", LAYOUTS)
class TestValues:
    def test_are_the_gradients_to_the_grid(self, name):
        layout, rng = LAYOUTS[name], np.random.default_rng(1)
        codes = everyone(layout)[rng.integers(0, len(everyone(layout)), 40)]
        path = moves(layout, rng, 5, 4)
        exact = twin(codes, layout, path, 0.1)
        assert np.abs(sums(codes, layout, path) / RESIDUAL_UNIT - exact).max() <= len(codes) / 2 / RESIDUAL_UNIT

    def test_add_up_exactly_over_records_in_any_order_and_block(self, name, monkeypatch):
        layout, rng = LAYOUTS[name], np.random.default_rng(2)
        codes = everyone(layout)[rng.integers(0, len(everyone(layout)), 53)]
        path = moves(layout, rng, 4, 6)
        whole = sums(codes, layout, path)
        assert np.array_equal(whole, sums(codes[rng.permutation(53)], layout, path))
        assert np.array_equal(whole, sum(sums(record[np.newaxis], layout, path) for record in codes))
        monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", 0)  # no counting of equal records: single precision
        for block, threads in ((4096, 1), (16, 3), (53, 4)):
            monkeypatch.setattr(regressions, "_BATCH", block)
            monkeypatch.setattr(regressions, "_THREADS", threads)
            assert np.array_equal(whole, sums(codes, layout, path))
            assert np.array_equal(whole, sums(np.asfortranarray(codes[::-1]), layout, path))

    def test_of_no_records_are_zero(self, name):
        layout = LAYOUTS[name]
        path = moves(layout, np.random.default_rng(4), 2, 3)
        value = sums(np.zeros((0, len(layout.cardinalities)), dtype=np.uint8), layout, path)
        assert value.shape == layout.columns.shape and value.dtype == np.int64 and not value.any()


def test_single_precision_is_exact_in_the_largest_block(monkeypatch):
    """All residuals of the largest size, all features of one sign: sums of 2**24 and of odd numbers near it."""
    monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", 0)
    layout = regression_layout("ising", [2, 2])
    table = residual_table(1000.0, 1)  # sigma is 0 or 1
    rows, steps = layout.columns[[0, 1], [0, 1]], np.array([-1, -1])
    codes = np.ones((3 * 4096 + 1, 2), dtype=np.uint8)
    value = GradientSums(codes, layout, Adjacency.ADD_REMOVE, 1).after(rows, steps, table).value
    assert (value == -len(codes) * RESIDUAL_UNIT).all()
    odd = table.copy()
    odd[odd == -RESIDUAL_UNIT] += 1
    value = GradientSums(codes, layout, Adjacency.ADD_REMOVE, 1).after(rows, steps, odd).value
    assert (value == -len(codes) * (RESIDUAL_UNIT - 1)).all()


def test_logits_of_many_steps_take_wider_integers():
    layout = regression_layout("ising", [2, 2])
    codes = everyone(layout)
    path = [(np.array([1, 0]), np.array([20_000, -20_000])), (np.array([2, 2]), np.array([5_000, 0]))]
    exact = twin(codes, layout, path, 1e-4)
    assert np.abs(sums(codes, layout, path, 1e-4, 25_000) / RESIDUAL_UNIT - exact).max() <= 2 / RESIDUAL_UNIT


def test_features_are_what_the_layout_says():
    for layout in LAYOUTS.values():
        codes = everyone(layout)
        rows = feature_rows(codes, layout)
        assert rows.dtype == np.int8 and np.abs(rows).max() == 1
        z = 2 * codes.astype(int) - 1
        for row, feature in zip(rows, layout.features, strict=True):
            if not feature:
                expected = np.ones(len(codes))
            elif layout.family == "pairwise":
                expected = codes[:, feature[0]] == feature[1]
            else:
                expected = z[:, list(feature)].prod(axis=1)
            assert np.array_equal(row, expected)


def test_residuals_are_bounded_and_of_one_sign_per_label():
    for slope, reach in ((1e-3, 5), (0.3, 100), (50.0, 40)):
        down, up, none = np.split(residual_table(slope, reach), 3)
        assert down.min() >= 0 and down.max() <= RESIDUAL_UNIT and up.min() >= -RESIDUAL_UNIT and up.max() <= 0
        assert not none.any() and np.array_equal(down, np.rint(down)) and np.array_equal(up, np.rint(up))


# -- sensitivity ----------------------------------------------------------------------------------


def largest_moves(layout) -> np.ndarray:
    """For each pair of records (the last "record" is outside the schema) and each regression, how far any coordinate
    of its gradient moves, at the worst of many weights, in units; shape (records + 1, records + 1, n_regressions)."""
    rng = np.random.default_rng(7)
    records = everyone(layout)
    worst = np.zeros((len(records) + 1, len(records) + 1, layout.n_regressions))
    for trial in range(12):
        # Steps of 1 and then 2 along two features: logits are +-1 or +-3 slopes, or 0, which saturate (1) or do not.
        first, second = moves(layout, rng, 2, 1)
        constant = np.full(layout.n_regressions, layout.features.index(()))
        path = [(constant if trial % 2 else first[0], rng.choice([-1, 1], layout.n_regressions))]
        path.append((second[0], 2 * rng.choice([-1, 1], layout.n_regressions)))
        slope = (1000.0, 0.7)[trial % 3 == 0]
        own = [sums(record[np.newaxis], layout, path, slope, 3) for record in records]
        own = np.array([*own, np.zeros_like(own[0])]) / RESIDUAL_UNIT
        worst = np.maximum(worst, np.abs(own[:, np.newaxis] - own[np.newaxis]).max(axis=3))
    return worst


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "pairwise graph")) for name in LAYOUTS]
)
def test_all_neighbours_are_within_the_weight_and_some_reach_it(name):
    layout = LAYOUTS[name]
    worst = largest_moves(layout)
    assert worst.max() == 2
    for cost in COSTS:
        spent = (worst if isinstance(cost, PureDP) else worst**2).sum(axis=2)
        added, replaced = spent[-1], spent
        assert added.max() == selection_weight(layout, Adjacency.ADD_REMOVE, cost)
        assert replaced.max() == selection_weight(layout, Adjacency.REPLACE_ONE, cost)
    for adjacency, bound in ((Adjacency.ADD_REMOVE, 1), (Adjacency.REPLACE_ONE, 2)):
        engine = GradientSums(everyone(layout), layout, adjacency, 3)
        still = np.zeros(layout.n_regressions, dtype=np.int64)
        sensitive = engine.after(still, still, residual_table(1.0, 3))
        assert sensitive.linf == bound * RESIDUAL_UNIT and sensitive.adjacency == adjacency
        assert sensitive.l1 >= sensitive.l2 >= sensitive.linf


def test_weights_of_the_textbook():
    """p per step for binary variables and p (k - 1) for k states when one record changes; see the corrections."""
    for p, k in ((5, 2), (7, 4)):
        pairwise = regression_layout("pairwise", [k] * p)
        assert [selection_weight(pairwise, Adjacency.ADD_REMOVE, c) for c in COSTS] == [p * (k - 1)] * 2
        assert [selection_weight(pairwise, Adjacency.REPLACE_ONE, c) for c in COSTS] == [2 * p * (k - 1), 2 * p * k]
    ising = regression_layout("ising", [2] * 5)
    assert [selection_weight(ising, Adjacency.ADD_REMOVE, c) for c in COSTS] == [5, 5]
    assert [selection_weight(ising, Adjacency.REPLACE_ONE, c) for c in COSTS] == [10, 20]
    # The fourth variable has no neighbours: it counts, but no two records are further than 1 apart in its regression.
    assert [selection_weight(LAYOUTS["graph"], Adjacency.ADD_REMOVE, c) for c in COSTS] == [4, 4]
    assert [selection_weight(LAYOUTS["graph"], Adjacency.REPLACE_ONE, c) for c in COSTS] == [7, 13]


def test_holds_on_to_its_records():
    engine = GradientSums(everyone(LAYOUTS["ising"]), LAYOUTS["ising"], Adjacency.ADD_REMOVE, 3)
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(engine)

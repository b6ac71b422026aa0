"""Gradient sums of a regression on numbers: exact, and moved by no more than claimed by any record, odd ones first."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from pgmpy_dp import Number, Schema
from pgmpy_dp.fields.frank_wolfe import step
from pgmpy_dp.fields.private_logistic_regression import logistic_layout
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators import regressions
from pgmpy_dp.private.operators.regressions import (
    FEATURE_UNIT,
    RESIDUAL_UNIT,
    GradientSums,
    Regressions,
    feature_rows,
    selection_weight,
)

# Middles of three of its cells are no multiples of 1/64; the last cell has the bound alone.
SCHEMA = Schema({"x": Number(0, 1, cuts=[0.1, 0.35, 0.9]), "k": ["u", "v", "w"], "two": [0, 1], "ill": ["no", "yes"]})
LAYOUT, TERMS = logistic_layout(SCHEMA, "ill")
EVERYONE = np.array(list(itertools.product(*map(range, SCHEMA.fine().cardinalities.values()))), dtype=np.uint8)
Q = LAYOUT.n_columns


@pytest.fixture(autouse=True)
def libraries_are_looked_for_once(monkeypatch):
    monkeypatch.setattr(regressions, "ThreadpoolController", _libraries)


_libraries = functools.cache(ThreadpoolController)


def sums(codes, path, reach=60, weights=None, layout=LAYOUT) -> np.ndarray:
    """Sums after the last of some (row, move, slope)."""
    engine = GradientSums(np.asarray(codes), layout, Adjacency.ADD_REMOVE, reach, weights)
    for row, move, slope in path:
        value = engine.after(np.array([row]), np.array([move]), engine.table(slope)).value
    return value[0]


def residuals(path, reach=60, records=EVERYONE) -> np.ndarray:
    """Residual of each record alone at the end of a path, in units: from the coordinate of the constant."""
    return np.array([sums(record[np.newaxis], path, reach)[-1] for record in records])


def paths(count: int, seed: int = 0):
    """Moves of all sizes with slopes that saturate every logit, or none, or leave it where a residual is rounded."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        slope = rng.choice([1e-3, 0.05, 0.7, 300.0])
        yield [(int(rng.integers(Q)), int(rng.integers(-9, 10)), slope) for _ in range(4)]


def test_features_are_the_middles_of_cells_and_marks():
    rows = feature_rows(EVERYONE, LAYOUT) / FEATURE_UNIT
    x = EVERYONE[:, 0]
    middles = np.array([0.05, 0.225, 0.625, 0.95, 0.5])  # what is missing counts as the middle
    assert np.abs(rows[0] - (2 * middles[x] - 1)).max() <= 1 / 128
    assert np.array_equal(rows[1], x == 4) and (rows[-1] == 1).all()
    assert np.array_equal(rows[2:5], EVERYONE[:, 1] == np.arange(3)[:, np.newaxis])
    assert np.array_equal(rows[5], 2.0 * EVERYONE[:, 2] - 1)
    assert TERMS == [("x",), ("x", None), ("k", "u"), ("k", "v"), ("k", "w"), ("two",)]


def test_bounds_are_the_largest_values_whatever_they_are():
    for lower, upper in ((0, 1), (-1e300, 1e300), (1e-320, 2e-320), (-7.25, -7.0)):
        for number in (Number(lower, upper), Number(lower, upper, bins=2, missing="drop")):
            layout, _ = logistic_layout(Schema({"x": number, "ill": [0, 1]}), "ill")
            values = layout.features[0][1:]
            assert -FEATURE_UNIT <= min(values) < 0 < max(values) <= FEATURE_UNIT
    layout, _ = logistic_layout(Schema({"x": Number(0, 9, resolution=1), "ill": [0, 1]}), "ill")
    assert layout.features[0][1] == -FEATURE_UNIT and layout.features[0][10] == FEATURE_UNIT


def test_sums_are_the_gradient_in_real_numbers():
    codes = EVERYONE[np.random.default_rng(1).integers(len(EVERYONE), size=50)]
    x = feature_rows(codes, LAYOUT) / FEATURE_UNIT
    for path in paths(12):
        logits = sum(move * x[row] for row, move, _ in path) * path[-1][2]
        exact = x @ (1 / (1 + np.exp(-np.clip(logits, -700, 700))) - codes[:, 3])
        assert np.abs(sums(codes, path) / RESIDUAL_UNIT - exact).max() <= (len(codes) / 2 + 1) / RESIDUAL_UNIT


def test_many_equal_records_are_added_up_exactly(monkeypatch):
    """Their sum is beyond what single precision holds, and so is a sum of the largest weights of rows."""
    monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", 0)
    record, n = EVERYONE[EVERYONE[:, 0] == 1][:1], 5001
    features = feature_rows(record, LAYOUT).astype(int)[:, 0]
    odd = [path for path in paths(40, 5) if residuals(path, records=record)[0] % 2]
    assert features[0] % 2 and len(odd) > 5
    for path in odd:
        own = int(residuals(path, records=record)[0])
        assert sums(np.tile(record, (n, 1)), path).tolist() == [n * own * int(f) // FEATURE_UNIT for f in features]
    monkeypatch.undo()
    weights = np.full(1000, 1 << 16)
    _, repeats = regressions._distinct(np.tile(record, (1000, 1)), LAYOUT, weights)
    assert repeats.sum() == weights.sum() and repeats.max() * FEATURE_UNIT <= 1 << 25


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_are_those_of_whole_numbers_in_any_order_and_batch(most, monkeypatch):
    """A twin that adds up Python's integers, record by record; then floor(sum/U)."""
    monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", most)
    rng = np.random.default_rng(2)
    places = rng.integers(len(EVERYONE), size=70)
    features = feature_rows(EVERYONE, LAYOUT).astype(int)
    for path in paths(6, 3):
        own = residuals(path)
        twin = [sum(int(own[k]) * int(features[f, k]) for k in places) // FEATURE_UNIT for f in range(Q)]
        assert sums(EVERYONE[places], path).tolist() == twin
        monkeypatch.setattr(regressions, "_BATCH", 16)
        assert sums(EVERYONE[rng.permutation(places)], path).tolist() == twin
        monkeypatch.setattr(regressions, "_BATCH", 1 << 12)


def test_neighbours_are_within_the_weight_and_some_reach_it():
    """Every record there is, added to and replaced in tables whose sums have every remainder: rounding down counts."""
    features = feature_rows(EVERYONE, LAYOUT).astype(np.int64)
    most = {"add": 0, "replace": 0}
    for path in paths(12, 4):
        each = residuals(path) * features  # (features, records): what a record adds before it is divided
        with_nobody = np.column_stack([each, np.zeros(Q, dtype=np.int64)])
        for remainder in (0, 1, FEATURE_UNIT - 1, -1, 12345):
            rounded = (with_nobody + remainder) // FEATURE_UNIT
            moved = np.abs(rounded[:, :, np.newaxis] - rounded[:, np.newaxis])
            most["add"] = max(most["add"], moved[:, -1].max())
            most["replace"] = max(most["replace"], moved.max())
    assert most == {"add": RESIDUAL_UNIT, "replace": 2 * RESIDUAL_UNIT}
    for cost, two in ((PureDP(1.0), 2), (ZCDP(1.0), 4)):
        assert selection_weight(LAYOUT, Adjacency.ADD_REMOVE, cost) == 1
        assert selection_weight(LAYOUT, Adjacency.REPLACE_ONE, cost) == two


def test_datasets_move_by_no_more_than_a_record_may():
    """The same through the engine itself, tables of some records and their neighbours."""
    rng = np.random.default_rng(5)
    for path in paths(15, 6):
        codes = EVERYONE[rng.integers(len(EVERYONE), size=int(rng.integers(0, 40)))]
        one, other = EVERYONE[rng.integers(len(EVERYONE), size=(2, 1))]
        base, first, second = (sums(np.vstack([codes, *more]), path) for more in ([], [one], [other]))
        assert np.abs(first - base).max() <= RESIDUAL_UNIT
        assert np.abs(first - second).max() <= 2 * RESIDUAL_UNIT


def test_units_move_by_the_parts_that_they_count():
    """A unit's records of weights of sum g at most: by g records' movement, in parts of 1/g, rounding down included."""
    rng, g = np.random.default_rng(7), 1 << 16
    for path in paths(15, 8):
        base = EVERYONE[rng.integers(len(EVERYONE), size=20)]
        weights = rng.integers(1, g, size=20)
        k = int(rng.integers(1, 6))
        own = EVERYONE[rng.integers(len(EVERYONE), size=k)]
        with_unit = sums(np.vstack([base, own]), path, weights=np.append(weights, np.full(k, g // k)))
        assert np.abs(with_unit - sums(base, path, weights=weights)).max() <= g * RESIDUAL_UNIT


def test_a_constant_alone_knows_the_label_alone():
    alone = dataclasses.replace(LAYOUT, columns=np.array([[Q - 1]]))
    for cost in (PureDP(1.0), ZCDP(1.0)):
        assert selection_weight(alone, Adjacency.REPLACE_ONE, cost) == 1
    for slope in (1e-3, 0.3, 300.0):
        own = {int(sums(r[np.newaxis], [(Q - 1, 5, slope)], layout=alone)[0]) for r in EVERYONE}
        assert max(own) - min(own) == RESIDUAL_UNIT


def test_the_largest_weights_are_added_up_exactly(monkeypatch):
    """A batch of rows of the largest weight, all at the bounds, all misjudged: integers near the largest."""
    corner = EVERYONE[(EVERYONE == [3, 0, 1, 1]).all(axis=1)]
    n, weight = 3 * 4096 + 1, (1 << 16) - 1
    path = [(5, -1, 1e4)]  # all are said to be well, and are ill: the residual is -1
    for most in (0, 1 << 20):  # all rows, or one that is cut into pieces
        monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", most)
        value = sums(np.repeat(corner, n, axis=0), path, 1, np.full(n, weight))
        features = feature_rows(corner, LAYOUT)[:, 0].astype(int)
        assert value.tolist() == [-RESIDUAL_UNIT * n * weight * int(f) // FEATURE_UNIT for f in features]
    table = np.repeat(EVERYONE, 3, axis=0)  # counted first, each distinct one in rows of at most _WEIGHT_OF_ROW/U
    monkeypatch.setattr(regressions, "_WEIGHT_OF_ROW", 2 * FEATURE_UNIT)
    for path in paths(3, 9):
        whole = sums(table, path)
        monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", 0)
        assert np.array_equal(whole, sums(table, path))
        monkeypatch.setattr(regressions, "_DISTINCT_LIMIT", 1 << 20)


@pytest.mark.parametrize("published", [False, True])
def test_logits_whose_last_bits_are_left_out_are_those_of_one_record(published, monkeypatch):
    """Steps by the thousand: each record's residual is near its own, bounded, and no function of the others."""
    n_iter, radius = 3_000, 20.0
    reach = sum(step(t, published)[0] for t in range(1, n_iter))
    assert reach * FEATURE_UNIT > regressions._TABLE_REACH
    rng = np.random.default_rng(10)
    some = EVERYONE[rng.permutation(len(EVERYONE))[:8]]
    units, path = np.zeros(Q, dtype=np.int64), []
    for t in range(1, 25):  # the first ones are the coarsest
        move, row = int(rng.choice([-1, 1])) * step(t, published)[0], int(rng.integers(Q))
        units[row] += move
        path.append((row, move, radius / step(t + 1, published)[1]))
    own, features = residuals(path, reach, some), feature_rows(some, LAYOUT).astype(int)
    logits = features.T @ units * path[-1][2] / FEATURE_UNIT
    coarse = path[-1][2] * reach / regressions._TABLE_REACH
    assert np.abs(own / RESIDUAL_UNIT - 1 / (1 + np.exp(-logits)) + some[:, 3]).max() <= coarse / 4 + 1e-3
    assert np.abs(own).max() <= RESIDUAL_UNIT and (own[some[:, 3] == 1] <= 0).all()
    assert sums(some, path, reach).tolist() == [int(v) // FEATURE_UNIT for v in features @ own]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"features": ((0, -65, 0, 0, 0, 0), *LAYOUT.features[1:])}, "none of family"),
        ({"features": ((0, -(2**63), 0, 0, 0, 0), *LAYOUT.features[1:])}, "none of family"),
        ({"features": ((0, 1, 0), *LAYOUT.features[1:])}, "none of family"),
        ({"features": ((4, 0), *LAYOUT.features[1:])}, "none of family"),
        ({"features": ((), *LAYOUT.features[1:])}, "none of family"),
        ({"features": LAYOUT.features[:-1]}, "none of family"),
        ({"family": "logit"}, "is of family 'logit'"),
        ({"nodes": np.array([1])}, "nodes or pairs"),  # of three states: others would take no part
        ({"pairs": np.array([[0, 1]])}, "nodes or pairs"),
        ({"columns": np.array([[Q]])}, "columns are numbers of features"),
    ],
    ids=str,
)
def test_layouts_on_which_the_proof_does_not_rest_are_refused(changes, match):
    sizes = list(SCHEMA.fine().cardinalities.values())
    assert Regressions.checked(LAYOUT, sizes).features == LAYOUT.features
    with pytest.raises(ValueError, match=match):
        Regressions.checked(dataclasses.replace(LAYOUT, **changes), sizes)
    assert math.prod(sizes) == len(EVERYONE)

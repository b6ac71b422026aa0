"""The instances are those of the proofs: closed forms, distances and counts, by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.hard_instances import (
    coded_blocks,
    coded_matching,
    hard_pairwise,
    hard_parameters,
    hard_structure,
    matching,
)
from tests.fields.definition import log_potentials


def probabilities(model) -> np.ndarray:
    """Of all joint states, in the order of itertools.product."""
    codes = np.array(list(itertools.product(*(range(k) for k in model.cardinalities))))
    potential = log_potentials(model, codes)
    weights = np.exp(potential - potential.max())
    return weights / weights.sum()


def test_pairs_of_a_matching_are_independent_with_correlation_tanh():
    eta = np.array([math.log(2), 0.0, -0.3])
    joint = probabilities(matching(eta)).reshape([2] * 6)
    expected = np.ones(1)
    for weight in eta:
        same, other = (1 + math.tanh(weight)) / 4, (1 - math.tanh(weight)) / 4
        expected = np.multiply.outer(expected, [[same, other], [other, same]])
    np.testing.assert_allclose(joint, expected[0], rtol=1e-12)
    # At +-ln 2 the correlation is 3/5; the proof of Theorem 5.1 has 1/3, which is that at half the weight.
    assert math.tanh(math.log(2)) == pytest.approx(3 / 5)
    assert math.tanh(math.log(2) / 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize("eta", [0.05, 0.2, 0.7, 3.0])
def test_codes_have_their_own_graphs_and_stay_as_near_as_the_proof_says(eta):
    p = 6
    models = [coded_matching(np.array(code), eta) for code in itertools.product([0, 1], repeat=p // 2)]
    assert len({tuple(model.edges()) for model in models}) == 2 ** (p // 2)
    joints = [probabilities(model) for model in models]
    distances = [np.abs(a - b).sum() / 2 for a, b in itertools.combinations(joints, 2)]
    assert min(distances) > 0 and max(distances) <= min(2 * eta * math.sqrt(p), 1)
    assert {model.min_edge_weight for model in models[1:]} == {eta}


@pytest.mark.parametrize("k", [2, 3])
def test_blocks_differ_in_their_tables_but_hardly_in_their_graphs(k):
    """All 2^(k(k+1)/2) tables: one distribution each but for the two constant ones, and an edge but for these."""
    upper = np.triu_indices(k)
    models = []
    for bits in itertools.product([0, 1], repeat=len(upper[0])):
        table = np.zeros((1, k, k), dtype=int)
        table[0][upper] = bits
        table[0].T[upper] = bits
        models.append(coded_blocks(table, 0.8))
    assert len(models) == 2 ** (k * (k + 1) // 2)
    assert len({tuple(probabilities(model).round(12)) for model in models}) == len(models) - 1
    assert [i for i, model in enumerate(models) if not model.edges()] == [0, len(models) - 1]
    assert max(model.min_edge_weight for model in models[1:-1]) < 0.8


def test_draws_fill_the_families():
    rng = np.random.default_rng(1)
    model = hard_parameters(2000, rng)
    drawn = model.weights[np.arange(0, 2000, 2), np.arange(1, 2000, 2)]
    assert np.abs(drawn).max() <= math.log(2)
    # 1000 uniform draws: the mean's standard deviation is .0127, that of the mean of squares .0045.
    assert abs(drawn.mean()) < 0.07 and abs((drawn**2).mean() - math.log(2) ** 2 / 3) < 0.025
    assert model.weights.astype(bool).sum() == 2000 and not model.fields.any()
    assert hard_parameters(20, rng, limit=0.1).width <= 0.1

    coded = hard_structure(2000, 0.3, rng)
    assert coded.edges() == [e for e in coded.edges() if e[0] % 2 == 0 and e[1] == e[0] + 1]
    assert 400 < len(coded.edges()) < 600  # 500, standard deviation 16
    assert set(coded.weights[coded.weights != 0]) == {0.3}

    blocks = hard_pairwise(2000, 3, 0.3, rng)
    assert blocks.cardinalities == (3,) * 2000
    tables = np.array([blocks.weights.get((i, i + 1), np.zeros((3, 3))) for i in range(0, 2000, 2)])
    assert set(tables.ravel()) == {0.0, 0.3} and set(blocks.weights) <= {(i, i + 1) for i in range(0, 2000, 2)}
    np.testing.assert_array_equal(tables, tables.transpose(0, 2, 1))
    np.testing.assert_allclose((tables > 0).mean(axis=0), 0.5, atol=0.1)  # standard deviation .016


def test_draws_repeat_with_the_generator():
    a, b = (hard_structure(50, 0.2, np.random.default_rng(3)) for _ in range(2))
    assert a.edges() == b.edges()


def test_bad_arguments_are_named():
    rng = np.random.default_rng(2)
    for p in (0, 7):
        with pytest.raises(ValueError, match=f"p={p} must be even"):
            hard_parameters(p, rng)
    for weight in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="weight="):
            hard_structure(4, weight, rng)
    with pytest.raises(ValueError, match="limit=-1"):
        hard_parameters(4, rng, limit=-1)
    with pytest.raises(ValueError, match="k=1"):
        hard_pairwise(4, 1, 0.3, rng)
    with pytest.raises(ValueError, match="code must consist of 0 and 1"):
        coded_matching([0, 2], 0.1)
    for codes in ([[[0, 1], [0, 0]]], [[[0, 1, 0], [1, 0, 0]]], [[0, 1], [1, 0]]):
        with pytest.raises(ValueError, match="symmetric"):
            coded_blocks(codes, 0.1)
    with pytest.raises(ValueError, match="shape"):
        matching([[0.1]])

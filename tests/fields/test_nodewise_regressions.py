"""Fields from regressions: exact coefficients, found from conditional probabilities, give the field back exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.published.nodewise_regressions import (
    binary_field_from_regressions,
    ising_from_regressions,
    node_monomials,
    pairwise_from_regressions,
    state_pairs,
)
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from tests.fields.test_random_fields import all_codes, ising, joint, pairwise, twise


def log_odds(field, node: int, u: int, v: int) -> tuple[np.ndarray, np.ndarray]:
    """log Pr(x_i = u | the others) less that of v, from the joint distribution, and the records with x_i = u."""
    table = np.moveaxis(joint(field).reshape(field.cardinalities), node, 0)
    codes = all_codes(field.cardinalities)
    return np.log(table[u] / table[v]).ravel(), codes[codes[:, node] == u]


def solved(features: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The population minimiser of the logistic loss: the log-odds are linear in the features, so it solves a system."""
    coefficients, *_ = np.linalg.lstsq(features, target, rcond=None)
    np.testing.assert_allclose(features @ coefficients, target, atol=1e-10)  # or no linear function is it
    return coefficients


def parity_features(codes: np.ndarray, monomials) -> np.ndarray:
    z = 2 * codes - 1
    return np.stack([z[:, list(subset)].prod(axis=1) for subset in monomials], axis=1)


def binary_regressions(field: Ising | BinaryField, order: int) -> np.ndarray:
    rows = []
    for i in range(field.n_variables):
        target, codes = log_odds(field, i, 1, 0)
        rows.append(solved(parity_features(codes, node_monomials(field.n_variables, order, i)), target))
    return np.array(rows)


def test_ising_from_exact_regressions():
    model = ising(1)
    p = model.n_variables
    rows = binary_regressions(model, 2)
    weights = np.diag(rows[:, 0])  # () is the first monomial
    for i in range(p):
        weights[i, [j for j in range(p) if j != i]] = rows[i, 1:]
    found, disagreement = ising_from_regressions(weights)
    np.testing.assert_allclose(found.weights, model.weights, atol=1e-10)
    np.testing.assert_allclose(found.fields, model.fields, atol=1e-10)
    np.testing.assert_allclose(disagreement, 0, atol=1e-10)


def test_ising_disagreement_is_the_distance_of_the_two_estimates():
    model = ising(2)
    weights = 2 * model.weights + np.diag(2 * model.fields)
    weights[0, 3] += 0.5
    found, disagreement = ising_from_regressions(weights)
    expected = np.zeros_like(weights)
    expected[0, 3] = expected[3, 0] = 0.25
    np.testing.assert_allclose(disagreement, expected, atol=1e-15)
    np.testing.assert_allclose(found.weights - model.weights, expected / 2, atol=1e-15)


@pytest.mark.parametrize("cardinalities", [(3, 3, 3, 3, 3), (2, 3, 1, 4, 2), (2, 2, 2, 2, 2)])
def test_pairwise_from_exact_regressions(cardinalities):
    """One-hot features are collinear: the minimum-norm solution is one minimiser, a random other one must do too."""
    model = pairwise(3, cardinalities)
    rng = np.random.default_rng(4)
    ends = np.cumsum([0, *cardinalities])
    rows, constants = [], []
    for i, u, v in state_pairs(cardinalities):
        target, codes = log_odds(model, i, u, v)
        onehot = np.concatenate([np.eye(k)[codes[:, j]] for j, k in enumerate(cardinalities)], axis=1)
        onehot[:, ends[i] : ends[i + 1]] = 0
        row = solved(np.column_stack([onehot, np.ones(len(codes))]), target)
        shift = rng.normal(size=len(cardinalities))
        shift[i] = 0
        row[:-1] += np.repeat(shift, cardinalities)
        row[-1] -= shift.sum()
        row[ends[i] : ends[i + 1]] = rng.normal(size=cardinalities[i])  # ignored
        rows.append(row[:-1])
        constants.append(row[-1])
    found, disagreement = pairwise_from_regressions(cardinalities, np.array(rows), np.array(constants))
    truth = model.centred()
    for pair in itertools.combinations(range(len(cardinalities)), 2):
        none = np.zeros([cardinalities[i] for i in pair])
        np.testing.assert_allclose(found.weights.get(pair, none), truth.weights.get(pair, none), atol=1e-10)
    for ours, theirs in zip(found.fields, truth.fields, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
    np.testing.assert_allclose(joint(found), joint(model), atol=1e-10)
    np.testing.assert_allclose(disagreement, 0, atol=1e-10)


def test_pairwise_disagreement_and_centring_of_bad_regressions():
    """Whatever the coefficients are, the model is centred and the disagreement is that of the two tables."""
    cardinalities = (3, 2, 4)
    rng = np.random.default_rng(5)
    n = len(state_pairs(cardinalities))
    found, disagreement = pairwise_from_regressions(cardinalities, rng.normal(size=(n, 9)), rng.normal(size=n))
    assert isinstance(found, Pairwise)
    for table in found.weights.values():
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), 0, atol=1e-12)
    weights = np.zeros((n, 9))
    weights[0, 3] = 1.0  # node 0, u = 0, v = 1: the first state of node 1, none of it in node 1's regression
    model, disagreement = pairwise_from_regressions(cardinalities, weights, np.zeros(n))
    half = np.array([[0.5, -0.5], [-0.5, 0.5], [0.0, 0.0]]) / 3
    np.testing.assert_allclose(model.weights[0, 1], half / 2, atol=1e-15)
    assert disagreement[0, 1] == disagreement[1, 0] == pytest.approx(0.5 / 3)
    assert disagreement[0, 2] == disagreement[1, 2] == 0
    np.testing.assert_allclose(model.fields[0], [0.5 / 3, -0.5 / 3, 0], atol=1e-15)


def test_binary_field_from_exact_regressions():
    field = twise(6)
    found, disagreement = binary_field_from_regressions(binary_regressions(field, 4), 4)
    for subset in field_scopes(field.n_variables, 4):
        assert found.coefficients.get(subset, 0.0) == pytest.approx(field.coefficients.get(subset, 0.0), abs=1e-10)
    assert max(disagreement.values()) < 1e-10
    assert set(disagreement) == {s for s in field_scopes(field.n_variables, 4) if len(s) > 1}


def exact_parity_means(field, order: int) -> dict:
    z = 2 * all_codes(field.cardinalities) - 1
    return {s: float(joint(field) @ z[:, list(s)].prod(axis=1)) for s in field_scopes(field.n_variables, order)}


def test_the_l_infinity_objective_recovers_the_maximal_monomials():
    field = twise(7)
    found, disagreement = binary_field_from_regressions(
        binary_regressions(field, 4), 4, parity_means=exact_parity_means(field, 4)
    )
    for subset in field.maximal():
        assert found.coefficients[subset] == pytest.approx(field.coefficients[subset], abs=1e-10)
        assert disagreement.get(subset, 0.0) == pytest.approx(0, abs=1e-10)
    # Inside a maximal monomial it is the mean of a derivative, by definition:
    z = 2 * all_codes(field.cardinalities) - 1
    third = sum(
        value * (joint(field) @ z[:, [i for i in s if i not in (0, 2)]].prod(axis=1))
        for s, value in field.coefficients.items()
        if {0, 2} <= set(s)
    )
    assert found.coefficients[0, 2] == pytest.approx(third, abs=1e-10)
    assert found.coefficients[0, 2] != pytest.approx(field.coefficients[0, 2], abs=1e-4)


def test_mean_and_disagreement_of_unequal_estimates():
    weights = np.array([[0.0, 2.0, 4.0], [0.0, 6.0, 0.0], [0.0, 0.0, 0.0]])
    mean, disagreement = binary_field_from_regressions(weights, 2)
    assert mean.coefficients == {(0, 1): 2.0, (0, 2): 1.0}
    assert disagreement == {(0, 1): 2.0, (0, 2): 2.0, (1, 2): 0.0}


def test_order_two_is_the_ising_model():
    rng = np.random.default_rng(8)
    weights = rng.normal(size=(6, 6))
    rows = np.array([[weights[i, i], *np.delete(weights[i], i)] for i in range(6)])
    field, spread = binary_field_from_regressions(rows, 2)
    model, disagreement = ising_from_regressions(weights)
    np.testing.assert_allclose(field.to_ising().weights, model.weights, atol=1e-15)
    np.testing.assert_allclose(field.to_ising().fields, model.fields, atol=1e-15)
    assert spread == pytest.approx({(i, j): disagreement[i, j] for i, j in itertools.combinations(range(6), 2)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ising_from_regressions(np.zeros((2, 3))), r"shape \(p, p\)"),
        (lambda: ising_from_regressions(np.full((2, 2), math.nan)), "finite"),
        (lambda: pairwise_from_regressions((2, 2), np.zeros((2, 3)), np.zeros(2)), "state_pairs"),
        (lambda: pairwise_from_regressions((2, 2), np.zeros((2, 4)), np.zeros(3)), "constants"),
        (lambda: binary_field_from_regressions(np.zeros((3, 4)), 2), "node_monomials"),
        (lambda: binary_field_from_regressions(np.zeros((3, 3)), 0), "order=0"),
        (lambda: binary_field_from_regressions(np.ones((3, 3)), 2, {(0,): 0.1, (1,): 0.2}), r"positions \(2,\)"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()

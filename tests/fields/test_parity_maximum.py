"""The transform, and the largest value of a sparse polynomial on {-1, 1}^p, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pgmpy_dp.fields import parity_maximum
from pgmpy_dp.fields.parity_maximum import TRANSFORM_LIMIT, linear_values, maximise_by_milp, polynomial_values
from pgmpy_dp.private.mathematics.walsh_hadamard import masks_of, parities_of_cells, transform


def points(p: int) -> np.ndarray:
    """All points in the order of their cells: bit j of the cell is variable j."""
    return 2 * ((np.arange(1 << p)[:, None] >> np.arange(p)) & 1) - 1


def products(z: np.ndarray, subsets) -> np.ndarray:
    return np.stack([z[:, list(subset)].prod(axis=1) for subset in subsets], axis=1)


def polynomial(rng: np.random.Generator, p: int, terms: int):
    subsets = [tuple(rng.choice(p, size=rng.integers(1, min(4, p) + 1), replace=False)) for _ in range(terms)]
    return subsets, rng.normal(size=terms)


@pytest.mark.parametrize("p", [0, 1, 3, 5, 6, 9])
def test_transform_is_its_definition_and_its_own_inverse(p):
    values = np.random.default_rng(p).integers(-9, 9, size=(2, 1 << p))
    cells = np.arange(1 << p)
    signs = (-1.0) ** np.bitwise_count(cells[:, None] & cells)
    assert np.array_equal(transform(values), values @ signs)
    assert np.array_equal(transform(transform(values)), values * float(1 << p))


def test_transform_refuses_other_lengths():
    with pytest.raises(ValueError, match="6 entries along its last axis; pass a power of two"):
        transform(np.zeros(6))


@pytest.mark.parametrize("p", [1, 4, 7])
def test_parities_and_polynomials_are_enumerations(p):
    rng = np.random.default_rng(p)
    subsets = [s for size in range(p + 1) for s in itertools.combinations(range(p), size)]
    histogram = rng.integers(0, 50, size=1 << p)
    features = products(points(p), subsets)
    assert np.array_equal(parities_of_cells(histogram, masks_of(subsets)), histogram @ features)
    weights = rng.normal(size=len(subsets))
    assert polynomial_values(masks_of(subsets), weights, p) == pytest.approx(features @ weights)
    single = rng.normal(size=p)
    assert linear_values(single) == pytest.approx(points(p) @ single)


@pytest.mark.parametrize("seed", range(8))
def test_the_program_finds_the_maximum(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 11))
    subsets, weights = polynomial(rng, p, int(rng.integers(1, 25)))
    best = float((products(points(p), subsets) @ weights).max())
    assert polynomial_values(masks_of(subsets), weights, p).max() == pytest.approx(best)
    found = maximise_by_milp(subsets, weights, p)
    assert found.converged and found.z.shape == (p,) and set(found.z.tolist()) <= {-1, 1}
    assert found.value == pytest.approx(best, abs=1e-3)
    assert float(products(found.z[None], subsets)[0] @ weights) == pytest.approx(found.value)


def test_the_program_agrees_with_the_transform_at_many_variables_and_beyond_the_transform():
    rng = np.random.default_rng(5)
    subsets, weights = polynomial(rng, 16, 40)
    best = polynomial_values(masks_of(subsets), weights, 16).max()
    assert maximise_by_milp(subsets, weights, 16).value == pytest.approx(best, abs=1e-3)
    # A tree's maximum is the sum of absolute weights: every product can be 1 or -1 as wished.
    p = TRANSFORM_LIMIT + 10
    chain = [(j, j + 1) for j in range(p - 1)]
    weights = rng.normal(size=p - 1)
    assert maximise_by_milp(chain, weights, p).value == pytest.approx(np.abs(weights).sum())


def test_repeated_sets_constants_and_no_products():
    assert maximise_by_milp([(0, 1), (1, 0), ()], np.array([1.0, -1.0, 3.0]), 2).value == pytest.approx(3.0)
    assert maximise_by_milp([(0,), (1,)], np.array([1.0, -2.0]), 2).z.tolist() == [1, -1]
    assert maximise_by_milp([], np.array([]), 2).value == 0.0


def test_a_limit_is_one_of_steps(monkeypatch):
    """What a plan releases may not depend on the machine's speed."""
    given, true = [], parity_maximum.milp
    monkeypatch.setattr(parity_maximum, "milp", lambda *a, **k: (given.append(dict(k["options"])), true(*a, **k))[1])
    rng = np.random.default_rng(0)
    subsets = [tuple(sorted(rng.choice(12, 3, replace=False).tolist())) for _ in range(40)]
    weights = rng.choice([-1.0, 1.0], 40)
    best = polynomial_values(masks_of(subsets), weights, 12).max()
    found = [maximise_by_milp(subsets, weights, 12, nodes=nodes) for nodes in (1, 1, 10**6)]
    assert given == [{"node_limit": 1}, {"node_limit": 1}, {"node_limit": 10**6}]
    assert found[0].z.tolist() == found[1].z.tolist() and found[0].value <= found[2].value == pytest.approx(best)

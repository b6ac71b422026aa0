"""The transform, and values on {-1, 1}^p, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pgmpy_dp.fields.published.perturbed_leader import linear_values
from pgmpy_dp.private.mathematics.walsh_hadamard import masks_of, parities_of_cells, transform


def points(p: int) -> np.ndarray:
    """All points in the order of their cells: bit j of the cell is variable j."""
    return 2 * ((np.arange(1 << p)[:, None] >> np.arange(p)) & 1) - 1


def products(z: np.ndarray, subsets) -> np.ndarray:
    return np.stack([z[:, list(subset)].prod(axis=1) for subset in subsets], axis=1)


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
    single = rng.normal(size=p)
    assert linear_values(single) == pytest.approx(points(p) @ single)

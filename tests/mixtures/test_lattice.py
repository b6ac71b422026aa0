"""The lattice A_d*: nearest points by exhaustion, volume, neighbours, the way back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pgmpy_dp.mixtures.operators.lattice import lattice_basis, nearest_lattice_points


@pytest.mark.parametrize("d", [1, 2, 3])
def test_nearest_by_exhaustion(d):
    n = d + 1
    points = np.random.default_rng(d).uniform(-1.5, 1.5, size=(300, d)) @ lattice_basis(d).T
    least = np.full(len(points), np.inf)
    for level, rest in itertools.product(range(n), itertools.product(range(-5, 6), repeat=d)):
        head = level + n * np.array(rest)
        vertex = np.append(head, -head.sum())
        if (vertex[-1] - level) % n == 0:
            least = np.minimum(least, ((points - vertex) ** 2).sum(axis=1))
    found = nearest_lattice_points(points)
    np.testing.assert_allclose(((points - found) ** 2).sum(axis=1), least, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 40])
def test_lattice_points_are_their_own_nearest_and_come_back(d):
    rng = np.random.default_rng(0)
    basis = lattice_basis(d)
    points = rng.normal(size=(200, d)) * 50 + 1e5
    found = nearest_lattice_points(points @ basis.T)
    assert (found == np.rint(found)).all() and (found.sum(axis=1) == 0).all()
    assert ((found - found[:, :1]) % (d + 1) == 0).all()
    back = found @ basis / (basis**2).sum(axis=0)
    np.testing.assert_array_equal(nearest_lattice_points(back @ basis.T), found)
    # Covering radius of A_d* of volume 1: sqrt(d (d + 2) / (12 (d + 1))) (d + 1)**(1/(2 d)).
    radius = np.sqrt(d * (d + 2) / (12.0 * (d + 1))) * (d + 1.0) ** (0.5 / d)
    assert np.linalg.norm(points - back, axis=1).max() <= radius + 1e-6


@pytest.mark.parametrize("d", [1, 2, 5])
def test_cells_have_volume_one_and_few_meet(d):
    rng = np.random.default_rng(1)
    side = {1: 4000.0, 2: 60.0, 5: 5.0}[d]
    points = rng.uniform(0, side, size=(200_000, d))
    found = nearest_lattice_points(points @ lattice_basis(d).T)
    cells, counts = np.unique(found, axis=0, return_counts=True)
    expected = len(points) / side**d
    core = np.isin(np.arange(len(cells)), [i for i in range(len(cells)) if counts[i] > 0.7 * expected])
    assert abs(np.median(counts[core]) / expected - 1.0) < 0.1
    for _ in range(50):  # a tiny cloud is cut into at most d + 1 cells
        cloud = rng.uniform(0, side, size=d) + 1e-9 * rng.normal(size=(300, d))
        assert len(np.unique(nearest_lattice_points(cloud @ lattice_basis(d).T), axis=0)) <= d + 1

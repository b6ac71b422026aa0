"""Interactions of overlapping tables: the same numbers, whichever table they are read from."""

from __future__ import annotations

import numpy as np
import pytest

from pgmpy_dp.models.cliques import Cliques
from pgmpy_dp.models.inference.belief_propagation import SumProduct
from pgmpy_dp.models.networks.nested_tables import AxisMaps, NestedTables, maximal, moved

# One table of more than 64 cells, axes out of order, one variable of one state.
VARIABLES, SIZES = ("a", "b", "c", "d", "e"), (3, 2, 4, 5, 1)
SCOPES = (("a",), ("b", "a"), ("d", "b", "c", "a"), ("c", "e"), ("e", "d"), ("e",), ("c", "d"))
LAYOUT = Cliques(VARIABLES, SIZES, SCOPES)


def marginals(cliques, seed=0):
    full = np.random.default_rng(seed).dirichlet(np.ones(np.prod(SIZES))).reshape(SIZES)
    tables = []
    for scope in cliques.indices:
        table = full.sum(axis=tuple(i for i in range(len(SIZES)) if i not in scope))
        tables.append(table.transpose([sorted(scope).index(i) for i in scope]))
    return cliques.join(tables)


def test_maximal_tables_lie_in_no_other_one():
    assert maximal(LAYOUT).scopes == (("d", "b", "c", "a"), ("c", "e"), ("e", "d"))


def test_effects_are_orthonormal_and_every_table_speaks_of_the_same_coordinates():
    tables = maximal(LAYOUT)
    nested = NestedTables(tables)
    every = NestedTables(LAYOUT, nested)
    assert nested.n_coordinates == 3 * 2 * 4 * 5 - 1  # e has one state: nothing is added
    flat = np.random.default_rng(1).normal(size=LAYOUT.n_cells)
    np.testing.assert_allclose(every.tables(every.effects(flat)), flat, atol=1e-12)
    assert np.linalg.norm(every.effects(flat)) == pytest.approx(np.linalg.norm(flat))
    ours = (nested.effects(marginals(tables)) / nested.share)[nested.home]
    theirs = every.effects(marginals(LAYOUT)) / every.share
    inside = every.place < every.n_coordinates
    np.testing.assert_allclose(theirs[inside], ours[every.place[inside]], atol=1e-12)
    np.testing.assert_allclose(nested.spread(ours)[nested.home], ours)
    assert every.collected(inside.astype(float)).sum() == inside.sum()


def test_potentials_in_coordinates_are_the_same_model():
    tables = maximal(LAYOUT)
    nested = NestedTables(tables)
    every = NestedTables(LAYOUT, nested)
    theta = np.random.default_rng(2).normal(size=LAYOUT.n_cells)
    coordinates = every.collected(every.share * every.effects(theta))
    expected = SumProduct(LAYOUT).calibrate(theta)[0][LAYOUT.slices[2]]
    for same in (nested.tables(nested.at_home(coordinates / nested.share[nested.home])), moved(theta, LAYOUT, tables)):
        np.testing.assert_allclose(SumProduct(tables).calibrate(same)[0][tables.slices[0]], expected, atol=1e-12)


def test_axis_maps_are_products_of_matrices_in_tables_of_all_sizes():
    rng = np.random.default_rng(3)
    matrices = [rng.normal(size=(k, k)) for k in SIZES]
    maps, flat = AxisMaps(LAYOUT, matrices), rng.normal(size=LAYOUT.n_cells)
    tables = LAYOUT.split(flat)
    expected = [
        matrices[0] @ tables[0],
        matrices[1] @ tables[1] @ matrices[0].T,
        np.einsum("dD,bB,cC,aA,DBCA->dbca", *(matrices[i] for i in LAYOUT.indices[2]), tables[2]),
    ]
    for table, known in zip(LAYOUT.split(maps.forward(flat)), expected, strict=False):
        np.testing.assert_allclose(table, known, atol=1e-12)
    other = rng.normal(size=LAYOUT.n_cells)
    assert maps.transposed(other) @ flat == pytest.approx(other @ maps.forward(flat))

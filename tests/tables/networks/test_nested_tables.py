"""Interactions of overlapping tables: the same numbers, whichever table they are read from."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.tables.networks import nested_tables, network_estimate
from pgmpy_dp.tables.networks.nested_tables import AxisMaps, Helmert, NestedTables, maximal, moved, orthonormal

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


@pytest.mark.parametrize("weights", [np.ones(7), np.array([0.5, 1e-9, 0.2, 0.3 - 1e-9])], ids=["equal", "unequal"])
def test_contrasts_in_closed_form_are_orthonormal_under_their_weights(weights):
    k = len(weights)
    columns = Helmert(weights)
    matrix = columns.times(np.eye(k))
    np.testing.assert_allclose(matrix.T @ (weights[:, None] * matrix), np.eye(k), atol=1e-12)
    np.testing.assert_allclose(matrix[:, 0], matrix[0, 0])
    np.testing.assert_allclose(columns.sums, matrix.sum(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(columns.squares, (matrix**2).sum(axis=0), rtol=1e-12)
    x = np.random.default_rng(0).normal(size=(2, k, 3))
    np.testing.assert_allclose(columns.times(x), matrix @ x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(columns.transposed_times(x), matrix.T @ x, rtol=1e-9, atol=1e-9)
    if (weights == 1).all():
        np.testing.assert_allclose(matrix, orthonormal(k), atol=1e-12)


def test_products_in_closed_form_fit_the_same_model(monkeypatch):
    """As the matrices of variables with few states do; by other contrasts, so that steps differ a little."""
    counts = 1e4 * marginals(LAYOUT) + np.random.default_rng(4).normal(0, 30, LAYOUT.n_cells)
    single = Cliques(VARIABLES, SIZES, tuple((name,) for name in VARIABLES))
    counts = np.append(counts, 1e4 * marginals(single))
    every = Cliques(VARIABLES, SIZES, (*SCOPES, *single.scopes))
    noisy = NoisyMarginals(every, counts, "gaussian", np.full(every.n_cliques, 30.0))
    pairs = [(0, 3), (1, 2), (2, 4)]
    monkeypatch.setattr(network_estimate, "_OF_NOISE", 0.0)  # both to the end
    dense = network_estimate.estimate_network(noisy).expected_tables(pairs)
    monkeypatch.setattr(nested_tables, "_WHOLE", 1)
    for module in (nested_tables, network_estimate):
        monkeypatch.setattr(module, "MOST_DENSE", 2)
    for one, other in zip(network_estimate.estimate_network(noisy).expected_tables(pairs), dense, strict=True):
        np.testing.assert_allclose(one, other, atol=2.0)  # of 10,000 records


def test_a_variable_of_ten_thousand_states_has_no_square_matrix():
    k = 10_000
    cliques = Cliques(("a", "b"), (k, 2), (("a",), ("b",), ("a", "b")))
    table = np.random.default_rng(0).integers(0, 9, (k, 2)).astype(float)
    counts = np.concatenate([table.sum(axis=1), table.sum(axis=0), table.ravel()])
    noisy = NoisyMarginals(cliques, counts, "gaussian", np.full(3, 1.0))
    tracemalloc.start()
    found = network_estimate.estimate_network(noisy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < k * k  # bytes: an eighth of such a matrix
    np.testing.assert_allclose(found.expected_tables([(1,)])[0], table.sum(axis=0), rtol=1e-2)

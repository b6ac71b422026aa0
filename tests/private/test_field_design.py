"""Coordinates of the pseudo-likelihood: scopes of graphs, integer contrasts, and where parameters enter."""

import itertools

import networkx as nx
import numpy as np
import pytest

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.pseudo_likelihood_ascent import _group_norms, log_potentials
from pgmpy_dp.private.mathematics.field_design import FieldDesign, contrasts


@pytest.mark.parametrize("seed", range(5))
def test_scopes_are_the_cliques_of_a_graph(seed):
    graph = nx.gnp_random_graph(8, 0.6, seed=seed)
    cliques = {
        s
        for r in range(1, 5)
        for s in itertools.combinations(range(8), r)
        if graph.subgraph(s).size() == r * (r - 1) // 2
    }
    found = field_scopes(8, 4, graph.edges)
    assert set(found) == cliques and list(found) == sorted(found, key=lambda s: (len(s), s))
    assert field_scopes(5, 3) == field_scopes(5, 3, nx.complete_graph(5).edges)


@pytest.mark.parametrize("k", [2, 3, 5, 12])
def test_rounded_contrasts_are_independent_and_all_but_standardised(k):
    phi = contrasts(k)
    assert np.linalg.matrix_rank(np.vstack([phi, np.ones(k)])) == k
    np.testing.assert_allclose(phi @ phi.T / (256 * k), np.eye(k - 1), atol=0.1)


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 4)])
def test_gathering_is_the_adjoint_of_placing(sizes):
    order = 3 if max(sizes) == 2 else 2
    design = FieldDesign(sizes, field_scopes(len(sizes), order))
    rng = np.random.default_rng(0)
    theta = rng.normal(size=design.n_parameters)
    matrix = rng.normal(size=(design.n_features, design.node_starts[-1]))
    assert np.isclose((design.coefficients(theta) * matrix).sum(), theta @ design.gathered(matrix))
    shapes = [tuple(sizes[i] for i in scope) for scope in design.scopes]
    assert [table.shape for table in log_potentials(design, theta)] == shapes
    assert np.isclose((_group_norms(design, theta) ** 2).sum(), theta @ theta)

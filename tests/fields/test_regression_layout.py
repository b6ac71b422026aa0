"""Layouts of nodewise regressions against the definition, and the path of Frank-Wolfe against its recursion."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from pgmpy_dp.fields.frank_wolfe import weights_of
from pgmpy_dp.fields.published.regression_layout import regression_layout, weight_count


def used(layout, row: int) -> set:
    return {layout.features[f] for f in layout.columns[row] if f >= 0}


class TestLayouts:
    @pytest.mark.parametrize("p", [1, 2, 5])
    def test_ising_has_the_constant_in_the_free_column(self, p):
        layout = regression_layout("ising", [2] * p)
        assert layout.nodes.tolist() == list(range(p)) and layout.columns.shape == (p, p)
        for i, j in itertools.product(range(p), repeat=2):
            assert layout.features[layout.columns[i, j]] == (() if i == j else (j,))
        assert weight_count("ising", [2] * p) == layout.columns.size

    @pytest.mark.parametrize(("p", "order"), [(4, 2), (4, 3), (5, 4), (3, 3)])
    def test_binary_has_all_monomials_without_the_node(self, p, order):
        layout = regression_layout("binary", [2] * p, order)
        assert layout.features == tuple(s for d in range(order) for s in itertools.combinations(range(p), d))
        for i in range(p):
            assert used(layout, i) == {subset for subset in layout.features if i not in subset}
        assert weight_count("binary", [2] * p, order) == layout.columns.size

    def test_pairwise_has_all_pairs_of_states_and_all_states_of_others(self):
        sizes = [2, 4, 1, 3]
        layout = regression_layout("pairwise", sizes)
        labels = [(i, u, v) for i, k in enumerate(sizes) for u, v in itertools.combinations(range(k), 2)]
        assert [(i, *pair) for i, pair in zip(layout.nodes, layout.pairs.tolist(), strict=True)] == labels
        for row, (i, _, _) in enumerate(labels):
            assert used(layout, row) == {(j, a) for j, k in enumerate(sizes) if j != i for a in range(k)} | {()}
            assert layout.features[layout.columns[row, -1]] == ()
        assert weight_count("pairwise", sizes) == layout.columns.size

    def test_a_graph_leaves_neighbours_and_cliques(self):
        edges = [(0, 1), (1, 2), (0, 2), (2, 3)]  # a triangle with a tail, and 4 alone
        ising = regression_layout("ising", [2] * 5, edges=edges)
        assert ising.active_nodes == (0, 1, 2, 3, 4)
        assert [used(ising, row) for row in range(5)] == [
            {(), (1,), (2,)},
            {(), (0,), (2,)},
            {(), (0,), (1,), (3,)},
            {(), (2,)},
            {()},
        ]
        binary = regression_layout("binary", [2] * 5, 3, edges)
        assert used(binary, 2) == {(), (0,), (1,), (3,), (0, 1)}  # 3 is no neighbour of 0 and 1
        pairwise = regression_layout("pairwise", [2, 3, 2, 2, 2], edges=edges)
        assert used(pairwise, list(pairwise.nodes).index(3)) == {(), (2, 0), (2, 1)}
        assert used(binary, 4) == used(pairwise, list(pairwise.nodes).index(4)) == {()}

    def test_a_complete_graph_is_no_graph(self):
        edges = list(itertools.combinations(range(4), 2))
        for family, order in (("ising", 2), ("binary", 3), ("pairwise", 2)):
            free, given = (regression_layout(family, [2] * 4, order, e) for e in (None, edges))
            assert np.array_equal(free.columns, given.columns) and np.array_equal(free.nodes, given.nodes)


class TestPath:
    def test_whole_numbers_follow_the_recursion(self):
        rng = np.random.default_rng(1)
        radius, q = Fraction(7, 2), 3
        vertices = rng.integers(0, 2 * q, size=(20, 1))
        weights = [Fraction(0)] * q
        for t, (vertex,) in enumerate(vertices, start=1):
            mu = Fraction(1, t + 1)
            weights = [(1 - mu) * w for w in weights]
            weights[vertex % q] += mu * radius * (1 if vertex < q else -1)
            ours = weights_of(vertices[:t], q, float(radius))
            assert ours[0] == pytest.approx([float(w) for w in weights], rel=1e-14)
            assert np.abs(ours).sum() <= float(radius)

    def test_no_steps_are_zero_weights(self):
        assert not weights_of(np.zeros((0, 4), dtype=np.int64), 2, 1.0).any()

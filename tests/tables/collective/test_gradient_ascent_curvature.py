"""The bound on the curvature of a log-linear model's likelihood, against the covariance of all cells by enumeration."""

import itertools

import networkx as nx
import numpy as np
import pytest

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.tables.collective.published.gradient_ascent import CurvatureBound

CHAIN = Cliques(("a", "b", "c"), (2, 3, 2), (("a", "b"), ("c", "b"), ("c",)))
TRIANGLE = Cliques.from_graph(nx.complete_graph(4), dict.fromkeys(range(4), 2))
APART = Cliques(("a", "b"), (3, 2), (("a",), ("b",)))


def enumerated(cliques: Cliques, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probability of every joint state, and the indicators of its cells."""
    states = list(itertools.product(*(range(size) for size in cliques.cardinalities)))
    cells = np.zeros((len(states), cliques.n_cells))
    start = 0
    for index, shape in zip(cliques.indices, cliques.shapes, strict=True):
        for row, state in zip(cells, states, strict=True):
            row[start + np.ravel_multi_index(tuple(state[i] for i in index), shape)] = 1.0
        start += int(np.prod(shape))
    weights = np.exp(cells @ theta - (cells @ theta).max())
    return weights / weights.sum(), cells


def largest_eigenvalue(cliques: Cliques, theta: np.ndarray) -> float:
    p, cells = enumerated(cliques, theta)
    mean = p @ cells
    return float(np.linalg.eigvalsh((cells * p[:, None]).T @ cells - np.outer(mean, mean))[-1])


def exact_bound(cliques: Cliques, theta: np.ndarray) -> float:
    """L of the docstring by a dense eigenvalue problem."""
    p, cells = enumerated(cliques, theta)
    mean = p @ cells
    covariance = (cells * p[:, None]).T @ cells - np.outer(mean, mean)
    scales = np.concatenate([np.full(t.size, np.sqrt(min(0.5, t.max()))) for t in cliques.split(mean)])
    scales /= np.sqrt(np.maximum(mean, 1e-9))
    return float(np.linalg.eigvalsh(covariance * np.outer(scales, scales))[-1])


@pytest.mark.parametrize("cliques", [CHAIN, TRIANGLE, APART], ids=["chain", "clique", "apart"])
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0, 5.0])
def test_it_is_the_bound_and_above_the_largest_eigenvalue(cliques, strength):
    theta = strength * np.random.default_rng(3).normal(size=cliques.n_cells)
    engine = SumProduct(cliques)
    bound = CurvatureBound(engine)
    marginals = engine.calibrate(theta)[0]
    first = bound(marginals)
    for _ in range(300):
        found = bound(marginals)
    assert found == pytest.approx(exact_bound(cliques, theta), rel=1e-3)
    assert largest_eigenvalue(cliques, theta) <= found * (1 + 1e-3) <= 0.5 * cliques.n_cliques * (1 + 2e-3)
    assert 0.9 * found < first <= found * (1 + 1e-9)  # from below, and close at once


def copies(n: int, coupling: float, field: float) -> tuple[Cliques, np.ndarray]:
    cliques = Cliques.from_graph(nx.path_graph(n), dict.fromkeys(range(n), 2))
    return cliques, np.tile([coupling - field, -coupling, -coupling, coupling + field], n - 1)


def test_tables_that_depend_on_each_other_fully_reach_half_their_number():
    cliques, theta = copies(6, 12.0, 0.0)
    assert largest_eigenvalue(cliques, theta) == pytest.approx(2.5, rel=1e-6)
    engine = SumProduct(cliques)
    assert CurvatureBound(engine)(engine.calibrate(theta)[0]) == pytest.approx(2.5, rel=1e-6)


def test_a_corner_does_not_hide_the_curvature_beside_it():
    cliques, theta = copies(6, 6.0, 1.5)  # all variables 1, but for one record in a thousand or so
    assert largest_eigenvalue(cliques, theta) < 0.01
    engine = SumProduct(cliques)
    assert CurvatureBound(engine)(engine.calibrate(theta)[0]) > 2.0


def test_nothing_that_varies_is_no_error():
    for cliques, theta in (
        (Cliques(("a", "b"), (1, 1), (("a", "b"), ("b",))), np.zeros(2)),
        (CHAIN, np.where(np.arange(CHAIN.n_cells) % 2, -1e6, 0.0)),
    ):
        engine = SumProduct(cliques)
        bound = CurvatureBound(engine)
        for _ in range(3):
            assert 0.0 < bound(engine.calibrate(theta)[0]) <= 0.5 * cliques.n_cliques * (1 + 1e-9)


def test_it_follows_the_parameters():
    theta = 2.0 * np.random.default_rng(4).normal(size=CHAIN.n_cells)
    engine = SumProduct(CHAIN)
    bound = CurvatureBound(engine)
    for step in np.linspace(0.0, 1.0, 40):
        found = bound(engine.calibrate(step * theta)[0])
    assert found == pytest.approx(exact_bound(CHAIN, theta), rel=0.05)

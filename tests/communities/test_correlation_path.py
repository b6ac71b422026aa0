"""The central path of the projection on correlation matrices: what its proof says, in numbers."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import LinAlgError

from pgmpy_dp.communities.published import correlation_path
from pgmpy_dp.communities.published.correlation_newton import project_correlation
from pgmpy_dp.communities.published.correlation_path import central_path, least_accuracy, most_points

GRAPHS = {
    "empty": nx.empty_graph(24),
    "star": nx.star_graph(23),
    "complete": nx.complete_graph(24),
    "half": nx.from_numpy_array(np.add.outer(np.arange(24), np.arange(24)) >= 24),
    "clique and isolated": nx.disjoint_union(nx.complete_graph(8), nx.empty_graph(16)),
    "path": nx.path_graph(24),
}


def target(graph, scale: float = 0.25, degree: float = 6.0) -> np.ndarray:
    y = scale * (nx.to_numpy_array(graph) - degree / len(graph))
    np.fill_diagonal(y, 0.0)
    return y


def row_sum(y: np.ndarray) -> float:
    return (len(y) - 1) * np.abs(y).max()


@pytest.mark.parametrize("scale", [0.01, 0.25, 30.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_pair_is_feasible_and_near_the_other_solver_s(name, scale):
    y = target(GRAPHS[name], scale)
    pair = central_path(y, 1e-5)
    x, rest = pair.factor @ pair.factor.T, -y - pair.dual_factor @ pair.dual_factor.T
    assert np.abs(np.diag(x) - 1 / 24).max() < 1e-12
    assert np.abs(x + rest - np.diag(np.diag(x + rest))).max() < 1e-12 * row_sum(y) + 1e-14
    assert np.linalg.norm(pair.dual_factor.T @ pair.factor) <= 1e-5 / 3 * (1 + 1e-6)
    newton = project_correlation(y, tolerance=1e-8)
    assert newton.converged and np.linalg.norm(x - newton.matrix) <= 1e-5 / 3 + 2e-8
    assert pair.n_points <= most_points(24, row_sum(y), 1e-5)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (k % 2)) for k, n in enumerate(GRAPHS)])
def test_short_steps_alone_stay_near_the_path_and_within_the_bound(name, monkeypatch):
    """What the bound rests on: without longer steps no decrement is ever above 1/4."""
    graph = nx.convert_node_labels_to_integers(GRAPHS[name].subgraph(range(0, 24, 4)))
    y, seen = target(graph, 2.0, 1.0), []

    class Watched(correlation_path._Point):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            seen.append(self.decrement)

    monkeypatch.setattr(correlation_path, "_Point", Watched)
    bound = most_points(6, row_sum(y), 1e-2)
    monkeypatch.setattr(correlation_path, "_TRIALS", 0)
    pair = central_path(y, 1e-2)
    assert max(seen) <= 0.17 + 0.01  # the proof's number in exact arithmetic, but for the start's
    assert bound / 4 < 3 * pair.n_points == 3 * len(seen) <= bound + 3


def near_the_path(y: np.ndarray, mu: float, rng, monkeypatch) -> correlation_path._Point:
    """A point with a decrement of .1 to .25, off one that the path leads to."""
    seen = []

    class Watched(correlation_path._Point):
        def pair(self):
            seen.append(self)
            return super().pair()

    with monkeypatch.context() as patched:
        patched.setattr(correlation_path, "_Point", Watched)
        central_path(y, math.sqrt(9 * len(y) * mu))
    centre, aside = seen[-1].y + seen[-1].newton, rng.standard_normal(len(y))
    lengths = (correlation_path._Point(y, centre + 1e-9 * 1.4**k * aside, mu) for k in range(200))
    return next(point for point in lengths if point.decrement > 0.1)


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.5])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_proof_s_inequalities(name, mu, monkeypatch):
    y, n, rng = target(GRAPHS[name], 1.0), 24, np.random.default_rng(3)
    point = near_the_path(y, mu, rng, monkeypatch)
    assert point.decrement < 0.25
    b = row_sum(y)
    # The Newton step, and lowering mu.
    assert (
        correlation_path._Point(y, point.y + point.newton, mu).decrement
        <= (point.decrement / (1 - point.decrement)) ** 2 + 1e-6
    )
    for a in (1.01, 1.1, 2.0):
        lowered = correlation_path._Point(y, point.y, mu / a).decrement
        assert lowered <= a * point.decrement + math.sqrt(n) * (a - 1) + 1e-6
    # X, N and H.
    assert n * point.diagonal.min() >= 0.8 and n * point.diagonal.max() <= 4 / 3
    inverse = (point.vectors * (mu / point.x)) @ point.vectors.T
    assert np.diag(inverse).max() <= 1.25 * n * mu + 1.3 * b
    hessian = np.linalg.eigvalsh(point._hessian())
    assert hessian[-1] <= 1 + 1e-9
    assert hessian[0] >= 1 / (1.25 * n * (3.5 + 2.3 * b + 1.25 * n * mu))
    nuclear = np.abs(np.linalg.eigvalsh(point.weights)).sum()
    assert nuclear <= n * (2 + math.log(1.8 / mu) / math.e)
    # The pair has a gap of at most n mu before it is near the path.
    primal, dual = point.pair()
    assert np.linalg.norm(dual.T @ primal) ** 2 <= n * mu * (1 + 1e-9)
    assert np.allclose((primal * primal).sum(axis=1), 1 / n, rtol=1e-9)
    # H's products and H's entries.
    h = rng.standard_normal(n)
    assert np.allclose(point._product(h), point._hessian() @ h, atol=1e-9)


@pytest.mark.parametrize(("scale", "degree"), [(1e-6, 1.0), (1.0, 1e4), (1e4, 3.0)])
def test_the_start_is_near_the_path(scale, degree):
    for name in GRAPHS:
        y = target(GRAPHS[name], scale, degree)
        mu, last = correlation_path._ends(24, row_sum(y), 1e-3)
        assert last < mu and correlation_path._Point(y, np.full(24, 1 / 24 - 24 * mu), mu).decrement <= 0.202


def test_longer_steps_that_fail_are_not_taken_and_failures_of_the_short_one_are_told(monkeypatch):
    y = target(GRAPHS["path"])
    monkeypatch.setattr(correlation_path, "_tried", lambda *_: None)
    short = central_path(y, 0.1)
    assert np.linalg.norm(short.dual_factor.T @ short.factor) <= 0.1 / 3 * (1 + 1e-6)

    def fails(*_, **__):
        raise LinAlgError

    monkeypatch.undo()
    monkeypatch.setattr(correlation_path, "eigh", fails)
    assert correlation_path._tried(y, np.zeros(24), 1.0) is None
    with pytest.raises(np.linalg.LinAlgError):
        central_path(y, 0.1)


def test_a_point_off_the_path_is_not_taken_for_near_it(monkeypatch):
    y = target(GRAPHS["path"])
    far = correlation_path._Point(y, np.full(24, -1.0), 1e-3)
    assert far.decrement > 1 and correlation_path._tried(y, far.y, 1e-3) is None
    monkeypatch.setattr(correlation_path, "_DECREMENT", 1e9)  # then the diagonal tells
    assert abs(24 * far.diagonal - 1).max() > 0.35 and correlation_path._tried(y, far.y, 1e-3) is None
    assert correlation_path._tried(y, np.full(24, np.nan), 1e-3) is None


def test_where_the_proof_covers_rounding():
    assert least_accuracy(1000, 4e4 - 2) and least_accuracy(1000, 4e4) is None and least_accuracy(2, 2e9) is None
    assert least_accuracy(100, 1e9) is None and least_accuracy(100, math.inf) is None

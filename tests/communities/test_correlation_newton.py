"""Projection on correlation matrices: conditions of optimality, closed forms, and against a slow solver."""

from __future__ import annotations

import builtins
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from pgmpy import config

from pgmpy_dp.communities.operators.sparse_minus_constant import SparseMinusConstant
from pgmpy_dp.communities.published.correlation_newton import project_correlation
from pgmpy_dp.learning import devices

GRAPHS = {
    "empty": nx.empty_graph(24),
    "star": nx.star_graph(23),
    "complete": nx.complete_graph(24),
    "bipartite": nx.complete_bipartite_graph(8, 16),
    "two cliques": nx.disjoint_union(nx.complete_graph(12), nx.complete_graph(12)),
    "clique and isolated": nx.disjoint_union(nx.complete_graph(8), nx.empty_graph(16)),
    "path": nx.path_graph(24),
    "one edge": nx.from_edgelist([(0, 1)]),
}


def target(graph, degree=6.0, scale=0.25) -> SparseMinusConstant:
    matrix = sp.csr_matrix(nx.to_scipy_sparse_array(graph, dtype=float))
    return SparseMinusConstant(matrix, scale, scale * degree / matrix.shape[0])


def planted(n: int, degree: float, bias: float, seed: int = 0) -> sp.csr_matrix:
    labels = np.where(np.arange(n) < n // 2, 1, -1)
    draws = np.random.default_rng(seed).random((n, n)) < (1 + bias * np.outer(labels, labels)) * degree / n
    upper = np.triu(draws, 1)
    return sp.csr_matrix(upper + upper.T, dtype=float)


def alternating(y: np.ndarray, rounds: int = 20_000) -> np.ndarray:
    """Higham 2002: alternating projections with Dykstra's correction, slow and obvious."""
    n = len(y)
    x, correction = y.copy(), np.zeros_like(y)
    for _ in range(rounds):
        shifted = x - correction
        values, vectors = np.linalg.eigh(shifted)
        positive = (vectors * np.maximum(values, 0)) @ vectors.T
        correction = positive - shifted
        x = positive.copy()
        np.fill_diagonal(x, 1.0 / n)
    return x


@pytest.mark.parametrize("degree", [2.0, 12.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_newton_meets_the_conditions_of_optimality(name, degree):
    y = target(GRAPHS[name], degree)
    solution = project_correlation(y, tolerance=1e-7)
    n = y.shape[0]
    assert solution.converged
    x = solution.matrix
    rest = x - y.toarray() - np.diag(solution.y)
    assert np.allclose(np.diag(x), 1 / n, atol=1e-14) and np.linalg.eigvalsh(x)[0] > -1e-14
    assert np.linalg.eigvalsh(rest)[0] > -1e-6 and abs(np.sum(rest * x)) < 1e-6


@pytest.mark.parametrize("name", ["star", pytest.param("path", marks=pytest.mark.slow), "clique and isolated"])
def test_newton_agrees_with_alternating_projections(name):
    graph = nx.convert_node_labels_to_integers(GRAPHS[name].subgraph(list(GRAPHS[name])[:10]))
    y = target(graph, 3.0)
    solution = project_correlation(y, tolerance=1e-9)
    assert np.abs(solution.matrix - alternating(y.toarray())).max() < 1e-6


def test_two_cliques_in_closed_form():
    # Y's entries are of one sign within and of the other between: the labels' own matrix, if its weight is enough.
    y = target(GRAPHS["two cliques"], 12.0)
    labels = np.repeat([1.0, -1.0], 12)
    solution = project_correlation(y, tolerance=1e-8)
    assert np.abs(solution.matrix - np.outer(labels, labels) / 24).max() < 1e-8


def test_a_matrix_that_is_feasible_is_its_own_projection():
    rows = np.random.default_rng(1).standard_normal((30, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * np.sqrt(30)
    solution = project_correlation(rows @ rows.T, tolerance=1e-8)
    assert np.abs(solution.matrix - rows @ rows.T).max() < 1e-8


def test_the_device_is_the_argument_s_then_the_backend_s(monkeypatch):
    assert devices.chosen_device(None) is None and devices.chosen_device("cpu") == "cpu"
    monkeypatch.setattr(config, "get_backend", lambda: "torch")
    monkeypatch.setattr(config, "get_device", lambda: "cpu")
    assert devices.chosen_device(None) is None  # on the processor the faster of the two
    monkeypatch.setattr(config, "get_device", lambda: "cuda:1")
    assert devices.chosen_device(None) == "cuda:1" and devices.chosen_device("cpu") == "cpu"


def test_a_device_that_is_not_there_is_said_on_one_line(monkeypatch):
    torch = pytest.importorskip("torch")

    def not_there(*_, device):
        raise RuntimeError("CUDA error: invalid device ordinal\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1")

    monkeypatch.setattr(torch, "empty", not_there)
    with pytest.raises(ValueError, match=r"^device='cuda:9' is not a device of torch here \(CUDA error: .* ordinal\)"):
        devices.checked_device("device", "cuda:9")


def test_the_sparse_form_is_the_dense_one():
    y = target(GRAPHS["star"], 5.0)
    block = np.random.default_rng(0).standard_normal((24, 3))
    assert np.allclose(y @ block, y.toarray() @ block, atol=1e-14)
    assert np.allclose(y @ block[:, 0], y.toarray() @ block[:, 0], atol=1e-14)
    weighted = SparseMinusConstant(2.0 * y.matrix, 0.25, 0.1)
    assert weighted.toarray()[0, 1] == pytest.approx(0.4) and not weighted.toarray().diagonal().any()
    diagonal = SparseMinusConstant(y.matrix + sp.eye_array(24), 0.25, 0.1)
    assert np.array_equal(diagonal.toarray(), SparseMinusConstant(y.matrix, 0.25, 0.1).toarray())


def test_the_same_every_time_and_nothing_of_numpy_s_state():
    y = SparseMinusConstant(planted(400, 30, 0.7), 0.07, 0.07 * 30 / 400)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (project_correlation(y, tolerance=1e-4) for _ in range(2))
    assert np.array_equal(first.y, second.y) and np.array_equal(first.factor, second.factor)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_a_graph_without_edges_in_closed_form():
    """By symmetry and trace: 1/n on the diagonal, and the rest as negative as it may be."""
    solution = project_correlation(target(nx.empty_graph(310), 20.0), tolerance=1e-6)
    assert solution.converged and solution.matrix[0, 1] == pytest.approx(-1 / (310 * 309), rel=1e-3)
    assert np.ptp(solution.matrix[1:, 0]) < 1e-8


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"tolerance=0\.0 is not positive"):
        project_correlation(np.eye(3), tolerance=0.0)
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        project_correlation(np.ones((2, 3)))
    with pytest.raises(TypeError, match="ndarray; pass a square scipy sparse matrix"):
        SparseMinusConstant(np.eye(2), 1.0, 0.0)


def test_without_torch_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name == "torch":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ImportError, match="pip install torch"):
        project_correlation(np.eye(3))

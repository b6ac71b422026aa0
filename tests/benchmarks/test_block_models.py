"""The benchmark of communities reads graphs as it says, and counts right labels."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import block_models


def test_graphs_are_their_largest_component(tmp_path):
    rows = [("1", "x"), ("2", "y"), ("3", "y"), ("4", "z"), ("5", "x"), ("6", "y")]
    (tmp_path / "toy_nodes.csv").write_text("id,side\n" + "".join(f"{v},{side}\n" for v, side in rows))
    (tmp_path / "toy_edges.csv").write_text("source,target\n1,2\n2,1\n2,3\n3,3\n3,4\n5,6\n")
    graph, labels = block_models.read_graph(tmp_path, "toy", "side", None)
    assert graph.shape == (4, 4) and graph.nnz == 6 and labels.tolist() == [0, 1, 1, 2]
    graph, labels = block_models.read_graph(tmp_path, "toy", "side", 2)  # without z
    assert graph.nnz == 4 and labels.tolist() == [0, 1, 1]
    with pytest.raises(FileNotFoundError):
        block_models.read_graph(tmp_path, "absent", "side", None)


def test_shares_of_right_labels(monkeypatch):
    monkeypatch.setitem(block_models.METHODS, "half", lambda graph, k, epsilon, bias, seed: np.arange(40) % 4 // 2)
    monkeypatch.setitem(block_models.METHODS, "truth", lambda graph, k, epsilon, bias, seed: 1 - np.arange(40) % 2)
    shares = block_models.right(("half", "truth"), 1.0, 3, lambda rng: (np.arange(40) % 2, None))
    assert shares == [(0.5, 0.5, 0.0), (1.0, 1.0, 1.0)]


@pytest.mark.parametrize("method", ["NPM Gaussian", "RR"])
def test_methods_find_easy_communities(method):
    [(mean, *_)] = block_models.right((method,), 4.0, 1, block_models.planted(300, 100, 0.9))
    assert mean > 0.95

"""Made-up neighbours are neighbours, and the worst ones move every statistic as far as it can go."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pgmpy_dp import Budget, PrivateSequences, PrivateTable
from pgmpy_dp.auditing import Neighbours, sequence_neighbours, table_neighbours, vector_neighbours
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.table import contingency_tables

STATES = {"a": ["x", "y", "z"], "b": [0, 1]}


def difference(first, second) -> tuple[int, int]:
    """Records that only one of the two holds."""
    rows = [Counter(map(repr, frame.to_numpy().tolist())) for frame in (first, second)]
    return (rows[0] - rows[1]).total(), (rows[1] - rows[0]).total()


@pytest.mark.parametrize(("adjacency", "most"), [("add_remove", (1, 0)), ("replace_one", (1, 1))])
def test_tables_differ_in_one_record(adjacency, most):
    pair = table_neighbours(STATES, adjacency, n=5)
    assert difference(pair.first, pair.second) == most and len(pair.first) == 5


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_worst_tables_move_every_contingency_table_by_its_sensitivity(adjacency):
    pair = table_neighbours(STATES, adjacency, n=4)
    tables = [
        contingency_tables(
            PrivateTable(frame, STATES, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=4),
            [("a",), ("b",), ("a", "b")],
        )
        for frame in (pair.first, pair.second)
    ]
    for first, second in zip(*tables, strict=True):
        change = (first.value - second.value).ravel()
        norms = np.abs(change).sum(), np.sqrt((change**2).sum()), np.abs(change).max()
        np.testing.assert_allclose(norms, table_sensitivity(pair.adjacency))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_sequences_differ_in_one_user(adjacency):
    pair = sequence_neighbours({"page": ["a", "b"]}, adjacency, n=3, length=7)
    frames = (pair.first, pair.second)
    users = [dict(zip(frame["user"], map(tuple, frame["sequence"]), strict=True)) for frame in frames]
    assert len(users[0]) == 3 and len(users[1]) == (2 if adjacency == "add_remove" else 3)
    assert sum(users[0][user] != users[1].get(user) for user in users[0]) == 1
    for frame in frames:
        PrivateSequences(
            frame, {"page": ["a", "b"]}, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_users=len(frame)
        )


@pytest.mark.parametrize("d", [1, 2, 5])
def test_vectors_differ_in_one_long_record(d):
    for adjacency, rows in (("add_remove", 4), ("replace_one", 5)):
        pair = vector_neighbours(d, 2.0, adjacency, n=5)
        assert pair.first.shape == (5, d) and pair.second.shape == (rows, d)
        np.testing.assert_array_equal(pair.first[:4], pair.second[:4])
        assert np.linalg.norm(pair.first[4]) == pytest.approx(20)


def test_arguments():
    with pytest.raises(ValueError, match="n=0"):
        table_neighbours(STATES, n=0)
    with pytest.raises(ValueError, match="'edge' is not supported"):
        table_neighbours(STATES, "edge")
    with pytest.raises(ValueError, match="'near' is not supported"):
        Neighbours(0, 1, "near")

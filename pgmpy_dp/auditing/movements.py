"""Replay's rules for mechanisms of several selections, and of graphs: how far apart they are, and invented answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgmpy_dp.private.curator.graphs import CommunityChoice, RandomisedResponse
from pgmpy_dp.private.curator.mechanism import Mechanism, SeveralNoisyMax
from pgmpy_dp.private.guarantee import ZCDP

__all__ = [
    "choices_moved",
    "invented_graph",
    "invented_labels",
    "invented_positions",
    "responses_moved",
    "selections_moved",
]


def selections_moved(mechanism: SeveralNoisyMax, other: Mechanism) -> float:
    """Sum over rows of what selections could cost, over the weight: of D for a pure cost, the root of that of D**2."""
    assert isinstance(other, SeveralNoisyMax)
    if [row.shape for row in mechanism.rows] != [row.shape for row in other.rows]:
        return np.inf
    moved = []
    for ours, theirs in zip(mechanism.rows, other.rows, strict=True):
        change = theirs.astype(object) - ours.astype(object)
        # The noise covers a score that rises as another falls.
        moved.append(max(abs(max(change)), abs(min(change)), (max(change) - min(change)) / 2) / mechanism.unit)
    if isinstance(mechanism.cost, ZCDP):
        return float(np.sqrt(sum(d * d for d in moved) / mechanism.weight))
    return float(sum(moved) / mechanism.weight)


def invented_positions(mechanism: SeveralNoisyMax, kind: str, rng: np.random.Generator) -> Any:
    """The first candidate of each row, for "last" the last one, for "random" any."""
    sizes = np.array([len(row) for row in mechanism.rows])
    if kind == "random":
        return rng.integers(sizes)
    return sizes - 1 if kind == "last" else np.zeros(len(sizes), dtype=np.int64)


def responses_moved(mechanism: RandomisedResponse, other: Mechanism) -> float:
    """Pairs of vertices whose bits differ: one may. Infinite where the flips are others."""
    assert isinstance(other, RandomisedResponse)
    return np.inf if mechanism.rate != other.rate else _pairs_apart(mechanism.matrix, other.matrix)


def choices_moved(mechanism: CommunityChoice, other: Mechanism) -> float:
    """Pairs of vertices joined in one graph alone: one may be. Infinite where the public weights are others."""
    assert isinstance(other, CommunityChoice)
    return np.inf if mechanism.law != other.law else _pairs_apart(mechanism.matrix, other.matrix)


def _pairs_apart(matrix: Any, other: Any) -> float:
    if matrix.shape != other.shape:
        return np.inf
    gap = np.abs(matrix.toarray().astype(np.int64) - other.toarray())
    # Entries that are not 0 or 1, loops and directions would be more than one bit of a pair.
    return float(max(np.triu(gap).sum(), np.tril(gap).sum()))


def invented_graph(mechanism: RandomisedResponse, kind: str, rng: np.random.Generator) -> np.ndarray:
    """No pair joined, all of them ("huge", "equal"), the last two vertices alone, or any."""
    n = mechanism.matrix.shape[0]
    upper = np.zeros((n, n), dtype=bool)
    if kind == "random":
        upper = np.triu(rng.integers(0, 2, (n, n)).astype(bool), 1)
    elif kind == "last":
        upper[n - 2, n - 1] = True
    elif kind in ("huge", "equal"):
        upper = np.triu(~upper, 1)
    return upper | upper.T


def invented_labels(mechanism: CommunityChoice, kind: str, rng: np.random.Generator) -> np.ndarray:
    """All vertices in one community, the last one alone, or any."""
    labels = np.zeros(mechanism.matrix.shape[0], dtype=np.int64)
    if kind == "random":
        return rng.integers(0, 2, len(labels))
    labels[-1:] = kind == "last"
    return labels

"""Replay's rules for mechanisms of several selections: how far apart their scores are, and invented answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgmpy_dp.private.curator.mechanism import Mechanism, SeveralNoisyMax
from pgmpy_dp.private.guarantee import ZCDP

__all__ = ["invented_positions", "selections_moved"]


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

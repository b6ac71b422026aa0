"""Replay's rules for mechanisms of several selections, of stable cells, and of arrays in several units."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgmpy_dp.private.curator.mechanism import Mechanism, SeveralNoisyMax, StableCells, WeightedNoise
from pgmpy_dp.private.guarantee import ZCDP

__all__ = ["arrays_moved", "cells_moved", "invented_cells", "invented_positions", "selections_moved"]


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


def cells_moved(mechanism: StableCells, other: Mechanism) -> float:
    """The root of how many counts differ over 2k; infinite where one block could not have changed them.

    That is where a count differs by more than 1, where a cell of one side alone has more than one mark, or where one
    side has more than k such cells.
    """
    assert isinstance(other, StableCells)
    if (mechanism.n_marks, mechanism.histogram) != (other.n_marks, other.histogram):
        return np.inf
    ours, theirs = (dict(zip(map(tuple, m.cells.tolist()), m.counts.tolist(), strict=True)) for m in (mechanism, other))
    for one, another in ((ours, theirs), (theirs, ours)):
        alone = [count for cell, count in one.items() if cell not in another]
        if len(alone) > mechanism.n_marks or any(count != 1 for count in alone):
            return np.inf
    changes = [abs(ours.get(cell, 0) - theirs.get(cell, 0)) for cell in {*ours, *theirs}]
    return float(np.sqrt(sum(changes) / (2 * mechanism.n_marks))) if max(changes, default=0) <= 1 else np.inf


def invented_cells(mechanism: StableCells, kind: str, rng: np.random.Generator) -> Any:
    """No cell (zeros, negative); all that are marked (huge), and others than these (equal); the last k; random ones."""
    cells, k = mechanism.cells, mechanism.n_marks
    if kind in ("zeros", "negative"):
        cells = cells[:0]
    elif kind == "equal":
        cells = cells + 2  # of octaves, those two above
    elif kind == "last":
        cells = cells[-k:]
    elif kind == "random":
        cells = cells[rng.random(len(cells)) < 0.5]
    least = mechanism.histogram.threshold
    if kind == "random":
        return [cells, least + rng.integers(0, 100, size=len(cells))]
    return [cells, np.full(len(cells), least + (10**12 if kind == "huge" else 7), dtype=np.int64)]


def arrays_moved(mechanism: WeightedNoise, other: Mechanism) -> float:
    """The root of the squared distance in units of the arrays, over its bound."""
    assert isinstance(other, WeightedNoise)
    if [m.shape for m in mechanism.exact] != [o.shape for o in other.exact] or mechanism.units != other.units:
        return np.inf
    found = 0.0
    for ours, theirs, unit in zip(mechanism.exact, other.exact, mechanism.units, strict=True):
        gap = (ours.astype(object) - theirs.astype(object)).ravel()
        found += float(sum(gap * gap) / unit**2)
    return float(np.sqrt(found / float(mechanism.square)))

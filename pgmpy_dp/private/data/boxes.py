"""Records of numbers in a public box: clipped to its sides, less a centre, over a scale for each column.

What becomes of a record depends on that record and on public numbers alone, and each step (a comparison, a difference,
a quotient) is one that IEEE 754 rounds correctly, so it is the same wherever the record stands. A sensitivity of
whatever is made of such records therefore needs no proof here: :mod:`pgmpy_dp.private.data.moments` shortens them to
its bound, and compares their integers with it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.vectors import PrivateVectors, row_batches, unit_rows
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.sensitive import Sensitive

MAGNITUDES = 40
"""Edges of cells of half an octave, from one scale downwards: 2**-19.5, ..., 2**-0.5, 1 of it."""

_EDGES = np.ldexp(1.0, np.arange(1 - MAGNITUDES, 1))  # of squares: 2**-39, ..., 1/2, 1
_BATCH = 1 << 20  # numbers at a time


@dataclass(frozen=True)
class Box:
    """Public sides of a box, and public scales; d numbers each, checked by the curator.

    Attributes
    ----------
    lower, upper : tuple of float
        To which values are clipped; ``lower < upper``.
    scales : tuple of float
        Positive: what one unit of each column is.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    scales: tuple[float, ...]

    def units(self, rows: np.ndarray, center: np.ndarray) -> np.ndarray:
        """``(clip(x, lower, upper) - center)/scales`` of each row x."""
        with np.errstate(all="ignore"):  # underflow would tell of the records
            return (np.clip(rows, np.array(self.lower), np.array(self.upper)) - center) / np.array(self.scales)


def magnitude_sensitivity(n_columns: int, adjacency: Adjacency) -> tuple[float, float, float]:
    """l1, l2 and l-infinity sensitivity of ``magnitudes``.

    A record is in one cell of each column: d counts move by 1. One that is replaced may leave d cells and enter d
    others.

    Examples
    --------
    >>> magnitude_sensitivity(4, Adjacency.ADD_REMOVE), magnitude_sensitivity(2, Adjacency.REPLACE_ONE)
    ((4.0, 2.0, 1.0), (4.0, 2.0, 1.0))
    """
    cells = changed_records(adjacency) * n_columns
    return float(cells), root_up(Fraction(cells)), 1.0


def magnitudes(data: PrivateVectors, box: Box, center: np.ndarray) -> Sensitive:
    """Numbers of records by the size of ``|clip(x) - center|/scale``, column by column.

    Returns
    -------
    Sensitive
        Shape (d * (MAGNITUDES + 1),): for each column the number up to ``2**-19.5``, then those of each half octave;
        the last has all above 1, for a centre beside the middle of the box.

    Notes
    -----
    Privacy: :func:`magnitude_sensitivity`. A person with m records counts once, with the root of the mean of the
    squares of these records, which are summed in their own order. Cells are found by comparing, never by a logarithm,
    of which the last bits can depend on where in an array a number stands.
    """
    d = len(data.columns)
    counts = np.zeros((d, MAGNITUDES + 1), dtype=np.int64)
    step = max(1, _BATCH // d)
    for squares in _squares(data, box, center, step):
        for j in range(d):
            counts[j] += np.bincount(np.searchsorted(_EDGES, squares[:, j]), minlength=MAGNITUDES + 1)
    return Sensitive(counts.ravel(), data.adjacency, *magnitude_sensitivity(d, data.adjacency))


def sign_products(data: PrivateVectors, center: np.ndarray) -> np.ndarray:
    """Sums over records of ``sign(x_i - c_i) sign(x_j - c_j)``, shape (d, d), int64: no scale, no clipping.

    A person with m records counts once, with the sign that most of them have, 0 where as many have the other. A record
    or person adds the products of a vector of -1, 0 and 1: each sum moves by at most 1 (``add_remove``), or 2.
    """
    d = len(data.columns)
    total = np.zeros((d, d), dtype=np.int64)
    for signs in _signs(data, center, max(1, _BATCH // d)):
        batch = signs.astype(np.float32)  # sums of at most 2**20 of -1, 0 and 1: exact, in any order
        total += (batch.T @ batch).astype(np.int64)
    return total


def _squares(data: PrivateVectors, box: Box, center: np.ndarray, step: int) -> Iterator[np.ndarray]:
    """Squared units of records, or their means over the records of each person."""
    with np.errstate(all="ignore"):
        if data.unit is None:
            for rows in row_batches(data, step):
                yield box.units(rows, center) ** 2
            return
        rows, owner = unit_rows(data)
        records = np.bincount(owner)
        sums = np.zeros((len(records), rows.shape[1]))
        for begin in range(0, len(rows), step):
            batch = slice(begin, begin + step)
            np.add.at(sums, owner[batch], box.units(rows[batch], center) ** 2)
        yield (sums / np.maximum(records, 1)[:, None])[records > 0]


def _signs(data: PrivateVectors, center: np.ndarray, step: int) -> Iterator[np.ndarray]:
    """Signs of records, or of most records of each person, int64."""
    if data.unit is None:
        for rows in row_batches(data, step):
            yield (rows > center).astype(np.int64) - (rows < center)
        return
    rows, owner = unit_rows(data)
    votes = np.zeros((int(owner.max(initial=-1)) + 1, rows.shape[1]), dtype=np.int64)
    for begin in range(0, len(rows), step):
        batch = slice(begin, begin + step)
        np.add.at(votes, owner[batch], (rows[batch] > center).astype(np.int64) - (rows[batch] < center))
    signs = np.sign(votes)
    for begin in range(0, len(signs), step):
        yield signs[begin : begin + step]

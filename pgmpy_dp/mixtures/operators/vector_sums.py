"""Records of numbers in random blocks of fixed size, and sums of clipped differences from centres in exact integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pgmpy_dp.private.data.vectors import PrivateVectors, VectorFacts, vector_rows

LARGEST_DIMENSION = 4096
"""So that the rounding errors of a norm stay below the margin that clipping leaves."""

_ROWS_AT_ONCE = 1 << 14
_LARGEST = 2.0**100  # in units: squares of what is clamped to it can be added up


def require_single_records(data: PrivateVectors | VectorFacts) -> None:
    """ValueError for data whose units have several records: their blocks and sums would change in many places."""
    if data.unit is not None:
        raise ValueError(
            f"the data protect whole units (unit={data.unit!r}), and this method is for single records; pass data with "
            "unit=None, e.g. one mean per unit"
        )


def vector_blocks(
    rows: np.ndarray, part: np.ndarray, places: np.ndarray, n_blocks: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """The records in disjoint blocks; of a block those `most` with the smallest places.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
    part : ndarray of int, shape (n,)
        The block of each record, by a draw of its own.
    places : ndarray of int64, shape (n,)
        Below 2**32: a second draw, which says where in its block a record stands.
    n_blocks, most : int
        Positive and public; at most 65536 blocks.

    Returns
    -------
    points : ndarray of float64, shape (n_blocks, most, d)
        Zeros where a block has fewer.
    used : ndarray of bool, shape (n_blocks, most)

    Notes
    -----
    Privacy: with draws that know nothing of the records (a replaced record keeps its own, an added one brings its own)
    one block differs between neighbours, see :meth:`pgmpy_dp.private.curator.curator_base.Curator.split`. Every
    other block is the same to the bit, in whatever order the table is: its records stand in the order of their draws,
    those of equal draws in that of their content. Shapes are public, so that sums over a block's rows are made in the
    same order whatever the sizes of other blocks.
    """
    draws = (part << 32) | places
    order = np.argsort(draws)
    equal = draws[order[1:]] == draws[order[:-1]]
    tied = np.append(equal, False) | np.append(False, equal)
    if tied.any():
        several = order[tied]
        order[tied] = several[np.lexsort((*rows[several].view(np.int64).T, draws[several]))]
    sizes = np.bincount(part, minlength=n_blocks)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    taken = place < most
    points = np.zeros((n_blocks, most, rows.shape[1]))
    points[part[order[taken]], place[taken]] = rows[order[taken]]
    return points, np.arange(most) < sizes[:, np.newaxis]


def clipped_cluster_sums(
    data: PrivateVectors, centres: np.ndarray, unit: float, bound: int
) -> tuple[np.ndarray, np.ndarray]:
    """Count the records nearest to each centre, and sum their clipped differences from it, exact.

    Parameters
    ----------
    data : PrivateVectors
    centres : ndarray, shape (k, d)
        Public; any numbers, of one centre or more.
    unit : float
        Of the grid, a power of two.
    bound : int
        In units: the l2 norm that no record's difference exceeds; at most 2**20.

    Returns
    -------
    counts : ndarray of int64, shape (k,)
    sums : ndarray of int64, shape (k, d)
        In units. **To be noised.**

    Notes
    -----
    Privacy: a record adds 1 to one count and an integer vector of l2 norm at most `bound` to the sum of the same
    centre, both functions of the record and of public numbers alone, bit by bit: distances are added up column by
    column by operations that IEEE 754 rounds exactly, the same whatever the record's position (products of matrices
    are not). A difference z in units with norm above `bound` is scaled by ``bound/norm (1 - 2**-40)``, whose margin is
    above the rounding errors of at most `LARGEST_DIMENSION` terms, and truncated **toward zero**, which makes no norm
    larger; rounding to nearest would. Sums of such integers are exact in any order, in doubles for the
    records at hand and in int64 for all. Changes therefore are: ``add_remove`` one pair (1, vector); ``replace_one``
    the difference of two such pairs, of one centre or of two.
    """
    k, d = centres.shape
    counts, sums = np.zeros(k, dtype=np.int64), np.zeros((k, d), dtype=np.int64)
    for nearest, steps in _clipped_steps(data, centres, unit, bound):
        members = (nearest[:, np.newaxis] == np.arange(k)).astype(np.float64)
        # Integers below 2**20 and 2**14 of them: products and sums are exact, so a product of matrices will do here.
        sums += (members.T @ steps.T).astype(np.int64)
        counts += np.bincount(nearest, minlength=k)
    return counts, sums


def clipped_cluster_moments(
    data: PrivateVectors, centres: np.ndarray, unit: float, bound: int, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Sum squares or products of clipped differences over the records nearest to each centre, exact.

    Parameters
    ----------
    data, centres, unit
        As in :func:`clipped_cluster_sums`.
    bound : int
        B, in units: the norm that no record's difference exceeds, the l4 norm for "diag", else the l2 norm; at most
        2**15.
    kind : {"spherical", "diag", "tied", "full"}
        What a record with the difference z adds: its squared length, the squares of its entries, or z z', for "tied" to
        one matrix for all centres.

    Returns
    -------
    diagonal : ndarray of int64
        Shape (k, 1) for "spherical", (k, d) for "diag" and "full", (1, d) for "tied".
    off_diagonal : ndarray of int64
        The rest of the upper triangles, row by row: shape (k, d (d - 1)/2) or (1, d (d - 1)/2), empty rows else. **Both
        to be noised.**

    Notes
    -----
    Privacy: which centre is a record's, and its z, are functions of the record and of public numbers alone
    (:func:`clipped_cluster_sums`). What it adds to that centre is, as a vector of l2 norm: ``norm2(z)**2`` for
    "spherical"; ``sqrt(sum z_c**4) = norm4(z)**2`` for "diag"; for z z', diagonal entries counted once and others
    twice, ``norm_F(z z') = norm2(z)**2``. All are at most B**2, in integers: z is scaled by ``bound/norm (1 -
    2**-40)`` and truncated toward zero, which makes neither norm larger. Two records' vectors v, v' have an inner
    product of at least 0, at one centre (squares; ``(z'w)**2``) or at two (0), so ``|v - v'|**2 <= 2 B**4``; where
    there is one number alone, it is between 0 and B**2. Products are integers of at most 2**30: sums of 2**14 of them
    are exact in doubles, of 2**32 in int64.
    """
    k, d = centres.shape
    groups = 1 if kind == "tied" else k
    rows, columns = np.triu_indices(d, 1)
    product = kind in ("tied", "full")
    diagonal = np.zeros((groups, 1 if kind == "spherical" else d), dtype=np.int64)
    off_diagonal = np.zeros((groups, len(rows) if product else 0), dtype=np.int64)
    for nearest, steps in _clipped_steps(data, centres, unit, bound, order=4 if kind == "diag" else 2):
        if product:
            for j in range(groups):
                of_group = steps if kind == "tied" else steps[:, nearest == j]
                matrix = (of_group @ of_group.T).astype(np.int64)
                diagonal[j] += matrix.diagonal()
                off_diagonal[j] += matrix[rows, columns]
        else:
            members = (nearest[:, np.newaxis] == np.arange(k)).astype(np.float64)
            squares = (members.T @ (steps * steps).T).astype(np.int64)
            diagonal += squares.sum(axis=1, keepdims=True) if kind == "spherical" else squares
    return diagonal, off_diagonal


def _clipped_steps(
    data: PrivateVectors, centres: np.ndarray, unit: float, bound: int, order: int = 2
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for blocks of records the nearest centre, shape (b,), and clipped differences, integers of shape (d, b)."""
    rows = vector_rows(data)[0]
    k, d = centres.shape
    centres = np.clip(np.nan_to_num(centres), -_LARGEST * unit, _LARGEST * unit)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        x = np.clip(rows[start : start + _ROWS_AT_ONCE].T, -_LARGEST * unit, _LARGEST * unit)
        nearest = np.zeros(x.shape[1], dtype=np.intp)
        least = _squares(x, centres[0])
        for j in range(1, k):
            square = _squares(x, centres[j])
            closer = square < least
            nearest[closer] = j
            least = np.where(closer, square, least)
        steps = (x - centres.T[:, nearest]) / unit
        size = np.sqrt(_squares(steps if order == 2 else steps * steps, np.zeros(d)))
        if order == 4:
            size = np.sqrt(size)
        shrink = np.where(size < bound, 1.0, bound / np.maximum(size, 1.0)) * (1.0 - 2.0**-40)
        yield nearest, np.trunc(steps * shrink)


def _squares(x: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Squared distances of the columns of x, shape (d, n), added up in the order of the coordinates."""
    total = np.zeros(x.shape[1])
    for values, coordinate in zip(x, centre, strict=True):
        difference = values - coordinate
        difference *= difference
        total += difference
    return total

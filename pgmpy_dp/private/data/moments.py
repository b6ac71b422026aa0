"""Means and second moments of clipped records of numbers, in exact integers.

A record is moved by a public centre, shortened to a public norm B and written in units of B/GRID, **rounded toward
zero**. Rounding to nearest would lengthen it (by 0.6 % at 30 columns on a grid of 2**-8), and the sensitivity with it.
Sums of products of such integers are then exact in any order.

Where a person has m records, each counts 1/sqrt(m): what a person adds is ``A = sum_r z_r z_r'`` with integer z_r, a
positive semidefinite matrix of trace at most GRID**2, whatever m. With one record, A = z z'. Every sensitivity of
:func:`trace_sensitivity` is derived for all such matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.boxes import Box
from pgmpy_dp.private.data.vectors import PrivateVectors, row_batches, unit_rows
from pgmpy_dp.private.noise.additive import root_up
from pgmpy_dp.private.sensitive import Sensitive

GRID = 1 << 15
"""Units in the norm bound. Fine enough that 1,000 equal columns lose 0.1 % by rounding, coarse enough that 2**32
records (32 GiB for one column alone) keep every sum of products below 2**62."""

TRACE = GRID**2
"""Largest trace of what one record or person adds to the second moments, in units."""

_BATCH = 1 << 20  # numbers of a batch of records: its sums of products stay below 2**50, and it takes 8 MB


@dataclass(frozen=True)
class TraceSensitivity:
    """The sensitivities of a sum of positive semidefinite matrices of bounded trace.

    Parameters
    ----------
    l1 : float
        Of the upper triangle with its diagonal, as a vector.
    frobenius : float
        Of the matrix; it bounds the l2 norm of the upper triangle too.
    nuclear : float
        Sum of the singular values.
    """

    l1: float
    frobenius: float
    nuclear: float


def trace_sensitivity(n_columns: int, adjacency: Adjacency, trace: int = TRACE) -> TraceSensitivity:
    """Sensitivities of ``G = sum_i A_i``, where every A_i is positive semidefinite with trace at most T.

    Parameters
    ----------
    n_columns : int
        d, at least 1.
    adjacency : Adjacency
    trace : int
        T.

    Notes
    -----
    Neighbours' sums differ by +-A (add_remove) or by A - A' (replace_one). The matrices allowed are the convex hull of
    0 and of all z z' with ``norm2(z)**2 = T``, norms are convex, and a convex function of (A, A') is largest at extreme
    points: it is enough to look at ``D = z z'`` and ``D = z z' - w w'`` with norms at most sqrt(T). So persons with
    many records have the sensitivities of single records.

    * ``add_remove``. Upper triangle: ``sum_{i<=j} |z_i z_j| = (norm1(z)**2 + norm2(z)**2)/2 <= (d + 1) T/2``, equal for
      d equal entries. Frobenius and nuclear norm of z z' are both ``norm2(z)**2 <= T``.
    * ``replace_one``. Upper triangle: with the signs s_ij of D, it is ``z'Mz - w'Mw`` for M with entries s_ii on and
      s_ij/2 off the diagonal, at most ``T (max(e_1, 0) + max(-e_d, 0)) <= T sqrt(2) norm_F(M) = T sqrt(d (d + 3)/2)``
      with e_1 >= ... >= e_d the eigenvalues of M. Frobenius: ``norm_F(D)**2 = |z|**4 + |w|**4 - 2 (z'w)**2 <= 2 T**2``.
      Nuclear: 2 T by the triangle inequality, equal for orthogonal z and w. For d = 1 all three are T, because z**2 and
      w**2 lie in [0, T].

    Rounded up where they are no integers.

    Examples
    --------
    >>> trace_sensitivity(3, Adjacency.ADD_REMOVE, trace=2)
    TraceSensitivity(l1=4.0, frobenius=2.0, nuclear=2.0)
    >>> trace_sensitivity(3, Adjacency.REPLACE_ONE, trace=2)
    TraceSensitivity(l1=6.0, frobenius=2.82842712474619..., nuclear=4.0)
    """
    if changed_records(adjacency) == 1:
        return TraceSensitivity((n_columns + 1) * trace / 2, float(trace), float(trace))
    if n_columns == 1:
        return TraceSensitivity(float(trace), float(trace), float(trace))
    squared = Fraction(trace) ** 2
    l1 = root_up(squared * n_columns * (n_columns + 3) / 2)
    return TraceSensitivity(l1, root_up(2 * squared), 2.0 * trace)


def mean_sensitivity(n_columns: int, adjacency: Adjacency) -> tuple[float, float, float]:
    """l1, l2 and l-infinity sensitivity of a sum of integer vectors of l2 norm at most GRID.

    Such a vector v has ``norm1(v) <= sqrt(d) GRID`` by Cauchy and Schwarz; a replacement moves the sum by v - v', twice
    each by the triangle inequality, attained by v' = -v.

    Examples
    --------
    >>> [norm / GRID for norm in mean_sensitivity(4, Adjacency.REPLACE_ONE)]
    [4.0, 2.0, 2.0]
    """
    changed = changed_records(adjacency)
    l1 = root_up(Fraction(changed**2 * n_columns * GRID**2))
    return l1, float(changed * GRID), float(changed * GRID)


def clipped_integers(rows: np.ndarray, center: np.ndarray, bound: float, share: np.ndarray | float = 1.0) -> np.ndarray:
    """Records less `center`, shortened to norm `bound`, times `share`, in units of bound/GRID rounded toward zero.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Finite, of any size.
    center : ndarray of shape (d,)
        Public.
    bound : float
        Public, positive.
    share : float or ndarray of shape (n, 1)
        At most 1.

    Returns
    -------
    ndarray of float64, shape (n, d)
        Whole numbers with ``norm2 <= share * GRID`` in exact arithmetic, up to the rounding of `share` itself.

    Notes
    -----
    The largest entry is divided out before anything is squared, so that no finite record overflows. Each float step
    errs by a relative 2**-53; a last factor ``1 - (d + 16) 2**-51`` covers them all, so that no norm ends above the
    bound before rounding, which shortens further. Callers check norms again in integers: privacy does not depend on
    this paragraph.

    Examples
    --------
    >>> clipped_integers(np.array([[3.0, 4.0], [1e300, 0.0], [0.0, 0.0]]), np.zeros(2), 1.0).tolist()
    [[19660.0, 26214.0], [32767.0, 0.0], [0.0, 0.0]]
    """
    with np.errstate(all="ignore"):  # underflow and overflow are handled below, and would tell of the records
        # Half of each, so that the difference of two finite numbers is finite.
        moved = 0.5 * rows.T - 0.5 * center[:, None]
        largest = np.abs(moved).max(axis=0)
        direction = np.where(largest > 0, moved / largest, 0.0)
        squares = np.zeros(len(rows))
        for column in direction:  # in this order, whatever the layout in memory
            squares += column * column
        norm = np.sqrt(squares)  # between 1 and sqrt(d), or 0
        length = np.minimum(largest / (0.5 * bound) * norm, 1.0)
        factor = length * clipping_scale(rows.shape[1]) * (share[:, 0] if isinstance(share, np.ndarray) else share)
        integers = np.trunc(np.where(norm > 0, direction / norm, 0.0) * factor)
    return np.where(np.isfinite(integers), integers, 0.0).T


def clipping_scale(n_columns: int) -> float:
    """GRID less the margin for rounding errors, see :func:`clipped_integers`."""
    return GRID * (1.0 - (n_columns + 16) * 2.0**-51)


def second_moments(data: PrivateVectors, center: np.ndarray, row_norm: float, box: Box | None = None) -> Sensitive:
    """Sum of ``(x - center)(x - center)'`` over clipped records, its upper triangle in units of (row_norm/GRID)**2.

    Parameters
    ----------
    data : PrivateVectors
    center : ndarray of shape (d,)
        Public, or released before.
    row_norm : float
        Public B: ``x - center`` is shortened to it.
    box : Box, optional
        Public, or its scales released before: x is clipped to it first, and ``x - center`` is in units of its scales.

    Returns
    -------
    Sensitive
        Shape (d (d + 1)/2,), rows of the upper triangle one after the other, as :func:`numpy.triu_indices` has them.

    Notes
    -----
    Privacy: :func:`trace_sensitivity` with T = GRID**2. A record adds z z' with integer z, of trace ``norm2(z)**2 <=
    GRID**2``, also where m of them belong to one person and each has the share 1/sqrt(m), for their traces add up. The
    sum of squares of each record or person is compared with GRID**2 in integers, and one above it would count as zeros
    (float rounding cannot make one; the sensitivity does not depend on that). m is the number of the person's own kept
    records, which depends on that person alone.

    Exact: sums of products of a batch are integers below 2**53, so float64 matrix products are exact in any order, and
    batches are added in int64. Memory is a few batches and d**2 numbers.
    """
    d = len(data.columns)
    if data.unit is None:
        total = _clipped_sums(data, center, row_norm, products=True, box=box)
    else:
        rows, owner = unit_rows(data)
        moved, origin = (rows, center) if box is None else (box.units(rows, center), np.zeros(d))
        total = _products_of_units(moved, owner, origin, row_norm, _rows_at_once(d))
    sensitivity = trace_sensitivity(d, data.adjacency)
    return Sensitive(
        total[np.triu_indices(d)], data.adjacency, sensitivity.l1, sensitivity.frobenius, linf=float(TRACE)
    )


def centered_sums(data: PrivateVectors, start: np.ndarray, radius: float, box: Box | None = None) -> Sensitive:
    """Sum over records (over persons, of the means of their records) of ``x - start`` shortened to `radius`.

    Parameters
    ----------
    data : PrivateVectors
    start, radius
        Public: a ball to which records are clipped.
    box : Box, optional
        Public: as for :func:`second_moments`.

    Returns
    -------
    Sensitive
        Shape (d,), in units of radius/GRID.

    Notes
    -----
    Privacy: :func:`mean_sensitivity`. A person's vector is the mean of the person's clipped records, summed in the
    order of those records alone, shortened and rounded toward zero once more; its norm is checked in integers as above.
    """
    d = len(data.columns)
    if data.unit is None:
        total = _clipped_sums(data, start, radius, products=False, box=box)
    else:
        means = _mean_batches(data, start, radius, _rows_at_once(d), box)
        total = _clipped_sums(data, np.zeros(d), float(GRID), products=False, batches=means)
    return Sensitive(total, data.adjacency, *mean_sensitivity(d, data.adjacency))


def unit_count(data: PrivateVectors) -> Sensitive:
    """Number of kept records, or of persons with one, shape (1,). For add_remove: it moves by one."""
    if data.unit is None:
        count = sum(len(rows) for rows in row_batches(data, _BATCH))
    else:
        count = len(np.unique(unit_rows(data)[1]))
    changed = float(changed_records(data.adjacency))
    return Sensitive(np.array([count], dtype=np.int64), data.adjacency, changed, changed, changed)


def _products_of_units(
    rows: np.ndarray, owner: np.ndarray, center: np.ndarray, row_norm: float, step: int
) -> np.ndarray:
    """Sum of the products of clipped records, each counting 1/sqrt(m) where its person has m of them."""
    d = rows.shape[1]
    total = np.zeros((d, d), dtype=np.int64)
    records = np.bincount(owner)
    share = np.zeros(len(records))
    share[records > 0] = 1.0 / np.sqrt(records[records > 0])
    traces = np.zeros(len(records), dtype=np.int64)
    batches = [slice(start, start + step) for start in range(0, len(rows), step)]
    for batch in batches:
        z = clipped_integers(rows[batch], center, row_norm, share[owner[batch], None])
        np.add.at(traces, owner[batch], (z**2).sum(axis=1).astype(np.int64))
    bad = traces > TRACE
    for batch in batches:
        z = clipped_integers(rows[batch], center, row_norm, share[owner[batch], None])
        z[bad[owner[batch]]] = 0.0
        total += (z.T @ z).astype(np.int64)
    return total


def _mean_batches(
    data: PrivateVectors, start: np.ndarray, radius: float, step: int, box: Box | None
) -> Iterator[np.ndarray]:
    """Means of the clipped records of persons, in batches of at most `step` of them."""
    origin = start if box is None else np.zeros(len(start))
    rows, owner = unit_rows(data)
    means = _mean_of_units(rows if box is None else box.units(rows, start), owner, origin, radius, step)
    for begin in range(0, len(means), step):
        yield means[begin : begin + step]


def _mean_of_units(rows: np.ndarray, owner: np.ndarray, start: np.ndarray, radius: float, step: int) -> np.ndarray:
    """Mean of the clipped records of each person, one row per person."""
    records = np.bincount(owner)
    sums = np.zeros((len(records), rows.shape[1]))
    for begin in range(0, len(rows), step):
        batch = slice(begin, begin + step)
        np.add.at(sums, owner[batch], clipped_integers(rows[batch], start, radius))
    return sums / np.maximum(records, 1)[:, None]


def _rows_at_once(n_columns: int) -> int:
    return max(1, _BATCH // n_columns)


def _clipped_sums(
    data: PrivateVectors,
    center: np.ndarray,
    bound: float,
    *,
    products: bool,
    batches: Iterator[np.ndarray] | None = None,
    box: Box | None = None,
) -> np.ndarray:
    """Sums of clipped records or of their products, int64; or of the rows in `batches`."""
    d = len(data.columns)
    total = np.zeros((d, d) if products else d, dtype=np.int64)
    origin = center if box is None else np.zeros(d)
    for batch in row_batches(data, _rows_at_once(d)) if batches is None else batches:
        z = clipped_integers(batch if box is None else box.units(batch, center), origin, bound)
        z[(z**2).sum(axis=1) > TRACE] = 0.0
        total += (z.T @ z if products else z.sum(axis=0)).astype(np.int64)
    return total

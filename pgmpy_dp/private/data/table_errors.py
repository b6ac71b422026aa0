"""The distance of tables of counts from a model's, by declared measures: a record moves each by at most 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.checks import fresh_copy
from pgmpy_dp.private.data.table_distances import WHOLE, deviations, distance_sensitivity, exact_dtype, surplus
from pgmpy_dp.private.sensitive import Sensitive

MEASURES = ("largest", "ranked", "gap", "sum")
"""The largest distance of some tables, the error of the cell of a rank, how far a sum is from its reference, and by
how much it is above it."""

Measure = tuple[str, tuple[int, ...], int]
"""One of `MEASURES`; of which tables, by their places; the rank, or the reference in parts of `WHOLE`."""


def value_parts(values: np.ndarray) -> np.ndarray:
    """Public values of the cells of one table, in parts of `WHOLE`; ValueError for one outside [0, 1].

    Examples
    --------
    >>> (value_parts(np.array([0.0, 0.25, 1.0])) / WHOLE).tolist()
    [0.0, 0.25, 1.0]
    """
    flat = fresh_copy(values).ravel()
    if not (np.isfinite(flat).all() and (flat >= 0.0).all() and (flat <= 1.0).all()):
        raise ValueError("numbers has a value of a cell outside [0, 1]; divide values by their range")
    return np.rint(flat * WHOLE).astype(np.int64)


def sum_above(counts: np.ndarray, parts: np.ndarray, reference: int) -> int:
    """``sum_c n_c (f_c - r)``, f the values of cells and r the reference, in parts of `WHOLE`; exact."""
    dtype = exact_dtype(counts)
    return int((counts.astype(dtype) * (parts.astype(dtype) - reference)).sum())


def measured_errors(tables: Sensitive, sizes: np.ndarray, parts: np.ndarray, measures: Sequence[Measure]) -> Sensitive:
    """Measure how far tables are from a model's: one whole number for each measure.

    Parameters
    ----------
    tables : Sensitive
        Exact tables n that follow one another in one vector, in counts or in parts of a count (units that count by
        shares): its l-infinity sensitivity g is what one record counts.
    sizes : ndarray of int, shape (n_tables,)
        Positive: cells of each.
    parts : ndarray of int64, shape (sum of sizes,)
        Of a table in "largest" or "ranked" the model's probabilities p, by
        :func:`~pgmpy_dp.private.data.table_distances.whole_parts`; of one in "gap" or "sum" values f, by
        :func:`value_parts`.
    measures : sequence of (kind, places, number)

    Returns
    -------
    Sensitive
        Shape (len(measures),), in what `tables` counts.

    Notes
    -----
    Write N = sum n_c for a table's own total, W = `WHOLE` and m = p/W. The measures are

    * "largest": the largest distance ``U(n) = sum_c max(0, n_c - N m_c)`` of some tables;
    * "ranked": of ``e_c = abs(n_c - N m_c)``, of all cells of some tables, the one of a rank from below: so many cells
      have an error of at most that;
    * "gap": ``abs(sum_c n_c (f_c - r))``, of values f_c and a reference r in [0, 1];
    * "sum": the same without the absolute value, hence negative where the values are below the reference.

    Privacy: each is a function h of exact linear functions of the counts. U moves by at most 1
    (:func:`~pgmpy_dp.private.data.table_distances.mean_distances`). With one record more in cell x, ``n_c - N m_c``
    moves by ``1 - m_x`` in cell x and by ``-m_c`` in another one, so that e_c moves by at most 1; with a record that
    moves from y to x, by 1 in each of the two cells and by nothing elsewhere. A sum moves by ``f_x - r``, or by
    ``f_x - f_y``, which are in [-1, 1]. The largest of numbers, and the one of a rank, move by no more than the number
    that moves most: if every e_c is at most d larger, then so is the r-th smallest. So a measure moves by at most 1,
    under ``add_remove`` and ``replace_one`` and for all numbers that the model says; k of them move by k in l1 and
    sqrt(k) in l2 norm. Of records that count by shares in 1/g, the change of each linear function is g times a mean of
    such changes (:func:`~pgmpy_dp.private.data.table.share_grid`), and U of a mean is at most the largest: g.

    W times a measure is a whole number, S, computed exactly: by 64 bits where N W is below 2**62, by Python's integers
    elsewhere. It moves by at most g W, and is rounded as ``floor((2 S + W)/(2 W))``: for ``S <= S' <= S + g W`` this
    does not fall and rises by at most the whole number g.
    """
    ends = np.cumsum(sizes).tolist()
    places = [slice(end - size, end) for size, end in zip(sizes.tolist(), ends, strict=True)]
    rounded = []
    for kind, chosen, number in measures:
        pairs = [(tables.value[places[k]], parts[places[k]]) for k in chosen]
        if kind == "largest":
            error = max(surplus(*pair) for pair in pairs)
        elif kind == "ranked":
            error = int(np.sort(np.abs(np.concatenate([deviations(*pair) for pair in pairs])))[number - 1])
        else:
            (pair,) = pairs
            error = sum_above(*pair, number)
            error = abs(error) if kind == "gap" else error
        rounded.append((2 * error + WHOLE) // (2 * WHOLE))
    norms = [tables.linf * norm for norm in distance_sensitivity(len(rounded))]
    return Sensitive(np.array(rounded, dtype=np.int64), tables.adjacency, *norms)

"""The distance of tables of counts from a model's tables: records that are in another cell than the model has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgmpy_dp.checks import fresh_copy
from pgmpy_dp.private.sensitive import Sensitive

WHOLE = 1 << 30
"""In how many parts of 1 a model's probabilities are."""

_WEIGHT = 1 << 20  # parts of the largest weight
_NARROW = 1 << 32  # counts up to which sums stay below 2**62
_SUM_ERROR = 1e-6


def distance_sensitivity(n_means: int) -> tuple[float, float, float]:
    """Return the joint l1, l2 and l-infinity sensitivities of means of distances.

    Each moves by at most 1 under ``add_remove`` and ``replace_one`` (``mean_distances``), so that m of them move by
    (m, sqrt(m), 1). A record in a cell that the model gives the probability 0 attains that, in all tables at once. The
    l2 sensitivity is rounded up.

    Examples
    --------
    >>> distance_sensitivity(4)[0], round(distance_sensitivity(4)[1], 6)
    (4.0, 2.0)
    """
    return float(n_means), math.nextafter(math.sqrt(n_means), math.inf), 1.0


def whole_parts(probabilities: np.ndarray) -> np.ndarray:
    """Public probabilities as whole numbers that sum to `WHOLE`; none is off by more than a part.

    Parameters
    ----------
    probabilities : ndarray of float64
        Of the cells of one table.

    Returns
    -------
    ndarray of int64, shape (probabilities.size,)
        In C order. Cells of probability 0 have no part.

    Raises
    ------
    ValueError
        For numbers that are not finite, that are negative, or that do not sum to 1.

    Examples
    --------
    >>> (whole_parts(np.array([0.25, 0.0, 0.75])) / WHOLE).tolist()
    [0.25, 0.0, 0.75]
    """
    flat = fresh_copy(probabilities).ravel()
    total = float(flat.sum())
    if not (np.isfinite(flat).all() and (flat >= -_SUM_ERROR).all() and abs(total - 1.0) <= _SUM_ERROR):
        raise ValueError(f"probabilities has a table of sum {total!r}; pass finite numbers, not negative, of sum 1")
    below = np.cumsum(np.maximum(flat, 0.0))
    return np.diff(np.rint(below / below[-1] * WHOLE).astype(np.int64), prepend=0)


def checked_means(weights: Sequence[Sequence[float]] | np.ndarray | None, n_tables: int) -> np.ndarray | None:
    """Public weights of the tables in each mean, in parts of its largest: whole numbers; None for each table alone.

    Raises
    ------
    ValueError
        For numbers that are negative or not finite, a mean of no table, and another number of tables.
    """
    if weights is None:
        return None
    means = fresh_copy(weights)
    if means.ndim != 2 or not len(means) or means.shape[1] != n_tables:
        raise ValueError(f"weights has shape {means.shape}; pass one row for each mean, of {n_tables} numbers")
    if not (np.isfinite(means).all() and (means >= 0).all() and (means.max(axis=1) > 0).all()):
        raise ValueError("weights has a row that is not a mean; pass finite numbers, some positive and none negative")
    parts = np.rint(means / means.max(axis=1, keepdims=True) * _WEIGHT).astype(np.int64)
    return np.where(means > 0, np.maximum(parts, 1), 0)


def exact_dtype(counts: np.ndarray) -> type:
    """Return the type in which products of counts with parts of `WHOLE`, and their sums, are exact."""
    return np.int64 if int(counts.sum()) < _NARROW else object


def deviations(counts: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """``W n_c - N p_c`` of each cell, N the sum of the counts n and p the model's parts of W = `WHOLE`; exact."""
    dtype = exact_dtype(counts)
    return WHOLE * counts.astype(dtype) - int(counts.sum()) * parts.astype(dtype)


def surplus(counts: np.ndarray, parts: np.ndarray) -> int:
    """``sum_c max(0, W n_c - N p_c)``, of the `deviations`; exact."""
    return int(np.maximum(deviations(counts, parts), 0).sum())


def mean_distances(tables: Sensitive, sizes: np.ndarray, parts: np.ndarray, means: np.ndarray | None) -> Sensitive:
    """Numbers of records that would have to be in another cell, for tables to be a model's: means over tables.

    Parameters
    ----------
    tables : Sensitive
        Exact tables n that follow one another in one vector, in counts or in parts of a count (units that count by
        shares): its l-infinity sensitivity g is what one record counts.
    sizes : ndarray of int, shape (n_tables,)
        Positive: cells of each.
    parts : ndarray of int64, shape (sum of sizes,)
        The model's tables p, by :func:`whole_parts`.
    means : ndarray of int64, shape (n_means, n_tables), or None
        By :func:`checked_means`.

    Returns
    -------
    Sensitive
        Whole numbers, shape (n_means,), or (n_tables,), in what `tables` counts.

    Notes
    -----
    Let N = sum n_c, the table's own total, and m = p/W, W = `WHOLE`, of sum 1. The distance is ``U(n) = sum_c max(0,
    n_c - N m_c)``, N times the total variation between n/N and m: what is too much somewhere is missing elsewhere.

    Privacy: U is half the l1 norm of ``n - (sum n) m``, a linear function of n, hence a seminorm: ``abs(U(n') - U(n))
    <= U(n' - n)``. For one record more, in cell x, the difference is e_x, and ``U(e_x) = 1 - m_x <= 1``. For a record
    that moves from cell y to x it is ``e_x - e_y``, of sum 0, and U is half its l1 norm, 1, or 0 where x = y. One that
    enters or leaves the schema is one more or fewer. So U moves by at most 1 under ``add_remove`` and
    ``replace_one``, for every model; its own total need not be public. Of records that count by shares in 1/g the
    difference is g times a mean of such differences (:func:`~pgmpy_dp.private.data.table.share_grid`), and U of a mean
    is at most the largest: g.

    W U is a whole number, computed exactly: by 64 bits where N W is below 2**62, by Python's integers elsewhere. A mean
    with whole weights a is ``S/Q``, ``S = sum a W U`` and ``Q = W sum a``, and moves by at most g. It is rounded as
    ``floor((2 S + Q)/(2 Q))``: for ``S <= S' <= S + g Q`` this does not fall and rises by at most the whole number g.
    """
    value, ends = tables.value, np.cumsum(sizes).tolist()
    excess = []
    for size, end in zip(sizes.tolist(), ends, strict=True):
        excess.append(surplus(value[end - size : end], parts[end - size : end]))
    rows = [{k: 1} for k in range(len(excess))] if means is None else [dict(enumerate(row)) for row in means.tolist()]
    rounded = []
    for row in rows:
        weighted, whole = sum(a * excess[k] for k, a in row.items()), WHOLE * sum(row.values())
        rounded.append((2 * weighted + whole) // (2 * whole))
    norms = [tables.linf * norm for norm in distance_sensitivity(len(rounded))]
    return Sensitive(np.array(rounded, dtype=np.int64), tables.adjacency, *norms)

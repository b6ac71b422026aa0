"""How far tables of counts are from public ones: what a structure is selected by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.checks import own_copy
from pgmpy_dp.private.sensitive import Sensitive

_LARGEST = 1 << 60  # sums of absolute differences and offsets stay within 64 bits
_WHOLE = 1 << 10  # parts of the largest weight


def misfit_scores(
    tables: Sequence[Sensitive],
    expected: Sequence[np.ndarray],
    offsets: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
) -> Sensitive:
    """Scores ``floor(w_e norm1(n_e - round(m_e))) - floor(w_e offset_e)``, one per table, exact in integers.

    Parameters
    ----------
    tables : sequence of Sensitive
        Exact tables n_e, at least one.
    expected : sequence of ndarray of float64
        Public tables m_e of the same shapes: functions of released values and public arguments. NaN counts as 0.
    offsets : sequence of float, optional
        Public finite numbers; default 0.
    weights : sequence of float, optional
        Public positive numbers, of which only the ratios matter: w_e is the weight over the largest one, rounded down
        to a multiple of 1/1024, and at least 1/1024. Default: 1.

    Returns
    -------
    Sensitive
        Shape (len(tables),). Its l-infinity sensitivity is the largest l1 sensitivity of a table.

    Raises
    ------
    ValueError
        For public tables of other shapes, and weights that are not one positive finite number per table.

    Notes
    -----
    Privacy: m_e is public, and is rounded to integers (and clipped to what 64 bits hold) before any record comes in.
    So with the same m_e on both sides, ``abs(norm1(n - m) - norm1(n' - m)) <= norm1(n - n')`` holds exactly, by the
    triangle inequality in integer arithmetic: a norm x moves by at most the l1 sensitivity D of its table, 1 under
    ``add_remove`` and 2 under ``replace_one``. A difference of floats would only do so up to rounding, which depends on
    the records.

    A weight is g/G with whole numbers ``1 <= g <= G = 1024``, and ``f(x) = floor(x g/G)`` is computed as
    ``(x // G) g + ((x % G) g) // G``, exactly and without an overflow, for x g/G is the first term plus (x % G) g/G.
    For whole numbers ``x <= x' <= x + D``: f does not fall, and ``f(x') <= f(x + D) = floor(x g/G + D g/G) <=
    floor(x g/G + D) = f(x) + D``. So a weighted score moves by at most D too, whatever the weights. Offsets are the
    same on both sides and do not matter.
    """
    expected = [own_copy(m) for m in expected]
    shapes = [(table.value.shape, m.shape) for table, m in zip(tables, expected, strict=True)]
    if any(own != other for own, other in shapes):  # one of more cells would count a table several times
        raise ValueError(f"expected tables have the shapes {[b for _, b in shapes]}, not {[a for a, _ in shapes]}")
    norms = [max(getattr(table, norm) for table in tables) for norm in ("l1", "l2", "linf")]
    joined = Sensitive(np.concatenate([table.value.ravel() for table in tables]), tables[0].adjacency, *norms)
    sizes = np.array([table.value.size for table in tables])
    return joined_misfit_scores(joined, sizes, np.concatenate([m.ravel() for m in expected]), offsets, weights)


def joined_misfit_scores(
    tables: Sensitive,
    sizes: np.ndarray,
    expected: np.ndarray,
    offsets: Sequence[float] | np.ndarray | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> Sensitive:
    """The same of tables that follow one another in one vector: there may be hundreds of thousands.

    Parameters
    ----------
    tables : Sensitive
        The vector, with the largest l1 sensitivity of one table.
    sizes : ndarray of int, shape (n_tables,)
        Positive: cells of each.
    expected : ndarray of float64, shape (sum of sizes,)
    offsets, weights
        As :func:`misfit_scores`.

    Returns
    -------
    Sensitive
    """
    if tables.value.shape != expected.shape or tables.value.shape != (int(sizes.sum()),) or sizes.min() < 1:
        raise ValueError(f"expected has {expected.shape} cells, the tables {tables.value.shape} and {sizes.sum()}")
    parts = _parts(weights, len(sizes))
    limit = _LARGEST // int(sizes.max())
    assumed = np.nan_to_num(expected.astype(np.float64), nan=0.0)
    rounded = np.rint(np.clip(assumed, -limit, limit)).astype(np.int64)
    norms = np.add.reduceat(np.abs(tables.value - rounded), np.cumsum(sizes) - sizes)
    scores = (norms // _WHOLE) * parts + ((norms % _WHOLE) * parts) // _WHOLE
    if offsets is not None:
        weighted = np.asarray(offsets, dtype=np.float64) * (parts / _WHOLE)
        scores = scores - np.floor(np.clip(weighted, -_LARGEST, _LARGEST)).astype(np.int64)
    # The l1 sensitivities are small whole numbers, whose sum is exact; it bounds the l2 norm too.
    together = len(sizes) * tables.l1
    return Sensitive(scores, tables.adjacency, together, together, tables.l1)


def _parts(weights: Sequence[float] | np.ndarray | None, count: int) -> np.ndarray:
    """Each weight in parts of the largest: whole numbers from 1 to 1024."""
    if weights is None:
        return np.full(count, _WHOLE)
    given = own_copy(weights)
    if given.shape != (count,) or not np.isfinite(given).all() or not (given > 0).all():
        raise ValueError(f"weights={weights!r} must be {count} positive finite numbers, one per table")
    return np.clip(np.floor(given / given.max() * _WHOLE), 1, _WHOLE).astype(np.int64)

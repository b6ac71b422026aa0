"""How far tables of counts are from public ones: what a structure is selected by."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgmpy_dp.private.sensitive import Sensitive

__all__ = ["misfit_scores"]

_LARGEST = 1 << 60  # sums of absolute differences and offsets stay within 64 bits


def misfit_scores(
    tables: Sequence[Sensitive], expected: Sequence[np.ndarray], offsets: Sequence[float] | None = None
) -> Sensitive:
    """Scores ``norm1(n_e - round(m_e)) - floor(offset_e)``, one per table, exact in integers.

    Parameters
    ----------
    tables : sequence of Sensitive
        Exact tables n_e, at least one.
    expected : sequence of ndarray of float64
        Public tables m_e of the same shapes: functions of released values and public arguments. NaN counts as 0.
    offsets : sequence of float, optional
        Public finite numbers; default 0.

    Returns
    -------
    Sensitive
        Shape (len(tables),). Its l-infinity sensitivity is the largest l1 sensitivity of a table.

    Raises
    ------
    ValueError
        For public tables of other shapes.

    Notes
    -----
    Privacy: m_e is public, and is rounded to integers (and clipped to what 64 bits hold) before any record comes in.
    So with the same m_e on both sides, ``abs(norm1(n - m) - norm1(n' - m)) <= norm1(n - n')`` holds exactly, by the
    triangle inequality in integer arithmetic: a score moves by at most the l1 sensitivity of its table, 1 under
    ``add_remove`` and 2 under ``replace_one``. A difference of floats would only do so up to rounding, which depends on
    the records. Offsets are the same on both sides and do not matter.
    """
    shapes = [(table.value.shape, np.shape(m)) for table, m in zip(tables, expected, strict=True)]
    if any(own != other for own, other in shapes):  # one of more cells would count a table several times
        raise ValueError(f"expected tables have the shapes {[b for _, b in shapes]}, not {[a for a, _ in shapes]}")
    ends = np.cumsum([table.value.size for table in tables])
    limit = _LARGEST // int(max(table.value.size for table in tables))
    # All tables in one array: there may be thousands of small ones.
    public = np.nan_to_num(np.concatenate([np.ravel(m) for m in expected]).astype(np.float64), nan=0.0)
    rounded = np.rint(np.clip(public, -limit, limit)).astype(np.int64)
    exact = np.concatenate([table.value.ravel() for table in tables])
    scores = np.add.reduceat(np.abs(exact - rounded), np.concatenate([[0], ends[:-1]]))
    if offsets is not None:
        floors = np.floor(np.clip(np.asarray(offsets, dtype=np.float64), -_LARGEST, _LARGEST))
        scores = scores - floors.astype(np.int64)
    l1, linf = math.fsum(table.l1 for table in tables), max(table.l1 for table in tables)
    # The l1 sensitivities are small whole numbers, whose sum is exact; it bounds the l2 norm too.
    return Sensitive(scores, tables[0].adjacency, l1, l1, linf)

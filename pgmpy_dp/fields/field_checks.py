"""Checks that the random fields share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

ROUNDING = 1e-10
"""Interactions below this fraction of the largest log-potential are taken for rounding errors of zero."""


def frozen(name: str, values: np.ndarray, ndim: int) -> np.ndarray:
    """Read-only float64 copy."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != ndim or not np.isfinite(array).all():
        raise ValueError(f"{name} must be {ndim}-dimensional and finite, got shape {array.shape}")
    array.flags.writeable = False
    return array


def check_subset(given: Iterable[int], p: int, name: str, sizes: Sequence[int] | None = None) -> tuple[int, ...]:
    """Sorted distinct positions of a monomial or pair; a pair must come sorted, for its table has an orientation."""
    subset = tuple(int(i) for i in given)
    inside = len(set(subset)) == len(subset) > 0 and all(0 <= i < p for i in subset)
    if not inside or (sizes is not None and (len(subset) not in sizes or list(subset) != sorted(subset))):
        rule = "distinct positions" if sizes is None else "pairs i < j of positions"
        raise ValueError(f"{name} must be given for {rule} from 0 to {p - 1}, got {given!r}")
    return tuple(sorted(subset))


def check_codes(codes: np.ndarray, cardinalities: tuple[int, ...]) -> np.ndarray:
    """Codes of records as integers; ValueError where they do not have a column for each variable."""
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(cardinalities):
        raise ValueError(f"codes must have shape (n, {len(cardinalities)}), got {codes.shape}")
    return codes.astype(np.int64)

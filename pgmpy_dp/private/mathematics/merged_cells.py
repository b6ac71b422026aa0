"""Tables whose cells become fewer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def merged_cells(table: np.ndarray, places: Sequence[np.ndarray | None]) -> np.ndarray:
    """Add cells up: along axis a state k becomes ``places[a][k]``; None leaves an axis as it is.

    Examples
    --------
    >>> merged_cells(np.array([[1, 2], [3, 4], [5, 6]]), [np.array([0, 1, 1]), None]).tolist()
    [[1, 2], [8, 10]]
    """
    for axis, to in enumerate(places):
        if to is not None:
            joined = np.zeros((*table.shape[:axis], int(max(to)) + 1, *table.shape[axis + 1 :]), dtype=table.dtype)
            np.add.at(joined.swapaxes(0, axis), np.asarray(to), table.swapaxes(0, axis))
            table = joined
    return table

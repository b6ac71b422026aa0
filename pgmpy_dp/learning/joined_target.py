"""Records and the target of each, as scikit-learn's classifiers take them, in one table."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd


def joined(X: Any, y: Any, target: Hashable) -> pd.DataFrame:
    """Records with their target as a column; cells are not looked at.

    Raises
    ------
    TypeError, ValueError
        For an `X` that is no pandas dataframe, and a `y` that has not one value for each record.
    """
    if not isinstance(X, pd.DataFrame):
        raise TypeError(
            f"X is a {type(X).__name__}; pass a pandas.DataFrame, or leave y out and pass a table that has {target!r}"
        )
    if getattr(y, "shape", ())[1:] == (1,):
        y = y.iloc[:, 0] if isinstance(y, pd.DataFrame) else np.asarray(y)[:, 0]
    if len(getattr(y, "shape", (0,))) != 1:
        raise ValueError("y has more than one dimension; pass one value for each record")
    column = y if isinstance(y, pd.Series | np.ndarray) else pd.Series(y, dtype=object)
    if len(column) != len(X):
        raise ValueError("X and y are of different lengths; pass one value for each record")
    table = X.copy(deep=False)
    table[target] = column.array if isinstance(column, pd.Series) else column  # by place, whatever the index
    return table

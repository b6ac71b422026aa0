"""Columns of records from the codes that a model drew: states, numbers or days."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd

from pgmpy_dp.inference.sampling import SamplingMethod, uniforms
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.schema import Date, Number


def values_of(
    values: Values,
    codes: np.ndarray,
    generator: np.random.Generator,
    method: SamplingMethod = "independent",
) -> pd.Series:
    """A column of values for codes, each drawn within its state.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
    method : {"independent", "stratified"}
        How those of one state are drawn together; see `pgmpy_dp.inference.sampling`.

    Returns
    -------
    pandas.Series
        Whole numbers as int64, or pandas' Int64 where a number can be missing; others as float64 with NaN; days as
        datetime64, with NaT; of variables without numbers the states. The type depends on the declaration alone.

    Examples
    --------
    >>> from pgmpy_dp.schema import Number
    >>> age = Values(Number(0, 120, cuts=[118], resolution=1))
    >>> values_of(age, np.array([1, 2]), np.random.default_rng(0)).tolist()
    [119, <NA>]
    """
    return as_series(*values.drawn(codes, uniforms(codes, generator, method)))


def as_frame(columns: Mapping[Hashable, tuple[Number | Sequence, np.ndarray]], n: int) -> pd.DataFrame:
    """Drawn columns by name, of `n` records, in the types that were declared."""
    every = [as_series(*column) for column in columns.values()]
    frame = pd.concat(every, axis=1) if every else pd.DataFrame(index=range(n))
    # An Index of tuples would become a MultiIndex.
    return frame.set_axis(pd.Index(list(columns), tupleize_cols=False), axis=1)


def as_series(declared: Number | Sequence, drawn: np.ndarray) -> pd.Series:
    """A column of drawn numbers, or of states, in the type that was declared."""
    return as_column(declared, drawn, declared.whole) if isinstance(declared, Number) else states_of(declared, drawn)


def as_column(number: Number, drawn: np.ndarray, whole: bool) -> pd.Series:
    """Numbers, as :class:`~pgmpy_dp.Number` counts them, in the type of their column; days lose their fractions."""
    if isinstance(number, Date):
        days = np.where(np.isnan(drawn), np.iinfo(np.int64).min, drawn).astype(np.int64)  # the least one is NaT
        return pd.Series(days.astype("datetime64[D]").astype("datetime64[s]"))
    if not whole:
        return pd.Series(drawn)
    may_lack = len(number.states) > len(number.cells)
    return pd.Series(drawn).astype("Int64" if may_lack else "int64")


def states_of(states: Sequence, codes: np.ndarray) -> pd.Series:
    """The states with these numbers; a column of one plain type where all states are of that type."""
    types = {type(state) for state in states}
    if len(types) == 1 and types <= {str, int, float, bool}:
        return pd.Series(pd.Index(states).take(codes))
    labels = np.empty(len(states), dtype=object)
    labels[:] = states
    return pd.Series(labels[codes], dtype=object)

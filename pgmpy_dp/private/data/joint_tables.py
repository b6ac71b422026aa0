"""The choice of joint tables to count, so that all requested tables are sums of them; it knows no data.

A pass over a large file costs more per table than per cell, and 45 tables of pairs of ten variables are all sums of
about ten tables of four variables each. So a few joint tables are counted, over *covers* of scopes, and the
others are added up from them, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pgmpy_dp.schema import Schema


class LevelColumns:
    """The levels of a schema as further columns of codes, behind those of its variables: functions of their codes.

    Parameters
    ----------
    schema : Schema
        Discrete variables only.

    Attributes
    ----------
    sizes : list of int
        Numbers of states of the variables, then of the levels.

    Notes
    -----
    Privacy: the code of a level is a public function of the record's own code of its variable. So a record has one code
    in each of these columns, whatever other records have, as if its cell had been read so.

    Examples
    --------
    >>> from pgmpy_dp import Levels
    >>> levels = LevelColumns(Schema({"tract": Levels(["a", "b", "c"], state={"a": "CA", "b": "NV", "c": "NV"})}))
    >>> [column.tolist() for column in levels.beside([np.array([0, 2, 1])], [(1,)])], levels.sizes
    ([[0, 2, 1], [0, 1, 1]], [3, 2])
    """

    def __init__(self, schema: Schema) -> None:
        position = {name: place for place, name in enumerate(schema.variables)}
        self._maps = [
            (position[one.variable], np.array(one.places, np.min_scalar_type(len(one.states) - 1)))
            for one in schema.levels.values()
        ]
        self.sizes = [*schema.cardinalities.values(), *(len(one.states) for one in schema.levels.values())]

    def beside(self, columns: Sequence[np.ndarray], scopes: Sequence[Sequence[int]]) -> Sequence[np.ndarray]:
        """Columns of codes with those of the levels that scopes have; in the place of other levels are variables."""
        used = {place for scope in scopes for place in scope if place >= len(columns)}
        if not used:
            return columns
        maps = enumerate(self._maps, len(columns))
        return [*columns, *(places[columns[j]] if k in used else columns[j] for k, (j, places) in maps)]


def covering_scopes(
    scopes: Sequence[Sequence[int]], cardinalities: Sequence[int], largest: int
) -> list[tuple[int, ...]]:
    """Sets of variables, each of at most `largest` cells, such that every scope lies in one of them.

    Greedy: from the largest scope left, take in the variable that completes most other scopes for its size, as long as
    there is room. A scope that is larger by itself is a cover of its own.

    Parameters
    ----------
    scopes : sequence of sequences of int
        Positions of variables.
    cardinalities : sequence of int, length p
    largest : int

    Returns
    -------
    list of tuples of int, each increasing

    Examples
    --------
    >>> covering_scopes([(0, 1), (1, 2), (0, 2), (3,)], [2, 2, 2, 9], largest=8)
    [(3,), (0, 1, 2)]
    """
    sizes = np.log(np.asarray(cardinalities, dtype=np.float64))
    left = np.zeros((len(scopes), len(sizes)), dtype=np.int64)
    for row, scope in zip(left, scopes, strict=True):
        row[list(scope)] = 1
    left = np.unique(left, axis=0)
    covers = []
    while len(left):
        cover = left[np.argmax(left @ sizes)].copy()
        while True:
            # A scope that lacks one variable gives that variable a point.
            lacking = left * (1 - cover)
            points = lacking[lacking.sum(axis=1) == 1].sum(axis=0).astype(np.float64)
            room = sizes + cover @ sizes <= math.log(largest) + 1e-9
            points[~room] = 0.0
            if not points.any():
                break
            cover[np.argmax(points / np.maximum(sizes, 0.1))] = 1
        covers.append(tuple(int(j) for j in np.flatnonzero(cover)))
        left = left[(left * (1 - cover)).any(axis=1)]
    return covers


def marginal(table: np.ndarray, cover: Sequence[int], scope: Sequence[int]) -> np.ndarray:
    """Table of `scope` from that of a `cover` that contains it, with the axes in the order of the scope.

    Examples
    --------
    >>> marginal(np.array([[1, 2], [3, 4]]), (0, 5), (5,)).tolist()
    [4, 6]
    """
    kept = [variable for variable in cover if variable in scope]
    summed = table.sum(axis=tuple(k for k, variable in enumerate(cover) if variable not in scope), dtype=np.int64)
    return np.ascontiguousarray(summed.transpose([kept.index(variable) for variable in scope]))

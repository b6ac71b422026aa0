"""Exact tables of counts that are asked about again and again: thousands of small ones, in one array."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NoReturn

import numpy as np

from pgmpy_dp.private.sensitive import Sensitive

Scope = tuple[Hashable, ...]


class KeptTables:
    """Exact tables, each of its own variables; all with the same sensitivities.

    It shows nothing of what it holds and refuses to be copied or pickled.
    """

    __slots__ = ("_end", "_like", "_start", "_values")

    def __init__(self) -> None:
        self._values = np.empty(0, dtype=np.int64)
        self._end = 0
        self._start: dict[Scope, int] = {}
        self._like: Sensitive | None = None

    def __contains__(self, scope: Scope) -> bool:
        return scope in self._start

    def __repr__(self) -> str:
        return f"KeptTables(hidden, {len(self._start)} tables)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("kept tables cannot be copied or pickled: they hold exact statistics of private records")

    def add(self, scopes: Sequence[Scope], tables: Sequence[Sensitive]) -> None:
        """Keep some tables, in C order."""
        for scope, table in zip(scopes, tables, strict=True):
            like = self._like or table
            if (table.adjacency, table.l1, table.l2, table.linf) != (like.adjacency, like.l1, like.l2, like.linf):
                raise ValueError("kept tables have the same sensitivities")
            self._like = like
            end = self._end + table.value.size
            if end > len(self._values):
                grown = np.empty(2 * end, dtype=np.int64)
                grown[: self._end] = self._values[: self._end]
                self._values = grown
            self._values[self._end : end] = table.value.ravel()
            start, self._end = self._end, end
            self._start[scope] = start  # last: after an interrupt none has a place that another is written to

    def table(self, scope: Scope, shape: Sequence[int]) -> Sensitive:
        """One of the tables."""
        assert self._like is not None
        start = self._start[scope]
        value = self._values[start : start + math.prod(shape)].reshape(shape)
        return Sensitive(value, self._like.adjacency, self._like.l1, self._like.l2, self._like.linf)

    def joined(self, scopes: Sequence[Scope], sizes: np.ndarray) -> Sensitive:
        """Several tables, one after the other in one vector, with the sensitivities of each.

        Parameters
        ----------
        scopes : sequence of tuple
        sizes : ndarray of int, shape (len(scopes),)
            Cells of each: public.
        """
        assert self._like is not None
        starts = np.fromiter(map(self._start.__getitem__, scopes), dtype=np.int64, count=len(scopes))
        places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
        like = self._like
        return Sensitive(self._values[places], like.adjacency, like.l1, like.l2, like.linf)

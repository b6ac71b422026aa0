"""What the states of a model stand for: numbers and days of their cells, and states that were merged into them.

The one place where codes that a model draws become values, and where values that are known become states. How values
are distributed within a state is uniform, or said by the weights of a :class:`Values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pgmpy_dp.schema import Number

__all__ = ["Values"]


@dataclass(frozen=True, eq=False)
class Values:
    """The values of one variable within the states that a model has for it.

    Parameters
    ----------
    declared : Number or sequence of states
        What the values are: cells of numbers, within which they are uniform, or states.
    state : ndarray of int, optional
        Of each state of `declared`, the number of the model's state that it is part of; default: they are the model's.
    weights : ndarray of float, optional
        How likely each state of `declared` is among those of its state, up to a factor for each; not negative. By
        default, and where all are 0, cells count by their numbers of values, other states equally.

    Examples
    --------
    >>> age = Number(0, 40, cuts=[10, 20, 30], resolution=1, missing="drop")
    >>> merged = Values(age, state=np.array([0, 0, 0, 1]), weights=np.array([0.0, 3.0, 1.0, 1.0]))
    >>> merged.shares(15, 40).round(3)
    array([0.625, 1.   ])
    >>> merged.numbers(np.array([0, 1]), np.random.default_rng(0))
    array([13., 30.])
    """

    declared: Number | Sequence
    state: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def number(self) -> Number:
        """The declared number; TypeError where the values are states."""
        if not isinstance(self.declared, Number):
            raise TypeError(f"the values are the states {self.declared!r}, which are no numbers")
        return self.declared

    @cached_property
    def finer(self) -> tuple:
        """The states of `declared`."""
        return tuple(self.declared.states if isinstance(self.declared, Number) else self.declared)

    @cached_property
    def within(self) -> np.ndarray:
        """The probability of each state of `declared` given the model's state that it is part of."""
        if self.state is None:
            return np.ones(len(self.finer))
        sizes = np.ones(len(self.finer))
        if isinstance(self.declared, Number):
            edges = np.array(self.declared.edges)
            sizes[: len(edges) - 1] = np.diff(edges if self.declared.resolution is None else self.declared.firsts)
        weights = sizes if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        totals = np.bincount(self.state, weights)[self.state]
        weights = np.where(totals > 0, weights, sizes)
        return weights / np.bincount(self.state, weights)[self.state]

    def refined(self, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """States of `declared` for the model's states, drawn by their weights."""
        codes = np.asarray(codes)
        if self.state is None:
            return codes
        drawn = np.empty_like(codes)
        for code in np.unique(codes):
            here, parts = codes == code, np.flatnonzero(self.state == code)
            drawn[here] = generator.choice(parts, np.count_nonzero(here), p=self.within[parts])
        return drawn

    def numbers(self, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Numbers for the model's states, as :meth:`Number.draw` gives them: NaN for missing and for "outside"."""
        return self.number.draw(self.refined(codes, generator), generator)

    def shares(self, low: float | None = None, high: float | None = None, closed: str = "both") -> np.ndarray:
        """The probability that the number lies in a range, given each of the model's states; see `Number.shares`."""
        return self._by_state(self.within * self._of_cells(self.number.shares(low, high, closed)))

    def mean(self, probabilities: np.ndarray) -> float:
        """The mean of the numbers, missing ones and those outside left out, by the probabilities of the model's states.

        NaN where no number has any probability.
        """
        cells = self._cells(probabilities)
        return float(cells @ self.number.centres / cells.sum()) if cells.sum() > 0 else float("nan")

    def quantiles(self, probabilities: np.ndarray, levels: Sequence[float]) -> np.ndarray:
        """The least numbers below or at which such a share of all numbers is; missing as in :meth:`mean`.

        Examples
        --------
        >>> Values(Number(0, 40, cuts=[10], resolution=1)).quantiles(np.array([0.5, 0.3, 0.2]), [0.5, 1])
        array([ 7., 40.])
        """
        cells = self._cells(probabilities)
        if not cells.sum() > 0:
            return np.full(len(levels), np.nan)
        behind = np.cumsum(cells / cells.sum())
        wanted = np.asarray(levels, dtype=np.float64)
        # Rounding of the sum must not reach the next cell, nor one that has no probability.
        found = np.searchsorted(behind, np.minimum(wanted, behind[-1]) - 1e-12)
        found = np.minimum(np.maximum(found, np.flatnonzero(cells)[0]), np.flatnonzero(cells)[-1])
        position = 1 - (behind[found] - wanted) / (cells[found] / cells.sum())
        return self.number.within(np.clip(position, 0, 1), found)

    def _cells(self, probabilities: np.ndarray) -> np.ndarray:
        """The probabilities of the cells of the declared number."""
        given = np.asarray(probabilities, dtype=np.float64)
        given = given if self.state is None else given[self.state]
        return (self.within * given)[: len(self.number.cells)]

    def _of_cells(self, given: np.ndarray) -> np.ndarray:
        """With 0 for the states that are no cells."""
        return np.append(given, np.zeros(len(self.finer) - len(given)))

    def _by_state(self, given: np.ndarray) -> np.ndarray:
        return given if self.state is None else np.bincount(self.state, given)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form of what says how states are merged, without `declared`."""
        return {name: None if (v := getattr(self, name)) is None else np.asarray(v).tolist() for name in _MERGED}

    @classmethod
    def from_dict(cls, declared: Number | Sequence, content: dict) -> Values:
        """The inverse of :meth:`to_dict`."""
        return cls(declared, **{name: None if content[name] is None else np.array(content[name]) for name in _MERGED})


_MERGED = ("state", "weights")

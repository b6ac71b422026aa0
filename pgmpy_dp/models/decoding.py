"""From a model's states to values: the numbers and days of their cells, and states that were merged into them.

The one place where codes that a model draws become values, and where values that are known become states. How values
are distributed within a state is uniform, or said by the weights of a :class:`Values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pgmpy_dp.models.number_density import NumberDensity
from pgmpy_dp.schema import Number

Range = tuple[float | None, float | None, str]
"""Ends, None for a bound of the variable, and which of them belong to it: "both", "left", "right" or "neither"."""


@dataclass(frozen=True, eq=False)
class Values:
    """The values of one variable within the states that a model has for it.

    Parameters
    ----------
    declared : Number or sequence of states
        What the values are: cells of numbers, within which they are uniform, or states.
    state : ndarray of int, optional
        The number of the model's state that each state of `declared` is part of; default: they are the model's states.
    weights : ndarray of float, optional
        How likely each state of `declared` is among those of its state, up to a factor for each; not negative. By
        default, and where all are 0, cells count by their numbers of values, other states equally.
    noise : float, optional
        Standard deviation of the noise in a weight, for `ends`. Default: unknown, so that all weights may be noise.
    density : NumberDensity, optional
        The posterior whose mean the weights are, for `drawn_weights`.

    Examples
    --------
    >>> age = Number(0, 40, cuts=[10, 20, 30], resolution=1, missing="drop")
    >>> merged = Values(age, state=np.array([0, 0, 0, 1]), weights=np.array([0.0, 3.0, 1.0, 1.0]))
    >>> merged.shares(15, 40).round(3)
    array([0.625, 1.   ])
    >>> merged.numbers(np.array([0, 0, 1]), np.array([0.0, 0.5, 0.0]))
    array([10., 16., 30.])
    """

    declared: Number | Sequence
    state: np.ndarray | None = None
    weights: np.ndarray | None = None
    noise: float | None = None
    density: NumberDensity | None = None

    @property
    def number(self) -> Number:
        """The declared number; TypeError where the values are states."""
        if not isinstance(self.declared, Number):
            raise TypeError(f"the values are the states {self.declared!r}, which are not numbers")
        return self.declared

    @cached_property
    def finer(self) -> tuple:
        """The states of `declared`."""
        return tuple(self.declared.states if isinstance(self.declared, Number) else self.declared)

    @cached_property
    def places(self) -> np.ndarray:
        """The number of the model's state that each state of `declared` is part of."""
        return np.arange(len(self.finer)) if self.state is None else self.state

    def drawn_weights(self, rng: np.random.Generator) -> Values:
        """The same states, with weights drawn from their posterior; the object itself where that is unknown."""
        if self.density is None or self.weights is None:
            return self
        return self._weighing(self.density.draws(1, rng)[0])

    def same_draws(self, n_draws: int) -> list[Values]:
        """A number of `drawn_weights`, the same ones at each call."""
        if self.density is None or self.weights is None:
            return [self] * n_draws
        return [self._weighing(parts) for parts in self.density.same_draws(n_draws)]

    def _weighing(self, parts: np.ndarray) -> Values:
        """The same states with these weights of the parts of cells."""
        assert self.weights is not None
        return replace(self, weights=np.append(parts, self.weights[len(parts) :]))

    @cached_property
    def within(self) -> np.ndarray:
        """The probability of each state of `declared` given the model's state that it is part of."""
        if self.state is None:
            return np.ones(len(self.finer))
        sizes = np.ones(len(self.finer))
        if isinstance(self.declared, Number):
            sizes[: len(self.declared.cells)] = self.declared.widths
        weights = sizes if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        totals = np.bincount(self.state, weights)[self.state]
        weights = np.where(totals > 0, weights, sizes)
        return weights / np.bincount(self.state, weights)[self.state]

    def drawn(self, codes: np.ndarray, uniform: np.ndarray) -> tuple[Number | Sequence, np.ndarray]:
        """`declared` and its numbers, or its states and which of them; see :meth:`numbers` and :meth:`refined`."""
        if isinstance(self.declared, Number):
            return self.declared, self.rounded(self.numbers(codes, uniform))
        return self.finer, self.refined(codes, uniform)

    def refined(self, codes: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Turn the model's states into states of `declared`: where cumulative weights pass a number from [0, 1).

        Parameters
        ----------
        codes, uniform : ndarray of shape (n,)

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return self._placed(codes, uniform)[0]

    def numbers(self, codes: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Turn the model's states into numbers by the quantile function of each state, at a number from [0, 1).

        Parameters
        ----------
        codes : ndarray of int, shape (n,)
            Numbers of the model's states.
        uniform : ndarray of shape (n,)
            Where it is uniform, so are the numbers in each cell of `declared`.

        Returns
        -------
        ndarray of float64, shape (n,)
            NaN for missing and for "outside", of which no number is known.
        """
        number = self.number
        cell, position = self._placed(codes, uniform)
        known = cell < len(number.edges) - 1
        cell = np.where(known, cell, 0)
        if number.resolution is None:
            edges = np.array(number.edges)
            # Rounding may reach the upper end, which belongs to the next cell.
            largest = np.append(np.nextafter(edges[1:-1], -np.inf), edges[-1])
            drawn = np.clip(number.within(position, cell), edges[cell], largest[cell])
        else:
            sizes = np.diff(number.firsts)[cell]
            drawn = number.within((np.minimum(np.floor(position * sizes), sizes - 1) + 0.5) / sizes, cell)
        return np.where(known, drawn, np.nan)

    @np.errstate(divide="ignore", over="ignore")  # a cell of the upper bound alone has no width
    def rounded(self, drawn: np.ndarray) -> np.ndarray:
        """Numbers with two more digits than their cell is wide, within it; in a resolution they are as they were.

        Parameters
        ----------
        drawn : ndarray of float64, shape (n,)

        Returns
        -------
        ndarray of float64, shape (n,)

        Examples
        --------
        >>> Values(Number(0, 1, cuts=[0.25])).rounded(np.array([0.1234567, 0.2499999, 1.0]))
        array([0.123, 0.249, 1.   ])
        """
        number = self.number
        if number.resolution is not None:
            return drawn
        edges = np.array(number.edges)
        cell = np.clip(np.searchsorted(edges, drawn, side="right") - 1, 0, len(edges) - 2)
        digits = np.clip(2 - np.floor(np.log10(np.diff(edges))), -300, 300)
        scale = 10.0 ** np.abs(digits)
        up, scale = digits[cell] > 0, scale[cell]
        low, high = edges[cell], edges[cell + 1]

        def steps(x: np.ndarray) -> np.ndarray:
            return np.where(up, x * scale, x / scale)

        # The upper end belongs to the next cell, but for the last.
        last = np.where(cell == len(edges) - 2, np.floor(steps(high)), np.ceil(steps(high)) - 1)
        whole = np.minimum(np.rint(steps(drawn)), last)
        made = np.where(up, whole / scale, whole * scale) + 0.0
        fits = (made >= low) & ((made < high) | ((cell == len(edges) - 2) & (made <= high)))
        return np.where(fits, made, np.where(made < low, low, drawn))

    def _placed(self, codes: np.ndarray, uniform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state of `declared` at each quantile of its state, and the position in it, from 0 to 1."""
        codes, uniform = np.asarray(codes), np.asarray(uniform, dtype=np.float64)
        if self.state is None:
            return codes, uniform
        weights = self.within / np.bincount(self.state, self.within)[self.state]
        order = np.argsort(self.state, kind="stable")
        order = order[weights[order] > 0]
        behind = np.cumsum(weights[order])  # whole numbers where a state ends, but for rounding
        ends = np.searchsorted(self.state[order], np.arange(self.state.max() + 2))
        base = np.append(0.0, behind)[ends[codes]]
        index = np.searchsorted(behind, base + uniform, side="right")
        index = np.clip(index, ends[codes], ends[codes + 1] - 1)
        part = weights[order[index]]
        position = (uniform - (behind[index] - part - base)) / part
        return order[index], np.clip(position, 0, 1 - 2**-53)

    def divided(self, *ranges: Range) -> Values:
        """The same values, their cells divided where ranges begin and end: each part lies in a range, or outside of it.

        Examples
        --------
        >>> age = Values(Number(0, 40, cuts=[10], resolution=1, missing="drop")).divided((5, 12, "both"))
        >>> age.finer, age.state.tolist(), age.within.round(3).tolist()
        (('[0,5)', '[5,10)', '[10,13)', '[13,40]'), [0, 0, 1, 1], [0.5, 0.5, 0.097, 0.903])
        """
        number = self.number
        # The first value in each, and the first behind it; of real numbers without a cell of their own the end itself.
        ends = [(low, closed in ("both", "left")) for low, _, closed in ranges]
        ends += [(high, closed in ("left", "neither")) for _, high, closed in ranges]
        cuts = ((number.value_above(end, itself), end) for end, itself in ends if end is not None)
        finer = number.divided_at(end if cut is None else cut for cut, end in cuts)
        if finer is number:
            return self
        parts = Values(finer)
        cell = np.searchsorted(number.edges[1:-1], finer.edges[:-1], side="right")
        cell = np.append(cell, np.arange(len(number.cells), len(self.finer)))
        sizes = replace(parts, state=cell).within
        return replace(parts, state=self.places[cell], weights=self.within[cell] * sizes)

    def holds(self, low: float | None, high: float | None, closed: str) -> np.ndarray:
        """Whether each state of `declared` lies in a range that does not cut it."""
        return self._of_cells(self.number.shares(low, high, closed)) > 0.5

    def shares(self, low: float | None = None, high: float | None = None, closed: str = "both") -> np.ndarray:
        """The probability that the number lies in a range, given each of the model's states."""
        parts = self.divided((low, high, closed))
        return parts.by_state(parts.within * parts.holds(low, high, closed))

    def share(self, probabilities: np.ndarray) -> float:
        """The probability of a number that is neither missing nor outside, from those of the model's states."""
        return float(self._cells(probabilities).sum())

    def mean(self, probabilities: np.ndarray) -> float:
        """The mean of the numbers, missing ones and those outside left out, by the probabilities of the model's states.

        NaN where no number has any probability.
        """
        cells = self._cells(probabilities)
        return float(cells @ self.number.centres / cells.sum()) if cells.sum() > 0 else float("nan")

    @property
    def means(self) -> np.ndarray:
        """The mean of the numbers in each of the model's cells.

        Examples
        --------
        >>> age = Number(0, 40, cuts=[10, 20], missing="drop")
        >>> Values(age, state=np.array([0, 1, 1]), weights=np.array([1.0, 3.0, 1.0])).means
        array([ 5. , 18.75])
        """
        return self.moments(1)[: self.places[len(self.number.centres) - 1] + 1]

    def moments(self, power: int) -> np.ndarray:
        """The mean of a power of the numbers in each of the model's states, 0 without any."""
        return self.by_state(self._of_cells(self.number.centres**power) * self.within)

    def quantiles(self, probabilities: np.ndarray, levels: Sequence[float]) -> np.ndarray:
        """Quantiles of the numbers, each the least at or below which so many are; missing as in :meth:`mean`.

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
        cell = np.searchsorted(behind, np.minimum(wanted, behind[-1]) - 1e-12)
        cell = np.minimum(np.maximum(cell, np.flatnonzero(cells)[0]), np.flatnonzero(cells)[-1])
        position = 1 - (behind[cell] - wanted) / (cells[cell] / cells.sum())
        return self.number.within(np.clip(position, 0, 1), cell)

    @cached_property
    def piled(self) -> dict[int, tuple[float, float]]:
        """The cells of `declared` in which numbers pile up, each with the ends of the narrowest cell that was counted.

        A spike of one value looks the same as many different ones within it.
        """
        if self.density is None:
            return {}
        cells, number = self.density.cell, self.number
        parts = np.flatnonzero(self.density.piled[cells])
        first, last = np.searchsorted(cells, cells[parts]), np.searchsorted(cells, cells[parts], side="right") - 1
        low, high = number.within(np.zeros(len(parts)), first), number.within(np.ones(len(parts)), last)
        return dict(zip(parts.tolist(), zip(low.tolist(), high.tolist(), strict=True), strict=True))

    def piled_share(self, probabilities: np.ndarray) -> dict[tuple[float, float], float]:
        """The share of the numbers in each cell in which they pile up, by its ends."""
        cells, shares = self._cells(probabilities), dict.fromkeys(self.piled.values(), 0.0)
        for part, ends in self.piled.items():
            shares[ends] += float(cells[part] / max(cells.sum(), 1e-300))
        return shares

    def reach(self, probabilities: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A mean and quantiles at least and at most, wherever numbers are in cells in which they pile up."""
        low, high = values.copy(), values.copy()
        for (lower, upper), share in self.piled_share(probabilities).items():
            inside = (values >= lower) & (values <= upper)
            inside[0] = False
            low[inside], high[inside] = lower, upper
            half = share * (upper - lower) / 2
            low[0], high[0] = low[0] - half, high[0] + half
        return low, high

    def ends(self, probabilities: np.ndarray, levels: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the mean and of quantiles, wherever values may lie within their states.

        Parameters
        ----------
        probabilities, levels
            As :meth:`quantiles` takes them.

        Returns
        -------
        lower, upper : ndarray of shape (1 + len(levels),)
            Of the mean, then of each quantile.

        Notes
        -----
        *Within a cell* a quantile may be any value. The mean of a cell's values may lie off its centre, towards its
        ends, by the relative difference between its density and a neighbour's: all the way where a neighbour is empty
        or absent, as beside a spike. *Within a state* of several cells, the part of its weights that may be noise may
        be anywhere.

        Examples
        --------
        >>> thirds = Values(Number(0, 30, cuts=[10, 20], missing="drop"))
        >>> [end.round(2).tolist() for end in thirds.ends(np.array([0.6, 0.3, 0.1]), [0.5])]
        [[5.0, 0.0], [15.0, 10.0]]
        """
        number, cells = self.number, self._cells(probabilities)
        if not cells.sum() > 0:
            return np.full(1 + len(levels), np.nan), np.full(1 + len(levels), np.nan)
        every, centres = np.arange(len(cells)), number.centres
        sizes = number.widths
        density = np.pad(cells / sizes, 1)
        change = np.maximum(np.abs(np.diff(density[:-1])), np.abs(np.diff(density[1:])))
        apart = np.minimum(np.divide(change, density[1:-1], out=np.ones(len(cells)), where=cells > 0), 1.0)
        shares = cells / cells.sum()
        behind = np.cumsum(shares)
        possible = np.flatnonzero(cells)

        def at(level: np.ndarray) -> np.ndarray:
            return np.clip(np.searchsorted(behind, np.minimum(level, behind[-1]) - 1e-12), possible[0], possible[-1])

        states = self.places[: len(cells)]
        unsure, held = self._unsure[states], np.bincount(states, shares)[states]
        last, cell = np.zeros(states.max() + 1), at(np.asarray(levels))
        np.maximum.at(last, states, behind)
        ends = []
        for sign, position, furthest in ((-1.0, 0.0, np.minimum), (1.0, 1.0, np.maximum)):
            edge = number.within(np.full(len(cells), position), every)
            whole = np.full(states.max() + 1, -sign * np.inf)
            furthest.at(whole, states, edge)  # of all cells of a state
            means = centres + apart * (edge - centres)
            means += unsure * (whole[states] - means)
            # As much of a state may lie on the other side of the quantile.
            level = levels + sign * (unsure * held)[cell]
            # A cell of the state without weight, beyond those that have some, may hold as much.
            end = last[states][cell]
            beyond = level >= end if sign > 0 else level <= end - held[cell]
            ends.append(np.append(shares @ means, np.where(beyond, whole[states][cell], edge[at(level)])))
        return ends[0], ends[1]

    @cached_property
    def _unsure(self) -> np.ndarray:
        """The part of each state's weights that may be noise; 0 where the state is one cell."""
        count = np.bincount(self.places)
        if self.weights is None:
            return (count > 1).astype(float)
        held = np.bincount(self.places, self.weights)
        noise = np.inf if self.noise is None else self.noise
        # Sums of m cells have the noise of sqrt(m), and what is below it counts as empty (`likely_proportions`).
        part = np.divide(3.0 * noise * np.sqrt(count), held, out=np.ones(len(held)), where=held > 0)
        return np.where(count > 1, np.minimum(part, 1.0), 0.0)

    def _cells(self, probabilities: np.ndarray) -> np.ndarray:
        """The probabilities of the cells of the declared number."""
        shares = np.asarray(probabilities, dtype=np.float64)[self.places]
        return (self.within * shares)[: len(self.number.edges) - 1]

    def _of_cells(self, values: np.ndarray) -> np.ndarray:
        """The numbers of the cells, followed by 0 for the states that are no cells."""
        return np.append(values, np.zeros(len(self.finer) - len(values)))

    def by_state(self, values: np.ndarray) -> np.ndarray:
        """Sum values of the states of `declared` over each of the model's states."""
        return values if self.state is None else np.bincount(self.state, values)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form of how states are merged, without `declared`."""
        said = {name: None if (v := getattr(self, name)) is None else np.asarray(v).tolist() for name in _MERGED}
        density = {} if self.density is None else {"density": self.density.to_dict()}
        return said | ({} if self.noise is None else {"noise": self.noise}) | density

    @classmethod
    def from_dict(cls, declared: Number | Sequence, content: dict) -> Values:
        """The inverse of :meth:`to_dict`."""
        said = {name: None if content[name] is None else np.array(content[name]) for name in _MERGED}
        told = content.get("density")
        density = NumberDensity.from_dict(declared, told) if told and isinstance(declared, Number) else None
        return cls(declared, **said, noise=content.get("noise"), density=density)


_MERGED = ("state", "weights")

"""Numbers that rules order, drawn together within the cells that a model drew."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import Evidence
from pgmpy_dp.schema import Number
from pgmpy_dp.schema.orders import OrderRule, Orders, along_paths, steps

_Cells = tuple[Values, np.ndarray]

_AT_ONCE = 1 << 20  # numbers that are drawn to choose from
_TRIES, _MOST = 20, 64  # of them and of one record's in each, before the rest are drawn evenly in what the rules leave
_RARE = 1e-3  # the part of a difference's cell that these leave out at each end, which may be far off


def ordered(
    orders: Orders,
    sources: Mapping[Hashable, Values | Evidence],
    codes: Mapping[Hashable, np.ndarray],
    numbers: Mapping[Hashable, np.ndarray],
    rng: Generator,
) -> dict[Hashable, np.ndarray]:
    """Numbers that obey the rules, each in its cell.

    Parameters
    ----------
    orders : Orders
        Of the model's schema.
    sources : mapping of name to Values or Evidence
        Of the numbers that rules or differences name: what draws them within their states.
    codes, numbers : mapping of name to ndarray of shape (n,)
        The states that were drawn, and numbers within each, drawn apart; NaN for missing.

    Returns
    -------
    dict of name to ndarray of shape (n,)

    Notes
    -----
    Where the model has the difference of two numbers, the second is the first plus a difference from its cell. What is
    drawn so is accepted if all numbers are in their cells and obey: the law is that of independent numbers within
    cells, given the rules. What is not accepted in many tries, since hardly anything of the cells can be, is drawn
    evenly in what the rules leave there, one number after the other.
    """
    values = {name: one.values if isinstance(one, Evidence) else one for name, one in sources.items()}
    pinned = {name: one for name, one in sources.items() if isinstance(one, Evidence) and one.numbers}
    drawn = {name: np.array(column) for name, column in numbers.items()}
    ends = [name for name in drawn if name not in orders.differences]
    present = np.array([~np.isnan(drawn[name]) for name in ends]).T
    for pattern in np.unique(present[present.sum(axis=1) > 1], axis=0) if len(present) else ():
        names = [name for name, known in zip(ends, pattern, strict=True) if known]
        plan, least = _plan(orders, names, pinned), orders.closed(names)
        rows = np.flatnonzero((present == pattern).all(axis=1))
        for attempt in range(_TRIES):
            each = min(max(_AT_ONCE // max(len(rows), 1), 1), _MOST) if attempt else 1
            records = np.repeat(rows, each)
            cells = {name: (one, codes[name][records]) for name, one in values.items()}
            made: dict[Hashable, np.ndarray] = {}
            for name, (start, source, sign) in plan.items():
                column, number = drawn[source][records], values[name].number
                if attempt:  # not rounded: a difference may be less than a digit
                    of, uniform = cells[source][1], rng.random(len(records))
                    column = values[source].numbers(of, uniform)
                    if source in pinned:
                        column = pinned[source].drawn(of, uniform)[1]
                made[name] = _valued(number, steps(number, made[start] + sign * column)) if sign else column
            at = np.array([steps(values[name].number, made[name]) for name in names])
            good: Any = np.ones(len(records), dtype=bool)
            for i, j in np.argwhere(np.isfinite(least)):
                good &= at[i] - at[j] <= least[i, j]
            for name in names:
                good &= _in_cell(*cells[name], made[name])
            first, good = good.reshape(-1, each).argmax(axis=1), good.reshape(-1, each).any(axis=1)
            for name in names:
                drawn[name][rows[good]] = made[name].reshape(-1, each)[good, first[good]]
            if not len(rows := rows[~good]):
                break
        cells = {name: (one, codes[name][rows]) for name, one in values.items()}
        known = {
            name: np.where(np.isin(codes[name][rows], [*one.numbers]), drawn[name][rows], np.nan)
            for name, one in pinned.items()
        }
        for name, column in _evenly(orders, names, cells, known, rng).items():
            drawn[name][rows] = column
    return drawn


def ordered_groups(
    rules: Sequence[OrderRule],
    wholes: Mapping[Hashable, tuple[Values, np.ndarray, np.ndarray]],
    parts: Mapping[Hashable, tuple[Values, np.ndarray, np.ndarray]],
    rng: Generator,
) -> dict[Any, np.ndarray]:
    """Numbers of groups of parts that obey rules on a part and its whole, each in its cell: as `ordered` draws them.

    Parameters
    ----------
    rules : sequence of OrderRule
    wholes : mapping of name to (Values, ndarray, ndarray), of shape (n,)
        What draws a number within its states, the states that were drawn, and numbers within each, drawn apart.
    parts : mapping of name to (Values, ndarray, ndarray), of shape (n, most)
        The same of each part; NaN where there is none.

    Returns
    -------
    dict of name to ndarray, of the same shapes
    """
    most = max((numbers.shape[1] for *_, numbers in parts.values()), default=1)
    columns: dict[Any, Any] = {(name, -1): one for name, one in wholes.items()}
    for name, (values, states, drawn) in parts.items():
        columns |= {(name, k): (values, states[:, k], drawn[:, k]) for k in range(most)}

    def of(name: Hashable, k: int) -> tuple[Hashable, int]:
        return (name, k if name in parts else -1)

    every = [replace(rule, low=of(rule.low, k), high=of(rule.high, k)) for rule in rules for k in range(most)]
    orders = Orders(every, {key: one.number for key, (one, *_) in columns.items()})
    sources, codes, numbers = (dict[Any, Any]({key: one[i] for key, one in columns.items()}) for i in range(3))
    made = ordered(orders, sources, codes, numbers, rng)
    return {name: made[name, -1] for name in wholes} | {
        name: np.stack([made[name, k] for k in range(most)], axis=1) for name in parts
    }


def contradiction(
    orders: Orders, known: Mapping[Hashable, Evidence], of_all: bool = False
) -> tuple[Hashable, Hashable] | None:
    """Two variables whose evidence the rules never let be true of both; what may be missing fulfils them.

    With `of_all` also where this is so of one of several numbers: which one is drawn does not depend on the others.
    """
    names = [name for name in known if name in orders.names]
    ends, said = np.empty((2, len(names))), np.full((2, len(names)), np.nan)
    for k, one in enumerate(map(known.__getitem__, names)):
        codes = np.flatnonzero(one.likely)
        of_states = np.array(_ends(one.values, codes))
        for code, numbers in one.numbers.items():
            least, most = (float(steps(one.values.number, end)) for end in (min(numbers), max(numbers)))
            of_states[:, codes == code] = [[least], [most]]
            said[:, k] = np.fmax(said[0, k], most), np.fmin(said[1, k], least)
        ends[:, k] = of_states[0].min(), of_states[1].max()  # NaN where it may be missing
    if of_all:
        ends = np.where(np.isnan(said), ends, said)
    apart = ends[0][:, None] - ends[1]
    beyond = np.argwhere((apart > orders.closed(names)) & ~np.eye(len(names), dtype=bool))
    return None if not len(beyond) else (names[beyond[0, 0]], names[beyond[0, 1]])


def _plan(
    orders: Orders, names: list[Hashable], pinned: Iterable[Hashable]
) -> dict[Hashable, tuple[Hashable, Hashable, int]]:
    """How each number is made: of which one before, and what is added to it (1), or subtracted; 0: of itself."""
    plan: dict[Hashable, tuple[Hashable, Hashable, int]] = {name: (name, name, 0) for name in names if name in pinned}
    ties = [(b, (a, d, s)) for d, pair in orders.differences.items() for a, b, s in ((*pair, 1), (*pair[::-1], -1))]
    while left := [name for name in names if name not in plan]:
        itself = (left[0], (left[0], left[0], 0))
        name, how = next((tie for tie in ties if tie[0] in left and tie[1][0] in plan), itself)
        plan[name] = how
    return plan


def _in_cell(values: Values, codes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Whether numbers are in the model's states with these codes, where these have any weight."""
    number = values.number
    cell = np.searchsorted(number.edges[1:-1], numbers, side="right")
    known = (values.places[cell] == codes) & (values.within[cell] > 0)
    return known & (numbers >= number.lower) & (numbers <= number.upper)


def _evenly(
    orders: Orders,
    names: list[Hashable],
    cells: Mapping[Hashable, _Cells],
    known: Mapping[Hashable, np.ndarray],
    rng: Generator,
) -> dict[Hashable, np.ndarray]:
    """Numbers of some records, each drawn evenly in what the rules, known ones (else NaN) and those before leave.

    Where cells do not go with differences, which each two of them may do and all not, numbers are as near their cells
    as differences let them be: in a wide cell, of two of these, a stay of three days would be one of a year.
    """
    ends = {name: _ends(*cells[name]) for name in names}
    for name, column in known.items():
        at = steps(cells[name][0].number, column)
        ends[name] = [np.where(np.isnan(at), end, at) for end in ends.get(name) or _ends(*cells[name])]
    low, high = near = np.array([ends[name] for name in names]).swapaxes(0, 1)
    least = np.repeat(orders.closed(names)[:, :, None], low.shape[1], axis=2)
    apart = least.copy()
    for difference, pair in orders.differences.items():
        if set(pair) <= set(names):
            lower, upper = ends.get(difference) or _ends(*cells[difference], _RARE)
            i, j = map(names.index, pair)
            apart[i, j], apart[j, i] = np.fmin(apart[i, j], -lower), np.fmin(apart[j, i], upper)
    apart = along_paths(apart)

    def beyond() -> np.ndarray:
        return (low[:, None] - high[None] > apart).any(axis=(0, 1))

    numbers = [cells[name][0].number for name in names]
    bounds = np.array([[float(steps(n, n.lower)) for n in numbers], [float(steps(n, n.upper)) for n in numbers]])
    free = np.array([np.isnan(known.get(name, np.full(low.shape[1], np.nan))) for name in names])
    low, high = np.where(free & beyond(), bounds[:, :, None], near)
    apart = np.where(beyond(), least, apart)
    for k, number in enumerate(numbers):
        top, bottom = np.min(high + apart[k], axis=0), np.max(low - apart[:, k], axis=0)
        bottom, top = np.clip(near[:, k], bottom, top)
        at = bottom + rng.random(low.shape[1]) * (top - bottom + (number.resolution is not None))
        at = at if number.resolution is None else np.minimum(np.floor(at), top)
        low[k] = high[k] = np.where(free[k], at, near[0, k])
    return {name: _valued(number, row) for name, number, row in zip(names, numbers, low, strict=True)}


def _ends(values: Values, codes: np.ndarray, rare: float = 0.0) -> list[np.ndarray]:
    """The least and the largest number, in steps, of some states of the model, without rare ones at both ends."""
    levels = (np.full(len(codes), level) for level in (rare, 1 - max(rare, 2**-53)))
    return [steps(values.number, values.numbers(codes, level)) for level in levels]


def _valued(number: Number, at: np.ndarray) -> np.ndarray:
    """Values that are so many steps from 0, as :func:`~pgmpy_dp.schema.orders.steps` counts them: no 0.1 + 0.2."""
    if number.resolution is None or (number.whole and number.resolution == 1):
        return at
    above, places = np.unique(at - float(steps(number, number.lower)), return_inverse=True)
    return np.array(number.values_at(above.astype(int)))[places]

"""Public rules that order two numbers or two days, and what they leave of several variables together.

``checkin <= checkout``, ``low < high`` and ``discharge <= admission + 365`` are rules about records where both sides
are known: one that lacks a side fulfils them. Rules about some variables are bounds of differences, which add up along
a path: from ``a <= b`` and ``b <= c`` follows ``a <= c``. Of cells, what they leave is a :class:`Relation`.

A :class:`~pgmpy_dp.Number` may be *the difference of* two others. Its relation to them is no table of what can be and
what cannot: it says how likely each cell of one is given the cells of the other two, values even within their cells.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pgmpy_dp.schema.number import Number, number_text

_SIGN = re.compile(r"(.*?)(<=|>=|<|>)(.*)", re.DOTALL)
_SHIFT = re.compile(r"(.*\S)\s*([+-])\s*(\d+\.?\d*|\.\d+)\s*", re.DOTALL)
_CLOSE = 1e-9  # of a step: that two numbers are apart by whole ones
_LEAST = 1e-9  # the probability of a cell that can be, however rarely


@dataclass(frozen=True)
class OrderRule:
    """A rule that a number is at most another and a constant. Its text is read back as the same rule.

    Attributes
    ----------
    low, high : hashable
    shift : float
        What is added to `high`.
    strict : bool
        Whether both sides must differ.
    names : frozenset
    """

    low: Hashable
    high: Hashable
    shift: float = 0.0
    strict: bool = False
    names: frozenset = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset((self.low, self.high)))

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        shift = f" {'-' if self.shift < 0 else '+'} {number_text(abs(self.shift))}" if self.shift else ""
        return f"{_written(self.low)} {sign} {_written(self.high)}{shift}"

    def cuts(self, column: Any) -> list[float]:
        """Nothing: it divides no number by itself."""
        return []

    def boxes(self, columns: Any) -> list:
        """Nothing: see :class:`Orders`, since several such rules say more than each."""
        return []


def read_order(text: str, columns: Mapping[Hashable, Any]) -> OrderRule | None:
    """The rule that is written so; None where the text does not compare two variables.

    Raises
    ------
    ValueError
        For variables that cannot be compared: without numbers, a day with a number, of unequal resolutions. For > and
        >=, which do not say whether what they compare always holds or never.

    Examples
    --------
    >>> from pgmpy_dp.schema.rules import Column
    >>> columns = {name: Column(name, None, Number(0, 9, resolution=1)) for name in ("low", "high")}
    >>> str(read_order("low < high - 2", columns)), str(read_order("low + 2 < high", columns))
    ('low < high - 2', 'low < high - 2')
    """
    if "->" in text or not (match := _SIGN.fullmatch(text)):
        return None
    low, high = (_side(side, columns) for side in (match[1], match[3]))
    if low is None or high is None:
        return None
    if match[2][0] == ">":  # among what is impossible it would be read as either
        never = f"{match[1].strip()} {'<=' if match[2] == '>' else '<'} {match[3].strip()}"
        raise ValueError(
            f"has {match[2]} between two variables, which may be what always holds or what never does; write what "
            f"holds with < or <=: {never} where this is never so"
        )
    rule = OrderRule(low[0], high[0], high[1] - low[1] + 0.0, len(match[2]) == 1)
    numbers = [columns[name].declared for name in (rule.low, rule.high)]
    if lacking := [n for n, number in zip((rule.low, rule.high), numbers, strict=True) if number is None]:
        raise ValueError(f"compares two variables, and {lacking[0]!r} has no numbers; declare it a Number or a Date")
    if rule.low == rule.high:
        raise ValueError(f"compares {rule.low!r} with itself; name two variables")
    _require_alike(rule, *numbers)
    above = numbers[0].upper - numbers[1].lower - rule.shift
    if above < 0 or (above == 0 and not rule.strict):
        raise ValueError("forbids nothing: the bounds of its two numbers say as much; correct or remove it")
    return rule


def _side(text: str, columns: Mapping[Hashable, Any]) -> tuple[Hashable, float] | None:
    """The variable of one side of a comparison, and what is added to it; None where no single one is written so."""
    text = text.strip()
    match = _SHIFT.fullmatch(text)
    for word, shift in ((text, 0.0), *([(match[1], float(match[2] + match[3]))] if match else [])):
        if len(word) > 1 and word[0] in "`\"'" and word[-1] == word[0]:
            word = word[1:-1].replace(word[0] * 2, word[0])
        matches = [name for name in columns if str(name) == word]
        if len(matches) == 1:
            return matches[0], shift
    return None


def _written(name: Hashable) -> str:
    return str(name) if re.fullmatch(r"[^\W\d]\w*", str(name)) else "`" + str(name).replace("`", "``") + "`"


def _require_alike(rule: OrderRule, low: Number, high: Number) -> None:
    if low.kind != high.kind:
        raise ValueError(
            f"compares {rule.low!r}, a {low.kind}, with {rule.high!r}, a {high.kind}; compare like with like"
        )
    if low.resolution != high.resolution:
        raise ValueError(
            f"compares {rule.low!r} and {rule.high!r}, whose resolutions are {low.resolution} and {high.resolution}; "
            "declare both with the same, for values of one would lie between values of the other"
        )
    step = low.resolution
    for what, apart in (("the constant", rule.shift), ("the distance of their lower bounds", high.lower - low.lower)):
        if step is not None and abs(apart / step - round(apart / step)) > _CLOSE:
            raise ValueError(
                f"has {what} {number_text(apart)}, which is no multiple of the resolution {step:g}; change it"
            )


@dataclass(frozen=True, eq=False)
class Relation(dict[Hashable, frozenset[int]]):
    """What public rules say of cells of several variables together. As a mapping it has their names, and no states.

    Parameters
    ----------
    names : tuple of hashable
    numbers : tuple of Number
        Divided.
    bound : float
        The first variable is at most so many steps above the last, where all are known.
    is_difference : bool
        Whether the last of three is the second less the first.
    within : mapping of name to (Number, ndarray, ndarray)
        Of some of them finer cells, the cell of each, and its probability there. By default values are even in a cell.
    """

    names: tuple[Hashable, ...]
    numbers: tuple[Number, ...]
    bound: float = 0.0
    is_difference: bool = False
    within: Mapping[Hashable, tuple[Number, np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.update(dict.fromkeys(self.names, frozenset[int]()))

    @cached_property
    def log_weights(self) -> np.ndarray:
        """Log-potentials of the cells, axes as in `names`: -inf where nothing can be."""
        with np.errstate(divide="ignore"):
            return np.log(self._of_difference() if self.is_difference else self._of_order())

    def log_weights_in(self, scope: Sequence[Hashable]) -> np.ndarray:
        """The same for a table of more variables, of as many axes as it has."""
        order = sorted(range(len(self.names)), key=lambda axis: scope.index(self.names[axis]))
        sizes = [self.log_weights.shape[self.names.index(name)] if name in self.names else 1 for name in scope]
        return self.log_weights.transpose(order).reshape(sizes)

    def boxes(self) -> list[dict[Any, list]]:
        """What an order forbids, by the names of states: of cells of the first those of the last that none goes with.

        Examples
        --------
        >>> low, high = Number(0, 8, cuts=[2, 4], resolution=1), Number(0, 8, cuts=[3, 6], resolution=1)
        >>> Relation(("low", "high"), (low, high)).boxes()  # low <= high
        [{'low': ['[4,8]'], 'high': ['[0,3)']}]
        """
        possible = self._of_order().swapaxes(1, -1)  # of the first, of the last, and of those between
        never = [tuple(np.flatnonzero(rows.reshape(len(rows), -1)[:, 0] == 0).tolist()) for rows in possible]
        known = [number.states[: len(number.cells)] for number in self.numbers]
        between = dict(zip(self.names[1:-1], map(list, known[1:-1]), strict=True))
        cells = {one: [state for state, mine in zip(known[0], never, strict=False) if mine == one] for one in never}
        ends = [(some, [known[-1][k] for k in one]) for one, some in cells.items() if one]
        return [{self.names[0]: low, **between, self.names[-1]: high} for low, high in ends]

    def _parts(self, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Edges of finer cells of a number, and how likely each is in each cell."""
        number = self.numbers[place]
        n_cells = len(number.cells)
        finer, state, likely = self.within.get(self.names[place], (number, np.arange(n_cells), np.ones(n_cells)))
        edges, part_of = _of_width(cell_edges(finer))
        matrix = np.zeros((n_cells, len(edges) - 1))
        np.add.at(matrix, (state[: len(part_of)], part_of), likely[: len(part_of)])
        return edges, matrix

    def _of_order(self) -> np.ndarray:
        low, high = cell_edges(self.numbers[0])[:-1], cell_edges(self.numbers[-1])[1:]  # the first value behind each
        between = tuple(range(1, len(self.numbers) - 1))
        possible = np.ones([len(number.states) for number in self.numbers])
        known = tuple(slice(len(number.cells)) for number in self.numbers)
        possible[known] = np.expand_dims(low[:, None] - high < self.bound, between)
        return possible

    def _of_difference(self) -> np.ndarray:
        first, second, apart = (cell_edges(number) for number in self.numbers)
        whole = self.numbers[0].resolution is not None
        (a, in_a), (g, in_g) = self._parts(0), self._parts(2)
        widths = np.diff(g)
        sizes = np.diff(a)[:, None] * widths
        below = []
        ends_of_second, place = _of_width(second)
        for edge in ends_of_second:  # of the pairs of a value of the first and a difference, those with a smaller sum
            pairs = 0.0
            for sign, low in ((1, a[:-1, None] + g[:-1]), (-1, a[1:, None] + g[:-1])):
                left = np.maximum(edge - low, 0.0)
                ends = np.maximum(left - widths, 0.0)
                pairs = pairs + sign * (left * (left + whole) - ends * (ends + whole)) / 2
            below.append(in_a @ (pairs / sizes) @ in_g.T)
        can = first[:-1, None] + apart[:-1] < second[1:, None, None]
        can &= first[1:, None] + apart[1:] - whole > second[:-1, None, None]
        weights = np.zeros([len(number.states) for number in self.numbers])
        m, n, k = can.shape
        weights[:n, :m, :k] = np.where(can, np.maximum(np.diff(below, axis=0)[place], _LEAST), 0.0).transpose(1, 0, 2)
        if None in self.numbers[2].states:
            unknown = self.numbers[2].states.index(None)
            weights[n:, :, unknown] = weights[:, m:, unknown] = 1.0
        return weights


def cell_edges(number: Number) -> np.ndarray:
    """The least value of each cell, in steps of the resolution from 0 where there is one; then the first value behind.

    Examples
    --------
    >>> cell_edges(Number(0.5, 4.5, cuts=[2.5], resolution=0.5)).tolist()
    [1.0, 5.0, 10.0]
    """
    if number.resolution is None:
        return np.array(number.edges)
    return number.firsts + float(steps(number, number.lower))


def _of_width(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges without cells of one real number, which are taken for parts of a neighbour; each cell's place among these.

    Examples
    --------
    >>> edges, place = _of_width(np.array([0.0, np.nextafter(0.0, 1.0), 2.0, np.nextafter(4.0, 0.0), 4.0]))
    >>> edges.tolist(), place.tolist()
    ([0.0, 2.0, 4.0], [0, 0, 1, 1])
    """
    points = np.flatnonzero(np.diff(edges) <= _CLOSE * (edges[-1] - edges[0]))
    kept = np.delete(edges, np.where(points + 1 == len(edges) - 1, points, points + 1))
    middles = edges[:-1] + np.diff(edges) / 2
    return kept, np.clip(np.searchsorted(kept, middles, side="right") - 1, 0, len(kept) - 2)


def steps(number: Number, value: Any) -> Any:
    """A value in steps of the resolution from 0, or as it is where there is none; below a step it is cut off."""
    if number.resolution is None:
        return value
    start = math.floor(number.lower / number.resolution + _CLOSE)
    return start + np.floor((value - number.lower) / number.resolution + _CLOSE)


def along_paths(bounds: np.ndarray) -> np.ndarray:
    """The least sum of bounds along a path from each to each, of an array of shape (k, k, ...)."""
    for k in range(len(bounds)):
        bounds = np.minimum(bounds, bounds[:, k : k + 1] + bounds[k : k + 1])
    return bounds


class Orders:
    """Bounds of differences of some numbers, by rules and by declared differences.

    Parameters
    ----------
    rules : sequence of OrderRule
        Other rules are left out.
    numbers : mapping of name to Number
        All numbers of a schema.

    Attributes
    ----------
    bounds : dict of (name, name) to float
        How many steps the first is above the second at most, of each pair that a rule or a difference names.
    differences : dict of name to (name, name)
        Of each difference what is subtracted, and from what.

    Raises
    ------
    ValueError
        If no numbers within their bounds fulfil all rules.
    """

    def __init__(self, rules: Sequence[Any], numbers: Mapping[Hashable, Number]) -> None:
        self.numbers, self.bounds = numbers, dict[tuple[Hashable, Hashable], float]()
        for rule in (one for one in rules if isinstance(one, OrderRule)):
            step = numbers[rule.low].resolution
            self._bound(rule.low, rule.high, rule.shift if step is None else round(rule.shift / step) - rule.strict)
        self.differences = {n: one.of[::-1] for n, one in numbers.items() if one.of and numbers.keys() >= {*one.of}}
        for name, (first, second) in self.differences.items():
            low, high = (float(steps(numbers[name], end)) for end in (numbers[name].lower, numbers[name].upper))
            self._bound(first, second, -low)
            self._bound(second, first, high)
        self._tied = set(map(frozenset, self.differences.values()))  # pairs whose bounds their difference has
        self.names = tuple(name for name in numbers if any(name in pair for pair in self.bounds))
        least = self.closed(self.names)
        ends = [(float(steps(n, n.lower)), float(steps(n, n.upper))) for n in map(numbers.__getitem__, self.names)]
        for (i, (low, _)), (j, (_, high)) in itertools.product(enumerate(ends), repeat=2):
            if low - high > least[i, j] or least[i, i] < 0:
                raise ValueError(
                    f"impossible: rules leave no numbers possible for {self.names[i]!r} and {self.names[j]!r} "
                    "together; correct or remove one"
                )

    def _bound(self, one: Hashable, other: Hashable, most: float) -> None:
        self.bounds[one, other] = min(most, self.bounds.get((one, other), math.inf))

    def closed(self, names: Sequence[Hashable]) -> np.ndarray:
        """The least bound of each pair of some variables, along any path through these: shape (k, k)."""
        bounds = [[0.0 if a == b else self.bounds.get((a, b), math.inf) for b in names] for a in names]
        return along_paths(np.array(bounds))

    def relations(self) -> list[Relation]:
        """What the bounds leave of cells of divided variables; along paths, where that is more than of pairs."""
        paths: list[tuple[tuple[Hashable, ...], float]] = list(self.bounds.items())
        for path, bound in paths:  # grows
            for (a, b), further in self.bounds.items():
                if a == path[-1] and b not in path and bound + further < self.bounds.get((path[0], b), math.inf):
                    paths.append(((*path, b), bound + further))
        made = [(path, bound, False) for path, bound in paths if {path[0], path[-1]} not in self._tied]
        made += [((*ends, name), 0.0, True) for name, ends in self.differences.items()]
        made = [one for one in made if all(self.numbers[n].divided for n in one[0])]
        return [Relation(names, tuple(map(self.numbers.__getitem__, names)), bound, of) for names, bound, of in made]

    def new_differences(self) -> dict[Hashable, Number]:
        """A number for the difference of each pair that a rule orders and that has none, both not divided."""
        made = dict[Hashable, Number]()
        for first, second in self.bounds:
            one, other = self.numbers[first], self.numbers[second]
            if one.divided or other.divided or {first, second} in self._tied or f"{first} - {second}" in made:
                continue
            step = one.resolution or 1.0
            low = max(-self.bounds[first, second] * step, other.lower - one.upper)
            high = min(self.bounds.get((second, first), math.inf) * step, other.upper - one.lower)
            name = f"{second} - {first}"
            alike = (0.0,) if one.resolution is None and low <= 0.0 <= high else ()  # real numbers that are one
            if low < high and name not in self.numbers:
                made[name] = Number(
                    low, high, resolution=one.resolution, spikes=alike, outside="state", of=(second, first)
                )
        return made

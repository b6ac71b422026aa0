"""Variables whose values are numbers: public bounds, what a table divides them into, how a cell is read.

A table has cells of numbers, not numbers. :class:`Number` says which: by cuts, by equal bins, or by a fine grid that a
release merges later. Everything here is public, and a function of the declaration and of one cell: no record is seen.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import numbers
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.schema.cells import match_key
from pgmpy_dp.schema.labels import decode_label, encode_label
from pgmpy_dp.schema.numerals import checked_signs, checked_units, word_number, written_number
from pgmpy_dp.schema.provenance import Costs

OUTSIDE = "outside"
"""The state of cells that are outside, where these have one of their own."""

_FINE = 64
_EACH = 128  # so many values or fewer have a fine cell each
_FINER = 0.25  # width of fine cells over the distance from the lower bound, where that is below the equal width
_LEAST = 1e-6  # of the range: at what distance fine cells stop getting narrower, where no resolution says it
_POINT = 1e-12  # of the range: what a cell of one real number counts as, where numbers are even within cells


def key_number(key: tuple) -> float | None:
    """The number of a match key; None where it is missing, NaN where it is none. INF, inf and Infinity are the same."""
    if key[0] == "text":
        return word_number(key[1])
    return None if key[0] == "missing" else key[1] if key[0] == "number" else math.nan


def number_text(number: float) -> str:
    """The text of a number in the label of a cell.

    Examples
    --------
    >>> number_text(25.0), number_text(0.1 + 0.2)
    ('25', '0.3')
    """
    return f"{number:.15g}"


@dataclass(frozen=True)
class Number:
    """A variable of numbers within public bounds.

    Parameters
    ----------
    lower, upper : float
        Finite, ``lower < upper``, in the units of the variable. Both belong to it.
    cuts : sequence of float, optional
        Where tables divide it: ascending, between the bounds. Each is the first number of the cell above it.
    bins : int, optional
        So many cells of equal width instead, at least 2. With neither the variable is undivided. Learners of numbers
        take it. So do learners of tables that merge the cells of a :meth:`fine` grid by what they release.
    spikes : sequence of float, optional
        Numbers that many records may have, such as 0 or a fee: each gets a cell of its own. Where the variable is
        undivided, and no resolution says what its values are, so do the bounds; an empty list says that they do not.
    resolution : float, optional
        Distance between neighbouring values, counted from `lower`: 1 for whole numbers. Drawn numbers keep to it;
        numbers that are read need not.
    missing : {"state", "drop"}, default "state"
        A record without the number counts in a state of its own, None, or it does not count.
    outside : {"clip", "drop", "state"}, default "clip"
        "clip" counts a number beyond a bound as that bound, and a cell that is not a number as missing. "drop" does not
        count their records. "state" counts both in a state of their own, "outside".
    units : str, list of str, or mapping of str to float, optional
        Texts that may stand before or after a number in a cell, one on each side at most: ``["%", "$", "km"]``. They
        are left out: "8.90%" is 8.9, "$10,300" with ``thousands=","`` is 10300. A mapping says by what each multiplies
        the number: ``{"k": 1000, "%": 0.01}``. Cells that are numbers already, of a typed column too, stay as they are.
    thousands : str, optional
        Sign between groups of three digits in texts: a comma, a point, an apostrophe, an underscore or a blank.
    decimal : {".", ","}, default "."
        Sign before the fraction in texts. With a comma "1.500" is no number unless `thousands` is a point: then it is
        1500. These three hold for texts alone, whatever a :class:`~pgmpy_dp.TextFile` says of its other columns.
    of : pair of names, optional
        Two other numbers, or dates. In a schema with both it is the first less the second (in days), and no column.
    discovered : tuple of str
        What it cost to find its cuts: not to be passed, it comes with numbers of a `Schema` that says so
        (`Schema.discovered`). It has no part in whether two are equal.

    Raises
    ------
    TypeError, ValueError
        For bounds that are not finite or do not ascend, cuts that are outside them or do not ascend, and cuts together
        with bins. For a range that is not a multiple of the resolution, for cells without a value, and for units and
        signs that could be confused with a number, or with each other.

    Examples
    --------
    >>> age = Number(0, 120, cuts=[18, 65], resolution=1)
    >>> age.states
    ('[0,18)', '[18,65)', '[65,120]', None)
    >>> Number(0, 1, bins=2, missing="drop").states
    ('[0,0.5)', '[0.5,1]')
    >>> pay = Number(0, 100_000, units=["$"], thousands=",")
    >>> [pay.reads(pay.key(cell)) for cell in ("$10,300.50", 7, "EUR 7", "Infinity")]
    [10300.5, 7.0, nan, inf]
    >>> Number(0, 9, cuts=[5], spikes=[0], missing="drop").states
    ('[0,0]', '(0,5)', '[5,9]')
    """

    lower: float
    upper: float
    cuts: Any = dataclasses.field(default=(), kw_only=True)
    bins: Any = dataclasses.field(default=None, kw_only=True)
    spikes: Any = dataclasses.field(default=None, kw_only=True)
    resolution: float | None = dataclasses.field(default=None, kw_only=True)
    missing: str = dataclasses.field(default="state", kw_only=True)
    outside: str = dataclasses.field(default="clip", kw_only=True)
    units: Any = dataclasses.field(default=(), kw_only=True)
    thousands: str | None = dataclasses.field(default=None, kw_only=True)
    decimal: str = dataclasses.field(default=".", kw_only=True)
    of: Any = dataclasses.field(default=(), kw_only=True)
    discovered: Costs = dataclasses.field(default=(), kw_only=True, compare=False, repr=False)

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, self._checked(name, getattr(self, name)))
        if not self.lower < self.upper:
            raise ValueError(
                f"{self._what} lower={self.text(self.lower)} is not below upper={self.text(self.upper)}; "
                "swap or widen them"
            )
        if not math.isfinite(self.upper - self.lower):
            raise ValueError(f"{self._what} lower={self.lower!r}, upper={self.upper!r} is too wide; pass closer bounds")
        for name in ("cuts", "spikes") if self.spikes is not None else ("cuts",):
            listed = getattr(self, name)
            if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
                what = f"pass {name}=[number, number, ...]"
                raise TypeError(f"{self._what} {name}={listed!r} is not a list of numbers; {what}")
            object.__setattr__(self, name, tuple(self._checked(name, number) for number in listed))
        cuts = self.cuts
        if not self._ascend((self.lower, *cuts, self.upper)):
            raise ValueError(
                f"{self._what} cuts={[self.text(cut) for cut in cuts]} must ascend between lower="
                f"{self.text(self.lower)} and upper={self.text(self.upper)}, without these"
            )
        for name, allowed in (("missing", ("state", "drop")), ("outside", ("clip", "drop", "state"))):
            choice = getattr(self, name)
            if choice not in allowed:
                raise ValueError(f"{self._what} {name}={choice!r}; pass one of {', '.join(allowed)}")
        object.__setattr__(self, "units", checked_units(self._what, self.units))
        checked_signs(f"{self._what} ", self.decimal, self.thousands)
        object.__setattr__(self, "of", tuple(decode_label(name) for name in self.of))
        if self.of and (len(set(self.of)) != 2 or self.kind != "number"):
            raise ValueError(f"{self._what} of={self.of!r} is no pair of two names; pass of=(minuend, subtrahend)")
        self._check_resolution()
        self._check_bins()
        self._check_spikes()
        # Reading and drawing ask for it cell by cell.
        edges = (self.lower, *(self.cuts or self._equal(self.bins or 1)), self.upper)
        # Behind a cell of one real number, between it and the next float, labels and numbers say that number.
        alone = [
            self.resolution is None and b == self._behind(a) and self._tells(a) for a, b in itertools.pairwise(edges)
        ]
        ends = (edges[0], *(a if one else b for one, a, b in zip(alone, edges, edges[1:], strict=False)))
        if not self._ascend(edges) or len(set(map(self.text, ends[:-1]))) < len(edges) - 1 - sum(alone):
            raise ValueError(
                f"{self._what} has bounds, cuts or bins={self.bins} so close to each other that 15 digits do not tell "
                f"them apart: {[repr(edge) for edge in edges][:5]}; pass fewer, or wider ones"
            )
        firsts = () if self.resolution is None else (*map(self._steps, edges[:-1]), self._steps(self.upper) + 1)
        if not all(a < b for a, b in itertools.pairwise(firsts)):
            raise ValueError(
                f"{self._what} has a cell without a value of the resolution {self.resolution:.15g} among those that "
                f"begin at {[self.text(edge) for edge in edges[:-1]]}; pass fewer cuts or bins"
            )
        object.__setattr__(self, "_edges", edges)
        object.__setattr__(self, "_firsts", firsts)
        object.__setattr__(self, "_ends", ends)

    @property
    def _what(self) -> str:
        return type(self).__name__

    def _checked(self, name: str, value: Any) -> float:
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise TypeError(f"{self._what} {name}={value!r} is not a number; pass a finite number")
        try:
            number = float(value) + 0.0
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueError(f"{self._what} {name}={value!r} is not finite; pass a bound known without the records")
        return number

    def _ascend(self, edges: tuple[float, ...]) -> bool:
        """Whether each cell has a number: with a resolution the last may have the upper bound alone."""
        inside = all(self.lower < cut <= self.upper for cut in edges[1:-1])
        return inside and all(a < b for a, b in itertools.pairwise(edges[:-1]))

    def divides(self, cut: float) -> bool:
        """Whether there can be numbers below a cut, and at it or above.

        Parameters
        ----------
        cut : float

        Returns
        -------
        bool
        """
        return self.lower < cut < self.upper or (
            cut == self.upper and (self.resolution is not None or self._is_alone(cut))
        )

    def _check_resolution(self) -> None:
        if self.resolution is None:
            return
        try:
            step = Number._checked(self, "resolution", self.resolution)
        except ValueError:
            step = 0.0
        if step <= 0:
            raise ValueError(f"{self._what} resolution={self.resolution!r} must be a positive number")
        object.__setattr__(self, "resolution", step)
        if ((Fraction(repr(self.upper)) - Fraction(repr(self.lower))) / Fraction(repr(step))).denominator != 1:
            raise ValueError(
                f"{self._what} upper={self.text(self.upper)} is not a whole number of steps of resolution={step:.15g} "
                f"above lower={self.text(self.lower)}; move a bound to the next value"
            )
        if self._steps(self.upper) >= 2**53:
            raise ValueError(f"{self._what} resolution={step:.15g} is too fine for so wide a range; pass a larger one")

    def _check_bins(self) -> None:
        if self.bins is None:
            return
        if self.cuts:
            raise ValueError(f"{self._what} has cuts and bins={self.bins!r}; pass one of them")
        if isinstance(self.bins, bool) or not isinstance(self.bins, numbers.Integral):
            raise TypeError(f"{self._what} bins={self.bins!r} is not a whole number")
        object.__setattr__(self, "bins", int(self.bins))
        most = 10**6 if self.n_values is None else min(self.n_values, 10**6)
        if not 2 <= int(self.bins) <= most:
            raise ValueError(f"{self._what} bins={self.bins} must be from 2 to {most}")

    def _check_spikes(self) -> None:
        """Check spikes; of a number that is divided they become cuts."""
        for spike in self.spikes or ():
            if not self.lower <= spike <= self.upper or not (
                self._tells(spike) if self.resolution is None else self.has(spike)
            ):
                raise ValueError(
                    f"{self._what} spikes={[self.text(one) for one in self.spikes]} must be values of the variable "
                    f"between lower={self.text(self.lower)} and upper={self.text(self.upper)}, of at most 15 digits"
                )
        if self.divided and self.spikes:
            object.__setattr__(self, "cuts", self._around(self.cuts or self._equal(self.bins), self.spikes))
            object.__setattr__(self, "bins", None)
        if self.divided or (self.resolution is not None and not self.spikes):
            object.__setattr__(self, "spikes", None)

    def _around(self, cuts: Iterable[float], spikes: Iterable[float]) -> tuple[float, ...]:
        """Cuts, and those on both sides of spikes."""
        spikes = set(spikes)
        texts = set(map(self.text, spikes))
        sides = {side for spike in spikes for side in (spike, self._behind(spike)) if self.lower < side <= self.upper}
        return tuple(
            sorted({cut for cut in cuts if self.resolution is not None or self.text(cut) not in texts} | sides)
        )

    def _behind(self, number: float) -> float:
        """The next value, or float, above a number."""
        return math.nextafter(number, math.inf) if self.resolution is None else self._value(self._steps(number) + 1)

    @staticmethod
    def _tells(number: float) -> bool:
        """Whether labels can tell a real number from the next float above it."""
        above = math.nextafter(number, math.inf)
        return float(number_text(number)) == number and (number == 0 or float(number_text(above)) != above)

    def _is_alone(self, number: float) -> bool:
        """Whether a real number has a cell of its own, here or on a fine grid."""
        if self.resolution is not None or not self._tells(number):
            return False
        if self.divided:
            return any(a == b == number for a, b in itertools.pairwise(self.ends))
        return number in self._own_cells

    @property
    def _own_cells(self) -> set[float]:
        """The numbers that have cells of their own on the fine grid of an undivided one."""
        bounds = () if self.spikes == () or self.resolution is not None else (self.lower, self.upper)
        return {
            number for number in (*bounds, *(self.spikes or ())) if self.resolution is not None or self._tells(number)
        }

    @property
    def n_values(self) -> int | None:
        """The number of values in the resolution, both bounds counted; None without a resolution."""
        return None if self.resolution is None else self._steps(self.upper) + 1

    def _steps(self, number: float) -> int:
        """Return how many steps of the resolution lie between the lower bound and a number, rounded up."""
        return math.ceil((Fraction(repr(number)) - Fraction(repr(self.lower))) / Fraction(repr(self.resolution)))

    def _value(self, steps: Any) -> Any:
        """The float nearest to a value of the resolution: 0.3, not 0.1 + 0.2. Of an integer, or an array of objects."""
        lower, step = Fraction(repr(self.lower)), Fraction(repr(self.resolution))
        below = lower.denominator * step.denominator  # of integers of any size, a quotient is rounded once
        return (int(lower * below) + int(step * below) * steps) / below

    def values_at(self, steps: Iterable[int]) -> list[float]:
        """Values of the resolution, by how many others are below each.

        Parameters
        ----------
        steps : iterable of int

        Returns
        -------
        list of float
        """
        return [self._value(int(step)) for step in steps]

    def _equal(self, bins: int) -> tuple[float, ...]:
        """Cuts of bins of equal width, or of equally many values (but for one) where there is a resolution."""
        if self.n_values is not None:
            return tuple(self._value(-(-self.n_values * k // bins)) for k in range(1, bins))
        lower, width = Fraction(self.lower), Fraction(self.upper) - Fraction(self.lower)
        return tuple(float(lower + width * k / bins) for k in range(1, bins))

    @property
    def firsts(self) -> np.ndarray:
        """The number of each cell's first value of the resolution, and behind the last the number of values."""
        return np.array(self._firsts)  # type: ignore[attr-defined]

    @property
    def divided(self) -> bool:
        """Whether the variable has cells."""
        return bool(self.cuts or self.bins)

    @property
    def whole_range(self) -> Number:
        """The same variable, undivided."""
        return dataclasses.replace(self, cuts=(), bins=None, spikes=None)

    @property
    def edges(self) -> tuple[float, ...]:
        """The lower bound, the cuts and the upper bound."""
        return self._edges  # type: ignore[attr-defined]

    @property
    def ends(self) -> tuple[float, ...]:
        """The edges; behind a cell of one real number that number, in place of the next float."""
        return self._ends  # type: ignore[attr-defined]

    @property
    def cells(self) -> tuple[str, ...]:
        """Labels of the cells, the states of numbers: the last has its upper end, the others have not."""
        texts, last = [self.text(end) for end in self.ends], len(self.edges) - 2
        opened = [edge != end for edge, end in zip(self.edges, self.ends, strict=True)]
        return tuple(
            f"{'(' if opened[k] else '['}{a},{b}{']' if opened[k + 1] or k == last else ')'}"
            for k, (a, b) in enumerate(itertools.pairwise(texts))
        )

    @property
    def states(self) -> tuple[str | None, ...]:
        """All states: the cells, None where missing numbers have a state, "outside" where those outside have."""
        return (
            *self.cells,
            *((None,) if self.missing == "state" else ()),
            *((OUTSIDE,) if self.outside == "state" else ()),
        )

    def spans(self) -> list[tuple[float, float, bool]]:
        """The lowest and highest number of each cell, and whether the highest belongs to it: values of the resolution.

        Returns
        -------
        list of (float, float, bool)

        Examples
        --------
        >>> Number(0, 9, cuts=[5]).spans(), Number(0, 9, cuts=[5], resolution=1).spans()
        ([(0.0, 5.0, False), (5.0, 9.0, True)], [(0.0, 4.0, True), (5.0, 9.0, True)])
        """
        if self.resolution is None:
            last, parts = len(self.edges) - 2, zip(self.edges, self.ends[1:], self.edges[1:], strict=False)
            return [(low, end, k == last or end != high) for k, (low, end, high) in enumerate(parts)]
        steps = itertools.pairwise(self._firsts)  # type: ignore[attr-defined]
        return [(self._value(first), self._value(behind - 1), True) for first, behind in steps]

    def value_above(self, number: float, or_at: bool) -> float | None:
        """The first value above a number.

        Parameters
        ----------
        number : float
        or_at : bool
            Whether the number itself may be it.

        Returns
        -------
        float or None
            A value of the resolution. Without one: the number if it may be; else the next float, where the number has
            a cell of its own, or None.
        """
        if self.resolution is None:
            return number if or_at else self._behind(number) if self._is_alone(number) else None
        steps = self._steps(number)
        return self._value(steps + (not or_at and self._value(steps) == number))

    def has(self, number: float) -> bool:
        """Whether a number is a value of the variable: within the bounds, and of the resolution if there is one.

        Parameters
        ----------
        number : float

        Returns
        -------
        bool
        """
        return self.lower <= number <= self.upper and self.value_above(number, True) == number

    def with_cuts(self, cuts: Iterable[float]) -> Number:
        """The same variable, divided at other numbers.

        Parameters
        ----------
        cuts : iterable of float
            As for :class:`Number`.

        Returns
        -------
        Number
        """
        return dataclasses.replace(self, cuts=tuple(cuts), bins=None, spikes=self.spikes or None)

    def fine(self, bins: int = _FINE, cuts: Iterable[float] = ()) -> Number:
        """The same variable divided finely, if it is undivided: a cell a value up to 128, else narrower ones near 0.

        Cells are of equal width on the scale of :meth:`fine_scale`. Each bound has a cell of its own, for many numbers
        are clipped to it, or are 0; and so has each spike.

        Parameters
        ----------
        bins : int
            How many cells there would be if all had the width of the widest.
        cuts : iterable of float
            Where it is divided too.

        Returns
        -------
        Number

        Examples
        --------
        >>> Number(-50_000, 49_999, resolution=1, missing="drop").fine(4).states
        ('[-50000,-49999)', '[-49999,0)', '[0,49999)', '[49999,49999]')
        >>> Number(0, 10_000, missing="drop").fine().states[-2:], len(Number(0, 10_000).fine().cells)
        (('[9853,10000)', '[10000,10000]'), 121)
        """
        if self.divided:
            return self
        n_values = self.n_values
        near = self._fine_near
        if n_values is not None and n_values <= max(bins, _EACH):
            return dataclasses.replace(self, bins=n_values, spikes=None).divided_at(cuts)
        if near is not None:
            inner = self._narrowing(bins)
        elif n_values is None:
            inner = list(self._equal(bins))
        else:
            inner = self.values_at(1 - (-(n_values - 2) * k // (bins - 2)) for k in range(bins - 1))
        plain = dataclasses.replace(self, spikes=None)
        if near is None and n_values is None and not self._own_cells:
            return dataclasses.replace(plain, bins=bins).divided_at(cuts)  # as files of version 0.3 have it
        return plain.with_cuts(self._around(inner, self._own_cells)).divided_at(cuts)

    def divided_at(self, cuts: Iterable[float]) -> Number:
        """The same variable with its cells divided at further numbers, where values lie on both sides of these.

        Parameters
        ----------
        cuts : iterable of float

        Returns
        -------
        Number
            This one, where no cell is divided.

        Examples
        --------
        >>> Number(0, 9, cuts=[4.5], resolution=1, missing="drop").divided_at([5, 7, 12]).states
        ('[0,4.5)', '[4.5,7)', '[7,9]')
        """
        place = self.text if self.resolution is None else self._steps
        known = set(map(place, self.edges[:-1]))
        more = {place(cut): cut for cut in filter(self.divides, cuts) if place(cut) not in known}
        return self.with_cuts(sorted({*self.edges[1:-1], *more.values()})) if more else self

    @property
    def _fine_near(self) -> float | None:
        """The distance from the lower bound from which on fine cells become wider; None where all are equally wide."""
        if self.kind != "number" or self.lower < 0:
            return None
        near = max(self.lower, self.resolution or _LEAST * (self.upper - self.lower))
        return near if near >= sys.float_info.min else None  # quotients by what is smaller are infinite

    def fine_scale(self, values: np.ndarray, bins: int = _FINE) -> np.ndarray:
        """A scale on which fine cells are equally wide: linear and, for bounds from 0 on, a logarithm added to it.

        Numbers from 0 on often span decades, such as costs and waiting times: cells near the lower bound have a quarter
        of their distance from it as their width, those far from it the same width all.

        Parameters
        ----------
        values : ndarray of shape (...)
        bins : int
            As for :meth:`fine`.

        Returns
        -------
        ndarray of float64, of the same shape
            Numbers of cells from the lower bound.
        """
        above = np.maximum(np.asarray(values, dtype=np.float64) - self.lower, 0.0)
        linear = above / (self.upper - self.lower) * bins
        return linear if self._fine_near is None else linear + np.log1p(above / self._fine_near) / _FINER

    def _narrowing(self, bins: int) -> list[float]:
        """Cuts at equal distances on the scale of fine cells, of few digits, and in the resolution."""
        width = self.upper - self.lower
        low = np.zeros(int(self.fine_scale(np.array(self.upper), bins)) - 1)
        high = np.full(len(low), width)
        wanted = np.arange(1, len(low) + 1) * float(self.fine_scale(np.array(self.upper), bins)) / (len(low) + 1)
        for _ in range(100):
            middle = low + (high - low) / 2
            below = self.fine_scale(self.lower + middle, bins) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        rounded = [float(f"{distance:.4g}") for distance in high]
        if self.resolution is None:
            return sorted({cut for d in rounded if self.lower < (cut := self.lower + d) < self.upper})
        last = self._steps(self.upper)
        steps = {math.ceil(distance / self.resolution) for distance in rounded} | {1, last}
        return self.values_at(step for step in sorted(steps) if 0 < step <= last)

    @property
    def dressed(self) -> bool:
        """Whether texts are read by other signs than a decimal point: by units, thousands or a decimal comma."""
        return bool(self.units or self.thousands or self.decimal != ".")

    def key(self, cell: object) -> tuple:
        r"""The match key of a cell, in which a text has the number that it is written as.

        Parameters
        ----------
        cell : object

        Returns
        -------
        tuple
            A function of the cell and of this declaration alone. It never raises.

        Examples
        --------
        >>> comma = Number(0, 9_999, decimal=",", thousands=".", units=["EUR"])
        >>> [comma.key(cell) for cell in ("1.500", b"2,5 EUR", "2.5", 2.5)]
        [('number', 1500.0), ('number', 2.5), ('text', '2.5'), ('number', 2.5)]
        """
        key = match_key(cell)
        if not self.dressed or not isinstance(cell, str | bytes) or key[0] not in ("text", "number"):
            return key
        text = cell.decode() if isinstance(cell, bytes) else str.__str__(cell)
        number = written_number(text, self.units, self.decimal, self.thousands)
        if number is None:  # 1.5, which is 1 1/2 elsewhere, is no number where commas come before fractions
            return ("text", text) if self.decimal == "," and "." in text else key
        return ("number", number + 0.0)

    def reads(self, key: tuple) -> float | None:
        """The number that a cell holds; None where it is missing, NaN where it holds no number.

        Parameters
        ----------
        key : tuple
            The cell's :meth:`key`.

        Returns
        -------
        float or None
            It may be infinite.

        Examples
        --------
        >>> from pgmpy_dp.schema import match_key
        >>> [Number(0, 9).reads(match_key(cell)) for cell in ("7.5", None, "seven")]
        [7.5, None, nan]
        """
        return key_number(key)

    def coder(self, dropped: int = -1) -> Callable[[tuple], int]:
        """A function from a cell's match key to the position of its state, or to `dropped`.

        Parameters
        ----------
        dropped : int
            Code of a cell whose record does not count.

        Returns
        -------
        callable
            From a :func:`~pgmpy_dp.schema.cells.match_key` to a position in :attr:`states`. It never raises.

        Examples
        --------
        >>> from pgmpy_dp.schema import match_key
        >>> code = Number(0, 120, cuts=[18, 65]).coder()
        >>> [code(match_key(cell)) for cell in (17.9, "18", 120, 130, None, "old", "[18,65)")]
        [0, 1, 2, 2, 3, 3, 1]
        """
        cuts, codes = self.pieces(dropped)
        labels = {label: code for code, label in enumerate(self.cells)}
        missing = len(self.cells) if self.missing == "state" else dropped
        unreadable = missing if self.outside == "clip" else codes[0]

        def code(key: tuple) -> int:
            number = self.reads(key)
            if number is None:
                return missing
            if math.isnan(number):
                # What was sampled, or cut elsewhere by the same cuts, is read back.
                return labels.get(key[1], unreadable) if key[0] == "text" else unreadable
            return codes[bisect_right(cuts, number)]

        return code

    def pieces(self, dropped: int = -1) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Cuts, and one code more than cuts: a number counts as the code after as many as the cuts that it reaches.

        Parameters
        ----------
        dropped : int
            As for :meth:`coder`.

        Returns
        -------
        tuple of (tuple of float, tuple of int)

        Examples
        --------
        >>> Number(0, 9, cuts=[5]).pieces(), Number(0, 9, cuts=[5], outside="drop").pieces()
        (((5.0,), (0, 1)), ((0.0, 5.0, 9.000000000000002), (-1, 0, 1, -1)))
        """
        inner, codes = self.edges[1:-1], tuple(range(len(self.cells)))
        if self.outside == "clip":
            return inner, codes
        beyond = dropped if self.outside == "drop" else len(self.states) - 1
        return (self.lower, *inner, math.nextafter(self.upper, math.inf)), (beyond, *codes, beyond)

    def shares(self, low: float | None = None, high: float | None = None, closed: str = "both") -> np.ndarray:
        """Return the share of each cell's values that lie in a range, with values uniform within a cell.

        Parameters
        ----------
        low, high : float, optional
            Ends of the range; None for a bound of the variable.
        closed : {"both", "left", "right", "neither"}
            Which ends belong to the range; of real numbers only those with cells of their own make a difference.

        Returns
        -------
        ndarray of shape (cells,)
            Of the values of the resolution, or of the width without one.

        Examples
        --------
        >>> Number(0, 40, cuts=[10, 20, 30], resolution=1).shares(5, 20).round(3)
        array([0.5, 1. , 0.1, 0. ])
        >>> Number(0, 40, cuts=[10, 20, 30]).shares(5, 20)
        array([0.5, 1. , 0. , 0. ])
        """
        low, high = self.lower if low is None else low, self.upper if high is None else high
        if self.resolution is None:
            edges = np.array(self.edges)
            edges[-1:] = self._behind(self.upper) if self._is_alone(self.upper) else self.upper
            begin, end = (
                self._behind(at) if behind and self._is_alone(at) else at
                for at, behind in ((low, closed in ("right", "neither")), (high, closed in ("both", "right")))
            )
        else:
            # The first value in the range, and the first behind it.
            edges = self.firsts
            begin = self._steps(low) + (closed in ("right", "neither") and self._value(self._steps(low)) == low)
            end = self._steps(high) + (closed in ("both", "right") and self._value(self._steps(high)) == high)
        inside = np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin)
        return np.maximum(inside, 0) / np.diff(edges)

    def within(self, positions: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Numbers at a position from 0 to 1 in each of some cells: of its values in order, the one behind so many.

        Parameters
        ----------
        positions, cells : ndarray of shape (n,)

        Returns
        -------
        ndarray of float64, shape (n,)

        Examples
        --------
        >>> Number(0, 40, cuts=[10], resolution=1).within(np.array([0.5, 1.0]), np.array([0, 1]))
        array([ 4., 40.])
        """
        if self.resolution is None:
            ends = np.array(self.ends)
            return ends[cells] + positions * (ends[cells + 1] - ends[cells])
        first = self.firsts
        # Rounding of the position must not reach the next value: 0.3 of 10 values are 3.
        behind = np.ceil(positions * (first[cells + 1] - first[cells]) - 1e-9).astype(np.int64)
        steps, at = np.unique(first[cells] + np.maximum(behind, 1) - 1, return_inverse=True)
        return np.array(self.values_at(steps), dtype=np.float64)[at]  # each value once: a quotient of fractions is slow

    @property
    def centres(self) -> np.ndarray:
        """The mean of each cell's values, uniform within it."""
        if self.resolution is None:
            ends = np.array(self.ends)
            return ends[:-1] / 2 + ends[1:] / 2
        first = self.firsts
        return self.lower + self.resolution * (first[:-1] + first[1:] - 1) / 2

    @property
    def points(self) -> np.ndarray:
        """Whether each cell is of one real number, as booleans; none is where there is a resolution."""
        return (np.diff(self.ends) == 0) & (self.resolution is None)

    @property
    def widths(self) -> np.ndarray:
        """The width of each cell, next to nothing for one of `points`; its number of values, with a resolution."""
        if self.resolution is not None:
            return np.diff(self.firsts)
        return np.where(self.points, max(_POINT * (self.upper - self.lower), math.ulp(0.0)), np.diff(self.edges))

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.resolution is not None and self.resolution.is_integer() and self.lower.is_integer()

    def text(self, number: float) -> str:
        """A number as labels and files say it.

        Parameters
        ----------
        number : float

        Returns
        -------
        str
        """
        return number_text(number)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form: what was declared, without what is as by default.

        Returns
        -------
        dict
        """
        fields = ((field, getattr(self, field.name)) for field in dataclasses.fields(self))
        content = {field.name: value for field, value in fields if value != field.default}
        content.pop("discovered", None)  # the schema says it
        content |= {name: self._json(content[name]) for name in ("lower", "upper")}
        content |= {name: [*map(self._json, content[name])] for name in ("cuts", "spikes") if name in content}
        content |= {"of": [*map(encode_label, self.of)]} if self.of else {}
        content |= {"units": dict(self.units)} if self.units else {}
        if self.resolution is None and not self.divided:
            content["spikes"] = None if self.spikes is None else list(self.spikes)  # without it a file is of 0.3
        return content

    def _json(self, number: float) -> Any:
        return number

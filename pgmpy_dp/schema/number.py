"""Variables whose values are numbers or dates: public bounds, what a table divides them into, how a cell is read.

A table has cells of numbers, not numbers. :class:`Number` says which: by cuts, by equal bins, or by a fine grid that a
release merges later. Everything here is public, and a function of the declaration and of one cell: no record is seen.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import numbers
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

__all__ = ["OUTSIDE", "Date", "Number", "number_text"]

OUTSIDE = "outside"
"""The state of cells that are outside, where these have one of their own."""

_FINE = 64
_EACH = 128  # so many values or fewer have a fine cell each
_EPOCH = date(1970, 1, 1).toordinal()


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
        So many cells of equal width instead, at least 2. With neither the variable is undivided: learners of numbers
        take it, and learners of tables that merge cells by what they release, through a :meth:`fine` grid.
    resolution : float, optional
        Distance between neighbouring values, counted from `lower`: 1 where they are whole. Numbers that are drawn keep
        to it; numbers that are read need not.
    missing : {"state", "drop"}, default "state"
        A record without the number counts in a state of its own, None; or it does not count.
    outside : {"clip", "drop", "state"}, default "clip"
        A number beyond a bound counts as that bound, and a cell that is no number as missing; or their records do not
        count; or they count in a state of their own, "outside".

    Raises
    ------
    TypeError, ValueError
        For bounds that are no finite numbers or do not ascend, cuts outside them or not ascending, cuts and bins
        together, a resolution of which the range is no multiple, and cells without a value.

    Examples
    --------
    >>> age = Number(0, 120, cuts=[18, 65], resolution=1)
    >>> age.states
    ('[0,18)', '[18,65)', '[65,120]', None)
    >>> Number(0, 1, bins=2, missing="drop").states
    ('[0,0.5)', '[0.5,1]')
    """

    lower: float
    upper: float
    cuts: Any = dataclasses.field(default=(), kw_only=True)
    bins: Any = dataclasses.field(default=None, kw_only=True)
    resolution: float | None = dataclasses.field(default=None, kw_only=True)
    missing: str = dataclasses.field(default="state", kw_only=True)
    outside: str = dataclasses.field(default="clip", kw_only=True)

    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, self._checked(name, getattr(self, name)))
        if not self.lower < self.upper:
            raise ValueError(
                f"{self._what} lower={self.text(self.lower)} is not below upper={self.text(self.upper)}; "
                "swap or widen them"
            )
        if isinstance(self.cuts, str | bytes) or not isinstance(self.cuts, Iterable):
            raise TypeError(f"{self._what} cuts={self.cuts!r} is no list of numbers; pass cuts=[cut, cut, ...]")
        cuts = tuple(self._checked("cuts", cut) for cut in self.cuts)
        object.__setattr__(self, "cuts", cuts)
        if any(a >= b for a, b in itertools.pairwise((self.lower, *cuts, self.upper))):
            raise ValueError(
                f"{self._what} cuts={[self.text(cut) for cut in cuts]} must ascend between lower="
                f"{self.text(self.lower)} and upper={self.text(self.upper)}, without these"
            )
        for name, allowed in (("missing", ("state", "drop")), ("outside", ("clip", "drop", "state"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{self._what} {name}={getattr(self, name)!r}; pass one of {', '.join(allowed)}")
        self._check_resolution()
        self._check_bins()
        # Reading and drawing ask for it cell by cell.
        edges = (self.lower, *(self.cuts or self._equal(self.bins or 1)), self.upper)
        if any(a >= b for a, b in itertools.pairwise(edges)):
            raise ValueError(
                f"{self._what} bins={self.bins} are too many for numbers so close to each other; pass fewer"
            )
        if self.resolution is not None and not all(np.diff(self._first_values(edges)) > 0):
            raise ValueError(
                f"{self._what} has a cell without a value of the resolution {self.resolution:.15g} among those that "
                f"begin at {[self.text(edge) for edge in edges[:-1]]}; pass fewer cuts or bins"
            )
        object.__setattr__(self, "_edges", edges)

    @property
    def _what(self) -> str:
        return type(self).__name__

    def _checked(self, name: str, value: Any) -> float:
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise TypeError(f"{self._what} {name}={value!r} is not a number; pass a finite number")
        if not math.isfinite(value):
            raise ValueError(f"{self._what} {name}={value!r} is not finite; pass a bound known without the records")
        return float(value) + 0.0

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

    @property
    def n_values(self) -> int | None:
        """How many values there are in the resolution, both bounds counted; None without a resolution."""
        return None if self.resolution is None else self._steps(self.upper) + 1

    def _steps(self, number: float) -> int:
        """How many steps of the resolution lie between the lower bound and a number, rounded up."""
        return math.ceil((Fraction(repr(number)) - Fraction(repr(self.lower))) / Fraction(repr(self.resolution)))

    def _value(self, steps: int) -> float:
        """The float nearest to a value of the resolution: 0.3, not 0.1 + 0.2."""
        return float(Fraction(repr(self.lower)) + Fraction(repr(self.resolution)) * steps)

    def _equal(self, bins: int) -> tuple[float, ...]:
        """Cuts of bins of equal width, or of equally many values (but for one) where there is a resolution."""
        if self.n_values is not None:
            return tuple(self._value(-(-self.n_values * k // bins)) for k in range(1, bins))
        lower, width = Fraction(self.lower), Fraction(self.upper) - Fraction(self.lower)
        return tuple(float(lower + width * k / bins) for k in range(1, bins))

    def _first_values(self, edges: tuple[float, ...]) -> np.ndarray:
        """Of each cell the number of its first value, and behind the last one: the number of values."""
        return np.array([*(self._steps(edge) for edge in edges[:-1]), self.n_values])

    @property
    def divided(self) -> bool:
        """Whether it has cells."""
        return bool(self.cuts or self.bins)

    @property
    def edges(self) -> tuple[float, ...]:
        """The lower bound, the cuts and the upper bound."""
        return self._edges  # type: ignore[attr-defined]

    @property
    def cells(self) -> tuple[str, ...]:
        """Labels of the cells, the states of numbers: the last has its upper end, the others have not."""
        texts = [self.text(edge) for edge in self.edges]
        last = len(texts) - 2
        return tuple(f"[{a},{b}{']' if k == last else ')'}" for k, (a, b) in enumerate(itertools.pairwise(texts)))

    @property
    def states(self) -> tuple[str | None, ...]:
        """All states: the cells, None where missing numbers have a state, "outside" where those outside have."""
        return (
            *self.cells,
            *((None,) if self.missing == "state" else ()),
            *((OUTSIDE,) if self.outside == "state" else ()),
        )

    def with_cuts(self, cuts: Iterable[float]) -> Number:
        """The same variable, divided at other numbers."""
        return dataclasses.replace(self, cuts=tuple(cuts), bins=None)

    def fine(self, bins: int = _FINE) -> Number:
        """The same variable divided finely, if it is undivided: a cell a value up to 128, else equal bins."""
        if self.divided:
            return self
        n_values = self.n_values
        if n_values is not None and n_values <= max(bins, _EACH):
            bins = n_values
        return dataclasses.replace(self, bins=bins)

    def reads(self, key: tuple) -> float | None:
        """The number that a cell holds; None where it is missing, NaN where it holds no number.

        Parameters
        ----------
        key : tuple
            The cell's :func:`~pgmpy_dp.schema.match_key`.

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
        return None if key[0] == "missing" else key[1] if key[0] == "number" else math.nan

    def coder(self, dropped: int = -1) -> Callable[[tuple], int]:
        """What says as which state a cell counts, by its match key: the state's position, or `dropped`.

        It is total: it never raises, whatever the key.

        Examples
        --------
        >>> from pgmpy_dp.schema import match_key
        >>> code = Number(0, 120, cuts=[18, 65]).coder()
        >>> [code(match_key(cell)) for cell in (17.9, "18", 120, 130, None, "old", "[18,65)")]
        [0, 1, 2, 2, 3, 3, 1]
        """
        cuts, last = self.edges[1:-1], len(self.edges) - 1
        labels = {label: code for code, label in enumerate(self.cells)}
        missing = last if self.missing == "state" else dropped
        beyond = {"drop": dropped, "state": last + (self.missing == "state")}
        unreadable = beyond.get(self.outside, missing)

        def code(key: tuple) -> int:
            number = self.reads(key)
            if number is None:
                return missing
            if math.isnan(number):
                # What was sampled, or cut elsewhere by the same cuts, is read back.
                return labels.get(key[1], unreadable) if key[0] == "text" else unreadable
            if not self.lower <= number <= self.upper and self.outside in beyond:
                return beyond[self.outside]
            return bisect_right(cuts, number)

        return code

    def draw(self, codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Numbers for codes of states, uniform within each cell and in the resolution.

        Parameters
        ----------
        codes : ndarray of integers
            Positions in :attr:`states`.
        generator : numpy.random.Generator

        Returns
        -------
        ndarray of float64, of the shape of `codes`
            NaN for missing and for "outside", of which no number is known.

        Examples
        --------
        >>> Number(0, 120, cuts=[118], resolution=1).draw(np.array([1, 1, 2]), np.random.default_rng(0))
        array([120., 119.,  nan])
        """
        codes = np.asarray(codes)
        number = codes < len(self.edges) - 1
        cell = np.where(number, codes, 0)
        edges = np.array(self.edges)
        if self.resolution is None:
            low, high = edges[cell], edges[cell + 1]
            drawn = low + generator.random(codes.shape) * (high - low)
            # Rounding may reach the upper end, which belongs to the next cell.
            drawn = np.where(cell < len(edges) - 2, np.minimum(drawn, np.nextafter(high, -np.inf)), drawn)
        else:
            first = self._first_values(self.edges)
            steps = generator.integers(first[cell], first[cell + 1])
            different, place = np.unique(steps, return_inverse=True)
            drawn = np.array([self._value(int(step)) for step in different])[place.reshape(codes.shape)]
        return np.where(number, drawn, np.nan)

    def text(self, number: float) -> str:
        """A number as labels and files say it."""
        return number_text(number)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form: what was declared, without what is as by default."""
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("lower", "upper"):
                found[field.name] = self._json(value)
            elif value != field.default:
                found[field.name] = [self._json(cut) for cut in value] if field.name == "cuts" else value
        return found

    def _json(self, number: float) -> Any:
        return number


@dataclass(frozen=True)
class Date(Number):
    """A variable of days within public bounds.

    A cell holds a day if it is a date, a time (of which the day counts; of one with a zone the day in UTC), or a text
    that :meth:`datetime.datetime.fromisoformat` reads, or `format`. Numbers in this class (edges, what is drawn) are
    days since the beginning of 1970.

    Parameters
    ----------
    lower, upper : datetime.date or str
        ISO texts (``"2020-01-31"``) or dates. Both days belong to it.
    cuts : sequence of datetime.date or str, optional
    bins, missing, outside
        As for :class:`Number`.
    resolution : float, default 1
        In whole days.
    format : str, optional
        How texts say a day, for :meth:`datetime.datetime.strptime`: ``"%d.%m.%Y"``.

    Raises
    ------
    TypeError, ValueError
        As :class:`Number`, and for bounds and cuts that are no days.

    Examples
    --------
    >>> Date("2019-01-01", "2020-12-31", cuts=["2020-01-01"], missing="drop").states
    ('[2019-01-01,2020-01-01)', '[2020-01-01,2020-12-31]')
    """

    resolution: Any = dataclasses.field(default=1.0, kw_only=True)
    format: Any = dataclasses.field(default=None, kw_only=True)

    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        if not isinstance(self.resolution, numbers.Real) or not float(self.resolution).is_integer():
            raise ValueError(f"Date resolution={self.resolution!r} must be a whole number of days")
        if self.format is not None:
            if not isinstance(self.format, str):
                raise TypeError(f"Date format={self.format!r} is not a text such as '%d.%m.%Y'")
            try:
                again = datetime.strptime(datetime(1999, 12, 31).strftime(self.format), self.format)
            except ValueError as error:
                raise ValueError(f"Date format={self.format!r} says no day: {error}") from None
            if again.date() != date(1999, 12, 31):
                raise ValueError(f"Date format={self.format!r} says no whole day; it needs year, month and day")
        super().__post_init__()

    def _checked(self, name: str, value: Any) -> float:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise ValueError(f"Date {name}={value!r} is no day; write it as 2020-01-31") from None
        if isinstance(value, float) and value.is_integer():
            return value  # of a date that is made from another
        if isinstance(value, datetime):
            value = value.date()
        if not isinstance(value, date):
            raise TypeError(f"Date {name}={value!r} is no day; pass a date or a text such as '2020-01-31'")
        return float(value.toordinal() - _EPOCH)

    def reads(self, key: tuple) -> float | None:
        """The day that a cell holds, as days since the beginning of 1970; None where it is missing, NaN for no day.

        Examples
        --------
        >>> from pgmpy_dp.schema import match_key
        >>> day = Date("1970-01-01", "1999-12-31", format="%d.%m.%Y")
        >>> [day.reads(match_key(cell)) for cell in (date(1970, 1, 2), "1970-01-03T12:00:00", "04.01.1970", 7)]
        [1.0, 2.0, 3.0, nan]
        """
        if key[0] == "missing":
            return None
        if key[0] == "text":
            for read in (datetime.fromisoformat, lambda text: datetime.strptime(text, self.format or "%Y-%m-%d")):
                try:
                    moment = read(key[1].strip())
                    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
                    return float(moment.toordinal() - _EPOCH)
                except Exception:
                    continue
        return math.nan

    def text(self, number: float) -> str:
        """A day as labels and files say it."""
        return date.fromordinal(_EPOCH + int(number)).isoformat()

    def _json(self, number: float) -> str:
        return self.text(number)

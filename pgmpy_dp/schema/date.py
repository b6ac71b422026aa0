"""Variables whose values are days: numbers, counted from the beginning of 1970, with their own texts."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, ClassVar

from pgmpy_dp.schema.number import Number

_EPOCH = date(1970, 1, 1).toordinal()
_SOME_DAY = date(1999, 12, 31)


@dataclass(frozen=True)
class Date(Number):
    """A variable of days within public bounds.

    A cell holds a day if it is a date, a time, or a text that ``datetime.datetime.fromisoformat`` or `format` reads. A
    time counts as its day, one with a zone as its day in UTC. Numbers in this class (edges, what is drawn) are days
    since the beginning of 1970.

    Parameters
    ----------
    lower, upper : datetime.date or str
        ISO texts (``"2020-01-31"``) or dates. Both days belong to the range.
    cuts, spikes : sequence of datetime.date or str, optional
    bins, missing, outside, discovered
        As for :class:`Number`.
    units, thousands, decimal
        For texts of numbers; not to be passed.
    of : ()
        A date is no difference of others.
    resolution : float, default 1
        In whole days.
    format : str or list of str, optional
        How cells say a day beside ISO's ``2020-01-31``, for ``datetime.datetime.strptime``: ``"%d.%m.%Y"``. Of several
        the first that reads a cell says its day, whatever other cells are; samples are written in the first. With a
        format of digits alone, such as ``"%Y%m%d"``, whole numbers are days too. One without a day, ``"%Y-%m"``, or
        without a month, means the first of it.

    Raises
    ------
    TypeError, ValueError
        As :class:`Number`, and for bounds and cuts that are not days.

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
        if self.dressed:
            raise ValueError("Date has units, thousands or decimal, which are for a Number; pass format='%d.%m.%Y'")
        if self.format is not None and not isinstance(self.format, str):
            formats = self.format if isinstance(self.format, Iterable) else (self.format,)
            object.__setattr__(self, "format", tuple(formats))
        for written in self.formats:
            _check_format(written)
        super().__post_init__()

    def _checked(self, name: str, value: Any) -> float:
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                raise ValueError(f"Date {name}={value!r} is not a day; write it as 2020-01-31") from None
        if isinstance(value, float) and value.is_integer():
            return value  # of a date that is made from another
        if isinstance(value, datetime):
            value = value.date()
        if not isinstance(value, date):
            raise TypeError(f"Date {name}={value!r} is not a day; pass a date or a text such as '2020-01-31'")
        return float(value.toordinal() - _EPOCH)

    def reads(self, key: tuple) -> float | None:
        """The day that a cell holds, as days since the beginning of 1970; None where it is missing, NaN for no day.

        Parameters
        ----------
        key : tuple
            The cell's :func:`~pgmpy_dp.schema.cells.match_key`.

        Returns
        -------
        float or None

        Examples
        --------
        >>> from pgmpy_dp.schema import match_key
        >>> day = Date("1970-01-01", "1999-12-31", format="%d.%m.%Y")
        >>> [day.reads(match_key(cell)) for cell in (date(1970, 1, 2), "1970-01-03T12:00:00", "04.01.1970", 7)]
        [1.0, 2.0, 3.0, nan]
        """
        if key[0] == "missing":
            return None
        with contextlib.suppress(Exception):  # no text, or no day
            text = key[1].strip() if key[0] == "text" else None
            if text is not None and (not self.formats or text[4:5] == "-"):
                # Cells that are times have texts of ISO, whatever the format.
                with contextlib.suppress(ValueError):
                    moment = datetime.fromisoformat(text)
                    return float((moment if moment.tzinfo is None else moment.astimezone(UTC)).toordinal() - _EPOCH)
            for written in self.formats:
                digits = _digits(written)
                if text is None and not (digits and key[1].is_integer()):  # texts of digits are numbers
                    continue
                with contextlib.suppress(ValueError):
                    moment = datetime.strptime(text if text is not None else f"{int(key[1]):0{digits}d}", written)
                    return float((moment if moment.tzinfo is None else moment.astimezone(UTC)).toordinal() - _EPOCH)
        return math.nan

    @property
    def formats(self) -> tuple[str, ...]:
        """All formats, in the order in which they are tried."""
        return () if self.format is None else (self.format,) if isinstance(self.format, str) else self.format

    @property
    def digits(self) -> bool:
        """Whether whole numbers may be days: some format has digits and nothing else."""
        return any(map(_digits, self.formats))

    def text(self, number: float) -> str:
        """A day as labels and files say it.

        Parameters
        ----------
        number : float
            Days since the beginning of 1970.

        Returns
        -------
        str
        """
        return date.fromordinal(_EPOCH + int(number)).isoformat()

    def _json(self, number: float) -> str:
        return self.text(number)


def _check_format(written: Any) -> None:
    """Refuse a format that does not read a day, a month or a year as it is, or that reads ISO's texts as others."""
    if not isinstance(written, str):
        raise TypeError(f"Date format={written!r} is not a text such as '%d.%m.%Y', nor a list of such")
    said = _SOME_DAY.strftime(written)
    try:
        again = datetime.strptime(said, written)
    except ValueError as error:
        raise ValueError(f"Date format={written!r} does not read a day: {error}") from None
    wholes = (_SOME_DAY, _SOME_DAY.replace(day=1), _SOME_DAY.replace(month=1, day=1))
    if again.date() not in wholes or again.strftime(written) != said:
        raise ValueError(
            f"Date format={written!r} does not say a whole day, month or year; it needs the year, and the month with a "
            "day: '%d.%m.%Y', '%Y-%m', '%Y'"
        )
    again = datetime(1999, 11, 12)
    with contextlib.suppress(ValueError):
        again = datetime.strptime("1999-11-12", written)
    if (again.month, again.day) != (11, 12):
        raise ValueError(f"Date format={written!r} reads 1999-11-12 as another day than ISO; drop it")


@lru_cache(64)
def _digits(written: str) -> int:
    """The number of digits that say a day, where a format has nothing else; else 0."""
    text = _SOME_DAY.strftime(written)
    return len(text) if text.isdecimal() else 0

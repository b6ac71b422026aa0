"""Numbers as people write them: signs of decimals and of thousands, and units such as "%", "$" and "km" beside them.

What a text says is a function of that text and of these public signs. Each pattern takes time linear in the text.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

BLANKS = " \xa0\u202f"
THOUSANDS = {",": ",", ".": ".", "'": "'\u2019", "_": "_", **dict.fromkeys(BLANKS, BLANKS)}
"""Each sign of thousands, and the signs that it stands for."""

Units = tuple[tuple[str, float], ...]
"""Texts that may stand beside a number, and by what each multiplies it."""

_WORDS: dict[str, float | None] = {"nan": None, "+nan": None, "-nan": None}
_WORDS |= {f"{sign}{word}": math.inf for sign in ("", "+") for word in ("inf", "infinity")}
_WORDS |= {"-inf": -math.inf, "-infinity": -math.inf}
_LONGEST_UNIT, _EXACT = 20, 40  # signs


def numeral(decimal: str, thousands: str) -> str:
    """A regular expression of numbers as :func:`~pgmpy_dp.schema.cells.match_key` reads them, with other signs."""
    grouped = f"|[0-9]{{1,3}}(?:[{re.escape(thousands)}][0-9]{{3}})+" if thousands else ""
    mark = re.escape(decimal)
    return (
        rf"(?P<sign>[+-]?)(?=[0-9]|{mark}[0-9])(?P<whole>[0-9]*{grouped})(?:{mark}(?P<fraction>[0-9]*))?"
        r"(?P<exponent>[eE][+-]?[0-9]+)?"
    )


def plain_numeral(match: re.Match) -> str:
    """The text of a number that :func:`numeral` matched, with a decimal point and no other signs."""
    whole, fraction = re.sub("[^0-9]", "", match["whole"]), match["fraction"]
    return f"{match['sign']}{whole}{'' if fraction is None else '.' + fraction}{match['exponent'] or ''}"


def word_number(text: str) -> float | None:
    """The number that a word says in any case: an infinity, None for "nan", and NaN for any other text.

    Examples
    --------
    >>> word_number(" -Infinity"), word_number("INF"), word_number("NAN"), word_number("old")
    (-inf, inf, None, nan)
    """
    return _WORDS.get(text.strip().lower(), math.nan)


def checked_units(what: str, units: Any) -> Units:
    """Units as pairs of a text and a factor; TypeError or ValueError for texts that could be part of a number."""
    listed = units.items() if isinstance(units, Mapping) else [units] if isinstance(units, str) else units
    pairs: dict[str, float] = {}
    for pair in listed:
        unit, factor = pair if isinstance(pair, tuple) else (pair, 1.0)
        if not isinstance(unit, str) or isinstance(factor, bool) or not isinstance(factor, numbers.Real):
            raise TypeError(f"{what} units={units!r} is no list of texts, nor a mapping of them to numbers; pass ['%']")
        unit = unit.strip()
        if not unit or len(unit) > _LONGEST_UNIT or re.search(r"[0-9]|^[.,+-]+$", unit):
            raise ValueError(
                f"{what} units has {unit!r}, which is empty, long or looks like a part of a number; pass texts such as "
                "'%', '$', 'km', of at most 20 signs and without digits"
            )
        if not (math.isfinite(factor) and float(factor) > 0) or unit in pairs:
            raise ValueError(f"{what} units has {unit!r} twice, or for {factor!r}; pass one positive number for each")
        pairs[unit] = float(factor)
    return tuple(pairs.items())


def checked_signs(what: str, decimal: Any, thousands: Any) -> None:
    """ValueError for signs that are none of decimals or thousands, or the same for both."""
    for name, sign, signs in (("decimal", decimal, ".,"), ("thousands", thousands, THOUSANDS)):
        if not (name == "thousands" and sign is None) and (not isinstance(sign, str) or sign not in tuple(signs)):
            raise ValueError(f"{what}{name}={sign!r} is none of the signs {', '.join(map(repr, signs))}; pass one")
    if thousands == decimal:
        raise ValueError(f"{what}thousands={thousands!r} is decimal too; pass two different signs")


def written_number(text: str, units: Units, decimal: str, thousands: str | None) -> float | None:
    """The number that a text says, with at most one unit on either side; None where it says none.

    Examples
    --------
    >>> percent = (("%", 1.0), ("$", 1.0), ("k", 1000.0))
    >>> [written_number(text, percent, ".", ",") for text in ("8.90%", "-$10,300", "$ 1.5k", "1,5", "EUR 7", "% 7 %")]
    [8.9, -10300.0, 1500.0, None, None, 7.0]
    """
    match = _pattern(units, decimal, thousands).fullmatch(text.strip())
    if match is None or (match["sign"] and match["outer"]):
        return None
    plain, factors = match["outer"] + plain_numeral(match), dict(units)
    used = [factors[match[place]] for place in ("before", "after") if match[place]]
    if len(plain) > _EXACT or match["exponent"]:
        return math.prod([float(plain), *used])
    # Rounded once, so that 29 with a factor of 0.01 is 0.29.
    return float(math.prod([Fraction(plain), *map(Fraction, map(repr, used))]))


@lru_cache(64)
def _pattern(units: Units, decimal: str, thousands: str | None) -> re.Pattern:
    listed = "|".join(re.escape(unit) for unit, _ in sorted(units, key=lambda pair: -len(pair[0]))) or r"(?!)"
    number = numeral(decimal, THOUSANDS.get(thousands or "", ""))
    return re.compile(rf"(?P<outer>[+-]?)\s*+(?:(?P<before>{listed})\s*+)?{number}\s*+(?P<after>{listed})?")

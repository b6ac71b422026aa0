"""Names and states as text that people, terminals and spreadsheets read; imports nothing of the package."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence, Sized

_JOINERS = "\u200c\u200d"  # without which Persian and some emoji read wrong
_RUN = "=+-@\uff1d\uff0b\uff0d\uff20\t\r\n"  # with the wide forms, which some spreadsheets take for these


def shown(label: object) -> str:
    r"""A name, a state or a line as text in which nothing controls a terminal, ends the line, or turns its direction.

    A column may be called anything, and categories that were discovered come from records. What is not printable stands
    as Python writes it in a literal.

    Parameters
    ----------
    label : object

    Examples
    --------
    >>> print(shown("a\x1b[31mb\nc"), shown("Käse"), shown(3))
    a\x1b[31mb\nc Käse 3
    """
    text = str(label)
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or sign in _JOINERS or unicodedata.category(sign) == "Zs"
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


def quantity(count: float | Sized, noun: str, plural: str | None = None) -> str:
    """A number, or how many a collection has, with its noun in the singular or the plural.

    Examples
    --------
    >>> quantity(0, "edge"), quantity(1, "edge"), quantity(1200, "edge"), quantity(2, "category")
    ('no edges', '1 edge', '1,200 edges', '2 categories')
    >>> quantity(3, "vertex", "vertices")
    '3 vertices'
    """
    number = len(count) if isinstance(count, Sized) else round(count)
    several = plural or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{number:,} {noun if number == 1 else several}" if number else f"no {several}"


def runs_in_spreadsheets(text: str) -> bool:
    """Whether a spreadsheet that opens a cell may compute it: it begins as formulas do, and is no number.

    Examples
    --------
    >>> [runs_in_spreadsheets(text) for text in ("=1+1", " @x", "-5", "+1e3", "-a", "a=1")]
    [True, True, False, False, True, False]
    """
    begun = text.lstrip(" ")
    if not begun or begun[0] not in _RUN:
        return False
    try:
        float(begun.replace(",", ".").replace("_", "no number"))
    except ValueError:
        return True
    return False


def spreadsheet_safe(text: str) -> str:
    """The text, with a ' before it where a spreadsheet might compute it.

    Examples
    --------
    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("-5")
    ("'=1+1", '-5')
    """
    return f"'{text}" if runs_in_spreadsheets(text) else text


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A table, its columns as wide as their widest cell."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)

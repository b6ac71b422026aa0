"""How the cells of one variable become codes, as lists that an engine's query can hold; knows no data.

In memory, :func:`pgmpy_dp.schema.cells.match_key` looks at each cell. A query cannot call it, so it is given what that
does: numbers are compared with the states that are numbers, texts with the states' texts, and a text is a number too
if it is spelled like one. Where the states are intervals, a number is coded as the one that it lies in. What a query
cannot decide by such comparisons, such as the text of a date or a text with blanks around it, it hands over, cell by
cell, to `match_key` itself (code `UNDECIDED`), so the answer is the same whatever the engine can do.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from enum import Enum, auto

from pgmpy_dp.schema import MISSING, Date, Schema, match_key

__all__ = ["DROPPED", "TRUTH", "UNDECIDED", "Coding", "Decided", "OutsideCounted", "coding", "key_coder"]

DROPPED = -1
"""Code of a cell that no state matches, in a variable without an other-state: its record does not count."""

UNDECIDED = -2
"""Code of a cell that the query leaves to match_key."""

TRUTH = {1.0: ("True", "true", "TRUE"), 0.0: ("False", "false", "FALSE")}


class Decided(Enum):
    """What a query compares the cells of one column with, the missing ones apart, which have `Coding.missing`.

    Attributes
    ----------
    NOTHING
        All cells are left to match_key.
    WHOLE_NUMBERS
        `Coding.numbers`, as whole numbers; others are outside.
    NUMBERS
        `Coding.numbers`, then `cuts`.
    TEXTS
        The spellings; others are outside.
    NUMBERS_IN_TEXTS
        The spellings; others by the number that the text is, or outside.
    SOME_TEXTS
        The spellings; others are left to match_key.
    """

    NOTHING, WHOLE_NUMBERS, NUMBERS, TEXTS, NUMBERS_IN_TEXTS, SOME_TEXTS = (auto() for _ in range(6))


@dataclass(frozen=True)
class Coding:
    """What each possible cell of one variable is coded as.

    Attributes
    ----------
    numbers : tuple of (float, int)
        Number and code of each number that counts by itself, whatever `cuts` are.
    texts : tuple of (str, int)
        Text and code of each text, not of a number, that counts by itself.
    missing : int
        Code of None and NaN.
    outside : int
        Code of every cell that is neither missing, a number nor a text; of other texts too, if `decides_texts`.
    n_states : int
    cuts : tuple of float
    codes : tuple of int
        One more than cuts: a number is coded as the one after as many as the cuts that it reaches.
    decides_numbers, decides_texts : bool
        Whether these comparisons decide every number and every text; if not, other ones are left to match_key.
    """

    numbers: tuple[tuple[float, int], ...]
    texts: tuple[tuple[str, int], ...]
    missing: int
    outside: int
    n_states: int
    cuts: tuple[float, ...]
    codes: tuple[int, ...]
    decides_numbers: bool = True
    decides_texts: bool = True

    def of_number(self, number: float) -> int:
        """Code of a number, which is not NaN, if numbers are decided."""
        return dict(self.numbers).get(number, self.codes[bisect_right(self.cuts, number)])

    def by_number(self, whole: bool) -> Decided:
        """How cells of a column of numbers, or of whole numbers, are decided."""
        # A whole number below 2**53 in size is equal to a cell if and only if the cell rounded to a double is.
        if whole and self.decides_numbers and not self.cuts and all(abs(n) < 2.0**53 for n, _ in self.numbers):
            return Decided.WHOLE_NUMBERS
        return Decided.NUMBERS if self.decides_numbers else Decided.NOTHING

    def by_text(self) -> Decided:
        """How cells of a column of texts are decided."""
        if not self.decides_texts:
            return Decided.SOME_TEXTS
        return Decided.NUMBERS_IN_TEXTS if self.numbers or self.cuts else Decided.TEXTS

    def whole_numbers(self) -> list[tuple[int, int]]:
        """The numbers that are whole, with their codes."""
        return [(int(number), code) for number, code in self.numbers if number.is_integer()]

    def spellings(self) -> tuple[tuple[str, int], ...]:
        """The states' texts, and the usual spellings of numbers, with their codes; not all spellings."""
        found = list(self.texts)
        for number, code in self.numbers:
            usual = [repr(number)] if math.isfinite(number) else []  # "inf" is a text like any other
            if number.is_integer() and abs(number) < 2.0**53:
                usual.insert(0, str(int(number)))
            found += [(text, code) for text in (*usual, *TRUTH.get(number, ()))]
        return tuple(found)


class OutsideCounted(Schema):
    """A schema's states without its other-states, and for each variable one more, the last: of all other cells.

    No record is dropped for it. The label of the last state is no matter: a cell that is equal to it is outside too.

    Parameters
    ----------
    schema : Schema
        Discrete variables only.

    Examples
    --------
    >>> counted = OutsideCounted(Schema({"age": ["<25", ">=25"], "sex": ["F", "?"]}, other={"sex": "?"}))
    >>> counted.cardinalities, [key_coder(counted, "sex")(match_key(cell)) for cell in ("F", "?", "M", None)]
    ({'age': 3, 'sex': 3}, [0, 1, 2, 2])
    """

    __slots__ = ("declared",)

    def __init__(self, schema: Schema) -> None:
        strict = {name: replace(number, outside="drop") for name, number in schema.numbers.items()}
        declared = {**schema, **strict}
        self.declared = Schema(declared, texts=declared.keys() - strict.keys(), **schema.options)
        own = self.declared.states
        super().__init__({name: [*own[name], ("outside", *own[name])] for name in own}, texts=own)


def coding(schema: Schema, name: Hashable) -> Coding:
    """Coding of one discrete variable.

    Examples
    --------
    >>> made = coding(Schema({"x": ["no", 7, None]}), "x")
    >>> made.numbers, made.texts, made.missing, made.outside
    (((7.0, 1),), (('no', 0),), 2, -1)
    >>> made.spellings()
    (('no', 0), ('7', 1), ('7.0', 1))
    """
    declared = schema.declared if isinstance(schema, OutsideCounted) else schema
    reading, number, code = declared.reading(name), declared.numbers.get(name), key_coder(schema, name)
    states = declared.states[name]
    alone = dict.fromkeys([*map(match_key, states), *sorted(reading.missing), *reading.recode])
    outside = code(("unreadable",))
    cuts, codes = declared.pieces(name) or ((), (outside,))
    return Coding(
        numbers=tuple((key[1], code(key)) for key in alone if key[0] == "number"),
        texts=tuple((key[1], code(key)) for key in alone if key[0] == "text" and _encodable(key[1])),
        missing=code(MISSING),
        outside=outside,
        n_states=schema.cardinality(name),
        cuts=cuts,
        # Numbers are dropped where they are outside: those are counted apart, if outside cells are.
        codes=tuple(outside if found == DROPPED else found for found in codes),
        decides_numbers=not getattr(number, "digits", 0),
        decides_texts=not (reading.strip or reading.casefold or isinstance(number, Date)),
    )


def key_coder(schema: Schema, name: Hashable) -> Callable[[tuple], int]:
    """What a cell of one discrete variable is coded as, by its match key: the rule that every other way is held to.

    Examples
    --------
    >>> code = key_coder(Schema({"age": ["<25", "[25,45)", ">=45"]}), "age")
    >>> [code(match_key(cell)) for cell in (24.9, "25", 1e300, "[25,45)", "25 years", None)]
    [0, 1, 2, 1, -1, -1]
    """
    if isinstance(schema, OutsideCounted):
        code, last = key_coder(schema.declared, name), schema.cardinality(name) - 1
        return lambda key: last if (found := code(key)) == DROPPED else found
    return schema.coder(name, DROPPED)


def _encodable(text: str) -> bool:
    """Whether an engine's text can hold it; half of a surrogate pair is in no engine's."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

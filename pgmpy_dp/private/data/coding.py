"""The coding of one variable's cells: by their match keys, and of numbers by the cuts that they lie among.

:func:`key_coder` is the rule. :class:`Coding` has the rule as lists of numbers, for whole columns; what lists cannot
decide, such as a number that is read as a date, is left to the rule, cell by cell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property

from pgmpy_dp.schema import Schema

DROPPED = -1
"""Code of a cell that no state matches, in a variable without an other-state: its record does not count."""


@dataclass(frozen=True)
class Coding:
    """The codes of all possible cells of one variable.

    Attributes
    ----------
    numbers : tuple of (float, int)
        Number and code of each number that counts by itself, whatever `cuts` are.
    texts : tuple of (str, int)
        Text and code of each text, not of a number, that counts by itself.
    cuts : tuple of float
    codes : tuple of int
        One more than cuts: ``codes[j]`` is the code of a number that reaches j cuts.
    decides_numbers : bool
        Whether these comparisons decide every number; if not, the rule does.
    """

    numbers: tuple[tuple[float, int], ...]
    texts: tuple[tuple[str, int], ...]
    cuts: tuple[float, ...]
    codes: tuple[int, ...]
    decides_numbers: bool = True

    def of_number(self, number: float) -> int:
        """Code of a number, which is not NaN, if numbers are decided."""
        return self._alone.get(number, self.codes[bisect_right(self.cuts, number)])

    @cached_property
    def _alone(self) -> dict[float, int]:
        return dict(self.numbers)


class OutsideCounted(Schema):
    """A schema's states without its other-states, and for each variable one more, the last: of all other cells.

    It drops no record. The label of the last state does not matter: a cell that is equal to it is outside too.

    Parameters
    ----------
    schema : Schema
        Discrete variables only.

    Examples
    --------
    >>> from pgmpy_dp.schema import match_key
    >>> counted = OutsideCounted(Schema({"age": ["<25", ">=25"], "sex": ["F", "?"]}, other={"sex": "?"}))
    >>> counted.cardinalities, [key_coder(counted, "sex")(match_key(cell)) for cell in ("F", "?", "M", None)]
    ({'age': 3, 'sex': 3}, [0, 1, 2, 2])
    """

    __slots__ = ("declared",)

    def __init__(self, schema: Schema) -> None:
        strict = {name: replace(number, outside="drop") for name, number in schema.numbers.items()}
        declared = {**schema, **strict}
        self.declared = Schema(declared, texts=declared.keys() - strict.keys(), **schema.options)
        states = self.declared.states
        apart = {name: [*states[name], ("outside", *states[name])] for name in states}
        super().__init__(apart, texts=states, codes=[name for name in apart if schema.reading(name).codes])


def coding(schema: Schema, name: Hashable) -> Coding:
    """Coding of one discrete variable.

    Examples
    --------
    >>> made = coding(Schema({"x": ["no", 7, None]}), "x")
    >>> made.numbers, made.texts
    (((7.0, 1),), (('no', 0),))
    """
    declared = schema.declared if isinstance(schema, OutsideCounted) else schema
    reading, number, code = declared.reading(name), declared.numbers.get(name), key_coder(schema, name)
    states = declared.states[name]
    alone = dict.fromkeys([*map(reading.key, states), *sorted(reading.missing), *reading.recode])
    outside = code(("unreadable",))
    cuts, codes = declared.pieces(name) or ((), (outside,))
    return Coding(
        numbers=tuple((key[1], code(key)) for key in alone if key[0] == "number"),
        texts=tuple((key[1], code(key)) for key in alone if key[0] == "text"),
        cuts=cuts,
        # Numbers are dropped where they are outside: those are counted apart, if outside cells are.
        codes=tuple(outside if state == DROPPED else state for state in codes),
        decides_numbers=not getattr(number, "digits", 0) and not reading.codes,
    )


def key_coder(schema: Schema, name: Hashable) -> Callable[[tuple], int]:
    """Return the function from a cell's key to a variable's code: the rule that every other way of coding is held to.

    Examples
    --------
    >>> from pgmpy_dp.schema import match_key
    >>> code = key_coder(Schema({"age": ["<25", "[25,45)", ">=45"]}), "age")
    >>> [code(match_key(cell)) for cell in (24.9, "25", 1e300, "[25,45)", "25 years", None)]
    [0, 1, 2, 1, -1, -1]
    """
    if isinstance(schema, OutsideCounted):
        code, last = key_coder(schema.declared, name), schema.cardinality(name) - 1
        return lambda key: last if (state := code(key)) == DROPPED else state
    return schema.coder(name, DROPPED)

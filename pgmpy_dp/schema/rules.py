"""Public rules about states that exclude one another.

A rule is a text, an implication or a combination that does not occur::

    age < 15 -> marital = never
    sex = M & pregnant = yes
    job in {student, retired} & income >= 5000 -> age >= 18

Conditions are ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` and ``in {...}``, joined by ``&``. A name or state that has
one of these signs, a comma, or a quotation mark at its beginning needs quotation marks or backticks: ``"<25"``. The
word ``missing`` without marks is the state None, where there is one. A rule may also be a mapping from variables to
states that cannot occur together: ``{"sex": ["M"], "pregnant": ["yes"]}``.

A rule may compare two numbers instead, ``checkin <= checkout`` (:mod:`pgmpy_dp.schema.orders`).

A rule forbids what certainly contradicts it. A missing value neither has nor lacks a property. So a rule forbids the
state None only if it names it. The same holds for the state that takes other values, where numbers are compared.

What a rule forbids are boxes: a set of states for each of some variables, which cannot occur together.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pgmpy_dp.schema.cells import match_key
from pgmpy_dp.schema.intervals import interval_cuts
from pgmpy_dp.schema.labels import short
from pgmpy_dp.schema.number import OUTSIDE, Number, number_text
from pgmpy_dp.schema.orders import OrderRule, read_order

Box = Mapping[Hashable, frozenset[int]]
"""States, by their numbers, that some variables cannot have together."""

_QUOTED = r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
_BARE = r"(?:-(?!>)|[^-&<>=!{}`\"'\s])(?:-(?!>)|[^-&<>=!{}])*?"
_WORD = re.compile(rf"\s*({_QUOTED}|{_BARE})\s*(?=->|[&<>=!{{}}]|(?<=\s)in\s*\{{|$)")
_SIGN = re.compile(r"\s*(!=|<=|>=|==?|<|>|in(?=\s*\{))")
_ITEM = re.compile(rf"\s*({_QUOTED}|(?:[\[(][^\[\](){{}}]*[\])]|[^,{{}}])+?)\s*(,|\}})")
_JOIN = re.compile(r"\s*(&|->|$)")
_PLAIN = re.compile(r"-?[\w.]+")


@dataclass(frozen=True)
class Column:
    """A variable, as far as a rule has to know it.

    Attributes
    ----------
    name : hashable
    states : tuple, or None for numbers that are not divided
    declared : Number, optional
    other : hashable
        The state that takes other values.
    codes : bool
        Whether states are compared as they are written, and are no numbers.
    """

    name: Hashable
    states: tuple | None
    declared: Number | None = None
    other: Hashable = None
    codes: bool = False

    def key(self, word: object) -> tuple:
        """The key by which states are compared."""
        return match_key(word, "code" if self.codes else "meaning")

    def number(self, word: object) -> float | None:
        """The number, or day, that is written so; None for another word."""
        key = self.key(word)
        if self.declared is not None:
            number = self.declared.reads(key)
            return None if number is None or math.isnan(number) else number
        return float(key[1]) if key[0] == "number" else None

    def value_above(self, number: float, or_at: bool) -> float | None:
        """The first number above one, or at it; None where there is no first one."""
        if self.declared is not None:
            return self.declared.value_above(number, or_at)
        return number if or_at else None

    def divided(self, cuts: Iterable[float]) -> Column:
        """Numbers that are not divided as a fine grid would divide them."""
        if self.states is not None or self.declared is None:
            return self
        fine = self.declared.fine(cuts=cuts)
        return Column(self.name, fine.states, fine)

    def text(self, number: float) -> str:
        """A number, or day, as messages say it."""
        return number_text(number) if self.declared is None else self.declared.text(number)

    @cached_property
    def keys(self) -> list[tuple]:
        """The key of each state."""
        return [self.key(state) for state in self.states or ()]

    @cached_property
    def spans(self) -> list[tuple[float, float, bool] | None]:
        """The lowest and the highest number of each state, and whether the highest belongs to it; None for none."""
        states = self.states or ()
        if self.declared is not None:
            cells = self.declared.spans()
            return [*cells, *(None for _ in states[len(cells) :])]
        if not self.codes and (cuts := interval_cuts(states)):
            return [(low, high, False) for low, high in itertools.pairwise((-math.inf, *cuts, math.inf))]
        numbers = (self.number(state) for state in states)
        return [None if number is None else (number, number, True) for number in numbers]

    def is_known(self, code: int) -> bool:
        """Whether a state without a number certainly lacks one."""
        assert self.states is not None
        return self.declared is None and self.states[code] not in (None, self.other)


@dataclass(frozen=True)
class Word:
    """A state or number as it is written."""

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        return _written(self.text, '"') if self.quoted else self.text


@dataclass(frozen=True)
class Condition:
    """One comparison of a variable with words."""

    name: Hashable
    sign: str
    words: tuple[Word, ...]

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.words))
        return f"{_written(str(self.name), '`')} {self.sign} " + (f"{{{listed}}}" if self.sign == "in" else listed)

    def truth(self, column: Column) -> list[bool | None]:
        """Return for each state whether it meets the condition; None where that is not known."""
        if self.sign in ("=", "!=", "in"):
            assert column.states is not None
            named = {code for word in self.words for code in _named(word, column)}
            met = [None if s is None and code not in named else code in named for code, s in enumerate(column.states)]
            return [None if known is None else not known for known in met] if self.sign == "!=" else met
        number = self._threshold(column)
        return [self._compared(number, code, column) for code in range(len(column.states or ()))]

    def cuts(self, column: Column) -> list[float]:
        """Return where it divides numbers, as far as that is known: of a value, at it and at the next one."""
        if self.sign in ("=", "!=", "in"):
            numbers = [number for word in self.words if (number := column.number(word.text)) is not None]
            words = {word.text for word in self.words if column.number(word.text) is None}
            if column.states is None and (words := words - {"missing", OUTSIDE}):
                raise ValueError(
                    f"has {min(words)}, which is not a number, and {column.name!r} is not divided into states that "
                    "have names; compare with numbers"
                )
            cuts = [column.value_above(number, or_at) for number in numbers for or_at in (True, False)]
            return [] if None in cuts else [cut for cut in cuts if cut is not None]
        cut = column.value_above(self._threshold(column), self.sign in ("<", ">="))
        return [] if cut is None else [cut]

    def _threshold(self, column: Column) -> float:
        (word,) = self.words
        if column.states is not None and not any(column.spans):
            raise ValueError(
                f"compares {column.name!r} with {word}, but its states {short(column.states)} are neither numbers nor "
                "intervals; name states, with =, != or in {...}"
            )
        number = column.number(word.text)
        if number is None:
            raise ValueError(f"compares {column.name!r} with {word}, which is not a number; write a number")
        return number

    def _compared(self, number: float, code: int, column: Column) -> bool | None:
        """Whether all numbers of a state meet the condition (True), or none does (False)."""
        span = column.spans[code]
        assert column.states is not None
        state = column.states[code]
        if span is None:
            if not column.is_known(code):
                return None
            raise ValueError(
                f"compares {column.name!r} with {column.text(number)}, but its state {state!r} is neither a number nor "
                "an interval; name states, with =, != or in {...}"
            )
        low, high, closed = span
        below = high < number or (high == number and (self.sign in ("<=", ">") or not closed))
        above = low > number or (low == number and self.sign in ("<", ">="))
        if below or above:
            return below == (self.sign in ("<", "<="))
        cuts = self.cuts(column)
        remedy = f"cut at {column.text(cuts[0])}" if cuts else "intervals begin with their cut: use < or >="
        raise ValueError(
            f"compares {column.name!r} with {column.text(number)}, which is inside its state {state!r}; {remedy}"
        )


@dataclass(frozen=True)
class Rule:
    """Conditions that cannot all hold, or that imply others. Its text is read back as the same rule."""

    premise: tuple[Condition, ...]
    implied: tuple[Condition, ...] = ()
    names: frozenset = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(part.name for part in (*self.premise, *self.implied)))

    def __str__(self) -> str:
        sides = [" & ".join(map(str, side)) for side in (self.premise, self.implied) if side]
        return " -> ".join(sides)

    def cuts(self, column: Column) -> list[float]:
        """Return where its comparisons divide the numbers of a variable."""
        return [cut for part in (*self.premise, *self.implied) if part.name == column.name for cut in part.cuts(column)]

    def boxes(self, columns: Mapping[Hashable, Column]) -> list[Box]:
        """Return what the rule forbids; nothing while one of its variables is not divided into states.

        Raises
        ------
        ValueError
            For conditions that the states do not decide (of numbers that are not divided: not those of a fine grid),
            and for a rule that forbids nothing.
        """
        divided = all(columns[name].states is not None for name in self.names)
        columns = {name: columns[name].divided(self.cuts(columns[name])) for name in self.names}
        known = [part.truth(columns[part.name]) for part in (*self.premise, *self.implied)]
        start: dict[Hashable, frozenset[int]] = {}
        for part, met in zip(self.premise, known, strict=False):
            _narrow(start, part.name, met, True)
        boxes: list[Box] = [start] if not self.implied else []
        for part, met in zip(self.implied, known[len(self.premise) :], strict=True):
            _narrow(box := dict(start), part.name, met, False)
            boxes.append(box)
        boxes = [box for box in boxes if all(box.values())]
        if not boxes:
            raise ValueError("forbids nothing: no states meet its conditions and break it; correct or remove it")
        return boxes if divided else []


def read_rule(rule: Any, columns: Mapping[Hashable, Column]) -> Rule | OrderRule:
    """The rule that is written as a text or a mapping.

    Raises
    ------
    TypeError, ValueError
        If it cannot be read, or names other variables.
    """
    if isinstance(rule, str):
        return read_order(rule, columns) or _parsed(rule, columns)
    if not isinstance(rule, Mapping):
        raise TypeError("is neither a text nor a mapping of variables to states; write 'age < 15 -> marital = never'")
    if not rule:
        raise ValueError("names no variable; name at least one")
    conditions = []
    for name, states in rule.items():
        column = _column(name, columns)
        listed = [states] if isinstance(states, str) or not isinstance(states, Iterable) else list(states)
        if column.states is None or not listed:
            raise ValueError(f"has no states of {name!r}; name at least one")
        known = dict(zip(column.keys, column.states, strict=True))
        unknown = [state for state in listed if column.key(state) not in known]
        if unknown:
            raise ValueError(f"has {unknown}, which are not states of {name!r}; it has {short(column.states)}")
        words = tuple(_word_of(known[column.key(state)]) for state in listed)
        conditions.append(Condition(column.name, "in" if len(words) > 1 else "=", words))
    return Rule(tuple(conditions))


def conditions(column: Column, codes: Collection[int]) -> tuple[Condition, ...]:
    """Write that a variable has one of some states; nothing where the notation has no word for that.

    Numbers are compared with the ends of their cells, which means the same where they are undivided or in finer cells.

    Examples
    --------
    >>> age = Number(0, 99, cuts=[15, 65], resolution=1)
    >>> " & ".join(map(str, conditions(Column("age", age.states, age), [0, 1])))
    'age < 65'
    """
    states, chosen = column.states or (), sorted(codes)
    if column.declared is None or all(column.spans[code] is None for code in chosen):
        words = tuple(_word_of(states[code]) for code in chosen)
        return (Condition(column.name, "in" if len(words) > 1 else "=", words),) if words else ()
    first, last, cells = chosen[0], chosen[-1], column.declared.spans()
    if last - first + 1 != len(chosen) or last >= len(cells):
        return ()
    if cells[first][0] == cells[last][1]:
        return (Condition(column.name, "=", (Word(column.text(cells[first][0])),)),)
    ends = {">=": column.declared.edges[first]} if first else {}
    ends |= {"<": column.declared.edges[last + 1]} if last + 1 < len(cells) else {}
    return tuple(Condition(column.name, sign, (Word(column.text(edge)),)) for sign, edge in ends.items())


def leave_something(boxes: Sequence[Box], columns: Mapping[Hashable, Column]) -> bool:
    """Whether some record lies outside of all boxes.

    Depth first: a box that is still open is left by one of its variables, or else by one of those after it.
    """
    sizes = {name: len(columns[name].states or ()) for box in boxes for name in box}
    waiting = [({name: frozenset(range(size)) for name, size in sizes.items()}, list(boxes))]
    while waiting:
        left, unsettled = waiting.pop()
        unsettled = [box for box in unsettled if all(left[name] & codes for name, codes in box.items())]
        if not unsettled:
            return True
        if any(all(left[name] <= codes for name, codes in box.items()) for box in unsettled):
            continue
        for name, codes in min(unsettled, key=len).items():
            if outside := left[name] - codes:
                waiting.append(({**left, name: outside}, unsettled))
            left = {**left, name: left[name] & codes}
    return False


def _narrow(box: dict[Hashable, frozenset[int]], name: Hashable, met: Sequence[bool | None], wanted: bool) -> None:
    codes = frozenset(code for code, known in enumerate(met) if known is wanted)
    box[name] = box.get(name, codes) & codes


def _named(word: Word, column: Column) -> list[int]:
    """Numbers of the states that a word names: one, or those that a number is."""
    states = column.states or ()
    if word == Word("missing") and None in states:
        return [states.index(None)]
    if column.key(word.text) in column.keys:
        return [column.keys.index(column.key(word.text))]
    spelled = [code for code, state in enumerate(states) if str(state) == word.text and state is not None]
    if len(spelled) == 1:
        return spelled
    number = column.number(word.text) if any(column.spans) else None
    if number is not None:
        for code, span in enumerate(column.spans):
            if span is None or not (span[0] <= number < span[1] or (number == span[1] and span[2])):
                continue
            if span[0] < span[1]:
                raise ValueError(
                    f"compares {column.name!r} with {word}, which is one of the numbers of its state {states[code]!r}; "
                    "name the state, or compare by < or >="
                )
            return [code]
    raise ValueError(f"has {word}, which is not a state of {column.name!r}; it has {short(states)}")


def _parsed(text: str, columns: Mapping[Hashable, Column]) -> Rule:
    sides: list[list[Condition]] = [[]]
    at = 0
    while True:
        word, at = _next_word(text, at)
        column = _column(word.text, columns)
        sign = _SIGN.match(text, at)
        if not sign:
            raise ValueError(f"has none of =, !=, <, <=, >, >=, in {{...}} after {word}; write {word} = state")
        at = sign.end()
        words: list[Word] = []
        if sign[1] == "in":
            at, more = text.index("{", at) + 1, ","
            while more == ",":
                item = _ITEM.match(text, at)
                if not item:
                    raise ValueError("has a list that does not end; write in {state, state}")
                words.append(_word(item[1]))
                at, more = item.end(), item[2]
        else:
            word, at = _next_word(text, at)
            words.append(word)
        sides[-1].append(Condition(column.name, sign[1].replace("==", "="), tuple(words)))
        join = _JOIN.match(text, at)
        if not join or (join[1] == "->" and len(sides) == 2):
            raise ValueError(f"cannot be read from {text[at:].strip()!r} on; join conditions by &, and use -> once")
        at = join.end()
        if not join[1]:
            return Rule(tuple(sides[0]), tuple(sides[1]) if len(sides) == 2 else ())
        if join[1] == "->":
            sides.append([])


def _next_word(text: str, at: int) -> tuple[Word, int]:
    match = _WORD.match(text, at)
    if not match:
        raise ValueError(
            f"cannot be read from {text[at:].strip()!r} on; write conditions such as age < 15, and quotation marks "
            'around names and states with signs: "<25"'
        )
    return _word(match[1]), match.end()


def _word(text: str) -> Word:
    if len(text) > 1 and text[0] in "`\"'" and text[-1] == text[0]:
        return Word(text[1:-1].replace(text[0] * 2, text[0]), True)
    return Word(text.strip())


def _word_of(state: object) -> Word:
    return Word("missing") if state is None else Word(str(state), not _is_plain(str(state)))


def _column(name: Any, columns: Mapping[Hashable, Column]) -> Column:
    if isinstance(name, Hashable) and name in columns:
        return columns[name]
    matches = [column for known, column in columns.items() if str(known) == name]
    if len(matches) != 1:
        raise ValueError(f"names {name!r}, which is not a variable of the schema; it has {short(tuple(columns))}")
    return matches[0]


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text not in ("in", "missing")


def _written(text: str, mark: str) -> str:
    return text if _is_plain(text) else mark + text.replace(mark, mark * 2) + mark

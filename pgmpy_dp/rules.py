"""What cannot be: public rules about states that exclude one another.

A rule is a text, an implication or a combination that does not occur::

    age < 15 -> marital = never
    sex = M & pregnant = yes
    job in {student, retired} & income >= 5000 -> age >= 18

Conditions are ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` and ``in {...}``, joined by ``&``. A name or state that has one of
these signs, a comma, or a quotation mark at its beginning stands in quotation marks or backticks: ``"<25"``. The word
``missing`` without marks is the state None, where there is one. A rule may also be a mapping from variables to the
states that cannot be together: ``{"sex": ["M"], "pregnant": ["yes"]}``.

A rule forbids what contradicts it for certain. A missing value neither has nor lacks a property: the state None, and the
state that takes other values where numbers are compared, are forbidden only where a rule names them.

What is forbidden are boxes: for some variables a set of states each, which cannot be together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Box", "Column", "Rule", "leave_something", "read_rule"]

Box = dict[Hashable, frozenset[int]]
"""States, by their numbers, that some variables cannot have together."""

Range = tuple[float, float, bool]
"""Lowest and highest number of a state, and whether the highest belongs to it."""

_QUOTED = r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
_BARE = r"(?:-(?!>)|[^-&<>=!{}`\"'\s])(?:-(?!>)|[^-&<>=!{}])*?"
_WORD = re.compile(rf"\s*({_QUOTED}|{_BARE})\s*(?=->|[&<>=!{{}}]|(?<=\s)in\s*\{{|$)")
_SIGN = re.compile(r"\s*(!=|<=|>=|==?|<|>|in(?=\s*\{))")
_ITEM = re.compile(rf"\s*({_QUOTED}|(?:[\[(][^\[\](){{}}]*[\])]|[^,{{}}])+?)\s*(,|\}})")
_JOIN = re.compile(r"\s*(&|->|$)")
_PLAIN = re.compile(r"-?[\w.]+")


@dataclass(frozen=True)
class Column:
    """What a rule has to know of a variable.

    Attributes
    ----------
    name : hashable
    states : tuple, or None for numbers that are not divided
    key : callable
        From a value to what tells states apart.
    number : callable
        From a word to the number that it is for this variable; None for another word.
    ranges : tuple of (float, float, bool) or None, one for each state
        Numbers that the state stands for.
    other : frozenset of int
        States that stand for what is not known: missing, outside, other values.
    """

    name: Hashable
    states: tuple | None
    key: Callable[[object], Hashable]
    number: Callable[[str], float | None]
    ranges: tuple[Range | None, ...] = ()
    other: frozenset[int] = frozenset()


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
        """For each state whether it meets the condition; None where that is not known."""
        if self.sign in ("=", "!=", "in"):
            assert column.states is not None
            named = {code for word in self.words for code in _named(word, column)}
            unknown = {code for code in column.other if column.states[code] is None} - named
            met = [None if code in unknown else code in named for code in range(len(column.states))]
            return [None if known is None else not known for known in met] if self.sign == "!=" else met
        number = self._threshold(column)
        return [self._compared(number, code, column) for code in range(len(column.states or ()))]

    def check(self, column: Column) -> None:
        """ValueError for a condition that numbers which are not divided cannot be compared by."""
        if self.sign in ("=", "!=", "in"):
            raise ValueError(f"compares {column.name!r}, a variable of numbers, by {self.sign!r}; use <, <=, > or >=")
        self._threshold(column)

    def _threshold(self, column: Column) -> float:
        (word,) = self.words
        if column.states is not None and not any(column.ranges):
            raise ValueError(
                f"compares {column.name!r} with {word}, but its states {_short(column.states)} are no numbers and no "
                "intervals; name states, with =, != or in {...}"
            )
        number = column.number(word.text)
        if number is None:
            raise ValueError(f"compares {column.name!r} with {word}, which is no number; write a number")
        return number

    def _compared(self, number: float, code: int, column: Column) -> bool | None:
        """Whether all numbers of a state meet the condition (True), or none does (False)."""
        span = column.ranges[code]
        assert column.states is not None
        state = column.states[code]
        if span is None:
            if code in column.other:
                return None
            raise ValueError(
                f"compares {column.name!r} with {number:.15g}, but its state {state!r} is no number and no interval; "
                "name states, with =, != or in {...}"
            )
        low, high, closed = span
        below = high < number or (high == number and (self.sign in ("<=", ">") or not closed))
        above = low > number or (low == number and self.sign in ("<", ">="))
        if below or above:
            return below == (self.sign in ("<", "<="))
        remedy = f"cut at {number:.15g}" if self.sign in ("<", ">=") else "intervals begin with their cut: use < or >="
        raise ValueError(f"compares {column.name!r} with {number:.15g}, which lies within its state {state!r}; {remedy}")


@dataclass(frozen=True)
class Rule:
    """Conditions that cannot all hold, or that imply others. Its text is read back as the same rule."""

    given: tuple[Condition, ...]
    implied: tuple[Condition, ...] = ()
    names: frozenset = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(part.name for part in (*self.given, *self.implied)))

    def __str__(self) -> str:
        sides = [" & ".join(map(str, side)) for side in (self.given, self.implied) if side]
        return " -> ".join(sides)

    def boxes(self, columns: Mapping[Hashable, Column]) -> list[Box]:
        """What the rule forbids; nothing while one of its variables is not divided into states.

        Raises
        ------
        ValueError
            For conditions that the states do not decide, and for a rule that forbids nothing.
        """
        parts = (*self.given, *self.implied)
        if any(columns[name].states is None for name in self.names):
            for part in parts:
                if columns[part.name].states is None:
                    part.check(columns[part.name])
                else:
                    part.truth(columns[part.name])
            return []
        known = [part.truth(columns[part.name]) for part in parts]
        start: Box = {}
        for part, met in zip(self.given, known, strict=False):
            _narrow(start, part.name, met, True)
        found = [start] if not self.implied else []
        for part, met in zip(self.implied, known[len(self.given) :], strict=True):
            _narrow(box := dict(start), part.name, met, False)
            found.append(box)
        found = [box for box in found if all(box.values())]
        if not found:
            raise ValueError("forbids nothing: no states meet its conditions and break it; correct or remove it")
        return found


def read_rule(rule: Any, columns: Mapping[Hashable, Column]) -> Rule:
    """The rule that is written as a text or a mapping.

    Raises
    ------
    TypeError, ValueError
        If it cannot be read, or names other variables.
    """
    if isinstance(rule, str):
        return _parsed(rule, columns)
    if not isinstance(rule, Mapping):
        raise TypeError("is no text and no mapping of variables to states; write 'age < 15 -> marital = never'")
    if not rule:
        raise ValueError("names no variable; name at least one")
    given = []
    for name, states in rule.items():
        column = _column(name, columns)
        listed = [states] if isinstance(states, str) or not isinstance(states, Iterable) else list(states)
        if column.states is None or not listed:
            raise ValueError(f"has no states of {name!r}; name at least one")
        known = {column.key(state): state for state in column.states}
        unknown = [state for state in listed if column.key(state) not in known]
        if unknown:
            raise ValueError(f"has {unknown}, which are no states of {name!r}; it has {_short(column.states)}")
        words = tuple(_word_of(known[column.key(state)]) for state in listed)
        given.append(Condition(column.name, "in" if len(words) > 1 else "=", words))
    return Rule(tuple(given))


def leave_something(boxes: Sequence[Box], columns: Mapping[Hashable, Column]) -> bool:
    """Whether some record lies outside of all boxes.

    Depth first: a box that is still open is left by one of its variables, or else by one of those after it.
    """
    sizes = {name: len(columns[name].states or ()) for box in boxes for name in box}
    waiting = [{name: frozenset(range(size)) for name, size in sizes.items()}]
    while waiting:
        left = waiting.pop()
        if any(all(left[name] <= codes for name, codes in box.items()) for box in boxes):
            continue
        unsettled = [box for box in boxes if all(left[name] & codes for name, codes in box.items())]
        if not unsettled:
            return True
        for name, codes in min(unsettled, key=len).items():
            if outside := left[name] - codes:
                waiting.append({**left, name: outside})
            left = {**left, name: left[name] & codes}
    return False


def _narrow(box: Box, name: Hashable, met: Sequence[bool | None], wanted: bool) -> None:
    codes = frozenset(code for code, known in enumerate(met) if known is wanted)
    box[name] = box.get(name, codes) & codes


def _named(word: Word, column: Column) -> list[int]:
    """Numbers of the states that a word names: one, or those that a number is."""
    states = column.states or ()
    keys = [column.key(state) for state in states]
    if word == Word("missing") and None in states:
        return [states.index(None)]
    if column.key(word.text) in keys:
        return [keys.index(column.key(word.text))]
    spelled = [code for code, state in enumerate(states) if str(state) == word.text and state is not None]
    if len(spelled) == 1:
        return spelled
    number = column.number(word.text) if any(column.ranges) else None
    if number is not None:
        for code, span in enumerate(column.ranges):
            if span is None or not (span[0] <= number < span[1] or (number == span[1] and span[2])):
                continue
            if span[0] < span[1]:
                raise ValueError(
                    f"compares {column.name!r} with {word}, which is one of the numbers of its state {states[code]!r}; "
                    "name the state, or compare by < or >="
                )
            return [code]
    raise ValueError(f"has {word}, which is no state of {column.name!r}; it has {_short(states)}")


def _parsed(text: str, columns: Mapping[Hashable, Column]) -> Rule:
    sides: list[list[Condition]] = [[]]
    at = 0
    while True:
        word, at = _next_word(text, at)
        column = _column(word.text, columns)
        sign = _SIGN.match(text, at)
        if not sign:
            raise ValueError(f"has nothing of =, !=, <, <=, >, >=, in {{...}} after {word}; write {word} = state")
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
    found = _WORD.match(text, at)
    if not found:
        raise ValueError(
            f"cannot be read from {text[at:].strip()!r} on; write conditions such as age < 15, and quotation marks around "
            'names and states with signs: "<25"'
        )
    return _word(found[1]), found.end()


def _word(text: str) -> Word:
    if len(text) > 1 and text[0] in "`\"'" and text[-1] == text[0]:
        return Word(text[1:-1].replace(text[0] * 2, text[0]), True)
    return Word(text.strip())


def _word_of(state: object) -> Word:
    return Word("missing") if state is None else Word(str(state), not _is_plain(str(state)))


def _column(name: Any, columns: Mapping[Hashable, Column]) -> Column:
    if isinstance(name, Hashable) and name in columns:
        return columns[name]
    found = [column for known, column in columns.items() if str(known) == name]
    if len(found) != 1:
        raise ValueError(f"names {name!r}, which is no variable of the schema; it has {_short(tuple(columns))}")
    return found[0]


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text not in ("in", "missing")


def _written(text: str, mark: str) -> str:
    return text if _is_plain(text) else mark + text.replace(mark, mark * 2) + mark


def _short(value: object, limit: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."

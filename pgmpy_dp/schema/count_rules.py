"""Public rules on how many children of a parent meet a condition: ``count(role = head) = 1``.

What stands on the left is a condition on one variable of a child, as :mod:`pgmpy_dp.schema.rules` has it; on the right
a whole number, the number n of children, or both: ``count(age >= 16) >= n - 3``. A child whose value is missing, or
outside the schema, neither meets the condition nor fails to. So a family breaks a rule only if it does however such
children are counted. A parent without children breaks none.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.schema.rules import Column, Condition, Rule, read_rule

_COUNT = re.compile(r"\s*count\s*\((.*)\)\s*(!=|<=|>=|==?|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class CountRule:
    """A rule on how many children meet conditions on one variable. Its text is read back as the same rule.

    Attributes
    ----------
    conditions : tuple of Condition
    sign : {"=", "<", "<=", ">", ">="}
    number : int
    size : str
        The name of n where `number` is added to it; else empty.
    """

    conditions: tuple[Condition, ...]
    sign: str
    number: int
    size: str = ""

    def __str__(self) -> str:
        shift = f" {'-' if self.number < 0 else '+'} {abs(self.number)}" if self.number else ""
        bound = f"{self.size}{shift}" if self.size else str(self.number)
        return f"count({' & '.join(map(str, self.conditions))}) {self.sign} {bound}"

    @property
    def name(self) -> Hashable:
        """The variable."""
        return self.conditions[0].name

    def cuts(self, column: Column) -> list[float]:
        """Return where the conditions divide the numbers of the variable."""
        return [cut for part in self.conditions for cut in part.cuts(column)]

    def truth(self, column: Column) -> list[bool | None]:
        """Whether each state of the variable meets the conditions; None where that is unknown."""
        each = zip(*(part.truth(column) for part in self.conditions), strict=True)
        return [False if False in met else None if None in met else True for met in each]

    def limits(self, most: int) -> np.ndarray:
        """The fewest and the most children that may meet the conditions, of 0, 1, ... `most`: shape (2, most + 1).

        The last are `most` of as many or more, of whom others may meet them: so a number says of these no more than how
        many do at most, and a number beside n, how many do at least.
        """
        n = np.arange(most + 1)
        bound = self.number + n * bool(self.size)
        low = bound + (self.sign == ">") if self.sign in ("=", ">", ">=") else 0 * n
        high = bound - (self.sign == "<") if self.sign in ("=", "<", "<=") else n
        low[0] = high[0] = 0
        if self.size:
            high[-1] = max(high[-1], most)
        else:
            low[-1] = 0
        return np.array([np.maximum(low, 0), np.minimum(high, n)])


def read_count(text: str, columns: Mapping[Hashable, Column], size: str) -> CountRule | None:
    """The rule on a count that is written so; None where the text does not begin with ``count(``.

    Parameters
    ----------
    text : str
    columns : mapping of name to Column
        Those of a child.
    size : str
        The name of the number of children.

    Raises
    ------
    ValueError
        If it cannot be read.

    Examples
    --------
    >>> columns = {"role": Column("role", ("head", "other"))}
    >>> rule = read_count("count(role=head) < n", columns, "n")
    >>> str(rule), rule.limits(3).tolist()
    ('count(role = head) < n', [[0, 0, 0, 0], [0, 0, 1, 3]])
    """
    if not (match := _COUNT.fullmatch(text)):
        return None
    rule = read_rule(match[1], columns)
    if not isinstance(rule, Rule) or rule.implied or len(rule.names) > 1:
        raise ValueError("counts by more than one column; count by a condition on one: count(role = head) = 1")
    bound = "".join(match[3].split())
    of_size = bound.startswith(size)
    number = bound.removeprefix(size) if of_size else bound
    if match[2] == "!=" or not re.fullmatch(r"([+-]\d+)?" if of_size else r"\d+", number):
        raise ValueError(
            f"compares a count by {match[2]} {match[3]}; compare it by =, <, <=, > or >= with a whole number, or with "
            f"the number of children: {size}, {size} - 1"
        )
    return CountRule(rule.premise, match[2].replace("==", "="), int(number or 0), size if of_size else "")


def table_of_rule(rule: str, tables: Mapping[str, Iterable[Hashable]]) -> str | None:
    """The table whose columns alone a rule names; None for rules on counts, and on columns of both or of neither."""
    texts = {table: [re.escape(str(name)) for name in names] for table, names in tables.items()}
    named = [table for table, some in texts.items() if any(re.search(rf"(?<!\w){n}(?!\w)", rule) for n in some)]
    return None if len(named) != 1 or _COUNT.fullmatch(rule) else named[0]


class CountLimits:
    """The rules on counts by one variable: what they leave for a child, given others of its family.

    Parameters
    ----------
    rules : sequence of CountRule
        On one variable.
    column : Column
        It, divided into states.
    most : int
        Children of a family that count.

    Attributes
    ----------
    met, unknown : ndarray of bool, shape (rules + 1, states + 2)
        Whether a state meets a rule's conditions, and whether that is unknown. The last rule is that there are n
        children. The last states are of an absent child, and of a value outside the schema.
    low, high : ndarray of int, shape (rules + 1, most + 1)
        As `CountRule.limits`.

    Raises
    ------
    ValueError
        If the states of two rules overlap, none being among the other's, and if a number of children is left nothing.
    """

    def __init__(self, rules: Sequence[CountRule], column: Column, most: int) -> None:
        truth = {rule: rule.truth(column) for rule in rules}
        ordered = sorted(rules, key=lambda rule: truth[rule].count(True))
        n_states = len(column.states or ())
        self.met = np.array([[met is True for met in truth[rule]] + [False] * 2 for rule in ordered])
        self.met = np.vstack([self.met, np.ones(n_states + 2, dtype=bool)])
        self.unknown = np.array([[met is None for met in truth[rule]] + [True] * 2 for rule in ordered])
        self.unknown = np.vstack([self.unknown, np.zeros(n_states + 2, dtype=bool)])
        n = np.arange(most + 1)
        self.low, self.high = np.stack([*(rule.limits(most) for rule in ordered), [n, n]], axis=1)
        self._within: list[tuple[list[int], bool]] = []
        states = self.met[:, :n_states]
        for i, mine in enumerate(states):
            inside: list[int] = []
            for j in reversed(range(i)):
                if (states[j] <= mine).all() and not any((states[j] <= states[k]).all() for k in inside):
                    inside.append(j)
                elif (states[j] & mine & ~states[inside].any(axis=0)).any():
                    raise ValueError(
                        f"overlaps {str(ordered[j])!r}: some states of {column.name!r} meet both conditions, and of "
                        "each some meet one alone; count by conditions of which one implies the other, or excludes it"
                    )
            self._within.append((inside, bool((states[inside].any(axis=0) == mine).all())))
        if not (possible := self.possible(self.low, self.high)).all():
            raise ValueError(f"leaves no family of n = {np.argmin(possible)} possible; correct or remove a rule")

    def possible(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Whether children can be found of whom each rule counts from `low` to `high`; arrays of a row for each rule.

        Of sets of states that lie within each other, or apart, the least and the largest number add up from the inside.
        """
        need, room = np.maximum(low, 0), high.copy()
        for i, (inside, is_all) in enumerate(self._within):
            need[i] = np.maximum(need[i], need[inside].sum(axis=0))
            if is_all:
                room[i] = np.minimum(room[i], room[inside].sum(axis=0))
        return (need <= room).all(axis=0)

    def left(self, others: np.ndarray, there: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The fewest and the most further children that each rule counts: shape (rules + 1, rows) each.

        Parameters
        ----------
        others : ndarray of int, shape (rows, m)
            States of children.
        there : ndarray of bool, shape (rows, m)
            Which of them count.
        n : ndarray of int, shape (rows,)
            Numbers of children.
        """
        counted, unknown = ((table[:, others] & there).sum(axis=2) for table in (self.met, self.unknown))
        return self.low[:, n] - counted - unknown, self.high[:, n] - counted

    def allowed(self, others: np.ndarray, there: np.ndarray, n: np.ndarray, at_once: bool) -> np.ndarray:
        """The states that a further child may have, so that the rest of its family can be completed.

        Parameters
        ----------
        others, there, n
            As `left` has them.
        at_once : bool
            Whether a child is drawn as one of those that an exact number asks for as long as some are lacking.

        Returns
        -------
        ndarray of bool, shape (rows, states)
        """
        low, high = self.left(others, there, n)
        lacking = (low > 0) & (self.low == self.high)[:, n]
        lacking[-1] = False
        allowed = np.empty((len(n), self.met.shape[1] - 2), dtype=bool)
        wanted = np.empty_like(allowed)
        for state in range(allowed.shape[1]):
            met, unknown = self.met[:, [state]], self.unknown[:, [state]]
            allowed[:, state] = self.possible(low - (met | unknown), high - met)
            wanted[:, state] = (met & lacking).any(axis=0)
        wanted &= allowed & at_once
        return np.where(
            wanted.any(axis=1, keepdims=True), wanted | (allowed & self.unknown[:, :-2].any(axis=0)), allowed
        )

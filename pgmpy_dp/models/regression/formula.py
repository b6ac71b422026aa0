"""Formulas of regressions, materialised on the public states of a model alone: no record is ever seen here.

A formula is ``response ~ terms``: names of variables, ``C()`` around those that are to be categories, and ``+``, ``:``
and ``*`` between. Nothing else is read, so that no formula computes anything of records, and none runs code.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_number
from pgmpy_dp.private.operators.score_sums import VALUE
from pgmpy_dp.shown import shown

MOST_COLUMNS = 64
"""Of a design: with more, noise would be most of what there is to see."""

_MOST_TERMS = 1000
_GRAMMAR = (
    "write names of variables, C(name) for categories, and +, : and * between, as in 'ill ~ age + C(job)*sex'; a name "
    "that is no word stands in backquotes"
)

Values = tuple[Hashable, np.ndarray]
"""A variable, and a number for each of its states."""

_Factor = tuple[str, bool]  # a name as it is written, and whether C() is around it


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a design: a product of numbers of the states of some variables, named as statsmodels names it."""

    name: str
    factors: tuple[Values, ...]

    @property
    def scaled(self) -> tuple[Values, ...]:
        """The same from -1 to 1, in whole units of 1/VALUE, as sums over records have them."""
        return tuple((name, _scaled(numbers)) for name, numbers in self.factors)


@dataclass(frozen=True, eq=False)
class Analysis:
    """A declared analysis in the states of a model: the columns of its design, and its response.

    Attributes
    ----------
    formula : str
    family : {"logit", "linear"}
    columns : tuple of Column
        The constant first.
    response : (variable, ndarray of int)
        In units of 1/VALUE.
    origin, unit : float
        What the response's 0 is, and the length of its 1, in its own unit.
    complete : mapping of variable to ndarray of bool
        Which states have a value, of all variables of the formula: the response first.
    modelled : str
        What is modelled, in words.
    weight : (variable, ndarray of int), optional
        Of a weighted analysis the weight of each state, in units of 1/VALUE, the largest 1; among `complete` too.
    """

    formula: str
    family: str
    columns: tuple[Column, ...]
    response: Values
    origin: float
    unit: float
    complete: Mapping[Hashable, np.ndarray]
    modelled: str
    weight: Values | None = None

    @property
    def variables(self) -> list[Hashable]:
        """The variables of the formula, the response first, and the weight."""
        return list(self.complete)

    def design(self, codes: np.ndarray, *, scaled: bool) -> np.ndarray:
        """Columns of cells: as they are in sums over records, or as they were declared; shape (n, n_columns).

        Parameters
        ----------
        codes : ndarray of int, shape (n, len(variables))
        """
        one, made = VALUE if scaled else 1, []
        for column in self.columns:
            value = np.full(len(codes), one) if scaled else np.ones(len(codes))
            for name, numbers in column.scaled if scaled else column.factors:
                value = value * numbers[codes[:, self.variables.index(name)]]
                value = value // VALUE if scaled else value
            made.append(value / one)
        return np.stack(made, axis=1)


@dataclass(frozen=True)
class States:
    """The public states of a model.

    Parameters
    ----------
    states : mapping of variable to sequence of states
    numbers : mapping of variable to ndarray
        Of those that are numbers, what each of their cells counts as; cells are the first states.
    other : mapping of variable to state
        States that stand for all others: they are no value.
    scores : mapping of variable to mapping of state to number
        Numbers of states, of variables that are to be numbers.
    """

    states: Mapping[Hashable, Sequence]
    numbers: Mapping[Hashable, np.ndarray]
    other: Mapping[Hashable, Hashable]
    scores: Mapping[Hashable, Mapping[Hashable, float]]

    @classmethod
    def checked(cls, model: Any, scores: Any = None) -> States:
        """The states of a model that has `states`, `levels` and `others`; TypeError or ValueError for wrong scores."""
        if not isinstance(scores or {}, Mapping) or not all(isinstance(of, Mapping) for of in (scores or {}).values()):
            raise TypeError("scores is no mapping; pass {variable: {state: number}}")
        made, checked = cls(model.states, model.levels, model.others, {}), {}
        for named, of in (scores or {}).items():
            name = made.variable(str(named), "scores")
            if wrong := [*(set(of) - set(made.states[name])), *(s for s in made.with_value(name) if s not in of)]:
                raise ValueError(f"scores[{name!r}] is not for the states {wrong[:5]}; pass a number for each state")
            for state, value in of.items():
                checked_number(f"scores[{name!r}][{state!r}]", abs(value), positive=False)
            checked[name] = {state: float(value) for state, value in of.items()}
        return replace(made, scores=checked)

    def variable(self, name: str, argument: str = "formula") -> Hashable:
        """The variable of a name, or of the text of one; ValueError for none."""
        matches = [variable for variable in self.states if variable == name or str(variable) == name]
        if len(matches) != 1:
            raise ValueError(f"{argument} names {name!r}; the model has {', '.join(map(str, self.states))}")
        return matches[0]

    def with_value(self, name: Hashable) -> list[Hashable]:
        """States that are values: cells of a number, and categories but for missing, blank and other ones."""
        if name in self.scores:
            return list(self.scores[name])
        if name in self.numbers:
            return list(self.states[name][: len(self.numbers[name])])
        return [s for s in self.states[name] if s not in (None, "", self.other.get(name))]

    def complete(self, name: Hashable) -> np.ndarray:
        """Which states of a variable are values."""
        known = set(self.with_value(name))
        return np.array([state in known for state in self.states[name]])

    def values(self, name: Hashable) -> np.ndarray | None:
        """The number of each state, that of the first where it has none; None for categories."""
        known = self.scores.get(name)
        if known is None and name in self.numbers:
            known = dict(zip(self.with_value(name), self.numbers[name].tolist(), strict=True))
        if known is None:
            return None
        return np.array([known.get(state, next(iter(known.values()))) for state in self.states[name]])

    def indicator(self, name: Hashable, state: Hashable) -> np.ndarray:
        """1 for one state of a variable, 0 for its others."""
        return np.array([float(one == state) for one in self.states[name]])


def analysis_of(formula: str, states: States, family: str, success: Any = None, weight: Any = None) -> Analysis:
    """Read a formula about the variables of a model; ValueError for what is no formula, or cannot be estimated.

    Parameters
    ----------
    formula : str
    states : States
    family : {"logit", "linear"}
    success : state, optional
        Of the response: what is modelled against all others. Default: the second of its two states.
    weight : variable, optional
        The number, or the variable with scores, that weighs records.

    Examples
    --------
    >>> states = States({"ill": ["no", "yes"], "job": ["clerk", "cook", "smith"], "sex": ["F", "M"]}, {}, {}, {})
    >>> [column.name for column in analysis_of("ill ~ sex*job", states, "logit").columns]
    ['Intercept', 'sex[T.M]', 'job[T.cook]', 'job[T.smith]', 'sex[T.M]:job[T.cook]', 'sex[T.M]:job[T.smith]']
    """
    (named, as_category), terms = _parsed(formula)
    response = states.variable(named)
    factors = {factor: _columns(factor, states) for factor in dict.fromkeys(itertools.chain.from_iterable(terms))}
    explaining = [states.variable(name) for name, _ in factors]
    if as_category or response in explaining:
        raise ValueError(
            f"formula has the response {shown(response)} in C(), or on both sides; write it once, on the left"
        )
    if len(set(explaining)) < len(explaining):
        raise ValueError("formula has a variable with and without C(); write one of them")
    _require_marginal(terms)
    n_columns = 1 + sum(math.prod(len(factors[factor]) for factor in term) for term in terms)
    if n_columns > MOST_COLUMNS:
        sizes = sorted(((len(made), name) for (name, _), made in factors.items()), reverse=True)[:3]
        most = ", ".join(f"{shown(name)} ({count})" for count, name in sizes)
        raise ValueError(
            f"formula has {n_columns} columns, and at most {MOST_COLUMNS} are estimated; leave out or merge the "
            f"variables with the most: {most}"
        )
    columns = [Column("Intercept", ())]
    for term in terms:
        for parts in itertools.product(*(factors[factor] for factor in term)):
            of_all = tuple(itertools.chain.from_iterable(part.factors for part in parts))
            columns.append(Column(":".join(part.name for part in parts), of_all))
    numbers, modelled = _response(response, states, family, success)
    complete = {name: states.complete(name) for name in (response, *explaining)}
    known = numbers[complete[response]]
    low, high = (-1.0, 1.0) if family == "logit" else (float(known.min()), float(known.max()))  # a logit's 0 and 1 stay
    if not low < high:
        raise ValueError(f"formula has the response {shown(response)}, which has one value only; nothing explains it")
    origin, unit = (low + high) / 2, (high - low) / 2
    whole = np.rint((numbers - origin) / unit * VALUE).astype(np.int64)
    weighed = None if weight is None else _weights(weight, states, complete)
    modelled += "" if weighed is None else f", weighted by {shown(weighed[0])}"
    made = Analysis(formula, family, tuple(columns), (response, whole), origin, unit, complete, modelled, weighed)
    x = made.design(uniform_codes(made, 4096), scaled=True)
    for k in range(1, len(columns)):
        if np.linalg.matrix_rank(x[:, : k + 1], tol=1e-4) <= k:
            raise ValueError(
                f"formula has the column {columns[k].name!r}, which those before it say already; leave it out"
            )
    return made


def _parsed(formula: Any) -> tuple[_Factor, list[tuple[_Factor, ...]]]:
    """The response, and the terms, each a tuple of factors."""
    if not isinstance(formula, str):
        raise TypeError(f"formula is a {type(formula).__name__}; pass a text: {_GRAMMAR}")
    quoted: dict[str, str] = {}

    def word(match: re.Match[str]) -> str:
        quoted[name := f"quoted_{len(quoted)}_"] = match[1]
        return name

    def refused(what: str) -> ValueError:
        return ValueError(f"formula={formula!r} has {what!r}, which is not read; {_GRAMMAR}")

    def terms(node: ast.expr) -> list[tuple[_Factor, ...]]:
        match node:
            case ast.BinOp(left, ast.Add(), right):
                return [*terms(left), *terms(right)]
            case ast.BinOp(left, (ast.Mult() | ast.Pow()) as between, right):
                a, b = terms(left), terms(right)
                if len(a) * len(b) > _MOST_TERMS:
                    raise ValueError(f"formula={formula!r} has more than {_MOST_TERMS} terms; leave out interactions")
                both = [tuple(dict.fromkeys((*one, *other))) for one in a for other in b]
                return both if isinstance(between, ast.Pow) else [*a, *b, *both]
            case ast.Name(name):
                return [((quoted.get(name, name), False),)]
            case ast.Call(ast.Name("C"), [ast.Name(name)], []):
                return [((quoted.get(name, name), True),)]
        raise refused(ast.unparse(node).replace(" ** ", ":"))

    left, tilde, right = re.sub(r"`([^`]+)`", word, formula).partition("~")
    if not tilde or "**" in formula or "~" in right:
        raise refused("**" if "**" in formula else "no ~, or several")
    try:
        sides = [ast.parse(side.strip().replace(":", "**"), mode="eval").body for side in (left, right)]
        first, second = map(terms, sides)
    except (SyntaxError, RecursionError, MemoryError):
        raise refused("something that is none of these") from None
    if len(first) != 1 or len(first[0]) != 1:
        raise refused(left.strip())
    return first[0][0], sorted({frozenset(term): term for term in second}.values(), key=len)


def _columns(factor: _Factor, states: States) -> list[Column]:
    """The columns of a factor: the number of a variable, or one for each category but the first."""
    name, as_category = states.variable(factor[0]), factor[1]
    numbers, known = None if as_category else states.values(name), states.with_value(name)
    if len(known) < 2 or (numbers is not None and np.ptp(numbers[states.complete(name)]) == 0):
        raise ValueError(f"formula has {shown(name)}, which has one value only: it is constant; leave it out")
    label = f"C({name})" if as_category else str(name)
    if numbers is not None:
        return [Column(label, ((name, numbers),))]
    return [Column(f"{label}[T.{state}]", ((name, states.indicator(name, state)),)) for state in known[1:]]


def _scaled(numbers: np.ndarray) -> np.ndarray:
    """Numbers of states from -1 to 1, in units of 1/VALUE."""
    low, high = float(numbers.min()), float(numbers.max())
    return np.rint((numbers - (low + high) / 2) / ((high - low) / 2) * VALUE).astype(np.int64)


def _response(name: Hashable, states: States, family: str, success: Hashable) -> tuple[np.ndarray, str]:
    """The number of each state of the response, and what is modelled."""
    known, numbers = states.with_value(name), states.values(name)
    if success is None and numbers is not None and family == "linear":
        return numbers, f"the mean of {shown(name)}"
    matches = [state for state in known if state == success or str(state) == success]
    if success is None and len(known) == 2:
        matches = known[1:]
    if len(matches) != 1:
        raise ValueError(
            f"success={success!r}: the response {shown(name)} has {len(known)} states; pass success= the one to be "
            f'modelled against all others, or family="linear" for a number. It has {", ".join(map(shown, known[:8]))}'
        )
    return states.indicator(name, matches[0]), f"the probability that {shown(name)} is {shown(matches[0])}"


def _weights(named: Any, states: States, complete: dict[Hashable, np.ndarray]) -> Values:
    """The weight of each state of a variable, the largest VALUE; it has to be there as the others have."""
    name = states.variable(str(named), "weight")
    numbers, known = states.values(name), states.complete(name)
    if name in complete or numbers is None or not numbers[known].min() >= 0 < numbers[known].max():
        raise ValueError(
            f"weight={named!r} is no number from 0 on outside of the formula; pass one, or a variable with scores"
        )
    complete[name] = known
    return name, np.rint(numbers / numbers[known].max() * VALUE).astype(np.int64)


def _require_marginal(terms: Sequence[tuple[_Factor, ...]]) -> None:
    there = set(map(frozenset, terms))
    for term in terms:
        for part in itertools.combinations(term, len(term) - 1):
            if part and frozenset(part) not in there:
                wanted, without = ("*".join(n for n, _ in term), ":".join(n for n, _ in part))
                raise ValueError(f"formula has an interaction without {without!r}; write {wanted!r}")


def uniform_codes(analysis: Analysis, n: int) -> np.ndarray:
    """Codes of cells in which every variable has any of its values, by a fixed seed; shape (n, n_variables)."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(np.resize(np.flatnonzero(one), n)) for one in analysis.complete.values()], axis=1)

"""Contingency tables of a discrete table; exact ones that are asked about again and again, thousands, in one array."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from pgmpy_dp.checks import exact_integer
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, in_full
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.named_values import scope_name
from pgmpy_dp.private.operators.operator_base import Operator, python_numbers
from pgmpy_dp.private.sensitive import Noise, Sensitive
from pgmpy_dp.schema import encode_label
from pgmpy_dp.shown import quantity

Scope = tuple[Hashable, ...]


class KeptTables:
    """Exact tables, each of its own variables; all with the same sensitivities.

    It shows nothing of what it holds and refuses to be copied or pickled.
    """

    __slots__ = ("_end", "_like", "_start", "_values")

    def __init__(self) -> None:
        self._values = np.empty(0, dtype=np.int64)
        self._end = 0
        self._start: dict[Scope, int] = {}
        self._like: Sensitive | None = None

    def __contains__(self, scope: Scope) -> bool:
        return scope in self._start

    def __repr__(self) -> str:
        return f"KeptTables(hidden, {quantity(len(self._start), 'table')})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("kept tables cannot be copied or pickled: they hold exact statistics of private records")

    def add(self, scopes: Sequence[Scope], tables: Sequence[Sensitive]) -> None:
        """Keep some tables, in C order."""
        for scope, table in zip(scopes, tables, strict=True):
            like = self._like or table
            if (table.adjacency, table.l1, table.l2, table.linf) != (like.adjacency, like.l1, like.l2, like.linf):
                raise ValueError("kept tables have the same sensitivities")
            self._like = like
            end = self._end + table.value.size
            if end > len(self._values):
                grown = np.empty(2 * end, dtype=np.int64)
                grown[: self._end] = self._values[: self._end]
                self._values = grown
            self._values[self._end : end] = table.value.ravel()
            start, self._end = self._end, end
            self._start[scope] = start  # last: after an interrupt none has a place that another is written to

    def table(self, scope: Scope, shape: Sequence[int]) -> Sensitive:
        """One of the tables."""
        assert self._like is not None
        start = self._start[scope]
        value = self._values[start : start + math.prod(shape)].reshape(shape)
        return Sensitive(value, self._like.adjacency, self._like.l1, self._like.l2, self._like.linf)

    def joined(self, scopes: Sequence[Scope], sizes: np.ndarray) -> Sensitive:
        """Several tables, one after the other in one vector, with the sensitivities of each.

        Parameters
        ----------
        scopes : sequence of tuple
        sizes : ndarray of int, shape (len(scopes),)
            Cells of each: public.
        """
        assert self._like is not None
        starts = np.fromiter(map(self._start.__getitem__, scopes), dtype=np.int64, count=len(scopes))
        places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
        like = self._like
        return Sensitive(self._values[places], like.adjacency, like.l1, like.l2, like.linf)


_TABLES_AT_ONCE = 50_000  # of counting, before they are kept in one array


@dataclass(frozen=True, slots=True)
class Tables(Operator[list[np.ndarray]]):
    """Noisy contingency tables.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        One table per scope, axes in its order; scopes may repeat. A name may be that of a level of a variable.
    weights : sequence of float, optional
        Positive: how the share is divided among the tables. Default: equally.

    Returns
    -------
    list of ndarray of int64
        Counts; they may be negative.

    Raises
    ------
    TypeError, ValueError
        For unknown variables, weights that are not positive, and noise that would bury any count.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds 1 to one cell of each of the m tables, or to none if it is outside the schema.
        Under ``add_remove`` table c moves by at most 1 in l1 and l2 norm, under ``replace_one`` by 2 and sqrt(2).
        Of a level this is so too: its code is a function of the record's own code of the variable
        (:class:`~pgmpy_dp.private.data.joint_tables.LevelColumns`), so the record is in one cell again. Nothing else of
        the table is used where persons count by shares (`TableFacts.parts`: f(x) has a single 1, or is 0) or by m
        records: there too a table by levels moves as any other table of as many records does.

        *Guarantee.* The share s of the cost: with weights w that sum to 1, Laplace noise of scale ``(1 or 2)/(w_c s
        epsilon)`` or Gaussian noise of scale ``sqrt((1 or 2)/(2 w_c s rho))`` in table c.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget
    >>> from pgmpy_dp.private.curator.table_curator import TableCurator
    >>> frame = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=1.0))
    >>> curator = TableCurator(table, Budget(rho=1.0), what="two tables")
    >>> noisy = curator.ask(Tables([("a",), ("b",)]), share=Fraction(1, 4))
    >>> noisy[0].shape, curator.left
    ((2,), Fraction(3, 4))
    """

    scopes: Sequence[Sequence[Hashable]]
    weights: Sequence[float | Fraction] | None = None

    name = "tables"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> Tables:
        return Tables(facts.scopes(self.scopes), python_numbers(self.weights))

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> AdditiveNoise:
        return self.planned(len(self.scopes), facts.adjacency, cost, share, self.weights, facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        kept = data._memory.setdefault(("tables", mechanism.grid), KeptTables())
        missing = [scope for scope in self.scopes if scope not in kept]
        counted = iter(contingency_tables(data, missing, mechanism.grid) if missing else ())
        return [kept.table(scope, facts.shape(scope)) if scope in kept else next(counted) for scope in self.scopes]

    @staticmethod
    def planned(
        count: int,
        adjacency: Adjacency,
        cost: PureDP | ZCDP,
        share: Fraction,
        weights: Sequence[float | Fraction] | None = None,
        parts: Callable[[float], int] = in_full,
    ) -> AdditiveNoise:
        """The noise of so many tables, whatever they are of; ValueError where it would bury any count.

        Examples
        --------
        >>> Tables.planned(2, Adjacency.ADD_REMOVE, PureDP(1.0), Fraction(1)).noise[0]
        Noise(distribution='discrete_laplace', scale=2.0)
        """
        return AdditiveNoise.planned([table_sensitivity(adjacency)] * count, cost, share, weights, parts)

    def names(self, count: int) -> Sequence[str]:
        return [*map(scope_name, self.scopes)]

    def public(self) -> dict[str, list]:
        return {"scopes": [[encode_label(name) for name in scope] for scope in self.scopes]}


@dataclass(frozen=True, slots=True)
class GroupedTables(Operator[list[np.ndarray]]):
    """Noisy contingency tables with the states of their first variable, the same one in all, put into groups.

    Few groups tell what many states, each with noise of its own, would not.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        At least one.
    groups : sequence of int
        Of each state of the first variable its group: public, or a function of what was released; from 0, none empty.

    Returns
    -------
    list of ndarray of int64
        Counts; they may be negative. A plan says them among its facts: a release's tables are of states.

    Raises
    ------
    TypeError, ValueError
        For unknown variables, scopes that do not begin with one variable, groups that are not as above, and noise that
        would bury any count.

    Notes
    -----
    Privacy
        *Sensitivity.* The group of a record's state is a function of that state, hence of the record alone. So a record
        adds 1 to one cell of each table, or to none if it is outside the schema, as it does in tables of states: a
        table moves by at most 1 in l1 and l2 norm under ``add_remove``, by 2 and sqrt(2) under ``replace_one``. Where
        records count in parts, a cell is the sum of these whole numbers over the states of its group, no more is
        rounded, and the parts of a unit sum to what they did.

        *Guarantee.* The share s of the cost: for m tables Laplace noise of scale ``(1 or 2) m/(s epsilon)`` or Gaussian
        noise of scale ``sqrt((1 or 2) m/(2 s rho))``.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget
    >>> from pgmpy_dp.private.curator.table_curator import TableCurator
    >>> frame = pd.DataFrame({"a": [0, 1, 2, 2] * 500, "b": [0, 1, 0, 1] * 500})
    >>> table = PrivateTable(frame, {"a": [0, 1, 2], "b": [0, 1]}, ledger=Budget(rho=1.0))
    >>> curator = TableCurator(table, Budget(rho=1.0), what="a table of groups")
    >>> (noisy,) = curator.ask(GroupedTables([("a", "b")], groups=[0, 0, 1]), share=1)
    >>> noisy.shape, bool(abs(noisy - 500).max() < 20)
    ((2, 2), True)
    """

    scopes: Sequence[Sequence[Hashable]]
    groups: Sequence[int]

    name = "grouped_tables"
    asks = TableFacts
    kept = False

    def checked(self, facts: TableFacts) -> GroupedTables:
        scopes, groups = facts.scopes(self.scopes), tuple(exact_integer(group) for group in self.groups)
        if len({scope[0] for scope in scopes}) > 1:
            raise ValueError(f"scopes={scopes!r} begin with several variables; ask of each alone")
        if len(groups) != facts.shape(scopes[0])[0] or set(groups) != set(range(max(groups, default=0) + 1)):
            raise ValueError(
                f"groups={groups!r} must say of each of the {facts.shape(scopes[0])[0]} states of {scopes[0][0]!r} "
                "which group it is in, from 0, none of them empty"
            )
        return GroupedTables(scopes, groups)

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> AdditiveNoise:
        return Tables.planned(len(self.scopes), facts.adjacency, cost, share, parts=facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        member = np.equal.outer(np.arange(max(self.groups) + 1), self.groups).astype(np.int64)
        return [
            Sensitive(np.tensordot(member, one.value, axes=1), one.adjacency, one.l1, one.l2, one.linf)
            for one in contingency_tables(data, self.scopes, mechanism.grid)
        ]


def joined_tables(data: PrivateTable, scopes: Sequence[Any], sizes: np.ndarray, grid: int) -> Sensitive:
    """Exact tables in one vector, counted where they were not before, and kept: they are asked about again."""
    kept = data._memory.setdefault(("tables", grid), KeptTables())
    missing = [scope for scope in dict.fromkeys(scopes) if scope not in kept]
    for start in range(0, len(missing), _TABLES_AT_ONCE):
        some = missing[start : start + _TABLES_AT_ONCE]
        kept.add(some, contingency_tables(data, some, grid))
    return kept.joined(scopes, sizes)


def rehearsed_tables(
    counts: Sequence[np.ndarray], tables: Tables, facts: TableFacts, cost: PureDP | ZCDP, rng: np.random.Generator
) -> tuple[list[np.ndarray], tuple[Noise, ...]]:
    """Tables that are **made up**, with the noise that asking for them would add, here from `rng`.

    Examples
    --------
    >>> from pgmpy_dp import Schema
    >>> from pgmpy_dp.private.adjacency import Adjacency
    >>> facts = TableFacts(Adjacency.ADD_REMOVE, Schema({"a": [0, 1]}))
    >>> made_up = [np.array([60, 40])]
    >>> rehearsed_tables(made_up, Tables([("a",)]), facts, PureDP(0.5), np.random.default_rng(0))[1]
    (Noise(distribution='discrete_laplace', scale=2.0),)
    """
    planned = tables.checked(facts).mechanism(facts, cost, Fraction(1), Fraction(0))
    norms = table_sensitivity(facts.adjacency)
    exact = [Sensitive(np.asarray(table, dtype=np.int64), facts.adjacency, *norms) for table in counts]
    return planned.over(exact).draw(rng), planned.noise

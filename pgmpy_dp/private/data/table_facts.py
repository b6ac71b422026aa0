"""The public facts of a table of discrete records: its states, how records count, and sets of variables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.data_base import Facts
from pgmpy_dp.private.noise.additive import LARGEST_SCALE
from pgmpy_dp.schema import Schema
from pgmpy_dp.schema.labels import require_declared

Scope = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class TableFacts(Facts):
    """The public facts of a table.

    Parameters
    ----------
    adjacency : Adjacency
    schema : Schema
        The variables as they are counted: with fine grids of numbers that are not divided, until states merge.
    declared : Schema, optional
        The same as they were declared.
    n_records : int, optional
        The number of records, where it is public.
    by_shares : bool
        Whether each of a unit's k records counts 1/k.
    is_part : bool
        Whether no record is outside the schema: of a random part of a table, and of rows made of linked tables.
    places : tuple, optional
        For each variable whose states merged, by its label in JSON, the state that each of its earlier states became.
    """

    schema: Schema
    declared: Schema | None = None
    n_records: int | None = None
    by_shares: bool = False
    is_part: bool = False
    places: tuple[tuple[Any, tuple[int, ...]], ...] | None = None
    _known: dict[Scope, tuple[Scope, tuple[int, ...], int]] = field(default_factory=dict, init=False, repr=False)

    @property
    def arguments(self) -> dict[str, Any]:
        """The merging of states before a question."""
        return {} if self.places is None else {"places": self.places}

    @property
    def public(self) -> dict[str, Any]:
        """The states that tables have."""
        return {"schema": self.schema.to_dict()}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of states, in the order of the schema."""
        return tuple(self.schema.cardinalities.values())

    @property
    def most_matched(self) -> int:
        """The most counts of :func:`~pgmpy_dp.private.data.table.matched_records` that one record moves.

        A record is in the count of all, unless that is public, in that of those that match in all columns or not, and
        for each column in one of two counts or in neither: 2 + n_variables at most. A line that is no record is in one
        of the last two and in no other. So what is added or removed moves no more than that. One in the place of
        another moves the count of those that match in all columns, and of each column both counts; between a record
        and a line that is none, 1 + n_variables and 1, which is no more, for there is a column.
        """
        columns = len(self.schema) * (2 if self.adjacency is Adjacency.REPLACE_ONE else 1)
        return 1 + columns + (self.n_records is None)

    def parts(self, scale: float = 1.0, most: int = GRID) -> int:
        """Return into how many parts a unit's records are divided in exact statistics; 1 where each counts in full.

        Parameters
        ----------
        scale : float
            The scale of the noise that follows, public, in whole records. Where it is beyond 2**28 parts are larger, so
            that their noise can be drawn: what their rounding takes from a record is nothing beside that noise.
        most : int
            The most parts, a power of two of at most 2**20.

        Notes
        -----
        Privacy: a unit's k records have weights of floor(g/k), g the grid, whole numbers of sum at most g. Let f(x) be
        what a record adds to a sum, an integer vector of any kind, 0 for what is outside the schema. A unit adds
        ``sum_x w_x f(x)``, g times a mean of some f(x) and of 0. So what two units' sums differ by is g times a mean of
        differences f(x) - f(y), x and y each a record or none: take x and y at random, by their weights. Hence in every
        norm, and in every convex function of the difference, sums in parts of 1/g move by at most g times what one
        record added, removed or in the place of another, one of the two perhaps outside the schema, moves them by.
        """
        if not self.by_shares:
            return 1
        while most > 1 and most * scale > LARGEST_SCALE:
            most //= 2
        return most

    def scopes(self, requested: Any) -> tuple[Scope, ...]:
        """Scopes that are asked about, of the schema's own names; TypeError or ValueError for others.

        Rounds repeat the same hundreds of thousands of scopes, so those that were checked are remembered.
        """
        listed = tuple(requested) if isinstance(requested, list | tuple) else checked_scopes(requested)
        try:
            return tuple([self._known[scope][0] for scope in listed]) or checked_scopes(listed)
        except KeyError:  # a round brings new ones, beside thousands that are known
            fresh = [scope for scope in listed if scope not in self._known]
            if len(fresh) < len(listed):
                self.scopes(fresh)
                return tuple([self._known[scope][0] for scope in listed])
        except TypeError:  # lists, or no sequences at all
            pass
        checked = checked_scopes(listed)
        require_scopes(self.schema, checked)
        names = {name: name for name in (*self.schema.variables, *self.schema.levels)}
        # Checked again by the schema's own names: others could be equal to one at first, and to another one later.
        scopes = checked_scopes([[names[name] for name in scope] for scope in checked])
        sizes = self.schema.cardinalities | {name: len(one.states) for name, one in self.schema.levels.items()}
        shapes = [tuple([sizes[name] for name in scope]) for scope in scopes]
        self._known.update((s, (s, shape, math.prod(shape))) for s, shape in zip(scopes, shapes, strict=True))
        return scopes

    def shape(self, scope: Sequence[Hashable]) -> tuple[int, ...]:
        """Return the shape of the table of a scope that :meth:`scopes` returned."""
        return self._known[scope][1]  # type: ignore[index]

    def cells(self, scopes: Sequence[Any]) -> np.ndarray:
        """Return the cells of each table, of scopes that :meth:`scopes` returned, shape (len(scopes),)."""
        return np.array([self._known[scope][2] for scope in scopes], dtype=np.int64)


def checked_scopes(scopes: Sequence[Sequence[Hashable]]) -> tuple[Scope, ...]:
    """Scopes as tuples of names; TypeError or ValueError for anything else, names that repeat in a scope included."""
    if isinstance(scopes, str | bytes) or not isinstance(scopes, Sequence | set | frozenset | np.ndarray):
        raise TypeError(f"scopes={scopes!r} is a {type(scopes).__name__}; pass a list of tuples of variable names")
    if len(scopes) == 0:
        raise ValueError("scopes is empty; pass at least one tuple of variable names")
    checked = []
    for scope in scopes:
        if isinstance(scope, str | bytes) or not isinstance(scope, Sequence | np.ndarray):
            raise TypeError(
                f"scopes holds {scope!r}, a {type(scope).__name__}; pass tuples of variable names, "
                "for a single variable ('name',)"
            )
        names = tuple(scope)
        if not names or len(set(names)) != len(names):
            raise ValueError(f"scopes holds {names!r}; a scope names at least one variable, and none of them twice")
        checked.append(names)
    return tuple(checked)


def require_scopes(schema: Schema, scopes: Sequence[Sequence[Hashable]]) -> None:
    """ValueError for scopes that `schema` has no table for: of names it does not declare, numbers, a level twice."""
    require_declared((*schema.variables, *schema.levels), "scopes", chain.from_iterable(scopes))
    for scope in scopes:
        schema.require_discrete(scope, argument="schema")
        schema.leaf_scope(scope, "scopes")

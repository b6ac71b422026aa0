"""Where users' visits are in private data, as far as it is public: columns, states, a separator. Knows no data."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from pgmpy_dp.schema import Schema


@dataclass(frozen=True)
class Visits:
    """Columns of users' visits, long (a visit in a row) where there is an order, else wide (a sequence in a row).

    Parameters
    ----------
    schema : Schema
        Of one discrete variable, the state that is visited.
    unit : hashable
        Column of users.
    state : hashable
        Column of states, or of sequences of them.
    order : hashable, optional
        Column of times.
    separator : str, optional
        Wide form: between the states of a text; default: white space.

    Raises
    ------
    TypeError, ValueError
        For a separator that could be part of a state, and for columns that are not different.
    """

    schema: Schema
    unit: Hashable
    state: Hashable
    order: Hashable | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        separator = self.separator
        if separator is not None:
            if not isinstance(separator, str) or not separator:
                raise TypeError(
                    f"separator={separator!r} is not a text; pass the text between two states, or None for spaces"
                )
            if any(sign.isalnum() or sign in "+-." for sign in separator):
                raise ValueError(
                    f"separator={separator!r} could be part of a state; separate the states by other characters"
                )
        if len(set(self.columns)) < len(self.columns):
            raise ValueError(f"the columns {self.columns} of unit, order, sequence and states must differ; rename one")

    @property
    def columns(self) -> list[Hashable]:
        """Columns of unit and state, or of unit, order and state."""
        return [self.unit, *([] if self.order is None else [self.order]), self.state]

    @property
    def null(self) -> int | None:
        """The code of the null state None, which says that nothing was observed."""
        states: tuple = self.schema.states[self.schema.variables[0]]
        return states.index(None) if None in states else None

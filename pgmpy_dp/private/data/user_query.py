"""Contribution bounds of users inside DuckDB: their visits in order, their events, their shares of a table.

The rules are those of :mod:`pgmpy_dp.private.data.contributions` and :mod:`pgmpy_dp.private.data.sequences`; only
integers leave the query. Users are told apart and visits are put in order by columns that are equal, and ordered, as
match keys are. Users are taken in *parts*, by a hash of their key, because an order needs memory: a user is in one
part, whatever others there are, so sums over parts are sums over users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.private.data.query_text import code_text, match_texts, missing_text, order_text, quoted, visits_text
from pgmpy_dp.private.data.visits import Visits

__all__ = ["ShareQuery", "part_text"]


def part_text(unit: tuple[str, str], n_parts: int, part: int) -> str:
    """Whether a row is of a user, and the user of this part."""
    named = f"NOT ({missing_text(unit[0])})"
    return named + (f" AND hash({', '.join(match_texts(*unit))}) % {n_parts} = {part}" if n_parts > 1 else "")


@dataclass(frozen=True)
class ShareQuery:
    """Sums over users of ``floor(grid c / K)``, for each beginning and each pair.

    Attributes
    ----------
    relation : duckdb.DuckDBPyRelation
    visits : Visits
    unit, state, order : tuple of (str, str)
        Name and type of its columns; order None in the wide form.
    ordered : bool
        Long form: whether visits of the same time keep the order of their rows; otherwise they are put in the order of
        their states.
    segment_length : int, optional
    grid : int
    """

    relation: Any
    visits: Visits
    unit: tuple[str, str]
    state: tuple[str, str]
    order: tuple[str, str] | None
    ordered: bool
    segment_length: int | None
    grid: int

    def fetch(self, n_parts: int, part: int) -> dict[str, np.ndarray]:
        """Columns cell and total, of the users of one part.

        Cells 0 .. k - 1 are beginnings, k + k i + j pairs, for k states; K is a user's number of events of the same
        sort.
        """
        keys = match_texts(*self.unit)
        users = ", ".join(f"u{i}" for i in range(len(keys)))
        named = ", ".join(f"{key} AS u{i}" for i, key in enumerate(keys))
        kept = part_text(self.unit, n_parts, part)
        placed = self._wide(named, users, kept) if self.order is None else self._long(self.order, named, users, kept)
        k, null, length = self.visits.coding.n_states, self.visits.null, self.segment_length
        begins = "place = 0" if length is None else f"place % {length} = 0"
        beginning, pair = "state >= 0", "state >= 0 AND before >= 0"
        if null is not None:
            pair += f" AND NOT (state = {null} AND before = {null})"
            # A segment that begins with a null state counts where it has any other.
            segment = users + (", number" if self.order is None else "")
            segment += "" if length is None else f", place // {length}"
            known = f"state >= 0 AND state <> {null}"
            placed = placed.project(f"*, bool_or({known}) OVER (PARTITION BY {segment}) AS seen")
            beginning += " AND seen"
        first = f"CASE WHEN {beginning} THEN state END"
        cell = f"CASE WHEN {begins} THEN {first} WHEN {pair} THEN {k} + before * {k} + state END"
        events = placed.project(f"{users}, {cell} AS cell").filter("cell IS NOT NULL")
        counted = events.aggregate(f"{users}, cell, count(*) AS n", f"{users}, cell")
        of_all = f"(sum(n) OVER (PARTITION BY {users}, cell < {k}))::BIGINT"
        shares = counted.project(f"cell, {self.grid}::BIGINT * n // {of_all} AS share")
        return shares.aggregate("cell, sum(share)::BIGINT AS total", "cell").fetchnumpy()

    def _long(self, order: tuple[str, str], named: str, users: str, kept: str) -> Any:
        """Rows of a visit: its user, its place in the user's sequence, its state and the one before."""
        times = match_texts(*order)
        moments = ", ".join(f"{time} AS t{i}" for i, time in enumerate(times))
        columns = f"{named}, {moments}, {code_text(*self.state, self.visits.coding)}::BIGINT AS state"
        relation, last = self.relation, "state"
        if self.ordered:
            number, last = quoted(_fresh(relation, "number")), "number"
            relation = relation.project(f"*, row_number() OVER () AS {number}")
            columns += f", {number} AS number"
        window = f"PARTITION BY {users} ORDER BY {order_text([f't{i}' for i in range(len(times))])}, {last}"
        return (
            relation.filter(kept)
            .project(columns)
            .project(f"{users}, row_number() OVER ({window}) - 1 AS place, state, lag(state) OVER ({window}) AS before")
        )

    def _wide(self, named: str, users: str, kept: str) -> Any:
        """The same, with the number of the row that the visit is in."""
        listed, kind = visits_text(*self.state, self.visits.separator)
        rows = self.relation.filter(kept).project(f"{named}, row_number() OVER () AS number, {listed} AS visits")
        each = rows.project(
            f"{users}, number, generate_subscripts(visits, 1) - 1 AS place, unnest(visits) AS visit, "
            "unnest(list_prepend(NULL, visits)[:-2]) AS previous"
        )
        if kind == "VARCHAR" and not self.state[1].endswith("[]"):
            each = each.filter("strlen(visit) > 0")
        state, before = (code_text(name, kind, self.visits.coding) for name in ("visit", "previous"))
        return each.project(f"{users}, number, place, {state}::BIGINT AS state, {before}::BIGINT AS before")


def _fresh(relation: Any, name: str) -> str:
    """A name that no column has."""
    taken: Sequence[str] = [column.lower() for column in relation.columns]
    while name in taken:
        name += "_"
    return name

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

from pgmpy_dp.private.data.query_text import code_text, match_texts, missing_text, order_text, quoted, visits_text

__all__ = ["Visits", "part_text", "share_query"]


@dataclass(frozen=True)
class Visits:
    """Where users' visits are, and which events they make.

    Attributes
    ----------
    unit, state : tuple of (str, str)
        Name and type of a column.
    order : tuple of (str, str), optional
        Long form: the column of times. None: the wide form.
    ordered : bool
        Long form: whether visits of the same time keep the order of their rows; otherwise they are put in the order of
        their states.
    separator : str, optional
        Wide form, between the states of a text.
    segment_length : int, optional
    coding : Coding
        Of the states.
    null : int, optional
        Code of the null state.
    """

    unit: tuple[str, str]
    state: tuple[str, str]
    order: tuple[str, str] | None
    ordered: bool
    separator: str | None
    segment_length: int | None
    coding: Any
    null: int | None


def part_text(unit: tuple[str, str], n_parts: int, part: int) -> str:
    """Whether a row is of a user, and the user of this part."""
    named = f"NOT ({missing_text(*unit)})"
    return named + (f" AND hash({', '.join(match_texts(*unit))}) % {n_parts} = {part}" if n_parts > 1 else "")


def share_query(relation: Any, visits: Visits, grid: int, n_parts: int, part: int) -> Any:
    """Sums over users of ``floor(grid c / K)``, as rows (cell, total).

    Cells 0 .. k - 1 are beginnings, k + k i + j pairs, for k states; K is a user's number of events of the same sort.
    """
    keys = match_texts(*visits.unit)
    users = ", ".join(f"u{i}" for i in range(len(keys)))
    named = ", ".join(f"{key} AS u{i}" for i, key in enumerate(keys))
    kept = part_text(visits.unit, n_parts, part)
    placed = (
        _long(relation, visits, named, users, kept) if visits.order else _wide(relation, visits, named, users, kept)
    )
    k, null = visits.coding.n_states, visits.null
    begins = "place = 0" if visits.segment_length is None else f"place % {visits.segment_length} = 0"
    known = "state >= 0" if null is None else f"state >= 0 AND state <> {null}"
    pair = "state >= 0 AND before >= 0" + ("" if null is None else f" AND NOT (state = {null} AND before = {null})")
    beginning = "state >= 0"
    if null is not None:
        # A segment that begins with a null state counts where it has any other.
        segment = users + (", number" if visits.order is None else "")
        if visits.segment_length is not None:
            segment += f", place // {visits.segment_length}"
        placed = placed.project(f"*, bool_or({known}) OVER (PARTITION BY {segment}) AS seen")
        beginning += " AND seen"
    cell = (
        f"CASE WHEN {begins} THEN CASE WHEN {beginning} THEN state END WHEN {pair} THEN {k} + before * {k} + state END"
    )
    events = placed.project(f"{users}, {cell} AS cell").filter("cell IS NOT NULL")
    counted = events.aggregate(f"{users}, cell, count(*) AS n", f"{users}, cell")
    shares = counted.project(
        f"cell, {grid}::BIGINT * n // (sum(n) OVER (PARTITION BY {users}, cell < {k}))::BIGINT AS share"
    )
    return shares.aggregate("cell, sum(share)::BIGINT AS total", "cell")


def _long(relation: Any, visits: Visits, named: str, users: str, kept: str) -> Any:
    """Rows of a visit: its user, its place in the user's sequence, its state and the one before."""
    times = match_texts(*visits.order) if visits.order else []
    moments = ", ".join(f"{time} AS t{i}" for i, time in enumerate(times))
    code = code_text(*visits.state, visits.coding)
    number = quoted(_fresh(relation, "number"))
    if visits.ordered:
        relation = relation.project(f"*, row_number() OVER () AS {number}")
    rows = relation.filter(kept).project(
        f"{named}, {moments}, {code}::BIGINT AS state" + (f", {number} AS number" if visits.ordered else "")
    )
    last = "number" if visits.ordered else "state"
    window = f"PARTITION BY {users} ORDER BY {order_text([f't{i}' for i in range(len(times))])}, {last}"
    return rows.project(
        f"{users}, row_number() OVER ({window}) - 1 AS place, state, lag(state) OVER ({window}) AS before"
    )


def _wide(relation: Any, visits: Visits, named: str, users: str, kept: str) -> Any:
    """The same, with the number of the row that the visit is in."""
    listed, kind = visits_text(*visits.state, visits.separator)
    rows = relation.filter(kept).project(f"{named}, row_number() OVER () AS number, {listed} AS visits")
    each = rows.project(
        f"{users}, number, generate_subscripts(visits, 1) - 1 AS place, unnest(visits) AS visit, "
        "unnest(list_prepend(NULL, visits)[:-2]) AS previous"
    )
    if kind == "VARCHAR" and not visits.state[1].endswith("[]"):
        each = each.filter("visit <> ''")
    state, before = (code_text(name, kind, visits.coding) for name in ("visit", "previous"))
    return each.project(f"{users}, number, place, {state}::BIGINT AS state, {before}::BIGINT AS before")


def _fresh(relation: Any, name: str) -> str:
    """A name that no column has."""
    taken: Sequence[str] = [column.lower() for column in relation.columns]
    while name in taken:
        name += "_"
    return name

"""Contribution bounds of users inside the engines that narwhals knows: their visits in order, their events.

The rules are those of :mod:`pgmpy_dp.private.data.contributions` and :mod:`pgmpy_dp.private.data.sequences`. No
engine's order of texts and no cast of theirs is relied on: users are whole numbers, or texts that cannot be numbers in
any spelling, and times are numbers or times of a calendar. What leaves the query is how many users have n of all their
m events in a cell; their shares follow from that in exact integers.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import narwhals as nw

from pgmpy_dp.private.data.frame import is_plain_number

__all__ = ["number_of_event_shares", "time_of", "user_of"]

_FIRST_DAY, _LAST_DAY = (date(year, 1, 1).toordinal() - date(1970, 1, 1).toordinal() for year in (2, 9999))

# More than all spellings of numbers, for white space is something else in each engine; and the words for truth values.
_MAY_BE_A_NUMBER = "^[^0-9A-Za-z+.-]*[+-]?[0-9.]+([eE][+-]?[0-9]+)?[^0-9A-Za-z]*$"
_MAY_BE_TRUTH = "[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"


def user_of(name: str, kind: Any, has_nan: bool, by_bytes: bool) -> tuple[nw.Expr, nw.Expr | None] | None:
    """What users are told apart by, null for nobody, and the cells that are undecided; None for other columns.

    Texts only where they are equal byte by byte: with a collation that takes two users for one, a user could change
    what another one adds.
    """
    if kind == nw.String:
        if not by_bytes:
            return None
        cell = nw.col(name)
        return cell, (cell.str.contains(_MAY_BE_A_NUMBER) | cell.str.contains(_MAY_BE_TRUTH)) & ~cell.is_null()
    number = _number(name, kind, has_nan)
    return None if number is None else (number, None)


def time_of(name: str, kind: Any, has_nan: bool, by_ticks: bool) -> tuple[nw.Expr, nw.Expr | None] | None:
    """What visits are ordered by, null where it is missing, and the undecided cells; None for other columns."""
    if kind == nw.Date or (kind == nw.Datetime and kind.time_unit == "us"):  # DuckDB fails on years in other units
        cell = nw.col(name)
        if by_ticks:  # some versions of polars panic where they are asked for a year that they do not have
            per_day = 1 if kind == nw.Date else 86_400 * 10**6
            ticks = cell.cast(nw.Int64)
            return cell, ~cell.is_null() & ((ticks < _FIRST_DAY * per_day) | (ticks >= _LAST_DAY * per_day))
        year = cell.dt.year()  # null for some engines, where it is too large
        return cell, ~cell.is_null() & (year.is_null() | (year < 2) | (year > 9998))
    number = _number(name, kind, has_nan)
    return None if number is None else (number, None)


def _number(name: str, kind: Any, has_nan: bool) -> nw.Expr | None:
    """Cells of a column of numbers as match keys have them, null where they are missing; None for other columns."""
    number = nw.col(name).cast(nw.Float64)
    if not is_plain_number(kind):
        return None
    if kind.is_integer():
        return number
    present = ~number.is_null() & ~number.is_nan() if has_nan else ~number.is_null()
    # Some engines tell -0.0 from 0.0.
    return nw.when(present & (number != 0.0)).then(number).otherwise(nw.when(present).then(nw.lit(0.0)))


def number_of_event_shares(
    visits: nw.LazyFrame, n_states: int, null: int | None, segment_length: int | None
) -> nw.LazyFrame:
    """How many users have the share n/total of their events in a cell, as rows (cell, n, total, users).

    Parameters
    ----------
    visits : LazyFrame
        Columns user, time (null where it is missing) and state (a code, negative for unknown).
    n_states : int
        k. Cells 0 .. k - 1 are beginnings, k + k i + j pairs.
    null : int, optional
        Code of the null state.
    segment_length : int, optional
    """
    state = nw.col("state")
    # Missing times come first, wherever an engine puts its nulls.
    timed = nw.when(nw.col("time").is_null()).then(nw.lit(0)).otherwise(nw.lit(1))
    visits = visits.with_columns(one=nw.lit(1), timed=timed)
    # Rows of an engine have no order: those that tie are put in the order of their states.
    order = ["timed", "time", "state"]
    visits = visits.with_columns(
        place=nw.col("one").cum_sum().over("user", order_by=order), before=state.shift(1).over("user", order_by=order)
    )
    length = segment_length
    begins = nw.col("place") == 1 if length is None else (nw.col("place") - 1) % length == 0
    beginning, pair = state >= 0, (state >= 0) & (nw.col("before") >= 0)
    if null is not None:
        # A segment that begins with a null state counts where it has any other.
        known = nw.when((state >= 0) & (state != null)).then(nw.lit(1)).otherwise(nw.lit(0))
        place = nw.lit(0) if length is None else (nw.col("place") - 1 - (nw.col("place") - 1) % length)
        visits = visits.with_columns(known=known, segment=place)
        visits = visits.with_columns(seen=nw.col("known").max().over("user", "segment"))
        beginning = beginning & (nw.col("seen") == 1)
        pair = pair & ~((state == null) & (nw.col("before") == null))
    first = nw.when(begins & beginning).then(state)
    later = nw.when(~begins & pair).then(nw.col("before") * n_states + state + n_states)
    events = visits.with_columns(first=first, later=later)
    events = events.select("user", cell=nw.coalesce("first", "later")).filter(~nw.col("cell").is_null())
    counted = events.group_by("user", "cell").agg(n=nw.len())
    kind = nw.when(nw.col("cell") < n_states).then(nw.lit(0)).otherwise(nw.lit(1))
    counted = counted.with_columns(kind=kind).with_columns(total=nw.col("n").sum().over("user", "kind"))
    return counted.group_by("cell", "n", "total").agg(users=nw.len())

"""Counting inside any engine whose lazy frames narwhals knows: PySpark, Dask, ibis' databases, polars.

One implementation for all. What an engine's text of a number is, and how it casts one, differs between engines, so no
cast of a text is made here: texts are compared with the usual spellings of the states, and the few that look like a
number in another spelling are left to match_key.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from pgmpy_dp.private.data.coding import UNDECIDED, Coding, Decided, coding
from pgmpy_dp.private.data.contingency import add_counts
from pgmpy_dp.private.data.frame import cell_codes, cell_numbers, column_cells, is_plain_number, kept_codes, quietly
from pgmpy_dp.private.data.pushdown import Source
from pgmpy_dp.private.data.user_lazy import number_of_event_shares, time_of, user_of
from pgmpy_dp.private.data.visits import Visits
from pgmpy_dp.schema import Schema

__all__ = ["LazySource"]

_LOOKS_LIKE_A_NUMBER = "[0-9]|[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"


class LazySource(Source):
    """A lazy frame, on which queries are made.

    Parameters
    ----------
    frame : narwhals.LazyFrame
    """

    # A joint table is a pass over the data for most engines, so one is as large as a table that an engine sends back
    # without effort.
    largest_table = 1 << 16

    def __init__(self, frame: nw.LazyFrame) -> None:
        self._frame = frame
        self._schema = frame.collect_schema()
        self.names = self._schema.names()
        self._has_nan = _has_nan(frame)
        # A database may replace a comparison of a float by a constant, where statistics that leave NaN out allow it.
        self._decides_floats = not frame.implementation.is_ibis()

    def joint_counts(self, schema: Schema, covers: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.joint_counts`, by one query (two where cells are left)."""
        cardinalities = list(schema.cardinalities.values())
        shapes = [tuple(cardinalities[j] for j in cover) for cover in covers]
        ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        coded, left = self._coded(schema)
        kept = coded.filter(*(nw.col(f"c{j}") >= 0 for j in range(len(schema))))
        keyed = []
        for cover, shape, start in zip(covers, shapes, ends, strict=False):
            key = nw.col(f"c{cover[0]}").cast(nw.Int64)
            for j, cardinality in zip(cover[1:], shape[1:], strict=True):
                key = key * cardinality + nw.col(f"c{j}").cast(nw.Int64)
            keyed.append(kept.select(key=key + int(start)))
        found = _collected(nw.concat(keyed).group_by("key").agg(n=nw.len()))
        counted = np.zeros(int(ends[-1]), dtype=np.int64)
        counted[_whole(found["key"])] = _whole(found["n"])
        tables = [part.reshape(shape) for part, shape in zip(np.split(counted, ends[1:-1]), shapes, strict=True)]
        if left:
            resolved = self._resolved(coded.filter(_any_undecided(left)), schema, left)
            add_counts(tables, resolved, cardinalities, covers)
        return tables

    def code_batches(self, schema: Schema) -> Iterator[list[np.ndarray]]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.code_batches`; all in one batch, in the engine's order."""
        coded, left = self._coded(schema)
        yield from self._resolved(coded, schema, left)

    def number_batches(self, names: Sequence[Hashable]) -> Iterator[np.ndarray]:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.number_batches`; all in one batch."""
        frame = _collected(self._frame.select(self._named(names)))
        rows = np.empty((len(frame), len(frame.columns)))
        for j, name in enumerate(frame.columns):
            rows[:, j] = cell_numbers(frame[name])
        yield rows

    def clipped_sums(
        self,
        names: Sequence[Hashable],
        center: np.ndarray,
        bound: float,
        scale: float,
        trace: int,
        *,
        products: bool,
    ) -> np.ndarray | None:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.clipped_sums`, for columns of plain numbers.

        The steps are those of :func:`~pgmpy_dp.private.data.moments.clipped_integers`, one by one: sums, products,
        quotients and roots are rounded correctly wherever arithmetic is IEEE 754's, so the integers are the same.
        """
        columns = self._named(names)
        kinds = [self._schema[name] for name in columns]
        if not all(is_plain_number(kind) and (self._decides_floats or not kind.is_float()) for kind in kinds):
            return None
        d = range(len(columns))
        cells = [nw.col(name).cast(nw.Float64) for name in columns]
        frame = self._frame.select(**{f"x{j}": cell for j, cell in zip(d, cells, strict=True)})
        # Not is_finite: pandas' and SQL's missing values are none of its cases. NaN is in no range.
        largest = float(np.finfo(np.float64).max)
        frame = frame.filter(*(nw.col(f"x{j}").is_between(-largest, largest) for j in d))
        frame = frame.select(**{f"x{j}": 0.5 * nw.col(f"x{j}") - float(0.5 * center[j]) for j in d})
        frame = frame.with_columns(largest=nw.max_horizontal(*(nw.col(f"x{j}").abs() for j in d)))
        # A record at the centre adds nothing to any sum.
        frame = frame.filter(nw.col("largest") > 0)
        frame = frame.with_columns(**{f"x{j}": nw.col(f"x{j}") / nw.col("largest") for j in d})
        squares = nw.col("x0") * nw.col("x0")
        for j in d[1:]:
            squares = squares + nw.col(f"x{j}") * nw.col(f"x{j}")
        frame = frame.with_columns(norm=squares.sqrt())
        length = nw.col("largest") / float(0.5 * bound) * nw.col("norm")
        frame = frame.with_columns(factor=nw.when(length < 1.0).then(length).otherwise(nw.lit(1.0)) * scale)
        integers = [nw.col(f"x{j}") / nw.col("norm") * nw.col("factor") for j in d]
        # Not a cast alone: some databases round there.
        whole = [nw.when(z >= 0).then(z.floor()).otherwise(z.ceil()).cast(nw.Int64) for z in integers]
        frame = frame.select(**{f"z{j}": z for j, z in zip(d, whole, strict=True)})
        traces = nw.col("z0") * nw.col("z0")
        for j in d[1:]:
            traces = traces + nw.col(f"z{j}") * nw.col(f"z{j}")
        frame = frame.filter(traces <= trace)
        pairs = [(i, j) for i in d for j in d[i:]] if products else [(j, j) for j in d]
        sums = {f"s{i}_{j}": (nw.col(f"z{i}") * nw.col(f"z{j}")) if products else nw.col(f"z{j}") for i, j in pairs}
        found = _collected(frame.select(**sums).select(nw.all().sum()))
        values = [found[name].to_list()[0] for name in sums]
        numbers = np.array([0 if value is None else int(value) for value in values], dtype=np.int64)
        if not products:
            return numbers
        total = np.zeros((len(columns), len(columns)), dtype=np.int64)
        total[np.triu_indices(len(columns))] = numbers
        return total + np.triu(total, 1).T

    def cells(self, names: Sequence[Hashable]) -> list:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.cells`."""
        return column_cells(_collected(self._frame.select(self._named(names))))

    def user_shares(self, visits: Visits, segment_length: int | None, grid: int) -> np.ndarray | None:
        """As :meth:`~pgmpy_dp.private.data.pushdown.Source.user_shares`, for the long form."""
        if visits.order is None or self._frame.implementation.is_dask() or not _has_types(self._frame):
            return None  # Dask has no windows in an order
        unit, order, state = self._named([visits.unit, visits.order, visits.state])
        if not self._decides_floats and any(self._schema[name].is_float() for name in (unit, order)):
            return None
        made = visits.coding
        by_bytes = not self._frame.implementation.is_ibis()  # databases have collations
        user = user_of(unit, self._schema[unit], self._has_nan, by_bytes)
        time = time_of(order, self._schema[order], self._has_nan, self._frame.implementation.is_polars())
        if user is None or time is None:
            return None
        code, decided = _code(state, self._schema[state], made, self._has_nan, self._decides_floats)
        odd = [part for part in (user[1], time[1], None if decided else code == UNDECIDED) if part is not None]
        if odd:
            undecided = self._frame.filter(nw.any_horizontal(*odd, ignore_nulls=False))
            if len(_collected(undecided.select(unit).head(1))):
                return None
        rows = self._frame.select(user=user[0], time=time[0], state=code.cast(nw.Int64))
        rows = rows.filter(~nw.col("user").is_null())
        found = _collected(number_of_event_shares(rows, made.n_states, visits.null, segment_length))
        cell, n, total, users = (_whole(found[name]) for name in ("cell", "n", "total", "users"))
        shares = np.zeros(made.n_states * (made.n_states + 1), dtype=np.int64)
        np.add.at(shares, cell, grid * n // total * users)
        return shares

    def _named(self, names: Sequence[Hashable]) -> list[str]:
        return [self.names[j] for j in self.positions(names)]

    def _coded(self, schema: Schema) -> tuple[nw.LazyFrame, list[int]]:
        """The frame with codes c0, c1, ..., and cells r0, ... of the columns whose positions are returned."""
        parts, left = {}, []
        for j, (name, column) in enumerate(zip(schema.variables, self._named(schema.variables), strict=True)):
            made = coding(schema, name)
            parts[f"c{j}"], complete = _code(column, self._schema[column], made, self._has_nan, self._decides_floats)
            if not complete:
                parts[f"r{j}"] = nw.col(column)
                left.append(j)
        return self._frame.select(**parts), left

    def _resolved(self, coded: nw.LazyFrame, schema: Schema, left: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Codes of the records without an outside cell, where cells were left those of match_key."""
        frame = _collected(coded)
        columns = [_whole(frame[f"c{j}"]) for j in range(len(schema))]
        for j in left:
            undecided = columns[j] == UNDECIDED
            if undecided.any():
                cells = frame[f"r{j}"].filter(undecided.tolist())
                columns[j][undecided] = cell_codes(cells, schema, schema.variables[j])
        yield kept_codes(columns)


def _has_nan(frame: nw.LazyFrame) -> bool:
    """Whether the engine has NaN; some databases, SQLite for one, have NULL only."""
    if not frame.implementation.is_ibis():
        return True
    from ibis.expr.operations import IsNan

    return bool(frame.to_native().get_backend().has_operation(IsNan))


def _has_types(frame: nw.LazyFrame) -> bool:
    """Whether cells are of their column's type.

    Not in SQLite, whose casts make one number of all texts that are none: users who are such texts would be one user.
    """
    return not frame.implementation.is_ibis() or frame.to_native().get_backend().name != "sqlite"


def _code(name: str, kind: Any, made: Coding, has_nan: bool, decides_floats: bool) -> tuple[nw.Expr, bool]:
    """Code of a cell, and whether it never is `UNDECIDED`."""
    if kind == nw.Boolean or is_plain_number(kind):
        decided = made.by_number(kind.is_integer())
        if decided is Decided.NOTHING or (kind.is_float() and not decides_floats):
            return nw.lit(UNDECIDED), False
        return _number_code(nw.col(name), kind, made, decided, has_nan), True
    cell, absent = nw.col(name), nw.col(name).is_null()
    if kind not in (nw.String, nw.Categorical, nw.Enum):
        return _chosen(absent, made.missing, nw.lit(UNDECIDED)), False
    if kind != nw.String:
        cell = cell.cast(nw.String)
    decided = made.by_text()
    # No engine but DuckDB is trusted with a zero character in a text.
    usual = [(text, code) for text, code in made.spellings() if "\0" not in text]
    if len(usual) < len(made.spellings()):
        decided = Decided.SOME_TEXTS
    unknown = nw.lit(UNDECIDED if decided is Decided.SOME_TEXTS else made.outside)
    if decided is Decided.NUMBERS_IN_TEXTS:
        unknown = _chosen(cell.str.contains(_LOOKS_LIKE_A_NUMBER) & ~absent, UNDECIDED, unknown)
    return _tree(cell, usual, _chosen(absent, made.missing, unknown)), decided is Decided.TEXTS


def _number_code(cell: nw.Expr, kind: Any, made: Coding, decided: Decided, has_nan: bool) -> nw.Expr:
    absent = cell.is_null()
    if kind == nw.Boolean:
        unequal = _chosen(absent, made.missing, nw.lit(made.of_number(0.0)))
        return _chosen(cell & ~absent, made.of_number(1.0), unequal)
    if decided is Decided.WHOLE_NUMBERS:
        listed = _fitting(made.whole_numbers(), kind)
        return _tree(cell, listed, _chosen(absent, made.missing, nw.lit(made.outside)))
    cell = cell.cast(nw.Float64)
    if kind.is_float() and has_nan:
        absent = absent | cell.is_nan()
    return _tree(cell, made.numbers, _chosen(absent, made.missing, _interval(cell, ~absent, made)))


def _chosen(condition: nw.Expr, code: int, otherwise: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(nw.lit(code)).otherwise(otherwise)


def _tree(cell: nw.Expr, listed: Sequence[tuple[Any, int]], otherwise: nw.Expr) -> nw.Expr:
    """Code of the listed value that is equal, by halves of halves: engines stop at some hundreds of nested cases."""
    if not listed:
        return otherwise
    # pandas, under Dask, takes no missing value for a condition.
    inside = cell.is_in([value for value, _ in listed]) & ~cell.is_null()
    return nw.when(inside).then(_among(cell, listed)).otherwise(otherwise)


def _among(cell: nw.Expr, listed: Sequence[tuple[Any, int]]) -> nw.Expr:
    if len({code for _, code in listed}) == 1:
        return nw.lit(listed[0][1])
    half = len(listed) // 2
    first = cell.is_in([value for value, _ in listed[:half]]) & ~cell.is_null()
    return nw.when(first).then(_among(cell, listed[:half])).otherwise(_among(cell, listed[half:]))


def _interval(cell: nw.Expr, present: nw.Expr, made: Coding) -> nw.Expr:
    """Code of a number by the cuts that it reaches, by halves, as :func:`_among`."""

    def between(first: int, last: int) -> nw.Expr:
        if first == last:
            return nw.lit(made.codes[first])
        half = (first + last) // 2
        above = (cell >= made.cuts[half]) & present
        return nw.when(above).then(between(half + 1, last)).otherwise(between(first, half))

    return between(0, len(made.cuts))


def _fitting(listed: list[tuple[int, int]], kind: Any) -> list[tuple[int, int]]:
    """The values that a column of this type can hold, for some engines refuse to compare with others."""
    bits = int("".join(filter(str.isdigit, str(kind))))
    lower, upper = (0, 1 << bits) if str(kind).startswith("U") else (-(1 << (bits - 1)), 1 << (bits - 1))
    return [(value, code) for value, code in listed if lower <= value < upper]


def _any_undecided(left: Sequence[int]) -> nw.Expr:
    return nw.any_horizontal(*(nw.col(f"c{j}") == UNDECIDED for j in left), ignore_nulls=False)


def _collected(frame: nw.LazyFrame) -> nw.DataFrame:
    """What a query gives; if it fails, without the engine's own words, which may quote a record."""
    try:
        return quietly(frame.collect)
    except MemoryError:
        raise
    except Exception:  # noqa: S110  what follows is outside, so that the engine's error is not even its context
        pass
    raise OSError(
        "the engine failed while it read the lazy frame; collect the frame in the engine, which says why, and mend "
        "it there"
    )


def _whole(series: nw.Series) -> np.ndarray:
    return series.cast(nw.Int64).to_numpy().astype(np.int64)

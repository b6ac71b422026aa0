"""The questions to columns whose values nobody has listed: their categories, and how their numbers are distributed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np

from pgmpy_dp.checks import checked_integer, is_exactly
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.curator_base import checked_eta, checked_share
from pgmpy_dp.private.curator.mechanism import AdditiveNoise, Mechanism
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.columns import (
    ColumnFacts,
    PrivateColumns,
    column_marks,
    mark_key,
    mark_label,
    mark_row,
    number_counts,
    record_count,
)
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.histogram import StabilityHistogram, released_cells, stability_histogram
from pgmpy_dp.private.noise.measures import OfRho, amount_of
from pgmpy_dp.private.operators.operator_base import Operator
from pgmpy_dp.private.sensitive import Noise, Sensitive
from pgmpy_dp.schema import Date, Number


@dataclass(frozen=True, eq=False, repr=False)
class StableMarks(Mechanism):
    """Marks that nobody has listed and that many records make, and how many records each, with noise.

    Attributes
    ----------
    marks : sequence of (int, key)
        A column's place and a key of it, ascending.
    counts : ndarray of int64, shape (m,)
        How many records make each, exact.
    n_marks : int
        k: no record makes more marks.
    changes : int
        Records in which neighbours differ: 1 if one has a record more, 2 if a record takes the place of another.
    histogram : StabilityHistogram
    max_length : int
        Of texts: the length of a released row, less 2.

    Notes
    -----
    Privacy: :mod:`pgmpy_dp.private.noise.histogram` has the proof, with a record for a block. With noise and a
    threshold that were made for k marks, these changes, s rho and eta, `draw` costs the share s and eta of the reserve
    (``proof.md``, section 3). Rows and their number are a function of which marks reach the threshold.
    """

    marks: Sequence[tuple[int, tuple]]
    counts: np.ndarray
    n_marks: int
    changes: int
    histogram: StabilityHistogram
    max_length: int

    name = "stability_histogram"

    @property
    def noise(self) -> tuple[Noise | None, ...]:  # type: ignore[override]
        """The noise of the counts; the marks have none."""
        return None, self.histogram.noise

    def over(self, exact: tuple[Sequence[tuple[int, tuple]], np.ndarray]) -> Self:
        """Return a copy with exact marks and counts."""
        return replace(self, marks=exact[0], counts=exact[1])

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The marks that reach the threshold, a row of integers each, ascending, and their noisy counts."""
        places, noisy = released_cells(np.arange(len(self.marks)), self.counts, self.histogram, rng)
        rows = [mark_row(self.marks[place], self.max_length) for place in places.tolist()]
        return [np.array(rows, dtype=np.int64).reshape(len(rows), 2 + self.max_length), noisy]


def category_histogram(
    n_columns: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float, eta: Fraction | float
) -> StabilityHistogram:
    """Noise and threshold of :class:`StableCategories`, from public numbers.

    Raises
    ------
    ValueError
        For a pure cost, an eta outside of its range, and noise that would bury any count.

    Examples
    --------
    >>> category_histogram(2, Adjacency.ADD_REMOVE, ZCDP(0.01), 1, 1e-9)
    StabilityHistogram(scale=10.0, threshold=63)
    """
    refusal = f"a threshold takes a delta, and this curator has {cost}; open it with a delta and a reserve"
    # The threshold's own margin is above what rounding eta to a float can add.
    rho, eta = amount_of(OfRho, cost, checked_share(share), refusal), checked_eta(eta)
    return stability_histogram(n_columns, rho, float(eta), changed_records(adjacency))


def category_labels(rows: np.ndarray) -> list[tuple[int, Any]]:
    """The column's place and the label of each row of :class:`StableCategories`; None is missing."""
    return [(place, mark_label(key)) for place, key in map(mark_key, rows.tolist())]


def _number_norms(n_tables: int, with_count: bool, adjacency: Adjacency) -> list[tuple[float, float, float]]:
    """Sensitivities of the number of records, which a record moves by 1, and of tables."""
    return [(1.0, 1.0, 1.0)] * with_count + [table_sensitivity(adjacency)] * n_tables


def _checked_names(names: Any, facts: ColumnFacts) -> tuple[Hashable, ...]:
    """Names of columns, the schema's own; TypeError or ValueError for others."""
    if isinstance(names, str | bytes) or not isinstance(names, Sequence):
        raise TypeError(f"names={names!r} is a {type(names).__name__}; pass a list of names of columns")
    requested, known = tuple(names), {name: name for name in facts.schema.variables}
    unknown = [name for name in requested if name not in known]
    if unknown:
        raise ValueError(f"unknown columns {unknown}; the data have {list(known)}")
    return tuple([known[name] for name in requested])


@dataclass(frozen=True, slots=True, eq=False)
class StableCategories(Operator[tuple[np.ndarray, np.ndarray]]):
    """Categories that many records have, and how many, with noise.

    Parameters
    ----------
    columns : sequence of hashable
        Each once.
    max_length : int
        A cell with a longer text has no category.

    Returns
    -------
    rows : ndarray of int64, shape (m, 2 + max_length)
        What :func:`category_labels` reads, ascending: by column, then missing, numbers and texts.
    counts : ndarray of int64, shape (m,)

    Raises
    ------
    TypeError, ValueError
        For unknown columns, an eta that is not in (0, 1) or that the reserve does not have, a curator of a pure
        epsilon.

    Notes
    -----
    Privacy
        *Marks.* A cell marks the key under which it is listed, or nothing: a function of the cell, of the schema's
        spelling and codes, and of `max_length` (:func:`~pgmpy_dp.private.data.columns.column_marks`). Whether a column
        is of codes is public: it is said, or the declared type of the column says it. In a column of codes the key is
        the cell as it is written; in any other all spellings of a number have one key; and where `casefold` makes texts
        one, each is a mark of its own. What is released of a key is made from the key alone. So a record makes at most
        one mark in each of the d columns, whichever keys the column has.

        *Sensitivity.* The exact answer is the vector of the counts of all keys that there can be: integers, most of
        which are 0. A record adds 1 to at most one of each column. Under ``add_remove`` at most d counts move, each by
        1: by d in l1 norm and sqrt(d) in l2. Under ``replace_one`` one record goes and one comes, so at most 2d counts
        move, each by 1: by 2d and sqrt(2d). A mark that one of the neighbours has alone has a count of 1, and there are
        at most d of these on one side, or on each. So a key that one record alone holds is released with a probability
        of at most eta/d. What is made of released marks and counts is post-processing: which spellings are joined, the
        sum of their counts, and which of them is the label.

        *Guarantee.* The share s of rho and eta of the reserve (:mod:`pgmpy_dp.private.noise.histogram`; ``proof.md``,
        section 3): with c = d or 2d, Gaussian noise of scale ``sqrt(c/(2 s rho))`` and a threshold T with
        ``c P(Z >= T - 1) <= eta``.

        *Units.* Of a unit one record counts, which is drawn by the unit's own records and a secret key
        (:mod:`pgmpy_dp.private.data.columns`): neighbours in a unit are neighbours in one record. All records would not
        do: m of one person move counts by up to m, and a mark of one side has a count of up to m, which takes noise of
        m times the scale and ``m c P(Z >= T - m) <= eta``. Nor would shares of 1/k for each of its k records: it could
        open k cells, each with a probability of ``P(Z >= T - 1/k)``, and k has no bound.

        *Source.* Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim and Stemmer 2016.

        *Side channels.* Running time and memory depend on the records, on how many different cells there are too.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, Schema
    >>> from pgmpy_dp.private.curator.curator_base import Curator
    >>> frame = pd.DataFrame({"job": ["nurse"] * 900 + ["baker"] * 99 + ["astronaut"]})
    >>> data = PrivateColumns(frame, Schema({"job": ["a", "b"]}), ledger=Budget(epsilon=1.0, delta=1e-6))
    >>> curator = Curator(data, Budget(epsilon=1.0, delta=1e-6), what="jobs", reserve=1e-7)
    >>> rows, counts = curator.ask(StableCategories(["job"]), share=1, eta=1e-7)
    >>> category_labels(rows)
    [(0, 'baker'), (0, 'nurse')]
    """

    columns: Sequence[Hashable]
    max_length: int = 100

    name = "stable_categories"
    asks = ColumnFacts
    can_fail = True

    def checked(self, facts: ColumnFacts) -> StableCategories:
        names = _checked_names(self.columns, facts)
        if len(set(names)) != len(names) or not names:
            raise ValueError(f"names={list(names)!r} must be at least one column, each once")
        return StableCategories(names, checked_integer("max_length", self.max_length, 1))

    def mechanism(self, facts: ColumnFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> StableMarks:
        k, changes = len(self.columns), changed_records(facts.adjacency)
        histogram = category_histogram(k, facts.adjacency, cost, share, eta)
        return StableMarks((), np.zeros(0, dtype=np.int64), k, changes, histogram, self.max_length)

    def _exact(self, data: PrivateColumns, facts: ColumnFacts, mechanism: StableMarks, coins: Coins) -> Any:
        return column_marks(data, self.columns, self.max_length)

    def answered(self, drawn: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return drawn[0], drawn[1]


@dataclass(frozen=True, slots=True, eq=False)
class NumberTables(Operator[list[np.ndarray]]):
    """Numbers of records in each cell of some divisions of columns of numbers, with noise.

    Parameters
    ----------
    tables : sequence of (name, Number)
        Columns and how each is divided, functions of what was released; columns may repeat.
    with_count : bool
        Whether the number of records is counted too.

    Returns
    -------
    list of ndarray of int64
        With `with_count` the number of records first, shape (1,); then a count for each state of each division. They
        may be negative.

    Raises
    ------
    TypeError, ValueError
        For unknown columns, numbers that are not divided, a number of records that is public, no question at all, and
        noise that would bury any count.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds 1 to one count of each table, or to none: a table moves by at most 1 in l1 and l2
        norm under ``add_remove``, by 2 and sqrt(2) under ``replace_one``. The number of records moves by 1 under
        ``add_remove``; under ``replace_one`` it is public.

        *Guarantee.* The share s of the cost: with m tables, the number of records among them, Laplace noise of scale
        ``(1 or 2) m/(s epsilon)`` or Gaussian noise of scale ``sqrt((1 or 2) m/(2 s rho))`` in each.

        *Units.* One record of each unit counts, as in :class:`StableCategories`.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
    """

    tables: Sequence[tuple[Hashable, Number]]
    with_count: bool = False

    name = "number_tables"
    asks = ColumnFacts

    def checked(self, facts: ColumnFacts) -> NumberTables:
        tables = [(name, number) for name, number in self.tables]
        names, with_count = _checked_names([name for name, _ in tables], facts), bool(self.with_count)
        # Of these very classes: one made from them could count a cell by what it has seen before.
        undivided = [name for name, number in tables if not is_exactly(number, Number, Date) or not number.divided]
        if undivided:
            raise ValueError(f"tables has {undivided}, not divided Numbers; pass number.with_cuts(cuts) of each")
        if with_count and facts.n_records is not None:
            raise ValueError("with_count=True, but the number of records is public; leave it out")
        if not tables and not with_count:
            raise ValueError("tables=[] asks nothing; pass a column and how it is divided")
        return NumberTables(tuple(zip(names, [number for _, number in tables], strict=True)), with_count)

    def mechanism(self, facts: ColumnFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> AdditiveNoise:
        return self.planned(len(self.tables), self.with_count, facts.adjacency, cost, share)

    def _exact(
        self, data: PrivateColumns, facts: ColumnFacts, mechanism: AdditiveNoise, coins: Coins
    ) -> list[Sensitive]:
        norms = _number_norms(len(self.tables), self.with_count, facts.adjacency)
        values = [record_count(data)] if self.with_count else []
        values += [number_counts(data, *table) for table in self.tables]
        return [Sensitive(value, facts.adjacency, *moves) for value, moves in zip(values, norms, strict=True)]

    @staticmethod
    def planned(
        n_tables: int, with_count: bool, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction
    ) -> AdditiveNoise:
        """The noise, of the number of records first, from public numbers; ValueError where it would bury any count.

        Examples
        --------
        >>> NumberTables.planned(1, True, Adjacency.ADD_REMOVE, PureDP(0.1), Fraction(1)).noise[0]
        Noise(distribution='discrete_laplace', scale=20.0)
        """
        return AdditiveNoise.planned(_number_norms(n_tables, with_count, adjacency), cost, share)

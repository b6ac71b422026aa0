"""Questions about columns whose values nobody has listed: which categories they have, and how numbers are spread."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator, checked_eta, checked_share
from pgmpy_dp.private.curator.mechanism import Mechanism, additive_scales
from pgmpy_dp.private.data.columns import (
    PrivateColumns,
    column_marks,
    mark_key,
    mark_label,
    mark_row,
    number_counts,
    record_count,
)
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.data_base import require_data_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.histogram import StabilityHistogram, released_cells, stability_histogram
from pgmpy_dp.private.sensitive import Noise, Sensitive
from pgmpy_dp.schema import Date, Number

__all__ = ["ColumnCurator", "StableMarks", "category_histogram", "category_labels", "number_noise"]


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

    def draw(self, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The marks that reach the threshold, a row of integers each, ascending, and their noisy counts."""
        places, noisy = released_cells(np.arange(len(self.marks)), self.counts, self.histogram, rng)
        rows = [mark_row(self.marks[place], self.max_length) for place in places.tolist()]
        return [np.array(rows, dtype=np.int64).reshape(len(rows), 2 + self.max_length), noisy]


def category_histogram(
    n_columns: int, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float, eta: Fraction | float
) -> StabilityHistogram:
    """Noise and threshold of :meth:`ColumnCurator.stable_categories`, from public numbers.

    Raises
    ------
    ValueError
        For a pure cost, an eta outside of its range, and noise that would bury any count.

    Examples
    --------
    >>> category_histogram(2, Adjacency.ADD_REMOVE, ZCDP(0.01), 1, 1e-9)
    StabilityHistogram(scale=10.0, threshold=63)
    """
    if not isinstance(cost, ZCDP):
        raise ValueError(f"a threshold takes a delta, and this curator has {cost}; open it with a delta and a reserve")
    # The threshold's own margin is above what rounding eta to a float can add.
    rho, eta = checked_share(share) * Fraction(cost.rho), checked_eta(eta)
    return stability_histogram(n_columns, rho, float(eta), changed_records(adjacency))


def category_labels(rows: np.ndarray) -> list[tuple[int, Any]]:
    """The column's place and the label of each row of :meth:`ColumnCurator.stable_categories`; None is missing."""
    return [(place, mark_label(key)) for place, key in map(mark_key, rows.tolist())]


def number_noise(
    n_tables: int, with_count: bool, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction | float
) -> list[Noise]:
    """The noise of :meth:`ColumnCurator.number_tables`, of the number of records first, from public numbers.

    Raises
    ------
    ValueError
        Where it would bury any count.

    Examples
    --------
    >>> number_noise(1, True, Adjacency.ADD_REMOVE, PureDP(0.1), 1)[0]
    Noise(distribution='discrete_laplace', scale=20.0)
    """
    norms = _number_norms(n_tables, with_count, adjacency)
    return additive_scales([(l1, l2) for l1, l2, _ in norms], cost, checked_share(share))


def _number_norms(n_tables: int, with_count: bool, adjacency: Adjacency) -> list[tuple[float, float, float]]:
    """Sensitivities of the number of records, which a record moves by 1, and of tables."""
    return [(1.0, 1.0, 1.0)] * with_count + [table_sensitivity(adjacency)] * n_tables


class ColumnCurator(Curator):
    """Columns of cells behind a budget; see :class:`~pgmpy_dp.private.curator.curator_base.Curator` for the arguments.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy_dp.schema import Schema
    >>> frame = pd.DataFrame({"job": ["nurse"] * 900 + ["baker"] * 99 + ["astronaut"]})
    >>> data = PrivateColumns(frame, Schema({"job": ["a", "b"]}), ledger=Budget(epsilon=1.0, delta=1e-6))
    >>> curator = ColumnCurator(data, Budget(epsilon=1.0, delta=1e-6), what="jobs", reserve=1e-7)
    >>> rows, counts = curator.stable_categories(["job"], share=1, eta=1e-7)
    >>> category_labels(rows)
    [(0, 'baker'), (0, 'nurse')]
    """

    kind = PrivateColumns
    _data: PrivateColumns

    def __init__(self, data: PrivateColumns, budget: Budget, **facts: Any) -> None:
        require_data_and_budget(data, PrivateColumns, budget)
        super().__init__(data, budget, **facts)

    def stable_categories(
        self, names: Sequence[Hashable], share: Fraction | float, eta: Fraction | float, max_length: int = 100
    ) -> tuple[np.ndarray, np.ndarray]:
        """Categories that many records have, and how many, with noise.

        Parameters
        ----------
        names : sequence of hashable
            Columns, each once.
        share : Fraction or float
            Of the curator's cost, for all of them.
        eta : Fraction or float
            In (0, 1): what it takes of the curator's reserve.
        max_length : int
            A cell with a longer text has no category.

        Returns
        -------
        rows : ndarray of int64, shape (m, 2 + max_length)
            What :func:`category_labels` reads, ascending: by column, then missing, numbers and texts.
        counts : ndarray of int64, shape (m,)

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For unknown columns, an eta that the reserve does not have, a curator of a pure epsilon; nothing is spent.

        Notes
        -----
        Privacy
            *Marks.* A cell marks the key that it is read as, or nothing: a function of the cell, the schema's spelling
            and `max_length` (:func:`~pgmpy_dp.private.data.columns.column_marks`). What is released of a key is made
            from the key, so it is the same however the records spell it. A record makes at most one mark in each of
            the d columns.

            *Sensitivity.* Under ``add_remove`` at most d counts move, each by 1; under ``replace_one`` at most 2d. A
            mark that one of the neighbours has alone has a count of 1, and there are at most d of these on one side,
            or on each. So a key that one record alone holds is released with a probability of at most eta/d.

            *Guarantee.* The share s of rho and eta of the reserve (:mod:`pgmpy_dp.private.noise.histogram`;
            ``proof.md``, section 3): with c = d or 2d, Gaussian noise of scale ``sqrt(c/(2 s rho))`` and a threshold T
            with ``c P(Z >= T - 1) <= eta``.

            *Units.* Of a unit one record counts, which is drawn by the unit's own records and a secret key
            (:mod:`pgmpy_dp.private.data.columns`): neighbours in a unit are neighbours in one record. All records would
            not do: m of one person move counts by up to m, and a mark of one side has a count of up to m, which takes
            noise of m times the scale and ``m c P(Z >= T - m) <= eta``. Nor would shares of 1/k for each of its k
            records: it could open k cells, each with a probability of ``P(Z >= T - 1/k)``, and k has no bound.

            *Source.* Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim and Stemmer 2016.

            *Side channels.* Running time and memory depend on the records, on how many different cells there are too.
        """
        names = self._checked(names)
        max_length = checked_integer("max_length", max_length, 1)
        share, eta = checked_share(share), checked_eta(eta)
        category_histogram(len(names), self.adjacency, self.cost, share, eta)

        def mechanism(cost: ZCDP, s: Fraction) -> StableMarks:
            marks, counts = column_marks(self._data, names, max_length)
            histogram = category_histogram(len(names), self.adjacency, cost, s, eta)
            return StableMarks(marks, counts, len(names), changed_records(self.adjacency), histogram, max_length)

        arguments = {"names": names, "max_length": max_length}
        rows, counts = self._answer("stable_categories", arguments, share, mechanism, eta)
        return rows, counts

    def number_tables(
        self, tables: Sequence[tuple[Hashable, Number]], share: Fraction | float, with_count: bool = False
    ) -> list[np.ndarray]:
        """How many records have their number in each cell of some divisions of columns, with noise.

        Parameters
        ----------
        tables : sequence of (name, Number)
            Columns and how each is divided, functions of what was released; columns may repeat.
        share : Fraction or float
            Of the curator's cost, for all of them.
        with_count : bool
            Whether the number of records is asked too.

        Returns
        -------
        list of ndarray of int64
            With `with_count` the number of records first, shape (1,); then a count for each state of each division.
            They may be negative.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For unknown columns, numbers that are not divided, a number of records that is public, no question at all,
            and noise that would bury any count; nothing is spent.

        Notes
        -----
        Privacy
            *Sensitivity.* A record adds 1 to one count of each table, or to none: a table moves by at most 1 in l1 and
            l2 norm under ``add_remove``, by 2 and sqrt(2) under ``replace_one``. The number of records moves by 1 under
            ``add_remove``; under ``replace_one`` it is public.

            *Guarantee.* The share s of the cost: with m tables, the number of records among them, Laplace noise of
            scale ``(1 or 2) m/(s epsilon)`` or Gaussian noise of scale ``sqrt((1 or 2) m/(2 s rho))`` in each.

            *Units.* As in :meth:`stable_categories`: one record of each.

            *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.
        """
        asked = [(name, number) for name, number in tables]
        self._checked([name for name, _ in asked], repeats=True)
        # Of these very classes: one made from them could count a cell by what it has seen before.
        undivided = [name for name, number in asked if type(number) not in (Number, Date) or not number.divided]
        if undivided:
            raise ValueError(f"tables has {undivided}, not divided Numbers; pass number.with_cuts(cuts) of each")
        if with_count and self._data.n_records is not None:
            raise ValueError("with_count=True, but the number of records is public; leave it out")
        if not asked and not with_count:
            raise ValueError("tables=[] asks nothing; pass a column and how it is divided")
        norms = _number_norms(len(asked), with_count, self.adjacency)

        def exact() -> list[Sensitive]:
            values = [record_count(self._data)] if with_count else []
            values += [number_counts(self._data, *table) for table in asked]
            return [Sensitive(value, self.adjacency, *own) for value, own in zip(values, norms, strict=True)]

        return self._additive("number_tables", {"tables": asked, "with_count": with_count}, share, norms, exact)

    def _checked(self, names: Sequence[Hashable], repeats: bool = False) -> tuple[Hashable, ...]:
        if isinstance(names, str | bytes) or not isinstance(names, Sequence):
            raise TypeError(f"names={names!r} is a {type(names).__name__}; pass a list of names of columns")
        unknown = [name for name in names if name not in self._data.schema.variables]
        if unknown:
            raise ValueError(f"unknown columns {unknown}; the data have {list(self._data.schema.variables)}")
        if not repeats and (len(set(names)) != len(names) or not names):
            raise ValueError(f"names={list(names)!r} must be at least one column, each once")
        return tuple(names)

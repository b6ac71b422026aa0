"""The distance of tables from a model's, by measures that were declared before: one number for each."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp.checks import exact_fraction, exact_integer, fresh_copy, require_choice
from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.table_distances import WHOLE, distance_sensitivity, whole_parts
from pgmpy_dp.private.data.table_errors import MEASURES, Measure, measured_errors, value_parts
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.operators.operator_base import SumOperator
from pgmpy_dp.private.operators.tables import joined_tables
from pgmpy_dp.private.sensitive import Sensitive

_SUMS = ("gap", "sum")


@dataclass(frozen=True, slots=True, eq=False)
class ModelErrors(SumOperator[np.ndarray]):
    """The noisy number of records by which tables differ from a model's: the largest, a cell's of a rank, a sum's.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        At least one. Their exact tables are kept, so that asking again is quick.
    numbers : sequence of ndarray
        Of the shapes of the tables, functions of what was released: what the model says of them, of sum 1; of a table
        of a "gap" or a "sum" the values of its cells, in [0, 1]. They are rounded to multiples of 2**-30.
    measures : sequence of (str, sequence of int, number)
        At least one. "largest", of these tables, by their places in `scopes`: the largest distance (as of
        :class:`~pgmpy_dp.private.operators.distances.Distances`). "ranked": of the cells of these tables the
        ``abs(n_c - N m_c)`` of this rank, 1 being the smallest. "gap": ``abs(sum n_c (f_c - r))`` for the values f
        of the cells of one table and a reference r in [0, 1]. "sum": the same sum, which may be negative.

    Returns
    -------
    ndarray of int64, shape (n_measures,)
        In records. They may be negative, and larger than the number of records.

    Raises
    ------
    TypeError, ValueError
        For unknown variables, tables of other shapes, numbers and measures that are not as above, and noise that would
        bury any number.

    Notes
    -----
    Privacy
        *Sensitivity.* Each measure moves by at most 1, under ``add_remove`` and ``replace_one``, whatever the numbers
        are. So k of them move by k in l1 and sqrt(k) in l2 norm
        (:func:`~pgmpy_dp.private.data.table_errors.measured_errors`).

        *Guarantee.* The share s of the cost: Laplace noise of scale ``k/(s epsilon)`` or Gaussian noise of scale
        ``sqrt(k/(2 s rho))`` in each.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> ModelErrors.noise_of(2, PureDP(0.1), Fraction(1, 2))
    Noise(distribution='discrete_laplace', scale=40.0)
    """

    scopes: Sequence[Sequence[Hashable]]
    numbers: Sequence[np.ndarray] | np.ndarray
    measures: Sequence[tuple[str, Sequence[int], float]]

    name = "model_errors"
    asks = TableFacts
    moved = staticmethod(distance_sensitivity)

    @property
    def kept(self) -> bool:  # type: ignore[override]
        """Whether answers are remembered; signed sums are not, since a plan says them among its facts."""
        return all(kind != "sum" for kind, *_ in self.measures)

    def checked(self, facts: TableFacts) -> ModelErrors:
        scopes = facts.scopes(self.scopes)
        numbers, shapes = [fresh_copy(table) for table in self.numbers], [facts.shape(scope) for scope in scopes]
        if [table.shape for table in numbers] != shapes:
            raise ValueError(f"numbers has tables of the shapes {[t.shape for t in numbers]}, scopes have {shapes}")
        cells = [math.prod(shape) for shape in shapes]
        measures = [_checked(*measure, cells) for measure in self.measures]
        if not measures:
            raise ValueError("measures is empty; pass at least one")
        summed = {place for kind, places, _ in measures if kind in _SUMS for place in places}
        if summed & {place for kind, places, _ in measures if kind not in _SUMS for place in places}:
            raise ValueError("measures has a table with values that is compared with a model's; list its scope twice")
        parts = [value_parts(table) if k in summed else whole_parts(table) for k, table in enumerate(numbers)]
        return ModelErrors(scopes, np.concatenate(parts), tuple(measures))

    def _numbers(self, facts: TableFacts) -> tuple[int]:
        return (len(self.measures),)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        sizes = np.array([*map(math.prod, map(facts.shape, self.scopes))])
        tables = joined_tables(data, self.scopes, sizes, mechanism.grid)
        return [measured_errors(tables, sizes, self.numbers, self.measures)]  # type: ignore[arg-type]


def _checked(kind: Any, places: Any, number: Any, cells: Sequence[int]) -> Measure:
    """A measure of Python's own types; ValueError for one of tables that are not there."""
    require_choice("measure", kind, MEASURES)
    tables = tuple(dict.fromkeys(exact_integer(place) for place in places))
    if not tables or not all(0 <= place < len(cells) for place in tables) or (kind in _SUMS and len(tables) > 1):
        raise ValueError(f"a measure {kind!r} is of the tables {tables}; pass places of tables, one for a gap or a sum")
    if kind == "largest":
        return kind, tables, 0
    if kind == "ranked":
        rank, most = exact_integer(number), sum(cells[place] for place in tables)
        if not 1 <= rank <= most:
            raise ValueError(f"a measure {kind!r} has the rank {rank} of {most} cells; pass one of 1 to {most}")
        return kind, tables, rank
    reference = exact_fraction(number)
    if not 0 <= reference <= 1:
        raise ValueError(f"a measure {kind!r} has the reference {float(reference)!r}; pass one in [0, 1]")
    return kind, tables, round(reference * WHOLE)

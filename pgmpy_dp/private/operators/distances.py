"""The distance of tables from a model's."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.checks import fresh_copy
from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.table_distances import checked_means, distance_sensitivity, mean_distances, whole_parts
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.operators.operator_base import SumOperator
from pgmpy_dp.private.operators.tables import joined_tables
from pgmpy_dp.private.sensitive import Sensitive


@dataclass(frozen=True, slots=True, eq=False)
class Distances(SumOperator[np.ndarray]):
    """The noisy number of records that would have to be in another cell for tables to be a model's: means over tables.

    Over the number of records inside the schema (``RecordCount``) that is the total variation distance.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        At least one. Their exact tables are kept, so that asking again is quick.
    probabilities : sequence of ndarray
        What the model says of them, of the shapes of the tables, each of sum 1: functions of what was released. They
        are rounded to multiples of 2**-30.
    weights : ndarray of shape (n_means, n_scopes), optional
        For each mean how much each table counts in it; not negative. Rounded to multiples of 2**-20 of a row's largest.
        Default: every table is a mean of its own, which costs as many times as much.

    Returns
    -------
    ndarray of int64, shape (n_means,) or (n_scopes,)
        In records. They may be negative, and larger than the number of records.

    Raises
    ------
    TypeError, ValueError
        For unknown variables, tables that are not probabilities of the right shapes, weights that are not means, and
        noise that would bury any distance.

    Notes
    -----
    Privacy
        *Sensitivity.* A distance is ``sum_c max(0, n_c - N m_c)``, N the sum of n. One record more, or fewer, moves it
        by at most 1, one in another cell by at most 1, whatever m is; so do means. So k of them move by k in l1 and
        sqrt(k) in l2 norm, under ``add_remove`` and ``replace_one``
        (:func:`~pgmpy_dp.private.data.table_distances.mean_distances`).

        *Guarantee.* The share s of the cost: Laplace noise of scale ``k/(s epsilon)`` or Gaussian noise of scale
        ``sqrt(k/(2 s rho))`` in each.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from pgmpy_dp.private.guarantee import PureDP
    >>> Distances.noise_of(2, PureDP(0.1), Fraction(1, 2))
    Noise(distribution='discrete_laplace', scale=40.0)
    """

    scopes: Sequence[Sequence[Hashable]]
    probabilities: Sequence[np.ndarray] | np.ndarray
    weights: Sequence[Sequence[float]] | np.ndarray | None = None

    name = "distances"
    asks = TableFacts
    moved = staticmethod(distance_sensitivity)

    def checked(self, facts: TableFacts) -> Distances:
        scopes = facts.scopes(self.scopes)
        model = [fresh_copy(table) for table in self.probabilities]
        shapes = [facts.shape(scope) for scope in scopes]
        if [table.shape for table in model] != shapes:
            raise ValueError(f"probabilities has tables of the shapes {[t.shape for t in model]}, scopes have {shapes}")
        return Distances(
            scopes, np.concatenate([whole_parts(table) for table in model]), checked_means(self.weights, len(scopes))
        )

    def _numbers(self, facts: TableFacts) -> tuple[int]:
        return (len(self.scopes if self.weights is None else self.weights),)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        sizes = np.array([*map(math.prod, map(facts.shape, self.scopes))])
        tables = joined_tables(data, self.scopes, sizes, mechanism.grid)
        return [mean_distances(tables, sizes, self.probabilities, self.weights)]  # type: ignore[arg-type]

"""Which of several tables a model gets most wrong."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import own_copy
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.mechanism import NoisyMax
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.pair_scores import joined_misfit_scores
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.selection import selection_scale
from pgmpy_dp.private.operators.operator_base import Operator, own_array
from pgmpy_dp.private.operators.tables import joined_tables
from pgmpy_dp.private.sensitive import Sensitive


@dataclass(frozen=True, slots=True, eq=False)
class WorstFit(Operator[int]):
    """Position of the scope whose table is about the furthest from what a model expects.

    Parameters
    ----------
    scopes : sequence of sequences of variable names
        Candidates, at least one. Their exact tables are kept, so that asking again is quick.
    expected : sequence of ndarray, or ndarray of shape (sum of the tables' cells,)
        Counts that the model expects, of the shapes of the tables, or in one vector, each table in C order: functions
        of what was released. They are rounded to integers; NaN counts as 0.
    offsets : sequence of float, optional
        Subtracted from the distances; default 0.
    weights : sequence of float, optional
        Positive: how much each table's distance counts. Only their ratios matter, and those in steps of 1/1024 of the
        largest. Default: equally.

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        For unknown variables, tables of other shapes and weights that are not positive.

    Notes
    -----
    Privacy
        *Sensitivity.* The score ``floor(w norm1(n - round(m))) - floor(w offset)`` of a scope with the weight w, of
        which the largest is 1, moves by at most 1 under ``add_remove``, 2 under ``replace_one``
        (:func:`~pgmpy_dp.private.data.pair_scores.misfit_scores`).

        *Guarantee.* The share s of the cost: Gumbel noise of scale ``D/sqrt(2 s rho)``, or exponential noise of scale
        ``2 D/(s epsilon)``, D being 1 or 2 (:mod:`pgmpy_dp.private.noise.selection`).

        *Source.* McKenna, Mullins, Sheldon and Miklau 2022; Cesar and Rogers 2021.
    """

    scopes: Sequence[Sequence[Hashable]]
    expected: Sequence[np.ndarray] | np.ndarray
    offsets: Sequence[float] | np.ndarray | None = None
    weights: Sequence[float] | np.ndarray | None = None

    name = "worst_fit"
    asks = TableFacts

    def checked(self, facts: TableFacts) -> WorstFit:
        scopes = facts.scopes(self.scopes)
        n, cells = len(scopes), sum(math.prod(facts.shape(scope)) for scope in scopes)
        if isinstance(self.expected, np.ndarray) and self.expected.shape == (cells,):
            expected = own_array("expected", self.expected, (cells,))
        else:
            given = [own_copy(table) for table in self.expected]
            shapes = [facts.shape(scope) for scope in scopes]
            if [table.shape for table in given] != shapes:
                raise ValueError(
                    f"expected has tables of the shapes {[table.shape for table in given]}, scopes have {shapes}; pass "
                    "one table per scope, axes in its order, or all of them in one vector"
                )
            expected = own_array("expected", np.concatenate([table.ravel() for table in given]), (cells,))
        offsets = own_array("offsets", np.zeros(n) if self.offsets is None else self.offsets, (n,), "finite numbers")
        weights = None
        if self.weights is not None:
            weights = own_array("weights", self.weights, (n,), "positive finite numbers")
        return WorstFit(scopes, expected, offsets, weights)

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> NoisyMax:
        return NoisyMax.planned(table_sensitivity(facts.adjacency)[0], cost, share, facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: NoisyMax, coins: Coins) -> Sensitive:
        sizes = np.fromiter(map(math.prod, map(facts.shape, self.scopes)), dtype=np.int64, count=len(self.scopes))
        tables = joined_tables(data, self.scopes, sizes, mechanism.grid)
        expected, offsets = (mechanism.grid * np.asarray(each) for each in (self.expected, self.offsets))
        return joined_misfit_scores(tables, sizes, expected, offsets, self.weights)

    def noted(self, facts: TableFacts, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        # Thousands of tables each time: what a release needs of them is which one it was.
        return {"candidates": len(self.scopes)}

    @staticmethod
    def scale(adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction) -> float:
        """Scale of the noise, whatever is asked, from public numbers; ValueError where it buries a score."""
        return selection_scale(table_sensitivity(adjacency)[0], cost, share)

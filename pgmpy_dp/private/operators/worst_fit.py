"""The selection of the table that a model gets most wrong, by distances from public tables: a graph is chosen by it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import fresh_copy
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.mechanism import NoisyMax, in_full
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.contingency import table_sensitivity
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.operator_base import Operator, fresh_array
from pgmpy_dp.private.operators.tables import joined_tables
from pgmpy_dp.private.sensitive import Sensitive

_LARGEST = 1 << 60  # sums of absolute differences and offsets stay within 64 bits
_WHOLE = 1 << 10  # parts of the largest weight


def misfit_scores(
    tables: Sequence[Sensitive],
    expected: Sequence[np.ndarray],
    offsets: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
) -> Sensitive:
    """Scores ``floor(w_e norm1(n_e - round(m_e))) - floor(w_e offset_e)``, one per table, exact in integers.

    Parameters
    ----------
    tables : sequence of Sensitive
        Exact tables n_e, at least one.
    expected : sequence of ndarray of float64
        Public tables m_e of the same shapes: functions of released values and public arguments. NaN counts as 0.
    offsets : sequence of float, optional
        Public finite numbers; default 0.
    weights : sequence of float, optional
        Public positive numbers, of which only the ratios matter: w_e is the weight over the largest one, rounded down
        to a multiple of 1/1024, and at least 1/1024. Default: 1.

    Returns
    -------
    Sensitive
        Shape (len(tables),). Its l-infinity sensitivity is the largest l1 sensitivity of a table.

    Raises
    ------
    ValueError
        For public tables of other shapes, and weights that are not one positive finite number per table.

    Notes
    -----
    Privacy: m_e is public, and is rounded to integers (and clipped to what 64 bits hold) before any record comes in.
    So with the same m_e on both sides, ``abs(norm1(n - m) - norm1(n' - m)) <= norm1(n - n')`` holds exactly, by the
    triangle inequality in integer arithmetic: a norm x moves by at most the l1 sensitivity D of its table, 1 under
    ``add_remove`` and 2 under ``replace_one``. A difference of floats would only do so up to rounding, which depends on
    the records.

    A weight is g/G with whole numbers ``1 <= g <= G = 1024``, and ``f(x) = floor(x g/G)`` is computed as
    ``(x // G) g + ((x % G) g) // G``, exactly and without an overflow, for x g/G is the first term plus (x % G) g/G.
    For whole numbers ``x <= x' <= x + D``: f does not fall, and ``f(x') <= f(x + D) = floor(x g/G + D g/G) <=
    floor(x g/G + D) = f(x) + D``. So a weighted score moves by at most D too, whatever the weights. Offsets are the
    same on both sides and do not matter.
    """
    expected = [fresh_copy(m) for m in expected]
    shapes = [(table.value.shape, m.shape) for table, m in zip(tables, expected, strict=True)]
    if any(shape != other for shape, other in shapes):  # one of more cells would count a table several times
        raise ValueError(f"expected tables have the shapes {[b for _, b in shapes]}, not {[a for a, _ in shapes]}")
    norms = [max(getattr(table, norm) for table in tables) for norm in ("l1", "l2", "linf")]
    joined = Sensitive(np.concatenate([table.value.ravel() for table in tables]), tables[0].adjacency, *norms)
    sizes = np.array([table.value.size for table in tables])
    return joined_misfit_scores(joined, sizes, np.concatenate([m.ravel() for m in expected]), offsets, weights)


def joined_misfit_scores(
    tables: Sensitive,
    sizes: np.ndarray,
    expected: np.ndarray,
    offsets: Sequence[float] | np.ndarray | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> Sensitive:
    """Score tables that follow one another in one vector: there may be hundreds of thousands.

    Parameters
    ----------
    tables : Sensitive
        The vector, with the largest l1 sensitivity of one table.
    sizes : ndarray of int, shape (n_tables,)
        Positive: cells of each.
    expected : ndarray of float64, shape (sum of sizes,)
    offsets, weights
        As :func:`misfit_scores`.

    Returns
    -------
    Sensitive
    """
    if tables.value.shape != expected.shape or tables.value.shape != (int(sizes.sum()),) or sizes.min() < 1:
        raise ValueError(f"expected has {expected.shape} cells, the tables {tables.value.shape} and {sizes.sum()}")
    parts = _parts(weights, len(sizes))
    limit = _LARGEST // int(sizes.max())
    assumed = np.nan_to_num(expected.astype(np.float64), nan=0.0)
    rounded = np.rint(np.clip(assumed, -limit, limit)).astype(np.int64)
    norms = np.add.reduceat(np.abs(tables.value - rounded), np.cumsum(sizes) - sizes)
    scores = (norms // _WHOLE) * parts + ((norms % _WHOLE) * parts) // _WHOLE
    if offsets is not None:
        weighted = np.asarray(offsets, dtype=np.float64) * (parts / _WHOLE)
        scores = scores - np.floor(np.clip(weighted, -_LARGEST, _LARGEST)).astype(np.int64)
    # The l1 sensitivities are small whole numbers, whose sum is exact; it bounds the l2 norm too.
    together = len(sizes) * tables.l1
    return Sensitive(scores, tables.adjacency, together, together, tables.l1)


def _parts(weights: Sequence[float] | np.ndarray | None, count: int) -> np.ndarray:
    """Each weight in parts of the largest: whole numbers from 1 to 1024."""
    if weights is None:
        return np.full(count, _WHOLE)
    numbers = fresh_copy(weights)
    if numbers.shape != (count,) or not np.isfinite(numbers).all() or not (numbers > 0).all():
        raise ValueError(f"weights={weights!r} must be {count} positive finite numbers, one per table")
    return np.clip(np.floor(numbers / numbers.max() * _WHOLE), 1, _WHOLE).astype(np.int64)


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
        (:func:`~pgmpy_dp.private.operators.worst_fit.misfit_scores`).

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
        n, cells = len(scopes), int(facts.cells(scopes).sum())
        if isinstance(self.expected, np.ndarray) and self.expected.shape == (cells,):
            expected = fresh_array("expected", self.expected, (cells,))
        else:
            tables = [fresh_copy(table) for table in self.expected]
            shapes = [facts.shape(scope) for scope in scopes]
            if [table.shape for table in tables] != shapes:
                raise ValueError(
                    f"expected has tables of the shapes {[t.shape for t in tables]}, scopes have {shapes}; pass "
                    "one table per scope, axes in its order, or all of them in one vector"
                )
            expected = fresh_array("expected", np.concatenate([table.ravel() for table in tables]), (cells,))
        offsets = fresh_array("offsets", np.zeros(n) if self.offsets is None else self.offsets, (n,), "finite numbers")
        weights = None
        if self.weights is not None:
            weights = fresh_array("weights", self.weights, (n,), "positive finite numbers")
        return WorstFit(scopes, expected, offsets, weights)

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> NoisyMax:
        return self.planned(facts.adjacency, cost, share, facts.parts)

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: NoisyMax, coins: Coins) -> Sensitive:
        sizes = facts.cells(self.scopes)
        tables = joined_tables(data, self.scopes, sizes, mechanism.grid)
        expected, offsets = (mechanism.grid * np.asarray(each) for each in (self.expected, self.offsets))
        return joined_misfit_scores(tables, sizes, expected, offsets, self.weights)

    def noted(self, facts: TableFacts, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        # Thousands of tables each time: what a release needs of them is which one it was.
        return {"candidates": len(self.scopes)}

    @staticmethod
    def planned(
        adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction, parts: Callable[[float], int] = in_full
    ) -> NoisyMax:
        """The noise, whatever is asked, from public numbers; ValueError where it buries a score."""
        return NoisyMax.planned(table_sensitivity(adjacency)[0], cost, share, parts)

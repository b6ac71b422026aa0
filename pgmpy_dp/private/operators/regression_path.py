"""A conversation about a table that fits logistic regressions of its variables, step by step."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer, checked_number, fresh_copy, is_exactly
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.curator_base import checked_share
from pgmpy_dp.private.curator.mechanism import SeveralNoisyMax
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import share_grid, shared_codes
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise.selection import selection_scale
from pgmpy_dp.private.operators.regressions import (
    RESIDUAL_UNIT,
    GradientSums,
    Regressions,
    selection_weight,
)

LARGEST_REACH = 1 << 40
"""Of the sum of a regression's moves: logits are integers of 64 bits."""

_PARTS = 1 << 16  # of a record that counts by shares: scores have 12 bits of their own


def vertex_scale(layout: Any, adjacency: Adjacency, cost: PureDP | ZCDP, share: Fraction) -> float:
    """Scale of the noise of :meth:`RegressionPath.vertices`, in units of the gradient sums: from public numbers.

    Raises
    ------
    ValueError
        Where it buries any gradient.

    Examples
    --------
    >>> from pgmpy_dp.fields.published.regression_layout import regression_layout
    >>> layout = regression_layout("ising", [2, 2])
    >>> vertex_scale(layout, Adjacency.ADD_REMOVE, PureDP(1.0), Fraction(1)) / RESIDUAL_UNIT
    4.0
    """
    return selection_scale(float(RESIDUAL_UNIT), cost, share / selection_weight(layout, adjacency, cost))


def _require_shares(curator: object) -> None:
    """Raise TypeError for what is no curator of a table with shares: a schedule counts requests, whatever they cost."""
    if not is_exactly(curator, TableCurator):
        raise TypeError(f"curator is a {type(curator).__qualname__}; pass a TableCurator, whose shares pay for it")


class RegressionPath:
    """Weights of some logistic regressions, moved by public steps, and where their gradients point.

    Weights are integers times a slope that each request names, as :mod:`pgmpy_dp.fields.frank_wolfe` makes them; they
    begin at 0.

    Parameters
    ----------
    curator : TableCurator
        The curator that pays.
    layout : RegressionLayout
        Of :mod:`pgmpy_dp.fields.frank_wolfe`, for the schema's cardinalities.
    reach : int
        At most 2**40: bound on the sum of the absolute moves of any regression's weights.

    Raises
    ------
    TypeError, ValueError
        For a layout that is none of this table, and for another reach. Nothing is spent, and nothing is counted.
    """

    def __init__(self, curator: TableCurator, layout: Any, reach: int) -> None:
        _require_shares(curator)
        checked = checked_integer("reach", reach, 0)
        if checked > LARGEST_REACH:
            raise ValueError(f"reach={reach!r} is more than {LARGEST_REACH}; take fewer or smaller steps")
        layout = Regressions.checked(layout, curator.facts.sizes)
        self._curator, self._layout, self._reach = curator, layout, checked
        self._weight = selection_weight(layout, curator.adjacency, curator.cost)
        self._candidates = [np.flatnonzero(row >= 0) for row in layout.columns]
        self._moved = np.zeros(layout.n_regressions, dtype=np.int64)
        self._sums: GradientSums | None = None
        self._grid = 0  # in how many parts records count; of the first request
        self._moving = False

    def vertices(self, rows: np.ndarray, moves: np.ndarray, slope: float, share: Fraction | float) -> np.ndarray:
        """Move the weights, then select a vertex of the l1 ball for each regression along its noisy gradient.

        Parameters
        ----------
        rows : ndarray of int, shape (n_regressions,)
            The feature (its position in ``layout.features``) whose weight moves in each regression.
        moves : ndarray of int, shape (n_regressions,)
            By how much, in units of the slope.
        slope : float
            Positive: what one unit of all weights moved so far is worth now.
        share : Fraction or float

        Returns
        -------
        ndarray of int, shape (n_regressions,)
            v < q is +1 in column v of the layout, v >= q is -1 in column v - q: about the vertex of smallest product
            with the gradient of the logistic loss.

        Raises
        ------
        BudgetExceeded
            If less than the share is left; nothing is spent.
        TypeError, ValueError
            For features that a regression does not have, moves beyond the reach, and a slope that is not positive and
            finite. Nothing is spent.
        RuntimeError
            If an earlier request was interrupted while it moved the weights: some records may have the new ones, others
            not. Nothing is spent; make a new path.

        Notes
        -----
        Privacy
            *Sensitivity.* A record's gradient has coordinates of at most 1 in absolute value, exactly, and depends on
            the record and on the current weights, which are public, alone. Scores are sums of gradients, never means:
            the number of records is nowhere in them (:mod:`pgmpy_dp.private.operators.regressions`). Over all
            regressions the coordinates' movements D_r, in units of RESIDUAL_UNIT, have a sum (epsilon), or a sum of
            squares (rho), of at most W, :func:`~pgmpy_dp.private.operators.regressions.selection_weight`: for binary
            variables p under ``add_remove``, 4 p (rho) or 2 p (epsilon) under ``replace_one``.

            *Guarantee.* The share s of the cost: Gumbel noise of scale ``sqrt(W/(2 s rho))``, or exponential noise of
            scale ``2 W/(s epsilon)``, in units of RESIDUAL_UNIT. Proof: ``frank_wolfe.md``.

            *Source.* Zhang, Kamath, Kulkarni and Wu 2020, Algorithms 1 to 4, after Talwar, Thakurta and Zhang 2015;
            Cesar and Rogers 2021 for the cost of a selection.
        """
        slope, share = checked_number("slope", slope, positive=True), checked_share(share)
        rows, moves = self._integers(rows, moves)
        with self._curator._turn():  # moves are compared with the reach and made in one go
            return self._vertices(rows, moves, slope, share)

    def _vertices(self, rows: np.ndarray, moves: np.ndarray, slope: float, share: Fraction) -> np.ndarray:
        curator, layout = self._curator, self._layout
        self._require_within(rows, moves)
        # Refuses before anything is spent.
        scale = vertex_scale(layout, curator.adjacency, curator.cost, share)
        grid = share_grid(curator._data, scale, self._grid or _PARTS)
        if grid < (self._grid or grid):
            raise ValueError(
                f"share={float(share)!r} is much less than what this path was asked with before; make a new one"
            )

        def mechanism(cost: PureDP | ZCDP, s: Fraction) -> SeveralNoisyMax:
            if self._sums is None:
                codes, weights = shared_codes(curator._data, grid)
                self._grid = grid  # first: sums in other parts than it says would have too little noise
                self._sums = GradientSums(codes, layout, curator.adjacency, self._reach, weights)
            self._moving = True
            self._moved += np.abs(moves)
            gradients = self._sums.after(rows, moves, self._sums.table(slope)).value
            self._moving = False
            # The vertex s with the smallest <s, gradient>: +e_v scores -gradient_v, -e_v scores gradient_v.
            candidates = [gradient[chosen] for gradient, chosen in zip(gradients, self._candidates, strict=True)]
            scores = [np.concatenate([-part, part]) for part in candidates]
            return SeveralNoisyMax.planned(float(grid * RESIDUAL_UNIT), self._weight, cost, s).over(scores)

        arguments = {"layout": layout, "rows": rows, "moves": moves, "slope": slope}
        best = curator._answer_now("vertices", arguments, share, mechanism, keep=False)
        sizes = np.array([len(chosen) for chosen in self._candidates])
        negative = best >= sizes
        column = [chosen[b] for chosen, b in zip(self._candidates, best - sizes * negative, strict=True)]
        return np.array(column, dtype=np.int64) + layout.columns.shape[1] * negative

    def _integers(self, rows: np.ndarray, moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        m = self._layout.n_regressions
        rows, moves = fresh_copy(rows, None), fresh_copy(moves, None)
        for name, value in (("rows", rows), ("moves", moves)):
            if value.shape != (m,) or not np.issubdtype(value.dtype, np.integer):
                raise ValueError(f"{name} has shape {value.shape} and type {value.dtype}; pass {m} integers")
        return rows.astype(np.int64), moves.astype(np.int64)

    def _require_within(self, rows: np.ndarray, moves: np.ndarray) -> None:
        if self._moving:
            raise RuntimeError("this path was interrupted while it moved its weights; make a new one, and begin again")
        layout = self._layout
        # A regression on the constant alone stays one: what it knows of a record is its label (selection_weight).
        has_feature = (layout.columns == rows[:, np.newaxis]).any(axis=1) & (rows >= 0)
        if not (has_feature | ((moves == 0) & (rows >= 0) & (rows < len(layout.features)))).all():
            raise ValueError("rows moves weights of features that their regressions do not have")
        within = (moves >= -self._reach) & (moves <= self._reach)  # -2**63 is its own absolute value
        if not within.all() or (self._moved + np.abs(moves) > self._reach).any():
            raise ValueError(f"moves go beyond the reach of {self._reach} that the path was made with")

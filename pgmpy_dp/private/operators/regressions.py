"""Gradient sums of several logistic regressions at once, in exact integers: of a random field, or of a target.

The gradient of the logistic loss ``log(1 + exp(-y <w, x>))`` of one record is ``(sigma(<w, x>) - [y = 1]) x``. Between
two steps of Frank-Wolfe every logit moves by a multiple of one feature, so logits are kept, and one step is one pass::

    logits[r] += step[r] * x[row[r]]          integers: the weights are public integers times radius/denominator
    residuals  = table[logits]                integers in -2**12 .. 2**12, looked up in a public table
    sums       = residuals @ x.T              an exact product of matrices of integers

Why a record moves each sum by at most its own residual, exactly
------------------------------------------------------------------
A residual is looked up by an integer that depends on one record and on the public steps alone, so no record's residual
depends on where the record stands or on what else is there. (A sigmoid of a vector can: its last elements may be
computed by other instructions than the rest.) Features are in {-1, 0, 1}. In batches of at most 2**12 records every
partial sum of residuals times features, in any order, is an integer of at most 2**12 * 2**12 = 2**24 in absolute value,
which single precision holds exactly; fused multiply-adds are exact too. (This asks the matrix product to add up
products of entries, in whatever order. Fast products of the kind of Strassen's do not, and no BLAS uses one by
default.) Batches are added up in 64-bit integers. Repeated records are weighted by their number in double precision,
exact below 2**53 / 2**12 = 2**41 records. Records that count by shares are weighted by these, 2**16 for a whole one,
in rows of at most 2**25: in batches of 2**16 rows sums are below 2**53 again.

Features that are numbers
-------------------------
Features of the family "logistic" have values of their own, integers from -U to U, U = 2**6, that stand for themselves
divided by U. A public table has one for each state; a number has its cells for states. So one record adds an integer
of at most 2**12 U to a sum, by its own states alone. Products are added up in double precision: at most 2**12 rows of a
batch, of weights of at most 2**19, give at most 2**12 * 2**19 * 2**12 * 2**6 = 2**49. The sum of all batches is divided
by U and rounded down. As ``floor(a/U + k) = floor(a/U) + k`` for whole k, and rounding down keeps the order, sums that
differ by at most k U become integers that differ by at most k: a record moves each by at most D 2**12, and by shares of
1/g by g times that, as without numbers.

Logits are integers in units of slope/U. Where they reach beyond 2**16 their last bits are left out when residuals are
looked up: a residual stays a function of one record and of public steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
from threadpoolctl import ThreadpoolController

from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.data.contingency import count
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.mathematics.one_thread import one_thread
from pgmpy_dp.private.sensitive import Sensitive

RESIDUAL_UNIT = 1 << 12
"""Residuals are multiples of its inverse: off by at most 2**-13, and by less than 2**-16 on average over logits."""

_BATCH = 1 << 12
_BATCH_BYTES = 1 << 26  # of a batch's features and residuals, for models with very many of them
_DISTINCT_LIMIT = 1 << 20  # joint states up to which repeated records are counted first
_WEIGHT_OF_ROW = 1 << 25
_TABLE_REACH = 1 << 16  # a table of residuals has six times as many entries
FEATURE_UNIT = 1 << 6
"""Features with values of their own are multiples of its inverse."""

_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, eq=False)
class Regressions:
    """The logistic regressions that are descended, with labels and features: public, and checked here.

    A :class:`~pgmpy_dp.fields.frank_wolfe.RegressionLayout` in the form on which sensitivities depend. It has
    the same fields.
    """

    family: str
    cardinalities: tuple[int, ...]
    features: tuple[tuple[int, ...], ...]
    nodes: np.ndarray
    pairs: np.ndarray
    columns: np.ndarray

    @classmethod
    def checked(cls, layout: Any, cardinalities: Sequence[int]) -> Regressions:
        """A public layout, if it is one of records with these cardinalities.

        Raises
        ------
        ValueError
            For features that are not those of the family, or beyond the unit; for labels that no variable has; for a
            regression that occurs twice (its costs would be counted once), and for columns without a feature.

        Examples
        --------
        >>> from pgmpy_dp.fields.published.regression_layout import regression_layout
        >>> Regressions.checked(regression_layout("ising", [2, 2]), [2, 2]).n_regressions
        2
        """
        sizes = tuple(int(k) for k in cardinalities)
        made = cls(
            str(layout.family),
            tuple(int(k) for k in layout.cardinalities),
            tuple(tuple(int(i) for i in feature) for feature in layout.features),
            np.array(layout.nodes, dtype=np.int64),
            np.array(layout.pairs, dtype=np.int64),
            np.array(layout.columns, dtype=np.int64),
        )
        binary = made.family in ("ising", "binary")
        knmade = binary or made.family in ("pairwise", "logistic")
        if made.cardinalities != sizes or not knmade or (binary and set(sizes) != {2}):
            raise ValueError(
                f"layout is of family {made.family!r} with cardinalities {made.cardinalities}; the records have {sizes}"
            )
        m, columns = len(made.nodes), made.columns
        if not (made._has_features() and made.pairs.shape == (m, 2) and columns.ndim == 2 and len(columns) == m):
            raise ValueError(f"layout: its features, nodes, pairs and columns are none of family {made.family!r}")
        inside = (made.nodes >= 0).all() and (made.nodes < len(sizes)).all()
        states = np.array(sizes)[made.nodes] if inside else None
        pairs = made.pairs if made.family == "pairwise" else made.pairs[:, ::-1]
        low, high = pairs[:, 0], pairs[:, 1]
        labelled = states is not None and (made.family == "pairwise" or (states == 2).all())
        if not labelled or not ((low >= 0) & (low < high) & (high < states)).all():
            raise ValueError("layout: its nodes or pairs are of variables or states that the records do not have")
        if len({(int(i), int(u), int(v)) for i, (u, v) in zip(made.nodes, made.pairs, strict=True)}) != m:
            raise ValueError("layout: a regression of the same variable and pair of states occurs twice")
        if (columns < -1).any() or (columns >= len(made.features)).any() or not (columns >= 0).any(1).all():
            raise ValueError("layout: columns are numbers of features, or -1, and every regression has one at least")
        return made

    def _has_features(self) -> bool:
        """Whether features are those that `feature_rows` computes, in -1, 0 and 1, and the constant is there once."""
        if self.family == "pairwise":
            return self.features == (*((j, a) for j, k in enumerate(self.cardinalities) for a in range(k)), ())
        p = len(self.cardinalities)
        if self.family == "ising":
            return self.features == (*((j,) for j in range(p)), ())
        if self.family == "logistic":
            for feature in self.features[:-1]:
                if not feature or not 0 <= feature[0] < p or len(feature) != 1 + self.cardinalities[feature[0]]:
                    return False
                if not all(-FEATURE_UNIT <= value <= FEATURE_UNIT for value in feature[1:]):
                    return False
            return self.features[-1:] == ((),)
        seen: set[tuple[int, ...]] = {()}
        for subset in self.features[1:]:
            increasing = all(0 <= i < p for i in subset) and list(subset) == sorted(set(subset))
            if not subset or not increasing or subset in seen or subset[:-1] not in seen:
                return False
            seen.add(subset)
        return self.features[:1] == ((),)

    @property
    def n_regressions(self) -> int:
        """Rows of the weights."""
        return len(self.nodes)

    @property
    def active_nodes(self) -> tuple[int, ...]:
        """Positions of the variables that have regressions."""
        return tuple(int(node) for node in np.unique(self.nodes))


def selection_weight(layout: Any, adjacency: Adjacency, cost: PureDP | ZCDP) -> int:
    """Return how many selections of sensitivity RESIDUAL_UNIT cost as much as one step over all regressions.

    Parameters
    ----------
    layout : Regressions
        Or a public layout of the same form.
    adjacency : Adjacency
    cost : PureDP or ZCDP
        Costs of selections grow with the sensitivity in epsilon, with its square in rho.

    Returns
    -------
    int
        Upper bound, over pairs of neighbours, of the sum over regressions of D (pure) or D**2 (zCDP), D being how far a
        gradient coordinate of the regression moves, in units of RESIDUAL_UNIT.

    Notes
    -----
    Privacy: a record's contribution to a coordinate is residual times feature.

    * Binary variables ("ising", "binary"): every record takes part in each of the m regressions, residuals are of
      either sign, features are +-1. D = 1 for each regression if one record changes; if two do, D = 2. In all m, or 2 m
      (pure) and 4 m (zCDP).
    * "logistic": the same, for m targets of two states each, as features are in [-1, 1].
    * "pairwise", one record: it takes part only in the k_i - 1 pairs of states of variable i that contain its own
      state, with D = 1. In all sum_i (k_i - 1).
    * "pairwise", record x replaced by x'. Features are in {0, 1}, and all residuals of one label have one sign, so in a
      regression that gives both the same label both contributions are in [0, 1] (or both in [-1, 0]) and differ by at
      most 1. If the states a of x_i and a' of x'_i agree, they share k_i - 1 pairs with the same label: k_i - 1 times
      D = 1. If not, the pair {a, a'} has both with opposite labels, D <= 2; the k_i - 2 other pairs of a, and those of
      a', have one of them each, D = 1. That is 2 + 2 (k_i - 2) = 2 (k_i - 1) (pure) and 4 + 2 (k_i - 2) = 2 k_i (zCDP),
      which is no less than the k_i - 1 of the first case.
    * A variable without neighbours in a public graph has regressions too, on the constant alone. They know no more of a
      record than its label, so two records with the same label have the same gradient, and with opposite labels
      ``sigma - (sigma - 1) = 1`` between them: D = 1 where it was 2 above, exactly, as the table holds one rounded
      sigma for both labels. If two records change that is 1 for a binary variable, 1 + 2 (k_i - 2) for k_i states.
    * A record outside the schema is in no sum: a replacement by or of it counts as one record, which is less in every
      case; two of them as nothing. A variable of one state has no pairs.

    Examples
    --------
    >>> from pgmpy_dp.fields.published.regression_layout import regression_layout
    >>> layout = Regressions.checked(regression_layout("pairwise", [3, 4]), [3, 4])
    >>> [selection_weight(layout, a, c) for a in Adjacency if a != "edge" for c in (PureDP(1.0), ZCDP(1.0))]
    [5, 5, 10, 14]
    """
    changed = changed_records(adjacency)
    twice = 2**cost.power  # what D = 2 costs
    sizes = np.array([layout.cardinalities[i] for i in layout.active_nodes], dtype=np.int64)
    if changed == 1:
        return int((sizes - 1).sum())
    each = twice + 2 * (sizes - 2) if layout.family == "pairwise" else np.full(len(sizes), twice)
    others = (layout.columns >= 0) & (layout.columns != layout.features.index(()))
    has_features = set(layout.nodes[others.any(axis=1)].tolist())
    constant = np.array([i not in has_features for i in layout.active_nodes], dtype=bool)
    return int(np.where(constant, 2 * sizes - 3, each).sum())


def residual_table(slope: float, reach: int) -> np.ndarray:
    """Residuals by the integer that stands for a logit and a label, in units of 1/RESIDUAL_UNIT.

    Parameters
    ----------
    slope : float
        Logit of one unit.
    reach : int
        Largest absolute value of the integer logits.

    Returns
    -------
    ndarray of float32, shape (3 * (2 * reach + 1),)
        Integers: ``sigma`` of the logits from -reach to reach for the label -1, the same less 1 for the label +1, and
        zeros for records that take no part.

    Examples
    --------
    >>> residual_table(math.log(3.0), 1).tolist()
    [1024.0, 2048.0, 3072.0, -3072.0, -2048.0, -1024.0, 0.0, 0.0, 0.0]
    """
    from scipy.special import expit

    # Rounded on its own for each entry; whatever it is, it is the same for all records.
    up = np.rint(expit(slope * np.arange(-reach, reach + 1)) * RESIDUAL_UNIT)
    return np.concatenate([up, up - RESIDUAL_UNIT, np.zeros_like(up)]).astype(np.float32)


def feature_unit(layout: Any) -> int:
    """What features of a layout are multiples of the inverse of."""
    return FEATURE_UNIT if layout.family == "logistic" else 1


def feature_rows(codes: np.ndarray, layout: Any) -> np.ndarray:
    """Features of some records, shape (n_features, n): row f is ``layout.features[f]``, int8 in units of 1/unit.

    Parameters
    ----------
    codes : ndarray of unsigned integers, shape (n, p)
    layout : Regressions
        Or a public layout of the same form.
    """
    by_variable = codes.T
    rows = np.empty((len(layout.features), len(codes)), dtype=np.int8)
    if layout.family == "pairwise":
        start = 0
        for values, k in zip(by_variable, layout.cardinalities, strict=True):
            np.equal(values, np.arange(k)[:, np.newaxis], out=rows[start : start + k], casting="unsafe")
            start += k
        rows[start:] = 1
        return rows
    if layout.family == "logistic":
        for row, (j, *values) in zip(rows[:-1], layout.features[:-1], strict=True):
            np.take(np.array(values, dtype=np.int8), by_variable[j], out=row)
        rows[-1] = FEATURE_UNIT
        return rows
    signs = by_variable.astype(np.int8)
    signs *= 2
    signs -= 1
    if layout.family == "ising":
        rows[:-1], rows[-1] = signs, 1
        return rows
    # By degree, each monomial from the one without its last variable.
    position = {subset: row for row, subset in enumerate(layout.features)}
    rows[0] = 1
    for row, subset in enumerate(layout.features[1:], start=1):
        np.multiply(rows[position[subset[:-1]]], signs[subset[-1]], out=rows[row])
    return rows


class GradientSums:
    """Gradient sums of some records, step after step. It holds records: inside the boundary only.

    Parameters
    ----------
    codes : ndarray of unsigned integers, shape (n, p)
        Not changed.
    layout : Regressions
    adjacency : Adjacency
    reach : int
        Bound on the sum of the absolute steps of any regression.
    weights : ndarray of int64, shape (n,), optional
        For how much each record counts, at most 2**16; sums are in these units too.

    Notes
    -----
    Memory: the codes, and 2 bytes per record and regression (4 beyond a reach of 5460) for the logits; floating-point
    numbers exist in batches of rows only. Where the joint states are at most 2**20, equal records are counted first and
    each distinct one is worked on once; that choice is by public numbers alone.
    """

    def __init__(
        self,
        codes: np.ndarray,
        layout: Regressions,
        adjacency: Adjacency,
        reach: int,
        weights: np.ndarray | None = None,
    ) -> None:
        codes, repeats = _distinct(codes, layout, weights)
        self._layout, self._adjacency = layout, adjacency
        self._unit = feature_unit(layout)
        fine = reach * self._unit
        self._left_out = max(0, (fine - 1).bit_length() - _TABLE_REACH.bit_length() + 1)
        self.reach = (fine >> self._left_out) + (self._left_out > 0)
        start = _initial_logits(codes, layout, self.reach, self._left_out)
        self._engine = _BatchSums(partial(_features_of_batch, codes, layout), start, repeats, self._left_out)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("GradientSums cannot be copied or pickled: they hold private records")

    def table(self, slope: float) -> np.ndarray:
        """Residuals for :meth:`after`, where a unit of the weights is worth the slope."""
        return residual_table(slope / self._unit * (1 << self._left_out), self.reach)

    def after(self, rows: np.ndarray, steps: np.ndarray, table: np.ndarray) -> Sensitive:
        """Move the logits, then sum the gradients.

        Parameters
        ----------
        rows : ndarray of int, shape (n_regressions,)
            The feature (its position in ``layout.features``) whose weight moves in each regression.
        steps : ndarray of int, shape (n_regressions,)
            By how much, in units of the slope.
        table : ndarray
            Of :meth:`table`; for features of -1, 0 and 1 and a reach of at most 2**16 that is :func:`residual_table`.

        Returns
        -------
        Sensitive
            Sums in units of 1/RESIDUAL_UNIT, shape (n_regressions, q), 0 where a regression lacks the feature. No
            coordinate moves by more than RESIDUAL_UNIT for each changed record; :func:`selection_weight` is sharper
            about how many do. With weights of sum at most g for a unit: by g times as much.
        """
        sums = self._engine.after(rows, steps, table) // self._unit  # rounded down
        columns = self._layout.columns
        value = np.where(columns >= 0, np.take_along_axis(sums, np.maximum(columns, 0), axis=1), 0)
        linf = float(changed_records(self._adjacency) * RESIDUAL_UNIT)
        return Sensitive(value, self._adjacency, value.size * linf, (math.isqrt(value.size) + 1) * linf, linf)


class _BatchSums:
    """Passes over batches of records, on as many threads as there are processors."""

    def __init__(
        self, feature_rows: Callable[[int, int], np.ndarray], logits: np.ndarray, repeats: np.ndarray | None, bits: int
    ) -> None:
        self._feature_rows, self._logits, self._repeats, self._left_out = feature_rows, logits, repeats, bits
        self._dtype = np.float32 if repeats is None else np.float64
        self._libraries = ThreadpoolController()
        self._shape = (len(logits), len(feature_rows(0, 0)))
        self._batch = max(16, min(_BATCH, _BATCH_BYTES // (8 * (self._shape[1] + 2 * self._shape[0]))))

    def after(self, rows: np.ndarray, steps: np.ndarray, table: np.ndarray) -> np.ndarray:
        n = self._logits.shape[1]
        batches = -(-n // self._batch)
        # Each thread adds up its own stretch of batches; integers, so the cut does not show in the result.
        tasks = max(1, min(_THREADS, batches))
        cuts = [batches * k // tasks * self._batch for k in range(tasks + 1)]
        moves = steps.astype(self._logits.dtype)[:, np.newaxis]
        table = table.astype(self._dtype)

        def stretch(k: int) -> np.ndarray:
            total = np.zeros(self._shape, dtype=np.int64)
            for start in range(cuts[k], min(cuts[k + 1], n), self._batch):
                total += self._one(start, min(start + self._batch, n), rows, moves, table).astype(np.int64)
            return total

        # Small products on several threads of their own as well took seven times as long, measured on two processors.
        with one_thread(self._libraries), ThreadPoolExecutor(tasks) as pool:
            # One stretch is worked on here: to start a thread for it takes longer than most.
            return sum((pool.map if tasks > 1 else map)(stretch, range(tasks)))  # type: ignore[return-value]  # some array

    def _one(self, start: int, end: int, rows: np.ndarray, moves: np.ndarray, table: np.ndarray) -> np.ndarray:
        features = self._feature_rows(start, end)
        logits = self._logits[:, start:end]  # a view: the next line moves what is kept
        logits += features[rows] * moves
        coarse = logits >> self._left_out if self._left_out else logits
        residuals = np.take(table, coarse.astype(np.intp), mode="clip")  # nothing is beyond it; clipping skips a check
        if self._repeats is not None:
            residuals *= self._repeats[start:end]
        return residuals @ features.astype(self._dtype).T


def _features_of_batch(codes: np.ndarray, layout: Regressions, start: int, end: int) -> np.ndarray:
    return feature_rows(codes[start:end], layout)


def _distinct(
    codes: np.ndarray, layout: Regressions, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Distinct records and how often each occurs, or their weight, where that may pay; else all records."""
    cardinalities, most = layout.cardinalities, _WEIGHT_OF_ROW // feature_unit(layout)
    if weights is None and feature_unit(layout) > 1:  # sums are beyond single precision
        weights = np.ones(len(codes), dtype=np.int64)
    if len(cardinalities) > 20 or math.prod(cardinalities) > _DISTINCT_LIMIT:
        return np.asfortranarray(codes), None if weights is None else weights.astype(np.float64)
    table = count(codes, cardinalities, range(len(cardinalities)), weights)
    cells = np.flatnonzero(table)
    distinct = np.stack(np.unravel_index(cells, table.shape)).astype(codes.dtype)
    repeats = table.ravel()[cells]
    if weights is not None:
        pieces = -(-repeats // most)
        place = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        distinct, left = np.repeat(distinct, pieces, axis=1), np.repeat(repeats, pieces)
        repeats = np.minimum(left - place * most, most)
    return distinct.T, repeats.astype(np.float64)


def _initial_logits(codes: np.ndarray, layout: Regressions, reach: int, left_out: int) -> np.ndarray:
    """Zero logits as positions in a residual table, shape (n_regressions, n): which third of it tells the label.

    Positions have some bits more than the table, which are rounded when it is looked at.
    """
    third, half = 2 * reach + 1, (1 << left_out) >> 1
    bits = (3 * third << left_out).bit_length() - 1
    dtype = np.int16 if bits < 15 else np.int32 if bits < 31 else np.int64
    logits = np.empty((layout.n_regressions, len(codes)), dtype=dtype)
    for row, node, (u, v) in zip(logits, layout.nodes, layout.pairs, strict=True):
        of_state = np.full(layout.cardinalities[node], reach + 2 * third)
        of_state[v], of_state[u] = reach, reach + third
        row[:] = (of_state[codes[:, node]] << left_out) + half
    return logits

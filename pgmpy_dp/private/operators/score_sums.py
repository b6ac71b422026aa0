"""Sums over records of the score of a declared regression, at a public point, in exact integers.

The score of a record is ``psi = w x (y - m(x'b))``: x the columns of the design, y the response, b a public point, m
the logistic function or the identity, w the record's weight, by default 1. It is shaped by a public matrix M, so that
noise of one size in all coordinates is small where the analysis needs it to be. Everything that a record adds is made
of whole numbers::

    x     = products of public values of its states        multiples of 2**-16, from -1 to 1
    y - m = y - table[x'b], or y - x'b, clipped to +-4     multiples of 2**-16
    r     = w (y - m), rounded; w a weight from 0 to 1     multiples of 2**-16, at most 4
    psi   = x r, rounded                                   multiples of 2**-20, at most 4
    v     = M psi, rounded; then shortened                 multiples of 2**-15

Why a record adds a vector of bounded norm, whatever it holds
-------------------------------------------------------------
No list of the cells that a design can have enters the proof. The last step is the same for every record: v is shortened
toward zero until its sum of squares is at most 2**30 and its sum of absolute values at most a public L, and then both
are *checked* in integers; a vector that failed would count as zeros. So what is before that step, M and b among it, may
be anything. It has only to be a function of the one record and of public numbers, and to fit 64 bits:

* It is a function of the one record. States become whole numbers by public tables. All that follows is multiplication,
  addition and shifting of 64-bit integers, which are exact, and so do not depend on where a record stands or on the
  order of additions. The one step in floating point is a square root of an integer below 2**53, which IEEE 754 rounds
  in one way only. The table of the logistic function is public, and looked up.
* It fits. With at most 2**8 columns: ``abs(x b)`` is at most 2**16 2**30, so logits stay below 2**54; psi is at most
  2**22 in its units; M psi is at most 2**8 2**31 2**22 = 2**61; coordinates of v are clipped to 2**20, so that sums of
  squares are at most 2**49. Of units that count by shares, weights of sum at most 2**16 times 2**15 leave room for
  2**31 units.

A record that lacks a value of the analysis adds zeros: one public value of each of its states, 0 or 1, says so, and
their product is a factor of all coordinates. One more coordinate counts the others, so that the mean of the score is
over these.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_integer, exact_integer, fresh_copy, require_choice
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.data.table_facts import TableFacts
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.operator_base import SumOperator
from pgmpy_dp.private.sensitive import Sensitive

FAMILIES = ("logit", "linear")
GRID = 1 << 15
"""The l2 norm to which what a record adds is shortened."""

VALUE, POINT, SHAPE = 1 << 16, 1 << 16, 1 << 14
"""What values of states, entries of the point, and entries of the shape are multiples of the inverse of."""

COUNT = GRID // 8
"""What a record that counts adds to the last coordinate."""

MOST_COLUMNS = 1 << 8
LARGEST_POINT, LARGEST_SHAPE = 1 << 30, 1 << 31
_REACH = 1 << 17  # of logits in the table, which are multiples of 2**-12: beyond 32 nothing changes
_RESIDUAL, _CLIP = 4 * VALUE, 1 << 20
_PARTS = 1 << 16
_BATCH = 1 << 18  # numbers of a batch of records

Factor = tuple[Hashable, tuple[int, ...]]
"""A variable, with a whole number for each of its states."""


def score_sensitivity(l1_bound: int, adjacency: Adjacency) -> tuple[float, float, float]:
    """l1, l2 and l-infinity sensitivity of a sum of integer vectors of l1 norm at most a bound, l2 norm at most GRID.

    Notes
    -----
    Under ``add_remove`` neighbours' sums differ by one such vector v or by none. Under ``replace_one`` they differ by
    v - v', either of which is 0 for a record that is outside or lacks a value: twice each norm, by the triangle
    inequality, attained by v' = -v.

    Examples
    --------
    >>> score_sensitivity(100, Adjacency.REPLACE_ONE)
    (200.0, 65536.0, 65536.0)
    """
    changed = changed_records(adjacency)
    return float(changed * l1_bound), float(changed * GRID), float(changed * GRID)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums(SumOperator[np.ndarray]):
    """Noisy sums over records of shaped scores of a regression, and of how many records count.

    Parameters
    ----------
    columns : sequence of sequences of (variable, sequence of int)
        The columns of the design, 1 to 256. Each is a product of values of some variables, in units of 1/VALUE, one
        for each state of the variable, of at most VALUE; without variables it is the constant 1.
    response : (variable, sequence of int)
        The response, its values in units of 1/VALUE; of the family "logit" 0 or VALUE.
    complete : sequence of (variable, sequence of int)
        For each state 1, or 0 where a record with it lacks a value and adds nothing.
    point : sequence of int
        b, one entry for each column, in units of 1/POINT.
    shape : ndarray of int, shape (k, n_columns)
        M, in units of 1/SHAPE, k at most 256.
    l1_bound : int
        L: what vectors' sums of absolute values are shortened to, at most ``(k + 1) GRID``.
    family : {"logit", "linear"}
    weight : sequence of (variable, sequence of int)
        The weight of a record is the product of these values of its states, in units of 1/VALUE, from 0 to VALUE.

    Returns
    -------
    ndarray of int64, shape (k + 1,)
        Sums of M psi in units of 1/GRID; and the number of records that count, times COUNT.

    Raises
    ------
    TypeError, ValueError
        For public arguments that are not as above, variables that the schema lacks, and noise that would bury any sum.

    Notes
    -----
    Privacy
        *Sensitivity.* A record adds an integer vector of l1 norm at most L and l2 norm at most G = 2**15, which depends
        on the record and on public numbers alone, or zeros where it is outside the schema or lacks a value
        (:mod:`pgmpy_dp.private.operators.score_sums`). So the sums move by (L, G) in l1 and l2 under ``add_remove``,
        by twice as much under ``replace_one``. The vectors of a person whose records count by shares have a weighted
        mean of such vectors for their sum (:meth:`~pgmpy_dp.private.data.table_facts.TableFacts.parts`).

        *Guarantee.* The share s of the cost: discrete Laplace noise of scale l1/(s epsilon), or Gaussian of
        l2/sqrt(2 s rho), in each coordinate.

        *Source.* Dwork, McSherry, Nissim and Smith 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> ScoreSums.noise_of(GRID, Adjacency.ADD_REMOVE, PureDP(1.0), Fraction(1)).scale / GRID
    1.0
    """

    columns: Sequence[Sequence[tuple[Hashable, Sequence[int]]]]
    response: tuple[Hashable, Sequence[int]]
    complete: Sequence[tuple[Hashable, Sequence[int]]]
    point: Sequence[int] | np.ndarray
    shape: np.ndarray
    l1_bound: int
    family: str
    weight: Sequence[tuple[Hashable, Sequence[int]]] = ()

    name = "score_sums"
    asks = TableFacts
    moved = staticmethod(score_sensitivity)

    def checked(self, facts: TableFacts) -> ScoreSums:
        family = str(self.family)
        require_choice("family", family, FAMILIES)
        columns = tuple(tuple(_checked(facts, one, -VALUE, VALUE) for one in column) for column in self.columns)
        d = len(columns)
        point = tuple([exact_integer(entry) for entry in self.point])
        shape = fresh_copy(self.shape, None)
        if not 1 <= d <= MOST_COLUMNS or len(point) != d:
            raise ValueError(
                f"point has {len(point)} entries for {d} columns; pass one for each of 1 to {MOST_COLUMNS}"
            )
        whole = np.issubdtype(shape.dtype, np.integer) and shape.ndim == 2 and shape.shape[1] == d
        if not whole or not 1 <= len(shape) <= MOST_COLUMNS:
            raise ValueError(f"shape has shape {shape.shape} and type {shape.dtype}; pass integers, {d} in a row")
        if max(map(abs, point)) > LARGEST_POINT or not ((shape >= -LARGEST_SHAPE) & (shape <= LARGEST_SHAPE)).all():
            raise ValueError("point or shape has entries that do not fit 64-bit sums; divide columns by their range")
        response = _checked(facts, self.response, -VALUE, VALUE)
        if family == "logit" and not set(response[1]) <= {0, VALUE}:
            raise ValueError(f"response has the values {sorted(set(response[1]))[:5]}; pass 0 and {VALUE} for a logit")
        complete = tuple(_checked(facts, one, 0, 1) for one in self.complete)
        weight = tuple(_checked(facts, one, 0, VALUE) for one in self.weight)
        bound = checked_integer("l1_bound", self.l1_bound, 1, (len(shape) + 1) * GRID)
        shape = np.ascontiguousarray(shape, dtype=np.int64)
        shape.flags.writeable = False
        return ScoreSums(columns, response, complete, point, shape, bound, family, weight)

    def _numbers(self, facts: TableFacts) -> tuple[Any, ...]:
        return self.l1_bound, facts.adjacency

    def mechanism(self, facts: TableFacts, cost: PureDP | ZCDP, share: Fraction, eta: Fraction) -> AdditiveNoise:
        return self.planned(*self._numbers(facts), cost, share, parts=partial(facts.parts, most=_PARTS))

    def _exact(self, data: PrivateTable, facts: TableFacts, mechanism: AdditiveNoise, coins: Coins) -> list[Sensitive]:
        codes, weights = shared_codes(data, mechanism.grid)
        place = {name: j for j, name in enumerate(facts.schema.variables)}
        total, step = np.zeros(len(self.shape) + 1, dtype=np.int64), max(1, _BATCH // len(self.shape))
        for start in range(0, len(codes), step):
            some = codes[start : start + step]
            vectors = _shortened(self._vectors(some, place), self.l1_bound)
            if weights is not None:
                vectors *= weights[start : start + step, np.newaxis]
            total += vectors.sum(axis=0)
        norms = score_sensitivity(self.l1_bound, facts.adjacency)
        return [Sensitive(total, facts.adjacency, *(mechanism.grid * norm for norm in norms))]

    def _vectors(self, codes: np.ndarray, place: dict[Hashable, int]) -> np.ndarray:
        """What records add before it is shortened; shape (n, k + 1)."""

        def product(factors: Sequence[tuple[Hashable, Sequence[int]]], unit: int) -> np.ndarray:
            value = np.full(len(codes), unit, dtype=np.int64)
            for name, values in factors:
                value = value * np.array(values, dtype=np.int64)[codes[:, place[name]]] // unit
            return value

        counts = product(self.complete, 1)
        x = np.stack([product(column, VALUE) for column in self.columns], axis=1)
        predictor = x @ np.array(self.point, dtype=np.int64)
        if self.family != "logit":
            mean = _rounded(predictor, 16)
        else:
            mean = _logistic_table()[np.clip(_rounded(predictor, 20), -_REACH, _REACH) + _REACH]
        residual = np.clip(product([self.response], VALUE) - mean, -_RESIDUAL, _RESIDUAL)
        residual = _rounded(residual * product(self.weight, VALUE), 16)
        v = _rounded(_rounded(x * residual[:, np.newaxis], 12) @ self.shape.T, 19)
        v = np.clip(v, -_CLIP, _CLIP) * counts[:, np.newaxis]
        return np.concatenate([v, COUNT * counts[:, np.newaxis]], axis=1)


def _rounded(value: np.ndarray, bits: int) -> np.ndarray:
    """Integers over a power of two, to the nearest integer."""
    return (value + (1 << (bits - 1))) >> bits


def _shortened(vectors: np.ndarray, l1_bound: int) -> np.ndarray:
    """Integer vectors, shortened toward zero to the l2 norm GRID and the l1 norm of a bound; checked.

    Examples
    --------
    >>> _shortened(np.array([[3, -4], [30_000, 40_000], [20_000, -20_000]]), 30_000).tolist()
    [[3, -4], [12857, 17142], [15000, -15000]]
    """
    squares = (vectors * vectors).sum(axis=1)
    norm = np.sqrt(squares.astype(np.float64)).astype(np.int64) + 1  # above it: squares are below 2**53
    sizes = np.abs(vectors)
    sizes = np.where((squares > GRID**2)[:, np.newaxis], sizes * GRID // norm[:, np.newaxis], sizes)
    total = sizes.sum(axis=1)[:, np.newaxis]
    sizes = np.where(total > l1_bound, sizes * l1_bound // np.maximum(total, 1), sizes)
    long = ((sizes * sizes).sum(axis=1) > GRID**2) | (sizes.sum(axis=1) > l1_bound)
    return np.where(long[:, np.newaxis], 0, np.sign(vectors) * sizes)


@cache
def _logistic_table() -> np.ndarray:
    """The logistic function at multiples of 2**-12, in units of 1/VALUE."""
    from scipy.special import expit

    table = np.rint(expit(np.arange(-_REACH, _REACH + 1) / 4096) * VALUE).astype(np.int64)
    table.flags.writeable = False  # all releases of the process read it
    return table


def _checked(facts: TableFacts, factor: Any, least: int, most: int) -> Factor:
    """A factor of Python's own types, of one of the schema's variables; ValueError for one that is none."""
    named, listed = factor
    ((name,),) = facts.scopes([(named,)])
    values, size = tuple([exact_integer(value) for value in listed]), math.prod(facts.shape((name,)))
    if len(values) != size or not all(least <= value <= most for value in values):
        raise ValueError(f"{name!r} has {size} states; pass a whole number from {least} to {most} for each")
    return name, values

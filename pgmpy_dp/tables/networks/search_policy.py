"""The policy of a search: its next tables, their share, and when the one-way tables are worth more.

Everything here is a function of public numbers and of what was released before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import rel_entr

from pgmpy_dp.inference.scope_marginals import Scope
from pgmpy_dp.tables.networks.budget_shares import OPTIMISE, WORSE_PAIRS

if TYPE_CHECKING:
    from pgmpy_dp.tables.networks.adaptive_search import Search

_DEVIATIONS = 2  # of what noise alone would do, from which on a measured table tells something


@dataclass(frozen=True)
class Measurement:
    """The tables to release next, and their share.

    Attributes
    ----------
    of : {"variables", "tables", "round", "coarser", "again", "probes"}
        All single variables, first and again; the tables of `scopes`; those of as many sets as `tables` says, which
        are to be selected; tables at coarser levels of what was selected; tables drawn at random.
    share : Fraction
        Of the budget, for all of it.
    scopes : sequence of tuple of int
    tables : int
    """

    of: str
    share: Fraction
    scopes: Sequence[Scope] = ()
    tables: int = 1


class Spending:
    """The costs and gains of the rounds so far, and the costs that they may have.

    What rounds leave goes to single variables, last. So a round costs what single variables would gain by its share,
    and gains what the model was wrong about dependence; both are estimated from released numbers, in nats of a record
    and in squared distances of the tables of pairs.

    A round is worth its price while rounds have lately gained as much (each counts half of what the next does), or
    while what was lost since they were best is no more than makes single variables wrong by 5 % more. Tables of
    pairs may not be expected to become wrong by 20 % more, whatever the likelihood gains.
    """

    def __init__(self, search: Search) -> None:
        self._search, self._worth = search, np.zeros(2)
        self._measure = OPTIMISE.index(search.public_settings["optimise"])
        self._best = self._lately = 0.0
        self._may_lose = self._price(self.allowance)
        self._pairs_may_lose = self._price(search.shares.lost(WORSE_PAIRS, search.left))[1]

    @property
    def allowance(self) -> Fraction:
        """The share of what is left that may be lost."""
        return self._search.shares.allowance(self._search.left)

    def affords(self, share: Fraction) -> bool:
        """Whether a measurement is worth its price, or its price may be lost."""
        if not self._search.shares.adaptive:
            return True
        price, at = self._price(share), self._measure
        worth = max(self._may_lose[at] * (1 + 1e-9) - (self._best - self._worth[at]), self._lately)
        return bool(price[at] <= worth and price[1] <= self._pairs_may_lose + self._worth[1])

    def largest(self, share: Fraction) -> Fraction:
        """The largest part of a share that is worth its price; 0 if none is."""
        return next((part for part in (share, min(share, self.allowance)) if self.affords(part)), Fraction(0))

    def measured(self, measurement: Measurement) -> Iterator[Measurement]:
        """Yield a measurement, then note its cost and its gain."""
        search, left, precision = self._search, self._search.left, self._search.precision
        yield measurement
        # Tables of several variables tell of single ones too.
        spent = search.loss(search.left, search.precision) - search.loss(left, precision)
        self._worth += search.gained - spent
        if self._worth[self._measure] > self._best:
            self._best, self._may_lose = float(self._worth[self._measure]), self._price(self.allowance)
        self._lately = (self._lately + float(search.gained[self._measure])) / 2

    def _price(self, share: Fraction) -> np.ndarray:
        left, loss, precision = self._search.left, self._search.loss, self._search.precision
        return loss(left - min(share, left), precision) - loss(left, precision)


def measurements(search: Search) -> Iterator[Measurement]:
    """Yield the measurements of a search, one after the other.

    A round selects one set, or one for each 16 variables (more of them above 512 variables, and where records are known
    precisely), no two with a pair in common, and then measures them. A round that told nothing is followed by one with
    twice its share.
    """
    yield Measurement("variables", search.shares.one_way)
    shares = search.shares  # which the first tables decide on too
    if shares.required:
        yield Measurement("tables", shares.each_required * len(shares.required), shares.required)
    spending = Spending(search)
    yield from search.before_rounds(spending)
    share = shares.start(search.n_records, search.fit.noisy.cliques.cardinalities)
    tables = shares.in_a_round(search.n_records)
    if shares.adaptive and share:
        tables = max(1, min(tables, int(spending.allowance / share)))
    smallest = min((shares.sets.cells(pair) for pair in shares.candidates), default=0)
    while search.left > 0 and share:
        # Where less than two rounds' budget is left, the next one takes it all.
        wanted = share * tables if search.left >= 2 * share * tables else search.left
        spent = spending.largest(wanted)
        if not spent or (shares.adaptive and shares.drowned(spent, tables, smallest, search.n_records)):
            break
        yield from spending.measured(Measurement("round", spent, tables=tables))
        if not search.told:
            share *= 2
    if search.kept:
        yield Measurement("coarser", search.kept)
    if search.left > 0:
        yield Measurement("again", search.left)
    yield Measurement("probes", shares.probes)


def gain(value: np.ndarray, before: np.ndarray, after: np.ndarray, n_records: float, variance: float) -> np.ndarray:
    """The gain of a measured table about dependence, in nats of a record and in squared distance.

    Parameters
    ----------
    value : ndarray
        Noisy counts.
    before, after : ndarray
        Probabilities under the model before it was measured, and after.
    n_records, variance : float
        The number of records; the variance of the noise in a cell.

    Notes
    -----
    Of the difference D between the counts and the model before, only the interactions are looked at: single variables
    are paid for elsewhere. The model takes over a part a of it. Were D without noise, the likelihood would gain
    ``(2/a - 1)`` times the divergence of the model after from that before, to second order; of what is noise in it, it
    loses the divergence. With the part w of the square of D that is not noise this is ``2 w/a - 1``; w is 0 where D is
    no more than two standard deviations above what noise alone would be.
    """
    difference, moved = _interactions(value / n_records - before), _interactions(after - before)
    size, change = max(float((difference**2).sum()), 1e-300), float((moved**2).sum())
    free = value.size - 1 - sum(k - 1 for k in value.shape)
    noise = variance / n_records**2
    signal = 1 - free * noise / size if is_clear(size, free, noise) else 0.0
    part = min(max((change / size) ** 0.5, 1e-9), 1.0)
    margins = sum(_divergence(p, q) for p, q in zip(_margins(after), _margins(before), strict=True))
    # As much as variables can tell of one another at all.
    nats = min(max(_divergence(after, before) - margins, 0.0), math.log(value.size / max(value.shape)))
    return np.array([nats, change]) * (2 * signal / part - 1)


def is_clear(size: float, free: int, variance: float) -> bool:
    """Whether a sum of squares is above what noise alone would make it, by two of its standard deviations.

    Parameters
    ----------
    size : float
    free : int
        Interactions that noise moves independently, each with the variance.
    variance : float
    """
    return bool(size > (free + _DEVIATIONS * math.sqrt(2 * free)) * variance)


def losses(tables: Sequence[np.ndarray], deviations: np.ndarray) -> np.ndarray:
    """The loss by noise in one-way tables: in nats of a record, and in squares, summed over pairs."""
    nats = sum(float((d * d / (2 * (p + d))).sum()) for p, d in zip(tables, deviations, strict=True))
    alike = float(np.mean([(p**2).sum() for p in tables]))
    squares = sum(p.size * d * d for p, d in zip(tables, deviations, strict=True))
    return np.array([nats, (len(tables) - 1) * alike * squares])


def _margins(table: np.ndarray) -> list[np.ndarray]:
    return [table.sum(tuple(j for j in range(table.ndim) if j != i), keepdims=True) for i in range(table.ndim)]


def _interactions(table: np.ndarray) -> np.ndarray:
    """The interactions of a table: the rest without the effects of single variables."""
    means = sum(margin * margin.size / table.size for margin in _margins(table))
    return table - means + (table.ndim - 1) * table.mean()


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float(rel_entr(p, q).sum())

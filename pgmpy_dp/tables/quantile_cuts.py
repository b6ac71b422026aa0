"""Cuts of a variable of numbers, from noisy counts of ever finer divisions of it.

A division is known by its firsts: of each cell the number of its first value, counted from the lower bound in steps of
the resolution (in very small ones where there is none), and behind the last cell the number of steps. The next division
of a variable splits cells that hold much, so divisions are nested. Everything here is a function of public or released
numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pgmpy_dp.schema import Number

_FINEST = 30  # of 2**30 steps, where there is no resolution
_CELLS = 64
_PARTS = 128  # of a cell, at most: two such rounds reach each value of a million
_EACH = 128  # so many values or fewer have a cell each at once
_SURE = 4.0  # standard deviations above 0 at which one value is believed to hold much
_MANY = 20.0  # standard deviations for a cell that holds less than others, beside such a value


def n_steps(number: Number) -> int:
    """The number of a variable's values, both bounds counted; without a resolution, of the places for cuts.

    1 where labels, which have 15 digits, could not tell neighbouring values apart.

    Examples
    --------
    >>> n_steps(Number(0, 120, resolution=1)), n_steps(Number(0, 1)), n_steps(Number(1e15, 1e15 + 8))
    (121, 1073741824, 1)
    """
    finest = max(1e-13 * max(abs(number.lower), abs(number.upper)), 5e-324)
    if number.resolution is not None:
        return (number.n_values or 1) if number.resolution > finest else 1
    return 1 << min(_FINEST, max(0, math.frexp((number.upper / 2 - number.lower / 2) / finest)[1] - 1))


def equal_firsts(number: Number) -> list[int]:
    """The first division: a cell a value where there are few of them, else cells of equal width.

    Examples
    --------
    >>> equal_firsts(Number(0, 3, resolution=1)), len(equal_firsts(Number(0, 1e6)))
    ([0, 1, 2, 3, 4], 65)
    """
    steps = n_steps(number)
    cells = steps if steps <= _EACH else _CELLS
    return [-(-steps * k // cells) for k in range(cells + 1)]


def divided_at(number: Number, firsts: Sequence[int]) -> Number:
    """The variable, divided where cells begin.

    Examples
    --------
    >>> divided_at(Number(0, 120, resolution=1), [0, 18, 65, 121]).cells
    ('[0,18)', '[18,65)', '[65,120]')
    """
    lower = Fraction(repr(number.lower))
    if number.resolution is None:
        step = (Fraction(repr(number.upper)) - lower) / firsts[-1]
    else:
        step = Fraction(repr(number.resolution))
    # In integers, whose quotient is rounded once.
    unit = math.lcm(lower.denominator, step.denominator)
    start, width = int(lower * unit), int(step * unit)
    return number.with_cuts((start + width * int(first)) / unit for first in firsts[1:-1])


def split_firsts(firsts: Sequence[int], counts: np.ndarray, heavy: float) -> list[int]:
    """The next division: cells of more than `heavy` records are split, so that two rounds reach single values.

    Examples
    --------
    >>> split_firsts([0, 500, 1000], np.array([90.0, 3.0]), 10.0)[:4]
    [0, 125, 250, 375]
    """
    parts = min(_PARTS, max(2, math.ceil(math.sqrt(firsts[-1] / _CELLS))))
    division = []
    for first, end, count in zip(firsts[:-1], firsts[1:], counts, strict=True):
        pieces = min(parts, end - first) if count > heavy else 1
        division += [first + (end - first) * k // pieces for k in range(pieces)]
    return [*division, firsts[-1]]


def consistent_counts(rounds: Sequence[tuple[Sequence[int], np.ndarray]]) -> np.ndarray:
    """The least-squares estimate of the counts in the last of some nested divisions, from all of them.

    Parameters
    ----------
    rounds : sequence of (firsts, counts)
        Coarsest first; counts with independent noise of one variance.

    Returns
    -------
    ndarray of float64
        One for each cell of the last division. As trees are solved: sums of children are averaged with the parent's
        count from below, then what children lack to their parent is added from above (Hay, Rastogi, Miklau and Suciu
        2010).

    Examples
    --------
    >>> consistent_counts([([0, 2], np.array([9])), ([0, 1, 2], np.array([2, 4]))])
    array([3., 5.])
    """
    starts = [np.searchsorted(fine[:-1], coarse[:-1]) for (coarse, _), (fine, _) in itertools.pairwise(rounds)]
    values = [np.asarray(rounds[-1][1], dtype=np.float64)]
    variances = [np.ones(len(values[0]))]
    for (_, counts), start in zip(rounds[-2::-1], starts[::-1], strict=True):
        summed, variance = np.add.reduceat(values[0], start), np.add.reduceat(variances[0], start)
        values.insert(0, (counts * variance + summed) / (variance + 1.0))
        variances.insert(0, variance / (variance + 1.0))
    estimate = values[0]
    for value, variance, start in zip(values[1:], variances[1:], starts, strict=True):
        lacking = (estimate - np.add.reduceat(value, start)) / np.add.reduceat(variance, start)
        children = np.diff([*start, len(value)])
        estimate = value + variance * np.repeat(lacking, children)
    return estimate


def quantile_cuts(number: Number, firsts: Sequence[int], counts: np.ndarray, bins: int, sd: float) -> Number:
    """The variable divided into cells that hold about equally many records.

    A single value that holds more than one cell should has a cell of its own; what is between such values is divided
    into cells of about ``total/bins`` records, or into ``bins/4`` smaller ones where noise is small beside them.

    Parameters
    ----------
    number : Number
    firsts, counts
        A division and estimates of its counts.
    bins : int
        About how many cells; single values that have one, and what is between them, make some more.
    sd : float
        About the standard deviation of an estimate.

    Returns
    -------
    Number
        Where the counts say nothing, of equal bins.

    Examples
    --------
    >>> counts = np.array([500.0, 0.0, 120.0, 130.0, 125.0, 125.0])
    >>> quantile_cuts(Number(0, 5, resolution=1), range(7), counts, 4, 1.0).cells
    ('[0,1)', '[1,4)', '[4,5]')
    """
    counts = np.round(counts, 6)  # so that ties are ties on every processor
    target = max(float(counts.sum()), 0.0) / bins
    single = np.diff(firsts) == 1
    if number.resolution is None:
        single[:] = False
    alone = np.flatnonzero(single & (counts > max(target, _SURE * sd)))
    cut: set[int] = set()
    for start, end in zip([0, *(alone + 1)], [*alone, len(counts)], strict=True):
        cut |= {firsts[start], firsts[end]}
        summed = np.concatenate([[0.0], np.cumsum(counts[start:end])])
        cells = max(round(summed[-1] / target), min(bins // 4, int(summed[-1] / (_MANY * sd)))) if target else 1
        for k in range(1, cells):
            wanted = summed[-1] * k / cells
            place = int(np.argmax(summed >= wanted))
            place -= wanted - summed[place - 1] < summed[place] - wanted
            cut.add(firsts[start + place])
    divided = divided_at(number, sorted(cut | {0, firsts[-1]}))
    return divided if divided.divided else replace(number, bins=min(bins, n_steps(number)))

"""The products of signs in a matrix with Wishart noise, and their weights: from public numbers alone."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.operators.feature_matrices import ParityMatrixSums
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.sensitive import Noise

Subsets = tuple[tuple[int, ...], ...]

MOST_FEATURES = 1024
"""Rows of a matrix whose noise is drawn in half a minute."""

_LARGEST = 24  # of a weight


@dataclass(frozen=True)
class ParityFeatures:
    """The features of a matrix from which a family of parities is read.

    Attributes
    ----------
    n_variables : int
    family : int or tuple of tuples of int
    sets : tuple of tuples of int
        The empty one first, then those of the family of up to half its order.
    by_size : tuple of int
        The weight of a feature of each size.
    """

    n_variables: int
    family: int | Subsets
    sets: Subsets
    by_size: tuple[int, ...]

    @property
    def weights(self) -> tuple[int, ...]:
        """The weight of each set."""
        return tuple(self.by_size[len(s)] for s in self.sets)

    def noise(self, adjacency: Adjacency, with_count: bool, cost: PureDP, share: Fraction) -> tuple[Noise, ...]:
        """The noise of the noisiest sum, and of the count."""
        return ParityMatrixSums.planned(
            self.n_variables, self.sets, self.weights, self.family, adjacency, with_count, cost, share
        ).noise

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviation of the noise of each sum over that of the noisiest."""
        return ParityMatrixSums.deviations_of(self.n_variables, self.sets, self.weights, self.family)


def parity_features(
    n_variables: int, order: int, family: int | Subsets, by_size: tuple[int, ...] | None = None
) -> ParityFeatures | None:
    """Features whose products are a family of parities; None where there would be too many.

    Parameters
    ----------
    family : int or tuple of tuples of int
        All sets of up to `order` variables, or those of a graph's cliques: with a set all its parts.
    by_size : tuple of int, optional
        Weights. Default: those that make the sum of the variances small.

    Examples
    --------
    >>> parity_features(20, 2, 2).by_size, parity_features(20, 3, 3).by_size
    ((4, 4), (1, 6, 2))
    """
    half = (order + 1) // 2
    size = sum(math.comb(n_variables, r) for r in range(half + 1)) if isinstance(family, int) else len(family) + 1
    if isinstance(family, int) and size > MOST_FEATURES:
        return None
    members = field_scopes(n_variables, half) if isinstance(family, int) else family
    sets = ((), *(s for s in members if len(s) <= half))
    if len(sets) > MOST_FEATURES:
        return None
    # With weights w_S the noise of entry (S, T) has a standard deviation in proportion to `sum w**2/(w_S w_T)`, and a
    # parity that stands in several places is their mean, weighted by (w_S w_T)**2. Small sets are fewer and stand in
    # more places: of order 3, larger weights of single variables are better by far.
    weights = by_size or _weights(n_variables, family, sets, half)
    return ParityFeatures(n_variables, family, sets, weights)


def _weights(n_variables: int, family: int | Subsets, sets: Subsets, half: int) -> tuple[int, ...]:
    """Weights by descent from equal ones, one size after the other, as long as the sum of variances falls."""
    pairs = sorted(itertools.combinations_with_replacement(range(half + 1), 2))
    place = {pair: k for k, pair in enumerate(pairs)}
    wanted = field_scopes(n_variables, family) if isinstance(family, int) else family
    index = {s: k for k, s in enumerate(wanted)}
    counts = np.zeros((len(wanted), len(pairs)))
    as_sets = [frozenset(s) for s in sets]
    for a, b in itertools.combinations(range(len(sets)), 2):
        position = index.get(tuple(sorted(as_sets[a] ^ as_sets[b])))
        if position is not None:
            counts[position, place[len(sets[a]), len(sets[b])]] += 1  # sets come by size
    patterns, numbers = np.unique(counts, axis=0, return_counts=True)
    of_size = Counter(map(len, sets))

    def variance(weights: list[int]) -> float:
        trace = sum(number * weights[size] ** 2 for size, number in of_size.items())
        precision = patterns @ np.array([(weights[a] * weights[b]) ** 2 for a, b in pairs], dtype=float)
        return trace**2 * float((numbers / precision).sum())

    best = [4 if half == 1 else 2] * (half + 1)
    least = variance(best)
    while True:
        tried = [
            [*best[:k], w, *best[k + 1 :]] for k in range(half + 1) for w in range(1, _LARGEST + 1) if w != best[k]
        ]
        better = min(tried, key=variance)
        if variance(better) >= least * (1.0 - 1e-9):
            return tuple(best)
        best, least = better, variance(better)

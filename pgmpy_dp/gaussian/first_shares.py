"""Shares of a budget for what has to be known of records of numbers before their moments or signs are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.vector_operators import ClippedSum, Magnitudes, UnitCount

SCALE_SHARE = Fraction(1, 10)
CENTER_SHARE = Fraction(1, 20)  # in bounds: of a mean in their units, and of one in the columns' own


@dataclass(frozen=True)
class FirstShares:
    """What is spent first; 0 where it is not asked for.

    Attributes
    ----------
    mean, count, scale : Fraction
        For a clipped sum of the records, their number, and numbers of records by size.
    n_means : int
        How many clipped sums there are, if any.
    """

    mean: Fraction
    count: Fraction
    scale: Fraction
    n_means: int = 1

    @property
    def total(self) -> Fraction:
        return self.n_means * self.mean + self.count + self.scale

    def require_noise(self, d: int, adjacency: Adjacency, cost: PureDP | ZCDP) -> None:
        """ValueError where a scale of noise for d columns cannot be drawn: before the charge."""
        if self.mean:
            ClippedSum.noise_of(d, adjacency, cost, self.mean)
        if self.count:
            UnitCount.noise_of(cost, self.count)
        if self.scale:
            Magnitudes.noise_of(d, adjacency, cost, self.scale)

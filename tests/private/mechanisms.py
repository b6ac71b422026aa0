"""Mechanisms of statistics that no operator asks for."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.sensitive import Sensitive

__all__ = ["with_noise"]


def with_noise(
    exact: Sequence[Sensitive], cost: PureDP | ZCDP, share: Fraction, weights: Sequence[float] | None = None
) -> AdditiveNoise:
    """These statistics with noise by their own sensitivities."""
    return AdditiveNoise.planned([(item.l1, item.l2) for item in exact], cost, share, weights).over(exact)

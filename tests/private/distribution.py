"""Does integer noise have the distribution it claims? An exact test that must accept the truth and reject 30 % off.

The integers are cut into at most 16 intervals of about equal claimed probability. The number of draws in each interval
is binomial, so its two-sided exact p-value is below alpha with probability at most alpha; with alpha = alarm/intervals
the whole test rejects true noise with probability at most `alarm`, whatever the number of draws.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

ALARM = 1e-6


def mass(distribution: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Support (all but 1e-15 of the mass) and probabilities, by the definition."""
    reach = math.ceil(40 * scale) + 2
    support = np.arange(-reach, reach + 1)
    if distribution == "discrete_laplace":
        weight = np.exp(-np.abs(support) / scale)
    else:
        weight = np.exp(-(support.astype(float) ** 2) / (2 * scale**2))
    return support, weight / weight.sum()


def accepts(draws: np.ndarray, distribution: str, scale: float, alarm: float = ALARM) -> bool:
    """Whether the draws may come from the claimed noise."""
    support, probability = mass(distribution, scale)
    cumulative = np.cumsum(probability)
    inner = np.unique(np.searchsorted(cumulative, np.arange(1, 16) / 16))
    inner = inner[(inner > 0) & (inner < support.size)]
    groups = np.split(probability, inner)
    edges = support[inner]
    hits = np.bincount(np.searchsorted(edges, draws.ravel(), side="right"), minlength=len(groups))
    for count, group in zip(hits, groups, strict=True):
        tails = (
            binom.cdf(count, draws.size, min(1.0, group.sum())),
            binom.sf(count - 1, draws.size, min(1.0, group.sum())),
        )
        if 2 * min(tails) < alarm / len(groups):
            return False
    return True

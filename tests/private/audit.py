"""Empirical lower bounds on epsilon and rho: an attack on a release, with a confidence statement.

The attacker knows two neighbouring datasets and the exact law of the noise that is claimed. On one set of draws it
picks the event that tells the two datasets apart best, among thresholds of the likelihood ratio in both directions; on
fresh draws it measures that event's probability under each, with Clopper-Pearson limits p_low and q_high that hold
together except with the probability `alarm`. What
an event shows is in `pgmpy_dp.auditing.bounds`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgmpy_dp.auditing.bounds import epsilon_bound, lower_limit, rho_bound, upper_limit

__all__ = ["audit", "epsilon_bound", "log_ratio", "lower_limit", "rho_bound", "upper_limit"]

Draw = Callable[[int, int], np.ndarray]  # (dataset 0 or 1, number of releases) -> outputs, shape (releases, cells)


def log_ratio(outputs: np.ndarray, exact: tuple[np.ndarray, np.ndarray], scales: np.ndarray, noise: str) -> np.ndarray:
    """Log-likelihood ratio of dataset 0 to dataset 1 per release, under the claimed noise.

    Parameters
    ----------
    outputs : ndarray, shape (releases, cells)
    exact : two ndarrays, shape (cells,)
    scales : ndarray, shape (cells,)
    noise : {"discrete_laplace", "discrete_gaussian"}
    """
    first, second = (outputs - counts for counts in exact)
    if noise == "discrete_laplace":
        return ((np.abs(second) - np.abs(first)) / scales).sum(axis=1)
    return ((second**2 - first**2) / (2.0 * scales**2)).sum(axis=1)


def audit(draw: Draw, score: Callable, *, releases: int, bound: Callable = epsilon_bound, alarm: float = 1e-6) -> float:
    """Lower bound on a mechanism's epsilon or rho, wrong (too high) with probability at most `alarm`.

    Parameters
    ----------
    draw : callable
        ``draw(dataset, count)``: independent releases on dataset 0 or 1.
    score : callable
        Outputs to scores, high where dataset 0 is more likely.
    releases : int
        Per dataset, for the measurement; half as many more for the choice of the event.
    bound : callable
        From the probabilities of one event, increasing in the first and decreasing in the second.
    """

    def measure(scores: list[np.ndarray], threshold: float, direction: int, alarm: float) -> float:
        hits = [int((direction * s >= direction * threshold).sum()) for s in scores][::direction]
        trials = len(scores[0])
        return bound(lower_limit(hits[0], trials, alarm / 2), upper_limit(hits[1], trials, alarm / 2))

    trial = [score(draw(dataset, releases // 2)) for dataset in (0, 1)]
    thresholds = np.unique(np.quantile(np.concatenate(trial), np.linspace(0, 1, 101), method="nearest"))
    events = [(threshold, direction) for threshold in thresholds for direction in (1, -1)]
    best = max(events, key=lambda event: measure(trial, *event, alarm))
    fresh = [score(draw(dataset, releases)) for dataset in (0, 1)]
    return measure(fresh, *best, alarm)

"""The computation of an attacker's scores from a release: they are high where the first dataset is more likely."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

Score = Callable[[np.ndarray], np.ndarray]
"""From features, shape (releases, n_features), to scores, shape (releases,)."""


def learned_scores(first: np.ndarray, second: np.ndarray) -> Iterator[Score]:
    """Scores worth trying: the best ones for Gaussian and for Laplace noise, and the features that differ most, alone.

    Parameters
    ----------
    first, second : ndarray, shape (releases, n_features)
        Features of releases on the two datasets. The same ones must not be used again for a measurement.

    A constant feature, or none that differs, gives a score that tells nothing, which is a result too.
    """
    deviation = np.sqrt(0.5 * (first.var(axis=0) + second.var(axis=0)))
    scale = np.where(deviation > 0, deviation, 1.0)
    difference = (first.mean(axis=0) - second.mean(axis=0)) / scale
    centred = np.concatenate([(part - part.mean(axis=0)) / scale for part in (first, second)])
    covariance = centred.T @ centred / len(centred)
    ridge = 1e-3 + math.sqrt(covariance.shape[0] / len(centred))  # the noise of a covariance from so few releases
    direction = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), difference)
    yield lambda features: (features / scale) @ direction
    # As if each feature that clearly differs had Laplace noise about its medians. Sums of the like of it tie often for
    # integers, and rounding would break ties by what the releases hold: rounded away.
    standard = math.sqrt(2.0 / min(len(first), len(second)))
    clear = np.abs(difference) > 4.0 * standard
    if clear.any():
        centres = [np.median(part[:, clear], axis=0) for part in (first, second)]
        width = np.maximum(np.abs(first[:, clear] - centres[0]).mean(axis=0), 1e-9 * scale[clear])
        yield partial(_laplace_ratio, clear, centres, width)
    for j in np.argsort(-np.abs(difference))[:10]:
        yield partial(_single, j, 1.0 if difference[j] >= 0 else -1.0)
    # A feature that never moves on one dataset and sometimes on the other gives it away, whatever its mean.
    yield lambda features: np.abs((features - second.mean(axis=0)) / scale).max(axis=1)
    yield lambda features: -np.abs((features - first.mean(axis=0)) / scale).max(axis=1)


def _laplace_ratio(used: np.ndarray, centres: list[np.ndarray], width: np.ndarray, features: np.ndarray) -> np.ndarray:
    near = [np.abs(features[:, used] - centre) for centre in centres]
    return ((near[1] - near[0]) / width).sum(axis=1).round(9)


def _single(j: int, sign: float, features: np.ndarray) -> np.ndarray:
    return sign * features[:, j]

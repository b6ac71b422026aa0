"""Parities by a perturbed leader (sepFEM of Vietri et al. 2020), for up to 20 variables.

A guess of the data is kept as synthetic records, and each round asks the curator for a parity that the guess answers
badly. A round learns the selected position from the records; everything else is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.operators.parities import Subsets, WorstParity
from pgmpy_dp.private.curator.table_curator import TableCurator

_POINTS = 20  # of the perturbed leader per round
# Scale of its Laplace noise is this times the square root of the number of rounds; .1 to .3 are near.
_PERTURBATION = 0.2


def sepfem_answers(
    curator: TableCurator,
    family: int | Subsets,
    records: float,
    rounds: int,
    share: Fraction,
) -> Generator[np.ndarray, None, None]:
    """Means of all parities on synthetic records, found where a perturbed objective is largest.

    Algorithm sepFEM of Vietri, Tian, Bun, Steinke and Wu 2020. Each round, the data player draws points by following
    the perturbed leader: with Laplace noise sigma on the p single variables, which separate any two points (Syrgkanis,
    Krishnamurthy and Schapire 2016),

        ``argmax_z  sum_{s < t} v_s prod_{j in I_s} z_j + sum_j sigma_j z_j``;

    the query player selects a signed parity (I_t, v_t) that these points answer too low, by noisy max over all 2 m. The
    answers are the means over the points of all rounds.

    Parameters
    ----------
    curator, family, records, rounds, share
        As in :func:`~pgmpy_dp.fields.parity_rounds.pmw_answers`.

    Yields
    ------
    ndarray of float, shape (m,)
        After each round.

    Notes
    -----
    The perturbation sigma is independent of the records, and it perturbs released numbers: it protects nothing. A bad
    maximum costs accuracy.
    """
    rng = curator.generator()
    p = len(curator.facts.schema)
    subsets = field_scopes(p, family) if isinstance(family, int) else family
    by_size = _by_size(subsets)
    objective = _Objective(p)
    total = np.zeros(len(subsets))
    for number in range(1, rounds + 1):
        noise = rng.laplace(scale=_PERTURBATION * math.sqrt(rounds), size=(_POINTS, p))
        points = np.array([objective.leader(row) for row in noise])
        answers = _means(points, by_size)
        total += answers
        position = curator.ask(WorstParity(family, answers * records, signed=True), share / rounds)
        objective.add(subsets[position % len(subsets)], 1.0 if position < len(subsets) else -1.0)
        yield total / number


def _by_size(subsets: Subsets) -> list[tuple[np.ndarray, np.ndarray]]:
    """The places of the sets of each size, and their elements, one row each."""
    sizes = np.array([len(subset) for subset in subsets])
    places = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    return [(place, np.array([subsets[k] for k in place])) for place in places]


def _means(points: np.ndarray, by_size: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Mean of the product of z = 2 x - 1 over each set, over points of 0 and 1."""
    z = 2 * points.astype(np.int8) - 1
    means = np.empty(sum(len(place) for place, _ in by_size))
    for place, elements in by_size:
        means[place] = z[:, elements].prod(axis=2, dtype=np.int8).sum(axis=0, dtype=np.int64) / len(z)
    return means


class _Objective:
    """The objective that the leader maximises, at all 2**p points."""

    def __init__(self, n_variables: int) -> None:
        self._half = n_variables // 2
        self._shape = (1 << (n_variables - self._half), 1 << self._half)
        self._cells = np.arange(1 << n_variables).reshape(self._shape)
        self._values = np.zeros(self._shape)

    def add(self, subset: tuple[int, ...], sign: float) -> None:
        mask = sum(1 << j for j in subset)
        self._values += sign * (1.0 - 2.0 * (np.bitwise_count(~self._cells & mask) & 1))

    def leader(self, noise: np.ndarray) -> np.ndarray:
        perturbed = self._values + linear_values(noise[self._half :])[:, None]
        perturbed += linear_values(noise[: self._half])
        return ((int(np.argmax(perturbed)) >> np.arange(noise.size)) & 1).astype(np.uint8)


def linear_values(weights: np.ndarray) -> np.ndarray:
    """``sum_j weights[j] z_j`` at all cells, by doubling.

    Examples
    --------
    >>> linear_values(np.array([1.0, 10.0])).tolist()
    [-11.0, -9.0, 9.0, 11.0]
    """
    values = np.zeros(1)
    for weight in weights:
        values = np.concatenate([values - weight, values + weight])
    return values

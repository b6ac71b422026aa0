"""Replay of the learner of Gaussian mixtures: fits, and pairs of records of numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from pgmpy_dp.estimators import PrivateGaussianMixture
from pgmpy_dp.mixtures.operators.cluster_operators import MOMENT_KINDS
from pgmpy_dp.private.budget import Budget
from tests.auditing.replay_cases import ReplayCase

__all__ = ["cluster_cases", "cluster_pairs"]

BUDGET = Budget(epsilon=20.0, delta=0.1)

ODD_RECORDS = np.array(
    [
        *([np.nan, 0.0], [np.inf, 0.0], [-np.inf, np.nan], [1e300, 0.0], [1e308, -1e308], [-1e300, 1e300]),
        *([5e-324, 0.0], [-0.0, 0.0], [1e16, 1.0], [2.0**60, -(2.0**60)], [40.0, 0.0]),
    ]
)
"""Records that a mixture of groups near zero does not expect."""


def cluster_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Neighbouring records of two numbers; odd ones first, among them tables in another order; then random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    """

    def pair(rows: Any, odd: Any, instead: Any, turned: bool = False) -> tuple[np.ndarray, np.ndarray]:
        rows = np.asarray(rows, dtype=float).reshape(-1, 2)
        changed = np.vstack([rows, [odd]])
        before = rows if adjacency == "add_remove" else np.vstack([rows, [instead]])
        return before, changed[::-1] if turned else changed

    def drawn(n: int) -> np.ndarray:
        return 10.0 * rng.integers(2, size=(n, 1)) * [1.0, 0.0] + rng.normal(size=(n, 2))

    far = [1e9, 0.0]
    # All records of a block: each of its centres moves, to where no other is; its scale by many octaves.
    yield pair([[0.0, 0.0], [0.1, 0.0], [50.0, 0.0]], far, [0.05, 0.0])
    yield pair([], far, [-1e9, 0.0])
    yield pair(np.zeros((30, 2)), far, [-1e9, 0.0])
    yield pair(np.full((30, 2), 1e300), [0.0, 0.0], [-1e300, 0.0])
    yield pair(drawn(3), drawn(1)[0], far)  # fewer than blocks
    yield pair(drawn(40), far, [0.0, 0.0], turned=True)
    for odd in ODD_RECORDS:
        yield pair(drawn(20), odd, drawn(1)[0], turned=bool(rng.integers(2)))
    while True:
        rows, odd, instead = drawn(int(rng.integers(0, 80))), *drawn(2)
        if rng.random() < 0.3:
            odd = ODD_RECORDS[rng.integers(len(ODD_RECORDS))]
        found = pair(rows, odd, instead, turned=bool(rng.integers(2)))
        yield found if rng.random() < 0.5 else found[::-1]


def cluster_cases() -> list[ReplayCase]:
    """PrivateGaussianMixture by solver of its blocks, adjacency, scale and number of records, public or not."""
    declared = (("add_remove", False), ("add_remove", True), ("replace_one", True))
    solvers: tuple[tuple[str, float | None], ...] = (("kmeans", 1.0), ("kmeans", None), ("sdp", 1.0))
    cases = [
        ReplayCase(
            f"PrivateGaussianMixture, {solver}, k={k}, {adjacency}, scale={scale}, n public: {public}",
            partial(_fit, solver=solver, adjacency=adjacency, scale=scale, public=public, k=k),
            partial(cluster_pairs, adjacency=adjacency),
            6 + (2 if solver == "sdp" else len(ODD_RECORDS)),  # all solvers read records alike
        )
        for (solver, scale), (adjacency, public), k in itertools.product(solvers, declared, (1, 2))
    ]
    # Two centres that are sure to be there for a record far on one side of one, and one on the other side.
    return cases + [
        ReplayCase(
            f"PrivateGaussianMixture, covariances, {kind}, k={k}, {adjacency}",
            partial(_fit_covariances, adjacency=adjacency, kind=kind, k=k),
            partial(cluster_pairs, adjacency=adjacency),
            6,
        )
        for kind, adjacency, k in itertools.product(MOMENT_KINDS, ("add_remove", "replace_one"), (1, "auto"))
    ]


def _fit_covariances(data: np.ndarray, *, adjacency: str, kind: str, k: int | str) -> Any:
    return PrivateGaussianMixture(
        k,
        separation=8.0,
        scale=1.0,
        epsilon=BUDGET.epsilon,
        delta=BUDGET.delta,
        adjacency=adjacency,
        n_records=len(data) if adjacency == "replace_one" else 40,
        n_blocks=1 if k == 1 else 4,
        max_components=3 if k == "auto" else None,
        covariance_type=kind,
    ).fit(data)


def _fit(data: np.ndarray, *, solver: str, adjacency: str, scale: float | None, public: bool, k: int) -> Any:
    # Under add_remove a public number is what both neighbours declare, whatever they have.
    n_records = None if not public else len(data) if adjacency == "replace_one" else 40
    return PrivateGaussianMixture(
        k,
        separation=None if scale is None else 8.0,
        scale=scale,
        epsilon=BUDGET.epsilon,
        delta=BUDGET.delta,
        adjacency=adjacency,
        n_records=n_records,
        n_blocks=(1, 4)[k - 1],
        block_solver=solver,
    ).fit(data)

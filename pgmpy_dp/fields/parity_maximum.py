"""The point of {-1, 1}^p where a sparse polynomial is largest, by an integer program.

The problem, also called weighted MAX-XOR, is ``max_z sum_k w_k prod_{j in I_k} z_j``. It is NP-hard for sets of two.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from pgmpy_dp.private.mathematics.walsh_hadamard import sign_of_size, transform

TRANSFORM_LIMIT = 20
"""Largest number of variables for which all values are computed: 8 MB an array, .1 s."""


@dataclass(frozen=True)
class Maximum:
    """Where a maximisation ended.

    Attributes
    ----------
    z : ndarray of int8, shape (p,)
        The best point found, of -1 and 1.
    value : float
        The polynomial there.
    converged : bool
        Whether the point is known to be optimal (for the integer program: within a relative gap of 1e-4).
    status : str
        How it ended, in words.
    """

    z: np.ndarray
    value: float
    converged: bool
    status: str


def polynomial_values(masks: np.ndarray, weights: np.ndarray, n_variables: int) -> np.ndarray:
    """``sum_k weights[k] prod_{j in masks[k]} z_j`` at all cells, shape (2**n_variables,); masks may repeat.

    Examples
    --------
    >>> polynomial_values(np.array([1, 3]), np.array([2.0, 1.0]), 2).tolist()
    [-1.0, 1.0, -3.0, 3.0]
    """
    return transform(np.bincount(masks, weights=weights * sign_of_size(masks), minlength=1 << n_variables))


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


def maximise_by_milp(
    subsets: Sequence[Sequence[int]], weights: np.ndarray, n_variables: int, nodes: int | None = None
) -> Maximum:
    """Largest value of ``sum_k weights[k] prod_{j in subsets[k]} z_j``, by an integer program solved by HiGHS.

    Parameters
    ----------
    subsets : sequence of sequences of int
        Distinct positions below `n_variables`; sets may repeat.
    weights : ndarray, shape (len(subsets),)
    n_variables : int
        At least 1.
    nodes : int, optional
        Largest number of nodes that the integer program branches at; then the best point found so far is the answer. A
        limit of time would make the answer depend on the machine's speed.

    Notes
    -----
    With b_j = (1 + z_j)/2 and r_I the parity of sum_{j in I} b_j, ``prod_{j in I} z_j = (-1)^|I| (1 - 2 r_I)``, which
    is linear in r. The points (b_I, r_I) are the 0/1 vectors of even sum, whose convex hull is the box cut by
    ``sum_{F} v - sum_{not F} v <= |F| - 1`` for every subset F of odd size (Jeroslow 1975): 2**|I| inequalities per
    product. With them r needs no integrality, and the relaxation is as tight as one product at a time allows.

    Examples
    --------
    >>> maximise_by_milp([(0, 1), (1,)], np.array([-1.0, 0.5]), 2).z.tolist()
    [-1, 1]
    """
    merged: dict[tuple[int, ...], float] = {}
    for subset, weight in zip(subsets, np.asarray(weights, dtype=float), strict=True):
        key = tuple(sorted(subset))
        merged[key] = merged.get(key, 0.0) + float(weight)
    merged.pop((), None)  # a constant moves no maximum
    products = [key for key in merged if len(key) > 1]
    cost = np.zeros(n_variables + len(products))
    rows: list[int] = []
    columns: list[int] = []
    signs: list[float] = []
    limits: list[float] = []
    for key, weight in merged.items():
        if len(key) == 1:
            cost[key[0]] -= 2.0 * weight
    for k, key in enumerate(products, start=n_variables):
        cost[k] += 2.0 * (-1.0) ** len(key) * merged[key]
        members = (*key, k)
        for chosen in itertools.product((False, True), repeat=len(members)):
            if sum(chosen) % 2:
                rows += [len(limits)] * len(members)
                columns += members
                signs += [1.0 if inside else -1.0 for inside in chosen]
                limits.append(sum(chosen) - 1.0)
    constraints = []
    if limits:
        # SciPy 1.13 takes indices of 32 bits only, and other versions take them too.
        places = (np.array(rows, dtype=np.int32), np.array(columns, dtype=np.int32))
        matrix = sparse.csr_array((signs, places), shape=(len(limits), len(cost)))
        constraints.append(LinearConstraint(matrix, -np.inf, np.array(limits)))
    integral = np.concatenate([np.ones(n_variables), np.zeros(len(products))])
    options = {} if nodes is None else {"node_limit": nodes}
    result = milp(cost, integrality=integral, bounds=Bounds(0, 1), constraints=constraints, options=options)
    best = np.zeros(n_variables) if result.x is None else result.x[:n_variables]
    z = np.where(best > 0.5, 1, -1).astype(np.int8)
    value = float(sum(w * np.prod(z[list(subset)]) for subset, w in zip(subsets, weights, strict=True)))
    return Maximum(z, value, bool(result.success), str(result.message))

"""Graphs with planted communities, made up and public, and the errors of labels against the planted ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment


def planted_labels(n: int, shares: int | Sequence[float], rng: np.random.Generator) -> np.ndarray:
    """Communities of n vertices in random order.

    Parameters
    ----------
    n : int
    shares : int or sequence of float
        A number of communities of equal size (up to one), or the size of each, up to a common factor.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n,)

    Examples
    --------
    >>> np.bincount(planted_labels(10, [3, 2], np.random.default_rng(0))).tolist()
    [6, 4]
    """
    weights = np.ones(shares) if isinstance(shares, int) else np.asarray(shares, dtype=float)
    if weights.ndim != 1 or weights.size == 0 or (weights <= 0).any():
        raise ValueError(f"shares={shares!r} must be a positive number of communities, or a list of positive sizes")
    ends = np.rint(n * np.cumsum(weights) / weights.sum()).astype(int)
    return rng.permutation(np.repeat(np.arange(weights.size), np.diff(ends, prepend=0)))


def sample_block_model(
    labels: np.ndarray, degree: float, bias: float, rng: np.random.Generator, weights: np.ndarray | None = None
) -> sp.csr_array:
    """A graph whose edges are independent, given the communities.

    The pair i < j of vertices is an edge with probability ``w_i w_j (d/n) (1 + (k-1) gamma)`` in one of k communities,
    and ``w_i w_j (d/n) (1 - gamma)`` across two (Chen et al. 2023, section 5, for k = 2; degree-corrected by the
    weights w: Karrer and Newman 2011).

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        In 0 .. k-1.
    degree : float
        d, about the average degree where communities have one size.
    bias : float
        gamma, in [-1/(k-1), 1].
    rng : numpy.random.Generator
    weights : ndarray, shape (n,), optional
        Positive. Default: 1. A probability that they lift above 1 is taken for 1.

    Returns
    -------
    scipy.sparse.csr_array of int8, shape (n, n)
        Symmetric, with zero diagonal. Time and memory grow with the edges, not with the pairs.

    Raises
    ------
    ValueError
        Where degree and bias make a probability outside of [0, 1].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> graph = sample_block_model(planted_labels(1000, 2, rng), 20.0, 0.8, rng)
    >>> bool(abs(graph.sum() / 1000 - 20) < 1)
    True
    """
    labels = np.asarray(labels)
    n, k = labels.size, int(labels.max(initial=0)) + 1
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    members = [np.flatnonzero(labels == c) for c in range(k)]
    rows, cols = [], []
    for a in range(k):
        for b in range(a, k):
            tilt = 1.0 + (k - 1) * bias if a == b else 1.0 - bias
            ends = _pairs(members[a], members[b], a == b, tilt * degree / n, w, rng)
            rows.append(ends[0])
            cols.append(ends[1])
    i, j = np.concatenate(rows), np.concatenate(cols)
    entries = np.ones(2 * i.size, dtype=np.int8)
    return sp.csr_array((entries, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n))


def error_rate(labels: np.ndarray, truth: np.ndarray) -> float:
    """Share of vertices with a wrong label, under the renaming of labels that makes it smallest.

    Parameters
    ----------
    labels, truth : ndarray of int, shape (n,)
        Labels from 0 on. For two communities the renamings are the two signs.

    Examples
    --------
    >>> error_rate(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0]))
    0.25
    """
    return float(misplaced(labels, truth).sum()) / max(1, np.size(labels))


def misplaced(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """A mask of the vertices with a wrong label, under the renaming of labels with the fewest of them.

    Parameters
    ----------
    labels, truth : ndarray of int, shape (n,)
        Labels from 0 on.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> misplaced(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0]))
    array([False, False, False,  True])
    """
    labels, truth = np.asarray(labels), np.asarray(truth)
    k = int(max(labels.max(initial=0), truth.max(initial=0))) + 1
    agreement = np.zeros((k, k), dtype=np.int64)
    np.add.at(agreement, (labels, truth), 1)
    renamed = linear_sum_assignment(agreement, maximize=True)[1]  # of each label; its rows are in order
    return renamed[labels] != truth


def _pairs(
    first: np.ndarray, second: np.ndarray, same: bool, probability: float, w: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Independent edges between two communities, or inside of one: candidates of one probability, then thinned."""
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"degree and bias give a pair the probability {probability:.3g}; it must be in [0, 1]")
    most = min(1.0, probability * float(w[first].max(initial=0.0)) * float(w[second].max(initial=0.0)))
    places = len(first) * (len(first) - 1) // 2 if same else len(first) * len(second)
    codes = _distinct(places, int(rng.binomial(places, most)) if places else 0, rng)
    if same:
        # Place (i, j), j < i, of the lower triangle is i (i-1)/2 + j; the root may be off by one at large numbers.
        i = ((1.0 + np.sqrt(1.0 + 8.0 * codes)) / 2.0).astype(np.int64)
        i -= i * (i - 1) // 2 > codes
        i += i * (i + 1) // 2 <= codes
        u, v = first[i], first[codes - i * (i - 1) // 2]
    else:
        u, v = first[codes // max(1, len(second))], second[codes % max(1, len(second))]
    if (w != 1.0).any():
        kept = rng.random(u.size) * most < np.minimum(1.0, probability * w[u] * w[v])
        u, v = u[kept], v[kept]
    return u, v


def _distinct(places: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """A uniform set of `count` of the numbers 0 .. places-1."""
    if count > places // 4:
        return rng.permutation(places)[:count] if places < 2**26 else rng.choice(places, count, replace=False)
    chosen = np.unique(rng.integers(places, size=math.ceil(1.2 * count) + 16)) if count else np.empty(0, np.int64)
    while chosen.size < count:
        chosen = np.unique(np.concatenate([chosen, rng.integers(places, size=count)]))
    return rng.permutation(chosen)[:count]

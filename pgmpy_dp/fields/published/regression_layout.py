"""The logistic regressions that make up a Markov random field: their labels, their features, their numbering.

Given all other variables, each variable of a random field follows a logistic regression on them (Zhang, Kamath,
Kulkarni and Wu 2020, Lemmas 3.7, 3.10 and 4.1). A layout numbers these regressions and their features; it knows no
records.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from pgmpy_dp.fields.frank_wolfe import RegressionLayout


def regression_layout(
    family: str,
    cardinalities: Sequence[int],
    order: int = 2,
    edges: Iterable[tuple[int, int]] | None = None,
) -> RegressionLayout:
    """The regressions of a model of `family`; :class:`~pgmpy_dp.fields.frank_wolfe.RegressionLayout` has the fields.

    * "ising": regression i predicts z_i. Column j is z_j; column i, free because z_i does not predict itself, is the
      constant.
    * "pairwise": regression (i, {u, v}) for each variable i and pair of its states, ordered by i, u, v. Columns are the
      states of all variables, one after another, and last the constant.
    * "binary": regression i predicts z_i. Columns are the monomials of degree 0 (the constant) to ``order - 1``, by
      degree, each degree in lexicographic order.

    Parameters
    ----------
    family : str
    cardinalities : sequence of int, length p
    order : int, default 2
        Largest degree of the polynomial of a "binary" model.
    edges : iterable of pairs of int, optional
        A graph on the positions. Regressions of i then have the features of its neighbours only (for "binary" those of
        cliques among them) and the constant, so those of variables without neighbours have the constant alone.

    Examples
    --------
    >>> regression_layout("ising", [2, 2, 2]).columns.tolist()
    [[3, 1, 2], [0, 3, 2], [0, 1, 3]]
    >>> layout = regression_layout("pairwise", [2, 3])
    >>> layout.nodes.tolist(), layout.pairs.tolist()
    ([0, 1, 1, 1], [[0, 1], [0, 1], [0, 2], [1, 2]])
    >>> [layout.features[f] for f in layout.columns[0] if f >= 0]
    [(1, 0), (1, 1), (1, 2), ()]
    """
    sizes = tuple(int(k) for k in cardinalities)
    adjacent = _adjacency_matrix(len(sizes), edges)
    if family == "pairwise":
        return _pairwise(sizes, adjacent)
    degrees = range(2 if family == "ising" else order)
    subsets = [subset for degree in degrees for subset in itertools.combinations(range(len(sizes)), degree)]
    if family == "ising":
        features = (*subsets[1:], ())
        columns = np.where(adjacent, np.arange(len(sizes)), -1)
        np.fill_diagonal(columns, len(sizes))
    else:
        features = tuple(subsets)
        columns = _monomials(subsets, adjacent, cliques_only=edges is not None)
    pairs = np.tile([1, 0], (len(sizes), 1))
    return RegressionLayout(family, sizes, features, np.arange(len(sizes)), pairs, columns)


def _adjacency_matrix(p: int, edges: Iterable[tuple[int, int]] | None) -> np.ndarray:
    if edges is None:
        return ~np.eye(p, dtype=bool)
    adjacent = np.zeros((p, p), dtype=bool)
    for i, j in edges:
        adjacent[i, j] = adjacent[j, i] = True
    return adjacent


def _pairwise(sizes: tuple[int, ...], adjacent: np.ndarray) -> RegressionLayout:
    features = (*((j, a) for j, k in enumerate(sizes) for a in range(k)), ())
    owner = np.repeat(np.arange(len(sizes)), sizes)
    rows = [(i, u, v) for i, k in enumerate(sizes) for u, v in itertools.combinations(range(k), 2)]
    labels = np.array(rows, dtype=np.int64).reshape(-1, 3)
    used = np.ones((len(rows), len(features)), dtype=bool)
    used[:, :-1] = adjacent[labels[:, 0]][:, owner]
    columns = np.where(used, np.arange(len(features)), -1)
    return RegressionLayout("pairwise", sizes, features, labels[:, 0], labels[:, 1:], columns)


def _monomials(subsets: list[tuple[int, ...]], adjacent: np.ndarray, cliques_only: bool) -> np.ndarray:
    member = np.zeros((len(subsets), len(adjacent)), dtype=np.float32)
    for row, subset in enumerate(subsets):
        member[row, list(subset)] = 1.0
    # How many of a monomial's variables are no neighbours of i, itself included.
    foreign = (~adjacent).astype(np.float32) @ member.T
    used = foreign == 0
    if cliques_only:
        within = ((member @ adjacent.astype(np.float32)) * member).sum(axis=1)
        size = member.sum(axis=1)
        used &= within == size * (size - 1)
    return np.where(used, np.arange(len(subsets)), -1)


def weight_count(family: str, cardinalities: Sequence[int], order: int = 2) -> int:
    """Number of weights of a layout without a graph, before any is made.

    Examples
    --------
    >>> weight_count("binary", [2] * 5, order=3)
    80
    """
    p = len(cardinalities)
    if family == "pairwise":
        return sum(math.comb(k, 2) for k in cardinalities) * (sum(cardinalities) + 1)
    return p * (p if family == "ising" else sum(math.comb(p, size) for size in range(order)))

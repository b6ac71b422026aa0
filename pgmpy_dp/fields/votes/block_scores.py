"""Scores of pairs of variables, and regressions at every node, from a block of records without noise.

They are asked for by :mod:`pgmpy_dp.fields.votes.block_graphs`: one block's vote is one vote, whatever they return.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import expit, xlogy

from pgmpy_dp.fields.published.regression_layout import RegressionLayout
from pgmpy_dp.inference.proximal import minimize_proximal

_MAX_ITER, _STEP_TOL = 300, 1e-4


def inverse_covariance_scores(codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Sizes of an Ising model's weights, by the inverse of the covariance of z = 2 code - 1; shape (p, p).

    With `weights`, shape (n,), each record counts for its own.
    """
    n, p = len(codes) if weights is None else weights.sum(), codes.shape[1]
    z = 2.0 * codes - 1.0
    weighted = z if weights is None else z * weights[:, np.newaxis]
    mean = weighted.sum(axis=0) / n
    # One part in n of the identity: a constant column then has no edges, and the inverse exists.
    inverse = np.linalg.inv(weighted.T @ z / n - np.outer(mean, mean) + np.eye(p) / n)
    scores = np.arcsinh(np.abs(inverse + inverse.T)) / 2.0
    np.fill_diagonal(scores, 0.0)
    return scores


def tree_scores(codes: np.ndarray, cardinalities: tuple[int, ...], weights: np.ndarray | None = None) -> np.ndarray:
    """Largest centred log-probability of each pair in the Chow-Liu tree, 0 elsewhere; shape (p, p).

    With `weights`, shape (n,), each record counts for its own.
    """
    n, p = codes.shape
    starts = np.cumsum([0, *cardinalities])
    one_hot = np.zeros((n, starts[-1]))
    one_hot[np.arange(n)[:, np.newaxis], starts[:-1] + codes] = 1.0
    if weights is None:
        counts = one_hot.T @ one_hot  # of all pairs of states; integers below 2**53, exact
    else:
        counts, n = (one_hot * weights[:, np.newaxis]).T @ one_hot, weights.sum()
    single = np.diagonal(counts)
    terms = (xlogy(counts, n * counts) - xlogy(counts, np.outer(single, single))) / n
    information = np.add.reduceat(np.add.reduceat(terms, starts[:-1], axis=0), starts[:-1], axis=1)
    information[information < 1e-12] = 0.0  # rounding errors of 0 are no edges
    tree = minimum_spanning_tree(csr_array(-np.triu(information, 1))).tocoo()
    scores = np.zeros((p, p))
    for i, j in zip(tree.row.tolist(), tree.col.tolist(), strict=True):
        table = np.log(counts[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] + 0.5)
        table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        scores[i, j] = scores[j, i] = np.abs(table).max()
    return scores


def node_regressions(
    features: np.ndarray,
    codes: np.ndarray,
    layout: RegressionLayout,
    radius: float,
    of_records: np.ndarray | None = None,
) -> np.ndarray:
    """Weights of all regressions, shape (n_regressions, n_columns): least mean loss with l1 norm at most `radius`.

    Parameters
    ----------
    features : ndarray of float, shape (n_features, n)
    codes : ndarray of int, shape (n, p)
    layout : RegressionLayout
        What is regressed on what.
    radius : float
    of_records : ndarray of float, shape (n,), optional
        For how much each record counts; default: 1.
    """
    used = np.zeros((layout.n_regressions, len(features)), dtype=bool)
    rows = np.arange(layout.n_regressions)[:, np.newaxis]
    column = np.maximum(layout.columns, 0)
    np.logical_or.at(used, (np.broadcast_to(rows, column.shape), column), layout.columns >= 0)
    states = codes.T[layout.nodes]
    up, down = states == layout.pairs[:, :1], states == layout.pairs[:, 1:]
    sign = up.astype(np.float64) - down  # 0: the record takes no part
    share = np.abs(sign) if of_records is None else np.abs(sign) * of_records
    total = share.sum(axis=1, keepdims=True)
    share = share / np.where(total > 0, total, 1.0)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        margins = sign * (flat.reshape(used.shape) @ features)
        slopes = -share * sign * expit(-margins)
        value = float((share * np.logaddexp(0.0, -margins)).sum())
        return value, np.where(used, slopes @ features.T, 0.0).ravel()

    def projected(flat: np.ndarray, step: float) -> np.ndarray:
        return _onto_l1_balls(flat.reshape(used.shape), radius).ravel()

    found = minimize_proximal(loss, projected, np.zeros(used.size), max_iter=_MAX_ITER, step_tol=_STEP_TOL)
    weights = found.x.reshape(used.shape)
    return np.where(layout.columns >= 0, weights[rows, column], 0.0)


def _onto_l1_balls(rows: np.ndarray, radius: float) -> np.ndarray:
    """Euclidean projection of each row onto the l1 ball (Duchi, Shalev-Shwartz, Singer and Chandra 2008)."""
    sizes = np.abs(rows)
    ordered = -np.sort(-sizes, axis=1)
    shifts = (np.cumsum(ordered, axis=1) - radius) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > shifts).sum(axis=1) - 1
    shift = np.maximum(shifts[np.arange(len(rows)), last], 0.0)
    return np.sign(rows) * np.maximum(sizes - shift[:, np.newaxis], 0.0)

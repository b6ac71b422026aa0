"""Graphs that blocks of records vote for, by learners without noise.

:func:`block_graph` is registered as a block function: a function of one block's records and public numbers. A learner
gives each pair of variables a score, an estimate of the size of their interaction; pairs with at least eta/2 are edges.
Three learners:

* "logistic": for each variable (and pair of its states) the logistic regression on all others (for order t on products
  of up to t - 1 of them) of smallest loss among those of l1 norm at most twice the width (times the largest number of
  states, where one has more than two). Wu, Sanghavi and Dimakis 2019; Klivans and Meka 2017 for t > 2.
* "inverse-covariance": with K the inverse of the covariance of the signs, arsinh(2 abs(K_ij))/2, which on a tree
  without fields is abs(A_ij). Much faster, and needs fewer records; but on graphs with cycles K is only nearly
  sparse (Loh and Wainwright 2013), so that it can fail with strong interactions however many the records.
* "chow-liu": the spanning tree of largest mutual information (Chow and Liu 1968); the score of its edges is the largest
  entry of the centred log-table of the pair, which in a tree-shaped model is the pair's own interaction.

Whatever they return, one block's vote is one vote.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import expit, xlogy

from pgmpy_dp.fields.frank_wolfe import RegressionLayout
from pgmpy_dp.fields.published.nodewise_regressions import field_from_regressions
from pgmpy_dp.fields.published.regression_layout import regression_layout, weight_count
from pgmpy_dp.fields.random_fields import edge_scores
from pgmpy_dp.inference.proximal import minimize_proximal
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.operators.regressions import feature_rows
from pgmpy_dp.schema import Schema

_MAX_ITER, _STEP_TOL = 300, 1e-4


def inverse_covariance_scores(codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Sizes of an Ising model's weights, by the inverse of the covariance of z = 2 code - 1; shape (p, p).

    With `weights`, shape (n,), each record counts as much as its weight.
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

    With `weights`, shape (n,), each record counts as much as its weight.
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
        The regressions.
    radius : float
    of_records : ndarray of float, shape (n,), optional
        The weight of each record; default: 1.
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

    minimum = minimize_proximal(loss, projected, np.zeros(used.size), max_iter=_MAX_ITER, step_tol=_STEP_TOL)
    weights = minimum.x.reshape(used.shape)
    return np.where(layout.columns >= 0, weights[rows, column], 0.0)


def _onto_l1_balls(rows: np.ndarray, radius: float) -> np.ndarray:
    """Euclidean projection of each row onto the l1 ball (Duchi, Shalev-Shwartz, Singer and Chandra 2008)."""
    sizes = np.abs(rows)
    ordered = -np.sort(-sizes, axis=1)
    shifts = (np.cumsum(ordered, axis=1) - radius) / np.arange(1, rows.shape[1] + 1)
    last = (ordered > shifts).sum(axis=1) - 1
    shift = np.maximum(shifts[np.arange(len(rows)), last], 0.0)
    return np.sign(rows) * np.maximum(sizes - shift[:, np.newaxis], 0.0)


LEARNERS = ("auto", "logistic", "inverse-covariance", "chow-liu")
_MAX_WEIGHTS = 10**7
_MAX_CELLS = 10**8


@dataclass(frozen=True)
class BlockLearner:
    """A function from the codes of a block to its graph, by public numbers; made by :func:`plan_blocks`.

    Attributes
    ----------
    learner : {"logistic", "inverse-covariance", "chow-liu"}
    cardinalities : tuple of int
    width, min_edge_weight : float
    order : int
    max_edges : int
        No graph has more.
    least_records : int
        A block of fewer records, or of less weight, has no graph.
    """

    learner: str
    cardinalities: tuple[int, ...]
    width: float
    min_edge_weight: float
    order: int
    max_edges: int
    least_records: int = 1

    @property
    def n_pairs(self) -> int:
        """The number of pairs of variables; pair e of the positions ``np.triu_indices(p, 1)`` is called e."""
        return math.comb(len(self.cardinalities), 2)

    @cached_property
    def _layout(self) -> RegressionLayout:
        family = "binary" if self.order > 2 else "ising" if set(self.cardinalities) == {2} else "pairwise"
        return regression_layout(family, self.cardinalities, self.order)

    def graph(self, codes: np.ndarray, weights: np.ndarray | None = None) -> tuple[int, ...] | None:
        """The edges of a block's graph, as increasing pair numbers; None where its records say nothing of one."""
        counted = len(codes) if weights is None else float(np.sum(weights))
        if not len(codes) or counted < self.least_records:
            return None
        with np.errstate(all="ignore"):
            return self._edges(self.scores(codes, weights))

    def scores(self, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Score of each pair, shape (p, p), of one or more records, each of which counts for its weight (default 1)."""
        if self.learner == "chow-liu":
            return tree_scores(codes, self.cardinalities, weights)
        if self.learner == "inverse-covariance":
            return inverse_covariance_scores(codes, weights)
        radius = 2.0 * self.width * (max(self.cardinalities) if self._layout.family == "pairwise" else 1)
        features = feature_rows(codes, self._layout).astype(np.float64)
        regressions = node_regressions(features, codes, self._layout, radius, weights)
        return edge_scores(field_from_regressions(self._layout, regressions, self.order)[0])

    def _edges(self, scores: np.ndarray) -> tuple[int, ...] | None:
        p = len(self.cardinalities)
        if np.shape(scores) != (p, p):
            return None
        flat = scores[np.triu_indices(p, 1)]
        if not np.isfinite(flat).all():
            return None
        chosen = np.argsort(-flat, kind="stable")[: self.max_edges]
        return tuple(sorted(chosen[flat[chosen] >= self.min_edge_weight / 2.0].tolist()))


def plan_blocks(schema: Schema, settings: Settings) -> BlockLearner:
    """Check the settings against a schema; ValueError where they do not go together."""
    if settings.order > 2 and settings.learner not in ("auto", "logistic"):
        raise ValueError(
            f"order={settings.order!r} with learner={settings.learner!r}, which has order 2; use 'logistic'"
        )
    schema.require_discrete(argument="schema")
    sizes = tuple(schema.cardinality(name) for name in schema.variables)
    p = len(sizes)
    if p < 2:
        raise ValueError(f"schema declares the variables {list(schema.variables)}; a graph needs at least two")
    binary = set(sizes) == {2}
    learner = settings.learner
    if learner == "auto":
        learner = "inverse-covariance" if binary and settings.order == 2 else "logistic"
    if not binary and (learner == "inverse-covariance" or settings.order > 2):
        other = [name for name in schema.variables if schema.cardinality(name) != 2]
        raise ValueError(
            f"learner={learner!r} with order={settings.order!r} is for binary variables, and the schema gives "
            f"{other[:5]} other numbers of states; use learner='logistic' or 'chow-liu' with order=2, or merge states"
        )
    if settings.order > p:
        raise ValueError(f"order={settings.order!r} is more than the {p} variables; pass at most as many")
    if learner == "logistic":
        n_weights = weight_count(
            "binary" if settings.order > 2 else "ising" if binary else "pairwise", sizes, settings.order
        )
        if n_weights > _MAX_WEIGHTS:
            raise ValueError(
                f"the regressions have {n_weights} weights, more than {_MAX_WEIGHTS}; lower order={settings.order!r}, "
                "merge states or drop variables"
            )
    if learner == "chow-liu" and sum(sizes) ** 2 > _MAX_CELLS:
        raise ValueError(
            f"the tables of all pairs have {sum(sizes) ** 2} cells, more than {_MAX_CELLS}; merge states or drop "
            "variables"
        )
    most = p - 1 if learner == "chow-liu" else math.comb(p, 2)
    max_edges = settings.filled(max_edges=None).max_edges
    most = most if max_edges is None else min(most, max_edges)
    return BlockLearner(learner, sizes, settings.width, settings.min_edge_weight, settings.order, most)


def least_records(sizes: Iterable[int], min_edge_weight: float) -> int:
    """The number of records that a block needs to tell edges from none, from public numbers.

    The entries of the centred log-table of two independent variables with k and l states, which a graph is read from,
    have a standard error of about ``sqrt((k - 1)(l - 1)/n)`` where states are equally frequent, more elsewhere. Pairs
    are edges from eta/2 on. With fewer records than make the two equal, a block's edges by its largest tables are
    chance.

    Examples
    --------
    >>> least_records([2, 2, 2], 0.4), least_records([2, 3, 5], 0.5), least_records([2, 2], 10.0)
    (25, 128, 1)
    """
    first, second = sorted(sizes)[-2:]
    return max(1, math.ceil(4.0 * (first - 1) * (second - 1) / min_edge_weight**2))


def blocks_public(learner: BlockLearner) -> dict[str, Any]:
    """JSON-able settings of a release."""
    names = ("learner", "width", "min_edge_weight", "order", "max_edges")
    return {name: getattr(learner, name) for name in names}


@outside_function
def block_graph(codes: np.ndarray, rng: np.random.Generator, **learner: Any) -> tuple[int, ...] | None:
    """The graph of a block or None, a registered block function; `learner` as :func:`block_arguments` returns it.

    Where records count by shares, it has their ``weights`` too.
    """
    weights = learner.pop("weights", None)
    return BlockLearner(**learner).graph(codes, weights)


def block_arguments(learner: BlockLearner) -> dict[str, Any]:
    """The arguments of a curator's question: the function, its public arguments and the largest number of edges."""
    return {
        "function": f"{block_graph.__module__}.{block_graph.__name__}",
        "arguments_of": asdict(learner),
        "max_edges": learner.max_edges,
    }

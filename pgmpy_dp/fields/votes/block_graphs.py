"""A graph for a block of records, by learners without noise: what blocks vote for when a curator asks them.

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
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pgmpy_dp.fields.published.nodewise_regressions import field_from_regressions
from pgmpy_dp.fields.published.regression_layout import RegressionLayout, regression_layout, weight_count
from pgmpy_dp.fields.random_fields import edge_scores
from pgmpy_dp.fields.votes.block_scores import inverse_covariance_scores, node_regressions, tree_scores
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.operators.regressions import feature_rows
from pgmpy_dp.schema import Schema

LEARNERS = ("auto", "logistic", "inverse-covariance", "chow-liu")
_MAX_WEIGHTS = 10**7
_MAX_CELLS = 10**8


@dataclass(frozen=True)
class BlockLearner:
    """From the codes of a block to its graph; from public numbers alone, see :func:`plan_blocks`.

    Attributes
    ----------
    learner : {"logistic", "inverse-covariance", "chow-liu"}
    cardinalities : tuple of int
    width, min_edge_weight : float
    order : int
    max_edges : int
        No graph has more.
    least_records : int
        A block of fewer records, or of so few by what they count for, has no graph.
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
        found = node_regressions(features, codes, self._layout, radius, weights)
        return edge_scores(field_from_regressions(self._layout, found, self.order)[0])

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
    """How many records a block needs before it can tell edges from none: from public numbers.

    The entries of the centred log-table of two independent variables with k and l states, which a graph is read from,
    have a standard error of about ``sqrt((k - 1)(l - 1)/n)`` where states are equally frequent, more elsewhere. Pairs
    are edges from eta/2 on. With fewer records than make the two equal, what a block says of its largest tables is
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
    """What a curator is asked with: the function's name, its public arguments and the largest number of edges."""
    return {
        "function": f"{block_graph.__module__}.{block_graph.__name__}",
        "arguments_of": asdict(learner),
        "max_edges": learner.max_edges,
    }

"""Metrics of the distance between an estimated undirected graph and the true one; pgmpy's are for DAGs.

Each takes two undirected graphs on the same nodes and counts their edges: tp in both, fp only in the estimate, fn only
in the truth. Where a ratio has no edges to divide by, it is 1 if both graphs are empty, for the estimate is then exact,
and 0 otherwise.

A metric of a graph that was estimated from records is post-processing. The *true* graph must be public or made up: a
metric against a graph learned from the records without privacy is not protected.
"""

from __future__ import annotations

from typing import Any, ClassVar

import networkx as nx
from pgmpy.metrics import _BaseSupervisedMetric

from pgmpy_dp.learning.registry import list_objects

__all__ = ["EdgeF1", "EdgeHammingDistance", "EdgePrecision", "EdgeRecall", "list_metrics"]


class _EdgeMetric(_BaseSupervisedMetric):
    """The base of the metrics: the edges of both graphs, as sets of unordered pairs.

    pgmpy reads `_tags` of the class itself, not the inherited ones, so each metric repeats them.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "name": None,
        "requires_true_graph": True,
        "requires_data": False,
        "lower_is_better": False,
        "is_symmetric": False,
        "graph_kind": "undirected",
        "supported_graph_types": (nx.Graph,),
        "is_default": False,
    }

    def _evaluate(self, true_causal_graph: nx.Graph, est_causal_graph: nx.Graph) -> float:
        return self._score(*_confusion(true_causal_graph, est_causal_graph))

    def _score(self, tp: int, fp: int, fn: int) -> float:
        raise NotImplementedError


class EdgePrecision(_EdgeMetric):
    """Share of the estimated edges that are true: tp / (tp + fp).

    Called, or asked to `evaluate`, with ``true_causal_graph`` and ``est_causal_graph`` (pgmpy's names): undirected
    graphs, pgmpy's or networkx's, on the same nodes. Without estimated edges: 1 if there are no true ones either, else
    0.

    Raises
    ------
    ValueError
        If a graph is directed, has an edge from a node to itself, or the nodes differ.

    Examples
    --------
    >>> true, estimated = nx.path_graph(4), nx.Graph([(0, 1), (1, 2), (0, 3), (1, 3)])
    >>> EdgePrecision()(true, estimated)
    0.5
    """

    _tags: ClassVar[dict[str, Any]] = _EdgeMetric._tags | {"name": "edge_precision"}

    def _score(self, tp: int, fp: int, fn: int) -> float:
        return _ratio(tp, tp + fp, empty=tp + fp + fn == 0)


class EdgeRecall(_EdgeMetric):
    """Share of the true edges that were found: tp / (tp + fn).

    As `EdgePrecision`. Without true edges: 1 if there are no estimated ones either, else 0.

    Examples
    --------
    >>> round(EdgeRecall()(nx.path_graph(4), nx.Graph([(0, 1), (1, 2), (0, 3), (1, 3)])), 3)
    0.667
    """

    _tags: ClassVar[dict[str, Any]] = _EdgeMetric._tags | {"name": "edge_recall"}

    def _score(self, tp: int, fp: int, fn: int) -> float:
        return _ratio(tp, tp + fn, empty=tp + fp + fn == 0)


class EdgeF1(_EdgeMetric):
    """Harmonic mean of precision and recall: 2 tp / (2 tp + fp + fn).

    As `EdgePrecision`. 1 if both graphs are empty, 0 if one is.

    Examples
    --------
    >>> round(EdgeF1()(nx.path_graph(4), nx.Graph([(0, 1), (1, 2), (0, 3), (1, 3)])), 3)
    0.571
    """

    _tags: ClassVar[dict[str, Any]] = _EdgeMetric._tags | {"name": "edge_f1", "is_symmetric": True, "is_default": True}

    def _score(self, tp: int, fp: int, fn: int) -> float:
        return _ratio(2 * tp, 2 * tp + fp + fn, empty=tp + fp + fn == 0)


class EdgeHammingDistance(_EdgeMetric):
    """Number of edges that are in one of the graphs only: fp + fn.

    As `EdgePrecision`. For undirected graphs this is the structural Hamming distance.

    Examples
    --------
    >>> EdgeHammingDistance()(nx.path_graph(4), nx.Graph([(0, 1), (1, 2), (0, 3), (1, 3)]))
    3
    """

    _tags: ClassVar[dict[str, Any]] = _EdgeMetric._tags | {
        "name": "edge_hamming_distance",
        "lower_is_better": True,
        "is_symmetric": True,
    }

    def _score(self, tp: int, fp: int, fn: int) -> int:
        return fp + fn


def list_metrics(**tags: Any) -> list[type]:
    """The metrics of this package, optionally those with certain tags.

    pgmpy's `get_metrics` looks only into pgmpy.

    Parameters
    ----------
    **tags
        Tag names and values: ``name``, ``requires_true_graph``, ``requires_data``, ``lower_is_better``,
        ``is_symmetric``, ``graph_kind`` ("undirected"), ``is_default``. A tag that holds several values matches any.

    Returns
    -------
    list of type
        In alphabetical order.

    Raises
    ------
    ValueError
        If no metric has a tag of that name.

    Examples
    --------
    >>> [metric.__name__ for metric in list_metrics(is_symmetric=True)]
    ['EdgeF1', 'EdgeHammingDistance']
    """
    return list_objects(_BaseSupervisedMetric, **tags)


def _confusion(true: nx.Graph, estimated: nx.Graph) -> tuple[int, int, int]:
    """(tp, fp, fn)."""
    edges = []
    for name, graph in (("true_causal_graph", true), ("est_causal_graph", estimated)):
        if graph.is_directed():
            raise ValueError(f"{name} is a {type(graph).__name__}, which is directed; pass an undirected graph")
        if any(u == v for u, v in graph.edges()):
            raise ValueError(f"{name} has an edge from a node to itself; pass a graph without such edges")
        edges.append({frozenset(edge) for edge in graph.edges()})
    return len(edges[0] & edges[1]), len(edges[1] - edges[0]), len(edges[0] - edges[1])


def _ratio(part: int, whole: int, *, empty: bool) -> float:
    if whole == 0:
        return 1.0 if empty else 0.0
    return part / whole

"""The base of estimators with a learned graph: one release from the records, learning from it, and its score."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import networkx as nx
from pgmpy.base import UndirectedGraph
from pgmpy.metrics import _BaseSupervisedMetric

from pgmpy_dp.learning.display import ShowsFit
from pgmpy_dp.learning.opened_table import schema_and_table
from pgmpy_dp.learning.table_base import BaseTableEstimator
from pgmpy_dp.metrics import list_metrics
from pgmpy_dp.schema import Schema

# pgmpy's base class of structure learners has a private name, and is imported here alone. Ours stands before it among a
# class's bases, so that `fit`, `score` and tags are ours; it serves `isinstance` and scikit-learn's tags. Its
# `_check_fit_data` reads the data and raises because of records: nothing here calls it. Where a version of pgmpy has
# moved it, our base stands alone (`tests/test_pgmpy_contract.py` says so).
if TYPE_CHECKING:
    StructureBase: Any = object
else:
    try:
        from pgmpy.causal_discovery._base import _BaseCausalDiscovery as StructureBase
    except ImportError:

        class StructureBase:
            """A stand-in for pgmpy's base class, where that is missing."""


class BaseGraphEstimator(ShowsFit, BaseTableEstimator, StructureBase):
    """Graph of discrete variables, `graph_`, with or without parameters, from one release; abstract.

    It is one of pgmpy's structure learners.
    """

    _tags: ClassVar[dict[str, Any]] = {"supports_weighted_data": False, "task": "structure", "model_kind": "undirected"}

    def _learns_parameters(self) -> bool:
        """Whether a fit with these arguments sets `model_`; public."""
        return True

    def _schema_of(self, data: Any, **whose: Any) -> Schema:
        return schema_and_table(self, data, **whose)[0]

    def score(
        self,
        X: None = None,
        true_graph: nx.Graph | None = None,
        metric: str | _BaseSupervisedMetric | type[_BaseSupervisedMetric] | None = None,
    ) -> float:
        """Score how near `graph_` is to a true graph; called as pgmpy's causal discovery estimators are.

        Parameters
        ----------
        X : None
            Not supported: a score on records would be a release of its own. (Of public records, see
            ``model_.log_likelihood``.)
        true_graph : networkx.Graph
            Undirected, on the variables of `graph_`. It must be public or made up: the score against a graph that was
            learned from the records without privacy is not protected.
        metric : str, metric or class of a metric, optional
            One of `pgmpy_dp.list_metrics`, by its name ("edge_f1", "edge_hamming_distance", ...) or itself. Default:
            "edge_f1", from 0 to 1, where it is exact.

        Returns
        -------
        float

        Raises
        ------
        NotFittedError
            Before `fit` or `fit_release`.
        TypeError, ValueError
            For another metric or graph.

        Notes
        -----
        Where `graph_` is None, "no stable structure", the graph without edges is scored, for no edge was found. So the
        score is defined after every fit, and its mean over fits counts no answer as an answer that misses every edge:
        an F1 of 0, a Hamming distance of all true edges. If the true graph has no edges that is a perfect score, as for
        a released graph without edges; ``stable_`` tells the two apart.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgmpy_dp.estimators import PrivateChowLiu
        >>> data = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500, "c": [0, 0, 1, 1] * 250})
        >>> states = {name: [0, 1] for name in data}
        >>> estimator = PrivateChowLiu(epsilon=5.0, n_edges=1, state_names=states).fit(data)
        >>> true = nx.Graph([("a", "b"), ("b", "c")])
        >>> round(estimator.score(true_graph=true), 3), estimator.score(true_graph=true, metric="edge_hamming_distance")
        (0.667, 1)
        """
        self.check_is_fitted()
        if X is not None:
            raise ValueError(
                f"X is a {type(X).__name__}, and there is no score on records here; pass true_graph=... by its name"
            )
        if true_graph is None:
            raise ValueError("true_graph=None: there is nothing to compare graph_ with; pass an undirected graph")
        estimated = graph_on(self.release_.schema.variables, ()) if self.graph_ is None else self.graph_
        return _metric(metric).evaluate(true_causal_graph=true_graph, est_causal_graph=estimated)


def graph_on(variables: tuple[Hashable, ...], edges: Iterable[tuple[Hashable, Hashable]]) -> UndirectedGraph:
    """The graph on all variables with these edges; where they are keys, the strength of each is its weight.

    Examples
    --------
    >>> graph_on(("a", "b"), {("a", "b"): 0.5}).edges(data=True), graph_on(("a", "b"), [("a", "b")]).edges(data=True)
    (EdgeDataView([('a', 'b', {'weight': 0.5})]), EdgeDataView([('a', 'b', {})]))
    """
    graph = UndirectedGraph()
    graph.add_nodes_from(variables)
    # pgmpy's own gives an edge without a weight the weight None, on which networkx' algorithms fail.
    if isinstance(edges, dict):  # networkx has views of edges that are mappings too
        edges = [(*edge, {"weight": float(strength)}) for edge, strength in edges.items()]
    nx.Graph.add_edges_from(graph, edges)
    return graph


def _metric(metric: object) -> _BaseSupervisedMetric:
    if metric is None:
        return list_metrics(requires_true_graph=True, is_default=True)[0]()
    if isinstance(metric, str):
        matches = list_metrics(name=metric)
        if not matches:
            names = [one().get_tag("name") for one in list_metrics()]
            raise ValueError(f"metric={metric!r} is not supported; use one of {names}, or a metric itself")
        return matches[0]()
    if isinstance(metric, type) and issubclass(metric, _BaseSupervisedMetric):
        return metric()
    if isinstance(metric, _BaseSupervisedMetric):
        return metric
    raise TypeError(f"metric={metric!r} is a {type(metric).__name__}; pass a name, or one of pgmpy_dp.list_metrics()")

"""PrivateChowLiu: a tree or forest of discrete variables, and optionally its parameters."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.learning.graph_base import graph_on
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals, project_on_simplex
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.options import flag, number, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.tables.networks import spanning_tree
from pgmpy_dp.tables.networks.structure_base import BaseStructureEstimator, network_of_tables

_METHODS = ("selection", "tables")


class PrivateChowLiu(BaseStructureEstimator):
    """Tree of the strongest dependences between discrete variables: a private Chow-Liu tree.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records
    method : {"selection", "tables"}
        "selection": Kruskal's algorithm, each edge chosen by a noisy maximum of the l1 distances from independence;
        then the edges' tables are released. "tables": the tables of all pairs are released once, and the tree is the
        maximum spanning tree of their distances. The first needs fewer records, about like the root of the number of
        variables where "tables" go like that number; for the graph alone, give `selection_share` most of the budget.
    n_edges : int, optional
        Edges of the forest, the strongest first; default: a spanning tree.
    prune : bool
        Leave out edges whose released table is no further from independence than noise and chance would make it: by
        their mean plus two standard deviations.
    fit_parameters : bool
        Whether to learn `model_` from the released tables, as `CollectiveMAP` does.
    one_way_share, selection_share : float in (0, 1)
        Shares of the budget for the tables of single variables and, with "selection", for choosing the edges; the rest
        is for the tables of the chosen edges. Where only the graph is wanted, take a `selection_share` of about .8.
    random_state

    Attributes
    ----------
    graph_ : UndirectedGraph
        The weight of an edge is its score.
    edge_scores_ : dict of pair to float
        Distance of each edge's released table from independence, in total variation, less what noise and chance add
        to it on average (at least 0).
    model_ : MarkovNetwork
        With `fit_parameters`.
    release_, privacy_, n_features_in_, feature_names_in_
    n_records_, n_records_sd_

    Notes
    -----
    Privacy: the only access to the records is the release of :mod:`pgmpy_dp.tables.networks.spanning_tree`, or of
    :mod:`pgmpy_dp.learning.noisy_tables`; the rest, pruning too, is post-processing.
    Chow and Liu (1968) take mutual information, whose sensitivity has no useful bound when the number of records is
    private; distance from independence is used instead.
    Method: McKenna, Miklau and Sheldon (2021) for "selection".

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> a = rng.random(5000) < 0.5
    >>> b, c = (np.where(rng.random(5000) < 0.9, a, ~a) for _ in range(2))
    >>> data = pd.DataFrame({"b": b, "a": a, "c": c})
    >>> estimator = PrivateChowLiu(epsilon=2.0, state_names={name: [False, True] for name in data}).fit(data)
    >>> sorted(sorted(edge) for edge in estimator.graph_.edges)
    [['a', 'b'], ['a', 'c']]
    """

    method: str = option("selection", one_of(_METHODS))
    n_edges: int | None = option(None, whole(0))
    prune: bool = option(False, flag())
    fit_parameters: bool = option(True, flag())
    one_way_share: float = option(0.1, number(below_one=True))
    selection_share: float = option(0.1, number(below_one=True))

    def _learns_parameters(self) -> bool:
        return bool(self.fit_parameters)

    def _check(self) -> None:
        if Fraction(self.one_way_share) + Fraction(self.selection_share) >= 1:
            raise ValueError(
                f"one_way_share={self.one_way_share!r} and selection_share={self.selection_share!r} leave nothing of "
                "the budget for the tables of edges; pass shares that sum to less than 1"
            )

    def _run(self, table: PrivateTable, budget: Budget) -> Release:
        if self.method == "selection":
            return spanning_tree.run(table, self._options, budget)
        names = table.schema.variables
        spanning_tree.number_of_edges(len(names), self.n_edges)
        pairs = list(itertools.combinations(names, 2))
        scopes = [*((name,) for name in names), *pairs]
        share = self.one_way_share
        weights = [share / len(names)] * len(names) + [(1 - share) / max(len(pairs), 1)] * len(pairs)
        return noisy_tables.run(table, self._options.but(scopes=tuple(scopes), weights=tuple(weights)), budget)

    def _learned(self, release: Release, privacy: Privacy) -> dict[str, Any]:
        noisy = noisy_marginals(release, release.schema.variables)
        scores, chance = _dependence(noisy)
        forest = nx.maximum_spanning_edges(graph_on(release.schema.variables, scores), data=False)
        named = (edge if edge in scores else edge[::-1] for edge in forest)
        edges = sorted(named, key=scores.__getitem__, reverse=True)[: self.n_edges]
        if self.prune:
            edges = [edge for edge in edges if scores[edge] > 2.0 * chance[edge]]
        learned: dict[str, Any] = {
            "edge_scores_": {edge: max(scores[edge], 0.0) for edge in edges},
            "n_records_": noisy.n_records,
            "n_records_sd_": noisy.n_records_sd,
        }
        learned["graph_"] = graph_on(release.schema.variables, learned["edge_scores_"])
        if self.fit_parameters:
            kept = {frozenset(edge) for edge in edges}
            tables = [c for c, scope in enumerate(release.scopes) if len(scope) == 1 or frozenset(scope) in kept]
            learned["model_"], _, _ = network_of_tables(type(self).__name__, release, tables, privacy)
        return learned


def _dependence(noisy: NoisyMarginals) -> tuple[dict[tuple, float], dict[tuple, float]]:
    """Total variation of each pair's noisy table from independence, less its mean if they are independent, and its sd.

    Under independence a cell's deviation is about normal, with the variance of the noise plus the expected count.
    """
    cliques, n = noisy.cliques, noisy.n_records
    tables = dict(zip(cliques.scopes, cliques.split(noisy.counts), strict=True))
    margins = {scope[0]: project_on_simplex(table / n) for scope, table in tables.items() if len(scope) == 1}
    scores, chance = {}, {}
    for scope, variance in zip(cliques.scopes, noisy.table_variance, strict=True):
        if len(scope) != 2:
            continue
        independent = n * np.outer(margins[scope[0]], margins[scope[1]])
        deviation = np.sqrt(variance + independent)
        distance = np.abs(tables[scope] - independent).sum()
        scores[scope] = float(distance - math.sqrt(2 / math.pi) * deviation.sum()) / (2 * n)
        chance[scope] = float(np.sqrt((1 - 2 / math.pi) * (deviation**2).sum())) / (2 * n)
    return scores, chance

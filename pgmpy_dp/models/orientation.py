"""Directions for the edges of a learned model: pgmpy's hill climbing, scored by released tables instead of records."""

from __future__ import annotations

import math
from collections.abc import Iterable

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.causal_discovery import ExpertKnowledge, HillClimbSearch
from pgmpy.structure_score import BaseStructureScore

from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior

_MOST_PARENTS = 4
_MOST_CELLS = 100_000


class _ReleasedScore(BaseStructureScore):
    """The BIC of a Bayesian network on tables of a model, as if they were counts of so many records."""

    def __init__(self, model: LogLinearModel, n_records: float) -> None:
        self.model, self.n_records = model, n_records
        super().__init__(_no_records(model))

    def _local_score(self, variable: int, parents: tuple[int, ...]) -> float:
        sizes, names = self.model.cliques.cardinalities, self.model.cliques.variables
        configurations = math.prod(sizes[parent] for parent in parents)
        if configurations * sizes[variable] > _MOST_CELLS:
            return -math.inf
        table = self.model.marginal([names[k] for k in (*sorted(parents), variable)]).reshape(-1, sizes[variable])
        whole = np.broadcast_to(table.sum(axis=1, keepdims=True), table.shape)
        seen = table > 0
        fit = float(table[seen] @ np.log(table[seen] / whole[seen]))
        return self.n_records * fit - 0.5 * math.log(self.n_records) * configurations * (sizes[variable] - 1)


def hill_climbed(model: LogLinearModel, edges: Iterable[tuple], n_records: float) -> nx.DiGraph:
    """Direct edges of the model's graph by hill climbing, with the BIC of the model's own tables.

    Parameters
    ----------
    model : LogLinearModel
    edges : iterable of pairs of variables
        Of its graph: no other two are joined, so that noise that made no edge there makes none here.
    n_records : float
        The number of records that tables as sure as these would need: `effective_records`, or fewer than there were.

    Returns
    -------
    networkx.DiGraph
        Up to 4 parents for each variable. Directions that the score does not tell apart are arbitrary, and none says
        what causes what.

    Notes
    -----
    Greedy: it ends where no edge that is added, taken out or turned gains (Koller and Friedman 2009, section 18.4.3).
    """
    names = model.cliques.variables
    place = {name: k for k, name in enumerate(names)}
    allowed = {pair for u, v in edges if u != v for pair in ((place[u], place[v]), (place[v], place[u]))}
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    if not allowed:
        return graph
    search = HillClimbSearch(
        scoring_method=_ReleasedScore(model, max(float(n_records), 2.0)),
        tabu_length=0,  # each step is a gain, so that none comes back; and an early edge may go again
        max_indegree=_MOST_PARENTS,
        expert_knowledge=ExpertKnowledge(search_space=sorted(allowed)),
        return_type="dag",
        show_progress=False,
    )
    search.fit(_no_records(model))
    graph.add_edges_from((names[u], names[v]) for u, v in search.causal_graph_.edges)
    return graph


def effective_records(posterior: ParameterPosterior, edges: Iterable[tuple]) -> float:
    """The number of records whose tables of two variables, without noise, would be as sure as the noisy ones.

    Parameters
    ----------
    posterior : ParameterPosterior
        Its draws count the errors of sampling and of privacy noise.
    edges : iterable of pairs of variables

    Returns
    -------
    float
        The median over edges of the sum of p (1 - p) over the sum of the draws' variances, over cells; at most the
        released number of records.
    """
    place = posterior.draws.cliques.position
    scopes = [(place[u], place[v]) for u, v in edges if u != v]
    most = posterior.n_records if math.isfinite(posterior.n_records) else math.inf
    if not scopes:
        return min(most, 2.0)
    sizes = []
    for drawn in posterior.draws.tables(scopes):
        p, variance = drawn.mean(axis=0), drawn.var(axis=0, ddof=1).sum()
        sizes.append(float((p * (1 - p)).sum() / max(variance, 1e-300)))
    effect = 1.0 if posterior.weighting is None else posterior.weighting.design_effect
    return min(float(np.median(sizes)), most) / effect


def _no_records(model: LogLinearModel) -> pd.DataFrame:
    """An empty frame from which pgmpy takes the variables, here numbers; the score looks at nothing else of it."""
    d = len(model.cliques.variables)
    return pd.DataFrame(np.zeros((2, d), dtype=int), columns=range(d))

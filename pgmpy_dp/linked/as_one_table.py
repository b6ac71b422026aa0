"""A model of linked tables as one of a random child, its parent and another child: for a page to ask."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.schema import Schema

if TYPE_CHECKING:
    from pgmpy_dp.linked.linked_model import LinkedModel


def of_a_random_child(model: LinkedModel) -> MarkovNetwork:
    """The distribution of a random child, its parent and another child of that parent.

    Parameters
    ----------
    model : LinkedModel

    Returns
    -------
    MarkovNetwork
        Columns of parents, counts and the number of children under their names, ``"person.age"`` of the child, and
        ``"other person.age"`` of another one, who is absent where there is none; ``"previous person.age"`` of the child
        before where children have an order. With the model's posterior, if it has one.

    Raises
    ------
    ValueError
        If one child of a parent counts.

    Notes
    -----
    The wide model with each state of the number of children weighted as
    :meth:`~pgmpy_dp.LinkedModel.query` does, and the child in the first slot with no cell outside the schema, in
    columns that nobody asked about too. Intervals are of that slot alone, not of both, so a little wider than those of
    :class:`~pgmpy_dp.linked.linked_posterior.LinkedPosterior`. How many records an answer rests on is not said, for
    there is a model of children here, and a number of parents.
    """
    if model.linked.most < 2:
        raise ValueError("most=1: the model has no pairs of children, which the page is about; write a report")
    wide, child = model._wide, model.linked.names[1]
    names, weights = wide.schema.variables, model._weights(1, True)
    title: dict[Hashable, Hashable] = {name: name for name in names}
    states: dict[Hashable, Any] = {name: wide.schema[name] for name in names}
    kept = [np.arange(wide.schema.cardinality(name)) for name in names]
    kept[names.index(wide.size)] = np.flatnonzero(weights)
    texts = [f"{n}{'+' if n == model.linked.most else ''}" for n, _ in wide.patterns]
    states[wide.size] = [texts[k] for k in np.flatnonzero(weights)]
    beside = "previous" if wide.ordered else "other"
    within = {}
    for name, own, other in zip(wide.child, *wide.slots, strict=True):
        title |= {own: f"{child}.{name}", other: f"{beside} {child}.{name}"}
        kept[names.index(own)] = np.arange(wide.child.cardinality(name))
        states[own] = wide.child[name]
    for (table, name), values in model._within.items():
        within[f"{child}.{name}" if table == child else name] = values
    sizes = tuple(map(len, kept))
    titles = tuple(title[name] for name in names)

    def restricted(cliques: Cliques, theta: np.ndarray) -> tuple[Cliques, np.ndarray]:
        flat = []
        for scope, part, shape in zip(cliques.indices, cliques.slices, cliques.shapes, strict=True):
            some: Any = (..., *np.ix_(*(kept[i] for i in scope)))
            flat.append(theta[..., part].reshape(*theta.shape[:-1], *shape)[some].reshape(*theta.shape[:-1], -1))
        logs = np.log(weights[weights > 0])
        positive = np.broadcast_to(logs, (*theta.shape[:-1], len(logs)))
        scopes = (*(tuple(title[name] for name in scope) for scope in cliques.scopes), (wide.size,))
        return Cliques(titles, sizes, scopes), np.concatenate([*flat, positive], axis=-1)

    cliques, theta = restricted(model._model.cliques, model._model.theta)
    graph = nx.Graph()
    graph.add_nodes_from(titles)
    graph.add_edges_from(pair for scope in cliques.scopes for pair in itertools.combinations(scope, 2))
    declared = {title[name]: states[name] for name in names}
    schema = Schema(declared, texts=[name for name, own in declared.items() if isinstance(own, Sequence)])
    one = LogLinearModel(cliques, theta, model._model.memory_limit)
    network = MarkovNetwork.from_log_linear(one, graph, schema, model.privacy, within)
    if model.posterior is not None:
        own = model.posterior.wide
        drawn_cliques, drawn = restricted(own.draws.cliques, own.draws.theta)
        network.posterior = ParameterPosterior(
            *(replace(own.draws, cliques=drawn_cliques, theta=drawn), network.schema or schema, graph, own.privacy),
            model=network.to_log_linear(),
            discrepancy=own.discrepancy,
            within=within,
        )
    return network

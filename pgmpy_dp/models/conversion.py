"""Between the log-space engine and pgmpy's objects: factors one way and back, and junction trees.

pgmpy works with products of probabilities in float64 and keeps factors in sets, so the scale of
its input decides whether it overflows, stops before it has converged, or mistakes two
factors for one. What is handed over here is chosen for that:

* factors: one for each maximal clique of the graph, so that no two have the same scope; each with
  mean 1 before the log-partition function of its component is spread evenly over the component's
  factors. So partial products stay near 1, and the product sums to 1 on each component by itself:
  pgmpy's variable elimination forgets the mass of a component that the query does not touch.
  Where potentials are so large that this would overflow, the factors are conditional distributions
  or balanced against one another (`pgmpy_dp.models.bounded_tables`): always finite, never a warning;
* junction trees: the conditional distributions p(clique minus separator | separator) from the root
  outwards, so that pgmpy's belief propagation is exact after its first sweep, on chains of any length.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

import networkx as nx
import numpy as np
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, JunctionTree

from pgmpy_dp.inference.belief_propagation import SumProduct
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import Inference
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.models.answers import log_linear_of_tables
from pgmpy_dp.models.bounded_tables import bounded_tables
from pgmpy_dp.schema.provenance import listed

MERGED_CELLS_LIMIT = 2**20
"""Cells up to which the tables of one maximal clique become one factor (8 MiB); public, and only about memory."""


def log_linear_to_factors(
    model: LogLinearModel, graph: nx.Graph, states: Mapping[Hashable, Sequence]
) -> list[DiscreteFactor]:
    """Factors whose product is the distribution of `model`, normalised.

    Parameters
    ----------
    model : LogLinearModel
        Its scopes must be cliques of `graph`.
    graph : networkx.Graph
        The graph; the order of its nodes decides the order of factors and of their axes.
    states : mapping of variable to sequence
        State names, in the order of the tables.

    Returns
    -------
    list of DiscreteFactor
        One for each maximal clique that holds a table. Where merging the tables of a clique would
        take more than ``MERGED_CELLS_LIMIT`` cells, and under loopy inference, which depends on what the
        tables are, one for each of its scopes. Under loopy inference the product sums to 1 only as far as
        its estimate of the log-partition function is right.

    Notes
    -----
    All factors are finite, whatever the potentials, and there is no warning; a number below the range of floats becomes
    the smallest float. The distribution is right to within rounding for potentials of any size, with one exception:
    interactions of several hundred may contradict one another around a cycle of a graph that is not chordal. Then no
    product of floats over its cliques has the distribution, and the factors are of a model whose marginals are the
    same to 1e-7; under loopy inference, of a less extreme model. See `pgmpy_dp.models.bounded_tables`.
    """
    cliques = model.cliques
    cardinality = dict(zip(cliques.variables, cliques.cardinalities, strict=True))
    merged: dict[tuple, np.ndarray] = {}
    for host, scope, table in _hosts(graph, cliques, model.theta):
        merge = model.inference == "exact" and math.prod(cardinality[name] for name in host) <= MERGED_CELLS_LIMIT
        axes = host if merge else tuple(name for name in host if name in scope)
        total = merged.setdefault(axes, np.zeros([cardinality[name] for name in axes]))
        shared = [name for name in axes if name in scope]
        aligned = table.transpose([scope.index(name) for name in shared])
        total += aligned.reshape([cardinality[name] if name in scope else 1 for name in axes])
    factors: dict[tuple, DiscreteFactor] = {}
    for component in nx.connected_components(graph):
        names = tuple(name for name in graph if name in component)
        tables = {axes: table for axes, table in merged.items() if axes[0] in component}
        part = Cliques(names, tuple(cardinality[name] for name in names), tuple(tables))
        joined = LogLinearModel(part, part.join(tables.values()), model.memory_limit, model.inference)
        bounded = zip(tables, bounded_tables(joined), strict=True)
        factors |= {axes: _factor(axes, values, states) for axes, values in bounded}
    return [factors[axes] for axes in merged]


def factors_to_log_linear(
    factors: Iterable[DiscreteFactor],
    variables: Iterable[Hashable],
    memory_limit: int,
    inference: Inference = "exact",
) -> LogLinearModel:
    """The log-linear model of a product of factors; zeros become structural zeros.

    Parameters
    ----------
    factors : iterable of DiscreteFactor
        Non-negative and finite, each state order the same wherever a variable occurs.
    variables : iterable of hashable
        All variables, in the order the model will have them.
    memory_limit : int
        Bytes that inference may allocate.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        What the model's marginals are computed by.

    Raises
    ------
    ValueError
        If there is no factor for a variable, a factor has negative or non-finite values, or two
        factors order the states of a variable differently.
    """
    factors = list(factors)
    variables = tuple(variables)
    states: dict[Hashable, list] = {}
    for factor in factors:
        for name in factor.variables:
            if states.setdefault(name, factor.state_names[name]) != factor.state_names[name]:
                raise ValueError(
                    f"two factors give variable {name!r} the states {states[name]} and {factor.state_names[name]}; "
                    "give every factor the same states in the same order"
                )
        values = np.asarray(factor.values)
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"the factor on {factor.variables} has negative, infinite or NaN values; correct it")
    missing = [name for name in variables if name not in states]
    if missing:
        raise ValueError(f"no factor has the variables {missing}; fit the model, or add a factor for each of them")
    sizes = {name: len(listed) for name, listed in states.items()}
    scopes, tables = [factor.variables for factor in factors], [factor.values for factor in factors]
    return log_linear_of_tables(scopes, tables, variables, sizes, memory_limit, inference)


def on_all_edges(model: LogLinearModel, graph: nx.Graph) -> LogLinearModel:
    """The same distribution with a table for each edge of a graph: of zeros where none of the model holds it."""
    cliques = model.cliques
    held = {frozenset(pair) for scope in cliques for pair in itertools.combinations(scope, 2)}
    more = [edge for edge in graph.edges if frozenset(edge) not in held]
    joined = Cliques(cliques.variables, cliques.cardinalities, (*cliques.scopes, *more))
    theta = np.concatenate([model.theta, np.zeros(joined.n_cells - cliques.n_cells)])
    return LogLinearModel(joined, theta, model.memory_limit, model.inference)


def to_pgmpy_bayesian_network(
    model: LogLinearModel, states: Mapping[Hashable, Sequence], structure: nx.DiGraph | None = None
) -> DiscreteBayesianNetwork:
    """A pgmpy Bayesian network of a model: on the chordal graph of its junction tree, or on a graph that was passed.

    Parameters
    ----------
    model : LogLinearModel
    states : mapping of variable to sequence
        State names, in the order of the tables.
    structure : networkx.DiGraph, optional
        Without directed cycles, over all variables.

    Returns
    -------
    pgmpy.models.DiscreteBayesianNetwork
        By itself with the distribution of the model: from the root of the tree outwards each variable has a CPD given
        the separator of its clique and the variables of the clique before it. On a given structure each variable has
        the model's distribution given its parents, and the network is the distribution with the independences of the
        structure that is nearest to the model, in Kullback-Leibler divergence from it. Where parents have the
        probability 0 together, the CPD is uniform.

    Raises
    ------
    InferenceUnavailable
        Under loopy inference, but for a structure whose families (a variable with its parents) are in tables.
    InferenceTooLarge
        If the table of a family is too large.
    """
    network = DiscreteBayesianNetwork()
    if structure is not None:
        network.add_nodes_from(structure.nodes)
        network.add_edges_from(structure.edges)
        families = [(name, *structure.predecessors(name)) for name in structure]
        tables = model.marginals_of(families)
        network.add_cpds(*(_cpd(family, table, states) for family, table in zip(families, tables, strict=True)))
        return network
    network.add_nodes_from(model.cliques.variables)
    for residual, separator, table in model.conditionals():
        # The last variable has the clique before it; of the others the later ones are summed out.
        for k in reversed(range(len(residual))):
            parents = (*residual[:k], *separator)
            network.add_edges_from((parent, residual[k]) for parent in parents)
            network.add_cpds(_cpd((residual[k], *parents), np.moveaxis(table, k, 0), states))
            table = table.sum(axis=k)
    return network


def _cpd(family: Sequence[Hashable], table: np.ndarray, states: Mapping[Hashable, Sequence]) -> TabularCPD:
    """The first variable's distribution given the others, from their table."""
    name, *parents = family
    joint = table.reshape(len(table), -1)
    total = joint.sum(axis=0)
    return TabularCPD(
        name,
        len(joint),
        np.where(total > 0, joint / np.where(total > 0, total, 1.0), 1.0 / len(joint)),
        evidence=parents or None,
        evidence_card=[len(states[parent]) for parent in parents] or None,
        state_names={each: listed(states[each]) for each in family},
    )


def to_pgmpy_junction_tree(model: LogLinearModel, states: Mapping[Hashable, Sequence]) -> JunctionTree:
    """A pgmpy junction tree with the distribution of `model`, its first node the root.

    pgmpy refuses an edge between clusters that share no variable, so components of the graph are
    joined by a cluster of two variables, one from each side, which are independent in it.

    Parameters
    ----------
    model : LogLinearModel
        Calibrated here.
    states : mapping of variable to sequence
        State names.
    """
    engine = SumProduct(model.cliques, memory_limit=model.memory_limit)
    engine.calibrate(model.theta)
    names, sizes = model.cliques.variables, model.cliques.cardinalities
    tree, parents = JunctionTree(), engine.plan.tree.parents
    clusters: dict[int, tuple] = {}
    # Parents first; `conditionals` counts down through the plan's cliques.
    for k, (residual, separator, conditional) in zip(reversed(range(len(parents))), engine.conditionals(), strict=True):
        cluster = tuple(names[i] for i in (*residual, *separator))
        table = conditional.reshape([sizes[i] for i in (*residual, *separator)])
        clusters[k] = cluster
        if parents[k] < 0:
            tree.add_node(cluster)
        elif separator:
            tree.add_edge(clusters[parents[k]], cluster)
        else:
            host, guest = clusters[parents[k]], cluster[0]
            alone = table.sum(axis=tuple(range(1, table.ndim)))
            bridge = (guest, host[0])
            tree.add_edge(host, bridge)
            tree.add_factors(_factor(bridge, np.repeat(alone[:, None], len(states[host[0]]), axis=1), states))
            if len(cluster) == 1:
                clusters[k] = bridge  # it already is the distribution of this isolated variable
                continue
            tree.add_edge(bridge, cluster)
            marginal = alone.reshape((-1,) + (1,) * (table.ndim - 1))
            table = np.divide(table, marginal, out=np.zeros_like(table), where=marginal > 0)
        tree.add_factors(_factor(cluster, table, states))
    return tree


def _hosts(graph: nx.Graph, cliques: Cliques, theta: np.ndarray) -> list[tuple[tuple, tuple, np.ndarray]]:
    """(maximal clique, scope, table) of each table, in an order that depends on the order of nodes alone."""
    nodes = list(graph.nodes)
    position = {name: i for i, name in enumerate(nodes)}
    # Integer labels: the order in which networkx finds cliques of strings changes from run to run.
    numbered = nx.Graph((position[u], position[v]) for u, v in graph.edges())
    numbered.add_nodes_from(position.values())
    maximal = sorted(sorted(clique) for clique in nx.find_cliques(numbered))
    at: dict[int, list[int]] = {}
    for k, clique in enumerate(maximal):
        for i in clique:
            at.setdefault(i, []).append(k)
    placed = []
    for scope, table in zip(cliques.scopes, cliques.split(theta), strict=True):
        wanted = {position[name] for name in scope}
        rarest = min(wanted, key=lambda i: len(at[i]))
        k = next(k for k in at[rarest] if wanted.issubset(maximal[k]))
        placed.append((k, scope, table))
    placed.sort(key=lambda item: item[0])
    return [(tuple(nodes[i] for i in maximal[k]), scope, table) for k, scope, table in placed]


def _factor(axes: Sequence[Hashable], values: np.ndarray, states: Mapping[Hashable, Sequence]) -> DiscreteFactor:
    return DiscreteFactor(
        list(axes), list(values.shape), values, state_names={name: listed(states[name]) for name in axes}
    )

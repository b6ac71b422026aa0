"""A prior model, public or learned from an earlier release, in the states of another schema if need be."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from scipy.special import rel_entr

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import largest_clique
from pgmpy_dp.learning.fine_grids import fine_states
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.learning.prior_model import prior_potentials, tables_of_prior
from pgmpy_dp.learning.privacy_record import Privacy, record_of
from pgmpy_dp.models.conversion import factors_to_log_linear
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Number, Schema

_KINDS = "a MarkovNetwork, pgmpy's Markov or Bayesian network, a LogLinearModel, a Release, or the file of one"


@dataclass(frozen=True, eq=False)
class Prior:
    """The model that an estimator's argument ``prior`` stands for.

    Attributes
    ----------
    model : LogLinearModel
    declared : dict of variable to Number or tuple of states
        The prior's states before any were merged; empty for a `LogLinearModel`, which has numbers only.
    states : dict of variable to tuple
        The prior's own states.
    within : dict of variable to Values
        How values are distributed within them, where that is not uniform.
    privacy : Privacy, optional
        The record of the release that it was learned from; None for a public prior.
    """

    model: LogLinearModel
    declared: Mapping[Hashable, Number | tuple]
    states: Mapping[Hashable, tuple]
    within: Mapping[Hashable, Values]
    privacy: Privacy | None = None

    @classmethod
    def of(cls, value: Any) -> Prior:
        """Read the argument ``prior``.

        Raises
        ------
        TypeError, ValueError
            For what is none; the message names the argument.
        """
        if isinstance(value, str | os.PathLike):
            value = _read(value)
        if isinstance(value, Release):
            value = _learned_from(value)
        if isinstance(value, LogLinearModel):
            prior = cls(value, {}, {}, {})
        elif isinstance(value, MarkovNetwork):
            states = {name: tuple(value.states[name]) for name in value.nodes if name in value.states}
            numbers = {name: number for name, number in value.numbers.items() if name not in value.within}
            merged = {name: _as_declared(values.declared) for name, values in value.within.items()}
            prior = cls(value.to_log_linear(), {**states, **numbers, **merged}, states, value.within, record_of(value))
        elif isinstance(value, DiscreteMarkovNetwork | DiscreteBayesianNetwork):
            network = value.to_markov_model() if isinstance(value, DiscreteBayesianNetwork) else value
            model = factors_to_log_linear(network.factors, network.nodes, DEFAULT_MEMORY_LIMIT, "auto")
            states = {name: tuple(of[name]) for f in network.factors for of in (f.state_names,) for name in f.variables}
            prior = cls(model, states, states, {}, record_of(value))
        else:
            raise TypeError(f"prior={value!r} is a {type(value).__name__}; pass {_KINDS}")
        if prior.model.inference == "exact" and not prior.model.is_possible:
            raise ValueError("prior gives every record the probability 0; correct its factors")
        return prior

    def check(self, schema: Schema) -> None:
        """Raise a ValueError for a variable whose states cannot be told in those of the schema.

        Numbers may be divided otherwise, and states be in another order; variables that one of the two lacks are
        left out of account.
        """
        sizes = dict(zip(self.model.cliques.variables, self.model.cliques.cardinalities, strict=True))
        for name in schema:
            if name not in sizes:
                continue
            wanted, declared = schema[name], self.declared.get(name)
            if declared is None:
                fits = not isinstance(wanted, Number) or wanted.divided
                fits = fits and sizes[name] == schema.cardinality(name)
            elif isinstance(wanted, Number):
                fits = isinstance(declared, Number) or (wanted.divided and declared == schema.states[name])
            else:
                fits = not isinstance(declared, Number) and set(declared) == set(schema.states[name])
            if not fits:
                what = f"{sizes[name]} states" if declared is None else repr(declared)
                raise ValueError(
                    f"prior has {what} for the variable {name!r}, the schema has {wanted!r}: rename or merge the "
                    "prior's states, or remove the variable from it, which leaves it without a prior"
                )
        if not any(name in sizes for name in schema):
            raise ValueError(f"prior has none of the variables {list(schema)}; pass one that has some, or prior=None")

    def tables(self, scopes: Sequence[tuple], release: Release) -> list[np.ndarray]:
        """The prior's tables of sets of variables, in the states of a release.

        Parameters
        ----------
        scopes : sequence of tuples of variables
        release : Release
            Of a schema that `check` took.

        Returns
        -------
        list of ndarray
            Probabilities, see `tables_of_prior`.
        """
        schema, within = release.schema, fine_states(release)
        known = {name for scope in scopes for name in scope if name in self.model.cliques.position}
        maps = {name: self._translation(name, schema, within.get(name)) for name in known}
        tables = tables_of_prior(self.model, scopes, schema.cardinalities)
        for k, scope in enumerate(scopes):
            for axis, name in enumerate(scope):
                shares = maps.get(name)
                if shares is not None:
                    tables[k] = np.moveaxis(np.tensordot(tables[k], shares, axes=(axis, 0)), -1, axis)
        return tables

    def further_tables(
        self, release: Release, measured: Sequence[tuple], forbidden: Sequence[tuple], max_clique_cells: int
    ) -> dict[tuple, np.ndarray]:
        """Further tables of the prior, of several variables, for a model to have beside those that were measured.

        Parameters
        ----------
        release : Release
        measured : sequence of scopes
            The tables that the model has in any case; tables within these are left out.
        forbidden : sequence of sets of variables
            No table has all variables of one of these.
        max_clique_cells : int
            The limit for cliques of the model's junction tree; tables that would exceed it are left out.

        Returns
        -------
        dict of scope to ndarray
            Probabilities in the states of the release: of up to three variables, pairs in place of larger tables.
        """
        schema = release.schema
        one_way = [(name,) for name in schema.variables]
        layout = Cliques(schema.variables, tuple(schema.cardinalities.values()), (*one_way, *measured))
        held = [set(scope) for scope in measured]
        wanted: list[tuple] = []
        for scope in self.model.cliques.scopes:
            known = [name for name in schema.variables if name in scope]
            wanted += [tuple(known)] if len(known) <= 3 else itertools.combinations(known, 2)
        wanted = [scope for scope in dict.fromkeys(wanted) if len(scope) > 1]
        tables = dict(zip(wanted, self.tables(wanted, release), strict=True))
        # There may not be room for all. A triple tells at least what its pairs do, so none of these comes before it.
        for scope in sorted(wanted, key=lambda scope: (_information(tables[scope]), len(scope)), reverse=True):
            banned = any(set(names) <= set(scope) for names in forbidden)
            if banned or any(set(scope) <= other for other in held):
                continue
            if largest_clique(layout, [tuple(layout.position[name] for name in scope)]) <= max_clique_cells:
                held.append(set(scope))
                layout = replace(layout, scopes=(*layout.scopes, scope))
        return {scope: tables[scope] for scope in layout.scopes[len(one_way) + len(measured) :]}

    def base(self, release: Release, forbidden: Sequence[tuple], max_clique_cells: int) -> LogLinearModel:
        """The prior as a model in the states of a release, whose junction tree is small enough."""
        tables = self.further_tables(release, (), forbidden, max_clique_cells)
        scopes = [(name,) for name in release.schema.variables]
        one_way = dict(zip(scopes, self.tables(scopes, release), strict=True))
        sizes = tuple(release.schema.cardinalities.values())
        cliques = Cliques(release.schema.variables, sizes, (*one_way, *tables))
        return LogLinearModel(cliques, prior_potentials(cliques, [*one_way.values(), *tables.values()]))

    def _translation(self, name: Hashable, schema: Schema, within: Values | None) -> np.ndarray | None:
        """P(state of the schema | state of the prior); None where they are the same."""
        ours, theirs = self.states.get(name), schema.states[name]
        values, number = self.within.get(name), schema.numbers.get(name)
        declared = self.declared.get(name)
        if ours is None or (ours == theirs and (number is not None or (values is None and within is None))):
            return None
        if number is not None and isinstance(declared, Number):
            values = Values(declared) if values is None else values
            spans = [values.shares(low, high, "both" if closed else "left") for low, high, closed in number.spans()]
            others = [np.array([state == other for state in ours], dtype=float) for other in theirs[len(spans) :]]
            shares = np.array([*spans, *others]).T
        else:
            finer = ours if values is None else values.finer
            split = np.eye(len(ours))
            if values is not None and values.state is not None:
                split = np.zeros((len(ours), len(finer)))
                split[values.state, np.arange(len(finer))] = values.within
            coarser = {state: k for k, state in enumerate(theirs)}
            if within is not None and within.state is not None:
                coarser = dict(zip(within.finer, within.state.tolist(), strict=True))
            joined = np.zeros((len(finer), len(theirs)))
            joined[np.arange(len(finer)), [coarser[state] for state in finer]] = 1.0
            shares = split @ joined
        totals = shares.sum(axis=1, keepdims=True)
        # What has no state any more, such as missing numbers, says nothing about the others.
        return np.where(totals > 0, shares / np.where(totals > 0, totals, 1.0), 1.0 / len(theirs))


def prior_of(estimator: Any) -> Prior | None:
    """An estimator's prior, read or learned once for each that is passed."""
    if estimator.prior is None:
        return None
    known = getattr(estimator, "_prior_read", None)
    if known is None or known[0] is not estimator.prior:
        estimator._prior_read = known = estimator.prior, Prior.of(estimator.prior)
    return known[1]


def _as_declared(declared: Number | Sequence) -> Number | tuple:
    return declared if isinstance(declared, Number) else tuple(declared)


def _read(path: str | os.PathLike) -> MarkovNetwork | Release:
    """The model or the release in a file."""
    if not os.path.isfile(path):
        raise ValueError(f"prior={os.fspath(path)!r} is not a file; pass that of a model or of a release")
    try:
        return MarkovNetwork.load(path)
    except ValueError as no_model:
        try:
            return Release.load(os.fspath(path))
        except ValueError:
            raise ValueError(f"prior={os.fspath(path)!r} is neither a model's file nor a release's") from no_model


def _learned_from(release: Release) -> MarkovNetwork:
    """The model that `CollectiveMAP` learns from all tables of a release."""
    if release.kind != "marginals":
        raise ValueError(f"prior is a release of kind {release.kind!r}, without tables; pass the model learned from it")
    graph, scopes = nx.Graph(), [release.schema.leaf_scope(scope) for scope in release.scopes]
    graph.add_nodes_from(name for name in release.schema if any(name in scope for scope in scopes))
    graph.add_edges_from(pair for scope in scopes for pair in itertools.combinations(scope, 2))
    model = collective_map(noisy_marginals(release, tuple(graph.nodes)), inference="auto").model
    return MarkovNetwork.from_log_linear(model, graph, release.schema, Privacy.of(release), fine_states(release))


def _information(table: np.ndarray) -> float:
    """The relative entropy of a table from the product of its margins (total correlation), in nats."""
    margins = [table.sum(axis=tuple(b for b in range(table.ndim) if b != a)) for a in range(table.ndim)]
    return float(rel_entr(table, functools.reduce(np.multiply.outer, margins)).sum())

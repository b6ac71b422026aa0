"""The base of estimators of a given graph's parameters: one release of noisy marginals, then learning from it.

An estimator joins the two halves of the package and belongs to neither: it hands the records to the
boundary (``pgmpy_dp.private``), which charges the ledger and returns a release, and hands the release
to a function of ``pgmpy_dp.models``. It keeps the release and what follows from it, never the records.
"""

from __future__ import annotations

import itertools
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from pgmpy import parameter_estimator
from pgmpy.base import DAG, UndirectedGraph
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from tqdm.auto import tqdm

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import (
    Inference,
    checked_inference,
    choose_inference,
    require_inference,
)
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.learning.display import ShowsFit
from pgmpy_dp.learning.fine_grids import fine_states, largest_sizes
from pgmpy_dp.learning.least_noise import NOISES
from pgmpy_dp.learning.level_engine import leaf_tables
from pgmpy_dp.learning.level_plan import at_every_level, levels_in
from pgmpy_dp.learning.maximum_likelihood import Fit
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.noisy_tables import checked_weights, noisy_marginals
from pgmpy_dp.learning.opened_table import new_table, schema_and_table
from pgmpy_dp.learning.options import Settings, anything, by, one_of, option, whole
from pgmpy_dp.learning.privacy_record import Privacy, released
from pgmpy_dp.learning.private_base import TABLE_EXAMPLES, TableFit
from pgmpy_dp.learning.probe_tables import tables_within
from pgmpy_dp.learning.structural_zeros import with_zeros
from pgmpy_dp.learning.suggested_rules import SuggestsRules
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.pgmpy_config import bar_options, bars_shown
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

Progress = Callable[[], None] | None


class BaseMarginalsEstimator(SuggestsRules, ShowsFit, TableFit, parameter_estimator.DiscreteParameterEstimator):
    """Parameters of a given undirected graph, learned from noisy contingency tables of its cliques.

    Abstract: a subclass says in `_learn` how the parameters follow from the tables. One that learns from another
    kind of release overrides `_release_kinds`, `_settings`, `_run`, `_rehearse` and `_learned` instead.

    Parameters
    ----------
    epsilon, delta, rho, state_names, adjacency, n_records
    cliques : list of tuple of variables, optional
        The tables to release, each a clique of the graph; together they must cover its nodes and
        edges. Default: one for each edge and for each isolated node; of a Bayesian network one for each family (a
        variable with its parents) that is not part of another. A table may name a level of a variable; where the schema
        has levels, the default is each of these tables at every level, with a tenth of the budget for the variables'
        own tables.
    noise : {"auto", "laplace", "gaussian"}
        Noise of the tables; "auto" takes what suits the budget, and the ledger if others spend from it
        (:func:`~pgmpy_dp.learning.least_noise.noise_for_ledger`).
    weights : list of float, optional
        Share of the budget of each table, up to a common factor. Default: equal.
    memory_limit : int
        Bytes that inference may take.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        Loopy belief propagation is approximate and takes graphs of any width; "auto" uses it where exact inference
        does not fit in `memory_limit`. See `pgmpy_dp.inference.loopy_belief_propagation.LoopySettings`.
    random_state

    Attributes
    ----------
    parameters_ : list of DiscreteFactor, or of TabularCPD
        One factor for each maximal clique of the graph; their product sums to 1. Of a Bayesian network its CPDs.
    model_ : MarkovNetwork
        The graph with factors, and with the edges that rules about what is impossible need. Of a Bayesian network the
        moral graph, in which parents of a child are joined.
    bayesian_network_ : DiscreteBayesianNetwork or None
        Where `fit` was given a Bayesian network, that graph with CPDs: of all distributions with its independences the
        nearest to `model_`'s. A rule of the schema that no family has all variables of is `model_`'s alone.
    release_, privacy_, n_features_in_, feature_names_in_
    n_records_, n_records_sd_ : float
        The public number of records, or its estimate from the noisy tables with its standard deviation.
    converged_ : bool
    status_ : str
    n_iter_ : int
    objective_ : float
    inference_ : {"exact", "loopy"}
        The inference of the fit.
    inference_status_ : InferenceStatus
        How it ended: whether it converged, its residual, how many calibrations did not.
    """

    _tags: ClassVar[dict[str, Any]] = {
        "supported_model_types": (DiscreteMarkovNetwork, UndirectedGraph, nx.Graph, DAG, DiscreteBayesianNetwork),
        "supports_weighted_data": False,
        "task": "parameters",
        "model_kind": "undirected",
        "data_kind": "discrete",
        "guarantees": ("pure", "zcdp", "approximate"),
        "adjacency": ("add_remove", "replace_one"),
    }

    _release_kinds: ClassVar[tuple[str, ...]] = ("marginals",)
    _examples = (TABLE_EXAMPLES[0], {**TABLE_EXAMPLES[1], "noise": "gaussian"})

    cliques: list[tuple] | None = option(None, anything())
    noise: str = option("auto", one_of(NOISES))
    weights: list[float] | None = option(None, anything())
    _: KW_ONLY
    memory_limit: int = option(DEFAULT_MEMORY_LIMIT, whole(1))
    inference: Inference = option("exact", by(checked_inference))

    def __post_init__(self) -> None:
        # pgmpy's base counts only as a type (`DiscreteBayesianNetwork.fit` takes no other estimators). Its
        # constructor would set states again, and its way to start a fit reads them from the records.
        super(parameter_estimator.DiscreteParameterEstimator, self).__init__()

    @abstractmethod
    def _learn(self, noisy: NoisyMarginals, progress: Progress) -> Fit:
        """The parameters from noisy tables: a pure function of the release and of this object's options."""

    def _learn_from(self, release: Release, noisy: NoisyMarginals, progress: Progress) -> Fit:
        """The parameters from the noisy tables of a release, for a subclass that needs to know the states in them."""
        return self._learn(noisy, progress)

    def _joined(self, graph: nx.Graph, release: Release) -> nx.Graph:
        """The graph with the edges that public tables need, for a subclass that takes such."""
        return graph

    def _agreeing(self, model: MarkovNetwork, release: Release) -> tuple[MarkovNetwork, str | None]:
        """The model that agrees with public tables, and a warning, for a subclass that takes such."""
        return model, None

    def fit(
        self,
        model: nx.Graph,
        data: Any = None,
        sample_weight: None = None,
        *,
        unit: Hashable = None,
        rows_per_unit: int | str | None = None,
    ) -> BaseMarginalsEstimator:
        """Release the tables of the graph's cliques under the budget, then learn from them.

        Parameters
        ----------
        model : MarkovNetwork, any undirected graph, or a Bayesian network
            Its nodes are columns of the data. It is not changed; see ``MarkovNetwork.fit``. Of a Bayesian network, or
            another directed graph without directed cycles, the families are measured, and ``bayesian_network_`` is the
            same graph with CPDs.
        data : dataframe or PrivateTable
            Anything with columns, or files. A `PrivateTable` is charged to its own ledger, which several
            fits can share.
        sample_weight : None
            Not supported: a record of weight w would need w times the noise.
        unit : hashable, optional
            Column of the data that says whose record it is, to protect units (persons, say) with all their records:
            see `PrivateTable`.
        rows_per_unit : int or "shares", optional
            How much of a unit counts; default 1: one of its records, drawn at random.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For a public argument that cannot be used, before anything is spent.
        BudgetExceeded
            If the ledger of a `PrivateTable` does not allow the budget; nothing is spent.
        InferenceTooLarge
            If inference on the graph would exceed `memory_limit`; nothing is spent.

        Notes
        -----
        If learning fails after the tables were released, they are paid for and not lost: the exception
        has them as its attribute ``release``, for :meth:`fit_release`.
        """
        if sample_weight is not None:
            raise ValueError(
                "sample_weight was given, but a weight scales how much one record changes the tables, which the noise "
                "is not calibrated for; pass sample_weight=None"
            )
        graph = checked_model_graph(model)
        if data is None:
            raise TypeError("data=None: pass the records as the second argument, fit(model, data), or a PrivateTable")
        taken = self._as_checked()
        budget = taken._budget()
        schema, table = schema_and_table(taken, data, unit, rows_per_unit)
        scopes, weights = taken._tables(model, graph, schema)
        cliques = taken._checked_cliques(graph, schema, scopes)
        settings = taken._settings(cliques.scopes, weights)
        taken._rehearse()
        if table is None:
            graph_schema = schema.subset(name for name in schema if name in graph)
            table = new_table(taken, data, graph_schema, budget, unit, rows_per_unit)
        return self._take(taken, released(table, taken._run, settings, budget), table, graph=graph, passed=model)

    def fit_release(self, model: nx.Graph, release: Release) -> BaseMarginalsEstimator:
        """Learn again from tables that were released before; needs no records and costs nothing.

        If `state_names` is a `Schema`, its rules about what is impossible count, not the release's.

        Parameters
        ----------
        model : MarkovNetwork, any undirected graph, or a Bayesian network
            Its nodes are the variables of the release, its edges lie inside the released tables. Tables that were drawn
            at random (the probes of `PrivateNetwork`) are left out where they need further edges. What the tables do
            not tell of a Bayesian network's families, a warning names.
        release : Release
            As in ``release_``, or read by ``Release.load``.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For what is no release of the kind that this estimator learns from, other states than the release's, and
            edges outside the released tables.
        """
        graph, taken = checked_model_graph(model), self._as_checked()
        taken._check_release(release)
        if self.state_names is not None:
            declared = Schema.coerce(self.state_names)
            different = declared.matches(release.schema, [name for name in graph if name in declared])
            if different:
                raise ValueError(f"state_names and the release have other states for {different}; drop state_names")
        scopes = [release.scopes[c] for c in tables_within(release, graph)]
        taken._checked_cliques(graph, taken._schema(release, graph), scopes)
        return self._take(taken, release, graph=graph, passed=model)

    def _schema(self, release: Release, graph: nx.Graph) -> Schema:
        """The model's schema: `state_names` if it was passed, whose rules may differ from the release's."""
        declared = None if self.state_names is None else Schema.coerce(self.state_names)
        if declared is None or any(name not in declared for name in graph):
            return release.schema
        return release.schema.replaced({}, declared.subset(graph.nodes).impossible)

    def _noisy(self, release: Release, graph: nx.Graph) -> NoisyMarginals:
        """The released tables, with the rules that the model obeys."""
        zeros = self._schema(release, graph).subset(graph.nodes).zeros
        noisy = noisy_marginals(release, tuple(graph.nodes), tables=tables_within(release, graph))
        return replace(noisy, impossible=tuple(zeros))

    def _checked_cliques(self, graph: nx.Graph, schema: Schema, scopes: Any) -> Cliques:
        """The tables of the model, whose inference fits in memory."""
        unknown = [name for name in graph if name not in schema]
        if alone := [name for name in unknown if name in schema.constants]:
            raise ValueError(f"variable {alone[0]!r} has 1 state, which tells nothing; remove it from the graph")
        if unknown:
            raise ValueError(
                f"the model has the variables {unknown}, which are not in state_names; "
                "add their states, or remove them from the graph"
            )
        if scopes is not None:
            _check_scopes(graph, scopes, schema)
        sizes, levels = largest_sizes(schema), levels_in(schema, scopes or ())
        names = (*graph, *levels)
        tables = Cliques.from_graph(graph, sizes).scopes if scopes is None else map(tuple, scopes)
        cliques = Cliques(names, tuple(sizes[name] for name in names), tuple(tables))
        leaves = leaf_tables(cliques, levels)
        covered = nx.Graph((u, v) for scope in leaves.scopes for u in scope for v in scope)
        absent = [name for name in graph if name not in covered]
        absent += [edge for edge in graph.edges() if not covered.has_edge(*edge)]
        if absent:
            raise ValueError(
                f"cliques: no table covers the nodes or edges {absent} of the model; add one that does (cliques=None "
                "takes one for each edge), or remove them from the graph"
            )
        # What "auto" is settled by is the fit, which does not know of rules; the model that obeys them has to fit too.
        chosen = choose_inference(leaves, self.inference, self.memory_limit)
        zeros = schema.subset(graph.nodes).fine().zeros
        for layout in (leaves, with_zeros(leaves, zeros)):
            require_inference(layout, chosen, self.memory_limit)
        return cliques

    def _tables(self, model: nx.Graph, graph: nx.Graph, schema: Schema) -> tuple[Any, list[float] | None]:
        """The scopes of the tables to release, and their weights; None where the usual ones will do."""
        if self.cliques is not None or not any(level.variable in graph for level in schema.levels.values()):
            return tables_of(model) if self.cliques is None else self.cliques, None
        usual = tables_of(model) or Cliques.from_graph(graph, dict.fromkeys(graph, 1)).scopes
        return at_every_level(usual, schema)

    def _settings(self, scopes: tuple[tuple, ...], weights: list[float] | None = None) -> Settings:
        """The options, with the scopes of the tables to release."""
        chosen = weights if self.weights is None else self.weights
        return self._options.but(scopes=scopes, weights=checked_weights(chosen, len(scopes)))

    def _run(self, table: PrivateTable, settings: Settings, budget: Budget) -> Release:
        """The learner inside the boundary."""
        return noisy_tables.run(table, settings, budget)

    def _rehearse(self) -> None:
        """Learn from a made-up table of two cells, so that an unusable option fails before anything is spent."""
        coin = Cliques(("coin",), (2,), (("coin",),))
        self._learn(NoisyMarginals(coin, np.array([60.0, 40.0]), "laplace", np.ones(1)), None)

    def _most_iterations(self) -> int | None:
        """The limit of iterations, by the options; None where none is public."""
        return None

    def _learned(self, release: Release, privacy: Privacy, *, graph: nx.Graph, passed: nx.Graph) -> dict[str, Any]:
        noisy = self._noisy(release, graph)
        with progress_bar(type(self).__name__, self._most_iterations()) as progress:
            fit = self._learn_from(release, noisy, progress)
        schema, joined = self._schema(release, graph), self._joined(graph, release)
        model = MarkovNetwork.from_log_linear(fit.model, joined, schema, privacy, fine_states(release))
        model, contradicted = self._agreeing(model, release)
        return {
            **on_graph(model, passed, release),
            "_contradicted": contradicted,
            "n_records_": noisy.n_records,
            "n_records_sd_": noisy.n_records_sd,
            "converged_": fit.converged,
            "status_": fit.status,
            "n_iter_": fit.n_iter,
            "objective_": fit.objective,
            "inference_": fit.details["inference"].method,
            "inference_status_": fit.details["inference"],
            "_fit": fit,
        }


def checked_model_graph(model: Any) -> nx.Graph:
    """The undirected graph of a model; TypeError or ValueError for what has none."""
    if not isinstance(model, nx.Graph):
        # No part of it is shown: arguments in the wrong order are records.
        raise TypeError(
            f"model is a {type(model).__name__}; pass fit(model, data), the model a MarkovNetwork, an undirected graph "
            "or a Bayesian network; where no graph is known, pgmpy_dp.learn finds one"
        )
    if model.is_multigraph():
        raise TypeError(f"model is a {type(model).__name__}; pass a graph without parallel edges")
    if model.is_directed() and not nx.is_directed_acyclic_graph(model):
        raise TypeError(
            f"model is a {type(model).__name__} with directed cycles, of which there is no Bayesian network; pass an "
            "undirected graph, such as model.to_undirected()"
        )
    if len(model) == 0:
        raise ValueError("model has no nodes; add the variables to model")
    loops = list(nx.nodes_with_selfloops(model))
    if loops:
        raise ValueError(f"model has edges from {loops} to themselves; remove them")
    latents = getattr(model, "latents", None)
    if latents:
        raise ValueError(f"model has the latent variables {list(latents)}, of which there are no counts; remove them")
    return _moral(model) if model.is_directed() else model


def _moral(model: nx.DiGraph) -> nx.Graph:
    """The undirected graph of a Bayesian network's families: parents of a common child are joined."""
    moral = nx.Graph()
    moral.add_nodes_from(model.nodes)
    moral.add_edges_from(model.edges)
    moral.add_edges_from(pair for child in model for pair in itertools.combinations(model.predecessors(child), 2))
    return moral


def tables_of(model: nx.Graph) -> list[tuple] | None:
    """The families of a directed graph that are no part of another, in its order of nodes; None of an undirected one.

    Only a family's own table tells how a child depends on its parents together: the tables of the moral graph's edges
    know nothing of an exclusive or.
    """
    if not model.is_directed():
        return None
    position = {name: i for i, name in enumerate(model)}
    families = {name: {name, *model.predecessors(name)} for name in model}
    # One that has a whole family has its child, so as a parent.
    kept = [nodes for name, nodes in families.items() if not any(nodes <= families[v] for v in model.successors(name))]
    return [tuple(sorted(family, key=position.__getitem__)) for family in kept]


def on_graph(learned: MarkovNetwork, graph: nx.Graph, release: Release) -> dict[str, Any]:
    """Fitted attributes of a learned model: its factors, and for a directed graph the CPDs on it."""
    if not graph.is_directed():
        return {"parameters_": learned.factors, "model_": learned, "bayesian_network_": None}
    measured = [set(scope) for scope in release.scopes]
    untold = [family for family in tables_of(graph) or () if not any(set(family) <= scope for scope in measured)]
    if untold:
        warnings.warn(
            f"the families {untold[:5]} of the directed graph are in no released table: their CPDs are what the tables "
            "of their parts tell, which is nothing of how parents act together; fit the graph on the records with "
            "cliques=None to measure them",
            UserWarning,
            stacklevel=5,
        )
    network = learned.to_bayesian_network(graph)
    return {"parameters_": network.get_cpds(), "model_": learned, "bayesian_network_": network}


def _check_scopes(graph: nx.Graph, scopes: Any, schema: Schema) -> None:
    """Scopes are the argument `cliques` of an estimator, or a release's."""
    if isinstance(scopes, str) or not isinstance(scopes, Iterable):
        raise TypeError(f"cliques={scopes!r} is a {type(scopes).__name__}; pass a list of tuples of variables, or None")
    for scope in scopes:
        if isinstance(scope, str) or not isinstance(scope, Sequence):
            raise TypeError(f"cliques has {scope!r}, a {type(scope).__name__}; pass tuples, for one variable ('name',)")
        variables = schema.leaf_scope(scope, "cliques")
        unknown = [name for name in variables if name not in graph]
        if unknown:
            raise ValueError(f"cliques has {tuple(scope)!r}, but {unknown} are not in the model; add them to the graph")
        missing = [pair for pair in itertools.combinations(variables, 2) if not graph.has_edge(*pair)]
        if missing:
            raise ValueError(
                f"cliques has {tuple(scope)!r}, which is not a clique of the model: it has no edges {missing}; add them"
            )


@contextmanager
def progress_bar(name: str, most: int | None = None, unit: str = "iterations") -> Iterator[Progress]:
    """A progress bar for work of more than a second, and of `most` iterations, where pgmpy's switch allows it."""
    form = None if most is None else "{l_bar}{bar}| {n_fmt} of at most {total_fmt}{unit}, {elapsed}"
    how: dict[str, Any] = {"unit": f" {unit}", "bar_format": form, "disable": not bars_shown()} | bar_options()
    with tqdm(desc=name, total=most, leave=False, **how) as bar:
        yield lambda: bar.update()


@contextmanager
def budget_bar(name: str) -> Iterator[Callable[[float], None]]:
    """A progress bar of the share of the budget that is spent, where nobody knows how many rounds there will be."""
    form = "{l_bar}{bar}| of the budget, {elapsed}"
    with tqdm(desc=name, total=100, leave=False, bar_format=form, disable=not bars_shown(), **bar_options()) as bar:
        yield lambda spent: bar.update(100 * spent - bar.n)

"""A pgmpy Markov network whose exact inference runs in log space, and which remembers what it cost."""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork, JunctionTree

from pgmpy_dp.checks import checked_number
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.exact_or_loopy import Inference, inference_from_dict, inference_to_dict
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.row_conditionals import row_conditionals
from pgmpy_dp.inference.sampling import SamplingMethod
from pgmpy_dp.learning.display import as_table, states_text
from pgmpy_dp.learning.in_place import fit_in_place
from pgmpy_dp.learning.privacy_record import Privacy, earned
from pgmpy_dp.learning.structural_zeros import obeying
from pgmpy_dp.models.answers import Answers
from pgmpy_dp.models.conversion import (
    factors_to_log_linear,
    log_linear_to_factors,
    on_all_edges,
    to_pgmpy_bayesian_network,
    to_pgmpy_junction_tree,
)
from pgmpy_dp.models.decoded_columns import as_frame
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import counted
from pgmpy_dp.models.model_file import FORMAT, VERSION, ModelFile, read_model_file, reading_model
from pgmpy_dp.models.ordered_draws import contradiction
from pgmpy_dp.models.prediction import known_rows, predicted, predicted_probability
from pgmpy_dp.models.printing_rule import PrintingRule
from pgmpy_dp.models.weighting import Weighting, require_unweighted, reweighted
from pgmpy_dp.private.array_file import array_file
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.reading.frames import column_names, encode_and_match
from pgmpy_dp.schema import Number, Schema, encode_label
from pgmpy_dp.schema.provenance import listed
from pgmpy_dp.shown import quantity, shown

if TYPE_CHECKING:
    from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
    from pgmpy_dp.models.score_reading import ModelScore
    from pgmpy_dp.private.budget import Budget
    from pgmpy_dp.private.sensitive import Release


class MarkovNetwork(Answers, DiscreteMarkovNetwork):
    """Discrete Markov network: pgmpy's, with exact log-space inference, sampling and lossless files.

    It is a ``pgmpy.models.DiscreteMarkovNetwork``: pgmpy's ``VariableElimination``,
    ``BeliefPropagation`` and ``UAIWriter`` take it as it is. Graphs with isolated nodes, several
    components, and names that are numbers (0 too) or tuples work.

    Parameters
    ----------
    ebunch : iterable of edges, or networkx.Graph, optional
        Edges of the graph; of a Graph the isolated nodes are taken too. Directed graphs are refused: estimators take
        them themselves.
    latents : iterable of nodes, optional
        Kept for pgmpy; the estimators of this package refuse a model that has any.
    memory_limit : int
        Bytes that inference may take; a larger model is refused before anything is allocated.
    inference : {"exact", "loopy", "auto"} or LoopySettings
        The inference that `marginal` uses. A fit by loopy inference sets it. Then marginals within a factor are
        approximate, `sample` draws by Gibbs sampling, and what needs exact inference (other marginals,
        `log_likelihood`, `get_partition_function`) raises `InferenceUnavailable`; setting it to "exact" asks for exact
        inference again.

    Attributes
    ----------
    factors : list of DiscreteFactor
        The potentials. After a fit their product sums to 1.
    privacy : Privacy or None
        The guarantee under which the factors were learned; None where they were set by hand, and as long as the graph
        or a factor is another than when it was set.
    schema : Schema or None
        The public description of the variables that the model was learned with: which are numbers or days, how a cell
        is read, and the order of columns. It counts while it has the model's variables and their states.
    within : mapping of node to Values
        How values are distributed within the states of a variable, where that is not uniform.
    missing_at_random : mapping of node to tuple of nodes
        Of a model that :meth:`complete` made: the variables that were missing, and what was taken to decide that.
    weighting : Weighting or None
        Of a model that :meth:`reweighted` made: by what, and what that does to answers.
    posterior : ParameterPosterior or None
        The result of an estimator's ``posterior()``, if it was assigned: files keep it, for intervals and synthetic
        data sets without the release. It is of the factors as they were learned, and None while they are others.

    Examples
    --------
    >>> from pgmpy.factors.discrete import DiscreteFactor
    >>> model = MarkovNetwork([("rain", "wet")])
    >>> model.add_factors(DiscreteFactor(["rain", "wet"], [2, 2], [6, 1, 1, 2]))
    >>> model.marginal(["wet"]).values.round(3)
    array([0.7, 0.3])
    >>> model.sample(3, random_state=0).shape
    (3, 2)
    """

    privacy: Privacy | None = earned("_privacy")
    posterior: ParameterPosterior | None = earned("_posterior")

    def __init__(
        self,
        ebunch: Iterable | nx.Graph | None = None,
        latents: Iterable[Hashable] | None = None,
        memory_limit: int = DEFAULT_MEMORY_LIMIT,
        inference: Inference = "exact",
    ) -> None:
        if isinstance(ebunch, nx.Graph) and ebunch.is_directed():
            raise TypeError(
                f"ebunch is a {type(ebunch).__name__}, whose edges alone lose how parents act together; pass it to an "
                "estimator itself, CollectiveMAP(...).fit(graph, data), or list(graph.edges) for edges alone. One with "
                "CPDs has moral = graph.to_markov_model(): pass that, and then add_factors(*moral.factors)"
            )
        # pgmpy iterates over whatever it is given: of a graph that would be its nodes.
        super().__init__(list(ebunch.edges()) if isinstance(ebunch, nx.Graph) else ebunch)
        if isinstance(ebunch, nx.Graph):
            nodes = list(ebunch.nodes)
            self.clear()
            self.add_nodes_from(nodes)
            self.add_edges_from(ebunch.edges())
        # A set of its own: pgmpy's default is one list shared by all models.
        self.latents = set() if latents is None else set(latents)
        self.schema: Schema | None = None
        self.within: dict[Hashable, Values] = {}
        self.missing_at_random: dict[Hashable, tuple[Hashable, ...]] = {}
        self.weighting: Weighting | None = None
        self.memory_limit = memory_limit
        self.inference = inference

    def __repr__(self) -> str:
        what = "factors set by hand" if self.privacy is None else str(self.privacy)
        what = what if self.factors else "no factors"
        what = what if self.weighting is None else f"weighted by {shown(self.weighting.name)}; {what}"
        return f"MarkovNetwork({quantity(self.nodes, 'node')}, {quantity(self.number_of_edges(), 'edge')}; {what})"

    __str__ = __repr__  # networkx' own has no guarantee

    def _repr_html_(self) -> str:
        states = self.states
        rows = [
            (name, states_text(states.get(name, ())), ", ".join(sorted(map(str, self.neighbors(name)))) or "none")
            for name in self.nodes
        ]
        return as_table(repr(self), ("variable", "states", "neighbours"), rows)

    # -- what pgmpy asks of a model ------------------------------------------------------------

    def add_edge(self, u: Hashable, v: Hashable, **data: Any) -> None:
        """Add an edge; pgmpy's own gives one without a weight the weight None, on which networkx' algorithms stop.

        Parameters
        ----------
        u, v : node
            Two of them.
        **data
            ``weight``, if there is one.
        """
        super().add_edge(u, v, **data)
        if self.edges[u, v]["weight"] is None:
            del self.edges[u, v]["weight"]

    def get_factors(self, node: Hashable | None = None) -> list[DiscreteFactor]:
        """Factors that contain a node; pgmpy's own takes node 0 for no node.

        Parameters
        ----------
        node : node, optional
            By default all factors are returned.

        Returns
        -------
        list of DiscreteFactor

        Raises
        ------
        ValueError
            If `node` is not in the model.
        """
        if node is None:
            return self.factors
        if node not in self:
            raise ValueError(f"node {node!r} is not in the model; it has {list(self.nodes)}")
        return [factor for factor in self.factors if node in factor.variables]

    def get_cardinality(self, node: Hashable | None = None) -> Any:
        """Number of states of a node, or of every node; pgmpy's own takes node 0 for no node.

        Parameters
        ----------
        node : node, optional

        Returns
        -------
        int, or dict of node to int without `node`
            None for a node that no factor has.
        """
        cardinalities = {
            name: int(size)
            for factor in self.factors
            for name, size in zip(factor.variables, factor.cardinality, strict=True)
        }
        return cardinalities if node is None else cardinalities.get(node)

    def get_partition_function(self) -> float:
        """Sum the product of all factors over all joint states, by junction tree.

        Returns
        -------
        float
            1 up to rounding after a fit; inf where it exceeds the range of floats.
        """
        self.check_model()
        with np.errstate(over="ignore"):
            return float(np.exp(self.to_log_linear().log_partition))

    def to_junction_tree(self) -> JunctionTree:
        """Junction tree by min-fill, calibrated from its root outwards.

        Its factors are conditional distributions, so that ``BeliefPropagation`` on this model neither
        overflows nor stops early. Components are joined by clusters of one variable from each.

        Returns
        -------
        pgmpy.models.JunctionTree
            Each edge is in one of its clusters, with a factor or without, as in pgmpy's own. Of a graph without any
            factors it is the tree alone.

        Raises
        ------
        ValueError
            If the factors do not make a model of the graph, see ``check_model``.
        """
        self.check_model()
        if self.factors:
            return to_pgmpy_junction_tree(on_all_edges(self.to_log_linear(), self), self.states)
        cliques = Cliques.from_graph(self, dict.fromkeys(self, 1))
        uniform = LogLinearModel(cliques, np.zeros(cliques.n_cells), self.memory_limit)
        tree = to_pgmpy_junction_tree(uniform, dict.fromkeys(self, (0,)))
        tree.factors.clear()
        return tree

    def to_bayesian_network(
        self, structure: nx.DiGraph | Iterable | str | None = None, *, n_records: float | None = None
    ) -> DiscreteBayesianNetwork:
        """A Bayesian network with CPDs, for what pgmpy does with those alone.

        Parameters
        ----------
        structure : directed graph, iterable of edges (parent, child), or "hill-climb", optional
            The network's own: then each variable's CPD is what this model says of it given its parents. "hill-climb"
            finds one by pgmpy's `HillClimbSearch` among the edges of this model, each variable with up to 4 parents, by
            the BIC of this model's tables. By default the network has the distribution of this model.
        n_records : float, optional
            For "hill-climb": of how many records the tables are as sure, such as an estimator's ``n_records_``. By
            default the draws of `posterior` say it, which count the privacy noise too.

        Returns
        -------
        pgmpy.models.DiscreteBayesianNetwork
            By default on the graph of the junction tree (this graph with the edges that make it chordal), edges from
            its root outwards: their direction has no causal meaning. On a given structure it is the nearest to this
            model of all with that structure; variables that no edge has are independent of all others. Where a
            variable's parents never are together, its CPD is uniform. Under the guarantee of this model; `privacy`
            does not go with it.

        Raises
        ------
        TypeError
            For a structure that is neither.
        ValueError
            If the factors do not make a model of the graph, see ``check_model``; for a structure with directed cycles
            or with variables that are not in the model; and where nothing says how many records there were.
        InferenceUnavailable
            Under loopy inference, but for a structure with each variable and its parents in one factor.
        InferenceTooLarge
            If the table of a variable and its parents is too large.

        Examples
        --------
        >>> model = MarkovNetwork([("rain", "wet")])
        >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
        >>> model.add_factors(DiscreteFactor(["rain", "wet"], [2, 2], [6, 1, 1, 2], state_names=states))
        >>> network = model.to_bayesian_network()
        >>> sorted(network.nodes), len(network.edges), network.check_model()
        (['rain', 'wet'], 1, True)
        >>> model.to_bayesian_network([("wet", "rain")]).get_cpds("rain").get_values().round(2).tolist()
        [[0.86, 0.33], [0.14, 0.67]]
        """
        self.check_model()
        if isinstance(structure, str):
            structure = self._hill_climbed(structure, n_records)
        elif n_records is not None:
            raise ValueError(f'n_records={n_records!r} is for structure="hill-climb" alone; leave it out')
        directed = None if structure is None else self._as_structure(structure)
        model = self.to_log_linear() if structure is not None else on_all_edges(self.to_log_linear(), self)
        return to_pgmpy_bayesian_network(model, self.states, directed)

    def _hill_climbed(self, structure: str, n_records: float | None) -> nx.DiGraph:
        if structure != "hill-climb":
            raise ValueError(f'structure={structure!r} is unknown; pass "hill-climb", or a directed graph')
        from pgmpy_dp.models.orientation import effective_records, hill_climbed

        if n_records is not None:
            n_records = checked_number("n_records", n_records, positive=True)
        elif self.posterior is None:
            raise ValueError(
                "n_records=None, and the model has no posterior; set model.posterior = estimator.posterior(), or pass "
                "the estimator's n_records_, which takes noise for nothing"
            )
        else:
            n_records = effective_records(self.posterior, self.edges)
        return hill_climbed(self.to_log_linear(), self.edges, n_records)

    def _as_structure(self, structure: Any) -> nx.DiGraph:
        """A directed graph over this model's variables, in their order."""
        what = f"structure is a {type(structure).__name__}"
        if isinstance(structure, nx.Graph) and (not structure.is_directed() or structure.is_multigraph()):
            raise TypeError(f"{what}; pass a directed graph, whose edges go from parents to children")
        directed = nx.DiGraph()
        directed.add_nodes_from(self.nodes)
        try:
            directed.add_edges_from(structure.edges if isinstance(structure, nx.Graph) else structure)
        except (TypeError, ValueError, nx.NetworkXError):
            raise TypeError(f"{what}; pass a directed graph, or a list of pairs (parent, child)") from None
        named = [*directed, *(structure if isinstance(structure, nx.Graph) else ())]
        if unknown := [name for name in dict.fromkeys(named) if name not in self]:
            raise ValueError(f"structure has the variables {unknown}, which are not in the model; remove them")
        if not nx.is_directed_acyclic_graph(directed):
            raise ValueError("structure has directed cycles, of which there is no Bayesian network; take out an edge")
        return directed

    def copy(self) -> MarkovNetwork:
        """Independent copy with factors, latents, schema and the privacy record; pgmpy's own drops all but factors.

        Returns
        -------
        MarkovNetwork
        """
        clone = type(self)(self, latents=self.latents, memory_limit=self.memory_limit, inference=self.inference)
        clone.factors = [factor.copy() for factor in self.factors]
        clone.privacy, clone.schema, clone.within = self.privacy, self.schema, dict(self.within)
        clone.posterior, clone.missing_at_random = self.posterior, dict(self.missing_at_random)
        clone.weighting = self.weighting
        return clone

    def complete(self, missing_at_random: Mapping[Hashable, Iterable[Hashable]]) -> MarkovNetwork:
        """The model of complete records, if cells are missing at random given some named variables.

        Post-processing of the model, under the same guarantee.

        Parameters
        ----------
        missing_at_random : mapping of variable to list of variables
            For each variable that the result has no missing value of, its drivers: what decides whether its value is
            missing. A driver may be missing itself.

        Returns
        -------
        MarkovNetwork
            Without the state None of these variables, also in its `schema`, with the draws of `posterior` completed as
            well. All else keeps its distribution.

        Raises
        ------
        TypeError, ValueError
            For variables without a state None or with a rule about it, drivers that go round in a circle, and a driver
            that is in no factor with its variable.

        Notes
        -----
        Right where, given its drivers, whether a value is missing does not depend on the value ("missing at random",
        Rubin 1976). Nothing in the records can tell: if people with a high income keep it to themselves, whoever they
        are, the result is as wrong as leaving them out. It is not for what does not apply, such as the job of a child:
        that is a state. See docs/missing.md.

        Examples
        --------
        Of the old half tell no job, and it is known of the others:

        >>> states = {"age": ["young", "old"], "job": ["a", "b", None]}
        >>> model = MarkovNetwork([("age", "job")])
        >>> model.add_factors(DiscreteFactor(["age", "job"], [2, 3], [30, 20, 0, 5, 20, 25], state_names=states))
        >>> model.complete({"job": ["age"]}).query("job").values.round(3)
        array([0.4, 0.6])
        """
        from pgmpy_dp.models.missing_at_random import checked_drivers, complete_model

        require_unweighted(self, "complete the model that it was made from, and reweight that")
        return complete_model(self, checked_drivers("missing_at_random", missing_at_random))

    def reweighted(self, weight: Hashable) -> MarkovNetwork:
        """The model of those whom a survey's weights stand for.

        Post-processing of the model, under the same guarantee.

        Parameters
        ----------
        weight : node
            A number from 0 on: how many of the population each record stands for, up to a factor.

        Returns
        -------
        MarkovNetwork
            Of the other variables: an ordinary model, whose answers, intervals, samples, pages and file are weighted,
            and say so. Where the model has a `posterior`, each of its draws is weighted by its own density of weights.
            Numbers of records in its answers are sums of weights, as the released tables estimate them; shares are
            parts of these. How many records it was learned from stays what it was.

        Raises
        ------
        ValueError
            For what is no number of the model, or can be negative, and for a model that is weighted already.
        InferenceTooLarge
            If the table of all neighbours of `weight`, which the weighted model has, would exceed `memory_limit`.

        Notes
        -----
        A record counts as the mean weight of its cell does, by the released density of the weights::

            p'(x)  is in proportion to  sum over cells c of p(x, c) E[w | c]

        so weights should depend on the other variables by their cell alone. Records without a weight do not count, and
        neither do those with weight 0. The guarantee is that of the model where a record's weight is a function of
        that record alone; weights that were calibrated to totals depend on all records. See docs/weights.md.

        Examples
        --------
        The ill were sampled five times as often:

        >>> from pgmpy_dp.inference.cliques import Cliques
        >>> schema = Schema({"ill": [False, True], "w": Number(0, 10, cuts=[4], missing="drop")})
        >>> joint = LogLinearModel(Cliques(("ill", "w"), (2, 2), (("ill", "w"),)), np.log([0.1, 0.4, 0.4, 0.1]))
        >>> model = MarkovNetwork.from_log_linear(joint, nx.Graph([("ill", "w")]), schema)
        >>> model.reweighted("w").query("ill").values.round(3)
        array([0.667, 0.333])
        """
        return reweighted(self, weight)

    def rescaled(self, smallest: float = 1e-3) -> MarkovNetwork:
        """Copy with the same distribution whose factors can be written without exponents.

        After a fit the product of the factors sums to 1, so some entries are tiny; pgmpy's ``UAIReader``
        stops at a number like 1e-30. An undirected model needs no such normalisation::

            UAIWriter(model.rescaled()).write("model.uai")

        Parameters
        ----------
        smallest : float
            What the smallest positive entry of each factor becomes. Exponents are avoided where no
            factor spans more than 19 orders of magnitude.

        Returns
        -------
        MarkovNetwork

        Raises
        ------
        ValueError
            If `smallest` is not a positive finite number.
        """
        if not (np.isfinite(smallest) and smallest > 0):
            raise ValueError(f"smallest={smallest!r} must be a positive finite number")
        clone = self.copy()
        for factor in clone.factors:
            factor.values = factor.values * (smallest / factor.values[factor.values > 0].min())
        clone.privacy, clone.posterior = self.privacy, self.posterior
        return clone

    # -- learning ------------------------------------------------------------------------------

    def fit(self, data: Any, estimator: Any, sample_weight: Any = None, **whose: Any) -> MarkovNetwork:
        """Learn this model in place from private data: `pgmpy_dp.fit_in_place` for this class.

        Parameters
        ----------
        data : dataframe or PrivateTable
            The records; see the estimator.
        estimator : instance of an estimator of this package
            Decides the method and the privacy budget. There is no default, because there is no
            default budget. One that finds the edges gives this model its graph too.
        sample_weight : None
            Not supported by private estimators.
        **whose
            ``unit`` and ``rows_per_unit``, of persons with several records; see the estimator.

        Returns
        -------
        MarkovNetwork
            This model. If the fit fails it is left as it was. It gets the edges that the schema's rules about what is
            impossible need.

        Raises
        ------
        TypeError, ValueError
            As `pgmpy_dp.fit_in_place`.
        """
        return fit_in_place(self, data, estimator, sample_weight, **whose)

    # -- exact inference -----------------------------------------------------------------------

    def _take_over(self, learned: Any, privacy: Privacy | None) -> None:
        """Take over what was learned beside graph and factors."""
        self.privacy, self.inference = privacy, getattr(learned, "inference", "exact")
        self.schema, self.within = getattr(learned, "schema", None), dict(getattr(learned, "within", {}))
        self.posterior = getattr(learned, "posterior", None)
        self.missing_at_random = dict(getattr(learned, "missing_at_random", {}))
        self.weighting = getattr(learned, "weighting", None)

    def to_log_linear(self) -> LogLinearModel:
        """The factors as a :class:`~pgmpy_dp.inference.log_linear.LogLinearModel` over the nodes in their order.

        Returns
        -------
        LogLinearModel

        Raises
        ------
        ValueError
            If a node is in no factor, or the factors disagree about a variable's states.
        """
        return factors_to_log_linear(self.factors, self.nodes, self.memory_limit, self.inference)

    @classmethod
    def from_log_linear(
        cls,
        model: LogLinearModel,
        graph: nx.Graph,
        state_names: Schema | dict,
        privacy: Privacy | None = None,
        within: Mapping[Hashable, Values] | None = None,
    ) -> MarkovNetwork:
        """Model on `graph` with the distribution of `model`, whose scopes must be cliques of the graph.

        Where the schema has rules about what is impossible, the distribution is conditioned on what is possible, and
        the graph gets an edge between any two variables of a rule; see `pgmpy_dp.learning.structural_zeros.obeying`.

        Parameters
        ----------
        model : LogLinearModel
        graph : networkx.Graph
            Over the same variables.
        state_names : Schema or dict
            States of each variable in the order of the tables; more variables are allowed. Recorded with the result.
        privacy : Privacy, optional
            Recorded with the result.
        within : mapping of variable to Values, optional
            See the attribute.

        Returns
        -------
        MarkovNetwork

        Raises
        ------
        InferenceTooLarge
            If inference with the tables of the rules would exceed the model's memory limit.
        """
        declared = Schema.coerce(state_names)
        schema = declared.subset(name for name in declared if name in graph)
        model = obeying(model, schema.zeros)
        network = cls(graph, memory_limit=model.memory_limit, inference=model.inference)
        for box in schema.zeros:
            network.add_edges_from(itertools.combinations(box, 2))
        network.factors = log_linear_to_factors(model, network, schema.states)
        network.schema, network.privacy, network.within = schema, privacy, dict(within or {})
        return network

    def marginal(self, variables: Hashable | Sequence[Hashable]) -> DiscreteFactor:
        """Marginal distribution of some variables; exact unless `inference` is loopy.

        Parameters
        ----------
        variables : list of nodes, or one node
            Axes of the result, in this order.

        Returns
        -------
        DiscreteFactor
            Sums to 1.

        Raises
        ------
        InferenceUnavailable
            Under loopy inference, for variables that no factor has together.
        """
        return self.query(variables)

    def query(
        self, variables: Hashable | Sequence[Hashable], evidence: Mapping[Hashable, Any] | None = None
    ) -> DiscreteFactor:
        """Distribution of some variables given evidence about others; exact unless `inference` is loopy.

        Parameters
        ----------
        variables : list of nodes, or one node
            Axes of the result, in this order. In the place of a node may be a level of it (`Schema.levels`): its table
            is that by the node, added up, and needs the room of that.
        evidence : dict of node to evidence, optional
            A state; of numbers and days a value too, None for missing, or a range: ``(30, 40)``, ``slice(30, None)``,
            ``"30:40"`` or a pandas Interval. Several of these as a set, or as a text with ``|`` between them; with a
            likelihood for each ("virtual evidence") as a mapping. See Notes.

        Returns
        -------
        DiscreteFactor
            Sums to 1.

        Raises
        ------
        ValueError
            For evidence that is no state, outside the bounds, an empty range, or impossible in the model, and for a
            query about a variable whose state is known.
        InferenceUnavailable
            Under loopy inference, for variables that no factor has together.

        Notes
        -----
        A value counts as the cell that it is in. Both ends belong to a range (an Interval says which do). A cell that
        a range takes whole counts fully, one that it cuts through by the share of its values, as if they were uniform
        within it (or as `within` has them): of ``[30,40)`` with whole numbers the range ``(35, 60)`` has one half,
        (30, 30) one tenth. `counted` says what counts.

        Examples
        --------
        >>> from pgmpy_dp.inference.cliques import Cliques
        >>> from pgmpy_dp.schema import Number
        >>> schema = Schema({"age": Number(0, 40, bins=2, missing="drop", resolution=1), "smokes": [False, True]})
        >>> joint = LogLinearModel(Cliques(("age", "smokes"), (2, 2), (("age", "smokes"),)), np.log([4.0, 1, 3, 2]))
        >>> model = MarkovNetwork.from_log_linear(joint, nx.Graph([("age", "smokes")]), schema)
        >>> model.query("smokes", {"age": 37}).values.round(3), model.query("smokes", {"age": "0:30"}).values.round(3)
        (array([0.6, 0.4]), array([0.733, 0.267]))
        """
        names, table = self._table(variables, evidence)
        state_names = {name: listed(states) for name, states in self._listed_states(names, self.states).items()}
        return DiscreteFactor(names, list(table.shape), table, state_names=state_names)

    def probability(self, event: Mapping[Hashable, Any], evidence: Mapping[Hashable, Any] | None = None) -> float:
        """Probability that some variables have certain states, or numbers in certain ranges.

        Parameters
        ----------
        event, evidence : dict of node to state, value or range
            See `query`. In an event a number or a day is itself, not its cell.

        Returns
        -------
        float

        Raises
        ------
        TypeError
            If `event` or `evidence` is no mapping.
        ValueError
            As `query`, and for a single number of a variable without a resolution, which has no probability.
        """
        if not isinstance(event, Mapping):
            raise TypeError(
                f"event={event!r} is a {type(event).__name__}; pass a dict of variables and their states or ranges"
            )
        schema = self._readable()
        scope = self._scope(event, "event")
        table = self.query(list(scope), evidence).values
        known = self.counted(evidence)
        values = dict(self.within) | {name: one.values for name, one in known.items()}
        pairs = zip(scope, event.items(), strict=True)
        parts = {leaf: counted(schema, name, value, values.get(leaf), event=True) for leaf, (name, value) in pairs}
        for one in reversed(parts.values()):
            table = table @ one.likely
        return 0.0 if contradiction(self._orders, known | parts) else float(table)

    def sample(
        self,
        n: int,
        random_state: int | np.random.Generator | None = None,
        labels: bool = False,
        *,
        evidence: Mapping[Hashable, Any] | None = None,
        method: SamplingMethod = "stratified",
        ids: Hashable = None,
    ) -> pd.DataFrame:
        """Draw synthetic records, independent, or stratified, so that together they are as like the model as can be.

        Records drawn from a privately learned model are as private as the model, however many there are.

        Parameters
        ----------
        n : int
            Number of records.
        random_state : int, numpy.random.Generator or None
            Only for repeatable draws; it has no part in privacy.
        labels : bool, default False
            The states of numbers and days ("[18,65)") instead of values within them.
        evidence : dict of node to evidence, optional
            Only records for which this holds: a state, a value, None for missing, or a range, as `query` takes them.
        method : {"stratified", "independent", "agreeing"}, default "stratified"
            Whether the records of each configuration are split in the model's proportions, rounded up or down at
            random, or each is drawn by itself; see Notes. "agreeing": the sample has the public tables that the model
            was learned with (`public`), record by record; `n` is their total. A warning says where it cannot.
        ids : hashable, optional
            The name of a first column of fresh identifiers, the numbers 1 to n, which say nothing of a record.

        Returns
        -------
        pandas.DataFrame
            n rows; one column for each node, in the order of the schema (without one, of the nodes), and behind it one
            for each level of it. Numbers and days
            are drawn within their cell, in their resolution or two more digits than it is wide: whole ones as int64, or
            pandas' Int64 where they can be missing, others as float64 with NaN, days as datetime64 with NaT. What
            counted as "outside" is missing too. Other variables have the names of their states.

        Raises
        ------
        ValueError
            If `n` is not a whole number of at least 0, for an unknown method, and for evidence that `query` refuses.
        ImpossibleEvidence
            For evidence of probability 0; a ValueError.

        Notes
        -----
        Each record has exactly the model's distribution in both methods, and the order of records says nothing.
        Stratified ones come closer to the model than chance would have them, so they are not independent of each other,
        and what is estimated from them varies less than formulas for random samples say. How far the model is from the
        population neither tells: for that there is :meth:`~pgmpy_dp.estimators.CollectiveMAP.posterior` with several
        sets, whose records are independent.

        Under loopy inference records are independent, and approximate: each is where a chain of Gibbs sampling of its
        own ends after 100 sweeps. That is near the model where interactions are moderate, and not where it has several
        modes far apart.

        Examples
        --------
        >>> model = MarkovNetwork([("rain", "wet")])
        >>> states = {"rain": ["n", "y"], "wet": ["n", "y"]}
        >>> model.add_factors(DiscreteFactor(["rain", "wet"], [2, 2], [6, 1, 1, 2], state_names=states))
        >>> model.sample(20, random_state=0).value_counts().sort_index().tolist()
        [12, 2, 2, 4]
        >>> set(model.sample(9, evidence={"rain": "y"})["rain"])
        {'y'}
        """
        drawn = self._sampled(n, random_state, labels, evidence=evidence, method=method, ids=ids)
        return as_frame(drawn, n)

    def simulate(
        self, n_samples: int = 10, *, evidence: Mapping[Hashable, Any] | None = None, seed: int | None = None
    ) -> pd.DataFrame:
        """Draw independent synthetic records, as the method of this name of pgmpy's Bayesian networks does.

        Parameters
        ----------
        n_samples : int
        evidence : dict of node to evidence, optional
        seed : int, optional

        Returns
        -------
        pandas.DataFrame
            As `sample` with ``method="independent"``.

        Raises
        ------
        ValueError
            As `sample`.
        """
        return self.sample(n_samples, seed, evidence=evidence, method="independent")

    def log_likelihood(self, df: Any, normalize: bool = False) -> float:
        """Log-likelihood of *public* records, in nats.

        The result is an exact statistic of `df`: it is for records that need no protection, such as
        a public hold-out set. No budget is charged and no noise is added.

        Parameters
        ----------
        df : dataframe
            One column for each node; other columns are ignored.
        normalize : bool
            Mean over the records instead of their sum.

        Returns
        -------
        float
            -inf where a record has probability 0.

        Raises
        ------
        ValueError
            If a column is missing, or a record has a value that is no state of its variable.
        """
        log_linear = self.to_log_linear()
        schema = self._readable()
        codes, matched = encode_and_match(df, schema)
        codes, n_records = codes[:, [schema.variables.index(name) for name in self.nodes]], int(matched[0])
        outside = n_records - len(codes)
        if outside:
            raise ValueError(
                f"df has {outside} of {n_records} records with a value that is not a state of its variable; "
                "remove them, or merge the value into a state"
            )
        values = log_linear.log_probability(codes)
        if normalize:
            return float(values.mean()) if len(values) else 0.0
        return float(values.sum())

    def predict_proba(self, X: Any, target: Hashable) -> pd.DataFrame:
        """P(target | the other columns) for each of many records, *public* ones or those that the user may see.

        Exact, also under loopy inference if all other variables are known. Columns that `X` lacks are summed over, and
        so are missing cells, where missing is no state of the variable.

        Parameters
        ----------
        X : dataframe
            Columns named as nodes or levels, read as records are; others, and that of the target, are ignored.
        target : node or level

        Returns
        -------
        pandas.DataFrame
            A row for each record (with the index of `X`, if it is one of pandas), a column for each state of the
            target; nan where none of them is possible with the evidence.

        Raises
        ------
        ValueError
            If the target is no node, or a cell is no state of its variable.

        Examples
        --------
        >>> from pgmpy_dp.inference.cliques import Cliques
        >>> joint = LogLinearModel(Cliques(("wet", "rain"), (2, 2), (("wet", "rain"),)), np.log([6.0, 1, 1, 2]))
        >>> states = {"wet": ["no", "yes"], "rain": ["no", "yes"]}
        >>> model = MarkovNetwork.from_log_linear(joint, nx.Graph([("wet", "rain")]), states)
        >>> model.predict_proba(pd.DataFrame({"wet": ["yes", None]}), "rain").round(3).to_numpy()
        array([[0.333, 0.667],
               [0.7  , 0.3  ]])
        """
        every, there = [*self.nodes, *self.levels], set(column_names(X))
        if target not in every:
            raise ValueError(f"target={target!r} is not a variable of the model; pass one of {every}")
        names = [name for name in every if name != target and (name in there or str(name) in there)]
        model, codes = known_rows(self, X, names, "X", target)
        table = row_conditionals(model, codes, model.cliques.position[target])
        index = X.index if isinstance(X, pd.DataFrame) else None
        states = self._listed_states([target], self.states)[target]
        return pd.DataFrame(table, index=index, columns=pd.Index(states, tupleize_cols=False))

    def predict(self, data: Any) -> pd.DataFrame:
        """Predict the most likely states of the variables that *public* records lack, as pgmpy's Bayesian networks do.

        Parameters
        ----------
        data : dataframe
            Of pandas or polars. Columns named as nodes, at least one node less than the model has, or as levels. A
            missing cell is predicted too.

        Returns
        -------
        pandas.DataFrame
            `data` with the other columns behind. Several unknown variables of a record have their most likely joint
            state. A cell stays missing where no state is possible with the evidence.

        Raises
        ------
        ValueError
            If no variable is lacking, a column is no node, or a cell is no state of its variable.

        Examples
        --------
        >>> model = MarkovNetwork([("rain", "wet")])
        >>> states = {"rain": ["no", "yes"], "wet": ["no", "yes"]}
        >>> model.add_factors(DiscreteFactor(["rain", "wet"], [2, 2], [6, 1, 1, 2], state_names=states))
        >>> model.predict(pd.DataFrame({"wet": ["yes", "no"]}))["rain"].tolist()
        ['yes', 'no']
        >>> model.predict_probability(pd.DataFrame({"wet": ["yes"]})).round(3).to_dict("records")
        [{'rain_no': 0.333, 'rain_yes': 0.667}]
        """
        return predicted(self, data)

    def predict_probability(self, data: Any) -> pd.DataFrame:
        """Predict the distribution of each variable that *public* records lack, as pgmpy's Bayesian networks do.

        Parameters
        ----------
        data : dataframe
            As `predict` takes it. Missing cells are summed over.

        Returns
        -------
        pandas.DataFrame
            A row for each record, a column ``name_state`` for each state of each variable that `data` lacks. See
            `predict_proba` for a single variable, with the states as columns.

        Raises
        ------
        ValueError
            As `predict`.
        """
        return predicted_probability(self, data)

    # -- regressions -------------------------------------------------------------------------

    def regress(self, formula: str | Sequence[str], df: Any, budget: Budget, **how: Any) -> Any:
        """Estimate a regression of private records around this model, with intervals that hold for their population.

        The model says where to ask: its own coefficients are off by more than a standard error. A sum of the records'
        scores, with noise that is shaped for the design, brings them to those of the records.

        Parameters
        ----------
        formula : str, or sequence of str
            ``"response ~ terms"``: names of variables, ``C()`` around numbers that are to be categories, ``+``, ``:``
            and ``*``. A name that is no word stands in backquotes. Categories get a column for each state but the
            first, with a value; numbers count as the means of their cells, as they were released, or as the middles of
            cells that were declared. Several formulas share the budget.
        df : dataframe, path or PrivateTable
            The records, as an estimator's `fit` takes them: those that the model was learned from, or others.
        budget : Budget
            What the regression spends, beside what the model cost.
        **how
            ``family``: "logit" (default) or "linear". ``success``: the state of the response that a logit models, by
            default the second of two. ``scores``: numbers for states, as ``{variable: {state: number}}``. ``rounds``:
            how often is asked, 2 by default, the last time with three quarters of the budget. ``weight``: a number from
            0 on by which records count, such as a survey's; see :meth:`reweighted`. ``others``: True for a model that
            was learned from other people. ``schema``: how the records are read, by default as the model's
            were. ``adjacency``, ``n_records``, ``unit``, ``rows_per_unit`` and ``random_state`` as of `score_model`.

        Returns
        -------
        Regression, or a list of them for several formulas

        Raises
        ------
        TypeError, ValueError
            For a formula that has more than that, or cannot be estimated; for a model without edges, one that was
            completed by `missing_at_random`, and one whose adjacency, unit or ledger is another: before anything is
            spent. Nothing is raised because of a record.
        BudgetExceeded
            If the ledger does not have the budget left; nothing is spent.

        Notes
        -----
        Privacy: the only access to the records is :func:`pgmpy_dp.models.regression.score_rounds.run`, which names the
        proof. Protected is one record, or a unit. Its cost adds up with the model's, for whoever is in both.

        Estimates are of records that have a value of every variable. Records that lack one, blank ones and those in an
        other-state add nothing.

        Examples
        --------
        >>> from pgmpy_dp import Budget, learn
        >>> rng = np.random.default_rng(0)
        >>> smoker = rng.random(20_000) < 0.3
        >>> ill = rng.random(20_000) < np.where(smoker, 0.4, 0.2)
        >>> records = pd.DataFrame({"smoker": smoker, "ill": ill})
        >>> states = {"smoker": [False, True], "ill": [False, True]}
        >>> model = learn(records, Budget(rho=0.02), states).model_
        >>> fit = model.regress("ill ~ smoker", records, Budget(rho=0.005))
        >>> low, high = fit.conf_int(0.001).loc["smoker[T.True]"]
        >>> bool(low < np.log(0.4 / 0.6) - np.log(0.2 / 0.8) < high), fit.status
        (True, 'good')
        """
        from pgmpy_dp.models.regression.declared_analyses import regress

        return regress(self, formula, df, budget, **how)

    def compare_means(self, number: Hashable, by: Hashable, df: Any, budget: Budget, **how: Any) -> Any:
        """Differences of the mean of a number between the categories of another variable, as `regress` gives them.

        Parameters
        ----------
        number, by : node
        df, budget, **how
            As of `regress`. ``success`` makes shares of a state of `number` the means.

        Returns
        -------
        Regression
            Its first coefficient is the mean of the first category, the others are differences from that.
        """
        return self.regress(f"`{number}` ~ C(`{by}`)", df, budget, **{"family": "linear", **how})

    def independence(self, first: Hashable, second: Hashable, df: Any, budget: Budget, **how: Any) -> Any:
        """Test whether two variables of private records are independent, from one noisy table.

        Parameters
        ----------
        first, second : node
        df, budget, **how
            As of `regress`, without what is about formulas.

        Returns
        -------
        IndependenceTest
        """
        from pgmpy_dp.models.regression.declared_analyses import independence

        return independence(self, first, second, df, budget, **how)

    # -- pages -------------------------------------------------------------------------------

    def report(
        self,
        path: str | os.PathLike,
        *,
        compare: MarkovNetwork | None = None,
        release: Release | None = None,
        level: float = 0.9,
        score: ModelScore | Release | None = None,
        title: str | None = None,
        about: str | None = None,
        rule: str | None = None,
        regressions: Iterable[Any] = (),
    ) -> None:
        """Write an HTML page for people to read: guarantee, distributions, graph, what is least known.

        One file, which loads nothing. Post-processing of the model: it costs nothing.

        Parameters
        ----------
        path : str or path
            By custom ``.html``; written as `save` writes.
        compare : MarkovNetwork, optional
            Another model: the page is about how the two differ then.
        release : Release, optional
            That the model was learned from: the page tells what was measured.
        level : float in (0, 1)
            The level of intervals, which the page has where the model has a `posterior`.
        score : ModelScore or Release, optional
            The result of `pgmpy_dp.score_model` for this model: the page tells how far it is from the records.
        title, about : str, optional
            The title of the page; and what the data are and who published them, as Markdown. Not of two models.
        rule : str, optional
            The page marks what may be printed: "0.1" where half of the interval is at most a tenth of the number,
            "0.01 absolute" where it is at most 0.01. See :class:`~pgmpy_dp.models.printing_rule.PrintingRule`.
        regressions : iterable of Regression or Release
            Declared analyses that were asked around this model: the page has their tables. Not of two models.

        Raises
        ------
        ValueError
            Without exact inference, for a release of another fit, a score of another model, a level that needs more
            draws, and models that have nothing in common.
        """
        from pgmpy_dp.reporting import comparison_page, report_page

        if compare is not None:
            of_one: dict[str, Any] = {"release": release, "score": score, "title": title, "about": about, "rule": rule}
            of_one["regressions"] = tuple(regressions) or None
            for name, value in of_one.items():
                if value is not None:
                    raise ValueError(
                        f"compare and {name} were both given; a page of two models tells nothing of a {name}"
                    )
        if compare is None:
            limit = PrintingRule.read(rule, self)
            page = report_page(self, release, level, score, title, about, limit, regressions=regressions)
        else:
            page = comparison_page(self, compare, level=level)
        write_atomically(os.fspath(path), page.encode())

    def explorer(
        self,
        path: str | os.PathLike,
        *,
        n_draws: int | None = None,
        level: float = 0.9,
        title: str | None = None,
        about: str | None = None,
        rule: str | None = None,
    ) -> None:
        """Write an HTML page on which a reader chooses evidence and sees distributions with their intervals.

        One file, which carries the released model and computes in the browser, without a server or a network.

        Parameters
        ----------
        path : str or path
            By custom ``.html``; written as `save` writes.
        n_draws : int, optional
            Draws of the posterior that the page carries, for its intervals; default: all.
        level : float in (0, 1)
            The level of intervals.
        title, about, rule : str, optional
            As of `report`.

        Raises
        ------
        ValueError
            Without exact inference, for a page of more than 20 MB, and a level that needs more draws.
        """
        from pgmpy_dp.reporting import explorer_page

        page = explorer_page(self, n_draws, level, title, about, PrintingRule.read(rule, self))
        write_atomically(os.fspath(path), page.encode())

    # -- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> None:
        """Write the model to one file, losslessly: graph, states, factors bit for bit, privacy record.

        Parameters
        ----------
        path : str or path
            By custom ``.npz``. The file is written beside its place and moved there, so a failure
            leaves what was there before.
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "nodes": [encode_label(name) for name in self.nodes],
            "edges": [[encode_label(u), encode_label(v)] for u, v in self.edges],
            "latents": [encode_label(name) for name in sorted(self.latents, key=repr)],
            "states": [
                {"name": encode_label(name), "states": [encode_label(state) for state in states]}
                for name, states in self.states.items()
            ],
            "scopes": [[encode_label(name) for name in factor.variables] for factor in self.factors],
            "inference": inference_to_dict(self.inference),
            "privacy": None if self.privacy is None else self.privacy.to_dict(),
            "schema": None if self.schema is None else self.schema.to_dict(),
            "within": [
                {"values": Schema({name: values.declared}, texts=texts).to_dict(), **values.to_dict()}
                for name, values in self.within.items()
                for texts in [() if isinstance(values.declared, Number) else (name,)]
            ],
            "missing_at_random": [
                [encode_label(name), [encode_label(driver) for driver in drivers]]
                for name, drivers in self.missing_at_random.items()
            ],
            "weighting": None if self.weighting is None else self.weighting.to_dict(),
        }
        arrays: dict[str, Any] = {f"factor_{k}": np.asarray(factor.values) for k, factor in enumerate(self.factors)}
        if self.posterior is not None:
            from pgmpy_dp.models.posterior.posterior_file import posterior_to_parts

            header["posterior"], parts = posterior_to_parts(self.posterior)
            arrays |= parts
        write_atomically(os.fspath(path), array_file(header, arrays))

    @classmethod
    def load(cls, path: str | os.PathLike) -> MarkovNetwork:
        """Read a model written by :meth:`save`. Nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        MarkovNetwork

        Raises
        ------
        ValueError
            If the file is not a saved model, is damaged, or is from a later version.
        """
        file = read_model_file(path)
        with reading_model(path):
            return cls._from_file(file)

    @classmethod
    def _from_file(cls, file: ModelFile) -> MarkovNetwork:
        model = cls(latents=file.latents, inference=inference_from_dict(file.inference))
        model.add_nodes_from(file.nodes)
        model.add_edges_from(file.edges)
        for names, array in zip(file.scopes, file.factors, strict=True):
            states = {name: file.states[name] for name in names}
            model.factors.append(DiscreteFactor(names, list(array.shape), array, state_names=states))
        model.privacy, model.schema, model.within = file.privacy, file.schema, file.within
        model.missing_at_random, model.weighting = file.missing_at_random, file.weighting
        if file.posterior is not None and model.privacy is not None:
            from pgmpy_dp.models.posterior.posterior_file import posterior_from_parts

            schema, graph = model._readable(), nx.Graph(model.edges)
            graph.add_nodes_from(model.nodes)
            model.posterior = posterior_from_parts(
                file.posterior, file.posterior_arrays, schema, graph, model.privacy, model.within, file.weighting, cls
            )
        return model

"""What a model answers, whether it is pgmpy's or was only read from a file. This needs neither pgmpy nor pandas."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.inference.belief_propagation import LOG_ZERO
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import ImpossibleEvidence, conditioned
from pgmpy_dp.inference.exact_or_loopy import Inference, inference_from_dict
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import SamplingMethod, check_method, uniforms
from pgmpy_dp.learning.few_records import hardly_any
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import Evidence, checked_evidence, counted
from pgmpy_dp.models.model_file import ModelFile, own_schema
from pgmpy_dp.schema import Number, Schema

if TYPE_CHECKING:
    from pgmpy_dp.learning.privacy_record import Privacy
    from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior

Drawn = tuple[Number | Sequence, np.ndarray]
"""A column of drawn records: a Number and its numbers (NaN for missing), or states and the number of each record's."""


class Answers:
    """What `MarkovNetwork` and `SavedModel` have in common.

    Attributes
    ----------
    nodes : iterable of nodes
    states : mapping of node to list of states
    schema : Schema or None
    within : mapping of node to Values
    missing_at_random : mapping of node to tuple of nodes
    """

    if TYPE_CHECKING:
        nodes: Any
        states: Any
        schema: Schema | None
        within: Mapping[Hashable, Values]
        missing_at_random: Mapping[Hashable, tuple[Hashable, ...]]
        privacy: Any
        posterior: Any
        inference: Any
        factors: Any
        edges: Any

        def __iter__(self) -> Iterator[Any]: ...

        def __len__(self) -> int: ...

        def has_edge(self, u: Any, v: Any) -> bool: ...

        def to_log_linear(self) -> LogLinearModel:
            """The model's distribution."""

    def likelihood(self, variable: Hashable, given: Any) -> np.ndarray:
        """How likely what is known of a variable is in each of its states: what `query` makes of it.

        Parameters
        ----------
        variable : node
        given : object
            See `query`.

        Returns
        -------
        ndarray of shape (states,)
            1 in the state of a value; shares of a range.

        Raises
        ------
        ValueError
            As `query`.
        """
        return self.counted({variable: given})[variable].likely

    def counted(self, evidence: Mapping[Hashable, Any] | None) -> dict[Hashable, Evidence]:
        """What is known of variables, with the states and shares that each counts as.

        Parameters
        ----------
        evidence : mapping of node to what is known, or None
            See `query`.

        Returns
        -------
        dict of node to Evidence

        Raises
        ------
        TypeError, ValueError
            As `query`.
        """
        return {
            self._as_names([name])[0]: counted(self._readable(), name, given, self.within.get(name))
            for name, given in checked_evidence(evidence).items()
        }

    @property
    def numbers(self) -> Mapping[Hashable, Number]:
        """The variables whose values are numbers or days, divided as the model's states are."""
        schema = self._own_schema()
        return {} if schema is None else schema.numbers

    @property
    def impossible(self) -> tuple[str, ...]:
        """Public rules that the factors obey: what breaks one has the probability 0, and is never drawn."""
        schema = self._own_schema()
        return () if schema is None else schema.impossible

    def _table(self, variables: Any, evidence: Any) -> tuple[list[Hashable], np.ndarray]:
        """The variables that are asked about, and their distribution; see `MarkovNetwork.query`."""
        names, known = self._as_names(variables), self.counted(evidence)
        if both := [name for name in names if name in known and np.count_nonzero(known[name].likely) == 1]:
            raise ValueError(f"variables and evidence both have {both}; ask about variables of which nothing is known")
        model = self.to_log_linear()
        if known:
            model = conditioned(model, {name: one.likely for name, one in known.items()})
            if model.approximate_log_partition < LOG_ZERO / 2:
                raise ValueError(f"evidence={evidence!r} has a probability of 0 in the model; leave some of it out")
        return names, model.marginal(names)

    def mostly_missing(self, variable: Hashable, evidence: Mapping[Hashable, Any] | None = None) -> str | None:
        """What there is to say where next to no record has a number or a day, so that its mean would be noise.

        Parameters
        ----------
        variable : node
            One of numbers or days.
        evidence : dict, optional
            See `query`.

        Returns
        -------
        str or None
            None where more than one in a hundred records has one, by the model.
        """
        values, (names, table) = self._values(variable), self._table(variable, evidence)
        return hardly_any(str(names[0]), values.share(table))

    def _values(self, variable: Hashable) -> Values:
        (name,) = self._as_names([variable])
        return self.within.get(name) or Values(self.numbers[name])

    def _summary(self, variable: Hashable, evidence: Any, quantiles: Any) -> tuple[Number, list, np.ndarray]:
        """The declaration of a number, quantiles, and its mean and these; see `MarkovNetwork.summary`."""
        (name,) = self._as_names([variable])
        if name not in self.numbers:
            raise ValueError(f"variable={variable!r} has states and no numbers; use query")
        levels: list[Any] = list(quantiles) if isinstance(quantiles, Iterable) else [None]
        if not all(isinstance(level, numbers.Real) and 0 <= float(level) <= 1 for level in levels):
            raise ValueError(f"quantiles={quantiles!r} must be numbers from 0 to 1, such as [0.25, 0.5, 0.75]")
        known, (_, table) = self.counted(evidence), self._table(name, evidence)
        values = known[name].values if name in known else self._values(name)
        if hardly_any(str(name), values.share(table)) is not None:
            return self.numbers[name], levels, np.full(1 + len(levels), np.nan)
        return self.numbers[name], levels, np.array([values.mean(table), *values.quantiles(table, levels)])

    def _sampled(
        self,
        n: int,
        random_state: int | np.random.Generator | None = None,
        labels: bool = False,
        *,
        evidence: Mapping[Hashable, Any] | None = None,
        method: SamplingMethod = "stratified",
    ) -> dict[Hashable, Drawn]:
        """The columns of `MarkovNetwork.sample`, which has the parameters, as arrays."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"n={n!r} must be a whole number of records, 0 or more")
        check_method(method)
        known = self.counted(evidence)
        rng = np.random.default_rng(random_state)
        codes = self._drawn({name: one.likely for name, one in known.items()}, int(n), rng, method)
        states, own = self.states, None if labels else self._own_schema()
        values = {} if own is None else {name: Values(number) for name, number in own.numbers.items()}
        values |= {} if labels else dict(self.within)
        # A stream of their own: the states that are drawn, and what else is drawn by `rng`, are the same without them.
        stream = rng.spawn(1)[0] if values else rng
        order = [name for name in self.schema or () if name in codes]
        order += [name for name in codes if name not in order]
        columns: dict[Hashable, Drawn] = {}
        for name in order:
            if name not in values:
                columns[name] = states[name], codes[name]
                continue
            uniform = uniforms(codes[name], stream, method)
            columns[name] = (known[name] if name in known else values[name]).drawn(codes[name], uniform)
        return columns

    def _drawn(
        self, known: Mapping[Hashable, np.ndarray], n: int, rng: np.random.Generator, method: SamplingMethod
    ) -> dict[Hashable, np.ndarray]:
        """Numbers of states of each node in n records, given how likely what is known is in each state."""
        model = self.to_log_linear()
        sure = {name: int(likely.argmax()) for name, likely in known.items() if np.count_nonzero(likely) == 1}
        codes = {name: np.full(n, state) for name, state in sure.items()}
        if len(sure) == len(self.nodes):
            last, state = sure.popitem()
            rest = conditioned(model, sure).marginal([last]) if sure else model.marginal([last])
            if not rest[state] > 0:
                raise ImpossibleEvidence("evidence has states of all variables, which the model never has together")
        else:
            model = conditioned(model, known) if known else model
            codes |= dict(zip(model.cliques.variables, model.sample(n, rng, method).T, strict=True))
        return {name: codes[name] for name in self.nodes}

    def _own_schema(self) -> Schema | None:
        """The schema, while it is one of this model's variables and states."""
        return own_schema(self.schema, self.nodes, self.states)

    def _readable(self) -> Schema:
        """The schema, or one of the states' names."""
        states = self.states
        return self._own_schema() or Schema({name: states[name] for name in self.nodes}, texts=self.nodes)

    def _as_names(self, variables: Any) -> list[Hashable]:
        nodes = list(self.nodes)
        is_node = isinstance(variables, Hashable) and variables in nodes
        is_name = is_node or isinstance(variables, str) or not isinstance(variables, Iterable)
        names = [variables] if is_name else list(variables)
        unknown = [name for name in names if name not in nodes]
        if unknown or not names:
            raise ValueError(f"variables={variables!r} must name nodes of the model, which has {nodes}")
        return names


def log_linear_of_tables(
    scopes: Iterable[Sequence[Hashable]],
    tables: Iterable[np.ndarray],
    variables: Iterable[Hashable],
    sizes: Mapping[Hashable, int],
    memory_limit: int,
    inference: Inference,
) -> LogLinearModel:
    """The log-linear model of a product of tables; zeros become structural zeros."""
    variables = tuple(variables)
    cliques = Cliques(variables, tuple(sizes[name] for name in variables), tuple(map(tuple, scopes)))
    with np.errstate(divide="ignore"):
        theta = cliques.join([np.log(np.asarray(table)) for table in tables])
    return LogLinearModel(cliques, theta, memory_limit, inference)


def sampled_columns(answers: Answers, n: int, random_state: Any, labels: bool, **options: Any) -> dict[Hashable, Drawn]:
    """The columns of `MarkovNetwork.sample`, which has the parameters, as arrays: without pandas."""
    return answers._sampled(n, random_state, labels, **options)


class SavedModel(Answers):
    """A model's file, to be asked without pgmpy.

    Parameters
    ----------
    file : ModelFile
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.nodes, self.states = file.nodes, file.states
        self.schema, self.within, self.missing_at_random = file.schema, file.within, file.missing_at_random
        sizes = {name: len(file.states[name]) for name in file.nodes}
        self._log_linear = log_linear_of_tables(
            file.scopes, file.factors, file.nodes, sizes, DEFAULT_MEMORY_LIMIT, inference_from_dict(file.inference)
        )

    @property
    def privacy(self) -> Privacy | None:
        """The guarantee under which the model was learned."""
        return self.file.privacy

    @property
    def has_posterior(self) -> bool:
        """Whether the file has draws, for intervals and several synthetic data sets."""
        return self.file.posterior is not None and self.privacy is not None

    @cached_property
    def posterior(self) -> ParameterPosterior | None:
        """Draws of the parameters, if the file has them."""
        if self.file.posterior is None or self.privacy is None:
            return None
        from pgmpy_dp.models.posterior.posterior_file import posterior_from_parts

        parts = self.file.posterior, self.file.posterior_arrays
        beside: dict[Hashable, list[Hashable]] = {name: [] for name in self.nodes}
        for u, v in self.edges:
            beside[u].append(v)
            beside[v].append(u)
        return posterior_from_parts(*parts, self._readable(), beside, self.privacy, self.within)

    @property
    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """Of the graph."""
        return self.file.edges

    def has_edge(self, u: Hashable, v: Hashable) -> bool:
        """Whether two nodes are joined, in either order."""
        return (u, v) in self.file.edges or (v, u) in self.file.edges

    @property
    def factors(self) -> list[np.ndarray]:
        """The tables whose product the model is."""
        return self.file.factors

    @property
    def inference(self) -> Inference:
        """As `MarkovNetwork.inference`."""
        return inference_from_dict(self.file.inference)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def to_log_linear(self) -> LogLinearModel:
        """The product of the factors."""
        return self._log_linear

    def query(self, variables: Any, evidence: Mapping[Hashable, Any] | None = None) -> np.ndarray:
        """As `MarkovNetwork.query`, the table alone."""
        return self._table(variables, evidence)[1]

    def summary(
        self, variable: Hashable, evidence: Mapping[Hashable, Any] | None = None
    ) -> tuple[Number, list[float], np.ndarray]:
        """A number's declaration, levels, and its mean and the quantiles of these."""
        return self._summary(variable, evidence, (0.25, 0.5, 0.75))

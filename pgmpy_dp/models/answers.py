"""Questions to a model, whether it is pgmpy's or was only read from a file. This needs neither pgmpy nor pandas."""

from __future__ import annotations

import itertools
import math
import numbers
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pgmpy_dp.checks import checked_level
from pgmpy_dp.inference.belief_propagation import LOG_ZERO
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.conditioning import ImpossibleEvidence, conditioned
from pgmpy_dp.inference.exact_or_loopy import Inference, inference_from_dict
from pgmpy_dp.inference.junction_tree import DEFAULT_MEMORY_LIMIT
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.sampling import SamplingMethod, check_method, uniforms
from pgmpy_dp.inference.whole_margins import sample_with_margins, with_functions
from pgmpy_dp.learning.few_records import hardly_any, piled_numbers
from pgmpy_dp.learning.level_plan import levels_in
from pgmpy_dp.learning.merging import merged_cells
from pgmpy_dp.models.answer import NO_DRAWS, QUARTILES, Answer, Estimate, Pair, Worth
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.evidence import Evidence, Known, checked_evidence, counted
from pgmpy_dp.models.model_file import ModelFile, schema_for
from pgmpy_dp.models.ordered_draws import contradiction, ordered
from pgmpy_dp.models.posterior.query_intervals import Question
from pgmpy_dp.models.weighting import Weighting
from pgmpy_dp.schema import Level, Number, Schema, decode_label
from pgmpy_dp.schema.levels import leaf_scope
from pgmpy_dp.schema.orders import Orders
from pgmpy_dp.shown import quantity, shown

if TYPE_CHECKING:
    from pgmpy_dp.learning.privacy_record import Privacy
    from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior

_NEARLY = 0.25  # of a record: what draws with few digits may be off a whole count

Drawn = tuple[Number | Sequence, np.ndarray]
"""A column of drawn records: a Number and its numbers (NaN for missing), or states and the number of each record's."""


class _Facts(NamedTuple):
    """Facts about a model that all its answers need, looked up once for all of them."""

    states: Mapping[Hashable, Sequence]
    numbers: Mapping[Hashable, Number]
    posterior: Any
    conditional: str | None


class Answers:
    """A model that can be asked: the base of `MarkovNetwork` and `SavedModel`.

    Attributes
    ----------
    nodes : iterable of nodes
    states : mapping of node to list of states
    schema : Schema or None
    within : mapping of node to Values
    missing_at_random : mapping of node to tuple of nodes
    weighting : Weighting or None
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

    exchanges: Sequence[Any] = ()  # of variables, and tables whose image under an exchange is not there
    alone: Sequence[Any] = ()
    weighting: Weighting | None = None
    _linked: Any = None  # the model of linked tables that this is a view of
    of: str = ""  # whom such a view is about
    # What is said beside why nothing vouches for intervals, where it is of a variable that nobody asked about.
    beside = ""

    def title(self, name: Hashable) -> str:
        """The name of a variable for readers: of linked tables with that of its table.

        Parameters
        ----------
        name : node

        Returns
        -------
        str
        """
        return str(name)

    def counted(self, evidence: Mapping[Hashable, Any] | None) -> dict[Hashable, Evidence]:
        """Read evidence: the states that each variable's counts as, with their shares; of levels too.

        Parameters
        ----------
        evidence : mapping of node to evidence, or None
            See `query`.

        Returns
        -------
        dict of node to Evidence

        Raises
        ------
        TypeError, ValueError
            As `query`.
        ImpossibleEvidence
            If the rules never let values of two numbers be together; a ValueError.
        """
        passed = checked_evidence(evidence)
        scope = self._scope([self._as_names([name])[0] for name in passed], "evidence")
        known = {
            leaf: counted(self._readable(), name, value, self.within.get(leaf))
            for leaf, (name, value) in zip(scope, passed.items(), strict=True)
        }
        if two := contradiction(self._orders, known, of_all=True):
            raise ImpossibleEvidence(
                f"evidence about {two[0]!r} and {two[1]!r} has values that the rules never let be together; leave "
                "them out"
            )
        return known

    @property
    def numbers(self) -> Mapping[Hashable, Number]:
        """The variables whose values are numbers or days, divided as the model's states are."""
        schema = self._valid_schema()
        return {} if schema is None else schema.numbers

    @property
    def impossible(self) -> tuple[str, ...]:
        """Public rules that the factors obey: what breaks one has the probability 0, and is never drawn."""
        schema = self._valid_schema()
        return () if schema is None else schema.impossible

    def _table(self, variables: Any, evidence: Any) -> tuple[list[Hashable], np.ndarray]:
        """The variables of a query, and their distribution; see `MarkovNetwork.query`."""
        names, known = self._as_names(variables), self.counted(evidence)
        scope = self._scope(names)
        require_open(scope, known)
        model = self.to_log_linear()
        if known:
            model = conditioned(model, {name: one.likely for name, one in known.items()})
            if model.approximate_log_partition < LOG_ZERO / 2:
                raise ValueError(f"evidence={evidence!r} has a probability of 0 in the model; leave some of it out")
        places = [None if one is None else one.places for one in scope.values()]
        return names, merged_cells(model.marginal(list(scope)), places)

    def _piled(self, name: Hashable, values: Values, shares: np.ndarray) -> str | None:
        cells = values.piled_share(shares).items()
        text = values.number.text if values.piled else str
        return piled_numbers(str(name), [(text(low), text(high), share) for (low, high), share in cells])

    def ask(
        self,
        variables: Any,
        evidence: Mapping[Hashable, Any] | None = None,
        *,
        of: str | None = None,
        level: float = 0.9,
        counts: bool = False,
        quantiles: Sequence[float] = QUARTILES,
    ) -> Answer:
        """The distribution of some variables given what is known of others, with all that there is to say of it.

        Parameters
        ----------
        variables : list of nodes, or one node
        evidence : dict of node to evidence, optional
            As `query` takes it.
        of : None
            Whom the question is about; for models of linked tables.
        level : float in (0, 1)
            The level of intervals, which the answer has where the model has a `posterior`.
        counts : bool, default False
            Whether to say too how many records these are, of as many as the release was made from.
        quantiles : sequence of float in [0, 1]
            Of a single variable of numbers or days, beside its mean. Values within a cell count as uniform, or as
            `within` has them.

        Returns
        -------
        Answer
            Prints itself; see :class:`~pgmpy_dp.models.answer.Answer` for what it holds.

        Raises
        ------
        ValueError
            As `query`; for a level that needs more draws, and for counts without a `posterior`.
        """
        if of is not None:
            raise ValueError(f"of={of!r} is for models of linked tables; leave it out")
        checked_level(level)
        _check_quantiles(quantiles)
        names, known = self._as_names(variables), self.counted(evidence)
        question, shares = self._question(names, known, self.states), self._table(names, evidence)[1]
        return self._answered(self._facts(), question, names, known, shares, level, counts, quantiles)

    def marginal_answers(self, level: float = 0.9, quantiles: Sequence[float] = QUARTILES) -> dict[Hashable, Answer]:
        """The answers of `ask` about each variable by itself, then about each level, in one pass: for pages.

        Parameters
        ----------
        level, quantiles
            As of `ask`.

        Returns
        -------
        dict of node or level to Answer
        """
        checked_level(level)
        names, facts = [*self.nodes, *self.levels], self._facts()
        questions = [self._question([name], {}, facts.states) for name in names]
        tables = self.to_log_linear().marginals_of([tuple(one.axes) for one in questions])
        drawn = [None] * len(names) if facts.posterior is None else facts.posterior.tables(questions)
        return {
            name: self._answered(facts, question, [name], {}, question.answer(table), level, False, quantiles, draws)
            for name, question, table, draws in zip(names, questions, tables, drawn, strict=True)
        }

    def _facts(self) -> _Facts:
        privacy = self.privacy
        return _Facts(self.states, self.numbers, self.posterior, None if privacy is None else privacy.conditional)

    def _question(self, names: Sequence[Hashable], known: Known, states: Any) -> Question:
        scope = self._scope(names).items()
        told = {name: one.told if one else len(states[name]) for name, one in scope}
        return Question.about(told, {name: one.shares for name, one in known.items()})

    def _answered(
        self,
        facts: _Facts,
        question: Question,
        names: Sequence[Hashable],
        known: Known,
        shares: np.ndarray,
        level: float,
        counts: bool,
        quantiles: Sequence[float],
        drawn: Any = None,
    ) -> Answer:
        """The answer to a question whose shares are there already."""
        scope = self._scope(names)
        posterior, everything = facts.posterior, [*scope, *known]
        refusal = self._refusal(everything, posterior)
        interval: dict[str, np.ndarray] = {}
        size = math.nan if posterior is None else posterior.total
        if counts and not math.isfinite(size):
            raise ValueError("counts=True, and the model does not say how many records there are; leave it out")
        if refusal is None:
            drawn = posterior.tables([question])[0] if drawn is None else drawn
            interval = posterior.ends(question, level, counts, drawn)
            del interval["estimate"]
        number = facts.numbers.get(names[0]) if len(names) == 1 else None
        estimates, missing, piled = {}, None, None
        if number is not None:
            within = self.within.get(names[0]) or Values(number)
            values = known[names[0]].values if names[0] in known else within
            missing = hardly_any(str(names[0]), values.share(shares))
            piled = self._piled(names[0], values, shares)
        if number is not None and missing is None:
            parts = [[values.mean(shares), *values.quantiles(shares, quantiles)]]
            if refusal is None:
                drawn_values = values if names[0] in known else posterior.within.get(names[0]) or values
                parts += posterior.number_ends(question, drawn, values, drawn_values, quantiles, level) or []
            rows = zip(*parts, strict=True)
            estimates = {k: Estimate(*map(float, row)) for k, row in zip(("mean", *quantiles), rows, strict=True)}
        share = self._share(known)
        said = {name if one.level is None else one.level: one for name, one in known.items()}
        worth = Worth(
            unmeasured=self._unmeasured([*names, *said], posterior),
            share=share,
            records=share * size if math.isfinite(size) else None,
            missing=missing,
            piled=piled,
            refusal=refusal,
            outside=None if refusal is not None else self._outside(question, everything, posterior),
            conditional=facts.conditional,
            weighting=None if self.weighting is None else self.weighting.words,
        )
        told = self._listed_states(names, facts.states)
        return Answer(told, said, shares, worth, interval, estimates, number, level=level)

    def _refusal(self, names: Sequence[Hashable], posterior: Any) -> str | None:
        """The reason why a question about some variables gets no intervals; None where it gets them."""
        return NO_DRAWS if posterior is None else None

    def _outside(self, question: Question, names: Sequence[Hashable], posterior: Any) -> str | None:
        """The reason why nothing vouches for intervals; None where probes do."""
        return posterior.outside(names)

    def _share(self, known: Known) -> float:
        """The probability of the evidence, one variable after the other."""
        if not known:
            return 1.0
        model, probability = self.to_log_linear(), 1.0
        before: dict[Hashable, np.ndarray] = {}
        for name, one in known.items():
            conditional = conditioned(model, before) if before else model
            probability *= float(conditional.marginal([name]) @ one.likely)
            before[name] = one.likely
        return probability

    def _unmeasured(self, names: Sequence[Hashable], posterior: Any) -> list[Pair]:
        """Pairs of these variables or levels, and of the weight, whose tables were not measured, least known first."""
        levels, weight = self.levels, [] if self.weighting is None else [self.weighting.name]
        order = [*self.nodes, *levels]  # levels from fine to coarse
        finest = {levels[n].variable if n in levels else n: n for n in sorted({*names}, key=order.index, reverse=True)}
        if len(finest) + len(weight) < 2:
            return []
        if posterior is not None and posterior.discrepancy is not None:
            rows = posterior.pairs_by_error(finest.values())
            if weight:  # its tables are those that were learned
                every = replace(posterior, weighting=None).pairs_by_error([*finest.values(), *weight])
                rows = sorted([*rows, *(row for row in every if weight[0] in row[:2])], key=lambda row: -row[3])
            return [Pair(one, other, error) for one, other, measured, error in rows if not measured]
        cliques = self.to_log_linear().cliques
        held = [{*scope} for scope in (cliques.scopes if self.weighting is None else self.weighting.scopes)]
        pairs = itertools.combinations([*sorted(finest, key=cliques.position.__getitem__), *weight], 2)
        return [Pair(finest[a], finest.get(b, b), None) for a, b in pairs if not any({a, b} <= scope for scope in held)]

    def _sampled(
        self,
        n: int,
        random_state: int | np.random.Generator | None = None,
        labels: bool = False,
        *,
        evidence: Mapping[Hashable, Any] | None = None,
        method: SamplingMethod = "stratified",
        ids: Hashable = None,
    ) -> dict[Hashable, Drawn]:
        """The columns of `MarkovNetwork.sample`, which has the parameters, as arrays."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise ValueError(f"n={n!r} must be a whole number of records, 0 or more")
        check_method(method)
        known = self.counted(evidence)
        rng = np.random.default_rng(random_state)
        if method == "agreeing":
            codes = self._agreeing(int(n), known, rng)
        else:
            codes = self._drawn({name: one.likely for name, one in known.items()}, int(n), rng, method)
        states, schema = self.states, None if labels else self._valid_schema()
        values = {} if schema is None else {name: Values(number) for name, number in schema.numbers.items()}
        values |= {} if labels else dict(self.within)
        # A stream of their own: the states that are drawn, and what else is drawn by `rng`, are the same without them.
        stream = rng.spawn(1)[0] if values else rng
        order = [name for name in self.schema or () if name in codes]
        order += [name for name in codes if name not in order]
        levels = self.levels
        columns: dict[Hashable, Drawn] = {} if ids is None else {ids: fresh_ids(ids, [*order, *levels], int(n))}
        for name in order:
            of_leaf = {key: one for key, one in levels.items() if one.variable == name}
            if name not in values:
                columns[name] = states[name], codes[name]
            else:
                uniform = uniforms(codes[name], stream, method)
                columns[name] = (known[name] if name in known else values[name]).drawn(codes[name], uniform)
            columns |= {key: (one.states, np.array(one.places)[codes[name]]) for key, one in of_leaf.items()}
        orders = self._orders
        if values:
            sources = {name: known.get(name) or values[name] for name in (*orders.names, *orders.differences)}
            numbers = ordered(orders, sources, codes, {name: columns[name][1] for name in sources}, stream)
            columns |= {name: (columns[name][0], column) for name, column in numbers.items()}
        columns = {name: column for name, column in columns.items() if name not in orders.differences}
        constants = {} if self.schema is None else self.schema.constants
        return columns | {name: ((state,), np.zeros(n, dtype=np.intp)) for name, state in constants.items()}

    def _agreeing(self, n: int, known: Known, rng: np.random.Generator) -> dict[Hashable, np.ndarray]:
        """State numbers of each node in as many records as the model's public tables count, which have these."""
        said = [one for one in (self.privacy.public_tables if self.privacy else ()) if "total" in one]
        if not said or known:
            why = "the model has no public tables" if not said else "evidence leaves out some of the people they count"
            raise ValueError(f"method='agreeing', and {why}; pass another method")
        if n != (total := said[0]["total"]):
            raise ValueError(f"n={n!r}, and the model's public tables count {total}; pass n={total} to agree with them")
        scopes = [tuple(map(decode_label, scope)) for scope in said[0]["tables"]]
        model = with_functions(self.to_log_linear(), levels_in(self._readable(), scopes))
        expected = [total * table for table in model.marginals_of(scopes)]
        counts = {scope: np.rint(table) for scope, table in zip(scopes, expected, strict=True)}
        if any(np.abs(table - counts[scope]).max() > _NEARLY for scope, table in zip(scopes, expected, strict=True)):
            raise ValueError("method='agreeing', and the model has left its public tables; pass another method")
        codes, off = sample_with_margins(model, counts, rng)
        for scope, table in off.items():
            name, moved = ", ".join(map(shown, scope)), int(np.abs(table).sum()) // 2
            warnings.warn(
                f"the sample is off the public table of {name} by {quantity(moved, 'record')} of {n:,}", stacklevel=4
            )
        return {name: codes[:, model.cliques.position[name]] for name in self.nodes}

    def _drawn(
        self, known: Mapping[Hashable, np.ndarray], n: int, rng: np.random.Generator, method: SamplingMethod
    ) -> dict[Hashable, np.ndarray]:
        """State numbers of each node in n records; `likely` has the likelihood of the evidence in each state."""
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

    def _valid_schema(self) -> Schema | None:
        """The schema, while it is one of this model's variables and states."""
        return schema_for(self.schema, self.nodes, self.states)

    @property
    def _orders(self) -> Orders:
        return Orders((), {}) if (schema := self._valid_schema()) is None else schema.orders

    def _readable(self) -> Schema:
        """The schema, or one of the states' names."""
        states = self.states
        return self._valid_schema() or Schema({name: states[name] for name in self.nodes}, texts=self.nodes)

    @property
    def levels(self) -> Mapping[Hashable, Level]:
        """The levels of its variables, which may be named where these may."""
        has_levels = self.schema is not None and self.schema.levels  # looked at first, for the next costs
        return schema.levels if has_levels and (schema := self._valid_schema()) is not None else {}

    def _scope(self, names: Iterable[Hashable], argument: str = "variables") -> dict[Hashable, Level | None]:
        return leaf_scope(self.levels, names, argument)

    def _listed_states(
        self, names: Iterable[Hashable], states: Mapping[Hashable, Sequence]
    ) -> dict[Hashable, Sequence]:
        """The states of variables and levels."""
        return {name: self.levels[name].states if name in self.levels else states[name] for name in names}

    def _as_names(self, variables: Any) -> list[Hashable]:
        nodes = [*self.nodes, *self.levels]
        is_node = isinstance(variables, Hashable) and variables in nodes
        is_name = is_node or isinstance(variables, str) or not isinstance(variables, Iterable)
        names = [variables] if is_name else list(variables)
        unknown = [name for name in names if name not in nodes]
        if unknown or not names:
            raise ValueError(f"variables={variables!r} must name nodes of the model, which has {nodes}")
        return names


def require_open(scope: Mapping[Hashable, Level | None], known: Known) -> None:
    """Refuse a query about a variable, or its level, whose state is known."""
    left = {name: np.flatnonzero(one.likely) for name, one in known.items()}
    left |= {name: np.unique(np.take(one.places, left[name])) for name, one in scope.items() if one and name in left}
    if both := [name for name in scope if name in left and len(left[name]) == 1]:
        raise ValueError(f"variables and evidence both have {both}; ask about variables of which nothing is known")


def _check_quantiles(levels: Any) -> None:
    listed = list(levels) if isinstance(levels, Iterable) else [None]
    if not all(isinstance(level, numbers.Real) and 0 <= float(level) <= 1 for level in listed):
        raise ValueError(f"quantiles={levels!r} must be numbers from 0 to 1, such as [0.25, 0.5, 0.75]")


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


def fresh_ids(name: Hashable, taken: Iterable[Hashable], n: int) -> Drawn:
    """A column of the numbers 1 to n, which say nothing of a record; ValueError for a name that is taken."""
    if name in {*taken, *map(str, taken)}:
        raise ValueError(f"ids={name!r} is a column of the model; pass the name of a new one")
    return Number(0, max(n, 1), resolution=1, missing="drop"), np.arange(1.0, n + 1)


def sampled_columns(answers: Answers, n: int, random_state: Any, labels: bool, **options: Any) -> dict[Hashable, Drawn]:
    """The columns of `MarkovNetwork.sample`, which has the parameters, as arrays: without pandas."""
    return answers._sampled(n, random_state, labels, **options)


class SavedModel(Answers):
    """A model that was read from its file, to be asked without pgmpy.

    Parameters
    ----------
    file : ModelFile
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.nodes, self.states = file.nodes, file.states
        self.schema, self.within, self.missing_at_random = file.schema, file.within, file.missing_at_random
        self.weighting = file.weighting
        sizes = {name: len(file.states[name]) for name in file.nodes}
        self._log_linear = log_linear_of_tables(
            file.scopes, file.factors, file.nodes, sizes, DEFAULT_MEMORY_LIMIT, inference_from_dict(file.inference)
        )

    @property
    def privacy(self) -> Privacy | None:
        """The guarantee under which the model was learned."""
        return self.file.privacy

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
        return posterior_from_parts(*parts, self._readable(), beside, self.privacy, self.within, self.weighting)

    @property
    def edges(self) -> list[tuple[Hashable, Hashable]]:
        """The edges of the graph."""
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

"""Models of complete records from models in which "missing" is a state, where cells are missing at random.

Whether a cell is missing may depend on its drivers, other variables, and given these not on the value that would have
been there (Rubin 1976). Then the values among records with that cell tell what the others have, drivers alike.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.maximum_likelihood import maximize_likelihood
from pgmpy_dp.learning.structural_zeros import Box, engine_within
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.schema import Number, Schema
from pgmpy_dp.schema.labels import require_declared

if TYPE_CHECKING:
    from pgmpy_dp.models.markov_network import MarkovNetwork
    from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior

_MOST_CELLS = 2**20  # of a table with all drivers beside it: beyond, as many of these as fit
_AT_ONCE = 2**23  # cells of tables that are computed together
_BARELY = -20.0  # where a structural zero was, while the others are fitted
_MAX_ITER, _TOL = 500, 3e-5

Drivers = Mapping[Hashable, tuple[Hashable, ...]]


def checked_drivers(name: str, value: Any) -> dict[Hashable, tuple[Hashable, ...]]:
    """The drivers of each variable that is missing at random, variables after their drivers.

    Raises
    ------
    TypeError, ValueError
        For another form, a variable without drivers or that drives itself, also by way of others.

    Examples
    --------
    >>> checked_drivers("missing_at_random", {"income": ["job"], "job": ["age"]})
    {'job': ('age',), 'income': ('job',)}
    """
    if not isinstance(value, Mapping) or not all(
        isinstance(names, Iterable) and not isinstance(names, str | bytes) for names in value.values()
    ):
        raise TypeError(
            f"{name}={value!r} is not a mapping of lists; pass {{variable: [what decides if it is missing]}}"
        )
    drivers_of = {variable: tuple(dict.fromkeys(names)) for variable, names in value.items()}
    if alone := [variable for variable, drivers in drivers_of.items() if not drivers]:
        raise ValueError(
            f"{name} has no drivers of {alone}; name variables that decide whether these are missing. Where nothing "
            "does, name any that is never missing"
        )
    order = nx.DiGraph((driver, variable) for variable, drivers in drivers_of.items() for driver in drivers)
    try:
        return {variable: drivers_of[variable] for variable in nx.topological_sort(order) if variable in drivers_of}
    except nx.NetworkXUnfeasible:
        raise ValueError(
            f"{name}={value!r} goes round in a circle: some variable drives itself; take one out"
        ) from None


def driven_pairs(drivers: Drivers) -> list[tuple[Hashable, Hashable]]:
    """Pairs of a variable and one of its drivers: their tables are needed."""
    return [(name, driver) for name, names in drivers.items() for driver in names]


def complete_schema(schema: Schema, drivers: Drivers) -> Schema:
    """The schema of records in which these variables are never missing.

    Raises
    ------
    ValueError
        For unknown variables, those without a state for what is missing or with one other state, and those of which a
        rule says when they are missing: what does not apply has no value to be found.

    Examples
    --------
    >>> schema = Schema({"age": ["young", "old"], "job": ["a", "b", None]})
    >>> complete_schema(schema, {"job": ("age",)})["job"]
    ('a', 'b')
    """
    require_declared(schema.variables, "missing_at_random", chain(*driven_pairs(drivers)))
    numbers, states = schema.numbers, schema.states
    never = [v for v in drivers if (numbers[v].missing != "state" if v in numbers else None not in states[v])]
    if never:
        raise ValueError(
            f"missing_at_random names {never}, which have no state for what is missing, so that records without are "
            "dropped; declare None among their states, or Number(..., missing='state'), or take them out"
        )
    if single := [v for v in drivers if v in states and len(states[v]) < 3]:
        raise ValueError(f"missing_at_random names {single}, which have one state beside None; remove them")
    for box in schema.zeros:
        for variable in drivers.keys() & box.keys():
            missing = states[variable].index(None)
            whole = set(range(schema.cardinality(variable))) - {missing}
            if missing in box[variable] or whole <= box[variable]:
                raise ValueError(
                    f"missing_at_random names {variable!r}, and a rule of {sorted(box, key=repr)} says when it is "
                    "missing: what does not apply has no value to be found; remove one of them"
                )
    content = schema.to_dict()
    for variable, entry in zip(schema.variables, content["variables"], strict=True):
        if variable not in drivers:
            continue
        if variable in numbers:
            kind = numbers[variable].kind
            entry[kind] = {**entry[kind], "missing": "drop"}
            continue
        for listed in (entry["states"], *(level["of"] for level in entry.get("levels", ()))):
            del listed[states[variable].index(None)]
        if variable in schema.other and schema.other[variable] is None:
            del entry["other"]
    try:
        return Schema.from_dict(content)
    except ValueError as error:
        raise ValueError(
            f"missing_at_random names {list(drivers)}, and a rule of the schema names what is missing of them: {error}"
        ) from None


def completed(model: LogLinearModel, missing: Mapping[Hashable, int], drivers: Drivers) -> LogLinearModel:
    """The distribution of complete records, on the same tables without the states for what is missing.

    Parameters
    ----------
    model : LogLinearModel
    missing : mapping of variable to int
        The state of each variable of `drivers` that stands for missing.
    drivers : mapping of variable to tuple of variables
        As `checked_drivers` has them.

    Returns
    -------
    LogLinearModel

    Notes
    -----
    In the table of some variables with the drivers of each, missing values are distributed as the values that are
    there, given all others of that table; then the drivers are summed over. With x the variable, d its drivers, z the
    others and R whether x is there, this is P(z, d) P(x | z, d, R = 1), and P(x | z, d, R = 1) = P(x | z, d) where R is
    independent of x given z and d. Variables come after their drivers, so that a driver that was missing itself has its
    value by then. The model of least information with these tables is the result (the maximum of its likelihood). A
    table keeps the margin of what is never missing.

    Examples
    --------
    Of the old half have no job that is known, and nobody else:

    >>> cliques = Cliques(("age", "job"), (2, 3), (("age", "job"),))
    >>> with np.errstate(divide="ignore"):
    ...     model = LogLinearModel(cliques, np.log([0.3, 0.2, 0.0, 0.05, 0.2, 0.25]))
    >>> completed(model, {"job": 2}, {"job": ("age",)}).marginal(["age", "job"]).round(3)
    array([[0.3, 0.2],
           [0.1, 0.4]])
    """
    return _completed(model, _Layout(model, missing, drivers))


class _Layout:
    """The cells of a model's tables that complete records have, and the tables with drivers that they are made from.

    One serves all draws of a model: its junction tree is made once.
    """

    def __init__(
        self, model: LogLinearModel, missing: Mapping[Hashable, int], drivers: Drivers, boxes: Sequence[Box] = ()
    ) -> None:
        cliques, self.missing, self.drivers = model.cliques, missing, drivers
        self.size = dict(zip(cliques.variables, cliques.cardinalities, strict=True))
        left = tuple(size - (name in missing) for name, size in self.size.items())
        self.cliques = Cliques(cliques.variables, left, cliques.scopes)
        kept = []
        for scope, shape in zip(cliques.scopes, cliques.shapes, strict=True):
            here = np.ones(shape, dtype=bool)
            for name in missing.keys() & set(scope):
                here[(slice(None),) * scope.index(name) + (missing[name],)] = False
            kept.append(here.ravel())
        self.kept = np.concatenate(kept)
        self.beside = [self._with_drivers(scope) for scope in cliques.scopes]
        self.engine = engine_within(self.cliques, boxes, model.inference, model.memory_limit)

    def _with_drivers(self, scope: tuple) -> tuple:
        extended = list(scope)
        for name in reversed(self.drivers):  # those of a driver come later in this order
            for driver in self.drivers[name] if name in extended else ():
                if driver not in extended and math.prod(self.size[v] for v in (*extended, driver)) <= _MOST_CELLS:
                    extended.append(driver)
        return tuple(extended)

    def filled(self, table: np.ndarray, names: tuple, n_kept: int) -> np.ndarray:
        """The first `n_kept` variables of a table, with what is missing spread."""
        for name in self.drivers:
            if name not in names:
                continue
            axis = names.index(name)
            known = np.delete(table, self.missing[name], axis)
            there = known.sum(axis=axis, keepdims=True)
            ratio = np.divide(table.sum(axis=axis, keepdims=True), there, out=np.zeros_like(there), where=there > 0)
            table = known * ratio
        return table.sum(axis=tuple(range(n_kept, len(names))))

    def tables(self, model: LogLinearModel) -> np.ndarray:
        """The tables of complete records for each table of the model, all in a row."""
        wanted = list(dict.fromkeys(self.beside))
        made: dict[tuple, np.ndarray] = {}
        while wanted:
            cells, some = 0, 0
            while some < len(wanted) and (some == 0 or cells < _AT_ONCE):
                cells += math.prod(self.size[name] for name in wanted[some])
                some += 1
            made |= zip(wanted[:some], model.marginals_of(wanted[:some]), strict=True)
            wanted = wanted[some:]
        tables = [
            self.filled(made[names], names, len(scope))
            for scope, names in zip(self.cliques.scopes, self.beside, strict=True)
        ]
        return np.concatenate([(table / table.sum()).ravel() for table in tables])


def _completed(model: LogLinearModel, layout: _Layout) -> LogLinearModel:
    impossible = np.isneginf(model.theta[layout.kept])
    start = np.where(impossible, _BARELY, model.theta[layout.kept])
    # Tables that are filled one by one agree almost. Along what they disagree about, a penalty on what changes pulls
    # alone: A(theta) - theta t + penalty/2 |theta - start|^2. Many cells shall not add up to much.
    penalty = float(np.clip(0.2 / max(layout.cliques.sizes), 1e-5, 1e-4))
    target = layout.tables(model) + penalty * start
    solution = maximize_likelihood(layout.engine, target, l2=penalty, start=start, max_iter=_MAX_ITER, tol=_TOL)
    theta = np.where(impossible, -np.inf, solution.x)
    return LogLinearModel(layout.cliques, theta, model.memory_limit, model.inference)


def complete_posterior(
    posterior: ParameterPosterior, drivers: Drivers, complete: MarkovNetwork | None = None
) -> ParameterPosterior:
    """Draws of the parameters of the model of complete records, from draws of one in which missing is a state.

    Parameters
    ----------
    posterior : ParameterPosterior
    drivers : mapping of variable to tuple of variables
    complete : MarkovNetwork, optional
        The model, completed.

    Returns
    -------
    ParameterPosterior
        Each draw is completed by itself, so that noise in who is missing counts.
    """
    schema = complete_schema(posterior.schema, drivers)
    missing = _missing(posterior.schema, drivers)
    draws = posterior.draws
    layout = _Layout(draws.model(0), missing, drivers, schema.zeros)
    theta = [_completed(draws.model(k), layout).theta for k in range(draws.n_draws)]
    model = posterior.model
    if complete is not None:
        model = complete.to_log_linear()
    elif model is not None:
        model = _completed(model, _Layout(model, missing, drivers, schema.zeros))
    return replace(
        posterior,
        draws=replace(draws, cliques=layout.cliques, theta=np.array(theta)).obeying(schema.zeros),
        schema=schema,
        model=model,
        within=_within(posterior.within, posterior.schema, drivers),
    )


def complete_model(network: MarkovNetwork, drivers: Drivers, joint: LogLinearModel | None = None) -> MarkovNetwork:
    """The model that :meth:`~pgmpy_dp.MarkovNetwork.complete` returns; `joint`: its distribution in small tables."""
    before = network._readable()
    schema = complete_schema(before, drivers)
    together = {pair for factor in network.factors for pair in combinations(factor.variables, 2)}
    if apart := [pair for pair in driven_pairs(drivers) if not {pair, pair[::-1]} & together]:
        raise ValueError(
            f"missing_at_random needs a table of each variable with each of its drivers, and the model has none of "
            f"{apart}; learn one with required_edges={apart}, or with these edges in the given graph"
        )
    joint = network.to_log_linear() if joint is None else joint
    layout = _Layout(joint, _missing(before, drivers), drivers, schema.zeros)
    graph = nx.Graph()
    graph.add_nodes_from(network.nodes)  # in their order, which tables and draws have
    graph.add_edges_from(network.edges)
    made = network.from_log_linear(
        _completed(joint, layout),
        graph,
        schema,
        network.privacy,
        _within(network.within, before, drivers),
    )
    made.latents = set(network.latents)
    made.missing_at_random = {**network.missing_at_random, **drivers}
    if network.posterior is not None:
        made.posterior = complete_posterior(network.posterior, drivers, made)
    return made


def _missing(schema: Schema, drivers: Drivers) -> dict[Hashable, int]:
    return {variable: schema.states[variable].index(None) for variable in drivers}


def _within(within: Mapping[Hashable, Values], schema: Schema, drivers: Drivers) -> dict[Hashable, Values]:
    """The distributions of values within states, without the states for what is missing."""
    without_missing = dict(within)
    for name in drivers.keys() & within.keys():
        values, code = within[name], schema.states[name].index(None)
        place = values.finer.index(None)
        if isinstance(values.declared, Number):
            declared: Number | Sequence = replace(values.declared, missing="drop")
        else:
            declared = [state for state in values.declared if state is not None]
        state = None if values.state is None else np.delete(values.state, place)
        without_missing[name] = replace(
            values,
            declared=declared,
            state=None if state is None else state - (state > code),
            weights=None if values.weights is None else np.delete(values.weights, place),
        )
    return without_missing

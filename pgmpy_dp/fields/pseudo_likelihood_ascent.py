"""Private gradient ascent on the joint pseudo-likelihood of an Ising model, a pairwise or a binary t-wise field.

Each step adds discrete Gaussian noise to the sum of all records' clipped gradients and moves the parameters. After a
first part of the steps, interactions that the noise hides are dropped for good: what is left has far fewer parameters,
and a gradient with fewer parameters is shorter and needs less noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.operators.field_gradients import FieldDesign, PseudoLikelihood, ResidualGrid, gradient_multiplier
from pgmpy_dp.learning.ascent import PARAMETER_UNIT, parameter_integers, released_parameters
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.learning.public_graph import edge_positions, encoded_graph
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema

_MOST_SCOPES = 200_000
_DEFAULTS = {"clip_norm": 1.5, "learning_rate": 0.3, "first_share": 0.5, "threshold": 3.0, "count_share": 0.01}


@dataclass(frozen=True)
class _Plan:
    """Everything that follows from public numbers."""

    design: FieldDesign
    steps: tuple[int, ...]  # of each of the parts
    parts: tuple[Fraction, ...]  # share of the cost of a step of each part
    multipliers: tuple[float, ...]  # noise of a step of each part, in units of the clip norm
    count_part: Fraction | None


@dataclass(frozen=True, eq=False)
class _Found:
    """The interactions that are left, their parameters (at the end averages), the steps that each part has taken."""

    design: FieldDesign
    theta: np.ndarray
    steps: tuple[int, ...]


def run(
    table: PrivateTable,
    settings: Settings,
    budget: Budget,
    progress: Callable[[], None] | None = None,
) -> Release:
    """Ascend the pseudo-likelihood by noisy clipped gradients and release the averaged parameters.

    Refuses a schema or a graph that does not fit the family, or a budget that this method cannot use.

    Parameters
    ----------
    table : PrivateTable
        All variables of its schema take part.
    settings : Settings
        `family` ("ising", "pairwise" or "binary"), `order`, `width`, `graph`, `sparse`, `n_iter` (the steps, by default
        60) and `random_state`. No interaction leaves +-width, the public bound on the sum of a node's interactions and
        field. With `sparse` only the interactions that stand out of the noise are kept after a first part of the steps.

        What no estimator asks: `clip_norm`, the l2 norm that no record's gradient exceeds, as a multiple of its norm
        at the uniform distribution (default: 1.5); `learning_rate` for the mean gradient of a record (0.3);
        `first_share`, the part of the steps and of the budget before interactions are dropped (0.5); `threshold`: those
        are kept that exceed so many standard deviations of their noise (3); `count_share`, the part of the budget (of
        rho) for a noisy number of records, where no public one is known (0.01).
    budget : Budget
        ``rho``, or ``epsilon`` with ``delta``.
    progress : callable, optional
        Called without arguments after each step.

    Returns
    -------
    Release
        ``kind="pseudo_likelihood"``; ``values[0]`` holds the log-potentials, flat, in units of
        ``public["parameter_unit"]`` (see :func:`parameters`); ``values[1]``, if the number of records was not public, a
        noisy count of them.
        ``public["path"]`` says how they were found, and how many interactions were kept.

    Notes
    -----
    Privacy
        *Sensitivity.* A record's clipped gradient has l2 norm at most B, exactly, and depends on the record and on the
        current parameters, which are public, alone. Under ``add_remove`` the clipped sum moves by at most B, under
        ``replace_one`` by at most 2B (:func:`~pgmpy_dp.fields.operators.pseudo_likelihood.gradient_sum`). B is a
        function of the settings and of which interactions are left, a public outcome of earlier steps.

        *Guarantee.* rho-zCDP. Step t with noise of scale sigma_t is ``(1 or 4) B_t**2/(2 sigma_t**2)``-zCDP for
        whatever earlier steps released; the ratio B_t/sigma_t is fixed before the first step, and the costs of all
        steps and of the count add up to at most rho, in exact arithmetic. An (epsilon, delta) budget is used as the
        largest rho that dp-accounting converts to it. There is no pure guarantee.

        *Source.* Bassily, Smith and Thakurta 2014 for the method; Canonne, Kamath and Steinke 2020, Theorem 4, for the
        noise; Bun and Steinke 2016, Lemma 2.3, for adaptive composition.

        *Side channels.* A table without records is noise like any other. Running time depends on the number of records.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [0] * 500 + [1] * 500, "b": [0] * 450 + [1] * 500 + [0] * 50})
    >>> table = PrivateTable(frame, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=1.0))
    >>> from pgmpy_dp.estimators import PrivateIsing
    >>> from pgmpy_dp.learning.options import settings_of
    >>> settings = settings_of(PrivateIsing(width=2.0)).but(family="ising", order=2)
    >>> release = run(table, settings, Budget(rho=1.0))
    >>> fields, interaction = parameters(release)[:2], parameters(release)[2]
    >>> bool(interaction > 1)
    True
    """
    budget = require_table_and_budget(table, budget, "a Budget, e.g. Budget(rho=0.1)")
    settings = settings.filled(n_steps=settings.n_iter or 60, **_DEFAULTS)
    plan = _plan(table, settings, budget)
    curator = TableCurator(
        table,
        budget,
        what=f"{settings.n_steps} gradient steps for {plan.design.n_parameters} parameters of a field",
        mechanism="discrete_gaussian",
        random_state=settings.random_state,
    )
    scopes = field_scopes(len(table.schema), settings.order)
    public = {
        "family": settings.family,
        "order": settings.order,
        "graph": encoded_graph(settings.graph),
        "width": settings.width,
        "parameter_unit": PARAMETER_UNIT,
        "settings": settings.public(budget, "count_share"),
    }

    def release(found: _Found) -> Release:
        path = {
            "n_steps": list(found.steps),
            "noise_multipliers": list(plan.multipliers),
            "clip_norm": settings.clip_norm,
            "learning_rate": settings.learning_rate,
            "n_interactions": [_interactions(plan.design), _interactions(found.design)],
        }
        flat = _log_potentials(found.design, found.theta, scopes, settings.family == "pairwise")
        values = {"parameters": parameter_integers(flat), **curator.called("n_records")}
        return curator.release("pseudo_likelihood", {**public, "path": path}, values)

    return curator.following(_ascend(curator, settings, plan, progress), release)


def parameters(release: Release) -> np.ndarray:
    """Log-potentials of a release of this learner, flat.

    One table after the other, in the order of :func:`~pgmpy_dp.fields.field_scopes.field_scopes` over the
    positions of the schema's variables: fields first, then interactions, with zeros for those that were dropped. For
    "ising" and "binary" a table is one number, the coefficient of the product of its spins; for "pairwise" it has an
    entry for each combination of states, in C order.
    """
    return released_parameters(release, "pseudo_likelihood", "parameters")[0]


def log_potentials(design: FieldDesign, theta: np.ndarray) -> list[np.ndarray]:
    """Log-potential of each scope over the states of its variables, of shape (k_i, ...)."""
    found = []
    for scope, start, stop in zip(design.scopes, design.starts[:-1], design.starts[1:], strict=True):
        table = theta[start:stop].reshape([design.cardinalities[i] - 1 for i in scope])
        for i in scope:  # the axis that is contracted comes first, its states go last
            table = np.tensordot(table, design.features[i] / design.scale, axes=(0, 0))
        found.append(table)
    return found


def _ascend(
    curator: TableCurator, settings: Settings, plan: _Plan, progress: Callable[[], None] | None
) -> Generator[_Found, None, None]:
    """What was found before the first and after each step. Between two noisy sums everything is post-processing."""
    n = curator.facts.n_records if plan.count_part is None else curator.ask(RecordCount(), plan.count_part)
    records = max(float(n or 0), 1.0)
    design = plan.design
    theta = np.zeros(design.n_parameters)
    yield _Found(design, theta, (0,))
    for part, (n_steps, multiplier) in enumerate(zip(plan.steps, plan.multipliers, strict=True)):
        field = PseudoLikelihood(curator, design.scopes, settings.clip_norm * design.reference_norm)
        average, averaged = np.zeros_like(theta), (n_steps + 1) // 2
        for step in range(n_steps):
            noisy = field.gradient(theta, plan.parts[part])
            theta = _within(
                theta + settings.learning_rate / records * (noisy * field.unit_size), design, settings.width
            )
            if step >= n_steps - averaged:
                average += theta / averaged
            if progress is not None:
                progress()
            yield _Found(design, theta, (*plan.steps[:part], step + 1))
        theta = average
        if part < len(plan.steps) - 1:
            sd = math.nextafter(multiplier * field.bound, math.inf) * field.unit_size / records
            design, theta = _without_hidden(design, theta, settings, sd, n_steps, records)
    yield _Found(design, theta, plan.steps)


def _within(theta: np.ndarray, design: FieldDesign, width: float) -> np.ndarray:
    """Project each interaction and field on a ball that holds it in every model of that width."""
    norms = _group_norms(design, theta)
    return theta * _per_parameter(design, width / np.maximum(norms, width))


def _group_norms(design: FieldDesign, theta: np.ndarray) -> np.ndarray:
    """Root of the sum of squares of the parameters of each scope, shape (n_scopes,)."""
    return np.sqrt(np.add.reduceat(theta**2, design.starts[:-1])) if design.scopes else np.empty(0)


def _per_parameter(design: FieldDesign, values: np.ndarray) -> np.ndarray:
    """One value per scope, repeated for its parameters."""
    return np.repeat(values, np.diff(design.starts))


def _without_hidden(
    design: FieldDesign, theta: np.ndarray, settings: Settings, sd: float, n_steps: int, records: float
) -> tuple[FieldDesign, np.ndarray]:
    """Drop the interactions within the noise of averaged steps and of sampling, from public and noisy numbers."""
    # Near the optimum a coordinate's error is its averaged noise over the curvature, about 1.2 for two nodes' terms.
    error = math.sqrt((sd / 1.2) ** 2 / n_steps + 1.0 / records)
    sizes = np.diff(design.starts)
    kept = _group_norms(design, theta) > settings.threshold * error * np.sqrt(sizes)
    kept |= np.array([len(scope) == 1 for scope in design.scopes])
    chosen = FieldDesign(design.cardinalities, tuple(s for s, keep in zip(design.scopes, kept, strict=True) if keep))
    return chosen, theta[_per_parameter(design, kept)]


def _log_potentials(
    design: FieldDesign, theta: np.ndarray, scopes: Sequence[tuple[int, ...]], tables: bool
) -> np.ndarray:
    """Coefficients or tables of all `scopes`, flat, with zeros for those that `design` does not have."""
    if not tables:
        found = dict(zip(design.scopes, theta, strict=True))
        return np.array([found.get(scope, 0.0) for scope in scopes])
    known = dict(zip(design.scopes, log_potentials(design, theta), strict=True))
    empty = (np.zeros([design.cardinalities[i] for i in scope]) for scope in scopes)
    return np.concatenate([known.get(s, zeros).ravel() for s, zeros in zip(scopes, empty, strict=True)])


def _interactions(design: FieldDesign) -> int:
    return sum(len(scope) > 1 for scope in design.scopes)


def _plan(table: PrivateTable, settings: Settings, budget: Budget) -> _Plan:
    """Parameters, noise and cost, from public numbers; refuses what cannot be done before anything is spent."""
    if budget.rho is None and not budget.delta:
        raise ValueError(
            f"delta=0 with epsilon={budget.epsilon!r}: gradients with Gaussian noise have no pure guarantee; "
            "pass a delta above 0 (at most 1/n_records), or rho"
        )
    design = _design(table.schema, settings)
    # The grids between that of all interactions and that of none are finer than the first, with a norm above the last.
    for possible in (design, FieldDesign(design.cardinalities, field_scopes(design.n_variables, 1))):
        ResidualGrid(settings.clip_norm * possible.reference_norm, possible)
    cost = cost_of(budget)
    assert isinstance(cost, ZCDP)
    steps: tuple[int, ...] = (settings.n_steps,)
    shares = [1.0]
    if settings.sparse and _interactions(design):
        first = min(max(round(settings.first_share * settings.n_steps), 1), settings.n_steps - 1)
        steps, shares = (first, settings.n_steps - first), [settings.first_share, 1.0 - settings.first_share]
    weights = [Fraction(share / n) for share, n in zip(shares, steps, strict=True)]
    count = Fraction(settings.count_share / (1.0 - settings.count_share)) if table.n_records is None else Fraction(0)
    total = count + sum((weight * n for weight, n in zip(weights, steps, strict=True)), start=Fraction(0))
    parts = tuple(weight / total for weight in weights)
    multipliers = tuple(gradient_multiplier(table.adjacency, cost, part) for part in parts)
    return _Plan(design, steps, parts, multipliers, count / total if count else None)


def _design(schema: Schema, settings: Settings) -> FieldDesign:
    cardinalities = tuple(schema.cardinality(name) for name in schema.variables)
    many = [name for name, k in zip(schema.variables, cardinalities, strict=True) if k != 2]
    if many and settings.family != "pairwise":
        raise ValueError(
            f"schema: {many} have other than 2 states, and family={settings.family!r} is of binary variables; "
            "use family='pairwise', or merge states"
        )
    if settings.order > max(len(cardinalities), 2):
        raise ValueError(f"order={settings.order!r} is more than the {len(cardinalities)} variables; pass at most that")
    edges = None if settings.graph is None else edge_positions(schema, settings.graph)
    scopes = sum(math.comb(len(cardinalities), size) for size in range(1, settings.order + 1))
    if edges is None and scopes > _MOST_SCOPES:
        raise ValueError(
            f"order={settings.order!r} gives {scopes} sets of variables, more than {_MOST_SCOPES}; lower it"
        )
    return FieldDesign(cardinalities, field_scopes(len(cardinalities), settings.order, edges))

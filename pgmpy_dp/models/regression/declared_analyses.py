"""Regressions, differences of means and tests of independence, asked around a released model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.learning.opened_table import table_for
from pgmpy_dp.learning.options import adjacencies, arguments_of, declares, flag, one_of, whole
from pgmpy_dp.learning.privacy_record import Privacy, handed_over, released
from pgmpy_dp.models.placed_model import PlacedModel
from pgmpy_dp.models.regression import independence_test, score_rounds
from pgmpy_dp.models.regression.formula import States, analysis_of
from pgmpy_dp.models.regression.independence_test import IndependenceTest
from pgmpy_dp.models.regression.regression_fit import Regression
from pgmpy_dp.models.regression.score_equations import ScoreEquations
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget, require_budget, unit_budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.operators.score_sums import FAMILIES
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity

_EXAMPLE = "a Budget, e.g. Budget(epsilon=0.3, delta=1e-9)"
_OF_RECORDS = {"others": flag(), "adjacency": adjacencies(), "n_records": whole(0), "random_state": whole(0)}


@declares(family=one_of(FAMILIES), rounds=whole(1, 8), **_OF_RECORDS)
def regress(
    network: Any,
    formula: str | Sequence[str],
    df: Any,
    budget: Budget,
    *,
    family: str = "logit",
    success: Hashable = None,
    scores: Mapping[Hashable, Mapping[Hashable, float]] | None = None,
    rounds: int = 2,
    weight: Hashable = None,
    others: bool = False,
    schema: Schema | dict | None = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
) -> Any:
    """Estimate regressions of records around a released model, for :meth:`pgmpy_dp.MarkovNetwork.regress`."""
    require_budget(budget, _EXAMPLE)
    records = {"adjacency": adjacency, "n_records": n_records, "random_state": random_state}
    settings = arguments_of(regress, family=family, rounds=rounds, others=others, **records)
    scored = _asked_around(network)
    schema, orders, merged = _reading(scored, df, schema)
    declared = _declared(scored, formula, settings.family, success, scores, weight)
    neighbours = Adjacency.parse(adjacency or (df.adjacency if isinstance(df, PrivateTable) else Adjacency.ADD_REMOVE))
    start = score_rounds.first_questions(declared, orders, n_records)
    score_rounds.planned(start, settings.rounds, budget, neighbours)
    table = table_for(df, schema, budget, settings, unit, rows_per_unit)
    facts = _facts(network, scored, table, settings.others, budget, rounds=settings.rounds)
    release = released(table, score_rounds.run, declared, start, settings, budget, orders, merged, facts)
    with handed_over(release):
        fits = Regression.every(release, Privacy.of(release, table.ledger.entries))
    return fits[0] if isinstance(formula, str) else fits


@declares(**_OF_RECORDS)
def independence(
    network: Any,
    first: Hashable,
    second: Hashable,
    df: Any,
    budget: Budget,
    *,
    others: bool = False,
    schema: Schema | dict | None = None,
    adjacency: str | None = None,
    n_records: int | None = None,
    random_state: int | None = None,
    unit: Hashable = None,
    rows_per_unit: int | str | None = None,
) -> IndependenceTest:
    """Test whether two variables are independent, for :meth:`pgmpy_dp.MarkovNetwork.independence`."""
    require_budget(budget, _EXAMPLE)
    options = {"others": others, "adjacency": adjacency, "n_records": n_records, "random_state": random_state}
    settings = arguments_of(independence, **options)
    scored = _asked_around(network, edges=False)
    public = States.checked(scored)
    variables = public.variable(str(first), "first"), public.variable(str(second), "second")
    if variables[0] == variables[1]:
        raise ValueError(f"first and second are both {first!r}; pass two variables")
    masks = {name: public.complete(name) for name in variables}
    if lonely := [name for name, mask in masks.items() if mask.sum() < 2]:
        raise ValueError(f"{lonely[0]!r} has one value only, and is independent of everything")
    schema, orders, merged = _reading(scored, df, schema)
    kept = [np.flatnonzero(mask[orders[name]] if name in orders else mask).tolist() for name, mask in masks.items()]
    table = table_for(df, schema, budget, settings, unit, rows_per_unit)
    facts = _facts(network, scored, table, settings.others, budget)
    release = released(table, independence_test.run, variables, kept, settings, budget, merged, facts)
    with handed_over(release):
        return IndependenceTest.of(release, Privacy.of(release, table.ledger.entries))


def plan_regression(
    scored: PlacedModel,
    n: int,
    budget: Budget,
    *,
    formula: str | Sequence[str],
    family: str = "logit",
    success: Hashable = None,
    scores: Mapping[Hashable, Mapping[Hashable, float]] | None = None,
    rounds: int = 2,
    weight: Hashable = None,
    adjacency: str = "add_remove",
    rows_per_unit: int | str = 1,
) -> tuple[pd.DataFrame, dict[str, Any], str]:
    """Forecast how wide the intervals of `regress` would be: from the model and public numbers; it reads no records.

    Parameters
    ----------
    scored : PlacedModel
    n : int
        The assumed number of records: a public guess.
    budget, formula, family, success, scores, rounds, weight, adjacency, rows_per_unit
        As `regress` takes them.

    Returns
    -------
    table : pandas.DataFrame
        A row for each coefficient: ``formula`` and ``coefficient``; ``bse``, the standard error to expect;
        ``bse_noise``, the part that is privacy; ``width``, that of intervals over those without privacy.
    facts : dict
        The same, JSON-able.
    text : str
        The same to read.
    """
    require_budget(budget, _EXAMPLE)
    settings = arguments_of(regress, family=family, rounds=rounds, adjacency=adjacency)
    declared = _declared(_asked_around(scored), formula, settings.family, success, scores, weight)
    spent = unit_budget(budget, rows_per_unit)
    first = score_rounds.first_questions(declared, {}, n)
    law = "gaussian" if budget.delta else "auto"  # as in a ledger that paid for a network: it counts zCDP
    _, planned = score_rounds.planned(first, settings.rounds, spent, Adjacency.parse(adjacency), law)
    tables = []
    for one, start, last in zip(declared, first, planned, strict=True):
        made = score_rounds.Round.of(one, start, np.zeros(len(start.shape) + 1), last, n * one.complete)
        square = one.analysis.unit**2
        sampling = np.diag(one.sampling(made.start)) * square * spent.rows / (n * one.complete)
        noise = np.diag(one.back @ made.noise @ one.back.T) * square
        ratio = np.divide(noise, sampling, out=np.full_like(noise, np.inf), where=sampling > 0)
        columns = {"formula": one.analysis.formula, "coefficient": [column.name for column in one.analysis.columns]}
        errors = {"bse": np.sqrt(sampling + noise), "bse_noise": np.sqrt(noise), "width": np.sqrt(1.0 + ratio)}
        tables.append(pd.DataFrame({**columns, **errors}))
    table = pd.concat(tables, ignore_index=True)
    head = f"{budget} under {adjacency}, {quantity(n, 'record')} assumed; width: over that of intervals without privacy"
    told = table.round(4).drop(columns=[] if len(declared) > 1 else "formula")
    return table, {"coefficients": table.to_dict("records")}, f"{head}\n{told.to_string(index=False)}"


def _asked_around(network: Any, *, edges: bool = True) -> PlacedModel:
    """The model that is asked around; ValueError for one that no regression is asked of."""
    if getattr(network, "_linked", None) is not None:
        raise ValueError(
            "the model is a view of linked tables, whose rows are not weighed; regress on a model of one table"
        )
    scored = network if isinstance(network, PlacedModel) else PlacedModel.of_network(network)
    if edges and len(scored.states) > 1 and all(len(scope) < 2 for scope in scored.model.cliques.scopes):
        raise ValueError(
            "the model has no edges, and is too far from any records to ask around: its intervals would not hold; "
            "learn one with edges"
        )
    return scored


def _reading(scored: PlacedModel, df: Any, schema: Any) -> tuple[Schema | None, dict, tuple[Schema, dict] | None]:
    """The schema that reads records, orders of states in it, and the merging that brings it to the model's states."""
    passed = isinstance(df, PrivateTable)
    read = schema if passed else scored.reading(schema)
    return (read, *scored.placed((df.schema if passed else read).fine()))


def _declared(
    scored: PlacedModel, formula: Any, family: str, success: Hashable, scores: Any, weight: Hashable
) -> list[ScoreEquations]:
    """The equations of one formula, or of each of several, in the states of a model."""
    formulas = list(formula) if isinstance(formula, Sequence) and not isinstance(formula, str) else [formula]
    if not formulas:
        raise ValueError("formula is an empty list; pass one formula, or several")
    states = States.checked(scored, scores)
    return [ScoreEquations.of(analysis_of(one, states, family, success, weight), scored.model) for one in formulas]


def _facts(
    network: Any, scored: PlacedModel, table: PrivateTable, others: bool, budget: Budget, **settings: Any
) -> dict[str, Any]:
    """What a release tells: settings, the model's digest, the guarantee that adds up. ValueError where none does."""
    earlier = None if others else network.privacy
    if earlier is not None:
        ours, theirs = (f"adjacency={str(one.adjacency)!r} and unit={one.unit!r}" for one in (table, earlier))
        if ours != theirs:
            theirs = theirs if earlier.guarantee else str(earlier)
            raise ValueError(
                f"the model was learned under {theirs}, and the records are under {ours}: their costs do not add up. "
                "Use the same for both; or pass others=True if it was learned from other people"
            )
        if table.ledger.path is not None and earlier.ledger not in (None, table.ledger.id):
            raise ValueError(
                "another ledger paid for the model: the records' ledger would not say all that is known of them. Pass "
                "the ledger of the fit; or others=True if the model was learned from other people"
            )
    facts: dict[str, Any] = {"settings": {"budget": budget.guarantee.to_dict(), **settings, "model": scored.digest}}
    if earlier is not None:
        facts["settings"]["prior"] = earlier.to_dict()
    if scored.discovered:
        facts["model_discovered"] = [dict(cost) for cost in scored.discovered]
    return facts

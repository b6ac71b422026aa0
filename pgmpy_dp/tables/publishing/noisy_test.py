"""A test whether a released model meets its criteria: each is a number that a record moves by 1, with noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.markov_network import MarkovNetwork
from pgmpy_dp.models.posterior.noisy_ratio import difference_quantile
from pgmpy_dp.models.regression import score_rounds
from pgmpy_dp.models.regression.formula import States, analysis_of
from pgmpy_dp.models.regression.score_equations import ScoreEquations
from pgmpy_dp.models.scored_model import ScoredModel
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.operators.model_errors import ModelErrors
from pgmpy_dp.private.operators.record_count import RecordCount
from pgmpy_dp.private.sensitive import Noise
from pgmpy_dp.schema import Schema
from pgmpy_dp.shown import quantity
from pgmpy_dp.tables.publishing.criteria import Criteria, Criterion, every_scope

CHANCE = 0.05
"""Of a wrong answer, outside the margins that are said."""

_LEAST_COUNTED, _MOST_COUNTED = Fraction(1, 50), Fraction(1, 2)
_COUNTED = 10.0  # deviations of their number that the records of a regression have to exceed
_HALF = 0.5  # discrete noise, and rounding, are off by so much more than continuous noise


def _shares(criteria: Criteria) -> tuple[Fraction, Fraction]:
    """The shares of the test's budget: for the number of records, and for each criterion.

    The noise of the number counts as much as the largest bound is of all records.
    """
    most, each = max(one.part for one in criteria.each), math.sqrt(len(criteria))
    counted = Fraction(most / (most + each)).limit_denominator(1000)
    counted = min(max(counted, _LEAST_COUNTED), _MOST_COUNTED)
    return counted, (1 - counted) / len(criteria)


def planned_noise(criteria: Criteria, budget: Budget) -> tuple[Noise, Noise]:
    """The noise of each criterion's number, and of the number of records; ValueError where it would bury any count."""
    cost, (counted, each) = cost_of(budget), _shares(criteria)
    return ModelErrors.noise_of(1, cost, each), RecordCount.noise_of(cost, counted)


def reaches(criteria: Criteria, budget: Budget, chance: float) -> list[float]:
    """The reach of noise for each criterion, in records: see `margins`."""
    noise, count = planned_noise(criteria, budget)
    level = 1.0 - chance / len(criteria)  # of two sides, and of two ways to be wrong
    return [
        difference_quantile(noise.distribution, noise.scale, one.part * count.scale, level) + (2.0 + one.part) * _HALF
        for one in criteria.each
    ]


def margins(criteria: Criteria, n: float, budget: Budget, chance: float) -> list[float]:
    """The margin of each criterion: an error further from its bound gets a wrong answer with at most a chance.

    Notes
    -----
    A criterion of the exact number u of N records, and a bound b in parts of these, is met if ``u + X <= b (N + Y)``,
    X and Y the noise, u rounded to a whole number; and if ``c <= b (N + Y)``, so that noise that is larger than
    what is tested says "no". c is the reach, which ``X - b Y`` exceeds with probability chance/(2 k), of k criteria.
    If all u are at most ``b N - c``, and all ``b N`` at least 2 c, the answer is "no" with a probability of at most
    chance: each of the 2 k comparisons fails with chance/(2 k) at most. If one u is above ``b N + c``, it is "yes" with
    one of at most chance/(2 k). That of a regression is NaN: how much noise its coefficients have depends on the model.
    """
    distances = reaches(criteria, budget, chance)
    units = [math.nan if one.analysis else one.unit for one in criteria.each]
    return [unit * reach / n for unit, reach in zip(units, distances, strict=True)]


def run(
    table: PrivateTable, model: MarkovNetwork, criteria: Criteria, budget: Budget, random_state: Any = None
) -> pd.DataFrame:
    """Test a model that was released, or is public.

    Returns
    -------
    pandas.DataFrame
        For each criterion its bound, the noisy number, and whether it is met.

    Notes
    -----
    Privacy
        *Sensitivity.* The number of records inside the schema, and each criterion's number, move by at most 1; of a
        regression the scores at the model's own coefficients, shaped and clipped.

        *Guarantee.* Shares of the budget that sum to 1: epsilon-DP with Laplace noise, rho-zCDP with Gaussian noise.
        Costs add up with what the model cost.

        *Source.* :class:`~pgmpy_dp.private.operators.model_errors.ModelErrors`;
        :class:`~pgmpy_dp.private.operators.score_sums.ScoreSums`.
    """
    budget = require_table_and_budget(table, budget)
    counted, share = _shares(criteria)
    scored = ScoredModel.of(model)
    means = [one for one in criteria.each if one.test == "mean"]
    regressions = [one for one in criteria.each if one.analysis]
    others = [one for one in criteria.each if one.tables and one.test != "mean"]
    tables = scored.tables(table.schema, every_scope(criteria)) if others else None
    named = f"whether a model meets {quantity(criteria, 'criterion', 'criteria')}"
    curator = TableCurator(table, budget, what=named, random_state=random_state, fine=True)
    n = float(curator.ask(RecordCount(), counted))
    answers: dict[int, float] = {}
    if means:  # before states merge: of the numbers in the finest cells that there are
        operator = _of_means(table.schema.fine(), model, means)
        answers |= dict(zip(map(id, means), curator.ask(operator, share * len(means)), strict=True))
    orders, merged = scored.placed(table.schema.fine()) if others or regressions else ({}, None)
    if merged is not None:
        curator.merge(*merged)
    if tables is not None:
        known = {frozenset(scope): (scope, cells) for scope, cells in zip(tables.scopes, tables.tables, strict=True)}
        operator = _of_tables(known, others)
        answers |= dict(zip(map(id, others), curator.ask(operator, share * len(others)), strict=True))
    each = CHANCE / len(criteria)
    decided = {id(one): _of_regression(one, scored, curator, orders, share, each) for one in regressions}
    for one, reach in zip(criteria.each, reaches(criteria, budget, CHANCE), strict=True):
        if not one.analysis:
            number = float(answers[id(one)])
            decided[id(one)] = one.unit * number / n if n > 0 else math.nan, max(number, reach) <= one.part * n
    rows = [(str(one), one.bound, *decided[id(one)]) for one in criteria.each]
    return pd.DataFrame(rows, columns=["criterion", "bound", "found", "met"])


def _of_regression(
    one: Criterion,
    scored: ScoredModel,
    curator: TableCurator,
    orders: Mapping[Hashable, Sequence[int]],
    share: Fraction,
    chance: float,
) -> tuple[float, bool]:
    """By how much the model's own coefficients are off at most, by two steps of Newton's; and whether that is agreed.

    As of other criteria, noise that may be larger than the bound says "no". So do states of a model that cannot say.
    """
    said = dict(one.analysis)
    wanted = said.pop("of")
    try:
        analysis = analysis_of(**said, states=States.checked(scored))
        equations = ScoreEquations.of(analysis, scored.model)
        (first,) = score_rounds.first_questions([equations], orders)
    except ValueError:
        return math.nan, False
    names = [column.name for column in analysis.columns]
    kept = [names.index(name) for name in wanted or names[1:] if name in names]
    parts = [share * part for part in score_rounds.shares(1, 2)]
    _, made, n, deviation = score_rounds.in_rounds(curator, equations, first, orders, parts)
    if n < _COUNTED * deviation or len(kept) < len(wanted):
        return math.nan, False
    back = equations.back[kept] * analysis.unit
    off = float(np.abs(back @ (made[-1].end - made[0].start)).max())
    (noise,) = curator.noise(first, parts[-1])
    assert noise is not None
    # Sums of Laplace noise reach no further than one of their variance.
    reach = difference_quantile(noise.distribution, noise.scale, 0.0, 1.0 - chance / len(kept)) / noise.variance**0.5
    return off, max(off, reach * math.sqrt(np.diag(back @ made[-1].noise @ back.T).max())) <= one.bound


def _of_means(fine: Schema, model: MarkovNetwork, means: Sequence[Criterion]) -> ModelErrors:
    scopes: list[tuple[Hashable, ...]] = []
    numbers: list[np.ndarray] = []
    measures: list[tuple[str, Sequence[int], float]] = []
    for place, one in enumerate(means):
        ((variable,),) = one.tables
        declared, size = fine.numbers[variable], fine.cardinality(variable)
        values = model.within.get(variable) or Values(model.numbers[variable])
        mean = values.mean(model.marginal([variable]).values)
        reference = 0.5 if math.isnan(mean) else float(np.clip((mean - declared.lower) / one.unit, 0.0, 1.0))
        of_cells = np.full(size, reference)  # of what has no number too
        centres = np.clip((declared.centres - declared.lower) / one.unit, 0.0, 1.0)
        of_cells[: len(centres)] = centres
        scopes.append((variable,))
        numbers.append(of_cells)
        measures.append(("gap", (place,), reference))
    return ModelErrors(scopes, numbers, measures)


def _of_tables(
    known: dict[frozenset[Hashable], tuple[tuple[Hashable, ...], np.ndarray]], others: Sequence[Criterion]
) -> ModelErrors:
    scopes: list[tuple[Hashable, ...]] = []
    numbers: list[np.ndarray] = []
    measures: list[tuple[str, Sequence[int], float]] = []
    for one in others:
        start = len(scopes)
        for named in one.tables:
            scope, probabilities = known[frozenset(named)]
            scopes.append(scope)
            numbers.append(_losses(scope, probabilities, one) if one.test == "log_loss" else probabilities)
        places = tuple(range(start, len(scopes)))
        if one.test == "distance":
            measures.append(("largest", places, 0))
        elif one.test == "cells":
            cells = sum(numbers[place].size for place in places)
            measures.append(("ranked", places, min(cells, max(1, math.ceil(one.share * cells - 1e-9)))))
        else:
            measures.append(("gap", places, 0))
    return ModelErrors(scopes, numbers, measures)


def _losses(scope: tuple[Hashable, ...], probabilities: np.ndarray, one: Criterion) -> np.ndarray:
    """The clipped loss of predicting the target in each cell, as a part of the largest loss."""
    axis = scope.index(one.tables[0][0])
    evidence = probabilities.sum(axis=axis, keepdims=True)
    right = np.divide(probabilities, evidence, out=np.zeros_like(probabilities), where=evidence > 0)
    lost = np.full(right.shape, one.unit)
    np.minimum(-np.log(right, out=np.full(right.shape, -np.inf), where=right > 0), one.unit, out=lost)
    return np.clip(lost / one.unit, 0.0, 1.0)

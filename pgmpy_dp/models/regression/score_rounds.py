"""Rounds of noisy score sums around a released model: from its own coefficients to those of the records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.learning.least_noise import least_noise, noise_for_ledger
from pgmpy_dp.learning.options import Settings
from pgmpy_dp.models.regression.score_equations import ScoreEquations
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, require_table_and_budget
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.operators.score_sums import COUNT, GRID, LARGEST_POINT, LARGEST_SHAPE, POINT, SHAPE, ScoreSums
from pgmpy_dp.private.sensitive import Noise, Release
from pgmpy_dp.shown import quantity

PRODUCTS_SHARE, LAST_SHARE = Fraction(1, 32), Fraction(3, 4)
"""Of an analysis's budget, for products of covariates; of the rest, for the last round: it is what is reported."""

WEAK, FAR, WILD = 3.0, 2.0, 1.0
"""Widths over those without privacy, above which a result is weak; by how many deviations, and standard errors, the
square of the last step exceeds what chance makes of it where the model was too far; noise of a coefficient of a logit,
above which it has no interval."""

_NORM = math.sqrt(1.0 - (COUNT / GRID) ** 2) * (1.0 - 1e-3)  # the count's coordinate, and rounding, need some of it
_LARGEST = 3.0  # move of a logit in one round


@dataclass(frozen=True, eq=False)
class Round:
    """One round of an analysis: its step, and the covariance of the noise in it, for columns as sums have them."""

    start: np.ndarray
    step: np.ndarray
    noise: np.ndarray
    information: np.ndarray

    @classmethod
    def of(cls, equations: ScoreEquations, question: ScoreSums, sums: np.ndarray, noise: Noise, n: float) -> Round:
        """The round of an answer, of n records with all values."""
        start = np.array(question.point) / POINT
        information = equations.information(start)
        solved = np.linalg.inv(np.asarray(question.shape) / SHAPE @ information)
        step = solved @ (sums[:-1] / GRID) / n
        return cls(start, step, solved @ solved.T * (noise.variance / (GRID * n) ** 2), information)

    @property
    def end(self) -> np.ndarray:
        return self.start + self.step

    def next_point(self, equations: ScoreEquations) -> np.ndarray:
        """Where the next round begins: as far as the step is more than noise, and no logit moves by more than 3."""
        square = float(self.step @ self.information @ self.step)
        noise = float(np.trace(self.information @ self.noise))
        move = self.step * max(0.0, 1.0 - noise / square) if square > 0 else np.zeros_like(self.step)
        largest = float(np.abs(equations.x @ move).max())
        if equations.analysis.family == "logit" and largest > _LARGEST:
            move = move * (_LARGEST / largest)
        return self.start + move


def question(
    declared: ScoreEquations,
    point: np.ndarray,
    orders: Mapping[Any, Sequence[int]],
    *,
    products: bool = False,
) -> ScoreSums:
    """The question about an analysis at a point: its fields are in whole numbers.

    Parameters
    ----------
    declared : ScoreEquations
        Of the analysis, under the model that it is asked around.
    point : ndarray of shape (d,)
    orders : mapping of variable to list of int
        For variables whose states the records' schema has in another order: the place of each in the model's.
    products : bool
        Whether to ask for products ``-x (x'v)``, v along `point`: the scores at v of a response that is 0.
    """

    def factor(name: Any, values: np.ndarray) -> tuple[Any, list[int]]:
        return name, values[orders[name]].tolist() if name in orders else values.tolist()

    analysis = declared.analysis
    (response, values), family = analysis.response, analysis.family
    if not products:
        m, l1 = declared.shape(point)
    else:
        point = point / max(float(np.abs(declared.x @ point).max()), 1e-9)
        m, l1 = declared.product_shape(point), math.sqrt(len(point))
        values, family = np.zeros_like(values), "linear"
    shape = np.clip(np.rint(_NORM * m * SHAPE), -LARGEST_SHAPE, LARGEST_SHAPE).astype(np.int64)
    bound = min(math.ceil(l1 * GRID) + len(shape) + COUNT, (len(shape) + 1) * GRID)
    whole = np.clip(np.rint(point * POINT), -LARGEST_POINT, LARGEST_POINT).astype(np.int64)
    columns = [[factor(*one) for one in column.scaled] for column in analysis.columns]
    complete = [factor(name, mask.astype(np.int64)) for name, mask in analysis.complete.items()]
    weight = [] if analysis.weight is None else [factor(*analysis.weight)]
    return ScoreSums(columns, factor(response, values), complete, whole.tolist(), shape, bound, family, weight)


def shares(n_analyses: int, rounds: int) -> list[Fraction]:
    """The share of each question of one analysis: its first round, products, and further rounds.

    Examples
    --------
    >>> [str(share) for share in shares(1, 2)], shares(2, 1)
    (['31/128', '1/32', '93/128'], [Fraction(1, 2)])
    """
    if rounds == 1:
        return [Fraction(1, n_analyses)]
    each, last = (Fraction(1 - PRODUCTS_SHARE, n_analyses) * part for part in (1 - LAST_SHARE, LAST_SHARE))
    first, *others = [each / (rounds - 1)] * (rounds - 1)
    return [first, PRODUCTS_SHARE / n_analyses, *others, last]


def first_questions(
    declared: Sequence[ScoreEquations], orders: Mapping[Any, Sequence[int]], n: float | None = None
) -> list[ScoreSums]:
    """The question about each analysis at the model's own coefficients; n is a public number of records, or a guess."""
    return [question(one, one.root(0.1 / max(n or 1e4, 1.0)), orders) for one in declared]


def planned(
    start: Sequence[ScoreSums], rounds: int, budget: Budget, adjacency: Adjacency, noise: str = "auto"
) -> tuple[PureDP | ZCDP, list[Noise]]:
    """The cost, and the noise of each analysis's last round, `noise` as `least_noise` has it.

    ValueError where noise would bury any sum.
    """
    parts = shares(len(start), rounds)

    def noises(cost: PureDP | ZCDP) -> list[Noise]:
        return [ScoreSums.noise_of(one.l1_bound, adjacency, cost, share) for one in start for share in parts]

    cost = least_noise(noises, [len(one.shape) + 1 for one in start for _ in parts], budget, noise)
    return cost, noises(cost)[len(parts) - 1 :: len(parts)]


def run(
    table: PrivateTable,
    declared: Sequence[ScoreEquations],
    start: Sequence[ScoreSums],
    settings: Settings,
    budget: Budget,
    orders: Mapping[Any, Sequence[int]],
    merged: tuple[Any, Mapping] | None,
    facts: Mapping[str, Any],
) -> Release:
    """Release noisy score sums of declared analyses, and what they say of coefficients.

    Returns
    -------
    Release
        ``kind="regression"``: the sums of every round, and those of products; ``public["analyses"]`` has estimates and
        covariances.

    Notes
    -----
    Privacy
        *Sensitivity.* Of each sum :func:`~pgmpy_dp.private.operators.score_sums.score_sensitivity`, whatever the model,
        the points and the shapes are.

        *Guarantee.* Shares of the budget that sum to 1: epsilon-DP with Laplace, rho-zCDP with Gaussian noise. Points
        and shapes come from the model and from earlier rounds, which were released. Costs add up with the model's.

        *Source.* :class:`~pgmpy_dp.private.operators.score_sums.ScoreSums`.
    """
    unit_budget = require_table_and_budget(table, budget)
    law = noise_for_ledger("auto", budget, table)
    cost, _ = planned(start, settings.rounds, unit_budget, table.adjacency, law)
    curator = TableCurator(
        table,
        unit_budget,
        what=f"{quantity(declared, 'declared analysis', 'declared analyses')} of regression",
        columns=[name for name in table.schema.variables if any(name in one.analysis.variables for one in declared)],
        pure=isinstance(cost, PureDP),
        random_state=settings.random_state,
        fine=True,
    )
    results: list[dict[str, Any]] = []
    parts = shares(len(declared), settings.rounds)
    labels = ["round 1", "products", *(f"round {k}" for k in range(2, settings.rounds + 1))][: len(parts)]
    names = [f"analysis {k}, {label}" for k, _ in enumerate(declared, 1) for label in labels]

    def released() -> Release:
        return curator.release("regression", {**facts, "analyses": results}, curator.called(*names))

    with curator.keeping(released):
        if merged is not None:
            curator.merge(*merged)
        for one, first in zip(declared, start, strict=True):
            results.append(_result(*in_rounds(curator, one, first, orders, parts), unit_budget.rows))
    return released()


def in_rounds(
    curator: TableCurator,
    one: ScoreEquations,
    asked: ScoreSums,
    orders: Mapping[Any, Sequence[int]],
    parts: Sequence[Fraction],
) -> tuple[ScoreEquations, list[Round], float, float]:
    """Ask about one analysis in rounds of these shares, each from where the one before ended.

    The second share is for how the covariates go together along the first step. There a wrong model does most harm: of
    two that go together closely, its noisy tables hold records that differ where none do, and steps are too short.

    Returns
    -------
    equations : ScoreEquations
        Corrected by these products.
    rounds : list of Round
    n, deviation : float
        About how many records have all values, at least 1, and the standard deviation of the noise in it.
    """
    made: list[Round] = []
    answers: list[tuple[ScoreSums, np.ndarray, Noise]] = []
    counted, precision, n = 0.0, 0.0, 1.0
    for place, share in enumerate(parts):
        if place == 1:
            asked = question(one, made[0].step, orders, products=True)
        elif made:
            asked = question(one, made[-1].next_point(one), orders)
        (noise,) = curator.noise(asked, share)
        assert noise is not None
        sums = curator.ask(asked, share)
        answers.append((asked, sums, noise))
        if place == 1:
            one = one.with_products(asked, sums[:-1] / (GRID * n), noise.variance / (GRID * n) ** 2)
            made = [Round.of(one, *answers[0], n)]
        else:
            counted, precision = counted + sums[-1] / noise.variance, precision + 1 / noise.variance
            n = max(counted / precision / COUNT, 1.0)
            made.append(Round.of(one, *answers[-1], n))
    return one, made, n, 1.0 / (COUNT * math.sqrt(precision))


def _result(
    equations: ScoreEquations, rounds: Sequence[Round], n: float, deviation: float, rows: int
) -> dict[str, Any]:
    """Everything that is told of an analysis, in its own units, as a file can hold it."""
    analysis, back, last = equations.analysis, equations.back, rounds[-1]
    unit = analysis.unit
    sampling = equations.sampling(last.end) * (rows / n)
    noise, before = (back @ each.noise @ back.T for each in (last, rounds[-2] if len(rounds) > 1 else last))
    ratio = np.sqrt(1.0 + np.diag(noise) / np.maximum(np.diag(sampling), 1e-300))
    # Of a logit: of the constant at the mean of the columns, of others over the range of their column.
    x = equations.x @ np.linalg.inv(back)
    mean = equations.probability @ x
    spread = np.ptp(x, axis=0)[1:] * np.sqrt(np.diag(noise)[1:])
    wild = np.append(math.sqrt(mean @ noise @ mean), spread) > (WILD if analysis.family == "logit" else math.inf)

    def declared(b: np.ndarray) -> list[float]:
        made = back @ b * unit
        made[0] += analysis.origin
        return made.tolist()

    # The last step has errors of sampling, of its noise and of that of the round before: more says the model is off.
    errors = (sampling + noise)[np.ix_(~wild, ~wild)]
    expected = np.linalg.solve(errors, errors + (before[np.ix_(~wild, ~wild)] if len(rounds) > 1 else 0.0))
    step = (back @ last.step)[~wild]
    length = float(step @ np.linalg.solve(errors, step))
    chance = FAR * (len(errors) + math.sqrt(2.0 * float(np.trace(expected @ expected))))
    status = "weak" if wild.all() or float(np.median(ratio)) > WEAK else "good"
    if n < 3.0 * deviation + 10.0 * len(back):
        status = "few"
    elif length > float(np.trace(expected)) + chance:
        status = "far"
    return {
        "formula": analysis.formula,
        "family": analysis.family,
        "modelled": analysis.modelled,
        "variables": [str(name) for name in analysis.variables],
        "names": [column.name for column in analysis.columns],
        "status": status,
        "n": n,
        "n_sd": deviation,
        "params": declared(last.end),
        "network_params": declared(rounds[0].start),
        "cov_sampling": (sampling * unit**2).tolist(),
        "cov_noise": (noise * unit**2).tolist(),
        "no_interval": wild.tolist(),
        "step": math.sqrt(length / max(len(errors), 1)),
        "rows": rows,
    }

"""Every variable's distribution, with intervals where a model has a posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from pgmpy_dp.models.answers import Answers
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.posterior_draws import Interval
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.posterior.query_intervals import number_interval, query_intervals
from pgmpy_dp.schema import Number

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def state_text(state: object) -> str:
    """A state as pages name it."""
    return "missing" if state is None else str(state)


def number_text(number: Number, value: float, mean: bool, rounded: Callable[[float], int] = round) -> str:
    """A mean in four digits, a day, or a quantile: a value of the resolution, to which ends of intervals go outwards.

    Examples
    --------
    >>> age, cost = Number(0, 110, resolution=1), Number(0, 1e6)
    >>> number_text(age, 41.0, False), number_text(age, 39.55, False, math.floor), number_text(age, 54.7449, True)
    ('41', '39', '54.74')
    >>> number_text(cost, 41_234.567, True), number_text(cost, 63.34712, False, math.ceil)
    ('41235', '63.35')
    """
    if not np.isfinite(value):
        return "none"
    if number.kind == "date" and (mean or number.resolution is None):
        return number.text(rounded(round(value, 6)))
    if not mean and number.resolution is not None and number.n_values is not None:
        steps = rounded(round((value - number.lower) / number.resolution, 6))
        return number.text(number.values_at([min(max(steps, 0), number.n_values - 1)])[0])
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e" in text and 1 <= abs(value) < 1e15 else text


def variable_rows(network: Answers, level: float) -> list[dict[str, Any]]:
    """States with shares and intervals, and numbers with mean and quantiles.

    Parameters
    ----------
    network : Answers
    level : float
        Of intervals, in (0, 1).

    Raises
    ------
    ValueError
        If the draws do not reach the level.
    """
    names, posterior = list(network.nodes), network.posterior
    tables = network.to_log_linear().marginals_of([(name,) for name in names])
    draws: dict[Hashable, np.ndarray] = {}
    if posterior is not None:
        cliques = posterior.draws.cliques
        found = posterior.draws.tables([(cliques.position[name],) for name in names])
        draws = dict(zip(names, found, strict=True))
    rows = []
    for name, table in zip(names, tables, strict=True):
        interval = None if posterior is None else _interval(posterior, name, table, draws[name], level)
        cells = [
            {
                "state": state_text(state),
                "p": float(table[k]),
                "lower": None if interval is None else float(interval.lower[k]),
                "upper": None if interval is None else float(interval.upper[k]),
            }
            for k, state in enumerate(network.states[name])
        ]
        number = network.numbers.get(name)
        note = None
        if number is not None:
            note = f"{number.kind}s from {number.text(number.lower)} to {number.text(number.upper)}"
            if said := network.mostly_missing(name):
                note, number = f"{note}. {said}", None
        summary = [] if number is None else _summary(network, name, table, posterior, draws.get(name), level)
        rows.append(
            {"name": str(name), "variable": name, "note": note, "rows": cells, "summary": summary, "table": table}
        )
    return rows


def _interval(
    posterior: ParameterPosterior, name: Hashable, table: np.ndarray, draws: np.ndarray, level: float
) -> Interval:
    if posterior.discrepancy is None:
        return posterior.draws.interval_of(draws, level)
    scope = (posterior.draws.cliques.position[name],)
    return query_intervals(table, draws, [], scope, posterior.discrepancy, level)


def _summary(
    network: Answers,
    name: Hashable,
    table: np.ndarray,
    posterior: ParameterPosterior | None,
    draws: np.ndarray | None,
    level: float,
) -> list[dict[str, str]]:
    """Mean and quantiles; all of them follow from the variable's own table, which is always measured."""
    number = network.numbers[name]
    values = network.within.get(name) or Values(number)

    def of(shares: np.ndarray) -> np.ndarray:
        return np.array([values.mean(shares), *values.quantiles(shares, _QUANTILES)])

    own = of(table)
    ends = None
    if posterior is not None and draws is not None and (len(draws) + 1) * (1 - level) >= 2 - 1e-9:
        ends = number_interval(posterior.within.get(name) or values, draws, _QUANTILES, level)
    labels = ["mean", *(f"{100 * q:g} % are at most" if q != 0.5 else "median" for q in _QUANTILES)]
    return [
        {
            "what": label,
            "value": number_text(number, own[k], k == 0),
            "lower": "–" if ends is None else number_text(number, ends[0][k], k == 0, math.floor),
            "upper": "–" if ends is None else number_text(number, ends[1][k], k == 0, math.ceil),
        }
        for k, label in enumerate(labels)
    ]

"""Every variable's distribution, with intervals where a model has a posterior."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from pgmpy_dp.models.answers import Answers
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.posterior.posterior_draws import Interval
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.posterior.query_intervals import number_interval, query_intervals

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def state_text(state: object) -> str:
    """A state as pages name it."""
    return "missing" if state is None else str(state)


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

    def told(value: float, mean: bool = False) -> str:
        if not np.isfinite(value):
            return "none"
        return f"{value:.4g}" if mean and number.kind == "number" else number.text(round(value, 6))

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
            "value": told(own[k], k == 0),
            "lower": "–" if ends is None else told(ends[0][k], k == 0),
            "upper": "–" if ends is None else told(ends[1][k], k == 0),
        }
        for k, label in enumerate(labels)
    ]

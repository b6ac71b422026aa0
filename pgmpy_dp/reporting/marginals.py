"""Every variable's distribution, with intervals where a model has a posterior."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.models.answer import Answer, state_text
from pgmpy_dp.models.printing_rule import PrintingRule
from pgmpy_dp.reporting.number_picture import histogram
from pgmpy_dp.schema import Number
from pgmpy_dp.shown import spreadsheet_safe

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of numbers and days on pages."""


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


def variable_rows(answers: Mapping[Hashable, Answer], rule: PrintingRule | None = None) -> list[dict[str, Any]]:
    """States with shares and intervals, and numbers with mean and quantiles, as pages show them.

    Parameters
    ----------
    answers : mapping of variable to Answer
        As `marginal_answers` gives them, with `QUANTILES`.
    rule : PrintingRule, optional
        Then a row says whether it may be "printed".
    """
    rows = []
    for name, answer in answers.items():
        (states,), estimates = answer.states.values(), answer.estimates
        shares, numbers = ([False] * len(estimates), {}) if rule is None else rule.of(answer)
        cells = [
            {"state": state_text(state), "p": p, "lower": lower, "upper": upper, "printed": printed}
            for state, (p, lower, upper), printed in zip(states, estimates, shares, strict=True)
        ]
        number, note, picture = answer.number, None, None
        if number is not None:
            picture = histogram(number, estimates, answer.numbers)
            note = f"{number.kind}s from {number.text(number.lower)} to {number.text(number.upper)}"
            note += f". {answer.worth.missing}" if answer.worth.missing else ""
        summary = [_summary(answer, key) | {"printed": numbers.get(key)} for key in answer.numbers]
        row = {"name": str(name), "note": note, "rows": cells, "summary": summary, "picture": picture}
        rows.append(row | {"unvouched": answer.worth.refusal or answer.worth.outside})
    return rows


def printing_list(variables: Sequence[Mapping[str, Any]]) -> str:
    """The numbers of a page as CSV: shares, means and quantiles, with intervals and whether they may be printed.

    Parameters
    ----------
    variables : sequence of mapping
        As `variable_rows` makes them, with a rule.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("variable", "number", "state", "value", "lower", "upper", "may_be_printed", "why_not"))
    for one in variables:
        shares = [("share", row["state"], row["p"], row) for row in one["rows"]]
        for what, state, value, row in shares + [(row["what"], "", row["value"], row) for row in one["summary"]]:
            said = map(spreadsheet_safe, (one["name"], what, state))
            let = ("yes", "") if row["printed"] else ("no", one["unvouched"] or "the interval is too wide")
            lines.writerow((*said, value, row["lower"], row["upper"], *let))
    return text.getvalue()


def _summary(answer: Answer, key: Any) -> dict[str, str]:
    """A mean or a quantile; all of them follow from the variable's own table, which is always measured."""
    number, (value, lower, upper), mean = answer.number, answer.numbers[key], key == "mean"
    assert number is not None
    return {
        "what": {"mean": "mean", 0.5: "median"}.get(key) or f"{100 * key:g} % are at most",
        "value": number_text(number, value, mean),
        "lower": "–" if lower is None else number_text(number, lower, mean, math.floor),
        "upper": "–" if upper is None else number_text(number, upper, mean, math.ceil),
    }

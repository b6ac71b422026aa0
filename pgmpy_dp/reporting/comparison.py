"""Two models side by side: before and after, or under two budgets."""

from __future__ import annotations

import itertools

import numpy as np

from pgmpy_dp.checks import checked_level
from pgmpy_dp.models.answer import state_text
from pgmpy_dp.models.answers import Answers
from pgmpy_dp.reporting.marginals import variable_rows
from pgmpy_dp.reporting.model_report import MOST_PAIRED, require_exact
from pgmpy_dp.reporting.page import render
from pgmpy_dp.reporting.words import guarantee_words, percent, size_words, variation
from pgmpy_dp.shown import quantity

_SHOWN_PAIRS = 30


def comparison_page(
    one: Answers,
    other: Answers,
    names: tuple[str, str] = ("this model", "the other model"),
    level: float = 0.9,
) -> str:
    """One HTML page about how two models differ.

    Parameters
    ----------
    one, other : Answers
        They need not have the same variables or states; what is not in both is listed.
    names : pair of str
        The names of the models on the page.
    level : float in (0, 1)
        The level of intervals.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If they have no variable with the same states in common, or one is not on exact inference.
    """
    require_exact(one)
    require_exact(other)
    checked_level(level)
    shared = [name for name in one if name in other]
    same = [name for name in shared if set(one.states[name]) == set(other.states[name])]
    if not same:
        raise ValueError("the models have no variable with the same states in common, so nothing can be compared")
    order = {name: [list(other.states[name]).index(state) for state in one.states[name]] for name in same}
    answers = [network.marginal_answers(level) for network in (one, other)]
    rows = [dict(zip(side, variable_rows(side), strict=True)) for side in answers]
    variables = [
        {
            "name": str(name),
            "distance": variation(np.abs(answers[0][name].shares - answers[1][name].shares[order[name]]).sum() / 2),
            "rows": [
                (row, rows[1][name]["rows"][k]) for row, k in zip(rows[0][name]["rows"], order[name], strict=True)
            ],
        }
        for name in same
    ]
    pairs, pairs_words = _pairs(one, other, order)
    with_intervals = [name for name, network in zip(names, (one, other), strict=True) if network.posterior is not None]
    return render(
        "compare.html",
        title="Two models compared",
        lead=f"{names[0]} and {names[1]}: {quantity(len(same), 'variable')} with the same states.",
        sides=[
            {"name": name, "guarantee": guarantee_words(network.privacy), "size": size_words(network)}
            for name, network in zip(names, (one, other), strict=True)
        ],
        both_words=_both(one, other),
        differences=_differences(one, other, names, shared, same),
        pairs=pairs,
        pairs_words=pairs_words,
        variables=variables,
        intervals_words=f"Black lines are {percent(level)} intervals, of {' and '.join(with_intervals)}."
        if with_intervals
        else "Neither model's file has intervals.",
    )


def _both(one: Answers, other: Answers) -> str:
    if None in (getattr(network.privacy, "guarantee", None) for network in (one, other)):
        return ""
    return (
        "Whoever has both models knows what both releases say. If they are about the same records, their costs add up; "
        "the records' ledger keeps count of that."
    )


def _differences(one: Answers, other: Answers, names: tuple[str, str], shared: list, same: list) -> list[str]:
    lines = []
    for name, network, against in ((names[0], one, other), (names[1], other, one)):
        if only := [str(variable) for variable in network if variable not in against]:
            lines.append(f"Variables that only {name} has: {', '.join(only)}.")
        edges = [f"{u} – {v}" for u, v in network.edges if u in against and v in against and not against.has_edge(u, v)]
        if edges:
            lines.append(f"Edges that only {name} has ({len(edges)}): {'; '.join(edges)}.")
    for variable in (name for name in shared if name not in same):
        states = [list(map(state_text, network.states[variable])) for network in (one, other)]
        alone = [[state for state in states[k] if state not in states[1 - k]] for k in (0, 1)]
        lines.append(
            f"The states of {variable} differ, so it is not compared: {names[0]} alone has "
            f"{', '.join(alone[0]) or 'none'}; {names[1]} alone has {', '.join(alone[1]) or 'none'}."
        )
    return lines or ["Nothing: they have the same variables, states and edges."]


def _pairs(one: Answers, other: Answers, order: dict) -> tuple[list[dict], str]:
    """Distances of the tables of two variables; `order` says where each of a variable's states is in `other`."""
    if len(order) > MOST_PAIRED:
        return [], f"Pairs are looked at for up to {MOST_PAIRED} variables; there are {len(order)}."
    pairs = list(itertools.combinations(order, 2))
    if not pairs:
        return [], "There are no two variables to compare."
    tables = [network.to_log_linear().marginals_of(pairs) for network in (one, other)]
    distances = [
        (float(np.abs(table - against[np.ix_(order[a], order[b])]).sum() / 2), f"{a} – {b}")
        for (a, b), table, against in zip(pairs, *tables, strict=True)
    ]
    distances.sort(key=lambda pair: -pair[0])
    mean = float(np.mean([distance for distance, _ in distances]))
    rows = [{"names": names, "distance": variation(distance)} for distance, names in distances[:_SHOWN_PAIRS]]
    words = (
        f"Total variation between the models' tables of two variables: {variation(mean)} on average; "
        f"the {len(rows)} largest of {len(distances)}."
    )
    return rows, words

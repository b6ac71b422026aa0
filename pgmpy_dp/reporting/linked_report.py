"""The report on a model of linked tables: households and persons, patients and visits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.models.answer import Answer, state_text
from pgmpy_dp.reporting.attacks import ATTACKER
from pgmpy_dp.reporting.marginals import QUANTILES, variable_rows
from pgmpy_dp.reporting.page import as_html, render
from pgmpy_dp.reporting.words import CITATION, guarantee_words, interval_words, percent
from pgmpy_dp.shown import shown

_MOST_STATES = 12  # of a column of which pairs are shown cell by cell


def linked_report_page(model: Any, title: str | None = None, about: str | None = None, level: float = 0.9) -> str:
    """One HTML page about a model of linked tables.

    Parameters
    ----------
    model : LinkedModel
    title, about : str, optional
        The title of the page; and what the data are and who published them, as Markdown.
    level : float in (0, 1)
        The level of intervals, which the page has where the model has a `posterior`.

    Returns
    -------
    str

    Notes
    -----
    What is promised comes first, of a parent with all its children and of one child. Columns of parents are those of a
    random parent, columns of children those of a random child. Of two children of one parent it shows how often they
    have the same state, beside how often two strangers have.
    """
    linked, (of_parents, of_children) = model.linked, model.columns
    parent, child = map(shown, linked.names)
    guarantee = guarantee_words(model.privacy)
    pairs = {name: _of_two(model, name, level) for name in of_children} if linked.most > 1 else {}
    number = f"{max(model.n_records, 0.0):,.0f}"
    deviation = f", estimated with a standard deviation of {model.n_records_sd:,.0f}" if model.n_records_sd else ""
    return render(
        "linked.html",
        title=title or f"A model of {parent} and {child}",
        about=None if about is None else as_html(about),
        attacker=ATTACKER,
        lead=f"{parent} and {child}, linked by {shown(linked.key)}; up to {linked.most} of {child} for each {parent}. "
        "Everything here follows from the released model alone.",
        guarantee=guarantee,
        whole=_whole(model, parent, child),
        size=f"The model was learned from {number} of {parent} inside the schema{deviation}.",
        parent=parent,
        child=child,
        parents=_cards(model.view("family"), of_parents, level),
        children=_cards(model.view("child"), of_children, level, linked.names[1]),
        intervals=interval_words(model.posterior, level),
        has_intervals=model.posterior is not None,
        level=percent(level),
        pairs=[_told(name, answer) for name, answer in pairs.items()],
        worth=list(dict.fromkeys(line for answer in pairs.values() for line in answer.worth.sentences)),
        ordered=bool(linked.order),
        rules=[shown(str(rule)) for schema in (linked.parent, linked.child) if schema for rule in schema.impossible],
        citation=CITATION,
    )


def _whole(model: Any, parent: str, child: str) -> str:
    """A sentence that says what is promised to whom, where something is."""
    if model.privacy_of_a_child is None:
        return ""
    return (
        f"A {parent} with all its {child} rows is promised {model.privacy.together.said}; one {child} alone, who is "
        f"added, removed or changed while the others stay, is promised {model.privacy_of_a_child}."
    )


def _cards(view: Any, columns: Sequence[Hashable], level: float, table: str | None = None) -> list[dict[str, Any]]:
    """Distributions of columns of one table."""
    nodes = {name if table is None else f"{table}.{name}": name for name in columns}
    answers = view.marginal_answers(level, QUANTILES)
    return variable_rows({name: answers[node] for node, name in nodes.items()})


def _of_two(model: Any, name: Hashable, level: float) -> Answer:
    return model.ask(f"{model.linked.names[1]}.{name}", of="pair", level=level)


def _told(name: Hashable, answer: Answer) -> dict[str, Any]:
    """Words on how often two children of one parent have the same state, and their table."""
    table, (listed, _) = answer.shares, answer.states.values()
    states = [state_text(state) for state in listed]
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    largest = max(float(table.max()), math.ulp(0.0))
    rows = [
        {"state": state, "cells": [{"p": float(p), "shade": round(float(p) / largest, 3)} for p in row]}
        for state, row in zip(states, table, strict=True)
    ]
    return {
        "name": str(name),
        "same": percent(float(np.trace(table))),
        "strangers": percent(float(np.trace(apart))),
        "moved": percent(float(0.5 * np.abs(table - apart).sum())),
        "states": states,
        "rows": rows if len(states) <= _MOST_STATES else [],
    }

"""The report on a model of linked tables: households and persons, patients and visits."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from pgmpy_dp.reporting.attacks import ATTACKER
from pgmpy_dp.reporting.marginals import state_text
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
        What the page is called, and what the data are and who published them, as Markdown.
    level : float in (0, 1)
        Of intervals, which the page has where the model has a `posterior`.

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
        parents=[_card(model, _named(linked.names[0], name), "family", level) for name in of_parents],
        children=[_card(model, _named(linked.names[1], name), "child", level) for name in of_children],
        intervals=interval_words(model.posterior, level),
        has_intervals=model.posterior is not None,
        pairs=_pairs(model) if linked.most > 1 else [],
        ordered=bool(linked.order),
        rules=[shown(str(rule)) for schema in (linked.parent, linked.child) if schema for rule in schema.impossible],
        citation=CITATION,
    )


def _whole(model: Any, parent: str, child: str) -> str:
    """In one sentence what is promised to whom, where something is."""
    if model.privacy_of_a_child is None:
        return ""
    return (
        f"A {parent} with all its {child} rows is promised {model.privacy.together.said}; one {child} alone, who is "
        f"added, removed or changed while the others stay, is promised {model.privacy_of_a_child}."
    )


def _named(table: str, name: Hashable) -> str:
    return f"{table}.{name}"


def _card(model: Any, name: str, weight: str, level: float) -> dict[str, Any]:
    """A column's distribution, with intervals where there are draws."""
    if model.posterior is None:
        found = model.query(name, weight=weight)
        cells = [(state, p, None, None) for state, p in zip(found.state_names[name], found.values, strict=True)]
    else:
        cells = list(model.posterior.interval(name, weight=weight, level=level).itertuples(index=False, name=None))
    rows = [{"state": state_text(state), "p": float(p), "lower": low, "upper": high} for state, p, low, high in cells]
    return {"name": name.split(".", 1)[1], "rows": rows}


def _pairs(model: Any) -> list[dict[str, Any]]:
    """Of each column of children how often two of one parent have the same state, and their table."""
    found = []
    for name in model.columns[1]:
        named = _named(model.linked.names[1], name)
        pairs = model.query_pairs(named)
        table = np.asarray(pairs.values)
        states = [state_text(state) for state in pairs.state_names[pairs.variables[0]]]
        apart = np.outer(table.sum(axis=1), table.sum(axis=0))
        largest = max(float(table.max()), math.ulp(0.0))
        found.append(
            {
                "name": str(name),
                "same": percent(float(np.trace(table))),
                "strangers": percent(float(np.trace(apart))),
                "moved": percent(float(0.5 * np.abs(table - apart).sum())),
                "states": states,
                "rows": [
                    {"state": state, "cells": [{"p": float(p), "shade": round(float(p) / largest, 3)} for p in row]}
                    for state, row in zip(states, table, strict=True)
                ]
                if len(states) <= _MOST_STATES
                else [],
            }
        )
    return found

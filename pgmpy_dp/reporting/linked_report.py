"""The report on a model of linked tables: households and persons, patients and visits."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from pgmpy_dp.models.answer import Answer, percent_text, state_text
from pgmpy_dp.models.printing_rule import PrintingRule
from pgmpy_dp.reporting.attacks import ATTACKER
from pgmpy_dp.reporting.marginals import QUANTILES, variable_rows
from pgmpy_dp.reporting.model_report import changes
from pgmpy_dp.reporting.page import as_html, render
from pgmpy_dp.reporting.words import (
    ALONE,
    CITATION,
    DIGESTS,
    digests_of,
    guarantee_words,
    interval_words,
    percent,
    share_text,
    size_words,
    variation,
)
from pgmpy_dp.shown import shown

_MOST_STATES = 12  # of a column of which pairs are shown cell by cell


def linked_report_page(
    model: Any,
    title: str | None = None,
    about: str | None = None,
    level: float = 0.9,
    rule: PrintingRule | None = None,
    files: Iterable[str | os.PathLike] = (),
) -> str:
    """One HTML page about a model of linked tables.

    Parameters
    ----------
    model : LinkedModel
    title, about : str, optional
        The title of the page; and what the data are and who published them, as Markdown.
    level : float in (0, 1)
        The level of intervals, which the page has where the model has a `posterior`.
    rule, files
        As of `report_page`.

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
    columns = [*of_parents, *(f"{linked.names[1]}.{name}" for name in of_children)]
    guarantee, answers = guarantee_words(model.privacy), model.marginal_answers(level, QUANTILES)
    family = model.view("family")
    pairs = (
        {name: model.ask(name, of="pair", level=level) for name in columns[len(of_parents) :]}
        if linked.most > 1
        else {}
    )
    return render(
        "linked.html",
        title=title or f"A model of {parent} and {child}",
        about=None if about is None else as_html(about),
        attacker=ATTACKER,
        lead=f"{parent} and {child}, linked by {shown(linked.key)}; up to {linked.most} {child} rows for each "
        f"{parent}. {ALONE}",
        guarantee=guarantee,
        whole=_whole(model, parent, child),
        size=size_words(family),
        parent=parent,
        most=linked.most,
        child=child,
        moved=changes(model.view("child"), columns),
        parents=variable_rows({family.title(name): answers[f"{linked.names[0]}.{name}"] for name in of_parents}, rule),
        children=variable_rows({node: answers[node] for node in columns[len(of_parents) :]}, rule),
        rule=None if rule is None else rule.words(percent(level), model),
        files=digests_of(files),
        digests_words=DIGESTS,
        intervals=interval_words(model.posterior, level),
        has_intervals=model.posterior is not None,
        level=percent(level),
        pairs=[_told(name, answer) for name, answer in zip(of_children, pairs.values(), strict=False)],
        hardly=bool(pairs) and all(answer.worth.strangers for answer in pairs.values()),
        worth=list(
            dict.fromkeys(line for answer in pairs.values() for line in replace(answer.worth, strangers=None).sentences)
        ),
        ordered=bool(linked.order),
        rules=[shown(rule) for rule in linked.rules],
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


def _told(name: Hashable, answer: Answer) -> dict[str, Any]:
    """Words on how often two children of one parent have the same state, and their table."""
    assert answer.alike is not None  # the question is of two
    table, (listed, _), (same, more) = answer.shares, answer.states.values(), answer.alike
    states = [state_text(state) for state in listed]
    apart = np.outer(table.sum(axis=1), table.sum(axis=0))
    largest = max(float(table.max()), math.ulp(0.0))
    rows = [
        {"state": state, "cells": [{"p": float(p), "shade": round(float(p) / largest, 3)} for p in row]}
        for state, row in zip(states, table, strict=True)
    ]
    return {
        "name": str(name),
        "same": percent_text(same),
        "more": percent_text(more),
        "strangers": share_text(float(np.trace(apart))),
        "moved": variation(float(0.5 * np.abs(table - apart).sum())),
        "states": states,
        "rows": rows if len(states) <= _MOST_STATES else [],
    }

"""The report on one model."""

from __future__ import annotations

import itertools
import os
import statistics
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pgmpy_dp.checks import checked_level
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.models.answers import Answers
from pgmpy_dp.models.model_file import filled_words
from pgmpy_dp.models.printing_rule import PrintingRule
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.reporting.attacks import ATTACKER
from pgmpy_dp.reporting.drawing import drawing, edge_rows
from pgmpy_dp.reporting.marginals import QUANTILES, variable_rows
from pgmpy_dp.reporting.page import as_html, render
from pgmpy_dp.reporting.words import (
    ALONE,
    CITATION,
    DIGESTS,
    digests_of,
    guarantee_words,
    interval_words,
    percent,
    size_words,
    variation,
    when_not_to_trust,
)
from pgmpy_dp.shown import quantity

if TYPE_CHECKING:
    from pgmpy_dp.models.regression.regression_fit import Regression
    from pgmpy_dp.models.score_reading import ModelScore

MOST_PAIRED = 100
"""Variables up to which all pairs are looked at."""

_SHOWN_PAIRS = 15


def require_exact(network: Answers) -> None:
    """Raise a ValueError for a model without factors, or on approximate inference."""
    if not network.factors:
        raise ValueError("the model has no factors: fit it first")
    if network.inference != "exact":
        raise ValueError(
            f"the model has inference={network.inference!r}, and pages need exact inference; set it to "
            '"exact" if a junction tree fits, see MarkovNetwork.inference'
        )


def report_page(
    network: Answers,
    release: Release | None = None,
    level: float = 0.9,
    score: ModelScore | Release | None = None,
    title: str | None = None,
    about: str | None = None,
    rule: PrintingRule | None = None,
    files: Iterable[str | os.PathLike] = (),
    regressions: Iterable[Regression | Release] = (),
) -> str:
    """One HTML page about a model.

    Parameters
    ----------
    network : Answers
    release : Release, optional
        The release that the model was learned from: then the page tells what was measured.
    level : float in (0, 1)
        The level of intervals.
    score : ModelScore or Release, optional
        The score of this model: then the page tells how far it is from the records, and what that cost.
    title, about : str, optional
        The title of the page; and what the data are and who published them, as Markdown.
    rule : PrintingRule, optional
        The page marks what it lets be printed.
    files : iterable of str or path
        The published files, whose digests are told.
    regressions : iterable of Regression or Release
        Declared analyses that were asked around this model: the page has their coefficients with intervals.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the model is not on exact inference, the release is of another fit, the score or a regression of another
        model, or the level needs more draws.
    """
    require_exact(network)
    checked_level(level)
    edges, posterior = edge_rows(network), network.posterior
    probes = posterior is not None and posterior.discrepancy is not None
    unsure, unsure_words = _unsure(network)
    measured, measured_words = _measured(network, release)
    counted = f"{quantity(network, 'variable')}, {quantity(edges, 'edge')}."
    scored, guarantee = _scored(network, score, level), guarantee_words(network.privacy)
    return render(
        "report.html",
        title=title or ("A model" if guarantee.attacks is None else "A model learned from private records"),
        about=None if about is None else as_html(about),
        attacker=ATTACKER,
        lead=" ".join([counted, ALONE, *filled_words(network.missing_at_random)]),
        guarantee=guarantee,
        size=size_words(network),
        intervals_words=interval_words(posterior, level),
        has_intervals=posterior is not None,
        level=percent(level),
        variables=_variables(network, level, rule),
        moved=changes(network, list(network)),
        graph=drawing(network, edges),
        edges=edges,
        unsure=unsure,
        unsure_words=unsure_words,
        probes=probes,
        scored=scored,
        regressions=_regressions(network, regressions, level),
        measured=measured,
        measured_words=measured_words,
        trust=when_not_to_trust(posterior),
        rule=None if rule is None else rule.words(percent(level), network),
        files=digests_of(files),
        digests_words=DIGESTS,
        citation=CITATION,
    )


def _variables(network: Answers, level: float, rule: PrintingRule | None) -> list[dict[str, Any]]:
    """The rows of each variable, with those of its "levels" from coarse to fine, and its own behind them."""
    answers, levels = network.marginal_answers(level, QUANTILES), network.levels
    rows = dict(zip(answers, variable_rows(answers, rule), strict=True))
    coarse = {name: [rows[key] for key, one in levels.items() if one.variable == name][::-1] for name in network}
    return [rows[name] | {"levels": [*coarse[name], rows[name]]} for name in network]


def changes(network: Answers, names: Sequence[Hashable]) -> list[list[float]]:
    """How much knowing one variable changes another, as the mean total variation; empty where there are too many.

    It is the total variation between the table of both and the product of their own: the same for either.

    Parameters
    ----------
    network : Answers
    names : sequence of node
    """
    if len(names) > MOST_PAIRED:
        return []
    pairs, moved, states = [*itertools.combinations(range(len(names)), 2)], np.zeros((len(names),) * 2), network.states
    questions = [network._question([names[a], names[b]], {}, states) for a, b in pairs]
    tables = network.to_log_linear().marginals_of([tuple(one.axes) for one in questions]) if pairs else []
    for (a, b), question, joint in zip(pairs, questions, tables, strict=True):
        table = question.answer(joint)
        apart = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
        moved[a, b] = moved[b, a] = round(float(apart), 4)
    return moved.tolist()


def _unsure(network: Answers) -> tuple[list[dict[str, Any]], str]:
    posterior = network.posterior
    if posterior is None:
        return [], interval_words(None, 0.9)
    if len(network) > MOST_PAIRED:
        return [], f"Pairs are looked at in models of up to {MOST_PAIRED} variables; this one has {len(network)}."
    pairs = posterior.pairs_by_error()
    rows = [
        {"names": f"{one} – {other}", "measured": measured, "error": variation(error)}
        for one, other, measured, error in pairs[:_SHOWN_PAIRS]
    ]
    words = (
        "The error is how far the model's table of two variables is expected to be from the population's: so many "
        f"records would have to be in other cells (total variation). {len(rows)} of {quantity(pairs, 'pair')}; "
        + (
            f"the median of all is {variation(statistics.median(pair[3] for pair in pairs))}."
            if pairs
            else "there are none."
        )
    )
    if posterior.discrepancy is None:
        words += " The graph is taken for the truth here, so pairs without an edge may be further off."
    return rows, words


def _scored(network: Answers, score: ModelScore | Release | None, level: float) -> dict[str, Any] | None:
    """The distance between the model and the records, by scores that were bought."""
    if score is None:
        return None
    from pgmpy_dp.models.score_reading import ModelScore, digest_of

    scores = ModelScore.of(score, level) if isinstance(score, Release) else score.at(level)
    if scores.model != digest_of({name: network.states[name] for name in network.nodes}, network.to_log_linear()):
        raise ValueError("score is of another model; pass one that score_model, or pgmpy-dp score, made of this one")
    rows = [
        {
            "names": f"worst that was found: {', '.join(map(str, scores.worst or ()))}"
            if name == "worst"
            else f"mean over {row.tables:,.0f} {_WHAT.get(str(name), 'sets of variables')}",
            **{key: variation(row[key]) for key in ("distance", "lower", "upper", "sampling")},
        }
        for name, row in scores.table.iterrows()
    ]
    cost = scores.privacy_
    return {
        "rows": rows,
        "cost": f"These numbers have noise too. They cost {cost}, beside what the model cost; costs add up.",
        "seed": "The noise of these numbers came from a seed: they are NOT PRIVATE." if cost.reproducible else "",
    }


def _regressions(network: Answers, regressions: Iterable[Any], level: float) -> list[dict[str, Any]]:
    """Declared analyses: their coefficients, with intervals of a level."""
    if not (listed := list(regressions)):
        return []
    from pgmpy_dp.models.regression.regression_fit import STATUS, Regression
    from pgmpy_dp.models.score_reading import digest_of

    digest = digest_of({name: network.states[name] for name in network.nodes}, network.to_log_linear())
    tables: list[dict[str, Any]] = []
    for fit in itertools.chain.from_iterable(
        Regression.every(one) if isinstance(one, Release) else [one] for one in listed
    ):
        if fit.release_.public["settings"]["model"] != digest:
            raise ValueError(f"regression {fit.formula!r} is of another model; pass one that was asked around this one")
        rows = [
            [name, f"{fit.params[name]:.4g}", *(f"{end:.4g}" for end in ends), f"{fit.bse_noise[name]:.2g}"]
            for name, ends in fit.conf_int(1 - level).iterrows()
        ]
        whom = f"{fit.modelled}. About {fit.nobs:,.0f} of {fit.of_whom}. Status {STATUS[fit.status]}."
        cost = f"They have noise, and cost {fit.privacy}."
        tables.append({"formula": fit.formula, "rows": rows, "words": whom[0].upper() + whom[1:], "cost": cost})
    return tables


_WHAT = {"pairs": "pairs of variables", "triples": "triples of variables", "variables": "variables"}


def _measured(network: Answers, release: Release | None) -> tuple[list[dict[str, Any]], str]:
    if release is None:
        return [], ""
    if network.privacy is None or Privacy.of(release).guarantee != network.privacy.guarantee:
        raise ValueError(f"release is under {release.guarantee}, the model under {network.privacy}; pass its own")
    if release.kind != "marginals":
        raise ValueError(f"release is of kind {release.kind!r}; pass one of noisy tables")
    if missing := [name for name in network if name not in release.schema]:
        raise ValueError(f"release is not of this model: it lacks the variables {missing[:5]}")
    rows = []
    for scope, values, noise in zip(release.scopes, release.values, release.noise, strict=False):
        names = ", ".join(map(str, scope)) or "all records"
        rows.append(
            {"names": names, "cells": values.size, "sd": "–" if noise is None else f"{noise.variance**0.5:,.1f}"}
        )
    order = sorted(range(len(rows)), key=lambda k: (len(release.scopes[k]), k))
    words = f"{quantity(rows, 'table')} of counts, each with noise. Nothing else of the records went into the model."
    return [rows[k] for k in order], words

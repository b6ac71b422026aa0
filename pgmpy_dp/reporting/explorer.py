"""A page that answers questions by itself: it carries the released model and draws of its posterior."""

from __future__ import annotations

import base64
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from pgmpy_dp.checks import checked_level
from pgmpy_dp.inference.junction_tree import build_junction_tree
from pgmpy_dp.models.answer import SENTENCES
from pgmpy_dp.models.answers import Answers
from pgmpy_dp.models.decoding import Values
from pgmpy_dp.models.model_file import filled_words
from pgmpy_dp.models.posterior.discrepancy import MISSES, MOST_PROBE_CELLS, TAU_GRID
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.models.printing_rule import PrintingRule
from pgmpy_dp.models.weighting import require_unweighted
from pgmpy_dp.reporting.marginals import variable_rows
from pgmpy_dp.reporting.model_report import require_exact
from pgmpy_dp.reporting.number_picture import empty_histogram
from pgmpy_dp.reporting.page import as_html, render
from pgmpy_dp.reporting.words import ALONE, guarantee_words, interval_words, percent, size_words
from pgmpy_dp.shown import quantity

MOST_BYTES = 20_000_000
"""The largest size of a page; more is slow to send and to open."""

MOST_CELLS = 2_000_000
"""The most cells of all cliques of the junction tree: the page holds them and passes through for each draw."""


def explorer_page(
    network: Answers,
    n_draws: int | None = None,
    level: float = 0.9,
    title: str | None = None,
    about: str | None = None,
    rule: PrintingRule | None = None,
) -> str:
    """One HTML page in which evidence is chosen and all variables' distributions are shown.

    Parameters
    ----------
    network : Answers
        Its `posterior` gives intervals, if it has one.
    n_draws : int, optional
        Draws of the posterior that the page carries; default: all.
    level : float in (0, 1)
        The level of intervals.
    title, about, rule : optional
        As of `report_page`.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the model is not on exact inference, the page would be too large, or the level needs more draws.
    """
    require_exact(network)
    checked_level(level)
    require_unweighted(network, "this page has no weights; explore the model that it was made from, or write a report")
    data = explorer_data(network, n_draws, level)
    numbers = network.numbers
    variables = [
        {
            "name": network.title(name),
            "states": [state["state"] for state in row["rows"]],
            "cells": len(numbers[name].cells) if name in numbers else 0,
            "picture": empty_histogram(numbers[name]) if name in numbers else None,
            "ends": [one for one in row["summary"] if one["lower"] != "–"],
        }
        for name, row in zip(network, variable_rows(network.marginal_answers(level), rule), strict=False)
    ]
    page = render(
        "explore.html",
        title=title or "Explore a model",
        about=None if about is None else as_html(about),
        lead=" ".join(
            [f"{quantity(network, 'variable')}.", size_words(network), ALONE, *filled_words(network.missing_at_random)]
        ),
        guarantee=guarantee_words(network.privacy),
        variables=variables,
        level=percent(level),
        intervals_words=interval_words(network.posterior, level),
        rule=None if rule is None else rule.words(percent(level), network),
        data=data | {"variables": variables, "level": level, "rule": None if rule is None else vars(rule)},
    )
    if len(page.encode()) > MOST_BYTES:
        _refuse(len(page.encode()), network.posterior, 0)
    return page


def explorer_data(network: Answers, n_draws: int | None, level: float) -> dict[str, Any]:
    """The data that the page computes from; see templates/inference.js.

    Parameters
    ----------
    network, n_draws, level
        See `explorer_page`.
    """
    model, posterior = network.to_log_linear(), network.posterior
    place = {name: k for k, name in enumerate(model.cliques.variables)}
    drawn: list[tuple[int, ...]] = []
    if posterior is not None:
        most = posterior.draws.n_draws
        n_draws = most if n_draws is None else n_draws
        if not 2 <= n_draws <= most:
            raise ValueError(f"n_draws={n_draws!r} must be from 2 to the number of draws in the model, {most}")
        if posterior.discrepancy is None:
            posterior.draws.interval_of(np.zeros((n_draws, 1)), level)  # says how many the level needs
        drawn = [tuple(place[name] for name in scope) for scope in posterior.draws.cliques.scopes]
        _check_size(model.cliques.n_cells, posterior, n_draws)
    elif n_draws is not None:
        raise ValueError(
            f"n_draws={n_draws!r}, and the model has no posterior; write it by fit or refit with --draws 50"
        )
    tree = build_junction_tree(model.cliques, drawn)
    if tree.cells > MOST_CELLS:
        raise ValueError(
            f"the page would hold cliques of {tree.cells:,} cells, more than {MOST_CELLS:,}: merge states, or learn "
            "with a smaller max_clique_cells"
        )
    count = len(model.cliques.indices)
    states = network.states
    questions = [network._question([name], {}, states) for name in network]
    told: list[Any] = [one.axes[name].told for name, one in zip(network, questions, strict=True)]
    standing = {place[name]: one for question in questions for name, one in question.axes.items() if one.told is None}
    data: dict[str, Any] = {
        "tree": {
            "sizes": tree.cardinalities,
            "cliques": tree.cliques,
            "residual": tree.n_residual,
            "parents": tree.parents,
        },
        "model": {"scopes": model.cliques.indices, "homes": tree.homes[:count], "theta": _encoded(model.theta, "<f8")},
        "told": [[np.flatnonzero(states).tolist() for states in one] for one in told],
        "numbers": [_number(network, name) for name in network],
        "standing": [[v, one.shares[0].tolist()] for v, one in standing.items()],
        "around": questions[0].around_model,
        "exchanges": [[list(to), states.tolist()] for to, states in network.exchanges],
        "alone": [sorted(scope) for scope in network.alone],
        "worth": _worth(network, posterior, place),
        "draws": None,
        "discrepancy": None,
        "n_records": None,
    }
    if posterior is not None and n_draws is not None:
        theta = _encoded(posterior.draws.theta[:n_draws], "<f4")
        data["draws"] = {"scopes": drawn, "homes": tree.homes[count:], "n": n_draws, "theta": theta}
        data["n_records"] = float(posterior.n_records) if np.isfinite(posterior.n_records) else None
        if (discrepancy := posterior.discrepancy) is not None:
            names = posterior.draws.cliques.variables

            def at(sets: Iterable[Iterable[int]]) -> list[list[int]]:
                return [sorted(place[names[i]] for i in one) for one in sets]

            data["discrepancy"] = {
                "measured": at(discrepancy.measured),
                "weights": {kind: list(map(float, weights)) for kind, weights in discrepancy.weights.items()},
                "grid": list(map(float, TAU_GRID)),
                "order": discrepancy.drawn.order,
                "within": at(discrepancy.drawn.within),
                "without": at(discrepancy.drawn.without),
                "most": MOST_PROBE_CELLS,
            }
    return data


def _number(network: Answers, name: Hashable) -> dict[str, Any] | None:
    """How the values of a number lie within states, for its mean and quartiles; None for other variables."""
    if name not in network.numbers:
        return None
    values = network.within.get(name) or Values(network.numbers[name])
    number, count = values.number, len(values.number.edges) - 1
    return {
        "states": values.places[:count].tolist(),
        "within": values.within[:count].tolist(),
        "ends": list(number.ends) if number.resolution is None else number.firsts.tolist(),
        "centres": number.centres.tolist(),
        "lower": number.lower,
        "step": number.resolution or 0,
        "kind": number.kind,
    }


def _worth(network: Answers, posterior: Any, place: Mapping[Hashable, int]) -> dict[str, Any]:
    """The worth of answers, and the sentences that say it."""
    names = list(network)
    refused = {name: network._refusal([name], posterior) for name in names}
    wrong = posterior is None or not posterior.is_complete
    return {
        "sentences": SENTENCES,
        "misses": MISSES | {"size": network.beside, "none": MISSES["none"] if wrong else None},
        "pairs": [[place[pair.one], place[pair.other], str(pair)] for pair in network._unmeasured(names, posterior)],
        "refusals": [[place[name], why] for name, why in refused.items() if why],
        "conditional": None if network.privacy is None else network.privacy.conditional,
    }


def _check_size(cells: int, posterior: ParameterPosterior, n_draws: int) -> None:
    """Refuse a page that would be too large, before anything is encoded: base64 takes four letters for three bytes."""
    wanted = (8 * cells + 4 * n_draws * posterior.draws.cliques.n_cells) * 4 / 3
    if wanted > MOST_BYTES:
        fit = int((0.75 * MOST_BYTES - 8 * cells) / (4 * posterior.draws.cliques.n_cells))
        _refuse(wanted, posterior, min(fit, n_draws))


def _refuse(size: float, posterior: ParameterPosterior | None, fit: int) -> None:
    remedy = f"n_draws={fit} would fit, or merge states" if fit >= 2 else "merge states"
    if fit < 2 and posterior is not None:
        remedy = "take fewer draws, or merge states"
    raise ValueError(f"the page would have {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:g}: {remedy}")


def _encoded(values: np.ndarray, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()

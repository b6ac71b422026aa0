"""What replay is run on: fits of every estimator and method, and neighbours for them, odd ones first."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pgmpy_dp.auditing.movements import INVENTED, invented
from pgmpy_dp.auditing.replay import ReplayReport, replay

__all__ = ["ReplayCase", "Found", "one_adjacency_each", "run_replays"]


@dataclass(frozen=True)
class ReplayCase:
    """A fit, and neighbouring datasets for it.

    Attributes
    ----------
    name : str
        Estimator, method, adjacency and budget.
    fit : callable
        From data to what is published; it makes its private data, and charges its ledger, itself.
    pairs : callable
        From a generator to an endless iterator of pairs of neighbours; those that are known to be hard come first.
    corpus : int
        How many of them come first.
    answers : tuple of str
        "drawn", and the kinds of invented answers that the fit can work with.
    """

    name: str
    fit: Callable[[Any], Any]
    pairs: Callable[[np.random.Generator], Iterator[tuple[Any, Any]]]
    corpus: int
    answers: tuple[str, ...] = ("drawn", *INVENTED)


@dataclass(frozen=True)
class Found:
    """What replay found on one pair of a case.

    Attributes
    ----------
    case : str
    pair : int
        Its place in the case's pairs.
    answers : str
        "drawn", or the kind of invented ones.
    report : ReplayReport
    """

    case: str
    pair: int
    answers: str
    report: ReplayReport


def one_adjacency_each(cases: Sequence[ReplayCase]) -> list[ReplayCase]:
    """Every fit with every budget under one of the adjacencies, in turns: half of the cases, for the quick tests.

    Parameters
    ----------
    cases : sequence of ReplayCase

    Returns
    -------
    list of ReplayCase
    """
    alike: dict[str, list[ReplayCase]] = {}
    for case in cases:
        alike.setdefault(re.sub("add_remove|replace_one", "", case.name), []).append(case)
    return [group[number % len(group)] for number, group in enumerate(alike.values())]


def run_replays(
    cases: Sequence[ReplayCase], n_pairs: int | None = None, seed: int = 0, turns: int = 1
) -> Iterator[Found]:
    """Replay every case on its corpus, or on `n_pairs` pairs; answers are drawn and invented in turns.

    Parameters
    ----------
    cases : sequence of ReplayCase
    n_pairs : int, optional
        Of each case. Default: its corpus.
    seed : int
        Of random neighbours and invented answers.
    turns : int
        Cases take turns: each is tried on its first pair and one of so many others, the next case on those between.

    Yields
    ------
    Found
    """
    for number, case in enumerate(cases):
        pairs = case.pairs(np.random.default_rng([seed, number]))
        for k, (data, neighbour) in enumerate(itertools.islice(pairs, case.corpus if n_pairs is None else n_pairs)):
            if k and (k + number + number // turns) % turns:
                continue
            # The corpus starts with drawn answers; then kinds change from pair to pair, differently in each case.
            kind = "drawn" if k == 0 else case.answers[(k + number + seed) % len(case.answers)]
            answers = None if kind == "drawn" else invented(kind, seed + k)
            report = replay(case.fit, data, neighbour, answers=answers)
            if k == 0 and not report.requests:  # both runs failed alike, say: that is no case
                report = replace(report, problems=(*report.problems, "nothing was asked of a curator"))
            yield Found(case.name, k, kind, report)

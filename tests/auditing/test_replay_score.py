"""Replay of scores of a model: right ones hold and attain their bounds, wrong ones are found."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp import Budget
from pgmpy_dp.auditing.movements import INVENTED, invented
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.models.model_score import score_model
from pgmpy_dp.private.data import table_distances
from pgmpy_dp.private.operators import distances
from tests.auditing.replay_cases import run_replays
from tests.auditing.replay_tables import STATES, score_cases, score_pairs, sure_model


def score(frame, adjacency="add_remove", budget=None, **options):
    n_records = len(frame) if adjacency == "replace_one" else None
    budget = Budget(rho=0.1) if budget is None else budget
    options = {"schema": STATES, "adjacency": adjacency, "n_records": n_records, **options}
    return score_model(sure_model(), frame, budget, **options)


def found(adjacency="add_remove", count=4, **options) -> str:
    pairs = itertools.islice(score_pairs(np.random.default_rng(0), adjacency), count)
    return "; ".join(p for pair in pairs for p in replay(lambda d: score(d, adjacency, **options), *pair).problems)


@pytest.mark.parametrize("turns", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_the_catalogue_holds_and_attains_the_bounds(turns):
    best: dict[tuple, float] = {}
    for item in run_replays(score_cases(), turns=turns):
        assert item.report.holds, item
        for operator, ratio in item.report.movement.items():
            key = operator, "replace_one" if "replace_one" in item.case else "add_remove"
            best[key] = max(best.get(key, 0.0), ratio)
    operators = ("record_count", "distances", "worst_fit")
    assert set(best) == set(itertools.product(operators, ("add_remove", "replace_one")))
    assert min(best.values()) >= 0.99


@pytest.mark.parametrize("kind", INVENTED)
def test_invented_answers_hold(kind):
    for adjacency in ("add_remove", "replace_one"):
        pair = next(score_pairs(np.random.default_rng(0), adjacency))
        assert replay(lambda d, a=adjacency: score(d, a), *pair, answers=invented(kind)).holds


class TestMutants:
    def test_distances_to_counts_of_a_total_that_is_rounded_down(self, monkeypatch):
        """A total that is seen in tens moves the model's counts by ten at once."""
        true = table_distances.mean_distances

        def coarse(exact, sizes, parts, means):
            made = true(exact, sizes, parts, means)
            return replace(made, value=made.value - int(exact.value.sum()) % 10)

        monkeypatch.setattr(distances, "mean_distances", coarse)
        assert "distances: exact statistics moved by" in found()

    def test_a_mean_of_every_table_costs_as_much_as_one(self, monkeypatch):
        for module in (table_distances, distances):
            monkeypatch.setattr(module, "distance_sensitivity", lambda k: (1.0, 1.0, 1.0))
        monkeypatch.setattr(distances.Distances, "moved", staticmethod(lambda k: (1.0, 1.0, 1.0)))
        assert "distances: noise of scale" in found(each=True, worst=False)

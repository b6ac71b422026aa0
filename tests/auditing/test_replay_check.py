"""Replay of checks of a schema: right ones hold, and counts that move by more than their noise covers are found."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, check_schema
from pgmpy_dp.auditing.movements import INVENTED, invented
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.private.data import contingency, table
from pgmpy_dp.private.operators import record_matches
from pgmpy_dp.private.sensitive import Sensitive
from tests.auditing.replay_cases import run_replays
from tests.auditing.replay_tables import STATES, check_cases, check_pairs


def check(frame, adjacency="add_remove", budget=None, **options):
    n_records = len(frame) if adjacency == "replace_one" else None
    budget = Budget(rho=0.1) if budget is None else budget
    return check_schema(frame, budget, STATES, adjacency=adjacency, n_records=n_records, **options)


def found(fit=check, adjacency="add_remove", count=8) -> str:
    pairs = itertools.islice(check_pairs(np.random.default_rng(0), adjacency), count)
    return "; ".join(p for pair in pairs for p in replay(lambda d: fit(d, adjacency), *pair).problems)


@pytest.mark.parametrize("turns", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_the_catalogue_holds_and_attains_the_bounds(turns):
    best: dict[str, float] = {}
    for item in run_replays(check_cases(), turns=turns):
        assert item.report.holds, item
        best[item.case] = max(best.get(item.case, 0.0), *item.report.movement.values())
    assert len(best) == 18
    assert min(best.values()) >= 0.99


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", INVENTED)
def test_invented_answers_hold(kind, adjacency):
    pair = next(check_pairs(np.random.default_rng(0), adjacency))
    assert replay(lambda d: check(d, adjacency), *pair, answers=invented(kind)).holds


class TestMutants:
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_a_halved_sensitivity(self, adjacency, monkeypatch):
        for module in (record_matches, table):
            halved = lambda m: tuple(x / 2 for x in contingency.match_sensitivity(m))  # noqa: E731
            monkeypatch.setattr(module, "match_sensitivity", halved)
        monkeypatch.setattr(record_matches.MatchedCounts, "moved", staticmethod(halved))
        problems = found(adjacency=adjacency)
        assert "matched_counts: exact statistics moved by 2" in problems
        assert "matched_counts: noise of scale" in problems

    def test_one_count_fewer(self, monkeypatch):
        """The noise of the columns alone, without that of all of them together."""
        for module in (record_matches, table):
            monkeypatch.setattr(module, "match_sensitivity", lambda m: contingency.match_sensitivity(m - 1))
        assert "matched_counts: exact statistics moved by 1.1" in found()

    def test_a_statistic_times_three(self, monkeypatch):
        true = record_matches.matched_records

        def tripled(data, grid):
            exact = true(data, grid)
            return Sensitive(3 * exact.value, exact.adjacency, exact.l1, exact.l2, exact.linf)

        monkeypatch.setattr(record_matches, "matched_records", tripled)
        assert "matched_counts: exact statistics moved by 3" in found()

    def test_a_public_number_that_is_released_as_well(self, monkeypatch):
        """Then there is one count more than the noise knows of."""
        true = record_matches.matched_records

        def longer(data, grid):
            exact = true(data, grid)
            return Sensitive(np.append(exact.value, exact.value[0]), exact.adjacency, exact.l1, exact.l2, exact.linf)

        monkeypatch.setattr(record_matches, "matched_records", longer)
        assert "matched_counts: exact statistics moved by 1.0" in found(adjacency="replace_one")

    def test_a_check_that_reads_the_records(self):
        def peeking(frame, adjacency="add_remove"):
            if (frame["a"] == "no").sum() % 2:
                raise ValueError("odd")
            return check(frame, adjacency)

        assert "error differs" in found(peeking)

    def test_words_that_look_at_the_records(self):
        def peeking(frame, adjacency="add_remove"):
            return str(check(frame, adjacency)), pd.unique(frame["a"]).tolist()

        assert "result differs" in found(peeking, "replace_one")

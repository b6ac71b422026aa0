"""Replay of the learners of users' sequences: tables of beginnings and pairs, and steps on samples of users."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp.auditing.movements import invented
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.data import contributions
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.sequences.operators import sequence_operators as tables
from pgmpy_dp.sequences.operators import sequences
from tests.auditing.replay_cases import run_replays
from tests.auditing.replay_sequences import RHO, departure_cases, sequence_cases, sequence_pairs
from tests.auditing.replay_sequences import fit_sequences as fit
from tests.auditing.replay_sequences import sequence_frame as frame

LONG = [["a", "b"] * 40]


@pytest.mark.parametrize("turns", [6, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_the_catalogue_holds_and_bounds_are_attained(adjacency, turns):
    most: dict[str, float] = {}
    for item in run_replays([case for case in sequence_cases() if adjacency in case.name], turns=turns):
        assert item.report.holds, item
        for operator, ratio in item.report.movement.items():
            most[operator] = max(most.get(operator, 0.0), ratio)
    assert set(most) - {"order_departure"} == {"ngram_tables"} and most["ngram_tables"] >= 0.99


@pytest.mark.parametrize("case", departure_cases(), ids=lambda case: case.name)
def test_the_test_of_order_holds_and_listed_pairs_attain_its_bounds(case):
    found = list(run_replays([case]))
    assert all(item.report.holds for item in found)
    assert max(item.report.movement["order_departure"] for item in found) >= 0.99


@pytest.mark.parametrize("kind", ["huge", "random"])
def test_what_is_asked_last_follows_from_answers(kind):
    """The plan that tests the order, with answers that make it ask for the departure."""
    report = replay(lambda d: fit(d, "auto", RHO), FIRST, SECOND, answers=invented(kind))
    assert report.holds and ("order_departure" in report.movement) == (kind == "huge"), report


FIRST, SECOND = next(itertools.islice(sequence_pairs(np.random.default_rng(0), "add_remove"), 1, None))


def found(name="shares", budget=RHO, data=FIRST, neighbour=SECOND, learner=fit) -> str:
    return "; ".join(replay(lambda d: learner(d, name, budget), data, neighbour).problems)


class TestMutants:
    def test_a_halved_sensitivity_of_tables(self, monkeypatch):
        true = tables.contribution_sensitivity
        halved = lambda adjacency, most: tuple(x / 2 for x in true(adjacency, most))  # noqa: E731
        monkeypatch.setattr(tables, "contribution_sensitivity", halved)
        monkeypatch.setattr(sequences, "contribution_sensitivity", halved)
        problems = found()
        assert "ngram_tables: exact statistics moved by 2" in problems and "ngram_tables: noise of scale" in problems

    def test_a_table_times_three(self, monkeypatch):
        true = tables.chain_tables
        tripled = lambda *a, **k: [  # noqa: E731
            Sensitive(3 * x.value, x.adjacency, x.l1, x.l2, x.linf) for x in true(*a, **k)
        ]
        monkeypatch.setattr(tables, "chain_tables", tripled)
        assert "moved by 3" in found()

    def test_a_user_who_counts_more_than_once(self, monkeypatch):
        monkeypatch.setattr(sequences, "chosen_segments", lambda user, *_: np.ones(len(user), dtype=bool))
        assert "exact statistics moved by" in found("segments", data=frame([]), neighbour=frame([LONG]))

    def test_segments_that_are_chosen_by_position_among_all(self, monkeypatch):
        true = contributions.chosen_segments

        def by_position(user, most, rng=None, keys=None):
            return true(np.arange(len(user)) // 3, most, keys=np.arange(len(user), dtype=np.uint64))

        monkeypatch.setattr(sequences, "chosen_segments", by_position)
        many = [[["a", "b", "a"]], [["a", "b", "a"]], [["b", "b", "b"]]] * 5  # every third is left out, or other ones
        assert "moved by" in found("segments", data=frame(many), neighbour=frame([[["a"]], *many]))

    def test_a_plan_that_peeks(self, monkeypatch):
        def peeking(self, operator, share, true=Curator.ask):
            length = 3 if len(self._data._read[0]) % 2 else 2
            return true(self, replace(operator, segment_length=length), share)

        monkeypatch.setattr(Curator, "ask", peeking)
        assert "ngram_tables: its arguments differ" in found()

    def test_a_plan_that_peeks_after_its_last_request(self, monkeypatch):
        def peeking(data, name, budget):
            fitted = fit(data, name, budget)
            fitted.n_rows_ = len(data)
            return fitted

        assert "result differs" in found(learner=peeking)

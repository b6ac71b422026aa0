"""Replay of a fit with its test as one: right ones hold and attain their bounds, wrong ones are found."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.data import table_errors
from pgmpy_dp.private.operators import model_errors
from pgmpy_dp.tables.publishing import publish_if as published
from tests.auditing.replay_cases import one_adjacency_each, run_replays
from tests.auditing.replay_tables import BUDGETS, publish_cases, score_pairs


def cases(what, adjacency="add_remove"):
    return [case for case in publish_cases() if f"publish_if, {what}, {adjacency}" in case.name]


def found(what, adjacency="add_remove", count=4) -> str:
    pairs = list(itertools.islice(score_pairs(np.random.default_rng(0), adjacency), count))
    reports = [replay(case.fit, *pair) for case in cases(what, adjacency)[:1] for pair in pairs]
    return "; ".join(problem for report in reports for problem in report.problems)


@pytest.mark.parametrize(("some", "turns"), [(one_adjacency_each, 12), pytest.param(list, 1, marks=pytest.mark.slow)])
def test_the_catalogue_holds_and_the_test_attains_its_bounds(some, turns):
    best: dict[tuple, float] = {}
    for item in run_replays(some(publish_cases()), turns=turns):
        assert item.report.holds, item
        for operator, ratio in item.report.movement.items():
            key = operator, "replace_one" if "replace_one" in item.case else "add_remove"
            best[key] = max(best.get(key, 0.0), ratio)
    assert {operator for operator, _ in best} == {"tables", "worst_fit", "record_count", "model_errors", "score_sums"}
    assert min(ratio for (operator, _), ratio in best.items() if operator == "model_errors") >= 0.99


def test_the_answer_is_a_function_of_what_was_answered():
    """Both kinds of answers are among the catalogue's: what leaves is compared, with the ledger and the folder."""
    frame, _ = next(score_pairs(np.random.default_rng(0), "add_remove"))
    frame = pd.concat([frame] * 500, ignore_index=True)
    for what, wanted in (("yes", True), ("no", False)):
        answer, release, tests, entries, files = cases(what)[0].fit(frame)
        assert answer is wanted and (release is not None) is wanted and (tests is not None) is wanted
        (entry,) = entries
        assert entry.cost == cost_of(BUDGETS[2 if wanted else 1]) and files == ["ledger.json", "ledger.json.lock"]


class TestMutants:
    def test_an_error_that_is_rounded_by_the_total(self, monkeypatch):
        """A total that is seen in tens moves a loss by ten at once."""
        true = table_errors.sum_above
        monkeypatch.setattr(
            table_errors, "sum_above", lambda n, f, r: true(n, f, r) + int(n.sum()) % 10 * table_errors.WHOLE
        )
        assert "model_errors: exact statistics moved by" in found("test alone")

    def test_all_measures_cost_as_much_as_one(self, monkeypatch):
        monkeypatch.setattr(table_errors, "distance_sensitivity", lambda k: (1.0, 1.0, 1.0))
        monkeypatch.setattr(model_errors.ModelErrors, "moved", staticmethod(lambda k: (1.0, 1.0, 1.0)))
        assert "model_errors: noise of scale" in found("test alone")

    def test_losses_beyond_the_clip(self, monkeypatch):
        """Values that are checked nowhere: one record moves a sum of losses by what it loses."""
        monkeypatch.setattr(
            model_errors, "value_parts", lambda values: np.rint(7 * np.ravel(values) * table_errors.WHOLE).astype(int)
        )
        assert "model_errors: exact statistics moved by" in found("test alone")

    def test_an_answer_that_looks_at_the_records(self, monkeypatch):
        true = published.noisy_test.run

        def peeking(table, *arguments):
            tests = true(table, *arguments)
            return tests.assign(met=bool(len(table._codes) % 2))

        monkeypatch.setattr(published.noisy_test, "run", peeking)
        assert "result differs" in found("yes", count=1)

    def test_a_test_that_is_not_paid_for(self, monkeypatch):
        """It is refused by the part that was set aside, whatever the plan asks: there is no answer then."""
        true = published._budgets

        def twice(whole, share):
            fit, test = true(whole, share)
            return fit, Budget.of(type(whole)(2.0 * float(test.guarantee.amount)))

        monkeypatch.setattr(published, "_budgets", twice)
        frame, _ = next(score_pairs(np.random.default_rng(0), "add_remove"))
        with pytest.raises(RuntimeError, match="ended without an answer"):
            cases("yes")[0].fit(frame)

"""Replay of parities and interactions: all that is right holds and attains its bound, and each mutant is found."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pgmpy_dp import Budget
from pgmpy_dp.auditing.movements import INVENTED, invented
from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.fields import parity_rounds
from pgmpy_dp.fields.operators import interactions as interaction_data
from pgmpy_dp.fields.operators import parities as data
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.mathematics import walsh_hadamard
from pgmpy_dp.private.operators import record_count as counted
from pgmpy_dp.private.sensitive import Sensitive
from tests.auditing import replay_parities
from tests.auditing.replay_cases import one_adjacency_each, run_replays
from tests.auditing.replay_parities import BINARY, EQUAL, FITS, LARGE, moment_pairs, parity_cases

OPERATORS = ("parity_sums", "parity_matrix", "worst_parity", "record_count", "interaction_sums", "interaction_matrix")


def pair(adjacency: str, size: int, changed: int = 2, states=BINARY):
    """Equal rows, and among them one that differs in so many variables."""
    pairs = moment_pairs(np.random.default_rng(0), adjacency, states, [size])
    return [next(pairs) for _ in range(changed)][-1]


def found(name: str, adjacency: str = "add_remove", size: int = 3, budget=None, states=BINARY, **options) -> str:
    fit = partial(FITS[name][0], budget=budget or Budget(rho=0.1), adjacency=adjacency)
    return "; ".join(replay(fit, *pair(adjacency, size, states=states), **options).problems)


@pytest.mark.parametrize(("some", "turns"), [(one_adjacency_each, 3), pytest.param(list, 1, marks=pytest.mark.slow)])
def test_the_catalogue_holds_and_attains_every_bound(some, turns):
    best: dict[tuple, float] = {}
    rarely = ("interactions of no pair, replace_one", "halves by pmw, replace_one")  # few pairs move a sum, or a count
    few = [case for case in parity_cases() if case.name.startswith(rarely)]
    for item in itertools.chain(run_replays(some(parity_cases()), turns=turns), run_replays(few)):
        assert item.report.holds, item
        for operator, ratio in item.report.movement.items():
            key = operator, "replace_one" if "replace_one" in item.case else "add_remove", item.case.split(", ")[0]
            best[key] = max(best.get(key, 0.0), ratio)
    for operator in OPERATORS:
        for adjacency in ("add_remove", "replace_one"):
            assert max(r for (o, a, _), r in best.items() if (o, a) == (operator, adjacency)) >= 0.99
    # Fields and all pairs of three variables with three states cannot move the most at once: two variables that change
    # move 2/3 of what the fields, and all of what the pairs can, in squares.
    assert best["interaction_sums", "replace_one", "interactions"] == pytest.approx(math.sqrt(5 / 6))


@pytest.mark.parametrize("answers", INVENTED)
@pytest.mark.parametrize("name", ["auto", "pmw", "sepfem"])
def test_no_answer_leads_to_a_course_that_depends_on_records(answers, name):
    for adjacency in ("add_remove", "replace_one"):
        for budget in (Budget(rho=0.1), Budget(epsilon=1.0)):
            assert not found(name, adjacency, budget=budget, answers=invented(answers))


class TestMutantsOfTheBoundary:
    @staticmethod
    def transform_times_three(monkeypatch):
        true = walsh_hadamard.transform
        for module in (walsh_hadamard, data):
            monkeypatch.setattr(module, "transform", lambda values: 3 * true(values))

    @pytest.mark.parametrize("name", ["parities", "pmw", "sepfem"])
    def test_walsh_hadamard_times_three_in_large_tables(self, name, monkeypatch):
        assert not found(name, size=LARGE)
        self.transform_times_three(monkeypatch)
        assert "exact statistics moved by" in found(name, size=LARGE)

    def test_walsh_hadamard_times_three_in_sensitivities_of_small_tables(self, monkeypatch):
        data.flipped_in_family.cache_clear()
        self.transform_times_three(monkeypatch)
        assert "parity_sums: noise of scale" in found("parities of a graph", "replace_one")
        data.flipped_in_family.cache_clear()

    @pytest.mark.parametrize("size", [3, 70, LARGE])
    def test_sums_times_two(self, size, monkeypatch):
        true = data.parity_sums
        monkeypatch.setattr(data, "parity_sums", lambda codes, order: 2 * true(codes, order))
        assert "parity_sums: exact statistics moved by" in found("parities", size=size)
        assert "worst_parity: exact statistics moved by 2" in found("sepfem", size=size)

    def test_sums_of_a_family_times_two(self, monkeypatch):
        true = data.family_sums
        monkeypatch.setattr(data, "family_sums", lambda codes, subsets: 2 * true(codes, subsets))
        for size in (3, LARGE):
            assert "parity_sums: exact statistics moved by" in found("parities of a graph", size=size)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize(("name", "operator"), [("parities", "parity_sums"), ("pmw", "worst_parity")])
    def test_a_halved_sensitivity_of_parities(self, adjacency, name, operator, monkeypatch):
        true = data.parity_sensitivity
        monkeypatch.setattr(data, "parity_sensitivity", lambda *a: tuple(x / 2 for x in true(*a)))
        planned = data.NoisyMax.planned.__func__
        halved = classmethod(lambda cls, linf, *rest: planned(cls, linf / 2, *rest))
        monkeypatch.setattr(data.NoisyMax, "planned", halved)
        problems = found(name, adjacency)
        assert f"{operator}: exact statistics moved by 2" in problems
        assert f"{operator}: noise of scale" in problems

    def test_a_replacement_taken_for_an_addition(self, monkeypatch):
        monkeypatch.setattr(data, "changed_records", lambda adjacency: 1)
        assert "parity_sums: exact statistics moved by" in found("parities", "replace_one")

    def test_scores_that_are_not_rounded_alike(self, monkeypatch):
        true = data.parity_misfits

        def misfits(exact, expected, *, signed):
            scores = true(exact, expected, signed=signed)
            return Sensitive(scores.value * (1 + abs(exact.value[0]) % 2), exact.adjacency, 1.0, 1.0, scores.linf)

        monkeypatch.setattr(data, "parity_misfits", misfits)
        assert "worst_parity: exact statistics moved by" in found("pmw", answers=invented("huge"))

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("part", ["field_sensitivity", "pair_sensitivity"])
    def test_a_halved_sensitivity_of_interactions(self, adjacency, part, monkeypatch):
        true = getattr(interaction_data, part)
        monkeypatch.setattr(interaction_data, part, lambda *a: tuple(x / 2 for x in true(*a)))
        problems = found("interactions", adjacency, states=EQUAL)
        assert "interaction_sums: exact statistics moved by" in problems
        assert "interaction_sums: noise of scale" in problems

    def test_a_count_of_every_record_twice(self, monkeypatch):
        true = counted.record_count

        def twice(table, **how):
            exact = true(table, **how)
            return Sensitive(2 * exact.value, exact.adjacency, exact.l1, exact.l2, exact.linf)

        monkeypatch.setattr(counted, "record_count", twice)
        assert "record_count: exact statistics moved by 2" in found("pmw")

    def test_a_share_that_is_answered_for_less(self, monkeypatch):
        true = data.JointNoise.planned.__func__

        def planned(cls, norms, sizes, cost, share, parts):
            return true(cls, norms, sizes, cost, 2 * share, parts)

        monkeypatch.setattr(data.JointNoise, "planned", classmethod(planned))
        assert "parity_sums: noise of scale" in found("parities")


class TestMutantsOfPlans:
    def test_a_half_whose_records_are_looked_at(self, monkeypatch):
        true = replay_parities.ask_parities

        def ask(curator, plan):
            arrays, method = true(curator, plan)
            return arrays, method + "!" * (len(curator._data._codes) % 2)

        monkeypatch.setattr(replay_parities, "ask_parities", ask)
        assert "result differs" in found("halves")

    def test_rounds_by_the_number_of_records(self, monkeypatch):
        true = TableCurator.ask

        def ask(curator, operator, share):
            if isinstance(operator, data.WorstParity):
                operator = replace(operator, expected=operator.expected + 1e-9 * len(curator._data._codes))
            return true(curator, operator, share)

        monkeypatch.setattr(TableCurator, "ask", ask)
        assert "worst_parity: its arguments differ" in found("sepfem")

    def test_points_that_the_observer_cannot_repeat(self, monkeypatch):
        monkeypatch.setattr(TableCurator, "generator", lambda curator: np.random.default_rng())
        assert "worst_parity: its arguments differ" in found("sepfem")

    def test_a_search_that_stops_by_the_records(self, monkeypatch):
        true = parity_rounds.pmw_answers

        def answers(curator, family, records, rounds, share):
            return true(curator, family, records, rounds - len(curator._data._codes) % 2, share)

        monkeypatch.setattr("pgmpy_dp.fields.noisy_parities.pmw_answers", answers)
        assert "its share differ" in found("pmw")

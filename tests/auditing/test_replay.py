"""Replay: nothing is found in what is right, and each way in which a learner or an operator can be wrong is found."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.auditing.movements import INVENTED, invented, movement
from pgmpy_dp.auditing.replay import ReplayReport, replay
from pgmpy_dp.estimators import NaiveMLE, PrivateNetwork
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator import curator_base
from pgmpy_dp.private.curator.mechanism import NoisyMax
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import additive
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators import worst_fit
from pgmpy_dp.private.operators.tables import Tables
from pgmpy_dp.private.operators.worst_fit import WorstFit
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.tables.networks import adaptive_search
from tests.auditing.replay_cases import one_adjacency_each, run_replays
from tests.auditing.replay_tables import STATES, table_cases, table_pairs
from tests.private.mechanisms import with_noise

FIRST, ODD = next(pair for k, pair in enumerate(table_pairs(np.random.default_rng(0), "add_remove")) if k == 1)
GRAPH = nx.path_graph(list(STATES))


EPSILON = Budget(epsilon=1.0)


def fit_parameters(frame, budget=EPSILON):
    return NaiveMLE(epsilon=budget.epsilon, rho=budget.rho, state_names=STATES).fit(GRAPH, frame)


def fit_network(frame):
    return PrivateNetwork(rho=0.5, state_names=STATES, n_rounds=4, one_way_share=0.1).fit(frame)


def found(fit=fit_network, data=FIRST, neighbour=ODD, **options) -> str:
    return "; ".join(replay(fit, data, neighbour, **options).problems)


@pytest.mark.parametrize("fit", [fit_parameters, fit_network])
@pytest.mark.parametrize("answers", [None, *INVENTED])
def test_right_fits_hold_and_attain_their_bounds(fit, answers):
    report = replay(fit, FIRST, ODD, answers=None if answers is None else invented(answers))
    assert report.holds, report
    assert report.movement["tables"] == 1.0
    assert report.movement.get("worst_fit", 1.0) == 1.0
    assert "nothing found" in str(report)


@pytest.mark.parametrize(("some", "turns"), [(one_adjacency_each, 12), pytest.param(list, 1, marks=pytest.mark.slow)])
def test_the_catalogue_holds_and_attains_every_bound(some, turns):
    best: dict[tuple, float] = {}
    for item in run_replays(some(table_cases()), turns=turns):
        assert item.report.holds, item
        for operator, ratio in item.report.movement.items():
            key = operator, "replace_one" if "replace_one" in item.case else "add_remove"
            best[key] = max(best.get(key, 0.0), ratio)
    assert set(best) == {(o, a) for o in ("tables", "worst_fit") for a in ("add_remove", "replace_one")}
    assert min(best.values()) >= 0.99


def asked_of_two(data, budget):
    """A plan that asks two curators for a half of the budget each."""
    half = Budget(epsilon=budget.epsilon / 2)
    first, second = (TableCurator(data, half, what=name) for name in "ab")
    first.ask(Tables([tuple(STATES)]), 1)
    second.ask(Tables([tuple(STATES)]), 1)
    return second.release("marginals", {"first": first.arrays[0].tolist()})


class TestPlansThatSayLessThanTheyCharged:
    def test_a_plan_alone(self):
        plan = lambda frame: asked_of_two(PrivateTable(frame, STATES, ledger=EPSILON), EPSILON)  # noqa: E731
        assert found(plan) == "1-DP was charged for a release of 0.5-DP"
        both = lambda frame: plan(frame).published_with(PureDP(1.0), {})  # noqa: E731
        assert found(both) == ""

    def test_an_estimator_s(self, monkeypatch):
        monkeypatch.setattr(NaiveMLE, "_run", lambda self, table, settings, budget: asked_of_two(table, budget))
        assert "released under 0.5-DP, and its data were charged [PureDP(epsilon=0.5), PureDP(" in found(fit_parameters)


class TestMutantsOfTheBoundary:
    @pytest.mark.parametrize("fit", [fit_parameters, fit_network])
    def test_a_halved_sensitivity(self, fit, monkeypatch):
        monkeypatch.setattr(table_operator, "table_sensitivity", lambda a: (0.5, 0.5, 0.5))
        true = table_operator.contingency_tables
        halved = lambda t, s, g: [Sensitive(x.value, x.adjacency, 0.5, 0.5, 0.5) for x in true(t, s, g)]  # noqa: E731
        monkeypatch.setattr(table_operator, "contingency_tables", halved)
        problems = found(fit)
        assert "tables: exact statistics moved by 2" in problems
        assert "tables: noise of scale" in problems

    def test_a_statistic_times_three(self, monkeypatch):
        true = table_operator.contingency_tables
        tripled = lambda t, s, g: [  # noqa: E731
            Sensitive(3 * x.value, x.adjacency, x.l1, x.l2, x.linf) for x in true(t, s, g)
        ]
        monkeypatch.setattr(table_operator, "contingency_tables", tripled)
        assert "tables: exact statistics moved by 3" in found(fit_parameters)

    @pytest.mark.parametrize("name", ["laplace_scales", "gaussian_scales"])
    def test_a_scale_that_is_too_small(self, name, monkeypatch):
        true = getattr(additive, name)
        monkeypatch.setattr(additive, name, lambda *a: tuple(0.9 * scale for scale in true(*a)))
        budget = Budget(epsilon=1.0) if name == "laplace_scales" else Budget(rho=0.5)
        assert "where the formula has" in found(lambda frame: fit_parameters(frame, budget))

    def test_a_selection_whose_noise_covers_one_direction_alone(self, monkeypatch):
        true = NoisyMax.planned.__func__

        def half(cls, *arguments):
            whole = true(cls, *arguments)
            return replace(whole, scale=whole.scale / 2)

        monkeypatch.setattr(NoisyMax, "planned", classmethod(half))
        assert "worst_fit: noise of scale" in found()

    def test_weights_above_one(self, monkeypatch):
        true = worst_fit._parts
        monkeypatch.setattr(worst_fit, "_parts", lambda weights, count: 3 * true(weights, count))
        assert "worst_fit: exact statistics moved by 3" in found()

    def test_a_share_that_is_not_debited(self, monkeypatch):
        true = curator_base.Curator._debit

        def free(self, operator, share, eta):
            left, self._left = self._left, Fraction(10)
            asked = true(self, operator, share, eta)
            self._left = left
            return asked

        monkeypatch.setattr(curator_base.Curator, "_debit", free)
        assert "is left where" in found(fit_parameters)

    def test_a_share_that_is_debited_twice(self, monkeypatch):
        true = curator_base.Curator._debit

        def twice(self, operator, share, eta):
            asked = true(self, operator, share, eta)
            self._left -= share / 2
            return asked

        monkeypatch.setattr(curator_base.Curator, "_debit", twice)
        assert "is left where" in found()

    def test_an_operator_that_says_something_of_the_data(self, monkeypatch):
        true = Tables._exact

        def telling(self, data, facts, mechanism, coins):
            if len(data._codes) % 2:
                warnings.warn("odd", stacklevel=1)
            return true(self, data, facts, mechanism, coins)

        monkeypatch.setattr(Tables, "_exact", telling)
        assert "warned differs" in found(fit_parameters)

    def test_an_operator_without_a_formula(self):
        def fit(frame):
            table = PrivateTable(frame, STATES, ledger=Budget(rho=1.0))
            curator = TableCurator(table, Budget(rho=1.0), what="", columns=[])
            exact = table_operator.contingency_tables(curator._data, [("a",)])
            with curator._turn():
                curator._answer_now("secret", {}, Fraction(1), lambda c, s: with_noise(exact, c, s))

        assert "secret: no formula of its scale" in found(fit)


class TestMutantsOfPlans:
    """A plan that reads the records: before a request, between two, after the last one."""

    @staticmethod
    def number(curator):
        return len(curator._data._codes)

    def test_one_that_stops_early(self, monkeypatch):
        true = adaptive_search.Search._measure_worst

        def measure(search, share, together):
            if self.number(search.curator) > 40:
                share = search.curator.left
            return true(search, share, together)

        monkeypatch.setattr(adaptive_search.Search, "_measure_worst", measure)
        assert "its share differ" in found()

    def test_one_that_asks_once_more(self, monkeypatch):
        true = adaptive_search.Search._measure_worst

        def measure(search, share, together):
            if self.number(search.curator) > 40 and search.number == 0:
                search.curator.ask(Tables([("a",)]), share / 100)
                share = share * 99 / 100
            return true(search, share, together)

        monkeypatch.setattr(adaptive_search.Search, "_measure_worst", measure)
        assert "tables was asked in the place of worst_fit" in found()
        assert "worst_fit was asked in the place of tables" in found(data=ODD, neighbour=FIRST)

    def test_one_that_asks_with_other_arguments(self, monkeypatch):
        true = TableCurator.ask

        def ask(curator, operator, share):
            if isinstance(operator, WorstFit):
                operator = replace(operator, expected=operator.expected + 1e-9 * self.number(curator))
            return true(curator, operator, share)

        monkeypatch.setattr(TableCurator, "ask", ask)
        assert "worst_fit: its arguments differ" in found()

    def test_one_that_peeks_after_its_last_request(self):
        def fit(frame):
            estimator = fit_parameters(frame)
            estimator.n_iter_ = len(frame)
            return estimator

        assert "result differs" in found(fit)

    @pytest.mark.parametrize(
        ("tell", "seen"),
        [
            (lambda n: print(n), "printed differs"),
            (lambda n: print(n, file=sys.stderr), "printed differs"),
            (lambda n: warnings.warn(f"{n}", stacklevel=1), "warned differs"),
            (lambda n: logging.getLogger("x").debug("%d", n), "logged differs"),
            (lambda n: math.sqrt(40 - n), "error differs"),
        ],
    )
    def test_one_that_tells_otherwise(self, tell, seen):
        def fit(frame):
            estimator = fit_parameters(frame)
            tell(len(frame))
            return estimator

        assert seen in found(fit)

    def test_one_that_opens_a_larger_curator(self):
        def fit(frame):
            table = PrivateTable(frame, STATES, ledger=Budget(rho=1.0))
            curator = TableCurator(table, Budget(rho=0.5 if len(frame) > 40 else 0.4), what="", columns=[])
            return curator.ask(Tables([("a",)]), 1)[0]

        assert "opened with other arguments" in found(fit)

    def test_one_that_never_asks(self):
        assert "result differs" in found(lambda frame: frame["a"].value_counts())
        assert "ends after 0 of 2 events" in found(
            lambda frame: fit_parameters(frame) and None if len(frame) < 41 else None
        )

    def test_one_that_draws_its_own_coins(self):
        assert "result differs" in found(lambda frame: np.random.default_rng().random())


def test_parts_keep_their_records():
    def fit(frame):
        table = PrivateTable(frame, STATES, ledger=Budget(rho=1.0))
        curator = TableCurator(table, Budget(rho=1.0), what="", columns=[])
        with curator.split(3) as parts:
            for part in parts:
                part.ask(Tables([("a", "b"), ("c",)]), 1)
        return curator.release("marginals", {})

    report = replay(fit, FIRST, ODD)
    assert report.holds and report.movement == {"tables": 1.0}, report
    for seed in range(5):
        pairs = table_pairs(np.random.default_rng(seed), "add_remove")
        for data, neighbour in [next(pairs) for _ in range(6)]:
            assert replay(fit, data, neighbour).holds


def test_parts_by_position_are_found(monkeypatch):
    def by_position(self, units, count, n_parts):
        return np.arange(count) % n_parts

    def fit(frame):
        table = PrivateTable(frame, STATES, ledger=Budget(rho=1.0))
        with TableCurator(table, Budget(rho=1.0), what="", columns=[]).split(2) as parts:
            for part in parts:
                part.ask(Tables([("a", "b")]), 1)

    monkeypatch.setattr(Coins, "parts", by_position)
    rows = pd.DataFrame({"a": ["no", "yes"] * 10, "b": [0, 1] * 10, "c": [True] * 20})
    assert "tables: exact statistics moved by" in found(fit, rows, rows[1:])


def test_rules_of_movement():
    def statistic(values, l1=1.0, l2=1.0, linf=1.0):
        return Sensitive(np.array(values), Adjacency.ADD_REMOVE, l1, l2, linf)

    laplace = [with_noise([statistic(v)], PureDP(1.0), Fraction(1)) for v in ([3, 4], [3, 5], [4, 5], [1])]
    assert [movement(laplace[0], other) for other in laplace] == [0.0, 1.0, 2.0, math.inf]
    gauss = [with_noise([statistic(v)], ZCDP(1.0), Fraction(1)) for v in ([3, 4], [4, 5])]
    assert movement(*gauss) == pytest.approx(math.sqrt(2))
    # All scores up by 2 is more than a bound of 1 allows, one up by 1 and one down by 1 is not.
    scores = [
        NoisyMax.planned(statistic(v).linf, ZCDP(1.0), Fraction(1)).over(statistic(v))
        for v in ([5, 5], [7, 7], [6, 4], [6, 6])
    ]
    assert [movement(scores[0], other) for other in scores[1:]] == [2.0, 1.0, 1.0]


def test_unknown_kinds_of_answers_are_refused():
    with pytest.raises(ValueError, match="kind='nothing' is unknown"):
        invented("nothing")
    assert ReplayReport((), {}, 0).holds

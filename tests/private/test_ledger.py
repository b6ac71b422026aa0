"""The ledger: composition against textbook oracles, refusals without a trace, threads, files, and its own proof."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pgmpy_dp.private.accounting import approx_to_zcdp, zcdp_to_approx
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.entry import Entry
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema.stored import sealed


def charge(ledger: Ledger, cost, adjacency="add_remove", **changes) -> Entry:
    return ledger.charge(cost, **{"what": "w", "columns": ("a",), "mechanism": "m", "adjacency": adjacency, **changes})


def state(ledger: Ledger) -> tuple:
    return (ledger.budget, ledger.entries, ledger.spent, ledger.left, ledger.adjacency, ledger.conversion_delta)


class TestBudget:
    def test_guarantees(self):
        assert Budget(epsilon=1).guarantee == PureDP(1.0)
        assert Budget(epsilon=1, delta=1e-6).guarantee == ApproxDP(1.0, 1e-6)
        assert Budget(rho=np.float64(0.1)).guarantee == ZCDP(0.1)
        for budget in (Budget(epsilon=2), Budget(epsilon=2, delta=0.1), Budget(rho=2)):
            assert Budget.of(budget.guarantee) == budget

    @pytest.mark.parametrize("bad", [0, -1, math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize("name", ["epsilon", "rho"])
    def test_out_of_range(self, name, bad):
        with pytest.raises(ValueError, match=rf"{name}=.* is out of range; pass a positive finite number"):
            Budget(**{name: bad})

    @pytest.mark.parametrize("bad", [True, "1", [1.0], 1j])
    @pytest.mark.parametrize("name", ["epsilon", "rho"])
    def test_wrong_type(self, name, bad):
        with pytest.raises(TypeError, match=rf"{name}=.* is a .*; pass a positive finite number"):
            Budget(**{name: bad})

    @pytest.mark.parametrize("delta", [-1e-9, 1, 2, math.nan, math.inf])
    def test_delta_out_of_range(self, delta):
        with pytest.raises(ValueError, match=r"delta=.* is out of range; pass a non-negative finite number below 1"):
            Budget(epsilon=1, delta=delta)

    @pytest.mark.parametrize("delta", ["0", None, False])
    def test_delta_of_wrong_type(self, delta):
        with pytest.raises(TypeError, match="delta="):
            Budget(epsilon=1, delta=delta)

    @pytest.mark.parametrize("others", [{"epsilon": 1}, {"delta": 1e-6}, {"epsilon": 1, "delta": 1e-6}])
    def test_rho_excludes_the_others(self, others):
        with pytest.raises(ValueError, match=r"rho=0.1 was passed with epsilon=.*not both"):
            Budget(rho=0.1, **others)

    @pytest.mark.parametrize("others", [{}, {"delta": 1e-6}])
    def test_nothing_given(self, others):
        with pytest.raises(ValueError, match="no budget was given; pass epsilon"):
            Budget(**others)


class TestPureBudget:
    @given(st.lists(st.floats(1e-3, 0.7), max_size=12))
    def test_sums(self, costs):
        ledger, oracle = Ledger(Budget(epsilon=1.0)), Fraction(0)
        for cost in costs:
            if oracle + Fraction(cost) <= 1:
                charge(ledger, PureDP(cost))
                oracle += Fraction(cost)
            elif oracle + Fraction(cost) > 1 + Fraction(1, 10**11):
                with pytest.raises(BudgetExceeded):
                    charge(ledger, PureDP(cost))
        assert ledger.spent.epsilon == pytest.approx(float(oracle), rel=1e-12, abs=0)
        assert ledger.left.epsilon == pytest.approx(1 - float(oracle), abs=1e-11)

    def test_tenths_fit_ten_times_and_not_eleven(self):
        ledger = Ledger(Budget(epsilon=1.0))
        for _ in range(10):
            charge(ledger, PureDP(0.1))
        with pytest.raises(BudgetExceeded, match=r"0.1-DP was asked, 1-DP of the budget 1-DP is spent, 0-DP is left"):
            charge(ledger, PureDP(0.1))

    def test_a_budget_already_spent_names_everything(self):
        ledger = Ledger(Budget(epsilon=1.0))
        charge(ledger, PureDP(0.75))
        with pytest.raises(BudgetExceeded) as caught:
            charge(ledger, PureDP(0.5))
        error = caught.value
        assert (error.spent, error.asked, error.left) == (PureDP(0.75), PureDP(0.5), PureDP(0.25))
        assert all(part in str(error) for part in ("0.5-DP", "0.75-DP", "1-DP", "0.25-DP", "ask for less"))

    @pytest.mark.parametrize("cost", [ZCDP(1e-9), ApproxDP(1e-9, 1e-9)])
    def test_pays_only_for_pure_costs(self, cost):
        with pytest.raises(BudgetExceeded, match="a pure budget pays only for pure costs: use Laplace"):
            charge(Ledger(Budget(epsilon=1.0)), cost)


class TestRhoBudget:
    def test_pure_costs_count_half_their_square(self):
        ledger = Ledger(Budget(rho=0.5))
        charge(ledger, PureDP(0.6))
        assert ledger.spent == ZCDP(0.18)
        charge(ledger, ZCDP(0.2))
        assert ledger.left.rho == pytest.approx(0.12)
        with pytest.raises(BudgetExceeded):
            charge(ledger, PureDP(0.5))
        charge(ledger, ZCDP(ledger.left.rho))
        assert ledger.left.rho == pytest.approx(0, abs=1e-15)

    def test_refuses_a_cost_with_delta(self):
        with pytest.raises(BudgetExceeded, match="a cost with a delta cannot be paid from a rho budget"):
            charge(Ledger(Budget(rho=0.5)), ApproxDP(1e-9, 1e-9))


class TestApproximateBudget:
    budget = Budget(epsilon=1.0, delta=1e-6)

    def test_whole_budget_at_once_in_each_measure(self):
        for cost in (PureDP(1.0), ZCDP(approx_to_zcdp(1.0, 1e-6)), ApproxDP(1.0, 1e-6)):
            ledger = Ledger(self.budget)
            assert ledger.left == self.budget.guarantee
            charge(ledger, cost)
            assert ledger.spent.implies(self.budget.guarantee)
            for more in (PureDP(1e-6), ZCDP(1e-9), ApproxDP(1e-9, 1e-9)):
                if isinstance(cost, PureDP) and isinstance(more, PureDP):
                    continue
                with pytest.raises(BudgetExceeded):
                    charge(ledger, more)

    def test_many_small_pure_costs_use_the_square_root(self):
        # 0.01-DP fits 100 times by adding up epsilon, and n/2e4 <= rho(1, 1e-6) times as zCDP.
        ledger = Ledger(self.budget)
        with contextlib.suppress(BudgetExceeded):
            while True:
                charge(ledger, PureDP(0.01))
        assert len(ledger.entries) == math.floor(approx_to_zcdp(1.0, 0.9e-6) / 0.00005) > 400
        assert isinstance(ledger.spent, ApproxDP) and ledger.spent.implies(self.budget.guarantee)

    def test_reports_the_tighter_sum(self):
        ledger = Ledger(self.budget)
        charge(ledger, PureDP(0.1))
        assert ledger.spent == PureDP(0.1)
        for _ in range(99):
            charge(ledger, PureDP(0.009))
        rho = 0.1**2 / 2 + 99 * 0.009**2 / 2
        assert ledger.spent.epsilon == pytest.approx(min(0.1 + 99 * 0.009, zcdp_to_approx(rho, 0.9e-6)))
        assert isinstance(ledger.spent, ApproxDP)

    def test_halves_with_their_own_delta_add_up(self):
        ledger = Ledger(self.budget)
        charge(ledger, ApproxDP(0.5, 5e-7))
        assert ledger.left == ApproxDP(0.5, 5e-7)
        charge(ledger, ApproxDP(0.5, 5e-7))
        assert ledger.spent == ApproxDP(1.0, 1e-6)
        with pytest.raises(BudgetExceeded, match=r"\(0, 1e-09\)-DP was asked, .* 0-DP is left; ask for less"):
            charge(ledger, ApproxDP(0.0, 1e-9))

    def test_first_charge_decides_what_delta_is_for(self):
        converting, adding = Ledger(self.budget), Ledger(self.budget)
        charge(converting, ZCDP(1e-4))
        charge(adding, ApproxDP(0.1, 1e-7))
        assert converting.conversion_delta == 0.9e-6 and adding.conversion_delta == 0
        charge(converting, ApproxDP(0.01, 1e-9))
        with pytest.raises(BudgetExceeded, match=r"9e-07 of the budget's delta is set aside.*conversion_delta=..."):
            charge(converting, ApproxDP(0.01, 1.1e-7))
        with pytest.raises(BudgetExceeded, match=r"none of the budget's delta is set aside for converting zCDP"):
            charge(adding, ZCDP(1e-6))
        charge(adding, PureDP(0.9))

    def test_a_first_charge_that_needs_all_of_delta_gets_it(self):
        whole, kept = Ledger(self.budget), Ledger(self.budget)
        charge(whole, ZCDP(approx_to_zcdp(1.0, 1e-6)))
        assert whole.conversion_delta == 1e-6
        charge(kept, ReservedZCDP(approx_to_zcdp(1.0, 7e-7), 2e-7))
        assert 7e-7 < kept.conversion_delta <= 8e-7

    @pytest.mark.parametrize("order", [1, -1])
    def test_costs_with_and_without_a_reserve_follow_in_any_order(self, order):
        ledger = Ledger(self.budget)
        for cost in [ReservedZCDP(0.001, 5e-8), ZCDP(0.01)][::order]:
            charge(ledger, cost)
        assert ledger.conversion_delta == 0.9e-6
        assert ledger.spent == ApproxDP(zcdp_to_approx(0.011, 0.9e-6), 0.95e-6)
        with pytest.raises(BudgetExceeded):
            charge(ledger, ReservedZCDP(0.001, 6e-8))
        charge(ledger, ReservedZCDP(0.001, 5e-8))
        with pytest.raises(BudgetExceeded):
            charge(ledger, ZCDP(approx_to_zcdp(1.0, 0.9e-6) - 0.0119))

    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=1.0)], ids=str)
    def test_a_reserve_needs_a_delta(self, budget):
        with pytest.raises(BudgetExceeded, match="delta"):
            charge(Ledger(budget), ReservedZCDP(0.001, 1e-9))

    def test_a_mixture_with_a_split_delta(self):
        ledger = Ledger(self.budget, conversion_delta=5e-7)
        limit = approx_to_zcdp(1.0, 5e-7)
        charge(ledger, ApproxDP(0.1, 2e-7))
        charge(ledger, ZCDP(0.002))
        charge(ledger, PureDP(0.05))
        assert ledger.left.rho == pytest.approx(limit - 0.1**2 / 2 - 0.002 - 0.05**2 / 2)
        rho = 0.1**2 / 2 + 0.002 + 0.05**2 / 2
        assert ledger.spent == ApproxDP(zcdp_to_approx(rho, 5e-7), 7e-7)
        with pytest.raises(BudgetExceeded):
            charge(ledger, ApproxDP(0.01, 4e-7))
        charge(ledger, ApproxDP(0.01, 3e-7))
        with pytest.raises(BudgetExceeded):
            charge(ledger, ZCDP(limit - rho))

    @given(
        st.sampled_from([0.0, 0.25e-6, 1e-6]),
        st.lists(
            st.one_of(
                st.floats(0.01, 0.6).map(PureDP),
                st.floats(1e-4, 0.02).map(ZCDP),
                st.builds(ApproxDP, st.floats(0.01, 0.6), st.floats(1e-8, 6e-7)),
            ),
            max_size=8,
        ),
    )
    def test_agrees_with_the_rule_as_written(self, conversion_delta, costs):
        ledger, kept = Ledger(self.budget, conversion_delta=conversion_delta), []
        rho_limit = approx_to_zcdp(1.0, conversion_delta)
        for cost in costs:
            trial = [*kept, cost]
            epsilon = sum(math.inf if isinstance(c, ZCDP) else c.epsilon for c in trial)
            delta = sum(getattr(c, "delta", 0.0) for c in trial)
            rho = sum(c.rho if isinstance(c, ZCDP) else c.epsilon**2 / 2 for c in trial)
            slack = [1.0 - epsilon, rho_limit - rho, 1e-6 - conversion_delta - delta]
            if any(abs(s) < 1e-11 for s in slack[:2]) or 0 < abs(slack[2]) < 1e-17:
                continue  # too near the edge for this float oracle
            if slack[2] >= 0 and (slack[0] >= 0 or slack[1] >= 0):
                charge(ledger, cost)
                kept = trial
            else:
                before = state(ledger)
                with pytest.raises(BudgetExceeded):
                    charge(ledger, cost)
                assert state(ledger) == before
        assert [entry.cost for entry in ledger.entries] == kept
        if kept:
            assert ledger.spent.implies(self.budget.guarantee)

    @pytest.mark.parametrize("bad", [-1e-9, 2e-6, 1.0, math.nan])
    def test_bad_conversion_delta(self, bad):
        with pytest.raises(ValueError, match="conversion_delta="):
            Ledger(self.budget, conversion_delta=bad)


def steps_up(count: int, step: float) -> np.ndarray:
    """Probabilities of 0..count up-steps of `count` randomised responses of step-DP, under the first dataset."""
    return binom.pmf(np.arange(count + 1), count, 1.0 / (1.0 + math.exp(-step)))


def excess(loss: np.ndarray, epsilon: float) -> np.ndarray:
    """Share of a transcript's probability that exceeds exp(epsilon) times its probability under the other dataset."""
    return np.maximum(0.0, -np.expm1(epsilon - loss))


def delta_of_the_attack(epsilon: float, step: float, first: int, total: int, failing: float) -> float:
    """Exact delta at epsilon: `first` responses, then as hurts more: up to `total` of them, or failing once."""
    ups, more = np.arange(first + 1), np.arange(total - first + 1)
    loss = step * (2 * (ups[:, None] + more) - total)
    going_on = excess(loss, epsilon) @ steps_up(total - first, step)
    stopping = failing + (1 - failing) * excess(step * (2 * ups - first), epsilon)
    return float(steps_up(first, step) @ np.maximum(going_on, stopping))


class TestWhyTheSplitOfDeltaIsFixed:
    """The two tempting rules of ledger.md are broken by exact computation, and this ledger refuses what they allow."""

    def test_either_of_two_whole_filters_is_not_a_filter(self):
        epsilon, delta, step = 2.0, 0.05, 0.4
        # Both endings are allowed by that rule: 5 x 0.4 = epsilon with D = delta; 6 x 0.4**2/2 <= rho(epsilon, delta).
        assert 6 * step**2 / 2 <= approx_to_zcdp(epsilon, delta)
        assert delta_of_the_attack(epsilon, step, 5, 6, delta) == pytest.approx(0.0613, abs=1e-4)

        ledger = Ledger(Budget(epsilon=epsilon, delta=delta), conversion_delta=delta)
        for _ in range(5):
            charge(ledger, PureDP(step))
        with pytest.raises(BudgetExceeded):
            charge(ledger, ApproxDP(1e-9, delta))
        charge(ledger, PureDP(step))

    def test_converting_at_what_is_left_is_not_a_filter(self):
        epsilon, delta, step, failing = 2.0, 0.001, 0.02, 0.00097
        assert 606 * step**2 / 2 <= approx_to_zcdp(epsilon, delta - failing)
        assert 966 * step**2 / 2 <= approx_to_zcdp(epsilon, delta)
        assert delta_of_the_attack(epsilon, step, 606, 966, failing) == pytest.approx(0.00119, abs=1e-5)

    @pytest.mark.parametrize("conversion_delta", [0.01, 0.025, 0.04])
    @pytest.mark.parametrize("step", [0.1, 0.2, 0.4])
    def test_the_same_attack_on_this_ledger_stays_within_delta(self, conversion_delta, step):
        epsilon, delta = 2.0, 0.05
        total = math.floor(2 * approx_to_zcdp(epsilon, conversion_delta) / step**2)
        for first in range(1, max(total, round(epsilon / step)) + 1):
            worst = delta_of_the_attack(epsilon, step, first, max(first, total), delta - conversion_delta)
            assert worst <= delta

    def test_the_oracle_knows_randomised_response(self):
        p, q = 1 / (1 + math.exp(-1.0)), 1 / (1 + math.exp(1.0))
        assert delta_of_the_attack(0.5, 1.0, 1, 1, 0.0) == pytest.approx(p - math.exp(0.5) * q)
        assert delta_of_the_attack(1.0, 1.0, 1, 1, 0.0) == pytest.approx(0.0, abs=1e-15)
        assert delta_of_the_attack(0.5, 1.0, 1, 1, 0.25) == pytest.approx(0.25 + 0.75 * (p - math.exp(0.5) * q))


def odometer_attack(step: float, count: int, delta: float, allowed: np.ndarray) -> float:
    """Exact delta of an adversary that sees randomised responses of step-DP one by one and stops when that hurts most.

    Stopped after k, its transcript is held to the epsilon allowed[k]. By dynamic programming over how many pointed up.
    """
    up = 1.0 / (1.0 + math.exp(-step))
    value = np.zeros(count + 2)
    for k in range(count, 0, -1):
        stop = excess(step * (2 * np.arange(k + 1) - k), allowed[k])
        value = np.maximum(stop, up * value[1:] + (1 - up) * value[:-1])
    return float(up * value[1] + (1 - up) * value[0]) / delta


class TestASumOfCostsIsNoGuarantee:
    """Why `spent` is called a sum: held to it, an adversary that chooses when to stop exceeds its delta three times."""

    step, count, delta = 0.05, 4000, 1e-3

    def ledger(self, charges: int, budget: Budget) -> Ledger:
        """A ledger that accepted so many charges of step-DP one by one."""
        ledger = Ledger(budget, conversion_delta=self.delta)
        charge(ledger, PureDP(self.step))
        content = ledger._filter
        ledger._filter = replace(content, entries=content.entries * charges)
        return ledger

    def budget(self) -> Budget:
        return Budget(epsilon=zcdp_to_approx(self.count * self.step**2 / 2, self.delta), delta=self.delta)

    def sum_of(self, charges: int) -> float:
        """The epsilon of `spent` after so many charges."""
        return min(charges * self.step, zcdp_to_approx(charges * self.step**2 / 2, self.delta))

    def test_these_are_the_ledger_s_sums_and_all_are_accepted(self):
        budget = self.budget()
        for k in (1, 7, 400, self.count):
            spent = self.ledger(k, budget).spent
            assert spent.epsilon == pytest.approx(self.sum_of(k), rel=1e-9)
            assert getattr(spent, "delta", 0.0) <= self.delta
        charge(self.ledger(self.count - 1, budget), PureDP(self.step))
        with pytest.raises(BudgetExceeded):
            charge(self.ledger(self.count, budget), PureDP(self.step))

    @pytest.mark.slow  # four thousand conversions
    def test_the_sum_is_exceeded_with_three_times_its_delta(self):
        sums = np.array([self.sum_of(k) for k in range(self.count + 1)])
        assert odometer_attack(self.step, self.count, self.delta, sums) == pytest.approx(3.118, abs=1e-3)

    def test_the_budget_s_guarantee_holds_for_the_same_adversary(self):
        allowed = np.full(self.count + 1, self.budget().epsilon)
        assert 0.01 < odometer_attack(self.step, self.count, self.delta, allowed) <= 1.0

    def test_without_a_choice_to_stop_the_sum_holds(self):
        for k in (10, 400, self.count):
            loss = self.step * (2 * np.arange(k + 1) - k)
            assert excess(loss, self.sum_of(k)) @ steps_up(k, self.step) <= self.delta


class TestAccount:
    """What is shown: spent, left and allowed in one measure, in which they add up."""

    B = Budget(epsilon=3.0, delta=1e-8)

    @pytest.mark.parametrize(
        ("budget", "costs", "text"),
        [
            (Budget(epsilon=1.0), [PureDP(0.25)], "0.25-DP of the budget 1-DP, left 0.75-DP"),
            (Budget(rho=1.0), [PureDP(1.0)], "0.5-zCDP of the budget 1-zCDP, left 0.5-zCDP"),
            (B, [], "0-DP of the budget (3, 1e-08)-DP, left (3, 1e-08)-DP"),
            (B, [ZCDP(0.1)], "0.1-zCDP of the budget (3, 1e-08)-DP (0.135736-zCDP), left 0.0357362-zCDP"),
            (B, [PureDP(0.1)], "0.005-zCDP of the budget (3, 1e-08)-DP (0.135736-zCDP), left 0.130736-zCDP"),
            (B, [PureDP(3.0)], "3-DP of the budget (3, 1e-08)-DP, left (0, 1e-09)-DP"),
            (B, [ApproxDP(1.0, 1e-9)], "(1, 1e-09)-DP of the budget (3, 1e-08)-DP, left (2, 9e-09)-DP"),
            (
                B,
                [ReservedZCDP(0.1, 1e-9)],
                "0.1-zCDP + 1e-09 of the budget (3, 1e-08)-DP (0.135736-zCDP + 1e-09), left 0.0357362-zCDP",
            ),
        ],
    )
    def test_one_measure(self, budget, costs, text):
        ledger = Ledger(budget)
        for cost in costs:
            charge(ledger, cost)
        assert str(ledger.account) == text
        assert f"costs add up to {text}\n" in ledger.summary()
        assert ledger.account.left == ledger.left or not costs

    @pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.0149705, 0.1, 0.1357])
    def test_what_is_left_pays_for_what_is_said_in_the_words_of_the_budget(self, rho):
        ledger = Ledger(self.B)
        charge(ledger, ZCDP(rho))
        last = ledger.account.pays_for
        assert f"a release of {last} is left" in ledger.summary() and last.delta == self.B.delta
        with pytest.raises(BudgetExceeded):
            ledger.check(ZCDP(approx_to_zcdp(1.02 * last.epsilon, last.delta)))
        charge(ledger, ZCDP(approx_to_zcdp(float(f"{last.epsilon:.6g}"), last.delta)))
        assert Ledger(Budget(rho=1.0)).account.pays_for is None

    def test_refusals_have_one_measure(self):
        ledger = Ledger(self.B)
        charge(ledger, ZCDP(0.1))
        said = r"0\.1-zCDP of the budget \(3, 1e-08\)-DP \(0\.135736-zCDP\) is spent, 0\.0357362-zCDP is left"
        with pytest.raises(BudgetExceeded, match=said) as caught:
            charge(ledger, ZCDP(0.1))
        assert caught.value.spent == ledger.spent and caught.value.left == ledger.left
        with pytest.raises(BudgetExceeded, match=r"0\.5-DP \(0\.125-zCDP\) was asked"):
            charge(ledger, PureDP(0.5))


class TestRefusalsAndChecks:
    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6)])
    def test_refusals_and_checks_leave_no_trace(self, budget):
        for already in ([], [PureDP(0.3)]):
            ledger = Ledger(budget)
            for cost in already:
                charge(ledger, cost)
            before = state(ledger)
            for cost in (PureDP(5.0), ZCDP(5.0), ApproxDP(5.0, 0.1)):
                for attempt in (lambda c=cost: charge(ledger, c), lambda c=cost: ledger.check(c)):  # noqa: B023
                    with pytest.raises(BudgetExceeded):
                        attempt()
                    assert state(ledger) == before
            ledger.check(PureDP(0.01), adjacency="add_remove")
            assert state(ledger) == before

    @pytest.mark.parametrize(
        "changes", [{"columns": (object(),)}, {"columns": None}, {"adjacency": "nearby"}, {"adjacency": None}]
    )
    def test_a_malformed_charge_leaves_no_trace(self, changes):
        ledger = Ledger(Budget(epsilon=1.0))
        before = state(ledger)
        with pytest.raises((TypeError, ValueError)):
            charge(ledger, PureDP(0.1), **changes)
        assert state(ledger) == before

    @pytest.mark.parametrize("cost", [0.1, "0.1-DP", None, Budget(epsilon=0.1)])
    def test_costs_are_guarantees(self, cost):
        with pytest.raises(TypeError, match=r"cost=.*pass a PureDP, ZCDP, ReservedZCDP or ApproxDP"):
            charge(Ledger(Budget(epsilon=1.0)), cost)

    def test_a_budget_is_needed(self):
        with pytest.raises(TypeError, match=r"budget=1.0 is a float; pass a Budget"):
            Ledger(1.0)

    def test_one_adjacency(self):
        ledger = Ledger(Budget(epsilon=1.0))
        charge(ledger, PureDP(0.1), adjacency="replace_one")
        before = state(ledger)
        for attempt in (
            lambda: charge(ledger, PureDP(0.1), adjacency="add_remove"),
            lambda: ledger.check(PureDP(0.1), adjacency="add_remove"),
            lambda: charge(Ledger(Budget(epsilon=1.0), adjacency="edge"), PureDP(0.1)),
        ):
            with pytest.raises(ValueError, match=r"adjacency='add_remove' differs from this ledger's"):
                attempt()
        assert state(ledger) == before

    @pytest.mark.parametrize(("first", "second"), [(None, "user"), ("user", None), ("user", "household")])
    def test_one_unit(self, first, second):
        ledger = Ledger(Budget(epsilon=1.0))
        charge(ledger, PureDP(0.1), unit=first)
        before = state(ledger)
        for attempt in (charge, Ledger.check):
            with pytest.raises(ValueError, match=f"unit={second!r} differs from the unit {first!r}"):
                attempt(ledger, PureDP(0.1), unit=second)
        assert state(ledger) == before


class TestPartsThatAreSetAside:
    """A cost that is charged whole at first, and a ledger of it alone."""

    def set_aside(self, ledger, cost, **changes):
        return ledger.set_aside(
            cost, **{"what": "w", "columns": (), "mechanism": "m", "adjacency": "add_remove"} | changes
        )

    @pytest.mark.parametrize(
        ("budget", "cost", "half"),
        [
            (Budget(epsilon=1.0), PureDP(0.4), PureDP(0.2)),
            (Budget(rho=1.0), ZCDP(0.4), ZCDP(0.2)),
            (Budget(epsilon=1.0, delta=1e-6), ZCDP(0.01), ZCDP(0.005)),
            (Budget(epsilon=1.0, delta=1e-6), PureDP(0.4), PureDP(0.2)),
        ],
        ids=str,
    )
    def test_it_is_charged_whole_and_the_part_allows_no_more(self, budget, cost, half):
        ledger = Ledger(budget)
        part = self.set_aside(ledger, cost)
        assert [entry.cost for entry in ledger.entries] == [cost] and part.entries == ()
        assert part.id == ledger.id and part.budget.guarantee == cost and part.adjacency == "add_remove"
        before = state(ledger)
        charge(part, half)
        charge(part, half)
        with pytest.raises(BudgetExceeded):
            charge(part, half)
        assert state(ledger) == before and len(part.entries) == 2

    def test_what_cannot_be_paid_is_not_set_aside(self):
        ledger = Ledger(Budget(epsilon=1.0))
        before = state(ledger)
        with pytest.raises(BudgetExceeded):
            self.set_aside(ledger, PureDP(1.5))
        assert state(ledger) == before

    @pytest.mark.parametrize("cost", [ApproxDP(0.1, 1e-9), ReservedZCDP(0.01, 1e-9)])
    def test_costs_whose_parts_do_not_add_up_to_them(self, cost):
        ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
        with pytest.raises(TypeError, match="of which no part is made"):
            self.set_aside(ledger, cost)
        assert ledger.entries == ()

    def test_a_part_is_for_what_was_said_when_it_was_set_aside(self):
        part = self.set_aside(Ledger(Budget(epsilon=1.0)), PureDP(0.4), unit="user")
        for changes, told in (
            ({}, "unit=None differs"),
            ({"unit": "household"}, "unit='household' differs"),
            ({"unit": "user", "adjacency": "replace_one"}, "adjacency='replace_one' differs"),
            ({"unit": "user", "reproducible": True}, "noise from a seed"),
        ):
            with pytest.raises(ValueError, match=told):
                charge(part, PureDP(0.1), **changes)
        assert part.entries == ()
        charge(part, PureDP(0.1), unit="user")
        seeded = self.set_aside(Ledger(Budget(epsilon=1.0)), PureDP(0.4), reproducible=True)
        charge(seeded, PureDP(0.1), reproducible=True)
        assert not seeded.private

    def test_a_part_has_no_file_of_its_own(self, tmp_path):
        """It could be opened there, and spent again, with the name of the ledger that paid once."""
        part = self.set_aside(Ledger(Budget(epsilon=1.0)), PureDP(0.4))
        with pytest.raises(ValueError, match="could be spent again"):
            part.save(tmp_path / "part.json")
        assert list(tmp_path.iterdir()) == []

    def test_nothing_is_not_set_aside(self):
        ledger = Ledger(Budget(epsilon=1.0))
        with pytest.raises(ValueError, match="epsilon=0"):
            self.set_aside(ledger, PureDP(0.0))
        assert ledger.entries == ()

    def test_squares_of_parts_are_no_more_than_the_square_of_the_whole(self):
        """Pure costs count half their square where a ledger adds up rho."""
        for parts in ([0.4], [0.1] * 4, [0.3, 0.1]):
            assert sum(PureDP(e).epsilon ** 2 for e in parts) <= 0.4**2 + 1e-15

    def test_in_a_file_the_whole_is_there_before_the_part_is_used(self, tmp_path):
        path = tmp_path / "ledger.json"
        part = self.set_aside(Ledger.open(path, Budget(epsilon=1.0)), PureDP(0.4))
        assert part.path is None and str(Ledger.load(path).spent) == "0.4-DP"
        charge(part, PureDP(0.4))
        assert str(Ledger.load(path).spent) == "0.4-DP"

    def test_data_have_the_part_and_nothing_else_changes(self):
        frame = pd.DataFrame({"a": [0, 1], "who": ["u", "u"]})
        table = PrivateTable(frame, {"a": [0, 1]}, ledger=Budget(epsilon=1.0), unit="who", rows_per_unit=2)
        other = table.set_aside(PureDP(0.4), what="w", mechanism="m")
        assert (other.unit, other.rows_per_unit, other.schema) == ("who", 2, table.schema)
        assert other.ledger is not table.ledger and str(table.ledger.spent) == "0.4-DP"
        (entry,) = table.ledger.entries
        assert entry.unit == "who" and entry.columns == ("a",) and not entry.reproducible


class TestSharing:
    def test_threads_never_overspend(self):
        ledger, accepted, gate = Ledger(Budget(epsilon=1.0)), [], threading.Barrier(16)

        def spend():
            gate.wait()
            for _ in range(20):
                with contextlib.suppress(BudgetExceeded):
                    accepted.append(charge(ledger, PureDP(0.01)))

        threads = [threading.Thread(target=spend) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(accepted) == len(ledger.entries) == 100
        assert ledger.spent.epsilon == pytest.approx(1.0)

    @pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
    def test_no_second_ledger_by_copying(self, duplicate):
        with pytest.raises(TypeError, match=r"could be spent twice\); use save\(\) and load\(\)"):
            duplicate(Ledger(Budget(epsilon=1.0)))

    def test_entries_are_frozen(self):
        ledger = Ledger(Budget(epsilon=1.0))
        entry = charge(ledger, PureDP(0.1))
        with pytest.raises(AttributeError):
            entry.cost = PureDP(0.0)
        assert isinstance(ledger.entries, tuple)


class TestFiles:
    @pytest.mark.parametrize(
        ("budget", "costs"),
        [
            (Budget(epsilon=1.0), [PureDP(0.1), PureDP(0.2)]),
            (Budget(rho=0.1), [ZCDP(0.01), PureDP(0.1)]),
            (Budget(epsilon=1.0, delta=1e-6), [ZCDP(0.01), PureDP(0.001)]),
            (Budget(epsilon=1.0, delta=1e-6), [ApproxDP(0.1, 1e-7)]),
            (Budget(epsilon=1.0, delta=1e-6), []),
        ],
    )
    def test_round_trip(self, tmp_path, budget, costs):
        ledger = Ledger(budget)
        for k, cost in enumerate(costs):
            charge(ledger, cost, columns=("a", 0, ("b", 1), True), what="tables ü", reproducible=k == 1)
        ledger.save(tmp_path / "ledger.json")
        loaded = Ledger.load(tmp_path / "ledger.json")
        assert state(loaded) == state(ledger)
        assert loaded.private == ledger.private and loaded.summary() == ledger.summary()
        assert [p.name for p in tmp_path.iterdir()] == ["ledger.json"]

    def test_keeps_the_old_file_when_writing_fails(self, tmp_path, monkeypatch):
        ledger, path = Ledger(Budget(epsilon=1.0)), tmp_path / "ledger.json"
        ledger.save(path)
        before = path.read_bytes()
        charge(ledger, PureDP(0.5))
        monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            ledger.save(path)
        assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["ledger.json"]

    def test_refuses_an_overspent_or_foreign_file(self, tmp_path):
        ledger, path = Ledger(Budget(epsilon=1.0)), tmp_path / "ledger.json"
        charge(ledger, PureDP(0.6))
        ledger.save(path)
        content = json.loads(path.read_text())
        path.write_text(json.dumps(sealed({**content, "entries": content["entries"] * 2})))
        with pytest.raises(ValueError, match=r"is not a ledger, or is damaged: refused: 0.6-DP"):
            Ledger.load(path)
        for other in ({}, [], {"format": "pgmpy_dp.ledger", "version": 9}):
            path.write_text(json.dumps(other))
            with pytest.raises(ValueError, match="is not a ledger"):
                Ledger.load(path)
        del content["entries"]
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="is damaged"):
            Ledger.load(path)

    def test_no_digit_of_a_file_can_be_another(self, tmp_path):
        """Also not one of its version, for files of version 1 have no digest."""
        ledger, path = Ledger(Budget(epsilon=1.0, delta=1e-6)), tmp_path / "ledger.json"
        charge(ledger, ZCDP(0.01))
        charge(ledger, PureDP(0.125))
        ledger.save(path)
        text, tried = path.read_text(), 0
        for place, digit in ((k, sign) for k, sign in enumerate(text) if sign.isdigit()):
            for other in {"0", "1", str((int(digit) + 1) % 10), str((int(digit) - 1) % 10)} - {digit}:
                path.write_text(text[:place] + other + text[place + 1 :])
                tried += 1
                with pytest.raises(ValueError, match="is damaged"):
                    Ledger.load(path)
        assert tried > 150  # the id and the digest have as many as they happen to have

    def test_a_digest_is_of_version_2_alone(self, tmp_path):
        ledger, path = Ledger(Budget(epsilon=1.0)), tmp_path / "ledger.json"
        charge(ledger, PureDP(0.5))
        ledger.save(path)
        content = json.loads(path.read_text())
        for changed in ({"version": 1}, {"digest": None}, {"digest": "0" * 64}, {"budget": {"epsilon": 1}}):
            path.write_text(json.dumps(content | changed))
            with pytest.raises(ValueError, match="is damaged"):
                Ledger.load(path)

    def test_names_are_kept_and_differ(self, tmp_path):
        first, second = Ledger(Budget(epsilon=1.0)), Ledger(Budget(epsilon=1.0))
        assert first.id != second.id
        charge(first, PureDP(0.5))
        first.save(tmp_path / "ledger.json")
        assert Ledger.load(tmp_path / "ledger.json").id == first.id == Ledger.open(tmp_path / "ledger.json").id


class TestText:
    def test_summary_shows_every_entry_and_flags_seeds(self):
        ledger = Ledger(Budget(epsilon=1.0))
        charge(ledger, PureDP(0.25), what="first", mechanism="discrete_laplace", columns=[f"x{k}" for k in range(30)])
        assert "NOT PRIVATE" not in ledger.summary() and ledger.private
        charge(ledger, PureDP(0.25), what="second", reproducible=True)
        lines = str(ledger).splitlines()
        assert len(lines) == 7
        assert "first" in lines[2] and "discrete_laplace" in lines[2] and "(30 in all)" in lines[2]
        assert "SEEDED: NOT PRIVATE" in lines[3] and "SEEDED" not in lines[2]
        assert lines[4] == "costs add up to 0.5-DP of the budget 1-DP, left 0.5-DP"
        assert lines[5] == "guarantee, also if costs were chosen by results: 1-DP, adjacency add_remove"
        assert "NOT PRIVATE" in lines[6] and not ledger.private

    def test_repr(self):
        assert repr(Ledger(Budget(rho=0.5))) == "Ledger(budget=0.5-zCDP, spent=0-zCDP, entries=0)"
        assert "adjacency not yet fixed" in str(Ledger(Budget(rho=0.5)))


class TestPublicTables:
    """Tables of the records that are public as they are."""

    TABLES = (("region",), ("sex", "age"))

    def test_all_statements_are_for_neighbours_that_agree_from_then_on(self, tmp_path):
        ledger = Ledger.open(tmp_path / "ledger.json", Budget(epsilon=1.0))
        charge(ledger, PureDP(0.4), "replace_one")
        other = Ledger.open(tmp_path / "ledger.json")
        assert ledger.public_tables == () and "agree" not in ledger.summary() + repr(ledger)
        charge(ledger, PureDP(0.0), "replace_one", public_tables=[list(scope) for scope in self.TABLES])
        charge(ledger, PureDP(0.1), "replace_one", public_tables=[("region",), ("job",)])
        assert other.public_tables == Ledger.load(ledger.path).public_tables == (*self.TABLES, ("job",))
        for text in (other.summary(), repr(other), str(ledger), ledger._repr_html_()):
            assert "tables of region; sex, age; job" in text
        assert "1-DP between neighbours that agree on" in ledger.summary()
        assert "exchange all of these columns are protected by twice the epsilon" in ledger.summary()

    @pytest.mark.parametrize(("adjacency", "unit"), [("add_remove", None), ("edge", None), ("replace_one", "user")])
    def test_neighbours_that_never_agree_and_units_are_refused_before_and_after(self, adjacency, unit):
        ledger = Ledger(Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=rf"adjacency='{adjacency}', unit={unit!r}, and exact tables of these"):
            charge(ledger, PureDP(0.1), adjacency, unit=unit, public_tables=self.TABLES)
        assert ledger.entries == () and ledger.adjacency is None
        charge(ledger, PureDP(0.1), "replace_one", public_tables=self.TABLES)
        with pytest.raises(ValueError, match="differs from"):
            charge(ledger, PureDP(0.1), adjacency, unit=unit)

    def test_a_part_that_is_set_aside_has_those_of_its_ledger_and_no_others(self):
        ledger, of = Ledger(Budget(epsilon=1.0)), {"what": "w", "columns": ("a",), "mechanism": "m"}
        charge(ledger, PureDP(0.1), "replace_one", public_tables=self.TABLES[:1])
        part = ledger.set_aside(PureDP(0.5), adjacency="replace_one", **of)
        assert part.public_tables == self.TABLES[:1] and "tables of region" in part.summary()
        charge(part, PureDP(0.1), "replace_one", public_tables=self.TABLES[:1])
        with pytest.raises(ValueError, match="public_tables are others than those of the ledger"):
            charge(part, PureDP(0.1), "replace_one", public_tables=self.TABLES)

"""Rules on counts of children: how they are read, and what they leave, against all families written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pgmpy_dp import Number
from pgmpy_dp.schema.count_rules import CountLimits, read_count
from pgmpy_dp.schema.rules import Column

ROLE = Column("role", ("head", "spouse", "child", None))
AGE = Column("age", Number(0, 99, cuts=[5, 16, 65], missing="drop").states, Number(0, 99, cuts=[5, 16, 65]))
COLUMNS = {"role": ROLE, "age": AGE}


def read(*texts):
    return [read_count(text, COLUMNS, "n") for text in texts]


class TestReading:
    @pytest.mark.parametrize(
        ("text", "written", "low", "high"),
        [
            ("count(role = head) = 1", None, [0, 1, 1, 0], [0, 1, 1, 1]),
            (" count ( role=head )==1", "count(role = head) = 1", [0, 1, 1, 0], [0, 1, 1, 1]),
            ("count(role in {head, spouse}) <= 2", None, [0, 0, 0, 0], [0, 1, 2, 2]),
            ("count(role = head) < 2", None, [0, 0, 0, 0], [0, 1, 1, 1]),
            ("count(age >= 16) >= 1", None, [0, 1, 1, 0], [0, 1, 2, 3]),
            ("count(age >= 16) > 1", None, [0, 2, 2, 0], [0, 1, 2, 3]),
            ("count(role = child) < n", None, [0, 0, 0, 0], [0, 0, 1, 3]),
            ("count(role != child) = n", None, [0, 1, 2, 3], [0, 1, 2, 3]),
            ("count(age >= 16 & age < 65) >= n-1", "count(age >= 16 & age < 65) >= n - 1", [0, 0, 1, 2], [0, 1, 2, 3]),
        ],
    )
    def test_limits_of_each_number_of_children_the_last_of_so_many_or_more(self, text, written, low, high):
        (rule,) = read(text)
        assert str(rule) == (written or text) and read(str(rule)) == [rule]
        assert rule.limits(3).tolist() == [low, high]

    @pytest.mark.parametrize("sign", ["=", "<", "<=", ">", ">="])
    @pytest.mark.parametrize("bound", ["0", "1", "3", "n", "n - 1", "n - 2", "n + 1"])
    def test_limits_are_those_of_all_families_that_fulfil_it_seen_as_far_as_they_are_kept(self, sign, bound):
        (rule,), most = read(f"count(role = head) {sign} {bound}"), 4
        holds = eval(f"lambda count, n: count {sign.replace('=', '==') if sign == '=' else sign} {bound}")  # noqa: S307
        low, high = rule.limits(most)
        for kept in range(1, most + 1):
            every = [kept] if kept < most else range(most, 20)
            seen = {
                heads - outside
                for n in every
                for heads in range(n + 1)
                if holds(heads, n)
                for outside in range(n - kept + 1)
                if 0 <= heads - outside <= kept
            }
            assert seen == set(range(low[kept], high[kept] + 1)), kept

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("count(role = boss) = 1", "has boss, which is not a state of 'role'"),
            ("count(job = head) = 1", "names 'job', which is not a variable"),
            ("count(role = head & age >= 16) = 1", "count by a condition on one"),
            ("count(role = head -> role = spouse) = 1", "count by a condition on one"),
            ("count(role = head) = two", "compares a count by = two"),
            ("count(role = head) = -1", "compares a count by = -1"),
            ("count(role = head) != 1", "compares a count by != 1"),
            ("count(role = head) = n * 2", r"the number of children: n, n - 1"),
            ("count(age >= 10) = 1", "which is inside its state"),
        ],
    )
    def test_what_cannot_be_read_says_what_to_write(self, text, words):
        with pytest.raises(ValueError, match=words):
            CountLimits(read(text), COLUMNS["age" if "age >= 10" in text else "role"], 3)

    def test_other_texts_are_not_of_this_kind(self):
        assert read("role = head", "countess = 1", "count = 1") == [None] * 3


def families(rules, column, n):
    """All families of n children that break no rule, by the definition: however unknown children are counted."""
    n_states = len(column.states)
    truth = [rule.truth(column) for rule in rules]
    limits = [rule.limits(MOST) for rule in rules]
    for states in itertools.product(range(n_states), repeat=n):
        for met, (low, high) in zip(truth, limits, strict=True):
            sure = sum(met[s] is True for s in states)
            perhaps = sum(met[s] is None for s in states)
            if sure > high[n] or sure + perhaps < low[n]:
                break
        else:
            yield states


MOST = 4
SETS = [
    (ROLE, ["count(role = head) = 1"]),
    (ROLE, ["count(role = head) = 1", "count(role = spouse) <= 1"]),
    (ROLE, ["count(role = head) >= 1", "count(role = head) <= 2", "count(role in {head, spouse}) <= 3"]),
    (ROLE, ["count(role in {head, spouse, child}) >= n - 1", "count(role = child) <= 1"]),
    (AGE, ["count(age >= 16) >= 1", "count(age >= 65) <= 2", "count(age < 5) <= 1"]),
    (AGE, ["count(age >= 16) >= n - 1", "count(age < 16) <= 1"]),
]


class TestWhatIsLeft:
    @pytest.mark.parametrize(("column", "texts"), SETS)
    def test_a_child_may_be_what_some_family_has_beside_the_others(self, column, texts):
        rules = read(*texts)
        limits, n_states = CountLimits(rules, column, MOST), len(column.states)
        for n in range(1, MOST + 1):
            whole = set(families(rules, column, n))
            begun = {states[:k] for states in whole for k in range(n)}
            for others in begun:
                there = np.array([[True] * len(others) + [False] * (n - len(others))])
                codes = np.array([[*others, *[0] * (n - len(others))]])
                allowed = limits.allowed(codes, there, np.array([n]), at_once=False)[0]
                so_far = {states[: len(others) + 1] for states in whole}
                assert allowed.tolist() == [(*others, state) in so_far for state in range(n_states)]

    def test_an_exact_number_is_met_at_once_where_that_is_asked_for(self):
        limits = CountLimits(read("count(role = head) = 1", "count(role = spouse) <= 1"), ROLE, 6)
        codes, there = np.array([[2, 2, 0], [0, 2, 0], [3, 2, 0]]), np.array([[True, True, False]] * 3)
        allowed = limits.allowed(codes, there, np.array([5, 5, 5]), at_once=True)
        assert allowed.tolist() == [
            [True, False, False, True],  # the head now, or somebody whose role is unknown
            [False, True, True, True],
            [True, True, True, True],  # it may be the one who is unknown
        ]

    def test_states_outside_the_schema_are_unknown(self):
        limits = CountLimits(read("count(role = head) = 1"), ROLE, 6)
        absent, outside = 4, 5
        low, high = limits.left(
            np.array([[outside, 2], [0, absent]]), np.array([[True, True], [True, False]]), np.array([2, 1])
        )
        assert (low[0] <= 0).all() and (high[0] >= 0).all() and low[1].tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("texts", "words"),
        [
            (["count(role in {head, spouse}) = 1", "count(role in {spouse, child}) = 1"], "overlaps"),
            (["count(role = head) >= 2"], "no family of n = 1"),
            (
                ["count(role in {head, spouse}) <= 1", "count(role = head) >= n - 1", "count(role = spouse) = 1"],
                "n = 2",
            ),
        ],
    )
    def test_rules_that_cannot_be_kept_are_refused(self, texts, words):
        with pytest.raises(ValueError, match=words):
            CountLimits(read(*texts), ROLE, MOST)

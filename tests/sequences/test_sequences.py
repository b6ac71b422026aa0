"""Users with several sequences: how they are read, and the sensitivity of what they add, by exhaustive neighbours."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data import contributions
from pgmpy_dp.private.data.contributions import GRID, chosen_segments, contribution_sensitivity, share_table
from pgmpy_dp.private.data.table_distances import WHOLE, whole_parts
from pgmpy_dp.schema import Schema
from pgmpy_dp.sequences import chain_counts
from pgmpy_dp.sequences.operators.sequences import (
    PrivateSequences,
    chain_tables,
    departure_sensitivity,
    order_departure,
    read_sequences,
    user_additions,
)
from tests.settings import settings

chain_settings = partial(settings, PrivateMarkovChain)

STATES = {"page": ["a", "b", None]}
SCHEMA = Schema(STATES)
VISITS = ["a", "b", None, "elsewhere"]
# All sequences of up to 3 visits: empty, of one visit, without an informative pair, all null, with unknown states; of
# three visits, an unknown one is in the middle, for at an end it leaves two.
SEQUENCES = [
    visits
    for length in range(4)
    for visits in itertools.product(VISITS, repeat=length)
    if length < 3 or "elsewhere" not in visits[::2]
]
RULES = {
    "shares": {},
    "shares of segments": {"segment_length": 2},
    "one segment": {"segment_length": 2, "max_segments": 1},
    "two segments": {"segment_length": 3, "max_segments": 2},
}


def private(users, adjacency="add_remove", schema=STATES) -> PrivateSequences:
    """Users as lists of sequences; a user may have none only by not being there."""
    rows = [(name, list(visits)) for name, sequences in enumerate(users) for visits in sequences]
    frame = pd.DataFrame(rows, columns=["user", "sequence"])
    n_users = len(users) if adjacency == "replace_one" else None
    return PrivateSequences(frame, schema, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_users=n_users)


def tables(users, rule, adjacency="add_remove", seed=None) -> np.ndarray:
    """Both tables side by side."""
    rng = None if seed is None else np.random.default_rng(seed)
    return np.concatenate([s.value.ravel() for s in chain_tables(private(users, adjacency), **RULES[rule], rng=rng)])


def naive_twin(sequences, segment_length=None) -> np.ndarray:
    """One user's shares, the slow way, in whole numbers; unknown states and nulls as the docstring says."""
    codes = {"a": 0, "b": 1, None: 2}
    first, pairs = [], []
    for visits in sequences:
        step = segment_length or max(len(visits), 1)
        for start in range(0, len(visits), step):
            part = [codes.get(v, -1) for v in visits[start : start + step]]
            if not any(code in (0, 1) for code in part):
                continue
            if part[0] >= 0:
                first.append(part[0])
            pairs += [(i, j) for i, j in itertools.pairwise(part) if min(i, j) >= 0 and not i == j == 2]
    initial, transition = np.zeros(3, dtype=int), np.zeros((3, 3), dtype=int)
    for i in range(3):
        initial[i] = GRID * first.count(i) // max(len(first), 1)
        for j in range(3):
            transition[i, j] = GRID * pairs.count((i, j)) // max(len(pairs), 1)
    return np.concatenate([initial, transition.ravel()])


@functools.cache
def additions(rule):
    """What each conceivable user of at most two sequences adds, as distinct rows."""
    users = [(s,) for s in SEQUENCES] + list(itertools.combinations_with_replacement(SEQUENCES, 2))
    if "max_segments" in RULES[rule]:
        # Every outcome of the random choice: each set of at most so many segments, or none.
        segments = [s for s in SEQUENCES if len(s) <= RULES[rule]["segment_length"]]
        outcomes = itertools.combinations_with_replacement(segments, RULES[rule]["max_segments"])
        rows = [tables([user], rule) for user in outcomes]
        # And what is really drawn is one of these.
        drawn = {tuple(tables([user], rule)) for user in users[:: len(users) // 300]}
        assert drawn <= {tuple(row) for row in rows}
    else:
        # Encoded all at once and counted one by one: the users' tables are read off runs of a single user.
        rows = [naive_twin(user, RULES[rule].get("segment_length")) for user in users]
        for k in range(0, len(users), 97):
            assert np.array_equal(tables([users[k]], rule), rows[k])
    return np.unique(np.array(rows), axis=0)


def test_shares_agree_with_the_naive_twin_for_all_users_together():
    users = [(s,) for s in SEQUENCES] + list(itertools.combinations_with_replacement(SEQUENCES, 2))
    for length, rule in ((None, "shares"), (2, "shares of segments")):
        expected = sum(naive_twin(user, length) for user in users)
        assert np.array_equal(tables(users, rule), expected)


@pytest.mark.parametrize("rule", ["shares", "shares of segments"])
def test_users_do_not_change_what_others_add(rule):
    rng = np.random.default_rng(3)
    for _ in range(30):
        others = [tuple(SEQUENCES[k] for k in rng.integers(len(SEQUENCES), size=2)) for _ in range(4)]
        user = tuple(SEQUENCES[k] for k in rng.integers(len(SEQUENCES), size=2))
        together = tables([*others[:2], user, *others[2:]], rule)
        assert np.array_equal(together - tables(others, rule), tables([user], rule))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=[pytest.mark.slow] * (rule == "two segments")) for rule in RULES]
)
def test_measured_sensitivities_are_the_claimed_ones(rule, adjacency):
    rows = additions(rule).astype(float)
    if adjacency == "add_remove":
        moved = rows
    else:
        moved = (rows[:, None, :] - rows[None, :, :]).reshape(-1, rows.shape[1])
    claimed = chain_tables(private([], adjacency), **RULES[rule])
    units = chain_counts._completed(chain_settings(**RULES[rule])).units
    together_l1, together_l2 = np.zeros(len(moved)), np.zeros(len(moved))
    for sensitive, part, unit in zip(claimed, (slice(0, 3), slice(3, 12)), units, strict=True):
        difference = moved[:, part]
        l1, l2 = np.abs(difference).sum(axis=1), np.sqrt((difference**2).sum(axis=1))
        measured = l1.max(), l2.max(), np.abs(difference).max()
        assert measured == pytest.approx((sensitive.l1, sensitive.l2, sensitive.linf), rel=1e-12)
        assert all(m <= c for m, c in zip(measured, (sensitive.l1, sensitive.l2, sensitive.linf), strict=True))
        together_l1 += l1 / unit
        together_l2 += (l2 / unit) ** 2
    # In users: the number of edge tables, doubled where one user leaves and one enters; attained, not only bounded.
    factor = {"add_remove": 1, "replace_one": 2}[adjacency]
    assert together_l1.max() == pytest.approx(2 * factor, rel=1e-12)
    assert together_l2.max() == pytest.approx(2 * factor, rel=1e-12)


TRIPLES = [tuple(v) for n in (1, 3, 4, 5) for v in itertools.product(["a", "b", None, "elsewhere"], repeat=n)][::7]
ROWS = np.array([[0.999, 0.001, 0.0], [0.25, 0.5, 0.25], [0.0, 1.0, 0.0]])


class TestTriples:
    def test_they_are_counted_by_users_shares(self):
        users = [
            [["a", "b", "a", "b"], ["b"]],
            [["b", "b", "b"]],
            [[None, None, None]],
            [["a", "?", "a"]],
            [["a", "b"]],
        ]
        (found,) = (s.value for s in chain_tables(private(users), lengths=(3,)))
        expected = np.zeros((3, 3, 3), dtype=int)
        expected[0, 1, 0] = expected[1, 0, 1] = GRID // 2
        expected[1, 1, 1] = GRID
        assert np.array_equal(found, expected)

    @pytest.mark.parametrize("rule", RULES)
    def test_a_user_adds_no_more_than_is_said_and_some_add_that(self, rule):
        if RULES[rule].get("segment_length") == 2:
            rule = {**RULES[rule], "segment_length": 4}  # of two visits there is none
        else:
            rule = RULES[rule]
        (most,) = user_additions(**rule, lengths=(3,))
        rng = np.random.default_rng(0)
        added = []
        for _ in range(150):
            user = [list(rng.choice(np.array(["a", "b"]), rng.integers(8))) for _ in range(rng.integers(1, 4))]
            (sensitive,) = chain_tables(private([user]), **rule, lengths=(3,))
            added.append(int(sensitive.value.sum()))
            assert sensitive.l1 == most
        assert max(added) <= most and max(added) >= 0.99999 * most

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_the_departure_moves_by_no_more_than_its_bounds(self, adjacency):
        """Whoever the others are: nobody, users alike, odd ones; the bounds are attained on the second ones."""
        parts = np.stack([whole_parts(row) for row in ROWS])
        l1, l2, linf = departure_sensitivity(Adjacency(adjacency))
        others = [[], [[["a", "a", "a"]]] * 1100, [[list(v)] for v in TRIPLES[::3]]]
        users = [[list(v)] for v in TRIPLES[:: 1 if adjacency == "add_remove" else 5]]
        users += [[["a", "a", "b"]] * 300, [["b", "a", "b"]], [["b"]]]
        largest = np.zeros(3)
        for k, other in enumerate(others):
            some = users[-10:] if k == 1 else users  # where a thousand users are read anew for each
            found = [order_departure(private([*other, user], adjacency), parts).value.astype(float) for user in some]
            if adjacency == "add_remove":
                moved = np.array(found) - order_departure(private(other), parts).value
            else:
                moved = np.concatenate([found - one for one in found])
            norms = np.abs(moved).sum(axis=1), np.sqrt((moved**2).sum(axis=1)), np.abs(moved).max(axis=1)
            largest = np.maximum(largest, [norm.max() for norm in norms])
        assert np.all(largest <= [l1, l2, linf]) and np.all(largest >= 0.99 * np.array([l1, l2, linf]))

    def test_the_departure_is_exact(self):
        users = [[["a", "b", "a", "b"]], [["b", "b", "b"]], [["a", "a"]]]
        parts = np.stack([whole_parts(row) for row in ROWS])
        distance, total, effective = order_departure(private(users), parts).value.tolist()
        (table,) = (s.value for s in chain_tables(private(users), lengths=(3,)))
        exact = sum(
            max(0, Fraction(int(table[i, j, k])) - int(table[i, j].sum()) * Fraction(int(parts[j, k]), WHOLE))
            for i, j, k in itertools.product(range(3), repeat=3)
        )
        assert (distance, total, effective) == (math.floor(exact + Fraction(1, 2)), 2 * GRID, GRID // 2 + GRID)


@pytest.mark.parametrize("most", [1, 3, 7, GRID, 10**9 + 7])
def test_sensitivities_are_rounded_up(most):
    l1, l2, linf = contribution_sensitivity(Adjacency.REPLACE_ONE, most)
    assert (l1, linf) == (2 * most, most)
    assert 2 * most**2 <= Fraction(l2) ** 2 <= 2 * most**2 * (1 + Fraction(1, 10**15))


class TestOddUsers:
    def test_one_visit_begins_and_moves_nowhere(self):
        initial, transition = (s.value for s in chain_tables(private([[["a"]]])))
        assert initial.tolist() == [GRID, 0, 0] and not transition.any()

    @pytest.mark.parametrize("sequences", [[[]], [[None] * 24], [["?"]], [["?", "?"], [None, "?"]]])
    def test_users_without_anything_to_say_add_nothing(self, sequences):
        assert all(not s.value.any() for rule in RULES.values() for s in chain_tables(private([sequences]), **rule))

    def test_unknown_states_keep_their_place(self):
        _, transition = (s.value for s in chain_tables(private([[["a", "?", "b"]]])))
        assert not transition.any()

    def test_a_user_of_15000_visits_adds_one_share(self):
        rng = np.random.default_rng(1)
        visits = rng.choice(np.array(["a", "b"]), 15_000).tolist()
        for sequences in ([visits], [visits[k : k + 7] for k in range(0, 15_000, 7)]):
            for rule in RULES.values():
                sensitive = chain_tables(private([sequences]), **rule)
                for s in sensitive:
                    assert 0 <= s.value.sum() <= s.l1  # a chosen segment may have one visit
            # Rounding down loses at most a grid unit per cell.
            assert [GRID - int(s.value.sum()) <= 9 for s in chain_tables(private([sequences]))] == [True, True]

    def test_more_pairs_than_grid_units_are_still_counted(self):
        n = 3 * GRID
        user, cell = np.zeros(n, dtype=int), np.arange(n) % 2
        assert share_table(user, cell, np.ones(n, dtype=bool), 2).tolist() == [GRID // 2, GRID // 2]

    def test_no_users_at_all(self):
        for rule in RULES.values():
            assert [s.value.tolist() for s in chain_tables(private([]), **rule)] == [[0] * 3, [[0] * 3] * 3]


class TestReading:
    def test_wide_and_long_forms_agree(self):
        wide = pd.DataFrame({"user": ["u", "v"], "sequence": ["a b a", "b"]})
        long = pd.DataFrame(
            {"user": ["u", "v", "u", "u"], "time": [3, 0, 1, 2.0], "page": ["a", "b", "a", "b"], "note": ["x"] * 4}
        )
        expected = [[0, 1], [3, 1], [0, 1, 0, 1]]
        assert [p.tolist() for p in read_sequences(wide, SCHEMA, unit="user")] == expected
        assert [p.tolist() for p in read_sequences(long, SCHEMA, unit="user", order="time")] == expected
        lists = wide.assign(sequence=[["a", "b", "a"], ["b"]])
        for frame in (
            lists,
            pl.from_pandas(lists),
            pl.from_pandas(lists).lazy(),
            lists.assign(sequence=[("a", "b", "a"), "b"]),
        ):
            assert [p.tolist() for p in read_sequences(frame, SCHEMA, unit="user")] == expected

    def test_users_are_told_apart_by_the_value_of_their_identifier(self):
        frame = pd.DataFrame({"user": [1, "1", 1.0, 2, None], "sequence": ["a"] * 5})
        owner, lengths, _ = read_sequences(frame, SCHEMA, unit="user")
        assert owner.tolist() == [0, 0, 0, 1] and lengths.tolist() == [1] * 4  # a row of nobody is dropped

    def test_one_odd_row_does_not_change_how_others_are_read(self):
        plain = pd.DataFrame({"user": [1, 2, 2], "time": [1, 2, 1], "page": [0, 1, 1]})
        schema = Schema({"page": [0, 1]})
        odd = pd.concat([plain, pd.DataFrame({"user": ["x"], "time": [("t", None)], "page": [1.5]})], ignore_index=True)
        ours = read_sequences(plain, schema, unit="user", order="time")
        theirs = read_sequences(odd, schema, unit="user", order="time")
        assert all(np.array_equal(a, b[: len(a)]) for a, b in zip(ours, theirs, strict=True))
        assert [len(b) - len(a) for a, b in zip(ours, theirs, strict=True)] == [1, 1, 1]

    def test_a_time_that_fails_when_asked_what_it_is_is_unreadable(self):
        class Unnamed(type):
            @property
            def __name__(cls):
                raise RuntimeError("a record's own words")

        class OfNoName(metaclass=Unnamed):
            pass

        class OfNoClass:
            @property
            def __class__(self):
                raise RuntimeError("a record's own words")

        for odd in (OfNoName(), OfNoClass()):
            times = pd.Series([2, 1, odd], dtype=object)
            frame = pd.DataFrame({"user": [1, 1, 2], "time": times, "page": ["a", "b", "a"]})
            read = read_sequences(frame, Schema({"page": ["a", "b"]}), unit="user", order="time")
            assert [part.tolist() for part in read] == [[0, 1], [2, 1], [1, 0, 0]]

    def test_numbers_separators_and_other_states(self):
        schema = Schema({"page": [1, 2, "rest"]}, other={"page": "rest"})
        frame = pd.DataFrame({"user": [1, 2, 3, 4], "sequence": ["1,2,9", "2", 2.0, None]})
        _, lengths, codes = read_sequences(frame, schema, unit="user", separator=",")
        assert lengths.tolist() == [3, 1, 1, 0] and codes.tolist() == [0, 1, 2, 1, 1]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"schema": {"a": [0, 1], "b": [0, 1]}}, "sequences are of one variable"),
            ({"schema": None}, "schema=None"),
            ({"unit": None}, "unit=None names no column"),
            ({"unit": "who"}, "no column for \\['who'\\]"),
            ({"sequence": "user"}, "must differ"),
            ({"separator": ""}, "separator=''"),
            ({"separator": "."}, "could be part of a state"),
            ({"adjacency": "edge"}, "adjacency='edge'"),
            ({"adjacency": "replace_one"}, "n_users=None"),
            ({"n_users": -1}, "n_users=-1"),
            ({"ledger": 1.0}, "ledger=1.0"),
            ({"data": [1, 2]}, "not a dataframe"),
        ],
    )
    def test_bad_arguments_are_named(self, changes, message):
        arguments = {
            "data": pd.DataFrame({"user": [1], "sequence": ["a"]}),
            "schema": STATES,
            "ledger": Budget(epsilon=1.0),
            **changes,
        }
        with pytest.raises((TypeError, ValueError), match=message):
            PrivateSequences(arguments.pop("data"), arguments.pop("schema"), **arguments)


class TestPublicFace:
    def test_nothing_but_public_facts(self):
        subject = private([[["a", "b"]]])
        public = [name for name in dir(subject) if not name.startswith("_")]
        assert public == [
            *("adjacency", "agreeing_on", "facts", "for_a_plan", "ledger", "n_users", "schema", "set_aside", "unit")
        ]
        assert {repr(private(users)) for users in ([], [[["a"]]], [[["a"] * 50]] * 9)} == {repr(subject)}

    @pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_refuses_copies(self, duplicate):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            duplicate(private([[["a"]]]))


class TestChoice:
    def test_each_user_keeps_its_own_number(self):
        owner = np.array([0, 1, 1, 2, 1, 2, 1])
        for _ in range(20):
            chosen = chosen_segments(owner, 2)
            assert np.bincount(owner[chosen], minlength=3).tolist() == [1, 2, 2]

    def test_all_choices_are_equally_likely_and_independent_across_users(self):
        rng = np.random.default_rng(0)
        owner, draws = np.array([0, 1, 0, 1, 0]), 6000
        counts = np.zeros((3, 2))
        for _ in range(draws):
            chosen = chosen_segments(owner, 1, rng)
            counts[np.flatnonzero(chosen[owner == 0])[0], np.flatnonzero(chosen[owner == 1])[0]] += 1
        # Six equally likely cells: 4.5 standard deviations around a sixth.
        assert np.abs(counts / draws - 1 / 6).max() < 4.5 * math.sqrt(5 / 36 / draws)

    def test_the_system_s_randomness_is_used_without_a_seed(self, monkeypatch):
        asked = []
        monkeypatch.setattr(contributions.os, "urandom", lambda n: asked.append(n) or bytes(n))
        assert chosen_segments(np.array([0, 0, 1]), 1).sum() == 2 and asked == [24]

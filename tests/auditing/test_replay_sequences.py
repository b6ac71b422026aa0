"""Replay of the learners of users' sequences: tables of beginnings and pairs, and steps on samples of users."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pgmpy import config

from pgmpy_dp.auditing.replay import INVENTED, invented, replay
from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.plans import chain
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import gradients as curators
from pgmpy_dp.private.curator import sequences as tables
from pgmpy_dp.private.data import chain_gradients, contributions, sequences
from pgmpy_dp.private.sensitive import Sensitive


@pytest.fixture(autouse=True)
def without_progress():
    """A bar is shown where a fit takes more than a second, which is no matter of records."""
    before = config.get_show_progress()
    config.set_show_progress(False)
    yield
    config.set_show_progress(before)


STATES = {"page": ["a", "b", None]}
PURE, RHO, DELTA = Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-3)
STEPS = {"n_steps": 4, "batch_rate": 0.3}
# Estimators by what they ask for, with the budgets that they take.
FITS = {
    "shares": ({"method": "map"}, (PURE, RHO, DELTA)),
    "segments": ({"method": "naive", "segment_length": 3, "max_segments": 2}, (PURE, RHO)),
    "em": ({"method": "em", "segment_length": 4}, (RHO,)),
    "sgd": ({"method": "sgd", **STEPS}, (DELTA, RHO)),
    "sgd, one state": ({"method": "sgd", "clip_norm": 0.1, **STEPS}, (DELTA,)),
}
CASES = [(name, budget) for name, (_, budgets) in FITS.items() for budget in budgets]

LONG = [["a", "b"] * 40]
ODD = [
    [["a"]],
    [["b", "b"]],
    LONG,
    [["a", "a", "a"], ["b"], ["b", "a", "b", "a", "b"]],
    [],
    [[]],
    [[None, None, None]],
    [["?", "a", object(), "b"]],
    [[float("nan")], ["a", None, "a"]],
]
"""Users: long, short, with several sequences, with nothing, with nulls and with what is no state."""


def frame(users) -> pd.DataFrame:
    rows = [(f"u{k}", x) for k, user in enumerate(users) for x in user]
    data = {"user": [row[0] for row in rows], "sequence": pd.Series([row[1] for row in rows], dtype=object)}
    return pd.DataFrame(data, columns=["user", "sequence"])


def pairs(adjacency: str):
    """Neighbours that are known to be hard, then random ones, in both directions."""
    rng = np.random.default_rng(0)
    first, last = [["a", "a"]], [["b", "b"]]

    def pair(users, odd, instead):
        return (
            (frame(users), frame([*users, odd]))
            if adjacency == "add_remove"
            else (
                frame([*users, instead]),
                frame([*users, odd]),
            )
        )

    yield pair([], first, last)
    yield pair([first] * 20, last, first)
    yield pair([first] * 20, first, last)[::-1]
    for k, odd in enumerate(ODD):
        users = [[list(rng.choice(["a", "b"], rng.integers(1, 9)))] for _ in range(12)]
        found = pair(users, odd, ODD[(k + 2) % len(ODD)])
        yield found if k % 2 else found[::-1]


def fit(data: pd.DataFrame, name: str = "shares", budget: Budget = RHO, adjacency: str = "add_remove"):
    options, _ = FITS[name]
    n_users = 21 if adjacency == "replace_one" else None  # public and believed, not the true one
    return PrivateMarkovChain(
        budget.epsilon, budget.delta, budget.rho, STATES, adjacency=adjacency, n_users=n_users, **options
    ).fit(data)


def bound_attained(cases, adjacency: str, kinds=("drawn", *INVENTED)) -> dict[str, float]:
    """Every pair holds; the most that each operator moved."""
    most: dict[str, float] = {}
    for number, (name, budget) in enumerate(cases):
        for k, (data, neighbour) in enumerate(pairs(adjacency)):
            kind = kinds[(k + number) % len(kinds)] if k else "drawn"
            answers = None if kind == "drawn" else invented(kind, k)
            report = replay(lambda d: fit(d, name, budget, adjacency), data, neighbour, answers=answers)  # noqa: B023
            assert report.holds, (name, budget, k, kind, str(report))
            for operator, ratio in report.movement.items():
                most[operator] = max(most.get(operator, 0.0), ratio)
    return most


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_every_pair_holds_and_bounds_are_attained(adjacency):
    most = bound_attained(CASES, adjacency)
    assert set(most) == {"pair_tables", "step", *(["count"] if adjacency == "add_remove" else [])}
    assert most["pair_tables"] >= 0.99 and most.get("count", 1.0) >= 0.99
    # Two users' gradients are opposite where they leave different states; clipped, each has the whole norm.
    assert most["step"] >= (0.99 if adjacency == "add_remove" else 0.7)


def test_two_users_can_be_opposite():
    """The bound of replace_one is attained by users of one gradient's two signs."""
    grid = chain_gradients.ChainGrid(0.1, 2, 0.25)
    users = [[["a"]], [["b"]]]
    sums = []
    for user in users:
        data = sequences.PrivateSequences(frame([user]), {"page": ["a", "b"]}, ledger=RHO)
        rows = chain_gradients.UserShares(data, grid)
        everybody = lambda users: np.arange(len(users))  # noqa: E731
        sums.append(chain_gradients.sampled_user_gradient_sum(rows, np.zeros(6), grid, everybody).value)
    assert np.linalg.norm((sums[0] - sums[1]).astype(float)) >= 0.99 * 2 * grid.bound


FIRST, SECOND = next(itertools.islice(pairs("add_remove"), 1, None))


def found(name="shares", budget=RHO, data=FIRST, neighbour=SECOND, learner=fit) -> str:
    return "; ".join(replay(lambda d: learner(d, name, budget), data, neighbour).problems)


class TestMutants:
    def test_a_halved_sensitivity_of_tables(self, monkeypatch):
        true = tables.contribution_sensitivity
        halved = lambda adjacency, most: tuple(x / 2 for x in true(adjacency, most))  # noqa: E731
        monkeypatch.setattr(tables, "contribution_sensitivity", halved)
        monkeypatch.setattr(sequences, "contribution_sensitivity", halved)
        problems = found()
        assert "pair_tables: exact statistics moved by 2" in problems and "pair_tables: noise of scale" in problems

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

        def by_position(user, most, seed=None, keys=None):
            return true(np.arange(len(user)) // 3, most, keys=np.arange(len(user), dtype=np.uint64))

        monkeypatch.setattr(sequences, "chosen_segments", by_position)
        many = [[["a", "b", "a"]], [["a", "b", "a"]], [["b", "b", "b"]]] * 5  # every third is left out, or other ones
        assert "moved by" in found("segments", data=frame(many), neighbour=frame([[["a"]], *many]))

    @pytest.mark.parametrize("budget", [DELTA, RHO])
    def test_a_step_with_half_the_noise(self, budget, monkeypatch):
        true = curators.ChainGradientCurator.__init__

        def halved(self, *a, **k):
            true(self, *a, **k)
            self.scale /= 2

        monkeypatch.setattr(curators.ChainGradientCurator, "__init__", halved)
        assert "step: noise of scale" in found("sgd", budget)

    def test_gradients_that_are_not_clipped(self, monkeypatch):
        monkeypatch.setattr(chain_gradients, "clipping_weights", lambda squared, _: np.full(len(squared), 1024))
        assert "step: exact statistics moved by" in found("sgd, one state", DELTA)

    def test_gradients_that_grow_with_the_length(self, monkeypatch):
        true = chain_gradients.user_shares
        monkeypatch.setattr(
            chain_gradients,
            "user_shares",
            lambda user, cell, counts, size, total: true(user, cell, counts, size, total * max(1, counts.sum() // 40)),
        )
        monkeypatch.setattr(chain_gradients, "clipping_weights", lambda squared, _: np.full(len(squared), 1024))
        assert "moved by" in found("sgd", DELTA, frame([]), frame([LONG]))

    def test_a_plan_that_peeks(self, monkeypatch):
        true = chain.SequenceCurator.pair_tables

        def peeking(self, share, weights=None, *rest):
            length = 3 if len(sequences.sequence_owners(self._data)) % 2 else 2
            return true(self, share, weights, length, None)

        monkeypatch.setattr(chain.SequenceCurator, "pair_tables", peeking)
        assert "pair_tables: its arguments differ" in found()

    def test_a_plan_that_peeks_after_its_last_request(self, monkeypatch):
        def peeking(data, name, budget):
            fitted = fit(data, name, budget)
            fitted.n_rows_ = len(data)
            return fitted

        assert "result differs" in found(learner=peeking)

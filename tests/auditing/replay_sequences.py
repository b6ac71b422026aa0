"""Replay of the learners of users' sequences: tables of beginnings and pairs, and steps on samples of users."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.private.budget import Budget
from tests.auditing.replay_cases import ReplayCase

__all__ = ["SEQUENCE_FITS", "fit_sequences", "sequence_cases", "sequence_frame", "sequence_pairs"]

User = Sequence[Sequence[Any]]

STATES: dict[str, list] = {"page": ["a", "b", None]}
PURE, RHO, DELTA = Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-3)
N_USERS = 21  # public and believed, not the true number

_STEPS: dict[str, Any] = {"n_steps": 4, "batch_rate": 0.3}
SEQUENCE_FITS: dict[str, tuple[dict[str, Any], tuple[Budget, ...]]] = {
    "shares": ({"method": "map"}, (PURE, RHO, DELTA)),
    "segments": ({"method": "naive", "segment_length": 3, "max_segments": 2}, (PURE, RHO)),
    "em": ({"method": "em", "segment_length": 4}, (RHO,)),
    "sgd": ({"method": "sgd", **_STEPS}, (DELTA, RHO)),
    "sgd, one state": ({"method": "sgd", "clip_norm": 0.1, **_STEPS}, (DELTA,)),
}
"""Options of the estimator, with the budgets that they take."""

_LONG: User = [["a", "b"] * 40]
_ODD: tuple[User, ...] = (
    [["a"]],
    [["b", "b"]],
    _LONG,
    [["a", "a", "a"], ["b"], ["b", "a", "b", "a", "b"]],
    [],
    [[]],
    [[None, None, None]],
    [["?", "a", object, "b"]],
    [[float("nan")], ["a", None, "a"]],
)
"""Users: long, short, with several sequences, with nothing, with nulls and with what is no state."""


def sequence_frame(users: Sequence[User]) -> pd.DataFrame:
    """A row for each sequence."""
    rows = [(f"u{k}", x) for k, user in enumerate(users) for x in user]
    data = {"user": [row[0] for row in rows], "sequence": pd.Series([row[1] for row in rows], dtype=object)}
    return pd.DataFrame(data, columns=["user", "sequence"])


def sequence_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbours by one user: none and one, users that are all alike, odd users; then random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    """
    first, last = [["a", "a"]], [["b", "b"]]

    def pair(users: list[User], odd: User, instead: User) -> tuple[pd.DataFrame, pd.DataFrame]:
        other = users if adjacency == "add_remove" else [*users, instead]
        return sequence_frame(other), sequence_frame([*users, odd])

    def drawn() -> list[list[str]]:
        return [rng.choice(["a", "b"], rng.integers(1, 9)).tolist()]

    yield pair([], first, last)
    yield pair([first] * 20, last, first)
    yield pair([first] * 20, first, last)[::-1]
    for k in itertools.count():
        odd, instead = (_ODD[(k + step) % len(_ODD)] if k < 40 else drawn() for step in (0, 2))
        found = pair([drawn() for _ in range(12)], odd, instead)
        yield found if k % 2 else found[::-1]


def sequence_cases() -> list[ReplayCase]:
    """Every method, both adjacencies, the kinds of budgets that it takes."""
    return [
        ReplayCase(
            f"PrivateMarkovChain, {name}, {adjacency}, {budget}",
            partial(fit_sequences, name=name, budget=budget, adjacency=adjacency),
            partial(sequence_pairs, adjacency=adjacency),
            3 + len(_ODD),
        )
        for (name, (_, budgets)), adjacency in itertools.product(SEQUENCE_FITS.items(), ("add_remove", "replace_one"))
        for budget in budgets
    ]


def fit_sequences(
    data: pd.DataFrame, name: str = "shares", budget: Budget = RHO, adjacency: str = "add_remove"
) -> PrivateMarkovChain:
    """The estimator with the options of this name."""
    options, _ = SEQUENCE_FITS[name]
    n_users = N_USERS if adjacency == "replace_one" else None
    return PrivateMarkovChain(
        budget.epsilon, budget.delta, budget.rho, STATES, adjacency=adjacency, n_users=n_users, **options
    ).fit(data)

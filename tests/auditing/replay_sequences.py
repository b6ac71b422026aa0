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
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.sequences.operators.sequence_operators import OrderDeparture
from pgmpy_dp.sequences.operators.sequences import PrivateSequences
from tests.auditing.replay_cases import ReplayCase

__all__ = [
    "SEQUENCE_FITS",
    "ask_departure",
    "departure_cases",
    "departure_pairs",
    "fit_sequences",
    "sequence_cases",
    "sequence_frame",
    "sequence_pairs",
]

User = Sequence[Sequence[Any]]

STATES: dict[str, list] = {"page": ["a", "b", None]}
PURE, RHO, DELTA = Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-3)
N_USERS = 21  # public and believed, not the true number

SEQUENCE_FITS: dict[str, tuple[dict[str, Any], tuple[Budget, ...]]] = {
    "shares": ({"method": "map"}, (PURE, RHO, DELTA)),
    "segments": ({"method": "naive", "segment_length": 3, "max_segments": 2}, (PURE, RHO)),
    "cut": ({"segment_length": 4}, (RHO,)),
    "second": ({"chain_order": 2, "method": "naive"}, (PURE, RHO)),
    "second, segments": ({"chain_order": 2, "method": "naive", "segment_length": 4, "max_segments": 2}, (PURE,)),
    "auto": ({"chain_order": "auto"}, (PURE, RHO)),
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


_DIAGONAL = np.array([[0.99, 0.01, 0.0], [0.0, 0.99, 0.01], [0.01, 0.0, 0.99]])


def departure_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Two pairs that attain the bounds, then those of :func:`sequence_pairs`.

    Among a hundred users with "a a a" one who often has "a a b" makes the row (a, a) more like `_DIAGONAL`, by its
    whole share; one with "b b a" once makes the row (b, b) less like it.
    """
    many: list[User] = [[["a", "a", "a"]]] * 120
    odd, like = [["b", "b", "a"]], [["a", "a", "b"]] * 200
    yield sequence_frame(many if adjacency == "add_remove" else [*many, [["a"]]]), sequence_frame([*many, odd])
    yield sequence_frame([*many, *([] if adjacency == "add_remove" else [like])]), sequence_frame([*many, odd])
    yield from sequence_pairs(rng, adjacency)


def ask_departure(data: pd.DataFrame, budget: Budget = RHO, adjacency: str = "add_remove") -> Any:
    """The curator asked for itself, with public probabilities."""
    n_users = N_USERS if adjacency == "replace_one" else None
    users = PrivateSequences(data, STATES, adjacency=adjacency, ledger=budget, n_users=n_users)
    curator = Curator(users, budget, what="a test", columns=["page"])
    curator.ask(OrderDeparture(_DIAGONAL), 0.5)
    curator.ask(OrderDeparture(np.full((3, 3), 1 / 3), 3), 0.25)
    return curator.release("test", {})


def departure_cases() -> list[ReplayCase]:
    """The test of order, both adjacencies and kinds of noise."""
    return [
        ReplayCase(
            f"order departure, {adjacency}, {budget}",
            partial(ask_departure, budget=budget, adjacency=adjacency),
            partial(departure_pairs, adjacency=adjacency),
            5 + len(_ODD),
        )
        for adjacency, budget in itertools.product(("add_remove", "replace_one"), (PURE, RHO))
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

"""Replay of tables whose units, persons say, have several records: the cases of single records, with persons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.reading.owners import identity
from tests.auditing.replay_cases import ReplayCase
from tests.auditing.replay_gradients import gradient_cases
from tests.auditing.replay_parities import parity_cases
from tests.auditing.replay_tables import check_cases, object_frame, publish_cases, score_cases, table_cases
from tests.auditing.replay_votes import vote_cases

__all__ = ["N_UNITS", "ODD_UNITS", "PERSON", "as_persons", "of_persons", "unit_cases", "unit_pairs"]

PERSON = "person"

ODD_UNITS: tuple[Any, ...] = (
    *(None, float("nan"), "", "nan", "p0", "a\0", "a", " 1", -0.0, 0.0),
    *(1, True, "1", 10**400, b"p0", ("p0",), pd.Timestamp("2020-01-01"), "\ud800", object),
)
"""Identifiers that a column of texts does not expect; None and NaN are nobody's."""

N_UNITS = 31  # public and believed, not the true number

Pair = tuple[pd.DataFrame, pd.DataFrame]


def of_persons(pair: Pair, records: int, whose: Any = "odd", second: Any = "odd") -> Pair:
    """Neighbours in a record as neighbours in a person: what differs is one person's, `records` times over.

    The records that both have are those of persons with several each, about.

    Parameters
    ----------
    pair : tuple of DataFrame
    records : int
    whose, second : object
        Identifier of that person in the first and in the second dataset.
    """
    names = list(pair[0].columns)
    rows = [[tuple(row) for row in frame.to_numpy(dtype=object).tolist()] for frame in pair]
    counts = [Counter(map(repr, part)) for part in rows]
    # An odd identifier that is one of theirs would be a person with other records, who is no neighbour.
    theirs = "q" if any((identity(one) or b"").startswith(b"=p") for one in (whose, second)) else "p"
    made = []
    for part, own in zip(rows, (whose, second), strict=True):
        left, found = counts[0] & counts[1], []
        number: defaultdict[str, int] = defaultdict(int)
        for row in part:
            text = repr(row)
            if left[text] > 0:
                left[text] -= 1
                found.append([*row, f"{theirs}{(hash_of(text) + number[text]) % 17}"])
                number[text] += 1
            else:
                found += [[*row, own]] * records
        made.append(object_frame(found, [*names, PERSON]))
    return made[0], made[1]


def hash_of(text: str) -> int:
    """The same in every process."""
    return sum(text.encode("utf-8", "replace"))


def unit_pairs(
    rng: np.random.Generator,
    pairs: Callable[[np.random.Generator], Iterator[Pair]],
    most: int,
    corpus: int,
) -> Iterator[Pair]:
    """Neighbours of a case of single records, in persons; then the same with odd identifiers, and mixed persons.

    Parameters
    ----------
    rng : numpy.random.Generator
    pairs : callable
        Of the case of single records.
    most : int
        How many records of a person count.
    corpus : int
        How many of the case's pairs come first; others have odd identifiers in turns.
    """
    for k, pair in enumerate(pairs(rng)):
        odd = "odd" if k < corpus else ODD_UNITS[(k - corpus) % len(ODD_UNITS)]
        yield of_persons(pair, most + k % 3, odd, odd)
        if k == 0:
            yield of_persons(pair, most, odd, None)  # the other one has no records


@contextmanager
def as_persons(rows_per_unit: int | str) -> Iterator[None]:
    """Tables that are made meanwhile are of persons."""
    true = PrivateTable.__init__

    def init(self: PrivateTable, data: Any, schema: Any, **options: Any) -> None:
        if options.get("n_records") is not None:
            options["n_records"] = N_UNITS
        true(self, data, schema, **options | {"unit": PERSON, "rows_per_unit": rows_per_unit})

    PrivateTable.__init__ = init  # type: ignore[method-assign]
    try:
        yield
    finally:
        PrivateTable.__init__ = true  # type: ignore[method-assign]


def unit_cases() -> list[ReplayCase]:
    """Each operator, adjacency and kind of noise, with persons of at most two records, three, or by shares."""
    tables = [
        case
        for case in [*table_cases(), *check_cases(), *score_cases(), *publish_cases()]
        if case.name.startswith(_TABLES)
    ]
    every = [*parity_cases(), *gradient_cases(), *vote_cases()]
    shared = [case for case in every if case.name.startswith(_BY_SHARES)]
    rows = [case for case in every if case.name.startswith(_BY_ROWS)]
    rows = [case for case in rows if not (case.name.startswith(("sgd", "one table")) and "replace_one" in case.name)]
    made = [*_of(tables, 2), *_of([*tables, *shared], "shares"), *_of(rows, 3)]
    levels = [case for case in table_cases() if case.name.startswith("levels")]
    made += [*_of(levels, 2), *_of(levels, "shares")]
    return [case for case in made if "e-06" not in case.name or "NaiveMLE" in case.name]


def _of(cases: Iterable[ReplayCase], rows_per_unit: int | str) -> Iterator[ReplayCase]:
    most = 1 if rows_per_unit == "shares" else int(rows_per_unit)
    for case in cases:
        corpus = 8 if case.name.startswith(("agreed", "Edge")) else _CORPUS
        yield ReplayCase(
            f"persons, {rows_per_unit}: {case.name}",
            partial(_fitted, fit=case.fit, rows_per_unit=rows_per_unit),
            partial(unit_pairs, pairs=case.pairs, most=most, corpus=corpus),
            corpus + 2,
            case.answers,
        )


def _fitted(data: pd.DataFrame, fit: Callable[[pd.DataFrame], Any], rows_per_unit: int | str) -> Any:
    with as_persons(rows_per_unit):
        return fit(data)


_TABLES = ("NaiveMLE", "PrivateNetwork, add", "PrivateNetwork, rep", "check_schema, other-state", "score_model, every")
_TABLES += ("publish_if, test alone",)
_BY_ROWS = (
    *("parities, ", "pmw, ", "interactions of no pair", "halves by pmw", "sgd", "one table", "walk, binary"),
    *("walk, two", "agreed graph", "EdgeVoting, chow-liu", "PrivateLogisticRegression, add"),
)
_BY_SHARES = (
    *("parities, ", "pmw, add_remove", "pmw, replace_one", "interactions of no pair", "one table", "walk, binary"),
    *("sgd", "agreed graph", "halves by pmw, replace_one", "PrivateLogisticRegression, add"),
)
_CORPUS = 4

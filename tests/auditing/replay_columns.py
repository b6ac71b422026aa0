"""Replay of what finds categories and cuts: pairs of tables whose cells nobody has listed."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import Number
from pgmpy_dp.verbs import discover
from tests.auditing.replay_cases import ReplayCase
from tests.auditing.replay_tables import ODD_CELLS, object_frame
from tests.auditing.replay_units import N_UNITS, PERSON, unit_pairs

__all__ = ["column_cases", "column_pairs"]

BUDGET = Budget(epsilon=1.0, delta=1e-6)
NAMES = ["job", "town", "age", "pay"]
VARIABLES = {
    "job": "categories",
    "town": "categories",
    "age": Number(0, 40, resolution=1),
    "pay": Number(0, 1_000_000, missing="drop", outside="state"),
}
_USUAL: list[Any] = ["nurse", "Ulm", 30, 1000.0]
_NEW: list[Any] = ["astronaut", 7, 31, 900_000.0]
_ODD: tuple[Any, ...] = (
    *ODD_CELLS,
    *("7.0", " 7 ", 7, True, "TRUE", "other", "Other", "categories", "None", "[0,9)", "<5"),
    *("a\tb", "\x1b[31m", "a\u200bb", "x" * 101, "x" * 100, "Ulm ", "ULM", "nu\u0308rse", "\ufdd0", "9" * 400),
    *("007", "+7", 7.5, "nan", "inf", "12E3", np.float32(7.0)),
    *(float("inf"), 1e300, 2.0**53, -0.0, ("a", ("b", None)), b"\xff", np.datetime64("NaT", "s"), {"a": 1}, 1 + 2j),
)
"""Cells that might be a category twice, no category, or one that is something else too."""


def column_pairs(rng: np.random.Generator, adjacency: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Neighbouring tables: a record whose cells are all new, many different ones, odd ones; then random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    adjacency : {"add_remove", "replace_one"}
    """

    def pair(rows: list[list], odd: list, instead: list, place: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
        other = rows if adjacency == "add_remove" else [*rows[:place], instead, *rows[place:]]
        return object_frame(other, NAMES), object_frame([*rows[:place], odd, *rows[place:]], NAMES)

    yield pair([_USUAL] * 40, _NEW, _USUAL)
    yield pair([_USUAL] * 40, _NEW, _USUAL)[::-1]
    yield pair([], _NEW, _USUAL)
    yield pair([[f"job {k}", k, k % 40, 1.0 * k] for k in range(300)], ["job 300", 300, 1, 0.0], ["job 301", 301, 2, 5])
    for k, cell in enumerate(_ODD):
        rows = [_USUAL] * 5 + [[cell, "Bonn", cell, 5.0]] * 2 + [_NEW] * 3
        yield pair(rows, [cell, cell, cell, cell], _USUAL, k % 9)
    while True:
        cells = [_USUAL, _NEW, *([cell] * 4 for cell in _ODD)]
        rows = [[cells[rng.integers(len(cells))][k] for k in range(4)] for _ in range(rng.integers(0, 60))]
        odd, instead = ([cells[rng.integers(len(cells))][k] for k in range(4)] for _ in range(2))
        found = pair(rows, odd, instead, int(rng.integers(len(rows) + 1)))
        yield found if rng.random() < 0.5 else found[::-1]


def column_cases() -> list[ReplayCase]:
    """Categories and numbers together, in memory, spelled otherwise, in a file, where they are codes; each alone."""
    numbers = {"age": VARIABLES["age"], "pay": VARIABLES["pay"]}
    spelled = {"strip": True, "casefold": True, "missing": ["?", 7], "recode": {"job": {"astronaut": "pilot"}}}
    variants: list[tuple[str, dict[str, Any], dict[str, Any], Budget]] = [
        ("both", VARIABLES, {}, BUDGET),
        ("spelled", VARIABLES, {**spelled, "other": None, "max_categories": 2}, BUDGET),
        ("in a file", VARIABLES, {"strip": True}, BUDGET),
        ("categories", {"job": "categories"}, {"max_length": 3, "other": "nurse"}, BUDGET),
        *(("numbers", numbers, {"bins": 4}, budget) for budget in (Budget(epsilon=1.0), Budget(rho=0.1), BUDGET)),
        ("codes", VARIABLES, {"codes": True}, BUDGET),
        ("codes, spelled", VARIABLES, {**spelled, "codes": True, "max_categories": 2}, BUDGET),
        ("codes no more, in a file", VARIABLES, {"codes": False}, BUDGET),
    ]
    cases = []
    for (name, variables, options, budget), adjacency in itertools.product(variants, ("add_remove", "replace_one")):
        fixed = {"variables": variables, "options": options, "budget": budget, "adjacency": adjacency, "name": name}
        pairs, corpus = partial(column_pairs, adjacency=adjacency), 4 + len(_ODD) if name in ("both", "codes") else 8
        cases.append(ReplayCase(f"discover, {name}, {adjacency}, {budget}", partial(_found, **fixed), pairs, corpus))
        if name != "categories":
            persons = partial(unit_pairs, pairs=pairs, most=3, corpus=corpus)
            find = partial(_found, **fixed, unit=PERSON)
            cases.append(ReplayCase(f"persons, discover, {name}, {adjacency}, {budget}", find, persons, corpus + 2))
    return cases


def _found(
    data: pd.DataFrame,
    *,
    variables: dict,
    options: dict,
    budget: Budget,
    adjacency: str,
    name: str,
    unit: str | None = None,
) -> tuple[Any, ...]:
    n_records = (len(data) if unit is None else N_UNITS) if adjacency == "replace_one" else None
    ledger = Ledger(budget, adjacency=adjacency)
    asked = {"ledger": ledger, "n_records": n_records, "unit": unit, **options}
    if not name.endswith("in a file"):
        found = discover(data, variables, budget, **asked)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "records.csv"
            rows = (list(data.columns), *data.to_numpy().tolist())
            lines = [",".join(str(cell).replace("\n", " ") for cell in row) for row in rows]
            path.write_bytes("\n".join(lines).encode("utf-8", "replace"))
            found = discover(path, variables, budget, **asked)
    return (
        found.release_,
        found.privacy_,
        str(found),
        found.schema.to_dict(),
        {k: list(v.items()) for k, v in found.counts.items()},
    )

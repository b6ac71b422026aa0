"""Score sums: against a twin in Python's integers, at wild points and shapes, and what no record can exceed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.mechanism import AdditiveNoise
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.operators.score_sums import COUNT, GRID, MOST_COLUMNS, VALUE, ScoreSums
from tests.auditing.replay_regressions import NUMBERS, ODD_ROWS, score_question

QUESTIONS = [score_question(family, size, bound) for family in ("logit", "linear") for size, bound in
             ((1, 4 * GRID), (1 << 13, 3 * GRID), (1 << 18, GRID // 2), (1 << 28, 4 * GRID))]  # fmt: skip
WEIGHTS = [("x", [VALUE, 1, 40_000, 0, 7, 0]), ("k", [3 * VALUE // 4, VALUE, 0])]
WEIGHTED = [
    replace(question, weight=WEIGHTS[:k]) for k, question in ((1, QUESTIONS[1]), (2, QUESTIONS[3]), (2, QUESTIONS[6]))
]
EVERY = [(x, k, y) for x in (0.5, 1.5, 2.5, 4.0, None, 99.0) for k in ("a", "b", None) for y in ("no", "yes")]


def exact(rows, question, **unit):
    """The exact sums, and how far they are said to move."""
    columns = ["x", "k", "y", *(["who"] if unit else [])]
    frame = pd.DataFrame({name: pd.Series([row[j] for row in rows], dtype=object) for j, name in enumerate(columns)})
    table = PrivateTable(frame, NUMBERS, ledger=Budget(rho=1.0), **unit)
    facts = table.facts()
    checked = question.checked(facts)
    curator = TableCurator(table, Budget(rho=1.0), what="sums")
    mechanism = checked.mechanism(facts, curator.cost, 1, 0)
    assert isinstance(mechanism, AdditiveNoise)
    (sums,) = checked._exact(table, facts, mechanism, Coins(None))
    return sums, mechanism.grid


def twin(row, question):
    """What one record adds, by the definition, in Python's integers of any size."""
    codes = {}
    for name, cell in zip("xky", row, strict=True):
        states = NUMBERS.states[name]
        if name == "x":
            cell = None if cell is None else "outside" if cell > 4 else states[min(int(cell), 3)]
        codes[name] = states.index(cell)

    def product(factors, one):
        value = one
        for name, values in factors:
            value = value * values[codes[name]] // one
        return value

    if not product(question.complete, 1):
        return [0] * (len(question.shape) + 1)
    x = [product(column, VALUE) for column in question.columns]
    dot = sum(a * b for a, b in zip(x, question.point, strict=True))
    if question.family == "logit":
        logit = max(-(2**17), min(2**17, (dot + 2**19) >> 20))
        mean = round(2**16 / (1 + math.exp(-logit / 4096)))
    else:
        mean = (dot + 2**15) >> 16
    residual = max(-4 * VALUE, min(4 * VALUE, product([question.response], VALUE) - mean))
    residual = (residual * product(question.weight, VALUE) + 2**15) >> 16
    psi = [(a * residual + 2**11) >> 12 for a in x]
    v = [(sum(int(m) * p for m, p in zip(row_of_m, psi, strict=True)) + 2**18) >> 19 for row_of_m in question.shape]
    v = [max(-(2**20), min(2**20, entry)) for entry in v] + [COUNT]
    square = sum(entry**2 for entry in v)
    if square > GRID**2:
        norm = math.isqrt(square) + 1
        v = [int(math.copysign(abs(entry) * GRID // norm, entry)) for entry in v]
    total = sum(map(abs, v))
    return v if total <= question.l1_bound else [
        int(math.copysign(abs(entry) * question.l1_bound // total, entry)) for entry in v
    ]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS + WEIGHTED)
def test_every_record_adds_what_the_definition_says_and_no_more_than_the_bounds(question):
    for row in EVERY:
        sums, _ = exact([row], question)
        assert sums.value.tolist() == twin(row, question), row
        assert (sums.value**2).sum() <= GRID**2 and np.abs(sums.value).sum() <= question.l1_bound
    alone = [twin(row, question) for row in EVERY]
    assert exact(EVERY * 3, question)[0].value.tolist() == (3 * np.sum(alone, axis=0)).tolist()


def test_large_shapes_attain_both_norms():
    for question, norm in ((QUESTIONS[3], 2), (QUESTIONS[2], 1)):
        most = max(np.linalg.norm(exact([row], question)[0].value, norm) for row in EVERY)
        assert most >= 0.999 * (GRID if norm == 2 else question.l1_bound)


@pytest.mark.parametrize("row", [row for row in ODD_ROWS if row[0] != "2"], ids=lambda row: repr(row)[:30])
def test_what_lacks_a_value_or_is_outside_adds_nothing(row):
    for question in QUESTIONS[::3]:
        assert not exact([row], question)[0].value.any()


def test_rows_of_a_person_count_by_shares():
    rows = [(3.5, "b", "yes", "u"), (0.5, "a", "no", "u"), (None, "a", "no", "u"), (2.5, "b", "no", "w")]
    sums, grid = exact(rows, QUESTIONS[1], unit="who", rows_per_unit="shares")
    assert grid == 1 << 16 and sums.l2 == grid * GRID
    alone = [np.array(twin(row[:3], QUESTIONS[1])) for row in rows]
    assert sums.value.tolist() == ((alone[0] + alone[1] + alone[2]) * (grid // 3) + alone[3] * grid).tolist()
    whole, one = exact(rows, QUESTIONS[1], unit="who", rows_per_unit=3)
    assert one == 1 and whole.value.tolist() == sum(alone).tolist()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"family": "probit"}, "family='probit'"),
        ({"point": [0, 0]}, "point has 2 entries for 3 columns"),
        ({"point": [0, 0, 2**31]}, "do not fit"),
        ({"shape": np.eye(3)}, "type float64"),
        ({"shape": np.eye(2, dtype=int)}, r"shape has shape \(2, 2\)"),
        ({"shape": np.full((3, 3), -(2**63))}, "do not fit"),
        ({"l1_bound": 0}, "l1_bound=0"),
        ({"l1_bound": 5 * GRID}, "l1_bound"),
        ({"response": ("y", [0, 1])}, "response has the values"),
        ({"response": ("y", [0, 1, 1])}, "'y' has 2 states"),
        ({"response": ("nobody", [0, 1])}, "nobody"),
        ({"complete": [("y", [0, 2])]}, "from 0 to 1"),
        ({"columns": [[]] * (MOST_COLUMNS + 1), "point": [0] * (MOST_COLUMNS + 1)}, "1 to 256"),
        ({"columns": [[("y", [0, VALUE + 1])]] * 3}, "whole number"),
        ({"weight": [("y", [0, -1])]}, f"from 0 to {VALUE}"),
        ({"weight": [("y", [0, VALUE + 1])]}, f"from 0 to {VALUE}"),
    ],
)
def test_a_question_that_cannot_be_put_costs_nothing(change, says):
    table = PrivateTable(pd.DataFrame(columns=["x", "k", "y"]), NUMBERS, ledger=Budget(rho=1.0))
    curator = TableCurator(table, Budget(rho=1.0), what="sums")
    with pytest.raises((ValueError, TypeError), match=says):
        curator.ask(replace(QUESTIONS[0], **change), 1)
    assert curator.left == 1


def test_a_question_is_copied_before_it_is_answered():
    shape = np.array(QUESTIONS[0].shape)
    table = PrivateTable(pd.DataFrame(columns=["x", "k", "y"]), NUMBERS, ledger=Budget(rho=1.0))
    made = replace(QUESTIONS[0], shape=shape).checked(table.facts())
    shape[:] = 7
    assert made.shape.tolist() == QUESTIONS[0].shape.tolist() and not made.shape.flags.writeable
    assert ScoreSums.noise_of(GRID, Adjacency.REPLACE_ONE, Budget(rho=0.5).guarantee, 1).scale == 2 * GRID

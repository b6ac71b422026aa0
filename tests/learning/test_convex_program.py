"""The form of a stable program: sensitivities against brute force, when the fallback takes over, what is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget
from pgmpy_dp.communities.operators.block_projection import (
    projection_sensitivity,
    stable_objective_sensitivity,
    stable_set_sensitivity,
)
from pgmpy_dp.learning.convex_program import release, released_solution
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.data.vectors import PrivateVectors, vector_rows
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.mathematics.certificates import CertifiedPoint
from pgmpy_dp.private.operators.solutions import StableProgram, UncertifiedSolution, certified_solution, noise_plan

BUDGET = Budget(epsilon=1.0, delta=1e-6)


@dataclass(frozen=True)
class ClippedMean:
    """min ||w - mean||^2/2 over all w, with a solver that says it is `off` by something, and a log of calls."""

    off: float = 0.0
    calls: list = None  # type: ignore[assignment]
    name: str = "mean"
    size: int = 2
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    sensitivity: float = 0.01
    distance: float = 1e-6
    bound: float = 1.0
    failure: float = 0.0
    fallback_off: float = 0.0

    def public(self) -> dict[str, Any]:
        return {"about_n_records": 100}

    def check(self, records: PrivateVectors) -> None:
        if len(records.columns) != 2:
            raise ValueError("two columns")

    def _mean(self, records: PrivateVectors) -> np.ndarray:
        rows, _ = vector_rows(records)
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)).sum(axis=0) / 100

    def solve(self, records: PrivateVectors) -> CertifiedPoint:
        self.calls.append("solve")
        np.zeros(1) / np.zeros(1)  # warnings are errors here: this one must not be heard
        return CertifiedPoint(self._mean(records) + 1.0, self.off)

    def fallback(self, records: PrivateVectors) -> CertifiedPoint:
        self.calls.append("fallback")
        return CertifiedPoint(self._mean(records), self.fallback_off)


def vectors(**changes) -> PrivateVectors:
    rows = np.random.default_rng(0).uniform(0, 0.5, (100, 2))
    return PrivateVectors(rows, **{"ledger": BUDGET, **changes})


@pytest.mark.parametrize(
    ("off", "calls"), [(1e-6, ["solve"]), (1.1e-6, ["solve", "fallback"]), (np.nan, ["solve", "fallback"])]
)
def test_the_fallback_takes_over_where_the_certificate_does_not_suffice(off, calls):
    program = ClippedMean(off, [])
    value = certified_solution(program, vectors())
    assert program.calls == calls and (value > 0.9).all() == (len(calls) == 1)


@pytest.mark.parametrize("off", [1.1e-6, np.inf, np.nan])
def test_what_nobody_certified_is_not_released_and_the_error_says_nothing_of_the_records(off):
    texts = set()
    for rows in (np.zeros((100, 2)), np.full((3, 2), 1e300)):
        program = ClippedMean(off, [], fallback_off=off)
        data = PrivateVectors(rows, ledger=BUDGET)
        with pytest.raises(UncertifiedSolution, match="nothing was released; the budget is spent") as raised:
            release(program, data, BUDGET)
        assert program.calls == ["solve", "fallback"] and str(data.ledger.spent) == "(1, 1e-06)-DP"
        assert raised.value.__cause__ is None and raised.value.__context__ is None
        texts.add(str(raised.value))
    assert len(texts) == 1


def test_release():
    program, data = ClippedMean(1.0, []), vectors()
    result = release(program, data, BUDGET, random_state=1)
    assert result.kind == "mean" and result.reproducible and result.public["about_n_records"] == 100
    assert str(data.ledger.spent) == "(1, 1e-06)-DP" and data.ledger.entries[0].mechanism == "discrete_gaussian"
    deviation = noise_plan(program, BUDGET).standard_deviation
    assert deviation == pytest.approx(0.010002 * 4.225, rel=1e-3)
    assert np.abs(released_solution(result) - program._mean(data)).max() < 6 * deviation
    again = release(ClippedMean(0.0, []), vectors(ledger=Budget(rho=0.5)), Budget(rho=0.5), random_state=1)
    assert again.guarantee == ZCDP(0.5)
    with pytest.raises(ValueError, match="pass one of a convex program"):
        released_solution(type("R", (), {"kind": "x", "public": {}})())


def test_the_ledger_says_whom_it_protects():
    frame = pd.DataFrame({"x": [0.1, 0.2], "y": [0.3, 0.1], "person": ["a", "a"]})
    data = PrivateVectors(frame, unit="person", ledger=Budget(epsilon=2.0, delta=2e-6))
    release(ClippedMean(0.0, []), data, BUDGET)
    assert data.ledger.entries[0].unit == "person"
    with pytest.raises(ValueError, match="unit"):  # a ledger takes one unit
        release(ClippedMean(0.0, []), vectors(ledger=data.ledger), BUDGET)


def test_nothing_is_read_or_spent_on_a_refusal():
    data = vectors(ledger=Budget(epsilon=5.0, delta=0.1))
    wide = PrivateVectors(np.ones((3, 3)), ledger=BUDGET)
    for program, subject, budget, error, message in (
        (ClippedMean(0.0, []), data, Budget(epsilon=1.0), ValueError, "no pure guarantee"),
        (ClippedMean(0.0, []), data, 1.0, TypeError, "pass Budget"),
        (ClippedMean(0.0, []), np.ones((3, 2)), BUDGET, TypeError, "pass private data"),
        (ClippedMean(0.0, []), wide, BUDGET, ValueError, "two columns"),
        (ClippedMean(0.0, [], sensitivity=0.0), data, BUDGET, ValueError, "program.sensitivity=0.0"),
        (ClippedMean(0.0, [], distance=np.inf), data, BUDGET, ValueError, "program.distance=inf"),
        (ClippedMean(0.0, [], size=0), data, BUDGET, ValueError, "program.size=0"),
        (ClippedMean(0.0, [], failure=0.1), data, BUDGET, ValueError, "does not pay for a failure"),
        (ClippedMean(0.0, [], adjacency=Adjacency.EDGE), data, BUDGET, ValueError, "is for adjacency='edge'"),
        (object(), data, BUDGET, TypeError, "pass a StableProgram"),
    ):
        with pytest.raises(error, match=message):
            release(program, subject, budget)
        assert getattr(program, "calls", []) == []
    assert data.ledger.entries == ()


def test_failure_and_distance_cost_noise():
    plain, far, risky = ClippedMean(0.0, []), ClippedMean(0.0, [], distance=1e-3), ClippedMean(0.0, [], failure=1e-7)
    deviations = [noise_plan(p, BUDGET).standard_deviation for p in (plain, far, risky)]
    assert deviations[1] / deviations[0] == pytest.approx(1.2, rel=1e-3) and deviations[2] > 1.01 * deviations[0]


def boxed_optimum(a: np.ndarray, c: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """argmin of sum(a w^2/2 - c w) in a box: one coordinate at a time."""
    return np.clip(c / a, low, high)


def test_the_sensitivities_hold_and_are_not_vacuous():
    rng = np.random.default_rng(1)
    ratios: dict[str, list[float]] = {"objective": [], "set": [], "projection": []}
    for _ in range(300):
        a, c, shift = rng.uniform(1, 3, 4), rng.standard_normal(4), 0.3 * rng.standard_normal(4)
        low, high = np.full(4, -1.0), np.full(4, 1.0)
        first, second = boxed_optimum(a, c, low, high), boxed_optimum(a, c + shift, low, high)
        moved = np.linalg.norm(first - second)
        ratios["objective"].append(moved / stable_objective_sensitivity(np.linalg.norm(shift), a.min()))
        # Objective and set move: a point of one set, clipped to the other, is its partner.
        wider = high + 0.01 * rng.random(4)
        third = boxed_optimum(a, c + shift, low, wider)
        largest = np.maximum(np.abs(low), wider)
        gap = np.linalg.norm(wider - high)
        change = np.sum(largest * np.abs(shift)) + np.sum((a * largest + np.abs(c)) * (wider - high))
        alpha = max(change, a.min() * gap**2 / 4)
        ratios["set"].append(np.linalg.norm(first - third) / stable_set_sensitivity(alpha, a.min()))
        y, z = c, c + shift
        projected = np.clip(y, low, high), np.clip(z, low, high)
        along = np.sum(np.minimum(np.abs(shift), 2.0) * np.abs(shift))
        ratios["projection"].append(
            np.linalg.norm(projected[0] - projected[1]) / projection_sensitivity(np.linalg.norm(shift), along)
        )
    assert all(max(values) <= 1 for values in ratios.values())
    assert max(ratios["objective"]) > 0.8 and max(ratios["projection"]) > 0.9 and max(ratios["set"]) > 0.05


def test_certified_points_hide_their_values():
    assert "7" not in repr(CertifiedPoint(np.full(3, 7.0), 0.7)) and "shape=(3,)" in repr(
        CertifiedPoint(np.ones(3), 0.0)
    )
    assert isinstance(ClippedMean(0.0, []), StableProgram)

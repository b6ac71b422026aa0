"""Operators of records of numbers and of programs: what they refuse before the debit, and what they debit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateTable, PrivateVectors
from pgmpy_dp.gaussian.operators.precision import PrecisionProgram
from pgmpy_dp.gaussian.published.output_perturbation import lasso_solvers
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator import outside_functions
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.mathematics.certificates import CertifiedPoint
from pgmpy_dp.private.operators.solutions import (
    Solution,
    UncertifiedSolution,
    certified_solution,
    matrix_plan,
    noise_plan,
    part_of,
)
from pgmpy_dp.private.operators.vector_operators import ClippedSum, SecondMoments, UnitCount
from tests.learning.test_convex_program import ClippedMean

RHO, PURE, BOTH = Budget(rho=0.5), Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6)
ROWS = np.random.default_rng(0).normal(size=(200, 2))
PROGRAM = PrecisionProgram(2, Adjacency.ADD_REMOVE, 200, row_norm=2.0, penalty=0.5)
SOLVERS = lasso_solvers(PROGRAM)


def solved(curator, program, solvers=(), share=1, eta=0, **options):
    return curator.ask(Solution(program, solvers, **options), share, eta)


def opened(budget=RHO, kind=Curator, n_records=200, **options):
    data = PrivateVectors(ROWS, ledger=budget, n_records=n_records)
    return kind(data, budget, what="", columns=(), **options)


@pytest.mark.parametrize(
    ("ask", "error", "match"),
    [
        (lambda c: solved(c, ClippedMean(0.0, [])), TypeError, "vouch for what it says"),
        (lambda c: solved(c, PROGRAM), ValueError, "need some"),
        (lambda c: solved(c, ClippedMean(0.0, []), SOLVERS, vouched_for=True), ValueError, "others have theirs"),
        (lambda c: solved(c, object(), vouched_for=True), TypeError, "pass a StableProgram"),
        (lambda c: solved(c, PROGRAM, [("elsewhere.solver", {})]), ValueError, "not registered"),
        (lambda c: solved(c, PROGRAM, [(SOLVERS[0][0], {"S": np.ones(2)})]), TypeError, "a ndarray"),
        (lambda c: solved(c, PROGRAM, SOLVERS, eta=1e-7), ValueError, "eta=1e-07 is for a curator of epsilon"),
        (lambda c: solved(c, PROGRAM, SOLVERS, noise="double-wishart"), ValueError, "no proof for a solution"),
        (lambda c: solved(c, PROGRAM, SOLVERS, noise="frobenius"), ValueError, "is for an epsilon"),
        (lambda c: solved(c, ClippedMean(0.0, []), noise="goe", vouched_for=True), ValueError, "symmetric matrices"),
        (lambda c: solved(c, replace(PROGRAM, d=3), SOLVERS), ValueError, "made for d=3"),
        (
            lambda c: solved(c, replace(PROGRAM, adjacency=Adjacency.REPLACE_ONE), SOLVERS),
            ValueError,
            "is for adjacency='replace_one'",
        ),
        (lambda c: c.ask(UnitCount(), 1), ValueError, "is public; nothing has to be counted"),
        (lambda c: c.ask(ClippedSum([0.0], 1.0), 1), ValueError, "start has 1 entries for 2 columns"),
        (lambda c: c.ask(ClippedSum([0.0, 0.0], np.inf), 1), ValueError, "radius=inf"),
        (lambda c: c.ask(ClippedSum([0.0, 0.0], 1.0), 0), ValueError, "share=0 "),
        (lambda c: c.ask(SecondMoments([0.0, np.nan], 1.0, "goe"), 1), ValueError, "center"),
        (lambda c: c.ask(SecondMoments([0.0, 0.0], 1.0, "auto"), 1), ValueError, "name one"),
        (lambda c: c.ask(SecondMoments([0.0, 0.0], 1.0, "goe"), 1, 1e-7), ValueError, "alone need an eta"),
        (lambda c: c.ask(SecondMoments([0.0, 0.0], 1.0, "one-sided-wishart"), 1), ValueError, "alone need an eta"),
        (lambda c: c.ask(SecondMoments([0.0, 0.0], 1.0, "laplace"), 1), ValueError, "is for an epsilon"),
        (lambda c: c.ask(SecondMoments([0.0, 0.0], 1.0, "goe"), 2), BudgetExceeded, "refused"),
    ],
)
def test_nothing_is_counted_or_spent_on_a_refusal(ask, error, match, monkeypatch):
    curator = opened()
    monkeypatch.setattr("pgmpy_dp.private.data.vectors.vector_rows", None)
    monkeypatch.setattr("pgmpy_dp.private.data.moments.row_batches", None)
    with pytest.raises(error, match=match):
        ask(curator)
    assert curator.left == 1 and not curator.answers


def test_a_question_about_other_data_is_refused():
    table = PrivateTable(pd.DataFrame({"a": [0, 1]}), {"a": [0, 1]}, ledger=RHO)
    curator = Curator(table, RHO, what="", columns=())
    with pytest.raises(TypeError, match="ClippedSum is no question about a PrivateTable"):
        curator.ask(ClippedSum([0.0], 1.0), 1)
    assert curator.left == 1


def test_an_epsilon_without_a_reserve_takes_no_gaussian_noise():
    for curator in (opened(PURE), opened(BOTH, pure=True)):
        with pytest.raises(ValueError, match="no pure guarantee"):
            solved(curator, PROGRAM, SOLVERS)
    with pytest.raises(ValueError, match="of a reserve of 1e-08"):
        solved(opened(BOTH, pure=True, reserve=1e-8), PROGRAM, SOLVERS, eta=1e-6)


def test_shares_of_epsilon_and_a_part_of_the_reserve():
    curator = opened(BOTH, pure=True, reserve=1e-6, n_records=200)
    half = Fraction(1, 2)
    (values,) = solved(curator, PROGRAM, SOLVERS, half, 1e-6)
    assert values.shape == (3,) and curator.left == half
    (noise,) = curator.answers[0].noise
    assert noise == noise_plan(PROGRAM, Budget(epsilon=0.5, delta=1e-6)).noise
    curator.ask(ClippedSum([0.0, 0.0], 1.0), half)
    release = curator.release("test", {})
    assert release.guarantee == ApproxDP(1.0, 1e-6) and curator.left == 0
    with pytest.raises(BudgetExceeded):
        solved(curator, PROGRAM, SOLVERS, half, 1e-6)


def test_parts_of_costs_are_rounded_down():
    for k in range(1, 50):
        share = Fraction(k, 97)
        assert Fraction(part_of(ZCDP(0.1), share).rho) <= share * Fraction(0.1)
        assert Fraction(part_of(PureDP(0.3), share).epsilon) <= share * Fraction(0.3)


def test_a_program_that_can_fail_has_no_matrix_noise():
    @dataclass(frozen=True)
    class Risky(PrecisionProgram):
        failure: ClassVar[float] = 1e-9  # type: ignore[assignment]

    program = Risky(2, Adjacency.ADD_REMOVE, 200, 2.0, 0.5)
    with pytest.raises(ValueError, match="do not fail"):
        matrix_plan(program, "goe", RHO)
    # A subclass from outside is not of the boundary, whatever it inherits: it could say another sensitivity.
    with pytest.raises(TypeError, match="vouch"):
        solved(opened(), program, SOLVERS)


@pytest.mark.parametrize("distance", [1e-6, 0.01, 0.3])
def test_the_noise_is_for_solutions_away_from_their_optima_on_both_sides(distance):
    """Two optima at the sensitivity, each released at the distance on its far side, on a line and on the grid."""
    program = ClippedMean(0.0, [], distance=distance)
    moved = Fraction(program.sensitivity) + 2 * Fraction(distance)
    grid = noise_plan(program, RHO)
    assert moved <= (Fraction(grid.l2) - Fraction(np.sqrt(2))) * Fraction(grid.step) * (1 + Fraction(1, 10**9))
    assert grid.l2 * grid.step < float(moved) * 1.001
    assert Fraction(grid.l2) ** 2 / (2 * Fraction(grid.noise.scale) ** 2) <= Fraction(RHO.rho)


@pytest.mark.parametrize("mechanism", ["goe", "frobenius"])
def test_a_matrix_s_noise_is_for_its_rounding_too(mechanism):
    """Of each of d**2 entries a neighbour's may be rounded the other way: by one unit in all."""
    budget = RHO if mechanism == "goe" else PURE
    plan = matrix_plan(PROGRAM, mechanism, budget)
    moved = Fraction(PROGRAM.sensitivity) + 2 * Fraction(PROGRAM.distance)
    assert moved / Fraction(plan.unit) + PROGRAM.d <= Fraction(plan.frobenius)
    assert Fraction(plan.frobenius) <= (moved / Fraction(plan.unit) + PROGRAM.d) * (1 + Fraction(1, 10**8))
    spent = plan.frobenius**2 / (2 * plan.noise.scale**2) if mechanism == "goe" else plan.frobenius / plan.noise.scale
    assert spent <= (budget.rho or budget.epsilon) * (1 + 1e-12)


@pytest.mark.parametrize(("says", "released"), [(1e-6, True), (1.0000001e-6, False), (np.nan, False), (np.inf, False)])
def test_only_what_is_certified_within_the_distance_is_released(says, released):
    program = ClippedMean(says, [], fallback_off=np.inf)
    data = PrivateVectors(ROWS, ledger=RHO)
    if released:
        assert certified_solution(program, data).shape == (2,)
    else:
        with pytest.raises(UncertifiedSolution):
            certified_solution(program, data)


class TestMeanwhile:
    """While a solver is at work no curator of the data answers, and what it does shows nowhere."""

    def attempt(self, monkeypatch, solver, **options):
        monkeypatch.setitem(outside_functions._FUNCTIONS, "test.solver", solver)
        monkeypatch.setattr(outside_functions, "_kept_state", lambda function: "")
        monkeypatch.setattr(
            "pgmpy_dp.private.operators.solutions.named_function", outside_functions._FUNCTIONS.__getitem__
        )
        curator = opened(**options)
        return curator, lambda: solved(curator, PROGRAM, [("test.solver", {}), *SOLVERS])

    def test_no_curator_of_the_data_answers_and_none_is_opened(self, monkeypatch):
        seen = []

        def solver(moments):
            acts = [
                lambda: other.ask(ClippedSum([0.0, 0.0], 1.0), 1),
                lambda: Curator(data, RHO, what="", columns=()),
            ]
            for act in acts:
                with pytest.raises(RuntimeError, match="sees these records now") as raised:
                    act()
                seen.append(raised.value)
            return {}

        curator, ask = self.attempt(monkeypatch, solver)
        data = curator._data
        data._ledger = PrivateVectors(ROWS, ledger=Budget(rho=5.0)).ledger
        other = Curator(data, RHO, what="", columns=())
        assert ask()[0].shape == (3,) and len(seen) == 2

    @pytest.mark.parametrize("error", [ValueError, np.linalg.LinAlgError, Warning, StopIteration])
    def test_errors_and_warnings_are_dropped(self, error, monkeypatch, recwarn):
        def solver(moments):
            warnings.warn(f"of {moments[0, 0]}", stacklevel=1)
            raise error(f"of {moments[0, 0]}")

        _, ask = self.attempt(monkeypatch, solver)
        assert ask()[0].shape == (3,) and not recwarn.list

    @pytest.mark.parametrize("error", [MemoryError, SystemExit, KeyboardInterrupt, GeneratorExit])
    def test_what_ends_the_request_says_nothing(self, error, monkeypatch):
        def solver(moments):
            raise error(f"of {moments[0, 0]}")

        curator, ask = self.attempt(monkeypatch, solver)
        shown = SystemExit if error is GeneratorExit else error
        with pytest.raises(shown, match="nothing was released, and the share is spent") as raised:
            ask()
        assert raised.value.__context__ is None and curator.left == 0 and not curator.answers


class Column(ClippedMean):
    """Of a user's own: a symmetric matrix as a column, which would be broadcast against the noise."""

    symmetric = True

    def solve(self, records):
        return CertifiedPoint(np.array([[0.1], [np.nan], [np.inf]]), 0.0)


def test_every_number_has_noise_of_its_own_whatever_the_shape():
    curator = opened(PURE)
    diagonal, rest = solved(curator, Column(0.0, [], size=3), noise="frobenius", vouched_for=True)
    assert diagonal.shape == (2,) and rest.shape == (1,)


def test_a_value_that_is_kept_by_its_solver_is_copied():
    kept = np.zeros(2)

    class Keeps(ClippedMean):
        def solve(self, records):
            return CertifiedPoint(kept, 0.0)

    value = certified_solution(Keeps(), None)
    kept[:] = 1e9
    assert not value.any()


@pytest.mark.parametrize("failure", [-0.1, float("nan"), 1.0])
def test_a_probability_of_failure_is_one(failure):
    with pytest.raises(ValueError, match=r"program\.failure"):
        noise_plan(ClippedMean(failure=failure), BOTH)


def test_numbers_of_the_precision_program_are_nobody_elses_to_change():
    with pytest.raises(TypeError, match="n_records"):
        replace(PROGRAM, n_records=np.array(200))  # an array of no axes can be another number later
    small = replace(PROGRAM, d=np.int8(100), n_records=np.int16(200))
    assert type(small.d) is type(small.n_records) is int and small.size == 5050

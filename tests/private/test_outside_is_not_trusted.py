"""Wrong numbers from outside the boundary change no exact statistic and let no uncertified point out."""

from __future__ import annotations

import importlib
import itertools
import math
import pkgutil
import sys
import types

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import estimators
from pgmpy_dp.communities.operators.graph import PrivateGraph, adjacency_matrix, neighbour_sums
from pgmpy_dp.fields.operators import parities
from pgmpy_dp.fields.operators.parities import parity_misfits
from pgmpy_dp.fields.votes.block_graphs import plan_blocks
from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso
from pgmpy_dp.gaussian.operators.precision import PrecisionProgram
from pgmpy_dp.gaussian.published import output_perturbation
from pgmpy_dp.mixtures.operators.cluster_operators import ClusterSums
from pgmpy_dp.mixtures.operators.vector_sums import clipped_cluster_sums
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.outside_functions import named_function
from pgmpy_dp.private.data.gradients import ClippingGrid, sampled_gradient_sum
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.operators import regressions
from pgmpy_dp.private.operators.solutions import UncertifiedSolution, certified_solution
from pgmpy_dp.private.operators.worst_fit import misfit_scores
from pgmpy_dp.private.sensitive import Sensitive
from pgmpy_dp.schema import Schema
from tests.settings import vote_settings


def wrong(value):
    """Three times every number of a result."""
    if (isinstance(value, np.ndarray) and value.dtype.kind in "if") or isinstance(value, int | float):
        return value if isinstance(value, bool) else 3 * value
    return type(value)(map(wrong, value)) if type(value) in (tuple, list) else value


def outside() -> dict[int, types.FunctionType]:
    """Every public function that models and solvers are made of, by its identity."""
    found = {}
    rooms = ("inference", "learning", "models", *estimators._SUBJECTS)
    for package in (importlib.import_module(f"pgmpy_dp.{room}") for room in rooms):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if ".operators" in info.name:
                continue  # inside: the trusted part of a subject
            module = importlib.import_module(info.name)
            for name, function in vars(module).items():
                own = isinstance(function, types.FunctionType) and function.__module__ == info.name
                if own and not name.startswith("_"):
                    found[id(function)] = function
    return found


@pytest.fixture
def wreck(monkeypatch):
    """Call it, and all of them return three times what they should, wherever in the package they were imported."""

    def applied() -> int:
        functions, replaced = outside(), 0
        for module in [m for name, m in sys.modules.items() if name.startswith("pgmpy_dp.")]:
            for name, value in list(vars(module).items()):
                if id(value) in functions and functions[id(value)] is value:
                    wrapped = lambda *a, _f=value, **k: wrong(_f(*a, **k))  # noqa: E731
                    monkeypatch.setattr(module, name, wrapped)
                    replaced += 1
        return replaced

    return applied


RNG = np.random.default_rng(0)
BITS = RNG.integers(2, size=(1500, 4)).astype(np.uint8)  # so many that parities come from a transform
STATES = np.stack([RNG.integers(k, size=300) for k in (2, 3, 4)], axis=1).astype(np.uint8)
FAMILY = ((0,), (1,), (0, 1), (1, 2, 3))


def statistics() -> dict[str, Sensitive | int]:
    """Exact statistics whose mathematics was once outside, or whose arguments come from there."""
    found: dict[str, Sensitive | int] = {"flipped": parities.flipped_in_family.__wrapped__(FAMILY)}
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        found[f"parities {adjacency}"] = parities.parity_sums_and_count(BITS, 4, adjacency, True)
        found[f"family {adjacency}"] = parities.parity_sums_and_count(BITS, FAMILY, adjacency)
        layout = regressions_layout()
        found[f"weight {adjacency}"] = regressions.selection_weight(layout, adjacency, ZCDP(1.0))
        sums = regressions.GradientSums(STATES, layout, adjacency, 3)
        still = np.zeros(layout.n_regressions, dtype=np.int64)
        found[f"regressions {adjacency}"] = sums.after(still, still + 1, regressions.residual_table(0.5, 3))
    return found


def regressions_layout():
    from pgmpy_dp.fields.published.regression_layout import regression_layout

    return regression_layout("pairwise", [2, 3, 4])


def test_exact_statistics_and_sensitivities_do_not_depend_on_what_is_outside(wreck):
    before = statistics()
    assert parities.parity_count(4, 4) * -(-len(BITS) // 64) > 4 * 4 << 4  # the transform's branch
    assert wreck() > 100
    for name, after in statistics().items():
        if isinstance(after, int):
            assert after == before[name], name
        else:
            assert np.array_equal(after.value, before[name].value), name
            assert (after.l1, after.l2, after.linf) == (before[name].l1, before[name].l2, before[name].linf), name


class Solution:
    """What a solver returns, with whatever it says of itself."""

    def __init__(self, **said):
        self.__dict__.update(said)


ROWS = np.random.default_rng(1).normal(size=(400, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.4], [0.0, 0.0, 0.9]])


def lasso_results():
    """Results of a solver that is wrong, each with a gap of nothing."""
    d, tau = 3, 5.0
    rng = np.random.default_rng(2)
    root = rng.normal(size=(d, d))
    good = root @ root.T + np.eye(d)
    return {
        "another matrix": (good, np.linalg.inv(good)),
        "beyond the cap": (100 * tau * np.eye(d), np.eye(d)),
        "not positive": (-good, good),
        "singular": (np.ones((d, d)), np.ones((d, d))),
        "not symmetric": (root, root.T),
        "zeros": (np.zeros((d, d)), np.zeros((d, d))),
        "not a number": (np.full((d, d), np.nan), np.eye(d)),
        "infinite": (np.eye(d), np.full((d, d), -np.inf)),
        "overflowing": (np.full((d, d), 1e308), np.full((d, d), 1e308)),
        "another shape": (np.eye(2), np.eye(4)),
        "a dual without bounds": (np.eye(d) / 7, 7 * np.eye(d)),
        "nothing": (None, "W"),
    }


class TestPrecision:
    def program(self):
        data = PrivateVectors(ROWS, ledger=Budget(rho=1.0), n_records=len(ROWS))
        program = PrecisionProgram(3, Adjacency.ADD_REMOVE, len(ROWS), row_norm=3.0, penalty=0.2)
        return program, data

    def solve(self, program, data):
        name, arguments = output_perturbation.lasso_solvers(program)[0]
        exact = program.exact(data)
        return program.certified(exact, named_function(name)(exact.copy(), **arguments))

    def optimum(self, program, data):
        """From another call of the solver, far more exactly."""
        penalty = np.full((3, 3), 0.2)
        moments = program.exact(data)
        found = graphical_lasso(moments, penalty, penalize_diagonal=True, max_eigenvalue=program.cap, tolerance=1e-13)
        return found.precision[np.triu_indices(3)]

    @pytest.mark.parametrize("name", lasso_results())
    def test_no_word_of_the_solver_is_believed(self, name, monkeypatch):
        program, data = self.program()
        exact = self.optimum(program, data)
        found, dual = lasso_results()[name]
        said = Solution(precision=found, dual=dual, duality_gap=0.0, converged=True)
        monkeypatch.setattr(output_perturbation, "graphical_lasso", lambda *a, **k: said)
        with np.errstate(all="ignore"):
            point = self.solve(program, data)
            away = np.linalg.norm(point.value - exact)
        assert point.distance >= away and away > program.distance  # so it is not released

    def test_what_is_released_is_near_the_optimum_whatever_was_said_before(self, monkeypatch):
        program, data = self.program()
        exact = self.optimum(program, data)
        results = list(lasso_results().values())

        def solver(*arguments, **options):
            if not results:
                return graphical_lasso(*arguments, **options)
            if len(results) % 2:
                results.pop()
                raise FloatingPointError("of these records")
            found, dual = results.pop()
            return Solution(precision=found, dual=dual, duality_gap=0.0, converged=True)

        monkeypatch.setattr(output_perturbation, "graphical_lasso", solver)
        released = certified_solution(program, data, output_perturbation.lasso_solvers(program))
        assert not results and np.linalg.norm(released - exact) <= program.distance

    @pytest.mark.parametrize("odd", ["too large", "raises", "numpy's errors"])
    def test_an_odd_result_is_no_result_and_nothing_of_it_is_heard(self, odd, monkeypatch):
        program, data = self.program()
        calls = []

        class Raises:
            def __array__(self, *arguments, **options):
                raise RuntimeError("of these records: 42")

        def solver(*arguments, **options):
            calls.append(odd)
            found = graphical_lasso(*arguments, **options)
            if len(calls) > 1:
                return found
            if odd == "numpy's errors":
                np.seterr(all="raise")
                return Solution(precision=np.full((3, 3), 1e308), dual=np.eye(3), duality_gap=0.0, converged=True)
            numbers = [[10**400] * 3] * 3 if odd == "too large" else Raises()
            return Solution(precision=numbers, dual=found.dual, duality_gap=0.0, converged=True)

        monkeypatch.setattr(output_perturbation, "graphical_lasso", solver)
        released = certified_solution(program, data, output_perturbation.lasso_solvers(program))
        assert len(calls) == 2 and np.linalg.norm(released - self.optimum(program, data)) <= program.distance

    def test_a_solver_that_changes_its_arguments_changes_nothing(self, monkeypatch):
        program, data = self.program()

        def solver(moments, penalty, **options):
            moments *= 3
            return graphical_lasso(moments, penalty, **options)

        monkeypatch.setattr(output_perturbation, "graphical_lasso", solver)
        with pytest.raises(UncertifiedSolution):  # what it solved is not what is certified
            certified_solution(program, data, output_perturbation.lasso_solvers(program))


class TestPublicNumbers:
    """Of released values and outside functions; nothing of the records decides whether they are refused."""

    @pytest.mark.parametrize(
        "marks",
        [
            np.full((4, 1), 3),
            np.full((4, 1), -128, dtype=np.int8),  # its absolute value is itself
            np.full((4, 1), np.iinfo(np.int64).min),
            np.full((4, 2), 1),
            np.ones((4, 1)),
        ],
        ids=["three", "int8", "int64", "two", "floats"],
    )
    def test_marks_of_vertices(self, marks):
        matrix = adjacency_matrix(PrivateGraph(nx.path_graph(4), ledger=Budget(epsilon=1.0)))
        with pytest.raises(ValueError, match="at most one 1 or -1"):
            neighbour_sums(matrix, marks)

    def test_expected_tables(self):
        def table(cells):
            return Sensitive(np.array(cells), Adjacency.ADD_REMOVE, 1.0, 1.0, 1.0)

        pair = table([[5, 0], [0, 1]]), table([[5, 0], [0, 2]])
        for shape in ((3, 2, 2), (2,), ()):
            with pytest.raises(ValueError, match="expected tables have the shapes"):
                misfit_scores(pair[:1], [np.zeros(shape)])
        for value in (np.nan, np.inf, -np.inf, 1e300):
            first, second = (misfit_scores([t], [np.full((2, 2), value)]).value[0] for t in pair)
            assert abs(int(first) - int(second)) <= 1

    def test_answers_of_all_parities(self):
        for value, signed in itertools.product((np.nan, np.inf, -np.inf, 1e300), (False, True)):
            one, other = (
                parity_misfits(
                    Sensitive(np.full(2, k), Adjacency.ADD_REMOVE, 2.0, 2.0, 1.0), np.full(2, value), signed=signed
                ).value
                for k in (0, 1)
            )
            assert signed or (one >= 0).all()
            assert max(abs(int(a) - int(b)) for a, b in zip(one, other, strict=True)) <= 1
        with pytest.raises(ValueError, match="expected has the shape"):  # one public sum for two would be two
            parity_misfits(Sensitive(np.zeros(2, int), Adjacency.ADD_REMOVE, 2.0, 2.0, 1.0), np.zeros(1), signed=True)

    def test_grids_of_gradients(self):
        frame = pd.DataFrame({"a": [0, 1] * 5, "b": [0, 1] * 5})
        table = PrivateTable(frame, {"a": [0, 1], "b": [0, 1]}, ledger=Budget(rho=1.0))
        scopes = [("a",), ("a", "b")]

        def everybody(codes):
            return np.arange(len(codes))

        exact = sampled_gradient_sum(table, scopes, np.full(6, 0.5), ClippingGrid(1.0, 2, 6), everybody)
        assert exact.value.shape == (6,)
        for tables, cells, marginals in ((1, 6, 6), (2, 5, 6), (2, 6, 7)):
            with pytest.raises(ValueError, match="the grid is for"):
                sampled_gradient_sum(
                    table, scopes, np.full(marginals, 0.5), ClippingGrid(1.0, tables, cells), everybody
                )

    def test_centres(self):
        rows = np.array([[1.0, 2.0], [3.0, 4.0]])
        data = [PrivateVectors(r, ledger=Budget(rho=1.0)) for r in (rows, rows[:1], rows[:0])]
        for value in (np.nan, np.inf, -np.inf, 1e300):
            centres = np.array([[value, value], [0.0, 0.0], [value, 1.0]])
            found = [clipped_cluster_sums(d, centres, 1.0, 1 << 16) for d in data]
            for (counts, sums), (fewer, smaller) in itertools.pairwise(found):
                assert np.abs(counts - fewer).sum() == 1
                assert np.linalg.norm((sums - smaller).astype(float)) <= 1 << 16
        for d in data:
            curator = Curator(d, Budget(rho=1.0), what="sums", columns=d.columns)
            for wrong in (np.zeros((2, 3)), np.zeros((0, 2)), np.zeros(2)):
                with pytest.raises(ValueError, match="centres have the shape"):
                    curator.ask(ClusterSums(wrong, 1.0), 1)
            assert curator.left == 1

    def test_scores_of_a_block(self, monkeypatch):
        learner = plan_blocks(Schema({"a": [0, 1], "b": [0, 1], "c": [0, 1]}), vote_settings(1.0, 0.1))
        codes = np.array([[0, 0, 1]] * 9 + [[1, 1, 0]] * 9, dtype=np.uint8)
        assert learner.graph(codes)
        for scores in (np.ones((9, 9)), np.ones(3), np.full((3, 3), math.nan), None):
            monkeypatch.setattr(type(learner), "scores", lambda self, codes, scores=scores: scores)
            assert learner.graph(codes) is None

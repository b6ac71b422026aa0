"""Replay of the learners of records by gradients: steps on samples, Frank-Wolfe, the pseudo-likelihood."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy import config

from pgmpy_dp.auditing.replay import INVENTED, invented, replay
from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivatePairwise, PrivateSGD
from pgmpy_dp.plans import frank_wolfe, gradient, pseudo_likelihood
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import fields, mechanism
from pgmpy_dp.private.curator import gradients as curators
from pgmpy_dp.private.data import gradients, regressions
from pgmpy_dp.private.data import pseudo_likelihood as sums
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.noise import subsampling
from pgmpy_dp.private.sensitive import Sensitive


@pytest.fixture(autouse=True)
def without_progress():
    """A bar is shown where a fit takes more than a second, which is no matter of records."""
    before = config.get_show_progress()
    config.set_show_progress(False)
    yield
    config.set_show_progress(before)


BINARY = {name: [0, 1] for name in "abc"}
TWO = {name: [0, 1] for name in "ab"}
MANY = {"a": ["x", "y", "z"], "b": [0, 1], "c": [False, True]}
PURE, RHO, DELTA = Budget(epsilon=1.0), Budget(rho=0.5), Budget(epsilon=1.0, delta=1e-3)
LARGE = Budget(rho=1e5)
EDGES = [("a", "b")]
N_RECORDS = 31  # public and believed, not the true number


def options(budget: Budget, adjacency: str, states) -> dict:
    n_records = N_RECORDS if adjacency == "replace_one" else None
    return {
        **{"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho},
        **{"state_names": states, "adjacency": adjacency, "n_records": n_records},
    }


def sgd(data, budget, adjacency, **more):
    estimator = PrivateSGD(**options(budget, adjacency, MANY), n_steps=4, batch_rate=0.3, **more)
    return estimator.fit(nx.Graph([("a", "b"), ("b", "c")]), data)


def one_table(data, budget, adjacency):
    """Gradients of two records that differ in the only variable are opposite, and longer than the clip norm."""
    n_records = N_RECORDS if adjacency == "replace_one" else None
    table = PrivateTable(data, TWO, adjacency=adjacency, ledger=budget, n_records=n_records)
    return gradient.run(table, gradient.GradientSettings([("a",)], clip_norm=0.3, n_steps=3, batch_rate=0.3), budget)


def field(estimator, states, **more):
    def fit(data, budget, adjacency):
        return estimator(**options(budget, adjacency, states), **more).fit(data)

    return fit


def walk(family: str, states, order: int = 2, graph=None, width: float = 8.0, n_iter: int | None = 6):
    """The plan itself: regressions with large weights, whose residuals are whole."""

    def fit(data, budget, adjacency):
        n_records = N_RECORDS if adjacency == "replace_one" else None
        table = PrivateTable(data, states, adjacency=adjacency, ledger=budget, n_records=n_records)
        settings = frank_wolfe.FrankWolfeSettings(width, family, order, graph, n_iter)
        return frank_wolfe.run(table, settings, budget)

    return fit


def ascent(family: str, states, order: int = 2, graph=None, **more):
    def fit(data, budget, adjacency):
        n_records = N_RECORDS if adjacency == "replace_one" else None
        table = PrivateTable(data, states, adjacency=adjacency, ledger=budget, n_records=n_records)
        settings = pseudo_likelihood.PseudoLikelihoodSettings(family, 2.0, order, graph, n_steps=6, **more)
        return pseudo_likelihood.run(table, settings, budget)

    return fit


FW = {"method": "frank-wolfe", "n_iter": 4}
PL = {"method": "gradient", "n_iter": 4}
FITS = {
    "sgd": (sgd, MANY, (DELTA, RHO)),
    "one table": (one_table, TWO, (DELTA, RHO)),
    "Ising, frank-wolfe": (field(PrivateIsing, BINARY, width=2.0, **FW), BINARY, (PURE, RHO, DELTA)),
    "Ising, gradient": (field(PrivateIsing, BINARY, width=2.0, **PL), BINARY, (RHO,)),
    "pairwise, gradient": (field(PrivatePairwise, MANY, width=2.0, **PL), MANY, (DELTA,)),
    "pairwise, frank-wolfe": (field(PrivatePairwise, MANY, width=2.0, **FW), MANY, (PURE, RHO)),
    "binary, frank-wolfe": (field(PrivateBinaryMRF, BINARY, width=2.0, order=3, **FW), BINARY, (PURE, RHO)),
    "binary, gradient": (field(PrivateBinaryMRF, BINARY, width=2.0, order=3, **PL), BINARY, (RHO,)),
    "walk, ising": (walk("ising", BINARY), BINARY, (PURE, RHO, LARGE)),
    "walk, two": (walk("ising", TWO), TWO, (LARGE,)),
    "walk, ising, graph": (walk("ising", BINARY, graph=EDGES), BINARY, (PURE, LARGE)),
    "walk, count": (walk("ising", BINARY, width=0.1, n_iter=None), BINARY, (PURE,)),
    "walk, pairwise": (walk("pairwise", MANY), MANY, (PURE, RHO, LARGE)),
    "walk, pairwise, graph": (walk("pairwise", MANY, graph=EDGES), MANY, (RHO,)),
    "walk, binary": (walk("binary", BINARY, 3), BINARY, (PURE, LARGE)),
    "ascent": (ascent("ising", BINARY), BINARY, (RHO,)),
    "ascent, clipped": (ascent("ising", BINARY, clip_norm=0.5, sparse=False), BINARY, (RHO, DELTA)),
    "ascent, fields": (ascent("ising", BINARY, graph=[("a",), ("b",), ("c",)], clip_norm=0.5), BINARY, (RHO,)),
    "ascent, pairwise": (ascent("pairwise", MANY, clip_norm=0.5), MANY, (RHO,)),
    "ascent, binary": (ascent("binary", BINARY, 3, EDGES), BINARY, (RHO,)),
}
ODD = (None, float("nan"), "", "?", 10**400, -0.0, "\ud800", b"x", ("x",), object)
"""Cells that no column of these tables expects."""


def pairs(adjacency: str, states):
    """Neighbours that are known to be hard, then random ones, in both directions."""
    rng = np.random.default_rng(1)
    names = list(states)
    first, last = ([states[name][place] for name in names] for place in (0, -1))
    crossed = [states[name][-(k % 2)] for k, name in enumerate(names)]

    def frame(rows):
        return pd.DataFrame({name: pd.Series([row[k] for row in rows], dtype=object) for k, name in enumerate(names)})

    def pair(rows, odd, instead):
        return (
            (frame(rows), frame([*rows, odd]))
            if adjacency == "add_remove"
            else (
                frame([*rows, instead]),
                frame([*rows, odd]),
            )
        )

    yield pair([], first, last)
    yield pair([first] * 15 + [last] * 15, crossed, [states[name][-((k + 1) % 2)] for k, name in enumerate(names)])
    yield pair([first] * 30, last, first)[::-1]
    for k, cell in enumerate(ODD):
        rows = [[states[name][rng.integers(len(states[name]))] for name in names] for _ in range(10)]
        odd = [*first]
        odd[k % len(odd)] = cell
        found = pair(rows, odd, last)
        yield found if k % 2 else found[::-1]


CASES = [(name, budget) for name, (*_, budgets) in FITS.items() for budget in budgets]


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_every_pair_holds_and_bounds_are_attained(adjacency):
    most: dict[str, float] = {}
    kinds = ("drawn", *INVENTED)
    for number, (name, budget) in enumerate(CASES):
        fit, states, _ = FITS[name]
        slow = not name.startswith(("walk", "ascent", "one"))
        for k, (data, neighbour) in enumerate(itertools.islice(pairs(adjacency, states), 4 if slow else None)):
            kind = kinds[(k + number) % len(kinds)] if k > 1 else "drawn"
            if kind == "huge" and name == "walk, count":
                continue  # a trillion records ask for 10,000 steps
            answers = None if kind == "drawn" else invented(kind, k)
            report = replay(lambda d: fit(d, budget, adjacency), data, neighbour, answers=answers)  # noqa: B023
            assert report.holds, (name, budget, k, kind, str(report))
            for operator, ratio in report.movement.items():
                most[operator] = max(most.get(operator, 0.0), ratio)
    counts = {"count", "record_count"} if adjacency == "add_remove" else set()
    assert set(most) == {"step", "vertices", "gradient", *counts}
    assert min(most.values()) >= 0.99, most


def found(name: str, budget: Budget = RHO, adjacency: str = "add_remove", place: int = 1, learner=None) -> str:
    fit, states, _ = FITS[name]
    data, neighbour = next(itertools.islice(pairs(adjacency, states), place, None))
    run = fit if learner is None else learner
    return "; ".join(replay(lambda d: run(d, budget, adjacency), data, neighbour).problems)


class TestMutantsOfTheBoundary:
    def test_no_mutant_no_problem(self):
        assert [found("sgd"), found("walk, ising", LARGE), found("ascent, clipped")] == ["", "", ""]

    @pytest.mark.parametrize("budget", [DELTA, RHO])
    def test_a_halved_sensitivity_of_sampled_steps(self, budget, monkeypatch):
        true = gradients.bounded_sum
        monkeypatch.setattr(gradients, "bounded_sum", lambda value, a, bound: true(value, a, bound // 2))
        problems = found("sgd", budget)
        assert "step: noise of scale" in problems and "step: exact statistics moved by" in problems

    def test_a_step_that_is_not_clipped(self, monkeypatch):
        true = curators.GradientCurator.__init__

        def narrow(self, *a, **k):
            true(self, *a, **k)
            self._grid = gradients.ClippingGrid(8 * self._grid.clip_norm, self._grid.n_tables, self._grid.n_cells)
            object.__setattr__(self, "bound", self.bound)

        monkeypatch.setattr(curators.GradientCurator, "__init__", narrow)
        monkeypatch.setattr(gradients, "bounded_sum", lambda v, a, _: Sensitive(v, a, 1.0, 1.0, 1.0))
        assert "step: exact statistics moved by" in found("sgd")

    def test_more_noise_is_noticed_than_the_schedule_asks_for(self, monkeypatch):
        true = curators.GradientCurator.__init__

        def noisy(self, *a, **k):
            true(self, *a, **k)
            self.scale *= 1.1

        monkeypatch.setattr(curators.GradientCurator, "__init__", noisy)
        assert "step: noise of scale" in found("sgd", DELTA)

    def test_coins_by_position(self, monkeypatch):
        """A sample of the even places: an odd record in front moves all others."""

        def by_place(self, codes):
            return np.arange(0, len(codes), 2)

        monkeypatch.setattr(curators.GradientCurator, "_coins", by_place)
        many = pd.DataFrame({"a": ["x", "z"] * 9, "b": [0, 1] * 9, "c": [False, True] * 9}, dtype=object)
        front = pd.concat([many[:1], many], ignore_index=True)
        assert "exact statistics moved by" in "; ".join(
            replay(lambda d: sgd(d, RHO, "add_remove"), many, front).problems
        )

    def test_a_sample_of_another_rate(self, monkeypatch):
        true = curators.GradientCurator._sample

        def telling(self, units, count, rate):
            return true(self, units, count, rate if count % 2 else subsampling.rounded_rate(0.9))

        monkeypatch.setattr(curators.GradientCurator, "_sample", telling)
        assert "another rate" in found("sgd")

    @pytest.mark.parametrize("budget", [PURE, LARGE])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_half_of_what_selections_weigh(self, budget, adjacency, monkeypatch):
        true = regressions.selection_weight
        monkeypatch.setattr(fields, "selection_weight", lambda *a: max(1, true(*a) // 2))
        assert "vertices: noise of scale" in found("walk, ising", budget, adjacency)

    def test_selections_whose_noise_covers_one_direction_alone(self, monkeypatch):
        true = mechanism.selection_scale
        monkeypatch.setattr(mechanism, "selection_scale", lambda *a: true(*a) / 2)
        assert "vertices: noise of scale" in found("walk, ising")

    def test_gradients_of_regressions_times_three(self, monkeypatch):
        true = regressions.GradientSums.after

        def tripled(self, *a):
            exact = true(self, *a)
            return Sensitive(3 * exact.value, exact.adjacency, exact.l1, exact.l2, exact.linf)

        monkeypatch.setattr(regressions.GradientSums, "after", tripled)
        assert "vertices: exact statistics moved by" in found("walk, ising")

    def test_means_in_the_place_of_sums(self, monkeypatch):
        true = regressions.GradientSums.after

        def mean(self, *a):
            exact = true(self, *a)
            n = max(self._engine._logits.shape[1], 1)
            return Sensitive(exact.value * (60 // n), exact.adjacency, exact.l1, exact.l2, exact.linf)

        monkeypatch.setattr(regressions.GradientSums, "after", mean)
        assert "vertices: exact statistics moved by" in found("walk, ising")

    def test_a_pseudo_likelihood_that_is_not_clipped(self, monkeypatch):
        monkeypatch.setattr(sums, "_weights", lambda codes, residuals, grid: np.full(len(codes), 256.0))
        assert "gradient: exact statistics moved by" in found("ascent, clipped")

    def test_a_halved_sensitivity_of_the_pseudo_likelihood(self, monkeypatch):
        true = fields.gradient_sum

        def halved(*a):
            exact = true(*a)
            return Sensitive(exact.value, exact.adjacency, exact.l1 / 2, exact.l2 / 2, exact.linf / 2)

        monkeypatch.setattr(fields, "gradient_sum", halved)
        problems = found("ascent, clipped")
        assert "gradient: exact statistics moved by" in problems and "gradient: noise of scale" in problems

    def test_a_count_with_half_the_noise(self, monkeypatch):
        true = fields.record_count

        def halved(table):
            exact = true(table)
            return Sensitive(exact.value, exact.adjacency, 0.5, 0.5, 0.5)

        monkeypatch.setattr(fields, "record_count", halved)
        assert "record_count: exact statistics moved by 2" in found("walk, count", PURE)


class TestMutantsOfPlans:
    """A plan that reads the records: in what it asks for, and after its last request."""

    def test_a_step_at_parameters_of_the_data(self, monkeypatch):
        true = curators.GradientCurator.step

        def peeking(self, parameters):
            return true(self, np.asarray(parameters) + 1e-9 * len(self._data._codes))

        monkeypatch.setattr(curators.GradientCurator, "step", peeking)
        assert "step: its arguments differ" in found("sgd")

    def test_a_slope_of_the_data(self, monkeypatch):
        true = fields.RegressionPath.vertices

        def peeking(self, rows, moves, slope, share):
            return true(self, rows, moves, slope * (1 + len(self._curator._data._codes) % 2), share)

        monkeypatch.setattr(fields.RegressionPath, "vertices", peeking)
        assert "vertices: its arguments differ" in found("walk, ising")

    def test_a_number_of_steps_of_the_data(self):
        def peeking(data, budget, adjacency):
            return walk("ising", BINARY, n_iter=5 + len(data) % 2)(data, budget, adjacency)

        assert found("walk, ising", learner=peeking)

    def test_after_the_last_request(self):
        def peeking(data, budget, adjacency):
            return ascent("ising", BINARY)(data, budget, adjacency), len(data)

        assert "result differs" in found("ascent", learner=peeking)

    def test_a_warning_about_a_record(self, monkeypatch):
        import warnings

        true = frank_wolfe.descend

        def warned(curator, *rest):
            if (np.diff(curator._data._codes.astype(int), axis=1) != 0).any():
                warnings.warn("an unusual record", stacklevel=1)
            return true(curator, *rest)

        monkeypatch.setattr(frank_wolfe, "descend", warned)
        assert "warned differs" in found("walk, ising")

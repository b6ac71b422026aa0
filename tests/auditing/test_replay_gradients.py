"""Replay of the learners of records by gradients: steps on samples, Frank-Wolfe."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.auditing.replay import replay
from pgmpy_dp.fields import frank_wolfe
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import mechanism
from pgmpy_dp.private.curator import schedule as curators
from pgmpy_dp.private.curator.observer import Coins
from pgmpy_dp.private.data import gradients
from pgmpy_dp.private.noise import subsampling
from pgmpy_dp.private.operators import record_count as counted
from pgmpy_dp.private.operators import regression_path, regressions
from pgmpy_dp.private.sensitive import Sensitive
from tests.auditing.replay_cases import run_replays
from tests.auditing.replay_gradients import (
    DELTA,
    GRADIENT_FITS,
    LARGE,
    PURE,
    RHO,
    gradient_cases,
    gradient_pairs,
    walk,
)
from tests.auditing.replay_parities import BINARY


@pytest.mark.parametrize("turns", [12, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_the_catalogue_holds_and_attains_every_bound(adjacency, turns):
    most: dict[str, float] = {}
    for item in run_replays([case for case in gradient_cases() if adjacency in case.name], turns=turns):
        assert item.report.holds, item
        for operator, ratio in item.report.movement.items():
            most[operator] = max(most.get(operator, 0.0), ratio)
    counts = {"count", "record_count"} if adjacency == "add_remove" else set()
    assert set(most) == {"step", "vertices", *counts}
    assert min(most.values()) >= 0.99, most


def found(name: str, budget: Budget = RHO, adjacency: str = "add_remove", place: int = 0, learner=None) -> str:
    fit, states, _ = GRADIENT_FITS[name]
    rng = np.random.default_rng(1)
    data, neighbour = next(itertools.islice(gradient_pairs(rng, adjacency, states), place, None))
    run = fit if learner is None else learner
    return "; ".join(replay(lambda d: run(d, budget, adjacency), data, neighbour).problems)


class TestMutantsOfTheBoundary:
    def test_no_mutant_no_problem(self):
        assert [found("sgd"), found("walk, ising", LARGE)] == ["", ""]

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

        monkeypatch.setattr(curators.GradientCurator, "__init__", narrow)
        monkeypatch.setattr(gradients, "bounded_sum", lambda v, a, _: Sensitive(v, a, 1.0, 1.0, 1.0))
        assert "step: exact statistics moved by" in found("sgd")

    def test_more_noise_is_noticed_than_the_schedule_asks_for(self, monkeypatch):
        true = curators.GradientCurator.__init__

        def noisy(self, *a, **k):
            true(self, *a, **k)
            self._scale *= 1.1

        monkeypatch.setattr(curators.GradientCurator, "__init__", noisy)
        assert "step: noise of scale" in found("sgd", DELTA)

    def test_coins_by_position(self, monkeypatch):
        """A sample of the even places: an odd record in front moves all others."""

        def by_place(self, codes):
            return np.arange(0, len(codes), 2)

        monkeypatch.setattr(curators.GradientCurator, "_taking_part", by_place)
        many = pd.DataFrame({"a": ["x", "z"] * 9, "b": [0, 1] * 9, "c": [False, True] * 9}, dtype=object)
        front = pd.concat([many[:1], many], ignore_index=True)
        assert "exact statistics moved by" in "; ".join(
            replay(lambda d: GRADIENT_FITS["sgd"][0](d, RHO, "add_remove"), many, front).problems
        )

    def test_a_sample_of_another_rate(self, monkeypatch):
        true = Coins.sample

        def telling(self, units, count, rate):
            return true(self, units, count, rate if count % 2 else subsampling.rounded_rate(0.9))

        monkeypatch.setattr(Coins, "sample", telling)
        assert "another rate" in found("sgd")

    @pytest.mark.parametrize("budget", [PURE, LARGE])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_half_of_what_selections_weigh(self, budget, adjacency, monkeypatch):
        true = regressions.selection_weight
        monkeypatch.setattr(regression_path, "selection_weight", lambda *a: max(1, true(*a) // 2))
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

    def test_a_count_with_half_the_noise(self, monkeypatch):
        true = counted.record_count

        def halved(table, **how):
            exact = true(table, **how)
            return Sensitive(exact.value, exact.adjacency, 0.5, 0.5, 0.5)

        monkeypatch.setattr(counted, "record_count", halved)
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
        true = regression_path.RegressionPath.vertices

        def peeking(self, rows, moves, slope, share):
            return true(self, rows, moves, slope * (1 + len(self._curator._data._codes) % 2), share)

        monkeypatch.setattr(regression_path.RegressionPath, "vertices", peeking)
        assert "vertices: its arguments differ" in found("walk, ising")

    def test_a_number_of_steps_of_the_data(self):
        def peeking(data, budget, adjacency):
            return walk("ising", BINARY, n_iter=5 + len(data) % 2)(data, budget, adjacency)

        assert found("walk, ising", learner=peeking)

    def test_after_the_last_request(self):
        def peeking(data, budget, adjacency):
            return walk("ising", BINARY)(data, budget, adjacency), len(data)

        assert "result differs" in found("walk, ising", learner=peeking)

    def test_a_warning_about_a_record(self, monkeypatch):
        import warnings

        true = frank_wolfe.descend

        def warned(curator, *rest):
            if (np.diff(curator._data._codes.astype(int), axis=1) != 0).any():
                warnings.warn("an unusual record", stacklevel=1)
            return true(curator, *rest)

        monkeypatch.setattr(frank_wolfe, "descend", warned)
        assert "warned differs" in found("walk, ising")

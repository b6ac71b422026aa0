"""Clipped gradient sums against a naive twin, their sensitivity by exhaustive neighbours, the learner end to end."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pgmpy_dp.estimators import PrivateSGD
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import schedule as curators
from pgmpy_dp.private.data import gradients
from pgmpy_dp.private.data.gradients import ClippingGrid, clipped_sum, sampled_gradient_sum
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.noise.subsampling import RATE_UNIT, poisson_sample, rounded_rate
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.tables.collective.published.gradient_ascent import parameters, run
from tests.settings import table_settings

sgd_settings = partial(table_settings, estimator=PrivateSGD)

STATES = {"a": [0, 1], "b": ["x", "y", "z"], "c": [True, False]}
SCOPES = [("a", "b"), ("c", "b"), ("c",)]
CLIQUES = Cliques(("a", "b", "c"), (2, 3, 2), tuple(SCOPES))
# Every record of the schema, and two that are dropped.
RECORDS = [*itertools.product([0, 1], ["x", "y", "z"], [True, False]), (0, "?", True), (None, "x", True)]
DELTA = Budget(epsilon=1.0, delta=1e-3)
LARGE = Budget(epsilon=1e6, delta=0.9)


def frame(rows) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(STATES), dtype=object)


def table(rows, adjacency="add_remove", ledger=LARGE, n_records=None) -> PrivateTable:
    n_records = len(rows) if n_records is None and adjacency == "replace_one" else n_records
    return PrivateTable(frame(rows), STATES, adjacency=adjacency, ledger=ledger, n_records=n_records)


def marginals(strength: float, seed: int = 0) -> np.ndarray:
    theta = strength * np.random.default_rng(seed).normal(size=CLIQUES.n_cells)
    return LogLinearModel(CLIQUES, theta).marginals()


def indicator(record) -> np.ndarray:
    """e(x), the slow and obvious way."""
    value = dict(zip(STATES, record, strict=True))
    tables = []
    for scope in SCOPES:
        cells = itertools.product(*(STATES[name] for name in scope))
        tables += [float(cell == tuple(value[name] for name in scope)) for cell in cells]
    return np.array(tables)


def naive_sum(rows, mu: np.ndarray, clip_norm: float) -> np.ndarray:
    """One gradient per record, clipped one by one."""
    total = np.zeros(CLIQUES.n_cells)
    for record in rows:
        if record in RECORDS[:12]:
            g = indicator(record) - mu
            total += g * min(1.0, clip_norm / max(np.linalg.norm(g), 1e-300))
    return total


def whole_sum(rows, mu: np.ndarray, grid: ClippingGrid, adjacency="add_remove"):
    return sampled_gradient_sum(table(rows, adjacency), SCOPES, mu, grid, lambda codes: np.arange(len(codes)))


class TestClippedSum:
    @pytest.mark.parametrize("clip_norm", [0.2, 0.9, math.sqrt(3), 10.0])
    @pytest.mark.parametrize("strength", [0.0, 1.0, 8.0])
    def test_naive_twin(self, clip_norm, strength):
        rng = np.random.default_rng(1)
        rows = [RECORDS[k] for k in rng.integers(0, len(RECORDS), 300)]
        mu = marginals(strength)
        grid = ClippingGrid(clip_norm, 3, CLIQUES.n_cells)
        rounded = grid.rounded_marginals(mu) * 2.0**-grid.marginal_bits
        ours = whole_sum(rows, mu, grid).value * grid.unit
        # Weights are rounded down by less than 2**-10 each; a gradient has norm at most sqrt(6).
        np.testing.assert_allclose(ours, naive_sum(rows, rounded, clip_norm), rtol=0, atol=300 * 2.0**-10 * 2.5)
        assert np.abs(rounded - mu).max() <= 2.0 ** -(grid.marginal_bits + 1)
        assert np.abs(ours).max() > 1 or clip_norm == 0.2

    @given(st.floats(0.1, 50), st.floats(0, 20), st.integers(0, 10**6), st.integers(0, 11))
    def test_one_record_is_clipped_exactly_and_as_little_as_the_grid_allows(self, clip_norm, strength, seed, record):
        mu = marginals(strength, seed)
        grid = ClippingGrid(clip_norm, 3, CLIQUES.n_cells)
        vector = [int(v) for v in whole_sum([RECORDS[record]], mu, grid).value]  # Python integers: exact
        norm = sum(v * v for v in vector)
        assert norm <= grid.bound**2
        assert Fraction(grid.bound) * Fraction(grid.unit) <= Fraction(clip_norm)
        m = [int(v) for v in grid.rounded_marginals(mu)]
        top = 1 << grid.marginal_bits
        whole = [int(e) * top - v for e, v in zip(indicator(RECORDS[record]), m, strict=True)]
        squared = sum(v * v for v in whole)
        weight = next(k for k in range(1024, -1, -1) if k * k * squared <= grid.bound**2)
        assert vector == [weight * v for v in whole]

    @pytest.mark.parametrize(
        ("strength", "clip_norm"),
        [
            pytest.param(strength, clip_norm, marks=[pytest.mark.slow] if (i + j) % 2 else [])
            for i, strength in enumerate((0.0, 2.0, 20.0))
            for j, clip_norm in enumerate((0.2, 1.0, math.sqrt(3), 10.0))
        ],
    )
    def test_sensitivity_by_exhaustive_neighbours(self, clip_norm, strength):
        mu = marginals(strength)
        grid = ClippingGrid(clip_norm, 3, CLIQUES.n_cells)
        sums = {}

        def exact(*rows):
            rows = tuple(sorted(rows, key=str))
            if rows not in sums:
                sums[rows] = whole_sum(rows, mu, grid).value.astype(object)
            return sums[rows]

        def moved(first, second):
            return int(((first - second) ** 2).sum())

        add = max(moved(exact(*rest, x), exact(*rest)) for rest in [(), *zip(RECORDS)] for x in RECORDS)
        pairs = itertools.combinations(RECORDS, 2)
        swap = max(moved(exact(*rest, x), exact(*rest, y)) for x, y in pairs for rest in [(), *zip(RECORDS[::5])])
        for adjacency, most in (("add_remove", add), ("replace_one", swap)):
            claimed = changed_records(Adjacency(adjacency)) * grid.bound
            assert most <= claimed**2
            stated = whole_sum([RECORDS[0]], mu, grid, adjacency)
            assert stated.l2 == claimed == {"add_remove": 1, "replace_one": 2}[adjacency] * grid.bound
            assert stated.linf <= stated.l2 <= stated.l1
        if clip_norm <= 1:  # then every gradient is clipped, and the claim is reached but for the weights' grid
            assert add >= (0.99 * grid.bound) ** 2

    def test_opposite_gradients_need_twice_the_norm(self):
        cells = np.array([[0], [1]])
        grid = ClippingGrid(0.5, 1, 2)
        first, second = (clipped_sum(cells[k : k + 1], grid.rounded_marginals(np.full(2, 0.5)), grid) for k in (0, 1))
        assert math.sqrt(((first - second) ** 2).sum()) > 1.99 * grid.bound

    def test_a_record_that_the_model_is_certain_of_moves_nothing(self):
        grid = ClippingGrid(1.0, 1, 2)
        assert clipped_sum(np.array([[1]]), grid.rounded_marginals(np.array([0.0, 1.0])), grid).tolist() == [0, 0]

    def test_order_and_partition_do_not_matter(self):
        grid = ClippingGrid(1.0, 3, CLIQUES.n_cells)
        mu = marginals(1.0)
        rows = RECORDS * 5
        parts = whole_sum(rows[:13], mu, grid).value + whole_sum(rows[13:], mu, grid).value
        assert (whole_sum(rows[::-1], mu, grid).value == parts).all()

    @pytest.mark.parametrize("limit", [1, 1 << 32, 1 << 62])
    def test_clamped_sums_are_those_of_unlimited_integers(self, limit, monkeypatch):
        monkeypatch.setattr(gradients, "_LIMIT", limit)
        grid = ClippingGrid(1.0, 3, CLIQUES.n_cells)
        mu = marginals(1.0)
        each = [whole_sum([r], mu, grid).value.astype(object) for r in RECORDS]
        monkeypatch.undo()
        true = sum(whole_sum([r], mu, grid).value.astype(object) for r in RECORDS)
        monkeypatch.setattr(gradients, "_LIMIT", limit)
        assert (whole_sum(RECORDS, mu, grid).value == np.clip(true, -limit, limit)).all()
        assert max(abs(v) for value in each for v in value) <= limit

    def test_marginals_that_are_not_numbers_break_no_bound(self):
        grid = ClippingGrid(1.0, 3, CLIQUES.n_cells)
        for odd in (np.nan, np.inf, -np.inf, -3.0, 7.0):
            value = whole_sum([RECORDS[0]], np.full(CLIQUES.n_cells, odd), grid).value.astype(object)
            assert (value**2).sum() <= grid.bound**2

    @pytest.mark.parametrize(("clip_norm", "tables", "cells"), [(1e-9, 1, 2), (1e9, 1, 2), (1.0, 1, 10**17)])
    def test_grids_without_room_are_refused(self, clip_norm, tables, cells):
        with pytest.raises(ValueError, match="clip_norm="):
            ClippingGrid(clip_norm, tables, cells)


class TestSampling:
    @pytest.mark.parametrize("rate", [1 / RATE_UNIT, 0.003, 0.25, 0.3, 1 - 1 / RATE_UNIT])
    def test_each_record_has_its_rate(self, rate):
        rate = rounded_rate(rate)
        hits = len(poisson_sample(200_000, rate))
        assert binom.cdf(hits, 200_000, rate) > 1e-9 and binom.sf(hits - 1, 200_000, rate) > 1e-9

    def test_coins_are_those_of_the_bytes(self):
        class Bytes:
            def __init__(self):
                self.blocks = [bytes([0, 76, 77, 255, 76]), bytes([203, 204])]

            def bytes(self, n):
                block = self.blocks.pop(0)
                assert len(block) == n
                return block

        # 0.3 is 76 * 256 + 205 of 65536: a first byte 76 needs a second one below 205.
        assert rounded_rate(0.3) * RATE_UNIT == 76 * 256 + 205
        assert poisson_sample(5, rounded_rate(0.3), rng=Bytes()).tolist() == [0, 1, 4]

    def test_records_are_independent(self):
        draws = np.zeros((4000, 4))
        for row in draws:
            row[poisson_sample(4, 0.5)] = 1
        correlation = np.corrcoef(draws.T) - np.eye(4)
        assert np.abs(correlation).max() < 5.5 / math.sqrt(4000)

    @pytest.mark.parametrize("n", [0, 1, 10])
    def test_ends(self, n, monkeypatch):
        assert poisson_sample(n, 1.0).tolist() == list(range(n))
        monkeypatch.setattr("pgmpy_dp.private.noise.subsampling._CHUNK", 3)
        sample = poisson_sample(n, 0.5)
        assert (np.diff(sample) > 0).all() and len(sample) <= n

    @pytest.mark.parametrize("rate", [0.0, 1.5, 0.1])
    def test_rates_off_the_grid(self, rate):
        with pytest.raises(ValueError, match="rounded_rate"):
            poisson_sample(3, rate)


class TestScalesAndGuarantees:
    def test_add_remove(self):
        release = run(table(RECORDS, n_records=14), sgd_settings(SCOPES, batch_rate=0.1), DELTA)
        path = release.public["path"]
        assert release.guarantee == ApproxDP(1.0, 1e-3) and release.noise == (None,)
        assert path["batch_rate"] == rounded_rate(0.1)
        spent = accounting.subsampled_gaussian_epsilon(path["noise_multiplier"], path["batch_rate"], 200, 1e-3)
        assert 0.98 < spent <= 1.0

    def test_a_noisy_count_is_paid_for(self):
        settings = sgd_settings(SCOPES, batch_rate=0.1, count_share=0.2)
        release = run(table(RECORDS), settings, DELTA)
        rho = 0.2 * accounting.approx_to_zcdp(1.0, 1e-3)
        assert release.noise[1].scale == pytest.approx(math.sqrt(1 / (2 * rho)))
        path = release.public["path"]
        spent = accounting.subsampled_gaussian_epsilon(path["noise_multiplier"], path["batch_rate"], 200, 1e-3, rho=rho)
        assert 0.98 < spent <= 1.0
        free = run(table(RECORDS, n_records=14), settings, DELTA).public["path"]["noise_multiplier"]
        assert 1.05 * free < path["noise_multiplier"] < 1.25 * free

    def test_replace_one_is_a_removal_and_an_addition(self):
        release = run(table(RECORDS, "replace_one"), sgd_settings(SCOPES, batch_rate=0.1), DELTA)
        path = release.public["path"]
        delta = 1e-3 / (1 + math.exp(0.5))
        spent = accounting.subsampled_gaussian_epsilon(path["noise_multiplier"], path["batch_rate"], 200, delta)
        assert 0.49 < spent <= 0.5 and release.guarantee == ApproxDP(1.0, 1e-3)

    @pytest.mark.parametrize(("adjacency", "changed"), [("add_remove", 1), ("replace_one", 2)])
    def test_rho(self, adjacency, changed):
        subject = table(RECORDS, adjacency, Budget(rho=0.5), n_records=14)
        release = run(subject, sgd_settings(SCOPES, n_steps=50), Budget(rho=0.5))
        assert release.guarantee == ZCDP(0.5) and release.public["path"]["batch_rate"] == 1.0
        assert release.public["path"]["noise_multiplier"] == pytest.approx(changed * math.sqrt(50 / (2 * 0.5)))

    def test_the_noise_added_is_the_noise_accounted_for(self, monkeypatch):
        scales = []
        true = samplers.discrete_gaussian
        monkeypatch.setattr(samplers, "discrete_gaussian", lambda v, s, rng: scales.append(s) or true(v, s, rng=rng))
        release = run(table(RECORDS, n_records=14), sgd_settings(SCOPES, clip_norm=0.7, n_steps=9), DELTA)
        path = release.public["path"]
        grid = ClippingGrid(0.7, 3, CLIQUES.n_cells)
        assert len(scales) == 9 and path["clip_norm"] == grid.bound * grid.unit <= 0.7
        assert min(scales) >= path["noise_multiplier"] * grid.bound


class TestWhatIsReleased:
    def test_contents(self, tmp_path):
        subject = table(RECORDS * 20)
        release = run(subject, sgd_settings(SCOPES), DELTA)
        assert release.kind == "log_potentials" and release.scopes == tuple(SCOPES)
        assert [v.shape for v in release.values] == [(CLIQUES.n_cells,), (1,)]
        release.save(tmp_path / "r.npz")
        again = Release.load(tmp_path / "r.npz")
        assert again == release and again.noise == release.noise
        assert (parameters(again) == parameters(release)).all()
        (entry,) = subject.ledger.entries
        assert entry.cost == ApproxDP(1.0, 1e-3) and entry.columns == ("a", "b", "c")
        assert entry.what == "200 gradient steps for 3 tables" and not entry.reproducible

    def test_other_kinds_have_no_parameters(self):
        from pgmpy_dp.learning import noisy_tables as other

        with pytest.raises(ValueError, match="kind 'marginals'"):
            parameters(other.run(table(RECORDS), table_settings(SCOPES), Budget(epsilon=1.0)))

    @pytest.mark.parametrize("rows", [[], RECORDS[12:]], ids=["no records", "all dropped"])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_nobody(self, rows, adjacency):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            release = run(table(rows, adjacency), sgd_settings(SCOPES, n_steps=20), DELTA)
        theta = parameters(release)
        assert np.isfinite(theta).all() and np.abs(theta).max() <= 50

    def test_much_budget_learns_the_likelihood_s_maximum(self):
        rng = np.random.default_rng(5)
        rows = [RECORDS[k] for k in rng.choice(12, 3000, p=rng.dirichlet(np.ones(12)))]
        settings = sgd_settings(SCOPES, batch_rate=1.0, n_steps=600, learning_rate=5.0, clip_norm=3.0)
        release = run(table(rows, n_records=3000), settings, LARGE)
        learned = LogLinearModel(CLIQUES, parameters(release)).marginals()
        shares = sum(indicator(r) for r in rows) / len(rows)
        np.testing.assert_allclose(learned, shares, atol=2e-3)

    def test_seeds(self):
        settings = sgd_settings(SCOPES, random_state=3, n_steps=20)
        with pytest.warns(ReproducibleNoiseWarning, match="random_state=3"):
            first = run(table(RECORDS), settings, DELTA)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert run(table(RECORDS), settings, DELTA) == first
        assert first.reproducible
        unseeded = sgd_settings(SCOPES, n_steps=20)
        assert run(table(RECORDS), unseeded, DELTA) != run(table(RECORDS), unseeded, DELTA)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"n_steps": 0}, ValueError, "n_steps=0"),
            ({"n_steps": 2.5}, TypeError, "n_steps=2.5"),
            ({"n_steps": True}, TypeError, "n_steps=True"),
            ({"batch_rate": 0.0}, ValueError, "batch_rate=0.0"),
            ({"batch_rate": 1.5}, ValueError, "batch_rate=1.5"),
            ({"clip_norm": -1}, ValueError, "clip_norm=-1"),
            ({"clip_norm": "1"}, TypeError, "clip_norm='1'"),
            ({"learning_rate": math.inf}, ValueError, "learning_rate=inf"),
            ({"random_state": -1}, ValueError, "random_state=-1"),
            ({"scopes": "ab"}, TypeError, "scopes='ab'"),
        ],
    )
    def test_settings(self, arguments, error, message):
        with pytest.raises(error, match=message):
            sgd_settings(**{"scopes": SCOPES, **arguments})

    @pytest.mark.parametrize(
        ("settings", "budget", "error", "message"),
        [
            ({}, Budget(epsilon=1.0), ValueError, "delta=0.*no pure guarantee"),
            ({"scopes": [("a", "?")]}, DELTA, ValueError, "unknown variables '\\?'"),
            ({"clip_norm": 1e-6}, DELTA, ValueError, "clip_norm=1e-06"),
            ({"memory_limit": 10}, DELTA, InferenceTooLarge, "memory_limit=10"),
            ({"n_steps": 10**6, "batch_rate": 1.0}, Budget(epsilon=1e-4, delta=1e-9), ValueError, "n_steps=1000000"),
            ({}, Budget(epsilon=1.5, delta=1e-3), BudgetExceeded, "asked"),
        ],
    )
    def test_before_the_charge(self, settings, budget, error, message):
        subject = table(RECORDS, ledger=Ledger(DELTA), n_records=14)
        with pytest.raises(error, match=message):
            run(subject, sgd_settings(**{"scopes": SCOPES, **settings}), budget)
        assert subject.ledger.entries == ()

    def test_not_a_table_not_a_budget(self):
        with pytest.raises(TypeError, match="PrivateTable"):
            run(frame(RECORDS), sgd_settings(SCOPES), DELTA)
        with pytest.raises(TypeError, match="pass a Budget"):
            run(table(RECORDS), sgd_settings(SCOPES), 1.0)

    @pytest.mark.parametrize("step", ["sampled_gradient_sum", "record_count"])
    def test_charged_before_anything_is_counted(self, step, monkeypatch):
        subject = table(RECORDS)
        monkeypatch.setattr(curators, step, lambda *a, **k: pytest.fail(f"charged {len(subject.ledger.entries)}"))
        with pytest.raises(pytest.fail.Exception, match="charged 1"):
            run(subject, sgd_settings(SCOPES), DELTA)

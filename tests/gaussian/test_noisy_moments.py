"""Releases of second moments and of precision matrices: what they spend, hold, refuse, and how far they can move."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.estimators import PrivateGraphicalLasso
from pgmpy_dp.gaussian import noisy_moments
from pgmpy_dp.gaussian.graphical_lasso import graphical_lasso
from pgmpy_dp.gaussian.noisy_moments import noisy_covariance
from pgmpy_dp.gaussian.operators.precision import PrecisionProgram
from pgmpy_dp.gaussian.published import output_perturbation
from pgmpy_dp.gaussian.published.output_perturbation import noisy_precision
from pgmpy_dp.learning import convex_program
from pgmpy_dp.learning.convex_program import released_solution
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.outside_functions import named_function
from pgmpy_dp.private.data.vectors import PrivateVectors
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise.matrix import MECHANISMS
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.operators.solutions import UncertifiedSolution, certified_solution, matrix_plan
from pgmpy_dp.private.sensitive import Release
from tests.gaussian.test_graphical_lasso import uncapped_distance_bound
from tests.private import audit
from tests.settings import settings


def covariance(row_norm, mechanism="auto", center=None, **more):
    """Settings of noise on second moments."""
    return settings(PrivateGraphicalLasso, row_norm=row_norm, mechanism=mechanism, center=center, **more)


def precision(row_norm, penalty, max_eigenvalue=None, **more):
    """Settings of noise on the output."""
    given = {"row_norm": row_norm, "penalty": penalty, "max_eigenvalue": max_eigenvalue, **more}
    return settings(PrivateGraphicalLasso, perturb="output", **given)


RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(4000, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.3, 1.0]]) + [1.0, -2.0, 0.5]
PLENTY = Budget(epsilon=1e5, delta=1e-6)


def program_of(settings, d, adjacency, n):
    return PrecisionProgram(
        d, adjacency, n, settings.row_norm, settings.penalty, settings.max_eigenvalue, settings.center
    )


def vectors(rows=ROWS, budget=PLENTY, **options) -> PrivateVectors:
    return PrivateVectors(rows, ledger=budget, **options)


class TestCovariance:
    @pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "analytic-goe"])  # refuses exp(1e5)
    def test_with_a_large_budget_it_is_the_second_moments_of_clipped_records(self, mechanism):
        center = np.array([1.0, -2.0, 0.5])
        release = noisy_moments.run(vectors(), covariance(2.0, mechanism, center, random_state=0), PLENTY)
        noisy = noisy_covariance(release)
        moved = ROWS - center
        clipped = moved * np.minimum(1.0, 2.0 / np.linalg.norm(moved, axis=1, keepdims=True))
        # The one-sided Wishart's scale is fixed: even the smallest has noise.
        slack = 1e-2 if mechanism == "one-sided-wishart" else 5e-4
        np.testing.assert_allclose(noisy.covariance, clipped.T @ clipped / len(ROWS), atol=slack)
        np.testing.assert_array_equal(noisy.location, center)
        assert noisy.n_records == pytest.approx(len(ROWS), abs=1)
        # Of the law that it has: "double_wishart" was made in floating point.
        law = "discrete_wishart" if mechanism in ("auto", "double-wishart") else mechanism.replace("-", "_")
        assert release.mechanism == law

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_a_release_that_takes_all_of_a_ledger_has_the_exact_formula(self, adjacency):
        budget, rows = Budget(epsilon=1.0, delta=1e-6), np.tile(ROWS, 10)  # of few columns pure noise is less
        options = {"adjacency": adjacency, "n_records": len(rows)}
        whole, part = vectors(rows, budget, **options), vectors(rows, Budget(epsilon=2.0, delta=1e-6), **options)
        settings = covariance(5.0, random_state=0)
        first, second = (noisy_moments.run(data, settings, budget) for data in (whole, part))
        assert (first.mechanism, second.mechanism) == ("analytic_goe", "goe")
        assert first.guarantee == ApproxDP(1.0, 1e-6) == whole.ledger.entries[0].cost
        assert second.guarantee == ZCDP(approx_to_zcdp(1.0, 1e-6))
        assert whole.ledger.left == PureDP(0.0)
        saved = 1.0 - noisy_covariance(first).sd / noisy_covariance(second).sd
        assert saved == pytest.approx(0.0675, abs=0.001)
        for more in (part, vectors(rows, budget, **options)):  # what is named is what is used
            named = noisy_moments.run(more, covariance(5.0, "goe", random_state=0), Budget(epsilon=0.5, delta=1e-6))
            assert named.mechanism == "goe"

    def test_the_exact_formula_is_refused_where_the_grid_is_not_fine_enough_for_delta(self):
        for budget in (Budget(epsilon=1.0, delta=1e-18), Budget(epsilon=40.0, delta=1e-9), Budget(epsilon=1.0)):
            data = vectors(budget=budget)
            with pytest.raises(ValueError, match="mechanism='analytic-goe' cannot give"):
                noisy_moments.run(data, covariance(5.0, "analytic-goe"), budget)
            assert not data.ledger.entries

    def test_a_private_centre_is_the_mean_of_clipped_records_and_moves_the_moments_around_it(self):
        settings = covariance(4.0, center="private", center_radius=3.0)
        noisy = noisy_covariance(noisy_moments.run(vectors(), settings, PLENTY))
        clipped = ROWS * np.minimum(1.0, 3.0 / np.linalg.norm(ROWS, axis=1, keepdims=True))
        np.testing.assert_allclose(noisy.location, clipped.mean(axis=0), atol=1e-3)
        around = ROWS - noisy.location
        around *= np.minimum(1.0, 4.0 / np.linalg.norm(around, axis=1, keepdims=True))
        np.testing.assert_allclose(noisy.covariance, around.T @ around / len(ROWS), atol=2e-3)

    def test_a_noisy_mean_outside_of_its_ball_is_drawn_back(self):
        settings = covariance(1.0, center="private", center_radius=0.5, random_state=3)
        release = noisy_moments.run(vectors(ROWS[:2], Budget(epsilon=0.01)), settings, Budget(epsilon=0.01))
        assert np.linalg.norm(release.values[2]) > np.linalg.norm(noisy_covariance(release).location)
        assert np.linalg.norm(noisy_covariance(release).location) == pytest.approx(0.5)

    @pytest.mark.parametrize(
        ("budget", "cost"),
        [
            (Budget(epsilon=0.5), PureDP(0.5)),
            (Budget(rho=0.1), ZCDP(0.1)),
            (Budget(epsilon=0.5, delta=1e-6), PureDP(0.5)),  # three columns: the double Wishart is better
        ],
    )
    @pytest.mark.parametrize("center", [{}, {"center": "private", "center_radius": 1.0}])
    def test_it_charges_the_budget_once_before_the_noise(self, budget, cost, center, monkeypatch):
        data = vectors(budget=budget)
        release = noisy_moments.run(data, covariance(1.0, **center), budget)
        assert release.guarantee == cost
        (entry,) = data.ledger.entries
        assert (entry.cost, entry.columns, entry.mechanism) == (cost, (0, 1, 2), release.mechanism)
        with pytest.raises(BudgetExceeded):
            noisy_moments.run(data, covariance(1.0, **center), budget)
        assert len(data.ledger.entries) == 1

    def test_shares_of_matrix_mean_and_number_add_up(self):
        """Each noise's scale, turned back into what it spends, for pure and zCDP budgets."""
        settings = covariance(1.0, center="private", center_radius=1.0)
        for adjacency, n_records, changed in (("add_remove", None, 1), ("replace_one", 4000, 2)):
            pure = noisy_moments.run(
                vectors(adjacency=adjacency, n_records=n_records, budget=Budget(epsilon=1.0)),
                settings,
                Budget(epsilon=1.0),
            )
            grid = pure.public["grid"]
            spent = changed * grid**2 * 2 * math.sqrt(2) / 2 / pure.noise[1].scale  # sd = sqrt(2 (d + 1)) c
            spent += changed * math.sqrt(3) * grid / pure.noise[2].scale
            spent += sum(1.0 / noise.scale for noise in pure.noise[3:])
            assert spent == pytest.approx(1.0, rel=1e-9)
            rho = noisy_moments.run(
                vectors(adjacency=adjacency, n_records=n_records, budget=Budget(rho=1.0)), settings, Budget(rho=1.0)
            )
            spent = changed * grid**4 / (2 * rho.noise[0].scale ** 2)
            spent += (changed * grid) ** 2 / (2 * rho.noise[2].scale ** 2)
            spent += sum(0.5 / noise.scale**2 for noise in rho.noise[3:])
            assert spent == pytest.approx(1.0, rel=1e-9)
            assert len(rho.noise) == (4 if n_records is None else 3)

    def test_an_approximate_cost_where_the_mechanism_has_one(self):
        budget = Budget(epsilon=1.0, delta=1e-6)
        release = noisy_moments.run(vectors(budget=budget), covariance(1.0, "one-sided-wishart"), budget)
        assert release.guarantee == ApproxDP(1.0, 1e-6)
        goe = noisy_moments.run(vectors(budget=budget), covariance(1.0, "goe"), budget)
        assert goe.guarantee == ZCDP(approx_to_zcdp(1.0, 1e-6))

    def test_the_noise_that_is_declared_is_the_noise(self):
        """Of many seeded releases; 6 standard errors."""
        rows = ROWS[:50]
        settings = [
            covariance(3.0, mechanism, random_state=k) for mechanism in ("double-wishart", "goe") for k in range(150)
        ]
        budget = Budget(epsilon=1.0, delta=1e-6)
        for mechanism in ("double-wishart", "goe"):
            chosen = [
                noisy_covariance(noisy_moments.run(vectors(rows, budget, n_records=50), s, budget))
                for s in settings
                if s.mechanism == mechanism
            ]
            values = np.array([noisy.covariance for noisy in chosen])
            on, off = values[:, range(3), range(3)].std(axis=0), values[:, [0, 0, 1], [1, 2, 2]].std(axis=0)
            assert off == pytest.approx(chosen[0].sd, rel=6 * 0.07)
            assert on == pytest.approx(chosen[0].diagonal_sd, rel=6 * 0.07)

    def test_persons(self):
        frame = pd.DataFrame(ROWS[:60], columns=list("abc")).assign(who=np.repeat(np.arange(6), 10))
        data = PrivateVectors(frame, unit="who", ledger=PLENTY)
        release = noisy_moments.run(data, covariance(9.0), PLENTY)
        assert (release.unit, data.ledger.entries[0].unit) == ("who", "who")
        noisy = noisy_covariance(release)
        assert noisy.n_records == pytest.approx(6, abs=1)
        np.testing.assert_allclose(noisy.covariance * noisy.n_records / 6, ROWS[:60].T @ ROWS[:60] / 60, atol=0.01)
        with pytest.raises(ValueError, match="single records"):
            noisy_moments.run(data, covariance(9.0, "one-sided-wishart"), PLENTY)
        assert len(data.ledger.entries) == 1

    def test_a_release_survives_a_file(self, tmp_path):
        settings = covariance(3.0, center="private", center_radius=1.0)
        release = noisy_moments.run(vectors(), settings, PLENTY)
        release.save(tmp_path / "release.npz")
        loaded = Release.load(tmp_path / "release.npz")
        assert loaded == release
        np.testing.assert_array_equal(noisy_covariance(loaded).covariance, noisy_covariance(release).covariance)
        with pytest.raises(ValueError, match="kind 'covariance'"):
            noisy_precision(release)

    def test_seeds_are_marked_and_warn(self):
        data = vectors()
        with pytest.warns(ReproducibleNoiseWarning):
            release = noisy_moments.run(data, covariance(1.0, random_state=0), PLENTY)
        assert release.reproducible and not data.ledger.private

    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"row_norm": None}, ValueError, "row_norm=None: pass the public bound"),
            ({"row_norm": 0.0}, ValueError, "row_norm=0.0"),
            ({"row_norm": -1.0}, ValueError, "row_norm=-1.0"),
            ({"row_norm": math.inf}, ValueError, "row_norm=inf"),
            ({"row_norm": 1e200}, ValueError, "row_norm=1e.200"),
            ({"row_norm": "1"}, TypeError, "row_norm='1'"),
            ({"mechanism": "wishart"}, ValueError, "mechanism='wishart'"),
            ({"center": "mean"}, ValueError, "center='mean'"),
            ({"center": 3.0}, TypeError, "center=3.0"),
            ({"center": [0.0, math.nan, 0.0]}, ValueError, r"center\[1\]"),
            ({"center": [0.0]}, ValueError, "center has 1 entries for 3 columns"),
            ({"center": "private"}, ValueError, "needs center_radius"),
            ({"center": "private", "center_radius": 0.0}, ValueError, "center_radius=0.0"),
            ({"center_radius": 1.0}, ValueError, "is for center='private'"),
            ({"random_state": -1}, ValueError, "random_state=-1"),
        ],
    )
    def test_bad_arguments_cost_nothing(self, options, error, match):
        data = vectors()
        with pytest.raises(error, match=match):
            noisy_moments.run(data, covariance(**{"row_norm": 1.0, **options}), PLENTY)
        assert data.ledger.entries == ()

    def test_wrong_types_and_impossible_noise_cost_nothing(self):
        data = vectors(budget=Budget(rho=1.0))
        with pytest.raises(TypeError, match="pass PrivateVectors"):
            noisy_moments.run(ROWS, covariance(1.0), PLENTY)
        with pytest.raises(TypeError, match=r"budget=1\.0"):
            noisy_moments.run(data, covariance(1.0), 1.0)
        with pytest.raises(ValueError, match="is for an epsilon"):
            noisy_moments.run(data, covariance(1.0, "laplace"), Budget(rho=0.5))
        with pytest.raises(ValueError, match="noise of scale"):
            noisy_moments.run(data, covariance(1.0), Budget(rho=1e-16))
        assert data.ledger.entries == ()


@pytest.mark.slow  # replay holds sensitivities, scales and shares; test_matrix.py attacks the noise
class TestWholeReleaseAudit:
    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=0.5)], ids=str)
    def test_a_record_against_none(self, budget):
        """Everything that is released with a private mean and number, attacked by the best linear statistic."""
        settings = [covariance(1.0, center="private", center_radius=1.0, random_state=k) for k in range(30_000)]
        seeds = iter(settings)

        def draw(dataset, count):
            rows = np.array([[5.0, 0.0]])[: 1 - dataset]
            rows = rows.reshape(-1, 2)
            releases = [noisy_moments.run(vectors(rows, budget), next(seeds), budget) for _ in range(count)]
            return np.array([[r.values[0][0], r.values[2][0], r.values[3][0]] for r in releases], dtype=float)

        example = noisy_moments.run(vectors(budget=budget), settings[-1], budget)
        scales = [math.sqrt(example.noise[k].variance) for k in (0, 2, 3)]
        grid = example.public["grid"]

        def score(outputs):
            # The record's own shares, in standard deviations of each noise.
            return outputs @ (np.array([0.5 * grid**2, grid, 1.0]) / np.array(scales) ** 2)

        bound = audit.rho_bound if budget.rho else audit.epsilon_bound
        measured = audit.audit(draw, score, releases=1500, bound=bound)
        assert measured <= (budget.rho or budget.epsilon)


class TestPrecision:
    SETTINGS = precision(2.0, penalty=0.2)

    def exact(self, rows, settings=SETTINGS, n=None):
        clipped = rows * np.minimum(1.0, settings.row_norm / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))[:, None]
        S = clipped.T @ clipped / (n or len(rows))
        weights = np.full(S.shape, settings.penalty)
        return graphical_lasso(
            S,
            weights,
            penalize_diagonal=True,
            max_eigenvalue=settings.max_eigenvalue or 1 / settings.penalty,
            tolerance=1e-13,
        ).precision

    @pytest.mark.parametrize("mechanism", ["frobenius", "goe"])
    def test_with_a_large_budget_it_is_the_solution_of_the_program(self, mechanism):
        settings = precision(2.0, 0.2, mechanism=mechanism)
        budget = Budget(epsilon=1e6, delta=1e-6)
        release = output_perturbation.run(vectors(n_records=4000, budget=budget), settings, budget)
        noisy = noisy_precision(release)
        np.testing.assert_allclose(noisy.precision, self.exact(ROWS), atol=1e-3)
        assert noisy.largest == 5.0
        values = np.linalg.eigvalsh(self.exact(ROWS))
        assert noisy.smallest <= values[0] and values[-1] <= noisy.largest * (1 + 1e-9)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_neighbours_solutions_are_as_near_as_the_proof_says(self, adjacency):
        rng, largest = np.random.default_rng(0), 0.0
        for _ in range(40):
            n, d = 20, int(rng.integers(1, 5))
            settings = precision(1.0, penalty=float(rng.choice([0.05, 0.3])))
            rows = rng.normal(size=(n, d)) * rng.choice([0.01, 1.0])
            other = rows.copy()
            other[0] = 0.0 if adjacency == "add_remove" else -rng.normal(size=d) * 9
            rows[0] *= 100.0
            program = program_of(settings, d, Adjacency.parse(adjacency), n)
            plan = matrix_plan(program, "goe", PLENTY)
            moved = np.linalg.norm(self.exact(rows, settings, n) - self.exact(other, settings, n))
            ratio = moved / (plan.frobenius * plan.unit)
            assert ratio <= 1.0
            largest = max(largest, ratio)
        assert largest > 0.2  # of the bound: near empty data the cap binds and the bound nearly does

    def test_without_the_cap_eigenvalues_exceed_one_over_the_penalty(self):
        """Why there is one: of a single record of 16 columns, by more than the certified error of the solution."""
        rng, penalty, largest = np.random.default_rng(0), 0.006, 0.0
        for _ in range(20):
            row = rng.normal(size=16)
            row /= np.linalg.norm(row)
            found = graphical_lasso(
                np.outer(row, row), np.full((16, 16), penalty), penalize_diagonal=True, tolerance=1e-10
            )
            top = float(np.linalg.eigvalsh(found.precision)[-1])
            largest = max(largest, (top - uncapped_distance_bound(found.duality_gap, top)) * penalty)
            if largest > 1.05:
                break
        assert largest > 1.05

    def test_the_certificate_is_as_planned(self):
        data = vectors(n_records=4000)
        program = program_of(self.SETTINGS, 3, data.adjacency, 4000)
        exact = self.exact(ROWS)[np.triu_indices(3)]
        for name, arguments in output_perturbation.lasso_solvers(program)[:2]:
            moments = program.exact(data)
            point = program.certified(moments, named_function(name)(moments, **arguments))
            assert np.linalg.norm(point.value - exact) <= point.distance <= program.distance
        assert np.abs(exact).max() <= program.bound

    def test_it_is_a_stable_program_with_gaussian_noise_too(self):
        data = vectors(n_records=4000, budget=Budget(rho=1e6))
        program = program_of(self.SETTINGS, 3, data.adjacency, 4000)
        found = released_solution(
            convex_program.release(program, data, Budget(rho=1e6), solvers=output_perturbation.lasso_solvers(program))
        )
        np.testing.assert_allclose(found, self.exact(ROWS)[np.triu_indices(3)], atol=1e-3)
        with pytest.raises(ValueError, match="made for d=3, n_records=4000"):
            convex_program.release(program, vectors(n_records=3999), Budget(rho=1.0))
        unspent = vectors(n_records=4000, budget=Budget(rho=1.0))
        with pytest.raises(ValueError, match="has none of its own; name some"):
            convex_program.release(program, unspent, Budget(rho=1.0))
        assert not unspent.ledger.entries

    def test_it_goes_on_until_the_certificate_is_there(self, monkeypatch):
        calls = []

        def lazy(S, R, **options):
            calls.append(options["max_iter"])
            return graphical_lasso(S, R, **{**options, "max_iter": 1 if len(calls) < 3 else 5000})

        monkeypatch.setattr(output_perturbation, "graphical_lasso", lazy)
        output_perturbation.run(vectors(n_records=4000), self.SETTINGS, PLENTY)
        assert calls == [2000, 4000, 8000]

    def test_it_does_not_go_on_for_ever_and_then_nothing_is_released(self, monkeypatch):
        calls = []

        def never(S, R, **options):
            calls.append(options["max_iter"])
            raise FloatingPointError("of these records")

        monkeypatch.setattr(output_perturbation, "graphical_lasso", never)
        data = vectors(n_records=4000)
        with pytest.raises(UncertifiedSolution) as raised:
            output_perturbation.run(data, self.SETTINGS, PLENTY)
        assert calls == [2000 << k for k in range(13)] and data.ledger.left.epsilon == 0
        assert raised.value.__cause__ is None and raised.value.__context__ is None

    def test_whatever_the_records_are_there_is_a_result(self):
        for rows in (
            np.zeros((5, 3)),
            np.empty((0, 3)),
            np.full((5, 3), np.nan),
            np.full((5, 3), 1e300),
            np.eye(3)[:1],
        ):
            release = output_perturbation.run(vectors(rows, n_records=5), self.SETTINGS, PLENTY)
            assert np.isfinite(noisy_precision(release).precision).all()

    @pytest.mark.parametrize(
        ("d", "condition"),
        [
            pytest.param(d, condition, marks=[pytest.mark.slow] * (d == 40 and condition != 1e14))
            for d in (1, 2, 6, 40)
            for condition in (1e14, 2e10, 1e6)
        ],
    )
    def test_a_solution_is_found_wherever_one_is_sought(self, d, condition):
        """Of records for which Theta has eigenvalues up to `condition` apart, or as far as they may be."""
        rng = np.random.default_rng(d)
        B = 100.0
        far = np.vstack([1e-7 * rng.normal(size=(20, d)), np.full((1, d), 1e200)])
        for rows in (
            np.empty((0, d)),
            np.full((20, d), 1e308),
            np.tile(rng.normal(size=(1, d)), (20, 1)) * B,
            far,
            B * np.eye(d)[rng.integers(d, size=20)],
            np.where(rng.random((20, d)) < 0.5, 1e300, -1e-300),
        ):
            for penalty in (1e-18, 1e-13, 1e-3):
                cap = condition / B**2 * (1 - 1e-15)
                settings = precision(B, penalty * B**2, max_eigenvalue=cap)
                program = program_of(settings, d, Adjacency.ADD_REMOVE, 20)
                found = certified_solution(
                    program, vectors(rows, n_records=20), output_perturbation.lasso_solvers(program)
                )
                assert np.isfinite(found).all() and np.abs(found).max() <= program.bound

    def test_costs(self):
        for budget, cost, name in (
            (Budget(epsilon=0.5), PureDP(0.5), "output_frobenius"),
            (Budget(rho=0.1), ZCDP(0.1), "output_goe"),
        ):
            data = vectors(n_records=10, budget=Ledger(budget))
            release = output_perturbation.run(data, self.SETTINGS, budget)
            assert release.guarantee == data.ledger.entries[0].cost == cost
            assert release.mechanism == name

    @pytest.mark.parametrize(
        ("options", "error", "match"),
        [
            ({"penalty": 0.0}, ValueError, "penalty=0.0"),
            ({"penalty": "noise-aware"}, ValueError, "penalty='noise-aware'"),
            ({"row_norm": None}, ValueError, "row_norm=None"),
            ({"max_eigenvalue": -1.0}, ValueError, "max_eigenvalue=-1.0"),
            ({"penalty": 1e-200}, ValueError, "max_eigenvalue=1e.200"),
            ({"penalty": 1e-320}, ValueError, "max_eigenvalue=inf"),
            ({"penalty": 1e-15}, ValueError, r"row_norm=1.0.* above 1e\+14.* at most 1e\+14, .*perturb='covariance'"),
            ({"max_eigenvalue": 2e4, "row_norm": 1e5}, ValueError, r"max_eigenvalue=20000.0 .*at most 1e\+04"),
            ({"mechanism": "double-wishart"}, ValueError, "for noise on the output"),
            ({"center": "private"}, ValueError, "public center only"),
            ({"center": [1.0]}, ValueError, "center has 1 entries"),
        ],
    )
    def test_bad_arguments_cost_nothing(self, options, error, match):
        data = vectors(n_records=10)
        with pytest.raises(error, match=match):
            output_perturbation.run(data, precision(**{"row_norm": 1.0, "penalty": 0.1, **options}), PLENTY)
        assert data.ledger.entries == ()

    def test_it_needs_a_public_number_of_records(self):
        data = vectors()
        with pytest.raises(ValueError, match="public number of records"):
            output_perturbation.run(data, self.SETTINGS, PLENTY)
        assert data.ledger.entries == ()

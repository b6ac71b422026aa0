"""Matrices of products with Wishart noise: what records add to them, what is read, and which noise a plan takes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Budget, PrivateTable
from pgmpy_dp.estimators import PrivateBinaryMRF, PrivateIsing, PrivatePairwise
from pgmpy_dp.fields import noisy_interactions, noisy_parities
from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.noisy_parities import released_deviations
from pgmpy_dp.fields.operators.feature_matrices import (
    ContrastMatrix,
    InteractionMatrixSums,
    MatrixSums,
    ParityMatrix,
    ParityMatrixSums,
)
from pgmpy_dp.fields.operators.interactions import InteractionSums, InteractionUnits, interaction_sums
from pgmpy_dp.fields.operators.parities import ParitySums, parity_sums
from pgmpy_dp.fields.parity_features import parity_features
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.guarantee import PureDP
from pgmpy_dp.private.noise.matrix import wishart_noise
from pgmpy_dp.private.sensitive import Noise, Release
from tests.settings import interaction_settings, parity_settings

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
TRIPLES = ((), *field_scopes(4, 2))
MATRICES = {
    "spins": ParityMatrix(4, ((), (0,), (1,), (2,), (3,)), (1, 1, 1, 1, 1), 2, True),
    "no constant": ParityMatrix(4, ((0,), (1,), (3,)), (2, 1, 3), ((0, 1), (1, 3)), True),
    "triples": ParityMatrix(4, TRIPLES, (1, *[3] * 4, *[2] * 6), 3, True),
    "states": ContrastMatrix((3, 3, 3, 3), None, True),
    "uneven": ContrastMatrix((2, 5, 1, 7), None, True),
    "of a graph": ContrastMatrix((2, 3, 4, 3), ((0, 2), (1, 3)), True),
}


def codes_for(matrix, n, seed=0):
    sizes = getattr(matrix, "cardinalities", (2,) * 4)
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(k, size=n) for k in sizes], axis=1)


def whole(matrix, upper):
    full = np.zeros((matrix.d, matrix.d), dtype=object)
    full[matrix.places] = upper
    return full + np.triu(full, 1).T


@pytest.mark.parametrize("name", MATRICES)
class TestMatrix:
    def test_every_record_adds_one_square_of_bounded_trace(self, name):
        matrix = MATRICES[name]
        sizes = getattr(matrix, "cardinalities", (2,) * 4)
        largest = 0
        for record in itertools.product(*map(range, sizes)):
            one = whole(matrix, matrix.sums(np.array([record])))
            vector = one[0] / math.sqrt(one[0, 0])
            assert np.allclose(np.outer(vector, vector).astype(float), one.astype(float), rtol=1e-12)
            largest = max(largest, int(np.trace(one)))
            assert np.trace(one) <= matrix.trace
        assert largest == matrix.trace  # attained: the noise is no larger than it has to be

    def test_sums_add_up_with_weights(self, name):
        matrix = MATRICES[name]
        codes = codes_for(matrix, 30)
        weights = np.random.default_rng(1).integers(0, 9, size=30)
        parts = [w * matrix.sums(codes[[k]]) for k, w in enumerate(weights.tolist())]
        assert (matrix.sums(codes, weights) == sum(parts)).all()
        assert not matrix.sums(codes[:0]).any()

    @pytest.mark.parametrize("unit", [1, 1 << 20])
    def test_without_noise_what_is_read_is_what_was_counted(self, name, unit):
        matrix, codes = MATRICES[name], codes_for(MATRICES[name], 400)
        found = matrix.read(unit * matrix.sums(codes), unit)
        if isinstance(matrix, ParityMatrix):
            index = {s: k for k, s in enumerate(field_scopes(4, 3))}
            sums = parity_sums(codes, 3)
            family = field_scopes(4, matrix.family) if isinstance(matrix.family, int) else matrix.family
            wanted = [sums[[index[s] for s in family]], [400]]
        else:
            exact = interaction_sums(codes, InteractionUnits(matrix.cardinalities), ADD, matrix.pairs)
            wanted = [one.value for one in exact]
        assert [one.tolist() for one in found] == [list(one) for one in wanted]

    def test_noise_has_the_size_that_is_said(self, name):
        """300 draws: each standard deviation within a quarter, six of its own; the seed is fixed."""
        matrix, c = MATRICES[name], 1 << 40
        rng = np.random.default_rng(2)
        drawn = [matrix.read(wishart_noise(matrix.d, c, rng), 1) for _ in range(300)]
        one = math.sqrt(2 * (matrix.d + 1)) * c
        sums, *rest, counts = (np.array(x, dtype=float) / one for x in zip(*drawn, strict=True))
        assert counts.std() == pytest.approx(matrix.largest_deviations[-1], rel=0.25)
        if isinstance(matrix, ParityMatrix):
            assert sums.std(axis=0) == pytest.approx(matrix.deviations, rel=0.25)
            assert matrix.largest_deviations[0] == matrix.deviations.max()
            return
        sizes, start, largest = matrix.cardinalities, 0, 0.0
        for k in sizes:  # centred: k - 1 directions
            largest = max(largest, math.sqrt((sums[:, start : start + k] ** 2).sum(axis=1).mean() / max(1, k - 1)))
            start += k
        assert largest == pytest.approx(matrix.largest_deviations[0], rel=0.25)
        i, j = next((i, j) for i, j in matrix._pairs if sizes[i] > 1 and sizes[j] > 1)
        first = rest[0][:, : sizes[i] * sizes[j]]
        directions = (sizes[i] - 1) * (sizes[j] - 1)
        assert math.sqrt((first**2).sum(axis=1).mean() / directions) == pytest.approx(
            matrix.largest_deviations[1], rel=0.25
        )


@pytest.mark.parametrize("adjacency", [ADD, REPLACE])
def test_the_scale_is_the_trace_that_moves_over_twice_epsilon(adjacency):
    matrix, table = MATRICES["triples"], frame(4, 50)
    data = PrivateTable(table, states(4), adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=records(adjacency))
    curator = TableCurator(data, Budget(epsilon=1.0), what="test")
    seen = []
    true = MatrixSums.draw

    def draw(self, rng):
        seen.append(self)
        return true(self, rng)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MatrixSums, "draw", draw)
        curator.ask(ParityMatrixSums(matrix.features, matrix.weights, 3), Fraction(1, 4))
    (asked,) = seen
    moved = (1 if adjacency == ADD else 2) * matrix.trace * asked.fine
    spent = Fraction(moved, 2 * asked.scale)
    assert spent <= Fraction(1, 4) < spent * (1 + Fraction(1, 2**30))


def frame(p, n, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).integers(2, size=(n, p)), columns=[f"x{j}" for j in range(p)])


def states(p):
    return {f"x{j}": [0, 1] for j in range(p)}


def records(adjacency, n=50):
    return n if adjacency == REPLACE else None


class TestOperator:
    @staticmethod
    def curator(budget=Budget(epsilon=1.0), p=4, **options):  # noqa: B008
        return TableCurator(PrivateTable(frame(p, 50), states(p), ledger=budget), budget, what="test", **options)

    @pytest.mark.parametrize(
        ("arguments", "match"),
        [
            (([(), (0,), (0,)], [1, 1, 1], [[0]], 1), "none twice"),
            (([(), (), (0,)], [1, 1, 1], [[0]], 1), "no set twice"),
            (([(), (1, 0)], [1, 1], [[0, 1]], 1), "increasing"),
            (([(), (0,)], [1], [[0]], 1), "weights must be 2"),
            (([(), (0,)], [1, 0], [[0]], 1), "weights must be 2"),
            (([(), (0,)], [1, 1025], [[0]], 1), "weights must be 2"),
            (([(), (0,)], [1, 1], 2, 1), "no two of the features"),
            (([(), (0,)], [1, 1], [[0]], 1e-16), "would bury"),
            (([(), (0,)], [1, 1], [[0]], 0), "share=0"),
        ],
    )
    def test_what_is_refused_costs_nothing(self, arguments, match):
        curator = self.curator()
        with pytest.raises(ValueError, match=match):
            curator.ask(ParityMatrixSums(*arguments[:3]), arguments[3])
        assert curator.left == 1

    def test_rho_is_refused(self):
        for budget in (Budget(rho=1.0), Budget(epsilon=1.0, delta=1e-6)):
            with pytest.raises(ValueError, match="pure"):
                self.curator(budget).ask(InteractionMatrixSums(), 1)
        assert self.curator(Budget(epsilon=1.0, delta=1e-6), pure=True).ask(InteractionMatrixSums(), 1)[0].shape == (8,)

    @pytest.mark.parametrize("rows", [1, 3, "shares"])
    def test_units(self, rows):
        """Nearly without noise: what units of several records add, by shares or up to so many."""
        data = frame(3, 60).assign(who=np.arange(60) // 4)
        budget = Budget(epsilon=1e6)
        table = PrivateTable(data, states(3), ledger=budget, unit="who", rows_per_unit=rows)
        sums, count = TableCurator(table, budget, what="test").ask(
            ParityMatrixSums([(), (0,), (1,), (2,)], [1] * 4, 2, with_count=True), 1
        )
        assert count[0] == {1: 15, 3: 45, "shares": 15}[rows]
        assert sums.shape == (6,) and np.abs(sums).max() <= count[0]

    def test_one_variable(self):
        sums, count = self.curator(p=1, budget=Budget(epsilon=1e6)).ask(
            ParityMatrixSums([(), (0,)], [1, 1], 1, with_count=True), 1
        )
        assert abs(int(sums[0]) - int((2 * frame(1, 50)["x0"] - 1).sum())) <= 1 and abs(int(count[0]) - 50) <= 1


def test_noise_of_the_issue():
    """Epsilon 1: 298 to 70 at 20 variables, 7143 to 721 at 100; where a record is replaced 311 to 139."""
    for p, adjacency, laplace, wishart in ((20, ADD, 298, 70), (100, ADD, 7143, 721), (20, REPLACE, 311, 139)):
        spins = [(), *((j,) for j in range(p))]
        one = ParityMatrixSums.planned(p, spins, [1] * (p + 1), 2, adjacency, True, PureDP(1.0), Fraction(1)).noise[0]
        assert math.sqrt(one.variance) == pytest.approx(wishart, abs=0.6)
        additive = ParitySums.planned(2, p, adjacency, adjacency == ADD, PureDP(1.0), Fraction(1)).noise[0]
        assert math.sqrt(additive.variance) == pytest.approx(laplace, abs=0.6)


class TestChoice:
    @staticmethod
    def mechanism(p, budget, adjacency=ADD, **settings):
        table = PrivateTable(frame(p, 50), states(p), adjacency=adjacency, ledger=budget, n_records=records(adjacency))
        return noisy_parities.run(table, parity_settings(random_state=0, **settings), budget).mechanism

    @pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning")
    def test_the_smaller_noise_is_taken(self):
        pure, both = Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6)
        tree = [(f"x{j}", f"x{j + 1}") for j in range(19)]
        assert self.mechanism(20, pure) == "discrete_wishart"
        assert self.mechanism(20, pure, REPLACE) == "discrete_wishart"
        assert self.mechanism(20, pure, graph=tree) == "discrete_laplace"
        assert self.mechanism(20, pure, method="laplace") == "discrete_laplace"
        assert self.mechanism(20, Budget(rho=0.1)) == "discrete_gaussian"
        assert [self.mechanism(p, both) for p in (6, 40)] == ["discrete_wishart", "discrete_gaussian"]
        assert self.mechanism(8, pure, order=3) == "discrete_wishart"

    def test_of_three_variables_small_sets_have_less_noise(self):
        features = parity_features(20, 3, 3)
        noise = features.noise(ADD, False, PureDP(1.0), Fraction(1))[0]
        largest = math.sqrt(noise.variance)
        deviations = features.deviations
        assert largest < 760 and largest * deviations[0] < 300  # 1,911 by Laplace noise
        single, pair, triple = (deviations[k] for k in (0, 20, 210))
        assert single < pair < triple == 1.0

    @pytest.mark.parametrize("adjacency", [ADD, REPLACE])
    def test_of_states_too(self, adjacency):
        asked = ([3] * 10, adjacency, None, True, PureDP(1.0), Fraction(1))
        ours, theirs = (
            [one.variance for one in kind.planned(*asked).noise] for kind in (InteractionMatrixSums, InteractionSums)
        )
        assert all(a < b for a, b in zip(ours, theirs, strict=True))
        assert ours[1] < theirs[1] / 12

    @pytest.mark.parametrize(
        ("settings", "budget", "match"),
        [
            (parity_settings(method="wishart"), Budget(rho=1.0), "for an epsilon"),
            (interaction_settings("wishart"), Budget(rho=1.0), "for an epsilon"),
        ],
    )
    def test_a_budget_that_it_cannot_give(self, settings, budget, match):
        table = PrivateTable(frame(3, 50), states(3), ledger=budget)
        run = noisy_parities.run if settings.family == "binary" else noisy_interactions.run
        with pytest.raises(ValueError, match=match):
            run(table, settings, budget)
        assert not table.ledger.entries

    def test_too_many_rows(self, monkeypatch):
        monkeypatch.setattr("pgmpy_dp.fields.parity_features.MOST_FEATURES", 3)
        table = PrivateTable(frame(3, 50), states(3), ledger=Budget(epsilon=1.0))
        with pytest.raises(ValueError, match="so many parities"):
            noisy_parities.run(table, parity_settings(method="wishart"), Budget(epsilon=1.0))
        release = noisy_parities.run(table, parity_settings(), Budget(epsilon=1.0))
        assert release.mechanism == "discrete_laplace" and released_deviations(release) is None


class TestRelease:
    def test_it_is_exact_noise_and_keeps_its_deviations(self, tmp_path):
        table = PrivateTable(frame(5, 300), states(5), ledger=Budget(epsilon=1.0))
        release = noisy_parities.run(table, parity_settings(order=3), Budget(epsilon=1.0))
        assert not release.floating_point and release.noise[0].distribution == "discrete_wishart"
        release.save(tmp_path / "moments.npz")
        deviations = released_deviations(Release.load(tmp_path / "moments.npz"))
        assert deviations.shape == (25,) and deviations.max() == 1.0 and deviations[0] < 1.0

    def test_old_releases_say_that_their_noise_was_of_floats(self):
        assert Noise("double_wishart", 3.0).floating_point and not Noise("discrete_wishart", 3.0).floating_point

    @pytest.mark.parametrize("estimator", [PrivateIsing, PrivatePairwise, PrivateBinaryMRF])
    def test_estimators_learn_from_it(self, estimator):
        rng = np.random.default_rng(0)
        first = rng.integers(2, size=4000)
        data = pd.DataFrame({"a": first, "b": np.where(rng.random(4000) < 0.9, first, 1 - first), "c": 1 - first})
        data["c"] = np.where(rng.random(4000) < 0.5, data["c"], first)
        fit = estimator(2.0, epsilon=3.0, state_names={name: [0, 1] for name in data}).fit(data)
        assert fit.release_.noise[0].distribution == "discrete_wishart"
        scores = fit.edge_scores_
        assert scores[0, 1] > 0.6 and scores[0, 1] > 5 * scores[1, 2]

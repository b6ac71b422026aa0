"""What the mixture learner is made of: sensitivities on exhaustive neighbours, thresholds, audits with mutants."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from pgmpy_dp import Budget, PrivateVectors
from pgmpy_dp.mixtures.operators import block_operators, cluster_operators
from pgmpy_dp.mixtures.operators.block_operators import (
    BlockCells,
    BlockClusters,
    BlockScales,
    MeanLogScale,
)
from pgmpy_dp.mixtures.operators.cluster_operators import (
    MOMENT_KINDS,
    ClusterMoments,
    ClusterSums,
    cluster_noise,
    moment_noise,
)
from pgmpy_dp.mixtures.operators.vector_sums import clipped_cluster_moments, clipped_cluster_sums, vector_blocks
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.curator.curator_base import Curator
from pgmpy_dp.private.curator.outside_functions import outside_function
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.operators.vector_operators import UnitCount
from tests.private import audit

BUDGET = Budget(epsilon=1.0, delta=1e-6)
ADJACENCIES = ("add_remove", "replace_one")


def vectors(rows, adjacency="add_remove", n_records=None) -> PrivateVectors:
    if adjacency == "replace_one" and n_records is None:
        n_records = len(rows)
    return PrivateVectors(np.asarray(rows, dtype=float), adjacency=adjacency, ledger=BUDGET, n_records=n_records)


def cells(blocks, width, n_columns=2) -> BlockCells:
    return BlockCells.turned(blocks, width, n_columns, np.random.default_rng(0))


def asked(rows, adjacency="add_remove", budget=BUDGET, **opened) -> Curator:
    rows = np.asarray(rows, dtype=float)
    n_records = len(rows) if adjacency == "replace_one" else None
    data = PrivateVectors(rows, adjacency=adjacency, ledger=budget, n_records=n_records)
    opened = {"what": "clusters", "columns": data.columns, "reserve": 0.1 * budget.delta, **opened}
    return Curator(data, budget, **opened)


def step_square(adjacency) -> tuple[Fraction, Fraction]:
    """w, and the squared distance of neighbours that a step's noise is for."""
    (unit, _), square = cluster_operators._step_units(Adjacency(adjacency), 1)
    return 1 / unit, square


def neighbours(rows, adjacency, others):
    """All data sets next to `rows`: one record less, one more of `others`, or one replaced by one of them."""
    for i in range(len(rows)):
        rest = np.delete(rows, i, axis=0)
        if adjacency == "add_remove":
            yield rest
        else:
            yield from (np.insert(rest, i, other, axis=0) for other in others)
    if adjacency == "add_remove":
        yield from (np.insert(rows, 0, other, axis=0) for other in others)


class TestSums:
    CENTRES = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    UNIT, BOUND = 2.0**-6, 150

    def parts(self, rows, adjacency):
        return clipped_cluster_sums(vectors(rows.reshape(-1, 3), adjacency), self.CENTRES, self.UNIT, self.BOUND)

    def test_against_a_slow_twin(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(scale=4.0, size=(40_000, 3))
        counts, sums = self.parts(rows, "add_remove")
        nearest = np.linalg.norm(rows[:, None] - self.CENTRES, axis=2).argmin(axis=1)
        steps = (rows - self.CENTRES[nearest]) / self.UNIT
        size = np.linalg.norm(steps, axis=1, keepdims=True)
        steps *= np.minimum(1.0, self.BOUND / size)
        assert counts.tolist() == np.bincount(nearest).tolist()
        for j in range(2):
            # Truncated toward zero: each record is at most one unit off.
            assert np.abs(sums[j] - steps[nearest == j].sum(axis=0)).max() <= counts[j]

    @pytest.mark.parametrize("d", [1, 3, 30, 400])
    def test_no_record_exceeds_the_bound_and_some_come_near(self, d):
        rng = np.random.default_rng(d)
        n = 300 if d < 100 else 30
        rows = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 200, size=(n, 1))
        rows[0], rows[1] = 1e308, -1e308
        longest = 0
        for row in rows:
            counts, sums = clipped_cluster_sums(vectors([row]), np.zeros((2, d)), 2.0**-7, 1000)
            assert counts.sum() == 1
            longest = max(longest, int((sums.astype(object) ** 2).sum()))
        assert 998_000 * (1 - 0.004 * math.sqrt(d)) <= longest <= 1000**2

    @pytest.mark.parametrize("adjacency", ADJACENCIES)
    def test_sensitivity_on_exhaustive_neighbours(self, adjacency):
        far = 1e6
        others = [np.array(p) for p in [(far, 0, 0), (-far, 0, 0), (3.1, far, 0), (2.9, -far, 0), (0, 0, 0), (6, 0, 0)]]
        rows = np.array([(far, 0.0, 0.0), (-far, 0, 0), (2.9, far, 0), (0.1, 0.2, 0.3)])
        weight, claimed = step_square(adjacency)
        counts, sums = self.parts(rows, adjacency)
        worst = Fraction(0)
        for changed in neighbours(rows, adjacency, others):
            other_counts, other_sums = self.parts(changed, adjacency)
            squares = int(((sums - other_sums).astype(object) ** 2).sum())
            change = Fraction(squares, self.BOUND**2) + weight**2 * int(((counts - other_counts) ** 2).sum())
            worst = max(worst, change)
        assert 0.95 * claimed <= worst <= claimed
        assert claimed == (Fraction(5, 4) if adjacency == "add_remove" else 4)

    def test_a_record_s_part_does_not_depend_on_its_place(self):
        rng = np.random.default_rng(3)
        rows = rng.normal(loc=3.0, size=(1000, 3))  # near the border of the two centres
        alone = [self.parts(row, "add_remove") for row in rows]
        counts, sums = self.parts(rows, "add_remove")
        assert counts.tolist() == sum(c for c, _ in alone).tolist()
        assert sums.tolist() == sum(s for _, s in alone).tolist()

    def test_numbers_of_records(self):
        noisy = asked(np.ones((7, 2)), budget=Budget(epsilon=1e4, delta=1e-6)).ask(UnitCount(), 1)
        assert noisy == 7  # noise of .01


class TestMoments:
    """What a record adds to second moments, against a slow twin; how far it can be."""

    UNIT, BOUND = 2.0**-6, 150
    CENTRES = TestSums.CENTRES

    def parts(self, rows, kind, bound=BOUND):
        rows = np.asarray(rows, dtype=float)
        centres = self.CENTRES if rows.shape[1] == 3 else np.zeros((1, rows.shape[1]))
        return clipped_cluster_moments(vectors(rows), centres, self.UNIT, bound, kind)

    @pytest.mark.parametrize("kind", MOMENT_KINDS)
    def test_against_a_slow_twin(self, kind):
        rng = np.random.default_rng(0)
        rows = rng.normal(scale=3.0, size=(17_000, 3))
        rows[:3] = [3.0, 1.0, 2.0]  # as near to one centre as to the other
        nearest = np.linalg.norm(rows[:, None] - self.CENTRES, axis=2).argmin(axis=1)
        steps = (rows - self.CENTRES[nearest]) / self.UNIT
        size = np.linalg.norm(steps, axis=1, ord=4 if kind == "diag" else 2)
        steps = np.trunc(steps * (np.minimum(1.0, self.BOUND / size) * (1.0 - 2.0**-40))[:, None]).astype(np.int64)
        products = np.stack([steps[nearest == j].T @ steps[nearest == j] for j in range(2)])
        if kind == "tied":
            products = products.sum(axis=0, keepdims=True)
        diagonal, rest = self.parts(rows, kind)
        squares = np.diagonal(products, axis1=1, axis2=2)
        assert (diagonal == (squares.sum(axis=1, keepdims=True) if kind == "spherical" else squares)).all()
        assert (rest == products[:, *np.triu_indices(3, 1)]).all() if kind in ("tied", "full") else not rest.size

    @pytest.mark.parametrize("kind", MOMENT_KINDS)
    @pytest.mark.parametrize("d", [1, 3, 60])
    def test_no_record_exceeds_the_bound_and_some_come_near(self, kind, d):
        rng = np.random.default_rng(d)
        rows = rng.normal(size=(60, d)) * 10.0 ** rng.uniform(-3, 200, size=(60, 1))
        rows[0], rows[1], rows[2] = 1e308, -1e308, 0.0
        rows[3, 1:] = 0.0
        longest = 0
        for row in rows:
            diagonal, rest = (part.astype(object) for part in self.parts([row], kind, 20_000))
            longest = max(longest, (diagonal**2).sum() + 2 * (rest**2).sum())
        assert 0.99 * 20_000**4 <= longest <= 20_000**4

    @pytest.mark.parametrize("adjacency", ADJACENCIES)
    @pytest.mark.parametrize("kind", MOMENT_KINDS)
    def test_noise(self, adjacency, kind):
        """Shares by the squared distance of the operator's page; what is off the diagonal moves twice."""
        noise = moment_noise(kind, 3, 4, Adjacency(adjacency), ZCDP(0.3), 0.5)
        square = 1 if adjacency == "add_remove" else 2
        assert square / Fraction(noise[0].scale) ** 2 / 2 <= Fraction(0.3) / 2
        if kind in ("tied", "full"):
            assert 0.7071 < noise[1].scale / noise[0].scale < 0.70711
            assert Fraction(noise[0].scale) ** 2 <= 2 * Fraction(noise[1].scale) ** 2
        else:
            assert len(noise) == 1

    def test_refusals(self):
        curator = asked(np.zeros((5, 100)))
        for arguments, message in (
            ((np.zeros((2, 100)), 1.0, "round", 0.5), "kind='round'"),
            ((np.zeros((2, 3)), 1.0, "diag", 0.5), r"shape \(2, 3\)"),
            ((np.zeros((4000, 100)), 1.0, "full", 0.5), "pass kind='diag'"),
            ((np.zeros((2, 100)), 0.0, "diag", 0.5), "radius=0.0"),
        ):
            with pytest.raises(ValueError, match=message):
                curator.ask(ClusterMoments(*arguments[:-1]), arguments[-1])
        assert curator.left == 1


class TestBlocks:
    def blocks(self, rows, n_blocks, most, seed=0):
        rng = np.random.default_rng(seed)
        return vector_blocks(rows, rng.integers(n_blocks, size=len(rows)), rng.permutation(len(rows)), n_blocks, most)

    def test_they_are_disjoint_and_together_all(self):
        rows = np.arange(600.0).reshape(300, 2)
        points, used = self.blocks(rows, 7, 100)
        assert points.shape == (7, 100, 2) and used.sum() == 300
        assert np.sort(points[used][:, 0]).tolist() == rows[:, 0].tolist()
        assert not points[~used].any()

    def test_a_block_keeps_those_of_its_records_with_the_smallest_places(self):
        rows = np.arange(100.0)[:, None]
        full, used = self.blocks(rows, 3, 100)
        few, kept = self.blocks(rows, 3, 4)
        for b in range(3):
            assert few[b][kept[b]].tolist() == full[b][used[b]][:4].tolist()
        assert any((np.diff(full[b][used[b]][:, 0]) < 0).any() for b in range(3))  # not those that come first

    def test_one_block_changes_whatever_the_record_and_the_order_of_the_table(self):
        """With the same draws for the others, as in the proof; few places, so that most blocks have equal ones."""
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(51, 2))
        rows[:20] = rows[20:40]
        part, places = rng.integers(6, size=51), rng.integers(3, size=51)
        before = vector_blocks(rows[:50], part[:50], places[:50], 6, 9)
        for changed, n in (
            (np.vstack([rows[:50], [[1e9, -1e9]]]), 51),
            (np.vstack([rows[:49], [[7, 7]]]), 50),
            (rows, 49),
        ):
            turned = rng.permutation(n)
            after = vector_blocks(changed[turned], part[turned], places[turned], 6, 9)
            different = [b for b in range(6) if any(x[b].tobytes() != y[b].tobytes() for x, y in zip(before, after))]  # noqa: B905
            assert len(different) <= 1

    def test_units_are_refused(self):
        import pandas as pd

        frame = pd.DataFrame({"who": ["a", "b"], "x": [1.0, 2.0]})
        data = PrivateVectors(frame, ledger=BUDGET, unit="who")
        curator = Curator(data, BUDGET, what="clusters", columns=["x"], reserve=1e-7)
        blocks = BlockClusters(1, 4, 2)
        requests = [
            lambda: curator.ask(cells(blocks, 1.0), 1, 1e-8),
            lambda: curator.ask(BlockScales(blocks, 0.0), 1, 1e-8),
            lambda: curator.ask(MeanLogScale(blocks, 0.0), 1),
            lambda: curator.ask(ClusterSums([[0.0]], 1.0), 1),
            lambda: curator.ask(ClusterMoments([[0.0]], 1.0, "diag"), 1),
        ]
        for request in requests:
            with pytest.raises(ValueError, match="protect whole units"):
                request()
        assert curator.left == 1 and curator.unit == "who"


@outside_function
def corners(points, rng, shape, kind):
    """Centres of a block; or what is none."""
    centres = np.zeros(shape)
    return centres.tolist() if kind == "list" else centres.astype(kind)


class TestRefusals:
    """All of public arguments, before anything is spent."""

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"n_components": 0}, "n_components=0"),
            ({"n_components": 1001}, "n_components=1001"),
            ({"n_blocks": 65537}, "n_blocks=65537"),
            ({"block_size": 0}, "block_size=0"),
            ({"function": "os.system"}, "is not registered"),
            ({"arguments": {"x": []}}, "plain|numbers, texts"),
        ],
    )
    def test_blocks(self, changes, message):
        with pytest.raises((TypeError, ValueError), match=message):
            BlockClusters(**{"n_components": 2, "n_blocks": 9, "block_size": 9, **changes})

    def test_requests(self):
        curator, blocks = asked(np.ones((9, 2))), BlockClusters(1, 4, 2)
        by_function = BlockClusters(1, 4, 2, f"{__name__}.corners", {"shape": (1, 2), "kind": "float64"})
        requests = [
            (lambda: curator.ask(cells(blocks, 0.0), 0.5, 1e-8), "width=0.0"),
            (lambda: curator.ask(cells(blocks, 1e300), 0.5, 1e-8), "width=1e"),
            (lambda: curator.ask(cells(blocks, 1.0), 0.5, 0.0), "eta=0.0"),
            (lambda: curator.ask(cells(blocks, 1.0), 0.5, 1e-6), "was asked of a reserve"),
            (lambda: curator.ask(cells(blocks, 1.0), 0, 1e-8), "share=0 is not positive"),
            (lambda: curator.ask(BlockScales(by_function, 0.0), 0.5, 1e-8), "scales by k-means"),
            (lambda: curator.ask(MeanLogScale(blocks, math.nan), 0.5), "middle=nan"),
            (lambda: curator.ask(ClusterSums([[0.0, 0.0]], math.inf), 0.5), "radius=inf"),
            (lambda: curator.ask(ClusterSums([[0.0, 0.0]], 1.0), 1e-30), "bury"),
        ]
        for request, message in requests:
            with pytest.raises(ValueError, match=message):
                request()
        assert curator.left == 1 and not curator.answers

    @pytest.mark.parametrize(
        "request_of",
        [
            lambda curator, blocks, share: curator.ask(cells(blocks, 1.0), share, 1e-8),
            lambda curator, blocks, share: curator.ask(BlockScales(blocks, 0.0), share, 1e-8),
            lambda curator, blocks, share: curator.ask(MeanLogScale(blocks, 0.0), share),
            lambda curator, blocks, share: curator.ask(ClusterSums([[0.0, 0.0]], 1.0), share),
            lambda curator, blocks, share: curator.ask(ClusterMoments([[0.0, 0.0]], 1.0, "full"), share),
        ],
    )
    def test_shares_are_debited_before_a_record_is_looked_at(self, request_of, monkeypatch):
        def looked(*arguments):
            raise KeyboardInterrupt

        curator, blocks = asked(np.ones((9, 2))), BlockClusters(1, 4, 2)
        monkeypatch.setattr(block_operators, "vector_rows", looked)
        for name in ("clipped_cluster_sums", "clipped_cluster_moments"):
            monkeypatch.setattr(cluster_operators, name, looked)
        with pytest.raises(KeyboardInterrupt):
            request_of(curator, blocks, 0.75)
        assert curator.left == 0.25 and not curator.answers
        with pytest.raises(BudgetExceeded):
            request_of(curator, blocks, 0.5)
        assert curator.left == 0.25

    @pytest.mark.parametrize("rows", [np.zeros((0, 2)), [[1e300, -1e300]], [[1e-300, 0.0]] * 9])
    @pytest.mark.parametrize("reaction", ["raise", "print", "warn"])
    def test_nothing_is_said_where_records_overflow(self, rows, reaction, capfd):
        with np.errstate(all=reaction), warnings.catch_warnings():
            warnings.simplefilter("error")
            for radius in (1e-150, 1.0, 1e150):
                curator = asked(rows)
                curator.ask(ClusterSums([[0.0, np.inf]], radius), 0.1)
                curator.ask(ClusterMoments([[0.0, np.inf]], radius, "diag"), 0.1)
                curator.ask(cells(BlockClusters(2, 10, 8), radius), 0.1, 1e-8)
                curator.ask(BlockScales(BlockClusters(2, 10, 8), 0.0), 0.1, 1e-8)
                curator.ask(MeanLogScale(BlockClusters(2, 10, 8), 0.0), 0.1)
        assert capfd.readouterr() == ("", "")

    def test_blocks_are_checked_when_they_are_asked_for(self):
        curator, changed = asked(np.zeros((9, 2))), BlockClusters(2, 10, 8)
        changed.arguments["shared"] = []
        other = SimpleNamespace(**vars(BlockClusters(2, 10, 8)))
        for blocks, error in ((other, "is a SimpleNamespace"), (changed, "shared")):
            for request in (
                lambda: curator.ask(cells(blocks, 1.0), 0.1, 1e-8),  # noqa: B023
                lambda: curator.ask(BlockScales(blocks, 0.0), 0.1, 1e-8),  # noqa: B023
                lambda: curator.ask(MeanLogScale(blocks, 0.0), 0.1),  # noqa: B023
            ):
                with pytest.raises(TypeError, match=error):
                    request()
        assert curator.left == 1

    def test_blocks_are_found_once(self, monkeypatch):
        found = []
        true = block_operators.batched_kmeans
        monkeypatch.setattr(block_operators, "batched_kmeans", lambda *a, **o: found.append(0) or true(*a, **o))
        curator = asked(np.random.default_rng(0).normal(size=(90, 2)))
        for blocks, number in ((BlockClusters(1, 4, 2), 1), (BlockClusters(1, 4, 2), 1), (BlockClusters(1, 5, 2), 2)):
            curator.ask(BlockScales(blocks, 0.0), 0.1, 1e-8)
            curator.ask(MeanLogScale(blocks, 0.0), 0.1)
            assert len(found) == number

    def test_a_pure_curator_has_no_gaussian_noise(self):
        curator = asked(np.ones((9, 2)), pure=True)
        with pytest.raises(ValueError, match="Gaussian noise"):
            curator.ask(cells(BlockClusters(1, 4, 2), 1.0), 1, 1e-8)
        with pytest.raises(ValueError, match="Gaussian noise"):
            curator.ask(ClusterSums([[0.0, 0.0]], 1.0), 1)
        assert curator.left == 1
        assert curator.ask(MeanLogScale(BlockClusters(1, 4, 2), 0.0), 1) is not None
        assert MeanLogScale.noise_of(PureDP(1.0), 1).scale == 2.0**17

    @pytest.mark.parametrize(
        ("shape", "kind", "found"),
        [((1, 2), "float64", True), ((1, 2), "int64", False), ((2, 2), "float64", False), ((1, 2), "list", False)],
    )
    def test_what_a_block_function_answers_is_checked(self, shape, kind, found):
        curator = asked(np.zeros((50, 2)), budget=Budget(epsilon=100.0, delta=1e-2))
        blocks = BlockClusters(1, 40, 9, f"{__name__}.corners", {"shape": shape, "kind": kind})
        centres, counts = curator.ask(cells(blocks, 1.0), 1, 1e-3)
        assert len(centres) == found and (not found or abs(counts[0] - 40) < 5)


class TestSteps:
    @pytest.mark.slow  # replay holds sensitivities, scales and shares
    @pytest.mark.parametrize("adjacency", ADJACENCIES)
    @pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (0.5, True)])
    def test_audit(self, adjacency, factor, caught, monkeypatch):
        """Worst neighbours of one step: a record far on one side, against none or one far on the other side."""
        rows = [np.array([[1e9]]), np.array([[-1e9]]) if adjacency == "replace_one" else np.zeros((0, 1))]
        weight, claim = float(step_square(adjacency)[0]), 0.5
        drawn = []

        def sampler(values, scale, *, rng=None):  # the step's own draws, many at once
            drawn.append(discrete_gaussian(np.repeat(values.ravel(), self.count), scale * factor))
            return values

        discrete_gaussian = samplers.discrete_gaussian
        monkeypatch.setattr(cluster_operators, "discrete_gaussian", sampler)

        def draw(dataset: int, count: int) -> np.ndarray:
            self.count = count
            drawn.clear()
            curator = asked(rows[dataset], adjacency, Budget(rho=claim), reserve=0.0)
            curator.ask(ClusterSums(np.zeros((1, 1)), 3.0), 1)
            counts, sums = drawn
            return np.column_stack([counts, sums / 2.0**14 / 3.0])

        def score(outputs: np.ndarray) -> np.ndarray:
            return outputs[:, 1] + (weight**2 * outputs[:, 0] if adjacency == "add_remove" else 0.0)

        found = audit.audit(draw, score, releases=20_000, bound=audit.rho_bound)
        assert (found > claim) == caught
        assert found > 0.3 * claim  # about .6 of it

    def test_counts_and_sums(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(20_000, 2)) + [2.0, 1.0]
        counts, sums = asked(rows).ask(ClusterSums(np.array([[0.0, 0.0], [500.0, 0.0]]), 8.0), 1)
        assert abs(counts - [20_000, 0]).max() < 300  # noise of 20
        assert np.abs(sums[0] / 20_000 - rows.mean(axis=0)).max() < 0.1

    def test_noise(self):
        for adjacency in ADJACENCIES:
            weight, square = step_square(adjacency)
            counts, sums = cluster_noise(Adjacency(adjacency), ZCDP(0.3), 0.5, 1234)
            assert square / (weight * Fraction(counts.scale)) ** 2 / 2 <= Fraction(0.3) / 2
            assert square * 1234**2 / Fraction(sums.scale) ** 2 / 2 <= Fraction(0.3) / 2


class TestScale:
    def logs(self, points, n_components, size=1000):
        """log2 of the scale of the only block."""
        curator = asked(points)
        return block_operators._clustered(curator._data, BlockClusters(n_components, 1, size), curator._coins)[1]

    def test_estimates_of_blocks_are_unbiased_about(self):
        rng = np.random.default_rng(0)
        logs = [self.logs(3.0 * rng.normal(size=(30, 4)), 1)[0] for _ in range(150)]
        assert abs(2 ** np.mean(logs) - 3.0) < 0.1

    def test_blocks_without_an_estimate(self):
        rng = np.random.default_rng(0)
        none = [np.zeros((9, 2)), np.zeros((0, 2)), rng.normal(size=(3, 2)), 1e300 * rng.normal(size=(9, 2))]
        assert np.isnan([self.logs(points, 3)[0] for points in none]).all()  # no spread, records, freedom; no number

    def test_sum_moves_by_its_sensitivity_at_most(self, monkeypatch):
        seen = []
        monkeypatch.setattr(
            samplers, "discrete_gaussian", lambda values, scale, *, rng=None: seen.append(values) or values
        )
        for value in (-150.0, -1.0, 0.2, 150.0, np.nan):
            curator, blocks = asked(np.zeros((0, 1))), BlockClusters(1, 20, 9)
            curator._data._memory["clusters"] = blocks, np.zeros((20, 1, 1)), np.array([value, *np.zeros(19)])
            assert abs(curator.ask(MeanLogScale(blocks, 0.0), 1)) <= 0.05
        sums = [int(v[0]) for v in seen]
        assert max(sums) - min(sums) == 2**17

    def test_no_agreement_is_none(self):
        curator, blocks = asked(np.zeros((0, 1)), budget=Budget(epsilon=50.0, delta=1e-6)), BlockClusters(1, 100, 9)
        for logs in (np.append(np.arange(30.0), np.full(70, np.nan)), np.full(100, np.nan)):
            curator._data._memory["clusters"] = blocks, np.zeros((100, 1, 1)), logs
            assert len(curator.ask(BlockScales(blocks, 0.0), 0.3, 3e-8)[0]) == 0
        curator._data._memory["clusters"] = blocks, np.zeros((100, 1, 1)), np.full(100, 7.25)
        middles, counts = curator.ask(BlockScales(blocks, 0.0), 0.3, 3e-8)
        assert len(middles) == 1 and abs(middles[0] - 7.25) <= 0.5 and abs(counts[0] - 100) < 20

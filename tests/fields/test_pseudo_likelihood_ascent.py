"""Clipped gradients of the pseudo-likelihood against a naive twin, their sensitivity by exhaustive neighbours, the
learner end to end, attacks on its releases."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.operators import field_gradients as learner
from pgmpy_dp.fields.operators import pseudo_likelihood as sums
from pgmpy_dp.fields.operators.pseudo_likelihood import ResidualGrid, distinct, gradient_sum
from pgmpy_dp.fields.pseudo_likelihood_ascent import log_potentials, parameters, run
from pgmpy_dp.fields.random_fields import BinaryField, Pairwise
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP
from pgmpy_dp.private.mathematics.field_design import FieldDesign
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Release
from tests.private import audit
from tests.settings import field_settings

DESIGNS = {
    "ising": FieldDesign((2, 2, 2), field_scopes(3, 2)),
    "graph": FieldDesign((2, 2, 2, 2), field_scopes(4, 2, [(0, 1), (2, 1)])),
    "third order": FieldDesign((2, 2, 2, 2), field_scopes(4, 3)),
    "pairwise": FieldDesign((3, 2, 4), field_scopes(3, 2)),
    "two of three states": FieldDesign((3, 3, 2), field_scopes(3, 2, [(0, 1)])),
    "no interactions": FieldDesign((3, 2), field_scopes(2, 1)),
}


@pytest.fixture(params=DESIGNS)
def design(request) -> FieldDesign:
    return DESIGNS[request.param]


def records(design: FieldDesign) -> np.ndarray:
    return np.array(list(itertools.product(*(range(k) for k in design.cardinalities))), dtype=np.uint8)


def parameters_of(design: FieldDesign, strength: float, seed: int = 0) -> np.ndarray:
    theta = strength * np.random.default_rng(seed).normal(size=design.n_parameters)
    return np.rint(theta * 2**14) / 2**14  # on the grid, so that the twin sees the same


def log_pseudo_likelihood(design: FieldDesign, theta: np.ndarray, record: np.ndarray) -> float:
    """The slow and obvious way: from the joint log-potential, one variable changed at a time."""
    scopes = dict(zip(design.scopes, log_potentials(design, theta), strict=True))
    total = 0.0
    for i, k in enumerate(design.cardinalities):
        energies = []
        for a in range(k):
            x = record.copy()
            x[i] = a
            energies.append(sum(float(table[tuple(x[list(scope)])]) for scope, table in scopes.items()))
        total += energies[record[i]] - np.logaddexp.reduce(energies)
    return total


def naive_gradient(design: FieldDesign, theta: np.ndarray, record: np.ndarray) -> np.ndarray:
    found = np.empty(len(theta))
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-4
        values = [log_pseudo_likelihood(design, theta + sign * step, record) for sign in (1, -1)]
        found[k] = (values[0] - values[1]) / 2e-4
    return found


def of_one(design, theta, grid, record) -> np.ndarray:
    return gradient_sum(record[None], np.ones(1), theta, grid, "add_remove").value


class TestGradientSums:
    @pytest.mark.parametrize("strength", [pytest.param(0.0, marks=pytest.mark.slow), 0.5, 3.0])
    def test_naive_twin(self, design, strength):
        theta = parameters_of(design, strength)
        grid = ResidualGrid(5.0 * design.reference_norm, design)  # so much that nothing is clipped
        for record in records(design):
            ours = of_one(design, theta, grid, record) * grid.unit
            naive = naive_gradient(design, theta, record)
            # Rounded residuals, of several nodes, times features; the twin's own error is smaller.
            assert np.abs(ours - naive).max() <= 4 * 2.0**-grid.bits + 1e-4
            assert np.linalg.norm(naive) <= 2.1 * design.reference_norm

    @pytest.mark.parametrize("clip", [0.05, 0.5, 1.0, 3.0])
    @pytest.mark.parametrize("strength", [0.0, 1.0, 30.0])
    def test_one_record_is_clipped_exactly_and_no_more_than_needed(self, design, clip, strength):
        theta = parameters_of(design, strength)
        grid = ResidualGrid(clip * design.reference_norm, design)
        loose = ResidualGrid(5.0 * design.reference_norm, design)
        assert Fraction(grid.bound) * Fraction(grid.unit) <= Fraction(grid.clip_norm)
        for record in records(design):
            vector = [int(v) for v in of_one(design, theta, grid, record)]  # Python integers: exact
            norm = math.sqrt(sum(v * v for v in vector)) * grid.unit
            assert sum(v * v for v in vector) <= grid.bound**2
            whole = np.linalg.norm(of_one(design, theta, loose, record) * loose.unit)
            wanted = min(whole, grid.clip_norm)
            # Weights in steps of 2**-8; norms bounded by the largest over the states of rounded contrasts.
            slack = 0.0 if design.binary else 0.05
            assert norm >= wanted * (1 - slack) - whole * 2.0**-8 - 0.1 * 2.0**-grid.bits * design.n_parameters

    def test_sums_do_not_depend_on_order_nor_on_the_size_of_blocks(self, design, monkeypatch):
        rng = np.random.default_rng(1)
        codes = np.column_stack([rng.integers(0, k, 307) for k in design.cardinalities]).astype(np.uint8)
        theta = parameters_of(design, 1.0)
        grid = ResidualGrid(0.7 * design.reference_norm, design)
        expected = sum(of_one(design, theta, grid, record) for record in codes)
        for chunk in (4096, 100, 7):
            monkeypatch.setattr(sums, "_CHUNK", chunk)
            shuffled = codes[rng.permutation(len(codes))]
            for rows, counts in (distinct(shuffled)[:2], (shuffled, np.ones(len(codes)))):
                assert counts.max() <= chunk and counts.sum() == len(codes)
                value = gradient_sum(rows, counts, theta, grid, "add_remove").value
                np.testing.assert_array_equal(value, expected)

    @pytest.mark.parametrize("clip", [0.05, pytest.param(0.5, marks=pytest.mark.slow), 2.0])
    @pytest.mark.parametrize("strength", [0.0, 2.0])
    def test_sensitivity_by_exhaustive_neighbours(self, design, clip, strength):
        theta = parameters_of(design, strength)
        grid = ResidualGrid(clip * design.reference_norm, design)
        universe = records(design)

        def exact(*rows):
            codes = np.array(rows, dtype=np.uint8).reshape(len(rows), len(design.cardinalities))
            return gradient_sum(*distinct(codes)[:2], theta, grid, "add_remove").value.astype(object)

        rests = [(), tuple(universe[:1]), tuple(universe[::3])]
        alone = [[exact(*rest, x) for x in universe] for rest in rests]
        add = max(int(((v - exact(*rest)) ** 2).sum()) for rest, row in zip(rests, alone, strict=True) for v in row)
        swap = max(int(((u - v) ** 2).sum()) for row in alone for u, v in itertools.combinations(row, 2))
        one, two = (gradient_sum(*distinct(universe)[:2], theta, grid, a) for a in ("add_remove", "replace_one"))
        assert add <= one.l2**2 and swap <= two.l2**2
        assert one.l2 == grid.bound and two.l2 == 2 * grid.bound
        if clip == 0.05:  # all are clipped: the bound is all but reached, and opposite gradients exist
            assert add >= 0.8 * one.l2**2 and swap >= 0.5 * two.l2**2
        assert all(np.abs(v.astype(float)).sum() <= one.l1 for v in alone[0])

    def test_no_records_and_extreme_parameters(self, design):
        grid = ResidualGrid(design.reference_norm, design)
        empty = np.empty((0, design.n_variables), dtype=np.uint8)
        assert not gradient_sum(*distinct(empty)[:2], np.zeros(design.n_parameters), grid, "add_remove").value.any()
        for theta in (np.full(design.n_parameters, 1e300), np.full(design.n_parameters, np.nan)):
            value = gradient_sum(*distinct(records(design))[:2], theta, grid, "add_remove").value
            assert np.abs(value).max() <= len(records(design)) * grid.bound

    def test_a_clip_norm_without_room_is_refused(self):
        design = DESIGNS["ising"]
        for clip in (1e-6, 1e9):
            with pytest.raises(ValueError, match="clip_norm="):
                ResidualGrid(clip, design)
        with pytest.raises(ValueError, match="more than two"):
            FieldDesign((3, 2, 2), field_scopes(3, 3))


# -- the learner ----------------------------------------------------------------------------------

STATES = {"a": ["x", "y"], "b": [0, 1], "c": [False, True]}
FIELD = BinaryField(3, {(0, 1): 0.6, (1, 2): -0.4, (0,): 0.2})


def frame(n: int, seed: int = 0) -> pd.DataFrame:
    codes = FIELD.to_log_linear().sample(n, np.random.default_rng(seed))
    return pd.DataFrame(
        {name: np.array(states, dtype=object)[codes[:, i]] for i, (name, states) in enumerate(STATES.items())}
    )


def private(data=None, adjacency="add_remove", ledger=None, n_records=None, states=None) -> PrivateTable:
    data = frame(500) if data is None else data
    n_records = max(len(data), 1) if adjacency == "replace_one" else n_records
    ledger = Budget(rho=1e9) if ledger is None else ledger
    return PrivateTable(data, states or STATES, adjacency=adjacency, ledger=ledger, n_records=n_records)


class TestRun:
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("sparse", [True, False])
    def test_the_noise_of_all_steps_costs_the_budget_and_no_more(self, adjacency, sparse, monkeypatch):
        scales, bounds = [], []
        true_noise, true_sum = samplers.discrete_gaussian, learner.gradient_sum
        monkeypatch.setattr(
            samplers, "discrete_gaussian", lambda v, s, rng=None: scales.append(s) or true_noise(v, s, rng=rng)
        )
        monkeypatch.setattr(
            learner, "gradient_sum", lambda c, w, t, grid, *a: bounds.append(grid.bound) or true_sum(c, w, t, grid, *a)
        )
        table = private(adjacency=adjacency, ledger=Budget(rho=0.3))
        release = run(table, field_settings(2.0, "ising", sparse=sparse, n_steps=10), Budget(rho=0.3))
        assert release.guarantee == ZCDP(0.3) and len(bounds) == 10
        changed = 2 if adjacency == "replace_one" else 1
        costs = [Fraction(changed * b) ** 2 / (2 * Fraction(s) ** 2) for b, s in zip(bounds, scales[-10:], strict=True)]
        if adjacency == "add_remove":
            assert len(scales) == 11
            costs.append(1 / (2 * Fraction(scales[0]) ** 2))
        assert sum(costs) <= Fraction(0.3)
        assert sum(costs) >= 0.999 * Fraction(0.3)

    def test_it_is_charged_and_says_what_it_is(self, tmp_path):
        table = private(ledger=Budget(epsilon=1.0, delta=1e-6))
        release = run(table, field_settings(2.0, "ising"), Budget(epsilon=1.0, delta=1e-6))
        assert release.kind == "pseudo_likelihood" and release.guarantee == ZCDP(approx_to_zcdp(1.0, 1e-6))
        assert parameters(release).shape == (6,) and release.noise[0] is None
        (entry,) = table.ledger.entries
        assert entry.columns == tuple(STATES) and entry.mechanism == "discrete_gaussian"
        with pytest.raises(BudgetExceeded):
            run(table, field_settings(2.0, "ising"), Budget(rho=0.1))
        assert table.ledger.entries == (entry,)
        release.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz") == release
        assert math.isclose(release.values[1][0], 500, abs_tol=200)

    @pytest.mark.parametrize(
        ("settings", "budget", "states", "message"),
        [
            ({}, Budget(epsilon=1.0), None, "delta=0 with epsilon=1.0"),
            ({}, Budget(rho=1e-30), None, "bury"),
            ({"clip_norm": 1e-9}, Budget(rho=1.0), None, "clip_norm="),
            # Room for all interactions, but none once they are dropped: refused at once, not on the way.
            ({"clip_norm": 8e-4}, Budget(rho=1.0), None, "clip_norm="),
            ({}, Budget(rho=1.0), {"a": ["x", "y", "z"], "b": [0, 1]}, r"\['a'\] have other than 2 states"),
            ({"family": "binary", "order": 4}, Budget(rho=1.0), None, "order=4 is more than the 3 variables"),
            ({"graph": [("a", "zzz")]}, Budget(rho=1.0), None, "zzz"),
        ],
    )
    def test_refusals_come_before_the_charge(self, settings, budget, states, message):
        data = frame(50) if states is None else pd.DataFrame({"a": ["x"], "b": [1]})
        table = private(data, states=states)
        with pytest.raises(ValueError, match=message):
            run(table, field_settings(**{"family": "ising", "width": 2.0, **settings}), budget)
        assert table.ledger.entries == ()

    @pytest.mark.parametrize("family", ["ising", "pairwise", "binary"])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_odd_records_have_a_defined_result(self, family, adjacency):
        whole = frame(30)
        odd = {
            "none": whole[:0],
            "outside": whole.assign(a="?"),
            "constant": whole.assign(a="x", b=0, c=True),
            "one": whole[:1],
        }
        for data in odd.values():
            order = 3 if family == "binary" else 2
            for budget in (Budget(rho=0.01), Budget(rho=1e8)):
                settings = field_settings(1.0, family, order=order, n_steps=6)
                release = run(private(data, adjacency), settings, budget)
                found = parameters(release)
                assert np.isfinite(found).all()
                assert np.abs(found).max() <= 2.5  # each interaction stays in a ball that the width gives

    def test_seeded_noise_is_repeatable_marked_and_warns(self):
        table = private()
        settings = field_settings(2.0, "ising", n_steps=4, random_state=3)
        with pytest.warns(ReproducibleNoiseWarning, match="NOT private"):
            releases = [run(table, settings, Budget(rho=1.0)) for _ in range(2)]
        assert releases[0] == releases[1] and releases[0].reproducible
        settings = field_settings(2.0, "ising", n_steps=4)
        assert run(table, settings, Budget(rho=1.0)) != run(table, settings, Budget(rho=1.0))


class TestRecovery:
    def test_binary_families(self):
        table = private(frame(100_000))
        for family, order in (("ising", 2), ("binary", 3)):
            release = run(table, field_settings(2.0, family, order=order), Budget(rho=1e4))
            truth = [FIELD.coefficients.get(scope, 0.0) for scope in field_scopes(3, order)]
            np.testing.assert_allclose(parameters(release), truth, atol=0.02)
            assert release.public["path"]["n_interactions"][1] < release.public["path"]["n_interactions"][0]

    def test_pairwise_of_unequal_alphabets_and_a_graph(self):
        table_01 = np.array([[1.0, -0.5, -0.5], [-1.0, 0.5, 0.5]])
        truth = Pairwise((np.array([0.2, -0.2]), np.zeros(3), np.zeros(2)), {(0, 1): table_01})
        codes = truth.to_log_linear().sample(100_000, np.random.default_rng(5))
        states = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]}
        table = private(pd.DataFrame(codes, columns=list(states)), states=states)
        for graph in (None, [("b", "a"), ("b", "c")]):
            settings = field_settings(4.0, "pairwise", graph=graph, sparse=graph is None)
            found = np.split(parameters(run(table, settings, Budget(rho=1e4))), [2, 5, 7, 13, 17])
            np.testing.assert_allclose(found[3].reshape(2, 3), table_01, atol=0.05)
            np.testing.assert_allclose(found[0], [0.2, -0.2], atol=0.05)
            assert np.abs(found[4]).max() == 0.0  # a and c: dropped, or not in the graph

    def test_dropping_interactions_lowers_the_error(self):
        """Two of 45 pairs interact: after the first part, noise is calibrated to few parameters."""
        field = BinaryField(10, {(0, 1): 0.6, (4, 7): -0.5})
        codes = field.to_log_linear().sample(20_000, np.random.default_rng(1))
        states = {f"v{i}": [0, 1] for i in range(10)}
        table = private(pd.DataFrame(codes, columns=list(states)), states=states)
        truth = np.array([field.coefficients.get(scope, 0.0) for scope in field_scopes(10, 2)])
        errors = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReproducibleNoiseWarning)
            for sparse in (True, False):
                found = [
                    parameters(
                        run(
                            table,
                            field_settings(2.0, "ising", sparse=sparse, random_state=s),
                            Budget(rho=0.002),
                        )
                    )
                    for s in range(3)
                ]
                errors[sparse] = np.mean([np.abs(f - truth).max() for f in found])
        assert errors[True] < 0.6 * errors[False]


# -- attacks --------------------------------------------------------------------------------------

NEIGHBOURS = {
    "add_remove": (pd.DataFrame({"a": [1], "b": [1]}), pd.DataFrame({"a": [], "b": []})),
    # Opposite gradients, as without interactions both fields move against each other.
    "replace_one": (pd.DataFrame({"a": [1], "b": [1]}), pd.DataFrame({"a": [0], "b": [0]})),
}


def attack(adjacency: str, releases: int) -> float:
    """Lower bound on rho of one whole step, read from the released parameters, which are noise plus clipped sum."""
    settings = field_settings(
        50.0, "ising", sparse=False, n_steps=1, clip_norm=0.3, learning_rate=1e-3, graph=[("a",), ("b",)]
    )
    direction = np.array([1.0, 1.0, 0.0])

    def draw(dataset: int, count: int) -> np.ndarray:
        table = PrivateTable(
            NEIGHBOURS[adjacency][dataset],
            {"a": [0, 1], "b": [0, 1]},
            adjacency=adjacency,
            ledger=Budget(rho=1e9),
            n_records=1,
        )
        return np.array([parameters(run(table, settings, Budget(rho=1.0))) for _ in range(count)])

    return audit.audit(draw, lambda o: o @ direction, releases=releases, bound=audit.rho_bound)


@pytest.mark.slow  # replays hold the same, of every record
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
class TestAttacks:
    def test_stays_below_the_claim(self, adjacency):
        assert attack(adjacency, 250) <= 1.0

    @pytest.mark.slow  # so does replay
    def test_too_little_noise_is_caught(self, adjacency, monkeypatch):
        true = samplers.discrete_gaussian
        monkeypatch.setattr(samplers, "discrete_gaussian", lambda v, s, rng: true(v, s / 3, rng=rng))
        assert attack(adjacency, 700) > 1.0

    @pytest.mark.slow  # so does replay
    def test_forgetting_to_clip_is_caught(self, adjacency, monkeypatch):
        monkeypatch.setattr(sums, "_weights", lambda codes, residuals, grid: np.full(len(codes), 256.0))
        assert attack(adjacency, 800) > 1.0

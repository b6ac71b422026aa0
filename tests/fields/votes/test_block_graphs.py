"""Votes of random blocks: block learners, sensitivities of the votes, charges, outcomes on odd records, recovery."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from benchmarks.field_sampling import sample_field
from pgmpy_dp.fields.operators.vote_operators import EdgeVotes, vote_sensitivity
from pgmpy_dp.fields.random_fields import BinaryField, Ising, Pairwise
from pgmpy_dp.fields.votes import block_graphs, edge_voting, stable_structure
from pgmpy_dp.fields.votes.block_graphs import (
    BlockLearner,
    block_arguments,
    least_records,
    node_regressions,
    plan_blocks,
)
from pgmpy_dp.fields.votes.edge_voting import edge_frequencies
from pgmpy_dp.fields.votes.stable_structure import stable_graph
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import observer as curator_module
from pgmpy_dp.private.curator.observer import Observer, observed
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.distance_test import distance_test
from pgmpy_dp.private.noise.subsampling import uniform_parts
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.schema import Schema
from tests.settings import vote_settings

STATES = {name: [0, 1] for name in "abcd"}
PATH = Ising(0.6 * nx.to_numpy_array(nx.path_graph(4)), np.zeros(4))
CODES = sample_field(PATH, 4000, np.random.default_rng(1))
EDGES = ((0, 1), (1, 2), (2, 3))
BUDGET = Budget(epsilon=1.0, delta=1e-2)
LEARNERS = ["logistic", "inverse-covariance", "chow-liu"]


def parts_of(table, n):
    with TableCurator(table, Budget(rho=1e-3), what="parts").split(n) as parts:
        return [shared_codes(part._data)[0] for part in parts]


def private(codes=CODES, adjacency="add_remove", ledger=None, states=None) -> PrivateTable:
    states = STATES if states is None else states
    n_records = len(codes) if adjacency == "replace_one" else None
    ledger = Budget(epsilon=1e6, delta=0.9) if ledger is None else ledger
    frame = pd.DataFrame(codes, columns=list(states))
    return PrivateTable(frame, states, adjacency=adjacency, ledger=ledger, n_records=n_records)


def planned(learner="auto", sizes=(2, 2, 2, 2), **settings) -> BlockLearner:
    schema = Schema({f"v{i}": list(range(k)) for i, k in enumerate(sizes)})
    return plan_blocks(schema, vote_settings(**{"width": 1.5, "min_edge_weight": 0.6, "learner": learner, **settings}))


def named(learner: BlockLearner, graph: tuple[int, ...]) -> tuple:
    pairs = list(itertools.combinations(range(len(learner.cardinalities)), 2))
    return tuple(pairs[edge] for edge in graph)


class Exact(Observer):
    """Answers without noise, and draws of parts that are given."""

    def __init__(self, part=None):
        self.part = part

    def answer(self, request, draw):
        exact = request.mechanism
        if request.operator == "agreed_graph":
            return [np.array([exact.distance]), exact.members[list(exact.mode or ())]]
        return [item.value for item in exact.exact]

    def parts(self, records, n_parts, draw):
        return draw() if self.part is None else self.part


class TestParts:
    @pytest.mark.parametrize("parts", [1, 2, 3, 7])
    def test_draws_are_uniform_and_independent_of_each_other(self, parts):
        drawn = uniform_parts(40_000, parts)
        assert drawn.min() >= 0 and drawn.max() < parts
        joint = np.bincount(drawn[::2] * parts + drawn[1::2], minlength=parts**2)
        expected = 20_000 / parts**2
        assert ((joint - expected) ** 2 / expected).sum() <= chi2.isf(1e-6, parts**2 - 1 or 1)

    def test_numbers_beyond_the_largest_multiple_are_drawn_again(self):
        class Bits:
            def __init__(self):
                self.words = [np.array([2**32 - 1, 4], dtype=np.uint32), np.array([5], dtype=np.uint32)]

            def bytes(self, size):
                word = self.words.pop(0)
                assert 4 * word.size == size
                return word.tobytes()

        assert uniform_parts(2, 3, rng=Bits()).tolist() == [2, 1]
        with pytest.raises(ValueError, match="parts=0"):
            uniform_parts(2, 0)

    def test_parts_are_disjoint_and_together_all_records_in_order(self):
        codes = np.arange(4000).reshape(1000, 4) % 256
        states = {name: list(range(256)) for name in "abcd"}
        subject = private(codes, states=states)
        blocks = parts_of(subject, 30)
        assert len(blocks) == 30 and sum(map(len, blocks)) == 1000
        together = np.concatenate(blocks)
        np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(shared_codes(subject)[0], axis=0))
        sizes = {tuple(map(len, parts_of(subject, 3))) for _ in range(5)}
        assert len(sizes) > 1  # new draws each time

    def test_with_the_same_draws_a_record_changes_its_own_part_only(self, monkeypatch):
        part = np.random.default_rng(0).integers(0, 5, 20)
        for changed in range(20):
            replaced = CODES[:20].copy()
            replaced[changed] = 1 - replaced[changed]
            found = {}
            for name, codes, draws in (
                ("given", CODES[:20], part),
                ("replaced", replaced, part),
                ("removed", np.delete(CODES[:20], changed, axis=0), np.delete(part, changed)),
            ):
                monkeypatch.setattr(curator_module, "uniform_parts", lambda n, k, rng, draws=draws: draws)
                found[name] = parts_of(private(codes), 5)
            for other in ("replaced", "removed"):
                differ = [k for k in range(5) if not np.array_equal(found["given"][k], found[other][k])]
                assert differ == [part[changed]]


class TestBlockLearners:
    @pytest.mark.parametrize("learner", LEARNERS)
    def test_they_find_the_graph_and_estimate_the_weights(self, learner):
        made = planned(learner)
        assert named(made, made.graph(CODES)) == EDGES
        scores = made.scores(CODES)
        assert [scores[edge] for edge in EDGES] == pytest.approx([0.6] * 3, abs=0.08)
        np.testing.assert_array_equal(scores, scores.T)

    @pytest.mark.parametrize("learner", ["logistic", "chow-liu"])
    def test_variables_of_three_states(self, learner):
        table = np.array([[0.8, -0.4, -0.4], [-0.8, 0.4, 0.4]])
        field = Pairwise((np.zeros(2), np.zeros(3), np.zeros(3)), {(0, 1): table})
        made = planned(learner, (2, 3, 3))
        codes = field.to_log_linear().sample(4000, np.random.default_rng(2))
        assert named(made, made.graph(codes)) == ((0, 1),)
        assert made.scores(codes)[0, 1] == pytest.approx(0.8, abs=0.1)

    def test_third_order(self):
        field = BinaryField(4, {(0, 1, 2): 0.7, (2, 3): 0.5})
        made = planned("logistic", order=3, min_edge_weight=0.5)
        codes = field.to_log_linear().sample(6000, np.random.default_rng(2))
        assert named(made, made.graph(codes)) == ((0, 1), (0, 2), (1, 2), (2, 3))

    def test_regressions_minimise_the_loss_on_the_l1_ball(self):
        """Against scipy on the split into positive and negative parts, with an active constraint."""
        from scipy.optimize import minimize

        from pgmpy_dp.fields.published.regression_layout import regression_layout
        from pgmpy_dp.private.operators.regressions import feature_rows

        layout = regression_layout("ising", [2] * 4)
        ours = node_regressions(feature_rows(CODES[:300], layout).astype(float), CODES[:300], layout, 0.7)
        z = 2.0 * CODES[:300] - 1
        for i in range(4):
            x = z.copy()
            x[:, i] = 1.0

            def loss(w, x=x, i=i):
                return np.logaddexp(0, -z[:, i] * (x @ (w[:4] - w[4:]))).mean()

            sum_at_most = {"type": "ineq", "fun": lambda w: 0.7 - w.sum()}
            best = minimize(loss, np.zeros(8), bounds=[(0, None)] * 8, constraints=[sum_at_most], tol=1e-10)
            assert np.abs(ours[i]).sum() <= 0.7 + 1e-9
            assert loss(np.concatenate([np.maximum(ours[i], 0), np.maximum(-ours[i], 0)])) <= best.fun + 1e-6

    def test_the_tree_is_the_one_of_largest_mutual_information(self):
        rng = np.random.default_rng(3)
        codes = sample_field(Ising(np.triu(m := rng.normal(size=(5, 5)) / 3, 1) + np.triu(m, 1).T, m[0]), 500, rng)
        graph = nx.Graph()
        for i, j in itertools.combinations(range(5), 2):
            joint = np.histogram2d(codes[:, i], codes[:, j], bins=2)[0] / 500
            outer = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            graph.add_edge(i, j, weight=np.nansum(joint * np.log(joint / outer)))
        made = planned("chow-liu", (2,) * 5, min_edge_weight=1e-9)
        assert set(named(made, made.graph(codes))) == {
            tuple(sorted(edge)) for edge in nx.maximum_spanning_tree(graph).edges
        }

    @pytest.mark.parametrize("learner", LEARNERS)
    @pytest.mark.parametrize(
        "codes",
        [CODES[:0], CODES[:1], CODES[:2], np.zeros_like(CODES[:9]), np.repeat(np.arange(9) % 2, 4).reshape(9, 4)],
        ids=["none", "one", "two", "constant", "all equal"],
    )
    def test_odd_blocks_have_a_graph_and_no_message(self, learner, codes):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = planned(learner).graph(codes)
        if not len(codes):
            assert graph is None  # says nothing, not that there are no edges
            return
        assert all(0 <= edge < 6 for edge in graph) and list(graph) == sorted(set(graph))
        if learner != "logistic" and len(set(map(tuple, codes))) < 2:
            assert graph == ()

    def test_scores_that_are_no_numbers_are_no_graph(self, monkeypatch):
        monkeypatch.setattr(block_graphs, "inverse_covariance_scores", lambda codes, weights: np.full((4, 4), np.nan))
        assert planned().graph(CODES) is None

    def test_fewer_records_than_tell_edges_from_none_are_no_graph(self):
        """By the records of the block alone, and by what they count for."""
        assert least_records([2, 2, 2, 2], 0.4) == 25 and least_records([3, 2, 5], 0.4) == 200
        learner = replace(planned("chow-liu"), least_records=25)
        assert learner.graph(CODES[:24]) is None and learner.graph(CODES[:25]) is not None
        assert learner.graph(CODES[:100], np.full(100, 0.24)) is None
        assert learner.graph(CODES[:100], np.full(100, 0.25)) is not None

    @pytest.mark.parametrize("plan", [stable_structure, edge_voting])
    def test_a_learner_that_fails_is_a_null_vote(self, plan, monkeypatch):
        monkeypatch.setattr(block_graphs, "inverse_covariance_scores", lambda codes, weights: 1 / 0)
        with observed(Exact()):
            release = plan.run(private(), vote_settings(n_blocks=9), BUDGET)
        # Nobody voted, not for the graph without edges either: one vote would make a mode.
        assert release.values[0].tolist() == ([-1] if plan is stable_structure else [0] * 6)

    def test_graphs_are_cut_to_their_strongest_edges(self):
        weights = np.zeros((4, 4))
        for (i, j), value in zip(EDGES, (0.5, 0.9, 0.7), strict=True):
            weights[i, j] = weights[j, i] = value
        codes = sample_field(Ising(weights, np.zeros(4)), 8000, np.random.default_rng(0))
        assert [named(m := planned(max_edges=s), m.graph(codes)) for s in (1, 2)] == [((1, 2),), ((1, 2), (2, 3))]


def test_votes_move_within_their_sensitivity_for_all_neighbours():
    """All pairs of graphs of up to s of 3 pairs: one block moves the counts by l1, l2 at most, and by that much."""
    for s in (1, 2, 3):
        graphs = [g for size in range(s + 1) for g in itertools.combinations(range(3), size)]
        moves = [np.array([(e in g) - (e in h) for e in range(3)]) for g in graphs for h in graphs]
        l1, l2, linf = vote_sensitivity(3, s)
        assert max(np.abs(m).sum() for m in moves) == l1 == min(2 * s, 3)
        assert max(m @ m for m in moves) <= l2**2 <= l1 * (1 + 1e-12)
        assert max(np.abs(m).max() for m in moves) == linf == 1


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_counts_of_neighbouring_records_stay_within_it(adjacency):
    """Blocks of tiny data, every record changed to every other: real graphs, the same draws."""
    learner = planned("chow-liu", (2, 2, 2), min_edge_weight=0.1, max_edges=1)
    rng = np.random.default_rng(5)
    codes, part = rng.integers(0, 2, (12, 3)), rng.integers(0, 3, 12)

    def counted(codes, part):
        subject = private(codes, adjacency, states={name: [0, 1] for name in "abc"})
        curator = TableCurator(subject, BUDGET, what="test", columns=[])
        with observed(Exact(part)):
            return curator.ask(EdgeVotes(**block_arguments(learner), n_blocks=3, n_workers=1), 1)

    largest, before = 0, counted(codes, part)
    for k in range(12):
        others = [None] if adjacency == "add_remove" else itertools.product([0, 1], repeat=3)
        for other in others:
            changed, draws = codes.copy(), part
            if other is None:
                changed, draws = np.delete(codes, k, axis=0), np.delete(part, k)
            else:
                changed[k] = other
            largest = max(largest, np.abs(before - counted(changed, draws)).sum())
            assert largest <= vote_sensitivity(3, 1)[0]
    assert largest > 0


MECHANISMS = {
    "stable": (stable_structure.run, vote_settings),
    "votes": (edge_voting.run, vote_settings),
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
class TestReleases:
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_charged_once_before_the_records_are_looked_at(self, mechanism, adjacency, monkeypatch):
        run, settings = MECHANISMS[mechanism]
        events = []
        charge, parts = Ledger.charge, curator_module.uniform_parts
        monkeypatch.setattr(Ledger, "charge", lambda *a, **k: events.append("charge") or charge(*a, **k))
        monkeypatch.setattr(curator_module, "uniform_parts", lambda *a, **k: events.append("draw") or parts(*a, **k))
        subject = private(CODES[:200], adjacency)
        release = run(subject, settings(n_blocks=3), BUDGET)
        assert events == ["charge", "draw"]
        assert [entry.cost for entry in subject.ledger.entries] == [release.guarantee]
        assert str(release.adjacency) == adjacency

    def test_refusals_change_nothing(self, mechanism):
        run, settings = MECHANISMS[mechanism]
        subject = private(ledger=Budget(epsilon=1.0, delta=1e-3))
        with pytest.raises(BudgetExceeded):
            run(subject, settings(), Budget(epsilon=2.0, delta=1e-3))
        with pytest.raises(ValueError, match="more than 65536 blocks"):
            run(subject, settings(n_blocks=10**6), Budget(epsilon=1.0, delta=1e-3))
        with pytest.raises(ValueError, match="more than 65536 blocks; raise"):
            run(subject, settings(), Budget(epsilon=1e-5, delta=1e-9))
        with pytest.raises(TypeError, match="pass a PrivateTable"):
            run(CODES, settings(), BUDGET)
        with pytest.raises(TypeError, match=r"pass (a )?Budget"):
            run(subject, settings(), 1.0)
        with pytest.raises(ValueError, match="n_blocks=0"):
            settings(n_blocks=0)
        with pytest.raises(ValueError, match="random_state=-1"):
            settings(random_state=-1)
        assert subject.ledger.entries == ()

    @pytest.mark.parametrize("n_blocks", [1, 2, 50])
    @pytest.mark.parametrize("n", [0, 1, 20])
    def test_any_blocks_and_records_have_a_result(self, mechanism, n_blocks, n, tmp_path):
        run, settings = MECHANISMS[mechanism]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            release = run(private(CODES[:n]), settings(n_blocks=n_blocks), BUDGET)
        release.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz") == release
        read = stable_graph(release).edges if mechanism == "stable" else edge_frequencies(release)
        assert read is None or all(np.isfinite(value).all() for value in np.atleast_1d(read))

    @pytest.mark.parametrize("learner", LEARNERS)
    def test_the_number_of_threads_does_not_show(self, mechanism, learner):
        run, _ = MECHANISMS[mechanism]
        releases = [
            run(
                private(CODES[:1500]),
                vote_settings(learner=learner, n_workers=workers, n_blocks=12, random_state=7),
                BUDGET,
            )
            for workers in (1, 2)
        ]
        assert releases[0] == releases[1] and releases[0].reproducible


class TestStable:
    def test_a_clear_graph_is_released_and_costs_the_budget(self):
        subject = private(ledger=BUDGET)
        release = stable_structure.run(subject, vote_settings(random_state=0), BUDGET)
        found = stable_graph(release)
        assert found.edges == EDGES and found.n_blocks == math.ceil(4 * math.log(100)) and found.threshold == 5
        assert release.guarantee == ApproxDP(1.0, 1e-2) == subject.ledger.spent

    def test_no_stable_structure_costs_the_same(self):
        subject = private(np.random.default_rng(0).integers(0, 2, (60, 4)), ledger=BUDGET)
        release = stable_structure.run(subject, vote_settings(n_blocks=8, random_state=0), BUDGET)
        found = stable_graph(release)
        assert found.edges is None and found.noisy_distance < found.threshold and release.values[1].shape == (0, 2)
        assert [entry.cost for entry in subject.ledger.entries] == [ApproxDP(1.0, 1e-2)]

    def test_an_empty_graph_is_not_no_graph(self):
        codes = np.random.default_rng(0).integers(0, 2, (8000, 4))
        found = stable_graph(stable_structure.run(private(codes), vote_settings(random_state=0), BUDGET))
        assert found.edges == () and found.noisy_distance >= found.threshold
        # More blocks than records have no graph: nearly all blocks are empty, which is nothing to agree on.
        release = stable_structure.run(private(CODES[:2]), vote_settings(n_blocks=99, random_state=0), BUDGET)
        assert stable_graph(release).edges is None
        assert release.public["settings"]["least_records"] == least_records([2] * 4, 0.6)

    def test_default_blocks_release_nine_in_ten_almost_surely(self):
        """Exact probability, for delta = 1e-6: the other tenth agrees on one other graph, the worst case."""
        n_blocks = math.ceil(4 * math.log(1e6))
        test = distance_test(1.0, 1e-6)
        kept = round(0.9 * n_blocks)
        distance = -(-(2 * kept - n_blocks) // 2) - 1
        a = math.exp(-1 / test.scale)
        assert 1 - a ** (distance - test.threshold + 1) / (1 + a) > 0.99

    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=1.0)])
    def test_it_needs_a_delta(self, budget):
        subject = private()
        with pytest.raises(ValueError, match="delta above 0"):
            stable_structure.run(subject, vote_settings(random_state=0), budget)
        assert subject.ledger.entries == ()


class TestVotes:
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize(
        ("budget", "cost"),
        [
            (Budget(epsilon=1.0), PureDP(1.0)),
            (Budget(rho=0.5), ZCDP(0.5)),
            (Budget(epsilon=1.0, delta=1e-2), None),
        ],
    )
    def test_each_budget(self, adjacency, budget, cost):
        release = edge_voting.run(private(CODES, adjacency), vote_settings(n_blocks=40), budget)
        assert release.guarantee == cost or (
            cost is None and release.guarantee in (PureDP(1.0), ZCDP(approx_to_zcdp(1.0, 1e-2)))
        )
        # l1 of a change of one graph among 6 pairs is 6, under both adjacencies; l2 its root.
        scale = {PureDP(1.0): 6.0, ZCDP(0.5): math.sqrt(6.0)}.get(release.guarantee)
        assert scale is None or release.noise[0].scale == pytest.approx(scale)

    def test_frequencies_without_much_noise(self):
        release = edge_voting.run(private(ledger=Budget(rho=1e6)), vote_settings(n_blocks=20), Budget(rho=1e6))
        shares = edge_frequencies(release)
        assert {tuple(edge) for edge in np.argwhere(np.triu(shares > 0.5))} == set(EDGES)
        np.testing.assert_array_equal(shares, shares.T)
        assert release.values[0].max() <= 20

    def test_a_bound_on_edges_lowers_the_noise(self):
        release = edge_voting.run(private(), vote_settings(max_edges=1, n_blocks=20), Budget(epsilon=1.0))
        assert release.noise[0].scale == 2.0
        tree = edge_voting.run(private(), vote_settings(learner="chow-liu", n_blocks=20), Budget(epsilon=1.0))
        assert tree.noise[0].scale == 6.0  # min(2 * 3, 6)

    def test_noise_is_added(self, monkeypatch):
        monkeypatch.setattr(samplers, "discrete_laplace", lambda values, scale, rng=None: values + 1000)
        release = edge_voting.run(private(), vote_settings(n_blocks=5), Budget(epsilon=1.0))
        assert release.values[0].min() >= 1000


@pytest.mark.parametrize(
    ("settings", "sizes", "message"),
    [
        ({"width": 0.0}, (2, 2), "width=0.0"),
        ({"min_edge_weight": -1.0}, (2, 2), "min_edge_weight=-1.0"),
        ({"learner": "magic"}, (2, 2), "learner='magic'"),
        ({"order": 1}, (2, 2), "order=1"),
        ({"order": 3, "learner": "chow-liu"}, (2, 2, 2), "order=3 with learner='chow-liu'"),
        ({"order": 3}, (2, 2), "order=3 is more than the 2"),
        ({"order": 3}, (2, 2, 3), r"\['v2'\] other numbers of states"),
        ({"learner": "inverse-covariance"}, (2, 3), r"\['v1'\] other numbers of states"),
        ({"order": 4}, (2,) * 120, "more than 10000000"),
        ({"learner": "chow-liu"}, (6000, 6000), "144000000 cells"),
        ({"max_edges": 0}, (2, 2), "max_edges=0"),
        ({"n_workers": 0}, (2, 2), "n_workers=0"),
        ({}, (2,), "at least two"),
    ],
)
def test_settings_that_do_not_go_together(settings, sizes, message):
    with pytest.raises(ValueError, match=message):
        planned(sizes=sizes, **settings)

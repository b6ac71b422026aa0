"""The adaptive release: what it charges and says, what it does with awkward data, and attacks on it."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.learning.level_plan import coarser_tables, levels_in
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, contingency_tables
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import additive
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.noise.selection import noisy_argmax, selection_scale
from pgmpy_dp.private.operators import tables as table_operator
from pgmpy_dp.private.operators.worst_fit import WorstFit, misfit_scores
from pgmpy_dp.private.sensitive import Release, Sensitive
from pgmpy_dp.schema import Levels, Number, Schema
from pgmpy_dp.tables.networks import adaptive_search, budget_shares, candidates
from pgmpy_dp.tables.networks.adaptive_search import run
from pgmpy_dp.tables.networks.budget_shares import OPTIMISE, network_shares
from pgmpy_dp.tables.networks.candidates import Candidates
from pgmpy_dp.tables.networks.network_estimate import NetworkEstimate, estimate_network
from pgmpy_dp.tables.networks.search_policy import Spending, gain, losses
from tests.private import audit
from tests.settings import settings

network_settings = partial(settings, PrivateNetwork, probe_share=0.0)

# Probes have tests of their own, test_private_network_probes.py.
STATES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1], "d": [0, 1]}
BUDGETS = [Budget(epsilon=1.0), Budget(rho=0.3), Budget(epsilon=1.0, delta=1e-6)]


def frame(n=2000, seed=0):
    """a and b are close, c and d less so, the rest is independent."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 2, n), rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.9, a, 2)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": np.where(rng.random(n) < 0.7, c, 1 - c)})


def private(data=None, adjacency="add_remove", ledger=None, states=STATES):
    data = frame() if data is None else data
    n_records = 2000 if adjacency == "replace_one" else None
    ledger = Budget(epsilon=1e6, delta=0.5) if ledger is None else ledger
    return PrivateTable(data, states, adjacency=adjacency, ledger=ledger, n_records=n_records)


def total_cost(release, adjacency):
    """What the published scales cost together, in exact arithmetic, from the textbook's formulas."""
    factor = 1 if adjacency == "add_remove" else 2
    cost = Fraction(0)
    gaussian = isinstance(release.guarantee, ZCDP)
    for noise in release.noise:
        scale = Fraction(noise.scale)
        cost += Fraction(factor) / (2 * scale**2) if gaussian else factor / scale
    for record in release.public["rounds"]:
        if record["selection_scale"] is not None:
            ratio = 2 * factor / Fraction(record["selection_scale"])
            cost += ratio**2 / 8 if gaussian else ratio
    return cost


SETTINGS = [
    *({}, {"required_edges": [("a", "d")]}, {"n_rounds": 1}),
    *({"n_rounds": 50, "probe_share": 0.1}, {"target": "b"}),
]


class TestCost:
    # One adjacency or the other, in turns.
    @pytest.mark.parametrize(
        ("settings", "budget", "adjacency"),
        [
            pytest.param(given, budget, adjacency, marks=[pytest.mark.slow] if (i + j + k) % 2 else [])
            for i, given in enumerate(SETTINGS)
            for j, budget in enumerate(BUDGETS)
            for k, adjacency in enumerate(("add_remove", "replace_one"))
        ],
        ids=str,
    )
    def test_published_scales_cost_the_budget_and_no_more(self, adjacency, budget, settings):
        release = run(private(adjacency=adjacency), network_settings(**settings), budget)
        if budget.rho is None and not budget.delta:
            assert release.guarantee == PureDP(1.0)
            limit = Fraction(1)
        else:
            limit = Fraction(budget.rho or approx_to_zcdp(budget.epsilon, budget.delta))
            assert release.guarantee == ZCDP(float(limit))
        cost = total_cost(release, adjacency)
        assert float(cost / limit) > 1 - 1e-9
        assert cost <= limit

    def test_one_entry_is_charged_and_the_release_says_what_it_is(self, tmp_path):
        table = private(ledger=Budget(epsilon=1.0))
        release = run(table, network_settings(n_rounds=3, forbidden_edges=[("a", "c")]), Budget(epsilon=0.1))
        (entry,) = table.ledger.entries
        assert (entry.cost, entry.columns) == (PureDP(0.1), tuple(STATES))
        assert entry.mechanism == release.mechanism == "exponential_noisy_max+discrete_laplace"
        assert release.kind == "marginals"
        assert release.scopes[:4] == (("a",), ("b",), ("c",), ("d",))
        singles = [scope for scope in release.scopes if len(scope) == 1]  # and once more, if rounds leave something
        assert singles[4:] in ([], singles[:4])
        assert len(release.scopes) == len(singles) + len(release.public["rounds"])
        assert [v.shape for v in release.values] == [tuple(len(STATES[x]) for x in s) for s in release.scopes]
        release.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz") == release

    def test_check_charge_count_in_this_order(self, monkeypatch):
        events = []
        for module, name in ((adaptive_search, "network_shares"), (table_operator, "contingency_tables")):
            true = getattr(module, name)
            monkeypatch.setattr(module, name, lambda *a, n=name, f=true: events.append(n) or f(*a))
        charge = Ledger.charge
        monkeypatch.setattr(Ledger, "charge", lambda *a, **k: events.append("charge") or charge(*a, **k))
        run(private(), network_settings(n_rounds=1), Budget(epsilon=1.0))
        assert events[:3] == ["network_shares", "charge", "contingency_tables"]
        assert events.count("charge") == 1

    @pytest.mark.parametrize(
        ("settings", "budget", "message"),
        [
            ({}, Budget(epsilon=1.1), "asked"),
            ({}, Budget(epsilon=1e-14), "bury"),
            ({"required_edges": [("a", "zzz")]}, Budget(epsilon=0.1), "required_edges has the unknown .* 'zzz'"),
            (
                {"forbidden_edges": [("zzz", "a")]},
                Budget(epsilon=0.1),
                "forbidden_edges has the unknown variables 'zzz'",
            ),
            (
                {"required_edges": [("a", "b"), ("b", "c"), ("a", "c")], "max_clique_cells": 11},
                Budget(epsilon=0.1),
                "required_edges need a clique of 12 cells",
            ),
            ({"target": "z"}, Budget(epsilon=0.1), "target has the unknown variables 'z'"),
            (
                {"target": "a", "forbidden_edges": [("a", "b"), ("a", "c"), ("d", "a")]},
                Budget(epsilon=0.1),
                "target='a' has no table with another variable",
            ),
            ({"workload": [tuple("abcd")]}, Budget(epsilon=0.1), r"\('a', 'b', 'c', 'd'\), .* max_order=3 .*raise"),
            (
                {"workload": [tuple("abc")], "max_clique_cells": 11},
                Budget(epsilon=0.1),
                r"\('a', 'b', 'c'\), a table of 12 cells, .* max_clique_cells=11 cells; raise",
            ),
        ],
    )
    def test_a_refusal_changes_nothing(self, settings, budget, message):
        table = private(ledger=Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=message) as caught:
            run(table, network_settings(**settings), budget)
        assert isinstance(caught.value, BudgetExceeded) == (message == "asked")
        assert table.ledger.entries == ()

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"required_edges": "ab"}, TypeError, "required_edges='ab'"),
            ({"required_edges": [("a", "a")]}, ValueError, "sets of up to 8 different"),
            ({"required_edges": [("a",)]}, ValueError, "sets of up to 8 different"),
            ({"forbidden_edges": [tuple("abcdefghi")]}, ValueError, "sets of up to 8 different"),
            ({"required_edges": [("a", "b", "c")], "forbidden_edges": [("c", "a")]}, ValueError, "both have"),
            ({"max_order": 1}, ValueError, "max_order=1"),
            ({"max_order": 9}, ValueError, "max_order=9"),
            ({"workload": {("a", "b"): 0.0}}, ValueError, r"workload\[\('a', 'b'\)\]=0"),
            ({"workload": {"ab": 1.0}}, TypeError, "workload holds 'ab'"),
            ({"workload": [("a",)]}, ValueError, "workload holds"),
            ({"target": ["a"]}, TypeError, "pass the name of a column"),
            ({"workload": [("a", "b")], "target": "a"}, ValueError, "target='a' and a workload were both passed"),
            ({"forbidden_edges": ["ab"]}, TypeError, "forbidden_edges holds 'ab'"),
            ({"required_edges": [("a", "b")], "forbidden_edges": [("b", "a")]}, ValueError, "both have"),
            ({"max_clique_cells": 3}, ValueError, "max_clique_cells=3"),
            ({"n_rounds": 0}, ValueError, "n_rounds=0"),
            ({"one_way_share": 0.0}, ValueError, "one_way_share=0"),
            ({"selection_share": 1.0}, ValueError, "selection_share=1"),
            ({"random_state": -1}, ValueError, "random_state=-1"),
        ],
    )
    def test_settings(self, settings, error, message):
        with pytest.raises(error, match=message):
            network_settings(**settings)


class TestChoices:
    def test_the_strongest_pairs_come_first(self):
        release = run(private(), network_settings(n_rounds=2, max_order=2), Budget(rho=100.0))
        assert release.scopes[4:6] == (("a", "b"), ("c", "d"))

    @pytest.mark.parametrize("budget", [Budget(rho=10.0), Budget(epsilon=30.0)], ids=str)
    def test_triples_that_no_pair_tells_of_are_found(self, budget):
        rng = np.random.default_rng(1)
        a, c, d = rng.integers(0, 2, (3, 2000))
        data = pd.DataFrame({"a": a, "b": np.where(rng.random(2000) < 0.9, a ^ c, 2), "c": c, "d": d})
        release = run(private(data), network_settings(n_rounds=4), budget)
        assert release.scopes[4] == ("a", "b", "c")
        pairs = run(private(data), network_settings(n_rounds=4, max_order=2), budget)
        assert max(map(len, pairs.scopes)) == 2

    def test_of_many_variables_a_round_measures_several_sets_without_a_common_pair(self):
        rng = np.random.default_rng(2)
        common = rng.integers(0, 2, 400)
        data = pd.DataFrame({f"v{k}": np.where(rng.random(400) < 0.8, common, 1 - common) for k in range(48)})
        states = {name: [0, 1] for name in data}
        calls = []
        release = run(
            private(data, states=states),
            network_settings(n_rounds=9, max_order=2, one_way_share=0.1),
            Budget(rho=0.5),
            calls.append,
        )
        rounds = [record["round"] for record in release.public["rounds"]]
        assert rounds == sorted(rounds) and len(set(rounds)) <= len(calls)
        chosen = [scope for scope in release.scopes if len(scope) > 1]
        for number in set(rounds):
            together = [scope for scope, k in zip(chosen, rounds, strict=True) if k == number]
            assert len(set(together)) == 3
        assert 1 - 1e-9 < float(total_cost(release, "add_remove")) / 0.5 <= 1

    def test_where_records_are_known_precisely_a_round_measures_several_sets_too(self):
        """Of 15 variables three at most, and one where that many rounds were asked for, or where records are few."""
        rng = np.random.default_rng(3)
        common = rng.integers(0, 2, 3000)
        data = pd.DataFrame({f"v{k}": np.where(rng.random(3000) < 0.8, common, 1 - common) for k in range(15)})
        states, budget, found = {name: [0, 1] for name in data}, Budget(rho=200.0), []
        for asked in ({}, {"n_rounds": 9}):
            settings = network_settings(max_order=2, **asked)
            release = run(private(data, states=states), settings, budget)
            rounds = [record["round"] for record in release.public["rounds"]]
            chosen = [scope for scope in release.scopes if len(scope) > 1]
            for number in set(rounds):
                together = [scope for scope, k in zip(chosen, rounds, strict=False) if k == number]
                assert len(set(together)) == len(together)
            found.append(max(map(rounds.count, rounds)))
            assert 1 - 1e-9 < float(total_cost(release, "add_remove")) / 200.0 <= 1
        assert found == [3, 1]
        shares = network_shares(Schema(states), Adjacency.ADD_REMOVE, network_settings(), budget)
        assert [shares.in_a_round(n) for n in (1.0, 1e3, 2e3, 1e9)] == [1, 2, 3, 3]

    def test_forbidden_sets_are_never_measured(self):
        banned = [("c", "a"), ("b", "c", "d")]
        release = run(private(), network_settings(forbidden_edges=banned, max_order=4), Budget(rho=100.0))
        assert len(release.scopes) > 4
        for names in banned:
            assert not any(set(names) <= set(scope) for scope in release.scopes)

    def test_a_workload_decides_what_is_measured(self):
        release = run(private(), network_settings(workload=[("a", "d", "c")]), Budget(rho=1.0))
        assert all(set(scope) <= {"a", "c", "d"} for scope in release.scopes[4:])
        assert ["b"] not in release.public["settings"]["workload"]
        # The misfit of c and d is a third of that of a and b.
        for weight, first in ((1.0, ("a", "b")), (10.0, ("c", "d"))):
            settings = network_settings(n_rounds=4, workload={("a", "b"): 1.0, ("c", "d"): weight})
            assert run(private(), settings, Budget(rho=10.0)).scopes[4] == first

    def test_a_target_has_a_star_and_then_sets_that_contain_it(self):
        release = run(private(), network_settings(target="c", one_way_share=0.1), Budget(rho=100.0))
        star = (("a", "c"), ("b", "c"), ("c", "d"))
        assert release.scopes[4:7] == star and release.public["settings"]["target"] == "c"
        assert [record["round"] for record in release.public["rounds"][:4]] == [0, 0, 0, 1]
        assert all("c" in scope for scope in release.scopes[4:])
        assert any(len(scope) == 3 for scope in release.scopes[7:])

    def test_a_budget_that_is_too_small_for_coarser_levels_alone_is_refused(self):
        tree = Levels.from_prefix(["x1", "x2", "y1"], {"chapter": 1}, rest=False)
        budget = Budget(rho=2.0**-86)  # a round's noise has 1/3 of the largest scale, at a coarser level it may be more
        for states, refused in ((list(tree), False), (tree, True)):
            schema = Schema({"code": states, **STATES})
            arguments = schema, Adjacency.ADD_REMOVE, network_settings(selection_share=0.35), budget
            if refused:
                with pytest.raises(ValueError, match="bury"):
                    network_shares(*arguments)
            else:
                noise = network_shares(*arguments).noise(network_shares(*arguments).first_round)
                assert 0.2 < noise.scale / additive.LARGEST_SCALE < 0.9

    @pytest.mark.parametrize("workload", [None, [("code", "a", "c")]], ids=["all", "workload"])
    @pytest.mark.parametrize("budget", [Budget(epsilon=30.0), Budget(rho=0.3)], ids=str)
    def test_coarser_levels_of_what_was_selected_come_last_and_are_within_the_budget(self, budget, workload):
        codes = [f"{chapter}{k}" for chapter in "xyz" for k in range(4)]
        tree = Levels.from_prefix(codes, {"chapter": 1}, rest=False)
        data = frame()
        data["code"] = np.array(codes)[4 * data["b"] + np.random.default_rng(1).integers(0, 4, len(data))]
        schema = Schema({"code": tree, **STATES})
        release = run(private(data, states=schema), network_settings(workload=workload), budget)
        assert 1 - 1e-9 < float(total_cost(release, "add_remove") / Fraction(budget.rho or budget.epsilon)) <= 1
        several = [(scope, noise) for scope, noise in zip(release.scopes, release.noise, strict=True) if len(scope) > 1]
        course = list(zip(several, release.public["rounds"], strict=True))
        selected = [(scope, record["share"]) for (scope, _), record in course if record["round"]]
        levels = levels_in(schema, [schema.levels])
        weights = coarser_tables([scope for scope, _ in selected], levels)
        last = course[len(selected) :]
        assert weights and {scope for (scope, _), _ in last} == weights.keys()
        shares = np.array([noise.scale for (_, noise), _ in last]) ** (-2 if budget.rho else -1)
        expected = np.array([weights[scope] for (scope, _), _ in last]) / sum(weights.values())
        np.testing.assert_allclose(shares / shares.sum(), expected)
        shared = sum(share for scope, share in selected if coarser_tables([scope], levels))
        # Selections have between 10 and 35 % of a round.
        assert 0.55 * 0.65 * shared <= sum(record["share"] for _, record in last) <= 0.55 * 0.9 * shared + 1e-9

    def test_a_star_takes_no_more_than_may_be_lost_until_it_pays(self):
        """Where noise hides the tables there is none; else it begins with what makes single variables 10 % worse."""
        star = (("a", "c"), ("b", "c"), ("c", "d"))
        release = run(private(), network_settings(target="c"), Budget(rho=1e-4))
        assert release.scopes[4:7] == star
        shares = [record["share"] for record in release.public["rounds"]]
        assert sum(shares[:3]) == pytest.approx(0.9 * (1 - 1.1**-2))
        assert 1 - 1e-9 < float(total_cost(release, "add_remove") / Fraction(1e-4)) <= 1
        drowned = run(private(adjacency="replace_one"), network_settings(target="c"), Budget(rho=1e-8))
        assert drowned.scopes == ((("a",), ("b",), ("c",), ("d",)) * 2)
        assert 1 - 1e-9 < float(total_cost(drowned, "replace_one") / Fraction(1e-8)) <= 1

    def test_a_star_lacks_what_is_forbidden_required_or_too_large(self):
        settings = network_settings(target="a", required_edges=[("a", "b", "c")], forbidden_edges=[("d", "a")])
        assert run(private(), settings, Budget(rho=1.0)).scopes[4] == ("a", "b", "c")
        release = run(private(), network_settings(target="a", forbidden_edges=[("d", "a")]), Budget(rho=1e-4))
        assert release.scopes[4:6] == (("a", "b"), ("a", "c"))
        assert not any({"a", "d"} <= set(scope) for scope in release.scopes)
        release = run(private(), network_settings(target="a", max_clique_cells=4), Budget(rho=1e-4))
        assert all(np.prod([len(STATES[name]) for name in scope]) <= 4 for scope in release.scopes[4:])

    def test_floors_are_the_same_for_all_weights_however_small(self, monkeypatch):
        """A misfit below the noise counts for no more where it matters less, and weights that vanish are no error."""
        seen = []
        ask = TableCurator.ask

        def watched(self, operator, share):
            if isinstance(operator, WorstFit):
                seen.append((operator.scopes, operator.offsets, operator.weights, share))
            return ask(self, operator, share)

        monkeypatch.setattr(TableCurator, "ask", watched)
        workload = {("a", "b"): 4.0, ("c", "d"): 1.0, ("a", "d"): 1e-9}
        run(private(), network_settings(n_rounds=4, workload=workload), Budget(rho=0.01))
        shares = network_shares(
            Schema(STATES), Adjacency.ADD_REMOVE, network_settings(n_rounds=4, workload=workload), Budget(rho=0.01)
        )
        scopes, offsets, weights, selecting = seen[0]
        heaviest = int(np.argmax(weights))  # half of the noise that its table would have
        cells = np.prod([len(STATES[name]) for name in scopes[heaviest]])
        assert offsets[heaviest] == pytest.approx(cells * shares.expected_noise(shares.first_round - selecting) / 2)
        for scopes, offsets, weights, _ in seen:
            scores = misfit_scores(
                [Sensitive(np.zeros(1, dtype=np.int64), Adjacency.ADD_REMOVE, 1, 1, 1) for _ in scopes],
                [np.zeros(1)] * len(scopes),
                offsets,
                weights,
            )
            cells = [np.prod([len(STATES[name]) for name in scope]) for scope in scopes]
            assert -scores.value / cells == pytest.approx(-scores.value[0] / cells[0], rel=0.02)
        assert len(seen) > 1

    def test_rounds_grow_once_nothing_new_is_found(self):
        release = run(private(), network_settings(one_way_share=0.1), Budget(rho=0.005))
        shares = [record["share"] for record in release.public["rounds"]]
        assert shares == sorted(shares)
        assert shares[0] == pytest.approx(0.9 / 16)
        assert len(shares) < 16
        assert sum(shares) == pytest.approx(0.9)

    def test_required_and_forbidden_pairs(self):
        settings = network_settings(required_edges=[("d", "a")], forbidden_edges=[("b", "a")], n_rounds=6)
        release = run(private(), settings, Budget(rho=100.0))
        assert release.scopes[4] == ("a", "d")
        assert release.public["rounds"][0]["round"] == 0
        assert {"c", "d"} <= set(release.scopes[5])  # the pair, or one of the triples that have it
        assert ("a", "b") not in release.scopes

    def test_a_public_graph_gets_the_whole_rest(self):
        pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")]
        settings = network_settings(required_edges=pairs[:2], forbidden_edges=pairs[2:])
        release = run(private(), settings, Budget(rho=1.0))
        assert release.scopes[4:] == (("a", "b"), ("a", "c"))
        assert 1 - 1e-9 < float(total_cost(release, "add_remove")) <= 1

    @pytest.mark.parametrize(
        ("states", "settings"),
        [({"a": [0, 1]}, {}), ({"a": [0, 1], "c": [0, 1]}, {"forbidden_edges": [("a", "c")]})],
    )
    def test_without_pairs_single_variables_get_everything(self, states, settings):
        release = run(private(states=states), network_settings(**settings), Budget(rho=1.0))
        assert release.scopes == tuple((name,) for name in states)
        assert release.public["rounds"] == []
        assert 1 - 1e-9 < float(total_cost(release, "add_remove")) <= 1

    def test_cliques_stay_below_the_limit(self):
        rng = np.random.default_rng(3)
        common = rng.integers(0, 2, 3000)
        data = pd.DataFrame({f"v{k}": np.where(rng.random(3000) < 0.8, common, 1 - common) for k in range(6)})
        states = {name: [0, 1] for name in data}
        for limit, most in ((4, 5), (8, 9), (64, 15)):
            release = run(private(data, states=states), network_settings(max_clique_cells=limit), Budget(rho=50.0))
            edges = {pair for scope in release.scopes for pair in itertools.combinations(sorted(scope), 2)}
            assert len(edges) <= most  # of a tree; of a 2-tree; all
            assert len(edges) >= 5

    def test_only_noisy_tables_are_fitted_to(self):
        seen = []

        def spy(noisy, before, tree):
            seen.append(noisy)
            return estimate_network(noisy, before, tree)

        calls = []
        release = run(private(), network_settings(), Budget(rho=0.1), calls.append, spy)
        last = seen[-1]
        assert last.cliques.scopes == release.scopes[: len(last.cliques.scopes)]  # what is left goes to single ones
        assert {len(scope) for scope in release.scopes[len(last.cliques.scopes) :]} <= {1}
        values = np.concatenate([value.ravel() for value in release.values])
        np.testing.assert_array_equal(last.counts, values[: len(last.counts)])
        for noisy in seen:
            np.testing.assert_array_equal(noisy.counts, last.counts[: len(noisy.counts)])
        assert len(seen) - 1 == len(release.public["rounds"]) <= len(calls)
        assert calls == sorted(calls)
        assert calls[-1] == 1.0

    @pytest.mark.parametrize("budget", BUDGETS, ids=str)
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize(
        "data",
        [frame(0), frame(1), frame(50).assign(a="outside"), frame(50).assign(b=None)],
        ids=["empty", "one record", "all outside", "all missing"],
    )
    def test_awkward_data_are_released_like_any_other(self, data, adjacency, budget, recwarn):
        release = run(private(data, adjacency), network_settings(), budget)
        assert (
            float(total_cost(release, adjacency))
            / Fraction(getattr(release.guarantee, "rho", 0) or release.guarantee.epsilon)
            > 1 - 1e-9
        )
        assert not recwarn

    def test_seeded_noise_is_repeatable_marked_and_warns(self):
        table = private()
        with pytest.warns(ReproducibleNoiseWarning):
            first = run(table, network_settings(random_state=5), Budget(rho=0.1))
        with pytest.warns(ReproducibleNoiseWarning):
            second = run(table, network_settings(random_state=5), Budget(rho=0.1))
        assert first == second
        assert first.reproducible
        assert not table.ledger.private
        assert run(table, network_settings(), Budget(rho=0.1)) != run(table, network_settings(), Budget(rho=0.1))


# -- attacks -------------------------------------------------------------------------------------

BITS = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
PAIRS = [(0, 1), (0, 2), (1, 2)]
BASE = pd.DataFrame({"a": [0, 0], "b": [0, 0], "c": [0, 1]})
NEIGHBOURS = {
    "add_remove": (BASE, pd.concat([BASE, BASE[:1]], ignore_index=True)),
    "replace_one": (BASE, BASE.assign(a=[1, 0], b=[1, 0])),
}
# One record raises some scores and lowers others: it is expected where it enters ab, unexpected elsewhere.
EXPECTED = {
    (0, 1): np.array([[9.0, 0.0], [0.0, 0.0]]),
    (0, 2): np.zeros((2, 2)),
    (1, 2): np.array([[0.0, 9.0], [0.0, 0.0]]),
}


def fixed(noisy, before, tree):
    """A public fit: what is chosen then says the most about the exact scores."""
    return Expecting(noisy.merged(), np.zeros(noisy.cliques.n_cells), None, tree)


class Expecting(NetworkEstimate):
    one_way = [np.full(2, 0.5)] * 3

    def expected_tables(self, scopes):
        return [EXPECTED[scope] for scope in scopes]

    def expected_cells(self, scopes):
        tables = self.expected_tables(scopes)
        return np.concatenate([table.ravel() for table in tables]), np.array([table.size for table in tables])


def exact_tables(data):
    return {
        (i, j): np.histogram2d(data.iloc[:, i], data.iloc[:, j], bins=(2, 2), range=((0, 1),) * 2)[0] for i, j in PAIRS
    }


def audit_run(adjacency, budget, releases, settings):
    """The likelihood ratio of all that is released: tables, the chosen pair, its table."""
    singles = [np.stack([np.bincount(d[name], minlength=2) for name in BITS]).ravel() for d in NEIGHBOURS[adjacency]]
    pairs = [exact_tables(data) for data in NEIGHBOURS[adjacency]]
    scores = [[np.abs(t[p] - EXPECTED[p]).sum() for p in PAIRS] for t in pairs]
    used = []

    def draw(dataset, count):
        outputs = []
        for _ in range(count):
            table = PrivateTable(
                NEIGHBOURS[adjacency][dataset],
                BITS,
                adjacency=adjacency,
                ledger=Budget(epsilon=1e6, delta=0.5),
                n_records=2,
            )
            release = run(table, settings, budget, refit=fixed)
            used[:] = [release]
            chosen = PAIRS.index(tuple("abc".index(name) for name in release.scopes[-1]))
            outputs.append([*np.concatenate([v.ravel() for v in release.values]), chosen])
        return np.array(outputs)

    def score(outputs):
        release = used[0]
        scale = release.public["rounds"][0]["selection_scale"]
        chosen = outputs[:, -1].astype(int)
        log_p = [selection_law(np.array(s), scale, isinstance(release.guarantee, ZCDP)) for s in scores]
        exact = tuple(
            np.column_stack([np.tile(s, (len(outputs), 1)), np.array([t[p].ravel() for p in PAIRS])[chosen]])
            for s, t in zip(singles, pairs, strict=True)
        )
        scales = np.repeat([n.scale for n in release.noise], [v.size for v in release.values])
        noise = release.noise[0].distribution
        return audit.log_ratio(outputs[:, :-1], exact, scales, noise) + (log_p[0] - log_p[1])[chosen]

    bound = audit.rho_bound if budget.rho else audit.epsilon_bound
    return audit.audit(draw, score, releases=releases, bound=bound)


def selection_law(scores, scale, gumbel):
    """Logarithm of the chance of each; for exponential noise by numerical integration."""
    if gumbel:
        return scores / scale - np.logaddexp.reduce(scores / scale)
    t = np.linspace(scores.max(), scores.max() + 40 * scale, 200_001)
    chances = []
    for k, s in enumerate(scores):
        others = np.delete(scores, k)
        density = np.exp(-(t - s) / scale) / scale
        for other in others:
            density = density * -np.expm1(-(t - other) / scale)
        chances.append(np.trapezoid(density, t))
    return np.log(chances)


class TestCandidates:
    @pytest.mark.parametrize(("most", "inside"), [(10, "all"), (8, "an edge"), (3, "connected")])
    def test_where_all_are_too_many_those_beside_what_is_measured(self, most, inside, monkeypatch):
        monkeypatch.setattr(candidates, "MOST_SETS", most)
        sets = Candidates((2,) * 5, 3, 100, (), {})
        edges = {(0, 1), (1, 3)}
        found = sets.larger([(1, 0), (3, 1), (4,)], 100.0)
        wanted = {
            "all": list(itertools.combinations(range(5), 3)),
            "an edge": [(0, 1, 2), (0, 1, 3), (0, 1, 4), (1, 2, 3), (1, 3, 4)],
            "connected": [(0, 1, 3)],
        }[inside]
        assert found == wanted
        assert inside == "all" or all(edges & set(itertools.combinations(scope, 2)) for scope in found)
        assert sets.larger([], 100.0) == (wanted if inside == "all" else [])

    def test_a_measured_triple_is_three_edges_and_larger_orders_grow_along_them(self, monkeypatch):
        monkeypatch.setattr(candidates, "MOST_SETS", 4)
        sets = Candidates((2,) * 6, 4, 100, (), {})
        assert [scope for scope in sets.larger([(0, 2, 4), (4, 5)], 100.0) if len(scope) == 4] == [(0, 2, 4, 5)]

    def test_large_and_forbidden_tables_are_left_out(self, monkeypatch):
        sets = Candidates((2, 3, 4, 5), 4, 30, (frozenset({0, 1}),), {})
        assert sets.larger([], 1e9) == []  # 60, 40 and 120 cells, and the forbidden ones
        sets = Candidates((2, 3, 4, 5), 4, 60, (frozenset({0, 1}),), {})
        assert sets.larger([], 1e9) == [(0, 2, 3), (1, 2, 3)] and sets.larger([], 59.5) == [(0, 2, 3)]
        assert sets.pairs == sets.allowed == ((0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
        monkeypatch.setattr(candidates, "MOST_SET_CELLS", 50)
        assert sets.larger([], 1e9) == [(0, 2, 3)]

    def test_a_workload_of_sets_in_a_large_schema_is_searched_whole(self):
        sets = Candidates((2,) * 500, 3, 100, (), {frozenset({3, 7, 400, 499}): 2.0, frozenset({3, 7}): 0.5})
        assert len(sets.larger([], 100.0)) == 4 and len(sets.pairs) == 6
        assert sets.weight((3, 7, 499)) == 2 * 3 + 0.5 * 2 and sets.weight((7, 400)) == 4.0 and not sets.weight((1, 2))

    def test_sets_of_a_workload_are_candidates_however_many_others_there_are(self, monkeypatch):
        workload = {frozenset({8, 9, 10}): 1.0, frozenset(range(9)): 1.0}
        sets = Candidates((*(2,) * 8, 5, 5, 5), 3, 200, (), workload)
        monkeypatch.setattr(candidates, "MOST_SETS", 20)
        assert (8, 9, 10) in sets.larger([(0, 1)], 200.0) and len(sets.larger([(0, 1)], 200.0)) > 1
        schema = Schema({name: [0, 1, 2] for name in range(7)})
        plan = lambda **more: network_shares(schema, Adjacency.ADD_REMOVE, network_settings(**more), Budget(rho=1.0))  # noqa: E731
        triples = list(itertools.combinations(range(7), 3))
        assert plan(workload=triples[:20]).candidates
        monkeypatch.setattr(budget_shares, "MOST_SETS", 20)
        with pytest.raises(ValueError, match=r"21 sets of 3 variables with 567 cells together.*at most 20 sets"):
            plan(workload=triples[:21])
        monkeypatch.setattr(budget_shares, "MOST_SET_CELLS", 500)
        with pytest.raises(ValueError, match="20 sets of 3 variables with 540 cells"):
            plan(workload=triples[:20])

    def test_only_a_size_that_is_certain_refuses_a_workload(self):
        """Numbers that are not divided get fewer cells than they might, and rare states may become one."""
        schema = Schema({"x": Number(0, 1000), "y": Number(0, 1000), "z": range(20)})
        wanted = {"workload": [("x", "y", "z")], "max_clique_cells": 500}
        assert network_shares(schema, Adjacency.ADD_REMOVE, network_settings(**wanted), Budget(rho=1.0)).sets.workload
        many = Schema({name: range(20) for name in "xyz"})
        with pytest.raises(ValueError, match="8000 cells"):
            network_shares(many, Adjacency.ADD_REMOVE, network_settings(**wanted), Budget(rho=1.0))
        network_shares(many, Adjacency.ADD_REMOVE, network_settings(**wanted, merge_rare=True), Budget(rho=1.0))

    @pytest.mark.parametrize("order", [3, 4])
    def test_with_a_target_all_sets_have_it(self, order):
        sets = Candidates((2,) * 6, order, 100, (frozenset({1, 2}),), {}, 2)
        assert sets.pairs == ((0, 2), (2, 3), (2, 4), (2, 5))
        found = sets.larger([], 100.0)
        wanted = {s for k in range(3, order + 1) for s in itertools.combinations(range(6), k) if 2 in s and 1 not in s}
        assert set(found) == wanted and len(found) == len(wanted)
        assert sets.weight((1, 2)) == 1.0 and not sets.weight((0, 1))

    def test_a_large_schema_with_a_target_has_so_many_sets_at_most(self):
        sets = Candidates((2,) * 300, 3, 100, (), {}, 7)
        star = [(min(7, i), max(7, i)) for i in range(300) if i != 7]
        found = sets.larger(star, 100.0)
        assert len(found) == candidates.MOST_SETS and all(7 in scope for scope in found)


class TestShares:
    """Of rounds that follow the budget, the number of records and of candidates."""

    @staticmethod
    def shares(budget, p=6, adjacency="add_remove", **settings):
        schema = Schema({f"v{k}": [0, 1] for k in range(p)})
        return network_shares(schema, Adjacency(adjacency), network_settings(**settings), budget)

    @pytest.mark.parametrize("budget", BUDGETS, ids=str)
    def test_of_a_star_fall_with_the_records(self, budget):
        """All where noise hides everything, and as much as leaves noise of 5 % where there is enough."""
        shares = self.shares(budget, target="v2")
        stars = [shares.star(n, [4] * 5) for n in (0.0, 1.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e12)]
        assert stars == sorted(stars, reverse=True) and stars[0] == shares.rounds > shares.rounds / 2 > stars[-1]
        for n, share in zip((1e2, 1e3, 1e4, 1e5), stars[2:], strict=False):
            if shares.rounds / 100 < share < shares.rounds:
                noise = shares.expected_noise(share, 5) * 4 / (2 * n)
                assert noise == pytest.approx(0.05, rel=0.1) or (noise < 0.05 and share == 5 * shares.first_round)
        assert self.shares(budget).star(1.0, [4] * 5) == 0

    @pytest.mark.parametrize("seed", range(30))
    def test_never_exceed_the_budget(self, seed):
        rng = np.random.default_rng(seed)
        budget = BUDGETS[seed % 3] if seed % 2 else Budget(rho=float(10 ** rng.uniform(-4, 1)))
        settings = {"one_way_share": rng.uniform(0.01, 0.99)}
        if rng.random() < 0.5:
            settings |= {"n_rounds": int(rng.integers(1, 99)), "selection_share": rng.uniform(0.01, 0.99)}
        if rng.random() < 0.5:
            settings["required"] = [("v0", "v1"), ("v1", "v2", "v3")]
        shares = self.shares(budget, adjacency=("add_remove", "replace_one")[seed % 2], **settings)
        n = float(10 ** rng.uniform(0, 8))
        left = 1 - shares.one_way - len(shares.required) * shares.each_required
        assert left == shares.rounds > 0
        share = shares.start(n)
        assert 0 < shares.first_round <= share <= left
        while left > 0:
            spent = left if left < 2 * share else share
            selecting = spent * shares.selecting(spent, n, int(rng.integers(1, 5000)))
            assert 0 < selecting < spent
            left -= spent
            share *= 1 + int(rng.integers(2))
        assert left == 0

    def test_what_selects_grows_with_candidates_and_falls_with_records_and_budget(self):
        for weak, strong in ((Budget(rho=1e-4), Budget(rho=1e-3)), (Budget(epsilon=0.1), Budget(epsilon=0.4))):
            parts = [
                shares.selecting(shares.first_round * 8, n, count)
                for shares, n, count in (
                    (self.shares(strong), 1e6, 10),
                    (self.shares(weak), 8e3, 20),
                    (self.shares(weak), 8e3, 60),
                    (self.shares(weak), 1e2, 1000),
                )
            ]
            assert parts[0] == Fraction(1, 10) and parts[-1] == Fraction(7, 20)
            assert parts == sorted(parts) and parts[1] < parts[2]
        assert self.shares(weak, selection_share=0.5).selecting(Fraction(1, 9), 1e6, 10) == Fraction(1, 2)

    def test_precise_records_have_more_rounds(self):
        shares = self.shares(Budget(rho=0.5))
        starts = [shares.start(n) for n in (1000, 4000, 1e5, 1e7)]
        assert starts[0] == starts[1] == shares.rounds / 24 > starts[2] > starts[3] == shares.first_round
        # Few have fewer, of which each is above its noise.
        assert shares.start(1) == shares.rounds > shares.start(9) > starts[0]
        assert self.shares(Budget(rho=0.5), n_rounds=5).start(1e7) == shares.rounds / 5


class TestWeights:
    tables = [np.array([0, 5]), np.array([[3, 0], [1, 10**12]]), np.array([7])]
    expected = [np.array([2.4, 1.0]), np.zeros((2, 2)), np.array([-1e30])]

    def scores(self, tables, weights, offsets=None):
        made = [Sensitive(table, Adjacency.ADD_REMOVE, 1.0, 1.0, 1.0) for table in tables]
        return misfit_scores(made, self.expected, offsets, weights)

    @pytest.mark.parametrize("seed", range(20))
    def test_a_score_is_the_weighted_distance_rounded_down(self, seed):
        rng = np.random.default_rng(seed)
        weights = rng.random(3) ** 4 + 1e-300
        parts = [max(int(weight / weights.max() * 1024), 1) for weight in weights]
        limit = (1 << 60) // 4
        distances = [6, 10**12 + 4, limit + 7]
        exact = self.scores(self.tables, weights.tolist())
        assert exact.value.tolist() == [d * part // 1024 for d, part in zip(distances, parts, strict=True)]
        assert exact.linf == 1.0

    @pytest.mark.parametrize("seed", range(20))
    def test_no_weighted_score_moves_by_more_than_the_record(self, seed):
        rng = np.random.default_rng(seed)
        weights, offsets = rng.random(3).tolist(), (100 * rng.normal(size=3)).tolist()
        before = self.scores(self.tables, weights, offsets).value
        for sign in (-1, 1):
            for table in self.tables:
                for cell in np.ndindex(table.shape):
                    table[cell] += sign
                    assert np.abs(self.scores(self.tables, weights, offsets).value - before).max() <= 1
                    table[cell] -= sign

    @pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0, 1.0], [1.0, np.nan, 1.0], [1.0, np.inf, 1.0]])
    def test_others_are_refused(self, weights):
        with pytest.raises(ValueError, match="3 positive finite numbers"):
            self.scores(self.tables, weights)
        curator = TableCurator(private(), Budget(rho=1.0), what="", columns=[])
        with pytest.raises(ValueError, match="3 positive finite numbers"):
            curator.ask(WorstFit([("a",), ("c",), ("d",)], [np.zeros(2)] * 3, weights=weights), 0.5)
        assert curator.left == 1


@pytest.mark.slow  # replay holds sensitivities, scales and shares
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("budget", [Budget(epsilon=2.0), Budget(rho=1.0)], ids=str)
class TestWholeReleases:
    # Nearly all for one pair, where an attack sees most of it: triples are too large.
    settings = network_settings(n_rounds=1, one_way_share=0.02, selection_share=0.01, max_clique_cells=4)

    def test_stay_below_the_claim(self, adjacency, budget):
        assert audit_run(adjacency, budget, 150, self.settings) <= (budget.rho or budget.epsilon)

    def test_with_a_third_of_the_noise_are_caught(self, adjacency, budget, monkeypatch):
        for name in ("laplace_scales", "gaussian_scales"):
            true = getattr(additive, name)
            monkeypatch.setattr(additive, name, lambda *a, true=true: tuple(scale / 3 for scale in true(*a)))
        assert audit_run(adjacency, budget, 900, self.settings) > (budget.rho or budget.epsilon)


def audit_selection(adjacency, cost, gap, releases, factor=1.0):
    """The choice alone, as a round makes it: exact scores, their sensitivity, a scale, a noisy maximum.

    One candidate's score rises where the other's falls; `gap` makes the former the rarer one.
    """
    names = [("a", "b"), ("b", "c")]
    expected = [np.array([[9.0 + gap, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 9.0]])]
    found = []
    for data in NEIGHBOURS[adjacency]:
        table = PrivateTable(data, BITS, adjacency=adjacency, ledger=Budget(epsilon=1.0), n_records=2)
        found.append(misfit_scores(contingency_tables(table, names), expected, [2.0 * gap, 0.0]))
    scale = factor * selection_scale(found[0].linf, cost, Fraction(1))

    def draw(dataset, count):
        return noisy_argmax([found[dataset].value] * count, scale, cost)[:, None]

    bound = audit.rho_bound if isinstance(cost, ZCDP) else audit.epsilon_bound
    towards_first = 1 if adjacency == "replace_one" else -1  # which choice the second dataset makes less often
    return audit.audit(draw, lambda outputs: towards_first * outputs[:, 0], releases=releases, bound=bound)


# Gaps at which one choice is rare enough to tell, and frequent enough to be seen.
@pytest.mark.parametrize(
    ("adjacency", "gap", "cost"),
    [
        pytest.param(*at, cost, id=f"{at[0]}-{cost}", marks=[pytest.mark.slow] if (k + j) % 2 else [])  # so does replay
        for k, at in enumerate([("add_remove", -4), ("replace_one", -2)])
        for j, cost in enumerate([PureDP(2.0), ZCDP(0.5)])
    ],
)
class TestSelections:
    def test_stay_below_the_claim(self, adjacency, gap, cost):
        limit = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
        assert 0 < audit_selection(adjacency, cost, gap, 5_000) <= limit

    @pytest.mark.slow  # so does replay
    def test_with_a_third_of_the_noise_are_caught(self, adjacency, gap, cost):
        limit = cost.rho if isinstance(cost, ZCDP) else cost.epsilon
        assert audit_selection(adjacency, cost, gap, 10_000, factor=1 / 3) > limit


class TestSpending:
    """What rounds take, and what they leave to single variables."""

    BUDGET = Budget(rho=0.01)

    @staticmethod
    def alike(n, p, share, k=3, seed=0):
        rng, names = np.random.default_rng(seed), [f"v{i}" for i in range(p)]
        alone = pd.DataFrame(rng.integers(k, size=(n, p)), columns=names)
        return pd.DataFrame({name: alone["v0"].where(rng.random(n) < share, alone[name]) for name in names})

    def released(self, data, budget=BUDGET, k=3, **settings):
        table = PrivateTable(data, {name: range(k) for name in data}, ledger=budget)
        with pytest.warns(ReproducibleNoiseWarning):  # what rounds find depends on the noise
            release = run(table, network_settings(random_state=1, **settings), budget)
        assert 1 - 1e-9 < float(total_cost(release, "add_remove") / Fraction(budget.rho)) <= 1
        singles = sum(1 / n.variance for n, scope in zip(release.noise, release.scopes, strict=True) if len(scope) == 1)
        return release, singles * 0.5 / budget.rho / len(data.columns) * len(data.columns)

    def test_where_noise_hides_every_table_there_is_no_round(self):
        release, _ = self.released(self.alike(30, 6, 0.9, k=9), k=9)
        assert not release.public["rounds"]
        assert [len(scope) for scope in release.scopes] == [1] * 12

    @pytest.mark.parametrize("seed", [0, 1, 3, 4, 5])  # one table in fifty seems to tell something
    def test_where_there_is_nothing_to_find_single_variables_lose_five_per_cent(self, seed):
        release, singles = self.released(self.alike(4000, 12, 0.0, seed=seed), Budget(rho=0.0005))
        rounds = sum(record["share"] for record in release.public["rounds"])
        assert singles == pytest.approx(1 - rounds, rel=0.01)
        assert (1 - rounds) ** -0.5 < 1.06 and release.scopes[-1] == ("v11",)

    def test_where_there_is_rounds_get_more_than_half(self):
        release, _ = self.released(self.alike(4000, 12, 0.7), Budget(rho=0.0005))
        assert sum(record["share"] for record in release.public["rounds"]) > 0.5
        assert max(record["misfit"] / record["offset"] for record in release.public["rounds"]) > 2

    def test_for_pairs_single_variables_get_more(self):
        shares = {}
        for optimise in ("likelihood", "pairs"):
            release, _ = self.released(self.alike(550, 16, 0.5, k=4), k=4, optimise=optimise)
            assert release.public["settings"]["optimise"] == optimise
            shares[optimise] = sum(record["share"] for record in release.public["rounds"])
        assert 0 < shares["pairs"] < shares["likelihood"]

    @pytest.mark.parametrize("settings", [{"one_way_share": 0.1}, {"workload": [("v0", "v1", "v2")]}], ids=str)
    def test_a_share_or_a_workload_leaves_the_rest_to_rounds(self, settings):
        release, _ = self.released(self.alike(30, 6, 0.0, k=9), k=9, **settings)
        assert sum(len(scope) == 1 for scope in release.scopes) == 6 and release.public["rounds"]

    @pytest.mark.parametrize("budget", [Budget(rho=0.01), Budget(epsilon=0.3)], ids=str)
    @pytest.mark.parametrize("measure", [0, 1])
    def test_rounds_that_gain_nothing_end_before_the_error_has_grown_by_five_per_cent(self, budget, measure):
        """The stated worst case, of any shares: the l1 error of single variables goes like the noise."""
        rng = np.random.default_rng(0)
        power = 0.5 if budget.rho else 1.0

        class Hopeless:
            shares = network_shares(
                Schema({name: [0, 1] for name in "abcd"}),
                Adjacency.ADD_REMOVE,
                network_settings(),
                budget,
            )
            public_settings = {"optimise": OPTIMISE[measure]}
            precision, gained = np.zeros(1), np.zeros(2)

            def loss(self, share, precision):
                return np.array([1.0, 7.0]) * max(float(share), 1e-9) ** (-2 * power)

        for _ in range(100):
            search = Hopeless()
            search.left = before = Fraction(rng.uniform(0.2, 0.9))
            spending = Spending(search)
            while share := spending.largest(Fraction(rng.uniform(0.001, 0.2))):
                for _ in spending.measured(None):
                    search.left -= share
            assert 1 < (float(before) / float(search.left)) ** power < 1.0501

    def test_noise_in_single_variables_costs_what_simulation_says(self):
        rng, p, deviation = np.random.default_rng(0), np.array([0.5, 0.3, 0.2]), 0.02
        noisy = p + deviation * rng.normal(size=(200_000, 3))
        simulated = (p * np.log(p / (noisy / noisy.sum(axis=1, keepdims=True)))).sum(axis=1).mean()
        # Of three cells two are free: what is predicted counts the third too, and its own noise as a part of each.
        assert 0.8 < losses([p, p], np.array([deviation] * 2))[0] / 2 / simulated < 1.5
        assert losses([p, p], np.array([deviation] * 2))[1] == pytest.approx(2 * 3 * deviation**2 * (p**2).sum())
        # Each of three variables is in two pairs.
        assert losses([p] * 3, np.array([deviation] * 3))[1] == pytest.approx(2 * 9 * deviation**2 * (p**2).sum())

    @pytest.mark.parametrize("dependence", [0.0, 0.04, 0.15])
    @pytest.mark.parametrize("part", [0.3, 1.0])
    def test_a_gain_is_what_the_likelihood_gains_in_the_mean(self, dependence, part):
        """Of a fit that takes over a part of what was measured; the margins are as they were."""
        rng, n, deviation = np.random.default_rng(1), 1000.0, 15.0
        before = np.outer([0.5, 0.5], [0.4, 0.6])
        sign = np.array([[1.0, -1.0], [-1.0, 1.0]])
        truth, gains, real = before + dependence * sign, [], []
        for noise in deviation * rng.normal(size=(4000, 2, 2)):
            value = n * truth + noise
            after = before + part * sign * ((value / n - before) * sign).mean()
            gains.append(gain(value, before, after, n, deviation**2)[0])
            real.append(float((truth * np.log(after / before)).sum()))
        # Where there is next to nothing it counts as nothing, most times.
        assert np.mean(gains) == pytest.approx(np.mean(real), abs=6e-4 + 0.15 * abs(np.mean(real)))

    def test_probes_that_drown_have_a_quarter(self):
        shares = network_shares(
            Schema({name: range(9) for name in "abcdefgh"}), Adjacency.ADD_REMOVE, settings(PrivateNetwork), self.BUDGET
        )
        few, many = (shares.knowing(n, (9,) * 8) for n in (30.0, 1e7))
        assert many.probes == shares.probes == 4 * few.probes > 0
        assert few.one_way + few.rounds + few.probes == 1


class TestNumbers:
    """Numbers that the schema does not divide: second tables, in cells that follow the first."""

    SCHEMA = Schema({"x": Number(0, 1_000, missing="drop"), "y": Number(0, 300, resolution=1), "z": ["a", "b"]})

    def frame(self):
        rng = np.random.default_rng(0)
        return pd.DataFrame({"x": rng.exponential(30, 3_000), "y": rng.poisson(20, 3_000), "z": ["a", "b"] * 1_500})

    def table(self, **options):
        frame = self.frame()
        count = 3_000 if options.get("adjacency") == "replace_one" else None
        return PrivateTable(frame, self.SCHEMA, ledger=Budget(rho=1.0), n_records=count, **options)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("budget", [Budget(rho=0.5), Budget(epsilon=0.5)], ids=str)
    def test_first_tables_second_ones_and_all_others_cost_the_budget_together(self, adjacency, budget):
        release = run(self.table(adjacency=adjacency), network_settings(number_share=0.25), budget)
        cost, limit = total_cost(release, adjacency), Fraction(1, 2)
        assert 1 - 1e-9 < float(cost / limit) <= 1 and cost <= limit
        assert release.scopes[:5] == (("x",), ("y",), ("z",), ("x",), ("y",))
        factor, ratio = (1 if adjacency == "add_remove" else 2), []
        for noise in release.noise[3:5]:
            scale = Fraction(noise.scale)
            ratio.append(factor / (2 * scale**2) if budget.rho else factor / scale)
        assert float(sum(ratio) / limit) == pytest.approx(0.25, rel=1e-6)
        fine, middle, last = (
            Schema.from_dict(said).cardinalities
            for said in (
                release.public["fine"]["fine"]["schema"],
                release.public["fine"]["schema"],
                release.schema.to_dict(),
            )
        )
        assert fine["x"] > middle["x"] >= last["x"] and fine["y"] > middle["y"] >= last["y"]
        assert middle["x"] <= 29 and [v.shape for v in release.values[3:5]] == [(middle["x"],), (middle["y"],)]
        assert release.public["settings"]["number_share"] == 0.25

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_means_have_a_share_that_is_planned_and_said(self, adjacency):
        """Of numbers in thousands: the sum's noise is a clip's, times that of a number of records."""
        table = self.table(adjacency=adjacency)
        wanted = {"means": ["x", "y"], "mean_share": 0.125}
        release = run(table, network_settings(**wanted), Budget(rho=0.5))
        assert table.ledger.left.rho == 0.5 and ", means of x, y and" in table.ledger.entries[-1].what
        tables = total_cost(release, adjacency)
        assert float(tables / Fraction(1, 2)) == pytest.approx(0.875, rel=1e-6)
        settings, means = release.public["settings"], release.public["means"]
        assert (settings["means"], settings["mean_share"]) == (["x", "y"], 0.125)
        count = release.values[0][:-1].sum()
        for said, values in zip(means, (self.frame()["x"], self.frame()["y"]), strict=True):
            sd = (2 / (2 * 0.125 * 0.5)) ** 0.5  # of two sums, each of which a record moves by 1
            assert said["deviation"] == pytest.approx(said["clip"] / count * sd, rel=0.05)
            off = abs(said["value"] - np.minimum(values, said["clip"]).mean())
            assert off < 5 * said["deviation"] + 0.01 * values.mean()
        without = run(self.table(), network_settings(mean_share=0.5), Budget(rho=0.5))
        assert "means" not in without.public and "means" not in without.public["settings"]
        assert float(total_cost(without, "add_remove")) == pytest.approx(0.5)
        with pytest.raises(ValueError, match=r"mean_share=0\.9 leave nothing"):
            run(self.table(), network_settings(**wanted | {"mean_share": 0.9}), Budget(rho=0.5))

    def test_without_a_share_there_are_none_and_without_such_numbers_nothing_is_set_aside(self):
        release = run(self.table(), network_settings(number_share=0.0), Budget(rho=0.5))
        assert "fine" not in release.public["fine"] and len(release.scopes[3]) > 1
        plain = network_shares(
            Schema({"a": [0, 1], "b": [0, 1]}),
            Adjacency.ADD_REMOVE,
            network_settings(number_share=0.25),
            Budget(rho=0.1),
        )
        assert plain.numbers == 0 and plain.rounds == 1 - plain.one_way

    def test_shares_that_leave_nothing_are_refused_before_anything_is_spent(self):
        table = self.table()
        with pytest.raises(ValueError, match=r"one_way_share=0.5 and number_share=0.5 leave nothing"):
            run(table, network_settings(one_way_share=0.5, number_share=0.5), Budget(rho=0.5))
        assert table.ledger.spent.rho == 0

    @pytest.mark.filterwarnings("ignore:x has a value within its bounds:UserWarning")
    @pytest.mark.filterwarnings("ignore::pgmpy_dp.PiledNumbersWarning")
    @pytest.mark.parametrize("bounds", [(0, 10), (0, 1e-320), (0, 1e308), (-1e300, 1e300)], ids=str)
    @pytest.mark.parametrize(
        "values", [[], [5.0], [1.0] * 300 + [1e308], [np.nan] * 100], ids=["none", "one", "far", "nan"]
    )
    @pytest.mark.filterwarnings("ignore::pgmpy_dp.learning.few_records.NoEdgeWarning")
    def test_no_bound_and_no_record_raises_or_warns(self, bounds, values):
        """Of what is computed: that little was found is said from the released number of records."""
        table = PrivateTable(
            pd.DataFrame({"x": np.array(values, dtype=float), "z": ["a"] * len(values)}),
            Schema({"x": Number(*bounds), "z": ["a", "b"]}),
            ledger=Budget(rho=1.0),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = PrivateNetwork(rho=1.0, random_state=0).fit(table).model_
        assert np.isfinite(model.marginal(["x"]).values).all()

    def test_means_and_quantiles_are_near_those_of_the_records(self):
        """Equal cells of a 64th of the range are 16 wide, more than the median is away from 0."""
        table = self.table()
        network = PrivateNetwork(rho=0.1, random_state=0).fit(table)
        values = network.model_.within["x"]
        shares = network.model_.marginal(["x"]).values
        assert values.mean(shares) == pytest.approx(30, rel=0.1)
        found = values.quantiles(shares, [0.25, 0.5, 0.75])
        np.testing.assert_allclose(found, 30 * np.log([4 / 3, 2, 4]), rtol=0.15)

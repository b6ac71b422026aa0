"""Sums of parities: the definition, every neighbour of every small table, and whole releases with noise on all sums."""

from __future__ import annotations

import itertools
import logging
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.fields.field_scopes import field_scopes
from pgmpy_dp.fields.noisy_parities import (
    plan_parities,
    released_subsets,
    run,
)
from pgmpy_dp.fields.operators import parities as parity_data
from pgmpy_dp.fields.operators.parities import (
    _by_transform,
    family_sums,
    flipped_in_family,
    flipped_parities,
    parity_count,
    parity_sensitivity,
    parity_sums,
    parity_sums_and_count,
)
from pgmpy_dp.private.accounting import approx_to_zcdp
from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.table_curator import TableCurator
from pgmpy_dp.private.data.table import PrivateTable, shared_codes
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Release
from tests.private import audit
from tests.private.distribution import accepts
from tests.settings import ask_parities, parity_settings

LARGE = Budget(epsilon=1e9, delta=0.5)


def naive(codes: np.ndarray, order: int) -> np.ndarray:
    z = 2 * codes.astype(int) - 1
    return np.array([z[:, list(subset)].prod(axis=1).sum() for subset in field_scopes(codes.shape[1], order)])


def table(rows, names="ab", adjacency="add_remove", n_records=None, ledger=LARGE) -> PrivateTable:
    frame = pd.DataFrame(list(rows), columns=list(names))
    states = {name: [0, 1] for name in names}
    return PrivateTable(frame, states, adjacency=adjacency, ledger=ledger, n_records=n_records)


class TestSums:
    @pytest.mark.parametrize(
        ("p", "order", "n"),
        [
            # A transform of 2**23 numbers takes as long for any n.
            pytest.param(p, order, n, marks=[pytest.mark.slow] * (p == 23 and n != 65))
            for p, order in [(1, 1), (2, 2), (3, 1), (5, 3), (6, 6), (9, 4), (23, 3)]
            for n in [0, 1, 63, 64, 65, 130]
        ],
    )
    def test_are_their_definition(self, p, order, n):
        codes = np.random.default_rng(n).integers(0, 2, size=(n, p), dtype=np.uint8)
        expected = naive(codes, order)
        for layout in (codes, np.asfortranarray(codes)):
            assert np.array_equal(parity_sums(layout, order), expected)
        assert np.array_equal(_by_transform(codes, field_scopes(codes.shape[1], order)), expected)
        assert parity_count(p, order) == len(field_scopes(p, order))

    def test_blocks_of_words_and_the_transform_agree(self):
        codes = np.random.default_rng(0).integers(0, 2, size=(200_003, 7), dtype=np.uint8)
        for order in (3, 7):  # 7 takes the transform by itself
            assert np.array_equal(parity_sums(codes, order), _by_transform(codes, field_scopes(7, order)))

    def test_sets_may_come_in_any_order(self):
        codes = np.random.default_rng(0).integers(0, 2, size=(130, 6), dtype=np.uint8)
        family = tuple(np.random.default_rng(1).permutation(np.array(field_scopes(6, 3), dtype=object)).tolist())
        backwards = ((0, 4), (0, 3), (0, 1), (0, 2), (5,), (3,), (4,))
        for subsets in (family, backwards):
            z = 2 * codes.astype(int) - 1
            assert family_sums(codes, subsets).tolist() == [z[:, list(s)].prod(axis=1).sum() for s in subsets]

    def test_first_state_is_minus_one(self):
        frame = pd.DataFrame({"a": ["yes", "yes"], "b": ["no", "yes"]})
        states = {"a": ["no", "yes"], "b": ["no", "yes"]}
        release = run(PrivateTable(frame, states, ledger=LARGE), parity_settings(), Budget(epsilon=1e8))
        assert release.values[0].tolist() == [2, 0, 0] and release.values[1].tolist() == [2]


class TestSensitivity:
    """A record's contribution does not depend on the others: neighbours are pairs of records, or a record and none."""

    @pytest.mark.parametrize(("p", "order"), [(p, t) for p in range(1, 6) for t in range(1, p + 1)])
    @pytest.mark.parametrize("with_count", [False, True])
    def test_is_the_largest_over_all_records(self, p, order, with_count):
        records = np.array(list(itertools.product([0, 1], repeat=p)), dtype=np.uint8)
        one = [
            parity_sums_and_count(records[k : k + 1], order, Adjacency.ADD_REMOVE, with_count).value
            for k in range(len(records))
        ]
        outside = np.zeros_like(one[0])
        alone = [value - outside for value in one]
        replaced = [a - b for a, b in itertools.combinations(one, 2)]
        for adjacency, moved in (("add_remove", alone), ("replace_one", alone + replaced)):
            claim = parity_sensitivity(p, order, Adjacency(adjacency), with_count)
            l1, l2, linf = (
                max(int(np.abs(d).sum()) for d in moved),
                max(int((d**2).sum()) for d in moved),
                max(int(np.abs(d).max()) for d in moved),
            )
            assert claim == pytest.approx((l1, math.sqrt(l2), linf), rel=1e-12)
            assert Fraction(claim[1]) ** 2 >= l2
        assert flipped_parities(p, order) == max(int((d != 0).sum()) for d in replaced)

    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_whole_tables_with_records_outside(self, adjacency):
        rows = [*itertools.product([0, 1], repeat=2), (7, 0), (1, None)]
        size = 2 if adjacency == "replace_one" else 3
        sums = {}
        for count in range(1 + size):
            for chosen in itertools.combinations_with_replacement(range(len(rows)), count):
                data = table([rows[k] for k in chosen], adjacency=adjacency, n_records=size)
                sums[chosen] = parity_sums_and_count(shared_codes(data)[0], 2, data.adjacency, True)
        seen = np.zeros(3)
        for first, second in itertools.combinations(sums, 2):
            rest = list(second)
            for k in first:
                if k in rest:
                    rest.remove(k)
            common = len(second) - len(rest)
            added = abs(len(first) - len(second)) == 1 and common == min(len(first), len(second))
            replaced = len(first) == len(second) and common == len(first) - 1
            if added if adjacency == "add_remove" else replaced:
                d = sums[first].value - sums[second].value
                seen = np.maximum(seen, [np.abs(d).sum(), math.sqrt((d**2).sum()), np.abs(d).max()])
        assert seen == pytest.approx(parity_sensitivity(2, 2, Adjacency(adjacency), True), rel=1e-12)

    def test_known_values(self):
        assert parity_sensitivity(20, 2, Adjacency.REPLACE_ONE, False)[1] == pytest.approx(20.98, abs=0.005)
        assert parity_sensitivity(20, 2, Adjacency.ADD_REMOVE, True)[1] == pytest.approx(math.sqrt(211))


GRAPHS = {  # edges and number of variables
    "none": ([], 3),
    "path": ([(0, 1), (1, 2), (2, 3)], 4),
    "triangle and one": ([(0, 1), (1, 2), (0, 2)], 4),
    "star and pair": ([(0, 1), (0, 2), (3, 4)], 5),
    "ring": ([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], 5),
    "complete": (list(itertools.combinations(range(4), 2)), 4),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("order", [2, 3])
class TestFamilies:
    """The cliques of a public graph."""

    def test_sums_are_those_of_all_parities(self, graph, order):
        edges, p = GRAPHS[graph]
        family = field_scopes(p, order, edges)
        for n in (0, 1, 64, 70_001):
            codes = np.random.default_rng(n).integers(0, 2, size=(n, p), dtype=np.uint8)
            every = dict(zip(field_scopes(p, order), parity_sums(codes, order).tolist(), strict=True))
            assert family_sums(codes, family).tolist() == [every[subset] for subset in family]

    @pytest.mark.parametrize("with_count", [False, True])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    @pytest.mark.parametrize("limit", [16, 0], ids=["exact", "bound"])
    def test_sensitivity_over_all_records(self, graph, order, with_count, adjacency, limit, monkeypatch):
        monkeypatch.setattr(parity_data, "_FAMILY_LIMIT", limit)
        flipped_in_family.cache_clear()
        edges, p = GRAPHS[graph]
        family = field_scopes(p, order, edges)
        records = np.array(list(itertools.product([0, 1], repeat=p)), dtype=np.uint8)
        one = [
            parity_sums_and_count(records[k : k + 1], family, Adjacency.ADD_REMOVE, with_count).value
            for k in range(len(records))
        ]
        moved = one + ([a - b for a, b in itertools.combinations(one, 2)] if adjacency == "replace_one" else [])
        moved = np.array(moved)
        most = [int(x) for x in (np.abs(moved).sum(axis=1).max(), (moved**2).sum(axis=1).max(), np.abs(moved).max())]
        l1, l2, linf = parity_sensitivity(p, family, Adjacency(adjacency), with_count)
        flipped_in_family.cache_clear()
        assert l1 >= most[0] and Fraction(l2) ** 2 >= most[1] and linf == most[2]
        if limit or adjacency == "add_remove":
            assert (l1, l2) == pytest.approx((most[0], math.sqrt(most[1])), rel=1e-12)
        m = len(family) + with_count
        assert l1 <= (m if adjacency == "add_remove" else 2 * m)

    @pytest.mark.parametrize("method", ["noise", "pmw", "sepfem", "auto"])
    def test_release_has_the_cliques_only(self, graph, order, method, tmp_path):
        edges, p = GRAPHS[graph]
        names = "abcde"[:p]
        data = table([(0, 1, 1, 0, 1)[:p]] * 40, names)
        given = [(names[j], names[i]) for i, j in edges]
        settings = parity_settings(order, method=method, graph=given, n_rounds=20)
        release = run(data, settings, Budget(rho=1e4))
        family = field_scopes(p, order, edges)
        assert released_subsets(release) == family and release.values[0].shape == (len(family),)
        expected = family_sums(shared_codes(data)[0], family)
        assert np.abs(release.values[0] - expected).max() <= (1 if method == "noise" else 40)
        release.save(tmp_path / "r.npz")
        assert released_subsets(Release.load(tmp_path / "r.npz")) == family
        if method == "noise":
            assert release.noise[0].scale == pytest.approx(math.sqrt((len(family) + 1) / 2e4))


class TestManyVariables:
    def test_are_counted_for_the_graph_only(self, monkeypatch):
        """1000 variables have half a million parities; a path has 1999."""
        monkeypatch.setattr(parity_data, "parity_sums", lambda *a: pytest.fail("counted all"))
        names = [f"x{j}" for j in range(1000)]
        data = table(np.random.default_rng(0).integers(0, 2, (200, 1000)), names)
        settings = parity_settings(graph=list(itertools.pairwise(names)), max_parities=1999)
        release = run(data, settings, Budget(rho=1.0))
        assert release.values[0].shape == (1999,) and release.noise[0].scale == pytest.approx(math.sqrt(1000))

    def test_too_many_cliques_are_refused_without_listing_them(self):
        names = [f"x{j}" for j in range(300)]
        data = table([], names)
        settings = parity_settings(5, graph=list(itertools.combinations(names, 2)), max_parities=10**5)
        with pytest.raises(ValueError, match="order=5 gives at least 100,001 parities of 300 variables"):
            run(data, settings, Budget(rho=1.0))
        assert not data.ledger.entries

    def test_graph_of_other_variables(self):
        data = table([])
        with pytest.raises(ValueError, match="unknown variables 'z'"):
            run(data, parity_settings(graph=[("a", "z")]), Budget(rho=1.0))
        assert not data.ledger.entries


class TestHalves:
    def test_are_disjoint_and_fair(self):
        rows = [((k >> 1) & 1, k & 1) for k in range(4)] * 2_500
        data = table(rows)
        sizes = []
        for _ in range(20):
            with TableCurator(data, Budget(rho=1e-3), what="two halves").split(2) as halves:
                first, second = (shared_codes(half._data)[0] for half in halves)
            assert len(first) + len(second) == len(rows)
            both = np.sort(np.concatenate([first, second]) @ [2, 1])
            assert np.array_equal(both, np.sort(shared_codes(data)[0] @ [2, 1]))
            sizes.append(len(first))
        # Binomial(10000, 1/2) has standard deviation 50; 6 of them have a chance of 2e-9.
        assert max(abs(size - 5_000) for size in sizes) <= 300 and len(set(sizes)) > 1

    def test_each_releases_under_a_plan_without_a_public_count(self):
        data = table([(0, 1), (1, 1)] * 50, adjacency="replace_one", n_records=100)
        plan = plan_parities(data.schema, data.adjacency, None, parity_settings(), Budget(epsilon=1e8))
        sums = np.zeros(4)
        with TableCurator(data, Budget(epsilon=1e8), what="two halves", columns=[]).split(2) as halves:
            for half in halves:
                arrays, method = ask_parities(half, plan)
                sums += np.concatenate(arrays)
                assert method == "noise" and len(arrays) == 2 and half.facts.n_records is None
        assert sums.tolist() == [0, 100, 0, 100] and len(data.ledger.entries) == 1


class TestNoiseOnAll:
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_textbook_scales(self, adjacency):
        n_records = 4 if adjacency == "replace_one" else None
        m, flips = (6 + 1, None) if n_records is None else (6, 4)  # three variables in pairs: d = 1 or 2 flip 3 or 4
        for budget, cost, scale in (
            (Budget(rho=0.5), ZCDP(0.5), math.sqrt(m) if flips is None else 2 * math.sqrt(flips)),
            (Budget(epsilon=0.5), PureDP(0.5), 2 * m if flips is None else 4 * flips),
            (Budget(epsilon=1.0, delta=1e-6), ZCDP(approx_to_zcdp(1.0, 1e-6)), None),
        ):
            data = table([(0, 1, 1)] * 4, "abc", adjacency, n_records)
            method = "gaussian" if budget.delta else "noise" if budget.rho else "laplace"
            release = run(data, parity_settings(method=method), budget)
            assert release.guarantee == cost and data.ledger.entries[0].cost == cost
            assert len(release.values) == len(release.noise) == (2 if n_records is None else 1)
            assert scale is None or [item.scale for item in release.noise] == pytest.approx(
                [scale] * len(release.noise)
            )
            assert {item.distribution for item in release.noise} == {release.mechanism}

    @pytest.mark.parametrize("budget", [Budget(rho=0.1), Budget(epsilon=0.5)])
    def test_noise_has_its_distribution(self, budget):
        """10,700 parities: with 2,324 noise of 1.3 times the scale was accepted in one run of fifty."""
        data = table([], [f"x{j}" for j in range(40)])
        release = run(data, parity_settings(order=3, method="gaussian" if budget.rho else "laplace"), budget)
        item, value = release.noise[0], np.concatenate(release.values)
        assert accepts(value, item.distribution, item.scale)
        assert not accepts(value, item.distribution, 1.3 * item.scale)
        assert not accepts(value, item.distribution, item.scale / 1.3)

    def test_contents(self, tmp_path):
        data = table([(0, 1)] * 7, n_records=7)
        release = run(data, parity_settings(method="laplace"), Budget(epsilon=1e8))
        assert release.kind == "parities" and release.values[0].tolist() == [-7, 7, -7] and release.n_records == 7
        assert release.public["order"] == 2 and release.public["method"] == "noise"
        release.save(tmp_path / "r.npz")
        assert Release.load(tmp_path / "r.npz") == release
        (entry,) = data.ledger.entries
        assert entry.columns == ("a", "b") and entry.what == "parities of up to 2 of 2 variables"

    def test_pickle_holds_no_exact_sum(self):
        data = table([(1, 1)] * 777_123)
        assert (777_123).to_bytes(8, "little") not in pickle.dumps(run(data, parity_settings(), Budget(epsilon=1e-4)))


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "budget", "text"),
        [
            ({"order": 3}, {"epsilon": 0.5}, "order=3 is more than the 2 variables of the schema; pass at most 2"),
            ({"max_parities": 2}, {"epsilon": 0.5}, "gives 3 parities of 2 variables, more than 2"),
            ({"method": "gaussian"}, {"epsilon": 0.5}, "noise='gaussian' cannot give 0.5-DP"),
            ({"method": "laplace"}, {"rho": 0.5}, "noise='laplace' is for an epsilon"),
            ({"method": "pmw"}, {"epsilon": 1e-20}, "needs noise of scale"),
            ({"method": "sepfem", "n_rounds": 10**5}, {"epsilon": 1e-11}, "needs noise of scale"),
            ({"method": "pmw"}, {"epsilon": 2.0}, "refused: 2-DP was asked"),
            ({"method": "auto"}, {"rho": 0.1}, "pure budget pays only for pure costs"),
        ],
    )
    def test_leave_the_ledger_alone(self, settings, budget, text, monkeypatch):
        monkeypatch.setattr(parity_data, "shared_codes", lambda *data: pytest.fail("looked at records"))
        data = table([(0, 1)], ledger=Budget(epsilon=1.0))
        with pytest.raises(ValueError, match=text):
            run(data, parity_settings(**settings), Budget(**budget))
        assert not data.ledger.entries

    def test_too_many_variables_for_pmw(self):
        data = table([], [f"x{j}" for j in range(30)])
        with pytest.raises(ValueError, match=r"2\*\*30 possible records, which would take 140 GiB; .* at most 20"):
            run(data, parity_settings(method="pmw"), Budget(rho=0.1))
        assert run(data, parity_settings(method="auto"), Budget(rho=0.1)).public["method"] == "noise"
        assert len(data.ledger.entries) == 1

    def test_variables_that_are_not_binary(self):
        data = PrivateTable(pd.DataFrame({"a": [0], "b": [0]}), {"a": [0, 1], "b": [0, 1, 2]}, ledger=LARGE)
        with pytest.raises(ValueError, match=r"schema declares \{'b': 3\} states .* of variables with two"):
            run(data, parity_settings(), Budget(rho=0.1))
        assert not data.ledger.entries

    def test_arguments(self):
        with pytest.raises(TypeError, match="pass a PrivateTable"):
            run(pd.DataFrame(), parity_settings(), Budget(rho=1.0))
        with pytest.raises(TypeError, match="pass a Budget"):
            run(table([]), parity_settings(), 1.0)


@pytest.mark.parametrize("method", ["noise", "pmw", "sepfem", "auto"])
class TestEveryMethod:
    @pytest.mark.parametrize("rows", [[], [(9, 9)] * 3, [(1, 1)] * 5, [(0, None), (0, 1)]])
    @pytest.mark.parametrize("budget", [Budget(rho=1e-4), Budget(epsilon=0.1), Budget(epsilon=1.0, delta=1e-6)])
    def test_is_silent_about_records(self, method, rows, budget, caplog):
        with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
            warnings.simplefilter("error")
            release = run(table(rows), parity_settings(method=method, n_rounds=3), budget)
        assert [v.shape for v in release.values] == [(3,), (1,)] and not caplog.records
        assert len(release.noise) == 2 and release.noise[1] is not None

    def test_charges_once_and_before_anything_is_counted(self, method, monkeypatch):
        events = []
        data = table([(0, 1)] * 5, ledger=Budget(rho=1.0))
        charge, read = Ledger.charge, parity_data.shared_codes
        monkeypatch.setattr(Ledger, "charge", lambda *a, **k: (events.append("charge"), charge(*a, **k))[1])
        monkeypatch.setattr(parity_data, "shared_codes", lambda *t: (events.append("read"), read(*t))[1])
        run(data, parity_settings(method=method, n_rounds=2), Budget(rho=0.75))
        assert events[:2] == ["charge", "read"] and set(events[1:]) == {"read"}
        with pytest.raises(BudgetExceeded):
            run(data, parity_settings(method=method), Budget(rho=0.5))
        assert len(data.ledger.entries) == 1

    def test_seed_is_repeatable_and_marked(self, method):
        settings = parity_settings(method=method, random_state=3, n_rounds=4)
        releases = []
        for _ in range(2):
            with pytest.warns(ReproducibleNoiseWarning, match="NOT private"):
                releases.append(run(table([(0, 1), (1, 1)] * 9), settings, Budget(rho=0.1)))
        assert releases[0] == releases[1] and releases[0].reproducible


NEIGHBOURS = {"add_remove": ([(1, 1)], []), "replace_one": ([(1, 1)], [(0, 1)])}  # (0, 1) flips a and ab of (1, 1)


def audit_noise(adjacency: str, budget: Budget, releases: int) -> float:
    """Audit of a whole release on worst-case neighbours, by the likelihood ratio of the claimed noise."""
    n_records = 1 if adjacency == "replace_one" else None
    endless = Budget(rho=1e9) if budget.rho else Budget(epsilon=1e9)
    data = [table(rows, "ab", adjacency, n_records, endless) for rows in NEIGHBOURS[adjacency]]
    plan = plan_parities(data[0].schema, data[0].adjacency, n_records, parity_settings(), budget)
    exact = [parity_sums_and_count(shared_codes(d)[0], 2, plan.adjacency, n_records is None).value for d in data]
    noise = []

    def draw(dataset: int, count: int) -> np.ndarray:
        outputs = []
        for _ in range(count):
            curator = TableCurator(data[dataset], budget, what="one of many", columns=[])
            outputs.append(np.concatenate(ask_parities(curator, plan)[0]))
            noise[:] = curator.answers[-1].noise
        return np.array(outputs)

    def score(outputs: np.ndarray) -> np.ndarray:
        return audit.log_ratio(
            outputs, (exact[0], exact[1]), np.full(len(exact[0]), noise[0].scale), noise[0].distribution
        )

    return audit.audit(draw, score, releases=releases, bound=audit.rho_bound if budget.rho else audit.epsilon_bound)


@pytest.mark.slow  # replay holds sensitivities, scales and shares
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("budget", [Budget(rho=1.0), Budget(epsilon=2.0)])
class TestAudit:
    def test_stays_below_the_claim_and_comes_near_it(self, adjacency, budget):
        claim = budget.rho or budget.epsilon
        # It sees .3 to .6 of the claim, with deviations of .03 to .06 of it.
        assert 0.1 * claim <= audit_noise(adjacency, budget, 1_500) <= claim

    def test_catches_a_forgotten_sensitivity(self, adjacency, budget, monkeypatch):
        monkeypatch.setattr(parity_data, "parity_sensitivity", lambda *a: (1.0, 1.0, 1.0))
        monkeypatch.setattr("pgmpy_dp.fields.operators.parities.parity_sensitivity", lambda *a: (1.0, 1.0, 1.0))
        assert audit_noise(adjacency, budget, 1_500) > (budget.rho or budget.epsilon)

"""The release of a chain's two tables: what it charges, says and hides, and attacks on it with worst-case users."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.learning import noisy_tables
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.curator_base import cost_of
from pgmpy_dp.private.data.contributions import GRID
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, PureDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.sensitive import Noise, Release, Sensitive
from pgmpy_dp.sequences import chain_counts
from pgmpy_dp.sequences.chain_counts import run
from pgmpy_dp.sequences.operators import sequence_operators as operators
from pgmpy_dp.sequences.operators import sequences
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_tables
from tests.private import audit
from tests.private.mechanisms import with_noise
from tests.settings import settings, table_settings

chain_settings = partial(settings, PrivateMarkovChain)

STATES = {"page": ["a", "b", None]}
FRAME = pd.DataFrame({"user": [1, 1, 2], "sequence": [["a", "b", "b"], ["a"], ["b", None]]})


def private(frame=FRAME, adjacency="add_remove", ledger=None, **arguments) -> PrivateSequences:
    n_users = 2 if adjacency == "replace_one" else None
    ledger = Budget(epsilon=1e6, delta=0.5) if ledger is None else ledger
    return PrivateSequences(frame, STATES, adjacency=adjacency, ledger=ledger, n_users=n_users, **arguments)


class TestRelease:
    def test_it_is_charged_and_says_what_it_is(self, tmp_path):
        data = private(ledger=Budget(epsilon=1.0))
        release = run(data, chain_settings(), Budget(epsilon=0.4))
        assert release.kind == "chain" and release.unit == "user" and release.guarantee == PureDP(0.4)
        assert [v.shape for v in release.values] == [(3,), (3, 3)] and release.public["units"] == [GRID, GRID]
        (entry,) = data.ledger.entries
        assert (entry.unit, entry.columns, entry.cost) == ("user", ("page",), PureDP(0.4))
        release.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz") == release
        data.ledger.save(tmp_path / "ledger.json")
        assert Ledger.load(tmp_path / "ledger.json").entries[0].unit == "user"

    @pytest.mark.parametrize(("adjacency", "factor"), [("add_remove", 1), ("replace_one", 2)])
    @pytest.mark.parametrize("rule", [{}, {"segment_length": 4, "max_segments": 3}])
    def test_scales_follow_from_the_sensitivities(self, adjacency, factor, rule):
        units = (GRID, GRID) if not rule else (3, 9)
        release = run(private(adjacency=adjacency), chain_settings(initial_share=0.2, **rule), Budget(epsilon=0.5))
        expected = [factor * units[0] / (0.2 * 0.5), factor * units[1] / (0.8 * 0.5)]
        assert [n.scale for n in release.noise] == pytest.approx(expected, rel=1e-12)
        release = run(private(adjacency=adjacency), chain_settings(initial_share=0.2, **rule), Budget(rho=0.5))
        expected = [units[0] * np.sqrt(factor / (2 * 0.2 * 0.5)), units[1] * np.sqrt(factor / (2 * 0.8 * 0.5))]
        assert [n.scale for n in release.noise] == pytest.approx(expected, rel=1e-12)
        assert release.guarantee == ZCDP(0.5)

    def test_check_charge_count_noise_in_this_order(self, monkeypatch):
        events = []
        for place, name in (
            (chain_counts, "least_noise"),
            (operators, "chain_tables"),
            (samplers, "discrete_laplace"),
        ):
            true = getattr(place, name)
            monkeypatch.setattr(place, name, lambda *a, n=name, f=true, **k: events.append(n) or f(*a, **k))
        charge = Ledger.charge
        monkeypatch.setattr(Ledger, "charge", lambda *a, **k: events.append("charge") or charge(*a, **k))
        run(private(), chain_settings(), Budget(epsilon=1.0))
        assert events == ["least_noise", "charge", "chain_tables", *["discrete_laplace"] * 2]

    def test_second_order_has_a_table_of_triples(self):
        release = run(private(), chain_settings(chain_order=2), Budget(epsilon=0.5))
        assert [v.shape for v in release.values] == [(3,), (3, 3), (3, 3, 3)]
        assert release.public["lengths"] == [1, 2, 3] and release.public["units"] == [GRID] * 3
        expected = [GRID / (share * 0.5) for share in (0.1, 0.45, 0.45)]
        assert [n.scale for n in release.noise] == pytest.approx(expected, rel=1e-12)
        rule = {"segment_length": 5, "max_segments": 2, "initial_share": 0.2, "chain_order": 2}
        release = run(private(), chain_settings(**rule), Budget(epsilon=0.5))
        expected = [2 / (0.2 * 0.5), 8 / (0.4 * 0.5), 6 / (0.4 * 0.5)]
        assert [n.scale for n in release.noise] == pytest.approx(expected, rel=1e-12)

    @pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning")
    @pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=1.0)])
    @pytest.mark.parametrize("users", [2, 3000])
    def test_the_test_of_order_spends_the_same_whatever_it_finds(self, users, budget, tmp_path):
        """Of two users noise decides what is asked; three thousand go round a, a, b."""
        frame = pd.DataFrame({"user": range(users), "sequence": [["a", "a", "b", "a", "a", "b"]] * users})
        data = private(frame, ledger=budget)
        release = run(data, chain_settings(chain_order="auto", random_state=0), budget)
        assert release.guarantee == budget.guarantee and data.ledger.left in (PureDP(0.0), ZCDP(0.0))
        lengths = release.public["lengths"]
        assert (0 in lengths) == bool(release.public["test"])
        if users == 3000:
            assert lengths == [1, 2, 0, 3] and release.public["test"]["order"] == 2
        # Three numbers: 3 in l1, sqrt(3) in l2 norm. Where they are not asked for the rest goes to the pairs.
        expected = [0.1, 0.25, *([0.05 / 3, 0.6] if 0 in lengths else [0.65])]
        scales = [GRID / share if budget.epsilon else GRID / np.sqrt(2 * share) for share in expected]
        assert [n.scale for n in release.noise] == pytest.approx(scales, rel=1e-9)
        release.save(tmp_path / "release.npz")
        assert Release.load(tmp_path / "release.npz") == release

    def test_too_many_states_for_triples(self):
        data = PrivateSequences(FRAME, {"page": list(range(300))}, ledger=Budget(epsilon=1.0))
        with pytest.raises(ValueError, match="27,000,000 triples"):
            run(data, chain_settings(chain_order=2), Budget(epsilon=1.0))
        assert data.ledger.entries == ()
        release = run(data, chain_settings(chain_order="auto"), Budget(epsilon=1.0))
        assert release.public["lengths"] == [1, 2] and release.guarantee == PureDP(1.0)

    def test_a_refusal_changes_nothing(self):
        data = private(ledger=Budget(epsilon=1.0))
        with pytest.raises(BudgetExceeded):
            run(data, chain_settings(), Budget(epsilon=1.1))
        for options, budget in (({"noise": "gaussian"}, Budget(epsilon=1.0)), ({"noise": "laplace"}, Budget(rho=1.0))):
            with pytest.raises(ValueError, match="noise="):
                run(data, chain_settings(**options), budget)
        with pytest.raises(ValueError, match="bury"):
            run(data, chain_settings(), Budget(epsilon=1e-12))
        assert data.ledger.entries == ()

    def test_seeded_noise_is_repeatable_marked_and_warns(self):
        data = private()
        with pytest.warns(ReproducibleNoiseWarning, match="NOT private"):
            releases = [
                run(data, chain_settings(segment_length=2, max_segments=1, random_state=5), Budget(epsilon=1.0))
                for _ in range(2)
            ]
        assert releases[0] == releases[1] and releases[0].reproducible and not data.ledger.private
        assert run(data, chain_settings(), Budget(epsilon=1e-3)) != run(data, chain_settings(), Budget(epsilon=1e-3))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"max_segments": 2}, "max_segments=2 without segment_length"),
            ({"segment_length": 1}, "segment_length=1"),
            ({"segment_length": 2, "max_segments": 0}, "max_segments=0"),
            ({"initial_share": 1}, "initial_share=1 "),
            ({"initial_share": 0}, "initial_share=0"),
            ({"noise": "none"}, "noise='none'"),
            ({"random_state": -1}, "random_state=-1"),
            ({"segment_length": 2.5}, "segment_length=2.5"),
            ({"chain_order": 3}, "chain_order=3"),
            ({"chain_order": True}, "chain_order=True"),
            ({"chain_order": 2, "segment_length": 2}, "segment_length=2 with chain_order=2"),
            ({"chain_order": "auto", "segment_length": 5}, "segment_length=5 with chain_order='auto'"),
        ],
    )
    def test_bad_settings_are_named(self, settings, message):
        with pytest.raises((TypeError, ValueError), match=message):
            chain_settings(**settings)


class TestUnits:
    """A sum of costs means something for one unit only."""

    def test_a_ledger_of_records_refuses_users_and_the_other_way_round(self):
        ledger = Ledger(Budget(epsilon=1.0))
        table = PrivateTable(pd.DataFrame({"page": ["a"]}), {"page": ["a", "b"]}, ledger=ledger)
        noisy_tables.run(table, table_settings([("page",)]), Budget(epsilon=0.1))
        with pytest.raises(ValueError, match="unit='user' differs from the unit None"):
            run(private(ledger=ledger), chain_settings(), Budget(epsilon=0.1))
        users = Ledger(Budget(epsilon=1.0))
        run(private(ledger=users), chain_settings(), Budget(epsilon=0.1))
        table = PrivateTable(pd.DataFrame({"page": ["a"]}), {"page": ["a", "b"]}, ledger=users)
        with pytest.raises(ValueError, match="unit=None differs"):
            noisy_tables.run(table, table_settings([("page",)]), Budget(epsilon=0.1))
        assert len(ledger.entries) == len(users.entries) == 1


# -- attacks ---------------------------------------------------------------------------------------

ONE = ["a", *[None] * 23]  # one informative pair, 22 pairs that are not
USERS = {
    "add_remove": ([(1, ONE)], []),
    "replace_one": ([(1, ONE)], [(1, ["b", *[None] * 23])]),
}
MANY = {  # ten segments each, of which one is counted
    "add_remove": ([(1, ["a", "b"] * 10)], []),
    "replace_one": ([(1, ["a", "b"] * 10)], [(1, ["b", "a"] * 10)]),
}
CLAIMS = {"laplace": Budget(epsilon=1.0), "gaussian": Budget(rho=0.5), "delta": Budget(epsilon=2.0, delta=0.05)}


def audit_users(users, adjacency: str, budget: Budget, releases: int, **rule) -> float:
    """Audit of the exact tables with the noise that they get, many copies side by side."""
    truth = [
        chain_tables(private(pd.DataFrame(rows, columns=["user", "sequence"]), adjacency), **rule)
        for rows in users[adjacency]
    ]
    used: list[Noise] = []

    def draw(dataset: int, count: int) -> np.ndarray:
        copies = [
            Sensitive(np.tile(t.value.ravel(), (count, 1)), t.adjacency, t.l1, t.l2, t.linf) for t in truth[dataset]
        ]
        made = with_noise(copies, cost_of(budget), Fraction(1), (0.25, 0.75))
        used[:] = made.noise
        return np.concatenate(made.draw(None), axis=1)

    def score(outputs: np.ndarray) -> np.ndarray:
        counts = tuple(np.concatenate([t.value.ravel() for t in tables]).astype(float) for tables in truth)
        scales = np.repeat([u.scale for u in used], [3, 9])
        return audit.log_ratio(outputs, counts, scales, used[0].distribution)

    bound = audit.rho_bound if budget.rho else lambda p, q: audit.epsilon_bound(p, q, budget.delta)
    return audit.audit(draw, score, releases=releases, bound=bound)


def limit(budget: Budget) -> float:
    return budget.epsilon if budget.rho is None else budget.rho


# Replay holds both sensitivities for every kind of budget: one attack of each noise here.
ATTACKS = {"shares": (USERS, {}), "one segment": (MANY, {"segment_length": 2, "max_segments": 1})}
QUICK = ("shares", "gaussian", "add_remove"), ("one segment", "laplace", "add_remove")


@pytest.mark.parametrize(
    ("users", "rule", "claim", "adjacency"),
    [
        pytest.param(*ATTACKS[one[0]], *one[1:], id="-".join(one), marks=[pytest.mark.slow] * (one not in QUICK))
        for one in itertools.product(ATTACKS, CLAIMS, ("add_remove", "replace_one"))
    ],
)
def test_worst_case_users_stay_below_the_claim_and_come_near_it(users, rule, claim, adjacency):
    bound = audit_users(users, adjacency, CLAIMS[claim], 3_000, **rule)
    # An attack sees .35 to .7 of the claim, with deviations of .04: below a tenth of it less than once in a million.
    assert 0.1 * limit(CLAIMS[claim]) <= bound <= limit(CLAIMS[claim])


def test_uninformative_pairs_that_count_are_caught(monkeypatch):
    """K counts informative pairs, but every pair adds 1/K: one user then adds 23 times its share."""

    def broken(user, cell, informative, n_cells):
        in_all = np.bincount(user[informative], minlength=int(user.max(initial=0)) + 1)
        table = np.zeros(n_cells, dtype=np.int64)
        np.add.at(table, cell, GRID // np.maximum(in_all[user], 1))
        return table

    intact = audit_users(USERS, "add_remove", CLAIMS["laplace"], 2_000)
    monkeypatch.setattr(sequences, "share_table", broken)
    assert audit_users(USERS, "add_remove", CLAIMS["laplace"], 2_000) > CLAIMS["laplace"].epsilon >= intact


def test_users_that_are_not_bounded_are_caught(monkeypatch):
    monkeypatch.setattr(sequences, "chosen_segments", lambda user, most, *_: np.ones(len(user), dtype=bool))
    rule = {"segment_length": 2, "max_segments": 1}
    assert audit_users(MANY, "add_remove", CLAIMS["gaussian"], 1_000, **rule) > CLAIMS["gaussian"].rho


def test_a_user_is_all_of_its_rows(monkeypatch):
    """Ten rows of one user taken for ten users: the mistake of protecting records where people are meant."""
    rows = {"add_remove": ([(1, ["a", "b"])] * 10, [])}
    assert audit_users(rows, "add_remove", CLAIMS["laplace"], 1_000) <= 1.0
    apart = {"add_remove": ([(k, ["a", "b"]) for k in range(10)], [])}
    assert audit_users(apart, "add_remove", CLAIMS["laplace"], 1_000) > 1.0

"""Clipped gradients of users against a naive twin, their sensitivity by exhaustive neighbours, the learner, attacks."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.mobility import chain_maximum_likelihood
from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.private import accounting
from pgmpy_dp.private.adjacency import Adjacency, changed_records
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator import schedule
from pgmpy_dp.private.data import gradients
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning
from pgmpy_dp.private.reading.owners import GuessedTypesWarning
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.sequences.chain_gradient import parameters, run
from pgmpy_dp.sequences.operators import chain_gradients
from pgmpy_dp.sequences.operators.chain_gradients import (
    ChainGrid,
    UserShares,
    clipping_weights,
    sampled_user_gradient_sum,
    user_count,
)
from pgmpy_dp.sequences.operators.sequences import PrivateSequences, chain_tables
from tests.private import audit
from tests.settings import settings

chain_settings = partial(settings, PrivateMarkovChain)
gradient_settings = partial(settings, PrivateMarkovChain, method="sgd")

STATES = {"page": ["a", "b", None]}
K = 3
# Lists of sequences; no visit, one visit, nothing but nulls, an unknown state, several sequences, very many visits.
ODD = [[], [[]], [["a"]], [[None, None]], [["?", "?"]], [["a", "?", "b"]], [["a", "a"], ["b"], ["b", None]]]
LONG = [["a", "b", None, "b", "b"] * 600]
SHORT = [[list(x)] for n in (1, 2, 3) for x in itertools.product(["a", "b", None], repeat=n)]
USERS = [*ODD, *SHORT]
DELTA = Budget(epsilon=1.0, delta=1e-3)
LARGE = Budget(epsilon=1e6, delta=0.9)


def private(users, adjacency="add_remove", ledger=LARGE, n_users=None, states=STATES) -> PrivateSequences:
    rows = [(f"u{k}", x) for k, sequences in enumerate(users) for x in sequences]
    n_users = len(users) if n_users is None and adjacency == "replace_one" else n_users
    frame = pd.DataFrame({"user": [r[0] for r in rows], "sequence": pd.Series([r[1] for r in rows], dtype=object)})
    return PrivateSequences(frame, states, adjacency=adjacency, ledger=ledger, n_users=n_users)


def everybody(users) -> np.ndarray:
    return np.arange(len(users))


def logits(strength: float, seed: int = 0) -> np.ndarray:
    return strength * np.random.default_rng(seed).normal(size=(K + 1) * K)


def whole_sum(users, theta, grid, adjacency="add_remove"):
    return sampled_user_gradient_sum(UserShares(private(users, adjacency), grid), theta, grid, everybody)


def shares_of(sequences) -> tuple[np.ndarray, np.ndarray]:
    """A user's shares, the slow and obvious way."""
    place = {"a": 0, "b": 1, None: 2}
    initial, pairs = np.zeros(K), np.zeros((K, K))
    for x in sequences:
        if any(state in ("a", "b") for state in x):
            if x[0] in place:
                initial[place[x[0]]] += 1
            for one, two in itertools.pairwise(x):
                if one in place and two in place and not one is two is None:
                    pairs[place[one], place[two]] += 1
    return initial / max(initial.sum(), 1), pairs / max(pairs.sum(), 1)


def naive_sum(users, probabilities: np.ndarray, clip_norm: float, initial_share: float) -> np.ndarray:
    """One gradient per user, clipped one by one."""
    largest = max(initial_share, 1 - initial_share)
    total = np.zeros((K + 1, K))
    for sequences in users:
        initial, pairs = shares_of(sequences)
        s = np.vstack([math.sqrt(initial_share / largest) * initial, math.sqrt((1 - initial_share) / largest) * pairs])
        g = s - s.sum(axis=1, keepdims=True) * probabilities
        total += g * min(1.0, clip_norm / max(np.linalg.norm(g), 1e-300))
    return total.ravel()


class TestClippedSum:
    @pytest.mark.parametrize(
        ("clip_norm", "strength", "initial_share"),
        [
            pytest.param(clip_norm, strength, share, marks=[pytest.mark.slow] * ((i + j + k) % 3 > 0))
            for i, clip_norm in enumerate([0.1, 0.6, 2.0])
            for j, strength in enumerate([0.0, 1.0, 8.0])
            for k, share in enumerate([0.02, 0.25, 0.6])
        ],
    )
    def test_naive_twin(self, clip_norm, strength, initial_share):
        users = [*USERS, LONG, *SHORT, *SHORT]
        grid = ChainGrid(clip_norm, K, initial_share)
        theta = logits(strength)
        rounded = grid.rounded_probabilities(theta) * 2.0**-12
        exact = np.exp(theta.reshape(K + 1, K))
        assert np.abs(rounded - exact / exact.sum(axis=1, keepdims=True)).max() <= 2.0**-13
        ours = whole_sum(users, theta, grid).value * grid.unit
        # Shares are rounded down by less than 2**-12 in each of at most 12 cells, weights by less than 2**-10 of at
        # most 2: a hundred users.
        naive = naive_sum(users, rounded, clip_norm, initial_share)
        np.testing.assert_allclose(ours, naive, rtol=0, atol=len(users) * (2.0**-12 * 2 + 2.0**-10 * clip_norm * 4))
        assert np.abs(ours).max() > 0.5

    @given(
        st.floats(2.0**-6, 2.0), st.floats(0, 20), st.integers(0, 10**6), st.sampled_from(USERS), st.floats(0.01, 0.99)
    )
    def test_one_user_is_clipped_exactly(self, clip_norm, strength, seed, user, initial_share):
        grid = ChainGrid(clip_norm, K, initial_share)
        vector = [int(v) for v in whole_sum([user], logits(strength, seed), grid).value]  # Python integers: exact
        assert sum(v * v for v in vector) <= grid.bound**2
        assert grid.bound * grid.unit <= clip_norm

    def test_norms_are_those_of_the_vectors(self):
        grid = ChainGrid(2.0, K, 0.25)
        for strength in (0.0, 1.0, 20.0):
            probabilities = grid.rounded_probabilities(logits(strength))
            for user in (*USERS, LONG):
                shares = UserShares(private([user]), grid)
                vector = shares.weighted_sum(np.ones(len(shares), np.int64), probabilities).astype(object)
                assert (vector**2).sum() == shares.squared_norms(probabilities).sum() <= 4 * 4**24

    @given(st.integers(0, 2**51), st.integers(1, 2**25))
    def test_weights_are_the_largest(self, squared, radius):
        (k,) = (int(v) for v in clipping_weights(np.array([squared]), radius))
        assert 0 <= k <= 1024 and k * k * squared <= (1024 * radius) ** 2
        assert k == 1024 or (k + 1) ** 2 * squared > (1024 * radius) ** 2

    @pytest.mark.parametrize("squared", [1, 2, 4, 9, 25])
    def test_weights_where_the_bound_is_met_exactly(self, squared):
        radius = 3 * 5 * 7
        expected = [
            min(1024, math.isqrt((1024 * radius) ** 2 // (squared * scale))) for scale in (1, 49, 49 * 25, 10**6)
        ]
        got = clipping_weights(np.array([squared * scale for scale in (1, 49, 49 * 25, 10**6)]), radius)
        assert got.tolist() == expected

    @pytest.mark.parametrize(
        ("strength", "clip_norm"),
        [
            pytest.param(strength, clip_norm, marks=[pytest.mark.slow] * (k != j))
            for k, strength in enumerate([0.0, 2.0, 20.0])
            for j, clip_norm in enumerate([0.1, 0.6, 2.0])
        ],
    )
    def test_sensitivity_by_exhaustive_neighbours(self, clip_norm, strength):
        """Every user of up to three visits and odd ones joins, leaves, or becomes any other, among others or alone."""
        theta = logits(strength)
        grid = ChainGrid(clip_norm, K, 0.25)
        users = [*USERS, LONG]
        alone = [whole_sum([x], theta, grid).value.astype(object) for x in users]
        nobody = whole_sum([], theta, grid).value.astype(object)
        company = [SHORT[5], ODD[6], LONG]
        others = whole_sum(company, theta, grid).value.astype(object)
        joined = [whole_sum([*company, x], theta, grid).value.astype(object) for x in users]
        add = max(max(((v - nobody) ** 2).sum() for v in alone), max(((v - others) ** 2).sum() for v in joined))
        swap = max(((v - w) ** 2).sum() for sums in (alone, joined) for v, w in itertools.combinations(sums, 2))
        for adjacency, most in (("add_remove", add), ("replace_one", swap)):
            stated = whole_sum([SHORT[0]], theta, grid, adjacency)
            assert most <= int(stated.l2) ** 2
            assert stated.l2 == changed_records(Adjacency(adjacency)) * grid.bound
            assert stated.linf <= stated.l2 <= stated.l1
        if clip_norm < 1:  # some gradient is clipped, and the claim is reached but for the weights' grid
            assert add >= (0.98 * grid.bound) ** 2

    def test_opposite_users_need_twice_the_norm(self):
        grid = ChainGrid(0.3, K, 0.9)
        theta = np.tile([5.0, 5.0, -30.0], K + 1)
        first, second = (whole_sum([[[state]]], theta, grid).value.astype(object) for state in "ab")
        assert math.sqrt(((first - second) ** 2).sum()) > 1.98 * grid.bound

    def test_order_of_users_and_other_users_do_not_matter(self):
        grid = ChainGrid(0.6, K, 0.25)
        theta = logits(1.0)
        parts = whole_sum(USERS[:13], theta, grid).value + whole_sum(USERS[13:], theta, grid).value
        assert (whole_sum(USERS[::-1], theta, grid).value == parts).all()

    def test_users_without_anything_to_say_add_nothing(self):
        grid = ChainGrid(0.6, K, 0.25)
        for user in ODD[:2] + ODD[3:5]:
            assert not whole_sum([user], logits(1.0), grid).value.any()
        one = whole_sum([[["a"]]], logits(1.0), grid).value
        assert one[:K].any() and not one[K:].any()

    def test_at_the_tables_proportions_the_sum_is_all_but_zero(self):
        """Unclipped, the ascent's fixed point is the maximum likelihood of the tables by shares."""
        users = USERS * 3
        tables = [s.value for s in chain_tables(private(users))]
        chain = chain_maximum_likelihood(*tables, pseudocount=1.0)
        theta = np.vstack([chain.log_initial, chain.log_transition]).ravel()
        grid = ChainGrid(2.0, K, 0.25)
        assert np.abs(whole_sum(users, theta, grid).value * grid.unit).max() < len(users) * 2.0**-10

    @pytest.mark.parametrize("limit", [1, 1 << 40])
    def test_clamped_sums_are_those_of_unlimited_integers(self, limit, monkeypatch):
        grid = ChainGrid(0.6, K, 0.25)
        true = whole_sum(USERS, logits(1.0), grid).value
        monkeypatch.setattr(gradients, "_LIMIT", limit)
        assert (whole_sum(USERS, logits(1.0), grid).value == np.clip(true, -limit, limit)).all()

    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300])
    def test_logits_that_are_not_numbers_break_no_bound(self, odd):
        grid = ChainGrid(0.6, K, 0.25)
        for theta in (np.full(12, odd), np.where(np.arange(12) % 2, odd, 0.0)):
            value = whole_sum([SHORT[3]], theta, grid).value.astype(object)
            assert (value**2).sum() <= grid.bound**2

    @pytest.mark.parametrize("clip_norm", [1e-9, 0.01, 2.1, 1e9])
    def test_grids_without_room_are_refused(self, clip_norm):
        with pytest.raises(ValueError, match="clip_norm="):
            ChainGrid(clip_norm, K, 0.25)
        with pytest.raises(ValueError, match="5000 states"):
            ChainGrid(0.6, 5000, 0.25)

    def test_shares_are_hidden(self):
        shares = UserShares(private(USERS), ChainGrid(0.6, K, 0.25))
        assert repr(shares) == "UserShares(hidden, adjacency='add_remove')" and len(shares) == len(USERS) - 1
        with pytest.raises(TypeError, match="private records"):
            pickle.dumps(shares)

    def test_number_of_users(self):
        counted = user_count(private(USERS))  # the first has no row
        assert counted.value.tolist() == [len(USERS) - 1] and counted.l2 == 1
        with pytest.raises(ValueError, match="n_users"):
            user_count(private(USERS, "replace_one"))


class TestScalesAndGuarantees:
    @pytest.mark.parametrize(("adjacency", "epsilon"), [("add_remove", 1.0), ("replace_one", 0.5)])
    def test_the_budget_is_used_up_and_not_exceeded(self, adjacency, epsilon):
        release = run(private(USERS, adjacency, n_users=30), gradient_settings(batch_rate=0.1, n_steps=50), DELTA)
        path = release.public["path"]
        delta = 1e-3 if adjacency == "add_remove" else 1e-3 / (1 + math.exp(0.5))
        spent = accounting.subsampled_gaussian_epsilon(path["noise_multiplier"], path["batch_rate"], 50, delta)
        assert 0.98 * epsilon < spent <= epsilon
        assert release.guarantee == ApproxDP(1.0, 1e-3) and release.noise == (None, None)

    def test_a_noisy_count_is_paid_for(self):
        settings = gradient_settings(batch_rate=0.1, n_steps=50, count_share=0.2)
        release = run(private(USERS), settings, DELTA)
        rho = 0.2 * accounting.approx_to_zcdp(1.0, 1e-3)
        assert release.noise[2].scale == pytest.approx(math.sqrt(1 / (2 * rho)))
        path = release.public["path"]
        spent = accounting.subsampled_gaussian_epsilon(path["noise_multiplier"], path["batch_rate"], 50, 1e-3, rho=rho)
        assert 0.98 < spent <= 1.0

    @pytest.mark.parametrize(("adjacency", "changed"), [("add_remove", 1), ("replace_one", 2)])
    def test_rho(self, adjacency, changed):
        subject = private(USERS, adjacency, Budget(rho=0.5), n_users=30)
        release = run(subject, gradient_settings(n_steps=50), Budget(rho=0.5))
        assert release.guarantee == ZCDP(0.5) and release.public["path"]["batch_rate"] == 1.0
        assert release.public["path"]["noise_multiplier"] == pytest.approx(changed * math.sqrt(50 / (2 * 0.5)))

    def test_the_noise_added_is_the_noise_accounted_for(self, monkeypatch):
        scales = []
        true = samplers.discrete_gaussian
        monkeypatch.setattr(samplers, "discrete_gaussian", lambda v, s, rng: scales.append(s) or true(v, s, rng=rng))
        release = run(private(USERS, n_users=30), gradient_settings(clip_norm=0.3, n_steps=9), DELTA)
        grid = ChainGrid(0.3, K, 0.25)
        assert len(scales) == 9 and release.public["path"]["clip_norm"] == grid.bound * grid.unit <= 0.3
        assert min(scales) >= release.public["path"]["noise_multiplier"] * grid.bound


class TestWhatIsReleased:
    def test_contents_and_one_charge(self, tmp_path):
        subject = private(USERS)
        release = run(subject, gradient_settings(n_steps=20), DELTA)
        assert release.kind == "chain_logits" and release.unit == "user"
        assert [v.shape for v in release.values] == [(K,), (K, K), (1,)]
        release.save(tmp_path / "r.npz")
        again = Release.load(tmp_path / "r.npz")
        assert again == release and again.noise == release.noise
        assert all((a == b).all() for a, b in zip(parameters(again), parameters(release), strict=True))
        (entry,) = subject.ledger.entries
        assert (entry.cost, entry.columns, entry.unit) == (ApproxDP(1.0, 1e-3), ("page",), "user")
        assert entry.what == "20 gradient steps for a chain" and not entry.reproducible

    def test_check_charge_count_noise_in_this_order(self, monkeypatch):
        events = []
        for place, name in (
            (schedule, "sampled_schedule"),
            (chain_gradients, "UserShares"),
            (chain_gradients, "user_count"),
            (samplers, "discrete_gaussian"),
            (chain_gradients, "sampled_user_gradient_sum"),
        ):
            true = getattr(place, name)
            monkeypatch.setattr(place, name, lambda *a, n=name, f=true, **k: events.append(n) or f(*a, **k))
        charge = Ledger.charge
        monkeypatch.setattr(Ledger, "charge", lambda *a, **k: events.append("charge") or charge(*a, **k))
        run(private(USERS), gradient_settings(n_steps=2), DELTA)
        step = ["sampled_user_gradient_sum", "discrete_gaussian"]
        assert events == ["sampled_schedule", "charge", "user_count", "discrete_gaussian", "UserShares", *step, *step]

    def test_other_kinds_have_no_logits(self):
        from pgmpy_dp.sequences import chain_counts as chain

        with pytest.raises(ValueError, match="kind 'chain'"):
            parameters(chain.run(private(USERS), chain_settings(), Budget(epsilon=1.0)))

    @pytest.mark.parametrize("users", [[], ODD[:2], ODD[3:5], [ODD[2]]], ids=["none", "no visit", "odd", "one visit"])
    @pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
    def test_next_to_nobody(self, users, adjacency):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", GuessedTypesWarning)  # of every frame, whoever is in it
            release = run(private(users, adjacency), gradient_settings(n_steps=20), DELTA)
        assert all(np.isfinite(v).all() and np.abs(v).max() <= 50 for v in parameters(release))

    @pytest.mark.slow  # the estimator learns a chain by the same steps in its own tests
    def test_much_budget_learns_the_likelihood_s_maximum(self):
        rng = np.random.default_rng(5)
        users = [USERS[k] for k in rng.choice(len(USERS), 3000, p=rng.dirichlet(np.full(len(USERS), 0.5)))]
        settings = gradient_settings(batch_rate=1.0, n_steps=1500, learning_rate=8.0, clip_norm=2.0)
        learned = parameters(run(private(users, n_users=3000), settings, LARGE))
        exact = chain_maximum_likelihood(*(s.value for s in chain_tables(private(users))))
        for ours, theirs in zip(learned, (exact.log_initial, exact.log_transition), strict=True):
            p = np.exp(ours) / np.exp(ours).sum(axis=-1, keepdims=True)
            np.testing.assert_allclose(p, np.exp(theirs), atol=4e-3)

    def test_seeds(self):
        settings = gradient_settings(random_state=3, n_steps=20)
        with pytest.warns(ReproducibleNoiseWarning, match="random_state=3"):
            first = run(private(USERS), settings, DELTA)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert run(private(USERS), settings, DELTA) == first
        assert first.reproducible
        fresh = gradient_settings(n_steps=20)
        assert run(private(USERS), fresh, DELTA) != run(private(USERS), fresh, DELTA)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"n_steps": 0}, ValueError, "n_steps=0"),
            ({"n_steps": 2.5}, TypeError, "n_steps=2.5"),
            ({"batch_rate": 1.5}, ValueError, "batch_rate=1.5"),
            ({"clip_norm": -1}, ValueError, "clip_norm=-1"),
            ({"learning_rate": math.inf}, ValueError, "learning_rate=inf"),
            ({"initial_share": 1}, ValueError, "initial_share=1"),
            ({"initial_share": "a"}, TypeError, "initial_share='a'"),
            ({"random_state": -1}, ValueError, "random_state=-1"),
        ],
    )
    def test_settings(self, arguments, error, message):
        with pytest.raises(error, match=message):
            gradient_settings(**arguments)

    @pytest.mark.parametrize(
        ("settings", "budget", "error", "message"),
        [
            ({}, Budget(epsilon=1.0), ValueError, "delta=0.*no pure guarantee"),
            ({"clip_norm": 5.0}, DELTA, ValueError, "clip_norm=5.0"),
            ({"n_steps": 10**6, "batch_rate": 1.0}, Budget(epsilon=1e-4, delta=1e-9), ValueError, "n_steps=1000000"),
            ({}, Budget(epsilon=1.5, delta=1e-3), BudgetExceeded, "asked"),
        ],
    )
    def test_before_the_charge(self, settings, budget, error, message, monkeypatch):
        monkeypatch.setattr(chain_gradients, "UserShares", lambda *_: pytest.fail("looked at the users"))
        subject = private(USERS, ledger=Ledger(DELTA), n_users=30)
        with pytest.raises(error, match=message):
            run(subject, gradient_settings(**settings), budget)
        assert subject.ledger.entries == ()

    def test_not_sequences_not_a_budget(self):
        with pytest.raises(TypeError, match="PrivateSequences"):
            run(None, gradient_settings(), DELTA)
        with pytest.raises(TypeError, match="pass a Budget"):
            run(private(USERS), gradient_settings(), 1.0)


# -- attacks ---------------------------------------------------------------------------------------

TWO = {"page": ["a", "b"]}
CLIP = 0.05  # far below the norm of their gradients, 0.8
BUDGET = Budget(epsilon=2.0, delta=1e-2)
# At the uniform chain the gradients of these two are opposite: begins in a and stays, begins in b and leaves a for b.
STAYER, MOVER = [["a"] * 40], [["b", "?", "a", "b"]]
NEIGHBOURS = {"add_remove": ([STAYER], []), "replace_one": ([STAYER], [MOVER])}


def attack(adjacency: str, rate: float, releases: int, budget: Budget = BUDGET) -> float:
    """Lower bound on epsilon (or rho) of one whole step, read from the released logits."""
    settings = gradient_settings(n_steps=1, batch_rate=rate, clip_norm=CLIP, learning_rate=1e-2, momentum=0.0)
    grid = ChainGrid(CLIP, 2, 0.25)
    first, second = (
        sampled_user_gradient_sum(
            UserShares(private(users, adjacency, n_users=1, states=TWO), grid), np.zeros(6), grid, everybody
        ).value.astype(float)
        for users in NEIGHBOURS[adjacency]
    )
    direction = (first - second) / np.linalg.norm(first - second)

    def draw(dataset: int, count: int) -> np.ndarray:
        outputs = []
        for start in range(0, count, 50):  # a ledger of its own for each fifty: their deltas stay below 1
            ledger = Budget(epsilon=1e6, delta=0.999) if budget.rho is None else Budget(rho=1e6)
            fifty = private(NEIGHBOURS[adjacency][dataset], adjacency, ledger, n_users=1, states=TWO)
            for _ in range(min(50, count - start)):
                initial, transition = parameters(run(fifty, settings, budget))
                outputs.append(np.concatenate([initial, transition.ravel()]))
        return np.array(outputs)

    bound = audit.rho_bound if budget.rho else lambda p, q: audit.epsilon_bound(p, q, budget.delta)
    return audit.audit(draw, lambda o: o @ direction, releases=releases, bound=bound)


def divide_the_noise(monkeypatch, divisor):
    true = samplers.discrete_gaussian
    monkeypatch.setattr(samplers, "discrete_gaussian", lambda v, s, rng: true(v, s / divisor, rng=rng))


@pytest.mark.slow  # replays hold the same, of every record
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
class TestAttacks:
    @pytest.mark.parametrize("rate", [0.5, 1.0])
    def test_stays_below_the_claim(self, adjacency, rate):
        assert attack(adjacency, rate, 250) <= BUDGET.epsilon

    @pytest.mark.slow  # the same steps with another scale, which replay holds
    def test_rho_stays_below_the_claim(self, adjacency):
        assert attack(adjacency, 1.0, 250, Budget(rho=1.0)) <= 1.0

    @pytest.mark.slow  # so does replay
    @pytest.mark.parametrize(("budget", "divisor"), [(Budget(rho=1.0), 3), (BUDGET, 5)], ids=["rho", "delta"])
    def test_too_little_noise_is_caught(self, adjacency, budget, divisor, monkeypatch):
        divide_the_noise(monkeypatch, divisor)
        assert attack(adjacency, 1.0, 700 if budget.rho else 600, budget) > (budget.rho or budget.epsilon)

    @pytest.mark.slow  # so does replay
    def test_forgetting_to_clip_is_caught(self, adjacency, monkeypatch):
        monkeypatch.setattr(chain_gradients, "clipping_weights", lambda squared, _: np.full(len(squared), 1024))
        assert attack(adjacency, 1.0, 800) > BUDGET.epsilon

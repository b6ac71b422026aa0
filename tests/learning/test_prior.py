"""Learning around a public model or an earlier release."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp import MarkovNetwork, Number, PrivateTable, Schema
from pgmpy_dp.estimators import CollectiveMAP, PrivateNetwork
from pgmpy_dp.learning.prior import Prior
from pgmpy_dp.learning.privacy_record import Privacy, composed
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP, ReservedZCDP
from pgmpy_dp.private.sensitive import Release

STATES = {"rain": ["no", "yes"], "wet": ["no", "yes"], "mood": ["bad", "fair", "good"]}
PAIRS = [("rain", "wet"), ("wet", "mood")]


def records(n, seed):
    rng = np.random.default_rng(seed)
    rain = rng.random(n) < 0.3
    wet = rng.random(n) < np.where(rain, 0.9, 0.05)
    mood = np.where(wet, rng.choice(3, n, p=[0.7, 0.2, 0.1]), rng.choice(3, n, p=[0.1, 0.3, 0.6]))
    named = {"rain": np.array(STATES["rain"])[rain * 1], "wet": np.array(STATES["wet"])[wet * 1]}
    return pd.DataFrame({**named, "mood": np.array(STATES["mood"])[mood]})


@pytest.fixture(scope="module")
def last():
    """Last year's fit."""
    data = records(5000, 0)
    return CollectiveMAP(epsilon=2.0, state_names=STATES, random_state=0).fit(MarkovNetwork(PAIRS), data)


@pytest.fixture(scope="module")
def release():
    """This year's tables, of hardly any budget."""
    data = records(2000, 1)
    estimator = CollectiveMAP(epsilon=0.02, state_names=STATES, random_state=1)
    return estimator.fit(MarkovNetwork(PAIRS), data).release_


def error(model, truth):
    return sum(np.abs(model.marginal(list(pair)).values - truth.marginal(list(pair)).values).sum() for pair in PAIRS)


def learned(release, prior, graph=PAIRS):
    return CollectiveMAP(prior=prior).fit_release(MarkovNetwork(graph), release)


def test_what_is_known_from_last_year_helps(last, release):
    alone, around = learned(release, None), learned(release, last.model_)
    truth = CollectiveMAP(epsilon=1e4, state_names=STATES).fit(MarkovNetwork(PAIRS), records(100_000, 2)).model_
    assert error(around.model_, truth) < 0.2 * error(alone.model_, truth)
    assert "with the prior" in around.status_
    low, high = (around.posterior(50, random_state=0).interval(["wet"])[end][1] for end in ("lower", "upper"))
    assert low < truth.marginal(["wet"]).values[1] < high


def test_it_may_be_told_in_many_ways(last, release, tmp_path):
    expected = learned(release, last.model_).model_.marginal(["rain", "mood"]).values
    last.model_.save(tmp_path / "model.npz")
    last.release_.save(tmp_path / "release.npz")
    plain = DiscreteMarkovNetwork(last.model_.edges)
    plain.add_factors(*last.model_.factors)
    for prior in (
        plain,
        str(tmp_path / "model.npz"),
        tmp_path / "release.npz",
        last.release_,
        last.model_.to_log_linear(),
    ):
        found = learned(release, prior).model_
        np.testing.assert_allclose(found.marginal(["rain", "mood"]).values, expected, atol=2e-3)


def test_a_bayesian_network_and_states_in_another_order(release):
    expert = DiscreteBayesianNetwork([("rain", "wet")])
    rain = TabularCPD("rain", 2, [[0.3], [0.7]], state_names={"rain": ["yes", "no"]})
    wet = TabularCPD("wet", 2, [[0.1, 0.95], [0.9, 0.05]], ["rain"], [2], {"wet": ["no", "yes"], "rain": ["yes", "no"]})
    expert.add_cpds(rain, wet)
    (table,) = Prior.of(expert).tables([("wet", "rain")], release)
    np.testing.assert_allclose(table, [[0.7 * 0.95, 0.3 * 0.1], [0.7 * 0.05, 0.3 * 0.9]])


def test_numbers_may_be_divided_otherwise():
    def told(number, then):
        old = Schema({"age": number, "sex": ["f", "m"]})
        rng = np.random.default_rng(0)
        data = pd.DataFrame({"age": rng.integers(0, 60, 20_000), "sex": rng.choice(["f", "m"], 20_000)})
        data.loc[data.sex == "f", "age"] //= 2
        graph = MarkovNetwork([("age", "sex")])
        model = CollectiveMAP(epsilon=50.0, state_names=old, random_state=0).fit(graph, data).model_
        new = Schema({"sex": ["m", "f"], "age": then})
        release = CollectiveMAP(epsilon=1.0, state_names=new, random_state=1).fit(graph, data).release_
        prior = Prior.of(model)
        prior.check(new)
        (table,) = prior.tables([("age", "sex")], release)
        kept = release.schema.numbers["age"]
        exact = [[((data.sex == s) & data.age.between(a, b)).mean() for s in ("m", "f")] for a, b, _ in kept.spans()]
        np.testing.assert_allclose(table[: len(exact)], exact, atol=0.02)

    told(Number(0, 59, cuts=[15, 30, 45], resolution=1), Number(0, 59, cuts=[10, 30, 50], resolution=1))
    told(Number(0, 59, resolution=1), Number(0, 59, cuts=[20, 40], resolution=1))
    told(Number(0, 59, cuts=[5, 15, 30, 45], resolution=1), Number(0, 59, resolution=1))


class TestRefused:
    @pytest.mark.parametrize(
        ("prior", "told"),
        [
            (3, "prior=3 is a int; pass a MarkovNetwork"),
            ("nowhere.npz", "prior='nowhere.npz' is not a file"),
            ({"rain": ["no", "yes", "hail"]}, "prior has .* for the variable 'rain'.*rename or merge"),
            ({"snow": ["no", "yes"]}, "prior has none of the variables"),
        ],
    )
    def test_before_anything_is_spent(self, prior, told):
        if isinstance(prior, dict):
            ((name, states),) = prior.items()
            given = DiscreteMarkovNetwork()
            given.add_node(name)
            given.add_factors(DiscreteFactor([name], [len(states)], np.ones(len(states)), {name: states}))
            prior = given
        table = PrivateTable(records(100, 3), STATES, ledger=Budget(epsilon=1.0))
        for estimator in (CollectiveMAP(epsilon=1.0, prior=prior), PrivateNetwork(epsilon=1.0, prior=prior)):
            with pytest.raises((ValueError, TypeError), match=told):
                estimator.fit(*([MarkovNetwork(PAIRS)] * isinstance(estimator, CollectiveMAP)), table)
        assert table.ledger.entries == ()

    def test_files_of_something_else(self, tmp_path):
        (tmp_path / "table.npz").write_text("rain,wet")
        with pytest.raises(ValueError, match="neither a model's file nor a release's"):
            Prior.of(tmp_path / "table.npz")

    def test_releases_without_tables_and_impossible_models(self, last, release):
        chain = release.part("chain", {name: name for name in release.names}, release.facts)
        with pytest.raises(ValueError, match="prior is a release of kind 'chain'"):
            Prior.of(chain)
        nothing = MarkovNetwork([("rain", "wet")])
        nothing.add_factors(
            DiscreteFactor(["rain", "wet"], [2, 2], np.zeros(4), {k: STATES[k] for k in ("rain", "wet")})
        )
        with pytest.raises(ValueError, match="every record the probability 0"):
            Prior.of(nothing)


class TestPrivacy:
    def test_it_says_what_it_rests_on(self, release, tmp_path):
        data = records(500, 4)
        before = CollectiveMAP(epsilon=0.5, state_names=STATES).fit(MarkovNetwork(PAIRS), data)
        now = CollectiveMAP(epsilon=0.25, state_names=STATES, prior=before.model_).fit(MarkovNetwork(PAIRS), data)
        assert now.privacy_.guarantee == PureDP(0.25)
        assert now.privacy_.prior.guarantee == PureDP(0.5)
        assert now.privacy_.total == PureDP(0.75)
        assert "0.75-DP together, for whoever is in both" in str(now.privacy_)
        now.model_.save(tmp_path / "now.npz")
        again = MarkovNetwork.load(tmp_path / "now.npz")
        assert again.privacy == now.privacy_
        third = CollectiveMAP(epsilon=1.0, state_names=STATES, prior=again).fit(MarkovNetwork(PAIRS), data)
        assert third.privacy_.total == PureDP(1.75)
        public = CollectiveMAP(epsilon=1.0, state_names=STATES, prior=before.model_.to_log_linear())
        assert public.fit(MarkovNetwork(PAIRS), data).privacy_.prior is None  # of which nothing is known

    def test_a_release_that_was_chosen_with_a_prior_says_so(self, tmp_path):
        """Which tables it has depends on the prior's records, whoever learns from it afterwards."""
        data, asked = records(500, 4), {"state_names": STATES, "n_rounds": 1}
        first = PrivateNetwork(epsilon=1.0, **asked).fit(data)
        second = PrivateNetwork(epsilon=0.5, prior=first.model_, **asked).fit(data)
        assert second.privacy_.total == PureDP(1.5)
        second.release_.save(tmp_path / "second.npz")
        for release in (second.release_, Release.load(tmp_path / "second.npz")):
            assert PrivateNetwork(epsilon=0.5, **asked).fit_release(release).privacy_.total == PureDP(1.5)
            again = PrivateNetwork(epsilon=0.5, prior=first.model_, **asked).fit_release(release)
            assert again.privacy_.total == PureDP(1.5)
            third = PrivateNetwork(epsilon=0.25, prior=release, **asked).fit(data)
            assert third.privacy_.total == PureDP(1.75)
        other = PrivateNetwork(epsilon=2.0, **asked).fit(data)
        both = PrivateNetwork(epsilon=0.5, prior=other.model_, **asked).fit_release(second.release_)
        assert both.privacy_.total == PureDP(3.5)

    def test_what_cannot_be_added_up_is_not(self):
        one = Privacy(PureDP(1.0), "add_remove", "noise")
        other = Privacy(PureDP(1.0), "add_remove", "noise", unit="user", prior=one)
        assert other.total is None
        assert "cannot be added up" in str(other)
        assert Privacy(PureDP(1.0), "add_remove", "noise", reproducible=True).total is None
        assert one.total == PureDP(1.0)

    def test_sums_are_rounded_up(self):
        total = composed(PureDP(0.1), PureDP(0.2)).epsilon
        assert total >= 0.1 + 0.2
        assert composed(ZCDP(0.1), ReservedZCDP(0.2, 1e-9)) == ReservedZCDP(0.1 + 0.2, 1e-9)
        assert composed(PureDP(2.0), ZCDP(0.5)).rho == pytest.approx(2.5)
        assert composed(PureDP(1.0), ApproxDP(2.0, 1e-6)) == ApproxDP(3.0, 1e-6)
        mixed = composed(ReservedZCDP(0.1, 1e-8), ApproxDP(2.0, 1e-6))
        assert mixed.delta >= 2e-6 + 1e-8
        assert ReservedZCDP(0.1, 1e-8).implies(ApproxDP(mixed.epsilon - 2.0 + 1e-9, mixed.delta - 1e-6 + 1e-20))


def test_clones_and_copies_have_it(last):
    estimator = CollectiveMAP(epsilon=1.0, prior=last.model_)
    clone = estimator.clone()
    assert isinstance(clone.get_params()["prior"], MarkovNetwork)
    assert clone.get_params()["prior"].privacy == last.privacy_
    assert pickle.loads(pickle.dumps(estimator)).prior.privacy == last.privacy_


class TestNetworks:
    @pytest.mark.parametrize(
        "most", [4, pytest.param(6, marks=pytest.mark.slow), 8, pytest.param(12, marks=pytest.mark.slow)]
    )
    def test_tables_of_the_prior_that_would_make_cliques_too_large_are_left_out(self, last, most):
        how = {"epsilon": 0.05, "delta": 1e-6, "state_names": STATES, "max_clique_cells": most}
        for seed in range(4):
            estimator = PrivateNetwork(**how, random_state=seed, prior=last.model_).fit(records(2000, 5))
            assert set(map(frozenset, estimator.graph_.edges)) <= set(map(frozenset, estimator.model_.edges))

    def test_a_search_around_last_years_model(self, last):
        data = records(2000, 5)
        how = {"epsilon": 0.05, "delta": 1e-6, "state_names": STATES, "random_state": 3}
        alone, around = (PrivateNetwork(**how, prior=prior).fit(data) for prior in (None, last.model_))
        truth = CollectiveMAP(epsilon=1e4, state_names=STATES).fit(MarkovNetwork(PAIRS), records(100_000, 2)).model_
        assert error(around.model_, truth) < 0.5 * error(alone.model_, truth)
        assert {*map(frozenset, PAIRS)} <= {*map(frozenset, around.graph_.edges)}
        assert around.privacy_.prior == last.privacy_
        assert len(around.errors_) == 3
        again = PrivateNetwork(prior=last.model_).fit_release(around.release_)
        np.testing.assert_allclose(again.model_.marginal(["mood"]).values, around.model_.marginal(["mood"]).values)

    @pytest.mark.parametrize("weakest", range(4))
    def test_of_a_prior_for_which_there_is_no_room_the_least_is_left_out(self, weakest):
        """The first in its list were taken, and a fit could lose the strongest edge of its prior."""
        names = list("abcd")
        pairs = [(names[k], names[(k + 1) % 4]) for k in range(4)]
        network = DiscreteMarkovNetwork(pairs)
        weights = {pair: 0.2 if k == weakest else 1.0 for k, pair in enumerate(pairs)}
        for pair, weight in weights.items():
            network.add_factors(DiscreteFactor(pair, [2, 2], np.exp([weight, 0, 0, weight])))
        states = {name: [0, 1] for name in names}
        records = pd.DataFrame(0, index=range(50), columns=names)
        fit = CollectiveMAP(epsilon=1.0, state_names=states, random_state=0).fit(MarkovNetwork(pairs), records)
        tables = Prior.of(network).further_tables(fit.release_, [], [], 4)
        assert set(map(frozenset, tables)) == {frozenset(pair) for pair in pairs if weights[pair] == 1.0}

    def test_edges_of_the_prior_that_are_forbidden_or_too_large_are_left_out(self, last, release):
        prior = Prior.of(last.model_)
        assert set(prior.further_tables(release, [], [], 100)) == {("rain", "wet"), ("wet", "mood")}
        assert set(prior.further_tables(release, [], [("mood", "wet")], 100)) == {("rain", "wet")}
        assert set(prior.further_tables(release, [], [], 4)) == {("rain", "wet")}
        assert set(prior.further_tables(release, [("wet", "rain")], [], 100)) == {("wet", "mood")}
        np.testing.assert_allclose(
            prior.base(release, [], 100).marginal(["rain", "mood"]),
            last.model_.marginal(["rain", "mood"]).values,
            atol=1e-4,
        )

    def test_wrong_ones_are_left(self, release):
        data = records(3000, 6)
        odd = nx.Graph([("rain", "mood")])
        wrong = MarkovNetwork(odd)
        names = {"rain": STATES["rain"], "mood": STATES["mood"]}
        wrong.add_factors(DiscreteFactor(["rain", "mood"], [2, 3], [1, 100, 1, 100, 1, 1], names))
        how = {"epsilon": 2.0, "delta": 1e-6, "state_names": STATES, "random_state": 3}
        alone, around = (PrivateNetwork(**how, prior=prior).fit(data) for prior in (None, wrong))
        truth = CollectiveMAP(epsilon=1e4, state_names=STATES).fit(MarkovNetwork(PAIRS), records(100_000, 2)).model_
        assert error(around.model_, truth) < 1.5 * error(alone.model_, truth) < 0.2

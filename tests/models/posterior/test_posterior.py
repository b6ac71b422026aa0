"""Intervals and synthetic data sets of a fitted CollectiveMAP."""

import itertools
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Date, MarkovNetwork, Release
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.models.posterior.posterior_sampling import sample_posterior

STATES = {"rain": ["no", "yes"], ("wet", 1): [False, True], "month": [6, 7, 8]}
GRAPH = nx.Graph([("rain", ("wet", 1)), ("month", "rain")])


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    rain = rng.random(3000) < 0.3
    data = pd.DataFrame({"rain": np.where(rain, "yes", "no"), "month": rng.choice([6, 7, 8], 3000)})
    data[("wet", 1)] = rng.random(3000) < np.where(rain, 0.9, 0.1)
    return CollectiveMAP(epsilon=2.0, state_names=STATES).fit(GRAPH, data)


def test_the_prior_of_the_estimator_is_that_of_the_fit_and_the_posterior(fitted):
    other = CollectiveMAP(prior_tail=0.3, variance_shape=2.0).fit_release(GRAPH, fitted.release_)
    assert {name: other._fit.details[name] for name in ("prior_tail", "variance_shape")} == {
        "prior_tail": 0.3,
        "variance_shape": 2.0,
    }
    first, second = (e.posterior(n_draws=19, random_state=0).draws.theta for e in (fitted, other))
    assert np.abs(first - second).max() > 1e-3


def test_intervals_carry_the_states_and_hold_the_truth(fitted):
    posterior = fitted.posterior(n_draws=99, random_state=0)
    table = posterior.interval(["month", ("wet", 1)], evidence={"rain": "yes"}, level=0.98)
    model = fitted.model_.copy()
    model.posterior = posterior
    frame = model.ask(["month", ("wet", 1)], {"rain": "yes"}, level=0.98).to_frame()
    assert list(frame.columns) == ["month", ("wet", 1), "probability", "lower", "upper"]
    assert list(frame["month"]) == [6, 6, 7, 7, 8, 8]
    assert list(frame[("wet", 1)]) == [False, True] * 3
    np.testing.assert_array_equal(frame[["lower", "upper"]].T, [table[end].ravel() for end in ("lower", "upper")])
    assert table["estimate"].sum() == pytest.approx(1)
    assert ((table["lower"] <= table["estimate"]) & (table["estimate"] <= table["upper"])).all()
    wet = posterior.interval([("wet", 1)], {"rain": "yes"}, level=0.98)
    assert wet["lower"][1] < 0.9 < wet["upper"][1] < wet["lower"][1] + 0.2


def test_the_release_is_enough_and_the_draws_are_repeatable(fitted, tmp_path):
    first = fitted.posterior(n_draws=19, random_state=1)
    again = pickle.loads(pickle.dumps(fitted)).posterior(n_draws=19, random_state=1)
    np.testing.assert_array_equal(first.draws.theta, again.draws.theta)
    fitted.release_.save(tmp_path / "release.json")
    read = CollectiveMAP().fit_release(GRAPH, Release.load(tmp_path / "release.json"))
    np.testing.assert_allclose(
        read.posterior(n_draws=19, random_state=1).draws.marginals.mean(axis=0),
        first.draws.marginals.mean(axis=0),
        atol=0.05,
    )
    np.testing.assert_equal(pickle.loads(pickle.dumps(first)).interval(["rain"]), first.interval(["rain"]))
    assert first.privacy == fitted.privacy_
    assert len(fitted.privacy_.entries) == 1  # nothing more was spent


def test_synthetic_data_sets_come_from_different_models(fitted):
    posterior = fitted.posterior(n_draws=19, random_state=2)
    sets = posterior.sample(500, n_sets=3, random_state=0)
    assert len(sets) == 3
    assert all(len(data) == 500 and set(data.columns) == set(STATES) for data in sets)
    assert set(sets[0]["month"]) <= {6, 7, 8}
    models = posterior.models(2)
    assert all(isinstance(model, MarkovNetwork) for model in models)
    assert not np.allclose(models[0].marginal(["rain"]).values, models[1].marginal(["rain"]).values, atol=1e-9)
    for n_sets in (0, 20):
        with pytest.raises(ValueError, match="n_sets"):
            posterior.sample(5, n_sets=n_sets)


def test_bad_input_is_named(fitted):
    with pytest.raises(Exception, match="not been fitted"):
        CollectiveMAP(epsilon=1.0, state_names=STATES).posterior()
    posterior = fitted.posterior(n_draws=19, random_state=0)
    with pytest.raises(ValueError, match="snow"):
        posterior.interval(["snow"])
    with pytest.raises(ValueError, match="'maybe', which is not a state"):
        posterior.interval(["month"], {"rain": "maybe"})
    with pytest.raises(ValueError, match="list of variables"):
        posterior.interval("rain")


def test_counts_are_shares_of_the_records_with_the_error_of_both():
    data = pd.DataFrame({"a": [0] * 600 + [1] * 400, "b": [0, 1] * 500})
    states = {"a": [0, 1], "b": [0, 1]}
    graph = MarkovNetwork([("a", "b")])
    estimator = CollectiveMAP(epsilon=1.0, state_names=states, random_state=0).fit(graph, data)
    posterior = estimator.posterior(50, random_state=0)
    frame = posterior.interval(["a"], evidence={"b": 1}, counts=True)
    joint = posterior.interval(["a", "b"])
    expected = estimator.n_records_ * joint["estimate"][:, 1]
    np.testing.assert_allclose(frame["count"], expected, rtol=1e-9)
    assert (frame["count_lower"] < frame["count"]).all() and (frame["count"] < frame["count_upper"]).all()
    wider = posterior.interval(["a"], counts=True)
    assert (
        (wider["count_upper"] - wider["count"]) >= estimator.n_records_ * (wider["upper"] - wider["estimate"])
    ).all()


@pytest.fixture(scope="module")
def stays():
    """Nobody is in the north from 25 to 29 May; the model's cells are halves of months."""
    rng = np.random.default_rng(0)
    day = rng.integers(0, 61, 6000)
    ward = np.where((rng.random(6000) < 0.3) & ((day < 24) | (day > 28)), "north", "south")
    frame = pd.DataFrame({"day": pd.Timestamp("2024-05-01") + pd.to_timedelta(day, "D"), "ward": ward})
    cuts = ["2024-05-16", "2024-06-01", "2024-06-16"]
    states = {"day": Date("2024-05-01", "2024-06-30", cuts=cuts, missing="drop"), "ward": ["north", "south"]}
    return CollectiveMAP(epsilon=20.0, state_names=states).fit(nx.Graph([("day", "ward")]), frame)


class TestARangeThatCutsACell:
    def test_its_interval_holds_the_truth_and_says_what_counted(self, stays):
        posterior = stays.posterior(n_draws=49, random_state=0)
        frame = posterior.interval(["ward"], {"day": "2024-05-25:2024-05-29"})
        assert frame["lower"][0] == 0.0 and frame["upper"][1] == 1.0  # nothing is known within a cell
        assert frame["estimate"][0] == pytest.approx(0.2, abs=0.03)
        answer = stays.model_.ask("ward", {"day": "2024-05-25:2024-05-29"})
        assert answer.evidence["day"].cells == {"[2024-05-16,2024-06-01)": 5 / 16}
        assert "day=2024-05-25:2024-05-29 counts as 31% of [2024-05-16,2024-06-01)\n" in str(answer)
        # Most of it are whole cells: between none and all of what is cut, around what was known without it.
        frame = posterior.interval(["ward"], {"day": "2024-05-01:2024-06-19"}, counts=True)
        whole = stays.model_.query("ward", {"day": "2024-05-01:2024-06-15"}).values[0]
        cut = stays.model_.probability({"ward": "north", "day": "2024-06-16:2024-06-30"})
        part = stays.model_.probability({"day": "2024-06-16:2024-06-30"}) - cut
        all_of, size = stays.model_.probability({"day": "2024-05-01:2024-06-15"}), posterior.n_records
        assert frame["lower"][0] < whole * all_of / (all_of + part)
        assert frame["upper"][0] > (whole * all_of + cut) / (all_of + cut)
        assert frame["count_lower"][0] < size * whole * all_of < size * (whole * all_of + cut) < frame["count_upper"][0]
        assert frame["upper"][0] - frame["lower"][0] < 0.4

    def test_whole_cells_are_answered_as_their_states_are(self, stays):
        posterior = stays.posterior(n_draws=49, random_state=0)
        states = stays.model_.states["day"]
        frame = posterior.interval(["ward"], {"day": "2024-05-16:2024-06-15"}, counts=True)
        np.testing.assert_equal(frame, posterior.interval(["ward"], {"day": {*states[1:3]}}, counts=True))
        assert frame["upper"][0] - frame["lower"][0] < 0.06
        weights = np.array([0.0, 1.0, 1.0, 0.0])
        drawn = posterior.draws.query(["ward", "day"]) @ weights
        expected = posterior.draws.interval_of(drawn / drawn.sum(axis=1, keepdims=True))
        np.testing.assert_allclose([frame["lower"], frame["upper"]], expected[1:], rtol=1e-14)

    def test_soft_evidence_has_the_interval_of_its_likelihood(self, stays):
        posterior = stays.posterior(n_draws=49, random_state=0)
        states = stays.model_.states["day"]
        frame = posterior.interval(["ward"], {"day": {states[0]: 0.2, states[1]: 0.8}})
        drawn = posterior.draws.query(["ward", "day"]) @ np.array([0.2, 0.8, 0.0, 0.0])
        expected = posterior.draws.interval_of(drawn / drawn.sum(axis=1, keepdims=True))
        np.testing.assert_allclose([frame["lower"], frame["upper"]], expected[1:], atol=1e-12)
        counted = stays.model_.ask("ward", {"day": {states[0]: 0.2, states[1]: 0.8}}).evidence["day"].cells
        assert {"day": counted} == {"day": {states[0]: 0.2, states[1]: 0.8}}


def test_a_variable_that_one_table_alone_has_gets_its_whole_width_beside_many_that_are_in_several():
    """As parents' columns at small budgets: draws ended before they had come there, and had half of the deviation."""
    n, noise, rng = 6_000, 51.0, np.random.default_rng(0)
    others = tuple("abcdefghijkl")
    names, sizes = (*others, "alone"), (8,) * len(others) + (9,)
    pairs = [*(("a", x) for x in others[1:]), *itertools.pairwise(others[1:])]
    cliques = Cliques(names, sizes, (*pairs, *((x,) for x in names)))
    like, shares = rng.integers(8, size=n), np.arange(1, 10) / 45
    codes = {x: np.where(rng.random(n) < 0.7, like, rng.integers(8, size=n)) for x in others}
    codes["alone"] = rng.choice(9, n, p=shares)
    size = dict(zip(names, sizes, strict=True))
    tables = [np.zeros([size[x] for x in scope]) for scope in cliques.scopes]
    for scope, table in zip(cliques.scopes, tables, strict=True):
        np.add.at(table, tuple(codes[x] for x in scope), 1)
    counts = cliques.join(tables) + noise * rng.normal(size=cliques.n_cells)
    noisy = NoisyMarginals(cliques, counts, "gaussian", np.full(cliques.n_cliques, noise), total=n)
    draws = sample_posterior(noisy, collective_map(noisy), rng, n_draws=30, dense_limit=0).query(["alone"])
    known = np.sqrt(((noise / n) ** 2 * 8 / 9 + shares * (1 - shares) / n).mean())
    assert 0.8 < np.sqrt(draws.var(axis=0, ddof=1).mean()) / known < 1.35

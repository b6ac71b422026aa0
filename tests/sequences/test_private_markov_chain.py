"""PrivateMarkovChain: conventions, export to pgmpy, what it keeps, and errors before anything is spent."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.base
from pgmpy.inference import VariableElimination

from pgmpy_dp import Budget, MarkovNetwork, PrivateSequences, Release, Schema
from pgmpy_dp.estimators import PrivateMarkovChain
from pgmpy_dp.private.filter import BudgetExceeded
from pgmpy_dp.sequences import private_markov_chain as module
from pgmpy_dp.sequences.operators.sequences import chain_tables
from tests.estimators import test_nothing_leaks as leaks

STATES = {"page": ["front", "news", "sports"]}
P = np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]])
PI = np.array([0.6, 0.3, 0.1])
NEEDLE = leaks.NEEDLE


def visits(n=3000, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n):
        for _ in range(rng.integers(1, 3)):
            x = [rng.choice(3, p=PI)]
            while rng.random() < 0.7:
                x.append(rng.choice(3, p=P[x[-1]]))
            rows.append((f"u{user}", " ".join(STATES["page"][i] for i in x)))
    rows.append((NEEDLE, f"front {NEEDLE} news"))
    return pd.DataFrame(rows, columns=["user", "sequence"])


DATA = visits()


@pytest.mark.parametrize("method", ["map", "naive"])
@pytest.mark.parametrize("rule", [{}, {"segment_length": 4, "max_segments": 2}], ids=["shares", "segments"])
@pytest.mark.parametrize("budget", [{"epsilon": 5.0}, {"rho": 5.0}], ids=["epsilon", "rho"])
def test_it_learns_the_chain(method, rule, budget):
    estimator = PrivateMarkovChain(**budget, state_names=STATES, method=method, **rule).fit(DATA)
    assert np.abs(estimator.initial_ - PI).max() < 0.08
    assert np.abs(estimator.transition_ - P).max() < 0.12
    assert estimator.transition_.sum(axis=1) == pytest.approx(np.ones(3))
    assert estimator.privacy_.unit == "user" and "all rows of one 'user'" in str(estimator.privacy_)
    assert estimator.n_transition_ < estimator.n_initial_


@pytest.mark.parametrize("method", ["map", "naive"])
def test_a_generous_cap_on_segments_shrinks_nothing_where_there_is_no_noise(method):
    with pytest.warns(UserWarning, match="reproducible"):
        estimator = PrivateMarkovChain(
            epsilon=1e5, state_names=STATES, method=method, segment_length=2100, max_segments=1, random_state=0
        ).fit(DATA)
    assert np.abs(estimator.transition_ - P).max() < 0.05


def rounds(n=4000, seed=0) -> pd.DataFrame:
    """Visits that go on in the direction they came from: a chain of second order."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(n):
        x = [int(rng.integers(3)), int(rng.integers(3))]
        while rng.random() < 0.8:
            x.append(int((2 * x[-1] - x[-2]) % 3 if rng.random() < 0.8 else rng.integers(3)))
        rows.append((user, " ".join(STATES["page"][i] for i in x)))
    return pd.DataFrame(rows, columns=["user", "sequence"])


ROUNDS = rounds()


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        pytest.param(method, rule, marks=[pytest.mark.slow] * ((j + k) % 2), id=f"{method}-{name}")
        for j, method in enumerate(["map", "naive"])
        for k, (name, rule) in enumerate({"shares": {}, "segments": {"segment_length": 5, "max_segments": 1}}.items())
    ],
)
def test_it_learns_a_chain_of_second_order(method, rule, tmp_path):
    estimator = PrivateMarkovChain(epsilon=5.0, state_names=STATES, method=method, chain_order=2, **rule).fit(ROUNDS)
    onward = np.array([[[(2 * j - i) % 3 == k for k in range(3)] for j in range(3)] for i in range(3)])
    assert np.abs(estimator.second_transition_ - np.where(onward, 0.8 + 0.2 / 3, 0.2 / 3)).max() < 0.1
    assert estimator.order_ == 2 and "triples" in estimator.status_
    table = estimator.transition_probabilities()
    assert table.loc[("front", "news"), "sports"] == estimator.second_transition_[0, 1, 2]
    model = estimator.to_markov_network(5)
    assert (
        model.check_model()
        and model.has_edge(("page", 0), ("page", 2))
        and not model.has_edge(("page", 0), ("page", 3))
    )
    first = PrivateMarkovChain(epsilon=5.0, state_names=STATES, **rule).fit(ROUNDS)
    test = rounds(300, seed=1)
    assert estimator.log_likelihood(test).sum() > first.log_likelihood(test).sum() + 300
    estimator.release_.save(tmp_path / "release.npz")
    again = PrivateMarkovChain(method=method).fit_release(Release.load(tmp_path / "release.npz"))
    np.testing.assert_array_equal(again.second_transition_, estimator.second_transition_)
    assert estimator.sample(50, 4, random_state=0).shape == (50, 4)


@pytest.mark.filterwarnings("ignore::pgmpy_dp.private.noise.samplers.ReproducibleNoiseWarning")
@pytest.mark.parametrize("budget", [{"epsilon": 3.0}, {"rho": 1.0}], ids=["epsilon", "rho"])
def test_the_order_is_found_where_the_budget_bears_it(budget, tmp_path):
    auto = {"state_names": STATES, "chain_order": "auto", "random_state": 0}
    second = PrivateMarkovChain(**budget, **auto).fit(ROUNDS)
    assert second.order_ == 2 and second.status_.startswith("second order: ")
    first = PrivateMarkovChain(**budget, **auto).fit(DATA)
    assert first.order_ == 1 and first.status_.startswith("first order: ") and first.second_transition_ is None
    assert np.abs(first.transition_ - P).max() < 0.12
    poor = PrivateMarkovChain(epsilon=0.003, **auto).fit(ROUNDS)
    assert poor.order_ == 1 and poor.privacy_.guarantee == Budget(epsilon=0.003).guarantee
    for fitted in (first, second, poor):
        fitted.release_.save(tmp_path / "release.npz")
        again = PrivateMarkovChain().fit_release(Release.load(tmp_path / "release.npz"))
        assert again.order_ == fitted.order_ and again.status_ == fitted.status_
        np.testing.assert_array_equal(again.transition_, fitted.transition_)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_the_exported_network_is_the_chain(length, tmp_path):
    estimator = PrivateMarkovChain(epsilon=1.0, state_names=STATES).fit(DATA)
    model = estimator.to_markov_network(length)
    assert isinstance(model, MarkovNetwork) and model.check_model()
    assert list(model.nodes) == [("page", t) for t in range(length)]
    names = STATES["page"]
    x = np.random.default_rng(length).integers(3, size=length)
    frame = pd.DataFrame({("page", t): [names[i]] for t, i in enumerate(x)})
    frame.columns = pd.Index([("page", t) for t in range(length)], tupleize_cols=False)
    ours = estimator.log_likelihood(pd.DataFrame({"user": [1], "sequence": [" ".join(names[i] for i in x)]}))
    assert model.log_likelihood(frame) == pytest.approx(ours[0])
    inner = estimator.initial_ @ np.linalg.matrix_power(estimator.transition_, length - 1)
    theirs = VariableElimination(model).query([("page", length - 1)], show_progress=False)
    theirs.normalize()
    np.testing.assert_allclose(theirs.values, inner, rtol=1e-8)
    model.save(tmp_path / "model.npz")
    assert MarkovNetwork.load(tmp_path / "model.npz").privacy == model.privacy == estimator.privacy_


def test_labelled_tables_and_samples():
    estimator = PrivateMarkovChain(epsilon=1.0, state_names=STATES).fit(DATA)
    table = estimator.transition_probabilities()
    assert table.loc["front", "news"] == estimator.transition_[0, 1]
    assert estimator.initial_probabilities()["sports"] == estimator.initial_[2]
    drawn = estimator.sample(500, 4, random_state=1)
    assert drawn.shape == (500, 4) and set(drawn.to_numpy().ravel()) <= set(STATES["page"])
    pd.testing.assert_frame_equal(drawn, estimator.sample(500, 4, random_state=1))


def test_a_release_is_learned_from_again_without_records_or_cost(tmp_path):
    data = PrivateSequences(DATA, STATES, ledger=Budget(epsilon=1.0))
    first = PrivateMarkovChain(epsilon=0.5).fit(data)
    first.release_.save(tmp_path / "release.npz")
    again = PrivateMarkovChain().fit_release(Release.load(tmp_path / "release.npz"))
    np.testing.assert_array_equal(again.transition_, first.transition_)
    assert again.privacy_.unit == "user" and len(data.ledger.entries) == 1
    with pytest.raises(BudgetExceeded):
        PrivateMarkovChain(epsilon=0.6).fit(data)
    assert len(data.ledger.entries) == 1


def test_any_frame_and_both_forms():
    wide = PrivateMarkovChain(epsilon=1e4, state_names=STATES).fit(pl.from_pandas(DATA))
    rows = [
        (u, t, p) for u, s in zip(DATA["user"][:200], DATA["sequence"], strict=False) for t, p in enumerate(s.split())
    ]
    long = pd.DataFrame(rows, columns=["user", "time", "page"]).sample(frac=1, random_state=0)
    fitted = PrivateMarkovChain(epsilon=1e4, state_names=STATES, order="time").fit(long)
    assert fitted.transition_.shape == wide.transition_.shape == (3, 3)


@pytest.mark.parametrize("frame", [DATA.iloc[:0], DATA.iloc[:1], DATA[DATA["user"] == NEEDLE]], ids=["0", "1", "odd"])
def test_next_to_no_data_is_a_fit_like_any_other(frame):
    estimator = PrivateMarkovChain(epsilon=0.1, state_names=STATES).fit(frame)
    assert np.isfinite(estimator.transition_).all() and estimator.n_initial_ >= 1


class TestConventions:
    def test_the_constructor_stores_its_arguments_untouched(self):
        states = {"a": ["x", "y"]}
        estimator = PrivateMarkovChain(epsilon=-3, state_names=states, adjacency="nonsense", method="none")
        assert (estimator.epsilon, estimator.adjacency, estimator.method) == (-3, "nonsense", "none")
        assert estimator.state_names is states

    @pytest.mark.parametrize("clone", [lambda e: e.clone(), sklearn.base.clone], ids=["skbase", "sklearn"])
    @pytest.mark.parametrize("states", [STATES, Schema(STATES)], ids=["dict", "Schema"])
    def test_clones_are_unfitted_and_have_the_same_parameters(self, clone, states):
        estimator = PrivateMarkovChain(epsilon=1.0, state_names=states).fit(DATA)
        copy = clone(estimator)
        assert copy.get_params() == estimator.get_params() and not copy.is_fitted
        estimator.reset()
        assert not estimator.is_fitted and not hasattr(estimator, "release_")

    def test_unfitted_estimators_say_so(self):
        for use in (lambda e: e.to_markov_network(2), lambda e: e.sample(1, 2), lambda e: e.log_likelihood(DATA)):
            with pytest.raises(Exception, match="fitted"):
                use(PrivateMarkovChain(epsilon=1.0, state_names=STATES))


BAD = [
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"state_names": None}, "state_names=None"),
    ({"state_names": {"a": [0, 1], "b": [0, 1]}}, "state_names declares the variables"),
    ({"adjacency": "edge"}, "adjacency='edge'"),
    ({"adjacency": "replace_one"}, "n_users=None"),
    ({"unit": "who"}, "no column for"),
    ({"max_segments": 3}, "max_segments=3 without segment_length"),
    ({"initial_share": 2}, "initial_share=2"),
    ({"method": "best"}, "method='best'"),
    ({"stay": "yes"}, "stay='yes'"),
    ({"noise": "gaussian"}, "noise='gaussian'"),
    ({"initial_share": 1}, "initial_share=1"),
    ({"chain_order": 3}, "chain_order=3"),
    ({"chain_order": "auto", "segment_length": 5}, "segment_length=5 with chain_order='auto'"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[f"{k}: {BAD[k][1]}" for k in range(len(BAD))])
def test_bad_arguments_are_named_before_anything_is_spent(changes, message, monkeypatch):
    monkeypatch.setattr(
        module.chain_counts.PrivateSequences, "ledger", property(lambda _: pytest.fail("touched the ledger"))
    )
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        PrivateMarkovChain(**{"epsilon": 1.0, "state_names": STATES, **changes}).fit(DATA)
    assert NEEDLE not in str(caught.value)


def test_private_sequences_have_the_last_word():
    data = PrivateSequences(DATA, STATES, ledger=Budget(epsilon=1.0))
    for changes, message in (
        ({"state_names": {"page": ["front", "x"]}}, "state_names"),
        ({"n_users": 4}, "n_users=4"),
        ({"adjacency": "replace_one", "n_users": 4}, "differs"),
    ):
        with pytest.raises(ValueError, match=message):
            PrivateMarkovChain(epsilon=0.5, **changes).fit(data)
    assert data.ledger.entries == ()


@pytest.mark.parametrize(
    ("method", "adjacency"),
    [
        pytest.param(method, adjacency, marks=[pytest.mark.slow] * (k > 0 and method != "map"))
        for method in ("map", "naive")
        for k, adjacency in enumerate(["add_remove", "replace_one"])
    ],
)
def test_a_fitted_chain_holds_no_records_nor_exact_tables(method, adjacency, monkeypatch):
    n_users = None if adjacency == "add_remove" else 3333  # a public number that is not the true one
    data = PrivateSequences(DATA, STATES, ledger=Budget(epsilon=1.0))
    exact = [s.value.astype(float) for s in chain_tables(data)]
    monkeypatch.setattr(leaks, "EXACT", exact)
    monkeypatch.setattr(leaks, "DATA", DATA)
    monkeypatch.setattr(leaks, "KEPT", DATA.drop_duplicates("user"))
    estimator = PrivateMarkovChain(
        epsilon=0.01,
        state_names=STATES,
        method=method,
        adjacency=adjacency,
        n_users=n_users,
    ).fit(DATA)
    for item in (estimator, estimator.to_markov_network(3), estimator.release_, pickle.loads(pickle.dumps(estimator))):
        assert leaks.leaks(item) == []
        assert NEEDLE.encode() not in pickle.dumps(item)
    estimator.exact = exact[1] / exact[1].sum()
    assert leaks.leaks(estimator) == ["an exact table"]


def test_a_fit_that_fails_after_the_release_does_not_lose_it(monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("boom")

    data = PrivateSequences(DATA, STATES, ledger=Budget(epsilon=1.0))
    estimator = PrivateMarkovChain(epsilon=0.5)
    monkeypatch.setattr(module, "map_chain", fail)
    with pytest.raises(RuntimeError, match="boom") as caught:
        estimator.fit(data)
    assert not estimator.is_fitted and len(data.ledger.entries) == 1
    monkeypatch.undo()
    assert estimator.fit_release(caught.value.release).is_fitted

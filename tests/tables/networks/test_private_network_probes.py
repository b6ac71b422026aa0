"""Tables drawn at random, measured after all others: what a network says of what it did not choose."""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from pgmpy_dp import Budget, MarkovNetwork, PrivateTable
from pgmpy_dp.estimators import CollectiveMAP, NaiveMLE, PrivateNetwork
from pgmpy_dp.learning.probe_tables import joined_probes, probe_tables
from pgmpy_dp.models.posterior.discrepancy import Drawn
from pgmpy_dp.models.posterior.posterior_file import posterior_from_parts, posterior_to_parts
from pgmpy_dp.tables.networks import adaptive_search
from pgmpy_dp.tables.networks.candidates import N_PROBES, Candidates, draw_probes
from tests.settings import settings

network_settings = partial(settings, PrivateNetwork)

NAMES = tuple("abcdef")
STATES = {name: [0, 1] for name in NAMES}


def records(n: int = 4_000) -> pd.DataFrame:
    """a, b, c in a chain; d, e with the parity f, which no pair tells of."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (n, 6))
    for k in (1, 2):
        bits[:, k] = np.where(rng.random(n) < 0.8, bits[:, k - 1], bits[:, k])
    bits[:, 5] = np.where(rng.random(n) < 0.8, bits[:, 3] ^ bits[:, 4], bits[:, 5])
    return pd.DataFrame(bits, columns=NAMES)


def released(budget: Budget, **settings):
    table = PrivateTable(records(), STATES, ledger=budget)
    return adaptive_search.run(table, network_settings(**settings), budget), table


@pytest.mark.parametrize("budget", [Budget(epsilon=1.0), Budget(rho=0.1), Budget(epsilon=1.0, delta=1e-6)])
def test_probes_are_the_last_tables_and_have_their_share_of_the_budget(budget):
    release, _ = released(budget, probe_share=0.2, random_state=1)
    probes = probe_tables(release)
    assert len(probes) == N_PROBES
    assert probes.stop == len(release.values) == len(NAMES) + len(release.public["rounds"]) + N_PROBES
    assert {len(release.scopes[c]) for c in probes} == {3}
    assert sum(record["share"] for record in release.public["rounds"]) == pytest.approx(0.9 * 0.8)
    (scale,) = {release.noise[c].scale for c in probes}
    # 16 tables with a fifth of the budget: l1 sensitivity 1 each, or l2.
    cost = release.guarantee
    share = 0.9 * 0.2
    expected = (
        N_PROBES / (share * cost.epsilon) if hasattr(cost, "epsilon") else (N_PROBES / (2 * share * cost.rho)) ** 0.5
    )
    assert scale == pytest.approx(expected, rel=1e-6)


def test_without_a_share_there_are_none_and_rounds_have_the_rest():
    release, _ = released(Budget(rho=0.1), probe_share=0.0)
    assert len(probe_tables(release)) == 0
    assert sum(record["share"] for record in release.public["rounds"]) == pytest.approx(0.9)


def test_forbidden_sets_are_not_drawn_and_each_other_one_is_as_likely():
    sets = Candidates((2,) * 7, 3, 10**4, (frozenset({0, 1}),), {})
    allowed = [scope for scope in itertools.combinations(range(7), 3) if not {0, 1} <= set(scope)]
    rng = np.random.default_rng(3)
    seen = dict.fromkeys(allowed, 0)
    for _ in range(600):
        for scope in draw_probes(sets, rng):
            seen[scope] += 1
    share = Fraction(N_PROBES, len(allowed))
    expected = float(600 * share)
    # Draws without replacement vary less than independent ones, for which this limit is one in a million.
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < chi2.ppf(1 - 1e-6, len(allowed) - 1)


def test_of_many_variables_sets_are_drawn_without_a_list_of_all():
    drawn = draw_probes(Candidates((2,) * 1_000, 3, 10**4, (), {}), np.random.default_rng(0))
    assert len(set(drawn)) == N_PROBES
    assert all(len(set(scope)) == 3 and list(scope) == sorted(scope) for scope in drawn)


def test_probes_join_the_model_and_leave_the_graph_alone():
    estimator = PrivateNetwork(rho=0.02, state_names=STATES, random_state=0, n_rounds=3).fit(records())
    release = estimator.release_
    probed = {frozenset(pair) for c in probe_tables(release) for pair in itertools.combinations(release.scopes[c], 2)}
    chosen = {frozenset(edge) for edge in estimator.graph_.edges}
    assert {frozenset(edge) for edge in estimator.model_.edges} == chosen | probed
    assert probed - chosen
    # Estimators of a given graph leave out what it has no edges for.
    for kind in (CollectiveMAP, NaiveMLE):
        again = kind().fit_release(estimator.graph_, release)
        assert {frozenset(edge) for edge in again.model_.edges} == chosen
    full = CollectiveMAP().fit_release(nx.Graph(estimator.model_.edges), release)
    fits = (known.model_.marginal(["a", "b"]).values for known in (full, estimator))
    np.testing.assert_allclose(*fits, atol=5e-3)  # `learn` may have begun elsewhere


def test_probes_that_would_make_a_clique_too_large_are_left_out():
    release, _ = released(Budget(rho=1.0), max_clique_cells=8, random_state=0)
    estimator = PrivateNetwork(max_clique_cells=8).fit_release(release)
    assert len(estimator._noisy.cliques.scopes) < len(set(map(frozenset, release.scopes)))
    assert all(len(clique) <= 3 for clique in nx.find_cliques(nx.complete_to_chordal_graph(estimator.model_)[0]))
    assert joined_probes(release, estimator._last_fit.model.cliques)


def test_intervals_are_wider_where_nothing_was_measured():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, (20_000, 1))  # seen by no single tree of pairs
    frame = pd.DataFrame((rng.random((20_000, 6)) < 0.2 + 0.3 * group).astype(int), columns=NAMES)
    estimator = PrivateNetwork(rho=1.0, state_names=STATES, random_state=0, max_clique_cells=4).fit(frame)
    assert {len(estimator.release_.scopes[c]) for c in probe_tables(estimator.release_)} == {2}
    posterior = estimator.posterior(20, random_state=0)
    free = [list(pair) for pair in itertools.combinations(NAMES, 2) if not estimator.model_.has_edge(*pair)]
    assert free
    for pair in free:
        wide, narrow = (known.interval(pair) for known in (posterior, replace(posterior, discrepancy=None)))
        assert ((wide["upper"] - wide["lower"]) > (narrow["upper"] - narrow["lower"])).all()
        exact = frame.groupby(pair).size().to_numpy().reshape(2, 2) / len(frame)
        assert ((wide["lower"] <= exact) & (exact <= wide["upper"])).all()
    without = PrivateNetwork(probe_share=0.0, rho=1.0, state_names=STATES).fit(frame)
    assert without.posterior(2).discrepancy is None
    with pytest.raises(ValueError, match="n_draws"):
        estimator.posterior(1)
    without.model_.factors[0].values *= 2
    with pytest.raises(ValueError, match=r"model_ was changed after it was learned; fit_release\(release_\)"):
        without.posterior(2)


def test_an_interval_says_what_probes_do_not_vouch_for(tmp_path):
    learned = PrivateNetwork(
        rho=1.0, state_names=STATES, workload=[("a", "b", "c"), ("c", "d", "e")], forbidden_edges=[("d", "e")]
    ).fit(records())
    learned.model_.posterior = learned.posterior(20, random_state=0)
    learned.model_.save(tmp_path / "model.npz")
    for model in (learned.model_, MarkovNetwork.load(tmp_path / "model.npz")):
        known = model.posterior
        assert known.outside(["a", "b", "c"]) is None
        assert model.ask(["c"], {"d": 1}).worth.outside is None
        assert "no set of the workload" in known.outside(["a", "d"])
        assert "forbidden" in str(model.ask(["d"], {"e": 0}))
        assert "4 variables" in known.outside(["a", "b", "c", "d"])
    model.posterior = replace(known, discrepancy=None)
    assert "Nothing vouches for these intervals: there were no probes" in str(model.ask("a"))
    assert "1024 cells" in Drawn().misses((0, 1), 1024)


def test_files_from_before_vouch_for_triples():
    posterior = PrivateNetwork(rho=1.0, state_names=STATES, n_rounds=2).fit(records()).posterior(2, random_state=0)
    header, arrays = posterior_to_parts(posterior)
    del header["probes"]
    old = posterior_from_parts(header, arrays, posterior.schema, posterior.graph, posterior.privacy, posterior.within)
    assert old.discrepancy.drawn == posterior.discrepancy.drawn


@pytest.mark.filterwarnings("ignore:the graph has:pgmpy_dp.NoEdgeWarning")
def test_probes_that_drown_in_noise_are_no_part_of_the_fit():
    """They were, and the model of 5,000 records of Adult at epsilon .1 was wrong by .46 of pairs instead of .19."""
    estimator = PrivateNetwork(rho=1e-9, state_names=STATES, random_state=0).fit(records())
    assert len(probe_tables(estimator.release_)) == N_PROBES
    assert {frozenset(edge) for edge in estimator.model_.edges} == {frozenset(edge) for edge in estimator.graph_.edges}

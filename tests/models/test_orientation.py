"""Directions learned from a model's tables: what pgmpy finds on records, and nothing that the model does not have."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.structure_score import BIC

from pgmpy_dp import Budget, MarkovNetwork, learn
from pgmpy_dp.models.orientation import _ReleasedScore, effective_records, hill_climbed
from tests.reporting.models import fitted

STATES = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1], "d": [0, 1]}


def records(n: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """a and b alone, c by both, d by c."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.integers(0, 2, n), "b": rng.integers(0, 3, n)})
    frame["c"] = (rng.random(n) < 0.1 + 0.4 * frame["a"] + 0.2 * frame["b"]).astype(int)
    frame["d"] = (rng.random(n) < np.where(frame["c"], 0.8, 0.3)).astype(int)
    return frame


def exact(frame: pd.DataFrame) -> MarkovNetwork:
    """The records' own table, as a model with all edges."""
    table = np.zeros([len(states) for states in STATES.values()])
    np.add.at(table, tuple(frame[name] for name in STATES), 1)
    model = MarkovNetwork(list(itertools.combinations(STATES, 2)))
    model.add_factors(DiscreteFactor(list(STATES), table.shape, table, state_names=STATES))
    return model


def test_the_score_is_pgmpys_on_the_records_own_tables():
    frame = records(3000)
    score, names = _ReleasedScore(exact(frame).to_log_linear(), len(frame)), list(STATES)
    own = BIC(frame, state_names=STATES)
    for variable, parents in (("c", ()), ("c", ("a",)), ("c", ("a", "b")), ("b", ("d", "a", "c"))):
        expected = own.local_score(variable, parents)
        places = tuple(map(names.index, parents))
        assert score.local_score(names.index(variable), places) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_no_step_from_what_is_found_gains_by_pgmpys_score_of_the_records(seed):
    frame = records(4000, seed)
    network = exact(frame).to_bayesian_network("hill-climb", n_records=len(frame))
    assert set(network) == set(STATES) and network.check_model()
    assert {frozenset("ac"), frozenset("bc"), frozenset("cd")} <= set(map(frozenset, network.edges))
    score, own = BIC(frame, state_names=STATES), nx.DiGraph(network.edges)
    own.add_nodes_from(STATES)
    for u, v in itertools.permutations(STATES, 2):
        for step in ("turn", "out") if own.has_edge(u, v) else ("in",) if not own.has_edge(v, u) else ():
            other = own.copy()
            if step != "in":
                other.remove_edge(u, v)
            if step != "out":
                other.add_edge(*((v, u) if step == "turn" else (u, v)))
            if nx.is_directed_acyclic_graph(other):
                assert score.score(other) <= score.score(own) + 1e-3, (step, u, v)
    # Too few records to tell anything: no edge at all.
    assert not exact(frame).to_bayesian_network("hill-climb", n_records=3).edges


def test_edges_are_among_those_of_the_model():
    model = exact(records())
    found = hill_climbed(model.to_log_linear(), [("c", "a"), ("c", "d")], 20_000)
    assert set(map(frozenset, found.edges)) == set(map(frozenset, ("ac", "cd"))) and set(found) == set(STATES)
    assert not hill_climbed(model.to_log_linear(), [], 20_000).edges


def test_noise_counts_as_fewer_records():
    sizes = []
    for epsilon in (0.05, 0.5, 50.0):
        learned = learn(records(4000), Budget(epsilon=epsilon), STATES, random_state=0)
        posterior = learned.posterior(30, random_state=0)
        edges = list(itertools.combinations(STATES, 2))
        sizes.append(effective_records(posterior, edges))
        assert sizes[-1] <= posterior.n_records
    assert sizes[0] < 0.5 * sizes[1] and sizes[1] < sizes[2] and sizes[2] > 2000
    assert effective_records(posterior, []) == 2.0


def test_the_posterior_says_how_many_records_and_else_somebody_has_to():
    model = fitted()
    network = model.to_bayesian_network("hill-climb")
    assert set(map(frozenset, network.edges)) <= set(map(frozenset, model.edges))
    assert frozenset({"age", "ill"}) in set(map(frozenset, network.edges))
    model.posterior = None
    with pytest.raises(ValueError, match="pass the estimator's n_records_"):
        model.to_bayesian_network("hill-climb")
    with pytest.raises(ValueError, match='is for structure="hill-climb" alone'):
        model.to_bayesian_network(n_records=10)
    with pytest.raises(ValueError, match="n_records=-1"):
        model.to_bayesian_network("hill-climb", n_records=-1)
    assert model.to_bayesian_network("hill-climb", n_records=8000).check_model()

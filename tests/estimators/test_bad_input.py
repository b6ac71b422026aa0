"""Whatever is wrong with a public argument is said before anything is spent, and changes nothing."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from pgmpy_dp import Budget, Ledger, MarkovNetwork, PrivateTable, Schema
from pgmpy_dp.estimators import CollectiveEM, CollectiveMAP, NaiveMLE
from pgmpy_dp.inference.junction_tree import InferenceTooLarge
from pgmpy_dp.private.filter import BudgetExceeded

STATES = {"a": ["x", "y"], "b": [1, 2, 3], "c": [True, False]}
DATA = pd.DataFrame({"a": ["x", "y"] * 50, "b": [1, 2, 3, 1] * 25, "c": [True] * 100})
GRAPH = nx.Graph([("a", "b"), ("b", "c")])


@pytest.fixture(autouse=True)
def charges(monkeypatch):
    """Every charge to any ledger during the test."""
    made = []
    charge = Ledger.charge

    def recorded(self, cost, **details):
        made.append(cost)
        return charge(self, cost, **details)

    monkeypatch.setattr(Ledger, "charge", recorded)
    return made


def refuses(charges, error, message, *, graph=GRAPH, data=DATA, estimator=NaiveMLE, **parameters):
    """The fit of a new estimator, and of a model, raises, spends nothing, and leaves both as they were."""
    made = estimator(**{"epsilon": 1.0, "state_names": STATES, **parameters})
    before = dict(vars(made))
    with pytest.raises(error, match=message):
        made.fit(graph, data)
    assert charges == []
    assert vars(made) == before
    assert not made.is_fitted


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon=0 .*positive"),
        ({"epsilon": -1.0}, ValueError, "epsilon=-1.0"),
        ({"epsilon": np.inf}, ValueError, "epsilon=inf"),
        ({"epsilon": np.nan}, ValueError, "epsilon=nan"),
        ({"epsilon": "1"}, TypeError, "epsilon='1'"),
        ({"epsilon": None}, ValueError, "no budget was given"),
        ({"delta": -1e-6}, ValueError, "delta=-1e-06"),
        ({"delta": 1.0}, ValueError, "delta=1.0"),
        ({"delta": np.nan}, ValueError, "delta=nan"),
        ({"rho": 0.1}, ValueError, "rho=0.1 was passed with epsilon=1.0"),
        ({"epsilon": None, "rho": -1}, ValueError, "rho=-1"),
        ({"epsilon": None, "rho": 0.1, "delta": 1e-6}, ValueError, "rho=0.1"),
        ({"noise": "gaussian"}, ValueError, "noise='gaussian'"),
        ({"noise": "laplace", "epsilon": None, "rho": 1.0}, ValueError, "noise='laplace'"),
        ({"noise": "uniform"}, ValueError, "noise='uniform'"),
        ({"adjacency": "edge"}, ValueError, "adjacency='edge'"),
        ({"adjacency": "swap"}, ValueError, "adjacency='swap'"),
        ({"adjacency": "replace_one"}, ValueError, "n_records=None"),
        ({"n_records": -5}, ValueError, "n_records=-5"),
        ({"n_records": 10.5}, TypeError, "n_records=10.5"),
        ({"weights": [1.0]}, ValueError, "weights has 1 entries for 2"),
        ({"weights": [1.0, 0.0]}, ValueError, r"weights\[1\]=0.0"),
        ({"weights": [1.0, np.inf]}, ValueError, r"weights\[1\]=inf"),
        ({"weights": 3}, TypeError, "weights=3"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
        ({"memory_limit": 100}, InferenceTooLarge, "memory_limit=100"),
    ],
)
def test_parameters(charges, parameters, error, message):
    refuses(charges, error, message, **parameters)


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (NaiveMLE, {"l2": -1.0}, "l2"),
        (NaiveMLE, {"l2": np.nan}, "l2"),
        (CollectiveMAP, {"entropy_share": 1.0}, "entropy_share"),
        (CollectiveMAP, {"margin_share": 2}, "margin_share"),
        (CollectiveMAP, {"n_rounds": 0}, "n_rounds"),
        (CollectiveMAP, {"prior_tail": 0}, "prior_tail"),
        (CollectiveMAP, {"variance_shape": -1.0}, "variance_shape"),
        (CollectiveEM, {"e_step": "sideways"}, "e_step"),
        (CollectiveEM, {"stop": "never"}, "stop"),
        (CollectiveEM, {"n_iter": 0}, "n_iter"),
        (CollectiveEM, {"damping": 0.0}, "damping"),
        (CollectiveEM, {"step": -1.0}, "step"),
        (CollectiveEM, {"stop": None}, "stop=None is an option of the paper's EM; pass published=True too"),
        (CollectiveEM, {"e_step": "nlbp"}, "published=True"),
    ],
)
def test_options_of_the_methods(charges, estimator, parameters, message):
    refuses(charges, ValueError, message, estimator=estimator, **parameters)


@pytest.mark.parametrize(
    ("state_names", "error", "message"),
    [
        (None, ValueError, "state_names=None.*never read from the records"),
        (["a", "b"], TypeError, "state_names="),
        ({"a": ["x", "y"], "b": [1, 2, 3]}, ValueError, r"\['c'\].*not in state_names"),
        ({**STATES, "b": [1]}, ValueError, r"'b' has 1 state"),
        ({**STATES, "b": []}, ValueError, r"'b' has 0 state"),
        ({**STATES, "b": [1, 1, 2]}, ValueError, "'b' has the states"),
        ({**STATES, "b": [1, "1"]}, ValueError, "'b' has the states"),
    ],
)
def test_state_names(charges, state_names, error, message):
    refuses(charges, error, message, state_names=state_names)


def looped():
    graph = nx.Graph([("a", "b")])
    graph.add_edge("a", "a")
    return graph


@pytest.mark.parametrize(
    ("graph", "error", "message"),
    [
        (nx.Graph([("a", "zzz")]), ValueError, r"\['zzz'\]"),
        (nx.Graph(), ValueError, "no nodes"),
        (nx.DiGraph([("a", "b"), ("b", "a")]), TypeError, "DiGraph with directed cycles"),
        (nx.MultiGraph([("a", "b")]), TypeError, "MultiGraph"),
        (looped(), ValueError, "themselves"),
        ([("a", "b")], TypeError, "undirected graph"),
        (MarkovNetwork([("a", "b")], latents=["b"]), ValueError, r"latent variables \['b'\]"),
    ],
)
def test_graphs(charges, graph, error, message):
    refuses(charges, error, message, graph=graph)


@pytest.mark.parametrize(
    ("cliques", "error", "message"),
    [
        ([("a", "b")], ValueError, r"\('b', 'c'\)"),
        ([("a", "b", "c")], ValueError, r"not a clique of the model: it has no edges \[\('a', 'c'\)\]"),
        ([("a", "b"), ("b", "c"), ("zzz",)], ValueError, "zzz"),
        ([("a", "b"), ("b", "c"), ()], ValueError, "at least one variable"),
        ([("a", "b"), ("b", "c", "c")], ValueError, "clique"),
        (["ab", "bc"], TypeError, r"cliques has 'ab'"),
        ("ab", TypeError, "cliques='ab'"),
        (7, TypeError, "cliques=7"),
        ([], ValueError, "no table covers"),
    ],
)
def test_cliques(charges, cliques, error, message):
    refuses(charges, error, message, cliques=cliques)


def duplicated():
    return pd.concat([DATA, DATA[["a"]]], axis=1)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (DATA.drop(columns=["b", "c"]), ValueError, r"no column for \['b', 'c'\]"),
        (pl.from_pandas(DATA).drop("b"), ValueError, r"no column for \['b'\]"),
        (duplicated(), ValueError, r"several columns named \['a'\]"),
        ([[1, 2]], TypeError, "data is a list"),
        (DATA.to_numpy(), TypeError, "data is a ndarray"),
        (None, TypeError, "data=None: pass the records"),
    ],
)
def test_data(charges, data, error, message):
    refuses(charges, error, message, data=data)


def test_a_table_too_large_to_count_or_to_model(charges):
    many = list(range(20_000))
    states = {**STATES, "a": many, "b": many}
    refuses(charges, InferenceTooLarge, r"memory_limit.*\('a', 'b'\)", state_names=states)
    refuses(charges, ValueError, r"more than 1\d+; .* \('a', 'b'\)", state_names=states, memory_limit=10**12)


@pytest.mark.parametrize("weights", [np.ones(100), [1.0] * 100, "weights"])
def test_record_weights(charges, weights):
    estimator = NaiveMLE(epsilon=1.0, state_names=STATES)
    with pytest.raises(ValueError, match="sample_weight"):
        estimator.fit(GRAPH, DATA, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight"):
        MarkovNetwork(GRAPH).fit(DATA, estimator, sample_weight=weights)
    assert charges == []


def test_a_spent_budget(charges):
    table = PrivateTable(DATA, Schema(STATES), ledger=Budget(epsilon=1.0))
    fitted = NaiveMLE(epsilon=1.0).fit(GRAPH, table)
    before = table.ledger.entries, dict(vars(fitted))
    with pytest.raises(BudgetExceeded, match=r"1-DP was asked, 1-DP of the budget 1-DP is spent, 0-DP is left"):
        fitted.fit(GRAPH, table)
    with pytest.raises(BudgetExceeded, match=r"1e-06-DP was asked"):
        NaiveMLE(epsilon=1e-6).fit(GRAPH, table)
    assert (table.ledger.entries, dict(vars(fitted))) == before
    assert len(charges) == 3


def test_an_epsilon_that_would_bury_any_count(charges):
    refuses(charges, ValueError, "epsilon=1e-300", epsilon=1e-300)

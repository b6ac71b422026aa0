"""The default learning rate of gradient steps: stable for every noise down to none, on weak, strong and odd models."""

from __future__ import annotations

from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from benchmarks.divergence import kl_divergence
from pgmpy_dp.estimators import PrivateSGD
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.curator.schedule import GradientCurator
from pgmpy_dp.private.data.gradients import bounded_sum
from pgmpy_dp.private.data.table import PrivateTable
from pgmpy_dp.private.noise import samplers
from pgmpy_dp.tables.collective.published import gradient_ascent
from pgmpy_dp.tables.collective.published.gradient_ascent import largest_stable_rate, parameters, run
from tests.settings import table_settings

sgd_settings = partial(table_settings, estimator=PrivateSGD)


N = 10**8
"""Records that the learner is told of; none exist: each step gets the sum that it expects of them."""


def dirichlet(order: int, seed: int, n_states: int = 10) -> LogLinearModel:
    """A chain of the given order on ten nodes with Dirichlet(1) potentials, as in the paper's experiments."""
    edges = [(i, j) for i in range(10) for j in range(i + 1, 10) if j - i <= order]
    cliques = Cliques.from_graph(nx.Graph(edges), dict.fromkeys(range(10), n_states))
    rng = np.random.default_rng(seed)
    return LogLinearModel(cliques, np.concatenate([np.log(rng.dirichlet(np.ones(size))) for size in cliques.sizes]))


def alike(graph: nx.Graph, n_states: int, coupling: float, spread: float) -> LogLinearModel:
    """Neighbours are equal but for factors of exp(-coupling); with large ones all tables are one."""
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, n_states))
    rng = np.random.default_rng(0)
    tables = [coupling * np.eye(n_states) + spread * rng.normal(size=(n_states, n_states)) for _ in cliques.scopes]
    return LogLinearModel(cliques, np.concatenate([table.ravel() for table in tables]))


MODELS = {
    "first-order chain": dirichlet(1, 0),
    "third-order chain": dirichlet(3, 0),
    "third-order chain, another": dirichlet(3, 1),
    "one table": alike(nx.path_graph(2), 2, 3.0, 2.0),
    "long chain": alike(nx.path_graph(101), 2, 1.0, 0.5),
    "26 equal variables": alike(nx.path_graph(26), 2, 6.0, 0.1),
    "101 equal variables": alike(nx.path_graph(101), 2, 6.0, 0.1),
    "star": alike(nx.star_graph(30), 3, 4.0, 0.5),
    "grid": alike(nx.grid_2d_graph(3, 8), 2, 2.5, 0.3),
    "complete graph": alike(nx.complete_graph(6), 3, 1.5, 1.0),
}


def fit(
    truth: LogLinearModel, budget: Budget, monkeypatch, noise: bool, n: int = N, **settings
) -> tuple[float, float, dict]:
    """Divergence of the fit and of uniform, and the path, where the records' shares are the truth's marginals."""
    cliques = truth.cliques
    marginals = truth.marginals()

    def expected_sum(curator, current, parts):
        grid = curator._grid
        rounded = grid.rounded_marginals(current) * 2.0**-grid.marginal_bits
        value = np.rint((marginals - rounded) * (curator.schedule.rate * n / grid.unit)).astype(np.int64)
        return bounded_sum(value, curator.adjacency, grid.bound)

    monkeypatch.setattr(GradientCurator, "_exact_sum", expected_sum)
    if not noise:
        monkeypatch.setattr(samplers, "discrete_gaussian", lambda value, scale, rng: value)
    states = {name: range(size) for name, size in zip(cliques.variables, cliques.cardinalities, strict=True)}
    nobody = pd.DataFrame({name: [] for name in cliques.variables})
    table = PrivateTable(nobody, {k: list(v) for k, v in states.items()}, ledger=budget, n_records=n)
    release = run(table, sgd_settings(cliques.scopes, **settings), budget)
    found = LogLinearModel(cliques, parameters(release))
    uniform = LogLinearModel(cliques, np.zeros(cliques.n_cells))
    return kl_divergence(truth, found), kl_divergence(truth, uniform), release.public["path"]


LARGER = ("third-order chain, another", "101 equal variables")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGER)) for n in MODELS])
def test_without_noise(name, monkeypatch):
    truth = MODELS[name]
    ours, uniform, path = fit(truth, Budget(epsilon=1e6, delta=0.9), monkeypatch, noise=False)
    assert ours < 0.25 * uniform
    assert path["last_learning_rate"] < path["learning_rate"]  # noise alone would allow more


@pytest.mark.parametrize("momentum", [0.0, pytest.param(0.5, marks=pytest.mark.slow), 0.95])
def test_without_noise_at_other_momenta(momentum, monkeypatch):
    ours, uniform, _ = fit(
        MODELS["third-order chain"], Budget(epsilon=1e6, delta=0.9), monkeypatch, noise=False, momentum=momentum
    )
    assert ours < 0.2 * uniform


def test_less_noise_is_never_worse(monkeypatch):
    """From a rate that noise alone decides to one that it would let grow to 40, where steps diverge above 20 or so."""
    losses, paths = [], []
    for rho in (1e-5, 1e-3, 1e-1, 10.0):
        ours, uniform, path = fit(
            MODELS["third-order chain"], Budget(rho=rho), monkeypatch, noise=True, n=10**6, random_state=0
        )
        losses.append(ours)
        paths.append(path)
    assert all(later < 1.05 * earlier for earlier, later in zip([uniform, *losses], losses, strict=False))
    assert losses[-1] < 0.03 * uniform
    assert paths[-1]["learning_rate"] > 39 and paths[-1]["last_learning_rate"] < 25


@pytest.mark.slow  # its steps are tried above, its releases by replay
def test_records_sampled_and_clipped():
    """The whole learner, at a rate of 50 by the noise alone; steps of that rate end a hundred nats away."""
    truth = MODELS["third-order chain"]
    codes = truth.sample(100_000, np.random.default_rng(1))
    states = {name: list(range(10)) for name in truth.cliques.variables}
    budget = Budget(epsilon=1e6, delta=0.9)
    table = PrivateTable(pd.DataFrame(codes, columns=list(states)), states, ledger=budget, n_records=len(codes))
    release = run(table, sgd_settings(truth.cliques.scopes, n_steps=50), budget)
    assert release.public["path"]["learning_rate"] > 45
    assert kl_divergence(truth, LogLinearModel(truth.cliques, parameters(release))) < 1.5


def test_a_rate_that_is_named_is_used(monkeypatch):
    _, _, path = fit(
        MODELS["one table"], Budget(epsilon=1e6, delta=0.9), monkeypatch, noise=False, learning_rate=3.0, n_steps=20
    )
    assert path["learning_rate"] == path["last_learning_rate"] == 3.0


def test_where_noise_is_large_it_alone_decides(monkeypatch):
    monkeypatch.setattr(gradient_ascent, "CurvatureBound", lambda engine: lambda marginals: pytest.fail("not needed"))
    _, _, path = fit(MODELS["third-order chain"], Budget(rho=1e-5), monkeypatch, noise=True, n=10**5, random_state=0)
    assert path["last_learning_rate"] == path["learning_rate"] < 0.8 * largest_stable_rate(0.9, 12.0)


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9, 0.99])
@pytest.mark.parametrize("curvature", [0.01, 0.5, 12.0])
def test_the_largest_stable_rate_is_where_steps_stop_converging(momentum, curvature):
    def distance(rate):
        e, d = 1.0, 0.0
        for _ in range(20_000):
            d = momentum * d - (1 - momentum) * curvature * e
            e = min(max(e + rate * d, -1e100), 1e100)
        return abs(e)

    limit = largest_stable_rate(momentum, curvature)
    assert distance(0.99 * limit) < 1e-9
    assert distance(1.01 * limit) > 1e9

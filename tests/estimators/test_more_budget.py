"""More budget is never worse, beyond noise: every estimator, by each of its methods, on easy data of its kind."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pgmpy_dp import Number, PrivateGraph, Schema
from pgmpy_dp.communities.planted_graphs import error_rate
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.theory.block_models import response_accuracy
from tests.estimators.case_base import APPROX, PURE, RHO, STATES, case
from tests.estimators.cases import CASES, Case

WORDS = ("front", "news")
CENTRES = np.array([[-8.0, 0.0], [8.0, 0.0]])


def _rows(n: int = 1000) -> pd.DataFrame:
    """A chain a, b, c."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 2, n)]
    for agreement in (0.75, 0.7):
        codes.append(np.where(rng.random(n) < agreement, codes[-1], 1 - codes[-1]))
    columns = zip(STATES, codes, strict=True)
    return pd.DataFrame({name: np.array(STATES[name], dtype=object)[code] for name, code in columns})


def _sequences(n: int = 500) -> pd.DataFrame:
    """Users who look at four pages, and at the page of before again with probability .8."""
    rng = np.random.default_rng(0)
    turns = np.hstack([rng.integers(0, 2, (n, 1)), rng.random((n, 3)) > 0.8]).cumsum(axis=1) % 2
    return pd.DataFrame({"user": range(n), "sequence": [" ".join(WORDS[page] for page in row) for row in turns]})


def _table_error(found: Any) -> float:
    """Total variation distance from the records' shares."""
    shares = ROWS.value_counts(normalize=True)
    joint = found.model_.marginal(list(STATES))
    cells = [dict(zip(STATES, cell, strict=True)) for cell in itertools.product(*STATES.values())]
    total = joint.values.sum()
    return sum(abs(joint.get_value(**cell) / total - shares.get(tuple(cell.values()), 0.0)) for cell in cells) / 2


def _edges_wrong(found: Any) -> float:
    """Of the three pairs; all are where there is no answer."""
    edges = None if found.graph_ is None else {frozenset(edge) for edge in found.graph_.edges}
    return 1.0 if edges is None else len(edges ^ {frozenset("ab"), frozenset("bc")}) / 3


def _class_error(found: Any) -> float:
    """Mean distance of the probability of a class from the records' share, given the variable that it follows."""
    shares = ROWS["c"].eq(True).groupby(ROWS["b"]).transform("mean")
    return float(np.abs(found.predict_proba(ROWS)[:, 1] - shares).mean())


def _precision_error(found: Any) -> float:
    truth = np.linalg.inv(VECTORS.T @ VECTORS / len(VECTORS))
    return float(np.linalg.norm(found.precision_ - truth) / np.linalg.norm(truth))


def _network_error(found: Any) -> float:
    truth = np.cov(VECTORS.T)
    return float(np.linalg.norm(found.model_.to_joint_gaussian()[1] - truth) / np.linalg.norm(truth))


def _centre_error(found: Any) -> float:
    if np.ndim(found.means_) != 2:  # no answer
        return 1.0
    return min(1.0, float(np.abs(found.means_[np.argsort(found.means_[:, 0])] - CENTRES).max()))


def _chain_error(found: Any) -> float:
    """The largest distance of a row of transitions from the records'."""
    moves = np.zeros((2, 2))
    for row in SEQUENCES["sequence"]:
        for here, there in itertools.pairwise(row.split()):
            moves[WORDS.index(here), WORDS.index(there)] += 1
    return float(np.abs(found.transition_[:2, :2] - moves / moves.sum(axis=1, keepdims=True)).sum(axis=1).max() / 2)


def _label_error(found: Any) -> float:
    return float(error_rate(np.array([found.labels_[v] for v in COMMUNITIES]), np.repeat([0, 1], 11)))


ROWS, SEQUENCES = _rows(), _sequences()
VECTORS = np.random.default_rng(0).multivariate_normal([0, 0], [[0.3, 0.12], [0.12, 0.3]], 1000)
MIXTURE = np.concatenate([np.random.default_rng(0).normal(centre, 1.0, (500, 2)) for centre in CENTRES])
COMMUNITIES = nx.stochastic_block_model([11, 11], [[0.85, 0.3], [0.3, 0.85]], seed=3)

# Data, the error of a fit, and how far two errors may be apart by noise.
Kind = tuple[Any, Callable[[Any], float], float]
KINDS: dict[str, Kind] = {
    "table": (ROWS, _table_error, 0.02),
    "sequences": (SEQUENCES, _chain_error, 0.03),
    "vectors": (VECTORS, _precision_error, 0.05),
    "graph": (COMMUNITIES, _label_error, 0.1),
}
OF_AN_ESTIMATOR: dict[str, Kind] = {
    "StableStructure": (ROWS, _edges_wrong, 0.0),
    "EdgeVoting": (ROWS, _edges_wrong, 0.0),
    "PrivateLinearGaussian": (VECTORS, _network_error, 0.05),
    "PrivateGaussianMixture": (MIXTURE, _centre_error, 0.1),
    "PrivateLogisticRegression": (ROWS, _class_error, 0.1),
}
# The generic cases, without the few steps that would leave stochastic gradients anywhere; and methods they do not have.
FIELD = {"width": 1.0}
LADDER = [
    *[replace(each, options={k: v for k, v in each.options.items() if k != "n_steps"}) for each in CASES],
    case("PrivateBlockModel", "graph", **PURE),
    case("PrivateBlockModel", "graph", **PURE, method="noisy-power"),
    case("PrivateBlockModel", "graph", **RHO, method="exponential"),
    case("StableStructure", **APPROX, width=2.0, min_edge_weight=0.4, learner="chow-liu"),
    case("EdgeVoting", **APPROX, width=2.0, min_edge_weight=0.4, learner="chow-liu"),
    case("PrivateGaussianMixture", "vectors", n_components=2, separation=8.0, scale=1.0, epsilon=1.0, delta=1e-6),
    case("PrivateIsing", **PURE, **FIELD, method="frank-wolfe", n_iter=100),
    case("PrivateBinaryMRF", **PURE, **FIELD, method="moments", queries="pmw"),
    case("PrivateGraphicalLasso", "vectors", **RHO, row_norm=2.0, perturb="output", penalty=0.2, n_records=1000),
]


def errors(each: Case, ladder: tuple[float, ...], seeds: range) -> list[float]:
    """The mean error at each epsilon; of rho, where it is ``min(epsilon, epsilon**2/8)``."""
    raw, error, _ = OF_AN_ESTIMATOR.get(each.estimator.__name__, KINDS[each.kind])
    public = {"n_records": len(raw)} if "n_records" in each.options else {}
    found = []
    for epsilon in ladder:
        budget = {"rho": min(epsilon, epsilon**2 / 8)} if "rho" in each.options else {"epsilon": epsilon}
        of_seeds = []
        for seed in seeds:
            estimator = each.make(**budget, **public, random_state=seed)
            ledger = Case("", each.estimator, {**each.options, **budget}).budget
            data = PrivateGraph(raw, ledger=ledger) if each.kind == "graph" else each.data(raw, ledger, **public)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of graphs without an edge, at the smallest budget
                of_seeds.append(error(each.fit(estimator, data)))
        found.append(float(np.mean(of_seeds)))
    return found


def check(each: Case, ladder: tuple[float, ...], seeds: range) -> None:
    _, _, noise = OF_AN_ESTIMATOR.get(each.estimator.__name__, KINDS[each.kind])
    found = errors(each, ladder, seeds)
    best = itertools.accumulate(found, min)
    assert all(after <= before + noise for before, after in zip(best, found[1:], strict=False)), found


@pytest.mark.parametrize("each", LADDER, ids=lambda each: each.name)
def test_more_budget_is_not_worse(each):
    check(each, (1.0, 1000.0, 1e5), range(1))


@pytest.mark.parametrize("options", [{}, {"target": "sex"}, {"optimise": "pairs"}], ids=str)
def test_hardly_any_noise_is_no_error(options):
    """Its variance is below every float; numbers without cuts, and searches, divide by it."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 90, 500).astype(float)
    data = pd.DataFrame({"age": age, "sex": np.where(age > 50, "f", "m"), "zip": rng.integers(0, 3, 500)})
    states = {"age": Number(0, 90), "sex": ["f", "m"], "zip": range(3)}
    model = PrivateNetwork(epsilon=1e5, state_names=Schema(states), **options).fit(data).model_
    assert model.ask("age").numbers["mean"].value == pytest.approx(age.mean(), abs=0.5)
    assert model.ask("zip").shares == pytest.approx(data["zip"].value_counts(normalize=True).sort_index(), abs=1e-3)


def test_theory_of_randomised_responses_has_any_epsilon():
    accuracies = [response_accuracy(500, 200.0, 0.8, epsilon) for epsilon in (0.25, 1.0, 10.0, 100.0, 1000.0, 1e5)]
    assert accuracies == sorted(accuracies) and accuracies[-1] > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("each", LADDER, ids=lambda each: each.name)
def test_more_budget_is_not_worse_step_by_step(each):
    check(each, (1.0, 5.0, 10.0, 100.0, 1000.0, 1e5), range(4))

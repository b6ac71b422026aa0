"""Replay of the learners of communities: fits by every method, and pairs of graphs that differ in one edge."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from pgmpy_dp.communities.operators.graph import PrivateGraph
from pgmpy_dp.communities.published import projection_solvers
from pgmpy_dp.estimators import PrivateBlockModel
from pgmpy_dp.private.budget import Budget
from tests.auditing.replay_cases import ReplayCase

__all__ = ["awkward_graphs", "graph_cases", "graph_pairs", "other_edge"]

PURE, ZERO, APPROXIMATE = Budget(epsilon=1.0), Budget(rho=0.2), Budget(epsilon=1.5, delta=1e-3)


def awkward_graphs(n: int) -> dict[str, np.ndarray]:
    """Adjacency matrices that solvers and estimates find hard.

    Parameters
    ----------
    n : int
        Vertices, 2 or more.

    Returns
    -------
    dict of str to ndarray of bool, shape (n, n)
    """
    place, none = np.arange(n), np.zeros((n, n), dtype=bool)
    star = none.copy()
    star[0] = True
    ends = np.sort(np.random.default_rng(0).random((n, 2)), axis=1)
    few = none.copy()
    few[: n // 2, : n // 2] = True
    graphs = {
        "empty": none,
        "complete": ~none,
        "star": star,
        "half": np.add.outer(place, place) >= n,
        "threshold": np.add.outer(place, place) >= 11 * n // 12,
        "interval": (ends[:, :1] <= ends[:, 1]) & (ends[:, 0] <= ends[:, 1:]),
        "isolated": few,
        "two cliques": (place[:, np.newaxis] % 2) == place % 2,
    }
    return {name: (graph | graph.T) & ~np.eye(n, dtype=bool) for name, graph in graphs.items()}


def other_edge(graph: np.ndarray, edge: tuple[int, int]) -> np.ndarray:
    """The graph with this edge if it has none, without it else."""
    other = graph.copy()
    other[edge] = other[edge[::-1]] = not graph[edge]
    return other


def graph_pairs(rng: np.random.Generator, n: int) -> Iterator[tuple[sp.csr_array, sp.csr_array]]:
    """Neighbouring graphs on n vertices: awkward ones with an edge more or less, then random ones.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
    """
    for k, graph in enumerate(awkward_graphs(n).values()):
        for edge in ((0, 1 + k % (n - 1)), (n - 2, n - 1)):
            yield sp.csr_array(graph.astype(int)), sp.csr_array(other_edge(graph, edge).astype(int))
    while True:
        graph = np.triu(rng.random((n, n)) < rng.random() ** 2, 1)
        edge = tuple(sorted(rng.choice(n, 2, replace=False).tolist()))
        graph, other = (sp.csr_array(g.astype(int)) for g in (graph | graph.T, other_edge(graph | graph.T, edge)))
        yield (graph, other) if rng.random() < 0.5 else (other, graph)


def graph_cases() -> list[ReplayCase]:
    """Every method of communities, all kinds of budgets, with degrees that are private, public, and wrong."""
    kinds: list[tuple[str, Budget, dict[str, Any]]] = []
    for method, budget in itertools.product(("noisy-power", "randomized-response"), (PURE, ZERO, APPROXIMATE)):
        kinds += [(method, budget, {}), (method, budget, {"n_communities": 3, "degree": 30.0})]
    kinds += [("exponential", budget, known) for known in ({}, {"degree": 4.0}) for budget in (PURE, ZERO)]
    kinds += [("exponential", PURE, {"degree": 2.0}), ("exponential", APPROXIMATE, {"degree": 2.0})]
    kinds += [("randomized-response", budget, {"vote": True}) for budget in (PURE, ZERO)]
    kinds += [("randomized-response", PURE, {"vote": False}), ("auto", APPROXIMATE, {})]
    for method, budget in itertools.product(("sdp", "sdp-exact"), (ZERO, APPROXIMATE)):
        kinds += [(method, budget, {}), (method, budget, {"n_communities": 3, "degree": 30.0, "bias": 0.05})]
    kinds += [("sdp", budget, {"vote": False, "degree": 1.0}) for budget in (ZERO, APPROXIMATE)]
    cases = [
        _case("PrivateBlockModel", partial(_fit, method=method, budget=budget, **options), n, method, options, budget)
        for k, (method, budget, options) in enumerate(kinds)
        for n in (9 if method.startswith("exponential") else (9, 14 if "sdp" in method else 24)[k % 2],)
    ]
    programs: list[tuple[int, Budget, dict[str, Any]]] = [
        *(
            (2, budget, {"degree": 1.0, "bias": 1.0, "theta": 0.8}) for budget in (ZERO, APPROXIMATE)
        ),  # moves by its all
        (60, ZERO, {"degree": 6.0, "bias": 0.01}),  # Newton's method stalls far from the solution
        (16, APPROXIMATE, {"degree": 8.0, "bias": 0.7, "analysis": "published"}),
    ]
    for n, budget, options in programs:
        cases.append(_case("BlockProjection", partial(_project, n=n, budget=budget, **options), n, "", options, budget))
    published = {"vote": False, "degree": 8.0, "analysis": "published"}
    fit = partial(_fit, method="sdp", budget=APPROXIMATE, **published)
    return [*cases, _case("PrivateBlockModel", fit, 9, "sdp", published, APPROXIMATE)]


def _case(name: str, fit: Any, n: int, method: str, options: dict[str, Any], budget: Budget) -> ReplayCase:
    shown = [name, *([method] if method else []), *(f"{key}={value}" for key, value in options.items()), str(budget)]
    return ReplayCase(", ".join([*shown, f"n={n}"]), fit, partial(graph_pairs, n=n), 2 * len(awkward_graphs(n)))


def _project(data: sp.csr_array, *, n: int, budget: Budget, **options: Any) -> Any:
    program = projection_solvers.projection(n, **options)
    return projection_solvers.release(program, PrivateGraph(data, ledger=budget), budget)


def _fit(data: sp.csr_array, *, method: str, budget: Budget, **options: Any) -> Any:
    given: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    return PrivateBlockModel(method=method, **given, **options).fit(data)

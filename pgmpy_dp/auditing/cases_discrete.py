"""Audits of the learners that count: tables of given cliques, graphs, structure by votes, sequences.

Every case hands made-up neighbours to the public ``fit`` of an estimator and attacks what it releases.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.auditing.cases_base import PAIR, AuditCase, declared, fit_case, said
from pgmpy_dp.auditing.neighbours import Neighbours, sequence_neighbours, table_neighbours

ADJACENCIES = ("add_remove", "replace_one")

TRIPLE = {**PAIR, "c": [0, 1]}
PAGES = {"page": ["x", "y"]}
EDGE = nx.Graph([("a", "b")])
N = 3


def _frames(rows: tuple[list, list], columns: str, adjacency: str) -> Neighbours:
    first, second = (pd.DataFrame(part, columns=list(columns)).astype(object) for part in rows)
    return Neighbours(first, second, adjacency, f"tables of {len(rows[0])} chosen records")


def network_features(estimator: Any) -> np.ndarray:
    """How often an adaptive learner measured each set of variables, and the mean of its tables: rows of one length."""
    release, features = estimator.release_, list[np.ndarray]()
    sizes = release.schema.cardinalities
    every = [set(scope) for k in range(1, len(sizes) + 1) for scope in itertools.combinations(sizes, k)]
    measured = list(zip(map(set, release.scopes), release.values, release.noise, strict=True))
    for scope in every:
        tables = np.zeros((0, math.prod(sizes[name] for name in scope)))
        weights = np.array([1.0 / noise.variance for of, _, noise in measured if of == scope])
        tables = np.concatenate([tables, *([np.ravel(table)] for of, table, _ in measured if of == scope)])
        features += [np.array([len(weights)]), weights @ tables / max(weights.sum(), 1e-300)]
    return np.concatenate(features)


def graph_features(estimator: Any) -> np.ndarray:
    """The noisy distance, and how many edges were released."""
    distance, edges = (estimator.release_[name].array for name in ("distance", "edges"))
    return np.array([float(distance[0]), float(len(edges))])


def chain_features(estimator: Any) -> np.ndarray:
    """Return the release of a chain of undecided order, in rows of one length: its tables, its test, the rest."""
    release = estimator.release_
    of_each = {2: np.zeros(4), 0: np.zeros(3), 3: np.zeros(8)}  # what was asked after the first two tables
    for length, value in list(zip(release.public["lengths"], release.values, strict=True))[2:]:
        of_each[length] = np.asarray(value, dtype=float).ravel()
    released = [float(np.any(value)) for value in of_each.values()]
    first = [release[name].array.astype(float).ravel() for name in ("initial", "transitions")]
    return np.concatenate([*first, *of_each.values(), released])


def _table_case(
    name: str, budget: str, adjacency: str, trials: tuple[int, int] = (100, 2000), **arguments: Any
) -> AuditCase:
    fit_options = {**declared(adjacency, N), "state_names": PAIR, **arguments}
    neighbours = partial(table_neighbours, PAIR, adjacency, N)
    return fit_case(name, budget, [adjacency, *said(arguments)], neighbours, fit_options, EDGE, trials=trials)


def _two_tables(name: str, budget: str, adjacency: str) -> AuditCase:
    """A record changes two tables, which share the budget."""
    fit_options = {**declared(adjacency, N), "state_names": TRIPLE}
    neighbours = partial(table_neighbours, TRIPLE, adjacency, N)
    return fit_case(name, budget, [adjacency, "two tables"], neighbours, fit_options, nx.path_graph(["a", "b", "c"]))


def _structure_case(name: str, budget: str, adjacency: str, **arguments: Any) -> AuditCase:
    """A pair that nearly all of the records are about: whether it is selected, and its table, tell the two apart."""
    kept = [(0, 0, 0), (0, 0, 1), (1, 1, 0)]
    rows = (kept, kept[:2]) if adjacency == "add_remove" else (kept, [*kept[:2], (1, 0, 1)])
    fit_options = {**declared(adjacency, N), "state_names": TRIPLE, **arguments}
    if name == "PrivateNetwork":  # so that there is a round, of however few records
        fit_options["one_way_share"] = 0.25
    neighbours = partial(_frames, rows, "abc", adjacency)
    options: dict[str, Any] = {"features": network_features, "trials": (100, 800)}
    return fit_case(name, budget, [adjacency, *said(arguments)], neighbours, fit_options, **options)


def _vote_case(name: str, budget: str, adjacency: str, features: Any) -> AuditCase:
    """One block, of records that agree: without one of them, or with one that does not, it has no edge.

    A graph needs blocks of more records than an edge: four are enough for strong interactions.
    """
    each, eta = (2, 1.0) if name == "StableStructure" else (1, 0.4)
    agreeing = [(0, 0)] * each + [(1, 1)] * each
    rows = (agreeing, agreeing[:-1] if adjacency == "add_remove" else [*agreeing[:-1], (1, 0)])
    fit_options = {
        **{"width": 2.0, "min_edge_weight": eta, "learner": "chow-liu", "n_blocks": 1, "n_workers": 1},
        **{"state_names": PAIR, **declared(adjacency, 2 * each)},
    }
    neighbours = partial(_frames, rows, "ab", adjacency)
    return fit_case(name, budget, [adjacency], neighbours, fit_options, features=features, trials=(100, 1500))


def _chain_case(budget: str, adjacency: str, trials: tuple[int, int] = (100, 2000), **arguments: Any) -> AuditCase:
    fit_options = {**declared(adjacency, 2, "n_users"), "state_names": PAGES, **arguments}
    neighbours = partial(sequence_neighbours, PAGES, adjacency, 2, 6)
    options: dict[str, Any] = {"trials": trials}
    if arguments.get("chain_order") == "auto":
        options["features"] = chain_features
    return fit_case("PrivateMarkovChain", budget, [adjacency, *said(arguments)], neighbours, fit_options, **options)


def _cases() -> list[AuditCase]:
    cases = [_table_case("NaiveMLE", budget, adjacency) for budget in ("epsilon", "rho") for adjacency in ADJACENCIES]
    cases += [_table_case("NaiveMLE", "delta", adjacency, noise="gaussian") for adjacency in ADJACENCIES]
    cases.append(_two_tables("NaiveMLE", "epsilon", "add_remove"))
    cases += [
        _table_case("CollectiveMAP", "epsilon", "add_remove", (100, 1000), n_rounds=1),
        _table_case("CollectiveMAP", "rho", "replace_one", (100, 1000), n_rounds=1),
        _table_case("CollectiveEM", "epsilon", "replace_one", n_iter=2),
        _table_case("CollectiveEM", "rho", "add_remove", n_iter=2),
    ]
    sgd: dict[str, Any] = {"n_steps": 2, "batch_rate": 0.5, "clip_norm": 1.0}
    cases += [
        _table_case("PrivateSGD", "delta", "add_remove", **sgd),
        _table_case("PrivateSGD", "delta", "replace_one", **sgd),
        _table_case("PrivateSGD", "rho", "replace_one", n_steps=2, clip_norm=1.0),
    ]
    steps: dict[str, dict[str, Any]] = {"PrivateNetwork": {"n_rounds": 1}, "PrivateChowLiu": {"n_edges": 1}}
    cases += [
        _structure_case(name, budget, adjacency, **arguments)
        for name, arguments in steps.items()
        for budget, adjacency in (("epsilon", "add_remove"), ("rho", "replace_one"))
    ]
    cases.append(_structure_case("PrivateChowLiu", "epsilon", "replace_one", method="tables"))
    cases += [_vote_case("StableStructure", "delta", adjacency, graph_features) for adjacency in ADJACENCIES]
    cases += [
        _vote_case("EdgeVoting", budget, adjacency, None)
        for budget, adjacency in (("epsilon", "add_remove"), ("rho", "replace_one"))
    ]
    cases += [_chain_case(budget, adjacency, (100, 1000)) for budget in ("epsilon", "rho") for adjacency in ADJACENCIES]
    cases.append(_chain_case("epsilon", "add_remove", segment_length=2, max_segments=2, method="naive"))
    cases.append(_chain_case("epsilon", "add_remove", (100, 1000), chain_order=2))
    cases.append(_chain_case("rho", "replace_one", (100, 1000), chain_order="auto"))
    return cases


CASES = _cases()

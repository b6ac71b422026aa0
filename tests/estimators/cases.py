"""Every estimator with every one of its mechanisms, on small private data of its kind, and neighbours of such data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp import Budget, Ledger, PrivateGraph, PrivateSequences, PrivateTable, PrivateVectors
from pgmpy_dp import estimators as E

STATES = {"a": ["x", "y"], "b": [0, 1], "c": [False, True]}
GRAPH = nx.Graph([("a", "b"), ("b", "c")])
PAGES = {"page": ["front", "news", None]}
PURE, APPROX, RHO = {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-3}, {"rho": 0.5}


@dataclass(frozen=True)
class Case:
    """One way to fit one estimator.

    Attributes
    ----------
    name : str
    estimator : type
    options : dict
        Of its constructor, the budget among them.
    kind : str
        Of data: "table", "vectors", "sequences" or "graph".
    """

    name: str
    estimator: type
    options: dict[str, Any]
    kind: str = field(default="table")

    @property
    def budget(self) -> Budget:
        return Budget(**{key: self.options[key] for key in ("epsilon", "delta", "rho") if key in self.options})

    def make(self, **changes: Any) -> Any:
        return self.estimator(**{**self.options, **changes})

    def data(self, raw: Any, ledger: Ledger | Budget | None = None, **public: Any) -> Any:
        return KINDS[self.kind](raw, self.budget if ledger is None else ledger, public)

    def fit(self, estimator: Any, data: Any) -> Any:
        if self.estimator.get_class_tag("task") == "parameters":
            return estimator.fit(GRAPH, data)
        return estimator.fit(data)


KINDS: dict[str, Callable] = {
    "table": lambda raw, ledger, public: PrivateTable(raw, STATES, ledger=ledger, **public),
    "vectors": lambda raw, ledger, public: PrivateVectors(raw, ["p", "q"], ledger=ledger, **public),
    "sequences": lambda raw, ledger, public: PrivateSequences(raw, PAGES, ledger=ledger, **public),
    "graph": lambda raw, ledger, _: PrivateGraph(raw, range(8), ledger=ledger),
}


def _cases() -> list[Case]:
    def case(estimator: type, kind: str = "table", **options: Any) -> Case:
        told = [str(v) for k, v in options.items() if isinstance(v, str | bool) or k in ("refit", "max_segments")]
        measure = "rho" if "rho" in options else "approximate" if "delta" in options else "pure"
        return Case("-".join([estimator.__name__, measure, *told]), estimator, options, kind)

    field_options = {"width": 1.0, "n_iter": 5}
    votes = {"width": 2.0, "min_edge_weight": 0.4, "n_blocks": 10}
    lasso = {"row_norm": 2.0}
    mixture = {"n_components": 2, "separation": 8.0, "scale": 1.0, "epsilon": 1.0, "delta": 1e-6}
    return [
        case(E.NaiveMLE, **PURE),
        case(E.CollectiveMAP, **RHO),
        case(E.CollectiveEM, **PURE, published=True),
        case(E.CollectiveEM, **APPROX, published=True, e_step="nlbp", n_iter=5),
        case(E.CollectiveEM, **APPROX),
        case(E.PrivateSGD, **APPROX, n_steps=5),
        case(E.PrivateSGD, **RHO, n_steps=5),
        case(E.PrivateChowLiu, **PURE, method="selection"),
        case(E.PrivateChowLiu, **RHO, method="tables", prune=True),
        case(E.PrivateNetwork, **RHO),
        case(E.PrivateNetwork, **PURE),
        *[
            case(kind, **budget, **field_options, method=method)
            for kind in (E.PrivateIsing, E.PrivatePairwise, E.PrivateBinaryMRF)
            for method, budget in (("moments", PURE), ("frank-wolfe", PURE), ("gradient", APPROX))
        ],
        case(E.PrivateBinaryMRF, **RHO, width=1.0, method="moments", queries="pmw"),
        case(E.PrivateBinaryMRF, **PURE, width=1.0, method="moments", queries="sepfem"),
        case(E.PrivateBinaryMRF, **RHO, **field_options, method="frank-wolfe", objective="linf"),
        *[
            case(kind, **APPROX, **votes, learner=learner)
            for kind in (E.StableStructure, E.EdgeVoting)
            for learner in ("logistic", "inverse-covariance", "chow-liu")
        ],
        case(E.PrivateMarkovChain, "sequences", **PURE, method="map"),
        case(E.PrivateMarkovChain, "sequences", **RHO, method="em", segment_length=3, max_segments=1),
        case(E.PrivateMarkovChain, "sequences", **PURE, method="naive"),
        case(E.PrivateMarkovChain, "sequences", **APPROX, method="sgd", n_steps=5),
        *[
            case(E.PrivateGraphicalLasso, "vectors", **lasso, **budget, mechanism=mechanism)
            for mechanism, budget in (
                ("double-wishart", PURE),
                ("laplace", PURE),
                ("frobenius", PURE),
                ("goe", RHO),
                ("one-sided-wishart", APPROX),
                ("auto", APPROX),
            )
        ],
        case(E.PrivateGraphicalLasso, "vectors", **lasso, **RHO, center="private", center_radius=3.0),
        case(E.PrivateGraphicalLasso, "vectors", **lasso, **PURE, perturb="output", penalty=0.2, n_records=50),
        case(E.PrivateGaussianMixture, "vectors", **mixture, method="blocks", n_blocks=20),
        case(E.PrivateGaussianMixture, "vectors", **{**mixture, "scale": None}, n_blocks=20),
        case(E.PrivateBlockModel, "graph", **PURE, method="randomized-response"),
        case(E.PrivateBlockModel, "graph", **RHO, method="noisy-power"),
        case(E.PrivateBlockModel, "graph", **PURE, method="exponential"),
        case(E.PrivateBlockModel, "graph", **APPROX, method="sdp"),
        case(E.PrivateBlockModel, "graph", **APPROX, method="sdp-exact"),
    ]


CASES = _cases()


def rows(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(np.array(states, dtype=object), n) for name, states in STATES.items()})


def _with(frame: pd.DataFrame, *cells: Any) -> pd.DataFrame:
    odd = pd.DataFrame([cells], columns=frame.columns, dtype=object)
    return pd.concat([frame, odd], ignore_index=True)


def _tables() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    some, same = rows(60), pd.DataFrame({"a": ["x"] * 40, "b": [0] * 40, "c": [False] * 40})
    outside = pd.DataFrame({"a": ["?"] * 9, "b": [None] * 9, "c": [np.nan] * 9})
    return {
        "none and one": (some.iloc[:0], some.iloc[:1]),
        "none and one outside": (some.iloc[:0], outside.iloc[:1]),
        "all outside": (outside, _with(outside, "x", 0, False)),
        "all equal": (same, _with(same, "y", 1, True)),
        "one odd": (some, _with(some, object(), 10**400, [1j])),
        "one infinite": (some, _with(some, np.inf, -np.inf, np.nan)),
    }


def _vectors() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    some = np.random.default_rng(0).normal(size=(60, 2))
    line = np.column_stack([np.arange(40.0), np.arange(40.0)])
    return {
        "none and one": (np.empty((0, 2)), np.ones((1, 2))),
        "all equal": (np.ones((40, 2)), np.vstack([np.ones((40, 2)), [[2.0, 3.0]]])),
        "all zero": (np.zeros((40, 2)), np.vstack([np.zeros((40, 2)), [[1e300, -1e300]]])),
        "on a line": (line, np.vstack([line, [[1.0, 2.0]]])),
        "not finite": (some, np.vstack([some, [[np.nan, np.inf]]])),
        "far": (some, np.vstack([some, [[1e308, -1e308]]])),
        "tiny": (some * 1e-320, some[1:] * 1e-320),
    }


def _sequences() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    def frame(**users: Any) -> pd.DataFrame:
        return pd.DataFrame(
            {"user": pd.Series(list(users), dtype=object), "sequence": pd.Series(list(users.values()), dtype=object)}
        )

    some = {f"u{k}": "front news news front" for k in range(30)}
    return {
        "none and one": (frame(), frame(u="front news")),
        "one empty": (frame(**some), frame(**some, v="")),
        "one missing": (frame(**some), frame(**some, v=None)),
        "one unknown": (frame(**some), frame(**some, v="? ? front \ud800")),
        "one long": (frame(**some), frame(**some, v="news " * 2000)),
        "one odd": (frame(**some), frame(**some, v=[[1, {}], object(), float("nan")])),
        "all null": (frame(u=[None, None]), frame(u=[None, None], v=[None])),
    }


def _graphs() -> dict[str, tuple[nx.Graph, nx.Graph]]:
    def on_eight(*edges: tuple[int, int]) -> nx.Graph:
        graph = nx.empty_graph(8)
        graph.add_edges_from(edges)
        return graph

    star, full = nx.star_graph(7), nx.complete_graph(8)
    loops = on_eight((0, 0), (1, 1))
    less = nx.complete_graph(8)
    less.remove_edge(0, 1)
    two = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4))
    joined = two.copy()
    joined.add_edge(0, 7)
    more = star.copy()
    more.add_edge(1, 2)
    return {
        "none and one": (on_eight(), on_eight((0, 1))),
        "star": (star, more),
        "complete": (full, less),
        "disconnected": (two, joined),
        "loops": (on_eight(), loops),  # no edges in either
    }


NEIGHBOURS: dict[str, dict[str, tuple[Any, Any]]] = {
    "table": _tables(),
    "vectors": _vectors(),
    "sequences": _sequences(),
    "graph": _graphs(),
}

ORDINARY: dict[str, Any] = {
    "table": rows(80),
    "vectors": np.random.default_rng(1).normal(size=(80, 2)),
    "sequences": _sequences()["one long"][0],
    "graph": _graphs()["disconnected"][0],
}

"""Every estimator with every one of its mechanisms, and small data of each kind with neighbours of such data.

How a subject's estimators are fitted is in the ``cases.py`` of its tests.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from tests.estimators.case_base import GRAPH, STATES, Case

__all__ = ["CASES", "GRAPH", "NEIGHBOURS", "ORDINARY", "STATES", "Case", "rows", "subjects_with_cases"]


def subjects_with_cases() -> list[str]:
    """Folders of tests that say how a subject's estimators are fitted."""
    found = Path(__file__).parents[1].glob("*/cases.py")
    return sorted(path.parent.name for path in found if path != Path(__file__))


CASES: list[Case] = [
    case for subject in subjects_with_cases() for case in import_module(f"tests.{subject}.cases").CASES
]


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

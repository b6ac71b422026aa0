"""What a case of the generic tests is: one way to fit one estimator, on small private data of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from pgmpy_dp import Budget, Ledger, PrivateGraph, PrivateSequences, PrivateTable, PrivateVectors, estimators

STATES = {"a": ["x", "y"], "b": [0, 1], "c": [False, True]}
GRAPH = nx.Graph([("a", "b"), ("b", "c")])
GRAPHS = {"table": GRAPH, "vectors": nx.DiGraph([("p", "q")])}
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
            return estimator.fit(GRAPHS[self.kind], data)
        return estimator.fit(data)


KINDS: dict[str, Callable] = {
    "table": lambda raw, ledger, public: PrivateTable(raw, STATES, ledger=ledger, **public),
    "vectors": lambda raw, ledger, public: PrivateVectors(raw, ["p", "q"], ledger=ledger, **public),
    "sequences": lambda raw, ledger, public: PrivateSequences(raw, PAGES, ledger=ledger, **public),
    "graph": lambda raw, ledger, _: PrivateGraph(raw, range(8), ledger=ledger),
}


def case(name: str, kind: str = "table", **options: Any) -> Case:
    """A fit of the estimator of this name, in words made of its options."""
    told = [str(v) for k, v in options.items() if isinstance(v, str | bool) or k in ("refit", "max_segments")]
    measure = "rho" if "rho" in options else "approximate" if "delta" in options else "pure"
    return Case("-".join([name, measure, *told]), getattr(estimators, name), options, kind)

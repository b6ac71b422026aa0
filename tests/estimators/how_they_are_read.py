"""How a release in a file is learned from again, and what is compared of it: for those who write files, and tests."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

PATH = nx.path_graph(["a", "b", "c", "d"])
OF_A_GRAPH = ("NaiveMLE", "CollectiveEM", "CollectiveMAP", "PrivateSGD")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "PrivateIsing": {"width": 2.0},
    "PrivatePairwise": {"width": 2.0},
    "PrivateBinaryMRF": {"width": 2.0},
    "StableStructure": {"width": 2.0, "min_edge_weight": 0.5},
    "EdgeVoting": {"width": 2.0, "min_edge_weight": 0.5},
    "PrivateGraphicalLasso": {"row_norm": 4.0, "penalty": 0.1},
    "PrivateGraphicalLasso-output": {"row_norm": 4.0, "penalty": 0.1, "perturb": "output"},
    "PrivateGraphicalLasso-pairs": {"perturb": "pairs", "bounds": [(-4.0, 6.0)] * 4, "center": "private"},
    "PrivateGraphicalLasso-bounds": {"bounds": [(-4.0, 6.0)] * 4, "center": "private", "penalty": 0.1},
    "PrivateGaussianMixture": {"n_components": 2},
    "PrivateGaussianMixture-full": {"n_components": "auto", "max_components": 3, "covariance_type": "full"},
    "PrivateMarkovChain-auto": {"chain_order": "auto"},
}
# What is learned from the release alone and settled: not of networks, whose searches and priors may become better.
ATTRIBUTES = {
    "PrivateIsing": "weights_",
    "PrivatePairwise": "edge_scores_",
    "PrivateBinaryMRF": "edge_scores_",
    "EdgeVoting": "edge_scores_",
    "PrivateGraphicalLasso": "precision_",
    "PrivateGaussianMixture": "means_",
    "PrivateBlockModel": "scores_",
    "PrivateMarkovChain": "transition_",
}


def learned_again(name: str, release: Any) -> Any:
    """The estimator of a file's name, fitted to its release by the arguments that tell how it is read."""
    from pgmpy_dp import estimators

    kind = name.split("-")[0]
    estimator = getattr(estimators, kind)(**ARGUMENTS.get(name, ARGUMENTS.get(kind, {})))
    return estimator.fit_release(*([PATH] if kind in OF_A_GRAPH else []), release)


def answers(name: str, fitted: Any) -> list[float]:
    """Some numbers that it has learned."""
    attribute = ATTRIBUTES.get(name.split("-")[0])
    value = None if attribute is None else getattr(fitted, attribute)
    if value is None:
        return []
    flat = np.concatenate([np.ravel(table) for table in value]) if isinstance(value, list | tuple) else np.ravel(value)
    return [float(f"{number:.6g}") for number in flat[:16].astype(float)]

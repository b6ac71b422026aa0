"""One run of a method of this package, or of a reference without privacy, as a process of its own.

    python -m benchmarks.compare_methods METHOD INPUT.npz OUTPUT.npz

Input and output are those of `benchmarks.compare_peers`; `learn` adds its noisy tables, which mbi is fitted to.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config

from pgmpy_dp.estimators import CollectiveMAP, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.learning.noisy_tables import noisy_marginals
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

__all__ = ["METHODS", "REFERENCES"]


def main() -> None:
    method, source, result = sys.argv[1:]
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    np.savez(result, **(METHODS | REFERENCES)[method](dict(np.load(source))))


def learn(given: dict, delta: float | None = None) -> dict:
    """`learn` with its defaults."""
    start = time.process_time()
    network = _estimator(PrivateNetwork, given, delta).fit(_frame(given))
    seconds = time.process_time() - start
    noisy = noisy_marginals(network.release_, network.release_.schema.variables)
    return _result(given, network, seconds) | {
        "release_scopes": json.dumps([list(scope) for scope in noisy.cliques.indices]),
        "release_counts": noisy.counts,
        "release_deviations": np.sqrt(noisy.table_variance),
    }


def learn_target(given: dict) -> dict:
    """`learn` with ``target=``, the variable that classifiers predict."""
    start = time.process_time()
    network = _estimator(PrivateNetwork, given, target=int(given["target"])).fit(_frame(given))
    return _result(given, network, time.process_time() - start)


def chow_liu(given: dict) -> dict:
    """`PrivateChowLiu` with its defaults."""
    start = time.process_time()
    network = _estimator(PrivateChowLiu, given).fit(_frame(given))
    return _result(given, network, time.process_time() - start)


def independent(given: dict) -> dict:
    """Tables of single variables with the whole budget: `CollectiveMAP` on a graph without edges."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(given["cardinalities"])))
    start = time.process_time()
    network = _estimator(CollectiveMAP, given, noise="gaussian").fit(graph, _frame(given))
    return _result(given, network, time.process_time() - start)


def exact_independent(given: dict) -> dict:
    """Not private: the exact tables of single variables, and records with columns shuffled each on its own."""
    codes = given["codes"]
    rng = np.random.default_rng(int(given["seed"]))
    counts = [np.bincount(codes[:, i], minlength=k) for i, k in enumerate(given["cardinalities"])]
    return {
        "synthetic": np.column_stack([rng.permutation(column) for column in codes.T]).astype(np.int32),
        "scopes": json.dumps([[i] for i in range(len(counts))]),
        "theta": np.log(np.concatenate([(table + 0.5) / (table + 0.5).sum() for table in counts])),
        "seconds": 0.0,
    }


def real(given: dict) -> dict:
    """Not private: the records learned from, as if they were synthetic."""
    return {"synthetic": given["codes"], "seconds": 0.0}


METHODS = {
    "learn": learn,
    "learn-pure": lambda given: learn(given, delta=0.0),
    "learn-target": learn_target,
    "chow-liu": chow_liu,
    "independent": independent,
}
REFERENCES = {"exact-independent": exact_independent, "real": real}
"""Without privacy: the same at every epsilon."""


def _frame(given: dict) -> pd.DataFrame:
    return pd.DataFrame(given["codes"])


def _estimator(kind: type, given: dict, delta: float | None = None, **options: Any) -> Any:
    states = {i: list(range(int(k))) for i, k in enumerate(given["cardinalities"])}
    delta = float(given["delta"]) if delta is None else delta
    return kind(float(given["epsilon"]), delta, state_names=states, random_state=int(given["seed"]), **options)


def _result(given: dict, network: Any, seconds: float) -> dict:
    start = time.process_time()
    synthetic = network.model_.sample(len(given["codes"]), random_state=int(given["seed"]))
    sampling = time.process_time() - start
    model = network.model_.to_log_linear()
    assert model.cliques.variables == tuple(range(len(given["cardinalities"])))
    return {
        "synthetic": synthetic[list(model.cliques.variables)].to_numpy().astype(np.int32),
        "scopes": json.dumps([list(scope) for scope in model.cliques.indices]),
        "theta": model.theta,
        "seconds": seconds,
        "sampling_seconds": sampling,
    }


if __name__ == "__main__":
    main()

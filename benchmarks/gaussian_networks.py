"""PrivateLinearGaussian against the exact fit, beside a noisy regression for each variable from moments of its own.

::

    python -m benchmarks.gaussian_networks --out benchmarks/results
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.models import LinearGaussianBayesianNetwork

from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateLinearGaussian

DRAWS = 10
FIRST = 1000  # seeds before were for what was tuned: when eigenvalues are raised
BUDGETS: dict[str, dict[str, float]] = {"epsilon = 1": {"epsilon": 1.0}, "rho = .05": {"rho": 0.05}}
GRAPHS = {"10 variables, 1 parent": (10, 1), "10 variables, 3 parents": (10, 3), "30 variables, 2 parents": (30, 2)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaussian_networks", description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", "random_state")
    start = time.perf_counter()
    text = [
        "# Gaussian Bayesian networks",
        "Made by `python -m benchmarks.gaussian_networks`",
        f"on {describe_machine()}. Medians of {options.draws} draws of coefficients, records and noise (seeds from "
        "1000): Kullback-Leibler divergence from the exact fit (pgmpy's `LinearGaussianMLE`), in nats a record / mean "
        "absolute error of a coefficient against it, the columns having variance 1. Of a graph each variable has that "
        "many parents, drawn among those before it. add_remove, private number of records.",
        "The rivals split the budget equally, and release second moments for each family (a variable with its parents) "
        "alone, shortened to the root of its size, by the same code: of all families, or of those that are no part of "
        "another, which regressions of their parts then share.",
    ]
    for name, budget in BUDGETS.items():
        print(name, flush=True)
        text += [f"## {name}", table(budget, options.draws)]
    text += ["## Intervals", coverage(options.draws)]
    text.append(f"All of it took {(time.perf_counter() - start) / 60:.1f} minutes.")
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "gaussian-networks.md").write_text("\n\n".join(text) + "\n")


def drawn(d: int, n_parents: int, n: int, seed: int) -> tuple[LinearGaussianBayesianNetwork, np.ndarray, pd.DataFrame]:
    """A graph, its true coefficients, and records of columns of mean 0 and variance 1."""
    rng = np.random.default_rng([seed, d, n_parents])
    weights = np.zeros((d, d))
    for child in range(1, d):
        for parent in rng.choice(child, min(child, n_parents), replace=False):
            weights[child, parent] = rng.choice([-1, 1]) * rng.uniform(0.3, 0.8)
    inverse = np.linalg.inv(np.eye(d) - weights)
    size = np.sqrt(np.diagonal(inverse @ inverse.T))
    rows = rng.normal(size=(n, d)) @ inverse.T / size
    graph = LinearGaussianBayesianNetwork()
    graph.add_nodes_from(range(d))
    graph.add_edges_from((int(parent), int(child)) for child, parent in np.argwhere(weights))
    return graph, weights * size / size[:, None], pd.DataFrame(rows)


def shared(graph: nx.DiGraph, data: pd.DataFrame, seed: int, budget: dict[str, float], **how: Any) -> list:
    return PrivateLinearGaussian(**budget, **public(len(graph)), **how, random_state=seed).fit(graph, data).parameters_


def bounded(graph: nx.DiGraph, data: pd.DataFrame, seed: int, budget: dict[str, float]) -> list:
    made = PrivateLinearGaussian(**budget, bounds=dict.fromkeys(graph, (-6.0, 5.0)), random_state=seed)
    return made.fit(graph, data).parameters_


def public(d: int) -> dict[str, Any]:
    return {"row_norm": d**0.5, "center": [0.0] * d}


def split(graph: nx.DiGraph, data: pd.DataFrame, seed: int, budget: dict[str, float], maximal: bool = True) -> list:
    """A release for each family, under an equal part of the budget."""
    families = {v: frozenset([v, *graph.predecessors(v)]) for v in graph}
    kept = {f for f in families.values() if not maximal or not any(f < other for other in families.values())}
    part = {name: value / len(kept) for name, value in budget.items()}
    found = {}
    for k, family in enumerate(sorted(kept, key=sorted)):
        some = graph.subgraph(family).copy()
        made = PrivateLinearGaussian(**part, **public(len(family)), random_state=1000 * seed + k).fit(some, data)
        found |= {cpd.variable: cpd for cpd in made.parameters_ if families[cpd.variable] <= family}
    return [found[v] for v in graph]


METHODS = {
    "**`PrivateLinearGaussian`**": shared,
    "the same, bounds of 6 and 5 deviations, private centre": bounded,
    "the same, Laplace noise": lambda *how: shared(*how, mechanism="laplace" if "epsilon" in how[-1] else "gaussian"),
    "a regression for each family": lambda *how: split(*how, maximal=False),
    "a regression for each maximal family": split,
}


def table(budget: dict[str, float], draws: int) -> str:
    rows = []
    for name, method in METHODS.items():
        cells = [name.replace("Laplace", "Laplace" if "epsilon" in budget else "Gaussian")]
        for d, n_parents in GRAPHS.values():
            for n in (2_000, 20_000):
                scores = []
                for seed in range(FIRST, FIRST + draws):
                    graph, _, data = drawn(d, n_parents, n, seed)
                    scores.append(distance(graph.copy().fit(data).cpds, method(graph, data, seed, budget)))
                divergence, error = np.median(scores, axis=0)
                cells.append(f"{divergence:.4f} / {error:.4f}" if divergence < 100 else "above 100")
        rows.append(cells)
    heads = [f"{name}, n = {n:,}" for name in GRAPHS for n in (2_000, 20_000)]
    return markdown_table(["method", *heads], rows)


def distance(exact: list, made: list) -> tuple[float, float]:
    """Divergence of a fit from the exact one in nats a record, and the mean absolute error of its slopes."""
    d = len(exact)
    place = {cpd.variable: k for k, cpd in enumerate(exact)}
    (weights, mean, sd), (other, shift, wide) = ((np.zeros((d, d)), np.zeros(d), np.zeros(d)) for _ in range(2))
    for cpds, (w, constant, deviation) in ((exact, (weights, mean, sd)), (made, (other, shift, wide))):
        for cpd in cpds:
            k = place[cpd.variable]
            w[k, [place[parent] for parent in cpd.evidence]] = cpd.beta[1:]
            constant[k], deviation[k] = cpd.beta[0], cpd.std
    inverse = np.linalg.inv(np.eye(d) - weights)
    moments = (inverse * sd**2) @ inverse.T + np.outer(inverse @ mean, inverse @ mean)
    change = weights - other
    squares = np.einsum("ij,jk,ik->i", change, moments, change) + (mean - shift) ** 2
    squares += 2 * (mean - shift) * (change @ inverse @ mean) + sd**2
    divergence = float((np.log(wide / sd) + (squares / wide**2 - 1) / 2).sum())
    return divergence, float(np.abs(change[weights != 0]).mean())


def coverage(draws: int) -> str:
    """How many of the true slopes are in intervals of 90 %, and how many fits raised an eigenvalue."""
    rows = []
    for name, (d, n_parents) in GRAPHS.items():
        for n in (2_000, 20_000):
            for budget_name, budget in BUDGETS.items():
                held, raised, widths = [], 0, []
                for seed in range(FIRST, FIRST + draws):
                    graph, truth, data = drawn(d, n_parents, n, seed)
                    made = PrivateLinearGaussian(**budget, **public(d), random_state=seed).fit(graph, data)
                    raised += made.n_raised_ > 0
                    for (child, parent), low, high in made.intervals()[["lower", "upper"]].itertuples():
                        if parent != "(Intercept)":
                            held.append(low <= truth[child, parent] <= high)
                            widths.append(high - low)
                share = f"{np.mean(held):.3f}"
                rows.append([name, f"{n:,}", budget_name, share, f"{np.median(widths):.3f}", f"{raised} of {draws}"])
    return markdown_table(["graph", "n", "budget", "held", "median width", "with raised eigenvalues"], rows)


if __name__ == "__main__":
    main()

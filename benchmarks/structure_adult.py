"""Adult census data: synthetic-data quality of structures learned privately, given, and learned without privacy.

::

    python -m benchmarks.structure_adult --out benchmarks/results
    python -m benchmarks.structure_adult --methods learn learn_pure   # the others' rows stay

For each split a tenth of the records is held out, and every method learns from the others, once per epsilon; zCDP
methods have the rho that dp-accounting converts to (epsilon, 1e-9). Scores: total variation distance between the
model's and the learning records' tables, mean and largest over all 78 pairs of variables, and the mean log-likelihood
of the held-out records. The records are public (UCI Adult, 1994 US census), so the noise is seeded.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config
from tqdm import tqdm

from benchmarks.adult import EDGES, load_adult
from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import CollectiveMAP, PrivateChowLiu, PrivateNetwork
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import ScopeMarginals
from pgmpy_dp.learning.maximum_likelihood import maximum_likelihood
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-9


class Problem(NamedTuple):
    """Records to learn from, as numbers of states, and what is public about them."""

    frame: pd.DataFrame
    states: dict[str, list[int]]
    epsilon: float
    seed: int | None


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure_adult", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261201, help="default: %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="splits, each with its own noise (default: %(default)s)")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.structure_adult", *(arguments or sys.argv[1:])])
    lines = raw_folder(out) / "structure-adult.jsonl"
    kept = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    kept = [row for row in kept if row["method"] not in options.methods]
    rows = run(options.splits, options.seed, options.methods) + kept
    with lines.open("w") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)
    (out / "structure-adult.md").write_text(_report(rows, command, options))
    print(f"wrote {out / 'structure-adult.md'}")


def run(splits: int, seed: int, methods: Sequence[str]) -> list[dict]:
    """Fit every method on every split and epsilon.

    Returns
    -------
    list of dict
        "split", "epsilon" (None for what uses none), "method", "mean_tv", "max_tv", "log_likelihood", "edges",
        "seconds" (processor time), and for `PrivateNetwork` "bound" (largest of its own error bounds) and "within"
        (share of the pairs whose error is below its bound).
    """
    cliques, codes = load_adult()
    names = list(cliques.variables)
    states = {name: list(range(k)) for name, k in zip(names, cliques.cardinalities, strict=True)}
    rows = []
    work = [
        (split, method, epsilon)
        for split in range(splits)
        for method in methods
        for epsilon in (EPSILONS if METHODS[method].private else (None,))
    ]
    config.set_show_progress(False)
    for split, method, epsilon in tqdm(work, unit="fit"):
        held_out = np.random.default_rng([seed, split]).random(len(codes)) < 0.1
        frame = pd.DataFrame(codes[~held_out], columns=names)
        problem = Problem(frame, states, epsilon or 0.0, seed + 1000 * split)
        start = time.process_time()
        model, edges, bounds = METHODS[method].fit(problem)
        seconds = time.process_time() - start
        errors = _errors(model, codes[~held_out])
        row = {
            "split": split,
            "epsilon": epsilon,
            "method": method,
            "mean_tv": float(np.mean(list(errors.values()))),
            "max_tv": max(errors.values()),
            "log_likelihood": float(model.log_probability(codes[held_out]).mean()),
            "edges": edges,
            "seconds": seconds,
        }
        if bounds is not None:
            known = {pair: bound for pair, bound in bounds.items() if np.isfinite(bound)}
            row["bound"] = max(known.values())
            row["within"] = float(np.mean([errors[pair] <= bound for pair, bound in known.items()]))
        rows.append(row)
    return rows


Outcome = tuple[LogLinearModel, int, dict[tuple, float] | None]


def _learn(problem: Problem, delta: float) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        estimator = PrivateNetwork(problem.epsilon, delta, state_names=problem.states, random_state=problem.seed)
        estimator.fit(problem.frame)
    table = estimator.errors_
    bounds = {(u, v): b for u, v, b in zip(table["first"], table["second"], table["error_bound"], strict=True)}
    return _in_order(estimator.model_, problem), estimator.graph_.number_of_edges(), bounds


def _expert(problem: Problem) -> Outcome:
    graph = nx.Graph()
    graph.add_nodes_from(problem.states)
    graph.add_edges_from(EDGES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        estimator = CollectiveMAP(
            problem.epsilon, DELTA, state_names=problem.states, noise="gaussian", random_state=problem.seed
        )
        estimator.fit(graph, problem.frame)
    return _in_order(estimator.model_, problem), len(EDGES), None


def _chow_liu(problem: Problem, method: str) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        estimator = PrivateChowLiu(
            problem.epsilon, DELTA, state_names=problem.states, method=method, random_state=problem.seed
        )
        estimator.fit(problem.frame)
    return _in_order(estimator.model_, problem), estimator.graph_.number_of_edges(), None


def _exact_tree(problem: Problem) -> Outcome:
    """Chow and Liu's tree of largest mutual information, and maximum likelihood, from exact tables."""
    codes, sizes = problem.frame.to_numpy(), [len(states) for states in problem.states.values()]
    graph = nx.Graph()
    for (i, j), table in _tables(codes, sizes).items():
        p = table / table.sum()
        independent = np.outer(p.sum(axis=1), p.sum(axis=0))
        seen = p > 0
        graph.add_edge(i, j, weight=float((p[seen] * np.log(p[seen] / independent[seen])).sum()))
    return _exact(problem, [tuple(sorted(edge)) for edge in nx.maximum_spanning_edges(graph, data=False)])


def _exact(problem: Problem, edges: list[tuple[int, int]]) -> Outcome:
    """Maximum likelihood from exact tables; the penalty keeps it finite where a cell is empty."""
    names = tuple(problem.states)
    sizes = tuple(len(states) for states in problem.states.values())
    scopes = [*((name,) for name in names), *((names[i], names[j]) for i, j in edges)]
    cliques = Cliques(names, sizes, tuple(scopes))
    codes = problem.frame.to_numpy()
    tables = _tables(codes, list(sizes))
    counts = cliques.join(
        [np.bincount(codes[:, i], minlength=k).astype(float) for i, k in enumerate(sizes)]
        + [tables[edge] for edge in edges]
    )
    return maximum_likelihood(cliques, counts, l2=1.0 / len(codes)).model, len(edges), None


class Method(NamedTuple):
    """How to fit, and whether epsilon matters."""

    label: str
    fit: Callable[[Problem], Outcome]
    private: bool = True


METHODS = {
    "learn": Method("learn, zCDP", lambda problem: _learn(problem, DELTA)),
    "learn_pure": Method("learn, pure epsilon", lambda problem: _learn(problem, 0.0)),
    "expert": Method("a hand-made graph of 15 edges, CollectiveMAP", _expert),
    "chow_liu": Method("PrivateChowLiu", lambda problem: _chow_liu(problem, "selection")),
    "chow_liu_tables": Method('PrivateChowLiu(method="tables")', lambda problem: _chow_liu(problem, "tables")),
    "exact_tree": Method("not private: Chow-Liu tree", _exact_tree, private=False),
    "independent": Method("not private: independent", lambda problem: _exact(problem, []), private=False),
}


def _in_order(network, problem: Problem) -> LogLinearModel:
    """The model over the variables in the order of the records."""
    model = network.to_log_linear()
    assert model.cliques.variables == tuple(problem.states)
    return model


def _tables(codes: np.ndarray, sizes: list[int]) -> dict[tuple[int, int], np.ndarray]:
    return {
        (i, j): np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
        .reshape(sizes[i], sizes[j])
        .astype(float)
        for i, j in itertools.combinations(range(len(sizes)), 2)
    }


def _errors(model: LogLinearModel, codes: np.ndarray) -> dict[tuple, float]:
    """Total variation between the model and the records on each pair of variables."""
    own = model.cliques
    pairs = list(itertools.combinations(range(len(own.variables)), 2))
    fitted = dict(zip(pairs, ScopeMarginals(own, model.theta).tables(pairs), strict=True))
    return {
        (own.variables[i], own.variables[j]): float(0.5 * np.abs(table / len(codes) - fitted[i, j]).sum())
        for (i, j), table in _tables(codes, list(own.cardinalities)).items()
    }


def _report(rows: list[dict], command: str, options: argparse.Namespace) -> str:
    def of(method: str, epsilon: float | None) -> list[dict]:
        return [row for row in rows if row["method"] == method and row["epsilon"] in (None, epsilon)]

    def cell(found: list[dict]) -> str:
        tv, ll = [row["mean_tv"] for row in found], [row["log_likelihood"] for row in found]
        return f"{np.mean(tv):.4f} [{min(tv):.4f}, {max(tv):.4f}] / {np.mean(ll):.3f}"

    shown = [method for method in METHODS if any(row["method"] == method for row in rows)]
    body, details = [], []
    for method in shown:
        fits = [row for row in rows if row["method"] == method]
        seconds = [row["seconds"] for row in fits]
        body.append(
            [
                METHODS[method].label,
                *(cell(of(method, e)) for e in EPSILONS),
                f"{min(seconds):.1f} to {max(seconds):.1f}",
            ]
        )
        largest = [f"{np.mean([row['max_tv'] for row in of(method, e)]):.3f}" for e in EPSILONS]
        edges = [f"{np.mean([row['edges'] for row in of(method, e)]):.0f}" for e in EPSILONS]
        details.append([METHODS[method].label, *(f"{a} ({b})" for a, b in zip(largest, edges, strict=True))])
    bounds = []
    for method in shown:
        if any("bound" in row for row in of(method, EPSILONS[0])):
            pairs = [of(method, e) for e in EPSILONS]
            bounds.append(
                [
                    METHODS[method].label,
                    *(
                        f"{np.mean([r['bound'] for r in p]):.3f}, {np.mean([r['within'] for r in p]):.1%}"
                        for p in pairs
                    ),
                ]
            )
    heads = [f"epsilon = {e:g}" for e in EPSILONS]
    parts = [
        "# Adult: structures",
        f"Made by `{command}`",
        f"on {describe_machine()}; one thread on one core, seconds of processor time.",
        f"{options.splits} splits (90 % to learn from), seed {options.seed}; under add_remove, record count private. "
        f"delta = {DELTA:g}, or 0 where it says pure.",
        "Mean total variation over all 78 pairs, against the records learned from: mean over splits, in brackets the "
        "smallest and the largest; after the slash the mean log-likelihood of a held-out record, in nats. Smaller, and "
        "larger, is better.",
        markdown_table(["method", *heads, "seconds"], body),
        "Largest total variation of a pair, mean over splits (edges of the graph):",
        markdown_table(["method", *heads], details),
    ]
    if bounds:
        parts += [
            "What `errors_` says about it: largest bound of a pair, and share of the pairs whose error is below their "
            "bound:",
            markdown_table(["method", *heads], bounds),
        ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()

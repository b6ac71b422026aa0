"""Models from noisy tables that others released, beside mbi's from the same tables.

::

    python -m benchmarks.noisy_tables --out benchmarks/results

A workload of 28 pairs of a real table, drawn at random, is counted with Gaussian noise: for epsilon and a delta of
1e-9, spent in equal shares. A pair that would make a clique of the junction tree too large is passed over. Variables
that no pair has are measured alone. `pgmpy_dp.from_noisy_tables` and every estimator of mbi get the same noisy tables
and their variances, and no total. Divergence: of each model from the maximum likelihood model of the exact tables, in
nats a record, which is what a record loses of its log-likelihood.

Nobody can choose the best of mbi's estimators in each draw; that is what the last column compares with. Its dual
averaging and interior gradient take minutes to compile, and were behind mirror descent where they were tried
(``--estimators``).
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy and jax are imported

import numpy as np

from benchmarks.compare_tables import TABLES, Table
from benchmarks.divergence import kl_divergence
from benchmarks.mbi_adapter import fit_mbi
from benchmarks.report import markdown_table
from pgmpy_dp import Schema, from_noisy_tables
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.inference.scope_marginals import largest_clique
from pgmpy_dp.learning.maximum_likelihood import maximum_likelihood
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.private import accounting

DELTA = 1e-9
N_PAIRS = 28
MOST_CELLS = 2_000
"""Of the largest clique."""

MBI = {
    "mirror descent, 100": {"solver": "mirror_descent", "iterations": 100},
    "mirror descent, 1000": {"solver": "mirror_descent", "iterations": 1000},
    "L-BFGS, 1000": {"solver": "lbfgs", "iterations": 1000},
    "dual averaging, 1000": {"solver": "dual_averaging", "iterations": 1000},
    "interior gradient, 1000": {"solver": "interior_gradient", "iterations": 1000},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.noisy_tables", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--tables", nargs="+", choices=list(TABLES), default=["adult", "nltcs", "pages", "taxi", "adult-aim"]
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--estimators", nargs="+", choices=list(MBI), default=list(MBI)[:3], help="of mbi")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for name in options.tables:
        table = TABLES[name].read()
        cliques = workload(table)
        counts = exact_tables(cliques, table.codes)
        truth = maximum_likelihood(cliques, counts, l2=1.0 / len(table.codes)).model
        for epsilon in options.epsilons:
            losses = np.array([divergences(truth, counts, epsilon, seed, options.estimators) for seed in options.seeds])
            ours, best = losses[:, 0], losses[:, 1:].min(axis=1)
            ratio = float((ours / best).mean())
            means = [f"{value:.4g}" for value in (ours.mean(), best.mean(), *losses[:, 1:].mean(axis=0))]
            sampling = f"{parameters(cliques) / (2 * len(table.codes)):.4g}"
            rows.append((ratio, [TABLES[name].label, f"{epsilon:g}", *means, f"{ratio:.2f}", sampling]))
            print(rows[-1], f"{time.process_time():.0f} s", flush=True)
            command = shlex.join(["python", "-m", "benchmarks.noisy_tables", *(arguments or sys.argv[1:])])
            Path(options.out, "noisy-tables.md").write_text(report(rows, command, options.estimators))


def report(rows: list[tuple[float, list[str]]], command: str, estimators: Sequence[str]) -> str:
    """The page of results, the worst row first."""
    head = (
        "table",
        "epsilon",
        "from_noisy_tables",
        "mbi, best of each draw",
        *estimators,
        "over mbi's best",
        "sampling",
    )
    text = [
        *("# Models from noisy tables of others", "", f"`{command}`", "", describe_machine(), ""),
        f"{N_PAIRS} pairs and what they leave out, Gaussian noise at delta {DELTA:g}; the total is estimated. "
        "Divergence from the model of the exact tables, in nats a record, means over draws; over mbi's best, the mean "
        "of ratios, the worst row first. Sampling: what so many records differ by from the population that they are a "
        "sample of, free parameters over twice their number. The fit weighs sampling beside noise, since it is of the "
        "population; mbi's weigh noise alone, which is nearer to these very records where there is hardly any.",
        *("", markdown_table(head, [row for _, row in sorted(rows, key=lambda row: -row[0])]), ""),
    ]
    return "\n".join(text)


def workload(table: Table) -> Cliques:
    """Pairs in a random order that no record had a say in, and the variables that they leave out."""
    d = len(table.names)
    blank = Cliques(tuple(range(d)), table.cardinalities, tuple((i,) for i in range(d)))
    pairs, chosen = list(itertools.combinations(range(d), 2)), []
    for k in np.random.default_rng(64).permutation(len(pairs)):
        if len(chosen) < N_PAIRS and largest_clique(blank, [*chosen, pairs[k]]) <= MOST_CELLS:
            chosen.append(pairs[k])
    alone = [(i,) for i in range(d) if not any(i in pair for pair in chosen)]
    return Cliques(blank.variables, table.cardinalities, (*chosen, *alone))


def parameters(cliques: Cliques) -> int:
    """Free parameters of a model of pairs and main effects."""
    return sum(k - 1 for k in cliques.cardinalities) + sum(
        np.prod(np.subtract(s, 1)) for s in cliques.shapes if len(s) > 1
    )


def exact_tables(cliques: Cliques, codes: np.ndarray) -> np.ndarray:
    """Counts, shape (n_cells,)."""
    tables = []
    for scope, shape, size in zip(cliques.indices, cliques.shapes, cliques.sizes, strict=True):
        cells = np.ravel_multi_index(tuple(codes[:, i] for i in scope), shape)
        tables.append(np.bincount(cells, minlength=size).reshape(shape))
    return cliques.join(tables)


def divergences(
    truth: LogLinearModel, counts: np.ndarray, epsilon: float, seed: int, estimators: Sequence[str]
) -> list[float]:
    """Those of ours and of each of mbi's estimators, in one draw of the noise."""
    cliques = truth.cliques
    variance = cliques.n_cliques / (2 * accounting.approx_to_zcdp(epsilon, DELTA))
    noise = np.random.default_rng([seed, round(1000 * epsilon)]).normal(0, variance**0.5, len(counts))
    schema = Schema({name: range(size) for name, size in zip(cliques.variables, cliques.cardinalities, strict=True)})
    tables = [
        (scope, table, variance) for scope, table in zip(cliques.scopes, cliques.split(counts + noise), strict=True)
    ]
    model = from_noisy_tables(tables, schema, noise="gaussian", stated="made up here").to_log_linear()
    noisy = NoisyMarginals(cliques, counts + noise, "gaussian", np.full(cliques.n_cliques, variance**0.5))
    found = [kl_divergence(truth, model)]
    for how in map(MBI.get, estimators):
        theta = fit_mbi(noisy, loss="l2", **how).theta  # type: ignore[arg-type]
        diverged = np.isnan(theta).any() or np.isposinf(theta).any()  # a result of the method, not of the benchmark
        found.append(np.inf if diverged else kl_divergence(truth, LogLinearModel(cliques, theta)))
    return found


if __name__ == "__main__":
    main()

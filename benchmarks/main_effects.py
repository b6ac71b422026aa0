"""How near noisy tables of single variables are fitted, by the tail of the prior of main effects.

::

    python -m benchmarks.main_effects --out benchmarks/results

All columns of a real table are measured with Gaussian noise for the whole budget (delta 1e-9) and fitted without
interactions, by `CollectiveMAP` with the tail of main effects as another share of `prior_tail`, and by the projection
of each table onto the simplex with one record more in each cell. Compared with the records' own tables: mean total
variation, and the divergence summed over columns, which is what a record loses in log-likelihood.

The share was chosen by seeds 0 and 1 of these tables.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np

from benchmarks.compare_tables import TABLES
from benchmarks.report import markdown_table
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.learning import objective
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals, project_on_simplex
from pgmpy_dp.private import accounting

SHARES = (1.0, 0.1, 0.01)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.main_effects", description=__doc__.split("\n")[0])
    tables = ["votes", "breast", "digits", "mushrooms", "parkinsons", "stays"]
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=tables)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1000, 1001, 1002])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for name, epsilon in itertools.product(options.tables, options.epsilons):
        errors = np.mean([measure(name, epsilon, seed) for seed in options.seeds], axis=0)
        rows.append([TABLES[name].label, f"{epsilon:g}", *(f"{tv:.4f}, {nats:.2f}" for tv, nats in errors)])
        print(rows[-1], flush=True)
    head = ("table", "epsilon", *(f"tail x {share:g}" for share in SHARES), "projection")
    command = shlex.join(["python", "-m", "benchmarks.main_effects", *(arguments or sys.argv[1:])])
    text = [
        *("# Tables of single variables, by the prior's tail", "", f"`{command}`", "", describe_machine(), ""),
        "Mean total variation, and nats that a record loses. The package has a tenth (`MAIN_TAIL`).",
        *("", markdown_table(head, rows), ""),
    ]
    Path(options.out, "main-effects.md").write_text("\n".join(text))


def measure(name: str, epsilon: float, seed: int) -> list[tuple[float, float]]:
    """Errors of the fits with each share, and of the projection."""
    table = TABLES[name].read()
    n, d = table.codes.shape
    sizes = table.cardinalities
    cliques = Cliques(tuple(range(d)), sizes, tuple((i,) for i in range(d)))
    counts = cliques.join(
        np.bincount(column, minlength=size) for column, size in zip(table.codes.T, sizes, strict=True)
    )
    scale = float(np.sqrt(d / (2 * accounting.approx_to_zcdp(epsilon, 1e-9))))
    noise = np.random.default_rng(seed).normal(0, scale, len(counts))
    noisy = NoisyMarginals(cliques, counts + noise, "gaussian", np.full(d, scale), total=n)
    chosen, found = objective.MAIN_TAIL, []
    try:
        for share in SHARES:
            objective.MAIN_TAIL = share
            found.append(collective_map(noisy).model.marginals())
    finally:
        objective.MAIN_TAIL = chosen
    found.append(cliques.join((n * project_on_simplex(y / n) + 1) / (n + len(y)) for y in cliques.split(noisy.counts)))
    true = counts / n
    lost = np.log(np.maximum(true, 1e-300))
    return [
        (float(np.abs(p - true).sum() / 2 / d), float((true * (lost - np.log(np.maximum(p, 1e-300)))).sum()))
        for p in found
    ]


if __name__ == "__main__":
    main()

"""CollectiveMAP, and the others, against the uniform model where a release says little or nothing.

::

    python -m benchmarks.weak --out benchmarks/results

A method that trusts noise ends above the uniform model, which needs no data. Every kind of population, at N
and epsilon where the signal is below or near the noise; the score is KL(true || fitted) / KL(true || uniform).
``--unguarded`` takes away the comparison of evidences that keeps the prior variances from running up.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import numpy as np
from tqdm import tqdm

import pgmpy_dp.learning.maximum_a_posteriori as method
from benchmarks.collective import SEEDS
from benchmarks.divergence import kl_divergence
from benchmarks.populations import KINDS, make_population, noisy_tables, sample_counts
from benchmarks.report import markdown_table
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.expectation_maximisation import collective_em
from pgmpy_dp.learning.maximum_likelihood import naive_mle

POINTS = ((1_000, 0.01), (1_000, 0.1), (1_000, 0.3), (10_000, 0.01), (10_000, 0.03))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weak", description="Weak releases.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEEDS["full"], help="default: %(default)s")
    parser.add_argument("--populations", type=int, default=10, help="of each kind (default: %(default)s)")
    parser.add_argument("--unguarded", action="store_true", help="accept the first fit, whatever its evidence")
    options = parser.parse_args(arguments)
    if options.unguarded:
        method._CERTAIN = -np.inf
    ratios = {name: run(fit, options.seed, options.populations) for name, fit in _FITS.items()}
    command = shlex.join(["python", "-m", "benchmarks.weak", *(arguments or sys.argv[1:])])
    path = Path(options.out) / ("weak-unguarded.md" if options.unguarded else "weak.md")
    path.write_text(_report(ratios, command))
    print(f"wrote {path}")


_FITS = {
    "NaiveMLE (lambda*)": naive_mle,
    "CollectiveEM": collective_em,
    "CollectiveMAP": method.collective_map,
}


def run(fit, seed: int, populations: int) -> dict[tuple[str, int, float], np.ndarray]:
    """Ratio of divergences for each kind, N and epsilon: one array entry per population."""
    ratios: dict[tuple[str, int, float], np.ndarray] = {}
    for kind in tqdm(KINDS, desc=fit.__name__):
        drawn = [make_population(kind, seed=seed, index=index) for index in range(populations)]
        uniform = [LogLinearModel(p.model.cliques, np.zeros(p.model.cliques.n_cells)) for p in drawn]
        for n, epsilon in POINTS:
            values = []
            for population, flat in zip(drawn, uniform, strict=True):
                counts = sample_counts(population.model, n, population.rng("records", n))
                rng = population.rng("noise", n, round(1e6 * epsilon), 0)
                noisy = noisy_tables(population.model.cliques, counts, epsilon, rng, total=n)
                learned = kl_divergence(population.model, fit(noisy).model)
                values.append(learned / kl_divergence(population.model, flat))
            ratios[kind, n, epsilon] = np.array(values)
    return ratios


def _report(ratios: dict[str, dict[tuple[str, int, float], np.ndarray]], command: str) -> str:
    lines = ["# Weak releases", "", f"Made by `{command}`", "", f"on {describe_machine()}.", ""]
    everything = {name: np.concatenate(list(table.values())) for name, table in ratios.items()}
    count = len(next(iter(everything.values())))
    lines += [f"KL(true || fitted) / KL(true || uniform) on {count} releases; below 1 is better than no data.", ""]
    rows = [
        [
            name,
            f"{np.exp(np.log(values).mean()):.4f}",
            *(str(int((values > bound).sum())) for bound in (1.0, 1.02, 1.1)),
            f"{values.max():.4f}",
        ]
        for name, values in everything.items()
    ]
    lines.append(markdown_table(["method", "geometric mean", "above 1", "above 1.02", "above 1.1", "largest"], rows))
    lines += ["", "CollectiveMAP, geometric mean [smallest, largest]:", ""]
    rows = []
    for kind, label in KINDS.items():
        cells = [ratios["CollectiveMAP"][kind, *point] for point in POINTS]
        rows.append([label, *(f"{np.exp(np.log(c).mean()):.4f} [{c.min():.4f}, {c.max():.4f}]" for c in cells)])
    lines.append(markdown_table(["population", *(f"N = {n:,}, epsilon = {e:g}" for n, e in POINTS)], rows))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

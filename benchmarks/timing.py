"""Seconds and peak memory of a fit, CollectiveMAP and its rivals in the same run.

::

    python -m benchmarks.timing --out benchmarks/results

Seconds: one process, one thread; in each repetition every method fits the same noisy tables once, one
after the other, so that a slow spell of the machine hits all of them; medians over repetitions, and the
ratios are medians of the ratios within a repetition. JAX has compiled everything before.
First call and memory: a new process for each method, which fits twice: the first call holds mbi's
compilation. Memory is the peak resident size while fitting, above the size just before (Linux only).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, peak_rss, reset_peak_rss, resident, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy and jax are imported

import numpy as np
from tqdm import tqdm

from benchmarks.methods import LABELS, METHODS, Problem
from benchmarks.populations import KINDS, make_population, noisy_tables, sample_counts
from benchmarks.report import markdown_table

_METHODS = ("naive_1e-3", "naive", "em", "em_published", "map", "mbi_l2_100", "mbi_l2_1000", "mbi_l1_1000")
_COLD = ("naive", "em", "map", "mbi_l2_1000", "mbi_l1_1000", "mbi_lbfgs_l2")
_CASES = (("chain1", 10), ("er", 10), ("chain3", 10), ("chain3", 20))  # at 20 states only on the middle point
_POINTS = ((10_000, 0.1), (100_000, 0.5), (1_000_000, 1.0))
_MEMORY_POINT = (100_000, 0.5)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing", description="Seconds and memory of a fit.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=20261121, help="default: %(default)s")
    parser.add_argument("--repetitions", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--small", action="store_true", help="leave out the third-order chain with 20 states")
    parser.add_argument("--worker", nargs=2, metavar=("METHOD", "TABLES"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(_fit_in_this_process(options.worker[0], Path(options.worker[1]))))
        return
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    cases = _CASES[:3] if options.small else _CASES
    command = shlex.join(["python", "-m", "benchmarks.timing", *(arguments or sys.argv[1:])])
    warm_tables, cold_rows = [], []
    for kind, n_states in tqdm(cases, unit="case"):
        warm_tables.append(_warm(kind, n_states, options.seed, options.repetitions))
        cold_rows += _cold(kind, n_states, options.seed)
    cold_head = ["case", "method", "first call, s", "second call, s", "peak memory of the fit, MB", "process peak, MB"]
    text = [
        "# Seconds and memory of a fit",
        f"Made by `{command}`",
        f"on {describe_machine()}; one thread on one core. Seed {options.seed}. Other processes: load "
        f"average {os.getloadavg()[2]:.1f} over the last 15 minutes, of which this run is 1.",
        f"## Compiled, interleaved: medians of {options.repetitions} repetitions\n\nThe last columns divide "
        "CollectiveMAP's time by another method's within each repetition.",
        *warm_tables,
        "## First call with compilation, and memory\n\nN = 100,000, epsilon = .5; a new process for each row. "
        "Imports are not counted in the seconds. Memory of the fit is the peak resident size above that before "
        "the first call (for mbi it holds the compiler's); the last column is the whole process with its imports.",
        markdown_table(cold_head, cold_rows),
    ]
    (out / "timing.md").write_text("\n\n".join(text) + "\n")
    print(f"wrote {out / 'timing.md'}")


def _problem(kind: str, n_states: int, n_records: int, epsilon: float, seed: int) -> Problem:
    population = make_population(kind, seed=seed, index=0, n_states=n_states)
    counts = sample_counts(population.model, n_records, population.rng("records", n_records))
    cliques = population.model.cliques
    noisy = noisy_tables(cliques, counts, epsilon, population.rng("noise"), total=n_records)
    return Problem.with_truth(population.model, counts, noisy)


def _warm(kind: str, n_states: int, seed: int, repetitions: int) -> str:
    ratios = ("naive", "mbi_l2_1000")
    body = []
    for n_records, epsilon in _POINTS if n_states <= 10 else _POINTS[1:2]:
        problem = _problem(kind, n_states, n_records, epsilon, seed)
        for method in _METHODS:
            if method in ("mbi_l2_100", "mbi_l1_1000"):  # compiles; 100 and 1000 iterations are one program
                METHODS[method](problem)
        seconds = {m: [] for m in _METHODS}
        for _ in range(repetitions):
            for method in _METHODS:
                seconds[method].append(METHODS[method](problem).seconds)
        over = [np.median(np.divide(seconds["map"], seconds[rival])) for rival in ratios]
        cells = [f"{np.median(seconds[m]):.3g}" for m in _METHODS]
        body.append([f"{n_records:.0e}", f"{epsilon:g}", *cells, *(f"{ratio:.2f}" for ratio in over)])
    head = ["N", "epsilon", *(LABELS[m] for m in _METHODS), *(f"CollectiveMAP / {LABELS[r]}" for r in ratios)]
    return f"### {KINDS[kind]}, K = {n_states}\n\n" + markdown_table(head, body)


def _cold(kind: str, n_states: int, seed: int) -> list[list[str]]:
    problem = _problem(kind, n_states, *_MEMORY_POINT, seed)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "tables.npz"
        _save(problem, tables)
        for method in _COLD:
            if n_states > 10 and "lbfgs" in method:
                continue  # minutes, and slower than mirror descent everywhere
            command = [sys.executable, "-m", "benchmarks.timing", "--worker", method, str(tables)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            result = json.loads(done.stdout.splitlines()[-1])
            rows.append(
                [f"{KINDS[kind]}, K = {n_states}", LABELS[method], f"{result['first']:.3g}", f"{result['second']:.3g}",
                 f"{result['fit_bytes'] / 2**20:.0f}", f"{result['peak_bytes'] / 2**20:.0f}"]
            )  # fmt: skip
    return rows


def _save(problem: Problem, path: Path) -> None:
    cliques = problem.noisy.cliques
    scopes = json.dumps([cliques.variables, cliques.cardinalities, cliques.scopes])
    noisy = problem.noisy
    np.savez(path, scopes=scopes, counts=problem.counts, noisy=noisy.counts, scale=noisy.scale, total=noisy.total)


def _fit_in_this_process(method: str, path: Path) -> dict[str, float]:
    from pgmpy_dp.inference.cliques import Cliques
    from pgmpy_dp.learning.noisy_marginals import NoisyMarginals

    with np.load(path) as arrays:
        cliques = Cliques(*json.loads(str(arrays["scopes"])))
        noisy = NoisyMarginals(cliques, arrays["noisy"], "laplace", arrays["scale"], float(arrays["total"]))
        problem = Problem(arrays["counts"], noisy, lambda _: 0.0)
    if method.startswith("mbi"):
        from benchmarks.mbi_adapter import import_mbi

        import_mbi()  # importing is not fitting
    before = resident()
    reset_peak_rss()
    first = METHODS[method](problem).seconds
    peak = peak_rss()
    second = METHODS[method](problem).seconds
    return {"first": first, "second": second, "fit_bytes": peak - before, "peak_bytes": peak}


if __name__ == "__main__":
    main()

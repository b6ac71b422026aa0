"""CollectiveMAP against eight variants of mbi where interactions are weak and graphs small; and around prior models.

::

    python -m benchmarks.weak_grids --out benchmarks/results

Grids whose edges have the logarithms of a Dirichlet(4) draw as potentials, 20,000 records, discrete Laplace noise.
"Best mbi" takes the best of its variants on each draw by looking at the truth. A run that was stopped goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import networkx as nx
import numpy as np
from tqdm import tqdm

from benchmarks.divergence import kl_divergence
from benchmarks.folders import raw_folder
from benchmarks.methods import LABELS, MBI_ALL, METHODS, Problem
from benchmarks.populations import noisy_tables, sample_counts
from benchmarks.report import markdown_table
from pgmpy_dp.inference.cliques import Cliques
from pgmpy_dp.inference.log_linear import LogLinearModel
from pgmpy_dp.learning.maximum_a_posteriori import collective_map
from pgmpy_dp.learning.noisy_marginals import NoisyMarginals
from pgmpy_dp.learning.prior_model import collective_map_with_prior

SEED = 20261203
GRIDS = ((2, 3), (3, 3), (4, 4))
STATES = (2, 3, 5)
EPSILONS = (0.2, 1.0)
N = 20_000
PRIOR_POINTS = ((1_000, 0.1), (1_000, 1.0), (20_000, 0.02), (20_000, 0.2), (20_000, 1.0), (1_000_000, 1.0))
PRIORS = ("the truth", "last year", "half of the edges", "another model", "opposite", "twice as strong")


def make_grid(rows: int, columns: int, states: int, index: int, seed: int = SEED) -> LogLinearModel:
    """A population."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, columns))
    cliques = Cliques.from_graph(graph, dict.fromkeys(graph, states))
    rng = np.random.default_rng([seed, rows, columns, states, index])
    tables = [np.log(rng.dirichlet(np.full(size, 4.0))) for size in cliques.sizes]
    return LogLinearModel(cliques, np.concatenate(tables))


def release(
    truth: LogLinearModel, n: int, epsilon: float, index: int, seed: int = SEED
) -> tuple[np.ndarray, NoisyMarginals]:
    """Tables of records drawn from a population, exact and noisy."""
    rng = np.random.default_rng([seed, index, n, round(1e6 * epsilon), truth.cliques.n_cells])
    counts = sample_counts(truth, n, rng)
    return counts, noisy_tables(truth.cliques, counts, epsilon, rng, total=n)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.weak_grids", description="Weak interactions; priors.")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--populations", type=int, default=2, help="of each grid and number of states")
    parser.add_argument(
        "--methods", nargs="+", default=["naive", "map", *MBI_ALL], choices=tuple(METHODS), metavar="METHOD"
    )
    parser.add_argument("--priors-only", action="store_true", help="without mbi: what priors gain and cost")
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "benchmarks.weak_grids", *(arguments or sys.argv[1:])])
    folder = Path(options.out)
    if not options.priors_only:
        if find_spec("mbi") is None and any(method.startswith("mbi") for method in options.methods):
            parser.error("mbi is not installed: pip install 'pgmpy_dp[bench]', or name other --methods")
        rows = _compare(raw_folder(folder) / "weak-grids.jsonl", options.methods, options.populations)
        (folder / "weak-grids.md").write_text(_report(rows, command))
    found = _priors(options.populations)
    (folder / "priors.md").write_text(_report_priors(found, command))


def _compare(path: Path, methods: Sequence[str], populations: int) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["grid"], row["states"], row["epsilon"], row["population"], row["method"]) for row in rows}
    todo = [
        (rows_, columns, states, epsilon, index, method)
        for method in methods
        for rows_, columns in GRIDS
        for states in STATES
        for index in range(populations)
        for epsilon in EPSILONS
    ]
    with path.open("a") as stream:
        for r, c, states, epsilon, index, method in tqdm(todo):
            if (f"{r} x {c}", states, epsilon, index, method) in done:
                continue
            truth = make_grid(r, c, states, index)
            problem = Problem.with_truth(truth, *release(truth, N, epsilon, index))
            outcome = METHODS[method](problem)
            row = {"grid": f"{r} x {c}", "states": states, "epsilon": epsilon, "population": index, "method": method}
            rows.append({**row, "kl": problem.loss(outcome.theta), "seconds": outcome.seconds})
            stream.write(json.dumps(rows[-1]) + "\n")
            stream.flush()
    return rows


def _report(rows: list[dict[str, Any]], command: str) -> str:
    draws: dict[tuple, dict[str, float]] = {}
    for row in rows:
        draws.setdefault((row["grid"], row["states"], row["epsilon"], row["population"]), {})[row["method"]] = row["kl"]
    lines = ["# Weak interactions on small grids", "", f"Made by `{command}`", "", f"on {describe_machine()}.", ""]
    lines += [
        f"Dirichlet(4) potentials, N = {N:,}, seed {SEED}. CollectiveMAP's divergence over the best mbi of all",
        "",
    ]
    variants = [m for m in MBI_ALL if any(m in found for found in draws.values())]
    lines[-2] += (
        f" {len(variants)} variants on each draw (an oracle), over the better of L1 and L2 at 1000 iterations, and"
    )
    lines[-2] += " over NaiveMLE: geometric mean [largest]."
    table = []
    keys = sorted({(grid, states, epsilon) for grid, states, epsilon, _ in draws})
    everything: list[tuple[float, float, float]] = []
    for key in keys:
        ratios = []
        for draw, found in draws.items():
            if draw[:3] == key and "map" in found and any(m in found for m in variants):
                best = min(found[m] for m in variants if m in found)
                usual = min(found.get(m, np.inf) for m in ("mbi_l1_1000", "mbi_l2_1000"))
                ratios.append((found["map"] / best, found["map"] / usual, found["map"] / found.get("naive", np.nan)))
        everything += ratios
        table.append([f"{key[0]}, {key[1]} states", f"{key[2]:g}", *map(_told, zip(*ratios, strict=True))])
    table.append(["all", "", *map(_told, zip(*everything, strict=True))])
    lines += ["", markdown_table(["population", "epsilon", "best mbi", "mbi at 1000", "NaiveMLE"], table), ""]
    counts = {LABELS[m]: sum(m in found for found in draws.values()) for m in variants}
    lines.append(f"Draws: {len(draws)}. Of them with " + ", ".join(f"{name}: {k}" for name, k in counts.items()) + ".")
    return "\n".join(lines) + "\n"


def _told(values: Sequence[float]) -> str:
    return f"{np.exp(np.log(values).mean()):.3f} [{max(values):.3f}]"


def _prior_tables(truth: LogLinearModel, name: str, index: int) -> list[np.ndarray]:
    cliques, rng = truth.cliques, np.random.default_rng([SEED, 1, index])
    theta = truth.theta.copy()
    if name == "last year":
        counts = sample_counts(truth, N, rng)
        theta = collective_map(noisy_tables(cliques, counts, 1.0, rng, total=N)).model.theta
    elif name in ("another model", "half of the edges"):
        other = np.log(np.concatenate([rng.dirichlet(np.full(size, 4.0)) for size in cliques.sizes]))
        for k in range(0, cliques.n_cliques, 1 if name == "another model" else 2):
            theta[cliques.slices[k]] = other[cliques.slices[k]]
    elif name != "the truth":
        theta *= {"opposite": -1.0, "twice as strong": 2.0}[name]
    return cliques.split(LogLinearModel(cliques, theta).marginals())


def _priors(populations: int) -> dict[str, dict[tuple, list[tuple[float, bool]]]]:
    found: dict[str, dict[tuple, list[tuple[float, bool]]]] = {name: {} for name in PRIORS}
    for index in tqdm(range(populations)):
        for (rows, columns), states in (((3, 3), 3), ((3, 3), 5), ((4, 4), 2)):
            truth = make_grid(rows, columns, states, 100 + index)
            tables = {name: _prior_tables(truth, name, index) for name in PRIORS}
            for n, epsilon in PRIOR_POINTS:
                _, noisy = release(truth, n, epsilon, 100 + index)
                alone = kl_divergence(truth, collective_map(noisy).model)
                for name in PRIORS:
                    fit = collective_map_with_prior(noisy, tables[name])
                    ratio = kl_divergence(truth, fit.model) / alone
                    found[name].setdefault((n, epsilon), []).append((ratio, "base" in fit.details))
    return found


def _report_priors(found: dict[str, dict[tuple, list[tuple[float, bool]]]], command: str) -> str:
    lines = ["# What priors gain and cost", "", f"Made by `{command}`", "", f"on {describe_machine()}.", ""]
    lines += [
        "CollectiveMAP's divergence from the truth with a prior over that without: geometric mean [largest], and on",
        "",
    ]
    lines[-2] += f" what share of the draws the prior was used. Grids with Dirichlet(4) potentials, seed {SEED}."
    table = []
    for name, points in found.items():
        cells = []
        for values in (*points.values(), [value for draws in points.values() for value in draws]):
            ratios, used = zip(*values, strict=True)
            cells.append(f"{_told(ratios)}, {100 * np.mean(used):.0f} %")
        table.append([name, *cells])
    columns = ["prior", *(f"N = {n:,}, epsilon = {epsilon:g}" for n, epsilon in PRIOR_POINTS), "all"]
    return "\n".join([*lines, "", markdown_table(columns, table)]) + "\n"


if __name__ == "__main__":
    main()

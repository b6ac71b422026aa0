"""How often the intervals of a learned network hold on real tables, for what people ask and was not measured.

::

    python -m benchmarks.coverage_network --tables nltcs pages adult mushrooms --out benchmarks/results

The table is taken as the population: for each run as many records are drawn from it with replacement, `learn` learns
from them, and intervals of level .9 are compared with the table. Asked are all pairs of variables (100 at most, drawn
at random), random triples, and the distribution of a variable given one and two others, whose states are those of a
random record. Coverage is a mean over queries of the share of their cells that is inside. "none" is the same posterior
with the graph taken for the truth. "factor" is what all intervals of a kind would have to be multiplied by to cover .9:
above 1 they are too narrow, below 1 they are as much wider than they would be if the size of the error were known.

With ``--workload 12`` `learn` is told so many random triples as its workload, and asked about nothing that is not
within them. ``--resume`` keeps what earlier runs with the same settings have measured.

Seeds up to 99 were used to choose the method; those quoted are above.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare_tables import TABLES, Table
from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import PrivateNetwork
from pgmpy_dp.models.posterior.query_intervals import Question, query_intervals
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

KINDS = {"pairs": (2, 0), "triples": (3, 0), "P(a given b)": (2, 1), "P(a given b, c)": (3, 2)}
"""Variables in a query, and how many of them are known."""

LEVEL = 0.9
_MOST_CELLS = 5_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage_network", description="Coverage of intervals.")
    parser.add_argument(
        "--tables", nargs="+", choices=list(TABLES), default=["nltcs", "pages", "adult", "mushrooms", "stays"]
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[101, 102, 103])
    parser.add_argument("--workload", type=int, default=0, help="triples that `learn` is told to serve (default: none)")
    parser.add_argument("--resume", action="store_true", help="go on where an earlier run ended")
    parser.add_argument("--queries", type=int, default=60, help="of each kind, in each run (default: %(default)s)")
    parser.add_argument("--draws", type=int, default=30, help="of the posterior (default: %(default)s)")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    config.set_show_progress(False)
    file, rows = raw_folder(out) / "coverage-network.jsonl", []
    if options.resume and file.exists():
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    done = {(row["table"], row["epsilon"], row["seed"], row["workload"]) for row in rows}
    for epsilon, seed, name in itertools.product(options.epsilons, options.seeds, options.tables):
        if (name, epsilon, seed, options.workload) in done:
            continue
        try:
            table = TABLES[name].read()
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}")
            continue
        rows += measure(name, table, epsilon, seed, options.queries, options.draws, options.workload)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = shlex.join(["python", "-m", "benchmarks.coverage_network", *(arguments or sys.argv[1:])])
    (out / "coverage-network.md").write_text(report(rows, command))
    print(f"wrote {out / 'coverage-network.md'}")


def measure(
    name: str, table: Table, epsilon: float, seed: int, queries: int, draws: int, workload: int = 0
) -> list[dict]:
    """One fit, and what its intervals say of queries of each kind.

    Returns
    -------
    list of dict
        For each kind: "table", "epsilon", "seed", "workload" (triples in it), "kind", "cover", "none", "width",
        "factor", "error" (mean absolute error of a cell), and "seconds" of the fit and of the draws.
    """
    rng = np.random.default_rng([seed, round(1000 * epsilon)])
    n, states = len(table.codes), {v: list(range(k)) for v, k in zip(table.names, table.cardinalities, strict=True)}
    records = pd.DataFrame(table.codes[rng.integers(0, n, n)], columns=list(table.names))
    wanted = _scopes(table, 3, workload, rng)
    told = {"workload": [tuple(table.names[i] for i in scope) for scope in wanted]} if wanted else {}
    clock = [time.process_time()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        estimator = PrivateNetwork(epsilon, 1e-9, state_names=states, random_state=seed, **told).fit(records)
    clock.append(time.process_time())
    posterior = estimator.posterior(draws, random_state=seed)
    clock.append(time.process_time())
    assert posterior.model is not None
    assert posterior.discrepancy is not None
    rows = []
    for kind, (order, known) in KINDS.items():
        found = []
        for scope in _scopes(table, order, queries, rng, wanted):
            names, record = [table.names[i] for i in scope], table.codes[rng.integers(n)]
            sizes = {v: table.cardinalities[i] for v, i in zip(names, scope, strict=True)}
            given = {v: np.eye(sizes[v])[[record[i]] * 3] for v, i in zip(names, scope, strict=True)}
            asked = Question.about(
                {v: sizes[v] for v in names[: order - known]}, {v: given[v] for v in names[order - known :]}
            )
            truth, answers = _exact(table, scope, asked), asked.answers([posterior.draws.query(names)])
            own = query_intervals(posterior.model.marginal(names), answers, asked, scope, posterior.discrepancy, LEVEL)
            narrow = posterior.draws.interval_of(answers, LEVEL)
            inside, inside_alone = (
                (each.lower.ravel() <= truth + 1e-12) & (truth <= each.upper.ravel() + 1e-12) for each in (own, narrow)
            )
            error = np.abs(own.estimate.ravel() - truth)
            half = np.maximum(own.upper - own.lower, 1e-9).ravel() / 2
            found.append((inside.mean(), inside_alone.mean(), 2 * half.mean(), error.mean(), list(error / half)))
        # One cell of each query: the cells of one query are hit or missed together.
        ratios = [ratio[rng.integers(len(ratio))] for *_, ratio in found]
        rows.append({
            "table": name, "epsilon": epsilon, "seed": seed, "workload": workload, "kind": kind,
            "cover": float(np.mean([f[0] for f in found])), "none": float(np.mean([f[1] for f in found])),
            "width": float(np.mean([f[2] for f in found])), "error": float(np.mean([f[3] for f in found])),
            "factor": float(np.quantile(ratios, LEVEL)),
            "seconds": [clock[1] - clock[0], clock[2] - clock[1]],
        })  # fmt: skip
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def _scopes(
    table: Table, order: int, queries: int, rng: np.random.Generator, within: Sequence[tuple[int, ...]] = ()
) -> list[tuple[int, ...]]:
    """Different variables in random order, whose tables are not too large; each time within one of some sets."""
    found: list[tuple[int, ...]] = []
    for _ in range(50 * queries):
        among = within[rng.integers(len(within))] if within else len(table.names)
        scope = tuple(rng.choice(among, order, replace=False).tolist())
        if math.prod(table.cardinalities[i] for i in scope) <= _MOST_CELLS:
            found.append(scope)
        if len(found) == queries:
            break
    return found


def _exact(table: Table, scope: Sequence[int], asked: Question) -> np.ndarray:
    shape = [table.cardinalities[i] for i in scope]
    cells = np.ravel_multi_index(tuple(table.codes[:, list(scope)].T), shape)
    shares = np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(table.codes)
    return asked.answer(shares).ravel()


def report(rows: list[dict], command: str) -> str:
    """The page of results."""
    body = []
    groups = dict.fromkeys((row["table"], row["workload"], row["epsilon"]) for row in rows)
    for name, workload, epsilon in sorted(groups, key=lambda group: (group[1], list(TABLES).index(group[0]), group[2])):
        own = [row for row in rows if (row["table"], row["workload"], row["epsilon"]) == (name, workload, epsilon)]
        cells = []
        for kind in KINDS:
            of = [row for row in own if row["kind"] == kind]
            none, cover, factor = (np.mean([row[part] for row in of]) for part in ("none", "cover", "factor"))
            cells.append(f"{none:.2f}, **{cover:.2f}** ({factor:.2f})")
        seconds, seeds = np.mean([row["seconds"] for row in own], axis=0), {row["seed"] for row in own}
        label = TABLES[name].label + (f", {workload} triples" if workload else "")
        overall = f"{np.mean([row['cover'] for row in own]):.2f}"
        body.append([label, f"{epsilon:g}", str(len(seeds)), *cells, overall, f"{seconds[0]:.1f} + {seconds[1]:.1f}"])
    for workload in sorted({row["workload"] for row in rows}):
        asked, means = [row for row in rows if row["workload"] == workload], []
        for kind in KINDS:
            of = [row for row in asked if row["kind"] == kind]
            means.append(f"{np.mean([r['none'] for r in of]):.2f}, **{np.mean([r['cover'] for r in of]):.2f}**")
        label = "all" + (f", {workload} triples" if workload else "")
        body.append([label, "", "", *means, f"{np.mean([row['cover'] for row in asked]):.2f}", ""])
    parts = [
        "# Intervals of learned networks on real tables",
        f"Made by `{command}`",
        f"on {describe_machine()}.",
        "Coverage of intervals of level .9: with the graph taken for the truth, **with probes**, and in brackets what "
        "the latter would have to be multiplied by to cover .9. Delta is 1e-9, add_remove, the record count private. "
        "Seconds of processor time: fit + draws. What is asked is in `benchmarks/coverage_network.py`.",
        markdown_table(["table", "epsilon", "seeds", *KINDS, "mean", "seconds"], body),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()

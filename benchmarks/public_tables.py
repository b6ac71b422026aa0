"""Models that agree exactly with public tables, beside the models from the same noisy tables without them.

::

    python -m benchmarks.public_tables --out benchmarks/results

Eight columns of Adult on a public graph of nine pairs. Public are the table of age and sex, which no pair of the graph
has, and that of race, as exact counts of the same people: a register's. Each release is fitted twice, as it is and with
the public tables. Errors are half the sum of absolute differences to the table of the records. A run that was stopped
goes on where it stopped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread()  # before numpy is imported

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy import config

from benchmarks.compare_tables import TABLES
from benchmarks.folders import raw_folder
from benchmarks.report import markdown_table
from pgmpy_dp.estimators import CollectiveMAP
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

NAMES = ("age", "education", "marital-status", "occupation", "race", "sex", "hours-per-week", "income")
GRAPH = nx.Graph(
    [
        ("education", "occupation"),
        ("occupation", "sex"),
        ("marital-status", "sex"),
        ("income", "education"),
        ("income", "marital-status"),
        ("age", "marital-status"),
        ("race", "income"),
        ("hours-per-week", "occupation"),
        ("age", "income"),
    ]
)
PUBLIC = (("age", "sex"), ("race",))
EPSILONS, SEEDS, DELTA = (0.03, 0.1, 0.3, 1.0), tuple(range(641, 647)), 1e-9


def trial(codes: np.ndarray, sizes: Sequence[int], epsilon: float, seed: int) -> list[dict]:
    """Errors of both models of one release, and of records drawn from each."""
    states = {name: list(range(size)) for name, size in zip(NAMES, sizes, strict=True)}
    records, pairs = pd.DataFrame(codes, columns=list(NAMES)), list(itertools.combinations(NAMES, 2))

    def table(drawn: np.ndarray, scope: Sequence[str]) -> np.ndarray:
        at = [NAMES.index(name) for name in scope]
        counts = np.zeros([sizes[k] for k in at], dtype=np.int64)
        np.add.at(counts, tuple(drawn[:, at].T), 1)
        return counts

    truth = [table(codes, pair) / len(codes) for pair in pairs]
    public = {scope: table(codes, scope) for scope in PUBLIC}
    without = CollectiveMAP(epsilon=epsilon, delta=DELTA, state_names=states, random_state=seed).fit(GRAPH, records)
    start = time.process_time()
    exact = CollectiveMAP(state_names=states, public=public, public_from="elsewhere")
    exact.fit_release(GRAPH, without.release_)
    seconds = time.process_time() - start
    rows = []
    for label, model in (("without", without.model_), ("with public tables", exact.model_)):
        row = {"epsilon": epsilon, "seed": seed, "model": label}
        method = "agreeing" if model is exact.model_ else "stratified"
        sample = model.sample(len(codes), random_state=seed, method=method)[list(NAMES)].to_numpy()
        found = {"model": model.to_log_linear().marginals_of(pairs)}
        found["sample"] = [table(sample, pair) / len(sample) for pair in pairs]
        for what, tables in found.items():
            error = {pair: np.abs(a - b).sum() / 2 for pair, a, b in zip(pairs, tables, truth, strict=True)}
            row[f"pairs of the {what}"] = float(np.mean(list(error.values())))
            if what == "model":
                row["age, sex"] = float(error["age", "sex"])
                row["in the graph"] = float(np.mean([one for p, one in error.items() if GRAPH.has_edge(*p)]))
                beside = [one for p, one in error.items() if not GRAPH.has_edge(*p) and p != PUBLIC[0]]
                row["other pairs"] = float(np.mean(beside))
        row["records moved"] = max(int(np.abs(table(sample, scope) - public[scope]).sum() // 2) for scope in PUBLIC)
        rows.append({**row, "seconds": seconds})
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_tables", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    options = parser.parse_args(arguments)
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    adult = TABLES["adult"].read()
    at = [adult.names.index(name) for name in NAMES]
    codes, sizes = adult.codes[:, at], [adult.cardinalities[k] for k in at]
    path = raw_folder(Path(options.out)) / "public-tables.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for epsilon, seed in itertools.product(options.epsilons, options.seeds):
        if not any((row["epsilon"], row["seed"]) == (epsilon, seed) for row in rows):
            rows += (made := trial(codes, sizes, epsilon, seed))
            with path.open("a") as stream:
                stream.writelines(json.dumps(row) + "\n" for row in made)
    command = shlex.join(["python", "-m", "benchmarks.public_tables", *(arguments or sys.argv[1:])])
    (Path(options.out) / "public-tables.md").write_text(page(rows, command))


def page(rows: Sequence[dict], command: str) -> str:
    """The means over seeds, as a page of results, and in how many draws the public tables helped."""
    frame = pd.DataFrame(rows)
    columns = ["pairs of the model", "pairs of the sample", "age, sex", "in the graph", "other pairs", "records moved"]
    means = frame.groupby(["epsilon", "model"])[columns].mean()
    table = [
        [f"{epsilon:g}", label, *(f"{one:.4f}" for one in row[:-1]), f"{row.iloc[-1]:.0f}"]
        for (epsilon, label), row in means.iterrows()
    ]
    wide = frame.pivot_table(index=["epsilon", "seed"], columns="model", values="pairs of the model")
    better = (wide["with public tables"] < wide["without"]).groupby("epsilon").agg(["sum", "size"])
    told = ", ".join(f"{one['sum']} of {one['size']} at {epsilon:g}" for epsilon, one in better.iterrows())
    text = [
        *("# Public tables", "", f"`{command}`", "", describe_machine(), ""),
        f"Adult, 8 columns, 28 pairs; public are the tables of age and sex, and of race; delta {DELTA:g}. Means over "
        f"the seeds {sorted(set(frame['seed']))}, on which nothing was chosen. Half the sum of absolute differences, "
        "of the model's tables or of as many drawn records (`agreeing` with public tables, else `stratified`); "
        "records moved: how many drawn records would have to change for both public tables, of 48,842.",
        *("", markdown_table(("epsilon", "model", *columns), table), ""),
        f"The public tables made the mean of all pairs better in {told} draws. A fit with them took "
        f"{frame['seconds'].mean():.1f} s of processor time.",
        "",
    ]
    return "\n".join(text)


if __name__ == "__main__":
    main()

"""Time and memory of `learn` on binary columns: 16 to 1,000 of them, 100,000 records.

The records are made up: a random tree of columns, half of which also depend on a second one together with the first.

    python -m benchmarks.learn_scale --columns 16 50 100

Each size runs in a process of its own, which measures its processor time and its largest memory. What does not end in
the time that is given is listed as such. Results are appended to benchmarks/results/learn-scale.md.

    python -m benchmarks.learn_scale --beside FOLDER [--cases D C]

runs `learn` of this checkout and of another one in turn on four tables, and appends the rows to
benchmarks/results/learn-beside.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "learn-scale.md"
HEAD = """# Time and memory of `learn` on many columns

Binary columns, 100,000 made-up records, (epsilon, delta) = (1, 1e-9). `python -m benchmarks.learn_scale`; a process of
one thread for each row. Processor time of the search (rounds, with their fits) and of the fit at the end; the largest
memory of the process. Total variation of the model to the records, mean
over pairs (of 500 and 1,000 columns, over 20,000 of them) and over 2,000 random triples.

| columns | tables | fits | search | final fit | memory | pairs | triples | largest clique |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def made_up(p: int, n: int, seed: int) -> pd.DataFrame:
    """Binary columns from a random tree, half of them with a triple interaction."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n, p), dtype=np.int8)
    x[:, 0] = rng.random(n) < 0.4
    for i in range(1, p):
        first, second = rng.integers(max(0, i - 20), i, 2)
        one = 2.0 * x[:, first] - 1
        field = rng.normal(-0.3, 0.6) + rng.normal(0, 1.6) * one
        if rng.random() < 0.5:
            field += rng.normal() * one * (2.0 * x[:, second] - 1)
        x[:, i] = rng.random(n) < 1 / (1 + np.exp(-field))
    return pd.DataFrame(x, columns=[f"v{i}" for i in range(p)])


BESIDE = RESULTS.with_name("learn-beside.md")
CASES = {
    "A": "1,000,000 made-up records of 20 columns, 2 to 6 states; epsilon 1",
    "B": "10,000 made-up records of 80 columns, 2 to 5 states; epsilon 1",
    "C": "3,563 records of COMPAS, 14 columns; epsilon 10",
    "D": "14,000 made-up records of 100 binary columns; epsilon 1",
}
"""Of `--beside`; delta is 1e-9."""


def several_states(p: int, n: int, seed: int, sizes: tuple[int, ...]) -> tuple[np.ndarray, list[int]]:
    """Columns of several states, each by one or two of the six before it; and their numbers of states."""
    rng = np.random.default_rng(seed)
    states, x = rng.choice(sizes, p), np.zeros((n, p), dtype=np.int16)
    for i in range(p):
        logits = np.tile(rng.normal(0, 0.8, states[i]), (n, 1))
        if i:
            first, second = rng.integers(max(0, i - 6), i, 2)
            logits += rng.normal(0, 1.2, (states[first], states[i]))[x[:, first]]
            if rng.random() < 0.6:
                both = rng.normal(0, 0.9, (states[first], states[second], states[i]))
                logits += both[x[:, first], x[:, second]]
        x[:, i] = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    return x, states.tolist()


def case(name: str) -> tuple[np.ndarray, list[int], float]:
    """Records of one of `CASES`, numbers of states, and epsilon."""
    if name == "A":
        return *several_states(20, 1_000_000, 1, (2, 3, 4, 5, 6)), 1.0
    if name == "B":
        return *several_states(80, 10_000, 2, (2, 2, 3, 4, 5)), 1.0
    if name == "D":
        return made_up(100, 14_000, 3).to_numpy(), [2] * 100, 1.0
    from benchmarks.compare_tables import compas

    table = compas()
    some = np.random.default_rng(0).permutation(len(table.codes))[:3563]
    return table.codes[some, :14], list(table.cardinalities[:14]), 10.0


def learn_once(path: str, seed: int) -> dict:
    """Learn from a stored table by the version on the path: processor time, and the errors of pairs and of triples."""
    from pgmpy_dp import Budget, learn

    warnings.simplefilter("ignore")  # of seeded noise
    with np.load(path) as stored:
        codes, sizes, epsilon = stored["codes"], stored["sizes"].tolist(), float(stored["epsilon"])
    frame = pd.DataFrame(codes, columns=[f"v{i}" for i in range(len(sizes))])
    schema = {name: list(range(k)) for name, k in zip(frame, sizes, strict=True)}
    start = time.process_time()
    learned = learn(frame, Budget(epsilon=epsilon, delta=1e-9), schema=schema, random_state=seed)
    result = {"seconds": time.process_time() - start}
    model, rng = learned.model_.to_log_linear(), np.random.default_rng(0)
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    pairs = [pairs[k] for k in rng.permutation(len(pairs))[:500]]
    triples = [tuple(sorted(rng.choice(len(sizes), 3, replace=False).tolist())) for _ in range(300)]
    for what, scopes in (("pairs", pairs), ("triples", triples)):
        tables = model.marginals_of([tuple(frame.columns[list(scope)]) for scope in scopes])
        errors = []
        for scope, table in zip(scopes, tables, strict=True):
            cells = np.ravel_multi_index(codes[:, list(scope)].T, [sizes[i] for i in scope])
            exact = np.bincount(cells, minlength=table.size) / len(codes)
            errors.append(0.5 * np.abs(exact - np.ravel(table)).sum())
        result[what] = float(np.mean(errors))
    return result


def beside(folder: str, cases: list[str], seeds: list[int]) -> None:
    """Measure both versions in turn."""
    here = Path(__file__).resolve().parent.parent
    for name in cases:
        codes, sizes, epsilon = case(name)
        with tempfile.TemporaryDirectory() as place:
            path = str(Path(place) / "table.npz")
            np.savez(path, codes=codes, sizes=sizes, epsilon=epsilon)
            for seed in seeds:
                rows = []
                for version in (folder, str(here)):
                    command = [sys.executable, __file__, "--stored", path, "--seed", str(seed)]
                    once = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": version}
                    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | once)
                    rows.append(json.loads(done.stdout.splitlines()[-1]))
                old, new = rows
                row = f"| {CASES[name]} | {seed} | {old['seconds']:.1f} s | {new['seconds']:.1f} s | "
                row += f"{new['seconds'] / old['seconds']:.2f} | {old['pairs']:.5f} | {new['pairs']:.5f} | "
                row += f"{old['triples']:.5f} | {new['triples']:.5f} |"
                print(row, flush=True)
                with BESIDE.open("a") as out:
                    out.write(row + "\n")


def measure(p: int, n: int, seed: int) -> dict:
    """Learn once, and say what it took."""
    from pgmpy_dp import Budget, PrivateTable
    from pgmpy_dp.estimators import PrivateNetwork
    from pgmpy_dp.inference.cliques import Cliques
    from pgmpy_dp.inference.log_linear import LogLinearModel
    from pgmpy_dp.inference.scope_marginals import ScopeMarginals
    from pgmpy_dp.learning.options import settings_of
    from pgmpy_dp.tables.networks import adaptive_search, network_estimate

    warnings.simplefilter("ignore")  # of seeded noise
    frame = made_up(p, n, seed)
    fits, states = [], {name: [0, 1] for name in frame}

    def refit(*arguments):
        made = network_estimate.estimate_network(*arguments)
        fits.append(max(map(made.tree.tree.n_cells, made.tree.tree.cliques)))
        return made

    budget, start = Budget(epsilon=1.0, delta=1e-9), time.process_time()
    table = PrivateTable(frame, states, ledger=budget)
    settings = settings_of(PrivateNetwork(random_state=seed))
    release = adaptive_search.run(table, settings, budget, None, refit)
    searched = time.process_time() - start
    found = {
        "columns": p,
        "tables": len(release.scopes) - p,
        "fits": len(fits),
        "search": searched,
        "largest": fits[-1],
    }
    found["search_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps(found), file=sys.stderr, flush=True)
    start = time.process_time()
    model: LogLinearModel = PrivateNetwork().fit_release(release).model_.to_log_linear()
    found["final"] = time.process_time() - start
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rng, codes = np.random.default_rng(0), frame.to_numpy()
    pairs = list(itertools.combinations(range(p), 2))
    if len(pairs) > 20_000:
        pairs = [pairs[k] for k in rng.choice(len(pairs), 20_000, replace=False)]
    triples = [tuple(sorted(rng.choice(p, 3, replace=False).tolist())) for _ in range(2_000)]
    names: Cliques = model.cliques
    place = [frame.columns.get_loc(name) for name in names.variables]
    for what, scopes in (("pairs", pairs), ("triples", triples)):
        errors, start = [], time.process_time()
        for scope, own in zip(scopes, ScopeMarginals(names, model.theta).tables(scopes), strict=True):
            cells = np.ravel_multi_index([codes[:, place[i]] for i in scope], own.shape)
            errors.append(0.5 * np.abs(np.bincount(cells, minlength=own.size) / n - own.ravel()).sum())
        found[what] = float(np.mean(errors))
        found[f"{what}_time"] = time.process_time() - start
    found["tables_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[16, 50, 100, 500, 1000])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds of wall clock for each size")
    parser.add_argument("--one", action="store_true", help="measure one size in this process")
    parser.add_argument("--beside", metavar="FOLDER", help="another checkout, to be measured in turn with this one")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--stored", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stored:
        print(json.dumps(learn_once(given.stored, given.seed)))
        return
    if given.beside:
        beside(given.beside, given.cases, given.seeds)
        return
    if given.one:
        print(json.dumps(measure(given.columns[0], given.records, given.seed)))
        return
    if not RESULTS.exists():
        RESULTS.write_text(HEAD)
    for p in given.columns:
        command = [sys.executable, "-m", "benchmarks.learn_scale", "--one", "--columns", str(p)]
        command += ["--records", str(given.records), "--seed", str(given.seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=given.limit, check=True)
        except subprocess.TimeoutExpired as late:
            said = (late.stderr or b"").decode()
            row = f"| {p} | not done in {given.limit:.0f} s of wall clock {said.strip()} |"
        else:
            got = json.loads(done.stdout)
            row = (
                f"| {p} | {got['tables']} | {got['fits']} | {got['search']:.1f} s | {got['final']:.1f} s | "
                f"{got['memory']:.2f} GiB | {got['pairs']:.5f} | {got['triples']:.5f} | {got['largest']:,} cells |"
            )
        print(row, flush=True)
        with RESULTS.open("a") as out:
            out.write(row + "\n")


if __name__ == "__main__":
    main()

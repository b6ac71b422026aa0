"""A table as large as a census: 55 million made-up records of 60 columns, from Parquet files to a private model.

::

    python -m benchmarks.census_size --out benchmarks/results

Columns of 2 to 20 states, texts and whole numbers, and six columns of numbers of which only bounds are declared; each
depends on one or two of the twelve before it. They are written as ten files. Then `pgmpy-dp plan`, `learn` and
`pgmpy-dp sample` run one after the other, each in a process of one thread. Errors are of the model's tables against the
records': total variation of so many pairs and triples, drawn at random, and of the single columns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine, single_thread

if __name__ == "__main__":
    single_thread(pinned=False)  # before numpy is imported

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pgmpy import config

from benchmarks.machine import peak_rss
from benchmarks.report import markdown_table
from pgmpy_dp import Budget, MarkovNetwork, Number, PrivateTable, Schema, learn

COLUMNS, FILES, ROWS = 60, 10, 1 << 20
STATES = (2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20)
NUMBERS = {
    5: ("age", Number(0, 105, resolution=1)),
    11: ("hours", Number(0, 84, resolution=1)),
    23: ("income", Number(0, 100)),
    31: ("rooms", Number(0, 12, resolution=1)),
    41: ("distance", Number(0, 60)),
    53: ("year", Number(1900, 2020, resolution=1)),
}
BUDGET = {"epsilon": 1.0, "delta": 1e-10}
GRAINS = 4096
"""Probabilities are multiples of 1 over this."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.census_size", description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--folder", default="build/census", help="of the files (default: %(default)s)")
    parser.add_argument("--records", type=float, default=55e6)
    parser.add_argument("--files", type=int, default=FILES, help="how many of the ten are made (default: all)")
    parser.add_argument("--tables", type=int, default=100, help="pairs, and triples, compared (default: %(default)s)")
    parser.add_argument("--drawn", type=float, default=1e6, help="records drawn (default: %(default)g)")
    parser.add_argument("--only-files", action="store_true", help="write the files and end")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--learn", nargs=3, metavar=("RECORDS", "SCHEMA", "MODEL"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.learn:
        learned_of(*options.learn)
        return
    folder, each = Path(options.folder), int(options.records) // FILES
    records = folder / f"{options.files}-of-{each}"
    records.mkdir(parents=True, exist_ok=True)
    files = [records / f"part{k}.parquet" for k in range(options.files)]
    network = made_up_network(0)
    for k, file in enumerate(files):
        if not file.exists():
            write(file.with_suffix(".part"), network, each, k)
            file.with_suffix(".part").rename(file)
    schema = folder / "schema.json"
    schema.write_text(json.dumps(Schema(declared(network[0])).to_dict()))
    if options.only_files:
        return
    model, drawn = folder / "model.npz", folder / "drawn.parquet"
    n = each * len(files)
    model.unlink(missing_ok=True)
    budget = ["--epsilon", str(BUDGET["epsilon"]), "--delta", str(BUDGET["delta"])]
    draw = ["sample", str(model), "--n", str(int(options.drawn)), "--out", str(drawn)]
    steps = {
        "plan": ["pgmpy_dp", "plan", "--schema", str(schema), *budget, "--n", str(n)],
        "learn": ["benchmarks.census_size", "--learn", str(records), str(schema), str(model)],
        f"sample {int(options.drawn):,}": ["pgmpy_dp", *draw],
    }
    rows, said = [], ""
    for name, command in steps.items():
        drawn.unlink(missing_ok=True)
        seconds, clock, memory, out = measured(command)
        rows.append([name, f"{seconds:.0f}", f"{clock:.0f}", f"{memory:.2f}"])
        said = said or next(line for line in out.splitlines() if "processor time" in line)
        print(rows[-1], flush=True)
    started = time.process_time()
    learned = MarkovNetwork.load(model)
    scopes = chosen(options.tables)
    errors = distances(files, learned, schema, scopes)
    print("errors", f"{time.process_time() - started:.0f} s", flush=True)
    found = [
        [f"{len(scopes[k])} {what}", f"{np.mean(errors[k]):.5f}", f"{np.max(errors[k]):.5f}"]
        for k, what in enumerate(("columns", "pairs", "triples"))
    ]
    size = sum(file.stat().st_size for file in files) / 2**30
    command_line = shlex.join(["python", "-m", "benchmarks.census_size", *(arguments or sys.argv[1:])])
    text = [
        *(f"# {n:,} records of {COLUMNS} columns", "", f"`{command_line}`", "", describe_machine(), ""),
        f"{len(files)} Parquet files, {size:.2f} GiB; (1, 1e-10)-DP, one run, a process of one thread for each step. "
        f"The model has {len(learned.edges)} edges. `plan` says: {said.strip()}",
        *("", markdown_table(("step", "processor, s", "clock, s", "largest memory, GiB"), rows), ""),
        "Total variation of the model's tables to the records':",
        *("", markdown_table(("tables", "mean", "largest"), found), ""),
    ]
    (Path(options.out) / "census-size.md").write_text("\n".join(text))
    if not options.keep:
        for file in (*files, schema, model, drawn):
            file.unlink(missing_ok=True)
        records.rmdir()


Network = tuple[list[int], list[list[int]], list[np.ndarray]]


def made_up_network(seed: int) -> Network:
    """States, parents, and for each configuration of these the state of each grain."""
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    parents: list[list[int]] = []
    states = []
    for j in range(COLUMNS):
        k, near = int(rng.choice(STATES)), range(max(0, j - 12), j)
        own = [int(rng.choice(list(near)))] if j else []
        if j > 2 and rng.random() < 0.4:
            others = [i for i in near if i not in own and sizes[i] * sizes[own[0]] <= 60]
            own += [int(rng.choice(others))] if others else []
        base, rows = rng.dirichlet(np.full(k, 2.0)), math.prod(sizes[i] for i in own)
        mixed = 0.45 * base + 0.55 * rng.dirichlet(np.full(k, 0.35), size=rows)
        edges = np.rint(np.cumsum(mixed, axis=1) * GRAINS)
        edges[:, -1] = GRAINS
        states.append(np.array([np.searchsorted(row, np.arange(GRAINS), "right") for row in edges], dtype=np.uint8))
        sizes.append(k)
        parents.append(own)
    return sizes, parents, states


def declared(sizes: Sequence[int]) -> dict[str, Any]:
    """What a user would declare: states, and the bounds of numbers."""
    found: dict[str, Any] = {}
    for j, size in enumerate(sizes):
        if j in NUMBERS:
            name, found[name] = NUMBERS[j][0], NUMBERS[j][1]
        else:
            found[f"c{j}"] = list(range(size)) if j % 3 == 0 else [f"state {k}" for k in range(size)]
    return found


def write(path: Path, network: Network, n: int, number: int) -> None:
    """One of the files, a block of records at a time."""
    sizes, parents, states = network
    rng, names = np.random.default_rng([1, number]), list(declared(sizes))
    texts = [pa.array([f"state {k}" for k in range(size)]) for size in sizes]
    writer = None
    for start in range(0, n, ROWS):
        rows = min(ROWS, n - start)
        codes: list[np.ndarray] = []
        columns = []
        for j, size in enumerate(sizes):
            place = np.zeros(rows, dtype=np.int32)
            for i in parents[j]:
                place = place * sizes[i] + codes[i]
            place = place * GRAINS + rng.integers(0, GRAINS, rows, dtype=np.uint16)
            codes.append(states[j].ravel()[place])
            if j in NUMBERS:
                declared_as = NUMBERS[j][1]
                width = (declared_as.upper - declared_as.lower) / size
                values = declared_as.lower + width * (codes[j] + rng.random(rows, dtype=np.float32))
                whole = declared_as.resolution is not None
                columns.append(pa.array(np.floor(values).astype(np.int16) if whole else values.astype(np.float32)))
            elif j % 3 == 0:
                columns.append(pa.array(codes[j].view(np.int8)))
            else:
                columns.append(pa.DictionaryArray.from_arrays(pa.array(codes[j].view(np.int8)), texts[j]))
        batch = pa.record_batch(columns, names=names)
        if writer is None:
            encoded = [name for j, name in enumerate(names) if j not in NUMBERS]
            writer = pq.ParquetWriter(path, batch.schema, use_dictionary=encoded)
        writer.write_batch(batch)
    assert writer is not None
    writer.close()


def measured(command: Sequence[str]) -> tuple[float, float, float, str]:
    """Processor and clock seconds of a command in a process of its own, its largest memory in GiB, what it says."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{shlex.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 2**20, out


def learned_of(records: str, schema: str, model: str) -> None:
    """Learn a model of the files in a folder, as a user would."""
    config.set_show_progress(False)
    table = PrivateTable(records, Schema.from_dict(json.loads(Path(schema).read_text())), ledger=Budget(**BUDGET))
    print(f"read: {time.process_time():.0f} s, {peak_rss() / 2**30:.2f} GiB", file=sys.stderr, flush=True)
    learn(table, Budget(**BUDGET)).model_.save(model)


def chosen(tables: int) -> list[list[tuple[int, ...]]]:
    """All columns, and pairs and triples drawn at random."""
    rng = np.random.default_rng(2)
    found = [[(j,) for j in range(COLUMNS)]]
    for order in (2, 3):
        drawn: set[tuple[int, ...]] = set()
        while len(drawn) < tables:
            drawn.add(tuple(sorted(rng.choice(COLUMNS, order, replace=False).tolist())))
        found.append(sorted(drawn))
    return found


def distances(
    files: Sequence[Path], model: MarkovNetwork, schema: Path, scopes: Sequence[Sequence[tuple[int, ...]]]
) -> list[list[float]]:
    """Total variation of each set's table in the model's cells."""
    known = Schema.from_dict(json.loads(schema.read_text()))
    names = list(known.variables)
    cuts = {name: np.array(number.edges[1:-1]) for name, number in model.numbers.items()}
    tables = {scope: model.marginal([names[j] for j in scope]).values for sets in scopes for scope in sets}
    counts = {scope: np.zeros(table.size, dtype=np.int64) for scope, table in tables.items()}
    sizes = {j: tables[(j,)].size for j in range(COLUMNS)}
    total = 0
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(ROWS // 4):
            codes = []
            for j, name in enumerate(names):
                column = batch.column(batch.schema.get_field_index(name))
                if name in cuts:
                    codes.append(np.searchsorted(cuts[name], column.to_numpy(), "right").astype(np.int64))
                elif isinstance(column, pa.DictionaryArray):
                    place = {text: k for k, text in enumerate(known.states[name])}
                    of = np.array([place[text] for text in column.dictionary.to_pylist()])
                    codes.append(of[column.indices.to_numpy()])
                else:
                    codes.append(column.to_numpy().astype(np.int64))
                assert codes[j].max() < sizes[j]
            total += batch.num_rows
            for scope, count in counts.items():
                cell = codes[scope[0]]
                for j in scope[1:]:
                    cell = cell * sizes[j] + codes[j]
                count += np.bincount(cell, minlength=count.size)
    return [
        [0.5 * float(np.abs(counts[scope] / total - tables[scope].ravel()).sum()) for scope in sets] for sets in scopes
    ]


if __name__ == "__main__":
    main()

"""All tables of pairs of a file that does not fit into memory: seconds, processor time and peak memory.

::

    python -m benchmarks.scale --rows 1e8 --out benchmarks/results

Generates a Parquet file of ten columns of 2 to 20 states, five of texts and five of integers, under ``build/scale``,
and counts the 45 tables of pairs in a process of its own for each contender, one after the other and again. Contenders:

* ``read``: every value is read (a hash of each, by DuckDB), which no way of counting can do without;
* ``ours``: `PrivateTable` on the path. Every cell is matched with the schema, records with an outside cell dropped;
* ``grouping sets``: the query that one would write by hand, on the values as they are, nothing matched;
* ``pandas``: batches of the file as frames, one ``groupby`` of each pair of columns.

Where a GPU is at hand, a Frank-Wolfe descent on it is timed against the same on the processor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.machine import describe_machine, peak_rss
from benchmarks.report import markdown_table

SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
"""States of the columns; those of the odd ones are texts."""

PAIRS = list(itertools.combinations(range(len(SIZES)), 2))
ROWS_OF_PANDAS = 1_000_000


def generate(path: Path, rows: int) -> None:
    """A file of `rows` records, the same each time: states by a hash of the record's number, skewed to the first."""
    import duckdb

    columns = []
    for j, size in enumerate(SIZES):
        code = f"CAST(floor({size}*pow(hash(i*{len(SIZES)}+{j})/18446744073709551616.0, 1.3)) AS INTEGER)"
        columns.append(f"'state '||({code})::VARCHAR AS c{j}" if j % 2 else f"{code} AS c{j}")
    # Written under another name, so that what was left by an interrupted run is not taken for the file.
    part = path.with_suffix(".part")
    duckdb.connect(config={"memory_limit": "1GB"}).execute(
        f"COPY (SELECT {', '.join(columns)} FROM range({rows}) AS t(i)) TO '{part}' (FORMAT parquet)"  # noqa: S608
    )
    part.rename(path)


def read(path: Path) -> int:
    """Sum of hashes of all values."""
    import duckdb

    total = " + ".join(f"(hash(c{j}) & 1)::INTEGER" for j in range(len(SIZES)))
    ((found,),) = duckdb.sql(f"SELECT sum({total}) FROM read_parquet('{path}')").fetchall()  # noqa: S608
    return int(found)


def ours(path: Path) -> int:
    """Sum of squares of all counts, by which contenders are compared."""
    from pgmpy_dp import Budget, PrivateTable
    from pgmpy_dp.private.data.table import contingency_tables

    states = {
        f"c{j}": [f"state {k}" for k in range(size)] if j % 2 else list(range(size)) for j, size in enumerate(SIZES)
    }
    table = PrivateTable(path, states, ledger=Budget(epsilon=1.0))
    tables = contingency_tables(table, [(f"c{i}", f"c{j}") for i, j in PAIRS])
    return sum(int((counts.value.astype(object) ** 2).sum()) for counts in tables)


def grouping_sets(path: Path) -> int:
    """As `ours`."""
    import duckdb

    names = ", ".join(f"c{j}" for j in range(len(SIZES)))
    sets = ", ".join(f"(c{i}, c{j})" for i, j in PAIRS)
    query = f"SELECT {names}, count(*) AS n FROM read_parquet('{path}') GROUP BY GROUPING SETS ({sets})"  # noqa: S608
    return sum(row[-1] ** 2 for row in duckdb.sql(query).fetchall())


def pandas(path: Path) -> int:
    """As `ours`."""
    import pyarrow.parquet as pq

    totals: dict = {}
    for batch in pq.ParquetFile(path).iter_batches(ROWS_OF_PANDAS):
        frame = batch.to_pandas()
        for i, j in PAIRS:
            for cell, number in frame.groupby([f"c{i}", f"c{j}"]).size().items():
                totals[i, j, cell] = totals.get((i, j, cell), 0) + number
    return sum(int(number) ** 2 for number in totals.values())


CONTENDERS: dict[str, Callable[[Path], int]] = {
    "read": read,
    "ours": ours,
    "grouping sets": grouping_sets,
    "pandas": pandas,
}


def measure(name: str, path: Path) -> dict:
    """What one contender took in this process."""
    started, used = time.perf_counter(), time.process_time()
    result = CONTENDERS[name](path)
    return {
        "wall": time.perf_counter() - started,
        "cpu": time.process_time() - used,
        "peak": peak_rss() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "result": result,
    }


def frank_wolfe_on_gpu(n: int = 1_000_000, p: int = 100, steps: int = 50) -> str:
    """Seconds of a descent on the GPU and on the processor, or why there are none."""
    try:
        import torch
    except ModuleNotFoundError:
        return "GPU: skipped, torch is not installed."
    if not torch.cuda.is_available():
        return "GPU: skipped, torch.cuda.is_available() is False."
    import pandas as pd
    from pgmpy.global_vars import config

    from pgmpy_dp.estimators import PrivateIsing

    codes = np.random.default_rng(0).integers(0, 2, (n, p), dtype=np.uint8)
    names = [f"x{j}" for j in range(p)]
    frame = pd.DataFrame(codes, columns=names)
    seconds = {}
    for backend, device in (("numpy", None), ("torch", "cuda")):
        config.set_backend(backend, device=device)
        estimator = PrivateIsing(
            rho=1.0, state_names={name: [0, 1] for name in names}, method="frank-wolfe", n_iter=steps
        )
        started = time.perf_counter()
        estimator.fit(frame)
        seconds[backend] = time.perf_counter() - started
    config.set_backend("numpy")
    return (
        f"Frank-Wolfe, n = {n:,}, p = {p}, {steps} steps, encoding included: {seconds['torch']:.1f} s on "
        f"{torch.cuda.get_device_name()}, {seconds['numpy']:.1f} s on the processor."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e8, help="records of the file (default: %(default)g)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender, in turn (default: %(default)s)")
    parser.add_argument("--skip", nargs="*", default=[], choices=tuple(CONTENDERS), help="contenders left out")
    parser.add_argument("--pandas-repeats", type=int, default=1, help="runs of pandas (default: %(default)s)")
    parser.add_argument("--folder", default="build/scale", help="folder of the file (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the file")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--name", default="scale", help="of the file of results (default: %(default)s)")
    parser.add_argument("--run", choices=tuple(CONTENDERS), help="run one contender here, and print it as JSON")
    options = parser.parse_args(arguments)
    rows = int(options.rows)
    path = Path(options.folder) / f"records-{rows}.parquet"
    if options.run:
        print(json.dumps(measure(options.run, path)))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        generate(path, rows)
    runs: dict[str, list[dict]] = {name: [] for name in CONTENDERS if name not in options.skip}
    # In turn, and the slow one at the end.
    order = [name for _ in range(options.repeats) for name in runs if name != "pandas"]
    order += ["pandas"] * (options.pandas_repeats if "pandas" in runs else 0)
    for name in order:
        command = [sys.executable, "-m", "benchmarks.scale", "--run", name, "--rows", str(rows)]
        answer = subprocess.run([*command, "--folder", options.folder], check=True, capture_output=True, text=True)
        runs[name].append(json.loads(answer.stdout.splitlines()[-1]))
        print(name, runs[name][-1], flush=True)
        if all(found or other == "pandas" for other, found in runs.items()):
            report(Path(options.out) / f"{options.name}.md", rows, path.stat().st_size, runs)
    if not options.keep:
        path.unlink()


def report(path: Path, rows: int, size: int, runs: dict[str, list[dict]]) -> None:
    """The table, as Markdown; SystemExit if two contenders counted differently."""
    runs = {name: found for name, found in runs.items() if found}
    results = {run["result"] for name, found in runs.items() if name != "read" for run in found}
    if len(results) > 1:
        raise SystemExit(f"the contenders' counts differ: {results}")
    middle = {
        name: {key: statistics.median(run[key] for run in found) for key in ("wall", "cpu", "peak")}
        for name, found in runs.items()
    }
    body = [
        [
            name,
            f"{row['wall']:.1f} ({min(r['wall'] for r in runs[name]):.1f} to {max(r['wall'] for r in runs[name]):.1f})",
            f"{row['cpu']:.1f}",
            f"{row['peak'] / 2**20:.0f}",
            f"{row['cpu'] / middle['read']['cpu']:.1f}" if "read" in middle else "",
            f"{row['cpu'] / middle['ours']['cpu']:.2f}" if "ours" in middle else "",
            str(len(runs[name])),
        ]
        for name, row in middle.items()
    ]
    head = ["", "wall, s (range)", "processor, s", "peak memory, MiB", "processor / read", "processor / ours", "runs"]
    text = [
        f"# All 45 tables of pairs of {rows:,} records",
        "Made by `python -m benchmarks.scale`",
        f"on {describe_machine()}; the machine was shared with other work, so processor time is what to compare. "
        f"One Parquet file of {size / 2**20:.0f} MiB, ten columns of {', '.join(map(str, SIZES))} states. Medians of "
        "runs in turn, each in a new process. All counts were equal.",
        markdown_table(head, body),
        frank_wolfe_on_gpu(),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()

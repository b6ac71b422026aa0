"""Every reader against the state before it: processor time and peak memory of whole processes.

::

    git worktree add build/before 37541c3e
    python -m benchmarks.readers --before build/before --out benchmarks/results

Each row runs in a process of its own, in turn with that of the other checkout, with the same file or the same frame. A
process imports the package, opens the data and computes; all its children count, Spark's Java too. Before a row is
measured it runs once with a thousand records, so that all modules are compiled. Counted are

* **pairs**: all 45 tables of pairs of ten columns of 2 to 20 states, five of texts and five of integers
  (`benchmarks.scale`'s file); **floats**: the same, the last column on a grid of 20 cells;
* **again**: the same and then three more requests of triples, as rounds of `learn` ask;
* **persons**: records that people own, at most two of each (m = 2), or by shares;
* **moments**: the mean and all products of 20 columns; **visits**: shares of users in pairs of visits.

What is computed is compared: both checkouts must find equal numbers. Rows of persons with m = 2 may draw other records,
so that only totals are compared.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import resource
import shlex
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
NAMES = tuple(f"c{j}" for j in range(len(SIZES)))
PAIRS = tuple(itertools.combinations(NAMES, 2))
TRIPLES = tuple(itertools.combinations(NAMES[:6], 3))
PAGES = 17


# -------------------------------------------------------------------------------------------------- what is measured


def schema(floats: bool = False) -> dict:
    """Declared states of the ten columns."""
    from pgmpy_dp import Number

    states: dict = {f"c{j}": [f"state {k}" for k in range(n)] if j % 2 else list(range(n)) for j, n in enumerate(SIZES)}
    if floats:
        states["c9"] = Number(0, SIZES[-1], bins=SIZES[-1], missing="drop")
    return states


def pairs(data: Any, *, floats: bool = False, again: int = 0, **unit: Any) -> int:
    """Sum of squares of all counts."""
    from pgmpy_dp import Budget, PrivateTable
    from pgmpy_dp.private.data.table import contingency_tables

    table = PrivateTable(data, schema(floats), ledger=Budget(epsilon=1.0), random_state=1 if unit else None, **unit)
    found = contingency_tables(table, PAIRS)
    for k in range(again):
        found += contingency_tables(table, TRIPLES[k::again])
    return sum(int((each.value.astype(object) ** 2).sum()) for each in found)


def some_of_each(data: Any) -> int:
    """How many records count where at most two of each person do: which two may differ, so no more is compared."""
    from pgmpy_dp import Budget, PrivateTable
    from pgmpy_dp.private.data.table import contingency_tables

    table = PrivateTable(data, schema(), ledger=Budget(epsilon=1.0), unit="person", rows_per_unit=2, random_state=1)
    return int(sum(int(each.value.sum()) for each in contingency_tables(table, PAIRS)))


def moments(data: Any) -> int:
    """A digest of the sums of clipped records and of their products."""
    from pgmpy_dp import Budget, PrivateVectors
    from pgmpy_dp.private.data.moments import second_moments

    names = [f"x{j}" for j in range(20)]
    vectors = PrivateVectors(data, names, ledger=Budget(epsilon=1.0))
    return int((second_moments(vectors, np.zeros(20), 4.0).value.astype(object) ** 2).sum())


def visits(data: Any) -> int:
    """Sum of squares of all shares of pairs."""
    from pgmpy_dp import Budget, PrivateSequences

    try:
        from pgmpy_dp.sequences.operators.sequences import chain_tables
    except ModuleNotFoundError:  # before subjects had folders
        from pgmpy_dp.private.data.sequences import chain_tables

    states = {"page": [f"page {k}" for k in range(PAGES)]}
    users = PrivateSequences(data, states, order="t", ledger=Budget(epsilon=1.0))
    return int((chain_tables(users)[1].value.astype(object) ** 2).sum())


def started(frame: Any) -> int:
    """Two workers that each hand over one row: what Spark's own processes take before they read anything."""
    return len(frame.sparkSession.range(0, 2, 1, 2).mapInArrow(as_they_are, "id long").collect())


def as_they_are(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


# ------------------------------------------------------------------------------------------------------ the containers


def as_path(path: Path) -> Any:
    return path


def in_duckdb(path: Path) -> Any:
    import duckdb

    return duckdb.read_parquet(str(path))


def in_polars(path: Path) -> Any:
    import polars

    return polars.read_parquet(path)


def lazily_in_polars(path: Path) -> Any:
    import polars

    return polars.scan_parquet(path)


def in_pandas(path: Path) -> Any:
    import pandas

    return pandas.read_parquet(path)


def in_pandas_categories(path: Path) -> Any:
    frame = in_pandas(path)
    return frame.astype(dict.fromkeys(frame.columns, "category"))


def in_ibis(path: Path) -> Any:
    import ibis

    return ibis.duckdb.connect().read_parquet(str(path))


def in_arrow(path: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path)


def in_spark(path: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session.read.parquet(str(path))


# ------------------------------------------------------------------------------------------------------------ the data


def records(path: Path, rows: int, *more: str, last: str = "", ending: str = "(FORMAT parquet)") -> None:
    """Ten columns, states by a hash of the record's number, skewed to the first; written by DuckDB."""
    columns = []
    for j, size in enumerate(SIZES):
        code = f"CAST(floor({size}*pow(hash(i*{len(SIZES)}+{j})/18446744073709551616.0, 1.3)) AS INTEGER)"
        columns.append(f"'state '||({code})::VARCHAR AS c{j}" if j % 2 else f"{code} AS c{j}")
    if last:
        columns[-1] = last
    write(path, [*columns, *more], rows, ending)


def write(path: Path, columns: Sequence[str], rows: int, ending: str = "(FORMAT parquet)") -> None:
    """A file of these expressions of i = 0, 1, ..."""
    import duckdb

    part = path.with_suffix(".part")
    query = f"COPY (SELECT {', '.join(columns)} FROM range({rows}) AS t(i)) TO '{part}' {ending}"  # noqa: S608
    duckdb.connect(config={"memory_limit": "1GB"}).execute(query)
    part.rename(path)


def plain(path: Path, rows: int) -> None:
    records(path, rows)


def with_floats(path: Path, rows: int) -> None:
    records(path, rows, last=f"{SIZES[-1]}*pow(hash(i*{len(SIZES)}+9)/18446744073709551616.0, 1.3) AS c9")


def as_text(path: Path, rows: int) -> None:
    records(path, rows, ending="(FORMAT csv, HEADER)")


def of_persons(path: Path, rows: int) -> None:
    records(path, rows, f"(hash(i) % {max(1, rows * 2 // 5)})::BIGINT AS person")


def of_named_persons(path: Path, rows: int) -> None:
    records(path, rows, f"'person ' || (hash(i) % {max(1, rows * 2 // 5)})::VARCHAR AS person")


def of_numbers(path: Path, rows: int) -> None:
    write(path, [f"hash(i*20+{j})/4611686018427387904.0 - 2 AS x{j}" for j in range(20)], rows)


def of_visits(path: Path, rows: int) -> None:
    user = f'(hash(i) % {max(1, rows // 20)})::BIGINT AS "user"'
    page = f"'page ' || floor({PAGES} * pow(hash(i + {rows}) / 18446744073709551616.0, 1.3))::INTEGER AS page"
    write(path, [user, "(i * 2654435761) % (1::BIGINT << 40) AS t", page], rows)


def with_last_float(data: Any) -> int:
    return pairs(data, floats=True)


def then_again(data: Any) -> int:
    return pairs(data, again=3)


def by_shares(data: Any) -> int:
    return pairs(data, unit="person", rows_per_unit="shares")


Row = tuple[str, str, Callable[[Path, int], None], Callable[[Path], Any], Callable[[Any], int], float]
ROWS: dict[str, Row] = {
    # name: (words, ending of the file, who makes it, what opens it, what is computed, records)
    "parquet": ("Parquet", ".parquet", plain, as_path, pairs, 1e7),
    "again": ("Parquet, and three more requests", ".parquet", plain, as_path, then_again, 1e7),
    "floats": ("Parquet, one column of floats", ".parquet", with_floats, as_path, with_last_float, 1e7),
    "csv": ("CSV", ".csv", as_text, as_path, pairs, 1e6),
    "duckdb": ("DuckDB relation", ".parquet", plain, in_duckdb, pairs, 1e7),
    "polars-lazy": ("polars, lazy", ".parquet", plain, lazily_in_polars, pairs, 1e7),
    "polars": ("polars in memory", ".parquet", plain, in_polars, pairs, 3e6),
    "pandas": ("pandas in memory", ".parquet", plain, in_pandas, pairs, 3e6),
    "categories": ("pandas categories", ".parquet", plain, in_pandas_categories, pairs, 3e6),
    "arrow": ("pyarrow table", ".parquet", plain, in_arrow, pairs, 3e6),
    "ibis": ("ibis, DuckDB", ".parquet", plain, in_ibis, pairs, 3e6),
    "some": ("persons, m = 2", ".parquet", of_persons, as_path, some_of_each, 1e6),
    "shares": ("persons, shares", ".parquet", of_persons, as_path, by_shares, 1e6),
    "some-texts": ("persons with keys of texts, m = 2", ".parquet", of_named_persons, as_path, some_of_each, 1e6),
    "shares-texts": ("persons with keys of texts, shares", ".parquet", of_named_persons, as_path, by_shares, 1e6),
    "moments": ("moments of 20 columns", ".parquet", of_numbers, as_path, moments, 2e6),
    "visits": ("visits of users", ".parquet", of_visits, as_path, visits, 5e6),
    "spark-start": ("Spark, the start of all processes alone", ".parquet", plain, in_spark, started, 5e5),
    "spark": ("Spark, all processes", ".parquet", plain, in_spark, pairs, 5e5),
    "spark-large": ("Spark, all processes, large", ".parquet", plain, in_spark, pairs, 5e6),
    "large": ("Parquet, one column of floats, large", ".parquet", with_floats, as_path, with_last_float, 1e8),
}
HEAD = ["", "records", "now, processor s", "before", "now / before", "now, peak MiB", "before", "results"]
USUAL = tuple(name for name in ROWS if not name.startswith("spark") and name != "large")


# ------------------------------------------------------------------------------------------------------- the measuring


def measured(command: Sequence[str], environment: dict[str, str]) -> dict[str, Any]:
    """Run a command; processor seconds of it and all its descendants, and the peak of their memory together.

    Linux: orphans come to this process, which waits for them, so that the system has added up all of them.
    """
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak[0] = max(peak[0], sum(map(_memory, _descendants(os.getpid()))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, complaints = child.communicate()
    wall = time.perf_counter() - started
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    done.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if child.returncode:
        return {"failed": (complaints.strip().splitlines() or ["?"])[-1][:300]}
    seconds = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return {"cpu": seconds, "wall": wall, "peak": peak[0], "result": out.splitlines()[-1]}


def _descendants(root: int) -> Iterator[int]:
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        try:
            children = [int(pid) for pid in task.read_text().split()]
        except OSError:
            continue
        for pid in children:
            yield pid
            yield from _descendants(pid)


def _memory(pid: int) -> int:
    """Proportional resident memory in bytes: what processes share is counted once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def run_row(name: str, path: str) -> None:
    """One row in this process."""
    _, _, _, opened, computed, _ = ROWS[name]
    print(computed(opened(Path(path))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers", description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="folder of a checkout of the state before; without it only the state now")
    parser.add_argument("--only", nargs="*", default=list(USUAL), choices=list(ROWS), help="rows (default: the usual)")
    parser.add_argument("--factor", type=float, default=1.0, help="records of each row times this (default: 1)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, in turn (default: %(default)s)")
    parser.add_argument("--folder", default="build/readers", help="folder of the files (default: %(default)s)")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--name", default="readers", help="of the file of results (default: %(default)s)")
    parser.add_argument("--run", nargs=2, metavar=("ROW", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        run_row(*options.run)
        return
    from benchmarks.machine import describe_machine
    from benchmarks.report import markdown_table

    here = Path(__file__).resolve()
    checkouts = {"now": here.parent.parent} | ({"before": Path(options.before).resolve()} if options.before else {})
    folder = Path(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["python", "-m", "benchmarks.readers", *(arguments or sys.argv[1:])])
    environments = {which: environment_of(root, folder) for which, root in checkouts.items()}
    body, idle = [], alone(environments)
    for name in options.only:
        words, ending, made, _, _, rows = ROWS[name]
        path = _file(folder, made, ending, int(rows * options.factor))
        first = _file(folder, made, ending, 1000)
        runs: dict[str, list[dict]] = {which: [] for which in checkouts}
        for which in checkouts:
            measured([sys.executable, "-P", str(here), "--run", name, str(first)], environments[which])
        for _, which in itertools.product(range(options.repeats), checkouts):
            ran = measured([sys.executable, "-P", str(here), "--run", name, str(path)], environments[which])
            runs[which].append(ran)
            print(name, which, ran, flush=True)
        body.append([words, f"{int(rows * options.factor):,}", *cells(runs)])
        text = [
            "# Readers: processor time and memory of whole processes",
            f"Made by `{command}`",
            f"on {describe_machine()}. Medians of {options.repeats} runs in turn, each in a new process; one that only "
            f"imports `PrivateTable` takes {idle}. Modules were compiled before.",
            markdown_table(
                ["", "records", "now, processor s", "before", "now / before", "now, peak MiB", "before", "results"],
                body,
            ),
        ]
        out = Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{options.name}.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(out / f"{options.name}.md")


def environment_of(checkout: Path, folder: Path) -> dict[str, str]:
    """Of a process that imports this checkout, whose compiled modules are kept for the next one."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    more = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    own = {
        "PYTHONPATH": os.pathsep.join([str(checkout), *more]),
        "OMP_NUM_THREADS": "1",
        "PYTHONPYCACHEPREFIX": str(folder.resolve() / "compiled"),
    }
    return kept | own


def alone(environments: dict[str, dict[str, str]]) -> str:
    """What the import takes, in both, once modules are compiled."""
    found = []
    for which, environment in environments.items():
        command = [sys.executable, "-P", "-c", "from pgmpy_dp import PrivateTable; print(0)"]
        ran = [measured(command, environment) for _ in range(2)][1]
        found.append(f"{ran['cpu']:.1f} s {which}")
    return ", ".join(found)


def _file(folder: Path, made: Callable[[Path, int], None], ending: str, rows: int) -> Path:
    path = folder / f"{made.__name__}-{rows}{ending}"
    if not path.exists():
        made(path, rows)
    return path


def cells(runs: dict[str, list[dict]]) -> list[str]:
    """Cells of the table: seconds, their ratio, memory, and whether the same was found."""
    seconds, memory = {}, {}
    for which, found in runs.items():
        if failed := [ran["failed"] for ran in found if "failed" in ran]:
            seconds[which] = memory[which] = None
            print(failed[0])
            continue
        seconds[which] = statistics.median(ran["cpu"] for ran in found)
        memory[which] = statistics.median(ran["peak"] for ran in found)

    def shown(values: dict, which: str, form: str, unit: float = 1.0) -> str:
        value = values.get(which)
        return ("failed" if which in runs else "") if value is None else f"{value / unit:{form}}"

    both = seconds.get("now") and seconds.get("before")
    results = {ran.get("result") for found in runs.values() for ran in found}
    return [
        shown(seconds, "now", ".1f"),
        shown(seconds, "before", ".1f"),
        f"{seconds['now'] / seconds['before']:.2f}" if both else "",
        shown(memory, "now", ".0f", 2**20),
        shown(memory, "before", ".0f", 2**20),
        "equal" if len(results) == 1 else "differ",
    ]


if __name__ == "__main__":
    main()

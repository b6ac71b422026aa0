"""Files that need not fit into memory, tables of pairs and shares of users: seconds, processor time and peak memory.

::

    python -m benchmarks.scale --rows 1e8 --out benchmarks/results
    python -m benchmarks.scale --study floats --rows 1e8 --name scale-floats
    python -m benchmarks.scale --study visits --rows 5e7 --name scale-visits

**records.** Generates a Parquet file of ten columns of 2 to 20 states, five of texts and five of integers, under
``build/scale``, and counts the 45 tables of pairs in a process of its own for each contender, one after the other and
again. Contenders:

* ``read``: every value is read (a hash of each, by DuckDB), which no way of counting can do without;
* ``ours``: `PrivateTable` on the path. Every cell is matched with the schema, records with an outside cell dropped;
* ``grouping sets``: the query that one would write by hand, on the values as they are, nothing matched;
* ``pandas``: batches of the file as frames, one ``groupby`` of each pair of columns.

**floats.** The same, but the last column holds floats, for which a `Number` of 20 cells is declared. No engine decides
floats (docs/engines.md says why), so all codes and these cells come to Python, a batch at a time. ``grouping sets``
rounds them down.

**visits.** Visits of users to 17 pages, twenty a user on average, in no order; what is computed is each user's share of
pairs of successive pages, rounded down, which bounds what a user adds:

* ``read``: as above;
* ``ours``: `PrivateSequences` on the path, users and times told apart as match keys are, pages matched with the schema;
* ``by hand``: the windows that one would write in DuckDB, with as much memory as it likes, nothing matched;
* ``pandas``: the file as one frame, sorted, shifted and grouped.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import resource
import shlex
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

PAGES = 17
VISITS_OF_A_USER = 20
GRID = 1 << 20
"""Units of a share."""


def generate(path: Path, rows: int, floats: bool = False) -> None:
    """A file of `rows` records, the same each time: states by a hash of the record's number, skewed to the first."""
    columns = []
    for j, size in enumerate(SIZES):
        code = f"CAST(floor({size}*pow(hash(i*{len(SIZES)}+{j})/18446744073709551616.0, 1.3)) AS INTEGER)"
        columns.append(f"'state '||({code})::VARCHAR AS c{j}" if j % 2 else f"{code} AS c{j}")
    if floats:
        columns[-1] = f"{SIZES[-1]}*pow(hash(i*{len(SIZES)}+9)/18446744073709551616.0, 1.3) AS c9"
    write(path, columns, rows)


def write(path: Path, columns: Sequence[str], rows: int) -> None:
    """A file of these expressions of i = 0, 1, ..."""
    import duckdb

    # Under another name at first, so that what was left by an interrupted run is not taken for the file.
    part = path.with_suffix(".part")
    duckdb.connect(config={"memory_limit": "1GB"}).execute(
        f"COPY (SELECT {', '.join(columns)} FROM range({rows}) AS t(i)) TO '{part}' (FORMAT parquet)"  # noqa: S608
    )
    part.rename(path)


def read(path: Path) -> int:
    """Sum of hashes of all values."""
    import duckdb

    file = duckdb.read_parquet(str(path))
    total = " + ".join(f'(hash("{name}") & 1)::INTEGER' for name in file.columns)
    ((found,),) = file.aggregate(f"sum({total})").fetchall()
    return int(found)


def ours(path: Path, floats: bool = False) -> int:
    """Sum of squares of all counts, by which contenders are compared."""
    from pgmpy_dp import Budget, Number, PrivateTable
    from pgmpy_dp.private.data.table import contingency_tables

    states: dict = {
        f"c{j}": [f"state {k}" for k in range(size)] if j % 2 else list(range(size)) for j, size in enumerate(SIZES)
    }
    if floats:
        states["c9"] = Number(0, SIZES[-1], bins=SIZES[-1], missing="drop")
    table = PrivateTable(path, states, ledger=Budget(epsilon=1.0))
    tables = contingency_tables(table, [(f"c{i}", f"c{j}") for i, j in PAIRS])
    return sum(int((counts.value.astype(object) ** 2).sum()) for counts in tables)


def grouping_sets(path: Path, floats: bool = False) -> int:
    """As `ours`."""
    import duckdb

    names = ", ".join(f"c{j}" for j in range(len(SIZES)))
    sets = ", ".join(f"(c{i}, c{j})" for i, j in PAIRS)
    read = f"read_parquet('{path}')"
    read = f"(SELECT * REPLACE (floor(c9)::INTEGER AS c9) FROM {read})" if floats else read  # noqa: S608
    query = f"SELECT {names}, count(*) AS n FROM {read} GROUP BY GROUPING SETS ({sets})"  # noqa: S608
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


def generate_visits(path: Path, rows: int) -> None:
    """As `generate`; no two visits have the same time."""
    user = f'(hash(i) % {max(1, rows // VISITS_OF_A_USER)})::BIGINT AS "user"'
    page = f"'page ' || floor({PAGES} * pow(hash(i + {rows}) / 18446744073709551616.0, 1.3))::INTEGER AS page"
    write(path, [user, "(i * 2654435761) % (1::BIGINT << 40) AS t", page], rows)


def our_shares(path: Path) -> int:
    """Sum of squares of all shares of pairs, by which contenders are compared."""
    from pgmpy_dp import Budget, PrivateSequences
    from pgmpy_dp.sequences.operators.sequences import chain_tables

    states = {"page": [f"page {k}" for k in range(PAGES)]}
    visits = PrivateSequences(path, states, order="t", ledger=Budget(epsilon=1.0))
    return int((chain_tables(visits)[1].value.astype(object) ** 2).sum())


def shares_by_hand(path: Path) -> int:
    """As `our_shares`."""
    import duckdb

    query = f"""
    WITH pairs AS (SELECT "user", page, lag(page) OVER (PARTITION BY "user" ORDER BY t) AS before
                   FROM read_parquet('{path}')),
         counted AS (SELECT "user", before, page, count(*) AS n FROM pairs WHERE before IS NOT NULL GROUP BY ALL),
         shared AS (SELECT before, page, {GRID} * n // (sum(n) OVER (PARTITION BY "user"))::BIGINT AS share
                    FROM counted)
    SELECT sum(share) FROM shared GROUP BY before, page
    """  # noqa: S608
    return sum(int(total) ** 2 for (total,) in duckdb.sql(query).fetchall())


def shares_in_pandas(path: Path) -> int:
    """As `our_shares`."""
    import pyarrow.parquet as pq

    frame = pq.read_table(path, read_dictionary=["page"]).to_pandas().sort_values(["user", "t"])
    code = frame["page"].cat.codes.to_numpy(np.int64)
    user = frame["user"].to_numpy()
    same = user[1:] == user[:-1]
    pairs = user[1:][same] * PAGES**2 + code[:-1][same] * PAGES + code[1:][same]
    cell, n = np.unique(pairs, return_counts=True)
    owner = cell // PAGES**2
    share = GRID * n // np.bincount(owner, weights=n).astype(np.int64)[owner]
    totals = np.zeros(PAGES**2, dtype=np.int64)
    np.add.at(totals, cell % PAGES**2, share)
    return int((totals.astype(object) ** 2).sum())


Contenders = dict[str, Callable[[Path], int]]
STUDIES: dict[str, tuple[str, Callable[[Path, int], None], Contenders]] = {
    "records": (
        "All 45 tables of pairs of {:,} records",
        generate,
        {"read": read, "ours": ours, "grouping sets": grouping_sets, "pandas": pandas},
    ),
    "floats": (
        "All 45 tables of pairs of {:,} records with a column of floats",
        functools.partial(generate, floats=True),
        {
            "read": read,
            "ours": functools.partial(ours, floats=True),
            "grouping sets": functools.partial(grouping_sets, floats=True),
        },
    ),
    "visits": (
        "Shares of users in pairs of {:,} visits",
        generate_visits,
        {"read": read, "ours": our_shares, "by hand": shares_by_hand, "pandas": shares_in_pandas},
    ),
}


def measure(contender: Callable[[Path], int], path: Path) -> dict:
    """What one contender took in this process."""
    started, used = time.perf_counter(), time.process_time()
    result = contender(path)
    return {
        "wall": time.perf_counter() - started,
        "cpu": time.process_time() - used,
        "peak": peak_rss() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "result": result,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--study", choices=tuple(STUDIES), default="records", help="(default: %(default)s)")
    parser.add_argument("--rows", type=float, default=1e8, help="records of the file (default: %(default)g)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contender, in turn (default: %(default)s)")
    parser.add_argument("--skip", nargs="*", default=[], help="contenders left out")
    parser.add_argument("--pandas-repeats", type=int, default=1, help="runs of pandas (default: %(default)s)")
    parser.add_argument("--folder", default="build/scale", help="folder of the file (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep the file")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results (default: %(default)s)")
    parser.add_argument("--name", default="scale", help="of the file of results (default: %(default)s)")
    parser.add_argument("--run", help="run one contender here, and print it as JSON")
    options = parser.parse_args(arguments)
    rows = int(options.rows)
    title, made, contenders = STUDIES[options.study]
    path = Path(options.folder) / f"{options.study}-{rows}.parquet"
    if unknown := {*options.skip, *([options.run] if options.run else [])} - set(contenders):
        parser.error(f"{sorted(unknown)} are no contenders of the study; those are {list(contenders)}")
    if options.run:
        print(json.dumps(measure(contenders[options.run], path)))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        made(path, rows)
    runs: dict[str, list[dict]] = {name: [] for name in contenders if name not in options.skip}
    # In turn, and the slow one at the end.
    order = [name for _ in range(options.repeats) for name in runs if name != "pandas"]
    order += ["pandas"] * (options.pandas_repeats if "pandas" in runs else 0)
    for name in order:
        command = [sys.executable, "-m", "benchmarks.scale", "--run", name, "--rows", str(rows)]
        command += ["--study", options.study, "--folder", options.folder]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        runs[name].append(json.loads(answer.stdout.splitlines()[-1]))
        print(name, runs[name][-1], flush=True)
        if all(found or other == "pandas" for other, found in runs.items()):
            made_by = shlex.join(["python", "-m", "benchmarks.scale", *(arguments or sys.argv[1:])])
            about = [f"# {title.format(rows)}", f"Made by `{made_by}`"]
            report(Path(options.out) / f"{options.name}.md", about, path.stat().st_size, runs)
    if not options.keep:
        path.unlink()


def report(path: Path, about: list[str], size: int, runs: dict[str, list[dict]]) -> None:
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
        *about,
        f"on {describe_machine()}. One Parquet file of {size / 2**20:.0f} MiB; medians of runs in turn, each in a new "
        "process. Where wall time exceeds processor time, other work had the machine. All results were equal.",
        markdown_table(head, body),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()

"""The board of `benchmarks.compare --quick`: what a change of `learn` is judged by, worst rows first.

This package's methods run in two processes that stay, and are scored as in the long comparison, with boosting as the
only classifier. Runs are lines of ``build/compare/quick/runs.jsonl`` and count for the package as it is now.
"""

from __future__ import annotations

import json
import math
import signal
import warnings
from argparse import Namespace
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from pgmpy import config

from benchmarks import compare
from benchmarks.compare_methods import METHODS as OWN
from benchmarks.compare_report import means
from benchmarks.compare_scores import CLASSIFIERS
from benchmarks.compare_tables import TABLES, Table, held_out
from benchmarks.machine import describe_machine
from benchmarks.report import markdown_table
from pgmpy_dp.private.noise.samplers import ReproducibleNoiseWarning

__all__ = ["METHODS", "board", "main", "write"]

METHODS = ("learn", "learn-target", "chow-liu", "independent")
"""What is run. Rows of MST are those of the long comparison, which a change of this package does not move."""
MOST_RECORDS = 50_000
"""Of a table; larger ones are drawn from."""
MINUTES = 3.0
"""Of processor time, for each run."""
LONG = 20.0
"""Seconds of a run with the first seed, above which its table has no other seed at this epsilon."""
_RIVALS = ("independent", "chow-liu", "mst")
Row = dict[str, Any]


def main(options: Namespace) -> None:
    """Make the runs that are missing, two at once, and the page."""
    work = options.work / "quick"
    work.mkdir(parents=True, exist_ok=True)
    lines, methods = work / "runs.jsonl", [method for method in options.methods if method in METHODS]
    for seed in range(0 if options.report_only else options.seeds or 2):
        known = compare.read(lines)
        long = {(row["table"], row["epsilon"]) for row in known if row.get("seconds", math.inf) > LONG}
        asked = compare.jobs(options.tables, methods, options.epsilons, seed + 1)
        left = [job for job in asked if compare.pending(job, known, compare.version(), options.keep)]
        left = [job for job in left if job.seed == seed and not (seed and (job.table, job.epsilon) in long)]
        with ProcessPoolExecutor(2, initializer=_quietly) as pool:
            runs = [pool.submit(run, job, options.minutes or MINUTES) for job in left]
            for number, done in enumerate(as_completed(runs), 1):
                row = done.result()
                told = (row[of] for of in ("table", "method", "epsilon", "seed", "status"))
                print(f"{number}/{len(left)}", *told, flush=True)
                with lines.open("a") as stream:
                    stream.write(json.dumps(row) + "\n")
    write(compare.read(lines), options.out, describe_machine())


def _quietly() -> None:
    config.set_show_progress(False)
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)  # the records are public
    signal.signal(signal.SIGPROF, _out_of_time)


class _OutOfTime(Exception):
    """A run had its processor time."""


def _out_of_time(*_: Any) -> NoReturn:
    raise _OutOfTime


@cache
def drawn(name: str) -> Table | str:
    """A table, or of a larger one so many of its records; or why it is not there."""
    table = compare.load(name)
    if isinstance(table, str) or len(table.codes) <= MOST_RECORDS:
        return table
    chosen = np.random.default_rng(len(table.codes)).choice(len(table.codes), MOST_RECORDS, replace=False)
    return replace(table, codes=table.codes[np.sort(chosen)])


def run(job: compare.Job, minutes: float) -> Row:
    """One run and its scores, in this process."""
    row: Row = {"table": job.table, "method": job.method, "epsilon": job.epsilon, "seed": job.seed, "minutes": minutes}
    row |= {"version": compare.version(), "status": "absent"}
    table = drawn(job.table)
    if isinstance(table, str):
        return row | {"why": table}
    unseen = held_out(table, job.seed)
    signal.setitimer(signal.ITIMER_PROF, 60 * minutes)
    try:
        output = OWN[job.method](compare.what_is_given(job, table, unseen))
        found = compare.scores(output, table, unseen, CLASSIFIERS[:1])
    except _OutOfTime:
        return row | {"status": "time"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return row | {"status": "done"} | found


def board(rows: Iterable[Row]) -> list[Row]:
    """One entry for each table and epsilon: `learn` over and minus its rivals.

    Parameters
    ----------
    rows : iterable of dict
        Of :func:`~benchmarks.compare_report.means`.

    Returns
    -------
    list of dict
        By the largest ratio of pairs to independent tables. ``pairs``, ``triples`` and ``counts`` have ratios of errors
        by rival, ``nats`` and ``median_nats`` differences of the log-likelihood of a held-out record, ``auc`` the area
        under the curve of each method. What was not run is not there.
    """
    at = {(row["table"], row["epsilon"], row["method"]): row for row in rows}
    found = []
    for table, epsilon, method in at:
        learned = at[table, epsilon, method]
        if method != "learn" or "pairs" not in learned:
            continue
        entry: Row = {"table": table, "epsilon": epsilon, "seconds": learned["seconds"], "values": learned}
        beside = {name: at[table, epsilon, name] for name in (*_RIVALS, "learn-target") if (table, epsilon, name) in at}
        for measure in ("pairs", "triples", "counts"):
            entry[measure] = {
                name: learned[measure] / row[measure]
                for name, row in beside.items()
                if name in _RIVALS and measure in row and measure in learned
            }
        for measure in ("nats", "median_nats"):
            entry[measure] = {
                name: learned[measure] - row[measure]
                for name, row in beside.items()
                if name in _RIVALS and measure in row
            }
        entry["auc"] = {name: row["auc"] for name, row in {"learn": learned, **beside}.items() if "auc" in row}
        target = beside.get("learn-target", {})
        independent = beside.get("independent", {})
        if "pairs" in target and "pairs" in independent:
            entry["target_pairs"] = target["pairs"] / independent["pairs"]
        found.append(entry)
    return sorted(found, key=lambda entry: -entry["pairs"].get("independent", 0.0))


def write(rows: Iterable[Row], folder: Path, machine: str) -> None:
    """The page ``board.md``, with MST's rows of ``compare.json``."""
    of_peers = [row for row in json.loads((folder / "compare.json").read_text()) if row["method"] == "mst"]
    own = [row for row in means(rows) if row["method"] in METHODS]
    path = folder / "board.md"
    path.write_text(page(board([*own, *of_peers]), machine))
    print(f"wrote {path}")


def page(entries: list[Row], machine: str) -> str:
    """The board as Markdown."""
    seeds = [entry["values"].get("seeds", 1) for entry in entries]
    parts = [
        "# The board",
        "Made by `python -m benchmarks.compare --quick`, which goes on where it was stopped,",
        f"on {machine}; two runs at once, seconds of processor time. delta = 1e-9; means over {min(seeds, default=0)} "
        f"to {max(seeds, default=0)} seeds, one where a method took more than {LONG:g} s; of tables of more than "
        f"{MOST_RECORDS:,} records as many are drawn. A run that takes more than {MINUTES:g} minutes of processor time "
        "is left out, and so is what was not run. MST (private-pgm) is of [the long comparison](compare.md), where it "
        "ended. Scores are those of `benchmarks/compare_scores.py`, of the model; AUC is of boosting that learned from "
        "synthetic records.",
        "## In the mean",
        markdown_table(["epsilon", "tables", *_SUMMARY], _summary(entries)),
        "## Worst first",
        "Pairs, triples and counts (of three or four conditions): error of `learn` over that of independent tables / "
        "the tree (`PrivateChowLiu`) / MST. Nats: log-likelihood of a held-out record under `learn` less that under "
        "these; in brackets the median's, where it differs by more than half a nat. AUC: `learn` / with `target=` / "
        "tree / MST. Target: pairs of `learn(target=)` over those of independent tables.",
        markdown_table(
            ["table", "epsilon", "pairs", "triples", "nats", "counts", "AUC", "target", "seconds"],
            [_line(entry) for entry in entries],
        ),
    ]
    return "\n\n".join(parts) + "\n"


_SUMMARY = (
    "pairs over independent (worst)",
    "over the tree (worst)",
    "over MST (worst)",
    "nats less than the tree's by more than .02",
    "nats less than independent tables' by more than .02",
    "AUC less than the tree's by more than .02",
)


def _summary(entries: list[Row]) -> list[list[str]]:
    body = []
    for epsilon in sorted({entry["epsilon"] for entry in entries}):
        here = [entry for entry in entries if entry["epsilon"] == epsilon]
        cells = [f"{epsilon:g}", str(len(here))]
        for rival in _RIVALS:
            ratios = [entry["pairs"][rival] for entry in here if rival in entry["pairs"]]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
            cells.append(f"{mean:.3f} ({max(ratios):.3f})" if ratios else "")
        for rival in ("chow-liu", "independent"):
            behind = [e for e in here if e["nats"].get(rival, 0.0) < -0.02]
            cells.append(f"{len(behind)} {', '.join(TABLES[e['table']].label for e in behind)}".strip())
        behind = [e for e in here if e["auc"].get("chow-liu", 0.0) > e["auc"].get("learn", 1.0) + 0.02]
        body.append([*cells, f"{len(behind)} {', '.join(TABLES[e['table']].label for e in behind)}".strip()])
    return body


def _line(entry: Row) -> list[str]:
    def told(measure: str, form: str) -> str:
        return " / ".join(f"{entry[measure][name]:{form}}" if name in entry[measure] else "" for name in _RIVALS)

    apart = any(abs(entry["median_nats"][name] - gap) > 0.5 for name, gap in entry["nats"].items())
    auc = " / ".join(
        f"{entry['auc'][name]:.3f}" if name in entry["auc"] else "" for name in ("learn", "learn-target", *_RIVALS[1:])
    )
    return [
        TABLES[entry["table"]].label,
        f"{entry['epsilon']:g}",
        told("pairs", ".3f"),
        told("triples", ".3f"),
        told("nats", "+.3f") + (f" ({told('median_nats', '+.3f')})" if apart else ""),
        told("counts", ".3f"),
        auc,
        f"{entry['target_pairs']:.3f}" if "target_pairs" in entry else "",
        f"{entry['seconds']:.1f}",
    ]

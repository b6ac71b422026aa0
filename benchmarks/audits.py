"""Every claim of this package against what an attack on it measures, and broken copies that the attacks catch.

::

    python -m benchmarks.audits --cost full --out benchmarks/results    # or: make audit
    python -m benchmarks.audits --cost small --only PrivateIsing
    python -m benchmarks.audits --cost 300

Cases are those of :func:`pgmpy_dp.auditing.catalogue`, mutants those of :mod:`benchmarks.mutants`. Two processes, one
thread each. Results are kept as they come; ``--resume`` goes on where a run with the same cost and confidence stopped,
and runs again what was made by code that is another now (:mod:`benchmarks.audited_code`), and nothing else; ``--again``
runs what it names, and the file says what was run when. The exit
status is 1 if a claim is broken or a mutant is not caught.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

# Before numpy is imported, here and in the processes that this one starts.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

from pgmpy import config
from tqdm import tqdm

from benchmarks.audited_code import code_hash, files_that_run
from benchmarks.machine import describe_machine
from benchmarks.mutants import MUTANTS
from benchmarks.report import markdown_table
from pgmpy_dp.auditing import AuditCase, catalogue
from pgmpy_dp.auditing.all_cases import family_wise
from pgmpy_dp.auditing.cases_base import COSTS

__all__ = ["main", "measure", "summary"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see ``--help``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audits", description="Claims against measured bounds.")
    parser.add_argument(
        "--cost", type=_cost, default="small", help="small, full, or a number of releases (default: %(default)s)"
    )
    parser.add_argument("--confidence", type=float, default=0.99, help="of all cases together (default: %(default)s)")
    parser.add_argument("--only", default="", help="cases and mutants with this in their names (default: all)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--out", help="folder of audits.jsonl and audits.md (default: write nothing)")
    parser.add_argument("--resume", action="store_true", help="keep the results that are there")
    parser.add_argument(
        "--again",
        action="append",
        metavar="TEXT",
        help="run cases and mutants with this in their names, and keep all others, whatever code made them",
    )
    options = parser.parse_args(arguments)
    cases = [name for name in catalogue() if options.only in name]
    mutants = [mutant.name for mutant in MUTANTS if options.only in mutant.name]
    # Of those chosen here, whatever a run that is resumed had: all cases of one table share its confidence.
    confidence = family_wise(options.confidence, len(cases))
    tasks: list[tuple] = [("mutant", name, "", options.confidence) for name in mutants]
    tasks += [("case", name, options.cost, confidence) for name in cases]
    store = None if options.out is None else Path(options.out) / "audits.jsonl"
    kept = _stored(store, tasks) if store is not None and options.resume else {}
    rows: dict[tuple, dict] = {}
    if options.again:
        if store is None:
            parser.error("--again keeps the rows of a folder; pass --out")
        rows = _others(store, tasks, options.again)
        kept = dict(rows)
    _open(store, kept)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(measure, *task, kept.get(task)) for task in tasks if task not in rows]
        try:
            for future in tqdm(as_completed(futures), total=len(futures), unit="audit"):
                row = future.result()
                rows[_key(row)] = row
                if store is not None and row != kept.get(_key(row)):
                    with store.open("a", encoding="utf-8") as stream:  # of two rows of a name the later one counts
                        stream.write(json.dumps(row) + "\n")
        except BaseException:
            pool.shutdown(cancel_futures=True)  # the others would go on, and nobody would see their results
            raise
    ordered = [rows[task] for task in tasks]
    _open(store, {task: rows[task] for task in tasks})
    command = shlex.join(["python", "-m", "benchmarks.audits", *(arguments or sys.argv[1:])])
    text = summary(ordered, command, options.confidence, options.workers)
    if store is not None:
        store.with_suffix(".md").write_text(text)
    print(text)
    return int(any(row["wrong"] for row in ordered))


def measure(kind: str, name: str, cost: str | int, confidence: float, kept: dict | None = None) -> dict:
    """One case or mutant, as a row of the table: `kept`, if that was made by the code that is run now."""
    config.set_show_progress(False)
    code = _code_of(kind, name)
    if kept is not None and kept.get("code") == code:
        return kept
    start = time.process_time()
    if kind == "mutant":
        [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
        report, case = mutant.run(confidence), catalogue()[mutant.case]
        wrong, what = bool(report.holds), mutant.what
    else:
        case = catalogue()[name]
        report = case.run(cost, confidence)
        wrong, what = not report.holds, ""
    one_run = not isinstance(case, AuditCase)
    return {
        "kind": kind,
        "name": name,
        "cost": cost,
        "confidence": confidence,
        "what": what,
        "adjacency": str(report.adjacency),
        "claim": str(report.guarantee),
        "measure": "rho" if hasattr(report.guarantee, "rho") else "epsilon",
        "bound": report.bound,
        "share": report.tightness,
        "trials": report.n_canaries if one_run else report.event.trials,
        "one_run": one_run,
        "floating_point": case.floating_point,
        "seconds": time.process_time() - start,
        "wrong": wrong,
        "code": code,
        "date": time.strftime("%Y-%m-%d"),
    }


def _code_of(kind: str, name: str) -> str:
    """The hash of what the attack runs, by a few releases of it."""
    if kind == "mutant":
        [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
        files = files_that_run(dataclasses.replace(mutant, trials=4).run)
    else:
        case = catalogue()[name]
        files = files_that_run(lambda: case.run(4 if isinstance(case, AuditCase) else "small"))
    return code_hash(path.read_text(encoding="utf-8") for path in files)


def summary(rows: Sequence[dict], command: str, confidence: float, workers: int) -> str:
    """The report, in Markdown."""
    cases = [row for row in rows if row["kind"] == "case"]
    mutants = [row for row in rows if row["kind"] == "mutant"]
    seconds = sum(row["seconds"] for row in rows)
    # Rows of several runs may have other confidences of their own.
    together = f"{100 * (1.0 - sum(1.0 - row['confidence'] for row in cases)):.4g}"
    broken, escaped = (sum(row["wrong"] for row in part) for part in (cases, mutants))
    text = [
        "# Audits",
        f"Made by `{command}`",
        f"on {describe_machine()}; {workers} at a time, {seconds / 60:.1f} minutes of processor time together.",
        "A measured bound is a lower bound on the epsilon (at the claim's delta) or the rho that a mechanism really "
        f"has, on neighbours made up to show it; all bounds of the first table hold together at {together} % "
        "confidence. Releases are drawn on each of two datasets, half as many more choose the event; in one run, they "
        "are canaries. Noise in floating point is marked *f*: its claim is one about real numbers.",
        f"{len(cases)} claims, {broken} broken. {len(mutants)} mutants, {escaped} not caught.",
        _when(rows),
    ]
    if cases:
        body = [
            [
                row["name"] + (" *f*" if row["floating_point"] else ""),
                row["adjacency"],
                row["claim"] + (" **BROKEN**" if row["wrong"] else ""),
                f"{row['measure']} ≥ {row['bound']:.3g}",
                f"{100 * row['share']:.0f} %",
                f"{row['trials']:,}" + (" canaries" if row["one_run"] else ""),
                f"{row['seconds']:.1f}",
            ]
            for row in cases
        ]
        header = ["case", "adjacency", "claim", "measured", "share", "releases", "seconds"]
        text += ["## Claims against measured bounds", markdown_table(header, body)]
    if mutants:
        body = [
            [
                row["name"],
                row["what"],
                row["claim"],
                f"{row['measure']} ≥ {row['bound']:.3g}" + (" **NOT CAUGHT**" if row["wrong"] else ""),
                f"{row['trials']:,}",
                f"{row['seconds']:.1f}",
            ]
            for row in mutants
        ]
        header = ["mutant", "the line that is broken", "claim", "measured", "releases", "seconds"]
        text += [
            "## Broken copies",
            f"Each is caught where the bound exceeds the claim, at {100 * confidence:g} % confidence of its own.",
            markdown_table(header, body),
        ]
    return "\n\n".join(text) + "\n"


def _cost(text: str) -> str | int:
    if text in COSTS:
        return text
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not small, full or a number of at least 2")
    return int(text)


def _key(row: dict) -> tuple:
    return row["kind"], row["name"], row["cost"], row["confidence"]


def _stored(store: Path, tasks: Sequence[tuple]) -> dict[tuple, dict]:
    if not store.exists():
        return {}
    rows = map(json.loads, store.read_text(encoding="utf-8").splitlines())
    return {_key(row): row for row in rows if _key(row) in set(tasks)}


def _others(store: Path, tasks: Sequence[tuple], again: Sequence[str]) -> dict[tuple, dict]:
    """The stored rows of tasks that are not run again, by the tasks; at whatever confidence they were made."""
    known = {(row["kind"], row["name"], row["cost"]): row for row in map(json.loads, store.read_text().splitlines())}
    chosen = [task for task in tasks if not any(text in task[1] for text in again)]
    return {task: known[task[:3]] for task in chosen if task[:3] in known}


def _when(rows: Sequence[dict]) -> str:
    """Which rows were made when."""
    days: dict[str, list[str]] = {}
    for row in rows:
        days.setdefault(row.get("date", ""), []).append(row["name"])
    told = [
        f"on {day}: {', '.join(f'`{name}`' for name in names)}"
        if len(names) < len(rows) / 2
        else f"on {day}" + ": the others" * (len(days) > 1)
        for day, names in sorted(days.items(), reverse=True)
        if day
    ]
    before = f"before rows had dates, by code that is not known: {len(days['']):,} rows" if "" in days else ""
    return f"Rows were made {'; '.join([*told, *([before] if before else [])])}."


def _open(store: Path | None, rows: dict[tuple, dict]) -> None:
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text("".join(json.dumps(row) + "\n" for row in rows.values()), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

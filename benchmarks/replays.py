"""Replay of every case on many pairs of neighbours: what ``make nightly`` runs.

    python -m benchmarks.replays --pairs 300 --seed 1
    python -m benchmarks.replays --coverage benchmarks/results/replay-coverage.md

Prints a line for each case and what was found, and ends with 1 if anything was. CI runs each case's corpus alone
(tests/auditing, which has the cases). A run with another seed tries other random neighbours and other invented answers.

With --coverage seven pairs of each case are replayed, one with each kind of answers, then the tables of every reader
and engine, all in one process; the file says which branches of the boundary were never taken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOUNDARY = ROOT / "pgmpy_dp" / "private"
READERS = ["tests/auditing/test_replay_readers.py", "-k", "not decides_by"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300, help="pairs of neighbours for each case (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of random neighbours and invented answers (default 0)")
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (default one a core)")
    parser.add_argument("--coverage", type=Path, metavar="FILE", help="where to write which branches were not taken")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.coverage is None:
        return replay_all(options.only, options.pairs, options.seed, options.workers)
    import coverage

    watch = coverage.Coverage(branch=True, source=[str(BOUNDARY)], data_file=None)
    watch.start()
    failed = replay_all(options.only, 7, options.seed)
    if not options.only:
        import pytest

        failed |= int(pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *READERS]) != 0)
    watch.stop()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        watch.json_report(outfile=file.name, show_contexts=False)
        report = coverage_report(json.load(file))
    options.coverage.write_text(report, encoding="utf-8")
    print(report.split("## ")[0])
    return failed


def replay_all(only: str, n_pairs: int, seed: int, n_workers: int = 1) -> int:
    """1 if anything was found on so many pairs of each case."""
    numbers = [number for number, case in enumerate(_cases()) if only in case.name]
    started, pairs, problems = time.perf_counter(), 0, 0
    best: dict[str, float] = defaultdict(float)
    ask = partial(_replayed, n_pairs=n_pairs, seed=seed)
    with ExitStack() as stack:
        # A process for each core, where nothing watches which lines are run in this one.
        pool = ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) if n_workers > 1 else None
        if pool is not None:
            stack.callback(pool.shutdown, cancel_futures=True)
        for name, tried, wrong, moved in (pool.map if pool else map)(ask, numbers):
            pairs += tried
            problems += len(wrong)
            for operator, ratio in moved.items():
                best[operator] = max(best[operator], ratio)
            print(f"{name}: {tried} pairs, {len(wrong)} with problems", flush=True)
            for line in wrong[:3]:
                print(f"    {line}", flush=True)
    moved = ", ".join(f"{operator} {ratio:.3g}" for operator, ratio in sorted(best.items()))
    print(f"largest movement, of what scaled the noise: {moved}")
    took = time.perf_counter() - started
    print(f"{pairs} pairs of {len(numbers)} cases in {took:.0f} s, {problems} with problems")
    return int(problems > 0)


@cache
def _cases() -> list:
    from tests.auditing.replay_catalogue import replay_catalogue  # here: what is run at import is watched too

    return replay_catalogue()


def _replayed(number: int, n_pairs: int, seed: int) -> tuple[str, int, list[str], dict[str, float]]:
    """A case's name and pairs, what was found on them, and how far each operator moved at most."""
    from tests.auditing.replay_cases import run_replays

    warnings.simplefilter("ignore")
    case, tried, wrong = _cases()[number], 0, []
    moved: dict[str, float] = defaultdict(float)
    for found in run_replays([case], n_pairs, seed):
        tried += 1
        for operator, ratio in found.report.movement.items():
            moved[operator] = max(moved[operator], ratio)
        if not found.report.holds:
            wrong.append(f"pair {found.pair}, answers {found.answers}: {found.report}")
    return case.name, tried, wrong, dict(moved)


def coverage_report(found: dict) -> str:
    """Tables of Markdown: how many branches were taken, and those that were not; refusals are counted alone."""
    rows, listed, total, taken, refused = [], [], 0, 0, 0
    for name, file in sorted(found["files"].items()):
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        missed = [(start, end) for start, end in file["missing_branches"] if not _refuses(lines, start, end)]
        summary = file["summary"]
        total, taken = total + summary["num_branches"], taken + summary["covered_branches"]
        refusals = len(file["missing_branches"]) - len(missed)
        refused += refusals
        short = str(Path(name).resolve().relative_to(BOUNDARY))
        counts = (summary["num_branches"], summary["covered_branches"], refusals, len(missed))
        if counts[0]:
            rows.append("| ".join([f"| `{short}` ", *(f"{count} " for count in counts)]) + "|")
        listed += [f"| `{short}` | {_where(start, lines)} | {_where(end, lines)} |" for start, end in missed]
    return "\n".join(
        [
            "# Branches of the boundary under replay",
            "",
            "Made by `python -m benchmarks.replays --coverage`. A refusal is a branch that ends in `raise`: a check of",
            "public arguments, which comes before a charge and which the tests of its module try.",
            "",
            f"{total} branches: {taken} taken, {refused} refusals and {total - taken - refused} others not.",
            "",
            "## Files",
            "",
            "| file | branches | taken | refusals not taken | others not taken |",
            "| --- | ---: | ---: | ---: | ---: |",
            *rows,
            "",
            "## Others that were not taken",
            "",
            "| file | from | to |",
            "| --- | --- | --- |",
            *listed,
            "",
        ]
    )


def _refuses(lines: list[str], start: int, end: int) -> bool:
    """Whether a branch leads to `raise`, perhaps after a message was put together."""
    place = end - 1
    while end > 0 and place < len(lines) and re.match(r"\s*(\w+ = |#)", lines[place]):
        place += 1
    return end > 0 and bool(re.match(r"\s*(raise\b|self\._refuse\()", lines[min(place, len(lines) - 1)]))


def _where(end: int, lines: list[str]) -> str:
    # In a table a bar ends a cell, and brackets before parentheses would be a link.
    return (
        "the end" if end <= 0 else f"{end}: `{lines[end - 1].strip().replace('|', chr(92) + '|').replace('](', '] (')}`"
    )


if __name__ == "__main__":
    sys.exit(main())

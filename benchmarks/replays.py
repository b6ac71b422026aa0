"""Replay of every case on many pairs of neighbours: what ``make nightly`` runs.

    python -m benchmarks.replays --pairs 300 --seed 1

Prints a line for each case and what was found, and ends with 1 if anything was. CI runs each case's corpus alone
(tests/auditing). A run with another seed tries other random neighbours and other invented answers.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict

from pgmpy_dp.auditing.replay_cases import run_replays
from pgmpy_dp.auditing.replay_catalogue import replay_catalogue


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=300, help="pairs of neighbours for each case (default 300)")
    parser.add_argument("--seed", type=int, default=0, help="of random neighbours and invented answers (default 0)")
    parser.add_argument("--only", default="", help="cases whose names contain this text")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    cases = [case for case in replay_catalogue() if options.only in case.name]
    started, pairs, problems = time.perf_counter(), 0, 0
    best: dict[str, float] = defaultdict(float)
    for case in cases:
        wrong = []
        for found in run_replays([case], options.pairs, options.seed):
            pairs += 1
            for operator, ratio in found.report.movement.items():
                best[operator] = max(best[operator], ratio)
            if not found.report.holds:
                wrong.append(found)
        problems += len(wrong)
        print(f"{case.name}: {options.pairs} pairs, {len(wrong)} with problems", flush=True)
        for found in wrong[:3]:
            print(f"    pair {found.pair}, answers {found.answers}: {found.report}", flush=True)
    moved = ", ".join(f"{operator} {ratio:.3g}" for operator, ratio in sorted(best.items()))
    print(f"largest movement, of what scaled the noise: {moved}")
    print(f"{pairs} pairs of {len(cases)} cases in {time.perf_counter() - started:.0f} s, {problems} with problems")
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main())
